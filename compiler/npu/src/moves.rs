//! Movements between a core's buffers and DRAM, by workload.

use irc_gemini_format::Nullable;
use irc_gemini_format::schedule::{PlaceKind, Resident, ResidentKind, Source, Wl0Row, Wl0Source};

use crate::diagnostic::Result;
use crate::tensors::View;

/// A movement between DRAM and a core.
#[derive(Clone, Copy, Debug)]
pub struct Move<'s> {
    /// Index among all movements of the core.
    pub order: i64,
    /// The kind of movement.
    pub what: Movement<'s>,
    /// Whether the workload with which it is listed reads it.
    pub is_read: bool,
}

/// A kind of movement.
#[derive(Clone, Copy, Debug)]
pub enum Movement<'s> {
    /// Activations to L2.
    Load(&'s Resident, &'s Source),
    /// Weights to L2.
    Weights(&'s Resident),
    /// Weights to WL0.
    Row(&'s Wl0Row),
    /// A result of a workload from L2.
    Store {
        /// The tensor in L2.
        resident: &'s Resident,
        /// The producer.
        producer: usize,
    },
}

impl Move<'_> {
    /// Whether it stores a result of an earlier workload.
    pub fn is_delayed(&self, index: usize) -> bool {
        matches!(self.what, Movement::Store { producer, .. } if producer != index)
    }
}

/// The movements of every workload of a core, in the order of the schedule.
///
/// A tensor is loaded when it first appears in the buffer, and stored when `start_send` is first set.
pub fn moves<'s>(view: &View<'s>) -> Result<Vec<Vec<Move<'s>>>> {
    (0..view.core.workloads.len()).map(|index| moves_of(view, index)).collect()
}

fn moves_of<'s>(view: &View<'s>, index: usize) -> Result<Vec<Move<'s>>> {
    let workload = view.workload(index);
    let mut all = vec![];
    for resident in &workload.buffer {
        let order = resident.tensor_order.unwrap_or(i64::MAX);
        match resident.kind {
            ResidentKind::Ofmap if begins_to_send(view, index, resident) => {
                let (producer, _) = view.part_of(index, resident)?;
                let what = Movement::Store { resident, producer };
                all.push(Move { order, what, is_read: false });
            }
            ResidentKind::Ofmap => {}
            _ if view.first_seen(index, resident) != index => {}
            ResidentKind::Weight => {
                let is_read = workload.weight.as_ref().is_some_and(|weight| {
                    resident.transfers().any(|id| weight.transfers().any(|own| own == id))
                });
                all.push(Move { order, what: Movement::Weights(resident), is_read });
            }
            ResidentKind::Ifmap => {
                for source in resident.sources() {
                    if source.kind != PlaceKind::Dram {
                        continue;
                    }
                    let mut read = workload.ifmaps().iter().flat_map(|map| map.transfer_id.iter());
                    let is_read = read.any(|id| id == source.transfer_id);
                    all.push(Move { order, what: Movement::Load(resident, source), is_read });
                }
            }
        }
    }
    for row in workload.wl0().iter().filter(|row| row.source == Wl0Source::Ddr) {
        if index > 0 && view.workload(index - 1).wl0().iter().any(|other| is_same(row, other)) {
            continue;
        }
        let is_read = workload.weight.as_ref().is_some_and(|weight| {
            row.transfer_id.iter().any(|id| weight.transfers().any(|own| own == id))
        });
        let order = row.tensor_order.and_then(|Nullable(order)| order).unwrap_or(i64::MAX);
        all.push(Move { order, what: Movement::Row(row), is_read });
    }
    all.sort_by_key(|movement| movement.order);
    Ok(all)
}

fn is_same(row: &Wl0Row, other: &Wl0Row) -> bool {
    row.tensor_order == other.tensor_order && row.source == other.source
}

fn begins_to_send(view: &View<'_>, index: usize, resident: &Resident) -> bool {
    let sends = |resident: &Resident| resident.start_send == Some(true);
    let before = index.checked_sub(1).map(|index| &view.workload(index).buffer);
    let mut before = before.into_iter().flatten();
    let was = before.find(|other| other.tensor_id == resident.tensor_id);
    sends(resident) && !was.is_some_and(sends)
}
