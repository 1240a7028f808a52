//! Programs of several cores, from schedules of dialects B and C.
//!
//! Workloads are visited in one order that respects their dependencies, and every instruction of every
//! core is issued in that order: what is sent is received at the same step. So no instruction waits
//! for one of a later step, and there is no deadlock. `docs/npu-multicore.md` explains the
//! decisions.

mod activations;
mod compute;
mod dram;
mod geometry;
mod layer;
mod parts;
mod space;
mod transfer;

use std::collections::{BTreeMap, BTreeSet};

use irc_gemini_format::schedule::{Place, Resident, ResidentKind, Schedule, Workload};
use irc_npu::Program;
use irc_npu::enums::DataFmt;

use crate::diagnostic::{Result, error, signed, word, words};
use crate::frame::Frame;
use crate::instructions;
use crate::known::KnownLayers;
use crate::step::Step;
use crate::tensors::{Tensor, lengths};
use crate::tokens;
use dram::Dram;
use layer::{Layer, LayerWeights, Work};
use parts::{Operand, Origin, Origins, Part, Reads, WORD};
use space::Space;

/// Bytes of the L2 buffer of a core.
const L2: i64 = 8 << 20;

/// The programs of all cores.
///
/// Tensors go round L2, so that instructions seldom wait for room. Where that leaves only gaps that are too small, tensors
/// are packed instead.
pub fn emit(schedule: &Schedule, known: &KnownLayers) -> Result<Program> {
    match emit_with(schedule, known, Space::new(L2)) {
        Err(found) if found.diagnostic.code == "emit-room" => {
            emit_with(schedule, known, Space::packed(L2))
        }
        result => result,
    }
}

fn emit_with(schedule: &Schedule, known: &KnownLayers, space: Space) -> Result<Program> {
    let mut mesh = Mesh::new(schedule, known, &space)?;
    for place in mesh.walk()? {
        mesh.issue(place)?;
    }
    mesh.finish()
}

/// A part of a tensor: first element, lengths.
type TensorBox = ([i64; 4], [i64; 4]);

/// The state of a core while its program is built.
struct CoreState {
    id: u32,
    path: String,
    steps: Vec<Step>,
    space: Space,
    /// Weights in L2 by transfer: address, and the last workload that uses them.
    weights: BTreeMap<i64, (i64, usize)>,
    /// Workloads of other cores whose stores are known to have ended.
    seen: BTreeSet<Place>,
    /// The first operand that a transfer from DRAM was loaded into: later readers copy it.
    brought: BTreeMap<i64, Tensor>,
}

struct Mesh<'s> {
    origins: Origins<'s>,
    cores: Vec<CoreState>,
    reads: BTreeMap<Place, Reads>,
    /// Workloads that read a result without DRAM, and which part, by its producer.
    readers: BTreeMap<Place, Vec<(Place, Part)>>,
    dram: Dram,
    layers: BTreeMap<&'s str, Layer>,
    /// Operand tensors in L2: by workload, by operand.
    operands: BTreeMap<(Place, usize), Tensor>,
    /// Parts whose channels are not whole words, which are staged beside their operands.
    staged: BTreeMap<Place, Vec<(Part, Tensor)>>,
    /// Parts of operands that have arrived: first element and lengths of each.
    arrived: BTreeMap<(Place, usize), Vec<TensorBox>>,
}

