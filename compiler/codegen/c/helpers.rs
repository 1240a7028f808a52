//! Helpers on floats, written once for vectors of any length; a scalar is a vector of one lane.
//!
//! In a body, `{X}` is a vector of the floats that the helper is for, `{B}` one of their bits; `{F}` and
//! `{U}` are floats and unsigned integers of 32 bits, `{H}` unsigned integers of 16 bits, `{D}` and `{L}`
//! floats and unsigned integers of 64 bits, each of as many lanes. `{S}` is the sign bit, `{M}` the number
//! from which on all are integers, `{1}` and `{h}` the bits of 1 and 1/2. `{&}` precedes an argument of
//! type `{X}`.
use super::{
    super::layout::{Element, Shape},
    types::{self, Lane, is_wide},
    unit::Unit,
};

/// A helper for vectors of any length.
pub struct Template {
    name: &'static str,
    result: char,
    parameters: &'static [(char, &'static str)],
    body: &'static str,
    uses: &'static [&'static Template],
}

/// `f16` as `f32`, exactly: scaling by a power of two normalises subnormal numbers (Maratyszcza, `FP16`).
pub static F16_TO_F32: Template = Template {
    name: "c_f16_to_f32",
    result: 'F',
    parameters: &[('H', "x")],
    body: "  const {U} bits = __builtin_convertvector(x, {U});
  const {U} sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  /* The bias of the exponent is 112 less than that of f32. */
  const {U} number = ({U})(({F})(magnitude << 13) * 0x1p+112f);
  const {U} infinite = ({U})(magnitude > 0x7bffu), nan = ({U})(magnitude > 0x7c00u);
  return ({F})(number | (infinite & 0x7f800000u) | (nan & 0x00400000u) | sign);
",
    uses: &[],
};

/// `f32` as the nearest `f16`, ties to even.
pub static F32_TO_F16: Template = Template {
    name: "c_f32_to_f16",
    result: 'H',
    parameters: &[('F', "x")],
    body: "  const {U} bits = ({U})x, sign = (bits & 0x80000000u) >> 16;
  /* Up by 2^112 and down by 2^-110: what is too large becomes infinite. */
  const {F} scaled = ({F})(bits & 0x7fffffffu) * 0x1p+112f * 0x1p-110f;
  /* Adding a power of two that leaves eleven bits to the sum rounds it to them. */
  const {U} exponent = (bits + bits) & 0xff000000u, small = ({U})(exponent < 0x71000000u);
  const {U} bias = (((exponent & ~small) | (small & 0x71000000u)) >> 1) + 0x07800000u;
  const {U} sum = ({U})(({F})bias + scaled);
  const {U} number = ((sum >> 13) & 0x7c00u) + (sum & 0x0fffu);
  const {U} nan = ({U})(x != x), quiet = ((bits >> 13) & 0x3ffu) | 0x7e00u;
  return __builtin_convertvector((number & ~nan) | (quiet & nan) | sign, {H});
",
    uses: &[],
};

/// `bf16` as `f32`.
pub static BF16_TO_F32: Template = Template {
    name: "c_bf16_to_f32",
    result: 'F',
    parameters: &[('H', "x")],
    body: "  return ({F})(__builtin_convertvector(x, {U}) << 16);\n",
    uses: &[],
};

/// `f32` as the nearest `bf16`, ties to even.
pub static F32_TO_BF16: Template = Template {
    name: "c_f32_to_bf16",
    result: 'H',
    parameters: &[('F', "x")],
    body: "  const {U} bits = ({U})x, upper = bits >> 16;
  const {U} rounded = (bits + (upper & 1u) + 0x7fffu) >> 16;
  const {U} nan = ({U})(x != x);
  return __builtin_convertvector((rounded & ~nan) | ((upper | 0x40u) & nan), {H});
",
    uses: &[],
};

/// `f64` as an `f32` whose last bit is set if bits were truncated: rounding that to less than 23 bits has
/// the result of rounding the `f64` directly (Boldo and Melquiond, rounding to odd).
pub static F64_TO_ODD: Template = Template {
    name: "c_f64_to_odd_f32",
    result: 'F',
    parameters: &[('D', "x")],
    body: "  const {F} nearest = __builtin_convertvector(x, {F});
  const {D} back = __builtin_convertvector(nearest, {D});
  const {L} far = ({L})(({D})(({L})back & 0x7fffffffffffffffull) > ({D})(({L})x & 0x7fffffffffffffffull));
  const {L} inexact = ({L})(back < x) | ({L})(back > x);
  const {U} cut = ({U})nearest + __builtin_convertvector(far, {U});
  return ({F})(cut | (__builtin_convertvector(inexact, {U}) & 1u));
",
    uses: &[],
};

