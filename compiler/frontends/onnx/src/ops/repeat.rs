//! Loops and scans.

use super::branch::known;
use super::indexing::{Part, concat, loops, size, slice, unsqueeze};
use crate::context::{Context, LowerError, Lowered};
use crate::item::Item;
use crate::operator::Operator;
use irc_common_format::model::{self, Graph};
use irc_tl::{Builder, Compute, DType, Dim, NodeKind, Scalar, Tensor, Type, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Loop", &[1, 11, 13, 16, 19, 21, 23, 24, 25], looped),
    Operator::new("Scan", &[8, 9, 11, 16, 19, 21, 23, 24, 25], scan),
];

/// Loops of at most this many iterations are unrolled if a loop at the tensor level cannot carry their
/// values.
const UNROLLED: i64 = 1 << 10;

/// The parts of a loop.
struct Repeated<'g> {
    graph: &'g Graph,
    /// The maximum number of iterations: an `i64` scalar.
    trips: ValueId,
    /// The initial condition: a `bool` scalar.
    start: ValueId,
    /// The initial carried values.
    carried: Vec<ValueId>,
    /// The scanned inputs, one slice per iteration.
    scanned: Vec<Scanned>,
    /// Whether the body takes the iteration and the condition, and returns the condition.
    conditional: bool,
}

/// A value of which each iteration takes the slice at one index of an axis.
struct Scanned {
    value: ValueId,
    axis: usize,
    backwards: bool,
}

fn looped(cx: &mut Context<'_>) -> Lowered {
    let graph = cx.graph("body")?.ok_or_else(|| cx.missing("body"))?;
    let trips = match cx.item(0) {
        Some(_) => {
            let trips = cx.input(0)?;
            let trips = cx.b.cast(trips, DType::I64)?;
            cx.b.reshape(trips, &[])?
        }
        None => integer(cx.b, i64::MAX)?,
    };
    let start = match cx.item(1) {
        Some(_) => {
            let start = cx.input(1)?;
            cx.b.reshape(start, &[])?
        }
        None => cx.b.scalar(1.0, DType::Bool)?,
    };
    let missing = |index| LowerError::invalid(format!("input {index} is missing"));
    let items: Result<Vec<Item>, LowerError> = (2..cx.input_count())
        .map(|index| cx.item(index).cloned().ok_or_else(|| missing(index)))
        .collect();
    let items = items?;
    let carried: Option<Vec<ValueId>> = items.iter().map(Item::tensor).collect();
    if let Some(carried) = carried {
        let conditional = true;
        let repeated = Repeated { graph, trips, start, carried, scanned: vec![], conditional };
        match repeated.write(cx) {
            Ok(Some(results)) => return Ok(results),
            Ok(None) => {}
            // The body may need values that are known only in single iterations.
            Err(error) => return unroll(cx, graph, trips, start, items).map_err(|_| error),
        }
    }
    unroll(cx, graph, trips, start, items)
}

/// The iteration and the condition, as a graph declares its first inputs: scalars, or vectors of one element.
fn controls(b: &mut Builder, graph: &Graph, values: [ValueId; 2]) -> Result<[Item; 2], LowerError> {
    let mut controls = values;
    for (value, input) in controls.iter_mut().zip(&graph.inputs) {
        let Some(model::Type::Tensor(declared)) = &input.ty else { continue };
        if declared.shape.as_ref().is_some_and(|shape| shape.dims.len() == 1) {
            *value = b.reshape(*value, &[1.into()])?;
        }
    }
    Ok(controls.map(Item::Tensor))
}

fn integer(b: &mut Builder, value: i64) -> Result<ValueId, LowerError> {
    let tensor = Tensor::from_values([], &[value]);
    Ok(b.tensor(&tensor.map_err(|error| LowerError::invalid(error.to_string()))?))
}

