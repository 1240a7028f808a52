//! Attribute constructors.
use melior::{
    Context,
    ir::{
        Attribute, Identifier, Type,
        attribute::{
            ArrayAttribute, BoolAttribute, DenseI64ArrayAttribute, DictionaryAttribute,
            FlatSymbolRefAttribute, FloatAttribute, IntegerAttribute, StringAttribute,
            TypeAttribute,
        },
        r#type::IntegerType,
    },
};

/// A string.
pub fn string<'c>(context: &'c Context, text: &str) -> Attribute<'c> {
    StringAttribute::new(context, text).into()
}
/// An `i64`.
pub fn i64(context: &Context, value: i64) -> Attribute<'_> {
    IntegerAttribute::new(IntegerType::new(context, 64).into(), value).into()
}
/// An `i32`.
pub fn i32(context: &Context, value: i32) -> Attribute<'_> {
    IntegerAttribute::new(IntegerType::new(context, 32).into(), i64::from(value)).into()
}
/// An `index`.
pub fn index(context: &Context, value: i64) -> Attribute<'_> {
    IntegerAttribute::new(Type::index(context), value).into()
}
/// A boolean.
pub fn bool(context: &Context, value: bool) -> Attribute<'_> {
    BoolAttribute::new(context, value).into()
}
/// A float of the given type.
pub fn float<'c>(context: &'c Context, ty: Type<'c>, value: f64) -> Attribute<'c> {
    FloatAttribute::new(context, ty, value).into()
}
/// `array<i64: ...>`.
pub fn i64s<'c>(context: &'c Context, values: &[i64]) -> Attribute<'c> {
    DenseI64ArrayAttribute::new(context, values).into()
}
/// `array<i8: ...>`.
pub fn bytes<'c>(context: &'c Context, bytes: &[u8]) -> Attribute<'c> {
    let values = bytes.as_ptr().cast();
    // Safety: the context copies as many bytes as there are.
    unsafe {
        let raw = mlir_sys::mlirDenseI8ArrayGet(context.to_raw(), bytes.len() as isize, values);
        Attribute::from_raw(raw)
    }
}
/// An array.
pub fn array<'c>(context: &'c Context, values: &[Attribute<'c>]) -> Attribute<'c> {
    ArrayAttribute::new(context, values).into()
}
/// `@name`.
pub fn symbol<'c>(context: &'c Context, name: &str) -> Attribute<'c> {
    FlatSymbolRefAttribute::new(context, name).into()
}
/// A dictionary, in any order.
pub fn dictionary<'c>(
    context: &'c Context,
    entries: &[(Identifier<'c>, Attribute<'c>)],
) -> Attribute<'c> {
    DictionaryAttribute::new(context, entries).into()
}
/// A type as an attribute.
pub fn ty(ty: Type<'_>) -> Attribute<'_> {
    TypeAttribute::new(ty).into()
}
/// `unit`.
pub fn unit(context: &Context) -> Attribute<'_> {
    Attribute::unit(context)
}
/// Parses any attribute's text.
///
/// # Panics
/// When the text is not an attribute.
pub fn parse<'c>(context: &'c Context, text: &str) -> Attribute<'c> {
    Attribute::parse(context, text).unwrap_or_else(|| panic!("not an attribute: {text}"))
}
