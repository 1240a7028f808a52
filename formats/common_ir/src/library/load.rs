//! Loads libraries and their imports, each once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use irc_diag::{Diagnostic, Sink};

use super::reference::{self, Target};
use super::{Fetch, Libraries, Library};
use crate::flow::{cycle_through, cycles};
use crate::model::Module;
use crate::rules::{Level, Rule, diagnostic};
use crate::{FileError, FileSystem, Files, Options, read};

/// Options of loading libraries.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The folder of the root document, which its imports cannot leave; `None` if it is not a file.
    pub folder: Option<PathBuf>,
    /// Further folders with libraries.
    pub library_paths: Vec<PathBuf>,
    /// Options of fetching; `None` to stay offline.
    pub fetch: Option<Fetch>,
    /// Source of documents that are not on servers.
    pub files: Arc<dyn Files>,
    /// Maximum depth of imports.
    pub max_depth: usize,
    /// Maximum number of libraries.
    pub max_documents: usize,
    /// Maximum number of bytes of one library.
    pub max_bytes: u64,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            folder: None,
            library_paths: vec![],
            fetch: None,
            files: Arc::new(FileSystem),
            max_depth: 16,
            max_documents: 256,
            max_bytes: 64 << 20,
        }
    }
}

impl LoadOptions {
    /// The options for a document in a file.
    pub fn beside(path: &Path) -> Self {
        Self { folder: Some(crate::folder_of(path).into()), ..Self::default() }
    }
}

/// Loads the libraries that a module imports, directly or indirectly; diagnostics go to
/// `sink`, at the import of the module that leads to the library.
pub fn load(module: &Module, options: &LoadOptions, sink: &mut Sink) -> Libraries {
    let folder = options.folder.as_ref().and_then(|folder| options.files.folder(folder).ok());
    let base = match &folder {
        Some(root) => Base::Folder { root: root.clone(), folder: PathBuf::new() },
        None => Base::Nowhere,
    };
    let mut roots: Vec<PathBuf> = folder.into_iter().collect();
    for path in &options.library_paths {
        match options.files.folder(path) {
            Ok(root) => roots.push(root),
            Err(error) => {
                let message = format!("cannot read the libraries in `{}`: {error}", path.display());
                sink.push(Diagnostic::error("cir-file", message));
            }
        }
    }
    let mut loader = Loader {
        root: module,
        options,
        roots,
        libraries: Libraries::none(),
        seen: BTreeMap::new(),
        first: vec![],
        edges: vec![],
        queue: VecDeque::new(),
        sink,
    };
    loader.enqueue(module, &base, None);
    while let Some(import) = loader.queue.pop_front() {
        loader.load(import);
    }
    loader.cycles();
    loader.libraries
}

/// The base of relative references of a document.
#[derive(Clone, Debug)]
enum Base {
    Folder { root: PathBuf, folder: PathBuf },
    Url(String),
    Nowhere,
}

/// A reference that is to be loaded.
struct Import {
    reference: String,
    base: Base,
    /// The import of the root that leads here.
    index: usize,
    /// The chain of references that leads here, including this one.
    chain: Vec<String>,
    /// Number of the importing document; `None` for the root.
    from: Option<u32>,
}

/// Reasons why a reference is not loaded.
struct ImportError {
    rule: Rule,
    message: String,
    help: Option<&'static str>,
}

fn reject<T>(rule: Rule, message: impl Into<String>) -> Result<T, ImportError> {
    Err(ImportError { rule, message: message.into(), help: None })
}

/// A document that was located.
struct FoundDocument {
    /// Its path without links, or its URL.
    place: String,
    bytes: Bytes,
    base: Base,
}

struct Loader<'l> {
    root: &'l Module,
    options: &'l LoadOptions,
    /// Folders that may be read, without links.
    roots: Vec<PathBuf>,
    libraries: Libraries,
    /// Numbers of the places that have been read.
    seen: BTreeMap<String, u32>,
    /// The import that first led to each of them.
    first: Vec<Import>,
    /// The import graph.
    edges: Vec<(u32, u32)>,
    queue: VecDeque<Import>,
    sink: &'l mut Sink,
}

