//! Arithmetic, logic and comparisons: the function of rows for each operation.
//!
//! Each instruction is defined here only: the compiler selects by operation, modifiers and type.

use crate::float::{self, BF16, F16, F32, Rounding};
use crate::opcode::Opcode;
use crate::row::{Binary, Compare, Ternary, Unary, binary, compare, ternary, unary};
use crate::types::Type;
use std::cmp::Ordering;

/// A function of an expression for each integer type; the values have the type `T`, and `W` is twice as wide.
macro_rules! integers {
    ($kind:ident, $ty:expr, |$($v:ident),+| $e:expr) => {
        match $ty {
            Type::U16 | Type::B16 => Some(integers!(@ $kind u16 u16 u32, |$($v),+| $e)),
            Type::S16 => Some(integers!(@ $kind i16 u16 i32, |$($v),+| $e)),
            Type::U32 | Type::B32 => Some(integers!(@ $kind u32 u32 u64, |$($v),+| $e)),
            Type::S32 => Some(integers!(@ $kind i32 u32 i64, |$($v),+| $e)),
            Type::U64 | Type::B64 => Some(integers!(@ $kind u64 u64 u128, |$($v),+| $e)),
            Type::S64 => Some(integers!(@ $kind i64 u64 i128, |$($v),+| $e)),
            _ => None,
        }
    };
    (@ $kind:ident $t:ident $u:ident $w:ident, |$($v:ident),+| $e:expr) => {
        $kind!(|$($v),+| {
            #[allow(dead_code)]
            type T = $t;
            #[allow(dead_code)]
            type W = $w;
            $(let $v = $v as $t;)+
            ($e) as $u as u64
        })
    };
}

/// The input of an operation on binary32.
#[inline(always)]
fn input<const FTZ: bool>(bits: u64) -> f32 {
    let value = f32::from_bits(bits as u32);
    if FTZ { float::flush(value) } else { value }
}

/// The result of an operation on binary32; NaN is the canonical one.
#[inline(always)]
fn output<const FTZ: bool, const SAT: bool>(value: f32) -> u64 {
    if value.is_nan() {
        return if SAT { 0 } else { 0x7fff_ffff };
    }
    let value = if FTZ { float::flush(value) } else { value };
    let value = if SAT { float::saturate(f64::from(value)) as f32 } else { value };
    u64::from(value.to_bits())
}

/// A function of an expression of binary32 numbers, by `.ftz` and `.sat`.
macro_rules! singles {
    ($kind:ident, $op:expr, |$($v:ident),+| $e:expr) => {
        match ($op.has("ftz"), $op.has("sat")) {
            (false, false) => singles!(@ $kind false false, |$($v),+| $e),
            (false, true) => singles!(@ $kind false true, |$($v),+| $e),
            (true, false) => singles!(@ $kind true false, |$($v),+| $e),
            (true, true) => singles!(@ $kind true true, |$($v),+| $e),
        }
    };
    (@ $kind:ident $ftz:literal $sat:literal, |$($v:ident),+| $e:expr) => {
        $kind!(|$($v),+| {
            $(let $v = input::<$ftz>($v);)+
            output::<$ftz, $sat>($e)
        })
    };
}

/// A function of binary32 numbers by rounding: `$e` rounds to the nearest, `$exact` is of binary64 numbers and
/// rounds to the result in every direction.
macro_rules! rounded {
    ($kind:ident, $op:expr, |$($v:ident),+| $e:expr, $exact:expr) => {
        match $op.rounding() {
            Rounding::Zero => singles!($kind, $op, |$($v),+| { $(let $v = f64::from($v);)+ direct($exact, Rounding::Zero) }),
            Rounding::Down => singles!($kind, $op, |$($v),+| { $(let $v = f64::from($v);)+ direct($exact, Rounding::Down) }),
            Rounding::Up => singles!($kind, $op, |$($v),+| { $(let $v = f64::from($v);)+ direct($exact, Rounding::Up) }),
            _ => singles!($kind, $op, |$($v),+| $e),
        }
    };
}

fn direct(exact: f64, rounding: Rounding) -> f32 {
    f32::from_bits(float::round(exact, F32, rounding))
}

/// What follows the rounding of a half: nothing, `.sat` or `.relu`.
const PLAIN: u8 = 0;
const SAT: u8 = 1;
const RELU: u8 = 2;

