//! VGG (Simonyan and Zisserman 2015).

use super::{add_first, conv, pool, square};
use crate::diagnostic::Result;
use crate::network::Network;

/// Channels, extent and number of the convolutions between two poolings.
const STAGES: [(u64, u64, usize); 5] =
    [(64, 224, 2), (128, 112, 2), (256, 56, 4), (512, 28, 4), (512, 14, 4)];

/// VGG-19 without its fully connected layers, as in the published experiments.
///
/// # Errors
/// None: the layers match.
pub fn vgg19() -> Result<Network> {
    let mut network = Network::new("vgg19");
    let (mut last, mut channels, mut number) = (None, 3, 0);
    for (stage, (wide, extent, count)) in (1..).zip(STAGES) {
        for _ in 0..count {
            number += 1;
            let layer = conv(&format!("conv{number}"), channels, square(wide, extent), 3, 1);
            last = Some(match last {
                None => add_first(&mut network, layer)?,
                Some(from) => network.add(layer, &[from])?,
            });
            channels = wide;
        }
        let layer = pool(&format!("pool{stage}"), square(wide, extent / 2), 2, 2);
        last = last.map(|from| network.add(layer, &[from])).transpose()?;
    }
    Ok(network)
}
