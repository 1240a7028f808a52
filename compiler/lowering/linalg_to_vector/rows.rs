//! Stages without a matmul: outer loops over rows, and inside them passes over one row.
//!
//! A pass is a set of stages with the same inner loops whose values are passed in registers. Row
//! intermediates with a longer live range than a pass are in a workspace row that is reused for every
//! row, and so stays in cache; values of one element per row stay in SSA.
use super::{
    access::Access,
    codegen::{Codegen, Place},
    error::Result,
    kernel::{Operand, Stage, TensorId},
    pass::{Pass, Prefetch},
    split::{self, Extent, Units},
};
use crate::kernel::emit::Emit;
use irc_mlir::{TypeLike, Value, ops::arith};
use std::cell::RefCell;

/// Stages with common outer loops.
#[derive(Debug, Clone)]
pub struct Nest {
    /// Stage numbers, in program order.
    pub stages: Vec<usize>,
    /// The number of outer loops, which are the leading loops of every stage.
    pub outer: usize,
}

/// Splits the stages into as few nests as possible such that every row intermediate is inside one.
pub fn plan_nests(cg: &Codegen<'_, '_>, stages: &[usize]) -> Vec<Nest> {
    let mut nests = vec![];
    let mut rest = stages;
    while !rest.is_empty() {
        let (count, outer) = (1..=rest.len())
            .rev()
            .find_map(|count| best_outer(cg, &rest[..count], count > 1).map(|outer| (count, outer)))
            .unwrap_or((1, 0));
        nests.push(Nest { stages: rest[..count].to_vec(), outer });
        rest = &rest[count..];
    }
    nests
}

/// The maximum number of outer loops under which these stages can share rows. With `strict`, `None` if
/// intermediates would have to be stored whole although a smaller group could avoid it.
fn best_outer(cg: &Codegen<'_, '_>, stages: &[usize], strict: bool) -> Option<usize> {
    let reducing = || stages.iter().map(|s| &cg.kernel.stages[*s]).filter(|stage| stage.reduces());
    let Some(limit) = reducing().map(rows_of).min() else {
        return fuses_in_registers(cg, stages).then_some(0).or((!strict).then_some(0));
    };
    let found = (1..=limit).rev().find(|outer| rows_agree(cg, stages, *outer));
    found.or((!strict).then_some(0))
}

/// The preferred number of outer loops of a reduction: all its parallel loops if it reduces along
/// contiguous elements, otherwise all but the last, which is then vectorized.
fn rows_of(stage: &Stage<'_, '_>) -> usize {
    let last = stage.sizes.len() - 1;
    let contiguous = stage.inputs.iter().any(|input| input.access.coefs[last] == 1);
    if contiguous || stage.parallel == 0 { stage.parallel } else { stage.parallel - 1 }
}

fn fuses_in_registers(cg: &Codegen<'_, '_>, stages: &[usize]) -> bool {
    let first = &cg.kernel.stages[stages[0]];
    stages.iter().all(|s| {
        let stage = &cg.kernel.stages[*s];
        stage.sizes == first.sizes
            && stage.gathered.iter().all(|tensor| !produced_by(cg, stages, *tensor))
            && stage.inputs.iter().all(|input| match cg.producer(input.tensor, stages) {
                Some((_, output)) => output.access == input.access,
                None => true,
            })
    })
}

fn produced_by(cg: &Codegen<'_, '_>, stages: &[usize], tensor: TensorId) -> bool {
    cg.producer(tensor, stages).is_some()
}

/// Whether, under `outer` common loops, each row reads only its own row of the others' outputs.
fn rows_agree(cg: &Codegen<'_, '_>, stages: &[usize], outer: usize) -> bool {
    let first = &cg.kernel.stages[stages[0]];
    stages.iter().all(|s| {
        let stage = &cg.kernel.stages[*s];
        stage.parallel >= outer
            && first.sizes.get(..outer) == stage.sizes.get(..outer)
            && stage.outputs.iter().all(|output| {
                let inner = output.access.span(outer, &stage.sizes);
                output.access.coefs[..outer].last().is_none_or(|coef| inner < *coef)
            })
            && stage.gathered.iter().all(|tensor| !produced_by(cg, stages, *tensor))
            && stage.inputs.iter().all(|input| match cg.producer(input.tensor, stages) {
                None => true,
                Some((from, output)) => {
                    let read = &input.access;
                    read.offset >= 0
                        && read.coefs[..outer] == output.access.coefs[..outer]
                        && read.coefs[outer..].iter().all(|coef| *coef >= 0)
                        && read.offset + read.span(outer, &stage.sizes)
                            <= output.access.span(outer, &cg.kernel.stages[from].sizes)
                }
            })
    })
}

