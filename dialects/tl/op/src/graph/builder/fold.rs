//! What is known about results when they are built: constants, views, sizes.

use super::*;

impl Builder {
    pub(super) fn fold(
        &mut self,
        op: &Op,
        operands: &[ValueId],
        ty: &Type,
    ) -> Built<Option<ValueId>> {
        if let Some(view) = self.view(op, operands, ty) {
            return Ok(Some(view));
        }
        // A uniform value is best represented by a fill.
        if matches!(op, Op::Fill { .. }) || !is_small(ty) {
            return Ok(None);
        }
        if !operands.iter().all(|value| self.is_constant(*value)) || has_symbols(op) {
            return Ok(None);
        }
        let mut tensors = vec![];
        for value in operands {
            tensors.extend(self.constant_of(*value)?);
        }
        let tensors: Vec<&Tensor> = tensors.iter().collect();
        let result = op.eval(&tensors)?;
        Ok(Some(self.tensor(&result)))
    }

    /// A constant of any size with another shape or type, or some of its rows: the same bytes.
    pub(super) fn view(&mut self, op: &Op, operands: &[ValueId], ty: &Type) -> Option<ValueId> {
        let constant = self.facts[operands.first()?.0].constant.clone()?;
        let bytes = match op {
            Op::Reshape { .. } => constant.bytes,
            Op::Bitcast { .. } if constant.strings.is_none() => constant.bytes,
            Op::Slice { offsets, sizes } => rows(&constant, offsets, sizes)?,
            _ => return None,
        };
        Some(self.constant(Constant::new(ty.known()?, bytes)))
    }

    /// The elements of a small integer result.
    pub(super) fn follow(
        &self,
        op: &Op,
        operands: &[ValueId],
        types: &[Type],
        ty: &Type,
    ) -> Option<Vec<Dim>> {
        let is_small = ty.dtype.size() < 4 && ty.dtype != DType::Bool;
        if ty.dtype.is_float() || ty.dtype == DType::String || is_small {
            return None;
        }
        let known = operands
            .iter()
            .zip(types)
            .map(|(value, ty)| Known { elements: self.elements(*value), shape: &ty.dims });
        sizes::evaluate(&op.as_compute(types)?, &known.collect::<Vec<_>>())
    }
}

/// The bytes of a box that consists of whole rows of a constant.
pub(super) fn rows(constant: &Constant, offsets: &[i64], sizes: &[i64]) -> Option<Bytes> {
    let shape = &constant.ty.shape;
    let whole = offsets.get(1..)?.iter().all(|offset| *offset == 0) && sizes[1..] == shape[1..];
    let row = constant.bytes.len().checked_div(usize::try_from(shape[0]).ok()?)?;
    if !whole || row * shape[0] as usize != constant.bytes.len() {
        return None;
    }
    let start = row * usize::try_from(offsets[0]).ok()?;
    Some(constant.bytes.slice(start..start + row * usize::try_from(sizes[0]).ok()?))
}

pub(super) fn is_small(ty: &Type) -> bool {
    ty.elements().known().is_some_and(|count| (0..=FOLDED).contains(&count))
}

pub(super) fn has_symbols(op: &Op) -> bool {
    let Op::Compute(compute) = op else { return false };
    let mut found = compute.dims.iter().any(|dim| dim.known().is_none());
    let over = compute.reduction.iter().flat_map(|reduction| &reduction.dims);
    found |= over.into_iter().any(|dim| dim.known().is_none());
    compute.body.walk(&mut |scalar| {
        found |= matches!(scalar, Scalar::Size(dim) if dim.known().is_none());
    });
    found
}

/// The elements of a constant of at most so many integers, as sizes.
pub(super) fn elements_of(constant: &Constant, limit: i64) -> Option<Vec<Dim>> {
    let count = constant.ty.elements().ok()?;
    let is_number = !constant.ty.dtype.is_float() && constant.ty.dtype != DType::String;
    if !is_number || i64::try_from(count).ok()? > limit {
        return None;
    }
    let values = constant.tensor().ok()?.to_i128()?;
    values.into_iter().map(|value| i64::try_from(value).ok().map(Dim::Known)).collect()
}
