//! Inputs: read, and told apart by their content.
use crate::{
    console::Console,
    crash,
    output::{self, plain},
    stop::Stop,
};
use bytes::Bytes;
use irc::{CheckOptions, FileId, Session};
use irc_diag::{Diagnostic, Source};
use irc_gemini_format::FileKind;
use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read},
    path::Path,
};

/// Most bytes of an input that is no Common IR or ONNX file and no archive: no other comes near, and a
/// device file has no end.
const MAX_BYTES: u64 = 256 << 20;

/// Bytes that tell what a file is: keys, lines and numbers behind them are not looked at.
const LOOK: usize = 64 << 10;

/// What can be read.
const KINDS: &str = "irc knows ARK models and plans, Common IR and ONNX (--format names a form that \
    the content does not tell), Gemini schedules and frontend files, NPU programs, MLIR and Model \
    Library Format archives; all but archives may be gzip files";

/// Suffixes of Common IR and ONNX files that are no JSON.
const GRAPHS: [&str; 4] = ["onnx", "pb", "pbtxt", "textproto"];

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// An ARK model.
    Model,
    /// An ARK plan.
    Plan,
    /// A shared library.
    Library,
    /// A tar archive.
    Archive,
    /// Common IR or ONNX, in whatever form.
    Graph,
    /// MLIR as text or bytecode.
    Mlir,
    /// A Gemini schedule.
    Schedule,
    /// A frontend file of the Gemini tools.
    Frontend,
    /// A listing or a trace of an NPU program.
    Listing,
    /// An NPU program in its binary form.
    Binary,
    /// Nothing, or white space.
    Empty,
    /// Anything else.
    Unknown,
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
            Self::Mlir => "MLIR",
            Self::Schedule => "a Gemini schedule",
            Self::Frontend => "a frontend file of Gemini",
            Self::Listing => "a listing of an NPU program",
            Self::Binary => "an NPU program",
            Self::Empty => "an empty file",
            Self::Unknown => "a file of unknown kind",
        }
    }
}

/// Reads a file, unpacked when it is a gzip file; `-` is standard input. A file is mapped: what is not
/// looked at is not read.
pub fn read(name: &str) -> Result<Bytes, Stop> {
    let read = match name {
        "-" => read_some(io::stdin().lock()),
        _ if is_file(name) => irc_common_format::map(Path::new(name)),
        _ => File::open(name).and_then(read_some),
    };
    let bytes =
        read.map_err(|error| Stop::problem(format!("cannot read {name}: {}", plain(&error))))?;
    let limit = MAX_BYTES >> 20;
    if bytes.len() as u64 > MAX_BYTES && name == "-" {
        let problem = Stop::problem(format!("standard input has more than {limit} MiB"));
        return Err(problem.help("name the file instead"));
    }
    if bytes.len() as u64 > MAX_BYTES && !is_mapped(content(&bytes)) {
        return Err(Stop::problem(format!(
            "{name} is larger than {limit} MiB, the most irc reads"
        )));
    }
    match irc_gemini_format::unpacked(&bytes) {
        Ok(Cow::Borrowed(_)) => Ok(bytes),
        Ok(Cow::Owned(unpacked)) if content(&unpacked) == Content::Archive => {
            let problem = Stop::problem(format!("{name} is a compressed archive"));
            Err(problem.help("no client takes one: unpack it with gunzip"))
        }
        Ok(Cow::Owned(unpacked)) => Ok(unpacked.into()),
        Err(finding) => Err(Stop::Findings(Source::new(shown(name), ""), vec![*finding])),
    }
}

/// A file's name as findings have it.
fn shown(name: &str) -> &str {
    if name == "-" { "<stdin>" } else { name }
}

