//! Types of instruction fields: reading, printing and encoding.

use crate::bytes::{Bytes, Error};
use crate::enums::{Named, name_of, of_number};
use crate::value::{BoxedDiagnostic, Spanned, Value, error};
use crate::{Engine, Engines, Number};

/// A type that a field may have.
pub trait Field: Sized {
    /// Reads the field from a listing.
    fn read(value: &Spanned<'_>) -> Result<Self, BoxedDiagnostic>;
    /// The value in a listing.
    fn value(&self) -> Value<'static>;
    /// Appends its encoding.
    fn encode(&self, out: &mut Vec<u8>);
    /// Decodes it.
    fn decode(bytes: &mut Bytes<'_>) -> Result<Self, Error>;
}

fn wrong_type(value: &Spanned<'_>, expected: &str) -> BoxedDiagnostic {
    let found = value.value.kind();
    error(value.span.clone(), "npu-wrong-type", format!("expected {expected}, found {found}"))
}

impl Field for Number {
    fn read(value: &Spanned<'_>) -> Result<Self, BoxedDiagnostic> {
        match value.value {
            Value::Number(number) => Ok(number),
            _ => Err(wrong_type(value, "a number")),
        }
    }

    fn value(&self) -> Value<'static> {
        Value::Number(*self)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Int(value) => {
                out.push(0);
                value.encode(out);
            }
            Self::Float(value) => {
                out.push(1);
                out.extend(value.to_le_bytes());
            }
        }
    }

    fn decode(bytes: &mut Bytes<'_>) -> Result<Self, Error> {
        match bytes.byte()? {
            0 => i64::decode(bytes).map(Self::Int),
            1 => {
                let value = f64::from_le_bytes(bytes.array()?);
                let finite = value.is_finite().then_some(Self::Float(value));
                finite.ok_or_else(|| bytes.error("a constant is not finite"))
            }
            _ => Err(bytes.error("a constant is neither whole nor a float")),
        }
    }
}

impl Field for i64 {
    fn read(value: &Spanned<'_>) -> Result<Self, BoxedDiagnostic> {
        match value.value {
            Value::Number(Number::Int(number)) => Ok(number),
            _ => Err(wrong_type(value, "a whole number")),
        }
    }

    fn value(&self) -> Value<'static> {
        Value::Number(Number::Int(*self))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        // Zigzag: the sign in the lowest bit, so that small numbers are short.
        write_varint(out, ((self << 1) ^ (self >> 63)).cast_unsigned());
    }

    fn decode(bytes: &mut Bytes<'_>) -> Result<Self, Error> {
        let packed = bytes.varint()?;
        Ok((packed >> 1).cast_signed() ^ -(packed & 1).cast_signed())
    }
}

macro_rules! narrow {
    ($($type:ident)+) => {$(
        impl Field for $type {
            fn read(value: &Spanned<'_>) -> Result<Self, BoxedDiagnostic> {
                let wide = i64::read(value)?;
                wide.try_into().map_err(|_| {
                    let (least, most) = ($type::MIN, $type::MAX);
                    let message = format!("{wide} is out of range, expected {least} to {most}");
                    error(value.span.clone(), "npu-range", message)
                })
            }

            fn value(&self) -> Value<'static> {
                i64::from(*self).value()
            }

            fn encode(&self, out: &mut Vec<u8>) {
                i64::from(*self).encode(out);
            }

            fn decode(bytes: &mut Bytes<'_>) -> Result<Self, Error> {
                let wide = i64::decode(bytes)?;
                wide.try_into().map_err(|_| bytes.error("a number is out of the range of its field"))
            }
        }
    )+};
}

narrow!(u8 u32 i32);

impl Field for bool {
    fn read(value: &Spanned<'_>) -> Result<Self, BoxedDiagnostic> {
        match value.value {
            Value::Bool(flag) => Ok(flag),
            _ => Err(wrong_type(value, "`True` or `False`")),
        }
    }

    fn value(&self) -> Value<'static> {
        Value::Bool(*self)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn decode(bytes: &mut Bytes<'_>) -> Result<Self, Error> {
        match bytes.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(bytes.error("a flag is neither 0 nor 1")),
        }
    }
}

impl<E: Named + PartialEq> Field for E {
    fn read(value: &Spanned<'_>) -> Result<Self, BoxedDiagnostic> {
        let is_it = |(_, name, number): &&(E, &str, u8)| match &value.value {
            Value::Named { class, name: other, number: of } => {
                (E::CLASS, *name, i64::from(*number)) == (*class, *other, *of)
            }
            Value::Name(other) => name == other,
            _ => false,
        };
        if !matches!(value.value, Value::Named { .. } | Value::Name(_)) {
            return Err(wrong_type(value, &format!("a value of `{}`", E::CLASS)));
        }
        let known = E::ALL.iter().find(is_it);
        known.map(|row| row.0).ok_or_else(|| {
            let all: Vec<_> =
                E::ALL.iter().map(|row| format!("`<{}.{}: {}>`", E::CLASS, row.1, row.2)).collect();
            let message = format!("unknown value, expected {}", all.join(" or "));
            error(value.span.clone(), "npu-unknown-value", message)
        })
    }

