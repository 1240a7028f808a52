//! The operators of ONNX as its definition declares them: versions, number of inputs and outputs, attributes.
//!
//! `tests/oracle/onnx_schemas.py` writes the table. It serves to warn of what other tools reject; what an operator
//! computes, and which forms are supported, is in its [`Operator`](crate::Operator).

use crate::operator::canonical;
use irc_common_format::model::AttributeValue;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const TABLE: &str = include_str!("table.txt");

/// The newest set of each domain's operators that the table knows.
pub const NEWEST: &[(&str, i64)] = &[("ai.onnx", 28), ("ai.onnx.ml", 5)];

/// A version of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// The operator set that introduced the version.
    pub since: i64,
    /// The least and largest number of inputs.
    pub inputs: (usize, usize),
    /// The least and largest number of outputs.
    pub outputs: (usize, usize),
    /// Names and kinds of attributes.
    pub attributes: BTreeMap<&'static str, &'static str>,
}

type Versions = Vec<Option<Schema>>;

/// By domain and name.
static SCHEMAS: LazyLock<BTreeMap<&'static str, BTreeMap<&'static str, Versions>>> =
    LazyLock::new(|| {
        let mut schemas: BTreeMap<_, BTreeMap<_, Versions>> = BTreeMap::new();
        for line in TABLE.lines() {
            let mut words = line.split(' ');
            let (Some(domain), Some(name)) = (words.next(), words.next()) else { continue };
            schemas.entry(domain).or_default().entry(name).or_default().push(parse(words));
        }
        schemas
    });

/// The rest of a line; `None` if the version removes the operator.
fn parse(mut words: std::str::Split<'static, char>) -> Option<Schema> {
    let since = words.next()?.parse().ok()?;
    let (inputs, outputs) = (range(words.next()?)?, range(words.next()?)?);
    Some(Schema {
        since,
        inputs,
        outputs,
        attributes: words.filter_map(|word| word.split_once(':')).collect(),
    })
}

/// `1..3`, or `1..*` without an upper limit.
fn range(text: &str) -> Option<(usize, usize)> {
    let (least, most) = text.split_once("..")?;
    Some((least.parse().ok()?, most.parse().unwrap_or(usize::MAX)))
}

/// The operator as an operator set has it; `None` if it is not in the table.
pub fn schema(domain: &str, name: &str, opset: i64) -> Option<&'static Schema> {
    let versions = SCHEMAS.get(canonical(domain))?.get(name)?;
    versions.iter().flatten().rfind(move |schema| schema.since <= opset)
}

/// The kind of a value, in the words of the table; `None` if the file does not state it.
pub fn kind_of(value: &AttributeValue) -> Option<&'static str> {
    Some(match value {
        AttributeValue::Float(_) => "float",
        AttributeValue::Int(_) => "int",
        AttributeValue::String(_) => "string",
        AttributeValue::Tensor(_) => "tensor",
        AttributeValue::Graph(_) => "graph",
        AttributeValue::SparseTensor(_) => "sparse_tensor",
        AttributeValue::Type(_) => "type_proto",
        AttributeValue::Floats(_) => "floats",
        AttributeValue::Ints(_) => "ints",
        AttributeValue::Strings(_) => "strings",
        AttributeValue::Tensors(_) => "tensors",
        AttributeValue::Graphs(_) => "graphs",
        AttributeValue::SparseTensors(_) => "sparse_tensors",
        AttributeValue::Types(_) => "type_protos",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_schema_or_removes_one() {
        for line in TABLE.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let since: i64 = words[2].parse().expect("a version");
            match schema(words[0], words[1], since) {
                Some(schema) if schema.since == since => {
                    assert_eq!(schema.attributes.len(), words.len() - 5, "{line}");
                }
                _ => assert_eq!(words[3], "removed", "{line}"),
            }
        }
    }

    #[test]
    fn the_newest_sets_are_known() {
        for (domain, newest) in NEWEST {
            let all = SCHEMAS[domain].values().flatten().flatten();
            let last = all.map(|schema| schema.since).max();
            assert_eq!(last, Some(*newest), "{domain}");
        }
    }

    #[test]
    fn a_version_applies_until_the_next() {
        let axes =
            |opset| schema("", "Squeeze", opset).map(|one| one.attributes.contains_key("axes"));
        assert_eq!(
            [axes(1), axes(12), axes(13), axes(28)],
            [Some(true), Some(true), Some(false), Some(false)]
        );
        assert_eq!(schema("ai.onnx", "Squeeze", 0), None);
    }
}
