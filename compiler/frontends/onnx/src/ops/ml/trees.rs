//! Ensembles of decision trees.
//!
//! All trees are traversed at once: for each row and tree the current node, in as many steps as the
//! depth of the deepest tree. A leaf is its own child.

use super::super::indexing::{inside, loops};
use super::operator;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{
    Binary, Builder, Built, Combine, Comparison, Compute, DType, Dim, Scalar, Tensor, TensorType,
    Unary, ValueId,
};

pub(in super::super) const OPERATORS: &[Operator] = &[
    operator("TreeEnsemble", &[5], tree_ensemble),
    operator("TreeEnsembleRegressor", &[1, 3], tree_ensemble_regressor),
];

/// The numbers of the decision modes of a node.
const MODES: [Comparison; 6] = [
    Comparison::Le,
    Comparison::Lt,
    Comparison::Ge,
    Comparison::Gt,
    Comparison::Eq,
    Comparison::Ne,
];
/// Whether the feature is a member of a set.
const MEMBER: i64 = 6;

/// The nodes of all trees, inner ones and leaves, by position.
#[derive(Default)]
struct Trees {
    modes: Vec<i64>,
    features: Vec<i64>,
    splits: Vec<f64>,
    /// The index in [`MEMBER`] of each node.
    members: Vec<Vec<f64>>,
    /// Whether a missing feature satisfies the decision.
    missing: Vec<bool>,
    /// The child if the decision holds, and if not.
    next: Vec<[usize; 2]>,
    roots: Vec<usize>,
    /// Weights of leaves: node, target, weight.
    weights: Vec<(usize, usize, f64)>,
}

fn tree_ensemble(cx: &mut Context<'_>) -> Lowered {
    let ints = |name: &str| cx.ints(name)?.ok_or_else(|| cx.missing(name));
    let numbers = |name: &str| -> Result<Option<Vec<f64>>, LowerError> {
        let constant = cx.tensor(name)?;
        let tensor = constant.map(|constant| constant.tensor()).transpose();
        Ok(tensor.map_err(|error| LowerError::invalid(error.to_string()))?.map(|t| t.to_f64()))
    };
    let splits = numbers("nodes_splits")?.ok_or_else(|| cx.missing("nodes_splits"))?;
    let modes = numbers("nodes_modes")?.ok_or_else(|| cx.missing("nodes_modes"))?;
    let weights = numbers("leaf_weights")?.ok_or_else(|| cx.missing("leaf_weights"))?;
    let targets = ints("leaf_targetids")?;
    let inner = splits.len();
    // Inner nodes first, then leaves.
    let (yes, no) = (ints("nodes_truenodeids")?, ints("nodes_falsenodeids")?);
    let (yes_leaf, no_leaf) = (ints("nodes_trueleafs")?, ints("nodes_falseleafs")?);
    let features = ints("nodes_featureids")?;
    let lists = [modes.len(), yes.len(), no.len(), yes_leaf.len(), no_leaf.len(), features.len()];
    if lists.iter().any(|list| *list != inner) || weights.len() != targets.len() {
        return Err(LowerError::invalid("expected lists of one length for nodes and for leaves"));
    }
    let tracks = cx.ints("nodes_missing_value_tracks_true")?.unwrap_or_default();
    let mut members = numbers("membership_values")?.unwrap_or_default().into_iter();
    let mut trees = Trees::default();
    for node in 0..inner {
        let place = |id: i64, leaf: i64| id as usize + if leaf != 0 { inner } else { 0 };
        let mode = modes[node] as i64;
        // The sets are concatenated, each terminated by a NaN.
        let own = (mode == MEMBER).then(|| members.by_ref().take_while(|it| !it.is_nan()));
        trees.members.push(own.into_iter().flatten().collect());
        trees.modes.push(mode);
        trees.features.push(features[node]);
        trees.splits.push(splits[node]);
        trees.missing.push(tracks.get(node).is_some_and(|track| *track != 0));
        trees.next.push([place(yes[node], yes_leaf[node]), place(no[node], no_leaf[node])]);
    }
    for (leaf, (target, weight)) in targets.iter().zip(&weights).enumerate() {
        trees.leaf();
        trees.weights.push((inner + leaf, *target as usize, *weight));
    }
    trees.roots = ints("tree_roots")?.into_iter().map(|root| root as usize).collect();
    let count = cx.int("n_targets")?.ok_or_else(|| cx.missing("n_targets"))?;
    let how = match cx.int_or("aggregate_function", 1)? {
        0 => Aggregate::Mean,
        1 => Aggregate::Sum,
        2 => Aggregate::Min,
        3 => Aggregate::Max,
        other => return Err(LowerError::invalid(format!("no aggregate function {other}"))),
    };
    let scores = trees.write(cx, count, how)?;
    match cx.int_or("post_transform", 0)? {
        0 => Ok(vec![scores]),
        1 => one(softmax(cx.b, scores)),
        2 => one(cx.b.unary(Unary::Sigmoid, scores)),
        other => Err(LowerError::unsupported(format!("`post_transform` {other} is not supported"))),
    }
}

