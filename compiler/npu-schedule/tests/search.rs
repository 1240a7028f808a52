//! The search on the published networks.

use irc_npu_cost::{Machine, Mesh, Model, networks};
use irc_npu_schedule::{Options, schedule};

#[test]
fn the_tree_costs_what_is_reported() {
    let network = networks::googlenet().expect("a network");
    let machine = Machine::polar(Mesh { width: 4, height: 4, stride: 1 });
    let options = Options::default();
    let found = schedule(&network, &machine, 1, &options).expect("a schedule");
    let mut model = Model::new(&found.network, &machine, options.objective).expect("a machine");
    assert_eq!(model.evaluate(&found.tree).expect("a valid tree"), found.evaluation);
}
