//! Values of any type, as in files of test data.

use bytes::Bytes;

use super::{SparseTensor, Tensor};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A dense tensor.
    Tensor(Box<Tensor>),
    /// A sparse tensor.
    Sparse(Box<SparseTensor>),
    /// A sequence of values.
    Sequence(Vec<Data>),
    /// A map with keys that are integers.
    IntMap(Vec<(i64, Data)>),
    /// A map with keys that are strings.
    StringMap(Vec<(Bytes, Data)>),
    /// A value that may be absent.
    Optional(Option<Box<Data>>),
    /// A tuple of values with given types.
    Tuple(Vec<Data>),
    /// A number that refers to an external object.
    Handle(i64),
}
