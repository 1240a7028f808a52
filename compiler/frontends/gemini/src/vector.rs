//! Operations of the vector processor.

use crate::layer::{
    Place, Window, error, four, group, has_relu, shape_error, single, single_or, type_of,
};
use crate::{multiply_add, quantised, relu, single as constant};
use irc_diag::Diagnostic;
use irc_gemini_format::frontend::FrontendLayer;
use irc_tl::{Binary, Builder, Built, Combine, Compute, DType, Dim, Op, Scalar, ValueId};

/// Imports an operation of the vector processor.
pub fn write(
    b: &mut Builder,
    layer: &FrontendLayer,
    operands: &[ValueId],
) -> Result<ValueId, Diagnostic> {
    let (before, after) = (group(layer, "pre_cal")?, group(layer, "post_cal")?);
    let output = type_of(layer, Place::Output)?;
    let image = four(&type_of(layer, Place::Input(0))?.shape);
    let first = (
        single_or(before.requan_scale_a.as_ref(), 1.0),
        single_or(before.requan_zp_a.as_ref(), 0.0),
    );
    let quantise = (single_or(after.mul_k.as_ref(), 1.0), single_or(after.sum_b.as_ref(), 0.0));
    let function = Function::of(layer, image, operands)?;
    let mut written = || -> Built {
        let x = b.cast(operands[0], DType::F32)?;
        let value = function.write(b, x, first)?;
        quantised(b, value, quantise, output.dtype)
    };
    written().map_err(|error| shape_error(layer, error))
}

/// The operation between dequantisation and quantisation.
enum Function {
    Same,
    Sum { other: ValueId, constants: (f32, f32), relu: bool },
    Max { window: Window, image: [i64; 4] },
    Average { window: Window, image: [i64; 4], factor: f32 },
}

impl Function {
    fn of(
        layer: &FrontendLayer,
        image: [i64; 4],
        operands: &[ValueId],
    ) -> Result<Self, Diagnostic> {
        let is_sum = layer.operation == "element_wise_add";
        if has_relu(layer) && !is_sum {
            let message = format!("`{}` with a ReLU is not supported", layer.operation);
            return Err(error(layer, "gemini-operation", "operation", message));
        }
        if is_sum {
            return Self::sum(layer, operands);
        }
        if layer.operation == "quantize" {
            return Ok(Self::Same);
        }
        let missing = || {
            error(
                layer,
                "gemini-field",
                "pool_size",
                "missing key `pool_size`, which a window needs",
            )
        };
        let window = Window::of(layer, layer.pool_size.ok_or_else(missing)?)?;
        let made = four(&type_of(layer, Place::Output)?.shape);
        if made[..2] != image[..2] {
            let message = format!("windows over {image:?} do not match the result {made:?}");
            return Err(error(layer, "gemini-shape", "output_shape", message));
        }
        if layer.operation == "max_pool2d" {
            return Ok(Self::Max { window, image });
        }
        let factor = group(layer, "fp32_mul_group")?.mul_group_k_scalar.as_ref();
        let missing = || {
            let key = "module_list.fp32_mul_group.mul_group_k_scalar";
            error(
                layer,
                "gemini-field",
                key,
                "missing key `mul_group_k_scalar`, which an average needs",
            )
        };
        Ok(Self::Average { window, image, factor: single(factor.ok_or_else(missing)?) })
    }

    fn sum(layer: &FrontendLayer, operands: &[ValueId]) -> Result<Self, Diagnostic> {
        let before = group(layer, "pre_cal")?;
        let [_, other] = *operands else {
            let message = "expected two operands of a sum";
            return Err(error(layer, "gemini-field", "previous_layer", message));
        };
        let types = [type_of(layer, Place::Input(0))?, type_of(layer, Place::Input(1))?];
        if types[0] != types[1] {
            let message = format!("a sum of {} and {} is not supported", types[0], types[1]);
            return Err(error(layer, "gemini-shape", "input_shape", message));
        }
        let missing = || {
            let key = "module_list.pre_cal.requan_scale_b";
            error(layer, "gemini-field", key, "missing key `requan_scale_b`, which a sum needs")
        };
        let scale = single(before.requan_scale_b.as_ref().ok_or_else(missing)?);
        let constants = (scale, single_or(before.requan_zp_b.as_ref(), 0.0));
        Ok(Self::Sum { other, constants, relu: has_relu(layer) })
    }

