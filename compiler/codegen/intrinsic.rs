//! LLVM intrinsics without an op in the `llvm` dialect.
use irc_mlir::{OperationLike, read};

/// The supported intrinsic that an op calls, without the types in its name.
///
/// # Errors
/// The name of an unsupported intrinsic.
pub fn called<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>) -> Result<&'static str, String> {
    let name = read::string(op, "intrin").unwrap_or_default();
    let known = ["fptosi.sat", "fptoui.sat"]
        .into_iter()
        .find(|known| name.strip_prefix("llvm.").is_some_and(|name| name.starts_with(known)));
    known.ok_or(name)
}
