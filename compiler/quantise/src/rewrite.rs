//! The quantised graph.

use crate::constants::Constants;
use crate::plan::{Kind, Limits, Plan, Step, bytes_of, counts_of, sums_of};
use crate::{Granularity, Quantisation, Range};
use irc_tensor::TensorType;
use irc_tl::{
    Binary, Compute, Constant, DType, Dim, Graph, Node, NodeKind, Op, Reduction, Rounding, Tensor,
    Type, Unary, ValueId,
};
use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

impl Plan {
    /// The quantised graph. Values have the numbers that they have in `graph`; new ones follow.
    ///
    /// # Errors
    /// A value of the plan without a range, and weights that are not finite.
    pub fn quantise(&self, graph: &Graph, by: &Quantisation) -> Result<Graph, String> {
        let made = Graph { nodes: vec![], ..graph.clone() };
        let constants = Constants::new(graph);
        let mut writer =
            Writer { plan: self, by, graph, constants, made, bytes: BTreeMap::new(), origin: None };
        for (index, node) in graph.nodes.iter().enumerate() {
            writer.origin.clone_from(&node.origin);
            match self.steps.get(&index) {
                Some(step) => writer.step(step, node)?,
                // The parts of a step stay if others read them.
                None => writer.made.nodes.push(node.clone()),
            }
        }
        let mut made = writer.made;
        made.prune();
        Ok(made)
    }
}

/// A scale and a zero point of `u8`.
#[derive(Clone, Copy, PartialEq)]
struct Scale {
    scale: f32,
    zero: i32,
}

struct Writer<'w> {
    plan: &'w Plan,
    by: &'w Quantisation,
    graph: &'w Graph,
    constants: Constants<'w>,
    made: Graph,
    /// The bytes of values that have been quantised.
    bytes: BTreeMap<ValueId, ValueId>,
    origin: Option<Arc<str>>,
}

type Written<T = ValueId> = Result<T, String>;

