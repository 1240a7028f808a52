//! The context of a lowering: its node, and the graph that it writes to.

use crate::diagnostic::NodeDiagnostic;
use crate::item::Item;
use crate::region::Region;
use irc_common_format::model::{AttributeValue, Graph, Node, Path};
use irc_diag::{clip, nearest};
use irc_tl::{BuildError, Builder, DType, Dim, Tensor, Type, ValueId};
use std::sync::Arc;
use thiserror::Error;

/// The values of a node's outputs, in order; trailing outputs may be omitted.
pub type Lowered = Result<Vec<ValueId>, LowerError>;

/// Reasons why a node cannot be lowered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LowerError {
    /// The node violates the definition of its operator.
    #[error("{0}")]
    Invalid(String),
    /// The node is valid, but not supported.
    #[error("{0}")]
    Unsupported(String),
    /// The structure of the program depends on an input of the node, whose value must be known.
    #[error("input {0} must be known when the model is compiled")]
    NeedsConstant(usize),
    /// The structure of the program depends on the node's first input, as an output of its branches has one
    /// type or another.
    #[error(
        "its condition must be known when the model is compiled: output {output} is {then} in one branch, \
         {otherwise} in the other"
    )]
    NeedsCondition {
        /// The number of the output.
        output: usize,
        /// Its type if the condition holds.
        then: Type,
        /// Its type otherwise.
        otherwise: Type,
    },
    /// The structure of the program depends on a size, which must be known.
    #[error("the size {0} must be known when the model is compiled")]
    NeedsSize(Dim),
    /// An op rejects its operands.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A graph attribute of the node cannot be lowered.
    #[error("in its graph")]
    Inside(Vec<NodeDiagnostic>),
}

impl LowerError {
    /// The node violates the definition of its operator.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// An attribute is none of the words that it may be.
    pub fn word(attribute: &str, words: &[&str], found: &str) -> Self {
        let (last, others) = words.split_last().unwrap_or((&"", &[]));
        let expected = if others.is_empty() {
            (*last).to_owned()
        } else {
            format!("{} or {last}", others.join(", "))
        };
        let near = nearest(found, words.iter().copied());
        let near = near.map(|near| format!(": did you mean {near}?")).unwrap_or_default();
        Self::Invalid(format!("expected `{attribute}` {expected}, found {}{near}", clip(found)))
    }

    /// The node is not supported.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }
}

/// The results of a node with one output.
///
/// # Errors
/// Those of `result`.
pub fn one(result: Result<ValueId, BuildError>) -> Lowered {
    Ok(vec![result?])
}

/// The node that computes a value, and the values of its inputs.
pub(crate) struct Producer {
    pub node: Arc<Node>,
    pub inputs: Vec<Option<ValueId>>,
    /// Its path and name in the file.
    pub origin: Option<Arc<str>>,
}

impl Producer {
    /// An integer attribute of the node.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.node.attribute(name)?.value {
            AttributeValue::Int(value) => Some(value),
            _ => None,
        }
    }
}

/// A node to lower.
pub struct Context<'a> {
    /// The graph to write to.
    pub b: &'a mut Builder,
    /// The version of the operator.
    pub version: i64,
    pub(crate) node: &'a Node,
    pub(crate) inputs: &'a [Option<ValueId>],
    pub(crate) items: &'a [Option<Item>],
    pub(crate) results: Vec<Item>,
    pub(crate) scope: &'a dyn Enclosing,
    pub(crate) path: &'a Path<'a>,
}

/// The graph of a node, as the lowering of the node sees it.
pub(crate) trait Enclosing {
    /// The type that the model declares for a name.
    fn declared(&self, name: &str) -> Option<Type>;

    /// See [`Context::named_producer`].
    fn producer(&self, name: &str) -> Option<Producer>;

    /// See [`Context::inline`]; `path` is the path of the graph.
    fn inline(
        &self,
        builder: &mut Builder,
        graph: &Graph,
        inputs: &[Item],
        path: &Path<'_>,
    ) -> Result<Vec<Item>, LowerError>;

