//! A module with a single node, to import and run.
#![allow(dead_code, reason = "not every test uses everything")]

use irc_common_format::model::{
    Attribute, AttributeValue, Dim, Graph, Module, Node, Opset, Schema, Tensor as FileTensor,
    TensorData, Value,
};
use irc_onnx_ops::{ImportOptions, element_of, import};
use irc_tensor::Element;
use irc_tl::{Constant, DType, Tensor, TensorType};
use std::collections::BTreeMap;

/// A node of `com.microsoft`.
pub fn microsoft(op: &str) -> Case {
    Case::new(op, 1).domain("com.microsoft")
}

/// Numbers from -1.5 to 1.5.
pub fn sequence(count: i64, seed: i64) -> Vec<f32> {
    (0..count).map(|index| ((index * 7 + seed * 5) % 13 - 6) as f32 / 4.0).collect()
}

/// Integers from 0 to below a limit.
pub fn integers<T: TryFrom<i64>>(count: i64, seed: i64, limit: i64) -> Vec<T> {
    let number = |index: i64| (index * 11 + seed * 5) % limit;
    (0..count).filter_map(|index| number(index).try_into().ok()).collect()
}

/// A node, the version of its operator set, and its inputs.
pub struct Case {
    node: Node,
    opset: i64,
    domain: Option<String>,
    inputs: Vec<(String, Tensor)>,
    constants: Vec<FileTensor>,
}

impl Case {
    pub fn new(op: &str, opset: i64) -> Self {
        let node = Node::new(op, Vec::<String>::new(), ["y0"]);
        Self { node, opset, domain: None, inputs: vec![], constants: vec![] }
    }

    /// The operator of another domain.
    pub fn domain(mut self, domain: &str) -> Self {
        self.node.domain = Some(domain.to_owned());
        self.domain = Some(domain.to_owned());
        self
    }

    /// An input whose elements are known at run time.
    pub fn input<T: Element>(mut self, shape: &[i64], values: &[T]) -> Self {
        let name = format!("x{}", self.node.inputs.len());
        let tensor = Tensor::from_values(shape, values).expect("as many values");
        self.node.inputs.push(name.clone());
        self.inputs.push((name, tensor));
        self
    }

    /// An input of strings.
    pub fn texts(mut self, shape: &[i64], values: &[&str]) -> Self {
        let name = format!("x{}", self.node.inputs.len());
        let tensor = Tensor::from_strings(shape, values).expect("as many values");
        self.node.inputs.push(name.clone());
        self.inputs.push((name, tensor));
        self
    }

    /// A constant input of strings.
    pub fn constant_texts(mut self, shape: &[i64], values: &[&str]) -> Self {
        let name = format!("x{}", self.node.inputs.len());
        let texts = values.iter().map(|value| (*value).to_owned().into()).collect();
        self.constants.push(FileTensor {
            name: Some(name.clone()),
            element: element_of(DType::String),
            dims: shape.to_vec(),
            data: TensorData::Strings(texts),
            ..FileTensor::default()
        });
        self.node.inputs.push(name);
        self
    }

    /// An input of another element type.
    pub fn input_of(mut self, dtype: DType, shape: &[i64], values: &[f64]) -> Self {
        let name = format!("x{}", self.node.inputs.len());
        let tensor = Tensor::from_f64(TensorType::new(dtype, shape), values);
        self.node.inputs.push(name.clone());
        self.inputs.push((name, tensor.expect("as many values")));
        self
    }

    /// An input whose elements are constant.
    pub fn constant<T: Element>(mut self, shape: &[i64], values: &[T]) -> Self {
        let name = format!("x{}", self.node.inputs.len());
        let tensor = Tensor::from_values(shape, values).expect("as many values");
        let bytes = Constant::of(&tensor).bytes;
        self.constants.push(FileTensor::raw(&name, element_of(T::DTYPE), shape, bytes));
        self.node.inputs.push(name);
        self
    }

    /// An omitted input.
    pub fn nothing(mut self) -> Self {
        self.node.inputs.push(String::new());
        self
    }

