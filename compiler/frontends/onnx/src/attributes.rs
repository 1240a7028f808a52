//! Attributes of a node, by name and kind.

use crate::context::{Context, LowerError};
use crate::data::tensor_of;
use bytes::Bytes;
use irc_common_format::model::{AttributeValue, Graph};
use irc_tl::Constant;

type Optional<T> = Result<Option<T>, LowerError>;

impl<'a> Context<'a> {
    /// The attribute's value; `None` if it is absent.
    pub fn attribute(&self, name: &str) -> Option<&'a AttributeValue> {
        let found = self.node.attribute(name).map(|attribute| &attribute.value)?;
        // A reference to an attribute that the caller of a function omits is absent.
        (!matches!(found, AttributeValue::Reference { .. })).then_some(found)
    }

    /// An integer.
    ///
    /// # Errors
    /// When the attribute is of another kind, as for all below.
    pub fn int(&self, name: &str) -> Optional<i64> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Int(value)) => Ok(Some(*value)),
            Some(_) => Err(self.kind(name, "an integer")),
        }
    }

    /// An integer, or the default.
    ///
    /// # Errors
    /// As [`Context::int`].
    pub fn int_or(&self, name: &str, default: i64) -> Result<i64, LowerError> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// A float.
    ///
    /// # Errors
    /// As [`Context::int`].
    pub fn float(&self, name: &str) -> Optional<f32> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Float(value)) => Ok(Some(*value)),
            Some(_) => Err(self.kind(name, "a float")),
        }
    }

    /// A float, or the default.
    ///
    /// # Errors
    /// As [`Context::int`].
    pub fn float_or(&self, name: &str, default: f32) -> Result<f32, LowerError> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    /// A string.
    ///
    /// # Errors
    /// As [`Context::int`].
    pub fn string(&self, name: &str) -> Optional<String> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::String(value)) => {
                Ok(Some(String::from_utf8_lossy(value).into_owned()))
            }
            Some(_) => Err(self.kind(name, "a string")),
        }
    }

    /// A string as bytes, which need not be UTF-8.
    ///
    /// # Errors
    /// As [`Context::int`].
    pub fn bytes(&self, name: &str) -> Optional<Bytes> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::String(value)) => Ok(Some(value.clone())),
            Some(_) => Err(self.kind(name, "a string")),
        }
    }

    /// A list of strings as bytes, which need not be UTF-8.
    ///
    /// # Errors
    /// As [`Context::int`].
    pub fn texts(&self, name: &str) -> Optional<Vec<Bytes>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Strings(values)) => Ok(Some(values.clone())),
            Some(AttributeValue::Nothing) => Ok(Some(vec![])),
            Some(_) => Err(self.kind(name, "strings")),
        }
    }

    /// A string, or the default.
    ///
    /// # Errors
    /// As [`Context::int`].
    pub fn string_or(&self, name: &str, default: &str) -> Result<String, LowerError> {
        Ok(self.string(name)?.unwrap_or_else(|| default.to_owned()))
    }

    /// A list of integers.
    ///
    /// # Errors
    /// As [`Context::int`].
    pub fn ints(&self, name: &str) -> Optional<Vec<i64>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Ints(values)) => Ok(Some(values.clone())),
            Some(AttributeValue::Nothing) => Ok(Some(vec![])),
            Some(_) => Err(self.kind(name, "integers")),
        }
    }

    /// A list of floats.
    ///
    /// # Errors
    /// As [`Context::int`].
    pub fn floats(&self, name: &str) -> Optional<Vec<f32>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Floats(values)) => Ok(Some(values.clone())),
            Some(AttributeValue::Nothing) => Ok(Some(vec![])),
            Some(_) => Err(self.kind(name, "floats")),
        }
    }

    /// A list of strings.
    ///
    /// # Errors
    /// As [`Context::int`].
    pub fn strings(&self, name: &str) -> Optional<Vec<String>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Strings(values)) => {
                let text = |value: &Bytes| String::from_utf8_lossy(value).into_owned();
                Ok(Some(values.iter().map(text).collect()))
            }
            Some(AttributeValue::Nothing) => Ok(Some(vec![])),
            Some(_) => Err(self.kind(name, "strings")),
        }
    }

    /// A tensor.
    ///
    /// # Errors
    /// As [`Context::int`]; a tensor that cannot be represented at the tensor level.
    pub fn tensor(&self, name: &str) -> Optional<Constant> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Tensor(tensor)) => {
                let constant = tensor_of(tensor);
                constant
                    .map(Some)
                    .map_err(|error| LowerError::unsupported(format!("{name}: {error}")))
            }
            Some(_) => Err(self.kind(name, "a tensor")),
        }
    }

    /// A graph.
    ///
    /// # Errors
    /// As [`Context::int`].
    pub fn graph(&self, name: &str) -> Optional<&'a Graph> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Graph(graph)) => Ok(Some(graph)),
            Some(_) => Err(self.kind(name, "a graph")),
        }
    }

    /// The error for a missing attribute.
    pub fn missing(&self, name: &str) -> LowerError {
        LowerError::invalid(format!("the attribute `{name}` is missing"))
    }

    fn kind(&self, name: &str, expected: &str) -> LowerError {
        LowerError::invalid(format!("the attribute `{name}` is not {expected}"))
    }
}
