//! Rules from JSON, every finding placed.
use super::{Pattern, Pins, Rule, Rules, Span, keys};
use irc_ark_format::{
    json::strict_json,
    model::{DataType, OpKind},
    plan::{Config, ConfigValue, Range},
};
use irc_diag::{Diagnostic, Sink, Source};
use jsonc_parser::{
    CollectOptions,
    ast::{Object, Value},
    common::Ranged,
    parse_to_ast,
};

/// Keys that say which ops a rule is for.
const MATCH_KEYS: [&str; 5] = ["Type", "Name", "DataType", "Shape", "Nodes"];

/// Brackets within brackets: a rule needs four.
const MOST_DEPTH: i32 = 16;

/// Keys of a rule.
const RULE_KEYS: [&str; 7] =
    ["Match", "Config", "Merge", "ProcessorRange", "WarpRange", "SramRange", "Task"];

/// Reads a file of rules; nothing after an error in the sink.
pub fn read(source: &Source, sink: &mut Sink) -> Option<Rules> {
    if let Some(at) = too_deep(source.text()) {
        let message = format!("rules nest at most {MOST_DEPTH} deep");
        sink.push(Diagnostic::error("rules-syntax", message).at(at..at + 1, "here"));
        return None;
    }
    let tree = match parse_to_ast(source.text(), &CollectOptions::default(), &strict_json()) {
        Ok(tree) => tree.value,
        Err(error) => {
            let range = error.range();
            let finding =
                Diagnostic::error("rules-syntax", error.kind().to_string().to_lowercase());
            sink.push(finding.at(range.start..range.end.max(range.start + 1), "here"));
            return None;
        }
    };
    let mut reader = Reader { sink };
    let rules = match &tree {
        Some(value) => reader.array(value, "an array of rules"),
        None => {
            let finding =
                Diagnostic::error("rules-syntax", "expected an array of rules, found nothing");
            reader.sink.push(finding.at(0..0, "here"));
            None
        }
    };
    // Every rule is looked at before any failure counts, so that each is reported.
    let rules: Vec<Option<Rule>> = rules?.iter().map(|value| reader.rule(value)).collect();
    let rules: Option<Vec<Rule>> = rules.into_iter().collect();
    rules.filter(|_| !sink.has_errors()).map(|rules| Rules { rules })
}

/// The bracket that nests too deep for a parser that calls itself for each.
fn too_deep(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
        if depth > MOST_DEPTH {
            return Some(at);
        }
    }
    None
}

struct Reader<'s> {
    sink: &'s mut Sink,
}

