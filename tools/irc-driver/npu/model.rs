//! Models scheduled for an NPU.
use super::cost;
use crate::{
    console::Console,
    error::Error,
    input::{self, Input},
    models,
    output::{self, Content},
};
use bytes::Bytes;
use irc::{
    ImportOptions, Model, NpuModel, NpuOptions, NpuTree, NpuValues, Session,
    npu::{Goal, Report, Target, allocated, known_layers},
    npu_schedule::{RunnerUp, Segment},
};
use irc_cli::{Dialect, Kind, Npu, Objective};
use irc_npu_emit::KnownLayers;
use serde_json::{Value, json};
use std::{path::Path, sync::Arc};

/// The options of the flags; `None` if no target is given.
pub fn options(flags: &Npu) -> Result<Option<NpuOptions>, Error> {
    let Some(text) = &flags.target else { return Ok(None) };
    let target = target(text)?;
    let tree = match &flags.set_tree {
        Some(path) => {
            let name = path.display().to_string();
            let source = input::source(&name, &input::read(&name)?);
            Some(NpuTree { name, text: source.text().into() })
        }
        None => None,
    };
    let goal = goal(flags);
    Ok(Some(NpuOptions { target, batch: flags.batch.map(u64::from), goal, tree }))
}

/// The NPU that `--target` names.
pub fn target(text: &str) -> Result<Target, Error> {
    let wrong = |message: String| Error::Usage(format!("--target: {message}"));
    let target: Target = text.parse().map_err(wrong)?;
    target.machine().map_err(wrong)?;
    Ok(target)
}

/// What is minimised.
pub fn goal(flags: &Npu) -> Goal {
    match flags.objective.unwrap_or_default() {
        Objective::Edp => Goal::Edp,
        Objective::Latency => Goal::Latency,
        Objective::Energy => Goal::Energy,
    }
}

/// What is written about a scheduled model.
#[derive(Clone, Copy)]
pub struct Written<'a> {
    /// The file for the schedule or the program.
    pub to: &'a Path,
    /// The file for the cost.
    pub report: Option<&'a Path>,
    /// Whether every segment is explained on standard error.
    pub explains: bool,
    /// The dialect of the schedule.
    pub dialect: Option<Dialect>,
}

/// Writes the schedule of a model, or its program, and shows the cost.
pub fn write(
    console: &Console,
    model: &Model<'_>,
    options: &NpuOptions,
    kind: Kind,
    Written { to, report, explains, dialect }: Written<'_>,
) -> Result<(), Error> {
    let step = console.step("scheduling");
    let scheduled = model.npu(options)?;
    step.say("writing the schedule");
    let bytes = match kind {
        Kind::Asm => {
            let numbers = model.npu_values().map_err(|error| first(&error));
            if let Err(why) = numbers.and_then(|values| scheduled.numbers(&values.numbers)) {
                console.note(&format!(
                    "the program moves the data of the model and has neutral constants: {why}"
                ));
            }
            super::translate::write(&*model.npu_program(options)?, to).0
        }
        _ => schedule(model, options, dialect)?.into_bytes(),
    };
    step.say("simulating the program");
    let (estimate, simulated) = (scheduled.report.cost.latency, simulated(model, options));
    drop(step);
    output::write(to, &bytes, Content::Text)?;
    if let Some(path) = report {
        let mut record = record(&scheduled, options);
        cost::add_simulated(&mut record, estimate, &simulated);
        let text = format!("{record:#}\n");
        output::write(path, text.as_bytes(), Content::Text)?;
    }
    if explains {
        console.text(&explanation(&scheduled));
    }
    console.text(&(summary(&scheduled.report) + &cost::compared(estimate, &simulated)));
    Ok(())
}

/// The first diagnostic of an error, and the number of others.
fn first(error: &irc::Error) -> String {
    let found = error.diagnostics();
    let first = found.first().map_or(String::new(), |first| first.message.clone());
    match found.len() {
        0 | 1 => first,
        count => format!("{first} (and {} more layers)", count - 1),
    }
}

/// The cycles of the program of a model, or why there are none.
fn simulated(model: &Model<'_>, options: &NpuOptions) -> Result<u64, String> {
    let reason = |error: irc::Error| {
        let first = error.diagnostics().first();
        first.map_or_else(String::new, |found| found.message.clone())
    };
    let schedule = model.npu_schedule(options).map_err(reason)?;
    let program = model.npu_program(options).map_err(reason)?;
    cost::simulated(&schedule, &program, &options.target)
}

/// Why each segment is as it is.
fn explanation(scheduled: &NpuModel) -> String {
    let mut text = String::new();
    for (number, segment) in scheduled.segments.iter().enumerate() {
        text += &format!("segment {}\n", number + 1);
        text.extend(segment.to_string().lines().map(|line| format!("  {line}\n")));
    }
    text
}

/// Translates a model to its schedule, or to its program.
pub fn translate(
    console: &Console,
    arguments: &irc_cli::Translate,
    bytes: Bytes,
    is_program: bool,
) -> Result<(Vec<u8>, Content), Error> {
    let Some(options) = options(&arguments.npu)? else {
        let message =
            "schedules and programs of a model need --target, as in --target npu:mesh=4x4";
        return Err(Error::Usage(message.into()));
    };
    let content = input::Content::of(&bytes);
    let input = Input { name: arguments.input.clone(), bytes, content };
    let import = import(&arguments.graphs, &input)?;
    let session = Session::new();
    let model = models::open(console, &session, &input, &import)?;
    if arguments.npu.explain_schedule {
        console.text(&explanation(&*model.npu(&options)?));
    }
    if is_program {
        return Ok(super::translate::write(&*model.npu_program(&options)?, &arguments.output));
    }
    let text = schedule(&model, &options, arguments.dialect)?;
    Ok((text.into_bytes(), Content::Text))
}

