//! Passes the sizes of a kernel of loops as arguments, independent of the symbols of its callers.
//!
//! `tensor<?x8xf32, #tl.dims<"floordiv(N, 2)", "8">>` is `tensor<?x8xf32, #tl.dims<"d0", "8">>` in the
//! kernel, and the launch passes `floordiv(N, 2)` as `d0`. Kernels that differ only in sizes are then
//! equal, and compute no sizes.
use irc_dialects::tl;
use irc_mlir::{
    BlockLike, BlockRef, Context, Erase, OpSpec, OperationLike, OperationRef, Value, ValueLike,
    read, replace_all_uses,
};
use irc_tl::{Algorithm, Dim, Op, Type};
use std::cell::RefCell;

/// The sizes that a launch passes to its kernel: the symbol `d<n>` of the kernel is the n-th of them.
#[derive(Default)]
pub(crate) struct Sizes {
    passed: RefCell<Vec<Dim>>,
    /// The ops, with symbols for their sizes.
    works: Vec<Work>,
}

/// An op whose sizes can be replaced.
enum Work {
    Op(Op),
    Algorithm(Algorithm),
    View,
}

impl Work {
    fn of(op: OperationRef<'_, '_>) -> Option<Self> {
        if tl::is_view(&op) {
            return Some(Self::View);
        }
        match tl::algorithm_of(op).ok()? {
            Some(algorithm) => Some(Self::Algorithm(algorithm)),
            None => tl::op_of(op).ok().map(Self::Op),
        }
    }
}

impl Sizes {
    /// The sizes of a group; `None` if all are known, and if an op's result would not follow from its
    /// renamed operands.
    pub(crate) fn of<'c: 'a, 'a>(ops: &[OperationRef<'c, 'a>]) -> Option<Self> {
        let mut sizes = Self::default();
        for op in ops {
            let work = sizes.work(Work::of(*op)?);
            let operands = tl::symbolic_operand_types(*op).ok()?;
            let operands: Vec<Type> = operands.iter().map(|ty| sizes.ty(ty)).collect();
            let results = op.results().map(|result| tl::type_of(result.r#type()).ok());
            let results: Vec<Type> =
                results.map(|ty| Some(sizes.ty(&ty?))).collect::<Option<_>>()?;
            let inferred = match &work {
                Work::Op(op) => vec![op.infer_symbolic(&operands).ok()?],
                Work::Algorithm(algorithm) => algorithm.infer(&operands).ok()?,
                Work::View => results.clone(),
            };
            if inferred != results {
                return None;
            }
            sizes.works.push(work);
        }
        let are_known = sizes.passed.borrow().is_empty();
        (!are_known).then_some(sizes)
    }

    /// The sizes, in the order of the symbols that stand for them.
    pub(crate) fn passed(&self) -> Vec<Dim> {
        self.passed.borrow().clone()
    }

    /// The size that a symbol of a kernel stands for; other symbols are returned unchanged.
    pub(crate) fn outside(symbol: &Dim, passed: &[Dim]) -> Dim {
        symbol.substitute(&|name| {
            let number: usize = name.strip_prefix('d')?.parse().ok()?;
            passed.get(number).cloned()
        })
    }

    /// Rewrites the ops of a block, those the sizes are of, with the symbols for its sizes.
    ///
    /// # Errors
    /// An op that cannot be rebuilt.
    pub(crate) fn rename<'c: 'a, 'a>(
        &self,
        context: &'c Context,
        block: BlockRef<'c, 'a>,
        ops: &[OperationRef<'c, 'a>],
    ) -> Result<(), String> {
        let renamed = |value: Value<'c, 'a>| -> Result<_, String> {
            Ok(tl::type_to_mlir(context, &self.ty(&tl::type_of(value.r#type())?)))
        };
        for index in 0..block.argument_count() {
            let argument: Value = block.argument(index).map_err(|error| error.to_string())?.into();
            irc_mlir::set_type(argument, renamed(argument)?);
        }
        for (op, work) in ops.iter().zip(&self.works) {
            let operands: Vec<Value> = op.operands().collect();
            let built = match work {
                Work::Op(work) => tl::build(context, work, &operands, op.location())?,
                Work::Algorithm(work) => {
                    tl::build_algorithm(context, work, &operands, op.location())?
                }
                Work::View => {
                    let results: Result<Vec<_>, _> =
                        op.results().map(|result| renamed(result.into())).collect();
                    let view = OpSpec::new(context, &read::op_name(op), op.location());
                    view.operands(&operands).results(&results?).build()
                }
            };
            let built = block.insert_operation_before(*op, built);
            for (old, new) in op.results().zip(built.results()) {
                replace_all_uses(old.into(), new.into());
            }
            op.erase();
        }
        Ok(())
    }

    fn work(&self, work: Work) -> Work {
        let size = |dim: &Dim| self.size(dim);
        match work {
            Work::Op(Op::Compute(compute)) => {
                Work::Op(Op::compute((*compute).clone().map_sizes(&size)))
            }
            Work::Algorithm(Algorithm::TopK { axis, k, largest }) => {
                Work::Algorithm(Algorithm::TopK { axis, k: size(&k), largest })
            }
            other => other,
        }
    }

    fn ty(&self, ty: &Type) -> Type {
        Type::new(ty.dtype, ty.dims.iter().map(|dim| self.size(dim)).collect::<Vec<_>>())
    }

    /// A symbol for a size, times a known divisor of the size: schedules need it.
    fn size(&self, dim: &Dim) -> Dim {
        if dim.known().is_some() {
            return dim.clone();
        }
        let by = dim.terms().iter().fold(0, |by, (factor, _)| divisor(by, factor.saturating_abs()));
        let rest = dim.floor_div(&by.into());
        let mut passed = self.passed.borrow_mut();
        let number = passed.iter().position(|known| *known == rest).unwrap_or_else(|| {
            passed.push(rest);
            passed.len() - 1
        });
        Dim::symbol(&format!("d{number}")) * by.into()
    }
}

/// The greatest common divisor.
fn divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dim(text: &str) -> Dim {
        text.parse().unwrap()
    }

    #[test]
    fn equal_sizes_get_one_symbol_and_keep_their_divisor() {
        let sizes = Sizes::default();
        let short = |text: &str| sizes.size(&dim(text)).to_string();
        assert_eq!(short("floordiv(N, 2)"), "d0");
        assert_eq!(short("6*N*M"), "6*d1");
        assert_eq!(short("64*floordiv(N, 2)"), "64*d0");
        assert_eq!(short("4 - 2*N"), "2*d2");
        assert_eq!(short("7"), "7");
        let passed = sizes.passed();
        for text in ["floordiv(N, 2)", "6*N*M", "4 - 2*N"] {
            assert_eq!(Sizes::outside(&sizes.size(&dim(text)), &passed), dim(text));
        }
        assert_eq!(Sizes::outside(&dim("N + d9"), &passed), dim("N + d9"));
    }
}
