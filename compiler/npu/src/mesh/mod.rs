//! Programs of several cores, from schedules of dialects B and C.
//!
//! Loads and workloads are visited in one order that respects their dependencies ([`order`]), and every instruction of
//! every core is issued in that order: what is sent is received at the same step. So no instruction waits
//! for one of a later step, and there is no deadlock. `docs/npu-multicore.md` explains the
//! decisions.

mod activations;
mod clock;
mod compute;
mod dram;
mod geometry;
mod groups;
mod layer;
mod order;
mod parts;
mod space;
mod transfer;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use irc_gemini_format::schedule::{Place, Resident, ResidentKind, Schedule, Workload};
use irc_npu::Program;
use irc_npu::enums::DataFmt;
use irc_npu_sim::cycles;
use irc_npu_sim::durations::WorkloadTimes;
use irc_npu_sim::noc::Mesh as Shared;

use crate::configure::Configured;
use crate::diagnostic::{Result, error, signed, word, words};
use crate::frame::Frame;
use crate::instructions;
use crate::known::KnownLayers;
use crate::layers::Weights;
use crate::step::Step;
use crate::tensors::{Tensor, lengths};
use crate::tokens;
use clock::Clocks;
use dram::Dram;
use layer::{Layer, LayerWeights, Work};
use order::{Ahead, Order};
use parts::{Operand, Origins, Part, Reads, WORD, padded};
use space::Space;

/// Bytes of the L2 buffer of a core.
const L2: i64 = 8 << 20;

/// The programs of all cores, which share `mesh` if there is one.
///
/// Of several orders, the one whose program takes the fewest cycles in the simulator; the first of equal ones. Tensors go
/// round L2, so that instructions seldom wait for room, or are packed, so that there is more of it.
///
/// # Errors
/// What the first order rejects, if no order has a program.
pub fn emit(schedule: &Schedule, known: &KnownLayers, mesh: Option<&Shared>) -> Result<Program> {
    let facts = Facts::new(schedule, known)?;
    let clocks = Clocks::new(schedule.cores.len(), mesh);
    let times = times(schedule);
    let options = cycles::Options { times, mesh: mesh.cloned(), ..cycles::Options::default() };
    let parts = facts.reads.values().map(|reads| reads.parts.len()).sum();
    let orders = Ahead::candidates(parts);
    // Programs may take gigabytes, so that there is one at a time: the best one is built again.
    let mut best: Option<(u64, Ahead, Space)> = None;
    let mut failure = None;
    for ahead in &orders {
        for space in [Space::new(L2), Space::packed(L2)] {
            match facts.program(*ahead, &clocks, space.clone()) {
                Ok(program) if orders.len() == 1 => return Ok(program),
                Ok(program) => {
                    let timing = cycles::run(&program, &options);
                    let taken = timing.map_or(u64::MAX, |timing| timing.cycles);
                    if best.as_ref().is_none_or(|(least, ..)| taken < *least) {
                        best = Some((taken, *ahead, space));
                    }
                    if !ahead.packs() {
                        break;
                    }
                }
                Err(found) => failure = failure.or(Some(found)),
            }
        }
    }
    match (best, failure) {
        (Some((_, ahead, space)), _) => facts.program(ahead, &clocks, space),
        (None, Some(found)) => Err(found),
        (None, None) => Ok(Program::default()),
    }
}

/// Cycles of workloads.
fn times(schedule: &Schedule) -> WorkloadTimes {
    let time = |(core, _, workload): (usize, usize, &Workload)| {
        let core = u32::try_from(schedule.cores[core].id).ok()?;
        Some(((core, i32::try_from(workload.workload_id).ok()?), workload.time as f64))
    };
    schedule.workloads().filter_map(time).collect()
}

/// A part of a tensor: first element, lengths.
type TensorBox = ([i64; 4], [i64; 4]);

/// The state of a core while its program is built.
struct CoreState {
    id: u32,
    path: String,
    code: Configured,
    space: Space,
    /// Weights in L2, by their stay: address, and how many workloads still use them.
    weights: BTreeMap<usize, (i64, usize)>,
    /// Workloads of other cores whose stores are known to have ended.
    seen: BTreeSet<Place>,
    /// The first operand that a transfer from DRAM was loaded into: later readers copy it.
    brought: BTreeMap<i64, Tensor>,
    /// Addresses that are to be free, with the cycle at which their last user is expected to end.
    ending: BinaryHeap<Reverse<(u64, i64)>>,
}

impl CoreState {
    /// Frees what nothing is expected to use any more at a cycle.
    fn settle(&mut self, now: u64) {
        while self.ending.peek().is_some_and(|Reverse((end, _))| *end <= now) {
            self.settle_first();
        }
    }

