//! The transforms of tiles and sums, on vectors of tiles.
use crate::kernel::emit::{Buffer, Emit, Lanes};
use irc_mlir::ops::{arith, math};
use irc_mlir::{Value, ValueLike};

/// The columns of tiles: element `j` of the result holds column `j` of each tile. The tiles are in four chunks,
/// each of as many tiles as a vector holds of 4 columns.
pub fn read_tiles<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    source: Buffer<'c, 'a>,
    lanes: Lanes,
    starts: &[Value<'c, 'a>],
) -> [Value<'c, 'a>; 6] {
    let load = |offset: i64| {
        move |start: &Value<'c, 'a>| e.load_lanes(source, e.offset(*start, offset), lanes, None)
    };
    let first: Vec<Value> = starts.iter().map(load(0)).collect();
    let second: Vec<Value> = starts.iter().map(load(4)).collect();
    let [a, b] = halves(e, lanes, &first, 0);
    let [c, d] = halves(e, lanes, &first, 2);
    let [f, g] = halves(e, lanes, &second, 0);
    [a, b, c, d, f, g]
}

/// Columns `from` and `from + 1` of the tiles of four chunks.
fn halves<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    lanes: Lanes,
    chunks: &[Value<'c, 'a>],
    from: i64,
) -> [Value<'c, 'a>; 2] {
    let count = lanes.count();
    // Of two chunks: one column of all their tiles, then the next.
    let picks: Vec<i64> = (0..count)
        .map(|lane| {
            let (column, tile) = (from + lane / (count / 2), lane % (count / 2));
            4 * tile + column
        })
        .collect();
    let low = e.shuffle(chunks[0], chunks[1], &picks);
    let high = e.shuffle(chunks[2], chunks[3], &picks);
    let half = |number: i64| -> Vec<i64> {
        let place = |lane: i64| number * (count / 2) + lane % (count / 2);
        (0..count).map(|lane| place(lane) + if lane < count / 2 { 0 } else { count }).collect()
    };
    [e.shuffle(low, high, &half(0)), e.shuffle(low, high, &half(1))]
}

/// The opposite of [`read_tiles`]: four columns of tiles as four chunks.
pub fn write_tiles<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    lanes: Lanes,
    columns: [Value<'c, 'a>; 4],
) -> [Value<'c, 'a>; 4] {
    let count = lanes.count();
    // Pairs of columns of half of the tiles.
    let pairs = |a: Value<'c, 'a>, b: Value<'c, 'a>, half: i64| {
        let picks: Vec<i64> = (0..count)
            .map(|lane| half * (count / 2) + lane / 2 + if lane % 2 == 0 { 0 } else { count })
            .collect();
        e.shuffle(a, b, &picks)
    };
    let chunk = |number: i64| {
        let [left, right] = [0, 2].map(|at| pairs(columns[at], columns[at + 1], number / 2));
        let picks: Vec<i64> = (0..count)
            .map(|lane| {
                let (tile, column) = (lane / 4, lane % 4);
                let place = (number % 2) * (count / 2) + 2 * tile + column % 2;
                place + if column < 2 { 0 } else { count }
            })
            .collect();
        e.shuffle(left, right, &picks)
    };
    [chunk(0), chunk(1), chunk(2), chunk(3)]
}

/// Rows as columns.
pub fn flipped<T: Copy, const R: usize, const C: usize>(rows: [[T; C]; R]) -> [[T; R]; C] {
    std::array::from_fn(|column| rows.map(|row| row[column]))
}

/// The transform of 6 elements of a tile along one axis.
pub fn tile_to_points<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    lanes: Lanes,
    x: [Value<'c, 'a>; 6],
) -> [Value<'c, 'a>; 6] {
    let m = Math { e, lanes };
    let a = m.scaled_sum(x[2], -4.0, x[4]);
    let b = m.scaled_sum(x[1], -4.0, x[3]);
    let c = m.difference(x[4], x[2]);
    let d = m.difference(x[3], x[1]);
    [
        m.scaled_sum(x[0], 4.0, m.scaled_sum(x[2], -5.0, x[4])),
        m.sum(a, b),
        m.difference(a, b),
        m.scaled_sum(d, 2.0, c),
        m.scaled_sum(d, -2.0, c),
        m.scaled_sum(x[1], 4.0, m.scaled_sum(x[3], -5.0, x[5])),
    ]
}

/// The transform of the sums of 6 points to 4 elements along one axis.
pub fn points_to_tile<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    lanes: Lanes,
    x: [Value<'c, 'a>; 6],
) -> [Value<'c, 'a>; 4] {
    let m = Math { e, lanes };
    let (near, far) = (m.sum(x[1], x[2]), m.sum(x[3], x[4]));
    let (near_difference, far_difference) = (m.difference(x[1], x[2]), m.difference(x[3], x[4]));
    [
        m.sum(m.sum(x[0], near), far),
        m.scaled_sum(far_difference, 2.0, near_difference),
        m.scaled_sum(far, 4.0, near),
        m.sum(m.scaled_sum(far_difference, 8.0, near_difference), x[5]),
    ]
}

/// Arithmetic on vectors of `f32`.
struct Math<'c, 'a> {
    e: Emit<'c, 'a>,
    lanes: Lanes,
}

impl<'c: 'a, 'a> Math<'c, 'a> {
    fn sum(&self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Value<'c, 'a> {
        self.e.binary(arith::ADDF, a, b)
    }

    fn difference(&self, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Value<'c, 'a> {
        self.e.binary(arith::SUBF, a, b)
    }

    /// `a * factor + b`.
    fn scaled_sum(&self, a: Value<'c, 'a>, factor: f64, b: Value<'c, 'a>) -> Value<'c, 'a> {
        let factor = self.e.float(factor, self.e.f32(), self.lanes);
        self.e.op(math::FMA, &[a, factor, b], b.r#type())
    }
}
