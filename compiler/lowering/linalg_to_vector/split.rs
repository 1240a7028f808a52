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
const MIN_CYCLES: i64 = 40_000;

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
    /// The maximum number of parts of the phase being written, by its cost.
    pub limit: i64,
}

impl<'c: 'a, 'a> Split<'c, 'a> {
    /// From the arguments that follow those of the whole kernel.
    pub fn new([memory, first, last, part, parts]: [Value<'c, 'a>; 5]) -> Self {
        Self { phases: [first, last], part, parts, memory, bytes: 0, found: vec![], limit: 1 }
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

/// A range of units.
#[derive(Debug, Clone, Copy)]
pub struct Units<'c, 'a> {
    /// The first.
    pub from: Value<'c, 'a>,
    /// The one after the last.
    pub to: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Units<'c, 'a> {
    /// The iterations of a loop of `inner` units each that have any of these units.
    pub fn iterations(&self, e: Emit<'c, 'a>, inner: i64) -> (Value<'c, 'a>, Value<'c, 'a>) {
        if inner == 1 {
            return (self.from, self.to);
        }
        let iteration = |unit| e.binary(arith::DIVUI, unit, e.index(inner));
        (iteration(self.from), iteration(e.offset(self.to, inner - 1)))
    }

    /// Those in one iteration of such a loop, numbered from its first one.
    pub fn within(&self, e: Emit<'c, 'a>, iteration: Value<'c, 'a>, inner: i64) -> Self {
        let start = e.scale(iteration, inner);
        let limited = |unit| {
            let unit = e.binary(arith::SUBI, unit, start);
            e.max(e.min(unit, e.index(inner)), e.index(0))
        };
        Self { from: limited(self.from), to: limited(self.to) }
    }
}

/// A loop over `0..extent`, or over the iterations that have any of some units, of which each has `inner`; `body` gets
/// those of the iteration.
///
/// # Errors
/// Those of `body`.
pub fn loop_over<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    (extent, inner): (i64, i64),
    units: Option<Units<'c, 'a>>,
    body: impl FnOnce(Emit<'c, 'a>, Value<'c, 'a>, Option<Units<'c, 'a>>) -> Result<()>,
) -> Result<()> {
    let Some(units) = units.filter(|_| extent > 1) else {
        return e.loop_over(extent, |e, iv| body(e, iv, units));
    };
    let (from, to) = units.iterations(e, inner);
    e.for_each((from, to, 1), &[], |e, iv, _| {
        let own = units.within(e, iv, inner);
        body(e, iv, Some(own)).map(|()| vec![])
    })
    .map(|_| ())
}
