//! What views are views of, and the layers while they are found.

use super::Parameters;
use super::view::{Atom, Dimension, Whole, dimension, merged};
use irc_npu_cost::{Axis, Op, Shape};
use irc_tl::ValueId;

/// The axes, in the order of [`Shape`].
pub const AXES: [Axis; 3] = [Axis::Channels, Axis::Rows, Axis::Columns];

/// A source, by index.
pub type SourceId = usize;

/// What a view is a view of.
#[derive(Clone, Debug)]
pub struct Source {
    /// The kind.
    pub kind: Kind,
    /// The value of the graph that it is.
    pub root: ValueId,
    /// The dimensions of that value, once they are known; those of a given source are in its kind.
    pub dims: Vec<Dimension>,
}

/// The kind of a source.
#[derive(Clone, Debug)]
pub enum Kind {
    /// An input of the graph, or a value that the NPU does not compute: the extents of its dimensions and,
    /// once a layer has read it, the atoms that they are, and the shape.
    Given(Vec<u64>, Option<(Vec<Dimension>, Shape)>),
    /// The result of a layer under construction, by index.
    Layer(usize),
    /// Channels of several sources, one after the other.
    Joined(Vec<SourceId>),
}

/// A layer under construction.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The node whose name it gets, and by which layers are ordered.
    pub node: usize,
    /// The operation.
    pub op: Op,
    /// The shape of the result.
    pub output: Shape,
    /// The input.
    pub input: Vec<SourceId>,
    /// Weights that are results.
    pub weights: Vec<SourceId>,
    /// Weights that are constants.
    pub parameters: Option<Parameters>,
    /// Padding before the first row and column.
    pub padding: [u64; 2],
    /// The nodes that it computes.
    pub nodes: Vec<usize>,
}

/// A value as a view.
#[derive(Clone, Debug)]
pub struct View {
    /// What it is a view of.
    pub source: SourceId,
    /// The dimensions.
    pub dims: Vec<Dimension>,
    /// The first transposition between the source and it.
    pub moved: Option<usize>,
}

/// The extent of an axis.
pub fn extent(shape: Shape, axis: Axis) -> u64 {
    [shape.channels, shape.rows, shape.columns][axis as usize]
}

/// Dimensions of the given extents that together are one axis, row-major.
pub fn spread(axis: Axis, extents: &[u64]) -> Vec<Dimension> {
    let mut stride = 1;
    let mut dims: Vec<Dimension> = vec![];
    for &extent in extents.iter().rev() {
        let atom = Atom { of: Whole::Axis(axis), stride, extent };
        dims.push(if extent == 1 { vec![] } else { vec![atom] });
        stride *= extent;
    }
    dims.reverse();
    dims
}

/// The atoms of several dimensions, joined where they are one range.
pub fn joined(dims: &[Dimension], which: &[usize]) -> Vec<Atom> {
    merged(which.iter().flat_map(|dim| dims[*dim].iter().copied()))
}

/// Which axis of a source each axis of a reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// They are the same.
    Same,
    /// Axis `d` of the reader is axis `order[d]` of the source.
    Exchanged([Axis; 3]),
}

/// The order in which atoms of channels, rows and columns are the axes of `shape`.
pub fn order(atoms: &[Vec<Atom>; 3], shape: Shape) -> Option<Order> {
    let mut order = [None; 3];
    for (axis, atoms) in atoms.iter().enumerate() {
        // Images may be part of the outermost dimension.
        let atoms = match &atoms[..] {
            [Atom { of: Whole::Images, .. }, rest @ ..] => rest,
            all => all,
        };
        let &[atom] = atoms else {
            if atoms.is_empty() {
                continue;
            }
            return None;
        };
        let Whole::Axis(of) = atom.of else { return None };
        if dimension(atom.of, extent(shape, of)) != [atom] {
            return None;
        }
        order[axis] = Some(of);
    }
    let is_used = |order: &[Option<Axis>; 3], axis: Axis| order.contains(&Some(axis));
    for axis in AXES {
        // Axes of extent 1 stay where they are if they can.
        if !is_used(&order, axis) && order[axis as usize].is_none() && extent(shape, axis) == 1 {
            order[axis as usize] = Some(axis);
        }
    }
    for axis in AXES {
        if !is_used(&order, axis) {
            if extent(shape, axis) != 1 {
                return None;
            }
            *order.iter_mut().find(|place| place.is_none())? = Some(axis);
        }
    }
    let [channels, rows, columns] = order;
    let order = [channels?, rows?, columns?];
    Some(if order == AXES { Order::Same } else { Order::Exchanged(order) })
}

/// The shape of a reader's operand.
pub fn exchanged(shape: Shape, order: [Axis; 3]) -> Shape {
    let [channels, rows, columns] = order.map(|axis| extent(shape, axis));
    Shape { channels, rows, columns }
}
