//! Copies blocks of `A` and `B` into the order in which tiles read them.
use super::{
    Columns, Depth, Emitter, MAX_ROWS_ONCE, PackedB, Right, Room, Source, packed_left_stage,
};
use crate::kernel::emit::{Buffer, Emit, Lanes};
use crate::lowering::linalg_to_vector::{
    codegen::Codegen,
    contraction::Contraction,
    dots::Halves,
    error::{LowerError, Result},
    packing::{self, Panel},
    quads,
    split::Extent,
    windows::{self, Windows},
};
use irc_mlir::{Value, ops::arith};
use irc_packing::Extension;

/// The number of rows from which on the constant bytes of a right operand are extended when the caller is compiled: with fewer,
/// reading twice as many bytes takes longer than extending them.
const MIN_EXTENDED_ROWS: i64 = 16;

/// How the bytes of the left and the right operand are extended when they are packed, if they are.
pub(super) fn extensions(
    cg: &Codegen<'_, '_>,
    product: &Contraction<'_, '_>,
    pack_b: bool,
) -> [Option<Extension>; 2] {
    let lanes = Lanes::Vector(cg.target.lanes());
    let Some([left, right]) = product.extensions(quads::dots(cg, product), lanes) else {
        return [None; 2];
    };
    let rows = product.m.map_or(1, |dim| cg.kernel.stages[product.stage].sizes[dim]);
    let is_in_order = product.a.operand.access.coefs[product.k] == 1;
    let has_rows = rows > MAX_ROWS_ONCE;
    let packs_left = has_rows && (is_in_order || packed_left_stage(cg, product).is_some());
    let is_open = matches!(cg.extent(rows), Extent::Passed(_));
    let is_read_often = rows >= MIN_EXTENDED_ROWS && !is_open;
    let packs_right = pack_b && has_rows && (is_read_often || !quads::is_packed(cg, product));
    [packs_left.then_some(left), packs_right.then_some(right)]
}

/// The number of vectors that a vector of elements is stored as.
pub(super) fn copies(extension: Option<Extension>) -> i64 {
    if extension.is_some() { 2 } else { 1 }
}

impl<'c: 'a, 'a> Emitter<'_, 'c, 'a> {
    /// Copies a block of `B` into panels as wide as a tile, unless it is already packed; returns how to
    /// access it.
    pub(super) fn pack_b(
        &self,
        e: Emit<'c, 'a>,
        b: Source<'c, 'a>,
        packed: PackedB<'c, 'a>,
        block: Columns<'c, 'a>,
        depth: Depth<'c, 'a>,
    ) -> Result<Source<'c, 'a>> {
        let along = self.columns();
        let buffer = packed.buffer;
        if let Room::One = packed.room {
            let to = Source { buffer, base: e.index(0), across: self.panel_depth(), along };
            return self.pack_panels(e, (b, to), block, depth).map(|()| to);
        }
        // Every block of depth before the last has the depth of its panels.
        let base = e.scale(depth.from, self.all_columns());
        let base = e.add(base, e.scale(block.start, self.panel_depth()));
        let to = Source { buffer, base, across: self.panel_depth(), along };
        if let Room::All(is_empty) = packed.room {
            let pack = |e| self.pack_panels(e, (b, to), block, depth).map(|()| vec![]);
            e.if_else(is_empty, &[], pack, |_| Ok(vec![]))?;
        }
        Ok(to)
    }

