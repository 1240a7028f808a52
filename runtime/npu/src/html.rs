//! The contents of the cores' buffers over time, as a self-contained page.
//!
//! Two charts for each core, L2 and WL0: cycles to the right, addresses upwards, a rectangle for
//! each [`Resident`], dashed lines at the ends of ring regions. Rectangles have tooltips.

use std::collections::BTreeMap;
use std::fmt::Write;

use irc_npu::access::Space;
use irc_npu::registers::{Region, Registers};
use irc_npu::{Core, Engine, Op, Program, Time};

use crate::cycles::Timing;
use crate::residency::{Resident, residents};

/// Names of layers, by their number in instructions.
pub type LayerNames = BTreeMap<i32, String>;

/// Width and height of a chart, in its own units.
const WIDTH: f64 = 1600.0;
const HEIGHT: f64 = 320.0;

/// The page for a program, its timing and the names of its layers.
pub fn write(program: &Program, timing: &Timing, names: &LayerNames) -> String {
    let mut page = String::from(HEAD);
    put(&mut page, format_args!("<p>{} cycles</p>\n{KEY}", timing.cycles));
    for (core, times) in program.cores.iter().zip(&timing.times) {
        let all = residents(core, times);
        for (space, name) in [(Space::L2, "L2"), (Space::Wl0, "WL0")] {
            let own = || all.iter().filter(|resident| resident.space == space);
            let top = own().map(|resident| resident.bytes.1).max().unwrap_or(0);
            if top == 0 {
                continue;
            }
            let mut picture = Chart { page: &mut page, cycles: timing.cycles.max(1), top };
            picture.begin(core.id, name);
            own().for_each(|resident| picture.resident(resident, names));
            if space == Space::L2 {
                picture.regions(core, times);
            }
            picture.page.push_str("</svg></div>\n");
        }
    }
    page + TAIL
}

/// A chart being written.
struct Chart<'p> {
    page: &'p mut String,
    cycles: u64,
    /// Address at the top edge.
    top: i64,
}

impl Chart<'_> {
    fn begin(&mut self, core: u32, name: &str) {
        let top = self.top;
        put(
            self.page,
            format_args!(
                "<h2>core {core}, {name}: {top} bytes</h2>\n<div><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
                 preserveAspectRatio=\"none\">\n"
            ),
        );
    }

    fn x(&self, cycle: u64) -> f64 {
        cycle as f64 / self.cycles as f64 * WIDTH
    }

    fn y(&self, address: i64) -> f64 {
        HEIGHT - address as f64 / self.top as f64 * HEIGHT
    }

    fn resident(&mut self, resident: &Resident, names: &LayerNames) {
        let Time { start, end } = resident.time;
        let (from, to) = resident.bytes;
        let (x, y) = (self.x(start), self.y(to));
        let (width, height) = (self.x(end) - x, self.y(from) - y);
        let class = resident.engine.name();
        let title = title(resident, names);
        put(
            self.page,
            format_args!(
                "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" \
                 height=\"{height:.2}\"><title>{title}</title></rect>\n"
            ),
        );
    }

    /// A line at the end of each ring region, for as long as it is in the table.
    fn regions(&mut self, core: &Core, times: &[Time]) {
        let tables = tables(core, times);
        for (i, (since, regions)) in tables.iter().enumerate() {
            let until = tables.get(i + 1).map_or(self.cycles, |(next, _)| *next);
            let (from, to) = (self.x(*since), self.x(until));
            for (number, region) in
                regions.iter().enumerate().filter(|(_, region)| !region.is_empty())
            {
                let Region { start, end } = *region;
                // There is nothing to see above the highest tensor.
                let y = self.y(end.min(self.top));
                put(
                    self.page,
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
    let name = |layer: &i32| match names.get(layer) {
        Some(name) => escaped(name),
        None => format!("layer {layer}"),
    };
    let made = match resident.engine {
        Engine::Pe | Engine::Vp => "result of",
        Engine::Dt => "copied for",
        Engine::Si => "received for",
        Engine::Lw => "weights for",
        _ => "loaded for",
    };
    let readers: Vec<String> = resident.readers.iter().map(name).collect();
    // Loaded data belongs to its readers, which may be later layers than the one that loads it.
    let is_brought = matches!(resident.engine, Engine::Ld | Engine::Lw | Engine::Si);
    let named = match is_brought && !readers.is_empty() {
        true => readers.join(", "),
        false => name(&resident.layer),
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

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(arguments);
}

const HEAD: &str = r##"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>buffers over time</title>
<style>
body { font: 14px sans-serif; margin: 1em } h2 { font-size: 15px; margin: 1em 0 0.3em }
div { overflow-x: auto; border: 1px solid #999 }
svg { display: block; width: calc(100% * var(--zoom, 1)); height: 320px; background: #fff }
rect { fill-opacity: 0.75; stroke: #222; stroke-width: 0.5; vector-effect: non-scaling-stroke }
rect:hover { fill-opacity: 1; stroke-width: 2 }
line { stroke: #000; stroke-width: 1.5; stroke-dasharray: 6 4; vector-effect: non-scaling-stroke }
.LD { fill: #4e79a7 } .LW { fill: #f28e2b } .PE { fill: #59a14f } .VP { fill: #edc948 }
.DT { fill: #b07aa1 } .SI { fill: #e15759 }

</style></head><body>
<h1>buffers over time</h1>
"##;

const KEY: &str = r##"<p><svg style="display:inline;width:1em;height:1em" viewBox="0 0 1 1"><rect class="LD" width="1" height="1"/></svg> loaded
<svg style="display:inline;width:1em;height:1em" viewBox="0 0 1 1"><rect class="PE" width="1" height="1"/></svg> made by PE
<svg style="display:inline;width:1em;height:1em" viewBox="0 0 1 1"><rect class="VP" width="1" height="1"/></svg> made by VP
<svg style="display:inline;width:1em;height:1em" viewBox="0 0 1 1"><rect class="DT" width="1" height="1"/></svg> copied
<svg style="display:inline;width:1em;height:1em" viewBox="0 0 1 1"><rect class="SI" width="1" height="1"/></svg> received
<svg style="display:inline;width:1em;height:1em" viewBox="0 0 1 1"><rect class="LW" width="1" height="1"/></svg> weights in WL0;
dashed: ends of ring regions</p>
<p><label>wider <input type="range" min="1" max="40" value="1"
oninput="document.body.style.setProperty('--zoom', this.value)"></label></p>
"##;

const TAIL: &str = "</body></html>\n";
