//! Passes written in Rust, registered by name so that they are available in textual pipelines, `--help`
//! and crash reproducers.
use crate::bridge::{self, FAILURE, RawOption, RawPass, SUCCESS, str_of, string_ref};
use crate::ops::builtin;
use melior::{
    Context,
    ir::{Module, OperationRef, operation::OperationLike},
    pass::PassManager,
    utility::parse_pass_pipeline,
};
use mlir_sys::{MlirLogicalResult, MlirOperation, MlirStringRef};
use std::{
    collections::BTreeMap,
    ffi::c_void,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Mutex,
};

/// The kind of an option's values; MLIR rejects others when it parses the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// Any text.
    String,
    /// A 64-bit signed integer.
    Integer,
    /// `true` or `false`.
    Boolean,
}

/// A named option of a pass.
#[derive(Clone, Copy, Debug)]
pub struct PassOption {
    /// The name in `pass{name=value}`.
    pub name: &'static str,
    /// One line for `--help`.
    pub help: &'static str,
    /// The default value, as text.
    pub default: &'static str,
    /// The kind of its values.
    pub kind: OptionKind,
}

/// The option values of one pass instance.
#[derive(Clone, Debug, Default)]
pub struct Options(BTreeMap<&'static str, String>);

impl Options {
    /// The value of a declared option; empty text for an undeclared one.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The value of an integer option; zero for an undeclared one.
    pub fn integer(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or_default()
    }

    /// The value of a boolean option.
    pub fn boolean(&self, name: &str) -> bool {
        matches!(self.text(name), "1" | "true")
    }
}

/// A failure of a pass, whose diagnostic has been emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassError(());

impl PassError {
    /// Emits an error at `op` and returns the error to propagate.
    pub fn at<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>, message: impl AsRef<str>) -> Self {
        // Safety: the op is live and the string outlives the call.
        unsafe { bridge::ircEmitOpError(op.to_raw(), string_ref(message.as_ref())) }
        PassError(())
    }
}

/// The result of a pass.
pub type PassResult = Result<(), PassError>;

/// Verifies an op and its nested ops, with an error at each invalid op.
///
/// # Errors
/// If one is invalid.
pub fn verified(op: &OperationRef<'_, '_>) -> PassResult {
    if op.verify() { Ok(()) } else { Err(PassError(())) }
}

/// A transformation or check of an op and its nested ops.
///
/// MLIR may run one pass on several ops at once from its thread pool, hence `Send + Sync`; a pass
/// must not access IR outside the op it is given.
pub trait Pass: Send + Sync + 'static {
    /// The name in pipelines: `lower-tl`.
    fn name(&self) -> &'static str;
    /// One line for `--help`.
    fn description(&self) -> &'static str;
    /// The op the pass runs on; empty for any.
    fn anchor(&self) -> &'static str {
        builtin::MODULE
    }
    /// The options the pass declares.
    fn options(&self) -> &'static [PassOption] {
        &[]
    }
    /// Dialects whose ops the pass creates.
    fn dialects(&self) -> &'static [&'static str] {
        &[]
    }
    /// Runs the pass.
    ///
    /// # Errors
    /// A [`PassError`], after the diagnostic has been emitted.
    fn run(&self, op: OperationRef<'_, '_>, options: &Options) -> PassResult;
}

static REGISTERED: Mutex<Vec<(&'static str, &'static str)>> = Mutex::new(Vec::new());

