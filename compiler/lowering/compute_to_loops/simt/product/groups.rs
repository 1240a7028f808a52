//! Products of halves by groups of four warps (`wgmma`), whose factors one warp copies to shared memory by tensor maps
//! (`cp.async.bulk.tensor`).
//!
//! A block has two groups of warps that multiply, 64 rows of a tile each, and one warp after them that copies. Each block
//! of 64 summands is a stage of a ring in shared memory. A stage has two barriers: `full`, which the copies of the stage
//! complete, and `empty`, at which the warps that multiply arrive once they have read it. A row of a stage is 128 bytes,
//! of which chunks of 16 are permuted, as the hardware defines it: neighbouring summands of a line, or 64 neighbouring lines
//! of a summand. What is beyond a factor is zero.
//!
//! Tensor maps are written by the kernel itself, as the addresses of operands are known only there.
use super::{
    super::team::when, Device, Emit, FRAGMENT_BYTES, FRAGMENT_COLUMNS, Infallible, Lanes, Place,
    Range, Schedule, Tiles, ULT, arith, extent, shares::Item, window::Window,
};
use crate::kernel::emit::first_result;
use irc_mlir::{OperationLike, Value};
use irc_tl::{Compute, DType};

/// Rows of a tile, and those of a group of warps.
const ROWS: i64 = 128;
const GROUP_ROWS: i64 = 64;

/// Summands of a stage.
pub(super) const DEPTH: i64 = 64;

/// Threads that multiply; a warp that copies follows.
const MULTIPLIERS: i64 = 256;

/// Threads of a block: those that multiply, and the warp that copies.
pub const THREADS: i64 = MULTIPLIERS + 32;

/// Bytes of all stages, of the fragments after them, of barriers, and of tensor maps.
const RING_BYTES: i64 = 192 << 10;
const FRAGMENTS_BYTES: i64 = MULTIPLIERS / 32 * FRAGMENT_BYTES;
const BARRIERS_BYTES: i64 = 128;
const MAP_BYTES: i64 = 128;

/// Bytes of shared memory of a block.
pub const SHARED_BYTES: i64 = RING_BYTES + FRAGMENTS_BYTES + BARRIERS_BYTES + 2 * MAP_BYTES;

/// Bytes of a row of a stage.
const ROW_BYTES: i64 = 128;

/// Bytes of 64 rows of a stage.
const BOX_BYTES: i64 = 64 * ROW_BYTES;

/// The most loops that number products, besides the two dimensions of a factor.
const MAX_OUTER: usize = 3;

/// A tile: 128 rows and so many columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    columns: i64,
}

impl Shape {
    /// The tiles of a device for a product with factors at regular places.
    pub(super) fn all(device: &Device, windows: &[Window; 2]) -> Vec<Self> {
        let fits = device.is_grid
            && device.capability == 90
            && device.threads >= THREADS
            && windows.iter().all(|window| window.outer.len() <= MAX_OUTER);
        if fits { [256, 128].map(|columns| Self { columns }).into() } else { vec![] }
    }

    /// Rows and columns.
    pub(super) fn tile(self) -> [i64; 2] {
        [ROWS, self.columns]
    }

    fn stages(self) -> i64 {
        RING_BYTES / self.bytes()
    }

    /// Bytes of a stage.
    fn bytes(self) -> i64 {
        (ROWS + self.columns) * ROW_BYTES
    }
}

/// A product of halves at regular places.
pub(super) struct Grouped<'t, 'w, 'n, 'c, 'a> {
    pub(super) tiles: &'t Tiles<'w, 'n, 'c, 'a>,
    pub(super) shape: Shape,
    pub(super) half: DType,
    pub(super) windows: &'t [Window; 2],
}

