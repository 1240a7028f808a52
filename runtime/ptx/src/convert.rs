//! `cvt`: conversions between types.

use crate::float::{self, BF16, E4M3, E5M2, F16, F32, Format, Rounding, TF32};
use crate::opcode::Opcode;
use crate::row::{Unary, unary};
use crate::types::Type;

/// A conversion.
#[derive(Debug, Clone, Copy)]
pub struct Conversion {
    to: Type,
    from: Type,
    rounding: Rounding,
    /// Whether the result is an integral number: `.rni`, `.rzi`, `.rmi`, `.rpi`.
    integral: bool,
    saturate: bool,
    finite: bool,
    flush: bool,
    relu: bool,
    /// Bits of the register of the result, to which it is extended.
    bits: u32,
}

impl Conversion {
    /// The conversion of an instruction whose result has some bits; `None` if there is none.
    pub fn new(op: &Opcode<'_>, bits: u32) -> Option<Self> {
        let known = [
            "rn",
            "rna",
            "rz",
            "rm",
            "rp",
            "rni",
            "rzi",
            "rmi",
            "rpi",
            "sat",
            "satfinite",
            "ftz",
            "relu",
        ];
        let [to, from] = op.types()[..] else { return None };
        if !op.only(&known) || matches!(to, Type::Pred | Type::B128) {
            return None;
        }
        Some(Self {
            to,
            from,
            rounding: op.rounding(),
            integral: op.any(&["rni", "rzi", "rmi", "rpi"]),
            saturate: op.has("sat"),
            finite: op.has("satfinite"),
            flush: op.has("ftz"),
            relu: op.has("relu"),
            bits,
        })
    }

    /// A function of rows, for conversions that are frequent.
    pub fn fast(&self) -> Option<Unary> {
        if self.saturate || self.relu || self.flush || self.finite {
            return None;
        }
        Some(match (self.to, self.from, self.bits) {
            (Type::U64 | Type::S64, Type::U32, 64) => unary!(|a| a & 0xffff_ffff),
            (Type::U64 | Type::S64, Type::S32, 64) => unary!(|a| a as i32 as i64 as u64),
            (Type::U32 | Type::S32, Type::U64 | Type::S64 | Type::U32 | Type::S32, 32) => {
                unary!(|a| a & 0xffff_ffff)
            }
            (Type::U16 | Type::S16, from, 16) if !from.is_float() && from.bits() >= 16 => {
                unary!(|a| a & 0xffff)
            }
            (Type::F32, Type::F16, 32) => {
                unary!(|a| u64::from(canonical(float::from_f16(a as u16))))
            }
            (Type::F32, Type::Bf16, 32) => {
                unary!(|a| u64::from(canonical(float::from_bf16(a as u16))))
            }
            (Type::Bf16, Type::F32, 16) if self.rounding == Rounding::Nearest => {
                unary!(|a| u64::from(float::to_bf16(f32::from_bits(a as u32))))
            }
            _ => return None,
        })
    }

    /// Converts a value.
    pub fn apply(&self, bits: u64) -> u64 {
        match (self.from.is_float(), self.to.is_float()) {
            (false, false) => self.integer_to_integer(integer(bits, self.from)),
            (false, true) => self.integer_to_float(integer(bits, self.from)),
            (true, false) => self.float_to_integer(self.float(bits)),
            (true, true) => self.float_to_float(bits),
        }
    }

    /// Converts two values to halves of the result; the first becomes the upper one.
    pub fn pack(&self, high: u64, low: u64) -> u64 {
        let width = self.to.bits() / 2;
        self.narrow(self.float(low)) | self.narrow(self.float(high)) << width
    }

    fn extended(&self, value: i128) -> u64 {
        let bits = self.to.bits();
        let value = if self.to.is_signed() {
            (value << (128 - bits)) >> (128 - bits)
        } else {
            value & ((1 << bits) - 1)
        };
        let register = self.bits.max(bits).min(64);
        (value as u64) & (u64::MAX >> (64 - register))
    }

    fn limits(&self) -> (i128, i128) {
        let bits = self.to.bits();
        if self.to.is_signed() {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        }
    }

    fn integer_to_integer(&self, value: i128) -> u64 {
        let (least, most) = self.limits();
        self.extended(if self.saturate { value.clamp(least, most) } else { value })
    }

