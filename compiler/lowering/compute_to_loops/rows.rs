//! Steps that compute each row by itself, in vectors: those of softmax and of normalisations along an axis whose extent is
//! known when they run, and reductions of contiguous elements.
//!
//! Steps are joined in *passes* over a row: a pass has what does not wait for its reductions. One value for each row is a scalar.
//! The elements of a row are computed again in every pass that reads them, or, if that is expensive, stored in the row of the
//! result until this is written. Four vectors are computed in step, the rest of a row in masked vectors.
use super::{
    element,
    expression::{Body, Known, RESULT, Typed, loop_number, to_memory},
    lanewise::{Divisor, Elements, Lanewise},
    nest::{Nest, cycles_of, neutral},
    sizes::Sizes,
};
use crate::kernel::emit::{Buffer, Emit, Lanes};
use crate::lowering::linalg_to_vector::{
    body::extremum,
    split::{self, Extent, Units},
};
use irc_mlir::ops::arith;
use irc_mlir::{Location, Value};
use irc_tl::{
    Binary, Combine, Compute, DType, Dim, Reduce, RowForm, RowSpace, Scalar, Type, Unary,
};
use std::collections::BTreeSet;
use std::convert::Infallible;

/// The vectors that are computed in step.
const VECTORS: i64 = 4;

/// What steps compute of each row.
pub(super) struct Rows<'c> {
    space: RowSpace,
    stages: Vec<Stage<'c>>,
    /// The number of operands from outside, after which the results of stages are numbered.
    operands: usize,
    /// The stage whose elements are in the row of the result until that is written.
    stored: Option<usize>,
}

/// A step, with loops over the rows and then those along a row, whatever extents of 1 its operands have.
struct Stage<'c> {
    form: RowForm,
    compute: Compute,
    /// The reduced value, as a function of [`RESULT`].
    epilogue: Option<Scalar>,
    ty: Type,
    location: Location<'c>,
    /// The first pass that computes it; of a single element, the first one that can read it.
    pass: usize,
    /// The passes that compute its elements or its reduction.
    passes: BTreeSet<usize>,
    /// Whether its last bits depend on the order of a sum, as those of a product with its reciprocal then may.
    is_near: bool,
}

impl<'c> Rows<'c> {
    /// A reduction of rows of single precision as its only stage.
    pub(super) fn of_nest(
        nest: &Nest,
        (operands, result): (&[&Type], &Type),
        location: Location<'c>,
    ) -> Option<Self> {
        nest.compute.reduction.as_ref()?;
        let types: Vec<Type> = operands.iter().copied().chain([result]).cloned().collect();
        let numbers = (0..operands.len()).collect();
        Self::of(&[(nest, numbers, location)], &types, operands.len())
    }

