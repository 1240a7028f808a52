//! Rows of a table by index.

use super::{Family, Op, Operands, Row};
use crate::general::loops;
use crate::{Comparison, Compute, EvalError, Scalar, Type};
use irc_tensor::{DType, Tensor, TensorType};

pub(super) static ROW: Row = Row {
    operands: Operands::Named(&["table", "index"]),
    family: Family::Pick,
    samples: Some(0),
    read: |_| Ok(Op::Gather),
    example: || {
        let types = [TensorType::new(DType::F32, [5, 8]), TensorType::new(DType::I32, [3])];
        (Op::Gather, types.to_vec())
    },
    ..Row::new(
        "gather",
        "rows of a 2-D table by integer index; negative indices count from the end",
    )
};

pub(super) fn infer(operands: &[TensorType]) -> Result<TensorType, String> {
    let [table, index] = [&operands[0], &operands[1]];
    if table.rank() != 2 {
        return Err(format!("expected a table of rank 2, found {table}"));
    }
    if index.dtype != DType::I32 {
        return Err(format!("expected an i32 index, found {index}"));
    }
    let mut shape = index.shape.clone();
    shape.push(table.shape[1]);
    Ok(TensorType::new(table.dtype, shape))
}

pub(super) fn eval(operands: &[&Tensor], ty: TensorType) -> Result<Tensor, EvalError> {
    let [table, index] = [operands[0], operands[1]];
    let mut result = Tensor::zeros(ty)?;
    let rows = table.shape()[0];
    let width = table.shape()[1] as usize * table.dtype().size();
    let indices = index.values::<i32>().expect("inference asks for an i32 index");
    for (position, &row) in indices.iter().enumerate() {
        let row = i64::from(row);
        let wrapped = if row < 0 { row + rows } else { row };
        if !(0..rows).contains(&wrapped) {
            return Err(EvalError::IndexOutOfRange { index: position, value: row, rows });
        }
        let source = &table.bytes()[wrapped as usize * width..][..width];
        result.bytes_mut()[position * width..][..width].copy_from_slice(source);
    }
    Ok(result)
}

pub(super) fn compute(operands: &[Type]) -> Result<Compute, String> {
    let [table, index] = [&operands[0], &operands[1]];
    if table.rank() != 2 {
        return Err(format!("expected a table of rank 2, found {table}"));
    }
    let row = Scalar::load(1, loops(0..index.rank())).cast(DType::I64);
    let end = row.clone() + Scalar::Size(table.dims[0].clone());
    let wrapped = row.clone().compare(Comparison::Lt, Scalar::index(0)).select(end, row);
    let mut dims = index.dims.clone();
    dims.push(table.dims[1].clone());
    Ok(Compute::map(dims, Scalar::load(0, [wrapped, Scalar::Loop(index.rank())])))
}

pub(super) fn flops(_: &[TensorType], _: &TensorType) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use crate::{Op, Tensor};

    #[test]
    fn negative_rows_count_from_the_end() {
        let table = Tensor::from_values([3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let table = table.expect("a tensor");
        let index = Tensor::from_values([1, 2], &[-1i32, 0]).expect("a tensor");
        let rows = Op::Gather.eval(&[&table, &index]).expect("in range");
        assert_eq!(rows.shape(), [1, 2, 2]);
        assert_eq!(rows.to_f64(), [5.0, 6.0, 1.0, 2.0]);
        let far = Tensor::from_values([1], &[3i32]).expect("a tensor");
        assert_eq!(
            Op::Gather.eval(&[&table, &far]).expect_err("no such row").to_string(),
            "gather: index 0 is 3: expected -3 to 3 (exclusive)"
        );
    }
}
