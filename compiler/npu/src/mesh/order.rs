//! The order in which loads and workloads are issued.
//!
//! Each engine of a core runs what is issued to it in order, and a tensor has its room in L2 from when what writes it is
//! issued. So the order decides which loads run while others compute, and whether PE waits for a sum of VP or computes
//! other images in the meantime. What could start first, by an estimate, is issued first, as list scheduling does:
//!
//! * a workload is one of the next workloads of its core in the schedule, and its operands are computed or stored;
//! * weights, and operands that are in DRAM entirely, are loaded before the turn of their workload;
//! * both only if L2 then has room for each workload of the core that comes before in the schedule.

use std::collections::{BTreeSet, HashMap};

use irc_gemini_format::schedule::Place;
use irc_npu::Engine;

use super::clock::Clocks;
use super::layer::Work;
use super::parts::{Part, padded};
use super::space::Space;
use super::{Mesh, Stays};
use crate::diagnostic::{Result, error};
use crate::tensors::lengths;

/// How far a program departs from the order of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Workloads of a core that a later one may pass.
    passed: usize,
    /// Workloads of a core, from the next one, whose loads may be issued before their turn.
    loaded: usize,
}

impl Ahead {
    /// The order of the schedule.
    const NONE: Self = Self { passed: 0, loaded: 0 };

    /// The orders to compare, for a schedule whose workloads read so many parts: few for long programs.
    pub fn candidates(parts: usize) -> Vec<Self> {
        let ahead = |(passed, loaded)| Self { passed, loaded };
        let more: &[(usize, usize)] = match parts {
            ..LONG => &[(0, 2), (0, 8), (0, 32), (4, 8), (12, 24), (32, 32), (64, 64)],
            LONG..VERY_LONG => &[(0, 8)],
            _ => &[],
        };
        [Self::NONE].into_iter().chain(more.iter().copied().map(ahead)).collect()
    }

    /// Whether to pack tensors even if there is room for them without.
    pub fn packs(self) -> bool {
        self != Self::NONE
    }
}

/// Parts that workloads read, from which on two orders are compared, and from which on none, as each takes gigabytes.
const LONG: usize = 200_000;
const VERY_LONG: usize = 1_000_000;

/// Something to issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    /// Load the constant weights of a workload.
    Weights,
    /// Load an operand of it.
    Operand(usize),
    /// Compute it.
    Run,
}

/// What a core would do next: the cycle at which that could start, by the estimate, the number of the workload, what, the
/// index of the workload.
type Choice = (u64, i64, Action, usize);

/// An operand of a workload.
struct Operand {
    bytes: i64,
    /// How many of them come from DRAM.
    stored: i64,
    /// Parts that are not computed yet.
    waits: usize,
    /// When all parts are there, or in DRAM.
    ready: u64,
    is_loaded: bool,
}

/// A workload.
struct State {
    engine: Engine,
    cycles: u64,
    output: i64,
    operands: Vec<Operand>,
    weights: Option<(usize, i64)>,
    is_issued: bool,
}

/// An operand that a result is part of.
#[derive(Clone, Copy)]
struct Follower {
    place: Place,
    operand: usize,
}

/// Operands that are read from DRAM when the same workloads have stored their results.
#[derive(Default)]
struct Stored {
    /// Workloads that have not.
    waits: usize,
    /// When the last of the others has.
    ready: u64,
    followers: Vec<Follower>,
}

/// A mesh with what is not issued yet.
pub struct Order<'m> {
    mesh: Mesh<'m>,
    ahead: Ahead,
    clocks: Clocks,
    /// By core, by workload.
    states: Vec<Vec<State>>,
    /// What waits for the same stores, and by core, by workload, the numbers of those that wait for its result.
    stored: Vec<Stored>,
    waiting: Vec<Vec<Vec<usize>>>,
    /// By core, the first workload that is not issued.
    heads: Vec<usize>,
    /// By core, the last start.
    now: Vec<u64>,
    /// By core, whether something has taken room since its next action was chosen.
    stale: Vec<bool>,
    /// When the weights of each stay are loaded, of those that are.
    weights: Vec<Option<u64>>,
}

