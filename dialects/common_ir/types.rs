//! Conversion between types of the format and types of MLIR.
//!
//! The C API has no accessors for our types, so they are built and parsed as text, whose syntax the ODS
//! assembly format defines.
use irc_common_format::model::{Dim, ElementType, Shape, TensorType, Type};
use irc_mlir::{
    Attribute, AttributeLike, Context, TypeLike, attr, melior::ir::r#type::TupleType, read,
    string_value, ty,
};
use std::collections::HashMap;

/// Element types with a type in MLIR or the dialect, and its text. `i32` is signed.
const ELEMENTS: [(ElementType, &str); 28] = [
    (ElementType::Float, "f32"),
    (ElementType::Uint8, "ui8"),
    (ElementType::Int8, "i8"),
    (ElementType::Uint16, "ui16"),
    (ElementType::Int16, "i16"),
    (ElementType::Int32, "i32"),
    (ElementType::Int64, "i64"),
    (ElementType::String, "!common_ir.string"),
    (ElementType::Bool, "i1"),
    (ElementType::Float16, "f16"),
    (ElementType::Double, "f64"),
    (ElementType::Uint32, "ui32"),
    (ElementType::Uint64, "ui64"),
    (ElementType::Complex64, "complex<f32>"),
    (ElementType::Complex128, "complex<f64>"),
    (ElementType::Bfloat16, "bf16"),
    (ElementType::Float8E4M3Fn, "f8E4M3FN"),
    (ElementType::Float8E4M3Fnuz, "f8E4M3FNUZ"),
    (ElementType::Float8E5M2, "f8E5M2"),
    (ElementType::Float8E5M2Fnuz, "f8E5M2FNUZ"),
    (ElementType::Uint4, "ui4"),
    (ElementType::Int4, "i4"),
    (ElementType::Float4E2M1, "f4E2M1FN"),
    (ElementType::Float8E8M0, "f8E8M0FNU"),
    (ElementType::Uint2, "ui2"),
    (ElementType::Int2, "i2"),
    (ElementType::Float6E2M3, "f6E2M3FN"),
    (ElementType::Float6E3M2, "f6E3M2FN"),
];

const UNDECLARED: &str = "!common_ir.undeclared";

/// The types of a context, each built and parsed once.
pub(super) struct Types<'c> {
    pub context: &'c Context,
    made: HashMap<Type, irc_mlir::Type<'c>>,
    read: HashMap<usize, Option<Type>>,
}

impl<'c> Types<'c> {
    pub fn new(context: &'c Context) -> Self {
        Self { context, made: HashMap::new(), read: HashMap::new() }
    }

    /// The type of MLIR; `!common_ir.undeclared` for `None`.
    pub fn mlir(&mut self, of: Option<&Type>) -> irc_mlir::Type<'c> {
        let Some(of) = of else { return ty::parse(self.context, UNDECLARED) };
        if let Some(known) = self.made.get(of) {
            return *known;
        }
        let made = ty::parse(self.context, &text(self.context, of));
        self.made.insert(of.clone(), made);
        made
    }

    /// The type of a tensor with those extents.
    pub fn tensor(&mut self, element: ElementType, dims: &[i64]) -> irc_mlir::Type<'c> {
        self.mlir(Some(&Type::tensor(element, dims.iter().copied())))
    }

    /// The type that a type of MLIR represents, `None` for `!common_ir.undeclared`.
    ///
    /// # Errors
    /// A type that represents none.
    pub fn of_mlir(&mut self, of: irc_mlir::Type<'c>) -> Result<Option<Type>, String> {
        let key = of.to_raw().ptr as usize;
        if let Some(known) = self.read.get(&key) {
            return Ok(known.clone());
        }
        let found = parse(self.context, of)?;
        self.read.insert(key, found.clone());
        Ok(found)
    }
}

/// A shape as `#common_ir.dims`.
pub(super) fn dims_attr<'c>(context: &'c Context, shape: &Shape) -> Attribute<'c> {
    attr::parse(context, &dims_text(context, shape))
}

