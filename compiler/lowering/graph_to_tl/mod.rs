//! Writes a graph of the tensor level as MLIR.
//!
//! The graph becomes `@main`, every nested graph a private function that takes its captures as
//! arguments. Calls of equal graphs by one name are calls of one function. Each node is an op, located
//! by the name of its origin. A constant is `tl.fill` if all elements are equal, `tl.constant` if it is
//! small, and otherwise an argument after the graph's inputs, with the attribute `tl.weight`: its number
//! in [`weights`]. The main function has the graph's strings in `tl.strings`. Inputs of [`Graph::preserved`] have the attribute `tl.preserved`. Symbols that are
//! elements of values are `tl.size` ops, and checks are `tl.check` ops; they come after the values they
//! need.

mod masks;
mod values;
mod weights;

pub use values::give_values;
pub use weights::weights;

use crate::attributes::{GRAPH, NAME, PRESERVED, STRINGS, WEIGHT};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    Attribute, Block, BlockLike, BlockRef, Context, Location, Module, OpSpec, OperationLike,
    OperationRef, Type, Value, attr, function, melior::ir::Identifier, rebind,
};
use irc_tensor::escape;
use irc_tl::{
    Check, Constant, Dim, Factor, Graph, Node, NodeKind, Op, Relation, SizeFunction, SymbolSource,
    ValueId,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weights::Weights;

/// The module of a graph; its main function has the given name, which is the prefix of the names of nested
/// functions. Ops are located by the names of their origins.
///
/// # Errors
/// Nodes that cannot be written, by name.
pub fn graph_to_tl<'c>(
    context: &'c Context,
    graph: &Graph,
    name: &str,
) -> Result<Module<'c>, String> {
    graph_to_tl_at(context, graph, name, &|_| None)
}

/// Like [`graph_to_tl`], with the locations that `locate` returns for [`Node::origin`]s.
///
/// # Errors
/// Nodes that cannot be written, by name.
pub fn graph_to_tl_at<'c>(
    context: &'c Context,
    graph: &Graph,
    name: &str,
    locate: &dyn Fn(&str) -> Option<Location<'c>>,
) -> Result<Module<'c>, String> {
    let module = Module::new(Location::unknown(context));
    let weights = Weights::of(graph);
    let used = weights.used(graph);
    let mut writer = Writer {
        context,
        body: module.body(),
        weights: &weights,
        name,
        locate,
        functions: 0,
        called: BTreeMap::new(),
    };
    writer.function(graph, name, &used, true)?;
    Ok(module)
}

struct Writer<'c, 'a, 'g> {
    context: &'c Context,
    body: BlockRef<'c, 'a>,
    weights: &'g Weights<'g>,
    name: &'g str,
    locate: &'g dyn Fn(&str) -> Option<Location<'c>>,
    functions: usize,
    /// The functions called by a name; equal graphs are one function.
    called: BTreeMap<Arc<str>, Vec<(Arc<Graph>, String)>>,
}

