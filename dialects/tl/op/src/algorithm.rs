//! Ops that cannot be written as loops around an expression: sorting, cumulative sums, and results whose size
//! depends on data.

mod boxes;
mod scan;
mod trees;

use crate::values::{Values, expect_memory};
use crate::{Combine, Comparison, DType, Dim, EvalError, InferError, Tensor, TensorType, Type};

/// An algorithm with one or more results.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// Operand `x`. Results: the `k` largest or smallest elements along an axis, the most extreme
    /// first, and their positions along it (`i64`); of equal elements the one at the lower position
    /// comes first. NaN is larger than every number.
    TopK {
        /// The axis.
        axis: usize,
        /// Number of elements; at most the axis' extent.
        k: Dim,
        /// Whether to select the largest elements, not the smallest.
        largest: bool,
    },
    /// Operand `x`. Result: each element combined with those before it along an axis, one by one, in `f32` for floats of
    /// fewer bits; of the type of `x`.
    Scan {
        /// The axis.
        axis: usize,
        /// How elements are combined.
        combine: Combine,
        /// Whether those after an element are combined, from the last one on.
        reverse: bool,
        /// Whether the element itself is left out; the first is then the neutral element.
        exclusive: bool,
    },
    /// Operand `x`. Results: the indices of nonzero elements in row-major order, as
    /// `i64[rank, elements of x]`, of which only the first columns are used; and their number, an `i64`
    /// scalar. The other columns are 0.
    NonZero,
    /// Operands `boxes[batch, box, 4]`, `scores[batch, class, box]`, the maximum number of boxes per
    /// class (an integer scalar), the maximum overlap and the minimum score (scalars). Results:
    /// `batch, class, box` of the selected boxes, as `i64[batch * class * box, 3]`, of which only the first
    /// rows are used, and their number, an `i64` scalar; the other rows are 0.
    ///
    /// Per batch element and class, the boxes with a score above the minimum are visited by descending
    /// score, of equal scores the lower index first; a box that overlaps a selected box by more than
    /// the maximum is dropped. Overlap is intersection over union, in `f32`.
    NonMaxSuppression {
        /// Whether boxes are `x, y` of the centre, width and height; otherwise `y, x` of two opposite
        /// corners.
        by_center: bool,
    },
    /// Operands `x[row, feature]` (`f32` or `f64`); `nodes`, `roots`, `starts` and `targets` (`i32`, rank 1);
    /// `weights` (as `x`, rank 1). Result: `scores[row, target]`, of the type of `x`.
    ///
    /// A node is [`tree_node_words`](crate::tree_node_words) consecutive elements of `nodes`: the bits of its
    /// threshold, the low half first if they are 64; a feature; and the positions in `nodes` of its first and
    /// second child. From each root, a row moves to the second child where `x[row, feature]` and the threshold
    /// satisfy the comparison, otherwise to the first. A node that is its own first child is a leaf: its
    /// threshold is NaN, and its second number is the number of the leaf.
    ///
    /// The weights of the leaves that a row ends at are combined in the order of `roots`, each step rounded
    /// to the type of `x`. Without `starts`, every leaf has one weight per target. Otherwise leaf `i` has those
    /// from `starts[i]` to `starts[i + 1]`, each of a target in `targets`. Every position must be in range, and
    /// every path end at a leaf.
    TreeEnsemble {
        /// Number of targets.
        targets: Dim,
        /// Whether weights are added, or the smallest or largest is selected.
        combine: Combine,
        /// The condition of the second child: [`Comparison::Gt`] or [`Comparison::Le`], which do not hold for NaN.
        comparison: Comparison,
    },
}

/// Number of elements of a node of [`Algorithm::TreeEnsemble`] for features of this type.
pub const fn tree_node_words(dtype: DType) -> usize {
    match dtype {
        DType::F64 => 5,
        _ => 4,
    }
}

