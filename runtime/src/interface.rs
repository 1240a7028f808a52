//! What a compiled model takes and gives: named buffers with types, and a workspace.
use irc_tensor::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// The inputs, outputs and workspace of a compiled model, in the order of its entry's arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// How the model is called: 0 is `irc_run`; [`Interface::SIZED`] is `irc_run_sized`, of models
    /// whose sizes depend on their inputs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub convention: u32,
    /// The messages of checks that may end a run, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
}

/// A named buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// The name in `.npz` files.
    pub name: String,
    /// The element type by its host name: `f32`, `bf16`, `u8`, …
    pub dtype: String,
    /// Extents, outermost first; -1 where it is known only when the model runs.
    pub shape: Vec<i64>,
    /// Of an input: whether nothing is read there before the model writes some of it. What the
    /// buffer holds is kept where nothing is written; random inputs leave it zero.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Where an extent is not known: all extents, as expressions of named sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// Of an input that is a constant of the model: its number among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u64>,
}

impl Port {
    /// The element type; `None` if it is unknown.
    pub fn element_type(&self) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == self.dtype)
    }

    /// Whether a tensor has the port's type, as far as it is known.
    pub fn takes(&self, ty: &TensorType) -> bool {
        let fits = |(expected, found): (&i64, &i64)| *expected < 0 || expected == found;
        ty.dtype.name() == self.dtype
            && ty.shape.len() == self.shape.len()
            && self.shape.iter().zip(&ty.shape).all(fits)
    }

    /// The type as it is told to people: `f32[N,4]`.
    pub fn type_text(&self) -> String {
        let known = self.shape.iter().map(i64::to_string);
        let sizes: Vec<_> =
            if self.sizes.is_empty() { known.collect() } else { self.sizes.clone() };
        format!("{}[{}]", self.dtype, sizes.join(","))
    }

    /// The buffer's type; `None` if the element type or an extent is unknown.
    pub fn tensor_type(&self) -> Option<TensorType> {
        let dtype = self.element_type()?;
        if self.shape.iter().any(|extent| *extent < 0) {
            return None;
        }
        Some(TensorType { dtype, shape: self.shape.clone() })
    }
}

fn is_zero(convention: &u32) -> bool {
    *convention == 0
}

impl Interface {
    /// The calling convention of models whose sizes depend on their inputs.
    pub const SIZED: u32 = 1;

    /// Whether sizes depend on the inputs.
    pub fn is_sized(&self) -> bool {
        self.convention == Self::SIZED
    }

    /// The interface as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
