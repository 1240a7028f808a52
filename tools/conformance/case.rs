//! Compiles cases together and runs them.

use crate::Outcome;
use crate::engine::Engine;
use crate::random;
use crate::report::Pass;
use irc::{
    Backend, CompileOptions, Session, Target,
    codegen::{GpuForm, Output},
    gpu::{EmulationError, Options},
};
use irc_common_format::model::Module;
use irc_onnx_ops::ImportOptions;
use irc_onnx_ops::Imported;
use irc_onnx_ops::cases::{Case, Values, import_for};
use irc_runtime::{Execution, GpuProgram};
use irc_tensor::{Comparison, DType, Tensor, Tolerance, write_npz};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A data set of a case, imported.
struct Unit {
    case: usize,
    module: Arc<Module>,
    imported: Imported,
    inputs: Values,
    expected: Values,
}

/// What becomes of the results of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// They are compared with the expected outputs.
    Compare,
    /// They are written to the folder of the case.
    Outputs,
}

impl Check {
    /// Its name in the arguments of a worker.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compare => "compare",
            Self::Outputs => "outputs",
        }
    }

    /// The check of a name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Compare, Self::Outputs].into_iter().find(|check| check.name() == name)
    }
}

type Results = Vec<Result<BTreeMap<String, Tensor>, String>>;

/// Runs cases. Returns an outcome for each.
pub fn run(engine: Engine, check: Check, folders: &[PathBuf]) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = vec![Ok(Pass::Official); folders.len()];
    let mut units = vec![];
    for (case, folder) in folders.iter().enumerate() {
        match read(case, folder, engine) {
            Ok(own) => units.extend(own),
            Err(message) => outcomes[case] = Err(message),
        }
    }
    let results = match engine {
        Engine::Reference => units.iter().map(evaluate).collect(),
        Engine::Emulator => units.iter().map(emulate).collect(),
        Engine::Cuda => units.iter().map(on_gpu).collect(),
        Engine::Code(backend) => compile_and_run(&units, backend),
    };
    for (unit, result) in units.iter().zip(results) {
        let outcome = result.and_then(|found| match check {
            Check::Compare => compare(unit, &found),
            Check::Outputs => write(&folders[unit.case], engine, &found).map(|()| Pass::Official),
        });
        let joined = match (&outcomes[unit.case], outcome) {
            (Ok(before), Ok(now)) => Ok((*before).max(now)),
            (Err(message), _) => Err(message.clone()),
            (Ok(_), Err(message)) => Err(message),
        };
        outcomes[unit.case] = joined;
    }
    outcomes
}

fn read(case: usize, folder: &Path, engine: Engine) -> Result<Vec<Unit>, String> {
    let read = Case::read(folder).map_err(|message| format!("reading: {message}"))?;
    if read.sets.is_empty() {
        return Err("reading: no test data".into());
    }
    let module = Arc::new(read.module);
    let known_sizes = matches!(engine, Engine::Emulator | Engine::Cuda);
    let unit = |(inputs, expected): (Values, Values)| {
        let options = ImportOptions { known_sizes, ..ImportOptions::default() };
        let imported = import_for(&module, &inputs, options).map_err(|diagnostics| {
            let diagnostics: Vec<_> = diagnostics.iter().map(ToString::to_string).collect();
            format!("importing: {}", diagnostics.join("; "))
        })?;
        Ok(Unit { case, module: module.clone(), imported, inputs, expected })
    };
    read.sets.into_iter().map(unit).collect()
}

/// The steps by which two decoders of JPEG may differ: each rounds inverse transforms to within one, and then
/// colours.
const JPEG: Tolerance = Tolerance { abs: 2.0, rel: 0.0, rms: 0.0 };

/// Compares results as the official runner does; else by their distribution, if they are random, or within the
/// tolerances of their types.
fn compare(unit: &Unit, found: &BTreeMap<String, Tensor>) -> Outcome {
    let Unit { module, imported, inputs, expected, .. } = unit;
    let Err(message) = expected.compare(found, &imported.structures) else {
        return Ok(Pass::Official);
    };
    if let Some(verdict) = random::check(module, inputs, expected, found) {
        return verdict.map(|()| Pass::Distribution);
    }
    let jpeg = inputs.to_tensors()?.values().any(|file| file.bytes().starts_with(b"\xff\xd8\xff"));
    let close = |(name, expected): (&String, &Tensor)| {
        let tolerance = match jpeg && expected.dtype() == DType::U8 {
            true => JPEG,
            false => Tolerance::of(expected.dtype()),
        };
        let found = found.get(name)?;
        irc_tensor::compare(expected, found, tolerance).ok().filter(Comparison::is_match)
    };
    let expected = expected.to_tensors()?;
    let all = expected.iter().all(|pair| close(pair).is_some());
    if all && unit.expected.structures.is_empty() { Ok(Pass::Tolerance) } else { Err(message) }
}

