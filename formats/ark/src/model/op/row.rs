//! The definition of an op as data.

use std::ops::RangeInclusive;

use irc_diag::Sink;
use irc_json::At;

use super::shapes;
use super::{ArgKind, Op, OpKind};

/// The single definition of a kind of op. Reading, the checks of models and plans, the ODS, the
/// conversion to and from MLIR, the manual, and the tiles and costs of planners are derived from it;
/// the computation of the op is its row in the crate `irc-ark-frontend`.
///
/// [`OpKind::row`] is the row of a kind.
#[derive(Debug)]
pub struct Row {
    /// The kind.
    pub kind: OpKind,
    /// Name in a file.
    pub name: &'static str,
    /// What it does, as a phrase.
    pub summary: &'static str,
    /// Number of tensors read.
    pub reads: RangeInclusive<usize>,
    /// Number of tensors written.
    pub writes: RangeInclusive<usize>,
    /// Number of results.
    pub results: RangeInclusive<usize>,
    /// Arguments in alphabetical order, all required.
    pub args: &'static [Argument],
    /// Its role in planning and checking of tasks.
    pub family: Family,
    /// The valid elements of the first operand.
    pub elements: Elements,
    /// How the lanes of an elementwise kernel are assigned elements.
    pub lane: Lane,
    /// Operations on vector units for each element of the result; those of products and reductions
    /// are derived from their operands.
    pub work: u32,
    /// Floating-point operations counted for each element of the result, independently of their cost;
    /// those of products and reductions are derived from their operands.
    pub flops: u32,
    /// See [`Row::check`].
    rule: Rule,
}

/// A check of the shapes and data types of an op with a valid signature.
type Rule = fn(&Op, &At<'_>, &mut Sink);

/// An argument of ops of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Name in a file.
    pub name: &'static str,
    /// Kind of its value.
    pub kind: ArgKind,
    /// The name in older files.
    pub old_name: Option<&'static str>,
}

impl Argument {
    /// An argument whose name has never changed.
    pub(super) const fn new(name: &'static str, kind: ArgKind) -> Self {
        Self { name, kind, old_name: None }
    }
}

/// The role of an op in planning and checking of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Each element of the result depends on the element of each operand at the same position, after
    /// broadcasting; [`Lane`] defines when also on its neighbour. Tasks are tiles of the result.
    Elementwise,
    /// Along one axis. Tasks are elements of the result.
    Reduction,
    /// Matrix product, which computes on padding. Tasks are tiles of the result.
    Product,
    /// Permutation of dimensions. Tasks are tiles of the result.
    Transposition,
    /// Rows of a table by index. Tasks are rows of the result.
    Lookup,
    /// Communicates with other ranks; its config defines its tasks.
    Communication(Exchange),
    /// Virtual: describes memory, and runs nothing.
    View,
    /// Provides information about memory, and runs nothing.
    Idle,
}

/// What communication ops exchange with other ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// Data, whose arrival is signalled separately.
    Data,
    /// Packets of data, each with a flag that signals its arrival.
    Packets,
    /// Only signals: one warp sends them or waits for them.
    Signals,
}

/// The valid elements of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Any type.
    Any,
    /// Numbers: any type but `BYTE`.
    Numbers,
    /// Floats.
    Floats,
}

/// How the lanes of an elementwise kernel are assigned the elements of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// As many at once as the bytes of a row permit, at most 16 bytes.
    Vectors,
    /// Two at a time, independently of each other.
    Pairs,
    /// Two at a time, where each result needs both.
    CoupledPairs,
}

impl Row {
    /// A row of an op without operands and computation that writes one tensor, to be filled in.
    pub(super) const fn new(kind: OpKind, name: &'static str, summary: &'static str) -> Self {
        Self {
            kind,
            name,
            summary,
            reads: 0..=0,
            writes: 1..=1,
            results: 1..=1,
            args: &[],
            family: Family::Idle,
            elements: Elements::Any,
            lane: Lane::Vectors,
            work: 0,
            flops: 0,
            rule: |_, _, _| {},
        }
    }

    /// Checks the shapes and data types of an op with a valid signature.
    pub(in crate::model) fn check(&self, op: &Op, at: &At<'_>, sink: &mut Sink) {
        shapes::check_elements(op, self.elements, at, sink);
        (self.rule)(op, at, sink);
    }

    /// Elementwise arithmetic on one operand, with one operation for each element.
    pub(super) const fn unary(self) -> Self {
        let row = self.family(Family::Elementwise, 1).rule(shapes::unary);
        row.elements(Elements::Numbers).costs(1, 1)
    }

    /// Elementwise arithmetic on two operands, with one operation for each element.
    pub(super) const fn binary(self) -> Self {
        self.unary().family(Family::Elementwise, 2).rule(shapes::binary)
    }

    /// A reduction along one axis.
    pub(super) const fn reduction(self) -> Self {
        let row = self.family(Family::Reduction, 1).rule(shapes::reduction);
        row.elements(Elements::Numbers)
    }

    /// A view of any memory.
    pub(super) const fn view(self) -> Self {
        let row = self.family(Family::View, 0).rule(shapes::view);
        row.reads(0..=usize::MAX).writes(0..=0)
    }

    /// An op of a family with `reads` operands.
    pub(super) const fn family(mut self, family: Family, reads: usize) -> Self {
        (self.family, self.reads) = (family, reads..=reads);
        self
    }

    /// See [`Row::check`].
    pub(super) const fn rule(mut self, rule: Rule) -> Self {
        self.rule = rule;
        self
    }

    /// See [`Row::reads`].
    pub(super) const fn reads(mut self, reads: RangeInclusive<usize>) -> Self {
        self.reads = reads;
        self
    }

    /// See [`Row::writes`].
    pub(super) const fn writes(mut self, writes: RangeInclusive<usize>) -> Self {
        self.writes = writes;
        self
    }

    /// See [`Row::results`].
    pub(super) const fn results(mut self, results: RangeInclusive<usize>) -> Self {
        self.results = results;
        self
    }

    /// See [`Row::args`].
    pub(super) const fn args(mut self, args: &'static [Argument]) -> Self {
        self.args = args;
        self
    }

    /// See [`Row::elements`].
    pub(super) const fn elements(mut self, elements: Elements) -> Self {
        self.elements = elements;
        self
    }

    /// See [`Row::lane`].
    pub(super) const fn lane(mut self, lane: Lane) -> Self {
        self.lane = lane;
        self
    }

    /// See [`Row::work`] and [`Row::flops`].
    pub(super) const fn costs(mut self, work: u32, flops: u32) -> Self {
        (self.work, self.flops) = (work, flops);
        self
    }
}
