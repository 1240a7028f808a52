//! The command lines of `irc` and `irc-translate`, as definitions without behaviour.
//!
//! The tools parse with them; `cargo xtask man` and `cargo xtask completions` print them. Nothing
//! here depends on LLVM or MLIR.

mod common;
mod irc;
mod matrix;
mod translate;

pub use common::{
    Color, Compile, Console, Diagnostics, ENGINES, Explain, Functions, GENERATORS, Graphs, Planner,
    Progress,
};
pub use irc::{Bench, Check, Codegen, Command, CompileTo, Irc, Kind, Run, Simulate, Transport};
pub use matrix::{InputKind, Support, matrix_page};
pub use translate::{Emit, Import, TextOrBinary, Translate, Writing, double_dashes};

/// The exit codes of all tools; printed at the end of every `--help`.
const EXIT_CODES: &str = "\
Exit codes: 0 success, 1 error in the input, 2 usage error, 3 results differ, 70 internal error.";
