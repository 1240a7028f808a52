//! Memory: addresses, loads and stores, masked loads and stores, the stack, and copies.
use super::{
    function::{Body, Op, Parts, Result, no_translation, unsupported},
    types::{Element, Shape, int, leaves, size, vector_bytes},
};
use crate::codegen::inst::{Atomic, ElementPointer};
use cranelift_codegen::ir::{
    AtomicRmwOp, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Type as Clif,
    Value as ClifValue,
    types::{I8, I16, I32, I64},
};
use irc_mlir::{OperationLike, llvm::Type};

/// Accessible memory, at any alignment.
pub const PLAIN: MemFlagsData = MemFlagsData::new().with_notrap();

/// Alignment of the stack pointer in bytes at the entry of a function.
const STACK_ALIGN: u64 = 16;

impl Body<'_, '_, '_> {
    /// Translates a load.
    pub fn load_value(&mut self, op: &Op<'_, '_>) -> Result<Parts> {
        let ty = self.result_type(op)?;
        let address = self.scalar(op, 0)?;
        self.load_all(op, &ty, address)
    }

    /// Translates a store.
    pub fn store_value(&mut self, op: &Op<'_, '_>) -> Result<()> {
        let (ty, value) = (self.operand_type(op, 0)?, self.operand(op, 0)?);
        let address = self.scalar(op, 1)?;
        self.store_all(op, &ty, &value, address)
    }

    fn load_all(&mut self, op: &Op<'_, '_>, ty: &Type, address: ClifValue) -> Result<Parts> {
        let leaves = leaves(ty).ok_or_else(|| unsupported(op, "this type"))?;
        let mut parts = Vec::new();
        for (shape, offset) in leaves {
            parts.extend(self.load(op, shape, address, small(op, offset)?)?);
        }
        Ok(parts)
    }

    fn store_all(
        &mut self,
        op: &Op<'_, '_>,
        ty: &Type,
        value: &[ClifValue],
        address: ClifValue,
    ) -> Result<()> {
        let leaves = leaves(ty).ok_or_else(|| unsupported(op, "this type"))?;
        let mut rest = value;
        for (shape, offset) in leaves {
            let (parts, others) = rest.split_at(shape.parts());
            self.store(op, shape, parts, address, small(op, offset)?)?;
            rest = others;
        }
        Ok(())
    }

    fn load(
        &mut self,
        op: &Op<'_, '_>,
        shape: Shape,
        address: ClifValue,
        offset: i32,
    ) -> Result<Parts> {
        let bit = shape.element == Element::Int(1);
        let Some(lanes) = shape.lanes else {
            let value = self.b.ins().load(shape.element.scalar(), PLAIN, address, offset);
            return Ok(vec![if bit { self.b.ins().band_imm_u(value, 1) } else { value }]);
        };
        if bit {
            let ty = packed(op, lanes)?;
            let bits = self.b.ins().load(ty, PLAIN, address, offset);
            return Ok(self.mask_of_bits(bits, lanes));
        }
        let bytes = vector_bytes(shape);
        let mut parts = Vec::new();
        for part in 0..shape.parts() as u64 {
            let offset = offset + part as i32 * 16;
            if bytes - part * 16 >= 16 {
                parts.push(self.b.ins().load(shape.part(), PLAIN, address, offset));
                continue;
            }
            let mut register = None;
            for (piece, at) in pieces(bytes - part * 16) {
                let value = self.b.ins().load(piece, PLAIN, address, offset + at);
                register = Some(self.fill(register, piece, value, at));
            }
            let register = register.ok_or_else(|| no_translation(op))?;
            parts.push(self.bits_as(shape.part(), register));
        }
        Ok(parts)
    }

    /// Inserts bytes into a register at an offset that is a multiple of their number.
    fn fill(
        &mut self,
        register: Option<ClifValue>,
        piece: Clif,
        value: ClifValue,
        at: i32,
    ) -> ClifValue {
        let ty = super::types::register(piece);
        let Some(register) = register else {
            if piece.bits() >= 32 {
                return self.b.ins().scalar_to_vector(ty, value);
            }
            let zero = self.zero(ty);
            return self.b.ins().insertlane(zero, value, 0);
        };
        let register = self.bits_as(ty, register);
        let lane = at as u32 / piece.bytes();
        self.b.ins().insertlane(register, value, lane as u8)
    }

    fn store(
        &mut self,
        op: &Op<'_, '_>,
        shape: Shape,
        parts: &[ClifValue],
        address: ClifValue,
        offset: i32,
    ) -> Result<()> {
        let Some(lanes) = shape.lanes else {
            self.b.ins().store(PLAIN, parts[0], address, offset);
            return Ok(());
        };
        if shape.element == Element::Int(1) {
            let bits = self.mask_bits(parts, lanes, packed(op, lanes)?);
            self.b.ins().store(PLAIN, bits, address, offset);
            return Ok(());
        }
        let bytes = vector_bytes(shape);
        for (index, part) in parts.iter().enumerate() {
            let offset = offset + index as i32 * 16;
            let rest = bytes - index as u64 * 16;
            if rest >= 16 {
                self.b.ins().store(PLAIN, *part, address, offset);
                continue;
            }
            for (piece, at) in pieces(rest) {
                let register = self.bits_as(super::types::register(piece), *part);
                let lane = at as u32 / piece.bytes();
                let value = self.b.ins().extractlane(register, lane as u8);
                self.b.ins().store(PLAIN, value, address, offset + at);
            }
        }
        Ok(())
    }

    /// Translates the computation of an address.
    pub fn element_pointer(&mut self, op: &Op<'_, '_>, steps: &ElementPointer) -> Result<Parts> {
        let to = self.result_shape(op)?;
        let from = self.operand_shape(op, 0)?;
        let mut address = self.operand(op, 0)?;
        if from.lanes.is_none() && to.lanes.is_some() {
            address = self.splat(to, address[0]);
        }
        for (index, stride) in steps.strides.iter().enumerate() {
            address = self.advance(op, to, address, index + 1, stride.cast_signed())?;
        }
        if steps.offset != 0 {
            let step = self.imm(to.part(), steps.offset.cast_unsigned());
            address = address.iter().map(|part| self.b.ins().iadd(*part, step)).collect();
        }
        Ok(address)
    }

    /// Adds the product of a stride and an index that is a value.
    fn advance(
        &mut self,
        op: &Op<'_, '_>,
        to: Shape,
        address: Parts,
        operand: usize,
        stride: i64,
    ) -> Result<Parts> {
        let shape = self.operand_shape(op, operand)?;
        let wide = shape.of(Element::Int(64));
        let index = self.operand(op, operand)?;
        let index = self.integer(shape, wide, index, true);
        let mut index = index.ok_or_else(|| unsupported(op, "this index"))?;
        if shape.lanes.is_none() && to.lanes.is_some() {
            index = self.splat(to.of(Element::Int(64)), index[0]);
        }
        Ok(self.pairwise(&address, &index, |body, address, index| {
            let offset = match u64::try_from(stride) {
                Ok(1) => index,
                Ok(power) if power.is_power_of_two() => {
                    body.shift_left(index, i64::from(power.trailing_zeros()))
                }
                _ => {
                    let ty = body.b.func.dfg.value_type(index);
                    let stride = body.imm(ty, stride as u64);
                    body.b.ins().imul(index, stride)
                }
            };
            body.b.ins().iadd(address, offset)
        }))
    }

    /// A stack slot that is live for the whole call: all executions of an `alloca` in a loop share one.
    pub fn alloca(&mut self, op: &Op<'_, '_>, ty: &Type, align: u64) -> Result<Parts> {
        let count = self.known(op, 0);
        let count = count.ok_or_else(|| unsupported(op, "a number that is no constant"))?;
        let bytes = size(ty).and_then(|size| size.checked_mul(count));
        let extra = if align > STACK_ALIGN { align } else { 0 };
        let room = bytes.and_then(|bytes| u32::try_from(bytes.checked_add(extra)?).ok());
        let room = room.ok_or_else(|| unsupported(op, "this size"))?;
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, room.max(1), 4);
        let slot = self.b.create_sized_stack_slot(slot);
        let mut address = self.b.ins().stack_addr(I64, slot, 0);
        if extra > 0 {
            address = self.b.ins().iadd_imm_u(address, align as i64 - 1);
            address = self.b.ins().band_imm_s(address, -(align as i64));
        }
        Ok(vec![address])
    }

    /// A masked load, from one address on or from an address per lane. Masked-off lanes are not accessed:
    /// they are loaded from a stack slot that holds their replacements.
    pub fn masked_load(&mut self, op: &Op<'_, '_>) -> Result<Parts> {
        let shape = self.result_shape(op)?;
        let Some(lanes) = shape.lanes else { return Err(no_translation(op)) };
        if shape.element == Element::Int(1) {
            return Err(unsupported(op, "lanes of one bit"));
        }
        let (address_shape, address) = (self.operand_shape(op, 0)?, self.operand(op, 0)?);
        let (mask_shape, mask) = (self.operand_shape(op, 1)?, self.operand(op, 1)?);
        let mut value = match op.operand_count() {
            0..3 => self.zeros(shape),
            _ => self.operand(op, 2)?,
        };
        let spare = self.spare();
        let bytes = shape.element.bytes() as i32;
        for lane in 0..lanes {
            let other = self.extract(shape, &value, lane);
            self.b.ins().store(PLAIN, other, spare, 0);
            let place = self.lane_address(address_shape, &address, lane, bytes);
            let taken = self.extract(mask_shape, &mask, lane);
            let place = self.b.ins().select(taken, place, spare);
            let loaded = self.b.ins().load(shape.element.scalar(), PLAIN, place, 0);
            self.insert(shape, &mut value, lane, loaded);
        }
        Ok(value)
    }

    /// A masked store, see [`Body::masked_load`].
    pub fn masked_store(&mut self, op: Op<'_, '_>) -> Result<()> {
        let shape = self.operand_shape(&op, 0)?;
        let Some(lanes) = shape.lanes else { return Err(no_translation(&op)) };
        if shape.element == Element::Int(1) {
            return Err(unsupported(&op, "lanes of one bit"));
        }
        let value = self.operand(&op, 0)?;
        let (address_shape, address) = (self.operand_shape(&op, 1)?, self.operand(&op, 1)?);
        let (mask_shape, mask) = (self.operand_shape(&op, 2)?, self.operand(&op, 2)?);
        let spare = self.spare();
        let bytes = shape.element.bytes() as i32;
        for lane in 0..lanes {
            let stored = self.extract(shape, &value, lane);
            let place = self.lane_address(address_shape, &address, lane, bytes);
            let taken = self.extract(mask_shape, &mask, lane);
            let place = self.b.ins().select(taken, place, spare);
            self.b.ins().store(PLAIN, stored, place, 0);
        }
        Ok(())
    }

    /// A scratch stack slot, whose contents are never used.
    fn spare(&mut self) -> ClifValue {
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 16, 4);
        let slot = self.b.create_sized_stack_slot(slot);
        self.b.ins().stack_addr(I64, slot, 0)
    }

    fn lane_address(
        &mut self,
        shape: Shape,
        address: &[ClifValue],
        lane: u32,
        bytes: i32,
    ) -> ClifValue {
        if shape.lanes.is_some() {
            return self.extract(shape, address, lane);
        }
        self.b.ins().iadd_imm_u(address[0], i64::from(lane) * i64::from(bytes))
    }

    /// `memcpy`, `memmove` and `memset` of the C library, as with LLVM.
    pub fn copy_memory(&mut self, op: Op<'_, '_>, name: &str, length: Option<i64>) -> Result<()> {
        let config = self.unit.frontend();
        let (to, from) = (self.scalar(&op, 0)?, self.scalar(&op, 1)?);
        let count = match length {
            Some(bytes) => self.b.ins().iconst(I64, bytes),
            None => {
                let shape = self.operand_shape(&op, 2)?;
                let count = self.operand(&op, 2)?;
                let count = self.integer(shape, Shape::scalar(Element::Int(64)), count, false);
                count.ok_or_else(|| unsupported(&op, "this length"))?[0]
            }
        };
        match name {
            "memmove" => self.b.call_memmove(config, to, from, count),
            "memcpy" => self.b.call_memcpy(config, to, from, count),
            _ => self.b.call_memset(config, to, from, count),
        }
        Ok(())
    }

    /// Translates an atomic read-modify-write of an integer.
    pub fn atomic(&mut self, op: &Op<'_, '_>, change: Atomic) -> Result<Parts> {
        let kind = match change {
            Atomic::Exchange => AtomicRmwOp::Xchg,
            Atomic::Add => AtomicRmwOp::Add,
            Atomic::Sub => AtomicRmwOp::Sub,
            Atomic::And => AtomicRmwOp::And,
            Atomic::Nand => AtomicRmwOp::Nand,
            Atomic::Or => AtomicRmwOp::Or,
            Atomic::Xor => AtomicRmwOp::Xor,
            Atomic::Smax => AtomicRmwOp::Smax,
            Atomic::Smin => AtomicRmwOp::Smin,
            Atomic::Umax => AtomicRmwOp::Umax,
            Atomic::Umin => AtomicRmwOp::Umin,
        };
        let shape = self.operand_shape(op, 1)?;
        if !matches!(shape.element, Element::Int(8 | 16 | 32 | 64)) {
            return Err(unsupported(op, "an atomic change of this type"));
        }
        let (address, value) = (self.scalar(op, 0)?, self.scalar(op, 1)?);
        let ty = shape.element.scalar();
        let before = self.b.ins().atomic_rmw(ty, MemFlagsData::new(), kind, address, value);
        Ok(vec![before])
    }
}

/// The pieces in which less than a register is loaded and stored, in decreasing size, each with its offset.
fn pieces(bytes: u64) -> Vec<(Clif, i32)> {
    let (mut found, mut at) = (Vec::new(), 0);
    for (size, ty) in [(8, I64), (4, I32), (2, I16), (1, I8)] {
        if bytes & size != 0 {
            found.push((ty, at));
            at += size as i32;
        }
    }
    found
}

/// The integer type that holds so many packed bits.
fn packed(op: &Op<'_, '_>, lanes: u32) -> Result<Clif> {
    match lanes.div_ceil(8) {
        bytes @ (1 | 2 | 4 | 8) => Ok(int(bytes * 8)),
        _ => Err(unsupported(op, "this number of packed bits")),
    }
}

fn small(op: &Op<'_, '_>, offset: u64) -> Result<i32> {
    i32::try_from(offset).map_err(|_| unsupported(op, "a type of this size"))
}
