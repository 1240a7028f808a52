//! Reductions, scans and normalisation: versions, empty axes, unknown sizes.

use crate::case::Case;
use irc_tl::DType;

fn ramp(count: usize) -> Vec<f32> {
    (0..count).map(|value| value as f32).collect()
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
}

#[test]
fn axes_are_an_attribute_and_then_an_input() {
    let x = ramp(6);
    let old = Case::new("ReduceSum", 11).input(&[2, 3], &x).ints("axes", &[-1]).int("keepdims", 0);
    assert_eq!(old.values(), [3.0, 12.0]);
    let new = Case::new("ReduceSum", 13).input(&[2, 3], &x).constant(&[1], &[0i64]);
    let result = &new.run().expect("an axis")[0];
    assert_eq!((result.shape(), result.to_f64()), (&[1, 3][..], vec![3.0, 5.0, 7.0]));
    let runtime = Case::new("ReduceSum", 13).input(&[2, 3], &x).input(&[1], &[0i64]);
    assert_eq!(runtime.error(), "input 1 must be known when the model is compiled");
    let twice = Case::new("ReduceSum", 11).input(&[2, 3], &x).ints("axes", &[1, -1]);
    assert_eq!(twice.error(), "expected distinct axes, found [1, -1]");
}

#[test]
fn no_axes_mean_all_or_none() {
    let x = [1.0f32, 2.0, 3.0];
    let all = Case::new("ReduceSumSquare", 18).input(&[3], &x);
    assert_eq!(all.values(), [14.0]);
    let none = Case::new("ReduceSumSquare", 18).input(&[3], &x).int("noop_with_empty_axes", 1);
    assert_eq!(none.values(), [1.0, 4.0, 9.0]);
}

#[test]
fn extremes_of_nothing_are_those_of_the_type() {
    let of = |op: &str, dtype| {
        let case = Case::new(op, 20).input_of(dtype, &[2, 0], &[]);
        case.constant(&[1], &[1i64]).values()
    };
    assert_eq!(of("ReduceMax", DType::F32), [f64::NEG_INFINITY; 2]);
    assert_eq!(of("ReduceMin", DType::I8), [127.0; 2]);
    assert_eq!(of("ReduceLogSumExp", DType::F32), [f64::NEG_INFINITY; 2]);
    assert_eq!(of("ReduceMax", DType::Bool), [0.0; 2]);
}

#[test]
fn log_sum_exp_does_not_overflow() {
    let case = Case::new("ReduceLogSumExp", 18).input(&[2], &[1000.0f32, 1000.0]);
    let expected = 1000.0 + std::f32::consts::LN_2;
    assert_eq!(case.run().expect("floats")[0].to_f32(), [expected]);
}

#[test]
fn the_place_of_an_extreme_is_the_first_or_the_last() {
    let x = [1.0f32, 3.0, 3.0, f32::NAN, 0.0, f32::NAN];
    let of = |op: &str, last| {
        let case = Case::new(op, 13).input(&[2, 3], &x).int("axis", 1).int("keepdims", 0);
        case.int("select_last_index", last).values()
    };
    assert_eq!(of("ArgMax", 0), [1.0, 0.0]);
    assert_eq!(of("ArgMax", 1), [2.0, 2.0]);
    assert_eq!(of("ArgMin", 0), [0.0, 0.0]);
}

#[test]
fn running_sums_are_equal_over_short_and_long_axes() {
    for count in [5usize, 100] {
        for (exclusive, reverse) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let x: Vec<i32> = (1..=count as i32).collect();
            let case = Case::new("CumSum", 14).input(&[count as i64], &x).constant(&[], &[0i64]);
            let found = case.int("exclusive", exclusive).int("reverse", reverse).values();
            let expected = |at: usize| {
                let own = if exclusive == 1 { 1 } else { 0 };
                let parts = if reverse == 1 { &x[at + own..] } else { &x[..at + 1 - own] };
                f64::from(parts.iter().sum::<i32>())
            };
            assert_eq!(found, (0..count).map(expected).collect::<Vec<_>>());
        }
    }
}

#[test]
fn softmax_flattens_in_old_versions() {
    let of = |opset: i64| {
        let case = Case::new("Softmax", opset).input(&[1, 2, 2], &[0.0f32; 4]);
        case.int("axis", 1).values()
    };
    assert_eq!(of(11), [0.25; 4]);
    assert_eq!(of(13), [0.5; 4]);
    let hard = Case::new("Hardmax", 11).input(&[1, 2, 2], &[1.0f32, 5.0, 5.0, 0.0]).int("axis", 1);
    assert_eq!(hard.values(), [0.0, 1.0, 0.0, 0.0]);
    let behind = Case::new("Softmax", 11).input(&[2], &[1.0f32, 2.0]).int("axis", 1);
    assert_eq!(behind.values(), [1.0, 1.0]);
}

#[test]
fn softmax_of_large_numbers_is_finite() {
    let case = Case::new("Softmax", 13).input_of(DType::F16, &[2], &[60000.0, 60000.0]);
    assert_eq!(case.values(), [0.5, 0.5]);
}

