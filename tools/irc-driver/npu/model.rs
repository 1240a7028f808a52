//! Models scheduled for an NPU.
use super::{
    ModelOf, cost,
    host::Names,
    of_model::{self, Pair},
    reasons::{advised, first},
};
use crate::{
    console::Console,
    error::Error,
    input::{self, Input},
    models,
    output::{self, Content},
    values::Given,
};
use bytes::Bytes;
use irc::{
    ImportOptions, Model, NpuDivision, NpuModel, NpuOptions, NpuStep, NpuTree, NpuValues, Session,
    npu::{Goal, Place, Report, Target, allocated, known_layers, tiled},
    npu_schedule::{RunnerUp, Segment, Splits},
};
use irc_cli::{Dialect, Flags, Kind, Npu, Objective};
use irc_diag::{Diagnostic, Severity, counted};
use irc_gemini_format::schedule::Schedule;
use irc_npu::{Fingerprint, Part, Program, listing};
use irc_npu_emit::KnownLayers;
use serde_json::{Value, json};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The options of the flags; `None` if no target is given.
pub fn options(flags: &Npu) -> Result<Option<NpuOptions>, Error> {
    let Some(text) = &flags.target else {
        return match flags.objective {
            Some(_) => Err(Error::Usage(
                "--objective of a model needs --target, as in --target npu:mesh=4x4".into(),
            )),
            None => Ok(None),
        };
    };
    let target = target(text)?;
    let tree = match &flags.set_tree {
        Some(path) => {
            let name = path.display().to_string();
            let bytes = input::read(&name)?;
            if bytes.contains(&0) {
                let message =
                    format!("--set-tree {name}: expected a tree as text, found a binary file");
                return Err(Error::problem(message));
            }
            let source = input::source(&name, &bytes);
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
    /// Whether the host computes what the NPU does not.
    pub falls_back: bool,
    /// How the model was quantised for the NPU, so that all layers must have numbers.
    pub calibration: Option<&'a str>,
    /// The command line, whose files none that is written replaces.
    pub flags: &'a Flags,
}

/// Writes the schedule of a model, or its program, and shows the cost.
pub fn write(
    console: &Console,
    model: &Model<'_>,
    options: &NpuOptions,
    kind: Kind,
    written: Written<'_>,
) -> Result<(), Error> {
    expect_one_core(options, written.dialect)?;
    let division = division(model, options, written.falls_back)?;
    let names = Names::new(model, &division)?;
    let count = division.parts().len() as u32;
    let paths = paths(&written, kind, count)?;
    if paths.len() > 1 {
        output::probe_derived(written.flags, &paths)?;
    }
    let mut files: Vec<(PathBuf, Vec<Output>)> = vec![];
    let (mut lines, mut records, mut number) = (String::new(), vec![], 0);
    let mut cycles = Some(0);
    for step in &division.steps {
        if step.place == Place::Host {
            let step = names.of(step)?;
            lines += &step.to_string();
            records.push(json!({ "place": "host", "nodes": step.nodes }));
            continue;
        }
        number += 1;
        let part = Part { number, count };
        let made = part_of(console, &step.model, options, kind, &written)?;
        if written.explains {
            if !division.is_whole() {
                console.text(&format!("part {part}\n"));
            }
            console.text(&made.explanation);
        }
        let mut record = made.record;
        cycles = cycles.and_then(|all: u64| Some(all + record["simulated"].as_u64()?));
        if !division.is_whole() {
            lines += &format!("part {part}, on the NPU\n");
            record["place"] = "npu".into();
            record["part"] = number.into();
        }
        lines += &made.summary;
        records.push(record);
        match made.output {
            Output::Program { program, model, .. } => {
                let part = (!division.is_whole()).then_some(part);
                let output = Output::Program { program, model, part };
                match files.first_mut() {
                    Some((_, all)) => all.push(output),
                    None => files.push((written.to.into(), vec![output])),
                }
            }
            Output::Schedule(_) => {
                files.push((paths[number as usize - 1].clone(), vec![made.output]));
            }
        }
    }
    if let Some(cycles) = cycles.filter(|_| count > 1) {
        lines += &format!("all parts: {} of the NPU, simulated\n", counted(cycles, "cycle"));
    }
    if let [first, .., last] = &files[..] {
        let [first, last] = [first, last].map(|(path, _)| path.display());
        console.note(&format!("the schedules of the {count} parts are {first} to {last}"));
    }
    let mut staged = vec![];
    for (path, outputs) in &files {
        let produce = |out: &mut dyn io::Write| outputs.iter().try_for_each(|one| one.write(out));
        staged.push(output::stage_pieces(path, produce)?);
    }
    if let Some(path) = written.report {
        let record = match division.is_whole() {
            true => records.remove(0),
            false => json!({ "steps": records, "reasons": reasons(&division) }),
        };
        let text = format!("{record:#}\n");
        staged.push(output::stage(path, text.as_bytes(), Content::Text)?);
    }
    staged.into_iter().try_for_each(output::Stream::finish)?;
    console.text(&lines);
    Ok(())
}

/// The files of the parts of a model: of each schedule one, of all programs one.
fn paths(written: &Written<'_>, kind: Kind, count: u32) -> Result<Vec<PathBuf>, Error> {
    match (kind, count) {
        (Kind::Asm, _) | (_, 1) => Ok(vec![written.to.into()]),
        _ => (1..=count).map(|number| numbered(written.to, number)).collect(),
    }
}

/// The steps of a model: all of it on the NPU, or as much as the NPU computes.
pub fn division<'s>(
    model: &Model<'s>,
    options: &NpuOptions,
    falls_back: bool,
) -> Result<NpuDivision<'s>, Error> {
    if !falls_back {
        // All that the NPU does not compute is reported with what helps.
        model.npu_layers().map_err(advised)?;
        let whole = NpuStep { place: Place::Npu, model: *model };
        return Ok(NpuDivision { steps: vec![whole], reasons: vec![] });
    }
    let division = model.npu_division()?;
    let count = division.parts().len();
    if options.tree.is_some() && count > 1 {
        let message = format!(
            "--set-tree: the NPU computes the model in {count} parts, and a tree is of one network"
        );
        return Err(Error::Usage(message));
    }
    Ok(division)
}