impl<'m> Order<'m> {
    /// Nothing is issued.
    ///
    /// # Errors
    /// A workload without what it reads.
    pub fn new(mesh: Mesh<'m>, ahead: Ahead, clocks: Clocks) -> Result<Self> {
        let Stays { users, .. } = mesh.stays;
        let weights = vec![None; users.len()];
        let mut states = vec![];
        let mut waiting: Vec<Vec<Vec<usize>>> = vec![];
        for (core, own) in mesh.origins.schedule.cores.iter().enumerate() {
            let count = own.workloads.len();
            let all = (0..count).map(|index| state(&mesh, (core, index)));
            states.push(all.collect::<Result<Vec<_>>>()?);
            waiting.push(vec![vec![]; count]);
        }
        let mut stored: Vec<Stored> = vec![];
        let mut numbers: HashMap<Vec<Place>, usize> = HashMap::new();
        // Those of transfers, of which many have the same producers.
        let mut loaded: HashMap<i64, Option<usize>> = HashMap::new();
        for (place, reads) in mesh.reads {
            for part in &reads.parts {
                let follower = Follower { place: *place, operand: part.operand() };
                let waits = &mut states[place.0][place.1].operands[part.operand()].waits;
                let Some(transfer) = part.origin.load() else {
                    *waits += usize::from(part.origin.produced().is_some());
                    continue;
                };
                let number = loaded.entry(transfer).or_insert_with(|| {
                    let producers: Vec<Place> = mesh.origins.storers(&part.origin).collect();
                    if producers.is_empty() {
                        return None;
                    }
                    let number = numbers.entry(producers).or_insert_with_key(|producers| {
                        for producer in producers {
                            waiting[producer.0][producer.1].push(stored.len());
                        }
                        stored.push(Stored { waits: producers.len(), ..Stored::default() });
                        stored.len() - 1
                    });
                    Some(*number)
                });
                if let Some(number) = *number {
                    stored[number].followers.push(follower);
                    *waits += 1;
                }
            }
        }
        let cores = states.len();
        let (heads, now, stale) = (vec![0; cores], vec![0; cores], vec![false; cores]);
        Ok(Self { mesh, ahead, clocks, states, stored, waiting, heads, now, stale, weights })
    }

