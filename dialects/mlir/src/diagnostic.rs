//! MLIR diagnostics as owned values.
use melior::{
    Context,
    diagnostic::{Diagnostic, DiagnosticHandlerId, DiagnosticSeverity},
    ir::Location,
};
use std::{cell::RefCell, rc::Rc};

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The input or a pass is wrong.
    Error,
    /// Suspicious but accepted.
    Warning,
    /// Attached to the preceding diagnostic.
    Note,
    /// A remark of an optimisation.
    Remark,
}

/// One named or file frame of a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A name location: an ARK JSON path, a node name.
    Name(String),
    /// A position in a file, one-based.
    File {
        /// The file's name as passed to the importer.
        name: String,
        /// One-based line.
        line: usize,
        /// One-based column.
        column: usize,
    },
}

/// A diagnostic that outlives its context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedDiagnostic {
    /// Its severity.
    pub severity: Severity,
    /// The message, without location.
    pub message: String,
    /// The location's frames, outermost first.
    pub frames: Vec<Frame>,
    /// Attached notes.
    pub notes: Vec<CapturedDiagnostic>,
}

/// Collects a context's diagnostics during its lifetime, instead of printing them.
pub struct Capture<'c> {
    context: &'c Context,
    handler: DiagnosticHandlerId,
    seen: Rc<RefCell<Vec<CapturedDiagnostic>>>,
}

impl<'c> Capture<'c> {
    /// Starts collecting.
    pub fn new(context: &'c Context) -> Self {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&seen);
        let handler = context.attach_diagnostic_handler(move |diagnostic| {
            sink.borrow_mut().push(capture(&diagnostic));
            true
        });
        Self { context, handler, seen }
    }

    /// Returns the diagnostics collected since the last call.
    pub fn take(&self) -> Vec<CapturedDiagnostic> {
        std::mem::take(&mut self.seen.borrow_mut())
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        self.context.detach_diagnostic_handler(self.handler);
    }
}

fn capture(diagnostic: &Diagnostic<'_>) -> CapturedDiagnostic {
    CapturedDiagnostic {
        severity: match diagnostic.severity() {
            DiagnosticSeverity::Error => Severity::Error,
            DiagnosticSeverity::Warning => Severity::Warning,
            DiagnosticSeverity::Note => Severity::Note,
            DiagnosticSeverity::Remark => Severity::Remark,
        },
        message: diagnostic.to_string(),
        frames: frames(diagnostic.location()),
        notes: (0..diagnostic.note_count())
            .filter_map(|index| diagnostic.note(index).ok())
            .map(|note| capture(&note))
            .collect(),
    }
}

/// The name and file frames of a location, outermost first; for a fused one, those of all parts in order.
pub fn frames(location: Location<'_>) -> Vec<Frame> {
    let mut found = Vec::new();
    collect(location, &mut found);
    found
}

/// The first name in a location, otherwise its first position in a file.
pub fn origin(location: Location<'_>) -> Option<String> {
    let frames = frames(location);
    let name = frames.iter().find_map(|frame| match frame {
        Frame::Name(name) => Some(name.clone()),
        Frame::File { .. } => None,
    });
    let position = || {
        frames.iter().find_map(|frame| match frame {
            Frame::File { name, line, column } => Some(format!("{name}:{line}:{column}")),
            Frame::Name(_) => None,
        })
    };
    name.or_else(position)
}

fn collect(location: Location<'_>, found: &mut Vec<Frame>) {
    let text = |identifier: melior::ir::Identifier<'_>| {
        identifier.as_string_ref().as_str().unwrap_or("").to_owned()
    };
    if location.is_name() {
        found.push(Frame::Name(text(location.name_value())));
        collect(location.name_child_location(), found);
    } else if location.is_fused() {
        for index in 0..location.fused_num_locations() {
            collect(location.fused_location(index), found);
        }
    } else if location.is_call_site() {
        collect(location.call_site_callee(), found);
    } else if location.is_file_line_col_range() {
        found.push(Frame::File {
            name: text(location.file_line_col_range_filename()),
            line: location.file_line_col_range_start_line(),
            column: location.file_line_col_range_start_column(),
        });
    }
}
