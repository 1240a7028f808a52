//! Conversions that both schemas share: tensors, shapes, the variants of an attribute.

use std::collections::BTreeSet;

use bytes::Bytes;
use irc_diag::{Diagnostic, Sink};
use prost::Message;

use crate::model::{
    AttributeKind, AttributeValue, Dim, ElementType, Entries, External, Node, Path, Segment, Shape,
    SparseTensor, Tensor, TensorData, Type, Value,
};
use crate::proto::{lotus, onnx};
use crate::schema::MAX_DEPTH;

/// Converts messages to the model; unsupported parts are diagnostics.
pub(super) struct Reader<'s> {
    sink: &'s mut Sink,
    /// Number of enclosing graphs.
    depth: usize,
    /// Whether a node could not be decoded.
    is_broken: bool,
    /// Kinds of unsupported parts that have been reported.
    ignored: BTreeSet<&'static str>,
}

/// Maximum nesting of graphs in attributes of nodes; each is three messages deep.
const MAX_GRAPHS: usize = MAX_DEPTH / 3 - 3;

impl<'s> Reader<'s> {
    pub(super) fn new(sink: &'s mut Sink) -> Self {
        Self { sink, depth: 0, is_broken: false, ignored: BTreeSet::new() }
    }

    /// Whether a part of the file was not a valid message; the file has to be parsed again to locate
    /// it.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Decodes a message.
    pub(super) fn decode<M: Message + Default>(&mut self, bytes: Bytes) -> Option<M> {
        let decoded = M::decode(bytes);
        self.is_broken |= decoded.is_err();
        decoded.ok()
    }