/// The shape of `#common_ir.dims`.
///
/// # Errors
/// Another attribute.
pub(super) fn shape_of(context: &Context, attribute: Attribute<'_>) -> Result<Shape, String> {
    let expected = || format!("expected #common_ir.dims<...>, found {attribute}");
    let text = attribute.to_string();
    let inner = text.strip_prefix("#common_ir.dims<").and_then(|rest| rest.strip_suffix('>'));
    let lists = Attribute::parse(context, &format!("[{}]", inner.ok_or_else(expected)?));
    let lists = lists.and_then(read::array_elements).ok_or_else(expected)?;
    let mut lists = lists.into_iter().map(read::array_elements);
    let dims = lists.next().flatten().ok_or_else(expected)?;
    let denotations = lists.next().flatten().unwrap_or_default();
    let dims = dims.into_iter().map(|dim| size_of(dim).ok_or_else(expected));
    Ok(Shape {
        dims: dims.collect::<Result<_, _>>()?,
        denotations: denotations.into_iter().map(string_value).collect(),
    })
}

fn size_of(attribute: Attribute<'_>) -> Option<Dim> {
    if let Some(size) = super::read::integer(attribute) {
        return Some(Dim::Size(size));
    }
    if attribute.is_unit() {
        return Some(Dim::Unknown);
    }
    string_value(attribute).map(|text| Dim::from(text.as_str()))
}

fn dims_text(context: &Context, shape: &Shape) -> String {
    let quoted = |text: &str| attr::string(context, text).to_string();
    let dim = |dim: &Dim| match dim {
        Dim::Size(size) => size.to_string(),
        other => other.parameter().map_or_else(|| "unit".to_owned(), |text| quoted(&text)),
    };
    let dims: Vec<String> = shape.dims.iter().map(dim).collect();
    let denoted = |text: &Option<String>| text.as_deref().map_or_else(|| "unit".to_owned(), quoted);
    let denotations: Vec<String> = shape.denotations.iter().map(denoted).collect();
    let denotations = match &denotations[..] {
        [] => String::new(),
        some => format!(", [{}]", some.join(", ")),
    };
    format!("#common_ir.dims<[{}]{denotations}>", dims.join(", "))
}

fn element_text(element: ElementType) -> String {
    let known = ELEMENTS.iter().find(|(known, _)| *known == element);
    known.map_or_else(
        || format!("!common_ir.element<{}>", element.number()),
        |(_, text)| (*text).to_owned(),
    )
}

fn element_of(text: &str) -> Result<ElementType, String> {
    if let Some((element, _)) = ELEMENTS.iter().find(|(_, known)| *known == text) {
        return Ok(*element);
    }
    let number = text.strip_prefix("!common_ir.element<").and_then(|rest| rest.strip_suffix('>'));
    let number = number.and_then(|number| number.parse().ok()).map(ElementType::from_number);
    number.ok_or_else(|| format!("expected the type of an element, found {text}"))
}

fn text(context: &Context, of: &Type) -> String {
    let inner = |of: &Option<Box<Type>>| {
        of.as_ref().map_or_else(|| UNDECLARED.to_owned(), |of| text(context, of))
    };
    let quoted = |text: &str| attr::string(context, text).to_string();
    match of {
        Type::Tensor(tensor) => tensor_text(context, tensor),
        Type::Sparse(tensor) => format!("!common_ir.sparse<{}>", tensor_text(context, tensor)),
        Type::Sequence(element) => format!("!common_ir.sequence<{}>", inner(element)),
        Type::Optional(element) => format!("!common_ir.optional<{}>", inner(element)),
        Type::Map { key, value } => {
            format!("!common_ir.map<{}, {}>", element_text(*key), inner(value))
        }
        Type::Tuple(types) => {
            let types: Vec<String> = types.iter().map(|of| text(context, of)).collect();
            format!("tuple<{}>", types.join(", "))
        }
        Type::Handle => "!common_ir.handle".to_owned(),
        Type::Opaque { domain, name } => {
            format!("!common_ir.opaque<{}, {}>", quoted(domain), quoted(name))
        }
    }
}

