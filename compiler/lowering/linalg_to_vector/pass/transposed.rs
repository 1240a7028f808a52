//! Passes of operands that are contiguous along another loop than the results: tiles are transposed in registers. Operands
//! whose elements are repeated a few times each are interleaved with themselves.
//!
//! The last loop is that of the results, the one before it that of the operands; if the results are interleaved, it is the
//! reverse.
use super::{Point, Stores, Sweep};
use crate::kernel::{
    emit::{Buffer, Emit, Lanes},
    transpose::{self, Form, MAX_INTERLEAVED},
};
use crate::lowering::linalg_to_vector::{
    access::Access,
    byte_width,
    codegen::Codegen,
    error::Result,
    kernel::{Operand, TensorId},
    split::{Extent, Units},
};
use irc_mlir::Value;
use std::cell::RefCell;

/// The maximum number of ops per element: there is code for each row of a tile.
const MAX_COST: usize = 24;

/// How a pass goes over its last two loops.
#[derive(Debug, Clone)]
pub(super) struct Transposed {
    form: Form,
    /// The operands that are contiguous along the other loop, with their stages.
    operands: Vec<(usize, Operand)>,
}

/// A value to store: the stage, the number of its output, and the vector.
pub(super) type Stored<'c, 'a> = (usize, usize, Value<'c, 'a>);

impl<'c: 'a, 'a> Sweep<'_, 'c, 'a> {
    /// Has the pass go over tiles if operands are contiguous along another loop than the results, which is then one of the last
    /// two.
    pub(super) fn transpose(&mut self, cg: &Codegen<'c, 'a>) {
        let Some((across, transposed)) = self.found(cg) else { return };
        let moved = self.loops.remove(across);
        let last = self.loops.len() - usize::from(!matches!(transposed.form, Form::Interleaved));
        self.loops.insert(last, moved);
        self.transposed = Some(transposed);
    }

    /// The loop along which operands are contiguous, and how to go over it and the last one.
    fn found(&self, cg: &Codegen<'c, 'a>) -> Option<(usize, Transposed)> {
        let stages = || self.pass.stages.iter().map(|s| (*s, &cg.kernel.stages[*s]));
        let plain = stages().all(|(_, stage)| {
            !stage.reduces() && stage.outputs.iter().all(|output| !output.reads_init)
        });
        let last = self.loops.last()?;
        if !plain || self.pass.partial || cg.is_passed(last.size) || self.loops.len() < 2 {
            return None;
        }
        let strided: Vec<(usize, Operand)> = stages()
            .flat_map(|(s, stage)| stage.inputs.iter().map(move |input| (s, input.clone())))
            .filter(|(_, input)| {
                let step = input.access.coefs[last.dim];
                (step > 1 || step == 0 && last.size <= MAX_INTERLEAVED)
                    && cg.places[input.tensor].buffer().is_some()
                    && cg.producer(input.tensor, &self.pass.stages).is_none()
            })
            .collect();
        let is_contiguous =
            |dim: usize, (_, input): &&(usize, Operand)| input.access.coefs[dim] == 1;
        let (across, loop_) =
            self.loops[..self.loops.len() - 1].iter().enumerate().find(|(_, it)| {
                !cg.is_passed(it.size)
                    && strided.iter().any(|operand| is_contiguous(it.dim, &operand))
            })?;
        let mut operands: Vec<_> =
            strided.iter().filter(|it| is_contiguous(loop_.dim, it)).cloned().collect();
        operands.dedup_by(|x, y| x.1.tensor == y.1.tensor && x.1.access == y.1.access);
        let is_dense = operands.iter().all(|(_, it)| it.access.coefs[last.dim] == loop_.size);
        let stored = || {
            let outputs = stages().flat_map(|(_, stage)| &stage.outputs);
            outputs.filter(|output| cg.places[output.tensor].buffer().is_some())
        };
        let joins = stored().all(|output| output.access.coefs[loop_.dim] == last.size);
        let bytes = |tensor: TensorId| byte_width(cg.kernel.tensors[tensor].element);
        let widest = operands.iter().map(|(_, it)| bytes(it.tensor)).max()?;
        // The distance that is a multiple of the largest power of two.
        let read = operands.iter().map(|(_, it)| it.access.coefs[last.dim] * bytes(it.tensor));
        let written = stored().map(|it| it.access.coefs[loop_.dim] * bytes(it.tensor));
        let strides = [
            read.max_by_key(|stride| stride.trailing_zeros()),
            written.max_by_key(|stride| stride.trailing_zeros()),
        ];
        let sizes = [loop_.size, last.size].map(Some);
        let form = Form::of(sizes, [is_dense, joins], strides, (widest, self.lanes.count()))?;
        let moves = operands.iter().any(|(_, it)| it.access.coefs[last.dim] > 1);
        if !moves && !matches!(form, Form::Interleaved) {
            return None;
        }
        let is_short = super::cost(cg, self.pass) <= MAX_COST;
        is_short.then_some((across, Transposed { form, operands }))
    }

