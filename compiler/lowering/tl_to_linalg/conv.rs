//! `tl.conv` as a matrix product of the filters and the windows, or with few filters in a group as a sum over the
//! window.
//!
//! The product has three stages: the operand with its padding, if any; a matrix whose columns hold the elements under
//! the filters at one position (im2col), which for filters of one element is the operand itself; and a
//! matmul per image and group.
//!
//! Where Winograd's algorithm may apply, the padding is large enough for whole tiles; where every second column is
//! read, it makes rows even. The sum over the window has two stages, the padding and the sum.
use super::{
    Contents, Lowered, contraction,
    generic::{Access, Emitter, Loops, Sums},
    moves, quads, squeezed, wide_dims,
};
use crate::kernel::element::{Element, Kind};
use irc_dialects::tl;
use irc_mlir::OperationRef;
use irc_packing::{TILES, whole_tiles};
use irc_tl::{Conv, Op};

/// The number of positions from which Winograd's algorithm may pay.
const MIN_POSITIONS: i64 = 36;

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
    let is_split = steps_by_two(&conv, &w.shape);
    if !conv.is_product(w.shape[0]) {
        let x = padded(emitter, &conv, &operands[0], &pads, is_split);
        let x = seen(emitter, &conv, &x, &w.shape, shape);
        return Ok(direct(emitter, &conv, [&x, w], shape, element));
    }
    let bytes = quads::unsigned_of([operands[0].element, w.element])
        .filter(|_| quads::divides(w.shape[1]) || conv.groups == 1 && w.shape[1] < quads::BYTES);
    let (x, w) = match bytes {
        None => (padded(emitter, &conv, &operands[0], &pads, false), w.clone()),
        Some(_) => (in_quads(emitter, &conv, &operands[0], &pads), quads::quads(emitter, w, 1)),
    };
    let w = &w;
    let (batch, groups) = (x.shape[0], conv.groups);
    let (filters, depth) = (w.shape[0] / groups, w.shape[1..].iter().product());
    let places: i64 = shape[2..].iter().product();
    let matrix = |value: &Lowered<'c, 'a>, shape: &[i64]| Lowered {
        shape: shape.to_vec(),
        contents: moves::reshape(emitter, value, shape),
        ..value.clone()
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
    // The filters are the first operand of the product, and the second of the convolution.
    let contents = match bytes {
        None => contraction::multiply(emitter, sides, &result, element),
        Some(unsigned) => quads::multiply(emitter, sides, &result, 1 - unsigned),
    };
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
        && x.element.kind == Kind::Float
        && result[2..].iter().product::<i64>() >= MIN_POSITIONS;
    if in_tiles {
        for (axis, pad) in pads.iter_mut().enumerate() {
            for tile in TILES {
                let size = x.shape[2 + axis] + pad[0] + pad[1];
                pad[1] += (whole_tiles(result[2 + axis], tile) - size).max(0);
            }
        }
    }
    // Elements of four bytes are copied even if there is no padding.
    let is_copied = x.element.kind != Kind::Float && conv.strides.last() == Some(&2);
    if steps_by_two(conv, filters) || is_copied {
        let last = pads.len() - 1;
        pads[last][1] += (x.shape[2 + last] + pads[last][0] + pads[last][1]) % 2;
    }
    pads
}

/// Whether windows are wider than an element and start at every second column.
fn steps_by_two(conv: &Conv, filters: &[i64]) -> bool {
    conv.strides.last() == Some(&2) && filters[2..].iter().any(|taps| *taps > 1)
}

