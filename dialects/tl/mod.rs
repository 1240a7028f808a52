//! The `tl` dialect: the tensor level.

mod convert;
mod types;
mod verify;

pub use convert::{
    algorithm_of, build, build_algorithm, is_view, op_of, operand_types, symbolic_operand_types,
};
pub use types::{
    dtype_of, dtype_to_mlir, tensor_type_of, tensor_type_to_mlir, type_of, type_to_mlir,
};
pub use verify::verify;

/// The name of a fused group.
pub const GROUP: &str = "tl.group";

/// The name of a fused group's terminator.
pub const YIELD: &str = "tl.yield";

/// What a group's `kind` may be.
pub const KINDS: [&str; 6] = ["elementwise", "rows", "contraction", "reduction", "copy", "loops"];

/// The name of a call of an outlined kernel.
pub const LAUNCH: &str = "tl.launch";

/// The name of a tensor of known elements.
pub const CONSTANT: &str = "tl.constant";

/// Gives a symbol its value.
pub const SIZE: &str = "tl.size";

/// Requires two sizes to relate.
pub const CHECK: &str = "tl.check";

/// A value, once others have been computed.
pub const AFTER: &str = "tl.after";

/// One of two functions.
pub const IF: &str = "tl.if";

/// Runs a function.
pub const CALL: &str = "tl.call";

/// A function repeated.
pub const LOOP: &str = "tl.loop";

/// Ops that say how a program runs, not what is computed: they stay outside kernels.
pub const PROGRAM: [&str; 6] = [SIZE, CHECK, AFTER, IF, CALL, LOOP];
