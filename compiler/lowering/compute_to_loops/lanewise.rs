//! Writes a [`Scalar`] for the adjacent elements that the lanes of a vector hold.
use super::{
    element,
    expression::{Body, Known, Typed, scope_of},
};
use crate::kernel::{
    arithmetic,
    emit::{Emit, Lanes},
    expand_math,
};
use crate::lowering::linalg_to_vector::body::{divide, ordered_extremum};
use irc_mlir::ops::arith;
use irc_tl::{Binary, DType, Scalar, Unary};

/// What differs between lanes.
pub(super) trait Elements<'c, 'a> {
    /// Whether a part of an expression does by itself; an expression of it does too.
    fn varies(&self, part: &Scalar) -> bool;

    /// The elements that such a load reads.
    fn load(&self, e: Emit<'c, 'a>, part: &Scalar) -> Typed<'c, 'a>;

    /// What is known of an expression that is the same in all lanes.
    fn divisor(&self, _: &Scalar) -> Divisor {
        Divisor::Exact
    }

    /// Whether an expression is known to be at most zero.
    fn is_nonpositive(&self, _: &Scalar) -> bool {
        false
    }
}

/// What is known of a divisor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Divisor {
    /// Nothing: quotients are exact.
    Exact,
    /// Its last bits depend on the order of a sum, as those of a product with its reciprocal then may.
    Near,
    /// The same, and it is at least 1.
    AtLeastOne,
}

/// The values of expressions that are [lanewise](Scalar::is_lanewise).
pub(super) struct Lanewise<'v, 'n, 'c, 'a, S> {
    /// What is the same in all lanes.
    pub(super) body: &'v mut Body<'n, 'c, 'a>,
    pub(super) elements: S,
    pub(super) lanes: Lanes,
    /// The vectors that are already emitted.
    pub(super) known: Known<'c, 'a>,
}

impl<'c: 'a, 'a, S: Elements<'c, 'a>> Lanewise<'_, '_, 'c, 'a, S> {
    /// The value of an expression in each lane.
    pub(super) fn emit(&mut self, e: Emit<'c, 'a>, scalar: &Scalar) -> Typed<'c, 'a> {
        if let Some(found) = self.known.get(scalar) {
            return *found;
        }
        let value = self.write(e, scalar);
        self.known.insert(scalar.clone(), value);
        value
    }

    fn varies(&self, scalar: &Scalar) -> bool {
        scalar.any(&|part| self.elements.varies(part))
    }

    fn write(&mut self, e: Emit<'c, 'a>, scalar: &Scalar) -> Typed<'c, 'a> {
        if !self.varies(scalar) {
            let (value, dtype) = self.body.emit(e, scalar);
            return (e.splat(value, self.lanes), dtype);
        }
        let (scope, lanes) = (scope_of(e, self.lanes), self.lanes);
        let of = |dtype| element(e.context, dtype);
        match scalar {
            Scalar::Load(..) => self.elements.load(e, scalar),
            Scalar::Unary(function, x) => {
                let is_nonpositive = *function == Unary::Exp && self.elements.is_nonpositive(x);
                let (x, dtype) = self.emit(e, x);
                let single = || of(dtype).storage;
                let value = match (function, dtype) {
                    (Unary::Relu, DType::F32) => {
                        let pair = [e.zero(e.f32(), lanes), x];
                        Some(ordered_extremum(e, true, pair, e.f32(), lanes))
                    }
                    (Unary::Exp, _) if is_nonpositive => {
                        expand_math::exp_of_nonpositive(e, x, single(), lanes)
                    }
                    _ => None,
                };
                let value =
                    value.unwrap_or_else(|| arithmetic::unary(&scope, *function, x, of(dtype)));
                (value, dtype)
            }
            Scalar::Binary(function @ (Binary::Max | Binary::Min), x, y)
                if [x, y].into_iter().any(|operand| is_number(operand)) =>
            {
                // The constant first: the other one, which may be NaN, is left.
                let pair = if is_number(x) { [x, y] } else { [y, x] };
                let [(x, dtype), (y, _)] = pair.map(|operand| self.emit(e, operand));
                let value = match dtype {
                    DType::F32 => {
                        ordered_extremum(e, *function == Binary::Max, [x, y], e.f32(), lanes)
                    }
                    _ => arithmetic::binary(&scope, *function, x, y, of(dtype)),
                };
                (value, dtype)
            }
            Scalar::Binary(function, x, y) => {
                let divisor = match function {
                    Binary::Div if !self.varies(y) => self.elements.divisor(y),
                    _ => Divisor::Exact,
                };
                let ((x, dtype), (y, _)) = (self.emit(e, x), self.emit(e, y));
                let value = match dtype {
                    DType::F32 if divisor != Divisor::Exact => {
                        divide(e, x, y, divisor == Divisor::Near, lanes)
                    }
                    _ => arithmetic::binary(&scope, *function, x, y, of(dtype)),
                };
                (value, dtype)
            }
            Scalar::Compare(comparison, x, y) => {
                let ((x, dtype), (y, _)) = (self.emit(e, x), self.emit(e, y));
                (arithmetic::compare(&scope, *comparison, x, y, of(dtype)), DType::Bool)
            }
            Scalar::Select(parts) => {
                let [(condition, _), (yes, dtype), (no, _)] =
                    [0, 1, 2].map(|part| self.emit(e, &parts[part]));
                let ty = lanes.of(of(dtype).storage);
                (e.op(arith::SELECT, &[condition, yes, no], ty), dtype)
            }
            Scalar::Cast(to, rounding, x) => {
                let (x, from) = self.emit(e, x);
                (arithmetic::cast(&scope, x, of(from), of(*to), *rounding), *to)
            }
            Scalar::Float(..) | Scalar::Int(..) | Scalar::Loop(_) | Scalar::Size(_) => {
                unreachable!("only loads and functions of them differ between lanes")
            }
        }
    }
}

/// Whether an expression is a constant other than NaN.
fn is_number(scalar: &Scalar) -> bool {
    matches!(scalar, Scalar::Float(bits, _) if !f64::from_bits(*bits).is_nan())
}
