//! Inception-ResNet-v1 (Szegedy et al. 2017).

use super::{add_first_of, conv, pool, square, sum};
use crate::diagnostic::Result;
use crate::layer::{Layer, Window};
use crate::network::Network;
use crate::shape::Shape;

/// A convolution of a chain: the end of its name, channels of its result, rows and columns of its window.
type Link = (&'static str, u64, [u64; 2]);

/// A residual block: its letter, extent and channels, and its parallel chains.
struct Block {
    letter: char,
    extent: u64,
    channels: u64,
    chains: &'static [&'static [Link]],
    /// The name of the convolution of the chains' results.
    last: &'static str,
}

const A: Block = Block {
    letter: 'A',
    extent: 35,
    channels: 256,
    chains: &[
        &[("1a_1x1", 32, [1, 1])],
        &[("2a_1x1", 32, [1, 1]), ("2b_3x3", 32, [3, 3])],
        &[("3a_1x1", 32, [1, 1]), ("3b_3x3", 32, [3, 3]), ("3c_3x3", 32, [3, 3])],
    ],
    last: "4_1x1",
};

const B: Block = Block {
    letter: 'B',
    extent: 17,
    channels: 896,
    chains: &[
        &[("1a_1x1", 128, [1, 1])],
        &[("2a_1x1", 128, [1, 1]), ("2b_1x7", 128, [1, 7]), ("2c_7x1", 128, [7, 1])],
    ],
    last: "3_1x1",
};

const C: Block = Block {
    letter: 'C',
    extent: 8,
    channels: 1792,
    chains: &[
        &[("1a_1x1", 192, [1, 1])],
        &[("2a_1x1", 192, [1, 1]), ("2b_1x3", 192, [1, 3]), ("2c_3x1", 192, [3, 1])],
    ],
    last: "3_1x1",
};

/// Inception-ResNet-v1.
///
/// # Errors
/// None: the layers match.
pub fn inception_resnet() -> Result<Network> {
    let mut network = Network::new("inception_resnet");
    let mut last = vec![add_stem(&mut network)?];
    for (block, count) in [(A, 5), (B, 10), (C, 5)] {
        for number in 1..=count {
            last = vec![block.add(&mut network, number, &last)?];
        }
        match block.letter {
            'A' => last = add_first_reduction(&mut network, last[0])?,
            'B' => last = add_second_reduction(&mut network, last[0])?,
            _ => {}
        }
    }
    let last = network.add(pool("AvgPool", square(1792, 1), 8, 8), &last)?;
    let last = network.add(Layer::fully_connected("Dropout", square(1792, 1), 1792), &[last])?;
    network.add(Layer::fully_connected("FC", square(1792, 1), 1000), &[last])?;
    Ok(network)
}

fn add_stem(network: &mut Network) -> Result<usize> {
    let first = conv("Conv_1a_3x3", 3, square(32, 149), 3, 2);
    let mut last = add_first_of(network, first, square(3, 299))?;
    let layers = [
        conv("Conv_2a_3x3", 32, square(32, 147), 3, 1),
        conv("Conv_2b_3x3", 32, square(64, 147), 3, 1),
        pool("MaxPool_3a_3x3", square(64, 73), 3, 2),
        conv("Conv_3b_1x1", 64, square(80, 73), 1, 1),
        conv("Conv_4a_3x3", 80, square(192, 71), 3, 1),
        conv("Conv_4b_3x3", 192, square(256, 35), 3, 2),
    ];
    for layer in layers {
        last = network.add(layer, &[last])?;
    }
    Ok(last)
}

impl Block {
    fn add(&self, network: &mut Network, number: usize, from: &[usize]) -> Result<usize> {
        let name = |part: &str| format!("{}{number}_{part}", self.letter);
        let mut ends = vec![];
        let mut wide = 0;
        for chain in self.chains {
            let (mut reads, mut channels) = (from.to_vec(), self.channels);
            for &(part, to, kernel) in *chain {
                let window = Window { kernel, stride: [1, 1] };
                let output = square(to, self.extent);
                let layer = Layer::conv(name(&format!("Conv_{part}")), channels, output, window);
                reads = vec![network.add(layer, &reads)?];
                channels = to;
            }
            wide += channels;
            ends.extend(reads);
        }
        let output = square(self.channels, self.extent);
        let joined = conv(&name(&format!("Conv_{}", self.last)), wide, output, 1, 1);
        let joined = network.add(joined, &ends)?;
        network.add(sum(&name("Eltwise"), output), &[from, &[joined]].concat())
    }
}

/// From 35 by 35 to 17 by 17.
fn add_first_reduction(network: &mut Network, from: usize) -> Result<Vec<usize>> {
    let map = |channels| square(channels, 35);
    let half = |channels| square(channels, 17);
    let a = network.add(conv("RA_Conv_1a_3x3", 256, half(384), 3, 2), &[from])?;
    let b = network.add(conv("RA_Conv_2a_1x1", 256, map(192), 1, 1), &[from])?;
    let b = network.add(conv("RA_Conv_2b_3x3", 192, map(192), 3, 1), &[b])?;
    let b = network.add(conv("RA_Conv_2c_3x3", 192, half(256), 3, 2), &[b])?;
    let c = network.add(pool("RA_MaxPool_3a_3x3", half(256), 3, 2), &[from])?;
    Ok(vec![a, b, c])
}

/// From 17 by 17 to 8 by 8.
fn add_second_reduction(network: &mut Network, from: usize) -> Result<Vec<usize>> {
    let map: fn(u64) -> Shape = |channels| square(channels, 17);
    let half = |channels| square(channels, 8);
    let a = network.add(pool("RB_MaxPool_1a_3x3", half(896), 3, 2), &[from])?;
    let b = network.add(conv("RB_Conv_2a_1x1", 896, map(256), 1, 1), &[from])?;
    let b = network.add(conv("RB_Conv_2b_3x3", 256, half(384), 3, 2), &[b])?;
    let c = network.add(conv("RB_Conv_3a_1x1", 896, map(256), 1, 1), &[from])?;
    let c = network.add(conv("RB_Conv_3b_3x3", 256, half(256), 3, 2), &[c])?;
    let d = network.add(conv("RB_Conv_4a_1x1", 896, map(256), 1, 1), &[from])?;
    let d = network.add(conv("RB_Conv_4b_3x3", 256, map(256), 3, 1), &[d])?;
    let d = network.add(conv("RB_Conv_4c_3x3", 256, half(256), 3, 2), &[d])?;
    Ok(vec![a, b, c, d])
}
