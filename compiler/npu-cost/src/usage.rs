//! How full the global buffers are.

use std::collections::BTreeMap;

use crate::diagnostic::{Result, fault};
use crate::mesh::Place;

/// Bytes of the global buffer of each core that holds anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage(BTreeMap<Place, u64>);

impl Usage {
    /// These bytes.
    pub fn of(bytes: &[(Place, u64)]) -> Self {
        let mut usage = Self::default();
        bytes.iter().for_each(|(place, bytes)| *usage.0.entry(*place).or_default() += bytes);
        usage
    }

    /// Both at once.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        other.0.iter().for_each(|(place, bytes)| *self.0.entry(*place).or_default() += bytes);
        self
    }

    /// The one or the other.
    #[must_use]
    pub fn or(mut self, other: &Self) -> Self {
        for (place, bytes) in &other.0 {
            let most = self.0.entry(*place).or_default();
            *most = (*most).max(*bytes);
        }
        self
    }

    /// As much more on each core that holds anything.
    #[must_use]
    pub fn each_with(mut self, more: u64) -> Self {
        self.0.values_mut().for_each(|bytes| *bytes += more);
        self
    }

    /// As often.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.0.values_mut().for_each(|bytes| *bytes *= times);
        self
    }

    /// Itself, if it fits.
    ///
    /// # Errors
    /// `cost-no-room`: a core holds more than `capacity`.
    pub fn within(self, capacity: u64) -> Result<Self> {
        match self.0.iter().find(|(_, bytes)| **bytes > capacity) {
            None => Ok(self),
            Some((place, bytes)) => {
                let (x, y) = (place.x, place.y);
                let message = format!("core ({x}, {y}) would hold {bytes} bytes of {capacity}");
                Err(fault("cost-no-room", message))
            }
        }
    }
}