#[inline(always)]
fn half<const BF: bool, const FTZ: bool>(bits: u64) -> f64 {
    let bits = bits as u16;
    let value = if BF { float::from_bf16(bits) } else { float::from_f16(bits) };
    let subnormal = FTZ && !BF && bits & 0x7c00 == 0;
    f64::from(if subnormal { value * 0.0 } else { value })
}

#[inline(always)]
fn to_half<const BF: bool, const FTZ: bool, const POST: u8>(value: f64) -> u64 {
    let value = match POST {
        SAT => float::saturate(value),
        RELU if value < 0.0 => 0.0,
        _ => value,
    };
    let bits = float::round(value, if BF { BF16 } else { F16 }, Rounding::Nearest);
    let subnormal = FTZ && !BF && bits & 0x7c00 == 0;
    u64::from(if subnormal { bits & 0x8000 } else { bits })
}

/// A function of halves, one or two in a register: `$e` is exact, or rounds to the result, in binary64.
macro_rules! halves {
    ($kind:ident, $op:expr, $ty:expr, |$($v:ident),+| $e:expr) => {
        match $ty {
            Type::F16 => Some(halves!(@ftz $kind $op, false, 0xffff, |$($v),+| $e)),
            Type::F16x2 => Some(halves!(@ftz $kind $op, false, 0xffff_ffff, |$($v),+| $e)),
            Type::Bf16 => Some(halves!(@post $kind $op, true, false, 0xffff, |$($v),+| $e)),
            Type::Bf16x2 => Some(halves!(@post $kind $op, true, false, 0xffff_ffff, |$($v),+| $e)),
            _ => None,
        }
    };
    (@ftz $kind:ident $op:expr, $bf:literal, $mask:literal, |$($v:ident),+| $e:expr) => {
        if $op.has("ftz") {
            halves!(@post $kind $op, $bf, true, $mask, |$($v),+| $e)
        } else {
            halves!(@post $kind $op, $bf, false, $mask, |$($v),+| $e)
        }
    };
    (@post $kind:ident $op:expr, $bf:literal, $ftz:literal, $mask:literal, |$($v:ident),+| $e:expr) => {
        if $op.has("sat") {
            halves!(@ $kind $bf, $ftz, SAT, $mask, |$($v),+| $e)
        } else if $op.has("relu") {
            halves!(@ $kind $bf, $ftz, RELU, $mask, |$($v),+| $e)
        } else {
            halves!(@ $kind $bf, $ftz, PLAIN, $mask, |$($v),+| $e)
        }
    };
    (@ $kind:ident $bf:literal, $ftz:literal, $post:ident, $mask:literal, |$($v:ident),+| $e:expr) => {
        $kind!(|$($v),+| {
            let low = {
                $(let $v = half::<$bf, $ftz>($v);)+
                to_half::<$bf, $ftz, $post>($e)
            };
            if $mask > 0xffff_u64 {
                $(let $v = half::<$bf, $ftz>($v >> 16);)+
                low | to_half::<$bf, $ftz, $post>($e) << 16
            } else {
                low
            }
        })
    };
}

