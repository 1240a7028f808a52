//! Attention with score and weight functions given as graph attributes.

use super::dot_product::{precision, scores, weighted, wide_softmax};
use crate::Item;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{DType, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] =
    &[Operator::new("FlexAttention", &[1], flex_attention).in_domain("ai.onnx.preview")];

fn flex_attention(cx: &mut Context<'_>) -> Lowered {
    let [q, k, v] = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    for value in [q, k, v] {
        if cx.b.rank(value) != 4 {
            let found = cx.ty(value);
            return Err(LowerError::invalid(format!("expected rank 4, found {found}")));
        }
    }
    let dtype = cx.dtype(q);
    let default = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let precision = precision(cx)?.unwrap_or(default);
    let products = scores(cx.b, q, k, cx.float("scale")?)?;
    let products = cx.b.cast(products, precision)?;
    let products = changed(cx, "score_mod", products)?;
    let weights = wide_softmax(cx.b, products)?;
    let weights = changed(cx, "prob_mod", weights)?;
    let values = cx.b.cast(v, precision)?;
    let y = weighted(cx.b, weights, values)?;
    one(cx.b.cast(y, dtype))
}

/// Applies the graph attribute to a value; returns the value if there is none.
fn changed(cx: &mut Context<'_>, name: &str, x: ValueId) -> Result<ValueId, LowerError> {
    let Some(graph) = cx.graph(name)?.cloned() else { return Ok(x) };
    let results = cx.inline(&graph, &[Item::Tensor(x)])?;
    let [Item::Tensor(result)] = results[..] else {
        let message = format!("expected {name} to have one tensor as output");
        return Err(LowerError::invalid(message));
    };
    let (expected, found) = (cx.ty(x), cx.ty(result));
    if found.rank() != expected.rank() || found.dtype != expected.dtype {
        let message = format!("expected a result {expected} of {name}, found {found}");
        return Err(LowerError::invalid(message));
    }
    Ok(result)
}
