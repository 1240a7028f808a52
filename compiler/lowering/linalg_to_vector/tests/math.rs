//! Every expanded function against `f64`, over a dense sweep and the special values.
use super::{super::Target, Array, run};
use crate::kernel::expand_math::MAX_ULP;
use irc_mlir::ops::math;

/// All sign and exponent patterns with a spread of mantissas, and the special values.
fn sweep() -> Vec<f32> {
    let mut values = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        1e-45,
        -1e-45,
        88.722_84,
        88.722_85,
        -87.336_55,
        -103.97,
        -104.5,
        128.0,
        -149.0,
        -150.0,
        0.346_573_6,
        -0.346_573_6,
        0.927_734_4,
    ];
    for high in 0..=u16::MAX {
        values.push(f32::from_bits(
            u32::from(high) << 16 | u32::from(high).wrapping_mul(40_503) & 0xFFFF,
        ));
    }
    // The range of typical activations, densely sampled.
    values.extend((-200_000..200_000).map(|step| step as f32 * 1e-4 + 3.3e-6));
    values
}

/// Distance from the exact value in units in the last place of its `f32`.
fn ulp_error(found: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if found == rounded || found.is_nan() && rounded.is_nan() {
        return 0.0;
    }
    if !found.is_finite() || !rounded.is_finite() {
        return f64::INFINITY;
    }
    let ulp =
        f64::from((rounded.abs().max(f32::MIN_POSITIVE).to_bits() & 0x7F80_0000).max(0x0080_0000));
    let exponent = (ulp as u32 >> 23) as i32 - 127 - 23;
    (f64::from(found) - exact).abs() / 2f64.powi(exponent)
}

fn check_function(name: &str, exact: impl Fn(f64) -> f64) {
    check_body(name, &format!("%s = {name} %a : f32"), exact);
}

fn check_body(name: &str, body: &str, exact: impl Fn(f64) -> f64) {
    let values = sweep();
    let count = values.len();
    let source = format!(
        r#"
#id = affine_map<(d0) -> (d0)>
func.func @k(%x: tensor<{count}xf32>) -> tensor<{count}xf32> attributes {{tl.kernel = #tl.kernel}} {{
  %e = tensor.empty() : tensor<{count}xf32>
  %0 = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}}
    ins(%x : tensor<{count}xf32>) outs(%e : tensor<{count}xf32>) {{
  ^bb0(%a: f32, %o: f32):
    {body}
    linalg.yield %s : f32 }} -> tensor<{count}xf32>
  return %0 : tensor<{count}xf32>
}}"#
    );
    let mut input = Array::new(&[count as i64], "f32");
    values.iter().enumerate().for_each(|(index, value)| input.set(index, f64::from(*value)));
    let found = run(&source, &mut [input], &Target::default());
    let mut worst = (0.0, 0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let found = found[0].get(index) as f32;
        let error = ulp_error(found, exact(f64::from(*value)));
        if error > worst.0 {
            worst = (error, *value, found);
        }
    }
    println!("{name}: {} ulp at {:e}", worst.0, worst.1);
    assert!(worst.0 <= MAX_ULP, "{name}({:e}) = {:e}: {} ulp", worst.1, worst.2, worst.0);
}

/// `erf` by its series and its continued fraction.
fn erf(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 {
        return x;
    }
    let a = x.abs();
    let value = if a > 6.0 {
        1.0
    } else if a < 2.5 {
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term.abs() > 1e-18 * sum {
            n += 1.0;
            term *= -a * a / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    } else {
        let tail = (1..200).rev().fold(a, |rest, n| a + f64::from(n) / 2.0 / rest);
        1.0 - (-a * a).exp() / tail / std::f64::consts::PI.sqrt()
    };
    value.copysign(x)
}

#[test]
fn exponentials() {
    check_function(math::EXP, f64::exp);
    check_function(math::EXP2, f64::exp2);
    check_function(math::EXPM1, f64::exp_m1);
    let body = "%b = math.absf %a : f32
    %c = arith.negf %b : f32
    %s = math.exp %c {tl.nonpositive} : f32";
    let exact = |x: f64| if x.abs() > 87.0 { 0.0 } else { (-x.abs()).exp() };
    check_body("exp of at most zero", body, exact);
}

#[test]
fn logarithms() {
    check_function(math::LOG, f64::ln);
    check_function(math::LOG2, f64::log2);
    check_function(math::LOG10, f64::log10);
    check_function(math::LOG1P, f64::ln_1p);
}

#[test]
fn sigmoids_and_roots() {
    check_function(math::TANH, f64::tanh);
    check_function(math::ERF, erf);
    check_function(math::RSQRT, |x| 1.0 / x.sqrt());
}

#[test]
fn angles() {
    check_function(math::SIN, f64::sin);
    check_function(math::COS, f64::cos);
    check_function(math::TAN, f64::tan);
    check_function(math::ASIN, f64::asin);
    check_function(math::ACOS, f64::acos);
    check_function(math::ATAN, f64::atan);
}

#[test]
fn hyperbolic_angles() {
    check_function(math::SINH, f64::sinh);
    check_function(math::COSH, f64::cosh);
    check_function(math::ASINH, f64::asinh);
    check_function(math::ACOSH, f64::acosh);
    check_function(math::ATANH, f64::atanh);
}

#[test]
fn powers() {
    let exponents = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        3.0,
        -2.0,
        -3.0,
        0.5,
        -0.5,
        1.0 / 3.0,
        2.5,
        10.0,
        31.0,
        100.5,
        16_777_217.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1e-30,
        1e30,
    ];
    for exponent in exponents {
        let text = match exponent {
            y if y.is_nan() => "0x7FC00000".to_owned(),
            y => format!("0x{:08X}", y.to_bits()),
        };
        let constant = format!("%y = arith.constant {text} : f32\n    %s = math.powf %a, %y : f32");
        check_body(&format!("pow {exponent}"), &constant, |x| x.powf(f64::from(exponent)));
    }
}

#[test]
fn f64_comes_from_libm() {
    let source = r#"
#id = affine_map<(d0) -> (d0)>
func.func @k(%x: tensor<5xf64>) -> tensor<5xf64> attributes {tl.kernel = #tl.kernel} {
  %e = tensor.empty() : tensor<5xf64>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<5xf64>) outs(%e : tensor<5xf64>) {
  ^bb0(%a: f64, %o: f64):
    %s = math.atan %a : f64
    linalg.yield %s : f64 } -> tensor<5xf64>
  return %0 : tensor<5xf64>
}"#;
    super::check(source, 1e-15);
}
