//! Elementwise operators: old versions, element types and invalid attributes.

use crate::case::Case;
use irc_common_format::model::AttributeValue;
use irc_tl::DType;

#[test]
fn old_broadcasting_is_specified_by_attributes() {
    let x: Vec<f32> = (0..12).map(|value| value as f32).collect();
    let add = |opset: i64| Case::new("Add", opset).input(&[2, 3, 2], &x);
    let at_channel = add(6).input(&[3], &[10.0f32, 20.0, 30.0]).int("broadcast", 1).int("axis", 1);
    let expected = [10.0, 11.0, 22.0, 23.0, 34.0, 35.0, 16.0, 17.0, 28.0, 29.0, 40.0, 41.0];
    assert_eq!(at_channel.values(), expected);
    let at_end = add(1).input(&[2], &[100.0f32, 200.0]).int("broadcast", 1);
    assert_eq!(at_end.values()[..3], [100.0, 201.0, 102.0]);
    let from_end = add(6).input(&[3], &[10.0f32, 20.0, 30.0]).int("broadcast", 1).int("axis", -2);
    assert_eq!(from_end.values(), expected);
    let outside = add(6).input(&[3], &[0.0f32; 3]).int("broadcast", 1).int("axis", 3);
    assert_eq!(
        outside.error(),
        "expected the second operand to fit at axis 3 of f32[2,3,2], found f32[3]"
    );
}

#[test]
fn the_power_is_of_the_type_of_its_base() {
    let case = Case::new("Pow", 13).input(&[3], &[2i32, -3, 7]).input(&[], &[2.5f32]);
    let power = &case.run().expect("mixed types")[0];
    assert_eq!((power.dtype(), power.to_f64()), (DType::I32, vec![5.0, 0.0, 129.0]));
    let case = Case::new("Pow", 13).input(&[2], &[2.0f32, 3.0]).input(&[2], &[10i64, -1]);
    assert_eq!(case.run().expect("mixed types")[0].to_f32(), [1024.0, 1.0 / 3.0]);
}

#[test]
fn remainders_follow_the_divisor_or_the_dividend() {
    let of = |fmod| {
        let x = Case::new("Mod", 13).input(&[4], &[-7i64, 7, -7, 7]);
        x.input(&[4], &[3i64, -3, -3, 3]).int("fmod", fmod).values()
    };
    assert_eq!(of(0), [2.0, -2.0, -1.0, 1.0]);
    assert_eq!(of(1), [-1.0, 1.0, -1.0, 1.0]);
}

#[test]
fn bounds_are_attributes_and_then_inputs() {
    let x = [-3.0f32, 0.5, f32::INFINITY];
    let old = Case::new("Clip", 6).input(&[3], &x).float("min", -1.0);
    assert_eq!(old.values(), [-1.0, 0.5, f64::from(f32::MAX)]);
    let first = Case::new("Clip", 1).input(&[3], &x).float("min", -1.0);
    assert_eq!(first.values(), [-1.0, 0.5, f64::INFINITY]);
    let new = Case::new("Clip", 13).input(&[3], &x).nothing().input(&[], &[2.0f32]);
    assert_eq!(new.values(), [-3.0, 0.5, 2.0]);
    let crossed = Case::new("Clip", 13).input(&[3], &[1i8, 5, 9]);
    assert_eq!(crossed.input(&[], &[6i8]).input(&[], &[4i8]).values(), [4.0; 3]);
}

#[test]
fn slopes_are_per_channel_in_old_versions() {
    let x = [-1.0f32, -1.0, 2.0, -1.0];
    let old = Case::new("PRelu", 6).input(&[1, 2, 2], &x).input(&[2], &[0.5f32, 0.25]);
    assert_eq!(old.values(), [-0.5, -0.5, 2.0, -0.25]);
    let new = Case::new("PRelu", 16).input(&[1, 2, 2], &x).input(&[2], &[0.5f32, 0.25]);
    assert_eq!(new.values(), [-0.5, -0.25, 2.0, -0.25]);
}

