//! The keys of objects of a file whose values are ops.

/// How the value of a key contains ops.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    /// A list; or a single object, if the op has the attribute [`SINGLE`].
    List,
    /// A single object.
    Alone,
    /// An object whose keys are the attribute `id` of the ops.
    Map,
}

/// A key of an op whose value contains other ops.
pub(super) struct Nested {
    pub parent: &'static str,
    pub key: &'static str,
    pub child: &'static str,
    pub container: Container,
}

const fn row(
    parent: &'static str,
    key: &'static str,
    child: &'static str,
    container: Container,
) -> Nested {
    Nested { parent, key, child, container }
}

/// If two rows have the same child, ops name their key unless it is that of the first row.
pub(super) const NESTED: &[Nested] = &[
    row("gemini.schedule", "-1", "gemini.dram", Container::Alone),
    row("gemini.schedule", "DRAM", "gemini.dram", Container::Map),
    row("gemini.dram", "in", "gemini.dram_in", Container::List),
    row("gemini.dram", "out", "gemini.dram_out", Container::List),
    row("gemini.workload", "buffer", "gemini.resident", Container::List),
    row("gemini.workload", "ifmap", "gemini.ifmap", Container::List),
    row("gemini.workload", "ofmap", "gemini.ofmap", Container::List),
    row("gemini.workload", "weight", "gemini.weight", Container::Alone),
    row("gemini.workload", "tile_info", "gemini.tile", Container::Map),
    row("gemini.workload", "wl0_buffer", "gemini.wl0_row", Container::List),
    row("gemini.workload", "wl1_buffer", "gemini.wl0_row", Container::List),
];

/// The row of a key of an op.
pub(super) fn under(parent: &str, key: &str) -> Option<&'static Nested> {
    NESTED.iter().find(|row| row.parent == parent && row.key == key)
}

/// The default row of a child in an op.
pub(super) fn usual(parent: &str, child: &str) -> Option<&'static Nested> {
    NESTED.iter().find(|row| row.parent == parent && row.child == child)
}

/// Whether ops of a name have a region.
pub(super) fn is_whole(name: &str) -> bool {
    matches!(name, "gemini.core" | "gemini.frontend") || NESTED.iter().any(|row| row.parent == name)
}

/// The key of an op in the object or map that contains it.
pub(super) const ID: &str = "id";
/// The key of an op in its parent, if it is not the default.
pub(super) const AS: &str = "gemini.as";
/// Marks an op that is a single object where others are in a list.
pub(super) const SINGLE: &str = "gemini.single";
/// The keys of an object in their order.
pub(super) const KEYS: &str = "gemini.keys";
/// Keys that cannot be attributes, with their values.
pub(super) const OTHERS: &str = "gemini.others";

/// Whether a key of a file can be an attribute of an op.
pub(super) fn is_attribute(key: &str) -> bool {
    let starts = key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts && key != ID && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
