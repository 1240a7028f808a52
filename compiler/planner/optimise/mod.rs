//! The optimising planner.
//!
//! 1. [`kernel_form`]: ops are rewritten to forms that ARK's kernels compute correctly.
//! 2. [`dependencies`]: which op depends on which, by regions and edges.
//! 3. [`group`]: ops whose tasks correspond share a task, wherever they are in the list.
//!    [`refine`] then moves ops from the end of one task to the task that uses them.
//! 4. [`schedule`]: independent tasks share a step; a step waits for all before it.
//! 5. [`choose`]: the fastest tiles and warps for each step.
//! 6. [`reuse`]: intermediate buffers share memory, now that their live ranges are known.
//! 7. [`assemble`]: steps become processor groups.
//! 8. [`padding`]: every buffer starts aligned.
//!
//! Every step starts at processor 0, so a barrier orders it after all steps before it. The result is
//! checked by the rules of the plan format.
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

/// Plans a model with the pins of each node.
///
/// # Errors
/// Ops without a kernel, pins that cannot be satisfied, and violations of the rules of the plan
/// format.
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

/// The relative time that a plan may lose for each share of memory that it saves.
const TIME_FOR_MEMORY: f64 = 0.4;

/// Whether a plan saves enough memory for the time it loses.
fn is_better(one: &Estimate, other: &Estimate) -> bool {
    let of = |estimate: &Estimate| estimate.memory.arena.max(1) as f64;
    let saved = 1.0 - of(one) / of(other);
    let lost = one.time / other.time.max(f64::MIN_POSITIVE) - 1.0;
    lost < saved * TIME_FOR_MEMORY
}
