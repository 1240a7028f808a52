//! Diagnostics about instructions.

use irc_diag::{Diagnostic, Severity, Sink};

use crate::Program;
use crate::access::{AccessError, Space};
use crate::program::Spans;

/// Index of the core, index of the instruction.
pub type At = (usize, usize);

/// The destination of diagnostics.
pub struct Report<'r> {
    pub program: &'r Program,
    pub spans: Option<&'r Spans>,
    pub sink: &'r mut Sink,
}

impl Report<'_> {
    /// An error at an instruction.
    pub fn error(&mut self, code: &'static str, message: String, at: At) {
        let diagnostic = self.diagnostic(code, message, at);
        self.sink.push(diagnostic);
    }

    /// An error at an instruction, to be completed and pushed.
    pub fn diagnostic(&self, code: &'static str, message: String, at: At) -> Diagnostic {
        let diagnostic = Diagnostic::error(code, format!("{}: {message}", self.name(at)));
        match self.spans.and_then(|spans| spans.get(at.0, at.1)) {
            Some(span) => diagnostic.at(span, ""),
            None => diagnostic,
        }
    }

    /// Adds a second instruction that explains a diagnostic.
    pub fn also(&self, diagnostic: Diagnostic, at: At, text: &str) -> Diagnostic {
        match self.spans.and_then(|spans| spans.get(at.0, at.1)) {
            Some(span) => diagnostic.also(span, text),
            None => diagnostic.with_note(format!("{}: {text}", self.name(at))),
        }
    }

    /// The name of an instruction in diagnostics; instructions count from one, as in traces.
    pub fn name(&self, (core, index): At) -> String {
        let core = &self.program.cores[core];
        let name = core.code[index].op.name();
        match self.program.cores.len() {
            1 => format!("`{name}` {}", index + 1),
            _ => format!("`{name}` {} of core {}", index + 1, core.id),
        }
    }

    /// A warning where a vector operation is first repeated for another image.
    pub fn repeat(&mut self, at: At) {
        let message =
            "repeats a vector operation; interpreted as that of the next image of the batch";
        let diagnostic = self.diagnostic("npu-vector-batch", message.into(), at);
        self.sink.push(
            Diagnostic { severity: Severity::Warning, ..diagnostic }
                .help("published programs do so; an address for each image is unambiguous"),
        );
    }

    /// Reports why the accesses of an instruction cannot be computed.
    pub fn access_error(&mut self, error: &AccessError, at: At) {
        let code = match error {
            AccessError::NoConfig(_) => "npu-no-config",
            AccessError::NoRegion(_) => "npu-no-region",
            AccessError::TooLarge { .. } => "npu-region-size",
            AccessError::Outside { .. } => "npu-region-address",
            AccessError::Field(_) => "npu-field",
        };
        self.error(code, error.to_string(), at);
    }
}

/// The name of a memory in diagnostics, with its unit.
pub fn name(space: Space) -> String {
    match space {
        Space::L2 => "L2".into(),
        Space::Wl0 => "WL0 (units of 64 bytes)".into(),
        Space::Dram(base) => format!("DRAM from base {base}"),
        Space::Regions => "the table of ring regions".into(),
    }
}
