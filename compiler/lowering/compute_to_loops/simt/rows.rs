//! Steps that compute each row by itself, such as those of softmax and of normalisations: a warp or a block computes one
//! row after another, all steps of it, and its elements stay in registers between them.
//!
//! A row has an element for each iteration of the loops of a reduction. A thread computes the same elements of a row in
//! every step, several neighbours at a time, so that it reads and writes up to 16 bytes at once.
use super::{
    super::{
        Kernel, Origin, Work,
        expression::{Known, RESULT, Typed, from_memory, to_memory},
        kernel::{Step, ValueId},
        nest::{Nest, Writer, combine},
    },
    Emit, Infallible, Lanes, Sizes, Strides,
    access::{aligned, in_windows, windowed},
    arith,
    step::{ACCESS, WARP},
    team::{Team, indices, product, shuffle, when},
};
use crate::kernel::emit::Buffer;
use irc_mlir::Value;
use irc_mlir::ops::vector;
use irc_tl::{DType, Dim, Reduce, RowForm, RowPattern, RowSpace, Scalar};
use std::collections::BTreeMap;

/// The maximum number of elements of a row that a thread computes.
const MAX_ELEMENTS: i64 = 32;

/// The maximum number of parts of expressions that are written for a row.
const MAX_PARTS: i64 = 1 << 13;

/// The number of steps in which a reduction is sought.
const MAX_AHEAD: usize = 16;

/// The number of rows from which on a warp computes a row of up to 1024 elements, and the number of elements up to which
/// it does so for any number of rows.
const MIN_WARP_ROWS: i64 = 256;
const MAX_WARP_COLUMNS: i64 = 256;

/// A load of a step.
struct Loaded {
    load: Scalar,
    pattern: RowPattern,
    value: ValueId,
}

/// Steps of a kernel that compute rows.
pub(super) struct Rows {
    /// The number of steps.
    pub(super) count: usize,
    space: RowSpace,
    forms: Vec<RowForm>,
    /// The results that other steps read, or that are outputs.
    pub(super) stored: Vec<bool>,
    /// The number of threads that compute a row together.
    width: i64,
    /// The number of neighbouring elements of a thread.
    neighbours: i64,
}

impl Rows {
    /// The steps from `first` on that compute rows, if there are several.
    pub(super) fn find(
        kernel: &Kernel<'_>,
        first: usize,
        strides: &Strides,
        threads: i64,
    ) -> Option<Self> {
        let ahead = kernel.steps[first..].iter().take(MAX_AHEAD);
        let reduced = ahead
            .map_while(|step| match &step.work {
                Work::Nest(nest) => Some(nest),
                Work::Rows(_) | Work::Algorithm(_) => None,
            })
            .find(|nest| nest.compute.reduction.is_some())?;
        let mut found = Self {
            count: 0,
            space: RowSpace::of(&reduced.compute)?,
            forms: vec![],
            stored: vec![],
            width: 0,
            neighbours: 1,
        };
        let mut made: BTreeMap<Origin, (RowForm, DType)> = BTreeMap::new();
        for step in &kernel.steps[first..] {
            let Some(form) = found.form(kernel, step, &made) else { break };
            let result = &kernel.values[step.results[0]];
            made.insert(result.origin, (form, result.ty.dtype));
            found.forms.push(form);
        }
        found.count = found.forms.len();
        if found.count < 2 || !found.forms.contains(&RowForm::Reduced) {
            return None;
        }
        let others = kernel.steps[..first].iter().chain(&kernel.steps[first + found.count..]);
        let read_outside: Vec<_> = others
            .flat_map(|step| &step.operands)
            .map(|value| kernel.values[*value].origin)
            .collect();
        let own = &kernel.steps[first..first + found.count];
        found.stored = own
            .iter()
            .map(|step| {
                let origin = kernel.values[step.results[0]].origin;
                matches!(origin, Origin::Output(_)) || read_outside.contains(&origin)
            })
            .collect();
        found.is_safe(kernel, own).then_some(())?;
        found.divide(kernel, own, strides, threads).then_some(found)
    }

