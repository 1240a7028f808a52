//! Checks that ARK's table of barriers can contain the ranges of a plan.
//!
//! Its code generator looks barriers up by range, in an ordered map whose comparison is "begins
//! before *or* ends before". If one of two ranges begins later and ends earlier, each is
//! less than the other, and the map may lose one: the generated code then refers to a barrier that does
//! not exist.

use irc_diag::{Diagnostic, Sink};

use crate::plan::Barriers;
use crate::plan::{Plan, Range};

/// A range with a barrier, and the processor group that follows it.
type SyncPoint = (Range, usize);

/// Checks that no range with a barrier is strictly inside another.
pub(super) fn check(plan: &Plan, sink: &mut Sink) {
    let mut barriers = Barriers::default();
    let groups = plan.processor_groups.iter().enumerate();
    let mut synced: Vec<SyncPoint> = groups
        .flat_map(|(index, group)| {
            let ranges =
                barriers.before(Range::new(group.processor_range.begin, group.processor_range.end));
            ranges.into_iter().map(move |range| (range, index))
        })
        .collect();
    synced.sort();
    synced.dedup_by_key(|(range, _)| *range);
    // The range with the largest end, of those that begin before the current one.
    let mut widest: Option<SyncPoint> = None;
    let mut begun = 0;
    for (position, &inner) in synced.iter().enumerate() {
        while begun < position && synced[begun].0.begin < inner.0.begin {
            let is_wider = widest.is_none_or(|(range, _)| range.end < synced[begun].0.end);
            widest = if is_wider { Some(synced[begun]) } else { widest };
            begun += 1;
        }
        if let Some(outer) = widest.filter(|(range, _)| inner.0.end < range.end) {
            sink.push(report(outer, inner));
        }
    }
}

fn report((outer, outer_group): SyncPoint, (inner, inner_group): SyncPoint) -> Diagnostic {
    let message = format!(
        "there are barriers over processors [{}, {}) and [{}, {}), the one strictly inside the \
         other: ARK's table of barriers loses one",
        inner.begin, inner.end, outer.begin, outer.end
    );
    let range = |group| format!("$.ProcessorGroups[{group}].ProcessorRange");
    Diagnostic::error("plan-barrier-state", message)
        .path(range(inner_group))
        .related(range(outer_group), "the other barrier is before this group")
        .with_note("the CUDA compiler then rejects the undeclared name of a barrier")
        .help("let the ranges that have barriers begin or end together")
}
