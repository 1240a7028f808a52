//! Instructions that move data between DRAM, L2 and WL0.

use std::collections::BTreeSet;

use irc_gemini_format::schedule::{CutMode, DramOut, Resident, Source, Tile, Wl0Row};
use irc_npu::Origin;
use irc_npu::enums::{DataFmt, XCutMode, YCutMode};
use irc_npu::op::{DtCal, DtCfg, LdaCfg, LdaMov, LdwCfg, LdwMov, LwCfg, LwMov, StaCfg, StaMov};

use crate::finding::{Found, fault, word};
use crate::layers::{Stored, Weights};
use crate::moves::{Move, What};
use crate::step::Step;
use crate::tensors::{Spot, View, corner, lengths};

/// Base register of activations in DRAM.
const ACTIVATIONS: u32 = 0;

/// Base register of weights in DRAM.
const WEIGHTS: u32 = 1;

/// Register set of loads of activations, and of stores.
const ACTIVATION_SET: u32 = 0;

/// Register set of loads of weights.
const WEIGHT_SET: u32 = 1;

/// The instruction of a movement that is issued with a workload; `next` is the movement after it.
pub fn movement(
    view: &View<'_>,
    index: usize,
    movement: &Move<'_>,
    next: Option<&Move<'_>>,
) -> Found<Step> {
    let mut users = Users::default();
    // Weights in L2 are read by LW alone, whose instructions name the layer.
    match movement.what {
        What::Load(_, source) => users.add(view, source.transfer_id)?,
        What::Row(row) => row.transfer_id.iter().try_for_each(|id| users.add(view, id))?,
        What::Weights(_) | What::Store { .. } => {}
    }
    // Weights that come to WL0 ahead of their workload count as used by the movement before, too.
    if let Some(Move { what: What::Row(row), is_read: false, .. }) = next
        && !matches!(movement.what, What::Store { .. })
    {
        row.transfer_id.iter().try_for_each(|id| users.add(view, id))?;
    }
    let origin = users.origin(view, index)?;
    match movement.what {
        What::Load(resident, source) => load(view, index, resident, source, origin),
        What::Weights(resident) => load_weights(view, index, resident, origin),
        What::Row(row) => load_row(view, index, row, origin),
        What::Store { resident, maker } => store(view, index, resident, maker),
    }
}

/// The layers and groups that read a tensor.
#[derive(Default)]
struct Users {
    layers: BTreeSet<u32>,
    groups: BTreeSet<u32>,
}

impl Users {
    fn add(&mut self, view: &View<'_>, transfer: i64) -> Found<()> {
        for (index, workload) in view.core.workloads.iter().enumerate() {
            let mut read = workload.ifmaps().iter().flat_map(|ifmap| ifmap.transfer_id.iter());
            let weights = workload.weight.iter().flat_map(|weight| weight.transfers());
            if read.any(|id| id == transfer) || weights.into_iter().any(|id| id == transfer) {
                self.layers.insert(view.layer_index(index)?);
                self.groups.insert(view.groups[index]);
            }
        }
        Ok(())
    }

    fn origin(self, view: &View<'_>, index: usize) -> Found<Origin> {
        let clyr = self.layers.into_iter().collect();
        let c_flyr = self.groups.into_iter().collect();
        Ok(Origin { clyr, c_flyr, ..place(view, index, -1)? })
    }
}

