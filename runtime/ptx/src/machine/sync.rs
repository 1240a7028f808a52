//! Barriers of a CTA, and mbarrier objects.

use super::access::Place;
use super::error::Error;
use super::step::test;
use super::{
    BARRIERS, Flow, Fragment, Machine, SharedClock, Wait, Warp, lanes, put, put_predicate,
};
use crate::code::{Address, Barrier, CLUSTER_BARRIER, MbarrierOp, NONE, Reduction};
use crate::race::Races;
use crate::row::WARP;
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, Error>;

/// A barrier of a CTA.
#[derive(Debug, Clone, Default)]
pub(super) struct BarrierState {
    /// The phases that have completed.
    pub(super) generation: u64,
    /// Threads that this phase expects, in whole warps; 0 before the first arrives.
    pub(super) expected: u32,
    /// Threads that have arrived, by warp.
    arrivals: BTreeMap<u32, u32>,
    /// Whether all threads of the CTA are expected.
    all: bool,
    /// The first instruction at which threads arrived.
    first: u32,
    /// Threads whose predicate was true, and all that gave one, in this phase and the last.
    counts: [u32; 2],
    result: [u32; 2],
    /// Arrivals of a warp more than once: by `bar.arrive` in a loop.
    extra: u32,
}

impl BarrierState {
    /// The threads that have arrived, by warp.
    pub(super) fn arrival_masks(&self) -> impl Iterator<Item = (&u32, &u32)> {
        self.arrivals.iter()
    }

    /// Threads that have arrived; a warp of which all threads have counts in full.
    pub(super) fn arrived(&self) -> u32 {
        self.arrivals.values().map(|mask| mask.count_ones()).sum::<u32>() + self.extra
    }
}

/// An mbarrier object.
#[derive(Debug, Clone)]
pub(super) struct Mbarrier {
    /// Arrivals that each phase expects.
    expected: u32,
    /// Arrivals that this phase still expects.
    pub(super) pending: u32,
    /// Bytes that this phase still expects; negative if more have arrived than were announced.
    pub(super) bytes: i64,
    /// Phases that have completed.
    pub(super) completed: u64,
    /// What the arrivals of this phase released, and those of the last.
    clock: SharedClock,
    released: SharedClock,
}

impl Mbarrier {
    /// What its phase has come to.
    pub(super) fn phase(&self) -> (u32, u32, i64, u64) {
        (self.expected, self.pending, self.bytes, self.completed)
    }
}

/// Arrivals of an mbarrier beyond which it is invalid.
const MAX_ARRIVALS: u64 = (1 << 20) - 1;

