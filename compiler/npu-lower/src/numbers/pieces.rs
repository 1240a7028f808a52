//! What the pieces of layers compute.

use super::LayerNumbers;
use crate::layers::{Layers, Pieces};
use irc_npu_schedule::{Share, Source};

impl Pieces {
    /// What the pieces compute of layers that compute `numbers`.
    ///
    /// # Errors
    /// The layer of the graph, and why a piece of it has no numbers.
    pub fn numbers(
        &self,
        whole: &Layers,
        numbers: &[LayerNumbers],
    ) -> Result<Vec<LayerNumbers>, (usize, String)> {
        let part = |source: &Source| {
            let count = whole.network.nodes()[source.layer].layer.output.channels;
            match source.share {
                Share::Whole => numbers[source.layer].part(source.channels.clone(), count),
                _ => Err("it fits the buffers in parts of a sum only, which are no bytes".into()),
            }
        };
        let part = |source: &Source| part(source).map_err(|why| (source.layer, why));
        self.sources.iter().map(part).collect()
    }
}
