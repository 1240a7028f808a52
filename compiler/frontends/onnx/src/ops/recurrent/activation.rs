//! Activation functions of gates.

use crate::context::{Context, LowerError};
use crate::ops::pieces::loops;
use irc_tl::{Binary, Builder, Built, Compute, DType, Scalar, Unary, ValueId};

/// A function of every element, with its parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Activation {
    function: Function,
    alpha: f64,
    beta: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Relu,
    Tanh,
    Sigmoid,
    Affine,
    LeakyRelu,
    ThresholdedRelu,
    ScaledTanh,
    HardSigmoid,
    Elu,
    Softsign,
    Softplus,
}

/// Name, function, and the defaults of `alpha` and `beta` where it has them.
const FUNCTIONS: [(&str, Function, Option<f64>, Option<f64>); 11] = [
    ("relu", Function::Relu, None, None),
    ("tanh", Function::Tanh, None, None),
    ("sigmoid", Function::Sigmoid, None, None),
    ("affine", Function::Affine, Some(1.0), Some(0.0)),
    ("leakyrelu", Function::LeakyRelu, Some(0.01), None),
    ("thresholdedrelu", Function::ThresholdedRelu, Some(1.0), None),
    ("scaledtanh", Function::ScaledTanh, Some(1.0), Some(1.0)),
    ("hardsigmoid", Function::HardSigmoid, Some(0.2), Some(0.5)),
    ("elu", Function::Elu, Some(1.0), None),
    ("softsign", Function::Softsign, None, None),
    ("softplus", Function::Softplus, None, None),
];

/// The functions of the node, or the defaults for each direction. Functions with parameters take them
/// in order.
pub(super) fn all(
    cx: &Context<'_>,
    defaults: &[&str],
    directions: usize,
) -> Result<Vec<Activation>, LowerError> {
    let default = || defaults.iter().map(|name| (*name).to_owned());
    let names = cx.strings("activations")?.filter(|names| !names.is_empty());
    let names = names.unwrap_or_else(|| (0..directions).flat_map(|_| default()).collect());
    let expected = defaults.len() * directions;
    if names.len() != expected {
        let message = format!("expected {expected} activations, found {names:?}");
        return Err(LowerError::invalid(message));
    }
    let mut alphas = cx.floats("activation_alpha")?.unwrap_or_default().into_iter();
    let mut betas = cx.floats("activation_beta")?.unwrap_or_default().into_iter();
    let mut found = vec![];
    for name in names {
        let lower = name.to_lowercase();
        let known = FUNCTIONS.iter().find(|(known, ..)| *known == lower);
        let Some((_, function, alpha, beta)) = known else {
            return Err(LowerError::invalid(format!("expected an activation, found {name}")));
        };
        let take = |default: &Option<f64>, given: &mut dyn Iterator<Item = f32>| {
            default.map_or(0.0, |default| given.next().map_or(default, f64::from))
        };
        let (alpha, beta) = (take(alpha, &mut alphas), take(beta, &mut betas));
        found.push(Activation { function: *function, alpha, beta });
    }
    Ok(found)
}

impl Activation {
    /// Applies the function to every element of a matrix.
    pub fn apply(self, b: &mut Builder, x: ValueId) -> Built {
        match self.function {
            Function::Relu => b.unary(Unary::Relu, x),
            Function::Tanh => b.unary(Unary::Tanh, x),
            Function::Sigmoid => b.unary(Unary::Sigmoid, x),
            _ => {
                let dims = b.dims(x);
                let body = self.scalar(Scalar::load(0, loops(0..dims.len())), b.dtype(x));
                b.compute(Compute::map(dims, body), &[x])
            }
        }
    }

    fn scalar(self, x: Scalar, dtype: DType) -> Scalar {
        let number = |value: f64| Scalar::float(value, dtype);
        let (alpha, beta) = (number(self.alpha), number(self.beta));
        let zero = || number(0.0);
        match self.function {
            Function::Relu => x.unary(Unary::Relu),
            Function::Tanh => x.unary(Unary::Tanh),
            Function::Sigmoid => x.unary(Unary::Sigmoid),
            Function::Affine => alpha * x + beta,
            Function::LeakyRelu => x.clone().lt(zero()).select(alpha * x.clone(), x),
            Function::ThresholdedRelu => alpha.lt(x.clone()).select(x, zero()),
            Function::ScaledTanh => alpha * (beta * x).unary(Unary::Tanh),
            Function::HardSigmoid => (alpha * x + beta).max(zero()).min(number(1.0)),
            Function::Elu => {
                let below = alpha * (x.clone().unary(Unary::Exp) - number(1.0));
                x.clone().lt(zero()).select(below, x)
            }
            Function::Softsign => x.clone() / (number(1.0) + x.unary(Unary::Abs)),
            // `log(1 + e^x)`, without overflow.
            Function::Softplus => {
                let small = (number(0.0) - x.clone().unary(Unary::Abs)).unary(Unary::Exp);
                x.binary(Binary::Max, zero()) + small.unary(Unary::Log1p)
            }
        }
    }
}
