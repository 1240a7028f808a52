//! Values given by attributes of the node.

use crate::context::{Context, LowerError, Lowered, one};
use crate::data::dense_of;
use crate::operator::Operator;
use irc_common_format::model::AttributeValue;
use irc_tl::{Constant, DType, Tensor, TensorType};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Constant", &[1, 9, 11, 12, 13, 19, 21, 23, 24, 25], constant),
    Operator::new("ConstantOfShape", &[9, 20, 21, 23, 24, 25], constant_of_shape),
];

fn constant(cx: &mut Context<'_>) -> Lowered {
    let constant = match cx.attribute("value") {
        // Files of operator set 11 and later should have `sparse_value`; ONNX Runtime reads both.
        Some(AttributeValue::SparseTensor(tensor)) => {
            dense_of(tensor).map_err(LowerError::unsupported)?
        }
        Some(_) => cx.tensor("value")?.ok_or_else(|| cx.missing("value"))?,
        None => listed(cx)?.ok_or_else(|| cx.missing("value"))?,
    };
    Ok(vec![cx.b.constant(constant)])
}

/// The variants of the attribute that hold elements directly.
fn listed(cx: &Context<'_>) -> Result<Option<Constant>, LowerError> {
    let tensor = if let Some(value) = cx.int("value_int")? {
        Tensor::from_values([], &[value])
    } else if let Some(values) = cx.ints("value_ints")? {
        Tensor::from_values([values.len() as i64], &values)
    } else if let Some(value) = cx.float("value_float")? {
        Tensor::from_values([], &[value])
    } else if let Some(values) = cx.floats("value_floats")? {
        Tensor::from_values([values.len() as i64], &values)
    } else if let Some(text) = cx.bytes("value_string")? {
        Tensor::from_strings([], &[text])
    } else if let Some(texts) = cx.texts("value_strings")? {
        Tensor::from_strings([texts.len() as i64], &texts)
    } else if cx.attribute("sparse_value").is_some() {
        return sparse(cx).map(Some);
    } else {
        return Ok(None);
    };
    let tensor = tensor.map_err(|error| LowerError::invalid(error.to_string()))?;
    Ok(Some(Constant::of(&tensor)))
}

fn sparse(cx: &Context<'_>) -> Result<Constant, LowerError> {
    match cx.attribute("sparse_value") {
        Some(AttributeValue::SparseTensor(tensor)) => {
            dense_of(tensor).map_err(LowerError::unsupported)
        }
        _ => Err(LowerError::invalid("the attribute `sparse_value` is not a sparse tensor")),
    }
}

fn constant_of_shape(cx: &mut Context<'_>) -> Lowered {
    let zero = || Tensor::zeros(TensorType::new(DType::F32, [1]));
    let value = match cx.tensor("value")? {
        Some(constant) => constant.tensor(),
        None => zero(),
    };
    let value = value.map_err(|error| LowerError::invalid(error.to_string()))?;
    if value.elements() != 1 {
        let found = value.ty().clone();
        return Err(LowerError::invalid(format!("expected one value, found {found}")));
    }
    let dims = cx.sizes(0)?;
    let value = cx.b.tensor(&value);
    let value = cx.b.reshape(value, &[])?;
    one(cx.b.broadcast(value, &dims))
}
