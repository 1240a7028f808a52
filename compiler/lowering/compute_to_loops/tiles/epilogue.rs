//! The epilogue of a nest in tiles: functions of sums in registers. Others than those of vectors are computed later: finished
//! sums are read from the cache, and replaced by the elements of the result.
use super::Writer;
use crate::kernel::emit::{Buffer, Emit, Lanes};
use crate::lowering::compute_to_loops::{
    expression::{Body, Known, RESULT, Typed, loop_number},
    lanewise::{Elements, Lanewise},
    nest::Nest,
};
use irc_mlir::Value;
use irc_tl::{DType, Scalar, Type};
use std::convert::Infallible;

/// An epilogue that reads operands at the result's own element, or at one that some outer loops select.
pub(super) struct Epilogue {
    /// Operands at the element's own place are numbered after the others, and have one dimension: the place is the index of
    /// the loop after the others.
    body: Scalar,
    /// The operands that are read there.
    own: Vec<usize>,
    /// The loops over the result.
    loops: usize,
    /// The loops that select elements of other operands: so many from the outermost one.
    pub(super) outer: usize,
    /// Whether it is computed in vectors.
    pub(super) is_vector: bool,
    /// The type of sums, and that of elements of the result.
    sum: DType,
    pub(super) dtype: DType,
}

/// A vector of sums, which becomes one of elements of the result.
pub(super) struct Vector<'c, 'a> {
    pub(super) value: Value<'c, 'a>,
    /// The place of its first element in the result.
    pub(super) place: Value<'c, 'a>,
    /// The lanes that exist, if not all do.
    pub(super) mask: Option<Value<'c, 'a>>,
}

/// An epilogue with the memory of its operands.
pub(super) struct Finish<'n, 'c, 'a> {
    epilogue: Epilogue,
    operands: &'n [(&'n Type, Buffer<'c, 'a>)],
    flat: Vec<Type>,
}

impl Epilogue {
    /// The epilogue of a nest, if it has one.
    pub(super) fn of(nest: &Nest, types: &[&Type]) -> Option<Self> {
        let loops = nest.compute.dims.len();
        let mut own: Vec<usize> = vec![];
        let body = nest.epilogue.as_ref()?.replace(&mut |part| match part {
            Scalar::Load(RESULT, _) => Some(part.clone()),
            Scalar::Load(operand, at) if nest.compute.is_own(at, &types[*operand].dims) => {
                let place = own.iter().position(|known| known == operand).unwrap_or_else(|| {
                    own.push(*operand);
                    own.len() - 1
                });
                Some(Scalar::load(types.len() + place, [Scalar::Loop(loops)]))
            }
            _ => None,
        });
        let mut outer = 0;
        body.walk(&mut |part| {
            if let Scalar::Loop(loop_) = part
                && *loop_ < loops
            {
                outer = outer.max(loop_ + 1);
            }
        });
        let operands: Vec<Type> = types.iter().map(|ty| (*ty).clone()).collect();
        let sum = nest.compute.body.dtype(&operands, nest.compute.loops()).ok()?;
        let of_own = own.iter().map(|operand| types[*operand].dtype);
        let dtypes: Vec<DType> = operands.iter().map(|ty| ty.dtype).chain(of_own).collect();
        let dtype = dtype_of(&body, sum, &dtypes);
        let is_single = own.iter().all(|operand| types[*operand].dtype == DType::F32);
        let own_from = types.len();
        let is_vector = is_single
            && body.is_lanewise(&|part| varies(part, own_from))
            && converts_vectors(&body, own_from);
        Some(Self { body, own, loops, outer, is_vector, sum, dtype })
    }
}

/// The type of a part of an epilogue of sums and operands of these types; inference has accepted it.
fn dtype_of(scalar: &Scalar, sum: DType, operands: &[DType]) -> DType {
    let of = |scalar| dtype_of(scalar, sum, operands);
    match scalar {
        Scalar::Float(_, dtype) | Scalar::Int(_, dtype) | Scalar::Cast(dtype, ..) => *dtype,
        Scalar::Loop(_) | Scalar::Size(_) => DType::I64,
        Scalar::Load(RESULT, _) => sum,
        Scalar::Load(operand, _) => operands[*operand],
        Scalar::Unary(_, x) | Scalar::Binary(_, x, _) => of(x),
        Scalar::Compare(..) => DType::Bool,
        Scalar::Select(parts) => of(&parts[1]),
    }
}

/// Whether a part of an expression reads the reduced value, or an operand from the one of this number on.
fn varies(part: &Scalar, own: usize) -> bool {
    matches!(part, Scalar::Load(of, _) if *of >= own)
}

/// Whether vectors hold what is converted.
fn converts_vectors(body: &Scalar, own: usize) -> bool {
    let mut fits = true;
    body.walk(&mut |part| {
        if let Scalar::Cast(to, _, x) = part
            && x.any(&|part| varies(part, own))
        {
            fits &= matches!(to, DType::F32 | DType::I32 | DType::U8 | DType::I8);
        }
    });
    fits
}

