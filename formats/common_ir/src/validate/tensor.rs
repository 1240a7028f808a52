//! Constants: fields, sizes, segments, strings; maps and lists of values.

use bytes::Bytes;

use super::{Checker, Rule};
use crate::model::{
    Attribute, AttributeValue, Data, ElementType, Node, Path, SparseTensor, Tensor, TensorData,
};

impl Checker<'_> {
    /// Checks a constant.
    pub(super) fn tensor(&mut self, tensor: &Tensor, at: &Path<'_>) {
        let name = tensor.name.as_deref().unwrap_or_default();
        self.element(tensor.element, at);
        if matches!(tensor.element, ElementType::Undefined | ElementType::Other(_)) {
            return;
        }
        if let Some(size) = tensor.dims.iter().find(|size| **size < 0) {
            let message = format_args!("tensor `{name}` has the negative size {size}");
            return self.report(Rule::R90, at, message);
        }
        if self.segment(tensor, name, at) {
            self.elements(tensor, name, at);
        }
    }

    /// Whether the tensor is complete, so that its size is checked.
    fn segment(&mut self, tensor: &Tensor, name: &str, at: &Path<'_>) -> bool {
        let Some(segment) = tensor.segment else { return true };
        let (begin, end) = (segment.begin.unwrap_or(0), segment.end.unwrap_or(0));
        if begin < 0 || begin > end {
            let message = format_args!("the segment of tensor `{name}` runs from {begin} to {end}");
            self.report(Rule::R88, at, message);
        } else if !matches!(tensor.data, TensorData::Raw(_)) {
            let field = tensor.data.field();
            let found = if field.is_empty() { "no field" } else { field };
            let message =
                format_args!("tensor `{name}` has a segment, and its elements in `{found}`");
            self.report(Rule::R88, at, message);
        }
        false
    }

    fn elements(&mut self, tensor: &Tensor, name: &str, at: &Path<'_>) {
        let found = match &tensor.data {
            // Absent external data have been reported by the reader.
            TensorData::External(external) if external.bytes.is_none() => return,
            TensorData::Strings(_) => {
                tensor.strings().map(|strings| self.strings(strings, name, at))
            }
            TensorData::Nothing if tensor.element == ElementType::String => {
                tensor.strings().map(|_| ())
            }
            _ => tensor.elements().map(|bytes| self.bools(tensor, &bytes, name, at)),
        };
        let Err(error) = found else { return };
        let is_raw = matches!(tensor.data, TensorData::Raw(_) | TensorData::External(_));
        let rule = if is_raw && tensor.count().is_ok() { Rule::R86 } else { Rule::R85 };
        self.report(rule, at, format_args!("tensor `{name}`: {error}"));
    }

    fn bools(&mut self, tensor: &Tensor, bytes: &Bytes, name: &str, at: &Path<'_>) {
        if tensor.element != ElementType::Bool {
            return;
        }
        if let Some(index) = bytes.iter().position(|byte| *byte > 1) {
            let message = format_args!(
                "tensor `{name}`: the bool at index {index} is {}, expected 0 or 1",
                bytes[index]
            );
            self.report(Rule::R86, at, message);
        }
    }

    fn strings(&mut self, strings: &[Bytes], name: &str, at: &Path<'_>) {
        for (index, text) in strings.iter().enumerate() {
            if let Some(error) = text_error(text) {
                let message = format_args!("the string at index {index} of `{name}` {error}");
                self.report(Rule::R84, at, message);
            }
        }
    }

    /// Checks a sparse constant.
    pub(super) fn sparse(&mut self, sparse: &SparseTensor, at: &Path<'_>) {
        if let Some(tensor) = &sparse.indices {
            self.tensor(tensor, &at.field("indices"));
        }
        if let Some(tensor) = &sparse.values {
            self.tensor(tensor, &at.field("values"));
        }
        if let Some(error) = sparse_error(sparse) {
            let name = sparse.values.as_ref().and_then(|values| values.name.as_deref());
            let name = name.unwrap_or_default();
            self.report(Rule::R87, at, format_args!("sparse tensor `{name}`: {error}"));
        }
    }

    /// Checks the literal of an attribute.
    pub(super) fn literal(&mut self, attribute: &Attribute, at: &Path<'_>) {
        use AttributeValue as V;
        let name = attribute.name.as_deref().unwrap_or_default();
        let key = at.key("attribute", name);
        match &attribute.value {
            V::String(text) => self.strings(std::slice::from_ref(text), name, &key),
            V::Strings(texts) => self.strings(texts, name, &key),
            V::Tensor(tensor) => self.tensor(tensor, &key.field("t")),
            V::Tensors(tensors) => {
                for (index, tensor) in tensors.iter().enumerate() {
                    self.tensor(tensor, &key.index("tensors", index));
                }
            }
            V::SparseTensor(sparse) => self.sparse(sparse, &key.field("sparse_tensor")),
            V::SparseTensors(all) => {
                for (index, sparse) in all.iter().enumerate() {
                    self.sparse(sparse, &key.index("sparse_tensors", index));
                }
            }
            V::Type(ty) => self.ty(ty, &key),
            V::Types(types) => types.iter().for_each(|ty| self.ty(ty, &key)),
            V::Shape(shape) => self.shape(shape, &key),
            V::Shapes(shapes) => shapes.iter().for_each(|shape| self.shape(shape, &key)),
            _ => {}
        }
    }

    /// Checks the map that a node represents as a list `keys…` beside a list `values…`.
    pub(super) fn map_literal(&mut self, node: &Node, at: &Path<'_>) {
        let starts = |prefix: &'static str| {
            move |attribute: &&Attribute| {
                attribute.name.as_deref().is_some_and(|name| name.starts_with(prefix))
            }
        };
        if node.attributes.len() < 2 || !node.attributes.iter().any(|a| starts("values")(&a)) {
            return;
        }
        for keys in node.attributes.iter().filter(starts("keys")) {
            let key = match &keys.value {
                AttributeValue::Ints(keys) => duplicate(keys.iter()).map(i64::to_string),
                AttributeValue::Strings(keys) => duplicate(keys.iter()).map(show),
                _ => None,
            };
            if let Some(key) = key {
                let at = at.key("attribute", keys.name.as_deref().unwrap_or_default());
                self.report(Rule::R89, &at, format_args!("the key {key} occurs twice"));
            }
        }
    }
}

