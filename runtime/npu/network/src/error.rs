//! Errors of running networks.

use irc_npu_sim::functional;
use irc_tensor::{TensorError, TensorType};
use thiserror::Error;

/// Why a network cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The layout of a layer cannot be determined.
    #[error("layer `{layer}`: {message}")]
    Layer {
        /// Name of the layer.
        layer: String,
        /// What is wrong with it.
        message: String,
    },
    /// The program moves data that is not in the layout.
    #[error("instruction {} of core {core} moves data that the network does not have there: {what}", index + 1)]
    Foreign {
        /// Number of the core.
        core: u32,
        /// Index of the instruction.
        index: usize,
        /// The data that it moves.
        what: String,
    },
    /// An unknown key.
    #[error("the network has no `{name}`; it takes {known}")]
    Unknown {
        /// The key.
        name: String,
        /// The known keys.
        known: String,
    },
    /// A tensor of the wrong type.
    #[error("`{name}`: expected {expected}, found {found}")]
    Type {
        /// Its key.
        name: String,
        /// The expected type.
        expected: TensorType,
        /// The given type.
        found: TensorType,
    },
    /// Missing tensors.
    #[error("no values for {0}")]
    Missing(String),
    /// A tensor that cannot be created.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The program accesses bytes outside of its memories, or uses an unsupported feature.
    #[error(transparent)]
    Simulation(#[from] functional::Error),
}

impl Error {
    pub(crate) fn layer(layer: &str, message: impl Into<String>) -> Self {
        Self::Layer { layer: layer.into(), message: message.into() }
    }
}
