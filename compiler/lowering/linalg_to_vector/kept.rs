//! What a kernel may keep for later calls: blocks packed from arguments alone.
//!
//! A function with the attribute `irc.keeps` gets a `memref<Nxi8>` before its workspace. The first
//! eight bytes say whether the rest was filled by an earlier call with the same elements in the
//! arguments `irc.kept_arguments`: zero, and the kernel fills it; else it only reads it. The caller
//! writes these bytes.
use super::{
    codegen::Codegen,
    emit::{Buffer, Emit},
    kernel::{Origin, TensorId},
};
use irc_mlir::Value;

/// Bytes before the kept blocks: a cache line, so that these are aligned.
const HEADER: i64 = 64;

/// The memory that a kernel keeps.
#[derive(Debug, Clone)]
pub struct Kept<'c, 'a> {
    memref: Value<'c, 'a>,
    /// Whether it is to be filled.
    is_empty: Value<'c, 'a>,
    bytes: i64,
    arguments: Vec<i64>,
}

impl<'c: 'a, 'a> Kept<'c, 'a> {
    /// Reads at the end of the block of `e` whether the memory is filled.
    pub fn new(e: Emit<'c, 'a>, memref: Value<'c, 'a>) -> Self {
        let header = e.workspace_view(memref, 0, 1, e.int(64));
        let word = e.load(header, e.index(0));
        let zero = e.zero(e.int(64), super::emit::Lanes::Scalar);
        Self { memref, is_empty: e.compare(0, word, zero), bytes: 0, arguments: vec![] }
    }

    /// Bytes kept, and the arguments that they follow from.
    pub fn contents(&self) -> (i64, &[i64]) {
        (self.bytes, &self.arguments)
    }
}

/// Keeps `size` elements of the type of `like` that follow from the tensor `from` alone: where they
/// are, and whether they are to be computed. `None` if the kernel keeps nothing, or computes `from`
/// itself.
pub fn keep<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    size: i64,
    (from, like): (TensorId, TensorId),
) -> Option<(Buffer<'c, 'a>, Value<'c, 'a>)> {
    let Origin::Argument(argument) = cg.kernel.tensors[from].origin else { return None };
    let element = cg.kernel.tensors[like].element;
    let kept = cg.kept.as_mut()?;
    let offset = kept.bytes.max(HEADER);
    kept.bytes = offset + (size * super::byte_width(element) + 63) / 64 * 64;
    kept.arguments.push(argument as i64);
    Some((e.workspace_view(kept.memref, offset, size, element), kept.is_empty))
}
