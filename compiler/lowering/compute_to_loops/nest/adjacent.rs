//! Loops over elements that are next to each other in all operands, as one: long rows are vectorised well.
use super::Nest;
use crate::lowering::compute_to_loops::expression::{RESULT, depends_on};
use irc_tl::{Compute, Dim, Reduce, Scalar, Type};

/// The nest with every pair of adjacent loops over the result, or of a reduction, as one loop, if operands whose indices depend on
/// one of them have both along whole axes, and the types of the operands then. `None` if there is no such pair.
pub(super) fn joined(nest: &Nest, types: &[&Type]) -> Option<(Nest, Vec<Type>)> {
    let mut found: Option<(Nest, Vec<Type>)> = None;
    for first in (1..nest.compute.loops()).rev().map(|loop_| loop_ - 1) {
        let pair = match &found {
            Some((nest, types)) => joined_pair(nest, &types.iter().collect::<Vec<_>>(), first),
            None => joined_pair(nest, types, first),
        };
        found = pair.or(found);
    }
    found
}

/// As [`joined`], of a loop and the one after it.
pub(in crate::lowering::compute_to_loops) fn joined_pair(
    nest: &Nest,
    types: &[&Type],
    first: usize,
) -> Option<(Nest, Vec<Type>)> {
    let compute = &nest.compute;
    let results = compute.dims.len();
    let mut dims = compute.dims.clone();
    let mut reduction = compute.reduction.clone();
    let (loops, at) = match &mut reduction {
        Some(Reduce { dims, .. }) if first >= results => (dims, first - results),
        _ => (&mut dims, first),
    };
    let extents = loops.get(at..at + 2)?.to_vec();
    join(loops, at);
    let mut pair = Pair { first, extents, axes: vec![None; types.len()], is_joined: true };
    let body = pair.renumbered(&compute.body, types);
    let epilogue = nest.epilogue.as_ref().map(|epilogue| pair.renumbered(epilogue, types));
    if !pair.is_joined {
        return None;
    }
    let of_operand = |(ty, axis): (&&Type, Option<usize>)| {
        let mut ty = (*ty).clone();
        axis.into_iter().for_each(|axis| join(&mut ty.dims, axis));
        ty
    };
    let axes = pair.axes.into_iter().map(Option::flatten);
    let types = types.iter().zip(axes).map(of_operand).collect();
    Some((Nest { epilogue, ..Nest::of(Compute { dims, reduction, body }) }, types))
}

fn join(dims: &mut Vec<Dim>, first: usize) {
    let joined = Dim::product(&dims[first..first + 2]);
    dims.splice(first..first + 2, [joined]);
}

/// A loop and the one after it.
struct Pair {
    first: usize,
    extents: Vec<Dim>,
    /// The axis of each operand along the first loop, if it has one, once it is known.
    axes: Vec<Option<Option<usize>>>,
    /// Whether what was seen can be computed with one loop.
    is_joined: bool,
}

impl Pair {
    /// An expression with one loop.
    fn renumbered(&mut self, scalar: &Scalar, types: &[&Type]) -> Scalar {
        let first = self.first;
        scalar.replace(&mut |part| match part {
            Scalar::Load(operand, at) if *operand != RESULT => {
                let pair = self.axis(*operand, at, types[*operand]);
                let at = at.iter().enumerate().filter_map(|(number, index)| match pair {
                    Some(axis) if number == axis => Some(Scalar::Loop(first)),
                    Some(axis) if number == axis + 1 => None,
                    _ => Some(self.renumbered(index, types)),
                });
                Some(Scalar::Load(*operand, at.collect()))
            }
            Scalar::Loop(loop_) if *loop_ > first + 1 => Some(Scalar::Loop(loop_ - 1)),
            Scalar::Loop(loop_) => {
                self.is_joined &= *loop_ < first;
                None
            }
            _ => None,
        })
    }

    /// The axis of an operand along the first loop.
    fn axis(&mut self, operand: usize, at: &[Scalar], ty: &Type) -> Option<usize> {
        let own = [self.first, self.first + 1];
        let varies = |index: &Scalar| own.iter().any(|loop_| depends_on(index, *loop_));
        let mut moving = (0..at.len()).filter(|axis| varies(&at[*axis]));
        let axis = moving.next();
        let is_pair = axis.is_none_or(|axis| {
            at[axis..].starts_with(&own.map(Scalar::Loop))
                && ty.dims[axis..].starts_with(&self.extents)
                && moving.nth(1).is_none()
        });
        self.is_joined &= is_pair && self.axes[operand].is_none_or(|known| known == axis);
        self.axes[operand] = Some(axis);
        axis
    }
}