impl<'c: 'a, 'a> Writer<'c, 'a, '_> {
    /// A function of a graph, which takes the given weights after its inputs.
    fn function(
        &mut self,
        graph: &Graph,
        name: &str,
        used: &[usize],
        main: bool,
    ) -> Result<(), String> {
        let location = Location::unknown(self.context);
        let mut inputs = types(self.context, graph, graph.inputs.iter().map(|(_, value)| *value));
        for weight in used {
            inputs.push(tl::tensor_type_to_mlir(self.context, &self.weights.table[*weight].ty));
        }
        let outputs = types(self.context, graph, graph.outputs.iter().map(|(_, value)| *value));
        let arguments: Vec<_> = inputs.iter().map(|ty| (*ty, location)).collect();
        let block = Block::new(&arguments);
        let own = graph.inputs.iter().map(|(name, value)| {
            let preserved = graph.preserved.contains(value);
            self.named(name, preserved.then(|| PRESERVED.entry(self.context, ())))
        });
        let weights = used.iter().map(|weight| {
            let number = WEIGHT.entry(self.context, *weight as i64);
            self.named(&weight_name(*weight), Some(number))
        });
        let given: Vec<Attribute<'c>> = own.chain(weights).collect();
        let results: Vec<_> =
            graph.outputs.iter().map(|(name, _)| self.named(name, None)).collect();
        let spec = function(self.context, name, &inputs, &outputs, block, location)
            .attr("arg_attrs", attr::array(self.context, &given))
            .attr("res_attrs", attr::array(self.context, &results))
            .with(GRAPH, ());
        let strings: Vec<String> = graph.strings.iter().map(|text| escape(text)).collect();
        let private = (!main).then(|| attr::string(self.context, "private"));
        let spec = if strings.is_empty() { spec } else { spec.with(STRINGS, &strings) };
        let written = spec.maybe_attr("sym_visibility", private).append(&self.body);
        let block = irc_mlir::RegionLike::first_block(
            &OperationLike::region(&written, 0).map_err(|error| error.to_string())?,
        );
        let block = block.ok_or("expected a function with a body")?;
        self.body_of(graph, block, used)
    }

    /// The attributes of an argument or result: its name, and another one.
    fn named(&self, name: &str, other: Option<(Identifier<'c>, Attribute<'c>)>) -> Attribute<'c> {
        let name = NAME.entry(self.context, name);
        attr::dictionary(self.context, &[name].into_iter().chain(other).collect::<Vec<_>>())
    }

    fn body_of(
        &mut self,
        graph: &Graph,
        block: BlockRef<'c, 'a>,
        used: &[usize],
    ) -> Result<(), String> {
        let arguments: Vec<Value<'c, 'a>> = (0..block.argument_count())
            .filter_map(|index| Some(rebind(block.argument(index).ok()?.into())))
            .collect();
        let (inputs, weights) = arguments.split_at(graph.inputs.len());
        let mut values = BTreeMap::new();
        for ((_, value), argument) in graph.inputs.iter().zip(inputs) {
            values.insert(*value, *argument);
        }
        let weights = used.iter().copied().zip(weights.iter().copied()).collect();
        let pending = Pending::of(graph);
        let mut body = Body { writer: self, graph, block, values, weights, pending };
        let inputs: Vec<ValueId> = graph.inputs.iter().map(|(_, value)| *value).collect();
        body.settle(&inputs)?;
        for node in weights::live_nodes(graph) {
            body.node(node).map_err(|message| located(node, &message))?;
            body.settle(&node.results)?;
        }
        body.finish()
    }

    fn nested(&mut self, graph: &Graph, used: &[usize]) -> Result<String, String> {
        let name = format!("{}_{}", self.name, self.functions);
        self.functions += 1;
        self.function(graph, &name, used, false)?;
        Ok(name)
    }
}

fn weight_name(weight: usize) -> String {
    format!("irc.weight.{weight}")
}

fn located(node: &Node, message: &str) -> String {
    node.origin.as_ref().map_or_else(|| message.to_owned(), |origin| format!("{origin}: {message}"))
}

fn types<'c>(
    context: &'c Context,
    graph: &Graph,
    values: impl Iterator<Item = ValueId>,
) -> Vec<Type<'c>> {
    values.map(|value| tl::type_to_mlir(context, graph.ty(value))).collect()
}

/// Checks that wait for symbols that values define; other symbols are known from the start.
struct Pending<'g> {
    /// By value, the symbols that it defines, by position in the graph.
    given: BTreeMap<ValueId, Vec<usize>>,
    /// Symbols that are not known yet, and the checks that wait for each.
    waiting: BTreeMap<Arc<str>, Vec<usize>>,
    checks: Vec<Cow<'g, Check>>,
    /// Per check, the number of symbols it waits for.
    missing: Vec<usize>,
    /// Checks that are ready but not written yet, in order.
    ready: BTreeSet<usize>,
}

