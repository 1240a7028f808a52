//! Right operands of products that are integers of a few bits with scales, which become floats in registers.
//!
//! The integers of a column are read as words of 32 bits, which hold as many neighbours along the depth as fit, and the words
//! of neighbouring columns are the lanes of a vector. Constants are packed in panels of columns when the caller is
//! compiled, and so are their scales and zero points. `bytes` multiplies them by quantised left operands, as integers.

pub mod bytes;

use super::{
    codegen::Codegen,
    dots::{self, Dots},
    error::Result,
    kernel::{Kernel, Origin, TensorId},
    layout::row_major,
};
use crate::attributes::CODES;
use crate::kernel::emit::{Buffer, Emit, Lanes, is_float};
use irc_mlir::ops::{arith, math};
use irc_mlir::{Type, Value, attr};
use irc_packing::{Packing, Panels, Quad};
use melior::ir::attribute::DenseElementsAttribute;

/// A stage that computes a matrix of floats from integers, column after column.
#[derive(Debug, Clone)]
pub struct Codes {
    /// The stage.
    pub stage: usize,
    /// The bits of an integer: 2, 4 or 8.
    bits: i64,
    /// The integers that share a scale.
    block: i64,
    /// The bytes of the integers.
    codes: TensorId,
    /// A scale for each block of each column.
    scales: TensorId,
    /// A zero point for each of them; otherwise it is in the middle.
    zeros: Option<TensorId>,
    columns: i64,
    /// The length of a column.
    pub depth: i64,
}

impl Codes {
    /// Those that a tensor is computed from.
    pub fn of(kernel: &Kernel<'_, '_>, tensor: TensorId) -> Option<Self> {
        let Origin::Stage(number) = kernel.tensors[tensor].origin else { return None };
        let stage = &kernel.stages[number];
        let ([bits, block], [columns, depth]) = (&CODES.read(&stage.op)?[..], &stage.sizes[..])
        else {
            return None;
        };
        let (codes, scales, zeros) = match stage.gathered[..] {
            [codes, scales] => (codes, scales, None),
            [codes, scales, zeros] => (codes, scales, Some(zeros)),
            _ => return None,
        };
        let output = &stage.outputs[0].access;
        let is_dense = output.offset == 0 && output.coefs == row_major(&stage.sizes);
        let in_memory = [Some(codes), Some(scales), zeros].into_iter().flatten().all(|tensor| {
            matches!(kernel.tensors[tensor].origin, Origin::Argument(_) | Origin::Dense(_))
        });
        (is_dense && in_memory && *depth >= 32 / bits).then_some(Self {
            stage: number,
            bits: *bits,
            block: *block,
            codes,
            scales,
            zeros,
            columns: *columns,
            depth: *depth,
        })
    }

    /// The number of integers in a word.
    pub fn per_word(&self) -> i64 {
        32 / self.bits
    }

    /// The number of integers in a byte.
    fn per_byte(&self) -> i64 {
        8 / self.bits
    }

    /// The number of parts that sums of products with so many rows are computed in: one for each place in a byte, and
    /// two for a single row, which do not wait for each other.
    pub fn parts(&self, rows: i64) -> usize {
        self.per_byte().max(if rows == 1 { 2 } else { 1 }) as usize
    }

    /// What each part of sums is multiplied by in the end.
    fn factors(&self, parts: usize) -> Vec<f64> {
        let place = |part: usize| (part as i64 % self.per_byte()) as i32;
        (0..parts).map(|part| 2f64.powi(-place(part) * self.bits as i32)).collect()
    }

    /// The number of words of a column, and of blocks.
    fn words(&self) -> i64 {
        self.blocks() * self.words_of_block()
    }

    fn blocks(&self) -> i64 {
        (self.depth + self.block - 1) / self.block
    }

    fn words_of_block(&self) -> i64 {
        self.block / self.per_word()
    }
}

