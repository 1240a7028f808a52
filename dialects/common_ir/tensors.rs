//! Tensors of the format as attributes.
//!
//! Elements stored as bytes are elements of the tensor's own type if MLIR has it and
//! their number matches the shape, else of `i8`. Up to [`SMALL`] bytes are `dense`, in which narrow
//! elements take a byte each; more are a `dense_resource` of the bytes, without a copy.
use super::{
    read::{Dictionary, Fields, entries, integer, list, number, numbers},
    types::Types,
    values::type_of,
};
use bytes::Bytes;
use irc_common_format::model::{
    Dim, ElementType, External, Segment, Shape, SparseTensor, Tensor, TensorData, TensorType, Type,
};
use irc_mlir::{Attribute, AttributeLike, attr, elements};

/// Maximum number of bytes that are printed as numbers.
const SMALL: usize = 64;

const FIELDS: [&str; 9] =
    ["name", "type", "data", "field", "external", "strings", "segment", "doc", "metadata"];

/// The type of a tensor.
pub(super) fn type_of_tensor(tensor: &Tensor) -> Type {
    Type::tensor(tensor.element, tensor.dims.iter().copied())
}

/// Converts a tensor. `is_typed` states that its type is given elsewhere, and `is_named` that its name is.
pub(super) fn to_attribute<'c>(
    types: &mut Types<'c>,
    tensor: &Tensor,
    is_typed: bool,
    is_named: bool,
) -> Attribute<'c> {
    let Tensor { name, data, segment, doc, properties, .. } = tensor;
    let context = types.context;
    let own = types.tensor(tensor.element, &tensor.dims);
    let hint = name.as_deref().unwrap_or_default();
    let mut fields = Dictionary::new(context);
    let mut says_type = false;
    match data {
        TensorData::Nothing => {}
        TensorData::Raw(bytes) => {
            let raw = raw(types, tensor, bytes, hint);
            says_type = raw.r#type() == own;
            let is_all = segment.is_none() && doc.is_none() && properties.is_empty();
            if says_type && is_all && (is_named || name.is_none()) {
                return raw;
            }
            fields.set("data", raw);
        }
        TensorData::Strings(strings) => {
            let strings: Vec<_> =
                strings.iter().map(|bytes| elements::text(context, bytes)).collect();
            fields.set("strings", attr::array(context, &strings));
        }
        TensorData::External(external) => fields.set("external", external_attr(types, external)),
        typed => {
            let (field, element, bytes) = typed_bytes(typed);
            fields.set("field", attr::string(context, field));
            fields.set("data", list_of(types, element, bytes.into(), hint));
        }
    }
    if !is_named {
        fields.text("name", name.as_ref());
    }
    if !is_typed && !says_type {
        fields.set("type", attr::ty(own));
    }
    fields.maybe("segment", segment.map(|segment| segment_attr(types, segment)));
    fields.text("doc", doc.as_ref());
    fields.maybe("metadata", entries(context, properties));
    fields.finish()
}

/// Converts an attribute to a tensor; `known` is its type if it is given elsewhere.
///
/// # Errors
/// An invalid attribute.
pub(super) fn from_attribute<'c>(
    types: &mut Types<'c>,
    attribute: Attribute<'c>,
    known: Option<irc_mlir::Type<'c>>,
) -> Result<Tensor, String> {
    if elements::is_elements(attribute) {
        let (element, dims) = own_type(types, attribute, known)?;
        let data = TensorData::Raw(raw_of(attribute, element)?);
        return Ok(Tensor { element, dims, data, ..Tensor::default() });
    }
    let fields = Fields::of(attribute, "a tensor", &FIELDS)?;
    let data = fields.get("data");
    let (element, dims) = match (fields.get("type"), known, data) {
        (Some(ty), _, _) => tensor_of(type_of(types, ty)?)?,
        (None, Some(ty), _) => dense_type(types, ty)?,
        (None, None, Some(data)) => dense_type(types, data.r#type())?,
        (None, None, None) => return Err("expected the 'type' of a tensor".to_owned()),
    };
    Ok(Tensor {
        name: fields.text("name")?,
        element,
        dims,
        data: data_of(types, fields, element)?,
        segment: fields.get("segment").map(segment_of).transpose()?,
        doc: fields.text("doc")?,
        properties: fields.entries("metadata")?,
    })
}

/// Checks what [`from_attribute`] reads, without reading the elements.
///
/// # Errors
/// An invalid attribute.
pub(super) fn check<'c>(
    types: &mut Types<'c>,
    attribute: Attribute<'c>,
    known: irc_mlir::Type<'c>,
) -> Result<(), String> {
    if elements::is_elements(attribute) {
        return own_type(types, attribute, Some(known)).map(|_| ());
    }
    Fields::of(attribute, "a tensor", &FIELDS)?;
    dense_type(types, known).map(|_| ())
}

