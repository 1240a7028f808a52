//! Operators follow the operator set that a model imports.

use irc_common_format::model::{
    Attribute, AttributeValue, ElementType, Graph, Module, Node, Opset, Schema,
    Tensor as FileTensor, Value,
};
use irc_onnx_ops::{ImportOptions, import};
use irc_tensor::Tensor;
use std::collections::BTreeMap;

/// Shape and elements of an output.
type Outputs = (Vec<i64>, Vec<f64>);

/// A node on floats `x`, of an operator set, with attributes and constants.
struct Case {
    domain: Option<&'static str>,
    version: i64,
    node: Node,
    constants: Vec<FileTensor>,
}

fn case(version: i64, op: &str, inputs: &[&str], outputs: &[&str]) -> Case {
    let node = Node::new(op, inputs.iter().copied(), outputs.iter().copied());
    Case { domain: None, version, node, constants: vec![] }
}

impl Case {
    fn ints(mut self, name: &str, values: &[i64]) -> Self {
        let value = AttributeValue::Ints(values.to_vec());
        self.node.attributes.push(Attribute::new(name, value));
        self
    }

    fn int(mut self, name: &str, value: i64) -> Self {
        self.node.attributes.push(Attribute::new(name, AttributeValue::Int(value)));
        self
    }

    fn floats(mut self, name: &str, values: &[f32]) -> Self {
        let value = AttributeValue::Floats(values.to_vec());
        self.node.attributes.push(Attribute::new(name, value));
        self
    }

    fn text(mut self, name: &str, value: &'static str) -> Self {
        let value = AttributeValue::String(value.as_bytes().into());
        self.node.attributes.push(Attribute::new(name, value));
        self
    }

    fn constant(mut self, name: &str, dims: &[i64], values: &[i64]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constants.push(FileTensor::raw(name, ElementType::Int64, dims.to_vec(), bytes));
        self
    }

    fn number(mut self, name: &str, value: f32) -> Self {
        self.constants.push(FileTensor::floats(name, [], &[value]));
        self
    }

    fn domain(mut self, domain: &'static str) -> Self {
        self.domain = Some(domain);
        self
    }

    /// The shapes and elements of the outputs for `x`, whose sizes the model leaves symbolic or states.
    fn run(&self, open: bool, dims: &[i64], x: &[f32]) -> Result<Vec<Outputs>, String> {
        let mut node = self.node.clone();
        node.domain = self.domain.map(str::to_owned);
        let names = (0..dims.len()).map(|axis| format!("d{axis}"));
        let symbols: Vec<irc_common_format::model::Dim> =
            names.map(irc_common_format::model::Dim::Variable).collect();
        let known = dims.iter().map(|size| irc_common_format::model::Dim::Size(*size)).collect();
        let sizes: Vec<_> = if open { symbols } else { known };
        let ty = irc_common_format::model::Type::tensor(ElementType::Float, sizes);
        let graph = Graph {
            inputs: vec![Value::new("x", ty)],
            outputs: node.outputs.iter().map(Value::untyped).collect(),
            initializers: self.constants.clone(),
            nodes: vec![node],
            ..Graph::default()
        };
        let module = Module {
            schema: Schema::Onnx,
            opsets: vec![Opset { domain: self.domain.map(str::to_owned), version: self.version }],
            graph: Some(graph),
            ..Module::default()
        };
        let imported = import(&module, &ImportOptions::default());
        let imported = imported.map_err(|diagnostics| diagnostics[0].to_string())?;
        let x = Tensor::from_values(dims.to_vec(), x).expect("as many elements");
        let results = imported.graph.eval(&BTreeMap::from([("x".to_owned(), x)]));
        let results = results.map_err(|error| error.to_string())?;
        Ok(results.iter().map(|found| (found.shape().to_vec(), found.to_f64())).collect())
    }

    fn gives(&self, dims: &[i64], x: &[f32], expected: &[(&[i64], &[f64])]) {
        for open in [false, true] {
            let found = self.run(open, dims, x).unwrap_or_else(|error| panic!("{error}"));
            let found: Vec<(&[i64], &[f64])> =
                found.iter().map(|(shape, values)| (&shape[..], &values[..])).collect();
            assert_eq!(found, expected, "{} {}, open: {open}", self.node.op, self.version);
        }
    }

    fn fails(&self, dims: &[i64], x: &[f32], message: &str) {
        let error = self.run(false, dims, x).expect_err("it does not fit");
        assert!(error.contains(message), "{error}");
    }
}

