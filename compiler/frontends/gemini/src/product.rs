//! Convolutions and fully connected layers.

use crate::layer::{Place, Window, error, four, has_relu, shape_error, single, type_of};
use crate::{quantised, relu};
use irc_diag::Diagnostic;
use irc_gemini_format::frontend::FrontendLayer;
use irc_tl::{Binary, Builder, Built, Compute, Conv, DType, Dim, Scalar, TensorType, ValueId};

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
    let [images, channels, height, width] = image;
    let reach = window.reach();
    let is_inside = window.before == [0, 0] && reach[0] <= height && reach[1] <= width;
    let (x, pads) = if is_inside || outside == 0 {
        let after = |axis: usize| reach[axis] - window.before[axis] - image[2 + axis];
        (x, vec![[window.before[0], after(0)], [window.before[1], after(1)]])
    } else {
        let at = |axis: usize| Scalar::Loop(2 + axis) - Scalar::index(window.before[axis]);
        let inside = |axis: usize| {
            let size = Scalar::index(image[2 + axis]);
            at(axis).ge(Scalar::index(0)).and(at(axis).lt(size))
        };
        let element = Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1), at(0), at(1)]);
        let outside = Scalar::Int(outside.into(), DType::I8);
        let body = inside(0).and(inside(1)).select(element, outside);
        let dims = [images, channels, reach[0], reach[1]].map(Dim::Known);
        (b.compute(Compute::map(dims, body), &[x])?, vec![[0, 0]; 2])
    };
    let (x, weight) = (b.cast(x, DType::I32)?, b.cast(weight, DType::I32)?);
    let strides = window.stride.to_vec();
    b.conv(Conv { strides, dilations: vec![1, 1], pads, groups: 1, outside: 0 }, x, weight)
}
