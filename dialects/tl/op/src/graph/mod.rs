//! Programs of the tensor level as plain data.
//!
//! An importer builds a [`Graph`] with a [`Builder`] before any MLIR exists: values in
//! single assignment, nodes in execution order, control flow as nodes with nested
//! graphs. [`Graph::eval`] is the reference evaluator.
//!
//! Sizes may depend on *symbols*: a [`Symbol`] defines where its value comes from at run time (a
//! dimension of an input, or an element of an integer value, which may be computed). [`Check`]s are
//! relations between sizes that must hold.

mod builder;
mod dependencies;
mod eval;
mod flops;
mod part;
mod prune;
mod sizes;

pub use builder::{BuildError, Builder, Built};
pub use dependencies::Dependencies;
pub use eval::GraphError;

use crate::{Algorithm, DType, Dim, Function, Op, Scalar, Tensor, TensorError, TensorType, Type};
use bytes::Bytes;
use irc_tensor::Strings;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A value of a [`Graph`], by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub usize);

/// A program of the tensor level.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Graph {
    /// The type of every value.
    pub types: Vec<Type>,
    /// The inputs and their unique names.
    pub inputs: Vec<(String, ValueId)>,
    /// The nodes, in execution order.
    pub nodes: Vec<Node>,
    /// The outputs and their names.
    pub outputs: Vec<(String, ValueId)>,
    /// The symbols that sizes depend on, in an order in which they can be computed.
    pub symbols: Vec<Symbol>,
    /// What must hold at run time.
    pub checks: Vec<Check>,
    /// Inputs that no node of the source reads before some of their elements have been written: they
    /// exist so that elements that are not written are preserved. Such an input is zero if it is not
    /// given.
    pub preserved: BTreeSet<ValueId>,
    /// The strings of the constants, by handle: see [`Strings`]. Empty in nested graphs, which share
    /// those of the program.
    pub strings: Vec<Arc<[u8]>>,
}

/// The numbers of a graph's types, nodes and checks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lengths {
    types: usize,
    nodes: usize,
    checks: usize,
}

impl Lengths {
    /// The number of values.
    pub(crate) fn values(&self) -> usize {
        self.types
    }
}

/// One step of a [`Graph`].
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What the node does.
    pub kind: NodeKind,
    /// The values that the node reads.
    pub operands: Vec<ValueId>,
    /// The values that the node defines.
    pub results: Vec<ValueId>,
    /// Which part of the source the node represents: a path and name for messages.
    pub origin: Option<Arc<str>>,
}

/// What a [`Node`] does.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// No operand: a constant.
    Constant(Constant),
    /// An op: one result.
    Op(Op),
    /// An algorithm that is not loops around an expression, with its results.
    Algorithm(Algorithm),
    /// One result: a function that the host of the program applies. Operands: tensors of equal extents if it
    /// is a function of each element.
    Host(Function),
    /// Operands: a `bool` scalar, then the captures of the graphs. Both graphs take the captures in
    /// that order, and have outputs of the types of the results.
    If {
        /// Runs if the condition holds.
        then: Box<Graph>,
        /// Runs if the condition does not hold.
        otherwise: Box<Graph>,
    },
    /// Operands: a value, then others. One result: the value, which is available only after the others
    /// have been computed.
    After,
    /// Operands: the inputs of the graph. Results: its outputs.
    Call {
        /// The name in the source.
        name: Arc<str>,
        /// The graph. Calls of equal graphs with the same name are calls of one function.
        body: Arc<Graph>,
    },
    /// Operands: the number of iterations (an `i64` scalar), a `bool` scalar that is true if the loop
    /// starts, the initial carried values, then the captures of the body.
    ///
    /// The body takes the iteration from 0 (an `i64` scalar), the carried values, then the captures.
    /// Its outputs: a `bool` scalar that is true if the loop continues, the carried values, then
    /// elements of sequences. Results: the final carried values, then the elements of each sequence
    /// along a new first dimension.
    Loop {
        /// One iteration.
        body: Box<Graph>,
        /// Number of carried values.
        carried: usize,
    },
}

/// A tensor of known elements, row-major and little-endian. The bytes may be memory-mapped.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// Its type.
    pub ty: TensorType,
    /// Its elements.
    pub bytes: Bytes,
    /// The table of the handles of strings; `None` in a graph, whose handles are those of
    /// [`Graph::strings`].
    pub strings: Option<Arc<Strings>>,
}

impl Constant {
    /// A constant of numbers, or of handles of a graph's strings.
    pub fn new(ty: TensorType, bytes: impl Into<Bytes>) -> Self {
        Self { ty, bytes: bytes.into(), strings: None }
    }

    /// A constant with the elements of a tensor.
    pub fn of(tensor: &Tensor) -> Self {
        let mut strings = tensor.strings().cloned();
        if tensor.dtype() == DType::String {
            // Without a table all elements are empty.
            strings = strings.or_else(|| Some(Strings::of([""]).into()));
        }
        Self { strings, ..Self::of_numbers(tensor) }
    }