    /// Steps, each with the numbers of its operands: so many are from outside, and the results of steps have those after them.
    /// `types` are those of all; the result of the last step is that of all. `None` if they do not compute rows.
    pub(super) fn of(
        parts: &[(&Nest, Vec<usize>, Location<'c>)],
        types: &[Type],
        operands: usize,
    ) -> Option<Self> {
        let space = parts.iter().find_map(|(nest, ..)| RowSpace::of(&nest.compute))?;
        if space.columns.is_empty() {
            return None;
        }
        let mut rows = Self { space, stages: vec![], operands, stored: None };
        for ((nest, numbers, location), ty) in parts.iter().zip(&types[operands..]) {
            let mut stage = rows.stage(nest, numbers, (types, ty), *location)?;
            stage.pass = rows.pass_of(&stage);
            stage.is_near = match &stage.compute.reduction {
                Some(reduction) => reduction.combine == Combine::Sum,
                None => rows.is_near(&stage.compute.body),
            };
            rows.stages.push(stage);
        }
        rows.stored = rows.find_stored();
        let needed = rows.needed();
        rows.stages.iter_mut().zip(needed).for_each(|(stage, passes)| stage.passes = passes);
        let last = rows.stages.last()?;
        let is_single = last.form != RowForm::Elements || last.ty.dtype == DType::F32;
        is_single.then_some(rows)
    }

    /// A nest whose operands have these numbers, if it computes rows in vectors.
    fn stage(
        &self,
        nest: &Nest,
        numbers: &[usize],
        (types, ty): (&[Type], &Type),
        location: Location<'c>,
    ) -> Option<Stage<'c>> {
        if nest.is_view {
            return None;
        }
        let form = self.space.form(&nest.compute)?;
        let (rows, columns) = self.space.loops(&nest.compute);
        let loops: Vec<usize> = rows.into_iter().chain(columns).collect();
        let own = |scalar: &Scalar| renumbered(scalar, &loops, numbers);
        let RowSpace { rows, columns } = &self.space;
        let dims = match form {
            RowForm::Elements => [&rows[..], columns].concat(),
            RowForm::Reduced | RowForm::Single => rows.clone(),
        };
        let reduction = nest.compute.reduction.as_ref();
        let reduction = reduction.map(|it| Reduce { combine: it.combine, dims: columns.clone() });
        let compute = Compute { dims, reduction, body: own(&nest.compute.body) };
        let form = self.space.vector_form(&compute, types)?;
        let epilogue = nest.epilogue.as_ref().map(own);
        let (ty, passes) = (ty.clone(), BTreeSet::new());
        let mut stage =
            Stage { form, compute, epilogue, ty, location, pass: 0, passes, is_near: false };
        let fits = stage.reads(self.operands).into_iter().all(|(from, part)| {
            let Scalar::Load(operand, at) = part else { return false };
            let pattern = self.space.pattern((&stage.compute, form), &types[operand], &at);
            self.stages.get(from).is_some_and(|from| from.form.pattern() == pattern)
        });
        let same = |part: &Scalar| stage_number(part, self.operands).map(|from| self.load_of(from));
        stage.compute.body = stage.compute.body.replace(&mut { same });
        stage.epilogue = stage.epilogue.map(|epilogue| epilogue.replace(&mut { same }));
        fits.then_some(stage)
    }

    /// The load of the result of a stage, at the row and the column.
    fn load_of(&self, number: usize) -> Scalar {
        let mut next = 0..;
        let at = self.stages[number].ty.dims.iter().map(|dim| match dim.is(1) {
            true => Scalar::index(0),
            false => Scalar::Loop(next.next().unwrap_or_default()),
        });
        Scalar::load(self.operands + number, at.collect::<Vec<_>>())
    }

    /// The first pass that can compute a stage.
    fn pass_of(&self, stage: &Stage<'c>) -> usize {
        let reads = stage.reads(self.operands).into_iter().map(|(from, _)| &self.stages[from]);
        let ready = reads.map(|read| read.pass + usize::from(read.form == RowForm::Reduced));
        ready.max().unwrap_or(0)
    }

    /// The passes over a row.
    fn passes(&self) -> usize {
        let passes = self.stages.iter().filter(|stage| stage.form != RowForm::Single);
        passes.map(|stage| stage.pass + 1).max().unwrap_or(0)
    }

    /// The passes that compute each stage: elements in each that reads them, unless they are stored.
    fn needed(&self) -> Vec<BTreeSet<usize>> {
        let last = self.stages.len() - 1;
        let mut needed: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.stages.len()];
        for (number, stage) in self.stages.iter().enumerate().rev() {
            if stage.form != RowForm::Elements || number == last || self.stored == Some(number) {
                needed[number] = BTreeSet::from([stage.pass]);
            }
            let own = needed[number].clone();
            for (from, _) in stage.reads(self.operands) {
                needed[from].extend(&own);
            }
        }
        needed
    }

    /// The stage whose elements are stored until the last stage computes those of the result: the first expensive one that
    /// several passes read.
    fn find_stored(&self) -> Option<usize> {
        let last = self.stages.len() - 1;
        let passes = self.needed();
        let is_read_again = |number: &usize| {
            let stage = &self.stages[*number];
            stage.form == RowForm::Elements
                && stage.ty.dtype == DType::F32
                && passes[*number].len() > 1
                && stage.compute.body.any(&Scalar::is_expensive)
        };
        let has_row = self.stages[last].form == RowForm::Elements;
        (0..last).find(is_read_again).filter(|_| has_row)
    }

    /// Whether an expression reads other elements in other rows.
    fn has_row(&self, part: &Scalar) -> bool {
        let rows = self.space.rows.len();
        part.any(&|part| matches!(part, Scalar::Loop(loop_) if *loop_ < rows))
    }

