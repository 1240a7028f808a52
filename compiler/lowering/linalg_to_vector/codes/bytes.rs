//! Products of integers of a few bits with a quantised left operand: rows of `i8`, with a scale for each block of a row.
//!
//! A word of a column holds four unsigned bytes for each place of an integer in a byte. They are multiplied by four bytes of a
//! row, which is copied in that order first. The sums of a block are integers, exact, and become floats when they are
//! multiplied by both scales. The sum of the row in the block times the integer that is in the middle is subtracted
//! before, and what the zero point differs from the middle by is accounted for in floats.
use super::{Coded, Codes, Columns, Panel};
use crate::attributes::QUANTISED;
use crate::kernel::emit::{Buffer, Emit, Lanes};
use crate::lowering::linalg_to_vector::{
    codegen::Codegen,
    dots::{self, Dots, Halves},
    error::{LowerError, Result},
    kernel::{Origin, TensorId},
    layout::row_major,
};
use irc_mlir::Value;
use irc_mlir::ops::{arith, math};
use irc_packing::Extension;

/// The largest sum of two products of bytes, of which the second is signed, for integers of so many bits.
fn largest_pair(bits: i64) -> i64 {
    2 * ((1 << bits) - 1) * 128
}

/// The instructions that multiply integers of so many bits by signed bytes, if the target has any.
fn instructions(cg: &Codegen<'_, '_>, bits: i64) -> Option<Dots> {
    let dots = cg.target.dots;
    match dots {
        Dots::Vnni => Some(dots),
        _ if !dots.are_of_halves(cg.full_lanes()) => None,
        _ if largest_pair(bits) <= i64::from(i16::MAX) => Some(Dots::Small),
        _ => Some(dots),
    }
}

/// The vectors that four bytes of each lane are multiplied as: halves are two.
fn copies(dots: Dots) -> i64 {
    if dots == Dots::Pairs { 2 } else { 1 }
}

/// A stage that computes the floats that a quantised left operand stands for.
#[derive(Debug, Clone)]
pub struct Quantised {
    /// The stage.
    pub stage: usize,
    /// The integers.
    values: TensorId,
    /// A scale for each block of each row.
    scales: TensorId,
    /// How many rows there are.
    pub rows: i64,
    dots: Dots,
}

impl Quantised {
    /// The stage that a tensor of so many rows, or of one, is the result of, if they are multiplied by integers.
    pub fn of(
        cg: &Codegen<'_, '_>,
        tensor: TensorId,
        rows: Option<i64>,
        codes: &Codes,
    ) -> Option<Self> {
        let Origin::Stage(number) = cg.kernel.tensors[tensor].origin else { return None };
        let stage = &cg.kernel.stages[number];
        let block = QUANTISED.read(&stage.op)?;
        let ([values], [scales]) = (&stage.inputs[..], &stage.gathered[..]) else { return None };
        let sizes: Vec<i64> = rows.into_iter().chain([codes.depth]).collect();
        let dense = row_major(&sizes);
        let is_dense = [&values.access, &stage.outputs[0].access]
            .into_iter()
            .all(|access| access.offset == 0 && access.coefs == dense);
        let in_memory = [values.tensor, *scales].into_iter().all(|tensor| {
            matches!(cg.kernel.tensors[tensor].origin, Origin::Argument(_) | Origin::Stage(_))
        });
        let dots = instructions(cg, codes.bits)?;
        let applies = block == codes.block
            && codes.depth % codes.per_word() == 0
            && stage.sizes == sizes
            && is_dense
            && in_memory;
        applies.then_some(Self {
            stage: number,
            values: values.tensor,
            scales: *scales,
            rows: rows.unwrap_or(1),
            dots,
        })
    }

    /// Whether bytes become 16-bit integers when they are copied.
    pub fn is_extended(&self) -> bool {
        copies(self.dots) > 1
    }
}

/// A block of rows of a quantised left operand in memory, in the order in which they are multiplied, each followed by what
/// its sums start from: minus its sum in each block, times the integer in the middle.
#[derive(Debug, Clone, Copy)]
pub struct Left<'c, 'a> {
    /// The copied rows, and the number of words from one to the next.
    pub buffer: Buffer<'c, 'a>,
    pub row: i64,
    /// Where the starts are in a row.
    starts: i64,
    /// All rows, as words of four bytes, and their scales.
    values: Buffer<'c, 'a>,
    scales: Buffer<'c, 'a>,
    dots: Dots,
}

