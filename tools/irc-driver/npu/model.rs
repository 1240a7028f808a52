//! Models scheduled for an NPU.
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
    npu::{Goal, Report, Target, known_layers},
};
use irc_cli::{Kind, Npu, Objective};
use irc_npu_emit::KnownLayers;
use serde_json::{Value, json};
use std::{path::Path, sync::Arc};

/// The options of the flags; `None` if no target is given.
pub fn options(flags: &Npu) -> Result<Option<NpuOptions>, Error> {
    let Some(text) = &flags.target else { return Ok(None) };
    let wrong = |message: String| Error::Usage(format!("--target: {message}"));
    let target: Target = text.parse().map_err(wrong)?;
    target.machine().map_err(wrong)?;
    let tree = match &flags.set_tree {
        Some(path) => {
            let name = path.display().to_string();
            let source = input::source(&name, &input::read(&name)?);
            Some(NpuTree { name, text: source.text().into() })
        }
        None => None,
    };
    let goal = match flags.objective.unwrap_or_default() {
        Objective::Edp => Goal::Edp,
        Objective::Latency => Goal::Latency,
        Objective::Energy => Goal::Energy,
    };
    Ok(Some(NpuOptions { target, batch: flags.batch.map(u64::from), goal, tree }))
}

/// Writes the schedule of a model, or its program, and shows the cost.
pub fn write(
    console: &Console,
    model: &Model<'_>,
    options: &NpuOptions,
    kind: Kind,
    (to, report): (&Path, Option<&Path>),
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
        _ => irc_gemini_format::schedule::write(&*model.npu_schedule(options)?).into_bytes(),
    };
    drop(step);
    output::write(to, &bytes, Content::Text)?;
    if let Some(path) = report {
        let text = format!("{:#}\n", record(&scheduled, options));
        output::write(path, text.as_bytes(), Content::Text)?;
    }
    console.text(&summary(&scheduled.report));
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
    if is_program {
        return Ok(super::translate::write(&*model.npu_program(&options)?, &arguments.output));
    }
    let text = irc_gemini_format::schedule::write(&*model.npu_schedule(&options)?);
    Ok((text.into_bytes(), Content::Text))
}

/// What a model states about the layers of its schedule, and its values if they are requested, which only quantised
/// models have.
pub fn known(
    console: &Console,
    name: &str,
    has_values: bool,
) -> Result<(KnownLayers, Option<Arc<NpuValues>>), Error> {
    let input = Input::open(name, None)?;
    let session = Session::new();
    let model = models::open(console, &session, &input, &ImportOptions::default())?;
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

/// The cost of a schedule as a record; energies are in pJ.
pub fn record(scheduled: &NpuModel, options: &NpuOptions) -> Value {
    let report = &scheduled.report;
    let parts = report.cost.parts;
    let segments = report.segments.iter().map(|segment| {
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
        json!({
            "latency": segment.cost.latency,
            "energy": segment.cost.energy,
            "bound": segment.bound,
            "layers": layers.collect::<Vec<_>>(),
        })
    });
    json!({
        "target": options.target.to_string(),
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
        "tree": scheduled.tree.text(&scheduled.network),
    })
}

/// Checks that an NPU can compute a model; its schedule, if the cost is wanted.
pub fn check(
    input: &Input,
    import: &ImportOptions,
    options: &NpuOptions,
    has_cost: bool,
) -> Result<Option<Value>, irc::Error> {
    let session = Session::new();
    let model = session.import_bytes(input.shown(), input.bytes.clone(), import)?;
    if !has_cost {
        return model.npu_layers().map(|_| None);
    }
    let scheduled = model.npu(options)?;
    let mut found = record(&scheduled, options);
    found["file"] = input.shown().into();
    found["text"] = scheduled.report.to_string().into();
    Ok(Some(found))
}

/// The import options of a file to check.
pub fn import(graphs: &irc_cli::Graphs, input: &Input) -> Result<ImportOptions, Error> {
    match input.content {
        input::Content::Graph => models::options(graphs),
        _ => Ok(ImportOptions::default()),
    }
}
