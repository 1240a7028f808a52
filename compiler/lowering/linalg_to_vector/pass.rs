//! One traversal of the inner loops of a row, with a vectorized innermost loop.
//!
//! `elements` reads and writes tensors at a point of the loops; `partial` emits the loops of a pass that
//! reduces only some of its inner loops; `transposed` those of tiles that are transposed.

mod elements;
mod partial;
mod transposed;

use super::{
    access::Access,
    body::{self, Argument},
    codegen::{Codegen, Place},
    error::Result,
    kernel::{Operand, Output, Stage, TensorId},
    reduce::{Combiner, follows_sum},
    split::{Extent, Units},
};
use crate::kernel::emit::{self, Emit, Lanes};
use elements::Around;
use irc_mlir::ops::{arith, linalg, tensor};
use irc_mlir::{OperationLike, Type, TypeLike, Value};
use std::cell::RefCell;
use transposed::{Stored, Transposed};

/// Stages that share their inner loops.
#[derive(Debug, Clone)]
pub struct Pass {
    /// Stage numbers, in program order.
    pub stages: Vec<usize>,
    /// The number of loops outside the pass.
    pub outer: usize,
    /// Sizes of the inner loops.
    pub sizes: Vec<i64>,
    /// Whether some inner loops are parallel while others reduce; such a pass has one stage.
    pub partial: bool,
    /// Rows to prefetch during the pass.
    pub prefetch: Vec<Prefetch>,
}

impl Pass {
    /// Elementwise stages after a product, over so many columns in `outer` loops.
    pub fn after_product(stages: &[usize], outer: usize, columns: i64) -> Self {
        let (stages, sizes) = (stages.to_vec(), vec![columns]);
        Self { stages, outer, sizes, partial: false, prefetch: vec![] }
    }
}

/// A row that a later pass, or the first pass of the next row, will access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefetch {
    /// The tensor in memory.
    pub tensor: TensorId,
    /// The access, over loops of the same sizes as those of the pass.
    pub access: Access,
    /// Whether this is the next row instead of the current one.
    pub next: bool,
    /// Whether it will be written.
    pub write: bool,
}

/// An inner loop: adjacent loops of the stages that every access traverses as one.
#[derive(Debug, Clone, Copy)]
struct Loop {
    /// The last of the merged loops, whose coefficient is that of the merged loop.
    dim: usize,
    size: i64,
}

/// Values known before the innermost loop starts: `(tensor, access, value)`.
type Hoisted<'c, 'a> = Vec<(TensorId, Access, Value<'c, 'a>)>;

/// The values in registers at a point: results of the pass, and loaded elements.
type Known<'p, 'c, 'a> = (&'p [(TensorId, Value<'c, 'a>)], &'p Hoisted<'c, 'a>);

/// A point of the loops.
struct Point<'p, 'c, 'a> {
    rows: &'p [Value<'c, 'a>],
    ivs: Vec<Value<'c, 'a>>,
    lanes: Lanes,
    mask: Option<Value<'c, 'a>>,
    stores: Stores<'p, 'c, 'a>,
}

/// What becomes of results that are in memory.
#[derive(Clone, Copy)]
enum Stores<'p, 'c, 'a> {
    /// They are stored, at multiples of the size of a vector if the result's rows start there.
    Aligned,
    /// They are stored.
    Unaligned,
    /// The caller stores them.
    Kept(&'p RefCell<Vec<Stored<'c, 'a>>>),
}

struct Sweep<'p, 'c, 'a> {
    pass: &'p Pass,
    loops: Vec<Loop>,
    rows: &'p [Value<'c, 'a>],
    lanes: Lanes,
    /// Vectors in each iteration of the innermost loop.
    unroll: usize,
    /// Copies of each accumulator, to which vectors are added in turn. Of sums, so many whatever else the pass computes, so
    /// that their order does not depend on what they are fused with.
    copies: usize,
    /// `(stage, output, combiner)` of every accumulator.
    accumulators: Vec<(usize, usize, Option<Combiner<'c, 'a>>)>,
    /// How the last two loops go over tiles that are transposed, if they do.
    transposed: Option<Transposed>,
}

