//! The standard library: operators that files of Common IR's time call without declaring them.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::model::{
    Dim, ElementType, Metadata, Module, Operator, Shape, Signature, TensorType, Type, Value,
};

/// The declarations, in a notation that its first lines explain.
const TEXT: &str = include_str!("standard.txt");

/// The standard library: a document like any other, which can be written in each encoding.
///
/// Optional and variadic operands are marked by the first word of their documentation.
pub fn standard() -> &'static Module {
    static LIBRARY: LazyLock<Module> = LazyLock::new(|| Module {
        metadata: Metadata {
            name: Some("standard".into()),
            domain: Some("org.irc".into()),
            ir_version: Some(1),
            model_version: Some(1),
            doc: Some("Operators of the first version of ONNX, with their signatures.".into()),
            ..Metadata::default()
        },
        operators: lines().map(|line| operator(line).expect("a declaration")).collect(),
        ..Module::default()
    });
    &LIBRARY
}

/// The operators of the standard library by name.
pub(crate) fn operators() -> &'static HashMap<&'static str, &'static Operator> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Operator>> = LazyLock::new(|| {
        let all = standard().operators.iter();
        all.map(|operator| (operator.name.as_deref().unwrap_or_default(), operator)).collect()
    });
    &BY_NAME
}

fn lines() -> impl Iterator<Item = &'static str> {
    TEXT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The operator that a line declares.
fn operator(line: &str) -> Option<Operator> {
    let (name, rest) = line.split_once('(')?;
    let (inputs, rest) = rest.split_once(") -> (")?;
    let (outputs, rest) = rest.split_once(')')?;
    let (attributes, rest) = match rest.trim().strip_prefix('{') {
        Some(rest) => rest.split_once('}')?,
        None => ("", rest),
    };
    let elements = match rest.trim().strip_prefix("T = ") {
        Some(set) => elements(set)?,
        None => vec![ElementType::Float],
    };
    let signature = |element| {
        let all = |list, make: fn(&str, ElementType) -> Option<Value>| -> Option<Vec<Value>> {
            parts(list).into_iter().map(|part| make(part, element)).collect()
        };
        Some(Signature {
            inputs: all(inputs, operand)?,
            outputs: all(outputs, operand)?,
            attributes: all(attributes, attribute)?,
            doc: None,
        })
    };
    let signatures: Option<Vec<Signature>> = elements.into_iter().map(signature).collect();
    Some(Operator { name: Some(name.into()), signatures: signatures?, ..Operator::default() })
}

/// The parts of a list, separated by commas outside of brackets.
fn parts(list: &str) -> Vec<&str> {
    let mut depth = 0;
    let parts = list.split(|c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn elements(set: &str) -> Option<Vec<ElementType>> {
    use ElementType as E;
    let float = [E::Float, E::Double, E::Float16];
    let number = [E::Int32, E::Int64, E::Int8, E::Int16, E::Uint8, E::Uint16, E::Uint32, E::Uint64];
    let other = [E::Bool, E::String, E::Complex64, E::Complex128];
    Some(match set {
        "float" => float.to_vec(),
        "number" => [&float[..], &number].concat(),
        "any" => [&float[..], &number, &other].concat(),
        _ => return None,
    })
}

/// `name: type[shape]`, followed by `...` if it is variadic.
fn operand(text: &str, element: ElementType) -> Option<Value> {
    let (name, rest) = text.split_once(": ")?;
    let (ty, rest) = rest.split_once('[')?;
    let (dims, rest) = rest.split_once(']')?;
    let element = if ty == "T" { element } else { ElementType::from_name(ty)? };
    let shape = Shape::new(dims.split(',').filter(|dim| !dim.is_empty()).map(Dim::from));
    let mut value = Value::new(name, Type::Tensor(TensorType { element, shape: Some(shape) }));
    value.doc = (rest == "...").then(|| "Variadic.".into());
    Some(value)
}

/// `name: kind`, followed by `?` if it is optional.
fn attribute(text: &str, element: ElementType) -> Option<Value> {
    let (name, kind) = text.split_once(": ")?;
    let is_optional = kind.ends_with('?');
    let (element, dims): (_, &[&str]) = match kind.trim_end_matches('?') {
        "int" => (ElementType::Int64, &[]),
        "float" => (ElementType::Float, &[]),
        "string" => (ElementType::String, &[]),
        "ints" => (ElementType::Int64, &["n"]),
        "floats" => (ElementType::Float, &["n"]),
        "tensor" => (element, &["*"]),
        _ => return None,
    };
    let mut value = Value::tensor(name, element, dims.iter().copied());
    value.doc = is_optional.then(|| "Optional.".into());
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_declares_an_operator() {
        for line in lines() {
            assert!(operator(line).is_some(), "{line}");
        }
        assert_eq!(operators().len(), lines().count());
        assert!(operators().len() >= 67);
    }

    #[test]
    fn signatures_are_written_out() {
        let conv = operators()["Conv"];
        assert_eq!(conv.signatures.len(), 3);
        let first = &conv.signatures[0];
        let types = |values: &[Value]| -> Vec<String> {
            let show = |value: &Value| value.ty.as_ref().map(Type::to_string).unwrap_or_default();
            values.iter().map(show).collect()
        };
        assert_eq!(types(&first.inputs), ["float[N,C,*]", "float[M,*]", "float[M]"]);
        assert_eq!(types(&first.outputs), ["float[N,M,*]"]);
        assert_eq!(types(&first.attributes)[1], "int64[n]");
        assert_eq!(operators()["Split"].signatures[0].outputs[0].doc.as_deref(), Some("Variadic."));
    }
}
