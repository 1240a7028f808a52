//! Output to standard error: diagnostics, problems, notes, progress.
use irc::KernelProgress;
use irc_cli::{Color, Diagnostics, Progress};
use irc_diag::{Diagnostic, Severity, Source};
use serde_json::json;
use std::{
    env,
    io::{self, IsTerminal, Write},
    process::ExitCode,
    time::Duration,
};

/// Default width of the terminal in columns.
const WIDTH: usize = 100;

/// The console of a tool.
#[derive(Clone, Debug)]
pub struct Console {
    tool: &'static str,
    json: bool,
    colour: bool,
    width: usize,
    progress: Progress,
}

impl Console {
    /// The console with the options of the flags.
    pub fn new(tool: &'static str, flags: &irc_cli::Console) -> Self {
        let terminal = io::stderr().is_terminal();
        let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = match flags.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !no_color,
        };
        let columns = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let json = flags.diagnostics == Diagnostics::Json;
        let progress = match flags.progress {
            Progress::Auto if !terminal || json => Progress::None,
            chosen => chosen,
        };
        Self { tool, json, colour, width: columns.unwrap_or(WIDTH), progress }
    }

    /// Whether diagnostics are machine-readable.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Shows diagnostics of a file.
    pub fn diagnostics(&self, source: &Source, diagnostics: &[Diagnostic]) {
        if !self.json {
            return put(&irc_diag::render(source, diagnostics, self.colour, self.width));
        }
        let records = irc_diag::to_json(source, diagnostics);
        for record in records.as_array().into_iter().flatten() {
            put(&format!("{record}\n"));
        }
    }

    /// Shows an error without a file.
    pub fn error(&self, message: &str, help: Option<&str>) {
        self.say(Severity::Error, message, help);
    }

    /// Shows a remark.
    pub fn note(&self, message: &str) {
        self.say(Severity::Note, message, None);
    }

    fn say(&self, severity: Severity, message: &str, help: Option<&str>) {
        let word = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        if self.json {
            let record = json!({"severity": severity, "message": message, "help": help});
            return put(&format!("{record}\n"));
        }
        let tool = self.tool;
        let word = match (self.colour, severity) {
            (false, _) => word.to_owned(),
            (true, Severity::Error) => format!("\x1b[1;31m{word}\x1b[0m"),
            (true, _) => format!("\x1b[1m{word}\x1b[0m"),
        };
        put(&format!("{tool}: {word}: {message}\n"));
        if let Some(help) = help {
            put(&format!("{tool}: help: {help}\n"));
        }
    }

    /// Shows requested text that is not part of the artefact.
    pub fn text(&self, text: &str) {
        put(text);
    }

    /// Shows a step of work until the result is dropped.
    pub fn step(&self, what: &str) -> Step {
        match self.progress {
            Progress::None => Step { bar: None, plain: None },
            Progress::Plain => {
                put(&format!("{}: {what}\n", self.tool));
                Step { bar: None, plain: Some(self.tool) }
            }
            Progress::Auto => {
                let bar = indicatif::ProgressBar::new_spinner().with_message(what.to_owned());
                bar.enable_steady_tick(Duration::from_millis(200));
                Step { bar: Some(bar), plain: None }
            }
        }
    }
}

/// A step of work, shown until it is dropped.
pub struct Step {
    bar: Option<indicatif::ProgressBar>,
    /// The tool, if each step is a line.
    plain: Option<&'static str>,
}

impl Step {
    /// Shows what is being done.
    pub fn say(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
    }

    /// Shows the next part of the step, on a line of its own where each step has one.
    pub fn next(&self, what: &str) {
        self.say(what);
        if let Some(tool) = self.plain {
            put(&format!("{tool}: {what}\n"));
        }
    }

    /// Shows which kernel is being compiled.
    pub fn kernels(&self) -> impl Fn(KernelProgress<'_>) + Send + Sync + 'static {
        let bar = self.bar.clone();
        move |kernel| {
            let Some(bar) = &bar else { return };
            let KernelProgress { name, number, count } = kernel;
            bar.set_message(format!("compiling kernel {} of {count}: {name}", number + 1));
        }
    }

    /// Shows how far a search has come, and the best value of its objective.
    pub fn search(&self) -> impl Fn(irc::npu_schedule::Progress) + Send + Sync + 'static {
        let bar = self.bar.clone();
        move |progress| {
            let Some(bar) = &bar else { return };
            let irc::npu_schedule::Progress { evaluations, budget, best } = progress;
            let found = if best.is_finite() { format!(", best {best:.4e}") } else { String::new() };
            bar.set_message(format!("scheduling: {evaluations} of {budget} evaluations{found}"));
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Writes to standard error; errors are ignored, as there is nowhere to report them.
fn put(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints clap's output: help to standard output, errors to standard error.
pub fn usage(error: &clap::Error) -> ExitCode {
    // A closed pipe, as with `| head`, is not an error.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
