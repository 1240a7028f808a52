//! The transforms of tiles and sums, on vectors of tiles.
use crate::kernel::emit::{Emit, Lanes};
use irc_mlir::ops::{arith, math};
use irc_mlir::{Value, ValueLike};

/// Tiles of four chunks, each of a quarter as many tiles as a vector has lanes.
#[derive(Clone, Copy)]
pub struct Tiles {
    /// Rows and columns of the result of a tile: 4 or 2.
    pub size: i64,
    pub lanes: Lanes,
}

impl Tiles {
    /// Tiles in a chunk.
    pub fn of_chunk(self) -> i64 {
        self.lanes.count() / 4
    }

    /// Rows and columns of the operand that a tile reads.
    pub fn reads(self) -> usize {
        self.size as usize + 2
    }

    /// The columns of tiles of the operand: element `j` of the result holds column `j` of each tile. `load` reads a vector of
    /// a chunk from a column on.
    pub fn read<'c: 'a, 'a>(
        self,
        e: Emit<'c, 'a>,
        load: impl Fn(usize, i64) -> Value<'c, 'a>,
    ) -> Vec<Value<'c, 'a>> {
        let from = |offset: i64| (0..4).map(|chunk| load(chunk, offset)).collect::<Vec<_>>();
        let first = from(0);
        let mut columns = vec![];
        for from in [0, 2] {
            columns.extend(self.two_columns(e, &first, from));
        }
        if self.size == 4 {
            columns.extend(self.two_columns(e, &from(4), 0));
        }
        columns
    }

    /// Columns `from` and `from + 1` of the tiles of four chunks.
    fn two_columns<'c: 'a, 'a>(
        self,
        e: Emit<'c, 'a>,
        chunks: &[Value<'c, 'a>],
        from: i64,
    ) -> [Value<'c, 'a>; 2] {
        let (count, each) = (self.lanes.count(), self.of_chunk());
        // Of two chunks: one column of all their tiles, then the next.
        let picks: Vec<i64> = (0..count)
            .map(|lane| {
                let (column, tile) = (from + lane / (count / 2), lane % (count / 2));
                tile / each * count + tile % each * self.size + column
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

    /// The opposite of `read` for tiles of the result: their columns as four chunks, each of which starts with the
    /// columns of its tiles.
    pub fn write<'c: 'a, 'a>(
        self,
        e: Emit<'c, 'a>,
        columns: &[Value<'c, 'a>],
    ) -> [Value<'c, 'a>; 4] {
        let (count, each) = (self.lanes.count(), self.of_chunk());
        if let [first, second] = columns {
            return std::array::from_fn(|chunk| {
                let place = |lane: i64| chunk as i64 * each + lane / 2 % each + lane % 2 * count;
                e.shuffle(*first, *second, &(0..count).map(place).collect::<Vec<_>>())
            });
        }
        // Pairs of columns of half of the tiles.
        let pairs = |a: Value<'c, 'a>, b: Value<'c, 'a>, half: i64| {
            let picks: Vec<i64> = (0..count)
                .map(|lane| half * (count / 2) + lane / 2 + if lane % 2 == 0 { 0 } else { count })
                .collect();
            e.shuffle(a, b, &picks)
        };
        std::array::from_fn(|number| {
            let number = number as i64;
            let [left, right] = [0, 2].map(|at| pairs(columns[at], columns[at + 1], number / 2));
            let picks: Vec<i64> = (0..count)
                .map(|lane| {
                    let (tile, column) = (lane / 4, lane % 4);
                    let place = (number % 2) * (count / 2) + 2 * tile + column % 2;
                    place + if column < 2 { 0 } else { count }
                })
                .collect();
            e.shuffle(left, right, &picks)
        })
    }

    /// The transform of the elements of a tile along one axis.
    pub fn to_points<'c: 'a, 'a>(self, e: Emit<'c, 'a>, x: &[Value<'c, 'a>]) -> Vec<Value<'c, 'a>> {
        let m = Math { e, lanes: self.lanes };
        if self.size == 2 {
            return vec![
                m.difference(x[0], x[2]),
                m.sum(x[1], x[2]),
                m.difference(x[2], x[1]),
                m.difference(x[1], x[3]),
            ];
        }
        let a = m.scaled_sum(x[2], -4.0, x[4]);
        let b = m.scaled_sum(x[1], -4.0, x[3]);
        let c = m.difference(x[4], x[2]);
        let d = m.difference(x[3], x[1]);
        vec![
            m.scaled_sum(x[0], 4.0, m.scaled_sum(x[2], -5.0, x[4])),
            m.sum(a, b),
            m.difference(a, b),
            m.scaled_sum(d, 2.0, c),
            m.scaled_sum(d, -2.0, c),
            m.scaled_sum(x[1], 4.0, m.scaled_sum(x[3], -5.0, x[5])),
        ]
    }

    /// The transform of the sums of points to elements of the result along one axis.
    pub fn to_result<'c: 'a, 'a>(self, e: Emit<'c, 'a>, x: &[Value<'c, 'a>]) -> Vec<Value<'c, 'a>> {
        let m = Math { e, lanes: self.lanes };
        let (near, near_difference) = (m.sum(x[1], x[2]), m.difference(x[1], x[2]));
        if self.size == 2 {
            return vec![m.sum(x[0], near), m.difference(near_difference, x[3])];
        }
        let (far, far_difference) = (m.sum(x[3], x[4]), m.difference(x[3], x[4]));
        vec![
            m.sum(m.sum(x[0], near), far),
            m.scaled_sum(far_difference, 2.0, near_difference),
            m.scaled_sum(far, 4.0, near),
            m.sum(m.scaled_sum(far_difference, 8.0, near_difference), x[5]),
        ]
    }
}

/// Rows as columns.
pub fn flipped<T: Copy>(rows: &[Vec<T>]) -> Vec<Vec<T>> {
    let columns = rows.first().map_or(0, Vec::len);
    (0..columns).map(|column| rows.iter().map(|row| row[column]).collect()).collect()
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
