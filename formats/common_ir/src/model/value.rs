//! Values of any type, as files of test data hold them.

use bytes::Bytes;

use super::{SparseTensor, Tensor};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A dense tensor.
    Tensor(Box<Tensor>),
    /// A sparse tensor.
    Sparse(Box<SparseTensor>),
    /// Values in order.
    Sequence(Vec<Data>),
    /// A map with keys that are integers.
    IntMap(Vec<(i64, Data)>),
    /// A map with keys that are strings.
    StringMap(Vec<(Bytes, Data)>),
    /// A value that may be absent.
    Optional(Option<Box<Data>>),
    /// Several values of given types.
    Tuple(Vec<Data>),
    /// A number that stands for something outside.
    Handle(i64),
}
