//! How threads access memory: windows of larger tensors, and neighbouring elements at once.
use super::{super::nest::Nest, Emit};
use irc_mlir::{Attribute, Type as MlirType, attr};
use irc_tl::{Dim, Scalar, Type};

/// The strides of each operand that is a window of a larger tensor.
pub(super) type Windows<'s> = &'s [Option<&'s [i64]>];

/// A nest whose loads of windows are at the place in memory, and the types of its operands then.
pub(super) fn windowed<'t>(
    nest: &Nest,
    types: impl Iterator<Item = &'t Type>,
    strides: Windows<'_>,
) -> (Nest, Vec<Type>) {
    let types = types.zip(strides).map(|(ty, strides)| match strides {
        None => ty.clone(),
        Some(_) => Type::new(ty.dtype, [Dim::from(1)]),
    });
    let mut compute = nest.compute.clone();
    compute.body = in_windows(&compute.body, strides);
    let epilogue = nest.epilogue.as_ref().map(|epilogue| in_windows(epilogue, strides));
    (Nest { epilogue, ..Nest::of(compute) }, types.collect())
}

/// An expression whose loads of windows are at the place in memory.
pub(super) fn in_windows(scalar: &Scalar, strides: &[Option<&[i64]>]) -> Scalar {
    scalar.replace(&mut |part| match part {
        Scalar::Load(operand, at) => {
            let strides_of = strides.get(*operand).copied().flatten()?;
            let terms = at.iter().zip(strides_of).filter(|(_, stride)| **stride != 0);
            let terms =
                terms.map(|(index, stride)| in_windows(index, strides) * Scalar::index(*stride));
            let place = terms.reduce(|left, right| left + right).unwrap_or(Scalar::index(0));
            Some(Scalar::load(*operand, [place]))
        }
        _ => None,
    })
}

/// The alignment of neighbouring elements, as an attribute.
pub(super) fn aligned<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    element: MlirType<'c>,
    count: i64,
) -> Attribute<'c> {
    attr::i64(e.context, element_bytes(element).max(1) * count)
}

/// Bytes of an element in memory; 16 if its type has no size.
pub(super) fn element_bytes(element: MlirType<'_>) -> i64 {
    let text = element.to_string();
    let bits = text.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    bits.parse::<i64>().unwrap_or(128) / 8
}
