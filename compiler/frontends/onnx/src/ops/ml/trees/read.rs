//! Ensembles from the attributes of their operators.

use super::forest::{Branch, Forest, Mode, Name, Vertex};
use crate::context::{Context, LowerError};
use irc_tl::Comparison;
use std::collections::HashMap;

/// The modes of decisions, by number in version 5; earlier versions have names.
const MODES: [(&str, Comparison); 6] = [
    ("BRANCH_LEQ", Comparison::Le),
    ("BRANCH_LT", Comparison::Lt),
    ("BRANCH_GTE", Comparison::Ge),
    ("BRANCH_GT", Comparison::Gt),
    ("BRANCH_EQ", Comparison::Eq),
    ("BRANCH_NEQ", Comparison::Ne),
];

/// The number of the mode of sets.
const MEMBER: usize = 6;

/// Numbers in an attribute, or in the tensor that may replace it.
pub(super) fn numbers(cx: &Context<'_>, name: &str) -> Result<Option<Vec<f64>>, LowerError> {
    if let Some(constant) = cx.tensor(&format!("{name}_as_tensor"))? {
        let tensor = constant.tensor();
        let tensor = tensor.map_err(|error| LowerError::invalid(error.to_string()))?;
        if tensor.elements() > 0 {
            return Ok(Some(tensor.to_f64()));
        }
    }
    let values = cx.floats(name)?;
    Ok(values.map(|values| values.into_iter().map(f64::from).collect()))
}

fn of_length<T>(name: &str, list: Vec<T>, length: usize) -> Result<Vec<T>, LowerError> {
    if list.len() == length {
        return Ok(list);
    }
    let found = list.len();
    Err(LowerError::invalid(format!("expected {length} elements in `{name}`, found {found}")))
}

/// The target of a leaf, checked.
fn target(target: i64, count: i64) -> Result<usize, LowerError> {
    if (0..count).contains(&target) {
        return Ok(target as usize);
    }
    Err(LowerError::invalid(format!("expected a target from 0 to {}, found {target}", count - 1)))
}

/// The ensemble of an operator of versions 1 to 3; `kind` is the prefix of the attributes of leaves.
pub(super) fn by_tree(cx: &Context<'_>, kind: &str, count: i64) -> Result<Forest, LowerError> {
    let ints = |name: &str| cx.ints(name)?.ok_or_else(|| cx.missing(name));
    let trees = ints("nodes_treeids")?;
    let list = |name: &str| of_length(name, ints(name)?, trees.len());
    let ids = list("nodes_nodeids")?;
    let (yes, no) = (list("nodes_truenodeids")?, list("nodes_falsenodeids")?);
    let features = list("nodes_featureids")?;
    let splits = numbers(cx, "nodes_values")?.ok_or_else(|| cx.missing("nodes_values"))?;
    let splits = of_length("nodes_values", splits, trees.len())?;
    let modes = cx.strings("nodes_modes")?.ok_or_else(|| cx.missing("nodes_modes"))?;
    let modes = of_length("nodes_modes", modes, trees.len())?;
    let tracks = cx.ints("nodes_missing_value_tracks_true")?.unwrap_or_default();

    // Used only for look-ups, so hash order is harmless.
    let mut places = HashMap::with_capacity(trees.len());
    for (at, key) in trees.iter().copied().zip(ids).enumerate() {
        if places.insert(key, at).is_some() {
            let (tree, node) = key;
            return Err(LowerError::invalid(format!("tree {tree} has two nodes {node}")));
        }
    }
    let place = |tree: i64, node: i64| {
        let missing = || LowerError::invalid(format!("tree {tree} has no node {node}"));
        places.get(&(tree, node)).copied().ok_or_else(missing)
    };
    let mut forest = Forest::default();
    for (at, mode) in modes.iter().enumerate() {
        let tree = trees[at];
        let comparison = MODES.iter().find(|(name, _)| name == mode);
        forest.vertices.push(match comparison {
            Some((_, comparison)) => Vertex::Branch(Branch {
                mode: Mode::Compare(*comparison, splits[at]),
                feature: features[at],
                missing: tracks.get(at).is_some_and(|track| *track != 0),
                next: [place(tree, yes[at])?, place(tree, no[at])?],
            }),
            None if mode == "LEAF" => Vertex::Leaf(vec![]),
            None => return Err(LowerError::invalid(format!("unknown mode '{mode}'"))),
        });
        // The first node of a tree is its root.
        if at == 0 || trees[at - 1] != tree {
            forest.roots.push(at);
        }
    }
    forest.names = vec![Name::Node(0, 0); trees.len()];
    places.iter().for_each(|((tree, node), at)| forest.names[*at] = Name::Node(*tree, *node));

    let named = |part: &str| format!("{kind}_{part}");
    let targets = ints(&named("ids"))?;
    let list = |name: String| of_length(&name, ints(&name)?, targets.len());
    let (of_tree, of_node) = (list(named("treeids"))?, list(named("nodeids"))?);
    let name = named("weights");
    let weights = numbers(cx, &name)?.ok_or_else(|| cx.missing(&name))?;
    let weights = of_length(&name, weights, targets.len())?;
    for (at, weight) in weights.into_iter().enumerate() {
        let id = target(targets[at], count)?;
        // Old converters write weights of branches, too.
        if let Vertex::Leaf(entries) = &mut forest.vertices[place(of_tree[at], of_node[at])?] {
            entries.push((id, weight));
        }
    }
    Ok(forest)
}

