//! Element types as code generation sees them.
use irc_dialects::tl;
use irc_mlir::{Context, Type, ty};
use irc_tl::{DType, Tensor, TensorType};

/// An element type: a float, or an integer with a signedness that its storage type does not show.
#[derive(Clone, Copy, PartialEq)]
pub struct Element<'c> {
    /// The signless storage type.
    pub storage: Type<'c>,
    /// Width in bits.
    pub bits: u32,
    /// The interpretation of the bits.
    pub kind: Kind,
    /// The type, if it is one that no processor computes with: one byte in memory and as a value,
    /// for an integer the number itself. Only kernels of loops have such elements.
    pub small: Option<DType>,
}

/// The interpretation of an element's bits.
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
            small: None,
        };
        Some(match text.as_str() {
            "f16" | "bf16" => made(&text, 16, Kind::Float),
            "f32" => made(&text, 32, Kind::Float),
            "f64" => made(&text, 64, Kind::Float),
            "i1" => made("i1", 1, Kind::Unsigned),
            "i8" | "i16" | "i32" | "i64" => made(&text, text[1..].parse().ok()?, Kind::Signed),
            // The handle of a string.
            "si64" => made("i64", 64, Kind::Signed),
            "ui8" | "ui16" | "ui32" | "ui64" => {
                made(&text[1..], text[2..].parse().ok()?, Kind::Unsigned)
            }
            _ => return None,
        })
    }

    /// The element for a small type; `None` for others.
    pub fn of_small(context: &'c Context, dtype: DType) -> Option<Self> {
        let kind = match dtype {
            _ if dtype.is_float() => Kind::Float,
            _ if dtype.is_signed_integer() => Kind::Signed,
            _ => Kind::Unsigned,
        };
        let storage = ty::parse(context, "i8");
        dtype.is_small().then_some(Element {
            storage,
            bits: dtype.bits(),
            kind,
            small: Some(dtype),
        })
    }

    /// `f32`.
    pub fn f32(context: &'c Context) -> Self {
        Element { storage: ty::parse(context, "f32"), bits: 32, kind: Kind::Float, small: None }
    }

    /// Whether it is a 16-bit float, which is widened to `f32` for arithmetic and rounded back.
    pub fn is_half(&self) -> bool {
        self.kind == Kind::Float && self.bits == 16
    }

    /// Whether arithmetic is done in a wider float and rounded back.
    pub fn is_narrow_float(&self) -> bool {
        self.kind == Kind::Float && self.bits <= 16
    }

    /// The value of an integer constant of this type: truncated, saturated to the type's range, 0 for
    /// NaN, and 1 for every nonzero `bool`.
    pub fn saturate(&self, value: f64) -> i128 {
        let value = if self.bits == 1 { f64::from(value != 0.0) } else { value };
        let magnitude = if self.kind == Kind::Signed { self.bits - 1 } else { self.bits };
        let low = if self.kind == Kind::Signed { -(1i128 << magnitude) } else { 0 };
        (value as i128).clamp(low, (1i128 << magnitude) - 1)
    }

    /// The compute type. Sums of powers of two are too far apart for an `f32`.
    pub fn compute(&self, context: &'c Context) -> Self {
        match self.small {
            Some(DType::F8E8M0) => {
                Element { storage: ty::parse(context, "f64"), bits: 64, small: None, ..*self }
            }
            Some(dtype) if !dtype.is_float() => Element { bits: 8, small: None, ..*self },
            Some(_) => Self::f32(context),
            None if self.is_half() => Self::f32(context),
            None => *self,
        }
    }

    /// The code of a number of a small type.
    pub fn code(dtype: DType, value: f64) -> u8 {
        let scalar = Tensor::from_f64(TensorType::new(dtype, []), &[value]);
        scalar.map_or(0, |scalar| scalar.bytes()[0])
    }
}

/// A tensor type with a signless element type; symbolic sizes do not change.
pub fn signless_tensor<'c>(context: &'c Context, tensor: Type<'c>) -> Option<Type<'c>> {
    let mut ty = tl::type_of(tensor).ok()?;
    ty.dtype = match ty.dtype {
        DType::U8 => DType::I8,
        DType::U16 => DType::I16,
        DType::U32 => DType::I32,
        DType::U64 | DType::String => DType::I64,
        _ => return Some(tensor),
    };
    Some(tl::type_to_mlir(context, &ty))
}
