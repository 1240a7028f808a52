//! Reductions of a vector to a scalar.
use super::{
    super::layout::{Element, Shape},
    arithmetic::lane_of,
    function::{Body, Op, Result, no_translation},
    helpers::{
        BF16_TO_F32, F16_TO_F32, F32_TO_BF16, F32_TO_F16, MAXIMUM, MAXNUM, MINIMUM, MINNUM,
        Template,
    },
    types,
    unit::Unit,
};

impl Body<'_> {
    /// Translates a reduction.
    pub fn reduce(&mut self, op: &Op<'_, '_>, kind: &str, any_order: bool) -> Result<String> {
        let starts = matches!(kind, "fadd" | "fmul");
        let mut operands = self.operands(op)?;
        let (shape, value) = operands.pop().ok_or_else(|| no_translation(op))?;
        let start = operands.pop();
        let Some(lanes) = shape.lanes else { return Err(no_translation(op)) };
        if start.is_some() != starts {
            return Err(no_translation(op));
        }
        let order = if starts && !any_order { "_in_order" } else { "" };
        let element = shape.element;
        let scalar = Shape::scalar(element);
        let name = format!("c_reduce_{kind}{order}_{}", types::short(shape));
        self.unit.helper(&name, |unit| {
            let mut parameters = vec![(shape, "x")];
            parameters.extend(start.as_ref().map(|_| (scalar, "start")));
            let ty = types::scalar(element);
            let head = unit.head(&ty, &name, &parameters);
            let terms = (0..lanes).map(|lane| lane_of(element, "x", lane)).collect();
            let start = start.as_ref().map(|_| "start".to_owned());
            let sum = unit.joined(element, kind, terms, start, any_order);
            format!("{head}  return {sum};\n}}\n")
        });
        let mut arguments = vec![(shape, value.as_str())];
        arguments.extend(start.as_ref().map(|(shape, value)| (*shape, value.as_str())));
        Ok(self.invoke(&name, &arguments))
    }
}

impl Unit {
    /// All terms combined: in any order, by halves, as LLVM does.
    fn joined(
        &mut self,
        element: Element,
        kind: &str,
        mut terms: Vec<String>,
        start: Option<String>,
        any_order: bool,
    ) -> String {
        while any_order && terms.len() > 1 && terms.len().is_multiple_of(2) {
            let high = terms.split_off(terms.len() / 2);
            terms = terms.iter().zip(&high).map(|(l, r)| self.join(element, kind, l, r)).collect();
        }
        let terms = start.into_iter().chain(terms);
        let joined = terms.reduce(|left, right| self.join(element, kind, &left, &right));
        joined.unwrap_or_default()
    }

    /// Two scalars combined.
    fn join(&mut self, element: Element, kind: &str, left: &str, right: &str) -> String {
        let bit = element == Element::Int(1);
        let template = match kind {
            "fadd" => return self.float_join(element, "+", left, right),
            "fmul" => return self.float_join(element, "*", left, right),
            "smax" | "smin" | "umax" | "umin" => {
                return format!("{}({left}, {right})", self.extreme(element, kind));
            }
            "fmax" => &MAXNUM,
            "fmin" => &MINNUM,
            "fmaximum" => &MAXIMUM,
            "fminimum" => &MINIMUM,
            _ => {
                let sign = match kind {
                    "and" => "&",
                    "or" => "|",
                    "mul" if bit => "&",
                    "xor" => "^",
                    "add" if bit => "^",
                    "add" => "+",
                    _ => "*",
                };
                let ty = types::scalar(element);
                let wide = if element.bytes() < 4 { "(uint32_t)" } else { "" };
                return format!("({ty})({wide}{left} {sign} {right})");
            }
        };
        self.extreme_of_floats(element, template, left, right)
    }

    fn extreme_of_floats(
        &mut self,
        element: Element,
        template: &'static Template,
        left: &str,
        right: &str,
    ) -> String {
        if !element.is_small_float() {
            let helper = self.template(template, Shape::scalar(element));
            return format!("{helper}({left}, {right})");
        }
        let helper = self.template(template, Shape::scalar(Element::Float));
        let (up, down) = self.half_helpers(element);
        format!("{down}({helper}({up}({left}), {up}({right})))")
    }

    fn float_join(&mut self, element: Element, sign: &str, left: &str, right: &str) -> String {
        if !element.is_small_float() {
            return format!("({left} {sign} {right})");
        }
        let (up, down) = self.half_helpers(element);
        format!("{down}({up}({left}) {sign} {up}({right}))")
    }

    /// The helpers that extend and truncate a half float.
    pub fn half_helpers(&mut self, element: Element) -> (String, String) {
        let single = Shape::scalar(Element::Float);
        match element {
            Element::Bfloat => {
                (self.template(&BF16_TO_F32, single), self.template(&F32_TO_BF16, single))
            }
            _ => (self.template(&F16_TO_F32, single), self.template(&F32_TO_F16, single)),
        }
    }
}
