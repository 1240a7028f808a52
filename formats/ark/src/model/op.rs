//! Ops: what a node computes, and the signature of each kind.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;

use super::Tensor;

/// An argument of kind FLOAT: a 32-bit float compared by its bits.
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

/// The kind of an argument, the key that wraps its value in a file.
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
    /// Every kind of argument.
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

    /// The kind of that name.
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
        /// Buffer the address is in.
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
    /// Name for people.
    pub name: String,
    /// Whether it only describes memory and computes nothing.
    pub is_virtual: bool,
    /// Tensors read.
    pub reads: Vec<Tensor>,
    /// Tensors written.
    pub writes: Vec<Tensor>,
    /// New names of what was written; later ops refer to these.
    pub results: Vec<Tensor>,
    /// Named arguments, in alphabetical order.
    pub args: BTreeMap<String, Arg>,
}

impl Op {
    /// Every tensor the op mentions: reads, writes, results.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.reads.iter().chain(&self.writes).chain(&self.results)
    }

    /// The boolean argument of that name.
    pub fn bool_arg(&self, name: &str) -> Option<bool> {
        match self.args.get(name)? {
            Arg::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The INT argument of that name.
    pub fn int_arg(&self, name: &str) -> Option<i32> {
        match self.args.get(name)? {
            Arg::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The UINT32 argument of that name.
    pub fn uint_arg(&self, name: &str) -> Option<u32> {
        match self.args.get(name)? {
            Arg::Uint32(value) => Some(*value),
            _ => None,
        }
    }

    /// The FLOAT argument of that name.
    pub fn float_arg(&self, name: &str) -> Option<f32> {
        match self.args.get(name)? {
            Arg::Float(Float(value)) => Some(*value),
            _ => None,
        }
    }

    /// The DIMS argument of that name.
    pub fn dims_arg(&self, name: &str) -> Option<&[i64]> {
        match self.args.get(name)? {
            Arg::Dims(value) => Some(value),
            _ => None,
        }
    }
}

/// How many tensors an op kind takes and which arguments it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Number of tensors read.
    pub reads: RangeInclusive<usize>,
    /// Number of tensors written.
    pub writes: RangeInclusive<usize>,
    /// Number of results.
    pub results: RangeInclusive<usize>,
    /// Arguments, all of them required, in alphabetical order.
    pub args: &'static [(&'static str, ArgKind)],
}

macro_rules! op_kinds {
    ($($(#[$doc:meta])* $kind:ident)*) => {
        /// The registered kinds of op.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum OpKind { $($(#[$doc])* $kind),* }

        impl OpKind {
            /// Every kind, in alphabetical order.
            pub const ALL: &'static [OpKind] = &[$(OpKind::$kind),*];

            /// Name in a file.
            pub fn name(self) -> &'static str {
                match self { $(OpKind::$kind => stringify!($kind)),* }
            }

            /// The kind of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $(stringify!($kind) => Some(OpKind::$kind),)* _ => None }
            }
        }
    };
}

