//! Convolutions as products of the matrix of filters, which may be packed, and panels of positions.
//!
//! Positions of an image are numbered across its lines. The elements under the filters at as many positions as a tile has
//! columns are copied to a panel, zeros where they are outside of the image; then all tiles of filters read it.
//!
//! Bytes are multiplied four at a time, those of neighbouring channels: what is said of channels and of elements is then of such
//! four.
use super::{EQ, Load, SLE, Tile, Tiles, Writer, epilogue::Vector, windows::MAX_FLOATS};
use crate::kernel::{
    column_tail::{self, Products},
    emit::{Buffer, Emit, Lanes, Prefetch},
    in_place,
};
use crate::lowering::compute_to_loops::nest::Part;
use crate::lowering::linalg_to_vector::{
    Dots, dots,
    split::{self, Extent, Units},
};
use irc_mlir::ops::arith;
use irc_mlir::{Value, ValueLike};
use irc_packing::Quad;
use irc_tl::{Compute, Dim, Scalar, Type};
use std::convert::Infallible;

/// The minimum and maximum number of positions of a panel: multiples of the columns of a tile.
const COLUMNS: [i64; 2] = [96, 192];

/// The elements that a panel with more than the minimum number of positions has at most.
const MAX_ELEMENTS: i64 = 1 << 13;

/// The elements between the rows of a panel: a vector that begins in a row ends before the next one.
const GAP: i64 = 16;

/// The elements by which packed filters are prefetched.
const AHEAD: i64 = 1024;

/// The number of elements under the filters at a position from which on they are divided into blocks.
const DEEP: i64 = 256;

/// The maximum of that number in a block.
const DEEPEST: i64 = 512;

/// As [`DEEPEST`], of elements of bytes, which are not divided into blocks.
const DEEPEST_BYTES: i64 = 1 << 12;

/// The minimum number of filters for which a panel is copied.
const MIN_FILTERS: i64 = 8;

/// As [`MIN_FILTERS`], of each of several groups.
const MIN_FILTERS_OF_GROUP: i64 = 2;

/// The bytes that are multiplied at a time.
const QUAD: i64 = 4;

/// The vectors of a tile, of so many elements: as many as there are registers for.
pub(super) fn vectors(lanes: i64) -> i64 {
    if lanes >= MAX_FLOATS { 3 } else { 2 }
}

/// How a nest is computed in panels.
#[derive(Clone, Copy)]
pub(super) struct Panels {
    /// The loop over filters; those after it are over positions.
    pub(super) row: usize,
    /// The groups of filters, which the loop before that over filters counts if there are several.
    groups: i64,
    /// The filters of a group.
    pub(super) filters: i64,
    pub(super) channels: i64,
    /// The bytes of an element, if products of bytes are added.
    bytes: Option<i64>,
    /// The number of positions of a filter.
    taps: i64,
    /// The channels of a block: a panel holds their elements.
    block: i64,
    /// The filters of a tile.
    rows: i64,
    /// The number of positions of a panel. Lines of the result that are long in memory are written fast.
    columns: i64,
    /// The axis of the operand with its channels, if panels may be read where they are.
    in_place: Option<usize>,
    /// Whether a few columns may be computed with filters in lanes.
    has_few: bool,
}

/// A panel: the indices of the loops before positions, and its positions.
struct Panel<'p, 'c, 'a> {
    at: &'p [Value<'c, 'a>],
    /// The number of its first position.
    first: Value<'c, 'a>,
    /// The number of its positions.
    count: Value<'c, 'a>,
    /// The number of all positions.
    positions: Value<'c, 'a>,
}

