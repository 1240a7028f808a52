//! Archives of models: a program as a graph of operators, each a function that every client of the
//! Model Library Format can call.
//!
//! [`plan`] turns the function that calls kernels into a graph: a call for each kernel, each branch and
//! each loop (`draft`), then nodes, storages by live range, constants as parameters (`graph`). Views
//! vanish, as kernels know the shapes of their operands. [`operators`] writes the functions that clients
//! call around the kernels, in the `llvm` dialect, so that every code generator compiles them.

mod draft;
mod graph;
mod open;
pub mod operators;

pub use open::{plan_kernel, plan_open};

use crate::{
    attributes::KernelInfo, interface::Interface, lowering::plan_memory::program::Function,
};
use irc_mlf::{DataType, graph::Graph, params::Param};
use irc_tl::Constant;
use std::collections::BTreeMap;

/// Maximum number of arguments of a function that every client supports.
const MAX_ARGUMENTS: usize = 9;

/// A program as a graph.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The graph.
    pub graph: Graph,
    /// Its parameters, in the order of its inputs.
    pub params: Vec<Param>,
    /// The functions that its nodes call.
    pub operators: Vec<Operator>,
    /// The branches and loops among them, by number of the operator's callee.
    pub steps: Vec<Step>,
    /// Names of the outputs, in order.
    pub outputs: Vec<String>,
}

/// A step of the program that calls functions instead of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its position in the program.
    pub position: usize,
}

/// A function that nodes of the graph call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// Its name.
    pub name: String,
    /// What it calls.
    pub callee: Callee,
    /// Its arguments: inputs, then results.
    pub arguments: Vec<Argument>,
    /// The places of the callee's operands, then of its results, in the arguments.
    pub buffers: Vec<Buffer>,
}

/// What a function calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Callee {
    /// A kernel, with the sizes that it takes.
    Kernel(String, Vec<i64>),
    /// A step of the program: one of [`Planned::steps`].
    Step(usize),
    /// The program with so many inputs, at these extents of them, one after the other.
    Program {
        /// Number of inputs.
        inputs: usize,
        /// Their extents.
        extents: Vec<i64>,
    },
    /// A kernel for a GPU, which only irc's runtime runs.
    Gpu,
    /// A copy of each operand to a result, with its number of bytes.
    Copy(Vec<i64>),
}

/// An argument of a function: a dense tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Argument {
    /// Number of elements.
    pub elements: i64,
    /// The element type.
    pub dtype: DataType,
}

/// A range of memory in an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Buffer {
    /// The argument, by number.
    pub argument: usize,
    /// The offset from its start in bytes.
    pub offset: i64,
}

/// Why a program has no graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveError {
    /// The reason.
    pub message: String,
    /// A hint.
    pub help: Option<String>,
}

impl<T: Into<String>> From<T> for ArchiveError {
    fn from(message: T) -> Self {
        ArchiveError { message: message.into(), help: None }
    }
}

/// The graph of a program.
///
/// `weights` are the constants that are arguments of the function, by number. Names of functions begin with
/// `prefix`.
///
/// # Errors
/// If the program has no graph because sizes depend on its inputs.
pub fn plan(
    function: &Function<'_, '_>,
    interface: &Interface,
    weights: &[Constant],
    kernels: &BTreeMap<String, KernelInfo>,
    prefix: &str,
) -> Result<Planned, ArchiveError> {
    let draft = draft::draft(function, interface, weights, kernels)?;
    let steps = draft.steps.clone();
    let (graph, params, operators) = graph::write(draft, prefix, |callee| kind(callee, kernels));
    let outputs = interface.outputs.iter().map(|port| port.name.clone()).collect();
    Ok(Planned { graph, params, operators, steps, outputs })
}

/// A word that describes a function by what it calls.
fn kind(callee: &Callee, kernels: &BTreeMap<String, KernelInfo>) -> String {
    match callee {
        Callee::Kernel(symbol, _) => {
            kernels.get(symbol).map_or("kernel", |kernel| &kernel.kind).to_owned()
        }
        Callee::Step(_) => "step".to_owned(),
        Callee::Program { .. } => "program".to_owned(),
        Callee::Gpu => "gpu".to_owned(),
        Callee::Copy(_) => "copy".to_owned(),
    }
}