    /// Whether an expression reads other elements in other columns.
    fn has_column(&self, part: &Scalar) -> bool {
        let rows = self.space.rows.len();
        part.any(&|part| matches!(part, Scalar::Loop(loop_) if *loop_ >= rows))
    }

    /// The sizes in all stages.
    pub(super) fn sizes(&self, found: &mut Vec<Dim>) {
        found.extend(self.space.rows.iter().chain(&self.space.columns).cloned());
        for stage in &self.stages {
            stage.walk(&mut |part| {
                if let Scalar::Size(dim) = part {
                    found.push(dim.clone());
                }
            });
        }
    }

    /// The cycles that the stages take, estimated as those of a nest.
    pub(super) fn cycles(&self) -> Option<Dim> {
        let points = Dim::product(self.space.rows.iter().chain(&self.space.columns));
        cycles_of(points, self.stages.iter().map(|stage| &stage.compute.body))
    }

    /// Whether an expression is one of values that are near.
    fn is_near(&self, scalar: &Scalar) -> bool {
        let (mut has_sum, mut fits) = (false, true);
        scalar.walk(&mut |part| {
            if matches!(part, Scalar::Load(..)) {
                has_sum = true;
                fits &= self.stage_of(part).is_some_and(|stage| stage.is_near);
            }
        });
        has_sum && fits
    }

    /// The stage whose result an expression loads.
    fn stage_of(&self, part: &Scalar) -> Option<&Stage<'c>> {
        self.stages.get(stage_number(part, self.operands)?)
    }

    /// Whether a stage is such a reduction, and no function of it.
    fn is_reduction(stage: &Stage<'c>, combine: Combine) -> bool {
        let reduction = stage.compute.reduction.as_ref();
        reduction.is_some_and(|it| it.combine == combine) && stage.epilogue.is_none()
    }

    /// The expression of elements, if another one loads them.
    fn computed<'s>(&'s self, mut part: &'s Scalar) -> &'s Scalar {
        while let Some(stage) = self.stage_of(part).filter(|stage| stage.form == RowForm::Elements)
        {
            part = &stage.compute.body;
        }
        part
    }

    /// Whether an expression is the distance of elements to their maximum.
    fn is_below_maximum(&self, scalar: &Scalar) -> bool {
        let Scalar::Binary(Binary::Sub, element, highest) = self.computed(scalar) else {
            return false;
        };
        self.stage_of(highest).is_some_and(|stage| {
            Self::is_reduction(stage, Combine::Max) && stage.compute.body == **element
        })
    }

    /// Whether an expression is the sum of powers of which one is 1.
    fn is_sum_of_softmax(&self, scalar: &Scalar) -> bool {
        self.stage_of(scalar).is_some_and(|stage| {
            let is_power = |part: &Scalar| match part {
                Scalar::Unary(Unary::Exp, exponent) => self.is_below_maximum(exponent),
                _ => false,
            };
            Self::is_reduction(stage, Combine::Sum) && is_power(self.computed(&stage.compute.body))
        })
    }

    /// Emits the loops over rows, or those of a part: of a single row, the first part has all.
    pub(super) fn emit<'a>(
        &self,
        e: Emit<'c, 'a>,
        operands: &[(&Type, Buffer<'c, 'a>)],
        result: Buffer<'c, 'a>,
        sizes: &Sizes<'c, 'a>,
        (part, lanes): (Option<[Value<'c, 'a>; 2]>, i64),
    ) where
        'c: 'a,
    {
        // Results of stages are values, or in the row of the result.
        let made = self.stages.iter().map(|stage| (&stage.ty, result));
        let operands: Vec<_> = operands.iter().copied().chain(made).collect();
        let writer = Writer { rows: self, operands: &operands, result, sizes, lanes };
        let Some([part, parts]) = part else { return writer.outer(e, &mut vec![], None) };
        if self.space.rows.is_empty() {
            let is_first = e.compare(0, part, e.index(0));
            let row = |e| {
                writer.row(e, &[]);
                Ok::<_, Infallible>(vec![])
            };
            let Ok(_) = e.if_else(is_first, &[], row, |_| Ok(vec![]));
            return;
        }
        let count = Extent::Passed(sizes.value(e, &Dim::product(&self.space.rows)));
        writer.outer(e, &mut vec![], Some(Units::of_part(e, count, part, parts)));
    }
}