fn tree_ensemble_regressor(cx: &mut Context<'_>) -> Lowered {
    let ints = |name: &str| cx.ints(name)?.ok_or_else(|| cx.missing(name));
    let floats = |name: &str| cx.floats(name)?.ok_or_else(|| cx.missing(name));
    let (of_tree, ids) = (ints("nodes_treeids")?, ints("nodes_nodeids")?);
    let (yes, no) = (ints("nodes_truenodeids")?, ints("nodes_falsenodeids")?);
    let (features, splits) = (ints("nodes_featureids")?, floats("nodes_values")?);
    let modes = cx.strings("nodes_modes")?.ok_or_else(|| cx.missing("nodes_modes"))?;
    let tracks = cx.ints("nodes_missing_value_tracks_true")?.unwrap_or_default();
    let lists = [ids.len(), yes.len(), no.len(), features.len(), splits.len(), modes.len()];
    if lists.iter().any(|list| *list != of_tree.len()) {
        return Err(LowerError::invalid("expected lists of one length for the nodes"));
    }
    let keys: std::collections::BTreeMap<(i64, i64), usize> =
        of_tree.iter().copied().zip(ids.iter().copied()).zip(0..).collect();
    let place = |tree: i64, id: i64| {
        let missing = || LowerError::invalid(format!("tree {tree} has no node {id}"));
        keys.get(&(tree, id)).copied().ok_or_else(missing)
    };
    let mut trees = Trees::default();
    for (node, mode) in modes.iter().enumerate() {
        let names = ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ"];
        let number = names.iter().position(|name| mode.strip_prefix("BRANCH_") == Some(name));
        match number {
            Some(number) => {
                let tree = of_tree[node];
                trees.modes.push(number as i64);
                trees.features.push(features[node]);
                trees.splits.push(f64::from(splits[node]));
                trees.members.push(vec![]);
                trees.missing.push(tracks.get(node).is_some_and(|track| *track != 0));
                trees.next.push([place(tree, yes[node])?, place(tree, no[node])?]);
            }
            None if mode == "LEAF" => trees.leaf(),
            None => return Err(LowerError::invalid(format!("unknown mode '{mode}'"))),
        }
    }
    let mut led_to: Vec<bool> = vec![false; trees.next.len()];
    for (node, next) in trees.next.iter().enumerate() {
        next.iter().filter(|next| **next != node).for_each(|next| led_to[*next] = true);
    }
    trees.roots = (0..led_to.len()).filter(|node| !led_to[*node]).collect();
    let (leaf_trees, leaf_ids) = (ints("target_treeids")?, ints("target_nodeids")?);
    let (targets, weights) = (ints("target_ids")?, floats("target_weights")?);
    for (index, weight) in weights.iter().enumerate() {
        let leaf = place(leaf_trees[index], leaf_ids[index])?;
        trees.weights.push((leaf, targets[index] as usize, f64::from(*weight)));
    }
    let count = cx.int("n_targets")?.ok_or_else(|| cx.missing("n_targets"))?;
    let how = match cx.string_or("aggregate_function", "SUM")?.as_str() {
        "AVERAGE" => Aggregate::Mean,
        "SUM" => Aggregate::Sum,
        "MIN" => Aggregate::Min,
        "MAX" => Aggregate::Max,
        other => return Err(LowerError::invalid(format!("no aggregate function '{other}'"))),
    };
    let mut scores = trees.write(cx, count, how)?;
    if let Some(base) = cx.floats("base_values")?.filter(|base| !base.is_empty()) {
        let base = Tensor::from_values([base.len() as i64], &base);
        let base = cx.b.tensor(&base.map_err(|error| LowerError::invalid(error.to_string()))?);
        let base = cx.b.cast(base, cx.b.dtype(scores))?;
        scores = cx.b.binary(Binary::Add, scores, base)?;
    }
    match cx.string_or("post_transform", "NONE")?.as_str() {
        "NONE" => Ok(vec![scores]),
        "SOFTMAX" => one(softmax(cx.b, scores)),
        "LOGISTIC" => one(cx.b.unary(Unary::Sigmoid, scores)),
        other => Err(LowerError::unsupported(format!("`post_transform` {other} is not supported"))),
    }
}