const SIX: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

#[test]
fn slices_by_attributes() {
    let slice = case(1, "Slice", &["x"], &["y"]).ints("starts", &[-2]).ints("ends", &[1000]);
    slice.ints("axes", &[1]).gives(&[2, 3], &SIX, &[(&[2, 2], &[2.0, 3.0, 5.0, 6.0])]);
    let slice = case(1, "Slice", &["x"], &["y"]).ints("starts", &[0, 1]).ints("ends", &[-1, 3]);
    slice.gives(&[2, 3], &SIX, &[(&[1, 2], &[2.0, 3.0])]);
    let slice = case(1, "Slice", &["x"], &["y"]).ints("starts", &[0, 1]).ints("ends", &[-1]);
    slice.fails(&[2, 3], &SIX, "expected as many ends, axes and steps as starts, 2, found 1");
}

#[test]
fn pads_by_attributes() {
    let pad = case(1, "Pad", &["x"], &["y"]).ints("paddings", &[0, 1, 0, 0]);
    pad.gives(&[2, 1], &[1.0, 2.0], &[(&[2, 2], &[0.0, 1.0, 0.0, 2.0])]);
    let pad = case(2, "Pad", &["x"], &["y"]).ints("pads", &[0, 2, 0, -1]).text("mode", "reflect");
    pad.gives(&[1, 3], &SIX[..3], &[(&[1, 4], &[3.0, 2.0, 1.0, 2.0])]);
    let pad = case(2, "Pad", &["x"], &["y"]).ints("pads", &[0, 1, 0, 0]).text("mode", "wrap");
    pad.fails(&[1, 3], &SIX[..3], "expected `mode` constant, edge or reflect, found wrap");
}

#[test]
fn reflections_go_back_and_forth() {
    let pad = case(13, "Pad", &["x", "p"], &["y"]).text("mode", "reflect");
    let pad = pad.constant("p", &[2], &[4, 3]);
    let expected = [1.0, 2.0, 3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0, 2.0];
    pad.gives(&[3], &SIX[..3], &[(&[10], &expected)]);
    pad.gives(&[1], &SIX[..1], &[(&[8], &[1.0; 8])]);
}

#[test]
fn tiles_along_one_axis() {
    let tile = case(1, "Tile", &["x", "n", "axis"], &["y"]).constant("n", &[], &[2]);
    let expected = [1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0];
    tile.constant("axis", &[], &[1]).gives(&[2, 2], &SIX[..4], &[(&[2, 4], &expected)]);
}

#[test]
fn splits_of_all_versions() {
    let split = case(1, "Split", &["x", "s"], &["a", "b"]).constant("s", &[2], &[1, 2]);
    let parts: &[(&[i64], &[f64])] = &[(&[1], &[1.0]), (&[2], &[2.0, 3.0])];
    split.gives(&[3], &SIX[..3], parts);
    let split = case(2, "Split", &["x"], &["a", "b"]).ints("split", &[1, 2]);
    split.gives(&[3], &SIX[..3], parts);
    split.fails(&[4], &SIX[..4], "expected sizes that add up to that of axis 0: found 3 and 4");
    let split = case(18, "Split", &["x"], &["a", "b"]).int("num_outputs", 2);
    split.gives(&[3], &SIX[..3], &[(&[2], &[1.0, 2.0]), (&[1], &[3.0])]);
    let split = case(13, "Split", &["x"], &["a", "b"]);
    split.fails(&[3], &SIX[..3], "expected 2 equal parts of 3");
}

#[test]
fn axes_by_attribute_and_input() {
    let squeeze = case(1, "Squeeze", &["x"], &["y"]).ints("axes", &[0]);
    squeeze.gives(&[1, 2], &SIX[..2], &[(&[2], &[1.0, 2.0])]);
    squeeze.fails(&[2, 1], &SIX[..2], "expected one element along axis 0, found 2");
    let unsqueeze = case(13, "Unsqueeze", &["x", "a"], &["y"]).constant("a", &[2], &[-1, 0]);
    unsqueeze.gives(&[2], &SIX[..2], &[(&[1, 2, 1], &[1.0, 2.0])]);
    let unsqueeze = case(13, "Unsqueeze", &["x", "a"], &["y"]).constant("a", &[2], &[-1, 2]);
    unsqueeze.fails(&[2], &SIX[..2], "expected distinct axes");
}

