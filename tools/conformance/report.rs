//! The outcomes of the cases.

use crate::engine::Engine;
use crate::name_of;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How a case passed, or its error.
pub type Outcome = Result<Pass, String>;

/// How the results of a case are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pass {
    /// They are those expected, within the tolerance of the official runner.
    Official,
    /// They are those expected, within the tolerances of their types.
    Tolerance,
    /// They are random, and plausible.
    Distribution,
}

impl Pass {
    /// How it is described on the page.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Official => "within the official tolerance",
            Self::Tolerance => "within the tolerance of its types",
            Self::Distribution => "by distribution",
        }
    }

    /// The pass of a description.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Official, Self::Tolerance, Self::Distribution];
        all.into_iter().find(|pass| pass.name() == name)
    }
}

/// The outcomes of all cases, by backend.
pub struct Report {
    cases: Vec<String>,
    columns: Vec<(Engine, Vec<Outcome>, Duration)>,
}

impl Report {
    /// An empty report.
    pub fn new(cases: &[PathBuf]) -> Self {
        Self { cases: cases.iter().map(|case| name_of(case)).collect(), columns: vec![] }
    }

    /// Adds the outcomes of a backend.
    pub fn add(&mut self, engine: Engine, outcomes: Vec<Outcome>, time: Duration) {
        self.columns.push((engine, outcomes, time));
    }

    /// Number of cases that pass with the first backend.
    pub fn passed(&self) -> usize {
        let first = self.columns.first();
        first
            .map_or(0, |(_, outcomes, _)| outcomes.iter().filter(|outcome| outcome.is_ok()).count())
    }

    /// Numbers of passed cases and of all cases, by suite.
    fn suites(&self, outcomes: &[Outcome]) -> BTreeMap<&str, (usize, usize)> {
        let mut suites: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (case, outcome) in self.cases.iter().zip(outcomes) {
            let suite = case.split('/').next().unwrap_or_default();
            let (passed, all) = suites.entry(suite).or_default();
            *passed += usize::from(outcome.is_ok());
            *all += 1;
        }
        suites
    }

    /// A summary as text.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for (engine, outcomes, time) in &self.columns {
            for (suite, (passed, all)) in self.suites(outcomes) {
                text += &format!("{engine} {suite}: {passed} of {all}\n");
            }
            let passed = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            let (all, seconds) = (outcomes.len(), time.as_secs());
            text += &format!("{engine}: {passed} of {all} pass, in {seconds} s\n");
        }
        text
    }

    /// Cases that pass with one backend but not with another.
    pub fn disagreements(&self) -> Vec<String> {
        let mut lines = vec![];
        for (index, case) in self.cases.iter().enumerate() {
            let of = |(engine, outcomes, _): &(Engine, Vec<Outcome>, Duration)| {
                (*engine, outcomes[index].clone())
            };
            let row: Vec<_> = self.columns.iter().map(of).collect();
            let passed = row.iter().filter(|(_, outcome)| outcome.is_ok()).count();
            if passed == 0 || passed == row.len() {
                continue;
            }
            for (engine, outcome) in row {
                let what = outcome.err().unwrap_or_else(|| "passes".into());
                lines.push(format!("{case}: {engine}: {what}"));
            }
        }
        lines
    }

    /// The page, with a row for every case.
    pub fn page(&self) -> String {
        let mut page = String::from(HEAD);
        page += "| suite |";
        self.columns.iter().for_each(|(engine, ..)| page += &format!(" {engine} |"));
        page += " cases |\n|---|";
        self.columns.iter().for_each(|_| page += "---:|");
        page += "---:|\n";
        let counts: Vec<_> =
            self.columns.iter().map(|(_, outcomes, _)| self.suites(outcomes)).collect();
        let mut sums = vec![0; counts.len()];
        let names: Vec<&str> =
            counts.first().map(|first| first.keys().copied().collect()).unwrap_or_default();
        for suite in names {
            page += &format!("| {suite} |");
            for (sum, count) in sums.iter_mut().zip(&counts) {
                *sum += count[suite].0;
                page += &format!(" {} |", count[suite].0);
            }
            page += &format!(" {} |\n", counts[0][suite].1);
        }
        page += "| all |";
        sums.iter().for_each(|sum| page += &format!(" {sum} |"));
        page += &format!(" {} |\n", self.cases.len());
        page += "\n## Cases that do not pass\n\n| case | why |\n|---|---|\n";
        for (index, case) in self.cases.iter().enumerate() {
            let why = self.columns.iter().filter_map(|(engine, outcomes, _)| {
                Some(format!("{engine}: {}", shown(outcomes[index].as_ref().err()?)))
            });
            let why: Vec<_> = why.collect();
            if !why.is_empty() {
                page += &format!("| `{case}` | {} |\n", why.join("<br>"));
            }
        }
        page += OTHERWISE;
        for (index, case) in self.cases.iter().enumerate() {
            let passes = self.columns.iter().filter_map(|(_, all, _)| all[index].as_ref().ok());
            if let Some(pass) = passes.max().filter(|pass| **pass != Pass::Official) {
                page += &format!("| `{case}` | {} |\n", pass.name());
            }
        }
        page += "\n## Cases that pass\n\n";
        let passes =
            |index: &usize| self.columns.iter().all(|(_, outcomes, _)| outcomes[*index].is_ok());
        for index in (0..self.cases.len()).filter(passes) {
            page += &format!("* `{}`\n", self.cases[index]);
        }
        page
    }
}

/// A message for a table cell: one line, truncated.
fn shown(message: &str) -> String {
    let line: String = message.chars().map(|c| if c == '\n' { ' ' } else { c }).collect();
    let line = line.replace('|', "\\|").replace('<', "&lt;");
    match line.char_indices().nth(160) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

const OTHERWISE: &str = "
## Cases compared in another way

Where the expected values are one draw of a random generator, types, shapes and the values that may occur are
those expected, and the number of ones, or of kept elements, is within five standard deviations of its mean. Where
elements that are 0 but for rounding, 16-bit floats, or pixels of a JPEG differ by more than the official runner admits, they are within the
[tolerances](tolerances.md) of their types.

| case | how it is compared |
|---|---|
";

const HEAD: &str = "<!-- Written by `cargo xtask conformance`. -->
# Conformance

The test cases that the Python package `onnx` 1.22.0 carries: each a model with inputs and the outputs
they must give, of equal types and within 1e-3 relative and 1e-7 absolute. Models are imported,
compiled by our own code generators and run; nothing is left out. `cargo xtask conformance` gets the
cases and writes this page.

";
