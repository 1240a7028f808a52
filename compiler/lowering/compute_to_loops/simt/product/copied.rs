//! Products of halves whose factors threads copy to shared memory asynchronously (`cp.async`), some blocks of summands
//! ahead, and multiply on tensor cores (`mma.m16n8k16`).
//!
//! Each block of summands is a stage of a ring in shared memory. In a stage, 16 bytes are a chunk; the chunks of a line
//! are permuted, so that the eight lines that `ldmatrix` reads at once lie in different banks. What is beyond a factor is
//! zero.
use super::{
    super::team::when,
    Emit, FRAGMENT, Infallible, Lanes, Range, SHARED_BYTES, Tiles, arith,
    shares::Item,
    window::{CHUNK, Window},
};
use crate::kernel::emit::first_result;
use irc_mlir::Value;
use irc_tl::DType;

/// Summands of a stage.
pub(super) const DEPTH: i64 = 32;

/// The most stages of a ring.
const MAX_STAGES: i64 = 4;

/// Bytes of the ring for each warp; the rest of a warp's shared memory is for its sums.
const RING_BYTES: i64 = SHARED_BYTES - super::FRAGMENT_BYTES;

/// Columns of the part of a tile that a warp computes at once.
const WARP_COLUMNS: i64 = super::FRAGMENT_COLUMNS;

/// A tile of the result, and how warps share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    rows: i64,
    columns: i64,
    /// The number of rows and columns of warps.
    down: i64,
    across: i64,
    stages: i64,
}

impl Shape {
    /// Tiles of so many rows and columns for a team of so many warps, if they fit.
    pub(super) fn of(rows: i64, columns: i64, warps: i64) -> Option<Self> {
        let across = (columns / WARP_COLUMNS).min(warps);
        let down = warps / across;
        let stages = (warps * RING_BYTES / Self::bytes(rows, columns)).min(MAX_STAGES);
        let own = (rows / down.max(1), columns / across);
        let sums = own.0 * own.1 / 32;
        let fits = down * across == warps
            && own.0 % 16 == 0
            && own.0 * down == rows
            && own.1 % WARP_COLUMNS == 0
            && sums <= MAX_SUMS
            && stages >= 2
            && [rows, columns].iter().all(|lines| lines * DEPTH % (CHUNK * 32 * warps) == 0);
        fits.then_some(Self { rows, columns, down, across, stages })
    }

    /// Rows and columns.
    pub(super) fn tile(self) -> [i64; 2] {
        [self.rows, self.columns]
    }

    /// Bytes of a stage.
    const fn bytes(rows: i64, columns: i64) -> i64 {
        (rows + columns) * DEPTH * 2
    }
}

/// The most sums of a thread.
const MAX_SUMS: i64 = 64;

/// A product of halves at regular places.
pub(super) struct Copied<'t, 'w, 'n, 'c, 'a> {
    pub(super) tiles: &'t Tiles<'w, 'n, 'c, 'a>,
    pub(super) shape: Shape,
    pub(super) half: DType,
    pub(super) windows: &'t [Window; 2],
}

/// One factor while a tile is computed.
struct Side<'t, 'c, 'a> {
    window: &'t Window,
    /// The address of the first element of the product's factor.
    address: Value<'c, 'a>,
    /// The first line of the tile.
    first: Value<'c, 'a>,
    /// The lines of a tile and of the factor.
    lines: i64,
    limit: i64,
    /// The first byte in a stage.
    start: i64,
}

impl<'c: 'a, 'a> Copied<'_, '_, '_, 'c, 'a> {
    /// One tile.
    pub(super) fn tile(&self, e: Emit<'c, 'a>, item: &Item<'_, 'c, 'a>) {
        let (tiles, place, range) = (self.tiles, &item.place, &item.range);
        let firsts = [place.row, place.column];
        let sides = [0, 1].map(|side| Side {
            window: &self.windows[side],
            address: tiles.address(e, place, &self.windows[side]),
            first: firsts[side],
            lines: if side == 0 { self.shape.rows } else { self.shape.columns },
            limit: tiles.count(1 + side),
            start: if side == 0 { 0 } else { self.shape.rows * DEPTH * 2 },
        });
        let ring = e.add(tiles.shared_address(e), tiles.team.shared);
        let stages = self.shape.stages;
        let blocks = self.blocks(e, range);
        let copy = |e: Emit<'c, 'a>, number: Value<'c, 'a>| {
            let there = e.compare(ULT, number, blocks);
            when(e, there, |e| {
                let stage = self.stage(e, ring, number);
                let summand = e.add(range.first, e.scale(number, DEPTH));
                sides.iter().for_each(|side| self.copy(e, side, stage, summand));
            });
            tiles.call(e, "irc_gpu_copies_commit", &[], &[]);
        };
        // The tile before may still be read.
        tiles.team.wait_in_block(e);
        (0..stages - 1).for_each(|number| copy(e, e.index(number)));
        let zero = e.float(0.0, e.f32(), Lanes::Scalar);
        let (down, across) =
            (self.shape.rows / self.shape.down, self.shape.columns / self.shape.across);
        let sums = vec![zero; (down * across / 32) as usize];
        let wait = format!("irc_gpu_copies_wait_{}", stages - 2);
        let bounds = (e.index(0), blocks, 1);
        let Ok(sums) = e.for_each::<Infallible>(bounds, &sums, |e, number, sums| {
            tiles.call(e, &wait, &[], &[]);
            tiles.team.wait_in_block(e);
            copy(e, e.offset(number, stages - 1));
            let stage = self.stage(e, ring, number);
            Ok(self.multiply(e, &sides, stage, sums))
        });
        tiles.call(e, "irc_gpu_copies_wait_0", &[], &[]);
        let wide = across / WARP_COLUMNS;
        tiles.finish(e, item, &sums, |e, thread, number| {
            let (row, column) = self.warp(e, thread);
            (e.offset(row, 16 * (number / wide)), e.offset(column, WARP_COLUMNS * (number % wide)))
        });
    }