impl Writer<'_> {
    /// Writes a step, whose last node is `node`.
    fn step(&mut self, step: &Step, node: &Node) -> Written<()> {
        if !step.makes_bytes {
            let Kind::Product { node: at, weights, .. } = &step.kind else { return Ok(()) };
            // Its result stays `f32`: what follows the product is as it was.
            let product = &self.graph.nodes[*at];
            self.product_of_floats(product, *weights)?;
            if product.results[0] != step.result {
                self.made.nodes.push(node.clone());
            }
            return Ok(());
        }
        let to = self.scale(step.result)?;
        // A step is named after what it computes, not after what limits its result.
        let (Kind::Product { node: first, .. }
        | Kind::Sum(first)
        | Kind::Times(first)
        | Kind::Mean(first)
        | Kind::WindowMean { sums: first, .. }
        | Kind::Choice(first)
        | Kind::Function(first)) = &step.kind;
        self.origin.clone_from(&self.graph.nodes[*first].origin);
        let bytes = match &step.kind {
            Kind::Product { node, weights, constants } => {
                self.product(&self.graph.nodes[*node], *weights, constants, to)?
            }
            Kind::Sum(_) => self.sum(&step.operands, to)?,
            Kind::Mean(at) => self.mean(&self.graph.nodes[*at], to)?,
            Kind::Times(_) => self.product_of_two(&step.operands, to)?,
            Kind::WindowMean { sums, counts } => {
                self.window_mean(&self.graph.nodes[*sums], &self.graph.nodes[*counts], to)?
            }
            Kind::Choice(at) => self.choice(&self.graph.nodes[*at])?,
            Kind::Function(_) => self.function(node, to)?,
        };
        let bytes = self.within(bytes, step.limits, to)?;
        self.bytes.insert(step.result, bytes);
        self.dequantise(bytes, to, step.result)
    }

    /// The scale of a value that becomes bytes.
    fn scale(&self, value: ValueId) -> Written<Scale> {
        let missing = || "a value has no range: the calibration is of another model".to_owned();
        let class = self.plan.classes.get(&value).ok_or_else(missing)?;
        let members = self.plan.ranges.get(class).ok_or_else(missing)?;
        let mut range = Range { min: 0.0, max: 0.0 };
        for member in members {
            let own = self.by.ranges.get(member).ok_or_else(missing)?;
            range = Range { min: range.min.min(own.min), max: range.max.max(own.max) };
        }
        let (scale, zero) = range.scale();
        Ok(Scale { scale, zero })
    }

    /// The bytes of a value, with its scale.
    fn quantised(&mut self, value: ValueId) -> Written<(ValueId, Scale)> {
        let scale = self.scale(value)?;
        if let Some(bytes) = self.bytes.get(&value) {
            return Ok((*bytes, scale));
        }
        let by = self.number(scale.scale)?;
        let ratio = self.op(Op::Binary(Binary::Div), &[value, by])?;
        let bytes = self.rounded(ratio, scale.zero)?;
        self.bytes.insert(value, bytes);
        Ok((bytes, scale))
    }

    /// Rounds a float to the nearest integer, ties to even, adds a zero point, and saturates to `u8`.
    fn rounded(&mut self, value: ValueId, zero: i32) -> Written {
        let mut value = self.op(Op::Unary(Unary::Round), &[value])?;
        if zero != 0 {
            let zero = self.number(zero as f32)?;
            value = self.op(Op::Binary(Binary::Add), &[value, zero])?;
        }
        self.op(Op::Cast { to: DType::U8, rounding: Rounding::TowardZero }, &[value])
    }

    /// Bytes within limits, which those of values with a larger range exceed.
    fn within(&mut self, bytes: ValueId, limits: Limits, by: Scale) -> Written {
        let mut bytes = bytes;
        if limits.is_positive && by.zero > 0 {
            let zero = self.constant(DType::U8, &[], &[f64::from(by.zero)])?;
            bytes = self.op(Op::Binary(Binary::Max), &[bytes, zero])?;
        }
        let top = limits
            .most
            .map(|most| f64::from((most as f32 / by.scale).round_ties_even()) + f64::from(by.zero));
        if let Some(top) = top.filter(|top| *top < 255.0) {
            let top = self.constant(DType::U8, &[], &[top])?;
            bytes = self.op(Op::Binary(Binary::Min), &[bytes, top])?;
        }
        Ok(bytes)
    }

    /// `(bytes - zero point) scale` as the value with the number `result`.
    fn dequantise(&mut self, bytes: ValueId, by: Scale, result: ValueId) -> Written<()> {
        let number = self.centred(bytes, by.zero)?;
        let number = self.cast(number, DType::F32)?;
        let scale = self.number(by.scale)?;
        let own = self.op(Op::Binary(Binary::Mul), &[number, scale])?;
        if let Some(last) = self.made.nodes.last_mut().filter(|last| last.results == [own]) {
            last.results = vec![result];
        }
        Ok(())
    }

    fn centred(&mut self, bytes: ValueId, zero: i32) -> Written {
        let wide = self.cast(bytes, DType::I32)?;
        if zero == 0 {
            return Ok(wide);
        }
        let zero = self.constant(DType::I32, &[], &[f64::from(zero)])?;
        self.op(Op::Binary(Binary::Sub), &[wide, zero])
    }

    /// The bytes of a product with weights, and of what follows it for each channel.
    fn product(
        &mut self,
        product: &Node,
        weights: ValueId,
        constants: &[(Binary, ValueId)],
        to: Scale,
    ) -> Written {
        let (x, from) = self.quantised(product.operands[0])?;
        let mut weights = self.weights(product, weights)?;
        let bias = weights.follow(&self.constants, constants)?;
        // A bias in steps of the sums is at most `MAX_BIAS`.
        let least = |bias: &f64| bias.abs() / f64::from(from.scale) / MAX_BIAS;
        let least: Vec<f64> = bias.iter().map(least).collect();
        let (integers, scales) = weights.quantise(self.by.granularity, &least);
        let bias = bias.iter().zip(&scales).map(|(bias, scale)| {
            let step = f64::from(from.scale) * f64::from(*scale);
            (bias / step).round_ties_even()
        });
        let bias: Vec<f64> = bias.collect();
        let sum = self.sums(product, x, from.zero, &weights, &integers, &bias)?;
        let by: Vec<f32> = scales.iter().map(|scale| from.scale * scale / to.scale).collect();
        let value = self.times(sum, &weights, &by)?;
        self.rounded(value, to.zero)
    }

    /// A product with weights of which the operand is bytes, and the result `f32`.
    fn product_of_floats(&mut self, product: &Node, weights: ValueId) -> Written<()> {
        let (x, from) = self.quantised(product.operands[0])?;
        let weights = self.weights(product, weights)?;
        let (integers, scales) = weights.quantise(self.by.granularity, &[]);
        let bias = vec![0.0; scales.len()];
        let sum = self.sums(product, x, from.zero, &weights, &integers, &bias)?;
        let by: Vec<f32> = scales.iter().map(|scale| from.scale * scale).collect();
        let value = self.times(sum, &weights, &by)?;
        if let Some(last) = self.made.nodes.last_mut().filter(|last| last.results == [value]) {
            last.results.clone_from(&product.results);
        }
        Ok(())
    }

    fn weights(&self, product: &Node, value: ValueId) -> Written<Weights> {
        let tensor = self.constants.get(value)?.ok_or("weights are not constant")?;
        let NodeKind::Op(op) = &product.kind else { return Err("expected a product".into()) };
        let rank = self.graph.ty(product.results[0]).rank();
        let weights = Weights::new(op, &tensor, rank);
        match weights.elements.iter().all(|element| element.is_finite()) {
            true => Ok(weights),
            false => {
                let place = product.origin.as_deref().unwrap_or("a product");
                Err(format!("{place}: its weights are not finite"))
            }
        }
    }

    /// The sums of products of bytes minus their zero point with integers, plus a bias of each channel.
    fn sums(
        &mut self,
        product: &Node,
        x: ValueId,
        zero: i32,
        weights: &Weights,
        integers: &[i8],
        bias: &[f64],
    ) -> Written {
        let each = integers.len() / bias.len().max(1);
        let sums =
            integers.chunks(each.max(1)).map(|row| row.iter().map(|own| f64::from(*own)).sum());
        let offset =
            bias.iter().zip(sums).map(|(bias, sum): (&f64, f64)| bias - f64::from(zero) * sum);
        let limit = f64::from(i32::MAX);
        let offset: Vec<f64> = offset.map(|offset| offset.clamp(-limit, limit)).collect();
        let (shape, elements) = weights.arranged(integers);
        let elements: Vec<f64> = elements.into_iter().map(f64::from).collect();
        let operand = self.constant(DType::I8, &shape, &elements)?;
        let NodeKind::Op(op) = &product.kind else { return Err("expected a product".into()) };
        let op = match op {
            Op::Conv(conv) => Op::Conv(irc_tl::Conv { outside: i64::from(zero), ..conv.clone() }),
            _ => Op::Matmul { transpose_lhs: false, transpose_rhs: false },
        };
        let sum = self.op(op, &[x, operand])?;
        if offset.iter().all(|offset| *offset == 0.0) {
            return Ok(sum);
        }
        let offset = self.constant(DType::I32, &weights.channel_shape, &offset)?;
        self.op(Op::Binary(Binary::Add), &[sum, offset])
    }

    /// Integers as floats, times a factor of each channel.
    fn times(&mut self, sum: ValueId, weights: &Weights, by: &[f32]) -> Written {
        let sum = self.cast(sum, DType::F32)?;
        let by: Vec<f64> = by.iter().map(|by| f64::from(*by)).collect();
        let by = match by[..] {
            [first, ref rest @ ..] if rest.iter().all(|own| *own == first) => {
                self.constant(DType::F32, &[], &[first])?
            }
            _ => self.constant(DType::F32, &weights.channel_shape, &by)?,
        };
        self.op(Op::Binary(Binary::Mul), &[sum, by])
    }

    /// The sum of two values: each times its scale divided by that of the result, in `f32`, rounded once per
    /// operand, as `QLinearAdd` of ONNX Runtime.
    fn sum(&mut self, operands: &[ValueId], to: Scale) -> Written {
        let mut rest = f64::from(to.zero);
        let mut all = vec![];
        for operand in operands {
            let (bytes, own) = self.quantised(*operand)?;
            let factor = own.scale / to.scale;
            rest -= f64::from(factor) * f64::from(own.zero);
            all.push((bytes, factor));
        }
        let mut value = self.number(rest as f32)?;
        for (bytes, factor) in all.into_iter().rev() {
            let factor = self.constant(DType::F64, &[], &[f64::from(factor)])?;
            let (wide, addend) = (self.cast(bytes, DType::F64)?, self.cast(value, DType::F64)?);
            let product = self.op(Op::Binary(Binary::Mul), &[wide, factor])?;
            let sum = self.op(Op::Binary(Binary::Add), &[product, addend])?;
            value = self.cast(sum, DType::F32)?;
        }
        self.rounded(value, 0)
    }

    /// A mean: the sum of integers times one factor.
    fn mean(&mut self, node: &Node, to: Scale) -> Written {
        let (bytes, from) = self.quantised(node.operands[0])?;
        let NodeKind::Op(Op::Reduce { axes, keep_dims, .. }) = &node.kind else {
            return Err("expected a mean".into());
        };
        let dims = &self.graph.ty(node.operands[0]).dims;
        let count = axes.iter().filter_map(|axis| dims[*axis].known()).product::<i64>() as f32;
        let number = self.centred(bytes, from.zero)?;
        let sum = Op::Reduce { kind: Reduction::Sum, axes: axes.clone(), keep_dims: *keep_dims };
        let sum = self.op(sum, &[number])?;
        let sum = self.cast(sum, DType::F32)?;
        let by = self.number(from.scale / (to.scale * count))?;
        let value = self.op(Op::Binary(Binary::Mul), &[sum, by])?;
        self.rounded(value, to.zero)
    }

    /// A product of two values: that of integers, times one factor.
    fn product_of_two(&mut self, operands: &[ValueId], to: Scale) -> Written {
        let [left, right] = *operands else { return Err("expected a product of two".into()) };
        let (mut factors, mut scales) = (vec![], vec![]);
        for operand in [left, right] {
            let (bytes, from) = self.quantised(operand)?;
            let number = self.centred(bytes, from.zero)?;
            factors.push(self.cast(number, DType::F32)?);
            scales.push(from.scale);
        }
        let product = self.op(Op::Binary(Binary::Mul), &factors)?;
        let by = self.number(scales[0] * scales[1] / to.scale)?;
        let value = self.op(Op::Binary(Binary::Mul), &[product, by])?;
        self.rounded(value, to.zero)
    }

    /// Means of windows: the sums of integers, divided by the numbers of elements.
    fn window_mean(&mut self, sums: &Node, counts: &Node, to: Scale) -> Written {
        let (bytes, from) = self.quantised(sums.operands[0])?;
        let number = self.centred(bytes, from.zero)?;
        let NodeKind::Op(Op::Compute(compute)) = &sums.kind else {
            return Err("expected a sum of windows".into());
        };
        let body = sums_of(&compute.body).ok_or("expected a sum of windows")?;
        let sum = self.op(Op::compute(Compute { body, ..(**compute).clone() }), &[number])?;
        let sum = self.cast(sum, DType::F32)?;
        let by = self.divided(counts, from, to)?;
        let value = self.op(Op::Binary(Binary::Mul), &[sum, by])?;
        self.rounded(value, to.zero)
    }

    /// The factor of sums of windows that a node divides: one, or one for each window.
    fn divided(&mut self, counts: &Node, from: Scale, to: Scale) -> Written {
        let single = |count: f64| from.scale / (to.scale * count as f32);
        let compute = match &counts.kind {
            NodeKind::Op(Op::Compute(compute)) => compute,
            _ => {
                let by = self.constants.get(counts.operands[1])?.ok_or("expected a number")?;
                return self.number(single(by.get_f64(0)));
            }
        };
        let body = counts_of(compute).ok_or("expected a division")?;
        let mut dims = compute.dims.clone();
        dims.iter_mut().take(2).for_each(|dim| *dim = Dim::from(1));
        let op = Op::compute(Compute::map(dims, body));
        let known = op.eval(&[]).ok().map(|counts| counts.to_f64());
        if let Some([first, rest @ ..]) = known.as_deref()
            && rest.iter().all(|count| count == first)
        {
            return self.number(single(*first));
        }
        let counts = self.op(op, &[])?;
        let ratio = self.number(from.scale / to.scale)?;
        self.op(Op::Binary(Binary::Div), &[ratio, counts])
    }

    /// The bytes of a function that is computed in `f32`, by its last node.
    fn function(&mut self, node: &Node, to: Scale) -> Written {
        let NodeKind::Op(op) = &node.kind else { return Err("expected a function".into()) };
        let value = self.op(op.clone(), &node.operands)?;
        let by = self.number(to.scale)?;
        let ratio = self.op(Op::Binary(Binary::Div), &[value, by])?;
        self.rounded(ratio, to.zero)
    }

    /// The bytes that stand for the numbers that an op chooses.
    fn choice(&mut self, node: &Node) -> Written {
        let (mut operands, mut zero) = (vec![], 0);
        for operand in &node.operands {
            let (bytes, from) = self.quantised(*operand)?;
            operands.push(bytes);
            zero = from.zero;
        }
        let NodeKind::Op(op) = &node.kind else { return Err("expected a choice".into()) };
        let op = match op {
            Op::Compute(compute) => {
                let body = bytes_of(&compute.body, zero).ok_or("expected a choice")?;
                Op::compute(Compute { body, ..(**compute).clone() })
            }
            op => op.clone(),
        };
        self.op(op, &operands)
    }

    fn cast(&mut self, value: ValueId, to: DType) -> Written {
        match self.made.ty(value).dtype == to {
            true => Ok(value),
            false => self.op(Op::Cast { to, rounding: Rounding::TowardZero }, &[value]),
        }
    }

    fn number(&mut self, value: f32) -> Written {
        self.constant(DType::F32, &[], &[f64::from(value)])
    }

    fn constant(&mut self, dtype: DType, shape: &[i64], elements: &[f64]) -> Written {
        let ty = TensorType::new(dtype, shape);
        let tensor = Tensor::from_f64(ty, elements).map_err(|error| error.to_string())?;
        let constant = Constant::of(&tensor);
        let value = self.value(constant.ty.clone().into());
        self.push(NodeKind::Constant(constant), &[], value);
        Ok(value)
    }

    /// An op, as [`irc_tl::Builder::op`] writes it: loops where sizes are open and the op has no schedule for them.
    fn op(&mut self, op: Op, operands: &[ValueId]) -> Written {
        let types: Vec<Type> = operands.iter().map(|value| self.made.ty(*value).clone()).collect();
        let is_open = types.iter().any(|ty| ty.known().is_none());
        let has_form = matches!(op, Op::Compute(_) | Op::Matmul { .. } | Op::Conv(_));
        let op = match is_open && !has_form && op.open_rows(&types).is_none() {
            true => Op::compute(op.as_compute(&types).ok_or("a value has open sizes")?),
            false => op,
        };
        let ty = op.infer_symbolic(&types).map_err(|error| error.to_string())?;
        let value = self.value(ty);
        self.push(NodeKind::Op(op), operands, value);
        Ok(value)
    }

    fn value(&mut self, ty: Type) -> ValueId {
        self.made.types.push(ty);
        ValueId(self.made.types.len() - 1)
    }

    fn push(&mut self, kind: NodeKind, operands: &[ValueId], result: ValueId) {
        let (operands, origin) = (operands.to_vec(), self.origin.clone());
        self.made.nodes.push(Node { kind, operands, results: vec![result], origin });
    }
}

