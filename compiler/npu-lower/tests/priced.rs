//! Schedules cost what their trees cost.

use irc_gemini_format::schedule::{self as gemini, Schedule};
use irc_npu_cost::{Evaluation, Machine, Mesh, Model, Network, Objective, Tree, initial, networks};
use irc_npu_lower::{Scheduled, price, schedule};

/// The first tree of searches, its cost and its schedule.
fn first(network: &Network, machine: &Machine, batch: u64) -> Option<(Tree, Evaluation, Schedule)> {
    let mut model = Model::new(network, machine, Objective::EDP).expect("a machine");
    let (tree, evaluation) = initial(&mut model, network, batch).ok()?;
    let made = schedule(&Scheduled {
        network,
        facts: &[],
        machine,
        target: None,
        tree: &tree,
        evaluation: &evaluation,
        objective: Objective::EDP,
    });
    Some((tree, evaluation, made.expect("a schedule")))
}

/// The schedule as it is read from a file.
fn read_again(made: &Schedule) -> Schedule {
    let source = irc_diag::Source::new("schedule", gemini::write(made));
    let mut sink = irc_diag::Sink::new();
    let options = irc_gemini_format::Options { validate: false, ..Default::default() };
    gemini::parse(&source, &options, &mut sink).expect("a schedule")
}

#[test]
fn a_schedule_costs_what_its_tree_does() {
    for (name, build) in networks::ALL {
        let network = build().expect("a network");
        let machine = Machine::polar(Mesh { width: 4, height: 4, stride: 1 });
        let Some((_, evaluation, made)) = first(&network, &machine, 2) else { continue };
        let mut made = read_again(&made);
        let found = price(&made, &machine, Objective::EDP);
        let found = found.unwrap_or_else(|found| panic!("{name}: {found:#?}"));
        let cost = found.report.cost;
        assert!(found.is_of_tree && found.others.is_empty(), "{name}: {:?}", found.others);
        for node in network.nodes() {
            let own = found.network.find(&node.layer.name).map(|at| &found.network.nodes()[at]);
            let own = own.expect("the layer");
            if own.layer != node.layer || (own.input, own.padding) != (node.input, node.padding) {
                println!("{name} {:?}\n   {:?}", node, own);
            }
        }
        assert_eq!(cost, evaluation.cost, "{name}");
        made.tree = None;
        let found = price(&made, &machine, Objective::EDP).expect("a cost");
        let cost = found.report.cost;
        let ratio = |a: f64, b: f64| a / b;
        println!(
            "{name}: latency {:.4}, energy {:.4}, dram {:.4}, links {:.4}",
            ratio(cost.latency as f64, evaluation.cost.latency as f64),
            ratio(cost.energy, evaluation.cost.energy),
            ratio(cost.parts.dram, evaluation.cost.parts.dram),
            ratio(cost.parts.links, evaluation.cost.parts.links),
        );
    }
}
