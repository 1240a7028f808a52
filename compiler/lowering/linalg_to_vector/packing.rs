//! Copies blocks of `A` and `B` into the order in which the micro-kernel reads them.
use super::{
    body::apply,
    dots::{self, Halves},
    error::Result,
    kernel::name_of,
};
use crate::kernel::{
    emit::{Buffer, Emit, Lanes, Prefetch},
    transpose,
};
use irc_mlir::ops::{arith, vector};
use irc_mlir::{OperationRef, Type, Value};

/// One panel of `B`: `columns` columns, `depth` rows, to be packed row by row without gaps.
#[derive(Clone, Copy)]
pub struct Panel<'p, 'c, 'a> {
    /// `B`.
    pub from: Buffer<'c, 'a>,
    /// The packed block.
    pub to: Buffer<'c, 'a>,
    /// Conversions to the accumulator's type.
    pub casts: &'p [OperationRef<'c, 'a>],
    /// The accumulator's type.
    pub element: Type<'c>,
    /// The vector width.
    pub lanes: Lanes,
    /// The stride between columns of `B`, in elements.
    pub across: i64,
    /// The stride between rows of `B`, in elements.
    pub along: i64,
    /// Rows in this block.
    pub depth: Value<'c, 'a>,
    /// Rows modulo the vector width in the last block.
    pub depth_tail: i64,
    /// Columns.
    pub columns: i64,
    /// How many of them `B` has, at least one; all if it is `None`.
    pub live: Option<Value<'c, 'a>>,
    /// How elements of four bytes are stored, if not as they are.
    pub stored: Option<Halves>,
}

/// The number of columns of a packed panel, including padding.
pub fn panel_width(columns: i64, lanes: Lanes) -> i64 {
    (columns + lanes.count() - 1) / lanes.count() * lanes.count()
}

/// Number of rows to prefetch ahead of the one being packed.
const ROWS_AHEAD: i64 = 16;

/// Packs one panel; columns beyond the last are zero.
///
/// # Errors
/// At a conversion without a vector form.
pub fn pack_panel<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    panel: &Panel<'_, 'c, 'a>,
    source: Value<'c, 'a>,
    target: Value<'c, 'a>,
) -> Result<()> {
    if panel.along == 1 && panel.across != 1 {
        return transpose_panel(e, panel, source, target);
    }
    let (width, padded) = (panel.lanes.count(), panel_width(panel.columns, panel.lanes));
    let (zero, last) = (e.index(0), e.offset(panel.depth, -1));
    e.for_each((zero, panel.depth, 1), &[], |e, k, _| {
        let from = e.add(source, e.scale(k, panel.along));
        let to = e.add(target, e.scale(k, padded));
        if panel.across == 1 && panel.along > panel.columns {
            let ahead = e.min(e.offset(k, ROWS_AHEAD), last);
            prefetch_row(e, panel, e.add(source, e.scale(ahead, panel.along)));
        }
        for first in (0..padded).step_by(width as usize) {
            let mask = match panel.live {
                None => e.tail_mask(panel.columns - first, panel.lanes),
                Some(live) => e.first_lanes(e.offset(live, -first), panel.lanes),
            };
            let at = e.offset(from, first * panel.across);
            let value = if panel.across == 1 {
                e.load_lanes(panel.from, at, panel.lanes, mask)
            } else {
                e.load_strided(panel.from, (at, panel.across), panel.lanes, mask)
            };
            let value = convert(e, panel.casts, value, panel.lanes)?;
            dots::store(e, value, (panel.to, e.offset(to, first)), panel.lanes, panel.stored);
        }
        Ok(vec![])
    })
    .map(|_| ())
}

/// Prefetches a row of a panel: hardware prefetchers do not predict rows that are far apart.
fn prefetch_row<'c: 'a, 'a>(e: Emit<'c, 'a>, panel: &Panel<'_, 'c, 'a>, at: Value<'c, 'a>) {
    for first in (0..panel.columns).step_by(panel.lanes.count() as usize) {
        e.prefetch(panel.from, e.offset(at, first), Prefetch::Read);
    }
}

/// Packs a panel of a `B` that is contiguous along `k` by transposing square blocks in registers.
fn transpose_panel<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    panel: &Panel<'_, 'c, 'a>,
    source: Value<'c, 'a>,
    target: Value<'c, 'a>,
) -> Result<()> {
    let width = panel.lanes.count();
    let whole = if panel.depth_tail == 0 {
        panel.depth
    } else {
        let rest = e.binary(arith::REMSI, panel.depth, e.index(width));
        e.binary(arith::SUBI, panel.depth, rest)
    };
    e.for_each((e.index(0), whole, width), &[], |e, k, _| {
        transpose_rows(e, panel, source, target, k, width).map(|()| vec![])
    })?;
    if panel.depth_tail == 0 {
        return Ok(());
    }
    let some = e.compare(2, whole, panel.depth);
    let tail =
        |e| transpose_rows(e, panel, source, target, whole, panel.depth_tail).map(|()| vec![]);
    e.if_else(some, &[], tail, |_| Ok(vec![])).map(|_| ())
}

