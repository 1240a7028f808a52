//! MLIR contexts, one per thread, since they cannot be shared; and runs of the pipeline in them.
use crate::pipeline::Settings;
use irc_mlir::{Capture, CapturedDiagnostic, Context, Module};

thread_local! {
    static CONTEXT: Context = irc_dialects::new_context();
}

/// Runs `work` in this thread's context. Returns the captured diagnostics on failure.
pub fn in_context<T>(
    work: impl for<'c> FnOnce(&'c Context) -> Option<T>,
) -> Result<T, Vec<CapturedDiagnostic>> {
    CONTEXT.with(|context| captured(context, work))
}

/// As [`in_context`], in a context of its own, for modules whose text contains resources: a context keeps
/// the resources of all its modules, and renames those that share a name.
pub fn in_new_context<T>(
    work: impl for<'c> FnOnce(&'c Context) -> Option<T>,
) -> Result<T, Vec<CapturedDiagnostic>> {
    captured(&irc_dialects::new_context(), work)
}

fn captured<T>(
    context: &Context,
    work: impl for<'c> FnOnce(&'c Context) -> Option<T>,
) -> Result<T, Vec<CapturedDiagnostic>> {
    let capture = Capture::new(context);
    work(context).ok_or_else(|| capture.take())
}

/// Runs the stages after `from`, up to and including `to`; unknown stages are an internal error. The module
/// is verified after each stage, by `check-stage`: after each pass would take longer than the passes.
pub fn run_stages(
    context: &Context,
    module: &mut Module<'_>,
    settings: &Settings,
    from: &str,
    to: &str,
) -> Option<()> {
    let passes = settings.pipeline.text(settings, Some(from), Some(to)).ok()?;
    irc_mlir::run_unverified(context, module, &passes).ok()
}