    /// Frees what is expected to be free first; whether there is anything.
    fn settle_first(&mut self) -> bool {
        let Some(Reverse((_, base))) = self.ending.pop() else { return false };
        self.space.free(base);
        self.brought.retain(|_, first| first.base != base);
        true
    }
}

/// What is known of a schedule before the order of its program.
struct Facts<'s> {
    origins: Origins<'s>,
    reads: BTreeMap<Place, Reads<'s>>,
    /// By core, by workload, who reads its result without DRAM.
    readers: Vec<Vec<Vec<Reader>>>,
    dram: Dram<'s>,
    layers: BTreeMap<&'s str, Layer>,
    stays: Stays,
}

/// A workload that reads a result.
#[derive(Clone, Copy)]
struct Reader {
    place: [u32; 2],
    /// The index of the part that it reads among all its parts, and the operand of that part.
    part: u32,
    operand: u32,
}

impl Reader {
    fn place(self) -> Place {
        (self.place[0] as usize, self.place[1] as usize)
    }
}

/// The programs of a schedule under construction, in one of the possible orders.
struct Mesh<'m> {
    origins: &'m Origins<'m>,
    reads: &'m BTreeMap<Place, Reads<'m>>,
    readers: &'m [Vec<Vec<Reader>>],
    dram: &'m Dram<'m>,
    layers: &'m BTreeMap<&'m str, Layer>,
    stays: &'m Stays,
    cores: Vec<CoreState>,
    /// Operand tensors in L2: by workload, by operand.
    operands: BTreeMap<(Place, usize), Tensor>,
    /// Operands that were loaded before the turn of their workload.
    loaded: BTreeSet<(Place, usize)>,
    /// Parts whose channels are not whole words, which are staged beside their operands.
    staged: BTreeMap<Place, Vec<(Part<'m>, Tensor)>>,
    /// Parts of operands that have arrived: first element and lengths of each.
    arrived: BTreeMap<(Place, usize), Vec<TensorBox>>,
}

/// Which constant weights stay in L2 together: those of one transfer, while consecutive snapshots of a core list them.
#[derive(Default)]
struct Stays {
    /// The number of the stay of the weights of each workload.
    of: BTreeMap<Place, usize>,
    /// How many workloads use the weights of each.
    users: Vec<usize>,
}

impl Stays {
    fn new(schedule: &Schedule) -> Self {
        let mut all = Self::default();
        for (core, own) in schedule.cores.iter().enumerate() {
            // The stay of a transfer, and the last snapshot that lists it.
            let mut known: HashMap<i64, (usize, usize)> = HashMap::new();
            for (index, workload) in own.workloads.iter().enumerate() {
                let residents = workload.buffer.iter();
                let weights = residents.filter(|resident| resident.kind == ResidentKind::Weight);
                let used = workload.weight.iter().flat_map(|weight| weight.transfers().next());
                for transfer in weights.flat_map(Resident::transfers).chain(used.clone()) {
                    match known.get_mut(&transfer) {
                        Some((_, last)) if *last + 1 >= index => *last = index,
                        _ => {
                            known.insert(transfer, (all.users.len(), index));
                            all.users.push(0);
                        }
                    }
                }
                for transfer in used {
                    let stay = known[&transfer].0;
                    all.users[stay] += 1;
                    all.of.insert((core, index), stay);
                }
            }
        }
        all
    }
}

impl<'s> Facts<'s> {
    fn new(schedule: &'s Schedule, known: &KnownLayers) -> Result<Self> {
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
                Some(weights) if weights.are_factors => {}
                Some(weights) if weights.is_activations => {
                    dram.add_constants(name, weights.k, "$")?;
                }
                Some(LayerWeights { k, size: [_, r, s], narrow: Some(groups), .. }) => {
                    dram.add_narrow(name, k, &groups, [r, s]);
                }
                Some(weights) => dram.add_weights(name, weights.k, weights.size),
                None => {}
            }
            for place in places {
                let end = layer.weights.and_then(|all| all.shared_end(origins.workload(*place)));
                if let Some(end) = end
                    && let Some(Reads { operands, .. }) = reads.get_mut(place)
                    && let Some(read) = operands.first_mut()
                    && padded(read.size[1]) < end
                {
                    read.slack = read.slack.max(end - read.size[1]);
                }
            }
            layers.insert(*name, layer);
        }
        let mut readers: Vec<Vec<Vec<Reader>>> =
            schedule.cores.iter().map(|core| vec![vec![]; core.workloads.len()]).collect();
        for ((core, index), reads) in &reads {
            let place = [*core as u32, *index as u32];
            for (number, part) in reads.parts.iter().enumerate() {
                if let Some(((core, index), _)) = part.origin.produced() {
                    let operand = part.operand() as u32;
                    readers[core][index].push(Reader { place, part: number as u32, operand });
                }
            }
        }
        readers.iter_mut().flatten().for_each(Vec::shrink_to_fit);
        Ok(Self { stays: Stays::new(schedule), origins, reads, readers, dram, layers })
    }

    /// The program in an order.
    fn program(&self, ahead: Ahead, clocks: &Clocks, space: Space) -> Result<Program> {
        let schedule = self.origins.schedule;
        let cores = (0..schedule.cores.len()).map(|core| core_state(schedule, core, &space));
        let mesh = Mesh {
            origins: &self.origins,
            reads: &self.reads,
            readers: &self.readers,
            dram: &self.dram,
            layers: &self.layers,
            stays: &self.stays,
            cores: cores.collect::<Result<_>>()?,
            operands: BTreeMap::new(),
            loaded: BTreeSet::new(),
            staged: BTreeMap::new(),
            arrived: BTreeMap::new(),
        };
        Order::new(mesh, ahead, clocks.clone())?.run()?.finish()
    }
}

