//! `gemini-check`: checks Gemini schedules and frontend files statically.
//!
//! Does not change the module; a module without either is rejected. The errors that `irc check` finds in each
//! `gemini.schedule` and `gemini.frontend` are diagnostics at the ops.
use irc_dialects::gemini;
use irc_gemini_format::Options;
use irc_mlir::{OperationRef, Pass, PassError, PassResult, read};

/// The pass `gemini-check`.
pub struct GeminiCheck;

impl Pass for GeminiCheck {
    fn name(&self) -> &'static str {
        "gemini-check"
    }

    fn description(&self) -> &'static str {
        "prove what can be proven of Gemini schedules and frontend files"
    }

    fn run(&self, module: OperationRef<'_, '_>, _: &irc_mlir::Options) -> PassResult {
        let options = Options::default();
        let (mut checked, mut is_found) = (Ok(()), false);
        for op in read::body_ops(module) {
            let result = match read::op_name(&op).as_str() {
                "gemini.schedule" => gemini::schedule(op, &options).map(|_| ()),
                "gemini.frontend" => gemini::frontend(op, &options).map(|_| ()),
                _ => continue,
            };
            is_found = true;
            checked = checked.and(result);
        }
        match is_found {
            true => checked,
            false => {
                let message = "expected a gemini.schedule or a gemini.frontend, found none";
                Err(PassError::at(&module, message))
            }
        }
    }
}
