//! Discrete Fourier transforms, as products with a matrix of roots of unity.

use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::pieces::{loops, size, slice, wide};
use irc_tl::{Binary, Builder, Built, Compute, DType, Dim, Relation, Scalar, Unary, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] =
    &[Operator::new("DFT", &[17, 20], dft), Operator::new("STFT", &[17], stft)];

/// Matrices of at most this many elements are constants; larger ones are computed at run time.
const STATED: i64 = 1 << 20;

/// A transform of `count` numbers, given some of them, returning some of the result.
struct Transform {
    /// The length of the transform.
    count: Dim,
    /// Whether numbers are complex or real.
    complex: bool,
    /// The number of given elements; the other half of a spectrum follows from symmetry.
    given: Dim,
    /// The number of result elements.
    wanted: Dim,
    /// Whether it is the inverse, which divides by the count.
    inverse: bool,
    /// Whether the result is real, computed from half a spectrum.
    real: bool,
}

fn dft(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let ty = cx.ty(x);
    let rank = ty.rank();
    if rank < 2 {
        return Err(LowerError::invalid(format!("expected rank 2 or more, found {ty}")));
    }
    let axis = if cx.version < 20 {
        cx.int_or("axis", 1)?
    } else {
        cx.constant_ints(2)?.and_then(|axis| axis.first().copied()).unwrap_or(-2)
    };
    let axis = cx.axis(axis, rank)?;
    if axis == rank - 1 {
        let message = "expected an axis of the signal, found that of real and imaginary parts";
        return Err(LowerError::invalid(message));
    }
    let (x, complex) = with_parts(cx, x)?;
    let (onesided, inverse) = (cx.int_or("onesided", 0)? != 0, cx.int_or("inverse", 0)? != 0);
    let real = onesided && inverse;
    let own = ty.dims[axis].clone();
    let count = match cx.optional(1) {
        Some(_) => single(cx, 1)?,
        None if real => (own - 1.into()) * 2.into(),
        None => own,
    };
    let half = count.floor_div(&2.into()) + 1.into();
    let given = if real { half.clone() } else { count.clone() };
    let wanted = if onesided && !inverse { half } else { count.clone() };
    let transform = Transform { count, complex, given, wanted, inverse, real };

    let rows = transform.rows(cx.b, x, axis)?;
    let result = transform.apply(cx.b, rows)?;
    // `[..., parts, wanted]`, with the axis moved to the end.
    let from = |to: usize| match to {
        to if to == axis => rank - 1,
        to if to == rank - 1 => rank - 2,
        to if to > axis => to - 1,
        to => to,
    };
    let permutation: Vec<usize> = (0..rank).map(from).collect();
    let result = cx.b.transpose(result, &permutation)?;
    one(cx.b.cast(result, ty.dtype))
}

fn stft(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let ty = cx.ty(x);
    let x = match ty.rank() {
        2 => cx.b.reshape(x, &[ty.dims[0].clone(), ty.dims[1].clone(), 1.into()])?,
        3 => x,
        _ => return Err(LowerError::invalid(format!("expected rank 3, found {ty}"))),
    };
    let step = single(cx, 1)?;
    let window = cx.optional(2);
    let of_window = window.map(|window| cx.b.dims(window)[0].clone());
    let length = match (cx.optional(3), of_window) {
        (Some(_), of_window) => {
            let length = single(cx, 3)?;
            if let Some(own) = of_window {
                let message = "expected a window of the length of a frame";
                cx.b.require(&own, Relation::Equal, &length, message)?;
            }
            length
        }
        (None, Some(own)) => own,
        (None, None) => return Err(LowerError::invalid("expected a window or frame_length")),
    };
    let (x, complex) = with_parts(cx, x)?;
    let dims = cx.b.dims(x);
    let frames = (dims[1].clone() - length.clone()).floor_div(&step) + 1.into();
    let half = length.floor_div(&2.into()) + 1.into();
    let wanted = if cx.int_or("onesided", 1)? != 0 { half } else { length.clone() };
    let given = length.clone();
    let transform =
        Transform { count: length.clone(), complex, given, wanted, inverse: false, real: false };

    let computed = wide(ty.dtype);
    let at = Scalar::Loop(1) * size(&step) + Scalar::Loop(3);
    let mut body = Scalar::load(0, [Scalar::Loop(0), at, Scalar::Loop(2)]).cast(computed);
    let mut operands = vec![x];
    if let Some(window) = window {
        body = body * Scalar::load(1, [Scalar::Loop(3)]).cast(computed);
        operands.push(window);
    }
    let cut = [dims[0].clone(), frames, dims[2].clone(), length];
    let cut = cx.b.compute(Compute::map(cut, body), &operands)?;
    let result = transform.apply(cx.b, cut)?;
    let result = cx.b.transpose(result, &[0, 1, 3, 2])?;
    one(cx.b.cast(result, ty.dtype))
}

/// The single integer of an input.
fn single(cx: &mut Context<'_>, index: usize) -> Result<Dim, LowerError> {
    let sizes = cx.sizes(index)?;
    let [size] = &sizes[..] else {
        let message = format!("expected one number as input {index}, found {}", sizes.len());
        return Err(LowerError::invalid(message));
    };
    Ok(size.clone())
}

