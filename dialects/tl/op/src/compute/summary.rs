//! What loops around an expression compute, in a few words.

use super::{Combine, Compute};
use crate::{Binary, Op, Scalar};

/// Maximum number of functions that a summary lists.
const MAX_FUNCTIONS: usize = 3;

impl Compute {
    /// The name of what it computes: of a sum of products, a reduction, or the first functions that it applies; `None` if it
    /// only moves elements.
    pub fn summary(&self) -> Option<String> {
        let mut body = Body { outer: self.dims.len(), ..Body::default() };
        body.read(&self.body);
        let name = match self.reduction.as_ref().map(|reduction| reduction.combine) {
            None if body.functions.is_empty() => return body.gathers.then(|| "gather".to_owned()),
            None => {
                body.functions.truncate(MAX_FUNCTIONS);
                return Some(body.functions.join("_"));
            }
            Some(Combine::Sum) if body.multiplies && body.has_windows => "conv",
            Some(Combine::Sum) if body.multiplies => "matmul",
            Some(Combine::Sum) if body.has_windows => "sum_pool",
            Some(Combine::Sum) => "reduce_sum",
            Some(Combine::Product) => "reduce_product",
            Some(Combine::Max) if body.has_windows => "max_pool",
            Some(Combine::Max) => "reduce_max",
            Some(Combine::Min) => "reduce_min",
        };
        Some(name.to_owned())
    }
}

/// What the expression of a general op does.
#[derive(Default)]
struct Body {
    /// The number of loops over the result; those of a reduction come after them.
    outer: usize,
    /// The functions applied to elements, each once, in the order of their first application.
    functions: Vec<&'static str>,
    /// Whether elements are multiplied by elements.
    multiplies: bool,
    /// Whether elements are read at indices that are read.
    gathers: bool,
    /// Whether elements are read at the positions of a window.
    has_windows: bool,
}

impl Body {
    /// Adds an expression; returns whether it reads elements.
    fn read(&mut self, scalar: &Scalar) -> bool {
        let (reads, op) = match scalar {
            Scalar::Float(..) | Scalar::Int(..) | Scalar::Loop(_) | Scalar::Size(_) => {
                return false;
            }
            Scalar::Load(_, at) => {
                at.iter().for_each(|index| self.read_index(index));
                return true;
            }
            Scalar::Cast(_, _, x) => return self.read(x),
            Scalar::Unary(function, x) => (self.read(x), Op::Unary(*function)),
            Scalar::Binary(function, x, y) => {
                let reads = [self.read(x), self.read(y)];
                self.multiplies |= *function == Binary::Mul && reads == [true; 2];
                (reads.contains(&true), Op::Binary(*function))
            }
            Scalar::Compare(comparison, x, y) => {
                (self.read(x) | self.read(y), Op::Compare(*comparison))
            }
            Scalar::Select(parts) => {
                let [condition, yes, no] = parts.each_ref().map(|part| self.read(part));
                // A condition on indices guards a load.
                if !condition {
                    return yes | no;
                }
                (true, Op::Select)
            }
        };
        if reads && !self.functions.contains(&op.name()) {
            self.functions.push(op.name());
        }
        reads
    }

    /// Adds an index.
    fn read_index(&mut self, index: &Scalar) {
        let (mut is_outer, mut is_inner) = (false, false);
        index.walk(&mut |part| match part {
            Scalar::Loop(number) if *number < self.outer => is_outer = true,
            Scalar::Loop(_) => is_inner = true,
            Scalar::Load(..) => self.gathers = true,
            _ => {}
        });
        self.has_windows |= is_outer && is_inner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Dim, Unary};

    fn element(operand: usize, at: &[Scalar]) -> Scalar {
        Scalar::load(operand, at)
    }

    #[test]
    fn general_ops_are_named_for_what_they_compute() {
        let [i, j, k] = [0, 1, 2].map(Scalar::Loop);
        let n = || Dim::symbol("N");
        let name = |compute: &Compute| compute.summary();
        let reduced = |combine, body| {
            name(&Compute::reduce(vec![n(), n()], combine, [3.into()], body)).unwrap_or_default()
        };
        let map = |body| name(&Compute::map([n(), n()], body));
        let row = || element(0, &[i.clone(), k.clone()]);
        let window = || element(0, &[i.clone(), j.clone() + k.clone()]);
        let filter = || element(1, std::slice::from_ref(&k));
        assert_eq!(reduced(Combine::Sum, row() * filter()), "matmul");
        assert_eq!(reduced(Combine::Sum, window() * filter()), "conv");
        assert_eq!(reduced(Combine::Sum, window()), "sum_pool");
        assert_eq!(reduced(Combine::Max, window()), "max_pool");
        assert_eq!(reduced(Combine::Max, row().unary(Unary::Abs)), "reduce_max");

        let [x, y] = [0, 1].map(|operand| element(operand, &[i.clone(), j.clone()]));
        let root = (x.clone() * y.clone() + y.clone() * y.clone()).unary(Unary::Sqrt);
        assert_eq!(map(root).as_deref(), Some("mul_add_sqrt"));
        let zero = Scalar::float(0.0, DType::F32);
        let padded = i.clone().lt(j.clone()).select(x.clone(), zero);
        assert_eq!(map(padded), None);
        let selected = x.clone().lt(y.clone()).select(x.clone(), y.clone());
        assert_eq!(map(selected).as_deref(), Some("lt_select"));
        let row = element(0, &[element(1, std::slice::from_ref(&i)).cast(DType::I64), j.clone()]);
        assert_eq!(map(row).as_deref(), Some("gather"));
        assert_eq!(map(element(0, &[j.clone(), i.clone()])), None);
    }
}
