//! The pass `fuse`.
//!
//! Before: functions of `tl` ops. After: every computing op is in a `tl.group`; only the free views
//! `tl.reshape` and `tl.bitcast` stay outside. Groups that exist already are left alone.
use super::{
    SegmentFusion, emit,
    emit::Chosen,
    explain::explain,
    fuse_segment,
    graph::read_function,
    report::FusionReport,
    segment::{Segment, segments},
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
        "group the tensor-level ops of a function into kernels"
    }
    fn anchor(&self) -> &'static str {
        "func.func"
    }
    fn options(&self) -> &'static [PassOption] {
        &[PassOption {
            name: "explain",
            help: "report every group and every edge kept in memory as remarks",
            default: "false",
            kind: OptionKind::Boolean,
        }]
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["tl"]
    }
    fn run(&self, func: OperationRef<'_, '_>, options: &Options) -> PassResult {
        let remark = |op: OperationRef<'_, '_>, text: &str| {
            if options.boolean("explain") {
                emit_remark(&op, text);
            }
        };
        fuse_and_remark(func, fuse_segment, remark).map_err(|error| PassError::at(&func, error))?;
        Ok(())
    }
}

/// Groups the ops of a function into kernels and says why.
///
/// # Errors
/// What keeps the function from being a graph of tensors.
pub fn fuse_function<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<FusionReport, String> {
    fuse_function_with(func, fuse_segment)
}

/// As [`fuse_function`], with segments decided by `decide`: a memory of [`fuse_segment`].
///
/// # Errors
/// What keeps the function from being a graph of tensors.
pub fn fuse_function_with<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    decide: impl Fn(&Segment) -> SegmentFusion,
) -> Result<FusionReport, String> {
    fuse_and_remark(func, decide, |_, _| ())
}

/// As [`fuse_function`], with a sentence for each decision at the op it is about.
fn fuse_and_remark<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    decide: impl Fn(&Segment) -> SegmentFusion,
    remark: impl Fn(OperationRef<'_, '_>, &str),
) -> Result<FusionReport, String> {
    let name = read::string(&func, "sym_name").unwrap_or_default();
    let mut report = FusionReport { function: name, ..FusionReport::default() };
    let Some(function) = read_function(func)? else { return Ok(report) };
    let placed = segments(&function.graph);
    let fusions: Vec<SegmentFusion> = placed.iter().map(|placed| decide(&placed.segment)).collect();
    for (placed, fusion) in placed.iter().zip(&fusions) {
        for (node, text) in explain(&mut report, &function, placed, fusion) {
            remark(function.ops[function.graph.nodes[node].origins[0]], &text);
        }
    }
    let chosen = placed.iter().zip(fusions);
    let chosen = chosen.map(|(placed, fusion)| Chosen { placed, plan: fusion.plan }).collect();
    emit::emit(context_of(&func), &function, chosen)?;
    Ok(report)
}
