//! A copy of an argument with zeros around it, as a convolution reads it.
use super::{
    codegen::{Codegen, Place},
    error::{LowerError, Result},
    kernel::{Origin, TensorId, name_of, operand},
    layout::row_major,
};
use crate::attributes::PADS;
use crate::kernel::emit::{Buffer, Emit};
use irc_mlir::ops::tensor;
use irc_mlir::{OperationLike, OperationRef, Value, ValueLike, read};
use std::convert::Infallible;

/// A stage that only places an argument of the kernel in zeros.
pub struct Padding<'c, 'a> {
    /// The argument.
    source: TensorId,
    /// The first element read, and the strides between elements.
    first: i64,
    strides: Vec<i64>,
    /// Its extents.
    shape: Vec<i64>,
    /// The tensor written, its extents, and where the argument starts in it.
    result: TensorId,
    sizes: Vec<i64>,
    offsets: Vec<i64>,
    location: OperationRef<'c, 'a>,
}

impl<'c: 'a, 'a> Padding<'c, 'a> {
    /// The padding that a stage is, if it is one of rows without gaps.
    pub fn of(cg: &Codegen<'c, 'a>, s: usize) -> Option<Self> {
        let stage = &cg.kernel.stages[s];
        let offsets = PADS.read(&stage.op)?;
        let extracts = irc_mlir::walk_collect(stage.op, |op| name_of(op) == tensor::EXTRACT);
        let ([extract], [output]) = (&extracts[..], &stage.outputs[..]) else { return None };
        let value = operand(*extract, 0).ok()?;
        let (source, first, strides) = cg.kernel.view_of(value)?;
        let (shape, _) = read::tensor_of(value.r#type())?;
        let is_argument = matches!(cg.kernel.tensors[source].origin, Origin::Argument(_));
        let is_dense = output.access.offset == 0 && output.access.coefs == row_major(&stage.sizes);
        let ranks = [strides.len(), shape.len(), stage.sizes.len()];
        let agrees = ranks.iter().all(|rank| *rank == offsets.len());
        if !is_argument || !is_dense || !agrees || strides.last() != Some(&1) {
            return None;
        }
        Some(Self {
            source,
            first,
            strides: strides.to_vec(),
            shape,
            result: output.tensor,
            sizes: stage.sizes.clone(),
            offsets,
            location: stage.op,
        })
    }

    /// Emits the copy at the end of the block of `e`.
    ///
    /// # Errors
    /// If the argument has no memory.
    pub fn emit(&self, cg: &mut Codegen<'c, 'a>, e: Emit<'c, 'a>) -> Result<()> {
        let e = e.at(self.location.location());
        let total = self.sizes.iter().product();
        if cg.places[self.result].buffer().is_none() {
            cg.places[self.result] = Place::Memory(cg.scratch(e, total, self.result));
        }
        let buffers = [self.source, self.result].map(|tensor| cg.places[tensor].buffer());
        let [Some(from), Some(to)] = buffers else {
            return Err(LowerError::at(self.location, "expected an argument in memory to pad"));
        };
        self.each_vector(cg, e, total, |e, at, mask| {
            let zero = e.zero(to.element, cg.full_lanes());
            e.store(zero, to, at, cg.full_lanes(), mask);
        });
        let coefs = row_major(&self.sizes);
        let start: i64 = self.offsets.iter().zip(&coefs).map(|(offset, coef)| offset * coef).sum();
        let starts = [e.index(self.first), e.index(start)];
        self.copy(cg, e, (from, to), starts, (0, &coefs));
        Ok(())
    }

    /// Copies the part of the argument that starts at these places, along the dimensions from `dim` on.
    fn copy(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        (from, to): (Buffer<'c, 'a>, Buffer<'c, 'a>),
        starts: [Value<'c, 'a>; 2],
        (dim, coefs): (usize, &[i64]),
    ) {
        if dim + 1 == self.shape.len() {
            self.each_vector(cg, e, self.shape[dim], |e, at, mask| {
                let [source, result] = starts.map(|start| e.add(start, at));
                let value = e.load_lanes(from, source, cg.full_lanes(), mask);
                e.store(value, to, result, cg.full_lanes(), mask);
            });
            return;
        }
        let Ok(()) = e.loop_over::<Infallible>(self.shape[dim], |e, iv| {
            let steps = [self.strides[dim], coefs[dim]];
            let [source, result] = [0, 1].map(|side| e.add(starts[side], e.scale(iv, steps[side])));
            self.copy(cg, e, (from, to), [source, result], (dim + 1, coefs));
            Ok(())
        });
    }

    /// A loop over the vectors of a row; the last may be masked.
    fn each_vector(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        count: i64,
        body: impl Fn(Emit<'c, 'a>, Value<'c, 'a>, Option<Value<'c, 'a>>),
    ) {
        let lanes = cg.full_lanes();
        let whole = count / lanes.count() * lanes.count();
        if whole > 0 {
            let bounds = (e.index(0), e.index(whole), lanes.count());
            let looped = e.for_each::<Infallible>(bounds, &[], |e, at, _| {
                body(e, at, None);
                Ok(vec![])
            });
            let Ok(_) = looped;
        }
        if whole < count {
            body(e, e.index(whole), e.tail_mask(count - whole, lanes));
        }
    }
}
