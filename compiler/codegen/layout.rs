//! Types of the `llvm` dialect, shared by all code generators: scalars and vectors, and the offsets of the
//! parts of a value in memory on x86-64.
use irc_mlir::llvm::Type;

/// The type of a scalar, or of a lane of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// An integer of 1, 8, 16, 32, 64 or 128 bits.
    Int(u32),
    /// IEEE binary16.
    Half,
    /// bfloat16.
    Bfloat,
    /// IEEE binary32.
    Float,
    /// IEEE binary64.
    Double,
    /// A pointer.
    Pointer,
}

impl Element {
    /// Width of a lane in a register in bits: masks have lanes of 32 bits.
    pub fn lane_bits(self) -> u32 {
        match self {
            Element::Int(1) | Element::Float => 32,
            Element::Int(bits) => bits,
            Element::Half | Element::Bfloat => 16,
            Element::Double | Element::Pointer => 64,
        }
    }

    /// Size in memory in bytes.
    pub fn bytes(self) -> u32 {
        if self == Element::Int(1) { 1 } else { self.lane_bits() / 8 }
    }

    /// Whether values are floating-point.
    pub fn is_float(self) -> bool {
        matches!(self, Element::Half | Element::Bfloat | Element::Float | Element::Double)
    }

    /// Whether values are converted to `f32` for computations.
    pub fn is_small_float(self) -> bool {
        matches!(self, Element::Half | Element::Bfloat)
    }
}

/// A scalar or a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The type of the scalar or of its lanes.
    pub element: Element,
    /// The number of lanes of a vector; `None` for a scalar.
    pub lanes: Option<u32>,
}

impl Shape {
    /// A scalar.
    pub fn scalar(element: Element) -> Self {
        Shape { element, lanes: None }
    }

    /// The same number of lanes with another element type.
    pub fn of(self, element: Element) -> Self {
        Shape { element, ..self }
    }

    /// The shape of a type; `None` for arrays, structs and integers of other widths.
    pub fn of_type(ty: &Type) -> Option<Self> {
        if let Type::Vector(element, lanes) = ty {
            let Shape { element, lanes: None } = Self::of_type(element)? else { return None };
            let fits = element != Element::Int(128);
            return fits.then_some(Shape { element, lanes: Some(*lanes) });
        }
        let element = match ty {
            Type::Integer(bits @ (1 | 8 | 16 | 32 | 64 | 128)) => Element::Int(*bits),
            Type::Half => Element::Half,
            Type::Bfloat => Element::Bfloat,
            Type::Float => Element::Float,
            Type::Double => Element::Double,
            Type::Pointer => Element::Pointer,
            _ => return None,
        };
        Some(Self::scalar(element))
    }
}

/// The leaves of a type with their offsets in memory; `None` if the type is unsupported.
pub fn leaves(ty: &Type) -> Option<Vec<(Shape, u64)>> {
    let mut found = Vec::new();
    collect(ty, 0, &mut found)?;
    Some(found)
}

fn collect(ty: &Type, offset: u64, found: &mut Vec<(Shape, u64)>) -> Option<()> {
    match ty {
        Type::Array(element, count) => {
            let stride = size(element)?;
            (0..*count).try_for_each(|index| collect(element, offset + index * stride, found))
        }
        Type::Struct { fields, .. } => {
            let mut fields = fields.iter().enumerate();
            fields.try_for_each(|(at, field)| collect(field, offset + field_offset(ty, at)?, found))
        }
        Type::Void => Some(()),
        _ => {
            found.push((Shape::of_type(ty)?, offset));
            Some(())
        }
    }
}

/// Bytes from one element of an array to the next.
pub fn size(ty: &Type) -> Option<u64> {
    let bytes = match ty {
        Type::Void => 0,
        Type::Array(element, count) => return Some(size(element)? * count),
        Type::Struct { fields, .. } => match fields.len().checked_sub(1) {
            Some(last) => field_offset(ty, last)? + size(&fields[last])?,
            None => 0,
        },
        Type::Vector(..) => vector_bytes(Shape::of_type(ty)?),
        _ => u64::from(Shape::of_type(ty)?.element.bytes()),
    };
    Some(bytes.next_multiple_of(align(ty)?))
}

/// Size of a vector's lanes in memory in bytes; lanes of one bit are packed.
pub fn vector_bytes(shape: Shape) -> u64 {
    let lanes = u64::from(shape.lanes.unwrap_or(1));
    match shape.element {
        Element::Int(1) => lanes.div_ceil(8),
        element => lanes * u64::from(element.bytes()),
    }
}

/// The natural alignment of a type.
pub fn align(ty: &Type) -> Option<u64> {
    match ty {
        Type::Void => Some(1),
        Type::Array(element, _) => align(element),
        Type::Struct { packed: true, .. } => Some(1),
        Type::Struct { fields, .. } => {
            fields.iter().try_fold(1, |most, field| Some(align(field)?.max(most)))
        }
        Type::Vector(..) => Some(vector_bytes(Shape::of_type(ty)?).next_power_of_two()),
        _ => Some(u64::from(Shape::of_type(ty)?.element.bytes())),
    }
}

/// The offset of a field of a struct.
pub fn field_offset(ty: &Type, index: usize) -> Option<u64> {
    let Type::Struct { fields, packed } = ty else { return None };
    let mut offset = 0_u64;
    for (at, field) in fields.iter().enumerate() {
        let align = if *packed { 1 } else { align(field)? };
        offset = offset.next_multiple_of(align);
        if at == index {
            return Some(offset);
        }
        offset += size(field)?;
    }
    None
}
