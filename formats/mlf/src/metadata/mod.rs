//! The metadata of an archive: `metadata.json`, of format versions 1 to 7.
//!
//! Versions differ in a few keys and in the paths of files; [`Metadata`] has what they have in common.
//! Versions 5 and 7 are written.

mod date;
mod read;
mod sizes;
mod write;

pub use date::export_datetime;
pub use read::read;
pub use sizes::{
    constants_bytes, io_bytes, tvm_io_bytes, tvm_storage_bytes, usage, workspace_bytes,
};
pub use write::write;

use std::collections::BTreeMap;

use crate::types::DataType;

/// Where the metadata lie in an archive.
pub const PATH: &str = "metadata.json";

/// Versions of the format that are read.
pub const VERSIONS: std::ops::RangeInclusive<u32> = 1..=7;

/// Number of the agreement between our archives and our runtime, which [`Extension`] states.
pub const ABI: u32 = 1;

/// Where the shared library lies that is written.
pub const LIBRARY: &str = "codegen/host/shared/default.so";

/// Bytes that each tensor of a member of weights is aligned to.
pub const ALIGNMENT: usize = irc_tensor::ALIGNMENT;

/// An archive's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Version of the format.
    pub version: u32,
    /// The models, of which only version 7 has several, by the name of each.
    pub modules: Vec<Module>,
    /// What only our archives say.
    pub extension: Option<Extension>,
}

/// A model, or a library of operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Name of the model.
    pub name: String,
    /// When it was exported: `2026-11-21 05:22:03Z`.
    pub exported: String,
    /// What runs it; empty for operators.
    pub executors: Vec<Executor>,
    /// What it was compiled for.
    pub targets: Vec<Target>,
    /// What memory it takes.
    pub memory: Memory,
}

/// What runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Executor {
    /// An interpreter of the graph.
    Graph,
    /// A function of the library.
    Aot,
}

impl Executor {
    /// Its name in metadata.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Aot => "aot",
        }
    }
}

/// What code was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Device type (DLPack's), which versions from 6 on do not say.
    pub device: Option<i64>,
    /// TVM's description, such as `llvm -keys=cpu`.
    pub text: String,
}

/// What memory code takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// That of a model.
    Model(ModelMemory),
    /// Arguments of each operator of a library of operators.
    Operators(BTreeMap<String, Vec<Argument>>),
}

/// What memory a model takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelMemory {
    /// Storages of the graph; `None` when the metadata do not list them.
    pub storages: Option<Vec<Storage>>,
    /// The whole model, on each device.
    pub main: Vec<Usage>,
    /// Workspace of each function, in the order written.
    pub functions: Vec<FunctionUsage>,
}

/// A storage of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Its number.
    pub id: i64,
    /// Its bytes.
    pub bytes: u64,
    /// The input that lies in it.
    pub input: Option<String>,
}

/// Memory of a whole model on a device, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Device type (DLPack's).
    pub device: i64,
    /// Parameters.
    pub constants: u64,
    /// Inputs and outputs.
    pub io: u64,
    /// What lies between calls, and the most that one call takes.
    pub workspace: u64,
    /// Inputs by name, which versions from 7 on say.
    pub inputs: BTreeMap<String, Tensor>,
    /// Outputs by name, likewise.
    pub outputs: BTreeMap<String, Tensor>,
}

/// A tensor that goes in or out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its bytes.
    pub bytes: u64,
    /// Type of an element.
    pub dtype: DataType,
}

/// Workspace of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionUsage {
    /// Its name.
    pub name: String,
    /// Device type and bytes, for each device.
    pub workspace: Vec<(i64, u64)>,
}

/// An argument of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// Its shape.
    pub shape: Vec<i64>,
    /// Type of an element.
    pub dtype: DataType,
}

/// What our archives say beside the standard keys, under `irc`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extension {
    /// SHA-256 of every member but the metadata, by path, in lower-case hexadecimal.
    pub hashes: BTreeMap<String, String>,
    /// The code once more, linked.
    pub library: Option<SharedLibrary>,
    /// What is said of models, by name.
    pub models: BTreeMap<String, ModelExtension>,
}

/// The code of all models as a shared library, so that who runs it needs no linker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedLibrary {
    /// Path of the member.
    pub member: String,
    /// Processor features that the code uses, by LLVM's names: `avx512f`.
    pub requires: Vec<String>,
}

/// What our archives say of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelExtension {
    /// Names of the outputs, in the order of the graph.
    pub outputs: Vec<String>,
    /// The parameters once more, aligned.
    pub weights: Option<Weights>,
    /// Inputs, and what the model makes of them.
    pub vectors: Vec<Vector>,
}

/// Parameters laid out for use in place: each starts at a multiple of [`ALIGNMENT`] bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Path of the member.
    pub member: String,
    /// Offset of each parameter in it; types are those of the parameters.
    pub offsets: BTreeMap<String, u64>,
}

/// Inputs and what the model makes of them, as members in the form of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Path of the inputs, by name.
    pub inputs: String,
    /// Path of the outputs, by their numbers: `0`, `1`.
    pub outputs: String,
}

impl Metadata {
    /// Path of a model's graph.
    pub fn graph_path(&self, module: &Module) -> String {
        match self.version {
            ..5 => "runtime-config/graph/graph.json".into(),
            5 | 6 => "executor-config/graph/graph.json".into(),
            _ => format!("executor-config/graph/{}.graph", module.name),
        }
    }

    /// Path of a model's parameters.
    pub fn params_path(module: &Module) -> String {
        format!("parameters/{}.params", module.name)
    }

    /// JSON path of a module, for diagnostics.
    pub fn module_path(&self, module: &Module) -> String {
        match self.version {
            ..7 => "$".into(),
            // Operators of version 7 are as in version 5.
            _ if matches!(module.memory, Memory::Operators(_)) => "$".into(),
            _ => irc_json::At::ROOT.key("modules").key(&module.name).to_string(),
        }
    }
}
