//! Instructions that move data between DRAM, L2 and WL0.

use std::collections::BTreeSet;

use irc_gemini_format::schedule::{CutMode, DramOut, Resident, Source, Tile, Tiles, Wl0Row};
use irc_npu::Origin;
use irc_npu::enums::{XCutMode, YCutMode};

use crate::diagnostic::{Result, error, signed, word, words};
use crate::instructions::{self, ConfiguredOp, WeightSource};
use crate::layers::DramTensor;
use crate::moves::{Move, Movement};
use crate::step::Step;
use crate::tensors::{TensorOffset, View, corner, lengths};

/// The instruction of a movement that is issued with a workload; `next` is the movement after it.
pub fn movement(
    view: &View<'_>,
    index: usize,
    movement: &Move<'_>,
    next: Option<&Move<'_>>,
) -> Result<Step> {
    let mut users = Users::default();
    // Only LW reads weights in L2, and its instructions name the layer.
    match movement.what {
        Movement::Load(_, source) => users.add(view, source.transfer_id)?,
        Movement::Row(row) => row.transfer_id.iter().try_for_each(|id| users.add(view, id))?,
        Movement::Weights(_) | Movement::Store { .. } => {}
    }
    // Weights loaded to WL0 before their workload count as used by the previous movement, too.
    if let Some(Move { what: Movement::Row(row), is_read: false, .. }) = next
        && !matches!(movement.what, Movement::Store { .. })
    {
        row.transfer_id.iter().try_for_each(|id| users.add(view, id))?;
    }
    let origin = users.origin(view, index)?;
    match movement.what {
        Movement::Load(resident, source) => load(view, index, resident, source, origin),
        Movement::Weights(resident) => load_weights(view, index, resident, origin),
        Movement::Row(row) => load_row(view, index, row, origin),
        Movement::Store { resident, producer } => store(view, index, resident, producer),
    }
}

/// The layers and groups that read a tensor.
#[derive(Default)]
struct Users {
    layers: BTreeSet<u32>,
    groups: BTreeSet<u32>,
}

impl Users {
    fn add(&mut self, view: &View<'_>, transfer: i64) -> Result<()> {
        for (_, index) in view.users(transfer) {
            self.layers.insert(view.layer_index(index)?);
            self.groups.insert(view.groups[index]);
        }
        Ok(())
    }

    fn origin(self, view: &View<'_>, index: usize) -> Result<Origin> {
        let clyr = self.layers.into_iter().collect();
        let c_flyr = self.groups.into_iter().collect();
        Ok(Origin { clyr, c_flyr, ..place(view, index, -1)? })
    }
}

/// The origin of an instruction of a workload.
pub fn place(view: &View<'_>, index: usize, tile: i32) -> Result<Origin> {
    let number = |value: i64| signed(value, &view.at(index));
    Ok(Origin {
        slyr: number(view.layer_index(index)?.into())?,
        s_flyr: number(view.groups[index].into())?,
        wkl: number(index as i64)?,
        tile,
        ..Origin::default()
    })
}

fn load(
    view: &View<'_>,
    index: usize,
    resident: &Resident,
    source: &Source,
    origin: Origin,
) -> Result<Step> {
    let path = view.at(index);
    let missing = || error("emit-dram", &path, "a tensor comes from a block that is not in DRAM");
    let block = view.transfers.dram_out(source.transfer_id).ok_or_else(missing)?;
    let from = stored_source(view, source.transfer_id, block, &path)?;
    let tensor = view.tensor(index, resident)?;
    let into = source.extent().map_or([0; 4], |extent| corner(&extent));
    let spot = TensorOffset { tensor, at: into };
    let extent = block.extent();
    let tile = words(lengths(&extent), &path)?;
    let at = from.address(corner(&extent));
    let made = instructions::load(instructions::ACTIVATIONS, &from, at, &spot, tile);
    Ok(step(made, origin, index))
}

fn step((configs, op): ConfiguredOp, origin: Origin, workload: usize) -> Step {
    Step { configs, op, origin, workload }
}

/// The tensor in DRAM of which a block is part.
fn stored_source(
    view: &View<'_>,
    transfer: i64,
    block: &DramOut,
    path: &str,
) -> Result<DramTensor> {
    let reader = view.users(transfer).find_map(|(_, index)| {
        let mut ifmaps = view.workload(index).ifmaps().iter();
        let place = ifmaps.position(|map| map.transfer_id.iter().any(|id| id == transfer))?;
        Some((index, place))
    });
    let missing = || error("emit-dram", path, "nothing reads what is loaded");
    let (index, place) = reader.ok_or_else(missing)?;
    let operand = view.operands(index)?[place];
    let reader = view.workload(index).layer_name.as_str();
    view.layers.origin(view.transfers, block, (reader, operand), path)
}

