//! The pass `fuse`.
//!
//! Before: functions of `tl` ops. After: simplified by the algebra rules (see [`super::simplify`]),
//! and every computing op is in a `tl.group`; only the free views `tl.reshape` and `tl.bitcast` stay
//! outside. Groups that exist already are left alone.
use super::{
    SegmentFusion,
    emit::{Chosen, emit},
    explain::explain_segment,
    fuse_segment,
    graph::{Function, read_function},
    report::{FusionReport, Simplification},
    segment::{Placed, Segment, segments},
    simplify::{applied_rules, simplify, simplify_function},
};
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
        "func.func"
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
/// What keeps the function from being a graph of tensors.
pub fn fuse_function<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<(), String> {
    fuse_function_with(func, fuse_segment)
}

/// As [`fuse_function`], with segments decided by `decide`: a memory of [`fuse_segment`].
///
/// # Errors
/// As [`fuse_function`].
pub fn fuse_function_with<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    decide: impl FnMut(&Segment) -> SegmentFusion,
) -> Result<(), String> {
    simplify_function(func)?;
    let Some(function) = read_function(func)? else { return Ok(()) };
    let placed = segments(&function.graph);
    let fusions: Vec<_> = placed.iter().map(|placed| &placed.segment).map(decide).collect();
    write_groups(func, &function, &placed, fusions)
}

/// Says what [`fuse_function`] would do to a function and why, and leaves it as it is.
///
/// # Errors
/// As [`fuse_function`].
pub fn explain<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<FusionReport, String> {
    let name = read::string(&func, "sym_name").unwrap_or_default();
    let mut report = FusionReport { function: name, ..FusionReport::default() };
    let Some(mut function) = read_function(func)? else { return Ok(report) };
    let (graph, applied) = simplify(&function.graph);
    report.simplifications = applied_rules(&function, applied);
    function.graph = graph;
    for placed in segments(&function.graph) {
        let fusion = fuse_segment(&placed.segment);
        explain_segment(&mut report, &function, &placed, &fusion);
    }
    Ok(report)
}

fn fuse_with_remarks<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<(), String> {
    for Simplification { rule, op } in simplify_function(func)? {
        emit_remark(&func, &format!("simplified by {rule}: {op}"));
    }
    let Some(function) = read_function(func)? else { return Ok(()) };
    let placed = segments(&function.graph);
    let fusions: Vec<_> = placed.iter().map(|placed| fuse_segment(&placed.segment)).collect();
    let mut report = FusionReport::default();
    for (placed, fusion) in placed.iter().zip(&fusions) {
        for (node, text) in explain_segment(&mut report, &function, placed, fusion) {
            emit_remark(&function.ops[function.graph.nodes[node].origins[0]], &text);
        }
    }
    write_groups(func, &function, &placed, fusions)
}

fn write_groups<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    function: &Function<'c, 'a>,
    placed: &[Placed],
    fusions: Vec<SegmentFusion>,
) -> Result<(), String> {
    let chosen = placed.iter().zip(fusions);
    let chosen = chosen.map(|(placed, fusion)| Chosen { placed, plan: fusion.plan });
    emit(context_of(&func), function, chosen.collect())
}
