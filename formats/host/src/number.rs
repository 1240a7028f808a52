//! Numbers as strings, as ONNX Runtime writes and reads them.

use crate::FunctionError;
use crate::error::shortened;
use irc_tensor::{DType, Tensor};

/// The elements of a tensor of numbers as strings: integers in decimal, bools as 0 and 1, floats with up to 8
/// digits as C's `%.8g` does.
pub fn written(tensor: &Tensor) -> Vec<String> {
    match tensor.to_i128() {
        Some(integers) => integers.into_iter().map(integer).collect(),
        None => tensor.to_f64().into_iter().map(float).collect(),
    }
}

fn integer(value: i128) -> String {
    i64::try_from(value).map_or_else(|_| (value as u64).to_string(), |value| value.to_string())
}

fn float(value: f64) -> String {
    const DIGITS: i32 = 8;
    if !value.is_finite() {
        let name = if value.is_nan() { "NaN" } else { "INF" };
        return format!("{}{name}", if value == f64::NEG_INFINITY { "-" } else { "" });
    }
    let scientific = format!("{value:.*e}", DIGITS as usize - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        return trimmed(&format!("{value:.*}", (DIGITS - 1 - exponent) as usize)).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

/// Without zeros at the end of the fraction.
fn trimmed(digits: &str) -> &str {
    if !digits.contains('.') {
        return digits;
    }
    digits.trim_end_matches('0').trim_end_matches('.')
}

/// A number that was read.
pub enum Number {
    Float(f64),
    Integer(i128),
}

/// The number at the start of a string, after white space; what follows it is ignored, as `strtod` and
/// `strtoll` do. Integers wrap to their type.
pub fn read(text: &[u8], to: DType) -> Result<Number, FunctionError> {
    let text = String::from_utf8_lossy(text);
    let start = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let found = match to.is_float() {
        true => read_float(start).map(Number::Float),
        false => read_integer(start, to).map(Number::Integer),
    };
    found.ok_or_else(|| FunctionError::NotANumber { text: shortened(&text), to })
}

fn read_integer(text: &str, to: DType) -> Option<i128> {
    let (negative, digits) = signed(text);
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    let value: i128 = digits[..length].parse().ok()?;
    // Signed types are read as `i64`, and others, bool included, as `u64`, which has a sign as well.
    let limit = match to.is_signed_integer() {
        true => i128::from(i64::MAX) + i128::from(negative),
        false => i128::from(u64::MAX),
    };
    let value = (value <= limit).then_some(if negative { -value } else { value })?;
    Some(if to == DType::Bool { i128::from(value != 0) } else { value })
}

fn read_float(text: &str) -> Option<f64> {
    let (negative, rest) = signed(text);
    let starts =
        |word: &str| rest.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word));
    let value = if starts("inf") {
        f64::INFINITY
    } else if starts("nan") {
        f64::NAN
    } else if starts("0x") && hexadecimal(&rest[2..]).is_some() {
        hexadecimal(&rest[2..])?
    } else {
        let length = decimal_length(rest)?;
        let value: f64 = rest[..length].parse().ok()?;
        let digits = rest[..length].split(['e', 'E']).next().unwrap_or_default();
        let is_zero = !digits.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
        // Beyond the range is an error, in both directions.
        (value.is_finite() && (value != 0.0 || is_zero)).then_some(value)?
    };
    Some(if negative { -value } else { value })
}