    /// The number of units of the last two loops.
    pub(super) fn transposed_units(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
    ) -> Option<Extent<'c, 'a>> {
        let form = self.transposed.as_ref()?.form;
        let mut sizes = self.last_two().map(|size| cg.extent(size));
        if matches!(form, Form::Interleaved) {
            sizes.reverse();
        }
        let (dim, count) = form.unit(self.lanes.count());
        Some(sizes[dim].groups(e, count))
    }

    /// The sizes of the last two loops.
    fn last_two(&self) -> [i64; 2] {
        [2, 1].map(|back| self.loops[self.loops.len() - back].size)
    }

    /// The last two loops, or some of their units.
    pub(super) fn emit_transposed(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        ivs: &[Value<'c, 'a>],
        transposed: &Transposed,
        units: Option<Units<'c, 'a>>,
    ) -> Result<()> {
        let ([across, last], width) = (self.last_two(), self.lanes.count());
        let (from, to) = match (units, self.transposed_units(cg, e)) {
            (Some(units), _) => (units.from, units.to),
            (None, all) => (e.index(0), all.map_or(e.index(0), |all| all.value(e))),
        };
        let sizes = [across, last].map(|size| e.index(size));
        e.for_each((from, to, 1), &[], |e, unit, _| {
            let at = |e| transpose::within(e, e.scale(unit, width), width, sizes[1]);
            match transposed.form {
                Form::Deinterleaved => self.emit_deinterleaved(cg, e, ivs, transposed, at(e))?,
                Form::Interleaved => self.emit_interleaved(cg, e, ivs, at(e))?,
                Form::Tiles(tiles) => {
                    tiles.each(e, unit, sizes, width, |e, row, column| {
                        self.emit_tile(cg, e, ivs, transposed, (row, column, tiles.height))
                    })?;
                }
            }
            Ok(vec![])
        })
        .map(|_| ())
    }

    fn emit_tile(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        ivs: &[Value<'c, 'a>],
        transposed: &Transposed,
        (row, column, height): (Value<'c, 'a>, Value<'c, 'a>, i64),
    ) -> Result<()> {
        let ([across, last], width) = (self.last_two(), self.lanes.count());
        let (live, columns) = (across.min(height), last.min(width));
        let lanes = Lanes::Vector(height);
        let start = self.transposed_point(ivs, [row, column], None);
        let mut tiles = vec![];
        for (s, operand) in &transposed.operands {
            let memory = self.memory(cg, e, operand.tensor, &operand.access, &start);
            let Some((buffer, at)) = memory else { continue };
            let element = buffer.element;
            let stride =
                self.vector_loop(&cg.kernel.stages[*s]).map_or(0, |dim| operand.access.coefs[dim]);
            let mask = e.tail_mask(live, lanes);
            let load = |column: i64| match column < columns {
                true => e.load_lanes(buffer, e.offset(at, column * stride), lanes, mask),
                false => e.zero(element, lanes),
            };
            let mut vectors: Vec<_> = (0..width).map(load).collect();
            tiles.push((operand, transpose::tile(e, &mut vectors, (lanes, element))));
        }
        let mask = e.tail_mask(columns, self.lanes);
        self.emit_rows(cg, e, ivs, (row, live), (column, mask), &tiles)
    }

