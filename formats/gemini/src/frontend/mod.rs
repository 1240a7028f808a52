//! Frontend files: the layers of a model.

mod check;
mod layer;
mod parse;
mod values;
mod write;

pub(crate) use check::element_bits;
pub use check::{check, layer_path};
pub use layer::{Activation, FrontendLayer, Group, Modules, Quantization};
pub use parse::parse;
pub use write::write;

use crate::record::Extra;

/// The layers of a model, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frontend {
    /// Names and layers.
    pub layers: Vec<(String, FrontendLayer)>,
    /// The order of keys, if they are not sorted.
    pub extra: Extra,
}

impl Frontend {
    /// The layer with a name.
    pub fn layer(&self, name: &str) -> Option<&FrontendLayer> {
        self.layers.iter().find(|(other, _)| other == name).map(|(_, layer)| layer)
    }
}