/// Emits a nest: allocates the row intermediates, then the loops and the passes in them.
///
/// # Errors
/// At an op of a region without a vector form.
pub fn emit_nest<'c: 'a, 'a>(cg: &mut Codegen<'c, 'a>, e: Emit<'c, 'a>, nest: &Nest) -> Result<()> {
    let mut passes = plan_passes(cg, nest);
    compute_again(cg, nest, &mut passes);
    place_intermediates(cg, e, nest, &passes);
    let streamed = streamed(cg, &passes);
    plan_prefetches(cg, nest, &mut passes, &streamed);
    let sizes = &cg.kernel.stages[nest.stages[0]].sizes[..nest.outer];
    let extents: Vec<Extent> = sizes.iter().map(|size| cg.extent(*size)).collect();
    let units = match nest.outer {
        0 => pass_units(cg, e, &passes),
        _ => cg.units(e, Extent::product(e, &extents)),
    };
    let aligned = streamed.iter().filter_map(|tensor| cg.places[*tensor].buffer());
    let aligned = aligned.map(|buffer| e.is_aligned(buffer));
    let aligned = aligned.reduce(|all, one| e.binary(arith::ANDI, all, one));
    let state = RefCell::new(cg);
    let emit = |e: Emit<'c, 'a>, streamed: Vec<TensorId>| {
        let cg = &mut *state.borrow_mut();
        cg.streamed = streamed;
        emit_outer(cg, e, &extents, &mut vec![], &passes, units)?;
        cg.forget_scalars();
        if !std::mem::take(&mut cg.streamed).is_empty() {
            e.fence();
        }
        Ok(vec![])
    };
    match aligned {
        None => emit(e, vec![]),
        Some(aligned) => e.if_else(aligned, &[], |e| emit(e, streamed), |e| emit(e, vec![])),
    }
    .map(|_| ())
}

/// Results from this size in bytes on are stored past the caches, which could not hold them.
const MIN_STREAMED: i64 = 16 << 20;

/// The results of a nest that are stored past the caches: large ones that are written in whole vectors, each at a multiple of
/// its size from the start, and not read again.
fn streamed(cg: &Codegen<'_, '_>, passes: &[Pass]) -> Vec<TensorId> {
    let mut found = vec![];
    let is_written = |tensor: TensorId| {
        let is_read = cg.kernel.stages.iter().any(|stage| {
            stage.inputs.iter().any(|input| input.tensor == tensor)
                || stage.gathered.contains(&tensor)
        });
        !is_read && cg.kernel.results.iter().filter(|result| result.tensor == tensor).count() == 1
    };
    let vectors =
        passes.iter().filter(|pass| !pass.partial && super::pass::runs_in_vectors(cg, pass));
    for stage in vectors.flat_map(|pass| &pass.stages).map(|s| &cg.kernel.stages[*s]) {
        for output in stage.outputs.iter().filter(|_| cg.target.streams && !stage.reduces()) {
            let tensor = &cg.kernel.tensors[output.tensor];
            let bytes = tensor.shape.iter().product::<i64>() * super::byte_width(tensor.element);
            let Some((innermost, outer)) = output.access.coefs.split_last() else { continue };
            let is_aligned = |offset: &i64| offset % cg.target.lanes() == 0;
            let in_lines = *innermost == 1
                && tensor.element.is_f32()
                && outer.iter().chain([&output.access.offset]).all(is_aligned);
            if bytes >= MIN_STREAMED && in_lines && is_written(output.tensor) {
                found.push(output.tensor);
            }
        }
    }
    found
}

