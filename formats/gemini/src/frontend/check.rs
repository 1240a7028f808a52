//! Checks of the layers of a frontend file.

use std::collections::HashMap;

use irc_diag::{Diagnostic, Sink, counted};

use super::{Frontend, FrontendLayer, values};

/// Maximum extent of a tensor.
const MAX_EXTENT: i64 = 1 << 24;

/// All diagnostics of a frontend file.
///
/// Diagnostics have paths, but no spans: [`super::parse`] adds those.
pub fn check(frontend: &Frontend) -> Vec<Diagnostic> {
    let mut sink = Sink::new();
    let layers = frontend.layers.iter().enumerate();
    let places: HashMap<&str, usize> =
        layers.clone().map(|(index, (name, _))| (name.as_str(), index)).collect();
    for (index, (name, layer)) in layers {
        let mut rules = Rules { frontend, places: &places, name, layer, sink: &mut sink };
        rules.identity(index);
        rules.values();
        if rules.form() {
            rules.edges(index);
            rules.shapes();
        }
    }
    sink.into_diagnostics()
}

/// The JSON path of a layer in its file.
pub fn layer_path(name: &str) -> String {
    format!("$[{name:?}]")
}

struct Rules<'f, 's> {
    frontend: &'f Frontend,
    places: &'f HashMap<&'f str, usize>,
    name: &'f str,
    layer: &'f FrontendLayer,
    sink: &'s mut Sink,
}

impl Rules<'_, '_> {
    fn error(&mut self, code: &'static str, key: &str, message: String) {
        let message = format!("layer `{}`: {message}", self.name);
        let path = format!("{}.{key}", layer_path(self.name));
        self.sink.push(Diagnostic::error(code, message).path(path));
    }

    fn identity(&mut self, index: usize) {
        if self.layer.name != self.name {
            let message = format!("its name is `{}`", self.layer.name);
            self.error("gem-n1-name", "name", message);
        }
        if self.layer.layer_index != index as i64 {
            let message = format!("it is at position {index}, not {}", self.layer.layer_index);
            self.error("gem-n2-index", "layer_index", message);
        }
    }

    fn values(&mut self) {
        for (key, why) in values::wrong(self.layer) {
            self.error("gem-n11-value", &key, why);
        }
    }

    /// Checks that lists have matching lengths and extents are valid.
    fn form(&mut self) -> bool {
        let layer = self.layer;
        let before = self.sink.error_count();
        let inputs = layer.previous_layer.len();
        if layer.input_shape.len() != inputs || layer.input_dtype.len() != inputs {
            let message = format!(
                "{}, but {} and {} of them",
                counted(inputs, "input"),
                counted(layer.input_shape.len(), "shape"),
                counted(layer.input_dtype.len(), "type")
            );
            self.error("gem-n3-inputs", "previous_layer", message);
        }
        if layer.output_shape.is_empty() || layer.output_shape.len() != layer.output_dtype.len() {
            let message = format!(
                "{} shapes and {} types of results",
                layer.output_shape.len(),
                layer.output_dtype.len()
            );
            self.error("gem-n3-inputs", "output_shape", message);
        }
        for (key, shapes) in
            [("input_shape", &layer.input_shape), ("output_shape", &layer.output_shape)]
        {
            for (index, shape) in shapes.iter().enumerate() {
                let is_valid = shape.iter().all(|extent| (1..=MAX_EXTENT).contains(extent));
                if !is_valid || !(1..=4).contains(&shape.len()) {
                    let message = format!("{shape:?} is not a shape of 1 to 4 extents");
                    self.error("gem-n10-shape", &format!("{key}[{index}]"), message);
                }
            }
        }
        for (key, types) in
            [("input_dtype", &layer.input_dtype), ("output_dtype", &layer.output_dtype)]
        {
            for (index, name) in types.iter().enumerate() {
                if element_bits(name).is_none() {
                    let message = format!("unknown element type `{}`", irc_diag::clip(name));
                    self.error("gem-n12-dtype", &format!("{key}[{index}]"), message);
                }
            }
        }
        for (key, pair) in [
            ("stride", layer.stride),
            ("kernel_size", layer.kernel_size),
            ("pool_size", layer.pool_size),
        ] {
            if pair.is_some_and(|pair| pair.iter().any(|each| !(1..=MAX_EXTENT).contains(each))) {
                self.error("gem-n10-shape", key, "it must be positive".into());
            }
        }
        if layer.padding.is_some_and(|all| all.iter().any(|each| !(0..=MAX_EXTENT).contains(each)))
        {
            self.error("gem-n10-shape", "padding", "it must not be negative".into());
        }
        self.sink.error_count() == before
    }

