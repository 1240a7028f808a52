//! LLVM's numeric intrinsics.
use super::{
    super::layout::{Element, Shape},
    arithmetic::Operand,
    function::{Body, Op, Parts, Result, unsupported},
    helpers::{CEIL, FLOOR, FMA_F32, MAXIMUM, MAXNUM, MINIMUM, MINNUM, RINT, ROUND, TRUNC},
    types::{self, Lane},
    unit::Unit,
};

impl Body<'_> {
    /// The maximum or minimum of two integers.
    pub fn integer_extreme(&mut self, op: &Op<'_, '_>, name: &str) -> Result<String> {
        let operands = self.operands(op)?;
        let shape = operands[0].0;
        Ok(self.each_lane(name, shape, &operands, |unit, values| {
            format!("{}({}, {})", unit.extreme(shape.element, name), values[0], values[1])
        }))
    }

    /// A fused multiply-add, with the processor's instruction if it has one.
    pub fn fma(&mut self, op: &Op<'_, '_>) -> Result<String> {
        let operands = self.operands(op)?;
        let shape = operands[0].0;
        let values: Vec<&str> = operands.iter().map(|(_, value)| value.as_str()).collect();
        self.multiplies_and_adds = true;
        Ok(self.in_float(shape, &values, |body, shape, values| {
            let operands: Vec<Operand> =
                values.iter().map(|value| (shape, value.clone())).collect();
            if shape.element == Element::Double {
                return body.library_function("fma", shape, &operands);
            }
            let helper = body.unit.fused(shape);
            let [a, b, c] = [0, 1, 2].map(|at| (shape, operands[at].1.as_str()));
            let fused = (Shape::scalar(Element::Int(1)), super::module::FUSED);
            body.invoke(&helper, &[a, b, c, fused])
        }))
    }

    /// The magnitude of a float, or the magnitude with the sign of another.
    pub fn sign(&mut self, op: &Op<'_, '_>, copied: bool) -> Result<String> {
        let (shape, value) = self.operand(op, 0)?;
        let sign = if copied { Some(self.operand(op, 1)?.1) } else { None };
        if shape.lanes.is_none() && !shape.element.is_small_float() {
            self.unit.header("math.h");
            let suffix = if shape.element == Element::Float { "f" } else { "" };
            return Ok(match sign {
                None => format!("fabs{suffix}({value})"),
                Some(sign) => format!("copysign{suffix}({value}, {sign})"),
            });
        }
        let bits = shape.of(Element::Int(shape.element.lane_bits()));
        let top = 1_u128 << (shape.element.lane_bits() - 1);
        let (rest, top) = (self.splat_literal(bits, top - 1), self.splat_literal(bits, top));
        let (ty, result) = (self.unit.ty(bits), self.unit.ty(shape));
        let magnitude = format!("(({ty}){value} & {rest})");
        Ok(match sign {
            None => format!("({result}){magnitude}"),
            Some(sign) => format!("({result})({magnitude} | (({ty}){sign} & {top}))"),
        })
    }

    pub fn rounding(&mut self, op: &Op<'_, '_>, name: &str) -> Result<String> {
        let (shape, value) = self.operand(op, 0)?;
        Ok(self.in_float(shape, &[&value], |body, shape, values| {
            let operand = (shape, values[0].clone());
            let template = match name {
                "sqrt" => return body.library_function("sqrt", shape, &[operand]),
                "floor" => &FLOOR,
                "ceil" => &CEIL,
                "trunc" => &TRUNC,
                "round" => &ROUND,
                _ => &RINT,
            };
            let helper = body.unit.template(template, shape);
            body.invoke(&helper, &[(shape, &values[0])])
        }))
    }

    pub fn float_extreme(&mut self, op: &Op<'_, '_>, name: &str) -> Result<String> {
        let ((shape, left), (_, right)) = (self.operand(op, 0)?, self.operand(op, 1)?);
        let template = match name {
            "maximum" => &MAXIMUM,
            "minimum" => &MINIMUM,
            "maxnum" | "maximumnum" => &MAXNUM,
            _ => &MINNUM,
        };
        Ok(self.in_float(shape, &[&left, &right], |body, shape, values| {
            let helper = body.unit.template(template, shape);
            body.invoke(&helper, &[(shape, &values[0]), (shape, &values[1])])
        }))
    }

    pub fn bits(&mut self, op: &Op<'_, '_>, name: &str) -> Result<String> {
        let operand = self.operand(op, 0)?;
        let shape = operand.0;
        let Element::Int(bits @ (8 | 16 | 32 | 64)) = shape.element else {
            return Err(unsupported(op, "this type"));
        };
        let lane = Lane::Unsigned(bits);
        // The builtins take int or long long.
        let (long, extra) = if bits == 64 { ("ll", 0) } else { ("", 32 - bits) };
        Ok(self.each_lane(name, shape, &[operand], |unit, values| {
            let x = &values[0];
            match name {
                "abs" => {
                    let signed = Lane::Signed(bits).c();
                    format!("({signed}){x} < 0 ? ({0})-{x} : {x}", lane.c())
                }
                "ctpop" => format!("({})__builtin_popcount{long}({x})", lane.c()),
                "ctlz" => {
                    let zeros = format!("({})(__builtin_clz{long}({x}) - {extra})", lane.c());
                    format!("{x} == 0 ? {bits} : {zeros}")
                }
                "cttz" => format!("{x} == 0 ? {bits} : ({})__builtin_ctz{long}({x})", lane.c()),
                "bswap" if bits == 8 => x.clone(),
                "bswap" => format!("__builtin_bswap{bits}({x})"),
                _ => format!("{}({x})", unit.bit_reverse(bits)),
            }
        }))
    }

    /// The upper or lower bits of two concatenated numbers, shifted by an amount modulo their width.
    pub fn funnel(&mut self, op: &Op<'_, '_>, name: &str) -> Result<String> {
        let operands = self.operands(op)?;
        let shape = operands[0].0;
        let Element::Int(bits @ (8 | 16 | 32 | 64)) = shape.element else {
            return Err(unsupported(op, "this type"));
        };
        Ok(self.each_lane(name, shape, &operands, |unit, values| {
            let ty = Lane::Unsigned(bits).c();
            let helper = format!("c_{name}_u{bits}");
            let scalar = Shape::scalar(shape.element);
            unit.helper(&helper, |unit| {
                let parameters = [(scalar, "high"), (scalar, "low"), (scalar, "by")];
                let head = unit.head(&ty, &helper, &parameters);
                let (up, down, whole) = match name {
                    "fshl" => ("n".to_owned(), format!("{bits} - n"), "high"),
                    _ => (format!("{bits} - n"), "n".to_owned(), "low"),
                };
                format!(
                    "{head}  const int n = (int)(by & {});\n  \
                     return n == 0 ? {whole} : ({ty})((uint64_t)high << ({up}) | (uint64_t)low >> ({down}));\n}}\n",
                    bits - 1
                )
            });
            format!("{helper}({})", values.join(", "))
        }))
    }

    pub fn overflowing(&mut self, op: &Op<'_, '_>, name: &str) -> Result<()> {
        let ((shape, left), (_, right)) = (self.operand(op, 0)?, self.operand(op, 1)?);
        let (Shape { element: Element::Int(bits @ (8 | 16 | 32 | 64)), lanes: None }, true) =
            (shape, ["add", "sub", "mul"].contains(&name.get(1..).unwrap_or_default()))
        else {
            return Err(unsupported(op, "this type"));
        };
        let lane =
            if name.starts_with('s') { Lane::Signed(bits).c() } else { Lane::Unsigned(bits).c() };
        let (number, result) = (self.fresh("v"), self.fresh("v"));
        self.line(&format!("{lane} {number};"));
        self.line(&format!(
            "const bool {result} = __builtin_{}_overflow(({lane}){left}, ({lane}){right}, &{number});",
            &name[1..]
        ));
        let number = self.name(shape, &format!("({}){number}", Lane::Unsigned(bits).c()));
        self.define_parts(op, vec![number, result])
    }

    pub fn saturating(&mut self, op: &Op<'_, '_>, name: &str) -> Result<String> {
        let operands = self.operands(op)?;
        let shape = operands[0].0;
        let Element::Int(bits @ (8 | 16 | 32 | 64)) = shape.element else {
            return Err(unsupported(op, "this type"));
        };
        let signed = name.starts_with('s');
        let ty = Lane::Unsigned(bits).c();
        let of = if signed { Lane::Signed(bits).c() } else { ty.clone() };
        let scalar = Shape::scalar(shape.element);
        Ok(self.each_lane(&format!("{name}_sat"), shape, &operands, |unit, values| {
            let helper = format!("c_{name}_sat_u{bits}");
            unit.helper(&helper, |unit| {
                let head = unit.head(&ty, &helper, &[(scalar, "a"), (scalar, "b")]);
                let top = 1_u128 << (bits - 1);
                let limit = match name {
                    "uadd" => unit.literal(shape.element, u128::MAX),
                    "usub" => "0".to_owned(),
                    // Saturates at the minimum for a negative number, at the maximum for another.
                    _ => {
                        let (least, most) = (
                            unit.literal(shape.element, top),
                            unit.literal(shape.element, top - 1),
                        );
                        format!("({of})a < 0 ? {least} : {most}")
                    }
                };
                format!(
                    "{head}  {of} sum;\n  \
                     const bool over = __builtin_{}_overflow(({of})a, ({of})b, &sum);\n  \
                     return ({ty})(over ? ({limit}) : ({ty})sum);\n}}\n",
                    &name[1..]
                )
            });
            format!("{helper}({}, {})", values[0], values[1])
        }))
    }

    /// Whether floats belong to any of the classes of a mask, whose bits are in LLVM's order.
    pub fn float_class(&mut self, op: &Op<'_, '_>, wanted: i64) -> Result<String> {
        let value = self.operand(op, 0)?;
        let element = value.0.element;
        let mantissa = match element {
            Element::Half => 10,
            Element::Bfloat => 7,
            Element::Float => 23,
            Element::Double => 52,
            _ => return Err(unsupported(op, "this type")),
        };
        let truth = value.0.of(Element::Int(1));
        let format = if element == Element::Bfloat { "bf16" } else { "" };
        Ok(self.each_lane(&format!("class{wanted}{format}"), truth, &[value], |unit, values| {
            let helper = unit.class_helper(element, mantissa, wanted);
            let bits = match element.is_small_float() {
                true => values[0].clone(),
                false => unit.bits_of_float(element, &values[0]),
            };
            format!("{helper}({bits})")
        }))
    }
}

