//! A convolution with filters of 3 by 3 by Winograd's F(4x4, 3x3), where a tile of 4 by 4 elements of the result takes
//! 36 products per channel and filter instead of 144; or, for small images, by F(2x2, 3x3), with 16 instead of 36.
//!
//! A vector holds one element of as many tiles as it has lanes. The tiles are in *chunks*, runs of tiles of one row
//! of tiles, four to a vector, so that four loads and a transposition read the columns of four
//! chunks. Blocks of tiles are processed one after the other:
//!
//! 1. each tile of 6 by 6 (4 by 4) elements of each channel is transformed to as many *points*;
//! 2. for a panel of filters and each point, the filters are multiplied with the tiles of all channels;
//! 3. the sums of each filter are transformed to 4 by 4 (2 by 2) elements, which pass through the epilogue.
//!
//! The filters, which are constants, are transformed when the kernel's caller is compiled.

mod transform;

use super::{
    codegen::Codegen,
    contraction::Contraction,
    error::{LowerError, Result},
    kernel::{Origin, TensorId},
    matmul::{Matmul, place_outputs},
    packed,
    pass::{Pass, emit_result},
    split::{self, Units},
    windows::Windows,
};
use crate::kernel::emit::{Buffer, Emit, Lanes};
use irc_mlir::ops::{arith, math, vector};
use irc_mlir::{Attribute, OperationLike, TypeLike, Value, ValueLike};
use irc_packing::{Packing, TILES, whole_tiles};
use melior::ir::attribute::FloatAttribute;
use transform::{Tiles, flipped};

/// The number of chunks in a vector.
const CHUNKS: i64 = 4;

/// The minimum factor by which the multiplications must become fewer.
const MIN_GAIN: f64 = 1.5;

/// The convolution, as the product of a stage computes it.
#[derive(Debug, Clone)]
pub struct Winograd {
    /// The operand, which has zeros around it for whole tiles: the tensor, and the strides between images,
    /// channels and rows.
    source: TensorId,
    image: i64,
    channel: i64,
    row: i64,
    /// The numbers of channels and filters.
    channels: i64,
    filters: i64,
    /// Rows and columns of the result.
    height: i64,
    width: i64,
    blocks: Blocks,
}

/// How tiles and filters are divided.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    /// Elements of a vector.
    lanes: i64,
    /// Rows and columns of the result of a tile.
    tile: i64,
    /// Vectors in a block of tiles.
    vectors: i64,
    /// Filters in a panel.
    panel: i64,
    /// Chunks in a row of tiles, and in all.
    across: i64,
    chunks: i64,
}

impl Blocks {
    fn of(lanes: i64, tile: i64, height: i64, width: i64) -> Self {
        let tiles = |size: i64| (size + tile - 1) / tile;
        let of_chunk = lanes / CHUNKS;
        let across = (tiles(width) + of_chunk - 1) / of_chunk;
        let chunks = tiles(height) * across;
        let vectors = if chunks > CHUNKS { 2 } else { 1 };
        // The sums of a panel fill half of 32 registers, or three quarters of 16.
        let sums = if lanes >= 16 { 16 } else { 12 };
        Self { lanes, tile, vectors, panel: sums / vectors, across, chunks }
    }

    /// The number of blocks of tiles.
    fn count(&self) -> i64 {
        let each = self.vectors * CHUNKS;
        (self.chunks + each - 1) / each
    }

    /// Elements of a transformed tile.
    fn points(&self) -> i64 {
        (self.tile + 2) * (self.tile + 2)
    }

    /// Columns of the result of a chunk.
    fn columns(&self) -> i64 {
        self.lanes / CHUNKS * self.tile
    }

    /// Elements of a row of the transformed tiles.
    fn row(&self) -> i64 {
        self.vectors * self.lanes
    }
}