/// The elements under the filters at the positions of a panel: copied, or where they are.
#[derive(Clone, Copy)]
struct Elements<'c, 'a> {
    buffer: Buffer<'c, 'a>,
    /// The place of the first one of the first position.
    first: Value<'c, 'a>,
    /// The distance between those of a position.
    along: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Elements<'c, 'a> {
    /// The place of an element of a position.
    fn place(&self, e: Emit<'c, 'a>, k: Value<'c, 'a>, column: Value<'c, 'a>) -> Value<'c, 'a> {
        e.add(e.add(self.first, e.binary(arith::MULI, k, self.along)), column)
    }
}

/// The sums of a tile of filters.
struct Sums<'c, 'a> {
    /// The first filter.
    filter: Value<'c, 'a>,
    /// The vectors of a filter.
    vectors: i64,
    values: Vec<Value<'c, 'a>>,
    /// Where they are in the result.
    places: Vec<Value<'c, 'a>>,
    /// The lanes that exist, if not all do.
    live: Option<Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Sums<'c, 'a> {
    /// Adds others.
    fn add(&mut self, e: Emit<'c, 'a>, others: Vec<Value<'c, 'a>>, products: Products<'c, 'a>) {
        for (sum, other) in self.values.iter_mut().zip(others) {
            *sum = products.sum(e, *sum, other);
        }
    }
}

/// The columns of a tile.
#[derive(Clone, Copy)]
enum Columns {
    /// So many vectors.
    Vectors(i64),
    /// Those that are left of a vector.
    Rest,
    /// A few, with filters in lanes.
    Few,
    /// So many vectors and one more column, with filters in lanes.
    Last(i64),
}

impl Columns {
    fn vectors(self) -> i64 {
        match self {
            Self::Vectors(vectors) | Self::Last(vectors) => vectors,
            Self::Rest | Self::Few => 1,
        }
    }
}

impl Panels {
    /// The panels of a nest, if one factor is a matrix of known size, of contiguous rows.
    pub(super) fn of(
        tiles: &Tiles,
        compute: &Compute,
        types: &[&Type],
        lanes: i64,
    ) -> Option<Self> {
        let row = tiles.row.filter(|_| tiles.step > 0)?;
        let over = &compute.reduction.as_ref()?.dims;
        let broadcast = tiles.broadcast.as_ref()?;
        let dims = &types[broadcast.operand].dims;
        let outer = broadcast.at.iter().position(|index| *index == Scalar::Loop(row))?;
        let rest = &broadcast.at[outer + 1..];
        let reduced = compute.dims.len();
        let first = row.checked_sub(outer).filter(|_| outer <= 1)?;
        let groups = match outer {
            0 => 1,
            _ => dims[0].known()?,
        };
        // Axes of one element have no loop.
        let looped = rest.iter().filter(|index| **index != Scalar::index(0));
        let all = (0..over.len()).filter(|number| !over[*number].is(1));
        let all: Vec<_> = all.map(|number| Scalar::Loop(reduced + number)).collect();
        let is_matrix = (first..row).map(Scalar::Loop).eq(broadcast.at[..outer].iter().cloned())
            && dims[..=outer] == compute.dims[first..=row]
            && looped.eq(all.iter())
            && Dim::product(over) == Dim::product(&dims[outer + 1..]);
        let is_other = broadcast.operand != tiles.vector.operand;
        let filters = compute.dims[row].known()?;
        let (channels, taps) = (over.first()?.known()?, Dim::product(&over[1..]).known()?);
        let bytes = tiles.are_bytes().then(|| channels.min(QUAD));
        if bytes.is_some_and(|bytes| bytes < 1 || channels % bytes != 0 || tiles.step > 2) {
            return None;
        }
        let channels = channels / bytes.unwrap_or(1);
        let mut rows = match lanes {
            16.. => 8,
            8.. => 6,
            _ => 4,
        };
        // Packed groups follow each other.
        while groups > 1 && filters % rows != 0 {
            rows -= 1;
        }
        let block = match channels * taps <= DEEP || bytes.is_some() {
            true => channels,
            false => {
                let blocks = (channels * taps + DEEP - 1) / DEEP;
                up((channels + blocks - 1) / blocks, rows)
            }
        };
        let fewest = if groups > 1 { MIN_FILTERS_OF_GROUP } else { MIN_FILTERS };
        let deepest = if bytes.is_some() { DEEPEST_BYTES } else { DEEPEST };
        let fits = channels > 0 && taps > 0 && block * taps <= deepest && filters >= fewest;
        let [mut columns, most] = COLUMNS;
        while columns < most && 2 * columns * block * taps <= MAX_ELEMENTS {
            columns *= 2;
        }
        let is_plain =
            tiles.guards.is_empty() && tiles.bound.is_none() && tiles.step == 1 && bytes.is_none();
        let are_lines = taps == 1 && row + 2 == compute.dims.len();
        let in_place = tiles.vector.at.iter().position(|index| *index == Scalar::Loop(reduced));
        let in_place = in_place.filter(|_| is_plain && are_lines);
        (is_matrix && is_other && fits).then_some(Self {
            row,
            groups,
            filters,
            channels,
            bytes,
            taps,
            block,
            rows,
            columns,
            in_place,
            has_few: 2 * rows == lanes
                && [block, channels]
                    .iter()
                    .all(|channels| channels * taps % column_tail::MAX_STEPS == 0),
        })
    }

