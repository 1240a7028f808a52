//! The functions that samples are in, and what libraries say of their kernels.

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind, read::File};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::CStr,
    fs,
    mem::MaybeUninit,
    path::{Path, PathBuf},
};

/// The symbol of the description of a library's kernels.
const KERNELS: &str = "irc_kernels";

/// What a library says of a kernel.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Described {
    pub symbol: String,
    /// Number of launches in the program; in loops they may be more.
    pub launches: u64,
    /// The nodes that it computes.
    pub nodes: Vec<String>,
    /// Number of floating-point operations of one launch.
    pub operations: Option<u64>,
    /// Size of operands and results in bytes.
    pub bytes: Option<u64>,
}

/// Functions by name, with their numbers of samples and their descriptions.
#[derive(Debug, Default)]
pub struct Functions {
    pub samples: BTreeMap<String, u64>,
    pub described: BTreeMap<String, Described>,
}

/// A loaded file of code.
struct Code {
    functions: ByAddress,
    name: String,
}

/// Functions by address, with their sizes and names.
type ByAddress = BTreeMap<u64, (u64, String)>;

/// The functions of samples, which are addresses of code that is still loaded.
pub fn functions(samples: &[usize]) -> Functions {
    let mut found = Functions::default();
    let mut loaded: BTreeMap<usize, Code> = BTreeMap::new();
    for sample in samples {
        let Some((base, path)) = file_of(*sample) else {
            *found.samples.entry("[unknown]".to_owned()).or_default() += 1;
            continue;
        };
        let code = loaded.entry(base).or_insert_with(|| {
            let (functions, described) = read(&path).unwrap_or_default();
            let own = described.into_iter().map(|own| (own.symbol.clone(), own));
            found.described.extend(own);
            let name = path.file_name().unwrap_or(path.as_os_str());
            Code { functions, name: name.to_string_lossy().into_owned() }
        });
        *found.samples.entry(code.function((sample - base) as u64)).or_default() += 1;
    }
    found
}

impl Code {
    fn function(&self, address: u64) -> String {
        let before = self.functions.range(..=address).next_back();
        let found = before.filter(|(start, (size, _))| address - **start < (*size).max(1));
        found.map_or_else(|| format!("[{}]", self.name), |(_, (_, name))| name.clone())
    }
}

/// Where the file with an address is loaded, and its path.
fn file_of(address: usize) -> Option<(usize, PathBuf)> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // Safety: the address is only looked up, and zero is a valid value of the structure.
    let info = unsafe {
        if libc::dladdr(address as *const libc::c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        info.assume_init()
    };
    if info.dli_fname.is_null() {
        return None;
    }
    // Safety: a zero-terminated string of the loader.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned();
    Some((info.dli_fbase as usize, path.into()))
}

/// The functions of a file, and the descriptions of its kernels.
fn read(path: &Path) -> Option<(ByAddress, Vec<Described>)> {
    let bytes = fs::read(path).ok()?;
    let file = File::parse(&*bytes).ok()?;
    let (mut functions, mut described) = (ByAddress::new(), vec![]);
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let Ok(name) = symbol.name() else { continue };
        if symbol.kind() == SymbolKind::Text && symbol.address() != 0 {
            functions.insert(symbol.address(), (symbol.size(), name.to_owned()));
        }
        if name.starts_with(KERNELS) && described.is_empty() {
            described = descriptions(&file, &symbol).unwrap_or_default();
        }
    }
    let kernels: BTreeSet<&str> = described.iter().map(|kernel| &*kernel.symbol).collect();
    for (_, name) in functions.values_mut() {
        if let Some(kernel) = kernel_of(name, &kernels) {
            *name = kernel.to_owned();
        } else if name == "syscall" {
            *name = WAITING.to_owned();
        }
    }
    Some((functions, described))
}

/// The name of the function of the C library in which threads wait, and call the system otherwise.
const WAITING: &str = "syscall (a thread waits)";

/// The kernel that a function computes a part of: one whose work is divided consists of several functions, named by it and
/// the parts, as `KERNEL_rows_part`.
fn kernel_of<'n>(name: &'n str, kernels: &BTreeSet<&str>) -> Option<&'n str> {
    let ends = name.rmatch_indices('_').map(|(end, _)| end);
    let mut prefixes = std::iter::once(name.len()).chain(ends).map(|end| &name[..end]);
    prefixes.find(|prefix| kernels.contains(prefix))
}

fn descriptions<'d>(file: &File<'d>, symbol: &impl ObjectSymbol<'d>) -> Option<Vec<Described>> {
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let bytes = section.data_range(symbol.address(), symbol.size()).ok()??;
    serde_json::from_slice(bytes.strip_suffix(&[0])?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_parts_are_their_kernel() {
        let kernels = BTreeSet::from(["irc_matmul_nx512_cd94", "irc_matmul"]);
        let of = |name| kernel_of(name, &kernels);
        assert_eq!(of("irc_matmul_nx512_cd94"), Some("irc_matmul_nx512_cd94"));
        assert_eq!(of("irc_matmul_nx512_cd94_rows_part"), Some("irc_matmul_nx512_cd94"));
        assert_eq!(of("irc_matmul_parallel"), Some("irc_matmul"));
        assert_eq!(of("memcpy"), None);
    }
}
