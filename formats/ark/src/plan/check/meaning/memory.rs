//! Symbolic memory and ops: names for computed values.

use std::collections::BTreeMap;

use crate::model::{Arg, DataType, Lane, Op, OpKind, Region, Tensor};
use crate::plan::tiling::four;

/// The result of an op or an input of the user; equal names are equal values.
pub(super) type Name = usize;

/// The contents of a tensor: the visible writes, in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Content {
    /// The bytes of the tensor, moved to the origin.
    window: Region,
    /// Each write: its name, its offset from the window's start, and its bytes.
    pub pieces: Vec<(Name, i64, Region)>,
}

/// The value of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Meaning {
    /// The initial contents of a buffer.
    Input(u64),
    /// Data from another rank.
    Remote(Peer),
    /// A tensor that an op writes, by index among its results.
    Result(usize, Box<Computation>),
}

/// Everything that determines what an op computes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Computation {
    kind: OpKind,
    args: Vec<(String, ArgKey)>,
    reads: Vec<(DataType, Vec<i64>, Content)>,
    writes: Vec<(DataType, Vec<i64>)>,
    /// Ranks and tags of all operands of a communication op.
    peers: Vec<Peer>,
}

/// A comparable argument.
type ArgKey = String;

/// The rank of a buffer, with its send and receive tags.
type Peer = (i64, Vec<[i64; 2]>, Vec<[i64; 2]>);

fn peer(tensor: &Tensor) -> Peer {
    let buffer = &tensor.buffer;
    (buffer.rank, buffer.send_tags.clone(), buffer.recv_tags.clone())
}

/// All names.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: BTreeMap<Meaning, Name>,
    /// The buffer of each name that is an input.
    inputs: BTreeMap<Name, u64>,
}

impl Names {
    fn of(&mut self, meaning: Meaning) -> Name {
        let next = self.known.len();
        *self.known.entry(meaning).or_insert(next)
    }

    fn of_buffer(&mut self, tensor: &Tensor) -> Name {
        let buffer = &tensor.buffer;
        let is_remote = buffer.rank >= 0 || !buffer.recv_tags.is_empty();
        let meaning = match is_remote {
            true => Meaning::Remote(peer(tensor)),
            false => Meaning::Input(buffer.id),
        };
        let name = self.of(meaning);
        if !is_remote {
            self.inputs.insert(name, buffer.id);
        }
        name
    }

    /// The buffer of a name that is an input of the user.
    pub fn input(&self, name: Name) -> Option<u64> {
        self.inputs.get(&name).copied()
    }
}

/// The data written to each buffer that has not been overwritten.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    writes: BTreeMap<u64, Vec<(Region, Name)>>,
}

impl Memory {
    /// The written regions of a buffer.
    pub fn written(&self, buffer: u64) -> impl Iterator<Item = &Region> {
        self.writes.get(&buffer).into_iter().flatten().map(|(region, _)| region)
    }

    /// The contents of a tensor.
    pub fn read(&self, tensor: &Tensor, names: &mut Names) -> Content {
        let mut content = self.content(&Region::of(tensor));
        if !is_full(&content) {
            let (start, _) = Region::of(tensor).span();
            let base = (names.of_buffer(tensor), -(start as i64), content.window.clone());
            content.pieces.insert(0, base);
        }
        content
    }

    /// The writes that are visible in a window.
    pub fn content(&self, window: &Region) -> Content {
        let (start, _) = window.span();
        let mut pieces = vec![];
        let writes = self.writes.get(&window.buffer).map_or(&[][..], Vec::as_slice);
        for (region, name) in writes.iter().rev().filter(|(region, _)| region.overlaps(window)) {
            let from = region.span().0 as i64 - start as i64;
            pieces.push((*name, from, region.at_origin()));
            if region.covers(window) {
                break;
            }
        }
        // The order of disjoint writes is irrelevant.
        if are_apart(&pieces) {
            pieces.sort_by_key(|(_, from, _)| *from);
        } else {
            pieces.reverse();
        }
        Content { window: window.at_origin(), pieces }
    }

    fn write(&mut self, tensor: &Tensor, name: Name) {
        let region = Region::of(tensor);
        let writes = self.writes.entry(region.buffer).or_default();
        writes.retain(|(old, _)| !region.covers(old));
        writes.push((region, name));
    }

    /// Runs an op; returns its operands, and the name of its result.
    pub fn run(&mut self, op: &Op, names: &mut Names) -> (Vec<Content>, Name) {
        let reads: Vec<Content> = op.reads.iter().map(|tensor| self.read(tensor, names)).collect();
        let computed = computed(op, &reads);
        let name = names.of(Meaning::Result(0, Box::new(computed.clone())));
        for (index, tensor) in op.writes.iter().enumerate() {
            let name = names.of(Meaning::Result(index, Box::new(computed.clone())));
            self.write(tensor, name);
        }
        (reads, name)
    }
}

/// Whether the pieces cover every byte of the window.
fn is_full(content: &Content) -> bool {
    let holds = |(_, from, region): &(Name, i64, Region)| {
        *from <= 0 && covers(region, &content.window, -*from)
    };
    let inside = |(_, from, region): &(Name, i64, Region)| {
        *from >= 0 && covers(&content.window, region, *from)
    };
    let pieces = &content.pieces;
    let bytes: u64 = pieces.iter().map(|(_, _, region)| region.bytes()).sum();
    pieces.iter().any(holds)
        || (pieces.iter().all(inside) && are_apart(pieces) && bytes == content.window.bytes())
}

/// Whether a region at the origin covers another that starts `from` bytes after it.
fn covers(region: &Region, other: &Region, from: i64) -> bool {
    region.covers(&other.moved(from as u64))
}

