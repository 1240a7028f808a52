//! Inputs: read, and told apart by their content.
use crate::{console::Console, crash, output::plain, stop::Stop};
use bytes::Bytes;
use irc::{CheckOptions, FileId, Session};
use irc_diag::{Diagnostic, Source};
use irc_gemini_format::FileKind;
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// Most bytes of an input that is no Common IR or ONNX file: no other comes near, and a device file has
/// no end.
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
    /// Common IR or ONNX, in whatever form.
    Graph,
    /// A Gemini schedule, compressed or not.
    Schedule,
    /// A frontend file of the Gemini tools.
    Frontend,
    /// A listing or a trace of an NPU program.
    Listing,
    /// An NPU program in its binary form.
    Binary,
}

impl Content {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Model => "an ARK model",
            Self::Plan => "an ARK plan",
            Self::Library => "a shared library",
            Self::Archive => "a tar archive",
            Self::Graph => "a Common IR or ONNX file",
            Self::Schedule => "a Gemini schedule",
            Self::Frontend => "a frontend file of Gemini",
            Self::Listing => "a listing of an NPU program",
            Self::Binary => "an NPU program",
        }
    }
}

/// Reads a file; `-` is standard input. A file is mapped: what is not looked at is not read.
pub fn read(name: &str) -> Result<Bytes, Stop> {
    let read = match name {
        "-" => read_some(io::stdin().lock()),
        _ if is_file(name) => irc_common_format::map(Path::new(name)),
        _ => File::open(name).and_then(read_some),
    };
    let bytes =
        read.map_err(|error| Stop::problem(format!("cannot read {name}: {}", plain(&error))))?;
    if bytes.len() as u64 > MAX_BYTES && content(&bytes) != Content::Graph {
        let limit = MAX_BYTES >> 20;
        return Err(Stop::problem(format!(
            "{name} is larger than {limit} MiB, the most irc reads"
        )));
    }
    Ok(bytes)
}

fn is_file(name: &str) -> bool {
    std::fs::metadata(name).is_ok_and(|file| file.is_file())
}

/// One byte more than may be, at most.
fn read_some(from: impl Read) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

/// What the bytes of a file are, when a flag says of which form of Common IR or ONNX they are, or not.
pub fn content_as(bytes: &[u8], form: Option<&str>) -> Content {
    if form.is_some() { Content::Graph } else { content(bytes) }
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
    if bytes.starts_with(&irc_npu::binary::MAGIC) {
        return Content::Binary;
    }
    if let Some(content) = gemini(bytes) {
        return content;
    }
    if !is_json(bytes) && is_graph(bytes) {
        return Content::Graph;
    }
    // Whichever of the keys that only one of the formats has comes first decides.
    let plan = ["\"TaskInfos\"", "\"ProcessorGroups\"", "\"NumProcessors\"", "\"Architecture\""];
    let first = |keys: &[&str]| {
        keys.iter().filter_map(|key| find(bytes, key.as_bytes())).min().unwrap_or(usize::MAX)
    };
    let graph = ["\"node\"", "\"graph\"", "\"operator\"", "\"irVersion\"", "\"ir_version\""];
    let (plan, model, graph) = (first(&plan), first(&["\"Nodes\""]), first(&graph));
    match plan.min(model).min(graph) {
        usize::MAX => Content::Model,
        least if least == graph => Content::Graph,
        least if least == plan => Content::Plan,
        _ => Content::Model,
    }
}

/// What of Gemini's tool chain the bytes are: of compressed files, by their contents.
fn gemini(bytes: &[u8]) -> Option<Content> {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    const LOOK: usize = 4096;
    if bytes.starts_with(GZIP) {
        let source = irc_gemini_format::source("", bytes).ok();
        return source.and_then(|source| kind_of(source.text())).or(Some(Content::Schedule));
    }
    let start = &bytes[..bytes.len().min(LOOK)];
    let valid = start.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    kind_of(valid)
}

fn kind_of(text: &str) -> Option<Content> {
    let is_instruction = |line: &str| {
        let name = line.strip_prefix('[').and_then(|line| line.split_once(", {'slyr'"));
        name.is_some_and(|(name, _)| name.bytes().all(|b| b == b'_' || b.is_ascii_lowercase()))
    };
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    if lines.next().is_some_and(is_instruction) {
        return Some(Content::Listing);
    }
    Some(match FileKind::of(text)? {
        FileKind::Schedule => Content::Schedule,
        FileKind::Frontend => Content::Frontend,
    })
}

fn is_json(bytes: &[u8]) -> bool {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    matches!(text.iter().find(|byte| !byte.is_ascii_whitespace()), Some(b'{' | b'['))
}

/// Whether bytes that are no JSON look like a message of protobuf: binary ones begin with the key of
/// a graph's nodes or of a version, text with a field's name.
fn is_graph(bytes: &[u8]) -> bool {
    let is_control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\n' | b'\r' | b'\t');
    let start = &bytes[..bytes.len().min(512)];
    if start.iter().any(is_control) {
        return matches!(start.first(), Some(0x08 | 0x0a));
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let Some(line) = lines.next() else { return false };
    let is_name = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
    let name = line.iter().take_while(|byte| is_name(byte)).count();
    name > 0 && matches!(line[name..].trim_ascii_start().first(), Some(b':' | b'{'))
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
    if content == Content::Model {
        return Ok(());
    }
    let found = content.words();
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
        assert_eq!(content(br#"{"irVersion": "1", "node": []}"#), Content::Graph);
    }

    #[test]
    fn messages_are_told_by_how_they_begin() {
        assert_eq!(content(b"\x08\x07\x12\x04onnx"), Content::Graph);
        assert_eq!(content(b"\n\x0c\n\x01x\x12\x01y"), Content::Graph);
        assert_eq!(content(b"# a graph\nnode {\n  input: \"x\"\n}"), Content::Graph);
        assert_eq!(content(b"ir_version: 1"), Content::Graph);
        assert_eq!(content(b"Just words"), Content::Model);
    }
}
