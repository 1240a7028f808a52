//! Typed builders and accessors, generated from the `.td` files by melior.
#![allow(missing_docs, clippy::all, clippy::unwrap_used)]

melior::dialect! {
    name: "ark",
    files: ["ark/ark.td"],
    include_directory_env_vars: ["IRC_DIALECTS_DIR"],
}
melior::dialect! {
    name: "common_ir",
    files: ["common_ir/common_ir.td"],
    include_directory_env_vars: ["IRC_DIALECTS_DIR"],
}
melior::dialect! {
    name: "gemini",
    files: ["gemini/gemini.td"],
    include_directory_env_vars: ["IRC_DIALECTS_DIR"],
}
melior::dialect! {
    name: "npu",
    files: ["npu/npu.td"],
    include_directory_env_vars: ["IRC_DIALECTS_DIR"],
}
melior::dialect! {
    name: "tl",
    files: ["tl/tl.td"],
    include_directory_env_vars: ["IRC_DIALECTS_DIR"],
}
melior::dialect! {
    name: "plan",
    files: ["plan/plan.td"],
    include_directory_env_vars: ["IRC_DIALECTS_DIR"],
}
