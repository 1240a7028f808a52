//! All orders in which the warps of a small launch can run.
//!
//! Warps are interleaved at their strong accesses of memory, at barriers and at mbarrier objects. Between these, only their own registers and
//! memory that no other warp accesses change, unless there is a race, which the detector reports. Arrivals at the barrier of
//! all threads of a CTA commute with everything else, so that only one order of them is run. States are compared by a hash
//! of registers, memory and what warps wait for; a state that was reached before is not run again. Clocks stand still.

use super::error::Error;
use super::{BarrierState, Cta, Flow, Machine, Wait, Warp, lanes, merge};
use crate::code::{Op, Program};
use crate::launch::{Exploration, Launch};
use crate::memory::{Buffer, Memory};
use crate::race::Races;
use irc_diag::Diagnostic;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What a launch is in the middle of.
#[derive(Clone)]
struct State {
    slots: Vec<Option<Box<Cta>>>,
    warps: Vec<Warp>,
    buffers: Vec<Vec<u8>>,
    written: Vec<Option<Vec<u64>>>,
    races: Option<Races>,
    barrier_agents: HashMap<(usize, usize), (Vec<u32>, super::SharedClock)>,
    version: u64,
}

/// A state that is being run: its number, and the warps that are still to go first.
struct Open {
    state: State,
    number: usize,
    next: Vec<usize>,
}

/// The buffers of whose words each is accessed by one warp, by number, and the warps.
struct Own {
    buffers: Vec<usize>,
    warps: HashMap<u64, usize>,
}

impl Launch {
    /// Runs a kernel in every order of its warps, up to orders between which nothing can differ. The memory is then that of one
    /// of them.
    ///
    /// Of the words of the buffers `own`, each is accessed by one warp only, so that the order of strong accesses to them
    /// does not matter; it is an error if another warp accesses one. All CTAs run at once. Kernels with asynchronous copies
    /// are not explored.
    pub fn explore(
        &self,
        program: &Program,
        memory: &mut Memory,
        own: &[Buffer],
        max_states: usize,
    ) -> Exploration {
        let launch = Launch { resident: Some(usize::MAX), ..self.clone() };
        match Machine::new(&launch, program, memory) {
            Ok(mut machine) => {
                machine.is_frozen = true;
                let own =
                    Own { buffers: own.iter().map(|own| own.0).collect(), warps: HashMap::new() };
                let mut found = machine.explore(own, max_states);
                found.diagnostics = machine.diagnostics;
                found
            }
            Err(message) => Exploration {
                diagnostics: vec![Diagnostic::error("ptx-launch", message)],
                ..Exploration::default()
            },
        }
    }
}