impl Winograd {
    /// The convolution that a product of windows computes, if the algorithm applies and pays.
    pub fn of(
        cg: &Codegen<'_, '_>,
        product: &Contraction<'_, '_>,
        windows: &Windows,
    ) -> Option<Self> {
        let stage = &cg.kernel.stages[product.stage];
        let (m, at) = (product.m?, windows.images);
        let [channels, 3, 3, height, width] = windows.sizes[at..] else { return None };
        let [channel, row, 1, down, 1] = windows.strides[at..] else { return None };
        let (a, output) = (&product.a.operand, &stage.outputs[0]);
        let filters = stage.sizes[m];
        let is_f32 = |tensor: TensorId| cg.kernel.tensors[tensor].element.is_f32();
        let computes_sums = [a.tensor, windows.source, output.tensor].into_iter().all(is_f32)
            && cg.splat_of(output.init.tensor).is_some_and(is_zero);
        let mut of_filters = vec![0; stage.sizes.len()];
        (of_filters[m], of_filters[product.k]) = (channels * 9, 1);
        let are_constant = a.access.offset == 0
            && a.access.coefs == of_filters
            && packed::argument_of(cg, a).is_some();
        // What is read after the last row must be memory of the kernel, which a copy with zeros is followed by.
        let is_padded = matches!(cg.kernel.tensors[windows.source].origin, Origin::Stage(_));
        if !computes_sums || !are_constant || !is_padded || at > 1 || (down, m) != (row, at) {
            return None;
        }
        let lanes = cg.target.lanes();
        let of_tile = |tile: i64| Self {
            source: windows.source,
            image: if at == 0 { 0 } else { windows.strides[0] },
            channel,
            row,
            channels,
            filters,
            height,
            width,
            blocks: Blocks::of(lanes, tile, height, width),
        };
        let applies = |found: &Self| found.has_whole_tiles(cg) && found.gain() >= MIN_GAIN;
        let found = TILES.map(of_tile).into_iter().filter(applies);
        let found = found.max_by(|a, b| a.gain().total_cmp(&b.gain()));
        found.filter(|_| lanes >= 8 && windows.first == 0)
    }

    /// Whether the operand has the rows and columns that the last tiles read.
    fn has_whole_tiles(&self, cg: &Codegen<'_, '_>) -> bool {
        let total: i64 = cg.kernel.tensors[self.source].shape.iter().product();
        let rows = self.channel.min(total) / self.row;
        let tile = self.blocks.tile;
        self.row >= whole_tiles(self.width, tile) && rows >= whole_tiles(self.height, tile)
    }

    /// The number of panels of filters.
    fn panels(&self) -> i64 {
        (self.filters + self.blocks.panel - 1) / self.blocks.panel
    }

    /// By what factor multiplications become fewer.
    fn gain(&self) -> f64 {
        let direct = 9 * self.height * self.width;
        let vectors = self.blocks.count() * self.blocks.vectors;
        direct as f64 / (self.blocks.points() * vectors * self.blocks.lanes) as f64
    }
}

fn is_zero(scalar: Attribute<'_>) -> bool {
    FloatAttribute::try_from(scalar).is_ok_and(|float| float.value() == 0.0)
}

/// The loops being written.
struct Emitter<'p, 'c, 'a> {
    winograd: &'p Winograd,
    matmul: &'p Matmul<'c, 'a>,
    source: Buffer<'c, 'a>,
    /// The transformed filters.
    filters: Buffer<'c, 'a>,
    /// The transformed tiles of a block: `[point, channel, tile]`.
    points: Buffer<'c, 'a>,
    /// The sums of a panel of filters: `[point, filter, tile]`.
    sums: Buffer<'c, 'a>,
    /// The rows of four chunks of the result.
    result: Buffer<'c, 'a>,
    lanes: Lanes,
    tiles: Tiles,
}

/// Emits the convolution at the end of the block of `e`.
///
/// # Errors
/// At an op of the epilogue without a vector form.
pub fn emit<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    matmul: &Matmul<'c, 'a>,
    winograd: &Winograd,
) -> Result<()> {
    let stage = cg.kernel.stages[matmul.product.stage].clone();
    let e = e.at(stage.op.location());
    place_outputs(cg, e, matmul.product.stage, &matmul.epilogue);
    let (Winograd { filters, channels, .. }, blocks) = (winograd, winograd.blocks);
    let packing = |argument| {
        let (filters, channels, panel) = (*filters, *channels, blocks.panel);
        let tile = blocks.tile;
        Packing::Winograd(irc_packing::Winograd { argument, filters, channels, panel, tile })
    };
    let operand = matmul.product.a.operand.clone();
    let missing = || LowerError::at(stage.op, "expected operands of a convolution in memory");
    let output = stage.outputs[0].tensor;
    let row = blocks.row();
    let emitter = Emitter {
        winograd,
        matmul,
        source: cg.places[winograd.source].buffer().ok_or_else(missing)?,
        filters: packed::take(cg, e, &operand, packing).ok_or_else(missing)?,
        points: cg.scratch(e, blocks.points() * channels * row, output),
        sums: cg.scratch(e, blocks.points() * blocks.panel * row, output),
        result: cg.scratch(e, CHUNKS * blocks.tile * blocks.lanes, output),
        lanes: Lanes::Vector(blocks.lanes),
        tiles: Tiles { size: blocks.tile, lanes: Lanes::Vector(blocks.lanes) },
    };
    let images = if stage.parallel == 3 { stage.sizes[0] } else { 1 };
    let (of_image, of_block) = (blocks.count() * winograd.panels(), winograd.panels());
    let units = cg.units(e, images * of_image);
    split::loop_over(e, (images, of_image), units, |e, image, units| {
        let outer = if stage.parallel == 3 { vec![image] } else { vec![] };
        let first = e.scale(image, winograd.image);
        split::loop_over(e, (blocks.count(), of_block), units, |e, block, units| {
            let start = e.scale(block, blocks.vectors);
            emitter.transform_tiles(e, first, start)?;
            emitter.multiply(cg, e, &outer, start, units)
        })
    })
}