/// Emits a pass at the end of the block of `e`, with `rows` as the outer induction variables; only some of its
/// [`units`] if they are given.
///
/// # Errors
/// At an op of a region without a vector form.
pub fn emit_pass<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    pass: &Pass,
    rows: &[Value<'c, 'a>],
    units: Option<Units<'c, 'a>>,
) -> Result<()> {
    let e = e.at(cg.kernel.stages[pass.stages[0]].op.location());
    let sweep = Sweep::new(cg, pass, rows);
    if pass.partial {
        return sweep.emit_partial(cg, e);
    }
    let starts = sweep.starts(cg, e)?;
    let carried = starts.repeat(sweep.copies);
    let totals = sweep.emit_loops(cg, e, &mut vec![], &carried, units)?;
    sweep.finish(cg, e, &totals)
}

/// The number of units of an elementwise pass: blocks of vectors of the innermost loop, in all iterations of the others.
pub fn units<'c: 'a, 'a>(
    cg: &Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    pass: &Pass,
) -> Option<Extent<'c, 'a>> {
    let sweep = Sweep::new(cg, pass, &[]);
    let divides = sweep.accumulators.is_empty() && !pass.partial && !sweep.loops.is_empty();
    divides.then(|| sweep.units_inside(cg, e, 0))
}

/// Whether a pass over rows is vectorized.
pub fn runs_in_vectors(cg: &Codegen<'_, '_>, pass: &Pass) -> bool {
    Sweep::new(cg, pass, &[]).lanes != Lanes::Scalar
}

/// Stores a vector of a product's result that starts at `column`, if the result is in memory, and emits the elementwise
/// stages of `pass` that follow.
///
/// # Errors
/// At an op of a region without a vector form.
pub fn emit_result<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    pass: &Pass,
    (output, value): (&Output, Value<'c, 'a>),
    rows: &[Value<'c, 'a>],
    column: Value<'c, 'a>,
    mask: Option<Value<'c, 'a>>,
) -> Result<()> {
    if let Some(buffer) = cg.places[output.tensor].buffer() {
        let access = &output.access;
        let index = e.linear(e.index(access.offset), rows, &access.coefs[..rows.len()]);
        e.store(value, buffer, e.add(index, column), cg.full_lanes(), mask);
    }
    if pass.stages.is_empty() {
        return Ok(());
    }
    emit_epilogue(cg, e, pass, rows, column, mask, (output.tensor, value))
}

/// Emits elementwise stages for the vector that starts at `column`, given one of their inputs.
fn emit_epilogue<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    pass: &Pass,
    rows: &[Value<'c, 'a>],
    column: Value<'c, 'a>,
    mask: Option<Value<'c, 'a>>,
    known: (TensorId, Value<'c, 'a>),
) -> Result<()> {
    let sweep = Sweep::new(cg, pass, rows);
    let point = sweep.point(&[], Some(column), mask);
    sweep.emit_stages(cg, e, &point, &[], &vec![], vec![known]).map(|_| ())
}

