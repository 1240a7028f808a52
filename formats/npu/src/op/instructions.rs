//! The macro that defines instructions from rows: name in listings, engine, kind, fields with their keys.

macro_rules! instructions {
    ($($(#[$doc:meta])* $op:ident $name:literal $engine:ident $kind:ident {
        $($(#[$field_doc:meta])* $field:ident $key:literal: $type:ty,)*
    })+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq)]
            pub struct $op { $($(#[$field_doc])* pub $field: $type,)* }
        )+

        /// An operation of an instruction.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Op { $($(#[$doc])* $op($op),)+ }

        impl Op {
            /// Names of all instructions; the index of a name is its number in the binary encoding.
            pub const NAMES: &'static [&'static str] = &[$($name,)+];

            /// Name in listings.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$op(_) => $name,)+ }
            }

            /// The engine that runs it.
            pub fn engine(&self) -> Engine {
                match self { $(Self::$op(_) => Engine::$engine,)+ }
            }

            /// Whether it only writes registers; such instructions have no tokens.
            pub fn is_config(&self) -> bool {
                match self { $(Self::$op(_) => stringify!($kind) == "config",)+ }
            }

            /// Reads the fields from a listing; `None` if no instruction has the name.
            pub(crate) fn read(
                name: &str,
                fields: &mut Dict<'_, '_>,
            ) -> Option<Result<Self, BoxedDiagnostic>> {
                match name {
                    $($name => Some($op::read(fields).map(Self::$op)),)+
                    _ => None,
                }
            }

            /// The fields by key, in the order of listings.
            pub fn fields(&self) -> Vec<(&'static str, Value<'static>)> {
                match self {
                    $(Self::$op($op { $($field,)* }) => vec![$(($key, Field::value($field)),)*],)+
                }
            }

            /// Keys of the fields of the instruction with a name; `None` if there is none.
            pub fn keys(name: &str) -> Option<&'static [&'static str]> {
                match name {
                    $($name => Some(&[$($key,)*]),)+
                    _ => None,
                }
            }

            /// Appends the number of the instruction and its fields.
            pub(crate) fn encode(&self, out: &mut Vec<u8>) {
                let number = Self::NAMES.iter().position(|name| *name == self.name());
                out.push(number.expect("an instruction of the table") as u8);
                match self {
                    $(Self::$op($op { $($field,)* }) => { $(Field::encode($field, out);)* })+
                }
            }

            /// Decodes the output of [`Op::encode`].
            pub(crate) fn decode(bytes: &mut Bytes<'_>) -> Result<Self, Error> {
                let number = usize::from(bytes.byte()?);
                let op = match Self::NAMES.get(number).copied() {
                    $(Some($name) => Self::$op($op { $($field: Field::decode(bytes)?,)* }),)+
                    _ => return Err(bytes.error("unknown instruction number")),
                };
                match op.empty_field() {
                    Some(key) => Err(bytes.error(&empty(key))),
                    None => Ok(op),
                }
            }
        }

        $(impl $op {
            fn read(_fields: &mut Dict<'_, '_>) -> Result<Self, BoxedDiagnostic> {
                Ok(Self { $($field: _fields.take($key)?,)* })
            }
        })+

        $(impl From<$op> for Op {
            fn from(op: $op) -> Self {
                Self::$op(op)
            }
        })+
    };
}
