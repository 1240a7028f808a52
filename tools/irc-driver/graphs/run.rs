//! `irc run` of Common IR and ONNX files.
use super::{Libraries, import_options, open, place, refuse_of_ark, sizes};
use crate::{compile, console::Console, run, stop::Stop, values, values::Buffers};
use bytes::Bytes;
use irc::{Results, Session};
use irc_cli::{Backend, Graphs, Run};
use irc_common_format::{Document, model};
use irc_diag::Source;
use irc_onnx_ops::cases::{Values, import_for};
use irc_onnx_ops::{Imported, unsupported};
use irc_tensor::{Tensor, seed_for};
use irc_tl::{Constant, Dim};
use std::path::Path;

/// Runs a model once: its outputs, which are those of the data set if one is given.
pub fn run(
    console: &Console,
    arguments: &Run,
    bytes: Bytes,
    inputs: Buffers,
) -> Result<Buffers, Stop> {
    refuse_of_ark(&arguments.compile, false)?;
    let (document, source) =
        open(console, &arguments.files[0], bytes, &arguments.graphs, Libraries::Bundled)?;
    let (mut inputs, expected) = given(arguments, &document, inputs)?;
    let imported = import(console, &document, &source, &inputs, &arguments.graphs)?;
    if let Some(seed) = arguments.seed {
        fill(&imported, &mut inputs, seed)?;
    }
    let tensors = inputs.to_tensors().map_err(Stop::problem)?;
    let found = execute(console, arguments, &source, &imported, tensors)?;
    if let Some(expected) = expected {
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

/// The program of a file, for the inputs; its warnings are on the console.
pub fn import(
    console: &Console,
    document: &Document,
    source: &Source,
    inputs: &Values,
    flags: &Graphs,
) -> Result<Imported, Stop> {
    let findings = |found: &[_]| Stop::Findings(source.clone(), place(document, found));
    let unknown = unsupported(&document.module);
    if !unknown.is_empty() {
        return Err(findings(&unknown));
    }
    let imported = import_for(&document.module, inputs, import_options(flags, &document.module)?)
        .map_err(|found| findings(&found))?;
    console.findings(source, &place(document, &imported.warnings));
    Ok(imported)
}

/// Gives inputs that are not given random values; a size that nothing tells is 1.
pub fn fill(imported: &Imported, inputs: &mut Values, seed: u64) -> Result<(), Stop> {
    let given = |name: &str| inputs.tensors.get(name).map(|given| &given.ty.shape[..]);
    let sizes = sizes(&imported.graph, given);
    let size = |name: &str| Some(sizes.get(&Dim::symbol(name)).copied().unwrap_or(1));
    for (name, value) in &imported.graph.inputs {
        if inputs.tensors.contains_key(name) {
            continue;
        }
        let Some(ty) = imported.graph.ty(*value).eval(&size) else { continue };
        let random = Tensor::random(ty, seed_for(seed, name));
        let random = random.map_err(|error| Stop::problem(format!("input {name}: {error}")))?;
        inputs.tensors.insert(name.clone(), Constant::of(&random));
    }
    Ok(())
}

fn execute(
    console: &Console,
    arguments: &Run,
    source: &Source,
    imported: &Imported,
    inputs: Buffers,
) -> Result<Buffers, Stop> {
    if arguments.backend == Backend::Reference {
        let _step = console.step("evaluating");
        let graph = &imported.graph;
        let results = graph.eval(&inputs).map_err(|error| Stop::problem(error.to_string()))?;
        return Ok(graph.outputs.iter().map(|(name, _)| name.clone()).zip(results).collect());
    }
    let backend = run::generator(arguments.backend);
    let options = compile::options(&arguments.compile, backend, false, Results::Outputs)?;
    run::expect_runnable(&options.target)?;
    let step = console.step("compiling");
    let compiled = Session::new().compile_graph(&imported.graph, &options);
    let compiled = compiled.map_err(|failure| Stop::failure(source.clone(), failure))?;
    drop(step);
    let _step = console.step("running");
    Ok(compiled.runner()?.run(inputs)?)
}
