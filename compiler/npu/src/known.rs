//! What is known about layers that schedules of several cores do not state.

use std::collections::BTreeMap;

/// Layers, by name. Properties of others are inferred from what their workloads read.
pub type KnownLayers = BTreeMap<String, KnownLayer>;

/// The windows and groups of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownLayer {
    /// Rows and columns of the window.
    pub kernel: [i64; 2],
    /// Strides of rows and columns.
    pub stride: [i64; 2],
    /// Padding before the first row and column.
    pub padding: [i64; 2],
    /// Groups of channels with filters of their own.
    pub groups: i64,
}
