//! Non-maximum suppression: selects the box with the best score among overlapping boxes.

use crate::values::Values;
use crate::{DType, Dim, EvalError, Tensor, TensorType, Type};
use std::cmp::Ordering;

pub(super) fn infer(operands: &[Type]) -> Result<Vec<Type>, String> {
    let [boxes, scores, limit, overlap, least] = operands else {
        return Err(format!("expected 5 operands, found {}", operands.len()));
    };
    if boxes.rank() != 3 || scores.rank() != 3 || !boxes.dtype.is_float() {
        return Err(format!("expected boxes and scores of rank 3, found {boxes} and {scores}"));
    }
    if boxes.dims[2].known().is_some_and(|sides| sides != 4) || boxes.dtype != scores.dtype {
        return Err(format!("expected boxes of 4 numbers like {scores}, found {boxes}"));
    }
    let scalars = [limit, overlap, least].iter().all(|ty| ty.rank() == 0);
    if !scalars || !limit.dtype.is_integer() || !overlap.dtype.is_float() {
        return Err(format!("expected an integer and two floats, found {limit} and {overlap}"));
    }
    let most = Dim::product(&scores.dims);
    let rows = Type::new(DType::I64, [most, 3.into()]);
    Ok(vec![rows, Type::new(DType::I64, [])])
}

pub(super) fn eval(
    by_center: bool,
    operands: &[&Tensor],
    types: &[TensorType],
) -> Result<Vec<Tensor>, EvalError> {
    let [boxes, scores] = [operands[0], operands[1]];
    let shape: Vec<usize> = scores.shape().iter().map(|size| *size as usize).collect();
    let (batches, classes, count) = (shape[0], shape[1], shape[2]);
    let sides = boxes.to_f64();
    let scores = scores.to_f64();
    let limit = operands[2].to_f64().first().map_or(0, |limit| limit.max(0.0) as usize);
    let threshold = |operand: usize| operands[operand].to_f64().first().copied().unwrap_or(0.0);
    let (most, least) = (threshold(3) as f32, threshold(4));
    let mut rows = vec![];
    for (batch, class) in
        (0..batches).flat_map(|batch| (0..classes).map(move |class| (batch, class)))
    {
        let of = |index: usize| Corners::of(by_center, &sides[(batch * count + index) * 4..][..4]);
        let own = &scores[(batch * classes + class) * count..][..count];
        let mut order: Vec<usize> = (0..count).filter(|index| own[*index] > least).collect();
        // `None` is NaN, which is not above any number.
        order
            .sort_by(|left, right| own[*right].partial_cmp(&own[*left]).unwrap_or(Ordering::Equal));
        let mut kept: Vec<usize> = vec![];
        for index in order {
            if kept.len() == limit {
                break;
            }
            if kept.iter().all(|other| of(index).overlap(&of(*other)) <= most) {
                kept.push(index);
            }
        }
        rows.extend(kept.into_iter().map(|index| [batch, class, index]));
    }
    let found = rows.len() as i128;
    let mut numbers: Vec<i128> = rows.into_iter().flatten().map(|index| index as i128).collect();
    numbers.resize(3 * batches * classes * count, 0);
    let number = Values::Integer(vec![found]).into_tensor(types[1].clone())?;
    Ok(vec![Values::Integer(numbers).into_tensor(types[0].clone())?, number])
}

/// A box by its minimum and maximum coordinates.
struct Corners {
    low: [f32; 2],
    high: [f32; 2],
}

impl Corners {
    fn of(by_center: bool, sides: &[f64]) -> Self {
        let [a, b, c, d] = [sides[0] as f32, sides[1] as f32, sides[2] as f32, sides[3] as f32];
        if by_center {
            let (width, height) = (c / 2.0, d / 2.0);
            return Self { low: [b - height, a - width], high: [b + height, a + width] };
        }
        Self { low: [least(a, c), least(b, d)], high: [most(a, c), most(b, d)] }
    }

    fn area(&self) -> f32 {
        (self.high[0] - self.low[0]) * (self.high[1] - self.low[1])
    }

    /// Intersection over union; 0 for boxes without area.
    fn overlap(&self, other: &Self) -> f32 {
        let side = |axis: usize| {
            let (low, high) =
                (most(self.low[axis], other.low[axis]), least(self.high[axis], other.high[axis]));
            most(high - low, 0.0)
        };
        let both = side(0) * side(1);
        let union = self.area() + other.area() - both;
        if self.area() <= 0.0 || other.area() <= 0.0 || union <= 0.0 { 0.0 } else { both / union }
    }
}

/// The smaller; NaN if either is.
fn least(left: f32, right: f32) -> f32 {
    if left.is_nan() || left < right { left } else { right }
}

/// The larger; NaN if either is.
fn most(left: f32, right: f32) -> f32 {
    if left.is_nan() || left > right { left } else { right }
}

#[cfg(test)]
mod tests {
    use crate::{Algorithm, Tensor};

    #[test]
    fn the_better_of_two_that_overlap() {
        let corners = [0.0f32, 0.0, 1.0, 1.0, 0.0, 0.1, 1.0, 1.1, 0.0, 5.0, 1.0, 6.0];
        let boxes = Tensor::from_values([1, 3, 4], &corners).expect("boxes");
        let scores = Tensor::from_values([1, 1, 3], &[0.5f32, 0.9, 0.3]).expect("scores");
        let limit = Tensor::from_values([], &[10i64]).expect("a scalar");
        let float = |value: f32| Tensor::from_values([], &[value]).expect("a scalar");
        let run = |overlap, least| {
            let algorithm = Algorithm::NonMaxSuppression { by_center: false };
            let operands = [&boxes, &scores, &limit, &float(overlap), &float(least)];
            let results = algorithm.eval(&operands).expect("operands fit");
            let count = results[1].to_f64()[0] as usize;
            let rows = results[0].to_f64();
            (0..count).map(|row| rows[3 * row + 2]).collect::<Vec<_>>()
        };
        assert_eq!(run(0.5, 0.0), [1.0, 2.0]);
        assert_eq!(run(0.9, 0.0), [1.0, 0.0, 2.0]);
        assert_eq!(run(0.9, 0.4), [1.0, 0.0]);
    }
}
