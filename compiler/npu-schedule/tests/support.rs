//! Networks and machines of the tests.

use irc_npu_cost::{Layer, Machine, Mesh, Network, Objective, Op, Reads, Shape, Window, networks};

/// The published machine with a mesh.
pub fn mesh(width: u64, height: u64) -> Machine {
    Machine::polar(Mesh { width, height, stride: 1 })
}

/// A published network.
pub fn published(name: &str) -> Network {
    let (_, build) = networks::ALL.into_iter().find(|(known, _)| *known == name).expect("known");
    build().expect("a network")
}

/// A chain of convolutions of 3 by 3 with some channels.
pub fn chain(layers: usize, channels: u64, extent: u64) -> Network {
    let map = Shape::new(channels, extent, extent);
    let mut network = Network::new("chain");
    let mut last = None;
    for layer in 0..layers {
        let conv = Layer::conv(format!("conv{layer}"), channels, map, Window::square(3, 1));
        last = Some(match last {
            None => {
                let reads = Reads { external: Some(map), ..Reads::default() };
                network.add_reading(conv, reads).expect("a layer")
            }
            Some(from) => network.add(conv, &[from]).expect("a layer"),
        });
    }
    network
}

/// Two convolutions of a map, and their sum.
pub fn diamond(channels: u64, extent: u64) -> Network {
    let mut network = chain(1, channels, extent);
    let map = Shape::new(channels, extent, extent);
    let conv = |name: &str| Layer::conv(name, channels, map, Window::POINT);
    let a = network.add(conv("a"), &[0]).expect("a layer");
    let b = network.add(conv("b"), &[0]).expect("a layer");
    network.add(Layer::new("sum", Op::Eltwise { operands: 2 }, map), &[a, b]).expect("a layer");
    network
}

/// The energy-delay product.
pub fn product(cost: &irc_npu_cost::Cost) -> f64 {
    Objective::EDP.of(cost.energy, cost.latency)
}
