//! What of a graph becomes bytes.

use crate::constants::Constants;
use irc_tl::{
    Binary, Combine, Compute, DType, Graph, NodeKind, Op, Reduction, Scalar, Unary, ValueId,
};
use std::collections::{BTreeMap, BTreeSet};

/// What becomes bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// What is read as bytes: operands of products and what leads to them without `f32`. Results that only functions
    /// of `f32` read, and outputs, stay in `f32`.
    #[default]
    WhereRead,
    /// Every result that can be: an NPU stores only bytes.
    Everywhere,
}

/// What a step computes of bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A product or a convolution of `x` with constant weights, per output channel times a factor and plus a bias.
    Product {
        /// The node of the product.
        node: usize,
        /// The constant weights.
        weights: ValueId,
        /// What follows the product up to the bias: functions of it and of constants of each channel.
        constants: Vec<(Binary, ValueId)>,
    },
    /// A sum of two values, at this node.
    Sum(usize),
    /// A product of two values, at this node.
    Times(usize),
    /// A mean over axes, at this node.
    Mean(usize),
    /// Means of windows: the sums of the windows, at this node, divided by the numbers of their elements, at the other.
    WindowMean {
        /// The node of the sums.
        sums: usize,
        /// The node that divides them.
        counts: usize,
    },
    /// Elements of values, in any order, or the largest of some of them, or zeros around them. The values have one scale.
    Choice(usize),
    /// A function of each element of one value, computed in `f32`, whose last node is this one.
    Function(usize),
}

/// A part of a graph that reads bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What it computes.
    pub kind: Kind,
    /// The values that it reads as bytes.
    pub operands: Vec<ValueId>,
    /// Its result, within its limits.
    pub result: ValueId,
    /// The limits of the result. Bytes have them if no value with the same scale exceeds them.
    pub limits: Limits,
    /// Whether its result is bytes.
    pub makes_bytes: bool,
}

/// The limits of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Whether none is negative.
    pub is_positive: bool,
    /// The largest, if there is a largest.
    pub most: Option<f64>,
}

/// What of a graph becomes bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The steps, by the node that defines their result.
    pub(crate) steps: BTreeMap<usize, Step>,
    /// For each value that becomes bytes, which others have its scale, by the first of them.
    pub(crate) classes: BTreeMap<ValueId, ValueId>,
    /// The values whose ranges together are those of a class.
    pub(crate) ranges: BTreeMap<ValueId, Vec<ValueId>>,
}

impl Plan {
    /// What of a graph becomes bytes. Bodies of loops and branches do not.
    pub fn new(graph: &Graph, scope: Scope) -> Self {
        let finder = Finder::new(graph, scope);
        finder.plan()
    }

    /// Whether there is nothing to quantise: no product with constant weights.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The nodes of products and convolutions that become products of bytes.
    pub fn products(&self) -> BTreeSet<usize> {
        let product = |step: &Step| match step.kind {
            Kind::Product { node, .. } => Some(node),
            _ => None,
        };
        self.steps.values().filter_map(product).collect()
    }

    /// The values whose ranges are needed.
    pub fn observed(&self) -> BTreeSet<ValueId> {
        self.ranges.values().flatten().copied().collect()
    }
}

struct Finder<'g> {
    graph: &'g Graph,
    scope: Scope,
    constants: Constants<'g>,
    /// The nodes that read each value, each once; outputs of the graph are read by none.
    readers: BTreeMap<ValueId, Vec<usize>>,
    outputs: BTreeSet<ValueId>,
}

