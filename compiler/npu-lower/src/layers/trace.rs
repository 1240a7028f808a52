//! Values of a graph as functions of bytes.

use irc_tl::{Graph, NodeKind, Op, Reduction, Tensor, ValueId};
use std::collections::{BTreeMap, BTreeSet};

use super::window;

/// A graph with the nodes that define its values.
pub struct Trace<'g> {
    /// The graph.
    pub graph: &'g Graph,
    /// Its inputs that are weights.
    pub parameters: BTreeSet<ValueId>,
    /// The node of each value.
    nodes: Vec<Option<usize>>,
}

impl<'g> Trace<'g> {
    /// Indexes the nodes of a graph.
    pub fn new(graph: &'g Graph) -> Self {
        let mut nodes = vec![None; graph.types.len()];
        for (index, node) in graph.nodes.iter().enumerate() {
            node.results.iter().for_each(|result| nodes[result.0] = Some(index));
        }
        Self { graph, parameters: BTreeSet::new(), nodes }
    }

    /// The op that computes a value, and its operands.
    pub fn op(&self, value: ValueId) -> Option<(&'g Op, &'g [ValueId])> {
        let node = &self.graph.nodes[self.nodes[value.0]?];
        match &node.kind {
            NodeKind::Op(op) => Some((op, &node.operands)),
            _ => None,
        }
    }

    /// The elements of a value that depends on no input.
    pub fn constant(&self, value: ValueId) -> Option<Tensor> {
        self.constant_within(value, &mut 64)
    }

    fn constant_within(&self, value: ValueId, budget: &mut usize) -> Option<Tensor> {
        *budget = budget.checked_sub(1)?;
        let node = &self.graph.nodes[self.nodes[value.0]?];
        match &node.kind {
            NodeKind::Constant(constant) => constant.tensor().ok(),
            NodeKind::Op(op) => {
                let operands = node.operands.iter();
                let operands: Option<Vec<Tensor>> =
                    operands.map(|operand| self.constant_within(*operand, budget)).collect();
                op.eval(&operands?.iter().collect::<Vec<_>>()).ok()
            }
            _ => None,
        }
    }

    /// The number that all elements of a constant are.
    pub fn number(&self, value: ValueId) -> Option<f64> {
        let numbers = self.constant(value)?.to_f64();
        let first = *numbers.first()?;
        numbers.iter().all(|number| *number == first).then_some(first)
    }

    /// The number that a constant is in a channel.
    pub fn number_of(&self, value: ValueId, channel: usize) -> Option<f64> {
        let tensor = self.constant(value)?;
        match tensor.elements() {
            1 => Some(tensor.get_f64(0)),
            count if channel < count && is_line(&tensor) => Some(tensor.get_f64(channel)),
            _ => None,
        }
    }

    /// As [`Self::table`] for each of `count` channels, one after the other, or for all if they are the same.
    pub fn tables(&self, from: ValueId, to: ValueId, count: usize) -> Option<Vec<f64>> {
        let found = self.eval(to, &BTreeMap::from([(from, bytes_of(self.graph, from)?)]))?;
        let all = found.to_f64();
        (all.len() == 256 || all.len() == 256 * count).then_some(all)
    }

    /// A value for elements of some values, each of which is a list. Functions of each element are computed, and
    /// nodes that only move or choose elements change nothing; `None` if there are others.
    pub fn eval(&self, value: ValueId, given: &BTreeMap<ValueId, Tensor>) -> Option<Tensor> {
        self.eval_within(value, &mut given.clone(), given, &mut 4096)
    }

