//! Matrix product with a matrix of small integers that share scales in blocks.

use super::{Attribute, AttributeKind, Family, Op, Operands, Row, count, matmul};
use crate::{Binary, Combine, Compute, Dim, EvalError, Relation, Scalar, Type};
use irc_tensor::{DType, Tensor, TensorType};

pub(super) static ROW: Row = Row {
    description: "Operands `lhs[..., m, k]`, `codes[n, bytes]`, `scales[n, blocks]` and, if they differ from
`2^(bits - 1)`, `zeros[n, blocks]`. The right matrix is `[k, n]`: its element `(i, j)` is
`(code(j, i) - zeros[j, i / block]) * scales[j, i / block]`, and `code(j, i)` consists of the `bits` bits (2, 4 or 8) from
bit `i * bits` on of row `j` of `codes`, whose type is `i8`; bit 0 is the lowest of the first byte. All others are
`f32`. There are as many blocks as `k` needs, each of `block` codes in whole groups of 32 bits.

A left operand of `i8` is quantised: a last operand `lhs_scales[..., m, blocks]` has the scale of each block of each row.",
    operands: Operands::Variadic("factors"),
    syntax: Some("$factors"),
    attributes: &[
        Attribute::new("bits", AttributeKind::Index),
        Attribute::new("block", AttributeKind::Index),
    ],
    family: Family::Contraction,
    read: |attributes| {
        Ok(Op::BlockScaledMatmul { bits: attributes.index("bits")?, block: attributes.index("block")? })
    },
    write: |op| match op {
        Op::BlockScaledMatmul { bits, block } => {
            vec![("bits", (*bits).into()), ("block", (*block).into())]
        }
        _ => vec![],
    },
    example: || {
        let ty = |dtype, shape: [i64; 2]| TensorType::new(dtype, shape);
        let operands = vec![
            ty(DType::F32, [2, 32]),
            ty(DType::I8, [8, 16]),
            ty(DType::F32, [8, 2]),
            ty(DType::F32, [8, 2]),
        ];
        (Op::BlockScaledMatmul { bits: 4, block: 16 }, operands)
    },
    ..Row::new(
        "block_scaled_matmul",
        "matrix product of `f32` or scaled `i8` with a matrix of integers of 2, 4 or 8 bits, scaled in blocks along the depth",
    )
};

/// The number of blocks for a depth.
fn blocks(depth: i64, block: usize) -> i64 {
    let block = block as i64;
    depth.div_euclid(block) + i64::from(depth.rem_euclid(block) != 0)
}

/// The integer that stands for zero where zero points are not given.
fn middle(bits: usize) -> f64 {
    (1_i64 << (bits - 1)) as f64
}

/// The number of operands of the right matrix, after the left operand: codes, scales and possibly zero points.
fn of_right(operands: usize, lhs: DType) -> usize {
    operands.saturating_sub(if lhs == DType::I8 { 2 } else { 1 })
}

fn expect_form(operands: usize, lhs: DType, bits: usize, block: usize) -> Result<(), String> {
    if !(2..=3).contains(&of_right(operands, lhs)) {
        let expected = if lhs == DType::I8 { "4 or 5" } else { "3 or 4" };
        return Err(format!("expected {expected} operands, found {operands}"));
    }
    if ![2, 4, 8].contains(&bits) {
        return Err(format!("expected 2, 4 or 8 bits, found {bits}"));
    }
    let is_whole = block.checked_mul(bits).is_some_and(|bits| bits > 0 && bits % 32 == 0);
    if !is_whole {
        return Err(format!("expected blocks of a multiple of 32 bits, found {block} of {bits}"));
    }
    Ok(())
}

pub(super) fn infer(
    operands: &[TensorType],
    bits: &usize,
    block: &usize,
) -> Result<TensorType, String> {
    let lhs = operands.first().ok_or("expected 3 or 4 operands, found 0")?;
    expect_form(operands.len(), lhs.dtype, *bits, *block)?;
    let codes = &operands[1];
    if !matches!(lhs.dtype, DType::F32 | DType::I8) || lhs.rank() < 2 {
        return Err(format!("expected f32 or i8 of rank 2 or more, found {lhs}"));
    }
    let depth = lhs.shape[lhs.rank() - 1];
    let blocks = blocks(depth, *block);
    let bytes = blocks.checked_mul((block * bits / 8) as i64);
    let columns = match (codes.dtype, &codes.shape[..]) {
        (DType::I8, [columns, found]) if Some(*found) == bytes => *columns,
        _ => {
            let expected = bytes.map_or_else(|| "too many".to_owned(), |bytes| bytes.to_string());
            return Err(format!(
                "expected codes of i8 with rows of {expected} bytes, found {codes}"
            ));
        }
    };
    let (of_columns, of_rows) = operands[2..].split_at(of_right(operands.len(), lhs.dtype) - 1);
    for of_blocks in of_columns {
        if of_blocks.dtype != DType::F32 || of_blocks.shape != [columns, blocks] {
            return Err(format!("expected f32 of shape [{columns}, {blocks}], found {of_blocks}"));
        }
    }
    let mut shape = lhs.shape.clone();
    shape.pop();
    for scales in of_rows {
        let expected = TensorType::new(DType::F32, [&shape[..], &[blocks]].concat());
        if *scales != expected {
            return Err(format!("expected {expected}, found {scales}"));
        }
    }
    shape.push(columns);
    Ok(TensorType::new(DType::F32, shape))
}

