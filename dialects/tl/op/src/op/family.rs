//! Tables of functions of numbers: each row defines an op.

use super::{Attributes, Law, Op, Row};
use crate::{DType, TensorType};

/// A row of a table: the op and its function of numbers.
#[derive(Debug)]
pub(crate) struct Function<F, I> {
    /// The op.
    pub(crate) row: Row,
    /// The accepted element types.
    pub(crate) takes: Takes,
    /// The value for floats, before rounding to their type.
    pub(crate) float: F,
    /// The value for integers, before wrapping around; for a `bool`, 0 or 1.
    pub(crate) integer: I,
}

/// The element types that a function accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Floats,
    F32,
    Numbers,
    Integers,
    IntegersAndBool,
}

impl Takes {
    /// As a phrase.
    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Floats => "a float",
            Self::F32 => "an f32",
            Self::Numbers => "a float or integer",
            Self::Integers => "an integer",
            Self::IntegersAndBool => "an integer or bool",
        }
    }

    pub(crate) const fn takes(self, dtype: DType) -> bool {
        match self {
            Self::Floats => dtype.is_float(),
            Self::F32 => matches!(dtype, DType::F32),
            Self::Numbers => dtype.is_float() || dtype.is_integer(),
            Self::Integers => dtype.is_integer(),
            Self::IntegersAndBool => dtype.is_integer() || matches!(dtype, DType::Bool),
        }
    }
}

impl<F: Copy, I: Copy> Function<F, I> {
    /// See [`Row::work`].
    pub(crate) const fn work(mut self, work: u64) -> Self {
        self.row.work = work;
        self
    }

    /// See [`Row::law`].
    pub(crate) const fn law(mut self, law: Law) -> Self {
        self.row.law = Some(law);
        self
    }

    /// See [`Row::description`].
    pub(crate) const fn about(mut self, description: &'static str) -> Self {
        self.row.description = description;
        self
    }

    /// Sets the accepted element types.
    pub(crate) const fn of(mut self, takes: Takes) -> Self {
        self.takes = takes;
        self
    }

    /// The row of an op.
    pub(crate) const fn named(
        mut self,
        name: &'static str,
        summary: &'static str,
        read: fn(&Attributes<'_>) -> Result<Op, String>,
        example: fn() -> (Op, Vec<TensorType>),
    ) -> Self {
        self.row = Row { name, summary, read, example, ..self.row };
        self
    }
}

/// Defines the enum of a family and its table from rows `Variant "name" "summary": function`. `$read`
/// creates the op of a member from its attributes, `$example` one with types of operands.
macro_rules! family {
    ($(#[$meta:meta])* $family:ident of $function:ty, $read:ident, $example:ident {
        $($variant:ident $name:literal $summary:literal: $value:expr),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $family { $(#[doc = $summary] $variant),* }

        static TABLE: [$function; $family::ALL.len()] = [$($value.named(
            $name,
            $summary,
            |attributes| $read($family::$variant, attributes),
            || $example($family::$variant),
        )),*];

        impl $family {
            /// All members.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            const fn function(self) -> &'static $function {
                &TABLE[self as usize]
            }

            /// The op's row.
            pub const fn row(self) -> &'static Row {
                &self.function().row
            }

            /// The name in the IR.
            pub const fn name(self) -> &'static str {
                self.row().name
            }

            /// The member with a name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|known| known.name() == name)
            }
        }

        pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
            TABLE.iter().map(|function| &function.row)
        }
    };
}
pub(crate) use family;
