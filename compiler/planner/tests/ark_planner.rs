//! `--planner=ark` gives the plans that ARK's planner gave.
mod support;

use irc_ark_format::{
    model::Model,
    model::OpKind,
    plan::Architecture,
    plan::{self, Plan},
};
use irc_planner::{Options, Planner, Target};
use support::{corpus, name, pinned, read_model, read_plan, read_rules, root, text};

fn options(plan: &Plan, processors: i64, model: &str) -> Options {
    let target = Target::new(plan.architecture, Some(processors)).expect("a target");
    let stem = model.split('.').next().unwrap_or(model);
    let rules = pinned(stem).map(read_rules).unwrap_or_default();
    Options { planner: Planner::Ark, rules, ..Options::new(target) }
}

fn planned(model: &Model, options: &Options) -> String {
    let planned = irc_planner::plan(model, options);
    planned.map_or_else(|findings| format!("{findings:?}"), |planned| plan::write(&planned.plan))
}

#[test]
fn plans_of_the_corpus_are_reproduced() {
    let mut wrong = vec![];
    for path in corpus(".plan.json") {
        let expected = read_plan(&path);
        let processors = expected.architecture.max_processors().expect("a known device");
        let file = name(&path);
        let stem = file.split('.').next().unwrap_or(&file);
        for kind in ["model", "virtual.model"] {
            let model = path.with_file_name(format!("{stem}.{kind}.json"));
            let options = options(&expected, processors, stem);
            if planned(&read_model(&model), &options) != text(&path) {
                wrong.push(format!("{file} from {kind}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn plans_that_need_rules_differ_without() {
    for path in corpus(".plan.json") {
        let file = name(&path);
        let stem = file.split('.').next().unwrap_or(&file);
        if pinned(stem).is_none() {
            continue;
        }
        let expected = read_plan(&path);
        let target = Target::new(expected.architecture, None).expect("a target");
        let options = Options { planner: Planner::Ark, ..Options::new(target) };
        let model = read_model(&path.with_file_name(format!("{stem}.model.json")));
        assert_ne!(planned(&model, &options), text(&path), "{file}");
    }
}

#[test]
fn products_without_a_default_are_refused_in_arks_words() {
    let model = read_model(&root().join("examples/ffn.model.json"));
    for (architecture, expected) in [
        (Architecture::Cuda70, "no default config of Matmul on CUDA_70 (InternalError: Unexpected"),
        (Architecture::Cuda90, "no default config of Matmul on CUDA_90 (InternalError: Unexpected"),
        (Architecture::Rocm90a, "no default config of Matmul on ROCM_90A (InternalError"),
        (Architecture::Any, "Unsupported architecture: ANY"),
    ] {
        let target = Target::new(architecture, None).expect("a target");
        let options = Options { planner: Planner::Ark, ..Options::new(target) };
        let findings = irc_planner::plan(&model, &options).expect_err("a refusal");
        let is_product = |node: usize| model.nodes[node].op.kind == OpKind::Matmul;
        for finding in &findings {
            assert!(finding.node.is_some_and(is_product), "{finding:?}");
            assert!(finding.message.contains(expected), "{finding:?}");
        }
    }
}
