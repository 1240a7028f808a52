//! Recursive descent parser; see the parent module for the grammar.
use super::lex::{Token, tokens};
use super::print::{operator, sign};
use super::{MAX_DEPTH, TextError};
use crate::{Binary, Comparison, DType, Dim, Rounding, Scalar, SizeFunction, Unary};
use std::sync::Arc;

type Result<T> = std::result::Result<T, TextError>;

/// A position in a text.
pub(super) struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    depth: usize,
}

impl Parser {
    pub(super) fn new(text: &str) -> Result<Self> {
        Ok(Self { tokens: tokens(text)?, at: 0, depth: 0 })
    }

    /// Parses the whole text as `part`.
    pub(super) fn whole<T>(mut self, part: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let found = part(&mut self)?;
        match self.peek() {
            Token::End => Ok(found),
            _ => Err(self.expected("the end")),
        }
    }

    /// A size.
    pub(super) fn size(&mut self) -> Result<Dim> {
        self.nested(|parser| {
            let negative = parser.take("-");
            let first = parser.product(negative)?;
            let mut sum = first;
            loop {
                let negative = match parser.peek() {
                    Token::Sign("+") => false,
                    Token::Sign("-") => true,
                    _ => return Ok(sum),
                };
                parser.at += 1;
                sum = sum + parser.product(negative)?;
            }
        })
    }

    fn product(&mut self, negative: bool) -> Result<Dim> {
        let mut product = match self.peek().clone() {
            // The sign belongs to the number: the minimum integer has no positive counterpart.
            Token::Number(digits) => Dim::Known(self.integer(&digits, negative)?),
            _ if negative => -self.factor()?,
            _ => self.factor()?,
        };
        while self.take("*") {
            product = product * self.factor()?;
        }
        Ok(product)
    }

    fn factor(&mut self) -> Result<Dim> {
        match self.peek().clone() {
            Token::Number(digits) => Ok(Dim::Known(self.integer(&digits, false)?)),
            Token::Quoted(name) => {
                self.at += 1;
                Ok(Dim::symbol(&name))
            }
            Token::Word(name) => self.call_or_symbol(&name),
            _ => Err(self.expected("a size")),
        }
    }

    fn call_or_symbol(&mut self, name: &str) -> Result<Dim> {
        if let Some(function) = SizeFunction::ALL.into_iter().find(|known| known.name() == name) {
            self.at += 1;
            let [left, right] = self.arguments(Self::size)?;
            return Ok(match function {
                SizeFunction::FloorDiv => left.floor_div(&right),
                SizeFunction::Mod => left.modulo(&right),
                SizeFunction::Min => left.minimum(&right),
                SizeFunction::Max => left.maximum(&right),
            });
        }
        self.at += 1;
        if name == "ifeq" {
            let [a, b, x, y] = self.arguments(Self::size)?;
            return Ok(Dim::if_equal(&a, &b, &x, &y));
        }
        if name == "broadcast" {
            self.expect("(")?;
            let mut extents = vec![self.size()?];
            while self.take(",") {
                extents.push(self.size()?);
            }
            self.expect(")")?;
            return Ok(Dim::broadcast(extents));
        }
        Ok(Dim::symbol(name))
    }

    /// An expression.
    pub(super) fn expression(&mut self) -> Result<Scalar> {
        self.nested(|parser| parser.level(1))
    }

    /// An expression whose operators bind at least as tightly as `least`.
    fn level(&mut self, least: u8) -> Result<Scalar> {
        let depth = self.depth;
        let mut left = self.operand()?;
        while let Some(operator) = self.operator().filter(|operator| operator.level() >= least) {
            // Each operator adds a level of nesting.
            self.enter()?;
            self.at += 1;
            let right = self.level(operator.level() + 1)?;
            let compared = matches!(operator, Operator::Compare(_));
            left = match operator {
                Operator::Binary(function, _) => left.binary(function, right),
                Operator::Compare(comparison) => left.compare(comparison, right),
            };
            if compared && matches!(self.operator(), Some(Operator::Compare(_))) {
                return Err(self.expected("brackets around a comparison that is compared"));
            }
        }
        self.depth = depth;
        Ok(left)
    }

    fn operator(&self) -> Option<Operator> {
        let text = match self.peek() {
            Token::Sign(sign) => *sign,
            Token::Word(word) => word,
            _ => return None,
        };
        let comparison = Comparison::ALL.into_iter().find(|known| sign(*known) == text);
        comparison.map(Operator::Compare).or_else(|| {
            Binary::ALL.into_iter().find_map(|function| {
                let (sign, level) = operator(function)?;
                (sign == text).then_some(Operator::Binary(function, level))
            })
        })
    }

    fn operand(&mut self) -> Result<Scalar> {
        match self.peek().clone() {
            Token::Number(digits) => self.number(&digits, false),
            Token::Sign("-") => {
                self.at += 1;
                match self.peek().clone() {
                    Token::Number(digits) => self.number(&digits, true),
                    Token::Word(word) if word == "inf" => self.special(f64::NEG_INFINITY),
                    _ => Err(self.expected("a number")),
                }
            }
            Token::Sign("(") => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Sign("%") => self.load(),
            Token::Word(word) => self.word(&word),
            _ => Err(self.expected("an expression")),
        }
    }