fn transpose_rows<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    panel: &Panel<'_, 'c, 'a>,
    source: Value<'c, 'a>,
    target: Value<'c, 'a>,
    k: Value<'c, 'a>,
    live: i64,
) -> Result<()> {
    let (width, padded) = (panel.lanes.count(), panel_width(panel.columns, panel.lanes));
    let mask = e.tail_mask(live, panel.lanes);
    for first in (0..padded).step_by(width as usize) {
        let mut rows = vec![];
        for column in first..first + width {
            if column >= panel.columns {
                rows.push(e.zero(panel.element, panel.lanes));
                continue;
            }
            let at = match panel.live {
                None => e.offset(e.add(source, k), column * panel.across),
                // Columns after the last one are never used.
                Some(live) => {
                    let column = e.min(e.index(column), e.offset(live, -1));
                    e.add(e.add(source, k), e.scale(column, panel.across))
                }
            };
            let row = e.load_lanes(panel.from, at, panel.lanes, mask);
            rows.push(convert(e, panel.casts, row, panel.lanes)?);
        }
        transpose::square(e, &mut rows);
        let to = e.add(target, e.scale(k, padded));
        for (depth, row) in rows.iter().take(live as usize).enumerate() {
            let at = e.offset(to, depth as i64 * padded + first);
            dots::store(e, *row, (panel.to, at), panel.lanes, panel.stored);
        }
    }
    Ok(())
}

/// A conversion of a block of `A`.
pub struct Copy<'p, 'c, 'a> {
    /// `A`.
    pub from: Buffer<'c, 'a>,
    /// The packed block.
    pub to: Buffer<'c, 'a>,
    /// Conversions to the accumulator's type.
    pub casts: &'p [OperationRef<'c, 'a>],
    /// The vector width.
    pub lanes: Lanes,
    /// How elements of four bytes are stored, if not as they are.
    pub stored: Option<Halves>,
}

/// Copies `rows` contiguous rows of `length` elements, from `(start, stride)` to rows of stride `row`.
///
/// # Errors
/// At a conversion without a vector form.
pub fn convert_rows<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    copy: &Copy<'_, 'c, 'a>,
    (start, stride): (Value<'c, 'a>, i64),
    row: i64,
    rows: Value<'c, 'a>,
    length: Value<'c, 'a>,
) -> Result<()> {
    let zero = e.index(0);
    e.for_each((zero, rows, 1), &[], |e, i, _| {
        let (from, to) = (e.add(start, e.scale(i, stride)), e.scale(i, row));
        e.for_each((zero, length, copy.lanes.count()), &[], |e, k, _| {
            let rest = e.binary(arith::SUBI, length, k);
            let mask = e.op(vector::CREATE_MASK, &[rest], copy.lanes.of(e.int(1)));
            let value = e.load_lanes(copy.from, e.add(from, k), copy.lanes, Some(mask));
            let value = convert(e, copy.casts, value, copy.lanes)?;
            dots::store(e, value, (copy.to, e.add(to, k)), copy.lanes, copy.stored);
            Ok(vec![])
        })?;
        Ok(vec![])
    })
    .map(|_| ())
}

/// Copies single elements from `(start, row stride, element stride)` to rows of stride `row`.
///
/// # Errors
/// At a conversion without a scalar form.
pub fn convert_elements<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    copy: &Copy<'_, 'c, 'a>,
    (start, across, along): (Value<'c, 'a>, i64, i64),
    row: i64,
    rows: Value<'c, 'a>,
    length: Value<'c, 'a>,
) -> Result<()> {
    let zero = e.index(0);
    e.for_each((zero, rows, 1), &[], |e, i, _| {
        e.for_each((zero, length, 1), &[], |e, k, _| {
            let from = e.add(e.add(start, e.scale(i, across)), e.scale(k, along));
            let value = convert(e, copy.casts, e.load(copy.from, from), Lanes::Scalar)?;
            e.store(value, copy.to, e.add(e.scale(i, row), k), Lanes::Scalar, None);
            Ok(vec![])
        })?;
        Ok(vec![])
    })
    .map(|_| ())
}

/// A value after conversions.
///
/// # Errors
/// At a conversion that has no form for these lanes.
pub fn convert<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    casts: &[OperationRef<'c, 'a>],
    mut value: Value<'c, 'a>,
    lanes: Lanes,
) -> Result<Value<'c, 'a>> {
    for op in casts {
        value = apply(e, *op, &name_of(*op), &[value], lanes)?;
    }
    Ok(value)
}
