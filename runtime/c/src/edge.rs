//! The boundary to C: panics become errors, pointers are checked.
use crate::error::{irc_code, irc_error};
use std::{
    ffi::{CStr, c_char},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    ptr::null_mut,
};

/// Runs a function that may fail or panic; the error, which the caller frees, or null.
pub fn caught(run: &dyn Fn() -> Result<(), irc_error>) -> *mut irc_error {
    // Only handles can be left inconsistent by a panic, and they hold no lock during it.
    let result = catch_unwind(AssertUnwindSafe(run));
    let error = match result {
        Ok(Ok(())) => return null_mut(),
        Ok(Err(error)) => error,
        Err(panic) => {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
            irc_error::new(irc_code::IRC_INTERNAL, message.unwrap_or("the runtime panicked"))
        }
    };
    Box::into_raw(Box::new(error))
}

/// The object of a handle.
///
/// # Errors
/// It is null; `what` says which.
///
/// # Safety
/// Null, or a handle that was returned and not freed.
pub unsafe fn handle<'h, T>(pointer: *const T, what: &str) -> Result<&'h T, irc_error> {
    // Safety: as the caller promises.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(what))
}

/// As [`handle`], mutable.
///
/// # Safety
/// As there, and nobody else uses it.
pub unsafe fn handle_mut<'h, T>(pointer: *mut T, what: &str) -> Result<&'h mut T, irc_error> {
    // Safety: as the caller promises.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

/// Writes a result to memory of the caller.
///
/// # Safety
/// Null, or memory for a result.
pub unsafe fn put<T>(to: *mut T, value: T, what: &str) -> Result<(), irc_error> {
    if to.is_null() {
        return Err(null(what));
    }
    // Safety: as the caller promises.
    unsafe { to.write(value) };
    Ok(())
}

/// A list of the caller's.
///
/// # Safety
/// Null, or that many elements.
pub unsafe fn list<'l, T>(data: *const T, count: usize, what: &str) -> Result<&'l [T], irc_error> {
    match (count, data.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(null(what)),
        // Safety: as the caller promises.
        _ => Ok(unsafe { std::slice::from_raw_parts(data, count) }),
    }
}

/// A string of the caller's; `None` of null.
///
/// # Errors
/// It is not UTF-8.
///
/// # Safety
/// Null, or a NUL-terminated string.
pub unsafe fn text<'t>(text: *const c_char) -> Result<Option<&'t str>, irc_error> {
    if text.is_null() {
        return Ok(None);
    }
    // Safety: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| irc_error::argument("a string is not UTF-8"))
}

/// A path of the caller's; `None` of null.
///
/// # Safety
/// As [`text`].
pub unsafe fn path<'t>(path: *const c_char) -> Option<&'t Path> {
    use std::os::unix::ffi::OsStrExt;
    if path.is_null() {
        return None;
    }
    // Safety: as the caller promises.
    let path = unsafe { CStr::from_ptr(path) };
    Some(Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())))
}

/// The error of a null pointer.
pub fn null(what: &str) -> irc_error {
    irc_error::argument(&format!("{what} is null"))
}
