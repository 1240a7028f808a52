//! Convolutions with filters of 3 by 3 of images of open size by Winograd's algorithm, whose filters are transformed when the
//! kernel's caller is compiled. What a tile reads outside of the image is masked.
use super::{ULT, Writer, bound, coefficient, epilogue::Vector, panels::Panels};
use crate::kernel::emit::{Buffer, Emit};
use crate::lowering::compute_to_loops::{nest::Part, tiles::Tiles};
use crate::lowering::linalg_to_vector::split::{Extent, Units};
use crate::lowering::linalg_to_vector::winograd::algorithm::{
    self, Blocks, CHUNKS, Chunk, Image, Line, Memory, Operand,
};
use irc_mlir::ops::arith;
use irc_mlir::{Type as MlirType, Value, attr};
use irc_packing::TILES;
use irc_tl::{Compute, Dim, Scalar, Type};
use std::convert::Infallible;

/// The smallest vector that holds one element of some chunks.
const LANES: i64 = 8;

/// The axes of an operand.
const ROWS: usize = 2;
const COLUMNS: usize = 3;

/// The loops over images and filters.
const IMAGES: usize = 0;
const FILTERS: usize = 1;

/// How a nest is computed.
pub(super) struct Winograd {
    blocks: Blocks,
    /// With smaller tiles, for small images, if transformed filters are so large that they come from memory.
    small: Option<Blocks>,
}

/// The bytes of transformed filters from which on they come from memory, which then limits images with few tiles.
const LARGE: i64 = 4 << 20;

impl Winograd {
    /// For a nest of panels, if its filters have 3 by 3 elements and move by one.
    pub(super) fn of(
        tiles: &Tiles,
        panels: &Panels,
        compute: &Compute,
        types: &[&Type],
        lanes: i64,
    ) -> Option<Self> {
        let [_, channel, down, across] = &tiles.vector.at[..] else { return None };
        let first = compute.dims.len();
        let over = &compute.reduction.as_ref()?.dims;
        let [_, rows, columns] = &over[..] else { return None };
        let moves = |index: &Scalar, loops: &[usize]| {
            (0..first + over.len())
                .all(|loop_| coefficient(index, loop_) == Some(i64::from(loops.contains(&loop_))))
        };
        let is_window = first == 4
            && panels.row == FILTERS
            && [rows, columns].into_iter().all(|dim| dim.is(3))
            && moves(channel, &[first])
            && moves(down, &[ROWS, first + 1])
            && moves(across, &[COLUMNS, first + 2]);
        let dims = &types[tiles.vector.operand].dims;
        let is_of = |bound: Option<&Scalar>, axis: usize| {
            bound.is_none_or(|size| *size == Scalar::Size(dims[axis].clone()))
        };
        let is_inside = is_of(bound(&tiles.guards, down)?.as_ref(), ROWS)
            && is_of(tiles.bound.as_ref(), COLUMNS);
        let sizes = [panels.channels, panels.filters];
        if !is_window || !is_inside || lanes < LANES {
            return None;
        }
        let [large, small] = TILES;
        let blocks = Blocks::of(lanes, large, sizes, false);
        let is_large = 4 * blocks.packing(0).elements() >= LARGE;
        Some(Self { blocks, small: is_large.then(|| Blocks::of(lanes, small, sizes, true)) })
    }

    /// The packing of the filters.
    pub(super) fn packing(&self, argument: usize) -> irc_packing::Winograd {
        let small_panel = self.small.map(|small| small.panel);
        irc_packing::Winograd { small_panel, ..self.blocks.packing(argument) }
    }

    /// Bytes of the memory of a part.
    pub(super) fn part_bytes(&self) -> i64 {
        let elements = |blocks: &Blocks| blocks.memory().iter().sum::<i64>();
        4 * [&self.blocks].into_iter().chain(&self.small).map(elements).max().unwrap_or(0)
    }
}