impl<'m> Mesh<'m> {
    fn workload(&self, place: Place) -> &'m Workload {
        self.origins.workload(place)
    }

    fn path(&self, place: Place) -> String {
        self.origins.schedule.workload_path(place)
    }

    fn layer(&self, place: Place) -> Result<&Layer> {
        let missing = || error("emit-kind", &self.path(place), "the workload has no layer");
        self.layers.get(self.workload(place).layer_name.as_str()).ok_or_else(missing)
    }

    fn reads_of(&self, place: Place) -> Result<&'m Reads<'m>> {
        let missing = || error("emit-input", &self.path(place), "the workload reads nothing");
        self.reads.get(&place).ok_or_else(missing)
    }

    fn operand_of(&self, place: Place, operand: usize) -> Result<Operand> {
        let missing = || error("emit-input", &self.path(place), "an operand is missing");
        self.reads_of(place)?.operands.get(operand).copied().ok_or_else(missing)
    }

    /// Issues a workload: its loads, its tiles, and the transfers of its result. It is expected to end, and its result to
    /// have left, at the cycles `ends`.
    fn issue(&mut self, place: Place, ends: [u64; 2]) -> Result<()> {
        self.fill(place)?;
        let (count, inputs) = {
            let reads = self.reads_of(place)?;
            (reads.operands.len(), reads.inputs)
        };
        let mut taken =
            (0..count).map(|operand| self.operand(place, operand)).collect::<Result<Vec<_>>>()?;
        let is_read_past = self.is_read_past(place);
        let tail = if is_read_past { WORD } else { 0 };
        let [n, c, h, w] = lengths(&self.workload(place).extent);
        let output = self.room_with(place, [n, c + self.group_slack(place)?, h, w], tail)?;
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
            self.compute(place, &taken[..inputs], &output, weights, ends[0])?;
        }
        if is_read_past {
            self.extend(place, &output)?;
        }
        self.distribute(place, &output)?;
        self.free(place, &taken, ends[0]);
        self.cores[place.0].ending.push(Reverse((ends[1], output.base)));
        Ok(())
    }

    /// Loads the operands of the workload from DRAM, and moves staged parts to their places.
    fn fill(&mut self, place: Place) -> Result<()> {
        let staged = self.staged.remove(&place).unwrap_or_default().into_iter();
        let staged = staged.map(|(part, tensor)| (part, Some(tensor)));
        let is_late = |part: &&Part<'_>| !self.loaded.contains(&(place, part.operand()));
        let parts = self.reads_of(place)?.parts.iter().filter(is_late).copied();
        let mut late: Vec<_> = parts.map(|part| (part, None)).chain(staged).collect();
        // In ascending order of channels: a part's padding may overlap what follows it.
        late.sort_by_key(|(part, _)| part.at()[1]);
        for (part, staged) in late {
            match staged {
                Some(staged) => self.place_staged(place, &part, staged)?,
                None => self.load(place, &part)?,
            }
        }
        Ok(())
    }

    /// Loads an operand of which all parts are in DRAM before the turn of its workload.
    fn fill_early(&mut self, place: Place, operand: usize) -> Result<()> {
        let own = |part: &&Part<'_>| part.operand() == operand;
        let mut parts: Vec<Part<'_>> =
            self.reads_of(place)?.parts.iter().filter(own).copied().collect();
        parts.sort_by_key(|part| part.at()[1]);
        parts.iter().try_for_each(|part| self.load(place, part))?;
        self.loaded.insert((place, operand));
        Ok(())
    }

    /// Frees tensors, and weights that no later workload uses, at the cycle at which the workload is expected to end.
    fn free(&mut self, place: Place, tensors: &[Tensor], end: u64) {
        for operand in 0..tensors.len() {
            self.operands.remove(&(place, operand));
            self.loaded.remove(&(place, operand));
            self.arrived.remove(&(place, operand));
        }
        let core = &mut self.cores[place.0];
        core.ending.extend(tensors.iter().map(|tensor| Reverse((end, tensor.base))));
        let Some(stay) = self.stays.of.get(&place) else { return };
        let Some((address, users)) = core.weights.get_mut(stay) else { return };
        *users -= 1;
        if *users == 0 {
            core.ending.push(Reverse((end, *address)));
            core.weights.remove(stay);
        }
    }

    /// The tensor of an operand, allocated.
    fn operand(&mut self, place: Place, operand: usize) -> Result<Tensor> {
        if let Some(tensor) = self.operands.get(&(place, operand)) {
            return Ok(*tensor);
        }
        let Operand { size: [n, c, h, w], slack } = self.operand_of(place, operand)?;
        let tail = if operand == 0 && self.reads_past_groups(place)? { WORD } else { 0 };
        let tensor = self.room_with(place, [n, c + slack, h, w], tail)?;
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
        let core = &mut self.cores[place.0];
        loop {
            if let Some(found) = core.space.take(bytes) {
                return Ok(found);
            }
            if !core.settle_first() {
                break;
            }
        }
        let (used, gap) = (core.space.used(), core.space.largest_gap());
        let message = format!(
            "{bytes} bytes do not fit into L2, of which {used} of {L2} are used; {gap} is the most in a row"
        );
        Err(error("emit-room", &self.path(place), message))
    }

    /// The rows of the constant weights of a workload in DRAM, and its first and last output channel; `None` without
    /// constant weights.
    fn weight_rows(&self, place: Place) -> Result<Option<(Weights, (i64, i64))>> {
        let workload = self.workload(place);
        let Some(weight) = &workload.weight else { return Ok(None) };
        let Some(shared) = self.layer(place)?.weights else { return Ok(None) };
        if shared.is_activations {
            return Ok(None);
        }
        let path = self.path(place);
        let Some((_, (low, high))) = weight.transfers().next().zip(weight.channels()) else {
            return Err(error("emit-weights", &path, "the weights have no transfer"));
        };
        let weights = self.dram.weights(&workload.layer_name, &path)?;
        let begins = workload.extent.axis(1).0;
        Ok(Some((shared.rows(weights, word(begins, &path)?), (low, high))))
    }

    /// The constant weights of a workload in L2, loaded if they are not there: their address and first
    /// output channel; `None` without weights.
    fn constant_weights(&mut self, place: Place) -> Result<Option<(i64, i64)>> {
        let Some((weights, (low, high))) = self.weight_rows(place)? else { return Ok(None) };
        let path = self.path(place);
        let missing = || error("emit-weights", &path, "the weights have no transfer");
        let stay = *self.stays.of.get(&place).ok_or_else(missing)?;
        if let Some((address, _)) = self.cores[place.0].weights.get(&stay) {
            return Ok(Some((*address, low)));
        }
        let is_narrow = self.layer(place)?.weights.is_some_and(|shared| shared.narrow.is_some());
        if is_narrow && self.workload(place).extent.axis(1).0 != low {
            let message = "the weights of narrow groups are not those of one workload";
            return Err(error("emit-groups", &path, message));
        }
        let address = self.bytes(place, (high - low + 1) * weights.row())?;
        let rows = (low, word(high - low + 1, &path)?);
        self.step(place, instructions::load_weights(&weights, rows, (0, address)))?;
        self.cores[place.0].weights.insert(stay, (address, self.stays.users[stay]));
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
        self.cores[core].code.push(step);
    }

    fn finish(self) -> Result<Program> {
        let mut program = Program::default();
        for core in self.cores {
            let Some(last) = core.code.last_workload() else { continue };
            let frame = Frame {
                id: core.id,
                path: &core.path,
                begin: (irc_npu::Origin::default(), 0),
                regions: &[[0, L2]],
                end: (irc_npu::Origin::default(), last),
                rules: tokens::Rules::Mesh,
            };
            program.cores.push(frame.wrap(core.code)?);
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
        code: Configured::default(),
        space: space.clone(),
        weights: BTreeMap::new(),
        seen: BTreeSet::new(),
        brought: BTreeMap::new(),
        ending: BinaryHeap::new(),
    })
}

fn first_output(weight: &irc_gemini_format::schedule::Weight) -> i64 {
    weight.extent().axis(1).0
}
