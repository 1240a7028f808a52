//! The windows of a convolution: the operand that a product reads as a matrix, whose columns hold the elements
//! under the filters at one position (im2col). The matrix is not stored: its panels are packed from the operand.
use super::{
    codegen::Codegen,
    contraction::Contraction,
    dots::{self, Halves},
    kernel::{Origin, Stage, TensorId, argument},
    layout::row_major,
    packing,
};
use crate::kernel::emit::{Buffer, Emit, Lanes};
use irc_mlir::ops::{arith, vector};
use irc_mlir::{BlockLike, OperationLike, Type, Value, attr};
use std::convert::Infallible;
use std::ops::Range;

/// The maximum number of taps in a row of the filters that are packed one after the other.
const MAX_UNROLLED: i64 = 8;

/// A stage that copies the elements of windows, as one product reads them.
#[derive(Debug, Clone)]
pub struct Windows {
    /// The stage, whose result nothing else reads.
    pub stage: usize,
    /// The operand of the convolution, and the first element of the first window.
    pub source: TensorId,
    pub first: i64,
    /// Sizes of the loops of the stage, and the stride of each in the operand: images, then those that are rows of
    /// the matrix, then those that are its columns.
    pub sizes: Vec<i64>,
    pub strides: Vec<i64>,
    /// The number of loops that are images.
    pub images: usize,
    /// The number of loops that are rows.
    pub rows: usize,
    /// Half the length of a row of the operand, if it has its even elements before its odd ones.
    pub half: Option<i64>,
}

impl Windows {
    /// The windows that a product reads as columns, if it does.
    pub fn of(cg: &Codegen<'_, '_>, product: &Contraction<'_, '_>) -> Option<Self> {
        let stage = &cg.kernel.stages[product.stage];
        let tensor = product.b.operand.tensor;
        let Origin::Stage(number) = cg.kernel.tensors[tensor].origin else { return None };
        let copy = &cg.kernel.stages[number];
        let ([input], [output]) = (&copy.inputs[..], &copy.outputs[..]) else { return None };
        let dense = row_major(&copy.sizes);
        let is_dense = output.access.offset == 0 && output.access.coefs == dense;
        let is_used = cg.is_result(tensor) || cg.read_by_other(tensor, &[product.stage]);
        if !is_copy(copy) || !is_dense || is_used || product.b.operand.access.offset != 0 {
            return None;
        }
        let (k, n) = (stage.sizes[product.k], stage.sizes[product.n]);
        // How many trailing loops make up the columns, and how many before them the rows.
        let columns = trailing(&copy.sizes, n)?;
        let rest = copy.sizes.len() - columns;
        let rows = trailing(&copy.sizes[..rest], k)?;
        let images = rest - rows;
        let coefs = &product.b.operand.access.coefs;
        let outer: Vec<usize> = (0..product.n).filter(|dim| Some(*dim) != product.m).collect();
        let walks = coefs[product.k] == n
            && coefs[product.n] == 1
            && outer.len() == images
            && outer
                .iter()
                .enumerate()
                .all(|(at, dim)| stage.sizes[*dim] == copy.sizes[at] && coefs[*dim] == dense[at]);
        walks.then(|| Self {
            stage: number,
            source: input.tensor,
            first: input.access.offset,
            sizes: copy.sizes.clone(),
            strides: input.access.coefs.clone(),
            images,
            rows,
            half: None,
        })
    }

    /// Whether every second element of a row is read, as by a convolution with steps of 2.
    pub fn skips_every_second(&self) -> bool {
        self.strides.last() == Some(&2)
    }

    /// The windows of an operand whose rows of `length` have their even elements before their odd ones.
    pub fn of_split_rows(mut self, length: i64) -> Self {
        self.half = Some(length / 2);
        if let Some(last) = self.strides.last_mut() {
            *last = 1;
        }
        self
    }

    /// Whether panels are packed from the operand faster than from a copy of the windows: if columns are
    /// contiguous in it, and there are enough rows of the result that panels are packed at all.
    pub fn are_packed(&self, cg: &Codegen<'_, '_>, product: &Contraction<'_, '_>) -> bool {
        let stage = &cg.kernel.stages[product.stage];
        let rows = product.m.map_or(1, |dim| stage.sizes[dim]);
        let ty: Type = cg.kernel.tensors[self.source].element;
        let in_memory = match cg.kernel.tensors[self.source].origin {
            Origin::Argument(_) | Origin::Stage(_) => true,
            Origin::Splat(_) | Origin::Dense(_) | Origin::Undefined => false,
        };
        let last = self.sizes.len() - 1;
        let are_contiguous = self.strides[last] == 1 && self.sizes[last] >= 4;
        rows > 4 && in_memory && are_contiguous && super::byte_width(ty) == 4
    }