    /// Decodes and converts nodes one after another.
    pub(super) fn nodes<M: Message + Default>(
        &mut self,
        encoded: Vec<Bytes>,
        at: &Path<'_>,
        mut read: impl FnMut(&mut Self, M, &Path<'_>) -> Node,
    ) -> Vec<Node> {
        if self.depth > MAX_GRAPHS {
            let message = format!("graphs nested more than {MAX_GRAPHS} levels deep");
            self.error("cir-nesting", message, at);
            return vec![];
        }
        self.depth += 1;
        let nodes = list(encoded, |index, bytes| match self.decode(bytes) {
            Some(message) => read(self, message, &at.index("node", index)),
            None => Node::default(),
        });
        self.depth -= 1;
        nodes
    }

    pub(super) fn error(&mut self, code: &'static str, message: String, at: &Path<'_>) {
        self.sink.push(Diagnostic::error(code, message).path(at.to_string()));
    }

    /// Reports that a part of the file is ignored, if it is present; once for each kind of part.
    pub(super) fn report_ignored(&mut self, is_there: bool, what: &'static str, at: &Path<'_>) {
        if is_there && self.ignored.insert(what) {
            let diagnostic = Diagnostic::note("cir-unread", format!("{what} is ignored"));
            self.sink.push(diagnostic.path(at.to_string()));
        }
    }

    /// The value from the fields that are set, of which there must be at most one.
    pub(super) fn choose(
        &mut self,
        mut fields: Vec<AttributeValue>,
        at: &Path<'_>,
    ) -> AttributeValue {
        if fields.len() > 1 {
            let names: Vec<&str> =
                fields.iter().filter_map(AttributeValue::kind).map(AttributeKind::field).collect();
            let message =
                format!("the attribute has several values: `{}` (R52)", names.join("`, `"));
            self.error("cir-attribute-fields", message, at);
        }
        if fields.is_empty() { AttributeValue::Nothing } else { fields.swap_remove(0) }
    }

    /// The value of the kind that the file states.
    pub(super) fn choose_kind(
        &mut self,
        fields: Vec<AttributeValue>,
        kind: AttributeKind,
        at: &Path<'_>,
    ) -> AttributeValue {
        let (mut right, wrong): (Vec<_>, Vec<_>) =
            fields.into_iter().partition(|value| value.kind() == Some(kind));
        if let Some(found) = wrong.first().and_then(AttributeValue::kind) {
            let (expected, found) = (kind.field(), found.field());
            let message =
                format!("the attribute's type requires field `{expected}`, but `{found}` is set");
            self.error("cir-attribute-type", message, at);
        }
        // Writers without presence omit zeros and empty lists.
        let empty = empty_value(kind);
        if right.is_empty() && empty == AttributeValue::Nothing && wrong.is_empty() {
            let message = format!("the attribute has no value in field `{}`", kind.field());
            self.error("cir-attribute-type", message, at);
        }
        right.pop().unwrap_or(empty)
    }

    pub(super) fn tensor(&mut self, from: onnx::TensorProto, at: &Path<'_>) -> Tensor {
        let element = ElementType::from_number(from.data_type.unwrap_or_default());
        let is_external =
            from.data_location == Some(onnx::tensor_proto::DataLocation::External as i32);
        let mut found = vec![];
        if is_external {
            found.push(TensorData::External(self.external(from.external_data, at)));
        }
        found.extend(from.raw_data.map(TensorData::Raw));
        take(&mut found, from.float_data, TensorData::Floats);
        take(&mut found, from.int32_data, TensorData::Ints32);
        take(&mut found, from.string_data, TensorData::Strings);
        take(&mut found, from.int64_data, TensorData::Ints64);
        take(&mut found, from.double_data, TensorData::Doubles);
        take(&mut found, from.uint64_data, TensorData::Uints64);
        // Some writers set an empty `raw_data` beside the field they use.
        if found.len() > 1 {
            found.retain(|data| !matches!(data, TensorData::Raw(bytes) if bytes.is_empty()));
        }
        if found.len() > 1 {
            let names: Vec<&str> = found.iter().map(TensorData::field).collect();
            let name = from.name.as_deref().unwrap_or_default();
            let message = format!(
                "tensor `{name}` has its elements in several fields: `{}` (R85)",
                names.join("`, `")
            );
            self.error("cir-tensor-fields", message, at);
        }
        Tensor {
            name: from.name,
            element,
            dims: from.dims,
            data: found.into_iter().next().unwrap_or_default(),
            segment: from.segment.map(|part| Segment { begin: part.begin, end: part.end }),
            doc: from.doc_string,
            properties: entries(from.metadata_props),
        }
    }

    fn external(&mut self, from: Vec<onnx::StringStringEntryProto>, at: &Path<'_>) -> External {
        let mut external = External::default();
        for (key, value) in entries(from) {
            match key.as_str() {
                "location" => external.location = value,
                "offset" => external.offset = self.bytes(&key, &value, at).unwrap_or_default(),
                "length" => external.length = self.bytes(&key, &value, at),
                _ => external.others.push((key, value)),
            }
        }
        if external.location.is_empty() {
            let message = "external data has no `location`".into();
            self.error("cir-external", message, at);
        }
        external
    }

    fn bytes(&mut self, key: &str, value: &str, at: &Path<'_>) -> Option<u64> {
        let number = value.parse().ok();
        if number.is_none() {
            let message =
                format!("`{key}` of external data is `{value}`, expected a number of bytes");
            self.error("cir-external", message, at);
        }
        number
    }

    pub(super) fn sparse(&mut self, from: onnx::SparseTensorProto, at: &Path<'_>) -> SparseTensor {
        SparseTensor {
            dims: from.dims,
            indices: from.indices.map(|tensor| self.tensor(tensor, &at.field("indices"))),
            values: from.values.map(|tensor| self.tensor(tensor, &at.field("values"))),
        }
    }
}

/// Maps each element into a list of exact capacity: collected in place, it would keep
/// the capacity of the messages, which are much larger.
pub(super) fn list<T, U>(from: Vec<T>, mut make: impl FnMut(usize, T) -> U) -> Vec<U> {
    let mut to = Vec::with_capacity(from.len());
    for (index, from) in from.into_iter().enumerate() {
        to.push(make(index, from));
    }
    to
}

/// The default of a field that is absent; `None` if there is none.
fn empty_value(kind: AttributeKind) -> AttributeValue {
    use AttributeValue as V;
    match kind {
        AttributeKind::Float => V::Float(0.0),
        AttributeKind::Int => V::Int(0),
        AttributeKind::String => V::String(Default::default()),
        AttributeKind::Floats => V::Floats(vec![]),
        AttributeKind::Ints => V::Ints(vec![]),
        AttributeKind::Strings => V::Strings(vec![]),
        AttributeKind::Tensors => V::Tensors(vec![]),
        AttributeKind::Graphs => V::Graphs(vec![]),
        AttributeKind::SparseTensors => V::SparseTensors(vec![]),
        AttributeKind::Types => V::Types(vec![]),
        AttributeKind::Shapes => V::Shapes(vec![]),
        AttributeKind::Tensor
        | AttributeKind::Graph
        | AttributeKind::SparseTensor
        | AttributeKind::Type
        | AttributeKind::Shape => V::Nothing,
    }
}

/// Adds a list that is not empty.
pub(super) fn take<T, V>(to: &mut Vec<V>, list: Vec<T>, make: impl Fn(Vec<T>) -> V) {
    if !list.is_empty() {
        to.push(make(list));
    }
}

pub(super) fn entries(from: Vec<onnx::StringStringEntryProto>) -> Entries {
    let pair = |entry: onnx::StringStringEntryProto| {
        (entry.key.unwrap_or_default(), entry.value.unwrap_or_default())
    };
    from.into_iter().map(pair).collect()
}

/// Type and shape of a value: the shape is moved into the type of a tensor.
pub(super) fn typed(name: Option<String>, ty: Option<Type>, shape: Option<Shape>) -> Value {
    let mut value = Value { name, ty, shape, ..Value::default() };
    if let (Some(Type::Tensor(tensor) | Type::Sparse(tensor)), Some(_)) =
        (&mut value.ty, &value.shape)
        && tensor.shape.is_none()
    {
        tensor.shape = value.shape.take();
    }
    value
}

/// A text; `None` if it is empty.
pub(super) fn some_text(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// The dimension that a file states by a number or a text.
pub(super) fn dim(number: Option<i64>, text: Option<&str>) -> Dim {
    match (number, text) {
        (Some(size), _) => Dim::Size(size),
        (None, text) => Dim::from(text.unwrap_or_default()),
    }
}

/// Converts a tensor of Common IR, which has fewer fields than ONNX's.
pub(super) fn modern(from: lotus::TensorProto) -> onnx::TensorProto {
    onnx::TensorProto {
        dims: from.dims,
        data_type: from.data_type,
        segment: from
            .segment
            .map(|part| onnx::tensor_proto::Segment { begin: part.begin, end: part.end }),
        float_data: from.float_data,
        int32_data: from.int32_data,
        string_data: from.string_data,
        int64_data: from.int64_data,
        name: from.name,
        raw_data: from.raw_data,
        double_data: from.double_data,
        ..Default::default()
    }
}
