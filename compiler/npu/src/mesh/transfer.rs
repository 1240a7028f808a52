//! Transfers between cores, and between cores and DRAM.

use std::collections::BTreeMap;

use irc_gemini_format::schedule::{Extent, Place};
use irc_npu::op::{SiCfg, SiMov, SoCfg, SoMov};

use super::parts::{DramKey, Part, WORD, padded};
use super::{Mesh, Reader, TensorBox};
use crate::diagnostic::{Result, error, word, words};
use crate::instructions::{self, ACTIVATIONS, AS_IT_IS, ConfiguredOp};
use crate::step::Step;
use crate::tensors::{Tensor, TensorOffset, corner, lengths};

impl<'m> Mesh<'m> {
    /// Loads a part of an operand from DRAM, after its producers on other cores have stored it; a part
    /// computed by a workload has arrived already.
    pub(super) fn load(&mut self, place: Place, part: &Part<'m>) -> Result<()> {
        let Some(kept) = part.origin.stored() else { return Ok(()) };
        let (path, transfer, origins) = (self.path(place), part.origin.load(), self.origins);
        for producer in origins.storers(&part.origin) {
            if producer.0 != place.0 && self.cores[place.0].seen.insert(producer) {
                self.announce(producer, place)?;
            }
        }
        let tensor = self.operand(place, part.operand())?;
        self.arrive(place, part)?;
        let brought = transfer.and_then(|id| self.cores[place.0].brought.get(&id).copied());
        if let Some(first) = brought.filter(|first| first.base != tensor.base) {
            // An earlier reader's operand has the same layout only if the part is all of it.
            let same = first.shape == tensor.shape && part.at() == [0; 4];
            if same && part.lengths()[1..] == first.shape.map(i64::from) {
                let from = TensorOffset { tensor: first, at: [0; 4] };
                let to = TensorOffset { tensor, at: part.at() };
                return self.copy(place, part.lengths(), from, to);
            }
        }
        let from = self.dram.activations(&kept, &path)?;
        let to = TensorOffset { tensor, at: part.at() };
        let tile = words(part.lengths(), &path)?;
        let at = from.address(corner(&part.extent()));
        self.step(place, instructions::load(ACTIVATIONS, &from, at, &to, tile))?;
        self.cores[place.0].brought.extend(transfer.map(|id| (id, tensor)));
        Ok(())
    }

    /// Records that a part arrives in its operand.
    ///
    /// Channels move in whole words, so a part may overwrite those after it, which then have to
    /// come later.
    fn arrive(&mut self, place: Place, part: &Part<'_>) -> Result<()> {
        let path = self.path(place);
        let (first, size) = (part.at(), part.lengths());
        let spill = padded(size[1]) - size[1];
        let operand = self.operand_of(place, part.operand())?;
        let room = operand.size[1] + operand.slack;
        let there = self.arrived.entry((place, part.operand())).or_default();
        let is_hurt = |(at, other): &&TensorBox| {
            let overlaps = |axis: usize, from: i64, length: i64| {
                at[axis] < from + length && from < at[axis] + other[axis]
            };
            [0, 2, 3].iter().all(|axis| overlaps(*axis, first[*axis], size[*axis]))
                && overlaps(1, first[1] + size[1], spill)
        };
        let beyond = first[1] + padded(size[1]) > padded(room);
        if spill > 0 && (beyond || there.iter().any(|other| is_hurt(&other))) {
            let message = format!(
                "channels {} to {} have padding that overwrites others",
                first[1],
                first[1] + size[1] - 1,
            );
            return Err(error("emit-channels", &path, message));
        }
        there.push((first, size));
        Ok(())
    }