    /// What a step computes of a row, if it does; `made` has what the steps before compute.
    fn form(
        &self,
        kernel: &Kernel<'_>,
        step: &Step<'_>,
        made: &BTreeMap<Origin, (RowForm, DType)>,
    ) -> Option<RowForm> {
        let Work::Nest(nest) = &step.work else { return None };
        let form = self.space.form(&nest.compute)?;
        let result = &kernel.values[step.results[0]];
        if result.ty.dtype.is_small() || nest.compute.dims.iter().any(|dim| dim.is(0)) {
            return None;
        }
        let loads = self.loads(kernel, step, form);
        let fits = loads.iter().all(|load| {
            let value = &kernel.values[load.value];
            let Some((form, dtype)) = made.get(&value.origin) else { return true };
            load.pattern == form.pattern() && *dtype == value.ty.dtype
        });
        // Products of matrices are computed in tiles.
        let reads_rows = form != RowForm::Reduced
            || loads.iter().any(|load| load.pattern == RowPattern::Element);
        (fits && reads_rows).then_some(form)
    }

    fn loads(&self, kernel: &Kernel<'_>, step: &Step<'_>, form: RowForm) -> Vec<Loaded> {
        let Work::Nest(nest) = &step.work else { return vec![] };
        let mut found: Vec<Loaded> = vec![];
        let mut visit = |part: &Scalar| {
            let Scalar::Load(operand, at) = part else { return };
            if *operand == RESULT || found.iter().any(|known| known.load == *part) {
                return;
            }
            let value = step.operands[*operand];
            let ty = &kernel.values[value].ty;
            let pattern = self.space.pattern((&nest.compute, form), ty, at);
            found.push(Loaded { load: part.clone(), pattern, value });
        };
        nest.compute.body.walk(&mut visit);
        nest.epilogue.iter().for_each(|epilogue| epilogue.walk(&mut visit));
        found
    }

    /// Whether no result overwrites what another thread reads.
    fn is_safe(&self, kernel: &Kernel<'_>, steps: &[Step<'_>]) -> bool {
        let outputs: Vec<usize> = steps
            .iter()
            .filter_map(|step| match kernel.values[step.results[0]].origin {
                Origin::Output(index) => Some(index),
                Origin::Input(_) | Origin::Scratch(_) => None,
            })
            .collect();
        if !kernel.is_in_place || outputs.is_empty() {
            return true;
        }
        let overwrites = |index: &usize| kernel.overwrites.get(*index) == Some(&true);
        let mut loads =
            steps.iter().zip(&self.forms).flat_map(|(step, form)| self.loads(kernel, step, *form));
        !outputs.iter().any(overwrites)
            && loads.all(|load| {
                load.pattern != RowPattern::Other
                    || !matches!(kernel.values[load.value].origin, Origin::Input(_))
            })
    }

    /// Chooses the threads that compute a row and the neighbours of each; `false` if rows are too long.
    fn divide(
        &mut self,
        kernel: &Kernel<'_>,
        steps: &[Step<'_>],
        strides: &Strides,
        threads: i64,
    ) -> bool {
        let (rows, columns) = (product(&self.space.rows), product(&self.space.columns));
        let is_warp = threads % WARP != 0
            || columns <= MAX_WARP_COLUMNS
            || rows >= MIN_WARP_ROWS && columns <= WARP * MAX_ELEMENTS;
        self.width = if is_warp { WARP } else { threads };
        let mut widest = 1;
        let mut parts = 0;
        for (number, step) in steps.iter().enumerate() {
            let Work::Nest(nest) = &step.work else { return false };
            nest.compute.body.walk(&mut |_| parts += 1);
            nest.epilogue.iter().for_each(|epilogue| epilogue.walk(&mut |_| parts += 1));
            let form = self.forms[number];
            let is_bool = |value: ValueId| kernel.values[value].ty.dtype == DType::Bool;
            if form == RowForm::Reduced && !is_warp && is_bool(step.results[0]) {
                return false;
            }
            if form == RowForm::Elements && self.stored[number] {
                widest = widest.max(bytes(kernel, step.results[0]));
            }
            for load in self.loads(kernel, step, form) {
                if matches!(load.pattern, RowPattern::Element | RowPattern::Column)
                    && strides.values[load.value].is_none()
                {
                    widest = widest.max(bytes(kernel, load.value));
                }
            }
        }
        // Tasks have windows of memory at any multiple of an element.
        self.neighbours = if kernel.is_in_place { 1 } else { (ACCESS / widest).max(1) };
        while self.neighbours > 1
            && (columns % self.neighbours != 0 || columns / self.neighbours < self.width)
        {
            self.neighbours /= 2;
        }
        let elements = self.chunks() * self.neighbours;
        elements <= MAX_ELEMENTS && elements * parts <= MAX_PARTS
    }

    /// The number of times that a thread computes neighbours of a row.
    fn chunks(&self) -> i64 {
        let each = self.width * self.neighbours;
        let columns = product(&self.space.columns);
        columns.div_euclid(each) + i64::from(columns % each != 0)
    }
}

