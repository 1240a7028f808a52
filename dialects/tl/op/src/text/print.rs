//! Printer; see the parent module for the grammar.
use super::lex::is_name;
use crate::{Binary, Comparison, DType, Rounding, Scalar};
use std::fmt::{self, Display, Formatter};

/// A symbol as text: quoted unless it is a plain name.
pub(crate) fn symbol(name: &str, f: &mut Formatter<'_>) -> fmt::Result {
    let starts = name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    let function = matches!(name, "floordiv" | "mod" | "min" | "max" | "ifeq" | "broadcast");
    if starts && !function && name.chars().all(is_name) {
        return f.write_str(name);
    }
    f.write_str("'")?;
    for c in name.chars() {
        if matches!(c, '\'' | '\\') {
            f.write_str("\\")?;
        }
        write!(f, "{c}")?;
    }
    f.write_str("'")
}

/// The precedence of calls and literals, the highest of all.
const TIGHTEST: u8 = 7;

fn strength(scalar: &Scalar) -> u8 {
    match scalar {
        Scalar::Binary(function, ..) => operator(*function).map_or(TIGHTEST, |(_, level)| level),
        Scalar::Compare(..) => 4,
        _ => TIGHTEST,
    }
}

/// The operator of a function that is written infix, and its precedence.
pub(super) const fn operator(function: Binary) -> Option<(&'static str, u8)> {
    Some(match function {
        Binary::Or => ("or", 1),
        Binary::Xor => ("xor", 2),
        Binary::And => ("and", 3),
        Binary::Add => ("+", 5),
        Binary::Sub => ("-", 5),
        Binary::Mul => ("*", 6),
        Binary::Div => ("/", 6),
        _ => return None,
    })
}

/// The operator of a comparison.
pub(super) const fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Eq => "==",
        Comparison::Ne => "!=",
        Comparison::Lt => "<",
        Comparison::Le => "<=",
        Comparison::Gt => ">",
        Comparison::Ge => ">=",
    }
}

impl Display for Scalar {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(bits, dtype) => float(f64::from_bits(*bits), *dtype, f),
            Self::Int(0, DType::Bool) => f.write_str("false"),
            Self::Int(1, DType::Bool) => f.write_str("true"),
            Self::Int(value, DType::I64) => write!(f, "{value}"),
            Self::Int(value, dtype) => write!(f, "{value} : {dtype}"),
            Self::Loop(index) => write!(f, "i{index}"),
            Self::Size(dim) => write!(f, "size({dim})"),
            Self::Load(operand, at) => {
                write!(f, "%{operand}[")?;
                list(at, f)?;
                f.write_str("]")
            }
            Self::Unary(function, x) => write!(f, "{}({x})", function.name()),
            Self::Binary(function, x, y) => match operator(*function) {
                Some((sign, level)) => infix(x, sign, y, level, level + 1, f),
                None => write!(f, "{}({x}, {y})", function.name()),
            },
            // Nested comparisons are parenthesized.
            Self::Compare(comparison, x, y) => infix(x, sign(*comparison), y, 5, 5, f),
            Self::Select(parts) => {
                f.write_str("select(")?;
                list(&**parts, f)?;
                f.write_str(")")
            }
            Self::Cast(to, Rounding::TowardZero, x) => write!(f, "cast<{to}>({x})"),
            Self::Cast(to, Rounding::NearestEven, x) => write!(f, "cast<{to}, nearest_even>({x})"),
        }
    }
}

fn infix(
    x: &Scalar,
    sign: &str,
    y: &Scalar,
    left: u8,
    right: u8,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    side(x, left, f)?;
    write!(f, " {sign} ")?;
    side(y, right, f)
}

fn side(scalar: &Scalar, least: u8, f: &mut Formatter<'_>) -> fmt::Result {
    if strength(scalar) < least { write!(f, "({scalar})") } else { write!(f, "{scalar}") }
}

fn list(scalars: &[Scalar], f: &mut Formatter<'_>) -> fmt::Result {
    for (position, scalar) in scalars.iter().enumerate() {
        write!(f, "{}{scalar}", if position == 0 { "" } else { ", " })?;
    }
    Ok(())
}

fn float(value: f64, dtype: DType, f: &mut Formatter<'_>) -> fmt::Result {
    if value.is_nan() {
        return write!(f, "nan : {dtype}");
    }
    // `{:?}` prints the shortest text that parses as the same number, with a point or exponent.
    write!(f, "{value:?} : {dtype}")
}
