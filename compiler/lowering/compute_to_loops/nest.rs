//! Loops around an expression.
use super::{
    element,
    expression::{Body, RESULT, Typed, accumulator, scope, to_memory},
    sizes::Sizes,
};
use crate::lowering::{
    arithmetic,
    linalg_to_vector::emit::{Buffer, Emit, Lanes},
    tl_to_linalg::element::{Element, Kind},
};
use irc_mlir::{Value, attr};
use irc_tl::{Binary, Combine, Compute, DType, Dim, Number, Reduce, Rounding, Scalar, Type};
use std::collections::HashMap;
use std::convert::Infallible;

/// Loops, the expression in them, and what is done with each result.
pub(super) struct Nest {
    pub(super) compute: Compute,
    /// The element that is stored, of what was reduced as a load of [`RESULT`].
    pub(super) epilogue: Option<Scalar>,
    /// No loops at all: another type of the same memory.
    pub(super) is_view: bool,
}

impl Nest {
    pub(super) fn of(compute: Compute) -> Self {
        Self { compute, epilogue: None, is_view: false }
    }

    /// A view.
    pub(super) fn view() -> Self {
        let nothing = Compute::map([], Scalar::index(0));
        Self { is_view: true, ..Self::of(nothing) }
    }

    /// The mean of what a sum adds: it is divided before it is rounded or wraps around.
    pub(super) fn mean(mut sum: Compute, dtype: DType) -> Self {
        let wide = match dtype {
            DType::F64 => DType::F64,
            _ if dtype.is_float() => DType::F32,
            _ if dtype.is_signed_integer() => DType::I64,
            _ => DType::U64,
        };
        let over = sum.reduction.iter().flat_map(|reduction| &reduction.dims);
        let count = Scalar::Size(Dim::product(over)).cast(wide);
        sum.body = sum.body.cast(wide);
        let mean = Scalar::load(RESULT, []).binary(Binary::Div, count).cast(dtype);
        Self { epilogue: Some(mean), ..Self::of(sum) }
    }

    /// Every size in the nest.
    pub(super) fn sizes(&self, found: &mut Vec<Dim>) {
        found.extend(self.compute.dims.iter().cloned());
        found.extend(self.compute.reduction.iter().flat_map(|over| over.dims.iter().cloned()));
        let mut visit = |scalar: &Scalar| {
            if let Scalar::Size(dim) = scalar {
                found.push(dim.clone());
            }
        };
        self.compute.body.walk(&mut visit);
        self.epilogue.iter().for_each(|epilogue| epilogue.walk(&mut visit));
    }
}

/// Emits a nest that writes `result`.
pub(super) fn emit<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    nest: &Nest,
    operands: &[(&Type, Buffer<'c, 'a>)],
    result: Buffer<'c, 'a>,
    sizes: &Sizes<'c, 'a>,
) {
    let flat = flattened(nest, operands);
    let (nest, types) = match &flat {
        Some((nest, types)) => (nest, types.iter().collect()),
        None => (nest, operands.iter().map(|(ty, _)| *ty).collect::<Vec<_>>()),
    };
    let operands: Vec<_> =
        types.into_iter().zip(operands).map(|(ty, (_, buffer))| (ty, *buffer)).collect();
    let writer = Writer { nest, operands: &operands, result, sizes };
    writer.outer(e, &mut vec![]);
}

struct Writer<'n, 'c, 'a> {
    nest: &'n Nest,
    operands: &'n [(&'n Type, Buffer<'c, 'a>)],
    result: Buffer<'c, 'a>,
    sizes: &'n Sizes<'c, 'a>,
}

impl<'c: 'a, 'a> Writer<'_, 'c, 'a> {
    /// The loops over the result that are left, then one element.
    fn outer(&self, e: Emit<'c, 'a>, at: &mut Vec<Value<'c, 'a>>) {
        let Some(dim) = self.nest.compute.dims.get(at.len()) else {
            return self.element(e, at);
        };
        let Ok(_) = self.each(e, dim, &[], |e, index, _| {
            at.push(index);
            self.outer(e, at);
            at.pop();
            vec![]
        });
    }

    /// A loop over `0..dim`: `body` gets the iteration and the carried values.
    fn each(
        &self,
        e: Emit<'c, 'a>,
        dim: &Dim,
        carried: &[Value<'c, 'a>],
        body: impl FnOnce(Emit<'c, 'a>, Value<'c, 'a>, &[Value<'c, 'a>]) -> Vec<Value<'c, 'a>>,
    ) -> Result<Vec<Value<'c, 'a>>, Infallible> {
        let bounds = (e.index(0), self.sizes.value(e, dim), 1);
        e.for_each(bounds, carried, |e, index, carried| Ok(body(e, index, carried)))
    }

    fn element(&self, e: Emit<'c, 'a>, at: &[Value<'c, 'a>]) {
        let (value, dtype) = match &self.nest.compute.reduction {
            None => self.body(e, at).emit(e, &self.nest.compute.body),
            Some(reduction) => self.reduced(e, reduction, at),
        };
        let value = to_memory(e, value, dtype);
        let mut place = None;
        for (index, dim) in at.iter().zip(&self.nest.compute.dims) {
            place = Some(match place {
                None => *index,
                Some(outer) => {
                    e.add(e.binary("arith.muli", outer, self.sizes.value(e, dim)), *index)
                }
            });
        }
        let place = place.unwrap_or_else(|| e.index(0));
        e.store(value, self.result, place, Lanes::Scalar, None);
    }

