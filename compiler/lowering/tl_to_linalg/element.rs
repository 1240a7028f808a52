//! Element types as code generation sees them.
use irc_dialects::tl;
use irc_mlir::{Context, Type, ty};
use irc_tl::DType;

/// An element type: a float, or an integer with a sign that its storage type does not show.
#[derive(Clone, Copy, PartialEq)]
pub struct Element<'c> {
    /// The signless storage type.
    pub storage: Type<'c>,
    /// Width in bits.
    pub bits: u32,
    /// What the bits mean.
    pub kind: Kind,
}

/// What an element's bits mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `f16`, `bf16`, `f32` or `f64`.
    Float,
    /// Two's complement.
    Signed,
    /// Unsigned, booleans included.
    Unsigned,
}

impl<'c> Element<'c> {
    /// The element for an MLIR type; `None` for types that kernels do not compute with.
    pub fn of(context: &'c Context, element: Type<'c>) -> Option<Self> {
        let text = element.to_string();
        let made = |storage: &str, bits, kind| Element {
            storage: ty::parse(context, storage),
            bits,
            kind,
        };
        Some(match text.as_str() {
            "f16" | "bf16" => made(&text, 16, Kind::Float),
            "f32" => made(&text, 32, Kind::Float),
            "f64" => made(&text, 64, Kind::Float),
            "i1" => made("i1", 1, Kind::Unsigned),
            "i8" | "i16" | "i32" | "i64" => made(&text, text[1..].parse().ok()?, Kind::Signed),
            "ui8" | "ui16" | "ui32" | "ui64" => {
                made(&text[1..], text[2..].parse().ok()?, Kind::Unsigned)
            }
            _ => return None,
        })
    }

    /// `f32`.
    pub fn f32(context: &'c Context) -> Self {
        Element { storage: ty::parse(context, "f32"), bits: 32, kind: Kind::Float }
    }

    /// Whether arithmetic widens to `f32` and rounds back.
    pub fn is_half(&self) -> bool {
        self.kind == Kind::Float && self.bits == 16
    }

    /// The integer that a constant of this type holds: without its fraction, within the type's range,
    /// 0 for NaN, and 1 for every `true`.
    pub fn saturate(&self, value: f64) -> i128 {
        let value = if self.bits == 1 { f64::from(value != 0.0) } else { value };
        let magnitude = if self.kind == Kind::Signed { self.bits - 1 } else { self.bits };
        let low = if self.kind == Kind::Signed { -(1i128 << magnitude) } else { 0 };
        (value as i128).clamp(low, (1i128 << magnitude) - 1)
    }

    /// The type arithmetic is done in.
    pub fn compute(&self, context: &'c Context) -> Self {
        if self.is_half() { Self::f32(context) } else { *self }
    }
}

/// A tensor type with its element made signless; sizes that depend on symbols stay.
pub fn signless_tensor<'c>(context: &'c Context, tensor: Type<'c>) -> Option<Type<'c>> {
    let mut ty = tl::type_of(tensor).ok()?;
    ty.dtype = match ty.dtype {
        DType::U8 => DType::I8,
        DType::U16 => DType::I16,
        DType::U32 => DType::I32,
        DType::U64 => DType::I64,
        other => other,
    };
    Some(tl::type_to_mlir(context, &ty))
}