    /// Issues everything.
    ///
    /// # Errors
    /// `emit-order` if workloads wait for one another, and what issuing rejects.
    pub fn run(mut self) -> Result<Mesh<'m>> {
        let mut choices: Vec<Option<Choice>> = vec![None; self.states.len()];
        let mut queue = BTreeSet::new();
        let mut changed: Vec<usize> = (0..self.states.len()).collect();
        loop {
            for core in changed.drain(..) {
                self.stale[core] = false;
                let choice = self.choice(core);
                if let Some(old) = std::mem::replace(&mut choices[core], choice) {
                    queue.remove(&(old, core));
                }
                queue.extend(choice.map(|choice| (choice, core)));
            }
            let Some(((start, id, action, index), core)) = queue.pop_first() else { break };
            choices[core] = None;
            // Results of other cores may have taken room since.
            if std::mem::take(&mut self.stale[core]) {
                let again = self.choice(core);
                if again != Some((start, id, action, index)) {
                    choices[core] = again;
                    queue.extend(again.map(|again| (again, core)));
                    continue;
                }
            }
            changed.push(core);
            self.issue((core, index), action, start, &mut changed)?;
            changed.sort_unstable();
            changed.dedup();
        }
        let mut all = self.heads.iter().enumerate();
        let stuck = all.find(|(core, head)| **head < self.states[*core].len());
        if let Some((core, head)) = stuck {
            let message = "the workload depends on its own result, through other cores";
            return Err(error("emit-order", &self.mesh.path((core, *head)), message));
        }
        Ok(self.mesh)
    }

    /// What a core would do next, if anything.
    fn choice(&self, core: usize) -> Option<Choice> {
        let states = &self.states[core];
        let head = self.heads[core];
        let Ahead { passed, loaded } = self.ahead;
        if self.ahead == Ahead::NONE {
            let is_ready = states.get(head)?.operands.iter().all(|one| one.waits == 0);
            let id = self.mesh.workload((core, head)).workload_id;
            return is_ready.then_some((0, id, Action::Run, head));
        }
        let mut best: Option<Choice> = None;
        // The first workload that is not issued, and the one that needs most.
        let mut before: Vec<Vec<i64>> = vec![];
        let mut may_load = true;
        let window = head..states.len().min(head + 1 + passed.max(loaded));
        for index in window.filter(|index| !states[*index].is_issued) {
            let (place, distance) = ((core, index), index - head);
            let takes = self.takes(place);
            let id = self.mesh.workload(place).workload_id;
            if may_load && distance < loaded {
                match self.load(place, &before, &takes) {
                    Load::Found(start, action) => {
                        let found = (start, id, action, index);
                        best = Some(best.map_or(found, |best| best.min(found)));
                        may_load = false;
                    }
                    Load::NoRoom => may_load = false,
                    Load::Nothing => {}
                }
            }
            if distance <= passed && states[index].operands.iter().all(|one| one.waits == 0) {
                let there = self.room_from(core, &takes, &before);
                let there = if index == head { Some(there.unwrap_or(0)) } else { there };
                let found =
                    there.map(|there| (self.start(place).max(there), id, Action::Run, index));
                best = [best, found].into_iter().flatten().min();
            }
            let size = |takes: &Vec<i64>| takes.iter().sum::<i64>();
            if before.len() < 2 {
                before.push(takes);
            } else if size(&takes) > size(&before[1]) {
                before[1] = takes;
            }
        }
        best
    }

    /// A load of a workload that takes some bytes, if there is room for those `before` it then.
    fn load(&self, place: Place, before: &[Vec<i64>], takes: &[i64]) -> Load {
        let state = &self.states[place.0][place.1];
        let free = self.clocks.free(place.0, Engine::Ld).max(self.now[place.0]);
        let weights = state.weights.filter(|(stay, _)| self.weights[*stay].is_none());
        let weights = weights.map(|(_, bytes)| (free, Action::Weights, bytes));
        let operands = state.operands.iter().enumerate().filter(|(_, one)| {
            !one.is_loaded && one.waits == 0 && one.stored == one.bytes && one.stored > 0
        });
        let operands =
            operands.map(|(number, one)| (free.max(one.ready), Action::Operand(number), one.bytes));
        let Some((start, action, bytes)) = operands.chain(weights).min() else {
            return Load::Nothing;
        };
        let is_head = place.1 == self.heads[place.0];
        let own = [bytes];
        match self.room_from(place.0, if is_head { takes } else { &own }, before) {
            Some(there) => Load::Found(start.max(there), action),
            None if is_head => Load::Nothing,
            None => Load::NoRoom,
        }
    }

    /// When a workload could start on its engine.
    fn start(&self, place: Place) -> u64 {
        let state = &self.states[place.0][place.1];
        let mut start = self.clocks.free(place.0, state.engine).max(self.now[place.0]);
        let (mut bytes, mut from) = (0, self.clocks.free(place.0, Engine::Ld));
        for operand in &state.operands {
            start = start.max(operand.ready);
            if operand.stored > 0 && !operand.is_loaded {
                bytes += operand.stored;
                from = from.max(operand.ready);
            }
        }
        match state.weights.map(|(stay, size)| (self.weights[stay], size)) {
            Some((Some(end), _)) => start = start.max(end),
            Some((None, size)) => bytes += size,
            None => {}
        }
        if bytes > 0 { start.max(from + self.clocks.loading(bytes)) } else { start }
    }

    /// Bytes of L2 of each tensor that issuing a workload takes.
    fn takes(&self, place: Place) -> Vec<i64> {
        let state = &self.states[place.0][place.1];
        let mut all = vec![];
        let mut missing = |place: Place, operand: usize| {
            if !self.mesh.operands.contains_key(&(place, operand)) {
                all.push(self.states[place.0][place.1].operands[operand].bytes);
            }
        };
        (0..state.operands.len()).for_each(|operand| missing(place, operand));
        let mut landed = None;
        for one in &self.mesh.readers[place.0][place.1] {
            let follower = (one.place(), one.operand as usize);
            if one.place().0 == place.0 && landed != Some(follower) {
                missing(follower.0, follower.1);
                landed = Some(follower);
            }
        }
        let weights = state.weights.filter(|(stay, _)| self.weights[*stay].is_none());
        all.extend(weights.map(|(_, bytes)| bytes));
        all.push(state.output);
        all
    }

    /// The cycle from which a core is expected to have room for some tensors, and then for each of others `before` them.
    fn room_from(&self, core: usize, takes: &[i64], before: &[Vec<i64>]) -> Option<u64> {
        let core = &self.mesh.cores[core];
        let most = before.iter().map(|others| others.iter().sum::<i64>()).max().unwrap_or(0);
        let bytes = takes.iter().sum::<i64>() + most;
        let fits = |space: &Space| {
            let mut own = space.clone();
            let has = |space: &mut Space, takes: &[i64]| {
                takes.iter().all(|bytes| space.take(*bytes).is_some())
            };
            has(&mut own, takes) && before.iter().all(|others| has(&mut own.clone(), others))
        };
        if core.space.left() >= bytes && fits(&core.space) {
            return Some(0);
        }
        let mut ending: Vec<(u64, i64)> = core.ending.iter().map(|one| one.0).collect();
        ending.sort_unstable();
        let mut space = core.space.clone();
        ending.into_iter().find_map(|(end, base)| {
            space.free(base);
            (space.left() >= bytes && fits(&space)).then_some(end)
        })
    }

    fn issue(
        &mut self,
        place: Place,
        action: Action,
        start: u64,
        changed: &mut Vec<usize>,
    ) -> Result<()> {
        let (core, index) = place;
        self.now[core] = self.now[core].max(start);
        self.mesh.cores[core].settle(start);
        match action {
            Action::Weights => {
                self.mesh.constant_weights(place)?;
                self.weights_loaded(place, start);
            }
            Action::Operand(operand) => {
                self.mesh.fill_early(place, operand)?;
                let one = &mut self.states[core][index].operands[operand];
                one.is_loaded = true;
                one.ready =
                    self.clocks.movement(core, Engine::Ld, one.stored, start.max(one.ready));
            }
            Action::Run => self.compute(place, start, changed)?,
        }
        Ok(())
    }

    fn weights_loaded(&mut self, place: Place, start: u64) -> u64 {
        let Some((stay, bytes)) = self.states[place.0][place.1].weights else { return start };
        match self.weights[stay] {
            Some(end) => end,
            None => {
                let end = self.clocks.movement(place.0, Engine::Ld, bytes, start);
                self.weights[stay] = Some(end);
                end
            }
        }
    }

    fn compute(&mut self, place: Place, start: u64, changed: &mut Vec<usize>) -> Result<()> {
        let (core, index) = place;
        let mut from = start;
        for operand in &mut self.states[core][index].operands {
            if operand.stored > 0 && !operand.is_loaded {
                let ready = operand.ready;
                operand.ready = self.clocks.movement(core, Engine::Ld, operand.stored, ready);
            }
            from = from.max(operand.ready);
        }
        from = from.max(self.weights_loaded(place, self.now[core]));
        let state = &self.states[core][index];
        let (output, engine) = (state.output, state.engine);
        let end = self.clocks.computation(core, engine, state.cycles, from);
        let stored = match self.mesh.origins.stored.contains_key(&place) {
            true => self.clocks.movement(core, Engine::St, output, end),
            false => end,
        };
        let mut sent = stored;
        let mut landed: Vec<(Follower, u64)> = vec![];
        for reader in &self.mesh.readers[core][index] {
            let follower = Follower { place: reader.place(), operand: reader.operand as usize };
            let ready = match follower.place.0 == core {
                true => end,
                false => self.clocks.transfer(core, output, end),
            };
            sent = sent.max(ready);
            landed.push((follower, ready));
        }
        for number in &self.waiting[core][index] {
            let found = &mut self.stored[*number];
            found.waits -= 1;
            found.ready = found.ready.max(stored);
            if found.waits == 0 {
                landed.extend(found.followers.iter().map(|follower| (*follower, found.ready)));
            }
        }
        for (Follower { place: to, operand }, ready) in landed {
            let operand = &mut self.states[to.0][to.1].operands[operand];
            operand.waits -= 1;
            operand.ready = operand.ready.max(ready);
            match operand.waits {
                0 => changed.push(to.0),
                _ => self.stale[to.0] = true,
            }
        }
        let ends = if self.ahead == Ahead::NONE { [0; 2] } else { [end, sent] };
        self.mesh.issue(place, ends)?;
        self.states[core][index].is_issued = true;
        while self.states[core].get(self.heads[core]).is_some_and(|state| state.is_issued) {
            self.heads[core] += 1;
        }
        Ok(())
    }
}