impl Algorithm {
    /// The name in the IR, without its dialect.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TopK { .. } => "top_k",
            Self::Scan { .. } => "scan",
            Self::NonZero => "non_zero",
            Self::NonMaxSuppression { .. } => "non_max_suppression",
            Self::TreeEnsemble { .. } => "tree_ensemble",
        }
    }

    /// The types of the results.
    ///
    /// # Errors
    /// If the operands are not as expected.
    pub fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, InferError> {
        let wrong = |message: String| InferError { op: self.name(), message };
        if let Self::NonMaxSuppression { .. } = self {
            return boxes::infer(operands).map_err(wrong);
        }
        if let Self::TreeEnsemble { targets, combine, comparison } = self {
            return trees::infer(targets, *combine, *comparison, operands).map_err(wrong);
        }
        if let Self::Scan { axis, .. } = self {
            return scan::infer(*axis, operands).map_err(wrong);
        }
        let [x] = operands else {
            return Err(wrong(format!("expected 1 operand, found {}", operands.len())));
        };
        match self {
            Self::TopK { axis, k, .. } => {
                let has_order = !matches!(x.dtype, DType::Bool | DType::String);
                if *axis >= x.rank() || !has_order {
                    return Err(wrong(format!("expected numbers of rank above {axis}, found {x}")));
                }
                if let (Some(k), Some(extent)) = (k.known(), x.dims[*axis].known())
                    && !(0..=extent).contains(&k)
                {
                    return Err(wrong(format!("expected k from 0 to {extent}, found {k}")));
                }
                let mut dims = x.dims.clone();
                dims[*axis] = k.clone();
                Ok(vec![Type::new(x.dtype, dims.clone()), Type::new(DType::I64, dims)])
            }
            Self::NonZero => {
                let dims = [Dim::Known(x.rank() as i64), x.elements()];
                Ok(vec![Type::new(DType::I64, dims), Type::new(DType::I64, [])])
            }
            Self::Scan { .. } | Self::NonMaxSuppression { .. } | Self::TreeEnsemble { .. } => {
                unreachable!("their operands are looked at above")
            }
        }
    }

    /// The values of the results; every size must be known.
    ///
    /// # Errors
    /// As [`Algorithm::infer`]; if a result cannot be allocated.
    pub fn eval(&self, operands: &[&Tensor]) -> Result<Vec<Tensor>, EvalError> {
        let types: Vec<_> = operands.iter().map(|operand| operand.ty().clone().into()).collect();
        let types = self.infer(&types)?;
        let known: Option<Vec<TensorType>> = types.iter().map(Type::known).collect();
        let message = "expected known sizes".to_owned();
        let known = known.ok_or(InferError { op: self.name(), message })?;
        expect_memory(operands, &known)?;
        match self {
            Self::TopK { axis, largest, .. } => top_k(*axis, *largest, operands[0], &known),
            Self::Scan { axis, combine, reverse, exclusive } => {
                let order = scan::Order { axis: *axis, reverse: *reverse, exclusive: *exclusive };
                scan::eval(&order, *combine, operands[0], known[0].clone())
            }
            Self::NonZero => non_zero(operands[0], &known),
            Self::NonMaxSuppression { by_center } => boxes::eval(*by_center, operands, &known),
            Self::TreeEnsemble { combine, comparison, .. } => {
                trees::eval(*combine, *comparison, operands, &known[0])
            }
        }
    }

    /// The algorithm with symbols replaced.
    pub fn substitute(&self, symbol: &dyn Fn(&str) -> Option<Dim>) -> Self {
        match self {
            Self::TopK { axis, k, largest } => {
                Self::TopK { axis: *axis, k: k.substitute(symbol), largest: *largest }
            }
            Self::TreeEnsemble { targets, combine, comparison } => Self::TreeEnsemble {
                targets: targets.substitute(symbol),
                combine: *combine,
                comparison: *comparison,
            },
            Self::Scan { .. } | Self::NonZero | Self::NonMaxSuppression { .. } => self.clone(),
        }
    }
}

