//! Declarations of `bridge.cpp`.
use mlir_sys::{
    MlirAttribute, MlirDialectRegistry, MlirLogicalResult, MlirOperation, MlirStringRef, MlirType,
};
use std::ffi::{c_char, c_int, c_void};

/// One pass option as the bridge takes it.
#[repr(C)]
pub struct RawOption {
    pub name: MlirStringRef,
    pub help: MlirStringRef,
    pub value: MlirStringRef,
    pub kind: c_int,
}

/// Runs a pass on an op with its option values.
pub type RunPass = unsafe extern "C" fn(
    MlirOperation,
    *const MlirStringRef,
    isize,
    *mut c_void,
) -> MlirLogicalResult;

/// A pass as the bridge takes it; everything is copied before the call returns.
#[repr(C)]
pub struct RawPass {
    pub argument: MlirStringRef,
    pub description: MlirStringRef,
    pub anchor: MlirStringRef,
    pub options: *const RawOption,
    pub option_count: isize,
    pub dialects: *const MlirStringRef,
    pub dialect_count: isize,
    pub run: RunPass,
    pub user: *mut c_void,
}

unsafe extern "C" {
    pub fn ircSetVerifier(verifier: unsafe extern "C" fn(MlirOperation) -> MlirLogicalResult);
    pub fn ircEmitOpError(op: MlirOperation, message: MlirStringRef);
    pub fn ircEmitOpWarning(op: MlirOperation, message: MlirStringRef);
    pub fn ircEmitOpRemark(op: MlirOperation, message: MlirStringRef);
    pub fn ircTensorParts(
        ty: MlirType,
        shape: *mut *const i64,
        rank: *mut usize,
        element: *mut MlirType,
        encoding: *mut MlirAttribute,
    ) -> bool;
    pub fn ircElementsData(
        attribute: MlirAttribute,
        data: *mut *const u8,
        length: *mut usize,
    ) -> bool;
    pub fn ircKnowDialects(registry: MlirDialectRegistry);
    pub fn ircRegisterPass(pass: RawPass);
    pub fn ircRegisterPipeline(
        name: MlirStringRef,
        description: MlirStringRef,
        pipeline: MlirStringRef,
    );
    pub fn ircOptMain(
        argc: c_int,
        argv: *mut *mut c_char,
        tool: MlirStringRef,
        registry: MlirDialectRegistry,
    ) -> c_int;
    pub fn ircLspServerMain(
        argc: c_int,
        argv: *mut *mut c_char,
        registry: MlirDialectRegistry,
    ) -> c_int;
}

/// Borrows a string for the duration of a call.
pub fn string_ref(text: &str) -> MlirStringRef {
    MlirStringRef { data: text.as_ptr().cast(), length: text.len() }
}

/// # Safety
/// `raw` must point at `length` readable bytes that outlive the result.
pub unsafe fn str_of<'a>(raw: MlirStringRef) -> std::borrow::Cow<'a, str> {
    if raw.length == 0 {
        return "".into();
    }
    // Safety: guaranteed by the caller.
    let bytes = unsafe { std::slice::from_raw_parts(raw.data.cast::<u8>(), raw.length) };
    String::from_utf8_lossy(bytes)
}

pub const SUCCESS: MlirLogicalResult = MlirLogicalResult { value: 1 };
pub const FAILURE: MlirLogicalResult = MlirLogicalResult { value: 0 };
