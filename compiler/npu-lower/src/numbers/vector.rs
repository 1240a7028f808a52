//! Functions of bytes: sums of two operands, pools, functions of each element.

use super::chain::{Chain, Constant, Step};
use super::convolution::Ending;
use super::{Reader, limits};
use crate::layers::{Trace, bytes_of};
use irc_npu::enums::DataSign;
use irc_npu_emit::{Arithmetic, Function, Numbers};
use irc_tensor::Tensor;
use irc_tl::{Binary, Combine, Op, Reduction, ValueId};
use std::collections::BTreeMap;

/// A sum of operands times factors, plus a constant.
pub struct Affine {
    pub factors: Vec<f64>,
    pub constant: f64,
}

impl Affine {
    /// The value as a sum of `operands`.
    fn of(trace: &Trace<'_>, value: ValueId, operands: &[ValueId]) -> Option<Self> {
        Self::of_channel(trace, value, operands, None)
    }

    /// The value in a channel.
    pub fn of_channel(
        trace: &Trace<'_>,
        value: ValueId,
        operands: &[ValueId],
        channel: Option<usize>,
    ) -> Option<Self> {
        Self::within(trace, value, operands, channel, &mut 256)
    }

    fn within(
        trace: &Trace<'_>,
        value: ValueId,
        operands: &[ValueId],
        channel: Option<usize>,
        budget: &mut usize,
    ) -> Option<Self> {
        *budget = budget.checked_sub(1)?;
        let zero = || vec![0.0; operands.len()];
        if let Some(place) = operands.iter().position(|operand| *operand == value) {
            let mut factors = zero();
            factors[place] = 1.0;
            return Some(Self { factors, constant: 0.0 });
        }
        let number = |value: ValueId| match channel {
            Some(channel) => trace.number_of(value, channel),
            None => trace.number(value),
        };
        let known = |value: ValueId| {
            let constant = number(value)?;
            Some(Self { factors: zero(), constant })
        };
        let mut of = |value: ValueId| {
            known(value).or_else(|| Self::within(trace, value, operands, channel, budget))
        };
        let (op, read) = trace.op(value)?;
        match op {
            Op::Cast { .. }
            | Op::Reshape { .. }
            | Op::Transpose { .. }
            | Op::Slice { .. }
            | Op::Broadcast { .. }
            | Op::Reduce { kind: Reduction::Max, .. } => of(read[0]),
            // All operands of a choice are chosen alike.
            Op::Compute(_) => read.iter().find_map(|part| of(*part)),
            Op::Binary(Binary::Add) => Some(of(read[0])?.plus(&of(read[1])?, 1.0)),
            Op::Binary(Binary::Sub) => Some(of(read[0])?.plus(&of(read[1])?, -1.0)),
            Op::Binary(Binary::Mul) => match number(read[1]) {
                Some(by) => Some(of(read[0])?.times(by)),
                None => Some(of(read[1])?.times(number(read[0])?)),
            },
            Op::Binary(Binary::Div) => Some(of(read[0])?.times(1.0 / number(read[1])?)),
            _ => None,
        }
    }

    fn plus(mut self, other: &Self, sign: f64) -> Self {
        self.factors.iter_mut().zip(&other.factors).for_each(|(own, other)| *own += sign * other);
        self.constant += sign * other.constant;
        self
    }

    fn times(mut self, by: f64) -> Self {
        self.factors.iter_mut().for_each(|factor| *factor *= by);
        self.constant *= by;
        self
    }
}

/// What follows a function of bytes: a factor, the zero point, and whether negative values become 0.
pub struct Rest {
    pub factor: f64,
    pub zero: f64,
    pub relu: bool,
}

