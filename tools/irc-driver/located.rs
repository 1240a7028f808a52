//! Converts MLIR's diagnostics, each to the file that its location names.
use crate::{console::Console, error::Error, input};
use irc::diagnostics;
use irc_diag::{Diagnostic, Source};
use irc_mlir::Capture;
use std::path::Path;

/// Diagnostics by file, in the order in which files are first named.
pub type FileDiagnostics = Vec<(Source, Vec<Diagnostic>)>;

/// The captured diagnostics of a module from `source`. Locations may name the files that a module was
/// imported from: as in MLIR's own tools, their lines are shown if the files exist.
pub fn diagnostics(capture: &Capture<'_>, source: &Source) -> FileDiagnostics {
    let mut found: FileDiagnostics = vec![];
    for captured in capture.take() {
        let file = |name: &str| file(name, source, &found);
        let Some((own, diagnostic)) = diagnostics::place(&captured, &file) else { continue };
        let own = own.unwrap_or_else(|| source.clone());
        match found.iter_mut().find(|(other, _)| other.name() == own.name()) {
            Some((_, diagnostics)) => diagnostics.push(diagnostic),
            None => found.push((own, vec![diagnostic])),
        }
    }
    found
}

/// Shows the diagnostics on the console and returns the result, or an error if there is none.
pub fn report<T>(console: &Console, found: FileDiagnostics, result: Option<T>) -> Result<T, Error> {
    let failed = found.iter().flat_map(|(_, diagnostics)| diagnostics).any(Diagnostic::is_error);
    for (source, diagnostics) in &found {
        console.diagnostics(source, diagnostics);
    }
    match result {
        Some(result) => Ok(result),
        None if failed => Err(Error::Reported),
        None => Err(Error::Internal("the translation failed without a diagnostic".into())),
    }
}

/// The file that a location names, if it exists. MLIR calls text that it parses from memory `-`.
fn file(name: &str, module: &Source, known: &FileDiagnostics) -> Option<Source> {
    if name == "-" {
        return Some(module.clone());
    }
    if let Some((source, _)) = known.iter().find(|(source, _)| source.name() == name) {
        return Some(source.clone());
    }
    let bytes = Path::new(name).is_file().then(|| input::read(name).ok())??;
    Some(Source::from_bytes(name, &bytes))
}
