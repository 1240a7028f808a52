//! Checks which dialects remain after a stage of the stage table.
//!
//! Verifies the module, and reports the first op of each dialect that the stage should have lowered; does not
//! change the module.
use crate::pipeline::Pipeline;
use irc_mlir::{
    OperationRef, OptionKind, Options, Pass, PassError, PassOption, PassResult, read, walk_collect,
};
use std::collections::BTreeSet;

/// The pass `check-stage`.
pub struct CheckStage;

impl Pass for CheckStage {
    fn name(&self) -> &'static str {
        "check-stage"
    }
    fn description(&self) -> &'static str {
        "check that only the dialects that a stage may leave remain"
    }
    fn options(&self) -> &'static [PassOption] {
        const fn text(name: &'static str, help: &'static str, default: &'static str) -> PassOption {
            PassOption { name, help, default, kind: OptionKind::String }
        }
        const OPTIONS: [PassOption; 2] = [
            text("pipeline", "the pipeline the stage belongs to", "host-cpu"),
            text("stage", "the stage that has just run", ""),
        ];
        &OPTIONS
    }
    fn run(&self, module: OperationRef<'_, '_>, options: &Options) -> PassResult {
        irc_mlir::verified(&module)?;
        let Some(pipeline) = Pipeline::named(options.text("pipeline")) else {
            let message = format!("knows no pipeline '{}'", options.text("pipeline"));
            return Err(PassError::at(&module, message));
        };
        let position = pipeline
            .position(options.text("stage"))
            .map_err(|message| PassError::at(&module, message))?;
        let stage = &pipeline.stages[position];
        let mut reported = BTreeSet::new();
        let wrong = walk_collect(module, |op| {
            let dialect = dialect_of(&read::op_name(&op)).to_owned();
            let allowed = dialect == "builtin" || stage.leaves.contains(&dialect.as_str());
            !allowed && reported.insert(dialect)
        });
        let mut outcome = Ok(());
        for op in wrong {
            let leaves = stage.leaves.join(", ");
            let message =
                format!("remains after stage '{}', which leaves only {leaves}", stage.name);
            outcome = Err(PassError::at(&op, message));
        }
        outcome
    }
}

fn dialect_of(op: &str) -> &str {
    op.split('.').next().unwrap_or(op)
}
