//! Programs of several cores, from schedules of dialects B and C.
//!
//! Workloads are walked in one order that respects what each reads, and every instruction of every
//! core is issued in that walk: what is sent is received at the same step. So no instruction waits
//! for one of a later step, and nothing can wait in a circle. `docs/npu-multicore.md` has the
//! decisions.

mod compute;
mod dram;
mod geometry;
mod parts;
mod space;
mod transfer;

use std::collections::{BTreeMap, BTreeSet};

use irc_gemini_format::schedule::{Resident, ResidentKind, Schedule, Workload};
use irc_npu::enums::DataFmt;
use irc_npu::op::{CtEd, CtSt};
use irc_npu::{Core, Origin, Program};

use crate::configure::configure;
use crate::finding::{Found, fault, word};
use crate::rings;
use crate::step::Step;
use crate::tensors::{Tensor, lengths};
use crate::tokens;
use dram::Dram;
use geometry::Windows;
use parts::{Makers, Part, Place, padded};
use space::Space;

/// Bytes of the L2 buffer of a core.
const L2: i64 = 8 << 20;

/// The programs of all cores.
pub fn emit(schedule: &Schedule) -> Found<Program> {
    let mut mesh = Mesh::new(schedule)?;
    for place in mesh.walk()? {
        mesh.issue(place)?;
    }
    mesh.finish()
}

/// What a part takes of a tensor: first element, lengths.
type Taken = ([i64; 4], [i64; 4]);

/// A core while its program is made.
struct CoreState {
    id: u32,
    path: String,
    steps: Vec<Step>,
    space: Space,
    /// Weights in L2 by transfer: address, and the last workload that has them.
    weights: BTreeMap<i64, (i64, usize)>,
    /// Cores whose stores are known to be there, and which.
    seen: BTreeSet<Place>,
    /// Where the first operand went that a transfer brought: later readers copy it.
    brought: BTreeMap<i64, Tensor>,
}

struct Mesh<'s> {
    schedule: &'s Schedule,
    cores: Vec<CoreState>,
    makers: Makers,
    parts: BTreeMap<Place, (Vec<Part>, usize)>,
    /// Workloads that read a result without DRAM, and which part, by its maker.
    readers: BTreeMap<Place, Vec<(Place, Part)>>,
    dram: Dram,
    windows: BTreeMap<&'s str, [Windows; 2]>,
    layers: BTreeMap<&'s str, u32>,
    /// Tensors of operands that have room: by workload, by operand.
    operands: BTreeMap<(Place, usize), Tensor>,
    /// Parts of channels that are no whole words, which wait for their turn: by workload, by
    /// transfer, by operand.
    staged: BTreeMap<(Place, i64, usize), Tensor>,
    /// What has come into operands: first element and lengths of each part.
    arrived: BTreeMap<(Place, usize), Vec<Taken>>,
}

impl<'s> Mesh<'s> {
    fn new(schedule: &'s Schedule) -> Found<Self> {
        let mut cores = vec![];
        for (place, core) in schedule.cores.iter().enumerate() {
            let path = schedule.core_path(place);
            cores.push(CoreState {
                id: word(core.id, &path)?,
                path,
                steps: vec![],
                space: Space::new(L2),
                weights: BTreeMap::new(),
                seen: BTreeSet::new(),
                brought: BTreeMap::new(),
            });
        }
        let mut all = BTreeMap::new();
        let mut layers = BTreeMap::new();
        let mut by_layer: BTreeMap<&str, Vec<&Workload>> = BTreeMap::new();
        for (core, index, workload) in schedule.workloads() {
            let path = format!("{}[{index}]", schedule.core_path(core));
            let name = workload.layer_name.as_str();
            all.insert((core, index), parts::parts(workload, &path)?);
            layers.entry(name).or_insert(0);
            by_layer.entry(name).or_default().push(workload);
        }
        for (number, index) in layers.values_mut().enumerate() {
            *index = word(number as i64, "$")?;
        }
        let parts = all.values().flat_map(|(parts, _)| parts);
        let mut dram = Dram::new(schedule, parts, "$")?;
        let mut windows = BTreeMap::new();
        for (name, workloads) in by_layer {
            if workloads.iter().any(|workload| workload.layer_type.is_none()) {
                let message = format!("layer `{name}` does not say what it computes");
                return Err(fault("emit-kind", &format!("$ (layer `{name}`)"), message));
            }
            let (found, weights) = windows_of(schedule, name, &workloads)?;
            if let Some((k, size)) = weights {
                dram.add_weights(name, k, size);
            }
            windows.insert(name, found);
        }
        let makers = Makers::new(schedule);
        let mut readers: BTreeMap<Place, Vec<(Place, Part)>> = BTreeMap::new();
        for (reader, (parts, _)) in &all {
            for part in parts.iter().filter(|part| !part.is_dram) {
                if let Some(maker) = makers.sent.get(&part.transfer) {
                    readers.entry(*maker).or_default().push((*reader, part.clone()));
                }
            }
        }
        Ok(Self {
            schedule,
            cores,
            makers,
            parts: all,
            readers,
            dram,
            windows,
            layers,
            operands: BTreeMap::new(),
            staged: BTreeMap::new(),
            arrived: BTreeMap::new(),
        })
    }

