//! The optimising planner.
//!
//! 1. [`kernel_form`]: ops become what ARK's kernels compute rightly.
//! 2. [`dependencies`]: which op waits for which, by regions and edges.
//! 3. [`group`]: ops whose tasks line up share a task, wherever they are in the list.
//!    [`refine`] then moves ops from the end of one task to the task that uses them.
//! 4. [`schedule`]: tasks that wait for none of each other share a step; steps wait for all before.
//! 5. [`choose`]: of each step's tiles and warps, those of the shortest time.
//! 6. [`reuse`]: intermediate buffers share memory, now that it is known when they are used.
//! 7. [`assemble`]: steps become processor groups.
//! 8. [`padding`]: every buffer starts aligned.
//!
//! Every step starts at processor 0, so a barrier orders it after all steps before it. Whatever
//! comes out is checked by the rules of the plan format.
mod assemble;
mod choose;
mod configs;
mod dependencies;
mod group;
mod kernel_form;
mod layout;
mod padding;
mod refine;
mod reuse;
mod schedule;
mod tile;
mod variants;

use crate::{
    NodeDiagnostic, Planned, Target,
    cost::{Estimate, estimate},
    diagnostics,
    rules::Pins,
};
use irc_ark_format::{
    model::{Model, Op},
    plan,
};
use irc_diag::Diagnostic;
use schedule::Step;

/// Plans a model with what is pinned for each node.
///
/// # Errors
/// Ops without a kernel, pins that cannot be obeyed, and what the checks of the plan format prove
/// wrong.
pub(crate) fn plan(
    model: &Model,
    target: &Target,
    pins: &[Pins],
) -> Result<Planned, Vec<NodeDiagnostic>> {
    let real = model.nodes.iter().enumerate().filter(|(_, node)| !node.op.is_virtual);
    let ops: Vec<(usize, &Op)> = real.map(|(index, node)| (index, &node.op)).collect();
    let ops = kernel_form::rewrite(&ops, model);
    let layout = layout::Layout::of(&ops);
    let waits = dependencies::of(model, &ops);
    let setting = variants::Setting::new(target, &ops);
    let (mut grouping, warnings) = group::group(&ops, &waits, pins, &setting)?;
    refine::refine(&mut grouping, &waits);
    let drafts = grouping.finish(warnings);
    let scheduled = |steps: &[Step]| {
        let mut drafts = drafts.drafts.clone();
        choose::choose(&mut drafts, steps, &setting);
        reuse::reuse(&mut drafts, steps, &layout);
        let (mut plan, mut nodes) = assemble::assemble(model, &setting, drafts, steps);
        padding::pad(&mut plan, &mut nodes);
        (plan, nodes)
    };
    let (early, late) = (schedule::steps(&drafts), schedule::late(&drafts, &layout));
    let (mut plan, mut nodes) = scheduled(&early);
    if late != early {
        let other = scheduled(&late);
        if is_better(&estimate(&other.0), &estimate(&plan)) {
            (plan, nodes) = other;
        }
    }
    let mut warnings = drafts.warnings;
    let (errors, found): (Vec<_>, Vec<_>) =
        plan::check(&plan).into_iter().partition(Diagnostic::is_error);
    if !errors.is_empty() {
        return Err(diagnostics(&errors, &nodes));
    }
    warnings.extend(diagnostics(&found, &nodes));
    Ok(Planned { plan, nodes, warnings })
}

/// How much of its time a plan may lose for each share of memory that it saves.
const TIME_FOR_MEMORY: f64 = 0.4;

/// Whether a plan saves more memory than it loses time for.
fn is_better(one: &Estimate, other: &Estimate) -> bool {
    let of = |estimate: &Estimate| estimate.memory.arena.max(1) as f64;
    let saved = 1.0 - of(one) / of(other);
    let lost = one.time / other.time.max(f64::MIN_POSITIVE) - 1.0;
    lost < saved * TIME_FOR_MEMORY
}
