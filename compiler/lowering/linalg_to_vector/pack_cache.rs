//! Memory that a kernel keeps between calls: blocks packed from arguments alone.
//!
//! A kernel that `keeps` gets a `memref<Nxi8>` before its workspace. The first eight bytes are nonzero
//! if the rest was filled by an earlier call with the same elements in the arguments `kept_arguments` of
//! its `#tl.kernel`: if they are zero, the kernel fills it, and otherwise only reads it. The caller
//! writes these bytes.
use crate::kernel::emit::{Buffer, Emit, Lanes};
use irc_executor::code::Keeps;
use irc_mlir::{Type, Value};

/// Bytes before the kept blocks: a cache line, so that the blocks are aligned.
const HEADER: i64 = 64;

/// The memory that a kernel keeps.
#[derive(Debug, Clone)]
pub struct PackCache<'c, 'a> {
    memref: Value<'c, 'a>,
    /// Whether it must be filled.
    is_empty: Value<'c, 'a>,
    /// Bytes kept, and the arguments that they depend on.
    pub contents: Keeps,
}

impl<'c: 'a, 'a> PackCache<'c, 'a> {
    /// Emits, at the end of the block of `e`, the check whether the memory is filled.
    pub fn new(e: Emit<'c, 'a>, memref: Value<'c, 'a>) -> Self {
        let header = e.workspace_view(memref, 0, 1, e.int(64));
        let word = e.load(header, e.index(0));
        let zero = e.zero(e.int(64), Lanes::Scalar);
        let contents = Keeps { bytes: 0, operands: vec![] };
        Self { memref, is_empty: e.compare(0, word, zero), contents }
    }

    /// Memory for `size` elements that depend only on an argument, and whether they must be computed.
    pub fn keep(
        &mut self,
        e: Emit<'c, 'a>,
        size: i64,
        element: Type<'c>,
        argument: usize,
    ) -> (Buffer<'c, 'a>, Value<'c, 'a>) {
        let offset = self.contents.bytes.cast_signed().max(HEADER);
        let end = offset + (size * super::byte_width(element) + 63) / 64 * 64;
        self.contents.bytes = end.cast_unsigned();
        self.contents.operands.push(argument);
        (e.workspace_view(self.memref, offset, size, element), self.is_empty)
    }
}
