//! The contents of the cores' buffers over time.
//!
//! Two charts for each core, L2 and WL0: cycles to the right, addresses upwards, a rectangle for each
//! [`Resident`], dashed lines at the ends of ring regions.

use irc_diag::counted;
use irc_npu::access::Space;
use irc_npu::registers::{Region, Registers};
use irc_npu::{Core, Engine, Op, Time};

use super::{LayerNames, MAX_MARKS, Page, WIDTH, begin_core, name, put, x};
use crate::residency::{Resident, residents};

/// Height of a chart, in its own units.
const HEIGHT: f64 = 320.0;

/// The least number of tensors of a core that are shown.
const MIN_TENSORS: usize = 20;

pub fn write(text: &mut String, page: &Page<'_>) {
    let cycles = page.timing.cycles.max(1);
    text.push_str(KEY);
    text.push_str("<div id=\"buffers\">\n");
    let most = (MAX_MARKS / page.program.cores.len().max(1)).max(MIN_TENSORS);
    for (index, (core, times)) in page.program.cores.iter().zip(&page.timing.times).enumerate() {
        let all = residents(core, times);
        begin_core(text, core.id, index);
        for (space, name) in [(Space::L2, "L2"), (Space::Wl0, "WL0")] {
            let own: Vec<&Resident> = all.iter().filter(|one| one.space == space).collect();
            let top = own.iter().map(|resident| resident.bytes.1).max().unwrap_or(0);
            if top == 0 {
                continue;
            }
            let shown = largest(&own, most);
            let omitted = match own.len() - shown.len() {
                0 => String::new(),
                1 => "; 1 tensor that occupies less is not shown".into(),
                smaller => format!("; {smaller} tensors that occupy less are not shown"),
            };
            put(
                text,
                format_args!(
                    "<h3>core {}, {name}: {}{omitted}</h3>\n<div class=\"chart buffer\"><svg \
                     viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\">\n",
                    core.id,
                    counted(top, "byte")
                ),
            );
            let mut chart = Chart { text, cycles, top };
            shown.iter().for_each(|resident| chart.resident(resident, page.names));
            if space == Space::L2 {
                chart.regions(core, times);
            }
            text.push_str("</svg></div>\n");
        }
        text.push_str("</details>\n");
    }
    text.push_str("</div>\n");
}

/// The tensors that occupy most bytes for most cycles, in their order.
fn largest<'r>(all: &[&'r Resident], most: usize) -> Vec<&'r Resident> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    let area = |resident: &Resident| {
        let Time { start, end } = resident.time;
        (resident.bytes.1 - resident.bytes.0).max(0) as u128 * u128::from(end.saturating_sub(start))
    };
    order.sort_by_key(|index| std::cmp::Reverse(area(all[*index])));
    order.truncate(most);
    order.sort_unstable();
    order.into_iter().map(|index| all[index]).collect()
}

/// A chart being written.
struct Chart<'p> {
    text: &'p mut String,
    cycles: u64,
    /// Address at the top edge.
    top: i64,
}

impl Chart<'_> {
    fn y(&self, address: i64) -> f64 {
        HEIGHT - address as f64 / self.top as f64 * HEIGHT
    }

    fn resident(&mut self, resident: &Resident, names: &LayerNames) {
        let Time { start, end } = resident.time;
        let (from, to) = resident.bytes;
        let (left, y) = (x(start, self.cycles), self.y(to));
        let (width, height) = (x(end, self.cycles) - left, self.y(from) - y);
        let class = resident.engine.name();
        let title = title(resident, names);
        put(
            self.text,
            format_args!(
                "<rect class=\"{class}\" x=\"{left:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" \
                 height=\"{height:.2}\"><title>{title}</title></rect>\n"
            ),
        );
    }

    /// A line at the end of each ring region, for as long as it is in the table.
    fn regions(&mut self, core: &Core, times: &[Time]) {
        let tables = tables(core, times);
        for (i, (since, regions)) in tables.iter().enumerate() {
            let until = tables.get(i + 1).map_or(self.cycles, |(next, _)| *next);
            let (from, to) = (x(*since, self.cycles), x(until, self.cycles));
            for (number, region) in
                regions.iter().enumerate().filter(|(_, region)| !region.is_empty())
            {
                let Region { start, end } = *region;
                // There is nothing to see above the highest tensor.
                let y = self.y(end.min(self.top));
                put(
                    self.text,
                    format_args!(
                        "<line x1=\"{from:.2}\" x2=\"{to:.2}\" y1=\"{y:.2}\" y2=\"{y:.2}\">\
                         <title>ring region {number}: {start} to {end}</title></line>\n"
                    ),
                );
            }
        }
    }
}

/// The ring regions, with the cycle of each change.
fn tables(core: &Core, times: &[Time]) -> Vec<(u64, Vec<Region>)> {
    let mut registers = Registers::default();
    let mut tables: Vec<(u64, Vec<Region>)> = vec![];
    for (instruction, time) in core.code.iter().zip(times) {
        let _ = registers.write(instruction);
        if matches!(instruction.op, Op::CtBc(_)) {
            tables.push((time.end, registers.regions.to_vec()));
        }
    }
    tables
}

fn title(resident: &Resident, names: &LayerNames) -> String {
    let made = match resident.engine {
        Engine::Pe | Engine::Vp => "result of",
        Engine::Dt => "copied for",
        Engine::Si => "received for",
        Engine::Lw => "weights for",
        _ => "loaded for",
    };
    let readers: Vec<String> = resident.readers.iter().map(|layer| name(names, *layer)).collect();
    // Loaded data belongs to its readers, which may be later layers than the one that loads it.
    let is_brought = matches!(resident.engine, Engine::Ld | Engine::Lw | Engine::Si);
    let named = match is_brought && !readers.is_empty() {
        true => readers.join(", "),
        false => name(names, resident.layer),
    };
    let Resident { size, bytes: (from, to), workload, time: Time { start, end }, .. } = resident;
    let mut text = format!(
        "{made} {named}\n{size} bytes at {from} to {to}\nworkload {workload}, cycles {start} to {end}"
    );
    if !is_brought && !readers.is_empty() {
        put(&mut text, format_args!("\nread by {}", readers.join(", ")));
    }
    text
}

const KEY: &str = r##"<h2>buffers over time</h2>
<p><span class="key" style="background:#4e79a7"></span> loaded <span class="key" style="background:#59a14f"></span> made by PE
<span class="key" style="background:#edc948"></span> made by VP <span class="key" style="background:#b07aa1"></span> copied
<span class="key" style="background:#e15759"></span> received <span class="key" style="background:#f28e2b"></span> weights in WL0;
dashed: ends of ring regions</p>
"##;
