//! Nodes of ai.onnx.ml against ONNX Runtime, on the cases that `data/make_ml.py` writes, and their errors.

use crate::case::Case;
use irc_common_format::model::{AttributeValue, Tensor as FileTensor};
use irc_onnx_ops::element_of;
use irc_tl::{Constant, DType, Tensor, TensorType};
use std::str::FromStr;

fn values<T: FromStr>(words: &[&str]) -> Vec<T> {
    let parse = |word: &&str| word.parse().unwrap_or_else(|_| panic!("a number, not {word}"));
    words.iter().map(parse).collect()
}

/// A tensor: type, shape and elements.
fn tensor(words: &[&str]) -> Tensor {
    let shape: Vec<&str> =
        words[1].trim_matches(['[', ']']).split(',').filter(|size| !size.is_empty()).collect();
    let shape: Vec<i64> = values(&shape);
    let dtype = match words[0] {
        "str" => return Tensor::from_strings(shape, &words[2..]).expect("strings"),
        "f32" => DType::F32,
        "f64" => DType::F64,
        "i32" => DType::I32,
        "i64" => DType::I64,
        "u8" => DType::U8,
        other => panic!("an element type, not {other}"),
    };
    Tensor::from_f64(TensorType::new(dtype, shape), &values::<f64>(&words[2..])).expect("a tensor")
}

fn with_line(case: Case, line: &str, expected: &mut Vec<Tensor>) -> Case {
    let words: Vec<&str> = line.split(' ').collect();
    let (kind, name, rest) = (words[0], words[1], &words[2..]);
    match kind {
        "int" => case.int(name, values(rest)[0]),
        "ints" => case.ints(name, &values::<i64>(rest)),
        "float" => case.float(name, values(rest)[0]),
        "floats" => case.attribute(name, AttributeValue::Floats(values(rest))),
        "string" => case.string(name, rest[0]),
        "strings" => case.strings(name, rest),
        "tensor" => {
            let tensor = tensor(rest);
            let (element, shape) = (element_of(tensor.dtype()), tensor.shape().to_vec());
            let tensor = FileTensor::raw(name, element, shape, Constant::of(&tensor).bytes);
            case.attribute(name, AttributeValue::Tensor(tensor.into()))
        }
        "input" => {
            let tensor = tensor(&words[1..]);
            if tensor.dtype() == DType::String {
                return case.texts(tensor.shape(), &words[3..]);
            }
            case.input_of(tensor.dtype(), tensor.shape(), &tensor.to_f64())
        }
        "output" => {
            expected.push(tensor(&words[1..]));
            case
        }
        other => panic!("a part of a case, not {other}"),
    }
}

fn expect_close(expected: &Tensor, found: &Tensor, name: &str) {
    assert_eq!(expected.ty(), found.ty(), "{name}");
    if let Some(texts) = expected.to_strings() {
        return assert_eq!(Some(texts), found.to_strings(), "{name}");
    }
    // The inverse of the normal distribution cancels near one half.
    let tolerance = if name.contains("PROBIT") { 5e-4 } else { 2e-5 };
    for (want, have) in expected.to_f64().into_iter().zip(found.to_f64()) {
        let close = want == have
            || want.is_nan() && have.is_nan()
            || (want - have).abs() <= tolerance * want.abs().max(0.5);
        assert!(close, "{name}: expected {expected:?}, found {found:?}");
    }
}

#[test]
fn results_are_those_of_onnx_runtime() {
    let text = include_str!("data/ml.txt");
    let mut count = 0;
    for (index, part) in text.split("case ").filter(|part| !part.is_empty()).enumerate() {
        let mut lines = part.lines();
        let head = lines.next().expect("the operator and its version");
        let (op, version) = head.split_once(' ').expect("both");
        let mut case = Case::new(op, version.parse().expect("a version")).domain("ai.onnx.ml");
        let mut expected = vec![];
        let name = format!("case {index}, {part}");
        for line in lines {
            case = with_line(case, line, &mut expected);
        }
        let outputs = if op == "ZipMap" { 1 } else { expected.len() };
        let found = case.outputs(outputs).run().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found.len(), expected.len(), "{name}");
        expected.iter().zip(&found).for_each(|(want, have)| expect_close(want, have, &name));
        count += 1;
    }
    assert!(count > 200, "{count} cases");
}

