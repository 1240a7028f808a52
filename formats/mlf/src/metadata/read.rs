//! Reads metadata of every version from JSON.
//!
//! TVM's code takes precedence over the document of the format; forms that only the
//! document describes are accepted with a warning.

use std::collections::BTreeMap;

use irc_diag::{Diagnostic, Sink, Source, clip};
use irc_json::{At, Node, Object, Reader, Value};

use super::{
    ABI, ALIGNMENT, Argument, Executor, Extension, FunctionUsage, Memory, Metadata, ModelExtension,
    ModelMemory, Module, SharedLibrary, Storage, Target, Tensor, Usage, VERSIONS, Vector, Weights,
};
use crate::json::{parse, reader, report};
use crate::types::DataType;

/// Reads metadata; `None` after an error. Functions below return incomplete values after a
/// diagnostic.
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
        let message = format!("unknown version {version} of the format");
        let help = "versions 1 to 7 are supported";
        report(r, Diagnostic::error("mlf-version", message).help(help), value, &at);
        return None;
    }
    let modules = match object.get("modules").filter(|_| version >= 7) {
        Some(modules) => nested(r, modules, &object.at.key("modules")),
        None => module(r, tree, object.at, version).into_iter().collect(),
    };
    let extension = object.get("irc");
    let extension = extension.and_then(|value| extension_of(r, value, &object.at.key("irc")));
    Some(Metadata { version, modules, extension })
}