impl Rest {
    /// Of steps with constants of one channel, or the same for all.
    pub fn of(steps: &[Step], channel: usize) -> Option<Self> {
        let mut all = Self { factor: 1.0, zero: 0.0, relu: false };
        let mut is_rounded = false;
        for step in steps {
            match step {
                Step::Cast { .. } | Step::Constant(Binary::Min, _) => {}
                Step::Round => is_rounded = true,
                Step::Relu if !is_rounded => all.relu = true,
                Step::Constant(Binary::Mul, by) if !is_rounded => all.factor *= by.of(channel)?,
                Step::Constant(Binary::Div, by) if !is_rounded => all.factor /= by.of(channel)?,
                Step::Constant(Binary::Max, by) if !is_rounded && by.single() == Some(0.0) => {
                    all.relu = true;
                }
                Step::Constant(Binary::Max, by) if is_rounded => {
                    all.relu |= by.single() == Some(all.zero);
                }
                Step::Constant(Binary::Add, by) if is_rounded => all.zero += by.single()?,
                _ => return None,
            }
        }
        Some(all)
    }
}

/// What the vector processor computes, as in `runtime/npu/src/functional`.
fn multiply_add(x: f32, (k, b): (f32, f32)) -> f32 {
    (f64::from(x) * f64::from(k) + f64::from(b)) as f32
}

/// The byte that a value becomes.
pub fn quantised(value: f32, of: &Numbers) -> f64 {
    let (low, high) = limits(of.output);
    f64::from((value * of.factor).round_ties_even() + of.zero as f32).clamp(low, high)
}

/// A number and those next to it.
fn near(value: f32) -> [f32; 3] {
    [0, 1, -1].map(|step: i32| f32::from_bits(value.to_bits().wrapping_add_signed(step)))
}

