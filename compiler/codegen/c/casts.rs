//! Conversions between types of values.
use super::{
    super::layout::{Element, Shape},
    function::{Body, Op, Result, no_translation, unsupported},
    helpers::F64_TO_ODD,
    types::{self, Lane},
    unit::pun,
};

impl Body<'_> {
    /// Translates an op that changes a value's type.
    pub fn cast(&mut self, op: Op<'_, '_>, name: &str) -> Result<()> {
        if matches!(name, "freeze" | "addrspacecast") {
            let parts = self.parts(&op, 0)?;
            return self.define_parts(&op, parts);
        }
        let (from, value) = self.operand(&op, 0)?;
        let to = self.result_shape(&op)?;
        if from.lanes != to.lanes && name != "bitcast" {
            return Err(no_translation(&op));
        }
        let cast = match name {
            "bitcast" => self.bitcast(from, to, &value),
            "ptrtoint" | "inttoptr" | "zext" | "trunc" => self.integer(from, to, &value, false),
            "sext" => self.integer(from, to, &value, true),
            "fpext" | "fptrunc" => Some(self.float(from, to, &value)),
            "sitofp" => Some(self.integer_to_float(from, to, &value, true)),
            "uitofp" => Some(self.integer_to_float(from, to, &value, false)),
            "fptosi" => Some(self.float_to_integer(from, to, &value, true)),
            _ => Some(self.float_to_integer(from, to, &value, false)),
        };
        let cast = cast.ok_or_else(|| unsupported(&op, "these types"))?;
        self.define(&op, &cast)
    }

    /// Converts the lanes of a vector to another type.
    fn convert(&mut self, lanes: u32, to: Lane, value: &str) -> String {
        let to = self.unit.vector(to, lanes);
        format!("__builtin_convertvector({value}, {to})")
    }

    fn bitcast(&mut self, from: Shape, to: Shape, value: &str) -> Option<String> {
        if from == to {
            return Some(value.to_owned());
        }
        let one_bit = Element::Int(1);
        match (from, to) {
            (Shape { element: Element::Int(1), lanes: Some(lanes) }, _) if lanes <= 64 => {
                let bits = self.bits_of_mask(lanes, value);
                self.integer(Shape::scalar(Element::Int(64)), to, &bits, false)
            }
            (_, Shape { element: Element::Int(1), lanes: Some(lanes) }) if lanes <= 64 => {
                Some(self.mask_of_bits(lanes, value))
            }
            _ if from.element == one_bit || to.element == one_bit => None,
            (Shape { lanes: Some(_), .. }, Shape { lanes: Some(_), .. }) => {
                let ty = self.unit.ty(to);
                Some(format!("({ty}){value}"))
            }
            _ if Lane::of(from.element) == Lane::of(to.element) && from.lanes == to.lanes => {
                Some(value.to_owned())
            }
            _ => Some(self.reinterpret(from, to, value)),
        }
    }

    fn reinterpret(&mut self, from: Shape, to: Shape, value: &str) -> String {
        let (before, after) = (self.unit.ty(from), self.unit.ty(to));
        let name = format!("c_{}_as_{}", types::short(from), types::short(to));
        self.unit.header("string.h");
        self.unit.helper(&name, |_| pun(&name, &after, &before));
        format!("{name}({value})")
    }

    /// The bits of a mask as an integer of 64 bits, lane 0 in the lowest bit.
    pub fn bits_of_mask(&mut self, lanes: u32, mask: &str) -> String {
        let shape = Shape { element: Element::Int(1), lanes: Some(lanes) };
        let name = format!("c_bits_of_mask{lanes}");
        self.unit.helper(&name, |unit| {
            let head = unit.head("uint64_t", &name, &[(shape, "mask")]);
            let bit = |lane| format!("(uint64_t)(mask[{lane}] & 1) << {lane}");
            let bits: Vec<String> = (0..lanes).map(bit).collect();
            format!("{head}  return {};\n}}\n", bits.join("\n    | "))
        });
        self.invoke(&name, &[(shape, mask)])
    }

    /// The mask whose lanes are the bits of an integer.
    pub fn mask_of_bits(&mut self, lanes: u32, bits: &str) -> String {
        let mask = self.unit.vector(Lane::Signed(32), lanes);
        let name = format!("c_mask{lanes}_of_bits");
        self.unit.helper(&name, |unit| {
            let head = unit.head(&mask, &name, &[(Shape::scalar(Element::Int(64)), "bits")]);
            let lane = |lane| format!("    -(int32_t)(bits >> {lane} & 1u),\n");
            let lanes: String = (0..lanes).map(lane).collect();
            format!("{head}  return ({mask}){{\n{lanes}  }};\n}}\n")
        });
        format!("{name}({bits})")
    }

    /// Converts integers and pointers from one width to another.
    pub fn integer(&mut self, from: Shape, to: Shape, value: &str, sign: bool) -> Option<String> {
        if from.element.is_float() || to.element.is_float() {
            return None;
        }
        let one_bit = Element::Int(1);
        let Some(lanes) = from.lanes else {
            let ty = self.unit.ty(to);
            return Some(match (from.element, to.element) {
                (from, to) if from == to => value.to_owned(),
                (Element::Pointer, Element::Int(1)) => format!("((uint64_t){value} & 1) != 0"),
                (_, Element::Int(1)) => format!("({value} & 1) != 0"),
                (Element::Int(bits), Element::Pointer) if bits != 64 => {
                    format!("(void *)(uint64_t){value}")
                }
                (Element::Pointer, Element::Int(bits)) if bits != 64 => {
                    format!("({ty})(uint64_t){value}")
                }
                _ if sign => format!("({ty}){}", self.signed(from, value)),
                _ => format!("({ty}){value}"),
            });
        };
        if from.element == to.element {
            return Some(value.to_owned());
        }
        let bits = from.element.lane_bits();
        if to.element == one_bit {
            let one = self.splat_literal(from, 1);
            let signed = self.unit.vector(Lane::Signed(bits), lanes);
            return Some(self.as_mask(lanes, bits, &format!("({signed})-({value} & {one})")));
        }
        let ty = self.unit.ty(to);
        if from.element == one_bit && !sign {
            let signed = self.convert(lanes, Lane::Signed(to.element.lane_bits()), value);
            let one = self.splat_literal(to, 1);
            return Some(format!("({ty}){signed} & {one}"));
        }
        if Lane::of(from.element) == Lane::of(to.element) {
            return Some(value.to_owned());
        }
        let value = if sign { self.signed(from, value) } else { value.to_owned() };
        if sign {
            let wide = self.convert(lanes, Lane::Signed(to.element.lane_bits()), &value);
            return Some(format!("({ty}){wide}"));
        }
        Some(self.convert(lanes, Lane::of(to.element), &value))
    }

    /// Converts floats from one format to another.
    pub fn float(&mut self, from: Shape, to: Shape, value: &str) -> String {
        if from.element == to.element {
            return value.to_owned();
        }
        if from.element.is_small_float() {
            let single = self.small_to_float(from, value);
            return self.float(from.of(Element::Float), to, &single);
        }
        if to.element.is_small_float() {
            if from.element == Element::Double {
                let wide = from.of(Element::Float);
                let helper = self.unit.template(&F64_TO_ODD, wide);
                let odd = self.invoke(&helper, &[(from, value)]);
                let odd = self.name(wide, &odd);
                return self.float_to_small(to, &odd);
            }
            return self.float_to_small(to, value);
        }
        match from.lanes {
            None => format!("({}){value}", Lane::of(to.element).c()),
            Some(lanes) => self.convert(lanes, Lane::of(to.element), value),
        }
    }

    fn integer_to_float(&mut self, from: Shape, to: Shape, value: &str, sign: bool) -> String {
        if to.element.is_small_float() {
            // As in LLVM: rounded to f32 first, which makes a difference only for an i32 or i64 as bf16.
            let wide = to.of(Element::Float);
            let single = self.integer_to_float(from, wide, value, sign);
            let single = self.name(wide, &single);
            return self.float_to_small(to, &single);
        }
        let lane = Lane::of(to.element);
        let value = if sign { self.signed(from, value) } else { value.to_owned() };
        match from.lanes {
            None => format!("({})({value})", lane.c()),
            // The set lanes of a mask are -1.
            Some(lanes) if from.element == Element::Int(1) && !sign => {
                self.convert(lanes, lane, &format!("({value} & 1)"))
            }
            Some(lanes) => self.convert(lanes, lane, &value),
        }
    }

    /// An out-of-range float gives poison in LLVM, and is undefined in C.
    fn float_to_integer(&mut self, from: Shape, to: Shape, value: &str, sign: bool) -> String {
        if from.element.is_small_float() {
            let single = self.small_to_float(from, value);
            return self.float_to_integer(from.of(Element::Float), to, &single, sign);
        }
        let bits = if to.element == Element::Int(1) { 1 } else { to.element.lane_bits() };
        // Every narrower integer, signed or not, fits int32_t.
        let through = match (bits, sign) {
            (..32, _) => Lane::Signed(32),
            (_, true) => Lane::Signed(bits),
            (_, false) => Lane::Unsigned(bits),
        };
        let Some(lanes) = from.lanes else {
            let value = format!("({}){value}", through.c());
            return match bits {
                1 => format!("({value} & 1) != 0"),
                _ => format!("({}){value}", Lane::of(to.element).c()),
            };
        };
        let whole = self.convert(lanes, through, value);
        if bits >= 32 {
            let ty = self.unit.ty(to);
            return format!("({ty}){whole}");
        }
        let wide = from.of(Element::Int(32));
        let ty = self.unit.ty(wide);
        let whole = self.name(wide, &format!("({ty}){whole}"));
        self.integer(wide, to, &whole, false).unwrap_or(whole)
    }

    /// A float as the nearest integer in range; zero for a NaN.
    pub fn float_to_integer_saturated(&mut self, op: &Op<'_, '_>, sign: bool) -> Result<String> {
        let (mut from, mut value) = self.operand(op, 0)?;
        let to = self.result_shape(op)?;
        let Element::Int(bits @ (8 | 16 | 32 | 64)) = to.element else {
            return Err(unsupported(op, "these types"));
        };
        if from.element.is_small_float() {
            value = self.small_to_float(from, &value);
            from = from.of(Element::Float);
        }
        let float = from.element;
        let name = if sign { "to_signed" } else { "to_unsigned" };
        Ok(self.each_lane(name, to, &[(from, value)], |unit, values| {
            let scalar = Shape::scalar(float);
            let result = Lane::Unsigned(bits).c();
            let helper = format!("c_{name}{bits}_{}", types::short(scalar));
            unit.helper(&helper, |unit| {
                let head = unit.head(&result, &helper, &[(scalar, "x")]);
                let top = bits - u32::from(sign);
                let suffix = if float == Element::Float { "f" } else { "" };
                let high = format!("0x1p+{top}{suffix}");
                let low = if sign { format!("-{high}") } else { format!("0.0{suffix}") };
                let most = u64::MAX >> (64 - top);
                let least = if sign { 1_u64 << top } else { 0 };
                let inner =
                    if sign { Lane::Signed(bits.max(32)) } else { Lane::Unsigned(bits.max(32)) };
                let inner = inner.c();
                format!(
                    "{head}  return x != x ? 0 : x <= {low} ? ({result})0x{least:x}ull\n    \
                     : x >= {high} ? ({result})0x{most:x}ull : ({result})({inner})x;\n}}\n"
                )
            });
            format!("{helper}({})", values[0])
        }))
    }
}