impl Repeated<'_> {
    /// The final carried values, then the collected ones; `None` if a carried value changes its
    /// element type, rank or structure.
    fn write(&self, cx: &mut Context<'_>) -> Result<Option<Vec<ValueId>>, LowerError> {
        let types: Vec<Type> = self.carried.iter().map(|value| cx.ty(*value)).collect();
        let mut open: Vec<Vec<bool>> = types.iter().map(|ty| vec![false; ty.rank()]).collect();
        loop {
            let mut region = cx.region();
            let index = region.b.input("iteration", Type::new(DType::I64, []));
            let mut own = vec![];
            for (position, (ty, open)) in types.iter().zip(&open).enumerate() {
                let mut ty = ty.clone();
                for (dim, _) in ty.dims.iter_mut().zip(open).filter(|(_, open)| **open) {
                    *dim = region.b.fresh_symbol();
                }
                own.push(region.b.input(format!("carried_{position}"), ty));
            }
            let mut inputs = vec![];
            if self.conditional {
                let truth = region.b.scalar(1.0, DType::Bool)?;
                inputs.extend(controls(&mut region.b, self.graph, [index, truth])?);
            }
            inputs.extend(own.iter().copied().map(Item::Tensor));
            for scanned in &self.scanned {
                let within = region.capture(cx.b, scanned.value);
                inputs.push(Item::Tensor(scanned.part(&mut region.b, within, index)?));
            }
            let outputs = cx.write(&mut region, self.graph, &inputs)?;
            let outputs: Option<Vec<ValueId>> = outputs.iter().map(Item::tensor).collect();
            let Some(mut outputs) = outputs else { return Ok(None) };
            if !self.conditional {
                let truth = region.b.scalar(1.0, DType::Bool)?;
                outputs.insert(0, truth);
            }
            if outputs.len() < 1 + own.len() {
                let (expected, found) = (own.len(), outputs.len() - 1);
                let message = format!("expected {expected} carried values, its graph has {found}");
                return Err(LowerError::invalid(message));
            }
            outputs[0] = region.b.reshape(outputs[0], &[])?;
            let mut changed = false;
            for (position, (before, after)) in own.iter().zip(&outputs[1..]).enumerate() {
                let (before, after) = (region.b.ty(*before), region.b.ty(*after));
                if before.dtype != after.dtype || before.rank() != after.rank() {
                    return Ok(None);
                }
                for (axis, (left, right)) in before.dims.iter().zip(&after.dims).enumerate() {
                    let opened = left != right && !open[position][axis];
                    open[position][axis] |= opened;
                    changed |= opened;
                }
            }
            if changed {
                continue;
            }
            return self.finish(cx, region, &outputs, &types, &open).map(Some);
        }
    }

    fn finish(
        &self,
        cx: &mut Context<'_>,
        mut region: crate::region::Region,
        outputs: &[ValueId],
        types: &[Type],
        open: &[Vec<bool>],
    ) -> Result<Vec<ValueId>, LowerError> {
        let mut results = vec![];
        for (ty, open) in types.iter().zip(open) {
            let mut ty = ty.clone();
            for (dim, _) in ty.dims.iter_mut().zip(open).filter(|(_, open)| **open) {
                *dim = cx.b.fresh_symbol();
            }
            results.push(ty);
        }
        let collected = &outputs[1 + types.len()..];
        let count = match collected.is_empty() {
            true => None,
            false => self.count(cx.b, &region.b, outputs[0])?,
        };
        for output in collected {
            let element = region.b.ty(*output).clone();
            let mut dims = vec![count.clone().unwrap_or_else(|| cx.b.fresh_symbol())];
            for dim in element.dims {
                dims.push(if cx.b.knows(&dim) { dim } else { cx.b.fresh_symbol() });
            }
            results.push(Type::new(element.dtype, dims));
        }
        for (index, output) in outputs.iter().enumerate() {
            region.b.output(format!("output_{index}"), *output);
        }
        let mut operands = vec![self.trips, self.start];
        operands.extend(&self.carried);
        operands.extend(&region.captured);
        let body = Box::new(region.b.finish());
        let kind = NodeKind::Loop { body, carried: types.len() };
        Ok(cx.b.region(kind, &operands, results)?)
    }

    /// The number of iterations, if only the trip count ends the loop.
    fn count(
        &self,
        b: &mut Builder,
        inside: &Builder,
        go_on: ValueId,
    ) -> Result<Option<Dim>, LowerError> {
        if known(b, self.start)? != Some(true) || known(inside, go_on)? != Some(true) {
            return Ok(None);
        }
        let trips = b.elements_or_symbols(self.trips)?.first().cloned();
        let trips = trips.filter(|trips| !trips.is(i64::MAX));
        Ok(trips.map(|trips| if b.is_size(&trips) { trips } else { trips.maximum(&0.into()) }))
    }
}