impl<'g> Finder<'g> {
    fn new(graph: &'g Graph, scope: Scope) -> Self {
        let mut readers: BTreeMap<ValueId, Vec<usize>> = BTreeMap::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            for operand in node.operands.iter().collect::<BTreeSet<_>>() {
                readers.entry(*operand).or_default().push(index);
            }
        }
        let outputs = graph.outputs.iter().map(|(_, value)| *value).collect();
        Self { graph, scope, constants: Constants::new(graph), readers, outputs }
    }

    fn plan(&self) -> Plan {
        let (mut found, mut known) = (vec![], Known::default());
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let NodeKind::Op(op) = &node.kind else { continue };
            if node.results.iter().any(|result| known.made.contains(result)) {
                continue;
            }
            if let Some(base) = self.base(op, index, &known) {
                known.functions.insert(node.results[0], base);
            } else if let Some(step) = self.step(index, op, &known) {
                known.made.insert(step.result);
                found.push(step);
            }
        }
        found.extend(self.functions(&known));
        let mut wanted: BTreeSet<ValueId> = BTreeSet::new();
        for step in &found {
            if matches!(step.kind, Kind::Product { .. }) {
                wanted.extend(&step.operands);
            }
        }
        let is_everywhere = self.scope == Scope::Everywhere;
        for step in found.iter_mut().rev() {
            step.makes_bytes = is_everywhere || wanted.contains(&step.result);
            if step.makes_bytes {
                wanted.extend(&step.operands);
            }
        }
        let is_product = |step: &Step| matches!(step.kind, Kind::Product { .. });
        found.retain(|step| step.makes_bytes || is_product(step));
        let (mut classes, mut chosen) = (Classes::default(), BTreeSet::new());
        for step in &found {
            step.operands.iter().for_each(|operand| classes.add(*operand));
            if !step.makes_bytes {
                continue;
            }
            classes.add(step.result);
            if matches!(step.kind, Kind::Choice(_)) {
                chosen.insert(step.result);
                step.operands.iter().for_each(|operand| classes.join(*operand, step.result));
            }
        }
        let classes = classes.all();
        let mut ranges: BTreeMap<ValueId, Vec<ValueId>> = BTreeMap::new();
        for (value, class) in classes.iter().filter(|(value, _)| !chosen.contains(value)) {
            ranges.entry(*class).or_default().push(*value);
        }
        let last = |step: &Step| self.constants.producer(step.result);
        let steps = found.into_iter().filter_map(|step| Some((last(&step)?, step))).collect();
        Plan { steps, classes, ranges }
    }

    /// The value of whose elements a node computes a function, if the NPU would store it.
    fn base(&self, op: &Op, index: usize, known: &Known) -> Option<ValueId> {
        let node = &self.graph.nodes[index];
        if self.scope != Scope::Everywhere || !op.is_elementwise() || node.results.len() != 1 {
            return None;
        }
        let mut base = None;
        for operand in node.operands.iter().filter(|operand| !self.constants.is_constant(**operand))
        {
            let own = match known.functions.get(operand) {
                Some(of) => *of,
                None if self.is_made(*operand, known) => *operand,
                None => return None,
            };
            let is_whole = self.graph.ty(*operand).dims == self.graph.ty(node.results[0]).dims;
            if !is_whole || base.is_some_and(|base| base != own) {
                return None;
            }
            base = Some(own);
        }
        base
    }

    /// The steps of functions that something else reads than a function of the same value.
    fn functions(&self, known: &Known) -> Vec<Step> {
        let mut all = vec![];
        for (result, base) in &known.functions {
            let is_inner = |reader: &usize| {
                let results = &self.graph.nodes[*reader].results;
                results.iter().all(|result| known.functions.get(result) == Some(base))
            };
            let readers = self.readers.get(result).map_or(&[][..], Vec::as_slice);
            let is_last = self.outputs.contains(result) || !readers.iter().all(is_inner);
            let is_float = self.graph.ty(*result).dtype == DType::F32;
            if let Some(node) = self.constants.producer(*result).filter(|_| is_last && is_float) {
                let (kind, operands) = (Kind::Function(node), vec![*base]);
                let limits = Limits::default();
                all.push(Step { kind, operands, result: *result, limits, makes_bytes: false });
            }
        }
        all
    }

    /// Whether a value becomes bytes.
    fn is_made(&self, value: ValueId, known: &Known) -> bool {
        let is_input = || {
            self.scope == Scope::Everywhere
                && self.constants.producer(value).is_none()
                && self.graph.ty(value).dtype == DType::F32
        };
        known.made.contains(&value) || known.functions.contains_key(&value) || is_input()
    }

    /// The step that begins at a node.
    fn step(&self, index: usize, op: &Op, known: &Known) -> Option<Step> {
        let node = &self.graph.nodes[index];
        let first = *node.operands.first()?;
        let result = node.results[0];
        if self.graph.ty(result).dtype != DType::F32 || self.graph.ty(first).dtype != DType::F32 {
            return None;
        }
        let all_made = node.operands.iter().all(|operand| self.is_made(*operand, known));
        let mut limits = Limits::default();
        let (kind, operands, result) = match op {
            Op::Conv(_) | Op::Matmul { transpose_lhs: false, .. } => {
                let weights = node.operands[1];
                let is_filter = matches!(op, Op::Conv(_)) || self.graph.ty(weights).rank() == 2;
                if !is_filter
                    || !self.constants.is_constant(weights)
                    || self.constants.is_constant(first)
                {
                    return None;
                }
                let (constants, end) = self.channels(result, matches!(op, Op::Conv(_)));
                let kind = Kind::Product { node: index, weights, constants };
                (kind, vec![first], self.limited(end, &mut limits))
            }
            Op::Binary(Binary::Add) if all_made && node.operands[0] != node.operands[1] => {
                (Kind::Sum(index), node.operands.clone(), self.limited(result, &mut limits))
            }
            Op::Binary(Binary::Mul)
                if all_made
                    && self.scope == Scope::Everywhere
                    && node.operands[0] != node.operands[1] =>
            {
                (Kind::Times(index), node.operands.clone(), self.limited(result, &mut limits))
            }
            Op::Reduce { kind: Reduction::Mean, axes, .. } if all_made => {
                let extents = &self.graph.ty(first).dims;
                if axes.is_empty() || axes.iter().any(|axis| extents[*axis].known().is_none()) {
                    return None;
                }
                (Kind::Mean(index), vec![first], result)
            }
            Op::Reshape { .. } | Op::Transpose { .. } | Op::Slice { .. } if all_made => {
                (Kind::Choice(index), vec![first], result)
            }
            Op::Reduce { kind: Reduction::Max, .. }
                if all_made && !self.is_read_with(first, result) =>
            {
                (Kind::Choice(index), vec![first], result)
            }
            Op::Compute(compute) if all_made && is_window_sum(compute) => {
                let counts = self.reader(result)?;
                let divisor = self.graph.nodes[counts].clone();
                let is_count = match &divisor.kind {
                    NodeKind::Op(Op::Binary(Binary::Div)) => {
                        let by = self.constants.get(divisor.operands[1]).ok()??;
                        divisor.operands[0] == result && by.elements() == 1
                    }
                    NodeKind::Op(Op::Compute(of)) => counts_of(of).is_some(),
                    _ => false,
                };
                if !is_count {
                    return None;
                }
                (Kind::WindowMean { sums: index, counts }, vec![first], divisor.results[0])
            }
            Op::Compute(compute) if all_made => {
                let is_largest =
                    compute.reduction.as_ref().is_some_and(|over| over.combine == Combine::Max);
                let moves = is_largest || compute.reduction.is_none();
                let chosen = bytes_of(&compute.body, 0).filter(|_| moves)?;
                let dims = node.operands.iter().map(|operand| self.graph.ty(*operand).dims.clone());
                let types: Vec<irc_tl::Type> =
                    dims.map(|dims| irc_tl::Type::new(DType::U8, dims)).collect();
                let own = Compute { body: chosen, ..(**compute).clone() };
                let ty = Op::compute(own).infer_symbolic(&types).ok()?;
                if ty.dtype != DType::U8 {
                    return None;
                }
                (Kind::Choice(index), node.operands.clone(), result)
            }
            _ => return None,
        };
        Some(Step { kind, operands, result, limits, makes_bytes: false })
    }

    /// The only node that reads a value, if it is read once and no output.
    fn reader(&self, value: ValueId) -> Option<usize> {
        match self.readers.get(&value).map(Vec::as_slice) {
            Some([one]) if !self.outputs.contains(&value) => Some(*one),
            _ => None,
        }
    }

    /// Whether a node reads both values, as the difference in a softmax, whose operand and maximum stay in `f32`.
    fn is_read_with(&self, one: ValueId, other: ValueId) -> bool {
        // Readers are in the order of their numbers.
        let readers = |value: ValueId| self.readers.get(&value).map_or(&[][..], Vec::as_slice);
        readers(other).iter().any(|reader| readers(one).binary_search(reader).is_ok())
    }

    /// The functions of a product and of constants of each channel that follow it, and their result.
    fn channels(&self, product: ValueId, is_conv: bool) -> (Vec<(Binary, ValueId)>, ValueId) {
        let (mut all, mut end) = (vec![], product);
        while let Some(index) = self.reader(end) {
            let node = &self.graph.nodes[index];
            let NodeKind::Op(Op::Binary(function)) = &node.kind else { break };
            let [left, right] = node.operands[..] else { break };
            let (by, is_left) = if left == end { (right, false) } else { (left, true) };
            let commutes = matches!(function, Binary::Add | Binary::Mul);
            let is_ordered = matches!(function, Binary::Sub | Binary::Div) && !is_left;
            let own = self.graph.ty(node.results[0]);
            let is_same = own == self.graph.ty(end);
            if !(commutes || is_ordered) || !is_same || !self.is_of_channels(by, end, is_conv) {
                break;
            }
            all.push((*function, by));
            end = node.results[0];
        }
        (all, end)
    }

    /// Whether a value is a constant with at most one element for each channel of another.
    fn is_of_channels(&self, value: ValueId, of: ValueId, is_conv: bool) -> bool {
        let (own, rank) = (self.graph.ty(value), self.graph.ty(of).rank());
        let axis = if is_conv { 1 } else { rank - 1 };
        let is_one = |(at, dim): (usize, &irc_tl::Dim)| at + rank == axis + own.rank() || dim.is(1);
        self.constants.is_constant(value)
            && own.rank() <= rank
            && own.dims.iter().enumerate().all(is_one)
    }

    /// The result of functions that only limit a value, `max(x, 0)`, and `min(x, c)` with a positive `c`, and the limits.
    fn limited(&self, mut value: ValueId, limits: &mut Limits) -> ValueId {
        while let Some(index) = self.reader(value) {
            let node = &self.graph.nodes[index];
            let NodeKind::Op(op) = &node.kind else { break };
            let other = node.operands.iter().find(|operand| **operand != value);
            let single = || match self.constants.get(*other?) {
                Ok(Some(tensor)) if tensor.elements() == 1 => Some(tensor.get_f64(0)),
                _ => None,
            };
            let own = match op {
                Op::Unary(Unary::Relu) => None,
                Op::Binary(Binary::Max) if single() == Some(0.0) => None,
                Op::Binary(Binary::Min) => match single().filter(|most| *most > 0.0) {
                    Some(most) => Some(most),
                    None => break,
                },
                _ => break,
            };
            if self.graph.ty(node.results[0]) != self.graph.ty(value) {
                break;
            }
            match own {
                Some(own) => limits.most = Some(limits.most.map_or(own, |most| most.min(own))),
                None => limits.is_positive = true,
            }
            value = node.results[0];
        }
        value
    }
}

