//! The values of `llvm.mlir.constant` and similar ops.
use super::layout::Element;
use irc_mlir::{
    OperationRef,
    llvm::{self, Data},
    ops, read,
};

/// A constant.
pub enum Constant {
    /// All bits are zero; also used for undefined values.
    Zero,
    /// Numbers, as bytes.
    Data(Data),
}

impl Constant {
    /// The constant that an op defines.
    pub fn of(op: OperationRef<'_, '_>) -> Option<Self> {
        if read::op_name(&op) != ops::llvm::MLIR_CONSTANT {
            return Some(Constant::Zero);
        }
        Some(Constant::Data(llvm::data(read::attribute(&op, "value")?)?))
    }

    /// The integer in every lane.
    pub fn integer(&self) -> Option<u64> {
        match self {
            Constant::Zero => Some(0),
            Constant::Data(Data::Splat(bytes)) if bytes.len() <= 8 => Some(bits(bytes) as u64),
            Constant::Data(_) => None,
        }
    }

    /// The bits of an element.
    pub fn bits(&self, index: usize, element: Element) -> Option<u128> {
        match self {
            Constant::Zero => Some(0),
            Constant::Data(Data::Splat(bytes)) => Some(bits(bytes)),
            Constant::Data(Data::Elements(bytes)) => {
                let size = element.bytes() as usize;
                Some(bits(bytes.get(index * size..(index + 1) * size)?))
            }
        }
    }
}

/// Little-endian bytes as a number.
pub fn bits(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte))
}
