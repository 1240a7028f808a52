//! Groups ops that share a task.
use super::{
    configs,
    variants::{Setting, needs, variants},
};
use crate::{
    NodeDiagnostic,
    cost::{self, Share, Work},
    kernels,
    rules::{Pins, set},
};
use irc_ark_format::{
    model::{Op, OpKind},
    plan::{Architecture, ConfigValue, PlanOp, Range, derived_tasks, fuses},
};
use std::collections::BTreeSet;

/// Ops of one task, and the nodes they come from.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The ops with their configs.
    pub ops: Vec<PlanOp>,
    /// The index of each op's node.
    pub nodes: Vec<usize>,
    /// Whether the configs are pinned.
    pub is_fixed: bool,
    /// The ranges that are pinned for the task.
    pub pins: Pins,
    /// Nanoseconds when it runs alone.
    pub(super) price: f64,
}

impl Draft {
    /// Nodes and ops.
    pub(super) fn members(&self) -> impl Iterator<Item = (usize, &Op)> {
        self.nodes.iter().copied().zip(self.ops.iter().map(|op| &op.op))
    }
}

/// Drafts and the dependencies between them.
pub struct Drafts {
    /// The drafts.
    pub drafts: Vec<Draft>,
    /// Warnings: what is slow, or could not be proven.
    pub warnings: Vec<NodeDiagnostic>,
    before: Vec<Bits>,
}

impl Drafts {
    /// Indices of drafts in topological order.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.drafts.len()).collect();
        // A draft's dependencies are closed under transitivity, so their number is a topological key.
        order.sort_by_key(|index| (self.before[*index].count(), self.drafts[*index].nodes[0]));
        order
    }

    /// All drafts that one depends on, directly or indirectly.
    pub fn waits(&self, index: usize) -> impl Iterator<Item = usize> {
        self.before[index].iter()
    }
}

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn insert(&mut self, index: usize) {
        if self.0.len() <= index / 64 {
            self.0.resize(index / 64 + 1, 0);
        }
        self.0[index / 64] |= 1 << (index % 64);
    }

    fn remove(&mut self, index: usize) {
        self.0.get_mut(index / 64).into_iter().for_each(|word| *word &= !(1 << (index % 64)));
    }

    fn contains(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    fn extend(&mut self, other: &Bits) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        let bits = |(index, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| index * 64 + bit)
        };
        self.0.iter().enumerate().flat_map(bits)
    }
}

