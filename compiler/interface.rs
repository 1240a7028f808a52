//! Reads a compiled model's interface off its tensor-level function.
use irc_dialects::tl::tensor_type_of;
use irc_mlir::{OperationRef, Type, melior::ir::attribute::StringAttribute, read};
pub use irc_runtime::{Interface, Port};

/// Reads the interface of a tensor-level function; arguments and results are named by the attribute
/// `irc.name`, or else `input_<n>` and `output_<n>`.
///
/// # Errors
/// A type that is not a tensor of fixed shape.
pub fn interface_of<'c: 'a, 'a>(function: &OperationRef<'c, 'a>) -> Result<Interface, String> {
    let (inputs, outputs) = read::signature(function).ok_or("is not a function")?;
    Ok(Interface {
        inputs: ports(&inputs, &names(function, "arg_attrs"), "input")?,
        outputs: ports(&outputs, &names(function, "res_attrs"), "output")?,
        workspace_bytes: 0,
        requires: Vec::new(),
    })
}

fn ports(
    types: &[Type<'_>],
    names: &[Option<String>],
    fallback: &str,
) -> Result<Vec<Port>, String> {
    let named = |index: usize| {
        names.get(index).cloned().flatten().unwrap_or_else(|| format!("{fallback}_{index}"))
    };
    types
        .iter()
        .enumerate()
        .map(|(index, ty)| {
            let ty = tensor_type_of(*ty)?;
            ty.byte_size().map_err(|error| error.to_string())?;
            let dtype = ty.dtype.name().to_owned();
            Ok(Port { name: named(index), dtype, shape: ty.shape })
        })
        .collect()
}

fn names<'c: 'a, 'a>(function: &OperationRef<'c, 'a>, attributes: &str) -> Vec<Option<String>> {
    read::elements(function, attributes)
        .unwrap_or_default()
        .into_iter()
        .map(|dictionary| {
            let dictionary =
                irc_mlir::melior::ir::attribute::DictionaryAttribute::try_from(dictionary).ok()?;
            let name = dictionary.element_by_name("irc.name")?;
            Some(StringAttribute::try_from(name).ok()?.value().to_owned())
        })
        .collect()
}

/// Bytes of a tensor of fixed shape; `None` for other types.
pub fn byte_size(ty: Type<'_>) -> Option<u64> {
    tensor_type_of(ty).ok()?.byte_size().ok().map(|bytes| bytes as u64)
}
