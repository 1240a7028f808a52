//! Kinds of files, detected from their content.
use crate::pipeline::HOST_CPU;
use irc_gemini_format::FileKind;
use std::path::Path;

/// Suffixes of Common IR and ONNX files that are not JSON.
const GRAPHS: [&str; 4] = ["onnx", "pb", "pbtxt", "textproto"];

/// Maximum number of bytes that are examined to detect the kind of a file.
const LOOK: usize = 64 << 10;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// An ARK model.
    Model,
    /// An ARK plan.
    Plan,
    /// A shared library.
    Library,
    /// An object file, which has to be linked.
    Object,
    /// A tar archive.
    Archive,
    /// Common IR or ONNX, in any encoding.
    Graph,
    /// MLIR as text or bytecode.
    Mlir,
    /// A Gemini schedule.
    Schedule,
    /// A frontend file of the Gemini tools.
    Frontend,
    /// The text or a trace of an NPU program.
    Listing,
    /// An NPU program in its binary form.
    Binary,
    /// A kernel for a GPU, as PTX.
    Ptx,
    /// Empty, or only white space.
    Empty,
    /// Anything else.
    Unknown,
}

impl Content {
    /// The description in messages.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Model => "an ARK model",
            Self::Plan => "an ARK plan",
            Self::Library => "a shared library",
            Self::Object => "an object file",
            Self::Archive => "a tar archive",
            Self::Graph => "a Common IR or ONNX file",
            Self::Mlir => "MLIR",
            Self::Schedule => "a Gemini schedule",
            Self::Frontend => "a Gemini frontend file",
            Self::Listing => "a listing of an NPU program",
            Self::Binary => "an NPU program",
            Self::Ptx => "PTX",
            Self::Empty => "an empty file",
            Self::Unknown => "a file of unknown kind",
        }
    }

    /// The kind of a file: by its content, otherwise by its name.
    pub fn of_file(path: &Path, bytes: &[u8]) -> Self {
        let is_packed = path.extension().is_some_and(|suffix| suffix == "gz");
        let plain = if is_packed { path.file_stem().map(Path::new) } else { Some(path) };
        let suffix = plain.and_then(Path::extension).and_then(|suffix| suffix.to_str());
        match Self::of(bytes) {
            Content::Unknown
                if !is_json(bytes) && suffix.is_some_and(|own| GRAPHS.contains(&own)) =>
            {
                Content::Graph
            }
            Content::Unknown if suffix == Some("mlir") => Content::Mlir,
            content => content,
        }
    }

    /// The kind of a file, detected from its first bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let bytes = &bytes[..bytes.len().min(LOOK)];
        if bytes.trim_ascii().is_empty() {
            return Content::Empty;
        }
        if bytes.starts_with(b"\x7fELF") {
            const RELOCATABLE: &[u8] = &[1, 0];
            let is_object = bytes.get(16..18) == Some(RELOCATABLE);
            return if is_object { Content::Object } else { Content::Library };
        }
        if bytes.get(257..262) == Some(b"ustar") {
            return Content::Archive;
        }
        if bytes.starts_with(&irc_npu::binary::MAGIC) {
            return Content::Binary;
        }
        let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        if is_ptx(valid) {
            return Content::Ptx;
        }
        if is_mlir(bytes) {
            return Content::Mlir;
        }
        if let Some(content) = of_npu(valid) {
            return content;
        }
        match is_json(bytes) {
            true => of_json(bytes),
            false if is_graph(bytes) => Content::Graph,
            false => Content::Unknown,
        }
    }
}

/// The kind of a JSON object with keys in `bytes`.
fn of_json(bytes: &[u8]) -> Content {
    // The first key that only one of the formats has decides.
    let plan = ["\"TaskInfos\"", "\"ProcessorGroups\"", "\"NumProcessors\"", "\"Architecture\""];
    let first = |keys: &[&str]| {
        keys.iter().filter_map(|key| find(bytes, key.as_bytes())).min().unwrap_or(usize::MAX)
    };
    let graph = ["\"node\"", "\"graph\"", "\"operator\"", "\"irVersion\"", "\"ir_version\""];
    let (plan, model, graph) = (first(&plan), first(&["\"Nodes\""]), first(&graph));
    match plan.min(model).min(graph) {
        // Both plans and models have these keys: a file without others is diagnosed as a model.
        usize::MAX if first(&["\"Rank\"", "\"WorldSize\""]) < usize::MAX => Content::Model,
        usize::MAX => Content::Unknown,
        least if least == graph => Content::Graph,
        least if least == plan => Content::Plan,
        _ => Content::Model,
    }
}

fn is_ptx(text: &str) -> bool {
    let is_comment = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with("//");
    let first = text.lines().find(|line| !is_comment(line));
    text.starts_with("// irc: {")
        || first.is_some_and(|line| line.trim_start().starts_with(".version "))
}

