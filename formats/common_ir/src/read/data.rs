//! Files with one value: `input_0.pb` of ONNX's test data.

use bytes::Bytes;
use irc_diag::Sink;

use super::message;
use super::shared::Reader;
use crate::model::{Data, Path, Tensor, Type};
use crate::proto::onnx;

/// Reads a file with one tensor.
pub fn read_tensor(bytes: Bytes, sink: &mut Sink) -> Option<Tensor> {
    message(bytes, "onnx.TensorProto", sink, |reader, tensor| {
        Some(reader.tensor(tensor, &Path::ROOT))
    })
}

/// Reads a file with one value of a type. `None` in the file is an absent optional.
pub fn read_data(bytes: Bytes, ty: &Type, sink: &mut Sink) -> Option<Data> {
    let at = &Path::ROOT;
    match ty {
        Type::Tensor(_) => read_tensor(bytes, sink).map(Box::new).map(Data::Tensor),
        Type::Sparse(_) => message(bytes, "onnx.SparseTensorProto", sink, |reader, sparse| {
            Some(Data::Sparse(Box::new(reader.sparse(sparse, at))))
        }),
        Type::Sequence(_) => message(bytes, "onnx.SequenceProto", sink, |reader, list| {
            Some(reader.sequence(list, at))
        }),
        Type::Map { .. } => {
            message(bytes, "onnx.MapProto", sink, |reader, map| Some(reader.map(map, at)))
        }
        Type::Optional(_) => message(bytes, "onnx.OptionalProto", sink, |reader, option| {
            Some(reader.optional(option, at))
        }),
        Type::Tuple(_) | Type::Handle | Type::Opaque { .. } => {
            let diagnostic = format!("files cannot hold values of type {ty}");
            Reader::new(sink).error("cir-data", diagnostic, at);
            None
        }
    }
}

impl Reader<'_> {
    /// The elements are in the list of their kind; the others are empty.
    fn sequence(&mut self, from: onnx::SequenceProto, at: &Path<'_>) -> Data {
        let mut found = vec![];
        for (index, tensor) in from.tensor_values.into_iter().enumerate() {
            let tensor = self.tensor(tensor, &at.index("tensor_values", index));
            found.push(Data::Tensor(Box::new(tensor)));
        }
        for (index, tensor) in from.sparse_tensor_values.into_iter().enumerate() {
            let at = at.index("sparse_tensor_values", index);
            found.push(Data::Sparse(Box::new(self.sparse(tensor, &at))));
        }
        for (index, list) in from.sequence_values.into_iter().enumerate() {
            found.push(self.sequence(list, &at.index("sequence_values", index)));
        }
        for (index, map) in from.map_values.into_iter().enumerate() {
            found.push(self.map(map, &at.index("map_values", index)));
        }
        for (index, option) in from.optional_values.into_iter().enumerate() {
            found.push(self.optional(option, &at.index("optional_values", index)));
        }
        Data::Sequence(found)
    }

    fn map(&mut self, from: onnx::MapProto, at: &Path<'_>) -> Data {
        let at = at.field("values");
        let values = match self.sequence(from.values.unwrap_or_default(), &at) {
            Data::Sequence(values) => values,
            other => vec![other],
        };
        let keys = from.keys.len() + from.string_keys.len();
        if keys != values.len() {
            let message = format!("the map has {keys} keys and {} values", values.len());
            self.error("cir-data", message, &at);
        }
        match from.string_keys.is_empty() {
            true => Data::IntMap(from.keys.into_iter().zip(values).collect()),
            false => Data::StringMap(from.string_keys.into_iter().zip(values).collect()),
        }
    }

    fn optional(&mut self, from: onnx::OptionalProto, at: &Path<'_>) -> Data {
        let tensor = from.tensor_value;
        let tensor = tensor.map(|of| Box::new(self.tensor(of, &at.field("tensor_value"))));
        let sparse = from.sparse_tensor_value;
        let sparse = sparse.map(|of| Box::new(self.sparse(of, &at.field("sparse_tensor_value"))));
        let list = from.sequence_value.map(|of| self.sequence(of, &at.field("sequence_value")));
        let map = from.map_value.map(|of| self.map(of, &at.field("map_value")));
        let option = from.optional_value;
        let option = option.map(|of| self.optional(*of, &at.field("optional_value")));
        let value = tensor.map(Data::Tensor).or(sparse.map(Data::Sparse)).or(list).or(map);
        Data::Optional(value.or(option).map(Box::new))
    }
}
