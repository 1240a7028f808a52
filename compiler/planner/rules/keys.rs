//! Checks the keys of a rule's config against the ops that the rule matches.
use irc_ark_format::{
    model::OpKind,
    plan::{ConfigValue, config_keys, expected_config},
};
use irc_diag::{Diagnostic, nearest};

/// Maximum number of kinds named in a message.
const NAMED: usize = 4;

/// The diagnostic of a key that no op of these kinds has.
pub(super) fn check_key(key: &str, kinds: &[OpKind]) -> Option<Diagnostic> {
    // A product's `Tile` is read in plans of the newest generation, but never written.
    let is_old = |kind: OpKind, key: &str| kind != OpKind::Matmul || key != "Tile";
    let keys = kinds
        .iter()
        .flat_map(|&kind| config_keys(kind).into_iter().filter(move |key| is_old(kind, key.name)));
    let mut known: Vec<&str> = keys.map(|key| key.name).collect();
    known.sort_unstable();
    known.dedup();
    if known.contains(&key) {
        return None;
    }
    let whose = match kinds.len() {
        1..=NAMED => format!("of {}", names(kinds)),
        _ => "of an op".to_owned(),
    };
    let message = format!("no config {whose} has a key `{key}`");
    let begins = |other: &&str| !key.is_empty() && other.starts_with(key);
    let near = nearest(key, known.iter().copied())
        .or_else(|| known.iter().copied().find(begins))
        .map(|near| format!("did you mean `{near}`? "));
    let near = near.unwrap_or_default();
    let help = format!("{near}valid keys: {}", known.join(", "));
    Some(Diagnostic::error("rules-unknown-key", message).help(help))
}

/// The diagnostic of a value that is invalid for an op of these kinds.
pub(super) fn check_value(key: &str, value: &ConfigValue, kinds: &[OpKind]) -> Option<Diagnostic> {
    let wrong = |kind: &OpKind| Some((*kind, expected_config(*kind, key, value)?));
    let (kind, expected) = kinds.iter().find_map(wrong)?;
    let message = format!("`{key}` of {kind}: expected {expected}, found {}", value_text(value));
    Some(Diagnostic::error("rules-value", message))
}

/// The diagnostic of a value that is invalid for all ops of these kinds.
pub(super) fn check_value_for_any(
    key: &str,
    value: &ConfigValue,
    kinds: &[OpKind],
) -> Option<Diagnostic> {
    let has = |kind: &&OpKind| config_keys(**kind).iter().any(|known| known.name == key);
    let fits = |kind: &OpKind| expected_config(*kind, key, value).is_none();
    let fits = kinds.iter().filter(has).any(fits);
    if fits { None } else { check_value(key, value, kinds) }
}

fn names(kinds: &[OpKind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    names.join(", ")
}

fn value_text(value: &ConfigValue) -> String {
    match value {
        ConfigValue::Bool(value) => value.to_string(),
        ConfigValue::Int(value) => value.to_string(),
        ConfigValue::Text(text) => format!("{text:?}"),
        ConfigValue::Ints(values) => format!("{values:?}"),
    }
}