/// Two operations per multiply-accumulate.
pub(super) fn flops(operands: &[TensorType], result: &TensorType, _: &usize, _: &usize) -> u64 {
    let depth = operands[0].shape.last().map_or(0, |depth| depth.unsigned_abs());
    count(result).saturating_mul(depth).saturating_mul(2)
}

pub(super) fn eval(
    operands: &[&Tensor],
    ty: TensorType,
    bits: &usize,
    block: &usize,
) -> Result<Tensor, EvalError> {
    let depth = operands[0].shape()[operands[0].ty().rank() - 1] as usize;
    let columns = operands[1].shape()[0] as usize;
    let bytes = operands[1].bytes();
    let right = of_right(operands.len(), operands[0].dtype());
    let (scales, zeros) = (operands[2].to_f32(), (right > 2).then(|| operands[3].to_f32()));
    let (row, blocks) = (operands[1].shape()[1] as usize, operands[2].shape()[1] as usize);
    let (width, block) = (*bits, *block);
    let mut weights = Vec::with_capacity(columns * depth);
    for column in 0..columns {
        for k in 0..depth {
            let byte = bytes[column * row + k * width / 8];
            let code = (byte >> (k * width % 8)) & (u8::MAX >> (8 - width));
            let at = column * blocks + k / block;
            let zero = zeros.as_ref().map_or(middle(*bits) as f32, |zeros| zeros[at]);
            weights.push((f32::from(code) - zero) * scales[at]);
        }
    }
    let weights = Tensor::from_values([columns as i64, depth as i64], &weights)?;
    let left = match operands.get(1 + right) {
        None => operands[0].clone(),
        Some(scales) => {
            let (scales, mut values) = (scales.to_f32(), operands[0].to_f32());
            for (index, value) in values.iter_mut().enumerate() {
                *value *= scales[index / depth * blocks + index % depth / block];
            }
            Tensor::from_values(operands[0].shape(), &values)?
        }
    };
    matmul::eval(&[&left, &weights], ty, &false, &true)
}

pub(super) fn compute(operands: &[Type], bits: &usize, block: &usize) -> Result<Compute, String> {
    let lhs = operands.first().ok_or("expected 3 or 4 operands, found 0")?;
    expect_form(operands.len(), lhs.dtype, *bits, *block)?;
    let right = of_right(operands.len(), lhs.dtype);
    let is_matrix = |ty: &Type| ty.rank() == 2;
    if lhs.rank() < 2
        || !operands[1..=right].iter().all(is_matrix)
        || !operands[1 + right..].iter().all(|ty| ty.rank() == lhs.rank())
    {
        return Err("expected matrices".to_owned());
    }
    let (outer, depth) = (lhs.rank() - 1, lhs.dims[lhs.rank() - 1].clone());
    let mut dims = lhs.dims[..outer].to_vec();
    dims.push(operands[1].dims[0].clone());
    let (column, k) = (|| Scalar::Loop(outer), || Scalar::Loop(outer + 1));
    let integer = |value: i64| Scalar::Int(value, DType::I32);
    let bit = || k() * Scalar::index(*bits as i64);
    let byte = Scalar::load(1, [column(), bit() / Scalar::index(8)]).cast(DType::I32);
    let shift = bit().binary(Binary::Rem, Scalar::index(8)).cast(DType::I32);
    let code = byte.binary(Binary::Shr, shift).binary(Binary::And, integer((1 << bits) - 1));
    let of_block = |operand| Scalar::load(operand, [column(), k() / Scalar::index(*block as i64)]);
    let zero = match right {
        2 => Scalar::float(middle(*bits), DType::F32),
        _ => of_block(3),
    };
    let weight = (code.cast(DType::F32) - zero) * of_block(2);
    let rows = || (0..outer).map(Scalar::Loop);
    let mut left = Scalar::load(0, rows().chain([k()]).collect::<Vec<_>>());
    if lhs.dtype == DType::I8 {
        let at: Vec<Scalar> = rows().chain([k() / Scalar::index(*block as i64)]).collect();
        left = left.cast(DType::F32) * Scalar::load(1 + right, at);
    }
    let body = left * weight;
    Ok(Compute::reduce(dims, Combine::Sum, [depth], body))
}

