//! Structs that represent objects of a file: a table of fields defines the struct, its reader and its
//! writer, so that they stay consistent.

use std::collections::HashMap;
use std::sync::Arc;

use irc_json::{At, Json, Member, Node, Number, Reader, Value};

/// A value of a key that can be read and written.
pub(crate) trait Field: Sized {
    /// Reads the value; `None` after a diagnostic.
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self>;

    /// The value to write; `None` if the key is omitted.
    fn write(&self) -> Option<Json>;

    /// The default for an absent key; `None` if the key is required.
    fn absent() -> Option<Self> {
        None
    }
}

/// Parts of an object that are not fields of its struct: unknown keys, and the
/// order of its keys if they are not sorted. Both are preserved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extra(Option<Box<ExtraKeys>>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct ExtraKeys {
    unknown: Vec<(Box<str>, Json)>,
    order: Vec<Box<str>>,
}

impl Extra {
    /// The extra of an object with these members and unknown keys.
    pub(crate) fn new(members: &[Member<'_>], unknown: Vec<(Box<str>, Json)>) -> Extra {
        let is_sorted = members.is_sorted_by(|a, b| a.key <= b.key);
        if is_sorted && unknown.is_empty() {
            return Extra(None);
        }
        let key = |member: &Member<'_>| member.key.as_ref().into();
        let order = if is_sorted { vec![] } else { members.iter().map(key).collect() };
        Extra(Some(Box::new(ExtraKeys { unknown, order })))
    }

    /// Unknown keys, with their values.
    pub fn unknown(&self) -> &[(Box<str>, Json)] {
        self.0.as_ref().map_or(&[], |beside| &beside.unknown)
    }

    /// Keys in the order written; empty when they are sorted.
    pub fn order(&self) -> &[Box<str>] {
        self.0.as_ref().map_or(&[], |beside| &beside.order)
    }

    /// An object of these members and the unknown ones, in the order of the file: sorted by
    /// default, with members that the order does not name at the end.
    pub(crate) fn object(&self, mut members: Vec<(Box<str>, Json)>) -> Json {
        members.extend(self.unknown().iter().cloned());
        if self.order().is_empty() {
            members.sort_by(|a, b| a.0.cmp(&b.0));
            return Json::Object(members);
        }
        let places: HashMap<&str, usize> =
            self.order().iter().enumerate().map(|(place, key)| (&**key, place)).collect();
        members.sort_by_key(|(key, _)| places.get(&**key).copied().unwrap_or(usize::MAX));
        Json::Object(members)
    }
}

/// Defines structs that represent objects of a file. A key has the name of its field unless another is
/// given before it.
macro_rules! record {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$field_meta:meta])* $($key:literal as)? $field:ident: $kind:ty,)*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $kind,)*
            /// Unknown keys, and the order of keys.
            pub extra: crate::record::Extra,
        }

        impl $name {
            /// Its keys.
            pub(crate) const KEYS: &'static [&'static str] =
                &[$(crate::record::key!($($key)? $field)),*];
        }

        impl crate::record::Field for $name {
            fn read(
                reader: &mut irc_json::Reader<'_>,
                node: &irc_json::Node<'_>,
                at: &irc_json::At<'_>,
            ) -> Option<Self> {
                let object = reader.object(node, at)?;
                $(let mut $field: Option<Option<$kind>> = None;)*
                let mut unknown = vec![];
                for member in object.members {
                    let key: &str = &member.key;
                    $(if key == crate::record::key!($($key)? $field) {
                        let read = <$kind as crate::record::Field>::read;
                        $field = Some(read(reader, &member.value, &at.key(key)));
                        continue;
                    })*
                    crate::read::unknown(reader, member, at, Self::KEYS);
                    unknown.push((key.into(), irc_json::Json::of(&member.value)));
                }
                $(let $field = $field.unwrap_or_else(|| {
                    let absent = <$kind as crate::record::Field>::absent();
                    if absent.is_none() {
                        reader.missing(&object, crate::record::key!($($key)? $field));
                    }
                    absent
                });)*
                let extra = crate::record::Extra::new(object.members, unknown);
                Some(Self { $($field: $field?,)* extra })
            }

            fn write(&self) -> Option<irc_json::Json> {
                let mut members: Vec<(Box<str>, irc_json::Json)> = vec![];
                $(if let Some(value) = crate::record::Field::write(&self.$field) {
                    members.push((crate::record::key!($($key)? $field).into(), value));
                })*
                Some(self.extra.object(members))
            }
        }
    )*};
}