    /// The number of taps in a row of the filters, if they are few.
    pub fn last_taps(&self) -> i64 {
        let taps = self.sizes[self.images + self.rows - 1];
        if self.rows > 1 && taps <= MAX_UNROLLED { taps } else { 1 }
    }

    /// The numbers of the loops that make up a row of the matrix, and where its elements are in the operand, but for the
    /// last loop.
    fn row<'c: 'a, 'a>(&self, e: Emit<'c, 'a>, k: Value<'c, 'a>) -> Row<'c, 'a> {
        let loops = self.images..self.images + self.rows;
        let mut number = k;
        let mut digits = vec![];
        for dim in loops.clone().skip(1).rev() {
            let size = e.index(self.sizes[dim]);
            digits.insert(0, e.binary(arith::REMUI, number, size));
            number = e.binary(arith::DIVUI, number, size);
        }
        digits.insert(0, number);
        let outer = loops.len() - 1;
        let place = (0..outer).fold(e.index(0), |at, digit| {
            e.add(at, self.step(e, digits[digit], loops.start + digit))
        });
        Row { digits, place }
    }

    /// The row after so many, which do not pass the end of the last loop: without divisions, which take longer than what is
    /// copied.
    fn next_row<'c: 'a, 'a>(&self, e: Emit<'c, 'a>, row: &Row<'c, 'a>, rows: i64) -> Row<'c, 'a> {
        let Row { mut digits, mut place } = row.clone();
        let select = |condition, a: Value<'c, 'a>, b| {
            e.op(arith::SELECT, &[condition, a, b], Type::index(e.context))
        };
        let last = digits.len() - 1;
        digits[last] = e.offset(digits[last], rows);
        for digit in (1..=last).rev() {
            let (dim, zero) = (self.images + digit, e.index(0));
            // Where the loop ends, the one around it moves on.
            let ends = e.compare(0, digits[digit], e.index(self.sizes[dim]));
            digits[digit] = select(ends, zero, digits[digit]);
            let back = if digit == last { 0 } else { self.sizes[dim] * self.strides[dim] };
            let moved = e.index(self.strides[dim - 1] - back);
            place = e.add(place, select(ends, moved, zero));
            digits[digit - 1] = e.add(digits[digit - 1], select(ends, e.index(1), zero));
        }
        Row { digits, place }
    }

    /// The place in the operand of a number that counts through loops.
    fn place<'c: 'a, 'a>(
        &self,
        e: Emit<'c, 'a>,
        mut number: Value<'c, 'a>,
        loops: Range<usize>,
    ) -> Value<'c, 'a> {
        let mut at = e.index(0);
        for dim in loops.clone().rev() {
            let size = e.index(self.sizes[dim]);
            let digit = match dim == loops.start {
                true => number,
                false => e.binary(arith::REMUI, number, size),
            };
            at = e.add(at, self.step(e, digit, dim));
            number = e.binary(arith::DIVUI, number, size);
        }
        at
    }

    /// The elements that a number of steps of a loop skips.
    fn step<'c: 'a, 'a>(&self, e: Emit<'c, 'a>, digit: Value<'c, 'a>, dim: usize) -> Value<'c, 'a> {
        let skipped = e.scale(digit, self.strides[dim]);
        let is_last_tap = dim + 1 == self.images + self.rows;
        match self.half.filter(|half| is_last_tap && self.strides[dim] < 2 * half) {
            None => skipped,
            Some(half) => {
                let two = e.index(2);
                let odd = e.scale(e.binary(arith::REMUI, skipped, two), half);
                e.add(odd, e.binary(arith::DIVUI, skipped, two))
            }
        }
    }

    /// The runs of columns that are contiguous in the operand and make up a vector of columns from `first` on.
    fn runs<'c: 'a, 'a>(
        &self,
        e: Emit<'c, 'a>,
        first: Value<'c, 'a>,
        lanes: Lanes,
    ) -> Vec<Run<'c, 'a>> {
        let last = self.sizes.len() - 1;
        let length = self.sizes[last];
        let positions = self.images + self.rows..last;
        let lines: i64 = self.sizes[positions.clone()].iter().product();
        let line = e.binary(arith::DIVUI, first, e.index(length));
        let within = e.binary(arith::REMUI, first, e.index(length));
        let count = match length % lanes.count() {
            0 => 1,
            _ => (lanes.count() + length - 2) / length + 1,
        };
        // The number of the line of each lane, from that of the first on.
        let of_lane = e.add(e.splat(within, lanes), e.iota(1, lanes));
        let of_lane = e.binary(arith::DIVUI, of_lane, e.splat(e.index(length), lanes));
        let run = |number: i64| {
            let line = e.offset(line, number);
            let start = self.place(e, e.min(line, e.index(lines - 1)), positions.clone());
            let start = e.offset(e.add(start, within), -number * length);
            let is_here = || {
                let exists = e.splat(e.compare(2, line, e.index(lines)), lanes);
                let number = e.splat(e.index(number), lanes);
                let spec = e.spec(arith::CMPI).operands(&[of_lane, number]);
                let spec = spec.attr("predicate", attr::i64(e.context, 0));
                let is_here = e.value(spec.results(&[lanes.of(e.int(1))]));
                e.binary(arith::ANDI, is_here, exists)
            };
            Run { start, mask: (count > 1).then(is_here) }
        };
        (0..count).map(run).collect()
    }
}

