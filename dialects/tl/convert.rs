//! Between `tl` ops in MLIR and [`irc_tl::Op`].
use irc_mlir::{
    Attribute, Context, Location, OpSpec, Operation, OperationLike, OperationRef, Type, TypeLike,
    Value, ValueLike, attr, read, ty,
};
use irc_tl::{Binary, Comparison, Conv, DType, Op, Reduction, Rounding, TensorType, Unary};
use melior::ir::r#type::IntegerType;

/// The type of a ranked tensor.
///
/// # Errors
/// When it is not a ranked tensor of static shape over an element type that has a [`DType`].
pub fn tensor_type_of(ty: Type<'_>) -> Result<TensorType, String> {
    let expected = || format!("expected a ranked tensor of static shape, found {ty}");
    let (shape, element) = read::tensor_of(ty).ok_or_else(expected)?;
    if shape.iter().any(|dim| *dim < 0) {
        return Err(expected());
    }
    Ok(TensorType::new(dtype_of(element)?, shape))
}

/// The element type that an MLIR type stands for: `i32` is signed, `ui32` unsigned, `i1` a bool.
///
/// # Errors
/// When there is none.
pub fn dtype_of(element: Type<'_>) -> Result<DType, String> {
    let integer = IntegerType::try_from(element).ok();
    let found = match integer.map(|integer| (integer.is_unsigned(), integer.width())) {
        Some((false, 1)) => Some(DType::Bool),
        Some((false, 2)) => Some(DType::I2),
        Some((false, 4)) => Some(DType::I4),
        Some((false, 8)) => Some(DType::I8),
        Some((false, 16)) => Some(DType::I16),
        Some((false, 32)) => Some(DType::I32),
        Some((false, 64)) => Some(DType::I64),
        Some((true, 2)) => Some(DType::U2),
        Some((true, 4)) => Some(DType::U4),
        Some((true, 8)) => Some(DType::U8),
        Some((true, 16)) => Some(DType::U16),
        Some((true, 32)) => Some(DType::U32),
        Some((true, 64)) => Some(DType::U64),
        None if element.is_f16() => Some(DType::F16),
        None if element.is_bf16() => Some(DType::BF16),
        None if element.is_f32() => Some(DType::F32),
        None if element.is_f64() => Some(DType::F64),
        None => small_float(&element.to_string()),
        _ => None,
    };
    found.ok_or_else(|| {
        format!(
            "expected f16, bf16, f32, f64, a float of 8 bits or fewer, i1, i2 to i64 or ui2 to ui64, \
             found {element}"
        )
    })
}

/// The MLIR type of an element type; see [`dtype_of`].
pub fn dtype_to_mlir(context: &Context, dtype: DType) -> Type<'_> {
    ty::parse(context, mlir_name(dtype))
}

/// The name of an element type in MLIR's text.
const fn mlir_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 | DType::F32 | DType::F16 | DType::BF16 => dtype.name(),
        DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::I4 | DType::I2 => dtype.name(),
        DType::U64 => "ui64",
        DType::U32 => "ui32",
        DType::U16 => "ui16",
        DType::U8 => "ui8",
        DType::U4 => "ui4",
        DType::U2 => "ui2",
        DType::Bool => "i1",
        DType::F8E4M3Fn => "f8E4M3FN",
        DType::F8E4M3Fnuz => "f8E4M3FNUZ",
        DType::F8E5M2 => "f8E5M2",
        DType::F8E5M2Fnuz => "f8E5M2FNUZ",
        DType::F8E8M0 => "f8E8M0FNU",
        DType::F4E2M1 => "f4E2M1FN",
    }
}

/// The float of 8 bits or fewer of that name in MLIR's text.
fn small_float(name: &str) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| dtype.is_small() && mlir_name(*dtype) == name)
}

/// The MLIR type of a tensor type.
pub fn type_to_mlir<'c>(context: &'c Context, tensor: &TensorType) -> Type<'c> {
    ty::tensor(&tensor.shape, dtype_to_mlir(context, tensor.dtype))
}

/// The op that a `tl` operation is. Its operands are in the order of [`Op`]'s own.
///
/// # Errors
/// When it is not a compute op of `tl`, or an attribute is missing or of the wrong kind.
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
        "compute" => return Err("expected its body to be read by `compute_of`".into()),
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

/// The types of an op's operands.
///
/// # Errors
/// As [`tensor_type_of`].
pub fn operand_types(op: OperationRef<'_, '_>) -> Result<Vec<TensorType>, String> {
    op.operands().map(|operand| tensor_type_of(operand.r#type())).collect()
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
    let types = operands.iter().map(|operand| tensor_type_of(operand.r#type()));
    let types = types.collect::<Result<Vec<_>, _>>()?;
    let result = op.infer(&types).map_err(|error| error.to_string())?;
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

fn fill(op: OperationRef<'_, '_>) -> Result<Op, String> {
    let value = read::float(&op, "value").ok_or_else(|| unexpected(op, "value", "a float"))?;
    let TensorType { dtype, shape } = result_type(op)?;
    Ok(Op::fill(value, shape, dtype))
}

fn result_type(op: OperationRef<'_, '_>) -> Result<TensorType, String> {
    let result = op.result(0).map_err(|error| error.to_string())?;
    tensor_type_of(result.r#type())
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
