//! Engines that run cases.

use irc::{Backend, codegen::Output};
use std::fmt;
use std::str::FromStr;

/// The engine that runs the cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Compiled code.
    Code(Backend),
    /// The reference evaluator.
    Reference,
    /// Kernels for GPUs, in an emulator.
    Emulator,
    /// Kernels on the first GPU.
    Cuda,
}

impl Engine {
    /// All engines.
    fn all() -> impl Iterator<Item = Self> {
        Backend::writing(Output::Object).map(Self::Code).chain([
            Self::Reference,
            Self::Emulator,
            Self::Cuda,
        ])
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::Code(Backend::default())
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Code(backend) => backend.name,
            Self::Reference => "reference",
            Self::Emulator => "emulate",
            Self::Cuda => "cuda",
        })
    }
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::all().find(|engine| engine.to_string() == text).ok_or_else(|| {
            let all = Self::all().map(|engine| engine.to_string()).collect::<Vec<_>>().join(", ");
            format!("--backend: expected one of {all}, found {text}")
        })
    }
}
