//! The values of buffers during the traversal of a model.

use crate::access::{Access, Buffers, element_type};
use crate::emit::{fill, retype, slice, tensor_type, update};
use irc_ark_format::model::Region;
use irc_tl::{Builder, Built, DType, TensorType, ValueId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One buffer's contents.
#[derive(Default)]
struct State {
    /// The whole buffer, in any type and shape with that many bytes; `None` if nothing has been
    /// written and there are no initial contents.
    whole: Option<ValueId>,
    /// The origin of its last write.
    origin: Option<Arc<str>>,
    /// Values of regions without later writes.
    known: Vec<(Region, ValueId)>,
}

/// The contents of all buffers at one point of the list.
pub(crate) struct Memory<'m> {
    buffers: &'m Buffers,
    states: BTreeMap<u64, State>,
}

impl<'m> Memory<'m> {
    /// The initial memory, with the given buffers.
    pub fn new(buffers: &'m Buffers, arguments: impl IntoIterator<Item = (u64, ValueId)>) -> Self {
        let state = |(id, whole)| (id, State { whole: Some(whole), ..State::default() });
        Self { buffers, states: arguments.into_iter().map(state).collect() }
    }

    /// The elements of a box.
    ///
    /// A value written to exactly these bytes is returned directly; otherwise the box is sliced from
    /// the buffer.
    pub fn read(&mut self, builder: &mut Builder, access: Access<'_>) -> Built {
        let Access { tensor, shape } = access;
        let (id, dtype) = (tensor.buffer.id, element_type(tensor.dtype));
        let region = access.region();
        let state = self.states.entry(id).or_default();
        if let Some((_, value)) = state.known.iter().find(|(known, _)| *known == region) {
            return retype(builder, *value, dtype, shape);
        }
        let whole = whole(state, id)?;
        if self.buffers.is_whole(&region) {
            let value = retype(builder, whole, dtype, shape)?;
            // Later reads are likely to have the same shape.
            state.whole = Some(value);
            return Ok(value);
        }
        let view = view(builder, whole, dtype, &tensor.strides)?;
        let value = slice(builder, view, &tensor.offsets, shape)?;
        state.known.push((region, value));
        Ok(value)
    }

    /// Replaces the elements of a box by `value`, which has its type and shape.
    pub fn write(
        &mut self,
        builder: &mut Builder,
        access: Access<'_>,
        value: ValueId,
    ) -> Built<()> {
        let Access { tensor, .. } = access;
        let id = tensor.buffer.id;
        let region = access.region();
        let origin = builder.origin();
        if self.buffers.is_whole(&region) {
            self.states.insert(id, State { whole: Some(value), origin, known: vec![] });
            return Ok(());
        }
        let state = self.states.entry(id).or_default();
        let whole = whole(state, id)?;
        let dtype = builder.dtype(value);
        let view = view(builder, whole, dtype, &tensor.strides)?;
        let updated = update(builder, view, value, &tensor.offsets)?;
        state.whole = Some(embed(builder, whole, updated)?);
        state.origin = origin;
        state.known.retain(|(known, _)| !known.overlaps(&region));
        state.known.push((region, value));
        Ok(())
    }

    /// Replaces a whole buffer whose new elements could not be computed, so that its readers are
    /// still checked.
    pub fn replace(&mut self, builder: &mut Builder, id: u64) -> Built<()> {
        let TensorType { dtype, shape } = self.buffers.ty(id);
        let whole = Some(fill(builder, 0.0, dtype, &shape)?);
        self.states.insert(id, State { whole, ..State::default() });
        Ok(())
    }

    /// A buffer as an output of the graph: 1-D, in its own type.
    pub fn result(&mut self, builder: &mut Builder, id: u64) -> Built {
        let state = self.states.entry(id).or_default();
        let whole = whole(state, id)?;
        builder.set_origin(state.origin.clone());
        let TensorType { dtype, shape } = self.buffers.ty(id);
        retype(builder, whole, dtype, &shape)
    }
}

fn whole(state: &State, id: u64) -> Built {
    state.whole.ok_or_else(|| format!("buffer {id} is needed before it is written").into())
}

fn bytes(dtype: DType, shape: &[i64]) -> i64 {
    shape.iter().product::<i64>() * dtype.size() as i64
}

/// The start of a buffer in the shape of an enclosing view.
fn view(builder: &mut Builder, whole: ValueId, dtype: DType, view: &[i64]) -> Built {
    let ty = tensor_type(builder, whole)?;
    let (total, needed) = (bytes(ty.dtype, &ty.shape), bytes(dtype, view));
    if total == needed {
        return retype(builder, whole, dtype, view);
    }
    let cut = cut_type(dtype, total);
    let flat = flat(builder, whole, cut)?;
    let start = slice(builder, flat, &[0], &[needed / cut.size() as i64])?;
    retype(builder, start, dtype, view)
}

/// A buffer with its start replaced.
fn embed(builder: &mut Builder, whole: ValueId, start: ValueId) -> Built {
    let (ty, part) = (tensor_type(builder, whole)?, tensor_type(builder, start)?);
    let total = bytes(ty.dtype, &ty.shape);
    if total == bytes(part.dtype, &part.shape) {
        return Ok(start);
    }
    let dtype = cut_type(part.dtype, total);
    let (whole, start) = (flat(builder, whole, dtype)?, flat(builder, start, dtype)?);
    update(builder, whole, start, &[0])
}

/// The type in which a buffer of `total` bytes can be split at an element of `dtype`.
fn cut_type(dtype: DType, total: i64) -> DType {
    if total % dtype.size() as i64 == 0 { dtype } else { DType::U8 }
}

fn flat(builder: &mut Builder, value: ValueId, dtype: DType) -> Built {
    let ty = tensor_type(builder, value)?;
    let elements = bytes(ty.dtype, &ty.shape) / dtype.size() as i64;
    retype(builder, value, dtype, &[elements])
}
