//! Ensembles of decision trees.

use super::tree_node_words;
use crate::compute::Number;
use crate::{Combine, Comparison, DType, Dim, EvalError, InferError, Tensor, TensorType, Type};

pub(super) fn infer(
    targets: &Dim,
    combine: Combine,
    comparison: Comparison,
    operands: &[Type],
) -> Result<Vec<Type>, String> {
    let [x, nodes, roots, starts, of_weight, weights] = operands else {
        return Err(format!("expected 6 operands, found {}", operands.len()));
    };
    if x.rank() != 2 || !matches!(x.dtype, DType::F32 | DType::F64) {
        return Err(format!("expected rows of f32 or f64, found {x}"));
    }
    if let Some(list) = [nodes, roots, starts, of_weight]
        .into_iter()
        .find(|list| list.rank() != 1 || list.dtype != DType::I32)
    {
        return Err(format!("expected a list of i32, found {list}"));
    }
    if weights.rank() != 1 || weights.dtype != x.dtype {
        return Err(format!("expected weights of {}, found {weights}", x.dtype));
    }
    if combine == Combine::Product {
        return Err("expected the function sum, min or max, found product".into());
    }
    if !matches!(comparison, Comparison::Gt | Comparison::Le) {
        return Err(format!("expected the comparison gt or le, found {}", comparison.name()));
    }
    Ok(vec![Type::new(x.dtype, [x.dims[0].clone(), targets.clone()])])
}

pub(super) fn eval(
    combine: Combine,
    comparison: Comparison,
    operands: &[&Tensor],
    ty: &TensorType,
) -> Result<Vec<Tensor>, EvalError> {
    let places = |operand: usize| -> Vec<i64> {
        let values = operands[operand].to_i128().unwrap_or_default();
        values.into_iter().map(|value| value as i64).collect()
    };
    let [rows, targets] = [ty.shape[0] as usize, ty.shape[1] as usize];
    let trees = Trees {
        dtype: ty.dtype,
        comparison,
        nodes: places(1),
        starts: places(3),
        targets: places(4),
        weights: operands[5].to_f64(),
    };
    let (roots, x) = (places(2), operands[0].to_f64());
    let Number::Float(neutral) = combine.neutral(ty.dtype) else {
        unreachable!("scores are floats")
    };
    let mut scores = vec![neutral; rows * targets];
    let width = x.len().checked_div(rows).unwrap_or(0);
    for row in 0..rows {
        let features = &x[row * width..][..width];
        let scores = &mut scores[row * targets..][..targets];
        for root in &roots {
            let leaf = trees.leaf(features, *root)?;
            trees.add(leaf, scores, |score, weight| {
                ty.dtype.round_float(combine.function().float(score, weight))
            })?;
        }
    }
    Ok(vec![Tensor::from_f64(ty.clone(), &scores)?])
}

struct Trees {
    dtype: DType,
    comparison: Comparison,
    nodes: Vec<i64>,
    starts: Vec<i64>,
    targets: Vec<i64>,
    weights: Vec<f64>,
}

impl Trees {
    /// The number of the leaf that a row ends at.
    fn leaf(&self, features: &[f64], root: i64) -> Result<i64, EvalError> {
        let mut at = root;
        // A path visits no node twice.
        for _ in 0..=self.nodes.len() {
            let [first, second] = [2, 1].map(|back| tree_node_words(self.dtype) - back);
            let [first, second] = [self.word(at, first)?, self.word(at, second)?];
            if first == at {
                return Ok(second);
            }
            let value = get(features, self.word(at, self.threshold_words())?)?;
            let to_second = self.comparison.holds(&value, &self.threshold(at)?);
            at = if to_second { second } else { first };
        }
        Err(out_of_range("a path that ends at a leaf", root).into())
    }

    fn threshold_words(&self) -> usize {
        self.dtype.size() / 4
    }

    fn threshold(&self, node: i64) -> Result<f64, EvalError> {
        let low = self.word(node, 0)? as u32;
        if self.dtype != DType::F64 {
            return Ok(f64::from(f32::from_bits(low)));
        }
        let high = self.word(node, 1)? as u32;
        Ok(f64::from_bits(u64::from(high) << 32 | u64::from(low)))
    }

    fn word(&self, node: i64, word: usize) -> Result<i64, EvalError> {
        get(&self.nodes, node.saturating_add(word as i64))
    }

