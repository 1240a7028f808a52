//! What the code of an archive defines and needs: symbols of objects, functions of C sources.

mod c;
mod known;

use irc_diag::{Diagnostic, Sink};
use irc_json::{Map, order};

use crate::archive::Archive;
use crate::elf::{Elf, Kind, Machine, Symbols};
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
    pub functions: Map<String, String>,
    /// Other data that are defined, likewise.
    pub data: Map<String, String>,
    /// What objects need and none defines, with the path of the first that does.
    pub undefined: Map<String, String>,
    /// What the objects are for; `None` without objects.
    pub(crate) machine: Option<Machine>,
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
        let (functions, data) = (symbols.functions.into(), symbols.data.into());
        let mut library = Self { functions, data, undefined: Map::new(), machine };
        // Of one name the last counts, which is to be the first that needs it.
        symbols.undefined.reverse();
        symbols.undefined.retain(|(name, _)| !library.defines(name));
        library.undefined = symbols.undefined.into();
        library
    }

    fn defines(&self, name: &str) -> bool {
        self.functions.contains_key(name) || self.data.contains_key(name)
    }

    /// Whether the library holds parameters itself.
    pub fn has_linked_params(&self) -> bool {
        self.functions.contains_key(LINKED_PARAMS)
    }

    /// Reports what is needed beyond libc and libm.
    pub(crate) fn check_undefined(&self, archive: &Archive, report: &mut Report) {
        let mut found: Vec<(&str, Diagnostic)> = vec![];
        for (name, path) in self.undefined.iter() {
            found.extend(undefined(name).map(|diagnostic| (path.as_str(), diagnostic)));
        }
        report.add_binary(archive, found);
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

/// Symbols of an object or source that others see.
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

    /// Reports functions that two members define, at each but the first.
    fn report_repeated(&self, archive: &Archive, report: &mut Report) {
        let functions = &self.functions;
        let mut found = vec![];
        // By name; members of one name stay in order.
        for pair in order(functions.len(), &|a, b| functions[a].0.cmp(&functions[b].0)).windows(2) {
            let [(name, path), (next_name, next_path)] =
                [pair[0], pair[1]].map(|at| &functions[at]);
            if name == next_name && path != next_path {
                let message = format!("function `{}` is defined in `{path}` too", clip(name));
                let diagnostic = Diagnostic::error("mlf-duplicate-symbol", message);
                found.push((next_path.as_str(), diagnostic));
            }
        }
        report.add_binary(archive, found);
    }
}

/// What a shared library is for, and the functions that it exports, with their numbers.
///
/// # Errors
/// The bytes are none; one line says why.
pub(crate) fn exports(bytes: &[u8]) -> Result<(Machine, Map<&str, usize>), &'static str> {
    let file = Elf::parse(bytes)?;
    if file.kind() != Kind::Shared {
        return Err("it is another kind of object");
    }
    let symbols = file.symbols(Symbols::Dynamic)?.into_iter().enumerate();
    let functions = symbols.filter(|(_, symbol)| symbol.is_function && !symbol.is_undefined);
    let functions: Vec<_> = functions.map(|(number, symbol)| (symbol.name, number)).collect();
    Ok((file.machine(), functions.into()))
}

/// Reads the symbols of a relocatable object; all objects are for one machine.
fn of_object(bytes: &[u8], machine: &mut Option<Machine>, sink: &mut Sink) -> Option<Names> {
    let file = match Elf::parse(bytes) {
        Ok(file) if file.kind() == Kind::Relocatable => file,
        Ok(_) => return refuse("the member is not a relocatable object", sink),
        Err(error) => return refuse(&format!("the member is not an ELF object: {error}"), sink),
    };
    let first = *machine.get_or_insert(file.machine());
    if first != file.machine() {
        let message = format!("code for {}, other objects are for {first}", file.machine());
        sink.push(Diagnostic::error("mlf-machine", message));
    }
    let symbols = match file.symbols(Symbols::All) {
        Ok(symbols) => symbols,
        Err(message) => return refuse(message, sink),
    };
    let mut names = Names::default();
    for symbol in symbols {
        let list = match symbol.is_undefined {
            true if !symbol.name.is_empty() => &mut names.undefined,
            _ if symbol.is_local || symbol.is_undefined => continue,
            _ if symbol.is_function => &mut names.functions,
            _ => &mut names.data,
        };
        list.push(symbol.name.to_owned());
    }
    Some(names)
}

fn refuse<T>(message: &str, sink: &mut Sink) -> Option<T> {
    sink.push(Diagnostic::error("mlf-object", message));
    None
}
