//! The metadata of an archive: `metadata.json`, of format versions 1 to 7.
//!
//! Versions differ in a few keys and in the paths of files; [`Metadata`] represents all of them.
//! Versions 5 and 7 can be written.

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

/// Path of the metadata in an archive.
pub const PATH: &str = "metadata.json";

/// Versions of the format that can be read.
pub const VERSIONS: std::ops::RangeInclusive<u32> = 1..=7;

/// Version of irc's extensions, as stated in [`Extension`].
pub const ABI: u32 = 1;

/// Path of the shared library.
pub const LIBRARY: &str = "codegen/host/shared/default.so";

/// Alignment of each tensor in a member of weights, in bytes.
pub const ALIGNMENT: usize = irc_tensor::ALIGNMENT;

/// An archive's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Version of the format.
    pub version: u32,
    /// The models by name; only version 7 has several.
    pub modules: Vec<Module>,
    /// irc's extensions.
    pub extension: Option<Extension>,
}

/// A model, or a library of operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Name of the model.
    pub name: String,
    /// Time of export: `2026-11-21 05:22:03Z`.
    pub exported: String,
    /// Its executors; empty for operators.
    pub executors: Vec<Executor>,
    /// Its targets.
    pub targets: Vec<Target>,
    /// Its memory.
    pub memory: Memory,
}

/// An executor of a model.
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

/// A target of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Device type (DLPack's), which versions from 6 on do not state.
    pub device: Option<i64>,
    /// TVM's description, such as `llvm -keys=cpu`.
    pub text: String,
}

/// Memory of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// That of a model.
    Model(ModelMemory),
    /// Arguments of each operator of a library of operators.
    Operators(BTreeMap<String, Vec<Argument>>),
}

/// Memory of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelMemory {
    /// Storages of the graph; `None` if the metadata do not list them.
    pub storages: Option<Vec<Storage>>,
    /// Memory of the whole model, for each device.
    pub main: Vec<Usage>,
    /// Workspace of each function, in file order.
    pub functions: Vec<FunctionUsage>,
}

/// A storage of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Its number.
    pub id: i64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The input that is in it.
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
    /// Intermediate tensors, and the maximum workspace of a call.
    pub workspace: u64,
    /// Inputs by name, in versions from 7 on.
    pub inputs: BTreeMap<String, Tensor>,
    /// Outputs by name, likewise.
    pub outputs: BTreeMap<String, Tensor>,
}

/// An input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its size in bytes.
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
    /// Its size in bytes.
    pub bytes: u64,
    /// Its shape.
    pub shape: Vec<i64>,
    /// Type of an element.
    pub dtype: DataType,
}

/// irc's extensions, under the key `irc`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extension {
    /// SHA-256 of every member except the metadata, by path, in lower-case hexadecimal.
    pub hashes: BTreeMap<String, String>,
    /// The code once more, linked.
    pub library: Option<SharedLibrary>,
    /// What is said of models, by name.
    pub models: BTreeMap<String, ModelExtension>,
}

/// The code of all models as a shared library, so that no linker is needed to run it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedLibrary {
    /// Path of the member.
    pub member: String,
    /// Processor features that the code uses, by LLVM's names: `avx512f`.
    pub requires: Vec<String>,
}

/// irc's extensions of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelExtension {
    /// Names of the outputs, in the order of the graph.
    pub outputs: Vec<String>,
    /// An aligned copy of the parameters.
    pub weights: Option<Weights>,
    /// Inputs and expected outputs.
    pub vectors: Vec<Vector>,
}

/// Parameters for use in place: each starts at a multiple of [`ALIGNMENT`] bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Path of the member.
    pub member: String,
    /// Offset of each parameter; types are those of the parameters.
    pub offsets: BTreeMap<String, u64>,
}

/// Inputs and expected outputs, as members in the format of parameters.
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