fn tensor_text(context: &Context, tensor: &TensorType) -> String {
    let element = element_text(tensor.element);
    let Some(shape) = &tensor.shape else { return format!("tensor<*x{element}>") };
    let is_builtin = |dim: &Dim| !matches!(dim, Dim::Wildcard(_)) && !matches!(dim, Dim::Size(..0));
    if !shape.dims.iter().all(is_builtin) {
        return format!("!common_ir.tensor<{element}, {}>", dims_text(context, shape));
    }
    let extent = |dim: &Dim| match dim {
        Dim::Size(size) => format!("{size}x"),
        _ => "?x".to_owned(),
    };
    let extents: String = shape.dims.iter().map(extent).collect();
    let is_named = shape.dims.iter().any(|dim| matches!(dim, Dim::Variable(_)));
    if is_named || !shape.denotations.is_empty() {
        return format!("tensor<{extents}{element}, {}>", dims_text(context, shape));
    }
    format!("tensor<{extents}{element}>")
}

fn parse<'c>(context: &'c Context, of: irc_mlir::Type<'c>) -> Result<Option<Type>, String> {
    if let Some(ranked) = ranked(context, of)? {
        return Ok(Some(Type::Tensor(ranked)));
    }
    if let Ok(tuple) = TupleType::try_from(of) {
        return parts(context, tuple)?
            .into_iter()
            .map(|of| of.ok_or_else(|| format!("expected types in a tuple, found {UNDECLARED}")))
            .collect::<Result<_, _>>()
            .map(|types| Some(Type::Tuple(types)));
    }
    let text = of.to_string();
    if let Some(element) = text.strip_prefix("tensor<*x").and_then(|rest| rest.strip_suffix('>')) {
        return Ok(Some(Type::unranked(element_of(element)?)));
    }
    let unknown = || format!("expected a type of a Common IR value, found {text}");
    let own = text.strip_prefix("!common_ir.").ok_or_else(unknown)?;
    let (name, inner) = match own.split_once('<') {
        None => (own, ""),
        Some((name, rest)) => (name, rest.strip_suffix('>').ok_or_else(unknown)?),
    };
    let nested = |text: &str| -> Result<Vec<Option<Type>>, String> {
        let tuple =
            irc_mlir::Type::parse(context, &format!("tuple<{text}>")).ok_or_else(unknown)?;
        parts(context, TupleType::try_from(tuple).map_err(|_| unknown())?)
    };
    let one = || Ok::<_, String>(nested(inner)?.pop().flatten().map(Box::new));
    Ok(Some(match name {
        "undeclared" => return Ok(None),
        "handle" => Type::Handle,
        "sequence" => Type::Sequence(one()?),
        "optional" => Type::Optional(one()?),
        "sparse" => match one()?.map(|of| *of) {
            Some(Type::Tensor(tensor)) => Type::Sparse(tensor),
            _ => return Err(unknown()),
        },
        "map" => {
            let (key, value) = inner.split_once(", ").ok_or_else(unknown)?;
            Type::Map { key: element_of(key)?, value: nested(value)?.pop().flatten().map(Box::new) }
        }
        "tensor" => {
            let (element, dims) = inner.split_once(", #").ok_or_else(unknown)?;
            let dims = Attribute::parse(context, &format!("#{dims}")).ok_or_else(unknown)?;
            let shape = Some(shape_of(context, dims)?);
            Type::Tensor(TensorType { element: element_of(element)?, shape })
        }
        "opaque" => {
            let names = Attribute::parse(context, &format!("[{inner}]"));
            let names = names.and_then(read::array_elements).unwrap_or_default();
            let names: Vec<String> = names.into_iter().filter_map(string_value).collect();
            let [domain, name] = names.try_into().map_err(|_| unknown())?;
            Type::Opaque { domain, name }
        }
        _ => return Err(unknown()),
    }))
}