/// Elements of columns in memory, such as words of integers or scales.
#[derive(Debug, Clone, Copy)]
struct Columns<'c, 'a> {
    buffer: Buffer<'c, 'a>,
    /// The elements of a column.
    depth: i64,
    /// The elements reserved for a column in a panel, if they are packed.
    panel: Option<i64>,
}

/// The integers of a right operand and their scales in memory.
#[derive(Debug, Clone)]
pub struct Coded<'c, 'a> {
    /// What they are.
    pub codes: Codes,
    words: Columns<'c, 'a>,
    scales: Columns<'c, 'a>,
    zeros: Option<Columns<'c, 'a>>,
    lanes: Lanes,
    /// Whether the values of 4 bits are looked up in a register.
    is_looked_up: bool,
}

/// The smallest float above which floats are integers.
const LARGE: f32 = 8_388_608.0;

/// A panel of columns.
#[derive(Clone, Copy)]
pub struct Panel<'c, 'a> {
    /// The first column.
    pub column: Value<'c, 'a>,
    /// The columns.
    pub columns: i64,
}

/// Adds products of row `k + number` of a panel, given as vectors of its columns, to the sums of part `number` modulo the
/// number of parts; `k` is the value given.
pub type MultiplyAdd<'f, 'c, 'a> = &'f dyn Fn(
    Emit<'c, 'a>,
    Value<'c, 'a>,
    i64,
    &[Value<'c, 'a>],
    &[Value<'c, 'a>],
) -> Result<Vec<Value<'c, 'a>>>;

/// The sums of which each is given in parts, one for each factor that a part is multiplied by: first those of the first
/// part, whose factor is 1, and so on.
pub fn joined<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    sums: &[Value<'c, 'a>],
    factors: &[f64],
    (element, lanes): (Type<'c>, Lanes),
) -> Vec<Value<'c, 'a>> {
    let count = sums.len() / factors.len();
    let mut all = sums[..count].to_vec();
    for (part, factor) in sums.chunks(count.max(1)).zip(factors).skip(1) {
        for (sum, own) in all.iter_mut().zip(part) {
            *sum = match (*factor, is_float(element)) {
                (1.0, true) => e.binary(arith::ADDF, *sum, *own),
                (1.0, false) => e.binary(arith::ADDI, *sum, *own),
                (factor, _) => {
                    let factor = e.float(factor, element, lanes);
                    e.op(math::FMA, &[*own, factor, *sum], lanes.of(element))
                }
            };
        }
    }
    all
}