#[test]
fn activations_of_halves_round_once() {
    let x = [0.1, -2.3, 4.7];
    let of = |dtype| Case::new("Gelu", 20).input_of(dtype, &[3], &x).values();
    let rounded = Case::new("Gelu", 20).input_of(DType::F16, &[3], &x);
    for (half, single) in rounded.values().into_iter().zip(of(DType::F32)) {
        assert!((half - single).abs() < 2e-3 * single.abs() + 1e-4, "{half} {single}");
    }
    let error = Case::new("Gelu", 20).input(&[1], &[1.0f32]).string("approximate", "some");
    assert_eq!(error.error(), "expected `approximate` none or tanh, found some");
}

#[test]
fn a_gate_scales_the_other_operand() {
    let case = Case::new("SwiGLU", 28).input(&[2], &[0.0f32, 2.0]).input(&[2], &[5.0f32, 3.0]);
    let expected = (6.0 / (1.0 + (-2.0f64).exp())) as f32;
    assert_eq!(case.run().expect("floats")[0].to_f32(), [0.0, expected]);
}

#[test]
fn softplus_keeps_its_digits_below_zero() {
    let found = Case::new("Softplus", 22).input(&[1], &[-11.75f32]).values()[0];
    assert!((found / (-11.75f64).exp().ln_1p() - 1.0).abs() < 1e-6, "{found}");
}

#[test]
fn softplus_does_not_overflow() {
    let case = Case::new("Softplus", 22).input(&[3], &[1000.0f32, -1000.0, 0.0]);
    assert_eq!(case.run().expect("floats")[0].to_f32(), [1000.0, 0.0, std::f32::consts::LN_2]);
}

#[test]
fn logic_takes_truth_values_alone() {
    let case = Case::new("And", 7).input(&[2], &[1i32, 0]).input(&[2], &[1i32, 1]);
    assert_eq!(case.error(), "expected bool operands, found i32");
    let shift = Case::new("BitShift", 11).input(&[1], &[1u8]).input(&[1], &[1u8]);
    assert_eq!(shift.error(), "the attribute `direction` is missing");
    let signed = |direction| {
        let case = Case::new("BitShift", 28).input(&[4], &[-8i8, -8, -8, 8]);
        case.input(&[4], &[1i8, 9, -1, -1]).string("direction", direction).values()
    };
    assert_eq!(signed("RIGHT"), [-4.0, -1.0, -1.0, 0.0]);
    assert_eq!(signed("LEFT"), [-16.0, 0.0, 0.0, 0.0]);
}