    /// Panels that are read where they are.
    fn read_in_place(self) -> Self {
        Self { block: self.channels, ..self }
    }

    /// Panels that are copied, although they might be read where they are: they have whole vectors.
    fn copied(self) -> Self {
        Self { in_place: None, has_few: false, ..self }
    }

    /// The elements of a panel in memory.
    pub(super) fn elements(&self) -> i64 {
        self.block * self.taps * self.stride()
    }

    /// The products of filters and elements.
    fn products<'c: 'a, 'a>(&self, e: Emit<'c, 'a>) -> Products<'c, 'a> {
        if self.bytes.is_none() {
            return Products::floats(e);
        }
        let add = |e: Emit<'c, 'a>, [filter, element]: [Value<'c, 'a>; 2], sum, lanes| {
            Dots::Vnni.add(e, [element, filter], sum, lanes)
        };
        Products { element: e.int(32), add }
    }

    /// Whether bytes are multiplied four at a time.
    pub(super) fn has_quads(&self) -> bool {
        self.bytes.is_some()
    }

    /// The distance between the rows of a panel.
    fn stride(&self) -> i64 {
        self.columns + GAP
    }

    /// The elements under the filters at a position.
    fn depth(&self) -> i64 {
        self.channels * self.taps
    }

    /// Bytes of the memory of a part: panels of bytes may be too large for a stack.
    pub(super) fn part_bytes(&self) -> i64 {
        if self.bytes.is_some() { 4 * self.elements() } else { 0 }
    }

    /// The packing of the filters.
    pub(super) fn packing(&self, argument: usize) -> irc_packing::Panels {
        irc_packing::Panels {
            argument,
            offset: 0,
            along: 1,
            across: self.depth() * self.bytes.unwrap_or(1),
            rows: self.depth(),
            columns: self.groups * self.filters,
            depth: self.depth(),
            panel: self.rows,
            lanes: self.rows,
            quads: self.bytes.map(|bytes| Quad { rows: self.taps, bytes, extension: None }),
        }
    }
}

fn up(size: i64, unit: i64) -> i64 {
    (size + unit - 1) / unit * unit
}

impl<'c: 'a, 'a> Writer<'_, 'c, 'a> {
    /// Emits the nest, or a part of it, in panels.
    pub(super) fn in_panels(
        &self,
        e: Emit<'c, 'a>,
        panels: &Panels,
        part: Option<Part<'c, 'a>>,
        is_packed: bool,
    ) {
        let positions = self.sizes.value(e, &Dim::product(&self.dims[panels.row + 1..]));
        let strips = Extent::Known((panels.filters + panels.rows - 1) / panels.rows);
        let mut counts: Vec<_> =
            self.dims[..panels.row].iter().map(|dim| self.sizes.extent(e, dim)).collect();
        counts.push(Extent::Passed(positions).groups(e, panels.columns));
        counts.push(strips);
        let units =
            part.map(|[part, parts]| Units::of_part(e, Extent::product(e, &counts), part, parts));
        let way = |e, panels: Panels| {
            self.around(e, (&panels, is_packed), &counts, (&mut vec![], positions), units);
            Ok::<_, Infallible>(vec![])
        };
        let Some(axis) = panels.in_place else {
            let Ok(_) = way(e, *panels);
            return;
        };
        // Where lines of channels displace each other in caches, they are copied.
        let distance = self.axis_distance(e, self.tiles.vector.operand, axis);
        let fits = in_place::emit_fits_l2(e, panels.depth(), distance);
        let Ok(_) =
            e.if_else(fits, &[], |e| way(e, panels.read_in_place()), |e| way(e, panels.copied()));
    }

