//! Quantised numbers: scales by tensor, axis and block.

use crate::case::Case;
use irc_tl::DType;

#[test]
fn numbers_round_to_even_and_saturate() {
    let case = Case::new("QuantizeLinear", 13).input(&[5], &[1.0f32, 3.0, 5.0, 1000.0, -1000.0]);
    let bytes = case.input(&[], &[2.0f32]).input(&[], &[10u8]).run().expect("a scale");
    assert_eq!(
        (bytes[0].dtype(), bytes[0].to_f64()),
        (DType::U8, vec![10.0, 12.0, 12.0, 255.0, 0.0])
    );
}

#[test]
fn scales_follow_an_axis() {
    let x = [1.0f32, 2.0, 3.0, 4.0];
    let of = |axis| {
        let case = Case::new("QuantizeLinear", 13).input(&[2, 2], &x).input(&[2], &[1.0f32, 0.5]);
        case.input(&[2], &[0i8, 1]).int("axis", axis).values()
    };
    assert_eq!(of(1), [1.0, 5.0, 3.0, 9.0]);
    assert_eq!(of(0), [1.0, 2.0, 7.0, 9.0]);
    let wrong = Case::new("QuantizeLinear", 13).input(&[2, 2], &x).input(&[3], &[1.0f32; 3]);
    assert_eq!(wrong.error(), "expected one scale for each index of the axis: found 3 and 2");
}

#[test]
fn scales_follow_blocks() {
    let case = Case::new("DequantizeLinear", 21).input(&[1, 5], &[1i8, 2, 3, 4, 5]);
    let case = case.input(&[1, 3], &[1.0f32, 10.0, 100.0]).int("block_size", 2);
    assert_eq!(case.values(), [1.0, 2.0, 30.0, 40.0, 500.0]);
    let flat = Case::new("DequantizeLinear", 21).input(&[5], &[1i8, 2, 3, 4, 5]).int("axis", 0);
    let flat = flat.input(&[3], &[1.0f32, 10.0, 100.0]).int("block_size", 2);
    assert_eq!(flat.values(), [1.0, 2.0, 30.0, 40.0, 500.0]);
    let none = Case::new("DequantizeLinear", 21).input(&[1, 5], &[1i8; 5]);
    let none = none.input(&[1, 3], &[1.0f32; 3]);
    assert!(none.error().contains("with `block_size` one per block, found f32[1,3]"));
}

#[test]
fn narrow_integers_and_floats_have_their_own_range() {
    let x = [100.0f32, -100.0, 2.6];
    let of = |to: i64| {
        let case = Case::new("QuantizeLinear", 21).input(&[3], &x).input(&[], &[1.0f32]);
        case.int("output_dtype", to).values()
    };
    assert_eq!(of(22), [7.0, -8.0, 3.0]);
    assert_eq!(of(21), [15.0, 0.0, 3.0]);
    assert_eq!(of(23), [6.0, -6.0, 3.0]);
    assert_eq!(of(17), [96.0, -96.0, 2.5]);
}

#[test]
fn dynamic_scales_cover_the_range_and_zero() {
    let case = Case::new("DynamicQuantizeLinear", 11).input(&[3], &[1.0f32, 2.0, 5.1]).outputs(3);
    let results = case.run().expect("floats");
    assert_eq!(results[0].to_f64(), [50.0, 100.0, 255.0]);
    assert!((results[1].to_f64()[0] - 0.02).abs() < 1e-7);
    assert_eq!(results[2].to_f64(), [0.0]);
    let flat = Case::new("DynamicQuantizeLinear", 11).input(&[2], &[0.0f32, 0.0]).outputs(3);
    assert_eq!(flat.run().expect("floats")[0].to_f64(), [0.0, 0.0]);
}
