//! Writes groups back into the function.
use super::{
    cost::is_fused,
    graph::{Function, Graph, NodeId, ValueId},
    plan::{Kernel, Plan, kernel_of, loads},
    segment::{GraphSegment, Source},
};
use irc_dialects::tl;
use irc_mlir::{
    BlockLike, BlockRef, Context, Erase, OpSpec, OperationLike, RegionLike, Type, Value, ValueLike,
    attr, block_with, rebind, set_operand,
};
use std::collections::{BTreeMap, BTreeSet};

/// A segment with the kernels chosen for it.
#[derive(Clone, Debug)]
pub struct Chosen<'p> {
    /// The segment and its place in the graph.
    pub placed: &'p GraphSegment,
    /// Its kernels.
    pub plan: Plan,
}

/// A unit of the rewritten body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    /// A kernel of a segment, by index of segment and kernel.
    Group(usize, usize),
    /// An op outside of groups.
    Op(NodeId),
}

/// Replaces every computing op by its groups. A group is inserted at the last op that it contains, if its
/// operands allow.
///
/// # Errors
/// If an op cannot be rebuilt.
pub fn emit<'c: 'a, 'a>(
    context: &'c Context,
    function: &Function<'c, 'a>,
    mut chosen: Vec<Chosen<'_>>,
) -> Result<(), String> {
    let units = loop {
        match order(&function.graph, &chosen) {
            Ok(units) => break units,
            Err(stuck) => split(&mut chosen, &stuck),
        }
    };
    let block = function.terminator.block().ok_or("expected the function to have a body")?;
    let values = function.values.clone();
    let mut emitter = Emitter { context, function, block, values, locals: BTreeMap::new() };
    for unit in units {
        match unit {
            Unit::Op(node) => emitter.keep(node),
            Unit::Group(segment, kernel) => {
                emitter.group(segment, &chosen[segment], &chosen[segment].plan.kernels[kernel])?;
            }
        }
    }
    emitter.finish();
    Ok(())
}