    pub fn outputs(mut self, count: usize) -> Self {
        self.node.outputs = (0..count).map(|index| format!("y{index}")).collect();
        self
    }

    pub fn int(self, name: &str, value: i64) -> Self {
        self.attribute(name, AttributeValue::Int(value))
    }

    pub fn ints(self, name: &str, values: &[i64]) -> Self {
        self.attribute(name, AttributeValue::Ints(values.to_vec()))
    }

    pub fn float(self, name: &str, value: f32) -> Self {
        self.attribute(name, AttributeValue::Float(value))
    }

    pub fn string(self, name: &str, value: &str) -> Self {
        self.attribute(name, AttributeValue::String(value.to_owned().into()))
    }

    pub fn strings(self, name: &str, values: &[&str]) -> Self {
        let values = values.iter().map(|value| (*value).to_owned().into()).collect();
        self.attribute(name, AttributeValue::Strings(values))
    }

    pub fn attribute(mut self, name: &str, value: AttributeValue) -> Self {
        self.node.attributes.push(Attribute::new(name, value));
        self
    }

    /// The node without an attribute.
    pub fn without(mut self, name: &str) -> Self {
        self.node.attributes.retain(|attribute| attribute.name.as_deref() != Some(name));
        self
    }

    /// The outputs. Runs the program twice, specialised for the sizes and with symbolic sizes: both agree.
    pub fn run(&self) -> Result<Vec<Tensor>, String> {
        let known = self.run_with(false)?;
        let open = self.run_with(true)?;
        assert_eq!(known, open, "symbolic sizes change the result");
        Ok(known)
    }

    /// The elements of the only output.
    pub fn values(&self) -> Vec<f64> {
        self.run().expect("a valid node")[0].to_f64()
    }

    /// The strings of the only output, if they are UTF-8.
    pub fn result_texts(&self) -> Vec<String> {
        let result = &self.run().expect("a valid node")[0];
        let texts = result.to_strings().expect("strings").into_iter();
        texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect()
    }

    /// Checks the elements of every output, given with five digits.
    pub fn close(&self, expected: &[&[f64]]) {
        let found = self.run().expect("a valid node");
        assert_eq!(found.len(), expected.len());
        for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
            let found = found.to_f64();
            let close = |(found, expected): (&f64, &f64)| {
                found == expected || (found - expected).abs() <= 1e-4 * (1.0 + expected.abs())
            };
            let same = found.len() == expected.len() && found.iter().zip(*expected).all(close);
            assert!(same, "output {index}: expected {expected:?}, found {found:?}");
        }
    }

    /// The error with which the node is rejected.
    pub fn error(&self) -> String {
        self.run_with(false).expect_err("an invalid node")
    }

    fn run_with(&self, open: bool) -> Result<Vec<Tensor>, String> {
        let imported = import(&self.module(open), &ImportOptions::default());
        let imported = imported.map_err(|diagnostics| diagnostics[0].message.clone())?;
        let inputs: BTreeMap<String, Tensor> = self.inputs.iter().cloned().collect();
        imported.graph.eval(&inputs).map_err(|error| error.to_string())
    }

    fn module(&self, open: bool) -> Module {
        let input = |(name, tensor): &(String, Tensor)| {
            let dims = tensor.shape().iter();
            let dims = dims.map(|size| if open { Dim::Unknown } else { Dim::Size(*size) });
            Value::tensor(name, element_of(tensor.dtype()), dims)
        };
        let graph = Graph {
            inputs: self.inputs.iter().map(input).collect(),
            outputs: self.node.outputs.iter().map(Value::untyped).collect(),
            initializers: self.constants.clone(),
            nodes: vec![self.node.clone()],
            ..Graph::default()
        };
        let opset = Opset { domain: self.domain.clone(), version: self.opset };
        Module {
            schema: Schema::Onnx,
            opsets: vec![opset],
            graph: Some(graph),
            ..Module::default()
        }
    }
}
