//! `irc run` of Common IR and ONNX files.
use super::{Libraries, import, open, options, refuse_of_ark};
use crate::{compile, console::Console, run, stop::Stop, values, values::Buffers};
use bytes::Bytes;
use irc::{Results, Session};
use irc_cli::Run;
use irc_common_format::{Document, model};
use irc_onnx_ops::cases::Values;
use irc_tl::Constant;
use std::path::Path;

/// Runs a model once: its outputs, which are those of the data set if one is given.
pub fn run(
    console: &Console,
    arguments: &Run,
    bytes: Bytes,
    inputs: Buffers,
) -> Result<Buffers, Stop> {
    refuse_of_ark(&arguments.compile, false)?;
    let mut options = options(&arguments.graphs)?;
    let (document, source) =
        open(console, &arguments.files[0], bytes, &options, Libraries::Bundled)?;
    let (given, expected) = given(arguments, &document, inputs)?;
    options.inputs = given;
    let session = Session::new();
    let model = import(console, &session, &document, source, &options)?;
    let backend = run::generator(arguments.backend);
    let compile = compile::options(&arguments.compile, backend, false, Results::Outputs)?;
    let given = options.inputs.to_tensors().map_err(Stop::problem)?;
    let found = run::run_model(console, arguments, &model, &compile, given)?;
    if let (Some(expected), Some(imported)) = (expected, model.imported()) {
        let same = expected.compare(&found, &imported.structures);
        same.map_err(|message| {
            console.error(&message, None);
            Stop::Mismatch
        })?;
    }
    Ok(found)
}

/// The inputs that are given, and the outputs that a data set expects.
fn given(
    arguments: &Run,
    document: &Document,
    more: Buffers,
) -> Result<(Values, Option<Values>), Stop> {
    let graph = document.module.graph.as_ref();
    let graph = graph.ok_or_else(|| Stop::problem("the file is a library: it has no graph"))?;
    let (mut inputs, mut expected) = (Values::default(), None);
    if let Some(folder) = &arguments.data_set {
        inputs = data_set(folder, "input", &graph.inputs)?;
        expected = Some(data_set(folder, "output", &graph.outputs)?);
    }
    add(&mut inputs, document, more)?;
    Ok((inputs, expected))
}

/// The inputs in a file, if one is given.
pub fn read(document: &Document, path: Option<&Path>) -> Result<Values, Stop> {
    let mut inputs = Values::default();
    if let Some(path) = path {
        add(&mut inputs, document, values::read(path)?)?;
    }
    Ok(inputs)
}

/// Adds inputs by name.
fn add(inputs: &mut Values, document: &Document, more: Buffers) -> Result<(), Stop> {
    let ports = document.module.graph.iter().flat_map(|graph| &graph.inputs);
    let ports: Vec<&str> = ports.map(model::Value::name).collect();
    for (name, tensor) in more {
        if !ports.contains(&name.as_str()) {
            let known = ports.join(", ");
            return Err(Stop::problem(format!(
                "no input is named '{name}'; the inputs are {known}"
            )));
        }
        inputs.tensors.insert(name, Constant::of(&tensor));
    }
    Ok(())
}

fn data_set(folder: &Path, kind: &str, ports: &[model::Value]) -> Result<Values, Stop> {
    let wrong = |message: &str| Stop::problem(format!("{}: {message}", folder.display()));
    let values = Values::read(folder, kind, ports).map_err(|message| wrong(&message))?;
    if values.tensors.is_empty() && !ports.is_empty() {
        let message = match folder.is_dir() {
            true => format!("expected {kind}_0.pb and so on, found none"),
            false => "is no folder".to_owned(),
        };
        return Err(wrong(&message));
    }
    Ok(values)
}
