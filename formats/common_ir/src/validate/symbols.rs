//! Resolution of names of operators and functions.

use std::collections::HashMap;

use crate::library::{self, Libraries};
use crate::model::{Function, Module, Node, Operator, Schema};

/// The callee of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callee<'s> {
    Operator(&'s Operator),
    Function(&'s Function),
}

/// Domain, name, overload.
type Key<'s> = (&'s str, &'s str, &'s str);

/// Symbols that a document can refer to.
pub(crate) struct Symbols<'s> {
    /// The document's own prefix in others.
    own: String,
    local: HashMap<Key<'s>, Callee<'s>>,
    libraries: &'s Libraries,
    standard: Option<&'static HashMap<&'static str, &'static Operator>>,
}

impl<'s> Symbols<'s> {
    /// The symbols of a document; with `implicit_std`, also the standard library's by their bare names.
    pub(crate) fn new(module: &'s Module, libraries: &'s Libraries, implicit_std: bool) -> Self {
        let own = module.qualified_name();
        let mut local = HashMap::new();
        let domain_of = |domain: &'s Option<String>| match domain.as_deref() {
            Some(domain) if domain != own => domain,
            _ => "",
        };
        for operator in &module.operators {
            let name = operator.name.as_deref().unwrap_or_default();
            local
                .entry((domain_of(&operator.domain), name, ""))
                .or_insert(Callee::Operator(operator));
        }
        for function in &module.functions {
            let name = function.name.as_deref().unwrap_or_default();
            let overload = function.overload.as_deref().unwrap_or_default();
            let key = (domain_of(&function.domain), name, overload);
            local.entry(key).or_insert(Callee::Function(function));
        }
        // ONNX's operators are those of its operator sets.
        let has_standard = implicit_std && module.schema == Schema::CommonIr;
        let standard = has_standard.then(library::standard_operators);
        Self { own, local, libraries, standard }
    }

    /// The callee of a node in the document itself, or in the body of a function that was bundled
    /// from a library.
    pub(crate) fn called(&self, node: &Node, body: Option<&str>) -> Option<Callee<'_>> {
        let overload = node.overload.as_deref().unwrap_or_default();
        self.find(node.domain.as_deref().unwrap_or_default(), &node.op, overload, body)
    }

    fn find(
        &self,
        domain: &str,
        name: &str,
        overload: &str,
        body: Option<&str>,
    ) -> Option<Callee<'_>> {
        let local = |domain: &str| self.local.get(&(domain, name, overload)).copied();
        if domain.is_empty() {
            let found = local(body.filter(|body| *body != self.own).unwrap_or_default());
            let standard = || self.standard?.get(name).map(|operator| Callee::Operator(operator));
            return found.or_else(standard);
        }
        let domain = if domain == self.own { "" } else { domain };
        local(domain).or_else(|| match self.libraries.resolve(domain, name)? {
            library::Symbol::Operator(operator) => Some(Callee::Operator(operator)),
            library::Symbol::Function(function) => Some(Callee::Function(function)),
        })
    }

    /// Whether there is a library with that domain and name, joined by a dot.
    pub(crate) fn knows_library(&self, library: &str) -> bool {
        library == self.own || self.libraries.contains(library)
    }

    /// Names similar to one that is undefined, the closest first, as a node would write them.
    pub(crate) fn near(&self, node: &Node, body: Option<&str>) -> Vec<String> {
        let wanted = node.symbol();
        let qualify = |domain: &str, name: &str| match domain {
            "" => name.to_owned(),
            domain => format!("{domain}.{name}"),
        };
        let mut known: Vec<String> =
            self.local.keys().map(|(domain, name, _)| qualify(domain, name)).collect();
        known.extend(self.local.keys().filter(|key| Some(key.0) == body).map(|key| key.1.into()));
        known.extend(self.libraries.symbols().map(|(library, name)| qualify(library, name)));
        known
            .extend(self.standard.iter().flat_map(|all| all.keys()).map(|name| (*name).to_owned()));
        library::near(&wanted, known)
    }
}