impl Loader<'_> {
    fn enqueue(&mut self, module: &Module, base: &Base, from: Option<(&Import, u32)>) {
        for (index, reference) in module.imports.iter().enumerate() {
            if reference::error(reference).is_some() {
                continue; // The validator says so.
            }
            let mut chain = from.map_or(vec![], |(import, _)| import.chain.clone());
            chain.push(reference.clone());
            let index = from.map_or(index, |(import, _)| import.index);
            let (reference, base) = (reference.clone(), base.clone());
            let from = from.map(|(_, number)| number);
            self.queue.push_back(Import { reference, base, index, chain, from });
        }
    }

    fn load(&mut self, import: Import) {
        let found = match self.locate(&import) {
            Ok(None) => return,
            Ok(Some(found)) => found,
            Err(rejection) => return self.reject(&import, rejection),
        };
        let number = self.first.len() as u32;
        self.seen.insert(found.place.clone(), number);
        self.edges.extend(import.from.map(|from| (from, number)));
        let read = self.read(&import, &found).and_then(|library| {
            self.enqueue(&library.module, &found.base, Some((&import, number)));
            self.add(library)
        });
        if let Err(rejection) = read {
            self.reject(&import, rejection);
        }
        self.first.push(import);
    }

    fn reject(&mut self, import: &Import, rejection: ImportError) {
        let ImportError { rule, message, help } = rejection;
        let message = format!("import `{}` {message}", import.reference);
        let found = self.diagnostic(import, rule, message);
        let found = found.map(|found| help.into_iter().fold(found, Diagnostic::help));
        self.sink.extend(found);
    }

    /// Reports each cycle of imports once, at the first import that leads there.
    fn cycles(&mut self) {
        let component = cycles(self.first.len(), &self.edges);
        let mut seen = BTreeSet::new();
        for number in 0..self.first.len() as u32 {
            let ring = component[number as usize];
            if ring.is_none_or(|ring| !seen.insert(ring)) {
                continue;
            }
            let ring = cycle_through(number, &self.edges, &component);
            let name = |number: &u32| self.first[*number as usize].reference.as_str();
            let mut names: Vec<&str> = ring.iter().map(name).collect();
            names.push(name(&number));
            let message = format!("libraries import each other: {}", names.join(" -> "));
            let found = self.diagnostic(&self.first[number as usize], Rule::R63, message);
            self.sink.extend(found);
        }
    }

    /// A diagnostic at the import that leads here; `None` if the rule does not apply to such files.
    fn diagnostic(&self, import: &Import, rule: Rule, message: String) -> Option<Diagnostic> {
        let severity = rule.severity(Level::Strict, self.root.schema)?;
        let at = crate::model::Path::ROOT;
        let found = diagnostic(rule, severity, &at.index("import", import.index), message);
        Some(match import.chain.len() {
            1 => found,
            _ => found.with_note(format!("imported by {}", import.chain.join(" -> "))),
        })
    }

    /// The document of an import; `None` if it has been read already.
    fn locate(&mut self, import: &Import) -> Result<Option<FoundDocument>, ImportError> {
        let max = self.options.max_depth;
        if import.chain.len() > max {
            return reject(Rule::R67, format!("is nested more than {max} imports deep"));
        }
        let found = self.find(import)?;
        if let Some(known) = self.seen.get(&found.place) {
            self.edges.extend(import.from.map(|from| (from, *known)));
            return Ok(None);
        }
        let max = self.options.max_documents;
        if self.seen.len() >= max {
            return reject(Rule::R67, format!("is one of more than {max} documents"));
        }
        Ok(Some(found))
    }

    fn find(&self, import: &Import) -> Result<FoundDocument, ImportError> {
        let target = match reference::target(&import.reference) {
            Ok(target) => target,
            Err(error) => return reject(Rule::R67, error),
        };
        match (&target, &import.base) {
            (Target::Other(scheme), _) => reject(
                Rule::R67,
                format!("has the scheme `{scheme}`, expected file, http or https"),
            ),
            (Target::Url(url), _) => self.fetch(url),
            (Target::Relative(path), Base::Url(base)) => match reference::joined(base, path) {
                Some(url) => self.fetch(&url),
                None => reject(Rule::R67, "leaves the server's root"),
            },
            (Target::Absolute(_), Base::Url(_)) => {
                reject(Rule::R67, "is a file imported by a remote document")
            }
            (Target::Absolute(path), _) => self.absolute(path),
            (Target::Relative(path), base) => self.relative(path, base),
        }
    }

    /// A file next to the importing document, or in one of the library folders.
    fn relative(&self, path: &Path, base: &Base) -> Result<FoundDocument, ImportError> {
        let mut missing = None;
        let beside = match base {
            Base::Folder { root, folder } => Some((root, folder.as_path())),
            _ => None,
        };
        let further = self.roots.iter().map(|root| (root, Path::new("")));
        for (root, folder) in beside.into_iter().chain(further) {
            let Some(within) = reference::within(folder, path) else {
                return reject(Rule::R67, "leaves the folder of the model");
            };
            match self.open(root, &within) {
                Err(error) if error.is_missing() => missing = Some(error),
                opened => return self.opened(opened),
            }
        }
        match missing {
            Some(error) => reject(Rule::R61, error.to_string()),
            None => reject(Rule::R61, "cannot be searched for: the document is not a file"),
        }
    }

    fn absolute(&self, path: &Path) -> Result<FoundDocument, ImportError> {
        let inside = self.roots.iter().find_map(|root| Some((root, path.strip_prefix(root).ok()?)));
        let Some((root, within)) = inside else {
            return reject(Rule::R67, "is outside the folders that may be read");
        };
        self.opened(self.open(root, within))
    }

    fn open(&self, root: &Path, within: &Path) -> Result<(PathBuf, Bytes, Base), FileError> {
        let (path, bytes) = self.options.files.read_within(root, within)?;
        let folder = path.parent().and_then(|folder| folder.strip_prefix(root).ok());
        let folder = folder.unwrap_or(Path::new("")).to_owned();
        Ok((path, bytes, Base::Folder { root: root.to_owned(), folder }))
    }

    fn opened(
        &self,
        opened: Result<(PathBuf, Bytes, Base), FileError>,
    ) -> Result<FoundDocument, ImportError> {
        match opened {
            Ok((path, bytes, base)) => {
                Ok(FoundDocument { place: path.to_string_lossy().into_owned(), bytes, base })
            }
            Err(FileError::Unreadable(error)) => {
                reject(Rule::R61, format!("cannot be read: {error}"))
            }
            Err(error) => {
                Err(ImportError { rule: Rule::R67, message: error.to_string(), help: error.help() })
            }
        }
    }

    fn fetch(&self, url: &str) -> Result<FoundDocument, ImportError> {
        let Some(fetch) = &self.options.fetch else {
            return reject(Rule::R67, "is a remote document, and downloads are not allowed");
        };
        match fetch.get(url, self.options.max_bytes, &*self.options.files) {
            Ok(bytes) => {
                Ok(FoundDocument { place: url.to_owned(), bytes, base: Base::Url(url.to_owned()) })
            }
            Err(error) => reject(Rule::R61, format!("cannot be fetched: {error}")),
        }
    }

    fn read(&mut self, import: &Import, found: &FoundDocument) -> Result<Library, ImportError> {
        let (size, max) = (found.bytes.len() as u64, self.options.max_bytes);
        if size > max {
            return reject(Rule::R67, format!("has {size} bytes, expected at most {max}"));
        }
        let mut inner = Sink::new();
        let document = read(&found.place, found.bytes.clone(), &Options::default(), &mut inner);
        let Some(document) = document.filter(|_| !inner.has_errors()) else {
            let first = inner.diagnostics().iter().find(|diagnostic| diagnostic.is_error());
            let why = first.map_or("it cannot be read", |diagnostic| &diagnostic.message);
            return reject(Rule::R62, format!("is not a library: {why}"));
        };
        let form = document.input.form();
        if !document.module.is_library() {
            return reject(Rule::R62, format!("is not a library but {}", form.root.words()));
        }
        let library = Library {
            module: document.module,
            location: found.place.clone(),
            import: import.index,
            chain: import.chain.clone(),
        };
        let warnings = inner.into_diagnostics().into_iter();
        self.sink.extend(warnings.map(|diagnostic| library.relocate(diagnostic)));
        Ok(library)
    }

    /// Adds a library, unless one of its name is present, which must be equal.
    fn add(&mut self, library: Library) -> Result<(), ImportError> {
        let name = library.module.qualified_name();
        let version = |module: &Module| {
            let version = module.metadata.model_version;
            version
                .map_or("without a version".to_owned(), |version| format!("of version {version}"))
        };
        let clash = |other: &Module, place: &str| {
            let (own, other) = (version(&library.module), version(other));
            let message =
                format!("is `{name}` {own}, as is {place}, {other} with different content");
            reject(Rule::R64, message)
        };
        if !name.is_empty() && name == self.root.qualified_name() {
            return clash(self.root, "the document itself");
        }
        match self.libraries.by_name.get(&name).map(|index| &self.libraries.documents[*index]) {
            Some(other) if other.module == library.module => {}
            Some(other) => return clash(&other.module, &format!("`{}`", other.chain.join(" -> "))),
            None => self.libraries.push(library),
        }
        Ok(())
    }
}