/// What sizes must satisfy that are known only at run time: relations, each with a message.
pub(crate) fn agreement(operands: &[Type], block: usize) -> Option<[(Dim, Relation, Dim); 2]> {
    let (depth, block) = (operands[0].dims.last()?, block as i64);
    let blocks = operands.get(2)?.dims.get(1)?;
    let most = blocks.clone() * block.into();
    Some([
        (depth.clone(), Relation::AtMost, most.clone()),
        (most + Dim::from(-block), Relation::AtMost, depth.clone() + Dim::from(-1)),
    ])
}

#[cfg(test)]
mod tests {
    use crate::{DType, Op, Tensor, TensorType};

    #[test]
    fn codes_of_a_block_share_a_scale_and_a_zero_point() {
        // Two columns of 10 codes of 4 bits, in blocks of 8: 0, 1, .., 9 and 15, 14, ..
        let mut codes = vec![0u8; 16];
        for k in 0..10_usize {
            codes[k / 2] |= (k as u8) << (4 * (k % 2));
            codes[8 + k / 2] |= (15 - k as u8) << (4 * (k % 2));
        }
        let lhs: Vec<f32> = (0..10).map(|k| if k == 9 { 100.0 } else { 1.0 }).collect();
        let lhs = Tensor::from_values([1, 10], &lhs).expect("a tensor");
        let codes: Vec<i8> = codes.into_iter().map(u8::cast_signed).collect();
        let codes = Tensor::from_values([2, 8], &codes).expect("a tensor");
        let scales = Tensor::from_values([2, 2], &[1.0f32, 0.5, 2.0, 1.0]).expect("a tensor");
        let zeros = Tensor::from_values([2, 2], &[0.0f32, 1.0, 15.0, 8.0]).expect("a tensor");
        let op = Op::BlockScaledMatmul { bits: 4, block: 8 };
        let found = op.eval(&[&lhs, &codes, &scales, &zeros]).expect("operands");
        // 28 + 0.5 * (7 + 100 * 8), and -2 * 28 + (-1 + 100 * -2).
        assert_eq!(found.to_f64(), [431.5, -257.0]);
        let found = op.eval(&[&lhs, &codes, &scales]).expect("operands");
        // Without zero points they are 8: 28 - 64 + 0.5 * (0 + 100), and 2 * (92 - 64) + (-1 + 100 * -2).
        assert_eq!(found.to_f64(), [14.0, -145.0]);
    }

    #[test]
    fn blocks_of_a_quantised_left_operand_have_scales() {
        // Two rows of 6 in one block; the codes are 8 + k, so that without zero points they stand for 0, 1, .., 5.
        let left = [1_i8, -2, 3, 0, 5, -6, 0, 1, 0, 0, 2, 1];
        let left = Tensor::from_values([2, 6], &left).expect("a tensor");
        let codes: Vec<i8> = [0x98_u8, 0xba, 0xdc, 0].map(u8::cast_signed).to_vec();
        let codes = Tensor::from_values([1, 4], &codes).expect("a tensor");
        let op = Op::BlockScaledMatmul { bits: 4, block: 8 };
        let scale = Tensor::from_values([1, 1], &[0.5f32]).expect("a tensor");
        let scales = Tensor::from_values([2, 1], &[2.0f32, 4.0]).expect("a tensor");
        let found = op.eval(&[&left, &codes, &scale, &scales]).expect("operands");
        // -2 + 6 + 20 - 30 and 1 + 8 + 5.
        assert_eq!(found.to_f64(), [-6.0, 28.0]);
        let zeros = Tensor::from_values([1, 1], &[7.0f32]).expect("a tensor");
        let found = op.eval(&[&left, &codes, &scale, &zeros, &scales]).expect("operands");
        // More by the sums of the rows, 1 and 4.
        assert_eq!(found.to_f64(), [-5.0, 36.0]);
    }

    #[test]
    fn wrong_forms_are_rejected() {
        let ty = |dtype, shape: [i64; 2]| TensorType::new(dtype, shape);
        let operands = [ty(DType::F32, [2, 32]), ty(DType::I8, [8, 16]), ty(DType::F32, [8, 2])];
        let error = |bits, block, operands: &[TensorType]| {
            Op::BlockScaledMatmul { bits, block }.infer(operands).expect_err("it is wrong").message
        };
        assert!(error(3, 16, &operands).contains("2, 4 or 8 bits"));
        assert!(error(4, 12, &operands).contains("a multiple of 32 bits"));
        assert!(error(4, 32, &operands).contains("shape [8, 1]"));
        assert!(error(8, 16, &operands).contains("rows of 32 bytes"));
        assert!(error(4, 16, &operands[..2]).contains("3 or 4 operands"));
        let mut quantised = operands.to_vec();
        quantised[0] = TensorType::new(DType::I8, [2, 32]);
        assert!(error(4, 16, &quantised).contains("4 or 5 operands"));
        quantised.push(ty(DType::F32, [2, 1]));
        assert!(error(4, 16, &quantised).contains("expected f32[2,2], found f32[2,1]"));
    }
}