/// A chunk of tiles: where its first tile starts in the result.
struct Chunk<'c, 'a> {
    row: Value<'c, 'a>,
    column: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Emitter<'_, 'c, 'a> {
    /// A chunk by number; numbers after the last are the last.
    fn chunk(&self, e: Emit<'c, 'a>, number: Value<'c, 'a>) -> Chunk<'c, 'a> {
        let Blocks { tile, across, chunks, .. } = self.winograd.blocks;
        let number = e.min(number, e.index(chunks - 1));
        let across = e.index(across);
        let row = e.scale(e.binary(arith::DIVUI, number, across), tile);
        let columns = self.winograd.blocks.columns();
        let column = e.scale(e.binary(arith::REMUI, number, across), columns);
        Chunk { row, column }
    }

    /// Transforms the tiles of a block, whose first vector is given, in all channels.
    fn transform_tiles(
        &self,
        e: Emit<'c, 'a>,
        image: Value<'c, 'a>,
        start: Value<'c, 'a>,
    ) -> Result<()> {
        let Winograd { channels, channel, row, blocks, .. } = *self.winograd;
        e.loop_over(blocks.vectors, |e, vector| {
            let number = e.scale(e.add(start, vector), CHUNKS);
            let chunks: Vec<Value> = (0..CHUNKS)
                .map(|at| {
                    let chunk = self.chunk(e, e.offset(number, at));
                    e.add(image, e.linear(chunk.column, &[chunk.row], &[row]))
                })
                .collect();
            e.loop_over(channels, |e, c| {
                let starts: Vec<Value> =
                    chunks.iter().map(|at| e.add(*at, e.scale(c, channel))).collect();
                let reads = self.tiles.reads();
                let rows = (0..reads as i64).map(|down| {
                    let at = |start: &Value<'c, 'a>| e.offset(*start, down * row);
                    let starts: Vec<Value> = starts.iter().map(at).collect();
                    self.tiles.to_points(e, &self.tiles.read(e, self.source, &starts))
                });
                let rows: Vec<_> = rows.collect();
                let to = e.linear(e.index(0), &[c, vector], &[blocks.row(), blocks.lanes]);
                for (across, column) in flipped(&rows).into_iter().enumerate() {
                    let points = self.tiles.to_points(e, &column);
                    for (down, point) in points.into_iter().enumerate() {
                        let number = (reads * down + across) as i64;
                        let at = e.offset(to, number * channels * blocks.row());
                        e.store(point, self.points, at, self.lanes, None);
                    }
                }
                Ok(())
            })
        })
    }

    /// Multiplies the tiles of a block with each panel of filters, and writes the results.
    fn multiply(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        outer: &[Value<'c, 'a>],
        start: Value<'c, 'a>,
        units: Option<Units<'c, 'a>>,
    ) -> Result<()> {
        let Winograd { filters, channels, blocks, .. } = *self.winograd;
        split::loop_over(e, (self.winograd.panels(), 1), units, |e, panel, _| {
            e.loop_over(blocks.points(), |e, point| self.sum(e, panel, point, channels))?;
            let first = e.scale(panel, blocks.panel);
            let rest = e.binary(arith::SUBI, e.index(filters), first);
            let count = e.min(rest, e.index(blocks.panel));
            e.for_each((e.index(0), count, 1), &[], |e, filter, _| {
                e.loop_over(blocks.vectors, |e, vector| {
                    self.results_of(e, filter, vector);
                    let rows = [outer, &[e.add(first, filter)]].concat();
                    self.finish(cg, e, &rows, e.scale(e.add(start, vector), CHUNKS))
                })?;
                Ok(vec![])
            })?;
            Ok(())
        })
    }

