//! The cost of a schedule: of all of it, of its segments, of its layers.

use irc_diag::{Diagnostic, counted};
use irc_npu_cost::{Cost, Cut, Evaluation, Kind, Machine, Model, Network, Objective, Tree};
use std::fmt::{self, Write};

/// The cost of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Images.
    pub batch: u64,
    /// The cost of all images.
    pub cost: Cost,
    /// Its segments, in order.
    pub segments: Vec<SegmentReport>,
}

/// The cost of a segment: layers that exchange data on the chip.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentReport {
    /// The cost of all images.
    pub cost: Cost,
    /// What limits its speed: `compute`, `links` or `dram`.
    pub bound: &'static str,
    /// Its layers, in order.
    pub layers: Vec<LayerReport>,
}

/// The cost of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerReport {
    /// Its name.
    pub name: String,
    /// Images at a time.
    pub images: u64,
    /// Number of its cores.
    pub cores: u64,
    /// Its scheme, as in the text of trees.
    pub scheme: String,
    /// Cycles and pJ for its images at a time.
    pub cost: Cost,
}

impl Report {
    /// The cost of an evaluated tree.
    ///
    /// # Errors
    /// As [`Model::segment`].
    pub fn new(
        network: &Network,
        machine: &Machine,
        objective: Objective,
        tree: &Tree,
        evaluation: &Evaluation,
    ) -> Result<Self, Box<Diagnostic>> {
        let layer = |layer: &irc_npu_cost::LayerCost| LayerReport {
            name: network.nodes()[layer.layer].layer.name.clone(),
            images: layer.batch,
            cores: layer.cores.end - layer.cores.start,
            scheme: layer.scheme.to_string(),
            cost: layer.cost,
        };
        let mut report = Self { batch: tree.batch, cost: evaluation.cost, segments: vec![] };
        let Kind::Cut(Cut::Time, children) = &tree.kind else {
            let bound =
                if evaluation.cost.traffic < evaluation.cost.latency { "compute" } else { "dram" };
            let layers = evaluation.layers.iter().map(layer).collect();
            report.segments.push(SegmentReport { cost: evaluation.cost, bound, layers });
            return Ok(report);
        };
        let mut model = Model::new(network, machine, objective)?;
        for child in children {
            let found = model.segment(child, tree.batch, &[])?;
            let bound = found.bound(machine).name();
            let groups = tree.batch / child.batch.max(1);
            let cost = times(found.cost, groups);
            let layers = found.layers.iter().map(layer).collect();
            report.segments.push(SegmentReport { cost, bound, layers });
        }
        Ok(report)
    }

    /// Energy times delay.
    pub fn edp(&self) -> f64 {
        self.cost.energy * self.cost.latency as f64
    }
}

/// The cost of several runs, one after the other.
fn times(cost: Cost, count: u64) -> Cost {
    let by = count as f64;
    let parts = irc_npu_cost::Energy {
        buffer: cost.parts.buffer * by,
        local: cost.parts.local * by,
        bus: cost.parts.bus * by,
        compute: cost.parts.compute * by,
        links: cost.parts.links * by,
        dram: cost.parts.dram * by,
    };
    Cost {
        latency: cost.latency.saturating_mul(count),
        energy: cost.energy * by,
        parts,
        traffic: cost.traffic.saturating_mul(count),
    }
}

/// `latency`, `energy` and `edp` in the first three lines, then segments and layers.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "latency {}", counted(self.cost.latency, "cycle"))?;
        writeln!(f, "energy {:.0} pJ", self.cost.energy)?;
        writeln!(f, "edp {:.4e}", self.edp())?;
        let parts = self.cost.parts;
        let shares = [
            ("buffers", parts.buffer),
            ("memories of cores", parts.local),
            ("buses", parts.bus),
            ("computing", parts.compute),
            ("links", parts.links),
            ("dram", parts.dram),
        ];
        let mut line = String::new();
        for (name, energy) in shares {
            let share = 100.0 * energy / self.cost.energy.max(f64::MIN_POSITIVE);
            write!(line, "{}{name} {share:.1} %", if line.is_empty() { "" } else { ", " })?;
        }
        writeln!(f, "energy by part: {line}")?;
        for (number, segment) in self.segments.iter().enumerate() {
            writeln!(
                f,
                "segment {}: {}, {:.0} pJ, bound by {}",
                number + 1,
                counted(segment.cost.latency, "cycle"),
                segment.cost.energy,
                segment.bound
            )?;
            for layer in &segment.layers {
                writeln!(
                    f,
                    "  {}: {} {}, {} at a time: {}, {:.0} pJ",
                    layer.name,
                    counted(layer.cores, "core"),
                    layer.scheme,
                    layer.images,
                    counted(layer.cost.latency, "cycle"),
                    layer.cost.energy
                )?;
            }
        }
        Ok(())
    }
}
