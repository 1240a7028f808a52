//! Networks of the published experiments, as tables of layers.

mod darknet;
mod densenet;
mod googlenet;
mod inception_resnet;
mod resnet;
mod transformer;
mod vgg;
mod zfnet;

pub use darknet::darknet19;
pub use densenet::densenet;
pub use googlenet::googlenet;
pub use inception_resnet::inception_resnet;
pub use resnet::{resnet50, resnet101, resnext50};
pub use transformer::{bert_block, gpt_decode, gpt_prefill, transformer_cell};
pub use vgg::vgg19;
pub use zfnet::zfnet;

use crate::diagnostic::Result;
use crate::layer::{Layer, Op, Window};
use crate::network::{Network, Reads};
use crate::shape::Shape;

/// Builds a network.
pub type Builder = fn() -> Result<Network>;

/// All networks, by their names on SET's command line; `resnext50` is on Gemini's.
pub const ALL: [(&str, Builder); 13] = [
    ("bert", bert_block),
    ("darknet", darknet19),
    ("dense", densenet),
    ("goog", googlenet),
    ("gpt_decode", gpt_decode),
    ("gpt_prefill", gpt_prefill),
    ("ires", inception_resnet),
    ("resnet", resnet50),
    ("resnet101", resnet101),
    ("resnext50", resnext50),
    ("trans_cell", transformer_cell),
    ("vgg", vgg19),
    ("zfnet", zfnet),
];

/// The shape of a picture of 224 by 224 pixels with three colours.
const PICTURE: Shape = Shape::new(3, 224, 224);

/// A square map.
const fn square(channels: u64, extent: u64) -> Shape {
    Shape::new(channels, extent, extent)
}

/// A square convolution to a square map.
fn conv(name: &str, channels: u64, output: Shape, kernel: u64, stride: u64) -> Layer {
    Layer::conv(name, channels, output, Window::square(kernel, stride))
}

/// A square pooling to a square map.
fn pool(name: &str, output: Shape, kernel: u64, stride: u64) -> Layer {
    Layer::new(name, Op::Pool(Window::square(kernel, stride)), output)
}

/// The sum of two maps.
fn sum(name: &str, output: Shape) -> Layer {
    Layer::new(name, Op::Eltwise { operands: 2 }, output)
}

/// Adds the layer that reads the picture.
fn add_first(network: &mut Network, layer: Layer) -> Result<usize> {
    add_first_of(network, layer, PICTURE)
}

/// Adds the layer that reads a picture of this shape.
fn add_first_of(network: &mut Network, layer: Layer, picture: Shape) -> Result<usize> {
    network.add_reading(layer, Reads { external: Some(picture), ..Reads::default() })
}
