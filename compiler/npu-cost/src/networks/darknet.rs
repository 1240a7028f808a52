//! Darknet-19 (Redmon and Farhadi 2017).

use super::{add_first, conv, pool, square};
use crate::diagnostic::Result;
use crate::network::Network;

/// The stages: channels of the wide convolutions, extent, and number of convolutions, of which every
/// second has a window of one element and half the channels.
const STAGES: [(u64, u64, usize); 6] =
    [(32, 224, 1), (64, 112, 1), (128, 56, 3), (256, 28, 3), (512, 14, 5), (1024, 7, 5)];

/// Darknet-19.
///
/// # Errors
/// None: the layers match.
pub fn darknet19() -> Result<Network> {
    let mut network = Network::new("darknet19");
    let (mut last, mut channels, mut number) = (None, 3, 0);
    for (stage, (wide, extent, count)) in (1..).zip(STAGES) {
        for at in 0..count {
            number += 1;
            let (to, kernel) = if at % 2 == 0 { (wide, 3) } else { (wide / 2, 1) };
            let layer = conv(&format!("conv{number}"), channels, square(to, extent), kernel, 1);
            last = Some(match last {
                None => add_first(&mut network, layer)?,
                Some(from) => network.add(layer, &[from])?,
            });
            channels = to;
        }
        if stage < STAGES.len() {
            let layer = pool(&format!("pool{stage}"), square(wide, extent / 2), 2, 2);
            last = last.map(|from| network.add(layer, &[from])).transpose()?;
        }
    }
    let ends =
        [conv("conv19", channels, square(1000, 7), 1, 1), pool("pool_avg", square(1000, 1), 7, 7)];
    for layer in ends {
        last = last.map(|from| network.add(layer, &[from])).transpose()?;
    }
    Ok(network)
}