#[inline(always)]
fn double(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// A function of binary64 numbers by rounding; `$error` has the sign of what rounding to the nearest lost.
macro_rules! doubles {
    ($kind:ident, $op:expr, |$($v:ident),+| $e:expr, |$r:ident| $error:expr) => {
        match $op.rounding() {
            Rounding::Zero => doubles!(@ $kind Rounding::Zero, |$($v),+| $e, |$r| $error),
            Rounding::Down => doubles!(@ $kind Rounding::Down, |$($v),+| $e, |$r| $error),
            Rounding::Up => doubles!(@ $kind Rounding::Up, |$($v),+| $e, |$r| $error),
            _ => $kind!(|$($v),+| { $(let $v = double($v);)+ ($e).to_bits() }),
        }
    };
    (@ $kind:ident $rounding:expr, |$($v:ident),+| $e:expr, |$r:ident| $error:expr) => {
        $kind!(|$($v),+| {
            $(let $v = double($v);)+
            let $r = $e;
            float::direct($r, $error, $rounding).to_bits()
        })
    };
}

/// The smaller number; a NaN is ignored, and -0 is below +0.
#[inline(always)]
fn minimum(a: f64, b: f64) -> f64 {
    match () {
        () if a.is_nan() => b,
        () if b.is_nan() || a < b => a,
        () if b < a => b,
        () => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
    }
}

/// The larger number; a NaN is ignored, and -0 is below +0.
#[inline(always)]
fn maximum(a: f64, b: f64) -> f64 {
    -minimum(-a, -b)
}

/// As `of`, but NaN if one operand is NaN.
#[inline(always)]
fn with_nan(a: f64, b: f64, of: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { of(a, b) }
}

fn minimum_nan(a: f64, b: f64) -> f64 {
    with_nan(a, b, minimum)
}

fn maximum_nan(a: f64, b: f64) -> f64 {
    with_nan(a, b, maximum)
}

/// The function of an operation of one value.
pub fn unary_of(op: &Opcode<'_>) -> Option<Unary> {
    let ty = op.ty()?;
    match (op.name, ty) {
        ("not", Type::B16) => Some(unary!(|a| !a & 0xffff)),
        ("not", Type::B32) => Some(unary!(|a| !a & 0xffff_ffff)),
        ("not", Type::B64) => Some(unary!(|a| !a)),
        ("cnot", _) => integers!(unary, ty, |a| if a == 0 { 1 as T } else { 0 }),
        ("popc", Type::B32) => Some(unary!(|a| u64::from((a as u32).count_ones()))),
        ("popc", Type::B64) => Some(unary!(|a| u64::from(a.count_ones()))),
        ("clz", Type::B32) => Some(unary!(|a| u64::from((a as u32).leading_zeros()))),
        ("clz", Type::B64) => Some(unary!(|a| u64::from(a.leading_zeros()))),
        ("brev", Type::B32) => Some(unary!(|a| u64::from((a as u32).reverse_bits()))),
        ("brev", Type::B64) => Some(unary!(|a| a.reverse_bits())),
        ("bfind", _) => bit_of_leading_one(op, ty),
        ("abs", Type::S16) => Some(unary!(|a| (a as i16).wrapping_abs() as u16 as u64)),
        ("abs", Type::S32) => Some(unary!(|a| (a as i32).wrapping_abs() as u32 as u64)),
        ("abs", Type::S64) => Some(unary!(|a| (a as i64).wrapping_abs() as u64)),
        ("neg", Type::S16 | Type::S32 | Type::S64) => integers!(unary, ty, |a| a.wrapping_neg()),
        ("abs", Type::F32) => Some(singles!(unary, op, |a| a.abs())),
        ("neg", Type::F32) => Some(singles!(unary, op, |a| -a)),
        ("abs", Type::F64) => Some(unary!(|a| a & !(1 << 63))),
        ("neg", Type::F64) => Some(unary!(|a| a ^ 1 << 63)),
        ("abs", Type::F16 | Type::Bf16) => Some(unary!(|a| a & 0x7fff)),
        ("abs", Type::F16x2 | Type::Bf16x2) => Some(unary!(|a| a & 0x7fff_7fff)),
        ("neg", Type::F16 | Type::Bf16) => Some(unary!(|a| (a ^ 0x8000) & 0xffff)),
        ("neg", Type::F16x2 | Type::Bf16x2) => Some(unary!(|a| (a ^ 0x8000_8000) & 0xffff_ffff)),
        ("rcp", Type::F32) => Some(rounded!(unary, op, |a| 1.0 / a, float::divide(1.0, a))),
        ("sqrt", Type::F32) => Some(rounded!(unary, op, |a| a.sqrt(), float::square_root(a))),
        ("rsqrt", Type::F32) => Some(singles!(unary, op, |a| (1.0 / f64::from(a).sqrt()) as f32)),
        ("sin", Type::F32) => Some(singles!(unary, op, |a| f64::from(a).sin() as f32)),
        ("cos", Type::F32) => Some(singles!(unary, op, |a| f64::from(a).cos() as f32)),
        ("ex2", Type::F32) => Some(singles!(unary, op, |a| f64::from(a).exp2() as f32)),
        ("lg2", Type::F32) => Some(singles!(unary, op, |a| f64::from(a).log2() as f32)),
        ("tanh", Type::F32) => Some(singles!(unary, op, |a| f64::from(a).tanh() as f32)),
        ("ex2", _) => halves!(unary, op, ty, |a| a.exp2()),
        ("tanh", _) => halves!(unary, op, ty, |a| a.tanh()),
        ("rcp", Type::F64) if op.has("approx") => Some(unary!(|a| (1.0 / double(a)).to_bits())),
        ("rsqrt", Type::F64) => Some(unary!(|a| (1.0 / double(a).sqrt()).to_bits())),
        ("rcp", Type::F64) => Some(doubles!(unary, op, |a| 1.0 / a, |r| {
            let rest = (-r).mul_add(a, 1.0);
            if a > 0.0 { rest } else { -rest }
        })),
        ("sqrt", Type::F64) => Some(doubles!(unary, op, |a| a.sqrt(), |r| (-r).mul_add(r, a))),
        _ => None,
    }
}

fn bit_of_leading_one(op: &Opcode<'_>, ty: Type) -> Option<Unary> {
    if op.has("shiftamt") {
        return match ty {
            Type::U32 => Some(unary!(|a| match a as u32 {
                0 => 0xffff_ffff,
                a => u64::from(a.leading_zeros()),
            })),
            Type::U64 => Some(unary!(|a| match a {
                0 => 0xffff_ffff,
                a => u64::from(a.leading_zeros()),
            })),
            _ => None,
        };
    }
    match ty {
        Type::U32 => Some(unary!(|a| u64::from(31_u32.wrapping_sub((a as u32).leading_zeros())))),
        Type::U64 => Some(unary!(|a| u64::from(63_u32.wrapping_sub(a.leading_zeros())))),
        Type::S32 => Some(unary!(|a| {
            let a = a as i32;
            u64::from(31_u32.wrapping_sub((a ^ a >> 31).leading_zeros()))
        })),
        Type::S64 => Some(unary!(|a| {
            let a = a as i64;
            u64::from(63_u32.wrapping_sub((a ^ a >> 63).leading_zeros()))
        })),
        _ => None,
    }
}

/// The function of an operation of two values.
pub fn binary_of(op: &Opcode<'_>) -> Option<Binary> {
    let ty = op.ty()?;
    if ty.is_float() {
        return float_binary(op, ty);
    }
    if matches!(ty, Type::U16x2 | Type::S16x2) {
        return pairs(op, ty);
    }
    match op.name {
        "add" if op.has("sat") => (ty == Type::S32)
            .then_some(binary!(|a, b| (a as i32).saturating_add(b as i32) as u32 as u64)),
        "sub" if op.has("sat") => (ty == Type::S32)
            .then_some(binary!(|a, b| (a as i32).saturating_sub(b as i32) as u32 as u64)),
        "add" => integers!(binary, ty, |a, b| a.wrapping_add(b)),
        "sub" => integers!(binary, ty, |a, b| a.wrapping_sub(b)),
        "mul" if op.has("wide") => wide_product(ty),
        "mul" if op.has("hi") => {
            integers!(binary, ty, |a, b| ((a as W).wrapping_mul(b as W) >> T::BITS) as T)
        }
        "mul" if op.has("lo") => integers!(binary, ty, |a, b| a.wrapping_mul(b)),
        "mul24" if op.has("lo") => match ty {
            Type::U32 => Some(binary!(|a, b| ((a & 0xff_ffff) * (b & 0xff_ffff)) & 0xffff_ffff)),
            Type::S32 => Some(binary!(|a, b| (((a as i32) << 8 >> 8)
                .wrapping_mul((b as i32) << 8 >> 8))
                as u32 as u64)),
            _ => None,
        },
        "div" => integers!(binary, ty, |a, b| if b == 0 { !0 as T } else { a.wrapping_div(b) }),
        "rem" => integers!(binary, ty, |a, b| if b == 0 { a } else { a.wrapping_rem(b) }),
        "min" if op.has("relu") => {
            (ty == Type::S32).then_some(binary!(|a, b| (a as i32).min(b as i32).max(0) as u64))
        }
        "max" if op.has("relu") => {
            (ty == Type::S32).then_some(binary!(|a, b| (a as i32).max(b as i32).max(0) as u64))
        }
        "min" => integers!(binary, ty, |a, b| a.min(b)),
        "max" => integers!(binary, ty, |a, b| a.max(b)),
        "and" => Some(binary!(|a, b| a & b)),
        "or" => Some(binary!(|a, b| a | b)),
        "xor" => Some(binary!(|a, b| a ^ b)),
        "shl" => match ty {
            Type::B16 => Some(binary!(|a, n| if n < 16 { a << n & 0xffff } else { 0 })),
            Type::B32 => Some(binary!(|a, n| if n < 32 { a << n & 0xffff_ffff } else { 0 })),
            Type::B64 => Some(binary!(|a, n| if n < 64 { a << n } else { 0 })),
            _ => None,
        },
        "shr" => match ty {
            Type::S16 => Some(binary!(|a, n| (a as i16 >> n.min(15)) as u16 as u64)),
            Type::S32 => Some(binary!(|a, n| (a as i32 >> n.min(31)) as u32 as u64)),
            Type::S64 => Some(binary!(|a, n| (a as i64 >> n.min(63)) as u64)),
            _ => Some(binary!(|a, n| if n < 64 { a >> n } else { 0 })),
        },
        _ => None,
    }
}

/// Operations on pairs of integers of 16 bits.
fn pairs(op: &Opcode<'_>, ty: Type) -> Option<Binary> {
    macro_rules! pair {
        ($t:ident, |$a:ident, $b:ident| $e:expr) => {
            Some(binary!(|a, b| {
                let part = |a: u64, b: u64| {
                    let ($a, $b) = (a as $t, b as $t);
                    ($e) as u16 as u64
                };
                part(a, b) | part(a >> 16, b >> 16) << 16
            }))
        };
    }
    match (op.name, ty) {
        ("add", _) if !op.has("sat") => pair!(u16, |a, b| a.wrapping_add(b)),
        ("min", Type::U16x2) => pair!(u16, |a, b| a.min(b)),
        ("max", Type::U16x2) => pair!(u16, |a, b| a.max(b)),
        ("min", _) if op.has("relu") => pair!(i16, |a, b| a.min(b).max(0)),
        ("max", _) if op.has("relu") => pair!(i16, |a, b| a.max(b).max(0)),
        ("min", _) => pair!(i16, |a, b| a.min(b)),
        ("max", _) => pair!(i16, |a, b| a.max(b)),
        _ => None,
    }
}

fn wide_product(ty: Type) -> Option<Binary> {
    Some(match ty {
        Type::U16 => binary!(|a, b| (a & 0xffff) * (b & 0xffff)),
        Type::S16 => binary!(|a, b| (a as i16 as i32 * b as i16 as i32) as u32 as u64),
        Type::U32 => binary!(|a, b| (a & 0xffff_ffff) * (b & 0xffff_ffff)),
        Type::S32 => binary!(|a, b| (a as i32 as i64 * b as i32 as i64) as u64),
        _ => return None,
    })
}

fn float_binary(op: &Opcode<'_>, ty: Type) -> Option<Binary> {
    match (op.name, ty) {
        ("add", Type::F32) => Some(rounded!(binary, op, |a, b| a + b, float::add(a, b))),
        ("sub", Type::F32) => Some(rounded!(binary, op, |a, b| a - b, float::add(a, -b))),
        ("mul", Type::F32) => Some(rounded!(binary, op, |a, b| a * b, a * b)),
        ("div", Type::F32) => Some(rounded!(binary, op, |a, b| a / b, float::divide(a, b))),
        ("min", Type::F32) if op.has("NaN") => {
            Some(singles!(binary, op, |a, b| minimum_nan(a.into(), b.into()) as f32))
        }
        ("max", Type::F32) if op.has("NaN") => {
            Some(singles!(binary, op, |a, b| maximum_nan(a.into(), b.into()) as f32))
        }
        ("min", Type::F32) => Some(singles!(binary, op, |a, b| minimum(a.into(), b.into()) as f32)),
        ("max", Type::F32) => Some(singles!(binary, op, |a, b| maximum(a.into(), b.into()) as f32)),
        ("copysign", Type::F32) => Some(binary!(|a, b| (a & 0x8000_0000) | (b & 0x7fff_ffff))),
        ("copysign", Type::F64) => Some(binary!(|a, b| (a & 1 << 63) | (b & !(1 << 63)))),
        ("add", Type::F64) => Some(doubles!(binary, op, |a, b| a + b, |_r| float::sum_error(a, b))),
        ("sub", Type::F64) => {
            Some(doubles!(binary, op, |a, b| a - b, |_r| float::sum_error(a, -b)))
        }
        ("mul", Type::F64) => Some(doubles!(binary, op, |a, b| a * b, |r| a.mul_add(b, -r))),
        ("div", Type::F64) => Some(doubles!(binary, op, |a, b| a / b, |r| {
            let rest = (-r).mul_add(b, a);
            if b > 0.0 { rest } else { -rest }
        })),
        ("min", Type::F64) => Some(binary!(|a, b| minimum(double(a), double(b)).to_bits())),
        ("max", Type::F64) => Some(binary!(|a, b| maximum(double(a), double(b)).to_bits())),
        ("add", _) => halves!(binary, op, ty, |a, b| float::add(a, b)),
        ("sub", _) => halves!(binary, op, ty, |a, b| float::add(a, -b)),
        ("mul", _) => halves!(binary, op, ty, |a, b| a * b),
        ("min", _) if op.has("NaN") => halves!(binary, op, ty, |a, b| minimum_nan(a, b)),
        ("max", _) if op.has("NaN") => halves!(binary, op, ty, |a, b| maximum_nan(a, b)),
        ("min", _) => halves!(binary, op, ty, |a, b| minimum(a, b)),
        ("max", _) => halves!(binary, op, ty, |a, b| maximum(a, b)),
        _ => None,
    }
}

/// The function of an operation of three values.
pub fn ternary_of(op: &Opcode<'_>) -> Option<Ternary> {
    let ty = op.ty()?;
    match (op.name, ty) {
        ("fma" | "mad", Type::F32) => {
            Some(rounded!(ternary, op, |a, b, c| a.mul_add(b, c), float::multiply_add(a, b, c)))
        }
        ("fma" | "mad", Type::F64) if op.rounding() == Rounding::Nearest => {
            Some(ternary!(|a, b, c| double(a).mul_add(double(b), double(c)).to_bits()))
        }
        ("fma", _) if ty.is_float() => {
            halves!(ternary, op, ty, |a, b, c| float::multiply_add(a, b, c))
        }
        ("mad", _) if op.has("lo") => {
            integers!(ternary, ty, |a, b, c| a.wrapping_mul(b).wrapping_add(c))
        }
        ("mad", _) if op.has("hi") => {
            integers!(ternary, ty, |a, b, c| (((a as W).wrapping_mul(b as W) >> T::BITS) as T)
                .wrapping_add(c))
        }
        ("mad", Type::U16) if op.has("wide") => {
            Some(ternary!(|a, b, c| ((a & 0xffff) * (b & 0xffff) + c) & 0xffff_ffff))
        }
        ("mad", Type::S16) if op.has("wide") => Some(ternary!(|a, b, c| (a as i16 as i32
            * b as i16 as i32)
            .wrapping_add(c as i32)
            as u32 as u64)),
        ("mad", Type::U32) if op.has("wide") => {
            Some(ternary!(|a, b, c| ((a & 0xffff_ffff) * (b & 0xffff_ffff)).wrapping_add(c)))
        }
        ("mad", Type::S32) if op.has("wide") => Some(ternary!(|a, b, c| (a as i32 as i64
            * b as i32 as i64)
            .wrapping_add(c as i64)
            as u64)),
        ("sad", _) => integers!(ternary, ty, |a, b, c| c.wrapping_add(if a < b {
            b.wrapping_sub(a)
        } else {
            a.wrapping_sub(b)
        })),
        ("bfe", Type::U32) => {
            Some(ternary!(|a, b, c| extract(u128::from(a as u32), b, c) as u32 as u64))
        }
        ("bfe", Type::S32) => {
            Some(ternary!(|a, b, c| extract_signed(a as i32 as i128, b, c, 32) as u32 as u64))
        }
        ("bfe", Type::U64) => Some(ternary!(|a, b, c| extract(u128::from(a), b, c) as u64)),
        ("bfe", Type::S64) => {
            Some(ternary!(|a, b, c| extract_signed(a as i64 as i128, b, c, 64) as u64))
        }
        ("prmt", Type::B32) => {
            match op.modifiers.iter().find(|modifier| Type::parse(modifier).is_none()) {
                None => Some(ternary!(|a, b, c| u64::from(permute(a, b, c)))),
                Some(&"f4e") => Some(ternary!(|a, b, c| bytes_from(a, b, c, |i, c| c + i))),
                Some(&"b4e") => Some(ternary!(|a, b, c| bytes_from(a, b, c, |i, c| c + 8 - i))),
                Some(&"rc8") => Some(ternary!(|a, b, c| bytes_from(a, b, c, |_, c| c & 3))),
                Some(&"ecl") => Some(ternary!(|a, b, c| bytes_from(a, b, c, |i, c| i.max(c & 3)))),
                Some(&"ecr") => Some(ternary!(|a, b, c| bytes_from(a, b, c, |i, c| i.min(c & 3)))),
                Some(&"rc16") => {
                    Some(ternary!(|a, b, c| bytes_from(a, b, c, |i, c| (c & 1) * 2 + (i & 1))))
                }
                Some(_) => None,
            }
        }
        ("shf", Type::B32) => match (op.has("l"), op.has("wrap")) {
            (true, true) => Some(ternary!(|a, b, c| funnel(a, b) << (c & 31) >> 32)),
            (true, false) => Some(ternary!(
                |a, b, c| (u128::from(funnel(a, b)) << c.min(32) >> 32) as u32 as u64
            )),
            (false, true) => Some(ternary!(|a, b, c| funnel(a, b) >> (c & 31) & 0xffff_ffff)),
            (false, false) => Some(ternary!(|a, b, c| funnel(a, b) >> c.min(32) & 0xffff_ffff)),
        },
        ("dp4a", _) => match op.types()[..] {
            [Type::U32, Type::U32] => Some(ternary!(|a, b, c| dot::<false, false>(a, b, c))),
            [Type::S32, Type::U32] => Some(ternary!(|a, b, c| dot::<true, false>(a, b, c))),
            [Type::U32, Type::S32] => Some(ternary!(|a, b, c| dot::<false, true>(a, b, c))),
            [Type::S32, Type::S32] => Some(ternary!(|a, b, c| dot::<true, true>(a, b, c))),
            _ => None,
        },
        ("slct", Type::S32) => Some(ternary!(|a, b, c| if c as i32 >= 0 { a } else { b })),
        ("slct", Type::F32) => Some(singles_slct(op)),
        _ => None,
    }
}

fn singles_slct(op: &Opcode<'_>) -> Ternary {
    if op.has("ftz") {
        ternary!(|a, b, c| if input::<true>(c) >= 0.0 { a } else { b })
    } else {
        ternary!(|a, b, c| if input::<false>(c) >= 0.0 { a } else { b })
    }
}

/// `bfi`: puts the low bits of `a` into `b`, at a position `c` and of a length `d`.
pub fn insert(a: u64, b: u64, c: u64, d: u64, bits: u64) -> u64 {
    let (position, length) = ((c & 0xff).min(bits), (d & 0xff).min(bits));
    let mask = (((1_u128 << length) - 1) << position) as u64;
    let all = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    ((b & !mask) | (((u128::from(a)) << position) as u64 & mask)) & all
}

/// `lop3`: each bit of the result is that of the table at the bits of three values.
pub fn logic(a: u64, b: u64, c: u64, table: u64) -> u64 {
    let mut result = 0;
    for index in 0..8 {
        if table >> index & 1 == 1 {
            let of = |value: u64, bit: u64| if index & bit != 0 { value } else { !value };
            result |= of(a, 4) & of(b, 2) & of(c, 1);
        }
    }
    result & 0xffff_ffff
}

fn extract(a: u128, b: u64, c: u64) -> u128 {
    let (position, length) = (b & 0xff, c & 0xff);
    if position > 64 { 0 } else { a >> position & ((1_u128 << length.min(64)) - 1) }
}

fn extract_signed(a: i128, b: u64, c: u64, bits: u64) -> i128 {
    let (position, length) = ((b & 0xff).min(127), (c & 0xff).min(bits));
    if length == 0 {
        return 0;
    }
    let drop = 128 - length as u32;
    // Beyond the last bit of `a`, its sign continues.
    a >> position << drop >> drop
}

fn permute(a: u64, b: u64, c: u64) -> u32 {
    let bytes = funnel(a, b);
    let byte = |index: u64| {
        let selector = c >> (4 * index) & 15;
        let byte = bytes >> (8 * (selector & 7)) & 0xff;
        let byte = if selector & 8 == 0 {
            byte
        } else if byte & 0x80 != 0 {
            0xff
        } else {
            0
        };
        byte << (8 * index)
    };
    (byte(0) | byte(1) | byte(2) | byte(3)) as u32
}

fn bytes_from(a: u64, b: u64, c: u64, source: impl Fn(u64, u64) -> u64) -> u64 {
    let bytes = funnel(a, b);
    (0..4).map(|index| (bytes >> (8 * (source(index, c & 3) & 7)) & 0xff) << (8 * index)).sum()
}

fn funnel(low: u64, high: u64) -> u64 {
    high << 32 | low & 0xffff_ffff
}

fn dot<const A: bool, const B: bool>(a: u64, b: u64, c: u64) -> u64 {
    let byte = |value: u64, index: u32, signed: bool| {
        let byte = (value >> (8 * index)) as u8;
        if signed { i64::from(byte as i8) } else { i64::from(byte) }
    };
    let sum: i64 = (0..4).map(|index| byte(a, index, A) * byte(b, index, B)).sum();
    (c as i64).wrapping_add(sum) as u32 as u64
}

/// The comparison of a name for integers and floats of a type.
pub fn compare_of(name: &str, ty: Type, ftz: bool) -> Option<Compare> {
    /// A comparison of values that an expression makes of bits.
    macro_rules! of {
        ($of:expr) => {
            match name {
                "eq" => compare!(|a, b| $of(a) == $of(b)),
                "ne" => compare!(|a, b| $of(a) != $of(b)),
                "lt" | "lo" => compare!(|a, b| $of(a) < $of(b)),
                "le" | "ls" => compare!(|a, b| $of(a) <= $of(b)),
                "gt" | "hi" => compare!(|a, b| $of(a) > $of(b)),
                "ge" | "hs" => compare!(|a, b| $of(a) >= $of(b)),
                _ => return None,
            }
        };
    }
    macro_rules! floats {
        ($of:expr) => {
            match name {
                "ne" => compare!(|a, b| $of(a) < $of(b) || $of(a) > $of(b)),
                "equ" => compare!(|a, b| $of(a).partial_cmp(&$of(b)).is_none_or(Ordering::is_eq)),
                "neu" => compare!(|a, b| $of(a) != $of(b)),
                "ltu" => compare!(|a, b| $of(a).partial_cmp(&$of(b)).is_none_or(Ordering::is_lt)),
                "leu" => compare!(|a, b| $of(a).partial_cmp(&$of(b)).is_none_or(Ordering::is_le)),
                "gtu" => compare!(|a, b| $of(a).partial_cmp(&$of(b)).is_none_or(Ordering::is_gt)),
                "geu" => compare!(|a, b| $of(a).partial_cmp(&$of(b)).is_none_or(Ordering::is_ge)),
                "num" => compare!(|a, b| !$of(a).is_nan() && !$of(b).is_nan()),
                "nan" => compare!(|a, b| $of(a).is_nan() || $of(b).is_nan()),
                _ => of!($of),
            }
        };
    }
    Some(match ty {
        Type::U16 | Type::B16 => of!(|a: u64| a as u16),
        Type::S16 => of!(|a: u64| a as i16),
        Type::U32 | Type::B32 => of!(|a: u64| a as u32),
        Type::S32 => of!(|a: u64| a as i32),
        Type::U64 | Type::B64 => of!(|a: u64| a),
        Type::S64 => of!(|a: u64| a as i64),
        Type::F32 if ftz => floats!(input::<true>),
        Type::F32 => floats!(input::<false>),
        Type::F64 => floats!(double),
        Type::F16 | Type::F16x2 => floats!(|a: u64| float::from_f16(a as u16)),
        Type::Bf16 | Type::Bf16x2 => floats!(|a: u64| float::from_bf16(a as u16)),
        _ => return None,
    })
}

/// `testp`: a property of a float.
pub fn property_of(name: &str, ty: Type) -> Option<Compare> {
    macro_rules! of {
        ($of:expr) => {
            match name {
                "finite" => compare!(|a, _b| $of(a).is_finite()),
                "infinite" => compare!(|a, _b| $of(a).is_infinite()),
                "number" => compare!(|a, _b| !$of(a).is_nan()),
                "notanumber" => compare!(|a, _b| $of(a).is_nan()),
                "normal" => compare!(|a, _b| $of(a).is_normal()),
                "subnormal" => compare!(|a, _b| $of(a).is_subnormal()),
                _ => return None,
            }
        };
    }
    Some(match ty {
        Type::F32 => of!(input::<false>),
        Type::F64 => of!(double),
        _ => return None,
    })
}
