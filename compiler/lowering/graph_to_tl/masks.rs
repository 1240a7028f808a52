//! Constants that are causal masks: one value up to a diagonal, another one after it. They are written as expressions, in
//! which attention finds the diagonal, instead of as elements.
use irc_tl::{Comparison, Compute, Constant, DType, Dim, Op, Scalar};

/// The expression of a constant whose matrix is a causal mask, of more than one row.
pub(super) fn causal(constant: &Constant) -> Option<Op> {
    let (outer, [rows, columns]) = constant.ty.shape.split_last_chunk()?;
    if *rows < 2 || *columns < 2 || outer.iter().any(|extent| *extent != 1) {
        return None;
    }
    let width = match constant.ty.dtype {
        DType::F32 => 4,
        DType::Bool => 1,
        _ => return None,
    };
    let (rows, columns) = (usize::try_from(*rows).ok()?, usize::try_from(*columns).ok()?);
    let row = |number: usize| {
        constant.bytes.get(number * columns * width..(number + 1) * columns * width)
    };
    let first = row(0)?;
    let shown = &first[..width];
    let hidden = &first[(columns - 1) * width..];
    let count = first.chunks(width).take_while(|element| *element == shown).count();
    if shown == hidden {
        return None;
    }
    for number in 0..rows {
        let (before, after) = row(number)?.split_at((count + number).min(columns) * width);
        let is_as = |part: &[u8], value: &[u8]| part.chunks(width).all(|element| element == value);
        if !is_as(before, shown) || !is_as(after, hidden) {
            return None;
        }
    }
    let number = |bytes: &[u8]| match constant.ty.dtype {
        DType::F32 => {
            Some(Scalar::float(f32::from_le_bytes(bytes.try_into().ok()?).into(), DType::F32))
        }
        dtype => Some(Scalar::Int(i64::from(*bytes.first()? != 0), dtype)),
    };
    let rank = constant.ty.shape.len();
    let [query, key] = [rank - 2, rank - 1].map(Scalar::Loop);
    let seen = key.compare(Comparison::Le, query + Scalar::index(count as i64 - 1));
    let body = seen.select(number(shown)?, number(hidden)?);
    let dims = constant.ty.shape.iter().map(|extent| Dim::Known(*extent));
    Some(Op::compute(Compute::map(dims.collect::<Vec<_>>(), body)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use irc_tensor::Tensor;

    /// A mask of four queries and six keys, of which some see another number than two more each.
    fn mask(other: &[(usize, usize)], low: f32) -> Constant {
        let seen = |row: usize| other.iter().find(|it| it.0 == row).map_or(row + 3, |it| it.1);
        let values = (0..24).map(|at| if at % 6 < seen(at / 6) { 0.0 } else { low });
        Constant::of(&Tensor::from_values([1, 4, 6], &values.collect::<Vec<f32>>()).unwrap())
    }

    #[test]
    fn a_causal_mask_is_an_expression_of_the_same_elements() {
        let constant = mask(&[], f32::NEG_INFINITY);
        let op = causal(&constant).unwrap();
        assert_eq!(op.eval(&[]).unwrap(), constant.tensor().unwrap());
    }

    #[test]
    fn other_constants_are_none() {
        assert!(causal(&mask(&[], 0.0)).is_none(), "one value");
        assert!(causal(&mask(&[(2, 4)], -1.0)).is_none(), "a row that sees fewer");
        assert!(causal(&mask(&[(3, 7)], -1.0)).is_some(), "a row that sees all");
        assert!(causal(&mask(&[(0, 0)], -1.0)).is_none(), "a row that sees none");
    }
}
