//! Operators that are lowered as one of ONNX's.

use super::find;
use crate::context::{Context, LowerError, Lowered};
use crate::operator::ONNX;
use irc_tl::ValueId;

/// Lowers the node as a version of one of ONNX's operators.
pub(super) fn like(cx: &mut Context<'_>, name: &str, version: i64) -> Lowered {
    let operator = find(ONNX, name);
    let missing = || LowerError::unsupported(format!("no operator {name}"));
    cx.version = version;
    (operator.ok_or_else(missing)?.lower)(cx)
}

/// As [`like`], with other inputs, all of them tensors.
pub(super) fn like_with(
    cx: &mut Context<'_>,
    name: &str,
    version: i64,
    inputs: &[Option<ValueId>],
) -> Lowered {
    cx.with_inputs(inputs, |cx| like(cx, name, version))
}