/// The largest bias in steps of the sums of products: half of what an `i32` holds is left for the sums.
const MAX_BIAS: f64 = (1u32 << 30) as f64;

/// Weights, of which those of each output channel are consecutive.
struct Weights {
    elements: Vec<f64>,
    /// Output channels, and weights of each.
    count: usize,
    each: usize,
    /// The shape as operand, and whether output channels are its last dimension.
    shape: Vec<i64>,
    is_matrix: bool,
    /// The shape of one number for each channel of the result.
    channel_shape: Vec<i64>,
}

impl Weights {
    fn new(op: &Op, tensor: &Tensor, rank: usize) -> Self {
        let (shape, elements) = (tensor.shape(), tensor.to_f64());
        let Op::Matmul { transpose_rhs, .. } = op else {
            let count = shape[0] as usize;
            let mut channel_shape = vec![1; rank];
            channel_shape[1] = shape[0];
            let each = elements.len() / count.max(1);
            let shape = shape.to_vec();
            return Self { elements, count, each, shape, is_matrix: false, channel_shape };
        };
        let (outer, inner) = match transpose_rhs {
            true => (shape[0] as usize, shape[1] as usize),
            false => (shape[1] as usize, shape[0] as usize),
        };
        let elements = match transpose_rhs {
            true => elements,
            false => transposed(&elements, outer),
        };
        Self {
            elements,
            count: outer,
            each: inner,
            shape: vec![inner as i64, outer as i64],
            is_matrix: true,
            channel_shape: vec![outer as i64],
        }
    }

