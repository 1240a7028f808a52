//! In spaces so small that every tree can be priced, the search finds the best one.

use irc_npu_cost::{Cut, Kind, Machine, Model, Network, Objective, Partition, Scheme, Tree};
use irc_npu_schedule::{Options, schedule};

use crate::support::{chain, diamond, mesh, product};

/// All trees of consecutive layers for so many images, of at most `depth` cuts.
fn trees(layers: std::ops::Range<usize>, images: u64, depth: usize) -> Vec<Tree> {
    let mut found = vec![];
    if layers.len() == 1 {
        found.push(Tree::leaf(layers.start, images));
    }
    if depth == 0 {
        return found;
    }
    for at_a_time in (1..=images).filter(|by| images.is_multiple_of(*by)) {
        for children in sequences(layers.clone(), at_a_time, depth - 1) {
            if children.len() == 1 && at_a_time == images {
                continue;
            }
            for cut in [Cut::Time, Cut::Space] {
                found.push(Tree::cut(cut, images, children.clone()));
            }
        }
    }
    found
}

/// All sequences of trees.
fn sequences(layers: std::ops::Range<usize>, images: u64, depth: usize) -> Vec<Vec<Tree>> {
    if layers.is_empty() {
        return vec![vec![]];
    }
    let mut found = vec![];
    for end in layers.start + 1..=layers.end {
        for first in trees(layers.start..end, images, depth) {
            for mut rest in sequences(end..layers.end, images, depth) {
                rest.insert(0, first.clone());
                found.push(rest);
            }
        }
    }
    found
}

/// The least product of all trees with all schemes.
fn least(network: &Network, machine: &Machine, batch: u64, depth: usize) -> (f64, usize) {
    let mut model = Model::new(network, machine, Objective::EDP).expect("a machine");
    let (mut least, mut count) = (f64::INFINITY, 0);
    for images in (1..=batch).filter(|by| batch.is_multiple_of(*by)) {
        for segments in sequences(0..network.nodes().len(), images, depth) {
            let tree = Tree::cut(Cut::Time, batch, segments);
            // The cores of each layer do not depend on schemes.
            let Ok(found) = model.evaluate(&tree) else { continue };
            let cores: Vec<u64> =
                found.layers.iter().map(|layer| layer.cores.end - layer.cores.start).collect();
            each_scheme(&tree, &cores, &mut |tree| {
                count += 1;
                if let Ok(found) = model.evaluate(tree) {
                    least = least.min(product(&found.cost));
                }
            });
        }
    }
    (least, count)
}

/// Calls `then` with the tree with each combination of schemes.
fn each_scheme(tree: &Tree, cores: &[u64], then: &mut dyn FnMut(&Tree)) {
    let schemes = |count: u64| -> Vec<Scheme> {
        Partition::all(count).into_iter().flat_map(Scheme::all).collect()
    };
    let choices: Vec<Vec<Scheme>> = cores.iter().map(|count| schemes(*count)).collect();
    let total: usize = choices.iter().map(Vec::len).product();
    for mut number in 0..total {
        let mut chosen = vec![];
        for of in &choices {
            chosen.push(of[number % of.len()]);
            number /= of.len();
        }
        then(&with(tree.clone(), &mut chosen.into_iter()));
    }
}

fn with(mut tree: Tree, schemes: &mut dyn Iterator<Item = Scheme>) -> Tree {
    match &mut tree.kind {
        Kind::Leaf(_, scheme) => *scheme = schemes.next(),
        Kind::Cut(_, children) => {
            let all = std::mem::take(children);
            *children = all.into_iter().map(|child| with(child, schemes)).collect();
        }
    }
    tree
}

fn check(network: &Network, machine: &Machine, batch: u64, depth: usize) {
    let (least, count) = least(network, machine, batch, depth);
    assert!(count > 100, "{count} trees");
    let options = Options { budget: 40_000, ..Options::default() };
    let found = schedule(network, machine, batch, &options).expect("a schedule");
    let found = product(&found.evaluation.cost);
    assert!(found <= least * (1.0 + 1e-12), "{found:e} of {least:e}, of {count} trees");
}

#[test]
fn the_best_tree_of_a_chain_is_found() {
    check(&chain(3, 32, 14), &mesh(2, 1), 2, 2);
}

#[test]
fn the_best_tree_of_a_chain_that_does_not_fit_at_once_is_found() {
    let mut machine = mesh(2, 1);
    machine.buffer.size = 64 << 10;
    check(&chain(3, 64, 14), &machine, 2, 2);
}

#[test]
fn the_best_tree_of_a_diamond_is_found() {
    check(&diamond(64, 14), &mesh(2, 1), 1, 2);
}
