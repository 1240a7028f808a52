//! Causal masks of attention, which hide keys after a query.
use irc_tl::{Binary, Comparison, Compute, DType, Dim, Scalar};

/// The largest term that hides a key: `e^x` of a score with it is zero, unless the score exceeds all that are seen by almost
/// as much.
pub const HIDDEN: f64 = -1e4;

/// The number of keys that the first query sees, less one, if a general op masks the scores of others: it keeps the
/// elements of its operand in column `j` of row `i` if `j <= i + offset`, and makes others a number that hides them.
pub fn offset_of(compute: &Compute) -> Option<Dim> {
    let column = compute.dims.len().checked_sub(1)?;
    let row = column.checked_sub(1)?;
    let Scalar::Select(parts) = &compute.body else { return None };
    let [condition, kept, other] = &**parts;
    let whole = Scalar::load(0, (0..=column).map(Scalar::Loop).collect::<Vec<_>>());
    let is_mask = *kept == whole
        && matches!(other, Scalar::Float(low, DType::F32) if f64::from_bits(*low) <= HIDDEN)
        && compute.reduction.is_none();
    let Scalar::Compare(Comparison::Le, left, right) = condition else { return None };
    if !is_mask || **left != Scalar::Loop(column) {
        return None;
    }
    let (rows, offset) = sum_of(right, row)?;
    // A query that sees no key would make the difference between a sum of nothing and a division by zero.
    let is_size = offset.terms().iter().all(|(factor, _)| *factor >= 0);
    (rows == 1 && is_size).then_some(offset)
}

/// A sum of sizes and of a multiple of the number of a row.
fn sum_of(scalar: &Scalar, row: usize) -> Option<(i64, Dim)> {
    match scalar {
        Scalar::Loop(found) => (*found == row).then(|| (1, Dim::from(0))),
        Scalar::Int(value, _) => Some((0, Dim::from(*value))),
        Scalar::Size(size) => Some((0, size.clone())),
        Scalar::Binary(Binary::Add, left, right) => {
            let (left, right) = (sum_of(left, row)?, sum_of(right, row)?);
            Some((left.0 + right.0, left.1 + right.1))
        }
        _ => None,
    }
}
