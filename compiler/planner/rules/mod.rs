//! Config rules: configs, ranges and tasks that a user pins for the ops that a pattern matches.
//!
//! They correspond to ARK's `install_config_rule` and `PlannerContext`: `docs/config-rules.md`.
mod keys;
mod read;

pub use read::read;

use irc_ark_format::{
    model::{DataType, Model, Node, OpKind},
    plan::{Config, ConfigValue, Range},
};
use irc_diag::Diagnostic;
use std::ops::Range as Span;

/// Rules in the order of their file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// A rule: a pattern, and the pins of matching ops.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    pattern: Pattern,
    pins: Pins,
    /// Where the rule is in its file.
    span: Span<usize>,
    /// Location of each key of its config, in order.
    keys: Vec<Span<usize>>,
}

/// A pattern of ops: all fields that are given must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pattern {
    kinds: Option<Vec<OpKind>>,
    /// A name in which `*` matches any text and `?` any character.
    name: Option<String>,
    /// The element type of the first result.
    dtype: Option<DataType>,
    /// The shape of the first result; a dimension of `None` may have any extent.
    shape: Option<Vec<Option<i64>>>,
    /// Ids of nodes, `[begin, end)`.
    nodes: Option<Range>,
}

/// The pins of an op.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// Keys of the config.
    pub config: Option<Config>,
    /// Whether the keys override those of the planner's own config, rather than replacing it.
    pub is_merged: bool,
    /// Processors of the task.
    pub processor_range: Option<Range>,
    /// Warps of the task's resource group.
    pub warp_range: Option<Range>,
    /// On-chip memory of the task's resource group.
    pub sram_range: Option<Range>,
    /// Consecutive ops with the same name run in one task.
    pub task: Option<String>,
}

impl Pins {
    /// Whether nothing is pinned.
    pub fn is_empty(&self) -> bool {
        *self == Pins::default()
    }

    /// Whether ranges of the resource group are pinned.
    pub fn has_ranges(&self) -> bool {
        self.processor_range.is_some() || self.warp_range.is_some() || self.sram_range.is_some()
    }

    /// Merges the pins of a later rule, which override key by key.
    fn extend(&mut self, later: &Pins) {
        if let Some(config) = &later.config {
            match self.config.as_mut().filter(|_| later.is_merged) {
                Some(own) => config.0.iter().for_each(|(key, value)| set(own, key, value.clone())),
                None => (self.config, self.is_merged) = (Some(config.clone()), later.is_merged),
            }
        }
        self.processor_range = later.processor_range.or(self.processor_range);
        self.warp_range = later.warp_range.or(self.warp_range);
        self.sram_range = later.sram_range.or(self.sram_range);
        self.task = later.task.clone().or(self.task.take());
    }
}

/// Sets a key of a config, in place if it exists.
pub(crate) fn set(config: &mut Config, key: &str, value: ConfigValue) {
    match config.0.iter_mut().find(|(name, _)| name == key) {
        Some((_, old)) => *old = value,
        None => config.0.push((key.to_owned(), value)),
    }
}

impl Rules {
    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The pins of each node of a model.
    pub fn pins(&self, model: &Model) -> Vec<Pins> {
        let of = |node: &Node| {
            let mut pins = Pins::default();
            let matching = self.rules.iter().filter(|rule| rule.pattern.matches(node));
            matching.for_each(|rule| pins.extend(&rule.pins));
            pins
        };
        model.nodes.iter().map(of).collect()
    }

    /// Diagnostics of the rules for a model, located in their file: a warning for each rule that
    /// matches no op, an error for each key of a config that no matching op has or
    /// whose value is invalid for one of them.
    pub fn diagnostics(&self, model: &Model) -> Vec<Diagnostic> {
        self.rules.iter().flat_map(|rule| rule.diagnostics(model)).collect()
    }
}

impl Rule {
    fn diagnostics(&self, model: &Model) -> Vec<Diagnostic> {
        let matched = model.nodes.iter().filter(|node| self.pattern.matches(node));
        let mut kinds: Vec<OpKind> = matched.map(|node| node.op.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        if kinds.is_empty() {
            let message = "the rule matches no op of the model";
            let diagnostic = Diagnostic::warning("rules-unmatched", message);
            return vec![diagnostic.at(self.span.clone(), "this rule")];
        }
        let config = self.pins.config.iter().flat_map(|config| &config.0);
        let diagnostic = |((key, value), span): (&(String, ConfigValue), &Span<usize>)| {
            let diagnostic =
                keys::check_key(key, &kinds).or_else(|| keys::check_value(key, value, &kinds))?;
            Some(diagnostic.at(span.clone(), "this key"))
        };
        config.zip(&self.keys).filter_map(diagnostic).collect()
    }
}

impl Pattern {
    fn matches(&self, node: &Node) -> bool {
        let op = &node.op;
        let shown = op.results.first().or(op.reads.first());
        let id = i64::try_from(node.id).unwrap_or(i64::MAX);
        !op.is_virtual
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&op.kind))
            && self.name.as_ref().is_none_or(|name| glob(name, &op.name))
            && self.dtype.is_none_or(|dtype| shown.is_some_and(|tensor| tensor.dtype == dtype))
            && self
                .shape
                .as_ref()
                .is_none_or(|shape| shown.is_some_and(|tensor| fits_shape(shape, &tensor.shape)))
            && self.nodes.is_none_or(|nodes| (nodes.begin..nodes.end).contains(&id))
    }
}

fn fits_shape(pattern: &[Option<i64>], shape: &[i64]) -> bool {
    let fits =
        |(wanted, extent): (&Option<i64>, &i64)| wanted.is_none_or(|wanted| wanted == *extent);
    pattern.len() == shape.len() && pattern.iter().zip(shape).all(fits)
}

/// Whether a text matches a pattern of `*` and `?`; in time linear in both for one star, and at
/// most their product.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where to continue when what follows the last star does not match: the star consumes one more.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, t) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        assert!(glob("matmul*", "matmul_3") && glob("*", "") && glob("a?c", "abc"));
        assert!(glob("*_1*x", "mul_1_1x") && !glob("mul", "mul_1") && !glob("a?", "a"));
    }
}
