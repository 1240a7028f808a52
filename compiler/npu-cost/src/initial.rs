//! The initial tree of searches.

use crate::diagnostic::{Result, error};
use crate::evaluate::{Evaluation, Model};
use crate::network::Network;
use crate::tree::{Cut, Tree};

/// One layer after another on all cores, all data through DRAM, `images` of a batch at a time.
pub fn layer_by_layer(network: &Network, batch: u64, images: u64) -> Tree {
    let leaves = (0..network.nodes().len()).map(|layer| Tree::leaf(layer, images)).collect();
    Tree::cut(Cut::Time, batch, leaves)
}

/// The initial tree of the search: layer by layer with as many images at a time as the buffers hold,
/// halved starting from the whole batch (SET, `main.cpp`).
///
/// # Errors
/// The error for the smallest number of images, if the buffers do not hold even that.
pub fn initial(model: &mut Model<'_>, network: &Network, batch: u64) -> Result<(Tree, Evaluation)> {
    let mut last = Err(error("cost-tree-batch", "a batch is not empty"));
    let halves = std::iter::successors(Some(batch), |images| Some(images / 2));
    for images in halves.take_while(|images| *images > 0) {
        if batch.is_multiple_of(images) {
            let tree = layer_by_layer(network, batch, images);
            last = model.evaluate(&tree).map(|evaluation| (tree, evaluation));
        }
        if last.is_ok() {
            break;
        }
    }
    last
}