fn signed(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// The length of the decimal number at the start of a text without sign.
fn decimal_length(text: &str) -> Option<usize> {
    let digits = |at: usize| text[at..].bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(0);
    let mut length = whole;
    if text[length..].starts_with('.') {
        let fraction = digits(length + 1);
        if whole + fraction == 0 {
            return None;
        }
        length += 1 + fraction;
    } else if whole == 0 {
        return None;
    }
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    Some(length)
}

/// The hexadecimal number at the start of a text, with a fraction and a binary exponent.
fn hexadecimal(text: &str) -> Option<f64> {
    let (mut value, mut scale, mut any, mut point, mut used) = (0.0f64, 0i32, false, false, 0);
    for byte in text.bytes() {
        match (char::from(byte).to_digit(16), byte) {
            (Some(digit), _) => {
                value = value * 16.0 + f64::from(digit);
                scale -= if point { 4 } else { 0 };
                any = true;
            }
            (None, b'.') if !point => point = true,
            _ => break,
        }
        used += 1;
    }
    let rest = &text[used..];
    if let Some(exponent) = rest.strip_prefix(['p', 'P']) {
        let (negative, digits) = signed(exponent);
        let length = digits.bytes().take(6).take_while(u8::is_ascii_digit).count();
        let by: i32 = digits[..length].parse().unwrap_or(0);
        scale += if negative { -by } else { by };
    }
    let value = value * 2f64.powi(scale);
    (any && value.is_finite()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What ONNX Runtime writes.
    #[test]
    fn floats_have_eight_digits() {
        let values: [(f32, &str); 16] = [
            (1.5, "1.5"),
            (0.1, "0.1"),
            (1e10, "1e+10"),
            (1e-7, "1e-07"),
            (1.0 / 3.0, "0.33333334"),
            (-0.0, "-0"),
            (f32::NAN, "NaN"),
            (f32::INFINITY, "INF"),
            (f32::NEG_INFINITY, "-INF"),
            (123_456_789.0, "1.2345679e+08"),
            (16_777_216.0, "16777216"),
            (3.4e38, "3.4e+38"),
            (1e-45, "1.4012985e-45"),
            (100.0, "100"),
            (0.001, "0.001"),
            (12_345.678, "12345.678"),
        ];
        for (value, expected) in values {
            let tensor = Tensor::from_values([], &[value]).expect("a tensor");
            assert_eq!(written(&tensor), [expected]);
        }
        let double = Tensor::from_values([2], &[5e-324, 1e300]).expect("a tensor");
        assert_eq!(written(&double), ["4.9406565e-324", "1e+300"]);
        let bools = Tensor::from_values([1], &[1u8]).expect("a tensor").reinterpret(DType::Bool);
        assert_eq!(written(&bools.expect("a bool")), ["1"]);
    }

    /// What ONNX Runtime reads.
    #[test]
    fn numbers_are_read_from_the_start_of_a_string() {
        let float = |text: &str| match read(text.as_bytes(), DType::F64) {
            Ok(Number::Float(value)) => Some(value),
            _ => None,
        };
        let valid = [
            ("1.5", 1.5),
            ("-3", -3.0),
            (" 7", 7.0),
            ("\t8 ", 8.0),
            ("1e3", 1000.0),
            ("1e", 1.0),
            ("1.5abc", 1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("0x10", 16.0),
            ("0x1.8p1", 3.0),
            ("0x", 0.0),
            ("+INF", f64::INFINITY),
            ("-infinity", f64::NEG_INFINITY),
            ("0e-999", 0.0),
        ];
        for (text, expected) in valid {
            assert_eq!(float(text), Some(expected), "{text}");
        }
        assert!(float("nan").is_some_and(f64::is_nan));
        for text in ["abc", "", ".", "++1", "1e400", "1e-400", "\u{e9}"] {
            assert_eq!(float(text), None, "{text}");
        }
        let integer = |text: &str, to| match read(text.as_bytes(), to) {
            Ok(Number::Integer(value)) => Some(value),
            _ => None,
        };
        assert_eq!(integer("-3.7", DType::I32), Some(-3));
        assert_eq!(integer("9223372036854775808", DType::I64), None);
        assert_eq!(integer("-9223372036854775808", DType::I64), Some(i128::from(i64::MIN)));
        assert_eq!(integer("18446744073709551615", DType::U8), Some(i128::from(u64::MAX)));
        assert_eq!((integer("2", DType::Bool), integer("0", DType::Bool)), (Some(1), Some(0)));
        assert_eq!((integer("True", DType::Bool), integer(".5", DType::I8)), (None, None));
        let error = read(b"x", DType::I8).err().expect("no number").to_string();
        assert_eq!(error, "the string \"x\" is not a number of type i8");
    }
}
