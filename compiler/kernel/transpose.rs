//! Elements of vectors in another order: the transposition of tiles in registers.
use super::emit::{Emit, Lanes};
use irc_mlir::ops::arith;
use irc_mlir::{Type, Value};

/// The maximum extent of a loop whose iterations are interleaved in memory.
pub const MAX_INTERLEAVED: i64 = 4;

/// The minimum number of rows and of columns of tiles.
const MIN_EXTENT: i64 = 4;

/// Bytes of a cache line.
const LINE: i64 = 64;

/// How two loops are traversed, of which the operand is contiguous along one, the rows, and the result along the other, the
/// columns.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// In tiles that are transposed in registers.
    Tiles(Tiles),
    /// Each vector of columns with all rows, which are few, and whose elements are next to each other in the operand.
    Deinterleaved,
    /// Each vector of rows with all columns, which are few, and whose elements are next to each other in the result.
    Interleaved,
}

impl Form {
    /// How so many rows and columns are traversed, where they are known: of elements of at most so many bytes, in vectors of
    /// so many lanes. `None` if too few elements fill vectors.
    ///
    /// `are_adjacent` states whether the elements of all rows are next to each other in the operand, and those of all columns
    /// in the result. `strides` are the distances in bytes between columns of the operand and between rows of the result, if
    /// they are known.
    pub fn of(
        [rows, columns]: [Option<i64>; 2],
        are_adjacent: [bool; 2],
        strides: [Option<i64>; 2],
        (bytes, lanes): (i64, i64),
    ) -> Option<Self> {
        let is_few = |extent: Option<i64>| {
            extent.is_some_and(|extent| (2..=MAX_INTERLEAVED).contains(&extent))
        };
        let fills = |extent: Option<i64>, least| extent.is_none_or(|extent| extent >= least);
        if is_few(columns) && are_adjacent[1] && fills(rows, lanes) {
            return Some(Self::Interleaved);
        }
        if is_few(rows) && are_adjacent[0] && fills(columns, lanes) {
            return Some(Self::Deinterleaved);
        }
        let fit = [rows, columns].into_iter().all(|extent| fills(extent, MIN_EXTENT));
        fit.then(|| Self::Tiles(Tiles::new(bytes, lanes, strides)))
    }

    /// What a unit of work has: so many rows (0) or columns (1).
    pub const fn unit(self, lanes: i64) -> (usize, i64) {
        match self {
            Self::Tiles(tiles) => (0, tiles.block[0]),
            Self::Deinterleaved => (1, lanes),
            Self::Interleaved => (0, lanes),
        }
    }
}

/// Tiles of some rows, and as many columns as a vector has lanes.
#[derive(Debug, Clone, Copy)]
pub struct Tiles {
    /// Rows of a tile.
    pub height: i64,
    /// Rows and columns of a block, which has whole cache lines of the operand and of the result.
    block: [i64; 2],
    /// Whether tiles follow each other along the columns, so that few lines of the result are in use at a time.
    by_columns: bool,
}

impl Tiles {
    /// See [`Form::of`].
    fn new(bytes: i64, lanes: i64, [read, written]: [Option<i64>; 2]) -> Self {
        let height = (4 * lanes / bytes.max(4)).clamp(1, lanes);
        let block = [height, lanes].map(|count| count.max(LINE / bytes));
        // Lines at a multiple of a large power of two share few places in a cache.
        let zeros = |stride: Option<i64>| stride.map_or(0, i64::trailing_zeros);
        Self { height, block, by_columns: zeros(written) > zeros(read) }
    }

    /// Loops over the tiles of the block of rows with a number, and all columns; `body` gets the first row and column of each. Tiles at the end overlap those before them, so that all are whole if there are as many rows and
    /// columns; elements in both are computed twice, and are the same.
    ///
    /// # Errors
    /// Those of `body`.
    pub fn each<'c: 'a, 'a, E>(
        &self,
        e: Emit<'c, 'a>,
        block: Value<'c, 'a>,
        [rows, columns]: [Value<'c, 'a>; 2],
        lanes: i64,
        body: impl FnOnce(Emit<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let range = |e: Emit<'c, 'a>, first, block, (end, step)| {
            (first, e.min(e.offset(first, block), end), step)
        };
        let own = range(e, e.scale(block, self.block[0]), self.block[0], (rows, self.height));
        e.for_each((e.index(0), columns, self.block[1]), &[], |e, first, _| {
            let across = range(e, first, self.block[1], (columns, lanes));
            let (outer, inner) = if self.by_columns { (own, across) } else { (across, own) };
            e.for_each(outer, &[], |e, outer, _| {
                e.for_each(inner, &[], |e, inner, _| {
                    let (row, column) =
                        if self.by_columns { (outer, inner) } else { (inner, outer) };
                    let row = within(e, row, self.height, rows);
                    let column = within(e, column, lanes, columns);
                    body(e, row, column).map(|()| vec![])
                })
            })
        })
        .map(|_| ())
    }
}

