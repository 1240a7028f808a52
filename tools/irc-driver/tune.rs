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
    CompileOptions, Compiled, Place, Session,
    session::{tunable::Tunable, tuning::Tuning},
};
use irc_cli::{Flags, Tune};
use std::{collections::BTreeSet, path::Path, sync::Arc};

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
    let kernels = model.tunables(&options)?;
    let mut tuning = Tuning { processor: options.target.cpu.clone(), ..Tuning::default() };
    let (mut before, mut after) = (0.0, 0.0);
    let step = console.step("tuning");
    for (number, kernel) in kernels.iter().enumerate() {
        step.say(&format!("tuning kernel {} of {}: {}", number + 1, kernels.len(), kernel.key));
        let Some(found) = tuned(kernel, &options, arguments.time)? else {
            console.note(&format!("{} cannot be measured alone, and is not tuned", kernel.key));
            continue;
        };
        let launches = kernel.launches as f64;
        before += launches * found.before;
        after += launches * found.after;
        if let Some(schedule) = found.schedule {
            tuning.kernels.insert(kernel.key.clone(), schedule);
        }
    }
    drop(step);
    output::write(&arguments.output, tuning.to_json().as_bytes(), output::Content::Text)?;
    let (chosen, all) = (tuning.kernels.len(), kernels.len());
    let (before, after) = (1e3 * before, 1e3 * after);
    console.note(&format!(
        "{chosen} of {all} products and convolutions get other schedules: {before:.4} ms -> {after:.4} ms"
    ));
    Ok(())
}

/// What was measured of a kernel.
struct Found {
    /// The schedule to use; `None` for the default.
    schedule: Option<irc::attributes::Schedule>,
    /// Seconds of a run with the default schedule, and with this one.
    before: f64,
    after: f64,
}

/// Measures the schedules of a kernel; `None` if it is another kernel when it is compiled alone.
fn tuned(kernel: &Tunable, options: &CompileOptions, seconds: f64) -> Result<Option<Found>, Error> {
    let session = Session::new();
    let model = session.import_graph(&kernel.graph);
    let candidates = kernel.candidates();
    let each = seconds / (candidates.len() + 1 + 2 * ROUNDS) as f64;
    let with = |schedule| {
        let kernels = [(kernel.key.clone(), schedule)].into_iter().collect();
        let tuning = Arc::new(Tuning { processor: options.target.cpu.clone(), kernels });
        CompileOptions { tuning, ..options.clone() }
    };
    let prepared = |options: &CompileOptions| -> Result<Prepared, Error> {
        let runner = model.compile(options)?.runner()?;
        let ports: Vec<irc::Port> = runner.inputs().cloned().collect();
        let mut inputs = Buffers::new();
        Missing::random(0).fill(&mut inputs, &ports)?;
        Prepared::of(runner, inputs)
    };
    if model.tuned(with(candidates[0]))? != 1 {
        return Ok(None);
    }
    let time = |prepared: &mut Prepared| -> Result<f64, Error> {
        Ok(latency::measure(Length::Seconds(each), || prepared.run())?.median())
    };
    let mut default = prepared(options)?;
    let (mut best, mut met) = ((f64::INFINITY, None), BTreeSet::new());
    for schedule in candidates {
        // Choices that do not apply lead to code that was measured already.
        let compiled = model.library_with(with(schedule), Place::Given)?;
        if !met.insert(without_hashes(&compiled, kernel)) {
            continue;
        }
        let found = time(&mut prepared(&with(schedule))?)?;
        if found < best.0 {
            best = (found, Some(schedule));
        }
    }
    let Some(schedule) = best.1 else { return Ok(None) };
    let mut fastest = prepared(&with(schedule))?;
    let (mut before, mut after) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        before = time(&mut default)?.min(before);
        after = time(&mut fastest)?.min(after);
    }
    Ok(Some(match after <= MAX_SHARE * before {
        true => Found { schedule: Some(schedule), before, after },
        false => Found { schedule: None, before, after: before },
    }))
}

/// A library without the hash of the kernel's text, which is all that differs in equal code.
fn without_hashes(compiled: &Compiled, kernel: &Tunable) -> Vec<u8> {
    let name = kernel.key.rsplit_once('_').map_or("", |(name, _)| name).as_bytes();
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
