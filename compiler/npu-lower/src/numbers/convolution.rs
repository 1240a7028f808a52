//! Sums of products of bytes, and sums of windows.

use super::chain::{Chain, Constant, Step, floats, input, spread};
use super::{Given, Reader, Weights, limits};
use crate::layers::{Filters, Operand, Whole};
use irc_npu::enums::DataSign;
use irc_npu_emit::{Arithmetic, Numbers};
use irc_tensor::Tensor;
use irc_tl::{Binary, DType, Op, Reduction, Rounding, Unary, ValueId};
use std::ops::Range;

/// What follows an exact sum of integers, in this order.
#[derive(Default)]
pub struct Ending {
    /// Integers that are added to the sum.
    pub offset: Vec<Vec<f64>>,
    /// The first factor.
    pub scale: Option<Constant>,
    /// A summand.
    pub bias: Option<Constant>,
    /// Whether negative values become 0.
    pub relu: bool,
    /// The second factor.
    pub factor: Option<f64>,
    /// The zero point.
    pub zero: f64,
}

impl Ending {
    /// The steps after a sum, up to a byte of a sign.
    pub fn of(steps: &[Step], sign: DataSign) -> Result<Self, String> {
        let mut all = Self::default();
        let (mut is_float, mut is_rounded) = (false, false);
        let mut limited = limits(sign);
        for step in steps {
            match step {
                Step::Cast { to, .. } if !is_float && to.is_integer() => {}
                Step::Cast { from, to: DType::F32, .. } if !is_float && from.is_integer() => {
                    is_float = true;
                }
                Step::Cast { to: DType::I8 | DType::U8, rounding, .. } if is_float => {
                    if !is_rounded && *rounding != Rounding::NearestEven {
                        return Err("its result is truncated, not rounded".into());
                    }
                    is_rounded = true;
                }
                Step::Constant(Binary::Add | Binary::Sub, Constant::Known(values)) if !is_float => {
                    let is_sum = matches!(step, Step::Constant(Binary::Add, _));
                    let signed = values.iter().map(|value| if is_sum { *value } else { -value });
                    all.offset.push(signed.collect());
                }
                Step::Constant(Binary::Mul, by) if is_float && !is_rounded => {
                    let is_first = all.scale.is_none() && all.bias.is_none() && !all.relu;
                    match by.single() {
                        _ if is_first => all.scale = Some(by.clone()),
                        Some(by) if all.factor.is_none() => all.factor = Some(by),
                        _ => return Err("it is multiplied more than twice".into()),
                    }
                }
                Step::Constant(Binary::Add, by)
                    if is_float && !is_rounded && all.bias.is_none() && all.factor.is_none() =>
                {
                    all.bias = Some(by.clone());
                }
                Step::Relu if is_float && !is_rounded && all.factor.is_none() => all.relu = true,
                Step::Round if is_float && !is_rounded => is_rounded = true,
                Step::Constant(Binary::Add, by) if is_rounded => {
                    let by = by.single().filter(|by| by.fract() == 0.0 && by.abs() < 4096.0);
                    all.zero += by.ok_or("its zero point is not one integer")?;
                }
                Step::Constant(function @ (Binary::Max | Binary::Min), by) if is_rounded => {
                    let by = by.single().ok_or("its limits differ from channel to channel")?;
                    match function {
                        Binary::Max => limited.0 = limited.0.max(by),
                        _ => limited.1 = limited.1.min(by),
                    }
                }
                step => return Err(format!("a step that the NPU does not have: {}", name(step))),
            }
        }
        if !is_rounded {
            return Err("its result is not rounded to integers".into());
        }
        let (low, high) = limits(sign);
        if limited.0 == all.zero && limited.0 > low {
            (all.relu, limited.0) = (true, low);
        }
        if limited != (low, high) {
            return Err(format!(
                "its result is limited to {} .. {}, and the NPU has no other limits than 0 and those of bytes",
                limited.0, limited.1
            ));
        }
        Ok(all)
    }
}