/// The values that become bytes.
#[derive(Default)]
struct Known {
    /// The results of steps.
    made: BTreeSet<ValueId>,
    /// Functions of the elements of a value, which is also here.
    functions: BTreeMap<ValueId, ValueId>,
}

/// Values with one scale.
#[derive(Default)]
struct Classes(BTreeMap<ValueId, ValueId>);

impl Classes {
    fn add(&mut self, value: ValueId) {
        self.0.entry(value).or_insert(value);
    }

    /// The first value of the class of a value.
    fn first(&mut self, value: ValueId) -> ValueId {
        let mut first = value;
        while let Some(next) = self.0.get(&first).filter(|next| **next != first) {
            first = *next;
        }
        let mut at = value;
        while let Some(next) = self.0.insert(at, first).filter(|next| *next != first && *next != at)
        {
            at = next;
        }
        first
    }

    fn join(&mut self, one: ValueId, other: ValueId) {
        let (one, other) = (self.first(one), self.first(other));
        self.0.insert(one.max(other), one.min(other));
    }

    /// The first value of the class of each value.
    fn all(mut self) -> BTreeMap<ValueId, ValueId> {
        let values: Vec<ValueId> = self.0.keys().copied().collect();
        values.into_iter().map(|value| (value, self.first(value))).collect()
    }
}

