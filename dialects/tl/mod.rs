//! The `tl` dialect: the tensor level.

mod convert;
mod verify;

pub use convert::{
    build, dtype_of, dtype_to_mlir, op_of, operand_types, tensor_type_of, type_to_mlir,
};
pub use verify::verify;

/// The name of a fused group.
pub const GROUP: &str = "tl.group";

/// The name of a fused group's terminator.
pub const YIELD: &str = "tl.yield";

/// What a group's `kind` may be.
pub const KINDS: [&str; 5] = ["elementwise", "rows", "contraction", "reduction", "copy"];

/// The name of a call of an outlined kernel.
pub const LAUNCH: &str = "tl.launch";
