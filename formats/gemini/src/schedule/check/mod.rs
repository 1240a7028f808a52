//! Checks of schedules.
//!
//! Codes contain the letters of their rules: `t` DRAM ids and the mesh, `w` workloads, `x`
//! and `o` results, `d` DRAM blocks, `f` activations read, `g` weights, `k` tiles, `l` layers, `b`
//! and `r` the L2 buffer, `z` WL0, `q` the order of DRAM accesses, `a` the order of everything.
//! Known errors of published files are warnings, one for each kind and file.

mod again;
mod boxes;
mod coverage;
mod dram;
mod facts;
mod form;
mod graph;
mod ids;
mod memory;
mod operands;
mod order;
mod published;
mod residency;
mod rings;
mod sizes;
mod structure;
mod wl0;

use irc_diag::{Diagnostic, Sink};

use super::Schedule;
pub(super) use facts::Facts;
pub(super) use graph::arrivals;
use published::Published;
pub use rings::ring_spans;

/// Properties of the machine that files do not state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// KiB of the L2 buffer of a core, for dialects B and C, which do not state it.
    pub l2_blocks: i64,
    /// Units of 64 bytes of the WL0 buffer of a core.
    pub wl0_units: i64,
}

impl Default for Limits {
    /// SET's 1 MiB of L2. For WL0, whose size no file states, 2 MiB: the published
    /// schedules use up to 1.15 MiB.
    fn default() -> Self {
        Self { l2_blocks: 1024, wl0_units: 32768 }
    }
}

impl Limits {
    /// The limits of a schedule: those of the NPU that it states, if irc has written it.
    pub fn of(schedule: &Schedule) -> Self {
        let stated = schedule.target.iter().flat_map(|target| target.split(','));
        let bytes =
            stated.filter_map(|item| item.strip_prefix("buffer=")?.parse::<i64>().ok()).next();
        let default = Self::default();
        Self { l2_blocks: bytes.map_or(default.l2_blocks, |bytes| bytes / 1024), ..default }
    }
}

/// All diagnostics of a schedule.
///
/// Diagnostics have paths, but no spans: [`super::parse`] adds those.
pub fn check(schedule: &Schedule, limits: &Limits) -> Vec<Diagnostic> {
    let mut sink = Sink::new();
    form::check(schedule, &mut sink);
    // The following checks compute with boxes and sizes, which must be valid.
    if sink.has_errors() {
        return sink.into_diagnostics();
    }
    let facts = Facts::new(schedule);
    let mut published = Published::default();
    structure::check(&facts, &mut sink, &mut published);
    ids::check(&facts, &mut sink, &mut published);
    dram::check(&facts, &mut sink, &mut published);
    sizes::check(&facts, &mut sink, &mut published);
    coverage::check(&facts, &mut sink);
    operands::check(&facts, &mut sink, &mut published);
    again::check(&facts, &mut sink, &mut published);
    memory::check(&facts, limits, &mut sink, &mut published);
    residency::check(&facts, &mut sink, &mut published);
    wl0::check(&facts, limits, &mut sink, &mut published);
    order::check(&facts, &mut sink);
    graph::check(&facts, &mut sink);
    published.report(&mut sink);
    sink.into_diagnostics()
}
