//! The layout of the tensors of a plan in device memory.

use std::collections::BTreeMap;

use super::ops;
use crate::model::{Region, Tensor, buffer_bytes};
use crate::plan::Plan;
use crate::plan::tiling::four;

/// The buffers of a plan, which the executor lays out by id, contiguously and without alignment.
pub(super) struct Memory {
    /// Start and size of each buffer of this rank.
    buffers: BTreeMap<u64, (u64, u64)>,
    /// Regions of tensors, by buffer, each with the id of its first tensor.
    tensors: BTreeMap<u64, BTreeMap<Region, u64>>,
}

impl Memory {
    /// The memory of a plan.
    pub fn of(plan: &Plan) -> Self {
        let local = |tensor: &&Tensor| tensor.buffer.rank < 0 || tensor.buffer.rank == plan.rank;
        let all = || ops(plan).flat_map(|(_, plan_op)| plan_op.op.tensors()).filter(local);
        let mut end = 0u64;
        let place = |(id, bytes)| {
            let start = end;
            end = end.saturating_add(bytes);
            (id, (start, bytes))
        };
        let buffers = buffer_bytes(all()).into_iter().map(place).collect();
        let mut tensors: BTreeMap<u64, BTreeMap<Region, u64>> = BTreeMap::new();
        for tensor in all() {
            let known = tensors.entry(tensor.buffer.id).or_default();
            known.entry(Region::of(tensor)).or_insert(tensor.id);
        }
        Self { buffers, tensors }
    }

    /// Start of a buffer; zero for those of other ranks, whose address is unknown.
    pub fn start(&self, buffer: u64) -> u64 {
        self.buffers.get(&buffer).map_or(0, |(start, _)| *start)
    }

    /// Which other data the elements right after each contiguous run of rows of a tensor belong to.
    pub fn behind(&self, tensor: &Tensor, dim: usize, elements: i64) -> Option<String> {
        let (shape, strides) = (four(&tensor.shape), four(&tensor.strides));
        // The outermost dimension along which rows are contiguous.
        let is_dense = |&outer: &usize| shape[outer + 1..=dim] == strides[outer + 1..=dim];
        let outer = (0..dim).rev().take_while(is_dense).last().unwrap_or(dim);
        self.after(tensor, outer, elements)
    }

    /// Which data the elements right after each row of a tensor belong to, including its own next row.
    pub fn behind_rows(&self, tensor: &Tensor, dim: usize, elements: i64) -> Option<String> {
        let (shape, strides) = (four(&tensor.shape), four(&tensor.strides));
        if shape[dim] == strides[dim] && shape[..dim].iter().any(|&extent| extent > 1) {
            return Some("its own next row".into());
        }
        self.after(tensor, dim, elements)
    }

    /// Which data the elements after the end of a tensor along a dimension belong to.
    fn after(&self, tensor: &Tensor, dim: usize, elements: i64) -> Option<String> {
        let (shape, strides) = (four(&tensor.shape), four(&tensor.strides));
        let mut offsets = [0; 4];
        offsets[4 - tensor.rank()..].copy_from_slice(&tensor.offsets);
        let last =
            (0..4).fold(0, |index, dim| index * strides[dim] + offsets[dim] + shape[dim] - 1);
        let size = tensor.dtype.bytes();
        let end = (last + 1) as u64 * size;
        let bytes = elements as u64 * size;
        if end + bytes > self.buffers.get(&tensor.buffer.id)?.1 {
            let next = self.buffers.range(tensor.buffer.id + 1..).find(|(_, (_, size))| *size > 0);
            return next.map(|(id, _)| format!("buffer {id}"));
        }
        let view = |shape: [i64; 4], offsets: [i64; 4]| Tensor {
            shape: shape.to_vec(),
            padded_shape: shape.to_vec(),
            strides: strides.to_vec(),
            offsets: offsets.to_vec(),
            ..tensor.clone()
        };
        let run = Tensor {
            shape: vec![elements],
            padded_shape: vec![elements],
            strides: vec![last + 1 + elements],
            offsets: vec![last + 1],
            ..tensor.clone()
        };
        let mut regions = vec![Region::of(&run)];
        if offsets[dim] + shape[dim] < strides[dim] {
            let (mut behind, mut extents) = (offsets, shape);
            behind[dim] += shape[dim];
            extents[dim..].fill(1);
            extents[3] = elements.min(strides[3] - behind[3]);
            if dim < 3 {
                let rows = (elements - 1) / strides[3] + 1;
                extents[2] = rows.min(strides[2] - behind[2]);
            }
            regions.push(Region::of(&view(extents, behind)));
        }
        let own = Region::of(tensor);
        let mut others = self.tensors.get(&tensor.buffer.id)?.iter();
        let victim = others.find(|(other, _)| {
            **other != own && regions.iter().any(|region| region.overlaps(other))
        });
        victim.map(|(_, id)| format!("tensor {id}"))
    }
}