/// The operand with its padding; a copy even if there is none, if `is_copied`.
fn padded<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    conv: &Conv,
    x: &Lowered<'c, 'a>,
    pads: &[[i64; 2]],
    is_copied: bool,
) -> Lowered<'c, 'a> {
    if !is_copied && pads.iter().all(|pads| *pads == [0, 0]) {
        return x.clone();
    }
    let mut shape = x.shape.clone();
    let mut offsets = vec![0; shape.len()];
    for (axis, [before, after]) in pads.iter().enumerate() {
        shape[2 + axis] += before + after;
        offsets[2 + axis] = *before;
    }
    let contents = moves::pad(emitter, x, &shape, &offsets, conv.outside as f64);
    Lowered { shape, element: x.element, contents }
}

/// The operand with its padding, with four channels of bytes to an element.
fn in_quads<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    conv: &Conv,
    x: &Lowered<'c, 'a>,
    pads: &[[i64; 2]],
) -> Lowered<'c, 'a> {
    let mut shape = x.shape.clone();
    let mut offsets = vec![0; shape.len()];
    shape[1] = quads::count(shape[1]);
    for (axis, [before, after]) in pads.iter().enumerate() {
        shape[2 + axis] += before + after;
        offsets[2 + axis] = *before;
    }
    quads::padded(emitter, x, 1, (&shape, conv.outside), &offsets)
}

/// The sum over the window of each position, given the operand with its padding and the filters.
fn direct<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    conv: &Conv,
    [x, w]: [&Lowered<'c, 'a>; 2],
    shape: &[i64],
    element: Element<'c>,
) -> Contents<'c, 'a> {
    let spatial = conv.strides.len();
    let (channels, filters) = (w.shape[1], w.shape[0] / conv.groups);
    // Loops: image, group, filter, positions, then the channel and the taps.
    let result = [&[shape[0], conv.groups, filters], &shape[2..]].concat();
    let (position, channel) = (3, 3 + spatial);
    let extents = [&result[..], &w.shape[1..]].concat();
    let loops = wide_dims(&extents);
    let mut of_x = vec![vec![(0, 1)], vec![(1, channels), (channel, 1)]];
    let mut of_w = vec![vec![(1, filters), (2, 1)], vec![(channel, 1)]];
    for axis in 0..spatial {
        let tap = channel + 1 + axis;
        of_x.push(vec![(position + axis, conv.strides[axis]), (tap, conv.dilations[axis])]);
        of_w.push(vec![(tap, 1)]);
    }
    let inputs = [sums(emitter, x, &loops, &of_x), sums(emitter, w, &loops, &of_w)];
    let elements = [x.element, w.element];
    let contents =
        contraction::sum_of_products(emitter, &inputs, elements, &loops, &result, element);
    moves::reshape(emitter, &Lowered { shape: result, element, contents }, shape)
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
    let mut dims = vec![vec![(0, 1)], vec![(1, 1)]];
    for axis in 0..spatial {
        let (tap, position) = (2 + axis, 2 + spatial + axis);
        dims.push(vec![(tap, conv.dilations[axis]), (position, conv.strides[axis])]);
    }
    let input = sums(emitter, x, &loops, &dims);
    let output = Access {
        tensor: emitter.empty(&squeezed(&shape), x.element),
        loops: (0..loops.len()).collect(),
    };
    let space = Loops::parallel(loops.len());
    let copied = emitter.generic_of_sums(&[input], output, &space, |_, x| irc_mlir::rebind(x[0]));
    Lowered { shape, element: x.element, contents: Contents::Tensor(copied) }
}

/// An operand whose dimensions are sums of loops, each times a step; only those of `loops`, and dimensions that are not 1,
/// remain.
fn sums<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    operand: &Lowered<'c, 'a>,
    loops: &[usize],
    dims: &[Vec<(usize, i64)>],
) -> Sums<'c, 'a> {
    let term = |(dim, step): &(usize, i64)| {
        loops.iter().position(|wide| wide == dim).map(|at| (at, *step))
    };
    let terms = |dim: usize| dims[dim].iter().filter_map(term).collect();
    let dims = wide_dims(&operand.shape).into_iter().map(terms).collect();
    Sums { tensor: emitter.materialise(operand), dims }
}
