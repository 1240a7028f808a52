//! Attention: two products with a softmax between them, in one pass over the keys, so that the scores stay in registers.
//!
//! A warp computes the results of 16 queries. It reads one block of keys and values after another from shared memory, and
//! carries the maximum of the scores so far, the sum of their exponentials less that maximum, and the products of these
//! with the values. When the maximum grows, sums and products are scaled. Several warps may share queries, with different
//! keys each; their sums are joined at the end. If all threads of a GPU would compute fewer blocks of queries than it has
//! processors, the keys are divided into parts: what each part gives is written to the workspace, and once all are there,
//! threads join them, always in the same order.
//!
//! What follows a softmax in other ways than this, such as scores that are a result, is computed step by step.

mod emit;
mod lines;
mod shape;

use super::{
    super::{
        super::{
            expression::RESULT,
            kernel::{Kernel, Origin, Step, ValueId, Work},
            nest::Nest,
        },
        Device, Strides,
        access::windowed,
        team::{long, product},
    },
    Product, Window, is_of, workers_of,
};
use crate::kernel::emit::Buffer;
use irc_tl::{Binary, Combine, DType, Dim, Scalar, Type, Unary};
use shape::{Shape, Sizes};
use std::collections::BTreeSet;

/// What a step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The scores, and the exponentials of them less a number of the row.
    Scores,
    Weights,
    /// The maximum of a row of scores, the sum of a row of weights, and other numbers of a row.
    Max,
    Sum,
    Row,
    /// The products with the values.
    Result,
}

/// Steps of a kernel that compute attention.
pub(in super::super) struct Attention {
    /// The steps, with loads of windows at their places, and the types of their operands.
    nests: Vec<Nest>,
    types: Vec<Vec<Type>>,
    forms: Vec<Form>,
    /// The step that computes the number of each row which is subtracted from the scores.
    shift: usize,
    /// Whether the weights are the right factor of the last product, and the loop of it for each of the scores.
    is_turned: bool,
    loops: Vec<usize>,
    /// The factors that are copied: queries, keys and values.
    windows: [Option<Window>; 3],
    /// The type of the factors, if they are multiplied on tensor cores.
    half: Option<DType>,
    sizes: Sizes,
    threads: i64,
    shape: Shape,
}

/// Where the steps of a kernel are emitted.
pub(in super::super) struct Place<'k, 'c, 'a> {
    pub(in super::super) kernel: &'k Kernel<'c>,
    pub(in super::super) steps: &'k [Step<'c>],
    pub(in super::super) buffers: &'k [Buffer<'c, 'a>],
    pub(in super::super) strides: &'k Strides,
    /// Memory for what parts give.
    pub(in super::super) partial: Option<Buffer<'c, 'a>>,
}

