//! How the lanes of a kernel cover a tile, and which elements they miss or write in excess.
//!
//! These kernels flatten a tile: each lane processes `step` elements of it, then the next `step` after
//! those of all other lanes. A lane whose first element is outside the result does nothing; one whose
//! first is inside stores all of its elements.

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use super::memory::Memory;
use crate::model::{Lane, OpKind, Tensor};
use crate::plan::PlanOp;
use crate::plan::tiling::four;

/// Bytes of the widest access.
const VECTOR_BYTES: i64 = 16;

/// How lanes cover the tiles of a result.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    /// Number of elements from one lane to the next.
    pub step: i64,
    /// Number of elements that a lane stores.
    pub stored: i64,
    /// Number of elements that a lane loads of each operand.
    pub loaded: Vec<i64>,
    /// The dimension of four along which lanes process more than one.
    pub dim: usize,
    /// Extent of a tile along that dimension.
    pub tile: i64,
    /// Extent of a tile along the previous dimension; one if `dim` is not the last.
    pub height: i64,
    /// Extent of the result along the previous dimension; one if `dim` is not the last.
    pub lines: i64,
    /// Extent of the result along the dimension.
    pub extent: i64,
    /// Whether a row of tiles is contiguous, and operands are laid out like the result: then a
    /// lane that crosses the end of a row computes elements of the next row.
    pub is_linear: bool,
}

impl Lanes {
    /// The lanes of an op that covers two-dimensional tiles element by element.
    pub fn of(plan_op: &PlanOp) -> Option<Self> {
        let op = &plan_op.op;
        let &[height, width] = plan_op.config.ints("Tile")? else { return None };
        let result = op.writes.first()?;
        let (shape, strides) = (four(&result.shape), four(&result.strides));
        let reads = op.reads.iter();
        let is_sent = op.kind == OpKind::Send && plan_op.config.text("ChannelType") == Some("Sm");
        if !op.kind.is_elementwise() && !is_sent {
            return None;
        }
        let lane = op.kind.row().lane;
        let is_pair = lane != Lane::Vectors;
        let mut narrow = [result].into_iter().chain(reads.clone());
        let is_column = !is_pair && width == 1 && narrow.all(|t| four(&t.strides)[3] == 1);
        let (dim, tile) = if is_column { (2, height) } else { (3, width) };
        let (extent, size) = (shape[dim], result.dtype.bytes() as i64);
        let inner = |tensor: &Tensor| four(&tensor.shape)[dim];
        let (step, stored, loaded) = match lane {
            Lane::Pairs if inner(&op.reads[0]) == 1 => (2, 1, vec![1]),
            Lane::Pairs | Lane::CoupledPairs => (2, 2, vec![2; op.reads.len()]),
            Lane::Vectors => {
                let own = vector(extent.min(tile) * size, size);
                let whole = reads.clone().map(inner).filter(|&extent| extent > 1);
                let step = whole.map(|extent| vector(extent * size, size)).fold(own, i64::min);
                let load = |tensor| if inner(tensor) == 1 { 1 } else { step };
                (step, step, reads.clone().map(load).collect())
            }
        };
        let is_alike = |t: &Tensor| four(&t.shape) == shape && four(&t.strides) == strides;
        let is_linear = tile == extent
            && strides[dim] == extent
            && stored == step
            && reads.clone().all(is_alike);
        let (height, lines) = if is_column { (1, 1) } else { (height, shape[2]) };
        Some(Self { step, stored, loaded, dim, tile, height, lines, extent, is_linear })
    }

    /// Number of tiles along the dimension.
    pub fn tiles(&self) -> i64 {
        (self.extent - 1) / self.tile + 1
    }

    /// The position in row `row` of a tile of the first lane that starts in it.
    fn first(&self, row: i64) -> i64 {
        // Lanes are numbered through the whole tile, row by row.
        (-((row % self.step) * (self.tile % self.step))).rem_euclid(self.step)
    }