impl<'s> Mesh<'s> {
    fn new(schedule: &'s Schedule, known: &KnownLayers, space: &Space) -> Result<Self> {
        let origins = Origins::new(schedule)?;
        let mut reads = BTreeMap::new();
        for (core, index, workload) in schedule.workloads() {
            let place = (core, index);
            Work::of(workload, &schedule.workload_path(place))?;
            reads.insert(place, origins.reads(place)?);
        }
        let mut dram = Dram::new(schedule, reads.values().flat_map(|reads| &reads.parts), "$")?;
        let mut layers = BTreeMap::new();
        for (number, (name, places)) in origins.by_layer.iter().enumerate() {
            let layer = Layer::of(word(number as i64, "$")?, &origins, places, known.get(*name))?;
            match layer.weights {
                Some(weights) if weights.are_factors() => {}
                Some(weights) if weights.is_activations => {
                    dram.add_constants(name, weights.k, "$")?;
                }
                Some(LayerWeights { k, size: [_, r, s], narrow: Some(groups), .. }) => {
                    dram.add_narrow(name, k, &groups, [r, s]);
                }
                Some(weights) => dram.add_weights(name, weights.k, weights.size),
                None => {}
            }
            layers.insert(*name, layer);
        }
        let mut readers: BTreeMap<Place, Vec<(Place, Part)>> = BTreeMap::new();
        for (reader, reads) in &reads {
            for part in &reads.parts {
                if let Origin::Workload { producer, .. } = part.origin {
                    readers.entry(producer).or_default().push((*reader, part.clone()));
                }
            }
        }
        let cores = (0..schedule.cores.len()).map(|core| core_state(schedule, core, space));
        Ok(Self {
            cores: cores.collect::<Result<_>>()?,
            origins,
            reads,
            readers,
            dram,
            layers,
            operands: BTreeMap::new(),
            staged: BTreeMap::new(),
            arrived: BTreeMap::new(),
        })
    }

