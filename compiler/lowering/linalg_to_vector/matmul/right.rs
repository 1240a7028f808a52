//! Right operands that are smaller in memory than in registers: narrow floats or integers that are converted, and integers of
//! a few bits with scales.
//!
//! Up to a tile of rows, each element of such an operand is needed once, and becomes a float where it is multiplied.
//! For more rows, panels of floats are made of it first.
use super::{Depth, Emitter, Matmul, Source, Tile};
use crate::kernel::emit::{Buffer, Emit};
use crate::lowering::linalg_to_vector::{
    Target, byte_width,
    codegen::Codegen,
    codes::{
        self, Coded,
        bytes::{self, Quantised},
    },
    contraction::Contraction,
    error::Result,
    packed, packing,
    split::Extent,
};
use irc_mlir::Value;
use irc_packing::{Packing, Panels};

/// Vectors in a row of a panel.
pub(super) const PANEL_VECTORS: i64 = 2;

/// A right operand.
#[derive(Clone)]
pub(super) enum Right<'c, 'a> {
    /// It is read as it is.
    Plain,
    /// A constant that is converted, packed in panels when the caller is compiled: whether tiles convert it.
    Narrow(Buffer<'c, 'a>, bool),
    /// Integers of a few bits: whether tiles compute with them.
    Coded(Coded<'c, 'a>, bool),
    /// Integers of a few bits that are multiplied by those of the left operand, and the vectors of a row of a panel.
    Bytes(Coded<'c, 'a>, Quantised, i64),
}

/// The packing of a narrow matrix: panels of the whole depth.
fn narrow_panels(cg: &Codegen<'_, '_>, product: &Contraction<'_, '_>) -> Panels {
    let stage = &cg.kernel.stages[product.stage];
    let access = &product.b.operand.access;
    Panels {
        argument: 0,
        offset: access.offset,
        along: access.coefs[product.k],
        across: access.coefs[product.n],
        rows: stage.sizes[product.k],
        columns: stage.sizes[product.n],
        depth: stage.sizes[product.k],
        panel: PANEL_VECTORS * cg.target.lanes(),
        lanes: cg.target.lanes(),
        quads: None,
    }
}

/// Rows of a tile of bytes that has as many sums as registers allow.
const BYTE_ROWS: i64 = 8;

/// Vectors in a row of a panel that is multiplied by rows of bytes. Half of the registers of 32 bytes are sums: of one vector of
/// many rows, for which the bytes of a word are extracted once, unless so many rows of extended bytes would not stay in L1.
fn byte_vectors(cg: &Codegen<'_, '_>, left: &Quantised) -> i64 {
    let is_known = matches!(cg.extent(left.rows), Extent::Known(_));
    let has_rows = is_known && left.rows >= BYTE_ROWS && !left.is_extended();
    if has_rows && cg.target.vector_bytes < 64 { 1 } else { PANEL_VECTORS }
}