/// Groups ops in list order: each joins drafts whose results it uses, if its tasks correspond to
/// theirs, no third draft is between, and it costs no more than a step of its own.
///
/// # Errors
/// All nodes without a kernel on the architecture, or with pins that cannot be satisfied.
pub fn group<'m>(
    ops: &'m [(usize, Op)],
    waits: &[Vec<usize>],
    pins: &[Pins],
    setting: &'m Setting<'m>,
) -> Result<(Grouping<'m>, Vec<NodeDiagnostic>), Vec<NodeDiagnostic>> {
    let mut grouping = Grouping { ops, setting, slots: vec![], before: vec![], home: vec![] };
    let mut errors = vec![];
    let mut warnings = vec![];
    for (position, (node, op)) in ops.iter().enumerate() {
        let added = grouping.add(position, &waits[position], &pins[*node], pins);
        match added {
            Ok(()) => warnings.extend(
                unproven(op, setting).map(|message| NodeDiagnostic { node: Some(*node), message }),
            ),
            Err(message) => {
                errors.push(NodeDiagnostic { node: Some(*node), message });
                // Continue, to report errors of later ops too.
                grouping.home.push(usize::MAX);
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok((grouping, warnings))
}

/// By position of an op, the positions of those that depend on it.
pub(super) fn after(waits: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut users = vec![vec![]; waits.len()];
    for (user, waits) in waits.iter().enumerate() {
        waits.iter().for_each(|other| users[*other].push(user));
    }
    users
}

/// The warning about a matrix product whose kernel is not confirmed on any known device.
fn unproven(op: &Op, setting: &Setting<'_>) -> Option<String> {
    if op.kind != OpKind::Matmul {
        return None;
    }
    match setting.target.architecture {
        family if kernels::is_family(family) => {
            let planned = configs::matmuls(op, setting.target).ok()?;
            let known = kernels::of(family, op.reads[0].dtype);
            let is_known = planned.iter().any(|planned| {
                let tile = planned.config.ints("TileShapeMNK").unwrap_or_default();
                known.iter().any(|kernel| [kernel.m, kernel.n, kernel.k] == tile)
            });
            let message = "no known device has a kernel for a tile that divides this product; the \
                           plan runs on the host only";
            (!is_known).then(|| message.to_owned())
        }
        Architecture::Cuda70 => Some(
            "warps and bytes of the CUDA_70 kernel follow from its declaration; no device has \
             confirmed them"
                .to_owned(),
        ),
        _ => None,
    }
}

pub(super) struct Grouping<'a> {
    ops: &'a [(usize, Op)],
    setting: &'a Setting<'a>,
    /// Drafts; `None` where one was merged into another.
    slots: Vec<Option<Draft>>,
    /// By slot, all slots that it depends on.
    before: Vec<Bits>,
    /// By position of an op, its slot.
    home: Vec<usize>,
}

impl Grouping<'_> {
    fn add(
        &mut self,
        position: usize,
        waits: &[usize],
        own: &Pins,
        pins: &[Pins],
    ) -> Result<(), String> {
        let op = &self.ops[position].1;
        let mut needed: Vec<usize> = waits
            .iter()
            .map(|other| self.home[*other])
            .filter(|home| *home != usize::MAX)
            .collect();
        needed.sort_unstable();
        needed.dedup();
        if own.task.is_some() && position > 0 {
            let (before, _) = self.ops[position - 1];
            if pins[before].task == own.task {
                return self.force(position, &needed, own);
            }
        }
        if !own.is_empty() {
            let draft = self.pinned(position, own)?;
            self.push(draft, &needed);
            return Ok(());
        }
        let price = self.price(&[op])?;
        if let Some((joined, set)) = self.join(position, &needed, price.0) {
            self.merge(joined, &set, &needed);
            return Ok(());
        }
        let (price, ops) = price;
        let nodes = vec![self.ops[position].0];
        let draft = Draft { ops, nodes, is_fixed: false, pins: Pins::default(), price };
        self.push(draft, &needed);
        Ok(())
    }

    /// A draft of its own.
    fn push(&mut self, draft: Draft, needed: &[usize]) {
        let slot = self.slots.len();
        let mut before = Bits::default();
        for other in needed {
            before.insert(*other);
            before.extend(&self.before[*other].clone());
        }
        self.slots.push(Some(draft));
        self.before.push(before);
        self.home.push(slot);
    }

    /// The fastest variant when it runs alone, and its time.
    fn price(&self, ops: &[&Op]) -> Result<(f64, Vec<PlanOp>), String> {
        self.quickest(variants(ops, self.setting)?)
    }

    /// The fastest of some variants when it runs alone, and its time.
    fn quickest(&self, variants: Vec<Vec<PlanOp>>) -> Result<(f64, Vec<PlanOp>), String> {
        let mut best: Option<(f64, Vec<PlanOp>)> = None;
        for variant in variants {
            let price = self.time(&variant);
            if best.as_ref().is_none_or(|(least, _)| price < *least) {
                best = Some((price, variant));
            }
        }
        best.ok_or_else(|| "the op cannot be divided into tasks".to_owned())
    }

    fn time(&self, ops: &[PlanOp]) -> f64 {
        let work = self.setting.work(ops);
        alone(&work, self.setting)
    }

    /// The draft of an op merged with drafts that it uses, and the slots of those.
    fn join(&self, position: usize, needed: &[usize], price: f64) -> Option<(Draft, Vec<usize>)> {
        let op = &self.ops[position].1;
        let is_open = |slot: &usize| {
            let draft = self.slots[*slot].as_ref();
            draft.is_some_and(|draft| !draft.is_fixed && uses(&draft.ops, op))
        };
        let used: Vec<usize> = needed.iter().copied().filter(is_open).collect();
        let mut sets: Vec<Vec<usize>> = vec![];
        if used.len() > 1 {
            sets.push(used.clone());
        }
        sets.extend(used.iter().rev().map(|slot| vec![*slot]));
        let barrier = self.setting.barrier();
        for set in sets {
            if !self.is_free(&set, needed) {
                continue;
            }
            let parts: Vec<&Draft> =
                set.iter().filter_map(|slot| self.slots[*slot].as_ref()).collect();
            let members = parts.iter().flat_map(|draft| draft.members());
            let mut members: Vec<(usize, &Op)> =
                members.chain([(self.ops[position].0, op)]).collect();
            members.sort_by_key(|(node, _)| *node);
            let Some(together) = self.draft(&members) else { continue };
            let apart = parts.iter().map(|draft| draft.price).sum::<f64>() + price + barrier;
            if together.price <= apart {
                return Some((together, set));
            }
        }
        None
    }

    /// The draft of ops that run as one task, in the order given; `None` if they cannot.
    pub(super) fn draft(&self, members: &[(usize, &Op)]) -> Option<Draft> {
        let all: Vec<&Op> = members.iter().map(|(_, op)| *op).collect();
        let (price, ops) = self.price(&all).ok()?;
        let nodes = members.iter().map(|(node, _)| *node).collect();
        Some(Draft { ops, nodes, is_fixed: false, pins: Pins::default(), price })
    }

    /// Number of slots.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The draft in a slot, if ops may be moved to and from it.
    pub(super) fn open(&self, slot: usize) -> Option<&Draft> {
        self.slots.get(slot)?.as_ref().filter(|draft| !draft.is_fixed)
    }

    /// The position of a node's op.
    pub(super) fn position(&self, node: usize) -> usize {
        self.ops.partition_point(|(other, _)| *other < node)
    }

    /// The slot of the op at a position.
    pub(super) fn home(&self, position: usize) -> usize {
        self.home[position]
    }

    /// The node and the op at a position.
    pub(super) fn op(&self, position: usize) -> (usize, &Op) {
        let (node, op) = &self.ops[position];
        (*node, op)
    }

    /// Puts another draft into a slot.
    pub(super) fn replace(&mut self, slot: usize, draft: Draft) {
        self.slots[slot] = Some(draft);
    }

    /// Sets the slot of an op.
    pub(super) fn rehome(&mut self, position: usize, slot: usize) {
        self.home[position] = slot;
    }

    /// Whether a slot depends on another.
    pub(super) fn waits_for(&self, slot: usize, other: usize) -> bool {
        self.before[slot].contains(other)
    }

    /// Makes a slot, and all that depend on it, depend on another.
    pub(super) fn wait(&mut self, slot: usize, other: usize) {
        let mut more = self.before[other].clone();
        more.insert(other);
        for (index, before) in self.before.iter_mut().enumerate() {
            if index == slot || before.contains(slot) {
                before.extend(&more);
            }
        }
    }

    /// Recomputes the dependencies between slots; returns whether they are acyclic.
    pub(super) fn follow(&mut self, waits: &[Vec<usize>]) -> bool {
        let mut direct: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.slots.len()];
        for (position, waits) in waits.iter().enumerate() {
            let home = self.home[position];
            let others = waits.iter().map(|other| self.home[*other]);
            direct[home].extend(others.filter(|other| *other != home));
        }
        let lists: Vec<Vec<usize>> =
            direct.iter().map(|set| set.iter().copied().collect()).collect();
        let users = after(&lists);
        let mut open: Vec<usize> = direct.iter().map(BTreeSet::len).collect();
        let mut ready: Vec<usize> = (0..open.len()).filter(|slot| open[*slot] == 0).collect();
        let mut before = vec![Bits::default(); self.slots.len()];
        let mut done = 0;
        while let Some(slot) = ready.pop() {
            done += 1;
            let mut bits = Bits::default();
            for other in &direct[slot] {
                bits.insert(*other);
                bits.extend(&before[*other]);
            }
            before[slot] = bits;
            for user in &users[slot] {
                open[*user] -= 1;
                if open[*user] == 0 {
                    ready.push(*user);
                }
            }
        }
        self.before = before;
        done == self.slots.len()
    }

    /// Whether drafts can be merged with an op that depends on others: no dependency of any of them
    /// may depend on one of them.
    fn is_free(&self, set: &[usize], needed: &[usize]) -> bool {
        let between = self.all_before(set, needed);
        between.iter().all(|slot| !set.iter().any(|member| self.before[slot].contains(*member)))
    }

    /// All dependencies of some drafts and an op, except the drafts themselves.
    fn all_before(&self, set: &[usize], needed: &[usize]) -> Bits {
        let mut before = Bits::default();
        set.iter().for_each(|slot| before.extend(&self.before[*slot]));
        for slot in needed {
            before.insert(*slot);
            before.extend(&self.before[*slot]);
        }
        set.iter().for_each(|slot| before.remove(*slot));
        before
    }

    /// Replaces drafts by the draft that they were merged into.
    fn merge(&mut self, draft: Draft, set: &[usize], needed: &[usize]) {
        let slot = set[set.len() - 1];
        let before = self.all_before(set, needed);
        for other in set {
            self.slots[*other] = None;
        }
        for (index, waits) in self.before.iter_mut().enumerate() {
            if index != slot && set.iter().any(|member| waits.contains(*member)) {
                set.iter().for_each(|member| waits.remove(*member));
                waits.insert(slot);
                waits.extend(&before);
            }
        }
        self.before[slot] = before;
        self.slots[slot] = Some(draft);
        for home in &mut self.home {
            if set.contains(home) {
                *home = slot;
            }
        }
        self.home.push(slot);
    }

    /// A draft of one op with its pins.
    fn pinned(&self, position: usize, pins: &Pins) -> Result<Draft, String> {
        let (node, op) = &self.ops[position];
        let ops = vec![self.config(op, pins)?];
        let draft = Draft {
            price: self.time(&ops),
            ops,
            nodes: vec![*node],
            is_fixed: true,
            pins: pins.clone(),
        };
        self.check(&draft)?;
        Ok(draft)
    }

    /// An op with its pinned config keys, the others chosen.
    fn config(&self, op: &Op, pins: &Pins) -> Result<PlanOp, String> {
        let Some(pinned) = &pins.config else {
            let (_, mut ops) = self.price(&[op])?;
            return ops.pop().ok_or_else(|| "the op has no config".to_owned());
        };
        let kernels_of = |op: &Op| -> Result<Vec<Vec<PlanOp>>, String> {
            let found = configs::pinned_matmuls(op, self.setting.target, pinned)?;
            Ok(found.into_iter().map(|op| vec![op]).collect())
        };
        let mut plan_op = match pins.is_merged {
            true => {
                let (_, mut ops) = match op.kind {
                    OpKind::Matmul => self.quickest(kernels_of(op)?)?,
                    _ => self.price(&[op])?,
                };
                ops.pop().ok_or_else(|| "the op has no config".to_owned())?
            }
            false => {
                if op.kind == OpKind::Matmul {
                    kernels_of(op)?;
                }
                PlanOp { op: op.clone(), config: pinned.clone() }
            }
        };
        pinned.0.iter().for_each(|(key, value)| set(&mut plan_op.config, key, value.clone()));
        if pinned.get("NumTasks").is_none()
            && let Some(tasks) = derived_tasks(&plan_op)
        {
            set(&mut plan_op.config, "NumTasks", ConfigValue::Int(tasks));
        }
        Ok(plan_op)
    }

    /// Joins an op to the task that the previous op is pinned to.
    fn force(&mut self, position: usize, needed: &[usize], pins: &Pins) -> Result<(), String> {
        let name = pins.task.as_deref().unwrap_or_default();
        let set = vec![self.home[position - 1]];
        let Some(draft) = self.slots.get(set[0]).cloned().flatten() else {
            return Err(format!("what runs before it in task `{name}` cannot run"));
        };
        if !self.is_free(&set, needed) {
            return Err(format!("an op outside task `{name}` must run between its ops"));
        }
        let (node, op) = &self.ops[position];
        let nodes = [draft.nodes.clone(), vec![*node]].concat();
        let ops = self.together(&draft, op, pins)?;
        if !fuses(&ops) {
            return Err(format!(
                "task `{name}` cannot hold this op: its tasks use more than the \
                 corresponding tasks of the ops before it compute"
            ));
        }
        let mut all = draft.pins.clone();
        all.processor_range = pins.processor_range.or(all.processor_range);
        all.warp_range = pins.warp_range.or(all.warp_range);
        all.sram_range = pins.sram_range.or(all.sram_range);
        let draft = Draft { price: self.time(&ops), ops, nodes, is_fixed: true, pins: all };
        self.check(&draft)?;
        self.merge(draft, &set, needed);
        Ok(())
    }

    /// The ops of a pinned task and one more; where no config is pinned, they must correspond.
    fn together(&self, draft: &Draft, op: &Op, pins: &Pins) -> Result<Vec<PlanOp>, String> {
        let own: Vec<PlanOp> = [draft.ops.clone(), vec![self.config(op, pins)?]].concat();
        if pins.config.is_some() || draft.pins.config.is_some() || fuses(&own) {
            return Ok(own);
        }
        let all: Vec<&Op> = draft.ops.iter().map(|old| &old.op).chain([op]).collect();
        Ok(self.price(&all).map_or(own, |(_, ops)| ops))
    }

    /// Checks that pinned ranges are large enough for their task.
    fn check(&self, draft: &Draft) -> Result<(), String> {
        let (warps, sram) = needs(&draft.ops);
        let all = Range::new(0, self.setting.target.processors);
        if let Some(range) =
            draft.pins.processor_range.filter(|range| !all.contains(*range) || range.is_empty())
        {
            return Err(format!(
                "`ProcessorRange` is fixed to [{}, {}), and there are {} processors",
                range.begin, range.end, all.end
            ));
        }
        if let Some(range) = draft.pins.warp_range.filter(|range| range.len() < warps) {
            return Err(format!(
                "`WarpRange` is fixed to {} warps, but a task needs {warps}",
                range.len()
            ));
        }
        if let Some(range) = draft.pins.sram_range.filter(|range| range.len() < sram) {
            return Err(format!(
                "`SramRange` is fixed to {} bytes, but a task needs {sram}",
                range.len()
            ));
        }
        Ok(())
    }

    /// The drafts, with the warnings about their ops.
    pub fn finish(self, warnings: Vec<NodeDiagnostic>) -> Drafts {
        let mut place = vec![usize::MAX; self.slots.len()];
        let live = self.slots.iter().enumerate().filter(|(_, draft)| draft.is_some());
        live.enumerate().for_each(|(index, (slot, _))| place[slot] = index);
        let mut before = vec![];
        for (slot, _) in self.slots.iter().enumerate().filter(|(_, draft)| draft.is_some()) {
            let mut bits = Bits::default();
            let waits = self.before[slot].iter().filter(|other| place[*other] != usize::MAX);
            waits.for_each(|other| bits.insert(place[other]));
            before.push(bits);
        }
        Drafts { drafts: self.slots.into_iter().flatten().collect(), warnings, before }
    }
}

/// Nanoseconds of tasks that run alone.
pub fn alone(work: &Work, setting: &Setting<'_>) -> f64 {
    let tasks = work.tasks();
    let processors = setting.target.processors.min(tasks).max(1);
    let share = Share {
        work,
        tasks,
        granularity: 1,
        slots: setting.slots(work.warps(), work.sram()),
        processors: Range::new(0, processors),
        start: 0,
    };
    cost::time(&[share], processors, setting.machine)
}

/// Whether an op reads what the task wrote; otherwise joining them saves nothing.
fn uses(ops: &[PlanOp], op: &Op) -> bool {
    let written = |id: u64| ops.iter().any(|old| old.op.writes.iter().any(|w| w.buffer.id == id));
    op.reads.iter().any(|tensor| written(tensor.buffer.id))
}