/// The units in execution order. Errors: the units of a cycle of dependencies.
fn order(graph: &Graph, chosen: &[Chosen<'_>]) -> Result<Vec<Unit>, Vec<Unit>> {
    let waits = waits(graph, chosen);
    let mut blocking: BTreeMap<Unit, Vec<Unit>> = BTreeMap::new();
    let mut missing: BTreeMap<Unit, usize> = BTreeMap::new();
    for (unit, needs) in &waits {
        missing.insert(*unit, needs.len());
        needs.iter().for_each(|need| blocking.entry(*need).or_default().push(*unit));
    }
    let key = |unit: Unit| match unit {
        Unit::Op(node) => node,
        Unit::Group(segment, kernel) => {
            let chosen = &chosen[segment];
            let results = &chosen.plan.kernels[kernel].results;
            results.iter().map(|result| chosen.placed.nodes[*result]).max().unwrap_or_default()
        }
    };
    let ready = missing.iter().filter(|(_, count)| **count == 0);
    let mut ready: BTreeSet<_> = ready.map(|(unit, _)| (key(*unit), *unit)).collect();
    let mut order = Vec::new();
    while let Some((_, unit)) = ready.pop_first() {
        missing.remove(&unit);
        order.push(unit);
        for next in blocking.remove(&unit).unwrap_or_default() {
            let count = missing.entry(next).and_modify(|count| *count -= 1).or_default();
            if *count == 0 {
                ready.insert((key(next), next));
            }
        }
    }
    if missing.is_empty() { Ok(order) } else { Err(missing.into_keys().collect()) }
}

/// The units that define values.
#[derive(Default)]
struct Makers {
    /// By value of the graph.
    values: BTreeMap<ValueId, Unit>,
    /// By segment and node, including values that are used only inside their segment.
    locals: BTreeMap<(usize, usize), Unit>,
}

impl Makers {
    fn of(graph: &Graph, chosen: &[Chosen<'_>], outside: &[NodeId]) -> Self {
        let mut makers = Self::default();
        for (segment, Chosen { placed, plan }) in chosen.iter().enumerate() {
            for (index, kernel) in plan.kernels.iter().enumerate() {
                let unit = Unit::Group(segment, index);
                for result in &kernel.results {
                    makers.locals.insert((segment, *result), unit);
                    if placed.segment.nodes[*result].output {
                        makers.values.insert(graph.nodes[placed.nodes[*result]].results[0], unit);
                    }
                }
            }
        }
        for node in outside {
            let results = graph.nodes[*node].results.iter();
            makers.values.extend(results.map(|result| (*result, Unit::Op(*node))));
        }
        makers
    }
}

/// The dependencies of every unit.
fn waits(graph: &Graph, chosen: &[Chosen<'_>]) -> BTreeMap<Unit, BTreeSet<Unit>> {
    let live = graph.live();
    let outside = (0..graph.nodes.len()).filter(|node| live[*node]);
    let outside: Vec<_> = outside.filter(|node| graph.compute(*node).is_none()).collect();
    let makers = Makers::of(graph, chosen, &outside);
    let mut waits: BTreeMap<Unit, BTreeSet<Unit>> = BTreeMap::new();
    let mut previous_opaque = None;
    for node in outside {
        let operands = graph.nodes[node].operands.iter();
        let needs = waits.entry(Unit::Op(node)).or_default();
        needs.extend(operands.filter_map(|value| makers.values.get(value)));
        // Ops of other dialects may have side effects, so their order is preserved.
        if graph.nodes[node].op.is_none() {
            needs.extend(previous_opaque.replace(Unit::Op(node)));
        }
    }
    for (segment, Chosen { placed, plan }) in chosen.iter().enumerate() {
        for (index, kernel) in plan.kernels.iter().enumerate() {
            let loads =
                kernel.body.iter().flat_map(|node| loads(&placed.segment, &plan.masks, *node));
            let needs = loads.filter_map(|(_, source)| match source {
                Source::Node(from) => makers.locals.get(&(segment, from)),
                Source::Input(input) => makers.values.get(&placed.inputs[input]),
            });
            waits.insert(Unit::Group(segment, index), needs.copied().collect());
        }
    }
    waits
}

/// Splits the first of these groups that has several results into a kernel per result: two segments can
/// each fold results such that together they form a cycle.
fn split(chosen: &mut [Chosen<'_>], stuck: &[Unit]) {
    let several = stuck.iter().find_map(|unit| match unit {
        Unit::Group(segment, kernel)
            if chosen[*segment].plan.kernels[*kernel].results.len() > 1 =>
        {
            Some((*segment, *kernel))
        }
        _ => None,
    });
    let (segment, kernel) =
        several.expect("kernels of one result follow the order of the ops, so they have no cycle");
    let Chosen { placed, plan } = &mut chosen[segment];
    let whole = plan.kernels.remove(kernel);
    for (offset, result) in whole.results.iter().enumerate() {
        let alone = kernel_of(&placed.segment, &plan.masks, &plan.forms, *result);
        plan.kernels.insert(kernel + offset, alone);
    }
}

struct Emitter<'f, 'c, 'a> {
    context: &'c Context,
    function: &'f Function<'c, 'a>,
    block: BlockRef<'c, 'a>,
    /// The new value of every value of the graph.
    values: Vec<Value<'c, 'a>>,
    /// The new value of a node inside its segment.
    locals: BTreeMap<(usize, usize), Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Emitter<'_, 'c, 'a> {
    fn keep(&mut self, node: NodeId) {
        let node = &self.function.graph.nodes[node];
        let op = self.function.ops[node.origins[0]];
        for (index, value) in node.operands.iter().enumerate() {
            set_operand(op, index, self.values[*value]);
        }
        irc_mlir::move_before_terminator(op, &self.block);
    }

    fn group(
        &mut self,
        segment: usize,
        chosen: &Chosen<'_>,
        kernel: &Kernel,
    ) -> Result<(), String> {
        let Chosen { placed, plan } = chosen;
        let mut sources: Vec<Source> = Vec::new();
        for node in &kernel.body {
            for (_, source) in loads(&placed.segment, &plan.masks, *node) {
                if !sources.contains(&source) {
                    sources.push(source);
                }
            }
        }
        let inputs: Vec<Value> = sources
            .iter()
            .map(|source| match source {
                Source::Node(from) => self.locals[&(segment, *from)],
                Source::Input(input) => self.values[placed.inputs[*input]],
            })
            .collect();
        let location = self.location(placed, *kernel.results.last().unwrap_or(&0));
        let types: Vec<Type> = inputs.iter().map(|input| input.r#type()).collect();
        let (region, block) = block_with(&types, location);
        let results = self.body(&block, chosen, kernel, &sources)?;
        region.append_block(block);
        let group = OpSpec::new(self.context, tl::GROUP, location)
            .operands(&inputs)
            .results(&results)
            .attr("kind", attr::string(self.context, kernel.form.kind.name()))
            .region(region)
            .before(&self.block, self.function.terminator);
        for (result, value) in kernel.results.iter().zip(group.results()) {
            let value = rebind(value.into());
            self.locals.insert((segment, *result), value);
            if placed.segment.nodes[*result].output {
                let node = placed.nodes[*result];
                self.values[self.function.graph.nodes[node].results[0]] = value;
            }
        }
        Ok(())
    }

    /// Fills a group's block. Returns the types that it yields.
    fn body(
        &self,
        block: &irc_mlir::Block<'c>,
        chosen: &Chosen<'_>,
        kernel: &Kernel,
        sources: &[Source],
    ) -> Result<Vec<Type<'c>>, String> {
        let Chosen { placed, plan } = chosen;
        let mut computed: BTreeMap<usize, Value> = BTreeMap::new();
        for node in &kernel.body {
            let mut operands = Vec::new();
            for (operand, edge) in placed.segment.nodes[*node].operands.iter().enumerate() {
                let fused = is_fused(plan.masks[*node], operand);
                let value = match edge.source {
                    Source::Node(from) if fused => computed[&from],
                    source => {
                        let at = sources.iter().position(|loaded| *loaded == source);
                        let argument = block.argument(at.unwrap_or(usize::MAX));
                        argument.map_err(|error| error.to_string())?.into()
                    }
                };
                operands.push(value);
            }
            let (op, location) = (&placed.segment.nodes[*node].op, self.location(placed, *node));
            let built = block.append_operation(tl::build(self.context, op, &operands, location)?);
            let result = built.result(0).map_err(|error| error.to_string())?;
            computed.insert(*node, rebind(result.into()));
        }
        let yielded: Vec<Value> = kernel.results.iter().map(|result| computed[result]).collect();
        let location = self.location(placed, *kernel.results.last().unwrap_or(&0));
        OpSpec::new(self.context, tl::YIELD, location).operands(&yielded).append(block);
        Ok(yielded.iter().map(|value| value.r#type()).collect())
    }

    fn location(&self, placed: &GraphSegment, node: usize) -> irc_mlir::Location<'c> {
        let origins = &self.function.graph.nodes[placed.nodes[node]].origins;
        self.function.ops[origins[0]].location()
    }

    fn finish(&self) {
        for (index, value) in self.function.graph.results.iter().enumerate() {
            set_operand(self.function.terminator, index, self.values[*value]);
        }
        let (graph, live) = (&self.function.graph, self.function.graph.live());
        for (index, node) in graph.nodes.iter().enumerate().rev() {
            if graph.compute(index).is_some() || !live[index] {
                self.function.ops[node.origins[0]].erase();
            }
        }
    }
}
