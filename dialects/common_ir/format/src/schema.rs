//! The schemas as descriptors.

use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, MessageDescriptor};

use crate::proto::SCHEMAS;

/// Deepest nesting of messages that is read, in all forms; protobuf's own bound.
pub(crate) const MAX_DEPTH: usize = 100;

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(SCHEMAS).expect("the build script encodes what it has compiled")
});

/// The message of that full name.
pub(crate) fn message(name: &str) -> MessageDescriptor {
    POOL.get_message_by_name(name).expect("only messages of the schemas are asked for")
}