    fn workload(&self, (core, index): Place) -> &'s Workload {
        &self.schedule.cores[core].workloads[index]
    }

    fn path(&self, (core, index): Place) -> String {
        format!("{}[{index}]", self.cores[core].path)
    }

    /// All workloads, each after those of its core before it and those that make what it reads.
    fn walk(&self) -> Found<Vec<Place>> {
        let mut next = vec![0; self.cores.len()];
        let mut done: BTreeSet<Place> = BTreeSet::new();
        let mut all = vec![];
        loop {
            let heads = next.iter().enumerate().map(|(core, index)| (core, *index));
            let waiting: Vec<Place> = heads
                .filter(|(core, index)| *index < self.schedule.cores[*core].workloads.len())
                .collect();
            let ready = |place: &&Place| self.makers_of(**place).all(|maker| done.contains(&maker));
            let first = waiting.iter().filter(ready);
            let Some(place) = first.min_by_key(|place| self.workload(**place).workload_id) else {
                let Some(stuck) = waiting.first() else { return Ok(all) };
                let message = "the workload waits for its own result, over other cores";
                return Err(fault("emit-order", &self.path(*stuck), message));
            };
            done.insert(*place);
            all.push(*place);
            next[place.0] += 1;
        }
    }

    /// Workloads that make what one reads.
    fn makers_of(&self, place: Place) -> impl Iterator<Item = Place> {
        let parts = self.parts.get(&place).into_iter().flat_map(|(parts, _)| parts);
        parts.flat_map(|part| {
            let sent = self.makers.sent.get(&part.transfer).filter(|_| !part.is_dram);
            let stored = self.makers.stored.get(&part.transfer).filter(|_| part.is_dram);
            sent.into_iter().chain(stored.into_iter().flatten()).copied()
        })
    }

    /// Issues a workload: what it loads, its tiles, and where its result goes.
    fn issue(&mut self, place: Place) -> Found<()> {
        let (parts, operands) = self.parts.get(&place).cloned().unwrap_or_default();
        // From the first channel on: a part's padding may lie over what comes behind it.
        let mut late: Vec<&Part> = parts.iter().collect();
        late.sort_by_key(|part| part.at[1]);
        for part in late {
            if part.is_dram {
                self.load(place, part)?;
            } else if let Some(staged) = self.staged.remove(&(place, part.transfer, part.operand)) {
                self.settle(place, part, staged)?;
            }
        }
        let inputs: Vec<Tensor> =
            (0..operands).map(|operand| self.operand(place, operand)).collect::<Found<_>>()?;
        let output = self.room(place, lengths(&self.workload(place).extent))?;
        let address = self.weights(place)?;
        self.compute(place, &inputs, &output, address)?;
        self.give(place, &output)?;
        for tensor in inputs.iter().chain([&output]) {
            self.cores[place.0].space.free(tensor.base);
        }
        self.operands.retain(|(owner, _), _| *owner != place);
        self.arrived.retain(|(owner, _), _| *owner != place);
        let core = &mut self.cores[place.0];
        core.brought.retain(|_, tensor| !inputs.iter().any(|input| input.base == tensor.base));
        let over: Vec<i64> = core
            .weights
            .iter()
            .filter(|(_, (_, last))| *last <= place.1)
            .map(|(transfer, _)| *transfer)
            .collect();
        for transfer in over {
            if let Some((address, _)) = core.weights.remove(&transfer) {
                core.space.free(address);
            }
        }
        Ok(())
    }

    /// The tensor of an operand, with room.
    fn operand(&mut self, place: Place, operand: usize) -> Found<Tensor> {
        if let Some(tensor) = self.operands.get(&(place, operand)) {
            return Ok(*tensor);
        }
        let [n, c, h, w] = lengths(&self.workload(place).ifmaps()[0].extent());
        let tensor = self.room(place, [n, c + self.slack(place), h, w])?;
        self.operands.insert((place, operand), tensor);
        Ok(tensor)
    }

    /// Channels behind those of the operands of a workload: where parts are no whole words, the
    /// padding of the last one needs a place in every pixel.
    fn slack(&self, place: Place) -> i64 {
        let channels = lengths(&self.workload(place).ifmaps()[0].extent())[1];
        let parts = self.parts.get(&place).into_iter().flat_map(|(parts, _)| parts);
        let has_odd = parts.into_iter().any(|part| !part.is_of_words(channels));
        if has_odd { padded(channels) - channels + parts::WORD } else { 0 }
    }

    /// Room for a tensor `[N, C, H, W]` that a workload needs.
    fn room(&mut self, place: Place, [n, c, h, w]: [i64; 4]) -> Found<Tensor> {
        let path = self.path(place);
        let shape = [word(c, &path)?, word(h, &path)?, word(w, &path)?];
        let mut tensor = Tensor { region: 0, base: 0, format: DataFmt::Int8, shape };
        tensor.base = self.bytes(place, tensor.address([n, 0, 0, 0]))?;
        Ok(tensor)
    }

    fn bytes(&mut self, place: Place, bytes: i64) -> Found<i64> {
        let path = self.path(place);
        let space = &mut self.cores[place.0].space;
        let used = space.used();
        space.take(bytes).ok_or_else(|| {
            let message =
                format!("{bytes} bytes find no room in L2, where {used} of {L2} are taken");
            fault("emit-room", &path, message)
        })
    }

    /// The weights of a workload in L2, loaded when they are not there; nothing without weights.
    fn weights(&mut self, place: Place) -> Found<Option<(i64, i64)>> {
        let workload = self.workload(place);
        let Some(weight) = &workload.weight else { return Ok(None) };
        let path = self.path(place);
        if weight.from_ofmap == Some(true) {
            let message = "weights that are activations have no layout that is known";
            return Err(fault("emit-from-ofmap", &path, message));
        }
        let Some((transfer, (low, high))) = weight.transfers().next().zip(weight.channels()) else {
            return Err(fault("emit-weights", &path, "the weights come by no transfer"));
        };
        if let Some((address, _)) = self.cores[place.0].weights.get(&transfer) {
            return Ok(Some((*address, low)));
        }
        let weights = self.dram.weights(&workload.layer_name, &path)?;
        let address = self.bytes(place, (high - low + 1) * weights.row())?;
        self.load_weights(place, (low, high), address)?;
        let later = self.schedule.cores[place.0].workloads[place.1..].iter();
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

    /// Where an instruction comes from.
    fn origin(&self, place: Place, tile: i32) -> Found<Origin> {
        let path = self.path(place);
        let number = |value: i64| {
            i32::try_from(value).map_err(|_| fault("emit-range", &path, "a number is too large"))
        };
        let workload = self.workload(place);
        let layer = self.layers.get(workload.layer_name.as_str()).copied().unwrap_or_default();
        Ok(Origin {
            slyr: number(layer.into())?,
            wkl: number(workload.workload_id)?,
            tile,
            ..Origin::default()
        })
    }

    fn push(&mut self, core: usize, step: Step) {
        self.cores[core].steps.push(step);
    }

    fn finish(self) -> Found<Program> {
        let mut program = Program::default();
        for core in self.cores.into_iter().filter(|core| !core.steps.is_empty()) {
            let control =
                |op, workload| Step { configs: vec![], op, origin: Origin::default(), workload };
            let last = core.steps.last().map_or(0, |step| step.workload);
            let mut steps = vec![control(CtSt {}.into(), 0)];
            let table = rings::table(&[[0, L2]], &core.path)?;
            steps.extend(table.into_iter().map(|op| control(op, 0)));
            steps.extend(core.steps);
            steps.push(control(CtEd {}.into(), last));
            let mut issued = configure(steps);
            tokens::synchronize(&mut issued, tokens::Rules::Mesh, &core.path)?;
            let code = issued.into_iter().map(|(instruction, _)| instruction).collect();
            program.cores.push(Core { id: core.id, code });
        }
        program.cores.sort_by_key(|core| core.id);
        Ok(program)
    }
}

