//! A copy of an argument with zeros around it, as a convolution reads it: of its elements, or of four bytes as one element.
use super::{
    codegen::{Codegen, Place},
    error::{LowerError, Result},
    kernel::{Origin, TensorId, constant_of, defining_op, name_of, operand},
    layout::row_major,
    split::{self, Units},
};
use crate::attributes::PADS;
use crate::kernel::emit::{Buffer, Emit, Lanes, Prefetch};
use irc_mlir::ops::{arith, tensor};
use irc_mlir::{Attribute, BlockLike, OperationLike, OperationRef, Value, ValueLike, read};
use irc_mlir::{Type, TypeLike};
use melior::ir::attribute::{FloatAttribute, IntegerAttribute};
use std::convert::Infallible;

/// The maximum number of elements that are stored one by one.
const FEW: i64 = 4;

/// A stage that only places an argument of the kernel in zeros.
pub struct Padding<'c, 'a> {
    /// The stage.
    pub stage: usize,
    /// Whether rows of the result have their even elements before their odd ones.
    is_split: bool,
    /// The argument.
    source: TensorId,
    /// The first element read, and the strides between elements.
    first: i64,
    strides: Vec<i64>,
    /// The number of bytes of the argument that are an element of the result, and their distance; `None` if they have the
    /// same elements.
    bytes: Option<(i64, i64)>,
    /// The elements of the result that are not of the argument.
    outside: Attribute<'c>,
    /// Its extents.
    shape: Vec<i64>,
    /// The tensor written, its extents, and where the argument starts in it.
    pub result: TensorId,
    sizes: Vec<i64>,
    offsets: Vec<i64>,
    location: OperationRef<'c, 'a>,
    /// The distance to elements that are prefetched while these are read, if any.
    pub ahead: Option<i64>,
}

/// Images that a number is around.
#[derive(Clone, Copy)]
pub struct Images {
    /// The number: 0 around floats.
    pub outside: i64,
    /// The argument, its first element that is read, and the stride of its rows.
    pub source: TensorId,
    pub first: i64,
    pub row: i64,
    /// Rows and columns, and where they start in the result.
    pub size: [i64; 2],
    pub offsets: [i64; 2],
    /// The length of a row of the result.
    pub length: i64,
}

