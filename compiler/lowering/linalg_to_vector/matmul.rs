//! Matmul: a register tile of `C` accumulated over packed panels of `B`, blocked for the caches.
//!
//! Loops, outermost first: batch, `jc` (columns per packed `B`), `kc` (depth per packed `B`), `ic` (rows
//! of `A` that stay in L2), `j` (one panel), `i` (one tile), `k`. Remainders of rows and columns get
//! tiles of their own, since every size is known. This file chooses the blocks and iterates over them;
//! `pack` copies their operands, and `tile` computes one tile.

mod pack;
mod right;
mod tile;

use super::{
    codegen::{Codegen, Place},
    codes::bytes,
    contraction::{Contraction, Factors},
    dots::{Dots, Halves},
    error::{LowerError, Result},
    kernel::{Output, TensorId, name_of},
    packed, packing, quads,
    split::{self, Extent, Units},
    windows::Windows,
};
use crate::attributes::Schedule;
use crate::kernel::{
    column_tail::{MAX_COLUMNS, MAX_STEPS},
    emit::{Buffer, Emit, Lanes},
    in_place,
};
use irc_mlir::ops::{arith, linalg};
use irc_mlir::{OperationLike, Type, TypeLike, Value, ValueLike, read};
use irc_packing::{Extension, Packing, Panels};
use pack::{copies, extensions};
use right::{PANEL_VECTORS, Right};

/// Elements of four bytes in a line of a cache.
const LINE: i64 = 16;

/// A matmul and the elementwise stages applied to each tile before it is stored.
#[derive(Debug, Clone)]
pub struct Matmul<'c, 'a> {
    /// The product.
    pub product: Contraction<'c, 'a>,
    /// The windows that are its right operand, if it is a convolution whose windows are not stored.
    pub windows: Option<Windows>,
    /// Stages over the same rows and columns, in program order.
    pub epilogue: Vec<usize>,
}

/// The product with its operands exchanged, if columns fill vectors badly, as the positions of a small image do, while the
/// left operand is a constant with many rows, whose panels then are packed when the caller is compiled.
pub fn transposed<'c: 'a, 'a>(
    cg: &Codegen<'c, 'a>,
    product: &Contraction<'c, 'a>,
) -> Option<Contraction<'c, 'a>> {
    let stage = &cg.kernel.stages[product.stage];
    let (lanes, rows) = (cg.target.lanes(), stage.sizes[product.m?]);
    let (columns, depth) = (stage.sizes[product.n], stage.sizes[product.k]);
    let vectors = (columns + lanes - 1) / lanes;
    let output = &stage.outputs[0];
    let turned = product.transposed()?;
    let is_in_quads = matches!(product.factors, Factors::Quads { .. });
    let is_f32 = [product.a.operand.tensor, product.b.operand.tensor, output.tensor]
        .into_iter()
        .all(|tensor| cg.kernel.tensors[tensor].element.is_f32());
    let is_packed = match is_in_quads {
        true => cg.target.dots == Dots::Vnni && quads::is_packed(cg, &turned),
        false => is_f32 && packed::argument_of(cg, &product.a.operand).is_some(),
    };
    let applies = is_packed
        && Contraction::is_plain(&product.a)
        && Contraction::is_plain(&product.b)
        && cg.splat_of(output.init.tensor).is_some()
        && Some(product.n - 1) == product.m
        && product.b.operand.access.coefs[product.n] == 1;
    // At least a sixth of the lanes would be idle.
    let is_narrow = 6 * columns < 5 * vectors * lanes;
    let pays = lanes >= 8 && columns >= 8 && rows >= 2 * lanes && rows % lanes == 0;
    let pays = pays
        && match is_in_quads {
            true => turns_bytes(cg, product, lanes),
            false => {
                let idles = is_narrow && depth >= 128 && few_of((rows, columns), lanes) == 0;
                idles || turns((rows, columns, depth), lanes)
            }
        };
    (applies && pays).then_some(turned)
}

/// Whether a product of floats with positions of images as columns takes fewer cycles with them as rows, by an estimate: a
/// vector is multiplied in a cycle, tiles of 8 rows of two vectors take one more for loading factors, and a tile that is
/// transposed takes as long as 500 more.
fn turns((rows, columns, depth): (i64, i64, i64), lanes: i64) -> bool {
    let up = |size: i64, unit: i64| (size + unit - 1) / unit;
    let rest = match (columns % (2 * lanes), few_of((rows, columns), lanes)) {
        (0, _) => 0,
        (rest, few) if few > 0 => rest / lanes * TILE_ROWS + few + 2,
        (rest, _) if rest <= lanes => TILE_ROWS + 2,
        _ => 2 * TILE_ROWS + 1,
    };
    let panels = columns / (2 * lanes);
    let as_columns = up(rows, TILE_ROWS) * depth * (panels * (2 * TILE_ROWS + 1) + rest);
    let tiles = up(columns, TURNED_ROWS);
    let as_rows = up(rows, 2 * lanes) * tiles * (2 * up(columns, tiles) * depth + 500);
    lanes >= 16 && columns <= MAX_TURNED && as_rows < as_columns
}

/// The columns after the last whole vector that are computed with rows in lanes, if they are few: tiles have half as many rows
/// as a vector has lanes.
fn few_of((rows, columns): (i64, i64), lanes: i64) -> i64 {
    let few = columns % lanes;
    let applies = 2 * TILE_ROWS == lanes && rows % TILE_ROWS == 0 && few <= MAX_COLUMNS;
    if applies { few } else { 0 }
}

/// Whether a product of bytes with positions of images as columns takes fewer cycles with them as rows, by an estimate: a
/// vector is multiplied in a cycle, a tile that is transposed takes as long as 300 more, and windows are copied.
fn turns_bytes(cg: &Codegen<'_, '_>, product: &Contraction<'_, '_>, lanes: i64) -> bool {
    let stage = &cg.kernel.stages[product.stage];
    let rows = product.m.map_or(1, |dim| stage.sizes[dim]);
    let (columns, depth) = (stage.sizes[product.n], stage.sizes[product.k]);
    let up = |size: i64, unit: i64| (size + unit - 1) / unit;
    // A tile of one vector takes as long as loading a factor for each row.
    let rest = match columns % (2 * lanes) {
        0 => 0,
        few if few <= lanes => TILE_ROWS + 2,
        _ => 2 * TILE_ROWS,
    };
    let as_columns = up(rows, TILE_ROWS) * depth * (columns / (2 * lanes) * 2 * TILE_ROWS + rest);
    let tiles = up(columns, TURNED_ROWS);
    let as_rows = up(rows, 2 * lanes) * tiles * (2 * up(columns, tiles) * depth + 300);
    let copied = match Windows::of(cg, product) {
        None => 0,
        Some(_) => depth * up(columns, lanes) * 8,
    };
    as_rows + copied < as_columns
}

