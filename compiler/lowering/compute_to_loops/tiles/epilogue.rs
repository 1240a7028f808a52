//! The epilogue of a nest in tiles: finished sums are read from the cache, and replaced by the elements of the result.
use super::Writer;
use crate::kernel::emit::{Buffer, Emit, Lanes};
use crate::lowering::compute_to_loops::{
    expression::{Body, Known, RESULT, loop_number},
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
        Some(Self { body, own, loops, outer })
    }
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
}

impl<'c: 'a, 'a> Writer<'_, 'c, 'a> {
    /// Replaces `count` sums, the first of which is at `first`, by elements of the result; `outer` has the indices of the outer
    /// loops.
    pub(super) fn finish(
        &self,
        e: Emit<'c, 'a>,
        outer: &[Value<'c, 'a>],
        (first, count): (Value<'c, 'a>, Value<'c, 'a>),
    ) {
        let Some(Finish { epilogue, operands, flat }) = self.finish else { return };
        let own = epilogue.own.iter().zip(flat).map(|(operand, ty)| (ty, operands[*operand].1));
        let operands: Vec<(&Type, Buffer)> = operands.iter().copied().chain(own).collect();
        let Ok(_) = e.for_each::<Infallible>((e.index(0), count, 1), &[], |e, column, _| {
            let place = e.add(first, column);
            let mut at = outer.to_vec();
            at.resize(epilogue.loops, e.index(0));
            at.push(place);
            let mut body = Body {
                operands: &operands,
                sizes: self.sizes,
                loops: at.iter().map(|index| loop_number(e, *index)).collect(),
                reduced: Some((e.load(self.result, place), DType::F32)),
                known: vec![Known::new()],
            };
            let (value, _) = body.emit(e, &epilogue.body);
            e.store(value, self.result, place, Lanes::Scalar, None);
            Ok(vec![])
        });
    }
}
