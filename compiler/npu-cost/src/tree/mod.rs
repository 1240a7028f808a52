//! Schedules as trees of resource allocation ("RA trees", SET section 3).
//!
//! A cut runs its children repeatedly, each time on one group of the batch: in turn on all its
//! cores (temporal), or at once, each on some of them, as a pipeline (spatial). Leaves are layers.
//!
//! In text, a node is a line, indented by one tab more than its parent:
//!
//! ```text
//! T 4/2              images / groups of them
//!     S 2/2
//!         conv1 1    images
//!         pool1 1 (H:2,W:2,B:1,K:1)
//!     fc 2
//! ```
//!
//! A leaf may state its scheme. The files `*_tree.txt` of SET have this format.

mod parse;
mod resolve;

pub use parse::{parse, parse_placed};
pub(crate) use resolve::{CutStep, Extent, Facts, LeafStep, Step, StepKind, resolve};

use std::ops::Range;

use crate::network::Network;
use crate::partition::Scheme;

/// Maximum depth of trees.
const MAX_DEPTH: usize = 64;

/// How the children of a cut run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// In turn, each on all cores.
    Time,
    /// At once, each on some cores.
    Space,
}

/// The kind of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A layer, by its index in the network, and its scheme if one is given.
    Leaf(usize, Option<Scheme>),
    /// A cut with its children, in topological order.
    Cut(Cut, Vec<Tree>),
}

/// A node with its subtree.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// Images at a time.
    pub batch: u64,
    /// The kind.
    pub kind: Kind,
    /// Its span in the text, if it was parsed.
    pub span: Option<Range<usize>>,
}

impl Tree {
    /// A layer without a scheme.
    pub fn leaf(layer: usize, batch: u64) -> Self {
        Self { batch, kind: Kind::Leaf(layer, None), span: None }
    }

    /// A cut.
    pub fn cut(cut: Cut, batch: u64, children: Vec<Self>) -> Self {
        Self { batch, kind: Kind::Cut(cut, children), span: None }
    }

    /// The same tree without schemes.
    #[must_use]
    pub fn without_schemes(mut self) -> Self {
        match &mut self.kind {
            Kind::Leaf(_, scheme) => *scheme = None,
            Kind::Cut(_, children) => {
                let all = std::mem::take(children);
                *children = all.into_iter().map(Self::without_schemes).collect();
            }
        }
        self
    }

    /// The tree with other schemes, which are in the order of its leaves.
    #[must_use]
    pub fn with_schemes(mut self, schemes: &mut impl Iterator<Item = Scheme>) -> Self {
        match &mut self.kind {
            Kind::Leaf(_, scheme) => *scheme = schemes.next(),
            Kind::Cut(_, children) => {
                let all = std::mem::take(children);
                *children = all.into_iter().map(|child| child.with_schemes(schemes)).collect();
            }
        }
        self
    }

    /// The text of the tree.
    pub fn text(&self, network: &Network) -> String {
        let mut out = String::new();
        self.write(network, 0, &mut out);
        out
    }

    fn write(&self, network: &Network, depth: usize, out: &mut String) {
        out.push_str(&"\t".repeat(depth));
        match &self.kind {
            Kind::Leaf(layer, scheme) => {
                let name = network.nodes().get(*layer).map_or("?", |node| &node.layer.name);
                let scheme = scheme.map_or_else(String::new, |scheme| format!(" {scheme}"));
                *out += &format!("{name} {}{scheme}\n", self.batch);
            }
            Kind::Cut(cut, children) => {
                let letter = if *cut == Cut::Time { 'T' } else { 'S' };
                let groups = children.first().map_or(1, |child| self.batch / child.batch.max(1));
                *out += &format!("{letter} {}/{groups}\n", self.batch);
                children.iter().for_each(|child| child.write(network, depth + 1, out));
            }
        }
    }
}