/// The type of a tensor's elements.
fn own_type<'c>(
    types: &mut Types<'c>,
    attribute: Attribute<'c>,
    known: Option<irc_mlir::Type<'c>>,
) -> Result<(ElementType, Vec<i64>), String> {
    let own = attribute.r#type();
    if let Some(known) = known.filter(|known| *known != own) {
        return Err(format!("expected elements of {known}, found {own}"));
    }
    dense_type(types, own)
}

fn data_of<'c>(
    types: &mut Types<'c>,
    fields: Fields<'c>,
    element: ElementType,
) -> Result<TensorData, String> {
    if let Some(external) = fields.get("external") {
        return Ok(TensorData::External(external_of(external)?));
    }
    if fields.get("strings").is_some() {
        let strings = fields.list("strings")?.into_iter().map(|string| {
            elements::text_bytes(string).ok_or_else(|| format!("expected a string, found {string}"))
        });
        let strings: Vec<Vec<u8>> = strings.collect::<Result<_, _>>()?;
        return Ok(TensorData::Strings(strings.into_iter().map(Bytes::from).collect()));
    }
    let Some(data) = fields.get("data") else { return Ok(TensorData::Nothing) };
    match fields.text("field")? {
        Some(field) => typed_of(&field, &bytes_of(data)?),
        // Elements of another type than the tensor's are its bytes.
        None if dense_type(types, data.r#type())?.0 == element => {
            Ok(TensorData::Raw(raw_of(data, element)?))
        }
        None => Ok(TensorData::Raw(bytes_of(data)?.into())),
    }
}

/// A sparse tensor.
pub(super) fn sparse_to_attribute<'c>(
    types: &mut Types<'c>,
    sparse: &SparseTensor,
) -> Attribute<'c> {
    let mut fields = Dictionary::new(types.context);
    fields.set("dims", attr::i64s(types.context, &sparse.dims));
    for (name, part) in [("indices", &sparse.indices), ("values", &sparse.values)] {
        fields.maybe(name, part.as_ref().map(|part| to_attribute(types, part, false, false)));
    }
    fields.finish()
}

/// Converts an attribute to a sparse tensor.
///
/// # Errors
/// An invalid attribute.
pub(super) fn sparse_from_attribute<'c>(
    types: &mut Types<'c>,
    attribute: Attribute<'c>,
) -> Result<SparseTensor, String> {
    let fields = Fields::of(attribute, "a sparse tensor", &["dims", "indices", "values"])?;
    let dims = fields.get("dims").ok_or("expected the 'dims' of a sparse tensor")?;
    let mut part =
        |name| fields.get(name).map(|part| from_attribute(types, part, None)).transpose();
    Ok(SparseTensor {
        dims: numbers(dims, "dims")?,
        indices: part("indices")?,
        values: part("values")?,
    })
}

/// The type of a sparse tensor, with the element type of its values.
pub(super) fn type_of_sparse(sparse: &SparseTensor) -> Type {
    let element = sparse.values.as_ref().map_or(ElementType::Undefined, |values| values.element);
    let shape = Some(Shape::new(sparse.dims.iter().copied()));
    Type::Sparse(TensorType { element, shape })
}

fn dense_type<'c>(
    types: &mut Types<'c>,
    ty: irc_mlir::Type<'c>,
) -> Result<(ElementType, Vec<i64>), String> {
    tensor_of(types.of_mlir(ty)?)
}

