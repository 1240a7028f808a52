//! What moves between cores and DRAM, and between cores.

use irc_npu::op::{
    DtCal, DtCfg, LdaCfg, LdaMov, LdwCfg, LdwMov, SiCfg, SiMov, SoCfg, SoMov, StaCfg, StaMov,
};

use super::parts::{Part, Place, padded};
use super::{Mesh, Taken};
use crate::finding::{Found, fault, word};
use crate::step::Step;
use crate::tensors::{Spot, Tensor, corner, lengths};

impl Mesh<'_> {
    /// Loads a part of an operand, after its makers on other cores have stored it.
    pub(super) fn load(&mut self, place: Place, part: &Part) -> Found<()> {
        let path = self.path(place);
        for maker in self.makers.stored.get(&part.transfer).cloned().unwrap_or_default() {
            if maker.0 != place.0 && self.cores[place.0].seen.insert(maker) {
                self.announce(maker, place, part.transfer)?;
            }
        }
        let tensor = self.operand(place, part.operand)?;
        self.arrive(place, part)?;
        if let Some(first) = self.cores[place.0].brought.get(&part.transfer).copied()
            && first.base != tensor.base
        {
            // An earlier reader's operand begins where the part does only when it is all of it.
            let same = first.shape == tensor.shape && part.at == [0; 4];
            if same && lengths(&part.extent)[1..] == first.shape.map(i64::from) {
                let from = Spot { tensor: first, at: [0; 4] };
                let to = Spot { tensor, at: part.at };
                return self.copy(place, lengths(&part.extent), from, to);
            }
        }
        let from = self.dram.activations(&part.layer, &path)?;
        let config = LdaCfg {
            sme: 1,
            rs: 0,
            bas: 0,
            df: tensor.format,
            s_tile: from.shape,
            d_tile: tensor.shape,
        };
        let op = LdaMov {
            rs: 0,
            dbsg: 0,
            st_addr: self.dram.address(&part.layer, &part.extent, &path)?,
            dt_addr: Spot { tensor, at: part.at }.address([0; 4]),
            tile: tile_of(lengths(&part.extent), &path)?,
        };
        self.step(place, vec![config.into()], op)?;
        self.cores[place.0].brought.insert(part.transfer, tensor);
        Ok(())
    }

    /// Notes that a part comes into its operand.
    ///
    /// Channels move in whole words, so a part may write over those behind it, which then have to
    /// come later.
    fn arrive(&mut self, place: Place, part: &Part) -> Found<()> {
        let path = self.path(place);
        let size = lengths(&part.extent);
        let spill = padded(size[1]) - size[1];
        let whole = lengths(&self.workload(place).ifmaps()[0].extent());
        let room = whole[1] + self.slack(place);
        let there = self.arrived.entry((place, part.operand)).or_default();
        let is_hurt = |(at, other): &&Taken| {
            let overlaps = |axis: usize, from: i64, length: i64| {
                at[axis] < from + length && from < at[axis] + other[axis]
            };
            [0, 2, 3].iter().all(|axis| overlaps(*axis, part.at[*axis], size[*axis]))
                && overlaps(1, part.at[1] + size[1], spill)
        };
        let beyond = part.at[1] + padded(size[1]) > padded(room);
        if spill > 0 && (beyond || there.iter().any(|other| is_hurt(&other))) {
            let message = format!(
                "transfer {} brings channels {} to {}, whose padding is over others",
                part.transfer,
                part.at[1],
                part.at[1] + size[1] - 1,
            );
            return Err(fault("emit-channels", &path, message));
        }
        there.push((part.at, size));
        Ok(())
    }

    /// Tells the core of `to` that what `from` stores is there: a transfer of nothing.
    fn announce(&mut self, from: Place, to: Place, transfer: i64) -> Found<()> {
        let path = self.path(to);
        let xfer = word(transfer, &path)?;
        let (giver, taker) = (self.cores[from.0].id, self.cores[to.0].id);
        let out = SoMov { core: taker, xfer, sbsg: 0, st_addr: 0, tile: [0; 4] };
        self.step(from, vec![], out)?;
        let back = SiMov { core: giver, xfer, dbsg: 0, dt_addr: 0, tile: [0; 4] };
        self.step(to, vec![], back)
    }

    /// Loads weights to L2.
    pub(super) fn load_weights(
        &mut self,
        place: Place,
        (low, high): (i64, i64),
        address: i64,
    ) -> Found<()> {
        let path = self.path(place);
        let weights = self.dram.weights(&self.workload(place).layer_name, &path)?;
        let [c, r, s] = weights.size;
        let config = LdwCfg {
            rs: 1,
            bas: 1,
            df: weights.format,
            mkc: 0,
            mken: 0,
            sw_size: weights.size,
            dw_size: weights.size,
        };
        let op = LdwMov {
            rs: 1,
            dbsg: 0,
            st_addr: weights.base + low * weights.row(),
            dt_addr: address,
            w_size: [word(high - low + 1, &path)?, c, r, s],
        };
        self.step(place, vec![config.into()], op)
    }

    /// Gives a result to all that take it: DRAM, workloads of the core, other cores.
    pub(super) fn give(&mut self, place: Place, output: &Tensor) -> Found<()> {
        if self.makers.is_stored.contains_key(&place) {
            self.store(place, output)?;
        }
        for (reader, part) in self.readers.remove(&place).unwrap_or_default() {
            let path = self.path(place);
            let made = corner(&self.workload(place).extent);
            let first = corner(&part.extent);
            let from = [0, 1, 2, 3].map(|axis| first[axis] - made[axis]);
            let size = lengths(&self.workload(place).extent);
            let part_size = lengths(&part.extent);
            if (0..4).any(|axis| from[axis] < 0 || from[axis] + part_size[axis] > size[axis]) {
                let message = format!("transfer {} is not of what is made", part.transfer);
                return Err(fault("emit-transfer", &path, message));
            }
            // Channels that begin within a word are read on into the next pixel; what comes of that
            // lands in padding, or under what arrives later.
            let whole = lengths(&self.workload(reader).ifmaps()[0].extent())[1];
            let (tensor, at) = if part.is_of_words(whole) {
                self.arrive(reader, &part)?;
                (self.operand(reader, part.operand)?, part.at)
            } else {
                let staged = self.room(reader, part_size)?;
                self.staged.insert((reader, part.transfer, part.operand), staged);
                (staged, [0; 4])
            };
            let (from, to) = (Spot { tensor: *output, at: from }, Spot { tensor, at });
            match reader.0 == place.0 {
                true => self.copy(place, part_size, from, to)?,
                false => self.send(place, reader, &part, from, to)?,
            }
        }
        Ok(())
    }

    /// Copies a part that waited into its operand.
    pub(super) fn settle(&mut self, place: Place, part: &Part, staged: Tensor) -> Found<()> {
        self.arrive(place, part)?;
        let tensor = self.operand(place, part.operand)?;
        let (from, to) = (Spot { tensor: staged, at: [0; 4] }, Spot { tensor, at: part.at });
        self.copy(place, lengths(&part.extent), from, to)?;
        self.cores[place.0].space.free(staged.base);
        Ok(())
    }

    fn store(&mut self, place: Place, output: &Tensor) -> Found<()> {
        let path = self.path(place);
        let workload = self.workload(place);
        let into = self.dram.activations(&workload.layer_name, &path)?;
        let config = StaCfg {
            sme: 1,
            rs: 0,
            bas: 0,
            df: output.format,
            s_tile: output.shape,
            d_tile: into.shape,
        };
        let op = StaMov {
            rs: 0,
            sbsg: 0,
            st_addr: output.base,
            dt_addr: self.dram.address(&workload.layer_name, &workload.extent, &path)?,
            tile: tile_of(lengths(&workload.extent), &path)?,
        };
        self.step(place, vec![config.into()], op)
    }

    /// Copies within the core.
    fn copy(&mut self, place: Place, size: [i64; 4], from: Spot, to: Spot) -> Found<()> {
        let path = self.path(place);
        let config =
            DtCfg { df: from.tensor.format, s_tile: from.tensor.shape, d_tile: to.tensor.shape };
        let op = DtCal {
            order: 0,
            sbsg: 0,
            dbsg: 0,
            st_addr: from.address([0; 4]),
            dt_addr: to.address([0; 4]),
            tile: tile_of(size, &path)?,
        };
        self.step(place, vec![config.into()], op)
    }

    /// Sends a part to a workload of another core, which receives it at once.
    fn send(
        &mut self,
        place: Place,
        reader: Place,
        part: &Part,
        from: Spot,
        to: Spot,
    ) -> Found<()> {
        let path = self.path(place);
        let xfer = word(part.transfer, &path)?;
        let tile = tile_of(lengths(&part.extent), &path)?;
        let (giver, taker) = (self.cores[place.0].id, self.cores[reader.0].id);
        let config = SoCfg { df: from.tensor.format, s_tile: from.tensor.shape };
        let out = SoMov { core: taker, xfer, sbsg: 0, st_addr: from.address([0; 4]), tile };
        self.step(place, vec![config.into()], out)?;
        let config = SiCfg { df: to.tensor.format, d_tile: to.tensor.shape };
        let back = SiMov { core: giver, xfer, dbsg: 0, dt_addr: to.address([0; 4]), tile };
        self.step(reader, vec![config.into()], back)
    }

    /// Issues an instruction that is no tile.
    pub(super) fn step(
        &mut self,
        place: Place,
        configs: Vec<irc_npu::Op>,
        op: impl Into<irc_npu::Op>,
    ) -> Found<()> {
        let origin = self.origin(place, -1)?;
        self.push(place.0, Step { configs, op: op.into(), origin, workload: place.1 });
        Ok(())
    }
}

/// Lengths as a tile.
pub fn tile_of([n, c, h, w]: [i64; 4], path: &str) -> Found<[u32; 4]> {
    Ok([word(n, path)?, word(c, path)?, word(h, path)?, word(w, path)?])
}
