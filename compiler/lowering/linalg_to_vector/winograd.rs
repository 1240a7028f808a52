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

pub(in crate::lowering) mod algorithm;
mod transform;

use super::{
    codegen::Codegen,
    contraction::Contraction,
    error::{LowerError, Result},
    kernel::{Origin, TensorId},
    matmul::{Matmul, place_outputs},
    packed,
    pass::{Pass, emit_result},
    split::Extent,
    windows::Windows,
};
use crate::kernel::emit::{Buffer, Emit, is_half};
use algorithm::{Blocks, CHUNKS, Chunk, Image, Line, Memory, Operand};
use irc_mlir::ops::arith;
use irc_mlir::{Attribute, OperationLike, TypeLike, Value};
use irc_packing::{Packing, TILES, whole_tiles};
use melior::ir::attribute::FloatAttribute;

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
    /// Rows and columns of the result.
    height: i64,
    width: i64,
    blocks: Blocks,
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
        let element = |tensor: TensorId| cg.kernel.tensors[tensor].element;
        let is_read = |tensor| element(tensor).is_f32() || is_half(element(tensor));
        let computes_sums = [a.tensor, windows.source].into_iter().all(is_read)
            && element(output.tensor).is_f32()
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
        let of_tile = |tile: i64| {
            let blocks = Blocks::of(lanes, tile, [channels, filters], false);
            let is_small = chunks(&blocks, height, width) <= CHUNKS;
            Self {
                source: windows.source,
                image: if at == 0 { 0 } else { windows.strides[0] },
                channel,
                row,
                height,
                width,
                blocks: Blocks::of(lanes, tile, [channels, filters], is_small),
            }
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

    /// By what factor multiplications become fewer.
    fn gain(&self) -> f64 {
        let direct = 9 * self.height * self.width;
        let vectors = (chunks(&self.blocks, self.height, self.width) + CHUNKS - 1) / CHUNKS;
        direct as f64 / (self.blocks.points() * vectors * self.blocks.lanes) as f64
    }
}

/// The number of chunks of a result of this size.
fn chunks(blocks: &Blocks, height: i64, width: i64) -> i64 {
    let groups = |size: i64, of: i64| (size + of - 1) / of;
    groups(height, blocks.tile) * groups(width, blocks.columns())
}

fn is_zero(scalar: Attribute<'_>) -> bool {
    FloatAttribute::try_from(scalar).is_ok_and(|float| float.value() == 0.0)
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
    let blocks = &winograd.blocks;
    let packing = |argument| Packing::Winograd(blocks.packing(argument));
    let operand = matmul.product.a.operand.clone();
    let missing = || LowerError::at(stage.op, "expected operands of a convolution in memory");
    let output = stage.outputs[0].tensor;
    let source = cg.places[winograd.source].buffer().ok_or_else(missing)?;
    let memory = Memory {
        filters_from: 0,
        filters: packed::take(cg, e, &operand, packing).ok_or_else(missing)?,
        parts: blocks.memory().map(|size| cg.scratch(e, size, output)),
    };
    let has_images = stage.parallel == 3;
    let images = if has_images { stage.sizes[0] } else { 1 };
    let size = [winograd.height, winograd.width].map(Extent::Known);
    let image = Image::of(e, blocks, size);
    let all = image.units(e, blocks).times(e, images);
    let units = cg.units(e, all);
    let mut padded = Padded { cg, matmul, winograd, source, has_images };
    algorithm::emit(e, (blocks, &image, &memory), &mut padded, images.into(), units)
}

/// An operand with zeros around it.
struct Padded<'p, 'c, 'a> {
    cg: &'p mut Codegen<'c, 'a>,
    matmul: &'p Matmul<'c, 'a>,
    winograd: &'p Winograd,
    source: Buffer<'c, 'a>,
    /// Whether there is a loop over images.
    has_images: bool,
}

impl<'c: 'a, 'a> Operand<'c, 'a> for Padded<'_, 'c, 'a> {
    type Error = LowerError;
    /// Where they start in the first channel.
    type Chunks = Vec<Value<'c, 'a>>;

    fn chunks(
        &self,
        e: Emit<'c, 'a>,
        image: Value<'c, 'a>,
        chunks: &[Chunk<'c, 'a>],
    ) -> Self::Chunks {
        let image = e.scale(image, self.winograd.image);
        let start =
            |at: &Chunk<'c, 'a>| e.add(image, e.linear(at.column, &[at.row], &[self.winograd.row]));
        chunks.iter().map(start).collect()
    }

    fn read(
        &self,
        e: Emit<'c, 'a>,
        chunks: &Self::Chunks,
        channel: Value<'c, 'a>,
        (chunk, down): (usize, i64),
        across: i64,
    ) -> Value<'c, 'a> {
        let start = e.add(chunks[chunk], e.scale(channel, self.winograd.channel));
        let at = e.offset(start, down * self.winograd.row + across);
        let lanes = self.cg.full_lanes();
        let value = e.load_lanes(self.source, at, lanes, None);
        if self.source.element.is_f32() {
            return value;
        }
        e.op(arith::EXTF, &[value], lanes.of(e.f32()))
    }

    fn store(&mut self, e: Emit<'c, 'a>, line: Line<'c, 'a>) -> Result<()> {
        let output = self.cg.kernel.stages[self.matmul.product.stage].outputs[0].clone();
        let rows = match self.has_images {
            true => vec![line.image, line.filter],
            false => vec![line.filter],
        };
        let positions = self.winograd.height * self.winograd.width;
        let pass = Pass::after_product(&self.matmul.epilogue, rows.len(), positions);
        emit_result(self.cg, e, &pass, (&output, line.value), &rows, line.position, line.mask)
    }
}
