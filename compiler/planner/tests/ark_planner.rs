//! `--planner=ark` writes the same plans as ARK's planner.

use crate::support::{corpus, name, pinned, read_model, read_plan, read_rules, root, text};
use irc_ark_format::{
    model::Model,
    model::OpKind,
    plan::Architecture,
    plan::{self, Plan},
};
use irc_diag::{Sink, Source};
use irc_planner::{Options, Planner, Target, rules};

fn options(plan: &Plan, processors: i64, model: &str) -> Options {
    let target = Target::new(plan.architecture, Some(processors)).expect("a target");
    let stem = model.split('.').next().unwrap_or(model);
    let rules = pinned(stem).map(read_rules).unwrap_or_default();
    Options { planner: Planner::Ark, rules, ..Options::new(target) }
}

fn planned(model: &Model, options: &Options) -> String {
    let planned = irc_planner::plan(model, options);
    planned
        .map_or_else(|diagnostics| format!("{diagnostics:?}"), |planned| plan::write(&planned.plan))
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
fn products_without_a_default_are_rejected_in_arks_words() {
    let model = read_model(&root().join("examples/ffn.model.json"));
    for (architecture, expected) in [
        (Architecture::Cuda70, "no default config of Matmul on CUDA_70 (InternalError: Unexpected"),
        (Architecture::Cuda90, "no default config of Matmul on CUDA_90 (InternalError: Unexpected"),
        (Architecture::Rocm90a, "no default config of Matmul on ROCM_90A (InternalError"),
        (Architecture::Any, "Unsupported architecture: ANY"),
    ] {
        let target = Target::new(architecture, None).expect("a target");
        let options = Options { planner: Planner::Ark, ..Options::new(target) };
        let diagnostics = irc_planner::plan(&model, &options).expect_err("a rejection");
        let is_product = |node: usize| model.nodes[node].op.kind == OpKind::Matmul;
        for diagnostic in &diagnostics {
            assert!(diagnostic.node.is_some_and(is_product), "{diagnostic:?}");
            assert!(diagnostic.message.contains(expected), "{diagnostic:?}");
            let prefix = "ARK's planner rejects this model: ";
            assert!(diagnostic.message.starts_with(prefix), "{diagnostic:?}");
        }
    }
}

#[test]
fn a_pinned_tile_replaces_the_tile_of_ark() {
    let model = read_model(&root().join("examples/ffn.model.json"));
    let target = Target::new(Architecture::Cuda80, None).expect("a target");
    let with = |config: &str| {
        let text = format!(r#"[{{"Match": {{"Type": "Matmul"}}, "Config": {config}}}]"#);
        let mut sink = Sink::new();
        let rules = rules::read(&Source::new("rules.json", text), &mut sink).expect("rules");
        let options = Options { planner: Planner::Ark, rules, ..Options::new(target) };
        irc_planner::plan(&model, &options)
    };
    let products = |config: &str| -> Vec<[i64; 3]> {
        let plan = with(config).expect("a plan").plan;
        let ops = plan.task_infos.iter().flat_map(|info| &info.ops);
        let ops = ops.filter(|op| op.op.kind == OpKind::Matmul);
        let key = |op: &plan::PlanOp, key: &str| op.config.int(key).expect("a number");
        ops.map(|op| ["NumWarps", "SramBytes", "NumTasks"].map(|name| key(op, name))).collect()
    };
    // M=64 N=512 K=128 and M=64 N=128 K=512: ARK's 128x256x32 divides neither.
    let tile = r#"{"TileShapeMNK": [64, 64, 32]}"#;
    assert_eq!(products(tile), [[4, 49_152, 8], [4, 49_152, 2]]);
    let counted = r#"{"TileShapeMNK": [64, 64, 32], "NumTasks": 3}"#;
    assert_eq!(products(counted), [[4, 49_152, 3], [4, 49_152, 3]]);
    let rejected = with(r#"{"TileShapeMNK": [32, 32, 32]}"#).expect_err("a rejection");
    let expected = "CUDA_80 has no FP32 kernel for the tile 32x32x32; its tiles are";
    assert!(rejected[0].message.starts_with(expected), "{rejected:?}");
}