impl<'c: 'a, 'a> Grouped<'_, '_, '_, 'c, 'a> {
    /// All tiles, by all threads of the blocks.
    pub(super) fn emit(&self, e: Emit<'c, 'a>, schedule: &Schedule) {
        let tiles = self.tiles;
        let thread = tiles.team.thread;
        let barriers = e.offset(tiles.shared_address(e), RING_BYTES + FRAGMENTS_BYTES);
        let on_first = |e: Emit<'c, 'a>, body: &dyn Fn(Emit<'c, 'a>)| {
            when(e, e.compare(0, thread, e.index(0)), body);
        };
        let each = |e: Emit<'c, 'a>, body: &dyn Fn(Emit<'c, 'a>, Value<'c, 'a>, i64)| {
            for number in 0..2 * self.shape.stages() {
                // A copy for `full`; each warp that multiplies for `empty`.
                let count = if number < self.shape.stages() { 1 } else { MULTIPLIERS / 32 };
                body(e, e.offset(barriers, 8 * number), count);
            }
        };
        on_first(e, &|e| {
            each(e, &|e, barrier, count| {
                let count = e.integer(count, 32, Lanes::Scalar);
                tiles.call(e, "irc_gpu_phases_init", &[barrier, count], &[]);
            });
            tiles.call(e, "irc_gpu_phases_ready", &[], &[]);
        });
        tiles.team.wait_in_block(e);
        let multiply = |e: Emit<'c, 'a>| {
            tiles.each(e, schedule, &[e.index(0)], |e, item, number| {
                vec![self.multiply(e, barriers, item, number[0])]
            });
            Ok::<_, Infallible>(vec![])
        };
        let copy = |e: Emit<'c, 'a>| {
            let maps = self.maps(e);
            let copies = e.compare(0, thread, e.index(MULTIPLIERS));
            when(e, copies, |e| {
                tiles.each(e, schedule, &[e.index(0)], |e, item, number| {
                    vec![self.copy(e, (barriers, maps), (&item.place, &item.range), number[0])]
                });
            });
            Ok(vec![])
        };
        let multiplies = e.compare(ULT, thread, e.index(MULTIPLIERS));
        let Ok(_) = e.if_else(multiplies, &[], multiply, copy);
        tiles.team.wait_in_block(e);
        on_first(e, &|e| {
            each(e, &|e, barrier, _| {
                tiles.call(e, "irc_gpu_phases_end", &[barrier], &[]);
            });
        });
    }

    /// The tensor maps of the factors, which the warp that copies writes; their addresses in global memory.
    fn maps(&self, e: Emit<'c, 'a>) -> [Value<'c, 'a>; 2] {
        let tiles = self.tiles;
        let compute = &tiles.writer.nest.compute;
        let shared =
            e.offset(tiles.shared_address(e), RING_BYTES + FRAGMENTS_BYTES + BARRIERS_BYTES);
        let index = irc_mlir::Type::index(e.context);
        let all = first_result(tiles.call(e, "irc_gpu_maps", &[], &[index]));
        let number = |value: i64| e.integer(value, 32, Lanes::Scalar);
        [0, 1].map(|side| {
            let window = &self.windows[side];
            let (shared, global) =
                (e.offset(shared, side as i64 * MAP_BYTES), e.offset(all, side as i64 * MAP_BYTES));
            let start = e.offset(tiles.operand_address(e, window.operand), window.start * 2);
            // PTX's numbers of the types.
            let ty = number(if self.half == DType::F16 { 6 } else { 10 });
            let mut operands = vec![shared, global, start, ty];
            let (extents, strides) = self.extents(compute, side);
            operands.extend(extents.map(number));
            operands.extend(strides.map(|stride| e.index(stride)));
            operands.push(number(self.lines(side).min(self.rows(side))));
            tiles.call(e, "irc_gpu_map", &operands, &[]);
            global
        })
    }

    /// The extents of the dimensions of a factor, innermost first, and the bytes between elements of all but the first.
    fn extents(&self, compute: &Compute, side: usize) -> ([i64; 5], [i64; 4]) {
        let window = &self.windows[side];
        let (lines, summands) = (self.tiles.count(1 + side), self.tiles.summands());
        let mut extents = [1; 5];
        // The stride of a dimension of one element is not used, but has to be valid.
        let mut strides = [16; 4];
        (extents[0], extents[1]) = match window.is_along_summands() {
            true => (summands, lines),
            false => (lines, summands),
        };
        strides[0] = window.stride() * 2;
        for (at, (it, distance)) in window.outer.iter().enumerate() {
            extents[2 + at] = extent(&compute.dims[*it]);
            strides[1 + at] = distance * 2;
        }
        (extents, strides)
    }

    /// Lines of a factor in a tile.
    fn lines(&self, side: usize) -> i64 {
        self.shape.tile()[side]
    }

    /// Rows that are copied at once.
    fn rows(&self, side: usize) -> i64 {
        if self.windows[side].is_along_summands() { self.lines(side) } else { DEPTH }
    }

    /// The number of blocks of summands.
    fn blocks(&self, e: Emit<'c, 'a>, range: &Range<'c, 'a>) -> Value<'c, 'a> {
        let count = e.binary(arith::SUBI, range.end, range.first);
        e.binary(arith::DIVUI, e.offset(count, DEPTH - 1), e.index(DEPTH))
    }

