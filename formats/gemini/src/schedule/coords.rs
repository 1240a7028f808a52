//! Coordinates and extents, and lists of ids in their spellings.

use std::fmt;

use irc_json::{At, Json, Node, Reader, Value};

use crate::record::Field;

/// Maximum number of coordinates of a point.
const MAX_RANK: usize = 4;

/// A point: up to four coordinates, or a scalar.
///
/// Points of fmaps are `[N, C, H, W]`, or `[N, K, H, W]`; of weights `[0, K, C, R*S]` in dialect A
/// and a scalar K in B and C; of activations that serve as weights `[N, C, H]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Coords {
    values: [i64; MAX_RANK],
    rank: u8,
    is_plain: bool,
}

impl Coords {
    /// A scalar.
    pub fn plain(value: i64) -> Coords {
        Coords { values: [value, 0, 0, 0], rank: 1, is_plain: true }
    }

    /// A list of coordinates; `None` for more than four.
    pub fn list(values: &[i64]) -> Option<Coords> {
        let mut all = [0; MAX_RANK];
        all.get_mut(..values.len())?.copy_from_slice(values);
        Some(Coords { values: all, rank: values.len() as u8, is_plain: false })
    }

    /// The coordinates; one for a scalar.
    pub fn values(&self) -> &[i64] {
        &self.values[..usize::from(self.rank)]
    }

    /// Whether it is written without brackets.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }
}

impl From<[i64; 4]> for Coords {
    fn from(values: [i64; 4]) -> Self {
        Coords { values, rank: 4, is_plain: false }
    }
}

impl fmt::Display for Coords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_plain {
            true => write!(f, "{}", self.values[0]),
            false => write!(f, "{:?}", self.values()),
        }
    }
}

impl fmt::Debug for Coords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Field for Coords {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        match &node.value {
            Value::Number(_) => crate::read::integer(reader, node, at).map(Coords::plain),
            Value::Array(elements) if (1..=MAX_RANK).contains(&elements.len()) => {
                Coords::list(&Vec::read(reader, node, at)?)
            }
            _ => {
                reader.wrong_type("an integer or an array of 1 to 4 integers", node, at);
                None
            }
        }
    }

    fn write(&self) -> Option<Json> {
        match self.is_plain {
            true => Some(Json::Int(self.values[0])),
            false => {
                Some(Json::Array(self.values().iter().map(|&value| Json::Int(value)).collect()))
            }
        }
    }
}

/// A box of points between two corners, both inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Smallest coordinates.
    pub lower: Coords,
    /// Largest coordinates.
    pub upper: Coords,
}

impl Extent {
    /// The box between two corners.
    pub fn new(lower: impl Into<Coords>, upper: impl Into<Coords>) -> Extent {
        Extent { lower: lower.into(), upper: upper.into() }
    }

    /// Whether both corners have the same rank and the lower is not above the upper.
    pub fn is_valid(&self) -> bool {
        self.lower.rank == self.upper.rank && self.axes().all(|(lower, upper)| lower <= upper)
    }

