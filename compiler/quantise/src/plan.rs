//! What of a graph becomes bytes.

use crate::constants::Constants;
use irc_tl::{Binary, Combine, DType, Graph, NodeKind, Op, Reduction, Scalar, Unary, ValueId};
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
    /// A mean over axes, at this node.
    Mean(usize),
    /// Elements of a value, in any order, or the largest of some of them.
    Choice(usize),
}

/// A part of a graph that reads bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What it computes.
    pub kind: Kind,
    /// The values that it reads as bytes.
    pub operands: Vec<ValueId>,
    /// Its result, limited to its range.
    pub result: ValueId,
    /// Whether its result is bytes.
    pub makes_bytes: bool,
}

/// What of a graph becomes bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The steps, by the node that defines their result.
    pub(crate) steps: BTreeMap<usize, Step>,
    /// The value whose range each value has that becomes bytes.
    pub(crate) ranges: BTreeMap<ValueId, ValueId>,
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

    /// The values whose ranges are needed.
    pub fn observed(&self) -> BTreeSet<ValueId> {
        self.ranges.values().copied().collect()
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
        let (mut found, mut made) = (vec![], BTreeSet::new());
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let NodeKind::Op(op) = &node.kind else { continue };
            if let Some(step) = self.step(index, op, &made) {
                made.insert(step.result);
                found.push(step);
            }
        }
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
        let mut ranges = BTreeMap::new();
        for step in &found {
            for operand in &step.operands {
                ranges.entry(*operand).or_insert(*operand);
            }
            if step.makes_bytes {
                let own = match step.kind {
                    Kind::Choice(_) => ranges[&step.operands[0]],
                    _ => step.result,
                };
                ranges.insert(step.result, own);
            }
        }
        let last = |step: &Step| self.constants.producer(step.result);
        let steps = found.into_iter().filter_map(|step| Some((last(&step)?, step))).collect();
        Plan { steps, ranges }
    }

    /// The step that begins at a node. `made` are the results of the steps before.
    fn step(&self, index: usize, op: &Op, made: &BTreeSet<ValueId>) -> Option<Step> {
        let node = &self.graph.nodes[index];
        let first = *node.operands.first()?;
        let result = node.results[0];
        if self.graph.ty(result).dtype != DType::F32 || self.graph.ty(first).dtype != DType::F32 {
            return None;
        }
        let is_input = |value: &ValueId| self.constants.producer(*value).is_none();
        let is_made = |value: &ValueId| {
            made.contains(value) || self.scope == Scope::Everywhere && is_input(value)
        };
        let all_made = node.operands.iter().all(is_made);
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
                (kind, vec![first], self.limited(end))
            }
            Op::Binary(Binary::Add) if all_made && node.operands[0] != node.operands[1] => {
                (Kind::Sum(index), node.operands.clone(), self.limited(result))
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
            Op::Compute(compute) if all_made && node.operands.len() == 1 => {
                let is_largest =
                    compute.reduction.as_ref().is_some_and(|over| over.combine == Combine::Max);
                let moves = is_largest || compute.reduction.is_none();
                let chosen = bytes_of(&compute.body).filter(|_| moves)?;
                let types = [irc_tl::Type::new(DType::U8, self.graph.ty(first).dims.clone())];
                let own = irc_tl::Compute { body: chosen, ..(**compute).clone() };
                let ty = Op::compute(own).infer_symbolic(&types).ok()?;
                if ty.dtype != DType::U8 {
                    return None;
                }
                (Kind::Choice(index), vec![first], result)
            }
            _ => return None,
        };
        Some(Step { kind, operands, result, makes_bytes: false })
    }

    /// The only node that reads a value, if it is read once and no output.
    fn reader(&self, value: ValueId) -> Option<usize> {
        match self.readers.get(&value).map(Vec::as_slice) {
            Some([one]) if !self.outputs.contains(&value) => Some(*one),
            _ => None,
        }
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

    /// The result of functions that only limit a value, which its range does as well: `max(x, 0)`, and `min(x, c)` with
    /// a positive `c`.
    fn limited(&self, mut value: ValueId) -> ValueId {
        while let Some(index) = self.reader(value) {
            let node = &self.graph.nodes[index];
            let NodeKind::Op(op) = &node.kind else { break };
            let other = node.operands.iter().find(|operand| **operand != value);
            let single = || match self.constants.get(*other?) {
                Ok(Some(tensor)) if tensor.elements() == 1 => Some(tensor.get_f64(0)),
                _ => None,
            };
            let is_limit = match op {
                Op::Unary(Unary::Relu) => true,
                Op::Binary(Binary::Max) => single() == Some(0.0),
                Op::Binary(Binary::Min) => single().is_some_and(|most| most > 0.0),
                _ => false,
            };
            if !is_limit || self.graph.ty(node.results[0]) != self.graph.ty(value) {
                break;
            }
            value = node.results[0];
        }
        value
    }
}

/// The expression that chooses bytes where another chooses numbers of `f32`: the least byte stands for the least
/// number. `None` if it computes numbers.
pub fn bytes_of(body: &Scalar) -> Option<Scalar> {
    match body {
        Scalar::Load(..) => Some(body.clone()),
        Scalar::Float(bits, DType::F32) if f64::from_bits(*bits) == f64::NEG_INFINITY => {
            Some(Scalar::Int(0, DType::U8))
        }
        Scalar::Select(parts) => {
            let [condition, yes, no] = &**parts;
            let (yes, no) = (bytes_of(yes)?, bytes_of(no)?);
            Some(condition.clone().select(yes, no))
        }
        _ => None,
    }
}
