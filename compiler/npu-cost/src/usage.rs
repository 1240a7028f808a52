//! The usage of the global buffers.

use std::collections::BTreeMap;

use crate::diagnostic::{Result, error};
use crate::mesh::Place;

/// Bytes in the global buffer of each core; cores with empty buffers are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage(BTreeMap<Place, u64>);

impl Usage {
    /// These bytes by core.
    pub fn of(bytes: &[(Place, u64)]) -> Self {
        let mut usage = Self::default();
        bytes.iter().for_each(|(place, bytes)| *usage.0.entry(*place).or_default() += bytes);
        usage
    }

    /// The sum of both.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        other.0.iter().for_each(|(place, bytes)| *self.0.entry(*place).or_default() += bytes);
        self
    }

    /// The maximum of both.
    #[must_use]
    pub fn or(mut self, other: &Self) -> Self {
        for (place, bytes) in &other.0 {
            let most = self.0.entry(*place).or_default();
            *most = (*most).max(*bytes);
        }
        self
    }

    /// The usage with `more` bytes added on each core present.
    #[must_use]
    pub fn each_with(mut self, more: u64) -> Self {
        self.0.values_mut().for_each(|bytes| *bytes += more);
        self
    }

    /// The usage multiplied.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.0.values_mut().for_each(|bytes| *bytes *= times);
        self
    }

    /// Checks the usage against the capacity.
    ///
    /// # Errors
    /// `cost-no-room` if the usage of a core exceeds `capacity`.
    pub fn within(self, capacity: u64) -> Result<Self> {
        match self.0.iter().find(|(_, bytes)| **bytes > capacity) {
            None => Ok(self),
            Some((place, bytes)) => {
                let (x, y) = (place.x, place.y);
                let message = format!("core ({x}, {y}) needs {bytes} bytes of {capacity}");
                Err(error("cost-no-room", message))
            }
        }
    }
}
