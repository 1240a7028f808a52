//! A timing as a self-contained page: what limits each segment, the traffic of the mesh, the engines and the
//! buffers of each core over time.
//!
//! The page has no reference to another file. Its size is bounded: there are at most [`MAX_MARKS`] shapes of each
//! kind. Beyond that, engines are shown as their share of busy cycles in intervals, and of each buffer only the tensors
//! that occupy most. `<script id="data">` has the same numbers as JSON.

mod buffers;
mod data;
mod engines;
mod mesh;
mod segments;

use irc_diag::counted;
use std::collections::BTreeMap;
use std::fmt::Write;

use irc_npu::Program;

use crate::cycles::Timing;
use crate::noc::Mesh;
use crate::segments::SegmentTable;

/// Names of layers, by their number in instructions.
pub type LayerNames = BTreeMap<i32, String>;

/// Width of a chart over time, in its own units.
const WIDTH: u64 = 1600;

/// The number of shapes of engines, and of tensors, that a page has at most.
pub const MAX_MARKS: usize = 20_000;

/// The number of cores whose charts are open when the page is loaded.
const OPEN_CORES: usize = 4;

/// What a page shows.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its timing.
    pub timing: &'a Timing,
    /// Names of its layers.
    pub names: &'a LayerNames,
    /// Its segments, and its traffic.
    pub table: &'a SegmentTable,
    /// The mesh; without one, its traffic is not shown.
    pub mesh: Option<&'a Mesh>,
}

/// The text of a page.
pub fn write(page: &Page<'_>) -> String {
    let mut text = String::from(HEAD);
    let instructions: usize = page.program.cores.iter().map(|core| core.code.len()).sum();
    put(
        &mut text,
        format_args!(
            "<p id=\"summary\">{}, {}, {}, {} from and to DRAM</p>\n",
            counted(page.timing.cycles, "cycle"),
            counted(page.program.cores.len(), "core"),
            counted(instructions, "instruction"),
            counted(page.table.carried.dram, "byte")
        ),
    );
    segments::write(&mut text, page);
    if let Some(mesh) = page.mesh {
        mesh::write(&mut text, page, mesh);
    }
    engines::write(&mut text, page);
    buffers::write(&mut text, page);
    data::write(&mut text, page);
    text + TAIL
}

/// The place of a cycle on a chart over time.
fn x(cycle: u64, cycles: u64) -> f64 {
    cycle as f64 / cycles.max(1) as f64 * WIDTH as f64
}

/// Begins the charts of a core, which can be opened.
fn begin_core(text: &mut String, core: u32, index: usize) {
    let open = if index < OPEN_CORES { " open" } else { "" };
    put(text, format_args!("<details{open}><summary>core {core}</summary>\n"));
}

fn name(names: &LayerNames, layer: i32) -> String {
    match names.get(&layer) {
        Some(name) => escaped(name),
        None => format!("layer {layer}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(arguments);
}

const HEAD: &str = r##"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>simulation of an NPU program</title>
<style>
body { font: 14px sans-serif; margin: 1em } h2 { font-size: 17px; margin: 1.2em 0 0.3em } h3 { font-size: 14px; margin: 0.6em 0 0.2em }
.chart { overflow-x: auto; border: 1px solid #999 } .chart svg { display: block; width: calc(100% * var(--zoom, 1)); background: #fff }
.buffer svg { height: 240px } details { margin: 0.2em 0 } summary { cursor: pointer }
.lanes { display: flex } .lanes .labels { font: 9px/12px monospace; width: 2.5em } .lanes .chart { flex: 1 } .lanes svg { min-width: 100% }
rect, path { fill-opacity: 0.75; vector-effect: non-scaling-stroke } .buffer rect { stroke: #222; stroke-width: 0.5 }
rect:hover { fill-opacity: 1 } .buffer line { stroke: #000; stroke-width: 1.5; stroke-dasharray: 6 4; vector-effect: non-scaling-stroke }
.LD { fill: #4e79a7 } .LW { fill: #f28e2b } .PE { fill: #59a14f } .VP { fill: #edc948 }
.DT { fill: #b07aa1 } .SI { fill: #e15759 } .SO { fill: #ff9da7 } .ST { fill: #76b7b2 } .CT { fill: #9c755f }
table { border-collapse: collapse } td, th { padding: 1px 8px; text-align: right; border-bottom: 1px solid #ddd } td:first-child { text-align: left }
td svg { display: block; width: 420px; height: 26px } .compute { fill: #59a14f } .noc { fill: #e15759 } .dram { fill: #4e79a7 } .simulated { fill: #bab0ac }
.mesh { max-width: 900px; width: 100% } .mesh text { font: 10px sans-serif; text-anchor: middle } .key { display: inline-block; width: 1em; height: 1em; vertical-align: middle }
</style></head><body>
<h1>simulation of an NPU program</h1>
<p><label>wider <input type="range" min="1" max="40" value="1"
oninput="document.body.style.setProperty('--zoom', this.value)"></label></p>
"##;

const TAIL: &str = "</body></html>\n";