impl<'p, 'c: 'a, 'a> Sweep<'p, 'c, 'a> {
    fn new(cg: &Codegen<'c, 'a>, pass: &'p Pass, rows: &'p [Value<'c, 'a>]) -> Self {
        let mut accumulators = vec![];
        for s in &pass.stages {
            let stage = &cg.kernel.stages[*s];
            for index in 0..if stage.reduces() { stage.outputs.len() } else { 0 } {
                accumulators.push((*s, index, Combiner::of(stage, index)));
            }
        }
        let loops = merge_loops(cg, pass);
        let (lanes, unroll, copies) = (Lanes::Scalar, 1, 1);
        let transposed = None;
        let mut sweep = Self { pass, loops, rows, lanes, unroll, copies, accumulators, transposed };
        if sweep.vectorises(cg) {
            sweep.lanes = cg.full_lanes();
            sweep.transpose(cg);
            sweep.unroll = unroll_for(cost(cg, pass), sweep.has_wide_vectors());
            let mut combiners = sweep.accumulators.iter().filter_map(|(_, _, by)| by.as_ref());
            let sums = !pass.partial && combiners.any(|combiner| !combiner.idempotent);
            sweep.copies = if sums { MAX_VECTORS } else { sweep.unroll };
        }
        sweep
    }

    fn vectorises(&self, cg: &Codegen<'c, 'a>) -> bool {
        let vector_loop = if self.pass.partial {
            cg.kernel.stages[self.pass.stages[0]].parallel - 1
        } else {
            match self.loops.last() {
                Some(last) => last.dim,
                None => return false,
            }
        };
        let combine = self.pass.partial || self.accumulators.iter().all(|(_, _, c)| c.is_some());
        combine
            && self.pass.stages.iter().all(|s| {
                let stage = &cg.kernel.stages[*s];
                let stored = |tensor: TensorId| cg.places[tensor].buffer().is_some();
                let whole = self.pass.partial || !stage.reduces();
                self.reads_bools_in_vectors(cg, stage, vector_loop)
                    && stage.outputs.iter().all(|output| {
                        !whole || !stored(output.tensor) || output.access.coefs[vector_loop] == 1
                    })
            })
    }

    /// Whether a stage has no `i1`, or only such as are in registers or read from bytes: a vector of `i1` in memory would be
    /// packed bits.
    fn reads_bools_in_vectors(
        &self,
        cg: &Codegen<'c, 'a>,
        stage: &Stage<'c, 'a>,
        vector_loop: usize,
    ) -> bool {
        let is_bool = |tensor: TensorId| {
            let element = cg.kernel.tensors[tensor].element;
            element.is_integer() && element.to_string() == "i1"
        };
        let inputs = stage.inputs.iter().filter(|input| is_bool(input.tensor));
        let mut outputs = stage.outputs.iter().filter(|output| is_bool(output.tensor));
        let stored = |tensor: TensorId| cg.places[tensor].buffer();
        let reads = |input: &Operand| match stored(input.tensor) {
            None => true,
            Some(buffer) => {
                buffer.stored() != buffer.element
                    && (0..2).contains(&input.access.coefs[vector_loop])
            }
        };
        let has_none = inputs.clone().next().is_none() && outputs.clone().next().is_none();
        let is_plain = !self.pass.partial && !stage.reduces();
        let is_wide = cg.target.vector_bytes >= 32;
        has_none
            || is_plain
                && is_wide
                && inputs.into_iter().all(reads)
                && outputs.all(|output| stored(output.tensor).is_none())
    }

    /// The initial values of every accumulator, per lane.
    fn starts(&self, cg: &Codegen<'c, 'a>, e: Emit<'c, 'a>) -> Result<Vec<Value<'c, 'a>>> {
        let start = |(s, index, combiner): &(usize, usize, Option<Combiner<'c, 'a>>)| {
            let output = &cg.kernel.stages[*s].outputs[*index];
            let element = cg.kernel.tensors[output.tensor].element;
            match (self.lanes, combiner) {
                (Lanes::Vector(_), Some(combiner)) if !combiner.idempotent => {
                    Ok(e.constant(combiner.neutral(e, element), element, self.lanes))
                }
                _ => Ok(e.splat(self.initial(cg, e, *s, *index)?, self.lanes)),
            }
        };
        self.accumulators.iter().map(start).collect()
    }

    /// The initial value of a reduction from `outs`, once per row.
    fn initial(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        s: usize,
        index: usize,
    ) -> Result<Value<'c, 'a>> {
        let zero = e.index(0);
        let point = Point {
            rows: self.rows,
            ivs: vec![zero; self.loops.len()],
            lanes: Lanes::Scalar,
            mask: None,
            stores: Stores::Aligned,
        };
        let init = cg.kernel.stages[s].outputs[index].init.clone();
        self.read(cg, e, s, &init, &point, (&[], &vec![]))
    }

    /// The number of units of the loops inside of so many.
    fn units_inside(&self, cg: &Codegen<'c, 'a>, e: Emit<'c, 'a>, loops: usize) -> Extent<'c, 'a> {
        if let Some(inner) = self.transposed_units(cg, e) {
            let outer = self.loops[loops..self.loops.len() - 2].iter();
            let outer = outer.map(|each| cg.extent(each.size));
            return Extent::product(e, &outer.chain([inner]).collect::<Vec<_>>());
        }
        let Some((last, outer)) = self.loops[loops..].split_last() else { return Extent::Known(1) };
        let block = self.lanes.count() * self.unroll as i64;
        let outer = outer.iter().map(|each| cg.extent(each.size));
        let blocks = cg.extent(last.size).groups(e, block);
        Extent::product(e, &outer.chain([blocks]).collect::<Vec<_>>())
    }

    fn emit_loops(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        ivs: &mut Vec<Value<'c, 'a>>,
        carried: &[Value<'c, 'a>],
        units: Option<Units<'c, 'a>>,
    ) -> Result<Vec<Value<'c, 'a>>> {
        if let Some(transposed) = &self.transposed
            && ivs.len() + 2 == self.loops.len()
        {
            return self.emit_transposed(cg, e, ivs, transposed, units).map(|()| vec![]);
        }
        if ivs.len() + 1 >= self.loops.len() {
            return self.emit_vector_loop(cg, e, ivs, carried, units);
        }
        let inner = self.units_inside(cg, e, ivs.len() + 1);
        let (from, to) = match units {
            None => (e.index(0), cg.extent(self.loops[ivs.len()].size).value(e)),
            Some(units) => units.iterations(e, inner),
        };
        e.for_each((from, to, 1), carried, |e, iv, carried| {
            let own = units.map(|units| units.within(e, iv, inner));
            ivs.push(iv);
            let result = self.emit_loops(cg, e, ivs, carried, own);
            ivs.pop();
            result
        })
    }

    fn emit_vector_loop(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        ivs: &[Value<'c, 'a>],
        carried: &[Value<'c, 'a>],
        units: Option<Units<'c, 'a>>,
    ) -> Result<Vec<Value<'c, 'a>>> {
        let Some(last) = self.loops.last() else {
            return self.emit_point(cg, e, &self.point(ivs, None, None), &[], &vec![]);
        };
        let hoisted = self.hoist(cg, e, ivs)?;
        let each = self.accumulators.len();
        let width = self.lanes.count();
        let (step, block) = (width * self.unroll as i64, width * self.copies as i64);
        let blocks = last.size / block * block;
        let whole = match cg.extent(last.size) {
            Extent::Known(_) => e.index(blocks),
            Extent::Passed(rows) => {
                e.binary(arith::SUBI, rows, e.binary(arith::REMUI, rows, e.index(block)))
            }
        };
        let (from, to) = match units {
            None => (e.index(0), whole),
            Some(units) => (e.scale(units.from, block), e.min(e.scale(units.to, block), whole)),
        };
        let mut values = carried.to_vec();
        if let Some(wide) = self.wide().filter(|_| blocks > 0) {
            let hoisted = wide.hoist(cg, e, ivs)?;
            let sums = self.side_by_side(cg, e, &values);
            let sums = e.for_each((from, to, step), &sums, |e, iv, carried| {
                for copy in 0..self.unroll {
                    let point = self.point(ivs, Some(e.offset(iv, copy as i64 * width)), None);
                    self.emit_prefetches(cg, e, &point);
                }
                wide.emit_point(cg, e, &wide.point(ivs, Some(iv), None), carried, &hoisted)
            })?;
            values = self.apart(cg, e, &sums);
        } else if blocks > 0 {
            values = e.for_each((from, to, step), &values, |e, iv, carried| {
                // The next iteration adds to the other copies; after a block, each is in its place.
                let mut next = carried[self.unroll * each..].to_vec();
                for copy in 0..self.unroll {
                    let at = e.offset(iv, copy as i64 * width);
                    let point = self.point(ivs, Some(at), None);
                    self.emit_prefetches(cg, e, &point);
                    let own = &carried[copy * each..(copy + 1) * each];
                    next.extend(self.emit_point(cg, e, &point, own, &hoisted)?);
                }
                Ok(next)
            })?;
        }
        if let Extent::Passed(rows) = cg.extent(last.size) {
            let end = match units {
                None => rows,
                Some(units) => e.min(rows, e.scale(units.to, block)),
            };
            return self.emit_passed_rest(cg, e, ivs, (whole, end, rows), values, &hoisted);
        }
        if blocks == last.size {
            return Ok(values);
        }
        let Some(units) = units else {
            return self.emit_rest(cg, e, ivs, (blocks, last.size), values, &hoisted);
        };
        let all = self.units_inside(cg, e, ivs.len()).value(e);
        let has_last = e.compare(0, units.to, all);
        let rest = |e| self.emit_rest(cg, e, ivs, (blocks, last.size), vec![], &hoisted);
        e.if_else(has_last, &[], rest, |_| Ok(vec![]))
    }

    /// As one whose vectors have the elements of all those of an iteration: each op is then one on several registers, which do not
    /// wait for each other. `None` if there is one vector.
    fn wide(&self) -> Option<Self> {
        (self.unroll > 1 && self.has_wide_vectors()).then(|| Self {
            pass: self.pass,
            loops: self.loops.clone(),
            rows: self.rows,
            lanes: Lanes::Vector(self.lanes.count() * self.unroll as i64),
            unroll: 1,
            copies: 1,
            accumulators: self.accumulators.clone(),
            transposed: None,
        })
    }

    fn has_wide_vectors(&self) -> bool {
        self.transposed.is_none() && !self.pass.partial
    }

    /// The element types of the accumulators.
    fn elements(&self, cg: &Codegen<'c, 'a>) -> Vec<Type<'c>> {
        let output = |s: usize, index: usize| cg.kernel.stages[s].outputs[index].tensor;
        let accumulators = self.accumulators.iter();
        accumulators.map(|(s, index, _)| cg.kernel.tensors[output(*s, *index)].element).collect()
    }

    /// The copies of each accumulator as one wide vector.
    fn side_by_side(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        copies: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let elements = self.elements(cg);
        let joined = |(number, element): (usize, &Type<'c>)| {
            let own = copies.iter().skip(number).step_by(elements.len());
            let (mut parts, mut lanes): (Vec<_>, _) = (own.copied().collect(), self.lanes.count());
            while parts.len() > 1 {
                let pairs = parts.chunks(2);
                parts =
                    pairs.map(|two| e.concatenated([two[0], two[1]], *element, lanes)).collect();
                lanes *= 2;
            }
            parts[0]
        };
        elements.iter().enumerate().map(joined).collect()
    }

    /// The copies of accumulators that wide vectors hold.
    fn apart(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        wide: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let (elements, width) = (self.elements(cg), self.lanes.count());
        let mut copies = vec![];
        for copy in 0..self.copies as i64 {
            let each = wide.iter().zip(&elements);
            copies.extend(each.map(|(all, element)| e.slice(*all, *element, copy * width, width)));
        }
        copies
    }

    /// The elements of an innermost loop over rows after the last whole block of vectors: those up to `end`, of `rows`.
    fn emit_passed_rest(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        ivs: &[Value<'c, 'a>],
        (whole, end, rows): (Value<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>),
        mut values: Vec<Value<'c, 'a>>,
        hoisted: &Hoisted<'c, 'a>,
    ) -> Result<Vec<Value<'c, 'a>>> {
        let each = self.accumulators.len();
        let bounds = (whole, end, self.lanes.count());
        let first = e.for_each(bounds, &values[..each], |e, iv, carried| {
            let mask = e.first_lanes(e.binary(arith::SUBI, rows, iv), self.lanes);
            self.emit_point(cg, e, &self.point(ivs, Some(iv), mask), carried, hoisted)
        })?;
        values.splice(..each, first);
        Ok(values)
    }

    /// The elements of the innermost loop after the last block of vectors.
    fn emit_rest(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        ivs: &[Value<'c, 'a>],
        (blocks, size): (i64, i64),
        mut values: Vec<Value<'c, 'a>>,
        hoisted: &Hoisted<'c, 'a>,
    ) -> Result<Vec<Value<'c, 'a>>> {
        let (each, width) = (self.accumulators.len(), self.lanes.count());
        let whole = size / width * width;
        if whole > blocks {
            let bounds = (e.index(blocks), e.index(whole), width);
            let first = e.for_each(bounds, &values[..each], |e, iv, carried| {
                self.emit_point(cg, e, &self.point(ivs, Some(iv), None), carried, hoisted)
            })?;
            values.splice(..each, first);
        }
        if size > whole {
            let mask = e.tail_mask(size - whole, self.lanes);
            let point = self.point(ivs, Some(e.index(whole)), mask);
            let first = self.emit_point(cg, e, &point, &values[..each], hoisted)?;
            values.splice(..each, first);
        }
        Ok(values)
    }

    fn emit_prefetches(&self, cg: &Codegen<'c, 'a>, e: Emit<'c, 'a>, point: &Point<'_, 'c, 'a>) {
        for wanted in &self.pass.prefetch {
            let Place::Memory(buffer) = cg.places[wanted.tensor] else { continue };
            let mut rows = self.rows.to_vec();
            if let (true, Some(last)) = (wanted.next, rows.last_mut()) {
                let stage = &cg.kernel.stages[self.pass.stages[0]];
                let extent = cg.extent(stage.sizes[self.pass.outer - 1]);
                let end = e.offset(extent.value(e), -1);
                *last = e.min(e.offset(*last, 1), end);
            }
            let ivs = point.ivs.clone();
            let point = Point { rows: &rows, ivs, mask: None, ..*point };
            let at = self.address(e, &wanted.access, &cg.places[wanted.tensor], &point);
            e.prefetch(
                buffer,
                at,
                if wanted.write { emit::Prefetch::Write } else { emit::Prefetch::Read },
            );
        }
    }

    fn point(
        &self,
        ivs: &[Value<'c, 'a>],
        last: Option<Value<'c, 'a>>,
        mask: Option<Value<'c, 'a>>,
    ) -> Point<'p, 'c, 'a> {
        let ivs = ivs.iter().copied().chain(last).collect();
        Point { rows: self.rows, ivs, lanes: self.lanes, mask, stores: Stores::Aligned }
    }

    /// Loads and splats the operands that are invariant in the innermost loop.
    fn hoist(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        ivs: &[Value<'c, 'a>],
    ) -> Result<Hoisted<'c, 'a>> {
        let mut hoisted: Hoisted = vec![];
        let Some(last) = self.loops.last() else { return Ok(hoisted) };
        let point = self.point(ivs, Some(e.index(0)), None);
        for s in &self.pass.stages {
            for input in &cg.kernel.stages[*s].inputs {
                let fixed = input.access.coefs[last.dim] == 0
                    && cg.producer(input.tensor, &self.pass.stages).is_none()
                    && cg.splat_of(input.tensor).is_none();
                let known =
                    hoisted.iter().any(|(t, a, _)| *t == input.tensor && *a == input.access);
                if fixed && !known {
                    let value = self.read(cg, e, *s, input, &point, (&[], &vec![]))?;
                    hoisted.push((input.tensor, input.access.clone(), value));
                }
            }
        }
        Ok(hoisted)
    }

    /// Evaluates every stage at one point; returns the next values of the accumulators.
    fn emit_point(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        point: &Point<'_, 'c, 'a>,
        carried: &[Value<'c, 'a>],
        hoisted: &Hoisted<'c, 'a>,
    ) -> Result<Vec<Value<'c, 'a>>> {
        self.emit_stages(cg, e, point, carried, hoisted, vec![])
    }

    fn emit_stages(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        point: &Point<'_, 'c, 'a>,
        carried: &[Value<'c, 'a>],
        hoisted: &Hoisted<'c, 'a>,
        mut registers: Vec<(TensorId, Value<'c, 'a>)>,
    ) -> Result<Vec<Value<'c, 'a>>> {
        let mut loads: Hoisted = hoisted.clone();
        let mut next = vec![];
        for s in &self.pass.stages {
            let stage = &cg.kernel.stages[*s];
            let e = e.at(stage.op.location());
            let mut arguments = vec![];
            for input in &stage.inputs {
                let value = self.read(cg, e, *s, input, point, (&registers, &loads))?;
                let registered = registers.iter().any(|(known, _)| *known == input.tensor);
                let near = !registered
                    && self.vector_loop(stage).is_some_and(|dim| input.access.coefs[dim] == 0)
                    && follows_sum(&cg.kernel, input.tensor);
                loads.push((input.tensor, input.access.clone(), value));
                arguments.push(Argument { value, near });
            }
            for (index, output) in stage.outputs.iter().enumerate() {
                let value = if stage.reduces() {
                    carried[next.len() + index]
                } else if output.reads_init {
                    self.read(cg, e, *s, &output.init, point, (&registers, &loads))?
                } else {
                    // The region does not read it.
                    e.zero(cg.kernel.tensors[output.tensor].element, point.lanes)
                };
                arguments.push(Argument { value, near: false });
            }
            let around = Around { cg, e, stage, sweep: self, point };
            let values = body::evaluate(e, stage.op, stage.body, &arguments, point.lanes, &around)?;
            let reduces = stage.reduces();
            for (index, value) in values.into_iter().enumerate() {
                let output = &cg.kernel.stages[*s].outputs[index];
                if reduces {
                    next.push(self.keep_live(
                        cg,
                        e,
                        output.tensor,
                        value,
                        carried[next.len()],
                        point,
                    ));
                    continue;
                }
                registers.push((output.tensor, value));
                self.write(cg, e, (*s, index), value, point);
                if self.loops.is_empty() {
                    cg.scalars.push((cg.kernel.stages[*s].outputs[index].tensor, value));
                }
            }
        }
        Ok(next)
    }

    /// The new accumulator in active lanes, the old one in others.
    fn keep_live(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        tensor: TensorId,
        new: Value<'c, 'a>,
        old: Value<'c, 'a>,
        point: &Point<'_, 'c, 'a>,
    ) -> Value<'c, 'a> {
        let Some(mask) = point.mask else { return new };
        let ty = point.lanes.of(cg.kernel.tensors[tensor].element);
        e.op(arith::SELECT, &[mask, new, old], ty)
    }

    /// Combines copies and lanes of the accumulators into one scalar each.
    fn finish(
        &self,
        cg: &mut Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
        totals: &[Value<'c, 'a>],
    ) -> Result<()> {
        let each = self.accumulators.len();
        for (number, (s, index, combiner)) in self.accumulators.iter().enumerate() {
            let output = cg.kernel.stages[*s].outputs[*index].clone();
            let element = cg.kernel.tensors[output.tensor].element;
            let copies: Vec<Value> =
                (0..self.copies).map(|copy| totals[copy * each + number]).collect();
            let scalar = match (self.lanes, combiner) {
                (Lanes::Vector(_), Some(combiner)) => {
                    let total = combiner.fold(e, &copies, element, self.lanes)?;
                    if combiner.idempotent {
                        total
                    } else {
                        let init = self.initial(cg, e, *s, *index)?;
                        combiner.apply(e, init, total, Lanes::Scalar)?
                    }
                }
                _ => copies[0],
            };
            cg.scalars.push((output.tensor, scalar));
            let (lanes, stores) = (Lanes::Scalar, Stores::Aligned);
            let point = Point { rows: self.rows, ivs: vec![], lanes, mask: None, stores };
            self.write(cg, e, (*s, *index), scalar, &point);
        }
        Ok(())
    }
}