    /// Multiplies the weights of each channel with the factors that follow the product, and returns the bias.
    fn follow(
        &mut self,
        known: &Constants<'_>,
        constants: &[(Binary, ValueId)],
    ) -> Written<Vec<f64>> {
        let (mut factors, mut bias) = (vec![1.0; self.count], vec![0.0; self.count]);
        for (function, value) in constants {
            let by = known.get(*value)?.ok_or("a constant is not known")?.to_f64();
            for (channel, (factor, bias)) in factors.iter_mut().zip(&mut bias).enumerate() {
                let by = if by.len() == 1 { by[0] } else { by[channel] };
                match function {
                    Binary::Add => *bias += by,
                    Binary::Sub => *bias -= by,
                    Binary::Mul => (*factor, *bias) = (*factor * by, *bias * by),
                    Binary::Div => (*factor, *bias) = (*factor / by, *bias / by),
                    _ => return Err("expected a sum or a product".into()),
                }
            }
        }
        for (row, factor) in self.elements.chunks_mut(self.each.max(1)).zip(&factors) {
            row.iter_mut().for_each(|element| *element *= factor);
        }
        match self.elements.iter().chain(&bias).all(|number| number.is_finite()) {
            true => Ok(bias),
            false => Err("weights are not finite".into()),
        }
    }