/// `a * b + c` in `f32`, rounded once.
pub static FMA_F32: Template = Template {
    name: "c_fma",
    result: 'F',
    parameters: &[('F', "a"), ('F', "b"), ('F', "c")],
    body: "  /* The product is exact in f64, and the sum rounded to odd: rounding it again is right. */
  const {D} zero = {0};
  const {D} x = __builtin_convertvector(a, {D}) * __builtin_convertvector(b, {D});
  const {D} y = __builtin_convertvector(c, {D}), sum = x + y, part = sum - x;
  const {D} rest = (x - (sum - part)) + (y - part);
  const {L} below = ({L})(rest < zero), above = ({L})(rest > zero);
  const {L} far = (below & ({L})(sum > zero)) | (above & ({L})(sum < zero));
  const {L} odd = (({L})sum + far) | ((below | above) & 1u);
  return __builtin_convertvector(({D})odd, {F});
",
    uses: &[],
};

/// The nearest integer, ties to even.
pub static RINT: Template = Template {
    name: "c_rint",
    result: 'X',
    parameters: &[('X', "x")],
    body: "  const {B} sign = ({B})x & {S};
  const {X} magnitude = ({X})(({B})x & ~{S});
  const {B} fraction = ({B})(magnitude < {M}), rounded = ({B})((magnitude + {M}) - {M});
  return ({X})((rounded & fraction) | (({B})magnitude & ~fraction) | sign);
",
    uses: &[],
};

/// The greatest integer that is not greater than the number.
pub static FLOOR: Template = Template {
    name: "c_floor",
    result: 'X',
    parameters: &[('X', "x")],
    body: "  const {X} near = c_rint_{X}({&}x);
  return near - ({X})(({B})(near > x) & {1});
",
    uses: &[&RINT],
};

/// The least integer that is not less than the number.
pub static CEIL: Template = Template {
    name: "c_ceil",
    result: 'X',
    parameters: &[('X', "x")],
    body: "  const {X} near = c_rint_{X}({&}x);
  const {X} up = near + ({X})(({B})(near < x) & {1});
  return ({X})(({B})up | (({B})x & {S}));
",
    uses: &[&RINT],
};

/// The number without its fraction.
pub static TRUNC: Template = Template {
    name: "c_trunc",
    result: 'X',
    parameters: &[('X', "x")],
    body: "  const {X} magnitude = ({X})(({B})x & ~{S});
  const {X} down = c_floor_{X}({&}magnitude);
  return ({X})(({B})down | (({B})x & {S}));
",
    uses: &[&FLOOR],
};

/// The nearest integer, ties away from zero: the fraction is exact, so that it can be compared with 1/2.
pub static ROUND: Template = Template {
    name: "c_round",
    result: 'X',
    parameters: &[('X', "x")],
    body: "  const {X} cut = c_trunc_{X}({&}x);
  const {X} rest = ({X})(({B})(x - cut) & ~{S});
  const {B} more = ({B})(rest >= {h});
  const {X} one = ({X})((more & {1}) | (more & ({B})x & {S}));
  return ({X})(({B})(cut + one) | (({B})x & {S}));
",
    uses: &[&TRUNC],
};

/// The maximum, where -0 is less than 0; NaN if either operand is NaN.
pub static MAXIMUM: Template = Template {
    name: "c_maximum",
    result: 'X',
    parameters: &[('X', "a"), ('X', "b")],
    body: "  const {B} same = ({B})(a == b), left = ({B})(a > b) | ({B})(a != a);
  const {B} one = (({B})a & left) | (({B})b & ~left);
  return ({X})((({B})a & ({B})b & same) | (one & ~same));
",
    uses: &[],
};

/// The minimum, where -0 is less than 0; NaN if either operand is NaN.
pub static MINIMUM: Template = Template {
    name: "c_minimum",
    result: 'X',
    parameters: &[('X', "a"), ('X', "b")],
    body: "  const {B} same = ({B})(a == b), left = ({B})(a < b) | ({B})(a != a);
  const {B} one = (({B})a & left) | (({B})b & ~left);
  return ({X})(((({B})a | ({B})b) & same) | (one & ~same));
",
    uses: &[],
};

