//! Inputs: read, and told apart by their content.
use crate::{console::Console, crash, output::plain, stop::Stop};
use irc::{CheckOptions, FileId, Session};
use irc_diag::{Diagnostic, Source};
use std::{
    fs::File,
    io::{self, Read},
};

/// Most bytes of an input. No model, plan or library comes near; a device file has no end.
const MAX_BYTES: u64 = 256 << 20;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// An ARK model, or text that may have been meant as one.
    Model,
    /// An ARK plan.
    Plan,
    /// A shared library.
    Library,
    /// A tar archive.
    Archive,
}

/// Reads a file; `-` is standard input.
pub fn read(name: &str) -> Result<Vec<u8>, Stop> {
    let read = if name == "-" {
        read_some(io::stdin().lock())
    } else {
        File::open(name).and_then(read_some)
    };
    let bytes =
        read.map_err(|error| Stop::problem(format!("cannot read {name}: {}", plain(&error))))?;
    if bytes.len() as u64 > MAX_BYTES {
        let limit = MAX_BYTES >> 20;
        return Err(Stop::problem(format!(
            "{name} is larger than {limit} MiB, the most irc reads"
        )));
    }
    Ok(bytes)
}

/// One byte more than may be, at most.
fn read_some(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A source for findings and for the reproducer.
pub fn source(name: &str, bytes: &[u8]) -> Source {
    let name = if name == "-" { "<stdin>" } else { name };
    let source = Source::from_bytes(name, bytes);
    crash::remember(&source);
    source
}

/// What the bytes of a file are.
pub fn content(bytes: &[u8]) -> Content {
    if bytes.starts_with(b"\x7fELF") {
        return Content::Library;
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return Content::Archive;
    }
    // Whichever of the keys that only one of the two formats has comes first decides.
    let plan = ["\"TaskInfos\"", "\"ProcessorGroups\"", "\"NumProcessors\"", "\"Architecture\""];
    let first = |keys: &[&str]| {
        keys.iter().filter_map(|key| find(bytes, key.as_bytes())).min().unwrap_or(usize::MAX)
    };
    if first(&plan) < first(&["\"Nodes\""]) { Content::Plan } else { Content::Model }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

/// A session with a model that has no errors; its warnings are on the console.
pub fn open(console: &Console, source: Source, strict: bool) -> Result<(Session, FileId), Stop> {
    let mut session = Session::new();
    let file = session.open_source(source.clone());
    let findings = session.check(file, &CheckOptions { strict });
    if findings.iter().any(Diagnostic::is_error) {
        return Err(Stop::Findings(source, findings));
    }
    console.findings(&source, &findings);
    Ok((session, file))
}

/// Refuses what `content` is where a model is expected.
pub fn expect_model(name: &str, content: Content) -> Result<(), Stop> {
    let found = match content {
        Content::Model => return Ok(()),
        Content::Plan => "an ARK plan",
        Content::Library => "a shared library",
        Content::Archive => "a tar archive",
    };
    Err(Stop::problem(format!("{name}: expected an ARK model, found {found}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_first_key() {
        assert_eq!(content(br#"{"Rank": 0, "WorldSize": 1, "Nodes": []}"#), Content::Model);
        assert_eq!(content(br#"{"Rank": 0, "Architecture": "ANY"}"#), Content::Plan);
        assert_eq!(content(b"not json at all"), Content::Model);
        assert_eq!(content(b"\x7fELF..."), Content::Library);
    }
}
