//! Op verifiers in Rust, called from the ODS trait `RustVerified`.
use crate::{
    bridge::{self, FAILURE, SUCCESS},
    pass::{PassError, text_of},
};
use melior::ir::{OperationRef, operation::OperationLike};
use mlir_sys::{MlirLogicalResult, MlirOperation};
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, PoisonError},
};

/// Checks one op; the message is reported at the op.
pub type Verifier = fn(OperationRef<'_, '_>) -> Result<(), String>;

static VERIFIERS: Mutex<BTreeMap<&'static str, Verifier>> = Mutex::new(BTreeMap::new());

/// Registers the verifier of a dialect's ops; they carry the ODS trait `RustVerified`.
pub fn register_verifier(dialect: &'static str, verifier: Verifier) {
    VERIFIERS.lock().unwrap_or_else(PoisonError::into_inner).insert(dialect, verifier);
    // Safety: the callback is a plain function that lives as long as the process.
    unsafe { bridge::ircSetVerifier(verify) }
}

unsafe extern "C" fn verify(op: MlirOperation) -> MlirLogicalResult {
    // Safety: MLIR passes a live op for the duration of the call.
    let op = unsafe { OperationRef::from_raw(op) };
    let checked = catch_unwind(AssertUnwindSafe(|| {
        let name = op.name();
        let name = name.as_string_ref();
        let dialect = name.as_str().unwrap_or("").split('.').next().unwrap_or("");
        let found = VERIFIERS.lock().unwrap_or_else(PoisonError::into_inner).get(dialect).copied();
        found.map_or(Ok(()), |verifier| verifier(op))
    }));
    let message = match checked {
        Ok(Ok(())) => return SUCCESS,
        Ok(Err(message)) => message,
        Err(panic) => format!("internal error in the verifier: {}", text_of(&*panic)),
    };
    let _ = PassError::at(&op, message);
    FAILURE
}
