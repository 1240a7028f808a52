//! The runtime for programs in C: `include/irc_runtime.h`, explained in `docs/runtime.md`.
//!
//! Names are those of C. Handles are pointers that only these functions look into. Functions that can
//! fail return an error, which is null when all went well; nothing unwinds into the caller.
#![allow(non_camel_case_types, reason = "the names of C")]
#![allow(clippy::missing_safety_doc, reason = "said for all functions at once in docs/runtime.md")]

mod context;
mod edge;
mod error;
mod model;
mod pool;

/// Number of this interface. It changes when a program compiled against an older header would not run.
pub const IRC_RUNTIME_ABI: u32 = 1;

/// The number of the interface that the library has: `IRC_RUNTIME_ABI` of its header.
#[unsafe(no_mangle)]
pub extern "C" fn irc_abi_version() -> u32 {
    IRC_RUNTIME_ABI
}