/// Rows of a tile: the first of them, and where it is in the copied rows.
#[derive(Clone, Copy)]
pub struct Rows<'c, 'a> {
    /// The first row.
    pub first: Value<'c, 'a>,
    /// Its first word.
    pub at: Value<'c, 'a>,
    /// How many there are.
    pub count: i64,
}

/// A part of the words of a block.
#[derive(Clone, Copy)]
struct Words<'c, 'a> {
    first: Value<'c, 'a>,
    count: i64,
}

impl<'c: 'a, 'a> Coded<'c, 'a> {
    /// The words that copied rows take, each.
    pub fn words_of_row(&self, left: &Quantised) -> i64 {
        self.starts(left.dots) + (self.codes.blocks() + 15) / 16 * 16
    }

    fn starts(&self, dots: Dots) -> i64 {
        let width = self.lanes.count();
        (self.codes.depth / 4 + width - 1) / width * width * copies(dots)
    }

    /// Memory for copies of up to so many rows of a quantised operand. `None` if the operand is not in memory.
    pub fn reserve(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        left: &Quantised,
        rows: i64,
    ) -> Option<Left<'c, 'a>> {
        let bytes = cg.places[left.values].buffer()?;
        let count = left.rows * self.codes.depth / 4;
        let values = e.workspace_view(bytes.memref, 0, count, e.int(32));
        let scales = cg.places[left.scales].buffer()?;
        let row = self.words_of_row(left);
        let buffer = cg.scratch_of(e, rows * row, e.int(32));
        Some(Left { buffer, row, starts: self.starts(left.dots), values, scales, dots: left.dots })
    }

    /// Copies rows from one on.
    ///
    /// # Errors
    /// None.
    pub fn copy(
        &self,
        e: Emit<'c, 'a>,
        left: &Left<'c, 'a>,
        (first, count): (Value<'c, 'a>, Value<'c, 'a>),
    ) -> Result<()> {
        let (words, copies) = (self.codes.depth / 4, copies(left.dots));
        let stored = (copies > 1).then_some(Halves { extension: Extension::Sign, group: 1 });
        e.for_each((e.index(0), count, 1), &[], |e, number, _| {
            let from = e.scale(e.add(first, number), words);
            let to = e.scale(number, left.row / copies);
            e.each_vector(words, self.lanes, |e, at, mask| {
                let quads = e.load_lanes(left.values, e.add(from, at), self.lanes, mask);
                let quads = self.in_order(e, quads);
                dots::store(e, quads, (left.buffer, e.add(to, at)), self.lanes, stored);
                Ok(())
            })?;
            let to = e.offset(e.scale(number, left.row), left.starts);
            self.write_starts(e, left, (from, to)).map(|()| vec![])
        })
        .map(|_| ())
    }

    /// The bytes of neighbouring words with those of the first place in a byte before those of the second one, and so on.
    fn in_order(&self, e: Emit<'c, 'a>, quads: Value<'c, 'a>) -> Value<'c, 'a> {
        let (places, group) = (self.codes.per_byte(), self.codes.per_word());
        if places == 1 {
            return quads;
        }
        let bytes = dots::cast(e, quads, 8, 4 * self.lanes.count());
        let pick = |to: i64| {
            let within = to % group;
            to - within + within % 4 * places + within / 4
        };
        let picks: Vec<i64> = (0..4 * self.lanes.count()).map(pick).collect();
        dots::cast(e, e.shuffle(bytes, bytes, &picks), 32, self.lanes.count())
    }

    /// Writes what the sums of each block of a row start from.
    fn write_starts(
        &self,
        e: Emit<'c, 'a>,
        left: &Left<'c, 'a>,
        (from, to): (Value<'c, 'a>, Value<'c, 'a>),
    ) -> Result<()> {
        let (block, depth) = (self.codes.block, self.codes.depth);
        let write = |e: Emit<'c, 'a>, number: Value<'c, 'a>, size: i64| -> Result<()> {
            let words = size / 4;
            let width = (words & -words).min(self.lanes.count());
            let lanes = if width == 1 { Lanes::Scalar } else { Lanes::Vector(width) };
            let (zero, ones) = (e.zero(e.int(32), lanes), e.integer(0x0101_0101, 32, lanes));
            let start = e.add(from, e.scale(number, block / 4));
            let bounds = (e.index(0), e.index(words), width);
            let sum = e.for_each(bounds, &[zero], |e, at, sum| {
                let quads = e.load_lanes(left.values, e.add(start, at), lanes, None);
                Ok(vec![Dots::Plain.add(e, [ones, quads], sum[0], lanes)])
            })?[0];
            let sum = match lanes {
                Lanes::Scalar => sum,
                Lanes::Vector(_) => {
                    let add = |a, b, _| Ok(e.binary(arith::ADDI, a, b));
                    e.by_halves::<LowerError>(sum, e.int(32), lanes, add)?
                }
            };
            let middle = e.integer(-(1 << (self.codes.bits - 1)), 32, Lanes::Scalar);
            let start = e.binary(arith::MULI, sum, middle);
            e.store(start, left.buffer, e.add(to, number), Lanes::Scalar, None);
            Ok(())
        };
        let whole = depth / block;
        e.for_each((e.index(0), e.index(whole), 1), &[], |e, number, _| {
            write(e, number, block).map(|()| vec![])
        })?;
        match depth % block {
            0 => Ok(()),
            rest => write(e, e.index(whole), rest),
        }
    }

    /// Sums over the whole depth of a panel for some rows, from `starts` on.
    ///
    /// # Errors
    /// None.
    pub fn sums_of_bytes(
        &self,
        e: Emit<'c, 'a>,
        panel: Panel<'c, 'a>,
        (left, rows): (&Left<'c, 'a>, Rows<'c, 'a>),
        starts: &[Value<'c, 'a>],
    ) -> Result<Vec<Value<'c, 'a>>> {
        let (block, depth) = (self.codes.block, self.codes.depth);
        let whole = depth / block;
        let sums = e.for_each((e.index(0), e.index(whole), 1), starts, |e, at, sums| {
            self.sums_of_block(e, panel, (left, rows), (at, block), sums)
        })?;
        match depth % block {
            0 => Ok(sums),
            rest => self.sums_of_block(e, panel, (left, rows), (e.index(whole), rest), &sums),
        }
    }

    /// As [`Self::sums_of_bytes`], over the first `size` elements of a block.
    fn sums_of_block(
        &self,
        e: Emit<'c, 'a>,
        panel: Panel<'c, 'a>,
        (left, rows): (&Left<'c, 'a>, Rows<'c, 'a>),
        (block, size): (Value<'c, 'a>, i64),
        sums: &[Value<'c, 'a>],
    ) -> Result<Vec<Value<'c, 'a>>> {
        let each = self.vectors(panel) as usize;
        let starts: Vec<Value> = (0..rows.count)
            .map(|row| {
                let at = e.offset(e.add(rows.at, block), row * left.row + left.starts);
                e.splat(e.load(left.buffer, at), self.lanes)
            })
            .collect();
        let integers: Vec<Value> =
            starts.iter().flat_map(|start| std::iter::repeat_n(*start, each)).collect();
        let words = size / self.codes.per_word();
        // So many sums of pairs of products fit in 16 bits.
        let group = match left.dots {
            Dots::Small => {
                let pairs = i64::from(i16::MAX) / largest_pair(self.codes.bits);
                (pairs / self.codes.per_byte()).clamp(1, 8)
            }
            _ => 1,
        };
        let first = e.scale(block, self.codes.words_of_block());
        let grouped = words / group * group;
        let of_words = |e: Emit<'c, 'a>, first, count, integers: &[Value<'c, 'a>]| {
            self.sums_of_words(e, panel, (left, rows), Words { first, count }, integers)
        };
        let integers = match grouped / group {
            0 => integers,
            1 => of_words(e, first, group, &integers),
            _ => {
                let bounds = (first, e.offset(first, grouped), group);
                e.for_each::<LowerError>(bounds, &integers, |e, word, own| {
                    Ok(of_words(e, word, group, own))
                })?
            }
        };
        let integers = match words - grouped {
            0 => integers,
            rest => of_words(e, e.offset(first, grouped), rest, &integers),
        };
        let scales = self.row(e, self.scales, panel, block);
        let zeros = self.zeros.map(|zeros| self.distances_from_middle(e, zeros, panel, block));
        let floats = self.lanes.of(e.f32());
        let mut next = sums.to_vec();
        for (row, start) in starts.into_iter().enumerate() {
            let at = e.scale(e.offset(rows.first, row as i64), self.codes.blocks());
            let scale = e.splat(e.load(left.scales, e.add(at, block)), self.lanes);
            let start = zeros.as_ref().map(|_| e.op(arith::SITOFP, &[start], floats));
            for vector in 0..each {
                let number = row * each + vector;
                let mut value = e.op(arith::SITOFP, &[integers[number]], floats);
                if let (Some(zeros), Some(start)) = (&zeros, start) {
                    value = e.op(math::FMA, &[zeros[vector], start, value], floats);
                }
                let value = e.binary(arith::MULF, value, scale);
                next[number] = e.op(math::FMA, &[value, scales[vector], next[number]], floats);
            }
        }
        Ok(next)
    }

    /// How far the zero points of a block are from the integer in the middle, as parts of it.
    fn distances_from_middle(
        &self,
        e: Emit<'c, 'a>,
        zeros: Columns<'c, 'a>,
        panel: Panel<'c, 'a>,
        block: Value<'c, 'a>,
    ) -> Vec<Value<'c, 'a>> {
        let middle = f64::from(1_u32 << (self.codes.bits - 1));
        let constant = |value: f64| e.float(value, e.f32(), self.lanes);
        let zeros = self.row(e, zeros, panel, block).into_iter();
        let moved = zeros.map(|zero| e.binary(arith::SUBF, zero, constant(middle)));
        moved.map(|moved| e.binary(arith::MULF, moved, constant(1.0 / middle))).collect()
    }

    /// Integer sums over some words, at most as many as sums of 16 bits hold.
    fn sums_of_words(
        &self,
        e: Emit<'c, 'a>,
        panel: Panel<'c, 'a>,
        (left, rows): (&Left<'c, 'a>, Rows<'c, 'a>),
        words: Words<'c, 'a>,
        sums: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let each = self.vectors(panel) as usize;
        let (bits, places) = (self.codes.bits, self.codes.per_byte());
        let copies = copies(left.dots);
        let mut sums = sums.to_vec();
        let mut small: Vec<Option<Value>> = vec![None; sums.len()];
        for number in 0..words.count {
            let word = e.offset(words.first, number);
            let columns = self.row(e, self.words, panel, word);
            let at = e.add(rows.at, e.scale(word, places * copies));
            for place in 0..places {
                let own = columns.iter().map(|column| self.bytes_at(e, *column, bits * place));
                let factors: Vec<Vec<Value>> = own
                    .map(|bytes| match left.dots {
                        Dots::Pairs => dots::halves(e, bytes, self.lanes, Extension::Zero).to_vec(),
                        _ => vec![bytes],
                    })
                    .collect();
                for (copy, row) in
                    (0..copies).flat_map(|copy| (0..rows.count).map(move |row| (copy, row)))
                {
                    let at = e.offset(at, row * left.row + place * copies + copy);
                    let factor = e.splat(e.load(left.buffer, at), self.lanes);
                    for (vector, column) in factors.iter().enumerate() {
                        let number = row as usize * each + vector;
                        let pair = [column[copy as usize], factor];
                        if left.dots == Dots::Small {
                            let own = dots::small_products(e, pair, self.lanes);
                            small[number] = Some(match small[number] {
                                Some(sum) => e.binary(arith::ADDI, sum, own),
                                None => own,
                            });
                        } else {
                            sums[number] = left.dots.add(e, pair, sums[number], self.lanes);
                        }
                    }
                }
            }
        }
        for (sum, small) in sums.iter_mut().zip(small) {
            if let Some(small) = small {
                *sum = dots::add_halves(e, small, *sum, self.lanes);
            }
        }
        sums
    }

    /// Four bytes of each word: the bits from one on of each byte of it.
    fn bytes_at(&self, e: Emit<'c, 'a>, word: Value<'c, 'a>, from: i64) -> Value<'c, 'a> {
        let bits = self.codes.bits;
        if bits == 8 {
            return word;
        }
        let constant = |value: i64| e.integer(value, 32, self.lanes);
        let moved = match from {
            0 => word,
            _ => e.binary(arith::SHRUI, word, constant(from)),
        };
        e.binary(arith::ANDI, moved, constant(((1 << bits) - 1) * 0x0101_0101))
    }
}