    /// Checks that connected layers refer to each other, and agree on shapes and types.
    fn edges(&mut self, index: usize) {
        let layer = self.layer;
        for (input, name) in layer.previous_layer.iter().enumerate() {
            let Some(&place) = self.places.get(name.as_str()) else { continue };
            let (_, other) = &self.frontend.layers[place];
            let key = format!("previous_layer[{input}]");
            if place >= index {
                self.error("gem-n7-order", &key, format!("`{name}` is not an earlier layer"));
            }
            if !other.next_layer.iter().any(|next| next == self.name) {
                let message = format!("`{name}` does not list it as a successor");
                self.error("gem-n4-edge", &key, message);
            }
            if other.output_shape.first() != layer.input_shape.get(input) {
                let message = format!(
                    "`{name}` computes {:?}, but {:?} is read",
                    other.output_shape.first(),
                    layer.input_shape[input]
                );
                self.error("gem-n5-edge-shape", &format!("input_shape[{input}]"), message);
            }
            if other.output_dtype.first() != layer.input_dtype.get(input) {
                let message =
                    format!("`{name}` has another type than `{}`", layer.input_dtype[input]);
                self.error("gem-n6-edge-dtype", &format!("input_dtype[{input}]"), message);
            }
        }
        for (output, name) in layer.next_layer.iter().enumerate() {
            let Some(&place) = self.places.get(name.as_str()) else { continue };
            let (_, other) = &self.frontend.layers[place];
            if !other.previous_layer.iter().any(|previous| previous == self.name) {
                let message = format!("`{name}` does not list it as an input");
                self.error("gem-n4-edge", &format!("next_layer[{output}]"), message);
            }
        }
    }

    /// Checks that the result follows from the inputs, for operations whose rule is known.
    fn shapes(&mut self) {
        let layer = self.layer;
        let (Some(input), output) = (layer.input_shape.first(), &layer.output_shape[0]) else {
            return;
        };
        let weight = layer.input_shape.get(1);
        let expected = match layer.operation.as_str() {
            "conv2d" => {
                let kernel =
                    layer.kernel_size.or_else(|| Some([*weight?.get(2)?, *weight?.get(3)?]));
                self.window(kernel, weight.and_then(|weight| weight.first()).copied())
            }
            "max_pool2d" | "avg_pool2d" => self.window(layer.pool_size, input.get(1).copied()),
            "dense" => weight.and_then(|weight| {
                let mut shape = input.clone();
                *shape.get_mut(1)? = *weight.first()?;
                Some(shape)
            }),
            "quantize" => Some(input.clone()),
            operation if operation.starts_with("element_wise") => {
                if layer.input_shape.iter().any(|shape| shape != input) {
                    let message = format!("operands with different shapes {:?}", layer.input_shape);
                    self.error("gem-n8-result-shape", "input_shape", message);
                }
                Some(input.clone())
            }
            "reshape" => {
                let count =
                    |shape: &[i64]| shape.iter().map(|each| i128::from(*each)).product::<i128>();
                if count(input) != count(output) {
                    let message =
                        format!("{input:?} has another number of elements than {output:?}");
                    self.error("gem-n8-result-shape", "output_shape", message);
                }
                return;
            }
            _ => return,
        };
        if expected.as_ref() != Some(output) {
            let message = match expected {
                Some(expected) => format!("expected the result {expected:?}, found {output:?}"),
                None => "the shape of the result is inconsistent with the layer".into(),
            };
            self.error("gem-n8-result-shape", "output_shape", message);
        }
        self.weights(input, weight.map(Vec::as_slice));
    }

    /// The shape of the result of a window, rounded down or, if the layer requests it, up.
    fn window(&self, kernel: Option<[i64; 2]>, channels: Option<i64>) -> Option<Vec<i64>> {
        let layer = self.layer;
        let [n, _, h, w] = layer.input_shape[0][..] else { return None };
        let ([top, bottom, left, right], stride, kernel) = (layer.padding?, layer.stride?, kernel?);
        let rounds_up =
            matches!(layer.ceil_mode, Some(irc_json::Json::Bool(true) | irc_json::Json::Int(1)));
        let along = |extent: i64, padding: i64, axis: usize| {
            let room = extent + padding - kernel[axis];
            let steps = if rounds_up { room + stride[axis] - 1 } else { room } / stride[axis];
            (room >= 0).then_some(steps + 1)
        };
        Some(vec![n, channels?, along(h, top + bottom, 0)?, along(w, left + right, 1)?])
    }

    fn weights(&mut self, input: &[i64], weight: Option<&[i64]>) {
        let layer = self.layer;
        if !matches!(layer.operation.as_str(), "conv2d" | "dense") {
            return;
        }
        let is_valid = weight.is_some_and(|weight| {
            weight.len() == 4
                && input.get(1) == Some(&weight[1])
                && layer.kernel_size.is_none_or(|kernel| kernel == weight[2..4])
        });
        if !is_valid {
            let message =
                format!("weights {weight:?} do not fit the input {input:?} and the kernel");
            self.error("gem-n9-weight-shape", "input_shape", message);
        }
        let constants = layer.quant_info.as_ref();
        let constants = constants.filter(|all| all.input_scale1.is_some());
        if layer.input_dtype[0] == "int8" && constants.is_none() {
            let message = "it reads int8, but has no quantisation constants";
            self.error("gem-n14-quantization", "operation", message.into());
        }
    }
}

/// Bits per element of a type.
pub(crate) fn element_bits(name: &str) -> Option<i64> {
    match name {
        "int8" | "uint8" => Some(8),
        "float16" | "int16" | "bfloat16" => Some(16),
        "float32" | "int32" => Some(32),
        _ => None,
    }
}
