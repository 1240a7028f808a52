//! Attributes of nodes and functions: dictionaries with the value under the name of its field.
use super::{
    read::{Dictionary, Fields, integer, number, numbers},
    tensors,
    types::{Types, dims_attr, shape_of},
    values::type_of,
};
use bytes::Bytes;
use irc_common_format::model::{Attribute as Literal, AttributeKind, AttributeValue, Graph, Type};
use irc_mlir::{Attribute, attr, elements, melior::ir::attribute::FloatAttribute};

/// Entries of an attribute other than its value.
const ABOUT: [&str; 4] = ["name", "doc", "ref", "kind"];

const KINDS: [AttributeKind; 16] = [
    AttributeKind::Float,
    AttributeKind::Int,
    AttributeKind::String,
    AttributeKind::Tensor,
    AttributeKind::Graph,
    AttributeKind::SparseTensor,
    AttributeKind::Type,
    AttributeKind::Shape,
    AttributeKind::Floats,
    AttributeKind::Ints,
    AttributeKind::Strings,
    AttributeKind::Tensors,
    AttributeKind::Graphs,
    AttributeKind::SparseTensors,
    AttributeKind::Types,
    AttributeKind::Shapes,
];

/// Converts an attribute; its graphs are numbered from `graphs` on, which is advanced.
pub(super) fn to_attribute<'c>(
    types: &mut Types<'c>,
    literal: &Literal,
    graphs: &mut i64,
) -> Attribute<'c> {
    let mut fields = Dictionary::new(types.context);
    fields.text("name", literal.name.as_ref());
    fields.text("doc", literal.doc.as_ref());
    match &literal.value {
        AttributeValue::Nothing => {}
        AttributeValue::Reference { name, kind } => {
            fields.text("ref", Some(name));
            let kind = kind.map(|kind| attr::string(types.context, kind.field()));
            fields.maybe("kind", kind);
        }
        value => {
            let field = value.kind().map(AttributeKind::field).unwrap_or_default();
            fields.set(field, value_attr(types, value, graphs));
        }
    }
    fields.finish()
}

fn value_attr<'c>(
    types: &mut Types<'c>,
    value: &AttributeValue,
    graphs: &mut i64,
) -> Attribute<'c> {
    use AttributeValue as V;
    let context = types.context;
    let mut next = || std::mem::replace(graphs, *graphs + 1);
    let array = |elements: Vec<_>| attr::array(context, &elements);
    match value {
        V::Nothing | V::Reference { .. } => unreachable!("they have no field"),
        V::Float(value) => float(types, *value),
        V::Int(value) => attr::i64(context, *value),
        V::String(value) => elements::text(context, value),
        V::Tensor(tensor) => tensors::to_attribute(types, tensor, false, false),
        V::Graph(_) => attr::i64(context, next()),
        V::SparseTensor(tensor) => tensors::sparse_to_attribute(types, tensor),
        V::Type(ty) => attr::ty(types.mlir(Some(ty))),
        V::Shape(shape) => dims_attr(context, shape),
        V::Floats(values) => elements::floats(context, values),
        V::Ints(values) => attr::i64s(context, values),
        V::Strings(values) => {
            array(values.iter().map(|value| elements::text(context, value)).collect())
        }
        V::Tensors(tensors) => {
            let one = |tensor| tensors::to_attribute(types, tensor, false, false);
            array(tensors.iter().map(one).collect())
        }
        V::Graphs(graphs) => {
            attr::i64s(context, &graphs.iter().map(|_| next()).collect::<Vec<_>>())
        }
        V::SparseTensors(tensors) => {
            let one = |tensor| tensors::sparse_to_attribute(types, tensor);
            array(tensors.iter().map(one).collect())
        }
        V::Types(list) => array(list.iter().map(|ty| attr::ty(types.mlir(Some(ty)))).collect()),
        V::Shapes(shapes) => array(shapes.iter().map(|shape| dims_attr(context, shape)).collect()),
    }
}

/// A 32-bit float; one that is NaN or infinite keeps its bits.
fn float<'c>(types: &Types<'c>, value: f32) -> Attribute<'c> {
    let context = types.context;
    if value.is_nan() {
        return attr::parse(
            context,
            &format!("{:#010X} : f32", value.to_bits()).replacen('X', "x", 1),
        );
    }
    attr::float(context, irc_mlir::Type::float32(context), value.into())
}

fn float_of(attribute: Attribute<'_>) -> Option<f32> {
    let value = FloatAttribute::try_from(attribute).ok()?.value();
    if !value.is_nan() {
        return Some(value as f32);
    }
    let text = attribute.to_string();
    let bits = text.strip_prefix("0x")?.split(' ').next()?;
    u32::from_str_radix(bits, 16).ok().map(f32::from_bits)
}

