//! Origins of nodes in a file.

use crate::json::OpPlace;

/// The location in the file of a node of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Location of the node's op in the document.
    pub place: OpPlace,
    /// Byte offset of the node.
    pub offset: usize,
    /// Length of the node in bytes.
    pub len: usize,
    /// Line of the node, from one.
    pub line: usize,
    /// Column of the node in characters, from one.
    pub column: usize,
}