    fn value(&self) -> Value<'static> {
        let (name, number) = name_of(*self);
        Value::Named { class: E::CLASS, name, number: number.into() }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(name_of(*self).1);
    }

    fn decode(bytes: &mut Bytes<'_>) -> Result<Self, Error> {
        of_number(bytes.byte()?).ok_or_else(|| bytes.error("a named value has an unknown number"))
    }
}

fn items<'v, 's>(
    value: &'v Spanned<'s>,
    expected: &str,
) -> Result<&'v [Spanned<'s>], BoxedDiagnostic> {
    match &value.value {
        Value::List(items) => Ok(items),
        _ => Err(wrong_type(value, expected)),
    }
}

fn list<T: Field>(items: &[T]) -> Value<'static> {
    Value::List(items.iter().map(|item| Spanned::nowhere(item.value())).collect())
}

impl<const N: usize> Field for [u32; N] {
    fn read(value: &Spanned<'_>) -> Result<Self, BoxedDiagnostic> {
        let items = items(value, &format!("a list of {N} numbers"))?;
        let numbers = items.iter().map(u32::read).collect::<Result<Vec<_>, _>>()?;
        numbers.try_into().map_err(|found: Vec<_>| {
            let message = format!("expected {N} numbers, found {}", found.len());
            error(value.span.clone(), "npu-wrong-type", message)
        })
    }

    fn value(&self) -> Value<'static> {
        list(self)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|number| number.encode(out));
    }

    fn decode(bytes: &mut Bytes<'_>) -> Result<Self, Error> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = u32::decode(bytes)?;
        }
        Ok(numbers)
    }
}

impl Field for Vec<u32> {
    fn read(value: &Spanned<'_>) -> Result<Self, BoxedDiagnostic> {
        items(value, "a list of numbers")?.iter().map(u32::read).collect()
    }

    fn value(&self) -> Value<'static> {
        list(self)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        write_varint(out, self.len() as u64);
        self.iter().for_each(|number| number.encode(out));
    }

    fn decode(bytes: &mut Bytes<'_>) -> Result<Self, Error> {
        let len = bytes.count(1)?;
        (0..len).map(|_| u32::decode(bytes)).collect()
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    fn read(value: &Spanned<'_>) -> Result<Self, BoxedDiagnostic> {
        match items(value, "a list of two values")? {
            [a, b] => Ok((A::read(a)?, B::read(b)?)),
            _ => Err(wrong_type(value, "a list of two values")),
        }
    }

    fn value(&self) -> Value<'static> {
        Value::List(vec![Spanned::nowhere(self.0.value()), Spanned::nowhere(self.1.value())])
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
        self.1.encode(out);
    }

    fn decode(bytes: &mut Bytes<'_>) -> Result<Self, Error> {
        Ok((A::decode(bytes)?, B::decode(bytes)?))
    }
}

impl Field for Engines {
    fn read(value: &Spanned<'_>) -> Result<Self, BoxedDiagnostic> {
        let mut engines = Self::NONE;
        for item in items(value, "a list of engines")? {
            let Value::Text(name) = item.value else {
                return Err(wrong_type(item, "the name of an engine"));
            };
            let engine = Engine::of_name(name).ok_or_else(|| unknown_engine(item))?;
            if !engines.push(engine) {
                let message = format!("{engine} is named twice in a token list");
                return Err(error(item.span.clone(), "npu-repeated-engine", message)
                    .help("an instruction takes or gives at most one token per engine")
                    .into());
            }
        }
        Ok(engines)
    }

    fn value(&self) -> Value<'static> {
        let name = |engine: Engine| Spanned::nowhere(Value::Text(engine.name()));
        Value::List(self.iter().map(name).collect())
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.len() as u8);
        out.extend(self.iter().map(|engine| engine as u8));
    }

    fn decode(bytes: &mut Bytes<'_>) -> Result<Self, Error> {
        let mut engines = Self::NONE;
        for _ in 0..bytes.byte()? {
            let engine = Engine::of_number(bytes.byte()?)
                .ok_or_else(|| bytes.error("a token list names an unknown engine"))?;
            if !engines.push(engine) {
                return Err(bytes.error("a token list names an engine twice"));
            }
        }
        Ok(engines)
    }
}

fn unknown_engine(item: &Spanned<'_>) -> BoxedDiagnostic {
    let names: Vec<_> = Engine::ALL.iter().map(|engine| engine.name()).collect();
    error(item.span.clone(), "npu-unknown-engine", "unknown engine in a token list")
        .help(format!("expected one of {}", names.join(", ")))
        .into()
}

/// Appends an unsigned LEB128 number.
pub fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
