//! What limits the segments of a program: computing, links, DRAM, beside the cycles that they take.

use std::collections::BTreeMap;

use irc_npu::op::{SiMov, SoMov};
use irc_npu::{Engine, Op, Program};

use crate::cycles::Timing;
use crate::durations::{NoTime, Rates, Work, WorkloadTimes, works};
use crate::noc::{Mesh, Traffic, TrafficTotals, cycles};

/// The segments that the workloads of a program belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentMap {
    /// Names of the segments, in order.
    pub names: Vec<String>,
    /// The run (a group of images) and the segment of each workload, by number of the core, by workload.
    pub of: BTreeMap<(u32, i32), (usize, usize)>,
}

/// The cycles of a segment, of all its runs together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentTimes {
    /// Its name.
    pub name: String,
    /// Lower bound: those of the busiest PE or VP.
    pub compute: u64,
    /// Lower bound: those of the busiest link, or of the busiest SO.
    pub links: u64,
    /// Lower bound: those of DRAM, or of the busiest engine that moves data from or to it.
    pub dram: u64,
    /// Bytes from and to DRAM.
    pub dram_bytes: u64,
    /// Bytes over the busiest link, of the busiest ones of all runs.
    pub link_bytes: u64,
    /// By how many cycles the program takes longer with this segment: from the last end of an instruction of
    /// earlier segments to the last end of one of this. These add up to the cycles of the program.
    pub simulated: u64,
}

impl SegmentTimes {
    /// The largest of the lower bounds, and its name.
    pub fn bound(&self) -> (u64, &'static str) {
        let all = [(self.compute, "compute"), (self.links, "NoC"), (self.dram, "DRAM")];
        // Of equal ones the first.
        all.into_iter().rev().max_by_key(|(cycles, _)| *cycles).unwrap_or((0, "compute"))
    }
}

/// The cycles of all segments, and the traffic of the whole program on a mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentTable {
    /// By segment.
    pub segments: Vec<SegmentTimes>,
    /// Bytes over links and DRAM.
    pub carried: TrafficTotals,
}

/// A run of a segment.
struct RunWork {
    /// Cycles of each engine of each core.
    busy: BTreeMap<(u32, Engine), u64>,
    traffic: Option<Traffic>,
    dram: u64,
    end: u64,
}

/// The cycles of segments in a timing of a program. A mesh with infinite rates counts bytes only.
///
/// # Errors
/// As [`works`].
pub fn segment_table(
    program: &Program,
    timing: &Timing,
    (times, rates, mesh): (&WorkloadTimes, &Rates, Option<&Mesh>),
    map: &SegmentMap,
) -> Result<SegmentTable, NoTime> {
    let works = works(program, times, rates)?;
    let mut runs: BTreeMap<(usize, usize), RunWork> = BTreeMap::new();
    let places = mesh.filter(|mesh| program.cores.iter().all(|core| mesh.has(core.id)));
    for ((core, works), ends) in program.cores.iter().zip(&works).zip(&timing.times) {
        let mut last = None;
        for ((instruction, work), time) in core.code.iter().zip(works).zip(ends) {
            // What belongs to no workload counts with the one before.
            let own = map.of.get(&(core.id, instruction.origin.wkl)).copied().or(last);
            let Some(own) = own else { continue };
            last = Some(own);
            let run = runs.entry(own).or_insert_with(|| RunWork {
                busy: BTreeMap::new(),
                traffic: places.map(|mesh| Traffic::new(counting(mesh))),
                dram: 0,
                end: 0,
            });
            run.end = run.end.max(time.end);
            run.add(core.id, instruction.op.engine(), *work, &instruction.op, rates);
        }
    }
    Ok(table(runs, timing.cycles, places, map))
}

/// A mesh on which traffic takes no time.
fn counting(mesh: &Mesh) -> Mesh {
    Mesh { link: f64::INFINITY, dram: f64::INFINITY, ..mesh.clone() }
}

impl RunWork {
    fn add(&mut self, core: u32, engine: Engine, work: Work, op: &Op, rates: &Rates) {
        let busy = match work {
            Work::Cycles(cycles) => cycles,
            Work::Dram { bytes, .. } => {
                self.dram = self.dram.saturating_add(bytes);
                if let Some(traffic) = &mut self.traffic {
                    traffic.dram(core, bytes, engine == Engine::St, 0);
                }
                rates.moving(bytes)
            }
            Work::Transfer { bytes } => {
                if let (Op::SoMov(SoMov { core: to, xfer, .. }), Some(traffic)) =
                    (op, &mut self.traffic)
                {
                    traffic.transfer((core, *to), *xfer, bytes, 0);
                }
                if matches!(op, Op::SiMov(SiMov { .. })) { 0 } else { cycles(bytes, rates.dram) }
            }
        };
        *self.busy.entry((core, engine)).or_default() += busy;
    }

    fn busiest(&self, engines: &[Engine]) -> u64 {
        let own = self.busy.iter().filter(|((_, engine), _)| engines.contains(engine));
        own.map(|(_, cycles)| *cycles).max().unwrap_or(0)
    }
}

fn table(
    runs: BTreeMap<(usize, usize), RunWork>,
    total: u64,
    mesh: Option<&Mesh>,
    map: &SegmentMap,
) -> SegmentTable {
    let named = |name: &String| SegmentTimes { name: name.clone(), ..SegmentTimes::default() };
    let mut all: Vec<SegmentTimes> = map.names.iter().map(named).collect();
    let mut carried = TrafficTotals::default();
    let (mut end, mut last) = (0, 0);
    for ((_, number), mut run) in runs {
        let Some(segment) = all.get_mut(number) else { continue };
        let traffic = run.traffic.take().map(Traffic::into_carried).unwrap_or_default();
        let busiest = traffic.busiest().map_or(0, |(_, bytes)| bytes);
        let rate = |bytes, of: fn(&Mesh) -> f64| mesh.map_or(0, |mesh| cycles(bytes, of(mesh)));
        segment.compute += run.busiest(&[Engine::Pe, Engine::Vp]);
        segment.links += rate(busiest, |mesh| mesh.link).max(run.busiest(&[Engine::So]));
        segment.dram += rate(run.dram, |mesh| mesh.dram).max(run.busiest(&[
            Engine::Ld,
            Engine::Lw,
            Engine::St,
        ]));
        segment.dram_bytes += run.dram;
        segment.link_bytes += busiest;
        segment.simulated += run.end.saturating_sub(end);
        (end, last) = (end.max(run.end), number);
        carried.dram += run.dram;
        for (link, bytes) in traffic.links {
            *carried.links.entry(link).or_default() += bytes;
        }
    }
    if let Some(segment) = all.get_mut(last) {
        segment.simulated += total.saturating_sub(end);
    }
    SegmentTable { segments: all, carried }
}
