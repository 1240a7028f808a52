//! Weights quantised in blocks, packed into bytes.

use super::operator;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::indexing::{from_end, inside};
use crate::ops::pieces::{loops, size, wide, within};
use crate::ops::product::block_scaled::{BlockScaled, block_scaled_product, zero_points};
use crate::ops::product::matmul::product;
use irc_tl::{Binary, Builder, Built, Compute, DType, Dim, Op, Relation, Scalar, Tensor, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("GatherBlockQuantized", gather),
    operator("MatMulBnb4", matmul_by_table),
    operator("MatMulNBits", matmul),
];

/// Integers of a few bits, packed along the last dimension of bytes, the first in the lowest bits.
#[derive(Clone, Copy)]
struct Packed {
    bits: i64,
}

impl Packed {
    /// The number of bytes for some elements.
    fn bytes(self, elements: &Dim) -> Dim {
        (elements.clone() * self.bits.into()).ceil_div(&8.into())
    }

    /// An element of an operand, as `i32`: its index along the last dimension, which has `bytes`.
    fn load(self, operand: usize, mut at: Vec<Scalar>, index: Scalar, bytes: &Dim) -> Scalar {
        let integer = |value: i64| Scalar::Int(value, DType::I32);
        if self.bits == 8 {
            at.push(index);
            return Scalar::load(operand, at).cast(DType::I32);
        }
        let bit = index * Scalar::index(self.bits);
        let place = bit.clone() / Scalar::index(8);
        let shift = bit.binary(Binary::Rem, Scalar::index(8)).cast(DType::I32);
        let byte = |place: Scalar| {
            let mut at = at.clone();
            at.push(place);
            Scalar::load(operand, at).cast(DType::I32)
        };
        let mut word = byte(place.clone());
        if 8 % self.bits != 0 {
            let next = (place + Scalar::index(1)).min(size(bytes) - Scalar::index(1));
            word = word + byte(next) * integer(256);
        }
        let mask = integer((1 << self.bits) - 1);
        word.binary(Binary::Shr, shift).binary(Binary::And, mask)
    }
}

/// The attribute `block_size`, a power of two.
fn block_size(cx: &Context<'_>, default: Option<i64>) -> Result<i64, LowerError> {
    let block = cx.int("block_size")?.or(default).ok_or_else(|| cx.missing("block_size"))?;
    if block < 16 || block & (block - 1) != 0 || block > i64::from(i32::MAX) {
        let message = format!("expected block_size to be a power of two from 16 on, found {block}");
        return Err(LowerError::invalid(message));
    }
    Ok(block)
}

/// The attribute `bits`.
fn packed(cx: &Context<'_>) -> Result<Packed, LowerError> {
    let bits = cx.int_or("bits", 4)?;
    if !(2..=8).contains(&bits) {
        return Err(LowerError::invalid(format!("expected bits from 2 to 8, found {bits}")));
    }
    Ok(Packed { bits })
}

/// An attribute with a size of at least 1.
fn extent(cx: &Context<'_>, name: &str) -> Result<i64, LowerError> {
    let found = cx.int(name)?.ok_or_else(|| cx.missing(name))?;
    if !(1..=i64::from(i32::MAX)).contains(&found) {
        return Err(LowerError::invalid(format!("expected {name} from 1 on, found {found}")));
    }
    Ok(found)
}

/// Reshapes a value whose elements may be stated with fewer dimensions.
fn shaped(cx: &mut Context<'_>, input: usize, dims: &[Dim]) -> Result<ValueId, LowerError> {
    let value = cx.input(input)?;
    let (found, expected) = (cx.b.ty(value).elements(), Dim::product(dims));
    let message = format!("expected {expected} elements of input {input}");
    cx.b.require(&found, Relation::Equal, &expected, &message)?;
    Ok(cx.b.reshape(value, dims)?)
}

/// A product with a transposed matrix whose rows are in blocks, each with a scale and a zero point.
fn matmul(cx: &mut Context<'_>) -> Lowered {
    if let found @ 1.. = cx.int_or("weight_prepacked", 0)? {
        let message = format!("weights packed for one device, {found}, are not supported");
        return Err(LowerError::unsupported(message));
    }
    let x = cx.input(0)?;
    let b = cx.input(1)?;
    let columns = Dim::Known(extent(cx, "N")?);
    if let Some(weights) = block_scaled(cx)? {
        let result = block_scaled_product(cx.b, x, &weights)?;
        return with_bias(cx, x, result, cx.optional(5));
    }
    let weights = if cx.b.ty(b).elements().is(0) {
        // An omitted projection.
        let depth = Dim::Known(extent(cx, "K")?);
        cx.b.fill(0.0, &[columns, depth], wide(cx.dtype(x)))?
    } else {
        weights(cx, wide(cx.dtype(x)))?
    };
    with_weights(cx, x, weights, true, cx.optional(5))
}

