//! Simulates all ranks with their barriers and signals.
//!
//! Each segment of processors runs its rows in order and stops at a barrier or a wait. Signals are only
//! ever added, so the order of simulation is irrelevant; when nothing can continue, those that are not
//! done wait for each other.

use std::collections::BTreeMap;
use std::ops::Range;

use irc_diag::Diagnostic;
use irc_json::At;

use super::act::{Action, Channel};
use crate::json::OpPlace;
use crate::model::links::Link;
use crate::plan::Barriers;
use crate::plan::check::order::clocks::{Clock, Clocks, Segments};
use crate::plan::check::order::task_groups;
use crate::plan::check::order::touch::Spot;
use crate::plan::{Plan, PlanOp};

/// The plans of all ranks, by rank, as rows that segments run.
pub(super) struct World<'a> {
    pub plans: Vec<&'a Plan>,
    pub segments: Vec<Segments>,
    /// Index of each rank's first segment.
    pub bases: Vec<usize>,
    /// The rows of each rank.
    pub rows: Vec<Vec<Row>>,
    /// Ops that involve other ranks.
    pub ops: Vec<CommOp<'a>>,
}

/// A step of some segments of a rank.
pub(super) struct Row {
    pub members: Range<usize>,
    pub what: Event,
}

pub(super) enum Event {
    Barrier,
    /// Runs the ops of a task group that involve other ranks.
    Tasks {
        spot: Spot,
        ops: Vec<usize>,
    },
    /// Finishes a group.
    End {
        group: usize,
    },
}

/// An op that involves other ranks.
pub(super) struct CommOp<'a> {
    pub rank: usize,
    pub task: usize,
    pub index: usize,
    pub plan_op: &'a PlanOp,
    pub act: Action,
    /// The number of segments that run a part of it, counted once per task group.
    runs: usize,
    /// Whether its tasks are in several task groups.
    is_split: bool,
    /// For each link whose packets it takes, the number of earlier ops of the rank that do so.
    turns: Vec<usize>,
}

impl CommOp<'_> {
    pub fn at(&self) -> At<'static> {
        OpPlace::Task(self.task, self.index).at()
    }
}

