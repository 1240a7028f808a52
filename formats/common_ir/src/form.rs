//! Formats and encodings of files.

use std::fmt;

/// The outermost message of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// A graph of Common IR.
    Graph,
    /// A library of Common IR.
    Library,
    /// A model of ONNX, possibly with an embedded module of Common IR.
    Model,
}

impl Root {
    /// All of them.
    pub const ALL: [Root; 3] = [Root::Graph, Root::Library, Root::Model];

    /// Name of the message in its schema.
    pub fn message(self) -> &'static str {
        match self {
            Self::Graph => "LotusIR.GraphProto",
            Self::Library => "LotusIR.LibraryProto",
            Self::Model => "onnx.ModelProto",
        }
    }

    /// For messages: `a Common IR graph`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Graph => "a Common IR graph",
            Self::Library => "a Common IR library",
            Self::Model => "an ONNX model",
        }
    }

    /// Name for `--format`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Graph => "common-ir",
            Self::Library => "common-ir-library",
            Self::Model => "onnx",
        }
    }
}

/// The encoding of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encoding {
    /// Protobuf's wire format.
    Binary,
    /// Protobuf's JSON mapping.
    Json,
    /// Protobuf's text format.
    Text,
}

impl Encoding {
    /// All of them.
    pub const ALL: [Encoding; 3] = [Encoding::Binary, Encoding::Json, Encoding::Text];

    fn suffix(self) -> &'static str {
        match self {
            Self::Binary => "-binary",
            Self::Json => "-json",
            Self::Text => "-text",
        }
    }
}

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Form {
    /// The outermost message.
    pub root: Root,
    /// Its encoding.
    pub encoding: Encoding,
}

impl fmt::Display for Form {
    /// As `--format` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.root.name(), self.encoding.suffix())
    }
}

/// The parts of the form that a user specifies; the others are detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Format {
    /// The outermost message.
    pub root: Option<Root>,
    /// Its encoding.
    pub encoding: Option<Encoding>,
}

impl Format {
    /// `common-ir`, `common-ir-library` or `onnx`, alone or with `-binary`, `-json` or `-text`
    /// after it.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut names = Self::all();
        names.find(|(known, _)| known == name).map(|(_, format)| format)
    }

    /// All names that [`Format::from_name`] accepts.
    pub fn names() -> Vec<String> {
        Self::all().map(|(name, _)| name).collect()
    }

    fn all() -> impl Iterator<Item = (String, Self)> {
        Root::ALL.into_iter().flat_map(|root| {
            let bare = (root.name().to_owned(), Self { root: Some(root), encoding: None });
            let full = Encoding::ALL.into_iter().map(move |encoding| {
                let form = Form { root, encoding };
                (form.to_string(), Self { root: Some(root), encoding: Some(encoding) })
            });
            std::iter::once(bare).chain(full)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let json = Format { root: Some(Root::Library), encoding: Some(Encoding::Json) };
        assert_eq!(Format::from_name("common-ir-library-json"), Some(json));
        let any = Format { root: Some(Root::Model), encoding: None };
        assert_eq!(Format::from_name("onnx"), Some(any));
        assert_eq!(Format::from_name("pb"), None);
        assert_eq!(Format::names().len(), 12);
    }
}
