//! Declared operators and the signatures of functions.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Checker, Rule};
use crate::library::{Libraries, Names, Symbol, qualified_operator};
use crate::model::{AttributeValue, Dim, Function, Graph, Node, Operator, Path, Signature, Value};

impl Checker<'_> {
    pub(super) fn declarations(&mut self) {
        let module = self.module;
        self.namespace();
        for (index, operator) in module.operators.iter().enumerate() {
            self.operator(operator, &Path::ROOT.index("operator", index));
        }
        let elsewhere = scopes(module.graph.as_ref(), &module.functions);
        for (index, function) in module.functions.iter().enumerate() {
            let at = Path::ROOT;
            let at = at.index("function", index);
            self.function(function, &at);
            self.leaks(function, &elsewhere, &at);
        }
        if let Some(graph) = &module.graph {
            self.wildcards(&graph.inputs, &graph.outputs, &Path::GRAPH);
        }
    }

    /// Checks that symbols bundled from an imported library are equal to those of the library.
    pub(super) fn bundled(&mut self, libraries: &Libraries) {
        let module = self.module;
        let mut names: BTreeMap<&str, Names<'_>> = BTreeMap::new();
        for (index, function) in module.functions.iter().enumerate() {
            let Some(domain) = function.domain.as_deref() else { continue };
            let Some(library) = libraries.named(domain) else { continue };
            let symbol = function.name.as_deref().unwrap_or_default();
            let names = names.entry(domain).or_insert_with(|| Names::of(&library.module));
            let is_same = match libraries.resolve(domain, symbol) {
                Some(Symbol::Function(other)) => names.qualify(other) == *function,
                Some(Symbol::Operator(_)) => false,
                None => true,
            };
            self.differs(is_same, domain, symbol, &Path::ROOT.index("function", index));
        }
        for (index, operator) in module.operators.iter().enumerate() {
            let Some(domain) = operator.domain.as_deref() else { continue };
            let Some(library) = libraries.named(domain) else { continue };
            let symbol = operator.name.as_deref().unwrap_or_default();
            let is_same = match libraries.resolve(domain, symbol) {
                Some(Symbol::Operator(other)) => {
                    qualified_operator(other, &library.module) == *operator
                }
                Some(Symbol::Function(_)) => false,
                None => true,
            };
            self.differs(is_same, domain, symbol, &Path::ROOT.index("operator", index));
        }
    }

    fn differs(&mut self, is_same: bool, library: &str, symbol: &str, at: &Path<'_>) {
        if !is_same {
            let message = format_args!("`{library}.{symbol}` differs from the imported library");
            self.report(Rule::R66, at, message);
        }
    }

    /// Functions and operators of a document share one namespace.
    fn namespace(&mut self) {
        let module = self.module;
        let mut seen: HashMap<(&str, &str, &str), String> = HashMap::new();
        let operators = module.operators.iter().enumerate().map(|(index, operator)| {
            (("operator", index), (operator.domain.as_deref(), operator.name.as_deref(), None))
        });
        let functions = module.functions.iter().enumerate().map(|(index, function)| {
            let overload = function.overload.as_deref();
            (("function", index), (function.domain.as_deref(), function.name.as_deref(), overload))
        });
        for ((kind, index), (domain, name, overload)) in operators.chain(functions) {
            let Some(name) = name else { continue };
            let key = (domain.unwrap_or_default(), name, overload.unwrap_or_default());
            let at = Path::ROOT;
            let at = at.index(kind, index);
            if let Some(before) = seen.insert(key, at.to_string()) {
                let message =
                    format_args!("{kind} `{name}` has the name of another symbol of the document");
                self.report_with(Rule::R22, &at, message, |found| {
                    found.related(before, "the other")
                });
            }
        }
    }

    fn operator(&mut self, operator: &Operator, at: &Path<'_>) {
        let name = operator.name.as_deref().unwrap_or_default();
        self.name("the name of an operator", Some(name), at);
        self.doc(operator.doc.as_deref(), at);
        if operator.signatures.is_empty() {
            self.report(Rule::R71, at, format_args!("operator `{name}` has no signature"));
        }
        for (index, signature) in operator.signatures.iter().enumerate() {
            let at = at.index("signature", index);
            self.signature(name, signature, &at);
            // Quadratic in the overloads of one operator, which are few; limited for hostile files.
            let before = operator.signatures[..index].iter().rev().take(MAX_COMPARED);
            if before.clone().any(|other| same_call(other, signature)) {
                self.report(
                    Rule::R75,
                    &at,
                    format_args!("operator `{name}` has this signature twice"),
                );
            }
        }
    }

    fn signature(&mut self, operator: &str, signature: &Signature, at: &Path<'_>) {
        self.doc(signature.doc.as_deref(), at);
        let Signature { inputs, outputs, attributes, .. } = signature;
        for (list, values) in [("input", inputs), ("output", outputs)] {
            for (index, value) in values.iter().enumerate() {
                let at = at.index(list, index);
                let name = value.name();
                self.name("the name of an operand", value.name.as_deref(), &at);
                self.value(value, &at);
                if value.ty.is_none() {
                    let message =
                        format_args!("{list} `{name}` of operator `{operator}` has no type");
                    self.report(Rule::R71, &at, message);
                } else if value.tensor_shape().is_none() && value.is_tensor() {
                    let message =
                        format_args!("{list} `{name}` of operator `{operator}` has no shape");
                    self.report(Rule::R72, &at, message);
                }
            }
        }
        for (index, attribute) in attributes.iter().enumerate() {
            let at = at.index("attribute", index);
            let name = attribute.name();
            self.name("the name of an attribute", attribute.name.as_deref(), &at);
            self.value(attribute, &at);
            if attribute.ty.is_none() {
                let message =
                    format_args!("attribute `{name}` of operator `{operator}` has no type");
                self.report(Rule::R73, &at, message);
            }
        }
        self.wildcards(inputs, outputs, at);
    }

    fn function(&mut self, function: &Function, at: &Path<'_>) {
        let name = function.name.as_deref().unwrap_or_default();
        self.name("the name of a function", Some(name), at);
        self.doc(function.doc.as_deref(), at);
        let Function { inputs, outputs, .. } = function;
        for (what, values) in [("input", inputs), ("output", outputs)] {
            if values.is_empty() {
                self.report(Rule::R30, at, format_args!("function `{name}` has no {what}"));
            }
            let mut seen = BTreeSet::new();
            for (index, value) in values.iter().enumerate() {
                let at = at.index(what, index);
                self.parameter(name, what, value, &at);
                if !seen.insert(value.name()) {
                    let parameter = value.name();
                    let message = format_args!("function `{name}` has two {what}s `{parameter}`");
                    self.report(Rule::R23, &at, message);
                }
            }
        }
        self.wildcards(inputs, outputs, at);
        self.function_attributes(function, at);
    }

    fn parameter(&mut self, function: &str, what: &str, value: &Value, at: &Path<'_>) {
        let name = value.name();
        self.name("the name of a parameter", value.name.as_deref(), at);
        self.value(value, at);
        if name.is_empty() {
            self.report(
                Rule::R31,
                at,
                format_args!("an {what} of function `{function}` has no name"),
            );
        } else if value.ty.is_none() {
            let message = format_args!("{what} `{name}` of function `{function}` has no type");
            self.report(Rule::R31, at, message);
        }
    }

    fn function_attributes(&mut self, function: &Function, at: &Path<'_>) {
        if function.attributes.is_empty() {
            return;
        }
        let mut used = BTreeSet::new();
        references(&function.nodes, &mut used);
        for attribute in &function.attributes {
            let name = attribute.name.as_deref().unwrap_or_default();
            let at = at.key("attribute", name);
            self.name("the name of an attribute", Some(name), &at);
            self.literal(attribute, &at);
            if !used.contains(name) {
                let message = format_args!("the function does not use its attribute `{name}`");
                self.report(Rule::R36, &at, message);
            }
        }
    }

    /// Variables of outputs that only another declaration determines.
    ///
    /// Only declarations of the same document count, even if it has been bundled with others.
    fn leaks(&mut self, function: &Function, elsewhere: &Scopes<'_>, at: &Path<'_>) {
        let home = function.domain.as_deref();
        let own: BTreeSet<&str> = function.inputs.iter().flat_map(names_of).collect();
        for (index, output) in function.outputs.iter().enumerate() {
            for name in names_of(output).filter(|name| !own.contains(name)) {
                let Some(scope) = elsewhere.get(&(home, name)) else { continue };
                let value = output.name();
                let message = format_args!(
                    "`{name}` of output `{value}` occurs in no input of its function, only in those of {scope}"
                );
                self.report(Rule::R93, &at.index("output", index), message);
            }
        }
    }
}

