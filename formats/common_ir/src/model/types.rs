//! Types of values, and shapes with variables and wildcards.

use std::fmt;

use super::ElementType;

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A dense tensor.
    Tensor(TensorType),
    /// A sparse tensor.
    Sparse(TensorType),
    /// A sequence; the type of its elements may be unknown.
    Sequence(Option<Box<Type>>),
    /// A map; the type of its values may be unknown.
    Map {
        /// Type of the keys.
        key: ElementType,
        /// Type of the values; in Common IR a tensor without shape.
        value: Option<Box<Type>>,
    },
    /// A value that may be absent; its type may be unknown.
    Optional(Option<Box<Type>>),
    /// A tuple of values with given types.
    Tuple(Vec<Type>),
    /// A number that refers to an external object.
    Handle,
    /// A type defined by its domain.
    Opaque {
        /// The domain.
        domain: String,
        /// The name in that domain.
        name: String,
    },
}

/// Element type and shape of a tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Type of the elements.
    pub element: ElementType,
    /// The shape; `None` if the rank is unknown.
    pub shape: Option<Shape>,
}

impl Type {
    /// A dense tensor with that shape.
    pub fn tensor<D: Into<Dim>>(element: ElementType, dims: impl IntoIterator<Item = D>) -> Self {
        Self::Tensor(TensorType { element, shape: Some(Shape::new(dims)) })
    }

    /// A dense tensor of unknown rank.
    pub fn unranked(element: ElementType) -> Self {
        Self::Tensor(TensorType { element, shape: None })
    }

    /// The tensor type, dense or sparse.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Self::Tensor(tensor) | Self::Sparse(tensor) => Some(tensor),
            _ => None,
        }
    }
}

/// The extents of a tensor; a wildcard matches any number of dimensions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The extents; empty for a scalar.
    pub dims: Vec<Dim>,
    /// The meaning of each dimension, in ONNX's terms (`DATA_BATCH`); empty if none is given.
    pub denotations: Vec<Option<String>>,
}

impl Shape {
    /// A shape of numbers, or of texts as parsed by [`Dim::from`].
    pub fn new<D: Into<Dim>>(dims: impl IntoIterator<Item = D>) -> Self {
        Self { dims: dims.into_iter().map(Into::into).collect(), denotations: vec![] }
    }
}

/// One dimension of a shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A number; files may hold negative ones.
    Size(i64),
    /// A variable. Any text: whether it is an identifier is checked elsewhere.
    Variable(String),
    /// Any number of dimensions; equal names match equal lists of extents.
    Wildcard(Option<String>),
    /// Unspecified.
    Unknown,
}

impl From<i64> for Dim {
    fn from(size: i64) -> Self {
        Self::Size(size)
    }
}

impl From<&str> for Dim {
    /// Parses `*`, `m*` with an identifier before the star, a variable, or an empty text. A number is a
    /// variable here, as in a file.
    fn from(text: &str) -> Self {
        match text.strip_suffix('*') {
            _ if text.is_empty() => Self::Unknown,
            Some("") => Self::Wildcard(None),
            Some(name) if is_identifier(name) => Self::Wildcard(Some(name.into())),
            _ => Self::Variable(text.into()),
        }
    }
}

impl Dim {
    /// The text of an extent that is not a number, as in a file.
    pub fn parameter(&self) -> Option<String> {
        match self {
            Self::Size(_) | Self::Unknown => None,
            Self::Variable(name) => Some(name.clone()),
            Self::Wildcard(name) => Some(format!("{}*", name.as_deref().unwrap_or_default())),
        }
    }
}

/// Whether a name is an identifier of C.
pub fn is_identifier(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => write!(f, "{size}"),
            Self::Unknown => f.write_str("?"),
            Self::Variable(name) => f.write_str(name),
            Self::Wildcard(name) => write!(f, "{}*", name.as_deref().unwrap_or_default()),
        }
    }
}

impl fmt::Display for Shape {
    /// `[n,m*,4]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.dims.iter().map(Dim::to_string).collect();
        write!(f, "[{}]", dims.join(","))
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.element)?;
        self.shape.as_ref().map_or(Ok(()), |shape| shape.fmt(f))
    }
}

impl fmt::Display for Type {
    /// Common IR's own notation, with shapes: `map(string,float)`, `seq(float[N,4])`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |of: &Option<Box<Type>>| of.as_ref().map_or("?".into(), |of| of.to_string());
        match self {
            Self::Tensor(tensor) => tensor.fmt(f),
            Self::Sparse(tensor) => write!(f, "sparse({tensor})"),
            Self::Sequence(element) => write!(f, "seq({})", part(element)),
            Self::Map { key, value } => write!(f, "map({key},{})", part(value)),
            Self::Optional(of) => write!(f, "optional({})", part(of)),
            Self::Tuple(types) => {
                let types: Vec<String> = types.iter().map(Type::to_string).collect();
                write!(f, "tuple({})", types.join(","))
            }
            Self::Handle => f.write_str("handle"),
            Self::Opaque { domain, name } => write!(f, "opaque({domain},{name})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_distinguished() {
        assert_eq!(Dim::from("*"), Dim::Wildcard(None));
        assert_eq!(Dim::from("m*"), Dim::Wildcard(Some("m".into())));
        for variable in ["n", "2n", "**", "n*m", "2*"] {
            assert_eq!(Dim::from(variable), Dim::Variable(variable.into()));
            assert_eq!(Dim::from(variable).parameter().as_deref(), Some(variable));
        }
        assert_eq!(Dim::from(""), Dim::Unknown);
    }

    #[test]
    fn types_print_in_the_notation_of_the_format() {
        let value = Some(Box::new(Type::tensor(ElementType::Float, ["n", "m*"])));
        let map = Type::Map { key: ElementType::String, value };
        assert_eq!(Type::Sequence(Some(Box::new(map))).to_string(), "seq(map(string,float[n,m*]))");
    }
}