op_kinds! {
    /// Elementwise sum with NumPy broadcasting.
    Add
    /// Conversion of element type.
    Cast
    /// Copy, possibly broadcasting.
    Copy
    /// Waits for every rank.
    DeviceSync
    /// Elementwise quotient with NumPy broadcasting.
    Div
    /// Rows of a table by index.
    Embedding
    /// Elementwise exponential.
    Exp
    /// Elementwise GELU, tanh approximation.
    Gelu
    /// Matrix product, batched over leading dimensions.
    Matmul
    /// Elementwise product with NumPy broadcasting.
    Mul
    /// Keeps the buffer of its operand allocated.
    Noop
    /// Receives into a local tensor.
    Recv
    /// Receives packets into a local tensor.
    RecvPacket
    /// Reduces what peers wrote and sends the sum to them.
    RecvReduceSend
    /// As `RecvReduceSend`, with packets.
    RecvReduceSendPacket
    /// Maximum along one axis.
    ReduceMax
    /// Mean along one axis.
    ReduceMean
    /// Sum along one axis.
    ReduceSum
    /// Elementwise max(x, 0).
    Relu
    /// Registered by ARK and never written by it.
    Reshape
    /// Rotary embedding of adjacent pairs.
    Rope
    /// Elementwise 1 / sqrt(x).
    Rsqrt
    /// Adds a constant.
    ScalarAdd
    /// Fills with a constant.
    ScalarAssign
    /// Multiplies by a constant.
    ScalarMul
    /// Sends a tensor to a peer.
    Send
    /// Waits until a send has left.
    SendDone
    /// Sends a tensor as packets.
    SendPacket
    /// Elementwise logistic function.
    Sigmoid
    /// Elementwise square root.
    Sqrt
    /// Elementwise difference with NumPy broadcasting.
    Sub
    /// A tensor or a view of one; computes nothing.
    Tensor
    /// Permutation of dimensions.
    Transpose
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl OpKind {
    /// Operand counts and arguments of the kind.
    pub fn signature(self) -> Signature {
        use ArgKind::{Bool, Dims, Float, Int, Uint32};
        use OpKind::*;
        const MANY: usize = usize::MAX;
        let of = |reads, writes, results, args| Signature { reads, writes, results, args };
        match self {
            Add | Sub | Mul | Div | Rope | Embedding => of(2..=2, 1..=1, 1..=1, &[]),
            Exp | Gelu | Relu | Rsqrt | Sigmoid | Sqrt | Copy | Cast => {
                of(1..=1, 1..=1, 1..=1, &[])
            }
            ScalarAdd | ScalarMul => of(1..=1, 1..=1, 1..=1, &[("Factor", Float)]),
            ScalarAssign => of(0..=0, 1..=1, 1..=1, &[("Value", Float)]),
            Matmul => {
                of(2..=2, 1..=1, 1..=1, &[("TransposeInput", Bool), ("TransposeOther", Bool)])
            }
            ReduceSum | ReduceMax | ReduceMean => {
                of(1..=1, 1..=1, 1..=1, &[("Axis", Int), ("KeepDim", Bool)])
            }
            Transpose => of(1..=1, 1..=1, 1..=1, &[("Permutation", Dims)]),
            Noop => of(1..=1, 0..=0, 0..=0, &[]),
            Send | Recv => of(1..=1, 1..=1, 1..=1, &[]),
            SendDone => of(1..=1, 0..=0, 1..=1, &[]),
            SendPacket => of(1..=1, 1..=1, 1..=1, &[("Flag", Uint32)]),
            RecvPacket => of(2..=2, 1..=1, 1..=1, &[("Flag", Uint32)]),
            RecvReduceSendPacket => {
                of(2..=2, 1..=MANY, 1..=1, &[("Flag", Uint32), ("NPeers", Uint32), ("Rank", Int)])
            }
            RecvReduceSend => of(2..=2, 1..=MANY, 1..=1, &[("NPeers", Uint32), ("Rank", Int)]),
            DeviceSync => of(1..=1, 1..=1, 1..=1, &[("PeerNum", Int), ("Rank", Int)]),
            Tensor | Reshape => of(0..=MANY, 0..=0, 1..=1, &[]),
        }
    }

    /// Elementwise on two operands with broadcasting.
    pub fn is_binary(self) -> bool {
        matches!(self, OpKind::Add | OpKind::Sub | OpKind::Mul | OpKind::Div | OpKind::Rope)
    }

    /// Elementwise on one operand.
    pub fn is_unary(self) -> bool {
        use OpKind::*;
        matches!(
            self,
            Exp | Gelu | Relu | Rsqrt | Sigmoid | Sqrt | Copy | Cast | ScalarAdd | ScalarMul
        )
    }

    /// A reduction along one axis.
    pub fn is_reduce(self) -> bool {
        matches!(self, OpKind::ReduceSum | OpKind::ReduceMax | OpKind::ReduceMean)
    }

    /// Moves data between ranks or waits for them.
    pub fn is_communication(self) -> bool {
        use OpKind::*;
        matches!(
            self,
            Send | SendDone
                | Recv
                | SendPacket
                | RecvPacket
                | RecvReduceSendPacket
                | RecvReduceSend
                | DeviceSync
        )
    }

    /// The registered name most like `name`, for a hint.
    pub fn nearest(name: &str) -> Option<OpKind> {
        let names = OpKind::ALL.iter().map(|kind| kind.name());
        OpKind::from_name(irc_diag::nearest(name, names)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_33_kinds_and_names_round_trip() {
        assert_eq!(OpKind::ALL.len(), 33);
        OpKind::ALL.iter().for_each(|&k| assert_eq!(OpKind::from_name(k.name()), Some(k)));
    }

    #[test]
    fn a_misspelt_kind_has_a_suggestion() {
        assert_eq!(OpKind::nearest("MatMull"), Some(OpKind::Matmul));
        assert_eq!(OpKind::nearest("Convolution"), None);
    }

    #[test]
    fn floats_are_compared_by_bits() {
        assert_ne!(Float(0.0), Float(-0.0));
        assert_eq!(Float(f32::NAN), Float(f32::NAN));
    }
}