    fn pack_panels(
        &self,
        e: Emit<'c, 'a>,
        (b, to): (Source<'c, 'a>, Source<'c, 'a>),
        block: Columns<'c, 'a>,
        depth: Depth<'c, 'a>,
    ) -> Result<()> {
        if let Some(from) = &self.matmul.windows {
            return self.pack_windows(e, from, (b, to), block, depth);
        }
        let columns = self.columns();
        if self.right.is_unpacked() {
            return self.unpack_panels(e, to, block, depth);
        }
        let panel = Panel {
            from: b.buffer,
            to: to.buffer,
            casts: &self.matmul.product.b.casts,
            element: self.element,
            lanes: self.lanes,
            across: b.across,
            along: b.along,
            depth: depth.size,
            depth_tail: self.k % self.lanes.count(),
            columns,
            live: None,
            stored: self.right_halves(),
        };
        let full = self.n / columns * columns;
        let start = b.advanced(e, None, Some(depth.from)).base;
        let at = |e: Emit<'c, 'a>, j: Value<'c, 'a>| {
            let source = e.add(start, e.scale(e.add(block.start, j), b.across));
            (source, e.add(to.base, e.scale(j, to.across)))
        };
        let (first, end) = self.panels_of(e, block, full);
        let pack = |e: Emit<'c, 'a>, j: Value<'c, 'a>, panel: &Panel<'_, 'c, 'a>| {
            let (source, target) = at(e, j);
            packing::pack_panel(e, panel, source, target).map(|()| vec![])
        };
        let Some(width) = self.width else {
            e.for_each((first, end, columns), &[], |e, j, _| pack(e, j, &panel))?;
            return self.pack_last(e, block, full, &panel, &at);
        };
        let rest = e.binary(arith::REMUI, width, e.index(columns));
        let whole = e.binary(arith::SUBI, e.binary(arith::SUBI, width, rest), block.start);
        let whole = e.min(end, whole);
        e.for_each((first, whole, columns), &[], |e, j, _| pack(e, j, &panel))?;
        // The panel that is not whole, if the block has it.
        e.for_each((e.max(first, whole), end, columns), &[], |e, j, _| {
            pack(e, j, &Panel { live: Some(rest), ..panel })
        })
        .map(|_| ())
    }

    /// Packs the columns after the last full panel.
    fn pack_last(
        &self,
        e: Emit<'c, 'a>,
        block: Columns<'c, 'a>,
        full: i64,
        panel: &Panel<'_, 'c, 'a>,
        at: &dyn Fn(Emit<'c, 'a>, Value<'c, 'a>) -> (Value<'c, 'a>, Value<'c, 'a>),
    ) -> Result<()> {
        if full == self.n {
            return Ok(());
        }
        self.if_last_columns(e, block, |e| {
            let (source, target) = at(e, e.binary(arith::SUBI, e.index(full), block.start));
            let tail = Panel { columns: self.n - full, ..*panel };
            packing::pack_panel(e, &tail, source, target)
        })
    }

    /// As [`Self::pack_panels`], from an operand that is smaller in memory.
    fn unpack_panels(
        &self,
        e: Emit<'c, 'a>,
        to: Source<'c, 'a>,
        block: Columns<'c, 'a>,
        depth: Depth<'c, 'a>,
    ) -> Result<()> {
        let columns = self.columns();
        let full = self.n / columns * columns;
        let target = |e: Emit<'c, 'a>, j| (to.buffer, e.add(to.base, e.scale(j, to.across)));
        let (first, end) = self.panels_of(e, block, full);
        e.for_each((first, end, columns), &[], |e, j, _| {
            let column = e.add(block.start, j);
            self.unpack_panel(e, (column, columns), depth, target(e, j)).map(|()| vec![])
        })?;
        if full == self.n {
            return Ok(());
        }
        self.if_last_columns(e, block, |e| {
            let j = e.binary(arith::SUBI, e.index(full), block.start);
            self.unpack_panel(e, (e.index(full), self.n - full), depth, target(e, j))
        })
    }

    /// As [`Self::pack_panels`], from the operand of a convolution.
    fn pack_windows(
        &self,
        e: Emit<'c, 'a>,
        from: &Windows,
        (b, to): (Source<'c, 'a>, Source<'c, 'a>),
        block: Columns<'c, 'a>,
        depth: Depth<'c, 'a>,
    ) -> Result<()> {
        let columns = self.columns();
        let full = self.n / columns * columns;
        let taps = from.last_taps();
        let has_whole_rows = self.k % taps == 0 && self.blocks.kc % taps == 0;
        let pack = |e: Emit<'c, 'a>, j: Value<'c, 'a>, columns: i64| {
            let panel = windows::Panel {
                windows: from,
                taps: if has_whole_rows { taps } else { 1 },
                from: b.buffer,
                image: b.base,
                to: to.buffer,
                lanes: self.lanes,
                row: depth.from,
                depth: depth.size,
                column: e.add(block.start, j),
                columns,
                stored: self.right_halves(),
            };
            windows::pack(e, &panel, e.add(to.base, e.scale(j, to.across)));
        };
        let (first, end) = self.panels_of(e, block, full);
        e.for_each::<LowerError>((first, end, columns), &[], |e, j, _| {
            pack(e, j, columns);
            Ok(vec![])
        })?;
        if full == self.n {
            return Ok(());
        }
        self.if_last_columns(e, block, |e| {
            pack(e, e.binary(arith::SUBI, e.index(full), block.start), self.n - full);
            Ok(())
        })
    }

    /// Copies a block of a quantised `A` in the order in which its bytes are multiplied; returns how to access it.
    pub(super) fn copy_a(
        &self,
        e: Emit<'c, 'a>,
        ic: Value<'c, 'a>,
        height: Value<'c, 'a>,
    ) -> Result<Option<Source<'c, 'a>>> {
        let (Right::Bytes(coded, ..), Some(left)) = (&self.right, &self.quantised) else {
            return Ok(None);
        };
        coded.copy(e, left, (ic, height))?;
        let base = e.scale(ic, -left.row);
        Ok(Some(Source { buffer: left.buffer, base, across: left.row, along: 1 }))
    }

    /// Converts a block of `A`, keeping its contiguous dimension; returns how to access it.
    pub(super) fn pack_a(
        &self,
        e: Emit<'c, 'a>,
        a: Source<'c, 'a>,
        packed: Buffer<'c, 'a>,
        ic: Value<'c, 'a>,
        height: Value<'c, 'a>,
        depth: Depth<'c, 'a>,
    ) -> Result<Source<'c, 'a>> {
        let width = self.lanes.count();
        let start = a.advanced(e, Some(ic), Some(depth.from)).base;
        let casts = &self.matmul.product.a.casts;
        if a.across == 1 && a.along != 1 {
            let row = (self.blocks.mc.min(self.m) + width - 1) / width * width;
            let copy = packing::Copy {
                from: a.buffer,
                to: packed,
                casts,
                lanes: self.lanes,
                stored: None,
            };
            packing::convert_rows(e, &copy, (start, a.along), row, depth.size, height)?;
            let base = e.scale(ic, -1);
            return Ok(Source { buffer: packed, base, across: 1, along: row });
        }
        let row = self.panel_depth();
        let lanes = if a.along == 1 { self.lanes } else { Lanes::Scalar };
        let stored = self.extensions[0].map(|extension| Halves { extension, group: 1 });
        let copy = packing::Copy { from: a.buffer, to: packed, casts, lanes, stored };
        if a.along == 1 {
            packing::convert_rows(e, &copy, (start, a.across), row, height, depth.size)?;
        } else {
            packing::convert_elements(
                e,
                &copy,
                (start, a.across, a.along),
                row,
                height,
                depth.size,
            )?;
        }
        Ok(Source { buffer: packed, base: e.scale(ic, -row), across: row, along: 1 })
    }
}
