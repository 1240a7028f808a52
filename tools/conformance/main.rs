//! `irc-conformance`: runs ONNX's own test cases through a code generator.
//!
//! A case is a folder with `model.onnx` and test data, as in the `onnx` wheel. Cases are compiled in
//! batches, in separate processes: if one crashes, its cases are run again in halves, until the crashing
//! case is alone. Every case has a line in the page, without exception.

mod case;
mod engine;
mod random;
mod report;
mod worker;

use case::Check;
use engine::Engine;
use report::{Outcome, Report};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use worker::Workers;

const USAGE: &str = "irc-conformance DATA [--backend NAME]... [--part K/N] [--only TEXT] \
    [--write PAGE.md] [--least N] [--outputs] [--limit SECONDS]

  DATA      a folder with the suites node, simple, pytorch-converted, pytorch-operator, or with cases
  --backend a code generator of irc (llvm by default), reference, emulate or cuda; several are compared
  --part    the K-th of every N cases, from 1
  --only    cases whose path holds the text
  --write   a page with every case
  --least   exit code 1 when fewer pass with the first backend
  --outputs writes the outputs of each case and backend to BACKEND.npz in the folder of the case, or the
            error to BACKEND.txt, and compares nothing; a case has one set of inputs
  --limit   a case that takes longer fails; by default, there is no limit";

struct Arguments {
    data: PathBuf,
    engines: Vec<Engine>,
    part: (usize, usize),
    only: String,
    write: Option<PathBuf>,
    least: usize,
    outputs: bool,
    limit: Option<Duration>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, engine, check] = &arguments[..]
        && flag == "--worker"
    {
        return worker::serve(engine, check);
    }
    match parse(arguments).and_then(|arguments| run(&arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("irc-conformance: error: {message}");
            ExitCode::from(2)
        }
    }
}

fn parse(arguments: Vec<String>) -> Result<Arguments, String> {
    let mut parsed = Arguments {
        data: PathBuf::new(),
        engines: vec![],
        part: (1, 1),
        only: String::new(),
        write: None,
        least: 0,
        outputs: false,
        limit: None,
    };
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{argument}: expected a value"));
        match argument.as_str() {
            "--help" | "-h" => return Err(USAGE.into()),
            "--backend" => parsed.engines.push(value()?.parse()?),
            "--part" => parsed.part = part(&value()?)?,
            "--only" => parsed.only = value()?,
            "--write" => parsed.write = Some(value()?.into()),
            "--least" => {
                parsed.least = value()?.parse().map_err(|_| "--least: expected a number")?;
            }
            "--outputs" => parsed.outputs = true,
            "--limit" => {
                let seconds = value()?.parse().map_err(|_| "--limit: expected a number")?;
                parsed.limit = Some(Duration::from_secs(seconds));
            }
            flag if flag.starts_with('-') => return Err(format!("unknown flag {flag}\n{USAGE}")),
            data => parsed.data = data.into(),
        }
    }
    if parsed.data.as_os_str().is_empty() {
        return Err(USAGE.into());
    }
    if parsed.engines.is_empty() {
        parsed.engines.push(Engine::default());
    }
    Ok(parsed)
}

fn part(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    let good = numbers.filter(|(k, n)| (1..=*n).contains(k));
    good.ok_or_else(|| format!("--part: expected K/N with K from 1 to N, found {text}"))
}

/// Runs the cases. Returns whether enough of them pass and all backends agree.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let cases = cases(arguments)?;
    let check = if arguments.outputs { Check::Outputs } else { Check::Compare };
    let mut report = Report::new(&cases);
    for engine in &arguments.engines {
        let start = std::time::Instant::now();
        let workers = Workers { engine: *engine, check, limit: arguments.limit };
        let outcomes = workers.run(&cases)?;
        report.add(*engine, outcomes, start.elapsed());
    }
    print!("{}", report.summary());
    if let Some(page) = &arguments.write {
        std::fs::write(page, report.page())
            .map_err(|error| format!("cannot write {}: {error}", page.display()))?;
    }
    let disagreements = report.disagreements();
    disagreements.iter().for_each(|line| println!("{line}"));
    Ok(report.passed() >= arguments.least && disagreements.is_empty())
}

fn cases(arguments: &Arguments) -> Result<Vec<PathBuf>, String> {
    let suites = ["node", "simple", "pytorch-converted", "pytorch-operator"];
    let mut suites = suites.map(|suite| arguments.data.join(suite)).to_vec();
    suites.retain(|suite| suite.is_dir());
    if suites.is_empty() {
        suites.push(arguments.data.clone());
    }
    let found: Vec<PathBuf> =
        suites.iter().flat_map(|suite| irc_onnx_ops::cases::find(suite)).collect();
    if found.is_empty() {
        return Err(format!("{} has no test cases", arguments.data.display()));
    }
    let (k, n) = arguments.part;
    let chosen = found.into_iter().enumerate().filter(|(index, _)| index % n == k - 1);
    let named = |case: &PathBuf| case.to_string_lossy().contains(&arguments.only);
    Ok(chosen.map(|(_, case)| case).filter(named).collect())
}

/// The name of a case on the page: suite and folder.
fn name_of(case: &Path) -> String {
    let part = |path: Option<&Path>| {
        path.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    };
    format!("{}/{}", part(case.parent()), part(Some(case)))
}
