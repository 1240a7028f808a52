//! Ops whose result has independent rows along leading dimensions that depend on symbols.

use super::Op;
use crate::{DType, Dim, Type};

impl Op {
    /// The number of leading dimensions of the result that are *rows*: those up to the last one that depends on
    /// symbols. A row of the result depends on the same row of each operand with symbolic sizes, which has the same
    /// leading dimensions, and on operands of known sizes, which all rows share. `None` if the op has no such rows.
    pub fn open_rows(&self, operands: &[Type]) -> Option<usize> {
        let mut open = operands.iter().filter(|ty| ty.known().is_none());
        let first = open.next()?;
        let rows = rows_of(first)?;
        let agrees = |ty: &Type| rows_of(ty) == Some(rows) && ty.dims[..rows] == first.dims[..rows];
        let inner = |ty: &Type| is_known(&ty.dims[rows..]);
        if !open.all(agrees) || !operands.iter().filter(|ty| ty.known().is_none()).all(inner) {
            return None;
        }
        let has_rows = match self {
            Self::Unary(_)
            | Self::Binary(_)
            | Self::Compare(_)
            | Self::Select
            | Self::Cast { .. } => elementwise(operands, rows),
            Self::Reduce { axes, .. } => {
                axes.iter().all(|axis| *axis >= rows) && first.rank() > rows
            }
            Self::Transpose { permutation } => {
                permutation[..rows].iter().copied().eq(0..rows) && first.rank() > rows
            }
            Self::Matmul { transpose_lhs, .. } => product(operands, rows, *transpose_lhs),
            Self::BlockScaledMatmul { .. } => {
                // A quantised left operand has scales for its rows.
                let of_rows = [0, operands.len() - 1];
                let has_rows = |index: usize| operands[index].known().is_none();
                let is_quantised = operands[0].dtype == DType::I8;
                first.rank() > rows
                    && has_rows(0)
                    && (1..operands.len())
                        .all(|index| has_rows(index) == (is_quantised && of_rows.contains(&index)))
            }
            Self::Conv(conv) => rows == 1 && conv.has_images(&operands[0], &operands[1]),
            _ => false,
        };
        has_rows.then_some(rows)
    }

    /// The op on operands with one leading dimension instead of `rows`, which are rows of it.
    #[must_use]
    pub fn with_joined_rows(self, rows: usize) -> Self {
        let joined = |axes: &[usize]| axes.iter().map(|axis| axis + 1 - rows).collect();
        match self {
            Self::Reduce { kind, axes, keep_dims } => {
                Self::Reduce { kind, axes: joined(&axes), keep_dims }
            }
            Self::Transpose { permutation } => {
                let inner: Vec<usize> = joined(&permutation[rows..]);
                Self::Transpose { permutation: std::iter::once(0).chain(inner).collect() }
            }
            other => other,
        }
    }

    /// Whether many rows of the op are computed together, each with loops over known sizes inside of one over the rows:
    /// the rows of a product with a matrix, reductions along the last dimension, and elementwise ops.
    pub fn joins_rows(&self, operands: &[Type]) -> bool {
        match (self, operands) {
            (Self::Matmul { transpose_lhs, .. }, [lhs, _]) => {
                let inner = lhs.rank().saturating_sub(1);
                let are_vectors = inner > 0 && lhs.dims[1..inner].iter().all(|dim| dim.is(1));
                !transpose_lhs && lhs.known().is_none() && are_vectors
            }
            (Self::BlockScaledMatmul { .. }, [lhs, ..]) => {
                lhs.dims[1..lhs.rank() - 1].iter().all(|dim| dim.is(1))
            }
            (Self::Reduce { axes, .. }, [operand]) => axes[..] == [operand.rank() - 1],
            _ => !matches!(self, Self::Matmul { .. } | Self::Conv(_) | Self::Transpose { .. }),
        }
    }
}

/// The leading dimensions up to the last one that depends on symbols.
fn rows_of(ty: &Type) -> Option<usize> {
    ty.dims.iter().rposition(|dim| dim.known().is_none()).map(|last| last + 1)
}

/// Whether operands of known sizes broadcast along the rows, and those with rows have the rank of the result.
fn elementwise(operands: &[Type], rows: usize) -> bool {
    let rank = operands.iter().map(Type::rank).max().unwrap_or(0);
    let fits = |ty: &Type| match ty.known() {
        None => ty.rank() == rank,
        Some(known) => {
            let leading = (known.rank() + rows).saturating_sub(rank);
            !known.shape.contains(&0) && known.shape[..leading].iter().all(|size| *size == 1)
        }
    };
    operands.iter().all(fits)
}

/// Whether rows of one operand are multiplied by a matrix, or matrices by the same number of matrices.
fn product(operands: &[Type], rows: usize, transpose_lhs: bool) -> bool {
    let [lhs, rhs] = operands else { return false };
    let own_matrix = |ty: &Type| ty.rank() >= rows + 2;
    match (lhs.known(), rhs.known()) {
        (None, Some(rhs)) if rhs.rank() == 2 => {
            !rhs.shape.contains(&0) && lhs.rank() > rows && (!transpose_lhs || own_matrix(lhs))
        }
        (None, None) => lhs.rank() == rhs.rank() && own_matrix(lhs),
        _ => false,
    }
}

/// Whether all extents are known and positive.
pub(super) fn is_known(dims: &[Dim]) -> bool {
    dims.iter().all(|dim| dim.known().is_some_and(|extent| extent > 0))
}
