//! The sums of lanes of products on tensor cores: a fragment after the other goes through shared memory, so that neighbouring
//! lanes have neighbouring elements of the result.
use super::{
    super::team::{shared_memory, shared_type},
    Emit, FRAGMENT, FRAGMENT_BYTES, FRAGMENT_COLUMNS, FRAGMENT_ROWS, Infallible, Lanes, Place,
    Range, Tiles, arith,
    shares::Item,
};
use crate::kernel::emit::Buffer;
use irc_mlir::{Value, ops::memref};

impl<'c: 'a, 'a> Tiles<'_, '_, 'c, 'a> {
    /// Uses the sums of a lane, whose fragments begin at a row and column of the tile of a thread and their number.
    ///
    /// The sums take most registers, so that nothing else is computed before a fragment is in shared memory.
    pub(super) fn finish(
        &self,
        e: Emit<'c, 'a>,
        item: &Item<'_, 'c, 'a>,
        sums: &[Value<'c, 'a>],
        first: impl Fn(Emit<'c, 'a>, Value<'c, 'a>, i64) -> (Value<'c, 'a>, Value<'c, 'a>),
    ) {
        let mut found = None;
        for (number, sums) in sums.chunks(FRAGMENT).enumerate() {
            self.spread(e, sums);
            let (place, range, thread, lines) = *found.get_or_insert_with(|| {
                let (place, range) = item.again(e, self);
                (place, range, self.thread_again(e), self.unknown(e, e.index(FRAGMENT_ROWS)))
            });
            let first = first(e, thread, number as i64);
            self.gather(e, (&place, &range), (thread, lines), first);
        }
    }

    /// Writes the sums of a fragment, 16 rows and 32 columns, to shared memory, so that neighbouring lanes have neighbouring
    /// elements: of a lane, for each 8 columns, two neighbours at twice its number modulo 4, in the row of a quarter of its
    /// number, and two 8 rows below.
    fn spread(&self, e: Emit<'c, 'a>, sums: &[Value<'c, 'a>]) {
        let thread = self.thread_again(e);
        let (own, lane) = self.fragment(e, thread);
        let by_four = e.index(4);
        let group = e.binary(arith::DIVUI, lane, by_four);
        let pair = e.scale(e.binary(arith::REMUI, lane, by_four), 2);
        self.wait_in_warp(e);
        for (number, sum) in sums.iter().enumerate() {
            let (block, half, next) = (number as i64 / 4, number as i64 / 2 % 2, number as i64 % 2);
            let (row, column) = (e.offset(group, 8 * half), e.offset(pair, 8 * block + next));
            e.store(*sum, own, place_in_fragment(e, row, column), Lanes::Scalar, None);
        }
        self.wait_in_warp(e);
    }

    /// Uses the sums of a fragment in shared memory, which is at a row and column of the tile. `lines` is the number of its
    /// rows, of which the compilers do not know that.
    fn gather(
        &self,
        e: Emit<'c, 'a>,
        at: (&Place<'c, 'a>, &Range<'c, 'a>),
        (thread, lines): (Value<'c, 'a>, Value<'c, 'a>),
        (row, column): (Value<'c, 'a>, Value<'c, 'a>),
    ) {
        let (own, lane) = self.fragment(e, thread);
        // Addresses of this fragment take no registers while those before are used.
        let hidden = self.again(e, column);
        let Ok(_) = e.for_each::<Infallible>((e.index(0), lines, 4), &[], |e, first, _| {
            let lines = [0, 1, 2, 3].map(|line| e.offset(first, line));
            let sums = lines.map(|line| e.load(own, place_in_fragment(e, line, lane)));
            for (line, sum) in lines.into_iter().zip(sums) {
                let row = e.add(row, line);
                self.when_inside(e, at.0, (row, e.add(column, lane)), |e| {
                    self.use_sum(e, at, (row, e.add(hidden, lane)), sum);
                });
            }
            Ok(vec![])
        });
    }

    /// The shared memory of a warp for a fragment, and the number of the lane.
    fn fragment(&self, e: Emit<'c, 'a>, thread: Value<'c, 'a>) -> (Buffer<'c, 'a>, Value<'c, 'a>) {
        let by_warp = e.index(32);
        let warp = e.binary(arith::DIVUI, thread, by_warp);
        let start = e.offset(self.team.shared, self.fragments);
        let start = e.add(start, e.scale(warp, FRAGMENT_BYTES));
        let ty = shared_type(e.context, FRAGMENT_ROWS * FRAGMENT_COLUMNS, e.f32());
        let memref = e.op(memref::VIEW, &[shared_memory(e), start], ty);
        (Buffer { memref, element: e.f32() }, e.binary(arith::REMUI, thread, by_warp))
    }
}

/// The place of an element of a fragment in shared memory: columns are permuted by row, so that lanes access different
/// banks.
fn place_in_fragment<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    row: Value<'c, 'a>,
    column: Value<'c, 'a>,
) -> Value<'c, 'a> {
    let quarter = e.binary(arith::DIVUI, row, e.index(4));
    let low = e.scale(e.binary(arith::REMUI, row, e.index(4)), 8);
    let mask = e.add(low, e.binary(arith::REMUI, quarter, e.index(2)));
    e.add(e.scale(row, FRAGMENT_COLUMNS), e.binary(arith::XORI, column, mask))
}
