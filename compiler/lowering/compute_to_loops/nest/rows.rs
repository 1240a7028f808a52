//! Rows of a map that chooses between values by conditions, as padding and concatenation do: each value has a loop of its own
//! over the columns where it is chosen, so that it is vectorised.
use super::super::{
    expression::{Known, depends_on},
    guards::Guarded,
};
use super::Writer;
use crate::kernel::emit::Emit;
use irc_mlir::Value;
use irc_tl::{Compute, Scalar};
use std::convert::Infallible;

/// Whether a map chooses between values row by row. Few elements are not worth it.
pub(super) fn are_divided(compute: &Compute) -> bool {
    const FEWEST: i64 = 16;
    let [_, .., last] = &compute.dims[..] else { return false };
    compute.reduction.is_none()
        && last.known().is_none_or(|extent| extent >= FEWEST)
        && Choice::of(&compute.body, compute.dims.len() - 1).is_some()
}

/// How a value is chosen in a row.
enum Choice<'s> {
    /// One of two, for the whole row.
    Row { condition: &'s Scalar, parts: [&'s Scalar; 2] },
    /// One in a range of columns, and one outside of it.
    Columns { inside: Guarded, outside: &'s Scalar, sides: Sides },
}

/// The columns outside of a range.
#[derive(Clone, Copy)]
enum Sides {
    /// On both sides of it, of a value that does not depend on the column.
    Both,
    Before,
    After,
}

impl Sides {
    /// Those of a range, and of a value along a loop, which has one loop of its own.
    fn of(inside: &Guarded, outside: &Scalar, loop_: usize) -> Option<Self> {
        if !depends_on(outside, loop_) {
            return Some(Self::Both);
        }
        let begins = inside.ranges.iter().filter(|range| range.step > 0).count();
        match begins {
            0 => Some(Self::After),
            _ if begins == inside.ranges.len() && inside.fixed.is_empty() => Some(Self::Before),
            _ => None,
        }
    }
}

impl<'s> Choice<'s> {
    /// The choice in rows along a loop.
    fn of(body: &'s Scalar, loop_: usize) -> Option<Self> {
        let Scalar::Select(parts) = body else { return None };
        let [condition, value, otherwise] = &**parts;
        if !depends_on(condition, loop_) {
            return Some(Self::Row { condition, parts: [value, otherwise] });
        }
        let inside = Guarded::within(condition, value, loop_)?;
        let sides = Sides::of(&inside, otherwise, loop_)?;
        Some(Self::Columns { inside, outside: otherwise, sides })
    }
}

impl<'c: 'a, 'a> Writer<'_, 'c, 'a> {
    /// The columns of a row from one to another, of which a body gives the elements.
    pub(super) fn divided_row(
        &self,
        e: Emit<'c, 'a>,
        at: &[Value<'c, 'a>],
        body: &Scalar,
        [from, to]: [Value<'c, 'a>; 2],
    ) {
        let first = [at, &[from]].concat();
        match Choice::of(body, at.len()) {
            None => self.columns_of(e, at, [from, to], |e, at, known| {
                self.body(e, at, known).emit(e, body)
            }),
            Some(Choice::Row { condition, parts }) => {
                let (holds, _) = self.body(e, &first, &Known::new()).emit(e, condition);
                let [yes, no] = parts.map(|part| {
                    move |e: Emit<'c, 'a>| {
                        self.divided_row(e, at, part, [from, to]);
                        Ok::<_, Infallible>(vec![])
                    }
                });
                let Ok(_) = e.if_else(holds, &[], yes, no);
            }
            Some(Choice::Columns { inside, outside, sides }) => {
                let zero = [at, &[e.index(0)]].concat();
                let (start, end) = self.range(e, &inside, &zero, (e.index(0), to));
                let start = e.min(e.max(start, from), to);
                let end = e.max(end, start);
                match sides {
                    Sides::Both => {
                        let value = self.body(e, &first, &Known::new()).emit(e, outside);
                        for ends in [[from, start], [end, to]] {
                            self.columns_of(e, at, ends, |_, _, _| value);
                        }
                    }
                    Sides::Before => self.divided_row(e, at, outside, [from, start]),
                    Sides::After => self.divided_row(e, at, outside, [end, to]),
                }
                self.divided_row(e, at, &inside.value, [start, end]);
            }
        }
    }

    /// The elements of some columns of a row.
    fn columns_of(
        &self,
        e: Emit<'c, 'a>,
        at: &[Value<'c, 'a>],
        [from, to]: [Value<'c, 'a>; 2],
        value: impl Fn(Emit<'c, 'a>, &[Value<'c, 'a>], &Known<'c, 'a>) -> super::Typed<'c, 'a>,
    ) {
        let known = self.quotients(e, at, at.len());
        let Ok(_) = e.for_each::<Infallible>((from, to, 1), &[], |e, column, _| {
            let at = [at, &[column]].concat();
            let value = value(e, &at, &known);
            self.store(e, &at, value);
            Ok(vec![])
        });
    }
}