    /// Combines the weights of a leaf with the scores of a row.
    fn add(
        &self,
        leaf: i64,
        scores: &mut [f64],
        combine: impl Fn(f64, f64) -> f64,
    ) -> Result<(), EvalError> {
        if self.starts.is_empty() {
            let first = leaf.saturating_mul(scores.len() as i64);
            for (target, score) in scores.iter_mut().enumerate() {
                *score = combine(*score, get(&self.weights, first + target as i64)?);
            }
            return Ok(());
        }
        let (from, to) = (get(&self.starts, leaf)?, get(&self.starts, leaf.saturating_add(1))?);
        for place in from..to {
            let target = get(&self.targets, place)?;
            let score = usize::try_from(target).ok().and_then(|target| scores.get_mut(target));
            let score = score.ok_or_else(|| out_of_range("a target", target))?;
            *score = combine(*score, get(&self.weights, place)?);
        }
        Ok(())
    }
}

fn get<T: Copy>(values: &[T], place: i64) -> Result<T, EvalError> {
    let value = usize::try_from(place).ok().and_then(|place| values.get(place));
    Ok(*value.ok_or_else(|| out_of_range("a position in range", place))?)
}

fn out_of_range(expected: &str, found: i64) -> InferError {
    InferError { op: "tree_ensemble", message: format!("expected {expected}, found {found}") }
}

#[cfg(test)]
mod tests {
    use crate::{Algorithm, Combine, Comparison, Tensor};

    const NAN: i32 = 0x7fc0_0000;

    /// A root that compares feature 1 with 0.5, and two leaves.
    fn run(combine: Combine, comparison: Comparison, x: &[f32]) -> Result<Vec<f64>, String> {
        let half = 0.5f32.to_bits().cast_signed();
        let nodes = [half, 1, 4, 8, NAN, 0, 4, 0, NAN, 0, 8, 1];
        let list = |values: &[i32]| Tensor::from_values([values.len() as i64], values).unwrap();
        let x = Tensor::from_values([x.len() as i64 / 2, 2], x).unwrap();
        let weights = Tensor::from_values([3], &[1.0f32, 2.0, 4.0]).unwrap();
        let operands =
            [&x, &list(&nodes), &list(&[0, 0]), &list(&[0, 1, 3]), &list(&[0, 0, 1]), &weights];
        let ensemble = Algorithm::TreeEnsemble { targets: 2.into(), combine, comparison };
        let scores = ensemble.eval(&operands).map_err(|error| error.to_string())?;
        Ok(scores[0].to_f64())
    }

    #[test]
    fn nan_moves_to_the_first_child() {
        let x = [0.0, 0.5, 0.0, 0.75, 0.0, f32::NAN];
        let found = run(Combine::Sum, Comparison::Gt, &x).expect("in range");
        assert_eq!(found, [2.0, 0.0, 4.0, 8.0, 2.0, 0.0]);
        let found = run(Combine::Sum, Comparison::Le, &x).expect("in range");
        assert_eq!(found, [4.0, 8.0, 2.0, 0.0, 2.0, 0.0]);
    }

    #[test]
    fn a_target_without_weights_has_the_neutral_value() {
        let found = run(Combine::Max, Comparison::Gt, &[0.0, 0.0]).expect("in range");
        assert_eq!(found, [1.0, f64::NEG_INFINITY]);
        let error = run(Combine::Product, Comparison::Gt, &[0.0, 0.0]).expect_err("no such sum");
        assert!(error.contains("sum, min or max"), "{error}");
    }

    #[test]
    fn a_path_without_a_leaf_is_an_error() {
        let list = |values: &[i32]| Tensor::from_values([values.len() as i64], values).unwrap();
        let x = Tensor::from_values([1, 1], &[0.0f32]).unwrap();
        let run = |nodes: &[i32]| {
            let weights = Tensor::from_values([1], &[1.0f32]).unwrap();
            let operands = [&x, &list(nodes), &list(&[0]), &list(&[]), &list(&[]), &weights];
            let (combine, comparison) = (Combine::Sum, Comparison::Gt);
            let ensemble = Algorithm::TreeEnsemble { targets: 1.into(), combine, comparison };
            ensemble.eval(&operands).expect_err("no leaf").to_string()
        };
        let cycle = run(&[0, 0, 4, 4, 0, 0, 0, 0]);
        assert!(cycle.contains("a path that ends at a leaf"), "{cycle}");
        let outside = run(&[0, 0, 8, 8]);
        assert!(outside.contains("a position in range, found"), "{outside}");
    }
}
