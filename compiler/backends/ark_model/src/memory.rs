//! Buffers, tensors and nodes of a model under construction.

use irc_ark_format::model::{
    Arg, Buffer, DataType, Float, Model, Node, Op, OpKind, Region, Tensor,
};
use std::collections::{BTreeMap, BTreeSet};

/// A model under construction. Every box of a buffer is written once, except by [`Memory::overwrite`].
#[derive(Default)]
pub struct Memory {
    nodes: Vec<Node>,
    tensors: u64,
    /// Number of elements of each buffer.
    sizes: Vec<i64>,
    /// For each buffer, the nodes that wrote it, with the regions.
    writers: BTreeMap<u64, Vec<(u64, Region)>>,
    /// Buffers that nodes read.
    read: BTreeSet<u64>,
    /// Name of the nodes that are being added.
    pub origin: String,
}

impl Memory {
    /// A tensor that fills a new buffer.
    pub fn buffer(&mut self, dtype: DataType, shape: &[i64]) -> Tensor {
        let id = self.sizes.len() as u64;
        self.sizes.push(shape.iter().product());
        let tensor = self.tensor_id();
        Tensor::dense(tensor, dtype, shape, Buffer::local(id))
    }

    fn tensor_id(&mut self) -> u64 {
        self.tensors += 1;
        self.tensors - 1
    }

    /// The same box with a new id and a change.
    pub fn view(&mut self, tensor: &Tensor, change: impl FnOnce(&mut Tensor)) -> Tensor {
        let mut view = Tensor { id: self.tensor_id(), ..tensor.clone() };
        change(&mut view);
        view
    }

    /// An op that fills a new buffer of that shape; returns its result.
    pub fn op(
        &mut self,
        kind: OpKind,
        reads: &[&Tensor],
        (dtype, shape): (DataType, &[i64]),
        args: &[(&str, Arg)],
    ) -> Tensor {
        let write = self.buffer(dtype, shape);
        self.write(kind, reads, write, args)
    }

    /// An op that writes a box; returns its result.
    pub fn write(
        &mut self,
        kind: OpKind,
        reads: &[&Tensor],
        write: Tensor,
        args: &[(&str, Arg)],
    ) -> Tensor {
        let id = self.nodes.len() as u64;
        let result = Tensor { id: self.tensor_id(), ..write.clone() };
        let mut producers = BTreeSet::new();
        for tensor in reads.iter().copied().chain([&write]) {
            let region = Region::of(tensor);
            let writers = self.writers.get(&tensor.buffer.id).into_iter().flatten();
            producers
                .extend(writers.filter(|(_, own)| own.overlaps(&region)).map(|(node, _)| *node));
        }
        for producer in &producers {
            self.nodes[*producer as usize].consumers.push(id);
        }
        self.read.extend(reads.iter().map(|tensor| tensor.buffer.id));
        self.writers.entry(write.buffer.id).or_default().push((id, Region::of(&write)));
        let name = match self.origin.as_str() {
            "" => kind.name().to_lowercase(),
            origin => origin.to_owned(),
        };
        let op = Op {
            kind,
            name,
            is_virtual: false,
            reads: reads.iter().map(|tensor| (*tensor).clone()).collect(),
            writes: vec![write],
            results: vec![result.clone()],
            args: args.iter().map(|(name, arg)| ((*name).to_owned(), arg.clone())).collect(),
        };
        let producers = producers.into_iter().collect();
        self.nodes.push(Node { id, producers, consumers: vec![], op });
        result
    }

    /// An op on one operand whose result has the same type and shape.
    pub fn unary(&mut self, kind: OpKind, x: &Tensor) -> Tensor {
        self.op(kind, &[x], (x.dtype, &x.shape), &[])
    }

    /// An op on two operands of the same shape.
    pub fn binary(&mut self, kind: OpKind, x: &Tensor, y: &Tensor) -> Tensor {
        self.op(kind, &[x, y], (x.dtype, &x.shape), &[])
    }

    /// Every element plus (`ScalarAdd`) or times (`ScalarMul`) a number.
    pub fn scalar(&mut self, kind: OpKind, x: &Tensor, factor: f32) -> Tensor {
        let factor = [("Factor", Arg::Float(Float(factor)))];
        self.op(kind, &[x], (x.dtype, &x.shape), &factor)
    }

