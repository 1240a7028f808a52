//! Index expressions of loops.

use irc_tl::{Binary, Comparison, DType, Scalar};

/// An index: a number, or a loop index plus a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affine {
    /// The loop, if any.
    pub over: Option<usize>,
    /// The number.
    pub offset: i64,
}

impl Affine {
    /// The index of an expression; `None` if it has another form.
    pub fn of(scalar: &Scalar) -> Option<Self> {
        match scalar {
            Scalar::Int(offset, _) => Some(Self { over: None, offset: *offset }),
            Scalar::Size(dim) => Some(Self { over: None, offset: dim.known()? }),
            Scalar::Loop(index) => Some(Self { over: Some(*index), offset: 0 }),
            Scalar::Binary(Binary::Add, left, right) => {
                let (left, right) = (Self::of(left)?, Self::of(right)?);
                let over = match (left.over, right.over) {
                    (over, None) | (None, over) => over,
                    _ => return None,
                };
                Some(Self { over, offset: left.offset.checked_add(right.offset)? })
            }
            Scalar::Binary(Binary::Sub, left, right) => {
                let (left, right) = (Self::of(left)?, Self::of(right)?);
                let offset = left.offset.checked_sub(right.offset)?;
                right.over.is_none().then_some(Self { over: left.over, offset })
            }
            _ => None,
        }
    }
}

/// The iterations for which a condition on one loop holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// The loop.
    pub over: usize,
    /// The first iteration of the upper part.
    pub at: i64,
    /// Whether it holds in the lower part and not in the upper, or the reverse.
    pub below: bool,
}

impl Split {
    /// The split of a comparison; `None` if there is none.
    pub fn of(comparison: Comparison, left: &Scalar, right: &Scalar) -> Option<Self> {
        use Comparison::{Ge, Gt, Le, Lt};
        let (left, right) = (Affine::of(left)?, Affine::of(right)?);
        // Normalise to a comparison of a loop index with a number.
        let (over, number, comparison) = match (left.over, right.over) {
            (Some(over), None) => (over, right.offset.checked_sub(left.offset)?, comparison),
            (None, Some(over)) => {
                let mirrored = match comparison {
                    Lt => Gt,
                    Gt => Lt,
                    Le => Ge,
                    Ge => Le,
                    _ => return None,
                };
                (over, left.offset.checked_sub(right.offset)?, mirrored)
            }
            _ => return None,
        };
        let (at, below) = match comparison {
            Lt => (number, true),
            Ge => (number, false),
            Le => (number.checked_add(1)?, true),
            Gt => (number.checked_add(1)?, false),
            _ => return None,
        };
        Some(Self { over, at, below })
    }
}

/// The operand whose elements are the first index of a table with `rows` rows: directly, counted from
/// the end if negative, or clamped to the table, all of which `Embedding` does for every valid index.
pub fn row_index(scalar: &Scalar, rows: i64) -> Option<(usize, &[Scalar])> {
    match scalar {
        Scalar::Load(operand, at) => Some((*operand, at)),
        Scalar::Cast(DType::I64, _, inner) => row_index(inner, rows),
        Scalar::Select(parts) => {
            let [condition, yes, no] = &**parts;
            let Scalar::Compare(Comparison::Lt, left, right) = condition else { return None };
            let Scalar::Binary(Binary::Add, index, extent) = yes else { return None };
            let is_from_end = **left == *no
                && **index == *no
                && Affine::of(right) == Some(Affine { over: None, offset: 0 })
                && Affine::of(extent) == Some(Affine { over: None, offset: rows });
            is_from_end.then(|| row_index(no, rows))?
        }
        Scalar::Binary(bound @ (Binary::Min | Binary::Max), inner, limit) => {
            let expected = if *bound == Binary::Min { rows - 1 } else { 0 };
            let limit = Affine::of(limit)?;
            (limit == Affine { over: None, offset: expected }).then(|| row_index(inner, rows))?
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Scalar {
        text.parse().expect("an expression")
    }

    #[test]
    fn indices_are_loops_and_numbers() {
        let of = |text| Affine::of(&parse(text));
        assert_eq!(of("i2 - 512"), Some(Affine { over: Some(2), offset: -512 }));
        assert_eq!(of("3"), Some(Affine { over: None, offset: 3 }));
        assert_eq!(of("i0 + i1"), None);
        assert_eq!(of("i0 * 2"), None);
    }

    #[test]
    fn comparisons_split_loops() {
        let of = |text| match parse(text) {
            Scalar::Compare(comparison, left, right) => Split::of(comparison, &left, &right),
            other => panic!("{other:?}"),
        };
        assert_eq!(of("i1 < 4"), Some(Split { over: 1, at: 4, below: true }));
        assert_eq!(of("0 <= i1 - 1"), Some(Split { over: 1, at: 1, below: false }));
        assert_eq!(of("i0 < i1"), None);
    }

    #[test]
    fn rows_are_found_by_bounded_indices() {
        let text = "max(min(select(cast<i64>(%1[i0]) < 0, cast<i64>(%1[i0]) + 9, cast<i64>(%1[i0])), 8), 0)";
        let index = parse(text);
        assert_eq!(row_index(&index, 9), Some((1, &[Scalar::Loop(0)][..])));
        assert_eq!(row_index(&index, 10), None);
    }
}