impl<'c: 'a, 'a> Writer<'_, 'c, 'a> {
    /// Emits the nest, or a part of it, in memory of its own.
    pub(super) fn in_winograd(
        &self,
        e: Emit<'c, 'a>,
        winograd: &Winograd,
        part: Option<Part<'c, 'a>>,
        memory: Value<'c, 'a>,
    ) {
        let Winograd { blocks, small } = winograd;
        let in_tiles = |e, blocks: &Blocks, from| {
            self.in_tiles(e, (blocks, from), part, memory);
            Ok::<_, Infallible>(vec![])
        };
        let Ok(_) = match small {
            None => in_tiles(e, blocks, 0),
            Some(small) => {
                let is_small = self.is_small(e, [blocks, small]);
                let from = blocks.packing(0).elements();
                let of_small = |e| in_tiles(e, small, from);
                e.if_else(is_small, &[], of_small, |e| in_tiles(e, blocks, 0))
            }
        };
    }

    /// Whether smaller tiles take less time: those of a vector take less than half the time of large ones, of which there
    /// are then fewer than lanes, and the filters come from memory for each vector of smaller ones.
    fn is_small(&self, e: Emit<'c, 'a>, blocks: [&Blocks; 2]) -> Value<'c, 'a> {
        const SLT: i64 = 2;
        let size = [ROWS, COLUMNS].map(|loop_| self.sizes.extent(e, &self.dims[loop_]));
        let vectors = |blocks: &Blocks, times| {
            Image::of(e, blocks, size).vectors_of_tiles(e).times(e, times).value(e)
        };
        let (large, small) = (vectors(blocks[0], 5), vectors(blocks[1], 4));
        e.compare(SLT, small, e.offset(large, 4))
    }

    /// Emits the nest, or a part of it, in tiles whose filters are after so many others.
    fn in_tiles(
        &self,
        e: Emit<'c, 'a>,
        (blocks, filters_from): (&Blocks, i64),
        part: Option<Part<'c, 'a>>,
        memory: Value<'c, 'a>,
    ) {
        let [images, height, width] =
            [IMAGES, ROWS, COLUMNS].map(|loop_| self.sizes.extent(e, &self.dims[loop_]));
        let image = Image::of(e, blocks, [height, width]);
        let mut offset = 0;
        let parts = blocks.memory().map(|elements| {
            let view = e.workspace_view(memory, offset, elements, e.f32());
            offset += 4 * elements;
            view
        });
        let filters = self.operands[self.broadcast().operand].1;
        let memory = Memory { filters, filters_from, parts };
        let units = part.map(|[part, parts]| {
            let all = Extent::product(e, &[images, image.units(e, blocks)]);
            Units::of_part(e, all, part, parts)
        });
        let mut open = self.open_image(e, blocks.tile);
        let Ok(()) = algorithm::emit(e, (blocks, &image, &memory), &mut open, images, units);
    }

    fn open_image(&self, e: Emit<'c, 'a>, tile: i64) -> OpenImage<'_, 'c, 'a> {
        let (ty, buffer) = self.operands[self.tiles.vector.operand];
        let size = |dims: &[Dim]| self.sizes.value(e, &Dim::product(dims));
        let masks = reads(tile) * vectors(tile) * CHUNKS * self.lanes.count();
        OpenImage {
            writer: self,
            tile,
            buffer,
            height: size(&ty.dims[ROWS..COLUMNS]),
            width: size(&ty.dims[COLUMNS..]),
            channel: size(&ty.dims[ROWS..]),
            positions: size(&self.dims[ROWS..]),
            masks: e.stack(masks, e.int(32)),
        }
    }
}

/// The rows and columns of the operand that a tile reads.
fn reads(tile: i64) -> i64 {
    tile + 2
}

/// The vectors that are read of each row of a chunk, and the columns from one to the next.
fn vectors(tile: i64) -> i64 {
    tile / 2
}
const BETWEEN_VECTORS: i64 = 4;

/// An operand of open size, with zeros around it that are not in memory.
struct OpenImage<'w, 'c, 'a> {
    writer: &'w Writer<'w, 'c, 'a>,
    /// Rows and columns of the result of a tile.
    tile: i64,
    buffer: Buffer<'c, 'a>,
    /// Its rows and columns, and elements of a channel.
    height: Value<'c, 'a>,
    width: Value<'c, 'a>,
    channel: Value<'c, 'a>,
    /// Elements of an image of the result.
    positions: Value<'c, 'a>,
    /// For each vector that is read of four chunks: -1 in the lanes inside of the image. Masks of single bits would not stay in
    /// registers.
    masks: Buffer<'c, 'a>,
}

