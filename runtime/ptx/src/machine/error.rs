//! What goes wrong while a kernel runs, as diagnostics at its instructions.

use super::{Fragment, Machine, Wait, Warp, lanes};
use crate::race::Race;
use irc_diag::Diagnostic;
use std::collections::BTreeMap;

/// Instructions at which a diagnostic says that threads wait.
const MAX_PLACES: usize = 12;

/// An error that ends a launch.
#[derive(Debug)]
pub(super) struct Error {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) notes: Vec<String>,
    /// The thread of the warp.
    pub(super) lane: Option<usize>,
    /// The instruction, and the slot and number of the warp.
    place: Option<(u32, usize, u32)>,
}

impl Error {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), notes: vec![], lane: None, place: None }
    }

    pub(super) fn at_lane(mut self, lane: usize) -> Self {
        self.lane = self.lane.or(Some(lane));
        self
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    pub(super) fn located(mut self, at: u32, warp: &Warp) -> Self {
        self.place = self.place.or(Some((at, warp.slot, warp.index)));
        self
    }
}

impl Machine<'_> {
    /// The bytes of an instruction's operation in the text.
    fn span(&self, at: u32) -> std::ops::Range<usize> {
        let start = self.program.starts.get(at as usize).copied().unwrap_or(0) as usize;
        let text = self.program.source.text();
        let length = text[start..].find(|c: char| c.is_whitespace() || c == ';').unwrap_or(1);
        start..start + length
    }

    /// The line of the source program that an instruction comes from.
    fn source_line(&self, at: u32) -> Option<String> {
        let function = self.program.functions.iter().rev().find(|function| function.entry <= at)?;
        let index = self.program.lines.partition_point(|line| line.0 <= at).checked_sub(1)?;
        let (first, file, line, column) = self.program.lines[index];
        if first < function.entry || line == 0 {
            return None;
        }
        let name = self.program.files.iter().find(|(number, _)| *number == file);
        let name = name.map_or_else(|| format!("file {file}"), |(_, name)| name.clone());
        Some(format!("from {name}:{line}:{column}"))
    }

    /// A thread by its coordinates.
    pub(super) fn thread_name(&self, index: u32, lane: usize) -> String {
        let linear = index * 32 + lane as u32;
        let [x, y, _] = self.launch.block;
        format!("({}, {}, {})", linear % x, linear / x % y, linear / x / y)
    }

    pub(super) fn cta_name(&self, slot: usize) -> String {
        match &self.slots[slot] {
            Some(cta) => format!("({}, {}, {})", cta.id[0], cta.id[1], cta.id[2]),
            None => "that has ended".into(),
        }
    }

    /// What the launch says about a warp.
    fn explained(&self, cta: u64, warp: u32) -> Option<String> {
        self.launch.explain.as_ref().and_then(|explain| (explain.0)(self.memory, cta, warp))
    }

    fn cta_of(&self, warp: u32) -> String {
        let (_, [x, y, z]) = self.place_of(u64::from(warp) / self.warps_per_cta as u64);
        format!("({x}, {y}, {z})")
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.is_error());
        self.diagnostics.push(diagnostic);
    }

    pub(super) fn report_fault(&mut self, fault: Error) {
        let mut diagnostic = Diagnostic::error(fault.code, fault.message);
        if let Some((at, slot, index)) = fault.place {
            diagnostic = diagnostic.at(self.span(at), "this instruction");
            let cta = self.cta_name(slot);
            diagnostic = diagnostic.with_note(match fault.lane {
                Some(lane) => format!("thread {} of CTA {cta}", self.thread_name(index, lane)),
                None => format!("warp {index} of CTA {cta}"),
            });
            let explained =
                self.slots[slot].as_ref().and_then(|cta| self.explained(cta.linear, index));
            for line in [explained, self.source_line(at)].into_iter().flatten() {
                diagnostic = diagnostic.with_note(line);
            }
        }
        for note in fault.notes {
            diagnostic = diagnostic.with_note(note);
        }
        self.push(diagnostic);
    }

    /// Reports an error after which the launch goes on, once for each instruction.
    pub(super) fn report_once(&mut self, warp: &Warp, at: u32, fault: Error) {
        if self.reported.insert((at, u32::MAX)) {
            self.report_fault(fault.located(at, warp));
        }
    }

    /// Reports a race, once for each pair of instructions.
    pub(super) fn report_race(
        &mut self,
        warp: &Warp,
        lane: usize,
        at: u32,
        write: bool,
        place: &str,
        race: Race,
    ) {
        if !self.reported.insert((race.at.min(at), race.at.max(at))) {
            return;
        }
        let kind = match (race.wrote, write) {
            (true, true) => "two writes",
            (true, false) => "a read and an earlier write",
            (false, _) => "a write and an earlier read",
        };
        let message = format!("{kind} of {place} by two threads are not ordered");
        let this = format!(
            "{} by thread {}",
            if write { "written" } else { "read" },
            self.thread_name(warp.index, lane)
        );
        let index = race.thread.0 % self.warps_per_cta as u32;
        let other = self.thread_name(index, race.thread.1 as usize);
        let other = format!("{} by thread {other}", if race.wrote { "written" } else { "read" });
        let (here, there) = (self.cta_name(warp.slot), self.cta_of(race.thread.0));
        let mut diagnostic = Diagnostic::error("ptx-race", message);
        diagnostic = diagnostic.at(self.span(at), format!("{this} of CTA {here}"));
        diagnostic = diagnostic.also(self.span(race.at), format!("{other} of CTA {there}"));
        let explained = self.slots[warp.slot].as_ref();
        let explained = explained.and_then(|cta| self.explained(cta.linear, warp.index));
        for line in
            [explained, self.source_line(at), self.source_line(race.at)].into_iter().flatten()
        {
            diagnostic = diagnostic.with_note(line);
        }
        diagnostic =
            diagnostic.help("a barrier, or a release and an acquire, between the two orders them");
        self.push(diagnostic);
    }

    /// Where all threads are, by what they wait for: instruction, reason, threads.
    fn waiting(&self) -> Vec<(u32, String, u64, String)> {
        let mut places: BTreeMap<(u32, String), (u64, String)> = BTreeMap::new();
        for warp in self.warps.iter().filter(|warp| self.slots[warp.slot].is_some()) {
            for fragment in &warp.fragments {
                let reason = self.reason(warp, fragment);
                let lane = lanes(fragment.mask).next().unwrap_or(0);
                let cta = self.cta_name(warp.slot);
                let first = format!("thread {} of CTA {cta}", self.thread_name(warp.index, lane));
                // Threads at a barrier go on after it.
                let past = u32::from(matches!(fragment.wait, Wait::Barrier { .. }));
                let place = places.entry((fragment.at - past, reason)).or_insert((0, first));
                place.0 += u64::from(fragment.mask.count_ones());
            }
        }
        places
            .into_iter()
            .map(|((at, reason), (count, first))| (at, reason, count, first))
            .collect()
    }

    fn reason(&self, warp: &Warp, fragment: &Fragment) -> String {
        match &fragment.wait {
            Wait::None => "run".into(),
            Wait::Barrier { id, .. } => match &self.slots[warp.slot] {
                Some(cta) => {
                    let state = &cta.barriers[*id];
                    format!(
                        "wait for barrier {id}, where {} of {} threads have arrived",
                        state.arrived(),
                        state.expected
                    )
                }
                None => format!("wait for barrier {id}"),
            },
            Wait::Warp(mask) => format!("wait for the threads {mask:#010x} of their warp"),
            Wait::Mbarrier { address, .. } => {
                match self.slots[warp.slot].as_ref().and_then(|cta| cta.mbarriers.get(address)) {
                    Some(barrier) => format!(
                        "wait for the mbarrier at {address:#x}, which expects {} arrivals and {} bytes",
                        barrier.pending, barrier.bytes
                    ),
                    None => format!("wait for the mbarrier at {address:#x}"),
                }
            }
            Wait::Spin { .. } | Wait::Words { .. } => {
                "repeat a loop that only a change of memory ends".into()
            }
        }
    }

    fn report_places(&mut self, mut diagnostic: Diagnostic) {
        let places = self.waiting();
        let hidden = places.len().saturating_sub(MAX_PLACES);
        for (index, (at, reason, count, first)) in places.into_iter().take(MAX_PLACES).enumerate() {
            let threads = if count == 1 { "1 thread".into() } else { format!("{count} threads") };
            let label = format!("{threads} {reason}");
            let span = self.span(at);
            diagnostic =
                if index == 0 { diagnostic.at(span, label) } else { diagnostic.also(span, label) };
            let line = self.program.source.line_column(self.span(at).start).0;
            diagnostic =
                diagnostic.with_note(format!("line {line}: {threads}, the first being {first}"));
        }
        if hidden > 0 {
            diagnostic =
                diagnostic.with_note(format!("threads at {hidden} further places are not shown"));
        }
        self.push(diagnostic);
    }

    /// Reports that nothing can run.
    pub(super) fn deadlock(&mut self) {
        let mut diagnostic =
            Diagnostic::error("ptx-deadlock", "no thread can run: all wait for one another");
        let hidden = self.ctas - self.next_cta;
        if hidden > 0 {
            diagnostic = diagnostic
                .with_note(format!("{hidden} CTAs have not started: they start as others end"));
        }
        self.report_places(diagnostic);
    }

    /// Reports that the launch ran for too long.
    pub(super) fn watchdog(&mut self) {
        let message =
            format!("the launch has not ended after {} instructions", self.launch.max_instructions);
        self.report_places(Diagnostic::error("ptx-watchdog", message));
    }
}