/// Where an instruction of a workload comes from.
pub fn place(view: &View<'_>, index: usize, tile: i32) -> Found<Origin> {
    let number = |value: u32| {
        i32::try_from(value)
            .map_err(|_| fault("emit-range", &view.at(index), format!("{value} is too large")))
    };
    Ok(Origin {
        slyr: number(view.layer_index(index)?)?,
        s_flyr: number(view.groups[index])?,
        wkl: number(word(index as i64, &view.at(index))?)?,
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
) -> Found<Step> {
    let path = view.at(index);
    let missing = || fault("emit-dram", &path, "a tensor comes from a block that DRAM lacks");
    let block = view.schedule.dram_out(source.transfer_id).ok_or_else(missing)?;
    let from = stored_source(view, source.transfer_id, block, &path)?;
    let tensor = view.tensor(index, resident)?;
    let into = source.extent().map_or([0; 4], |extent| corner(&extent));
    let spot = Spot { tensor, at: into };
    let extent = block.extent();
    let [n, c, h, w] = lengths(&extent);
    let tile = [word(n, &path)?, word(c, &path)?, word(h, &path)?, word(w, &path)?];
    let config = LdaCfg {
        sme: 1,
        rs: ACTIVATION_SET,
        bas: ACTIVATIONS,
        df: tensor.format,
        s_tile: from.shape,
        d_tile: tensor.shape,
    };
    let op = LdaMov {
        rs: ACTIVATION_SET,
        dbsg: tensor.region,
        st_addr: from.address(corner(&extent)),
        dt_addr: spot.address([0; 4]),
        tile,
    };
    Ok(Step { configs: vec![config.into()], op: op.into(), origin, workload: index })
}

/// The tensor in DRAM that a block is of.
fn stored_source(view: &View<'_>, transfer: i64, block: &DramOut, path: &str) -> Found<Stored> {
    let readers = view.core.workloads.iter().find_map(|workload| {
        let operands = workload.ifmaps();
        let operand =
            operands.iter().position(|ifmap| ifmap.transfer_id.iter().any(|id| id == transfer))?;
        Some((workload.layer_name.as_str(), operand))
    });
    let missing = || fault("emit-dram", path, "nothing reads what is loaded");
    view.layers.origin(view.schedule, block, readers.ok_or_else(missing)?, path)
}

/// The layer of weights that DRAM gives out, and their first and last output channel.
fn weight_block<'s>(
    view: &View<'s>,
    index: usize,
    mut transfers: impl Iterator<Item = i64>,
) -> Found<(&'s str, i64, i64)> {
    let path = view.at(index);
    let missing = || fault("emit-dram", &path, "weights come from a block that DRAM lacks");
    let block = transfers.find_map(|id| view.schedule.dram_out(id)).ok_or_else(missing)?;
    let layer = block.destination.iter().find_map(|to| to.layer_name.as_deref());
    let (first, last) = block.extent().axis(1);
    Ok((layer.ok_or_else(missing)?, first, last))
}

fn load_weights(view: &View<'_>, index: usize, resident: &Resident, origin: Origin) -> Found<Step> {
    let path = view.at(index);
    let (layer, first, last) = weight_block(view, index, resident.transfers())?;
    let weights = view.layers.weights(layer, &path)?;
    let missing = || fault("emit-resident", &path, "weights in the buffer have no address");
    let address = resident.address.ok_or_else(missing)?;
    let config = LdwCfg {
        rs: WEIGHT_SET,
        bas: WEIGHTS,
        df: weights.format,
        mkc: 0,
        mken: 0,
        sw_size: weights.size,
        dw_size: weights.size,
    };
    let op = LdwMov {
        rs: WEIGHT_SET,
        dbsg: view.region(index, address)?,
        st_addr: weights.base + first * weights.row(),
        dt_addr: address,
        w_size: w_size(word(last - first + 1, &path)?, weights.size),
    };
    Ok(Step { configs: vec![config.into()], op: op.into(), origin, workload: index })
}

fn w_size(k: u32, [c, r, s]: [u32; 3]) -> [u32; 4] {
    [k, c, r, s]
}

fn lw_cfg(weights: &Weights) -> LwCfg {
    LwCfg {
        bas: WEIGHTS,
        df: weights.format,
        mkc: 0,
        mken: 0,
        sw_size: weights.size,
        dw_size: weights.size,
    }
}

fn load_row(view: &View<'_>, index: usize, row: &Wl0Row, origin: Origin) -> Found<Step> {
    let path = view.at(index);
    let (layer, first, last) = weight_block(view, index, row.transfer_id.iter())?;
    let weights = view.layers.weights(layer, &path)?;
    // WL0 is filled as the workload that reads it will share the work over the array.
    let reader = view.core.workloads[index..].iter().find(|workload| {
        let own = workload.weight.iter().flat_map(|weight| weight.transfers());
        own.into_iter().any(|id| row.transfer_id.iter().any(|other| other == id))
    });
    let tile = reader.and_then(|reader| reader.tiles().next());
    let op = LwMov {
        ss: 1,
        xy_mode: cut_mode(tile, &path)?,
        sbsg: 0,
        st_addr: weights.base + first * weights.row(),
        dt_addr: row.address,
        w_size: w_size(word(last - first + 1, &path)?, weights.size),
    };
    Ok(Step { configs: vec![lw_cfg(&weights).into()], op: op.into(), origin, workload: index })
}

/// The weights of a tile from L2 to its half of WL0.
pub fn load_tile(view: &View<'_>, index: usize, tile: &Tile, half: i64) -> Found<Step> {
    let path = view.at(index);
    let weights = view.layers.weights(&view.workload(index).layer_name, &path)?;
    let (resident, first) = view.resident_weights(index)?;
    let missing = || fault("emit-resident", &path, "weights in the buffer have no address");
    let address = resident.address.ok_or_else(missing)?;
    let (low, high) = tile.ofmap().axis(1);
    let op = LwMov {
        ss: 0,
        xy_mode: cut_mode(Some(tile), &path)?,
        sbsg: view.region(index, address)?,
        st_addr: address + (low - first) * weights.row(),
        dt_addr: half,
        w_size: w_size(word(high - low + 1, &path)?, weights.size),
    };
    let origin = Origin {
        clyr: vec![view.layer_index(index)?],
        c_flyr: vec![view.groups[index]],
        ..place(view, index, -1)?
    };
    Ok(Step { configs: vec![lw_cfg(&weights).into()], op: op.into(), origin, workload: index })
}

/// How the array shares the work of a tile.
pub fn cut_mode(tile: Option<&Tile>, path: &str) -> Found<(XCutMode, YCutMode)> {
    let y = match tile.and_then(|tile| tile.cut_mode) {
        Some(CutMode::Kc) => YCutMode::CutC,
        Some(CutMode::Kh) => YCutMode::CutH,
        Some(CutMode::Kk) => YCutMode::CutK,
        Some(CutMode::Kn) => YCutMode::CutN,
        Some(CutMode::Kw) => YCutMode::CutW,
        None => return Err(fault("emit-tile", path, "a tile does not say how it is cut")),
    };
    Ok((XCutMode::CutK, y))
}

fn store(view: &View<'_>, index: usize, resident: &Resident, maker: usize) -> Found<Step> {
    let path = view.at(index);
    let tensor = view.tensor(index, resident)?;
    let made = view.workload(maker);
    let (_, part) = view.part_of(index, resident)?;
    let into = view.layers.stored(&made.layer_name, &path)?;
    let first = part.extent().moved_by(&made.extent.lower);
    let [n, c, h, w] = lengths(&part.extent());
    let config = StaCfg {
        // The first tools say that channels stay padded, although they store whole words only.
        sme: u32::from(!view.first_tools),
        rs: ACTIVATION_SET,
        bas: ACTIVATIONS,
        df: tensor.format,
        s_tile: tensor.shape,
        d_tile: into.shape,
    };
    let op = StaMov {
        rs: ACTIVATION_SET,
        sbsg: tensor.region,
        st_addr: tensor.base,
        dt_addr: into.address(corner(&first)),
        tile: [word(n, &path)?, word(c, &path)?, word(h, &path)?, word(w, &path)?],
    };
    // The first tools name the workload that the store is issued with, the later its maker.
    let named = if view.first_tools { index } else { maker };
    let origin = place(view, named, -1)?;
    Ok(Step { configs: vec![config.into()], op: op.into(), origin, workload: index })
}

/// The copy of a part of a workload's result to where it is also needed.
pub fn copy(
    view: &View<'_>,
    index: usize,
    (from, to): (&Spot, &Spot),
    size: [i64; 4],
    transfer: i64,
) -> Found<Step> {
    let path = view.at(index);
    let mut users = Users::default();
    users.add(view, transfer)?;
    let [n, c, h, w] = size;
    let df: DataFmt = from.tensor.format;
    let config = DtCfg { df, s_tile: from.tensor.shape, d_tile: to.tensor.shape };
    let op = DtCal {
        order: 0,
        sbsg: from.tensor.region,
        dbsg: to.tensor.region,
        st_addr: from.address([0; 4]),
        dt_addr: to.address([0; 4]),
        tile: [word(n, &path)?, word(c, &path)?, word(h, &path)?, word(w, &path)?],
    };
    let origin = users.origin(view, index)?;
    Ok(Step { configs: vec![config.into()], op: op.into(), origin, workload: index })
}
