//! Schedules with addresses: from dialect B to dialect C.
//!
//! A tensor occupies its blocks from the first to the last of the consecutive snapshots that list it; the result of a
//! workload, with the parts that are sent, is one of the tensors of its snapshot. Addresses are allocated for each core by
//! itself, by the first of several orders that fits: in time, by size, by size times time; each tensor at the lowest address
//! at which it overlaps none.

use irc_diag::Diagnostic;
use irc_gemini_format::Nullable;
use irc_gemini_format::schedule::{
    Buffer, Dialect, DramGroup, DramOut, Ids, Place, PlaceKind, Resident, ResidentKind, Schedule,
    SentTo, Source, Target, Workload,
};
use irc_json::Json;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// The only group of DRAM: all data are interleaved over all ports.
const GROUP: i64 = 0;

/// What a tensor takes of the buffer of a core.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The first workload during which it is there, by index.
    pub first: usize,
    /// The last.
    pub last: usize,
    /// Its size, in the unit of addresses.
    pub size: i64,
    /// Its address.
    pub address: i64,
}

/// A tensor in the buffer of a core.
struct Tensor {
    resident: Resident,
    room: Room,
}

/// A schedule of dialect B with addresses, for buffers of so many KiB.
///
/// # Errors
/// `layer-no-address` at the first workload whose tensors do not fit, or whose core's tensors fit in no order.
pub fn allocated(schedule: &Schedule, capacity: i64) -> Result<Schedule, Box<Diagnostic>> {
    let mut made = schedule.clone();
    made.dialect = Dialect::C;
    for (core, own) in made.cores.iter_mut().enumerate() {
        let mut tensors = tensors(&own.workloads);
        let count = own.workloads.len();
        let rooms = tensors.iter_mut().map(|tensor| &mut tensor.room).collect();
        allocate(rooms, count, capacity)
            .map_err(|(index, need)| no_address(schedule, (core, index), need, capacity))?;
        for workload in &mut own.workloads {
            workload.buffer = Buffer::default();
            workload.ofmap = None;
        }
        for tensor in &tensors {
            // Between the first snapshot and the last one it is the same.
            let between = Arc::new(snapshot(tensor, usize::MAX));
            for index in tensor.room.first..=tensor.room.last {
                let resident = match index == tensor.room.first || index == tensor.room.last {
                    true => Arc::new(snapshot(tensor, index)),
                    false => Arc::clone(&between),
                };
                own.workloads[index].buffer.push(resident);
            }
        }
    }
    let groups = std::mem::take(&mut made.dram);
    made.dram = groups.into_iter().map(group).collect();
    let port = [("x", 0), ("y", 0)].map(|(key, at)| (key.into(), Json::Int(at)));
    let port = Json::Object(port.into());
    made.ports = Some(Json::Object(vec![(GROUP.to_string().into(), port)]));
    Ok(made)
}

/// A workload whose tensors need more KiB than the buffer has.
pub fn no_address(schedule: &Schedule, place: Place, need: i64, capacity: i64) -> Box<Diagnostic> {
    let message = format!(
        "the tensors of a workload of layer `{}` need {need} KiB with addresses, the buffer has {capacity}",
        schedule.cores[place.0].workloads[place.1].layer_name
    );
    let path = schedule.workload_path(place);
    let help =
        format!("with buffer={}KiB in --target, or more, they may fit", need.max(capacity + 1));
    Box::new(Diagnostic::error("layer-no-address", message).path(path).help(help))
}

/// The tensors of a core, in the order of their first snapshots.
fn tensors(workloads: &[Workload]) -> Vec<Tensor> {
    let mut tensors: Vec<Tensor> = vec![];
    // The last tensor with these contents.
    let mut known: HashMap<&Resident, usize> = HashMap::new();
    for (index, workload) in workloads.iter().enumerate() {
        let operands = workload.buffer.iter().filter(|one| one.kind != ResidentKind::Ofmap);
        for resident in operands {
            match known.get(resident).map(|at| &mut tensors[*at]) {
                Some(tensor) if tensor.room.last + 1 == index => tensor.room.last = index,
                _ => {
                    known.insert(resident, tensors.len());
                    let size = resident.block.unwrap_or(0);
                    let room = Room { first: index, last: index, size, address: 0 };
                    tensors.push(Tensor { resident: operand(resident), room });
                }
            }
        }
        let result = result(workload);
        let size = result.block.unwrap_or(0);
        let room = Room { first: index, last: index, size, address: 0 };
        tensors.push(Tensor { resident: result, room });
    }
    tensors
}

