//! Conversion of floats to signed and unsigned bytes.

use irc_npu::enums::DataSign;

/// The nearest integer, ties to even, saturated to the bytes of a sign; 0 for NaN.
pub fn nearest(value: f32, sign: DataSign) -> i16 {
    // The casts saturate, and convert NaN to zero.
    match sign {
        DataSign::Signed => (value.round_ties_even() as i8).into(),
        DataSign::Unsigned => (value.round_ties_even() as u8).into(),
    }
}

/// The byte of the nearest integer, ties to even, plus a zero point, which is an integer, saturated.
pub fn quantised(value: f32, zero: f32, sign: DataSign) -> u8 {
    nearest(value.round_ties_even() + zero, sign) as u8
}
