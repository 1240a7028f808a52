//! Short names for writing formulas on values.

use crate::context::{Context, LowerError};
use irc_tl::{Binary, Builder, Built, Comparison, DType, Dim, Reduction, Unary, ValueId};

/// Arithmetic on values of one element type, which broadcast.
pub(super) trait Formula {
    /// A scalar of a value's element type.
    fn number(&mut self, number: f64, like: ValueId) -> Built;
    fn add(&mut self, x: ValueId, y: ValueId) -> Built;
    fn sub(&mut self, x: ValueId, y: ValueId) -> Built;
    fn mul(&mut self, x: ValueId, y: ValueId) -> Built;
    fn div(&mut self, x: ValueId, y: ValueId) -> Built;
    fn max(&mut self, x: ValueId, y: ValueId) -> Built;
    fn min(&mut self, x: ValueId, y: ValueId) -> Built;
    /// `x + number`.
    fn plus(&mut self, x: ValueId, number: f64) -> Built;
    /// `x * number`.
    fn times(&mut self, x: ValueId, number: f64) -> Built;
    /// Compares `x` with a number.
    fn compare_number(&mut self, how: Comparison, x: ValueId, number: f64) -> Built;
    /// The mean over axes, which are kept with extent 1.
    fn mean_over(&mut self, x: ValueId, axes: &[usize]) -> Built;
    /// `1 / sqrt(x + epsilon)`.
    fn inverse_root(&mut self, x: ValueId, epsilon: f64) -> Built;
    /// A vector with one element per index of an axis, shaped to broadcast with values of a rank.
    fn along(&mut self, x: ValueId, axis: usize, rank: usize) -> Built;
}

impl Formula for Builder {
    fn number(&mut self, number: f64, like: ValueId) -> Built {
        let dtype = self.dtype(like);
        self.scalar(number, dtype)
    }

    fn add(&mut self, x: ValueId, y: ValueId) -> Built {
        self.binary(Binary::Add, x, y)
    }

    fn sub(&mut self, x: ValueId, y: ValueId) -> Built {
        self.binary(Binary::Sub, x, y)
    }

    fn mul(&mut self, x: ValueId, y: ValueId) -> Built {
        self.binary(Binary::Mul, x, y)
    }

    fn div(&mut self, x: ValueId, y: ValueId) -> Built {
        self.binary(Binary::Div, x, y)
    }

    fn max(&mut self, x: ValueId, y: ValueId) -> Built {
        self.binary(Binary::Max, x, y)
    }

    fn min(&mut self, x: ValueId, y: ValueId) -> Built {
        self.binary(Binary::Min, x, y)
    }

    fn plus(&mut self, x: ValueId, number: f64) -> Built {
        let number = self.number(number, x)?;
        self.add(x, number)
    }

    fn times(&mut self, x: ValueId, number: f64) -> Built {
        if number == 1.0 {
            return Ok(x);
        }
        let number = self.number(number, x)?;
        self.mul(x, number)
    }

    fn compare_number(&mut self, how: Comparison, x: ValueId, number: f64) -> Built {
        let number = self.number(number, x)?;
        self.compare(how, x, number)
    }

    fn mean_over(&mut self, x: ValueId, axes: &[usize]) -> Built {
        self.reduce(Reduction::Mean, x, axes, true)
    }

    fn inverse_root(&mut self, x: ValueId, epsilon: f64) -> Built {
        let sum = self.plus(x, epsilon)?;
        self.unary(Unary::Rsqrt, sum)
    }

    fn along(&mut self, x: ValueId, axis: usize, rank: usize) -> Built {
        let mut dims = vec![Dim::Known(1); rank.max(1)];
        dims[axis] = Dim::product(&self.dims(x));
        self.reshape(x, &dims)
    }
}

/// Computes a formula of one operand with a single rounding: narrow floats are computed in `f32`.
pub(super) fn rounding_once(
    b: &mut Builder,
    x: ValueId,
    formula: impl FnOnce(&mut Builder, ValueId) -> Built,
) -> Built {
    let dtype = b.dtype(x);
    let wide = widened(b, x)?;
    let result = formula(b, wide)?;
    b.cast(result, dtype)
}

/// A value converted to `f32` if it has a narrower float type.
pub(super) fn widened(b: &mut Builder, x: ValueId) -> Built {
    let dtype = b.dtype(x);
    if dtype.is_float() && dtype.size() < 4 { b.cast(x, DType::F32) } else { Ok(x) }
}

/// The two operands of an operator that broadcasts. Before version 7 broadcasting is requested by an
/// attribute: the second operand is then aligned at an axis of the first, by default the last.
///
/// # Errors
/// If one is omitted, or the second does not fit at that axis.
pub(super) fn broadcast_operands(cx: &mut Context<'_>) -> Result<[ValueId; 2], LowerError> {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    let Some(axis) = cx.int("axis")?.filter(|_| cx.version < 7) else { return Ok([x, y]) };
    if cx.int_or("broadcast", 0)? == 0 {
        return Ok([x, y]);
    }
    let (rank, own) = (cx.b.rank(x), cx.b.rank(y));
    // An axis counted from the end is one of the first operand.
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    let after = rank as i64 - axis - own as i64;
    if axis < 0 || after < 0 {
        let (x, y) = (cx.ty(x), cx.ty(y));
        return Err(LowerError::invalid(format!(
            "expected the second operand to fit at axis {axis} of {x}, found {y}"
        )));
    }
    let mut dims = cx.b.dims(y);
    dims.extend((0..after).map(|_| Dim::Known(1)));
    Ok([x, cx.b.reshape(y, &dims)?])
}
