//! Required order of nodes: explicit edges, and conflicting memory accesses.
//!
//! The edges of a file follow only tensor ids. A write through one view and a read through
//! another, or a write after a read, has no edge; ARK relies on the order of the list. This
//! module derives these conflicts from the byte regions of buffers.

use std::collections::BTreeMap;

use super::{Model, Region};

/// Why one node must run before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HazardKind {
    /// An explicit edge in the file.
    Edge,
    /// The later node reads what the earlier one wrote.
    ReadAfterWrite,
    /// The later node overwrites what the earlier one read.
    WriteAfterRead,
    /// The later node overwrites what the earlier one wrote.
    WriteAfterWrite,
}

/// Two nodes that must run in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hazard {
    /// Index of the node that runs first.
    pub from: usize,
    /// Index of the node that runs later.
    pub to: usize,
    /// The kind of hazard.
    pub kind: HazardKind,
}

/// An access to a buffer that a later one may conflict with.
struct Access {
    node: usize,
    region: Region,
    is_write: bool,
}

/// All hazards of a valid model, sorted and unique.
///
/// Hazards implied by others are omitted: once a write covers a region, earlier accesses to it
/// are ordered through that write. Regions include padding, which kernels may access.
pub fn hazards(model: &Model) -> Vec<Hazard> {
    let mut found = explicit_edges(model);
    let mut live: BTreeMap<u64, Vec<Access>> = BTreeMap::new();
    for (node, op) in model.nodes.iter().map(|node| &node.op).enumerate() {
        if op.is_virtual {
            continue;
        }
        let reads = op.reads.iter().map(|tensor| (tensor, false));
        let writes = op.writes.iter().map(|tensor| (tensor, true));
        for (tensor, is_write) in reads.chain(writes) {
            let access = Access { node, region: Region::padded(tensor), is_write };
            let earlier = live.entry(tensor.buffer.id).or_default();
            conflicts(earlier, &access, &mut found);
            if is_write {
                earlier.retain(|old| old.node == node || !access.region.covers(&old.region));
            }
            earlier.push(access);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn explicit_edges(model: &Model) -> Vec<Hazard> {
    let index: BTreeMap<u64, usize> =
        model.nodes.iter().enumerate().map(|(index, node)| (node.id, index)).collect();
    let mut edges = vec![];
    for (to, node) in model.nodes.iter().enumerate() {
        let known = node.producers.iter().filter_map(|id| index.get(id));
        edges.extend(known.map(|&from| Hazard { from, to, kind: HazardKind::Edge }));
    }
    edges
}

fn conflicts(earlier: &[Access], access: &Access, found: &mut Vec<Hazard>) {
    for old in earlier {
        let kind = match (old.is_write, access.is_write) {
            (false, false) => continue,
            (true, false) => HazardKind::ReadAfterWrite,
            (false, true) => HazardKind::WriteAfterRead,
            (true, true) => HazardKind::WriteAfterWrite,
        };
        if old.node != access.node && old.region.overlaps(&access.region) {
            found.push(Hazard { from: old.node, to: access.node, kind });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::{Buffer, DataType, Node, Op, OpKind, Tensor};

    fn tensor(buffer: u64, start: i64, len: i64) -> Tensor {
        let mut tensor = Tensor::dense(0, DataType::Fp32, &[len], Buffer::local(buffer));
        (tensor.strides, tensor.offsets) = (vec![8], vec![start]);
        tensor
    }

    fn model(ops: &[(Tensor, Tensor)]) -> Model {
        let node = |(id, (read, write)): (usize, &(Tensor, Tensor))| Node {
            id: id as u64,
            producers: vec![],
            consumers: vec![],
            op: Op {
                kind: OpKind::Relu,
                name: String::new(),
                is_virtual: false,
                reads: vec![read.clone()],
                writes: vec![write.clone()],
                results: vec![write.clone()],
                args: BTreeMap::new(),
            },
        };
        Model { rank: 0, world_size: 1, nodes: ops.iter().enumerate().map(node).collect() }
    }

    /// The hazards of a model of the repository.
    fn of(name: &str) -> Vec<(usize, usize, HazardKind)> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/models");
        let path = format!("{root}/{name}.model.json");
        let text = std::fs::read_to_string(&path).expect("a model of the repository");
        let source = irc_diag::Source::new(&path, &text);
        let mut sink = irc_diag::Sink::new();
        let document = crate::model::parse(&source, &Default::default(), &mut sink);
        let found = hazards(&document.expect("a valid model").model);
        found.iter().map(|hazard| (hazard.from, hazard.to, hazard.kind)).collect()
    }

    #[test]
    fn order_comes_from_regions_where_no_edge_says_it_and_from_edges_where_no_region_does() {
        assert_eq!(of("hazard_war"), [(0, 1, HazardKind::WriteAfterRead)]);
        assert_eq!(of("hazard_raw_alias"), [(0, 1, HazardKind::ReadAfterWrite)]);
        assert_eq!(of("hazard_waw"), [(0, 1, HazardKind::WriteAfterWrite)]);
        assert_eq!(of("identity_deps"), [(0, 1, HazardKind::Edge)]);
    }

    #[test]
    fn conflicts_follow_regions_not_ids() {
        use HazardKind::*;
        let model = model(&[
            (tensor(0, 0, 8), tensor(1, 0, 4)),
            (tensor(0, 0, 8), tensor(1, 4, 4)),
            (tensor(1, 3, 2), tensor(0, 0, 8)),
        ]);
        let found: Vec<_> = hazards(&model).iter().map(|h| (h.from, h.to, h.kind)).collect();
        let expected = [
            (0, 2, ReadAfterWrite),
            (0, 2, WriteAfterRead),
            (1, 2, ReadAfterWrite),
            (1, 2, WriteAfterRead),
        ];
        assert_eq!(found, expected);
    }
}
