//! Support vector machines, with the cases of ONNX Runtime.

mod coupling;
mod pairs;

use super::labels::Labels;
use super::linear::{list, product};
use super::operator;
use super::rows::rows_of;
use super::scores::{Transform, above, best, complement, opposite};
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use irc_tl::{Binary, Combine, Comparison, Compute, DType, Dim, Relation, Scalar, Unary, ValueId};
use pairs::Pairs;

pub(in super::super) const OPERATORS: &[Operator] = &[
    operator("SVMClassifier", &[1], svm_classifier),
    operator("SVMRegressor", &[1], svm_regressor),
];

/// The function of a row and a support vector.
#[derive(Clone, Copy, PartialEq)]
enum Kernel {
    Linear,
    Poly,
    Rbf,
    Sigmoid,
}

/// A kernel with its parameters.
struct Machine {
    kernel: Kernel,
    gamma: f32,
    offset: f32,
    degree: f32,
}

impl Machine {
    fn read(cx: &Context<'_>) -> Result<Self, LowerError> {
        let kernel = match cx.string_or("kernel_type", "LINEAR")?.as_str() {
            "LINEAR" => Kernel::Linear,
            "POLY" => Kernel::Poly,
            "RBF" => Kernel::Rbf,
            "SIGMOID" => Kernel::Sigmoid,
            other => return Err(LowerError::invalid(format!("unknown kernel '{other}'"))),
        };
        let parameters = cx.floats("kernel_params")?.unwrap_or_default();
        match parameters[..] {
            [] => Ok(Self { kernel, gamma: 0.0, offset: 0.0, degree: 0.0 }),
            [gamma, offset, degree] => Ok(Self { kernel, gamma, offset, degree }),
            _ => {
                let found = parameters.len();
                let message = format!("expected 3 elements in `kernel_params`, found {found}");
                Err(LowerError::invalid(message))
            }
        }
    }

    /// The kernel of each row and each of `count` vectors.
    fn kernels(
        &self,
        cx: &mut Context<'_>,
        x: ValueId,
        vectors: &[f32],
        count: usize,
    ) -> Result<ValueId, LowerError> {
        if self.kernel == Kernel::Rbf {
            return self.rbf(cx, x, vectors, count);
        }
        let products = product(cx, x, vectors, count)?;
        let number = |value: f32| Scalar::float(f64::from(value), DType::F32);
        let product = Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1)]);
        let scaled = number(self.gamma) * product + number(self.offset);
        let body = match self.kernel {
            Kernel::Linear | Kernel::Rbf => return Ok(products),
            Kernel::Sigmoid => scaled.unary(Unary::Tanh),
            Kernel::Poly if self.degree == 2.0 => scaled.clone() * scaled,
            Kernel::Poly if self.degree == 3.0 => scaled.clone() * scaled.clone() * scaled,
            Kernel::Poly => scaled.binary(Binary::Pow, number(self.degree)),
        };
        let dims = cx.b.dims(products);
        Ok(cx.b.compute(Compute::map(dims, body), &[products])?)
    }

    /// `exp(-gamma * |x - vector|^2)`
    fn rbf(
        &self,
        cx: &mut Context<'_>,
        x: ValueId,
        vectors: &[f32],
        count: usize,
    ) -> Result<ValueId, LowerError> {
        let dims = cx.b.dims(x);
        let width = vectors.len() / count;
        if width * count != vectors.len() {
            let found = vectors.len();
            let message = format!("expected {count} support vectors, found {found} numbers");
            return Err(LowerError::invalid(message));
        }
        let width = Dim::Known(width as i64);
        let message = format!("expected rows of {width} features");
        cx.b.require(&width, Relation::Equal, &dims[1], &message)?;
        let vectors = list(cx, vectors)?;
        let place = Scalar::Loop(1) * Scalar::Size(width.clone()) + Scalar::Loop(2);
        let difference =
            Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(2)]) - Scalar::load(1, [place]);
        let square = difference.clone() * difference;
        let pairs = [dims[0].clone(), Dim::Known(count as i64)];
        let distance = Compute::reduce(pairs.clone(), Combine::Sum, [width], square);
        let distance = cx.b.compute(distance, &[x, vectors])?;
        let gamma = Scalar::float(-f64::from(self.gamma), DType::F32);
        let body = (gamma * Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1)])).unary(Unary::Exp);
        Ok(cx.b.compute(Compute::map(pairs, body), &[distance])?)
    }
}