impl Unit {
    /// The helper that computes the maximum or minimum of two integers.
    pub fn extreme(&mut self, element: Element, kind: &str) -> String {
        let scalar = Shape::scalar(element);
        let name = format!("c_{kind}_{}", types::short(scalar));
        self.helper(&name, |unit| {
            let ty = unit.ty(scalar);
            let head = unit.head(&ty, &name, &[(scalar, "a"), (scalar, "b")]);
            let sign = if kind.ends_with("max") { ">" } else { "<" };
            let cast = match (kind.starts_with('s'), element) {
                (false, _) => String::new(),
                (true, Element::Int(1)) => "-(int)".to_owned(),
                (true, _) => format!("({})", Lane::Signed(element.lane_bits()).c()),
            };
            format!("{head}  return {cast}a {sign} {cast}b ? a : b;\n}}\n")
        });
        name
    }

    /// The helper of a fused multiply-add of `f32`, with or without the processor's instruction.
    fn fused(&mut self, shape: Shape) -> String {
        let plain = self.template(&FMA_F32, shape);
        let name = format!("c_fused_{}", types::short(shape));
        self.header("math.h");
        self.helper(&name, |unit| {
            let ty = unit.ty(shape);
            let truth = Shape::scalar(Element::Int(1));
            let parameters = [(shape, "a"), (shape, "b"), (shape, "c"), (truth, "fused")];
            let head = unit.head(&ty, &name, &parameters);
            let by = if types::is_wide(shape) { "&" } else { "" };
            let fast = match shape.lanes {
                None => "fmaf(a, b, c)".to_owned(),
                Some(lanes) => {
                    let lane = |lane| format!("    fmaf(a[{lane}], b[{lane}], c[{lane}]),\n");
                    format!("({ty}){{\n{}  }}", (0..lanes).map(lane).collect::<String>())
                }
            };
            format!(
                "{head}  if (fused) return {fast};\n  \
                 return {plain}({by}a, {by}b, {by}c);\n}}\n"
            )
        });
        name
    }

