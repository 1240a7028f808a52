//! How types of the `llvm` dialect are held in C.
//!
//! Integers are unsigned, so that they wrap; `i1` is `bool`, `f16` and `bf16` are their bits, and
//! pointers `void *`. A vector is one of GCC's, of the next power of two of lanes: those beyond its
//! own hold anything. Pointers in a vector are `uint64_t`, and the lanes of a mask, a vector of `i1`,
//! are zero or minus one in `int32_t`. An array or struct is the values in it, one by one.
use super::super::layout::{Element, Shape};

/// Bytes of the widest vector that is passed by value: what every x86-64 has a register for. A
/// wider one is passed by address, as its convention depends on the compiler's flags.
pub const BY_VALUE: u32 = 16;

/// A C type of a lane: signed, unsigned or float, and its bits.
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
    /// What the lanes of an element are.
    pub fn of(element: Element) -> Self {
        match element {
            Element::Int(1) => Lane::Signed(32),
            Element::Float | Element::Double => Lane::Float(element.lane_bits()),
            other => Lane::Unsigned(other.lane_bits()),
        }
    }

    /// Bits of a lane.
    pub fn bits(self) -> u32 {
        let (Lane::Signed(bits) | Lane::Unsigned(bits) | Lane::Float(bits)) = self;
        bits
    }

    /// The type in C.
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

/// Lanes of the C vector that holds so many.
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

/// A shape as part of a name; of vectors that are not full, with their own number of lanes.
pub fn short(shape: Shape) -> String {
    let element = match shape.element {
        Element::Int(1) => "bool".to_owned(),
        // What is held alike need not be computed alike.
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

/// A type and a name that has it, as in a declaration.
pub fn declared(ty: &str, name: &str) -> String {
    let space = if ty.ends_with('*') { "" } else { " " };
    format!("{ty}{space}{name}")
}

/// The same of something that does not change.
pub fn constant(ty: &str, name: &str) -> String {
    if ty.ends_with('*') { format!("{ty}const {name}") } else { format!("const {ty} {name}") }
}
