//! Quantised numbers: scales by tensor, axis and block.

use crate::case::{Case, integers};
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

/// The sums of a convolution of one image of 4 by 5 with 5 filters of 2 by 2, with a pad before rows and two after columns.
fn sums(x: &[i64], x_zero: i64, w: &[i64], w_zero: impl Fn(usize) -> i64) -> Vec<f64> {
    let at = |channel: usize, row: i64, column: i64| {
        let inside = (0..4).contains(&row) && (0..5).contains(&column);
        if inside { x[(channel as i64 * 20 + row * 5 + column) as usize] - x_zero } else { 0 }
    };
    let mut sums = vec![];
    for (filter, row, column) in (0..5).flat_map(|filter| {
        (0..4).flat_map(move |row| (0..6).map(move |column| (filter, row, column)))
    }) {
        let taps = (0..3).flat_map(|channel| (0..4).map(move |tap| (channel, tap)));
        let sum: i64 = taps
            .map(|(channel, tap)| {
                let factor = w[filter * 12 + channel * 4 + tap] - w_zero(filter);
                at(channel, row - 1 + tap as i64 / 2, column + tap as i64 % 2) * factor
            })
            .sum();
        sums.push(sum as f64);
    }
    sums
}

#[test]
fn filters_have_any_zero_points() {
    let x = integers::<u8>(60, 1, 256);
    let bytes = integers::<u8>(60, 2, 256);
    let wide = |values: &[u8]| values.iter().map(|byte| i64::from(*byte)).collect::<Vec<_>>();
    let signed: Vec<i8> = bytes.iter().map(|byte| byte.cast_signed()).collect();
    let zeros = [0_u8, 97, 128, 255, 3];
    for (is_known, zero) in [(true, 0_u8), (true, 113), (false, 0), (false, 113)] {
        let case = || {
            let case = Case::new("ConvInteger", 10).ints("pads", &[1, 0, 0, 2]);
            case.input(&[1, 3, 4, 5], &x)
        };
        let zero_of = |case: Case| match is_known {
            true => case.constant(&[], &[zero]),
            false => case.input(&[], &[zero]),
        };
        let shape = [5, 3, 2, 2];
        let one = zero_of(case().constant(&shape, &bytes)).constant(&[], &[97_u8]);
        let own = wide(&bytes);
        assert_eq!(one.values(), sums(&wide(&x), zero.into(), &own, |_| 97));
        let each = zero_of(case().constant(&shape, &bytes)).constant(&[5], &zeros);
        let expected = sums(&wide(&x), zero.into(), &own, |filter| zeros[filter].into());
        assert_eq!(each.values(), expected);
        let each = zero_of(case().constant(&shape, &signed)).constant(&[], &[-100_i8]);
        let own: Vec<i64> = signed.iter().map(|byte| i64::from(*byte)).collect();
        assert_eq!(each.values(), sums(&wide(&x), zero.into(), &own, |_| -100));
    }
}