/// What is written of a part. Its text is written piece by piece, as it takes more memory than what it is of.
enum Output {
    /// A program, with the model and the part that it states.
    Program {
        program: Arc<Program>,
        model: Option<Fingerprint>,
        part: Option<Part>,
    },
    Schedule(Arc<Schedule>),
}

impl Output {
    fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        match self {
            Self::Program { program, model, part } => {
                let heading = listing::Heading { part: *part, model: model.as_ref() };
                listing::write_to(program, heading, out)
            }
            Self::Schedule(schedule) => irc_gemini_format::schedule::write_to(schedule, out),
        }
    }
}

/// A part of a model that is scheduled.
struct ScheduledPart {
    output: Output,
    record: Value,
    explanation: String,
    summary: String,
}

/// Schedules a part of a model.
fn part_of(
    console: &Console,
    model: &Model<'_>,
    options: &NpuOptions,
    kind: Kind,
    written: &Written<'_>,
) -> Result<ScheduledPart, Error> {
    let step = console.step("scheduling");
    model.observe_search(step.search());
    let scheduled = model.npu(options)?;
    if written.calibration.is_some() {
        model.npu_values(&scheduled.splits).map_err(advised)?;
    }
    step.say("writing the schedule");
    let output = match kind {
        Kind::Asm => {
            match model.npu_values(&scheduled.splits) {
                Err(error) => {
                    let note = without_numbers(&error).into_iter().next();
                    console.diagnostics(&error.file, note.as_slice());
                }
                Ok(values) if !scheduled.tree.batch.is_multiple_of(values.layers.images) => {
                    let [own, batch] = [values.layers.images, scheduled.tree.batch];
                    console.note(&format!(
                        "the program computes {} at once: irc run needs a multiple of those of the model, which has {own}",
                        counted(batch, "image")
                    ));
                }
                Ok(_) => {}
            }
            let program = model.npu_program(options)?;
            let calibration = written.calibration.map(str::to_owned);
            let stated = program.model.clone();
            let stated = stated.map(|model| Fingerprint { calibration, ..model });
            Output::Program { program, model: stated, part: None }
        }
        _ => Output::Schedule(schedule(model, options, written.dialect)?),
    };
    step.say("simulating the program");
    let (estimate, simulated) = (scheduled.report.cost.latency, simulated(model, options));
    let is_far = simulated.as_ref().is_ok_and(|cycles| *cycles > 2 * estimate);
    let has_weights =
        scheduled.layers.network.nodes().iter().any(|node| node.layer.weights().is_some());
    if is_far && has_weights && scheduled.report.batch > 1 && !options.target.reloads {
        console.note(
            "the estimate counts weights once, and the program loads them for each group of images: with \
             weights=reload in --target, the search counts every load",
        );
    }
    let mut record = record(&scheduled, options);
    cost::add_simulated(&mut record, estimate, &simulated);
    Ok(ScheduledPart {
        output,
        record,
        explanation: explanation(&scheduled),
        summary: summary(&scheduled.report) + &cost::compared(estimate, &simulated),
    })
}