impl Attention {
    /// The steps from `first` on that compute attention, if these do.
    pub(in super::super) fn find(
        kernel: &Kernel<'_>,
        first: usize,
        strides: &Strides,
        device: &Device,
    ) -> Option<Self> {
        let threads = workers_of(device)?;
        let steps = &kernel.steps[first..];
        let mut reader = Reader::of(kernel, &steps[0])?;
        let (mut nests, mut types, mut forms) = (vec![], vec![], vec![]);
        for step in steps.iter().take(MAX_STEPS) {
            let Work::Nest(nest) = &step.work else { return None };
            let form = if forms.is_empty() { Form::Scores } else { reader.form(step, nest)? };
            let own: Vec<_> =
                step.operands.iter().map(|value| strides.values[*value].as_deref()).collect();
            let of = step.operands.iter().map(|value| &kernel.values[*value].ty);
            let (nest, of) = windowed(nest, of, &own);
            nests.push(nest);
            types.push(of);
            forms.push(form);
            if form == Form::Result {
                break;
            }
        }
        let count = forms.len();
        let has = |form| forms.contains(&form);
        let is_whole = [Form::Max, Form::Sum, Form::Result].into_iter().all(has);
        let shift = reader.shift.filter(|_| is_whole)?;
        let makes = |step: &Step<'_>| kernel.values[step.results[0]].origin == shift;
        let shift = steps[..count].iter().position(makes)?;
        reader.is_private(first, count).then_some(())?;

        let mut found = Self {
            nests,
            types,
            forms,
            shift,
            is_turned: reader.is_turned,
            loops: reader.loops,
            windows: [None, None, None],
            half: None,
            sizes: Sizes::default(),
            threads,
            shape: Shape::default(),
        };
        let (scores, values) = found.products()?;
        let [first, last] = [&found.nests[0].compute, &found.nests[count - 1].compute];
        let half = scores.half.filter(|half| {
            is_of(values.factors[1], *half, &found.types[count - 1].iter().collect::<Vec<_>>())
        });
        let key = first.dims.iter().rposition(|dim| !dim.is(1));
        let mut is_masked = false;
        let mut is_skipped = false;
        if let Some(epilogue) = &found.nests[0].epilogue {
            is_skipped = keeps_infinity(epilogue);
            epilogue.walk(&mut |part| is_masked |= key.map(Scalar::Loop).as_ref() == Some(part));
        }
        let sizes = Sizes {
            outer: scores.count(first, 0),
            rows: scores.count(first, 1),
            columns: values.count(last, 2),
            keys: scores.count(first, 2),
            depth: first.reduction.iter().map(|reduction| product(&reduction.dims)).product(),
            bytes: if half.is_some() { 2 } else { 4 },
            is_masked,
            is_skipped: is_skipped && is_masked,
        };
        let windows = [(0, &scores, 0, sizes.depth), (0, &scores, 1, sizes.depth)];
        let [queries, keys, values] =
            [windows[0], windows[1], (count - 1, &values, 1, sizes.columns)].map(
                |(step, product, side, along)| {
                    let types: Vec<&Type> = found.types[step].iter().collect();
                    let of = Window::any(product, side, &found.nests[step].compute, &types)?;
                    let is_stored =
                        is_of(product.factors[side], half.unwrap_or(DType::F32), &types);
                    let chunk = 16 / sizes.bytes;
                    let (next, line) =
                        if step == 0 { (of.summand, of.line) } else { (of.line, of.summand) };
                    let fits = |distance: i64| distance >= 0 && distance % chunk == 0;
                    let fit = next == 1 && [along, line, of.start].into_iter().all(fits);
                    let all = of.outer.iter().all(|(_, distance)| fits(*distance));
                    (is_stored && fit && all).then_some(of)
                },
            );
        let is_large = sizes.keys >= MIN_KEYS && sizes.depth >= MIN_KEYS / 2 && sizes.columns > 1;
        let shape = Shape::of(&sizes, threads, device).filter(|_| is_large)?;
        found.windows = [queries, keys, values];
        Some(Self { half, sizes, shape, ..found })
    }

    /// The number of steps.
    pub(in super::super) fn count(&self) -> usize {
        self.forms.len()
    }

    /// Bytes of the workspace for what parts of the keys give.
    pub(in super::super) fn partial_bytes(&self) -> Option<i64> {
        let Sizes { outer, rows, columns, .. } = self.sizes;
        let bytes = self.shape.parts * outer * rows * (columns + ROW_NUMBERS) * 4;
        (self.shape.parts > 1).then_some(bytes)
    }

    /// The products of queries and keys, and of weights and values, whose rows have the same numbers.
    fn products(&self) -> Option<(Product<'_>, Product<'_>)> {
        let (nest, types) = (&self.nests[0], self.types[0].iter().collect::<Vec<_>>());
        let mut scores = Product::any(nest, &types)?;
        let (last, types) = (self.nests.last()?, self.types.last()?.iter().collect::<Vec<_>>());
        let Scalar::Binary(Binary::Mul, left, right) = &last.compute.body else { return None };
        let factors = if self.is_turned { [&**right, &**left] } else { [&**left, &**right] };
        let values = Product::between(&last.compute, factors, &types);
        // The loop of the second product for each of the first.
        let dims = &nest.compute.dims;
        let loops = (0..dims.len()).filter(|it| !dims[*it].is(1));
        let of: Vec<(usize, usize)> = loops.zip(self.loops.iter().copied()).collect();
        let back = |group: &[usize]| -> Option<Vec<usize>> {
            let found = |it: &usize| of.iter().find(|(_, own)| own == it).map(|(first, _)| *first);
            group.iter().map(found).collect()
        };
        let groups = [back(&values.groups[0])?, back(&values.groups[1])?];
        let same = |own: &[usize], other: &[usize]| {
            own.iter().collect::<BTreeSet<_>>() == other.iter().collect::<BTreeSet<_>>()
        };
        let key = of.last()?.0;
        let fits = same(&groups[0], &scores.groups[0])
            && same(&groups[1], &scores.groups[1])
            && scores.groups[2] == [key];
        let [outer, rows] = groups;
        scores.groups = [outer, rows, vec![key]];
        fits.then_some((scores, values))
    }
}

