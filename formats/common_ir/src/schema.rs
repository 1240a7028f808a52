//! The schemas as descriptors.

use std::sync::LazyLock;

use irc_diag::Diagnostic;
use prost_reflect::{DescriptorPool, MessageDescriptor};

use crate::proto::SCHEMAS;

/// Maximum nesting of messages, in all encodings; protobuf's own limit.
pub(crate) const MAX_DEPTH: usize = 100;

/// Maximum number of messages, texts and numbers of a file, packed numbers counted as one: an
/// empty message takes two bytes in a file and hundreds in memory.
pub(crate) const MAX_ITEMS: usize = 16_000_000;

/// A limit that a file exceeds, and the offset where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitError {
    /// Nested too deeply.
    Depth(usize),
    /// More than [`MAX_ITEMS`].
    Items(usize),
}

impl LimitError {
    /// The diagnostic of the limit.
    pub(crate) fn diagnostic(self) -> Diagnostic {
        match self {
            Self::Depth(_) => {
                let message = format!("messages nested more than {MAX_DEPTH} levels deep");
                Diagnostic::error("cir-nesting", message)
            }
            Self::Items(_) => {
                let message = format!("more than {MAX_ITEMS} messages, texts and numbers");
                Diagnostic::error("cir-too-large", message)
                    .help("large data belong in the raw data of tensors")
            }
        }
    }
}

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(SCHEMAS).expect("valid descriptors from the build script")
});

/// The message with that full name.
pub(crate) fn message(name: &str) -> MessageDescriptor {
    POOL.get_message_by_name(name).expect("a message of the schemas")
}
