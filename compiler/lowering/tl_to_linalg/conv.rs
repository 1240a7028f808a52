//! `tl.conv` as a matrix product of the filters and the windows.
//!
//! Three stages: the operand with its padding, if any; a matrix whose columns hold the elements under
//! the filters at one position (im2col), which for filters of one element is the operand itself; and a
//! matmul per image and group.
//!
//! Where Winograd's algorithm may apply, the padding is large enough for whole tiles; where every second column is
//! read, it makes rows even.
use super::{
    Contents, Lowered, contraction,
    generic::{Access, Emitter, Loops, Sums},
    moves, squeezed, wide_dims,
};
use crate::attributes::whole_tiles;
use crate::kernel::element::Element;
use irc_dialects::tl;
use irc_mlir::OperationRef;
use irc_tl::{Conv, Op};

/// Lowers a convolution of operands of known sizes and with non-negative padding.
pub fn lower<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    operands: &[Lowered<'c, 'a>],
    shape: &[i64],
    element: Element<'c>,
) -> Result<Contents<'c, 'a>, String> {
    let Op::Conv(conv) = tl::op_of(op)? else { return Err("expected a convolution".into()) };
    let w = &operands[1];
    let pads = pads_of(&conv, &w.shape, shape, &operands[0]);
    let x = padded(emitter, &operands[0], &pads);
    let (batch, groups) = (x.shape[0], conv.groups);
    let (filters, depth) = (w.shape[0] / groups, w.shape[1..].iter().product());
    let places: i64 = shape[2..].iter().product();
    let matrix = |value: &Lowered<'c, 'a>, shape: &[i64]| Lowered {
        shape: shape.to_vec(),
        element,
        contents: moves::reshape(emitter, value, shape),
    };
    let windows = if is_pointwise(&conv, &w.shape) {
        x
    } else {
        let x = seen(emitter, &conv, &x, &w.shape, shape);
        windows(emitter, &conv, &x, &w.shape, shape)
    };
    let windows = matrix(&windows, &[batch, groups, depth, places]);
    let filter = matrix(w, &[groups, filters, depth]);
    // Loops: image, group, filter, position, then the depth.
    let sides: [(&Lowered, &[usize]); 2] = [(&filter, &[1, 2, 4]), (&windows, &[0, 1, 4, 3])];
    let result = [batch, groups, filters, places];
    let contents = contraction::multiply(emitter, sides, &result, element);
    let product = Lowered { shape: result.to_vec(), element, contents };
    Ok(moves::reshape(emitter, &product, shape))
}

/// Whether each filter covers one element, and every element is covered once.
fn is_pointwise(conv: &Conv, filters: &[i64]) -> bool {
    filters[2..].iter().all(|taps| *taps == 1) && conv.strides.iter().all(|step| *step == 1)
}

/// The number of elements before and after the operand along each axis: those that the convolution states, and
/// as many more after it as whole tiles read.
fn pads_of(conv: &Conv, filters: &[i64], result: &[i64], x: &Lowered<'_, '_>) -> Vec<[i64; 2]> {
    let mut pads = conv.pads.clone();
    let in_tiles = filters[2..] == [3, 3]
        && conv.groups == 1
        && conv.strides.iter().chain(&conv.dilations).all(|step| *step == 1)
        && filters[..2].iter().all(|count| *count >= 8)
        && result[2..].iter().product::<i64>() >= 100;
    if in_tiles {
        for (axis, pad) in pads.iter_mut().enumerate() {
            let missing = whole_tiles(result[2 + axis]) - (x.shape[2 + axis] + pad[0] + pad[1]);
            pad[1] += missing.max(0);
        }
    }
    let last = pads.len() - 1;
    if conv.strides[last] == 2 && filters[2..].iter().any(|taps| *taps > 1) {
        pads[last][1] += (x.shape[2 + last] + pads[last][0] + pads[last][1]) % 2;
    }
    pads
}

/// The operand with its padding.
fn padded<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    x: &Lowered<'c, 'a>,
    pads: &[[i64; 2]],
) -> Lowered<'c, 'a> {
    if pads.iter().all(|pads| *pads == [0, 0]) {
        return x.clone();
    }
    let mut shape = x.shape.clone();
    let mut offsets = vec![0; shape.len()];
    for (axis, [before, after]) in pads.iter().enumerate() {
        shape[2 + axis] += before + after;
        offsets[2 + axis] = *before;
    }
    let contents = moves::pad(emitter, x, &shape, &offsets);
    Lowered { shape, element: x.element, contents }
}

/// The part of the operand that the filters cover.
fn seen<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    conv: &Conv,
    x: &Lowered<'c, 'a>,
    filters: &[i64],
    result: &[i64],
) -> Lowered<'c, 'a> {
    let mut shape = x.shape.clone();
    for axis in 0..conv.strides.len() {
        let reach = (filters[2 + axis] - 1) * conv.dilations[axis];
        shape[2 + axis] = reach + (result[2 + axis] - 1) * conv.strides[axis] + 1;
    }
    if shape == x.shape {
        return x.clone();
    }
    let contents = moves::cut(emitter, x, &vec![0; shape.len()], &shape);
    Lowered { shape, element: x.element, contents }
}

/// `[images, channels, taps..., positions...]`: the element under each tap at each position.
fn windows<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    conv: &Conv,
    x: &Lowered<'c, 'a>,
    filters: &[i64],
    result: &[i64],
) -> Lowered<'c, 'a> {
    let spatial = conv.strides.len();
    let shape = [&x.shape[..2], &filters[2..], &result[2..]].concat();
    let loops = wide_dims(&shape);
    let term = |dim: usize, step: i64| {
        loops.iter().position(|wide| *wide == dim).map(|at| (at, step)).into_iter()
    };
    let dims = wide_dims(&x.shape).into_iter().map(|dim| match dim.checked_sub(2) {
        None => term(dim, 1).collect(),
        Some(axis) => term(2 + axis, conv.dilations[axis])
            .chain(term(2 + spatial + axis, conv.strides[axis]))
            .collect(),
    });
    let input = Sums { tensor: emitter.materialise(x), dims: dims.collect() };
    let output = Access {
        tensor: emitter.empty(&squeezed(&shape), x.element),
        loops: (0..loops.len()).collect(),
    };
    let space = Loops::parallel(loops.len());
    let copied = emitter.generic_of_sums(&[input], output, &space, |_, x| irc_mlir::rebind(x[0]));
    Lowered { shape, element: x.element, contents: Contents::Tensor(copied) }
}
