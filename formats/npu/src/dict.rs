//! The fields of an instruction in a listing.

use std::ops::Range;

use crate::field::Field;
use crate::value::{BoxedDiagnostic, Spanned, Value, error};

/// A dictionary whose keys are taken one by one; remaining keys are errors.
pub struct Dict<'v, 's> {
    entries: &'v [(Spanned<'s>, Spanned<'s>)],
    taken: u64,
    span: Range<usize>,
}

impl<'v, 's> Dict<'v, 's> {
    /// The dictionary of a value.
    ///
    /// # Errors
    /// If it is none, if a key is not text, or occurs twice, or there are too many.
    pub fn new(value: &'v Spanned<'s>) -> Result<Self, BoxedDiagnostic> {
        let Value::Dict(entries) = &value.value else {
            let message = format!("expected a dictionary, found {}", value.value.kind());
            return Err(error(value.span.clone(), "npu-wrong-type", message));
        };
        // No instruction has half as many; `taken` has a bit for each.
        if entries.len() > 64 {
            return Err(error(
                value.span.clone(),
                "npu-limit",
                "a dictionary has more than 64 keys",
            ));
        }
        for (i, (key, _)) in entries.iter().enumerate() {
            let Value::Text(name) = key.value else {
                return Err(error(key.span.clone(), "npu-wrong-type", "expected a key in quotes"));
            };
            let same = |entry: &&(Spanned<'_>, _)| matches!(entry.0.value, Value::Text(other) if other == name);
            if let Some(first) = entries[..i].iter().find(same) {
                return Err(error(
                    key.span.clone(),
                    "npu-repeated-key",
                    format!("`{name}` occurs twice"),
                )
                .also(first.0.span.clone(), "first here")
                .into());
            }
        }
        Ok(Self { entries, taken: 0, span: value.span.clone() })
    }

    /// The field with a key.
    ///
    /// # Errors
    /// If the key is missing or its value has another type.
    pub fn take<T: Field>(&mut self, key: &str) -> Result<T, BoxedDiagnostic> {
        T::read(self.entry(key)?)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// If the key is missing.
    pub fn entry(&mut self, key: &str) -> Result<&'v Spanned<'s>, BoxedDiagnostic> {
        let is_key =
            |entry: &(Spanned<'_>, _)| matches!(entry.0.value, Value::Text(name) if name == key);
        let place = self.entries.iter().position(is_key).ok_or_else(|| {
            let end = self.span.end.saturating_sub(1)..self.span.end;
            error(end, "npu-missing-key", format!("`{key}` is missing"))
        })?;
        self.taken |= 1 << place;
        Ok(&self.entries[place].1)
    }

    /// Finishes the dictionary.
    ///
    /// # Errors
    /// If a key was not taken.
    pub fn finish(self) -> Result<(), BoxedDiagnostic> {
        let left = (0..self.entries.len()).find(|i| self.taken >> i & 1 == 0);
        let Some(left) = left else { return Ok(()) };
        let key = &self.entries[left].0;
        let Value::Text(name) = key.value else { return Ok(()) };
        let message = format!("the instruction has no field `{name}`");
        Err(error(key.span.clone(), "npu-unknown-key", message))
    }
}