impl Scanned {
    /// The slice that an iteration takes.
    fn part(&self, b: &mut Builder, value: ValueId, index: ValueId) -> Result<ValueId, LowerError> {
        let mut dims = b.dims(value);
        let extent = dims.remove(self.axis);
        let index_now = Scalar::load(1, []);
        let last = size(&(extent - 1.into()));
        let mut at = loops(0..dims.len());
        at.insert(self.axis, if self.backwards { last - index_now } else { index_now });
        Ok(b.compute(Compute::map(dims, Scalar::load(0, at)), &[value, index])?)
    }
}

/// Unrolls the loop.
fn unroll(
    cx: &mut Context<'_>,
    graph: &Graph,
    trips: ValueId,
    start: ValueId,
    mut carried: Vec<Item>,
) -> Lowered {
    let trips = cx.b.elements(trips).and_then(|elements| elements.first()?.known());
    let trips = trips.ok_or(LowerError::NeedsConstant(0))?;
    let count = carried.len();
    let mut condition = start;
    let mut collected: Vec<Vec<ValueId>> = vec![];
    let mut iteration = 0;
    while iteration < trips {
        match known(cx.b, condition)? {
            Some(false) => break,
            Some(true) if iteration < UNROLLED => {}
            Some(true) => {
                let message =
                    format!("the loop must be unrolled, but has more than {UNROLLED} iterations");
                return Err(LowerError::unsupported(message));
            }
            None if iteration == 0 => return Err(LowerError::NeedsConstant(1)),
            None => {
                let message = "a carried value changes its structure in a loop of unknown length";
                return Err(LowerError::unsupported(message));
            }
        }
        let index = integer(cx.b, iteration)?;
        let mut inputs = controls(cx.b, graph, [index, condition])?.to_vec();
        inputs.append(&mut carried);
        let mut outputs = cx.inline(graph, &inputs)?.into_iter();
        let go_on = outputs.next().and_then(|item| item.tensor());
        let go_on = go_on.ok_or_else(|| LowerError::invalid("its graph returns no condition"))?;
        condition = cx.b.reshape(go_on, &[])?;
        carried = outputs.by_ref().take(count).collect();
        for (position, item) in outputs.enumerate() {
            let value = item.tensor();
            let value = value.ok_or_else(|| LowerError::invalid("expected tensors to collect"))?;
            if collected.len() <= position {
                collected.push(vec![]);
            }
            collected[position].push(unsqueeze(cx.b, value, &[0])?);
        }
        iteration += 1;
    }
    let mut results = carried;
    for values in collected {
        results.push(Item::Tensor(concat(cx.b, &values, 0)?));
    }
    if results.len() < cx.output_count() {
        return Err(LowerError::unsupported("unknown result of a scan without iterations"));
    }
    cx.items(results)
}

fn scan(cx: &mut Context<'_>) -> Lowered {
    let graph = cx.graph("body")?.ok_or_else(|| cx.missing("body"))?;
    let count = cx.int("num_scan_inputs")?.ok_or_else(|| cx.missing("num_scan_inputs"))?;
    if cx.version < 9 {
        return scan_of_batches(cx, graph, count as usize);
    }
    let inputs = cx.all_inputs()?;
    let plan = Plan::of(cx, count)?;
    let results = plan.write(cx, graph, &inputs)?;
    Ok(results)
}

/// The attributes of a scan.
struct Plan {
    scanned: usize,
    input_axes: Vec<i64>,
    input_backwards: Vec<i64>,
    output_axes: Vec<i64>,
    output_backwards: Vec<i64>,
}

impl Plan {
    fn of(cx: &Context<'_>, scanned: i64) -> Result<Self, LowerError> {
        let list =
            |name: &str| -> Result<Vec<i64>, LowerError> { Ok(cx.ints(name)?.unwrap_or_default()) };
        let backwards = if cx.version < 9 { "directions" } else { "scan_input_directions" };
        Ok(Self {
            scanned: usize::try_from(scanned).unwrap_or(0),
            input_axes: list("scan_input_axes")?,
            input_backwards: list(backwards)?,
            output_axes: list("scan_output_axes")?,
            output_backwards: list("scan_output_directions")?,
        })
    }

