//! The representation of types of the `llvm` dialect in Cranelift.
//!
//! A value is a list of parts, each one Cranelift value. A scalar is one part; a vector is as many
//! registers of 128 bits as its lanes need, the last possibly only in part; an array or struct is the parts
//! of its fields. Pointers are `i64`. Half floats are their bits in `i16`. A lone `i1` is zero or one in
//! `i8`; the lanes of a vector of `i1` are zero or all ones in 32 bits, as in the results of comparisons of
//! 32-bit lanes.
use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I64, I128, Type as Clif};
use irc_mlir::llvm::Type;

pub use crate::codegen::layout::{Element, Shape, align, leaves, size, vector_bytes};

impl Element {
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

impl Shape {
    /// Number of lanes of a register.
    pub fn lanes_per_part(self) -> u32 {
        128 / self.element.lane_bits()
    }

    /// Number of Cranelift values of a value.
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

/// The Cranelift types that hold a value of a type.
pub fn parts(ty: &Type) -> Option<Vec<Clif>> {
    let leaves = leaves(ty)?;
    let parts = leaves.iter().flat_map(|(shape, _)| vec![shape.part(); shape.parts()]);
    Some(parts.collect())
}

/// The type of an element of an array or struct, and the number of parts before it.
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
