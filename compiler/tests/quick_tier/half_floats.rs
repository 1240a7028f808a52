//! `bf16`, which LLVM computes with subnormal numbers as zero where the processor has instructions
//! for it: against Rust's.
use super::harness::{Case, Meaning, Pool, Type, expect, float_bits, from_bits, vector};

fn single(bits: u128) -> f32 {
    from_bits("bf16", bits) as f32
}

fn rounded(value: f32) -> u128 {
    float_bits("bf16", value.into())
}

/// The nearest `bf16`, the even one of two: `half` rounds a double that is close to a tie wrongly.
fn nearest(value: f64) -> u128 {
    let near = rounded(value as f32) as u16;
    if !value.is_finite() {
        return near.into();
    }
    // Infinity counts as the power of two after the largest number.
    let number = |bits: u16| {
        let number = from_bits("bf16", bits.into());
        if number.is_infinite() { 2_f64.powi(128).copysign(number) } else { number }
    };
    let around = [near.wrapping_sub(1), near, near.wrapping_add(1)].into_iter();
    let signed = around.filter(|bits| number(*bits).is_sign_negative() == value.is_sign_negative());
    let candidates = signed.filter(|bits| !number(*bits).is_nan());
    let distance = |bits: &u16| (number(*bits) - value).abs();
    let best =
        candidates.min_by(|a, b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))));
    best.unwrap_or(near).into()
}

fn case(name: &str, operands: &[Type], result: Type, body: String) -> Case {
    let operands = operands.iter().map(|ty| (*ty, Pool::Any)).collect();
    Case { name: name.to_owned(), operands, result, body }
}

#[test]
fn brain_floats_are_computed_in_f32_and_rounded_once() {
    let meanings: [(&str, Meaning); 4] = [
        ("fadd", |bits| rounded(single(bits[0]) + single(bits[1]))),
        ("fsub", |bits| rounded(single(bits[0]) - single(bits[1]))),
        ("fmul", |bits| rounded(single(bits[0]) * single(bits[1]))),
        ("fdiv", |bits| rounded(single(bits[0]) / single(bits[1]))),
    ];
    let mut cases = Vec::new();
    for lanes in [0, 4, 7, 16] {
        let ty = Type { element: "bf16", lanes };
        for (op, meaning) in meanings {
            let body = format!("  %r = llvm.{op} %0, %1 : {}", ty.text());
            cases.push((case(op, &[ty, ty], ty, body), meaning));
        }
    }
    expect(&cases);
}

#[test]
fn wider_floats_round_to_brain_floats_once() {
    let mut cases: Vec<(Case, Meaning)> = Vec::new();
    for lanes in [0, 3, 16] {
        for from in ["f32", "f64"] {
            let (from, to) = (Type { element: from, lanes }, Type { element: "bf16", lanes });
            let body = format!("  %r = llvm.fptrunc %0 : {} to {}", from.text(), to.text());
            let meaning: Meaning = match from.element {
                "f32" => |bits| float_bits("bf16", from_bits("f32", bits[0])),
                _ => |bits| nearest(from_bits("f64", bits[0])),
            };
            cases.push((case("fptrunc", &[from], to, body), meaning));
        }
    }
    expect(&cases);
}

#[test]
fn vectors_of_brain_floats_compare_as_numbers() {
    let (ty, truth) = (vector(16, "bf16"), vector(16, "i8"));
    let meanings: [(&str, Meaning); 4] = [
        ("olt", |bits| u128::from(single(bits[0]) < single(bits[1]))),
        ("oge", |bits| u128::from(single(bits[0]) >= single(bits[1]))),
        ("une", |bits| u128::from(single(bits[0]) != single(bits[1]))),
        ("uno", |bits| u128::from(single(bits[0]).is_nan() || single(bits[1]).is_nan())),
    ];
    let cases = meanings.map(|(predicate, meaning)| {
        let body = format!(
            "  %c = llvm.fcmp \"{predicate}\" %0, %1 : vector<16xbf16>\n  \
             %r = llvm.zext %c : vector<16xi1> to vector<16xi8>"
        );
        (case(predicate, &[ty, ty], truth, body), meaning)
    });
    expect(&cases);
}
