//! The loop over tiles, or over shares of them, and the sums of shares.
use super::{
    super::team::when, Division, Emit, Infallible, Lanes, MAX_UNROLLED, Method, Place, Range,
    Schedule, Team, Tiles, ULT, arith, ceil_div, indices,
};
use crate::kernel::emit::{Buffer, first_result};
use irc_mlir::{Type as MlirType, Value};
use irc_tl::Dim;

impl<'c: 'a, 'a> Tiles<'_, '_, 'c, 'a> {
    /// A loop over the tiles of a block, or its shares of them, which carries values.
    pub(super) fn each(
        &self,
        e: Emit<'c, 'a>,
        schedule: &Schedule,
        carried: &[Value<'c, 'a>],
        tile: impl FnOnce(Emit<'c, 'a>, &Item<'_, 'c, 'a>, &[Value<'c, 'a>]) -> Vec<Value<'c, 'a>>,
    ) {
        let Some(division) = &schedule.division else {
            let [outer, down, across] = self.numbers(schedule.tile);
            let bounds = (self.team.team, e.index(outer * down * across), self.team.teams);
            let find = |e: Emit<'c, 'a>, number, _| {
                let (first, end) = (e.index(0), e.index(self.summands()));
                let range = Range { first, end, place: None, is_whole: None };
                (self.place(e, schedule.tile, number), range)
            };
            let Ok(_) = e.for_each_step::<Infallible>(bounds, carried, |e, number, carried| {
                let (place, mut range) = find(e, number, number);
                let unrolled = match schedule.method {
                    Method::Staged => 1,
                    _ => MAX_UNROLLED,
                };
                if self.summands() > unrolled * schedule.depth {
                    range.end = self.unknown(e, range.end);
                }
                Ok(tile(e, &Item { place, range, share: (number, number), find: &find }, carried))
            });
            return;
        };
        let find = |e: Emit<'c, 'a>, worker, number| {
            self.share(e, division, schedule.depth, (worker, number))
        };
        // A block runs workers, each of which has whole tiles, and then its shares. Bounds are computed when a tile is done,
        // so that they take no registers until then.
        let index = MlirType::index(e.context);
        let several = Some(division).filter(|division| !division.has_one_share());
        let workers = division.workers;
        when(e, e.compare(ULT, self.team.team, e.index(workers)), |e| {
            let mut start = vec![self.team.team];
            start.extend(several.map(|_| e.index(0)));
            start.extend(carried);
            let Ok(_) = e.repeat_while::<Infallible>(&start, |e, values| {
                let (worker, rest) = (values[0], &values[1..]);
                let (number, rest) = match several {
                    Some(_) => (rest[0], &rest[1..]),
                    None => (e.index(0), rest),
                };
                let (place, range) = find(e, worker, number);
                let item = Item { place, range, share: (worker, number), find: &find };
                let carried = tile(e, &item, rest);
                let worker = self.again(e, worker);
                let teams = first_result(self.call(e, "irc_gpu_teams", &[], &[index]));
                let other = e.add(worker, teams);
                let mut next = vec![other];
                if let Some(division) = several {
                    let following = e.offset(self.again(e, number), 1);
                    let has_more = e.compare(ULT, following, count_of(e, division, worker));
                    let select = |yes, no| e.op(arith::SELECT, &[has_more, yes, no], index);
                    next = vec![select(worker, other), select(following, e.index(0))];
                }
                let goes_on = e.compare(ULT, next[0], e.index(workers));
                next.extend(carried);
                Ok((goes_on, next))
            });
        });
    }

    /// Where a number of the tiles and shares of a worker is, and its summands.
    fn share(
        &self,
        e: Emit<'c, 'a>,
        division: &Division,
        depth: i64,
        (worker, number): (Value<'c, 'a>, Value<'c, 'a>),
    ) -> (Place<'c, 'a>, Range<'c, 'a>) {
        let Division { workers, whole, steps, distance, .. } = *division;
        let rounds = whole / workers;
        let select = |condition, yes, no| {
            e.op(arith::SELECT, &[condition, yes, no], MlirType::index(e.context))
        };
        let [first, end] = ends(e, division, worker);
        let own = e.binary(arith::DIVUI, first, e.index(distance));
        let next = e.add(own, e.offset(number, -rounds));
        let start = e.scale(next, distance);
        let mut at = e.offset(next, whole);
        let mut from = e.binary(arith::SUBI, e.max(first, start), start);
        let mut to = e.min(e.binary(arith::SUBI, end, start), e.index(steps));
        if rounds > 0 {
            let is_whole = e.compare(ULT, number, e.index(rounds));
            at = select(is_whole, e.add(e.scale(number, workers), worker), at);
            from = select(is_whole, e.index(0), from);
            to = select(is_whole, e.index(steps), to);
        }
        let place = match division.places() {
            1 => worker,
            _ => {
                let begins = e.compare(EQ, from, e.index(0));
                e.add(e.scale(worker, 2), select(begins, e.index(1), e.index(0)))
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
        (self.place(e, self.tile, at), range)
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

/// Where the tile or share of a worker and a number is, and its summands.
type Find<'f, 'c, 'a> =
    dyn Fn(Emit<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>) -> (Place<'c, 'a>, Range<'c, 'a>) + 'f;

/// A tile, or a share of one.
pub(super) struct Item<'f, 'c, 'a> {
    pub(super) place: Place<'c, 'a>,
    pub(super) range: Range<'c, 'a>,
    /// The worker and its number of the share, or the number of the tile twice, and how they are found.
    share: (Value<'c, 'a>, Value<'c, 'a>),
    find: &'f Find<'f, 'c, 'a>,
}

impl<'c: 'a, 'a> Item<'_, 'c, 'a> {
    /// The place and summands, computed again, so that neither they nor what depends on them take registers until then.
    pub(super) fn again(
        &self,
        e: Emit<'c, 'a>,
        tiles: &Tiles<'_, '_, 'c, 'a>,
    ) -> (Place<'c, 'a>, Range<'c, 'a>) {
        let (worker, number) = (tiles.again(e, self.share.0), tiles.again(e, self.share.1));
        (self.find)(e, worker, number)
    }
}

/// The first step of the share of a worker, and the one after its last, in the row of all.
fn ends<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    division: &Division,
    worker: Value<'c, 'a>,
) -> [Value<'c, 'a>; 2] {
    let total = e.index(division.shared * division.distance);
    let first = e.min(e.scale(worker, division.share), total);
    [first, e.min(e.offset(first, division.share), total)]
}

/// The number of tiles and shares of a worker, which has one or more.
fn count_of<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    division: &Division,
    worker: Value<'c, 'a>,
) -> Value<'c, 'a> {
    let by = e.index(division.distance);
    let [first, end] = ends(e, division, worker);
    let [own, last] = [first, e.offset(end, -1)].map(|step| e.binary(arith::DIVUI, step, by));
    let rounds = division.whole / division.workers;
    e.binary(arith::SUBI, e.offset(last, 1 + rounds), own)
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
