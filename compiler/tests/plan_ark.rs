//! Plans of every model the repository carries, and of the corpus, for every architecture.
#[path = "support/files.rs"]
mod files;

use files::{corpus, models, root};
use irc::{
    lowering::ark_to_plan,
    planner::{self, Finding, Planned, Target},
};
use irc_ark_format::{
    model::{self, Document, Model, OpKind, Options},
    plan::{self, Architecture},
};
use irc_dialects::ark::{Origins, import};
use irc_mlir::{Capture, Module, OperationLike};
use std::{
    fs,
    path::{Path, PathBuf},
};

fn document(path: &Path) -> Document {
    let text = fs::read_to_string(path).expect("a readable file");
    let source = irc_diag::Source::new(path.to_string_lossy(), &text);
    let mut sink = irc_diag::Sink::new();
    let document = model::parse(&source, &Options::default(), &mut sink);
    document.unwrap_or_else(|| panic!("{}: {:?}", path.display(), sink.into_diagnostics()))
}

fn target(architecture: Architecture) -> Target {
    Target::new(architecture, None).expect("all processors")
}

fn plan_of(model: &Model, architecture: Architecture) -> Result<Planned, Vec<Finding>> {
    planner::plan(model, &planner::Options::new(target(architecture)))
}

/// What must hold of every plan beyond the checker's rules, which the planner applies itself.
fn assert_sound(path: &Path, model: &Model, planned: &Planned) {
    let found = plan::check(&planned.plan);
    assert!(found.iter().all(|finding| !finding.is_error()), "{}: {found:?}", path.display());
    let mut nodes: Vec<usize> = planned.nodes.concat();
    let indices = model.nodes.iter().enumerate();
    let real: Vec<usize> =
        indices.filter(|(_, node)| !node.op.is_virtual).map(|(index, _)| index).collect();
    assert!(nodes.is_sorted(), "{}: nodes keep their order", path.display());
    nodes.dedup();
    assert_eq!(nodes, real, "{}: every node is planned once", path.display());
    let text = plan::write(&planned.plan);
    let source = irc_diag::Source::new("plan", &text);
    let parsed = plan::parse(&source, &Options::default(), &mut irc_diag::Sink::new());
    assert_eq!(parsed.as_ref(), Some(&planned.plan), "{}", path.display());
    assert_eq!(plan::write(&planned.plan), text, "{}", path.display());
}

fn types(planned: &Planned) -> Vec<Vec<OpKind>> {
    let ops = |task: &plan::TaskInfo| task.ops.iter().map(|plan_op| plan_op.op.kind).collect();
    planned.plan.task_infos.iter().map(ops).collect()
}

#[test]
fn examples_are_planned_and_fused() {
    use OpKind::*;
    let fused = |name: &str| {
        let path = root().join("examples").join(name);
        let model = document(&path).model;
        let planned = plan_of(&model, Architecture::Cuda80).expect("a plan");
        assert_sound(&path, &model, &planned);
        types(&planned)
    };
    assert_eq!(
        fused("softmax.model.json"),
        [vec![ReduceMax, Sub, Exp, ReduceSum, Div]],
        "a row is one task"
    );
    assert_eq!(fused("layernorm.model.json").len(), 1);
    assert_eq!(fused("rmsnorm.model.json").len(), 1);
    let ffn = fused("ffn.model.json");
    assert!(ffn.iter().any(|task| task[0] == Matmul && task.len() > 1), "{ffn:?}");
}

#[test]
fn only_models_without_a_kernel_are_refused() {
    let folders = [root().join("examples"), corpus()];
    for path in folders.iter().flat_map(|folder| models(folder)) {
        let model = document(&path).model;
        for architecture in Architecture::ALL {
            match plan_of(&model, architecture) {
                Ok(planned) => assert_sound(&path, &model, &planned),
                Err(findings) => assert_refusal(&path, &model, architecture, &findings),
            }
        }
    }
}

#[test]
fn ranks_agree() {
    let is_rank_0 = |path: &PathBuf| path.to_string_lossy().contains("_rank0of");
    let paths = models(&corpus());
    for first in paths.iter().filter(|path| is_rank_0(path)) {
        let name = first.to_string_lossy();
        let world = document(first).model.world_size;
        let rank = |rank: i64| name.replace("_rank0of", &format!("_rank{rank}of"));
        let plans = (0..world).map(|number| {
            let model = document(Path::new(&rank(number))).model;
            plan_of(&model, Architecture::Cuda80).expect("a plan").plan
        });
        let found = plan::check_ranks(&plans.collect::<Vec<_>>());
        assert!(found.iter().all(|(_, finding)| !finding.is_error()), "{name}: {found:?}");
    }
}

/// A refusal names nodes, and says that there is no kernel or that ARK's would be wrong.
fn assert_refusal(path: &Path, model: &Model, architecture: Architecture, findings: &[Finding]) {
    for Finding { node, message } in findings {
        let kind = node.map(|node| model.nodes[node].op.kind);
        println!("{} {}: {kind:?}: {message}", path.display(), architecture.name());
        assert_eq!(kind, Some(OpKind::Matmul), "{}: {message}", path.display());
        let is_known = ["has no kernel", "tile for Matmul", "are stepped as if"];
        assert!(is_known.iter().any(|known| message.contains(known)), "{message}");
    }
}

#[test]
fn the_dialect_holds_the_plan() {
    for path in models(&root().join("examples")) {
        let document = document(&path);
        let context = irc_dialects::new_context();
        let capture = Capture::new(&context);
        let module: Module<'_> = import(&context, &document.model, Origins::default());
        ark_to_plan::run(&module, &planner::Options::new(target(Architecture::Cuda80)))
            .unwrap_or_else(|_| panic!("{}: {:?}", path.display(), capture.take()));
        assert!(module.as_operation().verify(), "{}: {:?}", path.display(), capture.take());
        let exported = irc_dialects::plan::export(&module).expect("a plan");
        let planned = plan_of(&document.model, Architecture::Cuda80).expect("a plan");
        assert!(exported == planned.plan, "{}", path.display());
    }
}
