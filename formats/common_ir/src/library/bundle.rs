//! Bundles a module and its libraries into one module.

use std::collections::{BTreeMap, BTreeSet};

use super::Libraries;
use crate::model::{AttributeValue, Function, Module, Node, Operator};

/// One module without imports: functions and operators of the libraries are included under
/// their qualified names.
///
/// Every name resolves to the same symbol as before. The order is that of
/// the module, followed by that of the libraries as they were found.
pub fn bundle(module: &Module, libraries: &Libraries) -> Module {
    let mut bundled = Module { imports: vec![], ..module.clone() };
    let own = module.qualified_name();
    let mut seen: BTreeSet<(String, String)> = bundled
        .operators
        .iter()
        .map(|operator| (&operator.domain, &operator.name))
        .chain(bundled.functions.iter().map(|function| (&function.domain, &function.name)))
        .map(|(domain, name)| {
            (domain.clone().unwrap_or_else(|| own.clone()), name.clone().unwrap_or_default())
        })
        .collect();
    let mut is_new = |domain: &Option<String>, name: &Option<String>| {
        seen.insert((domain.clone().unwrap_or_default(), name.clone().unwrap_or_default()))
    };
    for library in libraries.iter() {
        let operators = library.module.operators.iter();
        let operators = operators.map(|operator| qualified_operator(operator, &library.module));
        bundled
            .operators
            .extend(operators.filter(|operator| is_new(&operator.domain, &operator.name)));
        let names = Names::of(&library.module);
        let functions = library.module.functions.iter();
        let functions = functions.map(|function| names.qualify(function));
        bundled
            .functions
            .extend(functions.filter(|function| is_new(&function.domain, &function.name)));
    }
    bundled
}

pub(crate) fn qualified_operator(operator: &Operator, library: &Module) -> Operator {
    let domain = operator.domain.clone().unwrap_or_else(|| library.qualified_name());
    Operator { domain: Some(domain), ..operator.clone() }
}

/// Names of a library's own symbols, to be qualified.
pub(crate) struct Names<'m> {
    library: String,
    /// By domain: symbols of the library that were bundled from other libraries refer to themselves there.
    names: BTreeMap<Option<&'m str>, BTreeSet<&'m str>>,
}

impl<'m> Names<'m> {
    pub(crate) fn of(library: &'m Module) -> Self {
        let mut names: BTreeMap<Option<&str>, BTreeSet<&str>> = BTreeMap::new();
        let operators = library.operators.iter();
        let operators = operators.map(|operator| (&operator.domain, &operator.name));
        let functions = library.functions.iter();
        let functions = functions.map(|function| (&function.domain, &function.name));
        for (domain, name) in operators.chain(functions) {
            names.entry(domain.as_deref()).or_default().extend(name.as_deref());
        }
        Self { library: library.qualified_name(), names }
    }

    /// A function of the library as seen from other modules: its name, and those of the document's functions
    /// that it calls, are qualified.
    pub(crate) fn qualify(&self, function: &Function) -> Function {
        let domain = function.domain.as_ref().unwrap_or(&self.library).clone();
        let mut qualified = Function { domain: Some(domain.clone()), ..function.clone() };
        if let Some(names) = self.names.get(&function.domain.as_deref()) {
            qualify(&mut qualified.nodes, names, &domain);
        }
        qualified
    }
}

fn qualify(nodes: &mut [Node], names: &BTreeSet<&str>, domain: &str) {
    for node in nodes {
        let is_bare = node.domain.as_deref().unwrap_or_default().is_empty();
        if is_bare && names.contains(node.op.as_str()) {
            node.domain = Some(domain.to_owned());
        }
        for attribute in &mut node.attributes {
            if matches!(attribute.value, AttributeValue::Graph(_) | AttributeValue::Graphs(_)) {
                for graph in attribute.value.graphs_mut() {
                    qualify(&mut graph.nodes, names, domain);
                }
            }
        }
    }
}
