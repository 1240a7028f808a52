//! The number of operations of a graph.

use super::{Graph, NodeKind};
use crate::{Algorithm, Op, TensorType, Type};

impl Graph {
    /// Floating-point operations of one run with these values of the symbols, counted as in
    /// [`Op::flops`]. `None` if a size is unknown, or if the work depends on values: choices, loops,
    /// algorithms.
    pub fn flops(&self, symbol: &dyn Fn(&str) -> Option<i64>) -> Option<u64> {
        let mut total = 0_u64;
        for node in &self.nodes {
            let own = match &node.kind {
                NodeKind::Constant(_) | NodeKind::Host(_) | NodeKind::After => 0,
                NodeKind::Op(op) => {
                    let types = node.operands.iter().map(|value| self.ty(*value));
                    op.flops_at(types, symbol)?
                }
                NodeKind::Call { body, .. } => body.flops(symbol)?,
                NodeKind::Algorithm(Algorithm::Scan { .. }) => {
                    let ty = self.ty(node.operands[0]).eval(symbol)?;
                    ty.shape.iter().map(|size| size.cast_unsigned()).product()
                }
                NodeKind::Algorithm(_) | NodeKind::If { .. } | NodeKind::Loop { .. } => {
                    return None;
                }
            };
            total = total.saturating_add(own);
        }
        Some(total)
    }
}

impl Op {
    /// As [`Op::flops`], with these values of the symbols. `None` if a size is unknown.
    pub fn flops_at<'t>(
        &self,
        operands: impl IntoIterator<Item = &'t Type>,
        symbol: &dyn Fn(&str) -> Option<i64>,
    ) -> Option<u64> {
        let types = operands.into_iter().map(|ty| ty.eval(symbol));
        let types: Vec<TensorType> = types.collect::<Option<_>>()?;
        let known = match self {
            Self::Compute(compute) => {
                let known = |name: &str| symbol(name).map(Into::into);
                Self::Compute(compute.substitute(&known).into())
            }
            op => op.clone(),
        };
        known.flops(&types).ok()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Builder, Conv, DType, Dim, Op, Type, Unary};

    #[test]
    fn products_and_functions_are_counted() {
        let mut b = Builder::new();
        let x = b.input("x", Type::new(DType::F32, [Dim::symbol("N"), 3.into()]));
        let w = b.input("w", Type::new(DType::F32, [3, 5].map(Dim::Known)));
        let y = b.matmul(x, w).expect("a product");
        let y = b.unary(Unary::Exp, y).expect("a function");
        b.output("y", y);
        let graph = b.finish();
        assert_eq!(graph.flops(&|_| Some(4)), Some(2 * 4 * 3 * 5 + 4 * 5));
        assert_eq!(graph.flops(&|_| None), None);
    }

    #[test]
    fn indices_and_conditions_are_not_counted() {
        let mut b = Builder::new();
        let [height, width] = ["H", "W"].map(Dim::symbol);
        let x = b.input("x", Type::new(DType::F32, [1.into(), 8.into(), height, width]));
        let w = b.input("w", Type::new(DType::F32, [4, 8, 3, 3].map(Dim::Known)));
        let (strides, pads) = (vec![1, 1], vec![[1, 1]; 2]);
        let conv =
            Conv { strides: strides.clone(), dilations: strides, pads, groups: 1, outside: 0 };
        let types = [b.ty(x).clone(), b.ty(w).clone()];
        let loops = Op::Conv(conv).as_compute(&types).expect("loops");
        let y = b.op(Op::compute(loops), &[x, w]).expect("a convolution");
        b.output("y", y);
        assert_eq!(b.finish().flops(&|_| Some(10)), Some(2 * 100 * 4 * 8 * 9));
    }
}
