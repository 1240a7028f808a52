//! Checks that workloads, sends, stores and loads can be ordered: neither dependencies, nor waits for
//! space at receivers, form a cycle.
//!
//! An event is the run of a workload, or a transfer that is sent from core to core, stored to DRAM
//! or loaded from it. A core runs its workloads in order and sends its results in order. A transfer
//! can arrive after the workload before the first snapshot that contains it; until a result is
//! sent, the workload before whose snapshot it disappears cannot start. There is no choice in any of
//! this, so a deadlock is a cycle.

use std::collections::{BTreeMap, HashMap, HashSet};

use irc_diag::{Diagnostic, Sink};

use super::super::{Dialect, ResidentKind, Workload};
use super::facts::{Facts, LayerResult, Place, used};

/// Checks that an order exists.
pub(super) fn check(facts: &Facts<'_>, sink: &mut Sink) {
    let mut graph = Graph::new(facts);
    graph.needs();
    if let Some(cycle) = graph.cycle() {
        let message = "no order of the workloads satisfies all dependencies";
        graph.report("gem-a1-cycle", message, &cycle, sink);
        return;
    }
    graph.space();
    if let Some(cycle) = graph.cycle() {
        let message = "deadlock: a transfer that one core waits for cannot be sent before \
                       another has space";
        graph.report("gem-a2-deadlock", message, &cycle, sink);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Event {
    /// A workload runs.
    Run(Place),
    /// A transfer is sent to the core with that index.
    Send(i64, usize),
    /// A transfer is stored to DRAM.
    Store(i64),
    /// A transfer is loaded by the core with that index, for the snapshot with that index.
    Load(i64, usize, usize),
}

struct Graph<'f> {
    facts: &'f Facts<'f>,
    ids: HashMap<Event, usize>,
    events: Vec<Event>,
    after: Vec<Vec<usize>>,
    /// For each use, the first of the consecutive snapshots that contain the transfer.
    arrivals: HashMap<(Place, i64), usize>,
}

impl<'f> Graph<'f> {
    fn new(facts: &'f Facts<'f>) -> Self {
        Graph {
            facts,
            ids: HashMap::new(),
            events: vec![],
            after: vec![],
            arrivals: arrivals(facts),
        }
    }

    fn id(&mut self, event: Event) -> usize {
        let next = self.events.len();
        let id = *self.ids.entry(event).or_insert(next);
        if id == next {
            self.events.push(event);
            self.after.push(vec![]);
        }
        id
    }

    fn edge(&mut self, first: Event, then: Event) {
        let (first, then) = (self.id(first), self.id(then));
        self.after[first].push(then);
    }

    /// Dependencies: workloads of a core in order, results before their users, stores before the
    /// loads of the same data.
    fn needs(&mut self) {
        let facts = self.facts;
        for (core, index, workload) in facts.schedule.workloads() {
            let run = Event::Run((core, index));
            self.id(run);
            if index > 0 {
                self.edge(Event::Run((core, index - 1)), run);
            }
            for transfer in used(workload) {
                self.arrival((core, index), transfer);
            }
        }
        for made in facts.results.iter().filter(|made| facts.ins.contains_key(&made.transfer)) {
            self.edge(Event::Run(made.place), Event::Store(made.transfer));
        }
    }

    /// The event that brings a transfer to a workload that uses it.
    fn arrival(&mut self, place: Place, transfer: i64) {
        let facts = self.facts;
        let first = self.arrivals.get(&(place, transfer)).copied().unwrap_or(place.1);
        if let Some((_, _, out)) = facts.outs.get(&transfer) {
            let load = Event::Load(transfer, place.0, first);
            self.edge(load, Event::Run(place));
            for stored in out.related_ifmap.iter().flatten() {
                self.edge(Event::Store(*stored), load);
            }
        } else if let Some(made) = facts.result_of(transfer) {
            if made.place.0 == place.0 {
                self.edge(Event::Run(made.place), Event::Run(place));
            } else {
                let send = Event::Send(transfer, place.0);
                self.edge(Event::Run(made.place), send);
                self.edge(send, Event::Run(place));
            }
        }
    }

    /// Space at the receiver, order of sends, and results that wait to be sent.
    fn space(&mut self) {
        let facts = self.facts;
        let mut first: BTreeMap<(i64, usize), usize> = BTreeMap::new();
        for (&((core, _), transfer), &index) in &self.arrivals {
            let least = first.entry((transfer, core)).or_insert(index);
            *least = (*least).min(index);
        }
        let loads = self.events.iter().filter_map(|event| match event {
            Event::Load(_, core, index) => Some((*event, *core, *index)),
            _ => None,
        });
        for (load, core, index) in loads.collect::<Vec<_>>() {
            if index > 0 {
                self.edge(Event::Run((core, index - 1)), load);
            }
        }
        let mut sent: Vec<Option<Event>> = vec![None; facts.schedule.cores.len()];
        let mut results: Vec<&LayerResult<'_>> = facts.results.iter().collect();
        results.sort_by_key(|made| (made.place, made.transfer));
        for made in results {
            let receivers = facts.users(made.transfer).iter().map(|user| user.0);
            let mut receivers: Vec<usize> =
                receivers.filter(|core| *core != made.place.0).collect();
            // Users go up by core.
            receivers.dedup();
            let gone = if receivers.is_empty() { None } else { self.disappears(made) };
            for core in receivers {
                let send = Event::Send(made.transfer, core);
                if let Some(index) = first.get(&(made.transfer, core)).filter(|index| **index > 0) {
                    self.edge(Event::Run((core, index - 1)), send);
                }
                if let Some(before) = sent[made.place.0].replace(send) {
                    self.edge(before, send);
                }
                if let Some(gone) = gone {
                    self.edge(send, Event::Run(gone));
                }
            }
        }
    }

    /// The first workload whose snapshot no longer contains a result.
    fn disappears(&self, made: &LayerResult<'_>) -> Option<Place> {
        let (core, index) = made.place;
        let workloads = &self.facts.schedule.cores[core].workloads;
        let producer = &workloads[index];
        let holds = |workload: &Workload| {
            workload.buffer.iter().any(|resident| match self.facts.schedule.dialect {
                Dialect::A => {
                    resident.transfers().any(|id| id == made.transfer)
                        || resident.kind == ResidentKind::Ofmap
                            && resident.layer_name.as_ref() == Some(&producer.layer_name)
                }
                Dialect::B | Dialect::C => {
                    resident.kind == ResidentKind::Ofmap
                        && resident.workload_id == Some(producer.workload_id)
                }
            })
        };
        let later = workloads.iter().enumerate().skip(index + 1);
        let mut later = later.map(|(at, workload)| (at, holds(workload)));
        later.find(|(_, held)| !held).map(|(at, _)| (core, at))
    }

    /// The events of a cycle, if there is one, each before the next.
    fn cycle(&self) -> Option<Vec<Event>> {
        let mut waits = vec![0usize; self.events.len()];
        self.after.iter().flatten().for_each(|&then| waits[then] += 1);
        let mut ready: Vec<usize> = (0..waits.len()).filter(|&id| waits[id] == 0).collect();
        let mut done = vec![false; waits.len()];
        while let Some(id) = ready.pop() {
            done[id] = true;
            for &then in &self.after[id] {
                waits[then] -= 1;
                if waits[then] == 0 {
                    ready.push(then);
                }
            }
        }
        // Every remaining event has a remaining predecessor, so following predecessors finds a cycle.
        let start = done.iter().position(|done| !done)?;
        let mut before = vec![usize::MAX; self.events.len()];
        for (id, then) in self.after.iter().enumerate().filter(|(id, _)| !done[*id]) {
            then.iter().for_each(|&then| before[then] = id);
        }
        let mut seen = HashSet::new();
        let mut at = start;
        while seen.insert(at) {
            at = before[at];
        }
        let mut cycle = vec![at];
        let mut back = before[at];
        while back != at {
            cycle.push(back);
            back = before[back];
        }
        cycle.reverse();
        Some(cycle.into_iter().map(|id| self.events[id]).collect())
    }

    fn report(&self, code: &'static str, message: &str, cycle: &[Event], sink: &mut Sink) {
        const SHOWN: usize = 12;
        let mut diagnostic = Diagnostic::error(code, message);
        // Consecutive workloads of one core explain nothing.
        let is_step =
            |pair: (&Event, &Event)| !matches!(pair, (Event::Run(a), Event::Run(b)) if a.0 == b.0);
        let next = cycle.iter().cycle().skip(1);
        let steps: Vec<_> = cycle.iter().zip(next).filter(|(a, b)| is_step((a, b))).collect();
        for (first, then) in steps.iter().take(SHOWN) {
            diagnostic = diagnostic.with_note(format!(
                "{}, before {}",
                self.describe(first),
                self.describe(then)
            ));
        }
        if steps.len() > SHOWN {
            diagnostic = diagnostic.with_note(format!("and {} more", steps.len() - SHOWN));
        }
        let runs = cycle.iter().filter_map(|event| match event {
            Event::Run(place) => Some(*place),
            _ => None,
        });
        let mut runs: Vec<Place> = runs.collect();
        runs.sort_unstable();
        diagnostic =
            diagnostic.path(runs.first().map_or("$".into(), |place| self.facts.path(*place)));
        let mut cores = HashSet::new();
        for place in runs.into_iter().filter(|place| cores.insert(place.0)).skip(1) {
            diagnostic = diagnostic.related(self.facts.path(place), "part of the cycle");
        }
        sink.push(diagnostic);
    }

    fn describe(&self, event: &Event) -> String {
        let core = |core: usize| self.facts.schedule.cores[core].id;
        match *event {
            Event::Run(place) => self.facts.name(place),
            Event::Send(id, to) => format!("transfer {id} to core {}", core(to)),
            Event::Store(id) => format!("the store of transfer {id}"),
            Event::Load(id, to, _) => format!("the load of transfer {id} by core {}", core(to)),
        }
    }
}

/// For each use of a transfer, the first of the consecutive snapshots up to it that contain it.
pub(in super::super) fn arrivals(facts: &Facts<'_>) -> HashMap<(Place, i64), usize> {
    let mut found = HashMap::new();
    for (core, list) in facts.schedule.cores.iter().enumerate() {
        let mut rows: HashMap<i64, usize> = HashMap::new();
        for (index, workload) in list.workloads.iter().enumerate() {
            let rows_of = workload.wl0().iter().flat_map(|row| row.transfer_id.iter());
            let there = workload.buffer.iter().flat_map(|resident| resident.transfers());
            let now: HashMap<i64, usize> = there
                .chain(rows_of)
                .map(|id| (id, rows.get(&id).copied().unwrap_or(index)))
                .collect();
            for transfer in used(workload) {
                let first = now.get(&transfer).copied().unwrap_or(index);
                found.insert(((core, index), transfer), first);
            }
            rows = now;
        }
    }
    found
}