fn bytes(kernel: &Kernel<'_>, value: ValueId) -> i64 {
    kernel.values[value].ty.dtype.size() as i64
}

/// Rows that are being emitted.
pub(super) struct Emission<'k, 'c, 'a> {
    pub(super) rows: &'k Rows,
    pub(super) kernel: &'k Kernel<'c>,
    pub(super) steps: &'k [Step<'c>],
    pub(super) buffers: &'k [Buffer<'c, 'a>],
    pub(super) strides: &'k Strides,
    pub(super) team: &'k Team<'c, 'a>,
}

/// A row: its indices, and its number.
struct Row<'c, 'a> {
    at: Vec<Value<'c, 'a>>,
    number: Value<'c, 'a>,
}

/// Neighbouring elements of a row.
struct Chunk<'c, 'a> {
    /// The position of the first, which is always in the row.
    first: Value<'c, 'a>,
    /// Whether they are no others' as well; `None` if that is certain.
    is_own: Option<Value<'c, 'a>>,
    /// The indices of each.
    at: Vec<Vec<Value<'c, 'a>>>,
}

/// What has been loaded: the origin of the value, its type, the elements, and the number of the chunk.
type LoadKey = (Origin, DType, RowPattern, usize);

/// What a thread knows of a row, by the origin of values.
#[derive(Default)]
struct Registers<'c, 'a> {
    /// The elements that steps have computed, of each chunk one after the other; one element in other forms.
    made: BTreeMap<Origin, Vec<Typed<'c, 'a>>>,
    /// The elements that have been loaded, by the number of the chunk.
    loaded: BTreeMap<LoadKey, Vec<Typed<'c, 'a>>>,
}

impl<'c: 'a, 'a> Emission<'_, 'c, 'a> {
    /// Emits the loop over rows.
    pub(super) fn emit(&self, e: Emit<'c, 'a>, sizes: &Sizes<'c, 'a>) {
        let rows = self.rows;
        let count = e.index(product(&rows.space.rows));
        let by = e.index(rows.width);
        let first = e.binary(arith::DIVUI, self.team.first(e), by);
        let all = e.binary(arith::DIVUI, self.team.all(e), by);
        let lane = e.binary(arith::REMUI, self.team.thread, by);
        let Ok(_) = e.for_each_step::<Infallible>((first, count, all), &[], |e, number, _| {
            let row = Row { at: indices(e, &rows.space.rows, number), number };
            let chunks: Vec<_> =
                (0..rows.chunks()).map(|chunk| self.chunk(e, lane, chunk)).collect();
            let mut registers = Registers::default();
            for (number, step) in self.steps.iter().enumerate() {
                self.step(
                    e.at(step.location),
                    number,
                    (&row, &chunks, lane),
                    &mut registers,
                    sizes,
                );
            }
            Ok(vec![])
        });
        if rows.width > WARP {
            // Shared memory may be used again.
            self.team.wait_in_block(e);
        }
    }

    fn chunk(&self, e: Emit<'c, 'a>, lane: Value<'c, 'a>, chunk: i64) -> Chunk<'c, 'a> {
        let Rows { space: RowSpace { columns, .. }, width, neighbours, .. } = self.rows;
        let count = product(columns);
        let start = e.offset(e.scale(lane, *neighbours), chunk * width * neighbours);
        let ends = (chunk + 1) * width * neighbours;
        let last = e.index(count - neighbours);
        let is_own = (ends > count).then(|| e.compare(ULE, start, last));
        let first = if is_own.is_some() { e.min(start, last) } else { start };
        let each = (0..*neighbours).map(|next| indices(e, columns, e.offset(first, next)));
        Chunk { first, is_own, at: each.collect() }
    }