impl Reader<'_> {
    /// The sum or the product of two operands.
    pub fn sum(&self) -> Result<Numbers, String> {
        let operands = self.operands();
        let [x, y] = operands[..] else {
            return Err(format!("it combines {} operands; the NPU combines two", operands.len()));
        };
        let (input, output) = (self.input_sign()?, self.sign(self.origin.result)?);
        let wrong = || "it is no sum of two operands times factors".to_owned();
        let chain = self.ending(&operands);
        let Some(sum) = Affine::of(self.trace, chain.from, &operands) else {
            return self.product([x, y], input, output);
        };
        let rest = Rest::of(&chain.steps, 0).ok_or_else(wrong)?;
        let [left, right, expected] = self.pairs([x, y]).ok_or_else(wrong)?;
        let mut least = usize::MAX;
        for (sum, factor) in [
            (
                [
                    sum.factors[0] * rest.factor,
                    sum.factors[1] * rest.factor,
                    sum.constant * rest.factor,
                ],
                1.0,
            ),
            ([sum.factors[0], sum.factors[1], sum.constant], rest.factor),
        ] {
            for last in [0, 1] {
                // The constant is added to the product that is computed first.
                let [first, second] = [0, 1].map(|operand| {
                    let constant = if operand == last { 0.0 } else { sum[2] };
                    (sum[operand] as f32, constant as f32)
                });
                let relus: &[bool] = if rest.relu { &[false, true] } else { &[false] };
                for relu in relus {
                    let numbers = Numbers {
                        input,
                        output,
                        arithmetic: Arithmetic::Vector {
                            function: Function::Sum { relu: *relu, last },
                            first,
                            second,
                        },
                        factor: factor as f32,
                        zero: rest.zero as i32,
                        table: None,
                    };
                    let constants = [first, second];
                    let differing =
                        left.iter().zip(&right).zip(&expected).filter(|((x, y), expected)| {
                            let operands = [**x as f32, **y as f32];
                            let (outer, inner) = (constants[last], constants[1 - last]);
                            let inner = multiply_add(operands[1 - last], inner) + outer.1;
                            let value = multiply_add(operands[last], (outer.0, inner));
                            let value = if *relu { value.max(0.0) } else { value };
                            quantised(value, &numbers) != **expected
                        });
                    match differing.count() {
                        0 => return Ok(numbers),
                        some => least = least.min(some),
                    }
                }
            }
        }
        Err(format!("the NPU computes {least} of 65536 sums of two bytes differently"))
    }

    /// All pairs of bytes of two operands, and the result of each.
    fn pairs(&self, [x, y]: [ValueId; 2]) -> Option<[Vec<f64>; 3]> {
        let pair = |of: ValueId, other: bool| -> Option<Tensor> {
            let all = bytes_of(self.trace.graph, of)?.to_f64();
            let pairs = (0..1 << 16).map(|at| all[if other { at >> 8 } else { at & 255 }]);
            let ty = irc_tl::TensorType::new(self.trace.graph.ty(of).dtype, [1 << 16]);
            Tensor::from_f64(ty, &pairs.collect::<Vec<_>>()).ok()
        };
        let (xs, ys) = pair(x, false).zip(pair(y, true))?;
        let (left, right) = (xs.to_f64(), ys.to_f64());
        let given = BTreeMap::from([(x, xs), (y, ys)]);
        let expected = self.trace.eval(self.origin.result, &given)?.to_f64();
        (expected.len() == left.len()).then_some([left, right, expected])
    }

    /// The product of an operand and one factor for each channel.
    pub fn scaling(&self) -> Result<Numbers, String> {
        let (input, output) = (self.input_sign()?, self.sign(self.origin.result)?);
        let [x] = self.operands()[..] else {
            return Err("factors of channels multiply a concatenation".into());
        };
        let [factors] = &self.origin.weights[..] else {
            return Err("its factors are a concatenation".into());
        };
        let factors = self.value(factors);
        match self.sign(factors) {
            Ok(sign) if sign == input => self.product([x, factors], input, output),
            _ => Err("its factors are no bytes of the sign of its operand".into()),
        }
    }

    /// The product of two operands.
    fn product(
        &self,
        [x, y]: [ValueId; 2],
        input: DataSign,
        output: DataSign,
    ) -> Result<Numbers, String> {
        let wrong = || "it is no sum or product of two operands times factors".to_owned();
        let chain = Chain::of(self.trace, self.origin.result, &[x, y]);
        let Some((Op::Binary(Binary::Mul), &[left, right])) = self.trace.op(chain.from) else {
            return Err(wrong());
        };
        let of = |value: ValueId, operand: ValueId| Affine::of(self.trace, value, &[operand]);
        let both = of(left, x).zip(of(right, y)).or_else(|| of(right, x).zip(of(left, y)));
        let (one, other) = both.ok_or_else(wrong)?;
        let rest = Rest::of(&chain.steps, 0).ok_or_else(wrong)?;
        let (k, l) = (one.factors[0], other.factors[0]);
        let constants = |k: f64, b: f64| (k as f32, b as f32);
        let mut all = vec![];
        for factor in near((k * l * rest.factor) as f32) {
            let zeros = [one.constant / k, other.constant / l].map(f64::round);
            all.push((constants(1.0, zeros[0]), constants(1.0, zeros[1]), factor));
        }
        let own = (constants(k, one.constant), constants(l, other.constant));
        all.extend(near(rest.factor as f32).map(|factor| (own.0, own.1, factor)));
        let [left, right, expected] = self.pairs([x, y]).ok_or_else(wrong)?;
        let mut least = usize::MAX;
        for (first, second, factor) in all {
            let numbers = Numbers {
                input,
                output,
                arithmetic: Arithmetic::Vector {
                    function: Function::Product { relu: rest.relu },
                    first,
                    second,
                },
                factor,
                zero: rest.zero as i32,
                table: None,
            };
            let differing = left.iter().zip(&right).zip(&expected).filter(|((x, y), expected)| {
                let value = multiply_add(**x as f32, first) * multiply_add(**y as f32, second);
                let value = if rest.relu { value.max(0.0) } else { value };
                quantised(value, &numbers) != **expected
            });
            match differing.count() {
                0 => return Ok(numbers),
                some => least = least.min(some),
            }
        }
        Err(format!("the NPU computes {least} of 65536 products of two bytes differently"))
    }

    /// A maximum or a mean of windows.
    pub fn pool(&self) -> Result<Numbers, String> {
        let operands = self.operands();
        if self.channels().is_some() {
            return Err("its operands are in another order than its result".into());
        }
        let is_sum = |op: &Op| match op {
            Op::Reduce { kind, .. } => *kind == Reduction::Sum,
            Op::Compute(compute) => {
                compute.reduction.as_ref().is_some_and(|over| over.combine == Combine::Sum)
            }
            _ => false,
        };
        let chain = self.ending(&operands);
        let reduced = self.trace.op(chain.from);
        if let Some((op @ Op::Reduce { kind, .. }, read)) = reduced
            && !matches!(kind, Reduction::Sum | Reduction::Max)
        {
            let dtype = self.trace.graph.ty(read[0]).dtype;
            let name = op.name();
            return Err(format!(
                "it is a {name} of {dtype}; the NPU adds integers, and takes maxima"
            ));
        }
        let Some((op, read)) = reduced.filter(|(op, _)| is_sum(op)) else {
            return self.function();
        };
        if !self.trace.graph.ty(chain.from).dtype.is_integer() {
            return Err(format!("its {} adds numbers that are not integers", op.name()));
        }
        let (input, output) = (self.input_sign()?, self.sign(self.origin.result)?);
        let (mean, steps) = self.window_mean(&chain.steps, chain.from)?;
        let ending = Ending::of(&steps, output)?;
        let scale = match &ending.scale {
            Some(scale) => scale.single().ok_or("its scale differs from channel to channel")?,
            None => 1.0,
        };
        if !ending.offset.is_empty() || ending.bias.is_some() || ending.factor.is_some() {
            return Err("a constant is added to its mean".into());
        }
        if ending.relu {
            return Err("negative means become 0".into());
        }
        let shift = self.shift(read[0])?;
        let arithmetic = Arithmetic::Vector {
            function: if mean { Function::WindowMean } else { Function::WindowSum },
            first: (1.0, shift as f32),
            second: (0.0, 0.0),
        };
        let (factor, zero) = (scale as f32, ending.zero as i32);
        Ok(Numbers { input, output, arithmetic, factor, zero, table: None })
    }

    /// Whether a sum of windows is divided by the number of elements of each that are in the operand; and the steps after it,
    /// with one factor for all windows.
    fn window_mean(&self, steps: &[Step], sum: ValueId) -> Result<(bool, Vec<Step>), String> {
        let is_each = |step: &Step| matches!(step, Step::Windows(_));
        let Some(at) = steps.iter().position(is_each) else { return Ok((false, steps.to_vec())) };
        let Step::Windows(factors) = &steps[at] else { return Ok((false, steps.to_vec())) };
        let wrong = || "it has factors of windows that are no means".to_owned();
        let plane = |value: ValueId| {
            let dims = self.trace.graph.ty(value).dims.iter();
            let dims: Option<Vec<i64>> = dims.map(irc_tl::Dim::known).collect();
            match dims.as_deref() {
                Some([.., rows, columns]) => Ok([*rows, *columns]),
                _ => Err(wrong()),
            }
        };
        let [rows, columns] = plane(sum)?.map(|extent| extent as usize);
        let operand = self.operands().first().copied().ok_or_else(wrong)?;
        let (window, of) = (self.layer.window(), plane(operand)?);
        let count = |axis: usize, at: usize| {
            let extent = of[axis];
            let first = (at as u64 * window.stride[axis]) as i64 - self.origin.padding[axis] as i64;
            ((first + window.kernel[axis] as i64).min(extent) - first.max(0)).max(1)
        };
        let counts: Vec<i64> = (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .map(|(row, column)| count(0, row) * count(1, column))
            .collect();
        if factors.len() != counts.len() {
            return Err(wrong());
        }
        let whole = factors.iter().zip(&counts).map(|(factor, count)| factor * *count as f64);
        let scale = whole.fold(0.0, f64::max) as f32;
        let is_mean = |scale: &f32| {
            let mut pairs = factors.iter().zip(&counts);
            pairs.all(|(factor, count)| *scale / *count as f32 == *factor as f32)
        };
        let scale = near(scale).into_iter().find(is_mean).ok_or_else(wrong)?;
        let mut steps = steps.to_vec();
        steps[at] = Step::Constant(Binary::Mul, Constant::Known(vec![f64::from(scale)]));
        Ok((true, steps))
    }

    /// A function of each element, or of the largest of each window.
    pub fn function(&self) -> Result<Numbers, String> {
        let operands = self.operands();
        if self.channels().is_some() {
            return Err("its operands are in another order than its result".into());
        }
        let (input, output) = (self.input_sign()?, self.sign(self.origin.result)?);
        let wrong = || {
            "it is no function of one byte: it has other constants for each channel, or reads other elements".to_owned()
        };
        let result = self.origin.result;
        let table = |operand: &ValueId| self.trace.table(*operand, result).ok_or_else(wrong);
        let tables: Vec<Vec<f64>> = operands.iter().map(table).collect::<Result<_, _>>()?;
        let Some(expected) = tables.first() else { return Err("it reads nothing".into()) };
        if tables.iter().any(|table| table != expected) {
            return Err("its operands have different scales".into());
        }
        let is_window = matches!(self.layer.op, irc_npu_cost::Op::Pool(_));
        if is_window && expected.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err("it is the maximum of a function that descends".into());
        }
        let (low, _) = limits(input);
        let mut least = 256;
        for (first, factor, zero) in self.candidates(&operands[..1]) {
            let numbers = Numbers {
                input,
                output,
                arithmetic: Arithmetic::Vector {
                    function: Function::Same,
                    first,
                    second: (0.0, 0.0),
                },
                factor,
                zero,
                table: None,
            };
            let differing = expected.iter().enumerate().filter(|(at, expected)| {
                let value = multiply_add((low + *at as f64) as f32, first);
                quantised(value, &numbers) != **expected
            });
            match differing.count() {
                0 => return Ok(numbers),
                some => least = least.min(some),
            }
        }
        if is_window {
            return Err(format!(
                "the NPU computes another function of at least {least} of 256 bytes"
            ));
        }
        Ok(self.table(expected, input, output))
    }

    /// A function of a byte that is a table.
    fn table(&self, results: &[f64], input: DataSign, output: DataSign) -> Numbers {
        let (low, _) = limits(input);
        let mut table = [0; 256];
        for (at, result) in results.iter().enumerate() {
            let byte = (low as i32 + at as i32) as u8;
            table[usize::from(byte)] = *result as i32 as u8;
        }
        let arithmetic =
            Arithmetic::Vector { function: Function::Table, first: (1.0, 0.0), second: (0.0, 0.0) };
        Numbers { input, output, arithmetic, factor: 1.0, zero: 0, table: Some(table) }
    }

    /// Constants that may compute the function: of the operand, of the result, and the zero point.
    fn candidates(&self, operand: &[ValueId]) -> Vec<((f32, f32), f32, i32)> {
        let mut all = vec![((1.0, 0.0), 1.0, 0)];
        let chain = self.ending(operand);
        let found = Affine::of(self.trace, chain.from, operand).zip(Rest::of(&chain.steps, 0));
        let Some((sum, rest)) = found else { return all };
        let (k, b, zero) = (sum.factors[0], sum.constant, rest.zero as i32);
        let product = (k * rest.factor) as f32;
        for product in near(product) {
            all.push(((1.0, (b / k).round() as f32), product, zero));
            all.push(((product, (b * rest.factor) as f32), 1.0, zero));
        }
        for factor in near(rest.factor as f32) {
            all.push(((k as f32, b as f32), factor, zero));
        }
        all
    }

    /// The end of the layer's function: the steps after the last sum, which are a factor, a rounding and the rest.
    pub fn ending(&self, operands: &[ValueId]) -> Chain {
        let mut chain = Chain::of(self.trace, self.origin.result, operands);
        let is_added = |step: &Step| matches!(step, Step::Constant(Binary::Add | Binary::Sub, _));
        let rounding = chain.steps.iter().position(|step| matches!(step, Step::Round));
        let end = rounding.unwrap_or(chain.steps.len());
        if let Some(last) = chain.steps[..end].iter().rposition(is_added) {
            chain.cut(last + 1);
        }
        chain
    }
}