/// Maximum number of pieces compared pairwise.
const MAX_PIECES: usize = 256;

/// Whether all pieces are disjoint; false if there are too many to compare.
fn are_apart(pieces: &[(Name, i64, Region)]) -> bool {
    let base = pieces.iter().map(|(_, from, _)| *from).min().unwrap_or(0);
    let mut placed: Vec<Region> =
        pieces.iter().map(|(_, from, region)| region.moved((from - base) as u64)).collect();
    placed.sort_by_key(Region::span);
    // If spans in the order of their starts do not overlap their neighbours, all are disjoint.
    if placed.windows(2).all(|pair| pair[0].span().1 <= pair[1].span().0) {
        return true;
    }
    let meets = |(index, a): (usize, &Region)| placed[..index].iter().any(|b| a.overlaps(b));
    placed.len() <= MAX_PIECES && !placed.iter().enumerate().any(meets)
}

/// What determines an op's results, with equivalent rewrites undone.
fn computed(op: &Op, reads: &[Content]) -> Computation {
    let plain = |tensor: &Tensor| -> Vec<i64> {
        let shape = tensor.shape.iter().copied();
        // A dimension that is kept, or a leading one, changes only the view of a result.
        shape.filter(|&extent| extent != 1).collect()
    };
    let kept = |tensor: &Tensor| {
        let mut shape = vec![1; 4 - tensor.rank()];
        shape.extend(&tensor.shape);
        shape
    };
    let is_copy = op.kind == OpKind::Transpose
        && op.dims_arg("Permutation").is_some_and(|p| p.iter().copied().eq(0..p.len() as i64));
    let kind = if is_copy { OpKind::Copy } else { op.kind };
    let is_free = |name: &str| is_copy || (op.kind.is_reduce() && name == "KeepDim");
    let args = op.args.iter().filter(|(name, _)| !is_free(name));
    let is_elementwise = kind.is_elementwise() && kind.row().lane != Lane::CoupledPairs;
    let views = is_elementwise.then(|| patterns(op));
    let viewed = |index: usize, tensor: &Tensor| match &views {
        Some(views) => views[index].clone(),
        None => kept(tensor),
    };
    let write = |tensor: &Tensor| {
        let shape = match op.kind {
            kind if kind.is_reduce() => plain(tensor),
            _ => viewed(op.reads.len(), tensor),
        };
        (tensor.dtype, shape)
    };
    let is_communication = op.kind.is_communication();
    Computation {
        kind,
        args: args.map(|(name, arg)| (name.clone(), arg_key(arg))).collect(),
        reads: op
            .reads
            .iter()
            .zip(reads)
            .enumerate()
            .map(|(index, (tensor, content))| {
                (tensor.dtype, viewed(index, tensor), content.clone())
            })
            .collect(),
        writes: op.writes.iter().map(write).collect(),
        peers: op.reads.iter().chain(&op.writes).filter(|_| is_communication).map(peer).collect(),
    }
}

/// For an elementwise op, the extents of each operand and then of its result, reduced to those that
/// determine which elements belong together: extents of 1 are omitted, and adjacent dimensions that all
/// operands traverse alike are merged. A view of the same elements in the same order has the same
/// pattern.
fn patterns(op: &Op) -> Vec<Vec<i64>> {
    let tensors = || op.reads.iter().chain(&op.writes[..1]);
    let shapes: Vec<[i64; 4]> = tensors().map(|tensor| four(&tensor.shape)).collect();
    let result = shapes[shapes.len() - 1];
    let mut patterns: Vec<Vec<i64>> = vec![vec![]; shapes.len()];
    let mut last: Option<Vec<bool>> = None;
    for dim in (0..4).filter(|dim| result[*dim] != 1) {
        let stretched: Vec<bool> = shapes.iter().map(|shape| shape[dim] != result[dim]).collect();
        let is_joined = last.as_ref() == Some(&stretched);
        for (pattern, shape) in patterns.iter_mut().zip(&shapes) {
            match pattern.last_mut().filter(|_| is_joined) {
                Some(extent) => *extent *= shape[dim],
                None => pattern.push(shape[dim]),
            }
        }
        last = Some(stretched);
    }
    patterns
}

fn arg_key(arg: &Arg) -> ArgKey {
    match arg {
        Arg::Float(value) => format!("{:08x}", value.0.to_bits()),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Buffer;

    fn op(shapes: &[&[i64]]) -> Op {
        let tensor = |(id, shape): (usize, &&[i64])| {
            Tensor::dense(id as u64, DataType::Fp16, shape, Buffer::local(id as u64))
        };
        let mut tensors: Vec<Tensor> = shapes.iter().enumerate().map(tensor).collect();
        let output = tensors.pop().expect("a result");
        Op {
            kind: OpKind::Add,
            name: String::new(),
            is_virtual: false,
            reads: tensors,
            writes: vec![output.clone()],
            results: vec![output],
            args: BTreeMap::new(),
        }
    }

    #[test]
    fn views_of_one_order_have_one_pattern() {
        let all: &[i64] = &[2, 3, 5];
        let column: &[i64] = &[6, 5, 1];
        assert_eq!(patterns(&op(&[all, all, all])), patterns(&op(&[column, column, column])));
        let rows = patterns(&op(&[all, &[2, 3, 1], all]));
        assert_eq!(rows, patterns(&op(&[column, &[6, 1, 1], column])));
        assert_eq!(rows, [vec![6, 5], vec![6, 1], vec![6, 5]]);
        assert_ne!(rows, patterns(&op(&[all, &[5], all])));
        assert_ne!(rows, patterns(&op(&[&[5, 6], &[5, 1], &[5, 6]])));
    }
}
