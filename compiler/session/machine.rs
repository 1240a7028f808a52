//! Contexts: one per thread, since they cannot be shared.
use irc_mlir::{Capture, CapturedDiagnostic, Context, Module};

thread_local! {
    static CONTEXT: Context = irc_dialects::new_context();
}

/// Runs `work` in this thread's context; on failure its diagnostics come back.
pub fn in_context<T>(
    work: impl for<'c> FnOnce(&'c Context) -> Option<T>,
) -> Result<T, Vec<CapturedDiagnostic>> {
    CONTEXT.with(|context| {
        let capture = Capture::new(context);
        work(context).ok_or_else(|| capture.take())
    })
}

/// Runs a textual pipeline; a pipeline that does not parse is a fault of irc.
pub fn run(context: &Context, module: &mut Module<'_>, passes: &str) -> Option<()> {
    irc_mlir::run_pipeline(context, module, passes).ok()
}