/// A regressor of one tree: a decision and two leaves.
fn tree() -> Case {
    Case::new("TreeEnsembleRegressor", 3)
        .domain("ai.onnx.ml")
        .input(&[1, 1], &[0.0f32])
        .int("n_targets", 1)
        .ints("nodes_treeids", &[0, 0, 0])
        .ints("nodes_nodeids", &[0, 1, 2])
        .ints("nodes_featureids", &[0, 0, 0])
        .attribute("nodes_values", AttributeValue::Floats(vec![0.5, 0.0, 0.0]))
        .strings("nodes_modes", &["BRANCH_LEQ", "LEAF", "LEAF"])
        .ints("nodes_truenodeids", &[1, 0, 0])
        .ints("nodes_falsenodeids", &[2, 0, 0])
        .ints("target_treeids", &[0, 0])
        .ints("target_nodeids", &[1, 2])
        .ints("target_ids", &[0, 0])
        .attribute("target_weights", AttributeValue::Floats(vec![1.0, 2.0]))
}

#[test]
fn invalid_trees_are_rejected() {
    assert_eq!(tree().values(), [1.0]);
    let replaced = |name: &str, values: &[i64]| tree().without(name).ints(name, values).error();
    let cycle = replaced("nodes_truenodeids", &[0, 0, 0]);
    assert_eq!(cycle, "node 0 of tree 0: the nodes of a tree form a cycle");
    assert_eq!(replaced("nodes_falsenodeids", &[7, 0, 0]), "tree 0 has no node 7");
    assert_eq!(replaced("nodes_nodeids", &[0, 1, 1]), "tree 0 has two nodes 1");
    assert_eq!(replaced("target_ids", &[0, 5]), "expected a target from 0 to 0, found 5");
    let negative = replaced("nodes_featureids", &[-1, 0, 0]);
    assert_eq!(negative, "node 0 of tree 0: expected a feature, found -1");
    let far = replaced("nodes_featureids", &[1 << 40, 0, 0]);
    assert!(far.contains("expected a feature below 2^30"), "{far}");
    let wide = replaced("nodes_featureids", &[3, 0, 0]);
    assert!(wide.contains("the trees use 4 features"), "{wide}");
    let short = replaced("nodes_treeids", &[0, 0]);
    assert_eq!(short, "expected 2 elements in `nodes_nodeids`, found 3");
    let many = tree().without("n_targets").int("n_targets", i64::MAX).error();
    assert!(many.contains("expected a positive number of targets"), "{many}");
    let mode = tree().without("nodes_modes").strings("nodes_modes", &["X", "LEAF", "LEAF"]).error();
    assert_eq!(mode, "unknown mode 'X'");
}

#[test]
fn labels_of_maps_are_distinct() {
    let zip = Case::new("ZipMap", 1).domain("ai.onnx.ml").input(&[1, 2], &[0.25f32, 0.75]);
    let error = zip.ints("classlabels_int64s", &[3, 3]).error();
    assert_eq!(error, "expected distinct labels, found 3 twice");
}

#[test]
fn unknown_categories_are_errors_if_asked() {
    let encoder = Case::new("OneHotEncoder", 1).domain("ai.onnx.ml").input(&[1], &[4i64]);
    let encoder = encoder.ints("cats_int64s", &[1, 2]).int("zeros", 0);
    let error = encoder.run().expect_err("an unknown category");
    assert!(error.contains("expected known categories"), "{error}");
}

#[test]
fn features_of_higher_rank_are_flattened() {
    let case = Case::new("FeatureVectorizer", 1)
        .domain("ai.onnx.ml")
        .ints("inputdimensions", &[4, 1])
        .input(&[2, 2, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
        .input(&[2, 1], &[9.0f32, 10.0]);
    case.close(&[&[1.0, 2.0, 3.0, 4.0, 9.0, 5.0, 6.0, 7.0, 8.0, 10.0]]);
}
