//! Graphs, nodes and values.

use super::{Attribute, Dim, ElementType, Entries, Path, Shape, SparseTensor, Tensor, Type};

/// A graph: that of the file, or one in an attribute.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// Name of a graph in an attribute; that of the file's own graph is [`super::Metadata::name`].
    pub name: Option<String>,
    /// Documentation of the graph; of a Common IR file it is [`super::Metadata::doc`].
    pub doc: Option<String>,
    /// Inputs, in order.
    pub inputs: Vec<Value>,
    /// Outputs, in order.
    pub outputs: Vec<Value>,
    /// Types of intermediate values.
    pub values: Vec<Value>,
    /// Constants; one with the name of an input is its default.
    pub initializers: Vec<Tensor>,
    /// Sparse constants.
    pub sparse_initializers: Vec<SparseTensor>,
    /// Nodes, in the order of the file.
    pub nodes: Vec<Node>,
    /// Tensors with their quantization parameters.
    pub quantizations: Vec<Quantization>,
    /// Further properties.
    pub properties: Entries,
}

/// A named value with its type: an input, an output, a parameter, or a value within a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Value {
    /// The name; `None` if there are more types than names.
    pub name: Option<String>,
    /// The type; `None` if there are more names than types.
    pub ty: Option<Type>,
    /// A shape beside a type that cannot contain one: sequences and the like in Common IR.
    pub shape: Option<Shape>,
    /// The meaning of the value, in ONNX's terms (`IMAGE`).
    pub denotation: Option<String>,
    /// Documentation.
    pub doc: Option<String>,
    /// Further properties.
    pub properties: Entries,
}

impl Value {
    /// A value with that type.
    pub fn new(name: impl Into<String>, ty: Type) -> Self {
        Self { name: Some(name.into()), ty: Some(ty), ..Self::default() }
    }

    /// A dense tensor with that shape.
    pub fn tensor<D: Into<Dim>>(
        name: impl Into<String>,
        element: ElementType,
        dims: impl IntoIterator<Item = D>,
    ) -> Self {
        Self::new(name, Type::tensor(element, dims))
    }

    /// A name without a type.
    pub fn untyped(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    /// The name, or an empty string.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

/// A call of an operator or a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// The name.
    pub name: Option<String>,
    /// Domain of the operator or function: a domain of ONNX, or domain and name of a library
    /// of Common IR, joined by a dot. `None` for those of the file itself and of `ai.onnx`.
    pub domain: Option<String>,
    /// Name of the operator or function, without its domain; empty when the file has none.
    pub op: String,
    /// Selects one of several functions with that name.
    pub overload: Option<String>,
    /// Names of the inputs; an empty name is an omitted input.
    pub inputs: Vec<String>,
    /// Names of the outputs; an empty name is an unused output.
    pub outputs: Vec<String>,
    /// Literals.
    pub attributes: Vec<Attribute>,
    /// Number of inputs of each formal parameter; empty in ONNX.
    pub arg_counts: Vec<i32>,
    /// Names of nodes that must have run before.
    pub control_inputs: Vec<String>,
    /// Types of the inputs as this node sees them, without names; in Common IR only.
    pub input_types: Vec<Value>,
    /// Types of the outputs, likewise.
    pub output_types: Vec<Value>,
    /// Documentation.
    pub doc: Option<String>,
    /// Further properties.
    pub properties: Entries,
}

impl Node {
    /// A call without domain, name and attributes.
    pub fn new<S: Into<String>, T: Into<String>>(
        op: impl Into<String>,
        inputs: impl IntoIterator<Item = S>,
        outputs: impl IntoIterator<Item = T>,
    ) -> Self {
        Self {
            op: op.into(),
            inputs: inputs.into_iter().map(Into::into).collect(),
            outputs: outputs.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// The same with a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The attribute with that name, the first if there are several.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name.as_deref() == Some(name))
    }

    /// Domain and name as Common IR writes them: `com.example.nn.mlp.Relu`.
    pub fn symbol(&self) -> String {
        match self.domain.as_deref() {
            None | Some("") => self.op.clone(),
            Some(domain) => format!("{domain}.{}", self.op),
        }
    }

    /// The node for messages: `node l1 (Linear)`, with its path if it has no name.
    pub fn describe(&self, at: &Path<'_>) -> String {
        match self.name.as_deref() {
            None | Some("") => format!("{at} ({})", self.op),
            Some(name) => format!("node `{name}` ({})", self.op),
        }
    }
}

/// Names of the tensors with the quantization parameters of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quantization {
    /// Name of the quantized tensor.
    pub tensor: Option<String>,
    /// The parameter (`SCALE_TENSOR`) and the tensor that holds it.
    pub parameters: Entries,
}
