//! Instructions before redundant configuration is elided.

use irc_npu::{Op, Origin};

/// An instruction with all the register writes it needs.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its register writes, in the order of listings.
    pub configs: Vec<Op>,
    /// The instruction.
    pub op: Op,
    /// Its origin.
    pub origin: Origin,
    /// Workload with which it is issued.
    pub workload: usize,
}