/// What a program of a model is whose layers have no numbers, as notes: the first also says how many more there are.
fn without_numbers(error: &irc::Error) -> Vec<Diagnostic> {
    let note = |(index, found): (usize, &Diagnostic)| {
        let message = match index {
            0 => format!(
                "the program moves the data of the model and has placeholder constants: {}",
                first(error)
            ),
            _ => found.message.clone(),
        };
        Diagnostic { severity: Severity::Note, message, ..found.clone() }
    };
    error.diagnostics().iter().enumerate().map(note).collect()
}

/// Why nodes run on the host.
fn reasons(division: &NpuDivision<'_>) -> Vec<String> {
    division.reasons.iter().map(|reason| reason.message.clone()).collect()
}

/// `net.json` as `net.1.json`.
fn numbered(path: &Path, number: u32) -> Result<PathBuf, Error> {
    if output::is_stdout(path) {
        let message = "the schedules of the parts of a model are several files: name one with -o";
        return Err(Error::Usage(message.into()));
    }
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or("json");
    Ok(path.with_extension(format!("{number}.{suffix}")))
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
    expect_one_core(&options, arguments.dialect)?;
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
    let made = schedule(&model, &options, arguments.dialect)?;
    Ok((irc_gemini_format::schedule::write(&made).into_bytes(), Content::Text))
}

/// The schedule of a model in a dialect.
fn schedule(
    model: &Model<'_>,
    options: &NpuOptions,
    dialect: Option<Dialect>,
) -> Result<Arc<Schedule>, Error> {
    let made = model.npu_schedule(options)?;
    let blocks = i64::try_from(options.target.buffer / 1024).unwrap_or(i64::MAX);
    Ok(match dialect {
        None | Some(Dialect::B) => made,
        Some(other) => {
            let made = match other {
                Dialect::A => tiled(&made, blocks * 1024),
                _ => allocated(&made, blocks),
            };
            Arc::new(made.map_err(|found| Error::problem(found.message))?)
        }
    })
}

/// Rejects a mesh of several cores for the dialect of one core.
fn expect_one_core(options: &NpuOptions, dialect: Option<Dialect>) -> Result<(), Error> {
    let [width, height] = options.target.mesh;
    match dialect == Some(Dialect::A) && (width, height) != (1, 1) {
        true => Err(Error::Usage(format!(
            "--dialect a is for one core, as in --target npu:mesh=1x1; this mesh has {width} by {height}"
        ))),
        false => Ok(()),
    }
}

/// What a model states about the layers of its schedule, and its values if they are requested, which only quantised
/// models have.
pub fn known(
    console: &Console,
    file: &str,
    schedule: &Schedule,
    of: &ModelOf<'_>,
) -> Result<(KnownLayers, Option<Arc<NpuValues>>), Error> {
    let input = Input::open(of.name, None)?;
    let graphs = irc_cli::Graphs { shape: of.shapes.to_vec(), ..irc_cli::Graphs::default() };
    let import = import(&graphs, &input)?;
    let import = models::with_given_shapes(&input, import, &Given::open(of.inputs)?)?;
    let session = Session::new();
    let model = models::open_quantised(console, &session, &input, &import, of.quantising)?;
    let has_values = of.has_values;
    let pair = Pair { file, model: of.name };
    let model = match of.falls_back {
        true => part_of_schedule(console, pair, schedule, &model)?,
        false => model,
    };
    let (layers, splits) = of_model::layers(pair, schedule, &model)?;
    let values = model.npu_values(&splits);
    let values = if has_values { Some(values?) } else { values.ok() };
    let numbers = values.iter().flat_map(|values| values.numbers.iter());
    let arithmetic: Vec<_> = numbers.map(|layer| layer.arithmetic).collect();
    let known = known_layers(&layers.network, &layers.facts(), &arithmetic);
    Ok((known, values.filter(|_| has_values)))
}