fn emit_outer<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    extents: &[Extent<'c, 'a>],
    ivs: &mut Vec<Value<'c, 'a>>,
    passes: &[Pass],
    units: Option<Units<'c, 'a>>,
) -> Result<()> {
    let Some((extent, rest)) = extents.split_first() else {
        // Without outer loops, the units are those of the only pass.
        let units = units.filter(|_| ivs.is_empty());
        return passes.iter().try_for_each(|pass| super::pass::emit_pass(cg, e, pass, ivs, units));
    };
    split::loop_over(e, (*extent, Extent::product(e, rest)), units, |e, iv, units| {
        ivs.push(iv);
        let result = emit_outer(cg, e, rest, ivs, passes, units);
        ivs.pop();
        result
    })
}

/// The units of the only pass of a nest without outer loops, if its iterations are independent.
fn pass_units<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    passes: &[Pass],
) -> Option<Units<'c, 'a>> {
    let [pass] = passes else { return None };
    let count = super::pass::units(cg, e, pass)?;
    cg.units(e, count)
}

/// Groups the stages of a nest into passes, earliest first.
fn plan_passes(cg: &Codegen<'_, '_>, nest: &Nest) -> Vec<Pass> {
    let mut levels: Vec<usize> = vec![];
    let mut passes: Vec<(usize, Pass)> = vec![];
    for s in &nest.stages {
        let stage = &cg.kernel.stages[*s];
        let level = level_of(cg, nest, *s, &levels);
        levels.push(level);
        let sizes = &stage.sizes[nest.outer..];
        let partial = is_partial(stage, nest.outer);
        let joins = |(at, pass): &&mut (usize, Pass)| {
            *at == level && !partial && !pass.partial && pass.sizes == sizes
        };
        match passes.iter_mut().find(joins) {
            Some((_, pass)) => pass.stages.push(*s),
            None => {
                let sizes = sizes.to_vec();
                let pass =
                    Pass { stages: vec![*s], outer: nest.outer, sizes, partial, prefetch: vec![] };
                passes.push((level, pass));
            }
        }
    }
    passes.sort_by_key(|(level, _)| *level);
    passes.into_iter().map(|(_, pass)| pass).collect()
}

/// The maximum number of ops of a stage that later passes compute again.
const MAX_AGAIN: usize = 1;

/// Adds stages of little work to the later passes that read them, so that their rows are not stored: those that read what is
/// outside of the nest, or one element per row.
fn compute_again(cg: &Codegen<'_, '_>, nest: &Nest, passes: &mut [Pass]) {
    for s in &nest.stages {
        let stage = &cg.kernel.stages[*s];
        let [output] = &stage.outputs[..] else { continue };
        let is_kept = |input: &Operand| match cg.producer(input.tensor, &nest.stages) {
            None => true,
            Some((from, _)) => cg.kernel.stages[from].parallel == nest.outer,
        };
        let can_be = !stage.reduces()
            && stage.gathered.is_empty()
            && stage.parallel > nest.outer
            && cg.kernel.ops(*s) <= MAX_AGAIN
            && stage.inputs.iter().all(is_kept)
            && !cg.read_by_other(output.tensor, &nest.stages);
        let reads = |pass: &Pass| {
            let mut readers = pass.stages.iter().map(|reader| &cg.kernel.stages[*reader]);
            readers.any(|reader| reader.inputs.iter().any(|input| input.tensor == output.tensor))
        };
        let meets = |pass: &Pass| {
            let mut readers = pass.stages.iter().map(|reader| &cg.kernel.stages[*reader]);
            !pass.partial
                && pass.sizes == stage.sizes[nest.outer..]
                && readers.all(|reader| {
                    let inputs = reader.inputs.iter();
                    let mut own = inputs.filter(|input| input.tensor == output.tensor);
                    own.all(|input| input.access == output.access)
                        && !reader.gathered.contains(&output.tensor)
                })
        };
        let Some(first) = passes.iter().position(|pass| pass.stages.contains(s)) else { continue };
        if !can_be || !passes[first..].iter().all(|pass| !reads(pass) || meets(pass)) {
            continue;
        }
        for pass in passes[first + 1..].iter_mut().filter(|pass| reads(pass)) {
            let place = pass.stages.partition_point(|other| other < s);
            pass.stages.insert(place, *s);
        }
    }
}

