//! Branches.

use crate::context::{Context, LowerError, Lowered};
use crate::item::Item;
use crate::operator::Operator;
use crate::region::Region;
use irc_common_format::model::Graph;
use irc_tl::{Builder, Dependencies, Dim, NodeKind, Type, ValueId};

pub(super) const OPERATORS: &[Operator] =
    &[Operator::new("If", &[1, 11, 13, 16, 19, 21, 23, 24, 25], branch)];

fn branch(cx: &mut Context<'_>) -> Lowered {
    let condition = cx.input(0)?;
    let graph = |name: &str| cx.graph(name)?.ok_or_else(|| cx.missing(name));
    let (then, otherwise) = (graph("then_branch")?, graph("else_branch")?);
    if cx.b.ty(condition).elements().known().is_some_and(|count| count != 1) {
        let found = cx.ty(condition);
        return Err(LowerError::invalid(format!("expected one condition, found {found}")));
    }
    if let Some(holds) = known(cx.b, condition)? {
        let outputs = cx.inline(if holds { then } else { otherwise }, &[])?;
        return cx.items(outputs);
    }
    // A branch that is never taken need not be valid: the value of the condition is requested first.
    let decided = cx.b.dependencies(condition) != Dependencies::default();
    let error = |error| if decided { LowerError::NeedsConstant(0) } else { error };
    let (mut yes, yes_items) = written(cx, then).map_err(error)?;
    let (mut no, no_items) = written(cx, otherwise).map_err(error)?;
    let same = |(yes, no): (&Item, &Item)| yes.same_structure(no);
    if yes_items.len() != no_items.len() || !yes_items.iter().zip(&no_items).all(same) {
        return Err(LowerError::NeedsConstant(0));
    }
    let tensors = |items: &[Item]| items.iter().flat_map(Item::tensors).collect::<Vec<_>>();
    let (yes_values, no_values) = (tensors(&yes_items), tensors(&no_items));
    let mut types = vec![];
    for (output, (yes_value, no_value)) in yes_values.iter().zip(&no_values).enumerate() {
        let (then, otherwise) = (yes.b.ty(*yes_value), no.b.ty(*no_value));
        types.push(unified(cx.b, then, otherwise).ok_or_else(|| LowerError::NeedsCondition {
            output,
            then: then.clone(),
            otherwise: otherwise.clone(),
        })?);
    }
    for value in no.captured.clone() {
        yes.capture(cx.b, value);
    }
    for value in yes.captured.clone() {
        no.capture(cx.b, value);
    }
    let order = yes.captured.clone();
    let kind = NodeKind::If {
        then: Box::new(finished(yes, &yes_values, &order)),
        otherwise: Box::new(finished(no, &no_values, &order)),
    };
    let condition = cx.b.reshape(condition, &[])?;
    let operands: Vec<ValueId> = [condition].into_iter().chain(order).collect();
    let mut results = cx.b.region(kind, &operands, types)?.into_iter();
    let mut next =
        |_| results.next().ok_or_else(|| LowerError::invalid("a branch has too few results"));
    let items: Result<Vec<Item>, LowerError> =
        yes_items.iter().map(|item| item.map(&mut next)).collect();
    cx.items(items?)
}

/// The value of a condition, if it is known.
pub(super) fn known(b: &Builder, condition: ValueId) -> Result<Option<bool>, LowerError> {
    let elements = b.elements(condition).and_then(|elements| elements.first());
    if let Some(known) = elements.and_then(Dim::known) {
        return Ok(Some(known != 0));
    }
    let constant = b.constant_of(condition)?;
    Ok(constant.and_then(|tensor| tensor.bytes().first().map(|byte| *byte != 0)))
}

fn written(cx: &mut Context<'_>, graph: &Graph) -> Result<(Region, Vec<Item>), LowerError> {
    let mut region = cx.region();
    let items = cx.write(&mut region, graph, &[])?;
    Ok((region, items))
}

/// The common type of two values; sizes that differ become symbolic.
fn unified(b: &mut Builder, left: &Type, right: &Type) -> Option<Type> {
    if left.dtype != right.dtype || left.rank() != right.rank() {
        return None;
    }
    let mut dims = vec![];
    for (left, right) in left.dims.iter().zip(&right.dims) {
        dims.push(if left == right && b.knows(left) { left.clone() } else { b.fresh_symbol() });
    }
    Some(Type::new(left.dtype, dims))
}

/// The graph, its captures in that order.
fn finished(mut region: Region, outputs: &[ValueId], order: &[ValueId]) -> irc_tl::Graph {
    for (index, value) in outputs.iter().enumerate() {
        region.b.output(format!("output_{index}"), *value);
    }
    let place = |value: &ValueId| region.captured.iter().position(|own| own == value);
    let places: Vec<usize> = order.iter().filter_map(place).collect();
    let mut graph = region.b.finish();
    graph.inputs = places.into_iter().map(|place| graph.inputs[place].clone()).collect();
    graph
}
