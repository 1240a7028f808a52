//! Which keys of an object of a file hold objects that are ops.

/// How a key holds them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// In a list; or alone, where the op says so.
    List,
    /// As the only one.
    Alone,
    /// Under keys of their own, which the ops have as `id`.
    Map,
}

/// A key of an op that holds others.
pub(super) struct Nested {
    pub parent: &'static str,
    pub key: &'static str,
    pub child: &'static str,
    pub held: Held,
}

const fn row(parent: &'static str, key: &'static str, child: &'static str, held: Held) -> Nested {
    Nested { parent, key, child, held }
}

/// Where two rows have the same child, ops name their key unless it is that of the first.
pub(super) const NESTED: &[Nested] = &[
    row("gemini.schedule", "-1", "gemini.dram", Held::Alone),
    row("gemini.schedule", "DRAM", "gemini.dram", Held::Map),
    row("gemini.dram", "in", "gemini.dram_in", Held::List),
    row("gemini.dram", "out", "gemini.dram_out", Held::List),
    row("gemini.workload", "buffer", "gemini.resident", Held::List),
    row("gemini.workload", "ifmap", "gemini.ifmap", Held::List),
    row("gemini.workload", "ofmap", "gemini.ofmap", Held::List),
    row("gemini.workload", "weight", "gemini.weight", Held::Alone),
    row("gemini.workload", "tile_info", "gemini.tile", Held::Map),
    row("gemini.workload", "wl0_buffer", "gemini.wl0_row", Held::List),
    row("gemini.workload", "wl1_buffer", "gemini.wl0_row", Held::List),
];

/// What an op holds under a key.
pub(super) fn under(parent: &str, key: &str) -> Option<&'static Nested> {
    NESTED.iter().find(|row| row.parent == parent && row.key == key)
}

/// The key under which an op holds another, if that does not name one.
pub(super) fn usual(parent: &str, child: &str) -> Option<&'static Nested> {
    NESTED.iter().find(|row| row.parent == parent && row.child == child)
}

/// Whether ops of a name have a region.
pub(super) fn is_whole(name: &str) -> bool {
    matches!(name, "gemini.core" | "gemini.frontend") || NESTED.iter().any(|row| row.parent == name)
}

/// The key of an op in the object or map that holds it.
pub(super) const ID: &str = "id";
/// The key of an object above that holds an op, where it is not the usual one.
pub(super) const AS: &str = "gemini.as";
/// An op that stands for an object where others have a list.
pub(super) const SINGLE: &str = "gemini.single";
/// The keys of an object in their order.
pub(super) const KEYS: &str = "gemini.keys";
/// Keys that cannot be attributes, with their values.
pub(super) const OTHERS: &str = "gemini.others";

/// Whether a key of a file can be an attribute of an op of that name.
pub(super) fn is_attribute(key: &str) -> bool {
    let starts = key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts && key != ID && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
