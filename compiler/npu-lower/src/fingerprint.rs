//! Fingerprints of models, by which the host notices that a program is of another model.

use crate::layers::{Layers, Operand};
use crate::numbers::LayerNumbers;
use irc_npu::{Fingerprint, enums::DataSign};
use irc_npu_cost::Op;
use irc_npu_emit::{Arithmetic, Function, Numbers};
use irc_npu_schedule::Splits;
use irc_tensor::Tensor;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

/// What programs of `images` at once contain of a model: hashes of its layers, or of the pieces into which they are
/// split, and of the numbers that are in instructions. Weights are not: a run takes them from the model.
pub fn fingerprint(
    layers: &Layers,
    splits: &Splits,
    numbers: &[LayerNumbers],
    images: u64,
) -> Fingerprint {
    let mut structure = String::new();
    for (node, origin) in layers.network.nodes().iter().zip(&layers.origins) {
        let (layer, window) = (&node.layer, node.layer.window());
        let output = [layer.output.channels, layer.output.rows, layer.output.columns];
        // Writing to a String cannot fail.
        let _ = write!(
            structure,
            "{:?} {} {output:?} {:?} {:?} {:?} {} of",
            layer.name,
            kind(&layer.op),
            window.kernel,
            window.stride,
            origin.padding,
            layer.groups(),
        );
        for operand in &origin.operands {
            let _ = match operand {
                Operand::Layer(layer) => write!(structure, " {layer}"),
                Operand::Value { name, channels: Range { start: 0, end }, .. } => {
                    write!(structure, " {name:?} {end}")
                }
                Operand::Value { name, channels, .. } => {
                    write!(structure, " {name:?} {channels:?}")
                }
            };
        }
        structure.push('\n');
    }
    let numbers =
        numbers.iter().map(|layer| layer.arithmetic.as_ref().map_or_else(String::new, text));
    let numbers: Vec<String> = numbers.collect();
    let numbers = hash(&numbers.join("\n"));
    let splits = (!splits.is_empty()).then(|| splits.to_string());
    Fingerprint { images, layers: hash(&structure), numbers, splits, calibration: None }
}

/// The hash of the samples by which a model was quantised.
pub fn hash_of_samples(samples: &BTreeMap<String, Tensor>) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for (name, tensor) in samples {
        hasher.update(format!("{name:?} {}\n", tensor.ty()).as_bytes());
        hasher.update(tensor.bytes());
    }
    first_bytes(&hasher.finalize())
}

/// The first eight bytes of a BLAKE3 hash.
fn hash(text: &str) -> u64 {
    first_bytes(&blake3::hash(text.as_bytes()))
}

fn first_bytes(hash: &blake3::Hash) -> u64 {
    hash.as_bytes().iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte))
}

fn kind(op: &Op) -> String {
    match op {
        Op::Conv { channels, .. } | Op::GroupedConv { channels, .. } => format!("conv {channels}"),
        Op::Pool(_) => "pool".into(),
        Op::Eltwise { operands } => format!("eltwise {operands}"),
        Op::Pointwise => "pointwise".into(),
        Op::Transpose { order } => format!("transpose {:?}", order.map(|axis| axis as usize)),
    }
}

/// The numbers of a layer, floats by their bits.
fn text(numbers: &Numbers) -> String {
    let sign = |sign: DataSign| match sign {
        DataSign::Signed => 'i',
        DataSign::Unsigned => 'u',
    };
    let pair =
        |(factor, summand): (f32, f32)| format!("{:x} {:x}", factor.to_bits(), summand.to_bits());
    let arithmetic = match numbers.arithmetic {
        Arithmetic::Convolution { outside, relu } => format!("conv {outside} {relu}"),
        Arithmetic::Vector { function, first, second } => {
            let function = match function {
                Function::Same => "same".into(),
                Function::Table => "table".into(),
                Function::WindowSum => "sum of window".into(),
                Function::WindowMean => "mean of window".into(),
                Function::Product { relu } => format!("product {relu}"),
                Function::Sum { relu, last } => format!("sum {relu} {last}"),
            };
            format!("{function} {} {}", pair(first), pair(second))
        }
    };
    let (input, output) = (sign(numbers.input), sign(numbers.output));
    let table = numbers.table.map_or_else(String::new, |table| format!(" {table:?}"));
    format!("{input} {output} {:x} {} {arithmetic}{table}", numbers.factor.to_bits(), numbers.zero)
}
