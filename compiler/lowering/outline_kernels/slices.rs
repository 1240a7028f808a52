//! Many slices of one value with one kernel, which takes their offsets.
//!
//! A value that is split into a thousand parts would otherwise need a thousand kernels, each with an offset of
//! its own in its text.
use irc_dialects::tl;
use irc_mlir::{
    BlockLike, Erase, OperationLike, OperationRef, RegionLike, Type, Value, ValueLike, context_of,
    read, replace_all_uses,
};
use irc_tl::{Compute, Dim, Op, Scalar};
use std::collections::BTreeMap;

/// Number of slices from which one kernel is used for all: its loops are slower than a slice's own.
const MIN_SLICES: usize = 32;

/// The groups that are slices of one value to one type, for values that have many.
pub(super) fn frequent<'c: 'a, 'a>(groups: &[OperationRef<'c, 'a>]) -> Vec<bool> {
    let mut counts: BTreeMap<(usize, String), usize> = BTreeMap::new();
    let keys: Vec<_> = groups.iter().map(|group| key(*group)).collect();
    keys.iter().flatten().for_each(|key| *counts.entry(key.clone()).or_default() += 1);
    keys.iter().map(|key| key.as_ref().is_some_and(|key| counts[key] >= MIN_SLICES)).collect()
}

/// The value and the type of a group that is one slice.
fn key(group: OperationRef<'_, '_>) -> Option<(usize, String)> {
    slice_of(group)?;
    let to: Type = group.result(0).ok()?.r#type();
    Some((read::identity(group.operand(0).ok()?), to.to_string()))
}

fn slice_of<'c: 'a, 'a>(group: OperationRef<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    match read::body_ops(group)[..] {
        [slice, _] if read::op_name(&slice) == "tl.slice" => Some(slice),
        _ => None,
    }
}

/// Writes the slice of a group as loops whose offsets are symbols. Returns the offsets.
///
/// # Errors
/// An op that cannot be rebuilt.
pub(super) fn with_symbols<'c: 'a, 'a>(group: OperationRef<'c, 'a>) -> Result<Vec<Dim>, String> {
    let slice = slice_of(group).ok_or("expected one slice")?;
    let Op::Slice { offsets, sizes } = tl::op_of(slice)? else {
        return Err("expected a slice".into());
    };
    let operand: Value = slice.operand(0).map_err(|error| error.to_string())?;
    let extents = tl::tensor_type_of(operand.r#type())?.shape;
    let mut passed = vec![];
    let index = offsets.iter().zip(&sizes).zip(&extents).enumerate();
    let index: Vec<Scalar> = index
        .map(|(axis, ((offset, size), extent))| {
            if size == extent {
                return Scalar::Loop(axis);
            }
            passed.push(Dim::Known(*offset));
            let symbol = Dim::symbol(&format!("d{}", passed.len() - 1));
            Scalar::Loop(axis) + Scalar::Size(symbol)
        })
        .collect();
    let dims: Vec<Dim> = sizes.iter().map(|size| Dim::Known(*size)).collect();
    let op = Op::compute(Compute::map(dims, Scalar::load(0, index)));
    let built = tl::build(context_of(&slice), &op, &[operand], slice.location())?;
    let block = group.region(0).ok().and_then(|region| region.first_block());
    let built = block.ok_or("expected a body")?.insert_operation_before(slice, built);
    for (old, new) in slice.results().zip(built.results()) {
        replace_all_uses(old.into(), new.into());
    }
    slice.erase();
    Ok(passed)
}