/// The weights, if they are integers of 2, 4 or 8 bits in blocks of consecutive ones, whose zero points are constant.
fn block_scaled(cx: &mut Context<'_>) -> Result<Option<BlockScaled>, LowerError> {
    let (packed, block) = (packed(cx)?, block_size(cx, None)?);
    let [rows, depth] = [extent(cx, "N")?, extent(cx, "K")?];
    let (Ok(bits), Ok(size)) = (usize::try_from(packed.bits), usize::try_from(block)) else {
        return Ok(None);
    };
    let x = cx.input(0)?;
    let is_empty = |value: ValueId| cx.b.ty(value).elements().is(0);
    let is_grouped = cx.optional(4).is_some_and(|index| !is_empty(index));
    let is_narrow = [2, 4, 8].contains(&bits) && wide(cx.dtype(x)) == DType::F32;
    let bytes = cx.input(1)?;
    if is_grouped || !is_narrow || is_empty(bytes) || cx.dtype(bytes) != DType::U8 {
        return Ok(None);
    }
    let depth = Dim::Known(depth);
    let blocks = depth.ceil_div(&block.into());
    let bytes = packed.bytes(&block.into());
    let codes = shaped(cx, 1, &[Dim::Known(rows), blocks.clone() * bytes])?;
    let Some(known) = cx.b.ty(codes).known() else { return Ok(None) };
    let codes = cx.b.op(Op::Bitcast { to: DType::I8, shape: known.shape }, &[codes])?;
    let scales = shaped(cx, 2, &[Dim::Known(rows), blocks.clone()])?;
    let message = "expected as many columns as K";
    let own = cx.b.dims(x).last().cloned().unwrap_or(1.into());
    cx.b.require(&own, Relation::Equal, &depth, message)?;
    let scales = match cx.b.constant_of(scales)? {
        Some(constant) if constant.dtype() != DType::F32 => {
            let dims = constant.shape().to_vec();
            let scales = Tensor::from_values(dims, &constant.to_f32());
            cx.b.tensor(&scales.map_err(|error| LowerError::invalid(error.to_string()))?)
        }
        _ => cx.b.cast(scales, DType::F32)?,
    };
    let Some(count) = blocks.known() else { return Ok(None) };
    let zeros = match cx.optional(3) {
        None => None,
        Some(zeros) => {
            let is_packed = cx.dtype(zeros) == DType::U8;
            let row = if is_packed { packed.bytes(&blocks) } else { blocks };
            let zeros = shaped(cx, 3, &[Dim::Known(rows), row.clone()])?;
            let (Some(zeros), Some(row)) = (cx.b.constant_of(zeros)?, row.known()) else {
                return Ok(None);
            };
            let values = match is_packed {
                true => unpacked(zeros.bytes(), (row as usize, count as usize), bits),
                false => zeros.to_f32(),
            };
            zero_points(cx.b, bits, &values, [rows, count])?
        }
    };
    // As ONNX Runtime does, which computes with floats for 2 bits.
    let quantises_left = cx.int_or("accuracy_level", 0)? == 4 && bits > 2;
    Ok(Some(BlockScaled { bits, block: size, codes, scales, zeros, quantises_left }))
}

/// So many integers of each row of bytes.
fn unpacked(bytes: &[u8], (row, count): (usize, usize), bits: usize) -> Vec<f32> {
    let integer = |row: &[u8], index: usize| {
        let bit = index * bits;
        f32::from((row[bit / 8] >> (bit % 8)) & (u8::MAX >> (8 - bits)))
    };
    bytes.chunks(row).flat_map(|row| (0..count).map(|index| integer(row, index))).collect()
}