/// The text of the schedule of a model in a dialect.
fn schedule(
    model: &Model<'_>,
    options: &NpuOptions,
    dialect: Option<Dialect>,
) -> Result<String, Error> {
    let made = model.npu_schedule(options)?;
    let blocks = i64::try_from(options.target.buffer / 1024).unwrap_or(i64::MAX);
    Ok(match dialect {
        None | Some(Dialect::B) => irc_gemini_format::schedule::write(&made),
        Some(Dialect::C) => {
            let made = allocated(&made, blocks);
            let made = made.map_err(|found| Error::problem(found.message))?;
            irc_gemini_format::schedule::write(&made)
        }
    })
}

/// What a model states about the layers of its schedule, and its values if they are requested, which only quantised
/// models have.
pub fn known(
    console: &Console,
    name: &str,
    shapes: &[String],
    has_values: bool,
) -> Result<(KnownLayers, Option<Arc<NpuValues>>), Error> {
    let input = Input::open(name, None)?;
    let graphs = irc_cli::Graphs { shape: shapes.to_vec(), ..irc_cli::Graphs::default() };
    let import = import(&graphs, &input)?;
    let session = Session::new();
    let model = models::open(console, &session, &input, &import)?;
    let layers = model.npu_layers()?;
    let facts = layers.facts(0..layers.network.nodes().len());
    let values = if has_values { Some(model.npu_values()?) } else { model.npu_values().ok() };
    let numbers = values.iter().flat_map(|values| &values.numbers);
    let arithmetic: Vec<_> = numbers.map(|layer| layer.arithmetic).collect();
    let known = known_layers(&layers.network, &facts, &arithmetic);
    Ok((known, values.filter(|_| has_values)))
}

/// The first lines of a report.
fn summary(report: &Report) -> String {
    report.to_string().lines().take(3).map(|line| format!("{line}\n")).collect()
}

/// The cost of the schedule of a model as a record.
pub fn record(scheduled: &NpuModel, options: &NpuOptions) -> Value {
    let mut record = report(&scheduled.report, &scheduled.segments);
    record["target"] = options.target.to_string().into();
    record["tree"] = scheduled.tree.text(&scheduled.network).into();
    record
}

/// The cost of a schedule as a record, with why its segments are as they are; energies are in pJ.
pub fn report(report: &Report, explained: &[Segment]) -> Value {
    let parts = report.cost.parts;
    let segments = report.segments.iter().enumerate().map(|(number, segment)| {
        let layers = segment.layers.iter().map(|layer| {
            json!({
                "layer": layer.name,
                "images": layer.images,
                "cores": layer.cores,
                "scheme": layer.scheme,
                "latency": layer.cost.latency,
                "energy": layer.cost.energy,
            })
        });
        let mut record = json!({
            "latency": segment.cost.latency,
            "energy": segment.cost.energy,
            "bound": segment.bound,
            "layers": layers.collect::<Vec<_>>(),
        });
        if let Some(explained) = explained.get(number) {
            record["compute"] = json!(explained.cores);
            record["links"] = json!(explained.links);
            record["dram"] = json!(explained.dram);
            record["shape"] = json!(explained.shape);
            record["runner_up"] = json!(explained.runner_up.as_ref().map(runner_up));
        }
        record
    });
    json!({
        "batch": report.batch,
        "latency": report.cost.latency,
        "energy": report.cost.energy,
        "edp": report.edp(),
        "energy_by_part": {
            "buffer": parts.buffer,
            "local": parts.local,
            "bus": parts.bus,
            "compute": parts.compute,
            "links": parts.links,
            "dram": parts.dram,
        },
        "segments": segments.collect::<Vec<_>>(),
    })
}

/// The best alternative to a segment.
fn runner_up(found: &RunnerUp) -> Value {
    json!({
        "shape": found.shape,
        "latency": found.cost.map(|cost| cost.latency),
        "energy": found.cost.map(|cost| cost.energy),
        "reason": found.reason,
    })
}

/// Checks that an NPU can compute a model; its schedule, if the cost is wanted.
pub fn check(
    input: &Input,
    import: &ImportOptions,
    options: &NpuOptions,
    (has_cost, explains): (bool, bool),
) -> Result<Option<Value>, irc::Error> {
    let session = Session::new();
    let model = session.import_bytes(input.shown(), input.bytes.clone(), import)?;
    if !has_cost {
        return model.npu_layers().map(|_| None);
    }
    let scheduled = model.npu(options)?;
    let mut found = record(&scheduled, options);
    found["file"] = input.shown().into();
    let mut text = scheduled.report.to_string();
    if explains {
        text += &explanation(&scheduled);
    }
    found["text"] = text.into();
    Ok(Some(found))
}

/// The import options of a file to check.
pub fn import(graphs: &irc_cli::Graphs, input: &Input) -> Result<ImportOptions, Error> {
    match input.content {
        input::Content::Graph => models::options(graphs),
        _ => Ok(ImportOptions::default()),
    }
}
