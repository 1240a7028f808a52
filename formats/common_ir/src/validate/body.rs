//! Graphs and bodies of functions: names, edges, order, outputs.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::typing::type_of;
use super::{Checker, Rule};
use crate::flow::{cycle_through, cycles};
use crate::model::{
    Attribute, AttributeValue, Function, Graph, Node, Path, SparseTensor, Tensor, Type, Value,
};
use crate::order::{inner_uses, topological_order};
use crate::shapes::{ShapePair, Unifier};

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Input,
    Constant,
    Node(u32),
}

/// A list of nodes and the surrounding values.
#[derive(Clone, Copy)]
struct Body<'m> {
    nodes: &'m [Node],
    inputs: &'m [Value],
    outputs: &'m [Value],
    initializers: &'m [Tensor],
    sparse: &'m [SparseTensor],
    is_function: bool,
}

impl<'m> Body<'m> {
    fn of(graph: &'m Graph) -> Self {
        Self {
            nodes: &graph.nodes,
            inputs: &graph.inputs,
            outputs: &graph.outputs,
            initializers: &graph.initializers,
            sparse: &graph.sparse_initializers,
            is_function: false,
        }
    }

    fn of_function(function: &'m Function) -> Self {
        Self {
            nodes: &function.nodes,
            inputs: &function.inputs,
            outputs: &function.outputs,
            initializers: &[],
            sparse: &[],
            is_function: true,
        }
    }
}

/// Values of a body, as far as it has been checked.
pub(super) struct Scope<'m> {
    origins: HashMap<&'m str, Origin>,
    types: HashMap<&'m str, Rc<Type>>,
    /// The body that encloses a graph in an attribute, and the node with the attribute.
    outer: Option<(&'m Scope<'m>, u32)>,
}

impl<'m> Scope<'m> {
    /// Sets the type of a value.
    pub(super) fn set_type(&mut self, name: &'m str, ty: Rc<Type>) {
        self.types.insert(name, ty);
    }

    /// Type of a value, if it is known.
    pub(super) fn ty(&self, name: &str) -> Option<Rc<Type>> {
        match self.types.get(name) {
            Some(ty) => Some(Rc::clone(ty)),
            None if self.origins.contains_key(name) => None,
            None => self.outer.and_then(|(outer, _)| outer.ty(name)),
        }
    }
}

/// Edges of a body by the numbers of its nodes.
#[derive(Default)]
struct Edges<'m> {
    /// From a producer to a consumer.
    all: Vec<(u32, u32)>,
    /// Uses of results of later nodes: consumer, producer, name.
    early: Vec<(u32, u32, &'m str)>,
    /// Control inputs that name a later node, or the node itself.
    early_control: Vec<(u32, u32, usize)>,
}