    fn reduced(&self, e: Emit<'c, 'a>, reduction: &Reduce, at: &[Value<'c, 'a>]) -> Typed<'c, 'a> {
        let types: Vec<Type> = self.operands.iter().map(|(ty, _)| (*ty).clone()).collect();
        let dtype = self.nest.compute.body.dtype(&types, self.nest.compute.loops());
        let dtype = dtype.unwrap_or_else(|error| panic!("the verifier accepted the body: {error}"));
        let (narrow, wide) = (element(e.context, dtype), accumulator(e.context, dtype));
        let start = neutral(e, reduction.combine, dtype, wide);
        let mut at = at.to_vec();
        let total = self.inner(e, reduction, &mut at, start, (narrow, wide));
        let total = arithmetic::cast(&scope(e), total, wide, narrow, Rounding::TowardZero);
        let Some(epilogue) = &self.nest.epilogue else { return (total, dtype) };
        let mut body = self.body(e, &at[..self.nest.compute.dims.len()]);
        body.reduced = Some((total, dtype));
        body.emit(e, epilogue)
    }

    /// The loops that reduce which are left, around an accumulator.
    fn inner(
        &self,
        e: Emit<'c, 'a>,
        reduction: &Reduce,
        at: &mut Vec<Value<'c, 'a>>,
        total: Value<'c, 'a>,
        elements: (Element<'c>, Element<'c>),
    ) -> Value<'c, 'a> {
        let Some(dim) = reduction.dims.get(at.len() - self.nest.compute.dims.len()) else {
            let (value, _) = self.body(e, at).emit(e, &self.nest.compute.body);
            let scope = scope(e);
            let (narrow, wide) = elements;
            let value = arithmetic::cast(&scope, value, narrow, wide, Rounding::TowardZero);
            return combine(e, reduction.combine, total, value, wide);
        };
        let Ok(totals) = self.each(e, dim, &[total], |e, index, carried| {
            at.push(index);
            let total = self.inner(e, reduction, at, carried[0], elements);
            at.pop();
            vec![total]
        });
        totals[0]
    }

    /// An expression's surroundings at an iteration, given as indices; nothing is known yet.
    fn body(&self, e: Emit<'c, 'a>, at: &[Value<'c, 'a>]) -> Body<'_, 'c, 'a> {
        let number = |index: &Value<'c, 'a>| e.op("arith.index_cast", &[*index], e.int(64));
        Body {
            operands: self.operands,
            sizes: self.sizes,
            loops: at.iter().map(number).collect(),
            reduced: None,
            known: vec![HashMap::new()],
        }
    }
}

/// Joins a value to an accumulator. Sums and products of floats may be taken in any order.
fn combine<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    combine: Combine,
    total: Value<'c, 'a>,
    value: Value<'c, 'a>,
    ty: Element<'c>,
) -> Value<'c, 'a> {
    if ty.kind != Kind::Float || matches!(combine, Combine::Max | Combine::Min) {
        return arithmetic::binary(&scope(e), combine.function(), total, value, ty);
    }
    let name = if combine == Combine::Sum { "arith.addf" } else { "arith.mulf" };
    let free = attr::parse(e.context, "#arith.fastmath<reassoc,contract>");
    e.value(e.spec(name).operands(&[total, value]).results(&[ty.storage]).attr("fastmath", free))
}

fn neutral<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    combine: Combine,
    dtype: DType,
    ty: Element<'c>,
) -> Value<'c, 'a> {
    match combine.neutral(dtype) {
        Number::Float(value) => e.float(value, ty.storage, Lanes::Scalar),
        Number::Int(value) => arithmetic::whole(&scope(e), value as i64, ty),
    }
}

/// The nest as one loop, when every operand is read at the result's own index, or at one place.
fn flattened(nest: &Nest, operands: &[(&Type, Buffer<'_, '_>)]) -> Option<(Nest, Vec<Type>)> {
    let Compute { dims, reduction: None, body } = &nest.compute else { return None };
    if dims.len() < 2 || nest.epilogue.is_some() {
        return None;
    }
    let own: Vec<_> = (0..dims.len()).map(Scalar::Loop).collect();
    let reads_own = |operand: usize, at: &[Scalar]| at == own && operands[operand].0.dims == *dims;
    let mut whole = vec![false; operands.len()];
    let mut parts = vec![false; operands.len()];
    let mut loose = false;
    let flat = body.replace(&mut |scalar| match scalar {
        Scalar::Load(operand, at) if reads_own(*operand, at) => {
            whole[*operand] = true;
            Some(Scalar::load(*operand, [Scalar::Loop(0)]))
        }
        Scalar::Load(operand, _) => {
            parts[*operand] = true;
            None
        }
        Scalar::Loop(_) => {
            loose = true;
            None
        }
        _ => None,
    });
    if loose || whole.iter().zip(&parts).any(|(whole, part)| *whole && *part) {
        return None;
    }
    let types = operands.iter().zip(&whole).map(|((ty, _), whole)| match whole {
        true => Type::new(ty.dtype, [ty.elements()]),
        false => (*ty).clone(),
    });
    let compute = Compute::map([Dim::product(dims)], flat);
    Some((Nest::of(compute), types.collect()))
}
