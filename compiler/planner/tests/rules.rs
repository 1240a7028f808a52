//! Pins are satisfied, or rejected with a reason.

use crate::support::{read_model, root};
use irc_ark_format::{
    model::{Buffer, DataType, Model, Node, Op, OpKind, Tensor},
    plan::{self, Architecture, Plan, Range},
};
use irc_diag::{Diagnostic, Sink, Source};
use irc_planner::{
    NodeDiagnostic, Options, Planner, Rules, Target,
    cost::{estimate, table},
    rules,
};
use std::collections::BTreeMap;

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
    assert!(found.iter().all(|diagnostic| diagnostic.primary_span().is_some()), "{found:?}");
    found.iter().map(|diagnostic| diagnostic.code).collect()
}

fn planned(model: &Model, planner: Planner, text: &str) -> Result<Plan, Vec<NodeDiagnostic>> {
    let target = Target::new(Architecture::Cuda80, None).expect("a target");
    let options = Options { planner, rules: read(text), ..Options::new(target) };
    irc_planner::plan(model, &options).map(|planned| planned.plan)
}

fn ours(model: &Model, text: &str) -> Plan {
    let plan = planned(model, Planner::Irc, text).expect("a plan");
    assert!(plan::check(&plan).iter().all(|diagnostic| !diagnostic.is_error()));
    assert!(plan::check_model(&plan, model).iter().all(|diagnostic| !diagnostic.is_error()));
    plan
}

fn rejection(model: &Model, text: &str) -> NodeDiagnostic {
    let mut diagnostics = planned(model, Planner::Irc, text).expect_err("a rejection");
    assert!(diagnostics.iter().all(|diagnostic| diagnostic.node.is_some()), "{diagnostics:?}");
    diagnostics.remove(0)
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
fn a_tile_of_a_product_brings_its_warps_and_bytes() {
    let plan = ours(
        &ffn(),
        r#"[{"Match": {"Type": "Matmul"}, "Config": {"TileShapeMNK": [64, 64, 32]}}]"#,
    );
    let ops = plan.task_infos.iter().flat_map(|info| &info.ops);
    let products = ops.filter(|op| op.op.kind == OpKind::Matmul);
    let needs = products.map(|op| (op.config.int("NumWarps"), op.config.int("SramBytes")));
    assert_eq!(needs.collect::<Vec<_>>(), [(Some(4), Some(49_152)); 2]);
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

/// Two independent ops of rows, and their sum.
fn fork() -> Model {
    let dense = |id: u64, buffer: u64| {
        Tensor::dense(id, DataType::Fp16, &[256, 1024], Buffer::local(buffer))
    };
    let op = |kind: OpKind, reads: Vec<Tensor>, buffer: u64| Op {
        kind,
        name: kind.name().to_lowercase(),
        is_virtual: false,
        reads,
        writes: vec![dense(10 + buffer, buffer)],
        results: vec![dense(20 + buffer, buffer)],
        args: BTreeMap::new(),
    };
    let node = |id: u64, producers: Vec<u64>, consumers: Vec<u64>, op: Op| Node {
        id,
        producers,
        consumers,
        op,
    };
    let nodes = vec![
        node(0, vec![], vec![2], op(OpKind::Relu, vec![dense(0, 0)], 2)),
        node(1, vec![], vec![2], op(OpKind::Exp, vec![dense(1, 1)], 3)),
        node(2, vec![0, 1], vec![], op(OpKind::Add, vec![dense(22, 2), dense(23, 3)], 4)),
    ];
    Model { rank: 0, world_size: 1, nodes }
}

#[test]
fn disjoint_processors_run_side_by_side() {
    let pinned = |relu: &str, exp: &str| {
        ours(
            &fork(),
            &format!(
                r#"[{{"Match": {{"Type": "Relu"}}, "Config": {{"Tile": [4, 1024], "NumWarps": 4}},
                     "ProcessorRange": [0, 54], "WarpRange": [0, {relu}]}},
                    {{"Match": {{"Type": "Exp"}}, "Config": {{"Tile": [4, 1024], "NumWarps": 4}},
                     "ProcessorRange": {exp}, "WarpRange": [0, 8]}}]"#
            ),
        )
    };
    let apart = pinned("4", "[54, 108]");
    let cost = estimate(&apart);
    assert_eq!((cost.groups.len(), cost.barriers), (2, 1));
    let ranges: Vec<Range> = cost.groups[0].resources.iter().map(|part| part.processors).collect();
    assert_eq!(ranges, [Range::new(0, 54), Range::new(54, 108)]);
    let text = table(&cost);
    let line = |range: &str| text.lines().find(|line| line.trim_start().starts_with(range));
    assert!(line("[0, 54)").is_some_and(|line| line.ends_with("Relu")), "{text}");
    assert!(line("[54, 108)").is_some_and(|line| line.ends_with("Exp")), "{text}");
    // On processors of both they would split warps in two ways at once.
    let meet = estimate(&pinned("4", "[53, 108]"));
    assert_eq!((meet.groups.len(), meet.barriers), (3, 2));
    assert!(cost.time < meet.time && cost.groups[0].waves == 2, "{text}");
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
    let rejected = |text: &str| rejection(&softmax(), text).message;
    let found = rejected(r#"[{"Match": {"Type": "Exp"}, "ProcessorRange": [100, 200]}]"#);
    assert_eq!(found, "`ProcessorRange` is fixed to [100, 200), and there are 108 processors");
    let text = r#"[{"Match": {"Type": "Exp"}, "Config": {"NumWarps": 4}, "WarpRange": [0, 2]}]"#;
    assert_eq!(rejected(text), "`WarpRange` is fixed to 2 warps, but a task needs 4");
    let found = rejection(&ffn(), r#"[{"Match": {}, "Task": "everything"}]"#).message;
    assert!(found.starts_with("task `everything` cannot hold this op"), "{found}");
    let text = r#"[{"Match": {"Type": "Matmul"}, "Config": {"TileShapeMNK": [32, 32, 32]}}]"#;
    let found = rejection(&ffn(), text).message;
    let expected = "CUDA_80 has no FP32 kernel for the tile 32x32x32; its tiles are \
                    128x256x32 (8 warps, 147456 bytes), 128x128x32 (4 warps, 98304 bytes), \
                    64x64x32 (4 warps, 49152 bytes)";
    assert_eq!(found, expected);
    let text = r#"[{"Match": {"Type": "Matmul"}, "Config": {"TileShapeMNK": [64, 64, 32],
                   "NumWarps": 8}}]"#;
    let found = rejection(&ffn(), text).message;
    assert!(found.contains("for the tile 64x64x32 with 8 warps; its tiles are"), "{found}");
}

