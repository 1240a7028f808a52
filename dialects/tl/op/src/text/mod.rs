//! The text form of sizes and expressions: how [`Dim`](crate::Dim) and [`Scalar`](crate::Scalar) are
//! printed and parsed.
//!
//! ```text
//! size       = ["-"] product { ("+" | "-") product }
//! product    = factor { "*" factor }
//! factor     = number | symbol | ("floordiv" | "mod" | "min" | "max") "(" size "," size ")"
//!            | "ifeq" "(" size "," size "," size "," size ")"
//!            | "broadcast" "(" size { "," size } ")"
//! symbol     = name | "'" any text, with \' and \\ "'"
//!
//! expression = operators, loosest first: or, xor, and, comparisons, + and -, * and /
//! operand    = number [":" type] | "true" | "false" | "i" number | "size" "(" size ")"
//!            | "%" number "[" [expression { "," expression }] "]"
//!            | function "(" expression { "," expression } ")"
//!            | "select" "(" expression "," expression "," expression ")"
//!            | "cast" "<" type ["," "nearest_even"] ">" "(" expression ")" | "(" expression ")"
//! ```
//!
//! `i0` is the first loop, `%0[...]` an element of the first operand. A number without a type is an
//! `i64`; floats have a type, as in `1.5 : f32`, `-inf : f16` and `nan : f64`.

mod lex;
mod parse;
mod print;

pub(crate) use print::symbol;

use crate::{Dim, Scalar};
use std::str::FromStr;
use thiserror::Error;

/// Maximum nesting depth of expressions: the parser and the compiler recurse.
pub const MAX_DEPTH: usize = 200;

/// An error in a text, with its location.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("column {column}: {message}")]
pub struct TextError {
    /// Position in the text, in characters from 1.
    pub column: usize,
    /// What was expected and what was found.
    pub message: String,
}

impl FromStr for Dim {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        parse::Parser::new(text)?.whole(parse::Parser::size)
    }
}