/// The maximum, where -0 is less than 0; the other operand if one is NaN.
pub static MAXNUM: Template = Template {
    name: "c_maxnum",
    result: 'X',
    parameters: &[('X', "a"), ('X', "b")],
    body: "  const {B} same = ({B})(a == b), left = ({B})(a > b) | ({B})(b != b);
  const {B} one = (({B})a & left) | (({B})b & ~left);
  return ({X})((({B})a & ({B})b & same) | (one & ~same));
",
    uses: &[],
};

/// The minimum, where -0 is less than 0; the other operand if one is NaN.
pub static MINNUM: Template = Template {
    name: "c_minnum",
    result: 'X',
    parameters: &[('X', "a"), ('X', "b")],
    body: "  const {B} same = ({B})(a == b), left = ({B})(a < b) | ({B})(b != b);
  const {B} one = (({B})a & left) | (({B})b & ~left);
  return ({X})(((({B})a | ({B})b) & same) | (one & ~same));
",
    uses: &[],
};

/// The element type of a letter in a template, for `f32` or `f64`.
fn element_of(kind: char, float: Element) -> Element {
    match (kind, float) {
        ('X', float) => float,
        ('B', Element::Double) | ('L', _) => Element::Int(64),
        ('B' | 'U', _) => Element::Int(32),
        ('H', _) => Element::Int(16),
        ('D', _) => Element::Double,
        _ => Element::Float,
    }
}

impl Unit {
    /// Adds a template's helper for a scalar or vector of `f32` or `f64`. Returns its name.
    pub fn template(&mut self, template: &'static Template, shape: Shape) -> String {
        let lanes = shape.lanes.unwrap_or(1);
        let of = |kind| Shape { element: element_of(kind, shape.element), lanes: Some(lanes) };
        let (first, _) = template.parameters[0];
        let suffix = self.ty(of(first));
        let name = format!("{}_{suffix}", template.name);
        self.helper(&name, |unit| {
            for used in template.uses {
                unit.template(used, shape);
            }
            let parameters: Vec<_> =
                template.parameters.iter().map(|(kind, name)| (of(*kind), *name)).collect();
            let result = unit.ty(of(template.result));
            let head = unit.head(&result, &name, &parameters);
            let body = unit.filled(template.body, shape.element, lanes);
            format!("{head}{body}}}\n")
        });
        if shape.lanes.is_some() {
            return name;
        }
        let scalar = |kind| Shape::scalar(element_of(kind, shape.element));
        let short = types::short(scalar(first));
        let one_lane = name;
        let name = format!("{}_{short}", template.name);
        self.helper(&name, |unit| {
            let parameters: Vec<_> =
                template.parameters.iter().map(|(kind, name)| (scalar(*kind), *name)).collect();
            let result = unit.ty(scalar(template.result));
            let head = unit.head(&result, &name, &parameters);
            let arguments = template.parameters.iter();
            let arguments: Vec<String> = arguments
                .map(|(kind, name)| format!("({}){{{name}}}", unit.ty(of(*kind))))
                .collect();
            format!("{head}  return {one_lane}({})[0];\n}}\n", arguments.join(", "))
        });
        name
    }

    fn filled(&mut self, body: &str, float: Element, lanes: u32) -> String {
        let wide = is_wide(Shape { element: float, lanes: Some(lanes) });
        let double = float == Element::Double;
        let numbers = [
            ("{S}", if double { "0x8000000000000000ull" } else { "0x80000000u" }),
            ("{M}", if double { "0x1p+52" } else { "0x1p+23f" }),
            ("{1}", if double { "0x3ff0000000000000ull" } else { "0x3f800000u" }),
            ("{h}", if double { "0.5" } else { "0.5f" }),
            ("{&}", if wide { "&" } else { "" }),
        ];
        let mut text = body.to_owned();
        for (letter, number) in numbers {
            text = text.replace(letter, number);
        }
        for kind in ['X', 'B', 'F', 'U', 'H', 'D', 'L'] {
            let letter = format!("{{{kind}}}");
            if text.contains(&letter) {
                let lane = Lane::of(element_of(kind, float));
                text = text.replace(&letter, &self.vector(lane, lanes));
            }
        }
        text
    }
}