/// Whether an expression of a finite sum is minus infinity if that of zero is: numbers are added to the sum, or replace it,
/// or it is scaled.
fn keeps_infinity(scalar: &Scalar) -> bool {
    let is_free = |part: &Scalar| {
        let mut is_free = true;
        part.walk(&mut |part| is_free &= !matches!(part, Scalar::Load(RESULT, _)));
        is_free
    };
    let is_constant = |part: &Scalar| {
        let mut is_constant = true;
        part.walk(&mut |part| {
            is_constant &= matches!(part, Scalar::Float(..) | Scalar::Cast(..));
        });
        is_constant
    };
    let fits = |part: &Scalar| is_free(part) || keeps_infinity(part);
    match scalar {
        Scalar::Load(RESULT, _) => true,
        Scalar::Cast(DType::F32, _, x) => keeps_infinity(x),
        Scalar::Binary(Binary::Add | Binary::Sub, x, y) => {
            is_free(x) && keeps_infinity(y) || keeps_infinity(x) && is_free(y)
        }
        Scalar::Binary(Binary::Mul, x, y) => {
            is_constant(x) && keeps_infinity(y) || keeps_infinity(x) && is_constant(y)
        }
        Scalar::Binary(Binary::Div, x, y) => keeps_infinity(x) && is_constant(y),
        Scalar::Select(parts) => is_free(&parts[0]) && fits(&parts[1]) && fits(&parts[2]),
        _ => false,
    }
}

/// Reads what steps compute of the scores.
struct Reader<'k, 'c> {
    kernel: &'k Kernel<'c>,
    scores: Origin,
    /// The extents of the scores of more than one element: rows, and keys.
    dims: Vec<Dim>,
    weights: Vec<Origin>,
    rows: Vec<Origin>,
    shift: Option<Origin>,
    is_turned: bool,
    loops: Vec<usize>,
}

impl<'k, 'c> Reader<'k, 'c> {
    /// That of scores which a step computes.
    fn of(kernel: &'k Kernel<'c>, step: &Step<'c>) -> Option<Self> {
        let Work::Nest(nest) = &step.work else { return None };
        let types: Vec<&Type> =
            step.operands.iter().map(|value| &kernel.values[*value].ty).collect();
        Product::any(nest, &types)?;
        let scores = &kernel.values[step.results[0]];
        let is_single = scores.ty.dtype == DType::F32;
        let dims = long(&nest.compute.dims).cloned().collect();
        let found = Self {
            kernel,
            scores: scores.origin,
            dims,
            weights: vec![],
            rows: vec![],
            shift: None,
            is_turned: false,
            loops: vec![],
        };
        is_single.then_some(found)
    }

    /// What a step after the scores computes, if it is a part of attention.
    fn form(&mut self, step: &Step<'c>, nest: &Nest) -> Option<Form> {
        let made = &self.kernel.values[step.results[0]];
        let dims = long(&nest.compute.dims);
        let reduced: Vec<&Dim> =
            nest.compute.reduction.iter().flat_map(|it| long(&it.dims)).collect();
        let own = self.dims.clone();
        let (key, rows) = own.split_last()?;
        let all = nest.compute.dims.iter();
        let all = all.chain(nest.compute.reduction.iter().flat_map(|it| &it.dims)).enumerate();
        let loops: Vec<usize> = all.filter(|(_, dim)| !dim.is(1)).map(|(it, _)| it).collect();
        let is_row = long(&nest.compute.dims).eq(rows);
        let body = &nest.compute.body;
        let form = match nest.compute.reduction.as_ref().map(|reduction| reduction.combine) {
            None if dims.eq(&own) && self.is_weights(step, body, &loops) => {
                self.weights.push(made.origin);
                Form::Weights
            }
            None if is_row => Form::Row,
            Some(Combine::Max) if is_row && reduced == [key] => {
                (self.reads(step, body, &loops)? == self.scores).then_some(Form::Max)?
            }
            Some(Combine::Sum) if is_row && reduced == [key] => {
                self.is_weights(step, body, &loops).then_some(Form::Sum)?
            }
            Some(Combine::Sum) if reduced == [key] => {
                self.result(step, nest)?;
                Form::Result
            }
            _ => return None,
        };
        // Nothing else is read of the scores, and numbers of rows are read at the row.
        let rows_of = match form {
            Form::Result => &self.loops[..self.loops.len() - 1],
            _ => &loops[..rows.len()],
        };
        let is_sum = matches!(form, Form::Max | Form::Sum | Form::Result);
        let parts =
            [Some(body).filter(|_| !is_sum && form != Form::Weights), nest.epilogue.as_ref()];
        let mut fits = true;
        for part in parts.into_iter().flatten() {
            part.walk(&mut |load| {
                if let Scalar::Load(operand, _) = load
                    && *operand != RESULT
                {
                    let origin = self.kernel.values[step.operands[*operand]].origin;
                    let is_own = origin == self.scores || self.weights.contains(&origin);
                    let is_row = self.rows.contains(&origin);
                    fits &= !is_own && (!is_row || self.reads(step, load, rows_of) == Some(origin));
                }
            });
        }
        let is_single = form == Form::Result || made.ty.dtype == DType::F32;
        if matches!(form, Form::Max | Form::Sum | Form::Row) {
            self.rows.push(made.origin);
        }
        (fits && is_single).then_some(form)
    }

