//! Probabilities of classes from those of pairs of classes.
//!
//! The second method of T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability Estimates for Multi-class
//! Classification by Pairwise Coupling" (2004): minimises `p Q p` by coordinate descent, in at most 100 sweeps,
//! each row until its own error is small.

use crate::context::{Context, LowerError};
use irc_tl::{
    Binary, Builder, Combine, Comparison, Compute, DType, Dim, NodeKind, Scalar, Tensor, Type,
    Unary, ValueId,
};

/// Maximum number of sweeps.
const SWEEPS: i64 = 100;

/// The probabilities of the classes of each row: `pairwise[row, i, j]` is that of class `i` if it is `i` or `j`.
pub(super) fn couple(
    cx: &mut Context<'_>,
    pairwise: ValueId,
    classes: i64,
) -> Result<ValueId, LowerError> {
    let rows = cx.b.dims(pairwise)[0].clone();
    let coupling = Coupling { rows, classes };
    let matrix = coupling.matrix(cx.b, pairwise)?;
    let dims = coupling.dims();
    let start = cx.b.fill(1.0 / classes as f64, &dims, DType::F32)?;
    let mut body = cx.b.inside();
    body.input("sweep", Type::new(DType::I64, []));
    let p = body.input("p", Type::new(DType::F32, dims.clone()));
    let within = body.parameter(cx.b, matrix, "matrix");
    let (again, next) = coupling.sweep(&mut body, within, p)?;
    body.output("again", again);
    body.output("next", next);
    let operands = [integer(cx.b, SWEEPS)?, cx.b.scalar(1.0, DType::Bool)?, start, matrix];
    let kind = NodeKind::Loop { body: Box::new(body.finish()), carried: 1 };
    Ok(cx.b.region(kind, &operands, [Type::new(DType::F32, dims)])?[0])
}

fn integer(b: &mut Builder, value: i64) -> Result<ValueId, LowerError> {
    let tensor = Tensor::from_values([], &[value]);
    Ok(b.tensor(&tensor.map_err(|error| LowerError::invalid(error.to_string()))?))
}

struct Coupling {
    rows: Dim,
    classes: i64,
}

impl Coupling {
    /// Of a number per row and class.
    fn dims(&self) -> [Dim; 2] {
        [self.rows.clone(), Dim::Known(self.classes)]
    }

    /// `Q`, by row.
    fn matrix(&self, b: &mut Builder, pairwise: ValueId) -> Result<ValueId, LowerError> {
        let [class, other] = [Scalar::Loop(1), Scalar::Loop(2)];
        let at = |first: &Scalar, second: &Scalar| {
            Scalar::load(0, [Scalar::Loop(0), first.clone(), second.clone()])
        };
        let square = at(&other, &class) * at(&other, &class);
        let count = Dim::Known(self.classes);
        let diagonal = Compute::reduce(self.dims(), Combine::Sum, [count.clone()], square);
        let diagonal = b.compute(diagonal, &[pairwise])?;
        let own = Scalar::load(1, [Scalar::Loop(0), class.clone()]);
        let mixed = (at(&other, &class) * at(&class, &other)).unary(Unary::Neg);
        let body = class.equals(other).select(own, mixed);
        let dims = [self.rows.clone(), count.clone(), count];
        Ok(b.compute(Compute::map(dims, body), &[pairwise, diagonal])?)
    }