    /// The sums over all channels of one point: panel of filters times tiles.
    fn sum(
        &self,
        e: Emit<'c, 'a>,
        panel: Value<'c, 'a>,
        point: Value<'c, 'a>,
        channels: i64,
    ) -> Result<()> {
        let Blocks { vectors, panel: filters, lanes, .. } = self.winograd.blocks;
        let row = vectors * lanes;
        let zero = e.zero(self.points.element, self.lanes);
        let starts = vec![zero; (filters * vectors) as usize];
        let of_filters = e.linear(
            e.index(0),
            &[panel, point],
            &[self.winograd.blocks.points() * channels * filters, channels * filters],
        );
        let of_tiles = e.scale(point, channels * row);
        let bounds = (e.index(0), e.index(channels), 1);
        let sums = e.for_each::<LowerError>(bounds, &starts, |e, channel, sums| {
            let at = e.add(of_tiles, e.scale(channel, row));
            let tile =
                |vector| e.load_lanes(self.points, e.offset(at, vector * lanes), self.lanes, None);
            let tiles: Vec<Value> = (0..vectors).map(tile).collect();
            let at = e.add(of_filters, e.scale(channel, filters));
            let mut next = vec![];
            for filter in 0..filters {
                let factor = e.splat(e.load(self.filters, e.offset(at, filter)), self.lanes);
                for (vector, tile) in tiles.iter().enumerate() {
                    let sum = sums[(filter * vectors) as usize + vector];
                    next.push(e.op(math::FMA, &[factor, *tile, sum], sum.r#type()));
                }
            }
            Ok(next)
        })?;
        let to = e.scale(point, filters * row);
        for (place, sum) in sums.into_iter().enumerate() {
            e.store(sum, self.sums, e.offset(to, place as i64 * lanes), self.lanes, None);
        }
        Ok(())
    }

    /// Transforms the sums of a filter to the elements of its tiles.
    fn results_of(&self, e: Emit<'c, 'a>, filter: Value<'c, 'a>, vector: Value<'c, 'a>) {
        let Blocks { panel, lanes, tile, .. } = self.winograd.blocks;
        let row = self.winograd.blocks.row();
        let from = e.linear(e.index(0), &[filter, vector], &[row, lanes]);
        let reads = self.tiles.reads();
        let columns = (0..reads).map(|across| {
            let sum = |down: usize| {
                let point = (reads * down + across) as i64;
                e.load_lanes(self.sums, e.offset(from, point * panel * row), self.lanes, None)
            };
            self.tiles.to_result(e, &(0..reads).map(sum).collect::<Vec<_>>())
        });
        let columns: Vec<_> = columns.collect();
        for (down, line) in flipped(&columns).into_iter().enumerate() {
            let chunks = self.tiles.write(e, &self.tiles.to_result(e, &line));
            for (chunk, value) in chunks.into_iter().enumerate() {
                let at = e.index((chunk as i64 * tile + down as i64) * lanes);
                e.store(value, self.result, at, self.lanes, None);
            }
        }
    }

    /// Stores four chunks of the result, through the epilogue if there is one.
    fn finish(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        rows: &[Value<'c, 'a>],
        first: Value<'c, 'a>,
    ) -> Result<()> {
        let Winograd { height, width, blocks, .. } = *self.winograd;
        let Blocks { tile, lanes, .. } = blocks;
        e.loop_over(CHUNKS, |e, number| {
            let exists = e.compare(2, e.add(first, number), e.index(blocks.chunks));
            e.if_else(
                exists,
                &[],
                |e| {
                    let chunk = self.chunk(e, e.add(first, number));
                    let rest = e.binary(arith::SUBI, e.index(height), chunk.row);
                    let lines = e.min(rest, e.index(tile));
                    let live = e.binary(arith::SUBI, e.index(width), chunk.column);
                    let live = e.min(live, e.index(blocks.columns()));
                    let mask = e.op(vector::CREATE_MASK, &[live], self.lanes.of(e.int(1)));
                    let is_full = blocks.columns() == lanes && width % lanes == 0;
                    let mask = (!is_full).then_some(mask);
                    e.for_each((e.index(0), lines, 1), &[], |e, line, _| {
                        let at = e.linear(e.index(0), &[number, line], &[tile, 1]);
                        let at = e.scale(at, lanes);
                        let value = e.load_lanes(self.result, at, self.lanes, None);
                        let down = e.add(chunk.row, line);
                        let column = e.linear(chunk.column, &[down], &[width]);
                        self.store(cg, e, rows, column, mask, value).map(|()| vec![])
                    })
                },
                |_| Ok(vec![]),
            )?;
            Ok(())
        })
    }

    /// Stores contiguous elements of the result.
    fn store(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        rows: &[Value<'c, 'a>],
        column: Value<'c, 'a>,
        mask: Option<Value<'c, 'a>>,
        value: Value<'c, 'a>,
    ) -> Result<()> {
        let output = cg.kernel.stages[self.matmul.product.stage].outputs[0].clone();
        let pass = Pass::after_product(
            &self.matmul.epilogue,
            rows.len(),
            self.winograd.height * self.winograd.width,
        );
        emit_result(cg, e, &pass, (&output, value), rows, column, mask)
    }
}
