//! The segments: lower bounds of their cycles, and those that they take.

use super::{Page, escaped, put};
use crate::segments::SegmentTimes;

/// The number of segments that are shown: those that take most; the others are one row.
const MAX_ROWS: usize = 200;

/// Width of a bar, in its own units.
const WIDTH: f64 = 420.0;

pub fn write(text: &mut String, page: &Page<'_>) {
    let rows = rows(&page.table.segments);
    let most = |row: &SegmentTimes| row.simulated.max(row.bound().0);
    let longest = rows.iter().map(most).max().unwrap_or(0).max(1);
    text.push_str(HEAD);
    for row in &rows {
        let bar = |cycles: u64| cycles as f64 / longest as f64 * WIDTH;
        let (bound, by) = row.bound();
        let SegmentTimes { compute, links, dram, simulated, .. } = row;
        put(
            text,
            format_args!(
                "<tr><td>{}</td><td>{compute}</td><td>{links}</td><td>{dram}</td><td>{simulated}</td><td>{by}</td>\
                 <td>{:.2}</td><td><svg viewBox=\"0 0 {WIDTH} 26\">",
                escaped(&row.name),
                *simulated as f64 / bound.max(1) as f64,
            ),
        );
        let bars = [
            ("simulated", *simulated, 0, 26),
            ("compute", *compute, 2, 6),
            ("noc", *links, 10, 6),
            ("dram", *dram, 18, 6),
        ];
        for (class, cycles, y, height) in bars {
            let width = bar(cycles);
            put(
                text,
                format_args!(
                    "<rect class=\"{class}\" y=\"{y}\" width=\"{width:.1}\" height=\"{height}\"/>"
                ),
            );
        }
        text.push_str("</svg></td></tr>\n");
    }
    text.push_str("</table>\n");
}

/// The rows, in the order of segments.
fn rows(all: &[SegmentTimes]) -> Vec<SegmentTimes> {
    if all.len() <= MAX_ROWS {
        return all.to_vec();
    }
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(all[*index].simulated));
    let (shown, others) = order.split_at_mut(MAX_ROWS - 1);
    shown.sort_unstable();
    let mut rest =
        SegmentTimes { name: format!("{} others", others.len()), ..SegmentTimes::default() };
    for index in others {
        let of = &all[*index];
        rest.compute += of.compute;
        rest.links += of.links;
        rest.dram += of.dram;
        rest.dram_bytes += of.dram_bytes;
        rest.link_bytes += of.link_bytes;
        rest.simulated += of.simulated;
    }
    shown.iter().map(|index| all[*index].clone()).chain([rest]).collect()
}

const HEAD: &str = r##"<h2>roofline of segments</h2>
<p>Cycles: lower bounds by <span class="key" style="background:#59a14f"></span> computing,
<span class="key" style="background:#e15759"></span> links, <span class="key" style="background:#4e79a7"></span> DRAM, before
<span class="key" style="background:#bab0ac"></span> the cycles by which the program takes longer with the segment.</p>
<table id="segments"><tr><th>segment</th><th>compute</th><th>NoC</th><th>DRAM</th><th>simulated</th><th>bound</th><th>simulated / bound</th><th></th></tr>
"##;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_segments_are_few_rows() {
        let segment = |at: u64| SegmentTimes { simulated: at, ..SegmentTimes::default() };
        let all: Vec<SegmentTimes> = (0..1000).map(segment).collect();
        let rows = rows(&all);
        assert_eq!(rows.len(), MAX_ROWS);
        assert_eq!(rows[0].simulated, 801);
        assert_eq!(rows.iter().map(|row| row.simulated).sum::<u64>(), 999 * 500);
        assert_eq!(rows[MAX_ROWS - 1].name, "801 others");
    }
}