/// The inner loops; adjacent ones are merged if every access allows it.
fn merge_loops(cg: &Codegen<'_, '_>, pass: &Pass) -> Vec<Loop> {
    let stages = || pass.stages.iter().map(|s| &cg.kernel.stages[*s]);
    let indexed = stages().any(|stage| {
        let reads_index =
            |op| matches!(super::kernel::name_of(op).as_str(), linalg::INDEX | tensor::EXTRACT);
        !irc_mlir::walk_collect(stage.op, reads_index).is_empty()
    });
    let as_one = |dim: usize, size: i64| {
        !indexed
            && !cg.is_passed(stages().next().map_or(size, |stage| stage.sizes[dim]))
            && !cg.is_passed(size)
            && stages().all(|stage| {
                let outputs =
                    stage.outputs.iter().flat_map(|output| [&output.access, &output.init.access]);
                let mut all = stage.inputs.iter().map(|input| &input.access).chain(outputs);
                (dim >= stage.parallel || dim + 1 < stage.parallel)
                    && all.all(|access| access.coefs[dim] == access.coefs[dim + 1] * size)
            })
    };
    let mut loops: Vec<Loop> = vec![];
    for (inner, size) in pass.sizes.iter().enumerate() {
        let dim = pass.outer + inner;
        match loops.last_mut() {
            Some(last) if as_one(dim - 1, *size) => *last = Loop { dim, size: last.size * size },
            _ => loops.push(Loop { dim, size: *size }),
        }
    }
    loops
}

/// Maximum number of vectors in flight.
const MAX_VECTORS: usize = 4;

/// The number of vectors in flight: several for short bodies, one for long ones. Those of wide vectors are in step, and need not
/// be as short.
fn unroll_for(cost: usize, is_wide: bool) -> usize {
    match cost {
        0..=6 => MAX_VECTORS,
        7..=48 if is_wide => MAX_VECTORS,
        7..=24 => 2,
        _ => 1,
    }
}

/// The number of ops per element; a math function counts as several.
pub fn cost(cg: &Codegen<'_, '_>, pass: &Pass) -> usize {
    pass.stages.iter().map(|s| cg.kernel.ops(*s)).sum()
}
