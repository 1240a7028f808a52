//! What the pieces of layers compute.

use super::LayerNumbers;
use crate::layers::{Layers, Pieces};
use irc_diag::Diagnostic;
use irc_npu_schedule::{Share, Source};
use irc_tl::Graph;

impl Pieces {
    /// What the pieces compute of the layers of a graph that compute `numbers`.
    ///
    /// # Errors
    /// `layer-numbers` for the first layer of which a piece has no numbers, at its node.
    pub fn numbers(
        &self,
        graph: &Graph,
        whole: &Layers,
        numbers: &[LayerNumbers],
    ) -> Result<Vec<LayerNumbers>, Diagnostic> {
        let part = |source: &Source| {
            let count = whole.network.nodes()[source.layer].layer.output.channels;
            match source.share {
                Share::Whole => numbers[source.layer].part(source.channels.clone(), count),
                _ => Err("it fits the buffers in parts of a sum only, which are no bytes".into()),
            }
        };
        let located = |source: &Source, why: String| {
            whole.locate(graph, source.layer, Diagnostic::error("layer-numbers", why))
        };
        let sources = self.sources.iter();
        sources.map(|source| part(source).map_err(|why| located(source, why))).collect()
    }
}
