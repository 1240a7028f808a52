//! The tables of a [`Algorithm::TreeEnsemble`](irc_tl::Algorithm::TreeEnsemble).

use super::forest::{Forest, Vertex};
use super::tests::{Goal, Test, below, tests};
use crate::context::LowerError;
use irc_tl::{Comparison, DType, tree_node_words};

/// The tables, and how to use them.
pub(super) struct Tables {
    pub comparison: Comparison,
    /// Whether each feature is followed by its negation.
    pub mirrored: bool,
    pub nodes: Vec<i32>,
    pub roots: Vec<i32>,
    pub starts: Vec<i32>,
    pub targets: Vec<i32>,
    pub weights: Vec<f64>,
    /// The number of features that the trees use.
    pub features: i64,
}

/// A node of the tables.
enum Item {
    Test(Test),
    Leaf,
}

impl Tables {
    /// The tables of an ensemble for some number of targets; `absent` is the weight of a target that a leaf
    /// does not state.
    ///
    /// # Errors
    /// If a path returns to a vertex, or there are too many nodes.
    pub(super) fn of(
        forest: &Forest,
        targets: usize,
        absent: f64,
        dtype: DType,
    ) -> Result<Self, LowerError> {
        let order = forest.order()?;
        let mut items = vec![];
        let mut first = vec![0usize; forest.vertices.len()];
        for vertex in &order {
            first[*vertex] = items.len();
            match &forest.vertices[*vertex] {
                Vertex::Leaf(_) => items.push(Item::Leaf),
                Vertex::Branch(branch) => {
                    let base = items.len();
                    let moved = |mut test: Test| {
                        for goal in &mut test.next {
                            if let Goal::Test(at) = goal {
                                *at += base;
                            }
                        }
                        Item::Test(test)
                    };
                    items.extend(tests(branch, dtype).into_iter().map(moved));
                }
            }
        }
        let words = tree_node_words(dtype);
        if items.len().saturating_mul(words) > i32::MAX as usize {
            let message = format!("too many decisions: {}", items.len());
            return Err(LowerError::unsupported(message));
        }
        let place = |item: usize| (item * words) as i32;
        let layout = Layout::of(&items);
        let mut nodes = Vec::with_capacity(items.len() * words);
        let mut leaves = 0;
        for (at, item) in items.iter().enumerate() {
            let (threshold, feature, children) = match item {
                Item::Leaf => {
                    leaves += 1;
                    (f64::NAN, 0, [place(at), leaves - 1])
                }
                Item::Test(test) => {
                    let goal = |goal| match goal {
                        Goal::Vertex(vertex) => place(first[vertex]),
                        Goal::Test(test) => place(test),
                    };
                    layout.node(test, test.next.map(goal), dtype)
                }
            };
            push_bits(&mut nodes, threshold, dtype);
            nodes.push(i32::try_from(feature).map_err(|_| wide(feature))?);
            nodes.extend(children);
        }
        let roots = forest.roots.iter().map(|root| place(first[*root])).collect();
        let used = |item: &Item| match item {
            Item::Test(test) => test.feature + 1,
            // A leaf reads the first feature.
            Item::Leaf => 1,
        };
        let features = items.iter().map(used).max().unwrap_or(1);
        let weights = Weights::of(forest, &order, leaves as usize, targets, absent);
        Ok(Self {
            comparison: layout.comparison,
            mirrored: layout.mirrored,
            nodes,
            roots,
            starts: weights.starts,
            targets: weights.targets,
            weights: weights.weights,
            features,
        })
    }
}

fn wide(feature: i64) -> LowerError {
    LowerError::unsupported(format!("expected a feature below 2^30, found {feature}"))
}

fn push_bits(nodes: &mut Vec<i32>, value: f64, dtype: DType) {
    if dtype == DType::F64 {
        let bits = value.to_bits();
        nodes.extend([bits as u32, (bits >> 32) as u32].map(u32::cast_signed));
    } else {
        nodes.push((value as f32).to_bits().cast_signed());
    }
}

/// How comparisons are made of one.
struct Layout {
    comparison: Comparison,
    mirrored: bool,
}

impl Layout {
    /// NaN satisfies no comparison, so that it leads to the first child. If it leads to different goals, some
    /// tests compare negated features.
    fn of(items: &[Item]) -> Self {
        let (mut all, mut any) = (true, false);
        for item in items {
            if let Item::Test(test) = item {
                // No number is above a threshold that is NaN, although none is below it.
                all &= test.missing && !test.threshold.is_nan();
                any |= test.missing;
            }
        }
        match (all, any) {
            (true, true) => Self { comparison: Comparison::Gt, mirrored: false },
            (_, mirrored) => Self { comparison: Comparison::Le, mirrored },
        }
    }

    /// The threshold, the feature and the children of a test with these goals.
    fn node(&self, test: &Test, [yes, no]: [i32; 2], dtype: DType) -> (f64, i64, [i32; 2]) {
        let Test { threshold, feature, .. } = *test;
        match (self.comparison, test.missing) {
            (Comparison::Gt, _) => (threshold, feature, [yes, no]),
            (_, false) if self.mirrored => (threshold, feature.saturating_mul(2), [no, yes]),
            (_, false) => (threshold, feature, [no, yes]),
            // `x > threshold` is `-x <= below(-threshold)`.
            (_, true) => {
                let negated = feature.saturating_mul(2).saturating_add(1);
                let above =
                    if threshold.is_nan() { f64::INFINITY } else { below(-threshold, dtype) };
                (above, negated, [yes, no])
            }
        }
    }
}

/// The weights of leaves.
struct Weights {
    starts: Vec<i32>,
    targets: Vec<i32>,
    weights: Vec<f64>,
}

impl Weights {
    /// One weight per leaf and target if few are absent and none is repeated, otherwise those that are stated.
    fn of(forest: &Forest, order: &[usize], leaves: usize, targets: usize, absent: f64) -> Self {
        let stated = forest.weights(order).count();
        let all = leaves.saturating_mul(targets);
        if all <= stated.saturating_mul(2)
            && let Some(weights) = Self::dense(forest, order, all, targets, absent)
        {
            return Self { starts: vec![], targets: vec![], weights };
        }
        let mut found = Self { starts: vec![0], targets: vec![], weights: vec![] };
        for vertex in order {
            let Vertex::Leaf(entries) = &forest.vertices[*vertex] else { continue };
            found.targets.extend(entries.iter().map(|(target, _)| *target as i32));
            found.weights.extend(entries.iter().map(|(_, weight)| *weight));
            found.starts.push(found.weights.len() as i32);
        }
        found
    }

    fn dense(
        forest: &Forest,
        order: &[usize],
        all: usize,
        targets: usize,
        absent: f64,
    ) -> Option<Vec<f64>> {
        let mut weights = vec![absent; all];
        let mut is_stated = vec![false; all];
        let leaves = order.iter().filter_map(|vertex| match &forest.vertices[*vertex] {
            Vertex::Leaf(entries) => Some(entries),
            Vertex::Branch(_) => None,
        });
        for (leaf, entries) in leaves.enumerate() {
            for (target, weight) in entries {
                let at = leaf * targets + target;
                if std::mem::replace(&mut is_stated[at], true) {
                    return None;
                }
                weights[at] = *weight;
            }
        }
        Some(weights)
    }
}
