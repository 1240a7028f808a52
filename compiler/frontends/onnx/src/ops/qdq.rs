//! Ops between dequantisations of their operands and a quantisation of their result.
//!
//! They are computed on the integers, as ONNX Runtime computes them by default: sums of products of integers are
//! exact, so that results do not depend on the order of a sum.

use super::find;
use crate::context::{Context, LowerError, Lowered, Producer};
use crate::operator::{MICROSOFT, ONNX};
use irc_common_format::model::AttributeValue;
use irc_tl::{Binary, DType, Tensor, ValueId};

/// An operator, and the one that computes it on integers.
struct Form {
    op: &'static str,
    domain: &'static str,
    integers: &'static str,
    version: i64,
    operands: usize,
    /// Whether its third operand is a bias.
    biased: bool,
}

const FORMS: &[Form] = &[
    form("Add", MICROSOFT, "QLinearAdd", 2),
    form("AveragePool", MICROSOFT, "QLinearAveragePool", 1),
    Form { biased: true, version: 10, ..form("Conv", ONNX, "QLinearConv", 2) },
    Form { biased: true, ..form("Gemm", MICROSOFT, "QGemm", 2) },
    form("GlobalAveragePool", MICROSOFT, "QLinearGlobalAveragePool", 1),
    Form { version: 10, ..form("MatMul", ONNX, "QLinearMatMul", 2) },
    form("Mul", MICROSOFT, "QLinearMul", 2),
    form("ReduceMean", MICROSOFT, "QLinearReduceMean", 1),
];

const fn form(
    op: &'static str,
    domain: &'static str,
    integers: &'static str,
    operands: usize,
) -> Form {
    Form { op, domain, integers, version: 1, operands, biased: false }
}

/// Whether an operator has a form on integers.
pub(super) fn has(name: &str) -> bool {
    FORMS.iter().any(|form| form.op == name) || CHOICES.contains(&name) || name == "Relu"
}

/// Operators that only choose elements of their first operand, and of which the order of integers is that of the numbers
/// that they stand for.
const CHOICES: &[&str] = &[
    "Flatten",
    "GlobalMaxPool",
    "MaxPool",
    "ReduceMax",
    "Reshape",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
];

/// Integers with their scale and zero point.
struct Quantised {
    integers: ValueId,
    scale: ValueId,
    zero: ValueId,
}

/// The result of a quantisation whose operand is computed on integers; `None` if it cannot be.
pub(super) fn on_integers(cx: &mut Context<'_>) -> Result<Option<Vec<ValueId>>, LowerError> {
    let Some(op) = cx.producer(0) else { return Ok(None) };
    computed(cx, &op)
}

/// The quantised result of an operator, computed on integers.
fn computed(cx: &mut Context<'_>, op: &Producer) -> Result<Option<Vec<ValueId>>, LowerError> {
    if op.node.op == "Relu" {
        return limited(cx, op);
    }
    if CHOICES.contains(&op.node.op.as_str()) {
        return chosen(cx, op);
    }
    let Some(form) = FORMS.iter().find(|form| form.op == op.node.op) else { return Ok(None) };
    let (scale, Some(zero)) = (cx.input(1)?, cx.optional(2)) else { return Ok(None) };
    if !is_narrow(cx.dtype(zero)) || !is_single(cx, scale) || !is_single(cx, zero) {
        return Ok(None);
    }
    let mut inputs = vec![];
    let mut scales = vec![];
    for index in 0..form.operands {
        let Some(operand) = quantised(cx, op, index)? else { return Ok(None) };
        let weights = index == 1 && (form.biased || form.op == "MatMul");
        if !weights && cx.dtype(operand.integers) != cx.dtype(zero) {
            return Ok(None);
        }
        scales.push(operand.scale);
        inputs.extend([Some(operand.integers), Some(operand.scale), Some(operand.zero)]);
    }
    let bias = match op.inputs.get(2).copied().flatten().filter(|_| form.biased) {
        Some(_) => match bias(cx, op, &scales)? {
            Some(bias) => Some(bias),
            None => return Ok(None),
        },
        None => None,
    };
    if form.op == "Gemm" {
        inputs.push(bias);
    }
    let (scale, zero) = (cx.b.reshape(scale, &[])?, cx.b.reshape(zero, &[])?);
    inputs.extend([Some(scale), Some(zero)]);
    if form.op == "Conv" {
        inputs.extend(bias.map(Some));
    }
    if form.op == "ReduceMean" {
        // Its axes.
        inputs.push(op.inputs.get(1).copied().flatten());
    }
    let Some(operator) = find(form.domain, form.integers) else { return Ok(None) };
    let results = lowered(cx, op, &inputs, |cx| {
        cx.version = form.version;
        (operator.lower)(cx)
    });
    Ok(Some(results?))
}