fn tensor_of(ty: Option<Type>) -> Result<(ElementType, Vec<i64>), String> {
    let expected = || "expected the type of a tensor of known sizes".to_owned();
    let Some(Type::Tensor(TensorType { element, shape: Some(shape) })) = ty else {
        return Err(expected());
    };
    let size = |dim: Dim| if let Dim::Size(size) = dim { Ok(size) } else { Err(expected()) };
    Ok((element, shape.dims.into_iter().map(size).collect::<Result<_, _>>()?))
}

/// Bytes of the file: as elements of the tensor's type, or of `i8`.
fn raw<'c>(types: &mut Types<'c>, tensor: &Tensor, bytes: &Bytes, hint: &str) -> Attribute<'c> {
    let own = types.tensor(tensor.element, &tensor.dims);
    let needed = tensor.count().ok().and_then(|count| tensor.element.bytes_of(count));
    if needed == Some(bytes.len() as u64) && tensor.element.bits().is_some() {
        if bytes.len() > SMALL {
            return elements::resource(own, &resource_name(hint), bytes.clone());
        }
        if let Some(dense) = dense(own, tensor.element, bytes, tensor.count().unwrap_or(0)) {
            return dense;
        }
    }
    list_of(types, ElementType::Int8, bytes.clone(), hint)
}

/// Elements of the tensor's own type, if the bytes are exactly such elements.
fn dense<'c>(
    ty: irc_mlir::Type<'c>,
    element: ElementType,
    bytes: &[u8],
    count: u64,
) -> Option<Attribute<'c>> {
    if element == ElementType::Bool {
        let values: Vec<bool> = bytes.iter().map(|byte| *byte == 1).collect();
        return bytes.iter().all(|byte| *byte < 2).then(|| elements::dense_bools(ty, &values));
    }
    match element.bits()? {
        bits @ ..8 => {
            let unpacked = unpack(bytes, bits, usize::try_from(count).ok()?);
            let is_same = pack(&unpacked, bits) == bytes;
            is_same.then(|| elements::dense(ty, &unpacked)).flatten()
        }
        _ => elements::dense(ty, bytes),
    }
}

/// A list of elements of whole bytes.
fn list_of<'c>(
    types: &mut Types<'c>,
    element: ElementType,
    bytes: Bytes,
    hint: &str,
) -> Attribute<'c> {
    let width = element.bits().unwrap_or(8) / 8;
    let ty = types.tensor(element, &[(bytes.len() / width as usize) as i64]);
    let small = if bytes.len() <= SMALL { elements::dense(ty, &bytes) } else { None };
    small.unwrap_or_else(|| elements::resource(ty, &resource_name(hint), bytes))
}

/// Whether a name needs no quotes.
fn resource_name(hint: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = hint.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { format!("data_{name}") }
}

fn bytes_of(attribute: Attribute<'_>) -> Result<Vec<u8>, String> {
    elements::bytes_of(attribute).ok_or_else(|| {
        let what = if elements::is_elements(attribute) { "their data" } else { "elements" };
        format!("expected {what}, found {attribute}")
    })
}

/// The bytes as in a file.
fn raw_of(attribute: Attribute<'_>, element: ElementType) -> Result<Bytes, String> {
    let bytes = bytes_of(attribute)?;
    match element.bits() {
        Some(bits @ ..8) if attribute.is_dense_elements() => Ok(pack(&bytes, bits).into()),
        _ => Ok(bytes.into()),
    }
}

/// Expands packed elements to a byte each, the first in the lowest bits.
fn unpack(bytes: &[u8], bits: u32, count: usize) -> Vec<u8> {
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (at % 8) & 1);
    let element = |index: usize| {
        (0..bits as usize).fold(0, |value, at| value | bit(index * bits as usize + at) << at)
    };
    (0..count).map(element).collect()
}

/// The inverse of [`unpack`].
fn pack(elements: &[u8], bits: u32) -> Vec<u8> {
    let bits = bits as usize;
    let mut bytes = vec![0; (elements.len() * bits).div_ceil(8)];
    for (index, element) in elements.iter().enumerate() {
        for at in 0..bits {
            let place = index * bits + at;
            bytes[place / 8] |= (element >> at & 1) << (place % 8);
        }
    }
    bytes
}

