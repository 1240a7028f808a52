//! Marks the results of a program that may be in the memory of an input: those that replace some of its elements, such as a
//! cache of keys with the new ones.
//!
//! Before: a function whose ops are groups. After: such a result has `tl.updates`, if nothing else reads the input, since
//! its old elements are then gone.
use crate::attributes::{LOOPS, NAME, UPDATES, WEIGHT, dictionaries};
use crate::lowering::compute_to_loops::updated_operand;
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    Attribute, OperationLike, OperationRef, Value, ValueLike, attr, context_of,
    melior::ir::attribute::DictionaryAttribute, read, set_attribute, uses,
};
use irc_tl::{Dim, Op};
use std::collections::BTreeSet;

/// Marks the results of a program that may be in the memory of an input.
///
/// # Errors
/// If a type cannot be read.
pub(super) fn mark_updates<'c: 'a, 'a>(function: OperationRef<'c, 'a>) -> Result<(), String> {
    let context = context_of(&function);
    let inputs = dictionaries(&function, "arg_attrs");
    let end = read::body_ops(function).pop().filter(|op| read::op_name(op) == func::RETURN);
    let Some(end) = end else { return Ok(()) };
    let mut updated = BTreeSet::new();
    let mut results: Vec<Attribute> = read::elements(&function, "res_attrs").unwrap_or_default();
    for (result, returned) in results.iter_mut().zip(end.operands()) {
        let Some(input) = updated_input(function, returned)? else { continue };
        let attributes = inputs.get(input).copied().flatten();
        let input_name = NAME.of(attributes).filter(|_| WEIGHT.of(attributes).is_none());
        let own = DictionaryAttribute::try_from(*result).ok().and_then(|own| NAME.of(own));
        if let (Some(input_name), Some(own), true) = (input_name, own, updated.insert(input)) {
            let entries = [NAME.entry(context, &own), UPDATES.entry(context, &input_name)];
            *result = attr::dictionary(context, &entries);
        }
    }
    if !updated.is_empty() {
        set_attribute(function, "res_attrs", attr::array(context, &results));
    }
    Ok(())
}

/// The argument of a function of which a value has the elements, but for those that its kernel replaces, if only that
/// kernel reads it.
fn updated_input<'c: 'a, 'a>(
    function: OperationRef<'c, 'a>,
    value: Value<'c, 'a>,
) -> Result<Option<usize>, String> {
    let Some(group) = read::defining_op(value).filter(|op| read::op_name(op) == tl::GROUP) else {
        return Ok(None);
    };
    let is_loops = read::string(&group, "kind").as_deref() == Some(LOOPS);
    let body = read::body_ops(group);
    let ([op, _], true) = (&body[..], is_loops && group.result_count() == 1) else {
        return Ok(None);
    };
    let Ok(Op::Compute(compute)) = tl::op_of(*op) else { return Ok(None) };
    let types = op.operands().map(|operand| tl::type_of(operand.r#type()));
    let types = types.collect::<Result<Vec<_>, _>>()?;
    let dims: Vec<&[Dim]> = types.iter().map(|ty| &ty.dims[..]).collect();
    let operand = updated_operand(&compute, &dims).and_then(|at| op.operand(at).ok());
    let Some((owner, index)) = operand.and_then(read::owner_of_argument) else { return Ok(None) };
    let Some(given) = group.operand(index).ok().filter(|_| owner == group) else { return Ok(None) };
    let argument = read::owner_of_argument(given).filter(|(owner, _)| *owner == function);
    Ok(argument.filter(|_| uses(given).len() == 1).map(|(_, index)| index))
}
