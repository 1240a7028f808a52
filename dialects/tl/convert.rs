//! Between `tl` ops in MLIR and [`irc_tl::Op`].
use super::types::{tensor_type_of, type_of, type_to_mlir};
use irc_mlir::{
    Attribute, Context, Location, OpSpec, Operation, OperationLike, OperationRef, Type, Value,
    ValueLike, attr, read, string_value, ty,
};
use irc_tl::{
    Algorithm, Binary, Combine, Comparison, Compute, Conv, Dim, Op, Reduce, Reduction, Rounding,
    Scalar, TensorType, Unary,
};

/// The op that a `tl` operation is. Its operands are in the order of [`Op`]'s own. Operations of
/// several results are an [`Algorithm`]: see [`algorithm_of`].
///
/// # Errors
/// When it is not a compute op of `tl`, or an attribute is missing or of the wrong kind; when sizes
/// that are part of the op depend on symbols, but in `tl.compute`.
pub fn op_of(op: OperationRef<'_, '_>) -> Result<Op, String> {
    let name = read::op_name(&op);
    let own = name.strip_prefix("tl.").unwrap_or(&name);
    if let Some(function) = function_of(own) {
        return Ok(function);
    }
    if let Some(kind) = Reduction::ALL.into_iter().find(|kind| kind.name() == own) {
        let (axes, keep_dims) = (unsigned(op, "axes")?, flag(op, "keep_dims")?);
        return Ok(Op::Reduce { kind, axes, keep_dims });
    }
    Ok(match own {
        "cast" => Op::Cast { to: result_type(op)?.dtype, rounding: rounding(op)? },
        "fill" => fill(op)?,
        "broadcast" => Op::Broadcast { shape: result_type(op)?.shape },
        "select" => Op::Select,
        "conv" => Op::Conv(conv(op)?),
        "compute" => Op::compute(compute(op)?),
        "matmul" => Op::Matmul {
            transpose_lhs: flag_or_false(op, "transpose_lhs")?,
            transpose_rhs: flag_or_false(op, "transpose_rhs")?,
        },
        "sequential_sum" => Op::SequentialSum { axis: axis(op)? },
        "stepped_matmul" => Op::SteppedMatmul,
        "transpose" => Op::Transpose { permutation: unsigned(op, "permutation")? },
        "reshape" => Op::Reshape { shape: result_type(op)?.shape },
        "slice" => Op::Slice { offsets: i64s(op, "offsets")?, sizes: result_type(op)?.shape },
        "update" => Op::Update { offsets: i64s(op, "offsets")? },
        "gather" => Op::Gather,
        "rope" => Op::Rope,
        "bitcast" => {
            let TensorType { dtype: to, shape } = result_type(op)?;
            Op::Bitcast { to, shape }
        }
        _ => return Err(format!("expected a compute op of tl, found '{name}'")),
    })
}

/// The elementwise op of that name.
fn function_of(name: &str) -> Option<Op> {
    let unary = Unary::ALL.into_iter().find(|function| function.name() == name).map(Op::Unary);
    let binary = || Binary::ALL.into_iter().find(|function| function.name() == name);
    let comparison = || Comparison::ALL.into_iter().find(|function| function.name() == name);
    unary.or_else(|| binary().map(Op::Binary)).or_else(|| comparison().map(Op::Compare))
}

/// The algorithm that a `tl` operation of several results is; `None` for every other operation.
///
/// # Errors
/// When an attribute is missing or of the wrong kind.
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
        "tl.non_max_suppression" => {
            Some(Algorithm::NonMaxSuppression { by_center: flag(op, "by_center")? })
        }
        _ => None,
    })
}

/// The types of an op's operands, of sizes that are known.
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

/// Builds the `tl` operation of an algorithm, detached; the results' types are inferred.
///
/// # Errors
/// When the operands are not those the algorithm takes.
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
        Algorithm::NonMaxSuppression { by_center } => {
            spec.attr("by_center", attr::bool(context, *by_center))
        }
        Algorithm::TopK { axis, largest, .. } => spec
            .attr("axis", attr::i64(context, *axis as i64))
            .attr("largest", attr::bool(context, *largest)),
    }
    .build())
}

/// Builds the `tl` operation of an op, detached; the result's type is inferred.
///
/// # Errors
/// When the operands are not those the op takes.
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
    let attributes = attributes(context, op);
    Ok(attributes.into_iter().fold(spec, |spec, (name, value)| spec.attr(name, value)).build())
}

fn attributes<'c>(context: &'c Context, op: &Op) -> Vec<(&'static str, Attribute<'c>)> {
    let sizes = |values: &[usize]| {
        let values: Vec<_> = values.iter().map(|value| *value as i64).collect();
        attr::i64s(context, &values)
    };
    match op {
        Op::Cast { rounding, .. } => {
            vec![("rounding", attr::string(context, rounding_name(*rounding)))]
        }
        Op::Fill { value, .. } => {
            let double = ty::parse(context, "f64");
            vec![("value", attr::float(context, double, f64::from_bits(*value)))]
        }
        Op::Reduce { axes, keep_dims, .. } => {
            vec![("axes", sizes(axes)), ("keep_dims", attr::bool(context, *keep_dims))]
        }
        // A flag that has its default stays unwritten, so that equal ops print equally.
        Op::Matmul { transpose_lhs, transpose_rhs } => {
            let flags = [("transpose_lhs", *transpose_lhs), ("transpose_rhs", *transpose_rhs)];
            let set = flags.into_iter().filter(|(_, set)| *set);
            set.map(|(name, _)| (name, attr::bool(context, true))).collect()
        }
        Op::Conv(conv) => {
            let pads: Vec<_> = conv.pads.iter().flatten().copied().collect();
            vec![
                ("strides", attr::i64s(context, &conv.strides)),
                ("dilations", attr::i64s(context, &conv.dilations)),
                ("pads", attr::i64s(context, &pads)),
                ("groups", attr::i64(context, conv.groups)),
            ]
        }
        Op::Compute(compute) => {
            let mut attributes = vec![("body", attr::string(context, &compute.body.to_string()))];
            if let Some(Reduce { combine, dims }) = &compute.reduction {
                let sizes = dims.iter().map(|dim| attr::string(context, &dim.to_string()));
                let sizes: Vec<_> = sizes.collect();
                attributes.push(("combine", attr::string(context, combine.name())));
                attributes.push(("over", attr::array(context, &sizes)));
            }
            attributes
        }
        Op::SequentialSum { axis } => vec![("axis", attr::i64(context, *axis as i64))],
        Op::Transpose { permutation } => vec![("permutation", sizes(permutation))],
        Op::Slice { offsets, .. } | Op::Update { offsets } => {
            vec![("offsets", attr::i64s(context, offsets))]
        }
        _ => vec![],
    }
}