#[test]
fn the_largest_by_attribute() {
    let top = case(1, "TopK", &["x"], &["v", "i"]).int("k", 2);
    top.gives(&[3], &[2.0, 9.0, 4.0], &[(&[2], &[9.0, 4.0]), (&[2], &[1.0, 2.0])]);
    case(1, "TopK", &["x"], &["v", "i"]).int("k", 4).fails(&[3], &SIX[..3], "found 4 and 3");
}

#[test]
fn values_join_at_the_second_axis_by_default() {
    let concat = case(1, "Concat", &["x", "x"], &["y"]);
    concat.gives(&[2, 1], &SIX[..2], &[(&[2, 2], &[1.0, 1.0, 2.0, 2.0])]);
    case(4, "Concat", &["x", "x"], &["y"]).fails(&[2, 1], &SIX[..2], "`axis` is missing");
}

#[test]
fn the_last_of_several_updates_stays() {
    let scatter = case(9, "Scatter", &["x", "i", "u"], &["y"]).constant("i", &[3], &[0, 2, 0]);
    let mut scatter = scatter;
    scatter.constants.push(FileTensor::floats("u", [3], &[10.0, 20.0, 30.0]));
    scatter.gives(&[3], &SIX[..3], &[(&[3], &[30.0, 2.0, 20.0])]);
}

#[test]
fn images_are_cropped() {
    let crop = case(1, "Crop", &["x"], &["y"]).ints("border", &[1, 0, 0, 1]);
    crop.gives(&[1, 1, 2, 3], &SIX, &[(&[1, 1, 1, 2], &[2.0, 3.0])]);
    let crop = case(1, "Crop", &["x"], &["y"]).ints("border", &[1, 1, 0, 0]).ints("scale", &[1, 1]);
    crop.gives(&[1, 1, 2, 3], &SIX, &[(&[1, 1, 1, 1], &[5.0])]);
}

#[test]
fn known_indices_are_checked_at_once() {
    let gather = case(13, "Gather", &["x", "i"], &["y"]).constant("i", &[2], &[-1, 0]);
    gather.gives(&[3], &SIX[..3], &[(&[2], &[3.0, 1.0])]);
    let gather = case(13, "Gather", &["x", "i"], &["y"]).constant("i", &[], &[3]);
    gather.fails(&[3], &SIX[..3], "expected indices from -3 to 2, found 3");
}

#[test]
fn features_are_scaled_and_looked_up() {
    let ml = |op: &str| case(1, op, &["x"], &["y"]).domain("ai.onnx.ml");
    let scaler = ml("Scaler").floats("offset", &[1.0, 2.0]).floats("scale", &[2.0, 0.5]);
    scaler.gives(&[1, 2], &[3.0, 6.0], &[(&[1, 2], &[4.0, 2.0])]);
    let largest = ml("Normalizer").text("norm", "MAX");
    largest.gives(&[2, 2], &[1.0, 4.0, 0.0, 0.0], &[(&[2, 2], &[0.25, 1.0, 0.0, 0.0])]);
    let imputer = ml("Imputer").floats("imputed_value_floats", &[7.0]);
    imputer.gives(&[1, 2], &[0.0, 5.0], &[(&[1, 2], &[7.0, 5.0])]);
    let mut labels = ml("LabelEncoder").floats("keys_floats", &[1.0, 2.0]);
    labels = labels.ints("values_int64s", &[10, 20]);
    labels.version = 2;
    labels.gives(&[3], &[2.0, 1.0, 5.0], &[(&[3], &[20.0, 10.0, -1.0])]);
}

#[test]
fn one_step_of_descent() {
    let step = case(1, "Momentum", &["r", "t", "x", "g", "v"], &["new", "speed"]);
    let mut step =
        step.domain("ai.onnx.preview.training").number("r", 0.5).text("mode", "standard");
    step = step.constant("t", &[], &[3]);
    for (name, value) in [("alpha", 0.5), ("beta", 2.0), ("norm_coefficient", 0.0)] {
        step.node.attributes.push(Attribute::new(name, AttributeValue::Float(value)));
    }
    step.constants.push(FileTensor::floats("g", [1], &[1.0]));
    step.constants.push(FileTensor::floats("v", [1], &[4.0]));
    // The speed is 0.5 * 4 + 2 * 1.
    step.gives(&[1], &[10.0], &[(&[1], &[8.0]), (&[1], &[4.0])]);
}