impl<'c: 'a, 'a> Right<'c, 'a> {
    /// The right operand of a product.
    pub(super) fn of(cg: &mut Codegen<'c, 'a>, e: Emit<'c, 'a>, matmul: &Matmul<'c, 'a>) -> Self {
        let product = &matmul.product;
        if let Some(codes) = product.right_codes(cg) {
            let left = product.left_bytes(cg);
            let vectors = left.as_ref().map_or(PANEL_VECTORS, |left| byte_vectors(cg, left));
            let coded = Coded::take(cg, e, codes, vectors * cg.target.lanes());
            return match left {
                Some(left) => Self::Bytes(coded, left, vectors),
                None => Self::Coded(coded, false),
            };
        }
        let operand = &product.b.operand;
        let is_same_for_all_batches = operand.access.coefs[..product.n].iter().all(|c| *c == 0);
        let element = cg.kernel.tensors[operand.tensor].element;
        let output = cg.kernel.stages[product.stage].outputs[0].tensor;
        let sum = cg.kernel.tensors[output].element;
        let is_narrow = !Contraction::is_plain(&product.b)
            && byte_width(element) < 4
            && byte_width(sum) == 4
            && is_same_for_all_batches
            && matmul.windows.is_none();
        let panels = narrow_panels(cg, product);
        let numbered = |argument| Packing::Panels(Panels { argument, ..panels });
        match is_narrow.then(|| packed::take(cg, e, operand, numbered)).flatten() {
            Some(buffer) => Self::Narrow(buffer, false),
            None => Self::Plain,
        }
    }

    /// The maximum number of rows of tiles that convert the operand themselves.
    pub(super) fn tile_rows(&self, target: &Target) -> i64 {
        match (self, target.vector_bytes >= 64) {
            (Self::Plain | Self::Narrow(..), true) => 8,
            (Self::Plain | Self::Narrow(..), false) | (Self::Coded(..), true) => 4,
            // The sums of a block need as many registers as all.
            (Self::Coded(..), false) => 2,
            (Self::Bytes(..), true) | (Self::Bytes(.., 1), false) => BYTE_ROWS,
            // The sums of all blocks need not stay in registers.
            (Self::Bytes(..), false) => 4,
        }
    }

    /// The maximum number of rows for which tiles convert the operand themselves; 0 if it is read as it is, or by tiles
    /// always. Converting it again takes less time than storing it and reading it again.
    pub(super) fn most_rows(&self, target: &Target) -> i64 {
        match self {
            Self::Plain | Self::Bytes(..) => 0,
            Self::Narrow(..) => self.tile_rows(target),
            Self::Coded(..) => 3 * self.tile_rows(target),
        }
    }

    /// The operand, of which tiles convert elements themselves or not.
    pub(super) fn converted_in_tiles(mut self, by_tiles: bool) -> Self {
        if let Self::Narrow(_, own) | Self::Coded(_, own) = &mut self {
            *own = by_tiles;
        }
        self
    }

    /// The vectors of a row of a panel that tiles read.
    pub(super) fn panel_vectors(&self) -> i64 {
        match self {
            Self::Bytes(.., vectors) => *vectors,
            _ => PANEL_VECTORS,
        }
    }

    /// Whether tiles convert its elements.
    pub(super) fn is_in_tiles(&self) -> bool {
        matches!(self, Self::Narrow(_, true) | Self::Coded(_, true) | Self::Bytes(..))
    }

    /// Memory of its elements, if it is not read as it is.
    pub(super) fn buffer(&self) -> Option<Buffer<'c, 'a>> {
        match self {
            Self::Plain => None,
            Self::Narrow(buffer, _) => Some(*buffer),
            Self::Coded(coded, _) | Self::Bytes(coded, ..) => Some(coded.buffer()),
        }
    }

    /// Whether panels of floats are made of it.
    pub(super) fn is_unpacked(&self) -> bool {
        matches!(self, Self::Narrow(_, false) | Self::Coded(_, false))
    }

    /// A unit of depth that blocks of it are multiples of.
    pub(super) fn depth_unit(&self, lanes: i64) -> i64 {
        match self {
            Self::Coded(coded, _) => lanes.max(coded.codes.per_word()),
            _ => lanes,
        }
    }
}

impl<'c: 'a, 'a> Emitter<'_, 'c, 'a> {
    /// The narrow elements of a block of depth from a column on, and their distance along the depth.
    fn narrow_panel(
        &self,
        e: Emit<'c, 'a>,
        buffer: Buffer<'c, 'a>,
        (column, columns): (Value<'c, 'a>, i64),
        depth: Depth<'c, 'a>,
    ) -> Source<'c, 'a> {
        let width = self.lanes.count();
        let reserved = (self.k + width - 1) / width * width;
        let along = packing::panel_width(columns, self.lanes);
        let base = e.add(e.scale(column, reserved), e.scale(depth.from, along));
        Source { buffer, base, across: 1, along }
    }

    /// Makes a panel of floats of an operand that tiles do not convert, from a column on.
    pub(super) fn unpack_panel(
        &self,
        e: Emit<'c, 'a>,
        (column, columns): (Value<'c, 'a>, i64),
        depth: Depth<'c, 'a>,
        (to, target): (Buffer<'c, 'a>, Value<'c, 'a>),
    ) -> Result<()> {
        match &self.right {
            Right::Plain | Right::Bytes(..) => Ok(()),
            Right::Coded(coded, _) => {
                let panel = codes::Panel { column, columns };
                coded.unpack(e, panel, (depth.from, depth.size), (to, target))
            }
            Right::Narrow(buffer, _) => {
                let from = self.narrow_panel(e, *buffer, (column, columns), depth);
                let panel = packing::Panel {
                    from: *buffer,
                    to,
                    casts: &self.matmul.product.b.casts,
                    element: self.element,
                    lanes: self.lanes,
                    across: 1,
                    along: from.along,
                    depth: depth.size,
                    depth_tail: 0,
                    // The last columns are padded.
                    columns: from.along,
                    live: None,
                    stored: None,
                };
                packing::pack_panel(e, &panel, from.base, target)
            }
        }
    }

