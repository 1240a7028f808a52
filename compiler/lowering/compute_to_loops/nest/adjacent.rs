//! Loops over elements that are next to each other in all operands, as one: long rows are vectorised well.
use super::Nest;
use crate::kernel::emit::Buffer;
use crate::lowering::compute_to_loops::expression::depends_on;
use irc_tl::{Compute, Dim, Scalar, Type};
use std::borrow::Cow;

/// The nest with every pair of adjacent loops over the result as one loop, if operands whose indices depend on one of them have
/// both along whole axes, and the types of the operands then. `None` if there is no such pair.
pub(super) fn joined(
    nest: &Nest,
    operands: &[(&Type, Buffer<'_, '_>)],
) -> Option<(Nest, Vec<Type>)> {
    if nest.epilogue.is_some() {
        return None;
    }
    let mut compute = Cow::Borrowed(&nest.compute);
    let mut types: Vec<Type> = operands.iter().map(|(ty, _)| (*ty).clone()).collect();
    for loop_ in (1..nest.compute.dims.len()).rev() {
        if let Some(found) = pair(&compute, &types, loop_ - 1) {
            compute = Cow::Owned(found.0);
            types = found.1;
        }
    }
    match compute {
        Cow::Borrowed(_) => None,
        Cow::Owned(compute) => Some((Nest::of(compute), types)),
    }
}

/// As [`joined`], of a loop and the one after it.
fn pair(compute: &Compute, types: &[Type], first: usize) -> Option<(Compute, Vec<Type>)> {
    let extents = &compute.dims[first..first + 2];
    // The axis of each operand along the first loop, if it has one, once it is known.
    let mut axes: Vec<Option<Option<usize>>> = vec![None; types.len()];
    let mut is_joined = true;
    let varies = |index: &Scalar| (first..first + 2).any(|loop_| depends_on(index, loop_));
    let body = renumbered(&compute.body, first, &mut |scalar| match scalar {
        Scalar::Load(operand, at) => {
            let mut moving = (0..at.len()).filter(|axis| varies(&at[*axis]));
            let axis = moving.next();
            let is_pair = axis.is_none_or(|axis| {
                at[axis..].starts_with(&[Scalar::Loop(first), Scalar::Loop(first + 1)])
                    && types[*operand].dims[axis..].starts_with(extents)
                    && moving.nth(1).is_none()
            });
            is_joined &= is_pair && axes[*operand].is_none_or(|known| known == axis);
            axes[*operand] = Some(axis);
            axis
        }
        _ => {
            is_joined = false;
            None
        }
    });
    if !is_joined {
        return None;
    }
    let join = |dims: &[Dim], axis: usize| {
        let mut dims = dims.to_vec();
        dims.splice(axis..axis + 2, [Dim::product(&dims[axis..axis + 2])]);
        dims
    };
    let of_operand = |(ty, axis): (&Type, &Option<Option<usize>>)| match axis.flatten() {
        Some(axis) => Type::new(ty.dtype, join(&ty.dims, axis)),
        None => ty.clone(),
    };
    let types = types.iter().zip(&axes).map(of_operand).collect();
    let dims = join(&compute.dims, first);
    Some((Compute { dims, reduction: compute.reduction.clone(), body }, types))
}

/// A scalar with a loop and the one after it as one. `axis` is called for every load, and says which of its axes is along the
/// first of them; and for any other use of these loops.
fn renumbered(
    scalar: &Scalar,
    first: usize,
    axis: &mut dyn FnMut(&Scalar) -> Option<usize>,
) -> Scalar {
    scalar.replace(&mut |part| match part {
        Scalar::Load(operand, at) => {
            let pair = axis(part);
            let others = at.iter().enumerate();
            let others = others.filter(|(number, _)| pair.is_none_or(|axis| *number != axis + 1));
            let at = others.map(|(number, index)| match pair == Some(number) {
                true => Scalar::Loop(first),
                false => renumbered(index, first, axis),
            });
            Some(Scalar::Load(*operand, at.collect()))
        }
        Scalar::Loop(loop_) if (first..first + 2).contains(loop_) => {
            axis(part);
            None
        }
        Scalar::Loop(loop_) if *loop_ > first => Some(Scalar::Loop(loop_ - 1)),
        _ => None,
    })
}
