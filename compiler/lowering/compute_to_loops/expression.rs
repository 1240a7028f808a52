//! Writes a [`Scalar`] as ops: each part once, and guarded parts only under their condition.
use super::{element, sizes::Sizes, stored};
use crate::kernel::{
    arithmetic,
    element::Element,
    emit::{Buffer, Emit, Lanes},
    scope::Scope,
};
use irc_mlir::ops::arith;
use irc_mlir::{Type as MlirType, Value, attr};
use irc_tl::{DType, Dim, Scalar, Type};
use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;

/// A value and its element type.
pub(super) type Typed<'c, 'a> = (Value<'c, 'a>, DType);

/// Values already emitted. Used only for look-ups, so hash order is harmless.
pub(super) type Known<'c, 'a> = HashMap<Scalar, Typed<'c, 'a>>;

/// The inputs of an expression.
pub(super) struct Body<'n, 'c, 'a> {
    pub(super) operands: &'n [(&'n Type, Buffer<'c, 'a>)],
    pub(super) sizes: &'n Sizes<'c, 'a>,
    /// The index of each loop, as `i64`.
    pub(super) loops: Vec<Value<'c, 'a>>,
    /// The value of a load of [`RESULT`].
    pub(super) reduced: Option<Typed<'c, 'a>>,
    /// The values already emitted, outermost region first.
    pub(super) known: Vec<Known<'c, 'a>>,
}

/// The operand that stands for the reduced value in an expression of it.
pub(super) const RESULT: usize = usize::MAX;

impl<'c: 'a, 'a> Body<'_, 'c, 'a> {
    /// The value of an expression.
    pub(super) fn emit(&mut self, e: Emit<'c, 'a>, scalar: &Scalar) -> Typed<'c, 'a> {
        if let Some(found) = self.known.iter().rev().find_map(|region| region.get(scalar)) {
            return *found;
        }
        let value = self.write(e, scalar);
        if let Some(region) = self.known.last_mut() {
            region.insert(scalar.clone(), value);
        }
        value
    }

    fn write(&mut self, e: Emit<'c, 'a>, scalar: &Scalar) -> Typed<'c, 'a> {
        let scope = scope(e);
        let of = |dtype: DType| element(e.context, dtype);
        match scalar {
            Scalar::Float(bits, dtype) => {
                (scope.constant(of(*dtype), f64::from_bits(*bits)), *dtype)
            }
            Scalar::Int(value, dtype) => (arithmetic::whole(&scope, *value, of(*dtype)), *dtype),
            Scalar::Loop(index) => (self.loops[*index], DType::I64),
            Scalar::Size(dim) => (self.size(e, dim), DType::I64),
            Scalar::Load(RESULT, _) => match self.reduced {
                Some(reduced) => reduced,
                None => unreachable!("only what follows a reduction reads its result"),
            },
            Scalar::Load(operand, at) => self.load(e, *operand, at),
            Scalar::Unary(function, x) => {
                let (x, dtype) = self.emit(e, x);
                (arithmetic::unary(&scope, *function, x, of(dtype)), dtype)
            }
            Scalar::Binary(function, x, y) => {
                let ((x, dtype), (y, _)) = (self.emit(e, x), self.emit(e, y));
                (arithmetic::binary(&scope, *function, x, y, of(dtype)), dtype)
            }
            Scalar::Compare(comparison, x, y) => {
                let ((x, dtype), (y, _)) = (self.emit(e, x), self.emit(e, y));
                (arithmetic::compare(&scope, *comparison, x, y, of(dtype)), DType::Bool)
            }
            Scalar::Select(parts) => self.select(e, parts),
            Scalar::Cast(to, rounding, x) => {
                let (x, from) = self.emit(e, x);
                (arithmetic::cast(&scope, x, of(from), of(*to), *rounding), *to)
            }
        }
    }

    /// Evaluates both sides if neither reads memory, otherwise branches.
    fn select(&mut self, e: Emit<'c, 'a>, parts: &[Scalar; 3]) -> Typed<'c, 'a> {
        let [condition, yes, no] = parts;
        let (condition, _) = self.emit(e, condition);
        if !loads(yes) && !loads(no) {
            let ((yes, dtype), (no, _)) = (self.emit(e, yes), self.emit(e, no));
            let ty = element(e.context, dtype).storage;
            return (e.op(arith::SELECT, &[condition, yes, no], ty), dtype);
        }
        let dtype = self.dtype(yes);
        let ty = element(e.context, dtype).storage;
        let body = RefCell::new(self);
        let side = |e: Emit<'c, 'a>, scalar: &Scalar| {
            let mut body = body.borrow_mut();
            body.known.push(HashMap::new());
            let (value, _) = body.emit(e, scalar);
            body.known.pop();
            Ok::<_, Infallible>(vec![value])
        };
        let Ok(chosen) = e.if_else(condition, &[ty], |e| side(e, yes), |e| side(e, no));
        (chosen[0], dtype)
    }