impl<'g> Pending<'g> {
    fn of(graph: &'g Graph) -> Self {
        let inputs: BTreeSet<ValueId> = graph.inputs.iter().map(|(_, input)| *input).collect();
        let mut given: BTreeMap<ValueId, Vec<usize>> = BTreeMap::new();
        let mut waiting: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
        for (index, symbol) in graph.symbols.iter().enumerate() {
            let value = match symbol.source {
                SymbolSource::Extent(value, _) if inputs.contains(&value) => continue,
                SymbolSource::Extent(value, _) | SymbolSource::Element(value, _) => value,
            };
            given.entry(value).or_default().push(index);
            waiting.insert(symbol.name.clone(), vec![]);
        }
        let checks: Vec<_> =
            graph.checks.iter().map(Cow::Borrowed).chain(divisions(graph)).collect();
        let (mut missing, mut ready) = (vec![0; checks.len()], BTreeSet::new());
        for (index, check) in checks.iter().enumerate() {
            let mut symbols = check.left.symbols();
            symbols.extend(check.right.symbols());
            for symbol in symbols {
                if let Some(checks) = waiting.get_mut(&symbol) {
                    checks.push(index);
                    missing[index] += 1;
                }
            }
            if missing[index] == 0 {
                ready.insert(index);
            }
        }
        Pending { given, waiting, checks, missing, ready }
    }

    /// Records that a symbol is known; returns false if it was known before.
    fn learn(&mut self, symbol: &Arc<str>) -> bool {
        let Some(checks) = self.waiting.remove(symbol) else { return false };
        for check in checks {
            self.missing[check] -= 1;
            if self.missing[check] == 0 {
                self.ready.insert(check);
            }
        }
        true
    }
}

/// Checks that the divisors in sizes are positive.
fn divisions(graph: &Graph) -> impl Iterator<Item = Cow<'_, Check>> {
    let (mut found, mut known) = (vec![], BTreeSet::new());
    // A graph that was read from MLIR already contains them.
    let stated: BTreeSet<&str> = graph.checks.iter().map(|check| check.message.as_str()).collect();
    let dims = graph.types.iter().flat_map(|ty| &ty.dims);
    for dim in dims.filter(|dim| dim.known().is_none()) {
        for (_, factors) in dim.terms() {
            for factor in factors {
                let Factor::Call(SizeFunction::FloorDiv | SizeFunction::Mod, parts) = factor else {
                    continue;
                };
                let positive = parts[1].known().is_some_and(|divisor| divisor > 0);
                if positive || !known.insert((dim, &parts[1])) {
                    continue;
                }
                let (left, right) = (Dim::Known(1), parts[1].clone());
                let message = format!("the size {dim} cannot be computed");
                if stated.contains(message.as_str()) {
                    continue;
                }
                found.push(Check { left, right, relation: Relation::AtMost, message });
            }
        }
    }
    found.into_iter().map(Cow::Owned)
}

struct Body<'w, 'c, 'a, 'g, 'b> {
    writer: &'w mut Writer<'c, 'a, 'b>,
    graph: &'g Graph,
    block: BlockRef<'c, 'a>,
    values: BTreeMap<ValueId, Value<'c, 'a>>,
    weights: BTreeMap<usize, Value<'c, 'a>>,
    pending: Pending<'g>,
}