/// A load before its turn.
enum Load {
    /// When it could start, and which.
    Found(u64, Action),
    /// There is one, but no room for it.
    NoRoom,
    /// Nothing can be loaded now.
    Nothing,
}

/// A workload that is not issued.
fn state(mesh: &Mesh<'_>, place: Place) -> Result<State> {
    let workload = mesh.workload(place);
    let reads = mesh.reads_of(place)?;
    let volume = |[n, c, h, w]: [i64; 4]| n * padded(c) * h * w;
    let operand = |(number, operand): (usize, &super::parts::Operand)| {
        let [n, c, h, w] = operand.size;
        let bytes = volume([n, c + operand.slack, h, w]);
        let own = || reads.parts.iter().filter(|part| part.operand() == number);
        let is_stored = |part: &&Part<'_>| part.origin.stored().is_some();
        let stored = match own().all(|part| is_stored(&part)) {
            true => bytes,
            false => own().filter(is_stored).map(|part| volume(part.lengths())).sum(),
        };
        Operand { bytes, stored, waits: 0, ready: 0, is_loaded: false }
    };
    let operands = reads.operands.iter().enumerate().map(operand).collect();
    let weights = match mesh.weight_rows(place)? {
        Some((rows, (low, high))) => {
            let stay = mesh.stays.of.get(&place).copied();
            stay.map(|stay| (stay, (high - low + 1) * rows.row()))
        }
        None => None,
    };
    let engine = match Work::of(workload, &mesh.path(place))? {
        Work::Convolution => Engine::Pe,
        Work::Transpose => Engine::Dt,
        Work::Pool | Work::Elementwise => Engine::Vp,
    };
    Ok(State {
        engine,
        cycles: workload.time.clamp(0, 1 << 40).unsigned_abs(),
        output: volume(lengths(&workload.extent)),
        operands,
        weights,
        is_issued: false,
    })
}
