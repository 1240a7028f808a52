//! Divides the work of a kernel among threads.
//!
//! A kernel is a list of *phases*: nests, products and copies, each of which needs the results of those before it. A
//! phase numbers its units of work, such as the tiles of a product, and each of its *parts* computes a range of units:
//! which loop iterations these are follows from the range, so every element is computed by the same instructions,
//! whatever the number of parts.
use super::{Target, error::Result, kernel::Kernel};
use crate::kernel::emit::Emit;
use irc_mlir::Value;
use irc_mlir::ops::arith;

/// The number of cycles, estimated, from which on a kernel is divided.
pub(crate) const MIN_CYCLES: i64 = 40_000;

/// The minimum number of cycles of a part, so that starting it is worth its while.
pub const MIN_PART: i64 = 10_000;

/// The maximum number of parts of a phase.
pub const MAX_PARTS: i64 = 256;

/// Bytes that one core reads or writes in a cycle.
const BYTES_PER_CYCLE: i64 = 16;

/// A kernel that is divided.
pub struct Split<'c, 'a> {
    /// The phases to run: from the first to before the last.
    pub phases: [Value<'c, 'a>; 2],
    /// The number of this part, and the number of parts.
    pub part: Value<'c, 'a>,
    pub parts: Value<'c, 'a>,
    /// Memory of this part alone, and the number of bytes allocated there.
    pub memory: Value<'c, 'a>,
    pub bytes: i64,
    /// The maximum number of parts of each phase so far.
    pub found: Vec<i64>,
    /// The cycles of each of them, estimated.
    pub cycles: Vec<i64>,
    /// The maximum number of parts of the phase being written, by its cost.
    pub limit: i64,
}

impl<'c: 'a, 'a> Split<'c, 'a> {
    /// From the arguments that follow those of the whole kernel.
    pub fn new([memory, first, last, part, parts]: [Value<'c, 'a>; 5]) -> Self {
        Self {
            phases: [first, last],
            part,
            parts,
            memory,
            bytes: 0,
            found: vec![],
            cycles: vec![],
            limit: 1,
        }
    }
}

/// Whether a kernel has enough work to divide it.
pub fn pays(kernel: &Kernel<'_, '_>, target: &Target) -> bool {
    (0..kernel.stages.len()).map(|stage| cycles(kernel, target, stage)).sum::<i64>() >= MIN_CYCLES
}

/// The cycles that a stage takes, estimated from its ops and the elements that it accesses.
pub fn cycles(kernel: &Kernel<'_, '_>, target: &Target, stage: usize) -> i64 {
    let found = &kernel.stages[stage];
    let points = found.sizes.iter().fold(1i64, |all, size| all.saturating_mul(*size));
    let ops = i64::try_from(kernel.ops(stage)).unwrap_or(i64::MAX);
    // A multiplication and an addition are one instruction, and two can start in a cycle.
    let computing = points.saturating_mul(ops) / (4 * target.lanes());
    let operands = found.inputs.iter().map(|input| (input.tensor, &input.access));
    let outputs = found.outputs.iter().map(|output| (output.tensor, &output.access));
    let bytes = operands.chain(outputs).map(|(tensor, access)| {
        let loops = access.coefs.iter().zip(&found.sizes).filter(|(coef, _)| **coef != 0);
        let elements = loops.fold(1i64, |all, (_, size)| all.saturating_mul(*size));
        elements.saturating_mul(super::byte_width(kernel.tensors[tensor].element))
    });
    computing.saturating_add(bytes.fold(0, i64::saturating_add) / BYTES_PER_CYCLE)
}

/// The number of iterations of a loop, or of units.
#[derive(Debug, Clone, Copy)]
pub enum Extent<'c, 'a> {
    /// A known number.
    Known(i64),
    /// A number that follows from the number of rows that the kernel is passed.
    Passed(Value<'c, 'a>),
}

impl From<i64> for Extent<'_, '_> {
    fn from(known: i64) -> Self {
        Self::Known(known)
    }
}

impl<'c: 'a, 'a> Extent<'c, 'a> {
    /// The number, if it is known.
    pub fn known(self) -> Option<i64> {
        match self {
            Self::Known(known) => Some(known),
            Self::Passed(_) => None,
        }
    }

    /// The number, as an index.
    pub fn value(self, e: Emit<'c, 'a>) -> Value<'c, 'a> {
        match self {
            Self::Known(known) => e.index(known),
            Self::Passed(value) => value,
        }
    }

    /// A multiple of it.
    pub fn times(self, e: Emit<'c, 'a>, by: i64) -> Self {
        match self {
            Self::Known(known) => Self::Known(known * by),
            Self::Passed(value) => Self::Passed(e.scale(value, by)),
        }
    }

    /// The number of groups of `by` that it fills, the last of which may not be whole.
    pub fn groups(self, e: Emit<'c, 'a>, by: i64) -> Self {
        match self {
            Self::Known(known) => Self::Known((known + by - 1) / by),
            Self::Passed(value) => {
                let rounded = e.offset(value, by - 1);
                Self::Passed(e.binary(arith::DIVUI, rounded, e.index(by)))
            }
        }
    }

    /// The product of several, of which the first alone may not be known.
    pub fn product(e: Emit<'c, 'a>, all: &[Self]) -> Self {
        all.iter().fold(Self::Known(1), |product, each| match (product, each) {
            (product, Self::Known(known)) => product.times(e, *known),
            (Self::Known(known), passed) => passed.times(e, known),
            (Self::Passed(product), Self::Passed(each)) => {
                Self::Passed(e.binary(arith::MULI, product, *each))
            }
        })
    }
}