/// The error in a value of a file of test data: keys that occur twice, lists of mixed kinds.
pub fn data_error(data: &Data) -> Option<(Rule, String)> {
    let twice = |key: String| Some((Rule::R89, format!("the key {key} occurs twice")));
    match data {
        Data::IntMap(entries) => match duplicate(entries.iter().map(|entry| &entry.0)) {
            Some(key) => twice(key.to_string()),
            None => entries.iter().find_map(|entry| data_error(&entry.1)),
        },
        Data::StringMap(entries) => match duplicate(entries.iter().map(|entry| &entry.0)) {
            Some(key) => twice(show(key)),
            None => entries.iter().find_map(|entry| data_error(&entry.1)),
        },
        Data::Sequence(items) => {
            let kind = |item: &Data| match item {
                Data::Tensor(tensor) => (std::mem::discriminant(item), Some(tensor.element)),
                _ => (std::mem::discriminant(item), None),
            };
            if items.windows(2).any(|pair| kind(&pair[0]) != kind(&pair[1])) {
                return Some((Rule::R82, "the elements of the list are of several types".into()));
            }
            items.iter().find_map(data_error)
        }
        Data::Tuple(items) => items.iter().find_map(data_error),
        Data::Optional(item) => item.as_deref().and_then(data_error),
        Data::Tensor(_) | Data::Sparse(_) | Data::Handle(_) => None,
    }
}

/// An item that occurs twice.
fn duplicate<'k, K: Ord>(keys: impl Iterator<Item = &'k K>) -> Option<&'k K> {
    let mut keys: Vec<&K> = keys.collect();
    keys.sort();
    keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

fn show(bytes: &Bytes) -> String {
    format!("`{}`", String::from_utf8_lossy(bytes))
}

/// The reason why bytes are not valid text of the format.
fn text_error(text: &[u8]) -> Option<String> {
    if let Err(error) = std::str::from_utf8(text) {
        return Some(format!("is not UTF-8 at byte {}", error.valid_up_to()));
    }
    if text.starts_with("\u{feff}".as_bytes()) {
        return Some("starts with a byte order mark".into());
    }
    text.ends_with(b"\0").then(|| "ends with a NUL".into())
}

/// The reason why indices and values are not a sparse tensor.
fn sparse_error(sparse: &SparseTensor) -> Option<String> {
    let (Some(indices), Some(values)) = (&sparse.indices, &sparse.values) else {
        return Some("it needs both indices and values".into());
    };
    let &[count] = &values.dims[..] else {
        return Some(format!("its values have {} dimensions, expected 1", values.dims.len()));
    };
    let rank = sparse.dims.len() as i64;
    let width = match indices.dims[..] {
        [rows] if rows == count => 1,
        [rows, width] if rows == count && width == rank => width,
        _ => {
            let found = &indices.dims;
            return Some(format!(
                "its indices have the sizes {found:?}, expected [{count}, {rank}]"
            ));
        }
    };
    if indices.element != ElementType::Int64 {
        return Some(format!("its indices are {}, expected int64", indices.element));
    }
    let bytes = indices.elements().ok()?;
    let is_linear = indices.dims.len() == 1;
    let total: i64 = sparse.dims.iter().copied().fold(1, i64::saturating_mul);
    let limit = |column: usize| if is_linear { total } else { sparse.dims[column] };
    for (place, number) in bytes.chunks_exact(8).enumerate() {
        let index = i64::from_le_bytes(number.try_into().unwrap_or_default());
        let limit = limit(place % width.max(1) as usize);
        if index < 0 || index >= limit {
            return Some(format!("index {index} is not below the size {limit}"));
        }
    }
    None
}
