//! Reads a compiled model's interface from its tensor-level function.
use crate::attributes::{NAME, PRESERVED, STRINGS, UPDATES, WEIGHT, dictionaries};
use irc_dialects::tl::{tensor_type_of, type_of};
use irc_mlir::{OperationRef, Type, melior::ir::attribute::DictionaryAttribute, read};
pub use irc_runtime::{Interface, Port};

/// Reads the interface of a tensor-level function. Arguments and results are named by the attribute
/// `tl.name`, or else `input_<n>` and `output_<n>`. Arguments with `tl.preserved` are preserved; those
/// with `tl.weight` are constants of the program. Results with `tl.updates` may be in the memory of an argument. The strings are those of `tl.strings`.
///
/// # Errors
/// A type that is not a ranked tensor.
pub fn interface_of<'c: 'a, 'a>(function: &OperationRef<'c, 'a>) -> Result<Interface, String> {
    let (inputs, outputs) = read::signature(function).ok_or("is not a function")?;
    Ok(Interface {
        inputs: ports(&inputs, &dictionaries(function, "arg_attrs"), "input")?,
        outputs: ports(&outputs, &dictionaries(function, "res_attrs"), "output")?,
        strings: STRINGS.read(function).unwrap_or_default(),
        ..Interface::default()
    })
}

fn ports(
    types: &[Type<'_>],
    attributes: &[Option<DictionaryAttribute<'_>>],
    fallback: &str,
) -> Result<Vec<Port>, String> {
    let port = |(index, ty): (usize, &Type<'_>)| {
        let attributes = attributes.get(index).copied().flatten();
        let name = NAME.of(attributes).unwrap_or_else(|| format!("{fallback}_{index}"));
        Ok(Port {
            preserved: PRESERVED.of(attributes).is_some(),
            weight: WEIGHT.of(attributes).map(i64::cast_unsigned),
            updates: UPDATES.of(attributes),
            ..port_of(name, &type_of(*ty)?)?
        })
    };
    types.iter().enumerate().map(port).collect()
}

/// An input or output of a type; a symbolic extent is -1, with its expression as the name.
///
/// # Errors
/// A size in bytes that overflows.
pub fn port_of(name: String, ty: &irc_tl::Type) -> Result<Port, String> {
    let known = ty.known();
    if let Some(known) = &known {
        known.byte_size().map_err(|error| error.to_string())?;
    }
    let sizes = ty.dims.iter().map(ToString::to_string);
    Ok(Port {
        name,
        dtype: ty.dtype.name().to_owned(),
        shape: ty.dims.iter().map(|dim| dim.known().unwrap_or(-1)).collect(),
        preserved: false,
        sizes: if known.is_none() { sizes.collect() } else { vec![] },
        weight: None,
        updates: None,
    })
}

/// The size in bytes of a tensor of static shape; `None` for other types.
pub fn byte_size(ty: Type<'_>) -> Option<u64> {
    tensor_type_of(ty).ok()?.byte_size().ok().map(|bytes| bytes as u64)
}
