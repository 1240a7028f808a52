//! The properties of layers.

use irc_diag::Diagnostic;
use irc_gemini_format::Nullable;
use irc_gemini_format::frontend::{Activation, FrontendLayer, Group, layer_path};
use irc_json::Number;
use irc_tl::{BuildError, DType, TensorType};

/// A tensor of a layer.
#[derive(Clone, Copy)]
pub enum Place {
    /// An operand, by number.
    Input(usize),
    /// The result.
    Output,
}

/// A diagnostic about a key of a layer.
pub fn error(
    layer: &FrontendLayer,
    code: &'static str,
    key: &str,
    message: impl std::fmt::Display,
) -> Diagnostic {
    let path = format!("{}.{key}", layer_path(&layer.name));
    Diagnostic::error(code, format!("layer `{}`: {message}", layer.name)).path(path)
}

/// A diagnostic about a layer whose shapes do not match.
pub fn shape_error(layer: &FrontendLayer, error_of: BuildError) -> Diagnostic {
    error(layer, "gemini-shape", "input_shape", error_of)
}

/// The names of the activations that a layer reads; all its other operands are constants.
pub fn activations(layer: &FrontendLayer) -> &[String] {
    let count = if layer.operation == "element_wise_add" { 2 } else { 1 };
    &layer.previous_layer[..layer.previous_layer.len().min(count)]
}

/// The type of a tensor, as the file states it.
pub fn type_of(layer: &FrontendLayer, place: Place) -> Result<TensorType, Diagnostic> {
    let (dtypes, shapes, index, name) = match place {
        Place::Input(index) => (&layer.input_dtype, &layer.input_shape, index, "input"),
        Place::Output => (&layer.output_dtype, &layer.output_shape, 0, "output"),
    };
    let dtype = match dtypes.get(index).map(String::as_str) {
        Some("int8") => DType::I8,
        Some("float16") => DType::F16,
        other => {
            let found = other.unwrap_or("none");
            let message = format!("expected elements of int8 or float16, found {found}");
            return Err(error(layer, "gemini-dtype", &format!("{name}_dtype[{index}]"), message));
        }
    };
    let missing =
        || error(layer, "gemini-field", &format!("{name}_shape[{index}]"), "it has no such shape");
    let shape = shapes.get(index).ok_or_else(missing)?;
    Ok(TensorType::new(dtype, shape.as_slice()))
}

/// `[N, C, H, W]` of a shape, which may omit trailing extents of 1.
pub fn four(shape: &[i64]) -> [i64; 4] {
    [0, 1, 2, 3].map(|axis| shape.get(axis).copied().unwrap_or(1))
}

/// A module of the vector processor that a layer needs.
pub fn group<'l>(layer: &'l FrontendLayer, name: &str) -> Result<&'l Group, Diagnostic> {
    let group = layer.module_list.as_ref().and_then(|modules| modules.group(name));
    let key = format!("module_list.{name}");
    group.ok_or_else(|| error(layer, "gemini-field", &key, "the operation needs it"))
}

/// A constant in single precision.
pub fn single(value: &Number) -> f32 {
    value.value() as f32
}

/// A constant in single precision, or a default.
pub fn single_or(value: Option<&Number>, other: f32) -> f32 {
    value.map_or(other, single)
}

/// Whether a ReLU follows.
pub fn has_relu(layer: &FrontendLayer) -> bool {
    let named = layer.activation_type == Some(Nullable(Some(Activation::Relu)));
    let modules = layer.module_list.as_ref();
    named || modules.is_some_and(|modules| modules.group("relu_group").is_some())
}

/// A window over images.
#[derive(Clone, Copy)]
pub struct Window {
    /// Rows and columns.
    pub kernel: [i64; 2],
    /// Strides along rows and columns.
    pub stride: [i64; 2],
    /// Padding before the first row and column.
    pub before: [i64; 2],
    /// Number of windows along rows and columns.
    pub count: [i64; 2],
}

impl Window {
    /// The windows of a layer over an image.
    ///
    /// # Errors
    /// Padding without space for a window.
    pub fn of(layer: &FrontendLayer, kernel: [i64; 2]) -> Result<Self, Diagnostic> {
        let [top, _, left, _] = layer.padding.unwrap_or([0; 4]);
        let output = layer.output_shape.first().map_or(&[][..], Vec::as_slice);
        let [_, _, rows, columns] = four(output);
        let window = Self {
            kernel,
            stride: layer.stride.unwrap_or([1, 1]),
            before: [top, left],
            count: [rows, columns],
        };
        let sizes = [window.kernel, window.stride, window.count];
        if sizes.as_flattened().iter().any(|size| *size < 1) {
            let message = "expected windows of one element or more";
            return Err(error(layer, "gemini-shape", "output_shape", message));
        }
        Ok(window)
    }

    /// Number of rows and columns that the windows cover, including padding.
    pub fn reach(&self) -> [i64; 2] {
        [0, 1].map(|axis| (self.count[axis] - 1) * self.stride[axis] + self.kernel[axis])
    }
}
