//! A convolution with few filters in each group, such as a depthwise one: each element of the result is a sum over
//! its window, in vectors along the rows of the result.
//!
//! A tile is a vector of columns of some rows, whose sums stay in registers, so that an element of the operand is
//! loaded once for all rows of the tile that it is a part of. Where the operand is an argument with padding, the part
//! of it that one image and channel reads is copied to memory that stays in the cache; with steps of 2, with the even
//! elements of its rows before the odd ones. Where masks are cheap, images are read where they are instead, and what is
//! outside of them is masked.
mod in_place;

use self::in_place::{InPlace, Lines, RowsOfTiles};
use super::{
    codegen::Codegen,
    contraction::{adds_products, adds_products_of_bytes},
    dots::Dots,
    error::{LowerError, Result},
    kernel::{Operand, Origin, Stage, TensorId},
    matmul::place_outputs,
    padding::{self, Images, Padding},
    pass::{Pass, emit_result},
    split::{self, Units},
};
use crate::kernel::emit::{Buffer, Emit, Lanes};
use irc_mlir::ops::{arith, math};
use irc_mlir::{OperationLike, Type, TypeLike, Value, ValueLike};
use melior::ir::r#type::IntegerType;

/// The maximum number of taps whose products are written one after the other; more are in loops.
const MAX_TAPS: i64 = 64;

/// The maximum number of products of bytes whose sum is exact in `f32`, in which they are computed.
const MAX_EXACT: i64 = (1 << 24) / (255 * 255);

/// The maximum distance between the elements that neighbouring columns read.
const MAX_STEP: i64 = 4;

/// The maximum number of rows of tiles, of an image that is read where it is, that have code of their own: those at its
/// edges, or all of a small image.
const MAX_EDGES: i64 = 3;

/// The convolution that a stage is.
pub struct DirectConv<'c, 'a> {
    /// The stage.
    pub stage: usize,
    /// Elementwise stages that run on its results.
    pub epilogue: Vec<usize>,
    /// The operand with the windows, with the strides of the padded operand.
    source: Operand,
    filter: Operand,
    /// The number of loops outside of rows and columns of an image.
    outer: usize,
    part: Option<Part<'c, 'a>>,
    /// The images of the argument, if they are read where they are instead of in parts.
    in_place: Option<InPlace>,
    /// The length of a row of the operand if its even elements are before its odd ones.
    split: Option<i64>,
    /// Whether the operand and the filters are unsigned, if they are bytes.
    bytes: Option<[bool; 2]>,
}

/// How the part of the operand that one image and channel reads is copied.
struct Part<'c, 'a> {
    padding: Padding<'c, 'a>,
    /// The dimensions of the operand that the part is one element of.
    lead: usize,
    /// The strides of the outer loops in the argument, and how many of them choose a part.
    strides: Vec<i64>,
    loops: usize,
}