fn name(step: &Step) -> &'static str {
    match step {
        Step::Constant(function, _) => function.row().name,
        Step::Cast { .. } => "cast",
        Step::Round => Unary::Round.row().name,
        Step::Relu => Unary::Relu.row().name,
        Step::Windows(_) => Binary::Mul.row().name,
    }
}

impl Reader<'_> {
    /// A convolution, or a product with weights.
    pub fn convolution(&self) -> Result<(Numbers, Weights), String> {
        let output = self.sign(self.origin.result)?;
        let sign = self.input_sign()?;
        let Some(parameters) = &self.origin.parameters else {
            return Err("its weights are results of layers".into());
        };
        let (value, matrix) = match &parameters.filters {
            Filters::Value { value, matrix } => (Some(*value), *matrix),
            Filters::Sum => (None, None),
            Filters::Single(channels) => {
                let Range { start, end } = parameters.channels;
                return self.each_channel(&channels[start as usize..end as usize]);
            }
        };
        let chain = Chain::of(self.trace, self.origin.result, &[]);
        let Some((
            op @ (Op::Conv(_) | Op::Matmul { .. } | Op::Reduce { kind: Reduction::Sum, .. }),
            operands,
        )) = self.trace.op(chain.from)
        else {
            return Err(
                "its result is not quantised from a sum of products of 8-bit integers".into()
            );
        };
        let ending = Ending::of(&chain.steps, output)?;
        let x = operands.iter().find(|operand| Some(**operand) != value);
        let shift = self.shift(*x.ok_or("it has no activation")?)?;
        let channels = parameters.channels.start as usize..parameters.channels.end as usize;
        let (weight, sums) = match value {
            Some(value) => self.weights(value, matrix)?,
            None => self.ones()?,
        };
        let count = sums.as_ref().map_or(channels.len(), Vec::len);
        let of =
            |values: &[f64]| Ok::<_, String>(spread(values, count)?[channels.clone()].to_vec());
        let mut offset = vec![0.0; channels.len()];
        for values in &ending.offset {
            let added = of(values)?;
            offset.iter_mut().zip(added).for_each(|(all, added)| *all += added);
        }
        if shift != 0.0 {
            let sums = sums.ok_or("the zero points of its operands are not known")?;
            let sums = &sums[channels.clone()];
            offset.iter_mut().zip(sums).for_each(|(all, sum)| *all += shift * sum);
        }
        if offset.iter().any(|offset| offset.abs() > f64::from(i32::MAX)) {
            return Err("a bias does not fit in 32 bits".into());
        }
        let outside = match op {
            Op::Conv(conv) => conv.outside as f64 - shift,
            _ => 0.0,
        };
        let (low, high) = limits(sign);
        if !(low..=high).contains(&outside) && self.origin.padding != [0, 0] {
            return Err(format!("its padding, {outside}, is no byte"));
        }
        let constants = |given: &Option<Constant>, none: f64| match given {
            Some(Constant::Input(name)) => Ok(Given::Input(name.clone())),
            Some(Constant::Known(values)) => {
                let known = if values.len() == 1 { values.clone() } else { of(values)? };
                floats(&known, channels.len()).map(Given::Known)
            }
            None => floats(&[none], channels.len()).map(Given::Known),
        };
        let weight = match weight {
            Given::Known(all) if channels.len() < count => {
                let row = all.bytes().len() / count;
                let bytes = &all.bytes()[channels.start * row..channels.end * row];
                let mut shape = all.shape().to_vec();
                shape[0] = channels.len() as i64;
                let ty = irc_tensor::TensorType::new(DType::I8, shape);
                Given::Known(Tensor::from_bytes(ty, bytes).map_err(|error| error.to_string())?)
            }
            weight => weight,
        };
        let offset: Vec<i32> = offset.into_iter().map(|offset| offset as i32).collect();
        let offset = Tensor::from_values([offset.len() as i64], &offset);
        let weights = Weights {
            weight,
            scale: constants(&ending.scale, 1.0)?,
            bias: constants(&ending.bias, 0.0)?,
            offset: Given::Known(offset.map_err(|error| error.to_string())?),
        };
        let arithmetic =
            Arithmetic::Convolution { outside: outside.clamp(low, high) as i32, relu: ending.relu };
        let factor = ending.factor.unwrap_or(1.0) as f32;
        let zero = ending.zero as i32;
        Ok((Numbers { input: sign, output, arithmetic, factor, zero, table: None }, weights))
    }

    /// A sum of products of two results. Zero points would have to be multiplied by sums of the other operand's elements,
    /// which the NPU does not add.
    pub fn product_of_results(&self) -> Result<(Numbers, Weights), String> {
        let (input, output) = (self.input_sign()?, self.sign(self.origin.result)?);
        let chain = Chain::of(self.trace, self.origin.result, &[]);
        let Some((Op::Matmul { .. }, &[left, right])) = self.trace.op(chain.from) else {
            return Err(
                "its result is not quantised from a sum of products of 8-bit integers".into()
            );
        };
        let weights: Vec<ValueId> =
            self.origin.weights.iter().map(|operand| self.value(operand)).collect();
        let is_of = |from: &[ValueId], to: ValueId| {
            from.iter().all(|own| self.trace.table(*own, to).is_some())
        };
        let (x, w) = match is_of(&self.operands(), left) && is_of(&weights, right) {
            true => (left, right),
            false => (right, left),
        };
        let zeros = [self.shift(x)?, self.shift_of(&weights, w)?];
        if zeros != [0.0, 0.0] {
            return Err(format!(
                "it multiplies two results with the zero points {} and {}; the NPU does, with zero points of 0",
                -zeros[0], -zeros[1]
            ));
        }
        if weights.iter().any(|own| self.sign(*own) != Ok(DataSign::Signed)) {
            return Err("the result that serves as weights is unsigned; weights are signed".into());
        }
        let ending = Ending::of(&chain.steps, output)?;
        let single = |scale: &Constant| scale.single();
        let scale = ending.scale.as_ref().map_or(Some(1.0), single);
        match scale {
            Some(scale)
                if ending.offset.is_empty() && ending.bias.is_none() && ending.factor.is_none() =>
            {
                let arithmetic = Arithmetic::Convolution { outside: 0, relu: ending.relu };
                let (factor, zero) = (scale as f32, ending.zero as i32);
                let numbers = Numbers { input, output, arithmetic, factor, zero, table: None };
                let count = self.layer.output.channels as usize;
                let known = |tensor: Result<Tensor, irc_tensor::TensorError>| match tensor {
                    Ok(tensor) => Ok(Given::Known(tensor)),
                    Err(error) => Err(error.to_string()),
                };
                let weights = Weights {
                    weight: self.weights_of_product(count)?,
                    scale: Given::Known(floats(&[1.0], count)?),
                    bias: Given::Known(floats(&[0.0], count)?),
                    offset: known(Tensor::from_values([count as i64], &vec![0_i32; count]))?,
                };
                Ok((numbers, weights))
            }
            _ => Err("constants of channels follow a product of two results".into()),
        }
    }

    /// The weights of a product of two values: none if they are results, which have constants only.
    fn weights_of_product(&self, count: usize) -> Result<Given, String> {
        let is_value = |operand: &&Operand| matches!(operand, Operand::Value { .. });
        let given: Vec<&Operand> = self.origin.weights.iter().filter(is_value).collect();
        match (given[..].first(), &self.origin.weights[..]) {
            (None, _) => {
                let none = Tensor::from_values::<i8>([count as i64, 0, 1], &[]);
                none.map(Given::Known).map_err(|error| error.to_string())
            }
            (Some(Operand::Value { dims, .. }), [_]) => {
                let mut atoms = dims.iter().flatten();
                if atoms.any(|atom| atom.of == Whole::Images && atom.extent > 1) {
                    return Err("what serves as its weights is given for each image".into());
                }
                let depth = self.input_channels() as i64 / self.layer.groups() as i64;
                Ok(Given::Value([count as i64, depth, 1]))
            }
            _ => Err("its weights consist of a given value and others".into()),
        }
    }

    /// What is added to the bytes that the layer reads: the same for all operands.
    pub fn shift(&self, x: ValueId) -> Result<f64, String> {
        self.shift_of(&self.operands(), x)
    }

    fn shift_of(&self, operands: &[ValueId], x: ValueId) -> Result<f64, String> {
        let mut found = vec![];
        for &operand in operands {
            let (low, _) = limits(self.sign(operand)?);
            let table = self.trace.table(operand, x).ok_or("it reads more than 8-bit integers")?;
            let shift = table[0] - low;
            let is_moved = |(at, value): (usize, &f64)| *value == low + at as f64 + shift;
            if !table.iter().enumerate().all(is_moved) {
                return Err("it does not read integers".into());
            }
            found.push(shift);
        }
        match found[..] {
            [first, ref rest @ ..] if rest.iter().all(|shift| *shift == first) => Ok(first),
            _ => Err("its operands have different zero points".into()),
        }
    }

    /// The weights of the sum of all that a window reads, as [`Self::weights`].
    fn ones(&self) -> Result<(Given, Option<Vec<f64>>), String> {
        let (depth, window) = (self.input_channels(), self.layer.window());
        let area = (window.kernel[0] * window.kernel[1]) as usize;
        let ones = vec![1_i8; depth * area];
        let weight = Tensor::from_values([1, depth as i64, area as i64], &ones);
        let weight = weight.map_err(|error| error.to_string())?;
        Ok((Given::Known(weight), Some(vec![ones.len() as f64])))
    }

    /// The weights `i8[K, C, R S]` of all output channels, and the sums of the weights of each.
    fn weights(
        &self,
        value: ValueId,
        matrix: Option<[usize; 2]>,
    ) -> Result<(Given, Option<Vec<f64>>), String> {
        if let Some(name) = input(self.trace, value) {
            return match self.channels() {
                None => Ok((Given::Input(name), None)),
                Some(_) => Err("its operands are in another order than its weights".into()),
            };
        }
        let tensor = self.trace.constant(value).ok_or_else(|| match self.parameter_of(value) {
            Some(name) => format!(
                "its weights are computed of the input '{name}'; weights are constants, results, or inputs of 8-bit integers"
            ),
            None => "its weights are not known".to_owned(),
        })?;
        let values = tensor.to_f64();
        if values.iter().any(|value| value.fract() != 0.0) {
            return Err("its weights are not integers".into());
        }
        let (low, high) = values
            .iter()
            .fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
        if low < -128.0 || high > 127.0 {
            return Err(format!(
                "its weights minus their zero points are from {low} to {high}; those of the NPU are from -128 to 127"
            ));
        }
        let shape: Vec<usize> = tensor.shape().iter().map(|extent| *extent as usize).collect();
        let window = self.layer.window();
        let area = (window.kernel[0] * window.kernel[1]) as usize;
        let [count, depth] = match matrix {
            None => [shape[0], shape[1]],
            Some([outer, inner]) => {
                let own = shape[outer] * shape[inner];
                if own != values.len() || !shape[inner].is_multiple_of(area) {
                    return Err("it multiplies by several matrices".into());
                }
                [shape[outer], shape[inner] / area]
            }
        };
        let stride = |axis: usize| shape[axis + 1..].iter().product::<usize>();
        let at = |k: usize, c: usize, place: usize| match matrix {
            None => (k * depth + c) * area + place,
            Some([outer, inner]) => k * stride(outer) + (c * area + place) * stride(inner),
        };
        let order = self.channels();
        if self.layer.groups() > 1 && order.is_some() {
            return Err("the operands of its groups are in another order".into());
        }
        let mut bytes: Vec<i8> = Vec::with_capacity(values.len());
        let mut sums = vec![0.0; count];
        for (k, sum) in sums.iter_mut().enumerate() {
            for c in 0..depth {
                let c = order.as_ref().map_or(c, |order| order[c]);
                for place in 0..area {
                    let value = values[at(k, c, place)];
                    bytes.push(value as i8);
                    *sum += value;
                }
            }
        }
        let shape = [count as i64, depth as i64, area as i64];
        let weight = Tensor::from_values(shape, &bytes).map_err(|error| error.to_string())?;
        Ok((Given::Known(weight), Some(sums)))
    }
}