/// The weights `[N, K]`.
fn weights(cx: &mut Context<'_>, dtype: DType) -> Result<ValueId, LowerError> {
    let (packed, block) = (packed(cx)?, block_size(cx, None)?);
    let [rows, depth] = [Dim::Known(extent(cx, "N")?), Dim::Known(extent(cx, "K")?)];
    let blocks = depth.ceil_div(&block.into());
    let bytes = packed.bytes(&block.into());
    let quantised = shaped(cx, 1, &[rows.clone(), blocks.clone(), bytes.clone()])?;
    let scales = shaped(cx, 2, &[rows.clone(), blocks.clone()])?;
    let mut operands = vec![quantised, scales];
    let (row, column) = (|| Scalar::Loop(0), || Scalar::Loop(1));
    let by_position = column() / Scalar::index(block);
    let within = column().binary(Binary::Rem, Scalar::index(block));
    let group = match cx.optional(4).filter(|index| !cx.b.ty(*index).elements().is(0)) {
        Some(index) => {
            let count = cx.b.ty(index).elements();
            let message = "expected a group for each row of the weights";
            cx.b.require(&depth, Relation::AtMost, &count, message)?;
            operands.push(cx.b.reshape(index, &[count])?);
            inside(Scalar::load(2, [column()]).cast(DType::I64), &blocks)
        }
        None => by_position.clone(),
    };
    let number = packed.load(0, vec![row(), by_position], within, &bytes).cast(dtype);
    let zero = match cx.optional(3) {
        None => Scalar::float((1i64 << (packed.bits - 1)) as f64, dtype),
        Some(zeros) if cx.dtype(zeros) == DType::U8 => {
            let bytes = packed.bytes(&blocks);
            operands.push(shaped(cx, 3, &[rows.clone(), bytes.clone()])?);
            packed.load(operands.len() - 1, vec![row()], group.clone(), &bytes).cast(dtype)
        }
        Some(_) => {
            operands.push(shaped(cx, 3, &[rows.clone(), blocks])?);
            Scalar::load(operands.len() - 1, [row(), group.clone()]).cast(dtype)
        }
    };
    let scale = Scalar::load(1, [row(), group]).cast(dtype);
    let body = (number - zero) * scale;
    Ok(cx.b.compute(Compute::map([rows, depth], body), &operands)?)
}

/// The product with weights that may be transposed, and the sum with a bias.
fn with_weights(
    cx: &mut Context<'_>,
    x: ValueId,
    weights: ValueId,
    transposed: bool,
    bias: Option<ValueId>,
) -> Lowered {
    let original = x;
    let x = cx.b.cast(x, cx.dtype(weights))?;
    let weights = if transposed { cx.b.transpose(weights, &[1, 0])? } else { weights };
    let result = product(cx.b, x, weights)?;
    with_bias(cx, original, result, bias)
}

/// The sum with a bias, in the type of the left operand of a product.
fn with_bias(
    cx: &mut Context<'_>,
    x: ValueId,
    mut result: ValueId,
    bias: Option<ValueId>,
) -> Lowered {
    let dtype = cx.dtype(x);
    if let Some(bias) = bias {
        let bias = cx.b.cast(bias, cx.dtype(result))?;
        result = cx.b.binary(Binary::Add, result, bias)?;
    }
    one(cx.b.cast(result, dtype))
}

/// The values of the 16 codes of "FP4": of a sign, an exponent of two bits and one bit of precision.
const FP4: [f32; 8] =
    [0.0, 0.005_208_333_4, 0.666_666_7, 1.0, 0.333_333_34, 0.5, 0.166_666_67, 0.25];

/// The values of the 16 codes of "NF4", quantiles of the normal distribution: Dettmers et al., "QLoRA" (2023).
const NF4: [f32; 16] = [
    -1.0,
    -0.696_192_8,
    -0.525_073_05,
    -0.394_917_5,
    -0.284_441_38,
    -0.184_773_43,
    -0.091_050_036,
    0.0,
    0.079_580_3,
    0.160_930_2,
    0.246_112_3,
    0.337_915_24,
    0.440_709_83,
    0.562_617,
    0.722_956_84,
    1.0,
];

fn codes(b: &mut Builder, kind: i64) -> Built {
    let values: Vec<f32> = match kind {
        0 => FP4.into_iter().chain(FP4.map(|value| -value)).collect(),
        1 => NF4.to_vec(),
        other => return Err(format!("expected quant_type 0 or 1, found {other}").into()),
    };
    Ok(b.tensor(&Tensor::from_values([16], &values)?))
}

/// A product with a matrix of 4-bit codes, two per byte, the first in the higher bits; each block of consecutive
/// elements has a scale.
fn matmul_by_table(cx: &mut Context<'_>) -> Lowered {
    let block = block_size(cx, None)?;
    let [rows, depth] = [Dim::Known(extent(cx, "N")?), Dim::Known(extent(cx, "K")?)];
    let kind = cx.int("quant_type")?.ok_or_else(|| cx.missing("quant_type"))?;
    let x = cx.input(0)?;
    let count = rows.clone() * depth.clone();
    let quantised = shaped(cx, 1, &[count.ceil_div(&2.into())])?;
    let scales = shaped(cx, 2, &[count.ceil_div(&block.into())])?;
    let table = codes(cx.b, kind)?;
    let place = Scalar::Loop(0) * size(&depth) + Scalar::Loop(1);
    let odd = place.clone().binary(Binary::Rem, Scalar::index(2));
    let byte = Scalar::load(0, [place.clone() / Scalar::index(2)]).cast(DType::I64);
    let first = odd.equals(Scalar::index(0));
    let sixteen = || Scalar::index(16);
    let code = first.select(byte.clone() / sixteen(), byte.binary(Binary::Rem, sixteen()));
    let dtype = wide(cx.dtype(x));
    let scale = Scalar::load(1, [place / Scalar::index(block)]).cast(dtype);
    let body = Scalar::load(2, [code]).cast(dtype) * scale;
    let weights = Compute::map([rows, depth], body);
    let weights = cx.b.compute(weights, &[quantised, scales, table])?;
    let transposed = cx.int_or("transB", 1)? != 0;
    with_weights(cx, x, weights, transposed, None)
}

