//! The cost model: the cost of a kernel, in bytes of memory traffic.
//!
//! ```text
//! cost(kernel) = LAUNCH + bytes read + bytes written + work / WORK_PER_BYTE
//! ```
//!
//! * Bytes read: every value that the kernel loads, once, however often its body uses it. For a slice or
//!   the table of a gather, only the elements that are read; a value whose last dimension is transposed
//!   counts twice, for strided access.
//! * Work: operations of each op of the body times the number of its evaluations. A value that is broadcast
//!   is evaluated for every element of the space; in `rows` kernels, a statistic is evaluated once per row. A
//!   body is a DAG: a shared subterm counts once.
//!
//! All costs are integers, so that ties and sums do not depend on order.
use super::{
    form::{Form, Kind, is_statistic},
    segment::{Segment, SegmentNode, Source},
};
use irc_tl::{Family, TensorType};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::{AddAssign, SubAssign};

/// The cost of a launch, in bytes of traffic.
pub const LAUNCH: u64 = 8192;

/// Operations that a core executes in the time to move one byte to or from memory.
pub const WORK_PER_BYTE: u64 = 4;

/// The cost of one or more kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Number of kernels.
    pub kernels: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Operations.
    pub work: u64,
}

impl Cost {
    /// The cost as one number, in bytes of traffic.
    pub fn total(&self) -> u64 {
        let launches = self.kernels.saturating_mul(LAUNCH);
        launches.saturating_add(self.bytes).saturating_add(self.work / WORK_PER_BYTE)
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.kernels += other.kernels;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.work = self.work.saturating_add(other.work);
    }
}

impl SubAssign for Cost {
    fn sub_assign(&mut self, other: Self) {
        self.kernels = self.kernels.saturating_sub(other.kernels);
        self.bytes = self.bytes.saturating_sub(other.bytes);
        self.work = self.work.saturating_sub(other.work);
    }
}

/// A kernel whose cost is computed: its nodes of the segment, and which of their operands are fused.
pub struct Priced<'a> {
    /// The segment.
    pub segment: &'a Segment,
    /// The form of the body.
    pub form: &'a Form,
    /// Its nodes, ascending.
    pub body: &'a [usize],
    /// Per node of the segment: bit `k` is set if operand `k` is computed in the same kernel.
    pub masks: &'a [u32],
    /// The nodes whose values it writes.
    pub results: &'a [usize],
}

/// The cost of one kernel.
pub fn kernel(priced: &Priced<'_>) -> Cost {
    let mut reads = BTreeMap::new();
    let mut work = 0_u64;
    for &index in priced.body {
        let node = &priced.segment.nodes[index];
        work = work.saturating_add(evaluations(priced, node).saturating_mul(node.op.row().work));
        for (operand, edge) in node.operands.iter().enumerate() {
            if !is_fused(priced.masks[index], operand) {
                let ty = priced.segment.type_of(edge.source);
                let size = bytes_read(node, operand, ty);
                let read: &mut u64 = reads.entry(edge.source).or_default();
                *read = size.max(*read);
            }
        }
    }
    let written = priced.results.iter().map(|result| bytes(&priced.segment.nodes[*result].ty));
    let bytes = reads.into_values().chain(written).fold(0, u64::saturating_add);
    Cost { kernels: 1, bytes, work }
}

fn bytes_read(node: &SegmentNode, operand: usize, ty: &TensorType) -> u64 {
    if node.op.row().samples == Some(operand) {
        return bytes(&node.ty);
    }
    let last = ty.rank().max(1) - 1;
    let is_strided = node.op.permutation().is_some_and(|order| order.last() != Some(&last));
    bytes(ty).saturating_mul(if is_strided { 2 } else { 1 })
}

/// The number of evaluations of a node in a kernel.
fn evaluations(priced: &Priced<'_>, node: &SegmentNode) -> u64 {
    let space = elements(&priced.form.space);
    match node.op.family() {
        Family::Contraction | Family::Accumulation | Family::Reduction | Family::Loops => {
            node.flops
        }
        _ if priced.form.kind == Kind::Rows && is_statistic(&node.ty.shape, &priced.form.space) => {
            elements(&node.ty.shape)
        }
        _ => space.max(elements(&node.ty.shape)),
    }
}

fn elements(shape: &[i64]) -> u64 {
    shape.iter().map(|dim| dim.unsigned_abs()).fold(1, u64::saturating_mul)
}

fn bytes(ty: &TensorType) -> u64 {
    elements(&ty.shape).saturating_mul(ty.dtype.size() as u64)
}

/// The cost if every node of a segment is a kernel of its own, except for free fills.
pub fn unfused(segment: &Segment, forms: &[Form]) -> Cost {
    let masks = vec![0; segment.nodes.len()];
    let mut sum = Cost::default();
    for (index, form) in forms.iter().enumerate() {
        let body = [index];
        sum += kernel(&Priced { segment, form, body: &body, masks: &masks, results: &body });
    }
    sum
}

impl Segment {
    /// The type of an operand.
    pub fn type_of(&self, source: Source) -> &TensorType {
        match source {
            Source::Input(input) => &self.inputs[input],
            Source::Node(node) => &self.nodes[node].ty,
        }
    }
}

/// Whether an operand is computed in the same kernel, by its node's mask. Operands beyond the bits of a
/// mask are read from memory.
pub const fn is_fused(mask: u32, operand: usize) -> bool {
    operand < u32::BITS as usize && mask >> operand & 1 == 1
}
