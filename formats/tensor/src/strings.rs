//! Strings as elements.
//!
//! An element of [`DType::String`] is a handle: the number of a string in a table of distinct
//! strings, so that two elements of one table are equal if their strings are. Strings are bytes;
//! they are usually UTF-8, but need not be.

use crate::{DType, Tensor, TensorError, TensorType};
use std::collections::HashMap;
use std::sync::Arc;

/// A table of distinct strings, numbered in the order in which they were interned.
#[derive(Debug, Clone, Default)]
pub struct Strings {
    texts: Vec<Arc<[u8]>>,
    handles: HashMap<Arc<[u8]>, i64>,
    /// Number of bytes of all strings.
    bytes: usize,
}

impl Strings {
    /// A table of these strings, of which equal ones have one handle.
    pub fn of<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Self {
        let mut strings = Self::default();
        for text in texts {
            strings.intern(text.as_ref());
        }
        strings
    }

    /// The handle of a string, which is added if it is new.
    pub fn intern(&mut self, text: &[u8]) -> i64 {
        if let Some(handle) = self.handles.get(text) {
            return *handle;
        }
        let (text, handle) = (Arc::<[u8]>::from(text), self.texts.len() as i64);
        self.bytes += text.len();
        self.texts.push(text.clone());
        self.handles.insert(text, handle);
        handle
    }

    /// The string with a handle.
    pub fn get(&self, handle: i64) -> Option<&Arc<[u8]>> {
        self.texts.get(usize::try_from(handle).ok()?)
    }

    /// All strings, by handle.
    pub fn texts(&self) -> &[Arc<[u8]>] {
        &self.texts
    }

    /// The number of bytes of all strings.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Removes the strings with handles from `count` on.
    pub fn truncate(&mut self, count: usize) {
        for text in self.texts.drain(count.min(self.texts.len())..) {
            self.bytes -= text.len();
            self.handles.remove(&text);
        }
    }
}

/// Equal strings in the same order.
impl PartialEq for Strings {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for Strings {}

impl Tensor {
    /// A tensor of strings.
    ///
    /// # Errors
    /// As [`Tensor::zeros`]; [`TensorError::WrongLength`].
    pub fn from_strings<T: AsRef<[u8]>>(
        shape: impl Into<Vec<i64>>,
        texts: &[T],
    ) -> Result<Self, TensorError> {
        let mut strings = Strings::default();
        let handles: Vec<i64> = texts.iter().map(|text| strings.intern(text.as_ref())).collect();
        let handles = Self::from_values(shape, &handles)?.reinterpret(DType::String)?;
        Ok(handles.with_strings(&Arc::new(strings)))
    }

    /// The strings of a tensor of strings, in row-major order; `None` for other types. Without a
    /// table all elements are empty.
    pub fn to_strings(&self) -> Option<Vec<Arc<[u8]>>> {
        if self.dtype() != DType::String {
            return None;
        }
        let empty = Arc::<[u8]>::from(&b""[..]);
        let text = |handle: &i64| self.strings()?.get(*handle).cloned();
        let texts = self.handles().iter().map(|handle| text(handle).unwrap_or(empty.clone()));
        Some(texts.collect())
    }

    /// A tensor of strings with handles of another table, without a table of its own; other types are
    /// not changed.
    #[must_use]
    pub fn interned(self, strings: &mut Strings) -> Self {
        if self.dtype() != DType::String {
            return self;
        }
        // Strings are interned once per distinct handle, in the order of their first occurrence.
        let mut known: HashMap<i64, i64> = HashMap::new();
        let own = self.strings().cloned();
        let mut tensor = self.without_strings();
        for handle in tensor.handles_mut() {
            *handle = *known.entry(*handle).or_insert_with(|| {
                let text = own.as_ref().and_then(|own| own.get(*handle));
                strings.intern(text.map_or(b"", |text| text))
            });
        }
        tensor
    }

    /// A tensor of strings, given handles of a table of which it gets its own part; other types are not
    /// changed.
    #[must_use]
    pub fn resolved(self, strings: &Strings) -> Self {
        if self.dtype() != DType::String {
            return self;
        }
        let mut known: HashMap<i64, i64> = HashMap::new();
        let mut own = Strings::default();
        let mut tensor = self.without_strings();
        for handle in tensor.handles_mut() {
            *handle = *known
                .entry(*handle)
                .or_insert_with(|| own.intern(strings.get(*handle).map_or(b"", |text| text)));
        }
        tensor.with_table(Arc::new(own))
    }

    /// A tensor of strings whose handles are those of the table; other types are not changed.
    #[must_use]
    pub fn with_strings(self, strings: &Arc<Strings>) -> Self {
        match self.dtype() {
            DType::String => self.with_table(strings.clone()),
            _ => self,
        }
    }
}

/// A string as text: bytes that are not UTF-8 are `\xHH`, and a backslash is doubled.
pub fn escape(text: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        escaped.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            escaped.push_str(&format!("\\x{byte:02x}"));
        }
    }
    escaped
}

/// The string of a text that [`escape`] returned; `None` for other texts.
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        rest = match escaped.strip_prefix('\\') {
            Some(after) => {
                bytes.push(b'\\');
                after
            }
            None => {
                let digits = escaped.strip_prefix('x')?.get(..2)?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                &escaped[3..]
            }
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}

/// A tensor of this type whose strings are a function of the position.
pub(crate) fn tensor_of(
    ty: &TensorType,
    text: impl Fn(u64) -> String,
) -> Result<Tensor, TensorError> {
    ty.byte_size()?;
    let texts: Vec<String> = (0..ty.elements()? as u64).map(text).collect();
    Tensor::from_strings(ty.shape.clone(), &texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_equal_handles() {
        let mut strings = Strings::of(["b", "a", "b"]);
        assert_eq!(strings.texts().len(), 2);
        assert_eq!((strings.intern(b"a"), strings.intern(b"c")), (1, 2));
        strings.truncate(1);
        assert_eq!(strings.get(1), None);
        assert_eq!(strings.intern(b"c"), 1);
    }

    #[test]
    fn tensors_move_between_tables() {
        let tensor = Tensor::from_strings([2, 2], &["x", "y", "x", ""]).expect("four strings");
        let mut strings = Strings::of(["y"]);
        let handles = tensor.clone().interned(&mut strings);
        assert_eq!(handles.handles(), [1, 0, 1, 2]);
        assert_eq!(handles.clone().resolved(&strings), tensor);
        let back = handles.with_strings(&Arc::new(strings));
        assert_eq!(back, tensor);
        assert_ne!(back, Tensor::from_strings([2, 2], &["x", "y", "x", "z"]).expect("strings"));
        // Without a table, all elements are empty.
        let zeros = Tensor::zeros(TensorType::new(DType::String, [1])).expect("a tensor");
        assert_eq!(zeros, Tensor::from_strings([1], &[""]).expect("a string"));
    }

    #[test]
    fn any_bytes_are_escaped_and_read_back() {
        for text in [&b"plain \xc3\xa9"[..], b"\\x41\\", b"\xff\xfea", b"", b"\0"] {
            assert_eq!(unescape(&escape(text)).as_deref(), Some(text), "{}", escape(text));
        }
        assert_eq!(escape(b"\xc3\xa9\xff\\"), "\u{e9}\\xff\\\\");
        for text in ["\\", "\\x4", "\\y", "\\x\u{e9}z"] {
            assert_eq!(unescape(text), None, "{text}");
        }
    }
}