fn top_k(
    axis: usize,
    largest: bool,
    x: &Tensor,
    types: &[TensorType],
) -> Result<Vec<Tensor>, EvalError> {
    let extent = x.shape()[axis] as usize;
    let k = types[0].shape[axis] as usize;
    let inner: usize = x.shape()[axis + 1..].iter().map(|size| *size as usize).product();
    let outer: usize = x.shape()[..axis].iter().map(|size| *size as usize).product();
    let values = Values::of(x);
    let (mut from, mut positions) = (vec![0; outer * k * inner], vec![0; outer * k * inner]);
    for (row, column) in (0..outer).flat_map(|row| (0..inner).map(move |column| (row, column))) {
        let at = |position: usize| (row * extent + position) * inner + column;
        let mut order: Vec<usize> = (0..extent).collect();
        order.sort_by(|left, right| {
            let order = compare(&values, at(*left), at(*right));
            if largest { order.reverse() } else { order }
        });
        for (rank, position) in order.into_iter().take(k).enumerate() {
            let to = (row * k + rank) * inner + column;
            from[to] = at(position);
            positions[to] = position as i128;
        }
    }
    let picked = crate::index::pick(x, types[0].clone(), from.into_iter())?;
    Ok(vec![picked, Values::Integer(positions).into_tensor(types[1].clone())?])
}

fn compare(values: &Values, left: usize, right: usize) -> std::cmp::Ordering {
    match values {
        Values::Integer(values) => values[left].cmp(&values[right]),
        Values::Float(values) => {
            let (left, right) = (values[left], values[right]);
            let nan = left.is_nan().cmp(&right.is_nan());
            left.partial_cmp(&right).unwrap_or(nan)
        }
    }
}

fn non_zero(x: &Tensor, types: &[TensorType]) -> Result<Vec<Tensor>, EvalError> {
    let count = x.elements();
    let mut indices = vec![0i128; x.shape().len() * count];
    let mut found = 0;
    for element in 0..count {
        if x.get_f64(element) == 0.0 {
            continue;
        }
        let mut rest = element as i64;
        for axis in (0..x.shape().len()).rev() {
            indices[axis * count + found] = i128::from(rest % x.shape()[axis]);
            rest /= x.shape()[axis];
        }
        found += 1;
    }
    let number = Values::Integer(vec![found as i128]).into_tensor(types[1].clone())?;
    Ok(vec![Values::Integer(indices).into_tensor(types[0].clone())?, number])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_keep_their_order_and_nan_is_largest() {
        let x = Tensor::from_values([4], &[2.0f32, f32::NAN, 2.0, 1.0]).expect("a tensor");
        let run = |largest| {
            let op = Algorithm::TopK { axis: 0, k: 3.into(), largest };
            op.eval(&[&x]).expect("enough elements")[1].to_f64()
        };
        assert_eq!(run(true), [1.0, 0.0, 2.0]);
        assert_eq!(run(false), [3.0, 0.0, 2.0]);
        let error = Algorithm::TopK { axis: 0, k: 5.into(), largest: true }.eval(&[&x]);
        assert_eq!(
            error.expect_err("too many").to_string(),
            "top_k: expected k from 0 to 4, found 5"
        );
    }

    #[test]
    fn the_axis_may_be_in_the_middle() {
        let x = Tensor::from_values([2, 2], &[1i32, 4, 3, 2]).expect("a tensor");
        let op = Algorithm::TopK { axis: 0, k: 1.into(), largest: true };
        let results = op.eval(&[&x]).expect("enough elements");
        assert_eq!(results[0].to_f64(), [3.0, 4.0]);
        assert_eq!(results[1].to_f64(), [1.0, 0.0]);
    }

    #[test]
    fn what_is_not_zero() {
        let x = Tensor::from_values([2, 2], &[0.0f32, 5.0, 0.0, 7.0]).expect("a tensor");
        let results = Algorithm::NonZero.eval(&[&x]).expect("any tensor");
        assert_eq!(results[0].to_f64(), [0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
        assert_eq!(results[1].to_f64(), [2.0]);
    }
}