fn nested(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Vec<Module> {
    let mut modules = vec![];
    let Some(object) = r.object(value, at) else { return modules };
    for (key, value) in object.entries() {
        let place = at.key(key);
        let read = module(r, value, &place, 7);
        if let Some(module) = read.as_ref().filter(|module| module.name != key) {
            let message = format!("module `{}` is named `{}`", clip(key), clip(&module.name));
            report(r, Diagnostic::error("mlf-model-name", message), value, &place);
        }
        modules.extend(read);
    }
    if object.members.is_empty() {
        report(r, Diagnostic::error("mlf-model-name", "there is no model"), value, at);
    }
    modules
}

fn module(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>, version: u32) -> Option<Module> {
    let object = r.object(value, at)?;
    let style = style(r, &object, version);
    let name = name(r, &object);
    let exported = text(r, &object, "export_datetime");
    let executors =
        list(r, &object, if version < 5 { "runtimes" } else { "executors" }, &mut executor);
    let targets = r.required(&object, "target");
    let targets = targets.map(|value| targets_of(r, value, &at.key("target"), version));
    let memory = r.required(&object, "memory")?;
    let place = at.key("memory");
    let memory = match style? {
        "operator" => Memory::Operators(operators(r, memory, &place)),
        _ => Memory::Model(model_memory(r, memory, &place, version)?),
    };
    Some(Module { name: name?, exported, executors, targets: targets.unwrap_or_default(), memory })
}

fn style<'n>(r: &mut Reader<'_>, object: &Object<'n, '_, '_>, version: u32) -> Option<&'n str> {
    let at = object.at.key("style");
    let Some(value) = object.get("style") else {
        if version >= 4 {
            form(r, object, "style", "`style` is missing; `full-model` is assumed");
        }
        return Some("full-model");
    };
    let style = r.string(value, &at)?;
    if !["full-model", "operator"].contains(&style) {
        let message = format!("unknown style `{}`", clip(style));
        let help = "expected `full-model` or `operator`";
        report(r, Diagnostic::error("mlf-style", message).help(help), value, &at);
        return None;
    }
    Some(style)
}

/// A name that is also part of paths.
fn name(r: &mut Reader<'_>, object: &Object<'_, '_, '_>) -> Option<String> {
    let at = object.at.key("model_name");
    let value = r.required(object, "model_name")?;
    let name = r.string(value, &at)?;
    if crate::archive::path_error(name).is_some() || name.contains('/') {
        let message = format!("`{}` cannot be a part of paths", clip(name));
        report(r, Diagnostic::error("mlf-model-name", message), value, &at);
        return None;
    }
    Some(name.into())
}

/// A warning that metadata have the form of the document.
fn form(r: &mut Reader<'_>, object: &Object<'_, '_, '_>, key: &str, message: &str) {
    let diagnostic = Diagnostic::warning("mlf-metadata-form", message);
    r.report(diagnostic, object.key_span(key), object.at, "");
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

fn targets_of(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>, version: u32) -> Vec<Target> {
    if version >= 6 {
        let target = |r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>| {
            let text = r.string(value, at)?.into();
            Some(Target { device: None, text })
        };
        return r.list(value, at, target).unwrap_or_default();
    }
    let mut targets = vec![];
    let Some(object) = r.object(value, at) else { return targets };
    for (key, value) in object.entries() {
        let place = at.key(key);
        let device = key.parse::<i64>().ok();
        if device.is_none() {
            let message = format!("`{}` is not a device type", clip(key));
            report(r, Diagnostic::error("mlf-target", message), value, &place);
        }
        let text = r.string(value, &place).unwrap_or_default().into();
        targets.push(Target { device, text });
    }
    targets
}

/// A number of bytes, or of a device; 0 after a diagnostic.
fn number<T: TryFrom<i128> + Default>(
    r: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    key: &str,
) -> T {
    some_number(r, object, key).unwrap_or_default()
}

fn some_number<T: TryFrom<i128>>(
    r: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    key: &str,
) -> Option<T> {
    let value = r.required(object, key)?;
    r.integer(value, &object.at.key(key), "a number of bytes or of a device")
}

/// A text; empty after a diagnostic.
fn text(r: &mut Reader<'_>, object: &Object<'_, '_, '_>, key: &str) -> String {
    let text = r.required(object, key).and_then(|value| r.string(value, &object.at.key(key)));
    text.unwrap_or_default().into()
}

fn owned(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<String> {
    r.string(value, at).map(str::to_owned)
}

/// A reader of an element.
type Read<'f, T> = &'f mut dyn FnMut(&mut Reader<'_>, &Node<'_>, &At<'_>) -> Option<T>;

/// The elements of a list, as far as they are valid.
fn list<T>(
    r: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    key: &str,
    read: Read<'_, T>,
) -> Vec<T> {
    let list = r.required(object, key).and_then(|list| r.list(list, &object.at.key(key), read));
    list.unwrap_or_default()
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

fn operators(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> BTreeMap<String, Vec<Argument>> {
    by_name(r, value, at, &mut |r, value, at| r.list(value, at, argument))
}

fn argument(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Argument> {
    let object = r.object(value, at)?;
    let name = text(r, &object, "input_binding");
    let bytes = number(r, &object, "size_bytes");
    let dtype = dtype(r, &object);
    let shape = list(r, &object, "shape", &mut |r, value, at| r.integer(value, at, "a dimension"));
    Some(Argument { name, bytes, shape, dtype: dtype? })
}

fn model_memory(
    r: &mut Reader<'_>,
    value: &Node<'_>,
    at: &At<'_>,
    version: u32,
) -> Option<ModelMemory> {
    if version == 1 {
        let storages = r.list(value, at, storage);
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
            form(r, &object, "functions", "`functions` is missing; its keys are read from here");
            r.object(value, at)?
        }
    };
    let main = list(r, &functions, "main", &mut usage);
    let key = "operator_functions";
    let operators = r.required(&functions, key)?;
    let place = functions.at.key(key);
    let functions = match operators.value {
        Value::Object(_) => {
            form(r, &functions, key, "`operator_functions` is an object; TVM writes a list");
            let functions =
                by_name(r, operators, &place, &mut |r, value, at| r.list(value, at, workspace_of));
            let usage = |(name, workspace)| FunctionUsage { name, workspace };
            functions.into_iter().map(usage).collect()
        }
        _ => r.list(operators, &place, function)?,
    };
    Some(ModelMemory { storages, main, functions })
}

fn storage(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Storage> {
    let object = r.object(value, at)?;
    let id = number(r, &object, "storage_id");
    let bytes = number(r, &object, "size_bytes");
    let input = object.get("input_binding").map(|_| text(r, &object, "input_binding"));
    Some(Storage { id, bytes, input })
}

fn usage(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Usage> {
    let object = r.object(value, at)?;
    let device = number(r, &object, "device");
    let [constants, io, workspace] =
        ["constants_size_bytes", "io_size_bytes", "workspace_size_bytes"]
            .map(|key| number(r, &object, key));
    let [inputs, outputs] = ["inputs", "outputs"].map(|key| match object.get(key) {
        Some(value) => by_name(r, value, &at.key(key), &mut tensor),
        None => BTreeMap::new(),
    });
    Some(Usage { device, constants, io, workspace, inputs, outputs })
}

fn tensor(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Tensor> {
    let object = r.object(value, at)?;
    let (bytes, dtype) = (number(r, &object, "size"), dtype(r, &object));
    Some(Tensor { bytes, dtype: dtype? })
}

fn function(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<FunctionUsage> {
    let object = r.object(value, at)?;
    let name = text(r, &object, "function_name");
    let workspace = list(r, &object, "workspace", &mut workspace_of);
    Some(FunctionUsage { name, workspace })
}

fn workspace_of(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<(i64, u64)> {
    let object = r.object(value, at)?;
    Some((number(r, &object, "device"), number(r, &object, "workspace_size_bytes")))
}

/// irc's extensions.
fn extension_of(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Extension> {
    let object = r.object(value, at)?;
    let abi: u32 = some_number(r, &object, "abi")?;
    if abi != ABI {
        let message = format!(
            "the archive has version {abi} of irc's extensions, this program supports {ABI}"
        );
        report(r, Diagnostic::error("mlf-abi", message), object.get("abi")?, &at.key("abi"));
        return None;
    }
    let hashes = r.required(&object, "sha256")?;
    let hashes = by_name(r, hashes, &at.key("sha256"), &mut owned);
    let models = r.required(&object, "models")?;
    let models = by_name(r, models, &at.key("models"), &mut model);
    let library = object.get("library");
    let library = library.and_then(|value| self::library(r, value, &at.key("library")));
    Some(Extension { hashes, library, models })
}

fn library(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<SharedLibrary> {
    let object = r.object(value, at)?;
    let member = text(r, &object, "member");
    let requires = list(r, &object, "requires", &mut owned);
    Some(SharedLibrary { member, requires })
}

/// The values of an object by their keys, as far as they are valid.
fn by_name<T>(
    r: &mut Reader<'_>,
    value: &Node<'_>,
    at: &At<'_>,
    read: Read<'_, T>,
) -> BTreeMap<String, T> {
    let mut all = BTreeMap::new();
    let Some(object) = r.object(value, at) else { return all };
    for (name, value) in object.entries() {
        all.extend(read(r, value, &at.key(name)).map(|value| (name.to_owned(), value)));
    }
    all
}

fn model(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<ModelExtension> {
    let object = r.object(value, at)?;
    let outputs = list(r, &object, "outputs", &mut owned);
    let vectors = list(r, &object, "test_vectors", &mut vector);
    let weights = object.get("weights");
    let weights = weights.and_then(|value| self::weights(r, value, &at.key("weights")));
    Some(ModelExtension { outputs, weights, vectors })
}

fn vector(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Vector> {
    let object = r.object(value, at)?;
    Some(Vector { inputs: text(r, &object, "inputs"), outputs: text(r, &object, "outputs") })
}

fn weights(r: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<Weights> {
    let object = r.object(value, at)?;
    let alignment: u64 = some_number(r, &object, "alignment")?;
    if alignment != ALIGNMENT as u64 {
        let message = format!("weights are aligned to {alignment} bytes, not {ALIGNMENT}");
        let diagnostic = Diagnostic::error("mlf-weights", message);
        report(r, diagnostic, object.get("alignment")?, &at.key("alignment"));
    }
    let member = text(r, &object, "member");
    let offsets = r.required(&object, "offsets")?;
    let offsets = by_name(r, offsets, &at.key("offsets"), &mut |r, value, at| {
        r.integer(value, at, "an offset")
    });
    Some(Weights { member, offsets })
}