/// A row of the matrix.
#[derive(Clone)]
struct Row<'c, 'a> {
    /// The numbers of its loops.
    digits: Vec<Value<'c, 'a>>,
    /// Where its elements are in the operand, but for the last loop.
    place: Value<'c, 'a>,
}

/// Lanes of a vector of columns that are contiguous in the operand.
struct Run<'c, 'a> {
    /// The element of the first lane, were it one of them.
    start: Value<'c, 'a>,
    /// The lanes; all if `None`.
    mask: Option<Value<'c, 'a>>,
}

/// The number of trailing sizes whose product is `total`.
fn trailing(sizes: &[i64], total: i64) -> Option<usize> {
    let mut product = 1;
    for (count, size) in sizes.iter().rev().enumerate() {
        product *= size;
        if product >= total {
            return (product == total).then_some(count + 1);
        }
    }
    None
}

/// Whether a stage yields its operand.
fn is_copy(stage: &Stage<'_, '_>) -> bool {
    let yielded = stage.body.terminator().and_then(|last| last.operand(0).ok());
    let Ok(argument) = argument(stage.op, stage.body, 0) else { return false };
    !stage.reduces() && stage.gathered.is_empty() && yielded == Some(argument)
}

/// One panel of windows, to be packed row by row without gaps.
pub struct Panel<'p, 'c, 'a> {
    pub windows: &'p Windows,
    /// The operand of the convolution, and where the image starts in it.
    pub from: Buffer<'c, 'a>,
    pub image: Value<'c, 'a>,
    /// The packed block.
    pub to: Buffer<'c, 'a>,
    pub lanes: Lanes,
    /// The first row of the block, and the number of rows.
    pub row: Value<'c, 'a>,
    pub depth: Value<'c, 'a>,
    /// The first column, and the number of columns.
    pub column: Value<'c, 'a>,
    pub columns: i64,
    /// How elements of four bytes are stored, if not as they are.
    pub stored: Option<Halves>,
    /// Rows that are packed one after the other: those of the last loop if it starts with the block, otherwise one.
    pub taps: i64,
}

/// Packs one panel; columns beyond the last are zero.
pub fn pack<'c: 'a, 'a>(e: Emit<'c, 'a>, panel: &Panel<'_, 'c, 'a>, target: Value<'c, 'a>) {
    let Panel { windows, lanes, .. } = *panel;
    let padded = packing::panel_width(panel.columns, lanes);
    let starts: Vec<i64> = (0..padded).step_by(lanes.count() as usize).collect();
    let runs: Vec<Vec<Run>> =
        starts.iter().map(|start| windows.runs(e, e.offset(panel.column, *start), lanes)).collect();
    let first = windows.row(e, panel.row);
    let carried = [&first.digits[..], &[first.place]].concat();
    let bounds = (e.index(0), panel.depth, panel.taps);
    let looped = e.for_each::<Infallible>(bounds, &carried, |e, k, now| {
        let Some((place, digits)) = now.split_last() else { return Ok(vec![]) };
        let now = Row { digits: digits.to_vec(), place: *place };
        let at_start = e.add(panel.image, now.place);
        for number in 0..panel.taps {
            let tap = match panel.taps {
                1 => now.digits[now.digits.len() - 1],
                _ => e.index(number),
            };
            let tap = windows.step(e, tap, windows.images + windows.rows - 1);
            let row = e.add(at_start, tap);
            let to = e.add(target, e.scale(e.offset(k, number), padded));
            for (start, runs) in starts.iter().zip(&runs) {
                let mut value = e.zero(panel.from.element, lanes);
                for run in runs {
                    let at = e.add(row, run.start);
                    value = match run.mask {
                        None => e.load_lanes(panel.from, at, lanes, None),
                        Some(mask) => {
                            let operands = [panel.from.memref, at, mask, value];
                            e.op(vector::MASKEDLOAD, &operands, lanes.of(panel.from.element))
                        }
                    };
                }
                dots::store(e, value, (panel.to, e.offset(to, *start)), lanes, panel.stored);
            }
        }
        let next = windows.next_row(e, &now, panel.taps);
        Ok([&next.digits[..], &[next.place]].concat())
    });
    let Ok(_) = looped;
}
