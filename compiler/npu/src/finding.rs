//! Why a schedule cannot become a program.

use irc_diag::Diagnostic;

/// A result, or what is wrong and where.
pub type Found<T> = Result<T, Box<Diagnostic>>;

/// A finding at a path of the schedule's file.
pub fn fault(code: &'static str, path: &str, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, message).path(path))
}

/// A quantity that an instruction has 32 bits for.
pub fn word(value: i64, path: &str) -> Found<u32> {
    u32::try_from(value)
        .map_err(|_| fault("emit-range", path, format!("{value} does not fit into an instruction")))
}