    fn step(
        &self,
        e: Emit<'c, 'a>,
        number: usize,
        (row, chunks, lane): (&Row<'c, 'a>, &[Chunk<'c, 'a>], Value<'c, 'a>),
        registers: &mut Registers<'c, 'a>,
        sizes: &Sizes<'c, 'a>,
    ) {
        let (step, form) = (&self.steps[number], self.rows.forms[number]);
        let Work::Nest(nest) = &step.work else { return };
        let own: Vec<_> =
            step.operands.iter().map(|value| self.strides.values[*value].as_deref()).collect();
        let types = step.operands.iter().map(|value| &self.kernel.values[*value].ty);
        let (windowed, types) = windowed(nest, types, &own);
        let operands: Vec<_> = types
            .iter()
            .zip(&step.operands)
            .map(|(ty, value)| (ty, self.buffers[*value]))
            .collect();
        let result = step.results[0];
        let mut writer = Writer::new(&windowed, &operands, self.buffers[result], sizes);
        writer.strides = self.strides.values[result].as_deref();
        let loads = self.rows.loads(self.kernel, step, form);
        let at = |columns: Option<&[Value<'c, 'a>]>| self.index(e, nest, row, columns);
        let mut known = |part: Option<(usize, usize)>| {
            let mut known = Known::new();
            for load in &loads {
                let value = self.read(e, load, (row, chunks, part), registers);
                if let Some(value) = value {
                    known.insert(in_windows(&load.load, &own), value);
                }
            }
            known
        };
        let stored = self.rows.stored[number];
        let made = match (form, &nest.compute.reduction) {
            (RowForm::Reduced, Some(reduction)) => {
                let mut total = writer.neutral(e, reduction);
                for (part, chunk) in chunks.iter().enumerate() {
                    for (next, columns) in chunk.at.iter().enumerate() {
                        let known = known(Some((part, next)));
                        let joined = writer.joined(e, reduction, &at(Some(columns)), total, &known);
                        total = match chunk.is_own {
                            None => joined,
                            Some(is_own) => {
                                let ty = writer.elements(e).1.storage;
                                e.op(arith::SELECT, &[is_own, joined, total], ty)
                            }
                        };
                    }
                }
                let total = self.reduced(e, &writer, reduction, total, lane);
                let value = writer.finished_with(e, &at(None), total, &known(None));
                vec![value]
            }
            (RowForm::Elements, _) => {
                let mut values = vec![];
                for (part, chunk) in chunks.iter().enumerate() {
                    for (next, columns) in chunk.at.iter().enumerate() {
                        let known = known(Some((part, next)));
                        values.push(writer.value(e, &at(Some(columns)), &known));
                    }
                }
                values
            }
            _ => vec![writer.value(e, &at(None), &known(None))],
        };
        if stored {
            match form {
                RowForm::Elements => {
                    let each = made.chunks(self.rows.neighbours as usize).zip(chunks);
                    for (values, chunk) in each {
                        self.store(e, &writer, (nest, row, chunk), values);
                    }
                }
                RowForm::Reduced | RowForm::Single => {
                    let is_first = e.compare(EQ, lane, e.index(0));
                    let at = at(None);
                    when(e, is_first, |e| writer.store(e, &at, made[0]));
                }
            }
        }
        registers.made.insert(self.kernel.values[result].origin, made);
    }

    /// The index of each loop of a step.
    fn index(
        &self,
        e: Emit<'c, 'a>,
        nest: &Nest,
        row: &Row<'c, 'a>,
        columns: Option<&[Value<'c, 'a>]>,
    ) -> Vec<Value<'c, 'a>> {
        let reduced = nest.compute.reduction.iter().flat_map(|it| &it.dims);
        let mut long = row.at.iter().chain(columns.unwrap_or_default());
        let reduced = reduced.filter(|_| columns.is_some());
        let index = |dim: &Dim| match dim.is(1) {
            true => e.index(0),
            false => long.next().copied().unwrap_or_else(|| e.index(0)),
        };
        nest.compute.dims.iter().chain(reduced).map(index).collect()
    }