/// Whether large members of such a file stay where they are.
fn is_mapped(content: Content) -> bool {
    matches!(content, Content::Graph | Content::Archive)
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

/// What a file is: a flag says of which form of Common IR or ONNX, or else its content, or else its name.
pub fn content_as(name: &str, bytes: &[u8], form: Option<&str>) -> Content {
    if form.is_some() {
        return Content::Graph;
    }
    let suffix = output::suffix(Path::new(name));
    match content(bytes) {
        Content::Unknown if !is_json(bytes) && suffix.is_some_and(|own| GRAPHS.contains(&own)) => {
            Content::Graph
        }
        content => content,
    }
}

/// A source for findings and for the reproducer.
pub fn source(name: &str, bytes: &[u8]) -> Source {
    let source = Source::from_bytes(shown(name), bytes);
    crash::remember(&source);
    source
}

/// What the bytes of a file are, by the first of them.
pub fn content(bytes: &[u8]) -> Content {
    let bytes = &bytes[..bytes.len().min(LOOK)];
    if bytes.trim_ascii().is_empty() {
        return Content::Empty;
    }
    if bytes.starts_with(b"\x7fELF") {
        return Content::Library;
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return Content::Archive;
    }
    if bytes.starts_with(&irc_npu::binary::MAGIC) {
        return Content::Binary;
    }
    if is_mlir(bytes) {
        return Content::Mlir;
    }
    let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    if let Some(content) = of_npu(valid) {
        return content;
    }
    match is_json(bytes) {
        true => of_json(bytes),
        false if is_graph(bytes) => Content::Graph,
        false => Content::Unknown,
    }
}

/// What an object is whose keys lie in `bytes`.
fn of_json(bytes: &[u8]) -> Content {
    // Whichever of the keys that only one of the formats has comes first decides.
    let plan = ["\"TaskInfos\"", "\"ProcessorGroups\"", "\"NumProcessors\"", "\"Architecture\""];
    let first = |keys: &[&str]| {
        keys.iter().filter_map(|key| find(bytes, key.as_bytes())).min().unwrap_or(usize::MAX)
    };
    let graph = ["\"node\"", "\"graph\"", "\"operator\"", "\"irVersion\"", "\"ir_version\""];
    let (plan, model, graph) = (first(&plan), first(&["\"Nodes\""]), first(&graph));
    match plan.min(model).min(graph) {
        // Both plans and models have these: a file with no more is shown what a model has.
        usize::MAX if first(&["\"Rank\"", "\"WorldSize\""]) < usize::MAX => Content::Model,
        usize::MAX => Content::Unknown,
        least if least == graph => Content::Graph,
        least if least == plan => Content::Plan,
        _ => Content::Model,
    }
}

fn is_mlir(bytes: &[u8]) -> bool {
    const BYTECODE: &[u8] = b"ML\xefR";
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let skipped =
        |line: &[u8]| line.is_empty() || line.starts_with(b"#") || line.starts_with(b"//");
    let first = lines.into_iter().find(|line| !skipped(line)).unwrap_or_default();
    let rest = first.strip_prefix(b"module").map(<[u8]>::trim_ascii_start);
    bytes.starts_with(BYTECODE)
        || first.starts_with(b"\"builtin.module\"")
        || rest.is_some_and(|rest| {
            rest.starts_with(b"{") || rest.starts_with(b"@") || rest.starts_with(b"attributes")
        })
}

/// What of Gemini's tool chain a text is.
fn of_npu(text: &str) -> Option<Content> {
    let is_instruction = |line: &str| {
        let name = line.strip_prefix('[').and_then(|line| line.split_once(", {'slyr'"));
        name.is_some_and(|(name, _)| name.bytes().all(|b| b == b'_' || b.is_ascii_lowercase()))
    };
    let is_core = |line: &str| {
        let number = line.strip_prefix("# core ").unwrap_or_default().trim_end();
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    };
    if text.lines().find(|line| !line.is_empty()).is_some_and(is_core) {
        return Some(Content::Listing);
    }
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

/// What is no program to run, and what becomes of it.
pub fn runs_not(name: &str, content: Content) -> Stop {
    let help = match content {
        Content::Mlir => "irc-opt runs passes on it",
        Content::Empty | Content::Unknown => KINDS,
        _ => "irc simulate tells how long a schedule takes",
    };
    Stop::problem(format!("{name} is {}", content.words())).help(help)
}

/// Refuses what `content` is where a model is expected.
pub fn expect_model(name: &str, content: Content) -> Result<(), Stop> {
    if content == Content::Model {
        return Ok(());
    }
    Err(unexpected(name, Content::Model.words(), content))
}

/// A file of another kind than expected.
pub fn unexpected(name: &str, expected: &str, found: Content) -> Stop {
    let problem = Stop::problem(format!("{name}: expected {expected}, found {}", found.words()));
    if found == Content::Unknown { problem.help(KINDS) } else { problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_first_key() {
        assert_eq!(content(br#"{"Rank": 0, "WorldSize": 1, "Nodes": []}"#), Content::Model);
        assert_eq!(content(br#"{"Rank": 0, "Architecture": "ANY"}"#), Content::Plan);
        assert_eq!(content(br#"{"WorldSize": 1"#), Content::Model);
        assert_eq!(content(br#"{"name": "x"}"#), Content::Unknown);
        assert_eq!(content(b"not json at all"), Content::Unknown);
        assert_eq!(content(b" \n"), Content::Empty);
        assert_eq!(content(b"\x7fELF..."), Content::Library);
        assert_eq!(content(br#"{"irVersion": "1", "node": []}"#), Content::Graph);
    }

    #[test]
    fn the_end_of_a_large_file_does_not_matter() {
        let mut bytes = vec![b' '; 2 * LOOK];
        bytes.extend(br#"{"Nodes": []}"#);
        assert_eq!(content(&bytes), Content::Empty);
        bytes[0] = b'{';
        assert_eq!(content(&bytes), Content::Unknown);
    }

    #[test]
    fn messages_are_told_by_how_they_begin() {
        assert_eq!(content(b"\x08\x07\x12\x04onnx"), Content::Graph);
        assert_eq!(content(b"\n\x0c\n\x01x\x12\x01y"), Content::Graph);
        assert_eq!(content(b"# a graph\nnode {\n  input: \"x\"\n}"), Content::Graph);
        assert_eq!(content(b"ir_version: 1"), Content::Graph);
        assert_eq!(content(b"Just words"), Content::Unknown);
    }
}
