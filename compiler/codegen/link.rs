//! Links objects with the system's linker.
use super::{CodegenError, SymbolScope, UsedFeatures, data_object, restrict_metadata};
use irc_mlir::{Module, OperationLike, RegionLike, attr, ops::llvm, read};
use object::{
    Endianness,
    read::{Object, ObjectSymbol, elf::ElfFile64},
};
use std::{collections::BTreeSet, fs, path::PathBuf, process::Command};

/// Prefixes of the symbols that models and plans export; all others are local.
const EXPORTS: [&str; 5] = ["irc_run", "irc_metadata", "irc_task_", "irc_kernel", "irc_constants"];

const SHARED: [&str; 6] = ["-shared", "-z", "noexecstack", "-z", "now", "--build-id=none"];

const LINKERS: [&str; 5] = ["ld.lld-22", "ld.lld", "ld.gold", "ld.bfd", "ld"];

/// A linked file.
#[derive(Clone, Debug)]
pub struct Linked {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The processor features that its code uses.
    pub features: UsedFeatures,
}

/// Links objects, given by name and bytes, to a shared library that exports the symbols of models and
/// plans. The metadata of models then require the features that the code uses.
///
/// # Errors
/// No linker on the machine, the linker's message, or no space for its files.
pub fn link_library<'a>(
    objects: impl IntoIterator<Item = (String, &'a [u8])>,
) -> Result<Linked, CodegenError> {
    let exports = EXPORTS.map(|name| format!("{name}*; ")).concat();
    let exports = format!("{{ global: {exports}local: *; }};\n");
    link(objects, SHARED.map(str::to_owned).to_vec(), Some(&exports))
}

/// Links one object to a shared library that exports all symbols that are not hidden.
///
/// # Errors
/// See [`link_library`].
pub fn link_shared(object: &[u8]) -> Result<Linked, CodegenError> {
    let flags = SHARED.map(str::to_owned).to_vec();
    link([("object".to_owned(), object)], flags, None)
}

/// Joins objects, given by name and bytes, to one. Returns its bytes.
///
/// # Errors
/// See [`link_library`].
pub fn join_objects<'a>(
    objects: impl IntoIterator<Item = (String, &'a [u8])>,
) -> Result<Vec<u8>, CodegenError> {
    // Without the names of constants that code generators create.
    let joined = link(objects, vec!["-r".to_owned(), "--discard-locals".to_owned()], None)?;
    Ok(joined.bytes)
}

fn link<'a>(
    objects: impl IntoIterator<Item = (String, &'a [u8])>,
    mut arguments: Vec<String>,
    exports: Option<&str>,
) -> Result<Linked, CodegenError> {
    let folder = Folder::new()?;
    let (mut outside, mut bytes) = (Outside::default(), 0);
    for (name, object) in objects {
        arguments.push(folder.write(&format!("{name}.o"), object)?);
        outside.add(object);
        bytes += object.len();
    }
    if arguments.iter().any(|flag| flag == "-shared") && outside.needs_math() {
        arguments.extend(["--no-as-needed".to_owned(), math_library(&folder)?]);
    }
    if let Some(exports) = exports {
        let script = folder.write("exports.map", exports.as_bytes())?;
        arguments.push(format!("--version-script={script}"));
    }
    let linked = folder.path("linked");
    arguments.extend(["-o".to_owned(), linked.display().to_string()]);
    if let Err(error) = run_linker(&arguments) {
        // Linkers report a full disk in different ways, so the space for the output is checked first.
        folder.expect_room(bytes)?;
        return Err(error);
    }
    let file = fs::read(&linked);
    let mut bytes = file.map_err(|error| folder.failed("read what was linked in", &error))?;
    let features = restrict_metadata(&mut bytes)?;
    Ok(Linked { bytes, features })
}

