//! Prevents fatal LLVM errors from ending the process.
//!
//! If LLVM cannot select an instruction, it calls a handler and aborts when the handler returns. Here code
//! generation runs on a thread of its own; the handler sends the message to the waiting thread and parks
//! its own forever. The thread and its LLVM context leak, which is rare and acceptable for a diagnostic.
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

/// Runs `work` on its own thread. Returns its result, or the fatal error.
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
    // Fails exactly if the worker has finished without a fatal message.
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
    // Not a worker thread: let LLVM abort.
}
