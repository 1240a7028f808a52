//! Programs of the tensor level as plain data.
//!
//! A [`Graph`] is what an importer writes, with a [`Builder`], before anything is MLIR: values in
//! single assignment, nodes in an order in which they can run, control flow as nodes with graphs
//! inside. [`Graph::eval`] is its meaning.
//!
//! Sizes may depend on *symbols*: [`Symbol`] says where each gets its value when the program runs (a
//! dimension of an input, or an element of an integer value, which may be computed). [`Check`]s say
//! what must hold of them.

mod builder;
mod dependencies;
mod eval;
mod flops;
mod prune;
mod sizes;

pub use builder::{BuildError, Builder, Built};
pub use dependencies::Dependencies;
pub use eval::GraphError;

use crate::{Algorithm, Dim, Op, Scalar, Tensor, TensorError, TensorType, Type};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A value of a [`Graph`], by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub usize);

/// A program of the tensor level.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Graph {
    /// The type of every value.
    pub types: Vec<Type>,
    /// Values given from outside, and their names; names differ.
    pub inputs: Vec<(String, ValueId)>,
    /// The nodes, in an order in which they can run.
    pub nodes: Vec<Node>,
    /// The values that come back, and their names.
    pub outputs: Vec<(String, ValueId)>,
    /// The symbols that sizes depend on, in an order in which they can be known.
    pub symbols: Vec<Symbol>,
    /// What must hold when the program runs.
    pub checks: Vec<Check>,
    /// Inputs that no node of the source reads before it has written some of them: they are there so
    /// that what they hold is preserved where nothing is written. One that is not given is zero.
    pub preserved: BTreeSet<ValueId>,
}

/// One step of a [`Graph`].
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What it does.
    pub kind: NodeKind,
    /// The values it reads.
    pub operands: Vec<ValueId>,
    /// The values it makes.
    pub results: Vec<ValueId>,
    /// What of the source it stands for: a path and name for messages.
    pub origin: Option<Arc<str>>,
}

/// What a [`Node`] does.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// No operand: a constant.
    Constant(Constant),
    /// An op: one result.
    Op(Op),
    /// An algorithm that is not loops around an expression: results as it says.
    Algorithm(Algorithm),
    /// Operands: a `bool` scalar, then what the graphs capture. Both graphs take the captures in that
    /// order, and have outputs of the types of the results.
    If {
        /// Runs where the condition holds.
        then: Box<Graph>,
        /// Runs where it does not.
        otherwise: Box<Graph>,
    },
    /// Operands: a value, then others. One result: the value, which can be had only when the others have
    /// been computed.
    After,
    /// Operands: the inputs of the graph. Results: its outputs.
    Call {
        /// What the source calls it.
        name: Arc<str>,
        /// The graph. Calls of equal graphs by one name are calls of one function.
        body: Arc<Graph>,
    },
    /// Operands: the number of iterations (an `i64` scalar), a `bool` scalar that says whether to start,
    /// the carried values at first, then what the body captures.
    ///
    /// The body takes the iteration from 0 (an `i64` scalar), the carried values, then the captures.
    /// Its outputs: a `bool` scalar that says whether to go on, the carried values, then elements of
    /// sequences. Results: the carried values at last, then per sequence its elements along a new
    /// first dimension.
    Loop {
        /// One iteration.
        body: Box<Graph>,
        /// Number of carried values.
        carried: usize,
    },
}

/// A tensor of known elements: row-major and little-endian. The bytes may lie in a mapped file.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// Its type.
    pub ty: TensorType,
    /// Its elements.
    pub bytes: Bytes,
}

impl Constant {
    /// The elements of a tensor.
    pub fn of(tensor: &Tensor) -> Self {
        let mut bytes = tensor.bytes().to_vec();
        if cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(tensor.dtype().size()).for_each(<[u8]>::reverse);
        }
        Self { ty: tensor.ty().clone(), bytes: bytes.into() }
    }

    /// The tensor: a copy.
    ///
    /// # Errors
    /// When the bytes are not those of the type.
    pub fn tensor(&self) -> Result<Tensor, TensorError> {
        if cfg!(target_endian = "big") {
            let mut bytes = self.bytes.to_vec();
            bytes.chunks_exact_mut(self.ty.dtype.size()).for_each(<[u8]>::reverse);
            return Tensor::from_bytes(self.ty.clone(), &bytes);
        }
        Tensor::from_bytes(self.ty.clone(), &self.bytes)
    }
}

/// A number known when the program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Its name; names differ within a graph, and from those around it.
    pub name: Arc<str>,
    /// Where it comes from.
    pub source: SymbolSource,
}

/// Where a [`Symbol`] gets its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolSource {
    /// The extent of a dimension of an input, or of a result of a node with graphs inside.
    Extent(ValueId, usize),
    /// An element of an integer value, by linear index.
    Element(ValueId, usize),
}

/// What must hold when the program runs, or it stops with the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// One size.
    pub left: Dim,
    /// Another.
    pub right: Dim,
    /// How they must relate.
    pub relation: Relation,
    /// What is wrong when they do not, without the sizes.
    pub message: String,
}

/// How two sizes must relate.
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
    /// Whether it holds.
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

    /// What the nodes stand for, in graphs inside as well, each once.
    pub fn origins(&self) -> BTreeSet<Arc<str>> {
        let mut found = BTreeSet::new();
        self.collect_origins(&mut found);
        found
    }

    fn collect_origins(&self, found: &mut BTreeSet<Arc<str>>) {
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
                | NodeKind::After => {}
            }
        }
    }

    /// Gives an extent of a value another form, in the op that computes it too.
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

    /// Replaces symbols in all sizes, in graphs inside as well. The symbols stay defined.
    pub fn substitute(&mut self, symbol: &dyn Fn(&str) -> Option<Dim>) {
        for dim in self.types.iter_mut().flat_map(|ty| &mut ty.dims) {
            if dim.known().is_none() {
                *dim = dim.substitute(symbol);
            }
        }
        for check in &mut self.checks {
            check.left = check.left.substitute(symbol);
            check.right = check.right.substitute(symbol);
        }
        for node in &mut self.nodes {
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
                NodeKind::Constant(_) | NodeKind::Op(_) | NodeKind::After => {}
            }
        }
    }
}
