//! Constants as Cranelift's instructions.
use super::{
    function::{Body, Parts},
    types::{Element, Shape, leaves},
};
use crate::codegen::constant::Constant;
use cranelift_codegen::ir::{
    InstBuilder, Value as ClifValue,
    immediates::{Ieee32, Ieee64},
    types::I64,
};
use irc_mlir::llvm::Type;

impl Body<'_, '_, '_> {
    /// Instructions that materialise a constant of a type.
    pub fn materialise(&mut self, constant: &Constant, ty: &Type) -> Option<Parts> {
        let leaves = leaves(ty)?;
        let mut parts = Vec::new();
        let mut first = 0;
        for (shape, _) in leaves {
            if shape.lanes.is_some() {
                self.vector(constant, shape, first, &mut parts)?;
            } else {
                parts.push(self.number(shape.element, constant.bits(first, shape.element)?));
            }
            first += shape.lanes.unwrap_or(1) as usize;
        }
        Some(parts)
    }

    fn vector(
        &mut self,
        constant: &Constant,
        shape: Shape,
        first: usize,
        parts: &mut Parts,
    ) -> Option<()> {
        let lanes = shape.lanes.unwrap_or(1) as usize;
        let per_part = shape.lanes_per_part() as usize;
        let mut known: Option<(Vec<u8>, ClifValue)> = None;
        for part in 0..shape.parts() {
            let mut bytes = Vec::with_capacity(16);
            for lane in part * per_part..(part + 1) * per_part {
                let lane = lane.min(lanes - 1);
                let bits = constant.bits(first + lane, shape.element)?;
                let bits =
                    if shape.element == Element::Int(1) { bits.wrapping_neg() } else { bits };
                let size = shape.element.lane_bits() as usize / 8;
                bytes.extend_from_slice(&bits.to_le_bytes()[..size]);
            }
            let value = match &known {
                Some((same, value)) if *same == bytes => *value,
                _ => {
                    let data = self.b.func.dfg.constants.insert(bytes.clone().into());
                    self.b.ins().vconst(shape.part(), data)
                }
            };
            known = Some((bytes, value));
            parts.push(value);
        }
        Some(())
    }

    /// A scalar from its bits.
    pub fn number(&mut self, element: Element, bits: u128) -> ClifValue {
        match element {
            Element::Float => self.b.ins().f32const(Ieee32::with_bits(bits as u32)),
            Element::Double => self.b.ins().f64const(Ieee64::with_bits(bits as u64)),
            Element::Int(128) => {
                let low = self.b.ins().iconst(I64, bits as i64);
                let high = self.b.ins().iconst(I64, (bits >> 64) as i64);
                self.b.ins().iconcat(low, high)
            }
            element => {
                // Cranelift requires the bits beyond the type to be zero.
                let mask = u128::MAX >> (128 - element.scalar().bits());
                self.b.ins().iconst(element.scalar(), (bits & mask) as i64)
            }
        }
    }
}
