//! Conversions between `f16`, `bf16` and wider floats, in integer and `f32` arithmetic: Cranelift has none
//! for x86-64. Each rounds once, to nearest, ties to even.
//!
//! All apply to a register of lanes and to a scalar alike. The conversions of `f16` scale by powers of two,
//! which normalises subnormal numbers (Maratyszcza, `FP16`).
use super::{
    function::{Body, Parts},
    types::{Element, Shape},
};
use cranelift_codegen::ir::{
    InstBuilder, Type as Clif, Value as ClifValue,
    condcodes::{FloatCC, IntCC},
    immediates::{Ieee32, Ieee64},
    types::{F32, F32X4, F64, F64X2, I16, I32, I32X4},
};

impl Body<'_, '_, '_> {
    /// A constant, from its bits, in every lane of a type.
    pub fn imm(&mut self, ty: Clif, bits: u64) -> ClifValue {
        if ty.is_vector() {
            let bytes = ty.lane_bits() as usize / 8;
            let data: Vec<u8> = (0..16).map(|at| bits.to_le_bytes()[at % bytes]).collect();
            let data = self.b.func.dfg.constants.insert(data.into());
            return self.b.ins().vconst(ty, data);
        }
        match ty {
            F32 => self.b.ins().f32const(Ieee32::with_bits(bits as u32)),
            F64 => self.b.ins().f64const(Ieee64::with_bits(bits)),
            _ => self.b.ins().iconst(ty, bits as i64),
        }
    }

    /// Selects by a condition: the result of a comparison of values of the same width.
    pub fn choose(&mut self, cond: ClifValue, yes: ClifValue, no: ClifValue) -> ClifValue {
        let ty = self.b.func.dfg.value_type(yes);
        if ty.is_vector() {
            let mask = self.bits_as(ty, cond);
            return self.b.ins().bitselect(mask, yes, no);
        }
        self.b.ins().select(cond, yes, no)
    }

    /// Shifts every lane by a constant.
    pub fn shift_left(&mut self, value: ClifValue, by: i64) -> ClifValue {
        let by = self.b.ins().iconst(I32, by);
        self.b.ins().ishl(value, by)
    }

    /// Shifts every lane by a constant, filling with zeros.
    pub fn shift_right(&mut self, value: ClifValue, by: i64) -> ClifValue {
        let by = self.b.ins().iconst(I32, by);
        self.b.ins().ushr(value, by)
    }

    /// Halves of some format as `f32`, exactly.
    pub fn small_to_float(&mut self, shape: Shape, parts: &[ClifValue]) -> Parts {
        let (ints, floats) = types_of(shape);
        let wide = match shape.lanes {
            None => vec![self.b.ins().uextend(I32, parts[0])],
            Some(lanes) => self.resize(parts.to_vec(), lanes, 16, 32, false),
        };
        let convert = |bits| {
            if shape.element == Element::Bfloat {
                let bits = self.shift_left(bits, 16);
                return self.bits_as(floats, bits);
            }
            self.half_to_float(ints, floats, bits)
        };
        wide.into_iter().map(convert).collect()
    }

    fn half_to_float(&mut self, ints: Clif, floats: Clif, bits: ClifValue) -> ClifValue {
        let sign_bit = self.imm(ints, 0x8000);
        let sign = self.b.ins().band(bits, sign_bit);
        let sign = self.shift_left(sign, 16);
        let all_else = self.imm(ints, 0x7fff);
        let magnitude = self.b.ins().band(bits, all_else);
        // The exponent's bias is 112 less than that of f32.
        let shifted = self.shift_left(magnitude, 13);
        let shifted = self.bits_as(floats, shifted);
        let scale = self.imm(floats, 0x7780_0000);
        let scaled = self.b.ins().fmul(shifted, scale);
        let scaled = self.bits_as(ints, scaled);
        let largest = self.imm(ints, 0x7bff);
        let infinite = self.b.ins().icmp(IntCC::SignedGreaterThan, magnitude, largest);
        let exponent = self.imm(ints, 0x7f80_0000);
        let special = self.b.ins().bor(scaled, exponent);
        let value = self.choose(infinite, special, scaled);
        let infinity = self.imm(ints, 0x7c00);
        let nan = self.b.ins().icmp(IntCC::SignedGreaterThan, magnitude, infinity);
        let quiet_bit = self.imm(ints, 0x0040_0000);
        let quiet = self.b.ins().bor(value, quiet_bit);
        let value = self.choose(nan, quiet, value);
        let value = self.b.ins().bor(value, sign);
        self.bits_as(floats, value)
    }

    /// `f32` as halves of the format of the shape.
    pub fn float_to_small(&mut self, shape: Shape, parts: &[ClifValue]) -> Parts {
        let (ints, floats) = types_of(shape);
        let convert = |part: &ClifValue| match shape.element {
            Element::Bfloat => self.float_to_bfloat(ints, *part),
            _ => self.float_to_half(ints, floats, *part),
        };
        let bits: Parts = parts.iter().map(convert).collect();
        match shape.lanes {
            None => vec![self.b.ins().ireduce(I16, bits[0])],
            Some(lanes) => self.resize(bits, lanes, 32, 16, false),
        }
    }

    fn float_to_bfloat(&mut self, ints: Clif, value: ClifValue) -> ClifValue {
        let bits = self.bits_as(ints, value);
        let upper = self.shift_right(bits, 16);
        let one = self.imm(ints, 1);
        let odd = self.b.ins().band(upper, one);
        let almost_half = self.imm(ints, 0x7fff);
        let round = self.b.ins().iadd(odd, almost_half);
        let rounded = self.b.ins().iadd(bits, round);
        let rounded = self.shift_right(rounded, 16);
        let quiet_bit = self.imm(ints, 0x40);
        let quiet = self.b.ins().bor(upper, quiet_bit);
        let nan = self.b.ins().fcmp(FloatCC::Unordered, value, value);
        self.choose(nan, quiet, rounded)
    }

    fn float_to_half(&mut self, ints: Clif, floats: Clif, value: ClifValue) -> ClifValue {
        let bits = self.bits_as(ints, value);
        let sign_bit = self.imm(ints, 0x8000_0000);
        let sign = self.b.ins().band(bits, sign_bit);
        let sign = self.shift_right(sign, 16);
        // Up by 2^112 and down by 2^-110: values that are too large become infinite.
        let magnitude = self.b.ins().fabs(value);
        let up = self.imm(floats, 0x7780_0000);
        let down = self.imm(floats, 0x0880_0000);
        let scaled = self.b.ins().fmul(magnitude, up);
        let scaled = self.b.ins().fmul(scaled, down);
        // Adding a power of two that leaves eleven bits to the sum rounds to them.
        let doubled = self.b.ins().iadd(bits, bits);
        let exponent_bits = self.imm(ints, 0xff00_0000);
        let exponent = self.b.ins().band(doubled, exponent_bits);
        let least = self.imm(ints, 0x7100_0000);
        let exponent = self.b.ins().umax(exponent, least);
        let exponent = self.shift_right(exponent, 1);
        let offset = self.imm(ints, 0x0780_0000);
        let bias = self.b.ins().iadd(exponent, offset);
        let bias = self.bits_as(floats, bias);
        let sum = self.b.ins().fadd(bias, scaled);
        let sum = self.bits_as(ints, sum);
        let exponent = self.shift_right(sum, 13);
        let mask = self.imm(ints, 0x7c00);
        let exponent = self.b.ins().band(exponent, mask);
        let mask = self.imm(ints, 0x0fff);
        let mantissa = self.b.ins().band(sum, mask);
        let number = self.b.ins().iadd(exponent, mantissa);
        let nan = self.half_nan(ints, bits);
        let is_nan = self.b.ins().fcmp(FloatCC::Unordered, value, value);
        let result = self.choose(is_nan, nan, number);
        self.b.ins().bor(result, sign)
    }

    /// The quiet NaN with the upper bits of an `f32` NaN's payload.
    fn half_nan(&mut self, ints: Clif, bits: ClifValue) -> ClifValue {
        let payload = self.shift_right(bits, 13);
        let mask = self.imm(ints, 0x3ff);
        let payload = self.b.ins().band(payload, mask);
        let quiet = self.imm(ints, 0x7e00);
        self.b.ins().bor(payload, quiet)
    }

    /// `f64` as an `f32` whose last bit is set if bits were truncated: rounding that to less than 23 bits
    /// has the result of rounding the `f64` directly (Boldo and Melquiond, rounding to odd).
    pub fn round_to_odd(&mut self, value: ClifValue) -> ClifValue {
        let nearest = self.b.ins().fdemote(F32, value);
        let back = self.b.ins().fpromote(F64, nearest);
        let bits = self.bits_as(I32, nearest);
        let (above, beyond) = (self.b.ins().fabs(back), self.b.ins().fabs(value));
        let too_large = self.b.ins().fcmp(FloatCC::GreaterThan, above, beyond);
        let too_large = self.b.ins().uextend(I32, too_large);
        let truncated = self.b.ins().isub(bits, too_large);
        let inexact = self.b.ins().fcmp(FloatCC::OrderedNotEqual, back, value);
        let inexact = self.b.ins().uextend(I32, inexact);
        let odd = self.b.ins().bor(truncated, inexact);
        self.bits_as(F32, odd)
    }

    /// `f32` as `f64`.
    pub fn promote(&mut self, shape: Shape, parts: &[ClifValue]) -> Parts {
        let Some(lanes) = shape.lanes else {
            return vec![self.b.ins().fpromote(F64, parts[0])];
        };
        let mut wide = Vec::new();
        for part in parts {
            let upper = self.upper_half(*part);
            wide.push(self.b.ins().fvpromote_low(*part));
            wide.push(self.b.ins().fvpromote_low(upper));
        }
        wide.truncate(lanes.div_ceil(2) as usize);
        wide
    }

    /// `f64` as `f32`.
    pub fn demote(&mut self, shape: Shape, parts: &[ClifValue]) -> Parts {
        if shape.lanes.is_none() {
            return vec![self.b.ins().fdemote(F32, parts[0])];
        }
        debug_assert!(parts.iter().all(|part| self.b.func.dfg.value_type(*part) == F64X2));
        let halves: Parts = parts.iter().map(|part| self.b.ins().fvdemote(*part)).collect();
        halves.chunks(2).map(|pair| self.join_halves(pair)).collect()
    }
}

/// The types of 32-bit integers and floats for the lanes of a shape.
fn types_of(shape: Shape) -> (Clif, Clif) {
    if shape.lanes.is_some() { (I32X4, F32X4) } else { (I32, F32) }
}