impl Stage<'_> {
    fn walk(&self, visit: &mut dyn FnMut(&Scalar)) {
        self.compute.body.walk(visit);
        self.epilogue.iter().for_each(|epilogue| epilogue.walk(visit));
    }

    /// The stages that it reads, and the loads of them; those of operands have the numbers before.
    fn reads(&self, operands: usize) -> Vec<(usize, Scalar)> {
        let mut found = vec![];
        self.walk(&mut |part| {
            found.extend(stage_number(part, operands).map(|from| (from, part.clone())));
        });
        found
    }
}

/// The number of the stage whose result an expression loads; those of operands are before.
fn stage_number(part: &Scalar, operands: usize) -> Option<usize> {
    match part {
        Scalar::Load(operand, _) if *operand != RESULT => operand.checked_sub(operands),
        _ => None,
    }
}

/// An expression with the loops in this order, and operands of these numbers; other loops have one iteration.
fn renumbered(scalar: &Scalar, loops: &[usize], numbers: &[usize]) -> Scalar {
    scalar.replace(&mut |part| match part {
        Scalar::Loop(loop_) => {
            let place = loops.iter().position(|known| known == loop_);
            Some(place.map_or_else(|| Scalar::index(0), Scalar::Loop))
        }
        Scalar::Load(RESULT, _) => Some(part.clone()),
        Scalar::Load(operand, at) => {
            let at = at.iter().map(|index| renumbered(index, loops, numbers));
            Some(Scalar::Load(numbers[*operand], at.collect()))
        }
        _ => None,
    })
}

/// Emits the loops.
struct Writer<'w, 'c, 'a> {
    rows: &'w Rows<'c>,
    /// Those from outside, then the results of stages.
    operands: &'w [(&'w Type, Buffer<'c, 'a>)],
    result: Buffer<'c, 'a>,
    sizes: &'w Sizes<'c, 'a>,
    lanes: i64,
}

/// A vector of a row.
#[derive(Clone, Copy)]
struct Vector<'c, 'a> {
    /// The place of the first element of the row.
    row: Value<'c, 'a>,
    column: Value<'c, 'a>,
    lanes: Lanes,
    /// The lanes that exist, if not all do.
    mask: Option<Value<'c, 'a>>,
    pass: usize,
}