fn parts<'c>(context: &'c Context, tuple: TupleType<'c>) -> Result<Vec<Option<Type>>, String> {
    let part = |index| {
        let part = tuple.r#type(index).map_err(|error| error.to_string())?;
        parse(context, part)
    };
    (0..tuple.type_count()).map(part).collect()
}

fn ranked(context: &Context, of: irc_mlir::Type<'_>) -> Result<Option<TensorType>, String> {
    let Some((extents, element)) = read::tensor_of(of) else { return Ok(None) };
    let element = element_of(&element.to_string())?;
    let Some(encoding) = read::encoding(of) else {
        let dim = |extent: i64| if extent < 0 { Dim::Unknown } else { Dim::Size(extent) };
        let shape = Some(Shape::new(extents.into_iter().map(dim)));
        return Ok(Some(TensorType { element, shape }));
    };
    let shape = shape_of(context, encoding)?;
    let agrees = |(extent, dim): (&i64, &Dim)| match dim {
        Dim::Size(size) => size == extent,
        Dim::Variable(_) | Dim::Unknown => *extent < 0,
        Dim::Wildcard(_) => false,
    };
    if shape.dims.len() != extents.len() || !extents.iter().zip(&shape.dims).all(agrees) {
        return Err(format!("expected #common_ir.dims to agree with the shape in {of}"));
    }
    Ok(Some(TensorType { element, shape: Some(shape) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_come_back() {
        let context = crate::new_context();
        let tensor = |element, dims: &[&str]| Type::tensor(element, dims.iter().copied());
        let boxed = |of| Some(Box::new(of));
        let denoted = Shape {
            dims: vec![Dim::Size(2), Dim::Unknown],
            denotations: vec![Some("DATA \"BATCH\"".into()), None],
        };
        let mut types = vec![
            Type::Sparse(TensorType { element: ElementType::Double, shape: None }),
            Type::Sequence(None),
            Type::Sequence(boxed(Type::Optional(boxed(tensor(ElementType::Int4, &["n", ""]))))),
            Type::Map { key: ElementType::String, value: boxed(Type::Handle) },
            Type::Tuple(vec![]),
            Type::Tuple(vec![Type::Handle, Type::unranked(ElementType::Complex64)]),
            Type::Opaque { domain: "com.ex".into(), name: "a>\"b\", c".into() },
            Type::Tensor(TensorType { element: ElementType::Float, shape: Some(denoted) }),
            Type::tensor(ElementType::Float, [0, 2]),
            Type::tensor(ElementType::Float, [-3]),
            Type::tensor(ElementType::Float, [i64::MAX, i64::MAX]),
            Type::tensor(ElementType::Float, [i64::MIN]),
            Type::tensor(ElementType::Complex64, [Dim::Wildcard(None), Dim::Size(-1)]),
            tensor(ElementType::String, &["n", "m*"]),
            tensor(ElementType::Bool, &["n > 2, \"x\"", "4"]),
        ];
        let numbers = (0..30).map(ElementType::from_number);
        types.extend(numbers.map(|element| Type::tensor(element, [2])));
        let mut made = Types::new(&context);
        for of in &types {
            let mlir = made.mlir(Some(of));
            assert_eq!(made.of_mlir(mlir).as_ref(), Ok(&Some(of.clone())), "{mlir}");
        }
        let undeclared = made.mlir(None);
        assert_eq!(made.of_mlir(undeclared), Ok(None));
    }

    #[test]
    fn types_that_stand_for_none_are_rejected() {
        let context = crate::new_context();
        let mut types = Types::new(&context);
        let mut rejected = |text: &str| types.of_mlir(ty::parse(&context, text)).is_err();
        assert!(rejected("index"));
        assert!(rejected("tensor<2xindex>"));
        assert!(rejected("tensor<?xf32, #common_ir.dims<[\"n\", 4]>>"));
        assert!(rejected("tensor<3xf32, #common_ir.dims<[4]>>"));
        assert!(rejected("!common_ir.sparse<!common_ir.handle>"));
    }
}