impl<'c: 'a, 'a> DirectConv<'c, 'a> {
    /// The convolution that a stage is, if this schedule applies. A padding of its operand that it copies in parts is
    /// taken out of `paddings`.
    pub fn of(cg: &Codegen<'c, 'a>, s: usize, paddings: &mut Vec<Padding<'c, 'a>>) -> Option<Self> {
        let stage = &cg.kernel.stages[s];
        let n = stage.parallel.checked_sub(1)?;
        let ([first, second], [output]) = (&stage.inputs[..], &stage.outputs[..]) else {
            return None;
        };
        let taps: i64 = stage.sizes[stage.parallel..].iter().product();
        let bytes = adds_products_of_bytes(stage).filter(|_| taps <= MAX_EXACT);
        let ((source, filter), bytes) = match (first.access.coefs[n], second.access.coefs[n]) {
            (1..=MAX_STEP, 0) => ((first.clone(), second.clone()), bytes),
            (0, 1..=MAX_STEP) => {
                ((second.clone(), first.clone()), bytes.map(|[first, second]| [second, first]))
            }
            _ => return None,
        };
        let integer = Type::from(IntegerType::new(irc_mlir::context_of(&stage.op), 32));
        let in_memory = |operand: &Operand| {
            let tensor = &cg.kernel.tensors[operand.tensor];
            let is_stored =
                matches!(tensor.origin, Origin::Argument(_) | Origin::Stage(_) | Origin::Dense(_));
            let is_computed = match bytes {
                None => tensor.element.is_f32(),
                Some(_) => super::byte_width(tensor.element) == 1,
            };
            is_stored && is_computed
        };
        let applies = stage.gathered.is_empty()
            && output.access.coefs[n] == 1
            && (cg.kernel.tensors[output.tensor].element.is_f32()
                || bytes.is_some() && cg.kernel.tensors[output.tensor].element == integer)
            && cg.splat_of(output.init.tensor).is_some()
            && [&source, &filter].into_iter().all(in_memory)
            && (bytes.is_some() || adds_products(stage))
            && has_windows(stage, &source, &filter);
        if !applies {
            return None;
        }
        let has_rows = n > 0 && filter.access.coefs[n - 1] == 0 && source.access.coefs[n - 1] > 0;
        let outer = if has_rows { n - 1 } else { n };
        let mut conv = Self {
            stage: s,
            epilogue: vec![],
            source,
            filter,
            outer,
            part: None,
            in_place: None,
            split: None,
            bytes,
        };
        let is_own = !cg.read_by_other(conv.source.tensor, &[s]);
        let found = paddings.iter().position(|padding| padding.result == conv.source.tensor);
        // Parts of bytes are copied as `f32`.
        let is_copied = is_own && conv.bytes.is_none_or(|[is_unsigned, _]| is_unsigned);
        if let Some(at) = found.filter(|_| is_copied) {
            conv.in_place = conv.images_in_place(cg, stage, &paddings[at]);
            if conv.in_place.is_some() {
                paddings.remove(at);
                return Some(conv);
            }
            conv.split_rows(stage, &mut paddings[at]);
            if let Some((lead, strides)) = conv.parts(stage, &paddings[at]) {
                let loops = strides.iter().rposition(|stride| *stride != 0).map_or(0, |at| at + 1);
                let mut padding = paddings.remove(at);
                // The next part, which is used after this one.
                padding.ahead = loops.checked_sub(1).map(|last| strides[last]);
                conv.part = Some(Part { padding, lead, strides, loops });
            }
        }
        Some(conv)
    }

    /// Has the padding store even elements of rows before odd ones, if every second column is read.
    fn split_rows(&mut self, stage: &Stage<'_, '_>, padding: &mut Padding<'_, '_>) {
        let access = &self.source.access;
        let Some(length) = padding.even_length() else { return };
        let (looped, _) = unrolled(stage);
        let within_row = |dim: usize| access.coefs[dim] % length != 0;
        let columns = stage.parallel - 1;
        // Steps of 2 may also be from row to row.
        let is_possible = access.offset == 0
            && access.coefs[columns] == 2
            && 2 * (stage.sizes[columns] - 1) < length
            && !(0..columns).chain(looped).any(within_row);
        if is_possible {
            padding.split_rows();
            self.split = Some(length);
        }
    }

    /// The leading dimensions of the padded operand that outer loops choose an element of, and the strides of these
    /// loops in the argument.
    fn parts(&self, stage: &Stage<'_, '_>, padding: &Padding<'_, '_>) -> Option<(usize, Vec<i64>)> {
        let access = &self.source.access;
        let reach = |dim: usize| access.coefs[dim] * (stage.sizes[dim] - 1);
        let inner = (self.outer..stage.sizes.len()).map(reach).sum::<i64>() + 1;
        padding.leading(inner, &access.coefs[..self.outer]).filter(|_| access.offset == 0)
    }

    /// The images, if they are read where they are: small ones, whose masks are known, and any others of targets with
    /// registers for masks.
    fn images_in_place(
        &self,
        cg: &Codegen<'c, 'a>,
        stage: &Stage<'c, 'a>,
        padding: &Padding<'c, 'a>,
    ) -> Option<InPlace> {
        let (lead, strides) = self.parts(stage, padding)?;
        let images = padding.images(lead)?;
        let n = stage.parallel - 1;
        if self.outer + 1 != n || !unrolled(stage).0.is_empty() {
            return None;
        }
        let coefs = &self.source.access.coefs;
        let (step, columns) = (coefs[n], stage.sizes[n]);
        let taps = taps(self, stage, n + 1..stage.sizes.len());
        let last = |part: fn(i64, i64) -> i64| {
            taps.iter().map(|tap| part(tap.source, images.length)).max().unwrap_or(0)
        };
        let is_in_rows = coefs[n - 1] % images.length == 0
            && last(|place, length| place % length) + step * (columns - 1) < images.length;
        let is_one_vector = step == 1 && columns <= cg.target.lanes();
        let has_masks = cg.target.vector_bytes >= 64;
        let reach = last(|place, length| place % length) + 1;
        let loaded = has_masks.then(|| self.loaded_of_dots(cg, step, reach)).flatten();
        let applies = match self.bytes {
            _ if images.outside != 0 => loaded.is_some(),
            None => is_one_vector || has_masks && step <= 2,
            Some(_) => is_one_vector && has_masks || loaded.is_some(),
        };
        if !applies || !is_in_rows {
            return None;
        }
        let count = stage.sizes[n - 1];
        let rows = (count, rows_of_tile(cg, count, taps.len() as i64));
        let lines = last(|place, length| place / length) + 1;
        let tiles = RowsOfTiles::of(&images, rows, [coefs[n - 1] / images.length, lines])?;
        Some(InPlace { images, strides, tiles, lines, loaded })
    }

    /// The bytes of a line that a vector of columns reads, if its products are added four at a time: windows of unsigned bytes,
    /// `step` columns apart, that reach over so many.
    fn loaded_of_dots(&self, cg: &Codegen<'c, 'a>, step: i64, reach: i64) -> Option<i64> {
        let are_multiplied = self.bytes == Some([true, false]) && cg.target.dots == Dots::Vnni;
        let bytes = step * (cg.target.lanes() - 1) + (reach + 3) / 4 * 4;
        let most = 4 * cg.target.lanes();
        let loaded = [most / 2, most].into_iter().find(|loaded| bytes <= *loaded);
        loaded.filter(|_| are_multiplied && step <= 2)
    }

    /// Where an element of the operand is, given its number in the padded operand.
    fn place(&self, number: i64) -> i64 {
        match self.split {
            None => number,
            Some(length) => {
                let (row, column) = (number / length, number % length);
                row * length + column % 2 * (length / 2) + column / 2
            }
        }
    }
}

