//! Reads a compiled model's interface off its tensor-level function.
use irc_dialects::tl::tensor_type_of;
use irc_mlir::{
    OperationRef, Type,
    melior::ir::attribute::{DictionaryAttribute, StringAttribute},
    read,
};
pub use irc_runtime::{Interface, Port};

/// Reads the interface of a tensor-level function; arguments and results are named by the attribute
/// `irc.name`, or else `input_<n>` and `output_<n>`. Arguments with `irc.kept` are kept.
///
/// # Errors
/// A type that is not a tensor of fixed shape.
pub fn interface_of<'c: 'a, 'a>(function: &OperationRef<'c, 'a>) -> Result<Interface, String> {
    let (inputs, outputs) = read::signature(function).ok_or("is not a function")?;
    Ok(Interface {
        inputs: ports(&inputs, &attributes(function, "arg_attrs"), "input")?,
        outputs: ports(&outputs, &attributes(function, "res_attrs"), "output")?,
        workspace_bytes: 0,
        requires: Vec::new(),
    })
}

fn ports(
    types: &[Type<'_>],
    attributes: &[Option<DictionaryAttribute<'_>>],
    fallback: &str,
) -> Result<Vec<Port>, String> {
    let port = |(index, ty): (usize, &Type<'_>)| {
        let attribute = |name| attributes.get(index)?.as_ref()?.element_by_name(name);
        let name = attribute("irc.name").and_then(|name| StringAttribute::try_from(name).ok());
        let ty = tensor_type_of(*ty)?;
        ty.byte_size().map_err(|error| error.to_string())?;
        Ok(Port {
            name: name
                .map_or_else(|| format!("{fallback}_{index}"), |name| name.value().to_owned()),
            dtype: ty.dtype.name().to_owned(),
            shape: ty.shape,
            kept: attribute("irc.kept").is_some(),
        })
    };
    types.iter().enumerate().map(port).collect()
}

fn attributes<'c: 'a, 'a>(
    function: &OperationRef<'c, 'a>,
    name: &str,
) -> Vec<Option<DictionaryAttribute<'c>>> {
    let elements = read::elements(function, name).unwrap_or_default().into_iter();
    elements.map(|dictionary| DictionaryAttribute::try_from(dictionary).ok()).collect()
}

/// Bytes of a tensor of fixed shape; `None` for other types.
pub fn byte_size(ty: Type<'_>) -> Option<u64> {
    tensor_type_of(ty).ok()?.byte_size().ok().map(|bytes| bytes as u64)
}