impl std::fmt::Display for CommOp<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` (task {} of rank {})", self.plan_op.op.kind, self.task, self.rank)
    }
}

/// The result of a simulation.
pub(super) struct RunResult {
    /// Diagnostics, each with its rank.
    pub found: Vec<(usize, Diagnostic)>,
    /// Whether all segments reached the end.
    pub is_complete: bool,
    /// The knowledge of each segment at the start of each task group.
    pub starts: BTreeMap<(usize, Spot), Vec<Clock>>,
    /// Ops that send packets, and the ops that take them.
    pub matched: Vec<(usize, usize)>,
    /// Clock entry of the first event; there is one for each op that involves other ranks.
    pub events: usize,
}

impl<'a> World<'a> {
    pub fn new(plans: Vec<&'a Plan>) -> Self {
        let segments: Vec<Segments> = plans.iter().map(|plan| Segments::new(plan)).collect();
        let mut next = 0;
        let mut base = |segments: &Segments| {
            next += segments.len();
            next - segments.len()
        };
        let bases = segments.iter().map(&mut base).collect();
        let mut world = World { plans, segments, bases, rows: vec![], ops: vec![] };
        (0..world.plans.len()).for_each(|rank| world.add_rank(rank));
        world
    }

    fn add_rank(&mut self, rank: usize) {
        let plan = self.plans[rank];
        let base = self.bases[rank];
        let mut rows = vec![];
        let mut barriers = Barriers::default();
        let mut known: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut turns: BTreeMap<Link, usize> = BTreeMap::new();
        for (group, processors) in plan.processor_groups.iter().enumerate() {
            let segments = &self.segments[rank];
            let of = |range| {
                let found = segments.of(range);
                found.start + base..found.end + base
            };
            for range in barriers.before(processors.processor_range) {
                rows.push(Row { members: of(range), what: Event::Barrier });
            }
            for (spot, busy, tasks) in task_groups(plan, group) {
                let members = of(busy);
                let task = tasks.task_id as usize;
                let mut ops = vec![];
                for (index, plan_op) in plan.task_infos[task].ops.iter().enumerate() {
                    let Some(act) = Action::of(plan_op, rank) else { continue };
                    let op = *known.entry((task, index)).or_insert_with(|| {
                        let turns = turns_of(&act, &mut turns);
                        let (runs, is_split) = (0, false);
                        let op = CommOp { rank, task, index, plan_op, act, runs, is_split, turns };
                        self.ops.push(op);
                        self.ops.len() - 1
                    });
                    self.ops[op].is_split |= self.ops[op].runs > 0;
                    self.ops[op].runs += members.len();
                    ops.push(op);
                }
                rows.push(Row { members, what: Event::Tasks { spot, ops } });
            }
            let members = of(processors.processor_range);
            rows.push(Row { members, what: Event::End { group } });
        }
        self.rows.push(rows);
    }

    /// Maximum number of steps of a simulation, and of stored clock entries.
    pub fn steps(&self) -> usize {
        let steps = |(rows, segments): (&Vec<Row>, &Segments)| rows.len() * segments.len();
        let steps: usize = self.rows.iter().zip(&self.segments).map(steps).sum();
        steps + self.ops.len() * (self.count() + self.ops.len())
    }

    /// Number of segments of all ranks.
    fn count(&self) -> usize {
        self.segments.iter().map(Segments::len).sum()
    }

    /// The rank of a segment.
    pub fn rank_of(&self, segment: usize) -> usize {
        self.bases.partition_point(|&base| base <= segment) - 1
    }

    /// Runs all ranks to the end, or until none can continue, and returns their final state.
    pub fn run(&self) -> State<'_, 'a> {
        let mut state = State::new(self);
        // Every segment has a turn before any has another.
        let mut moved = true;
        while moved {
            moved = false;
            for segment in 0..self.count() {
                moved |= state.advance(segment);
            }
        }
        state
    }
}

/// For each link whose packets an op takes, the number of earlier ops that do so; counts this one.
fn turns_of(act: &Action, turns: &mut BTreeMap<Link, usize>) -> Vec<usize> {
    let Action::Packets { takes, .. } = act else { return vec![] };
    let turn = |link: &Link| {
        let turn = turns.entry(*link).or_default();
        *turn += 1;
        *turn - 1
    };
    takes.iter().map(turn).collect()
}

/// A signal or a send of packets, with the knowledge of its sender.
struct Token {
    op: usize,
    clock: Vec<u32>,
}

/// The progress of an op.
struct Progress {
    /// Number of parts that have not run yet.
    left: usize,
    /// The knowledge of the parts that have run.
    clock: Vec<u32>,
    /// Whether its signals or packets have been sent.
    is_out: bool,
    /// The knowledge from what it waited for, once that has arrived.
    got: Option<Vec<u32>>,
}

/// The state of a simulation.
pub(super) struct State<'w, 'a> {
    world: &'w World<'a>,
    clocks: Clocks,
    /// The row of each segment, and how many ops of that row it has run.
    pub at: Vec<(usize, usize)>,
    ops: Vec<Progress>,
    signals: BTreeMap<Channel, Vec<Token>>,
    /// Number of signals taken from each channel.
    taken: BTreeMap<Channel, usize>,
    /// Ops that put data on each channel.
    puts: BTreeMap<Channel, Vec<usize>>,
    packets: BTreeMap<Link, Vec<Token>>,
    found: Vec<(usize, Diagnostic)>,
    starts: BTreeMap<(usize, Spot), Vec<Clock>>,
    matched: Vec<(usize, usize)>,
}

impl<'w, 'a> State<'w, 'a> {
    fn new(world: &'w World<'a>) -> Self {
        let entries = world.count() + world.ops.len();
        let progress = |op: &CommOp<'_>| Progress {
            left: op.runs,
            clock: vec![0; entries],
            is_out: false,
            got: None,
        };
        State {
            world,
            clocks: Clocks::new(world.count(), world.ops.len()),
            at: vec![(0, 0); world.count()],
            ops: world.ops.iter().map(progress).collect(),
            signals: BTreeMap::new(),
            taken: BTreeMap::new(),
            puts: BTreeMap::new(),
            packets: BTreeMap::new(),
            found: vec![],
            starts: BTreeMap::new(),
            matched: vec![],
        }
    }

    /// The result of the simulation; `stuck` are the diagnostics of segments that did not end.
    pub fn finish(mut self, stuck: Vec<(usize, Diagnostic)>) -> RunResult {
        let is_complete = stuck.is_empty();
        let mut found = std::mem::take(&mut self.found);
        found.extend(stuck);
        if is_complete {
            found.extend(self.left_over());
        }
        let events = self.world.count();
        RunResult { found, is_complete, starts: self.starts, matched: self.matched, events }
    }

    /// Clock entry of the event that the op's reads and writes for other ranks are complete.
    fn event(&self, op: usize) -> usize {
        self.world.count() + op
    }

    /// Runs a segment as far as possible; returns whether it made progress.
    fn advance(&mut self, segment: usize) -> bool {
        let rank = self.world.rank_of(segment);
        let rows = &self.world.rows[rank];
        let before = self.at[segment];
        while let Some(row) = rows.get(self.at[segment].0) {
            if !row.members.contains(&segment) {
                self.at[segment] = (self.at[segment].0 + 1, 0);
                continue;
            }
            match &row.what {
                Event::Barrier => {
                    let here = self.at[segment].0;
                    // Those that do not participate in the rows between have not skipped them yet.
                    if !row.members.clone().all(|member| self.reaches(rank, member, here)) {
                        break;
                    }
                    self.clocks.barrier(row.members.clone());
                    row.members.clone().for_each(|member| self.at[member] = (here + 1, 0));
                }
                Event::Tasks { spot, ops } => {
                    if self.at[segment].1 == 0 {
                        let start = self.clocks.of(segment).clone();
                        self.starts.entry((rank, *spot)).or_default().push(start);
                        self.at[segment].1 = 1;
                    }
                    while let Some(&op) = ops.get(self.at[segment].1 - 1) {
                        if !self.run_op(op, segment) {
                            return self.at[segment] != before;
                        }
                        self.at[segment].1 += 1;
                    }
                    self.at[segment] = (self.at[segment].0 + 1, 0);
                }
                Event::End { group } => {
                    self.clocks.finish(segment, *group);
                    self.at[segment] = (self.at[segment].0 + 1, 0);
                }
            }
        }
        self.at[segment] != before
    }

    /// Whether the segment waits at the row, or has only rows of others before it.
    fn reaches(&self, rank: usize, segment: usize, row: usize) -> bool {
        let (at, _) = self.at[segment];
        let between = self.world.rows[rank].get(at..row).unwrap_or_default();
        at <= row && !between.iter().any(|row| row.members.contains(&segment))
    }

    /// Runs a segment's part of an op; returns false if it must wait.
    fn run_op(&mut self, op: usize, segment: usize) -> bool {
        let world = self.world;
        match &world.ops[op].act {
            Action::Nothing => {}
            Action::Put { channel, signals, .. } => {
                if self.has_run(op, segment) {
                    let puts = self.puts.entry(channel.clone()).or_default();
                    puts.push(op);
                    let earlier = puts.clone();
                    if *signals {
                        let mut clock = self.ops[op].clock.clone();
                        earlier.into_iter().for_each(|put| clock[self.event(put)] = 1);
                        let token = Token { op, clock };
                        self.signals.entry(channel.clone()).or_default().push(token);
                    }
                }
            }
            Action::Flush { channel } => {
                for put in self.puts.get(channel).cloned().unwrap_or_default() {
                    let event = self.event(put);
                    self.clocks.learn_event(segment, event);
                }
                self.has_run(op, segment);
            }
            Action::Wait { channel, tags } => {
                if self.ops[op].got.is_none() && !self.take_signal(op, channel, Some(tags)) {
                    return false;
                }
                self.learn_got(op, segment);
            }
            Action::Sync { kind } => {
                if !self.sync(op, segment, kind) {
                    return false;
                }
                self.learn_got(op, segment);
            }
            Action::Packets { takes, sends } => {
                if self.ops[op].got.is_none() && !self.take_packets(op, takes) {
                    return false;
                }
                self.learn_got(op, segment);
                // If an op is in several task groups, each of these may be waited for separately.
                let is_last = self.ops[op].left == 0;
                if (is_last || world.ops[op].is_split) && !self.ops[op].is_out {
                    self.ops[op].is_out = true;
                    let mut clock = self.ops[op].clock.clone();
                    clock[self.event(op)] = 1;
                    for link in sends {
                        let token = Token { op, clock: clock.clone() };
                        self.packets.entry(*link).or_default().push(token);
                    }
                }
            }
        }
        true
    }

    /// Records that a segment has run its part of an op; returns whether it was the last.
    fn has_run(&mut self, op: usize, segment: usize) -> bool {
        let clock = self.clocks.of(segment).clone();
        let progress = &mut self.ops[op];
        progress.clock.iter_mut().zip(clock.iter()).for_each(|(a, &b)| *a = (*a).max(b));
        progress.left = progress.left.saturating_sub(1);
        progress.left == 0
    }

    /// The segment receives the knowledge of what its op waited for.
    fn learn_got(&mut self, op: usize, segment: usize) {
        if let Some(got) = &self.ops[op].got {
            self.clocks.learn(segment, got);
        }
        self.has_run(op, segment);
    }

    /// The next unused signal of a channel.
    fn next_signal(&self, channel: &Channel) -> Option<&Token> {
        let taken = self.taken.get(channel).copied().unwrap_or(0);
        self.signals.get(channel)?.get(taken)
    }

    /// Takes the next signal of a channel, which must be from a send under one of the tags, or
    /// from a sync; returns whether there was one.
    fn take_signal(&mut self, op: usize, channel: &Channel, tags: Option<&[i64]>) -> bool {
        let Some(token) = self.next_signal(channel) else { return false };
        let (sender, clock) = (token.op, token.clock.clone());
        *self.taken.entry(channel.clone()).or_default() += 1;
        let world = self.world;
        let (sent, waits) = (&world.ops[sender], &world.ops[op]);
        let fits = match (&sent.act, tags) {
            (Action::Put { tags: sent, .. }, Some(tags)) => {
                sent.iter().any(|tag| tags.contains(tag))
            }
            (Action::Sync { .. }, None) => true,
            _ => false,
        };
        let rank = waits.rank;
        if !fits {
            self.found.push((rank, wrong_signal(sent, waits)));
        } else if let (Some(signals), Some(waits_for)) =
            (sent.plan_op.config.int("NumTasks"), waits.plan_op.config.int("NumTasks"))
            && channel.kind == "Sm"
            && signals > waits_for
        {
            self.found.push((rank, uncounted(sent, waits, signals, waits_for)));
        }
        let got = &mut self.ops[op].got;
        match got {
            Some(got) => got.iter_mut().zip(&clock).for_each(|(a, &b)| *a = (*a).max(b)),
            None => *got = Some(clock),
        }
        true
    }

    fn sync(&mut self, op: usize, segment: usize, kind: &str) -> bool {
        let rank = self.world.ops[op].rank;
        let channel = |from, to| Channel { from, to, kind: kind.to_owned() };
        let peers = || (0..self.world.plans.len()).filter(move |&peer| peer != rank);
        if !self.ops[op].is_out {
            self.ops[op].is_out = true;
            let mut clock = (**self.clocks.of(segment)).clone();
            for peer in peers() {
                // Earlier data on the same channel has arrived.
                for put in self.puts.get(&channel(rank, peer)).into_iter().flatten() {
                    clock[self.event(*put)] = 1;
                }
            }
            for peer in peers() {
                let token = Token { op, clock: clock.clone() };
                self.signals.entry(channel(rank, peer)).or_default().push(token);
            }
        }
        if self.ops[op].got.is_some() {
            return true;
        }
        if !peers().all(|peer| self.next_signal(&channel(peer, rank)).is_some()) {
            return false;
        }
        for peer in peers() {
            self.take_signal(op, &channel(peer, rank), None);
        }
        true
    }

    fn take_packets(&mut self, op: usize, takes: &[Link]) -> bool {
        let turns = &self.world.ops[op].turns;
        let mut got = vec![0; self.world.count() + self.world.ops.len()];
        let mut matched = vec![];
        for (link, &turn) in takes.iter().zip(turns) {
            let Some(token) = self.packets.get(link).and_then(|sent| sent.get(turn)) else {
                return false;
            };
            got.iter_mut().zip(&token.clock).for_each(|(a, &b)| *a = (*a).max(b));
            matched.push((token.op, op));
            if turn > 0
                && let Some(before) = self.packets[link].get(turn - 1)
                && self.flag(before.op) == self.flag(token.op)
            {
                let diagnostic = same_flag(&self.world.ops[op], &self.world.ops[token.op]);
                self.found.push((self.world.ops[op].rank, diagnostic));
            }
        }
        self.matched.extend(matched);
        self.ops[op].got = Some(got);
        true
    }

    fn flag(&self, op: usize) -> Option<u32> {
        self.world.ops[op].plan_op.op.uint_arg("Flag")
    }

    /// What the op at which a segment waits needs: a description, and an op of another rank that has
    /// not run.
    pub fn missing(&self, op: usize) -> (String, Option<usize>) {
        let world = self.world;
        let rank = world.ops[op].rank;
        let signals = |channel: &Channel| {
            let to = channel.to;
            let suits = |(index, other): &(usize, &CommOp<'_>)| match &other.act {
                Action::Put { channel: own, signals: true, .. } => {
                    own == channel && self.ops[*index].left > 0
                }
                Action::Sync { kind } => {
                    other.rank == channel.from
                        && *kind == channel.kind
                        && other.rank != to
                        && !self.ops[*index].is_out
                }
                _ => false,
            };
            world.ops.iter().enumerate().find(suits).map(|(index, _)| index)
        };
        match &world.ops[op].act {
            Action::Wait { channel, .. } => {
                (format!("a signal of rank {}", channel.from), signals(channel))
            }
            Action::Sync { kind } => {
                let channel = |from| Channel { from, to: rank, kind: kind.clone() };
                let mut peers = (0..world.plans.len()).filter(|&peer| peer != rank);
                let late = peers.find(|&peer| self.next_signal(&channel(peer)).is_none());
                let late = late.unwrap_or(rank);
                (format!("a signal of rank {late}"), signals(&channel(late)))
            }
            Action::Packets { takes, .. } => {
                let turns = &world.ops[op].turns;
                let is_missing = |(link, turn): &(&Link, &usize)| {
                    self.packets.get(link).is_none_or(|sent| sent.len() <= **turn)
                };
                let link = takes.iter().zip(turns).find(is_missing).map(|(link, _)| *link);
                let Some(link) = link else { return ("packets".into(), None) };
                let suits = |(index, other): &(usize, &CommOp<'_>)| match &other.act {
                    Action::Packets { sends, .. } => {
                        sends.contains(&link) && !self.ops[*index].is_out
                    }
                    _ => false,
                };
                let sender = world.ops.iter().enumerate().find(suits).map(|(index, _)| index);
                (format!("packets of rank {} under tag {}", link.from, link.tag), sender)
            }
            _ => (String::new(), None),
        }
    }

    /// Signals that nothing waited for.
    fn left_over(&self) -> Vec<(usize, Diagnostic)> {
        let left = |(channel, tokens): (&Channel, &'_ Vec<Token>)| -> Vec<usize> {
            let taken = self.taken.get(channel).copied().unwrap_or(0);
            tokens[taken..].iter().map(|token| token.op).collect()
        };
        let ops = self.signals.iter().flat_map(left);
        let diagnostic = |op: usize| {
            let op = &self.world.ops[op];
            let peer = match &op.act {
                Action::Put { channel, .. } => channel.to,
                _ => op.rank,
            };
            let message = format!("{op} signals to rank {peer}, which has no op that waits for it");
            let diagnostic = Diagnostic::error("plan-signal", message)
                .path(op.at().to_string())
                .with_note("the next wait would consume this signal")
                .help("add a `Recv` there, or send with `Signal` false");
            (op.rank, diagnostic)
        };
        ops.map(diagnostic).collect()
    }
}

fn wrong_signal(sent: &CommOp<'_>, waits: &CommOp<'_>) -> Diagnostic {
    let message = format!("{waits} consumes the signal of {sent}, which is meant for another op");
    Diagnostic::error("plan-signal", message)
        .path(waits.at().to_string())
        .with_note("signals between two ranks are counted for each type of channel, not by tag")
        .help("wait in the order in which the peer sends")
}

fn uncounted(sent: &CommOp<'_>, waits: &CommOp<'_>, signals: i64, waited: i64) -> Diagnostic {
    let message =
        format!("{sent} signals {signals} times, once a task; {waits} waits {waited} times");
    Diagnostic::warning("plan-signal-count", message)
        .path(waits.at().to_string())
        .with_note("it may continue before all of the data has arrived")
        .help("send with one task, or with `Signal` false and a `DeviceSync` after it")
}

fn same_flag(takes: &CommOp<'_>, sends: &CommOp<'_>) -> Diagnostic {
    let message = format!(
        "{takes} cannot distinguish the packets of {sends} from earlier ones with the same flag"
    );
    Diagnostic::error("plan-packet-flag", message)
        .path(takes.at().key("Args").key("Flag").to_string())
        .help("use another `Flag` for each round, or another packet buffer")
}