    fn load(&mut self, e: Emit<'c, 'a>, operand: usize, at: &[Scalar]) -> Typed<'c, 'a> {
        let (ty, buffer) = self.operands[operand];
        let place = self.place(e, operand, at);
        (from_memory(e, e.load(buffer, place), ty.dtype), ty.dtype)
    }

    /// The place of an element of an operand in its memory, as an `index`.
    pub(super) fn place(
        &mut self,
        e: Emit<'c, 'a>,
        operand: usize,
        at: &[Scalar],
    ) -> Value<'c, 'a> {
        let (ty, _) = self.operands[operand];
        let mut linear = None;
        for (index, dim) in at.iter().zip(&ty.dims) {
            let (index, _) = self.emit(e, index);
            linear = Some(match linear {
                None => index,
                Some(outer) => {
                    let scaled = e.binary(arith::MULI, outer, self.size(e, dim));
                    e.binary(arith::ADDI, scaled, index)
                }
            });
        }
        match linear {
            None => e.index(0),
            Some(linear) => e.op(arith::INDEX_CAST, &[linear], MlirType::index(e.context)),
        }
    }

    /// A size as an `i64`.
    pub(super) fn size(&self, e: Emit<'c, 'a>, dim: &Dim) -> Value<'c, 'a> {
        if let Some(known) = dim.known() {
            return e.integer(known, 64, Lanes::Scalar);
        }
        e.op(arith::INDEX_CAST, &[self.sizes.value(e, dim)], e.int(64))
    }

    /// The type of a part of a body; inference has accepted the body.
    fn dtype(&self, scalar: &Scalar) -> DType {
        match scalar {
            Scalar::Float(_, dtype) | Scalar::Int(_, dtype) | Scalar::Cast(dtype, ..) => *dtype,
            Scalar::Loop(_) | Scalar::Size(_) => DType::I64,
            Scalar::Load(RESULT, _) => self.reduced.map_or(DType::F32, |(_, dtype)| dtype),
            Scalar::Load(operand, _) => self.operands[*operand].0.dtype,
            Scalar::Unary(_, x) | Scalar::Binary(_, x, _) => self.dtype(x),
            Scalar::Compare(..) => DType::Bool,
            Scalar::Select(parts) => self.dtype(&parts[1]),
        }
    }
}

/// The index of a loop as a number of an expression.
pub(super) fn loop_number<'c: 'a, 'a>(e: Emit<'c, 'a>, index: Value<'c, 'a>) -> Value<'c, 'a> {
    e.op(arith::INDEX_CAST, &[index], e.int(64))
}

/// The scope in which scalar ops are emitted.
pub(super) fn scope<'c: 'a, 'a>(e: Emit<'c, 'a>) -> Scope<'c, 'a> {
    scope_of(e, Lanes::Scalar)
}

/// The scope in which ops on so many elements are emitted.
pub(super) fn scope_of<'c: 'a, 'a>(e: Emit<'c, 'a>, lanes: Lanes) -> Scope<'c, 'a> {
    Scope { context: e.context, block: e.block, location: e.location, expand: true, lanes }
}

/// A loaded element as a number: a `bool` is a byte in memory, and only the low bits of the byte count for
/// integers below 8 bits.
pub(super) fn from_memory<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    value: Value<'c, 'a>,
    dtype: DType,
) -> Value<'c, 'a> {
    if dtype != DType::Bool {
        return arithmetic::wrap(&scope(e), value, element(e.context, dtype));
    }
    const NE: i64 = 1;
    let zero = e.zero(stored(e.context, dtype), Lanes::Scalar);
    let spec = e.spec(arith::CMPI).operands(&[value, zero]).results(&[e.int(1)]);
    e.value(spec.attr("predicate", attr::i64(e.context, NE)))
}

/// A number in its storage type.
pub(super) fn to_memory<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    value: Value<'c, 'a>,
    dtype: DType,
) -> Value<'c, 'a> {
    if dtype != DType::Bool {
        return value;
    }
    e.op(arith::EXTUI, &[value], stored(e.context, dtype))
}

/// Whether evaluating the expression reads an operand.
pub(super) fn loads(scalar: &Scalar) -> bool {
    let mut found = false;
    scalar
        .walk(&mut |part| found |= matches!(part, Scalar::Load(operand, _) if *operand != RESULT));
    found
}

/// Whether an expression depends on the index of a loop.
pub(super) fn depends_on(scalar: &Scalar, loop_: usize) -> bool {
    let mut found = false;
    scalar.walk(&mut |part| found |= *part == Scalar::Loop(loop_));
    found
}

/// Whether an expression reads neighbouring elements of an operand in neighbouring iterations of a loop.
pub(super) fn reads_along(scalar: &Scalar, loop_: usize) -> bool {
    let mut found = false;
    scalar.walk(&mut |part| {
        if let Scalar::Load(_, at) = part {
            found |= at.last().is_some_and(|innermost| depends_on(innermost, loop_));
        }
    });
    found
}

/// The element type of an accumulator.
pub(super) fn accumulator<'c>(context: &'c irc_mlir::Context, dtype: DType) -> Element<'c> {
    element(context, dtype).compute(context)
}
