//! A schedule during the search: segments with their costs.

use std::sync::Arc;

use irc_npu_cost::{
    Cut, LayerCost, Machine, Model, Network, Objective, Result, Scheme, SegmentCost, Tree,
};

/// A segment with its cost.
#[derive(Clone, Debug)]
pub struct Priced {
    /// Its tree; leaves have schemes where a change set them.
    pub tree: Tree,
    /// Its cost, with the scheme of each leaf.
    pub cost: SegmentCost,
}

impl Priced {
    /// The tree with the scheme of each leaf.
    pub fn with_schemes(&self) -> Tree {
        let mut schemes = self.cost.layers.iter().map(|layer| layer.scheme);
        self.tree.clone().with_schemes(&mut schemes)
    }
}

/// The exponent of energy or delay alone, in relation to that of the other.
const ALONE: u32 = 4;

/// Everything that does not change during a search.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// The network.
    pub network: &'a Network,
    /// The machine.
    pub machine: &'a Machine,
    /// Images.
    pub batch: u64,
    /// What is minimised.
    pub objective: Objective,
}

/// A schedule: segments that run one after another, for some images at a time.
#[derive(Clone)]
pub struct State {
    /// Images at a time.
    pub images: u64,
    /// In order.
    pub segments: Vec<Arc<Priced>>,
    /// The number of cores and the scheme of each layer.
    pub placed: Vec<(u64, Scheme)>,
    /// The multiples of the price of a cycle with which each layer's scheme is chosen.
    pub multiples: Vec<f64>,
}

impl Problem<'_> {
    /// The energy and the delay of all images, of segments that run for `images` at a time.
    pub fn totals<'s>(
        &self,
        images: u64,
        segments: impl Iterator<Item = &'s SegmentCost>,
    ) -> (f64, f64) {
        let (mut energy, mut delay) = (0.0, 0.0);
        for segment in segments {
            energy += segment.cost.energy;
            delay += segment.cost.latency as f64;
        }
        let groups = (self.batch / images) as f64;
        (energy * groups, delay * groups)
    }

    /// The objective that guides the search. Energy or delay alone gets a little of the other: many changes
    /// leave the delay as it is, and those among them that save energy prepare others that shorten it.
    pub fn guide(&self) -> Objective {
        match self.objective {
            Objective { energy: 0, delay } => Objective { energy: 1, delay: ALONE * delay },
            Objective { energy, delay: 0 } => Objective { energy: ALONE * energy, delay: 1 },
            both => both,
        }
    }

    /// The objective that guides the search, at these totals.
    pub fn value(&self, (energy, delay): (f64, f64)) -> f64 {
        let power = |base: f64, exponent: u32| (0..exponent).fold(1.0, |all, _| all * base);
        let guide = self.guide();
        power(energy, guide.energy) * power(delay, guide.delay)
    }

    /// pJ that a cycle is worth at these totals: the derivative of the objective by the delay over that
    /// by the energy.
    pub fn price(&self, (energy, delay): (f64, f64)) -> f64 {
        let guide = self.guide();
        energy / delay * f64::from(guide.delay) / f64::from(guide.energy)
    }

    /// The cost of a segment. If given schemes do not fit their cores, they are searched again.
    pub fn segment(
        &self,
        model: &mut Model<'_>,
        tree: Tree,
        prices: &[Option<f64>],
    ) -> Result<Priced> {
        match model.segment(&tree, self.batch, prices) {
            Ok(cost) => Ok(Priced { tree, cost }),
            Err(diagnostic) if diagnostic.code == "cost-scheme" => {
                let tree = tree.without_schemes();
                let cost = model.segment(&tree, self.batch, prices)?;
                Ok(Priced { tree, cost })
            }
            Err(diagnostic) => Err(diagnostic),
        }
    }

    /// The state of segments.
    pub fn state(&self, images: u64, segments: Vec<Arc<Priced>>) -> State {
        let nothing = Scheme { partition: irc_npu_cost::Partition([1; 4]), order: [0, 1, 2, 3] };
        let count = self.network.nodes().len();
        let mut state = State {
            images,
            segments,
            placed: vec![(0, nothing); count],
            multiples: vec![1.0; count],
        };
        for segment in &state.segments {
            place(&mut state.placed, &segment.cost.layers);
        }
        state
    }
}

/// Notes the cores and schemes of layers.
pub fn place(placed: &mut [(u64, Scheme)], layers: &[LayerCost]) {
    for layer in layers {
        placed[layer.layer] = (layer.cores.end - layer.cores.start, layer.scheme);
    }
}

impl State {
    /// Energy and delay.
    pub fn totals(&self, problem: &Problem<'_>) -> (f64, f64) {
        problem.totals(self.images, self.segments.iter().map(|segment| &segment.cost))
    }

    /// The tree, with a scheme at each leaf.
    pub fn tree(&self, problem: &Problem<'_>) -> Tree {
        let all = self.segments.iter().map(|segment| segment.with_schemes());
        Tree::cut(Cut::Time, problem.batch, all.collect())
    }
}
