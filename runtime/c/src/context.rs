//! Contexts.
use crate::{
    edge::{caught, handle, handle_mut, list, put},
    error::{irc_code, irc_error},
    model::irc_model,
    pool::irc_pool,
};
use irc_runtime::{Context, ContextOptions, Guard, MAX_THREADS, Pool, pool_of};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::Arc,
};

/// The memory to run a model with. One thread may use it at a time.
pub struct irc_context {
    context: Context,
}

/// How a context is created. Zeros select the defaults, except in `size`.
#[repr(C)]
pub struct irc_context_options {
    /// Bytes of this struct: `sizeof(irc_context_options)`.
    pub size: usize,
    /// The threads that code runs on; null selects `threads` threads of the runtime.
    pub pool: *const irc_pool,
    /// Without a pool: number of threads, 1024 at most. 0 and 1 are the calling thread alone.
    pub threads: u32,
    /// Whether accesses beyond a tensor fault, to find code with such accesses.
    pub guard: u32,
    /// Bytes of workspace of each thread, if the archive states less than its code uses.
    pub workspace_bytes: u64,
    /// Maximum number of bytes of the context; 0 selects the size of the machine's memory.
    pub memory_limit: u64,
}

/// Reads options.
///
/// # Safety
/// Null, or options whose pool is null or one.
unsafe fn options(options: *const irc_context_options) -> Result<ContextOptions, irc_error> {
    // Safety: as the caller promises.
    let Some(options) = (unsafe { options.as_ref() }) else { return Ok(ContextOptions::default()) };
    if options.size < size_of::<irc_context_options>() {
        return Err(irc_error::argument("size of the options is not that of the struct"));
    }
    // Safety: as the caller promises.
    let pool: Arc<dyn Pool> = match unsafe { options.pool.as_ref() } {
        Some(pool) => Arc::new(*pool),
        None => threads(options.threads.max(1))?,
    };
    Ok(ContextOptions {
        pool,
        workspace_bytes: usize::try_from(options.workspace_bytes).unwrap_or(usize::MAX),
        memory_limit: (options.memory_limit > 0).then_some(options.memory_limit),
        guard: if options.guard == 0 { Guard::None } else { Guard::Pages },
    })
}

/// A pool of threads of the runtime.
fn threads(count: u32) -> Result<Arc<dyn Pool>, irc_error> {
    let count = count as usize;
    if !(1..=MAX_THREADS).contains(&count) {
        let message = format!("expected 1 to {MAX_THREADS} threads, found {count}");
        return Err(irc_error::argument(&message));
    }
    pool_of(count).map_err(|error| irc_error::new(irc_code::IRC_MEMORY, &error.to_string()))
}

/// Creates a context of a model, and stores it in `context`; `irc_context_free` frees it. `options` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_context_new(
    model: *const irc_model,
    options: *const irc_context_options,
    context: *mut *mut irc_context,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            put(context, null_mut(), "context")?;
            let made = Context::new(&handle(model, "model")?.model, &self::options(options)?)?;
            put(context, Box::into_raw(Box::new(irc_context { context: made })), "context")
        }
    })
}

/// Frees a context; null is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_context_free(context: *mut irc_context) {
    if !context.is_null() {
        // Safety: it was made above, and is freed once.
        drop(unsafe { Box::from_raw(context) });
    }
}

/// Bytes of memory that the context has between runs; 0 for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_context_bytes(context: *const irc_context) -> usize {
    // Safety: the header states what callers must ensure.
    unsafe { context.as_ref() }.map_or(0, |context| context.context.bytes())
}

/// Runs later calls on this number of threads of the runtime, from 1 to 1024. Results do not depend on it. After an
/// error, the context keeps its threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_context_set_threads(
    context: *mut irc_context,
    count: u32,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        let context = unsafe { handle_mut(context, "context")? };
        Ok(context.context.set_pool(threads(count)?)?)
    })
}