    /// The helper that reverses the bits of a number.
    fn bit_reverse(&mut self, bits: u32) -> String {
        let name = format!("c_bitreverse_u{bits}");
        self.helper(&name, |unit| {
            let scalar = Shape::scalar(Element::Int(bits));
            let ty = Lane::Unsigned(bits).c();
            let mut text = unit.head(&ty, &name, &[(scalar, "x")]) + "  uint64_t y = x;\n";
            let mut step = bits / 2;
            while step > 0 {
                // A mask of the lower of every two adjacent groups of so many bits.
                let low = (0..64)
                    .filter(|bit| (bit / step).is_multiple_of(2))
                    .fold(0, |all, bit| all | 1_u64 << bit);
                let mask = format!("0x{:x}ull", low & (u64::MAX >> (64 - bits)));
                text += &format!("  y = (y >> {step} & {mask}) | (y & {mask}) << {step};\n");
                step /= 2;
            }
            text + &format!("  return ({ty})y;\n}}\n")
        });
        name
    }

    /// The helper that classifies floats by their bits.
    fn class_helper(&mut self, element: Element, mantissa: u32, wanted: i64) -> String {
        let bits = element.lane_bits();
        let format = if element == Element::Bfloat { "bf" } else { "f" };
        let name = format!("c_class{wanted}_of_{format}{bits}");
        self.helper(&name, |unit| {
            let most = (1_u64 << (bits - 1)) - 1;
            let infinity = most & !((1 << mantissa) - 1);
            let (least_normal, quiet) = (1_u64 << mantissa, 1_u64 << (mantissa - 1));
            // Classes as ranges of magnitudes: first, last, then the flags of negative and positive
            // numbers.
            let ranges = [
                (infinity + 1, (infinity | quiet) - 1, 1, 1),
                (infinity | quiet, most, 2, 2),
                (infinity, infinity, 4, 512),
                (least_normal, infinity - 1, 8, 256),
                (1, least_normal - 1, 16, 128),
                (0, 0, 32, 64),
            ];
            let mut tests: Parts = Vec::new();
            for (first, last, below, above) in ranges {
                let sign = match (wanted & below != 0, wanted & above != 0) {
                    (false, false) => continue,
                    (true, true) => "",
                    (true, false) => "negative && ",
                    (false, true) => "!negative && ",
                };
                tests
                    .push(format!("({sign}magnitude - 0x{first:x}ull <= 0x{:x}ull)", last - first));
            }
            if tests.is_empty() {
                tests.push("false".to_owned());
            }
            let scalar = Shape::scalar(Element::Int(bits));
            let head = unit.head("bool", &name, &[(scalar, "bits")]);
            format!(
                "{head}  const uint64_t magnitude = bits & 0x{most:x}ull;\n  \
                 const bool negative = bits != magnitude;\n  return {};\n}}\n",
                tests.join("\n    || ")
            )
        });
        name
    }
}
