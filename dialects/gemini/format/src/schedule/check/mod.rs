//! What a schedule must satisfy beyond its form.

use irc_diag::{Diagnostic, Sink};

use super::Schedule;

/// What the files do not say about the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// KiB of the L2 buffer of a core, for dialects B and C, which do not tell.
    pub l2_blocks: i64,
    /// Units of 64 bytes of the WL0 buffer of a core.
    pub wl0_units: i64,
}

impl Default for Limits {
    /// SET's 1 MiB of L2. For WL0, of which no file tells the size, 2 MiB: the published
    /// schedules use up to 1.15 MiB.
    fn default() -> Self {
        Self { l2_blocks: 1024, wl0_units: 32768 }
    }
}

/// Every finding in a schedule; empty when there is none.
pub fn check(_schedule: &Schedule, _limits: &Limits) -> Vec<Diagnostic> {
    let sink = Sink::new();
    sink.into_diagnostics()
}
