//! The multi-call driver behind `irc`, `irc-opt` and `irc-translate`.
fn main() {}