/// The ensemble of the operator of version 5: branches come before leaves.
pub(super) fn by_position(cx: &Context<'_>, count: i64) -> Result<Forest, LowerError> {
    let ints = |name: &str| cx.ints(name)?.ok_or_else(|| cx.missing(name));
    let given = |name: &str| -> Result<Option<Vec<f64>>, LowerError> {
        let tensor = cx.tensor(name)?.map(|constant| constant.tensor()).transpose();
        Ok(tensor.map_err(|error| LowerError::invalid(error.to_string()))?.map(|it| it.to_f64()))
    };
    let splits = given("nodes_splits")?.ok_or_else(|| cx.missing("nodes_splits"))?;
    let branches = splits.len();
    let modes = given("nodes_modes")?.ok_or_else(|| cx.missing("nodes_modes"))?;
    let modes = of_length("nodes_modes", modes, branches)?;
    let list = |name: &str| of_length(name, ints(name)?, branches);
    let (yes, no) = (list("nodes_truenodeids")?, list("nodes_falsenodeids")?);
    let (yes_leaf, no_leaf) = (list("nodes_trueleafs")?, list("nodes_falseleafs")?);
    let features = list("nodes_featureids")?;
    let tracks = cx.ints("nodes_missing_value_tracks_true")?.unwrap_or_default();
    let targets = ints("leaf_targetids")?;
    let weights = given("leaf_weights")?.ok_or_else(|| cx.missing("leaf_weights"))?;
    let weights = of_length("leaf_weights", weights, targets.len())?;
    let mut members = given("membership_values")?.unwrap_or_default().into_iter();

    let place = |id: i64, is_leaf: i64| {
        let (kind, first, count) = match is_leaf {
            0 => ("node", 0, branches),
            _ => ("leaf", branches, weights.len()),
        };
        let at = usize::try_from(id).ok().filter(|at| *at < count);
        let wrong = || LowerError::invalid(format!("expected a {kind} below {count}, found {id}"));
        Ok::<_, LowerError>(first + at.ok_or_else(wrong)?)
    };
    let mut forest = Forest::default();
    for (at, mode) in modes.iter().enumerate() {
        let mode = match *mode as usize {
            // The sets follow each other, each ended by a NaN.
            MEMBER => Mode::Member(members.by_ref().take_while(|it| !it.is_nan()).collect()),
            number => {
                let mode = MODES.get(number);
                let wrong = || format!("expected a mode up to {MEMBER}, found {number}");
                Mode::Compare(mode.ok_or_else(|| LowerError::invalid(wrong()))?.1, splits[at])
            }
        };
        forest.vertices.push(Vertex::Branch(Branch {
            mode,
            feature: features[at],
            missing: tracks.get(at).is_some_and(|track| *track != 0),
            next: [place(yes[at], yes_leaf[at])?, place(no[at], no_leaf[at])?],
        }));
        forest.names.push(Name::Branch(at));
    }
    for (leaf, (id, weight)) in targets.iter().zip(&weights).enumerate() {
        forest.vertices.push(Vertex::Leaf(vec![(target(*id, count)?, *weight)]));
        forest.names.push(Name::Leaf(leaf));
    }
    let roots = ints("tree_roots")?.into_iter().map(|root| place(root, 0));
    forest.roots = roots.collect::<Result<_, _>>()?;
    Ok(forest)
}
