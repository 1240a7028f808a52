//! Functions of a module, and their calls.

use crate::operator::canonical;
use irc_common_format::model::{Attribute, AttributeValue, Function, Graph, Module, Node, Schema};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// How calls of a module's functions are imported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Calls {
    /// The function's body is inlined at each call.
    #[default]
    Inlined,
    /// Each function becomes one of the program, if possible: calls whose result depends on the elements
    /// or the structure of an argument are inlined.
    Outlined,
}

/// Maximum number of nodes of all calls: the number may grow exponentially with the size of a file.
pub(crate) const MAX_NODES: usize = 250_000;

/// The functions of a module.
pub(crate) struct Functions<'m> {
    by_name: BTreeMap<(String, String, String), &'m Function>,
    all: &'m [Function],
    pub(crate) schema: Schema,
    /// Whether calls are outlined if possible.
    outline: bool,
    /// Functions with a call that could not be outlined: they are not tried again, as bodies may have
    /// calls in turn.
    inlined: RefCell<BTreeSet<usize>>,
    /// The number of nodes of all calls so far.
    nodes: Cell<usize>,
    /// Whether control inputs order nodes.
    pub(crate) control: bool,
}

impl<'m> Functions<'m> {
    pub(crate) fn of(module: &'m Module, calls: Calls, control: bool) -> Self {
        let key = |function: &Function| {
            // Within its file, a function of Common IR is called by its bare name.
            let domain = function.domain.clone().unwrap_or_default();
            let name = function.name.clone().unwrap_or_default();
            (canonical(&domain).to_owned(), name, function.overload.clone().unwrap_or_default())
        };
        Self {
            by_name: module.functions.iter().map(|function| (key(function), function)).collect(),
            all: &module.functions,
            schema: module.schema,
            outline: calls == Calls::Outlined,
            inlined: RefCell::default(),
            nodes: Cell::default(),
            control,
        }
    }

    /// Whether calls of a function, given by index, are to be outlined.
    pub(crate) fn is_outlined(&self, place: usize) -> bool {
        self.outline && !self.inlined.borrow().contains(&place)
    }

    /// Inlines further calls of a function.
    pub(crate) fn inline(&self, place: usize) {
        self.inlined.borrow_mut().insert(place);
    }

    /// Counts the nodes of a call; whether those of all calls are at most [`MAX_NODES`].
    pub(crate) fn enter(&self, function: &Function) -> bool {
        self.nodes.set(self.nodes.get().saturating_add(function.nodes.len()));
        self.nodes.get() <= MAX_NODES
    }

    /// The index of a function in its module.
    pub(crate) fn place(&self, function: &Function) -> usize {
        let distance = std::ptr::from_ref(function).addr() - self.all.as_ptr().addr();
        distance / size_of::<Function>()
    }

    /// The function that a node calls. A body may call functions of its own domain without naming it.
    pub(crate) fn called(&self, node: &Node, home: Option<&str>) -> Option<&'m Function> {
        let overload = node.overload.clone().unwrap_or_default();
        let of = |domain: &str| {
            let key = (canonical(domain).to_owned(), node.op.clone(), overload.clone());
            self.by_name.get(&key).copied()
        };
        let domain = node.domain.as_deref().unwrap_or_default();
        let home = home.filter(|_| domain.is_empty() && self.schema == Schema::CommonIr);
        home.and_then(of).or_else(|| of(domain))
    }
}

/// The body of a function with the attributes of a call.
pub(crate) fn body(function: &Function, call: &Node) -> Vec<Node> {
    let given = |name: &str| -> Option<AttributeValue> {
        let attributes = call.attributes.iter().chain(&function.attributes);
        let mut found = attributes.filter(|attribute| attribute.name.as_deref() == Some(name));
        found.next().map(|attribute| attribute.value.clone())
    };
    let mut nodes = function.nodes.clone();
    nodes.iter_mut().for_each(|node| fill(node, &given));
    nodes
}

fn fill(node: &mut Node, given: &dyn Fn(&str) -> Option<AttributeValue>) {
    let mut filled: Vec<Attribute> = vec![];
    for mut attribute in std::mem::take(&mut node.attributes) {
        if let AttributeValue::Reference { name, .. } = &attribute.value {
            match given(name) {
                Some(AttributeValue::Nothing) | None => continue,
                Some(value) => attribute.value = value,
            }
        }
        attribute.value.graphs_mut().iter_mut().for_each(|graph| fill_graph(graph, given));
        filled.push(attribute);
    }
    node.attributes = filled;
}

fn fill_graph(graph: &mut Graph, given: &dyn Fn(&str) -> Option<AttributeValue>) {
    graph.nodes.iter_mut().for_each(|node| fill(node, given));
}
