//! Compatibility of types with declared ones.

use crate::model::{AttributeKind, AttributeValue, ElementType, Shape, TensorType, Type, Value};
use crate::shapes::Unifier;

/// The type of a value, including a shape beside it.
pub(super) fn type_of(value: &Value) -> Option<Type> {
    let mut ty = value.ty.clone()?;
    if let (Type::Tensor(tensor) | Type::Sparse(tensor), Some(shape)) = (&mut ty, &value.shape)
        && tensor.shape.is_none()
    {
        tensor.shape = Some(shape.clone());
    }
    Some(ty)
}

/// Whether a value of one type is valid where another is declared, disregarding shapes.
pub(super) fn fits(declared: &Type, actual: &Type) -> bool {
    let inner = |declared: &Option<Box<Type>>, actual: &Option<Box<Type>>| match (declared, actual)
    {
        (Some(declared), Some(actual)) => fits(declared, actual),
        _ => true,
    };
    match (declared, actual) {
        (Type::Tensor(declared), Type::Tensor(actual))
        | (Type::Sparse(declared), Type::Sparse(actual)) => {
            let is_open = |element| element == ElementType::Undefined;
            declared.element == actual.element
                || is_open(declared.element)
                || is_open(actual.element)
        }
        (Type::Sequence(declared), Type::Sequence(actual))
        | (Type::Optional(declared), Type::Optional(actual)) => inner(declared, actual),
        (Type::Map { key: a, value: b }, Type::Map { key: c, value: d }) => a == c && inner(b, d),
        (Type::Tuple(declared), Type::Tuple(actual)) => {
            declared.len() == actual.len()
                && declared.iter().zip(actual).all(|(declared, actual)| fits(declared, actual))
        }
        (declared, actual) => declared == actual,
    }
}

/// The shape of a type.
pub(super) fn shape_of(ty: &Type) -> Option<&Shape> {
    ty.as_tensor().and_then(|tensor| tensor.shape.as_ref())
}

/// A declared type with the solution of its names at a use.
pub(super) fn applied(declared: &Value, unifier: &Unifier<'_>) -> Option<Type> {
    if parts(declared.ty.as_ref()?) > MAX_PARTS {
        return None;
    }
    let mut ty = type_of(declared)?;
    if let Type::Tensor(tensor) | Type::Sparse(tensor) = &mut ty {
        tensor.shape = tensor.shape.take().map(|shape| unifier.apply(&shape));
    }
    Some(ty)
}

/// Maximum size of a type that is tracked: each call copies it.
const MAX_PARTS: usize = 64;

/// Number of types and extents in a type.
fn parts(ty: &Type) -> usize {
    match ty {
        Type::Tensor(tensor) | Type::Sparse(tensor) => {
            1 + tensor.shape.as_ref().map_or(0, |shape| shape.dims.len())
        }
        Type::Sequence(of) | Type::Optional(of) | Type::Map { value: of, .. } => {
            1 + of.as_deref().map_or(0, parts)
        }
        Type::Tuple(types) => types.iter().fold(1, |sum, of| sum + parts(of)),
        Type::Handle | Type::Opaque { .. } => 1,
    }
}

/// The more specific of two compatible types of one value.
pub(super) fn better(a: Type, b: Type) -> Type {
    let sizes = |ty: &Type| {
        let dims = shape_of(ty).map(|shape| &shape.dims[..]);
        use crate::model::Dim;
        let known = |dim: &&Dim| matches!(dim, Dim::Size(_) | Dim::Variable(_));
        dims.map(|dims| {
            let wild = dims.iter().any(|dim| matches!(dim, Dim::Wildcard(_)));
            (!wild, dims.iter().filter(known).count())
        })
    };
    if sizes(&b) > sizes(&a) { b } else { a }
}

/// Whether a literal is valid for a declared type: numbers and strings are tensors of rank 0, lists of them
/// of rank 1 or sequences.
pub(super) fn literal_fits(declared: &Value, value: &AttributeValue) -> bool {
    use AttributeKind as K;
    let Some(ty) = &declared.ty else { return true };
    let Some(kind) = value.kind() else { return true };
    let rank = declared.tensor_shape().filter(|shape| !has_wildcard(shape));
    let rank = rank.map(|shape| shape.dims.len());
    let of = |tensor: &TensorType, list: bool| {
        rank.is_none_or(|rank| rank == usize::from(list))
            && is_kind(tensor.element, if list { single(kind) } else { kind })
    };
    match (ty, value) {
        (Type::Tensor(tensor), AttributeValue::Tensor(found)) => {
            tensor.element == found.element && rank.is_none_or(|rank| rank == found.dims.len())
        }
        (Type::Tensor(tensor), _) if matches!(kind, K::Ints | K::Floats | K::Strings) => {
            of(tensor, true)
        }
        (Type::Tensor(tensor), _) => of(tensor, false),
        (Type::Sequence(Some(inner)), AttributeValue::Tensors(all)) => all
            .iter()
            .all(|tensor| inner.as_tensor().is_some_and(|ty| ty.element == tensor.element)),
        (Type::Sequence(Some(inner)), _) => {
            let is_list = matches!(kind, K::Ints | K::Floats | K::Strings);
            is_list && inner.as_tensor().is_some_and(|ty| is_kind(ty.element, single(kind)))
        }
        (Type::Sparse(_), _) => kind == K::SparseTensor,
        // Values without a literal, such as graphs, are declared as handles.
        (Type::Handle, _) => {
            matches!(kind, K::Graph | K::Graphs | K::Type | K::Types | K::Shape | K::Shapes)
        }
        _ => false,
    }
}

fn has_wildcard(shape: &Shape) -> bool {
    shape.dims.iter().any(|dim| matches!(dim, crate::model::Dim::Wildcard(_)))
}

/// The kind of one element of a list.
fn single(kind: AttributeKind) -> AttributeKind {
    match kind {
        AttributeKind::Ints => AttributeKind::Int,
        AttributeKind::Floats => AttributeKind::Float,
        AttributeKind::Strings => AttributeKind::String,
        other => other,
    }
}

/// Whether literals of a kind are elements of a type.
fn is_kind(element: ElementType, kind: AttributeKind) -> bool {
    use ElementType as E;
    match element {
        E::Float | E::Double | E::Float16 | E::Bfloat16 => kind == AttributeKind::Float,
        E::String => kind == AttributeKind::String,
        E::Complex64 | E::Complex128 => false,
        _ => kind == AttributeKind::Int,
    }
}
