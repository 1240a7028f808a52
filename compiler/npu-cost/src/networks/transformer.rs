//! Transformers (Vaswani et al. 2017), BERT (Devlin et al. 2019), and GPT-2 (Radford et al. 2019).
//!
//! A sequence is a map of one column: tokens are rows, features channels. Products of activations are
//! grouped convolutions, one group per head, whose weights are activations.

use super::sum;
use crate::diagnostic::Result;
use crate::layer::{Axis, Layer, Op, Window};
use crate::network::{Network, Reads};
use crate::shape::Shape;

/// Exchanges tokens and features.
const EXCHANGE: Op = Op::Transpose { order: [Axis::Rows, Axis::Channels, Axis::Columns] };

/// Size of the vocabulary of the last layer.
const WORDS: u64 = 1000;

/// Extents of a transformer.
#[derive(Clone, Copy)]
struct Extents {
    tokens: u64,
    /// Tokens whose keys and values are known.
    earlier: u64,
    heads: u64,
    head: u64,
    /// Features between the two layers of a feed-forward part.
    inner: u64,
    /// Whether the heads' keys are concatenated by a copy before they are used.
    gathers_keys: bool,
}

/// GPT-2 XL, with as many features in its feed-forward part as in the published experiments, on a prompt.
const PROMPT: Extents =
    Extents { tokens: 512, earlier: 0, heads: 25, head: 64, inner: 2048, gathers_keys: false };

/// One block of BERT-Large on 512 tokens, between an embedding and a projection.
///
/// The feed-forward part has 2,048 features, as in the published experiments, not 4,096.
///
/// # Errors
/// None: the layers match.
pub fn bert_block() -> Result<Network> {
    let extents = Extents { heads: 16, ..PROMPT };
    let mut network = Network::new("bert_block");
    let words = extents.add_embedding(&mut network, "word_embed")?;
    let last = extents.add_encoder(&mut network, "block1", words)?;
    extents.add_projection(&mut network, last)?;
    Ok(network)
}

/// One block of GPT-2 XL on the 512 tokens of a prompt, between an embedding and a projection.
///
/// # Errors
/// None: the layers match.
pub fn gpt_prefill() -> Result<Network> {
    let mut network = Network::new("gpt_prefill");
    let words = PROMPT.add_embedding(&mut network, "word_embed")?;
    let last = PROMPT.add_encoder(&mut network, "block1", words)?;
    PROMPT.add_projection(&mut network, last)?;
    Ok(network)
}

/// The same block on one token after 512, whose keys and values come from outside.
///
/// # Errors
/// None: the layers match.
pub fn gpt_decode() -> Result<Network> {
    let mut network = Network::new("gpt_decode");
    let extents = Extents { tokens: 1, earlier: 512, gathers_keys: true, ..PROMPT };
    let words = extents.add_embedding(&mut network, "word_embed")?;
    let last = extents.add_encoder(&mut network, "block1", words)?;
    extents.add_projection(&mut network, last)?;
    Ok(network)
}

/// One encoder and one decoder of the base Transformer on 512 tokens.
///
/// # Errors
/// None: the layers match.
pub fn transformer_cell() -> Result<Network> {
    let extents = Extents { heads: 8, gathers_keys: true, ..PROMPT };
    let mut network = Network::new("transformer_cell");
    let words = extents.add_embedding(&mut network, "word_embed_enc")?;
    let encoded = extents.add_encoder(&mut network, "encoder", words)?;
    let words = extents.add_embedding(&mut network, "word_embed_dec")?;
    let last = extents.add_decoder(&mut network, "decoder", words, encoded)?;
    extents.add_projection(&mut network, last)?;
    Ok(network)
}

/// The weights of an output feature for every token: a window of one element.
fn dense(name: String, from: u64, to: Shape) -> Layer {
    Layer::conv(name, from, to, Window::POINT)
}

impl Extents {
    fn features(self) -> u64 {
        self.heads * self.head
    }

    /// A sequence of vectors of `features` features.
    fn sequence(self, features: u64) -> Shape {
        Shape::new(features, self.tokens, 1)
    }

    fn add_embedding(self, network: &mut Network, name: &str) -> Result<usize> {
        let words = self.sequence(self.features());
        let reads = Reads { external: Some(words), ..Reads::default() };
        network.add_reading(Layer::new(name, Op::Pointwise, words), reads)
    }

    fn add_projection(self, network: &mut Network, from: usize) -> Result<usize> {
        network.add(dense("proj".into(), self.features(), self.sequence(WORDS)), &[from])
    }

    fn add_encoder(self, network: &mut Network, name: &str, from: usize) -> Result<usize> {
        let seen = self.add_attention(network, name, from, from)?;
        let seen = self.add_sum(network, format!("{name}_elt1"), [from, seen])?;
        let fed = self.add_feed_forward(network, name, seen)?;
        self.add_sum(network, format!("{name}_elt2"), [seen, fed])
    }