/// The part of a model that has the layers of a schedule.
fn part_of_schedule<'s>(
    console: &Console,
    pair: Pair<'_>,
    schedule: &Schedule,
    model: &Model<'s>,
) -> Result<Model<'s>, Error> {
    let parts = model.npu_division()?.parts();
    let number = of_model::part(pair, schedule, &parts)?;
    let (part, count) = (number + 1, parts.len());
    console.note(&format!("the schedule is of part {part} of {count} of {}", pair.model));
    Ok(parts[number])
}

/// The first lines of a report.
fn summary(report: &Report) -> String {
    report.to_string().lines().take(3).map(|line| format!("{line}\n")).collect()
}

/// The cost of the schedule of a model as a record.
pub fn record(scheduled: &NpuModel, options: &NpuOptions) -> Value {
    let mut record = report(&scheduled.report, &scheduled.segments);
    record["target"] = options.target.to_string().into();
    record["tree"] = scheduled.tree.text(&scheduled.layers.network).into();
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

/// What is wanted of a model that is checked.
#[derive(Clone, Copy)]
pub struct CheckOptions {
    /// What its schedule costs.
    pub cost: bool,
    /// Why its segments are as they are.
    pub explanation: bool,
    /// Whether the host computes what the NPU does not.
    pub falls_back: bool,
}

/// Checks that an NPU can compute a model; its schedule, if the cost is wanted. Notes say what the host computes.
pub fn check(
    console: &Console,
    input: &Input,
    import: &ImportOptions,
    options: &NpuOptions,
    wanted: CheckOptions,
) -> Result<(Option<Value>, Vec<Diagnostic>), Error> {
    let session = Session::new();
    let model = session.import_bytes(input.shown(), input.bytes.clone(), import)?;
    let division = division(&model, options, wanted.falls_back)?;
    let mut notes = vec![];
    for part in division.parts() {
        if let Err(error) = part.npu_values(&Splits::default()) {
            notes.extend(without_numbers(&error));
        }
    }
    notes.extend(division.reasons.iter().cloned());
    if !wanted.cost && !wanted.falls_back {
        return Ok((None, notes));
    }
    let search = console.step("scheduling");
    model.observe_search(search.search());
    let names = Names::new(&model, &division)?;
    let count = division.parts().len() as u32;
    let (mut text, mut steps, mut number) = (String::new(), vec![], 0);
    for step in &division.steps {
        if step.place == Place::Host {
            let step = names.of(step)?;
            text += &step.to_string();
            steps.push(json!({ "place": "host", "nodes": step.nodes }));
            continue;
        }
        number += 1;
        let part = Part { number, count };
        let layers = step.model.npu_layers()?.network.nodes().len();
        if wanted.falls_back {
            text += &format!("part {part}, on the NPU: {}\n", counted(layers, "layer"));
        }
        let mut found = json!({ "layers": layers });
        if wanted.cost {
            let scheduled = step.model.npu(options)?;
            found = record(&scheduled, options);
            text += &scheduled.report.to_string();
            if wanted.explanation {
                text += &explanation(&scheduled);
            }
        }
        found["place"] = "npu".into();
        steps.push(found);
    }
    let mut found = match wanted.falls_back {
        true => json!({ "steps": steps }),
        false => steps.remove(0),
    };
    found["file"] = input.shown().into();
    found["text"] = text.into();
    Ok((Some(found), notes))
}

/// The import options of a file to check.
pub fn import(graphs: &irc_cli::Graphs, input: &Input) -> Result<ImportOptions, Error> {
    match input.content {
        input::Content::Graph => models::options(graphs),
        _ => Ok(ImportOptions::default()),
    }
}