    /// What a load reads, if at these loops, in dimensions of more than one element: those of rows, or of rows and keys.
    fn reads(&self, step: &Step<'c>, load: &Scalar, loops: &[usize]) -> Option<Origin> {
        let Scalar::Load(operand, at) = load else { return None };
        let value = &self.kernel.values[*step.operands.get(*operand)?];
        let index = value.ty.dims.iter().zip(at).filter(|(dim, _)| !dim.is(1));
        let index = index.map(|(_, index)| index.clone());
        let fits = value.ty.dtype == DType::F32
            && long(&value.ty.dims).eq(&self.dims[..loops.len()])
            && index.eq(loops.iter().map(|it| Scalar::Loop(*it)));
        fits.then_some(value.origin)
    }

    /// Whether an expression is the weight at these loops.
    fn is_weights(&mut self, step: &Step<'c>, scalar: &Scalar, loops: &[usize]) -> bool {
        if loops.len() != self.dims.len() {
            return false;
        }
        if let Some(origin) = self.reads(step, scalar, loops) {
            return self.weights.contains(&origin);
        }
        let Scalar::Unary(Unary::Exp, x) = scalar else { return false };
        let Scalar::Binary(Binary::Sub, score, shift) = &**x else { return false };
        let shift = self.reads(step, shift, &loops[..loops.len() - 1]);
        let fits = self.reads(step, score, loops) == Some(self.scores)
            && shift.is_some_and(|shift| self.rows.contains(&shift))
            && self.shift.is_none_or(|known| Some(known) == shift);
        if fits {
            self.shift = shift;
        }
        fits
    }

    /// Reads the product of the weights.
    fn result(&mut self, step: &Step<'c>, nest: &Nest) -> Option<()> {
        let Scalar::Binary(Binary::Mul, left, right) = &nest.compute.body else { return None };
        for (is_turned, factor) in [(false, left), (true, right)] {
            let at = match &**factor {
                Scalar::Unary(_, x) => match &**x {
                    Scalar::Binary(_, scores, _) => scores,
                    _ => continue,
                },
                _ => factor,
            };
            let Scalar::Load(operand, at) = &**at else { continue };
            let dims = &self.kernel.values[step.operands[*operand]].ty.dims;
            let index = dims.iter().zip(at).filter(|(dim, _)| !dim.is(1));
            let loops: Option<Vec<usize>> = index
                .map(|(_, index)| match index {
                    Scalar::Loop(it) => Some(*it),
                    _ => None,
                })
                .collect();
            let Some(loops) = loops else { continue };
            let is_reduced = loops.last().is_some_and(|last| *last >= nest.compute.dims.len());
            if is_reduced && self.is_weights(step, factor, &loops) {
                (self.is_turned, self.loops) = (is_turned, loops);
                return Some(());
            }
        }
        None
    }

    /// Whether nothing else reads what the steps pass on.
    fn is_private(&self, first: usize, count: usize) -> bool {
        let kernel = self.kernel;
        let origin = |value: &ValueId| kernel.values[*value].origin;
        let own = [&[self.scores], &self.weights[..], &self.rows].concat();
        let others = &kernel.steps[first + count..];
        let mut read = others.iter().flat_map(|step| &step.operands).map(origin);
        let overwrites = |index: usize| kernel.overwrites.get(index) == Some(&true);
        let result = kernel.steps[first + count - 1].results.iter().map(origin);
        let mut outputs = result.filter_map(|origin| match origin {
            Origin::Output(index) => Some(index),
            Origin::Input(_) | Origin::Scratch(_) => None,
        });
        own.iter().all(|origin| matches!(origin, Origin::Scratch(_)))
            && !read.any(|origin| own.contains(&origin))
            && !(kernel.is_in_place && outputs.any(overwrites))
    }
}

/// The most steps of attention.
const MAX_STEPS: usize = 16;

/// The minimum number of keys.
const MIN_KEYS: i64 = 16;

/// Numbers of a row beside its sums: the maximum, and the sum of weights.
const ROW_NUMBERS: i64 = 2;
