//! Imported libraries: loading with all their imports, resolution, bundling.

mod bundle;
mod fetch;
mod load;
mod reference;
mod standard;

use std::collections::BTreeMap;

use irc_diag::Diagnostic;

use crate::model::{Function, Module, Operator};

pub use bundle::bundle;
pub(crate) use bundle::{Names, qualified_operator};
pub use fetch::Fetch;
pub use load::{LoadOptions, load};
pub(crate) use reference::error as reference_error;
pub(crate) use standard::operators as standard_operators;
pub use standard::standard;

/// A library that is imported, directly or by another.
#[derive(Clone, Debug)]
pub struct Library {
    /// Its module.
    pub module: Module,
    /// Where it was found: a path or a URL.
    pub location: String,
    /// The import of the root that leads to it.
    pub import: usize,
    /// The chain of references that leads to it, the root's first.
    pub chain: Vec<String>,
}

impl Library {
    /// Moves a diagnostic in the library to the root's import that leads to it.
    pub(crate) fn relocate(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        let place = diagnostic.path.take().filter(|path| !path.is_empty());
        let place = place.map_or(String::new(), |place| format!(" at {place}"));
        diagnostic.labels.clear();
        diagnostic.related.clear();
        let chain = self.chain.join(" -> ");
        diagnostic.with_note(format!("in library `{chain}`{place}")).path(import_path(self.import))
    }
}

/// Path of an import of the root.
fn import_path(index: usize) -> String {
    crate::model::Path::ROOT.index("import", index).to_string()
}

/// The definition of a name of a library.
#[derive(Clone, Copy, Debug)]
pub enum Symbol<'l> {
    /// A declared operator.
    Operator(&'l Operator),
    /// A function.
    Function(&'l Function),
}

/// All libraries that a module imports, directly or indirectly.
#[derive(Clone, Debug, Default)]
pub struct Libraries {
    documents: Vec<Library>,
    /// Documents by domain and name.
    by_name: BTreeMap<String, usize>,
    /// Index of each symbol, by library and name.
    symbols: BTreeMap<String, BTreeMap<String, Place>>,
}

/// Index of the document, and index in its list.
#[derive(Clone, Copy, Debug)]
enum Place {
    Operator(usize, usize),
    Function(usize, usize),
}

impl Libraries {
    /// No libraries, for a module without imports.
    pub fn none() -> Self {
        Self::default()
    }

    /// Each library once, in the order they were found, those closer to the root first.
    pub fn iter(&self) -> impl Iterator<Item = &Library> {
        self.documents.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The library with that domain and name.
    pub fn get(&self, domain: &str, name: &str) -> Option<&Library> {
        self.named(&format!("{domain}.{name}"))
    }

    /// A symbol of a library, which is named by its domain and name joined by a dot, as in nodes.
    pub fn resolve(&self, library: &str, symbol: &str) -> Option<Symbol<'_>> {
        Some(match *self.symbols.get(library)?.get(symbol)? {
            Place::Operator(document, index) => {
                Symbol::Operator(&self.documents[document].module.operators[index])
            }
            Place::Function(document, index) => {
                Symbol::Function(&self.documents[document].module.functions[index])
            }
        })
    }

    /// All symbols, with their libraries.
    pub fn symbols(&self) -> impl Iterator<Item = (&str, &str)> {
        self.symbols.iter().flat_map(|(library, names)| {
            names.keys().map(move |name| (library.as_str(), name.as_str()))
        })
    }

    /// The library with that domain and name, joined by a dot.
    pub(crate) fn named(&self, library: &str) -> Option<&Library> {
        self.by_name.get(library).map(|index| &self.documents[*index])
    }

    /// Whether there is a library with that domain and name, joined by a dot.
    pub fn contains(&self, library: &str) -> bool {
        self.symbols.contains_key(library) || self.by_name.contains_key(library)
    }

    /// Adds a library and indexes its symbols; of two libraries with one name the first counts.
    pub fn push(&mut self, library: Library) {
        let (document, own) = (self.documents.len(), library.module.qualified_name());
        let symbols = &mut self.symbols;
        let mut add = |domain: &Option<String>, name: &Option<String>, place: Place| {
            let library = domain.as_ref().unwrap_or(&own).clone();
            let names = symbols.entry(library).or_default();
            names.entry(name.clone().unwrap_or_default()).or_insert(place);
        };
        for (index, operator) in library.module.operators.iter().enumerate() {
            add(&operator.domain, &operator.name, Place::Operator(document, index));
        }
        for (index, function) in library.module.functions.iter().enumerate() {
            add(&function.domain, &function.name, Place::Function(document, index));
        }
        self.by_name.entry(own).or_insert(document);
        self.documents.push(library);
    }
}

/// The most similar names, the closest first: with few different letters, or another case or library.
pub(crate) fn near(wanted: &str, known: Vec<String>) -> Vec<String> {
    const SHOWN: usize = 3;
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_lowercase();
    let allowed = 1 + wanted.len() / 5;
    let mut near: Vec<(usize, String)> = known
        .into_iter()
        .filter_map(|name| {
            let distance = match last(&name) == last(wanted) {
                true => 0,
                // Names of very different lengths are not similar; the distance takes time of their product.
                false if name.len().abs_diff(wanted.len()) > allowed => return None,
                false => strsim::levenshtein(&name, wanted),
            };
            (distance <= allowed).then_some((distance, name))
        })
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().map(|(_, name)| name).take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        let known = || vec!["com.ex.Relu".into(), "Concat".into(), "Conv".into()];
        assert_eq!(near("com.ex.Rely", known()), ["com.ex.Relu"]);
        assert_eq!(near("Relu", known()), ["com.ex.Relu"]);
        assert_eq!(near("conv", known()), ["Conv"]);
        assert_eq!(near("Softmax", known()), [""; 0]);
    }
}