/// The key of a field.
macro_rules! key {
    ($key:literal $field:ident) => {
        $key
    };
    ($field:ident) => {
        stringify!($field)
    };
}

/// Defines enums whose variants have names in a file.
macro_rules! names {
    ($(
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $name {
            /// All variants.
            pub const NAMES: &'static [&'static str] = &[$($text),*];

            /// Name in a file.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// The variant with a name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text => Some($name::$variant),)*
                    _ => None,
                }
            }
        }

        impl crate::record::Field for $name {
            fn read(
                reader: &mut irc_json::Reader<'_>,
                node: &irc_json::Node<'_>,
                at: &irc_json::At<'_>,
            ) -> Option<Self> {
                let name = reader.string(node, at)?;
                let found = Self::from_name(name);
                if found.is_none() {
                    crate::record::unknown_name(reader, name, Self::NAMES, (node, at));
                }
                found
            }

            fn write(&self) -> Option<irc_json::Json> {
                Some(irc_json::Json::String(self.name().into()))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    )*};
}

pub(crate) use {key, names, record};

/// Reports an unknown name.
pub(crate) fn unknown_name(
    reader: &mut Reader<'_>,
    name: &str,
    names: &[&str],
    (node, at): (&Node<'_>, &At<'_>),
) {
    let message = format!("unknown name `{}`", irc_diag::clip(name));
    let mut diagnostic = irc_diag::Diagnostic::error("gem-unknown-name", message);
    diagnostic = match irc_diag::nearest(name, names.iter().copied()) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic.help(format!("expected one of {}", names.join(", "))),
    };
    reader.report(diagnostic, node.span(), at, "unknown name");
}

impl<T: Field> Field for Option<T> {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        T::read(reader, node, at).map(Some)
    }

    fn write(&self) -> Option<Json> {
        self.as_ref().and_then(T::write)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

/// A value that may be `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nullable<T>(pub Option<T>);

impl<T: Field> Field for Nullable<T> {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        match node.value {
            Value::Null => Some(Nullable(None)),
            _ => T::read(reader, node, at).map(|value| Nullable(Some(value))),
        }
    }

    fn write(&self) -> Option<Json> {
        self.0.as_ref().map_or(Some(Json::Null), T::write)
    }
}

impl<T: Field> Field for Vec<T> {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        reader.list(node, at, T::read)
    }

    fn write(&self) -> Option<Json> {
        Some(Json::Array(self.iter().filter_map(T::write).collect()))
    }
}

impl<T: Field, const N: usize> Field for [T; N] {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        if !matches!(&node.value, Value::Array(elements) if elements.len() == N) {
            reader.wrong_type(&format!("an array of {N}"), node, at);
            return None;
        }
        Vec::read(reader, node, at)?.try_into().ok()
    }

    fn write(&self) -> Option<Json> {
        Some(Json::Array(self.iter().filter_map(T::write).collect()))
    }
}

impl Field for i64 {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        crate::read::integer(reader, node, at)
    }

    fn write(&self) -> Option<Json> {
        Some(Json::Int(*self))
    }
}

impl Field for bool {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        reader.boolean(node, at)
    }

    fn write(&self) -> Option<Json> {
        Some(Json::Bool(*self))
    }
}

impl Field for String {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        reader.string(node, at).map(str::to_owned)
    }

    fn write(&self) -> Option<Json> {
        Some(Json::String(self.as_str().into()))
    }
}

/// A text that many values share.
impl Field for Arc<str> {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        reader.string(node, at).map(Arc::from)
    }

    fn write(&self) -> Option<Json> {
        Some(Json::String((**self).into()))
    }
}

impl Field for Number {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        let number = Number::of(node);
        if number.is_none() {
            reader.wrong_type("a number", node, at);
        }
        number
    }

    fn write(&self) -> Option<Json> {
        Some(self.clone().into())
    }
}

/// Any value, for keys whose type varies between files.
impl Field for Json {
    fn read(_: &mut Reader<'_>, node: &Node<'_>, _: &At<'_>) -> Option<Self> {
        Some(Json::of(node))
    }

    fn write(&self) -> Option<Json> {
        Some(self.clone())
    }
}