impl<'n, 'c: 'a, 'a> Finish<'n, 'c, 'a> {
    /// The epilogue of a nest of these operands, if it has one.
    pub(super) fn of(nest: &Nest, operands: &'n [(&'n Type, Buffer<'c, 'a>)]) -> Option<Self> {
        let types: Vec<&Type> = operands.iter().map(|(ty, _)| *ty).collect();
        let epilogue = Epilogue::of(nest, &types)?;
        let flat = epilogue.own.iter().map(|operand| {
            let ty = types[*operand];
            Type::new(ty.dtype, [ty.elements()])
        });
        let flat = flat.collect();
        Some(Self { epilogue, operands, flat })
    }

    /// See [`Epilogue::outer`].
    pub(super) fn outer(&self) -> usize {
        self.epilogue.outer
    }

    /// Whether it is computed in vectors.
    pub(super) fn is_vector(&self) -> bool {
        self.epilogue.is_vector
    }

    /// The operands of the nest, then those at the element's own place.
    fn operands(&self) -> Vec<(&Type, Buffer<'c, 'a>)> {
        let own = self.epilogue.own.iter().zip(&self.flat);
        let own = own.map(|(operand, ty)| (ty, self.operands[*operand].1));
        self.operands.iter().copied().chain(own).collect()
    }
}

/// What an epilogue reads for a vector of sums.
struct Own<'v, 'c, 'a> {
    vector: &'v Vector<'c, 'a>,
    operands: &'v [(&'v Type, Buffer<'c, 'a>)],
    lanes: Lanes,
    /// The type of sums.
    sum: DType,
    /// The number of the first operand at the element's own place.
    own: usize,
}

impl<'c: 'a, 'a> Elements<'c, 'a> for Own<'_, 'c, 'a> {
    fn varies(&self, part: &Scalar) -> bool {
        varies(part, self.own)
    }

    fn load(&self, e: Emit<'c, 'a>, part: &Scalar) -> Typed<'c, 'a> {
        match part {
            Scalar::Load(operand, _) if *operand != RESULT => {
                let (ty, buffer) = self.operands[*operand];
                let Vector { place, mask, .. } = self.vector;
                (e.load_lanes(buffer, *place, self.lanes, *mask), ty.dtype)
            }
            _ => (self.vector.value, self.sum),
        }
    }
}

impl<'c: 'a, 'a> Writer<'_, 'c, 'a> {
    /// Whether the epilogue follows when sums are stored.
    pub(super) fn finishes_later(&self) -> bool {
        self.finish.is_some_and(|finish| !finish.is_vector())
    }

    /// The elements of the result that sums become, if that is computed in vectors; `outer` has the indices of the outer loops.
    pub(super) fn finished(
        &self,
        e: Emit<'c, 'a>,
        outer: &[Value<'c, 'a>],
        vectors: impl IntoIterator<Item = Vector<'c, 'a>>,
    ) -> Vec<Value<'c, 'a>> {
        let vectors = vectors.into_iter();
        let Some(finish) = self.finish.filter(|finish| finish.is_vector()) else {
            return vectors.map(|vector| vector.value).collect();
        };
        let operands = finish.operands();
        let (lanes, own) = (self.lanes, finish.operands.len());
        let mut body = self.epilogue_body(e, &finish.epilogue, &operands, outer);
        let finished = vectors.map(|vector| {
            let sum = finish.epilogue.sum;
            let elements = Own { vector: &vector, operands: &operands, lanes, sum, own };
            let known = Known::new();
            let mut values = Lanewise { body: &mut body, elements, lanes, known };
            values.emit(e, &finish.epilogue.body).0
        });
        finished.collect()
    }

    /// Replaces `count` sums, the first of which is at `first`, by elements of the result, unless that is computed in vectors;
    /// `outer` has the indices of the outer loops.
    pub(super) fn finish(
        &self,
        e: Emit<'c, 'a>,
        outer: &[Value<'c, 'a>],
        (first, count): (Value<'c, 'a>, Value<'c, 'a>),
    ) {
        let Some(finish) = self.finish.filter(|finish| !finish.is_vector()) else { return };
        let operands = finish.operands();
        let Ok(_) = e.for_each::<Infallible>((e.index(0), count, 1), &[], |e, column, _| {
            let place = e.add(first, column);
            let mut body = self.epilogue_body(e, &finish.epilogue, &operands, outer);
            body.loops.push(loop_number(e, place));
            body.reduced = Some((e.load(self.result, place), DType::F32));
            let (value, _) = body.emit(e, &finish.epilogue.body);
            e.store(value, self.result, place, Lanes::Scalar, None);
            Ok(vec![])
        });
    }

    fn epilogue_body<'b>(
        &'b self,
        e: Emit<'c, 'a>,
        epilogue: &Epilogue,
        operands: &'b [(&'b Type, Buffer<'c, 'a>)],
        outer: &[Value<'c, 'a>],
    ) -> Body<'b, 'c, 'a> {
        let mut at = outer.to_vec();
        at.resize(epilogue.loops, e.index(0));
        Body {
            operands,
            sizes: self.sizes,
            loops: at.iter().map(|index| loop_number(e, *index)).collect(),
            reduced: None,
            known: vec![Known::new()],
        }
    }
}