/// The name of the field, the type of its elements, their bytes.
fn typed_bytes(data: &TensorData) -> (&'static str, ElementType, Vec<u8>) {
    fn bytes<T: Copy, const N: usize>(values: &[T], to: impl Fn(T) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|value| to(*value)).collect()
    }
    match data {
        TensorData::Floats(values) => {
            ("float_data", ElementType::Float, bytes(values, f32::to_le_bytes))
        }
        TensorData::Ints32(values) => {
            ("int32_data", ElementType::Int32, bytes(values, i32::to_le_bytes))
        }
        TensorData::Ints64(values) => {
            ("int64_data", ElementType::Int64, bytes(values, i64::to_le_bytes))
        }
        TensorData::Doubles(values) => {
            ("double_data", ElementType::Double, bytes(values, f64::to_le_bytes))
        }
        TensorData::Uints64(values) => {
            ("uint64_data", ElementType::Uint64, bytes(values, u64::to_le_bytes))
        }
        TensorData::Nothing
        | TensorData::Raw(_)
        | TensorData::Strings(_)
        | TensorData::External(_) => unreachable!("elements of their own type"),
    }
}

fn typed_of(field: &str, bytes: &[u8]) -> Result<TensorData, String> {
    fn values<T, const N: usize>(
        bytes: &[u8],
        from: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, String> {
        let (values, rest) = bytes.as_chunks::<N>();
        if !rest.is_empty() {
            return Err(format!("expected elements of {N} bytes, found {} bytes", bytes.len()));
        }
        Ok(values.iter().map(|value| from(*value)).collect())
    }
    Ok(match field {
        "float_data" => TensorData::Floats(values(bytes, f32::from_le_bytes)?),
        "int32_data" => TensorData::Ints32(values(bytes, i32::from_le_bytes)?),
        "int64_data" => TensorData::Ints64(values(bytes, i64::from_le_bytes)?),
        "double_data" => TensorData::Doubles(values(bytes, f64::from_le_bytes)?),
        "uint64_data" => TensorData::Uints64(values(bytes, u64::from_le_bytes)?),
        other => {
            let known = "float_data, int32_data, int64_data, double_data or uint64_data";
            return Err(format!("expected the field {known}, found '{other}'"));
        }
    })
}

const EXTERNAL: [&str; 4] = ["location", "offset", "length", "others"];

fn external_attr<'c>(types: &mut Types<'c>, external: &External) -> Attribute<'c> {
    let External { location, offset, length, others, bytes: _ } = external;
    let context = types.context;
    let number = |number: u64| attr::i64(context, number.cast_signed());
    let mut fields = Dictionary::new(context);
    fields.text("location", Some(location));
    fields.set("offset", number(*offset));
    fields.maybe("length", length.map(number));
    fields.maybe("others", entries(context, others));
    fields.finish()
}

fn external_of(attribute: Attribute<'_>) -> Result<External, String> {
    let fields = Fields::of(attribute, "external data", &EXTERNAL)?;
    let unsigned = |name| {
        let number = fields.get(name).map(|value| number(value, name)).transpose()?;
        Ok::<_, String>(number.map(i64::cast_unsigned))
    };
    Ok(External {
        location: fields.text("location")?.ok_or("expected the 'location' of external data")?,
        offset: unsigned("offset")?.unwrap_or(0),
        length: unsigned("length")?,
        others: fields.entries("others")?,
        bytes: None,
    })
}

fn segment_attr<'c>(types: &Types<'c>, segment: Segment) -> Attribute<'c> {
    let end = |end: Option<i64>| {
        end.map_or_else(|| attr::unit(types.context), |end| attr::i64(types.context, end))
    };
    attr::array(types.context, &[end(segment.begin), end(segment.end)])
}

fn segment_of(attribute: Attribute<'_>) -> Result<Segment, String> {
    match list(attribute, "segment")?[..] {
        [begin, end] => Ok(Segment { begin: integer(begin), end: integer(end) }),
        _ => Err(format!("expected a begin and an end in 'segment', found {attribute}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_elements_come_back() {
        for bits in [2, 4, 6] {
            let bytes: Vec<u8> = (0..12_u8).map(|byte| byte.wrapping_mul(37)).collect();
            let count = 96 / bits as usize;
            assert_eq!(pack(&unpack(&bytes, bits, count), bits), bytes);
        }
        assert_eq!(unpack(&[0x21, 0x03], 4, 3), [1, 2, 3]);
    }
}
