//! MLIR's diagnostics as diagnostics, each in the file that its location names.
use crate::{console::Console, input, stop::Stop};
use irc_diag::{Diagnostic, Source};
use irc_mlir::{Capture, CapturedDiagnostic, Frame, Severity};
use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Mutex, PoisonError},
};

/// Diagnostics by the file that they are in, in the order in which files are first named.
pub type Found = Vec<(Source, Vec<Diagnostic>)>;

/// What was captured, of a module that is `source`'s. Locations may name the files that a module was
/// made of: as MLIR's own tools, this shows the lines of those that are there.
pub fn diagnostics(capture: &Capture<'_>, source: &Source) -> Found {
    let mut found: Found = vec![];
    for captured in capture.take() {
        let Some((own, diagnostic)) = place(&captured, source, &found) else { continue };
        match found.iter_mut().find(|(other, _)| other.name() == own.name()) {
            Some((_, diagnostics)) => diagnostics.push(diagnostic),
            None => found.push((own, vec![diagnostic])),
        }
    }
    found
}

/// What was made, its warnings on the console; or the errors.
pub fn told<T>(console: &Console, found: Found, made: Option<T>) -> Result<T, Stop> {
    let failed = found.iter().flat_map(|(_, diagnostics)| diagnostics).any(Diagnostic::is_error);
    for (source, diagnostics) in &found {
        console.diagnostics(source, diagnostics);
    }
    match made {
        Some(made) => Ok(made),
        None if failed => Err(Stop::Reported),
        None => Err(Stop::Internal("the translation failed without saying why".into())),
    }
}

/// MLIR's diagnostic as a diagnostic; notes without an error of their own say nothing here.
fn place(
    captured: &CapturedDiagnostic,
    module: &Source,
    known: &Found,
) -> Option<(Source, Diagnostic)> {
    let severity = match captured.severity {
        Severity::Error => irc_diag::Severity::Error,
        Severity::Warning => irc_diag::Severity::Warning,
        Severity::Note | Severity::Remark => return None,
    };
    let (message, code) = with_code(&captured.message);
    let mut diagnostic = Diagnostic::new(severity, code, message);
    let mut own: Option<Source> = None;
    for frame in &captured.frames {
        match frame {
            Frame::Name(name) if name.starts_with('$') => {
                diagnostic = diagnostic.path(name.clone())
            }
            Frame::Name(name) => diagnostic = diagnostic.with_note(format!("in {name}")),
            Frame::File { name, line, column } => {
                let named = if own.is_none() { file(name, module, known) } else { None };
                let Some(named) = named else {
                    diagnostic = diagnostic.with_note(format!("from {name}:{line}:{column}"));
                    continue;
                };
                let offset = offset(named.text(), *line, *column);
                let len = named.text()[offset..].chars().next().map_or(0, char::len_utf8);
                diagnostic = diagnostic.at(offset..offset + len, "here");
                own = Some(named);
            }
        }
    }
    Some((own.unwrap_or_else(|| module.clone()), diagnostic))
}

/// The file that a location names, where it is one. MLIR calls text that it parses from memory `-`.
fn file(name: &str, module: &Source, known: &Found) -> Option<Source> {
    if name == "-" {
        return Some(module.clone());
    }
    if let Some((source, _)) = known.iter().find(|(source, _)| source.name() == name) {
        return Some(source.clone());
    }
    let bytes = Path::new(name).is_file().then(|| input::read(name).ok())??;
    Some(Source::from_bytes(name, &bytes))
}

/// A message without the code that passes of this project write behind it.
fn with_code(message: &str) -> (&str, &'static str) {
    let is_code = |code: &str| {
        let is_part = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        code.contains('-') && code.bytes().all(is_part)
    };
    let coded = message.strip_suffix(']').and_then(|message| message.rsplit_once(" ["));
    match coded.filter(|(_, code)| is_code(code)) {
        Some((message, code)) => (message, interned(code)),
        None => (message, "mlir"),
    }
}

/// A code for as long as the process: there are only so many.
fn interned(code: &str) -> &'static str {
    static CODES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut codes = CODES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = codes.get(code) {
        return known;
    }
    let code: &'static str = Box::leak(code.into());
    codes.insert(code);
    code
}

/// Byte offset of a one-based line and column, in characters.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut rest = text[start..].char_indices().skip(column.saturating_sub(1));
    rest.next().map_or(text.len(), |(offset, _)| start + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_stand_behind_messages() {
        assert_eq!(with_code("too large [gem-b2-size]"), ("too large", "gem-b2-size"));
        assert_eq!(with_code("expected [1, 2]"), ("expected [1, 2]", "mlir"));
        assert_eq!(with_code("expected [x]"), ("expected [x]", "mlir"));
    }

    #[test]
    fn offsets_are_of_characters() {
        assert_eq!(offset("é\nä{}", 2, 2), 5);
        assert_eq!(offset("ab", 9, 9), 2);
    }
}
