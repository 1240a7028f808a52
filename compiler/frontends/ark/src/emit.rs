//! Ops on values of static sizes, which are omitted if they would have no effect.

use irc_tl::{Builder, Built, DType, Op, TensorType, ValueId};

/// The type of a value.
pub(crate) fn tensor_type(builder: &Builder, value: ValueId) -> Built<TensorType> {
    let ty = builder.ty(value);
    ty.known().ok_or_else(|| format!("expected known sizes, found {ty}").into())
}

/// The shape of a value.
pub(crate) fn shape(builder: &Builder, value: ValueId) -> Built<Vec<i64>> {
    Ok(tensor_type(builder, value)?.shape)
}

/// The same elements with another shape.
pub(crate) fn reshape(builder: &mut Builder, value: ValueId, to: &[i64]) -> Built {
    if shape(builder, value)? == to {
        return Ok(value);
    }
    builder.op(Op::Reshape { shape: to.to_vec() }, &[value])
}

/// The same bytes as another type.
pub(crate) fn retype(builder: &mut Builder, value: ValueId, dtype: DType, to: &[i64]) -> Built {
    if builder.dtype(value) == dtype {
        return reshape(builder, value, to);
    }
    builder.op(Op::Bitcast { to: dtype, shape: to.to_vec() }, &[value])
}

/// The box of `sizes` at `offsets`.
pub(crate) fn slice(
    builder: &mut Builder,
    value: ValueId,
    offsets: &[i64],
    sizes: &[i64],
) -> Built {
    if shape(builder, value)? == sizes {
        return Ok(value);
    }
    builder.op(Op::Slice { offsets: offsets.to_vec(), sizes: sizes.to_vec() }, &[value])
}

/// `dest` with the box at `offsets` replaced.
pub(crate) fn update(
    builder: &mut Builder,
    dest: ValueId,
    source: ValueId,
    offsets: &[i64],
) -> Built {
    builder.op(Op::Update { offsets: offsets.to_vec() }, &[dest, source])
}

/// A tensor filled with one value. It is truncated for integers, as in a C++ conversion.
pub(crate) fn fill(builder: &mut Builder, value: f64, dtype: DType, shape: &[i64]) -> Built {
    let value = if dtype.is_float() { value } else { value.trunc() };
    builder.op(Op::fill(value, shape, dtype), &[])
}
