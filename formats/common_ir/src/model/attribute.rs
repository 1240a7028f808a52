//! Attributes of nodes and functions.

use bytes::Bytes;

use super::{Graph, Shape, SparseTensor, Tensor, Type};

/// A named literal of a node, or a parameter of a function with its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attribute {
    /// The name.
    pub name: Option<String>,
    /// The value.
    pub value: AttributeValue,
    /// Documentation.
    pub doc: Option<String>,
}

impl Attribute {
    /// An attribute of that name and value.
    pub fn new(name: impl Into<String>, value: AttributeValue) -> Self {
        Self { name: Some(name.into()), value, doc: None }
    }
}

/// The value of an attribute.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub enum AttributeValue {
    /// No field is set: an empty list whose kind the file does not state.
    #[default]
    Nothing,
    Float(f32),
    Int(i64),
    /// Arbitrary bytes; usually text.
    String(Bytes),
    Tensor(Box<Tensor>),
    Graph(Box<Graph>),
    SparseTensor(Box<SparseTensor>),
    Type(Box<Type>),
    Shape(Shape),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Strings(Vec<Bytes>),
    Tensors(Vec<Tensor>),
    Graphs(Vec<Graph>),
    SparseTensors(Vec<SparseTensor>),
    Types(Vec<Type>),
    Shapes(Vec<Shape>),
    /// A reference to an attribute of the enclosing function.
    Reference {
        /// Name of the function's attribute.
        name: String,
        /// Kind of the value, if the file states it.
        kind: Option<AttributeKind>,
    },
}

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum AttributeKind {
    Float,
    Int,
    String,
    Tensor,
    Graph,
    SparseTensor,
    Type,
    Shape,
    Floats,
    Ints,
    Strings,
    Tensors,
    Graphs,
    SparseTensors,
    Types,
    Shapes,
}

impl AttributeValue {
    /// The kind, if it is known.
    pub fn kind(&self) -> Option<AttributeKind> {
        use AttributeKind as K;
        Some(match self {
            Self::Nothing => return None,
            Self::Reference { kind, .. } => return *kind,
            Self::Float(_) => K::Float,
            Self::Int(_) => K::Int,
            Self::String(_) => K::String,
            Self::Tensor(_) => K::Tensor,
            Self::Graph(_) => K::Graph,
            Self::SparseTensor(_) => K::SparseTensor,
            Self::Type(_) => K::Type,
            Self::Shape(_) => K::Shape,
            Self::Floats(_) => K::Floats,
            Self::Ints(_) => K::Ints,
            Self::Strings(_) => K::Strings,
            Self::Tensors(_) => K::Tensors,
            Self::Graphs(_) => K::Graphs,
            Self::SparseTensors(_) => K::SparseTensors,
            Self::Types(_) => K::Types,
            Self::Shapes(_) => K::Shapes,
        })
    }

    /// The subgraphs, with their index in a list of them.
    pub fn graphs(&self) -> &[Graph] {
        match self {
            Self::Graph(graph) => std::slice::from_ref(graph),
            Self::Graphs(graphs) => graphs,
            _ => &[],
        }
    }

    /// As [`Self::graphs`], mutable.
    pub fn graphs_mut(&mut self) -> &mut [Graph] {
        match self {
            Self::Graph(graph) => std::slice::from_mut(graph),
            Self::Graphs(graphs) => graphs,
            _ => &mut [],
        }
    }

    /// The tensors: one, or a list.
    pub fn tensors_mut(&mut self) -> &mut [Tensor] {
        match self {
            Self::Tensor(tensor) => std::slice::from_mut(tensor),
            Self::Tensors(tensors) => tensors,
            _ => &mut [],
        }
    }
}

impl AttributeKind {
    /// Name of the field in files, ONNX's where Common IR's differs.
    pub fn field(self) -> &'static str {
        match self {
            Self::Float => "f",
            Self::Int => "i",
            Self::String => "s",
            Self::Tensor => "t",
            Self::Graph => "g",
            Self::SparseTensor => "sparse_tensor",
            Self::Type => "tp",
            Self::Shape => "shape",
            Self::Floats => "floats",
            Self::Ints => "ints",
            Self::Strings => "strings",
            Self::Tensors => "tensors",
            Self::Graphs => "graphs",
            Self::SparseTensors => "sparse_tensors",
            Self::Types => "type_protos",
            Self::Shapes => "shapes",
        }
    }
}
