//! The traffic of the links of a mesh, and how busy its cores are.

use std::collections::BTreeMap;

use irc_npu::Engine;

use super::{Page, put};
use crate::noc::{Link, Mesh};

/// Distance of neighbours, in units of the picture.
const STEP: f64 = 64.0;
/// Side of a core.
const SIDE: f64 = 34.0;

pub fn write(text: &mut String, page: &Page<'_>, mesh: &Mesh) {
    let width = mesh.xlen + 2;
    let busy = busy(page);
    let all = page.program.cores.iter().map(|core| core.id / width);
    let rows = all.chain(mesh.ports.iter().map(|(_, y)| *y)).max().unwrap_or(0) + 1;
    let links = &page.table.carried.links;
    let most = links.values().copied().max().unwrap_or(0);
    put(
        text,
        format_args!(
            "<h2>mesh</h2>\n<p>Bytes over each link, at most {most}, from blue to red; cores with their share of busy \
             cycles of PE and VP; DRAM ports at the sides.</p>\n<svg id=\"mesh\" class=\"mesh\" viewBox=\"0 0 {} {}\">\n",
            f64::from(width) * STEP,
            f64::from(rows) * STEP,
        ),
    );
    let middle = |at: u32| (f64::from(at) + 0.5) * STEP;
    for (link, bytes) in links {
        draw(text, link, *bytes, most);
    }
    for &(x, y) in &mesh.ports {
        let (x, y) = (middle(x), middle(y));
        put(text, format_args!("<text x=\"{x}\" y=\"{:.1}\">DRAM</text>\n", y + 3.0));
    }
    for core in &page.program.cores {
        let (x, y) = (middle(core.id % width), middle(core.id / width));
        let share = busy.get(&core.id).copied().unwrap_or(0) as f64;
        let share = share / page.timing.cycles.max(1) as f64;
        let (left, top, percent) = (x - SIDE / 2.0, y - SIDE / 2.0, share * 100.0);
        put(
            text,
            format_args!(
                "<rect class=\"PE\" style=\"fill-opacity:{:.2}\" stroke=\"#333\" x=\"{left}\" y=\"{top}\" width=\"{SIDE}\" \
                 height=\"{SIDE}\"><title>core {}: {percent:.1} % busy</title></rect>\
                 <text x=\"{x}\" y=\"{:.1}\">{}</text><text x=\"{x}\" y=\"{:.1}\">{percent:.0} %</text>\n",
                0.1 + 0.8 * share.min(1.0),
                core.id,
                y - 2.0,
                core.id,
                y + 11.0,
            ),
        );
    }
    text.push_str("</svg>\n");
}

/// Busy cycles of PE and VP of each core, of overlapping ones the larger.
fn busy(page: &Page<'_>) -> BTreeMap<u32, u64> {
    let mut busy = BTreeMap::new();
    for (core, times) in page.program.cores.iter().zip(&page.timing.times) {
        let mut own = [0_u64; 2];
        for (instruction, time) in core.code.iter().zip(times) {
            let engine = instruction.op.engine();
            if let Some(at) = [Engine::Pe, Engine::Vp].iter().position(|one| *one == engine) {
                own[at] += time.end - time.start;
            }
        }
        busy.insert(core.id, own[0] + own[1]);
    }
    busy
}

/// A link as a line beside that of the opposite direction.
fn draw(text: &mut String, link: &Link, bytes: u64, most: u64) {
    let ((x0, y0), (x1, y1)) = *link;
    let share = bytes as f64 / most.max(1) as f64;
    let hue = (220.0 * (1.0 - share)).round();
    let middle = |at: u32| (f64::from(at) + 0.5) * STEP;
    let (dx, dy) = (f64::from(x1) - f64::from(x0), f64::from(y1) - f64::from(y0));
    let (gap, aside) = (SIDE / 2.0, 5.0);
    let (from_x, from_y) = (middle(x0) + dx * gap - dy * aside, middle(y0) + dy * gap + dx * aside);
    let (to_x, to_y) = (middle(x1) - dx * gap - dy * aside, middle(y1) - dy * gap + dx * aside);
    put(
        text,
        format_args!(
            "<line x1=\"{from_x:.1}\" y1=\"{from_y:.1}\" x2=\"{to_x:.1}\" y2=\"{to_y:.1}\" stroke=\"hsl({hue} 80% 45%)\" \
             stroke-width=\"{:.1}\"><title>({x0}, {y0}) to ({x1}, {y1}): {bytes} bytes</title></line>\n",
            1.5 + 6.0 * share,
        ),
    );
}
