//! What is pinned is obeyed, or refused with a reason.
mod support;

use irc_ark_format::{
    model::{Model, OpKind},
    plan::{self, Architecture, Plan, Range},
};
use irc_diag::{Sink, Source};
use irc_planner::{Finding, Options, Planner, Rules, Target, rules};
use support::{read_model, root};

fn softmax() -> Model {
    read_model(&root().join("examples/softmax.model.json"))
}

fn ffn() -> Model {
    read_model(&root().join("examples/ffn.model.json"))
}

fn read(text: &str) -> Rules {
    let mut sink = Sink::new();
    let rules = rules::read(&Source::new("rules.json", text), &mut sink);
    rules.unwrap_or_else(|| panic!("{:?}", sink.into_diagnostics()))
}

fn codes(text: &str) -> Vec<&'static str> {
    let mut sink = Sink::new();
    assert_eq!(rules::read(&Source::new("rules.json", text), &mut sink), None, "{text}");
    let found = sink.into_diagnostics();
    assert!(found.iter().all(|finding| finding.primary_span().is_some()), "{found:?}");
    found.iter().map(|finding| finding.code).collect()
}

fn planned(model: &Model, planner: Planner, text: &str) -> Result<Plan, Vec<Finding>> {
    let target = Target::new(Architecture::Cuda80, None).expect("a target");
    let options = Options { planner, rules: read(text), ..Options::new(target) };
    irc_planner::plan(model, &options).map(|planned| planned.plan)
}

fn ours(model: &Model, text: &str) -> Plan {
    let plan = planned(model, Planner::Irc, text).expect("a plan");
    assert!(plan::check(&plan).iter().all(|finding| !finding.is_error()));
    assert!(plan::check_model(&plan, model).iter().all(|finding| !finding.is_error()));
    plan
}

fn refusal(model: &Model, text: &str) -> Finding {
    let mut findings = planned(model, Planner::Irc, text).expect_err("a refusal");
    assert!(findings.iter().all(|finding| finding.node.is_some()), "{findings:?}");
    findings.remove(0)
}

#[test]
fn a_tile_is_obeyed_and_its_tasks_counted() {
    let plan = ours(&softmax(), r#"[{"Match": {"Type": "Exp"}, "Config": {"Tile": [2, 32]}}]"#);
    let ops = plan.task_infos.iter().flat_map(|info| &info.ops);
    let exp = ops.clone().find(|op| op.op.kind == OpKind::Exp).expect("the op");
    assert_eq!(exp.config.ints("Tile"), Some(&[2, 32][..]));
    assert_eq!(exp.config.int("NumTasks"), plan::derived_tasks(exp));
}

#[test]
fn later_rules_win_key_by_key() {
    let text = r#"[
        {"Match": {}, "Config": {"NumWarps": 2, "Tile": [1, 64]}},
        {"Match": {"Name": "e?p*", "DataType": "FP32"}, "Config": {"NumWarps": 4}}
    ]"#;
    let plan = planned(&softmax(), Planner::Ark, text).expect("a plan");
    let of = |kind: OpKind| {
        let ops = plan.task_infos.iter().flat_map(|info| &info.ops);
        let op = ops.clone().find(|op| op.op.kind == kind).expect("the op");
        (op.config.int("NumWarps"), op.config.ints("Tile").map(<[i64]>::to_vec))
    };
    assert_eq!(of(OpKind::Exp), (Some(4), Some(vec![1, 64])));
    assert_eq!(of(OpKind::Div), (Some(2), Some(vec![1, 64])));
}

#[test]
fn processors_are_obeyed_and_barriers_stay() {
    let text =
        r#"[{"Match": {"Type": ["Exp", "Sub"]}, "ProcessorRange": [8, 24], "WarpRange": [0, 8]}]"#;
    let plan = ours(&softmax(), text);
    let ranges = plan.processor_groups.iter().flat_map(|group| &group.resource_groups);
    let pinned = Range::new(8, 24);
    assert_eq!(ranges.filter(|resources| resources.processor_range == pinned).count(), 2);
}

#[test]
fn ops_of_one_task_share_it() {
    let text = r#"[{"Match": {"Type": ["ReduceMax", "Sub"]}, "Task": "a"},
                   {"Match": {"Type": ["Exp", "ReduceSum", "Div"]}, "Task": "b"}]"#;
    let plan = ours(&softmax(), text);
    let sizes: Vec<usize> = plan.task_infos.iter().map(|info| info.ops.len()).collect();
    assert_eq!(sizes, [2, 3]);
    let plan = planned(&softmax(), Planner::Ark, r#"[{"Match": {}, "Task": "all"}]"#);
    assert_eq!(plan.expect("a plan").task_infos.len(), 1);
}

#[test]
fn what_cannot_be_obeyed_says_why() {
    let refused = |text: &str| refusal(&softmax(), text).message;
    let found = refused(r#"[{"Match": {"Type": "Exp"}, "ProcessorRange": [100, 200]}]"#);
    assert_eq!(found, "`ProcessorRange` is pinned to [100, 200), and there are 108 processors");
    let text = r#"[{"Match": {"Type": "Exp"}, "Config": {"NumWarps": 4}, "WarpRange": [0, 2]}]"#;
    assert_eq!(refused(text), "`WarpRange` is pinned to 2 warps, a task needs 4");
    let found = refusal(&ffn(), r#"[{"Match": {}, "Task": "everything"}]"#).message;
    assert!(found.starts_with("task `everything` cannot hold this op"), "{found}");
    let text = r#"[{"Match": {"Type": "Matmul"}, "Config": {"TileShapeMNK": [32, 32, 32]}}]"#;
    let found = refusal(&ffn(), text).message;
    assert!(found.contains("no FP32 kernel for the tile 32x32x32"), "{found}");
}

#[test]
fn wrong_rules_are_all_told() {
    assert_eq!(codes("{"), ["rules-syntax"]);
    assert_eq!(codes(""), ["rules-syntax"]);
    assert_eq!(codes(&"[".repeat(100_000)), ["rules-syntax"]);
    assert_eq!(codes("{}"), ["rules-value"]);
    assert_eq!(codes(r#"[{"Config": {"Tile": [1, 2]}}]"#), ["rules-missing-key"]);
    assert_eq!(codes(r#"[{"Match": {}}]"#), ["rules-value"]);
    assert_eq!(codes(r#"[{"Match": {"Shape": [0]}, "Task": "x"}]"#), ["rules-value"]);
    assert_eq!(
        codes(r#"[{"Match": {}, "Task": 1, "Tsk": 2}]"#),
        ["rules-unknown-key", "rules-value"]
    );
    assert_eq!(codes(r#"[{"Match": {}, "Match": {}, "Task": "x"}]"#), ["rules-duplicate-key"]);
    assert_eq!(
        codes(r#"[{"Match": {"Type": "Mull"}, "Task": "x"}, {"Match": {}, "SramRange": [2, 1]}]"#),
        ["rules-value", "rules-value"]
    );
}

#[test]
fn a_rule_that_matches_nothing_is_told() {
    let rules =
        read(r#"[{"Match": {"Type": "Exp"}, "Task": "x"}, {"Match": {"Name": "q"}, "Task": "x"}]"#);
    let found = rules.unmatched(&softmax());
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].code, found[0].is_error()), ("rules-unmatched", false));
}
