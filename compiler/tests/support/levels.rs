//! Processors that code is tested for.
use irc::Target;

/// The levels of x86-64 that this machine can run, and the machine itself: what is generated differs from one
/// to the next, and each must be right.
pub fn levels() -> Vec<Target> {
    let names = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "native"];
    names.map(Target::from_name).into_iter().filter(Target::runs_here).collect()
}

/// The first level with vectors of each width that this machine can run, but of the widest the machine itself: for code that is
/// as wide as vectors, and otherwise chooses no instructions by the processor.
pub fn widths() -> Vec<Target> {
    let names = ["x86-64", "x86-64-v3", "native"];
    names.map(Target::from_name).into_iter().filter(Target::runs_here).collect()
}