/// The layer of the weights that a block of DRAM holds, and their first and last output channel.
fn weight_block<'s>(
    view: &View<'s>,
    index: usize,
    mut transfers: impl Iterator<Item = i64>,
) -> Result<(&'s str, i64, i64)> {
    let path = view.at(index);
    let missing = || error("emit-dram", &path, "weights come from a block that is not in DRAM");
    let block = transfers.find_map(|id| view.transfers.dram_out(id)).ok_or_else(missing)?;
    let layer = block.destination.iter().find_map(|to| to.layer_name.as_deref());
    let (first, last) = block.extent().axis(1);
    Ok((layer.ok_or_else(missing)?, first, last))
}

fn load_weights(
    view: &View<'_>,
    index: usize,
    resident: &Resident,
    origin: Origin,
) -> Result<Step> {
    let path = view.at(index);
    let (layer, first, last) = weight_block(view, index, resident.transfers())?;
    let weights = view.layers.weights(layer, &path)?;
    let missing = || error("emit-resident", &path, "weights in the buffer have no address");
    let address = resident.address.ok_or_else(missing)?;
    let rows = (first, word(last - first + 1, &path)?);
    let place = (view.region(index, address)?, address);
    Ok(step(instructions::load_weights(&weights, rows, place), origin, index))
}

fn load_row(view: &View<'_>, index: usize, row: &Wl0Row, origin: Origin) -> Result<Step> {
    let path = view.at(index);
    let (layer, first, last) = weight_block(view, index, row.transfer_id.iter())?;
    let weights = view.layers.weights(layer, &path)?;
    // The layout of WL0 depends on how the workload that reads it divides the work over the array.
    let reader = view.core.workloads[index..].iter().find(|workload| {
        let own = workload.weight.iter().flat_map(|weight| weight.transfers());
        own.into_iter().any(|id| row.transfer_id.iter().any(|other| other == id))
    });
    let tiles = reader.and_then(|reader| reader.tile_info.as_ref()).map(Tiles::by_key);
    let tile = tiles.and_then(|tiles| tiles.first().map(|(_, tile)| *tile));
    let count = word(last - first + 1, &path)?;
    let from = WeightSource::Dram(weights.base + first * weights.row());
    let mode = cut_mode(tile, &path)?;
    Ok(step(instructions::to_wl0(&weights, count, mode, from, row.address), origin, index))
}

/// Moves the weights of a tile from L2 to its half of WL0.
pub fn load_tile(view: &View<'_>, index: usize, tile: &Tile, half: i64) -> Result<Step> {
    let path = view.at(index);
    let weights = view.layers.weights(&view.workload(index).layer_name, &path)?;
    let (resident, first) = view.resident_weights(index)?;
    let missing = || error("emit-resident", &path, "weights in the buffer have no address");
    let address = resident.address.ok_or_else(missing)?;
    let (low, high) = tile.ofmap().axis(1);
    let count = word(high - low + 1, &path)?;
    let at = address + (low - first) * weights.row();
    let from = WeightSource::L2(view.region(index, address)?, at);
    let mode = cut_mode(Some(tile), &path)?;
    let origin = Origin {
        clyr: vec![view.layer_index(index)?].into(),
        c_flyr: vec![view.groups[index]].into(),
        ..place(view, index, -1)?
    };
    Ok(step(instructions::to_wl0(&weights, count, mode, from, half), origin, index))
}

/// How the array divides a tile.
pub fn cut_mode(tile: Option<&Tile>, path: &str) -> Result<(XCutMode, YCutMode)> {
    let y = match tile.and_then(|tile| tile.cut_mode) {
        Some(CutMode::Kc) => YCutMode::CutC,
        Some(CutMode::Kh) => YCutMode::CutH,
        Some(CutMode::Kk) => YCutMode::CutK,
        Some(CutMode::Kn) => YCutMode::CutN,
        Some(CutMode::Kw) => YCutMode::CutW,
        None => return Err(error("emit-tile", path, "a tile has no cut mode")),
    };
    Ok((XCutMode::CutK, y))
}

fn store(view: &View<'_>, index: usize, resident: &Resident, producer: usize) -> Result<Step> {
    let path = view.at(index);
    let tensor = view.tensor(index, resident)?;
    let made = view.workload(producer);
    let (_, part) = view.part_of(index, resident)?;
    let into = view.layers.stored(&made.layer_name, &path)?;
    let first = part.extent().moved_by(&made.extent.lower);
    let tile = words(lengths(&part.extent()), &path)?;
    // The first tools state that channels stay padded, although they store whole words only.
    let sme = u32::from(!view.first_tools);
    let stored = instructions::store(&tensor, sme, &into, into.address(corner(&first)), tile);
    // The first tools name the workload that the store is issued with, later ones its producer.
    let named = if view.first_tools { index } else { producer };
    Ok(step(stored, place(view, named, -1)?, index))
}

/// Copies a part of a workload's result to another place that needs it.
pub fn copy(
    view: &View<'_>,
    index: usize,
    (from, to): (&TensorOffset, &TensorOffset),
    size: [i64; 4],
    transfer: i64,
) -> Result<Step> {
    let path = view.at(index);
    let mut users = Users::default();
    users.add(view, transfer)?;
    let made = instructions::copy(instructions::AS_IT_IS, from, to, words(size, &path)?);
    Ok(step(made, users.origin(view, index)?, index))
}
