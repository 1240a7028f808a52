//! Schedules of trees pass all checks, and have programs that pass the verifier.

use irc_diag::{Sink, Source};
use irc_gemini_format::schedule::{Limits, Schedule, Workload, check};
use irc_npu::verify;
use irc_npu_cost::{Machine, Mesh, Model, Network, Objective, Tree, initial, networks};
use irc_npu_lower::{
    Scheduled, Target, allocated, known_layers, program, schedule, stated_layers, tiled, untiled,
};
use std::path::Path;

/// The schedule of a tree, or of the first tree of searches.
pub fn scheduled(network: &Network, machine: &Machine, tree: Option<Tree>, batch: u64) -> Schedule {
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
        target: None,
        tree: &tree,
        evaluation: &evaluation,
        objective,
    };
    schedule(&of).expect("a schedule")
}

fn accept(name: &str, network: &Network, made: &Schedule) {
    let known = known_layers(network, &[], &[]);
    let found = check(made, &Limits::default());
    // A result arrives in this tree long before it is read, which the published model does not count.
    let is_early = name == "trans_cell_4x4_b1_eyeriss_11_SET";
    let expected: &[&str] = if is_early { &["gem-b16-unallocated"] } else { &[] };
    let codes: Vec<_> = found.iter().map(|one| one.code).collect();
    assert_eq!(codes, expected, "{name}: {:#?}", found.first());
    let program = irc_npu_emit::emit_known(made, None, &known)
        .unwrap_or_else(|found| panic!("{name}: {found:#?}"));
    let mut sink = Sink::new();
    verify::verify(&program, None, &verify::Machine::default(), &mut sink);
    let mut found = sink.into_diagnostics();
    // Vector operations of a batch are a warning.
    found.retain(irc_diag::Diagnostic::is_error);
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
        accept(name, &network, &scheduled(&network, &machine, None, 1));
    }
}

#[test]
fn snapshots_share_what_stays_in_a_buffer() {
    let (_, build) = networks::ALL.iter().find(|(name, _)| *name == "resnet").expect("a network");
    let machine = Machine::polar(Mesh { width: 4, height: 4, stride: 1 });
    let made = scheduled(&build().expect("a network"), &machine, None, 1);
    let mut shared = 0;
    for pair in made.cores.iter().flat_map(|core| core.workloads.windows(2)) {
        let [first, second] = [&pair[0].buffer, &pair[1].buffer];
        for resident in first {
            if let Some(same) = second.iter().find(|other| *other == resident) {
                assert!(std::ptr::eq(resident, same));
                shared += 1;
            }
        }
    }
    assert_ne!(shared, 0);
}

/// The published trees on up to 24 cores, with names, networks and machines.
pub fn published_trees() -> Vec<(String, Network, Machine, Tree)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../npu-cost/tests/data/trees");
    let mut all = vec![];
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let words: Vec<&str> = name.rsplitn(6, '_').collect();
        let [_, _, core, batch, mesh, network] = words[..] else { panic!("{name}") };
        let (width, height) = mesh.split_once('x').expect("a mesh");
        let [width, height]: [u64; 2] = [width, height].map(|size| size.parse().expect("a size"));
        // Programs of 64 cores take longer.
        if width * height > 24 {
            continue;
        }
        let build = networks::ALL.iter().find(|(known, _)| *known == network);
        let network = build.expect("a network").1().expect("a network");
        let mesh = Mesh { width, height, stride: width };
        let machine = if core == "polar" { Machine::polar(mesh) } else { Machine::eyeriss(mesh) };
        let text = std::fs::read_to_string(&path).expect("a tree");
        let tree = irc_npu_cost::parse(&Source::new(&name, text), &network, &mut Sink::new());
        let tree = tree.expect("a tree");
        assert_eq!(batch.trim_start_matches('b').parse(), Ok(tree.batch));
        all.push((name, network, machine, tree));
    }
    all
}

#[test]
fn published_trees_have_schedules_and_programs() {
    for (name, network, machine, tree) in published_trees() {
        let batch = tree.batch;
        accept(&name, &network, &scheduled(&network, &machine, Some(tree), batch));
    }
}

