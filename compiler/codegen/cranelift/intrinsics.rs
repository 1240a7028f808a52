//! LLVM's numeric intrinsics.
use super::{
    function::{Body, Op, Parts, Result, no_translation, unsupported},
    types::{Element, Shape},
};
use cranelift_codegen::ir::{
    InstBuilder, Value as ClifValue,
    condcodes::{FloatCC, IntCC},
    types::{I8, I16, I32},
};

impl Body<'_, '_, '_> {
    /// A fused multiply-add.
    pub fn fma(&mut self, op: &Op<'_, '_>) -> Result<Parts> {
        if !self.unit.has_fma {
            return Err(unsupported(op, "a fused multiply-add for a processor without one"));
        }
        let shape = self.operand_shape(op, 0)?;
        let [a, b, c] = [self.operand(op, 0)?, self.operand(op, 1)?, self.operand(op, 2)?];
        Ok(self.in_float(shape, [&a, &b, &c], |body, [a, b, c]| {
            let terms = a.iter().zip(&b).zip(&c);
            terms.map(|((a, b), c)| body.b.ins().fma(*a, *b, *c)).collect()
        }))
    }

    pub fn copy_sign(&mut self, op: &Op<'_, '_>) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let (value, sign) = (self.operand(op, 0)?, self.operand(op, 1)?);
        Ok(self.with_sign(shape, &value, &sign))
    }

    /// Numbers with the signs of others.
    fn with_sign(&mut self, shape: Shape, value: &[ClifValue], sign: &[ClifValue]) -> Parts {
        if shape.lanes.is_none() && !shape.element.is_small_float() {
            return vec![self.b.ins().fcopysign(value[0], sign[0])];
        }
        let bits = bits_of(shape);
        let top = 1_u64 << (shape.element.lane_bits() - 1);
        self.pairwise(value, sign, |body, value, sign| {
            let ty = body.b.func.dfg.value_type(value);
            let (value, sign) = (body.bits_as(bits.part(), value), body.bits_as(bits.part(), sign));
            let (top, rest) = (body.imm(bits.part(), top), body.imm(bits.part(), top - 1));
            let (value, sign) = (body.b.ins().band(value, rest), body.b.ins().band(sign, top));
            let joined = body.b.ins().bor(value, sign);
            body.bits_as(ty, joined)
        })
    }

    pub fn rounding(&mut self, op: &Op<'_, '_>, name: &str) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let value = self.operand(op, 0)?;
        let wide = if shape.element.is_small_float() { shape.of(Element::Float) } else { shape };
        Ok(self.in_float(shape, [&value], |body, [value]| {
            if name == "round" {
                return body.round_away(wide, &value);
            }
            let round = |part: &ClifValue| match name {
                "sqrt" => body.b.ins().sqrt(*part),
                "floor" => body.b.ins().floor(*part),
                "ceil" => body.b.ins().ceil(*part),
                "trunc" => body.b.ins().trunc(*part),
                _ => body.b.ins().nearest(*part),
            };
            value.iter().map(round).collect()
        }))
    }

    /// To the nearest integer, ties away from zero: the fraction is exact, so that it can be compared with
    /// 1/2.
    fn round_away(&mut self, shape: Shape, value: &[ClifValue]) -> Parts {
        let (one, half) = match shape.element {
            Element::Double => (0x3ff0_0000_0000_0000, 0x3fe0_0000_0000_0000),
            _ => (0x3f80_0000, 0x3f00_0000),
        };
        let (one, half) = (self.imm(shape.part(), one), self.imm(shape.part(), half));
        let ones = vec![one; value.len()];
        let signed = self.with_sign(shape, &ones, value);
        self.pairwise(value, &signed, |body, value, one| {
            let cut = body.b.ins().trunc(value);
            let rest = body.b.ins().fsub(value, cut);
            let rest = body.b.ins().fabs(rest);
            let more = body.b.ins().fcmp(FloatCC::GreaterThanOrEqual, rest, half);
            let next = body.b.ins().fadd(cut, one);
            body.choose(more, next, cut)
        })
    }

    pub fn float_extreme(&mut self, op: &Op<'_, '_>, name: &str) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let (left, right) = (self.operand(op, 0)?, self.operand(op, 1)?);
        Ok(self.in_float(shape, [&left, &right], |body, [left, right]| {
            body.pairwise(&left, &right, |body, left, right| {
                body.float_extreme_of(name, left, right)
            })
        }))
    }

    /// The maximum or minimum of two floats: NaN if either is NaN for `maximum` and `minimum`, otherwise
    /// the other operand.
    pub fn float_extreme_of(&mut self, name: &str, left: ClifValue, right: ClifValue) -> ClifValue {
        let ins = self.b.ins();
        let value = match name.starts_with("max") {
            true => ins.fmax(left, right),
            false => ins.fmin(left, right),
        };
        if matches!(name, "maximum" | "minimum") {
            return value;
        }
        let left_nan = self.b.ins().fcmp(FloatCC::Unordered, left, left);
        let right_nan = self.b.ins().fcmp(FloatCC::Unordered, right, right);
        let value = self.choose(right_nan, left, value);
        self.choose(left_nan, right, value)
    }

    pub fn bits(&mut self, op: &Op<'_, '_>, name: &str) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let value = self.operand(op, 0)?;
        if matches!(shape.element, Element::Int(1 | 128)) {
            return Err(unsupported(op, "this type"));
        }
        if name == "abs" {
            return Ok(value.iter().map(|part| self.b.ins().iabs(*part)).collect());
        }
        Ok(self.each_lane([(shape, &value)], shape, |body, [lane]| {
            let byte = body.b.func.dfg.value_type(lane) == I8;
            let ins = body.b.ins();
            match name {
                "ctpop" => ins.popcnt(lane),
                "ctlz" => ins.clz(lane),
                "cttz" => ins.ctz(lane),
                "bswap" if byte => lane,
                "bswap" => ins.bswap(lane),
                _ => ins.bitrev(lane),
            }
        }))
    }

    /// The upper or lower bits of two concatenated numbers, shifted by an amount modulo their width.
    pub fn funnel(&mut self, op: &Op<'_, '_>, name: &str) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let bits = i64::from(shape.element.lane_bits());
        let [high, low, by] = [self.operand(op, 0)?, self.operand(op, 1)?, self.operand(op, 2)?];
        let operands = [(shape, high.as_slice()), (shape, low.as_slice()), (shape, by.as_slice())];
        Ok(self.each_lane(operands, shape, |body, [high, low, by]| {
            let by = body.b.ins().band_imm_u(by, bits - 1);
            let ty = body.b.func.dfg.value_type(by);
            let all = body.b.ins().iconst(ty, bits);
            let rest = body.b.ins().isub(all, by);
            let none = body.b.ins().icmp_imm_u(IntCC::Equal, by, 0);
            let (up, down, whole) = if name == "fshl" { (by, rest, high) } else { (rest, by, low) };
            let (upper, lower) = (body.b.ins().ishl(high, up), body.b.ins().ushr(low, down));
            let joined = body.b.ins().bor(upper, lower);
            body.b.ins().select(none, whole, joined)
        }))
    }

    pub fn overflowing(&mut self, op: &Op<'_, '_>, name: &str) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let (left, right) = (self.scalar(op, 0)?, self.scalar(op, 1)?);
        let Element::Int(8 | 16 | 32 | 64) = shape.element else {
            return Err(unsupported(op, "this type"));
        };
        let (value, flag) = self.with_overflow(op, name, left, right)?;
        Ok(vec![value, flag])
    }

    fn with_overflow(
        &mut self,
        op: &Op<'_, '_>,
        name: &str,
        left: ClifValue,
        right: ClifValue,
    ) -> Result<(ClifValue, ClifValue)> {
        let ins = self.b.ins();
        Ok(match name {
            "uadd" => ins.uadd_overflow(left, right),
            "sadd" => ins.sadd_overflow(left, right),
            "usub" => ins.usub_overflow(left, right),
            "ssub" => ins.ssub_overflow(left, right),
            "umul" => ins.umul_overflow(left, right),
            "smul" => ins.smul_overflow(left, right),
            _ => return Err(no_translation(op)),
        })
    }

    pub fn saturating(&mut self, op: &Op<'_, '_>, name: &str) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let (left, right) = (self.operand(op, 0)?, self.operand(op, 1)?);
        let Element::Int(bits @ (8 | 16 | 32 | 64)) = shape.element else {
            return Err(unsupported(op, "this type"));
        };
        let plain = &name[..4];
        let operands = [(shape, left.as_slice()), (shape, right.as_slice())];
        let mut failed = None;
        let value = self.each_lane(operands, shape, |body, [left, right]| {
            let (value, over) = match body.with_overflow(op, plain, left, right) {
                Ok(pair) => pair,
                Err(error) => {
                    failed = Some(error);
                    return left;
                }
            };
            let limit = match plain {
                "uadd" => body.number(shape.element, u128::MAX),
                "usub" => body.number(shape.element, 0),
                _ => {
                    // Saturates at the maximum for a negative sum, at the minimum for another.
                    let sign = body.b.ins().sshr_imm_u(value, i64::from(bits) - 1);
                    let least = body.number(shape.element, 1 << (bits - 1));
                    body.b.ins().bxor(sign, least)
                }
            };
            body.b.ins().select(over, limit, value)
        });
        failed.map_or(Ok(value), Err)
    }

    /// Whether floats belong to any of the classes of a mask, whose bits are in LLVM's order.
    pub fn float_class(&mut self, op: &Op<'_, '_>, wanted: i64) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let value = self.operand(op, 0)?;
        let (bits, mantissa) = match shape.element {
            Element::Half => (16, 10),
            Element::Bfloat => (16, 7),
            Element::Float => (32, 23),
            Element::Double => (64, 52),
            _ => return Err(unsupported(op, "this type")),
        };
        let format = Format { bits, mantissa };
        let truth = shape.of(Element::Int(1));
        Ok(self.each_lane([(shape, &value)], truth, |body, [lane]| {
            let ty = bits_of(Shape::scalar(shape.element)).part();
            let lane = body.bits_as(ty, lane);
            body.class_of(format, wanted, lane)
        }))
    }

    fn class_of(&mut self, format: Format, wanted: i64, bits: ClifValue) -> ClifValue {
        let ty = self.b.func.dfg.value_type(bits);
        let most = (1_u64 << (format.bits - 1)) - 1;
        let infinity = most & !((1 << format.mantissa) - 1);
        let (least_normal, quiet) = (1_u64 << format.mantissa, 1_u64 << (format.mantissa - 1));
        let rest = self.imm(ty, most);
        let magnitude = self.b.ins().band(bits, rest);
        let negative = self.b.ins().icmp(IntCC::NotEqual, bits, magnitude);
        let positive = self.b.ins().icmp(IntCC::Equal, bits, magnitude);
        // Classes as ranges of magnitudes: first, last, then the flags of negative and positive numbers.
        let ranges = [
            (infinity + 1, (infinity | quiet) - 1, 1, 1),
            (infinity | quiet, most, 2, 2),
            (infinity, infinity, 4, 512),
            (least_normal, infinity - 1, 8, 256),
            (1, least_normal - 1, 16, 128),
            (0, 0, 32, 64),
        ];
        let mut any = self.b.ins().iconst(I8, 0);
        for (first, last, below, above) in ranges {
            let sign = match (wanted & below != 0, wanted & above != 0) {
                (false, false) => continue,
                (true, true) => None,
                (true, false) => Some(negative),
                (false, true) => Some(positive),
            };
            let (low, span) = (self.imm(ty, first), self.imm(ty, last - first));
            let offset = self.b.ins().isub(magnitude, low);
            let mut within = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, offset, span);
            if let Some(sign) = sign {
                within = self.b.ins().band(within, sign);
            }
            any = self.b.ins().bor(any, within);
        }
        any
    }
}

/// The bit layout of a float.
#[derive(Clone, Copy)]
struct Format {
    bits: u32,
    mantissa: u32,
}

/// Integers of the width of floats.
fn bits_of(shape: Shape) -> Shape {
    let bits = shape.element.lane_bits();
    debug_assert!([I16.bits(), I32.bits(), 64].contains(&bits));
    shape.of(Element::Int(bits))
}