    /// A new buffer filled with one value.
    pub fn fill(&mut self, value: f32, dtype: DataType, shape: &[i64]) -> Tensor {
        let write = self.buffer(dtype, shape);
        self.assign(value, write)
    }

    /// A box filled with one value.
    pub fn assign(&mut self, value: f32, write: Tensor) -> Tensor {
        self.write(OpKind::ScalarAssign, &[], write, &[("Value", Arg::Float(Float(value)))])
    }

    /// The elements in a new buffer, broadcast to a shape.
    pub fn copy(&mut self, x: &Tensor, shape: &[i64]) -> Tensor {
        self.op(OpKind::Copy, &[x], (x.dtype, shape), &[])
    }

    /// Whether a tensor is a whole buffer that an op wrote and none reads.
    pub fn is_last(&self, tensor: &Tensor) -> bool {
        let id = tensor.buffer.id;
        let is_whole = start(tensor) == Some(0)
            && tensor.shape.iter().product::<i64>() == self.sizes[id as usize];
        is_whole && self.writers.contains_key(&id) && !self.read.contains(&id)
    }

    /// The model.
    pub fn finish(self) -> Model {
        Model { rank: 0, world_size: 1, nodes: self.nodes }
    }

    /// The same elements with another shape: a view if possible, otherwise a copy.
    pub fn reshape(&mut self, x: &Tensor, shape: &[i64]) -> Tensor {
        if x.shape == shape {
            return x.clone();
        }
        if let Some((strides, offsets)) = start(x).and_then(|start| enclosing(start, shape)) {
            return self.view(x, |view| {
                (view.shape, view.padded_shape) = (shape.to_vec(), shape.to_vec());
                (view.strides, view.offsets) = (strides, offsets);
            });
        }
        let copy = self.copy(x, &x.shape);
        self.reshape(&copy, shape)
    }

    /// A box of a tensor.
    pub fn slice(&mut self, x: &Tensor, offsets: &[i64], sizes: &[i64]) -> Tensor {
        if x.shape == sizes {
            return x.clone();
        }
        self.view(x, |view| {
            (view.shape, view.padded_shape) = (sizes.to_vec(), sizes.to_vec());
            view.offsets.iter_mut().zip(offsets).for_each(|(own, offset)| *own += offset);
        })
    }
}

/// The offset of the first element of a box whose elements are contiguous in their buffer.
pub fn start(tensor: &Tensor) -> Option<i64> {
    let first = tensor.shape.iter().position(|extent| *extent > 1).unwrap_or(tensor.rank());
    let inner = (first + 1).min(tensor.rank());
    let is_dense = tensor.shape[inner..] == tensor.strides[inner..];
    let mut place = 0_i64;
    for (offset, stride) in tensor.offsets.iter().zip(&tensor.strides) {
        place = place.checked_mul(*stride)?.checked_add(*offset)?;
    }
    is_dense.then_some(place)
}

/// Extents of a view of a buffer, and offsets in it, of a box with that shape whose elements are
/// contiguous from `start`.
fn enclosing(start: i64, shape: &[i64]) -> Option<(Vec<i64>, Vec<i64>)> {
    let (mut strides, mut offsets) = (shape.to_vec(), vec![0; shape.len()]);
    if start == 0 {
        return Some((strides, offsets));
    }
    let first = shape.iter().position(|extent| *extent > 1).unwrap_or(shape.len().checked_sub(1)?);
    let inner: i64 = shape[first + 1..].iter().product();
    if start % inner != 0 {
        return None;
    }
    offsets[first] = start / inner;
    strides[first] += offsets[first];
    Some((strides, offsets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_of_a_row_is_a_view_under_another_shape() {
        let mut memory = Memory::default();
        let row = memory.buffer(DataType::Fp32, &[1, 1, 2304]);
        let part = memory.slice(&row, &[0, 0, 768], &[1, 1, 768]);
        let heads = memory.reshape(&part, &[1, 1, 12, 64]);
        assert_eq!((heads.buffer.id, heads.offsets.as_slice()), (0, &[0, 0, 12, 0][..]));
        assert_eq!(heads.strides, [1, 1, 24, 64]);
        let columns = memory.slice(&heads, &[0, 0, 0, 1], &[1, 1, 12, 2]);
        assert_eq!(start(&columns), None);
        let copied = memory.reshape(&columns, &[24]);
        assert_ne!(copied.buffer.id, 0);
        assert_eq!(memory.finish().nodes.len(), 1);
    }
}
