//! Memoisation, so that a tree that differs little from an earlier one is cheap.

use std::collections::HashMap;
use std::sync::Arc;

use irc_diag::Diagnostic;

use crate::diagnostic::{Result, error};
use crate::leaf::{Layout, PlacedLayer, Task};
use crate::machine::Machine;
use crate::objective::Objective;
use crate::partition::{Partition, Scheme};

/// Limit on the sum of parts over memoised leaves: some hundred MB. When it is reached, all are dropped.
const MAX_LEAF_PARTS: u64 = 1 << 20;
/// The same for layouts.
const MAX_LAYOUT_PARTS: u64 = 1 << 19;

/// The inputs that determine a leaf's scheme and cost on one machine.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Leaf {
    layer: usize,
    batch: u64,
    times: u64,
    cores: (u64, u64),
    stores: bool,
    scheme: Option<Scheme>,
    price: Option<u64>,
    /// Results passed directly: layer, scheme, first core, images.
    direct: Vec<(usize, Scheme, u64, u64)>,
}

/// Layouts of layers and schemes of leaves. Maps are never enumerated, so that their order does not matter.
#[derive(Default)]
pub struct Memo {
    layouts: HashMap<(usize, Partition, u64), Option<Arc<Layout>>>,
    layout_parts: u64,
    leaves: HashMap<Leaf, Option<Arc<PlacedLayer>>>,
    leaf_parts: u64,
}

impl Memo {
    /// Memoised [`Task::place`].
    ///
    /// # Errors
    /// As there, and `cost-no-scheme` if no partition fits the memories of the cores.
    pub fn place(
        &mut self,
        task: &Task<'_>,
        machine: &Machine,
        objective: Objective,
    ) -> Result<Arc<PlacedLayer>> {
        let leaf = Leaf::of(task);
        if let Some(known) = self.leaves.get(&leaf) {
            return known.clone().ok_or_else(no_scheme);
        }
        let node = &task.network.nodes()[task.layer];
        let mut layouts = |partition: Partition| {
            let new = || Layout::new(node, partition, task.batch, machine, objective).map(Arc::new);
            if self.layout_parts > MAX_LAYOUT_PARTS {
                self.layouts.clear();
                self.layout_parts = 0;
            }
            let known = self.layouts.entry((task.layer, partition, task.batch));
            known
                .or_insert_with(|| {
                    self.layout_parts += partition.parts();
                    new()
                })
                .clone()
        };
        let placed = task.place(machine, objective, &mut layouts)?.map(Arc::new);
        if self.leaf_parts > MAX_LEAF_PARTS {
            self.leaves.clear();
            self.leaf_parts = 0;
        }
        self.leaf_parts += task.cores.end - task.cores.start;
        self.leaves.insert(leaf, placed.clone());
        placed.ok_or_else(no_scheme)
    }
}

fn no_scheme() -> Box<Diagnostic> {
    error("cost-no-scheme", "no partition fits the memories of the cores")
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
            price: task.price.filter(|_| task.scheme.is_none()).map(f64::to_bits),
            direct: task.direct.iter().filter_map(made).collect(),
        }
    }
}
