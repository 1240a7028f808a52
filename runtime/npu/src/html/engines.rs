//! The engines of each core over time.

use irc_diag::counted;
use irc_npu::{Core, Engine, Time};

use super::{LayerNames, MAX_MARKS, Page, WIDTH, begin_core, name, put, x};

/// Height of an engine's lane, in units of the chart.
const LANE: u64 = 12;
/// Height of a lane's contents; shares of busy cycles are rounded to one of so many levels.
const LEVELS: u64 = 10;
/// Numbers of intervals of a lane of shares, the most first; all divide the width of the chart.
const INTERVALS: [u64; 6] = [800, 400, 200, 100, 50, 25];

/// What an engine does for one workload without a pause.
struct Work {
    engine: Engine,
    layer: i32,
    workload: i32,
    time: Time,
}

pub fn write(text: &mut String, page: &Page<'_>) {
    let cycles = page.timing.cycles;
    let cores = || page.program.cores.iter().zip(&page.timing.times);
    let count: usize = cores().map(|(core, times)| works(core, times).len()).sum();
    let lane_count: usize = cores().map(|(core, _)| lanes(core).len()).sum();
    let is_exact = count <= MAX_MARKS;
    let fits = |intervals: &&u64| lane_count * **intervals as usize <= 4 * MAX_MARKS;
    let intervals = INTERVALS.iter().find(fits).copied().unwrap_or(INTERVALS[5]);
    text.push_str("<h2>engines</h2>\n");
    match is_exact {
        true => text.push_str("<p>Work for one workload without a pause is one rectangle.</p>\n"),
        false => put(
            text,
            format_args!(
                "<p>Heights are shares of busy cycles in each of {intervals} intervals.</p>\n"
            ),
        ),
    }
    text.push_str("<div id=\"engines\">\n");
    for (index, (core, times)) in cores().enumerate() {
        let (lanes, works) = (lanes(core), works(core, times));
        let height = LANE * lanes.len() as u64;
        begin_core(text, core.id, index);
        text.push_str("<div class=\"lanes\"><div class=\"labels\">");
        lanes.iter().for_each(|engine| put(text, format_args!("{engine}<br>")));
        put(
            text,
            format_args!(
                "</div><div class=\"chart\"><svg viewBox=\"0 0 {WIDTH} {height}\" preserveAspectRatio=\"none\" \
                 style=\"height:{height}px\">\n"
            ),
        );
        for (lane, engine) in lanes.iter().enumerate() {
            let own = works.iter().filter(|work| work.engine == *engine);
            let top = lane as u64 * LANE + 1;
            match is_exact {
                true => own.for_each(|work| exact(text, work, (top, cycles), page.names)),
                false => shares(text, (*engine, own.collect()), (top, cycles), intervals),
            }
        }
        text.push_str("</svg></div></div></details>\n");
    }
    text.push_str("</div>\n");
}

/// The engines of a core that have instructions.
fn lanes(core: &Core) -> Vec<Engine> {
    let has = |engine: &Engine| core.code.iter().any(|one| one.op.engine() == *engine);
    Engine::ALL.into_iter().filter(has).collect()
}

/// What the engines of a core do, in the order of its instructions.
fn works(core: &Core, times: &[Time]) -> Vec<Work> {
    let mut all: Vec<Work> = vec![];
    let mut last = [None; Engine::COUNT];
    for (instruction, time) in core.code.iter().zip(times) {
        if time.start == time.end {
            continue;
        }
        let (engine, workload) = (instruction.op.engine(), instruction.origin.wkl);
        let before: Option<usize> = last[engine as usize];
        match before.map(|at| &mut all[at]) {
            Some(work) if work.workload == workload && work.time.end == time.start => {
                work.time.end = time.end;
            }
            _ => {
                last[engine as usize] = Some(all.len());
                let layer = instruction.origin.slyr;
                all.push(Work { engine, layer, workload, time: *time });
            }
        }
    }
    all
}

fn exact(text: &mut String, work: &Work, (top, cycles): (u64, u64), names: &LayerNames) {
    let Time { start, end } = work.time;
    let (from, to) = (x(start, cycles), x(end, cycles));
    put(
        text,
        format_args!(
            "<rect class=\"{}\" x=\"{from:.2}\" y=\"{top}\" width=\"{:.2}\" height=\"{LEVELS}\"><title>{} {}, workload {}, \
             cycles {start} to {end}</title></rect>\n",
            work.engine,
            to - from,
            work.engine,
            name(names, work.layer),
            work.workload,
        ),
    );
}

/// The shares of busy cycles of an engine, as an area.
fn shares(
    text: &mut String,
    (engine, works): (Engine, Vec<&Work>),
    (top, cycles): (u64, u64),
    intervals: u64,
) {
    let mut busy = vec![0_u64; intervals as usize];
    let edge =
        |interval: u64| (u128::from(cycles) * u128::from(interval) / u128::from(intervals)) as u64;
    let mut total = 0;
    let mut at = 0;
    for Time { start, end } in works.iter().map(|work| work.time) {
        total += end - start;
        while at + 1 < intervals && edge(at + 1) <= start {
            at += 1;
        }
        for interval in at..intervals {
            let (from, to) = (edge(interval).max(start), edge(interval + 1).min(end));
            if edge(interval) >= end {
                break;
            }
            busy[interval as usize] += to.saturating_sub(from);
        }
    }
    let (bottom, step) = (top + LEVELS, WIDTH / intervals);
    put(text, format_args!("<path class=\"{engine}\" d=\"M0 {bottom}"));
    let level = |interval: u64| {
        let length = (edge(interval + 1) - edge(interval)).max(1);
        (busy[interval as usize] * LEVELS).div_ceil(length).min(LEVELS)
    };
    let mut first = 0;
    for interval in 1..=intervals {
        if interval == intervals || level(interval) != level(first) {
            put(text, format_args!("V{}h{}", bottom - level(first), (interval - first) * step));
            first = interval;
        }
    }
    let percent = total as f64 / cycles.max(1) as f64 * 100.0;
    put(
        text,
        format_args!(
            "V{bottom}z\"><title>{engine}: {}, {percent:.1} %</title></path>\n",
            counted(total, "cycle")
        ),
    );
}
