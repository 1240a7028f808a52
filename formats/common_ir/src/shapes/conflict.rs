//! Why shapes cannot be the same, with the places that say so.

use std::fmt;

use super::ShapePair;
use crate::model::{Dim, Shape};

/// Shapes that can never be the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// In what way.
    pub kind: Kind,
    /// The site that said something first; `None` when one site is wrong by itself.
    pub first: Option<Place>,
    /// The site that says something else.
    pub second: Place,
}

/// In what way shapes are not the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Another number of dimensions.
    Rank,
    /// Fewer dimensions than there are sizes beside the wildcards.
    TooFew {
        /// How many there must be.
        least: usize,
    },
    /// Two numbers.
    Number {
        /// The declared size.
        declared: Dim,
        /// The size that is there.
        actual: Dim,
    },
    /// A variable with two sizes.
    Variable {
        /// Its name.
        name: String,
        /// Its size at the first site.
        first: Dim,
        /// Its size at the second.
        second: Dim,
    },
    /// A named wildcard with two lists of sizes.
    Wildcard {
        /// Its name.
        name: String,
        /// The sizes at the first site.
        first: Shape,
        /// The sizes at the second.
        second: Shape,
    },
}

/// A [`ShapePair`] of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Name of the formal parameter.
    pub parameter: String,
    /// Name of the value that is there.
    pub value: String,
    /// The declared shape.
    pub declared: Shape,
    /// The shape that is there.
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

    /// Whether a shape that takes part has a wildcard.
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
                write!(f, "{at}: {rank} dimensions, expected {expected}")
            }
            Kind::TooFew { least } => {
                write!(f, "{at}: {rank} dimensions, expected {least} or more")
            }
            Kind::Number { declared, actual } => write!(f, "{at}: {actual}, expected {declared}"),
            Kind::Variable { name, first: a, second: b } => {
                write!(f, "`{name}` is {a} by {first}, yet {b} by {at}")
            }
            Kind::Wildcard { name, first: a, second: b } => {
                write!(f, "`{name}*` is {a} by {first}, yet {b} by {at}")
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
