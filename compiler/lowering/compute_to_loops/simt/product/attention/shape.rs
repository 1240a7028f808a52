//! How warps share the rows and keys of attention.
use super::super::{super::Device, MAX_PARTS, SHARED_BYTES, ceil_div};

/// The sizes of attention.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// The number of products, and of rows, columns and keys of each.
    pub(super) outer: i64,
    pub(super) rows: i64,
    pub(super) columns: i64,
    pub(super) keys: i64,
    /// The summands of a score.
    pub(super) depth: i64,
    /// Bytes of an element of the factors.
    pub(super) bytes: i64,
}

impl Sizes {
    /// Whether products are on tensor cores.
    pub(super) fn is_half(&self) -> bool {
        self.bytes == 2
    }

    /// The summands of a score and the columns of the result in shared memory, beyond which there are zeros.
    pub(super) fn padded(&self) -> [i64; 2] {
        let depth = if self.is_half() { 16 } else { 4 };
        [ceil_div(self.depth, depth) * depth, ceil_div(self.columns, 16) * 16]
    }

    /// Bytes from one line of a factor to the next in shared memory: an odd number of 16, so that eight lines lie in
    /// different banks.
    pub(super) fn pitches(&self) -> [i64; 2] {
        self.padded().map(|elements| (elements * self.bytes / 16 | 1) * 16)
    }

    /// Whether a warp has its queries in registers.
    pub(super) fn holds_queries(&self) -> bool {
        self.is_half() && self.padded()[0] <= MAX_HELD
    }
}

/// The most summands of a score for which queries are in registers.
const MAX_HELD: i64 = 128;

/// Rows of a warp.
pub(super) const ROWS: i64 = 16;

/// Bytes of a row of sums of a warp in shared memory beyond its columns.
pub(super) const SUM_PADDING: i64 = 4;

/// The most columns whose sums warps exchange at once.
const MAX_EXCHANGED: i64 = 128;

/// How a team computes blocks of rows, a block of keys at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The number of rows of warps, 16 rows of queries each, and the warps that share these, with different keys.
    pub(super) down: i64,
    pub(super) across: i64,
    /// The keys of a warp in a block.
    pub(super) keys: i64,
    /// The blocks of keys in shared memory.
    pub(super) stages: i64,
    /// The parts into which keys are divided, which different blocks of threads compute.
    pub(super) parts: i64,
}

impl Shape {
    /// The shape with which all processors are estimated to be done first; `None` if heads are too large.
    pub(super) fn of(sizes: &Sizes, threads: i64, device: &Device) -> Option<Self> {
        let mut found: Option<(i64, Self)> = None;
        let warps = threads / 32;
        for down in [8, 4, 2, 1] {
            for keys in [64, 32, 16] {
                let shape = Self { down, across: warps / down, keys, stages: 1, parts: 1 };
                let Some(shape) = shape.fitting(sizes, warps) else { continue };
                for parts in shape.divisions(sizes, device) {
                    let shape = Self { parts, ..shape };
                    let cost = shape.cost(sizes, warps, device);
                    if found.is_none_or(|(least, _)| cost < least) {
                        found = Some((cost, shape));
                    }
                }
            }
        }
        found.map(|(_, shape)| shape)
    }

    /// Rows of queries and keys of a block.
    pub(super) fn rows(&self) -> i64 {
        self.down * ROWS
    }

    pub(super) fn block(&self) -> i64 {
        self.across * self.keys
    }

    /// The number of blocks of rows.
    pub(super) fn tiles(&self, sizes: &Sizes) -> i64 {
        ceil_div(sizes.rows, self.rows())
    }

    /// The number of keys of a part.
    pub(super) fn part(&self, sizes: &Sizes) -> i64 {
        ceil_div(ceil_div(sizes.keys, self.block()), self.parts) * self.block()
    }

    /// Bytes of a block of keys and values, and where the values begin.
    pub(super) fn stage(&self, sizes: &Sizes) -> [i64; 2] {
        let [key, value] = sizes.pitches();
        [self.block() * (key + value), self.block() * key]
    }

    /// The first byte of queries: in registers later, or behind all blocks of keys.
    pub(super) fn queries(&self, sizes: &Sizes) -> i64 {
        if sizes.holds_queries() { 0 } else { self.stages * self.stage(sizes)[0] }
    }

    /// The columns whose sums warps exchange at once.
    pub(super) fn exchanged(sizes: &Sizes) -> i64 {
        sizes.padded()[1].min(MAX_EXCHANGED)
    }

    /// The shape with as many stages as fit in shared memory, if one does, and if the sums fit in registers.
    fn fitting(self, sizes: &Sizes, warps: i64) -> Option<Self> {
        let queries = self.rows() * sizes.pitches()[0];
        let [stage, _] = self.stage(sizes);
        let all = warps * SHARED_BYTES;
        let rest = if sizes.holds_queries() { all } else { all - queries };
        let stages = (rest / stage).min(MAX_STAGES).min(ceil_div(sizes.keys, self.block()).max(2));
        let [depth, columns] = sizes.padded();
        let held = if sizes.holds_queries() { depth / 4 } else { 0 };
        let fits = self.across > 0
            && self.down * self.across == warps
            && stages >= 1
            && queries <= all
            && columns / 2 + self.keys / 2 + held <= MAX_REGISTERS
            && (sizes.is_half() || self.keys <= MAX_SINGLE_KEYS && columns * self.keys <= MAX_SINGLE);
        fits.then_some(Self { stages, ..self })
    }

    /// The numbers of parts that may be best: one, and as many as there are processors for.
    fn divisions(&self, sizes: &Sizes, device: &Device) -> Vec<i64> {
        if !device.is_grid {
            return vec![1];
        }
        let blocks = ceil_div(sizes.keys, self.block());
        let idle = device.processors() / (sizes.outer * self.tiles(sizes)).max(1);
        let parts = idle.min(MAX_PARTS).min(sizes.keys / MIN_PART).clamp(1, blocks);
        let own = ceil_div(blocks, parts);
        vec![1, ceil_div(blocks, own)]
    }

    /// An estimate of the cycles that a processor takes.
    fn cost(&self, sizes: &Sizes, warps: i64, device: &Device) -> i64 {
        let processors = if device.is_grid { device.processors() } else { 1 };
        let tiles = (sizes.outer * self.tiles(sizes)).saturating_mul(self.parts);
        let [depth, columns] = sizes.padded();
        let line = depth + columns;
        let per_cycle = if sizes.is_half() { 1024 } else { 128 };
        let products = warps * ROWS * self.keys * line / per_cycle;
        let copies = self.block() * line * sizes.bytes / 64;
        let functions = warps * self.keys * 4;
        let waits = if self.stages > 1 { 200 } else { 800 };
        let own = products + copies + functions + waits;
        let blocks = self.part(sizes) / self.block();
        let last = self.rows() * columns * self.across / 64;
        let sums = if self.parts > 1 { 3000 } else { 0 };
        ceil_div(tiles, processors).saturating_mul(own * blocks + last + 1000) + sums
    }
}

/// The most stages of a ring.
const MAX_STAGES: i64 = 3;

/// The most registers for sums, scores and queries.
const MAX_REGISTERS: i64 = 160;

/// The most keys of a warp in single precision, and the most keys times columns, which are written out.
const MAX_SINGLE_KEYS: i64 = 32;
const MAX_SINGLE: i64 = 4096;

/// The minimum number of keys of a part.
const MIN_PART: i64 = 64;