    fn write(
        &self,
        cx: &mut Context<'_>,
        graph: &Graph,
        inputs: &[ValueId],
    ) -> Result<Vec<ValueId>, LowerError> {
        let states = inputs.len().checked_sub(self.scanned).filter(|_| self.scanned > 0);
        let states = states.ok_or_else(|| {
            let (expected, found) = (self.scanned, inputs.len());
            LowerError::invalid(format!("expected at least {expected} inputs, found {found}"))
        })?;
        let mut scanned = vec![];
        for (index, value) in inputs[states..].iter().enumerate() {
            let axis = self.input_axes.get(index).copied().unwrap_or(0);
            let axis = cx.axis(axis, cx.b.rank(*value))?;
            let backwards = self.input_backwards.get(index).is_some_and(|way| *way != 0);
            scanned.push(Scanned { value: *value, axis, backwards });
        }
        let length = cx.b.dims(scanned[0].value)[scanned[0].axis].clone();
        for other in &scanned[1..] {
            let own = cx.b.dims(other.value)[other.axis].clone();
            let message = "scan: expected inputs of one length";
            cx.b.require(&length, irc_tl::Relation::Equal, &own, message)?;
        }
        let trips = cx.b.sizes(&[length], true, DType::I64)?;
        let start = cx.b.scalar(1.0, DType::Bool)?;
        let carried = inputs[..states].to_vec();
        let repeated = Repeated { graph, trips, start, carried, scanned, conditional: false };
        let results = repeated.write(cx)?;
        let mut results = results.ok_or_else(|| {
            LowerError::invalid("a carried value changes its element type or rank")
        })?;
        for (index, result) in results[states..].iter_mut().enumerate() {
            *result = self.arranged(cx, *result, index)?;
        }
        Ok(results)
    }

    /// The collected values along a new dimension, in the requested direction and position.
    fn arranged(
        &self,
        cx: &mut Context<'_>,
        mut value: ValueId,
        index: usize,
    ) -> Result<ValueId, LowerError> {
        let dims = cx.b.dims(value);
        if self.output_backwards.get(index).is_some_and(|way| *way != 0) {
            let mut parts: Vec<Part> = dims.iter().map(|dim| Part::run(0, dim.clone())).collect();
            parts[0].start = dims[0].clone() - 1.into();
            parts[0].step = -1;
            value = slice(cx.b, value, &parts)?;
        }
        let axis = cx.axis(self.output_axes.get(index).copied().unwrap_or(0), dims.len())?;
        let mut order: Vec<usize> = (1..dims.len()).collect();
        order.insert(axis, 0);
        Ok(cx.b.transpose(value, &order)?)
    }
}

/// Version 8: every value has a leading batch dimension; the batch elements are
/// independent and are unrolled.
fn scan_of_batches(cx: &mut Context<'_>, graph: &Graph, count: usize) -> Lowered {
    if cx.item(0).is_some() {
        return Err(LowerError::unsupported("sequence lengths of a scan are not supported"));
    }
    let inputs: Result<Vec<ValueId>, _> = (1..cx.input_count()).map(|at| cx.input(at)).collect();
    let inputs = inputs?;
    let batch = inputs.first().and_then(|value| cx.b.dims(*value).first().cloned());
    let batch = batch.ok_or_else(|| LowerError::invalid("expected a batch, found no input"))?;
    let batch = batch.known().ok_or(LowerError::NeedsSize(batch))?;
    let plan = Plan::of(cx, count as i64)?;
    let mut results: Vec<Vec<ValueId>> = vec![];
    for element in 0..batch {
        let mut own = vec![];
        for value in &inputs {
            let part = super::indexing::along(cx.b, *value, 0, element, 1)?;
            let dims = cx.b.dims(part);
            own.push(cx.b.reshape(part, &dims[1..])?);
        }
        for (index, value) in plan.write(cx, graph, &own)?.into_iter().enumerate() {
            if results.len() <= index {
                results.push(vec![]);
            }
            results[index].push(unsqueeze(cx.b, value, &[0])?);
        }
    }
    results.iter().map(|values| concat(cx.b, values, 0)).collect()
}
