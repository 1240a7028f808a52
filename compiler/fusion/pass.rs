//! The pass `fuse`.
//!
//! Before: functions of `tl` ops. After: simplified by the algebra rules (see [`super::simplify`]), with reshapes of
//! products behind the elementwise ops that follow (see `sink.rs`), and every computing op is in a `tl.group`; only the free views `tl.reshape` and `tl.bitcast` stay outside.
//! Existing groups are not changed. General ops with one use are inlined first (see [`super::inline`]), and maps join the sums of
//! open sizes that they follow (see `epilogue.rs`); elementwise ops join the other maps of open sizes.
//! Every algorithm, and every op with symbolic sizes other than a number of rows (see `open.rs`), is a group of kind
//! `loops`.
use super::{
    SegmentFusion,
    attention::{join_attention, join_open_attention, state_masks},
    emit::{Chosen, emit},
    epilogue::join_epilogues,
    explain::{explain_attention, explain_segment},
    fuse_segment,
    graph::{Function, is_general, is_view, read_open_function},
    inline::{Inlined, inline_computes, inline_elementwise, key, reshapes_to_views},
    loops::{WhySlow, explain_loops},
    open::{is_open, join_rows},
    report::{FusionReport, Simplification, WhyNot},
    row_steps::join_row_steps,
    segment::{GraphSegment, Segment, segments},
    simplify::simplify_function,
    sink::sink_reshapes,
    wrap::wrap,
};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    OperationRef, OptionKind, Options, Pass, PassError, PassOption, PassResult, context_of,
    emit_remark, read,
};

/// The pass `fuse`.
pub struct Fuse;

impl Pass for Fuse {
    fn name(&self) -> &'static str {
        "fuse"
    }
    fn description(&self) -> &'static str {
        "simplify the tensor-level ops of a function and group them into kernels"
    }
    fn anchor(&self) -> &'static str {
        func::FUNC
    }
    fn options(&self) -> &'static [PassOption] {
        &[PassOption {
            name: "explain",
            help: "remark on every rewrite, every group and every edge kept in memory",
            default: "false",
            kind: OptionKind::Boolean,
        }]
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["tl"]
    }
    fn run(&self, func: OperationRef<'_, '_>, options: &Options) -> PassResult {
        let fused =
            if options.boolean("explain") { fuse_with_remarks(func) } else { fuse_function(func) };
        fused.map_err(|error| PassError::at(&func, error))
    }
}

/// Simplifies a function and groups its ops into kernels.
///
/// # Errors
/// If the function cannot be represented as a graph of tensors.
pub fn fuse_function<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<(), String> {
    fuse_function_with(func, fuse_segment)
}

/// As [`fuse_function`], with segments decided by `decide`: a cache of [`fuse_segment`].
///
/// # Errors
/// See [`fuse_function`].
pub fn fuse_function_with<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    decide: impl FnMut(&Segment) -> SegmentFusion,
) -> Result<(), String> {
    fuse(func, decide, |_, _| {}).map(|_| ())
}

/// As [`fuse_function_with`]; returns a report of what was done and why. `why_slow` says why loops of an op are slow, if they
/// are.
///
/// # Errors
/// See [`fuse_function`].
pub fn explain<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    decide: impl FnMut(&Segment) -> SegmentFusion,
    why_slow: WhySlow<'_>,
) -> Result<FusionReport, String> {
    let name = read::string(&func, "sym_name").unwrap_or_default();
    let mut report = FusionReport { function: name, ..FusionReport::default() };
    let inlined = fuse(func, decide, |simplifications, decided| {
        report.simplifications.extend(simplifications);
        for (placed, fusion) in decided.segments() {
            explain_segment(&mut report, decided.function, placed, fusion);
        }
        name_sizes(&mut report, decided.function);
    })?;
    explain_attention(&mut report, func);
    let (loops, apart) = explain_loops(func, &inlined, why_slow);
    let kernels = loops.len() as u64;
    report.before.kernels +=
        kernels + loops.iter().map(|one| one.inlined.len() as u64).sum::<u64>();
    report.after.kernels += kernels;
    report.loops = loops;
    report.unfused.extend(apart);
    Ok(report)
}