    /// The stage of the ring of a number of blocks: its address, its barriers, and whether it is in an odd turn.
    fn stage(
        &self,
        e: Emit<'c, 'a>,
        barriers: Value<'c, 'a>,
        number: Value<'c, 'a>,
    ) -> (Value<'c, 'a>, [Value<'c, 'a>; 2], Value<'c, 'a>) {
        let stages = e.index(self.shape.stages());
        let (turn, stage) =
            (e.binary(arith::DIVUI, number, stages), e.binary(arith::REMUI, number, stages));
        let parity =
            e.op(arith::INDEX_CAST, &[e.binary(arith::REMUI, turn, e.index(2))], e.int(32));
        let full = e.add(barriers, e.scale(stage, 8));
        let empty = e.offset(full, 8 * self.shape.stages());
        let address = e.add(self.tiles.shared_address(e), e.scale(stage, self.shape.bytes()));
        (address, [full, empty], parity)
    }

    /// Copies the blocks of a tile; `number` blocks were copied before, and their number after is returned.
    fn copy(
        &self,
        e: Emit<'c, 'a>,
        (barriers, maps): (Value<'c, 'a>, [Value<'c, 'a>; 2]),
        (place, range): (&Place<'c, 'a>, &Range<'c, 'a>),
        number: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let tiles = self.tiles;
        let blocks = self.blocks(e, range);
        let zero = e.index(0);
        let outer = tiles.result_index(e, [place.outer, zero, zero]);
        let bounds = (zero, blocks, 1);
        let Ok(_) = e.for_each::<Infallible>(bounds, &[], |e, block, _| {
            let (address, [full, empty], parity) = self.stage(e, barriers, e.add(number, block));
            // The phase before the first counts as complete.
            let before = e.binary(arith::XORI, parity, e.integer(1, 32, Lanes::Scalar));
            tiles.call(e, "irc_gpu_phase_wait", &[empty, before], &[]);
            let bytes = e.integer(self.shape.bytes(), 32, Lanes::Scalar);
            tiles.call(e, "irc_gpu_phase_expect", &[full, bytes], &[]);
            let summand = e.add(range.first, e.scale(block, DEPTH));
            for side in [0, 1] {
                let window = &self.windows[side];
                let first = if side == 0 { place.row } else { place.column };
                let start = if side == 0 { 0 } else { ROWS * ROW_BYTES };
                for at in 0..self.lines(side) / self.lines_at_once(side) {
                    let to = e.offset(address, start + at * BOX_BYTES);
                    let line = e.offset(first, at * self.lines_at_once(side));
                    let [x, y] =
                        if window.is_along_summands() { [summand, line] } else { [line, summand] };
                    let mut coordinates = vec![x, y];
                    coordinates.extend(window.outer.iter().map(|(it, _)| outer[*it]));
                    coordinates.resize(5, e.index(0));
                    let coordinates =
                        coordinates.iter().map(|at| e.op(arith::INDEX_CAST, &[*at], e.int(32)));
                    let operands: Vec<_> =
                        [to, maps[side], full].into_iter().chain(coordinates).collect();
                    tiles.call(e, "irc_gpu_copy_tile", &operands, &[]);
                }
            }
            Ok(vec![])
        });
        e.add(number, blocks)
    }

    /// Lines that are copied at once.
    fn lines_at_once(&self, side: usize) -> i64 {
        if self.windows[side].is_along_summands() {
            self.lines(side)
        } else {
            BOX_BYTES / ROW_BYTES
        }
    }

    /// Multiplies the blocks of a tile and uses its sums, as [`Self::copy`] copies them.
    fn multiply(
        &self,
        e: Emit<'c, 'a>,
        barriers: Value<'c, 'a>,
        item: &Item<'_, 'c, 'a>,
        number: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let tiles = self.tiles;
        let thread = tiles.team.thread;
        let group = e.binary(arith::DIVUI, thread, e.index(128));
        let lane = e.binary(arith::REMUI, thread, e.index(32));
        let zero = e.float(0.0, e.f32(), Lanes::Scalar);
        let count = (self.shape.columns / 2) as usize;
        let transposed =
            self.windows.each_ref().map(|window| u8::from(!window.is_along_summands()));
        let name = format!(
            "{FUNCTION}{}_{}_{}{}",
            if self.half == DType::F16 { "f16" } else { "bf16" },
            self.shape.columns,
            transposed[0],
            transposed[1]
        );
        let end = e.add(number, self.blocks(e, &item.range));
        let bounds = (number, end, 1);
        let Ok(sums) = e.for_each::<Infallible>(bounds, &vec![zero; count], |e, block, sums| {
            let (address, [full, empty], parity) = self.stage(e, barriers, block);
            tiles.call(e, "irc_gpu_phase_wait", &[full, parity], &[]);
            let left = e.add(address, e.scale(group, GROUP_ROWS * ROW_BYTES));
            let right = e.offset(address, ROWS * ROW_BYTES);
            let operands = [&[left, right], sums].concat();
            let call = tiles.call(e, &name, &operands, &vec![e.f32(); count]);
            tiles.wait_in_warp(e);
            let arrives = e.compare(0, lane, e.index(0));
            when(e, arrives, |e| {
                tiles.call(e, "irc_gpu_phase_arrive", &[empty], &[]);
            });
            Ok(call.results().map(Into::into).collect())
        });
        // A warp has 16 rows of all columns.
        tiles.finish(e, item, &sums, |e, thread, number| {
            let row = e.scale(e.binary(arith::DIVUI, thread, e.index(32)), 16);
            (row, e.index(number * FRAGMENT_COLUMNS))
        });
        end
    }
}

