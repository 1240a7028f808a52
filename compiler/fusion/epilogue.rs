//! Epilogues of sums whose sizes depend on symbols, as convolutions of open height and width: the maps that follow join
//! the sum in one group, whose kernel applies them to the sums while these are in the cache.
use super::{
    inline::{Inlined, key, numbered, rebuilt, take_parts},
    open::is_open,
    wrap::wrap,
};
use irc_dialects::tl;
use irc_mlir::{OperationLike, OperationRef, Value, ValueLike, has_one_use, read, uses};
use irc_tl::{Combine, Compute, DType, Scalar, Type};
use std::collections::BTreeSet;

/// Maximum number of maps that follow a sum.
const MAX_MAPS: usize = 16;

/// Maximum number of times that an epilogue reads its sum.
const MAX_COPIES: usize = 8;

/// Joins each such sum and the maps that follow in a group.
///
/// # Errors
/// If an op cannot be rebuilt.
pub(super) fn join_epilogues<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    inlined: &mut Inlined<'c>,
) -> Result<(), String> {
    let mut joined = BTreeSet::new();
    for op in read::body_ops(func) {
        // An op of an earlier group is gone.
        if joined.contains(&key(op)) || !is_sum(op) {
            continue;
        }
        let (mut ops, mut copies) = (vec![op], 1);
        while let Some((next, reads)) = ops.last().and_then(|last| map_after(*last)) {
            // Each read of a value repeats the expression of it.
            copies *= reads;
            if ops.len() > MAX_MAPS || copies > MAX_COPIES {
                break;
            }
            ops.push(next);
        }
        // Sums of single precision are in the memory of the result until they are complete.
        while result_type(op) == Some(DType::F32)
            && ops.last().is_some_and(|last| result_type(*last) != Some(DType::F32))
        {
            ops.pop();
        }
        if ops.len() == 1 {
            continue;
        }
        let parts = take_parts(&ops, inlined);
        for map in &mut ops[1..] {
            joined.insert(key(*map));
            let operands: Vec<Value> = map.operands().collect();
            let numbered = open_loops(*map).and_then(|(found, _)| numbered(&found, &operands));
            if let Some((compute, operands)) = numbered {
                *map = rebuilt(*map, compute, &operands)?;
            }
        }
        joined.extend(ops.iter().map(|op| key(*op)));
        inlined.insert(key(wrap(&ops)?), parts);
    }
    Ok(())
}

/// The element type of the result of an op.
fn result_type(op: OperationRef<'_, '_>) -> Option<DType> {
    // `result(0)` of an op without results would print it, and so verify functions that other threads change.
    Some(tl::type_of(op.results().next()?.r#type()).ok()?.dtype)
}

/// Whether epilogues compute elements of a type.
fn is_computed(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::I32 | DType::U8 | DType::I8)
}

/// An op as loops, if its result is of a type that epilogues compute and of a size that depends on symbols.
fn open_loops(op: OperationRef<'_, '_>) -> Option<(Compute, Vec<Type>)> {
    let result = tl::type_of(op.results().next()?.r#type()).ok()?;
    if result.known().is_some() || !is_computed(result.dtype) {
        return None;
    }
    let types = tl::symbolic_operand_types(op).ok()?;
    let compute = tl::op_of(op).ok()?.as_compute(&types)?;
    Some((compute, types))
}

/// Whether an op adds functions of two elements, as the products of a convolution of images of open sizes, in single precision, or
/// of bytes in `i32`.
fn is_sum(op: OperationRef<'_, '_>) -> bool {
    const IMAGE: usize = 3;
    let Some((compute, types)) = open_loops(op).filter(|_| !is_open(op)) else { return false };
    let is_element = |factor: &Scalar| match factor {
        Scalar::Load(of, _) => types[*of].dtype == DType::F32,
        Scalar::Cast(DType::I32, _, element) => {
            matches!(&**element, Scalar::Load(of, _) if types[*of].dtype.size() == 1)
        }
        _ => false,
    };
    let is_factor = |factor: &Scalar| match factor {
        Scalar::Select(parts) => is_element(&parts[1]),
        factor => is_element(factor),
    };
    let mut has_pair = false;
    compute.body.walk(&mut |part| {
        has_pair |= matches!(part, Scalar::Binary(_, x, y) if is_factor(x) && is_factor(y));
    });
    let is_sum = compute.reduction.as_ref().is_some_and(|it| it.combine == Combine::Sum);
    is_sum && has_pair && compute.dims.len() >= IMAGE
}

/// The map that alone reads the result of an op, each element for the same element of its own result. Other operands are
/// read at the same element, or at one of its image and channel. With the number of times that it reads the result.
fn map_after<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Option<(OperationRef<'c, 'a>, usize)> {
    let value = Value::from(op.results().next()?);
    if !has_one_use(value) {
        return None;
    }
    let (map, operand) = uses(value).pop()?;
    let (compute, types) = open_loops(map)?;
    let dims = &tl::type_of(value.r#type()).ok()?.dims;
    let mut fits = compute.reduction.is_none() && compute.dims == *dims;
    let mut reads = 0;
    compute.body.walk(&mut |part| {
        fits &= match part {
            Scalar::Load(of, at) => {
                let is_fixed = |index: &Scalar| match index {
                    Scalar::Loop(loop_) => *loop_ < 2,
                    index => matches!(index, Scalar::Int(..)),
                };
                reads += usize::from(*of == operand);
                let is_own = compute.is_own(at, &types[*of].dims);
                match *of == operand {
                    true => is_own,
                    false => {
                        let is_single = types[*of].dtype == DType::F32;
                        is_own && is_single || at.iter().all(is_fixed)
                    }
                }
            }
            part => is_cheap(part),
        };
    });
    (fits && map.block() == op.block()).then_some((map, reads))
}

/// Whether a part of an expression is as much work as an addition.
fn is_cheap(part: &Scalar) -> bool {
    match part {
        Scalar::Binary(..) | Scalar::Unary(..) => !part.is_expensive(),
        Scalar::Cast(to, ..) => is_computed(*to),
        Scalar::Float(..) | Scalar::Int(..) | Scalar::Loop(_) => true,
        _ => false,
    }
}
