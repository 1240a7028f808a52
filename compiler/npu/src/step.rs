//! An instruction before configuration is elided.

use irc_npu::{Op, Origin};

/// An instruction with all the registers it needs.
#[derive(Clone, Debug)]
pub struct Step {
    /// What writes the registers, in the order of listings.
    pub configs: Vec<Op>,
    /// The instruction.
    pub op: Op,
    /// Where it comes from.
    pub origin: Origin,
    /// Workload with which it is issued.
    pub workload: usize,
}
