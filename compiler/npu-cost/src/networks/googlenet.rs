//! GoogLeNet (Szegedy et al. 2015).

use super::{add_first, conv, pool, square};
use crate::diagnostic::Result;
use crate::layer::Layer;
use crate::network::Network;

/// An inception module: its name and the channels of its convolutions: 1×1; 3×3 after its
/// reduction; 5×5 after its reduction; after pooling.
type Module = (&'static str, u64, [u64; 2], [u64; 2], u64);

/// Modules of 28 by 28, each with the result that is pooled before it.
const FIRST: [Module; 2] =
    [("3a", 64, [96, 128], [16, 32], 32), ("3b", 128, [128, 192], [32, 96], 64)];

/// Modules of 14 by 14.
const SECOND: [Module; 5] = [
    ("4a", 192, [96, 208], [16, 48], 64),
    ("4b", 160, [112, 224], [24, 64], 64),
    ("4c", 128, [128, 256], [24, 64], 64),
    ("4d", 112, [144, 288], [32, 64], 64),
    ("4e", 256, [160, 320], [32, 128], 128),
];

/// Modules of 7 by 7.
const THIRD: [Module; 2] =
    [("5a", 256, [160, 320], [32, 128], 128), ("5b", 384, [192, 384], [48, 128], 128)];

/// GoogLeNet without the outputs that are used for training only.
///
/// # Errors
/// None: the layers match.
pub fn googlenet() -> Result<Network> {
    let mut network = Network::new("googlenet");
    let first = add_first(&mut network, conv("conv1", 3, square(64, 112), 7, 2))?;
    let first = network.add(pool("pool1", square(64, 56), 3, 2), &[first])?;
    let second = network.add(conv("conv2_3x3_reduce", 64, square(64, 56), 1, 1), &[first])?;
    let second = network.add(conv("conv2_3x3", 64, square(192, 56), 3, 1), &[second])?;

    let (mut last, mut channels) = (vec![second], 192);
    let stages = [(28, &FIRST[..]), (14, &SECOND[..]), (7, &THIRD[..])];
    for (number, (extent, modules)) in (2..).zip(stages) {
        let pooled = pool(&format!("pool{number}"), square(channels, extent), 3, 2);
        last = vec![network.add(pooled, &last)?];
        for module in modules {
            last = add_module(&mut network, module, channels, extent, &last)?;
            channels = module.1 + module.2[1] + module.3[1] + module.4;
        }
    }
    let last = network.add(pool("pool5", square(channels, 1), 7, 7), &last)?;
    network.add(Layer::fully_connected("fc", square(channels, 1), 1000), &[last])?;
    Ok(network)
}

/// Adds a module, and returns the four results that are concatenated.
fn add_module(
    network: &mut Network,
    &(id, point, three, five, pooled): &Module,
    channels: u64,
    extent: u64,
    from: &[usize],
) -> Result<Vec<usize>> {
    let name = |part: &str| format!("inception_{id}_{part}");
    let map = |channels| square(channels, extent);
    let a = network.add(conv(&name("1x1"), channels, map(point), 1, 1), from)?;
    let b = network.add(conv(&name("3x3_reduce"), channels, map(three[0]), 1, 1), from)?;
    let b = network.add(conv(&name("3x3"), three[0], map(three[1]), 3, 1), &[b])?;
    let c = network.add(conv(&name("5x5_reduce"), channels, map(five[0]), 1, 1), from)?;
    let c = network.add(conv(&name("5x5"), five[0], map(five[1]), 5, 1), &[c])?;
    let d = network.add(pool(&name("pool"), map(channels), 3, 1), from)?;
    let d = network.add(conv(&name("pool_proj"), channels, map(pooled), 1, 1), &[d])?;
    Ok(vec![a, b, c, d])
}
