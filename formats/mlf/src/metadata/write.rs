//! Writes metadata as JSON, in the layout of Python's `json.dump(indent=2, sort_keys=True)`.
//!
//! Fields are in the order of their keys.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    ABI, ALIGNMENT, Argument, Extension, FunctionUsage, Memory, Metadata, ModelExtension,
    ModelMemory, Module, SharedLibrary, Storage, Tensor, Usage, Weights,
};

/// The text of metadata of version 5 or 7.
///
/// # Errors
/// A message for another version, several models in version 5, several libraries of operators, or a model
/// without executors.
pub fn write(metadata: &Metadata) -> Result<String, String> {
    let text = match (metadata.version, &metadata.modules[..]) {
        (5 | 7, [module]) if metadata.version == 5 || is_operators(module) => {
            crate::json::print(&flat(metadata, module))
        }
        (7, modules) if !modules.iter().any(is_operators) => crate::json::print(&Nested {
            irc: metadata.extension.as_ref().map(extension),
            modules: modules.iter().map(|each| (each.name.as_str(), module(each, 7))).collect(),
            version: 7,
        }),
        (5 | 7, modules) => return Err(format!("{} models in one archive", modules.len())),
        (version, _) => return Err(format!("cannot write version {version}, expected 5 or 7")),
    };
    text.map_err(|error| error.to_string())
}

fn is_operators(module: &Module) -> bool {
    matches!(module.memory, Memory::Operators(_))
}

#[derive(Serialize)]
struct Nested<'m> {
    #[serde(skip_serializing_if = "Option::is_none")]
    irc: Option<ExtensionText<'m>>,
    modules: BTreeMap<&'m str, ModuleText<'m>>,
    version: u32,
}

#[derive(Serialize)]
struct ModuleText<'m> {
    executors: Vec<&'static str>,
    export_datetime: &'m str,
    #[serde(skip_serializing_if = "Option::is_none")]
    irc: Option<ExtensionText<'m>>,
    memory: MemoryText<'m>,
    model_name: &'m str,
    style: &'static str,
    target: TargetText<'m>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum TargetText<'m> {
    ByDevice(BTreeMap<String, &'m str>),
    List(Vec<&'m str>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum MemoryText<'m> {
    Model {
        functions: Functions<'m>,
        #[serde(skip_serializing_if = "Option::is_none")]
        sids: Option<Vec<StorageText<'m>>>,
    },
    Operators(BTreeMap<&'m str, Vec<ArgumentText<'m>>>),
}

#[derive(Serialize)]
struct Functions<'m> {
    main: Vec<UsageText<'m>>,
    operator_functions: Vec<FunctionText<'m>>,
}

#[derive(Serialize)]
struct UsageText<'m> {
    constants_size_bytes: u64,
    device: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs: Option<BTreeMap<&'m str, TensorText>>,
    io_size_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<BTreeMap<&'m str, TensorText>>,
    workspace_size_bytes: u64,
}

#[derive(Serialize)]
struct TensorText {
    dtype: String,
    size: u64,
}

#[derive(Serialize)]
struct FunctionText<'m> {
    function_name: &'m str,
    workspace: Vec<WorkspaceText>,
}

#[derive(Serialize)]
struct WorkspaceText {
    device: i64,
    workspace_size_bytes: u64,
}

#[derive(Serialize)]
struct StorageText<'m> {
    #[serde(skip_serializing_if = "Option::is_none")]
    input_binding: Option<&'m str>,
    size_bytes: u64,
    storage_id: i64,
}

#[derive(Serialize)]
struct ArgumentText<'m> {
    dtype: String,
    input_binding: &'m str,
    shape: &'m [i64],
    size_bytes: u64,
}

#[derive(Serialize)]
struct ExtensionText<'m> {
    abi: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    library: Option<LibraryText<'m>>,
    models: BTreeMap<&'m str, ModelText<'m>>,
    sha256: BTreeMap<&'m String, &'m String>,
}

#[derive(Serialize)]
struct LibraryText<'m> {
    member: &'m str,
    requires: &'m [String],
}

#[derive(Serialize)]
struct ModelText<'m> {
    outputs: &'m [String],
    test_vectors: Vec<VectorText<'m>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<WeightsText<'m>>,
}

#[derive(Serialize)]
struct VectorText<'m> {
    inputs: &'m str,
    outputs: &'m str,
}

