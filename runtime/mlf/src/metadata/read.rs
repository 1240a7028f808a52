//! From JSON to metadata, of every version.
//!
//! The document of the format differs from what writes it; what writes it counts, and what the
//! document says is read with a warning.

use irc_diag::{Diagnostic, Sink, Source, clip};
use irc_json::{At, Map, Node, Object, Reader, Value};

use super::{
    ABI, ALIGNMENT, Argument, Executor, Extension, FunctionUsage, Memory, Metadata, ModelExtension,
    ModelMemory, Module, SharedLibrary, Storage, Target, Tensor, Usage, VERSIONS, Vector, Weights,
};
use crate::json::{parse, reader, report};
use crate::types::DataType;

/// Reads metadata; nothing after an error, which is in `sink`.
pub fn read(source: &Source, sink: &mut Sink) -> Option<Metadata> {
    let before = sink.error_count();
    let tree = parse(source, sink)?;
    let metadata = metadata(&mut reader(sink), &tree);
    (sink.error_count() == before).then_some(metadata).flatten()
}

fn metadata(r: &mut Reader<'_>, tree: &Node<'_>) -> Option<Metadata> {
    let object = r.object(tree, &At::ROOT)?;
    let at = object.at.key("version");
    let value = r.required(&object, "version")?;
    let version = r.integer::<u32>(value, &at, "a version number")?;
    if !VERSIONS.contains(&version) {
        let message = format!("version {version} of the format is not known");
        let help = "versions 1 to 7 are read";
        report(r, Diagnostic::error("mlf-version", message).help(help), value, &at);
        return None;
    }
    let modules = match object.get("modules").filter(|_| version >= 7) {
        Some(modules) => nested(r, modules, &object.at.key("modules")),
        None => module(r, tree, object.at, version).map(|module| vec![module]),
    };
    let extension = match object.get("irc") {
        Some(value) => Some(extension(r, value, &object.at.key("irc"))?),
        None => None,
    };
    Some(Metadata { version, modules: modules?, extension })
}