/// Whether some inner loops are parallel while others reduce.
fn is_partial(stage: &Stage<'_, '_>, outer: usize) -> bool {
    stage.reduces() && stage.parallel > outer
}

fn level_of(cg: &Codegen<'_, '_>, nest: &Nest, s: usize, levels: &[usize]) -> usize {
    let stage = &cg.kernel.stages[s];
    let reads = stage.inputs.iter().chain(stage.outputs.iter().map(|output| &output.init));
    let after = reads.filter_map(|input| {
        let (from, output) = cg.producer(input.tensor, &nest.stages)?;
        let position = nest.stages.iter().position(|known| *known == from)?;
        let producer = &cg.kernel.stages[from];
        let meets = !producer.reduces()
            && producer.sizes == stage.sizes
            && output.access == input.access
            && !is_partial(stage, nest.outer);
        Some(levels.get(position)? + usize::from(!meets))
    });
    after.max().unwrap_or(0)
}

/// Lets the pass with the most computation, whose own row is already cached, prefetch for memory-bound
/// passes: the next row of their inputs, this row of their outputs.
fn plan_prefetches(cg: &Codegen<'_, '_>, nest: &Nest, passes: &mut [Pass], streamed: &[TensorId]) {
    if nest.outer == 0 || passes.iter().any(|pass| pass.partial) {
        return;
    }
    let busiest = (1..passes.len()).rev().max_by_key(|at| super::pass::cost(cg, &passes[*at]));
    let Some(busiest) = busiest.filter(|at| !passes[*at].sizes.is_empty()) else { return };
    let mut wanted: Vec<Prefetch> = vec![];
    let mut want = |tensor: TensorId, access: &Access, write: bool| {
        let streams = access.coefs.last() == Some(&1) && access.coefs[nest.outer - 1] != 0;
        let known = wanted.iter().any(|other| other.tensor == tensor);
        if streams
            && !known
            && !streamed.contains(&tensor)
            && matches!(cg.places[tensor], Place::Memory(_))
        {
            wanted.push(Prefetch { tensor, access: access.clone(), next: !write, write });
        }
    };
    let sizes = passes[busiest].sizes.clone();
    for (at, pass) in passes.iter().enumerate().filter(|(_, pass)| pass.sizes == sizes) {
        for stage in pass.stages.iter().map(|s| &cg.kernel.stages[*s]) {
            let outputs = stage.outputs.iter().filter(|_| at > busiest && !stage.reduces());
            outputs.for_each(|output| want(output.tensor, &output.access, true));
            let inputs = stage.inputs.iter();
            let inputs = inputs.filter(|input| cg.producer(input.tensor, &nest.stages).is_none());
            inputs.for_each(|input| want(input.tensor, &input.access, false));
        }
    }
    passes[busiest].prefetch = wanted;
}

/// Assigns a place to every tensor of the nest: SSA scalar, register, workspace row, or memory.
fn place_intermediates<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    nest: &Nest,
    passes: &[Pass],
) {
    for s in &nest.stages {
        let with = passes.iter().filter(|pass| pass.stages.contains(s));
        let with: Vec<usize> = with.flat_map(|pass| pass.stages.iter().copied()).collect();
        for index in 0..cg.kernel.stages[*s].outputs.len() {
            place_output(cg, e, nest, &with, (*s, index));
        }
    }
}

/// Assigns a place to an output of a stage, which is in the passes with some stages.
fn place_output<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    nest: &Nest,
    with: &[usize],
    (s, index): (usize, usize),
) {
    let stage = &cg.kernel.stages[s];
    let output = stage.outputs[index].clone();
    let used_outside = cg.read_by_other(output.tensor, &nest.stages);
    let one_per_row = stage.parallel == nest.outer;
    let in_pass = !stage.reduces() && !cg.read_by_other(output.tensor, with);
    let row = output.access.span(nest.outer, &stage.sizes) + 1;
    if cg.is_result(output.tensor) {
        return;
    }
    let place = if used_outside {
        let size = cg.kernel.tensors[output.tensor].shape.iter().product();
        Place::Memory(cg.shared(e, size, output.tensor))
    } else if one_per_row || in_pass {
        Place::Register
    } else {
        Place::Row(cg.scratch(e, row, output.tensor))
    };
    cg.places[output.tensor] = place;
}
