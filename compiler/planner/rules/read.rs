//! Reads rules from JSON, with located diagnostics.
use super::{Pattern, Pins, Rule, Rules, Span, keys};
use irc_ark_format::{
    model::{DataType, OpKind},
    plan::{Config, ConfigValue, Range},
};
use irc_diag::{Diagnostic, Sink, Source};
use irc_json::{At, Format, Node, Object, Reader, Value};

/// Diagnostic codes of rules, and limits on their text.
static FORMAT: Format = Format {
    holds: "an array of rules",
    levels: Some("four"),
    wrong_type: "rules-value",
    range: "rules-value",
    missing_key: "rules-missing-key",
    duplicate_key: "rules-duplicate-key",
    ..Format::of("rules-syntax")
};

/// Keys of a pattern.
const MATCH_KEYS: [&str; 5] = ["Type", "Name", "DataType", "Shape", "Nodes"];

/// Keys of a rule.
const RULE_KEYS: [&str; 7] =
    ["Match", "Config", "Merge", "ProcessorRange", "WarpRange", "SramRange", "Task"];

/// Reads a file of rules; `None` after an error in the sink.
pub fn read(source: &Source, sink: &mut Sink) -> Option<Rules> {
    let before = sink.error_count();
    let tree = irc_json::parse(source, &FORMAT, sink)?;
    let rules = Reader::new(sink, &FORMAT, true).list(&tree, &At::ROOT, rule)?;
    (sink.error_count() == before).then_some(Rules { rules })
}

/// Reports an invalid value.
fn error(r: &mut Reader<'_>, message: impl Into<String>, node: &Node<'_>, at: &At<'_>) {
    r.report(Diagnostic::error("rules-value", message), node.shown(), at, "here");
}

/// An object with no keys but these.
fn object<'n, 't, 'p>(
    r: &mut Reader<'_>,
    node: &'n Node<'t>,
    at: &'p At<'p>,
    known: &[&str],
) -> Option<Object<'n, 't, 'p>> {
    let object = r.object(node, at)?;
    for member in object.members.iter().filter(|member| !known.contains(&&*member.key)) {
        let message = format!("unknown key `{}`", irc_diag::clip(&member.key));
        let diagnostic = Diagnostic::error("rules-unknown-key", message)
            .help(format!("valid keys: {}", known.join(", ")));
        r.report(diagnostic, member.key_span(), &at.key(&member.key), "this key");
    }
    Some(object)
}

