//! ARK execution plans of ARK models.
//!
//! Nodes keep their order; neighbours whose task index `i` uses only what task index `i` of the
//! others made run back to back in one task: elementwise chains on one grid of tiles, row groups
//! (reductions along the last axis and elementwise ops, a task a row) and matmuls with their
//! elementwise epilogue. Every other step waits for all processors. The plan is checked by the
//! rules of the plan format; what they prove wrong is an error at the node.
mod assemble;
mod configs;
mod group;
mod kernel_form;
mod tile;

use irc_ark_format::{
    model::{Model, Op},
    plan::{self, Architecture, Plan},
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