/// The first of `count` iterations of `size`, moved so that the last of them is one of these.
pub fn within<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    first: Value<'c, 'a>,
    count: i64,
    size: Value<'c, 'a>,
) -> Value<'c, 'a> {
    let last = e.binary(arith::MAXSI, e.offset(size, -count), e.index(0));
    e.min(first, last)
}

/// Transposes a square of vectors by swapping halves, quarters, and so on.
pub fn square<'c: 'a, 'a>(e: Emit<'c, 'a>, rows: &mut [Value<'c, 'a>]) {
    let width = rows.len();
    let mut half = width / 2;
    while half > 0 {
        for low in (0..width).filter(|row| row & half == 0) {
            let (a, b) = (rows[low], rows[low + half]);
            let pick = |keep: usize| -> Vec<i64> {
                (0..width)
                    .map(|lane| match (lane & half == 0, keep) {
                        (true, 0) => lane,
                        (true, _) => lane + half,
                        (false, 0) => width + lane - half,
                        (false, _) => width + lane,
                    } as i64)
                    .collect()
            };
            rows[low] = e.shuffle(a, b, &pick(0));
            rows[low + half] = e.shuffle(a, b, &pick(1));
        }
        half /= 2;
    }
}

/// Transposes a tile: row `i` of the result has lane `i` of each of the vectors, of which there are a multiple of their
/// number of lanes.
pub fn tile<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    vectors: &mut [Value<'c, 'a>],
    (lanes, element): (Lanes, Type<'c>),
) -> Vec<Value<'c, 'a>> {
    let height = lanes.count() as usize;
    vectors.chunks_mut(height).for_each(|chunk| square(e, chunk));
    let row = |row: usize| {
        let parts: Vec<_> = vectors.chunks(height).map(|chunk| chunk[row]).collect();
        concatenated(e, &parts, (lanes, element))
    };
    (0..height).map(row).collect()
}

/// The vectors of every `n`-th element of contiguous ones, which `n` vectors hold: vector `i` has elements `i`, `n + i`, ...
pub fn deinterleave<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    vectors: &[Value<'c, 'a>],
    of: (Lanes, Type<'c>),
) -> Vec<Value<'c, 'a>> {
    let count = vectors.len() as i64;
    reordered(e, vectors, of, |vector, lane| lane * count + vector)
}

/// The reverse of [`deinterleave`].
pub fn interleave<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    vectors: &[Value<'c, 'a>],
    of: (Lanes, Type<'c>),
) -> Vec<Value<'c, 'a>> {
    let (count, lanes) = (vectors.len() as i64, of.0.count());
    reordered(e, vectors, of, |vector, lane| {
        let at = vector * lanes + lane;
        at % count * lanes + at / count
    })
}

/// As many vectors of the same elements, of which each lane has the element at the place that `pick` selects.
fn reordered<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    vectors: &[Value<'c, 'a>],
    (lanes, element): (Lanes, Type<'c>),
    pick: impl Fn(i64, i64) -> i64,
) -> Vec<Value<'c, 'a>> {
    let all = concatenated(e, vectors, (lanes, element));
    let vector = |vector: usize| {
        let picks: Vec<i64> = (0..lanes.count()).map(|lane| pick(vector as i64, lane)).collect();
        e.shuffle_to(all, all, &picks, lanes.of(element))
    };
    (0..vectors.len()).map(vector).collect()
}

/// Vectors after each other, as one.
fn concatenated<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    vectors: &[Value<'c, 'a>],
    (lanes, element): (Lanes, Type<'c>),
) -> Value<'c, 'a> {
    let mut all = vectors[0];
    for (count, vector) in vectors.iter().enumerate().skip(1) {
        let length = lanes.count() * (count as i64 + 1);
        let picks: Vec<i64> = (0..length).collect();
        all = e.shuffle_to(all, *vector, &picks, Lanes::Vector(length).of(element));
    }
    all
}
