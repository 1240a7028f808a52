//! Moves of whole values.

use crate::memory::Memory;
use irc_ark_format::model::{Arg, DataType, OpKind, Tensor};

/// Reordered dimensions: dimension `i` of the result is dimension `permutation[i]` of the operand.
pub fn transpose(memory: &mut Memory, x: &Tensor, permutation: &[usize]) -> Tensor {
    let shape: Vec<i64> = permutation.iter().map(|axis| x.shape[*axis]).collect();
    // Dimensions of extent 1 may be moved anywhere.
    let mut wide = permutation.iter().filter(|axis| x.shape[**axis] != 1);
    if wide.clone().zip(wide.by_ref().skip(1)).all(|(left, right)| left < right) {
        return memory.reshape(x, &shape);
    }
    let permutation = permutation.iter().map(|axis| *axis as i64).collect();
    let args = [("Permutation", Arg::Dims(permutation))];
    memory.op(OpKind::Transpose, &[x], (x.dtype, &shape), &args)
}

/// Rows of a table by index; a negative index counts from the end. The result has the extents of the
/// index, then those of a row.
///
/// # Errors
/// If the indices are not `INT32`.
pub fn rows(
    memory: &mut Memory,
    table: &Tensor,
    index: &Tensor,
    shape: &[i64],
) -> Result<Tensor, String> {
    if index.dtype != DataType::Int32 {
        return Err(format!("ARK reads rows by indices of INT32, found {}", index.dtype));
    }
    let columns: i64 = table.shape[1..].iter().product();
    let table = memory.reshape(table, &[table.shape[0], columns]);
    let count: i64 = index.shape.iter().product();
    let index = memory.reshape(index, &[count]);
    let found =
        memory.op(OpKind::Embedding, &[&index, &table], (table.dtype, &[count, columns]), &[]);
    Ok(memory.reshape(&found, shape))
}

/// A value with a box of it replaced.
pub fn update(memory: &mut Memory, dest: &Tensor, source: &Tensor, offsets: &[i64]) -> Tensor {
    let whole = memory.copy(dest, &dest.shape);
    let part = memory.slice(&whole, offsets, &source.shape);
    // A box that is the whole buffer has the id of a result: what is written has an id of its own.
    let part = memory.view(&part, |_| {});
    memory.write(OpKind::Copy, &[source], part, &[]);
    memory.view(&whole, |_| {})
}