fn batch(opset: i64) -> Case {
    let x = [1.0f32, 3.0, 10.0, 20.0, 5.0, 7.0, 30.0, 40.0];
    let case = Case::new("BatchNormalization", opset).input(&[2, 2, 2], &x);
    let case = case.input(&[2], &[1.0f32, 2.0]).input(&[2], &[0.0f32, 1.0]);
    case.input(&[2], &[1.0f32, 10.0]).input(&[2], &[4.0f32, 100.0]).float("epsilon", 0.0)
}

#[test]
fn batches_are_normalised_by_given_statistics() {
    for opset in [6, 7, 9, 14, 15] {
        let found = batch(opset).int("is_test", 1).values();
        close(&found, &[0.0, 1.0, 1.0, 3.0, 2.0, 3.0, 5.0, 7.0]);
    }
}

#[test]
fn training_uses_the_statistics_of_the_batch() {
    let new = batch(15).int("training_mode", 1).outputs(3).run().expect("training");
    // The first channel holds 1, 3, 5 and 7: mean 4 and variance 5.
    close(&new[0].to_f64()[..2], &[-3.0 / 5f64.sqrt(), -1.0 / 5f64.sqrt()]);
    close(&new[1].to_f64(), &[1.3, 0.9 * 10.0 + 0.1 * 25.0]);
    close(&new[2].to_f64(), &[0.9 * 4.0 + 0.1 * 5.0, 0.9 * 100.0 + 0.1 * 125.0]);
    let old = batch(7).outputs(5).run().expect("training");
    assert_eq!(old[..3], new[..]);
    close(&old[3].to_f64(), &[4.0, 25.0]);
}

#[test]
fn statistics_may_be_of_every_element_of_a_sample() {
    let case = Case::new("BatchNormalization", 7).input(&[1, 2, 1], &[3.0f32, 5.0]);
    let case = case.input(&[2, 1], &[1.0f32, 1.0]).input(&[2, 1], &[0.0f32, 0.0]);
    let case = case.input(&[2, 1], &[1.0f32, 1.0]).input(&[2, 1], &[4.0f32, 4.0]);
    close(&case.int("spatial", 0).float("epsilon", 0.0).values(), &[1.0, 2.0]);
}

#[test]
fn groups_scale_as_one_and_then_by_channel() {
    let x = [0.0f32, 2.0, 0.0, 2.0];
    let of = |opset: i64, scale: &[f32]| {
        let count = scale.len() as i64;
        let case = Case::new("GroupNormalization", opset).input(&[1, 4, 1], &x);
        let case = case.input(&[count], scale).input(&[count], &vec![0.0f32; scale.len()]);
        case.int("num_groups", 2).float("epsilon", 0.0).values()
    };
    close(&of(18, &[1.0, 10.0]), &[-1.0, 1.0, -10.0, 10.0]);
    close(&of(21, &[1.0, 2.0, 3.0, 4.0]), &[-1.0, 2.0, -3.0, 4.0]);
    let uneven = Case::new("GroupNormalization", 21).input(&[1, 3, 1], &[0.0f32; 3]);
    let uneven = uneven.input(&[3], &[1.0f32; 3]).input(&[3], &[0.0f32; 3]).int("num_groups", 2);
    assert!(uneven.error().contains("expected channels in 2 groups of one size"));
}

#[test]
fn layers_of_halves_are_normalised_in_singles() {
    // The squares of the differences are beyond f16.
    let case = Case::new("LayerNormalization", 17).input_of(DType::F16, &[1, 2], &[0.0, 2000.0]);
    let results = case.input_of(DType::F16, &[2], &[1.0, 1.0]).outputs(3).run().expect("floats");
    assert_eq!(results[0].to_f64(), [-1.0, 1.0]);
    assert_eq!((results[1].dtype(), results[1].to_f64()), (DType::F32, vec![1000.0]));
}

#[test]
fn windows_of_channels_end_at_the_borders() {
    let case = Case::new("LRN", 13).input(&[1, 3, 1], &[1.0f32, 2.0, 3.0]).int("size", 2);
    let found = case.float("alpha", 2.0).float("beta", 1.0).float("bias", 1.0).values();
    // A window of two is the channel itself and the next one.
    close(&found, &[1.0 / 6.0, 2.0 / 14.0, 3.0 / 10.0]);
}

#[test]
fn losses_leave_out_what_is_ignored() {
    let x = [-1.0f32, -2.0, -3.0, -4.0, -5.0, -6.0];
    let loss = |reduction: &str| {
        let case = Case::new("NegativeLogLikelihoodLoss", 13).input(&[3, 2], &x);
        let case = case.input(&[3], &[1i64, -1, 0]).input(&[2], &[1.0f32, 3.0]);
        case.string("reduction", reduction).int("ignore_index", -1).values()
    };
    assert_eq!(loss("none"), [6.0, 0.0, 5.0]);
    assert_eq!(loss("sum"), [11.0]);
    assert_eq!(loss("mean"), [11.0 / 4.0]);
}
