//! `irc run` of Common IR and ONNX files.
use super::{open, place};
use crate::{
    compile,
    console::Console,
    input, output, run,
    stop::Stop,
    values::{self, Buffers},
};
use irc::{Results, Session};
use irc_cli::{Backend, Run};
use irc_common_format::{Document, model};
use irc_diag::Source;
use irc_onnx_ops::cases::{Values, import_for};
use irc_onnx_ops::{Imported, unsupported};
use irc_tensor::{Tensor, seed_for};
use irc_tl::{Constant, Dim};
use std::collections::BTreeMap;
use std::path::Path;

/// Whether a file is one of these, by its first bytes or by its content.
pub fn is_graph(name: &str) -> bool {
    match input::peek(name) {
        Some(content) => content == input::Content::Graph,
        None => {
            std::fs::metadata(name).is_ok_and(|file| file.len() < 1 << 24)
                && input::read(name)
                    .is_ok_and(|bytes| input::content(&bytes) == input::Content::Graph)
        }
    }
}

/// Runs a model once.
pub fn run(console: &Console, arguments: &Run, name: &str) -> Result<(), Stop> {
    if arguments.backend == Backend::Cuda {
        return Err(Stop::not_built("the CUDA backend"));
    }
    run::refuse_of_plans(arguments)?;
    run::say_threads(console, arguments.threads);
    let (document, source) = open(console, name, &arguments.graphs)?;
    let (mut inputs, expected) = given(arguments, &document)?;
    let imported = import(&document, &source, &inputs)?;
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
    finish(console, arguments, found)
}

/// Writes, compares or prints the outputs.
fn finish(console: &Console, arguments: &Run, found: Buffers) -> Result<(), Stop> {
    if let Some(path) = &arguments.outputs {
        values::write(path, &found)?;
    }
    if let Some(path) = &arguments.expected {
        return values::check(console, values::read(path)?, &found, arguments.tolerance);
    }
    if arguments.outputs.is_none() && arguments.data_set.is_none() {
        output::print(&values::summary(&found))?;
    }
    Ok(())
}

/// The inputs that are given, and the outputs that a data set expects.
fn given(arguments: &Run, document: &Document) -> Result<(Values, Option<Values>), Stop> {
    let graph = document.module.graph.as_ref();
    let graph = graph.ok_or_else(|| Stop::problem("the file is a library: it has no graph"))?;
    let (mut inputs, mut expected) = (Values::default(), None);
    if let Some(folder) = &arguments.data_set {
        inputs = data_set(folder, "input", &graph.inputs)?;
        expected = Some(data_set(folder, "output", &graph.outputs)?);
    }
    let more = arguments.inputs.as_deref().map(values::read).transpose()?.unwrap_or_default();
    for (name, tensor) in more {
        let ports: Vec<&str> = graph.inputs.iter().map(model::Value::name).collect();
        if !ports.contains(&name.as_str()) {
            let known = ports.join(", ");
            return Err(Stop::problem(format!(
                "no input is named '{name}'; the inputs are {known}"
            )));
        }
        inputs.tensors.insert(name, Constant::of(&tensor));
    }
    Ok((inputs, expected))
}

fn data_set(folder: &Path, kind: &str, ports: &[model::Value]) -> Result<Values, Stop> {
    let read = Values::read(folder, kind, ports);
    read.map_err(|message| Stop::problem(format!("{}: {message}", folder.display())))
}

/// The program of a file, for the inputs.
pub fn import(document: &Document, source: &Source, inputs: &Values) -> Result<Imported, Stop> {
    let findings = |found: &[_]| Stop::Findings(source.clone(), place(document, found));
    let unknown = unsupported(&document.module);
    if !unknown.is_empty() {
        return Err(findings(&unknown));
    }
    import_for(&document.module, inputs).map_err(|found| findings(&found))
}

/// Gives inputs that are not given random values; a size that nothing tells is 1.
fn fill(imported: &Imported, inputs: &mut Values, seed: u64) -> Result<(), Stop> {
    let mut sizes: BTreeMap<Dim, i64> = BTreeMap::new();
    for (name, value) in &imported.graph.inputs {
        let Some(given) = inputs.tensors.get(name) else { continue };
        let dims = imported.graph.ty(*value).dims.iter().cloned();
        sizes.extend(dims.zip(given.ty.shape.iter().copied()));
    }
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
        let results =
            imported.graph.eval(&inputs).map_err(|error| Stop::problem(error.to_string()))?;
        return Ok(imported
            .graph
            .outputs
            .iter()
            .map(|(name, _)| name.clone())
            .zip(results)
            .collect());
    }
    let backend = match arguments.backend {
        Backend::Cranelift => irc::Backend::Cranelift,
        _ => irc::Backend::Llvm,
    };
    let options = compile::options(&arguments.compile, backend, false, Results::Outputs)?;
    run::expect_runnable(&options.target)?;
    let step = console.step("compiling");
    let compiled = Session::new().compile_graph(&imported.graph, &options);
    let compiled = compiled.map_err(|failure| Stop::failure(source.clone(), failure))?;
    drop(step);
    let _step = console.step("running");
    let failed = |error: irc_runtime::RunError| Stop::problem(error.to_string());
    let mut runner = compiled.runner().map_err(failed)?;
    runner.run(inputs).map_err(failed)
}