    /// As [`Constant::of`], for handles of a graph's strings.
    pub(crate) fn of_numbers(tensor: &Tensor) -> Self {
        let mut bytes = tensor.bytes().to_vec();
        if cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(tensor.dtype().size()).for_each(<[u8]>::reverse);
        }
        Self::new(tensor.ty().clone(), bytes)
    }

    /// The tensor, as a copy.
    ///
    /// # Errors
    /// If the bytes do not match the type.
    pub fn tensor(&self) -> Result<Tensor, TensorError> {
        if cfg!(target_endian = "big") {
            let mut bytes = self.bytes.to_vec();
            bytes.chunks_exact_mut(self.ty.dtype.size()).for_each(<[u8]>::reverse);
            return Ok(self.with_strings(Tensor::from_bytes(self.ty.clone(), &bytes)?));
        }
        Ok(self.with_strings(Tensor::from_bytes(self.ty.clone(), &self.bytes)?))
    }

    fn with_strings(&self, tensor: Tensor) -> Tensor {
        match &self.strings {
            Some(strings) => tensor.with_strings(strings),
            None => tensor,
        }
    }
}

/// A number that is known at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Its name, unique within a graph and its enclosing graphs.
    pub name: Arc<str>,
    /// The source of its value.
    pub source: SymbolSource,
}

/// The source of the value of a [`Symbol`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolSource {
    /// The extent of a dimension of an input, or of a result of a node with nested graphs.
    Extent(ValueId, usize),
    /// An element of an integer value, by linear index.
    Element(ValueId, usize),
}

/// What must hold at run time; otherwise the program stops with the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The left size.
    pub left: Dim,
    /// The right size.
    pub right: Dim,
    /// The required relation.
    pub relation: Relation,
    /// The error if it does not hold, without the sizes.
    pub message: String,
}

/// A required relation of two sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// They are equal.
    Equal,
    /// They are equal, or the left is 1.
    EqualOrOne,
    /// The left is at most the right.
    AtMost,
}

impl Relation {
    /// Whether the relation holds.
    pub const fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::EqualOrOne => left == right || left == 1,
            Self::AtMost => left <= right,
        }
    }
}

impl Graph {
    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &Type {
        &self.types[value.0]
    }

    /// The unique origins of the nodes, including those of nested graphs.
    pub fn origins(&self) -> BTreeSet<Arc<str>> {
        self.ordered_origins().into_iter().collect()
    }

    /// The origin of every node that has one, in the order of nodes, each before those of its nested graphs.
    pub fn ordered_origins(&self) -> Vec<Arc<str>> {
        let mut found = vec![];
        self.collect_origins(&mut found);
        found
    }

    fn collect_origins(&self, found: &mut Vec<Arc<str>>) {
        for node in &self.nodes {
            found.extend(node.origin.clone());
            match &node.kind {
                NodeKind::If { then, otherwise } => {
                    then.collect_origins(found);
                    otherwise.collect_origins(found);
                }
                NodeKind::Loop { body, .. } => body.collect_origins(found),
                NodeKind::Call { body, .. } => body.collect_origins(found),
                NodeKind::Constant(_)
                | NodeKind::Op(_)
                | NodeKind::Algorithm(_)
                | NodeKind::Host(_)
                | NodeKind::After => {}
            }
        }
    }

    /// Rewrites an extent of a value, also in the op that computes it.
    pub(crate) fn restate(&mut self, value: ValueId, axis: usize, extent: &Dim) {
        let found = std::mem::replace(&mut self.types[value.0].dims[axis], extent.clone());
        let node = self.nodes.iter_mut().rfind(|node| node.results.contains(&value));
        if let Some(NodeKind::Op(Op::Compute(compute))) = node.map(|node| &mut node.kind) {
            let compute = Arc::make_mut(compute);
            compute.dims[axis] = extent.clone();
            compute.body = compute.body.replace(&mut |scalar| match scalar {
                Scalar::Size(size) if *size == found => Some(Scalar::Size(extent.clone())),
                _ => None,
            });
        }
    }

    /// Replaces symbols in all sizes, including those of nested graphs. The symbols stay defined.
    pub fn substitute(&mut self, symbol: &dyn Fn(&str) -> Option<Dim>) {
        self.substitute_from(&Lengths::default(), symbol);
    }

    /// How far it has been built.
    pub(crate) fn lengths(&self) -> Lengths {
        Lengths { types: self.types.len(), nodes: self.nodes.len(), checks: self.checks.len() }
    }

    /// As [`Graph::substitute`], in what has been built since.
    pub(crate) fn substitute_from(
        &mut self,
        start: &Lengths,
        symbol: &dyn Fn(&str) -> Option<Dim>,
    ) {
        for dim in self.types[start.types..].iter_mut().flat_map(|ty| &mut ty.dims) {
            if dim.known().is_none() {
                *dim = dim.substitute(symbol);
            }
        }
        for check in &mut self.checks[start.checks..] {
            check.left = check.left.substitute(symbol);
            check.right = check.right.substitute(symbol);
        }
        for node in &mut self.nodes[start.nodes..] {
            match &mut node.kind {
                NodeKind::Op(Op::Compute(compute)) => {
                    *compute = Arc::new(compute.substitute(symbol));
                }
                NodeKind::Algorithm(algorithm) => *algorithm = algorithm.substitute(symbol),
                NodeKind::If { then, otherwise } => {
                    then.substitute(symbol);
                    otherwise.substitute(symbol);
                }
                NodeKind::Loop { body, .. } => body.substitute(symbol),
                NodeKind::Call { body, .. } => Arc::make_mut(body).substitute(symbol),
                NodeKind::Constant(_) | NodeKind::Op(_) | NodeKind::Host(_) | NodeKind::After => {}
            }
        }
    }
}