    /// One sweep: whether some row needed it, and the next probabilities.
    fn sweep(
        &self,
        b: &mut Builder,
        matrix: ValueId,
        p: ValueId,
    ) -> Result<(ValueId, ValueId), LowerError> {
        let count = || Dim::Known(self.classes);
        let [row, class, other] = [0, 1, 2].map(Scalar::Loop);
        let element = Scalar::load(0, [row.clone(), class.clone(), other.clone()]);
        let product = element * Scalar::load(1, [row.clone(), other]);
        let qp = Compute::reduce(self.dims(), Combine::Sum, [count()], product);
        let qp = b.compute(qp, &[matrix, p])?;
        let of_class = |operand: usize| Scalar::load(operand, [row.clone(), class.clone()]);
        let pqp = of_class(0) * of_class(1);
        let pqp = Compute::reduce([self.rows.clone()], Combine::Sum, [count()], pqp);
        let pqp = b.compute(pqp, &[p, qp])?;
        let error = (of_class(0) - Scalar::load(1, [row.clone()])).unary(Unary::Abs);
        let error = Compute::reduce([self.rows.clone()], Combine::Max, [count()], error);
        let error = b.compute(error, &[qp, pqp])?;
        let small = Scalar::float(f64::from(0.005_f32 / self.classes as f32), DType::F32);
        let needs = Scalar::load(0, [Scalar::Loop(0)]).ge(small).cast(DType::I64);
        let needs = b.compute(Compute::map([self.rows.clone()], needs), &[error])?;
        let need = Scalar::load(0, [Scalar::Loop(0)]);
        let again = Compute::reduce([], Combine::Sum, [self.rows.clone()], need);
        let again = b.compute(again, &[needs])?;
        let some = Scalar::load(0, []).compare(Comparison::Gt, Scalar::index(0));
        let again = b.compute(Compute::map([], some), &[again])?;

        let types = [
            Type::new(DType::F32, self.dims()),
            Type::new(DType::F32, self.dims()),
            Type::new(DType::F32, [self.rows.clone()]),
        ];
        let mut body = b.inside();
        let at = body.input("class", Type::new(DType::I64, []));
        let names = ["p", "qp", "pqp"].into_iter().zip(types.clone());
        let state: Vec<ValueId> = names.map(|(name, ty)| body.input(name, ty)).collect();
        let within = [body.parameter(b, matrix, "matrix"), body.parameter(b, needs, "needs")];
        let next = self.step(&mut body, at, &state, within)?;
        let truth = body.scalar(1.0, DType::Bool)?;
        body.output("again", truth);
        next.into_iter().for_each(|value| body.output("next", value));
        let trips = integer(b, self.classes)?;
        let start = b.scalar(1.0, DType::Bool)?;
        let operands = [trips, start, p, qp, pqp, matrix, needs];
        let kind = NodeKind::Loop { body: Box::new(body.finish()), carried: 3 };
        let results = b.region(kind, &operands, types)?;
        Ok((again, results[0]))
    }

    /// Changes the probability of one class, and normalises.
    fn step(
        &self,
        b: &mut Builder,
        at: ValueId,
        state: &[ValueId],
        [matrix, needs]: [ValueId; 2],
    ) -> Result<[ValueId; 3], LowerError> {
        let one = || Scalar::float(1.0, DType::F32);
        let [row, class] = [Scalar::Loop(0), Scalar::Loop(1)];
        let [p, qp, pqp] = [state[0], state[1], state[2]];
        // Operands: the class, the matrix, `Q p`, `p Q p`.
        let own = || Scalar::load(0, []);
        let diagonal = || Scalar::load(1, [row.clone(), own(), own()]);
        let product = || Scalar::load(2, [row.clone(), own()]);
        let total = || Scalar::load(3, [row.clone()]);
        let change = (total() - product()).binary(Binary::Div, diagonal());
        let needed = Scalar::load(4, [row.clone()]).compare(Comparison::Gt, Scalar::index(0));
        let change = needed.select(change, Scalar::float(0.0, DType::F32));
        let change = Compute::map([self.rows.clone()], change);
        let change = b.compute(change, &[at, matrix, qp, pqp, needs])?;

        let by = |operand: usize| Scalar::load(operand, [row.clone()]);
        let less = by(4) * (by(4) * diagonal() + Scalar::float(2.0, DType::F32) * product());
        let scale = || one() + by(4);
        let next_total = (total() + less) / scale() / scale();
        let next_total = Compute::map([self.rows.clone()], next_total);
        let next_total = b.compute(next_total, &[at, matrix, qp, pqp, change])?;

        let element = Scalar::load(1, [row.clone(), own(), class.clone()]);
        let moved = Scalar::load(2, [row.clone(), class.clone()]) + by(3) * element;
        let next_qp = Compute::map(self.dims(), moved / (one() + by(3)));
        let next_qp = b.compute(next_qp, &[at, matrix, qp, change])?;

        let value = Scalar::load(1, [row.clone(), class.clone()]);
        let changed = class.equals(own()).select(value.clone() + by(2), value);
        let next_p = Compute::map(self.dims(), changed / (one() + by(2)));
        let next_p = b.compute(next_p, &[at, p, change])?;
        Ok([next_p, next_qp, next_total])
    }
}
