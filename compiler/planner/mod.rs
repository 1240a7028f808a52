//! `plan-ark`: from an ARK model to an ARK execution plan.
//!
//! Before: a module with one `ark.model`. After: a `plan.program` in its place. Nodes keep their
//! order; neighbours whose task index `i` uses only what task index `i` of the others made run
//! back to back in one task: elementwise chains on one grid of tiles, row groups (reductions along
//! the last axis and elementwise ops, a task a row) and matmuls with their elementwise epilogue.
//! Every other step waits for all processors. The plan is checked by the rules of the plan format;
//! what they prove wrong is an error at the node.
mod assemble;
mod configs;
mod group;
mod kernel_form;
mod tile;

use irc_ark_format::{
    model::{Model, Op},
    plan::{self, Architecture, Plan},
};
use irc_dialects::ark;
use irc_mlir::{
    BlockRef, Erase, Location, Module, OperationLike, OperationRef, OptionKind, Options, Pass,
    PassError, PassOption, PassResult, RegionLike, context_of, emit_warning,
};

/// Processors where neither the caller nor the architecture says how many: those of an A100.
const DEFAULT_PROCESSORS: i64 = 108;

/// What a plan is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The architecture.
    pub architecture: Architecture,
    /// Processors to use.
    pub processors: i64,
}

impl Target {
    /// A target; without a number of processors all of the architecture's largest device.
    ///
    /// # Errors
    /// No processors, or more than the architecture has.
    pub fn new(architecture: Architecture, processors: Option<i64>) -> Result<Self, String> {
        let most = architecture.max_processors();
        let processors = processors.or(most).unwrap_or(DEFAULT_PROCESSORS);
        let limit = most.unwrap_or(i64::from(i16::MAX));
        if !(1..=limit).contains(&processors) {
            let name = architecture.name();
            return Err(format!("expected 1 to {limit} processors on {name}, found {processors}"));
        }
        Ok(Self { architecture, processors })
    }
}

/// Something about one node of a model, or about all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Index of the node.
    pub node: Option<usize>,
    /// What about it.
    pub message: String,
}

/// A plan and where its ops come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// By task and op, the index of the node.
    pub nodes: Vec<Vec<usize>>,
    /// What costs or cannot be proven.
    pub warnings: Vec<Finding>,
}

/// Makes the plan of a valid model.
///
/// # Errors
/// Nodes that the architecture has no kernel for, or that ARK's kernels compute wrongly.
pub fn plan(model: &Model, target: &Target) -> Result<Planned, Vec<Finding>> {
    let real = model.nodes.iter().enumerate().filter(|(_, node)| !node.op.is_virtual);
    let ops: Vec<(usize, &Op)> = real.map(|(index, node)| (index, &node.op)).collect();
    let ops = kernel_form::rewrite(&ops, model);
    let drafts = group::group(&ops, target)?;
    let (plan, nodes) = assemble::assemble(model, target, drafts);
    let (errors, warnings): (Vec<_>, Vec<_>) =
        plan::check(&plan).into_iter().partition(irc_diag::Diagnostic::is_error);
    let finding = |diagnostic: irc_diag::Diagnostic| {
        let node = diagnostic.path.as_deref().and_then(|path| node_of(path, &nodes));
        Finding { node, message: diagnostic.message }
    };
    if !errors.is_empty() {
        return Err(errors.into_iter().map(finding).collect());
    }
    let warnings = warnings.into_iter().map(finding).collect();
    Ok(Planned { plan, nodes, warnings })
}

/// The node of the op that a path such as `$.TaskInfos[1].Ops[0].Config` names.
fn node_of(path: &str, nodes: &[Vec<usize>]) -> Option<usize> {
    let (task, rest) = path.strip_prefix("$.TaskInfos[")?.split_once("].Ops[")?;
    let (op, _) = rest.split_once(']')?;
    nodes.get(task.parse::<usize>().ok()?)?.get(op.parse::<usize>().ok()?).copied()
}

/// The pass `plan-ark`.
pub struct PlanArk;

impl Pass for PlanArk {
    fn name(&self) -> &'static str {
        "plan-ark"
    }

    fn description(&self) -> &'static str {
        "plan an ARK model: fuse nodes into tasks and spread the tasks over processors"
    }

    fn options(&self) -> &'static [PassOption] {
        &[
            PassOption {
                name: "arch",
                help: "architecture: ANY, CUDA_70, CUDA_80, CUDA_90, ROCM_90A, ROCM_942",
                default: "CUDA_80",
                kind: OptionKind::String,
            },
            PassOption {
                name: "processors",
                help: "processors to use; 0 for all of the architecture's largest device",
                default: "0",
                kind: OptionKind::Integer,
            },
        ]
    }

    fn dialects(&self) -> &'static [&'static str] {
        &["plan"]
    }

    fn run(&self, op: OperationRef<'_, '_>, options: &Options) -> PassResult {
        let name = options.text("arch");
        let target = architecture(name).and_then(|architecture| {
            let processors = options.integer("processors");
            Target::new(architecture, (processors != 0).then_some(processors))
        });
        let target = target
            .map_err(|message| PassError::at(&op, format!("option of plan-ark: {message}")))?;
        lower(op, &target)
    }
}

/// The architecture of a name.
///
/// # Errors
/// The names there are.
pub fn architecture(name: &str) -> Result<Architecture, String> {
    Architecture::from_name(name).ok_or_else(|| {
        let known: Vec<_> = Architecture::ALL.iter().map(|known| known.name()).collect();
        format!("expected an architecture of {}, found '{name}'", known.join(", "))
    })
}

/// Replaces the `ark.model` of a module by its plan, outside a pass pipeline.
///
/// # Errors
/// After a diagnostic at each node concerned.
pub fn run(module: &Module<'_>, target: &Target) -> PassResult {
    lower(module.as_operation(), target)
}

fn lower(module: OperationRef<'_, '_>, target: &Target) -> PassResult {
    let model_op = ark::model_op(module)?;
    let nodes = ark::nodes(model_op)?;
    let model = ark::model_of(model_op, &nodes)?;
    let ops: Vec<OperationRef<'_, '_>> = nodes.iter().map(|(op, _)| *op).collect();
    let at = |finding: &Finding| finding.node.map_or(model_op, |node| ops[node]);
    let planned = plan(&model, target).map_err(|findings| {
        // All are reported; the marker of any of them says that the pass failed.
        let report = |finding: &Finding| PassError::at(&at(finding), &finding.message);
        let errors: Vec<PassError> = findings.iter().map(report).collect();
        errors.first().copied().unwrap_or_else(|| PassError::at(&model_op, "no plan was found"))
    })?;
    for warning in &planned.warnings {
        emit_warning(&at(warning), &warning.message);
    }
    let context = context_of(&module);
    let source = |task: usize, op: usize| -> (u64, Location<'_>) {
        let node = planned.nodes[task][op];
        (model.nodes[node].id, ops[node].location())
    };
    let block = module.region(0).ok().and_then(|region| region.first_block());
    let block: BlockRef<'_, '_> = block.expect("a module has a block");
    irc_dialects::plan::build(context, block, &planned.plan, model_op.location(), &source);
    model_op.erase();
    Ok(())
}