/// Rows of a tile with 32 registers of 64 bytes, and of one that is transposed before it is stored.
const TILE_ROWS: i64 = 8;
const TURNED_ROWS: i64 = Schedule::MAX_ROWS;

/// The maximum number of positions that are rows although they would fill vectors: those of one channel are so close to those
/// of the next that they arrive in time.
const MAX_TURNED: i64 = 256;

/// Panels with more tiles are not prefetched: only the first one waits for memory.
const MAX_TILES_AHEAD: i64 = 32;

/// The depth from which on panels are packed one at a time, just before they are used.
const MIN_DEPTH_ALONE: i64 = 32;

/// Block sizes in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Blocks {
    /// Rows of a tile.
    mr: i64,
    /// Vectors in a row of a tile.
    nv: i64,
    /// Rows of `A` per L2 block; a multiple of `mr`.
    mc: i64,
    /// Columns of packed `B`; a multiple of a tile's columns.
    nc: i64,
    /// Depth of packed `B`.
    kc: i64,
}

/// The access to the elements of `A` or `B` from a tile.
#[derive(Clone, Copy)]
struct Source<'c, 'a> {
    buffer: Buffer<'c, 'a>,
    /// Index of the first element of the block.
    base: Value<'c, 'a>,
    /// The stride along the rows of `A` or the columns of `B`, in elements.
    across: i64,
    /// The stride along `k`, in elements.
    along: i64,
}

/// The memory of packed blocks of `B`.
#[derive(Clone, Copy)]
struct PackedB<'c, 'a> {
    buffer: Buffer<'c, 'a>,
    room: Room<'c, 'a>,
}

/// The capacity of the memory for packed blocks, and when they are packed.
#[derive(Clone, Copy)]
enum Room<'c, 'a> {
    /// One block, packed when it is needed.
    One,
    /// All blocks, packed if this condition holds.
    All(Value<'c, 'a>),
    /// All blocks, already packed.
    Filled,
}

struct Emitter<'p, 'c, 'a> {
    matmul: &'p Matmul<'c, 'a>,
    blocks: Blocks,
    m: i64,
    /// The number of rows, which is at most `m`.
    rows: Extent<'c, 'a>,
    /// The number of columns if it is passed: then `n` is the maximum, rounded up to whole panels.
    width: Option<Value<'c, 'a>>,
    /// The depth, which is at most `k`.
    depth: Extent<'c, 'a>,
    n: i64,
    k: i64,
    lanes: Lanes,
    element: Type<'c>,
    output: Output,
    dots: Dots,
    pack_a: bool,
    pack_b: bool,
    /// Whether panels of `B` are read where they are.
    is_in_place: bool,
    /// How the bytes of the packed left and right operands are extended, if they are.
    extensions: [Option<Extension>; 2],
    /// Whether packed `B` is read once, panel after panel.
    streams: bool,
    /// Whether that is prefetched, as it comes from memory: processors read a cache at full speed without.
    prefetches: bool,
    right: Right<'c, 'a>,
    /// The left operand, if it is a constant that is packed in panels of the rows of a tile.
    left: Option<Buffer<'c, 'a>>,
    /// The left operand, if its integers are multiplied.
    quantised: Option<bytes::Left<'c, 'a>>,
    packed_a: Option<Buffer<'c, 'a>>,
    packed_b: Option<PackedB<'c, 'a>>,
    /// The sums of earlier `kc` blocks.
    partial: Option<Place<'c, 'a>>,
    /// One tile, if the epilogue reads it from memory.
    tile: Option<Buffer<'c, 'a>>,
}

/// A tile's position and extent.
#[derive(Clone, Copy)]
struct Tile<'c, 'a> {
    row: Value<'c, 'a>,
    column: Value<'c, 'a>,
    rows: i64,
    columns: i64,
    ahead: Option<Ahead<'c, 'a>>,
}

/// What a tile prefetches: so many elements for each `k`, from an index on, and the distance between them.
#[derive(Clone, Copy)]
struct Ahead<'c, 'a> {
    buffer: Buffer<'c, 'a>,
    at: Value<'c, 'a>,
    along: i64,
    width: i64,
}

/// A block of columns, and those of them that are computed if these are not all.
#[derive(Clone, Copy)]
struct Columns<'c, 'a> {
    start: Value<'c, 'a>,
    width: Value<'c, 'a>,
    own: Option<Own<'c, 'a>>,
    /// The columns that are packed next, if they are prefetched.
    next: Option<Source<'c, 'a>>,
}

/// The tiles of a product that one thread computes, and the columns of the panels that they are in.
#[derive(Clone, Copy)]
struct Own<'c, 'a> {
    units: Units<'c, 'a>,
    from: Value<'c, 'a>,
    to: Value<'c, 'a>,
}

/// The rows of a block from `ic` on in a panel of columns, and which of its tiles are computed if these are not all.
#[derive(Clone, Copy)]
struct Strip<'c, 'a> {
    ic: Value<'c, 'a>,
    column: Value<'c, 'a>,
    columns: i64,
    tiles: Option<Units<'c, 'a>>,
    next: Option<Source<'c, 'a>>,
}

/// The block of `k` being accumulated.
#[derive(Clone, Copy)]
struct Depth<'c, 'a> {
    from: Value<'c, 'a>,
    size: Value<'c, 'a>,
}

/// Emits the matmul at the end of the block of `e`.
///
/// # Errors
/// At an op of the epilogue without a vector form.
pub fn emit_matmul<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    matmul: &Matmul<'c, 'a>,
) -> Result<()> {
    let stage = cg.kernel.stages[matmul.product.stage].clone();
    let e = e.at(stage.op.location());
    place_outputs(cg, e, matmul.product.stage, &matmul.epilogue);
    let right = Right::of(cg, e, matmul);
    let m = matmul.product.m.map_or(1, |dim| stage.sizes[dim]);
    let most = right.most_rows(&cg.target);
    let rows = match cg.extent(m) {
        Extent::Passed(rows) if most > 0 => rows,
        _ => {
            let right = right.converted_in_tiles(m <= most);
            return emit_product(cg, e, matmul, right);
        }
    };
    for (predicate, in_tiles) in [(7, true), (8, false)] {
        let right = right.clone().converted_in_tiles(in_tiles);
        let runs = e.compare(predicate, rows, e.index(most));
        let product = |e| emit_product(cg, e, matmul, right).map(|()| vec![]);
        e.if_else(runs, &[], product, |_| Ok(vec![]))?;
    }
    Ok(())
}