impl FromStr for Scalar {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        parse::Parser::new(text)?.whole(parse::Parser::expression)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Binary, Comparison, DType, Rounding, Unary};
    use proptest::prelude::*;
    use std::sync::Arc;

    #[test]
    fn an_expression_reads_as_it_is_written() {
        let inside = Scalar::Loop(0).ge(Scalar::index(1)).and(Scalar::Loop(0).lt(Scalar::index(4)));
        let body = inside.select(
            Scalar::load(0, [Scalar::Loop(0) - Scalar::index(1)]),
            Scalar::float(-1.0, DType::F32),
        );
        let text = "select(i0 >= 1 and i0 < 4, %0[i0 - 1], -1.0 : f32)";
        assert_eq!(body.to_string(), text);
        assert_eq!(text.parse(), Ok(body));
    }

    #[test]
    fn operators_bind_as_in_arithmetic() {
        let (a, b, c) = (Scalar::Loop(0), Scalar::Loop(1), Scalar::Loop(2));
        let cases = [
            (a.clone() + b.clone() * c.clone(), "i0 + i1 * i2"),
            ((a.clone() + b.clone()) * c.clone(), "(i0 + i1) * i2"),
            (a.clone() - (b.clone() - c.clone()), "i0 - (i1 - i2)"),
            (a.clone() - b.clone() - Scalar::index(-3), "i0 - i1 - -3"),
        ];
        for (scalar, text) in cases {
            assert_eq!(scalar.to_string(), text);
            assert_eq!(text.parse(), Ok(scalar));
        }
    }

    #[test]
    fn mistakes_say_where() {
        let error = |text: &str| text.parse::<Scalar>().expect_err("a mistake").to_string();
        assert_eq!(error("i0 + "), "column 6: expected an expression, found the end");
        assert_eq!(error("frob(i0)"), "column 1: expected an expression, found 'frob'");
        assert_eq!(error("max(i0)"), "column 7: expected ',', found ')'");
        assert_eq!(error("1.5"), "column 4: expected ':' and a float type, found the end");
        assert_eq!(error("1 : f32"), "column 5: expected an integer type, found 'f32'");
        assert_eq!(error("i0 i1"), "column 4: expected the end, found 'i1'");
        let deep = format!("{}i0{}", "(".repeat(5000), ")".repeat(5000));
        assert!(error(&deep).contains("nested at most 200 deep"));
        let wide = vec!["i0"; 5000].join(" + ");
        assert!(error(&wide).contains("nested at most 200 deep"));
        let size = "floordiv(N".parse::<Dim>().expect_err("a mistake");
        assert_eq!(size.to_string(), "column 11: expected ',', found the end");
    }

    fn dims() -> impl Strategy<Value = Dim> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Dim::Known),
            (-9..10i64).prop_map(Dim::Known),
            prop::sample::select(vec!["N", "batch size", "it's", "broadcast", "a\\b\"", "é", ""])
                .prop_map(Dim::symbol),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            (inner.clone(), inner.clone(), inner.clone(), inner, 0..9u8).prop_map(
                |(a, b, x, y, kind)| match kind {
                    0 => a + b,
                    1 => a - b,
                    2 => a * b,
                    3 => a.floor_div(&b),
                    4 => a.modulo(&b),
                    5 => a.minimum(&b),
                    6 => a.maximum(&b),
                    7 => Dim::broadcast([a, b, x]),
                    _ => Dim::if_equal(&a, &b, &x, &y),
                },
            )
        })
    }

    fn scalars() -> impl Strategy<Value = Scalar> {
        let dtype = || prop::sample::select(DType::ALL.to_vec());
        let float = any::<f64>().prop_map(|value| Scalar::float(value, DType::F32));
        let int = (any::<i64>(), dtype()).prop_map(|(value, dtype)| match dtype {
            DType::Bool => Scalar::Int(value & 1, dtype),
            _ if dtype.is_float() => Scalar::float(value as f64, dtype),
            _ => Scalar::Int(value, dtype),
        });
        let leaf = prop_oneof![
            float,
            int,
            (0..4usize).prop_map(Scalar::Loop),
            dims().prop_map(Scalar::Size),
        ];
        leaf.prop_recursive(5, 40, 3, move |inner| {
            let pair = (inner.clone(), inner.clone());
            prop_oneof![
                (0..3usize, prop::collection::vec(inner.clone(), 0..3))
                    .prop_map(|(operand, at)| Scalar::Load(operand, at)),
                (prop::sample::select(Unary::ALL.to_vec()), inner.clone())
                    .prop_map(|(function, x)| x.unary(function)),
                (prop::sample::select(Binary::ALL.to_vec()), pair.clone())
                    .prop_map(|(function, (x, y))| x.binary(function, y)),
                (prop::sample::select(Comparison::ALL.to_vec()), pair)
                    .prop_map(|(comparison, (x, y))| x.compare(comparison, y)),
                (inner.clone(), inner.clone(), inner.clone())
                    .prop_map(|(condition, yes, no)| condition.select(yes, no)),
                (prop::sample::select(DType::ALL.to_vec()), any::<bool>(), inner).prop_map(
                    |(to, nearest, x)| {
                        let rounding =
                            if nearest { Rounding::NearestEven } else { Rounding::TowardZero };
                        Scalar::Cast(to, rounding, Arc::new(x))
                    }
                ),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_to_the_same(scalar in scalars()) {
            let text = scalar.to_string();
            prop_assert_eq!(text.parse::<Scalar>(), Ok(scalar), "{}", text);
        }

        #[test]
        fn sizes_print_and_parse(dim in dims()) {
            let text = dim.to_string();
            prop_assert_eq!(text.parse::<Dim>(), Ok(dim), "{}", text);
        }

        #[test]
        fn any_text_parses_or_is_a_mistake(text in "[ -~]{0,40}") {
            let _ = text.parse::<Scalar>();
            let _ = text.parse::<Dim>();
        }
    }
}