#[test]
fn infinities_are_distinguished() {
    let x = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0];
    let of = |negative, positive| {
        let case = Case::new("IsInf", 20).input(&[4], &x);
        case.int("detect_negative", negative).int("detect_positive", positive).values()
    };
    assert_eq!(of(1, 1), [1.0, 1.0, 0.0, 0.0]);
    assert_eq!(of(1, 0), [0.0, 1.0, 0.0, 0.0]);
    assert_eq!(of(0, 1), [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(of(0, 0), [0.0; 4]);
}

#[test]
fn the_first_cast_names_its_type() {
    let name = AttributeValue::String("INT32".to_owned().into());
    let case = Case::new("Cast", 1).input(&[2], &[1.9f32, -1.9]).attribute("to", name);
    let result = &case.run().expect("a known type")[0];
    assert_eq!((result.dtype(), result.to_f64()), (DType::I32, vec![1.0, -1.0]));
    let complex = Case::new("Cast", 13).input(&[1], &[1.0f32]).int("to", 14);
    assert_eq!(complex.error(), "unsupported element type complex64");
}

#[test]
fn small_floats_saturate_by_default() {
    let x = [1e6f32, -1e6, f32::INFINITY, 0.3];
    let of = |to, saturate| {
        Case::new("Cast", 25).input(&[4], &x).int("to", to).int("saturate", saturate)
    };
    assert_eq!(of(17, 1).values(), [448.0, -448.0, 448.0, 0.3125]);
    let open = of(17, 0).values();
    assert!(open[..3].iter().all(|value| value.is_nan()), "{open:?}");
    assert_eq!(of(19, 0).values()[..3], [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY]);
    let scale = |mode: &str| {
        let case = Case::new("Cast", 25).input(&[4], &[3.0f32, 2.9, 4.0, -6.5]);
        case.int("to", 24).string("round_mode", mode).values()
    };
    assert_eq!(scale("up"), [4.0, 4.0, 4.0, 8.0]);
    assert_eq!(scale("down"), [2.0, 2.0, 4.0, 4.0]);
    assert_eq!(scale("nearest"), [4.0, 2.0, 4.0, 8.0]);
}

#[test]
fn random_numbers_depend_on_the_seed_alone() {
    let of = |op: &str, seed: f32| {
        Case::new(op, 22).ints("shape", &[4, 1000]).float("seed", seed).values()
    };
    let uniform = of("RandomUniform", 1.0);
    assert_eq!(uniform, of("RandomUniform", 1.0));
    assert_ne!(uniform, of("RandomUniform", 2.0));
    assert!(uniform.iter().all(|value| (0.0..1.0).contains(value)));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    assert!((mean(&uniform) - 0.5).abs() < 0.02, "{}", mean(&uniform));
    let normal = of("RandomNormal", 1.0);
    let squares: Vec<f64> = normal.iter().map(|value| value * value).collect();
    assert!(mean(&normal).abs() < 0.05 && (mean(&squares) - 1.0).abs() < 0.08);
    let coin = Case::new("Bernoulli", 22).input(&[2000], &[0.25f32; 2000]).float("seed", 3.0);
    assert!((mean(&coin.values()) - 0.25).abs() < 0.04);
    let chances: Vec<f32> = [0.1f32, 0.6, 0.3].map(f32::ln).to_vec();
    let die = Case::new("Multinomial", 22).input(&[1, 3], &chances);
    let drawn = die.int("sample_size", 3000).float("seed", 5.0).values();
    let share = |class| drawn.iter().filter(|found| **found == class).count() as f64 / 3000.0;
    assert!((share(0.0) - 0.1).abs() < 0.03 && (share(1.0) - 0.6).abs() < 0.03);
}

#[test]
fn dropout_drops_in_training_alone() {
    let x = [2.0f32; 1000];
    let kept = Case::new("Dropout", 22).input(&[1000], &x).outputs(2).run().expect("no training");
    assert_eq!(kept[0].to_f32(), x);
    assert_eq!(kept[1].dtype(), DType::Bool);
    let training = Case::new("Dropout", 22).input(&[1000], &x).input(&[], &[0.75f32]);
    let dropped = training.input_of(DType::Bool, &[], &[1.0]).int("seed", 1).outputs(2);
    let dropped = dropped.run().expect("training");
    let ones = dropped[1].to_f64();
    let share = ones.iter().sum::<f64>() / 1000.0;
    assert!((share - 0.25).abs() < 0.06, "{share}");
    let expected: Vec<f64> = ones.iter().map(|kept| kept * 8.0).collect();
    assert_eq!(dropped[0].to_f64(), expected);
    let old = Case::new("Dropout", 6).input(&[1000], &x).int("is_test", 1).outputs(2);
    assert_eq!(old.run().expect("a test")[1].dtype(), DType::F32);
}

#[test]
fn withdrawn_operators_are_in_old_files_alone() {
    let image = |opset| {
        let case = Case::new("ImageScaler", opset).input(&[1, 2, 1, 2], &[1.0f32, 2.0, 3.0, 4.0]);
        let bias = AttributeValue::Floats(vec![10.0, 20.0]);
        case.float("scale", 2.0).attribute("bias", bias)
    };
    assert_eq!(image(7).values(), [12.0, 14.0, 26.0, 28.0]);
    assert_eq!(image(10).error(), "no operator ImageScaler of ai.onnx 10");
    let affine = Case::new("Affine", 1).input(&[2], &[1.0f32, 2.0]);
    assert_eq!(affine.float("alpha", 3.0).float("beta", -1.0).values(), [2.0, 5.0]);
}
