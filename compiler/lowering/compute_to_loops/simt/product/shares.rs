//! The loop over tiles, or over shares of them, and the sums of shares.
use super::{
    super::team::when, Division, Emit, Infallible, Lanes, Place, Range, Schedule, Team, Tiles, ULT,
    arith, ceil_div, indices,
};
use crate::kernel::emit::Buffer;
use irc_mlir::{Type as MlirType, Value};
use irc_tl::Dim;

impl<'c: 'a, 'a> Tiles<'_, '_, 'c, 'a> {
    /// A loop over the tiles of a block, or its shares of them, which carries values.
    pub(super) fn each(
        &self,
        e: Emit<'c, 'a>,
        schedule: &Schedule,
        carried: &[Value<'c, 'a>],
        tile: impl FnOnce(
            Emit<'c, 'a>,
            &Place<'c, 'a>,
            &Range<'c, 'a>,
            &[Value<'c, 'a>],
        ) -> Vec<Value<'c, 'a>>,
    ) {
        let summands = e.index(self.summands());
        if let Some(division) = &schedule.division {
            return self.each_share(e, division, schedule.depth, carried, tile);
        }
        let [outer, down, across] = self.numbers(schedule.tile);
        let bounds = (self.team.team, e.index(outer * down * across), self.team.teams);
        let Ok(_) = e.for_each_step::<Infallible>(bounds, carried, |e, number, carried| {
            let place = self.place(e, schedule.tile, number);
            let range = Range { first: e.index(0), end: summands, place: None, is_whole: None };
            Ok(tile(e, &place, &range, carried))
        });
    }

    /// The same if tiles are divided. A block runs workers, each of which has whole tiles, and then its shares.
    fn each_share(
        &self,
        e: Emit<'c, 'a>,
        division: &Division,
        depth: i64,
        carried: &[Value<'c, 'a>],
        tile: impl FnOnce(
            Emit<'c, 'a>,
            &Place<'c, 'a>,
            &Range<'c, 'a>,
            &[Value<'c, 'a>],
        ) -> Vec<Value<'c, 'a>>,
    ) {
        let Division { workers, whole, shared, steps, distance, share } = *division;
        let rounds = whole / workers;
        let index = |e: Emit<'c, 'a>, condition, yes, no| {
            e.op(arith::SELECT, &[condition, yes, no], MlirType::index(e.context))
        };
        let bounds = (self.team.team, e.index(workers), self.team.teams);
        let Ok(_) = e.for_each_step::<Infallible>(bounds, carried, |e, worker, carried| {
            let total = e.index(shared * distance);
            let first = e.min(e.scale(worker, share), total);
            let end = e.min(e.offset(first, share), total);
            let by = e.index(distance);
            let own = e.binary(arith::DIVUI, first, by);
            let last = e.binary(arith::DIVUI, e.offset(end, -1), by);
            let count = e.binary(arith::SUBI, e.offset(last, 1 + rounds), own);
            e.for_each((e.index(0), count, 1), carried, |e, number, carried| {
                let next = e.add(own, e.offset(number, -rounds));
                let start = e.scale(next, distance);
                let from = e.binary(arith::SUBI, e.max(first, start), start);
                let to = e.min(e.binary(arith::SUBI, end, start), e.index(steps));
                let (mut at, mut from, mut to) = (e.offset(next, whole), from, to);
                if rounds > 0 {
                    let is_whole = e.compare(ULT, number, e.index(rounds));
                    at = index(e, is_whole, e.add(e.scale(number, workers), worker), at);
                    from = index(e, is_whole, e.index(0), from);
                    to = index(e, is_whole, e.index(steps), to);
                }
                let place = match division.places() {
                    1 => worker,
                    _ => {
                        let begins = e.compare(EQ, from, e.index(0));
                        e.add(e.scale(worker, 2), index(e, begins, e.index(1), e.index(0)))
                    }
                };
                let is_whole = division.has_whole().then(|| {
                    let all = e.binary(arith::SUBI, to, from);
                    e.compare(EQ, all, e.index(steps))
                });
                let range = Range {
                    first: e.scale(from, depth),
                    end: e.min(e.scale(to, depth), e.index(self.summands())),
                    place: Some(place),
                    is_whole,
                };
                Ok(tile(e, &self.place(e, self.tile, at), &range, carried))
            })
        });
    }

    /// The number of products, and of the rows and columns of tiles.
    fn numbers(&self, tile: [i64; 2]) -> [i64; 3] {
        let [outer, rows, columns] = [0, 1, 2].map(|group| self.count(group));
        [outer, ceil_div(rows, tile[0]), ceil_div(columns, tile[1])]
    }

    /// Where the tile of a number is.
    fn place(&self, e: Emit<'c, 'a>, tile: [i64; 2], number: Value<'c, 'a>) -> Place<'c, 'a> {
        let [_, down, across] = self.numbers(tile);
        let divided = |number, by: i64| {
            let by = e.index(by);
            (e.binary(arith::DIVUI, number, by), e.binary(arith::REMUI, number, by))
        };
        let (rest, column) = divided(number, across);
        let (outer, row) = divided(rest, down);
        Place { outer, row: e.scale(row, tile[0]), column: e.scale(column, tile[1]) }
    }

    /// Writes the sum of a share, at a row and column of its tile.
    pub(super) fn keep(
        &self,
        e: Emit<'c, 'a>,
        partial: Buffer<'c, 'a>,
        (place, (row, column)): (Value<'c, 'a>, (Value<'c, 'a>, Value<'c, 'a>)),
        sum: Value<'c, 'a>,
    ) {
        let [rows, columns] = self.product.extents(&self.writer.nest.compute, self.tile);
        let line = e.add(e.scale(place, rows), row);
        let at = e.add(e.scale(line, columns), column);
        e.store(sum, partial, at, Lanes::Scalar, None);
    }

    /// Adds the sums of the shares of each tile that is divided, in the order of its summands.
    pub(super) fn add_shares(
        &self,
        e: Emit<'c, 'a>,
        team: &Team<'c, 'a>,
        (division, partial): (&Division, Buffer<'c, 'a>),
    ) {
        let [rows, columns] = self.product.extents(&self.writer.nest.compute, self.tile);
        let all = division.shared * rows * columns;
        let bounds = (team.first(e), e.index(all), team.all(e));
        let Ok(_) = e.for_each_step::<Infallible>(bounds, &[], |e, at, _| {
            let dims = [division.shared, rows, columns].map(Dim::from);
            let [shared, row, column] = indices(e, &dims, at)[..] else { return Ok(vec![]) };
            let place = self.place(e, self.tile, e.offset(shared, division.whole));
            let start = e.scale(shared, division.distance);
            let by = e.index(division.share);
            let first = e.binary(arith::DIVUI, start, by);
            let last = e.binary(arith::DIVUI, e.offset(start, division.steps - 1), by);
            let (to_row, to_column) = (e.add(place.row, row), e.add(place.column, column));
            let inside = e.binary(
                arith::ANDI,
                e.compare(ULT, to_row, e.index(self.count(1))),
                e.compare(ULT, to_column, e.index(self.count(2))),
            );
            let is_divided = e.compare(ULT, first, last);
            when(e, e.binary(arith::ANDI, inside, is_divided), |e| {
                let load = |e: Emit<'c, 'a>, worker, is_first: i64| {
                    let place = match division.places() {
                        1 => worker,
                        _ => e.offset(e.scale(worker, 2), is_first),
                    };
                    let line = e.add(e.scale(place, rows), row);
                    e.load(partial, e.add(e.scale(line, columns), column))
                };
                let bounds = (e.offset(first, 1), e.offset(last, 1), 1);
                let sum = [load(e, first, 1)];
                let Ok(sum) = e.for_each::<Infallible>(bounds, &sum, |e, worker, sum| {
                    Ok(vec![e.binary(arith::ADDF, sum[0], load(e, worker, 0))])
                });
                self.store(e, [place.outer, to_row, to_column], sum[0]);
            });
            Ok(vec![])
        });
    }
}

/// Runs one of two things.
pub(super) fn either<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    condition: Value<'c, 'a>,
    yes: impl FnOnce(Emit<'c, 'a>),
    no: impl FnOnce(Emit<'c, 'a>),
) {
    let then = |e| {
        yes(e);
        Ok::<_, Infallible>(vec![])
    };
    let otherwise = |e| {
        no(e);
        Ok(vec![])
    };
    let Ok(_) = e.if_else(condition, &[], then, otherwise);
}

/// `arith.cmpi` predicate.
const EQ: i64 = 0;