impl<'c: 'a, 'a> Body<'_, 'c, 'a, '_, '_> {
    fn node(&mut self, node: &Node) -> Result<(), String> {
        let context = self.writer.context;
        let unknown = Location::unknown(context);
        let location = node.origin.as_deref().map_or(unknown, |origin| {
            let named = || Location::name(context, origin, unknown);
            (self.writer.locate)(origin).unwrap_or_else(named)
        });
        let operands = self.operands(&node.operands)?;
        match &node.kind {
            NodeKind::Constant(constant) => self.constant(node, constant, location),
            NodeKind::Op(op) => {
                let built = tl::build(context, op, &operands, location)?;
                let built = self.block.append_operation(built);
                self.define(node, built)
            }
            NodeKind::Algorithm(algorithm) => {
                let built = tl::build_algorithm(context, algorithm, &operands, location)?;
                let built = self.block.append_operation(built);
                self.define(node, built)
            }
            NodeKind::Host(function) => {
                let arguments: Vec<_> =
                    function.arguments().iter().map(|text| attr::string(context, text)).collect();
                let arguments = (!arguments.is_empty()).then(|| attr::array(context, &arguments));
                let spec = OpSpec::new(context, tl::HOST, location)
                    .operands(&operands)
                    .attr("function", attr::string(context, function.name()))
                    .maybe_attr("arguments", arguments);
                self.append(node, spec)
            }
            NodeKind::If { then, otherwise } => {
                self.branch(node, [then, otherwise], operands, location)
            }
            NodeKind::After => {
                let spec = OpSpec::new(context, tl::AFTER, location).operands(&operands);
                self.append(node, spec)
            }
            NodeKind::Call { name, body } => self.call(node, name, body, operands, location),
            NodeKind::Loop { body, carried } => {
                let mut operands = operands;
                let results = node.results.len();
                fits(body, operands.len().saturating_sub(1), results + 1)?;
                let used = self.writer.weights.used(body);
                operands.extend(used.iter().map(|weight| self.weights[weight]));
                let body = self.writer.nested(body, &used)?;
                let spec = OpSpec::new(context, tl::LOOP, location)
                    .operands(&operands)
                    .attr("body", attr::symbol(context, &body))
                    .attr("carried", attr::i64(context, *carried as i64));
                self.append(node, spec)
            }
        }
    }

    fn branch(
        &mut self,
        node: &Node,
        graphs: [&Graph; 2],
        mut operands: Vec<Value<'c, 'a>>,
        location: Location<'c>,
    ) -> Result<(), String> {
        let context = self.writer.context;
        for graph in graphs {
            fits(graph, operands.len().saturating_sub(1), node.results.len())?;
        }
        // Both functions take the same arguments: the weights of either.
        let used = graphs.map(|graph| self.writer.weights.used(graph));
        let used: BTreeSet<usize> = used.iter().flat_map(|used| used.iter().copied()).collect();
        let used: Vec<usize> = used.into_iter().collect();
        operands.extend(used.iter().map(|weight| self.weights[weight]));
        let [then, otherwise] = graphs.map(|graph| self.writer.nested(graph, &used));
        let spec = OpSpec::new(context, tl::IF, location)
            .operands(&operands)
            .attr("then", attr::symbol(context, &then?))
            .attr("otherwise", attr::symbol(context, &otherwise?));
        self.append(node, spec)
    }

    /// A call of a function, which is written at its first call.
    fn call(
        &mut self,
        node: &Node,
        name: &Arc<str>,
        body: &Arc<Graph>,
        mut operands: Vec<Value<'c, 'a>>,
        location: Location<'c>,
    ) -> Result<(), String> {
        fits(body, operands.len(), node.results.len())?;
        let used = self.writer.weights.used(body);
        operands.extend(used.iter().map(|weight| self.weights[weight]));
        let known = self.writer.called.get(name).into_iter().flatten();
        let callee = match known.into_iter().find(|(graph, _)| graph == body) {
            Some((_, callee)) => callee.clone(),
            None => {
                let callee = self.writer.nested(body, &used)?;
                let called = self.writer.called.entry(name.clone()).or_default();
                called.push((body.clone(), callee.clone()));
                callee
            }
        };
        let context = self.writer.context;
        let spec = OpSpec::new(context, tl::CALL, location)
            .operands(&operands)
            .attr("callee", attr::symbol(context, &callee));
        self.append(node, spec)
    }

