//! Compiles and runs a model, plans it, runs the plan too, and compares.
//!
//! `cargo run -p irc --example plan_and_run -- examples/softmax.model.json`

use irc::{Session, Target, planner};
use irc_ark_format::{
    model,
    plan::{self, Architecture, Plan},
};
use irc_diag::{Diagnostic, Sink, Source, render};
use irc_executor::{Kernels, Rank};
use irc_tensor::{Tensor, Tolerance, compare, seed_for};
use std::{collections::BTreeMap, env, error::Error, fs, path::Path};

type Buffers = BTreeMap<String, Tensor>;

/// A model of the repository.
const SOFTMAX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/softmax.model.json");

fn main() -> Result<(), Box<dyn Error>> {
    run(&env::args().nth(1).unwrap_or_else(|| SOFTMAX.to_owned()))
}

#[test]
fn the_plan_gives_what_the_model_gives() -> Result<(), Box<dyn Error>> {
    run(SOFTMAX)
}

/// Does all of it for one model file.
fn run(path: &str) -> Result<(), Box<dyn Error>> {
    let source = Source::new(path, fs::read_to_string(path)?);
    let folder = tempfile::tempdir()?;
    let session = Session::new();
    let (inputs, expected) = run_model(&session, path)?;
    let plan = make_plan(&source)?;
    println!(
        "{} processor groups on {} processors",
        plan.processor_groups.len(),
        plan.num_processors
    );
    let found = run_plan(&session, plan, inputs, folder.path())?;
    for (name, expected) in &expected {
        let found = found.get(name).ok_or_else(|| format!("the plan does not write {name}"))?;
        let comparison = compare(expected, found, Tolerance::of(expected.dtype()))?;
        if !comparison.is_match() {
            return Err(format!("{name}: {comparison}").into());
        }
        println!("{name}: the plan gives what the model gives");
    }
    Ok(())
}

/// Compiles and runs a model on random inputs, which come back with the outputs.
fn run_model(session: &Session, path: &str) -> Result<(Buffers, Buffers), Box<dyn Error>> {
    let model = session.import(path)?;
    let program = model.compile(Target::host())?;
    let mut inputs = Buffers::new();
    for port in program.inputs() {
        let seed = seed_for(1, &port.name);
        let ty = port.tensor_type().ok_or("an input of a type that no tensor has")?;
        inputs.insert(port.name.clone(), Tensor::random(ty, seed)?);
    }
    let outputs = program.run(inputs.clone())?;
    Ok((inputs, outputs))
}

/// Plans a model for an A100, and checks the plan by the rules of plans.
fn make_plan(source: &Source) -> Result<Plan, Box<dyn Error>> {
    let mut sink = Sink::new();
    let document = model::parse(source, &model::Options::default(), &mut sink)
        .ok_or_else(|| rendered(source, sink.diagnostics()))?;
    let target = planner::Target::new(Architecture::Cuda80, None)?;
    let options = planner::Options::new(target);
    let planned = planner::plan(&document.model, &options).map_err(messages)?;
    let diagnostics = plan::check(&planned.plan);
    if diagnostics.iter().any(Diagnostic::is_error) {
        let source = Source::new("plan.json", plan::write(&planned.plan));
        return Err(rendered(&source, &diagnostics).into());
    }
    Ok(planned.plan)
}

/// What a planner could not do, a line each.
fn messages(found: Vec<planner::NodeDiagnostic>) -> String {
    let messages: Vec<_> = found.into_iter().map(|diagnostic| diagnostic.message).collect();
    messages.join("\n")
}

/// Runs a plan as the machine that it describes; every buffer that it writes comes back.
fn run_plan(
    session: &Session,
    plan: Plan,
    inputs: Buffers,
    folder: &Path,
) -> Result<Buffers, Box<dyn Error>> {
    let source = Source::new("plan.json", plan::write(&plan));
    let compiled = session.plan(source).compile(&Target::host())?;
    let library = folder.join("plan.so");
    fs::write(&library, &compiled.library)?;
    let rank = Rank::new(plan, &compiled.code, Kernels::load(&library)?)?;
    let mut memories = [rank.memory(inputs)?];
    let options = irc_executor::Options { threads: 2, ..Default::default() };
    irc_executor::run(&[&rank], &mut memories, options)?;
    let [memory] = memories;
    Ok(rank.outputs(memory))
}

/// Diagnostics as text, with the lines they are about.
fn rendered(source: &Source, diagnostics: &[Diagnostic]) -> String {
    render(source, diagnostics, false, 100)
}