/// Whether windows of neighbouring positions overlap, as those of a matrix product do not.
fn has_windows(stage: &Stage<'_, '_>, source: &Operand, filter: &Operand) -> bool {
    let of = |dim: usize| (source.access.coefs[dim], stage.sizes[dim]);
    let is_position = |dim: &usize| filter.access.coefs[*dim] == 0 && of(*dim).0 > 0;
    let overlaps = |position: usize| {
        let (step, count) = of(position);
        (stage.parallel..stage.sizes.len()).any(|tap| {
            let (distance, taps) = of(tap);
            distance > 0 && distance * (taps - 1) >= step && distance < step * count
        })
    };
    (0..stage.parallel).filter(is_position).any(overlaps)
}

/// The reductions that are loops, and those whose iterations are written one after the other.
fn unrolled(stage: &Stage<'_, '_>) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
    let mut first = stage.sizes.len();
    let mut taps = 1;
    while first > stage.parallel && taps * stage.sizes[first - 1] <= MAX_TAPS {
        first -= 1;
        taps *= stage.sizes[first];
    }
    (stage.parallel..first, first..stage.sizes.len())
}

/// A tap: where it is in the operand and in the filters, from the first one on.
#[derive(Debug, Clone, Copy)]
struct Tap {
    source: i64,
    filter: i64,
}