    fn workload(&self, place: Place) -> &'s Workload {
        self.origins.workload(place)
    }

    fn path(&self, place: Place) -> String {
        self.origins.schedule.workload_path(place)
    }

    fn layer(&self, place: Place) -> Result<&Layer> {
        let missing = || error("emit-kind", &self.path(place), "the workload has no layer");
        self.layers.get(self.workload(place).layer_name.as_str()).ok_or_else(missing)
    }

    fn reads_of(&self, place: Place) -> Result<&Reads> {
        let missing = || error("emit-input", &self.path(place), "the workload reads nothing");
        self.reads.get(&place).ok_or_else(missing)
    }

    fn operand_of(&self, place: Place, operand: usize) -> Result<Operand> {
        let missing = || error("emit-input", &self.path(place), "an operand is missing");
        self.reads_of(place)?.operands.get(operand).copied().ok_or_else(missing)
    }

    /// All workloads, each after its predecessor on its core and after the producers of what it reads.
    fn walk(&self) -> Result<Vec<Place>> {
        let mut next = vec![0; self.cores.len()];
        let mut done: BTreeSet<Place> = BTreeSet::new();
        let mut all = vec![];
        loop {
            let heads = next.iter().enumerate().map(|(core, index)| (core, *index));
            let waiting: Vec<Place> =
                heads.filter(|place| self.reads.contains_key(place)).collect();
            let producers =
                |place: &Place| self.reads[place].parts.iter().flat_map(Part::producers);
            let ready = |place: &&Place| producers(place).all(|producer| done.contains(producer));
            let first = waiting.iter().filter(ready);
            let Some(place) = first.min_by_key(|place| self.workload(**place).workload_id) else {
                let Some(stuck) = waiting.first() else { return Ok(all) };
                let message = "the workload depends on its own result, through other cores";
                return Err(error("emit-order", &self.path(*stuck), message));
            };
            done.insert(*place);
            all.push(*place);
            next[place.0] += 1;
        }
    }

    /// Issues a workload: its loads, its tiles, and the transfers of its result.
    fn issue(&mut self, place: Place) -> Result<()> {
        if self.waits_for_stores(place)? {
            self.constant_weights(place)?;
        }
        self.fill(place)?;
        let (count, inputs) = {
            let reads = self.reads_of(place)?;
            (reads.operands.len(), reads.inputs)
        };
        let mut taken =
            (0..count).map(|operand| self.operand(place, operand)).collect::<Result<Vec<_>>>()?;
        let is_read_past = self.is_read_past(place);
        let tail = if is_read_past { WORD } else { 0 };
        let output = self.room_with(place, lengths(&self.workload(place).extent), tail)?;
        let weights = match taken.get(inputs).copied() {
            Some(factors) if self.is_scaling(place)? => {
                self.scale(place, &taken[0], &factors, &output)?;
                None
            }
            Some(activations) => {
                let rows = self.weights_of_activations(place, &activations)?;
                taken.push(rows);
                Some((rows.base, self.workload(place).weight.as_ref().map_or(0, first_output)))
            }
            None => self.constant_weights(place)?,
        };
        if !self.is_scaling(place)? {
            self.compute(place, &taken[..inputs], &output, weights)?;
        }
        if is_read_past {
            self.extend(place, &output)?;
        }
        self.distribute(place, &output)?;
        taken.push(output);
        self.free(place, &taken);
        Ok(())
    }

    /// Loads the operands of the workload from DRAM, and moves staged parts to their places.
    fn fill(&mut self, place: Place) -> Result<()> {
        let staged = self.staged.remove(&place).unwrap_or_default().into_iter();
        let staged = staged.map(|(part, tensor)| (part, Some(tensor)));
        let parts = self.reads_of(place)?.parts.iter().cloned().map(|part| (part, None));
        let mut late: Vec<_> = parts.chain(staged).collect();
        // In ascending order of channels: a part's padding may overlap what follows it.
        late.sort_by_key(|(part, _)| part.at[1]);
        for (part, staged) in late {
            match staged {
                Some(staged) => self.place_staged(place, &part, staged)?,
                None => self.load(place, &part)?,
            }
        }
        Ok(())
    }

    /// Frees tensors, and weights that no later workload uses.
    fn free(&mut self, place: Place, tensors: &[Tensor]) {
        for operand in 0..tensors.len() {
            self.operands.remove(&(place, operand));
            self.arrived.remove(&(place, operand));
        }
        let core = &mut self.cores[place.0];
        tensors.iter().for_each(|tensor| core.space.free(tensor.base));
        core.brought.retain(|_, first| !tensors.iter().any(|tensor| tensor.base == first.base));
        let space = &mut core.space;
        core.weights.retain(|_, (address, last)| {
            let stays = *last > place.1;
            if !stays {
                space.free(*address);
            }
            stays
        });
    }

    /// The tensor of an operand, allocated.
    fn operand(&mut self, place: Place, operand: usize) -> Result<Tensor> {
        if let Some(tensor) = self.operands.get(&(place, operand)) {
            return Ok(*tensor);
        }
        let Operand { size: [n, c, h, w], slack } = self.operand_of(place, operand)?;
        let tensor = self.room(place, [n, c + slack, h, w])?;
        self.operands.insert((place, operand), tensor);
        Ok(tensor)
    }

    /// Allocates a tensor `[N, C, H, W]` of a workload.
    fn room(&mut self, place: Place, lengths: [i64; 4]) -> Result<Tensor> {
        self.room_with(place, lengths, 0)
    }

    /// The same, followed by some bytes.
    fn room_with(&mut self, place: Place, [n, c, h, w]: [i64; 4], tail: i64) -> Result<Tensor> {
        let shape = words([c, h, w], &self.path(place))?;
        let mut tensor = Tensor { region: 0, base: 0, format: DataFmt::Int8, shape };
        tensor.base = self.bytes(place, tensor.address([n, 0, 0, 0]) + tail)?;
        Ok(tensor)
    }

    fn bytes(&mut self, place: Place, bytes: i64) -> Result<i64> {
        let path = self.path(place);
        let space = &mut self.cores[place.0].space;
        let used = space.used();
        space.take(bytes).ok_or_else(|| {
            let message =
                format!("{bytes} bytes do not fit into L2, of which {used} of {L2} are used");
            error("emit-room", &path, message)
        })
    }

    /// Whether a workload loads what is stored only after the workload before it on its core has begun. LD would wait for
    /// that before it loads weights, so that they are loaded first: the weights of a segment while the one before it
    /// computes.
    fn waits_for_stores(&self, place: Place) -> Result<bool> {
        let Some(before) = place.1.checked_sub(1) else { return Ok(false) };
        let begun = self.workload((place.0, before)).workload_id;
        let is_late = |producer: &Place| self.workload(*producer).workload_id >= begun;
        let waits = |part: &Part| match &part.origin {
            Origin::Dram { producers, .. } => producers.iter().any(is_late),
            Origin::Workload { .. } => false,
        };
        Ok(self.reads_of(place)?.parts.iter().any(waits))
    }

    /// The constant weights of a workload in L2, loaded if they are not there: their address and first
    /// output channel; `None` without weights.
    fn constant_weights(&mut self, place: Place) -> Result<Option<(i64, i64)>> {
        let workload = self.workload(place);
        let Some(weight) = &workload.weight else { return Ok(None) };
        if self.layer(place)?.weights.is_some_and(|weights| weights.is_activations) {
            return Ok(None);
        }
        let path = self.path(place);
        let Some((transfer, (low, high))) = weight.transfers().next().zip(weight.channels()) else {
            return Err(error("emit-weights", &path, "the weights have no transfer"));
        };
        if let Some((address, _)) = self.cores[place.0].weights.get(&transfer) {
            return Ok(Some((*address, low)));
        }
        let weights = self.dram.weights(&workload.layer_name, &path)?;
        let missing = || error("emit-weights", &path, "the layer has no weights");
        let shared = self.layer(place)?.weights.ok_or_else(missing)?;
        let begins = workload.extent.axis(1).0;
        if shared.narrow.is_some() && begins != low {
            let message = "the weights of narrow groups are not those of one workload";
            return Err(error("emit-groups", &path, message));
        }
        let weights = shared.rows(weights, word(begins, &path)?);
        let address = self.bytes(place, (high - low + 1) * weights.row())?;
        let rows = (low, word(high - low + 1, &path)?);
        self.step(place, instructions::load_weights(&weights, rows, (0, address)))?;
        let later = self.origins.schedule.cores[place.0].workloads[place.1..].iter();
        let has = |workload: &&Workload| {
            let is_it = |resident: &Resident| {
                resident.kind == ResidentKind::Weight
                    && resident.transfers().any(|id| id == transfer)
            };
            workload.buffer.iter().any(is_it)
        };
        let stay = later.take_while(has).count().max(1);
        self.cores[place.0].weights.insert(transfer, (address, place.1 + stay - 1));
        Ok(Some((address, low)))
    }

    /// The origin of an instruction.
    fn instruction_origin(&self, place: Place, tile: i64) -> Result<irc_npu::Origin> {
        let path = self.path(place);
        Ok(irc_npu::Origin {
            slyr: signed(self.layer(place)?.number.into(), &path)?,
            wkl: signed(self.workload(place).workload_id, &path)?,
            tile: signed(tile, &path)?,
            ..irc_npu::Origin::default()
        })
    }

    fn push(&mut self, core: usize, step: Step) {
        self.cores[core].steps.push(step);
    }

    fn finish(self) -> Result<Program> {
        let mut program = Program::default();
        for core in self.cores.into_iter().filter(|core| !core.steps.is_empty()) {
            let last = core.steps.last().map_or(0, |step| step.workload);
            let frame = Frame {
                id: core.id,
                path: &core.path,
                begin: (irc_npu::Origin::default(), 0),
                regions: &[[0, L2]],
                end: (irc_npu::Origin::default(), last),
                rules: tokens::Rules::Mesh,
            };
            program.cores.push(frame.wrap(core.steps)?);
        }
        program.cores.sort_by_key(|core| core.id);
        Ok(program)
    }
}

fn core_state(schedule: &Schedule, core: usize, space: &Space) -> Result<CoreState> {
    let path = schedule.core_path(core);
    Ok(CoreState {
        id: word(schedule.cores[core].id, &path)?,
        path,
        steps: vec![],
        space: space.clone(),
        weights: BTreeMap::new(),
        seen: BTreeSet::new(),
        brought: BTreeMap::new(),
    })
}

fn first_output(weight: &irc_gemini_format::schedule::Weight) -> i64 {
    weight.extent().axis(1).0
}