/// A nonempty list of floats.
fn floats(cx: &Context<'_>, name: &str) -> Result<Vec<f32>, LowerError> {
    cx.floats(name)?.filter(|list| !list.is_empty()).ok_or_else(|| cx.missing(name))
}

fn svm_regressor(cx: &mut Context<'_>) -> Lowered {
    let x = rows_of(cx, 0)?;
    let x = cx.b.cast(x, DType::F32)?;
    let machine = Machine::read(cx)?;
    let (coefficients, rho) = (floats(cx, "coefficients")?, floats(cx, "rho")?);
    let count = cx.int_or("n_supports", 0)?.max(0) as usize;
    let scores = if count == 0 {
        product(cx, x, &coefficients, 1)?
    } else {
        let kernels = machine.kernels(cx, x, &floats(cx, "support_vectors")?, count)?;
        product(cx, kernels, &coefficients, 1)?
    };
    let rho = cx.b.scalar(f64::from(rho[0]), DType::F32)?;
    let scores = cx.b.binary(Binary::Add, scores, rho)?;
    if cx.int_or("one_class", 0)? == 0 {
        return Ok(vec![scores]);
    }
    let zero = cx.b.scalar(0.0, DType::F32)?;
    let inside = cx.b.compare(Comparison::Gt, scores, zero)?;
    let [yes, no] = [cx.b.scalar(1.0, DType::F32)?, cx.b.scalar(-1.0, DType::F32)?];
    Ok(vec![cx.b.select(inside, yes, no)?])
}

fn svm_classifier(cx: &mut Context<'_>) -> Lowered {
    let x = rows_of(cx, 0)?;
    let x = cx.b.cast(x, DType::F32)?;
    let labels = Labels::read(cx, "classlabels_ints")?;
    if labels.count() < 2 {
        return Err(LowerError::invalid("expected two or more classes, found one"));
    }
    let transform = Transform::read(cx)?;
    let machine = Machine::read(cx)?;
    let counts = cx.ints("vectors_per_class")?.unwrap_or_default();
    if counts.iter().all(|count| *count == 0) {
        return linear(cx, x, &labels, transform);
    }
    let coefficients = floats(cx, "coefficients")?;
    let rho = floats(cx, "rho")?;
    let pairs = Pairs::of(labels.count(), &counts, &coefficients, &rho)?;
    let kernels = machine.kernels(cx, x, &floats(cx, "support_vectors")?, pairs.vectors())?;
    let scores = pairs.scores(cx, kernels)?;
    let class = pairs.votes(cx, scores)?;
    let class = best(cx.b, class)?;
    let label = labels.of(cx, class)?;
    let scores = cx.b.cast(scores, DType::F32)?;
    let [a, b] = ["prob_a", "prob_b"].map(|name| cx.floats(name));
    let (a, b) = (a?.unwrap_or_default(), b?.unwrap_or_default());
    if !a.is_empty() || !b.is_empty() {
        let probabilities = pairs.probabilities(cx, scores, &a, &b)?;
        return Ok(vec![label, transform.of_rows(cx.b, probabilities)?]);
    }
    let scores = match (labels.count(), transform) {
        (2, Transform::None | Transform::Logistic) => opposite(cx.b, scores, transform)?,
        (2, Transform::Probit) => {
            let scores = transform.of_rows(cx.b, scores)?;
            complement(cx.b, scores)?
        }
        (2, _) => complement(cx.b, scores)?,
        _ => transform.of_rows(cx.b, scores)?,
    };
    Ok(vec![label, scores])
}

/// A machine without support vectors: a linear model with one row of coefficients per class.
fn linear(cx: &mut Context<'_>, x: ValueId, labels: &Labels, transform: Transform) -> Lowered {
    let (coefficients, rho) = (floats(cx, "coefficients")?, floats(cx, "rho")?);
    let scores = product(cx, x, &coefficients, labels.count())?;
    let rho = cx.b.scalar(f64::from(rho[0]), DType::F32)?;
    let scores = cx.b.binary(Binary::Add, scores, rho)?;
    let mut class = best(cx.b, scores)?;
    if labels.count() == 2 {
        // The second class if the larger score is high.
        let most = cx.b.reduce(irc_tl::Reduction::Max, scores, &[1], true)?;
        let are_positive = coefficients.iter().all(|value| *value >= 0.0);
        let threshold = if are_positive { 0.5_f32.next_down() } else { 0.0 };
        let high = above(cx.b, most, f64::from(threshold))?;
        class = cx.b.binary(Binary::Max, class, high)?;
    }
    Ok(vec![labels.of(cx, class)?, transform.of_rows(cx.b, scores)?])
}