/// Converts a dictionary to an attribute, whose graphs are taken out of `graphs`.
///
/// # Errors
/// An invalid dictionary.
pub(super) fn from_attribute<'c>(
    types: &mut Types<'c>,
    attribute: Attribute<'c>,
    graphs: &mut [Option<Graph>],
) -> Result<Literal, String> {
    let known: Vec<&str> = ABOUT.into_iter().chain(KINDS.map(AttributeKind::field)).collect();
    let fields = Fields::of(attribute, "an attribute", &known)?;
    let name = fields.text("name")?;
    let value = value_of(types, fields, graphs).map_err(|message| match &name {
        Some(name) => format!("attribute '{name}': {message}"),
        None => message,
    })?;
    Ok(Literal { value, doc: fields.text("doc")?, name })
}

fn value_of<'c>(
    types: &mut Types<'c>,
    fields: Fields<'c>,
    graphs: &mut [Option<Graph>],
) -> Result<AttributeValue, String> {
    let mut given = KINDS.into_iter().filter_map(|kind| Some((kind, fields.get(kind.field())?)));
    let reference = fields.text("ref")?;
    match (reference, given.next(), given.next()) {
        (None, None, _) => Ok(AttributeValue::Nothing),
        (None, Some((kind, attribute)), None) => one_value(types, kind, attribute, graphs),
        (Some(name), None, _) => {
            let kind = fields.text("kind")?;
            let kind = kind.map(|kind| {
                let found = KINDS.into_iter().find(|known| known.field() == kind);
                found.ok_or_else(|| format!("expected the field of a value, found '{kind}'"))
            });
            Ok(AttributeValue::Reference { name, kind: kind.transpose()? })
        }
        _ => Err("expected one value".to_owned()),
    }
}

fn one_value<'c>(
    types: &mut Types<'c>,
    kind: AttributeKind,
    attribute: Attribute<'c>,
    graphs: &mut [Option<Graph>],
) -> Result<AttributeValue, String> {
    use AttributeKind as K;
    use AttributeValue as V;
    let field = kind.field();
    let context = types.context;
    let wrong = || format!("expected a value for '{field}', found {attribute}");
    let list = || super::read::list(attribute, field);
    Ok(match kind {
        K::Float => V::Float(float_of(attribute).ok_or_else(wrong)?),
        K::Int => V::Int(integer(attribute).ok_or_else(wrong)?),
        K::String => V::String(bytes(attribute)?),
        K::Tensor => V::Tensor(Box::new(tensors::from_attribute(types, attribute, None)?)),
        K::Graph => V::Graph(Box::new(take(graphs, number(attribute, field)?)?)),
        K::SparseTensor => {
            V::SparseTensor(Box::new(tensors::sparse_from_attribute(types, attribute)?))
        }
        K::Type => V::Type(Box::new(some_type(types, attribute)?)),
        K::Shape => V::Shape(shape_of(context, attribute)?),
        K::Floats => V::Floats(elements::floats_of(attribute).ok_or_else(wrong)?),
        K::Ints => V::Ints(numbers(attribute, field)?),
        K::Strings => V::Strings(each(list()?, bytes)?),
        K::Tensors => V::Tensors(each(list()?, |one| tensors::from_attribute(types, one, None))?),
        K::Graphs => V::Graphs(each(numbers(attribute, field)?, |index| take(graphs, index))?),
        K::SparseTensors => {
            V::SparseTensors(each(list()?, |one| tensors::sparse_from_attribute(types, one))?)
        }
        K::Types => V::Types(each(list()?, |one| some_type(types, one))?),
        K::Shapes => V::Shapes(each(list()?, |one| shape_of(context, one))?),
    })
}

fn each<T, U>(list: Vec<T>, read: impl FnMut(T) -> Result<U, String>) -> Result<Vec<U>, String> {
    list.into_iter().map(read).collect()
}

fn bytes(attribute: Attribute<'_>) -> Result<Bytes, String> {
    let bytes = elements::text_bytes(attribute).map(Bytes::from);
    bytes.ok_or_else(|| format!("expected a string, found {attribute}"))
}

fn some_type<'c>(types: &mut Types<'c>, attribute: Attribute<'c>) -> Result<Type, String> {
    type_of(types, attribute)?.ok_or_else(|| "expected a type, found none".to_owned())
}

fn take(graphs: &mut [Option<Graph>], index: i64) -> Result<Graph, String> {
    let count = graphs.len();
    let graph = usize::try_from(index).ok().and_then(|index| graphs.get_mut(index)?.take());
    graph.ok_or_else(|| {
        format!("expected an unused index of the node's {count} graphs, found {index}")
    })
}