    /// Rows of a tile that differ in the position of their first lane.
    fn distinct_rows(&self) -> std::ops::Range<i64> {
        0..self.height.min(self.lines).min(self.step)
    }

    /// A row, and the position in it of an element that no lane stores.
    fn missed(&self) -> Option<(i64, i64)> {
        if self.is_linear {
            return None;
        }
        let width = self.tile.min(self.extent);
        let row = self.distinct_rows().find(|&row| self.first(row) > 0).map(|row| (row, 0));
        row.or_else(|| (self.stored < self.step && width > 1).then_some((0, self.stored)))
    }

    /// Number of elements that a lane stores past the end of a row, or of the last row of a tile if
    /// rows are contiguous; no element is [missed](Self::missed).
    fn past(&self) -> i64 {
        let last = match self.is_linear {
            true => ((self.lines - 1) % self.height + 1) % self.step * (self.tile % self.step),
            false => self.extent - (self.tiles() - 1) * self.tile,
        };
        if self.stored < self.step { 0 } else { (-last).rem_euclid(self.step) }
    }
}

/// Number of elements of the widest access that divides a number of bytes.
pub(super) fn vector(bytes: i64, size: i64) -> i64 {
    ((bytes & bytes.wrapping_neg()).clamp(1, VECTOR_BYTES) / size).max(1)
}

/// Checks that lanes store each element of the result, and nothing else; returns whether the tiles
/// match the lanes at all.
pub(super) fn check(plan_op: &PlanOp, memory: &Memory, at: &At<'_>, sink: &mut Sink) -> bool {
    let Some(lanes) = Lanes::of(plan_op) else { return true };
    let kind = plan_op.op.kind;
    let tile_at = at.key("Config");
    let tile_at = tile_at.key("Tile").to_string();
    if let Some((row, column)) = lanes.missed() {
        let message = format!(
            "lanes take {} elements from tiles {} wide: none takes element {column} of row {row}",
            lanes.step, lanes.tile
        );
        let diagnostic = Diagnostic::error("plan-tile-width", message)
            .path(tile_at)
            .with_note(format!("`{kind}` counts through the whole tile, row after row"));
        sink.push(diagnostic.help(format!("make the width a multiple of {}", lanes.step)));
        return false;
    }
    if kind.row().lane == Lane::CoupledPairs && lanes.tile % 2 != 0 && lanes.tiles() > 1 {
        let message = format!("tiles of width {} split the pairs that are rotated", lanes.tile);
        let diagnostic = Diagnostic::error("plan-tile-width", message).path(tile_at);
        sink.push(diagnostic.help("make the width even"));
        return false;
    }
    let past = lanes.past();
    if past > 0 {
        sink.push(overrun(plan_op, &lanes, past, memory, at));
    }
    true
}

/// Lanes store past the end of rows: an error if other data is there, otherwise a warning.
fn overrun(plan_op: &PlanOp, lanes: &Lanes, past: i64, memory: &Memory, at: &At<'_>) -> Diagnostic {
    let output = &plan_op.op.writes[0];
    let message = format!(
        "lanes store {} elements at a time, {past} past the end of rows of {}",
        lanes.step, lanes.extent
    );
    let reads = plan_op.op.reads.iter();
    let is_alike = |t: &Tensor| t.shape == output.shape && t.strides == output.strides;
    let victim = match reads.clone().all(is_alike) {
        true => memory.behind(output, lanes.dim, past),
        false => memory.behind_rows(output, lanes.dim, past),
    };
    let writes = at.key("WriteTensors");
    let path = writes.index(0).key("Shape").to_string();
    let help = format!("choose a tile whose last part is a multiple of {}", lanes.step);
    match victim {
        Some(victim) => Diagnostic::error("plan-fill-overrun", message)
            .with_note(format!("{victim} is there"))
            .path(path)
            .help(help),
        None => Diagnostic::warning("plan-fill-overrun", message)
            .with_note("no other data of the plan is there")
            .path(path),
    }
}
