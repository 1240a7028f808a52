//! Tiles and warps for all tasks of a step together.
//!
//! Tasks that run side by side fill waves together: three products of 64 tiles take two waves of
//! 108 processors, not three. So the tile that is best for one op need not be best for its step.
use super::{
    assemble::{Split, side_by_side},
    group::Draft,
    schedule::Step,
    variants::{Setting, variants},
};
use crate::cost::{self, Share, Work};
use irc_ark_format::{
    model::Op,
    plan::{Config, PlanOp, Range},
};

/// Maximum number of drafts of a step that are chosen for together.
const MAX_DRAFTS: usize = 64;

/// Number of rounds over the kinds of draft of a step.
const ROUNDS: usize = 2;

/// Relative time saved that justifies more tasks.
const WORTH: f64 = 0.995;

/// Drafts with the same variants, which always have the same configs.
struct Class {
    drafts: Vec<usize>,
    /// By variant: the configs of the ops, and the work of a task.
    variants: Vec<(Vec<Config>, Work)>,
    chosen: usize,
}

/// Chooses the variants for every step.
pub fn choose(drafts: &mut [Draft], steps: &[Step], setting: &Setting<'_>) {
    for step in steps.iter().filter(|step| step.len() <= MAX_DRAFTS) {
        let (mut classes, fixed) = classes(drafts, step, setting);
        for _ in 0..ROUNDS {
            for class in 0..classes.len() {
                improve(&mut classes, class, &fixed, setting);
            }
        }
        for class in classes {
            let (configs, _) = &class.variants[class.chosen];
            for index in class.drafts {
                for (op, config) in drafts[index].ops.iter_mut().zip(configs) {
                    op.config.clone_from(config);
                }
            }
        }
    }
}

fn classes(drafts: &[Draft], step: &Step, setting: &Setting<'_>) -> (Vec<Class>, Vec<Work>) {
    let mut classes: Vec<Class> = vec![];
    let mut fixed = vec![];
    for index in step {
        let draft = &drafts[*index];
        let ops: Vec<&Op> = draft.ops.iter().map(|op| &op.op).collect();
        let found = match draft.is_fixed {
            true => vec![],
            false => variants(&ops, setting).unwrap_or_default(),
        };
        if found.is_empty() {
            fixed.push(setting.work(&draft.ops));
            continue;
        }
        let configs =
            |ops: &Vec<PlanOp>| ops.iter().map(|op| op.config.clone()).collect::<Vec<_>>();
        let found: Vec<(Vec<Config>, Work)> =
            found.iter().map(|ops| (configs(ops), setting.work(ops))).collect();
        match classes.iter_mut().find(|class| class.variants == found) {
            Some(class) => class.drafts.push(*index),
            None => {
                let own = configs(&draft.ops);
                let chosen = found.iter().position(|(known, _)| *known == own).unwrap_or(0);
                classes.push(Class { drafts: vec![*index], variants: found, chosen });
            }
        }
    }
    (classes, fixed)
}

fn improve(classes: &mut [Class], class: usize, fixed: &[Work], setting: &Setting<'_>) {
    let mut best = (f64::INFINITY, i64::MAX, 0);
    for variant in 0..classes[class].variants.len() {
        classes[class].chosen = variant;
        let chosen = classes.iter().flat_map(|class| {
            let (_, work) = &class.variants[class.chosen];
            class.drafts.iter().map(move |_| work)
        });
        let works: Vec<&Work> = chosen.chain(fixed).collect();
        let time = step_time(&works, setting);
        let tasks = works.iter().map(|work| work.tasks()).sum();
        let is_quicker = time < best.0 * WORTH;
        if is_quicker || (time * WORTH <= best.0 && tasks < best.1) {
            best = (time.min(best.0), tasks, variant);
        }
    }
    classes[class].chosen = best.2;
}

/// Nanoseconds of a step whose tasks run in turn on all processors, each kind starting where the
/// previous one ended; kinds that cannot run in turn wait for each other.
fn step_time(works: &[&Work], setting: &Setting<'_>) -> f64 {
    let kind = |work: &Work| side_by_side(work.warps(), work.sram());
    let mut kinds: Vec<_> = works.iter().filter_map(|work| kind(work)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let of = |(index, own): (usize, &Split)| {
        let fits = |work: &&&Work| kind(work).map_or(index == 0, |kind| kind == *own);
        let members: Vec<&Work> = works.iter().filter(fits).copied().collect();
        in_turn(&members, setting)
    };
    match kinds.len() {
        0 => in_turn(works, setting),
        count => {
            let barriers = (count - 1) as f64 * setting.barrier();
            kinds.iter().enumerate().map(of).sum::<f64>() + barriers
        }
    }
}

fn in_turn(works: &[&Work], setting: &Setting<'_>) -> f64 {
    let processors = setting.target.processors;
    let mut start = 0;
    let mut shares = vec![];
    for work in works {
        let share = Share {
            work,
            tasks: work.tasks(),
            granularity: 1,
            slots: setting.slots(work.warps(), work.sram()),
            processors: Range::new(0, processors),
            start,
        };
        start = (start + share.granules()) % processors;
        shares.push(share);
    }
    cost::time(&shares, processors, setting.machine)
}
