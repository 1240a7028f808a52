//! How an op is divided into tasks: the set of keys depends on the kind of op.

/// A value of a [`Config`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ConfigValue {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A string.
    Text(String),
    /// Integers.
    Ints(Vec<i64>),
}

/// Keys and values in file order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Config(pub Vec<(String, ConfigValue)>);

impl Config {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&ConfigValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The integer of a key.
    pub fn int(&self, key: &str) -> Option<i64> {
        match self.get(key)? {
            ConfigValue::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The integers of a key.
    pub fn ints(&self, key: &str) -> Option<&[i64]> {
        match self.get(key)? {
            ConfigValue::Ints(values) => Some(values),
            _ => None,
        }
    }

    /// The string of a key.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            ConfigValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The boolean of a key.
    pub fn bool(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            ConfigValue::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Appends a key and its value.
    #[must_use]
    pub fn with(mut self, key: &str, value: ConfigValue) -> Self {
        self.0.push((key.into(), value));
        self
    }
}
