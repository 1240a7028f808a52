//! Whether a product reads the rows of its right operand where they are, or copies them.
//!
//! Rows whose distance is a multiple of a large power of two are in few sets of a cache, where they displace each other.
use super::emit::Emit;
use irc_mlir::{Value, ops::arith};

/// The elements of `f32` after which lines are in the same set of a second-level cache, and the number of those that stay there.
const SETS: i64 = 1 << 14;
const WAYS: i64 = 8;

/// As above, of a first-level cache.
const FIRST_SETS: i64 = 1 << 10;
const FIRST_WAYS: i64 = 12;

/// Whether so many rows of `f32`, so many elements apart, stay in a second-level cache, and are not all in the same set of a
/// first-level one.
pub fn stay(rows: i64, distance: i64) -> bool {
    let lowest = lowest_bit(distance);
    rows.saturating_mul(lowest) <= SETS * WAYS && lowest < FIRST_SETS
}

/// Whether they stay in a first-level cache.
pub fn stay_close(rows: i64, distance: i64) -> bool {
    rows.saturating_mul(lowest_bit(distance)) <= FIRST_SETS * FIRST_WAYS
}

/// As [`stay`], where the distance is known at run time.
pub fn emit_stay<'c: 'a, 'a>(e: Emit<'c, 'a>, rows: i64, distance: Value<'c, 'a>) -> Value<'c, 'a> {
    const SLE: i64 = 3;
    const SLT: i64 = 2;
    let opposite = e.binary(arith::SUBI, e.index(0), distance);
    let lowest = e.binary(arith::ANDI, distance, opposite);
    let stay = e.compare(SLE, e.scale(lowest, rows), e.index(SETS * WAYS));
    let differ = e.compare(SLT, lowest, e.index(FIRST_SETS));
    e.binary(arith::ANDI, stay, differ)
}

fn lowest_bit(number: i64) -> i64 {
    number & number.wrapping_neg()
}