    /// Tells the core of `to` that the store of `from` has ended: a transfer without data, under the id
    /// of the store.
    fn announce(&mut self, from: Place, to: Place) -> Result<()> {
        let path = self.path(to);
        let stored = self.origins.stored.get(&from).copied();
        let missing = || error("emit-dram", &path, "what is loaded has not been stored");
        let xfer = word(stored.ok_or_else(missing)?, &path)?;
        let (giver, taker) = (self.cores[from.0].id, self.cores[to.0].id);
        let out = SoMov { core: taker, xfer, sbsg: 0, st_addr: 0, tile: [0; 4] };
        self.step(from, (vec![], out.into()))?;
        let back = SiMov { core: giver, xfer, dbsg: 0, dt_addr: 0, tile: [0; 4] };
        self.step(to, (vec![], back.into()))
    }

    /// Transfers a result to all its users: DRAM, workloads of the core, other cores.
    ///
    /// A transfer is sent once to each core. Further workloads there copy it.
    pub(super) fn distribute(&mut self, place: Place, output: &Tensor) -> Result<()> {
        if self.origins.stored.contains_key(&place) {
            self.store(place, output)?;
        }
        let mut landed: BTreeMap<(usize, i64), (Extent, TensorOffset)> = BTreeMap::new();
        let readers = self.readers;
        for one in &readers[place.0][place.1] {
            let reader = one.place();
            let part = &self.reads_of(reader)?.parts[one.part as usize];
            let Some((_, transfer)) = part.origin.produced() else { continue };
            let extent = part.extent();
            let from = self.within(place, part, output)?;
            let (to, size) = (self.landing(reader, part)?, part.lengths());
            let there = landed.get(&(reader.0, transfer));
            match there.filter(|(there, _)| *there == extent) {
                Some((_, first)) => self.copy(reader, size, *first, to)?,
                None if reader.0 == place.0 => self.copy(place, size, from, to)?,
                None => {
                    self.send(place, reader, transfer, size, (from, to))?;
                    landed.insert((reader.0, transfer), (extent, to));
                }
            }
        }
        Ok(())
    }

    /// Whether a reader of a result reads past its last pixel: words that start within a word.
    pub(super) fn is_read_past(&self, place: Place) -> bool {
        let made = self.workload(place).extent.axis(1);
        let past = |reader: &Reader| {
            let part =
                self.reads.get(&reader.place()).map(|reads| reads.parts[reader.part as usize]);
            part.is_some_and(|part| {
                let (low, high) = part.extent().axis(1);
                low - made.0 + padded(high - low + 1) > padded(made.1 - made.0 + 1)
            })
        };
        self.readers[place.0][place.1].iter().any(past)
    }

    /// Fills the word after a result with a copy of its last word; nothing reads its value.
    pub(super) fn extend(&mut self, place: Place, output: &Tensor) -> Result<()> {
        let [n, ..] = lengths(&self.workload(place).extent);
        let end = output.address([n, 0, 0, 0]);
        let word = |base: i64| {
            let shape = [WORD as u32, 1, 1];
            TensorOffset { tensor: Tensor { base, shape, ..*output }, at: [0; 4] }
        };
        self.copy(place, [1, WORD, 1, 1], word(end - WORD), word(end))
    }

    /// The place of a part in a result.
    fn within(&self, place: Place, part: &Part<'_>, output: &Tensor) -> Result<TensorOffset> {
        let whole = self.workload(place).extent;
        let extent = part.extent();
        if !whole.contains(&extent) {
            let message = format!("{extent} is not in {whole}, the result of the workload");
            return Err(error("emit-transfer", &self.path(place), message));
        }
        let (made, first) = (corner(&whole), corner(&extent));
        let at = [0, 1, 2, 3].map(|axis| first[axis] - made[axis]);
        Ok(TensorOffset { tensor: *output, at })
    }

