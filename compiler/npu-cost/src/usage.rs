//! The usage of the global buffers.

use crate::diagnostic::{Result, error};
use crate::mesh::{Mesh, Place};

/// Bytes in the global buffer of each core, in the order of columns; nothing if all are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage(Vec<u64>);

/// The global buffers.
#[derive(Clone, Copy)]
pub struct Room {
    /// Bytes of each.
    pub capacity: u64,
    /// Where they are.
    pub mesh: Mesh,
}

impl Usage {
    /// These bytes by core.
    pub fn of(bytes: impl IntoIterator<Item = (Place, u64)>, mesh: Mesh) -> Self {
        let mut usage = vec![0; mesh.cores() as usize];
        bytes.into_iter().for_each(|(place, bytes)| usage[mesh.index(place)] += bytes);
        Self(usage)
    }

    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        match self.0.is_empty() {
            true => self.0.clone_from(&other.0),
            false => self.0.iter_mut().zip(&other.0).for_each(|(sum, bytes)| *sum += bytes),
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.add(other);
        self
    }

    /// The maximum of both.
    #[must_use]
    pub fn or(mut self, other: &Self) -> Self {
        match self.0.is_empty() {
            true => self.0.clone_from(&other.0),
            false => {
                self.0.iter_mut().zip(&other.0).for_each(|(most, of)| *most = (*most).max(*of))
            }
        }
        self
    }

    /// The usage with `more` bytes added on each core that is not empty.
    #[must_use]
    pub fn each_with(mut self, more: u64) -> Self {
        self.0.iter_mut().filter(|bytes| **bytes > 0).for_each(|bytes| *bytes += more);
        self
    }

    /// The usage multiplied.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.0.iter_mut().for_each(|bytes| *bytes *= times);
        self
    }

    /// Checks the usage against the capacity.
    ///
    /// # Errors
    /// `cost-no-room` if the usage of a core exceeds `capacity`.
    pub fn within(self, Room { capacity, mesh }: Room) -> Result<Self> {
        match self.0.iter().position(|bytes| *bytes > capacity) {
            None => Ok(self),
            Some(core) => {
                let Place { x, y } = mesh.at(core);
                let message = format!("core ({x}, {y}) needs {} bytes of {capacity}", self.0[core]);
                Err(error("cost-no-room", message))
            }
        }
    }
}
