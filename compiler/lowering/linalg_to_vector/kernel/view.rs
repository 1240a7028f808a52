//! Views of tensors through shape ops.
use super::{TensorId, defining_op, list_attribute, name_of, operand, static_shape};
use crate::lowering::linalg_to_vector::{
    error::{LowerError, Result},
    layout::Layouts,
};
use irc_mlir::ops::{linalg, tensor};
use irc_mlir::{BlockLike, BlockRef, OperationLike, OperationRef, Value, ValueLike};
use melior::ir::attribute::IntegerAttribute;

/// A tensor viewed through shape ops.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) tensor: TensorId,
    pub(super) offset: i64,
    pub(super) strides: Vec<i64>,
    pub(super) shape: Vec<i64>,
}

/// The values that a stage can write directly to a result, with their strides there.
pub(super) fn wanted<'c: 'a, 'a>(
    block: BlockRef<'c, 'a>,
    layouts: &Layouts,
) -> Result<Vec<(Value<'c, 'a>, Vec<i64>)>> {
    let mut wanted: Vec<(Value, Vec<i64>)> = vec![];
    let Some(returned) = block.terminator() else { return Ok(wanted) };
    for (index, value) in returned.operands().enumerate() {
        let Some(strides) = layouts.result(index).filter(|_| !layouts.overwrites(index)) else {
            continue;
        };
        if let Some((root, strides)) = trace(value, strides)?
            && wanted.iter().all(|(known, _)| *known != root)
        {
            wanted.push((root, strides));
        }
    }
    Ok(wanted)
}

/// The value before the shape ops that produce a value with these strides, and its strides; `None`
/// if it cannot have such a layout.
fn trace<'c: 'a, 'a>(
    mut value: Value<'c, 'a>,
    strides: &[i64],
) -> Result<Option<(Value<'c, 'a>, Vec<i64>)>> {
    let mut strides = strides.to_vec();
    while let Some(op) = defining_op(value) {
        let name = name_of(op);
        if name == linalg::GENERIC {
            return Ok(Some((value, strides)));
        }
        if !matches!(name.as_str(), tensor::EXPAND_SHAPE | tensor::COLLAPSE_SHAPE) {
            return Ok(None);
        }
        let groups = reassociation(op)?;
        let (shape, _) = static_shape(op, value.r#type())?;
        value = operand(op, 0)?;
        let (source, _) = static_shape(op, value.r#type())?;
        let view = View { tensor: 0, offset: 0, strides, shape };
        let before = match name.as_str() {
            tensor::EXPAND_SHAPE => collapse(&view, source, &groups),
            _ => expand(&view, source, &groups),
        };
        let Some(before) = before else { return Ok(None) };
        strides = before.strides;
    }
    Ok(None)
}

/// The groups of dimensions that a shape op merges or splits.
pub(super) fn reassociation<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Result<Vec<Vec<usize>>> {
    let fail = || LowerError::at(op, "expected groups of dimensions in 'reassociation'");
    let group = |attribute| {
        let dims = irc_mlir::read::array_elements(attribute).ok_or_else(fail)?;
        dims.into_iter()
            .map(|dim| Ok(IntegerAttribute::try_from(dim).map_err(|_| fail())?.value() as usize))
            .collect::<Result<Vec<_>>>()
    };
    list_attribute(op, "reassociation")?.into_iter().map(group).collect()
}

/// A view whose dimensions are split into groups.
pub(super) fn expand(view: &View, shape: Vec<i64>, groups: &[Vec<usize>]) -> Option<View> {
    let mut strides = vec![0; shape.len()];
    // An expansion without groups makes a scalar a tensor with extents of 1.
    for (source, group) in groups.iter().enumerate() {
        let mut stride = *view.strides.get(source)?;
        for dim in group.iter().rev() {
            strides[*dim] = stride;
            stride *= shape[*dim];
        }
    }
    Some(View { strides, shape, ..*view })
}

/// A view whose groups of dimensions are merged; `None` if a group has gaps.
pub(super) fn collapse(view: &View, shape: Vec<i64>, groups: &[Vec<usize>]) -> Option<View> {
    let mut strides = vec![];
    for group in groups {
        let real: Vec<usize> = group.iter().copied().filter(|d| view.shape[*d] != 1).collect();
        for pair in real.windows(2) {
            if view.strides[pair[0]] != view.strides[pair[1]] * view.shape[pair[1]] {
                return None;
            }
        }
        strides.push(real.last().map_or(1, |d| view.strides[*d]));
    }
    Some(View { strides, shape, ..*view })
}

/// A slice of a view; `None` if the shapes do not match.
pub(super) fn slice(
    view: &View,
    shape: Vec<i64>,
    offsets: &[i64],
    sizes: &[i64],
    steps: &[i64],
) -> Option<View> {
    let offset =
        offsets.iter().zip(&view.strides).map(|(offset, stride)| offset * stride).sum::<i64>();
    let mut strides = vec![];
    for (dim, size) in sizes.iter().enumerate() {
        // The result may drop dimensions of size one.
        if shape.get(strides.len()) == Some(size) {
            strides.push(view.strides[dim] * steps[dim]);
        } else if *size != 1 {
            return None;
        }
    }
    (strides.len() == shape.len()).then(|| View {
        offset: view.offset + offset,
        strides,
        shape,
        ..*view
    })
}