/// As [`emit_matmul`], with a right operand.
fn emit_product<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    matmul: &Matmul<'c, 'a>,
    right: Right<'c, 'a>,
) -> Result<()> {
    let stage = cg.kernel.stages[matmul.product.stage].clone();
    let emitter = Emitter::new(cg, e, matmul, right)?;
    let of_matrix = [matmul.product.m, Some(matmul.product.n)];
    let batch: Vec<usize> =
        (0..stage.parallel - 1).filter(|dim| !of_matrix.contains(&Some(*dim))).collect();
    let mut rows = vec![e.index(0); stage.parallel - 1];
    let matrices: Vec<Extent> = batch.iter().map(|dim| cg.extent(stage.sizes[*dim])).collect();
    let all = Extent::product(e, &[&matrices[..], &[emitter.tiles(e)]].concat());
    let units = cg.units(e, all);
    emitter.emit_batch(cg, e, &batch, &mut rows, units)
}

/// Allocates memory for the outputs that stages outside of a product and its epilogue read.
pub fn place_outputs<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    product: usize,
    epilogue: &[usize],
) {
    let group = [&[product], epilogue].concat();
    for s in &group {
        for output in cg.kernel.stages[*s].outputs.clone() {
            if !cg.is_result(output.tensor) && cg.read_by_other(output.tensor, &group) {
                let size = cg.kernel.tensors[output.tensor].shape.iter().product();
                cg.places[output.tensor] = Place::Memory(cg.shared(e, size, output.tensor));
            }
        }
    }
}

/// The maximum number of ops of an epilogue that is written for each vector of a tile.
const MAX_SHORT: usize = 4;

/// Whether an epilogue is a few cheap ops, so that it is written for each vector of a tile, which stays in registers.
fn is_short(cg: &Codegen<'_, '_>, epilogue: &[usize]) -> bool {
    let ops = epilogue.iter().flat_map(|s| read::body_ops(cg.kernel.stages[*s].op));
    let names: Vec<String> = ops
        .map(name_of)
        .filter(|name| ![arith::CONSTANT, linalg::YIELD].contains(&name.as_str()))
        .collect();
    let is_cheap = |name: &String| name.starts_with(arith::PREFIX) && name != arith::DIVF;
    names.len() <= MAX_SHORT && names.iter().all(is_cheap)
}

/// The maximum number of rows with which the right operand is read once, and memory limits how fast.
const MAX_ROWS_ONCE: i64 = 4;

/// The bytes of a right operand from which on it is worth packing for few rows: smaller ones are in a cache.
const MIN_PACKED_BYTES: i64 = 1 << 20;

/// The stage that makes the left operand of a product of bytes, if it is packed in panels when the caller is compiled.
pub fn packed_left_stage(cg: &Codegen<'_, '_>, product: &Contraction<'_, '_>) -> Option<usize> {
    let rows = cg.kernel.stages[product.stage].sizes[product.m?];
    if rows > MAX_ROWS_ONCE { quads::packed_left_stage(cg, product) } else { None }
}

/// Whether panels of the right operand are read where they are.
fn is_in_place<'c: 'a, 'a>(
    cg: &Codegen<'c, 'a>,
    matmul: &Matmul<'c, 'a>,
    right: &Right<'c, 'a>,
) -> bool {
    let product = &matmul.product;
    let sizes = &cg.kernel.stages[product.stage].sizes;
    let (rows, columns) = (product.m.map_or(1, |dim| sizes[dim]), sizes[product.n]);
    let depth = sizes[product.k];
    let are_known =
        [rows, columns, depth].into_iter().all(|size| matches!(cg.extent(size), Extent::Known(_)));
    are_known
        && !cg.keeps()
        && rows > MAX_ROWS_ONCE
        && columns >= PANEL_VECTORS * cg.target.lanes()
        && matches!(right, Right::Plain)
        && matmul.windows.is_none()
        && !product.is_transposed
        && Contraction::is_plain(&product.b)
        && cg.kernel.tensors[product.b.operand.tensor].element.is_f32()
        && product.b.operand.access.coefs[product.n] == 1
        && in_place::fits_l2(depth, product.b.operand.access.coefs[product.k])
        && packed::argument_of(cg, &product.b.operand).is_none()
        && !quads::is_packed(cg, product)
}

/// Whether the right operand is a large constant that the caller packs. Few rows read each panel as one stream, instead of
/// a short run of each row, of which threads get even shorter ones.
fn is_packed_constant(cg: &Codegen<'_, '_>, matmul: &Matmul<'_, '_>, (n, k): (i64, i64)) -> bool {
    let operand = &matmul.product.b.operand;
    let bytes = super::byte_width(cg.kernel.tensors[operand.tensor].element);
    matmul.windows.is_none()
        && Contraction::is_plain(&matmul.product.b)
        && n.saturating_mul(k).saturating_mul(bytes) >= MIN_PACKED_BYTES
        && operand.access.coefs[..matmul.product.n].iter().all(|coef| *coef == 0)
        && packed::argument_of(cg, operand).is_some()
        && !quads::is_packed(cg, &matmul.product)
}

/// The size of equal blocks, at most `limit`, rounded up to `unit`.
fn even_block(size: i64, limit: i64, unit: i64) -> i64 {
    if size <= limit {
        return size;
    }
    let blocks = (size + limit - 1) / limit;
    let even = (size + blocks - 1) / blocks;
    (even + unit - 1) / unit * unit
}