#[derive(Serialize)]
struct WeightsText<'m> {
    alignment: usize,
    member: &'m str,
    offsets: BTreeMap<&'m String, &'m u64>,
}

/// Metadata of one model, with all keys at the top level.
fn flat<'m>(metadata: &'m Metadata, only: &'m Module) -> ModuleText<'m> {
    let irc = metadata.extension.as_ref().map(extension);
    ModuleText { irc, version: Some(metadata.version), ..module(only, metadata.version) }
}

fn module(module: &Module, version: u32) -> ModuleText<'_> {
    let targets = module.targets.iter();
    ModuleText {
        executors: module.executors.iter().map(|executor| executor.name()).collect(),
        export_datetime: &module.exported,
        irc: None,
        memory: memory(&module.memory, version),
        model_name: &module.name,
        style: if is_operators(module) { "operator" } else { "full-model" },
        target: match version {
            5 => TargetText::ByDevice(
                targets.map(|t| (t.device.unwrap_or(1).to_string(), t.text.as_str())).collect(),
            ),
            _ => TargetText::List(targets.map(|target| target.text.as_str()).collect()),
        },
        version: None,
    }
}

fn memory(memory: &Memory, version: u32) -> MemoryText<'_> {
    match memory {
        Memory::Model(memory) => MemoryText::Model {
            functions: functions(memory, version),
            sids: memory.storages.as_ref().map(|storages| storages.iter().map(storage).collect()),
        },
        Memory::Operators(operators) => MemoryText::Operators(
            operators
                .iter()
                .map(|(name, arguments)| (name.as_str(), arguments.iter().map(argument).collect()))
                .collect(),
        ),
    }
}

fn storage(storage: &Storage) -> StorageText<'_> {
    StorageText {
        input_binding: storage.input.as_deref(),
        size_bytes: storage.bytes,
        storage_id: storage.id,
    }
}

fn argument(argument: &Argument) -> ArgumentText<'_> {
    ArgumentText {
        dtype: argument.dtype.to_string(),
        input_binding: &argument.name,
        shape: &argument.shape,
        size_bytes: argument.bytes,
    }
}

fn functions(memory: &ModelMemory, version: u32) -> Functions<'_> {
    Functions {
        main: memory.main.iter().map(|main| usage(main, version)).collect(),
        operator_functions: memory.functions.iter().map(function).collect(),
    }
}

fn function(usage: &FunctionUsage) -> FunctionText<'_> {
    let workspace = usage.workspace.iter();
    let workspace = workspace
        .map(|&(device, workspace_size_bytes)| WorkspaceText { device, workspace_size_bytes });
    FunctionText { function_name: &usage.name, workspace: workspace.collect() }
}

fn usage(usage: &Usage, version: u32) -> UsageText<'_> {
    UsageText {
        constants_size_bytes: usage.constants,
        device: usage.device,
        inputs: (version >= 7).then(|| named(&usage.inputs)),
        io_size_bytes: usage.io,
        outputs: (version >= 7).then(|| named(&usage.outputs)),
        workspace_size_bytes: usage.workspace,
    }
}

fn named(tensors: &BTreeMap<String, Tensor>) -> BTreeMap<&str, TensorText> {
    let text = |tensor: &Tensor| TensorText { dtype: tensor.dtype.to_string(), size: tensor.bytes };
    tensors.iter().map(|(name, tensor)| (name.as_str(), text(tensor))).collect()
}

fn extension(extension: &Extension) -> ExtensionText<'_> {
    ExtensionText {
        abi: ABI,
        library: extension.library.as_ref().map(library),
        models: extension.models.iter().map(|(name, each)| (name.as_str(), model(each))).collect(),
        sha256: extension.hashes.iter().collect(),
    }
}

fn library(library: &SharedLibrary) -> LibraryText<'_> {
    LibraryText { member: &library.member, requires: &library.requires }
}

fn model(model: &ModelExtension) -> ModelText<'_> {
    let vectors = model.vectors.iter();
    ModelText {
        outputs: &model.outputs,
        test_vectors: vectors
            .map(|vector| VectorText { inputs: &vector.inputs, outputs: &vector.outputs })
            .collect(),
        weights: model.weights.as_ref().map(weights),
    }
}

fn weights(weights: &Weights) -> WeightsText<'_> {
    let offsets = weights.offsets.iter().collect();
    WeightsText { alignment: ALIGNMENT, member: &weights.member, offsets }
}