const fn rounding_name(rounding: Rounding) -> &'static str {
    match rounding {
        Rounding::TowardZero => "toward_zero",
        Rounding::NearestEven => "nearest_even",
    }
}

fn rounding(op: OperationRef<'_, '_>) -> Result<Rounding, String> {
    match read::string(&op, "rounding").as_deref() {
        Some("toward_zero") => Ok(Rounding::TowardZero),
        Some("nearest_even") => Ok(Rounding::NearestEven),
        _ => Err(unexpected(op, "rounding", "\"toward_zero\" or \"nearest_even\"")),
    }
}

fn conv(op: OperationRef<'_, '_>) -> Result<Conv, String> {
    let pads = i64s(op, "pads")?;
    let (pairs, []) = pads.as_chunks::<2>() else {
        return Err(unexpected(op, "pads", "two numbers per spatial dimension"));
    };
    Ok(Conv {
        strides: i64s(op, "strides")?,
        dilations: i64s(op, "dilations")?,
        pads: pairs.to_vec(),
        groups: read::integer(&op, "groups")
            .ok_or_else(|| unexpected(op, "groups", "an integer"))?,
    })
}

fn compute(op: OperationRef<'_, '_>) -> Result<Compute, String> {
    let body = read::string(&op, "body").ok_or_else(|| unexpected(op, "body", "a string"))?;
    let body: Scalar = body.parse().map_err(|error| format!("body: {error}"))?;
    let dims = type_of(result_of(op)?)?.dims;
    let reduction = match (op.has_attribute("combine"), op.has_attribute("over")) {
        (false, false) => None,
        (true, true) => Some(reduction(op)?),
        _ => return Err("expected 'combine' and 'over' together, found one of them".into()),
    };
    Ok(Compute { dims, reduction, body })
}

fn reduction(op: OperationRef<'_, '_>) -> Result<Reduce, String> {
    let combine = read::string(&op, "combine").and_then(|name| Combine::named(&name));
    let combine = combine
        .ok_or_else(|| unexpected(op, "combine", "\"sum\", \"product\", \"max\" or \"min\""))?;
    let sizes = read::elements(&op, "over").unwrap_or_default();
    let dims = sizes.into_iter().map(|size| {
        let text =
            string_value(size).ok_or_else(|| unexpected(op, "over", "an array of strings"))?;
        text.parse::<Dim>().map_err(|error| format!("over: {error}"))
    });
    Ok(Reduce { combine, dims: dims.collect::<Result<_, _>>()? })
}

fn fill(op: OperationRef<'_, '_>) -> Result<Op, String> {
    let value = read::float(&op, "value").ok_or_else(|| unexpected(op, "value", "a float"))?;
    let TensorType { dtype, shape } = result_type(op)?;
    Ok(Op::fill(value, shape, dtype))
}

fn result_type(op: OperationRef<'_, '_>) -> Result<TensorType, String> {
    tensor_type_of(result_of(op)?)
}

fn result_of<'c>(op: OperationRef<'c, '_>) -> Result<Type<'c>, String> {
    op.result(0).map(|result| result.r#type()).map_err(|error| error.to_string())
}

fn flag(op: OperationRef<'_, '_>, name: &str) -> Result<bool, String> {
    read::boolean(&op, name).ok_or_else(|| unexpected(op, name, "true or false"))
}

fn flag_or_false(op: OperationRef<'_, '_>, name: &str) -> Result<bool, String> {
    if op.has_attribute(name) { flag(op, name) } else { Ok(false) }
}

fn axis(op: OperationRef<'_, '_>) -> Result<usize, String> {
    let axis = read::integer(&op, "axis").and_then(|axis| usize::try_from(axis).ok());
    axis.ok_or_else(|| unexpected(op, "axis", "an integer from 0"))
}

fn i64s(op: OperationRef<'_, '_>, name: &str) -> Result<Vec<i64>, String> {
    read::integers(&op, name).ok_or_else(|| unexpected(op, name, "array<i64: ...>"))
}

fn unsigned(op: OperationRef<'_, '_>, name: &str) -> Result<Vec<usize>, String> {
    let convert =
        |value: i64| usize::try_from(value).map_err(|_| unexpected(op, name, "no negative number"));
    i64s(op, name)?.into_iter().map(convert).collect()
}

fn unexpected(op: OperationRef<'_, '_>, name: &str, expected: &str) -> String {
    match read::attribute(&op, name) {
        Some(found) => format!("{name}: expected {expected}, found {found}"),
        None => format!("{name}: expected {expected}, found nothing"),
    }
}