/// The windows of a layer, and its weights: output channels, and `[C, R, S]`.
type Layer = ([Windows; 2], Option<(u32, [u32; 3])>);

fn windows_of(schedule: &Schedule, name: &str, workloads: &[&Workload]) -> Found<Layer> {
    let path = format!("$ (layer `{name}`)");
    let mut elements = None;
    let mut k = 0;
    let channels = workloads.first().and_then(|workload| workload.ifmaps().first());
    let channels = channels.map_or(1, |ifmap| lengths(&ifmap.extent())[1]);
    for weight in workloads.iter().filter_map(|workload| workload.weight.as_ref()) {
        let Some((low, high)) = weight.channels() else { continue };
        k = k.max(high + 1);
        let block = weight.transfers().find_map(|transfer| schedule.dram_out(transfer));
        if let Some(block) = block {
            // Sizes are bits of eight-bit elements.
            elements = Some(block.size / 8 / ((high - low + 1) * channels).max(1));
        }
    }
    let unclear = || {
        let message = format!("no windows explain what the workloads of `{name}` read");
        fault("emit-windows", &path, message)
    };
    let found = geometry::kernel(workloads, elements).ok_or_else(unclear)?;
    let Some(elements) = elements else { return Ok((found, None)) };
    if elements != found[0].kernel * found[1].kernel {
        return Err(unclear());
    }
    let kernel = [word(found[0].kernel, &path)?, word(found[1].kernel, &path)?];
    Ok((found, Some((word(k, &path)?, [word(channels, &path)?, kernel[0], kernel[1]]))))
}
