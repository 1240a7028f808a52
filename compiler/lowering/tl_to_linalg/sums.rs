//! Sums over loops, of what a body makes of an element of two operands.
use super::{
    Contents, Lowered,
    generic::{Access, Emitter, Loops, Sums},
    squeezed, wide_dims,
};
use crate::kernel::{element::Element, scope::Scope};
use irc_mlir::Value;

/// The operands of a sum over the loops of the result and one more, and those loops whose extent is not 1.
pub fn sides<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    [(lhs, lhs_dims), (rhs, rhs_dims)]: [(&Lowered<'c, 'a>, &[usize]); 2],
    shape: &[i64],
) -> ([Sums<'c, 'a>; 2], Vec<usize>) {
    let k = shape.len();
    let depth = lhs_dims.iter().position(|dim| *dim == k).map_or(1, |at| lhs.shape[at]);
    let mut extents = shape.to_vec();
    extents.push(depth);
    let loops = wide_dims(&extents);
    let access = |operand: &Lowered<'c, 'a>, dims: &[usize]| Access {
        tensor: emitter.materialise(operand),
        loops: wide_dims(&operand.shape)
            .into_iter()
            .filter_map(|at| loops.iter().position(|dim| *dim == dims[at]))
            .collect(),
    };
    ([access(lhs, lhs_dims).sums(), access(rhs, rhs_dims).sums()], loops)
}

/// The sum over all loops but those of the result, which come first: `add` is passed an element of each operand, and the
/// sum so far.
pub fn sum_of<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    inputs: &[Sums<'c, 'a>; 2],
    loops: &[usize],
    shape: &[i64],
    compute: Element<'c>,
    add: impl FnOnce(&Scope<'c, '_>, &[Value<'c, '_>]) -> Value<'c, 'a>,
) -> Contents<'c, 'a> {
    let init = emitter.fill(&squeezed(shape), compute, 0.0);
    let (kept, reductions) = (0..loops.len()).partition(|at| loops[*at] < shape.len());
    let output = Access { tensor: init, loops: kept };
    let space = Loops { count: loops.len(), reductions };
    Contents::Tensor(emitter.generic_of_sums(inputs, output, &space, add))
}