impl<'w, 'c: 'a, 'a> Writer<'w, 'c, 'a> {
    /// The remaining loops over rows, then a row.
    fn outer(&self, e: Emit<'c, 'a>, at: &mut Vec<Value<'c, 'a>>, units: Option<Units<'c, 'a>>) {
        let rows = &self.rows.space.rows;
        let Some(dim) = rows.get(at.len()) else { return self.row(e, at) };
        let inner = Dim::product(&rows[at.len() + 1..]);
        let extents = (self.sizes.extent(e, dim), self.sizes.extent(e, &inner));
        let Ok(()) = split::loop_over::<Infallible>(e, extents, units, |e, index, units| {
            at.push(index);
            self.outer(e, at, units);
            at.pop();
            Ok(())
        });
    }

    fn row(&self, e: Emit<'c, 'a>, at: &[Value<'c, 'a>]) {
        let RowSpace { rows, columns } = &self.rows.space;
        let width = self.sizes.value(e, &Dim::product(columns));
        let number = at.iter().zip(rows).fold(e.index(0), |number, (index, dim)| {
            e.add(e.binary(arith::MULI, number, self.sizes.value(e, dim)), *index)
        });
        let row = e.binary(arith::MULI, number, width);
        let mut loops: Vec<_> = at.iter().map(|index| loop_number(e, *index)).collect();
        loops.resize(rows.len() + columns.len(), loop_number(e, e.index(0)));
        let mut body = Body {
            operands: self.operands,
            sizes: self.sizes,
            loops,
            reduced: None,
            known: vec![Known::new()],
        };
        for pass in 0..self.rows.passes() {
            self.singles(e, &mut body, pass);
            self.pass(e, &mut body, pass, (row, width));
        }
        self.singles(e, &mut body, self.rows.passes());
        let last = self.rows.stages.len() - 1;
        if self.rows.stages[last].form != RowForm::Elements
            && let Some((value, dtype)) = body.known[0].get(&self.rows.load_of(last))
        {
            e.store(to_memory(e, *value, *dtype), self.result, number, Lanes::Scalar, None);
        }
    }

    /// Single elements that can be computed before a pass.
    fn singles(&self, e: Emit<'c, 'a>, body: &mut Body<'_, 'c, 'a>, pass: usize) {
        for (number, stage) in self.rows.stages.iter().enumerate() {
            if stage.form == RowForm::Single && stage.pass == pass {
                let value = body.emit(e.at(stage.location), &stage.compute.body);
                body.known[0].insert(self.rows.load_of(number), value);
            }
        }
    }

    /// The stages whose elements or reductions a pass computes.
    fn of_pass(&self, pass: usize) -> impl Iterator<Item = (usize, &'w Stage<'c>)> + use<'w, 'c> {
        let stages = self.rows.stages.iter().enumerate();
        stages
            .filter(move |(_, stage)| stage.form != RowForm::Single && stage.passes.contains(&pass))
    }

    /// The reductions of a pass.
    fn reductions(&self, pass: usize) -> impl Iterator<Item = (usize, Combine)> + use<'w, 'c> {
        self.of_pass(pass).filter_map(|(number, stage)| {
            stage.compute.reduction.as_ref().map(|reduction| (number, reduction.combine))
        })
    }

    /// A pass over the row at a place.
    fn pass(
        &self,
        e: Emit<'c, 'a>,
        body: &mut Body<'_, 'c, 'a>,
        pass: usize,
        (row, width): (Value<'c, 'a>, Value<'c, 'a>),
    ) {
        let narrow = Lanes::Vector(self.lanes);
        let wide = Lanes::Vector(self.lanes * VECTORS);
        let starts: Vec<_> =
            self.reductions(pass).map(|(_, combine)| self.start(e, combine)).collect();
        let totals: Vec<_> = starts.iter().map(|start| e.splat(*start, wide)).collect();
        let step = wide.count();
        let whole = e.binary(arith::SUBI, width, e.binary(arith::REMSI, width, e.index(step)));
        let bounds = (e.index(0), whole, step);
        let Ok(mut totals) = e.for_each::<Infallible>(bounds, &totals, |e, column, totals| {
            let vector = Vector { row, column, lanes: wide, mask: None, pass };
            Ok(self.vector(e, body, &vector, (&starts, totals)))
        });
        totals = self.narrowed(e, pass, &totals);
        let bounds = (whole, width, narrow.count());
        let Ok(totals) = e.for_each::<Infallible>(bounds, &totals, |e, column, totals| {
            let mask = e.first_lanes(e.binary(arith::SUBI, width, column), narrow);
            let vector = Vector { row, column, lanes: narrow, mask, pass };
            Ok(self.vector(e, body, &vector, (&starts, totals)))
        });
        for ((number, combine), total) in self.reductions(pass).zip(totals) {
            self.finish(e, body, number, (combine, total));
        }
    }

    fn start(&self, e: Emit<'c, 'a>, combine: Combine) -> Value<'c, 'a> {
        neutral(e, combine, DType::F32, element(e.context, DType::F32))
    }

    /// The next totals of the reductions of a pass, and the elements that it stores.
    fn vector(
        &self,
        e: Emit<'c, 'a>,
        body: &mut Body<'_, 'c, 'a>,
        vector: &Vector<'c, 'a>,
        (starts, totals): (&[Value<'c, 'a>], &[Value<'c, 'a>]),
    ) -> Vec<Value<'c, 'a>> {
        let Vector { lanes, mask, .. } = *vector;
        body.known.push(Known::new());
        let elements = RowElements { writer: self, vector };
        let mut values = Lanewise { body, elements, lanes, known: Known::new() };
        let (mut next, mut old) = (vec![], totals.iter().zip(starts));
        for (number, stage) in self.of_pass(vector.pass) {
            let e = e.at(stage.location);
            let (value, _) = values.emit(e, &stage.compute.body);
            let Some(reduction) = &stage.compute.reduction else {
                values.known.insert(self.rows.load_of(number), (value, DType::F32));
                if number + 1 == self.rows.stages.len() || self.rows.stored == Some(number) {
                    let place = e.add(vector.row, vector.column);
                    e.store(value, self.result, place, lanes, mask);
                }
                continue;
            };
            let Some((total, start)) = old.next() else { continue };
            let value = match mask {
                Some(mask) => {
                    let start = e.splat(*start, lanes);
                    e.op(arith::SELECT, &[mask, value, start], lanes.of(e.f32()))
                }
                None => value,
            };
            next.push(joined(e, reduction.combine, *total, value, lanes));
        }
        body.known.pop();
        next
    }

    /// Totals in wide vectors as those in narrow ones.
    fn narrowed(
        &self,
        e: Emit<'c, 'a>,
        pass: usize,
        totals: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let narrow = Lanes::Vector(self.lanes);
        let part = |total, number: i64| e.slice(total, e.f32(), number * self.lanes, self.lanes);
        let narrowed = self.reductions(pass).zip(totals).filter_map(|((_, combine), total)| {
            let parts = (0..VECTORS).map(|number| part(*total, number));
            parts.reduce(|left, right| joined(e, combine, left, right, narrow))
        });
        narrowed.collect()
    }

    /// Makes the value of a reduction known.
    fn finish(
        &self,
        e: Emit<'c, 'a>,
        body: &mut Body<'_, 'c, 'a>,
        number: usize,
        (combine, total): (Combine, Value<'c, 'a>),
    ) {
        let narrow = Lanes::Vector(self.lanes);
        let halves = |low, high, lanes| Ok::<_, Infallible>(joined(e, combine, low, high, lanes));
        let Ok(total) = e.by_halves(total, e.f32(), narrow, halves);
        let stage = &self.rows.stages[number];
        let mut value: Typed = (total, DType::F32);
        if let Some(epilogue) = &stage.epilogue {
            body.reduced = Some(value);
            body.known.push(Known::new());
            value = body.emit(e.at(stage.location), epilogue);
            body.known.pop();
            body.reduced = None;
        }
        body.known[0].insert(self.rows.load_of(number), value);
    }
}

