//! What a lowering sees of its node, and what it writes to.

use crate::import::{Item, Region, Scope};
use irc_common_format::model::{Graph, Node, Path};
use irc_tl::{BuildError, Builder, DType, Dim, Tensor, Type, ValueId};
use thiserror::Error;

/// The values of a node's outputs, in order; outputs at the end may be left out.
pub type Lowered = Result<Vec<ValueId>, LowerError>;

/// Why a node cannot be written at the tensor level.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LowerError {
    /// The node is not as its operator says.
    #[error("{0}")]
    Invalid(String),
    /// The node is as its operator says, but there is no way to write it yet.
    #[error("{0}")]
    Unsupported(String),
    /// The structure of the program depends on an input of the node, whose value must be known.
    #[error("input {0} must be known when the model is compiled")]
    NeedsConstant(usize),
    /// The structure of the program depends on a size, which must be known.
    #[error("the size {0} must be known when the model is compiled")]
    NeedsSize(Dim),
    /// An op does not take its operands.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A graph inside cannot be written.
    #[error("in its graph")]
    Inside(Vec<crate::NodeDiagnostic>),
}

impl LowerError {
    /// The node is not as its operator says.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// There is no way to write it yet.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }
}

/// The results of a node that has one.
///
/// # Errors
/// As the result itself.
pub fn one(result: Result<ValueId, BuildError>) -> Lowered {
    Ok(vec![result?])
}

/// A node to write.
pub struct Context<'a> {
    /// Where to write.
    pub b: &'a mut Builder,
    /// The version of the operator's meaning.
    pub version: i64,
    pub(crate) node: &'a Node,
    pub(crate) inputs: &'a [Option<ValueId>],
    pub(crate) items: &'a [Option<Item>],
    pub(crate) results: Vec<Item>,
    pub(crate) scope: &'a Scope<'a>,
    pub(crate) path: &'a Path<'a>,
}

impl<'a> Context<'a> {
    /// The number of inputs that are named, left out ones between them included.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// The number of outputs that are named.
    pub fn output_count(&self) -> usize {
        self.node.outputs.len()
    }

    /// Whether an output is wanted.
    pub fn wants(&self, output: usize) -> bool {
        self.node.outputs.get(output).is_some_and(|name| !name.is_empty())
    }

    /// An input.
    ///
    /// # Errors
    /// When it is left out.
    pub fn input(&self, index: usize) -> Result<ValueId, LowerError> {
        if let Some(item) = self.item(index).filter(|item| item.tensor().is_none()) {
            let message = format!("input {index}: expected a tensor, found {}", item.kind());
            return Err(LowerError::invalid(message));
        }
        self.optional(index).ok_or_else(|| LowerError::invalid(format!("input {index} is missing")))
    }

    /// An input that may be a sequence or an optional, and may be left out.
    pub fn item(&self, index: usize) -> Option<&'a Item> {
        self.items.get(index)?.as_ref()
    }

    /// The results of a node that gives an input as it is, whatever it is.
    ///
    /// # Errors
    /// When it is left out.
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

    /// An input that may be left out.
    pub fn optional(&self, index: usize) -> Option<ValueId> {
        self.inputs.get(index).copied().flatten()
    }

    /// Every input.
    ///
    /// # Errors
    /// When one is left out.
    pub fn all_inputs(&self) -> Result<Vec<ValueId>, LowerError> {
        (0..self.inputs.len()).map(|index| self.input(index)).collect()
    }

    /// The elements of an input that must be constant.
    ///
    /// # Errors
    /// When it is left out or not constant.
    pub fn constant(&self, index: usize) -> Result<Tensor, LowerError> {
        let value = self.input(index)?;
        self.b.constant_of(value)?.ok_or(LowerError::NeedsConstant(index))
    }

    /// The integers of an input that must be constant; `None` when it is left out.
    ///
    /// # Errors
    /// When it is not constant, or not of integers.
    pub fn constant_ints(&self, index: usize) -> Result<Option<Vec<i64>>, LowerError> {
        if self.optional(index).is_none() {
            return Ok(None);
        }
        let values = self.constant(index)?.to_i128();
        let values = values
            .ok_or_else(|| LowerError::invalid(format!("input {index} is not of integers")))?;
        Ok(Some(values.into_iter().map(|value| value as i64).collect()))
    }

    /// The integers of an input as sizes: known, or read when the program runs.
    ///
    /// # Errors
    /// When it is left out, not of integers, or too long.
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

    /// An axis counted from the end when it is negative.
    ///
    /// # Errors
    /// When there is no such axis.
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

    /// Axes, in ascending order, each once.
    ///
    /// # Errors
    /// When one is not there, or occurs twice.
    pub fn axes(&self, axes: &[i64], rank: usize) -> Result<Vec<usize>, LowerError> {
        let found: Result<Vec<usize>, _> = axes.iter().map(|axis| self.axis(*axis, rank)).collect();
        let mut found = found?;
        found.sort_unstable();
        if found.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(LowerError::invalid(format!("expected different axes, found {axes:?}")));
        }
        Ok(found)
    }

    /// The type that the model declares for an output; `None` when it does not.
    pub fn declared(&self, output: usize) -> Option<Type> {
        self.scope.declared(self.node.outputs.get(output)?)
    }

    /// Writes the nodes of a graph inside the node, in place: its outputs. The graph may use values
    /// from around the node.
    ///
    /// # Errors
    /// [`LowerError::Inside`]; another number of inputs.
    pub fn inline(&mut self, graph: &Graph, inputs: &[Item]) -> Result<Vec<Item>, LowerError> {
        let path = self.path.index("attribute", self.place_of(graph));
        let path = path.field("g");
        self.scope.inline(self.b, graph, inputs, &path)
    }

    /// A graph inside the node, to be written as a graph of its own: its inputs are made first.
    pub fn region(&mut self) -> Region {
        Region::new(self.b.inside())
    }

    /// Writes the nodes of a graph inside the node to a graph of its own: its outputs. The values
    /// from around the node that it uses become inputs after those that are there.
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

    /// The place of the attribute that holds the graph.
    fn place_of(&self, graph: &Graph) -> usize {
        let holds = |attribute: &irc_common_format::model::Attribute| {
            attribute.value.graphs().iter().any(|own| std::ptr::eq(own, graph))
        };
        self.node.attributes.iter().position(holds).unwrap_or_default()
    }
}
