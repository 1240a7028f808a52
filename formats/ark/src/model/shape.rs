//! Shapes of results, by ARK's rules.

/// The shape that two shapes broadcast to, as in NumPy: aligned at the right, extents of 1 are repeated.
pub fn broadcast(a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
    let rank = a.len().max(b.len());
    let at = |shape: &[i64], i: usize| (i + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
    let extent = |i| match (at(a, i), at(b, i)) {
        (x, y) if x == y => Some(x),
        (1, y) => Some(y),
        (x, 1) => Some(x),
        _ => None,
    };
    (0..rank).map(extent).collect()
}

/// Rows, columns and inner extent of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mnk {
    /// Rows of the result.
    pub m: i64,
    /// Columns of the result.
    pub n: i64,
    /// Inner extent of the first operand.
    pub k: i64,
    /// Inner extent of the second operand; equal to `k` in a valid product.
    pub other_k: i64,
}

/// Extents of a matrix product; a 1-D first operand is one row, a 1-D second one column.
///
/// Both shapes must have at least one dimension.
pub fn mnk(a: &[i64], b: &[i64], transpose_a: bool, transpose_b: bool) -> Mnk {
    let (m, k) = match a {
        [.., rows, columns] if transpose_a => (*columns, *rows),
        [.., rows, columns] => (*rows, *columns),
        _ => (1, a.first().copied().unwrap_or(1)),
    };
    let (other_k, n) = match b {
        [.., rows, columns] if transpose_b => (*columns, *rows),
        [.., rows, columns] => (*rows, *columns),
        _ => (b.first().copied().unwrap_or(1), 1),
    };
    Mnk { m, n, k, other_k }
}

/// Shape of a matrix product: two dimensions if neither operand has more, otherwise the batch
/// dimensions broadcast. `None` if those are incompatible.
pub fn matmul(a: &[i64], b: &[i64], transpose_a: bool, transpose_b: bool) -> Option<Vec<i64>> {
    let Mnk { m, n, .. } = mnk(a, b, transpose_a, transpose_b);
    let batch = |shape: &[i64]| shape[..shape.len().saturating_sub(2)].to_vec();
    let mut shape = broadcast(&batch(a), &batch(b))?;
    shape.extend([m, n]);
    Some(shape)
}

/// Shape of a reduction along `axis`, which must be valid.
pub fn reduce(shape: &[i64], axis: usize, keep_dim: bool) -> Vec<i64> {
    let mut shape = shape.to_vec();
    match keep_dim || shape.len() == 1 {
        true => shape[axis] = 1,
        false => drop(shape.remove(axis)),
    }
    shape
}

/// Shape of a transposition, as in NumPy: dimension `i` is dimension `permutation[i]` of the
/// operand. `None` if `permutation` is not a permutation.
pub fn transpose(shape: &[i64], permutation: &[i64]) -> Option<Vec<i64>> {
    let mut sorted = permutation.to_vec();
    sorted.sort_unstable();
    let is_permutation = sorted.iter().copied().eq(0..shape.len() as i64);
    is_permutation.then(|| permutation.iter().map(|&i| shape[i as usize]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_aligns_at_the_right() {
        assert_eq!(broadcast(&[2, 1, 4], &[3, 1]), Some(vec![2, 3, 4]));
        assert_eq!(broadcast(&[2, 3], &[4]), None);
    }

    #[test]
    fn matrix_products_keep_two_dimensions_and_broadcast_batches() {
        assert_eq!(matmul(&[5], &[5], false, false), Some(vec![1, 1]));
        assert_eq!(matmul(&[2, 1, 3, 4], &[7, 4, 5], false, false), Some(vec![2, 7, 3, 5]));
        assert_eq!(matmul(&[4, 3], &[5, 4], true, true), Some(vec![3, 5]));
    }

    #[test]
    fn transposition_takes_the_operands_dimension() {
        assert_eq!(transpose(&[2, 3, 4], &[1, 2, 0]), Some(vec![3, 4, 2]));
        assert_eq!(transpose(&[2, 3], &[0, 0]), None);
        assert_eq!(transpose(&[2, 3], &[0, 1, 2]), None);
    }
}
