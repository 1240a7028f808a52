//! The result of the search.

use irc_diag::counted;
use std::ops::Range;

use irc_npu_cost::{Bound, Cost, Evaluation, Network, Objective, Tree};

use crate::splits::Splits;

/// The best alternative to a segment that was not chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct RunnerUp {
    /// Its tree, in one line.
    pub shape: String,
    /// The cost of all images; `None` if it is not valid.
    pub cost: Option<Cost>,
    /// Why it was not chosen: how it differs, or what it lacks.
    pub reason: String,
}

/// A part of a schedule whose layers exchange data on the chip; between segments all data pass through DRAM.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Its layers, in the order of the tree.
    pub layers: Vec<usize>,
    /// Its tree, in one line.
    pub shape: String,
    /// The cost of all images.
    pub cost: Cost,
    /// What limits its speed.
    pub bound: Bound,
    /// Cycles that its cores need for all images, without waiting for links and DRAM.
    pub cores: u64,
    /// Cycles that the busiest link needs.
    pub links: u64,
    /// Cycles that DRAM needs.
    pub dram: u64,
    /// The best alternative.
    pub runner_up: Option<RunnerUp>,
}

/// The layer of the given network that a layer of the scheduled one computes, and which part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Index in the given network.
    pub layer: usize,
    /// Output channels.
    pub channels: Range<u64>,
    /// What is computed for them.
    pub share: Share,
}

/// The share of its output channels' work that a layer does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of it.
    Whole,
    /// A sum over these input channels.
    Partial(Range<u64>),
    /// The sum of the partial sums, which it reads.
    Sum,
}

/// A schedule.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The network that the tree schedules: the given one, unless it has layers that fit in no buffers
    /// and are split along their channels.
    pub network: Network,
    /// What each layer of `network` computes.
    pub sources: Vec<Source>,
    /// How the layers of the given network are split.
    pub splits: Splits,
    /// The tree, with a scheme at each leaf.
    pub tree: Tree,
    /// The objective that selects mappings of layers to cores: that of the search, or another whose mappings are better
    /// by it as a whole.
    pub mappings: Objective,
    /// Its cost with these mappings.
    pub evaluation: Evaluation,
    /// Segments in the order of the tree.
    pub segments: Vec<Segment>,
    /// Evaluations of the search.
    pub evaluations: u64,
}

impl std::fmt::Display for Segment {
    /// What was chosen, what limits it, and the best alternative; long trees on several lines.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { shape, cost, bound, cores, links, dram, .. } = self;
        write_tree(f, "chosen:", shape)?;
        writeln!(
            f,
            "{}, {:.0} pJ, bound by {}: layers {cores}, links {links}, dram {}",
            counted(cost.latency, "cycle"),
            cost.energy,
            bound.name(),
            counted(*dram, "cycle")
        )?;
        match &self.runner_up {
            None => writeln!(f, "runner-up: none, a layer alone has no other form"),
            Some(RunnerUp { shape, cost: Some(cost), reason }) => {
                write_tree(f, "runner-up:", shape)?;
                let cycles = counted(cost.latency, "cycle");
                writeln!(f, "{cycles}, {:.0} pJ: {reason}", cost.energy)
            }
            Some(RunnerUp { shape, cost: None, reason }) => {
                write_tree(f, "runner-up:", shape)?;
                writeln!(f, "not valid: {reason}")
            }
        }
    }
}

/// Maximum number of characters of a line of a tree that names do not make longer.
const WIDTH: usize = 100;

/// Writes a line of text, with a tree at its end: on lines of its own unless it fits, children below their cut.
fn write_tree(f: &mut std::fmt::Formatter<'_>, what: &str, shape: &str) -> std::fmt::Result {
    if what.len() + shape.len() < WIDTH {
        return writeln!(f, "{what} {shape}");
    }
    let mut lines = vec![];
    wrap(shape, 2, &mut lines);
    writeln!(f, "{what}")?;
    lines.iter().try_for_each(|line| writeln!(f, "{line}"))
}

/// Appends the trees of a list, as many to a line as fit; of one that does not fit, children are below their cut.
fn wrap(list: &str, indent: usize, lines: &mut Vec<String>) {
    let start = lines.len();
    for tree in trees(list) {
        let cut = tree.split_once('(').and_then(|(cut, rest)| Some((cut, rest.rsplit_once(')')?)));
        match (cut, &mut lines[start..]) {
            (_, [.., line]) if line.len() + 1 + tree.len() <= WIDTH => {
                line.push(' ');
                line.push_str(tree);
            }
            (Some((cut, (children, end))), _) if indent + tree.len() > WIDTH => {
                lines.push(format!("{:indent$}{cut}(", ""));
                wrap(children, indent + 2, lines);
                // The list of a cut is not empty.
                if let Some(last) = lines.last_mut() {
                    last.push(')');
                    last.push_str(end);
                }
            }
            _ => lines.push(format!("{:indent$}{tree}", "")),
        }
    }
}

/// The trees of a list, each with the comma or semicolon behind it.
fn trees(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let parts = list.split_inclusive(move |letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(letter, ',' | ';')
    });
    parts.map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, wrap};

    fn wrapped(shape: &str) -> Vec<String> {
        let mut lines = vec![];
        wrap(shape, 2, &mut lines);
        lines
    }

    #[test]
    fn children_that_do_not_fit_are_below_their_cut() {
        let leaves: Vec<String> = (0..12).map(|leaf| format!("layer_{leaf} 4")).collect();
        let leaves = leaves.join(", ");
        let lines = wrapped(&format!("T 4/1 (first 4, S 4/2 ({leaves}), last 4); alone 4"));
        let expected = [
            "  T 4/1 (",
            "    first 4,",
            "    S 4/2 (",
            "      layer_0 4, layer_1 4, layer_2 4, layer_3 4, layer_4 4, layer_5 4, layer_6 4, layer_7 4,",
            "      layer_8 4, layer_9 4, layer_10 4, layer_11 4), last 4); alone 4",
        ];
        assert_eq!(lines, expected);
        assert!(lines.iter().all(|line| line.len() <= WIDTH));
    }

    #[test]
    fn wrapping_changes_only_blanks() {
        let inner = "a 1, S 1/1 (b 1, c 1), ".repeat(20);
        let shape = format!("T 1/1 ({inner}T 1/1 ({inner}d 1)); e 1");
        let joined = wrapped(&shape).join(" ");
        let dense = |text: &str| text.replace(' ', "");
        assert_eq!(dense(&joined), dense(&shape));
    }
}
