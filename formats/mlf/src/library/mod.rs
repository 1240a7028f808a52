//! Symbols that the code of an archive defines and needs: those of objects, and functions of C sources.

mod c;
mod known;

use std::collections::BTreeMap;

use irc_diag::{Diagnostic, Sink};
use object::{Architecture, Object, ObjectKind, ObjectSymbol, SymbolKind};

use crate::archive::Archive;
use crate::elf;
use crate::params::index;
use crate::report::Report;
use irc_diag::clip;

/// Folder of objects and sources.
pub const OBJECTS: &str = "codegen/host/lib/";

/// Folder of sources.
pub const SOURCES: &str = "codegen/host/src/";

/// Function registry of TVM's C runtimes.
pub const REGISTRY: &str = "TVMSystemLibEntryPoint";

/// Symbols of a library with linked parameters.
const LINKED_PARAMS: &str = "_lookup_linked_param";

/// The code of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    /// Defined functions, with the path of the defining member.
    pub functions: BTreeMap<String, String>,
    /// Other data that are defined, likewise.
    pub data: BTreeMap<String, String>,
    /// What objects need and none defines, with the path of the first that does.
    pub undefined: BTreeMap<String, String>,
    /// What the objects are for; `None` without objects.
    pub(crate) machine: Option<Architecture>,
}

impl Library {
    /// Reads the symbols of all objects and sources of an archive; diagnostics go to `report`.
    pub fn read(archive: &Archive, report: &mut Report) -> Self {
        let mut machine = None;
        let mut symbols = Defined::default();
        for (path, bytes) in archive.within(OBJECTS) {
            let mut sink = Sink::new();
            symbols.extend(path, of_object(bytes, &mut machine, &mut sink).unwrap_or_default());
            report.add(archive.binary_of(path), sink);
        }
        for (path, bytes) in archive.within(SOURCES) {
            let functions = c::functions(&String::from_utf8_lossy(bytes));
            symbols.extend(path, Names { functions, ..Names::default() });
        }
        symbols.report_repeated(archive, report);
        let functions = index(symbols.functions);
        let data = index(symbols.data);
        let mut library = Self { functions, data, undefined: BTreeMap::new(), machine };
        for (name, path) in symbols.undefined {
            if !library.defines(&name) {
                library.undefined.entry(name).or_insert(path);
            }
        }
        library
    }

    fn defines(&self, name: &str) -> bool {
        self.functions.contains_key(name) || self.data.contains_key(name)
    }

    /// Whether the library contains parameters.
    pub fn has_linked_params(&self) -> bool {
        self.functions.contains_key(LINKED_PARAMS)
    }

    /// Reports undefined symbols except those of libc and libm.
    pub(crate) fn check_undefined(&self, archive: &Archive, report: &mut Report) {
        let mut found: Vec<(&str, Diagnostic)> = vec![];
        for (name, path) in self.undefined.iter() {
            found.extend(undefined(name).map(|diagnostic| (path.as_str(), diagnostic)));
        }
        report.add_binary(archive, found);
    }
}

/// The diagnostic of a symbol that no member defines.
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

/// External symbols of an object or source.
#[derive(Default)]
struct Names {
    functions: Vec<String>,
    data: Vec<String>,
    undefined: Vec<String>,
}

/// Symbols of all members, each with the path of its member.
#[derive(Default)]
struct Defined {
    functions: Vec<(String, String)>,
    data: Vec<(String, String)>,
    undefined: Vec<(String, String)>,
}

impl Defined {
    fn extend(&mut self, path: &str, names: Names) {
        let Names { functions, data, undefined } = names;
        let lists = [&mut self.functions, &mut self.data, &mut self.undefined];
        for (list, names) in lists.into_iter().zip([functions, data, undefined]) {
            for name in names {
                list.push((name, path.to_owned()));
            }
        }
    }

    /// Reports functions that two members define, at each except the first.
    fn report_repeated(&self, archive: &Archive, report: &mut Report) {
        let mut found = vec![];
        let mut paths = BTreeMap::new();
        for (name, path) in &self.functions {
            if let Some(other) = paths.insert(name, path).filter(|other| *other != path) {
                let message = format!("function `{}` is defined in `{other}` too", clip(name));
                let diagnostic = Diagnostic::error("mlf-duplicate-symbol", message);
                found.push((path.as_str(), diagnostic));
            }
        }
        report.add_binary(archive, found);
    }
}

/// The machine of a shared library, and the functions that it exports, with their numbers.
///
/// # Errors
/// A message if it is not a shared library.
pub(crate) fn exports(bytes: &[u8]) -> Result<(Architecture, BTreeMap<&str, usize>), String> {
    let file = elf::parse(bytes)?;
    if file.kind() != ObjectKind::Dynamic {
        return Err("it is another kind of object".into());
    }
    let functions = file.dynamic_symbols().filter(is_defined_function);
    let functions = functions.map(|symbol| Ok((symbol.name()?, symbol.index().0)));
    let functions = functions.collect::<object::Result<Vec<_>>>();
    let functions = functions.map_err(|error| error.to_string())?;
    Ok((file.architecture(), index(functions)))
}

fn is_defined_function<'b>(symbol: &impl ObjectSymbol<'b>) -> bool {
    symbol.kind() == SymbolKind::Text && !symbol.is_undefined()
}

/// Reads the symbols of a relocatable object; all objects are for one machine.
fn of_object(bytes: &[u8], machine: &mut Option<Architecture>, sink: &mut Sink) -> Option<Names> {
    let file = match elf::parse(bytes) {
        Ok(file) if file.kind() == ObjectKind::Relocatable => file,
        Ok(_) => return reject("the member is not a relocatable object", sink),
        Err(error) => return reject(&format!("the member is not an ELF object: {error}"), sink),
    };
    let own = file.architecture();
    let first = *machine.get_or_insert(own);
    if first != own {
        let message = format!("code for {own:?}, other objects are for {first:?}");
        sink.push(Diagnostic::error("mlf-machine", message));
    }
    let mut names = Names::default();
    for symbol in file.symbols() {
        let name = match symbol.name() {
            Ok(name) => name,
            Err(error) => return reject(&error.to_string(), sink),
        };
        let list = match symbol.is_undefined() {
            true if !name.is_empty() => &mut names.undefined,
            _ if symbol.is_local() || symbol.is_undefined() => continue,
            _ if symbol.kind() == SymbolKind::Text => &mut names.functions,
            _ => &mut names.data,
        };
        list.push(name.to_owned());
    }
    Some(names)
}

fn reject<T>(message: &str, sink: &mut Sink) -> Option<T> {
    sink.push(Diagnostic::error("mlf-object", message));
    None
}