/// The results of a node with other inputs, at its place in the file.
fn lowered(
    cx: &mut Context<'_>,
    op: &Producer,
    inputs: &[Option<ValueId>],
    lower: impl FnOnce(&mut Context<'_>) -> Lowered,
) -> Lowered {
    let own = cx.b.origin();
    cx.b.set_origin(op.origin.clone());
    let results = cx.with_node(&op.node, inputs, lower);
    cx.b.set_origin(own);
    results
}

/// As integers, the result of a ReLU after an operator: none is less than the zero point.
fn limited(cx: &mut Context<'_>, relu: &Producer) -> Result<Option<Vec<ValueId>>, LowerError> {
    let Some(zero) = cx.optional(2) else { return Ok(None) };
    let before = relu.node.inputs.first().and_then(|name| cx.named_producer(name));
    let Some(op) = before.filter(|op| FORMS.iter().any(|form| form.op == op.node.op)) else {
        return Ok(None);
    };
    let Some(results) = computed(cx, &op)? else { return Ok(None) };
    let lowest = match cx.dtype(zero) {
        DType::I8 => -128.0,
        _ => 0.0,
    };
    let is_lowest = match cx.b.constant_of(zero)? {
        Some(zero) => zero.to_f64().iter().all(|zero| *zero == lowest),
        None => false,
    };
    if is_lowest {
        return Ok(Some(results));
    }
    let zero = cx.b.reshape(zero, &[])?;
    Ok(Some(vec![cx.b.binary(Binary::Max, results[0], zero)?]))
}

/// The elements that an operator chooses, as integers, if they are quantised as they were before.
fn chosen(cx: &mut Context<'_>, op: &Producer) -> Result<Option<Vec<ValueId>>, LowerError> {
    let (scale, Some(zero)) = (cx.input(1)?, cx.optional(2)) else { return Ok(None) };
    if !is_narrow(cx.dtype(zero)) || !is_single(cx, scale) || !is_single(cx, zero) {
        return Ok(None);
    }
    let Some(operand) = quantised(cx, op, 0)? else { return Ok(None) };
    let is_same = cx.dtype(operand.integers) == cx.dtype(zero)
        && is_one_number(cx, operand.scale, scale)?
        && is_one_number(cx, operand.zero, zero)?;
    match is_same {
        true => Ok(on_elements(cx, op, operand.integers)?.map(|chosen| vec![chosen])),
        false => Ok(None),
    }
}

/// Whether two values are constants of one number.
fn is_one_number(cx: &Context<'_>, x: ValueId, y: ValueId) -> Result<bool, LowerError> {
    let (x, y) = (cx.b.constant_of(x)?, cx.b.constant_of(y)?);
    let first = |constant: Option<Tensor>| constant.and_then(|it| it.to_f64().first().copied());
    Ok(first(x).is_some_and(|x| Some(x) == first(y)))
}

/// Whether integers have 8 bits.
const fn is_narrow(dtype: DType) -> bool {
    matches!(dtype, DType::U8 | DType::I8)
}

fn is_single(cx: &Context<'_>, x: ValueId) -> bool {
    cx.b.ty(x).elements().is(1)
}

/// The dequantisation that produces an operand.
fn dequantisation(cx: &Context<'_>, op: &Producer, index: usize) -> Option<Producer> {
    let name = op.node.inputs.get(index)?;
    cx.named_producer(name).filter(|found| found.node.op == "DequantizeLinear")
}

/// How many operators may choose elements between a dequantisation and what reads the numbers.
const MAX_CHOICES: usize = 8;

/// The integers of an operand that is dequantised, with one scale or, of weights, one per column of the result.
fn quantised(
    cx: &mut Context<'_>,
    op: &Producer,
    index: usize,
) -> Result<Option<Quantised>, LowerError> {
    quantised_within(cx, op, index, MAX_CHOICES)
}

fn quantised_within(
    cx: &mut Context<'_>,
    op: &Producer,
    index: usize,
    choices: usize,
) -> Result<Option<Quantised>, LowerError> {
    let Some(found) = dequantisation(cx, op, index) else {
        return chosen_operand(cx, op, index, choices);
    };
    let [Some(integers), Some(scale), ..] = found.inputs[..] else { return Ok(None) };
    if !is_narrow(cx.dtype(integers)) || cx.dtype(scale) != DType::F32 {
        return Ok(None);
    }
    let zero = match found.inputs.get(2).copied().flatten() {
        Some(zero) => zero,
        None => cx.b.scalar(0.0, cx.dtype(integers))?,
    };
    if is_single(cx, scale) && is_single(cx, zero) {
        let (scale, zero) = (cx.b.reshape(scale, &[])?, cx.b.reshape(zero, &[])?);
        return Ok(Some(Quantised { integers, scale, zero }));
    }
    let rank = cx.b.rank(integers) as i64;
    let columns = match op.node.op.as_str() {
        "Conv" if index == 1 => 0,
        "Gemm" if index == 1 && op.int("transB").unwrap_or(0) != 0 => 0,
        "Gemm" | "MatMul" if index == 1 && rank == 2 => 1,
        _ => return Ok(None),
    };
    let axis = found.int("axis").unwrap_or(1);
    let axis = if axis < 0 { axis + rank } else { axis };
    let matches = axis == columns && cx.b.rank(scale) == 1;
    Ok(matches.then_some(Quantised { integers, scale, zero }))
}

/// The integers of elements that an operator chooses of what is dequantised, with one scale.
fn chosen_operand(
    cx: &mut Context<'_>,
    op: &Producer,
    index: usize,
    choices: usize,
) -> Result<Option<Quantised>, LowerError> {
    let name = op.node.inputs.get(index);
    let choice = name.and_then(|name| cx.named_producer(name));
    let choice = choice.filter(|found| CHOICES.contains(&found.node.op.as_str()));
    let (Some(choice), Some(rest)) = (choice, choices.checked_sub(1)) else { return Ok(None) };
    let Some(operand) = quantised_within(cx, &choice, 0, rest)? else { return Ok(None) };
    let integers = on_elements(cx, &choice, operand.integers)?;
    Ok(integers.map(|integers| Quantised { integers, ..operand }))
}

/// The elements that an operator chooses of integers.
fn on_elements(
    cx: &mut Context<'_>,
    choice: &Producer,
    integers: ValueId,
) -> Result<Option<ValueId>, LowerError> {
    let Some(operator) = find(ONNX, &choice.node.op) else { return Ok(None) };
    let mut inputs = choice.inputs.clone();
    inputs[0] = Some(integers);
    let results = lowered(cx, choice, &inputs, operator.lower)?;
    Ok(results.first().copied())
}

/// The integers of a bias whose scale is the product of those of the operands.
fn bias(
    cx: &mut Context<'_>,
    op: &Producer,
    scales: &[ValueId],
) -> Result<Option<ValueId>, LowerError> {
    let Some(found) = dequantisation(cx, op, 2) else { return Ok(None) };
    let [Some(integers), Some(scale), ..] = found.inputs[..] else { return Ok(None) };
    let plain = ["alpha", "beta"].iter().all(|name| {
        let value = op.node.attribute(name).map(|attribute| &attribute.value);
        matches!(value, None | Some(AttributeValue::Float(1.0)))
    });
    if cx.dtype(integers) != DType::I32 || !plain {
        return Ok(None);
    }
    if let Some(zero) = found.inputs.get(2).copied().flatten() {
        let zero = cx.b.constant_of(zero)?;
        if zero.is_none_or(|zero| zero.to_f64().iter().any(|zero| *zero != 0.0)) {
            return Ok(None);
        }
    }
    let mut numbers = vec![];
    for value in [scale, scales[0], scales[1]] {
        let Some(constant) = cx.b.constant_of(value)? else { return Ok(None) };
        numbers.push(constant.to_f64());
    }
    let at = |of: usize, index: usize| {
        let list: &[f64] = &numbers[of];
        list.get(if list.len() == 1 { 0 } else { index }).copied()
    };
    let count = numbers.iter().map(Vec::len).max().unwrap_or(0);
    let equal = (0..count).all(|index| match [0, 1, 2].map(|of| at(of, index)) {
        [Some(own), Some(left), Some(right)] => (own - left * right).abs() <= 1e-6 * own.abs(),
        _ => false,
    });
    Ok(equal.then_some(integers))
}