    /// The remaining loops before positions, then that over panels.
    fn around(
        &self,
        e: Emit<'c, 'a>,
        (panels, is_packed): (&Panels, bool),
        counts: &[Extent<'c, 'a>],
        (at, positions): (&mut Vec<Value<'c, 'a>>, Value<'c, 'a>),
        units: Option<Units<'c, 'a>>,
    ) {
        let (count, inner) = (counts[0], Extent::product(e, &counts[1..]));
        let Ok(()) = split::loop_over::<Infallible>(e, (count, inner), units, |e, index, units| {
            at.push(index);
            match &counts[1..] {
                [strips] => {
                    at.pop();
                    let first = e.scale(index, panels.columns);
                    let left = e.binary(arith::SUBI, positions, first);
                    let count = e.min(left, e.index(panels.columns));
                    let panel = Panel { at, first, count, positions };
                    let strips = units.unwrap_or(Units { from: e.index(0), to: strips.value(e) });
                    self.blocks(e, (panels, is_packed), &panel, strips);
                }
                rest => {
                    self.around(e, (panels, is_packed), rest, (at, positions), units);
                    at.pop();
                }
            }
            Ok(())
        });
    }

    /// The blocks of channels: the panel of each, and the tiles of some strips of filters.
    fn blocks(
        &self,
        e: Emit<'c, 'a>,
        (panels, is_packed): (&Panels, bool),
        panel: &Panel<'_, 'c, 'a>,
        strips: Units<'c, 'a>,
    ) {
        let all = (e.index(0), e.index(panels.channels), panels.block);
        let Ok(_) = e.for_each::<Infallible>(all, &[], |e, channel, _| {
            let left = e.binary(arith::SUBI, e.index(panels.channels), channel);
            let channels = e.min(left, e.index(panels.block));
            if panels.in_place.is_none() {
                self.copy(e, panels, panel, (channel, channels));
            }
            let whole = e.index(panels.filters / panels.rows);
            let ranges = [
                (strips.from, e.min(strips.to, whole), panels.rows),
                (e.max(strips.from, whole), strips.to, panels.filters % panels.rows),
            ];
            for (from, to, rows) in ranges.into_iter().filter(|(.., rows)| *rows > 0) {
                let Ok(_) = e.for_each::<Infallible>((from, to, 1), &[], |e, strip, _| {
                    self.strip(e, panels, panel, (strip, rows, is_packed), (channel, channels));
                    if self.finishes_later() {
                        let done = e.add(channel, channels);
                        let is_last = e.compare(0, done, e.index(panels.channels));
                        let finish = |e| {
                            self.finish_strip(e, panels, panel, (strip, rows));
                            Ok::<_, Infallible>(vec![])
                        };
                        let Ok(_) = e.if_else(is_last, &[], finish, |_| Ok(vec![]));
                    }
                    Ok(vec![])
                });
            }
            Ok(vec![])
        });
    }

    /// Applies the epilogue to the sums of a strip of filters.
    fn finish_strip(
        &self,
        e: Emit<'c, 'a>,
        panels: &Panels,
        panel: &Panel<'_, 'c, 'a>,
        (strip, rows): (Value<'c, 'a>, i64),
    ) {
        let first = e.scale(strip, panels.rows);
        let bounds = (first, e.offset(first, rows), 1);
        let Ok(_) = e.for_each::<Infallible>(bounds, &[], |e, filter, _| {
            let at = [panel.at, &[filter]].concat();
            let place = e.binary(arith::MULI, self.place(e, &at, 0), panel.positions);
            self.finish(e, &at, (e.add(place, panel.first), panel.count));
            Ok(vec![])
        });
    }