fn fuse_with_remarks<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<(), String> {
    fuse(func, fuse_segment, |simplifications, decided| {
        for Simplification { rule, op } in simplifications {
            emit_remark(&func, &format!("simplified by {rule}: {op}"));
        }
        let (mut report, function) = (FusionReport::default(), decided.function);
        for (placed, fusion) in decided.segments() {
            for (node, text) in explain_segment(&mut report, function, placed, fusion) {
                let text = function.extents.named(&text);
                emit_remark(&function.ops[function.graph.nodes[node].origins[0]], &text);
            }
        }
    })
    .map(|_| ())
}

/// Names the numbers of rows in the facts of a report.
fn name_sizes(report: &mut FusionReport, function: &Function<'_, '_>) {
    let steps = report.groups.iter_mut().flat_map(|group| &mut group.steps);
    let facts = steps.flat_map(|step| &mut step.facts);
    let conditions = report.unfused.iter_mut().filter_map(|edge| match &mut edge.why {
        WhyNot::Condition(fact) => Some(fact),
        _ => None,
    });
    facts.chain(conditions).for_each(|fact| *fact = function.extents.named(fact));
}

/// The decisions for a function, before its groups are written.
struct Decided<'d, 'c, 'a> {
    function: &'d Function<'c, 'a>,
    placed: &'d [GraphSegment],
    fusions: &'d [SegmentFusion],
}

impl Decided<'_, '_, '_> {
    fn segments(&self) -> impl Iterator<Item = (&GraphSegment, &SegmentFusion)> {
        self.placed.iter().zip(self.fusions)
    }
}

/// The sequence of steps; `observe` is called with the simplifications and the decisions. Returns the ops that became
/// parts of others.
fn fuse<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    decide: impl FnMut(&Segment) -> SegmentFusion,
    observe: impl FnOnce(Vec<Simplification>, &Decided<'_, 'c, 'a>),
) -> Result<Inlined<'c>, String> {
    reshapes_to_views(func)?;
    state_masks(func)?;
    join_open_attention(func)?;
    let mut inlined = inline_computes(func)?;
    join_epilogues(func, &mut inlined)?;
    inline_elementwise(func, &mut inlined)?;
    join_row_steps(func, &mut inlined)?;
    join_rows(func)?;
    wrap_general(func, &mut inlined)?;
    let simplifications = simplify_function(func)?;
    sink_reshapes(func)?;
    let Some(function) = read_open_function(func)? else { return Ok(inlined) };
    let placed = segments(&function.graph);
    let fusions: Vec<_> = placed.iter().map(|placed| &placed.segment).map(decide).collect();
    observe(simplifications, &Decided { function: &function, placed: &placed, fusions: &fusions });
    write_groups(func, &function, &placed, fusions)?;
    join_attention(func)?;
    Ok(inlined)
}

/// Wraps every op that is a kernel of its own in a group.
fn wrap_general<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    inlined: &mut Inlined<'c>,
) -> Result<(), String> {
    for op in read::body_ops(func) {
        let computes = tl::op_of(op).is_ok_and(|op| !is_view(&op))
            || matches!(tl::algorithm_of(op), Ok(Some(_)));
        if computes && is_general(op) && !is_open(op) {
            let parts = inlined.remove(&key(op));
            let wrapped = key(wrap(&[op])?);
            inlined.extend(parts.map(|parts| (wrapped, parts)));
        }
    }
    Ok(())
}

fn write_groups<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    function: &Function<'c, 'a>,
    placed: &[GraphSegment],
    fusions: Vec<SegmentFusion>,
) -> Result<(), String> {
    let chosen = placed.iter().zip(fusions);
    let chosen = chosen.map(|(placed, fusion)| Chosen { placed, plan: fusion.plan });
    emit(context_of(&func), function, chosen.collect())
}
