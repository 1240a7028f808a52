//! The operators of ONNX and Common IR, and graphs of them at the tensor level.
//!
//! Plain Rust, no MLIR. An [`Operator`] is the one home of an operator: its domain and name, the
//! versions of its meaning, and how it is written as ops of the tensor level. Type inference, shape
//! inference, evaluation and compilation all follow from what it writes. [`import`] makes an
//! [`irc_tl::Graph`] of a module; [`unsupported`] lists every node that has no home.
//!
//! # Writing an operator
//!
//! ```
//! use irc_onnx_ops::{Context, Lowered, Operator, one};
//! use irc_tl::Unary;
//!
//! fn lower(cx: &mut Context<'_>) -> Lowered {
//!     let x = cx.input(0)?;
//!     one(cx.b.unary(Unary::Neg, x))
//! }
//!
//! const NEG: Operator = Operator::new("Neg", &[1, 6, 13], lower);
//! ```
//!
//! `Context::version` is the entry of the operator's versions that the model means. A lowering never
//! guesses: what it cannot write is an error that says why.

mod attributes;
pub mod cases;
mod context;
mod data;
mod import;
mod operator;
mod ops;

pub use context::{Context, LowerError, Lowered, one};
pub use data::{dense_of, dtype_of, element_of, tensor_of};
pub use import::{
    Calls, ImportOptions, Imported, Item, NodeDiagnostic, NodeDiagnosticKind, Region, Structure,
    import, unsupported,
};
pub use operator::{ERA, ONNX, Operator, find, operators};