    /// The function of an operand that is dequantised by a factor and a summand.
    fn write(&self, b: &mut Builder, x: ValueId, (k, zero): (f32, f32)) -> Built {
        let zero = constant(b, zero)?;
        if let Self::Sum { other, constants, relu: has_relu } = self {
            let (other, second) = (b.cast(*other, DType::F32)?, constant(b, constants.1)?);
            let second = multiply_add(b, other, constants.0, second)?;
            let rest = b.binary(Binary::Add, second, zero)?;
            let sum = multiply_add(b, x, k, rest)?;
            return if *has_relu { relu(b, sum) } else { Ok(sum) };
        }
        let x = multiply_add(b, x, k, zero)?;
        match self {
            Self::Same | Self::Sum { .. } => Ok(x),
            Self::Max { window, image } => {
                let x = b.reshape(x, &image.map(Dim::Known))?;
                let lowest = Scalar::float(f64::NEG_INFINITY, DType::F32);
                let tap = [Scalar::Loop(4), Scalar::Loop(5)];
                let body = element(window, *image, tap, lowest, |element| element);
                let over = window.kernel.map(Dim::Known);
                b.compute(
                    Compute::reduce(pooled_dims(window, *image), Combine::Max, over, body),
                    &[x],
                )
            }
            Self::Average { window, image, factor } => {
                let x = b.reshape(x, &image.map(Dim::Known))?;
                // The elements of a window in sequence, as their sum goes from the first to the last.
                let columns = Scalar::index(window.kernel[1]);
                let tap = [
                    Scalar::Loop(4).binary(Binary::Div, columns.clone()),
                    Scalar::Loop(4).binary(Binary::Rem, columns),
                ];
                let factor = Scalar::float(f64::from(*factor), DType::F32);
                let zero = Scalar::float(0.0, DType::F32);
                let body = element(window, *image, tap, zero, |element| element * factor);
                let mut dims = pooled_dims(window, *image).to_vec();
                dims.push(Dim::Known(window.kernel[0] * window.kernel[1]));
                let terms = b.compute(Compute::map(dims, body), &[x])?;
                b.op(Op::SequentialSum { axis: 4 }, &[terms])
            }
        }
    }
}

/// The extents of a pooled image.
fn pooled_dims(window: &Window, [images, channels, ..]: [i64; 4]) -> [Dim; 4] {
    [images, channels, window.count[0], window.count[1]].map(Dim::Known)
}

/// A function of an element of a window, or the value of those outside the image.
fn element(
    window: &Window,
    image: [i64; 4],
    tap: [Scalar; 2],
    outside: Scalar,
    function: impl FnOnce(Scalar) -> Scalar,
) -> Scalar {
    let reach = window.reach();
    let at = |axis: usize| {
        Scalar::Loop(2 + axis) * Scalar::index(window.stride[axis]) + tap[axis].clone()
            - Scalar::index(window.before[axis])
    };
    let load = Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1), at(0), at(1)]);
    let ends = |axis: usize| window.before[axis] != 0 || reach[axis] > image[2 + axis];
    let inside = |axis: usize| {
        let size = Scalar::index(image[2 + axis]);
        at(axis).ge(Scalar::index(0)).and(at(axis).lt(size))
    };
    let guard = [0, 1].into_iter().filter(|axis| ends(*axis)).map(inside).reduce(Scalar::and);
    match guard {
        Some(guard) => guard.select(function(load), outside),
        None => function(load),
    }
}
