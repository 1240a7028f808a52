//! The columns of a matrix product after the last whole vector, if they are few, with rows in lanes: the left factors of as many
//! adjacent rows as a tile has are a vector, and each column is a scalar. A vector of columns would have idle lanes.
use super::emit::{Emit, Lanes};
use irc_mlir::ops::{arith, math};
use irc_mlir::{Type, TypeLike, Value, ValueLike};
use std::convert::Infallible;

/// The maximum number of columns.
pub const MAX_COLUMNS: i64 = 4;

/// The maximum number of steps that are independent.
pub const MAX_STEPS: i64 = 4;

/// The steps along the depth that have sums of their own, so that products of so few columns do not wait for each other.
fn independent_steps(columns: i64) -> i64 {
    if columns == 1 { MAX_STEPS } else { 2 }
}

/// The type of factors and sums, and a function that adds the product of a factor of rows and one of a column, in so many lanes, to a
/// sum.
#[derive(Clone, Copy)]
pub struct Products<'c, 'a> {
    pub element: Type<'c>,
    pub add: fn(Emit<'c, 'a>, [Value<'c, 'a>; 2], Value<'c, 'a>, Lanes) -> Value<'c, 'a>,
}

impl<'c: 'a, 'a> Products<'c, 'a> {
    /// Those of single precision.
    pub fn floats(e: Emit<'c, 'a>) -> Self {
        let add = |e: Emit<'c, 'a>, [rows, column]: [Value<'c, 'a>; 2], sum: Value<'c, 'a>, _| {
            e.op(math::FMA, &[rows, column, sum], sum.r#type())
        };
        Self { element: e.f32(), add }
    }

    /// The sum of two sums.
    pub fn sum(&self, e: Emit<'c, 'a>, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        let addition = if self.element.is_integer() { arith::ADDI } else { arith::ADDF };
        e.binary(addition, x, y)
    }
}

/// The sums of each of so many columns, at most [`MAX_COLUMNS`]. The depth is a multiple of [`MAX_STEPS`]. `rows` has the factors
/// of a step, in `lanes`, and `column` that of a step and a column, in all of them.
pub fn sums<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    (columns, depth): (i64, Value<'c, 'a>),
    (lanes, products): (Lanes, Products<'c, 'a>),
    rows: &dyn Fn(Emit<'c, 'a>, Value<'c, 'a>) -> Value<'c, 'a>,
    column: &dyn Fn(Emit<'c, 'a>, Value<'c, 'a>, i64) -> Value<'c, 'a>,
) -> Vec<Value<'c, 'a>> {
    let steps = independent_steps(columns);
    let zero = e.zero(products.element, lanes);
    let zeros = vec![zero; (columns * steps) as usize];
    let Ok(all) = e.for_each::<Infallible>((e.index(0), depth, steps), &zeros, |e, k, sums| {
        let mut next = vec![];
        for step in 0..steps {
            let k = e.offset(k, step);
            let factors = rows(e, k);
            for number in 0..columns {
                let sum = sums[next.len()];
                next.push((products.add)(e, [factors, column(e, k, number)], sum, lanes));
            }
        }
        Ok(next)
    });
    let sum = |number: i64| {
        let own = all.iter().skip(number as usize).step_by(columns as usize).copied();
        own.reduce(|x, y| products.sum(e, x, y))
    };
    (0..columns).filter_map(sum).collect()
}

/// Columns, at most [`MAX_COLUMNS`], whose lanes are so many rows, exchanged: rows whose lanes are columns, of twice as many lanes.
pub fn by_row<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    columns: &[Value<'c, 'a>],
    (rows, element): (i64, Type<'c>),
) -> Vec<Value<'c, 'a>> {
    let zero = e.zero(element, Lanes::Vector(rows));
    let column = |number: usize| columns.get(number).copied().unwrap_or(zero);
    let lanes = Lanes::Vector(2 * rows);
    // Pairs of columns of each row, then all of them.
    let pairs: Vec<i64> = (0..2 * rows).map(|lane| lane / 2 + lane % 2 * rows).collect();
    let pairs = [0, 2]
        .map(|first| e.shuffle_to(column(first), column(first + 1), &pairs, lanes.of(element)));
    let of_row = |row: i64| {
        let pick = |lane: i64| 2 * row + lane % 2 + lane / 2 % 2 * 2 * rows;
        e.shuffle(pairs[0], pairs[1], &(0..2 * rows).map(pick).collect::<Vec<_>>())
    };
    (0..rows).map(of_row).collect()
}