    /// Integers of -127 to 127, and the scale of each channel, which is no less than one of `least`, if it has that.
    fn quantise(&self, granularity: Granularity, least: &[f64]) -> (Vec<i8>, Vec<f32>) {
        let largest = |row: &[f64]| row.iter().fold(0.0, |most: f64, own| most.max(own.abs()));
        let scale = |largest: f64, least: f64| match (largest / 127.0).max(least) as f32 {
            scale if scale < f32::MIN_POSITIVE => 1.0,
            scale => scale,
        };
        let scales: Vec<f32> = match granularity {
            Granularity::Tensor => {
                vec![scale(largest(&self.elements), largest(least)); self.count]
            }
            Granularity::Channel => {
                let least = least.iter().copied().chain(iter::repeat(0.0));
                let rows = self.elements.chunks(self.each.max(1)).zip(least);
                rows.map(|(row, least)| scale(largest(row), least)).collect()
            }
        };
        let mut integers = Vec::with_capacity(self.elements.len());
        for (row, scale) in self.elements.chunks(self.each.max(1)).zip(&scales) {
            let integer =
                |own: &f64| (own / f64::from(*scale)).round_ties_even().clamp(-127.0, 127.0) as i8;
            integers.extend(row.iter().map(integer));
        }
        (integers, scales)
    }

    /// Integers in the order of the operand, and its shape.
    fn arranged(&self, integers: &[i8]) -> (Vec<i64>, Vec<i8>) {
        match self.is_matrix {
            true => (self.shape.clone(), transposed(integers, self.each)),
            false => (self.shape.clone(), integers.to_vec()),
        }
    }
}

/// A matrix with `columns` columns, column by column.
fn transposed<T: Copy>(elements: &[T], columns: usize) -> Vec<T> {
    let rows = elements.len() / columns.max(1);
    let at = |index: usize| elements[index % rows * columns + index / rows];
    (0..elements.len()).map(at).collect()
}
