//! Elements of tensors at a point of the loops: read, written, gathered.
use super::{Known, Point, Stores, Sweep};
use crate::kernel::emit::{Emit, Lanes};
use crate::lowering::linalg_to_vector::{
    access::Access,
    body::Surroundings,
    codegen::{Codegen, Place},
    error::{LowerError, Result},
    kernel::{Operand, Origin, Stage, TensorId, operand},
};
use irc_mlir::{OperationRef, Value, ops::arith};

impl<'c: 'a, 'a> Sweep<'_, 'c, 'a> {
    /// The elements of an operand at a point.
    pub(super) fn read(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        s: usize,
        operand: &Operand,
        point: &Point<'_, 'c, 'a>,
        (registers, loads): Known<'_, 'c, 'a>,
    ) -> Result<Value<'c, 'a>> {
        let tensor = operand.tensor;
        if let Some((_, value)) = registers.iter().find(|(known, _)| *known == tensor) {
            return Ok(*value);
        }
        let same = |(t, a, _): &&(TensorId, Access, Value)| *t == tensor && *a == operand.access;
        if let Some((_, _, value)) = loads.iter().find(same) {
            return Ok(*value);
        }
        if let Some(scalar) = cg.splat_of(tensor) {
            return Ok(e.constant(scalar, cg.kernel.tensors[tensor].element, point.lanes));
        }
        if let Some((_, value)) = cg.scalars.iter().rev().find(|(known, _)| *known == tensor) {
            return Ok(e.splat(*value, point.lanes));
        }
        let stage = &cg.kernel.stages[s];
        let Some(buffer) = cg.places[tensor].buffer() else {
            let why = match cg.kernel.tensors[tensor].origin {
                Origin::Undefined => "reads a 'tensor.empty' that nothing has filled",
                _ => "reads a value that has no place in memory",
            };
            return Err(LowerError::at(stage.op, why));
        };
        let at = self.address(e, &operand.access, &cg.places[tensor], point);
        let stride = match self.vector_loop(stage) {
            Some(dim) if point.lanes != Lanes::Scalar => operand.access.coefs[dim],
            _ => return Ok(e.splat(e.load(buffer, at), point.lanes)),
        };
        Ok(match stride {
            0 => e.splat(e.load(buffer, at), point.lanes),
            1 => e.load_lanes(buffer, at, point.lanes, point.mask),
            stride => e.load_strided(buffer, (at, stride), point.lanes, point.mask),
        })
    }

    /// Stores the elements of an output at a point, if it is in memory.
    pub(super) fn write(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        (s, index): (usize, usize),
        value: Value<'c, 'a>,
        point: &Point<'_, 'c, 'a>,
    ) {
        let output = &cg.kernel.stages[s].outputs[index];
        let (tensor, place) = (output.tensor, &cg.places[output.tensor]);
        if let Some(buffer) = place.buffer() {
            if let Stores::Kept(kept) = point.stores {
                return kept.borrow_mut().push((s, index, value));
            }
            let at = self.address(e, &output.access, place, point);
            let is_aligned = matches!(point.stores, Stores::Aligned);
            let is_whole = point.mask.is_none() && point.lanes != Lanes::Scalar;
            if is_whole && is_aligned && cg.streamed.contains(&tensor) {
                return e.stream(value, buffer, at, point.lanes);
            }
            e.store(value, buffer, at, point.lanes, point.mask);
        }
    }

    /// The address of an access in the memory of a tensor, at a point.
    pub(super) fn address(
        &self,
        e: Emit<'c, 'a>,
        access: &Access,
        place: &Place<'c, 'a>,
        point: &Point<'_, 'c, 'a>,
    ) -> Value<'c, 'a> {
        let mut at = e.index(access.offset);
        if matches!(place, Place::Memory(_)) {
            at = e.linear(at, point.rows, &access.coefs[..self.pass.outer]);
        }
        let coefs: Vec<i64> = self.loops.iter().map(|inner| access.coefs[inner.dim]).collect();
        e.linear(at, &point.ivs, &coefs)
    }

    /// The vectorized loop of the stages.
    pub(super) fn vector_loop(&self, stage: &Stage<'_, '_>) -> Option<usize> {
        if self.pass.partial {
            return Some(stage.parallel - 1);
        }
        self.loops.last().map(|last| last.dim)
    }
}

/// The loops around the region of a stage, at a point.
pub(super) struct Around<'p, 'c, 'a> {
    pub(super) cg: &'p Codegen<'c, 'a>,
    pub(super) e: Emit<'c, 'a>,
    pub(super) stage: &'p Stage<'c, 'a>,
    pub(super) sweep: &'p Sweep<'p, 'c, 'a>,
    pub(super) point: &'p Point<'p, 'c, 'a>,
}

impl<'c: 'a, 'a> Surroundings<'c, 'a> for Around<'_, 'c, 'a> {
    fn index(&self, op: OperationRef<'c, 'a>, dim: usize) -> Result<Value<'c, 'a>> {
        let (e, lanes) = (self.e, self.point.lanes);
        let place = self.stage.loop_of.get(dim);
        let Some(place) = place else {
            return Err(LowerError::at(op, format!("the op has no loop {dim}")));
        };
        let Some(dim) = *place else { return Ok(e.splat(e.index(0), lanes)) };
        if dim < self.sweep.pass.outer {
            return Ok(e.splat(self.point.rows[dim], lanes));
        }
        let inner = self.sweep.loops.iter().position(|inner| inner.dim == dim);
        let Some(inner) = inner else {
            return Err(LowerError::at(op, "the loop was merged with its neighbour"));
        };
        let value = e.splat(self.point.ivs[inner], lanes);
        let moves = self.sweep.vector_loop(self.stage) == Some(dim) && lanes != Lanes::Scalar;
        Ok(if moves { e.add(value, e.iota(1, lanes)) } else { value })
    }

    fn extract(
        &self,
        op: OperationRef<'c, 'a>,
        indices: &[Value<'c, 'a>],
    ) -> Result<Value<'c, 'a>> {
        let (e, lanes) = (self.e, self.point.lanes);
        let source = self.cg.kernel.view_of(operand(op, 0)?);
        let splat = source.and_then(|(tensor, ..)| Some((tensor, self.cg.splat_of(tensor)?)));
        if let Some((tensor, scalar)) = splat {
            return Ok(e.constant(scalar, self.cg.kernel.tensors[tensor].element, lanes));
        }
        let placed = source.and_then(|(tensor, offset, strides)| {
            Some((self.cg.places[tensor].buffer()?, offset, strides))
        });
        let Some((buffer, offset, strides)) = placed else {
            return Err(LowerError::at(op, "expected a tensor in memory to gather from"));
        };
        let mut at = e.splat(e.index(0), lanes);
        for (index, stride) in indices.iter().zip(strides) {
            let stride = e.splat(e.index(*stride), lanes);
            at = e.add(at, e.binary(arith::MULI, *index, stride));
        }
        let base = e.index(offset);
        Ok(match lanes {
            Lanes::Scalar => e.load(buffer, e.add(base, at)),
            Lanes::Vector(_) => e.gather(buffer, base, at, lanes, self.point.mask),
        })
    }
}
