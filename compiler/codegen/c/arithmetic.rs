//! Arithmetic, comparisons and selection.
use super::{
    super::{
        inst::{FloatPredicate, IntPredicate},
        layout::{Element, Shape},
    },
    function::{Body, Op, Result, no_translation, operand, unsupported},
    helpers::{BF16_TO_F32, F16_TO_F32, F32_TO_BF16, F32_TO_F16},
    types::{self, Lane, padded},
    unit::Unit,
};
use irc_mlir::{ops::llvm as names, read};

/// An operand: its shape, and its name or literal.
pub type Operand = (Shape, String);

impl Body<'_> {
    /// A sum, difference, product or quotient of floats.
    pub fn floats(&mut self, op: &Op<'_, '_>, name: &str) -> Result<String> {
        let ((shape, left), (_, right)) = (self.operand(op, 0)?, self.operand(op, 1)?);
        let sign = operator(name);
        Ok(self.in_float(shape, &[&left, &right], |_, _, values| {
            format!("{} {sign} {}", values[0], values[1])
        }))
    }

    /// The negation of a float.
    pub fn negate(&mut self, op: &Op<'_, '_>) -> Result<String> {
        let (shape, value) = self.operand(op, 0)?;
        Ok(match shape.element.is_small_float() {
            true => self.as_lanes(shape, &format!("{value} ^ 0x8000u")),
            false => format!("-{value}"),
        })
    }

    /// An expression truncated to the type of a shape: C computes narrow integers in wider ones.
    pub fn as_lanes(&mut self, shape: Shape, expression: &str) -> String {
        match (shape.lanes, Lane::of(shape.element)) {
            (None, lane @ Lane::Unsigned(8 | 16)) => format!("({})({expression})", lane.c()),
            _ => expression.to_owned(),
        }
    }

    /// Integer arithmetic.
    pub fn integers(&mut self, op: &Op<'_, '_>, name: &str) -> Result<String> {
        let ((shape, left), (_, right)) = (self.operand(op, 0)?, self.operand(op, 1)?);
        if name == "mul" && shape.lanes.is_none() && self.is_product_of_halves(op, shape) {
            let [left, right] = [left, right].map(|value| self.signed(shape, &value));
            return Ok(format!("({})({left} * {right})", Lane::of(shape.element).c()));
        }
        Ok(self.integer_binary(shape, name, &left, &right))
    }

    /// Whether both factors fit in half the width of the product, and at least one is sign-extended from
    /// it. The product is then written as a signed one, which does not overflow: for an unsigned product,
    /// gcc 12 at `-O3` computes the upper half as if the factors were unsigned.
    fn is_product_of_halves(&mut self, op: &Op<'_, '_>, shape: Shape) -> bool {
        let Element::Int(bits @ (32 | 64)) = shape.element else { return false };
        let mut extended = |index: usize, name: &str| {
            let source = operand(op, index).ok().and_then(read::defining_op);
            let source = source.filter(|source| read::op_name(source) == name);
            source.and_then(|source| self.operand(&source, 0).ok()).is_some_and(
                |(shape, _)| matches!(shape.element, Element::Int(narrow) if narrow <= bits / 2),
            )
        };
        let signed = [0, 1].map(|index| extended(index, names::SEXT));
        let unsigned = [0, 1].map(|index| extended(index, names::ZEXT));
        let small = [0, 1].map(|index| {
            let known = self.known(op, index).map(|known| (known << (64 - bits)).cast_signed());
            known.is_some_and(|known| (known >> (64 - bits)).unsigned_abs() < 1 << (bits / 2))
        });
        let half = |index: usize| signed[index] || unsigned[index] || small[index];
        (signed[0] || signed[1]) && half(0) && half(1)
    }

    /// A binary operation on integers.
    pub fn integer_binary(&mut self, shape: Shape, name: &str, left: &str, right: &str) -> String {
        // Modulo two, a sum is an exclusive or, and a product is an and.
        let name = match (shape.element, name) {
            (Element::Int(1), "add" | "sub") => "xor",
            (Element::Int(1), "mul") => "and",
            (_, name) => name,
        };
        // Integer promotion would make narrower types signed.
        let widened = shape.lanes.is_none() && matches!(shape.element, Element::Int(8 | 16));
        let first = if widened { "(uint32_t)" } else { "" };
        self.as_lanes(shape, &format!("{first}{left} {} {right}", operator(name)))
    }

    pub fn shift(&mut self, op: &Op<'_, '_>, name: &str) -> Result<String> {
        let ((shape, value), (_, amount)) = (self.operand(op, 0)?, self.operand(op, 1)?);
        let Element::Int(bits) = shape.element else { return Err(no_translation(op)) };
        if bits == 1 {
            // Only a shift by zero is defined.
            return Ok(value);
        }
        let most = bits - 1;
        let amount = match self.known(op, 1) {
            Some(amount) => (amount & u64::from(most)).to_string(),
            None if shape.lanes.is_none() => format!("(int)({amount} & {most})"),
            None => format!("({amount} & {})", self.splat_literal(shape, u128::from(most))),
        };
        Ok(match name {
            "ashr" => {
                let signed = self.signed(shape, &value);
                let ty = self.unit.ty(shape);
                format!("({ty})({signed} >> {amount})")
            }
            "lshr" => self.as_lanes(shape, &format!("{value} >> {amount}")),
            _ if bits < 32 && shape.lanes.is_none() => {
                self.as_lanes(shape, &format!("(uint32_t){value} << {amount}"))
            }
            _ => format!("{value} << {amount}"),
        })
    }

    /// A number in every lane, as an operand of a vector operator.
    pub fn splat_literal(&mut self, shape: Shape, bits: u128) -> String {
        let literal = self.unit.literal(shape.element, bits);
        match Lane::of(shape.element) {
            // A number of another width would be taken for that of a wider vector.
            lane @ Lane::Unsigned(8 | 16) => format!("({}){literal}", lane.c()),
            _ => literal,
        }
    }

    /// The same bits as signed integers; an `i1` of 1 is -1.
    pub fn signed(&mut self, shape: Shape, value: &str) -> String {
        let Lane::Unsigned(bits) = Lane::of(shape.element) else {
            return match shape.lanes {
                None if shape.element == Element::Int(1) => format!("-(int){value}"),
                _ => value.to_owned(),
            };
        };
        match shape.lanes {
            None => format!("({}){value}", Lane::Signed(bits).c()),
            Some(lanes) => format!("({}){value}", self.unit.vector(Lane::Signed(bits), lanes)),
        }
    }

    pub fn divide(&mut self, op: &Op<'_, '_>, name: &str) -> Result<String> {
        let operands = self.operands(op)?;
        let shape = operands[0].0;
        let Element::Int(bits @ (8 | 16 | 32 | 64 | 128)) = shape.element else {
            return Err(unsupported(op, "division of this type"));
        };
        let sign = if name.ends_with("div") { "/" } else { "%" };
        let (signed, unsigned) = (Lane::Signed(bits).c(), Lane::Unsigned(bits).c());
        // Lane by lane, as padding lanes of a divisor may be zero.
        Ok(self.each_lane(name, shape, &operands, |_, values| {
            let [left, right] = [&values[0], &values[1]];
            match name.starts_with('s') {
                true => format!("({unsigned})(({signed}){left} {sign} ({signed}){right})"),
                false => format!("({unsigned})({left} {sign} {right})"),
            }
        }))
    }

    /// Computes half floats in `f32` and rounds the result; other floats in their own type. For the four
    /// operations, `f32` has more than twice their precision, so that double rounding is correct.
    pub fn in_float(
        &mut self,
        shape: Shape,
        values: &[&str],
        compute: impl FnOnce(&mut Self, Shape, &[String]) -> String,
    ) -> String {
        if !shape.element.is_small_float() {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            return compute(self, shape, &values);
        }
        let wide = shape.of(Element::Float);
        let values: Vec<String> =
            values.iter().map(|value| self.small_to_float(shape, value)).collect();
        let result = compute(self, wide, &values);
        self.float_to_small(shape, &result)
    }

    /// Half floats as `f32`, in a variable.
    pub fn small_to_float(&mut self, shape: Shape, value: &str) -> String {
        let wide = shape.of(Element::Float);
        let template = if shape.element == Element::Bfloat { &BF16_TO_F32 } else { &F16_TO_F32 };
        let helper = self.unit.template(template, wide);
        let call = self.invoke(&helper, &[(shape, value)]);
        self.name(wide, &call)
    }

    /// `f32` as half floats of the shape's format.
    pub fn float_to_small(&mut self, shape: Shape, value: &str) -> String {
        let wide = shape.of(Element::Float);
        let template = if shape.element == Element::Bfloat { &F32_TO_BF16 } else { &F32_TO_F16 };
        let helper = self.unit.template(template, wide);
        self.invoke(&helper, &[(wide, value)])
    }

    /// A scalar op on each lane: inline for a scalar, otherwise in a helper, which `name` and the types
    /// must identify.
    pub fn each_lane(
        &mut self,
        name: &str,
        to: Shape,
        operands: &[Operand],
        mut scalar: impl FnMut(&mut Unit, &[String]) -> String,
    ) -> String {
        let Some(lanes) = to.lanes else {
            let values: Vec<String> = operands.iter().map(|(_, value)| value.clone()).collect();
            return scalar(self.unit, &values);
        };
        let from = operands.first().map_or(to, |(shape, _)| *shape);
        let short = types::short(from);
        let towards = if from == to { String::new() } else { format!("_{}", types::short(to)) };
        let helper = format!("c_{name}_{short}{towards}");
        self.unit.helper(&helper, |unit| {
            let parameters: Vec<(Shape, &str)> = operands
                .iter()
                .zip(["a", "b", "c"])
                .map(|((shape, _), name)| (*shape, name))
                .collect();
            let ty = unit.ty(to);
            let head = unit.head(&ty, &helper, &parameters);
            let mut all = String::new();
            for lane in 0..lanes {
                let read = |(shape, name): &(Shape, &str)| match shape.lanes {
                    Some(_) => lane_of(shape.element, name, lane),
                    None => (*name).to_owned(),
                };
                let values: Vec<String> = parameters.iter().map(read).collect();
                all += &format!("    {},\n", to_lane(to.element, &scalar(unit, &values)));
            }
            format!("{head}  return ({ty}){{\n{all}  }};\n}}\n")
        });
        let arguments: Vec<(Shape, &str)> =
            operands.iter().map(|(shape, value)| (*shape, value.as_str())).collect();
        self.invoke(&helper, &arguments)
    }

    /// A comparison of integers or pointers.
    pub fn icmp(&mut self, op: &Op<'_, '_>, predicate: IntPredicate) -> Result<String> {
        let ((shape, left), (_, right)) = (self.operand(op, 0)?, self.operand(op, 1)?);
        let (sign, signed) = match predicate {
            IntPredicate::Eq => ("==", false),
            IntPredicate::Ne => ("!=", false),
            IntPredicate::Slt => ("<", true),
            IntPredicate::Sle => ("<=", true),
            IntPredicate::Sgt => (">", true),
            IntPredicate::Sge => (">=", true),
            IntPredicate::Ult => ("<", false),
            IntPredicate::Ule => ("<=", false),
            IntPredicate::Ugt => (">", false),
            IntPredicate::Uge => (">=", false),
        };
        let [left, right] = [left, right].map(|value| match (shape.element, shape.lanes) {
            _ if signed => self.signed(shape, &value),
            (Element::Pointer, None) => format!("(uint64_t){value}"),
            // The lanes of a mask are signed, where set lanes, -1, would be less than zero.
            (Element::Int(1), Some(lanes)) => {
                format!("({}){value}", self.unit.vector(Lane::Unsigned(32), lanes))
            }
            _ => value,
        });
        Ok(self.truth(shape, &format!("{left} {sign} {right}")))
    }

    /// The result of a comparison of values of a shape, as `i1`.
    pub fn truth(&mut self, shape: Shape, comparison: &str) -> String {
        let Some(lanes) = shape.lanes else { return comparison.to_owned() };
        let bits = shape.element.lane_bits();
        let same = self.unit.vector(Lane::Signed(bits), lanes);
        self.as_mask(lanes, bits, &format!("({same})({comparison})"))
    }

    /// Lanes of 0 or -1 of some width as those of a mask.
    pub fn as_mask(&mut self, lanes: u32, bits: u32, value: &str) -> String {
        let mask = self.unit.vector(Lane::Signed(32), lanes);
        if bits == 32 {
            value.to_owned()
        } else {
            format!("__builtin_convertvector({value}, {mask})")
        }
    }

    /// A comparison of floats.
    pub fn fcmp(&mut self, op: &Op<'_, '_>, predicate: FloatPredicate) -> Result<String> {
        let ((shape, left), (_, right)) = (self.operand(op, 0)?, self.operand(op, 1)?);
        let wide = match shape.element.is_small_float() {
            true => shape.of(Element::Float),
            false => shape,
        };
        let [a, b] = [left, right].map(|value| match shape.element.is_small_float() {
            true => self.small_to_float(shape, &value),
            false => value,
        });
        let not = if shape.lanes.is_some() { "~" } else { "!" };
        let comparison = match predicate {
            FloatPredicate::Oeq => format!("{a} == {b}"),
            FloatPredicate::Ogt => format!("{a} > {b}"),
            FloatPredicate::Oge => format!("{a} >= {b}"),
            FloatPredicate::Olt => format!("{a} < {b}"),
            FloatPredicate::Ole => format!("{a} <= {b}"),
            FloatPredicate::One => format!("({a} < {b}) | ({a} > {b})"),
            FloatPredicate::Ord if a == b => format!("{a} == {a}"),
            FloatPredicate::Uno if a == b => format!("{a} != {a}"),
            FloatPredicate::Ord => format!("({a} == {a}) & ({b} == {b})"),
            FloatPredicate::Ueq => format!("{not}(({a} < {b}) | ({a} > {b}))"),
            FloatPredicate::Ugt => format!("{not}({a} <= {b})"),
            FloatPredicate::Uge => format!("{not}({a} < {b})"),
            FloatPredicate::Ult => format!("{not}({a} >= {b})"),
            FloatPredicate::Ule => format!("{not}({a} > {b})"),
            FloatPredicate::Une => format!("{a} != {b}"),
            FloatPredicate::Uno => format!("({a} != {a}) | ({b} != {b})"),
            FloatPredicate::False | FloatPredicate::True => {
                let truth = shape.of(Element::Int(1));
                let value = if predicate == FloatPredicate::True { "1" } else { "0" };
                return Ok(self.splat(truth, value));
            }
        };
        Ok(self.truth(wide, &comparison))
    }

    /// Selects one of two values.
    pub fn select(&mut self, op: &Op<'_, '_>) -> Result<()> {
        let (cond_shape, cond) = self.operand(op, 0)?;
        let (yes, no) = (self.parts(op, 1)?, self.parts(op, 2)?);
        if cond_shape.lanes.is_some() {
            let (shape, yes) = self.operand(op, 1)?;
            let value = self.select_lanes(shape, &cond, &yes, &no[0]);
            return self.define(op, &value);
        }
        let ty = self.result_type(op)?;
        let shapes = super::function::shapes(&ty).ok_or_else(|| unsupported(op, "this type"))?;
        let mut parts = Vec::new();
        for ((shape, yes), no) in shapes.into_iter().zip(yes).zip(no) {
            parts.push(self.name(shape, &format!("{cond} ? {yes} : {no}")));
        }
        self.define_parts(op, parts)
    }

    /// Selects lanes of two vectors by a mask.
    pub fn select_lanes(&mut self, shape: Shape, mask: &str, yes: &str, no: &str) -> String {
        let Some(lanes) = shape.lanes else { return format!("{mask} ? {yes} : {no}") };
        let truth = shape.of(Element::Int(1));
        if shape.element == Element::Int(1) {
            return format!("({yes} & {mask}) | ({no} & ~{mask})");
        }
        let bits = Lane::Unsigned(shape.element.lane_bits());
        let ty = self.unit.ty(shape);
        let name = format!("c_select_{ty}");
        self.unit.helper(&name, |unit| {
            let parameters = [(truth, "mask"), (shape, "a"), (shape, "b")];
            let head = unit.head(&ty, &name, &parameters);
            let of_bits = unit.vector(bits, lanes);
            let wide = match bits.bits() {
                32 => format!("({of_bits})mask"),
                width => {
                    let signed = unit.vector(Lane::Signed(width), lanes);
                    format!("({of_bits})__builtin_convertvector(mask, {signed})")
                }
            };
            format!(
                "{head}  const {of_bits} taken = {wide};\n  \
                 return ({ty})((({of_bits})a & taken) | (({of_bits})b & ~taken));\n}}\n"
            )
        });
        self.invoke(&name, &[(truth, mask), (shape, yes), (shape, no)])
    }

    /// A scalar in every lane.
    pub fn splat(&mut self, shape: Shape, scalar: &str) -> String {
        let Some(lanes) = shape.lanes else { return scalar.to_owned() };
        let ty = self.unit.ty(shape);
        let name = format!("c_splat_{}", types::short(shape));
        self.unit.helper(&name, |unit| {
            let head = unit.head(&ty, &name, &[(Shape::scalar(shape.element), "x")]);
            let lane = to_lane(shape.element, "x");
            let all = vec![lane; padded(lanes) as usize].join(", ");
            format!("{head}  return ({ty}){{{all}}};\n}}\n")
        });
        self.invoke(&name, &[(Shape::scalar(shape.element), scalar)])
    }
}

/// A lane of a vector, as a scalar.
pub fn lane_of(element: Element, vector: &str, lane: impl std::fmt::Display) -> String {
    match element {
        Element::Int(1) => format!("({vector}[{lane}] != 0)"),
        Element::Pointer => format!("(void *){vector}[{lane}]"),
        _ => format!("{vector}[{lane}]"),
    }
}

/// A scalar in the type of a vector's lane.
pub fn to_lane(element: Element, scalar: &str) -> String {
    match element {
        Element::Int(1) => format!("-(int32_t)({scalar})"),
        Element::Pointer => format!("(uint64_t)({scalar})"),
        _ => scalar.to_owned(),
    }
}

fn operator(name: &str) -> &'static str {
    match name {
        "add" | "fadd" => "+",
        "sub" | "fsub" => "-",
        "mul" | "fmul" => "*",
        "fdiv" => "/",
        "and" => "&",
        "or" => "|",
        _ => "^",
    }
}
