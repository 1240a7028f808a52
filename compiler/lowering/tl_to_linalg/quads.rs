//! Elements of four bytes, as sums of products of bytes read them.
//!
//! A product of `u8` and `i8` is computed in `i32`. If its depth is a multiple of 4, neighbouring bytes along it become one
//! element of both operands, so that processors multiply and add four of them at once; the depth is a quarter then. A
//! schedule that knows such products (`tl.dots`) reads bytes that are in this order already as they are.
use super::{
    Contents, Lowered,
    generic::{Access, Emitter, Loops},
    moves, squeezed,
    sums::{sides, sum_of},
    wide_dims,
};
use crate::attributes::{DOTS, QUADS};
use crate::kernel::{
    element::{Element, Kind},
    scope::Scope,
};
use irc_mlir::ops::arith;
use irc_mlir::{Value, read, ty};

/// Bytes of an element.
pub const BYTES: i64 = 4;

/// The number of elements of four bytes, or of one element of fewer.
pub fn count(bytes: i64) -> i64 {
    (bytes + BYTES - 1) / BYTES
}

/// The operand whose bytes are unsigned, if those of the other are signed.
pub fn unsigned_of(elements: [Element<'_>; 2]) -> Option<i64> {
    let kinds = elements.map(|element| (element.bits, element.kind));
    match kinds {
        [(8, Kind::Unsigned), (8, Kind::Signed)] => Some(0),
        [(8, Kind::Signed), (8, Kind::Unsigned)] => Some(1),
        _ => None,
    }
}

/// Whether there are so many elements along an axis that they are elements of four bytes.
pub fn divides(size: i64) -> bool {
    size > 0 && size % BYTES == 0
}

/// An element of four bytes.
fn quad<'c>(emitter: &Emitter<'c, '_>) -> Element<'c> {
    Element {
        storage: ty::parse(emitter.context, "i32"),
        bits: 32,
        kind: Kind::Signed,
        small: None,
    }
}

/// The shape with a quarter of the elements along an axis.
fn quarter(shape: &[i64], axis: usize) -> Vec<i64> {
    let mut quarter = shape.to_vec();
    quarter[axis] = count(quarter[axis]);
    quarter
}

/// The first, second, third and fourth of each four bytes along an axis; if it has fewer, each of them.
fn parts<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    x: &Lowered<'c, 'a>,
    axis: usize,
) -> Vec<Lowered<'c, 'a>> {
    let shape = quarter(&x.shape, axis);
    let mut split = shape.clone();
    let bytes = x.shape[axis].min(BYTES);
    split.insert(axis + 1, bytes);
    let contents = moves::reshape(emitter, x, &split);
    let whole = Lowered { shape: split.clone(), contents, ..x.clone() };
    split[axis + 1] = 1;
    let part = |byte: i64| {
        let mut offsets = vec![0; split.len()];
        offsets[axis + 1] = byte;
        let contents = moves::cut(emitter, &whole, &offsets, &split);
        Lowered { shape: shape.clone(), contents, ..x.clone() }
    };
    (0..bytes).map(part).collect()
}

/// At most four bytes as one element, the first in the lowest bits.
fn join<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    bytes: &[Value<'c, '_>],
    quad: Element<'c>,
) -> Value<'c, 'b> {
    let extended = |byte: usize| -> Value<'c, '_> {
        let wide = scope.op(arith::EXTUI, &[bytes[byte]], quad.storage);
        let by: Value = scope.constant(quad, 8.0 * byte as f64);
        if byte == 0 { wide } else { scope.op(arith::SHLI, &[wide, by], quad.storage) }
    };
    let joined = (1..bytes.len()).fold(extended(0), |joined, byte| {
        scope.op(arith::ORI, &[joined, extended(byte)], quad.storage)
    });
    irc_mlir::rebind(joined)
}

/// Each four bytes along an axis as one element.
pub fn quads<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    x: &Lowered<'c, 'a>,
    axis: usize,
) -> Lowered<'c, 'a> {
    let (shape, element) = (quarter(&x.shape, axis), quad(emitter));
    let loops = wide_dims(&shape);
    let dims: Vec<usize> = (0..loops.len()).collect();
    let access =
        |part: &Lowered<'c, 'a>| Access { tensor: emitter.materialise(part), loops: dims.clone() };
    let inputs: Vec<Access> = parts(emitter, x, axis).iter().map(access).collect();
    let output = Access { tensor: emitter.empty(&squeezed(&shape), element), loops: dims.clone() };
    let space = Loops::parallel(loops.len());
    let tensor = emitter
        .generic(&inputs, output, &space, |scope, x| join(scope, &x[..inputs.len()], element));
    if let Some(generic) = read::defining_op(tensor) {
        QUADS.write(generic, ());
    }
    Lowered { shape, element, contents: Contents::Tensor(tensor) }
}

/// As [`quads`], at these offsets in a shape, in which the axis has a quarter of the elements, and all other bytes are
/// `outside`.
pub fn padded<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    x: &Lowered<'c, 'a>,
    axis: usize,
    (shape, outside): (&[i64], i64),
    offsets: &[i64],
) -> Lowered<'c, 'a> {
    let element = quad(emitter);
    let parts = parts(emitter, x, axis);
    let outside = i32::from_le_bytes([outside as u8; BYTES as usize]);
    let dest = Contents::Splat(f64::from(outside));
    let dest = Lowered { shape: shape.to_vec(), element, contents: dest };
    let contents = moves::pad_joined(emitter, &dest, &parts, offsets, |scope, bytes| {
        join(scope, bytes, element)
    });
    Lowered { shape: shape.to_vec(), element, contents }
}

/// The sum over the last loops of the products of elements of four bytes, of which those of `unsigned` are unsigned.
pub fn multiply<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    operands: [(&Lowered<'c, 'a>, &[usize]); 2],
    shape: &[i64],
    unsigned: i64,
) -> Contents<'c, 'a> {
    let element = quad(emitter);
    let (inputs, loops) = sides(emitter, operands, shape);
    let contents = sum_of(emitter, &inputs, &loops, shape, element, |scope, x| {
        sum_of_bytes(scope, x, element, unsigned as usize)
    });
    if let Contents::Tensor(tensor) = contents
        && let Some(generic) = read::defining_op(tensor)
    {
        DOTS.write(generic, unsigned);
    }
    contents
}

/// The products of the bytes of two elements, added to a third.
fn sum_of_bytes<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    x: &[Value<'c, '_>],
    element: Element<'c>,
    unsigned: usize,
) -> Value<'c, 'b> {
    let op = |name: &str, a: Value<'c, '_>, b: Value<'c, '_>| -> Value<'c, '_> {
        irc_mlir::rebind(scope.op(name, &[a, b], element.storage))
    };
    let number = |value: i64| -> Value<'c, '_> { scope.constant(element, value as f64) };
    let mut sum: Value = irc_mlir::rebind(x[2]);
    for byte in 0..BYTES {
        let own = op(arith::SHRUI, x[unsigned], number(8 * byte));
        let own = op(arith::ANDI, own, number(255));
        let other = op(arith::SHLI, x[1 - unsigned], number(24 - 8 * byte));
        let other = op(arith::SHRSI, other, number(24));
        sum = op(arith::ADDI, sum, op(arith::MULI, own, other));
    }
    irc_mlir::rebind(sum)
}