/// The loops being written.
struct Emitter<'p, 'c, 'a> {
    conv: &'p DirectConv<'c, 'a>,
    stage: Stage<'c, 'a>,
    pass: Pass,
    source: Buffer<'c, 'a>,
    filter: Buffer<'c, 'a>,
    taps: Vec<Tap>,
    looped: std::ops::Range<usize>,
    lanes: Lanes,
    /// Rows of a tile.
    rows: i64,
}

/// One image and channel: the outer induction variables, its first element of the operand and of the filter, and the
/// taps if they are the same everywhere.
struct Image<'p, 'c, 'a> {
    ivs: &'p [Value<'c, 'a>],
    source: Value<'c, 'a>,
    filter: Value<'c, 'a>,
    factors: Option<Vec<Value<'c, 'a>>>,
}

/// A vector of columns of some rows.
#[derive(Clone, Copy)]
struct Tile<'c, 'a> {
    row: Value<'c, 'a>,
    /// The number of the row, if that is known.
    first: Option<i64>,
    rows: i64,
    column: Value<'c, 'a>,
    mask: Option<Value<'c, 'a>>,
}

/// Emits the convolution at the end of the block of `e`.
///
/// # Errors
/// At an op of the epilogue without a vector form.
pub fn emit<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    conv: &DirectConv<'c, 'a>,
) -> Result<()> {
    let stage = cg.kernel.stages[conv.stage].clone();
    let e = e.at(stage.op.location());
    place_outputs(cg, e, conv.stage, &conv.epilogue);
    let buffer = |cg: &Codegen<'c, 'a>, tensor: TensorId| {
        let missing = || LowerError::at(stage.op, "expected operands of a convolution in memory");
        cg.places[tensor].buffer().ok_or_else(missing)
    };
    let source = match (&conv.part, &conv.in_place) {
        (None, None) => buffer(cg, conv.source.tensor)?,
        (None, Some(in_place)) => buffer(cg, in_place.images.source)?,
        (Some(part), _) => {
            // The last vector of a row may be read beyond its end.
            let count = part.padding.part(part.lead) + cg.target.lanes();
            let memory = cg.scratch_of(e, count, e.f32());
            part.padding.clear(cg, e, (memory, e.index(0)), count);
            memory
        }
    };
    let (looped, written) = unrolled(&stage);
    let n = stage.parallel - 1;
    let taps = taps(conv, &stage, written);
    let emitter = Emitter {
        rows: match conv.outer == n {
            true => 1,
            false => rows_of_tile(cg, stage.sizes[n - 1], taps.len() as i64),
        },
        pass: Pass::after_product(&conv.epilogue, n, stage.sizes[n]),
        source,
        filter: buffer(cg, conv.filter.tensor)?,
        taps,
        looped,
        lanes: cg.full_lanes(),
        conv,
        stage,
    };
    let units = cg.units(e, emitter.images(0));
    emitter.emit_outer(cg, e, &mut vec![], units)
}

/// The taps in the order of their elements.
fn taps(
    conv: &DirectConv<'_, '_>,
    stage: &Stage<'_, '_>,
    loops: std::ops::Range<usize>,
) -> Vec<Tap> {
    let mut taps = vec![Tap { source: 0, filter: 0 }];
    for dim in loops {
        let [source, filter] = [&conv.source, &conv.filter].map(|side| side.access.coefs[dim]);
        let at = |tap: Tap, iv: i64| Tap {
            source: tap.source + iv * source,
            filter: tap.filter + iv * filter,
        };
        taps = taps
            .into_iter()
            .flat_map(|tap| (0..stage.sizes[dim]).map(move |iv| at(tap, iv)))
            .collect();
    }
    taps.iter().map(|tap| Tap { source: conv.place(tap.source), ..*tap }).collect()
}