#[test]
fn all_invalid_rules_are_reported() {
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
fn a_rule_without_a_match_is_reported() {
    let rules =
        read(r#"[{"Match": {"Type": "Exp"}, "Task": "x"}, {"Match": {"Name": "q"}, "Task": "x"}]"#);
    let found = rules.diagnostics(&softmax());
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].code, found[0].is_error()), ("rules-unmatched", false));
}

/// The text that a diagnostic in rules points at, and its message.
fn placed(text: &str, found: &[Diagnostic]) -> Vec<(String, &'static str, String)> {
    let of = |diagnostic: &Diagnostic| {
        let span = diagnostic.primary_span().expect("a place");
        let help = diagnostic.help.clone().unwrap_or_default();
        (text[span].to_owned(), diagnostic.code, format!("{}; {help}", diagnostic.message))
    };
    found.iter().map(of).collect()
}

#[test]
fn unknown_keys_are_reported_at_the_key() {
    let errors = |text: &str| {
        let mut sink = Sink::new();
        assert_eq!(rules::read(&Source::new("rules.json", text), &mut sink), None, "{text}");
        placed(text, &sink.into_diagnostics())
    };
    let found = errors(r#"[{"Match": {}, "Config": {"TileShpeMNK": [1, 2, 3]}}]"#);
    assert_eq!((found[0].0.as_str(), found[0].1), (r#""TileShpeMNK""#, "rules-unknown-key"));
    assert!(found[0].2.contains("did you mean `TileShapeMNK`?"), "{found:?}");
    let found = errors(r#"[{"Match": {"Type": "ReduceSum"}, "Config": {"Tile": [1, 64]}}]"#);
    assert!(found[0].2.contains("no config of ReduceSum has a key `Tile`"), "{found:?}");
    assert!(found[0].2.contains("valid keys: Granularity, ImplType"), "{found:?}");
    let found = errors(r#"[{"Match": {}, "Config": {"NumWarps": 0, "TileShapeMNK": "big"}}]"#);
    let places: Vec<&str> = found.iter().map(|(place, ..)| place.as_str()).collect();
    assert_eq!(places, [r#""NumWarps""#, r#""TileShapeMNK""#]);
    assert!(found.iter().all(|(_, code, _)| *code == "rules-value"), "{found:?}");
    assert!(found[1].2.contains("expected three positive extents, found \"big\""), "{found:?}");
}

#[test]
fn keys_that_no_matched_op_has_are_reported_at_the_key() {
    let text = r#"[{"Match": {"Name": "exp*"}, "Config": {"ImplType": "WarpWise"}}]"#;
    let found = placed(text, &read(text).diagnostics(&softmax()));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].0.as_str(), found[0].1), (r#""ImplType""#, "rules-unknown-key"));
    let text = r#"[{"Match": {}, "Config": {"Tile": [-1, 8]}}]"#;
    let found = placed(text, &read(text).diagnostics(&softmax()));
    assert_eq!((found[0].0.as_str(), found[0].1), (r#""Tile""#, "rules-value"));
    let text = r#"[{"Match": {}, "Config": {"Tile": [1, 8], "ImplType": "WarpWise"}}]"#;
    assert_eq!(read(text).diagnostics(&softmax()), []);
}
