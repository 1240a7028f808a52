//! The value of a name: a tensor, or a structure of tensors.

use irc_common_format::model;
use irc_tl::{Builder, Constant, Type, ValueId};
use std::collections::BTreeMap;

/// The value of a name. The structure of sequences and optionals is known when the model is
/// imported; at the tensor level there are only tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A tensor.
    Tensor(ValueId),
    /// A sequence of values.
    Sequence(Vec<Item>),
    /// An optional value.
    Optional(Option<Box<Item>>),
    /// A map, or a sequence of maps with the same keys.
    Map {
        /// Its keys: `[key]`.
        keys: ValueId,
        /// Its values, `[key]`, or those of each map of a sequence: `[map, key]`.
        values: ValueId,
    },
}

impl Item {
    /// The tensor, if it is one.
    pub fn tensor(&self) -> Option<ValueId> {
        match self {
            Self::Tensor(value) => Some(*value),
            Self::Sequence(_) | Self::Optional(_) | Self::Map { .. } => None,
        }
    }

    /// The kind, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tensor(_) => "a tensor",
            Self::Sequence(_) => "a sequence",
            Self::Optional(_) => "an optional",
            Self::Map { .. } => "a map",
        }
    }

    /// Its tensors, in order.
    pub fn tensors(&self) -> Vec<ValueId> {
        match self {
            Self::Tensor(value) => vec![*value],
            Self::Sequence(items) => items.iter().flat_map(Self::tensors).collect(),
            Self::Optional(item) => item.iter().flat_map(|item| item.tensors()).collect(),
            Self::Map { keys, values } => vec![*keys, *values],
        }
    }

    /// The same structure with other tensors.
    ///
    /// # Errors
    /// Those of `map`.
    pub fn map<E>(&self, map: &mut dyn FnMut(ValueId) -> Result<ValueId, E>) -> Result<Self, E> {
        Ok(match self {
            Self::Tensor(value) => Self::Tensor(map(*value)?),
            Self::Sequence(items) => {
                let items: Result<Vec<_>, E> = items.iter().map(|item| item.map(map)).collect();
                Self::Sequence(items?)
            }
            Self::Optional(None) => Self::Optional(None),
            Self::Optional(Some(item)) => Self::Optional(Some(Box::new(item.map(map)?))),
            Self::Map { keys, values } => Self::Map { keys: map(*keys)?, values: map(*values)? },
        })
    }

    /// Whether the structures are equal, disregarding the tensors.
    pub fn same_structure(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tensor(_), Self::Tensor(_)) | (Self::Map { .. }, Self::Map { .. }) => true,
            (Self::Sequence(items), Self::Sequence(others)) => {
                items.len() == others.len()
                    && items.iter().zip(others).all(|(item, other)| item.same_structure(other))
            }
            (Self::Optional(None), Self::Optional(None)) => true,
            (Self::Optional(Some(item)), Self::Optional(Some(other))) => item.same_structure(other),
            _ => false,
        }
    }

    /// The structure, with the types of its tensors.
    pub(crate) fn structure(&self, builder: &Builder) -> Structure {
        match self {
            Self::Tensor(value) => Structure::Tensor(builder.ty(*value).clone()),
            Self::Sequence(items) => {
                Structure::Sequence(items.iter().map(|item| item.structure(builder)).collect())
            }
            Self::Optional(item) => {
                Structure::Optional(item.as_ref().map(|item| Box::new(item.structure(builder))))
            }
            Self::Map { keys, values } => Structure::Map {
                keys: builder.ty(*keys).clone(),
                values: builder.ty(*values).clone(),
            },
        }
    }
}

/// How an input or output of a model is composed of tensors of its graph.
///
/// The tensors of a sequence `x` are named `x[0]`, `x[1]` and so on; that of an optional has the
/// name of the optional; those of a map `x` are named `x.keys` and `x.values`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Structure {
    /// One tensor.
    Tensor(Type),
    /// A sequence of values.
    Sequence(Vec<Structure>),
    /// An optional value.
    Optional(Option<Box<Structure>>),
    /// A map, or a sequence of maps with the same keys.
    Map {
        /// The type of its keys: `[key]`.
        keys: Type,
        /// The type of its values: `[key]`, or `[map, key]` for a sequence.
        values: Type,
    },
}

impl Structure {
    /// The names and types of the tensors of a value with this name, in order.
    pub fn flatten(&self, name: &str) -> Vec<(String, Type)> {
        match self {
            Self::Tensor(ty) => vec![(name.to_owned(), ty.clone())],
            Self::Sequence(items) => {
                let items = items.iter().enumerate();
                items.flat_map(|(index, item)| item.flatten(&format!("{name}[{index}]"))).collect()
            }
            Self::Optional(item) => item.iter().flat_map(|item| item.flatten(name)).collect(),
            Self::Map { keys, values } => vec![
                (format!("{name}.keys"), keys.clone()),
                (format!("{name}.values"), values.clone()),
            ],
        }
    }

    /// The structure of a value of type `ty` whose tensors have their names in `tensors`; `None` if it lacks
    /// some, or is a map, whose size stays open. A sequence ends before the first element without tensors.
    pub(crate) fn named(
        name: &str,
        ty: &model::Type,
        tensors: &BTreeMap<String, Constant>,
    ) -> Option<Self> {
        let starts = |prefix: String| {
            let next = tensors.range(prefix.clone()..).next();
            next.is_some_and(|(own, _)| own.starts_with(&prefix))
        };
        let has_parts = |name: &str| tensors.contains_key(name) || starts(format!("{name}["));
        match ty {
            model::Type::Tensor(_) => Some(Self::Tensor(tensors.get(name)?.ty.clone().into())),
            model::Type::Optional(_) if !has_parts(name) => Some(Self::Optional(None)),
            model::Type::Optional(inner) => {
                let inner = Self::named(name, inner.as_ref()?, tensors)?;
                Some(Self::Optional(Some(Box::new(inner))))
            }
            model::Type::Sequence(inner) => {
                let names = (0..).map(|index| format!("{name}[{index}]"));
                let names = names.take_while(|name| has_parts(name));
                let parts = names.map(|name| Self::named(&name, inner.as_ref()?, tensors));
                parts.collect::<Option<_>>().map(Self::Sequence)
            }
            _ => None,
        }
    }

    /// The structure, with tensors taken from `next` in order.
    pub(crate) fn build(&self, next: &mut dyn FnMut() -> ValueId) -> Item {
        match self {
            Self::Tensor(_) => Item::Tensor(next()),
            Self::Sequence(items) => {
                Item::Sequence(items.iter().map(|item| item.build(next)).collect())
            }
            Self::Optional(item) => {
                Item::Optional(item.as_ref().map(|item| Box::new(item.build(next))))
            }
            Self::Map { .. } => Item::Map { keys: next(), values: next() },
        }
    }
}

/// Whether a tensor is a value, or a part of it: `x`, `x[0]`, `x[0][1]`, `x.keys`.
pub fn is_part(tensor: &str, value: &str) -> bool {
    let rest = tensor.strip_prefix(value);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('[') || rest.starts_with('.'))
}
