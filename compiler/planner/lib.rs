//! ARK execution plans of ARK models.
//!
//! Nodes keep their order; neighbours whose task index `i` uses only what task index `i` of the
//! others made run back to back in one task: elementwise chains on one grid of tiles, row groups
//! (reductions along the last axis and elementwise ops, a task a row) and matmuls with their
//! elementwise epilogue. Every other step waits for all processors. The plan is checked by the
//! rules of the plan format; what they prove wrong is an error at the node.
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

/// Which planner makes a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planner {
    /// The optimising one.
    #[default]
    Irc,
    /// ARK's, reproduced.
    Ark,
}

impl Planner {
    /// The planner of a name.
    ///
    /// # Errors
    /// The names there are.
    pub fn from_name(name: &str) -> Result<Self, String> {
        match name {
            "irc" => Ok(Planner::Irc),
            "ark" => Ok(Planner::Ark),
            _ => Err(format!("expected the planner irc or ark, found '{name}'")),
        }
    }
}

/// How to plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What for.
    pub target: Target,
    /// Which planner.
    pub planner: Planner,
    /// What is pinned.
    pub rules: Rules,
}

impl Options {
    /// The optimising planner for a target, nothing pinned.
    pub fn new(target: Target) -> Self {
        Self { target, planner: Planner::default(), rules: Rules::default() }
    }
}

/// Something about one node of a model, or about all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDiagnostic {
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
    pub warnings: Vec<NodeDiagnostic>,
}

/// Makes the plan of a valid model.
///
/// # Errors
/// Nodes that the architecture has no kernel for, or that ARK's kernels compute wrongly, or for
/// which what is pinned cannot be.
pub fn plan(model: &Model, options: &Options) -> Result<Planned, Vec<NodeDiagnostic>> {
    let pins = options.rules.pins(model);
    match options.planner {
        Planner::Ark => ark::plan(model, &options.target, &pins),
        Planner::Irc => optimise::plan(model, &options.target, &pins),
    }
}

/// Diagnostics in a plan as diagnostics in its model.
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