impl<'c: 'a, 'a> Padding<'c, 'a> {
    /// The padding that a stage is, if it is one of rows without gaps.
    pub fn of(cg: &Codegen<'c, 'a>, s: usize) -> Option<Self> {
        let stage = &cg.kernel.stages[s];
        let offsets = PADS.read(&stage.op)?;
        let extracts = irc_mlir::walk_collect(stage.op, |op| name_of(op) == tensor::EXTRACT);
        let ([extract, ..], [output]) = (&extracts[..], &stage.outputs[..]) else { return None };
        let value = operand(*extract, 0).ok()?;
        let (source, first, strides) = cg.kernel.view_of(value)?;
        let (shape, _) = read::tensor_of(value.r#type())?;
        // The last op selects an element of the argument, or else what is outside.
        let selected = defining_op(stage.body.terminator()?.operand(0).ok()?)?;
        let outside = match &stage.inputs[..] {
            [] => constant_of(operand(selected, 2).ok()?)?,
            [splat] => cg.splat_of(splat.tensor)?,
            _ => return None,
        };
        let step = match extracts[..] {
            [_, second, ..] => cg.kernel.view_of(operand(second, 0).ok()?)?.1 - first,
            _ => 0,
        };
        let are_one = extracts.iter().enumerate().all(|(byte, extract)| {
            let view = operand(*extract, 0).ok().and_then(|value| cg.kernel.view_of(value));
            view == Some((source, first + byte as i64 * step, strides))
        });
        let is_joined =
            cg.kernel.tensors[source].element != cg.kernel.tensors[output.tensor].element;
        let bytes = is_joined.then_some((extracts.len() as i64, step));
        let is_argument = matches!(cg.kernel.tensors[source].origin, Origin::Argument(_));
        let is_dense = output.access.offset == 0 && output.access.coefs == row_major(&stage.sizes);
        let ranks = [strides.len(), shape.len(), stage.sizes.len()];
        let agrees = ranks.iter().all(|rank| *rank == offsets.len());
        if !is_argument || !is_dense || !agrees || !are_one || strides.last() != Some(&1) {
            return None;
        }
        Some(Self {
            stage: s,
            is_split: false,
            source,
            first,
            strides: strides.to_vec(),
            bytes,
            outside,
            shape,
            result: output.tensor,
            sizes: stage.sizes.clone(),
            offsets,
            location: stage.op,
            ahead: None,
        })
    }

    /// The length of rows of the result, if it is even.
    pub fn even_length(&self) -> Option<i64> {
        self.sizes.last().copied().filter(|length| length % 2 == 0)
    }

    /// Stores the even elements of rows of the result, whose length is even, before their odd ones.
    pub fn split_rows(&mut self) {
        self.is_split = true;
    }

    /// Emits the copy at the end of the block of `e`: a phase, or in every part of the phase that reads it, as it takes
    /// less time to write it than to fetch what other processors wrote.
    ///
    /// # Errors
    /// If the argument has no memory.
    pub fn emit(&self, cg: &mut Codegen<'c, 'a>, e: Emit<'c, 'a>, in_parts: bool) -> Result<()> {
        let e = e.at(self.location.location());
        let total = self.sizes.iter().product();
        let to = match cg.places[self.result].buffer() {
            Some(buffer) => buffer,
            None => {
                let buffer = match in_parts {
                    true => cg.scratch(e, total, self.result),
                    false => cg.shared(e, total, self.result),
                };
                cg.places[self.result] = Place::Memory(buffer);
                buffer
            }
        };
        let lead = self.whole();
        let units = match in_parts {
            true => None,
            false => cg.units(e, self.sizes[..lead].iter().product::<i64>()),
        };
        self.emit_lead(cg, e, to, (0, lead), [e.index(0); 2], units)
    }

    /// Emits the copies of the elements of the leading dimensions, from `dim` on: where each starts in the argument
    /// and in the result.
    fn emit_lead(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        to: Buffer<'c, 'a>,
        (dim, lead): (usize, usize),
        [from, start]: [Value<'c, 'a>; 2],
        units: Option<Units<'c, 'a>>,
    ) -> Result<()> {
        if dim == lead {
            self.clear_around(cg, e, (to, start), lead);
            return self.emit_part(cg, e, (to, start), from, lead);
        }
        let inner: i64 = self.sizes[dim + 1..lead].iter().product();
        split::loop_over(e, (self.sizes[dim], inner), units, |e, iv, units| {
            let strides = [self.strides[dim], self.part(dim + 1)];
            let starts = [(from, strides[0]), (start, strides[1])];
            let starts = starts.map(|(start, stride)| e.add(start, e.scale(iv, stride)));
            self.emit_lead(cg, e, to, (dim + 1, lead), starts, units)
        })
    }

    /// The number of leading dimensions, before the last, without zeros around them.
    fn whole(&self) -> usize {
        let is_whole =
            |dim: &usize| self.offsets[*dim] == 0 && self.shape[*dim] == self.sizes[*dim];
        (0..self.sizes.len() - 1).take_while(is_whole).count()
    }

    /// Emits the copy of the part of the argument that starts at an element, along the dimensions from `dim` on, to
    /// cleared memory that starts at an element.
    ///
    /// # Errors
    /// If the argument has no memory.
    pub fn emit_part(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        (to, start): (Buffer<'c, 'a>, Value<'c, 'a>),
        from: Value<'c, 'a>,
        dim: usize,
    ) -> Result<()> {
        let source = cg.places[self.source].buffer();
        let missing = || LowerError::at(self.location, "expected an argument in memory to pad");
        let coefs = row_major(&self.sizes);
        let lines = dim..coefs.len() - usize::from(self.is_split);
        let first: i64 = lines.map(|dim| self.offsets[dim] * coefs[dim]).sum();
        let starts = [e.offset(from, self.first), e.offset(start, first)];
        self.copy(cg, e, (source.ok_or_else(missing)?, to), starts, (dim, &coefs));
        Ok(())
    }

    /// The number of leading dimensions without zeros around them, of which at least `inner` elements of the result
    /// each have their own; and for strides in the result, those in the argument.
    pub fn leading(&self, inner: i64, strides: &[i64]) -> Option<(usize, Vec<i64>)> {
        let coefs = row_major(&self.sizes);
        let lead = (0..self.whole()).take_while(|dim| coefs[*dim] >= inner).count();
        let in_argument = |stride: &i64| match stride {
            0 => Some(0),
            _ => (0..lead).find(|dim| coefs[*dim] == *stride).map(|dim| self.strides[dim]),
        };
        let strides = strides.iter().map(in_argument).collect::<Option<_>>()?;
        (lead > 0).then_some((lead, strides))
    }

    /// The images that the last two dimensions are, if `lead` are before them and there are zeros around, or an integer.
    pub fn images(&self, lead: usize) -> Option<Images> {
        let ([row, 1], [height, width]) = (self.strides.get(lead..)?, self.shape.get(lead..)?)
        else {
            return None;
        };
        let is_zero = FloatAttribute::try_from(self.outside).is_ok_and(|zero| zero.value() == 0.0);
        let integer = IntegerAttribute::try_from(self.outside).ok();
        let outside = integer.map(|integer| integer.value()).or(is_zero.then_some(0))?;
        let found = Images {
            outside,
            source: self.source,
            first: self.first,
            row: *row,
            size: [*height, *width],
            offsets: [self.offsets[lead], self.offsets[lead + 1]],
            length: self.sizes[lead + 1],
        };
        (self.bytes.is_none() && !self.is_split).then_some(found)
    }

    /// The number of elements of the result that each element of the leading dimensions has.
    pub fn part(&self, lead: usize) -> i64 {
        self.sizes[lead..].iter().product()
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
        if dim + 1 == self.shape.len() && self.is_split {
            return self.split_row(cg, e, (from, to), starts);
        }
        if dim + 1 == self.shape.len() {
            let lanes = cg.full_lanes();
            let Ok(()) = e.each_vector::<Infallible>(self.shape[dim], lanes, |e, at, mask| {
                let [source, result] = starts.map(|start| e.add(start, at));
                e.store(self.load(e, (from, to), source, lanes, mask), to, result, lanes, mask);
                Ok(())
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

    /// What is outside of the argument, in memory of a type: that of the result, or `f32` for unsigned bytes.
    fn outside_as(&self, e: Emit<'c, 'a>, element: Type<'c>, lanes: Lanes) -> Value<'c, 'a> {
        let byte = IntegerAttribute::try_from(self.outside).ok().filter(|_| element.is_f32());
        match byte {
            None => e.constant(self.outside, element, lanes),
            Some(byte) => e.float(f64::from(byte.value() as u8), element, lanes),
        }
    }

    /// The elements of the result that elements of the argument from a place on are, or are the first bytes of; unsigned
    /// bytes as `f32` if the memory written has that type.
    fn load(
        &self,
        e: Emit<'c, 'a>,
        (from, to): (Buffer<'c, 'a>, Buffer<'c, 'a>),
        at: Value<'c, 'a>,
        lanes: Lanes,
        mask: Option<Value<'c, 'a>>,
    ) -> Value<'c, 'a> {
        if let Some(ahead) = self.ahead {
            e.prefetch(from, e.offset(at, ahead), Prefetch::L2);
        }
        let Some((count, step)) = self.bytes else {
            let value = e.load_lanes(from, at, lanes, mask);
            return if from.element == to.element {
                value
            } else {
                float_of_byte(e, value, true, lanes)
            };
        };
        let byte = |number: i64| {
            let bytes = e.load_lanes(from, e.offset(at, number * step), lanes, mask);
            let wide = e.op(arith::EXTUI, &[bytes], lanes.of(e.int(32)));
            match number {
                0 => wide,
                _ => e.binary(arith::SHLI, wide, e.integer(8 * number, 32, lanes)),
            }
        };
        (1..count).fold(byte(0), |joined, number| e.binary(arith::ORI, joined, byte(number)))
    }

    /// Copies a row: every second element to one half of the row of the result, the others to the other.
    fn split_row(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        (from, to): (Buffer<'c, 'a>, Buffer<'c, 'a>),
        [source, result]: [Value<'c, 'a>; 2],
    ) {
        let last = self.shape.len() - 1;
        let (count, half, offset) = (self.shape[last], self.sizes[last] / 2, self.offsets[last]);
        let (lanes, width) = (cg.full_lanes(), cg.target.lanes());
        // Where the first two elements go.
        let places = [offset, offset + 1].map(|place| place % 2 * half + place / 2);
        let pair = |e: Emit<'c, 'a>, at: Value<'c, 'a>, live: i64| {
            let load = |first: i64| match live - first {
                live if live <= 0 => self.outside_as(e, to.element, lanes),
                live => {
                    let at = e.offset(e.add(source, at), first);
                    self.load(e, (from, to), at, lanes, e.tail_mask(live, lanes))
                }
            };
            let (low, high) = (load(0), load(width));
            let to_half = e.binary(arith::DIVUI, at, e.index(2));
            for (odd, place) in places.into_iter().enumerate() {
                let odd = odd as i64;
                let picks: Vec<i64> = (0..width).map(|lane| 2 * lane + odd).collect();
                let stored = (live - odd + 1) / 2;
                if stored > 0 {
                    let mask = e.tail_mask(stored, lanes);
                    let at = e.offset(e.add(result, to_half), place);
                    e.store(e.shuffle(low, high, &picks), to, at, lanes, mask);
                }
            }
        };
        let whole = count / (2 * width) * (2 * width);
        if whole > 0 {
            let bounds = (e.index(0), e.index(whole), 2 * width);
            let looped = e.for_each::<Infallible>(bounds, &[], |e, at, _| {
                pair(e, at, 2 * width);
                Ok(vec![])
            });
            let Ok(_) = looped;
        }
        if whole < count {
            pair(e, e.index(whole), count - whole);
        }
    }

    /// Stores what is outside of the argument around it, in the part of the result that starts at an element, along the
    /// dimensions from `dim` on.
    fn clear_around(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        (to, start): (Buffer<'c, 'a>, Value<'c, 'a>),
        dim: usize,
    ) {
        if self.is_split {
            return self.clear(cg, e, (to, start), self.part(dim));
        }
        let Some(size) = self.sizes.get(dim) else { return };
        let (inner, offset, extent) = (self.part(dim + 1), self.offsets[dim], self.shape[dim]);
        self.clear(cg, e, (to, start), offset * inner);
        let Ok(()) = e.loop_over::<Infallible>(extent, |e, iv| {
            let at = e.add(start, e.scale(e.offset(iv, offset), inner));
            self.clear_around(cg, e, (to, at), dim + 1);
            Ok(())
        });
        let end = e.offset(start, (offset + extent) * inner);
        self.clear(cg, e, (to, end), (size - offset - extent) * inner);
    }

    /// Stores what is outside of the argument in so many elements from a first one on.
    pub fn clear(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        (to, start): (Buffer<'c, 'a>, Value<'c, 'a>),
        count: i64,
    ) {
        let lanes = cg.full_lanes();
        if count <= FEW {
            let outside = self.outside_as(e, to.element, Lanes::Scalar);
            return (0..count)
                .for_each(|at| e.store(outside, to, e.offset(start, at), Lanes::Scalar, None));
        }
        let Ok(()) = e.each_vector::<Infallible>(count, lanes, |e, at, mask| {
            e.store(self.outside_as(e, to.element, lanes), to, e.add(start, at), lanes, mask);
            Ok(())
        });
    }
}

/// Integers of 8 bits as `f32`.
pub fn float_of_byte<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    byte: Value<'c, 'a>,
    is_unsigned: bool,
    lanes: Lanes,
) -> Value<'c, 'a> {
    let extend = if is_unsigned { arith::EXTUI } else { arith::EXTSI };
    let wide = e.op(extend, &[byte], lanes.of(e.int(32)));
    e.op(arith::SITOFP, &[wide], lanes.of(e.f32()))
}