impl<'p, 'c: 'a, 'a> Emitter<'p, 'c, 'a> {
    fn new(
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        matmul: &'p Matmul<'c, 'a>,
        right: Right<'c, 'a>,
    ) -> Result<Self> {
        let product = &matmul.product;
        let stage = cg.kernel.stages[product.stage].clone();
        let output = stage.outputs[0].clone();
        let element = cg.kernel.tensors[output.tensor].element;
        let lanes = Lanes::Vector(cg.target.lanes());
        let m = product.m.map_or(1, |dim| stage.sizes[dim]);
        let (n, k) = (stage.sizes[product.n], stage.sizes[product.k]);
        let width = match cg.extent(n) {
            Extent::Passed(width) => Some(width),
            Extent::Known(_) => None,
        };
        let streams = m <= MAX_ROWS_ONCE
            && matches!(right, Right::Plain)
            && is_packed_constant(cg, matmul, (n, k));
        let is_in_place = is_in_place(cg, matmul, &right);
        let pack_b = m > MAX_ROWS_ONCE && !is_in_place
            || streams
            || width.is_some()
            || !Contraction::is_plain(&product.b)
            || product.b.operand.access.coefs[product.n] != 1
            || quads::is_packed(cg, product)
            || !matches!(right, Right::Plain);
        let extensions = extensions(cg, product, pack_b && !streams);
        let mut blocks = match streams {
            true => streamed_blocks(cg, (m, n, k)),
            false => {
                let is_blocked = pack_b || is_in_place;
                choose_blocks(cg, (m, n, k), (is_blocked, &right, extensions), product)
            }
        };
        if is_in_place {
            blocks.nc = blocks.nv * lanes.count();
        }
        let depth = cg.extent(k);
        if matches!(depth, Extent::Passed(_)) {
            blocks.kc = k;
        }
        let columns = blocks.nv * lanes.count();
        let n = if width.is_some() { (n + columns - 1) / columns * columns } else { n };
        let mut emitter = Self {
            matmul,
            blocks,
            streams,
            prefetches: streams && !cg.cached,
            m,
            rows: cg.extent(m),
            width,
            depth,
            n,
            k,
            lanes,
            element,
            pack_a: !Contraction::is_plain(&product.a)
                || extensions[0].is_some() && packed_left_stage(cg, product).is_none(),
            pack_b,
            is_in_place,
            extensions,
            right,
            dots: quads::dots(cg, product),
            left: None,
            quantised: None,
            packed_a: None,
            packed_b: None,
            partial: None,
            tile: None,
            output,
        };
        emitter.reserve(cg, e);
        emitter.left = emitter.take_left(cg, e);
        let missing = |operand: TensorId| {
            cg.places[operand].buffer().is_none() && cg.splat_of(operand).is_none()
        };
        let right = matmul.windows.as_ref().map_or(product.b.operand.tensor, |from| from.source);
        let is_filled = emitter.packed_b.is_some_and(|it| matches!(it.room, Room::Filled))
            || !matches!(emitter.right, Right::Plain);
        let right = (!is_filled).then_some(right);
        let has_left = emitter.left.is_some() || emitter.quantised.is_some();
        let left = (!has_left).then_some(product.a.operand.tensor);
        for operand in [left, right].into_iter().flatten() {
            if missing(operand) || cg.splat_of(operand).is_some() {
                return Err(LowerError::at(stage.op, "expected operands of a matmul in memory"));
            }
        }
        Ok(emitter)
    }

    /// The left operand, if it is a constant that is packed when the caller is compiled: a tile reads one stream, instead of
    /// as many as it has rows, which may be a multiple of a page apart.
    fn take_left(&self, cg: &mut Codegen<'c, 'a>, e: Emit<'c, 'a>) -> Option<Buffer<'c, 'a>> {
        let product = &self.matmul.product;
        let (m, Blocks { mr, kc, .. }) = (product.m?, self.blocks);
        if packed_left_stage(cg, product).is_some() {
            let left = (&product.a, m);
            return quads::take(cg, e, product, left, (kc, mr, 1), self.extensions[0]);
        }
        let access = &product.a.operand.access;
        let is_shared = |dim: usize| dim == m || access.coefs[dim] == 0;
        let applies = (0..product.k).all(is_shared)
            && self.m > MAX_ROWS_ONCE
            && !self.pack_a
            && !self.right.is_in_tiles()
            && matches!(self.rows, Extent::Known(_))
            && matches!(self.depth, Extent::Known(_));
        let panels = |argument| Panels {
            argument,
            offset: access.offset,
            along: access.coefs[product.k],
            across: access.coefs[m],
            rows: self.k,
            columns: self.m,
            depth: kc,
            panel: mr,
            lanes: 1,
            quads: None,
        };
        let operand = applies.then_some(&product.a.operand)?;
        packed::take(cg, e, operand, |argument| Packing::Panels(panels(argument)))
    }

    fn reserve(&mut self, cg: &mut Codegen<'c, 'a>, e: Emit<'c, 'a>) {
        let Blocks { mr, mc, kc, .. } = self.blocks;
        let round = |size: i64, unit: i64| (size + unit - 1) / unit * unit;
        let width = self.lanes.count();
        let tensor = self.output.tensor;
        if self.pack_b && !self.right.is_in_tiles() {
            self.packed_b = Some(self.reserve_b(cg, e));
        }
        if let Right::Bytes(coded, left, _) = &self.right {
            self.quantised = coded.reserve(cg, e, left, mc.min(self.m));
        }
        if self.pack_a {
            let rows = round(mc.min(self.m), width);
            let count = rows * round(kc, width) * copies(self.extensions[0]);
            self.packed_a = Some(cg.scratch(e, count, tensor));
        }
        let is_transposed = self.matmul.product.is_transposed;
        if kc < self.k {
            // Products of a batch use the same memory one after the other.
            self.partial = Some(match cg.places[tensor] {
                Place::Memory(buffer) if !is_transposed => Place::Memory(buffer),
                _ => Place::Row(cg.scratch(e, self.m * self.n, tensor)),
            });
        }
        if is_transposed {
            self.tile = Some(cg.scratch(e, width * self.columns(), tensor));
        } else if !is_short(cg, &self.matmul.epilogue) {
            self.tile = Some(cg.scratch(e, mr * self.columns(), tensor));
        }
    }

    /// Reserves memory for all blocks of `B` if they can be kept, otherwise for one.
    fn reserve_b(&self, cg: &mut Codegen<'c, 'a>, e: Emit<'c, 'a>) -> PackedB<'c, 'a> {
        let (product, tensor) = (&self.matmul.product, self.output.tensor);
        let operand = &product.b.operand;
        let panels = (self.blocks.kc, self.columns(), self.lanes.count());
        if self.right.is_unpacked() {
            let columns = self.all_columns().min(self.blocks.nc);
            let buffer = cg.scratch(e, columns * self.panel_depth(), tensor);
            return PackedB { buffer, room: Room::One };
        }
        let (right, extension) = ((&product.b, product.n), self.extensions[1]);
        if let Some(buffer) = quads::take(cg, e, product, right, panels, extension) {
            return PackedB { buffer, room: Room::Filled };
        }
        let is_same_for_all_batches = operand.access.coefs[..product.n].iter().all(|c| *c == 0);
        if is_same_for_all_batches && self.matmul.windows.is_none() {
            let packing = self.packing();
            let numbered = |argument| Packing::Panels(Panels { argument, ..packing });
            if Contraction::is_plain(&product.b)
                && let Some(buffer) = packed::take(cg, e, operand, numbered)
            {
                return PackedB { buffer, room: Room::Filled };
            }
            let count = packing.elements() * copies(extension);
            let kept = cg.keep(e, count, (operand.tensor, tensor));
            if let Some((buffer, is_empty)) = kept {
                return PackedB { buffer, room: Room::All(is_empty) };
            }
        }
        let columns = self.all_columns().min(self.blocks.nc);
        let count = columns * self.panel_depth() * copies(extension);
        let buffer = cg.scratch(e, count, tensor);
        PackedB { buffer, room: Room::One }
    }

    /// How panels of the right operand store their elements, if not as they are.
    fn right_halves(&self) -> Option<Halves> {
        let group = self.lanes.count();
        self.extensions[1].map(|extension| Halves { extension, group })
    }

    /// The packing of all blocks of `B`.
    fn packing(&self) -> Panels {
        let product = &self.matmul.product;
        let access = &product.b.operand.access;
        Panels {
            argument: 0,
            offset: access.offset,
            along: access.coefs[product.k],
            across: access.coefs[product.n],
            rows: self.k,
            columns: self.n,
            depth: self.blocks.kc,
            panel: self.columns(),
            lanes: self.lanes.count(),
            quads: None,
        }
    }

    /// The number of columns of `B`, rounded up to whole panels.
    fn all_columns(&self) -> i64 {
        (self.n + self.columns() - 1) / self.columns() * self.columns()
    }

    /// The number of columns in full panels; the others are one panel, which may be wider.
    fn full(&self) -> i64 {
        let full = self.n / self.columns() * self.columns();
        if self.ends_wide() { full - self.columns() } else { full }
    }

    /// Whether the last full panel and those columns after it that are left are one: a vector and one more column, which is
    /// computed with rows in lanes.
    fn ends_wide(&self) -> bool {
        let lanes = self.lanes.count();
        self.n % self.columns() == lanes + 1
            && self.n > self.columns()
            && self.columns() == 2 * lanes
            && self.has_few()
            && self.m % self.blocks.mr == 0
            && self.is_in_place
            && self.tile.is_none()
    }

    /// The number of panels.
    fn panels(&self) -> i64 {
        self.full() / self.columns() + i64::from(self.full() < self.n)
    }

    /// Whether columns after the last whole vector may be computed with rows in lanes.
    fn has_few(&self) -> bool {
        let product = &self.matmul.product;
        self.left.is_some()
            && 2 * self.blocks.mr == self.lanes.count()
            && matches!(product.factors, Factors::Floats)
            && self.element.is_f32()
            && Contraction::is_plain(&product.b)
            && matches!(self.right, Right::Plain)
            && matches!(self.depth, Extent::Known(_))
            && [self.k, self.blocks.kc].iter().all(|depth| depth % MAX_STEPS == 0)
            && !product.is_transposed
    }

    /// The number of rows, rounded up to whole tiles.
    fn all_rows(&self) -> i64 {
        (self.m + self.blocks.mr - 1) / self.blocks.mr * self.blocks.mr
    }

    /// The number of columns, of whole panels if it is passed.
    fn panels_width(&self, e: Emit<'c, 'a>) -> Extent<'c, 'a> {
        match self.width {
            None => self.n.into(),
            Some(width) => Extent::Passed(width).groups(e, self.columns()).times(e, self.columns()),
        }
    }

    /// The number of columns of a full tile.
    fn columns(&self) -> i64 {
        self.blocks.nv * self.lanes.count()
    }

    fn emit_batch(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        batch: &[usize],
        rows: &mut Vec<Value<'c, 'a>>,
        units: Option<Units<'c, 'a>>,
    ) -> Result<()> {
        let Some((dim, rest)) = batch.split_first() else {
            return self.emit_blocks(cg, e, rows, units);
        };
        let sizes = &cg.kernel.stages[self.matmul.product.stage].sizes;
        let matrices = rest.iter().map(|dim| sizes[*dim]).product::<i64>();
        let (extent, inner) = (cg.extent(sizes[*dim]), self.tiles(e).times(e, matrices));
        split::loop_over(e, (extent, inner), units, |e, iv, units| {
            rows[*dim] = iv;
            self.emit_batch(cg, e, rest, rows, units)
        })
    }

    fn emit_blocks(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        rows: &[Value<'c, 'a>],
        units: Option<Units<'c, 'a>>,
    ) -> Result<()> {
        let Blocks { mc, nc, kc, .. } = self.blocks;
        let product = &self.matmul.product;
        let a = match self.left {
            Some(buffer) => Source { buffer, base: e.index(0), across: kc, along: self.blocks.mr },
            None => self.source(cg, e, &product.a, rows, product.m),
        };
        let b = match &self.matmul.windows {
            Some(windows) => self.window_source(cg, e, windows, rows),
            None => self.source(cg, e, &product.b, rows, Some(product.n)),
        };
        let own = units.map(|units| {
            let (from, to) = units.iterations(e, self.tiles_of_panel(e));
            let from = e.scale(from, self.columns());
            Own { units, from, to: self.end_of_panels(e, to) }
        });
        blocked(
            e,
            (self.n, self.panels_width(e), nc),
            own.map(|own| (own.from, own.to)),
            |e, start, width| {
                let next = self.next_columns(e, b, start);
                let columns = Columns { start, width, own, next };
                blocked(e, (self.k, self.depth, kc), None, |e, from, size| {
                    let depth = Depth { from, size };
                    let b = match self.packed_b {
                        Some(packed) => self.pack_b(e, b, packed, columns, depth)?,
                        None => b.advanced(e, None, Some(from)),
                    };
                    blocked(e, (self.m, self.rows, mc), None, |e, ic, height| {
                        let a = match (self.packed_a, self.left) {
                            _ if self.quantised.is_some() => {
                                self.copy_a(e, ic, height)?.unwrap_or(a)
                            }
                            (Some(packed), _) => self.pack_a(e, a, packed, ic, height, depth)?,
                            (None, Some(_)) => Source { base: e.scale(from, self.all_rows()), ..a },
                            (None, None) => a.advanced(e, None, Some(from)),
                        };
                        self.emit_panels(cg, e, rows, (a, b), (ic, columns), depth)
                    })
                })
            },
        )
    }

    /// The first column after so many panels, or one after it.
    fn end_of_panels(&self, e: Emit<'c, 'a>, panels: Value<'c, 'a>) -> Value<'c, 'a> {
        let end = e.scale(panels, self.columns());
        if !self.ends_wide() {
            return end;
        }
        let is_last = e.compare(0, panels, e.index(self.panels()));
        e.op(arith::SELECT, &[is_last, e.index(self.n), end], end.r#type())
    }

    /// The block of columns after that from `start` on, if a block is a panel that is packed while the product is computed.
    fn next_columns(
        &self,
        e: Emit<'c, 'a>,
        b: Source<'c, 'a>,
        start: Value<'c, 'a>,
    ) -> Option<Source<'c, 'a>> {
        let Blocks { nc, kc, .. } = self.blocks;
        let is_packed = self.packed_b.is_some_and(|packed| !matches!(packed.room, Room::Filled))
            || self.is_in_place;
        let is_contiguous = b.along == 1 && b.across == self.k;
        let applies = is_packed
            && (is_contiguous || b.across == 1)
            && kc == self.k
            && nc == self.columns()
            && nc < self.n
            && matches!(self.depth, Extent::Known(_))
            && self.matmul.windows.is_none()
            && matches!(self.right, Right::Plain)
            && Contraction::is_plain(&self.matmul.product.b);
        let base = |e: Emit<'c, 'a>| e.add(b.base, e.scale(e.offset(start, nc), b.across));
        applies.then(|| Source { base: base(e), ..b })
    }

    /// The number of tiles of a panel of columns.
    fn tiles_of_panel(&self, e: Emit<'c, 'a>) -> Extent<'c, 'a> {
        self.rows.groups(e, self.blocks.mr)
    }

    /// The number of tiles of a product: panels of columns, from top to bottom in each.
    fn tiles(&self, e: Emit<'c, 'a>) -> Extent<'c, 'a> {
        self.tiles_of_panel(e).times(e, self.panels())
    }

    fn source(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        side: &super::contraction::Side<'c, 'a>,
        rows: &[Value<'c, 'a>],
        across: Option<usize>,
    ) -> Source<'c, 'a> {
        let access = &side.operand.access;
        let mut coefs = access.coefs[..rows.len()].to_vec();
        for dim in [self.matmul.product.m, Some(self.matmul.product.n)].into_iter().flatten() {
            if let Some(coef) = coefs.get_mut(dim) {
                *coef = 0;
            }
        }
        let packed = self.packed_b.map(|packed| packed.buffer);
        let own = packed.or_else(|| self.right.buffer());
        let buffer = cg.places[side.operand.tensor].buffer().or(own);
        let buffer = buffer.unwrap_or_else(|| unreachable!("checked when the emitter was made"));
        Source {
            buffer,
            base: e.linear(e.index(access.offset), rows, &coefs),
            across: across.map_or(0, |dim| access.coefs[dim]),
            along: access.coefs[self.matmul.product.k],
        }
    }

    /// The image that windows are packed from.
    fn window_source(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        windows: &Windows,
        rows: &[Value<'c, 'a>],
    ) -> Source<'c, 'a> {
        let m = self.matmul.product.m;
        let outer = rows.iter().enumerate().filter(|(dim, _)| Some(*dim) != m);
        let images: Vec<Value> = outer.map(|(_, row)| *row).collect();
        let buffer = cg.places[windows.source].buffer();
        let buffer = buffer.unwrap_or_else(|| unreachable!("checked when the emitter was made"));
        let base = e.linear(e.index(windows.first), &images, &windows.strides[..windows.images]);
        Source { buffer, base, across: 0, along: 0 }
    }

    /// The number of rows reserved for `k` in a packed panel.
    fn panel_depth(&self) -> i64 {
        let unit = self.right.depth_unit(self.lanes.count());
        (self.blocks.kc + unit - 1) / unit * unit
    }

    /// The full panels of a block of columns, from the first to after the last, relative to its start.
    fn panels_of(
        &self,
        e: Emit<'c, 'a>,
        columns: Columns<'c, 'a>,
        full: i64,
    ) -> (Value<'c, 'a>, Value<'c, 'a>) {
        let relative = |column| e.binary(arith::SUBI, column, columns.start);
        let end = match full == self.n {
            true => columns.width,
            false => e.min(columns.width, relative(e.index(full))),
        };
        match columns.own {
            None => (e.index(0), end),
            Some(own) => (e.max(relative(own.from), e.index(0)), e.min(relative(own.to), end)),
        }
    }

    /// Writes what is done for columns after the last full panel of the product.
    fn if_last_columns(
        &self,
        e: Emit<'c, 'a>,
        columns: Columns<'c, 'a>,
        then: impl FnOnce(Emit<'c, 'a>) -> Result<()>,
    ) -> Result<()> {
        let full = self.full();
        only_if(e, self.blocks.nc < self.n, columns.start, self.n - self.blocks.nc, |e| {
            match columns.own {
                None => then(e),
                Some(own) => only_if(e, true, own.to, full + 1, then),
            }
        })
    }

    fn emit_panels(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        rows: &[Value<'c, 'a>],
        (a, b): (Source<'c, 'a>, Source<'c, 'a>),
        (ic, block): (Value<'c, 'a>, Columns<'c, 'a>),
        depth: Depth<'c, 'a>,
    ) -> Result<()> {
        let columns = self.columns();
        let full = self.full();
        // Panels are relative to packed B, columns to B itself.
        let panel = |e: Emit<'c, 'a>, j: Value<'c, 'a>| {
            let across = if self.pack_b { j } else { e.add(block.start, j) };
            Source { base: e.add(b.base, e.scale(across, b.across)), ..b }
        };
        // The tiles of a panel that are computed, from top to bottom.
        let tiles = |e: Emit<'c, 'a>, column: Value<'c, 'a>| {
            let number = e.binary(arith::DIVUI, column, e.index(columns));
            block.own.map(|own| own.units.within(e, number, self.tiles_of_panel(e)))
        };
        if full > 0 {
            let (from, to) = self.panels_of(e, block, full);
            e.for_each((from, to, columns), &[], |e, j, _| {
                let column = e.add(block.start, j);
                let tiles = tiles(e, column);
                let at = Strip { ic, column, columns, tiles, next: block.next };
                self.emit_rows(cg, e, rows, (a, panel(e, j)), at, depth).map(|()| vec![])
            })?;
        }
        if full == self.n {
            return Ok(());
        }
        self.if_last_columns(e, block, |e| {
            let j = e.binary(arith::SUBI, e.index(full), block.start);
            let mut b = panel(e, j);
            if self.pack_b {
                b.along = packing::panel_width(self.n - full, self.lanes);
            }
            let column = e.index(full);
            let (columns, tiles) = (self.n - full, tiles(e, column));
            let at = Strip { ic, column, columns, tiles, next: None };
            self.emit_rows(cg, e, rows, (a, b), at, depth)
        })
    }

    /// Emits the tiles of a strip: whole ones, then one of the rest; of a number of rows that is passed, whole tiles,
    /// then tiles of a power of two of the rest.
    fn emit_rows(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        outer: &[Value<'c, 'a>],
        (a, b): (Source<'c, 'a>, Source<'c, 'a>),
        strip: Strip<'c, 'a>,
        depth: Depth<'c, 'a>,
    ) -> Result<()> {
        let Blocks { mr, mc, .. } = self.blocks;
        let Strip { ic, column, columns, tiles, next } = strip;
        // The last tile of the only block of a transposed product has fewer rows.
        let shares_end = self.matmul.product.is_transposed
            && matches!(self.rows, Extent::Known(_))
            && mc >= self.m
            && self.m % mr != 0
            && self.partial.is_none();
        let mut emit = |e: Emit<'c, 'a>, row: Value<'c, 'a>, rows: i64| {
            let ahead = self.ahead(e, b, next, e.binary(arith::SUBI, row, ic));
            let tile = Tile { row, column, rows, columns, ahead };
            match shares_end {
                true => self.emit_transposed(cg, e, outer, (a, b), (tile, self.m % mr), depth),
                false => self.emit_tile(cg, e, outer, (a, b), tile, depth),
            }
        };
        let mut whole = |e: Emit<'c, 'a>, mut end: Value<'c, 'a>| {
            let mut start = ic;
            if let Some(tiles) = tiles {
                start = e.max(start, e.scale(tiles.from, mr));
                end = e.min(end, e.scale(tiles.to, mr));
            }
            e.for_each((start, end, mr), &[], |e, row, _| emit(e, row, mr).map(|()| vec![]))
        };
        let block_end = e.offset(ic, mc);
        let count = match self.rows {
            Extent::Passed(count) => count,
            Extent::Known(_) => {
                let full = self.m / mr * mr;
                if shares_end {
                    return whole(e, e.index(self.m)).map(|_| ());
                }
                if full > 0 {
                    let full = e.index(full);
                    whole(e, if mc < self.m { e.min(block_end, full) } else { full })?;
                }
                if full == self.m {
                    return Ok(());
                }
                let mut last = |e: Emit<'c, 'a>| emit(e, e.index(full), self.m - full);
                return only_if(e, mc < self.m, ic, self.m - mc, |e| match tiles {
                    None => last(e),
                    Some(tiles) => only_if(e, true, tiles.to, (self.m + mr - 1) / mr, last),
                });
            }
        };
        let rest = e.binary(arith::REMUI, count, e.index(mr));
        let full = e.binary(arith::SUBI, count, rest);
        whole(e, e.min(block_end, full))?;
        // The rest is in the block of the row after the last whole tile.
        let mut runs = e.binary(arith::ANDI, e.compare(3, ic, full), e.compare(2, full, block_end));
        if let Some(tiles) = tiles {
            let all = self.tiles_of_panel(e).value(e);
            runs = e.binary(arith::ANDI, runs, e.compare(5, tiles.to, all));
        }
        let rest_of = |e: Emit<'c, 'a>| {
            for rows in [8, 4, 2, 1].into_iter().filter(|rows| *rows < mr) {
                let larger = e.binary(arith::ANDI, rest, e.index(-2 * rows));
                let row = e.add(full, larger);
                let own = e.binary(arith::ANDI, rest, e.index(rows));
                let has_own = e.compare(1, own, e.index(0));
                let then = |e| emit(e, row, rows).map(|()| vec![]);
                e.if_else(has_own, &[], then, |_| Ok(vec![]))?;
            }
            Ok(vec![])
        };
        e.if_else(runs, &[], rest_of, |_| Ok(vec![])).map(|_| ())
    }

    /// The share of the panel after this one that a tile prefetches, by its first row in the block. A packed panel of a large
    /// constant, or what a panel will be made of, comes from memory or a shared cache while the tiles before it are
    /// computed, more slowly than a tile can use it.
    fn ahead(
        &self,
        e: Emit<'c, 'a>,
        b: Source<'c, 'a>,
        next: Option<Source<'c, 'a>>,
        row: Value<'c, 'a>,
    ) -> Option<Ahead<'c, 'a>> {
        let Blocks { mr, mc, kc, .. } = self.blocks;
        let is_constant = self.packed_b.is_some_and(|packed| matches!(packed.room, Room::Filled));
        let tiles = (mc.min(self.m) + mr - 1) / mr;
        let number = |e: Emit<'c, 'a>| e.binary(arith::DIVUI, row, e.index(mr));
        if let Some(next) = next.filter(|next| next.across == 1) {
            // A line of each row of the panel, as many as a row may have.
            let lines = self.columns() / LINE + 1;
            let first = e.min(e.scale(number(e), LINE), e.index(self.columns() - 1));
            let width = (lines + tiles - 1) / tiles * LINE;
            let (buffer, at) = (next.buffer, e.add(next.base, first));
            return Some(Ahead { buffer, at, along: next.along, width });
        }
        if self.streams || tiles > MAX_TILES_AHEAD || !(is_constant || next.is_some()) {
            return None;
        }
        let packed = |e: Emit<'c, 'a>| e.offset(b.base, self.columns() * self.panel_depth());
        let (buffer, first, copies) = match next {
            Some(next) => (next.buffer, next.base, 1),
            None => (b.buffer, packed(e), copies(self.extensions[1])),
        };
        let step = (copies * b.along + tiles - 1) / tiles;
        let at = e.add(e.scale(first, copies), e.scale(number(e), step * kc));
        Some(Ahead { buffer, at, along: step, width: step })
    }
}