    /// The number of blocks of summands.
    fn blocks(&self, e: Emit<'c, 'a>, range: &Range<'c, 'a>) -> Value<'c, 'a> {
        let count = e.binary(arith::SUBI, range.end, range.first);
        e.binary(arith::DIVUI, e.offset(count, DEPTH - 1), e.index(DEPTH))
    }

    /// The address of the stage of a block of summands.
    fn stage(&self, e: Emit<'c, 'a>, ring: Value<'c, 'a>, number: Value<'c, 'a>) -> Value<'c, 'a> {
        let stage = e.binary(arith::REMUI, number, e.index(self.shape.stages));
        e.add(ring, e.scale(stage, Shape::bytes(self.shape.rows, self.shape.columns)))
    }

    /// Starts to copy a block of a factor.
    fn copy(
        &self,
        e: Emit<'c, 'a>,
        side: &Side<'_, 'c, 'a>,
        stage: Value<'c, 'a>,
        summand: Value<'c, 'a>,
    ) {
        let (window, tiles) = (side.window, self.tiles);
        let chunks = side.lines * DEPTH / CHUNK;
        let along = window.is_along_summands();
        // Chunks of what is contiguous in memory.
        let row = if along { DEPTH / CHUNK } else { side.lines / CHUNK };
        let summands = tiles.summands();
        // Whether all rows are in the factor, and all of each.
        let (lines_fill, summands_fill) = (side.limit % side.lines == 0, summands % DEPTH == 0);
        let (has_all_rows, is_whole_row) =
            if along { (lines_fill, summands_fill) } else { (summands_fill, lines_fill) };
        for turn in 0..chunks / tiles.threads {
            let number = e.offset(tiles.team.thread, turn * tiles.threads);
            let (own, chunk) = (
                e.binary(arith::DIVUI, number, e.index(row)),
                e.binary(arith::REMUI, number, e.index(row)),
            );
            let moved = e.scale(chunk, CHUNK);
            // The index of the row in memory, and that of the chunk's first element in it, with their limits.
            let ((at, end), (first, limit)) = match along {
                true => ((e.add(side.first, own), side.limit), (e.add(summand, moved), summands)),
                false => ((e.add(summand, own), summands), (e.add(side.first, moved), side.limit)),
            };
            let index = irc_mlir::Type::index(e.context);
            let mut left = e.index(CHUNK);
            if !is_whole_row {
                let rest = e.binary(arith::SUBI, e.index(limit), first);
                left = e.min(e.max(rest, e.index(0)), left);
            }
            if !has_all_rows {
                let inside = e.compare(ULT, at, e.index(end));
                left = e.op(arith::SELECT, &[inside, left, e.index(0)], index);
            }
            let bytes = e.op(arith::INDEX_CAST, &[e.scale(left, 2)], e.int(32));
            let mut element = e.add(e.scale(at, window.stride()), first);
            if !(is_whole_row && has_all_rows) {
                // Nothing is read at an address of no bytes, which may be anywhere.
                let is_none = e.compare(0, left, e.index(0));
                element = e.op(arith::SELECT, &[is_none, e.index(0), element], index);
            }
            let from = e.add(side.address, e.scale(element, 2));
            let chunk = swizzled(e, along, own, chunk);
            let to = e.add(e.scale(own, row * CHUNK * 2), e.scale(chunk, CHUNK * 2));
            let to = e.add(e.offset(stage, side.start), to);
            tiles.call(e, "irc_gpu_copy", &[to, from, bytes], &[]);
        }
    }

