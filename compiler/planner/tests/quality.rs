//! Plans are no worse than ARK's, by every measure.

use crate::support::{
    compressed, corpus,
    llama::{Llama, SEVEN, THIRTEEN, llama},
    name, pinned, read_model, read_plan, read_rules,
    transformer::{decoder, encoder},
};
use irc_ark_format::{
    model::{Model, OpKind},
    plan::{self, Architecture, Plan},
};
use irc_planner::{
    Options, Planner, Target,
    cost::{Estimate, estimate},
};

fn planned(model: &Model, architecture: Architecture, what: &str) -> Option<Plan> {
    let target = Target::new(architecture, None).expect("a target");
    // The pins of ARK's plan, where it states how ranks communicate.
    let rules = pinned(what).filter(|file| file.contains("_s")).map(read_rules).unwrap_or_default();
    match irc_planner::plan(model, &Options { rules, ..Options::new(target) }) {
        Ok(planned) => {
            let found = plan::check(&planned.plan);
            assert!(found.iter().all(|diagnostic| !diagnostic.is_error()), "{what}: {found:?}");
            Some(planned.plan)
        }
        Err(diagnostics) => {
            println!("{what}: {diagnostics:?}");
            None
        }
    }
}

fn errors(ours: &Estimate, arks: &Estimate, product_tasks: i64) -> Vec<String> {
    let counts = [
        ("groups", ours.groups.len() as f64, arks.groups.len() as f64),
        ("barriers", ours.barriers as f64, arks.barriers as f64),
        ("tasks", ours.tasks as f64, arks.tasks as f64),
        ("arena", ours.memory.arena as f64, arks.memory.arena as f64),
        ("traffic", ours.traffic, arks.traffic),
        ("time", ours.time, arks.time),
    ];
    // Smaller tiles of products fill processors that larger ones leave idle; no other op gets smaller tiles.
    let is_quicker = ours.time < arks.time && ours.tasks <= arks.tasks + product_tasks;
    let counts = counts.into_iter().filter(|(what, ..)| *what != "tasks" || !is_quicker);
    let worse = counts.filter(|(_, ours, arks)| ours > arks);
    worse.map(|(what, ours, arks)| format!("{what} {ours} > {arks}")).collect()
}

/// Tasks that start with a matrix product.
fn product_tasks(plan: &Plan) -> i64 {
    let first = plan.task_infos.iter().filter_map(|info| info.ops.first());
    let products = first.filter(|op| op.op.kind == OpKind::Matmul);
    products.filter_map(|op| op.config.int("NumTasks")).sum()
}

#[test]
fn plans_are_no_worse_than_arks() {
    let mut wrong = vec![];
    for path in corpus(".plan.json") {
        let arks = read_plan(&path);
        let file = name(&path);
        let stem = file.split('.').next().unwrap_or(&file);
        let model = read_model(&path.with_file_name(format!("{stem}.model.json")));
        let Some(ours) = planned(&model, arks.architecture, &file) else { continue };
        let errors = errors(&estimate(&ours), &estimate(&arks), product_tasks(&ours));
        if !errors.is_empty() {
            wrong.push(format!("{file}: {}", errors.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// At most half the groups and the time of ARK's plan, and little more memory than is live at a time.
fn assert_half(what: &str, ours: &Estimate, arks: &Estimate) {
    assert!(ours.groups.len() * 2 <= arks.groups.len(), "{what}: {} groups", ours.groups.len());
    assert!(ours.time * 2.0 <= arks.time, "{what}: {} of {}", ours.time, arks.time);
    let arena = ours.memory.arena as f64 / arks.memory.live_peak as f64;
    assert!(arena <= 1.2, "{what}: {arena}");
}

#[test]
fn layers_of_llama_take_half() {
    for path in compressed(corpus(".model.json")) {
        if !name(&path).starts_with("llama2_") {
            continue;
        }
        for (architecture, suffix) in
            [(Architecture::Cuda80, ".plan."), (Architecture::Rocm942, ".rocm_942.plan.")]
        {
            let what = name(&path).replace(".model.", suffix);
            let arks = estimate(&read_plan(&path.with_file_name(&what)));
            let ours = planned(&read_model(&path), architecture, &what).expect("a plan");
            assert_half(&what, &estimate(&ours), &arks);
        }
    }
}

#[test]
fn generated_layers_take_half() {
    let models = [
        ("7B", llama(SEVEN)),
        ("13B", llama(THIRTEEN)),
        ("encoder", encoder()),
        ("decoder", decoder()),
    ];
    for (what, model) in models {
        for architecture in [Architecture::Cuda80, Architecture::Rocm942] {
            let target = Target::new(architecture, None).expect("a target");
            let options = Options { planner: Planner::Ark, ..Options::new(target) };
            let arks = irc_planner::plan(&model, &options).expect("ARK's plan").plan;
            let ours = planned(&model, architecture, what).expect("a plan");

            assert_eq!(plan::check_model(&ours, &model), []);
            assert_half(what, &estimate(&ours), &estimate(&arks));
        }
    }
}

#[test]
fn as_many_groups_for_each_layer_of_many() {
    let target = Target::new(Architecture::Cuda80, None).expect("a target");
    let groups = |layers: usize| {
        let model = llama(Llama { layers, ..SEVEN });
        let planned = irc_planner::plan(&model, &Options::new(target)).expect("a plan");
        planned.plan.processor_groups.len()
    };
    let (two, three) = (groups(2), groups(3));
    // Fifty layers are two thousand nodes; a planner that grew with their square would not end.
    assert_eq!(groups(50), three + 47 * (three - two));
}
