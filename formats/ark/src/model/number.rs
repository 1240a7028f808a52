//! Prints numbers like nlohmann's JSON library, which ARK uses.

use std::fmt::Write;

/// Appends a 32-bit float printed as the double of the same value: `0.1f` is
/// `0.10000000149011612`. Infinities and NaN are printed as `null`.
pub(crate) fn write_float(out: &mut String, value: f32) {
    if !value.is_finite() {
        out.push_str("null");
        return;
    }
    let value = f64::from(value);
    if value == 0.0 {
        out.push_str(if value.is_sign_negative() { "-0.0" } else { "0.0" });
        return;
    }
    if value < 0.0 {
        out.push('-');
    }
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    write_digits(out, &digits, exponent);
}

/// Prints digits with the decimal point after the first `exponent + 1`, and with an exponent unless
/// -4 < point <= 15, as nlohmann's `format_buffer` does.
fn write_digits(out: &mut String, digits: &str, exponent: i32) {
    let len = digits.len();
    match exponent + 1 {
        point @ 1..=15 => {
            let point = point as usize;
            let (whole, fraction) = digits.split_at(point.min(len));
            out.push_str(whole);
            out.extend(std::iter::repeat_n('0', point.saturating_sub(len)));
            out.push('.');
            out.push_str(if fraction.is_empty() { "0" } else { fraction });
        }
        point @ -3..=0 => {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', point.unsigned_abs() as usize));
            out.push_str(digits);
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            out.push_str(first);
            if !rest.is_empty() {
                out.push('.');
                out.push_str(rest);
            }
            let sign = if exponent < 0 { '-' } else { '+' };
            // Writing to a String cannot fail.
            let _ = write!(out, "e{sign}{:02}", exponent.abs());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(value: f32) -> String {
        let mut out = String::new();
        write_float(&mut out, value);
        out
    }

    #[test]
    fn floats_print_as_doubles_of_the_same_value() {
        assert_eq!(float(0.1), "0.10000000149011612");
        assert_eq!(float(-1e-5), "-9.999999747378752e-06");
        assert_eq!(float(-1e-4), "-9.999999747378752e-05");
        assert_eq!(float(3.0), "3.0");
        assert_eq!(float(-0.25), "-0.25");
        assert_eq!(float(-0.0), "-0.0");
        assert_eq!(float(1e20), "1.0000000200408773e+20");
        assert_eq!(float(123456.0), "123456.0");
        assert_eq!(float(0.001), "0.0010000000474974513");
        assert_eq!(float(2f32.powi(100)), "1.2676506002282294e+30");
        assert_eq!(float(f32::INFINITY), "null");
    }
}
