//! Numbers that are finite in double precision.

/// Digits of the smallest integer that rounds to infinity: the midpoint between the largest double and
/// 2^1024.
const LIMIT: &str = "17976931348623158079372897140530341507993413271003782693617377898044496829276\
                     47509466490179775872070963302864166928879109465555478519404026306574886715058\
                     20681908902000708383676273854845817711531764475730270069855571366959622842914\
                     81986083493647529271907416844436551070434271155969950809304288017790417449779\
                     2";

/// Whether a number in the spelling of JSON is finite in double precision.
///
/// Digits are compared, so that no rounding is needed: numbers below [`LIMIT`] are finite.
pub fn is_finite(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let whole = mantissa.bytes().take_while(|byte| *byte != b'.');
    let digits = || mantissa.bytes().filter(u8::is_ascii_digit);
    let zeros = digits().take_while(|digit| *digit == b'0').count();
    if zeros == digits().count() {
        return true;
    }
    // Digits before the point, without leading zeros.
    let whole = whole.filter(u8::is_ascii_digit).count() as i64 - zeros as i64;
    let whole = whole.saturating_add(exponent.map_or(0, clamped));
    match whole.cmp(&(LIMIT.len() as i64)) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => digits().skip(zeros).lt(LIMIT.bytes()),
        std::cmp::Ordering::Greater => false,
    }
}

/// An exponent, saturated to 64 bits.
fn clamped(text: &str) -> i64 {
    let limit = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    text.parse().unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rounding of the standard library.
    fn rounded(text: &str) -> bool {
        text.parse().is_ok_and(f64::is_finite)
    }

    #[test]
    fn numbers_near_the_limit_are_distinguished() {
        let below = format!("{}1", LIMIT.strip_suffix('2').expect("the last digit"));
        let nines = "9".repeat(40);
        let texts = [
            LIMIT.to_owned(),
            below.clone(),
            format!("{below}.{nines}"),
            format!("{LIMIT}.0"),
            format!("0.000{LIMIT}e312"),
            format!("0.000{below}e312"),
            format!("-{LIMIT}"),
            format!("{}", f64::MAX),
            format!("1{}", "0".repeat(308)),
            format!("1{}", "0".repeat(309)),
            format!("0.{}1e400", "0".repeat(90)),
            format!("0.{}1e400", "0".repeat(92)),
        ];
        for text in &texts {
            assert_eq!(is_finite(text), rounded(text), "{text}");
        }
        assert!(!is_finite(LIMIT) && is_finite(&below));
    }

    #[test]
    fn exponents_of_any_size_are_read() {
        for text in
            ["0e999999999999999999999", "1e-99999999999999999999", "0.0", "-0", "12", "1E+2"]
        {
            assert!(is_finite(text) && rounded(text), "{text}");
        }
        for text in ["1e99999999999999999999", "-1e309", "0.1e310", "1E+400"] {
            assert!(!is_finite(text) && !rounded(text), "{text}");
        }
    }
}