/// Registers a pass under its name, once per process.
pub fn register_pass(pass: impl Pass) {
    let mut registered = REGISTERED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if registered.iter().any(|(name, _)| *name == pass.name()) {
        return;
    }
    registered.push((pass.name(), pass.description()));
    let options: Vec<RawOption> = pass.options().iter().map(raw_option).collect();
    let dialects: Vec<MlirStringRef> = pass.dialects().iter().map(|d| string_ref(d)).collect();
    let (argument, description, anchor) = (pass.name(), pass.description(), pass.anchor());
    // Registered passes live as long as the process, as MLIR's registry does.
    let user = Box::leak(Box::new(Box::new(pass) as Box<dyn Pass>));
    // Safety: the bridge copies every string and array before it returns.
    unsafe {
        bridge::ircRegisterPass(RawPass {
            argument: string_ref(argument),
            description: string_ref(description),
            anchor: string_ref(anchor),
            options: options.as_ptr(),
            option_count: options.len() as isize,
            dialects: dialects.as_ptr(),
            dialect_count: dialects.len() as isize,
            run: run_registered,
            user: std::ptr::from_mut(user).cast(),
        });
    }
}

fn raw_option(option: &PassOption) -> RawOption {
    RawOption {
        name: string_ref(option.name),
        help: string_ref(option.help),
        value: string_ref(option.default),
        kind: match option.kind {
            OptionKind::String => 0,
            OptionKind::Integer => 1,
            OptionKind::Boolean => 2,
        },
    }
}

unsafe extern "C" fn run_registered(
    op: MlirOperation,
    values: *const MlirStringRef,
    count: isize,
    user: *mut c_void,
) -> MlirLogicalResult {
    // Safety: `user` is the leaked box of `register_pass`; the op and values live for the call.
    let (pass, op, values) = unsafe {
        let values =
            if count == 0 { &[] } else { std::slice::from_raw_parts(values, count as usize) };
        (&*user.cast::<Box<dyn Pass>>(), OperationRef::from_raw(op), values)
    };
    let names = pass.options().iter().map(|option| option.name);
    // Safety: each value is a live string of the call.
    let options = Options(
        names.zip(values.iter().map(|value| unsafe { str_of(*value) }.into_owned())).collect(),
    );
    match catch_unwind(AssertUnwindSafe(|| pass.run(op, &options))) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(PassError(()))) => FAILURE,
        Err(panic) => {
            let message = format!("internal error in pass '{}': {}", pass.name(), text_of(&*panic));
            let _ = PassError::at(&op, message);
            FAILURE
        }
    }
}

pub(crate) fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "panic without a message".to_owned())
}

/// Name and description of every Rust pass registered so far, in registration order.
pub fn registered_passes() -> Vec<(&'static str, &'static str)> {
    REGISTERED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
}

/// Registers a textual pipeline under a name of its own.
pub fn register_pipeline(name: &str, description: &str, pipeline: &str) {
    // Safety: the bridge copies the pipeline; MLIR interns name and description, so they are leaked.
    let keep = |text: &str| string_ref(Box::leak(text.to_owned().into_boxed_str()));
    unsafe {
        bridge::ircRegisterPipeline(keep(name), keep(description), string_ref(pipeline));
    }
}

/// Parses a textual pipeline anchored on `builtin.module` and runs it, verifying after each pass.
///
/// # Errors
/// The parse error's text, or a generic message if a pass failed: the reason is then in the
/// diagnostics of the context (see [`crate::Capture`]).
pub fn run_pipeline(context: &Context, module: &mut Module, pipeline: &str) -> Result<(), String> {
    run(context, module, pipeline, true)
}

/// As [`run_pipeline`], without verification after each pass: for pipelines whose passes call [`verified`]
/// where they have to.
///
/// # Errors
/// See [`run_pipeline`].
pub fn run_unverified(
    context: &Context,
    module: &mut Module,
    pipeline: &str,
) -> Result<(), String> {
    run(context, module, pipeline, false)
}

fn run(
    context: &Context,
    module: &mut Module,
    pipeline: &str,
    verifies: bool,
) -> Result<(), String> {
    let manager = PassManager::new(context);
    manager.enable_verifier(verifies);
    parse_pass_pipeline(manager.as_operation_pass_manager(), pipeline)
        .map_err(|error| error.to_string())?;
    manager.run(module).map_err(|_| "a pass failed".to_owned())
}