/// The number of rows of a tile, so that tiles are equal if possible: with their sums, the taps of a small filter
/// stay in registers.
fn rows_of_tile(cg: &Codegen<'_, '_>, rows: i64, taps: i64) -> i64 {
    let registers = if cg.target.vector_bytes >= 64 { 7 } else { 4 };
    let most = registers.min(256 / taps).max(1);
    let tiles = (rows + most - 1) / most;
    (rows + tiles - 1) / tiles
}

impl<'c: 'a, 'a> Emitter<'_, 'c, 'a> {
    /// The number of iterations of the outer loops inside of so many.
    fn images(&self, loops: usize) -> i64 {
        self.stage.sizes[loops..self.conv.outer].iter().product()
    }

    /// Emits the outer loops inside of the given ones.
    fn emit_outer(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        ivs: &mut Vec<Value<'c, 'a>>,
        units: Option<Units<'c, 'a>>,
    ) -> Result<()> {
        if let Some(part) = &self.conv.part
            && part.loops == ivs.len()
        {
            let from = e.linear(e.index(0), ivs, &part.strides);
            part.padding.emit_part(cg, e, (self.source, e.index(0)), from, part.lead)?;
        }
        if ivs.len() == self.conv.outer {
            return self.emit_image(cg, e, ivs);
        }
        let loops = (self.stage.sizes[ivs.len()], self.images(ivs.len() + 1));
        split::loop_over(e, loops, units, |e, iv, units| {
            ivs.push(iv);
            let result = self.emit_outer(cg, e, ivs, units);
            ivs.pop();
            result
        })
    }

    fn emit_image(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        ivs: &[Value<'c, 'a>],
    ) -> Result<()> {
        let (source, filter) = (&self.conv.source.access, &self.conv.filter.access);
        let first = match (&self.conv.part, &self.conv.in_place) {
            (Some(_), _) => e.index(0),
            (None, None) => e.linear(e.index(source.offset), ivs, &source.coefs),
            (None, Some(found)) => e.linear(e.index(found.images.first), ivs, &found.strides),
        };
        let mut image = Image {
            ivs,
            source: first,
            filter: e.linear(e.index(filter.offset), ivs, &filter.coefs),
            factors: None,
        };
        if self.looped.is_empty() {
            image.factors = Some(match self.dots() {
                None => self.factors(e, image.filter),
                Some(found) => self.words(e, &found.images, image.filter),
            });
        }
        let n = self.stage.parallel - 1;
        if self.conv.outer == n {
            return self.emit_row_of_tiles(cg, e, &image, (e.index(0), 1));
        }
        let (count, each) = (self.stage.sizes[n - 1], self.rows);
        if let Some(in_place) = &self.conv.in_place {
            return self.emit_in_place(cg, e, &image, &in_place.tiles);
        }
        let whole = count / each * each;
        if whole == each {
            self.emit_row_of_tiles(cg, e, &image, (e.index(0), each))?;
        } else if whole > 0 {
            e.for_each((e.index(0), e.index(whole), each), &[], |e, row, _| {
                self.emit_row_of_tiles(cg, e, &image, (row, each)).map(|()| vec![])
            })?;
        }
        if whole < count {
            self.emit_row_of_tiles(cg, e, &image, (e.index(whole), count - whole))?;
        }
        Ok(())
    }