/// The first byte of the fragments in shared memory.
pub(super) const FRAGMENTS_START: i64 = RING_BYTES;

/// The instruction of groups of warps.
pub const INSTRUCTION: &str = "wgmma.mma_async";

/// The start of the names of functions that multiply a stage: type, columns, and whether the factors have neighbouring
/// lines.
pub const FUNCTION: &str = "irc_gpu_wgmma_";

/// The function of the device that multiplies a stage by a group of warps, in the `llvm` dialect; `None` if it has no such
/// name. Its operands are the addresses of the left factor's 64 lines and of the right factor's, and the sums.
///
/// Sums are in flight only within its instructions: all are complete at its end.
pub fn definition(name: &str) -> Option<String> {
    let rest = name.strip_prefix(FUNCTION)?;
    let mut parts = rest.split('_');
    let (half, columns) = (parts.next()?, parts.next()?.parse::<usize>().ok()?);
    let [left, right] = parts.next()?.as_bytes() else { return None };
    let transposed = [*left, *right].map(|digit| digit == b'1');
    let count = columns / 2;
    let list = |of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<Vec<_>>().join(", ");
    let registers = list(&|at| format!("${at}"));
    let mut text = String::from("{ .reg .b64 a, b; wgmma.fence.sync.aligned; ");
    for step in 0..DEPTH / 16 {
        // 16 summands further: 32 bytes of each row, or 16 rows; in units of 16 bytes.
        let [a, b] = transposed.map(|transposed| step * if transposed { ROW_BYTES } else { 2 });
        text.push_str(&format!(
            "add.s64 a, ${}, {a}; add.s64 b, ${}, {b}; \
             {INSTRUCTION}.sync.aligned.m64n{columns}k16.f32.{half}.{half} {{{registers}}}, a, b, 1, 1, 1, {}, {}; ",
            2 * count,
            2 * count + 1,
            u8::from(transposed[0]),
            u8::from(transposed[1]),
        ));
    }
    text.push_str("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }");
    // Outputs, inputs in the same registers, and two descriptors.
    let outputs = vec!["=f"; count].join(",");
    let inputs = list(&|at| at.to_string()).replace(' ', "");
    let parameters = list(&|at| format!("%c{at}: f32"));
    let (values, types) = (list(&|at| format!("%c{at}")), vec!["f32"; count].join(", "));
    // Descriptors: the start in units of 16 bytes, groups of 8 rows 1024 bytes apart, a swizzle of 128 bytes; where lines are
    // neighbours, each 64 of them are 8192 bytes apart.
    let bits = transposed.map(|transposed| {
        let leading = if transposed { BOX_BYTES / 16 } else { 1 };
        1_i64 << 62 | 64 << 32 | leading << 16
    });
    Some(format!(
        "llvm.func internal @{name}(%left: i64, %right: i64, {parameters}) -> !llvm.struct<({types})> attributes {{always_inline}} {{
         %four = llvm.mlir.constant(4 : i64) : i64
         %mask = llvm.mlir.constant(16383 : i64) : i64
         %left_bits = llvm.mlir.constant({} : i64) : i64
         %right_bits = llvm.mlir.constant({} : i64) : i64
         %l0 = llvm.lshr %left, %four : i64
         %l1 = llvm.and %l0, %mask : i64
         %l2 = llvm.or %l1, %left_bits : i64
         %r0 = llvm.lshr %right, %four : i64
         %r1 = llvm.and %r0, %mask : i64
         %r2 = llvm.or %r1, %right_bits : i64
         %sums = llvm.inline_asm has_side_effects asm_dialect = att \"{text}\", \"{outputs},{inputs},l,l\" {values}, %l2, %r2 : ({types}, i64, i64) -> !llvm.struct<({types})>
         llvm.return %sums : !llvm.struct<({types})>
         }}\n",
        bits[0], bits[1],
    ))
}
