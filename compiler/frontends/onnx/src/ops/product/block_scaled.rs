//! Matrix products with constant integers of a few bits, of which those of a block along the depth share a scale.

use super::rows::{flattened, with_unit};
use crate::ops::pieces::{Outside, pad};
use irc_tl::{
    Binary, Builder, Built, Comparison, DType, Dim, Op, Reduction, Tensor, Unary, ValueId,
};

/// A right operand `[columns, depth]` of integers in blocks along the depth.
pub(in crate::ops) struct BlockScaled {
    /// Bits of an integer: 2, 4 or 8.
    pub bits: usize,
    /// Integers of a block.
    pub block: usize,
    /// The integers, packed in whole blocks: `i8[columns, bytes]`.
    pub codes: ValueId,
    /// `[columns, blocks]`.
    pub scales: ValueId,
    /// `[columns, blocks]`; without them, `2^(bits - 1)` stands for zero.
    pub zeros: Option<ValueId>,
    /// Whether the left operand is quantised to `i8` too, with a scale for each block of a row.
    pub quantises_left: bool,
}

/// The product of floats `[..., depth]` and such an operand, in `f32`.
pub(in crate::ops) fn block_scaled_product(
    b: &mut Builder,
    x: ValueId,
    weights: &BlockScaled,
) -> Built {
    let is_row = b.rank(x) == 1;
    let left = if is_row { with_unit(b, x, 0)? } else { x };
    let left = b.cast(left, DType::F32)?;
    let BlockScaled { bits, block, codes, scales, zeros, quantises_left } = *weights;
    let operands: Vec<ValueId> = [codes, scales].into_iter().chain(zeros).collect();
    let columns = b.dims(codes)[0].clone();
    let result = flattened(b, left, columns, |b, left| {
        let (left, scales) = match quantises_left {
            true => quantised(b, left, block).map(|(left, scales)| (left, Some(scales)))?,
            false => (left, None),
        };
        let operands = [left].into_iter().chain(operands).chain(scales);
        b.op(Op::BlockScaledMatmul { bits, block }, &operands.collect::<Vec<_>>())
    })?;
    if !is_row {
        return Ok(result);
    }
    let dims: Vec<Dim> = b.dims(result)[1..].to_vec();
    b.reshape(result, &dims)
}

/// Floats `[..., depth]` in `i8`, in whole blocks, and the scale of each block: its largest magnitude is 127 of it.
fn quantised(b: &mut Builder, x: ValueId, block: usize) -> Built<(ValueId, ValueId)> {
    let mut dims = b.dims(x);
    let Some(depth) = dims.pop() else { return Err("expected rows".into()) };
    let block = Dim::from(block as i64);
    let blocks = depth.ceil_div(&block);
    let all = blocks.clone() * block.clone();
    let with = |last: &[Dim]| [&dims[..], last].concat();
    let rest = all.clone() - depth;
    let x = if rest.is(0) {
        x
    } else {
        pad(b, x, dims.len(), &[[0.into(), rest]], Outside::Number(0))?
    };
    let grouped = b.reshape(x, &with(&[blocks.clone(), block]))?;
    let magnitudes = b.unary(Unary::Abs, grouped)?;
    let largest = b.reduce(Reduction::Max, magnitudes, &[dims.len() + 1], true)?;
    let [most, zero] = [127.0, 0.0].map(|value| b.scalar(value, DType::F32));
    let (most, zero) = (most?, zero?);
    let scales = b.binary(Binary::Div, largest, most)?;
    let per_unit = b.binary(Binary::Div, most, largest)?;
    let is_zero = b.compare(Comparison::Eq, largest, zero)?;
    let per_unit = b.select(is_zero, zero, per_unit)?;
    let values = b.binary(Binary::Mul, grouped, per_unit)?;
    let nearest = b.unary(Unary::Round, values)?;
    let values = b.cast(nearest, DType::I8)?;
    let values = b.reshape(values, &with(&[all]))?;
    Ok((values, b.reshape(scales, &with(&[blocks]))?))
}