    /// Emits the tiles of an image that is read where it is.
    fn emit_in_place(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        image: &Image<'_, 'c, 'a>,
        tiles: &RowsOfTiles,
    ) -> Result<()> {
        let (columns, width) = (self.pass.sizes[0], self.lanes.count());
        let mut columns_of = |e: Emit<'c, 'a>, row: Value<'c, 'a>, first: Option<i64>| {
            let tile = Tile { row, first, rows: self.rows, column: e.index(0), mask: None };
            if columns <= width {
                let mask = e.tail_mask(columns, self.lanes);
                return self.emit_tile(cg, e, image, Tile { mask, ..tile });
            }
            // The last vector moves to the left so that it is whole.
            let bounds = (e.index(0), e.index(columns), width);
            let looped = e.for_each(bounds, &[], |e, at, _| {
                let is_whole = columns % width == 0;
                let column = if is_whole { at } else { e.min(at, e.index(columns - width)) };
                self.emit_tile(cg, e, image, Tile { column, ..tile }).map(|()| vec![])
            });
            looped.map(|_| ())
        };
        let [above, below] = &tiles.edges;
        for first in above {
            columns_of(e, e.index(*first), Some(*first))?;
        }
        let inner = (e.index(tiles.inner.start), e.index(tiles.inner.end), self.rows);
        if !tiles.inner.is_empty() {
            e.for_each(inner, &[], |e, row, _| columns_of(e, row, None).map(|()| vec![]))?;
        }
        for first in below {
            columns_of(e, e.index(*first), Some(*first))?;
        }
        Ok(())
    }

    /// The lines of images that are read where they are from one row of the result to the next.
    fn line_step(&self, images: &Images) -> i64 {
        self.conv.source.access.coefs[self.stage.parallel - 2] / images.length
    }

    /// The taps, each in all lanes.
    fn factors(&self, e: Emit<'c, 'a>, filter: Value<'c, 'a>) -> Vec<Value<'c, 'a>> {
        let factor = |tap: &Tap| {
            let tap = e.load(self.filter, e.offset(filter, tap.filter));
            let tap = match self.conv.bytes {
                None => tap,
                Some([_, is_unsigned]) => {
                    padding::float_of_byte(e, tap, is_unsigned, Lanes::Scalar)
                }
            };
            e.splat(tap, self.lanes)
        };
        self.taps.iter().map(factor).collect()
    }

    fn emit_row_of_tiles(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        image: &Image<'_, 'c, 'a>,
        (row, rows): (Value<'c, 'a>, i64),
    ) -> Result<()> {
        e.each_vector(self.pass.sizes[0], self.lanes, |e, column, mask| {
            self.emit_tile(cg, e, image, Tile { row, first: None, rows, column, mask })
        })
    }

    fn emit_tile(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        image: &Image<'_, 'c, 'a>,
        tile: Tile<'c, 'a>,
    ) -> Result<()> {
        let output = self.stage.outputs[0].clone();
        let init = cg.splat_of(output.init.tensor);
        let missing = || LowerError::at(self.stage.op, "expected a filled accumulator");
        let zero = match (init.ok_or_else(missing)?, self.conv.bytes) {
            (init, None) => e.constant(init, e.f32(), self.lanes),
            (_, Some(_)) if self.dots().is_some() => e.zero(e.int(32), self.lanes),
            (_, Some(_)) => e.zero(e.f32(), self.lanes),
        };
        let n = self.stage.parallel - 1;
        let coefs = &self.conv.source.access.coefs;
        let step = if self.conv.split.is_some() { 1 } else { coefs[n] };
        let mut at = e.add(image.source, e.scale(tile.column, step));
        if self.conv.outer < n && tile.first.is_none() {
            let row = match &self.conv.in_place {
                None => coefs[n - 1],
                Some(InPlace { images, .. }) => self.line_step(images) * images.row,
            };
            at = e.add(at, e.scale(tile.row, row));
        }
        let starts = vec![zero; tile.rows as usize];
        let sums = self.sum(e, image, tile, (at, image.filter), self.looped.clone(), starts);
        for (number, mut sum) in sums.into_iter().enumerate() {
            if self.conv.bytes.is_some() && self.dots().is_none() {
                sum = e.op(arith::FPTOSI, &[sum], self.lanes.of(e.int(32)));
            }
            let mut rows = image.ivs.to_vec();
            if self.conv.outer < n {
                rows.push(e.offset(tile.row, number as i64));
            }
            let result = (&output, sum);
            emit_result(cg, e, &self.pass, result, &rows, tile.column, tile.mask)?;
        }
        Ok(())
    }

