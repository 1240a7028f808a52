//! `irc check` of Common IR and ONNX files.
use super::{Libraries, import_options, place, read};
use crate::stop::Stop;
use bytes::Bytes;
use irc_cli::Graphs;
use irc_common_format::validate::Level;
use irc_diag::{Diagnostic, Source};
use irc_onnx_ops::{FindingKind, import, unsupported};

/// Every finding of a file: of reading it, of operators that are not known, and of nodes that cannot
/// be compiled.
pub fn check(name: &str, bytes: Bytes, flags: &Graphs) -> Result<(Source, Vec<Diagnostic>), Stop> {
    let (document, source, mut findings) =
        read(name, bytes, flags, Level::Strict, Libraries::Bundled)?;
    let Some(document) = document else { return Ok((source, findings)) };
    let is_sound = !findings.iter().any(Diagnostic::is_error);
    let mut found = unsupported(&document.module);
    // What breaks a rule cannot be written either: that is told once.
    if found.is_empty() && is_sound && !document.module.is_library() {
        let options = import_options(flags, &document.module)?;
        found = match import(&document.module, &options) {
            Ok(imported) => imported.warnings,
            Err(found) => found,
        };
    }
    // What is only known when the model is compiled is no fault of the file.
    let (open, wrong): (Vec<_>, Vec<_>) = found.into_iter().partition(|finding| {
        matches!(finding.kind, FindingKind::NeedsValue(_) | FindingKind::NeedsShape(_))
    });
    findings.extend(place(&document, &wrong));
    findings.extend(
        place(&document, &open)
            .into_iter()
            .map(|finding| Diagnostic { severity: irc_diag::Severity::Note, ..finding }),
    );
    Ok((source, findings))
}
