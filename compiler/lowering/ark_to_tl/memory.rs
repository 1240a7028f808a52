//! The values that buffers hold while the model is walked.
use super::{
    access::{Access, Buffers, computed, is_whole},
    emit::{Emitter, Val},
};
use irc_ark_format::model::{DataType, Region};
use std::collections::BTreeMap;

/// One buffer's contents.
#[derive(Default)]
struct State<'c, 'a> {
    /// All of it, under any type and shape of that many bytes; nothing before it is needed.
    whole: Option<Val<'c, 'a>>,
    /// Values of regions that no later write touched.
    known: Vec<(Region, Val<'c, 'a>)>,
}

/// Every buffer's contents at one point of the list.
pub struct Memory<'c, 'a, 'm> {
    buffers: &'m Buffers,
    states: BTreeMap<u64, State<'c, 'a>>,
}

impl<'c: 'a, 'a, 'm> Memory<'c, 'a, 'm> {
    /// Memory at the start: the given buffers.
    pub fn new(buffers: &'m Buffers, arguments: Vec<(u64, Val<'c, 'a>)>) -> Self {
        let state = |whole| State { whole: Some(whole), known: vec![] };
        let states = arguments.into_iter().map(|(id, whole)| (id, state(whole))).collect();
        Self { buffers, states }
    }

    /// The elements of a box.
    ///
    /// A value written to exactly these bytes is taken as it is; otherwise the box is sliced out of
    /// the buffer.
    pub fn read(&mut self, emitter: &mut Emitter<'c, 'a>, access: Access<'_>) -> Val<'c, 'a> {
        let Access { tensor, shape } = access;
        let (id, dtype) = (tensor.buffer.id, computed(tensor.dtype));
        let region = access.region();
        let known = self.states.get(&id).and_then(|state| {
            state.known.iter().find(|(known, _)| *known == region).map(|(_, val)| val.clone())
        });
        if let Some(val) = known {
            return emitter.retype(val, dtype, shape);
        }
        let whole = self.whole(id);
        if is_whole(&region, self.buffers.bytes(id)) {
            let val = emitter.retype(whole, dtype, shape);
            // Later reads are likely to be under the same shape.
            self.states.entry(id).or_default().whole = Some(val.clone());
            return val;
        }
        let view = view(emitter, whole, dtype, &tensor.strides);
        let val = emitter.slice(view, &tensor.offsets, shape);
        self.states.entry(id).or_default().known.push((region, val.clone()));
        val
    }

    /// Replaces the elements of a box; `val` has its type and shape.
    pub fn write(&mut self, emitter: &mut Emitter<'c, 'a>, access: Access<'_>, val: Val<'c, 'a>) {
        let Access { tensor, .. } = access;
        let id = tensor.buffer.id;
        let region = access.region();
        if is_whole(&region, self.buffers.bytes(id)) {
            self.states.insert(id, State { whole: Some(val), known: vec![] });
            return;
        }
        let whole = self.whole(id);
        let view = view(emitter, whole.clone(), val.dtype, &tensor.strides);
        let updated = emitter.update(&view, &val, &tensor.offsets);
        let whole = embed(emitter, whole, updated);
        let state = self.states.entry(id).or_default();
        state.whole = Some(whole);
        state.known.retain(|(known, _)| !known.overlaps(&region));
        state.known.push((region, val));
    }

    /// A buffer as the function returns it: 1-D, in its own type, located at its last write.
    pub fn result(&mut self, emitter: &Emitter<'c, 'a>, id: u64) -> Val<'c, 'a> {
        let whole = self.whole(id);
        let mut emitter = emitter.at(irc_mlir::location_of(whole.value));
        emitter.retype(whole, self.buffers.dtype(id), &self.buffers.shape(id))
    }

    fn whole(&self, id: u64) -> Val<'c, 'a> {
        let whole = self.states.get(&id).and_then(|state| state.whole.clone());
        whole.expect("a buffer that is needed before it is written is an argument")
    }
}

fn bytes(dtype: DataType, shape: &[i64]) -> i64 {
    shape.iter().product::<i64>() * dtype.bytes().cast_signed()
}

/// The start of a buffer under the shape of an enclosing view.
fn view<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    whole: Val<'c, 'a>,
    dtype: DataType,
    view: &[i64],
) -> Val<'c, 'a> {
    let (total, needed) = (bytes(whole.dtype, &whole.shape), bytes(dtype, view));
    if total == needed {
        return emitter.retype(whole, dtype, view);
    }
    let flat = flat(emitter, whole, cut_type(dtype, total));
    let elements = needed / flat.dtype.bytes().cast_signed();
    let start = emitter.slice(flat, &[0], &[elements]);
    emitter.retype(start, dtype, view)
}

/// A buffer with its start replaced.
fn embed<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    whole: Val<'c, 'a>,
    start: Val<'c, 'a>,
) -> Val<'c, 'a> {
    let total = bytes(whole.dtype, &whole.shape);
    if total == bytes(start.dtype, &start.shape) {
        return start;
    }
    let dtype = cut_type(start.dtype, total);
    let (whole, start) = (flat(emitter, whole, dtype), flat(emitter, start, dtype));
    emitter.update(&whole, &start, &[0])
}

/// The type in which a buffer of `total` bytes can be cut at an element of `dtype`.
fn cut_type(dtype: DataType, total: i64) -> DataType {
    if total % dtype.bytes().cast_signed() == 0 { dtype } else { DataType::Uint8 }
}

fn flat<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    val: Val<'c, 'a>,
    dtype: DataType,
) -> Val<'c, 'a> {
    let elements = bytes(val.dtype, &val.shape) / dtype.bytes().cast_signed();
    emitter.retype(val, dtype, &[elements])
}