impl Machine<'_> {
    pub(super) fn barrier(
        &mut self,
        warp: &mut Warp,
        fragment: &mut Fragment,
        mask: u32,
        barrier: &Barrier,
    ) -> Result<Flow> {
        let first = lanes(mask).next().unwrap_or(0);
        if barrier.aligned && mask != warp.live && !fragment.resumed {
            if mask != fragment.mask {
                let message = "an aligned barrier under a predicate that differs between the threads of a warp";
                return Err(Error::new("ptx-barrier", message).at_lane(first));
            }
            // The other threads of the warp must come here as well.
            return Ok(Flow::Wait(Wait::Warp(warp.live)));
        }
        fragment.resumed = false;
        let id = self.row(warp, fragment, barrier.id)[first];
        let count = barrier.count.map(|count| self.row(warp, fragment, count)[first]);
        let cluster = id == CLUSTER_BARRIER;
        let id = if cluster { BARRIERS as u64 - 1 } else { id };
        if id >= BARRIERS as u64 - u64::from(!cluster) {
            return Err(Error::new(
                "ptx-barrier",
                format!("barrier {id}: a CTA has barriers 0 to 15"),
            )
            .at_lane(first));
        }
        let warps = self.warps_per_cta as u32;
        if let Some(count) =
            count.filter(|count| *count == 0 || count % 32 != 0 || *count > u64::from(warps) * 32)
        {
            let message = format!(
                "barrier {id} of {count} threads: the number is a multiple of 32 up to {}",
                warps * 32
            );
            return Err(Error::new("ptx-barrier", message).at_lane(first));
        }
        let expected = count.map_or(warps * 32, |count| count as u32);
        let at = fragment.at;
        let truth =
            barrier.reduction.map(|(_, predicate, _)| test(warp, fragment, predicate) & mask);
        let Some(cta) = &mut self.slots[warp.slot] else { return Ok(Flow::End) };
        let state = &mut cta.barriers[id as usize];
        if state.arrivals.is_empty() && state.extra == 0 {
            (state.expected, state.all, state.first) = (expected, count.is_none(), at);
        } else if state.expected != expected {
            let line = self
                .program
                .source
                .line_column(self.program.starts[state.first as usize] as usize)
                .0;
            let message = format!(
                "barrier {id} of {expected} threads: threads that arrived at line {line} expect {}",
                state.expected
            );
            return Err(Error::new("ptx-barrier", message).at_lane(first));
        }
        let arrived = state.arrivals.entry(warp.index).or_insert(0);
        if *arrived & mask != 0 {
            state.extra += (*arrived & mask).count_ones();
        }
        *arrived |= mask;
        // Threads that do not exist, or that have exited, arrive with the last of their warp.
        if *arrived & warp.live == warp.live {
            *arrived = u32::MAX;
        }
        if let Some(truth) = truth {
            state.counts[0] += truth.count_ones();
            state.counts[1] += mask.count_ones();
        }
        let generation = state.generation;
        let total = state.arrived();
        if total > expected {
            let message =
                format!("barrier {id} of {expected} threads: {total} threads have arrived");
            return Err(Error::new("ptx-barrier", message).at_lane(first));
        }
        let complete = total == expected;
        self.arrive(warp, mask, id as usize, barrier.wait);
        let exited = !complete && self.waits_for_exited(warp.slot, id as usize, Some(warp));
        if complete {
            self.complete_barrier(warp.slot, id as usize);
        } else if exited {
            self.release_exited(warp, id as usize);
        } else {
            self.version += 1;
        }
        if let Some((kind, _, d)) = barrier.reduction {
            return self.barrier_result(warp, fragment, mask, id as usize, generation, (kind, d));
        }
        Ok(match (barrier.wait, complete || exited) {
            (false, _) | (true, true) => Flow::Next,
            (true, false) if mask == fragment.mask => {
                Flow::WaitThenNext(Wait::Barrier { id: id as usize, generation })
            }
            (true, false) => {
                // The threads that the predicate excludes go on.
                self.split(warp, fragment, fragment.mask & !mask, at + 1);
                Flow::WaitThenNext(Wait::Barrier { id: id as usize, generation })
            }
        })
    }

    /// Records who arrived, for the order of accesses.
    fn arrive(&mut self, warp: &Warp, mask: u32, id: usize, wait: bool) {
        if self.races.is_none() {
            return;
        }
        let agents = lanes(mask).map(|lane| Races::agent(warp.number, lane as u32));
        let waiting = self.barrier_agents.entry((warp.slot, id)).or_default();
        match wait {
            true => waiting.0.extend(agents),
            false => {
                for agent in agents {
                    if let Some(races) = &mut self.races {
                        let clock = races.release(agent);
                        waiting.1 = Some(races.join(waiting.1.take(), clock));
                    }
                }
            }
        }
    }

    fn complete_barrier(&mut self, slot: usize, id: usize) {
        let Some(cta) = &mut self.slots[slot] else { return };
        let state = &mut cta.barriers[id];
        state.generation += 1;
        state.arrivals.clear();
        state.extra = 0;
        state.result = state.counts;
        state.counts = [0; 2];
        self.statistics.barriers += 1;
        self.version += 1;
        if let Some((agents, clock)) = self.barrier_agents.remove(&(slot, id))
            && let Some(races) = &mut self.races
        {
            races.barrier(&agents);
            if let Some(clock) = clock {
                agents.iter().for_each(|agent| races.acquire(*agent, &clock));
            }
        }
        self.wake_cta(slot);
    }

    /// `bar.red` needs the end of the phase: it waits before the instruction that reads the result.
    fn barrier_result(
        &mut self,
        warp: &mut Warp,
        fragment: &mut Fragment,
        mask: u32,
        id: usize,
        generation: u64,
        (kind, d): (Reduction, u32),
    ) -> Result<Flow> {
        let Some(cta) = &self.slots[warp.slot] else { return Ok(Flow::End) };
        let state = &cta.barriers[id];
        if state.generation == generation {
            self.reductions.push((
                warp.number,
                mask,
                fragment.registers,
                fragment.predicates,
                id,
                kind,
                d,
            ));
            return Ok(Flow::WaitThenNext(Wait::Barrier { id, generation }));
        }
        // This was the last to arrive: all who wait get the result.
        let [truth, all] = state.result;
        let value = match kind {
            Reduction::Count => u64::from(truth),
            Reduction::And => u64::from(truth == all),
            Reduction::Or => u64::from(truth > 0),
        };
        write_reduction(warp, mask, fragment.registers, fragment.predicates, (kind, d), value);
        let slot = warp.slot;
        let mut waiting = std::mem::take(&mut self.reductions);
        let warps = self.warps_per_cta;
        waiting.retain(|(number, mask, registers, predicates, own, kind, d)| {
            let index = *number as usize % warps;
            let linear = u64::from(*number) / warps as u64;
            let here =
                *own == id && self.slots[slot].as_ref().is_some_and(|cta| cta.linear == linear);
            if here {
                let value = match kind {
                    Reduction::Count => u64::from(truth),
                    Reduction::And => u64::from(truth == all),
                    Reduction::Or => u64::from(truth > 0),
                };
                // Another part of this warp, or another warp of the CTA.
                let target = if *number == warp.number {
                    &mut *warp
                } else {
                    &mut self.warps[slot * warps + index]
                };
                write_reduction(target, *mask, *registers, *predicates, (*kind, *d), value);
            }
            !here
        });
        self.reductions = waiting;
        Ok(Flow::Next)
    }

    /// Threads of a warp have exited: those that wait for them may go on.
    pub(super) fn exited(&mut self, warp: &mut Warp) {
        let live = warp.live;
        let Some(cta) = &mut self.slots[warp.slot] else { return };
        let mut complete = vec![];
        for (id, state) in cta.barriers.iter_mut().enumerate() {
            if let Some(arrived) = state.arrivals.get_mut(&warp.index)
                && *arrived & live == live
                && live != 0
            {
                *arrived = u32::MAX;
                if state.arrived() == state.expected {
                    complete.push(id);
                }
            }
        }
        complete.into_iter().for_each(|id| self.complete_barrier(warp.slot, id));
    }

    /// Whether a barrier of all threads of a CTA only waits for threads that have exited. A warp that runs is
    /// given.
    fn waits_for_exited(&self, slot: usize, id: usize, running: Option<&Warp>) -> bool {
        let Some(cta) = &self.slots[slot] else { return false };
        let state = &cta.barriers[id];
        let first = slot * self.warps_per_cta;
        let mut warps = self.warps[first..first + self.warps_per_cta].iter().enumerate();
        let all_here = warps.all(|(index, warp)| {
            let live = match running {
                Some(running) if running.index as usize == index => running.live,
                _ => warp.live,
            };
            live & !state.arrivals.get(&(index as u32)).copied().unwrap_or(0) == 0
        });
        state.all && !state.arrivals.is_empty() && all_here
    }

    /// Reports a barrier that waits for threads that have exited, and releases the others, as hardware does.
    fn release_exited(&mut self, warp: &Warp, id: usize) {
        let Some(cta) = &self.slots[warp.slot] else { return };
        let state = &cta.barriers[id];
        let (at, arrived, expected) = (state.first, state.arrived(), state.expected);
        let message = format!(
            "barrier {id} waits for {expected} threads, of which {} have exited",
            expected - arrived
        );
        self.report_once(warp, at, Error::new("ptx-barrier", message));
        self.complete_barrier(warp.slot, id);
    }

    /// A warp has ended: barriers that wait for it are reported.
    pub(super) fn check_barriers(&mut self, slot: usize) {
        let first = slot * self.warps_per_cta;
        for id in 0..BARRIERS {
            if !self.waits_for_exited(slot, id, None) {
                continue;
            }
            let live = (first..first + self.warps_per_cta).find(|warp| self.warps[*warp].live != 0);
            let warp = std::mem::take(&mut self.warps[live.unwrap_or(first)]);
            let index = first + warp.index as usize;
            self.release_exited(&warp, id);
            self.warps[index] = warp;
            self.wake_cta(slot);
        }
    }

    pub(super) fn mbarrier(
        &mut self,
        warp: &mut Warp,
        fragment: &mut Fragment,
        mask: u32,
        operation: &(Address, MbarrierOp),
    ) -> Result<Flow> {
        let (address, op) = operation;
        if let MbarrierOp::Pending(d, state) = op {
            let mut out = *self.row(warp, fragment, *state);
            out.iter_mut().for_each(|state| *state &= MAX_ARRIVALS);
            put(&mut warp.registers, fragment.registers, *d, mask, &out);
            return Ok(Flow::Next);
        }
        let resumed = std::mem::take(&mut fragment.resumed);
        let addresses = self.addresses(warp, fragment, address);
        let mut out = [0; WARP];
        let mut truth = 0;
        for lane in lanes(mask) {
            let place = self.place(warp, lane, address.space, addresses[lane], 8)?;
            let Place::Shared(at) = place else {
                let message = "an mbarrier that is not in shared memory";
                return Err(Error::new("ptx-mbarrier", message).at_lane(lane));
            };
            let at = at as u64;
            let argument =
                |machine: &Self, src: &crate::code::Src| machine.row(warp, fragment, *src)[lane];
            match op {
                MbarrierOp::Init(count) => {
                    let count = argument(self, count);
                    self.init_mbarrier(warp, lane, fragment.at, at, count)?;
                }
                MbarrierOp::Invalidate => {
                    self.known(warp, at).map_err(|fault| fault.at_lane(lane))?;
                    if let Some(cta) = &mut self.slots[warp.slot] {
                        cta.mbarriers.remove(&at);
                    }
                }
                MbarrierOp::Arrive { count, expect, drop, release, .. } => {
                    let count = count.as_ref().map_or(1, |count| argument(self, count));
                    let expect = expect.as_ref().map_or(0, |bytes| argument(self, bytes));
                    let agent = self.agent(warp, lane);
                    let clock = match &mut self.races {
                        Some(races) if *release => Some(races.release(agent)),
                        _ => None,
                    };
                    let barrier = self.known(warp, at).map_err(|fault| fault.at_lane(lane))?;
                    out[lane] = barrier.completed << 20 | u64::from(barrier.pending);
                    barrier.bytes += expect as i64;
                    barrier.expected -= u32::from(*drop).min(barrier.expected);
                    self.arrive_at(warp.slot, at, count, 0, clock)
                        .map_err(|fault| fault.at_lane(lane))?;
                }
                MbarrierOp::Expect(bytes) => {
                    let bytes = argument(self, bytes);
                    self.known(warp, at).map_err(|fault| fault.at_lane(lane))?.bytes +=
                        bytes as i64;
                }
                MbarrierOp::Complete(bytes) => {
                    let bytes = argument(self, bytes);
                    self.known(warp, at).map_err(|fault| fault.at_lane(lane))?;
                    self.arrive_at(warp.slot, at, 0, bytes, None)
                        .map_err(|fault| fault.at_lane(lane))?;
                }
                MbarrierOp::Wait { phase, parity, acquire, .. } => {
                    let phase = argument(self, phase);
                    let barrier = self.known(warp, at).map_err(|fault| fault.at_lane(lane))?;
                    let done = match parity {
                        // The phase of a parity is complete if the current one has the other.
                        true => barrier.completed & 1 != phase & 1,
                        false => barrier.completed != phase >> 20,
                    };
                    truth |= u32::from(done) << lane;
                    let clock = barrier.released.clone();
                    if done
                        && *acquire
                        && let (Some(races), Some(clock)) = (&mut self.races, clock)
                    {
                        races.acquire(Races::agent(warp.number, lane as u32), &clock);
                    }
                }
                MbarrierOp::AfterCopies(expected) => {
                    self.copy_wait(warp, 1 << lane, None)?;
                    let agent = self.agent(warp, lane);
                    let clock = self.races.as_mut().map(|races| races.release(agent));
                    let barrier = self.known(warp, at).map_err(|fault| fault.at_lane(lane))?;
                    if !*expected {
                        barrier.pending += 1;
                    }
                    self.arrive_at(warp.slot, at, 1, 0, clock)
                        .map_err(|fault| fault.at_lane(lane))?;
                }
                MbarrierOp::Pending(..) => {}
            }
        }
        match op {
            MbarrierOp::Arrive { state, .. } if *state != NONE => {
                put(&mut warp.registers, fragment.registers, *state, mask, &out);
            }
            MbarrierOp::Wait { d, suspend, .. } => {
                let first = lanes(mask).next().unwrap_or(0);
                let uniform = lanes(mask).all(|lane| addresses[lane] == addresses[first]);
                // A wait may end before the phase does: the first always does, so that one without a loop shows.
                fragment.tried ^= *suspend && truth == 0 && !resumed;
                if *suspend
                    && truth == 0
                    && !resumed
                    && !fragment.tried
                    && uniform
                    && mask == fragment.mask
                {
                    let place = self.place(warp, first, address.space, addresses[first], 8)?;
                    if let Place::Shared(at) = place {
                        let version = self.known(warp, at as u64)?.completed;
                        return Ok(Flow::Wait(Wait::Mbarrier { address: at as u64, version }));
                    }
                }
                put_predicate(&mut warp.predicates, fragment.predicates, *d, mask, truth);
                if truth != mask && !*suspend {
                    return Ok(Flow::Yield);
                }
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    fn init_mbarrier(
        &mut self,
        warp: &mut Warp,
        lane: usize,
        instruction: u32,
        at: u64,
        count: u64,
    ) -> Result<()> {
        if count == 0 || count > MAX_ARRIVALS {
            let message =
                format!("an mbarrier of {count} arrivals: the number is from 1 to {MAX_ARRIVALS}");
            return Err(Error::new("ptx-mbarrier", message).at_lane(lane));
        }
        self.check_race(
            warp,
            (lane, instruction),
            Place::Shared(at as usize),
            8,
            None,
            (true, false),
        );
        self.write_place(warp, Place::Shared(at as usize), 8, 0x6d62_6172_7269_6572)?;
        let Some(cta) = &mut self.slots[warp.slot] else { return Ok(()) };
        let count = count as u32;
        cta.mbarriers.insert(
            at,
            Mbarrier {
                expected: count,
                pending: count,
                bytes: 0,
                completed: 0,
                clock: None,
                released: None,
            },
        );
        Ok(())
    }

    fn known(&mut self, warp: &Warp, at: u64) -> Result<&mut Mbarrier> {
        let cta = self.slots[warp.slot].as_mut();
        let barrier = cta.and_then(|cta| cta.mbarriers.get_mut(&at));
        barrier.ok_or_else(|| {
            Error::new(
                "ptx-mbarrier",
                format!("no mbarrier was initialised at {at:#x} of shared memory"),
            )
        })
    }

    /// Arrivals at an mbarrier, and bytes that have arrived.
    pub(super) fn arrive_at(
        &mut self,
        slot: usize,
        at: u64,
        count: u64,
        bytes: u64,
        clock: SharedClock,
    ) -> Result<()> {
        let Some(cta) = &mut self.slots[slot] else { return Ok(()) };
        let Some(barrier) = cta.mbarriers.get_mut(&at) else {
            let message = format!("no mbarrier was initialised at {at:#x} of shared memory");
            return Err(Error::new("ptx-mbarrier", message));
        };
        if count > u64::from(barrier.pending) {
            let message = format!(
                "{count} arrivals at the mbarrier at {at:#x}, which expects {} more of {} in this phase",
                barrier.pending, barrier.expected
            );
            return Err(Error::new("ptx-mbarrier", message));
        }
        if let (Some(races), Some(clock)) = (&mut self.races, clock) {
            barrier.clock = Some(races.join(barrier.clock.take(), clock));
        }
        barrier.pending -= count as u32;
        barrier.bytes -= bytes as i64;
        self.version += 1;
        if barrier.pending == 0 && barrier.bytes == 0 {
            barrier.completed += 1;
            barrier.pending = barrier.expected;
            barrier.released = barrier.clock.clone();
            self.wake_cta(slot);
        }
        Ok(())
    }

    /// Lets threads that wait for mbarriers go on without a complete phase, as their wait may end at any time;
    /// whether there were any.
    pub(super) fn time_out(&mut self) -> bool {
        let mut any = false;
        for at in 0..self.warps.len() {
            let mut waits = false;
            for fragment in &mut self.warps[at].fragments {
                if matches!(fragment.wait, Wait::Mbarrier { .. }) {
                    fragment.wait = Wait::None;
                    fragment.resumed = true;
                    waits = true;
                }
            }
            if waits {
                self.queue(at);
                any = true;
            }
        }
        any
    }
}

fn write_reduction(
    warp: &mut Warp,
    mask: u32,
    registers: u32,
    predicates: u32,
    (kind, d): (Reduction, u32),
    value: u64,
) {
    match kind {
        Reduction::Count => put(&mut warp.registers, registers, d, mask, &[value; WARP]),
        _ => put_predicate(
            &mut warp.predicates,
            predicates,
            d,
            mask,
            if value == 0 { 0 } else { u32::MAX },
        ),
    }
}
