//! Lanes of vectors: extracting, inserting, widening, narrowing and permuting them.
use super::{
    function::{Body, Parts},
    types::{Element, Shape, int, register},
};
use cranelift_codegen::ir::{
    InstBuilder, Type as Clif, Value as ClifValue,
    condcodes::IntCC,
    types::{I8, I8X16, I32, I64X2},
};

/// The source of a lane of a result: a part, and a lane of it.
pub type Source = Option<(usize, u32)>;

impl Body<'_, '_, '_> {
    /// One lane, as a scalar.
    pub fn extract(&mut self, shape: Shape, parts: &[ClifValue], lane: u32) -> ClifValue {
        if shape.lanes.is_none() {
            return parts[0];
        }
        let per_part = shape.lanes_per_part();
        let part = parts[(lane / per_part) as usize];
        let value = self.b.ins().extractlane(part, (lane % per_part) as u8);
        if shape.element == Element::Int(1) {
            let byte = self.b.ins().ireduce(I8, value);
            return self.b.ins().band_imm_u(byte, 1);
        }
        value
    }

    /// A scalar in the type of a vector's lane.
    pub fn as_lane(&mut self, element: Element, scalar: ClifValue) -> ClifValue {
        if element == Element::Int(1) {
            let wide = self.b.ins().uextend(I32, scalar);
            return self.b.ins().ineg(wide);
        }
        scalar
    }

    /// Replaces one lane.
    pub fn insert(&mut self, shape: Shape, parts: &mut [ClifValue], lane: u32, scalar: ClifValue) {
        let value = self.as_lane(shape.element, scalar);
        let per_part = shape.lanes_per_part();
        let part = &mut parts[(lane / per_part) as usize];
        *part = self.b.ins().insertlane(*part, value, (lane % per_part) as u8);
    }

    /// A vector with a scalar in every lane.
    pub fn splat(&mut self, shape: Shape, scalar: ClifValue) -> Parts {
        if shape.lanes.is_none() {
            return vec![scalar];
        }
        let value = self.as_lane(shape.element, scalar);
        let part = self.b.ins().splat(shape.part(), value);
        vec![part; shape.parts()]
    }

    /// A scalar op on each lane of its operands, for operations without a vector instruction.
    pub fn each_lane<const N: usize>(
        &mut self,
        operands: [(Shape, &[ClifValue]); N],
        result: Shape,
        mut op: impl FnMut(&mut Self, [ClifValue; N]) -> ClifValue,
    ) -> Parts {
        let Some(lanes) = result.lanes else {
            return vec![op(self, operands.map(|(_, parts)| parts[0]))];
        };
        let mut parts = self.zeros(result);
        for lane in 0..lanes {
            let scalars = operands.map(|(shape, parts)| self.extract(shape, parts, lane));
            let value = op(self, scalars);
            self.insert(result, &mut parts, lane, value);
        }
        parts
    }

    /// Converts integer lanes to another width: sign-extended, zero-extended or truncated.
    pub fn resize(
        &mut self,
        mut parts: Parts,
        lanes: u32,
        from: u32,
        to: u32,
        sign: bool,
    ) -> Parts {
        let mut bits = from;
        while bits < to {
            bits *= 2;
            parts = self.widen_once(&parts, sign);
            parts.truncate(lanes.div_ceil(128 / bits) as usize);
        }
        while bits > to {
            bits /= 2;
            parts = parts.chunks(2).map(|pair| self.narrow_once(pair)).collect();
        }
        parts
    }

    fn widen_once(&mut self, parts: &[ClifValue], sign: bool) -> Parts {
        let mut wide = Vec::with_capacity(parts.len() * 2);
        for part in parts {
            let (low, high) = if sign {
                (self.b.ins().swiden_low(*part), self.b.ins().swiden_high(*part))
            } else {
                (self.b.ins().uwiden_low(*part), self.b.ins().uwiden_high(*part))
            };
            wide.extend([low, high]);
        }
        wide
    }

    /// The low halves of the lanes of one or two registers, in one.
    fn narrow_once(&mut self, pair: &[ClifValue]) -> ClifValue {
        let ty = self.b.func.dfg.value_type(pair[0]);
        let half = register(int(ty.lane_bits() / 2));
        let lanes = ty.lane_count();
        let sources: Vec<Source> = (0..lanes)
            .map(|lane| Some((0, lane * 2)))
            .chain((0..lanes).map(|lane| (pair.len() > 1).then_some((1, lane * 2))))
            .collect();
        let pair: Parts = pair.iter().map(|part| self.bits_as(half, *part)).collect();
        self.permute(half, &pair, &sources)
    }

    /// Lanes of zero or all ones, resized to the lane width of another element.
    pub fn mask_for(&mut self, mask: Parts, lanes: u32, element: Element) -> Parts {
        self.resize(mask, lanes, 32, element.lane_bits(), true)
    }

    /// A register whose lanes are those of other registers.
    pub fn permute(&mut self, ty: Clif, parts: &[ClifValue], sources: &[Source]) -> ClifValue {
        let mut used: Vec<usize> = Vec::new();
        for (part, _) in sources.iter().flatten() {
            if !used.contains(part) {
                used.push(*part);
            }
        }
        let Some(first) = used.first().copied() else { return self.zero(ty) };
        let in_place =
            |(lane, source): (usize, &Source)| source.is_none_or(|(_, from)| from as usize == lane);
        if used.len() == 1 && sources.iter().enumerate().all(in_place) {
            return parts[first];
        }
        let bytes = ty.lane_bits() / 8;
        let second = used.get(1).copied().unwrap_or(first);
        let from = |part: usize| u32::from(part != first) * 16;
        let pick = |lane: usize, source: &Source| match source {
            Some((part, from_lane)) if [first, second].contains(part) => {
                from(*part) + from_lane * bytes
            }
            _ => lane as u32 * bytes,
        };
        let mut value = self.shuffle(ty, parts[first], parts[second], sources, pick);
        // Each further register is shuffled into the result so far.
        for part in used.into_iter().skip(2) {
            let pick = |lane: usize, source: &Source| match source {
                Some((from, from_lane)) if *from == part => 16 + from_lane * bytes,
                _ => lane as u32 * bytes,
            };
            value = self.shuffle(ty, value, parts[part], sources, pick);
        }
        value
    }

    fn shuffle(
        &mut self,
        ty: Clif,
        first: ClifValue,
        second: ClifValue,
        sources: &[Source],
        pick: impl Fn(usize, &Source) -> u32,
    ) -> ClifValue {
        let bytes = ty.lane_bits() / 8;
        let starts = sources.iter().enumerate().map(|(lane, source)| pick(lane, source));
        let mask: Vec<u8> =
            starts.flat_map(|start| (start..start + bytes).map(|byte| byte as u8)).collect();
        let mask = self.b.func.dfg.immediates.push(mask.into());
        let first = self.bits_as(I8X16, first);
        let second = self.bits_as(I8X16, second);
        let value = self.b.ins().shuffle(first, second, mask);
        self.bits_as(ty, value)
    }

    /// The upper half of a register in the lower half.
    pub fn upper_half(&mut self, value: ClifValue) -> ClifValue {
        let ty = self.b.func.dfg.value_type(value);
        let value = self.bits_as(I64X2, value);
        let upper = self.permute(I64X2, &[value], &[Some((0, 1)), Some((0, 1))]);
        self.bits_as(ty, upper)
    }

    /// The lower halves of one or two registers in one.
    pub fn join_halves(&mut self, pair: &[ClifValue]) -> ClifValue {
        let ty = self.b.func.dfg.value_type(pair[0]);
        let pair: Parts = pair.iter().map(|part| self.bits_as(I64X2, *part)).collect();
        let second = (pair.len() > 1).then_some((1, 0));
        let joined = self.permute(I64X2, &pair, &[Some((0, 0)), second]);
        self.bits_as(ty, joined)
    }

    /// The bits of a mask as an integer of at most 64 bits, lane 0 in the lowest bit.
    pub fn mask_bits(&mut self, mask: &[ClifValue], lanes: u32, ty: Clif) -> ClifValue {
        let wide = int(64);
        let mut bits = self.b.ins().iconst(wide, 0);
        for (index, part) in mask.iter().enumerate() {
            let nibble = self.b.ins().vhigh_bits(I32, *part);
            let nibble = self.b.ins().uextend(wide, nibble);
            let shifted = self.b.ins().ishl_imm_u(nibble, index as i64 * 4);
            bits = self.b.ins().bor(bits, shifted);
        }
        if lanes < 64 {
            bits = self.b.ins().band_imm_u(bits, (1_i64 << lanes) - 1);
        }
        if ty == wide { bits } else { self.b.ins().ireduce(ty, bits) }
    }

    /// The mask whose lanes are the bits of an integer.
    pub fn mask_of_bits(&mut self, bits: ClifValue, lanes: u32) -> Parts {
        let shape = Shape { element: Element::Int(1), lanes: Some(lanes) };
        let mut parts = self.zeros(shape);
        for lane in 0..lanes {
            let bit = self.b.ins().ushr_imm_u(bits, i64::from(lane));
            let ty = self.b.func.dfg.value_type(bit);
            let bit = if ty == I8 { bit } else { self.b.ins().ireduce(I8, bit) };
            let bit = self.b.ins().band_imm_u(bit, 1);
            self.insert(shape, &mut parts, lane, bit);
        }
        parts
    }

    /// Lanes that are not zero, as a mask.
    pub fn not_zero(&mut self, parts: &[ClifValue]) -> Parts {
        let compare = |part: &ClifValue| {
            let ty = self.b.func.dfg.value_type(*part);
            let zero = self.zero(ty);
            self.b.ins().icmp(IntCC::NotEqual, *part, zero)
        };
        parts.iter().map(compare).collect()
    }
}
