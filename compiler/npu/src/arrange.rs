//! The order of a core's instructions.
//!
//! Every workload has its tiles in order, and gaps before, between and after them for loads
//! and stores, which are issued as early as the order of the program allows:
//!
//! * Copies of a workload's result run before the next workload.
//! * Weights that come from L2 tile by tile use two halves of WL0 in turn: those of tile `t` are
//!   loaded after tile `t - 2`, which reads the same half. Those of tile 1 are loaded before tile 0 if
//!   the last convolution to read their half is no earlier than that of tile 0's half, as the wait for
//!   one then covers both; otherwise between the first two tiles. In a gap the later tile's come first.
//! * Movements to and from DRAM keep the order of the schedule. What the workload reads is loaded
//!   before its first tile. Loads for later workloads take one gap each: that before the first tile if
//!   it has other movements, and that after it. Other loads, and all stores, follow the
//!   workload; but a PE workload issues stores of older results first.

use std::collections::VecDeque;

use irc_gemini_format::schedule::{LayerKind, Wl0Source};
use irc_npu::Op;
use irc_npu::enums::DataFmt;
use irc_npu::layout::{WL0_UNIT, wl0_row, wl0_units};

use crate::compute;
use crate::diagnostic::Result;
use crate::movement;
use crate::moves::{Move, Movement, moves};
use crate::rings;
use crate::step::Step;
use crate::tensors::{View, lengths};

/// The instructions of a core between the begin and the end of its task.
pub fn arrange(view: &View<'_>) -> Result<Vec<Step>> {
    let moves = moves(view)?;
    let flat: Vec<&Move<'_>> = moves.iter().flatten().collect();
    let mut done = 0;
    let mut all = vec![];
    let mut rows = Rows::default();
    let mut copies = vec![];
    for (index, own) in moves.iter().enumerate() {
        let mut queue = VecDeque::new();
        for movement in own {
            done += 1;
            let step = movement::movement(view, index, movement, flat.get(done).copied())?;
            queue.push_back((*movement, step));
        }
        let gaps = Gaps::new(view, index, &mut rows, !copies.is_empty())?;
        all.append(&mut copies);
        all.extend(new_rings(view, index)?);
        all.extend(gaps.fill(queue));
        copies = copies_of(view, index)?;
    }
    all.append(&mut copies);
    Ok(all)
}

/// How often the last bank is rewritten when a table changes, as in the one published program
/// with several tables does.
const SETTLING: usize = 14;

/// The ring table of a workload, if it differs from that of the previous workload.
fn new_rings(view: &View<'_>, index: usize) -> Result<Vec<Step>> {
    let regions = view.workload(index).regions();
    if index == 0 || view.workload(index - 1).regions() == regions {
        return Ok(vec![]);
    }
    let banks = rings::table(regions, &view.at(index))?;
    let last = banks.last().cloned();
    let origin = movement::place(view, index, -1)?;
    let step = |op| Step { configs: vec![], op, origin: origin.clone(), workload: index };
    Ok(banks.into_iter().chain(last.into_iter().cycle().take(SETTLING)).map(step).collect())
}

/// Copies of a workload's result to all its places but the first.
fn copies_of(view: &View<'_>, index: usize) -> Result<Vec<Step>> {
    let mut all = vec![];
    for part in view.workload(index).ofmaps() {
        let places = view.outputs(index, part)?;
        let Some((from, others)) = places.split_first() else { continue };
        let size = lengths(&part.extent());
        for to in others {
            all.push(movement::copy(view, index, (from, to), size, part.transfer_id)?);
        }
    }
    Ok(all)
}

/// The convolutions that have read WL0 so far, by unit.
#[derive(Default)]
struct Rows {
    read: Vec<(i64, i64)>,
}

impl Rows {
    /// The last convolution that read some of a range; later ones have larger numbers.
    fn last(&self, (start, end): (i64, i64)) -> Option<usize> {
        self.read.iter().rposition(|(from, to)| *from < end && start < *to)
    }
}

/// A workload's tiles and the movements between them.
struct Gaps {
    /// Weights by gap: before the first tile, after each.
    weights: Vec<VecDeque<Step>>,
    tiles: Vec<Step>,
    /// Whether weights come from L2.
    by_tile: bool,
    /// Whether a load for a later workload may precede the first tile.
    is_open: bool,
    /// Whether stores of older results come first.
    stores_first: bool,
}

