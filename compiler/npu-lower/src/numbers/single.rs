//! Convolutions whose output channels are single input channels: channels in another order, functions that differ from
//! channel to channel, and paddings.

use super::chain::{Chain, Step, floats};
use super::vector::{Affine, Rest, quantised};
use super::{Given, Reader, Weights, limits};
use irc_diag::counted;
use irc_npu::enums::DataSign;
use irc_npu_emit::{Arithmetic, Numbers};
use irc_tensor::{Tensor, TensorType};
use irc_tl::{Binary, DType, Op, ValueId};
use std::collections::BTreeMap;

/// `round(factor f(scale (x + offset) + bias)) + zero`, where `f` may set negative values to 0. Scale and bias are those
/// of one channel.
#[derive(Clone, Copy)]
struct Line {
    offset: i32,
    scale: f32,
    bias: f32,
}

impl Reader<'_> {
    /// A convolution whose output channels are the input channels of these numbers in their group.
    pub fn each_channel(&self, inputs: &[u64]) -> Result<(Numbers, Weights), String> {
        let (input, output) = (self.input_sign()?, self.sign(self.origin.result)?);
        let count = self.layer.output.channels as usize;
        let (depth, order) = match (self.layer.groups(), self.channels()) {
            (1, order) => (self.input_channels(), order),
            (_, None) => (1, None),
            _ => return Err("the operands of its groups are in another order".into()),
        };
        // The first element of each window.
        let window = self.layer.window();
        let area = (window.kernel[0] * window.kernel[1]) as usize;
        let mut weights = vec![0_i8; count * depth * area];
        for (row, wanted) in weights.chunks_mut(depth * area).zip(inputs) {
            let of = |channel: &usize| order.as_ref().map_or(*channel, |order| order[*channel]);
            let place = (0..depth).find(|channel| of(channel) as u64 == *wanted);
            row[place.ok_or("it reads a channel that its operands do not have")? * area] = 1;
        }
        let tables = self.tables(if depth == 1 { count } else { 1 })?;
        let (low, _) = limits(input);
        let is_same = |(at, value): (usize, &f64)| *value == low + (at % 256) as f64;
        let (numbers, lines) = match tables.iter().enumerate().all(is_same) && input == output {
            true => {
                let arithmetic = Arithmetic::Convolution { outside: 0, relu: false };
                let line = Line { offset: 0, scale: 1.0, bias: 0.0 };
                (self.numbers_of(arithmetic, 1.0, 0.0)?, vec![line; count])
            }
            false if depth == 1 => self.lines(&tables, count, output)?,
            false => return Err("it moves channels and computes a function of them".into()),
        };
        let outside = self.outside(&tables)?;
        let Arithmetic::Convolution { relu, .. } = numbers.arithmetic else {
            return Err("it is no convolution".into());
        };
        let numbers = Numbers { arithmetic: Arithmetic::Convolution { outside, relu }, ..numbers };
        let of = |part: fn(&Line) -> f32| -> Vec<f64> {
            lines.iter().map(|line| f64::from(part(line))).collect()
        };
        let shape = [count as i64, depth as i64, area as i64];
        let offsets: Vec<i32> = lines.iter().map(|line| line.offset).collect();
        let offsets = Tensor::from_values([count as i64], &offsets);
        let weights = Weights {
            weight: Given::Known(
                Tensor::from_values(shape, &weights).map_err(|error| error.to_string())?,
            ),
            scale: Given::Known(floats(&of(|line| line.scale), count)?),
            bias: Given::Known(floats(&of(|line| line.bias), count)?),
            offset: Given::Known(offsets.map_err(|error| error.to_string())?),
        };
        Ok((numbers, weights))
    }

    /// The value that the operands are together.
    fn joined(&self) -> Option<ValueId> {
        let operands = self.operands();
        if let [operand] = operands[..] {
            return Some(operand);
        }
        let mut at = self.origin.result;
        loop {
            let (_, read) = self.trace.op(at)?;
            at = *read.iter().find(|value| self.trace.constant(**value).is_none())?;
            if operands.iter().all(|operand| self.trace.is_same(*operand, at)) {
                return Some(at);
            }
        }
    }

    fn numbers_of(
        &self,
        arithmetic: Arithmetic,
        factor: f64,
        zero: f64,
    ) -> Result<Numbers, String> {
        let (input, output) = (self.input_sign()?, self.sign(self.origin.result)?);
        let factor = factor as f32;
        Ok(Numbers { input, output, arithmetic, factor, zero: zero as i32, table: None })
    }

    /// The input channels of a convolution.
    pub fn input_channels(&self) -> usize {
        match self.layer.op {
            irc_npu_cost::Op::Conv { channels, .. }
            | irc_npu_cost::Op::GroupedConv { channels, .. } => channels as usize,
            _ => 0,
        }
    }

    /// The results for all bytes of each of `count` channels, or of all channels alike.
    fn tables(&self, count: usize) -> Result<Vec<f64>, String> {
        let wrong = || match self.parameter_of(self.origin.result) {
            Some(name) => format!(
                "its constants of channels are computed of the input '{name}'; the NPU computes with constants and results"
            ),
            None => "it is no function of bytes that can be evaluated".to_owned(),
        };
        let operands = self.operands();
        let of = |operand: &ValueId| self.trace.tables(*operand, self.origin.result, count);
        let mut all: Vec<Vec<f64>> =
            operands.iter().map(of).collect::<Option<_>>().ok_or_else(wrong)?;
        let first = all.pop().ok_or("it reads nothing")?;
        match all.iter().all(|table| *table == first) {
            true => Ok(first),
            false => Err("its operands have different scales".into()),
        }
    }

    /// The constants with which the NPU computes the functions of all channels.
    fn lines(
        &self,
        tables: &[f64],
        count: usize,
        output: DataSign,
    ) -> Result<(Numbers, Vec<Line>), String> {
        let wrong = || "it is no product and sum with constants of each channel".to_owned();
        let operand = vec![self.joined().ok_or_else(wrong)?];
        let chain = self.ending(&operand);
        let shift = whole_shift(&Chain::of(self.trace, self.origin.result, &operand).steps);
        let input = self.input_sign()?;
        let (low, _) = limits(input);
        let mut least = usize::MAX;
        let ends = Rest::of(&chain.steps, 0).ok_or_else(wrong)?;
        for factor in [1.0, ends.factor] {
            let arithmetic = Arithmetic::Convolution { outside: 0, relu: ends.relu };
            let numbers = self.numbers_of(arithmetic, factor, ends.zero)?;
            let (mut lines, mut wrongs) = (vec![], 0);
            for channel in 0..count {
                let own = |table: &[f64]| match table.len() {
                    256 => table.to_vec(),
                    _ => table[channel * 256..(channel + 1) * 256].to_vec(),
                };
                let expected = own(tables);
                let sum = Affine::of_channel(self.trace, chain.from, &operand, Some(channel));
                let (sum, rest) = sum.zip(Rest::of(&chain.steps, channel)).ok_or_else(wrong)?;
                if (rest.zero, rest.relu) != (ends.zero, ends.relu) {
                    return Err(wrong());
                }
                let by = rest.factor / factor;
                let (k, b) = (sum.factors[0] * by, (sum.constant - sum.factors[0] * shift) * by);
                let differing = |line: &Line| {
                    let wrong = |(at, expected): &(usize, &f64)| {
                        let sum = (low as i32 + *at as i32 + line.offset) as f32;
                        let value = sum * line.scale + line.bias;
                        let value = if ends.relu { value.max(0.0) } else { value };
                        quantised(value, &numbers) != **expected
                    };
                    expected.iter().enumerate().filter(wrong).count()
                };
                let near = |value: f64| {
                    let bits = (value as f32).to_bits();
                    [0, 1, -1, 2, -2].map(|step: i32| {
                        if bits << 1 == 0 {
                            return value as f32;
                        }
                        f32::from_bits(bits.wrapping_add_signed(step))
                    })
                };
                let mut best = (usize::MAX, Line { offset: 0, scale: 0.0, bias: 0.0 });
                'search: for scale in near(k) {
                    for bias in near(b) {
                        let line = Line { offset: shift as i32, scale, bias };
                        let own = differing(&line);
                        if own < best.0 {
                            best = (own, line);
                        }
                        if own == 0 {
                            break 'search;
                        }
                    }
                }
                wrongs += best.0;
                lines.push(best.1);
            }
            if wrongs == 0 {
                return Ok((Numbers { output, ..numbers }, lines));
            }
            least = least.min(wrongs);
        }
        Err(format!(
            "the NPU computes {least} of {} bytes of {} differently",
            256 * count,
            counted(count, "channel")
        ))
    }

    /// The byte outside of the operand, for which the result is what the graph has there.
    fn outside(&self, tables: &[f64]) -> Result<i32, String> {
        let mut at = self.origin.result;
        let is_pad = |op: &Op| matches!(op, Op::Compute(compute) if crate::layers::outside(compute).is_some());
        let found = loop {
            let Some((op, operands)) = self.trace.op(at) else { return Ok(0) };
            if self.operands().contains(&at) {
                return Ok(0);
            }
            match op {
                Op::Compute(compute) if is_pad(op) => break crate::layers::outside(compute),
                _ => {}
            }
            let variable = |value: &&ValueId| self.trace.constant(**value).is_none();
            match operands.iter().find(variable) {
                Some(next) => at = *next,
                None => return Ok(0),
            }
        };
        let Some(value) = found else { return Ok(0) };
        let wrong = || "what is outside of its operand is not known".to_owned();
        let ty = TensorType::new(self.trace.graph.ty(at).dtype, [1]);
        let given = Tensor::from_f64(ty, &[value]).map_err(|error| error.to_string())?;
        let made = self.trace.eval(self.origin.result, &BTreeMap::from([(at, given)]));
        let made = made.and_then(|made| made.to_f64().first().copied()).ok_or_else(wrong)?;
        let (low, _) = limits(self.input_sign()?);
        let place = tables[..256].iter().position(|value| *value == made);
        let none = || format!("its padding, {made}, is the function of no byte");
        Ok(low as i32 + place.ok_or_else(none)? as i32)
    }
}

/// The integer that is added before anything else is computed.
fn whole_shift(steps: &[Step]) -> f64 {
    let mut shift = 0.0;
    for step in steps {
        match step {
            Step::Cast { to, .. } if to.is_integer() && *to != DType::U8 && *to != DType::I8 => {}
            Step::Constant(function @ (Binary::Add | Binary::Sub), by) => match by.single() {
                Some(by) if by.fract() == 0.0 && by.abs() < 1024.0 => {
                    shift += if *function == Binary::Add { by } else { -by };
                }
                _ => break,
            },
            _ => break,
        }
    }
    shift
}
