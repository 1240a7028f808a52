//! Errors, as handles with a code and a message.
use irc_runtime::{ModelError, RunError};
use std::ffi::{CString, c_char};

/// The kind of an error.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum irc_code {
    /// No error.
    IRC_OK = 0,
    /// A file cannot be read.
    IRC_FILE = 1,
    /// The archive is damaged or inconsistent; each line of the message is a diagnostic.
    IRC_INVALID = 2,
    /// The file is valid, but this runtime cannot run it.
    IRC_UNSUPPORTED = 3,
    /// The code uses instructions that this processor lacks; none of it has run.
    IRC_PROCESSOR = 4,
    /// The system cannot load the code, or it lacks a function.
    IRC_LOAD = 5,
    /// More memory is needed than allowed or available.
    IRC_MEMORY = 6,
    /// The call is wrong: a null pointer, an unknown name, memory of the wrong size or alignment.
    IRC_ARGUMENT = 7,
    /// The model failed while it ran.
    IRC_FAILED = 8,
    /// An internal error of the runtime.
    IRC_INTERNAL = 9,
    /// There is no GPU that can run the model, or no driver.
    IRC_DEVICE = 10,
}

/// An error; free it with `irc_error_free`.
pub struct irc_error {
    code: irc_code,
    message: CString,
}

impl irc_error {
    /// An error with a message.
    pub(crate) fn new(code: irc_code, message: &str) -> Self {
        let message: Vec<u8> = message.bytes().filter(|byte| *byte != 0).collect();
        irc_error { code, message: CString::new(message).unwrap_or_default() }
    }

    /// The call is wrong.
    pub(crate) fn argument(message: &str) -> Self {
        Self::new(irc_code::IRC_ARGUMENT, message)
    }
}

impl From<ModelError> for irc_error {
    fn from(error: ModelError) -> Self {
        Self::new(code_of(&error), &error.to_string())
    }
}

fn code_of(error: &ModelError) -> irc_code {
    match error {
        ModelError::File { .. } => irc_code::IRC_FILE,
        ModelError::InvalidArchive(_) => irc_code::IRC_INVALID,
        ModelError::Unsupported { .. } => irc_code::IRC_UNSUPPORTED,
        ModelError::Processor { .. } => irc_code::IRC_PROCESSOR,
        ModelError::Load { .. } => irc_code::IRC_LOAD,
        ModelError::Memory { .. } => irc_code::IRC_MEMORY,
        ModelError::Unknown { .. } | ModelError::Buffer { .. } => irc_code::IRC_ARGUMENT,
        ModelError::Failed { .. } => irc_code::IRC_FAILED,
        ModelError::Library(error) => match error {
            RunError::Load { .. } => irc_code::IRC_LOAD,
            RunError::NoMetadata { .. }
            | RunError::NotAModel { .. }
            | RunError::MissingConstants => irc_code::IRC_UNSUPPORTED,
            RunError::Processor { .. } => irc_code::IRC_PROCESSOR,
            RunError::Allocate { .. } | RunError::Memory { .. } => irc_code::IRC_MEMORY,
            RunError::InputType { .. } | RunError::UnknownInput { .. } | RunError::Input { .. } => {
                irc_code::IRC_ARGUMENT
            }
            RunError::Device(_) => irc_code::IRC_DEVICE,
            RunError::Check { .. }
            | RunError::Function { .. }
            | RunError::Kernel(_)
            | RunError::Failed(_) => irc_code::IRC_FAILED,
        },
    }
}

/// The kind of an error; `IRC_OK` for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_error_code(error: *const irc_error) -> irc_code {
    // Safety: null, or an error that was returned and not freed.
    unsafe { error.as_ref() }.map_or(irc_code::IRC_OK, |error| error.code)
}

/// The message, NUL-terminated; empty for null. It is valid until the error is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_error_message(error: *const irc_error) -> *const c_char {
    // Safety: as above.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// Frees an error; null is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_error_free(error: *mut irc_error) {
    if !error.is_null() {
        // Safety: it was made by `edge::caught`, and is freed once.
        drop(unsafe { Box::from_raw(error) });
    }
}
