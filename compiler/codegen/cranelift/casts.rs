//! Conversions between types of values.
use super::{
    function::{Body, Op, Parts, Result, no_translation, unsupported},
    types::{Element, Shape, int},
};
use cranelift_codegen::ir::{
    InstBuilder, Type as Clif, Value as ClifValue,
    condcodes::IntCC,
    types::{F32X4, F64X2, I8, I16, I32, I32X4, I64, I64X2},
};

impl Body<'_, '_, '_> {
    /// Translates an op that changes a value's type.
    pub fn cast(&mut self, op: Op<'_, '_>, name: &str) -> Result<()> {
        let value = self.operand(&op, 0)?;
        if matches!(name, "freeze" | "addrspacecast") {
            return self.define(&op, value);
        }
        let (from, to) = (self.operand_shape(&op, 0)?, self.result_shape(&op)?);
        if from.lanes != to.lanes && name != "bitcast" {
            return Err(no_translation(&op));
        }
        let cast = match name {
            "bitcast" => self.bitcast(from, to, &value),
            "ptrtoint" | "inttoptr" | "zext" | "trunc" => self.integer(from, to, value, false),
            "sext" => self.integer(from, to, value, true),
            "fpext" | "fptrunc" => Some(self.float(from, to, &value)),
            "sitofp" => self.integer_to_float(from, to, value, true),
            "uitofp" => self.integer_to_float(from, to, value, false),
            "fptosi" => self.float_to_integer(from, to, &value, true),
            "fptoui" => self.float_to_integer(from, to, &value, false),
            _ => return Err(no_translation(&op)),
        };
        let cast = cast.ok_or_else(|| unsupported(&op, "these types"))?;
        self.define(&op, cast)
    }

    fn bitcast(&mut self, from: Shape, to: Shape, value: &[ClifValue]) -> Option<Parts> {
        if from == to {
            return Some(value.to_vec());
        }
        let one_bit = Element::Int(1);
        match (from.lanes, to.lanes) {
            (Some(lanes), None) if from.element == one_bit && lanes <= 64 => {
                Some(vec![self.mask_bits(value, lanes, to.element.scalar())])
            }
            (None, Some(lanes)) if to.element == one_bit && lanes <= 64 => {
                Some(self.mask_of_bits(value[0], lanes))
            }
            _ if from.element == one_bit || to.element == one_bit => None,
            (Some(_), None) => {
                let ty = to.element.scalar();
                if ty.bits() == 128 {
                    return Some(vec![self.bits_as(ty, value[0])]);
                }
                let part = self.bits_as(super::types::register(ty), value[0]);
                Some(vec![self.b.ins().extractlane(part, 0)])
            }
            (None, Some(_)) => {
                let part = match self.b.func.dfg.value_type(value[0]) {
                    ty if ty.bits() == 128 => value[0],
                    ty => self.b.ins().splat(super::types::register(ty), value[0]),
                };
                Some(vec![self.bits_as(to.part(), part)])
            }
            _ => Some(value.iter().map(|part| self.bits_as(to.part(), *part)).collect()),
        }
    }

    /// Converts integers and pointers from one width to another.
    pub fn integer(&mut self, from: Shape, to: Shape, value: Parts, sign: bool) -> Option<Parts> {
        if from.element.is_float() || to.element.is_float() {
            return None;
        }
        let Some(lanes) = from.lanes else {
            return Some(vec![self.integer_scalar(from.element, to.element, value[0], sign)]);
        };
        let (one_bit, bits) = (Element::Int(1), to.element.lane_bits());
        let extend = sign || from.element == one_bit;
        let resized = self.resize(value, lanes, from.element.lane_bits(), bits, extend);
        if to.element == one_bit && from.element != one_bit {
            let one = self.imm(I32X4, 1);
            let low: Parts = resized.iter().map(|part| self.b.ins().band(*part, one)).collect();
            return Some(self.not_zero(&low));
        }
        if from.element == one_bit && to.element != one_bit && !sign {
            let one = self.imm(to.part(), 1);
            return Some(resized.iter().map(|part| self.b.ins().band(*part, one)).collect());
        }
        Some(resized)
    }

    fn integer_scalar(
        &mut self,
        from: Element,
        to: Element,
        value: ClifValue,
        sign: bool,
    ) -> ClifValue {
        let (narrow, wide) = (from.scalar(), to.scalar());
        let one_bit = Element::Int(1);
        if to == one_bit && from != one_bit {
            let byte = if narrow == I8 { value } else { self.b.ins().ireduce(I8, value) };
            return self.b.ins().band_imm_u(byte, 1);
        }
        // The negation of zero or one is its sign extension.
        let value =
            if from == one_bit && sign && to != one_bit { self.b.ins().ineg(value) } else { value };
        match narrow.bits().cmp(&wide.bits()) {
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Greater => self.b.ins().ireduce(wide, value),
            std::cmp::Ordering::Less if sign => self.b.ins().sextend(wide, value),
            std::cmp::Ordering::Less => self.b.ins().uextend(wide, value),
        }
    }

    /// Converts floats from one format to another.
    pub fn float(&mut self, from: Shape, to: Shape, value: &[ClifValue]) -> Parts {
        if from.element == to.element {
            return value.to_vec();
        }
        if from.element.is_small_float() {
            let single = self.small_to_float(from, value);
            return self.float(from.of(Element::Float), to, &single);
        }
        match (from.element, to.element) {
            (Element::Float, Element::Double) => self.promote(from, value),
            (Element::Double, Element::Float) => self.demote(from, value),
            (Element::Double, _) => {
                let singles = from.of(Element::Float);
                let odd = self
                    .each_lane([(from, value)], singles, |body, [lane]| body.round_to_odd(lane));
                self.float_to_small(to, &odd)
            }
            _ => self.float_to_small(to, value),
        }
    }

    fn integer_to_float(
        &mut self,
        from: Shape,
        to: Shape,
        value: Parts,
        sign: bool,
    ) -> Option<Parts> {
        if from.element == Element::Int(128) {
            return None;
        }
        if to.element.is_small_float() {
            // As in LLVM: rounded to f32 first, which makes a difference only for an i32 or i64 as bf16.
            let single = self.integer_to_float(from, to.of(Element::Float), value, sign)?;
            return Some(self.float_to_small(to, &single));
        }
        let narrow = from.element.lane_bits() < 32 || from.element == Element::Int(1);
        if narrow {
            let wide = from.of(Element::Int(32));
            let value = self.integer(from, wide, value, sign)?;
            return self.integer_to_float(wide, to, value, true);
        }
        let convert = |body: &mut Self, ty: Clif, value: ClifValue| match sign {
            true => body.b.ins().fcvt_from_sint(ty, value),
            false => body.b.ins().fcvt_from_uint(ty, value),
        };
        let Some(lanes) = from.lanes else {
            return Some(vec![convert(self, to.element.scalar(), value[0])]);
        };
        if from.element != Element::Int(32) {
            let ty = to.element.scalar();
            return Some(
                self.each_lane([(from, &value)], to, |body, [lane]| convert(body, ty, lane)),
            );
        }
        if to.element == Element::Float {
            return Some(value.iter().map(|part| convert(self, F32X4, *part)).collect());
        }
        let mut wide = Vec::new();
        for part in value {
            for half in [part, self.upper_half(part)] {
                let half = match sign {
                    true => self.b.ins().swiden_low(half),
                    false => self.b.ins().uwiden_low(half),
                };
                wide.push(convert(self, F64X2, half));
            }
        }
        wide.truncate(lanes.div_ceil(2) as usize);
        Some(wide)
    }

    /// An out-of-range float gives poison; here, the result of the processor's signed conversion if it has
    /// one, as with LLVM.
    fn float_to_integer(
        &mut self,
        from: Shape,
        to: Shape,
        value: &[ClifValue],
        sign: bool,
    ) -> Option<Parts> {
        if to.element == Element::Int(128) {
            return None;
        }
        if from.element.is_small_float() {
            let single = self.small_to_float(from, value);
            return self.float_to_integer(from.of(Element::Float), to, &single, sign);
        }
        if from.lanes.is_none() {
            return Some(vec![self.float_to_integer_scalar(
                from.element,
                to.element,
                value[0],
                sign,
            )]);
        }
        let bits = to.element.lane_bits();
        let narrow = bits < 32 || to.element == Element::Int(1);
        if from.element == Element::Float && (narrow || (bits == 32 && sign)) {
            let ints = value.iter().map(|part| self.b.ins().x86_cvtt2dq(I32X4, *part)).collect();
            return self.integer(from.of(Element::Int(32)), to, ints, sign);
        }
        if from.element == Element::Float && bits == 32 {
            let convert = |part: &ClifValue| self.b.ins().fcvt_to_uint_sat(I32X4, *part);
            return Some(value.iter().map(convert).collect());
        }
        Some(self.each_lane([(from, value)], to, |body, [lane]| {
            body.float_to_integer_scalar(from.element, to.element, lane, sign)
        }))
    }

    fn float_to_integer_scalar(
        &mut self,
        from: Element,
        to: Element,
        value: ClifValue,
        sign: bool,
    ) -> ClifValue {
        let bits = to.lane_bits();
        let narrow = bits < 32 || to == Element::Int(1);
        if from == Element::Float && (narrow || (bits == 32 && sign)) {
            let part = self.b.ins().scalar_to_vector(F32X4, value);
            let part = self.b.ins().x86_cvtt2dq(I32X4, part);
            let value = self.b.ins().extractlane(part, 0);
            return self.integer_scalar(Element::Int(32), to, value, true);
        }
        if bits == 64 && !sign {
            return self.b.ins().fcvt_to_uint_sat(I64, value);
        }
        // Every narrower integer, signed or not, fits i64.
        let value = self.b.ins().fcvt_to_sint_sat(I64, value);
        self.integer_scalar(Element::Int(64), to, value, true)
    }

    /// A float as the nearest integer in range; zero for a NaN.
    pub fn float_to_integer_saturated(
        &mut self,
        from: Shape,
        to: Shape,
        value: &[ClifValue],
        sign: bool,
    ) -> Option<Parts> {
        let bits = to.element.lane_bits();
        if matches!(to.element, Element::Int(1 | 128)) {
            return None;
        }
        if from.element.is_small_float() {
            let single = self.small_to_float(from, value);
            return self.float_to_integer_saturated(from.of(Element::Float), to, &single, sign);
        }
        Some(self.each_lane([(from, value)], to, |body, [lane]| {
            let wide = int(bits.max(32));
            let ins = body.b.ins();
            let value = match sign {
                true => ins.fcvt_to_sint_sat(wide, lane),
                false => ins.fcvt_to_uint_sat(wide, lane),
            };
            if bits >= 32 { value } else { body.clamp(value, int(bits), sign) }
        }))
    }

    /// An `i32` as the nearest number of a narrower type.
    fn clamp(&mut self, value: ClifValue, to: Clif, sign: bool) -> ClifValue {
        debug_assert!(to == I8 || to == I16);
        let most = if sign { (1_i64 << (to.bits() - 1)) - 1 } else { (1_i64 << to.bits()) - 1 };
        let high = self.b.ins().iconst(I32, most);
        let value = if sign {
            let value = self.b.ins().smin(value, high);
            let low = self.b.ins().iconst(I32, (-most - 1) & 0xffff_ffff);
            self.b.ins().smax(value, low)
        } else {
            self.b.ins().umin(value, high)
        };
        self.b.ins().ireduce(to, value)
    }

    /// Compares vectors or scalars, including unsigned comparisons that Cranelift has no instruction for.
    pub fn compare(&mut self, cond: IntCC, left: ClifValue, right: ClifValue) -> ClifValue {
        let ty = self.b.func.dfg.value_type(left);
        if ty == I64X2 && cond.unsigned() == cond && !matches!(cond, IntCC::Equal | IntCC::NotEqual)
        {
            let flip = self.imm(I64X2, 1 << 63);
            let (left, right) = (self.b.ins().bxor(left, flip), self.b.ins().bxor(right, flip));
            let signed = match cond {
                IntCC::UnsignedLessThan => IntCC::SignedLessThan,
                IntCC::UnsignedGreaterThan => IntCC::SignedGreaterThan,
                IntCC::UnsignedLessThanOrEqual => IntCC::SignedLessThanOrEqual,
                _ => IntCC::SignedGreaterThanOrEqual,
            };
            return self.b.ins().icmp(signed, left, right);
        }
        self.b.ins().icmp(cond, left, right)
    }
}
