//! Convolutions and fully connected layers.

use crate::layer::{Place, Window, error, four, has_relu, shape_error, single, type_of};
use crate::{quantised, relu};
use irc_diag::Diagnostic;
use irc_gemini_format::frontend::FrontendLayer;
use irc_tl::{Binary, Builder, Built, Conv, DType, Dim, TensorType, ValueId};

/// Imports a convolution of `x`; weights and constants of output channels become inputs.
pub fn write(b: &mut Builder, layer: &FrontendLayer, x: ValueId) -> Result<ValueId, Diagnostic> {
    let input = type_of(layer, Place::Input(0))?;
    let weight = type_of(layer, Place::Input(1))?;
    let output = type_of(layer, Place::Output)?;
    for (index, ty) in [&input, &weight].into_iter().enumerate() {
        if ty.dtype != DType::I8 {
            let message = format!("expected a product of int8, found {ty}");
            let key = format!("input_dtype[{index}]");
            return Err(error(layer, "gemini-dtype", &key, message));
        }
    }
    let [filters, channels, rows, columns] = four(&weight.shape);
    let kernel = layer.kernel_size.unwrap_or([1, 1]);
    let (image, made) = (four(&input.shape), four(&output.shape));
    let fits = kernel == [rows, columns]
        && image[1] == channels
        && made[..2] == [image[0], filters]
        && weight.shape.len() == 4;
    if !fits {
        let message = format!("weights {weight} do not match input {input} and output {output}");
        return Err(error(layer, "gemini-shape", "input_shape", message));
    }
    let window = Window::of(layer, kernel)?;
    let constants = layer.quant_info.as_ref();
    let zero = constants.and_then(|constants| constants.input_zero_point1.as_ref());
    // Padding has the real value 0, whose integer is minus the zero point.
    let outside = zero.map_or(0.0, |zero| -single(zero)).round_ties_even() as i8;
    let quantise = match output.dtype {
        DType::I8 => {
            let scale = constants.and_then(|constants| constants.output_scale.as_ref());
            let missing = || {
                let message = "results of int8 need it";
                error(layer, "gemini-field", "quant_info.output_scale", message)
            };
            let zero = constants.and_then(|constants| constants.output_zero_point.as_ref());
            Some((single(scale.ok_or_else(missing)?), zero.map_or(0.0, single)))
        }
        _ => None,
    };
    let per_filter = || TensorType::new(DType::F32, [filters]);
    let weight = b.input(format!("{}.weight", layer.name), weight.into());
    let scale = b.input(format!("{}.scale", layer.name), per_filter().into());
    let bias = b.input(format!("{}.bias", layer.name), per_filter().into());
    let mut written = || -> Built {
        let sums = sums(b, x, weight, &window, image, outside)?;
        let sums = b.cast(sums, DType::F32)?;
        let along = [1.into(), filters.into(), 1.into(), 1.into()];
        let (scale, bias) = (b.reshape(scale, &along)?, b.reshape(bias, &along)?);
        let scaled = b.binary(Binary::Mul, sums, scale)?;
        let mut value = b.binary(Binary::Add, scaled, bias)?;
        if has_relu(layer) {
            value = relu(b, value)?;
        }
        match quantise {
            Some(constants) => quantised(b, value, constants, DType::I8),
            None => b.cast(value, DType::F16),
        }
    };
    written().map_err(|error| shape_error(layer, error))
}

/// Sums of products in `i32`, with `outside` in the padding.
fn sums(
    b: &mut Builder,
    x: ValueId,
    weight: ValueId,
    window: &Window,
    image: [i64; 4],
    outside: i8,
) -> Built {
    let x = b.reshape(x, &image.map(Dim::Known))?;
    let reach = window.reach();
    let pad = |axis: usize| {
        let (size, before) = (image[2 + axis], window.before[axis]);
        let after = reach[axis] - before - size;
        // Elements after the last window need not be cut off if there is no room for another one.
        let is_last = -after < window.stride[axis];
        [before, if after < 0 && is_last { 0 } else { after }]
    };
    let pads = vec![pad(0), pad(1)];
    let (x, weight) = (b.cast(x, DType::I32)?, b.cast(weight, DType::I32)?);
    let strides = window.stride.to_vec();
    let outside = outside.into();
    b.conv(Conv { strides, dilations: vec![1, 1], pads, groups: 1, outside }, x, weight)
}
