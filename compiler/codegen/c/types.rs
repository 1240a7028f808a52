//! The representation of types of the `llvm` dialect in C.
//!
//! Integers are unsigned, so that they wrap; `i1` is `bool`, `f16` and `bf16` are their bits, and pointers
//! `void *`. A vector is one of GCC's, padded to a power of two of lanes: the contents of padding lanes are
//! undefined. Pointers in a vector are `uint64_t`, and the lanes of a mask, a vector of `i1`, are 0 or -1
//! in `int32_t`. The values of an array or struct are separate variables.
use super::super::layout::{Element, Shape};

/// Size in bytes of the widest vector that is passed by value: every x86-64 has a register for it. A wider
/// vector is passed by address, as its calling convention depends on the compiler's flags.
pub const BY_VALUE: u32 = 16;

/// A C type of a lane: signed, unsigned or float, with its width in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// `int<bits>_t`.
    Signed(u32),
    /// `uint<bits>_t`.
    Unsigned(u32),
    /// `float` or `double`.
    Float(u32),
}

impl Lane {
    /// The lane type of an element.
    pub fn of(element: Element) -> Self {
        match element {
            Element::Int(1) => Lane::Signed(32),
            Element::Float | Element::Double => Lane::Float(element.lane_bits()),
            other => Lane::Unsigned(other.lane_bits()),
        }
    }

    /// Width of a lane in bits.
    pub fn bits(self) -> u32 {
        let (Lane::Signed(bits) | Lane::Unsigned(bits) | Lane::Float(bits)) = self;
        bits
    }

    /// The C type.
    pub fn c(self) -> String {
        match self {
            Lane::Float(32) => "float".to_owned(),
            Lane::Float(_) => "double".to_owned(),
            Lane::Signed(128) => "i128".to_owned(),
            Lane::Unsigned(128) => "u128".to_owned(),
            Lane::Signed(bits) => format!("int{bits}_t"),
            Lane::Unsigned(bits) => format!("uint{bits}_t"),
        }
    }

    /// The type as part of a name.
    pub fn short(self) -> String {
        match self {
            Lane::Float(bits) => format!("f{bits}"),
            Lane::Signed(bits) => format!("i{bits}"),
            Lane::Unsigned(bits) => format!("u{bits}"),
        }
    }
}

/// Number of lanes of the C vector that holds so many.
pub fn padded(lanes: u32) -> u32 {
    lanes.next_power_of_two()
}

/// Whether values are too wide to be passed by value.
pub fn is_wide(shape: Shape) -> bool {
    shape.lanes.is_some_and(|lanes| padded(lanes) * shape.element.lane_bits() / 8 > BY_VALUE)
}

/// The C type of a scalar.
pub fn scalar(element: Element) -> String {
    match element {
        Element::Int(1) => "bool".to_owned(),
        Element::Pointer => "void *".to_owned(),
        other => Lane::of(other).c(),
    }
}

/// A shape as part of a name; a padded vector has its unpadded number of lanes.
pub fn short(shape: Shape) -> String {
    let element = match shape.element {
        Element::Int(1) => "bool".to_owned(),
        // Types with the same representation may need different computations.
        Element::Half => "f16".to_owned(),
        Element::Bfloat => "bf16".to_owned(),
        Element::Pointer => "ptr".to_owned(),
        other => Lane::of(other).short(),
    };
    match shape.lanes {
        None => element,
        Some(lanes) if padded(lanes) == lanes => format!("v{lanes}{element}"),
        Some(lanes) => format!("{lanes}of{}{element}", padded(lanes)),
    }
}

/// A declaration of a name with a type.
pub fn declared(ty: &str, name: &str) -> String {
    let space = if ty.ends_with('*') { "" } else { " " };
    format!("{ty}{space}{name}")
}

/// A declaration of a constant.
pub fn constant(ty: &str, name: &str) -> String {
    if ty.ends_with('*') { format!("{ty}const {name}") } else { format!("const {ty} {name}") }
}