impl<'c: 'a, 'a> Coded<'c, 'a> {
    /// The memory of the operand of a product; constants are packed in panels of so many columns.
    pub fn take(cg: &mut Codegen<'c, 'a>, e: Emit<'c, 'a>, codes: Codes, panel: i64) -> Self {
        let lanes = cg.full_lanes();
        let mut columns = |tensor: TensorId, depth: i64, quads: Option<Quad>| {
            take_columns(cg, e, (tensor, codes.columns, depth), (panel, lanes), quads)
        };
        let words =
            columns(codes.codes, codes.words(), Some(Quad { rows: 1, bytes: 4, extension: None }));
        let scales = columns(codes.scales, codes.blocks(), None);
        let zeros = codes.zeros.map(|zeros| columns(zeros, codes.blocks(), None));
        let has_tables = lanes == Lanes::Vector(16) && cg.target.dots != Dots::Plain;
        let is_looked_up = has_tables && codes.bits <= 4;
        Self { codes, words, scales, zeros, lanes, is_looked_up }
    }

    /// The memory of the integers.
    pub fn buffer(&self) -> Buffer<'c, 'a> {
        self.words.buffer
    }

    /// The vectors of a row of a panel.
    fn vectors(&self, panel: Panel<'c, 'a>) -> i64 {
        (panel.columns + self.lanes.count() - 1) / self.lanes.count()
    }

    /// A row of a panel: of element `at` of each column.
    fn row(
        &self,
        e: Emit<'c, 'a>,
        from: Columns<'c, 'a>,
        panel: Panel<'c, 'a>,
        at: Value<'c, 'a>,
    ) -> Vec<Value<'c, 'a>> {
        let (width, count) = (self.lanes.count(), self.vectors(panel));
        let vector = |vector: i64| match from.panel {
            Some(reserved) => {
                let start = e.add(e.scale(panel.column, reserved), e.scale(at, count * width));
                e.load_lanes(from.buffer, e.offset(start, vector * width), self.lanes, None)
            }
            None => {
                let start = e.add(e.scale(panel.column, from.depth), at);
                let start = e.offset(start, vector * width * from.depth);
                let mask = e.tail_mask(panel.columns - vector * width, self.lanes);
                e.gather(from.buffer, start, e.iota(from.depth, self.lanes), self.lanes, mask)
            }
        };
        (0..count).map(vector).collect()
    }

    /// The zero points of a block for each place of an integer in a byte, times the power of two of the place.
    fn zeros_at(
        &self,
        e: Emit<'c, 'a>,
        panel: Panel<'c, 'a>,
        block: Value<'c, 'a>,
    ) -> Option<Vec<Vec<Value<'c, 'a>>>> {
        let zeros = self.row(e, self.zeros?, panel, block);
        Some((0..self.codes.per_byte()).map(|place| self.scaled(e, &zeros, place, 1)).collect())
    }

    /// Vectors times the power of two of a place in a byte, or of its reciprocal.
    fn scaled(
        &self,
        e: Emit<'c, 'a>,
        values: &[Value<'c, 'a>],
        place: i64,
        sign: i32,
    ) -> Vec<Value<'c, 'a>> {
        if place == 0 {
            return values.to_vec();
        }
        let factor = 2f64.powi(sign * (self.codes.bits * place) as i32);
        let factor = e.float(factor, e.f32(), self.lanes);
        values.iter().map(|value| e.binary(arith::MULF, *value, factor)).collect()
    }

    /// Integer `number` of each word minus its zero point as a float, times the power of two of its place in a byte: the
    /// integer becomes the lowest bits of a large float, from which that float is subtracted.
    fn value(
        &self,
        e: Emit<'c, 'a>,
        word: Value<'c, 'a>,
        number: i64,
        zero: Option<Value<'c, 'a>>,
    ) -> Value<'c, 'a> {
        let bits = self.codes.bits;
        let (byte, place) = (number / self.codes.per_byte(), number % self.codes.per_byte());
        let constant = |value: i64| e.integer(value, 32, self.lanes);
        let bytes = match byte {
            0 => word,
            _ => e.binary(arith::SHRUI, word, constant(8 * byte)),
        };
        let floats = self.lanes.of(e.f32());
        let value = if self.is_looked_up && place == 0 {
            dots::intrinsic(e, "x86.avx512.permvar.sf.512", &[self.table(e), bytes], floats)
        } else {
            let own = e.binary(arith::ANDI, bytes, constant(((1 << bits) - 1) << (bits * place)));
            let large = e.binary(arith::ORI, own, constant(i64::from(LARGE.to_bits())));
            let large = e.op(arith::BITCAST, &[large], floats);
            let middle = (1_i64 << (bits - 1 + bits * place)) as f64;
            let zero = f64::from(LARGE) + if zero.is_some() { 0.0 } else { middle };
            e.binary(arith::SUBF, large, e.float(zero, e.f32(), self.lanes))
        };
        match zero {
            Some(zero) => e.binary(arith::SUBF, value, zero),
            None => value,
        }
    }

    /// The value of each of 16 numbers, of which the lowest bits are an integer.
    fn table(&self, e: Emit<'c, 'a>) -> Value<'c, 'a> {
        let bits = self.codes.bits;
        let middle = if self.zeros.is_some() { 0 } else { 1 << (bits - 1) };
        let value = |number: i64| (number & ((1 << bits) - 1)) - middle;
        let values: Vec<_> =
            (0..16).map(|number| attr::float(e.context, e.f32(), value(number) as f64)).collect();
        let ty = self.lanes.of(e.f32());
        let table = DenseElementsAttribute::new(ty, &values);
        let table = table.unwrap_or_else(|_| unreachable!("there are as many values as lanes"));
        e.value(e.spec(arith::CONSTANT).attr("value", table.into()).results(&[ty]))
    }

    /// Writes the floats of a panel from depth `from` on, in rows without gaps; `from` and `size`, except at the end, are
    /// whole words.
    ///
    /// # Errors
    /// None.
    pub fn unpack(
        &self,
        e: Emit<'c, 'a>,
        panel: Panel<'c, 'a>,
        (from, size): (Value<'c, 'a>, Value<'c, 'a>),
        (to, target): (Buffer<'c, 'a>, Value<'c, 'a>),
    ) -> Result<()> {
        let (per_word, width) = (self.codes.per_word(), self.lanes.count());
        let row = self.vectors(panel) * width;
        let first = e.binary(arith::DIVUI, from, e.index(per_word));
        let count = e.binary(arith::DIVUI, e.offset(size, per_word - 1), e.index(per_word));
        e.for_each((e.index(0), count, 1), &[], |e, at, _| {
            let word = e.add(first, at);
            let block = e.binary(arith::DIVUI, word, e.index(self.codes.words_of_block()));
            let words = self.row(e, self.words, panel, word);
            let scales = self.row(e, self.scales, panel, block);
            let zeros = self.zeros_at(e, panel, block);
            let places: Vec<Vec<Value>> = (0..self.codes.per_byte())
                .map(|place| self.scaled(e, &scales, place, -1))
                .collect();
            let to_row = e.add(target, e.scale(at, per_word * row));
            for number in 0..per_word {
                let place = (number % self.codes.per_byte()) as usize;
                for (vector, (word, scale)) in words.iter().zip(&places[place]).enumerate() {
                    let zero = zeros.as_ref().map(|zeros| zeros[place][vector]);
                    let value = self.value(e, *word, number, zero);
                    let value = e.binary(arith::MULF, value, *scale);
                    let at = e.offset(to_row, number * row + vector as i64 * width);
                    e.store(value, to, at, self.lanes, None);
                }
            }
            Ok(vec![])
        })
        .map(|_| ())
    }

    /// Sums over the whole depth, from `starts` on: of each block first, in parts, times its scale then.
    ///
    /// # Errors
    /// Those of `multiply_add`.
    pub fn sums(
        &self,
        e: Emit<'c, 'a>,
        panel: Panel<'c, 'a>,
        (starts, parts): (&[Value<'c, 'a>], usize),
        multiply_add: MultiplyAdd<'_, 'c, 'a>,
    ) -> Result<Vec<Value<'c, 'a>>> {
        let Codes { block, depth, .. } = self.codes;
        let whole = depth / block;
        let sums = e.for_each((e.index(0), e.index(whole), 1), starts, |e, at, sums| {
            self.block_sums(e, panel, (at, block), (sums, parts), multiply_add)
        })?;
        if whole * block == depth {
            return Ok(sums);
        }
        let last = (e.index(whole), depth - whole * block);
        self.block_sums(e, panel, last, (&sums, parts), multiply_add)
    }

    /// As [`Self::sums`], over the first `size` elements of a block.
    fn block_sums(
        &self,
        e: Emit<'c, 'a>,
        panel: Panel<'c, 'a>,
        (block, size): (Value<'c, 'a>, i64),
        (sums, parts): (&[Value<'c, 'a>], usize),
        multiply_add: MultiplyAdd<'_, 'c, 'a>,
    ) -> Result<Vec<Value<'c, 'a>>> {
        let per_word = self.codes.per_word();
        let zeros = self.zeros_at(e, panel, block);
        let first_word = e.scale(block, self.codes.words_of_block());
        let of_word = |e: Emit<'c, 'a>, word: Value<'c, 'a>, live: i64, own: &[Value<'c, 'a>]| {
            let words = self.row(e, self.words, panel, word);
            let k = e.scale(word, per_word);
            let mut own = own.to_vec();
            for number in 0..live {
                let place = (number % self.codes.per_byte()) as usize;
                let value = |(vector, word): (usize, &Value<'c, 'a>)| {
                    let zero = zeros.as_ref().map(|zeros| zeros[place][vector]);
                    self.value(e, *word, number, zero)
                };
                let values: Vec<Value> = words.iter().enumerate().map(value).collect();
                own = multiply_add(e, k, number, &values, &own)?;
            }
            Ok(own)
        };
        let zero = e.zero(e.f32(), self.lanes);
        let mut own = vec![zero; sums.len() * parts];
        let whole = size / per_word;
        if whole > 0 {
            let end = e.offset(first_word, whole);
            own = e.for_each((first_word, end, 1), &own, |e, word, own| {
                of_word(e, word, per_word, own)
            })?;
        }
        if size % per_word != 0 {
            own = of_word(e, e.offset(first_word, whole), size % per_word, &own)?;
        }
        let scales = self.row(e, self.scales, panel, block);
        let own = joined(e, &own, &self.codes.factors(parts), (e.f32(), self.lanes));
        let scaled = sums.iter().zip(own).enumerate().map(|(number, (sum, own))| {
            let scale = scales[number % scales.len()];
            e.op(math::FMA, &[own, scale, *sum], self.lanes.of(e.f32()))
        });
        Ok(scaled.collect())
    }
}

