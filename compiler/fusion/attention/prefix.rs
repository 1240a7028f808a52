//! Views of the first elements of a buffer, such as the keys so far in a cache with room for more.
use irc_tl::{Op, Scalar, Type};

/// Whether an op returns elements of an operand of a type at their own indices: the first ones along each dimension.
pub fn is_prefix(op: &Op, operand: &Type) -> bool {
    match op {
        Op::Slice { offsets, .. } => offsets.iter().all(|offset| *offset == 0),
        Op::Compute(compute) => {
            let loops = (0..operand.rank()).map(Scalar::Loop).collect();
            compute.reduction.is_none()
                && compute.dims.len() == operand.rank()
                && compute.body == Scalar::Load(0, loops)
        }
        _ => false,
    }
}
