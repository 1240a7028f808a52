//! Conversion between `tl` ops in MLIR and [`irc_tl::Op`], driven by the attributes in each op's row.
use super::types::{tensor_type_of, type_of, type_to_mlir};
use irc_mlir::{
    Attribute, Context, Location, OpSpec, Operation, OperationLike, OperationRef, Type, Value,
    ValueLike, attr, read, string_value, ty,
};
use irc_tl::{
    Algorithm, AttributeKind, Attributes, Combine, Comparison, Family, Op, Presence, Row,
    TensorType,
};

/// The op that a `tl` operation represents. Its operands are in the order of [`Op`]. An operation with
/// several results is an [`Algorithm`]: see [`algorithm_of`].
///
/// # Errors
/// If it is not a compute op of `tl`, if an attribute is missing or of the wrong kind, or if sizes
/// that are part of the op depend on symbols, except in `tl.compute`.
pub fn op_of(op: OperationRef<'_, '_>) -> Result<Op, String> {
    let name = read::op_name(&op);
    let row = name.strip_prefix("tl.").and_then(Row::named);
    let row = row.ok_or_else(|| format!("expected a compute op of tl, found '{name}'"))?;
    let mut values = vec![];
    for attribute in row.attributes {
        if op.has_attribute(attribute.name) || attribute.presence == Presence::Required {
            values.push((attribute.name, value_of(op, attribute)?));
        }
    }
    row.read(&Attributes::new(values, &|| type_of(result_of(op)?)))
}

/// Whether an op only reinterprets the bytes of its operand, according to its row.
pub fn is_view(op: &OperationRef<'_, '_>) -> bool {
    let name = read::op_name(op);
    let row = name.strip_prefix("tl.").and_then(Row::named);
    row.is_some_and(|row| row.family == Family::View)
}

/// The value of an attribute, according to its kind.
fn value_of(
    op: OperationRef<'_, '_>,
    attribute: &irc_tl::Attribute,
) -> Result<irc_tl::Value, String> {
    use irc_tl::Value;
    let name = attribute.name;
    let value = match attribute.kind {
        AttributeKind::I64s | AttributeKind::Indices => read::integers(&op, name).map(Value::I64s),
        AttributeKind::I64 | AttributeKind::Index => read::integer(&op, name).map(Value::I64),
        AttributeKind::Bool => read::boolean(&op, name).map(Value::Bool),
        AttributeKind::F64 => read::float(&op, name).map(Value::F64),
        AttributeKind::Text | AttributeKind::Word(_) => read::string(&op, name).map(Value::Text),
        AttributeKind::Texts => {
            let texts = |texts: Vec<Attribute>| texts.into_iter().map(string_value).collect();
            read::elements(&op, name).and_then(texts).map(Value::Texts)
        }
    };
    match (attribute.kind.mismatch(value.as_ref()), value) {
        (None, Some(value)) => Ok(value),
        (expected, _) => Err(unexpected(op, name, &expected.unwrap_or_default())),
    }
}

fn attribute_to_mlir<'c>(context: &'c Context, value: &irc_tl::Value) -> Attribute<'c> {
    use irc_tl::Value;
    match value {
        Value::I64s(values) => attr::i64s(context, values),
        Value::I64(value) => attr::i64(context, *value),
        Value::Bool(value) => attr::bool(context, *value),
        Value::F64(value) => attr::float(context, ty::parse(context, "f64"), *value),
        Value::Text(text) => attr::string(context, text),
        Value::Texts(texts) => {
            let texts: Vec<_> = texts.iter().map(|text| attr::string(context, text)).collect();
            attr::array(context, &texts)
        }
    }
}

/// The algorithm that a `tl` operation with several results represents; `None` for other operations.
///
/// # Errors
/// If an attribute is missing or of the wrong kind.
pub fn algorithm_of(op: OperationRef<'_, '_>) -> Result<Option<Algorithm>, String> {
    Ok(match read::op_name(&op).as_str() {
        "tl.non_zero" => Some(Algorithm::NonZero),
        "tl.top_k" => {
            let axis = axis(op)?;
            let values = type_of(result_of(op)?)?;
            let k = values.dims.get(axis).cloned();
            let k = k.ok_or_else(|| unexpected(op, "axis", "a dimension of the results"))?;
            Some(Algorithm::TopK { axis, k, largest: flag(op, "largest")? })
        }
        "tl.scan" => Some(Algorithm::Scan {
            axis: axis(op)?,
            combine: combine(op, "sum, product, max or min")?,
            reverse: flag(op, "reverse")?,
            exclusive: flag(op, "exclusive")?,
        }),
        "tl.non_max_suppression" => {
            Some(Algorithm::NonMaxSuppression { by_center: flag(op, "by_center")? })
        }
        "tl.tree_ensemble" => {
            let scores = type_of(result_of(op)?)?;
            let [_, targets] = &scores.dims[..] else {
                return Err(format!("expected scores of rank 2, found {scores}"));
            };
            let comparison = read::string(&op, "comparison");
            let comparison = comparison.and_then(|name| Comparison::named(&name));
            Some(Algorithm::TreeEnsemble {
                targets: targets.clone(),
                combine: combine(op, "sum, min or max")?,
                comparison: comparison.ok_or_else(|| unexpected(op, "comparison", "gt or le"))?,
            })
        }
        _ => None,
    })
}