fn is_mlir(bytes: &[u8]) -> bool {
    const BYTECODE: &[u8] = b"ML\xefR";
    if bytes.starts_with(BYTECODE) {
        return true;
    }
    let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let mut lines = valid.lines().map(str::trim);
    let first = lines.find(|line| {
        let is_comment = line.starts_with("//") || line.starts_with('#') && !is_alias(line);
        !line.is_empty() && !is_comment
    });
    first.is_some_and(|line| is_alias(line) || is_op(line))
}

/// Whether a line of MLIR defines an alias of an attribute or type: `#map = ...`, `!type = ...`.
fn is_alias(line: &str) -> bool {
    let name = line.strip_prefix(['#', '!']).and_then(|rest| rest.split_once('='));
    name.is_some_and(|(name, _)| is_name(name.trim_end()))
}

/// Whether a line of MLIR begins with an op.
fn is_op(line: &str) -> bool {
    // Dialects of ops by their plain names; other text may contain any name with a dot.
    const OTHERS: [&str; 3] = ["builtin", "npu", "plan"];
    let op = match line.strip_prefix('%').and_then(|line| line.split_once('=')) {
        Some((_, op)) => op.trim_start(),
        None => line,
    };
    let is_end = |end: &str| end.is_empty() || end.starts_with([' ', '(', '{', '@', '<', '"']);
    if let Some((name, end)) = op.strip_prefix('"').and_then(|op| op.split_once('"')) {
        return name.split_once('.').is_some() && name.split('.').all(is_name) && is_end(end);
    }
    let length = op.find(|c: char| !is_name_character(c)).unwrap_or(op.len());
    let (name, end) = op.split_at(length);
    let is_known = |dialect: &str| {
        let mut leaves = HOST_CPU.stages.iter().flat_map(|stage| stage.leaves);
        OTHERS.contains(&dialect) || leaves.any(|leaf| *leaf == dialect)
    };
    is_end(end)
        && match name.split_once('.') {
            None => name == "module",
            Some((dialect, name)) => is_known(dialect) && name.split('.').all(is_name),
        }
}

/// Whether a text is an identifier of MLIR.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(is_name_character)
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.')
}

/// The kind of a text of Gemini's tool chain.
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

/// Whether bytes that are not JSON look like a protobuf message: binary messages begin with the tag of a
/// graph's nodes or of a version, text with a field name.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_distinguished_by_their_first_key() {
        assert_eq!(Content::of(br#"{"Rank": 0, "WorldSize": 1, "Nodes": []}"#), Content::Model);
        assert_eq!(Content::of(br#"{"Rank": 0, "Architecture": "ANY"}"#), Content::Plan);
        assert_eq!(Content::of(br#"{"WorldSize": 1"#), Content::Model);
        assert_eq!(Content::of(br#"{"name": "x"}"#), Content::Unknown);
        assert_eq!(Content::of(b"not json at all"), Content::Unknown);
        assert_eq!(Content::of(b" \n"), Content::Empty);
        assert_eq!(Content::of(b"\x7fELF..."), Content::Library);
        assert_eq!(Content::of(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0"), Content::Object);
        assert_eq!(Content::of(br#"{"irVersion": "1", "node": []}"#), Content::Graph);
    }

    #[test]
    fn the_end_of_a_large_file_does_not_matter() {
        let mut bytes = vec![b' '; 2 * LOOK];
        bytes.extend(br#"{"Nodes": []}"#);
        assert_eq!(Content::of(&bytes), Content::Empty);
        bytes[0] = b'{';
        assert_eq!(Content::of(&bytes), Content::Unknown);
    }

    #[test]
    fn messages_are_detected_by_their_start() {
        assert_eq!(Content::of(b"\x08\x07\x12\x04onnx"), Content::Graph);
        assert_eq!(Content::of(b"\n\x0c\n\x01x\x12\x01y"), Content::Graph);
        assert_eq!(Content::of(b"# a graph\nnode {\n  input: \"x\"\n}"), Content::Graph);
        assert_eq!(Content::of(b"ir_version: 1"), Content::Graph);
        assert_eq!(Content::of(b"Just words"), Content::Unknown);
    }

    #[test]
    fn mlir_needs_no_outer_module() {
        for text in [
            "module {\n}",
            "module attributes {a} {",
            "// a comment\n\nfunc.func @main() {",
            "#map = affine_map<(d0) -> (d0)>\nfunc.func @main() {",
            "#dims\nmodule @name {",
            "!t = f32\n",
            "builtin.module {",
            "%0 = tl.constant dense<0.0> : tensor<f32>",
            "%0:2 = \"tl.split\"() : () -> (f32, f32)",
            "\"any.op\"() : () -> ()",
        ] {
            assert_eq!(Content::of(text.as_bytes()), Content::Mlir, "{text}");
        }
        for text in ["modules {", "func_func: 1", "e.g. words", "tl. A sentence", "\"words\" = 1"] {
            assert_ne!(Content::of(text.as_bytes()), Content::Mlir, "{text}");
        }
        assert_eq!(Content::of_file(Path::new("x.mlir"), b"// words"), Content::Mlir);
        assert_eq!(Content::of_file(Path::new("x.mlir.gz"), b"func @main"), Content::Mlir);
    }
}