/// A range of units.
#[derive(Debug, Clone, Copy)]
pub struct Units<'c, 'a> {
    /// The first.
    pub from: Value<'c, 'a>,
    /// The one after the last.
    pub to: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Units<'c, 'a> {
    /// Those of `count` that a part computes, given by its number and the number of parts; all if there are no parts.
    pub fn of(e: Emit<'c, 'a>, count: Extent<'c, 'a>, part: Option<[Value<'c, 'a>; 2]>) -> Self {
        match part {
            Some([part, parts]) => Self::of_part(e, count, part, parts),
            None => Self { from: e.index(0), to: count.value(e) },
        }
    }

    /// Those of `count` that a part computes.
    pub fn of_part(
        e: Emit<'c, 'a>,
        count: Extent<'c, 'a>,
        part: Value<'c, 'a>,
        parts: Value<'c, 'a>,
    ) -> Self {
        let start = |part| {
            let all = match count {
                Extent::Known(count) => e.scale(part, count),
                Extent::Passed(count) => e.binary(arith::MULI, part, count),
            };
            e.binary(arith::DIVUI, all, parts)
        };
        Self { from: start(part), to: start(e.offset(part, 1)) }
    }

    /// The iterations of a loop of `inner` units each that have any of these units.
    pub fn iterations(
        &self,
        e: Emit<'c, 'a>,
        inner: impl Into<Extent<'c, 'a>>,
    ) -> (Value<'c, 'a>, Value<'c, 'a>) {
        match inner.into() {
            Extent::Known(1) => (self.from, self.to),
            Extent::Known(inner) => {
                let iteration = |unit| e.binary(arith::DIVUI, unit, e.index(inner));
                (iteration(self.from), iteration(e.offset(self.to, inner - 1)))
            }
            Extent::Passed(inner) => {
                // Without rows there is no unit, and any positive number will do.
                let inner = e.max(inner, e.index(1));
                let iteration = |unit| e.binary(arith::DIVUI, unit, inner);
                let last = e.add(self.to, e.offset(inner, -1));
                (iteration(self.from), iteration(last))
            }
        }
    }

    /// Those in one iteration of such a loop, numbered from its first one.
    pub fn within(
        &self,
        e: Emit<'c, 'a>,
        iteration: Value<'c, 'a>,
        inner: impl Into<Extent<'c, 'a>>,
    ) -> Self {
        let inner = inner.into();
        let start = match inner {
            Extent::Known(inner) => e.scale(iteration, inner),
            Extent::Passed(inner) => e.binary(arith::MULI, iteration, inner),
        };
        let limited = |unit| {
            let unit = e.binary(arith::SUBI, unit, start);
            e.max(e.min(unit, inner.value(e)), e.index(0))
        };
        Self { from: limited(self.from), to: limited(self.to) }
    }
}

/// The index along each of some dimensions that a unit stands for; units are numbered in row-major order.
pub fn indices<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    unit: Value<'c, 'a>,
    extents: &[Value<'c, 'a>],
) -> Vec<Value<'c, 'a>> {
    let mut left = unit;
    let mut found: Vec<_> = extents
        .iter()
        .skip(1)
        .rev()
        .map(|extent| {
            let index = e.binary(arith::REMUI, left, *extent);
            left = e.binary(arith::DIVUI, left, *extent);
            index
        })
        .collect();
    found.extend(extents.first().map(|_| left));
    found.reverse();
    found
}

/// A loop over `0..extent`, or over the iterations that have any of some units, of which each has `inner`; `body` gets
/// those of the iteration.
///
/// # Errors
/// Those of `body`.
pub fn loop_over<'c: 'a, 'a, E>(
    e: Emit<'c, 'a>,
    (extent, inner): (impl Into<Extent<'c, 'a>>, impl Into<Extent<'c, 'a>>),
    units: Option<Units<'c, 'a>>,
    body: impl FnOnce(Emit<'c, 'a>, Value<'c, 'a>, Option<Units<'c, 'a>>) -> Result<(), E>,
) -> Result<(), E> {
    let (extent, inner) = (extent.into(), inner.into());
    let units = match (extent, units) {
        (Extent::Known(known), units) if known <= 1 || units.is_none() => {
            return e.loop_over(known, |e, iv| body(e, iv, units));
        }
        (_, Some(units)) => units,
        (extent, None) => {
            let bounds = (e.index(0), extent.value(e), 1);
            let all = e.for_each(bounds, &[], |e, iv, _| body(e, iv, None).map(|()| vec![]));
            return all.map(|_| ());
        }
    };
    let (from, to) = units.iterations(e, inner);
    e.for_each((from, to, 1), &[], |e, iv, _| {
        let own = units.within(e, iv, inner);
        body(e, iv, Some(own)).map(|()| vec![])
    })
    .map(|_| ())
}
