//! How warps share the rows and keys of attention.
use super::super::{super::Device, MAX_PARTS, SHARED_BYTES, ceil_div};

/// The sizes of attention.
#[derive(Clone, Copy, Debug, Default)]
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
    /// Whether more than a sum determines a score, such as the number of its key.
    pub(super) is_masked: bool,
    /// Whether a score is minus infinity for all sums if it is for zero.
    pub(super) is_skipped: bool,
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

    /// Bytes from one line of so many elements to the next in shared memory: an odd number of 16, so that eight lines lie
    /// in different banks.
    fn pitch(&self, elements: i64) -> i64 {
        ((elements * self.bytes / 16) | 1) * 16
    }
}

/// Rows of a warp.
pub(super) const ROWS: i64 = 16;

/// Bytes of a row of sums of a warp in shared memory beyond its columns.
pub(super) const SUM_PADDING: i64 = 4;

/// Bytes of flags of blocks of keys, the last ones of shared memory.
pub(super) const FLAG_BYTES: i64 = 1 << 10;

/// The most columns whose sums warps exchange at once.
const MAX_EXCHANGED: i64 = 128;

/// How a team computes blocks of rows, a block of keys at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    /// The number of rows of warps, 16 rows of queries each, and the warps that share these, with different keys.
    pub(super) down: i64,
    pub(super) across: i64,
    /// The keys of a warp in a block.
    pub(super) keys: i64,
    /// The columns of the result that are computed at once.
    pub(super) columns: i64,
    /// Whether a warp has its queries in registers.
    pub(super) holds_queries: bool,
    /// The blocks of keys in shared memory.
    pub(super) stages: i64,
    /// The parts into which keys are divided, which different blocks of threads compute.
    pub(super) parts: i64,
}

impl Shape {
    const ONE: Self = Self {
        down: 1,
        across: 1,
        keys: 8,
        columns: 16,
        holds_queries: false,
        stages: 1,
        parts: 1,
    };

