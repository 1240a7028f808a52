//! Links objects with the system's linker.
use super::{CodegenError, data_object};
use irc_mlir::{Module, OperationLike, RegionLike, attr, read};
use object::{
    Endianness,
    read::{Object, ObjectSymbol, elf::ElfFile64},
};
use std::{collections::BTreeSet, fs, path::Path, process::Command};

/// How the names begin of what models and plans export; everything else stays local.
const EXPORTS: [&str; 3] = ["irc_run", "irc_metadata", "irc_task_"];

const SHARED: [&str; 6] = ["-shared", "-z", "noexecstack", "-z", "now", "--build-id=none"];

const LINKERS: [&str; 5] = ["ld.lld-22", "ld.lld", "ld.gold", "ld.bfd", "ld"];

/// Links objects, given as name and bytes, to a shared library's bytes, which exports what models and
/// plans do. `aliases` gives symbols further names.
///
/// # Errors
/// No linker on the machine, its message, or no room for its files.
pub fn link_library<'a>(
    objects: impl IntoIterator<Item = (String, &'a [u8])>,
    aliases: &[(String, String)],
) -> Result<Vec<u8>, CodegenError> {
    let exports = EXPORTS.map(|name| format!("{name}*; ")).concat();
    let exports = format!("{{ global: {exports}local: *; }};\n");
    let aliases = aliases.iter().map(|(alias, symbol)| format!("--defsym={alias}={symbol}"));
    let flags: Vec<String> = SHARED.map(str::to_owned).into_iter().chain(aliases).collect();
    link(objects, flags, Some(&exports))
}

/// Links one object to a shared library's bytes, which exports all that is not hidden.
///
/// # Errors
/// As [`link_library`].
pub fn link_shared(object: &[u8]) -> Result<Vec<u8>, CodegenError> {
    let flags = SHARED.map(str::to_owned).to_vec();
    link([("object".to_owned(), object)], flags, None)
}

/// Joins objects, given as name and bytes, to one.
///
/// # Errors
/// As [`link_library`].
pub fn join_objects<'a>(
    objects: impl IntoIterator<Item = (String, &'a [u8])>,
) -> Result<Vec<u8>, CodegenError> {
    // Without the names of constants that code generators make up.
    link(objects, vec!["-r".to_owned(), "--discard-locals".to_owned()], None)
}

fn link<'a>(
    objects: impl IntoIterator<Item = (String, &'a [u8])>,
    mut arguments: Vec<String>,
    exports: Option<&str>,
) -> Result<Vec<u8>, CodegenError> {
    let io =
        |what: &str, error: std::io::Error| CodegenError::new(format!("cannot {what}: {error}"));
    let folder = tempfile::tempdir().map_err(|error| io("create a temporary folder", error))?;
    let mut outside = Outside::default();
    for (name, bytes) in objects {
        let file = folder.path().join(format!("{name}.o"));
        fs::write(&file, bytes).map_err(|error| io("write an object", error))?;
        outside.add(bytes);
        arguments.push(file.display().to_string());
    }
    if arguments.iter().any(|flag| flag == "-shared") && outside.needs_math() {
        arguments.extend(["--no-as-needed".to_owned(), math_library(folder.path())?]);
    }
    if let Some(exports) = exports {
        let script = folder.path().join("exports.map");
        fs::write(&script, exports).map_err(|error| io("write the export list", error))?;
        arguments.push(format!("--version-script={}", script.display()));
    }
    let linked = folder.path().join("linked");
    arguments.extend(["-o".to_owned(), linked.display().to_string()]);
    run_linker(&arguments)?;
    fs::read(&linked).map_err(|error| io("read what was linked", error))
}

/// Symbols that objects use, and those that they define.
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

    /// Whether something is used that neither the objects nor the C library define.
    fn needs_math(&self) -> bool {
        /// What generated code takes from the C library; every process has it.
        const C: [&str; 7] = ["", "abort", "free", "malloc", "memcpy", "memmove", "memset"];
        self.used.difference(&self.defined).any(|name| !C.contains(&name.as_str()))
    }
}

/// A library that has the name of the system's libm, and nothing in it: what is linked with it names libm as
/// needed, wherever that lies on the machine that loads it.
fn math_library(folder: &Path) -> Result<String, CodegenError> {
    let io = |error: std::io::Error| CodegenError::new(format!("cannot write an object: {error}"));
    let (object, library) = (folder.join("libm.o"), folder.join("libm.so.6"));
    fs::write(&object, data_object("irc_nothing", &[0], 1)?).map_err(io)?;
    let [object, library] = [object, library].map(|path| path.display().to_string());
    let flags = ["-shared", "-soname=libm.so.6", &object, "-o", &library];
    run_linker(&flags.map(str::to_owned))?;
    Ok(library)
}

/// Keeps inside a module in the `llvm` dialect what a linked library would keep inside.
pub fn hide_inner(module: &Module<'_>) {
    for op in read::body_ops(module.as_operation()) {
        let name = read::string(&op, "sym_name").unwrap_or_default();
        let exported = EXPORTS.iter().any(|start| name.starts_with(start));
        let defined = op.region(0).is_ok_and(|region| region.first_block().is_some());
        if read::op_name(&op) == "llvm.func" && defined && !exported {
            let context = irc_mlir::context_of(&op);
            let hidden = attr::parse(context, "#llvm.linkage<internal>");
            irc_mlir::set_attribute(op, "linkage", hidden);
        }
    }
}

fn run_linker(arguments: &[String]) -> Result<(), CodegenError> {
    for linker in LINKERS {
        let Ok(result) = Command::new(linker).args(arguments).output() else { continue };
        if result.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&result.stderr).trim().to_owned();
        return Err(CodegenError::new(format!("{linker}: {message}")));
    }
    Err(CodegenError::new("no linker found: install binutils or lld"))
}
