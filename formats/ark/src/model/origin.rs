//! Origins of nodes in a file.

use crate::json::OpPlace;

/// Where in the file a node of the model comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Place of the node's op in the document.
    pub place: OpPlace,
    /// Byte offset of the node.
    pub offset: usize,
    /// Bytes of the node.
    pub len: usize,
    /// Line of the node, from one.
    pub line: usize,
    /// Column of the node in characters, from one.
    pub column: usize,
}