    /// The first row and column of a warp in the tile.
    fn warp(&self, e: Emit<'c, 'a>, thread: Value<'c, 'a>) -> (Value<'c, 'a>, Value<'c, 'a>) {
        let warp = e.binary(arith::DIVUI, thread, e.index(32));
        let across = e.index(self.shape.across);
        let (row, column) =
            (e.binary(arith::DIVUI, warp, across), e.binary(arith::REMUI, warp, across));
        (
            e.scale(row, self.shape.rows / self.shape.down),
            e.scale(column, self.shape.columns / self.shape.across),
        )
    }

    /// Four matrices of eight lines and eight summands: two along the lines from `line` on and two along the summands
    /// from `summand` on. Those of the left factor are in the order of lines, the others in that of summands.
    fn matrices(
        &self,
        e: Emit<'c, 'a>,
        (side, is_left): (&Side<'_, 'c, 'a>, bool),
        stage: Value<'c, 'a>,
        (line, summand): (Value<'c, 'a>, i64),
    ) -> [Value<'c, 'a>; 4] {
        let along = side.window.is_along_summands();
        let lane = e.binary(arith::REMUI, self.tiles.team.thread, e.index(32));
        let matrix = e.binary(arith::DIVUI, lane, e.index(8));
        let own = e.binary(arith::REMUI, lane, e.index(8));
        let (first, second) = (
            e.binary(arith::REMUI, matrix, e.index(2)),
            e.binary(arith::DIVUI, matrix, e.index(2)),
        );
        let (x, y) = if is_left { (first, second) } else { (second, first) };
        let row = if along { DEPTH / CHUNK } else { side.lines / CHUNK };
        let (at, chunk) = match along {
            true => (e.add(e.add(line, own), e.scale(x, 8)), e.offset(y, summand / CHUNK)),
            false => {
                let chunk = e.binary(arith::DIVUI, line, e.index(CHUNK));
                (e.add(e.offset(own, summand), e.scale(y, 8)), e.add(chunk, x))
            }
        };
        let chunk = swizzled(e, along, at, chunk);
        let place = e.add(e.scale(at, row * CHUNK * 2), e.scale(chunk, CHUNK * 2));
        let address = e.add(e.offset(stage, side.start), place);
        let name = if along { "irc_gpu_matrices" } else { "irc_gpu_matrices_transposed" };
        let call = self.tiles.call(e, name, &[address], &[e.int(32); 4]);
        [0, 1, 2, 3].map(|index| match call.result(index) {
            Ok(result) => result.into(),
            Err(_) => first_result(call),
        })
    }

    /// Adds the products of a stage.
    fn multiply(
        &self,
        e: Emit<'c, 'a>,
        sides: &[Side<'_, 'c, 'a>; 2],
        stage: Value<'c, 'a>,
        sums: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let (row, column) = self.warp(e, self.tiles.team.thread);
        let (down, across) =
            (self.shape.rows / self.shape.down, self.shape.columns / self.shape.across);
        let fragments = across / WARP_COLUMNS;
        let mut sums = sums.to_vec();
        for summand in (0..DEPTH).step_by(16) {
            let right: Vec<_> = (0..across / 16)
                .map(|j| {
                    let line = e.offset(column, 16 * j);
                    self.matrices(e, (&sides[1], false), stage, (line, summand))
                })
                .collect();
            for i in 0..down / 16 {
                let line = e.offset(row, 16 * i);
                let left = self.matrices(e, (&sides[0], true), stage, (line, summand));
                for j in 0..across / 8 {
                    let [low, high] =
                        [0, 1].map(|part| right[(j / 2) as usize][(j % 2 * 2 + part) as usize]);
                    let fragment = i * fragments + j / (WARP_COLUMNS / 8);
                    let start =
                        fragment as usize * FRAGMENT + (j % (WARP_COLUMNS / 8)) as usize * 4;
                    self.tiles.multiply_and_add(
                        e,
                        self.half,
                        (&left, &[low, high]),
                        &mut sums[start..start + 4],
                    );
                }
            }
        }
        sums
    }
}

/// The place of a chunk in its row of a stage.
fn swizzled<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    along: bool,
    row: Value<'c, 'a>,
    chunk: Value<'c, 'a>,
) -> Value<'c, 'a> {
    // Rows of 64 bytes: two are in the banks of 128 bytes; longer rows have eight chunks or more.
    let mask = match along {
        true => {
            let pair = e.binary(arith::DIVUI, row, e.index(2));
            e.binary(arith::REMUI, pair, e.index(4))
        }
        false => e.binary(arith::REMUI, row, e.index(8)),
    };
    e.binary(arith::XORI, chunk, mask)
}

/// `arith.cmpi` predicate.
const ULT: i64 = 6;
