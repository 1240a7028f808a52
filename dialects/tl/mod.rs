//! The `tl` dialect: the tensor level.

mod convert;
mod dims;
mod types;
mod verify;

pub use convert::{
    algorithm_of, build, build_algorithm, is_view, op_of, operand_types, symbolic_operand_types,
};
pub use types::{
    dtype_of, dtype_to_mlir, tensor_type_of, tensor_type_to_mlir, type_of, type_to_mlir,
};
pub use verify::verify;

/// The name of a fusion group.
pub const GROUP: &str = "tl.group";

/// The name of the terminator of a fusion group.
pub const YIELD: &str = "tl.yield";

/// The values of a group's `kind`.
pub const KINDS: [&str; 7] =
    ["elementwise", "rows", "contraction", "reduction", "copy", "loops", ATTENTION];

/// The kind of a group of two products with a softmax between them, which runs in blocks of rows.
pub const ATTENTION: &str = "attention";

/// The name of a launch of an outlined kernel.
pub const LAUNCH: &str = "tl.launch";

/// The name of a constant tensor.
pub const CONSTANT: &str = "tl.constant";

/// Defines the value of a symbol.
pub const SIZE: &str = "tl.size";

/// Checks a relation between two sizes.
pub const CHECK: &str = "tl.check";

/// A value that is available after others have been computed.
pub const AFTER: &str = "tl.after";

/// Applies a function of the host.
pub const HOST: &str = "tl.host";

/// Calls one of two functions.
pub const IF: &str = "tl.if";

/// Calls a function.
pub const CALL: &str = "tl.call";

/// Calls a function repeatedly.
pub const LOOP: &str = "tl.loop";

/// Ops that control how a program runs rather than what it computes: they stay outside kernels.
pub const PROGRAM: [&str; 7] = [SIZE, CHECK, AFTER, HOST, IF, CALL, LOOP];

/// The function of a [`HOST`] op.
///
/// # Errors
/// If there is no such function.
pub fn function_of(op: irc_mlir::OperationRef<'_, '_>) -> Result<irc_tl::Function, String> {
    let name = irc_mlir::read::string(&op, "function").ok_or("function: expected a string")?;
    let arguments = irc_mlir::read::elements(&op, "arguments").unwrap_or_default();
    let arguments: Option<Vec<String>> =
        arguments.into_iter().map(irc_mlir::string_value).collect();
    irc_tl::Function::read(&name, &arguments.ok_or("arguments: expected strings")?)
}
