//! Whether a product reads the rows of its right operand where they are, or copies them.
//!
//! Rows whose distance is a multiple of a large power of two are in few sets of a cache, where they displace each other.
use super::emit::Emit;
use irc_mlir::{Value, ops::arith};

/// The elements of `f32` in a way of a second-level cache, after which lines are in the same set, and the number of ways that a
/// product may use.
const L2_WAY: i64 = 1 << 14;
const L2_WAYS: i64 = 8;

/// As above, of a first-level cache.
const L1_WAY: i64 = 1 << 10;
const L1_WAYS: i64 = 12;

/// Whether so many rows of `f32`, so many elements apart, fit in a second-level cache, and are not all in the same set of a
/// first-level one.
pub fn fits_l2(rows: i64, distance: i64) -> bool {
    let lowest = lowest_bit(distance);
    rows.saturating_mul(lowest) <= L2_WAY * L2_WAYS && lowest < L1_WAY
}

/// Whether they fit in a first-level cache.
pub fn fits_l1(rows: i64, distance: i64) -> bool {
    rows.saturating_mul(lowest_bit(distance)) <= L1_WAY * L1_WAYS
}

/// As [`fits_l2`], where the distance is known at run time.
pub fn emit_fits_l2<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    rows: i64,
    distance: Value<'c, 'a>,
) -> Value<'c, 'a> {
    const SLE: i64 = 3;
    const SLT: i64 = 2;
    let opposite = e.binary(arith::SUBI, e.index(0), distance);
    let lowest = e.binary(arith::ANDI, distance, opposite);
    let fits = e.compare(SLE, e.scale(lowest, rows), e.index(L2_WAY * L2_WAYS));
    let differ = e.compare(SLT, lowest, e.index(L1_WAY));
    e.binary(arith::ANDI, fits, differ)
}

fn lowest_bit(number: i64) -> i64 {
    number & number.wrapping_neg()
}
