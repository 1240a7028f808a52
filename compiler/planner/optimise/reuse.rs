//! Memory of intermediate buffers, shared over time.
//!
//! Two buffers of the pool share memory when every step that uses one ends before the first that
//! uses the other: a barrier stands between any two steps, so nothing new must be waited for. An
//! elementwise op whose operand nobody uses later writes over it.
use super::{
    group::Draft,
    layout::{ALIGNMENT, Layout},
    schedule::Step,
};
use irc_ark_format::{
    model::{Model, Tensor},
    plan::fuses,
};
use std::collections::BTreeMap;

/// A use of a buffer: step, draft and place of the op in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    step: usize,
    draft: usize,
    op: usize,
}

/// Gives buffers of the pool new ids, under which they share memory.
pub fn reuse(drafts: &mut [Draft], steps: &[Step], layout: &Layout, model: &Model) {
    let mut uses = uses(drafts, steps, layout);
    overwrite(drafts, steps, &mut uses, layout);
    let slots = slots(&uses, layout);
    let _ = model;
    for draft in drafts {
        rename(draft, |id| slots.get(&id).copied());
    }
}

/// Where each buffer of the pool is used, sorted.
fn uses(drafts: &[Draft], steps: &[Step], layout: &Layout) -> BTreeMap<u64, Vec<Place>> {
    let mut uses: BTreeMap<u64, Vec<Place>> = BTreeMap::new();
    for (step, members) in steps.iter().enumerate() {
        for &draft in members {
            for (op, plan_op) in drafts[draft].ops.iter().enumerate() {
                for tensor in plan_op.op.tensors() {
                    if layout.pooled.contains_key(&tensor.buffer.id) {
                        uses.entry(tensor.buffer.id).or_default().push(Place { step, draft, op });
                    }
                }
            }
        }
    }
    uses.values_mut().for_each(|places| {
        places.sort_unstable();
        places.dedup();
    });
    uses
}

/// Lets elementwise ops write over operands that nobody uses later.
fn overwrite(
    drafts: &mut [Draft],
    steps: &[Step],
    uses: &mut BTreeMap<u64, Vec<Place>>,
    layout: &Layout,
) {
    for (step, members) in steps.iter().enumerate() {
        for &draft in members {
            for op in 0..drafts[draft].ops.len() {
                let at = Place { step, draft, op };
                for (old, new) in candidates(&drafts[draft], op) {
                    if layout.pooled.get(&old) == layout.pooled.get(&new)
                        && is_last(uses.get(&old), at)
                        && is_first(uses.get(&new), at)
                        && take_over(drafts, uses, old, new)
                    {
                        break;
                    }
                }
            }
        }
    }
}

/// Buffers of operands that an op could write over, each with the buffer it writes.
fn candidates(draft: &Draft, op: usize) -> Vec<(u64, u64)> {
    let op = &draft.ops[op].op;
    let [output] = &op.writes[..] else { return vec![] };
    if !(op.kind.is_unary() || op.kind.is_binary()) {
        return vec![];
    }
    let same = |tensor: &&Tensor| {
        let moved = Tensor { id: output.id, buffer: output.buffer.clone(), ..(*tensor).clone() };
        tensor.buffer.id != output.buffer.id && moved == *output
    };
    op.reads.iter().filter(same).map(|tensor| (tensor.buffer.id, output.buffer.id)).collect()
}

/// Whether no use of a buffer comes after this op; those of the same task come before it in turn.
fn is_last(places: Option<&Vec<Place>>, at: Place) -> bool {
    let before = |place: &Place| {
        place.step < at.step
            || (place.step == at.step && place.draft == at.draft && place.op <= at.op)
    };
    places.is_some_and(|places| places.iter().all(before))
}

/// Whether no use of a buffer comes before this op.
fn is_first(places: Option<&Vec<Place>>, at: Place) -> bool {
    let after = |place: &Place| {
        place.step > at.step
            || (place.step == at.step && place.draft == at.draft && place.op >= at.op)
    };
    places.is_some_and(|places| places.iter().all(after))
}

/// Puts one buffer in the place of another, unless tasks would then use what other tasks write.
fn take_over(
    drafts: &mut [Draft],
    uses: &mut BTreeMap<u64, Vec<Place>>,
    old: u64,
    new: u64,
) -> bool {
    let places = uses.get(&new).cloned().unwrap_or_default();
    let mut users: Vec<usize> = places.iter().map(|place| place.draft).collect();
    users.dedup();
    let mut renamed: Vec<(usize, Draft)> = vec![];
    for user in users {
        let mut draft = drafts[user].clone();
        rename(&mut draft, |id| (id == new).then_some(old));
        if draft.ops.len() > 1 && !fuses(&draft.ops) {
            return false;
        }
        renamed.push((user, draft));
    }
    renamed.into_iter().for_each(|(user, draft)| drafts[user] = draft);
    uses.remove(&new);
    let merged = uses.entry(old).or_default();
    merged.extend(places);
    merged.sort_unstable();
    merged.dedup();
    true
}

fn rename(draft: &mut Draft, new_id: impl Fn(u64) -> Option<u64>) {
    for plan_op in &mut draft.ops {
        let op = &mut plan_op.op;
        for tensor in op.reads.iter_mut().chain(&mut op.writes).chain(&mut op.results) {
            if let Some(id) = new_id(tensor.buffer.id) {
                tensor.buffer.id = id;
            }
        }
    }
}

/// A piece of memory and what lies in it over time.
struct Slot {
    bytes: u64,
    /// First and last step of each buffer in it.
    taken: Vec<(usize, usize)>,
}

/// The new id of each buffer: the largest first, each into the smallest piece that is free while it
/// is used.
fn slots(uses: &BTreeMap<u64, Vec<Place>>, layout: &Layout) -> BTreeMap<u64, u64> {
    let mut buffers: Vec<(u64, u64, (usize, usize))> = vec![];
    for (id, places) in uses {
        let (Some(first), Some(last)) = (places.first(), places.last()) else { continue };
        let bytes = layout.pooled.get(id).copied().unwrap_or_default();
        buffers.push((*id, bytes, (first.step, last.step)));
    }
    // Small odd ones last, so that those before them start aligned.
    buffers.sort_by_key(|(id, bytes, _)| (bytes % ALIGNMENT != 0, std::cmp::Reverse(*bytes), *id));
    let mut slots: Vec<Slot> = vec![];
    let mut ids = BTreeMap::new();
    for (id, bytes, (first, last)) in buffers {
        let is_free =
            |slot: &Slot| slot.taken.iter().all(|taken| taken.1 < first || last < taken.0);
        let fits =
            slots.iter().enumerate().filter(|(_, slot)| slot.bytes >= bytes && is_free(slot));
        let best = fits.min_by_key(|(index, slot)| (slot.bytes, *index)).map(|(index, _)| index);
        let index = best.unwrap_or_else(|| {
            slots.push(Slot { bytes, taken: vec![] });
            slots.len() - 1
        });
        slots[index].taken.push((first, last));
        ids.insert(id, layout.first_id + index as u64);
    }
    ids
}