/// A folder for the files of a link, removed when dropped. If there is no space, that is an error of the
/// machine.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Result<Self, CodegenError> {
        let folder = tempfile::Builder::new().prefix("irc-link-").tempdir();
        folder.map(Folder).map_err(|error| {
            let within = std::env::temp_dir();
            let message =
                format!("cannot create a temporary folder in {}: {error}", within.display());
            CodegenError::temporary_files(message)
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file. Returns its path, for the linker.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<String, CodegenError> {
        let path = self.path(name);
        fs::write(&path, bytes).map_err(|error| self.failed("write to", &error))?;
        Ok(path.display().to_string())
    }

    /// Errors: if the disk has no space for so many more bytes.
    fn expect_room(&self, bytes: usize) -> Result<(), CodegenError> {
        self.write("room", &vec![1; bytes]).map(drop)
    }

    fn failed(&self, what: &str, error: &std::io::Error) -> CodegenError {
        let folder = self.0.path().display();
        CodegenError::temporary_files(format!("cannot {what} {folder}: {error}"))
    }
}

/// The symbols that objects use and define.
#[derive(Default)]
struct Outside {
    used: BTreeSet<String>,
    defined: BTreeSet<String>,
}

impl Outside {
    fn add(&mut self, bytes: &[u8]) {
        let Ok(object) = ElfFile64::<Endianness>::parse(bytes) else { return };
        for symbol in object.symbols() {
            let Ok(name) = symbol.name() else { continue };
            let names = if symbol.is_undefined() { &mut self.used } else { &mut self.defined };
            names.insert(name.to_owned());
        }
    }

    /// Whether a symbol is used that neither the objects nor the C library define.
    fn needs_math(&self) -> bool {
        /// The functions of the C library that generated code uses; they are in every process.
        const C: [&str; 7] = ["", "abort", "free", "malloc", "memcpy", "memmove", "memset"];
        self.used.difference(&self.defined).any(|name| !C.contains(&name.as_str()))
    }
}

/// An empty library with the name of the system's libm: a library linked with it depends on libm by name,
/// wherever it is on the machine that loads it.
fn math_library(folder: &Folder) -> Result<String, CodegenError> {
    let object =
        folder.write("libm.o", &data_object("irc_nothing", &[0], 1, SymbolScope::Linkage)?)?;
    let library = folder.path("libm.so.6").display().to_string();
    let flags = ["-shared", "-soname=libm.so.6", &object, "-o", &library];
    run_linker(&flags.map(str::to_owned))?;
    Ok(library)
}

/// Hides the symbols of a module in the `llvm` dialect that a linked library would not export.
pub fn hide_inner(module: &Module<'_>) {
    for op in read::body_ops(module.as_operation()) {
        let name = read::string(&op, "sym_name").unwrap_or_default();
        let exported = EXPORTS.iter().any(|start| name.starts_with(start));
        let defined = op.region(0).is_ok_and(|region| region.first_block().is_some());
        if read::op_name(&op) == llvm::FUNC && defined && !exported {
            let context = irc_mlir::context_of(&op);
            let hidden = attr::parse(context, "#llvm.linkage<internal>");
            irc_mlir::set_attribute(op, "linkage", hidden);
        }
    }
}

fn run_linker(arguments: &[String]) -> Result<(), CodegenError> {
    for linker in LINKERS {
        /// Why there is no room for a file, as the C library words it.
        const FULL: [&str; 3] =
            ["No space left on device", "File too large", "Disk quota exceeded"];
        let mut command = Command::new(linker);
        let Ok(result) = command.args(arguments).env("LC_ALL", "C").output() else { continue };
        if result.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&result.stderr).trim().to_owned();
        let message = format!("{linker}: {message}");
        return Err(match FULL.iter().any(|why| message.contains(why)) {
            true => CodegenError::temporary_files(message),
            false => CodegenError::new(message),
        });
    }
    let known = LINKERS.join(", ");
    Err(CodegenError::environment(format!(
        "no linker found on PATH ({known}): install binutils or lld"
    )))
}