/// Whether loops add the elements of windows, and zeros outside of the operand.
fn is_window_sum(compute: &Compute) -> bool {
    let adds = compute.reduction.as_ref().is_some_and(|over| over.combine == Combine::Sum);
    adds && sums_of(&compute.body).is_some()
}

/// The expression that chooses integers where another chooses numbers of `f32` and zeros.
pub fn sums_of(body: &Scalar) -> Option<Scalar> {
    match body {
        Scalar::Load(..) => Some(body.clone()),
        Scalar::Float(bits, DType::F32) if f64::from_bits(*bits) == 0.0 => {
            Some(Scalar::Int(0, DType::I32))
        }
        Scalar::Cast(DType::F32, _, inner) => sums_of(inner),
        Scalar::Select(parts) => {
            let [condition, yes, no] = &**parts;
            let (yes, no) = (sums_of(yes)?, sums_of(no)?);
            Some(condition.clone().select(yes, no))
        }
        _ => None,
    }
}

/// The numbers by which loops divide each element of their operand, if they do not depend on it, or on the first two
/// dimensions.
pub fn counts_of(compute: &Compute) -> Option<Scalar> {
    let Scalar::Binary(Binary::Div, left, right) = &compute.body else { return None };
    let own: Vec<Scalar> = (0..compute.dims.len()).map(Scalar::Loop).collect();
    let mut is_free = true;
    right.walk(&mut |scalar| {
        is_free &= !matches!(scalar, Scalar::Load(..) | Scalar::Loop(0 | 1));
    });
    let is_whole = compute.reduction.is_none() && **left == Scalar::load(0, own);
    (is_whole && is_free).then(|| (**right).clone())
}

/// The expression that chooses bytes where another chooses numbers of `f32`: the least byte stands for the least
/// number, and the zero point for 0. `None` if it computes numbers.
pub fn bytes_of(body: &Scalar, zero: i32) -> Option<Scalar> {
    match body {
        Scalar::Load(..) => Some(body.clone()),
        Scalar::Float(bits, DType::F32) if f64::from_bits(*bits) == f64::NEG_INFINITY => {
            Some(Scalar::Int(0, DType::U8))
        }
        Scalar::Float(bits, DType::F32) if f64::from_bits(*bits) == 0.0 => {
            Some(Scalar::Int(zero.into(), DType::U8))
        }
        Scalar::Select(parts) => {
            let [condition, yes, no] = &**parts;
            let (yes, no) = (bytes_of(yes, zero)?, bytes_of(no, zero)?);
            Some(condition.clone().select(yes, no))
        }
        _ => None,
    }
}
