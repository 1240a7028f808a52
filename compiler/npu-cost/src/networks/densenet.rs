//! DenseNet (Huang et al. 2017).

use super::{add_first, conv, pool, square};
use crate::diagnostic::Result;
use crate::layer::Layer;
use crate::network::Network;

/// Layers of each dense block.
const BLOCKS: [usize; 4] = [6, 12, 24, 16];
/// Channels that each layer of a block adds.
const GROWTH: u64 = 32;

/// DenseNet-121.
///
/// # Errors
/// None: the layers match.
pub fn densenet() -> Result<Network> {
    let mut network = Network::new("densenet");
    let first = add_first(&mut network, conv("conv0", 3, square(64, 112), 7, 2))?;
    let mut all = vec![network.add(pool("pool0", square(64, 56), 3, 2), &[first])?];
    let (mut channels, mut extent) = (64, 56);
    for (block, layers) in (1..).zip(BLOCKS) {
        for layer in 0..layers {
            let name = format!("block_{block}_{layer}");
            let narrow = conv(&format!("{name}_1x1"), channels, square(4 * GROWTH, extent), 1, 1);
            let narrow = network.add(narrow, &all)?;
            let grown = conv(&format!("{name}_3x3"), 4 * GROWTH, square(GROWTH, extent), 3, 1);
            all.push(network.add(grown, &[narrow])?);
            channels += GROWTH;
        }
        if block < BLOCKS.len() {
            all = vec![add_transition(&mut network, block, channels, extent, &all)?];
            (channels, extent) = (channels / 2, extent / 2);
        }
    }
    let last = network.add(pool("pool_avg", square(channels, 1), extent, extent), &all)?;
    network.add(Layer::fully_connected("fc", square(channels, 1), 1000), &[last])?;
    Ok(network)
}

/// Halves the number of channels and the extent.
fn add_transition(
    network: &mut Network,
    block: usize,
    channels: u64,
    extent: u64,
    from: &[usize],
) -> Result<usize> {
    let name = |part: &str| format!("trans_{block}_{part}");
    let half = square(channels / 2, extent);
    let narrow = network.add(conv(&name("1x1"), channels, half, 1, 1), from)?;
    network.add(pool(&name("pool"), square(channels / 2, extent / 2), 2, 2), &[narrow])
}
