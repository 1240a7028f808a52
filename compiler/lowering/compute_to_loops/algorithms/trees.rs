//! Ensembles of decision trees: paths from roots to leaves, several at a time.
//!
//! The loads of one path depend on each other, those of several paths overlap. Full groups of rows descend each
//! tree together, so that its nodes stay in the cache; the remaining rows descend groups of trees.
use super::each;
use crate::kernel::{
    arithmetic,
    emit::{Buffer, Emit, Lanes},
};
use crate::lowering::compute_to_loops::{element, expression::scope, sizes::Sizes};
use irc_mlir::ops::arith;
use irc_mlir::{Type as MlirType, Value};
use irc_tl::{Combine, Comparison, DType, Dim, Number, Type, tree_node_words};
use std::convert::Infallible;

/// `arith.cmpi` predicate.
const NE: i64 = 1;

/// Number of paths at a time.
const PATHS: i64 = 8;

/// Number of rows that descend a tree before the next tree: their features and scores stay in the cache.
const BLOCK: i64 = 128;

/// Operands and result as defined by [`irc_tl::Algorithm::TreeEnsemble`].
pub(super) struct Ensemble<'c, 'a> {
    dtype: DType,
    combine: Combine,
    comparison: Comparison,
    x: Buffer<'c, 'a>,
    nodes: Buffer<'c, 'a>,
    roots: Buffer<'c, 'a>,
    /// The first weight of each leaf, and the target of each weight; `None` if every leaf has one weight per
    /// target.
    sparse: Option<[Buffer<'c, 'a>; 2]>,
    weights: Buffer<'c, 'a>,
    scores: Buffer<'c, 'a>,
    rows: Value<'c, 'a>,
    /// The number of features.
    width: Value<'c, 'a>,
    trees: Value<'c, 'a>,
    targets: Value<'c, 'a>,
    has_one_target: bool,
}

