//! No segment costs less than its lower bound.

use irc_npu_cost::{Cut, Machine, Mesh, Model, Network, Objective, Tree};
use irc_npu_schedule::{Bounds, Options, schedule};

use crate::support::{chain, mesh, published};

/// Prices flat cuts of all short runs of layers; returns how many are valid.
fn check(network: &Network, machine: &Machine, batch: u64, images: u64) -> usize {
    let bounds = Bounds::new(network, machine, batch);
    let mut model = Model::new(network, machine, Objective::EDP).expect("a machine");
    let (count, mut valid) = (network.nodes().len(), 0);
    for first in 0..count {
        for end in first + 1..=count.min(first + 5) {
            let bound = bounds.of(first..end, images);
            for cut in [Cut::Time, Cut::Space] {
                for at_a_time in [1, images] {
                    let leaves = (first..end).map(|layer| Tree::leaf(layer, at_a_time)).collect();
                    let tree = Tree::cut(cut, images, leaves);
                    let Ok(found) = model.segment(&tree, batch, &[]) else { continue };
                    valid += 1;
                    let text = tree.text(network);
                    assert!(found.cost.latency >= bound.latency, "{bound:?} {found:?}\n{text}");
                    assert!(found.cost.energy >= bound.energy, "{bound:?} {found:?}\n{text}");
                }
            }
        }
    }
    valid
}

#[test]
fn flat_cuts_of_published_networks_cost_at_least_their_bounds() {
    for name in ["bert", "dense", "goog", "gpt_decode", "ires", "resnext50", "trans_cell"] {
        let network = published(name);
        let valid = check(&network, &mesh(2, 2), 4, 2);
        assert!(valid > network.nodes().len(), "{name}: {valid}");
    }
    let eyeriss = Machine::eyeriss(Mesh { width: 3, height: 2, stride: 1 });
    assert!(check(&published("resnet"), &eyeriss, 2, 2) > 72);
    assert!(check(&chain(4, 3, 7), &mesh(3, 3), 8, 4) > 4);
}

#[test]
fn the_bound_of_the_whole_is_one_of_every_schedule() {
    for (name, batch) in [("resnet", 1), ("goog", 4), ("vgg", 2)] {
        let (network, machine) = (published(name), mesh(4, 4));
        let bound = Bounds::new(&network, &machine, batch).of(0..network.nodes().len(), batch);
        let options = Options { budget: 2000, ..Options::default() };
        let cost =
            schedule(&network, &machine, batch, &options).expect("a schedule").evaluation.cost;
        assert!(cost.latency >= bound.latency && cost.energy >= bound.energy, "{name}");
        // And it is not far: a bound of nothing would also hold.
        assert!(cost.latency < 6 * bound.latency && cost.energy < 10.0 * bound.energy, "{name}");
    }
}