/// The value of a key read with `read`; `None` after a diagnostic.
fn field<T>(
    r: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    key: &str,
    read: impl FnOnce(&mut Reader<'_>, &Node<'_>, &At<'_>) -> Option<T>,
) -> Option<Option<T>> {
    match object.get(key) {
        None => Some(None),
        Some(node) => read(r, node, &object.at.key(key)).map(Some),
    }
}

fn rule(r: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Rule> {
    let object = object(r, node, at, &RULE_KEYS)?;
    let pattern = match object.get("Match") {
        Some(value) => pattern(r, value, &at.key("Match")),
        None => {
            let message = "expected `Match`, the pattern of a rule";
            let diagnostic = Diagnostic::error(FORMAT.missing_key, message)
                .help("`\"Match\": {}` matches every op");
            r.report(diagnostic, node.shown(), at, "this rule");
            None
        }
    };
    let kinds = pattern.as_ref().and_then(|pattern| pattern.kinds.as_deref());
    let kinds = kinds.unwrap_or(OpKind::ALL);
    let config = field(r, &object, "Config", |r, node, at| config(r, node, at, kinds));
    let is_merged = field(r, &object, "Merge", |r, node, at| r.boolean(node, at));
    let has_config = object.get("Config").is_some();
    if object.get("Merge").is_some() && !has_config {
        error(r, "`Merge` requires `Config`", node, at);
    }
    let [processor_range, warp_range, sram_range] =
        ["ProcessorRange", "WarpRange", "SramRange"].map(|key| field(r, &object, key, range));
    let task = field(r, &object, "Task", text);
    let (config, keys) = config?.unzip();
    let pins = Pins {
        config,
        is_merged: is_merged?.unwrap_or(has_config),
        processor_range: processor_range?,
        warp_range: warp_range?,
        sram_range: sram_range?,
        task: task?,
    };
    let has_unknown = object.members.iter().any(|member| !RULE_KEYS.contains(&&*member.key));
    if pins.is_empty() && !has_unknown {
        error(r, "the rule fixes nothing", node, at);
    }
    Some(Rule { pattern: pattern?, pins, span: node.span(), keys: keys.unwrap_or_default() })
}

fn pattern(r: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Pattern> {
    let object = object(r, node, at, &MATCH_KEYS)?;
    Some(Pattern {
        kinds: field(r, &object, "Type", kinds)?,
        name: field(r, &object, "Name", text)?,
        dtype: field(r, &object, "DataType", dtype)?,
        shape: field(r, &object, "Shape", shape)?,
        nodes: field(r, &object, "Nodes", range)?,
    })
}

fn kinds(r: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Vec<OpKind>> {
    match node.value {
        Value::Array(_) => r.list(node, at, kind),
        _ => Some(vec![kind(r, node, at)?]),
    }
}

fn kind(r: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<OpKind> {
    let name = r.string(node, at)?;
    let kind = OpKind::from_name(name);
    if kind.is_none() {
        let nearest = OpKind::nearest(name);
        let hint = nearest.map(|kind| format!("; did you mean `{kind}`?")).unwrap_or_default();
        error(r, format!("`{name}` is not an op type{hint}"), node, at);
    }
    kind
}

fn dtype(r: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<DataType> {
    let dtype = DataType::from_name(r.string(node, at)?);
    if dtype.is_none() {
        let known: Vec<_> = DataType::ALL.iter().map(|dtype| dtype.name()).collect();
        error(r, format!("expected one of {}", known.join(", ")), node, at);
    }
    dtype
}

fn shape(r: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Vec<Option<i64>>> {
    if node.elements().is_none_or(|extents| !(1..=4).contains(&extents.len())) {
        r.wrong_type("an array of one to four extents, null for any", node, at);
        return None;
    }
    r.list(node, at, |r, node, at| match node.value {
        Value::Null => Some(None),
        _ => integer(r, node, at, 1).map(Some),
    })
}

fn range(r: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Range> {
    let ends = r.list(node, at, |r, node, at| integer(r, node, at, 0))?;
    match ends[..] {
        [begin, end] if begin <= end => Some(Range::new(begin, end)),
        _ => {
            error(r, "expected a range [begin, end] with begin <= end", node, at);
            None
        }
    }
}

/// A config for ops of some kinds, and the locations of its keys.
fn config(
    r: &mut Reader<'_>,
    node: &Node<'_>,
    at: &At<'_>,
    kinds: &[OpKind],
) -> Option<(Config, Vec<Span<usize>>)> {
    let object = r.object(node, at)?;
    if object.members.is_empty() {
        error(r, "the config is empty", node, at);
    }
    let (mut config, mut keys) = (Config::default(), vec![]);
    for member in object.members {
        let (key, span) = (&*member.key, member.key_span());
        let value = config_value(r, &member.value, &at.key(key))?;
        let diagnostic =
            keys::check_key(key, kinds).or_else(|| keys::check_value_for_any(key, &value, kinds));
        if let Some(diagnostic) = diagnostic {
            r.report(diagnostic, span.clone(), &at.key(key), "this key");
        }
        config.0.push((key.to_owned(), value));
        keys.push(span);
    }
    Some((config, keys))
}

fn config_value(r: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<ConfigValue> {
    const MIN: i32 = i32::MIN;
    match &node.value {
        Value::Bool(value) => Some(ConfigValue::Bool(*value)),
        Value::String(text) => Some(ConfigValue::Text(text.to_string())),
        Value::Number(_) => integer(r, node, at, MIN).map(ConfigValue::Int),
        Value::Array(_) => {
            r.list(node, at, |r, node, at| integer(r, node, at, MIN)).map(ConfigValue::Ints)
        }
        Value::Null | Value::Object(_) | Value::Unread(_) => {
            r.wrong_type("a boolean, integer, string or array of integers", node, at);
            None
        }
    }
}

fn text(r: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<String> {
    r.string(node, at).map(str::to_owned)
}

fn integer(r: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>, least: i32) -> Option<i64> {
    let expected = format!("a 32-bit integer of at least {least}");
    let number: i32 = r.integer(node, at, &expected)?;
    if number < least {
        r.out_of_range(&expected, node, at);
        return None;
    }
    Some(number.into())
}