impl Checker<'_> {
    pub(super) fn bodies(&mut self) {
        let module = self.module;
        if let Some(graph) = &module.graph {
            self.interface(graph);
            self.body(Body::of(graph), &Path::GRAPH, None);
            self.defaults(graph);
        }
        for (index, function) in module.functions.iter().enumerate() {
            self.body = function.domain.as_deref();
            self.body(Body::of_function(function), &Path::ROOT.index("function", index), None);
            self.body = None;
        }
    }

    /// Each input and output of the graph has a name and a type.
    fn interface(&mut self, graph: &Graph) {
        for (what, values) in [("input", &graph.inputs), ("output", &graph.outputs)] {
            for (index, value) in values.iter().enumerate() {
                let at = Path::GRAPH.index(what, index);
                if value.name().is_empty() {
                    self.report(
                        Rule::R13,
                        &at,
                        format_args!("{what} {index} of the graph has no name"),
                    );
                } else if value.ty.is_none() {
                    let name = value.name();
                    self.report(
                        Rule::R13,
                        &at,
                        format_args!("{what} `{name}` of the graph has no type"),
                    );
                }
                self.value(value, &at);
            }
        }
    }

    /// Defaults of inputs are known arguments: they must match the signature together.
    fn defaults(&mut self, graph: &Graph) {
        let mut tensors: HashMap<&str, (usize, &Tensor)> = HashMap::new();
        for (index, tensor) in graph.initializers.iter().enumerate() {
            tensors.entry(tensor.name.as_deref().unwrap_or_default()).or_insert((index, tensor));
        }
        let found = |input: &Value| tensors.get(input.name()).copied();
        let shapes: Vec<_> = graph
            .inputs
            .iter()
            .filter_map(|input| {
                let (index, tensor) = found(input)?;
                Some((input, index, crate::model::Shape::new(tensor.dims.iter().copied())))
            })
            .collect();
        let mut unifier = Unifier::new();
        for (input, index, actual) in &shapes {
            let at = Path::GRAPH.index("initializer", *index);
            let element = graph.initializers[*index].element;
            let declared = input.ty.as_ref().and_then(Type::as_tensor);
            if let Some(declared) = declared.filter(|declared| declared.element != element) {
                let (name, expected) = (input.name(), declared.element);
                let message =
                    format_args!("the default of `{name}` is {element}, expected {expected}");
                self.report(Rule::R102, &at, message);
            }
            let Some(declared) = input.tensor_shape() else { continue };
            let site = ShapePair { parameter: input.name(), value: input.name(), declared, actual };
            if let Err(conflict) = unifier.unify(site) {
                self.report(
                    Rule::R102,
                    &at,
                    format_args!("defaults do not fit the inputs: {conflict}"),
                );
            }
        }
    }

    fn body<'s>(&mut self, body: Body<'s>, at: &Path<'_>, outer: Option<(&'s Scope<'s>, u32)>) {
        let mut scope = Scope { origins: HashMap::new(), types: HashMap::new(), outer };
        self.define_given(&body, &mut scope, at);
        self.define_computed(&body, &mut scope, at);
        let numbers = self.node_names(&body, &scope, at);
        let mut edges = Edges::default();
        // Types are known in this order.
        for index in topological_order(body.nodes) {
            let node = &body.nodes[index];
            let at = at.index("node", index);
            self.node(node, &at);
            self.data_edges(&body, index, &scope, &mut edges, &at);
            self.control_edges(node, index, &scope, &numbers, &mut edges, &at);
            for attribute in &node.attributes {
                self.inner(attribute, index, &scope, &at);
            }
            self.call(node, &mut scope, &at);
        }
        if body.nodes.iter().any(|node| !node.control_inputs.is_empty()) {
            self.report(Rule::R51, at, "control inputs add dependencies between nodes");
        }
        self.order(&body, &edges, at);
        self.outputs(&body, &scope, at);
    }

    /// Inputs and constants.
    fn define_given<'s>(&mut self, body: &Body<'s>, scope: &mut Scope<'s>, at: &Path<'_>) {
        for (index, input) in body.inputs.iter().enumerate() {
            let Some(name) = input.name.as_deref() else { continue };
            if let Some(ty) = type_of(input) {
                scope.types.insert(name, Rc::new(ty));
            }
            let is_new = scope.origins.insert(name, Origin::Input).is_none();
            if body.is_function {
                continue; // Names of parameters are checked where they are declared.
            }
            let at = at.index("input", index);
            self.name("the name of an input", Some(name), &at);
            if !is_new {
                self.report(Rule::R21, &at, format_args!("two inputs are named `{name}`"));
            }
        }
        for (index, tensor) in body.initializers.iter().enumerate() {
            let at = at.index("initializer", index);
            self.tensor(tensor, &at);
            let Some(name) = tensor.name.as_deref() else { continue };
            self.constant(name, scope, &at);
            let shape = tensor.dims.iter().copied();
            scope.types.entry(name).or_insert_with(|| Rc::new(Type::tensor(tensor.element, shape)));
        }
        for (index, tensor) in body.sparse.iter().enumerate() {
            let at = at.index("sparse_initializer", index);
            self.sparse(tensor, &at);
            if let Some(name) = tensor.values.as_ref().and_then(|values| values.name.as_deref()) {
                self.constant(name, scope, &at);
            }
        }
    }

    fn constant<'s>(&mut self, name: &'s str, scope: &mut Scope<'s>, at: &Path<'_>) {
        match scope.origins.get(name) {
            // The default of the input, whose name was checked there.
            Some(Origin::Input) => {}
            Some(_) => {
                self.report(Rule::R21, at, format_args!("two initializers are named `{name}`"));
            }
            None => {
                self.name("the name of an initializer", Some(name), at);
                scope.origins.insert(name, Origin::Constant);
            }
        }
    }

    /// Outputs of nodes.
    fn define_computed<'s>(&mut self, body: &Body<'s>, scope: &mut Scope<'s>, at: &Path<'_>) {
        for (index, node) in body.nodes.iter().enumerate() {
            for (output, name) in node.outputs.iter().enumerate() {
                if name.is_empty() && self.is_onnx() {
                    continue;
                }
                let node_at = at.index("node", index);
                self.name("the name of a value", Some(name), &node_at.index("output", output));
                match scope.origins.get(name.as_str()).copied() {
                    Some(before) => self.twice(body, name, (index, output), before, at),
                    None => {
                        scope.origins.insert(name, Origin::Node(index as u32));
                    }
                }
            }
        }
    }

    /// Reports an output that has the name of another value.
    fn twice(
        &mut self,
        body: &Body<'_>,
        name: &str,
        (index, output): (usize, usize),
        before: Origin,
        at: &Path<'_>,
    ) {
        let (rule, other) = match before {
            Origin::Node(other) => {
                let other = other as usize;
                (Rule::R41, body.nodes[other].describe(&at.index("node", other)))
            }
            Origin::Input if body.is_function => (Rule::R23, "a parameter".to_owned()),
            Origin::Input => (Rule::R21, "an input".to_owned()),
            Origin::Constant => (Rule::R21, "an initializer".to_owned()),
        };
        let at = at.index("node", index);
        let described = body.nodes[index].describe(&at);
        let message = format_args!("output `{name}` of {described} has the name of one of {other}");
        self.report(rule, &at.index("output", output), message);
    }

    /// Numbers of the nodes by their names.
    fn node_names<'s>(
        &mut self,
        body: &Body<'s>,
        scope: &Scope<'s>,
        at: &Path<'_>,
    ) -> HashMap<&'s str, u32> {
        let mut numbers = HashMap::new();
        for (index, node) in body.nodes.iter().enumerate() {
            let Some(name) = node.name.as_deref().filter(|name| !name.is_empty()) else { continue };
            let at = at.index("node", index);
            self.name("the name of a node", Some(name), &at);
            if numbers.contains_key(name) {
                self.report(Rule::R21, &at, format_args!("two nodes are named `{name}`"));
                continue;
            }
            numbers.insert(name, index as u32);
            if scope.origins.contains_key(name) && !self.is_onnx() {
                let message = format_args!("a node and a value are both named `{name}`");
                self.warn(Rule::R21, &at, message);
            }
        }
        numbers
    }

    /// Checks one node by itself.
    fn node(&mut self, node: &Node, at: &Path<'_>) {
        self.doc(node.doc.as_deref(), at);
        if node.outputs.iter().all(String::is_empty) && node.outputs.len() < 2 {
            self.report(Rule::R02, at, format_args!("{} has no output", node.describe(at)));
        }
        let mut seen = BTreeSet::new();
        for attribute in &node.attributes {
            let name = attribute.name.as_deref().unwrap_or_default();
            let key = at.key("attribute", name);
            self.name("the name of an attribute", Some(name), &key);
            if !seen.insert(name) {
                let message = format_args!("{} has two attributes `{name}`", node.describe(at));
                self.report(Rule::R24, &key, message);
            }
            if attribute.value == AttributeValue::Nothing {
                let message =
                    format_args!("attribute `{name}` of {} has no value", node.describe(at));
                self.report(Rule::R52, &key, message);
            }
            self.literal(attribute, at);
        }
        self.map_literal(node, at);
        for (list, values) in
            [("input_type", &node.input_types), ("output_type", &node.output_types)]
        {
            for (index, value) in values.iter().enumerate() {
                self.value(value, &at.index(list, index));
            }
        }
    }

    /// Edges of the values that a node uses.
    fn data_edges<'s>(
        &mut self,
        body: &Body<'s>,
        index: usize,
        scope: &Scope<'s>,
        edges: &mut Edges<'s>,
        at: &Path<'_>,
    ) {
        let node = &body.nodes[index];
        for (input, name) in node.inputs.iter().enumerate() {
            if name.is_empty() && self.is_onnx() {
                continue;
            }
            match scope.origins.get(name.as_str()) {
                Some(Origin::Node(producer)) => edges.data(*producer, index as u32, name),
                Some(_) => {}
                None => self.outside(body, node, (input, name), scope, at),
            }
        }
        for name in inner_uses(node).filter(|_| self.is_onnx()) {
            if let Some(Origin::Node(producer)) = scope.origins.get(name) {
                edges.data(*producer, index as u32, name);
            }
        }
    }

    /// A name that the body itself does not define.
    fn outside(
        &mut self,
        body: &Body<'_>,
        node: &Node,
        (input, name): (usize, &str),
        scope: &Scope<'_>,
        at: &Path<'_>,
    ) {
        let mut round = scope.outer;
        while let Some((outer, user)) = round {
            if let Some(origin) = outer.origins.get(name) {
                // In ONNX, this is an edge of the surrounding graph.
                let is_late = matches!(origin, Origin::Node(producer) if *producer >= user);
                if is_late && !self.is_onnx() {
                    let message = format_args!(
                        "`{name}` is computed later, by a node of the graph round this one"
                    );
                    self.report(Rule::R48, &at.index("input", input), message);
                }
                return;
            }
            round = outer.outer;
        }
        let described = node.describe(at);
        let at = at.index("input", input);
        if !body.is_function {
            let message = format_args!("input `{name}` of {described} is undefined");
            return self.report(Rule::R40, &at, message);
        }
        let is_graphs = self.may_hint()
            && self.module.graph.as_ref().is_some_and(|graph| graph.has_input_or_initializer(name));
        let hint = if is_graphs { ": it is one of the graph" } else { "" };
        let message = format_args!(
            "input `{name}` of {described} is neither a parameter nor the output of a node{hint}"
        );
        self.report(Rule::R32, &at, message);
    }

    /// Edges of control.
    fn control_edges<'s>(
        &mut self,
        node: &'s Node,
        index: usize,
        scope: &Scope<'s>,
        numbers: &HashMap<&'s str, u32>,
        edges: &mut Edges<'s>,
        at: &Path<'_>,
    ) {
        if node.control_inputs.is_empty() {
            return;
        }
        let mut seen = BTreeSet::new();
        let producers: BTreeSet<u32> = node
            .inputs
            .iter()
            .filter_map(|input| match scope.origins.get(input.as_str()) {
                Some(Origin::Node(producer)) => Some(*producer),
                _ => None,
            })
            .collect();
        for (place, name) in node.control_inputs.iter().enumerate() {
            let at = at.index("control_input", place);
            let Some(&before) = numbers.get(name.as_str()) else {
                self.report(
                    Rule::R49,
                    &at,
                    format_args!("control input `{name}` refers to no node"),
                );
                continue;
            };
            if before as usize == index {
                let message = format_args!("control input `{name}` refers to its own node");
                self.report(Rule::R49, &at, message);
                continue;
            }
            if !seen.insert(name) {
                self.report(Rule::R50, &at, format_args!("control input `{name}` occurs twice"));
            } else if producers.contains(&before) {
                let message =
                    format_args!("control input `{name}` is redundant: its output is an input");
                self.report(Rule::R50, &at, message);
            }
            edges.all.push((before, index as u32));
            if before as usize > index {
                edges.early_control.push((index as u32, before, place));
            }
        }
    }

    /// Graphs in attributes.
    fn inner<'s>(
        &mut self,
        attribute: &'s Attribute,
        index: usize,
        scope: &'s Scope<'s>,
        at: &Path<'_>,
    ) {
        let at = at.key("attribute", attribute.name.as_deref().unwrap_or_default());
        let is_one = matches!(attribute.value, AttributeValue::Graph(_));
        for (place, graph) in attribute.value.graphs().iter().enumerate() {
            let at = if is_one { at.field("g") } else { at.index("graphs", place) };
            for (what, values) in [("input", &graph.inputs), ("output", &graph.outputs)] {
                for (index, value) in values.iter().enumerate() {
                    self.value(value, &at.index(what, index));
                }
            }
            self.body(Body::of(graph), &at, Some((scope, index as u32)));
        }
    }

    /// Reports cycles, and uses before definitions.
    fn order(&mut self, body: &Body<'_>, edges: &Edges<'_>, at: &Path<'_>) {
        if edges.early.is_empty() && edges.early_control.is_empty() {
            return;
        }
        let component = cycles(body.nodes.len(), &edges.all);
        let describe =
            |node: u32| body.nodes[node as usize].describe(&at.index("node", node as usize));
        let together = |a: u32, b: u32| {
            component[a as usize].filter(|ring| component[b as usize] == Some(*ring))
        };
        let mut rings = BTreeSet::new();
        let late = if body.is_function { Rule::R33 } else { Rule::R48 };
        let mut late_uses = vec![];
        for (user, producer, name) in &edges.early {
            match together(*user, *producer) {
                Some(ring) => _ = rings.insert(ring),
                None => late_uses.push((*user, *producer, *name)),
            }
        }
        late_uses.sort_unstable();
        late_uses.dedup();
        // Nodes of ONNX are sorted, so one warning is enough.
        let shown = if self.is_onnx() { 1 } else { usize::MAX };
        for (user, producer, name) in late_uses.iter().take(shown) {
            let more = match late_uses.len() - 1 {
                more @ 1.. if self.is_onnx() => format!("; there are {more} more such uses"),
                _ => String::new(),
            };
            let message = format_args!(
                "{} uses `{name}`, which {} computes later{more}",
                describe(*user),
                describe(*producer)
            );
            self.report(late, &at.index("node", *user as usize), message);
        }
        for (user, before, place) in &edges.early_control {
            if let Some(ring) = together(*user, *before) {
                rings.insert(ring);
                continue;
            }
            let message = format_args!(
                "a control input of {} refers to the later {}",
                describe(*user),
                describe(*before)
            );
            let at = at.index("node", *user as usize);
            self.report(Rule::R49, &at.index("control_input", *place), message);
        }
        for (place, ring) in rings.into_iter().enumerate() {
            // Each search takes time linear in all edges.
            let nodes = match place < MAX_RINGS {
                true => cycle_through(ring, &edges.all, &component),
                false => vec![ring],
            };
            let mut nodes: Vec<String> = nodes.into_iter().map(describe).collect();
            nodes.truncate(MAX_SHOWN);
            nodes.push(describe(ring));
            let message = format_args!("the nodes form a cycle: {}", nodes.join(" -> "));
            self.report(Rule::R01, &at.index("node", ring as usize), message);
        }
    }

    /// Outputs of the graph or function.
    fn outputs(&mut self, body: &Body<'_>, scope: &Scope<'_>, at: &Path<'_>) {
        for (index, output) in body.outputs.iter().enumerate() {
            let at = at.index("output", index);
            let name = output.name();
            if name.is_empty() {
                continue; // Reported as one without a name.
            }
            let origin = scope.origins.get(name);
            let is_outer = scope.outer.is_some_and(|(outer, _)| outer.knows(name));
            let found = match origin {
                Some(Origin::Node(_)) => None,
                Some(_) if self.is_onnx() => None,
                None if self.is_onnx() && is_outer => None,
                Some(Origin::Input) => Some("it is an input"),
                Some(Origin::Constant) => Some("it is an initializer"),
                None => Some("it is undefined"),
            };
            let rule = if body.is_function { Rule::R34 } else { Rule::R42 };
            if let Some(found) = found {
                let message = format_args!("output `{name}` is not an output of a node: {found}");
                self.report(rule, &at, message);
            }
            self.computed(output, scope, body.is_function, &at);
        }
    }
}

/// Cycles whose nodes are named.
const MAX_RINGS: usize = 16;

/// Nodes of a cycle that are named.
const MAX_SHOWN: usize = 8;

impl Graph {
    /// Whether an input or initializer has that name.
    fn has_input_or_initializer(&self, name: &str) -> bool {
        self.inputs.iter().any(|input| input.name() == name)
            || self.initializers.iter().any(|tensor| tensor.name.as_deref() == Some(name))
    }
}

impl<'m> Edges<'m> {
    fn data(&mut self, producer: u32, user: u32, name: &'m str) {
        self.all.push((producer, user));
        if producer >= user {
            self.early.push((user, producer, name));
        }
    }
}

impl Scope<'_> {
    /// Whether a name is defined here or in an enclosing scope.
    fn knows(&self, name: &str) -> bool {
        self.origins.contains_key(name) || self.outer.is_some_and(|(outer, _)| outer.knows(name))
    }
}