/// Copies `bytes` bytes to an input, and ends its binding.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_context_set_input(
    context: *mut irc_context,
    index: usize,
    data: *const c_void,
    bytes: usize,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            let data = list(data.cast(), bytes, "data")?;
            Ok(handle_mut(context, "context")?.context.set_input(index, data)?)
        }
    })
}

/// As `irc_context_set_input`, for models whose sizes depend on their inputs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_context_set_input_shaped(
    context: *mut irc_context,
    index: usize,
    shape: *const i64,
    rank: usize,
    data: *const c_void,
    bytes: usize,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            let (shape, data) = (list(shape, rank, "shape")?, list(data.cast(), bytes, "data")?);
            Ok(handle_mut(context, "context")?.context.set_input_shaped(index, shape, data)?)
        }
    })
}

/// Binds an input to memory of the caller, aligned to 64 bytes, until the context or the binding ends. The
/// memory is read in place, and the model does not write there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_context_bind_input(
    context: *mut irc_context,
    index: usize,
    data: *const c_void,
    bytes: usize,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            let context = handle_mut(context, "context")?;
            Ok(context.context.bind_input(index, data.cast(), bytes)?)
        }
    })
}

/// As `irc_context_bind_input`, for models whose sizes depend on their inputs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_context_bind_input_shaped(
    context: *mut irc_context,
    index: usize,
    shape: *const i64,
    rank: usize,
    data: *const c_void,
    bytes: usize,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            let shape = list(shape, rank, "shape")?;
            let context = handle_mut(context, "context")?;
            Ok(context.context.bind_input_shaped(index, shape, data.cast(), bytes)?)
        }
    })
}

/// Binds an output to memory of the caller, aligned to 64 bytes, until the context or the binding ends. The memory must
/// not overlap that of an input or another output, except that it may be all of the memory of the input that
/// `irc_model_output_updates` returns; `irc_context_run` checks it. Models whose sizes depend on their inputs take no other
/// memory than that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_context_bind_output(
    context: *mut irc_context,
    index: usize,
    data: *mut c_void,
    bytes: usize,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            let context = handle_mut(context, "context")?;
            Ok(context.context.bind_output(index, data.cast(), bytes)?)
        }
    })
}

/// Ends the binding of an output, which is in the memory of the context again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_context_unbind_output(
    context: *mut irc_context,
    index: usize,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe { Ok(handle_mut(context, "context")?.context.unbind_output(index)?) }
    })
}

/// Runs the model. Inputs keep their contents; those never set are zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_context_run(context: *mut irc_context) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe { Ok(handle_mut(context, "context")?.context.run()?) }
    })
}

/// The address and size of an output: in bound memory, or in the context's own, which the next run
/// overwrites.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_context_output(
    context: *const irc_context,
    index: usize,
    data: *mut *const c_void,
    bytes: *mut usize,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            let output = handle(context, "context")?.context.output(index)?;
            put(data, output.as_ptr().cast(), "data")?;
            put(bytes, output.len(), "bytes")
        }
    })
}

/// Copies an output to `data`, which must have exactly its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_context_copy_output(
    context: *const irc_context,
    index: usize,
    data: *mut c_void,
    bytes: usize,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            let output = handle(context, "context")?.context.output(index)?;
            if output.len() != bytes || data.is_null() {
                let message = format!("output {index} has {} bytes, not {bytes}", output.len());
                return Err(irc_error::argument(&message));
            }
            // The caller's memory may be where the output is.
            std::ptr::copy(output.as_ptr(), data.cast(), bytes);
            Ok(())
        }
    })
}

/// The extents of an output: of a model whose sizes depend on its inputs, those of the last run, until
/// the next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_context_output_shape(
    context: *const irc_context,
    index: usize,
    shape: *mut *const i64,
    rank: *mut usize,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            let extents = handle(context, "context")?.context.output_shape(index)?;
            put(shape, if extents.is_empty() { null() } else { extents.as_ptr() }, "shape")?;
            put(rank, extents.len(), "rank")
        }
    })
}
