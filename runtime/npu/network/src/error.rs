//! Why a network cannot be run.

use irc_npu_sim::functional;
use irc_tensor::{TensorError, TensorType};
use thiserror::Error;

/// Why a network cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The layout cannot be said.
    #[error("layer `{layer}`: {message}")]
    Layer {
        /// Name of the layer.
        layer: String,
        /// What is wrong with it.
        message: String,
    },
    /// The program moves what the layout does not have.
    #[error("instruction {} of core {core} moves data that the network does not have there: {what}", index + 1)]
    Foreign {
        /// Number of the core.
        core: u32,
        /// Place of the instruction.
        index: usize,
        /// What it moves.
        what: String,
    },
    /// A key that names nothing.
    #[error("the network has no `{name}`; it takes {known}")]
    Unknown {
        /// The key.
        name: String,
        /// Keys that there are.
        known: String,
    },
    /// A tensor of another type.
    #[error("`{name}`: expected {expected}, found {found}")]
    Type {
        /// Its key.
        name: String,
        /// The type it must have.
        expected: TensorType,
        /// The type it has.
        found: TensorType,
    },
    /// Tensors that are not given.
    #[error("{0} have no values")]
    Missing(String),
    /// A tensor that cannot be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The program leaves its memories, or uses what is not modelled.
    #[error(transparent)]
    Simulation(#[from] functional::Error),
}

impl Error {
    pub(crate) fn layer(layer: &str, message: impl Into<String>) -> Self {
        Self::Layer { layer: layer.into(), message: message.into() }
    }
}
