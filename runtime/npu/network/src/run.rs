//! Execution of networks.

use irc_npu::Program;
use irc_npu::verify::Machine;
use irc_npu_sim::functional::{self, Memory};
use irc_tensor::Tensor;

use crate::layout::WEIGHTS;
use crate::{Activations, Error, Layout, Role, Tensors, given, movements};

/// Base register of activations.
const ACTIVATIONS: u32 = 0;

/// Runs a program on named tensors; returns every tensor that it stores, with roles [`Role::Output`]
/// and [`Role::Stored`].
///
/// # Errors
/// If the program does not belong to this network, a tensor is missing, has the wrong type or an
/// unknown name, or the program accesses bytes outside of its memories or uses an unsupported feature.
pub fn run(program: &Program, layout: &Layout, tensors: &Tensors) -> Result<Tensors, Error> {
    movements::check(program, layout)?;
    given::check(layout, tensors)?;
    let l2_bytes = usize::try_from(Machine::default().l2_bytes).unwrap_or_default();
    let mut memory = Memory::new(program.cores.len(), l2_bytes);
    memory.dram.insert(ACTIVATIONS, activations(layout, tensors));
    memory.dram.insert(WEIGHTS, weights(layout, tensors));
    functional::run(program, &mut memory)?;
    let dram = memory.dram.get(&ACTIVATIONS).map_or(&[][..], Vec::as_slice);
    let results = layout.activations.iter();
    let results = results.filter(|one| matches!(one.role, Role::Output | Role::Stored));
    results.map(|one| Ok((one.name.clone(), result(one, dram)?))).collect()
}

fn result(tensor: &Activations, dram: &[u8]) -> Result<Tensor, Error> {
    let bytes = dram.get(tensor.address..tensor.address + tensor.bytes());
    let missing = || Error::layer(&tensor.name, "the program does not store all of it");
    Ok(tensor.to_tensor(bytes.ok_or_else(missing)?)?)
}

/// DRAM with the inputs at their addresses; it grows when the program stores to it.
fn activations(layout: &Layout, tensors: &Tensors) -> Vec<u8> {
    let mut dram = vec![];
    for tensor in &layout.activations {
        if let Some(values) = tensors.get(&tensor.name) {
            dram.resize(tensor.address, 0);
            dram.extend(tensor.to_dram(values));
        }
    }
    dram
}

fn weights(layout: &Layout, tensors: &Tensors) -> Vec<u8> {
    let mut dram = vec![];
    for weights in &layout.weights {
        let [weight, scale, bias, offset] = weights.keys().map(|(key, _)| tensors.get(&key));
        if let (Some(weight), Some(scale), Some(bias)) = (weight, scale, bias) {
            dram.extend(weights.to_dram([weight, scale, bias], offset));
        }
    }
    dram
}