    /// The sums of a tile over the whole depth, of an operand that it converts itself.
    pub(super) fn accumulate_converted(
        &self,
        e: Emit<'c, 'a>,
        a: Source<'c, 'a>,
        tile: Tile<'c, 'a>,
        depth: Depth<'c, 'a>,
        starts: &[Value<'c, 'a>],
    ) -> Result<Vec<Value<'c, 'a>>> {
        let first = e.add(a.base, e.scale(tile.row, a.across));
        let panel = codes::Panel { column: tile.column, columns: tile.columns };
        if let (Right::Bytes(coded, ..), Some(left)) = (&self.right, &self.quantised) {
            let rows = bytes::Rows { first: tile.row, at: first, count: tile.rows };
            return coded.sums_of_bytes(e, panel, (left, rows), starts);
        }
        let each = self.vectors_per_row(tile) as usize;
        // Parts of the sums do not wait for each other.
        let parts = match &self.right {
            Right::Coded(coded, _) => coded.codes.parts(tile.rows),
            _ if tile.rows == 1 => 2,
            _ => 1,
        };
        let multiply_add = |e: Emit<'c, 'a>,
                            k: Value<'c, 'a>,
                            number: i64,
                            columns: &[Value<'c, 'a>],
                            sums: &[Value<'c, 'a>]| {
            let at = e.add(first, e.scale(e.offset(k, number), a.along));
            let count = tile.rows as usize * each;
            let own = (number as usize % parts) * count;
            let mut next = sums.to_vec();
            for row in 0..tile.rows {
                let scalar = e.load(a.buffer, e.offset(at, row * a.across));
                let factor = e.splat(scalar, self.lanes);
                for (vector, column) in columns.iter().enumerate() {
                    let sum = &mut next[own + row as usize * each + vector];
                    let operands = [factor, *column, *sum];
                    *sum = self.matmul.product.multiply_add(e, self.dots, operands, self.lanes);
                }
            }
            Ok(next)
        };
        match &self.right {
            Right::Coded(coded, _) => coded.sums(e, panel, (starts, parts), &multiply_add),
            Right::Narrow(buffer, _) => {
                let b = self.narrow_panel(e, *buffer, (tile.column, tile.columns), depth);
                self.accumulate_narrow(e, b, (starts, parts), &multiply_add)
            }
            Right::Plain | Right::Bytes(..) => Ok(starts.to_vec()),
        }
    }

    fn accumulate_narrow(
        &self,
        e: Emit<'c, 'a>,
        b: Source<'c, 'a>,
        (starts, parts): (&[Value<'c, 'a>], usize),
        multiply_add: codes::MultiplyAdd<'_, 'c, 'a>,
    ) -> Result<Vec<Value<'c, 'a>>> {
        let zero = e.zero(self.element, self.lanes);
        let mut sums = starts.to_vec();
        sums.resize(starts.len() * parts, zero);
        let width = self.lanes.count();
        let row = |e: Emit<'c, 'a>, k: Value<'c, 'a>| -> Result<Vec<Value<'c, 'a>>> {
            let at = e.add(b.base, e.scale(k, b.along));
            let vector = |vector: i64| {
                let at = e.offset(at, vector * width);
                let value = e.load_lanes(b.buffer, at, self.lanes, None);
                packing::convert(e, &self.matmul.product.b.casts, value, self.lanes)
            };
            (0..b.along / width).map(vector).collect()
        };
        let step = parts as i64;
        let whole = self.k / step * step;
        let sums = e.for_each((e.index(0), e.index(whole), step), &sums, |e, k, sums| {
            (0..step).try_fold(sums.to_vec(), |sums, number| {
                multiply_add(e, k, number, &row(e, e.offset(k, number))?, &sums)
            })
        })?;
        let sums = (whole..self.k).try_fold(sums, |sums, k| {
            multiply_add(e, e.index(k), 0, &row(e, e.index(k))?, &sums)
        })?;
        Ok(codes::joined(e, &sums, &vec![1.0; parts], (self.element, self.lanes)))
    }
}
