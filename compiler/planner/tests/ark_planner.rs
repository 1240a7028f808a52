//! `--planner=ark` gives the plans that ARK's planner gave.
mod support;

use irc_ark_format::{
    model::Model,
    model::OpKind,
    plan::Architecture,
    plan::{self, Plan},
};
use irc_diag::{Sink, Source, render};
use irc_planner::{Options, Planner, Rules, Target, rules};
use support::{corpus, name, read_model, read_plan, root, text};

/// Models that were planned under a `PlannerContext`; the rules that say the same.
const RULES: [(&str, &str); 6] = [
    ("all_reduce_sm_", "all_reduce_sm.rules.json"),
    ("ctx_disjoint_processors", "ctx_disjoint_processors.rules.json"),
    ("ctx_fused_softmax", "ctx_fused_softmax.rules.json"),
    ("recv_reduce_send_", "recv_reduce_send.rules.json"),
    ("send_recv_sm_", "send_recv_sm.rules.json"),
    ("tutorial_ffn_larger_tile", "tutorial_ffn_larger_tile.rules.json"),
];

fn read_rules(file: &str) -> Rules {
    let path = root().join("compiler/planner/tests/rules").join(file);
    let source = Source::new(path.to_string_lossy(), &text(&path));
    let mut sink = Sink::new();
    let rules = rules::read(&source, &mut sink);
    rules.unwrap_or_else(|| panic!("{}", render(&source, sink.diagnostics(), false, 100)))
}

fn options(plan: &Plan, processors: i64, model: &str) -> Options {
    let target = Target::new(plan.architecture, Some(processors)).expect("a target");
    let stem = model.split('.').next().unwrap_or(model);
    let file = RULES.iter().find(|(name, _)| stem.starts_with(name)).map(|(_, file)| *file);
    let rules = file.map(read_rules).unwrap_or_default();
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
        if !RULES.iter().any(|(name, _)| stem.starts_with(name)) {
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