impl<'c: 'a, 'a> Ensemble<'c, 'a> {
    pub(super) fn new(
        e: Emit<'c, 'a>,
        (targets, combine, comparison): (&Dim, Combine, Comparison),
        operands: &[(&Type, Buffer<'c, 'a>)],
        scores: Buffer<'c, 'a>,
        sizes: &Sizes<'c, 'a>,
    ) -> Self {
        let (ty, x) = operands[0];
        let [nodes, roots, starts, of_weight, weights] =
            [1, 2, 3, 4, 5].map(|operand| operands[operand].1);
        let is_sparse = !operands[3].0.dims[0].is(0);
        Self {
            dtype: ty.dtype,
            combine,
            comparison,
            x,
            nodes,
            roots,
            sparse: is_sparse.then_some([starts, of_weight]),
            weights,
            scores,
            rows: sizes.value(e, &ty.dims[0]),
            width: sizes.value(e, &ty.dims[1]),
            trees: sizes.value(e, &operands[2].0.dims[0]),
            targets: sizes.value(e, targets),
            has_one_target: targets.is(1),
        }
    }

    pub(super) fn emit(&self, e: Emit<'c, 'a>) {
        let zero = e.index(0);
        self.clear(e);
        let whole = |e: Emit<'c, 'a>, count| {
            e.binary(arith::SUBI, count, e.binary(arith::REMSI, count, e.index(PATHS)))
        };
        let grouped = whole(e, self.rows);
        by(e, (zero, grouped, BLOCK), |e, first| {
            let end = e.min(e.offset(first, BLOCK), grouped);
            each(e, zero, self.trees, |e, tree| {
                let root = place(e, self.roots, tree);
                by(e, (first, end, PATHS), |e, row| {
                    let paths = (0..PATHS).map(|path| (e.offset(row, path), root));
                    self.descend(e, &paths.collect::<Vec<_>>());
                });
            });
        });
        each(e, grouped, self.rows, |e, row| {
            let grouped = whole(e, self.trees);
            by(e, (zero, grouped, PATHS), |e, tree| {
                let paths =
                    (0..PATHS).map(|path| (row, place(e, self.roots, e.offset(tree, path))));
                self.descend(e, &paths.collect::<Vec<_>>());
            });
            each(e, grouped, self.trees, |e, tree| {
                self.descend(e, &[(row, place(e, self.roots, tree))]);
            });
        });
    }

    /// Sets all scores to the neutral value.
    fn clear(&self, e: Emit<'c, 'a>) {
        let Number::Float(neutral) = self.combine.neutral(self.dtype) else {
            unreachable!("scores are floats")
        };
        let neutral = scope(e).constant(element(e.context, self.dtype), neutral);
        let count = e.binary(arith::MULI, self.rows, self.targets);
        each(e, e.index(0), count, |e, at| {
            e.store(neutral, self.scores, at, Lanes::Scalar, None);
        });
    }

    /// Adds the weights of the leaves at which paths end; a path is a row and a root.
    fn descend(&self, e: Emit<'c, 'a>, paths: &[(Value<'c, 'a>, Value<'c, 'a>)]) {
        let starts = paths.iter().map(|(row, _)| e.binary(arith::MULI, *row, self.width));
        let starts: Vec<_> = starts.collect();
        let roots: Vec<_> = paths.iter().map(|(_, root)| *root).collect();
        let Ok(leaves) = e.repeat_while(&roots, |e, nodes| {
            let next = nodes.iter().zip(&starts).map(|(node, start)| self.step(e, *node, *start));
            let next: Vec<_> = next.collect();
            let moves = nodes.iter().zip(&next).map(|(node, next)| e.compare(NE, *node, *next));
            let moves = moves.reduce(|some, other| e.binary(arith::ORI, some, other));
            let moves = moves.unwrap_or_else(|| e.integer(0, 1, Lanes::Scalar));
            Ok::<_, Infallible>((moves, next))
        });
        for ((row, _), leaf) in paths.iter().zip(leaves) {
            self.add(e, *row, leaf);
        }
    }

    /// The child of a node that a row moves to; a leaf is its own child.
    fn step(&self, e: Emit<'c, 'a>, node: Value<'c, 'a>, row: Value<'c, 'a>) -> Value<'c, 'a> {
        let words = self.words();
        let feature = place(e, self.nodes, e.offset(node, words - 3));
        let value = e.load(self.x, e.add(row, feature));
        let ty = element(e.context, self.dtype);
        let threshold = self.threshold(e, node);
        let to_second = arithmetic::compare(&scope(e), self.comparison, value, threshold, ty);
        let to_second = e.op(arith::EXTUI, &[to_second], e.int(64));
        let to_second = e.op(arith::INDEX_CAST, &[to_second], MlirType::index(e.context));
        place(e, self.nodes, e.add(e.offset(node, words - 2), to_second))
    }

    fn threshold(&self, e: Emit<'c, 'a>, node: Value<'c, 'a>) -> Value<'c, 'a> {
        let low = e.load(self.nodes, node);
        let ty = element(e.context, self.dtype).storage;
        if self.dtype != DType::F64 {
            return e.op(arith::BITCAST, &[low], ty);
        }
        let high = e.load(self.nodes, e.offset(node, 1));
        let [low, high] = [low, high].map(|half| e.op(arith::EXTUI, &[half], e.int(64)));
        let high = e.binary(arith::SHLI, high, e.integer(32, 64, Lanes::Scalar));
        e.op(arith::BITCAST, &[e.binary(arith::ORI, high, low)], ty)
    }

    /// Combines the weights of a leaf with the scores of a row.
    fn add(&self, e: Emit<'c, 'a>, row: Value<'c, 'a>, leaf: Value<'c, 'a>) {
        let number = place(e, self.nodes, e.offset(leaf, self.words() - 1));
        let scores = e.binary(arith::MULI, row, self.targets);
        match self.sparse {
            Some([starts, targets]) => {
                let [from, to] = [0, 1].map(|end| place(e, starts, e.offset(number, end)));
                each(e, from, to, |e, weight| {
                    let target =
                        if self.has_one_target { e.index(0) } else { place(e, targets, weight) };
                    self.combine(e, e.add(scores, target), weight);
                });
            }
            None if self.has_one_target => self.combine(e, scores, number),
            None => {
                let first = e.binary(arith::MULI, number, self.targets);
                each(e, e.index(0), self.targets, |e, target| {
                    self.combine(e, e.add(scores, target), e.add(first, target));
                });
            }
        }
    }

    fn combine(&self, e: Emit<'c, 'a>, score: Value<'c, 'a>, weight: Value<'c, 'a>) {
        let ty = element(e.context, self.dtype);
        let [old, weight] = [e.load(self.scores, score), e.load(self.weights, weight)];
        let new = arithmetic::binary(&scope(e), self.combine.function(), old, weight, ty);
        e.store(new, self.scores, score, Lanes::Scalar, None);
    }

    fn words(&self) -> i64 {
        tree_node_words(self.dtype) as i64
    }
}

/// A loop with a step.
fn by<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    range: (Value<'c, 'a>, Value<'c, 'a>, i64),
    body: impl FnOnce(Emit<'c, 'a>, Value<'c, 'a>),
) {
    let Ok(_) = e.for_each(range, &[], |e, index, _| {
        body(e, index);
        Ok::<_, Infallible>(vec![])
    });
}

/// An element of a list of positions, as an index.
fn place<'c: 'a, 'a>(e: Emit<'c, 'a>, list: Buffer<'c, 'a>, at: Value<'c, 'a>) -> Value<'c, 'a> {
    e.op(arith::INDEX_CAST, &[e.load(list, at)], MlirType::index(e.context))
}
