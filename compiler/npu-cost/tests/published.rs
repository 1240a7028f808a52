//! Costs equal the published figures and the output of the authors' program.

use crate::support;
use crate::support::Run;
use irc_npu_cost::{Cost, Kind, Model, Objective, Scheme, Tree, initial};

fn name(run: &Run) -> String {
    format!("{} {} b{} {}", run.network, run.mesh, run.batch, run.search)
}

/// The value that four printed digits represent.
fn is_printed_as(value: f64, printed: f64) -> bool {
    format!("{value:.3e}") == format!("{printed:.3e}")
}

#[test]
fn initial_trees_cost_what_is_published() {
    for row in support::published() {
        let network = support::network(&row.network).expect("a known network");
        let mut model = Model::new(&network, &row.machine, Objective::EDP).expect("a machine");
        let (_, found) = initial(&mut model, &network, row.batch).expect("an initial tree");
        let (name, cost) = (format!("{} {}", row.network, row.mesh), found.cost);
        assert_eq!(cost.latency, row.latency, "{name}");
        let product = cost.energy * cost.latency as f64;
        assert!(is_printed_as(product, row.product), "{name}: {product:e}");
    }
}

#[test]
fn every_figure_of_every_run_is_equal() {
    for run in support::runs() {
        assert_eq!(cost(&run), run.cost, "{}", name(&run));
    }
}

/// The cost of a run's tree, with its schemes searched again.
fn cost(run: &Run) -> Cost {
    let network = support::network(&run.network).expect("a known network");
    let mut model = Model::new(&network, &run.machine, run.objective).expect("a machine");
    match run.tree(&network) {
        None => initial(&mut model, &network, run.batch).expect("an initial tree").1.cost,
        Some(tree) => model.evaluate(&tree.without_schemes()).expect("a valid tree").cost,
    }
}

#[test]
fn every_layer_gets_the_scheme_that_was_printed() {
    for run in support::runs() {
        let network = support::network(&run.network).expect("a known network");
        let Some(tree) = run.tree(&network) else { continue };
        let printed = schemes(&tree);
        assert_eq!(printed.len(), network.nodes().len());
        let mut model = Model::new(&network, &run.machine, run.objective).expect("a machine");
        let found = model.evaluate(&tree.clone().without_schemes()).expect("a valid tree");
        let layers = found.layers.iter().map(|layer| (layer.layer, layer.scheme));
        assert_eq!(layers.collect::<Vec<_>>(), printed, "{}", name(&run));
        assert_eq!(model.evaluate(&tree).expect("a valid tree"), found, "{}", name(&run));
    }
}

#[test]
fn what_a_model_remembers_changes_no_cost() {
    let runs: Vec<Run> = support::runs().into_iter().filter(|run| run.network == "bert").collect();
    let network = support::network("bert").expect("a known network");
    let mut model = Model::new(&network, &runs[0].machine, Objective::EDP).expect("a machine");
    for run in runs.iter().chain(runs.iter().rev()) {
        assert_eq!((run.machine, run.objective), (runs[0].machine, Objective::EDP));
        let found = match run.tree(&network) {
            None => initial(&mut model, &network, run.batch).expect("an initial tree").1,
            Some(tree) => model.evaluate(&tree.without_schemes()).expect("a valid tree"),
        };
        assert_eq!(found.cost, run.cost, "{}", name(run));
    }
}

/// Layers with the schemes that a tree gives, in its order.
fn schemes(tree: &Tree) -> Vec<(usize, Scheme)> {
    match &tree.kind {
        Kind::Leaf(layer, scheme) => vec![(*layer, scheme.expect("a scheme"))],
        Kind::Cut(_, children) => children.iter().flat_map(schemes).collect(),
    }
}
