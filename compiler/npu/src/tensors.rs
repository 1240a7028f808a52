//! Tensors in the L2 buffer of a core, and those that a workload reads and writes.

use irc_gemini_format::operands;
use irc_gemini_format::schedule::{
    Core, Extent, Ifmap, Ofmap, Place, PlaceKind, Resident, ResidentKind, Schedule, Transfers,
    Wl0Row, Workload,
};
use irc_npu::enums::DataFmt;

use crate::diagnostic::{Result, error, word};
use crate::layers::Layers;

/// A tensor `[N, H, W, C]` in L2.
#[derive(Clone, Copy, Debug)]
pub struct Tensor {
    /// Ring region.
    pub region: u32,
    /// First byte.
    pub base: i64,
    /// Format of its elements.
    pub format: DataFmt,
    /// Channels, height, width.
    pub shape: [u32; 3],
}

impl Tensor {
    /// The byte of an element `[N, C, H, W]`, which may be in padding.
    pub fn address(&self, [n, k, h, w]: [i64; 4]) -> i64 {
        let [channels, height, width] = self.shape;
        let pixel = (n * i64::from(height) + h) * i64::from(width) + w;
        self.base + pixel * self.format.pixel(channels) as i64 + k * self.format.bytes() as i64
    }
}

/// A position in a tensor.
#[derive(Clone, Copy, Debug)]
pub struct TensorOffset {
    /// The tensor.
    pub tensor: Tensor,
    /// First element `[N, C, H, W]`.
    pub at: [i64; 4],
}

impl TensorOffset {
    /// The byte of an element relative to the position.
    pub fn address(&self, [n, k, h, w]: [i64; 4]) -> i64 {
        let [n0, k0, h0, w0] = self.at;
        self.tensor.address([n0 + n, k0 + k, h0 + h, w0 + w])
    }
}

/// A core of a schedule with the context that its instructions need.
pub struct View<'s> {
    /// The schedule.
    pub schedule: &'s Schedule,
    /// Producers and users of transfers.
    pub transfers: &'s Transfers<'s>,
    /// The core.
    pub core: &'s Core,
    /// Its index in the schedule.
    pub place: usize,
    /// Path of the core in the schedule's file.
    pub path: String,
    /// The layers.
    pub layers: &'s Layers<'s>,
    /// Fusion group of every workload.
    pub groups: Vec<u32>,
    /// Whether the first published tool chain wrote the schedule.
    pub first_tools: bool,
}

