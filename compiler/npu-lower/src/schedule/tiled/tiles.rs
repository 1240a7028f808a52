//! The tiles of workloads: those of their programs.

use super::{ROWS, Read, WORD, Writer, engine, lengths, units};
use irc_diag::Diagnostic;
use irc_gemini_format::schedule::{CutMode, Extent, LayerKind, Limits, Tile, Tiles, Workload};
use irc_json::Number;
use irc_npu::layout::WL0_UNITS;

/// A result, and what is read for it of the first operand and of the second.
type Part = (Extent, Extent, Option<Extent>);

impl Writer<'_> {
    /// Padding at top, bottom, left and right of what a workload reads.
    pub(super) fn padding(&self, workload: &Workload, inputs: &[Read]) -> [i64; 4] {
        let window = self.windows.get(workload.layer_name.as_str());
        let (Some(window), Some(read)) = (window, inputs.first()) else { return [0; 4] };
        let along = |axis: usize| {
            let before = window.padding[axis];
            let steps = workload.extent.axis(axis + 2).1 * window.stride[axis];
            let last = steps + window.kernel[axis] - 1 - before;
            [before, (last - read.input.axis(axis + 2).1).max(0)]
        };
        let ([top, bottom], [left, right]) = (along(0), along(1));
        [top, bottom, left, right]
    }

    /// The tiles of a workload: as many output channels as fit in half of WL0, and images one by one on the vector
    /// processor.
    pub(super) fn tiles(&self, index: usize, padding: [i64; 4]) -> Result<Tiles, Box<Diagnostic>> {
        let workload = &self.workloads[index];
        let reads = &self.reads[index].0;
        let read = |at: usize| reads.get(at).map(|read| read.input);
        let whole = (workload.extent, read(0).unwrap_or(workload.extent), read(1));
        let parts = match engine(workload) {
            LayerKind::Pe => self.channels(index, whole)?,
            LayerKind::Vp => {
                let (first, last) = workload.extent.axis(0);
                let image = |of: Extent, image| along(of, 0, (image, image));
                let parts = (first..=last).map(|at| {
                    (image(whole.0, at), image(whole.1, at), whole.2.map(|of| image(of, at)))
                });
                parts.collect()
            }
            _ => vec![whole],
        };
        let time = Number::new(workload.time as f64 / parts.len().max(1) as f64);
        let window = self.windows.get(workload.layer_name.as_str());
        let [rows, columns] = window.map_or([1; 2], |window| window.kernel);
        let is_pe = engine(workload) == LayerKind::Pe;
        let tile = |(number, (made, input, second)): (u32, Part)| {
            let tile = Tile {
                act_mini_tile: is_pe.then_some([1, 1, rows, columns]),
                ci_cut_num: is_pe.then_some(1),
                cut_mode: is_pe.then_some(CutMode::Kh),
                ifmap_lower: input.lower,
                ifmap_lower2: second.map(|second| second.lower),
                ifmap_upper: input.upper,
                ifmap_upper2: second.map(|second| second.upper),
                layer_name: Some(workload.layer_name.clone()),
                loop_order: is_pe.then(|| "KNHW".to_owned()),
                mtc0_mtk0: is_pe.then_some([1, 1]),
                ofmap_lower: made.lower,
                ofmap_upper: made.upper,
                out_mini_tile: is_pe.then_some([1, WORD, 1, 1]),
                single_tile_time_pred: time.clone(),
                tile_padding_tblr: padding,
                extra: Default::default(),
            };
            (number, tile)
        };
        let mut tiles: Vec<(u32, Tile)> = (0..).zip(parts).map(tile).collect();
        tiles.sort_by_cached_key(|(number, _)| number.to_string());
        Ok(Tiles { tiles, extra: Default::default() })
    }

    /// The tiles of a convolution: results and what they read, by output channels.
    fn channels(
        &self,
        index: usize,
        (made, input, second): Part,
    ) -> Result<Vec<Part>, Box<Diagnostic>> {
        let workload = &self.workloads[index];
        let size = self.weight_size(workload);
        let (block, limit) = (units(ROWS, size), Limits::default().wl0_units);
        if 2 * block > limit {
            let message = format!(
                "two tiles of {ROWS} output channels of workload {} need {} units of WL0, which has {limit}",
                workload.workload_id,
                2 * block
            );
            let path = self.schedule.workload_path((0, index));
            return Err(Box::new(Diagnostic::error("layer-weights", message).path(path)));
        }
        let step = (WL0_UNITS / 2 / block).max(1) * ROWS;
        let window = self.windows.get(workload.layer_name.as_str());
        let groups = window.map_or(1, |window| window.groups).max(1);
        let count = lengths(&made)[1];
        let (outputs, inputs) = ((count / groups).max(1), size[0]);
        // Channels are read and written in words: a tile has whole groups, or whole words.
        let (each, step) = match (groups, outputs % WORD, inputs % WORD) {
            (1, ..) => (count, step),
            (_, 0, 0) => (outputs, step),
            _ => (WORD, WORD),
        };
        let starts = (0..count).step_by(each as usize).flat_map(|first| {
            let end = (first + each).min(count);
            (first..end).step_by(step as usize).map(move |from| (from, (from + step).min(end) - 1))
        });
        let part = |(from, to): (i64, i64)| {
            let read = match (groups, second) {
                (1, _) | (_, Some(_)) => input,
                _ => {
                    let first = input.axis(1).0;
                    let (low, high) = (from / outputs * inputs, (to / outputs + 1) * inputs - 1);
                    along(input, 1, (first + low, (first + high).min(input.axis(1).1)))
                }
            };
            let low = made.axis(1).0;
            (along(made, 1, (low + from, low + to)), read, second)
        };
        Ok(starts.map(part).collect())
    }
}

/// A box with another range along an axis.
fn along(of: Extent, axis: usize, (from, to): (i64, i64)) -> Extent {
    let corner = |all: [i64; 4], at: i64| {
        let mut all = all;
        all[axis] = at;
        all
    };
    let (lower, upper) =
        ([0, 1, 2, 3].map(|axis| of.axis(axis).0), [0, 1, 2, 3].map(|axis| of.axis(axis).1));
    Extent::new(corner(lower, from), corner(upper, to))
}
