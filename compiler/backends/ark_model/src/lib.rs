//! Exports graphs of the tensor level as ARK models.
//!
//! Plain Rust, no MLIR. [`to_ark`] expresses a graph with ARK's ops. Values become buffers, their
//! reshapes and slices become views; an op reads and writes boxes of buffers.
//!
//! * An op that is the meaning of one of ARK's ([`Meaning`](irc_ark_frontend::Meaning)) becomes that op.
//! * A constant with equal elements is the factor of `ScalarAdd` or `ScalarMul` if that has the same
//!   results, otherwise a `ScalarAssign`.
//! * Data movement (slices, concatenations, pads, permutations, broadcasts, rows by index) becomes
//!   views, `Copy`, `Transpose` and `Embedding`, also if the graph has it as loops around an
//!   expression.
//! * `neg`, `abs`, `min(x, 0)`, `reduce_min` and powers with certain exponents are exact combinations
//!   of ops; `tanh(x)` is `2 sigmoid(2x) - 1`, and `erf` an approximation with an error of at most
//!   1.5e-7.
//!
//! ARK files have no constants and no names: [`ArkModel::buffers`] describes the buffers, and contains
//! the elements of constants.

mod binary;
mod functions;
mod index;
mod loops;
mod memory;
mod moves;
mod nodes;
mod numbers;
mod ops;
mod types;

use irc_ark_format::model::{DataType, Model};
use irc_diag::Diagnostic;
use irc_json::{Json, Layout};
use irc_tl::{Constant, DType, Graph, Tensor, TensorError, TensorType};
use std::collections::BTreeMap;

/// An ARK model with a description of its buffers.
#[derive(Clone, Debug)]
pub struct ArkModel {
    /// The model, which is valid.
    pub model: Model,
    /// The externally visible buffers, by id.
    pub buffers: Vec<NamedBuffer>,
}

/// An externally visible buffer of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedBuffer {
    /// Its id in the model.
    pub id: u64,
    /// Name of the graph's input or output, or `constant_N`.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Element type in the model.
    pub data_type: DataType,
    /// Element type in the graph, which may be `i64` if the model has `INT32`.
    pub dtype: DType,
    /// Shape in the graph.
    pub shape: Vec<i64>,
    /// The elements of a constant, in the element type of the model.
    pub elements: Option<Constant>,
}

/// The role of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An input of the graph.
    Input,
    /// A constant of the graph, which must be passed like an input.
    Constant,
    /// An output of the graph.
    Output,
}

impl Role {
    /// The name in [`ArkModel::names`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Constant => "constant",
            Self::Output => "output",
        }
    }
}

impl ArkModel {
    /// The buffers as JSON: a list of `{"Id", "Name", "Role", "DataType", "Type", "Shape"}`, where `Id`
    /// is that of the buffer in the model, `DataType` its element type there, and `Type` that of the
    /// graph. The key of a buffer in an `.npz` of inputs or results is `buffer_ID`.
    pub fn names(&self) -> String {
        let buffer = |buffer: &NamedBuffer| {
            let shape = buffer.shape.iter().map(|extent| Json::Int(*extent)).collect();
            let text = |text: &str| Json::String(text.into());
            let member = |key: &str, value: Json| (key.into(), value);
            Json::Object(vec![
                member("Id", Json::Int(buffer.id.cast_signed())),
                member("Name", text(&buffer.name)),
                member("Role", text(buffer.role.name())),
                member("DataType", text(buffer.data_type.name())),
                member("Type", text(buffer.dtype.name())),
                member("Shape", Json::Array(shape)),
            ])
        };
        let buffers = Json::Array(self.buffers.iter().map(buffer).collect());
        Json::Object(vec![("Buffers".into(), buffers)]).print(Layout::Indented)
    }

    /// The constants as inputs of compiled models: by `buffer_ID`, each in one dimension.
    ///
    /// # Errors
    /// If a constant cannot be allocated.
    pub fn constants(&self) -> Result<BTreeMap<String, Tensor>, TensorError> {
        let constants = self.buffers.iter().filter_map(|buffer| {
            let elements = buffer.elements.as_ref()?;
            let flat = TensorType::new(elements.ty.dtype, [elements.ty.elements().ok()? as i64]);
            let flat = Constant::new(flat, elements.bytes.clone());
            Some((format!("buffer_{}", buffer.id), flat))
        });
        constants.map(|(key, constant)| Ok((key, constant.tensor()?))).collect()
    }
}

/// The ARK model of a graph with static sizes.
///
/// # Errors
/// All nodes without an op in ARK, with the code `ark-emit` and the path of their origin.
pub fn to_ark(graph: &Graph) -> Result<ArkModel, Vec<Diagnostic>> {
    nodes::write(graph)
}
