//! `plan-ark`: from an ARK model to an ARK execution plan.
//!
//! Before: a module with one `ark.model`. After: a `plan.program` in its place, whose ops have the
//! locations of their nodes. Errors of the planner are reported at the nodes.

use irc_dialects::ark;
use irc_mlir::{
    BlockRef, Erase, Location, Module, OperationLike, OperationRef, OptionKind, Options, Pass,
    PassError, PassOption, PassResult, RegionLike, context_of, emit_warning,
};
use irc_planner::{NodeDiagnostic, Planner, Target, architecture, plan};

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
            PassOption {
                name: "planner",
                help: "irc, the optimising planner, or ark, ARK's own reproduced",
                default: "irc",
                kind: OptionKind::String,
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
        let wrong = |message| PassError::at(&op, format!("option of plan-ark: {message}"));
        let planner = Planner::from_name(options.text("planner")).map_err(wrong)?;
        lower(
            op,
            &irc_planner::Options { planner, ..irc_planner::Options::new(target.map_err(wrong)?) },
        )
    }
}

/// Replaces the `ark.model` of a module by its plan, outside a pass pipeline.
///
/// # Errors
/// After a diagnostic at each affected node.
pub fn run(module: &Module<'_>, options: &irc_planner::Options) -> PassResult {
    lower(module.as_operation(), options)
}

fn lower(module: OperationRef<'_, '_>, options: &irc_planner::Options) -> PassResult {
    let model_op = ark::model_op(module)?;
    let nodes = ark::nodes(model_op)?;
    let model = ark::model_of(model_op, &nodes)?;
    let ops: Vec<OperationRef<'_, '_>> = nodes.iter().map(|(op, _)| *op).collect();
    let at = |diagnostic: &NodeDiagnostic| diagnostic.node.map_or(model_op, |node| ops[node]);
    let planned = plan(&model, options).map_err(|diagnostics| {
        // All are reported; the marker of any of them marks the pass as failed.
        let report =
            |diagnostic: &NodeDiagnostic| PassError::at(&at(diagnostic), &diagnostic.message);
        let errors: Vec<PassError> = diagnostics.iter().map(report).collect();
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