impl Reader<'_> {
    fn error(&mut self, message: impl Into<String>, value: &impl Ranged) {
        let finding = Diagnostic::error("rules-value", message);
        self.sink.push(finding.at(value.start()..value.end(), "here"));
    }

    fn array<'t>(&mut self, value: &'t Value<'t>, expected: &str) -> Option<&'t [Value<'t>]> {
        match value {
            Value::Array(array) => Some(&array.elements),
            _ => {
                self.error(format!("expected {expected}"), value);
                None
            }
        }
    }

    fn object<'t>(&mut self, value: &'t Value<'t>, known: &[&str]) -> Option<&'t Object<'t>> {
        let Value::Object(object) = value else {
            self.error("expected an object", value);
            return None;
        };
        let mut seen = std::collections::BTreeSet::new();
        for property in &object.properties {
            let key = property.name.as_str();
            let finding = if !seen.insert(key) {
                Diagnostic::error("rules-duplicate-key", format!("key `{key}` occurs twice"))
            } else if !known.is_empty() && !known.contains(&key) {
                let finding =
                    Diagnostic::error("rules-unknown-key", format!("unknown key `{key}`"));
                finding.help(format!("the keys here are {}", known.join(", ")))
            } else {
                continue;
            };
            self.sink.push(finding.at(property.name.start()..property.name.end(), "this key"));
        }
        Some(object)
    }

    fn rule(&mut self, value: &Value<'_>) -> Option<Rule> {
        let object = self.object(value, &RULE_KEYS)?;
        let get = |key: &str| object.get(key).map(|property| &property.value);
        let pattern = match get("Match") {
            Some(value) => self.pattern(value),
            None => {
                let message = "a rule needs `Match`, the ops that it is for";
                let finding = Diagnostic::error("rules-missing-key", message);
                self.sink.push(
                    finding
                        .at(value.start()..value.end(), "this rule")
                        .help("`\"Match\": {}` matches every op"),
                );
                None
            }
        };
        let kinds = pattern.as_ref().and_then(|pattern| pattern.kinds.as_deref());
        let kinds = kinds.unwrap_or(OpKind::ALL);
        let config = get("Config").map(|value| self.config(value, kinds));
        let is_merged = get("Merge").map(|value| self.boolean(value));
        if is_merged.is_some() && config.is_none() {
            self.error("`Merge` says how `Config` is used, and there is none", value);
        }
        let ranges = ["ProcessorRange", "WarpRange", "SramRange"];
        let ranges = ranges.map(|key| get(key).map(|value| self.range(value)));
        let task = get("Task").map(|value| self.string(value).map(str::to_owned));
        let [processor_range, warp_range, sram_range] = ranges;
        let (config, keys) = whole(config)?.unzip();
        let pins = Pins {
            config,
            is_merged: whole(is_merged)?.unwrap_or(get("Config").is_some()),
            processor_range: whole(processor_range)?,
            warp_range: whole(warp_range)?,
            sram_range: whole(sram_range)?,
            task: whole(task)?,
        };
        if pins.is_empty() {
            self.error("the rule pins nothing", value);
        }
        Some(Rule {
            pattern: pattern?,
            pins,
            span: value.start()..value.end(),
            keys: keys.unwrap_or_default(),
        })
    }

    fn pattern(&mut self, value: &Value<'_>) -> Option<Pattern> {
        let object = self.object(value, &MATCH_KEYS)?;
        let get = |key: &str| object.get(key).map(|property| &property.value);
        Some(Pattern {
            kinds: whole(get("Type").map(|value| self.kinds(value)))?,
            name: whole(get("Name").map(|value| self.string(value).map(str::to_owned)))?,
            dtype: whole(get("DataType").map(|value| self.dtype(value)))?,
            shape: whole(get("Shape").map(|value| self.shape(value)))?,
            nodes: whole(get("Nodes").map(|value| self.range(value)))?,
        })
    }

    fn kinds(&mut self, value: &Value<'_>) -> Option<Vec<OpKind>> {
        match value {
            Value::Array(array) => array.elements.iter().map(|value| self.kind(value)).collect(),
            _ => Some(vec![self.kind(value)?]),
        }
    }

    fn kind(&mut self, value: &Value<'_>) -> Option<OpKind> {
        let name = self.string(value)?;
        let kind = OpKind::from_name(name);
        if kind.is_none() {
            let nearest = OpKind::nearest(name);
            let hint = nearest.map(|kind| format!("; did you mean `{kind}`?")).unwrap_or_default();
            self.error(format!("`{name}` is no type of op{hint}"), value);
        }
        kind
    }

    fn dtype(&mut self, value: &Value<'_>) -> Option<DataType> {
        let name = self.string(value)?;
        let dtype = DataType::from_name(name);
        if dtype.is_none() {
            let known: Vec<_> = DataType::ALL.iter().map(|dtype| dtype.name()).collect();
            self.error(format!("expected one of {}", known.join(", ")), value);
        }
        dtype
    }

    fn shape(&mut self, value: &Value<'_>) -> Option<Vec<Option<i64>>> {
        let extents = self.array(value, "an array of extents, null for any")?;
        if !(1..=4).contains(&extents.len()) {
            self.error("expected one to four extents", value);
            return None;
        }
        let mut extent = |value: &Value<'_>| match value {
            Value::NullKeyword(_) => Some(None),
            _ => self.integer(value, 1).map(Some),
        };
        extents.iter().map(&mut extent).collect()
    }

    fn range(&mut self, value: &Value<'_>) -> Option<Range> {
        let numbers = self.array(value, "a range [begin, end]")?;
        let ends: Option<Vec<i64>> = numbers.iter().map(|value| self.integer(value, 0)).collect();
        match ends?[..] {
            [begin, end] if begin <= end => Some(Range::new(begin, end)),
            _ => {
                self.error("expected a range [begin, end] with begin <= end", value);
                None
            }
        }
    }

    /// A config for ops of some kinds, and where its keys stand.
    fn config(
        &mut self,
        value: &Value<'_>,
        kinds: &[OpKind],
    ) -> Option<(Config, Vec<Span<usize>>)> {
        let object = self.object(value, &[])?;
        if object.properties.is_empty() {
            self.error("the config pins no key", value);
        }
        let (mut config, mut keys) = (Config::default(), vec![]);
        for property in &object.properties {
            let key = property.name.as_str();
            let value = self.config_value(&property.value)?;
            let span = property.name.start()..property.name.end();
            let finding = keys::unread(key, kinds).or_else(|| keys::unfit_all(key, &value, kinds));
            self.sink.extend(finding.map(|finding| finding.at(span.clone(), "this key")));
            config.0.push((key.to_owned(), value));
            keys.push(span);
        }
        Some((config, keys))
    }

    fn config_value(&mut self, value: &Value<'_>) -> Option<ConfigValue> {
        match value {
            Value::BooleanLit(literal) => Some(ConfigValue::Bool(literal.value)),
            Value::StringLit(literal) => Some(ConfigValue::Text(literal.value.to_string())),
            Value::NumberLit(_) => self.integer(value, i64::from(i32::MIN)).map(ConfigValue::Int),
            Value::Array(array) => {
                let numbers =
                    array.elements.iter().map(|value| self.integer(value, i64::from(i32::MIN)));
                numbers.collect::<Option<_>>().map(ConfigValue::Ints)
            }
            _ => {
                self.error("expected a boolean, integer, string or array of integers", value);
                None
            }
        }
    }

    fn string<'t>(&mut self, value: &'t Value<'t>) -> Option<&'t str> {
        match value {
            Value::StringLit(literal) => Some(&literal.value),
            _ => {
                self.error("expected a string", value);
                None
            }
        }
    }

    fn boolean(&mut self, value: &Value<'_>) -> Option<bool> {
        match value {
            Value::BooleanLit(literal) => Some(literal.value),
            _ => {
                self.error("expected true or false", value);
                None
            }
        }
    }

    fn integer(&mut self, value: &Value<'_>, least: i64) -> Option<i64> {
        let number = match value {
            Value::NumberLit(literal) => literal.value.parse::<i32>().ok().map(i64::from),
            _ => None,
        };
        let number = number.filter(|number| *number >= least);
        if number.is_none() {
            self.error(format!("expected a 32-bit integer of at least {least}"), value);
        }
        number
    }
}

/// A key that may be absent, but not wrong.
fn whole<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        None => Some(None),
        Some(None) => None,
        Some(Some(value)) => Some(Some(value)),
    }
}