    fn word(&mut self, word: &str) -> Result<Scalar> {
        if let Some(index) = word.strip_prefix('i').and_then(|digits| digits.parse().ok()) {
            self.at += 1;
            return Ok(Scalar::Loop(index));
        }
        if let Some(function) = Unary::ALL.into_iter().find(|known| known.name() == word) {
            self.at += 1;
            let [x] = self.arguments(Self::expression)?;
            return Ok(x.unary(function));
        }
        let named = |known: &Binary| known.name() == word && operator(*known).is_none();
        if let Some(function) = Binary::ALL.into_iter().find(named) {
            self.at += 1;
            let [x, y] = self.arguments(Self::expression)?;
            return Ok(x.binary(function, y));
        }
        match word {
            "true" | "false" => {
                self.at += 1;
                Ok(Scalar::Int(i64::from(word == "true"), DType::Bool))
            }
            "inf" => self.special(f64::INFINITY),
            "nan" => self.special(f64::NAN),
            "size" => {
                self.at += 1;
                let [dim] = self.arguments(Self::size)?;
                Ok(Scalar::Size(dim))
            }
            "select" => {
                self.at += 1;
                let parts = self.arguments(Self::expression)?;
                Ok(Scalar::Select(Arc::new(parts)))
            }
            "cast" => self.cast(),
            _ => Err(self.expected("an expression")),
        }
    }

    fn cast(&mut self) -> Result<Scalar> {
        self.at += 1;
        self.expect("<")?;
        let to = self.dtype("an element type", |_| true)?;
        let rounding = if self.take(",") {
            match self.peek() {
                Token::Word(word) if word == "nearest_even" => self.at += 1,
                _ => return Err(self.expected("'nearest_even'")),
            }
            Rounding::NearestEven
        } else {
            Rounding::TowardZero
        };
        self.expect(">")?;
        let [x] = self.arguments(Self::expression)?;
        Ok(Scalar::Cast(to, rounding, Arc::new(x)))
    }

    fn load(&mut self) -> Result<Scalar> {
        self.at += 1;
        let Token::Number(digits) = self.peek().clone() else {
            return Err(self.expected("the number of an operand"));
        };
        let operand = digits.parse().map_err(|_| self.expected("the number of an operand"))?;
        self.at += 1;
        self.expect("[")?;
        let mut at = vec![];
        if !self.take("]") {
            loop {
                at.push(self.expression()?);
                if !self.take(",") {
                    break;
                }
            }
            self.expect("]")?;
        }
        Ok(Scalar::Load(operand, at))
    }

    /// A literal: floats have a decimal point or an exponent, and a type.
    fn number(&mut self, digits: &str, negative: bool) -> Result<Scalar> {
        if digits.contains(['.', 'e', 'E']) {
            let value: f64 = digits.parse().map_err(|_| self.expected("a number"))?;
            return self.special(if negative { -value } else { value });
        }
        let value = self.integer(digits, negative)?;
        if !self.take(":") {
            return Ok(Scalar::index(value));
        }
        Ok(Scalar::Int(value, self.dtype("an integer type", |dtype| !dtype.is_float())?))
    }

    /// The type suffix of an `inf` or `nan`.
    fn special(&mut self, value: f64) -> Result<Scalar> {
        self.at += 1;
        if !self.take(":") {
            return Err(self.expected("':' and a float type"));
        }
        Ok(Scalar::float(value, self.dtype("a float type", DType::is_float)?))
    }

    fn dtype(&mut self, what: &str, takes: impl Fn(DType) -> bool) -> Result<DType> {
        let found = match self.peek() {
            Token::Word(word) => word.parse().ok().filter(|dtype| takes(*dtype)),
            _ => None,
        };
        let found = found.ok_or_else(|| self.expected(what))?;
        self.at += 1;
        Ok(found)
    }

    fn integer(&mut self, digits: &str, negative: bool) -> Result<i64> {
        let signed = if negative { format!("-{digits}") } else { digits.to_owned() };
        let value = signed.parse().map_err(|_| self.expected("an integer of 64 bits"))?;
        self.at += 1;
        Ok(value)
    }

    fn arguments<T, const N: usize>(
        &mut self,
        mut part: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<[T; N]> {
        self.expect("(")?;
        let mut found = Vec::with_capacity(N);
        for position in 0..N {
            if position > 0 {
                self.expect(",")?;
            }
            found.push(part(self)?);
        }
        self.expect(")")?;
        let Ok(found) = found.try_into() else { unreachable!("the loop reads {N} parts") };
        Ok(found)
    }

    fn nested<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.enter()?;
        let found = part(self);
        self.depth -= 1;
        found
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        Err(self.expected(&format!("expressions nested at most {MAX_DEPTH} deep")))
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.at].1
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.take(sign) { Ok(()) } else { Err(self.expected(&format!("'{sign}'"))) }
    }

    fn expected(&self, what: &str) -> TextError {
        let (column, found) = &self.tokens[self.at];
        TextError { column: *column, message: format!("expected {what}, found {}", found.shown()) }
    }
}

/// An operator between operands.
#[derive(Clone, Copy)]
enum Operator {
    Binary(Binary, u8),
    Compare(Comparison),
}

impl Operator {
    const fn level(self) -> u8 {
        match self {
            Self::Binary(_, level) => level,
            Self::Compare(_) => 4,
        }
    }
}