impl<'c: 'a, 'a> Source<'c, 'a> {
    /// The source at a later row or column, and a later `k`.
    fn advanced(
        self,
        e: Emit<'c, 'a>,
        across: Option<Value<'c, 'a>>,
        along: Option<Value<'c, 'a>>,
    ) -> Self {
        let mut base = self.base;
        for (iv, step) in [(across, self.across), (along, self.along)] {
            if let Some(iv) = iv {
                base = e.add(base, e.scale(iv, step));
            }
        }
        Self { base, ..self }
    }
}

/// Blocks of a few rows and packed panels that are read once: all of the depth, so that sums stay in registers.
fn streamed_blocks(cg: &Codegen<'_, '_>, (m, n, k): (i64, i64, i64)) -> Blocks {
    let nv = if cg.target.vector_bytes >= 64 || m <= 2 { 4 } else { PANEL_VECTORS };
    let columns = nv * cg.target.lanes();
    Blocks { mr: m, nv, mc: m, nc: (n + columns - 1) / columns * columns, kc: k }
}

/// Chooses block sizes. Tiles of 8 by 2 vectors keep two FMA units busy within 32 registers; 6 by 2 within
/// 16. Tiles that are transposed before they are stored have as many rows as registers, up to a vector. Depth is
/// bounded so that a panel of `B` stays in L2, rows so that a block of `A` does.
fn choose_blocks(
    cg: &Codegen<'_, '_>,
    (m, n, k): (i64, i64, i64),
    (pack_b, right, extensions): (bool, &Right<'_, '_>, [Option<Extension>; 2]),
    product: &Contraction<'_, '_>,
) -> Blocks {
    let wide = cg.target.vector_bytes >= 64;
    let is_in_quads = matches!(product.factors, Factors::Quads { .. });
    let are_extended = extensions.iter().all(Option::is_some);
    let multiplies_bytes = matches!(quads::dots(cg, product), Dots::Vnni | Dots::Small);
    let most = match (wide, product.is_transposed) {
        (true, true) => TURNED_ROWS,
        (true, false) => TILE_ROWS,
        // The even and odd bytes of vectors need registers too.
        (false, _) if is_in_quads && !multiplies_bytes && !are_extended => 4,
        (false, _) => 6,
    };
    let panels = (m + most - 1) / most;
    let mr = match cg.schedule.rows {
        Some(rows) => rows.clamp(1, most.min(m)),
        None => (m + panels - 1) / panels,
    };
    if !pack_b {
        // B is read once, as a few streams of whole rows; the sums stay in L1 meanwhile.
        let nv = if m > 2 { 2 } else { 4 };
        let columns = nv * cg.target.lanes();
        return Blocks { mr, nv, mc: m, nc: (n + columns - 1) / columns * columns, kc: k.min(8) };
    }
    if right.is_in_tiles() {
        // All of the depth, so that a tile has its sums in registers to the end.
        let nv = right.panel_vectors();
        let columns = nv * cg.target.lanes();
        let most = right.tile_rows(&cg.target);
        let tiles = (m + most - 1) / most;
        let mr = (m + tiles - 1) / tiles;
        let nc = (n + columns - 1) / columns * columns;
        let mc = match right {
            Right::Bytes(coded, left, _) => {
                let rows = cg.target.l2_bytes / 2 / (4 * coded.words_of_row(left));
                m.min((rows / mr).max(1) * mr)
            }
            _ => m,
        };
        return Blocks { mr, nv, mc, nc, kc: k };
    }
    // The factors of a row or two are loaded, and extended, for more columns.
    let is_row = is_in_quads && m <= 2 && quads::dots(cg, product) == Dots::Pairs;
    let nv = if is_row { 4 } else { PANEL_VECTORS };
    let columns = nv * cg.target.lanes();
    let most = if is_in_quads { 256 } else { 1024 };
    let depth = cg.schedule.depth.map_or(most, |depth| depth.max(cg.target.lanes()));
    let kc = even_block(k, depth, right.depth_unit(cg.target.lanes()));
    let rows = (cg.target.l2_bytes / 2 / (4 * copies(extensions[0]) * kc)).max(mr);
    let mc = rows / mr * mr;
    // Panels that are made for a block of rows stay in L2; those that are used once, where they were made.
    let access = &product.b.operand.access;
    let is_contiguous = access.coefs[product.k] == 1 && access.coefs[product.n] == k;
    let extends_rows = extensions[0].is_some() && packed_left_stage(cg, product).is_none();
    let most = match right.is_unpacked() {
        true => 128,
        // Rows that are extended for each block of columns serve more than one panel.
        false if extends_rows => 1024,
        false if m <= mc && kc == k && (is_contiguous || k >= MIN_DEPTH_ALONE) => columns,
        false => 1024,
    };
    let nc = (most / columns).max(1) * columns;
    Blocks { mr, nv, mc, nc, kc }
}

