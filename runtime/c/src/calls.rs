//! The list of calls that a fault of the runtime prints.
//!
//! There is none in the shared library: what finds and names them is more code than the runtime. The
//! standard library walks the stack with this function of the unwinder, and what prints a frame is what it
//! passes, so that nothing of that is linked. The name is of this library alone: programs, and the
//! unwinding of panics, have that of the unwinder. A static library would not be alone with it, and takes
//! the feature `static`.
use std::ffi::{c_int, c_void};

core::arch::global_asm!(".hidden _Unwind_Backtrace");

/// `_URC_END_OF_STACK` of the Itanium C++ ABI.
const END_OF_STACK: c_int = 5;

/// Walks the stack, on which it sees nothing.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Backtrace(_frame: *const c_void, _data: *mut c_void) -> c_int {
    END_OF_STACK
}
