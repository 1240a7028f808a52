//! Costs equal the output of Gemini's program.

use crate::support;
use irc_npu_cost::{Model, Objective};

#[test]
fn every_figure_of_every_placed_run_is_equal() {
    for run in support::placed_runs() {
        let network = support::network(&run.network).expect("a known network");
        let (tree, placements) = run.tree(&network);
        let mut model = Model::new(&network, &run.machine, Objective::EDP).expect("a machine");
        let found = model.evaluate_placed(&tree, &placements).expect("a valid tree");
        let layers = run.nodes().into_iter().filter(|(is_layer, ..)| *is_layer);
        for (layer, (_, delay, energy)) in found.layers.iter().zip(layers) {
            let name = &network.nodes()[layer.layer].layer.name;
            assert_eq!(
                (layer.cost.latency, layer.cost.energy),
                (delay, energy),
                "{} {name}",
                run.name
            );
        }
        let cost = found.cost;
        assert_eq!(vec![cost.latency as f64, cost.energy], run.comment("total"), "{}", run.name);
        let parts = run.comment("parts");
        let ours = [
            cost.parts.buffer,
            cost.parts.local,
            cost.parts.bus,
            cost.parts.compute,
            cost.parts.links,
        ];
        let theirs = [parts[0], parts[1], parts[2], parts[3], parts[4] + parts[5]];
        assert_eq!((ours, cost.parts.dram), (theirs, parts[6]), "{}", run.name);
    }
}
