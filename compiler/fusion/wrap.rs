//! Groups of the kind `loops`.
use super::form::Kind;
use irc_dialects::tl;
use irc_mlir::{
    BlockLike, Erase, OpSpec, OperationLike, OperationRef, RegionLike, Type, Value, ValueLike,
    attr, block_with, context_of, replace_all_uses,
};

/// Wraps ops in a group of loops, in the place of the last one, whose results are those of the group; returns the first op
/// in it.
pub(super) fn wrap<'c: 'a, 'a>(
    ops: &[OperationRef<'c, 'a>],
) -> Result<OperationRef<'c, 'a>, String> {
    let last = *ops.last().ok_or("expected an op")?;
    let context = context_of(&last);
    let parent = last.block().ok_or("expected an op in a block")?;
    let made = ops.iter().flat_map(|op| op.results()).map(Value::from);
    let made: Vec<Value> = made.collect();
    let mut inputs: Vec<Value> = vec![];
    for operand in ops.iter().flat_map(|op| op.operands()) {
        if !inputs.contains(&operand) && !made.contains(&operand) {
            inputs.push(operand);
        }
    }
    let types: Vec<Type> = inputs.iter().map(ValueLike::r#type).collect();
    let results: Vec<Type> = last.results().map(|result| result.r#type()).collect();
    let (region, block) = block_with(&types, last.location());
    let mut built: Vec<OperationRef<'c, 'a>> = vec![];
    let mut inside: Vec<Value> = vec![];
    for op in ops {
        let operands = op.operands().map(|operand| {
            if let Some(at) = made.iter().position(|value| *value == operand) {
                return Ok(inside[at]);
            }
            let at = inputs.iter().position(|input| *input == operand).unwrap_or_default();
            block.argument(at).map(Value::from).map_err(|error| error.to_string())
        });
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        let copy = match tl::algorithm_of(*op)? {
            Some(algorithm) => tl::build_algorithm(context, &algorithm, &operands, op.location())?,
            None => tl::build(context, &tl::op_of(*op)?, &operands, op.location())?,
        };
        let copy = block.append_operation(copy);
        inside.extend(copy.results().map(Value::from));
        built.push(copy);
    }
    let yielded = &inside[inside.len() - results.len()..];
    OpSpec::new(context, tl::YIELD, last.location()).operands(yielded).append(&block);
    region.append_block(block);
    let group = OpSpec::new(context, tl::GROUP, ops[0].location())
        .operands(&inputs)
        .results(&results)
        .attr("kind", attr::string(context, Kind::Loops.name()))
        .region(region)
        .before(&parent, last);
    for (old, new) in last.results().zip(group.results()) {
        replace_all_uses(old.into(), new.into());
    }
    ops.iter().rev().for_each(|op| op.erase());
    Ok(built[0])
}