/// The value, and whether its numbers are complex. If that is unknown they are extended to two parts.
fn with_parts(cx: &mut Context<'_>, x: ValueId) -> Result<(ValueId, bool), LowerError> {
    let mut dims = cx.b.dims(x);
    let last = dims.len() - 1;
    let found = dims[last].clone();
    match found.known() {
        Some(1) => return Ok((x, false)),
        Some(2) => return Ok((x, true)),
        Some(_) => {
            let message = format!("expected a last dimension of 1 or 2, found {found}");
            return Err(LowerError::invalid(message));
        }
        None => {}
    }
    let message = "expected a last dimension of 1 or 2";
    cx.b.require(&found, Relation::AtMost, &2.into(), message)?;
    dims[last] = 2.into();
    let inside = Scalar::Loop(last).lt(size(&found));
    let zero = Scalar::number(0, cx.dtype(x));
    let body = inside.select(Scalar::load(0, loops(0..dims.len())), zero);
    Ok((cx.b.compute(Compute::map(dims, body), &[x])?, true))
}

impl Transform {
    const fn parts(&self) -> i64 {
        if self.complex { 2 } else { 1 }
    }

    /// `[..., parts, given]`: the axis moved to the end, truncated or padded with zeros.
    fn rows(&self, b: &mut Builder, x: ValueId, axis: usize) -> Built {
        let ty = b.ty(x).clone();
        let x = b.cast(x, wide(ty.dtype))?;
        let mut permutation: Vec<usize> = (0..ty.rank()).filter(|other| *other != axis).collect();
        permutation.push(axis);
        let x = b.transpose(x, &permutation)?;
        let last = ty.rank() - 1;
        let own = ty.dims[axis].clone();
        if own == self.given {
            return Ok(x);
        }
        if let (Some(own), Some(given)) = (own.known(), self.given.known())
            && given < own
        {
            return slice(b, x, last, &0.into(), &self.given);
        }
        let mut dims = b.dims(x);
        dims[last] = self.given.clone();
        let zero = Scalar::number(0, b.dtype(x));
        let inside = Scalar::Loop(last).lt(size(&own));
        let body = inside.select(Scalar::load(0, loops(0..dims.len())), zero);
        b.compute(Compute::map(dims, body), &[x])
    }

    /// `[..., parts, wanted]` from `[..., parts, given]`.
    fn apply(&self, b: &mut Builder, rows: ValueId) -> Built {
        let dims = b.dims(rows);
        let outer = dims[..dims.len() - 2].to_vec();
        let depth = self.given.clone() * self.parts().into();
        let rows = b.reshape(rows, &[Dim::product(&outer), depth.clone()])?;
        let results = Dim::Known(if self.real { 1 } else { 2 });
        let matrix = self.matrix(b, b.dtype(rows))?;
        let columns = results.clone() * self.wanted.clone();
        let matrix = b.reshape(matrix, &[depth, columns])?;
        let result = b.matmul(rows, matrix)?;
        let mut dims = outer;
        dims.extend([results, self.wanted.clone()]);
        b.reshape(result, &dims)
    }

    /// `[parts, given, parts of the result, wanted]`: the contribution of each given element to each result.
    fn matrix(&self, b: &mut Builder, dtype: DType) -> Built {
        let results = Dim::Known(if self.real { 1 } else { 2 });
        let dims = [self.parts().into(), self.given.clone(), results, self.wanted.clone()];
        let [part, from, result, to] = [0, 1, 2, 3].map(Scalar::Loop);
        let count = || size(&self.count);
        // The product may be large: only its remainder matters.
        let turns = (from.clone() * to).binary(Binary::Rem, count()).cast(DType::F64);
        let turn = Scalar::float(std::f64::consts::TAU, DType::F64);
        let angle = turns * turn / count().cast(DType::F64);
        let sign = if self.inverse { 1.0 } else { -1.0 };
        let sine = angle.clone().unary(Unary::Sin) * Scalar::float(sign, DType::F64);
        let zero = || Scalar::index(0);
        let straight = part.clone().equals(result);
        let crossed = part.equals(zero()).select(sine.clone(), sine.unary(Unary::Neg));
        let mut body = straight.select(angle.unary(Unary::Cos), crossed);
        if self.real {
            // The other half of the spectrum is the conjugate of this one.
            let alone = from.clone().equals(zero());
            let middle = (from * Scalar::index(2)).equals(count());
            let number = |value| Scalar::float(value, DType::F64);
            let weight = alone.binary(Binary::Or, middle).select(number(1.0), number(2.0));
            body = body * weight;
        }
        if self.inverse {
            body = body / count().cast(DType::F64);
        }
        let compute = Compute::map(dims, body.cast(dtype));
        let count = Dim::product(&compute.dims).known();
        if count.is_some_and(|count| (0..=STATED).contains(&count)) {
            let matrix = compute.eval(&[])?;
            return Ok(b.tensor(&matrix));
        }
        b.compute(compute, &[])
    }
}
