//! What a file says: the union of Common IR and ONNX.
//!
//! One [`Module`] holds either a graph with its declarations or a library. It is faithful: what
//! the file leaves out is `None`, lists keep their order, tensors keep the field their elements
//! stood in, and nothing is checked beyond that the pieces could be read. It is cheap: strings are
//! moved out of the decoder, and everything large ([`TensorData::Raw`], [`External`]) is a part of
//! the mapped file, so that a clone costs no more than the graph itself.
//!
//! Where the two formats say one thing in two ways, the union has one:
//!
//! * a node's `domain.library.Symbol` of Common IR is [`Node::domain`] and [`Node::op`];
//! * names and types of graph inputs, two lists in Common IR, are one list of [`Value`]s;
//! * a shape is in the type of a tensor; elsewhere in [`Value::shape`];
//! * [`Metadata`] holds name, author and license wherever they stand.
//!
//! # Building one by hand
//!
//! Everything is public and has a default. A test writes what matters and leaves the rest:
//!
//! ```
//! use irc_common_format::model::*;
//!
//! let module = Module {
//!     metadata: Metadata {
//!         name: Some("small".into()),
//!         domain: Some("com.example".into()),
//!         ir_version: Some(1),
//!         model_version: Some(1),
//!         ..Metadata::default()
//!     },
//!     graph: Some(Graph {
//!         inputs: vec![Value::tensor("x", ElementType::Float, ["N", "m*"])],
//!         outputs: vec![Value::tensor("y", ElementType::Float, ["N", "m*"])],
//!         nodes: vec![
//!             Node::new("Relu", ["x"], ["h"]).named("first"),
//!             Node {
//!                 domain: Some("com.example.nn.mlp".into()),
//!                 attributes: vec![Attribute::new("axis", AttributeValue::Int(1))],
//!                 arg_counts: vec![2],
//!                 control_inputs: vec!["first".into()],
//!                 ..Node::new("Concatenate", ["h", "x"], ["y"])
//!             },
//!         ],
//!         initializers: vec![Tensor::floats("w", [2], &[1.0, 2.0])],
//!         ..Graph::default()
//!     }),
//!     ..Module::default()
//! };
//! assert!(!module.is_library());
//! ```
//!
//! # Places
//!
//! An item is named by its path in the module ([`Path`]): `graph.node[3].attribute[axis]`. The
//! [`crate::Input`] a module was read from finds the bytes of a path, so that nothing here carries
//! positions and two modules are equal when they say the same.

mod attribute;
mod element;
mod graph;
mod module;
mod path;
mod tensor;
mod types;
mod value;
mod walk;

pub use attribute::{Attribute, AttributeKind, AttributeValue};
pub use element::ElementType;
pub use graph::{Graph, Node, Quantization, Value};
pub use module::{
    Entries, Function, Metadata, Module, Operator, Opset, ProducerVersion, Schema, Signature,
};
pub use path::Path;
pub use tensor::{ElementsError, External, Segment, SparseTensor, Tensor, TensorData};
pub use types::{Dim, Shape, TensorType, Type, is_identifier};
pub use value::Data;
pub(crate) use walk::Body;
