//! Keeps a fatal LLVM error from taking the process down.
//!
//! LLVM reports what it cannot select by calling a handler and aborting when that returns. Here
//! code generation runs on a thread of its own; the handler hands the message to whoever waits and
//! parks the thread for good. The thread and its LLVM context leak: a rare price for a diagnostic.
use super::CodegenError;
use std::{
    cell::RefCell,
    ffi::{CStr, c_char},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Once,
        mpsc::{Sender, channel},
    },
    thread,
};

thread_local! {
    static WAITING: RefCell<Option<Sender<String>>> = const { RefCell::new(None) };
}

const STACK_BYTES: usize = 64 << 20;

/// Runs `work` on its own thread and returns what it gives, or the fatal error it met.
///
/// # Errors
/// LLVM's fatal message, or that of a panic.
pub fn isolated<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CodegenError> + Send + 'static,
) -> Result<T, CodegenError> {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // Safety: installed once, before any code generation; the handler never returns.
        unsafe { inkwell::llvm_sys::error_handling::LLVMInstallFatalErrorHandler(Some(park)) }
    });
    let (done, result) = channel();
    let (fatal, crash) = channel();
    let worker = thread::Builder::new().name("codegen".into()).stack_size(STACK_BYTES);
    let spawned = worker.spawn(move || {
        WAITING.set(Some(fatal));
        let outcome = catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|_| Err(CodegenError::new("code generation panicked")));
        // Dropped before the sender of fatal errors, so that a waiter sees the result.
        let _ = done.send(outcome);
        WAITING.set(None);
    });
    let spawned =
        spawned.map_err(|error| CodegenError::new(format!("cannot start a thread: {error}")))?;
    // Ends with an error exactly when the worker has finished without a fatal message.
    if let Ok(message) = crash.recv() {
        return Err(CodegenError::new(format!("LLVM gave up: {message}")));
    }
    let _ = spawned.join();
    result
        .recv()
        .unwrap_or_else(|_| Err(CodegenError::new("code generation ended without a result")))
}

extern "C" fn park(reason: *const c_char) {
    // Safety: LLVM passes a zero-terminated message.
    let message = unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned();
    let waiting = WAITING.take();
    if let Some(waiting) = waiting {
        let _ = waiting.send(message);
        drop(waiting);
        loop {
            thread::park();
        }
    }
    // Not one of ours: let LLVM abort.
}
