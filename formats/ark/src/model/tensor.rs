//! Tensors: strided boxes in buffers.

use std::fmt;

/// Element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataType {
    /// IEEE single precision.
    Fp32,
    /// IEEE half precision.
    Fp16,
    /// bfloat16.
    Bf16,
    /// Signed 32-bit integer.
    Int32,
    /// Unsigned 32-bit integer.
    Uint32,
    /// Signed 8-bit integer.
    Int8,
    /// Unsigned 8-bit integer.
    Uint8,
    /// Untyped byte.
    Byte,
}

impl DataType {
    /// All data types of the format.
    pub const ALL: [DataType; 8] = [
        DataType::Fp32,
        DataType::Fp16,
        DataType::Bf16,
        DataType::Int32,
        DataType::Uint32,
        DataType::Int8,
        DataType::Uint8,
        DataType::Byte,
    ];

    /// Name in a file.
    pub fn name(self) -> &'static str {
        match self {
            DataType::Fp32 => "FP32",
            DataType::Fp16 => "FP16",
            DataType::Bf16 => "BF16",
            DataType::Int32 => "INT32",
            DataType::Uint32 => "UINT32",
            DataType::Int8 => "INT8",
            DataType::Uint8 => "UINT8",
            DataType::Byte => "BYTE",
        }
    }

    /// The data type with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Bytes of one element.
    pub fn bytes(self) -> u64 {
        match self {
            DataType::Fp32 | DataType::Int32 | DataType::Uint32 => 4,
            DataType::Fp16 | DataType::Bf16 => 2,
            DataType::Int8 | DataType::Uint8 | DataType::Byte => 1,
        }
    }

    /// Whether elements are floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, DataType::Fp32 | DataType::Fp16 | DataType::Bf16)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A separate memory space; its size is determined by the tensors in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buffer {
    /// Unique id.
    pub id: u64,
    /// Rank that allocates the buffer; -1 for the rank of the file.
    pub rank: i64,
    /// `[remote rank, tag]` pairs to which this buffer's data may be sent.
    pub send_tags: Vec<[i64; 2]>,
    /// `[remote rank, tag]` pairs that may overwrite this buffer.
    pub recv_tags: Vec<[i64; 2]>,
}

impl Buffer {
    /// A local buffer without tags.
    pub fn local(id: u64) -> Self {
        Self { id, rank: -1, send_tags: vec![], recv_tags: vec![] }
    }
}

/// A box of elements in a buffer.
///
/// `strides` is the *shape of the enclosing view* of the buffer, not a list of element strides:
/// element `(i...)` is at linear index `sum((offsets[k] + i[k]) * product(strides[k + 1..]))`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tensor {
    /// Unique id of this definition.
    pub id: u64,
    /// Element type.
    pub dtype: DataType,
    /// Extents, from one to four of them.
    pub shape: Vec<i64>,
    /// Extents of the enclosing view.
    pub strides: Vec<i64>,
    /// Start of the box in the view.
    pub offsets: Vec<i64>,
    /// Extents that computation may access; at least `shape`.
    pub padded_shape: Vec<i64>,
    /// The buffer of the elements.
    pub buffer: Buffer,
}

impl Tensor {
    /// A tensor that fills a buffer densely.
    pub fn dense(id: u64, dtype: DataType, shape: &[i64], buffer: Buffer) -> Self {
        let shape = shape.to_vec();
        let (strides, padded_shape) = (shape.clone(), shape.clone());
        Self { id, dtype, offsets: vec![0; shape.len()], shape, strides, padded_shape, buffer }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Whether two tensors describe the same box of the same buffer.
    pub fn same_region(&self, other: &Tensor) -> bool {
        self.buffer.id == other.buffer.id
            && self.dtype == other.dtype
            && self.shape == other.shape
            && self.strides == other.strides
            && self.offsets == other.offsets
    }
}
