//! Discardable attributes by name, with the type of their value.
use crate::{attr, read};
use melior::{
    Context,
    ir::{
        Attribute, Identifier, OperationRef,
        attribute::{DictionaryAttribute, IntegerAttribute},
        operation::OperationLike,
    },
};
use std::marker::PhantomData;

/// A type of attribute values.
pub trait AttributeValue: Sized {
    /// The type in which a value is passed.
    type Given<'v>: Copy;
    /// The attribute of a value.
    fn encode<'c>(context: &'c Context, value: Self::Given<'_>) -> Attribute<'c>;
    /// The value of an attribute; `None` for attributes of other kinds.
    fn decode(attribute: Attribute<'_>) -> Option<Self>;
}

/// The name of an attribute, and the type of its value.
#[derive(Debug)]
pub struct Key<T> {
    name: &'static str,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T: AttributeValue> Key<T> {
    /// A key; names are `dialect.name`.
    pub const fn new(name: &'static str) -> Self {
        Self { name, value: PhantomData }
    }

    /// The attribute's name.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Whether an op has the attribute.
    pub fn is_on<'c: 'a, 'a>(self, op: &impl OperationLike<'c, 'a>) -> bool {
        op.has_attribute(self.name)
    }

    /// The value on an op; `None` if there is none of this type.
    pub fn read<'c: 'a, 'a>(self, op: &impl OperationLike<'c, 'a>) -> Option<T> {
        T::decode(read::attribute(op, self.name)?)
    }

    /// Sets the value on an op.
    pub fn write(self, op: OperationRef<'_, '_>, value: T::Given<'_>) {
        crate::set_attribute(op, self.name, T::encode(crate::context_of(&op), value));
    }

    /// Removes the attribute from an op.
    pub fn remove(self, op: OperationRef<'_, '_>) {
        crate::remove_attribute(op, self.name);
    }

    /// The value in a dictionary; `None` if there is none of this type.
    pub fn of<'c>(self, dictionary: impl Into<Option<DictionaryAttribute<'c>>>) -> Option<T> {
        T::decode(dictionary.into()?.element_by_name(self.name)?)
    }

    /// An entry of a dictionary.
    pub fn entry<'c>(
        self,
        context: &'c Context,
        value: T::Given<'_>,
    ) -> (Identifier<'c>, Attribute<'c>) {
        (Identifier::new(context, self.name), T::encode(context, value))
    }
}

/// `unit`, whose presence is the value.
impl AttributeValue for () {
    type Given<'v> = ();
    fn encode<'c>(context: &'c Context, (): ()) -> Attribute<'c> {
        attr::unit(context)
    }
    fn decode(_: Attribute<'_>) -> Option<Self> {
        Some(())
    }
}

/// A signless integer of 64 bits.
impl AttributeValue for i64 {
    type Given<'v> = i64;
    fn encode<'c>(context: &'c Context, value: i64) -> Attribute<'c> {
        attr::i64(context, value)
    }
    fn decode(attribute: Attribute<'_>) -> Option<Self> {
        Some(IntegerAttribute::try_from(attribute).ok()?.value())
    }
}

/// A string.
impl AttributeValue for String {
    type Given<'v> = &'v str;
    fn encode<'c>(context: &'c Context, value: &str) -> Attribute<'c> {
        attr::string(context, value)
    }
    fn decode(attribute: Attribute<'_>) -> Option<Self> {
        crate::string_value(attribute)
    }
}

/// `array<i64: ...>`.
impl AttributeValue for Vec<i64> {
    type Given<'v> = &'v [i64];
    fn encode<'c>(context: &'c Context, value: &[i64]) -> Attribute<'c> {
        attr::i64s(context, value)
    }
    fn decode(attribute: Attribute<'_>) -> Option<Self> {
        read::array_integers(attribute)
    }
}

/// An array of strings.
impl AttributeValue for Vec<String> {
    type Given<'v> = &'v [String];
    fn encode<'c>(context: &'c Context, value: &[String]) -> Attribute<'c> {
        let texts: Vec<_> = value.iter().map(|text| attr::string(context, text)).collect();
        attr::array(context, &texts)
    }
    fn decode(attribute: Attribute<'_>) -> Option<Self> {
        read::array_elements(attribute)?.into_iter().map(crate::string_value).collect()
    }
}

/// An array of `array<i64: ...>`.
impl AttributeValue for Vec<Vec<i64>> {
    type Given<'v> = &'v [Vec<i64>];
    fn encode<'c>(context: &'c Context, value: &[Vec<i64>]) -> Attribute<'c> {
        let lists: Vec<_> = value.iter().map(|list| attr::i64s(context, list)).collect();
        attr::array(context, &lists)
    }
    fn decode(attribute: Attribute<'_>) -> Option<Self> {
        read::array_elements(attribute)?.into_iter().map(read::array_integers).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a value to an op, reads it back, and reads it as another type.
    fn round_trip<T: AttributeValue + PartialEq + std::fmt::Debug>(value: T, given: T::Given<'_>) {
        let context = crate::new_context(&[]);
        let module = crate::parse_module(&context, "").expect("an empty module");
        let op = module.as_operation();
        let key = Key::<T>::new("test.key");
        assert_eq!((key.is_on(&op), key.read(&op)), (false, None));
        key.write(op, given);
        assert_eq!((key.is_on(&op), key.read(&op).as_ref()), (true, Some(&value)));
        key.remove(op);
        assert!(!key.is_on(&op));
        let dictionary = DictionaryAttribute::new(&context, &[key.entry(&context, given)]);
        assert_eq!((key.of(dictionary), key.of(None)), (Some(value), None));
    }

    #[test]
    fn every_type_comes_back() {
        round_trip((), ());
        round_trip(-3, -3);
        round_trip("a \"b\"".to_owned(), "a \"b\"");
        round_trip(vec![1, 2], &[1, 2]);
        round_trip(vec!["a".to_owned(), String::new()], &["a".to_owned(), String::new()]);
        round_trip(vec![vec![1], vec![]], &[vec![1], vec![]]);
    }

    #[test]
    fn a_value_of_another_type_is_none() {
        let context = crate::new_context(&[]);
        let module = crate::parse_module(&context, "").expect("an empty module");
        Key::<String>::new("test.key").write(module.as_operation(), "text");
        assert_eq!(Key::<i64>::new("test.key").read(&module.as_operation()), None);
        assert_eq!(Key::<Vec<String>>::new("test.key").read(&module.as_operation()), None);
    }
}