impl Gaps {
    fn new(view: &View<'_>, index: usize, rows: &mut Rows, has_copy: bool) -> Result<Self> {
        let workload = view.workload(index);
        let is_pe = workload.layer_type == Some(LayerKind::Pe);
        let tiles = compute::tiles(view, index)?;
        let mut weights = vec![VecDeque::new(); tiles.len() + 1];
        let by_tile = is_pe && view.wl0_row(index)?.source == Wl0Source::Core;
        let mut is_open = has_copy;
        if by_tile {
            let row = view.wl0_row(index)?;
            let format = view.layers.weights(&workload.layer_name, &view.at(index))?.format;
            let mut last = vec![];
            for (position, (tile, _)) in tiles.iter().enumerate() {
                let half = compute::half_of(row.address, row.size, position);
                let step = movement::load_tile(view, index, tile, half)?;
                last.push(rows.last(written(&step.op, format)));
                let gap = match position {
                    0 => 0,
                    1 if last[1] >= last[0] => 0,
                    _ => position.max(2) - 1,
                };
                is_open |= position == 1 && gap == 0;
                weights[gap].push_front(step);
            }
        }
        if is_pe {
            let weights = view.layers.weights(&workload.layer_name, &view.at(index))?;
            let units = wl0_row(weights.format, weights.size);
            for (tile, step) in &tiles {
                let Op::PeConv(op) = &step.op else { continue };
                let (low, high) = tile.ofmap().axis(1);
                rows.read.push((op.sw_addr, op.sw_addr + (high - low + 1) * units / WL0_UNIT));
            }
        }
        let tiles = tiles.into_iter().map(|(_, step)| step).collect();
        Ok(Self { weights, tiles, by_tile, is_open, stores_first: is_pe })
    }

    fn fill(self, mut queue: VecDeque<(Move<'_>, Step)>) -> Vec<Step> {
        let mut all = vec![];
        // Weights must be in L2 before they are copied to WL0.
        let needed = |movement: &Move<'_>| match movement.what {
            Movement::Weights(_) => movement.is_read,
            _ => movement.is_read && !self.by_tile,
        };
        take_through(&mut queue, &mut all, needed);
        while self.stores_first
            && let Some((movement, step)) = queue.front()
            && movement.is_delayed(step.workload)
        {
            all.extend(queue.pop_front().map(|(_, step)| step));
        }
        let count = self.tiles.len();
        for (gap, weights) in self.weights.into_iter().enumerate() {
            if let Some(tile) = gap.checked_sub(1).and_then(|place| self.tiles.get(place)) {
                all.push(tile.clone());
            }
            all.extend(weights);
            if gap == count {
                all.extend(queue.drain(..).map(|(_, step)| step));
            } else if gap == 0 && queue.iter().any(|(movement, _)| movement.is_read) {
                take_through(&mut queue, &mut all, |movement| movement.is_read);
            } else if gap == 1 || gap == 0 && self.is_open {
                take_load(&mut queue, &mut all);
            }
        }
        all
    }
}

/// Units of WL0 that a load of weights writes.
fn written(op: &Op, format: DataFmt) -> (i64, i64) {
    let Op::LwMov(op) = op else { return (0, 0) };
    let [k, c, r, s] = op.w_size;
    let units = wl0_units(format, k, [c, r, s]);
    (op.dt_addr, op.dt_addr + units)
}

/// Takes all movements up to the last that is needed.
fn take_through(
    queue: &mut VecDeque<(Move<'_>, Step)>,
    all: &mut Vec<Step>,
    wanted: impl Fn(&Move<'_>) -> bool,
) {
    let last = queue.iter().rposition(|(movement, _)| wanted(movement));
    let count = last.map_or(0, |last| last + 1);
    all.extend(queue.drain(..count).map(|(_, step)| step));
}

/// Takes the next movement if it is a load.
fn take_load(queue: &mut VecDeque<(Move<'_>, Step)>, all: &mut Vec<Step>) {
    if queue.front().is_some_and(|(movement, _)| !matches!(movement.what, Movement::Store { .. })) {
        all.extend(queue.pop_front().map(|(_, step)| step));
    }
}