    /// Adds the products of all taps to the sums of the rows of a tile.
    fn sum(
        &self,
        e: Emit<'c, 'a>,
        image: &Image<'_, 'c, 'a>,
        tile: Tile<'c, 'a>,
        (source, filter): (Value<'c, 'a>, Value<'c, 'a>),
        mut loops: std::ops::Range<usize>,
        sums: Vec<Value<'c, 'a>>,
    ) -> Vec<Value<'c, 'a>> {
        let Some(dim) = loops.next() else {
            let factors = match &image.factors {
                Some(factors) => factors.clone(),
                None => self.factors(e, filter),
            };
            return self.sum_of_taps(e, tile, source, &factors, sums);
        };
        let [of_source, of_filter] =
            [&self.conv.source, &self.conv.filter].map(|side| side.access.coefs[dim]);
        let bounds = (e.index(0), e.index(self.stage.sizes[dim]), 1);
        let looped = e.for_each::<std::convert::Infallible>(bounds, &sums, |e, iv, sums| {
            let at = (e.add(source, e.scale(iv, of_source)), e.add(filter, e.scale(iv, of_filter)));
            Ok(self.sum(e, image, tile, at, loops, sums.to_vec()))
        });
        let Ok(sums) = looped;
        sums
    }

    /// Adds the products of the taps from these elements on, each of which is loaded once.
    fn sum_of_taps(
        &self,
        e: Emit<'c, 'a>,
        tile: Tile<'c, 'a>,
        source: Value<'c, 'a>,
        factors: &[Value<'c, 'a>],
        mut sums: Vec<Value<'c, 'a>>,
    ) -> Vec<Value<'c, 'a>> {
        if let Some(found) = self.dots() {
            return self.sum_of_dots(e, found, (tile, source), factors, sums);
        }
        let n = self.stage.parallel - 1;
        let row = if self.conv.outer < n { self.conv.source.access.coefs[n - 1] } else { 0 };
        let of_row = |number: i64| {
            let taps = self.taps.iter().zip(factors);
            taps.map(move |(tap, factor)| (number * row + tap.source, number as usize, *factor))
        };
        let mut products: Vec<_> = (0..tile.rows).flat_map(of_row).collect();
        products.sort_by_key(|(place, number, _)| (*place, *number));
        let mut lines =
            self.conv.in_place.as_ref().map(|found| Lines::of(self, found, tile, source));
        for group in products.chunk_by(|a, b| a.0 == b.0) {
            let vector = match &mut lines {
                Some(lines) => lines.load(e, group[0].0),
                None => Some(self.load(e, e.offset(source, group[0].0), tile.mask)),
            };
            let Some(vector) = vector else { continue };
            for (_, number, factor) in group {
                let sum = sums[*number];
                sums[*number] = e.op(math::FMA, &[vector, *factor, sum], sum.r#type());
            }
        }
        sums
    }

    /// The elements of a vector of columns.
    fn load(
        &self,
        e: Emit<'c, 'a>,
        at: Value<'c, 'a>,
        mask: Option<Value<'c, 'a>>,
    ) -> Value<'c, 'a> {
        let step = self.conv.source.access.coefs[self.stage.parallel - 1];
        let value = match step != 1 && self.conv.split.is_none() {
            true => e.load_strided(self.source, (at, step), self.lanes, mask),
            false => {
                let mask = mask.filter(|_| self.conv.part.is_none());
                e.load_lanes(self.source, at, self.lanes, mask)
            }
        };
        match self.conv.bytes.filter(|_| self.conv.part.is_none()) {
            None => value,
            Some([is_unsigned, _]) => padding::float_of_byte(e, value, is_unsigned, self.lanes),
        }
    }
}
