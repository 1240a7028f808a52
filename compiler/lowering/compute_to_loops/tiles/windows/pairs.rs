//! Windows that begin at every second column: even or odd elements of two vectors.
use super::{MAX_FLOATS, Windows};
use crate::kernel::emit::{Emit, Lanes};
use crate::lowering::compute_to_loops::tiles::Writer;
use irc_mlir::{Value, ValueLike};
use std::collections::BTreeMap;

/// Lanes that processors move together.
const GROUP: i64 = 4;

/// The elements of a tap with a step of 2: even or odd ones of two vectors from a place on, or those so many after them, the last
/// of which are those of a third vector.
pub(super) struct Pair {
    start: i64,
    odd: i64,
    shift: i64,
    tail: Option<Lanes>,
}

impl Pair {
    /// The vectors that are loaded: their places and numbers of lanes.
    pub(super) fn loads(&self, lanes: Lanes) -> Vec<(i64, Lanes)> {
        let width = lanes.count();
        let tail = self.tail.map(|tail| (self.start + 2 * width, tail));
        [(self.start, lanes), (self.start + width, lanes)].into_iter().chain(tail).collect()
    }
}

impl<'c: 'a, 'a> Writer<'_, 'c, 'a> {
    /// The elements of a tap with a step of 2: even or odd ones of two vectors. With a [`Windows::tail`], all but the last are
    /// those of a tap before, in `halves`.
    pub(super) fn of_two(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        place: i64,
        load: &mut dyn FnMut(i64, Lanes) -> Value<'c, 'a>,
        halves: &mut BTreeMap<[i64; 2], Value<'c, 'a>>,
    ) -> Value<'c, 'a> {
        let width = self.lanes.count();
        let Pair { start, odd, shift, tail } = windows.pair(self.lanes, place);
        let half = *halves.entry([start, odd]).or_insert_with(|| {
            let [low, high] = [0, width].map(|half| load(start + half, self.lanes));
            e.shuffle(low, high, &of_order(self.lanes, odd))
        });
        let Some(tail) = tail else { return half };
        let after = load(start + 2 * width, tail);
        let wide: Vec<i64> = (0..width).map(|lane| lane.min(tail.count() - 1)).collect();
        let after = e.shuffle_to(after, after, &wide, half.r#type());
        e.shuffle(half, after, &shifted(self.lanes, shift, odd))
    }

    /// Sums of [`Self::window_sums`] with their lanes in order.
    pub(super) fn in_order(&self, e: Emit<'c, 'a>, sums: Vec<Value<'c, 'a>>) -> Vec<Value<'c, 'a>> {
        let order = order_of_evens(self.lanes);
        let count = order.len() as i64;
        let places = (0..count).map(|lane| order.iter().position(|other| *other == lane));
        let places: Vec<i64> = places.map(|place| place.unwrap_or(0) as i64).collect();
        let is_ordered = self.tiles.step == 1 || self.tiles.are_bytes() || order.is_sorted();
        match is_ordered {
            true => sums,
            false => sums.into_iter().map(|sum| e.shuffle(sum, sum, &places)).collect(),
        }
    }
}

/// The numbers of the even elements of two vectors in each lane of [`of_order`].
fn order_of_evens(lanes: Lanes) -> Vec<i64> {
    let lanes = lanes.count();
    // Bytes are permuted one by one.
    let group = if lanes > MAX_FLOATS { lanes } else { GROUP.min(lanes) };
    let of = |lane: i64| {
        let (number, place) = (lane / group, lane % group);
        let vector = place / (group / 2);
        vector * (lanes / 2) + number * (group / 2) + place % (group / 2)
    };
    (0..lanes).map(of).collect()
}

/// The numbers of the even elements of two vectors, or the odd ones, in an order that takes one instruction.
fn of_order(lanes: Lanes, odd: i64) -> Vec<i64> {
    order_of_evens(lanes).into_iter().map(|number| 2 * number + odd).collect()
}

/// The numbers of the elements of [`of_order`] so many after those of each lane: of the same vector, or of one of the elements
/// after the last.
fn shifted(lanes: Lanes, shift: i64, odd: i64) -> Vec<i64> {
    let order = order_of_evens(lanes);
    let count = lanes.count();
    let of = |number: &i64| match number + shift - count {
        after if after >= 0 => count + 2 * after + odd,
        _ => order.iter().position(|other| *other == number + shift).unwrap_or(0) as i64,
    };
    order.iter().map(of).collect()
}

impl Windows {
    /// The elements of a tap at a place with a step of 2.
    pub(super) fn pair(&self, lanes: Lanes, place: i64) -> Pair {
        let tail = self.tail(lanes);
        let first = place + i64::from(self.is_odd);
        let (odd, shift) = (first % 2, if tail.is_some() { first / 2 } else { 0 });
        Pair { start: place - odd - 2 * shift, odd, shift, tail: tail.filter(|_| shift > 0) }
    }

    /// With steps of 2, the vector of the elements after two vectors that windows reach, if those of a tap are then shifted to be
    /// those of another one: loads that are not aligned take longer. `None` if vectors are not permuted freely.
    fn tail(&self, lanes: Lanes) -> Option<Lanes> {
        let reach = self.taps[1].reach() + 1;
        let tail = [4, 8].into_iter().find(|tail| reach <= *tail);
        tail.filter(|_| lanes.count() == MAX_FLOATS).map(Lanes::Vector)
    }
}
