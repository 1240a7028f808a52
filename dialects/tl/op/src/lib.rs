//! The tensor level: its ops as data, their types and their reference evaluator.
//!
//! An [`Op`] is a value: it can be compared, hashed and ordered, so that graphs and rewrite engines can
//! hold it. [`Op::infer`] returns the type of its result, [`Op::eval`] the result itself. `eval`
//! *defines* the op: importers, rewrite rules, constant folding and every backend are
//! tested against it. It is written for clarity, not for speed.
//!
//! # Arithmetic
//!
//! * Float ops compute in `f64` and round once, to nearest even, to the type of the result. For
//!   `+ - * /` and `sqrt` this is the correctly rounded result of the type itself, and equal to
//!   computing a 16-bit type in `f32` and rounding once.
//! * Sums (`reduce_sum`, `reduce_mean`, `matmul`) accumulate in `f64` and round once at the end. A
//!   backend accumulates in `f32`: over `n` terms it may differ by about `n * 2^-24` of the sum of
//!   magnitudes, which `irc_tensor::Tolerance::of` allows for.
//! * `sequential_sum` and `stepped_matmul` round while they accumulate, in an order that is part of
//!   their definition: backends return the same bits.
//! * `max`, `min`, `relu`, `reduce_max` and `reduce_min` return NaN when an operand is NaN.
//! * Integer `+ - *` and sums wrap around; `/` and the mean truncate toward zero, and dividing by
//!   zero gives zero, as in NumPy.
//! * `bool` is accepted in logic, data movement, `select` and `cast` only.

mod algorithm;
mod compute;
mod dim;
mod error;
mod general;
mod graph;
mod index;
mod op;
mod results;
mod scalar;
mod text;
mod ty;
mod values;

pub use algorithm::{Algorithm, tree_node_words};
pub use compute::{Combine, Compute, Number, Reduce, RowForm, RowPattern, RowSpace};
pub use dim::{Dim, Factor, Polynomial, SizeFunction};
pub use error::{EvalError, InferError};
pub use general::join;
pub use graph::{
    BuildError, Builder, Built, Check, Constant, Dependencies, Graph, GraphError, Node, NodeKind,
    Relation, Symbol, SymbolSource, ValueId,
};
pub use irc_host::{Extents, Function, Pattern, PixelFormat, Separator, Splitter, lower};
pub use irc_tensor::{DType, Tensor, TensorError, TensorType};
pub use op::{
    Attribute, AttributeKind, Attributes, Binary, Comparison, Conv, Family, Law, Op, Operands,
    Presence, Reduction, Rounding, Row, STEP, Unary, Value, broadcast_shapes, ods,
};
pub use results::Results;
pub use scalar::Scalar;
pub use text::{MAX_DEPTH, TextError};
pub use ty::Type;
