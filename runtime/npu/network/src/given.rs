//! Tensors given to a network, by key.

use std::collections::BTreeMap;

use irc_tensor::{Tensor, TensorType};

use crate::{Error, Layout, Role};

/// Tensors by key.
pub type Tensors = BTreeMap<String, Tensor>;

/// A key that a network accepts, and the type of its tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Key in archives.
    pub name: String,
    /// Type of the tensor.
    pub ty: TensorType,
    /// Whether it belongs to a layer, rather than being an input.
    pub is_weights: bool,
    /// Whether it is zero if it is not given.
    pub is_optional: bool,
}

/// All keys that a network accepts: inputs, then weights, by address.
pub fn ports(layout: &Layout) -> Vec<Port> {
    let inputs = layout.activations.iter().filter(|tensor| tensor.role == Role::Input);
    let inputs = inputs.map(|tensor| Port {
        name: tensor.name.clone(),
        ty: tensor.ty.clone(),
        is_weights: false,
        is_optional: false,
    });
    let weights = layout.weights.iter().flat_map(|weights| {
        let offsets =
            |(index, (name, ty))| Port { name, ty, is_weights: true, is_optional: index == 3 };
        weights.keys().into_iter().enumerate().map(offsets)
    });
    inputs.chain(weights).collect()
}

/// Rejects unknown keys, and tensors of the wrong type.
pub(crate) fn check(layout: &Layout, given: &Tensors) -> Result<(), Error> {
    let ports = ports(layout);
    given.iter().try_for_each(|(name, tensor)| expect(layout, &ports, name, tensor.ty()))?;
    let missing = ports.iter().filter(|port| !port.is_optional && !given.contains_key(&port.name));
    let missing: Vec<&str> = missing.map(|port| port.name.as_str()).collect();
    if missing.is_empty() { Ok(()) } else { Err(Error::Missing(listed(&missing))) }
}

/// Rejects a key that is not a port of a layout, and a tensor whose type is not that of the port.
///
/// # Errors
/// [`Error::Unknown`] and [`Error::Type`].
pub fn expect(
    layout: &Layout,
    ports: &[Port],
    name: &str,
    found: &TensorType,
) -> Result<(), Error> {
    let name = name.to_owned();
    match ports.iter().find(|port| port.name == name) {
        None => Err(Error::Unknown { name, known: known(layout, ports) }),
        Some(port) if port.ty == *found => Ok(()),
        Some(port) => Err(Error::Type { name, expected: port.ty.clone(), found: found.clone() }),
    }
}

/// All keys; those of weights grouped by layer.
fn known(layout: &Layout, ports: &[Port]) -> String {
    let inputs = ports.iter().filter(|port| !port.is_weights);
    let inputs: Vec<&str> = inputs.map(|port| port.name.as_str()).collect();
    let layers: Vec<&str> = layout.weights.iter().map(|one| one.layer.as_str()).collect();
    let inputs = format!("inputs `{}`", inputs.join("`, `"));
    match layers.is_empty() {
        true => inputs,
        false => {
            format!("{inputs}; .weight, .scale, .bias and .offset of `{}`", layers.join("`, `"))
        }
    }
}

/// A list of names, truncated if there are many.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 6;
    let shown = names[..names.len().min(SHOWN)].join("`, `");
    match names.len().saturating_sub(SHOWN) {
        0 => format!("`{shown}`"),
        more => format!("`{shown}` and {more} more"),
    }
}
