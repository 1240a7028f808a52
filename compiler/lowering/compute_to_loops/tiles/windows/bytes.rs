//! Windows of bytes: those of four neighbouring columns are multiplied at a time.
use super::{Line, Windows};
use crate::kernel::emit::{Emit, Lanes};
use crate::lowering::compute_to_loops::tiles::{Tile, ULT, Writer};
use crate::lowering::linalg_to_vector::dots::{self, Dots};
use irc_mlir::ops::arith;
use irc_mlir::{Value, attr};

impl<'c: 'a, 'a> Writer<'_, 'c, 'a> {
    /// The bytes of a line that are loaded at once.
    pub(super) fn bytes_of_line(&self) -> Lanes {
        Lanes::Vector(if self.tiles.step == 1 { 32 } else { 64 })
    }

    /// As [`Self::add_line`], of bytes, of which those of four neighbouring columns of a window are multiplied at a time.
    pub(super) fn add_bytes(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
        line: &Line<'_, 'c, 'a>,
        place: Option<Value<'c, 'a>>,
        sums: &mut [Value<'c, 'a>],
    ) {
        let lanes = self.bytes_of_line();
        let outside = self.outside(e, lanes);
        let bytes = match place {
            None if self.tiles.outside == 0 => return,
            None => outside,
            Some(place) => {
                let mask = line.masks.get(&(0, lanes.count()));
                self.load(e, place, lanes, mask.map(|mask| (*mask, outside)))
            }
        };
        let words = dots::cast(e, bytes, 32, lanes.count() / 4);
        let groups = windows.words();
        for group in 0..groups {
            let quads = dots::neighbours(e, (words, lanes), (self.tiles.step, group), self.lanes);
            for row in 0..tile.rows {
                if let Some(above) = windows.tap(line.line, row) {
                    let sum = &mut sums[row as usize];
                    let word = line.factors[(above * groups + group) as usize];
                    *sum = Dots::Vnni.add(e, [quads, word], *sum, self.lanes);
                }
            }
        }
    }

    /// The factors of a window of bytes: four neighbouring columns each, in all lanes, row after row.
    pub(super) fn words(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
    ) -> Vec<Value<'c, 'a>> {
        let [rows, columns] = windows.taps;
        let words =
            (0..rows.count).flat_map(|row| (0..windows.words()).map(move |word| (row, word)));
        let word = |(row, word): (i64, i64)| {
            let bytes = (0..4).map(|byte| {
                let column = 4 * word + byte;
                let is_tap = column % columns.distance == 0 && column <= columns.reach();
                match is_tap {
                    true => self.factor(e, windows, tile, [row, column / columns.distance]),
                    false => e.integer(0, 8, Lanes::Scalar),
                }
            });
            e.splat(dots::joined(e, &bytes.collect::<Vec<_>>(), Lanes::Scalar), self.lanes)
        };
        words.map(word).collect()
    }
}

impl Windows {
    /// The words of four neighbouring columns that a row of a window of bytes has.
    fn words(&self) -> i64 {
        self.taps[1].reach() / 4 + 1
    }
}

/// The mask of lanes of bytes whose number plus the first value is below the second one, as unsigned numbers.
pub(super) fn mask_of_bytes<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    lanes: Lanes,
    [first, size]: [Value<'c, 'a>; 2],
) -> Value<'c, 'a> {
    let number = |value| e.integer(value, 32, Lanes::Scalar);
    let within = |value| {
        let least = e.binary(arith::MAXSI, value, number(0));
        e.binary(arith::MINSI, least, number(lanes.count()))
    };
    let start = within(e.binary(arith::SUBI, number(0), first));
    let end = within(e.binary(arith::SUBI, size, first));
    let count = e.binary(arith::MAXSI, e.binary(arith::SUBI, end, start), number(0));
    let in_lanes = |value| e.splat(e.op(arith::TRUNCI, &[value], e.int(8)), lanes);
    let numbers: Vec<String> = (0..lanes.count()).map(|lane| lane.to_string()).collect();
    let ty = lanes.of(e.int(8));
    let numbers = format!("dense<[{}]> : {ty}", numbers.join(", "));
    let numbers = attr::parse(e.context, &numbers);
    let numbers = e.value(e.spec(arith::CONSTANT).attr("value", numbers).results(&[ty]));
    let after = e.binary(arith::SUBI, numbers, in_lanes(start));
    let spec = e.spec(arith::CMPI).operands(&[after, in_lanes(count)]);
    let spec = spec.attr("predicate", attr::i64(e.context, ULT));
    e.value(spec.results(&[lanes.of(e.int(1))]))
}