    /// See [`Context::write`]; `path` is the path of the graph.
    fn write_region(
        &self,
        region: &mut Region,
        around: &Builder,
        graph: &Graph,
        inputs: &[Item],
        path: &Path<'_>,
    ) -> Result<Vec<Item>, LowerError>;
}

impl<'a> Context<'a> {
    /// The number of inputs of the node, including omitted ones before the last.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// The number of named outputs.
    pub fn output_count(&self) -> usize {
        self.node.outputs.len()
    }

    /// Whether an output is used.
    pub fn is_used(&self, output: usize) -> bool {
        self.node.outputs.get(output).is_some_and(|name| !name.is_empty())
    }

    /// An input.
    ///
    /// # Errors
    /// If it is omitted.
    pub fn input(&self, index: usize) -> Result<ValueId, LowerError> {
        if let Some(item) = self.item(index).filter(|item| item.tensor().is_none()) {
            let message = format!("input {index}: expected a tensor, found {}", item.kind());
            return Err(LowerError::invalid(message));
        }
        self.optional(index).ok_or_else(|| LowerError::invalid(format!("input {index} is missing")))
    }

    /// An input that may be a sequence or an optional, and may be omitted.
    pub fn item(&self, index: usize) -> Option<&'a Item> {
        self.items.get(index)?.as_ref()
    }

    /// The results of a node that forwards an input of any kind.
    ///
    /// # Errors
    /// If it is omitted.
    pub fn pass_on(&mut self, input: usize) -> Lowered {
        match self.item(input) {
            Some(item) => self.items(vec![item.clone()]),
            None => Ok(vec![self.input(input)?]),
        }
    }

    /// The results of a node that are not all tensors.
    pub fn items(&mut self, results: Vec<Item>) -> Lowered {
        self.results = results;
        Ok(vec![])
    }

    /// An input that may be omitted.
    pub fn optional(&self, index: usize) -> Option<ValueId> {
        self.inputs.get(index).copied().flatten()
    }

    /// Every input.
    ///
    /// # Errors
    /// If one is omitted.
    pub fn all_inputs(&self) -> Result<Vec<ValueId>, LowerError> {
        (0..self.inputs.len()).map(|index| self.input(index)).collect()
    }

    /// The elements of an input that must be constant.
    ///
    /// # Errors
    /// If it is omitted or not constant.
    pub fn constant(&self, index: usize) -> Result<Tensor, LowerError> {
        let value = self.input(index)?;
        self.b.constant_of(value)?.ok_or(LowerError::NeedsConstant(index))
    }

    /// The integers of an input that must be constant; `None` if it is omitted.
    ///
    /// # Errors
    /// If it is not constant, or not of integers.
    pub fn constant_ints(&self, index: usize) -> Result<Option<Vec<i64>>, LowerError> {
        if self.optional(index).is_none() {
            return Ok(None);
        }
        let values = self.constant(index)?.to_i128();
        let values = values
            .ok_or_else(|| LowerError::invalid(format!("input {index} : expected integers")))?;
        Ok(Some(values.into_iter().map(|value| value as i64).collect()))
    }

    /// The integers of an input as sizes: known, or read at run time.
    ///
    /// # Errors
    /// If it is omitted, not of integers, or too long.
    pub fn sizes(&mut self, index: usize) -> Result<Vec<Dim>, LowerError> {
        let value = self.input(index)?;
        let count = self.b.ty(value).elements();
        if count.known().is_none() && self.b.elements(value).is_none() {
            return Err(LowerError::NeedsSize(count));
        }
        Ok(self.b.elements_or_symbols(value)?)
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> Type {
        self.b.ty(value).clone()
    }

    /// The element type of a value.
    pub fn dtype(&self, value: ValueId) -> DType {
        self.b.dtype(value)
    }

    /// Normalises an axis, which counts from the end if negative.
    ///
    /// # Errors
    /// If there is no such axis.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize, LowerError> {
        let rank = rank as i64;
        let from_start = if axis < 0 { axis + rank } else { axis };
        if (0..rank).contains(&from_start) {
            return Ok(from_start as usize);
        }
        Err(LowerError::invalid(format!(
            "expected an axis from {} to {}, found {axis}",
            -rank,
            rank - 1
        )))
    }

    /// Normalises axes to ascending order.
    ///
    /// # Errors
    /// If one does not exist, or occurs twice.
    pub fn axes(&self, axes: &[i64], rank: usize) -> Result<Vec<usize>, LowerError> {
        let found: Result<Vec<usize>, _> = axes.iter().map(|axis| self.axis(*axis, rank)).collect();
        let mut found = found?;
        found.sort_unstable();
        if found.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(LowerError::invalid(format!("expected distinct axes, found {axes:?}")));
        }
        Ok(found)
    }

    /// The type that the model declares for an output, if any.
    pub fn declared(&self, output: usize) -> Option<Type> {
        self.scope.declared(self.node.outputs.get(output)?)
    }

    /// The node that computes an input, if it is one that quantisation looks for.
    pub(crate) fn producer(&self, input: usize) -> Option<Producer> {
        self.named_producer(self.node.inputs.get(input)?)
    }

    /// The node of the same graph that computes the value of a name, if it is one that quantisation looks for.
    pub(crate) fn named_producer(&self, name: &str) -> Option<Producer> {
        self.scope.producer(name)
    }

    /// The result of a function for another node, with these inputs.
    pub(crate) fn with_node<T>(
        &mut self,
        node: &Node,
        inputs: &[Option<ValueId>],
        function: impl FnOnce(&mut Context<'_>) -> T,
    ) -> T {
        let Self { version, scope, path, .. } = *self;
        let (items, results) = (&[][..], vec![]);
        let b = &mut *self.b;
        function(&mut Context { b, version, node, inputs, items, results, scope, path })
    }

    /// The result of a function for the node with other inputs, all of them tensors.
    pub(crate) fn with_inputs<T>(
        &mut self,
        inputs: &[Option<ValueId>],
        function: impl FnOnce(&mut Context<'_>) -> T,
    ) -> T {
        let node = self.node;
        self.with_node(node, inputs, function)
    }

    /// Inlines a graph attribute and returns its outputs. The graph may use values
    /// of the enclosing graph.
    ///
    /// # Errors
    /// [`LowerError::Inside`]; a different number of inputs.
    pub fn inline(&mut self, graph: &Graph, inputs: &[Item]) -> Result<Vec<Item>, LowerError> {
        let path = self.path.index("attribute", self.place_of(graph));
        let path = path.field("g");
        self.scope.inline(self.b, graph, inputs, &path)
    }

    /// Starts a separate graph for a graph attribute; its inputs are defined first.
    pub fn region(&mut self) -> Region {
        Region::new(self.b.inside())
    }

    /// Writes the nodes of a graph attribute to a separate graph, and returns its outputs. The values
    /// of the enclosing graph that it uses become inputs after the existing ones.
    ///
    /// # Errors
    /// As [`Context::inline`].
    pub fn write(
        &self,
        region: &mut Region,
        graph: &Graph,
        inputs: &[Item],
    ) -> Result<Vec<Item>, LowerError> {
        let path = self.path.index("attribute", self.place_of(graph));
        let path = path.field("g");
        self.scope.write_region(region, self.b, graph, inputs, &path)
    }

    /// The path of the attribute that holds the graph.
    fn place_of(&self, graph: &Graph) -> usize {
        let holds = |attribute: &irc_common_format::model::Attribute| {
            attribute.value.graphs().iter().any(|own| std::ptr::eq(own, graph))
        };
        self.node.attributes.iter().position(holds).unwrap_or_default()
    }
}
