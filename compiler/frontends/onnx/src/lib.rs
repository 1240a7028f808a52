//! Imports ONNX and Common IR: operators, and modules as graphs of the tensor level.
//!
//! Plain Rust, no MLIR. An [`Operator`] defines an operator in one place: its domain and name, its
//! versions, and its lowering to ops of the tensor level. Type inference, shape
//! inference, evaluation and compilation all follow from the lowering. [`import`] makes an
//! [`irc_tl::Graph`] of a module; [`unsupported`] lists every node without an operator, [`rejections`] what ONNX Runtime rejects.
//!
//! # Defining an operator
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
//! `Context::version` is the version of the operator that applies to the model's operator set. A lowering
//! never guesses: an unsupported form is an error that states the reason.

mod attributes;
pub mod cases;
mod context;
mod data;
mod diagnostic;
mod import;
mod item;
mod operator;
mod ops;
mod region;
mod schema;

pub use context::{Context, LowerError, Lowered, one};
pub use data::{dense_of, dtype_of, element_of, tensor_of};
pub use diagnostic::{NodeDiagnostic, NodeDiagnosticKind};
pub use import::{
    Calls, ImportOptions, Imported, import, newer_sets, open_sizes, rejections, unsupported,
};
pub use item::{Item, Structure, is_part};
pub use operator::{ERA, ONNX, Operator};
pub use ops::{find, operators};
pub use region::Region;