    /// The value of a load, if it has been computed, or can be loaded with its neighbours.
    fn read(
        &self,
        e: Emit<'c, 'a>,
        load: &Loaded,
        (row, chunks, part): (&Row<'c, 'a>, &[Chunk<'c, 'a>], Option<(usize, usize)>),
        registers: &mut Registers<'c, 'a>,
    ) -> Option<Typed<'c, 'a>> {
        let neighbours = self.rows.neighbours;
        let value = &self.kernel.values[load.value];
        let dtype = value.ty.dtype;
        let origin = value.origin;
        let (part, next) = match (load.pattern, part) {
            (RowPattern::Other, _) => return None,
            (RowPattern::Row, _) => (0, 0),
            (RowPattern::Element | RowPattern::Column, part) => part?,
        };
        if let Some(made) = registers.made.get(&origin) {
            return made.get(part * neighbours as usize + next).copied();
        }
        if dtype.is_small() || self.strides.values[load.value].is_some() {
            return None;
        }
        let id = (origin, dtype, load.pattern, part);
        let values = registers.loaded.entry(id).or_insert_with(|| {
            let columns = product(&self.rows.space.columns);
            let place = match load.pattern {
                RowPattern::Row => row.number,
                RowPattern::Column => chunks[part].first,
                _ => e.add(e.scale(row.number, columns), chunks[part].first),
            };
            let buffer = self.buffers[load.value];
            if load.pattern == RowPattern::Row || neighbours == 1 {
                return vec![(from_memory(e, e.load(buffer, place), dtype), dtype)];
            }
            let vector = Lanes::Vector(neighbours).of(buffer.element);
            let spec = e.spec(vector::LOAD).operands(&[buffer.memref, place]).results(&[vector]);
            let all = e.value(spec.attr("alignment", aligned(e, buffer.element, neighbours)));
            let each = |lane| (from_memory(e, e.extract(all, buffer.element, lane), dtype), dtype);
            (0..neighbours).map(each).collect()
        });
        values.get(next).copied()
    }

    /// The values of all threads of a row, combined.
    fn reduced(
        &self,
        e: Emit<'c, 'a>,
        writer: &Writer<'_, 'c, 'a>,
        reduction: &Reduce,
        mut total: Value<'c, 'a>,
        lane: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let wide = writer.elements(e).1;
        for distance in [16, 8, 4, 2, 1] {
            let other = shuffle(e, total, distance);
            total = combine(e, reduction.combine, total, other, wide);
        }
        let warps = self.rows.width / WARP;
        if warps == 1 {
            return total;
        }
        let shared = self.team.shared_view(e, wide.storage, warps);
        let warp = e.binary(arith::DIVUI, lane, e.index(WARP));
        let is_first = e.compare(EQ, e.binary(arith::REMUI, lane, e.index(WARP)), e.index(0));
        self.team.wait_in_block(e);
        when(e, is_first, |e| e.store(total, shared, warp, Lanes::Scalar, None));
        self.team.wait_in_block(e);
        let each = (0..warps).map(|warp| e.load(shared, e.index(warp)));
        let all: Vec<_> = each.collect();
        let total =
            all.into_iter().reduce(|left, right| combine(e, reduction.combine, left, right, wide));
        total.unwrap_or_else(|| writer.neutral(e, reduction))
    }

    /// Stores neighbouring elements.
    fn store(
        &self,
        e: Emit<'c, 'a>,
        writer: &Writer<'_, 'c, 'a>,
        (nest, row, chunk): (&Nest, &Row<'c, 'a>, &Chunk<'c, 'a>),
        values: &[Typed<'c, 'a>],
    ) {
        let neighbours = self.rows.neighbours;
        let store = |e: Emit<'c, 'a>| {
            if neighbours == 1 || writer.strides.is_some() {
                for (value, columns) in values.iter().zip(&chunk.at) {
                    writer.store(e, &self.index(e, nest, row, Some(columns)), *value);
                }
                return;
            }
            let values: Vec<_> =
                values.iter().map(|(value, dtype)| to_memory(e, *value, *dtype)).collect();
            let element = writer.result.element;
            let all = e.op(vector::FROM_ELEMENTS, &values, Lanes::Vector(neighbours).of(element));
            let place = e.add(e.scale(row.number, product(&self.rows.space.columns)), chunk.first);
            let spec = e.spec(vector::STORE).operands(&[all, writer.result.memref, place]);
            spec.attr("alignment", aligned(e, element, neighbours)).append(&e.block);
        };
        match chunk.is_own {
            None => store(e),
            Some(is_own) => when(e, is_own, store),
        }
    }
}

/// `arith.cmpi` predicates.
const EQ: i64 = 0;
const ULE: i64 = 7;