/// Schedules with addresses pass the checks, and have the programs of those without.
#[test]
fn addresses_are_allocated() {
    for (name, build) in
        networks::ALL.iter().filter(|(name, _)| ["goog", "resnet", "trans_cell"].contains(name))
    {
        let network = build().expect("a network");
        let machine = Machine::polar(Mesh { width: 4, height: 4, stride: 1 });
        let made = scheduled(&network, &machine, None, 1);
        let known = known_layers(&network, &[], &[]);
        let with = allocated(&made, 1024).unwrap_or_else(|found| panic!("{name}: {found:#?}"));
        let found = check(&with, &Limits::default());
        assert_eq!(found, [], "{name}");
        let program =
            |schedule| irc_npu_emit::emit_known(schedule, None, &known).expect("a program");
        assert!(program(&made) == program(&with), "{name}");
        let found = allocated(&made, 100).expect_err("no room");
        assert_eq!(found.code, "layer-no-address");
    }
}

/// Schedules of one core have tiles, pass the checks, and are those without tiles again.
#[test]
fn schedules_of_one_core_have_tiles() {
    let target: Target = "npu:mesh=1x1,buffer=64MiB,weights=reload".parse().expect("a target");
    let machine = target.machine().expect("a machine");
    for (name, build) in networks::ALL {
        let network = build().expect("a network");
        for batch in [1, 2] {
            let options = irc_npu_schedule::Options { budget: 2000, ..Default::default() };
            let found = irc_npu_schedule::schedule(&network, &machine, batch, &options);
            let found = found.expect("a tree");
            let of = Scheduled {
                network: &found.network,
                facts: &[],
                machine: &machine,
                target: Some(&target),
                tree: &found.tree,
                evaluation: &found.evaluation,
                objective: found.mappings,
            };
            let made = schedule(&of).expect("a schedule");
            let with = tiled(&made, 1 << 26).expect("room");
            let text = irc_gemini_format::schedule::write(&with);
            let mut sink = Sink::new();
            let source = Source::new(name, text);
            let read = irc_gemini_format::schedule::parse(&source, &Default::default(), &mut sink);
            let diagnostics = sink.into_diagnostics();
            assert_eq!(diagnostics, [], "{name}, {batch}");
            assert!(read.as_ref() == Some(&with), "{name}, {batch}: read is not written");
            let again = untiled(&with).unwrap_or_else(|| panic!("{name}, {batch}: no inverse"));
            assert!(again == made, "{name}, {batch}");
            if batch == 1 && ["resnet", "trans_cell"].contains(&name) {
                let program = |of: &Schedule| program(of, None, &stated_layers(of));
                assert!(program(&with).expect("a program") == program(&made).expect("a program"));
            }
        }
    }
}

/// What is wrong with the weights of a product of two results is found.
#[test]
fn results_that_serve_as_weights_are_checked() {
    let target: Target = "npu:mesh=1x1,buffer=16MiB".parse().expect("a target");
    let machine = target.machine().expect("a machine");
    let (_, build) = networks::ALL.into_iter().find(|(name, _)| *name == "bert").expect("known");
    let network = build().expect("a network");
    let made = tiled(&scheduled(&network, &machine, None, 1), 1 << 26).expect("room");
    assert_eq!(check(&made, &Limits::default()), []);
    let is_made = |workload: &&mut Workload| {
        workload.weight.as_ref().is_some_and(|weight| weight.from_ofmap == Some(true))
    };
    let codes = |change: fn(&mut Workload)| {
        let mut made = made.clone();
        change(made.cores[0].workloads.iter_mut().find(is_made).expect("such a workload"));
        let found = check(&made, &Limits::default());
        found.into_iter().map(|one| one.code).collect::<Vec<_>>()
    };
    let resized = codes(|workload| {
        let rows = workload.wl0_buffer.as_mut().and_then(|rows| rows.0.as_mut());
        rows.expect("a row")[0].size += 1;
    });
    assert_eq!(resized, ["gem-z5-row-size"]);
    let elsewhere = codes(|workload| {
        let rows = workload.wl0_buffer.as_mut().and_then(|rows| rows.0.as_mut());
        rows.expect("a row").clear();
    });
    assert!(elsewhere.contains(&"gem-b18-weight-resident"), "{elsewhere:?}");
    let gone = codes(|workload| {
        let weights: Vec<i64> =
            workload.weight.iter().flat_map(|weight| weight.transfers()).collect();
        workload.buffer.retain(|held| !held.transfers().any(|id| weights.contains(&id)));
    });
    assert!(gone.contains(&"gem-b19-weight-source"), "{gone:?}");
    let [several, small] = [
        tiled(
            &scheduled(&network, &Machine::polar(Mesh { width: 4, height: 4, stride: 1 }), None, 1),
            1 << 26,
        ),
        tiled(&scheduled(&network, &machine, None, 1), 1 << 16),
    ];
    assert_eq!(several.expect_err("several cores").code, "layer-one-core");
    assert_eq!(small.expect_err("no room").code, "layer-no-address");
}