/// A loop over blocks of `step` of an extent of at most `most`, or over those with any element from the first to before the second of `own`; `body`
/// gets the start and the size of each.
fn blocked<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    (most, extent, step): (i64, Extent<'c, 'a>, i64),
    own: Option<(Value<'c, 'a>, Value<'c, 'a>)>,
    body: impl FnOnce(Emit<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>) -> Result<()>,
) -> Result<()> {
    let all = extent.value(e);
    if most <= step {
        return body(e, e.index(0), all);
    }
    let (from, to) = match own {
        None => (e.index(0), all),
        Some((from, to)) => {
            let block = e.binary(arith::DIVUI, from, e.index(step));
            (e.scale(block, step), e.min(to, all))
        }
    };
    e.for_each((from, to, step), &[], |e, iv, _| {
        let rest = e.binary(arith::SUBI, all, iv);
        let is_whole = matches!(extent, Extent::Known(known) if known % step == 0);
        let size = if is_whole { e.index(step) } else { e.min(e.index(step), rest) };
        body(e, iv, size).map(|()| vec![])
    })
    .map(|_| ())
}

/// Runs `then` only if `iv >= from`, or unconditionally if there is no loop.
fn only_if<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    looped: bool,
    iv: Value<'c, 'a>,
    from: i64,
    then: impl FnOnce(Emit<'c, 'a>) -> Result<()>,
) -> Result<()> {
    if !looped {
        return then(e);
    }
    let last = e.compare(5, iv, e.index(from));
    e.if_else(last, &[], |e| then(e).map(|()| vec![]), |_| Ok(vec![])).map(|_| ())
}
