//! Ops that move lanes and fields: extraction, insertion, permutation, reduction.
use super::{
    function::{Body, Op, Parts, Result, no_translation, operand, unsupported},
    lanes::Source,
    types::{Element, Shape, element_of, parts},
};
use cranelift_codegen::ir::{InstBuilder, StackSlotData, StackSlotKind, Value as ClifValue};
use irc_mlir::{ops, read};
use std::ops::Range;

impl Body<'_, '_, '_> {
    /// Consecutive lanes of a vector.
    pub fn extract_vector(&mut self, op: &Op<'_, '_>, from: u32) -> Result<Parts> {
        let (shape, to) = (self.operand_shape(op, 0)?, self.result_shape(op)?);
        let value = self.operand(op, 0)?;
        let lanes: Vec<_> = (0..to.lanes.unwrap_or(1)).map(|at| Some(from + at)).collect();
        Ok(self.select_sources(to, &[(shape, value)], &lanes))
    }

    /// A vector with consecutive lanes replaced.
    pub fn insert_vector(&mut self, op: &Op<'_, '_>, at: u32) -> Result<Parts> {
        let (into, part) = (self.operand_shape(op, 0)?, self.operand_shape(op, 1)?);
        let operands = [(into, self.operand(op, 0)?), (part, self.operand(op, 1)?)];
        let (all, some) = (into.lanes.unwrap_or(1), part.lanes.unwrap_or(1));
        let source = |lane: u32| match lane.checked_sub(at) {
            Some(lane) if lane < some => all + lane,
            _ => lane,
        };
        let lanes: Vec<_> = (0..all).map(|lane| Some(source(lane))).collect();
        Ok(self.select_sources(into, &operands, &lanes))
    }

    /// One lane of a vector.
    pub fn extract_element(&mut self, op: &Op<'_, '_>) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let value = self.operand(op, 0)?;
        if let Some(lane) = self.known(op, 1) {
            return Ok(vec![self.extract(shape, &value, lane_within(shape, lane))]);
        }
        let index = self.scalar(op, 1)?;
        let (address, offset) = self.spill(shape, &value, index);
        let address = self.b.ins().iadd(address, offset);
        let lane = shape.element.lane();
        let loaded = self.b.ins().load(lane, super::memory::PLAIN, address, 0);
        if shape.element == Element::Int(1) {
            let byte = self.b.ins().ireduce(Element::Int(8).scalar(), loaded);
            return Ok(vec![self.b.ins().band_imm_u(byte, 1)]);
        }
        Ok(vec![loaded])
    }

    /// A vector with one lane replaced.
    pub fn insert_element(&mut self, op: &Op<'_, '_>) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let mut value = self.operand(op, 0)?;
        let scalar = self.scalar(op, 1)?;
        if let Some(lane) = self.known(op, 2) {
            self.insert(shape, &mut value, lane_within(shape, lane), scalar);
            return Ok(value);
        }
        let index = self.scalar(op, 2)?;
        let (slot, offset) = self.spill(shape, &value, index);
        let address = self.b.ins().iadd(slot, offset);
        let lane = self.as_lane(shape.element, scalar);
        self.b.ins().store(super::memory::PLAIN, lane, address, 0);
        let load = |part: usize| {
            let offset = part as i32 * 16;
            self.b.ins().load(shape.part(), super::memory::PLAIN, slot, offset)
        };
        Ok((0..value.len()).map(load).collect())
    }

    /// Writes a vector's registers to the stack. Returns the address, and the offset of a lane whose index
    /// is known only at run time. The index wraps around, so that every access is in bounds.
    fn spill(
        &mut self,
        shape: Shape,
        value: &[ClifValue],
        index: ClifValue,
    ) -> (ClifValue, ClifValue) {
        let pointer = Element::Pointer.scalar();
        let room = (value.len() as u32).next_power_of_two() * 16;
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, room, 4);
        let slot = self.b.create_sized_stack_slot(slot);
        let address = self.b.ins().stack_addr(pointer, slot, 0);
        for (at, part) in value.iter().enumerate() {
            self.b.ins().store(super::memory::PLAIN, *part, address, at as i32 * 16);
        }
        let ty = self.b.func.dfg.value_type(index);
        let index = if ty == pointer { index } else { self.b.ins().uextend(pointer, index) };
        let bytes = shape.element.lane_bits() / 8;
        let offset = self.b.ins().imul_imm_u(index, i64::from(bytes));
        let offset = self.b.ins().band_imm_u(offset, i64::from(room - 1));
        (address, offset)
    }

    /// Lanes of two concatenated vectors.
    pub fn shuffle_vector(&mut self, op: &Op<'_, '_>, lanes: &[Option<u32>]) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let to = self.result_shape(op)?;
        if let Some(scalar) = self.broadcast_of(op, lanes) {
            return Ok(self.splat(to, scalar));
        }
        let operands = [(shape, self.operand(op, 0)?), (shape, self.operand(op, 1)?)];
        Ok(self.select_sources(to, &operands, lanes))
    }

    /// The scalar that a shuffle broadcasts, if it was inserted only for that.
    fn broadcast_of(&mut self, op: &Op<'_, '_>, lanes: &[Option<u32>]) -> Option<ClifValue> {
        if lanes.iter().any(|lane| *lane != Some(0)) {
            return None;
        }
        let insert = read::defining_op(operand(op, 0).ok()?)?;
        let inserted = read::op_name(&insert) == ops::llvm::INSERTELEMENT;
        if !inserted || self.known(&insert, 2) != Some(0) {
            return None;
        }
        self.scalar(&insert, 1).ok()
    }

    /// A vector of lanes of concatenated vectors.
    fn select_sources(
        &mut self,
        to: Shape,
        operands: &[(Shape, Parts)],
        lanes: &[Option<u32>],
    ) -> Parts {
        let mut all = Vec::new();
        let mut places: Vec<(usize, u32)> = Vec::new();
        for (shape, value) in operands {
            let per_part = shape.lanes_per_part();
            let lanes = 0..shape.lanes.unwrap_or(1);
            let first = all.len();
            places.extend(lanes.map(|lane| (first + (lane / per_part) as usize, lane % per_part)));
            all.extend_from_slice(value);
        }
        let per_part = to.lanes_per_part() as usize;
        let register = |lanes: &[Option<u32>]| {
            let place =
                |lane: &Option<u32>| lane.and_then(|lane| places.get(lane as usize).copied());
            let mut sources: Vec<Source> = lanes.iter().map(place).collect();
            sources.resize(per_part, None);
            self.permute(to.part(), &all, &sources)
        };
        lanes.chunks(per_part).map(register).collect()
    }

    /// A field of an aggregate.
    pub fn extract_value(&mut self, op: &Op<'_, '_>, position: &[i64]) -> Result<Parts> {
        let field = self.field(op, position)?;
        Ok(self.operand(op, 0)?[field].to_vec())
    }

    /// An aggregate with one field replaced.
    pub fn insert_value(&mut self, op: &Op<'_, '_>, position: &[i64]) -> Result<Parts> {
        let field = self.field(op, position)?;
        let mut value = self.operand(op, 0)?;
        value[field].copy_from_slice(&self.operand(op, 1)?);
        Ok(value)
    }

    fn field(&mut self, op: &Op<'_, '_>, position: &[i64]) -> Result<Range<usize>> {
        let ty = self.operand_type(op, 0)?;
        let (mut inner, mut first) = (ty.as_ref(), 0);
        for index in position {
            let index = usize::try_from(*index).unwrap_or(usize::MAX);
            let found = element_of(inner, index);
            let (element, before) = found.ok_or_else(|| unsupported(op, "this position"))?;
            inner = element;
            first += before;
        }
        let count = parts(inner).ok_or_else(|| unsupported(op, "this type"))?.len();
        Ok(first..first + count)
    }

    /// Translates a reduction of a vector to a scalar.
    pub fn reduce(&mut self, op: &Op<'_, '_>, kind: &str, any_order: bool) -> Result<Parts> {
        let starts = matches!(kind, "fadd" | "fmul");
        let shape = self.operand_shape(op, usize::from(starts))?;
        let value = self.operand(op, usize::from(starts))?;
        let start = if starts { Some(self.scalar(op, 0)?) } else { None };
        let Some(lanes) = shape.lanes else { return Err(no_translation(op)) };
        let mut terms: Parts = (0..lanes).map(|lane| self.extract(shape, &value, lane)).collect();
        let element = Shape::scalar(shape.element);
        if any_order {
            // By halves, as LLVM does.
            while terms.len() > 1 && terms.len().is_multiple_of(2) {
                let (low, high) = terms.split_at(terms.len() / 2);
                terms = self.pairwise(low, high, |body, l, r| body.join(element, kind, l, r));
            }
            terms.extend(start);
            if start.is_some() {
                terms.rotate_right(1);
            }
        } else {
            terms.splice(0..0, start);
        }
        let joined = terms.into_iter().reduce(|left, right| self.join(element, kind, left, right));
        joined.map(|value| vec![value]).ok_or_else(|| no_translation(op))
    }

    fn join(&mut self, element: Shape, kind: &str, left: ClifValue, right: ClifValue) -> ClifValue {
        let bit = element.element == Element::Int(1);
        match kind {
            "fadd" | "fmul" => self.float_binary(element, kind, &[left], &[right])[0],
            "smax" | "smin" | "umax" | "umin" => self.extreme(element, kind, &[left], &[right])[0],
            "fmax" | "fmin" | "fmaximum" | "fminimum" => {
                let name = match kind {
                    "fmax" => "maxnum",
                    "fmin" => "minnum",
                    "fmaximum" => "maximum",
                    _ => "minimum",
                };
                self.in_float(element, [&[left], &[right]], |body, [left, right]| {
                    vec![body.float_extreme_of(name, left[0], right[0])]
                })[0]
            }
            "and" => self.b.ins().band(left, right),
            "or" => self.b.ins().bor(left, right),
            "xor" => self.b.ins().bxor(left, right),
            "add" if bit => self.b.ins().bxor(left, right),
            "mul" if bit => self.b.ins().band(left, right),
            "add" => self.b.ins().iadd(left, right),
            _ => self.b.ins().imul(left, right),
        }
    }
}

/// A valid lane index: an index out of range gives poison, so that any lane will do.
fn lane_within(shape: Shape, lane: u64) -> u32 {
    let lanes = shape.lanes.unwrap_or(1);
    u32::try_from(lane).unwrap_or(u32::MAX).min(lanes - 1)
}