fn nested(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Vec<Module>> {
    let object = r.object(value, at)?;
    let mut modules = vec![];
    for (key, value) in object.entries() {
        let place = at.key(key);
        let read = module(r, value, &place, 7);
        let name = read.as_ref().map(|module| module.name.as_str());
        if name.is_some_and(|name| name != key) {
            let message = format!("module `{}` is named `{}`", clip(key), clip(name?));
            report(r, Diagnostic::error("mlf-model-name", message), value, &place);
        }
        modules.push(read);
    }
    if modules.is_empty() {
        report(r, Diagnostic::error("mlf-model-name", "there is no model"), value, at);
    }
    modules.into_iter().collect()
}

fn module(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>, version: u32) -> Option<Module> {
    let object = r.object(value, at)?;
    let style = style(r, &object, version);
    let name = name(r, &object);
    let exported = r.required(&object, "export_datetime");
    let exported = exported.and_then(|value| r.string(value, &at.key("export_datetime")));
    let key = if version < 5 { "runtimes" } else { "executors" };
    let executors = r.required(&object, key);
    let executors = executors.and_then(|value| r.list(value, &at.key(key), executor));
    let targets = r.required(&object, "target");
    let targets = targets.and_then(|value| targets_of(r, value, &at.key("target"), version));
    let memory = r.required(&object, "memory")?;
    let place = at.key("memory");
    let memory = match style?.as_str() {
        "operator" => operators(r, memory, &place).map(Memory::Operators),
        _ => model_memory(r, memory, &place, version).map(Memory::Model),
    };
    Some(Module {
        name: name?,
        exported: exported?.into(),
        executors: executors?,
        targets: targets?,
        memory: memory?,
    })
}

fn style(r: &mut Reader<'_>, object: &Object<'_, '_, '_>, version: u32) -> Option<String> {
    let at = object.at.key("style");
    let Some(value) = object.get("style") else {
        if version >= 4 {
            form(r, object, "style", "`style` is missing; taken as `full-model`");
        }
        return Some("full-model".into());
    };
    let style = r.string(value, &at)?;
    if !["full-model", "operator"].contains(&style) {
        let message = format!("unknown style `{}`", clip(style));
        let help = "expected `full-model` or `operator`";
        report(r, Diagnostic::error("mlf-style", message).help(help), value, &at);
        return None;
    }
    Some(style.into())
}

/// A name that is also part of paths.
fn name(r: &mut Reader<'_>, object: &Object<'_, '_, '_>) -> Option<String> {
    let at = object.at.key("model_name");
    let value = r.required(object, "model_name")?;
    let name = r.string(value, &at)?;
    if crate::archive::path_fault(name).is_some() || name.contains('/') {
        let message = format!("`{}` cannot be a part of paths", clip(name));
        report(r, Diagnostic::error("mlf-model-name", message), value, &at);
        return None;
    }
    Some(name.into())
}

/// A warning that metadata have the form of the document.
fn form(r: &mut Reader<'_>, object: &Object<'_, '_, '_>, key: &str, message: &str) {
    let finding = Diagnostic::warning("mlf-metadata-form", message);
    r.report(finding, object.key_span(key), object.at, "");
}

fn executor(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Executor> {
    let name = r.string(value, at)?;
    let found = [Executor::Graph, Executor::Aot].into_iter().find(|each| each.name() == name);
    if found.is_none() {
        let message = format!("unknown executor `{}`", clip(name));
        let help = "expected `graph` or `aot`";
        report(r, Diagnostic::error("mlf-executor", message).help(help), value, at);
    }
    found
}

fn targets_of(
    r: &mut Reader<'_>,
    value: &Node<'_>,
    at: &At<'_>,
    version: u32,
) -> Option<Vec<Target>> {
    if version >= 6 {
        return r.list(value, at, |r, value, at| {
            let text = r.string(value, at)?.into();
            Some(Target { device: None, text })
        });
    }
    let object = r.object(value, at)?;
    let mut targets = vec![];
    for (key, value) in object.entries() {
        let place = at.key(key);
        let device = key.parse::<i64>().ok();
        if device.is_none() {
            let message = format!("`{}` is no device type", clip(key));
            report(r, Diagnostic::error("mlf-target", message), value, &place);
        }
        let text = r.string(value, &place);
        targets.push(
            device
                .zip(text)
                .map(|(device, text)| Target { device: Some(device), text: text.into() }),
        );
    }
    targets.into_iter().collect()
}

/// A number of bytes, or of a device.
fn number<T: TryFrom<i128>>(
    r: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    key: &str,
) -> Option<T> {
    let value = r.required(object, key)?;
    r.integer(value, &object.at.key(key), "a number of bytes or of a device")
}

fn text(r: &mut Reader<'_>, object: &Object<'_, '_, '_>, key: &str) -> Option<String> {
    let value = r.required(object, key)?;
    Some(r.string(value, &object.at.key(key))?.into())
}

fn dtype(r: &mut Reader<'_>, object: &Object<'_, '_, '_>) -> Option<DataType> {
    let value = r.required(object, "dtype")?;
    let at = object.at.key("dtype");
    match r.string(value, &at)?.parse() {
        Ok(dtype) => Some(dtype),
        Err(message) => {
            report(r, Diagnostic::error("mlf-metadata-dtype", message), value, &at);
            None
        }
    }
}

fn operators(
    r: &mut Reader<'_>,
    value: &Node<'_>,
    at: &At<'_>,
) -> Option<Map<String, Vec<Argument>>> {
    by_name(r, value, at, |r, value, at| r.list(value, at, argument))
}

fn argument(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Argument> {
    let object = r.object(value, at)?;
    let name = text(r, &object, "input_binding");
    let bytes = number(r, &object, "size_bytes");
    let dtype = dtype(r, &object);
    let shape = r.required(&object, "shape")?;
    let shape =
        r.list(shape, &at.key("shape"), |r, value, at| r.integer::<i64>(value, at, "a dimension"));
    Some(Argument { name: name?, bytes: bytes?, shape: shape?, dtype: dtype? })
}

fn model_memory(
    r: &mut Reader<'_>,
    value: &Node<'_>,
    at: &At<'_>,
    version: u32,
) -> Option<ModelMemory> {
    if version == 1 {
        let storages = Some(r.list(value, at, storage)?);
        return Some(ModelMemory { storages, ..ModelMemory::default() });
    }
    let object = r.object(value, at)?;
    let storages = match object.get("sids") {
        Some(storages) => Some(r.list(storages, &at.key("sids"), storage)?),
        None => None,
    };
    let place = at.key("functions");
    let functions = match object.get("functions") {
        Some(functions) => r.object(functions, &place)?,
        None => {
            form(r, &object, "functions", "`functions` is missing; its keys are taken from here");
            r.object(value, at)?
        }
    };
    let main = r.required(&functions, "main");
    let main = main.and_then(|main| r.list(main, &functions.at.key("main"), usage));
    let key = "operator_functions";
    let operators = r.required(&functions, key)?;
    let place = functions.at.key(key);
    let operators = match operators.value {
        Value::Object(_) => {
            form(r, &functions, key, "`operator_functions` is an object; TVM writes a list");
            let functions =
                by_name(r, operators, &place, |r, value, at| r.list(value, at, workspace_of));
            let usage = |(name, workspace)| FunctionUsage { name, workspace };
            functions.map(|functions| functions.into_iter().map(usage).collect())
        }
        _ => r.list(operators, &place, function),
    };
    Some(ModelMemory { storages, main: main?, functions: operators? })
}

fn storage(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Storage> {
    let object = r.object(value, at)?;
    let id = number(r, &object, "storage_id");
    let bytes = number(r, &object, "size_bytes");
    let input = match object.get("input_binding") {
        Some(_) => Some(text(r, &object, "input_binding")?),
        None => None,
    };
    Some(Storage { id: id?, bytes: bytes?, input })
}

fn usage(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Usage> {
    let object = r.object(value, at)?;
    let device = number(r, &object, "device");
    let [constants, io, workspace] =
        ["constants_size_bytes", "io_size_bytes", "workspace_size_bytes"]
            .map(|key| number(r, &object, key));
    let [inputs, outputs] = ["inputs", "outputs"].map(|key| match object.get(key) {
        Some(value) => by_name(r, value, &at.key(key), tensor),
        None => Some(Map::new()),
    });
    Some(Usage {
        device: device?,
        constants: constants?,
        io: io?,
        workspace: workspace?,
        inputs: inputs?,
        outputs: outputs?,
    })
}

fn tensor(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Tensor> {
    let object = r.object(value, at)?;
    let (bytes, dtype) = (number(r, &object, "size"), dtype(r, &object));
    Some(Tensor { bytes: bytes?, dtype: dtype? })
}

fn function(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<FunctionUsage> {
    let object = r.object(value, at)?;
    let name = text(r, &object, "function_name");
    let workspace = r.required(&object, "workspace")?;
    let workspace = r.list(workspace, &at.key("workspace"), workspace_of);
    Some(FunctionUsage { name: name?, workspace: workspace? })
}

fn workspace_of(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<(i64, u64)> {
    let object = r.object(value, at)?;
    let device = number(r, &object, "device");
    let bytes = number(r, &object, "workspace_size_bytes");
    Some((device?, bytes?))
}

/// What our archives say.
fn extension(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Extension> {
    let object = r.object(value, at)?;
    let abi: u32 = number(r, &object, "abi")?;
    if abi != ABI {
        let message = format!("the archive follows agreement {abi}, this program {ABI}");
        report(r, Diagnostic::error("mlf-abi", message), object.get("abi")?, &at.key("abi"));
        return None;
    }
    let hashes = r.required(&object, "sha256")?;
    let hashes =
        by_name(r, hashes, &at.key("sha256"), |r, value, at| Some(r.string(value, at)?.to_owned()));
    let models = r.required(&object, "models")?;
    let models = by_name(r, models, &at.key("models"), model);
    let library = match object.get("library") {
        Some(value) => Some(library(r, value, &at.key("library"))?),
        None => None,
    };
    Some(Extension { hashes: hashes?, library, models: models? })
}

fn library(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<SharedLibrary> {
    let object = r.object(value, at)?;
    let member = text(r, &object, "member");
    let requires = r.required(&object, "requires")?;
    let requires =
        r.list(requires, &at.key("requires"), |r, value, at| Some(r.string(value, at)?.to_owned()));
    Some(SharedLibrary { member: member?, requires: requires? })
}

fn by_name<T>(
    r: &mut Reader<'_>,
    value: &Node<'_>,
    at: &At<'_>,
    mut read: impl FnMut(&mut Reader<'_>, &Node<'_>, &At<'_>) -> Option<T>,
) -> Option<Map<String, T>> {
    let object = r.object(value, at)?;
    let mut all = vec![];
    for (name, value) in object.entries() {
        all.extend(read(r, value, &at.key(name)).map(|value| (name.to_owned(), value)));
    }
    (all.len() == object.members.len()).then(|| all.into())
}

fn model(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<ModelExtension> {
    let object = r.object(value, at)?;
    let outputs = r.required(&object, "outputs")?;
    let outputs =
        r.list(outputs, &at.key("outputs"), |r, value, at| Some(r.string(value, at)?.to_owned()));
    let vectors = r.required(&object, "test_vectors")?;
    let vectors = r.list(vectors, &at.key("test_vectors"), |r, value, at| {
        let object = r.object(value, at)?;
        let [inputs, outputs] = ["inputs", "outputs"].map(|key| text(r, &object, key));
        Some(Vector { inputs: inputs?, outputs: outputs? })
    });
    let weights = match object.get("weights") {
        Some(value) => Some(weights(r, value, &at.key("weights"))?),
        None => None,
    };
    Some(ModelExtension { outputs: outputs?, weights, vectors: vectors? })
}

fn weights(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Weights> {
    let object = r.object(value, at)?;
    let alignment: u64 = number(r, &object, "alignment")?;
    if alignment != ALIGNMENT as u64 {
        let message = format!("weights are aligned to {alignment} bytes, not {ALIGNMENT}");
        let finding = Diagnostic::error("mlf-weights", message);
        report(r, finding, object.get("alignment")?, &at.key("alignment"));
    }
    let member = text(r, &object, "member");
    let offsets = r.required(&object, "offsets")?;
    let offsets = by_name(r, offsets, &at.key("offsets"), |r, value, at| {
        r.integer::<u64>(value, at, "an offset")
    });
    Some(Weights { member: member?, offsets: offsets? })
}
