//! Numbers that preserve whether they are written as integers.

use std::fmt;

/// A constant of a listing: `0` and `0.0` are the same value, but print differently.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// Written without a point.
    Int(i64),
    /// Written with a point or an exponent; finite.
    Float(f64),
}

impl Number {
    /// The value.
    pub fn value(self) -> f64 {
        match self {
            // Constants of programs are small; beyond 2^53 they are rounded to f64.
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// Equality of the printed form: `0` is not `0.0`.
impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}

impl Default for Number {
    fn default() -> Self {
        Self::Int(0)
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl fmt::Display for Number {
    /// As Python's `repr`: the shortest digits that round-trip, with an exponent
    /// below 1e-4 and from 1e16 on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match *self {
            Self::Int(value) => return write!(f, "{value}"),
            Self::Float(value) => value,
        };
        if value == 0.0 || (1e-4..1e16).contains(&value.abs()) {
            return write!(f, "{value:?}");
        }
        let scientific = format!("{value:e}");
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        write!(f, "{mantissa}e{sign}{digits:0>2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_python_prints_them() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (-128.0, "-128.0"),
            (43.62298146446928, "43.62298146446928"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
        ];
        for (value, text) in cases {
            assert_eq!(Number::Float(value).to_string(), text);
        }
        assert_eq!(Number::Int(-3).to_string(), "-3");
    }
}