/// Writes the outputs of a case.
fn write(folder: &Path, engine: Engine, found: &BTreeMap<String, Tensor>) -> Result<(), String> {
    let file = File::create(folder.join(format!("{engine}.npz")));
    let file = file.map_err(|error| format!("writing: {error}"))?;
    write_npz(BufWriter::new(file), found).map_err(|error| format!("writing: {error}"))
}

fn evaluate(unit: &Unit) -> Result<BTreeMap<String, Tensor>, String> {
    let graph = &unit.imported.graph;
    let results = graph.eval(&unit.inputs.to_tensors()?).map_err(|error| error.to_string())?;
    Ok(graph.outputs.iter().map(|(name, _)| name.clone()).zip(results).collect())
}

/// The PTX of a case.
fn ptx(unit: &Unit, form: GpuForm) -> Result<Vec<u8>, String> {
    let session = Session::new();
    let model = session.import_graph(&unit.imported.graph);
    let code = model.emit(Output::Ptx, Target { form, ..Target::gpu(80) });
    code.map_err(|error| format!("compiling: {}", messages(&error)))
}

fn on_gpu(unit: &Unit) -> Result<BTreeMap<String, Tensor>, String> {
    let failed = |message: String| format!("running: {message}");
    let code = ptx(unit, GpuForm::default())?;
    let program = GpuProgram::from_ptx(&String::from_utf8_lossy(&code)).map_err(failed)?;
    let execution = Execution::new(&Arc::new(program)).map_err(failed)?;
    execution.run_on(&unit.inputs.to_tensors()?).map_err(failed)
}

/// Runs a case as one kernel, and as a launch for each step, which must give the same bytes.
fn emulate(unit: &Unit) -> Result<BTreeMap<String, Tensor>, String> {
    let whole = emulate_as(unit, GpuForm::default())?;
    let launches = emulate_as(unit, GpuForm { separate: true, ..GpuForm::default() })?;
    let other = "running: a launch for each step gives other numbers than one kernel";
    if whole == launches { Ok(whole) } else { Err(other.to_owned()) }
}

fn emulate_as(unit: &Unit, form: GpuForm) -> Result<BTreeMap<String, Tensor>, String> {
    let code = ptx(unit, form)?;
    let source = irc_diag::Source::from_bytes("kernel.ptx", &code);
    match irc::gpu::emulate(&source, &unit.inputs.to_tensors()?, &Options::CHECKED) {
        Ok(emulated) => Ok(emulated.outputs),
        Err(EmulationError::Message(message)) => Err(format!("running: {message}")),
        Err(EmulationError::Diagnostics(found)) => {
            let found: Vec<_> = found.iter().map(|found| found.message.clone()).collect();
            Err(format!("running: {}", found.join("; ")))
        }
    }
}

fn compile_and_run(units: &[Unit], backend: Backend) -> Results {
    let target = Target::host().with_backend(backend);
    let options = CompileOptions::from(target);
    let all = |message: String| vec![Err(format!("compiling: {message}")); units.len()];
    let session = Session::new();
    let models: Vec<_> =
        units.iter().map(|unit| session.import_graph(&unit.imported.graph)).collect();
    let compiled = match session.compile_batch(&models, &options) {
        Ok(compiled) => compiled,
        Err(error) => return all(messages(&error)),
    };
    let runners = match compiled.runners() {
        Ok(runners) => runners,
        Err(error) => return all(error.to_string()),
    };
    let entries = compiled.programs.iter().zip(runners).zip(units);
    let one = |((entry, runner), unit): ((&Result<_, irc::Error>, Option<_>), &Unit)| {
        let runner: Option<irc_runtime::Runner> = runner;
        if let Err(error) = entry {
            return Err(format!("compiling: {}", messages(error)));
        }
        let mut runner = runner.ok_or("compiling: no entry in the library")?;
        runner.run(unit.inputs.to_tensors()?).map_err(|error| format!("running: {error}"))
    };
    entries.map(one).collect()
}

fn messages(error: &irc::Error) -> String {
    let messages: Vec<_> =
        error.diagnostics.iter().map(|diagnostic| diagnostic.message.clone()).collect();
    messages.join("; ")
}
