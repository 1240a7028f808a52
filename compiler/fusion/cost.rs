//! The cost model: what a kernel costs, in bytes of memory traffic.
//!
//! ```text
//! cost(kernel) = LAUNCH + bytes read + bytes written + work / WORK_PER_BYTE
//! ```
//!
//! * Bytes read: every value the kernel loads, once, however often its body uses it. A slice or
//!   the table of a gather counts what is taken; a value whose last dimension a transpose moves
//!   counts twice, for strided reading.
//! * Work: operations of each op of the body times how often the kernel evaluates it. A value that
//!   broadcasts is evaluated for every element of the space that needs it; in `rows` kernels a
//!   statistic is evaluated once per row. A body is a DAG: a shared subterm counts once.
//!
//! All in integers, so that ties and sums do not depend on order.
use super::{
    form::{Form, Kind, is_statistic},
    segment::{Segment, SegmentNode, Source},
};
use irc_tl::{Family, Op, TensorType};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// What starting a kernel costs, in bytes of traffic.
pub const LAUNCH: u64 = 8192;

/// Operations a core does in the time it moves one byte to or from memory.
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

/// A kernel to price: nodes of the segment computed in it, operands among them that are fused.
pub struct Priced<'a> {
    /// The segment.
    pub segment: &'a Segment,
    /// The form of the body.
    pub form: &'a Form,
    /// The nodes computed, ascending.
    pub body: &'a [usize],
    /// Per node of the segment: bit `k` says that operand `k` is computed in the same kernel.
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
    match &node.op {
        op if op.row().samples == Some(operand) => bytes(&node.ty),
        Op::Transpose { permutation } if permutation.last() != Some(&(ty.rank().max(1) - 1)) => {
            bytes(ty).saturating_mul(2)
        }
        _ => bytes(ty),
    }
}

/// How often a kernel evaluates a node.
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

/// The cost of every node of a segment in a kernel of its own, free fills aside.
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
    /// The type of what an operand reads.
    pub fn type_of(&self, source: Source) -> &TensorType {
        match source {
            Source::Input(input) => &self.inputs[input],
            Source::Node(node) => &self.nodes[node].ty,
        }
    }
}

/// Whether an operand is computed in the same kernel, by its node's mask. Ops with more operands than a
/// mask has bits read theirs from memory.
pub const fn is_fused(mask: u32, operand: usize) -> bool {
    operand < u32::BITS as usize && mask >> operand & 1 == 1
}
