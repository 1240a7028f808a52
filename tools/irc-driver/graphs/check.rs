//! `irc check` of Common IR and ONNX files.
use super::{Libraries, Read, options, read};
use crate::{crash, stop::Stop};
use bytes::Bytes;
use irc::ImportOptions;
use irc::model::graph;
use irc_cli::Graphs;
use irc_diag::{Diagnostic, Source};

/// Every diagnostic of a file: of reading it, of operators that are not known, and of nodes that cannot
/// be compiled.
pub fn check(name: &str, bytes: Bytes, flags: &Graphs) -> Result<(Source, Vec<Diagnostic>), Stop> {
    let options = ImportOptions { strict: !flags.compat, ..options(flags)? };
    let Read { document, source, mut diagnostics } =
        read(name, bytes, &options, Libraries::Bundled);
    crash::remember(&source);
    let Some(document) = document else { return Ok((source, diagnostics)) };
    let is_sound = !diagnostics.iter().any(Diagnostic::is_error);
    diagnostics.extend(graph::check(&document, &options, is_sound));
    Ok((source, diagnostics))
}