/// Maximum number of earlier signatures that one is compared with.
const MAX_COMPARED: usize = 256;

/// Whether two signatures match the same calls.
fn same_call(a: &Signature, b: &Signature) -> bool {
    let types = |values: &[Value]| -> Vec<_> {
        values.iter().map(|value| (value.ty.clone(), value.shape.clone())).collect()
    };
    types(&a.inputs) == types(&b.inputs)
        && types(&a.outputs) == types(&b.outputs)
        && a.attributes == b.attributes
}

/// Names of the function's attributes that nodes refer to.
fn references<'m>(nodes: &'m [Node], used: &mut BTreeSet<&'m str>) {
    for attribute in nodes.iter().flat_map(|node| &node.attributes) {
        if let AttributeValue::Reference { name, .. } = &attribute.value {
            used.insert(name);
        }
        attribute.value.graphs().iter().for_each(|graph| references(&graph.nodes, used));
    }
}

/// Declarations, for messages, by their document and a variable.
type Scopes<'m> = HashMap<(Option<&'m str>, &'m str), String>;

/// Variables that inputs of the graph and of functions determine, and where.
fn scopes<'m>(graph: Option<&'m Graph>, functions: &'m [Function]) -> Scopes<'m> {
    let mut scopes = HashMap::new();
    for value in graph.iter().flat_map(|graph| &graph.inputs) {
        names_of(value).for_each(|name| {
            scopes.entry((None, name)).or_insert_with(|| "the graph".to_owned());
        });
    }
    for function in functions {
        let home = function.domain.as_deref();
        for name in function.inputs.iter().flat_map(names_of) {
            let called = function.name.as_deref().unwrap_or_default();
            scopes.entry((home, name)).or_insert_with(|| format!("function `{called}`"));
        }
    }
    scopes
}

/// Variables and named wildcards of a value's shape.
fn names_of(value: &Value) -> impl Iterator<Item = &str> {
    let dims = value.tensor_shape().map(|shape| &shape.dims[..]).unwrap_or_default();
    dims.iter().filter_map(|dim| match dim {
        Dim::Variable(name) | Dim::Wildcard(Some(name)) => Some(name.as_str()),
        _ => None,
    })
}
