//! The contents of a file: the union of Common IR and ONNX.
//!
//! One [`Module`] holds either a graph with its declarations or a library. It is lossless: absent
//! items are `None`, lists keep their order, tensors keep their elements in the field of the
//! file, and nothing is validated beyond parsing. It is cheap: strings are
//! moved out of the decoder, and large data ([`TensorData::Raw`], [`External`]) refer to
//! the mapped file, so that a clone costs no more than the graph itself.
//!
//! Where the two formats represent one thing in two ways, the union has one:
//!
//! * a node's `domain.library.Symbol` of Common IR is [`Node::domain`] and [`Node::op`];
//! * names and types of graph inputs, two lists in Common IR, are one list of [`Value`]s;
//! * the shape of a tensor is in its type; that of other values in [`Value::shape`];
//! * [`Metadata`] holds name, author and license of either format.
//!
//! # Building a module by hand
//!
//! All fields are public and have defaults:
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
//! # Locations
//!
//! An item is identified by its path in the module ([`Path`]): `graph.node[3].attribute[axis]`. The
//! [`crate::Input`] of a module maps a path to bytes, so that modules carry no
//! positions and two modules are equal if their contents are.

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