    /// The destination of a part: its operand, or a staging tensor.
    ///
    /// Channels that start within a word are read up to the next pixel; the surplus is written to
    /// padding, or overwritten by what arrives later.
    fn landing(&mut self, reader: Place, part: &Part<'m>) -> Result<TensorOffset> {
        let is_of_words = part.is_of_words(self.operand_of(reader, part.operand())?.size[1]);
        if is_of_words && !self.follows_padding(reader, part)? {
            self.arrive(reader, part)?;
            return Ok(TensorOffset {
                tensor: self.operand(reader, part.operand())?,
                at: part.at(),
            });
        }
        let staged = self.room(reader, part.lengths())?;
        self.staged.entry(reader).or_default().push((*part, staged));
        Ok(TensorOffset { tensor: staged, at: [0; 4] })
    }

    /// Whether a staged part of the operand, which moves to its place later, has padding where a part begins.
    fn follows_padding(&self, reader: Place, part: &Part<'_>) -> Result<bool> {
        let reads = self.reads_of(reader)?;
        let channels = self.operand_of(reader, part.operand())?.size[1];
        let (at, size) = (part.at(), part.lengths());
        Ok(reads.parts.iter().any(|other| {
            let (first, own) = (other.at(), other.lengths());
            let overlaps = |axis: usize| {
                first[axis] < at[axis] + size[axis] && at[axis] < first[axis] + own[axis]
            };
            other.operand() == part.operand()
                && first[1] < at[1]
                && first[1] + padded(own[1]) > at[1]
                && !other.is_of_words(channels)
                && [0, 2, 3].into_iter().all(overlaps)
        }))
    }

    /// Copies a staged part to its operand.
    pub(super) fn place_staged(
        &mut self,
        place: Place,
        part: &Part<'_>,
        staged: Tensor,
    ) -> Result<()> {
        self.arrive(place, part)?;
        let tensor = self.operand(place, part.operand())?;
        let (from, to) =
            (TensorOffset { tensor: staged, at: [0; 4] }, TensorOffset { tensor, at: part.at() });
        self.copy(place, part.lengths(), from, to)?;
        self.cores[place.0].space.free(staged.base);
        Ok(())
    }

    fn store(&mut self, place: Place, output: &Tensor) -> Result<()> {
        let path = self.path(place);
        let workload = self.workload(place);
        let into = self.dram.activations(&DramKey::Result(&workload.layer_name), &path)?;
        let tile = words(lengths(&workload.extent), &path)?;
        let at = into.address(corner(&workload.extent));
        self.step(place, instructions::store(output, 1, &into, at, tile))
    }

    /// Copies within the core.
    pub(super) fn copy(
        &mut self,
        place: Place,
        size: [i64; 4],
        from: TensorOffset,
        to: TensorOffset,
    ) -> Result<()> {
        let tile = words(size, &self.path(place))?;
        self.step(place, instructions::copy(AS_IT_IS, &from, &to, tile))
    }

    /// Sends a part to a workload of another core, which receives it at the same step.
    fn send(
        &mut self,
        place: Place,
        reader: Place,
        transfer: i64,
        size: [i64; 4],
        (from, to): (TensorOffset, TensorOffset),
    ) -> Result<()> {
        let path = self.path(place);
        let (xfer, tile) = (word(transfer, &path)?, words(size, &path)?);
        let (giver, taker) = (self.cores[place.0].id, self.cores[reader.0].id);
        let config = SoCfg { df: from.tensor.format, s_tile: from.tensor.shape };
        let out = SoMov { core: taker, xfer, sbsg: 0, st_addr: from.address([0; 4]), tile };
        self.step(place, (vec![config.into()], out.into()))?;
        let config = SiCfg { df: to.tensor.format, d_tile: to.tensor.shape };
        let back = SiMov { core: giver, xfer, dbsg: 0, dt_addr: to.address([0; 4]), tile };
        self.step(reader, (vec![config.into()], back.into()))
    }

    /// Issues an instruction that is not a tile.
    pub(super) fn step(&mut self, place: Place, (configs, op): ConfiguredOp) -> Result<()> {
        let origin = self.instruction_origin(place, -1)?;
        self.push(place.0, Step { configs, op, origin, workload: place.1 });
        Ok(())
    }
}