fn softmax(b: &mut Builder, scores: ValueId) -> Built {
    let most = b.reduce(irc_tl::Reduction::Max, scores, &[1], true)?;
    let shifted = b.binary(Binary::Sub, scores, most)?;
    let powers = b.unary(Unary::Exp, shifted)?;
    let sum = b.reduce(irc_tl::Reduction::Sum, powers, &[1], true)?;
    b.binary(Binary::Div, powers, sum)
}

/// The function that combines the trees' weights.
#[derive(Clone, Copy, PartialEq)]
enum Aggregate {
    Mean,
    Sum,
    Min,
    Max,
}

impl Trees {
    fn leaf(&mut self) {
        let own = self.next.len();
        self.modes.push(0);
        self.features.push(0);
        self.splits.push(0.0);
        self.members.push(vec![]);
        self.missing.push(false);
        self.next.push([own, own]);
    }

    /// Number of steps from the roots to the deepest leaf.
    fn depth(&self) -> Result<usize, LowerError> {
        let count = self.next.len();
        let mut at: Vec<usize> = self.roots.clone();
        for step in 0..=count {
            let inner = |node: &usize| self.next[*node].iter().any(|next| next != node);
            at.retain(inner);
            if at.is_empty() {
                return Ok(step);
            }
            at = at.iter().flat_map(|node| self.next[*node]).collect();
            at.sort_unstable();
            at.dedup();
        }
        Err(LowerError::invalid("the nodes of a tree form a cycle"))
    }

    fn check(&self) -> Result<(), LowerError> {
        let count = self.next.len();
        let places = self.next.iter().flatten().chain(&self.roots);
        let places = places.chain(self.weights.iter().map(|(node, ..)| node));
        if let Some(place) = places.copied().find(|place| *place >= count) {
            return Err(LowerError::invalid(format!(
                "expected nodes below {count}, found {place}"
            )));
        }
        if let Some(mode) = self.modes.iter().find(|mode| !(0..=MEMBER).contains(*mode)) {
            return Err(LowerError::invalid(format!(
                "expected a mode up to {MEMBER}, found {mode}"
            )));
        }
        Ok(())
    }

