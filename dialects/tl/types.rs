//! Conversion between MLIR's tensor types and those of `irc_tl`.
use super::dims::{self, sizes_of};
use irc_mlir::{Context, Type, TypeLike, read, ty};
use irc_tl::{DType, Dim, TensorType};
use melior::ir::r#type::{IntegerType, RankedTensorType};
use std::{cell::RefCell, collections::BTreeMap};

/// The type of a ranked tensor.
///
/// # Errors
/// If it is not a ranked tensor of static shape with an element type that has a [`DType`].
pub fn tensor_type_of(ty: Type<'_>) -> Result<TensorType, String> {
    let expected = || format!("expected a ranked tensor of static shape, found {ty}");
    let tensor = read::ranked_tensor(ty).ok_or_else(expected)?;
    if tensor.shape.iter().any(|dim| *dim < 0) {
        return Err(expected());
    }
    Ok(TensorType::new(dtype_of(tensor.element)?, tensor.shape))
}

/// The element type of an MLIR type: `i32` is signed, `ui32` unsigned, `i1` a bool, `si64` a string.
///
/// # Errors
/// If there is no such element type.
pub fn dtype_of(element: Type<'_>) -> Result<DType, String> {
    if element.is_f32() {
        return Ok(DType::F32);
    }
    // The error for another type would print the type.
    let integer = element.is_integer().then(|| IntegerType::try_from(element).ok()).flatten();
    if integer.is_some_and(|integer| integer.is_signed()) {
        // Only strings have a signed type: numbers with a sign are signless.
        let is_string = element.to_string() == mlir_name(DType::String);
        return is_string.then_some(DType::String).ok_or_else(|| unexpected(element));
    }
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
        None if element.is_f64() => Some(DType::F64),
        None => small_float(&element.to_string()),
        _ => None,
    };
    found.ok_or_else(|| unexpected(element))
}

fn unexpected(element: Type<'_>) -> String {
    format!(
        "expected f16, bf16, f32, f64, a float of 8 bits or fewer, i1, i2 to i64, ui2 to ui64, or si64 \
         for strings, found {element}"
    )
}

/// The MLIR type of an element type; see [`dtype_of`].
pub fn dtype_to_mlir(context: &Context, dtype: DType) -> Type<'_> {
    let integer = |bits| IntegerType::new(context, bits).into();
    let unsigned = |bits| IntegerType::unsigned(context, bits).into();
    match dtype {
        DType::F64 => Type::float64(context),
        DType::F32 => Type::float32(context),
        DType::F16 => Type::float16(context),
        DType::BF16 => Type::bfloat16(context),
        DType::I64 => integer(64),
        DType::I32 => integer(32),
        DType::I16 => integer(16),
        DType::I8 => integer(8),
        DType::Bool => integer(1),
        DType::U64 => unsigned(64),
        DType::U32 => unsigned(32),
        DType::U16 => unsigned(16),
        DType::U8 => unsigned(8),
        _ => ty::parse(context, mlir_name(dtype)),
    }
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
        DType::String => "si64",
        DType::F8E4M3Fn => "f8E4M3FN",
        DType::F8E4M3Fnuz => "f8E4M3FNUZ",
        DType::F8E5M2 => "f8E5M2",
        DType::F8E5M2Fnuz => "f8E5M2FNUZ",
        DType::F8E8M0 => "f8E8M0FNU",
        DType::F4E2M1 => "f4E2M1FN",
    }
}

/// The float type of at most 8 bits with that name in MLIR's text.
fn small_float(name: &str) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| dtype.is_small() && mlir_name(*dtype) == name)
}

/// The MLIR type of a tensor type with static sizes.
pub fn tensor_type_to_mlir<'c>(context: &'c Context, tensor: &TensorType) -> Type<'c> {
    ty::tensor(&tensor.shape, dtype_to_mlir(context, tensor.dtype))
}

/// The type of a ranked tensor whose sizes may depend on symbols, given by an encoding `#tl.dims`.
///
/// # Errors
/// If it is not a ranked tensor with an element type that has a [`DType`], or its encoding does not
/// match its extents.
pub fn type_of(ty: Type<'_>) -> Result<irc_tl::Type, String> {
    let tensor =
        read::ranked_tensor(ty).ok_or_else(|| format!("expected a ranked tensor, found {ty}"))?;
    let Some(sizes) = tensor.encoding else { return tensor_type_of(ty).map(irc_tl::Type::from) };
    let (shape, dtype) = (tensor.shape, dtype_of(tensor.element)?);
    let sizes = sizes_of(&sizes).ok_or_else(|| format!("expected #tl.dims<...>, found {sizes}"))?;
    if sizes.len() != shape.len() {
        let (expected, found) = (shape.len(), sizes.len());
        return Err(format!("expected {expected} sizes in #tl.dims, found {found} in {ty}"));
    }
    let dims = sizes.iter().zip(shape).map(|(text, extent)| {
        let dim = dim_of(text)?;
        match dim.known() {
            Some(known) if known == *extent => Ok(dim),
            None if *extent < 0 => Ok(dim),
            _ => Err(format!("expected #tl.dims to agree with the shape, found '{text}' in {ty}")),
        }
    });
    Ok(irc_tl::Type::new(dtype, dims.collect::<Result<Vec<_>, String>>()?))
}

/// The MLIR type of a type whose sizes may depend on symbols; see [`type_of`].
pub fn type_to_mlir<'c>(context: &'c Context, tensor: &irc_tl::Type) -> Type<'c> {
    if let Some(known) = tensor.known() {
        return tensor_type_to_mlir(context, &known);
    }
    let extent = |dim: &Dim| dim.known().map_or(i64::MIN as u64, |known| known as u64);
    let shape: Vec<u64> = tensor.dims.iter().map(extent).collect();
    let sizes: Vec<String> = tensor.dims.iter().map(Dim::to_string).collect();
    let encoding = dims::encoding(context, &sizes);
    RankedTensorType::new(&shape, dtype_to_mlir(context, tensor.dtype), Some(encoding)).into()
}

thread_local! {
    /// Sizes that have been parsed, by their text: a program has few, and each is in many types.
    static PARSED: RefCell<BTreeMap<String, Dim>> = const { RefCell::new(BTreeMap::new()) };
}

/// Maximum number of sizes in [`PARSED`].
const MAX_PARSED: usize = 1 << 14;

fn dim_of(text: &str) -> Result<Dim, String> {
    PARSED.with_borrow_mut(|parsed| {
        if let Some(dim) = parsed.get(text) {
            return Ok(dim.clone());
        }
        let dim: Dim = text.parse().map_err(|error| format!("size '{text}': {error}"))?;
        if parsed.len() == MAX_PARSED {
            parsed.clear();
        }
        parsed.insert(text.to_owned(), dim.clone());
        Ok(dim)
    })
}
