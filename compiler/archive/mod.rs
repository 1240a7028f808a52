//! Archives of models: a program as a graph of operators, each a function that every client of the
//! Model Library Format can call.
//!
//! [`plan`] turns the function that calls kernels into a graph: a call for each kernel, each choice and
//! each loop (`draft`), then nodes, storages by live range, constants as parameters (`graph`). Views
//! vanish, for kernels know the shapes of what they are given. [`operators`] writes
//! the functions that clients call around the kernels, in the `llvm` dialect, so that every code
//! generator compiles them.

mod draft;
mod graph;
pub mod operators;

use crate::{
    attributes::KernelInfo, interface::Interface, lowering::plan_memory::program::Function,
};
use irc_mlf::{DataType, graph::Graph, params::Param};
use irc_tl::Constant;
use std::collections::BTreeMap;

/// Most arguments of a function that every client passes.
const MAX_ARGUMENTS: usize = 9;

/// A program as a graph.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The graph.
    pub graph: Graph,
    /// Its parameters, in the order of its inputs.
    pub params: Vec<Param>,
    /// What its nodes call.
    pub operators: Vec<Operator>,
    /// The choices and loops among them, by number of the operator's callee.
    pub steps: Vec<Step>,
    /// Names of the outputs, in order.
    pub outputs: Vec<String>,
}

/// A step of the program that calls functions, not kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its position in the program.
    pub position: usize,
}

/// A function that nodes call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// Its name.
    pub name: String,
    /// What it does.
    pub callee: Callee,
    /// Its arguments: what it reads, then what it writes.
    pub arguments: Vec<Argument>,
    /// Where in these lies what the callee takes: operands, then results.
    pub buffers: Vec<Buffer>,
}

/// What a function does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Callee {
    /// Calls a kernel, with the sizes that it takes.
    Kernel(String, Vec<i64>),
    /// Runs a step of the program: of [`Planned::steps`].
    Step(usize),
    /// Copies each of its operands to a result: so many bytes.
    Copy(Vec<i64>),
}

/// An argument of a function: a dense tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Argument {
    /// Number of its elements.
    pub elements: i64,
    /// Type of an element.
    pub dtype: DataType,
}

/// Memory in an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Buffer {
    /// The argument, by number.
    pub argument: usize,
    /// Bytes from where it begins.
    pub offset: i64,
}

/// Why there is no graph of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What stands in the way.
    pub message: String,
    /// What to do.
    pub help: Option<&'static str>,
}

impl<T: Into<String>> From<T> for Refused {
    fn from(message: T) -> Self {
        Refused { message: message.into(), help: None }
    }
}

/// The graph of a program.
///
/// `weights` are the constants that arguments of the function stand for, by number. Names of functions
/// begin with `prefix`.
///
/// # Errors
/// Why there is no graph of it: sizes that depend on what it is given.
pub fn plan(
    function: &Function<'_, '_>,
    interface: &Interface,
    weights: &[Constant],
    kernels: &BTreeMap<String, KernelInfo>,
    prefix: &str,
) -> Result<Planned, Refused> {
    let draft = draft::draft(function, interface, weights, kernels)?;
    let steps = draft.steps.clone();
    let kind = |callee: &Callee| match callee {
        Callee::Kernel(symbol, _) => {
            kernels.get(symbol).map_or("kernel", |kernel| &kernel.kind).to_owned()
        }
        Callee::Step(_) => "step".to_owned(),
        Callee::Copy(_) => "copy".to_owned(),
    };
    let (graph, params, operators) = graph::write(draft, prefix, kind);
    let outputs = interface.outputs.iter().map(|port| port.name.clone()).collect();
    Ok(Planned { graph, params, operators, steps, outputs })
}