/// The types of an op's operands, with static sizes.
///
/// # Errors
/// As [`tensor_type_of`].
pub fn operand_types(op: OperationRef<'_, '_>) -> Result<Vec<TensorType>, String> {
    op.operands().map(|operand| tensor_type_of(operand.r#type())).collect()
}

/// The types of an op's operands, whose sizes may depend on symbols.
///
/// # Errors
/// As [`type_of`].
pub fn symbolic_operand_types(op: OperationRef<'_, '_>) -> Result<Vec<irc_tl::Type>, String> {
    op.operands().map(|operand| type_of(operand.r#type())).collect()
}

/// Builds the detached `tl` operation of an algorithm; the results' types are inferred.
///
/// # Errors
/// If the algorithm does not accept the operands.
pub fn build_algorithm<'c>(
    context: &'c Context,
    algorithm: &Algorithm,
    operands: &[Value<'c, '_>],
    location: Location<'c>,
) -> Result<Operation<'c>, String> {
    let types = operands.iter().map(|operand| type_of(operand.r#type()));
    let types = types.collect::<Result<Vec<_>, _>>()?;
    let results = algorithm.infer(&types).map_err(|error| error.to_string())?;
    let results: Vec<_> = results.iter().map(|result| type_to_mlir(context, result)).collect();
    let spec = OpSpec::new(context, &format!("tl.{}", algorithm.name()), location)
        .operands(operands)
        .results(&results);
    Ok(match algorithm {
        Algorithm::NonZero => spec,
        Algorithm::Scan { axis, combine, reverse, exclusive } => spec
            .attr("axis", attr::i64(context, *axis as i64))
            .attr("combine", attr::string(context, combine.name()))
            .attr("reverse", attr::bool(context, *reverse))
            .attr("exclusive", attr::bool(context, *exclusive)),
        Algorithm::NonMaxSuppression { by_center } => {
            spec.attr("by_center", attr::bool(context, *by_center))
        }
        Algorithm::TreeEnsemble { combine, comparison, .. } => spec
            .attr("combine", attr::string(context, combine.name()))
            .attr("comparison", attr::string(context, comparison.name())),
        Algorithm::TopK { axis, largest, .. } => spec
            .attr("axis", attr::i64(context, *axis as i64))
            .attr("largest", attr::bool(context, *largest)),
    }
    .build())
}

/// Builds the detached `tl` operation of an op; the result's type is inferred.
///
/// # Errors
/// If the op does not accept the operands.
pub fn build<'c>(
    context: &'c Context,
    op: &Op,
    operands: &[Value<'c, '_>],
    location: Location<'c>,
) -> Result<Operation<'c>, String> {
    let types = operands.iter().map(|operand| type_of(operand.r#type()));
    let types = types.collect::<Result<Vec<_>, _>>()?;
    let result = op.infer_symbolic(&types).map_err(|error| error.to_string())?;
    let spec = OpSpec::new(context, &format!("tl.{}", op.name()), location)
        .operands(operands)
        .results(&[type_to_mlir(context, &result)]);
    let attributes = op.attributes().into_iter();
    let attribute = |spec: OpSpec<'c>, (name, value): (&str, irc_tl::Value)| {
        spec.attr(name, attribute_to_mlir(context, &value))
    };
    Ok(attributes.fold(spec, attribute).build())
}

fn result_of<'c>(op: OperationRef<'c, '_>) -> Result<Type<'c>, String> {
    op.result(0).map(|result| result.r#type()).map_err(|error| error.to_string())
}

fn combine(op: OperationRef<'_, '_>, expected: &str) -> Result<Combine, String> {
    let combine = read::string(&op, "combine").and_then(|name| Combine::named(&name));
    combine.ok_or_else(|| unexpected(op, "combine", expected))
}

fn flag(op: OperationRef<'_, '_>, name: &str) -> Result<bool, String> {
    read::boolean(&op, name).ok_or_else(|| unexpected(op, name, "true or false"))
}

fn axis(op: OperationRef<'_, '_>) -> Result<usize, String> {
    let axis = read::integer(&op, "axis").and_then(|axis| usize::try_from(axis).ok());
    axis.ok_or_else(|| unexpected(op, "axis", "an integer from 0"))
}

fn unexpected(op: OperationRef<'_, '_>, name: &str, expected: &str) -> String {
    match read::attribute(&op, name) {
        Some(found) => format!("{name}: expected {expected}, found {found}"),
        None => format!("{name}: expected {expected}, found nothing"),
    }
}
