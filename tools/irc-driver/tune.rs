//! `irc tune`: measures schedules of a model's kernels, and writes those that are faster than the default.
use crate::{
    bench::{
        Prepared,
        latency::{self, Length},
    },
    console::Console,
    error::Error,
    input::{self, Input},
    models, output, target,
    values::{Buffers, Missing},
};
use irc::{
    CompileOptions, Compiled, Model, Session,
    attributes::Schedule,
    session::{
        tunable::{Tunable, Tunables},
        tuning::Tuning,
    },
};
use irc_cli::{Flags, Tune};
use irc_diag::counted;
use std::{collections::BTreeSet, path::Path, time::Instant};

/// The share of the default's time that a schedule must not exceed, so that noise does not select one.
const MAX_SHARE: f64 = 0.97;

/// The number of times that the fastest schedule and the default are compared.
const ROUNDS: usize = 3;

/// Measures, and writes the file.
pub fn tune(console: &Console, arguments: &Tune, flags: &Flags) -> Result<(), Error> {
    let input = Input::open(&arguments.model, arguments.graphs.format.as_deref())?;
    let Some(kind) = input.kind().filter(|_| input.is_for("tune")) else {
        return Err(input::not_for("tune", &arguments.model, input.content));
    };
    flags.expect(&[kind], None).map_err(Error::Usage)?;
    output::probe_all(flags, Path::to_owned)?;
    let target = target::named(arguments.machine.target_cpu.as_deref().unwrap_or("native"))?;
    target.expect_runnable().map_err(Error::problem)?;
    let options = CompileOptions::from(target);
    let import = irc::ImportOptions {
        accumulate: models::accumulate(arguments.machine.ark_accumulate),
        ..models::options(&arguments.graphs)?
    };
    let session = Session::new();
    let model = models::open(console, &session, &input, &import)?;
    let begin = Instant::now();
    let Tunables { kernels, open } = model.tunables(&options)?;
    note_open(console, &model, &open)?;
    let mut tuning = Tuning { processor: options.target.cpu.clone(), ..Tuning::default() };
    let (mut before, mut after) = (0.0, 0.0);
    let step = console.step("tuning");
    for (number, kernel) in kernels.iter().enumerate() {
        step.next(&format!("tuning kernel {} of {}: {}", number + 1, kernels.len(), kernel.symbol));
        let found = tuned(&model, kernel, &options, arguments.time)?;
        let launches = kernel.launches as f64;
        before += launches * found.before;
        after += launches * found.after;
        if let Some(schedule) = found.schedule {
            tuning.kernels.insert(kernel.symbol.clone(), schedule);
        }
    }
    drop(step);
    output::write(&arguments.output, tuning.to_json().as_bytes(), output::Content::Text)?;
    let (chosen, all) = (tuning.kernels.len(), counted(kernels.len(), "kernel"));
    let (before, after, seconds) = (1e3 * before, 1e3 * after, begin.elapsed().as_secs_f64());
    console.note(&match (kernels.is_empty(), chosen) {
        (true, _) => "no kernel was measured: the file has no schedules".to_owned(),
        (_, 0) => format!(
            "no other schedule of {all} is at least 3 % faster: the file has none (measured for {seconds:.1} s)"
        ),
        _ => format!(
            "{chosen} of {all} with products and convolutions get other schedules: {before:.4} ms -> {after:.4} ms (measured for {seconds:.1} s)"
        ),
    });
    Ok(())
}

/// Notes the kernels that are not measured.
fn note_open(console: &Console, model: &Model<'_>, open: &[String]) -> Result<(), Error> {
    if open.is_empty() {
        return Ok(());
    }
    let count = counted(open.len(), "kernel");
    let ports = model.inputs()?.into_iter().filter(|port| !port.sizes.is_empty());
    let shapes: Vec<String> =
        ports.map(|port| format!("--shape {}", port.example_shape())).collect();
    let advice = match shapes.is_empty() {
        true => String::new(),
        false => format!(
            ": give the sizes of inputs to irc tune and to irc compile, as with {}",
            shapes.join(" ")
        ),
    };
    console.note(&format!("{count} with products of open sizes cannot be tuned{advice}"));
    Ok(())
}

/// What was measured of a kernel.
struct Found {
    /// The schedule to use; `None` for the default.
    schedule: Option<Schedule>,
    /// Seconds of a run with the default schedule, and with this one.
    before: f64,
    after: f64,
}

/// Measures the schedules of a kernel.
fn tuned(
    model: &Model<'_>,
    kernel: &Tunable,
    options: &CompileOptions,
    seconds: f64,
) -> Result<Found, Error> {
    let candidates = kernel.candidates();
    let each = seconds / (candidates.len() + 1 + 2 * ROUNDS) as f64;
    let time = |prepared: &mut Prepared| -> Result<f64, Error> {
        Ok(latency::measure(Length::Seconds(each), || prepared.run())?.median())
    };
    let compiled = model.compile_tunable(kernel, Schedule::default(), options)?;
    let mut met = BTreeSet::from([without_hashes(&compiled, kernel)]);
    let mut default = prepared(&compiled)?;
    let mut best: Option<(f64, Schedule, Prepared)> = None;
    for schedule in candidates {
        let compiled = model.compile_tunable(kernel, schedule, options)?;
        // Choices that do not apply lead to code that was measured already.
        if !met.insert(without_hashes(&compiled, kernel)) {
            continue;
        }
        let mut prepared = prepared(&compiled)?;
        let found = time(&mut prepared)?;
        if best.as_ref().is_none_or(|(best, ..)| found < *best) {
            best = Some((found, schedule, prepared));
        }
    }
    let mut before = time(&mut default)?;
    let Some((_, schedule, mut fastest)) = best else {
        return Ok(Found { schedule: None, before, after: before });
    };
    let mut after = f64::INFINITY;
    for _ in 0..ROUNDS {
        before = time(&mut default)?.min(before);
        after = time(&mut fastest)?.min(after);
    }
    Ok(match after <= MAX_SHARE * before {
        true => Found { schedule: Some(schedule), before, after },
        false => Found { schedule: None, before, after: before },
    })
}

/// A program with random inputs.
fn prepared(compiled: &Compiled) -> Result<Prepared, Error> {
    let runner = compiled.runner()?;
    let ports: Vec<irc::Port> = runner.inputs().cloned().collect();
    let mut inputs = Buffers::new();
    Missing::random(0).fill(&mut inputs, &ports)?;
    Prepared::of(runner, inputs)
}

/// A library without the hash of the kernel's text, which is all that differs in equal code.
fn without_hashes(compiled: &Compiled, kernel: &Tunable) -> Vec<u8> {
    let name = kernel.symbol.rsplit_once('_').map_or("", |(name, _)| name).as_bytes();
    let mut bytes = compiled.library.clone();
    for at in 0..bytes.len() {
        if bytes[at..].starts_with(name) {
            let end = (at + name.len() + HASH).min(bytes.len());
            bytes[at + name.len()..end].fill(0);
        }
    }
    bytes
}

/// Bytes after a kernel's name in its symbol.
const HASH: usize = 17;
