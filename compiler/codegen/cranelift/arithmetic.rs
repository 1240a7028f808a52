//! Arithmetic, comparisons and selection, lane by lane.
use super::{
    function::{Body, Op, Parts, Result, unsupported},
    types::{Element, Shape, int},
};
use crate::codegen::inst::{FloatPredicate, IntPredicate};
use cranelift_codegen::ir::{
    InstBuilder, Value as ClifValue,
    condcodes::{FloatCC, IntCC},
    types::{I8X16, I32, I64X2},
};

impl Body<'_, '_, '_> {
    /// Two operands, part by part.
    pub fn pairwise(
        &mut self,
        left: &[ClifValue],
        right: &[ClifValue],
        mut op: impl FnMut(&mut Self, ClifValue, ClifValue) -> ClifValue,
    ) -> Parts {
        left.iter().zip(right).map(|(left, right)| op(self, *left, *right)).collect()
    }

    /// Integer arithmetic.
    pub fn integers(&mut self, op: &Op<'_, '_>, name: &str) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let (left, right) = (self.operand(op, 0)?, self.operand(op, 1)?);
        // Modulo two, a sum is an exclusive or, and a product is an and.
        let name = match (shape.element, name) {
            (Element::Int(1), "add" | "sub") => "xor",
            (Element::Int(1), "mul") => "and",
            (_, name) => name,
        };
        if name == "mul" && shape.part() == I8X16 {
            let operands = [(shape, left.as_slice()), (shape, right.as_slice())];
            return Ok(self.each_lane(operands, shape, |body, [l, r]| body.b.ins().imul(l, r)));
        }
        Ok(self.pairwise(&left, &right, |body, left, right| {
            let ins = body.b.ins();
            match name {
                "add" => ins.iadd(left, right),
                "sub" => ins.isub(left, right),
                "mul" => ins.imul(left, right),
                "and" => ins.band(left, right),
                "or" => ins.bor(left, right),
                _ => ins.bxor(left, right),
            }
        }))
    }

    /// A shift of integers.
    pub fn shift(&mut self, op: &Op<'_, '_>, name: &str) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let (value, amount) = (self.operand(op, 0)?, self.operand(op, 1)?);
        if shape.element == Element::Int(1) {
            // Only a shift by zero is defined.
            return Ok(value);
        }
        let shift = |body: &mut Self, value, by| {
            let ins = body.b.ins();
            match name {
                "shl" => ins.ishl(value, by),
                "lshr" => ins.ushr(value, by),
                _ => ins.sshr(value, by),
            }
        };
        let known = shape.lanes.and_then(|_| self.known(op, 1));
        if let Some(by) = known {
            let by = self.b.ins().iconst(I32, (by & 0xff) as i64);
            return Ok(value.iter().map(|part| shift(self, *part, by)).collect());
        }
        let operands = [(shape, value.as_slice()), (shape, amount.as_slice())];
        Ok(self.each_lane(operands, shape, |body, [value, by]| shift(body, value, by)))
    }

    /// A quotient or remainder of integers.
    pub fn divide(&mut self, op: &Op<'_, '_>, name: &str) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let (left, right) = (self.operand(op, 0)?, self.operand(op, 1)?);
        let Element::Int(bits @ (8 | 16 | 32 | 64)) = shape.element else {
            return Err(unsupported(op, "division of this type"));
        };
        let operands = [(shape, left.as_slice()), (shape, right.as_slice())];
        Ok(self.each_lane(operands, shape, |body, operands| {
            // Narrow numbers are divided as wide ones, so that the minimum divided by -1 does not trap.
            let [left, right] = operands.map(|value| match (bits < 32, &name[..1]) {
                (false, _) => value,
                (true, "s") => body.b.ins().sextend(I32, value),
                (true, _) => body.b.ins().uextend(I32, value),
            });
            let ins = body.b.ins();
            let value = match name {
                "sdiv" => ins.sdiv(left, right),
                "udiv" => ins.udiv(left, right),
                "srem" => ins.srem(left, right),
                _ => ins.urem(left, right),
            };
            if bits < 32 { body.b.ins().ireduce(int(bits), value) } else { value }
        }))
    }

    /// A sum, difference, product or quotient of floats.
    pub fn floats(&mut self, op: &Op<'_, '_>, name: &str) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let (left, right) = (self.operand(op, 0)?, self.operand(op, 1)?);
        Ok(self.float_binary(shape, name, &left, &right))
    }

    /// A sum, difference, product or quotient. For half floats, `f32` has more than twice their precision,
    /// so that double rounding is correct.
    pub fn float_binary(
        &mut self,
        shape: Shape,
        name: &str,
        left: &[ClifValue],
        right: &[ClifValue],
    ) -> Parts {
        self.in_float(shape, [left, right], |body, [left, right]| {
            body.pairwise(&left, &right, |body, left, right| {
                let ins = body.b.ins();
                match name {
                    "fadd" => ins.fadd(left, right),
                    "fsub" => ins.fsub(left, right),
                    "fmul" => ins.fmul(left, right),
                    _ => ins.fdiv(left, right),
                }
            })
        })
    }

    /// Computes half floats in `f32` and rounds the result; other floats in their own type.
    pub fn in_float<const N: usize>(
        &mut self,
        shape: Shape,
        operands: [&[ClifValue]; N],
        op: impl FnOnce(&mut Self, [Parts; N]) -> Parts,
    ) -> Parts {
        if !shape.element.is_small_float() {
            return op(self, operands.map(<[ClifValue]>::to_vec));
        }
        let wide = operands.map(|parts| self.small_to_float(shape, parts));
        let value = op(self, wide);
        self.float_to_small(shape, &value)
    }

    /// The negated numbers.
    pub fn negate(&mut self, shape: Shape, value: &[ClifValue]) -> Parts {
        let flip = |part: &ClifValue| {
            if shape.element.is_small_float() {
                let sign = self.imm(shape.part(), 0x8000_8000_8000_8000 & mask(shape));
                return self.b.ins().bxor(*part, sign);
            }
            self.b.ins().fneg(*part)
        };
        value.iter().map(flip).collect()
    }

    /// The absolute values of numbers.
    pub fn magnitude(&mut self, shape: Shape, value: &[ClifValue]) -> Parts {
        let clear = |part: &ClifValue| {
            if shape.element.is_small_float() {
                let rest = self.imm(shape.part(), 0x7fff_7fff_7fff_7fff & mask(shape));
                return self.b.ins().band(*part, rest);
            }
            self.b.ins().fabs(*part)
        };
        value.iter().map(clear).collect()
    }

    /// A comparison of integers or pointers.
    pub fn icmp(&mut self, op: &Op<'_, '_>, predicate: IntPredicate) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let cond = match predicate {
            IntPredicate::Eq => IntCC::Equal,
            IntPredicate::Ne => IntCC::NotEqual,
            IntPredicate::Slt => IntCC::SignedLessThan,
            IntPredicate::Sle => IntCC::SignedLessThanOrEqual,
            IntPredicate::Sgt => IntCC::SignedGreaterThan,
            IntPredicate::Sge => IntCC::SignedGreaterThanOrEqual,
            IntPredicate::Ult => IntCC::UnsignedLessThan,
            IntPredicate::Ule => IntCC::UnsignedLessThanOrEqual,
            IntPredicate::Ugt => IntCC::UnsignedGreaterThan,
            IntPredicate::Uge => IntCC::UnsignedGreaterThanOrEqual,
        };
        let (left, right) = (self.operand(op, 0)?, self.operand(op, 1)?);
        Ok(self.compare_integers(shape, cond, &left, &right))
    }

    /// Compares integers or pointers; an `i1` of 1 is -1 in signed comparisons.
    pub fn compare_integers(
        &mut self,
        shape: Shape,
        cond: IntCC,
        left: &[ClifValue],
        right: &[ClifValue],
    ) -> Parts {
        let Some(lanes) = shape.lanes else {
            let (mut left, mut right) = (left[0], right[0]);
            if shape.element == Element::Int(1) && cond.unsigned() != cond {
                (left, right) = (self.b.ins().ineg(left), self.b.ins().ineg(right));
            }
            return vec![self.b.ins().icmp(cond, left, right)];
        };
        let masks = self.pairwise(left, right, |body, left, right| body.compare(cond, left, right));
        self.resize(masks, lanes, shape.element.lane_bits(), 32, true)
    }

    /// A comparison of floats.
    pub fn fcmp(&mut self, op: &Op<'_, '_>, predicate: FloatPredicate) -> Result<Parts> {
        let shape = self.operand_shape(op, 0)?;
        let (left, right) = (self.operand(op, 0)?, self.operand(op, 1)?);
        let cond = match predicate {
            FloatPredicate::Oeq => FloatCC::Equal,
            FloatPredicate::Ogt => FloatCC::GreaterThan,
            FloatPredicate::Oge => FloatCC::GreaterThanOrEqual,
            FloatPredicate::Olt => FloatCC::LessThan,
            FloatPredicate::Ole => FloatCC::LessThanOrEqual,
            FloatPredicate::One => FloatCC::OrderedNotEqual,
            FloatPredicate::Ord => FloatCC::Ordered,
            FloatPredicate::Ueq => FloatCC::UnorderedOrEqual,
            FloatPredicate::Ugt => FloatCC::UnorderedOrGreaterThan,
            FloatPredicate::Uge => FloatCC::UnorderedOrGreaterThanOrEqual,
            FloatPredicate::Ult => FloatCC::UnorderedOrLessThan,
            FloatPredicate::Ule => FloatCC::UnorderedOrLessThanOrEqual,
            FloatPredicate::Une => FloatCC::NotEqual,
            FloatPredicate::Uno => FloatCC::Unordered,
            FloatPredicate::False | FloatPredicate::True => {
                let holds = i64::from(predicate == FloatPredicate::True);
                let truth = self.b.ins().iconst(Element::Int(1).scalar(), holds);
                return Ok(self.splat(shape.of(Element::Int(1)), truth));
            }
        };
        Ok(self.compare_floats(shape, cond, &left, &right))
    }

    /// Compares floats.
    pub fn compare_floats(
        &mut self,
        shape: Shape,
        cond: FloatCC,
        left: &[ClifValue],
        right: &[ClifValue],
    ) -> Parts {
        if shape.element.is_small_float() {
            let (left, right) =
                (self.small_to_float(shape, left), self.small_to_float(shape, right));
            return self.compare_floats(shape.of(Element::Float), cond, &left, &right);
        }
        let Some(lanes) = shape.lanes else {
            return vec![self.b.ins().fcmp(cond, left[0], right[0])];
        };
        let masks = self.pairwise(left, right, |body, left, right| {
            // Vectors have no instruction for these two.
            let (cond, strict) = match cond {
                FloatCC::OrderedNotEqual => (FloatCC::NotEqual, Some(FloatCC::Ordered)),
                FloatCC::UnorderedOrEqual => (FloatCC::Equal, Some(FloatCC::Unordered)),
                cond => (cond, None),
            };
            let mask = body.b.ins().fcmp(cond, left, right);
            let Some(strict) = strict else { return mask };
            let second = body.b.ins().fcmp(strict, left, right);
            match strict {
                FloatCC::Ordered => body.b.ins().band(mask, second),
                _ => body.b.ins().bor(mask, second),
            }
        });
        self.resize(masks, lanes, shape.element.lane_bits(), 32, true)
    }

    /// Selects one of two values.
    pub fn select(&mut self, op: &Op<'_, '_>) -> Result<Parts> {
        let cond_shape = self.operand_shape(op, 0)?;
        let cond = self.operand(op, 0)?;
        let (yes, no) = (self.operand(op, 1)?, self.operand(op, 2)?);
        if cond_shape.lanes.is_none() {
            return Ok(
                self.pairwise(&yes, &no, |body, yes, no| body.b.ins().select(cond[0], yes, no))
            );
        }
        let shape = self.result_shape(op)?;
        Ok(self.select_lanes(shape, &cond, &yes, &no))
    }

    /// Selects lanes of two vectors by a mask.
    pub fn select_lanes(
        &mut self,
        shape: Shape,
        mask: &[ClifValue],
        yes: &[ClifValue],
        no: &[ClifValue],
    ) -> Parts {
        let Some(lanes) = shape.lanes else {
            return vec![self.b.ins().select(mask[0], yes[0], no[0])];
        };
        let mask = self.mask_for(mask.to_vec(), lanes, shape.element);
        let both = mask.iter().zip(yes).zip(no);
        both.map(|((mask, yes), no)| self.choose(*mask, *yes, *no)).collect()
    }

    /// The maximum or minimum of two integers.
    pub fn extreme(
        &mut self,
        shape: Shape,
        name: &str,
        left: &[ClifValue],
        right: &[ClifValue],
    ) -> Parts {
        let cond = match name {
            "smax" => IntCC::SignedGreaterThan,
            "smin" => IntCC::SignedLessThan,
            "umax" => IntCC::UnsignedGreaterThan,
            _ => IntCC::UnsignedLessThan,
        };
        if shape.element == Element::Int(1) || shape.part() == I64X2 {
            let mask = self.compare_integers(shape, cond, left, right);
            return self.select_lanes(shape, &mask, left, right);
        }
        self.pairwise(left, right, |body, left, right| {
            let ins = body.b.ins();
            match name {
                "smax" => ins.smax(left, right),
                "smin" => ins.smin(left, right),
                "umax" => ins.umax(left, right),
                _ => ins.umin(left, right),
            }
        })
    }
}

/// A mask of the bits of an immediate of a part.
fn mask(shape: Shape) -> u64 {
    if shape.lanes.is_some() { u64::MAX } else { 0xffff }
}