/// The memory of a matrix `[columns, depth]`, or of words of four of its bytes; a constant without other readers is packed in
/// panels.
fn take_columns<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    (tensor, columns, depth): (TensorId, i64, i64),
    (panel, lanes): (i64, Lanes),
    quads: Option<Quad>,
) -> Columns<'c, 'a> {
    let element = if quads.is_some() { e.int(32) } else { e.f32() };
    let constant = match cg.kernel.tensors[tensor].origin {
        Origin::Argument(argument) => {
            cg.constants.iter().find(|(index, _)| *index == argument).copied()
        }
        _ => None,
    };
    let reads = cg.kernel.stages.iter().flat_map(|stage| {
        stage.gathered.iter().copied().chain(stage.inputs.iter().map(|input| input.tensor))
    });
    let is_own = reads.filter(|read| *read == tensor).count() == 1;
    let Some((argument, memref)) = constant.filter(|_| is_own) else {
        let place = cg.places[tensor].buffer();
        let buffer = place.unwrap_or_else(|| unreachable!("arguments and constants have memory"));
        let buffer = match quads {
            Some(_) => e.workspace_view(buffer.memref, 0, columns * depth, element),
            None => buffer,
        };
        return Columns { buffer, depth, panel: None };
    };
    let bytes = if quads.is_some() { 4 } else { 1 };
    let packing = Panels {
        argument,
        offset: 0,
        along: 1,
        across: bytes * depth,
        rows: depth,
        columns,
        depth,
        panel,
        lanes: lanes.count(),
        quads,
    };
    let reserved = packing.elements() / ((columns + panel - 1) / panel * panel);
    let packing = Packing::Panels(packing);
    cg.packed.push(packing);
    let own = if quads.is_some() { e.int(8) } else { element };
    let view = super::flat_view(e, memref, packing.elements(), own);
    let buffer = match quads {
        Some(_) => e.workspace_view(view.memref, 0, packing.elements() / 4, element),
        None => view,
    };
    Columns { buffer, depth, panel: Some(reserved) }
}