impl<'c: 'a, 'a> OpenImage<'_, 'c, 'a> {
    /// Where the mask of a vector is.
    fn mask(&self, chunk: usize, down: i64, across: i64) -> i64 {
        let row = chunk as i64 * reads(self.tile) + down;
        let vector = row * vectors(self.tile) + across / BETWEEN_VECTORS;
        vector * self.writer.lanes.count()
    }

    /// The first row or column of the operand that the result's first element reads.
    fn origin(&self, e: Emit<'c, 'a>, axis: usize) -> Value<'c, 'a> {
        let index = &self.writer.tiles.vector.at[axis];
        let (origin, _) = self.writer.body(e, &self.loops(e, e.index(0))).emit(e, index);
        e.op(arith::INDEX_CAST, &[origin], MlirType::index(e.context))
    }

    /// The loops at the first element of an image.
    fn loops(&self, e: Emit<'c, 'a>, image: Value<'c, 'a>) -> Vec<Value<'c, 'a>> {
        let mut loops = vec![image];
        loops.resize(self.writer.dims.len() + self.writer.over.len(), e.index(0));
        loops
    }
}

impl<'c: 'a, 'a> Operand<'c, 'a> for OpenImage<'_, 'c, 'a> {
    type Error = Infallible;
    /// Where they start in the first channel.
    type Chunks = Vec<Value<'c, 'a>>;

    fn chunks(
        &self,
        e: Emit<'c, 'a>,
        image: Value<'c, 'a>,
        chunks: &[Chunk<'c, 'a>],
    ) -> Self::Chunks {
        let (writer, lanes) = (self.writer, self.writer.lanes);
        let vector = &writer.tiles.vector;
        let mut body = writer.body(e, &self.loops(e, image));
        let first = body.place(e, vector.operand, &vector.at);
        let [top, left] = [ROWS, COLUMNS].map(|axis| self.origin(e, axis));
        let narrow = |wide: Value<'c, 'a>| e.op(arith::INDEX_CAST, &[wide], e.int(32));
        let start = |(number, chunk): (usize, &Chunk<'c, 'a>)| {
            let (row, column) = (e.add(top, chunk.row), narrow(e.add(left, chunk.column)));
            for down in 0..reads(self.tile) {
                let is_row = e.compare(ULT, e.offset(row, down), self.height);
                let columns = [is_row, self.width, e.index(0)];
                let columns = narrow(e.op(arith::SELECT, &columns, MlirType::index(e.context)));
                for across in (0..vectors(self.tile)).map(|vector| vector * BETWEEN_VECTORS) {
                    let mask = writer.mask(e, [column, columns], across);
                    let mask = e.op(arith::EXTSI, &[mask], lanes.of(e.int(32)));
                    let at = e.index(self.mask(number, down, across));
                    e.store(mask, self.masks, at, lanes, None);
                }
            }
            let row = e.binary(arith::MULI, chunk.row, self.width);
            e.add(first, e.add(row, chunk.column))
        };
        chunks.iter().enumerate().map(start).collect()
    }

    fn read(
        &self,
        e: Emit<'c, 'a>,
        chunks: &Self::Chunks,
        channel: Value<'c, 'a>,
        (chunk, down): (usize, i64),
        across: i64,
    ) -> Value<'c, 'a> {
        const SLT: i64 = 2;
        let lanes = self.writer.lanes;
        let at = e.index(self.mask(chunk, down, across));
        let mask = e.load_lanes(self.masks, at, lanes, None);
        let zero = e.zero(e.int(32), lanes);
        let spec = e.spec(arith::CMPI).operands(&[mask, zero]);
        let spec = spec.attr("predicate", attr::i64(e.context, SLT));
        let mask = e.value(spec.results(&[lanes.of(e.int(1))]));
        let start = e.add(chunks[chunk], e.binary(arith::MULI, channel, self.channel));
        let start = e.add(start, e.scale(self.width, down));
        e.load_lanes(self.buffer, e.offset(start, across), lanes, Some(mask))
    }

    fn store(&mut self, e: Emit<'c, 'a>, line: Line<'c, 'a>) -> Result<(), Infallible> {
        let Line { value, image, filter, position, mask } = line;
        let writer = self.writer;
        let plane = writer.place(e, &[image, filter], 0);
        let place = e.add(e.binary(arith::MULI, plane, self.positions), position);
        let values = writer.finished(e, &[image, filter], [Vector { value, place, mask }]);
        for value in values {
            e.store(value, writer.result, place, writer.lanes, mask);
        }
        Ok(())
    }
}
