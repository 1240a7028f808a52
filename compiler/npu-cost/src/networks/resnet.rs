//! ResNet (He et al. 2016) and ResNeXt (Xie et al. 2017), with bottleneck blocks.

use super::{add_first, conv, pool, square, sum};
use crate::diagnostic::Result;
use crate::layer::{Layer, Op, Window};
use crate::network::Network;
use crate::shape::Shape;

/// ResNet-50.
///
/// # Errors
/// None: the layers match.
pub fn resnet50() -> Result<Network> {
    resnet("resnet50", [3, 4, 6, 3], 1)
}

/// ResNet-101.
///
/// # Errors
/// None: the layers match.
pub fn resnet101() -> Result<Network> {
    resnet("resnet101", [3, 4, 23, 3], 1)
}

/// ResNeXt-50 with 32 groups, and as many channels as ResNet-50, as in Gemini's experiments.
///
/// # Errors
/// None: the layers match.
pub fn resnext50() -> Result<Network> {
    resnet("resnext50", [3, 4, 6, 3], 32)
}

/// Four segments of blocks, each with half the extent and twice the channels of the previous one.
///
/// The convolutions of 3 by 3 have `groups` groups.
fn resnet(name: &str, blocks: [usize; 4], groups: u64) -> Result<Network> {
    let mut network = Network::new(name);
    let first = add_first(&mut network, conv("conv1", 3, square(64, 112), 7, 2))?;
    let mut last = network.add(pool("pool1", square(64, 56), 3, 2), &[first])?;
    let (mut channels, mut extent, mut inner) = (64, 56, 64);
    for (segment, count) in (2..).zip(blocks) {
        for block in 0..count {
            let name = format!("conv_{segment}_{block}");
            let shape = Block { segment, block, channels, inner, extent, groups };
            last = shape.add(&mut network, &name, last)?;
            channels = 4 * inner;
        }
        (extent, inner) = (extent / 2, 2 * inner);
    }
    let last = network.add(pool("pool5", square(channels, 1), 7, 7), &[last])?;
    network.add(Layer::fully_connected("fc", square(channels, 1), 1000), &[last])?;
    Ok(network)
}

/// A bottleneck block; the first of a segment has a convolution on its shortcut.
struct Block {
    segment: usize,
    block: usize,
    channels: u64,
    inner: u64,
    extent: u64,
    groups: u64,
}

impl Block {
    fn add(&self, network: &mut Network, name: &str, from: usize) -> Result<usize> {
        let (inner, outer) = (square(self.inner, self.extent), square(4 * self.inner, self.extent));
        let first = self.block == 0;
        let stride = if first && self.segment > 2 { 2 } else { 1 };
        let a = conv(&format!("{name}_a"), self.channels, inner, 1, stride);
        let a = network.add(a, &[from])?;
        let b = network.add(self.middle(format!("{name}_b"), inner), &[a])?;
        let c = network.add(conv(&format!("{name}_c"), self.inner, outer, 1, 1), &[b])?;
        let mut shortcut = from;
        if first {
            let name = format!("conv_{}_br", self.segment);
            shortcut = network.add(conv(&name, self.channels, outer, 1, stride), &[from])?;
        }
        network.add(sum(&format!("{name}_res"), outer), &[shortcut, c])
    }

    fn middle(&self, name: String, output: Shape) -> Layer {
        let window = Window::square(3, 1);
        match self.groups {
            1 => Layer::conv(name, self.inner, output, window),
            groups => {
                let op = Op::GroupedConv { channels: self.inner, window, groups };
                Layer::new(name, op, output)
            }
        }
    }
}