impl<'s> View<'s> {
    /// A workload.
    pub fn workload(&self, index: usize) -> &'s Workload {
        &self.core.workloads[index]
    }

    /// Workloads of the core that use a transfer, ascending.
    pub fn users(&self, transfer: i64) -> impl Iterator<Item = Place> + use<'s> {
        let place = self.place;
        self.transfers.users(transfer).iter().copied().filter(move |user| user.0 == place)
    }

    /// Path of a workload.
    pub fn at(&self, index: usize) -> String {
        self.schedule.workload_path((self.place, index))
    }

    /// Index of the layer of a workload.
    pub fn layer_index(&self, index: usize) -> Result<u32> {
        self.layers.index(&self.workload(index).layer_name, &self.at(index))
    }

    /// A tensor of the buffer in the form of instructions.
    pub fn tensor(&self, index: usize, resident: &Resident) -> Result<Tensor> {
        let path = self.at(index);
        let lacks = |what: &str| {
            error("emit-resident", &path, format!("a tensor of the buffer has no {what}"))
        };
        let base = resident.address.ok_or_else(|| lacks("address"))?;
        let format = match resident.bitwidth {
            Some(8) => DataFmt::Int8,
            Some(16) => DataFmt::Fp16,
            _ => return Err(lacks("width of 8 or 16 bits")),
        };
        let extent = resident.extent().ok_or_else(|| lacks("extent"))?;
        let shape = lengths(&extent);
        let shape = [word(shape[1], &path)?, word(shape[2], &path)?, word(shape[3], &path)?];
        Ok(Tensor { region: self.region(index, base)?, base, format, shape })
    }

    /// The ring region of an address.
    pub fn region(&self, index: usize, address: i64) -> Result<u32> {
        let regions = self.workload(index).regions();
        let found = regions.iter().position(|[start, end]| (*start..*end).contains(&address));
        let path = self.at(index);
        let missing =
            || error("emit-region", &path, format!("byte {address} is in no ring region"));
        word(found.ok_or_else(missing)? as i64, &path)
    }

    /// For each operand that a workload reads, its index among those of the frontend's layer.
    pub fn operands(&self, index: usize) -> Result<Vec<usize>> {
        let (workload, path) = (self.workload(index), self.at(index));
        let layer = self.layers.layer(&workload.layer_name, &path)?;
        operands(self.schedule, self.transfers, workload, layer).ok_or_else(|| {
            let message = "the two operands cannot be matched with those of the layer";
            error("emit-operands", &path, message)
        })
    }

    /// The place at which a workload reads one of its operands.
    pub fn input(&self, index: usize, ifmap: &Ifmap) -> Result<TensorOffset> {
        let buffer = &self.workload(index).buffer;
        let is_input = |resident: &&Resident| {
            resident.kind == ResidentKind::Ifmap
                && ifmap.transfer_id.iter().all(|id| resident.transfers().any(|own| own == id))
        };
        let mut found: Vec<&Resident> = buffer.iter().filter(is_input).collect();
        found.sort_by_key(|resident| resident.cur_wl_ifmap != Some(true));
        let path = self.at(index);
        let missing = || error("emit-input", &path, "what the workload reads is not in the buffer");
        let tensor = self.tensor(index, found.first().ok_or_else(missing)?)?;
        Ok(TensorOffset { tensor, at: corner(&ifmap.extent()) })
    }

    /// The places of a part of a workload's result: first where it is written, then where it is
    /// copied to. A part that is stored is written first to the tensor that holds only this part.
    pub fn outputs(&self, index: usize, ofmap: &Ofmap) -> Result<Vec<TensorOffset>> {
        let mut all = vec![];
        if let Some(stored) = self.kept(index, ofmap) {
            all.push(TensorOffset { tensor: self.tensor(index, stored)?, at: [0; 4] });
        }
        for resident in &self.workload(index).buffer {
            let own = resident.sources().iter().find(|source| {
                source.kind == PlaceKind::Core
                    && source.core() == Some(self.core.id)
                    && source.transfer_id == ofmap.transfer_id
            });
            let Some(source) = own.filter(|_| resident.kind == ResidentKind::Ifmap) else {
                continue;
            };
            let at = source.extent().map_or([0; 4], |extent| corner(&extent));
            all.push(TensorOffset { tensor: self.tensor(index, resident)?, at });
        }
        Ok(all)
    }

    /// The tensor of the buffer from which the part is stored, if it goes to DRAM.
    fn kept(&self, index: usize, ofmap: &Ofmap) -> Option<&'s Resident> {
        let place = self.stored_parts(index).position(|part| std::ptr::eq(part, ofmap))?;
        self.new_results(index).get(place).copied()
    }

    /// Parts of a workload's result that go to DRAM.
    fn stored_parts(&self, index: usize) -> impl Iterator<Item = &'s Ofmap> {
        let parts = self.workload(index).ofmaps().iter();
        parts.filter(|part| part.destination.iter().any(|to| to.kind == PlaceKind::Dram))
    }

    /// Results that enter the buffer with a workload, oldest first.
    fn new_results(&self, index: usize) -> Vec<&'s Resident> {
        let results = self.workload(index).buffer.iter();
        let mut new: Vec<&Resident> = results
            .filter(|resident| resident.kind == ResidentKind::Ofmap)
            .filter(|resident| self.first_seen(index, resident) == index)
            .collect();
        new.sort_by_key(|resident| resident.tensor_id);
        new
    }

    /// The part of a workload's result that a tensor of the buffer holds for DRAM: the workload
    /// and the part.
    pub fn part_of(&self, index: usize, resident: &Resident) -> Result<(usize, &'s Ofmap)> {
        let producer = self.first_seen(index, resident);
        let new = self.new_results(producer);
        let place = new.iter().position(|other| other.tensor_id == resident.tensor_id);
        let part = place.and_then(|place| self.stored_parts(producer).nth(place));
        let missing =
            || error("emit-store", &self.at(index), "a result to be stored has no producer");
        Ok((producer, part.ok_or_else(missing)?))
    }

    /// The workload with which a tensor last entered the buffer.
    pub fn first_seen(&self, index: usize, resident: &Resident) -> usize {
        let stays = |at: &usize| {
            let buffer = &self.workload(*at).buffer;
            buffer.iter().any(|other| other.tensor_id == resident.tensor_id)
        };
        (0..index).rev().take_while(stays).last().unwrap_or(index)
    }

    /// The weights of a workload in WL0.
    pub fn wl0_row(&self, index: usize) -> Result<&'s Wl0Row> {
        let workload = self.workload(index);
        let weight = workload.weight.as_ref();
        let is_own = |row: &&Wl0Row| {
            weight.is_some_and(|weight| {
                row.transfer_id.iter().any(|id| weight.transfers().any(|own| own == id))
            })
        };
        let missing =
            || error("emit-wl0", &self.at(index), "the weights of the workload are not in WL0");
        workload.wl0().iter().find(is_own).ok_or_else(missing)
    }

    /// The weights of a workload in L2: the tensor and its first output channel.
    pub fn resident_weights(&self, index: usize) -> Result<(&'s Resident, i64)> {
        let workload = self.workload(index);
        let weight = workload.weight.as_ref();
        let is_own = |resident: &&Resident| {
            resident.kind == ResidentKind::Weight
                && weight.is_some_and(|weight| {
                    resident.transfers().any(|id| weight.transfers().any(|own| own == id))
                })
        };
        let missing =
            || error("emit-weights", &self.at(index), "the weights of the workload are not in L2");
        let found = workload.buffer.iter().find(is_own).ok_or_else(missing)?;
        let block = found.transfers().find_map(|id| self.transfers.dram_out(id));
        Ok((found, block.map_or(0, |block| block.extent().axis(1).0)))
    }
}

/// First element `[N, C, H, W]` of a box.
pub fn corner(extent: &Extent) -> [i64; 4] {
    [0, 1, 2, 3].map(|axis| extent.axis(axis).0)
}

/// Lengths along the four axes; 1 for absent axes.
pub fn lengths(extent: &Extent) -> [i64; 4] {
    let mut all = [1; 4];
    all.iter_mut().zip(extent.lengths()).for_each(|(slot, length)| *slot = length);
    all
}
