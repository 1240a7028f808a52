//! ZFNet (Zeiler and Fergus 2014).

use super::{add_first, conv, pool, square};
use crate::diagnostic::Result;
use crate::layer::Layer;
use crate::network::Network;

/// ZFNet.
///
/// # Errors
/// None: the layers match.
pub fn zfnet() -> Result<Network> {
    let mut network = Network::new("zfnet");
    let mut last = add_first(&mut network, conv("conv1", 3, square(96, 110), 7, 2))?;
    let layers = [
        pool("pool1", square(96, 55), 3, 2),
        conv("conv2", 96, square(256, 26), 5, 2),
        pool("pool2", square(256, 13), 3, 2),
        conv("conv3", 256, square(512, 13), 3, 1),
        conv("conv4", 512, square(1024, 13), 3, 1),
        conv("conv5", 1024, square(512, 13), 3, 1),
        pool("pool3", square(512, 6), 3, 2),
        Layer::fully_connected("fc1", square(512, 6), 4096),
        Layer::fully_connected("fc2", square(4096, 1), 4096),
        Layer::fully_connected("fc3", square(4096, 1), 1000),
    ];
    for layer in layers {
        last = network.add(layer, &[last])?;
    }
    Ok(network)
}
