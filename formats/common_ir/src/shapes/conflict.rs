//! Conflicts between shapes, with their locations.

use std::fmt;

use super::ShapePair;
use crate::model::{Dim, Shape};

/// Shapes that can never be equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The kind of conflict.
    pub kind: Kind,
    /// The first site; `None` if one site is invalid by itself.
    pub first: Option<Place>,
    /// The site that contradicts it.
    pub second: Place,
}

/// The kind of conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Another number of dimensions.
    Rank,
    /// Fewer dimensions than there are extents beside the wildcards.
    TooFew {
        /// Minimum number.
        least: usize,
    },
    /// Two numbers.
    Number {
        /// The declared extent.
        declared: Dim,
        /// The actual extent.
        actual: Dim,
    },
    /// A variable with two extents.
    Variable {
        /// Its name.
        name: String,
        /// Its extent at the first site.
        first: Dim,
        /// Its extent at the second.
        second: Dim,
    },
    /// A named wildcard with two lists of extents.
    Wildcard {
        /// Its name.
        name: String,
        /// The extents at the first site.
        first: Shape,
        /// The extents at the second.
        second: Shape,
    },
}

/// An owned [`ShapePair`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Name of the formal parameter.
    pub parameter: String,
    /// Name of the argument.
    pub value: String,
    /// The declared shape.
    pub declared: Shape,
    /// The actual shape.
    pub actual: Shape,
}

impl Place {
    fn new(site: &ShapePair<'_>) -> Self {
        Self {
            parameter: site.parameter.to_owned(),
            value: site.value.to_owned(),
            declared: site.declared.clone(),
            actual: site.actual.clone(),
        }
    }
}

impl Conflict {
    pub(super) fn new(
        kind: Kind,
        first: Option<&ShapePair<'_>>,
        second: Option<&ShapePair<'_>>,
    ) -> Self {
        let second = second.map(Place::new).unwrap_or_default();
        Self { kind, first: first.map(Place::new), second }
    }

    /// Whether one of the shapes has a wildcard.
    pub fn has_wildcard(&self) -> bool {
        let is_wild =
            |place: &Place| place.declared.dims.iter().any(|dim| matches!(dim, Dim::Wildcard(_)));
        self.first.iter().any(is_wild) || is_wild(&self.second)
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.first.as_ref().unwrap_or(&self.second);
        let (at, rank) = (&self.second, self.second.actual.dims.len());
        match &self.kind {
            Kind::Rank => {
                let expected = at.declared.dims.len();
                write!(f, "{at}: expected {expected} dimensions, found {rank}")
            }
            Kind::TooFew { least } => {
                write!(f, "{at}: expected {least} or more dimensions, found {rank}")
            }
            Kind::Number { declared, actual } => write!(f, "{at}: {actual}, expected {declared}"),
            Kind::Variable { name, first: a, second: b } => {
                write!(f, "`{name}` is {a} by {first}, but {b} by {at}")
            }
            Kind::Wildcard { name, first: a, second: b } => {
                write!(f, "`{name}*` is {a} by {first}, but {b} by {at}")
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parameter, value, declared, actual } = self;
        write!(f, "`{parameter}`, declared {declared} and given `{value}` of shape {actual}")
    }
}