    /// Lower and upper coordinate of each axis.
    pub fn axes(&self) -> impl Iterator<Item = (i64, i64)> + use<'_> {
        self.lower.values().iter().copied().zip(self.upper.values().iter().copied())
    }

    /// Lower and upper coordinate of an axis; 0 if it is absent.
    pub fn axis(&self, axis: usize) -> (i64, i64) {
        (self.lower.values[axis], self.upper.values[axis])
    }

    /// Elements along each axis.
    pub fn lengths(&self) -> impl Iterator<Item = i64> + use<'_> {
        self.axes().map(|(lower, upper)| upper.saturating_sub(lower).saturating_add(1))
    }

    /// Number of points.
    pub fn volume(&self) -> i64 {
        self.lengths().fold(1, |volume: i64, length| volume.saturating_mul(length.max(0)))
    }

    /// Whether the boxes overlap.
    pub fn overlaps(&self, other: &Extent) -> bool {
        self.lower.rank == other.lower.rank
            && self.axes().zip(other.axes()).all(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
    }

    /// The intersection; `None` if it is empty.
    pub fn intersection(&self, other: &Extent) -> Option<Extent> {
        self.overlaps(other).then(|| {
            let mut both = *self;
            for axis in 0..MAX_RANK {
                let (a, b) = (self.axis(axis), other.axis(axis));
                both.lower.values[axis] = a.0.max(b.0);
                both.upper.values[axis] = a.1.min(b.1);
            }
            both
        })
    }

    /// The smallest box that contains both; they must have the same rank.
    #[must_use]
    pub fn joined(&self, other: &Extent) -> Extent {
        let mut both = *self;
        for axis in 0..MAX_RANK {
            let (a, b) = (self.axis(axis), other.axis(axis));
            both.lower.values[axis] = a.0.min(b.0);
            both.upper.values[axis] = a.1.max(b.1);
        }
        both
    }

    /// Whether the box contains all points of `other`.
    pub fn contains(&self, other: &Extent) -> bool {
        self.lower.rank == other.lower.rank
            && self.axes().zip(other.axes()).all(|(a, b)| a.0 <= b.0 && b.1 <= a.1)
    }

    /// The box moved by `offset` along one axis.
    #[must_use]
    pub fn shifted(mut self, axis: usize, offset: i64) -> Extent {
        for corner in [&mut self.lower, &mut self.upper] {
            corner.values[axis] = corner.values[axis].saturating_add(offset);
        }
        self
    }

    /// The box moved by the coordinates of a point.
    #[must_use]
    pub fn moved_by(self, point: &Coords) -> Extent {
        let offsets = point.values().iter().enumerate();
        offsets.fold(self, |moved, (axis, &offset)| moved.shifted(axis, offset))
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.lower, self.upper)
    }
}

impl fmt::Debug for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// As in a workload: an array of the two corners.
impl Field for Extent {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        let [lower, upper] = <[Coords; 2]>::read(reader, node, at)?;
        Some(Extent { lower, upper })
    }

    fn write(&self) -> Option<Json> {
        [self.lower, self.upper].write()
    }
}

/// Transfer ids, or ids of nodes: `7`, `[7]` or `[[7]]` in a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ids {
    /// A scalar.
    Plain(i64),
    /// A list.
    List(Vec<i64>),
    /// A list of lists, as SET writes the ids of weights.
    Nested(Vec<Vec<i64>>),
}

impl Ids {
    /// The ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = i64> + use<'_> {
        let (plain, list, nested) = match self {
            Ids::Plain(id) => (Some(*id), &[][..], &[][..]),
            Ids::List(ids) => (None, &ids[..], &[][..]),
            Ids::Nested(lists) => (None, &[][..], &lists[..]),
        };
        plain.into_iter().chain(list.iter().copied()).chain(nested.iter().flatten().copied())
    }

    /// The first id.
    pub fn first(&self) -> Option<i64> {
        self.iter().next()
    }
}

impl Field for Ids {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        match &node.value {
            Value::Number(_) => crate::read::integer(reader, node, at).map(Ids::Plain),
            Value::Array(elements)
                if matches!(elements.first(), Some(Node { value: Value::Array(_), .. })) =>
            {
                Vec::read(reader, node, at).map(Ids::Nested)
            }
            Value::Array(_) => Vec::read(reader, node, at).map(Ids::List),
            _ => {
                reader.wrong_type("an id or an array of ids", node, at);
                None
            }
        }
    }

    fn write(&self) -> Option<Json> {
        match self {
            Ids::Plain(id) => id.write(),
            Ids::List(ids) => ids.write(),
            Ids::Nested(lists) => lists.write(),
        }
    }
}

/// A value that dialect A writes as a list and the others as a single object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OneOrMany<T> {
    /// A single object.
    One(T),
    /// A list.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// The elements.
    pub fn as_slice(&self) -> &[T] {
        match self {
            OneOrMany::One(one) => std::slice::from_ref(one),
            OneOrMany::Many(many) => many,
        }
    }
}

impl<T: Field> Field for OneOrMany<T> {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        match node.value {
            Value::Array(_) => Vec::read(reader, node, at).map(OneOrMany::Many),
            _ => T::read(reader, node, at).map(OneOrMany::One),
        }
    }

    fn write(&self) -> Option<Json> {
        match self {
            OneOrMany::One(one) => one.write(),
            OneOrMany::Many(many) => many.write(),
        }
    }
}
