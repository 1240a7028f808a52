//! Resolution of a node's operator.

use crate::operator::{ERA, ONNX, Operator, canonical};
use crate::ops::{find, operators};
use irc_common_format::model::{Node, Schema};
use irc_diag::nearest;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The operator of a node, and its version.
///
/// # Errors
/// A message that there is none.
pub(crate) fn operator_of(
    node: &Node,
    schema: Schema,
    opsets: &BTreeMap<String, i64>,
) -> Result<(&'static Operator, i64), String> {
    let domain = canonical(node.domain.as_deref().unwrap_or_default());
    // The newest version of a domain that the module does not import, as in ONNX Runtime.
    let imported = opsets.get(domain).copied();
    let version = imported.unwrap_or(i64::MAX);
    let exact =
        find(domain, &node.op).and_then(|operator| Some((operator, operator.version_in(version)?)));
    let missing = || {
        let version = imported.map(|version| format!(" {version}")).unwrap_or_default();
        let own = operators().filter(|operator| operator.domain == domain);
        let meant = nearest(&node.op, own.map(|operator| operator.name));
        let meant = meant.filter(|meant| *meant != node.op);
        let meant = meant.map(|meant| format!(" (did you mean `{meant}`?)")).unwrap_or_default();
        format!("no operator {} of {domain}{version}{}{meant}", node.op, about(domain))
    };
    match (exact, schema) {
        (Some(found), _) => Ok(found),
        (None, Schema::Onnx) => Err(missing()),
        // Libraries of Common IR declare operators in their own domain, under the names of Common IR's list.
        (None, Schema::CommonIr) => {
            let era = find(ERA, &node.op).or_else(|| find(ONNX, &node.op));
            let found = era.and_then(|operator| {
                let first = operator.versions.first().copied();
                Some((operator, operator.version_in(1).or(first)?))
            });
            found.ok_or_else(missing)
        }
    }
}

/// What is special about a domain without operators, for messages.
fn about(domain: &str) -> &'static str {
    match domain {
        "ai.onnx.contrib" => ", the domain of ONNX Runtime's extensions",
        "com.microsoft.nchwc" => {
            ", whose layout depends on the machine that saved the model: save it at the level ORT_ENABLE_EXTENDED"
        }
        _ => "",
    }
}

/// The names of a node's inputs by formal parameter: parameters without an argument are omitted.
pub(crate) fn inputs_of(node: &Node) -> Cow<'_, [String]> {
    let total: i64 = node.arg_counts.iter().map(|count| i64::from(*count)).sum();
    if !node.arg_counts.contains(&0) || total != node.inputs.len() as i64 {
        return Cow::Borrowed(&node.inputs);
    }
    let mut given = node.inputs.iter();
    let mut inputs = vec![];
    for count in &node.arg_counts {
        match count {
            0 => inputs.push(String::new()),
            count => inputs.extend(given.by_ref().take(*count as usize).cloned()),
        }
    }
    Cow::Owned(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_without_arguments_are_left_out() {
        let mut node = Node::new("Op", ["a", "b", "c"], ["y"]);
        assert_eq!(*inputs_of(&node), ["a", "b", "c"]);
        node.arg_counts = vec![1, 0, 2];
        assert_eq!(*inputs_of(&node), ["a", "", "b", "c"]);
        node.arg_counts = vec![1, 0, 1];
        assert_eq!(*inputs_of(&node), ["a", "b", "c"]);
    }

    #[test]
    fn a_name_of_the_era_has_its_meaning_in_any_library() {
        let mut node = Node::new("Plus", ["a", "b"], ["y"]);
        node.domain = Some("com.example.nn".into());
        let none = BTreeMap::new();
        let (operator, _) = operator_of(&node, Schema::CommonIr, &none).expect("it has a meaning");
        assert_eq!((operator.domain, operator.name), (ERA, "Plus"));
        let error = operator_of(&node, Schema::Onnx, &none).map(|_| ()).expect_err("not in ONNX");
        assert_eq!(error, "no operator Plus of com.example.nn");
    }

    #[test]
    fn domains_without_operators_are_explained() {
        let message = |op: &str, domain: &str| {
            let mut node = Node::new(op, ["x"], ["y"]);
            node.domain = Some(domain.into());
            let opsets = BTreeMap::from([(domain.to_owned(), 1)]);
            operator_of(&node, Schema::Onnx, &opsets).map(|_| ()).expect_err("no operator")
        };
        let contrib = message("BertTokenizer", "ai.onnx.contrib");
        assert!(contrib.ends_with("of ai.onnx.contrib 1, the domain of ONNX Runtime's extensions"));
        assert!(
            message("Conv", "com.microsoft.nchwc").ends_with("at the level ORT_ENABLE_EXTENDED")
        );
        assert_eq!(message("Conv", "com.example"), "no operator Conv of com.example 1");
    }

    #[test]
    fn a_domain_that_is_not_imported_has_its_newest_version() {
        let version = |opsets: &[(&str, i64)]| {
            let opsets = opsets.iter().map(|(domain, version)| ((*domain).to_owned(), *version));
            let node = Node::new("Softmax", ["x"], ["y"]);
            operator_of(&node, Schema::Onnx, &opsets.collect()).expect("it exists").1
        };
        assert_eq!(version(&[("ai.onnx", 12)]), 11);
        assert_eq!(version(&[("com.microsoft", 1)]), 13);
    }
}