impl Machine<'_> {
    fn explore(&mut self, mut own: Own, max_states: usize) -> Exploration {
        let mut found = Exploration::default();
        // By hash, the number of a state; by number, the states that lead to it, and whether all threads have ended.
        let mut known: HashMap<u64, usize> = HashMap::new();
        let mut before: Vec<Vec<usize>> = vec![vec![]];
        let mut ended = vec![];
        let mut ends: Vec<u64> = vec![];
        known.insert(self.state_hash(), 0);
        found.states = 1;
        let first = Open { state: self.save(), number: 0, next: self.enabled() };
        let mut open = vec![first];
        while let Some(top) = open.last_mut() {
            let Some(warp) = top.next.pop() else {
                open.pop();
                continue;
            };
            let from = top.number;
            let state = top.state.clone();
            self.restore(state);
            found.transitions += 1;
            if let Err(fault) = self.advance(&mut own, warp) {
                self.report_fault(fault);
            }
            if self.errors > 0 {
                return found;
            }
            let hash = self.state_hash();
            if let Some(number) = known.get(&hash) {
                before[*number].push(from);
                continue;
            }
            let number = before.len();
            known.insert(hash, number);
            before.push(vec![from]);
            found.states += 1;
            if found.states > max_states {
                let message = format!("the launch has more than {max_states} states");
                self.push(Diagnostic::error("ptx-limit", message));
                return found;
            }
            if self.slots.iter().all(Option::is_none) {
                ended.push(number);
                ends.push(self.memory_hash());
                continue;
            }
            let next = self.enabled();
            if next.is_empty() {
                self.deadlock();
                return found;
            }
            open.push(Open { state: self.save(), number, next });
        }
        ends.sort_unstable();
        ends.dedup();
        found.ends = ends.len();
        // From every state the end can be reached: threads do not wait for ever.
        let mut reaches = vec![false; before.len()];
        let mut rest = ended;
        while let Some(number) = rest.pop() {
            if !std::mem::replace(&mut reaches[number], true) {
                rest.extend(&before[number]);
            }
        }
        found.completed = reaches.iter().all(|reaches| *reaches);
        if !found.completed {
            self.deadlock();
        }
        found
    }

    fn save(&self) -> State {
        State {
            slots: self.slots.clone(),
            warps: self.warps.clone(),
            buffers: self.memory.buffers.iter().map(|buffer| buffer.bytes.clone()).collect(),
            written: self.memory.buffers.iter().map(|buffer| buffer.written.clone()).collect(),
            races: self.races.clone(),
            barrier_agents: self.barrier_agents.clone(),
            version: self.version,
        }
    }

    fn restore(&mut self, state: State) {
        self.slots = state.slots;
        self.warps = state.warps;
        let saved = state.buffers.into_iter().zip(state.written);
        for (buffer, (bytes, written)) in self.memory.buffers.iter_mut().zip(saved) {
            (buffer.bytes, buffer.written) = (bytes, written);
        }
        self.races = state.races;
        self.barrier_agents = state.barrier_agents;
        self.version = state.version;
    }

    /// The warps that can run: one alone if it arrives at the barrier of all threads of its CTA.
    fn enabled(&self) -> Vec<usize> {
        let can_run =
            |at: &usize| self.slots[self.warps[*at].slot].is_some() && self.next(*at).is_some();
        let all: Vec<usize> = (0..self.warps.len()).filter(can_run).collect();
        let arrives = |at: &&usize| {
            let warp = &self.warps[**at];
            let next = self.next(**at).map(|index| warp.fragments[index].at);
            let op = next.map(|next| &self.program.code[next as usize].op);
            matches!(op, Some(Op::Barrier(barrier)) if barrier.count.is_none())
        };
        match all.iter().find(arrives) {
            Some(one) => vec![*one],
            None => all,
        }
    }

    /// The fragment of a warp that runs next: the one in the most calls and, of these, the first in the code.
    fn next(&self, at: usize) -> Option<usize> {
        let warp = &self.warps[at];
        let ready =
            (0..warp.fragments.len()).filter(|index| self.is_ready(warp, &warp.fragments[*index]));
        ready.min_by_key(|index| {
            let fragment = &warp.fragments[*index];
            (std::cmp::Reverse(fragment.frames.len()), fragment.at)
        })
    }

    /// Whether other warps can tell when the next instruction of a fragment is run.
    fn is_visible(&self, own: &mut Own, at: usize, index: usize) -> Result<bool, Error> {
        let warp = &self.warps[at];
        let fragment = &warp.fragments[index];
        let access = match &self.program.code[fragment.at as usize].op {
            Op::Barrier(_) | Op::Mbarrier(_) | Op::Atomic(_) => return Ok(true),
            Op::Load(access) | Op::Store(access) if access.order.strong => access,
            _ => return Ok(false),
        };
        let bases = self.row(warp, fragment, access.address.base);
        for lane in lanes(fragment.mask) {
            let address = bases[lane].wrapping_add_signed(access.address.offset);
            let buffer = self.memory.find(address, 1).map(|(buffer, _)| buffer);
            if !buffer.is_ok_and(|buffer| own.buffers.contains(&buffer)) {
                return Ok(true);
            }
            if *own.warps.entry(address).or_insert(at) != at {
                let message = "two warps access a word of a buffer of which each has its own";
                return Err(Error::new("ptx-launch", message).located(fragment.at, warp));
            }
        }
        Ok(false)
    }

    /// Runs a warp up to its second instruction that others can tell, or until it waits.
    fn advance(&mut self, own: &mut Own, at: usize) -> Result<(), Error> {
        let mut seen = false;
        let start = self.executed;
        loop {
            if let Some(warp) = self.warps.get_mut(at)
                && warp.fragments.len() > 1
            {
                merge(&mut warp.fragments);
            }
            let Some(index) = self.next(at) else { return Ok(()) };
            if self.is_visible(own, at, index)? {
                if seen {
                    return Ok(());
                }
                seen = true;
            }
            if self.executed - start > self.launch.max_instructions {
                return Err(Error::new("ptx-watchdog", "a warp runs for ever between accesses"));
            }
            let mut warp = std::mem::take(&mut self.warps[at]);
            let result = self.step_of(&mut warp, index);
            let (ended, slot, number) = (warp.fragments.is_empty(), warp.slot, warp.number);
            self.warps[at] = warp;
            result?;
            if !self.bulk.is_empty() || !self.warps[at].copies.is_empty() {
                let message = "asynchronous copies are not explored";
                return Err(Error::new("ptx-unsupported", message));
            }
            if ended {
                if let Some(races) = &mut self.races {
                    races.end(number);
                }
                self.end_warp(slot);
                return Ok(());
            }
        }
    }

    /// Runs one instruction of a fragment.
    fn step_of(&mut self, warp: &mut Warp, index: usize) -> Result<(), Error> {
        let mut fragment = self.take(warp, index);
        let at = fragment.at;
        let flow = self.step(warp, &mut fragment).map_err(|fault| fault.located(at, warp))?;
        match flow {
            Flow::Next | Flow::Yield => fragment.at = at + 1,
            Flow::Jump(to) => fragment.at = to,
            Flow::Wait(wait) => fragment.wait = wait,
            Flow::WaitThenNext(wait) => (fragment.wait, fragment.at) = (wait, at + 1),
            Flow::End => return Ok(()),
        }
        // Loops that only wait are run like others: their states are known.
        if matches!(fragment.wait, Wait::Spin { .. }) {
            fragment.wait = Wait::None;
        }
        warp.fragments.push(fragment);
        Ok(())
    }

    fn memory_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.memory.buffers.iter().for_each(|buffer| buffer.bytes.hash(&mut hasher));
        hasher.finish()
    }

    fn state_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.memory_hash().hash(&mut hasher);
        for cta in &self.slots {
            let cta = cta.as_ref();
            cta.is_some().hash(&mut hasher);
            let Some(cta) = cta else { continue };
            cta.shared.hash(&mut hasher);
            cta.barriers.iter().for_each(|barrier| barrier.hash_phase(&mut hasher));
            let objects = cta.mbarriers.iter().map(|(address, object)| (*address, object.phase()));
            let mut objects: Vec<_> = objects.collect();
            objects.sort_unstable();
            objects.hash(&mut hasher);
        }
        for warp in &self.warps {
            let mut fragments: Vec<_> = warp.fragments.iter().collect();
            fragments.sort_unstable_by_key(|fragment| (fragment.at, fragment.mask));
            (warp.live, warp.fragments.len()).hash(&mut hasher);
            if fragments.is_empty() {
                continue;
            }
            for fragment in fragments {
                (fragment.at, fragment.mask, fragment.function).hash(&mut hasher);
                (fragment.resumed, fragment.tried).hash(&mut hasher);
                fragment.frames.iter().for_each(|frame| frame.at.hash(&mut hasher));
                match &fragment.wait {
                    Wait::Warp(mask) => (1, *mask).hash(&mut hasher),
                    Wait::Barrier { id, .. } => {
                        (2, *id, self.is_ready(warp, fragment)).hash(&mut hasher)
                    }
                    Wait::None | Wait::Spin { .. } | Wait::Words { .. } => 0.hash(&mut hasher),
                    Wait::Mbarrier { .. } => (3, self.is_ready(warp, fragment)).hash(&mut hasher),
                }
            }
            warp.registers.hash(&mut hasher);
            warp.predicates.hash(&mut hasher);
            warp.local.hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl BarrierState {
    /// What a phase has come to.
    fn hash_phase(&self, hasher: &mut DefaultHasher) {
        (self.expected, self.arrived()).hash(hasher);
        self.arrival_masks().for_each(|arrival| arrival.hash(hasher));
    }
}