/// Constant zero points as an operand, unless all of them are in the middle.
pub(in crate::ops) fn zero_points(
    b: &mut Builder,
    bits: usize,
    zeros: &[f32],
    dims: [i64; 2],
) -> Built<Option<ValueId>> {
    let middle = (1_u32 << (bits - 1)) as f32;
    if zeros.iter().all(|zero| *zero == middle) {
        return Ok(None);
    }
    let zeros = Tensor::from_values(dims, zeros).map_err(|error| error.to_string())?;
    Ok(Some(b.tensor(&zeros)))
}

/// Integers of constants `[depth, columns]`, or `[columns, depth]` if they are transposed, and where their scales are.
pub(in crate::ops) struct Given<'t> {
    /// Of 2, 4 or 8 bits, signed or not.
    pub integers: &'t Tensor,
    /// Floats: one, one for each column, or one for each block of each column.
    pub scales: &'t Tensor,
    /// As many integers.
    pub zeros: Option<&'t Tensor>,
    /// Whether a row is a column of the product.
    pub is_transposed: bool,
    /// The integers of a block along the depth, if scales differ there.
    pub block: Option<usize>,
}

impl Given<'_> {
    /// The operand of a product; `None` if integers of such a type, or such blocks, have no form in one.
    pub(in crate::ops) fn operand(&self, b: &mut Builder) -> Built<Option<BlockScaled>> {
        let (bits, is_signed) = match self.integers.dtype() {
            DType::I8 => (8, true),
            DType::U8 => (8, false),
            DType::I4 => (4, true),
            DType::U4 => (4, false),
            DType::I2 => (2, true),
            DType::U2 => (2, false),
            _ => return Ok(None),
        };
        let [rows, columns] = *self.integers.shape() else { return Ok(None) };
        let (depth, columns) = match self.is_transposed {
            true => (columns as usize, rows as usize),
            false => (rows as usize, columns as usize),
        };
        let unit = 32 / bits;
        let block = self.block.unwrap_or_else(|| depth.next_multiple_of(unit));
        if depth == 0 || columns == 0 || block == 0 || !block.is_multiple_of(unit) {
            return Ok(None);
        }
        let blocks = depth.div_ceil(block);
        let dims = [columns as i64, blocks as i64];
        let spread = |values: Vec<f32>| -> Option<Vec<f32>> {
            let at = |index: usize| match (self.block, values.len()) {
                (_, 1) => Some(0),
                (None, count) if count == columns => Some(index / blocks),
                (Some(_), count) if count == columns * blocks && self.is_transposed => Some(index),
                (Some(_), count) if count == columns * blocks => {
                    Some(index % blocks * columns + index / blocks)
                }
                _ => None,
            };
            (0..columns * blocks).map(|index| at(index).map(|at| values[at])).collect()
        };
        let Some(scales) = spread(self.scales.to_f32()) else { return Ok(None) };
        // Signed integers become unsigned ones.
        let middle = if is_signed { 1_u8 << (bits - 1) } else { 0 };
        let zeros = match self.zeros {
            Some(zeros) => zeros.to_f32(),
            None => vec![0.0],
        };
        let Some(zeros) = spread(zeros) else { return Ok(None) };
        let zeros: Vec<f32> = zeros.into_iter().map(|zero| zero + f32::from(middle)).collect();
        let row = blocks * block * bits / 8;
        let mut codes = vec![0_u8; columns * row];
        let (bytes, mask) = (self.integers.bytes(), u8::MAX >> (8 - bits));
        for column in 0..columns {
            let codes = &mut codes[column * row..][..row];
            for k in 0..depth {
                let from =
                    if self.is_transposed { column * depth + k } else { k * columns + column };
                let code = (bytes[from] ^ middle) & mask;
                codes[k * bits / 8] |= code << (k * bits % 8);
            }
        }
        let text = |error: irc_tensor::TensorError| error.to_string();
        let codes: Vec<i8> = codes.into_iter().map(u8::cast_signed).collect();
        let codes = Tensor::from_values([dims[0], row as i64], &codes).map_err(text)?;
        let scales = Tensor::from_values(dims, &scales).map_err(text)?;
        let (codes, scales) = (b.tensor(&codes), b.tensor(&scales));
        let zeros = zero_points(b, bits, &zeros, dims)?;
        Ok(Some(BlockScaled { bits, block, codes, scales, zeros, quantises_left: false }))
    }
}
