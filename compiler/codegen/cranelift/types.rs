//! How types of the `llvm` dialect are held in Cranelift's.
//!
//! A value is a list of parts, each one Cranelift value. A scalar is one part; a vector is as many
//! registers of 128 bits as its lanes fill, the last perhaps in part; an array or struct is the
//! parts of its fields. Pointers are `i64`. Half floats are their bits in `i16`. A lone `i1` is
//! zero or one in `i8`; the lanes of a vector of `i1` are zero or all ones in 32 bits, which is what
//! comparisons of 32-bit lanes give.
use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I64, I128, Type as Clif};
use irc_mlir::llvm::Type;

/// What a scalar, or a lane of a vector, is.
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
    /// Bits of a lane in a register.
    pub fn lane_bits(self) -> u32 {
        match self {
            Element::Int(1) | Element::Float => 32,
            Element::Int(bits) => bits,
            Element::Half | Element::Bfloat => 16,
            Element::Double | Element::Pointer => 64,
        }
    }

    /// Bytes in memory.
    pub fn bytes(self) -> u32 {
        if self == Element::Int(1) { 1 } else { self.lane_bits() / 8 }
    }

    /// The Cranelift type of a scalar.
    pub fn scalar(self) -> Clif {
        if self == Element::Int(1) { I8 } else { self.lane() }
    }

    /// The Cranelift type of a lane.
    pub fn lane(self) -> Clif {
        match self {
            Element::Float => F32,
            Element::Double => F64,
            other => int(other.lane_bits()),
        }
    }

    /// Whether values are floating-point.
    pub fn is_float(self) -> bool {
        matches!(self, Element::Half | Element::Bfloat | Element::Float | Element::Double)
    }

    /// Whether values are computed on after conversion to `f32`.
    pub fn is_small_float(self) -> bool {
        matches!(self, Element::Half | Element::Bfloat)
    }
}

/// The integer type of so many bits.
pub fn int(bits: u32) -> Clif {
    match bits {
        8 => I8,
        16 => I16,
        32 => I32,
        64 => I64,
        _ => I128,
    }
}

/// A scalar or a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What it consists of.
    pub element: Element,
    /// How many lanes a vector has; nothing for a scalar.
    pub lanes: Option<u32>,
}

impl Shape {
    /// A scalar.
    pub fn scalar(element: Element) -> Self {
        Shape { element, lanes: None }
    }

    /// The same number of lanes of another element.
    pub fn of(self, element: Element) -> Self {
        Shape { element, ..self }
    }

    /// The shape of a type; nothing for arrays, structs and integers of odd widths.
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

    /// Lanes of a register.
    pub fn lanes_per_part(self) -> u32 {
        128 / self.element.lane_bits()
    }

    /// How many Cranelift values hold a value.
    pub fn parts(self) -> usize {
        self.lanes.map_or(1, |lanes| lanes.div_ceil(self.lanes_per_part()) as usize)
    }

    /// The Cranelift type of each part.
    pub fn part(self) -> Clif {
        match self.lanes {
            None => self.element.scalar(),
            Some(_) => register(self.element.lane()),
        }
    }
}

/// A register full of lanes.
pub fn register(lane: Clif) -> Clif {
    lane.by(128 / lane.bits()).unwrap_or(lane)
}

/// The leaves of a type with their offsets in memory; nothing where there is no such value.
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

/// The Cranelift types that hold a value of a type.
pub fn parts(ty: &Type) -> Option<Vec<Clif>> {
    let leaves = leaves(ty)?;
    let parts = leaves.iter().flat_map(|(shape, _)| vec![shape.part(); shape.parts()]);
    Some(parts.collect())
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

/// Bytes that a vector's lanes take in memory; lanes of one bit are packed.
pub fn vector_bytes(shape: Shape) -> u64 {
    let lanes = u64::from(shape.lanes.unwrap_or(1));
    match shape.element {
        Element::Int(1) => lanes.div_ceil(8),
        element => lanes * u64::from(element.bytes()),
    }
}

/// The alignment that a type has by itself.
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

/// Where a field of a struct lies.
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

/// The type of an element of an array or struct, with how many parts stand before it.
pub fn element_of(ty: &Type, index: usize) -> Option<(&Type, usize)> {
    match ty {
        Type::Array(element, count) if (index as u64) < *count => {
            Some((element, index * parts(element)?.len()))
        }
        Type::Struct { fields, .. } => {
            let before = fields.get(..index)?.iter();
            let before = before.map(|field| Some(parts(field)?.len()));
            Some((fields.get(index)?, before.sum::<Option<usize>>()?))
        }
        _ => None,
    }
}