    /// The shape with which all processors are estimated to be done first; `None` if heads are too large.
    pub(super) fn of(sizes: &Sizes, threads: i64, device: &Device) -> Option<Self> {
        let mut found: Option<(i64, Self)> = None;
        let warps = threads / 32;
        let widths = [sizes.padded()[1], 256, 128, 64].into_iter().enumerate();
        let widths = widths.filter(|(number, width)| *number == 0 || *width < sizes.padded()[1]);
        let downs = || [8, 4, 2, 1].into_iter().filter(|down| *down <= warps);
        let down_and_keys = || downs().flat_map(|down| KEYS.map(|keys| (down, keys)));
        for columns in widths.map(|(_, width)| width) {
            for (down, keys) in down_and_keys() {
                let across = warps / down;
                let with = |holds_queries| {
                    let shape = Self { down, across, keys, columns, holds_queries, ..Self::ONE };
                    shape.fitting(sizes, warps, device)
                };
                let Some(shape) = with(sizes.is_half()).or_else(|| with(false)) else { continue };
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

    /// The number of blocks of rows, and how many times each is computed, with other columns.
    pub(super) fn tiles(&self, sizes: &Sizes) -> [i64; 2] {
        [ceil_div(sizes.rows, self.rows()), ceil_div(sizes.columns, self.columns)]
    }

    /// Bytes from one line of queries and keys to the next in shared memory, and from one of values.
    pub(super) fn pitches(&self, sizes: &Sizes) -> [i64; 2] {
        [sizes.padded()[0], self.columns].map(|elements| sizes.pitch(elements))
    }

    /// The number of keys of a part.
    pub(super) fn part(&self, sizes: &Sizes) -> i64 {
        ceil_div(ceil_div(sizes.keys, self.block()), self.parts) * self.block()
    }

    /// The number of blocks of keys of a part that a flag is for, which says whether one of their scores counts; `None` if
    /// all blocks are computed.
    pub(super) fn flagged(&self, sizes: &Sizes) -> Option<i64> {
        let blocks = self.part(sizes) / self.block();
        (sizes.is_skipped && sizes.keys > self.block()).then_some(ceil_div(blocks, FLAG_BYTES / 4))
    }

    /// Bytes of a block of keys and values, and where the values begin.
    pub(super) fn stage(&self, sizes: &Sizes) -> [i64; 2] {
        let [key, value] = self.pitches(sizes);
        [self.block() * (key + value), self.block() * key]
    }

    /// The first byte of queries: in registers later, or behind all blocks of keys.
    pub(super) fn queries(&self, sizes: &Sizes) -> i64 {
        if self.holds_queries { 0 } else { self.stages * self.stage(sizes)[0] }
    }

    /// The columns whose sums warps exchange at once.
    pub(super) fn exchanged(&self) -> i64 {
        self.columns.min(MAX_EXCHANGED)
    }

    /// The shape with as many stages as fit in shared memory, if one does, and if the sums fit in registers.
    fn fitting(self, sizes: &Sizes, warps: i64, device: &Device) -> Option<Self> {
        let queries = self.rows() * self.pitches(sizes)[0];
        let [stage, _] = self.stage(sizes);
        let all = warps * SHARED_BYTES - if sizes.is_skipped { FLAG_BYTES } else { 0 };
        let rest = if self.holds_queries { all } else { all - queries };
        let stages = (rest / stage).min(MAX_STAGES).min(ceil_div(sizes.keys, self.block()).max(2));
        let [depth, _] = sizes.padded();
        let held = if self.holds_queries { depth / 4 } else { 0 };
        let other = if sizes.is_half() { OTHER } else { OTHER_SINGLE };
        // A number is loaded for each score.
        let other = if sizes.is_masked { other + self.keys / 2 } else { other };
        let fits = self.down * self.across == warps
            && stages >= 1
            && (self.keys > 8 || !sizes.is_half())
            && queries <= all
            && self.columns / 2 + self.keys / 2 + held + other <= registers(device)
            && (sizes.is_half() || self.columns * self.keys <= MAX_SINGLE);
        fits.then_some(Self { stages, ..self })
    }

    /// The numbers of parts that may be best: one, and as many as there are processors for.
    fn divisions(&self, sizes: &Sizes, device: &Device) -> Vec<i64> {
        if !device.is_grid {
            return vec![1];
        }
        let blocks = ceil_div(sizes.keys, self.block());
        let idle =
            device.processors() / (sizes.outer * self.tiles(sizes).iter().product::<i64>()).max(1);
        let parts = idle.min(MAX_PARTS).min(sizes.keys / MIN_PART).clamp(1, blocks);
        let own = ceil_div(blocks, parts);
        vec![1, ceil_div(blocks, own)]
    }

    /// An estimate of the cycles that a processor takes.
    fn cost(&self, sizes: &Sizes, warps: i64, device: &Device) -> i64 {
        let processors = if device.is_grid { device.processors() } else { 1 };
        let tiles = (sizes.outer * self.parts).saturating_mul(self.tiles(sizes).iter().product());
        let line = sizes.padded()[0] + self.columns;
        let per_cycle = if sizes.is_half() { 1024 } else { 128 };
        let products = warps * ROWS * self.keys * line / per_cycle;
        let copies = self.block() * line * sizes.bytes / 64;
        let functions = warps * self.keys * 4;
        let waits = if self.stages > 1 { 200 } else { 800 };
        let own = products + copies + functions + waits;
        let blocks = self.part(sizes) / self.block();
        let last = self.rows() * self.columns * self.across / 64;
        let sums = if self.parts > 1 { 3000 } else { 0 };
        ceil_div(tiles, processors).saturating_mul(own * blocks + last + 1000) + sums
    }
}

/// The most stages of a ring.
const MAX_STAGES: i64 = 3;

/// The keys of a warp in a block: 8 only in single precision.
const KEYS: [i64; 4] = [64, 32, 16, 8];

/// The registers of a thread, beside those of sums, scores and queries, on tensor cores and otherwise.
const OTHER: i64 = 72;
const OTHER_SINGLE: i64 = 100;

/// The most keys times columns in single precision, whose products are written out.
const MAX_SINGLE: i64 = 4096;

/// The registers that a thread may have: a processor has 512 for each of 128 lanes, which the warps of a block share.
fn registers(device: &Device) -> i64 {
    let threads = if device.is_grid { device.threads } else { MAX_TASK_THREADS };
    (512 / ceil_div(threads, 128)).min(255) / 8 * 8
}

/// The most threads of a block of a plan for which registers suffice.
const MAX_TASK_THREADS: i64 = 512;

/// The minimum number of keys of a part.
const MIN_PART: i64 = 64;