    /// The scores of rows of features: `[rows, targets]`.
    fn write(
        &self,
        cx: &mut Context<'_>,
        count: i64,
        how: Aggregate,
    ) -> Result<ValueId, LowerError> {
        self.check()?;
        let x = cx.input(0)?;
        let ty = cx.ty(x);
        if ty.rank() != 2 || self.roots.is_empty() {
            return Err(LowerError::invalid(format!("expected rows of features, found {ty}")));
        }
        let dtype = if ty.dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let x = cx.b.cast(x, dtype)?;
        let whole = |values: Vec<i64>| {
            Tensor::from_values([values.len() as i64], &values)
                .map_err(|error| LowerError::invalid(error.to_string()))
        };
        let next = self.next.iter().flatten().map(|next| *next as i64).collect::<Vec<_>>();
        let tables = Tables {
            modes: cx.b.tensor(&whole(self.modes.clone())?),
            features: cx.b.tensor(&whole(self.features.clone())?),
            next: cx.b.tensor(&whole(next)?),
            missing: cx.b.tensor(&whole(self.missing.iter().map(|m| i64::from(*m)).collect())?),
            splits: cx.b.tensor(&floats(dtype, [self.splits.len() as i64], &self.splits)?),
            members: self.member_table(cx, dtype)?,
        };
        let roots = self.roots.iter().map(|root| *root as i64).collect();
        let roots = cx.b.tensor(&whole(roots)?);
        let trees = Dim::Known(self.roots.len() as i64);
        let mut at = cx.b.broadcast(roots, &[ty.dims[0].clone(), trees.clone()])?;
        for _ in 0..self.depth()? {
            at = self.step(cx, x, at, &tables)?;
        }
        let (rows, targets) = (ty.dims[0].clone(), Dim::Known(count));
        let absent = match how {
            Aggregate::Mean | Aggregate::Sum => 0.0,
            Aggregate::Min => f64::INFINITY,
            Aggregate::Max => f64::NEG_INFINITY,
        };
        let mut dense = vec![absent; self.next.len() * count.max(0) as usize];
        for (node, target, weight) in &self.weights {
            let place = node * count as usize + target;
            let fits = (*target as i64) < count;
            let slot = dense.get_mut(place).filter(|_| fits);
            let slot = slot.ok_or_else(|| {
                LowerError::invalid(format!("expected targets below {count}, found {target}"))
            })?;
            let old = if slot.is_finite() { *slot } else { 0.0 };
            *slot = old + weight;
        }
        let dense = floats(dtype, [self.next.len() as i64, count], &dense)?;
        let dense = cx.b.tensor(&dense);
        let node = Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(2)]);
        let weight = Scalar::load(1, [node, Scalar::Loop(1)]);
        let combine = match how {
            Aggregate::Mean | Aggregate::Sum => Combine::Sum,
            Aggregate::Min => Combine::Min,
            Aggregate::Max => Combine::Max,
        };
        let scores = Compute::reduce([rows, targets], combine, [trees], weight);
        let scores = cx.b.compute(scores, &[at, dense])?;
        match how {
            Aggregate::Sum => Ok(scores),
            Aggregate::Mean => {
                let count = cx.b.scalar(self.roots.len() as f64, dtype)?;
                Ok(cx.b.binary(Binary::Div, scores, count)?)
            }
            // A target without leaves has no score.
            Aggregate::Min | Aggregate::Max => {
                let (none, zero) = (cx.b.scalar(absent, dtype)?, cx.b.scalar(0.0, dtype)?);
                let empty = cx.b.compare(Comparison::Eq, scores, none)?;
                Ok(cx.b.select(empty, zero, scores)?)
            }
        }
    }

    /// The members of each node; a NaN equals no feature.
    fn member_table(
        &self,
        cx: &mut Context<'_>,
        dtype: DType,
    ) -> Result<Option<ValueId>, LowerError> {
        let width = self.members.iter().map(Vec::len).max().unwrap_or(0);
        if !self.modes.contains(&MEMBER) {
            return Ok(None);
        }
        let mut table = vec![f64::NAN; width * self.members.len()];
        for (node, members) in self.members.iter().enumerate() {
            table[node * width..][..members.len()].copy_from_slice(members);
        }
        let shape = [self.members.len() as i64, width as i64];
        Ok(Some(cx.b.tensor(&floats(dtype, shape, &table)?)))
    }

    /// The current nodes of the rows after one more decision.
    fn step(
        &self,
        cx: &mut Context<'_>,
        x: ValueId,
        at: ValueId,
        tables: &Tables,
    ) -> Result<ValueId, LowerError> {
        let dims = cx.b.dims(at);
        let width = cx.b.dims(x)[1].clone();
        let node = || Scalar::load(1, loops(0..2));
        let of_node = |operand: usize| Scalar::load(operand, [node()]);
        let feature = || Scalar::load(0, [Scalar::Loop(0), inside(of_node(2), &width)]);
        let mut operands =
            vec![x, at, tables.features, tables.splits, tables.modes, tables.missing, tables.next];
        let mut holds = Scalar::Int(0, DType::Bool);
        if let Some(members) = tables.members {
            let own = Scalar::load(3, [node(), Scalar::Loop(2)]);
            let count = cx.b.dims(members)[1].clone();
            let hit = feature().equals(own).cast(DType::I64);
            let hits = Compute::reduce(dims.clone(), Combine::Sum, [count], hit);
            let hits = cx.b.compute(hits, &[x, at, tables.features, members])?;
            operands.push(hits);
            let any = Scalar::load(7, loops(0..2)).compare(Comparison::Gt, Scalar::index(0));
            holds = of_node(4).equals(Scalar::index(MEMBER)).select(any, holds);
        }
        for (number, mode) in MODES.into_iter().enumerate() {
            if self.modes.contains(&(number as i64)) {
                let decision = feature().compare(mode, of_node(3));
                let meant = of_node(4).equals(Scalar::index(number as i64));
                holds = meant.select(decision, holds);
            }
        }
        let absent = feature().compare(Comparison::Ne, feature());
        let tracked = of_node(5).compare(Comparison::Ne, Scalar::index(0));
        holds = holds.binary(Binary::Or, absent.and(tracked));
        let other = holds.select(Scalar::index(0), Scalar::index(1));
        let next = Scalar::load(6, [node() * Scalar::index(2) + other]);
        Ok(cx.b.compute(Compute::map(dims, next), &operands)?)
    }
}

/// The nodes as constants.
struct Tables {
    modes: ValueId,
    features: ValueId,
    next: ValueId,
    missing: ValueId,
    splits: ValueId,
    members: Option<ValueId>,
}

fn floats(dtype: DType, shape: impl Into<Vec<i64>>, values: &[f64]) -> Result<Tensor, LowerError> {
    let tensor = Tensor::from_f64(TensorType::new(dtype, shape), values);
    tensor.map_err(|error| LowerError::invalid(error.to_string()))
}
