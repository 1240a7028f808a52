//! What a compiled model takes and gives: named buffers with types, and a workspace.
use irc_tensor::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// The inputs, outputs and workspace of a compiled model, in the order of its entry's arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// What the caller provides.
    pub inputs: Vec<Port>,
    /// What the model writes.
    pub outputs: Vec<Port>,
    /// Bytes of scratch memory that the caller provides, aligned to 64.
    pub workspace_bytes: u64,
    /// Processor features that the code uses, by LLVM's names.
    #[serde(default)]
    pub requires: Vec<String>,
}

/// A named buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// The name in `.npz` files.
    pub name: String,
    /// The element type by its host name: `f32`, `bf16`, `u8`, …
    pub dtype: String,
    /// Extents, outermost first.
    pub shape: Vec<i64>,
    /// Of an input: whether nothing is read there before the model writes some of it. What the
    /// buffer holds is kept where nothing is written; random inputs leave it zero.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

impl Port {
    /// The buffer's type; `None` if the element type is unknown.
    pub fn tensor_type(&self) -> Option<TensorType> {
        let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == self.dtype)?;
        Some(TensorType { dtype, shape: self.shape.clone() })
    }
}

impl Interface {
    /// The interface as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