/// What a vector of a row reads.
struct RowElements<'v, 'w, 'c, 'a> {
    writer: &'v Writer<'w, 'c, 'a>,
    vector: &'v Vector<'c, 'a>,
}

impl<'c: 'a, 'a> Elements<'c, 'a> for RowElements<'_, '_, 'c, 'a> {
    fn varies(&self, part: &Scalar) -> bool {
        matches!(part, Scalar::Load(..)) && self.writer.rows.has_column(part)
    }

    fn load(&self, e: Emit<'c, 'a>, part: &Scalar) -> Typed<'c, 'a> {
        let (Writer { rows, operands, result, .. }, vector) = (self.writer, self.vector);
        let Scalar::Load(operand, _) = part else { unreachable!("only loads vary by themselves") };
        let (ty, buffer) = operands[*operand];
        // Elements of stages are known, except for those that an earlier pass has stored.
        let is_stored = stage_number(part, rows.operands).is_some();
        let buffer = if is_stored { *result } else { buffer };
        let place = match is_stored || rows.has_row(part) {
            true => e.add(vector.row, vector.column),
            false => vector.column,
        };
        (e.load_lanes(buffer, place, vector.lanes, vector.mask), ty.dtype)
    }

    fn divisor(&self, scalar: &Scalar) -> Divisor {
        let rows = self.writer.rows;
        match rows.is_near(scalar) {
            false => Divisor::Exact,
            true if rows.is_sum_of_softmax(scalar) => Divisor::AtLeastOne,
            true => Divisor::Near,
        }
    }

    fn is_nonpositive(&self, scalar: &Scalar) -> bool {
        self.writer.rows.is_below_maximum(scalar)
    }
}

fn joined<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    combine: Combine,
    total: Value<'c, 'a>,
    value: Value<'c, 'a>,
    lanes: Lanes,
) -> Value<'c, 'a> {
    match combine {
        Combine::Sum => e.binary(arith::ADDF, total, value),
        Combine::Product => e.binary(arith::MULF, total, value),
        Combine::Max => extremum(e, true, [total, value], e.f32(), lanes),
        Combine::Min => extremum(e, false, [total, value], e.f32(), lanes),
    }
}
