//! A whole file.

use super::{Attribute, Graph, Node, Value};

/// Keys and values, in the order of the file; keys may occur twice.
pub type Entries = Vec<(String, String)>;

/// A file: a graph with its declarations, or a library of declarations and functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// The format it was read from, which decides the applicable rules and operators.
    pub schema: Schema,
    /// Metadata of the whole file.
    pub metadata: Metadata,
    /// Libraries of Common IR: URIs or relative paths.
    pub imports: Vec<String>,
    /// Operator sets of ONNX.
    pub opsets: Vec<Opset>,
    /// Declared operators.
    pub operators: Vec<Operator>,
    /// Functions.
    pub functions: Vec<Function>,
    /// The graph; `None` in a library.
    pub graph: Option<Graph>,
}

impl Module {
    /// Whether this is a library rather than a graph.
    pub fn is_library(&self) -> bool {
        self.graph.is_none()
    }

    /// Domain and name as one: the prefix under which others refer to its symbols, `com.example.nn.mlp`.
    pub fn qualified_name(&self) -> String {
        let parts = [self.metadata.domain.as_deref(), self.metadata.name.as_deref()];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        parts.join(".")
    }
}

/// The format of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Schema {
    /// Common IR's own files.
    #[default]
    CommonIr,
    /// ONNX, possibly with an embedded module of Common IR.
    Onnx,
}

/// Metadata of the whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Name of the graph or library.
    pub name: Option<String>,
    /// Its domain.
    pub domain: Option<String>,
    /// Version of the format.
    pub ir_version: Option<i64>,
    /// Version of the model.
    pub model_version: Option<i64>,
    /// Author of the model.
    pub author: Option<String>,
    /// License of the model.
    pub license: Option<String>,
    /// The framework that wrote the file: Common IR's tag, ONNX's name.
    pub producer: Option<String>,
    /// The version of that framework.
    pub producer_version: Option<ProducerVersion>,
    /// Documentation.
    pub doc: Option<String>,
    /// Further properties.
    pub properties: Entries,
}

/// The version of a framework.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProducerVersion {
    /// Common IR: two digits major, two minor, four patch, so that 20000 is 0.2.0.
    Number(i64),
    /// ONNX: any text.
    Text(String),
}

impl ProducerVersion {
    /// The version as ONNX writes it.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) if *number < 0 => number.to_string(),
            Self::Number(number) => {
                format!("{}.{}.{}", number / 1_000_000, number / 10_000 % 100, number % 10_000)
            }
        }
    }

    /// The version as Common IR writes it; `None` if the text has another form.
    pub fn number(&self) -> Option<i64> {
        let text = match self {
            Self::Number(number) => return Some(*number),
            Self::Text(text) => text,
        };
        let parts: Option<Vec<i64>> = text.split('.').map(digits).collect();
        match parts.as_deref() {
            Some([major, minor, fix]) if *minor < 100 && *fix < 10_000 => {
                major.checked_mul(1_000_000)?.checked_add(minor * 10_000 + fix)
            }
            _ => text.parse().ok().filter(|number: &i64| *number < 0),
        }
    }
}

/// A number without sign and leading zeros, so that it is written as it was read.
fn digits(part: &str) -> Option<i64> {
    let canonical = part == "0" || part.starts_with(|c: char| ('1'..='9').contains(&c));
    part.parse().ok().filter(|_| canonical)
}

/// A version of a set of operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opset {
    /// The domain; `None` for `ai.onnx`.
    pub domain: Option<String>,
    /// The version.
    pub version: i64,
}

/// A declared operator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operator {
    /// The name.
    pub name: Option<String>,
    /// Its library, as in [`Node::domain`]; `None` for the file's own.
    pub domain: Option<String>,
    /// Its overloads.
    pub signatures: Vec<Signature>,
    /// Documentation.
    pub doc: Option<String>,
}

/// One overload of an operator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signature {
    /// Formal inputs; a call may pass several values to each.
    pub inputs: Vec<Value>,
    /// Formal outputs.
    pub outputs: Vec<Value>,
    /// Attributes, as values of their type.
    pub attributes: Vec<Value>,
    /// Documentation.
    pub doc: Option<String>,
}

/// A function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function {
    /// The name.
    pub name: Option<String>,
    /// Its domain, as in [`Node::domain`]; `None` for Common IR's own functions of a file.
    pub domain: Option<String>,
    /// Distinguishes functions with that name.
    pub overload: Option<String>,
    /// Parameters; untyped in ONNX unless `values` has their types.
    pub inputs: Vec<Value>,
    /// Results, likewise.
    pub outputs: Vec<Value>,
    /// Parameters that are attributes, with their defaults; [`super::AttributeValue::Nothing`]
    /// for one without.
    pub attributes: Vec<Attribute>,
    /// Types of intermediate values.
    pub values: Vec<Value>,
    /// The body.
    pub nodes: Vec<Node>,
    /// Operator sets of the body.
    pub opsets: Vec<Opset>,
    /// Documentation.
    pub doc: Option<String>,
    /// Further properties.
    pub properties: Entries,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_back() {
        assert_eq!(ProducerVersion::Number(20_000).text(), "0.2.0");
        for number in [0, 1, 20_000, 1_020_003, -1, i64::MAX] {
            let text = ProducerVersion::Text(ProducerVersion::Number(number).text());
            assert_eq!(text.number(), Some(number), "{text:?}");
        }
        for text in ["", "1.0", "1.0.0a", "01.0.0", "1.100.0", "+1.0.0"] {
            assert_eq!(ProducerVersion::Text(text.into()).number(), None, "{text}");
        }
    }
}
