//! The runtime for programs in C: `include/irc_runtime.h`, explained in `docs/runtime.md`.
//!
//! Names are those of C. Handles are opaque pointers. Functions that can
//! fail return an error, which is null on success; nothing unwinds into the caller.
#![allow(non_camel_case_types, reason = "the names of C")]
#![allow(clippy::missing_safety_doc, reason = "said for all functions at once in docs/runtime.md")]

mod context;
mod edge;
mod error;
mod model;
mod pool;

/// Version of this interface. It changes when a program compiled against an older header would not run.
pub const IRC_RUNTIME_ABI: u32 = 1;

/// The version of the interface of the library: `IRC_RUNTIME_ABI` of its header.
#[unsafe(no_mangle)]
pub extern "C" fn irc_abi_version() -> u32 {
    IRC_RUNTIME_ABI
}