/// Slices of a quantised table, dequantised. An index out of range selects zeros.
fn gather(cx: &mut Context<'_>) -> Lowered {
    let [data, indices, scales] = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let ty = cx.ty(data);
    let rank = ty.rank();
    let axis = cx.axis(cx.int_or("gather_axis", 0)?, rank)?;
    let blocked = cx.axis(cx.int_or("quantize_axis", 1)?, rank)?;
    let float = ty.dtype.is_float();
    let block = match cx.int_or("block_size", 128)? {
        0 if float => None,
        _ => Some(block_size(cx, Some(128))?),
    };
    // Bytes hold several elements; other types are unpacked already.
    let packed = if ty.dtype == DType::U8 { packed(cx)? } else { Packed { bits: 8 } };
    let mut own = ty.dims.clone();
    own[rank - 1] = (own[rank - 1].clone() * 8.into()).floor_div(&packed.bits.into());
    expect_scales(cx, scales, &own, (blocked, block))?;

    let by = cx.b.dims(indices);
    let mut dims = own[..axis].to_vec();
    dims.extend(by.iter().cloned());
    dims.extend_from_slice(&own[axis + 1..]);
    let index = Scalar::load(1, loops(axis..axis + by.len())).cast(DType::I64);
    let index = from_end(index, &own[axis]);
    let valid = within(&index, Scalar::index(0), size(&own[axis]));
    let mut at = loops(0..axis);
    at.push(inside(index, &own[axis]));
    at.extend(loops(axis + by.len()..dims.len()));

    let mut of_block = at.clone();
    of_block[blocked] = match block {
        Some(block) => at[blocked].clone() / Scalar::index(block),
        None => Scalar::index(0),
    };
    let shared = cx.b.dims(scales);
    let of_scale = of_block.iter().zip(&shared);
    let of_scale: Vec<Scalar> =
        of_scale.map(|(at, dim)| if dim.is(1) { Scalar::index(0) } else { at.clone() }).collect();
    let to = cx.dtype(scales);
    let dtype = wide(to);
    let element = |operand: usize, at: &[Scalar], bytes: &Dim| match (float, at.split_last()) {
        (false, Some((last, first))) if ty.dtype == DType::U8 => {
            packed.load(operand, first.to_vec(), last.clone(), bytes).cast(dtype)
        }
        _ => Scalar::load(operand, at.to_vec()).cast(dtype),
    };
    let mut operands = vec![data, indices, scales];
    let mut number = element(0, &at, &ty.dims[rank - 1]);
    if let Some(zeros) = cx.optional(3) {
        let last = cx.b.dims(zeros).last().cloned().unwrap_or(1.into());
        number = number - element(3, &of_block, &last);
        operands.push(zeros);
    } else if ty.dtype == DType::U8 {
        number = number - Scalar::float((1i64 << (packed.bits - 1)) as f64, dtype);
    }
    let value = number * Scalar::load(2, of_scale).cast(dtype);
    let body = valid.select(value, Scalar::float(0.0, dtype)).cast(to);
    one(cx.b.compute(Compute::map(dims, body), &operands))
}

/// Checks that there is a scale, and possibly a zero point, for each block along an axis.
fn expect_scales(
    cx: &mut Context<'_>,
    scales: ValueId,
    own: &[Dim],
    (blocked, block): (usize, Option<i64>),
) -> Result<(), LowerError> {
    let found = cx.b.dims(scales);
    let zeros = cx.optional(3).map(|zeros| cx.b.rank(zeros));
    if found.len() != own.len() || zeros.is_some_and(|rank| rank != own.len()) {
        let found = cx.ty(scales);
        let message =
            format!("expected a scale for each block of rank {}, found {found}", own.len());
        return Err(LowerError::invalid(message));
    }
    for (axis, (found, own)) in found.iter().zip(own).enumerate() {
        let expected = match block {
            _ if axis != blocked => own.clone(),
            Some(block) => own.ceil_div(&block.into()),
            None => 1.into(),
        };
        let message = "expected a scale for each block";
        cx.b.require(found, Relation::EqualOrOne, &expected, message)?;
    }
    Ok(())
}