    fn eval_within(
        &self,
        value: ValueId,
        known: &mut BTreeMap<ValueId, Tensor>,
        given: &BTreeMap<ValueId, Tensor>,
        budget: &mut usize,
    ) -> Option<Tensor> {
        *budget = budget.checked_sub(1)?;
        if let Some(found) = known.get(&value) {
            return Some(found.clone());
        }
        let (op, operands) = self.op(value)?;
        let found = match op {
            Op::Reshape { .. }
            | Op::Transpose { .. }
            | Op::Broadcast { .. }
            | Op::Slice { .. }
            | Op::Reduce { kind: Reduction::Max, .. } => {
                self.eval_within(operands[0], known, given, budget)?
            }
            Op::Compute(compute) if window::outside(compute).is_some() => {
                self.eval_within(operands[0], known, given, budget)?
            }
            // The parts that are computed from what is given; all must be the same function of it. What is quantised on
            // the way to a part is read by other layers, unless that changes nothing.
            Op::Compute(compute) if is_choice(self.graph, compute, operands) => {
                let mut parts: Vec<(ValueId, Tensor)> = vec![];
                for part in operands {
                    let found = self.eval_within(*part, known, given, budget);
                    parts.extend(found.map(|found| (*part, found)));
                }
                if parts.iter().any(|(_, part)| *part != parts[0].1) {
                    parts.retain(|(part, _)| self.is_direct(*part, given));
                }
                let (_, first) = parts.first()?;
                if parts.iter().any(|(_, part)| part != first) {
                    return None;
                }
                first.clone()
            }
            op if op.is_elementwise() => {
                let mut all = vec![];
                for operand in operands {
                    let number = self.eval_within(*operand, known, given, budget).or_else(|| {
                        let ty = |shape: &[i64]| {
                            irc_tl::TensorType::new(self.graph.ty(*operand).dtype, shape)
                        };
                        if let Some(number) = self.number(*operand) {
                            return Tensor::from_f64(ty(&[]), &[number]).ok();
                        }
                        // One number for each channel.
                        let tensor = self.constant(*operand).filter(is_line)?;
                        let count = tensor.elements() as i64;
                        let limit = 256 * tensor.elements();
                        let is_small = known.values().all(|given| given.elements() <= limit);
                        let tensor = Tensor::from_f64(ty(&[count, 1]), &tensor.to_f64());
                        tensor.ok().filter(|_| is_small)
                    });
                    all.push(number?);
                }
                op.eval(&all.iter().collect::<Vec<_>>()).ok()?
            }
            _ => return None,
        };
        known.insert(value, found.clone());
        Some(found)
    }

    /// Whether a value is computed from what is given without being quantised on the way.
    fn is_direct(&self, value: ValueId, given: &BTreeMap<ValueId, Tensor>) -> bool {
        let (mut pending, mut seen) = (vec![value], BTreeSet::new());
        while let Some(value) = pending.pop() {
            if given.contains_key(&value) {
                return true;
            }
            let Some((op, operands)) = self.op(value).filter(|_| seen.insert(value)) else {
                continue;
            };
            let is_float = |value: &ValueId| self.graph.ty(*value).dtype.is_float();
            let is_quantised = matches!(op, Op::Cast { to, .. } if !to.is_float());
            if !(is_quantised && operands.iter().any(is_float)) {
                pending.extend(operands);
            }
        }
        false
    }

    /// The images of all bytes of `from`, in ascending order of their values, in `to`.
    pub fn table(&self, from: ValueId, to: ValueId) -> Option<Vec<f64>> {
        self.tables(from, to, 1)
    }

    /// Whether `to` has the bytes of `from`.
    pub fn is_same(&self, from: ValueId, to: ValueId) -> bool {
        let of = |value: ValueId| bytes_of(self.graph, value).map(|bytes| bytes.to_f64());
        let (own, table) = (of(from), self.table(from, to));
        own.is_some() && own == table && self.graph.ty(from).dtype == self.graph.ty(to).dtype
    }
}

/// Whether the elements of a tensor are along one dimension.
fn is_line(tensor: &Tensor) -> bool {
    tensor.shape().iter().filter(|extent| **extent != 1).count() <= 1
}

/// All bytes of the type of a value, ascending.
pub fn bytes_of(graph: &Graph, value: ValueId) -> Option<Tensor> {
    match graph.ty(value).dtype {
        irc_tl::DType::U8 => Tensor::from_values([256], &(0..=255).collect::<Vec<u8>>()).ok(),
        irc_tl::DType::I8 => Tensor::from_values([256], &(-128..=127).collect::<Vec<i8>>()).ok(),
        _ => None,
    }
}

/// Whether an expression puts its operands one after the other, or takes the largest elements of windows.
fn is_choice(graph: &Graph, compute: &irc_tl::Compute, operands: &[ValueId]) -> bool {
    let shape = |value: &ValueId| {
        let extent = |dim: &irc_tl::Dim| dim.known().and_then(|size| u64::try_from(size).ok());
        graph.ty(*value).dims.iter().map(extent).collect::<Option<Vec<u64>>>()
    };
    let Some(shapes) = operands.iter().map(shape).collect::<Option<Vec<_>>>() else { return false };
    let is_largest =
        compute.reduction.as_ref().is_some_and(|over| over.combine == irc_tl::Combine::Max);
    window::concatenation(compute, &shapes).is_some()
        || is_largest && window::windows(compute).is_some()
}