    fn add_decoder(
        self,
        network: &mut Network,
        name: &str,
        from: usize,
        encoded: usize,
    ) -> Result<usize> {
        let own = self.add_attention(network, &format!("{name}_1"), from, from)?;
        let own = self.add_sum(network, format!("{name}_elt1"), [from, own])?;
        let seen = self.add_attention(network, &format!("{name}_2"), own, encoded)?;
        let seen = self.add_sum(network, format!("{name}_elt2"), [own, seen])?;
        let fed = self.add_feed_forward(network, name, seen)?;
        self.add_sum(network, format!("{name}_elt3"), [seen, fed])
    }

    fn add_sum(self, network: &mut Network, name: String, of: [usize; 2]) -> Result<usize> {
        network.add(sum(&name, self.sequence(self.features())), &of)
    }

    fn add_feed_forward(self, network: &mut Network, name: &str, from: usize) -> Result<usize> {
        let (inner, outer) = (self.sequence(self.inner), self.sequence(self.features()));
        let first = dense(format!("{name}_feedfwd1"), self.features(), inner);
        let first = network.add(first, &[from])?;
        network.add(dense(format!("{name}_feedfwd2"), self.inner, outer), &[first])
    }

    /// Queries are computed from `from`, keys and values from `of`.
    fn add_attention(
        self,
        network: &mut Network,
        name: &str,
        from: usize,
        of: usize,
    ) -> Result<usize> {
        let features = self.features();
        let all = self.sequence(features);
        let query = network.add(dense(format!("{name}_Q"), features, all), &[from])?;
        let keys = self.add_keys(network, name, of)?;
        let value = self.add_values(network, name, of)?;

        let scores = self.sequence(self.heads * self.seen());
        let score = self.product(format!("{name}_QK"), features, scores);
        let reads = Reads { inputs: &[query], weights: &keys, external: None };
        let score = network.add_reading(score, reads)?;
        let soft = Layer::new(format!("{name}_QK_elt"), Op::Pointwise, scores);
        let soft = network.add(soft, &[score])?;
        let seen = self.product(format!("{name}_QKV"), scores.channels, all);
        let reads = Reads { inputs: &[soft], weights: &[value], external: None };
        let seen = network.add_reading(seen, reads)?;
        network.add(dense(format!("{name}_FC"), features, all), &[seen])
    }

    /// The keys of each head, with tokens and features exchanged.
    fn add_keys(self, network: &mut Network, name: &str, of: usize) -> Result<Vec<usize>> {
        let mut keys = vec![];
        for head in 0..self.heads {
            let key = dense(format!("{name}_K{head}"), self.features(), self.sequence(self.head));
            let key = network.add(key, &[of])?;
            let turned = Shape::new(self.tokens, self.head, 1);
            let turned = Layer::new(format!("{name}_Kt{head}"), EXCHANGE, turned);
            keys.push(network.add(turned, &[key])?);
        }
        if self.gathers_keys {
            let all = Shape::new(self.heads * self.seen(), self.head, 1);
            let all = Layer::new(format!("{name}_K"), Op::Pointwise, all);
            let external = self.known(self.heads * self.earlier, self.head);
            let reads = Reads { inputs: &keys, external, ..Reads::default() };
            keys = vec![network.add_reading(all, reads)?];
        }
        Ok(keys)
    }

    /// The values; if some are known, a row for each token, as weights.
    fn add_values(self, network: &mut Network, name: &str, of: usize) -> Result<usize> {
        let features = self.features();
        let made = dense(format!("{name}_V"), features, self.sequence(features));
        let made = network.add(made, &[of])?;
        if self.earlier == 0 {
            return Ok(made);
        }
        let turned = Shape::new(self.tokens, features, 1);
        let turned = Layer::new(format!("{name}_Vt1"), EXCHANGE, turned);
        let turned = network.add(turned, &[made])?;
        let all = Layer::new(format!("{name}_Vt2"), EXCHANGE, Shape::new(features, self.seen(), 1));
        let external = self.known(self.earlier, features);
        network.add_reading(all, Reads { inputs: &[turned], external, ..Reads::default() })
    }

    /// Tokens that a token attends to.
    fn seen(self) -> u64 {
        self.earlier + self.tokens
    }

    /// Input from outside, if there are earlier tokens.
    fn known(self, channels: u64, rows: u64) -> Option<Shape> {
        (self.earlier > 0).then(|| Shape::new(channels, rows, 1))
    }

    /// A matrix product per head.
    fn product(self, name: String, channels: u64, output: Shape) -> Layer {
        let op = Op::GroupedConv { channels, window: Window::POINT, groups: self.heads };
        Layer::new(name, op, output)
    }
}
