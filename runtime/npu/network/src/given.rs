//! Tensors that a network is given, by key.

use std::collections::BTreeMap;

use irc_tensor::{Tensor, TensorType};

use crate::{Error, Layout, Role};

/// Tensors by key.
pub type Tensors = BTreeMap<String, Tensor>;

/// A key that a network takes, and the type of its tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Key in archives.
    pub name: String,
    /// Type of the tensor.
    pub ty: TensorType,
    /// Whether it belongs to a layer, rather than being an input.
    pub is_weights: bool,
}

/// All keys that a network takes: inputs, then weights, by address.
pub fn ports(layout: &Layout) -> Vec<Port> {
    let inputs = layout.activations.iter().filter(|tensor| tensor.role == Role::Input);
    let inputs = inputs.map(|tensor| Port {
        name: tensor.name.clone(),
        ty: tensor.ty.clone(),
        is_weights: false,
    });
    let weights = layout.weights.iter().flat_map(|weights| weights.keys());
    inputs.chain(weights.map(|(name, ty)| Port { name, ty, is_weights: true })).collect()
}

/// Rejects keys that name nothing, and tensors of another type.
pub(crate) fn check(layout: &Layout, given: &Tensors) -> Result<(), Error> {
    let ports = ports(layout);
    given.iter().try_for_each(|(name, tensor)| expect(layout, &ports, name, tensor.ty()))?;
    let missing = ports.iter().filter(|port| !given.contains_key(&port.name));
    let missing: Vec<&str> = missing.map(|port| port.name.as_str()).collect();
    if missing.is_empty() { Ok(()) } else { Err(Error::Missing(listed(&missing))) }
}

/// Refuses a key that names none of a layout's ports, and a tensor of another type than the port's.
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

/// All keys; those of weights by their layers.
fn known(layout: &Layout, ports: &[Port]) -> String {
    let inputs = ports.iter().filter(|port| !port.is_weights);
    let inputs: Vec<&str> = inputs.map(|port| port.name.as_str()).collect();
    let layers: Vec<&str> = layout.weights.iter().map(|one| one.layer.as_str()).collect();
    let inputs = format!("inputs `{}`", inputs.join("`, `"));
    match layers.is_empty() {
        true => inputs,
        false => format!("{inputs}; .weight, .scale and .bias of `{}`", layers.join("`, `")),
    }
}

/// Names in a row, of many the first.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 6;
    let shown = names[..names.len().min(SHOWN)].join("`, `");
    match names.len().saturating_sub(SHOWN) {
        0 => format!("`{shown}`"),
        more => format!("`{shown}` and {more} more"),
    }
}