/// An operand, as dialect C states it.
fn operand(of: &Resident) -> Resident {
    let mut resident = of.clone();
    if let Some(Nullable(Some(sources))) = &mut resident.source {
        sources.iter_mut().for_each(|source: &mut Source| {
            if source.kind == PlaceKind::Dram {
                source.id = Some(Ids::List(vec![GROUP]));
            }
        });
    }
    resident.transfer_id = resident.transfer_id.as_ref().map(|ids| Ids::List(ids.iter().collect()));
    resident
}

/// The result of a workload, with the parts that it sends.
fn result(workload: &Workload) -> Resident {
    let bytes = workload.extent.volume();
    let parts = workload.ofmaps().iter().map(|part| SentTo {
        destination: part.destination.iter().map(target).collect(),
        lower: part.lower,
        size: part.size,
        transfer_id: part.transfer_id,
        upper: part.upper,
        extra: Default::default(),
    });
    let extent = workload.extent;
    let block = (bytes + 1023) / 1024;
    let kind = ResidentKind::Ofmap;
    Resident {
        size: Some(8 * bytes),
        destinations: Some(parts.collect()),
        start_sending: Some(false),
        end_sending: Some(false),
        workload_id: Some(workload.workload_id),
        ..super::buffers::resident(kind, &workload.layer_name, &extent, block)
    }
}

fn target(of: &Target) -> Target {
    let mut target = of.clone();
    if target.kind == PlaceKind::Dram {
        target.id = Some(Ids::List(vec![GROUP]));
    }
    target
}

/// A tensor in the snapshot of a workload.
fn snapshot(tensor: &Tensor, index: usize) -> Resident {
    let mut resident = tensor.resident.clone();
    resident.address = Some(tensor.room.address);
    if resident.kind != ResidentKind::Ofmap {
        resident.start_loading = Some(index == tensor.room.first);
        resident.end_loading = Some(index == tensor.room.last);
    }
    resident
}

fn group(of: DramGroup) -> DramGroup {
    let first = |out: &DramOut| out.destination.iter().filter_map(|to| to.workload_id).min();
    let outs = of.outs.into_iter().map(|out| DramOut { priority: first(&out), ..out });
    DramGroup { id: GROUP, outs: outs.collect(), ..of }
}

/// Allocates addresses; fails with the fullest workload, and how much it or the best order needs.
pub fn allocate(
    mut rooms: Vec<&mut Room>,
    workloads: usize,
    capacity: i64,
) -> Result<(), (usize, i64)> {
    let mut used = vec![0; workloads];
    for room in &rooms {
        used[room.first..=room.last].iter_mut().for_each(|used| *used += room.size);
    }
    let fullest = (0..workloads).max_by_key(|index| (used[*index], Reverse(*index))).unwrap_or(0);
    let mut least = i64::MAX;
    if used.get(fullest).is_none_or(|used| *used <= capacity) {
        let keys: [fn(&Room) -> i64; 3] =
            [|_| 0, |room| -room.size, |room| -room.size * (room.last - room.first + 1) as i64];
        for key in keys {
            let mut order: Vec<usize> = (0..rooms.len()).collect();
            order.sort_by_key(|at| key(rooms[*at]));
            let height = place(&mut rooms, &order, workloads);
            if height <= capacity {
                return Ok(());
            }
            least = least.min(height);
        }
        return Err((fullest, least));
    }
    Err((fullest, used[fullest]))
}

/// Places tensors in an order; the height that they need.
fn place(rooms: &mut [&mut Room], order: &[usize], workloads: usize) -> i64 {
    // What is taken while each workload runs.
    let mut taken: Vec<Vec<(i64, i64)>> = vec![vec![]; workloads];
    let mut height = 0;
    for &at in order {
        let room = &mut *rooms[at];
        let mut others: Vec<(i64, i64)> =
            taken[room.first..=room.last].iter().flatten().copied().collect();
        others.sort_unstable();
        let mut address = 0;
        for (from, to) in others {
            if from >= address + room.size {
                break;
            }
            address = address.max(to);
        }
        room.address = address;
        height = height.max(address + room.size);
        let own = (address, address + room.size);
        taken[room.first..=room.last].iter_mut().for_each(|taken| taken.push(own));
    }
    height
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_that_are_there_at_once_are_apart() {
        let room = |(first, last, size)| Room { first, last, size, address: 0 };
        let spans = [(0, 1, 2), (0, 0, 3), (1, 3, 3), (2, 3, 2), (3, 3, 2)];
        let mut all: Vec<Room> = spans.into_iter().map(room).collect();
        assert_eq!(allocate(all.iter_mut().collect(), 4, 6), Err((3, 7)));
        assert_eq!(allocate(all.iter_mut().collect(), 4, 7), Ok(()));
        for (at, a) in all.iter().enumerate() {
            for b in &all[..at] {
                let in_time = a.first <= b.last && b.first <= a.last;
                let in_space = a.address < b.address + b.size && b.address < a.address + a.size;
                assert!(!(in_time && in_space));
            }
        }
    }
}