    fn integer_to_float(&self, value: i128) -> u64 {
        let nearest = value as f64;
        let error = (value - nearest as i128) as f64;
        if self.to == Type::F64 {
            return float::direct(nearest, error, self.rounding).to_bits();
        }
        // The sum rounds to odd: a second rounding gives what one rounding of the integer gives.
        let exact = float::add(nearest, error);
        let exact = if exact == nearest && error != 0.0 {
            let outward = (error > 0.0) == (nearest > 0.0);
            let bits = nearest.to_bits();
            f64::from_bits(if bits & 1 == 1 {
                bits
            } else if outward {
                bits + 1
            } else {
                bits - 1
            })
        } else {
            exact
        };
        self.narrow(exact)
    }

    fn float_to_integer(&self, value: f64) -> u64 {
        let (least, most) = self.limits();
        if value.is_nan() {
            let wide = self.from == Type::F64 || self.to.bits() == 64;
            return if wide { 1 << (self.to.bits() - 1) } else { 0 };
        }
        let integral = integral(value, self.rounding);
        // Casts of floats saturate.
        self.extended((integral as i128).clamp(least, most))
    }

    fn float_to_float(&self, bits: u64) -> u64 {
        match (self.to, self.from) {
            (Type::F16x2, Type::E4m3x2 | Type::E5m2x2) => {
                let format = if self.from == Type::E4m3x2 { E4M3 } else { E5M2 };
                let half = |byte: u64| self.narrow(float::value(byte as u32 & 0xff, format));
                half(bits) | half(bits >> 8) << 16
            }
            (Type::E4m3x2 | Type::E5m2x2, Type::F16x2) => {
                let half = |bits: u64| self.narrow(f64::from(float::from_f16(bits as u16)));
                half(bits) | half(bits >> 16) << 8
            }
            _ => {
                let value = self.float(bits);
                let value = if self.integral { integral(value, self.rounding) } else { value };
                self.narrow(value)
            }
        }
    }

    fn float(&self, bits: u64) -> f64 {
        match self.from {
            Type::F64 => f64::from_bits(bits),
            Type::F16 => f64::from(float::from_f16(bits as u16)),
            Type::Bf16 => f64::from(float::from_bf16(bits as u16)),
            _ => {
                let value = f32::from_bits(bits as u32);
                f64::from(if self.flush { float::flush(value) } else { value })
            }
        }
    }

    /// Rounds to an element of the result.
    fn narrow(&self, value: f64) -> u64 {
        let value = if self.saturate { float::saturate(value) } else { value };
        let value = if self.relu && value < 0.0 { 0.0 } else { value };
        let format: Format = match self.to {
            Type::F64 => return value.to_bits(),
            Type::F16 | Type::F16x2 => F16,
            Type::Bf16 | Type::Bf16x2 => BF16,
            Type::E4m3 | Type::E4m3x2 => E4M3,
            Type::E5m2 | Type::E5m2x2 => E5M2,
            Type::Tf32 => TF32,
            _ => F32,
        };
        let rounding = if self.integral { Rounding::Nearest } else { self.rounding };
        let bits = float::round(value, format, rounding);
        let bits = if self.finite && !value.is_nan() { finite(bits, format) } else { bits };
        let bits = if self.flush && format == F32 {
            float::flush(f32::from_bits(bits)).to_bits()
        } else {
            bits
        };
        if self.to == Type::Tf32 { u64::from(bits) << 13 } else { u64::from(bits) }
    }
}

/// The largest number of a format in place of one that is not finite.
fn finite(bits: u32, format: Format) -> u32 {
    let magnitude = (1 << (format.mantissa + format.exponent)) - 1;
    let infinity =
        if format.finite { magnitude } else { ((1 << format.exponent) - 1) << format.mantissa };
    if bits & magnitude >= infinity { (bits & !magnitude) | (infinity - 1) } else { bits }
}

fn canonical(value: f32) -> u32 {
    if value.is_nan() { 0x7fff_ffff } else { value.to_bits() }
}

fn integral(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
        _ => value.round_ties_even(),
    }
}

/// The integer that the low bits represent.
fn integer(bits: u64, ty: Type) -> i128 {
    match ty {
        Type::S8 => (bits as i8).into(),
        Type::S16 => (bits as i16).into(),
        Type::S32 => (bits as i32).into(),
        Type::S64 => (bits as i64).into(),
        Type::U8 | Type::B8 => (bits as u8).into(),
        Type::U16 | Type::B16 => (bits as u16).into(),
        Type::U32 | Type::B32 => (bits as u32).into(),
        _ => bits.into(),
    }
}
