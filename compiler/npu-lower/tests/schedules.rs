//! Schedules of trees pass all checks, and have programs that pass the verifier.

use irc_diag::Sink;
use irc_npu::verify;
use irc_gemini_format::schedule::{Limits, Schedule, check, write};
use irc_npu_cost::{Machine, Mesh, Model, Network, Objective, Tree, initial, networks};
use irc_npu_lower::{Scheduled, schedule};

/// The schedule of a tree, or of the first tree of searches.
fn scheduled(network: &Network, machine: &Machine, tree: Option<Tree>, batch: u64) -> Schedule {
    let objective = Objective::EDP;
    let mut model = Model::new(network, machine, objective).expect("a machine");
    let (tree, evaluation) = match tree {
        Some(tree) => {
            let evaluation = model.evaluate(&tree).expect("a valid tree");
            (tree, evaluation)
        }
        None => initial(&mut model, network, batch).expect("a first tree"),
    };
    let of = Scheduled {
        network,
        facts: &[],
        machine,
        tree: &tree,
        evaluation: &evaluation,
        objective,
    };
    schedule(&of).expect("a schedule")
}

fn accept(name: &str, made: &Schedule) {
    let limits = Limits::default();
    let found: Vec<_> = check(made, &limits).into_iter().map(|one| (one.code, one.message, one.path)).collect();
    std::fs::write(format!("/tmp/sched_{name}.json"), write(made)).expect("written");
    assert!(found.is_empty(), "{name}: {} {:#?}", found.len(), &found[..found.len().min(12)]);
    let program = irc_npu_emit::emit(made, None).unwrap_or_else(|found| panic!("{name}: {found:#?}"));
    let mut sink = Sink::new();
    verify::verify(&program, None, &verify::Machine::default(), &mut sink);
    let found = sink.into_diagnostics();
    assert!(found.is_empty(), "{name}: {:#?}", &found[..found.len().min(5)]);
}

#[test]
fn first_trees_of_networks_have_schedules_and_programs() {
    for (name, build) in networks::ALL {
        let network = build().expect("a network");
        let machine = Machine::polar(Mesh { width: 4, height: 4, stride: 1 });
        let mut model = Model::new(&network, &machine, Objective::EDP).expect("a machine");
        if initial(&mut model, &network, 1).is_err() {
            println!("{name}: no first tree");
            continue;
        }
        accept(name, &scheduled(&network, &machine, None, 1));
    }
}
