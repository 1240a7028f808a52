//! Ops: what a node computes. [`table`] has the row of each kind, and [`row`] defines its contents.

mod communicate;
mod example;
mod row;
mod shapes;
mod table;

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use super::Tensor;

pub use row::{Argument, Elements, Exchange, Family, Lane, Row};
pub use table::OpKind;

/// An argument of kind FLOAT: a 32-bit float, compared by its bits.
#[derive(Clone, Copy, Debug)]
pub struct Float(pub f32);

impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Float {}

impl Hash for Float {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// The kind of an argument, which is the key of its value in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArgKind {
    /// 32-bit signed integer.
    Int,
    /// 64-bit signed integer.
    Int64,
    /// 32-bit unsigned integer.
    Uint32,
    /// 64-bit unsigned integer.
    Uint64,
    /// Boolean.
    Bool,
    /// 32-bit float.
    Float,
    /// Up to four integers.
    Dims,
    /// A tensor.
    Tensor,
    /// An address in a buffer.
    Offset,
}

impl ArgKind {
    /// All kinds of argument.
    pub const ALL: [ArgKind; 9] = [
        ArgKind::Int,
        ArgKind::Int64,
        ArgKind::Uint32,
        ArgKind::Uint64,
        ArgKind::Bool,
        ArgKind::Float,
        ArgKind::Dims,
        ArgKind::Tensor,
        ArgKind::Offset,
    ];

    /// Name in a file.
    pub fn name(self) -> &'static str {
        match self {
            ArgKind::Int => "INT",
            ArgKind::Int64 => "INT64",
            ArgKind::Uint32 => "UINT32",
            ArgKind::Uint64 => "UINT64",
            ArgKind::Bool => "BOOL",
            ArgKind::Float => "FLOAT",
            ArgKind::Dims => "DIMS",
            ArgKind::Tensor => "TENSOR",
            ArgKind::Offset => "OFFSET",
        }
    }

    /// The kind with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The value of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Arg {
    /// 32-bit signed integer.
    Int(i32),
    /// 64-bit signed integer.
    Int64(i64),
    /// 32-bit unsigned integer.
    Uint32(u32),
    /// 64-bit unsigned integer.
    Uint64(u64),
    /// Boolean.
    Bool(bool),
    /// 32-bit float.
    Float(Float),
    /// Up to four integers.
    Dims(Vec<i64>),
    /// A tensor.
    Tensor(Box<Tensor>),
    /// An address in a buffer.
    Offset {
        /// The buffer.
        buffer_id: u64,
        /// Offset in the buffer.
        value: i64,
    },
}

impl Arg {
    /// Kind of the value.
    pub fn kind(&self) -> ArgKind {
        match self {
            Arg::Int(_) => ArgKind::Int,
            Arg::Int64(_) => ArgKind::Int64,
            Arg::Uint32(_) => ArgKind::Uint32,
            Arg::Uint64(_) => ArgKind::Uint64,
            Arg::Bool(_) => ArgKind::Bool,
            Arg::Float(_) => ArgKind::Float,
            Arg::Dims(_) => ArgKind::Dims,
            Arg::Tensor(_) => ArgKind::Tensor,
            Arg::Offset { .. } => ArgKind::Offset,
        }
    }
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Op {
    /// What it computes.
    pub kind: OpKind,
    /// A descriptive name.
    pub name: String,
    /// Whether it only describes memory, without computing.
    pub is_virtual: bool,
    /// Tensors read.
    pub reads: Vec<Tensor>,
    /// Tensors written.
    pub writes: Vec<Tensor>,
    /// New tensors for the ones written; later ops refer to these.
    pub results: Vec<Tensor>,
    /// Named arguments, in alphabetical order.
    pub args: BTreeMap<String, Arg>,
}

impl Op {
    /// All tensors of the op: reads, writes, results.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.reads.iter().chain(&self.writes).chain(&self.results)
    }

    /// The boolean argument with that name.
    pub fn bool_arg(&self, name: &str) -> Option<bool> {
        match self.args.get(name)? {
            Arg::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The INT argument with that name.
    pub fn int_arg(&self, name: &str) -> Option<i32> {
        match self.args.get(name)? {
            Arg::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The UINT32 argument with that name.
    pub fn uint_arg(&self, name: &str) -> Option<u32> {
        match self.args.get(name)? {
            Arg::Uint32(value) => Some(*value),
            _ => None,
        }
    }

    /// The FLOAT argument with that name.
    pub fn float_arg(&self, name: &str) -> Option<f32> {
        match self.args.get(name)? {
            Arg::Float(Float(value)) => Some(*value),
            _ => None,
        }
    }

    /// The DIMS argument with that name.
    pub fn dims_arg(&self, name: &str) -> Option<&[i64]> {
        match self.args.get(name)? {
            Arg::Dims(value) => Some(value),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_compared_by_bits() {
        assert_ne!(Float(0.0), Float(-0.0));
        assert_eq!(Float(f32::NAN), Float(f32::NAN));
    }
}
