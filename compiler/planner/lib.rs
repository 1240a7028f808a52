//! ARK execution plans of ARK models.
//!
//! Nodes keep their order; neighbours whose task index `i` uses only what task index `i` of the
//! others made run back to back in one task: elementwise chains on one grid of tiles, row groups
//! (reductions along the last axis and elementwise ops, a task a row) and matmuls with their
//! elementwise epilogue. Every other step waits for all processors. The plan is checked by the
//! rules of the plan format; violations are errors at the node.
mod ark;
pub mod cost;
mod kernels;
pub mod memory;
mod optimise;
pub mod rules;
mod target;

pub use rules::Rules;
pub use target::{Target, architecture};

use irc_ark_format::{model::Model, plan::Plan};
use irc_diag::Diagnostic;

/// A planner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planner {
    /// The optimising one.
    #[default]
    Irc,
    /// ARK's, reproduced.
    Ark,
}

impl Planner {
    /// Parses the name of a planner.
    ///
    /// # Errors
    /// The valid names.
    pub fn from_name(name: &str) -> Result<Self, String> {
        match name {
            "irc" => Ok(Planner::Irc),
            "ark" => Ok(Planner::Ark),
            _ => Err(format!("expected the planner irc or ark, found '{name}'")),
        }
    }
}

/// Options of planning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The target.
    pub target: Target,
    /// The planner.
    pub planner: Planner,
    /// Pinned configs, ranges and tasks.
    pub rules: Rules,
}

impl Options {
    /// The optimising planner for a target, without pins.
    pub fn new(target: Target) -> Self {
        Self { target, planner: Planner::default(), rules: Rules::default() }
    }
}

/// A message about one node of a model, or about the whole model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDiagnostic {
    /// Index of the node.
    pub node: Option<usize>,
    /// The message.
    pub message: String,
}

/// A plan and the origins of its ops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// By task and op, the index of the node.
    pub nodes: Vec<Vec<usize>>,
    /// Warnings: what is slow, or could not be proven.
    pub warnings: Vec<NodeDiagnostic>,
}

/// Plans a valid model.
///
/// # Errors
/// Nodes without a kernel on the architecture, nodes that ARK's kernels compute wrongly, and pins that
/// cannot be satisfied.
pub fn plan(model: &Model, options: &Options) -> Result<Planned, Vec<NodeDiagnostic>> {
    let pins = options.rules.pins(model);
    match options.planner {
        Planner::Ark => ark::plan(model, &options.target, &pins),
        Planner::Irc => optimise::plan(model, &options.target, &pins),
    }
}

/// Diagnostics of a plan, attributed to the nodes of its model.
fn diagnostics(found: &[Diagnostic], nodes: &[Vec<usize>]) -> Vec<NodeDiagnostic> {
    let diagnostic = |diagnostic: &Diagnostic| {
        let node = diagnostic.path.as_deref().and_then(|path| node_of(path, nodes));
        NodeDiagnostic { node, message: diagnostic.message.clone() }
    };
    found.iter().map(diagnostic).collect()
}

/// The node of the op that a path such as `$.TaskInfos[1].Ops[0].Config` names.
fn node_of(path: &str, nodes: &[Vec<usize>]) -> Option<usize> {
    let (task, rest) = path.strip_prefix("$.TaskInfos[")?.split_once("].Ops[")?;
    let (op, _) = rest.split_once(']')?;
    nodes.get(task.parse::<usize>().ok()?)?.get(op.parse::<usize>().ok()?).copied()
}