    fn constant(
        &mut self,
        node: &Node,
        constant: &Constant,
        location: Location<'c>,
    ) -> Result<(), String> {
        let context = self.writer.context;
        if let Some(mask) = masks::causal(constant) {
            let built = self.block.append_operation(tl::build(context, &mask, &[], location)?);
            return self.define(node, built);
        }
        if let Some(weight) = self.writer.weights.number(constant) {
            self.values.insert(node.results[0], self.weights[&weight]);
            return Ok(());
        }
        if let Some(value) = weights::splat(constant) {
            let fill = Op::fill(value, constant.ty.shape.clone(), constant.ty.dtype);
            let built = self.block.append_operation(tl::build(context, &fill, &[], location)?);
            return self.define(node, built);
        }
        let spec = OpSpec::new(context, tl::CONSTANT, location)
            .attr("bytes", attr::bytes(context, &constant.bytes));
        self.append(node, spec)
    }

    fn append(&mut self, node: &Node, spec: OpSpec<'c>) -> Result<(), String> {
        let results = types(self.writer.context, self.graph, node.results.iter().copied());
        let built = spec.results(&results).append(&self.block);
        self.define(node, built)
    }

    fn define(&mut self, node: &Node, built: OperationRef<'c, 'a>) -> Result<(), String> {
        for (value, result) in node.results.iter().zip(built.results()) {
            self.values.insert(*value, rebind(result.into()));
        }
        Ok(())
    }

    fn operands(&self, values: &[ValueId]) -> Result<Vec<Value<'c, 'a>>, String> {
        let find = |value: &ValueId| {
            let unknown = || format!("expected value {} to be computed before its use", value.0);
            self.values.get(value).copied().ok_or_else(unknown)
        };
        values.iter().map(find).collect()
    }

    /// Defines the symbols of values that have been computed, and writes the checks that are now ready.
    fn settle(&mut self, values: &[ValueId]) -> Result<(), String> {
        let context = self.writer.context;
        let location = Location::unknown(context);
        let mut given: Vec<usize> =
            values.iter().filter_map(|value| self.pending.given.remove(value)).flatten().collect();
        given.sort_unstable();
        for symbol in given.into_iter().map(|index| &self.graph.symbols[index]) {
            if !self.pending.learn(&symbol.name) {
                continue;
            }
            if let SymbolSource::Element(from, index) = symbol.source {
                OpSpec::new(context, tl::SIZE, location)
                    .operands(&self.operands(&[from])?)
                    .attr("index", attr::i64(context, index as i64))
                    .attr("symbol", attr::string(context, &symbol.name))
                    .append(&self.block);
            }
        }
        for check in std::mem::take(&mut self.pending.ready) {
            let check = &self.pending.checks[check];
            let text = |text: &str| attr::string(context, text);
            OpSpec::new(context, tl::CHECK, location)
                .attr("left", text(&check.left.to_string()))
                .attr("relation", text(relation_name(check.relation)))
                .attr("right", text(&check.right.to_string()))
                .attr("message", text(&check.message))
                .append(&self.block);
        }
        Ok(())
    }

    fn finish(self) -> Result<(), String> {
        let outputs: Vec<ValueId> = self.graph.outputs.iter().map(|(_, value)| *value).collect();
        let returned = self.operands(&outputs)?;
        let location = Location::unknown(self.writer.context);
        OpSpec::new(self.writer.context, func::RETURN, location)
            .operands(&returned)
            .append(&self.block);
        Ok(())
    }
}

/// Whether the numbers of a graph's inputs and outputs match those of its node.
fn fits(graph: &Graph, inputs: usize, outputs: usize) -> Result<(), String> {
    let found = (graph.inputs.len(), graph.outputs.len());
    if found == (inputs, outputs) {
        return Ok(());
    }
    let (given, results) = found;
    Err(format!(
        "expected a graph of {inputs} inputs and {outputs} outputs, found {given} and {results}"
    ))
}

const fn relation_name(relation: Relation) -> &'static str {
    match relation {
        Relation::Equal => "equal",
        Relation::EqualOrOne => "equal_or_one",
        Relation::AtMost => "at_most",
    }
}
