//! Intermediate buffers that share memory over time.
//!
//! Two buffers of the pool share memory when every step that uses one ends before the first that
//! uses the other: there is a barrier between any two steps, so no wait is added. An
//! elementwise op whose operand has no later use overwrites it.
use super::{
    group::Draft,
    layout::{ALIGNMENT, Layout},
    schedule::Step,
};
use crate::memory::{self, Block, Movable};
use irc_ark_format::{model::Tensor, plan::fuses};
use std::collections::BTreeMap;

/// A use of a buffer: step, draft and index of the op in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    step: usize,
    draft: usize,
    op: usize,
}

/// Gives buffers of the pool new ids, under which they share memory.
pub fn reuse(drafts: &mut [Draft], steps: &[Step], layout: &Layout) {
    let mut uses = uses(drafts, steps, layout);
    overwrite(drafts, steps, &mut uses, layout);
    let (ids, blocks): (Vec<u64>, Vec<Movable>) = blocks(drafts, &uses, layout).into_iter().unzip();
    let places = memory::buffers(&blocks, ALIGNMENT);
    let places: BTreeMap<_, _> = ids.into_iter().zip(places).collect();
    for tensor in drafts.iter_mut().flat_map(tensors) {
        if let Some(place) = places.get(&tensor.buffer.id) {
            tensor.buffer.id = layout.first_id + place.buffer as u64;
            shift(tensor, place.offset);
        }
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

/// Makes elementwise ops overwrite operands without later uses.
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
    if !op.kind.is_elementwise() {
        return vec![];
    }
    let same = |tensor: &&Tensor| {
        let moved = Tensor { id: output.id, buffer: output.buffer.clone(), ..(*tensor).clone() };
        tensor.buffer.id != output.buffer.id && moved == *output
    };
    op.reads.iter().filter(same).map(|tensor| (tensor.buffer.id, output.buffer.id)).collect()
}

/// Whether this op has the last use of a buffer; those of the same task precede it in order.
fn is_last(places: Option<&Vec<Place>>, at: Place) -> bool {
    let before = |place: &Place| {
        place.step < at.step
            || (place.step == at.step && place.draft == at.draft && place.op <= at.op)
    };
    places.is_some_and(|places| places.iter().all(before))
}

/// Whether this op has the first use of a buffer.
fn is_first(places: Option<&Vec<Place>>, at: Place) -> bool {
    let after = |place: &Place| {
        place.step > at.step
            || (place.step == at.step && place.draft == at.draft && place.op >= at.op)
    };
    places.is_some_and(|places| places.iter().all(after))
}

/// Replaces one buffer by another, unless tasks would then use what other tasks write.
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
    for tensor in tensors(draft) {
        if let Some(id) = new_id(tensor.buffer.id) {
            tensor.buffer.id = id;
        }
    }
}

fn tensors(draft: &mut Draft) -> impl Iterator<Item = &mut Tensor> {
    draft.ops.iter_mut().flat_map(|plan_op| {
        let op = &mut plan_op.op;
        op.reads.iter_mut().chain(&mut op.writes).chain(&mut op.results)
    })
}

/// The buffers to be placed, each with its id, size, live range and alignment.
fn blocks(
    drafts: &mut [Draft],
    uses: &BTreeMap<u64, Vec<Place>>,
    layout: &Layout,
) -> Vec<(u64, Movable)> {
    let mut granules: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    for tensor in drafts.iter_mut().flat_map(tensors) {
        let own = row(tensor);
        let granule = granules.entry(tensor.buffer.id).or_insert(Some(1));
        *granule = granule.zip(own).map(|(a, b)| least_common_multiple(a, b));
    }
    let block = |(id, places): (&u64, &Vec<Place>)| {
        let bytes = layout.pooled.get(id).copied().unwrap_or_default();
        let granule = granules.get(id).copied().flatten();
        let granule = granule.filter(|granule| granule % ALIGNMENT == 0);
        let (first, last) = (places.first()?.step, places.last()?.step);
        Some((*id, Movable { block: Block { bytes, first, last }, granule }))
    };
    uses.iter().filter_map(block).collect()
}

/// Allowed shifts of a tensor within its buffer, in bytes: multiples of one index of its first
/// dimension. `None` for a matrix, whose first stride is the row stride for kernels of products.
fn row(tensor: &Tensor) -> Option<u64> {
    let inner: i64 = tensor.strides.iter().skip(1).product();
    (tensor.rank() > 2).then(|| inner.cast_unsigned() * tensor.dtype.bytes())
}

/// Shifts a tensor by a multiple of the bytes of its row.
fn shift(tensor: &mut Tensor, bytes: u64) {
    let Some(rows) = row(tensor).map(|row| (bytes / row).cast_signed()).filter(|rows| *rows > 0)
    else {
        return;
    };
    tensor.strides[0] += rows;
    tensor.offsets[0] += rows;
}

fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}
