//! What the code of an archive defines and needs: symbols of objects, functions of C sources.

mod c;
mod known;

use std::collections::{BTreeMap, BTreeSet};

use irc_diag::{Diagnostic, Sink};
use object::{Architecture, Object, ObjectKind, ObjectSymbol, SymbolKind};

use crate::archive::Archive;
use crate::report::Report;
use irc_diag::clip;

/// Where objects and sources lie.
pub const OBJECTS: &str = "codegen/host/lib/";

/// Where sources lie.
pub const SOURCES: &str = "codegen/host/src/";

/// What C runtimes of TVM look functions up with.
pub const REGISTRY: &str = "TVMSystemLibEntryPoint";

/// Symbols by which a library holds its own parameters.
const LINKED_PARAMS: &str = "_lookup_linked_param";

/// The code of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    /// Functions that are defined, with the path of the member that does.
    pub functions: BTreeMap<String, String>,
    /// Other data that are defined, likewise.
    pub data: BTreeMap<String, String>,
    /// What objects need and none defines, with the path of the first that does.
    pub undefined: BTreeMap<String, String>,
    /// What the objects are for; nothing without objects.
    pub(crate) machine: Option<Architecture>,
}

impl Library {
    /// Reads the symbols of all objects and sources of an archive; findings go to `report`.
    pub fn read(archive: &Archive, report: &mut Report) -> Self {
        let mut library = Self::default();
        let mut needed: BTreeMap<String, String> = BTreeMap::new();
        for (path, bytes) in archive.within(OBJECTS) {
            let mut sink = Sink::new();
            if let Some(symbols) = symbols(bytes, &mut library.machine, &mut sink) {
                library.add(path, symbols.functions, symbols.data, &mut sink);
                for name in symbols.undefined {
                    needed.entry(name).or_insert_with(|| path.to_owned());
                }
            }
            report.add(archive.binary_of(path), sink);
        }
        for (path, bytes) in archive.within(SOURCES) {
            let mut sink = Sink::new();
            let functions = c::functions(&String::from_utf8_lossy(bytes));
            library.add(path, functions, BTreeSet::new(), &mut sink);
            report.add(archive.binary_of(path), sink);
        }
        let is_defined =
            |name: &String| library.functions.contains_key(name) || library.data.contains_key(name);
        library.undefined = needed.into_iter().filter(|(name, _)| !is_defined(name)).collect();
        library
    }

    fn add(
        &mut self,
        path: &str,
        functions: BTreeSet<String>,
        data: BTreeSet<String>,
        sink: &mut Sink,
    ) {
        for name in functions {
            if let Some(other) = self.functions.insert(name.clone(), path.to_owned()) {
                let message = format!("function `{}` is defined in `{other}` too", clip(&name));
                sink.push(Diagnostic::error("mlf-duplicate-symbol", message));
            }
        }
        self.data.extend(data.into_iter().map(|name| (name, path.to_owned())));
    }

    /// Whether the library holds parameters itself.
    pub fn has_linked_params(&self) -> bool {
        self.functions.contains_key(LINKED_PARAMS)
    }

    /// Reports what is needed beyond libc and libm.
    pub(crate) fn check_undefined(&self, archive: &Archive, report: &mut Report) {
        let mut by_member: BTreeMap<&str, Sink> = BTreeMap::new();
        for (name, path) in &self.undefined {
            if let Some(finding) = undefined(name) {
                by_member.entry(path).or_default().push(finding);
            }
        }
        for (path, sink) in by_member {
            report.add(archive.binary_of(path), sink);
        }
    }
}

/// What is wrong with a symbol that no member defines.
fn undefined(name: &str) -> Option<Diagnostic> {
    match known::source_of(name) {
        known::Source::System => None,
        known::Source::Runtime => {
            let message = format!("`{name}` must come from a runtime that exports it");
            let help = "the DLR runtime does not; the weak slots `__TVMBackend…` load everywhere";
            Some(Diagnostic::warning("mlf-runtime-symbol", message).help(help))
        }
        known::Source::Unknown => {
            let message = format!("nothing defines `{}`", clip(name));
            let help = "objects may need libc, libm and TVM's runtime, nothing else";
            Some(Diagnostic::error("mlf-undefined-symbol", message).help(help))
        }
    }
}

/// Symbols of an object that others see.
#[derive(Default)]
struct Symbols {
    functions: BTreeSet<String>,
    data: BTreeSet<String>,
    undefined: BTreeSet<String>,
}

/// What a shared library is for, and the functions that it exports.
///
/// # Errors
/// The bytes are none; one line says why.
pub(crate) fn exports(bytes: &[u8]) -> Result<(Architecture, BTreeSet<&str>), String> {
    let file = match object::File::parse(bytes) {
        Ok(file) if file.kind() == ObjectKind::Dynamic => file,
        Ok(_) => return Err("it is another kind of object".into()),
        Err(error) => return Err(error.to_string()),
    };
    let mut functions = BTreeSet::new();
    for symbol in file.dynamic_symbols().filter(is_function) {
        functions.insert(symbol.name().map_err(|error| error.to_string())?);
    }
    Ok((file.architecture(), functions))
}

fn is_function<'o>(symbol: &impl ObjectSymbol<'o>) -> bool {
    symbol.kind() == SymbolKind::Text && !symbol.is_undefined()
}

/// Reads the symbols of a relocatable object; all objects are for one machine.
fn symbols(bytes: &[u8], machine: &mut Option<Architecture>, sink: &mut Sink) -> Option<Symbols> {
    let file = match object::File::parse(bytes) {
        Ok(file) if file.kind() == ObjectKind::Relocatable => file,
        Ok(_) => return refuse("the member is no relocatable object", sink),
        Err(error) => return refuse(&format!("the member is no ELF object: {error}"), sink),
    };
    let first = *machine.get_or_insert(file.architecture());
    if first != file.architecture() {
        let message =
            format!("code for {:?}, other objects are for {first:?}", file.architecture());
        sink.push(Diagnostic::error("mlf-machine", message));
    }
    let mut symbols = Symbols::default();
    for symbol in file.symbols() {
        let Ok(name) = symbol.name() else {
            return refuse("the name of a symbol cannot be read", sink);
        };
        let set = match symbol.kind() {
            _ if symbol.is_undefined() && !name.is_empty() => &mut symbols.undefined,
            _ if symbol.is_local() || symbol.is_undefined() => continue,
            SymbolKind::Text => &mut symbols.functions,
            _ => &mut symbols.data,
        };
        set.insert(name.to_owned());
    }
    Some(symbols)
}

fn refuse<T>(message: &str, sink: &mut Sink) -> Option<T> {
    sink.push(Diagnostic::error("mlf-object", message));
    None
}