    /// So many rows of the columns that start at one, given those of transposed operands.
    fn emit_rows(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        ivs: &[Value<'c, 'a>],
        (first, count): (Value<'c, 'a>, i64),
        (column, mask): (Value<'c, 'a>, Option<Value<'c, 'a>>),
        operands: &[(&Operand, Vec<Value<'c, 'a>>)],
    ) -> Result<()> {
        for index in 0..count {
            let known = |(operand, rows): &(&Operand, Vec<Value<'c, 'a>>)| {
                (operand.tensor, operand.access.clone(), rows[index as usize])
            };
            let point = self.transposed_point(ivs, [e.offset(first, index), column], mask);
            let known = operands.iter().map(known).collect();
            self.emit_point(cg, e, &point, &[], &known)?;
        }
        Ok(())
    }

    fn emit_deinterleaved(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        ivs: &[Value<'c, 'a>],
        transposed: &Transposed,
        column: Value<'c, 'a>,
    ) -> Result<()> {
        let ([across, _], width) = (self.last_two(), self.lanes.count());
        let start = self.transposed_point(ivs, [e.index(0), column], None);
        let mut rows = vec![];
        for (_, operand) in &transposed.operands {
            let memory = self.memory(cg, e, operand.tensor, &operand.access, &start);
            let Some((buffer, at)) = memory else { continue };
            let load =
                |index: i64| e.load_lanes(buffer, e.offset(at, index * width), self.lanes, None);
            let vectors: Vec<_> = (0..across).map(load).collect();
            rows.push((
                operand,
                transpose::deinterleave(e, &vectors, (self.lanes, buffer.element)),
            ));
        }
        self.emit_rows(cg, e, ivs, (e.index(0), across), (column, None), &rows)
    }

    fn emit_interleaved(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        ivs: &[Value<'c, 'a>],
        column: Value<'c, 'a>,
    ) -> Result<()> {
        let ([across, _], width) = (self.last_two(), self.lanes.count());
        let mut rows: Vec<Vec<Stored>> = vec![];
        for index in 0..across {
            let stored = RefCell::new(vec![]);
            let point = self.transposed_point(ivs, [e.index(index), column], None);
            let point = Point { stores: Stores::Kept(&stored), ..point };
            self.emit_point(cg, e, &point, &[], &vec![])?;
            rows.push(stored.into_inner());
        }
        let start = self.transposed_point(ivs, [e.index(0), column], None);
        for number in 0..rows[0].len() {
            let (s, index, _) = rows[0][number];
            let output = &cg.kernel.stages[s].outputs[index];
            let memory = self.memory(cg, e, output.tensor, &output.access, &start);
            let Some((buffer, at)) = memory else { continue };
            let values: Vec<_> = rows.iter().map(|row| row[number].2).collect();
            let vectors = transpose::interleave(e, &values, (self.lanes, buffer.element));
            for (index, value) in vectors.into_iter().enumerate() {
                e.store(value, buffer, e.offset(at, index as i64 * width), self.lanes, None);
            }
        }
        Ok(())
    }

    /// The memory of a tensor, and the place of an element there.
    fn memory(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        tensor: TensorId,
        access: &Access,
        point: &Point<'_, 'c, 'a>,
    ) -> Option<(Buffer<'c, 'a>, Value<'c, 'a>)> {
        let place = &cg.places[tensor];
        place.buffer().map(|buffer| (buffer, self.address(e, access, place, point)))
    }

    fn transposed_point(
        &self,
        ivs: &[Value<'c, 'a>],
        inner: [Value<'c, 'a>; 2],
        mask: Option<Value<'c, 'a>>,
    ) -> Point<'_, 'c, 'a> {
        let is_whole = self.last_two()[1] % self.lanes.count() == 0;
        let stores = if is_whole { Stores::Aligned } else { Stores::Unaligned };
        Point { stores, ..self.point(&[ivs, &inner[..1]].concat(), Some(inner[1]), mask) }
    }
}