    /// The tiles of a strip of filters: whole ones, then one of a vector for each that is left, or of a few columns.
    fn strip(
        &self,
        e: Emit<'c, 'a>,
        panels: &Panels,
        panel: &Panel<'_, 'c, 'a>,
        filters: (Value<'c, 'a>, i64, bool),
        channels: (Value<'c, 'a>, Value<'c, 'a>),
    ) {
        let width = self.lanes.count();
        let columns = self.vectors * width;
        let rest = e.binary(arith::REMSI, panel.count, e.index(columns));
        let whole = e.binary(arith::SUBI, panel.count, rest);
        let tiles = Columns::Vectors(self.vectors);
        let ranges = if panels.has_few && filters.2 {
            // As many lanes of a vector as have a column, if they are few.
            let left = e.binary(arith::REMSI, panel.count, e.index(width));
            let is_few = e.compare(SLE, left, e.index(column_tail::MAX_COLUMNS));
            let either = |condition, x, y| e.op(arith::SELECT, &[condition, x, y], left.r#type());
            let end = e.binary(arith::SUBI, panel.count, either(is_few, left, e.index(0)));
            // One column after a tile is part of it.
            let is_one = e.compare(EQ, rest, e.index(1));
            let is_last = e.binary(arith::ANDI, is_one, e.compare(SLE, e.index(columns), whole));
            let start = either(is_last, e.offset(whole, -columns), whole);
            let [rest, few] = [whole, end].map(|from| either(is_last, panel.count, from));
            vec![
                (e.index(0), start, tiles),
                (start, whole, Columns::Last(self.vectors)),
                (rest, end, Columns::Rest),
                (few, panel.count, Columns::Few),
            ]
        } else {
            vec![(e.index(0), whole, tiles), (whole, panel.count, Columns::Rest)]
        };
        for (from, to, columns) in ranges {
            let step = columns.vectors() * width;
            let Ok(_) = e.for_each::<Infallible>((from, to, step), &[], |e, column, _| {
                self.product(e, panels, panel, filters, channels, (column, columns));
                Ok(vec![])
            });
        }
    }

    /// The sums of a few columns from one on in a block of channels, with filters in lanes.
    fn few(
        &self,
        e: Emit<'c, 'a>,
        panels: &Panels,
        elements: Elements<'c, 'a>,
        (first, depth): (Value<'c, 'a>, Value<'c, 'a>),
        (column, count): (Value<'c, 'a>, Value<'c, 'a>),
    ) -> Vec<Value<'c, 'a>> {
        // Those after the last column are never used.
        let last = e.offset(e.add(column, count), -1);
        let columns_at: Vec<_> =
            (0..column_tail::MAX_COLUMNS).map(|at| e.min(e.offset(column, at), last)).collect();
        let filters = self.filters(e, panels);
        let lanes = Lanes::Vector(panels.rows);
        let products = panels.products(e);
        let zero = e.zero(products.element, lanes);
        let rows = |e: Emit<'c, 'a>, k| {
            e.load_lanes(filters, e.add(first, e.scale(k, panels.rows)), lanes, None)
        };
        let element = |e: Emit<'c, 'a>, k, number: i64| {
            let at = elements.place(e, k, columns_at[number as usize]);
            e.splat(e.load(elements.buffer, at), lanes)
        };
        let sums_of = |e: Emit<'c, 'a>, columns: i64| {
            let mut sums =
                column_tail::sums(e, (columns, depth), (lanes, products), &rows, &element);
            sums.resize(column_tail::MAX_COLUMNS as usize, zero);
            Ok::<_, Infallible>(sums)
        };
        let is_one = e.compare(EQ, count, e.index(1));
        let types = vec![zero.r#type(); column_tail::MAX_COLUMNS as usize];
        let all = |e: Emit<'c, 'a>| sums_of(e, column_tail::MAX_COLUMNS);
        let Ok(columns) = e.if_else(is_one, &types, |e| sums_of(e, 1), all);
        columns
    }

    /// Copies the elements of some channels to the panel, one line of the image after the other.
    fn copy(
        &self,
        e: Emit<'c, 'a>,
        panels: &Panels,
        panel: &Panel<'_, 'c, 'a>,
        channels: (Value<'c, 'a>, Value<'c, 'a>),
    ) {
        let (column, width) = (self.dims.len() - 1, self.lanes.count());
        let line_length = self.sizes.value(e, &self.dims[column]);
        let end = e.add(panel.first, panel.count);
        let from = e.binary(arith::DIVUI, panel.first, line_length);
        let to = e.binary(arith::DIVUI, e.offset(end, -1), line_length);
        let lines = (from, e.offset(to, 1), 1);
        let Ok(_) = e.for_each::<Infallible>(lines, &[], |e, line, _| {
            let line_start = e.binary(arith::MULI, line, line_length);
            let start = e.max(panel.first, line_start);
            let stop = e.min(end, e.add(line_start, line_length));
            let mut at = panel.at.to_vec();
            at.resize(self.dims.len(), e.index(0));
            let mut left = line;
            for dim in (panels.row + 1..column).rev() {
                let extent = self.sizes.value(e, &self.dims[dim]);
                at[dim] = match dim == panels.row + 1 {
                    true => left,
                    false => e.binary(arith::REMUI, left, extent),
                };
                left = e.binary(arith::DIVUI, left, extent);
            }
            let count = e.binary(arith::SUBI, stop, start);
            let Ok(_) = e.for_each::<Infallible>((e.index(0), count, width), &[], |e, done, _| {
                let place = e.add(start, done);
                at[column] = e.binary(arith::SUBI, place, line_start);
                let rest = Some(e.binary(arith::SUBI, count, done));
                let tile = Tile { at: &at, rows: 1, vectors: 1, rest };
                let place = e.binary(arith::SUBI, place, panel.first);
                self.taps(e, panels, &tile, (&mut vec![], e.index(0)), channels, place);
                Ok(vec![])
            });
            Ok(vec![])
        });
    }

    /// The remaining loops over positions of a filter, then that over channels, which copies a vector of each.
    fn taps(
        &self,
        e: Emit<'c, 'a>,
        panels: &Panels,
        tile: &Tile<'_, 'c, 'a>,
        (taps, tap): (&mut Vec<Value<'c, 'a>>, Value<'c, 'a>),
        (channel, channels): (Value<'c, 'a>, Value<'c, 'a>),
        place: Value<'c, 'a>,
    ) {
        if let Some(dim) = self.over.get(taps.len() + 1) {
            let extent = self.sizes.value(e, dim);
            let bounds = (e.index(0), extent, 1);
            let Ok(_) = e.for_each::<Infallible>(bounds, &[], |e, index, _| {
                let tap = e.add(e.binary(arith::MULI, tap, extent), index);
                taps.push(index);
                self.taps(e, panels, tile, (taps, tap), (channel, channels), place);
                taps.pop();
                Ok(vec![])
            });
            return;
        }
        let panel = self.copied();
        let all = self.sizes.value(e, &Dim::product(&self.over[1..]));
        // What a vector writes after its line is written again by the next line, or is no column.
        let Ok(_) = e.for_each::<Infallible>((e.index(0), channels, 1), &[], |e, number, _| {
            let bytes = panels.bytes.unwrap_or(1);
            let first = e.scale(e.add(channel, number), bytes);
            let elements = (0..bytes).map(|byte| {
                let loops = [tile.at, &[e.offset(first, byte)], taps].concat();
                let guard = self.guard(e, &mut self.body(e, &loops));
                let values = self.read(e, tile, &loops, (0, guard));
                // Processors do not prefetch lines that are far apart.
                let Load { operand, at } = &self.tiles.vector;
                let next = self.body(e, &loops).place(e, *operand, at);
                let next = e.offset(next, panels.columns * self.tiles.step);
                e.prefetch(self.operands[*operand].1, next, Prefetch::L2);
                values
            });
            let elements: Vec<_> = elements.collect();
            let values = match panels.bytes {
                Some(_) => dots::joined(e, &elements, self.lanes),
                None => elements[0],
            };
            let depth = e.add(e.binary(arith::MULI, number, all), tap);
            let place = e.add(e.scale(depth, panels.stride()), place);
            e.store(values, panel, place, self.lanes, None);
            Ok(vec![])
        });
    }

    /// The elements of a panel.
    fn elements(
        &self,
        e: Emit<'c, 'a>,
        panels: &Panels,
        panel: &Panel<'_, 'c, 'a>,
    ) -> Elements<'c, 'a> {
        let Some(axis) = panels.in_place else {
            let (buffer, along) = (self.copied(), e.index(panels.stride()));
            return Elements { buffer, first: e.index(0), along };
        };
        let Load { operand, at } = &self.tiles.vector;
        let loops = [panel.at, &[e.index(0), panel.first, e.index(0)]].concat();
        let first = self.body(e, &loops).place(e, *operand, at);
        let along = self.axis_distance(e, *operand, axis);
        Elements { buffer: self.operands[*operand].1, first, along }
    }

    /// The panel.
    fn copied(&self) -> Buffer<'c, 'a> {
        let Some(panel) = self.packed else { unreachable!("panels are copied, or read in place") };
        panel
    }

    /// The sums of a tile before some channels: so many vectors from a column on, or what is left of one. The first block starts
    /// from zeros.
    fn sums_before(
        &self,
        e: Emit<'c, 'a>,
        panel: &Panel<'_, 'c, 'a>,
        (filter, rows): (Value<'c, 'a>, i64),
        channel: Value<'c, 'a>,
        (column, vectors, rest): (Value<'c, 'a>, i64, Option<Value<'c, 'a>>),
    ) -> Sums<'c, 'a> {
        let width = self.lanes.count();
        let place = self.place(e, &[panel.at, &[filter]].concat(), 0);
        let place = e.add(e.binary(arith::MULI, place, panel.positions), panel.first);
        let place = e.add(place, column);
        let places: Vec<_> = (0..rows * vectors)
            .map(|number| {
                let row = e.binary(arith::MULI, panel.positions, e.index(number / vectors));
                e.offset(e.add(place, row), number % vectors * width)
            })
            .collect();
        let live = rest.and_then(|rest| e.first_lanes(rest, self.lanes));
        if self.tiles.are_bytes() {
            let values = vec![e.integer(0, 32, self.lanes); places.len()];
            return Sums { filter, vectors, values, places, live };
        }
        let is_first = e.compare(0, channel, e.index(0));
        let count = rest.unwrap_or_else(|| e.index(vectors * width));
        let none = e.index(0);
        let earlier = e.op(arith::SELECT, &[is_first, none, count], none.r#type());
        let started: Vec<_> = (0..vectors)
            .map(|vector| {
                let left = e.max(e.offset(earlier, -vector * width), none);
                e.first_lanes(left, self.lanes)
            })
            .collect();
        let values = places.iter().enumerate().map(|(number, place)| {
            e.load_lanes(self.result, *place, self.lanes, started[number % vectors as usize])
        });
        Sums { filter, vectors, values: values.collect(), places, live }
    }

    /// Stores sums, after the last channels through the epilogue.
    fn store_sums(
        &self,
        e: Emit<'c, 'a>,
        panels: &Panels,
        panel: &Panel<'_, 'c, 'a>,
        (channel, channels): (Value<'c, 'a>, Value<'c, 'a>),
        Sums { filter, vectors, values: sums, places, live }: Sums<'c, 'a>,
    ) {
        let finished = |e: Emit<'c, 'a>| {
            let rows = sums.chunks(vectors as usize).zip(places.chunks(vectors as usize));
            let rows = (0..).zip(rows).flat_map(|(row, (sums, places))| {
                let outer = [panel.at, &[e.offset(filter, row)]].concat();
                let vectors = sums.iter().zip(places);
                let vectors = vectors.map(|(value, place)| Vector {
                    value: *value,
                    place: *place,
                    mask: live,
                });
                self.finished(e, &outer, vectors)
            });
            Ok::<_, Infallible>(rows.collect())
        };
        let types: Vec<_> = sums.iter().map(|sum| sum.r#type()).collect();
        let Ok(finished) = match self.finish {
            Some(finish) if finish.is_vector() && panels.block < panels.channels => {
                let done = e.add(channel, channels);
                let is_last = e.compare(0, done, e.index(panels.channels));
                e.if_else(is_last, &types, finished, |_| Ok(sums.clone()))
            }
            _ => finished(e),
        };
        for (sum, place) in finished.into_iter().zip(places) {
            e.store(sum, self.result, place, self.lanes, live);
        }
    }

    /// The memory of the filters: if they are bytes, as elements of four.
    fn filters(&self, e: Emit<'c, 'a>, panels: &Panels) -> Buffer<'c, 'a> {
        let filters = self.operands[self.broadcast().operand].1;
        if panels.bytes.is_none() {
            return filters;
        }
        e.workspace_view(filters.memref, 0, panels.packing(0).elements(), e.int(32))
    }

    /// The number of a filter of a group among all filters.
    fn number(
        &self,
        e: Emit<'c, 'a>,
        panels: &Panels,
        panel: &Panel<'_, 'c, 'a>,
        filter: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        match panel.at.last() {
            Some(group) if panels.groups > 1 => e.add(e.scale(*group, panels.filters), filter),
            _ => filter,
        }
    }

    /// The bytes of an element of a filter that is not packed.
    fn quad(
        &self,
        e: Emit<'c, 'a>,
        panels: &Panels,
        filter: Value<'c, 'a>,
        k: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let filters = self.operands[self.broadcast().operand].1;
        let bytes = panels.bytes.unwrap_or(1);
        let taps = e.index(panels.taps);
        let (channel, tap) = (e.binary(arith::DIVUI, k, taps), e.binary(arith::REMUI, k, taps));
        let first = e.add(e.scale(filter, panels.depth() * bytes), tap);
        let first = e.add(first, e.scale(channel, panels.taps * bytes));
        let byte = |byte: i64| e.load(filters, e.offset(first, byte * panels.taps));
        dots::joined(e, &(0..bytes).map(byte).collect::<Vec<_>>(), Lanes::Scalar)
    }

    /// Adds the products of some channels to the tile of a strip of filters.
    fn product(
        &self,
        e: Emit<'c, 'a>,
        panels: &Panels,
        panel: &Panel<'_, 'c, 'a>,
        (strip, rows, is_packed): (Value<'c, 'a>, i64, bool),
        channels: (Value<'c, 'a>, Value<'c, 'a>),
        (column, columns): (Value<'c, 'a>, Columns),
    ) {
        let (width, vectors) = (self.lanes.count(), columns.vectors());
        let filter = e.scale(strip, panels.rows);
        let sums_of = |column, vectors, rest| {
            self.sums_before(e, panel, (filter, rows), channels.0, (column, vectors, rest))
        };
        let left = |column| Some(e.binary(arith::SUBI, panel.count, column));
        let rest = match columns {
            Columns::Vectors(_) | Columns::Last(_) => None,
            Columns::Rest | Columns::Few => left(column),
        };
        let mut sums = sums_of(column, vectors, rest);
        let filters = self.filters(e, panels);
        // The distance between filters in a panel of them, and between their elements, and that of filters.
        let all = panels.depth();
        let (across, along, apart) = match is_packed {
            true => (1, panels.rows, up(all, panels.rows)),
            false => (all, 1, all),
        };
        let number = self.number(e, panels, panel, filter);
        let first = e.add(e.scale(number, apart), e.scale(channels.0, panels.taps * along));
        let depth = e.scale(channels.1, panels.taps);
        let elements = self.elements(e, panels, panel);
        let products = panels.products(e);
        if let (Columns::Few, Some(count)) = (columns, rest) {
            let own = self.few(e, panels, elements, (first, depth), (column, count));
            sums.add(e, column_tail::by_row(e, &own, (panels.rows, products.element)), products);
            return self.store_sums(e, panels, panel, channels, sums);
        }
        // The column after the vectors.
        let after = match columns {
            Columns::Last(_) => Some(e.offset(column, vectors * width)),
            _ => None,
        };
        let in_lanes = Lanes::Vector(panels.rows);
        // Copied panels have whole vectors.
        let live = sums.live.filter(|_| panels.in_place.is_some());
        let accumulate = |e: Emit<'c, 'a>, k: Value<'c, 'a>, sums: &[Value<'c, 'a>]| {
            let at = elements.place(e, k, column);
            let load = |vector: i64| {
                let at = e.offset(at, vector * width);
                e.load_lanes(elements.buffer, at, self.lanes, live)
            };
            let values: Vec<_> = (0..vectors).map(load).collect();
            let place = e.add(first, e.scale(k, along));
            if is_packed {
                e.prefetch(filters, e.offset(place, AHEAD), Prefetch::Read);
            }
            let mut next = vec![];
            for row in 0..rows {
                let factor = match (panels.bytes, is_packed) {
                    (Some(_), false) => self.quad(e, panels, e.offset(number, row), k),
                    _ => e.load(filters, e.offset(place, row * across)),
                };
                let factor = e.splat(factor, self.lanes);
                for value in &values {
                    let sum = sums[next.len()];
                    next.push((products.add)(e, [factor, *value], sum, self.lanes));
                }
            }
            if let Some(after) = after {
                let factors = e.load_lanes(filters, place, in_lanes, None);
                let element = e.load(elements.buffer, elements.place(e, k, after));
                let element = e.splat(element, in_lanes);
                let sum = sums[next.len()];
                next.push((products.add)(e, [factors, element], sum, in_lanes));
            }
            Ok::<_, Infallible>(next)
        };
        let zero = after.map(|_| e.zero(products.element, in_lanes));
        let starts: Vec<_> = sums.values.iter().copied().chain(zero).collect();
        let Ok(mut values) = e.for_each((e.index(0), depth, 1), &starts, accumulate);
        let own = values.split_off(sums.values.len());
        sums.values = values;
        self.store_sums(e, panels, panel, channels, sums);
        if let (Some(after), [own]) = (after, &own[..]) {
            let mut sums = sums_of(after, 1, left(after));
            sums.add(e, column_tail::by_row(e, &[*own], (panels.rows, products.element)), products);
            self.store_sums(e, panels, panel, channels, sums);
        }
    }
}
