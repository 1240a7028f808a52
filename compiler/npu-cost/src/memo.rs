//! Memoisation, so that a tree that differs little from an earlier one is cheap.

use std::collections::BTreeMap;

use crate::diagnostic::Result;
use crate::leaf::{PlacedLayer, Task};
use crate::machine::Machine;
use crate::mapper::{self, Mapping};
use crate::objective::Objective;
use crate::partition::{Partition, Scheme};

/// Limit on the sum of cores over memoised leaves: some hundred MB. When it is reached, all are dropped.
const MAX_CORES: u64 = 1 << 18;

/// The inputs that determine a leaf's scheme and cost on one machine.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Leaf {
    layer: usize,
    batch: u64,
    times: u64,
    cores: (u64, u64),
    stores: bool,
    scheme: Option<Scheme>,
    /// Results passed directly: layer, scheme, first core, images.
    direct: Vec<(usize, Scheme, u64, u64)>,
}

/// Mappings of a layer's parts and schemes of leaves.
#[derive(Default)]
pub struct Memo {
    mappings: BTreeMap<(usize, Partition, u64), Option<Mapping>>,
    leaves: BTreeMap<Leaf, PlacedLayer>,
}

impl Memo {
    /// Memoised [`Task::place`].
    ///
    /// # Errors
    /// As there.
    pub fn place(
        &mut self,
        task: &Task<'_>,
        machine: &Machine,
        objective: Objective,
    ) -> Result<PlacedLayer> {
        let leaf = Leaf::of(task);
        if let Some(placed) = self.leaves.get(&leaf) {
            return Ok(placed.clone());
        }
        let node = &task.network.nodes()[task.layer];
        let mut map = |partition, batch| {
            let search = || mapper::map(node, partition, batch, machine, objective);
            *self.mappings.entry((task.layer, partition, batch)).or_insert_with(search)
        };
        let placed = task.place(machine, objective, &mut map)?;
        if self.leaves.len() as u64 * machine.mesh.cores() >= MAX_CORES {
            self.leaves.clear();
        }
        self.leaves.insert(leaf, placed.clone());
        Ok(placed)
    }
}

impl Leaf {
    fn of(task: &Task<'_>) -> Self {
        let made = |layer: &usize| {
            let made = task.made[*layer].as_ref()?;
            Some((*layer, made.scheme, made.first, made.batch))
        };
        Self {
            layer: task.layer,
            batch: task.batch,
            times: task.times,
            cores: (task.cores.start, task.cores.end),
            stores: task.stores,
            scheme: task.scheme,
            direct: task.direct.iter().filter_map(made).collect(),
        }
    }
}
