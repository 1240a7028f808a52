//! Networks whose layers fit the buffers: a layer that does not is split along its output channels. If its
//! input is too large, or a tile of it does not fit the smaller memories, a convolution is split along its
//! input channels too, and the partial sums are added by a layer of their own.
//!
//! Pieces of a layer are layers of the network that is scheduled. Who reads a result reads its pieces, one
//! after another. A piece of a layer that works channel by channel reads only its channels, so that the
//! layers that it reads are split as well.

use std::collections::BTreeSet;
use std::ops::Range;

use irc_diag::{Diagnostic, counted};
use irc_npu_cost::{Layer, Machine, Need, Network, Node, Op, Reads, Result, Shape};

use crate::result::{Share, Source};
use crate::splits::{Split, Splits};

/// Maximum number of pieces of a layer.
const MAX_PIECES: u64 = 256;

/// How layers are split so that all fit.
///
/// # Errors
/// `schedule-no-room` if a layer fits in no number of pieces; `cost-…` if the network would be too large.
pub fn split(network: &Network, machine: &Machine) -> Result<Splits> {
    let mut cuts: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); network.nodes().len()];
    let mut counts = vec![1; network.nodes().len()];
    // The number of partial sums of each layer.
    let mut depths = vec![1; network.nodes().len()];
    let grains = grains(network);
    let mut tightest: Option<Box<Diagnostic>> = None;
    loop {
        // With too many pieces, the network would be too large.
        let (pieces, sources) =
            build(network, &cuts, &depths).map_err(|error| match tightest.take() {
                Some(tightest) => Box::new(
                    tightest
                        .with_note(format!("the next pieces would be too many: {}", error.message)),
                ),
                None => error,
            })?;
        let count = pieces.nodes().len();
        let needs = (0..count).map(|layer| (layer, Need::of(&pieces, layer, machine)));
        let tight: Vec<(usize, Need)> = needs.filter(|(_, need)| !need.fits(machine)).collect();
        if tight.is_empty() {
            return Ok(splits(&cuts, &depths));
        }
        let mut grown = BTreeSet::new();
        tightest = None;
        for (piece, need) in tight {
            let layer = sources[piece].layer;
            if !grown.insert(layer) {
                continue;
            }
            let node = &network.nodes()[layer];
            let count = counts[layer] * depths[layer];
            tightest.get_or_insert_with(|| no_room(node, &need, count, machine));
            let is_deep = sources[piece].share != Share::Sum
                && (!need.is_mapped || need.output + need.inputs >= machine.buffer.size);
            if let (Op::Conv { channels, .. }, true) = (&node.layer.op, is_deep) {
                depths[layer] *= 2;
                if depths[layer] <= (*channels).min(MAX_PIECES) {
                    continue;
                }
                return Err(no_room(node, &need, depths[layer] / 2, machine));
            }
            let most = (node.layer.output.channels / grains[layer]).min(MAX_PIECES);
            let excess = need.bytes().div_ceil(machine.buffer.size).max(2);
            let wanted = (counts[layer] * excess.min(4)).min(most);
            if wanted <= counts[layer] {
                return Err(no_room(node, &need, counts[layer], machine));
            }
            counts[layer] = wanted;
            cuts[layer] = boundaries(&node.layer, grains[layer], wanted);
        }
        spread(network, &grains, &depths, &mut cuts).map_err(|layer| {
            let need = Need::of(network, layer, machine);
            no_room(&network.nodes()[layer], &need, 1, machine)
        })?;
    }
}

/// The network of the pieces of layers, and what each piece computes.
///
/// # Errors
/// `schedule-split` for pieces that layers of this network cannot have; `cost-…` if the network would be too large.
pub fn pieces(network: &Network, splits: &Splits) -> Result<(Network, Vec<Source>)> {
    let nodes = network.nodes();
    let mut cuts: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); nodes.len()];
    let mut depths = vec![1; nodes.len()];
    let wrong = |layer: usize| {
        let name = nodes.get(layer).map_or("that the network lacks", |node| &node.layer.name);
        let message = format!("layer {name} cannot be split into the stated pieces");
        Box::new(Diagnostic::error("schedule-split", message))
    };
    for (&layer, Split { cuts: own, sums }) in &splits.0 {
        let Some(node) = nodes.get(layer) else { return Err(wrong(layer)) };
        let most = match node.layer.op {
            Op::Conv { channels, .. } => channels.min(MAX_PIECES),
            _ => 1,
        };
        let is_inside = own.iter().all(|cut| (1..node.layer.output.channels).contains(cut));
        if !is_inside || !(1..=most).contains(sums) {
            return Err(wrong(layer));
        }
        cuts[layer].clone_from(own);
        depths[layer] = *sums;
    }
    // The layers that pieces read in part are split at the same channels.
    let mut complete = cuts.clone();
    spread(network, &grains(network), &depths, &mut complete).map_err(wrong)?;
    match complete.iter().zip(&cuts).position(|(complete, own)| complete != own) {
        Some(layer) => Err(wrong(layer)),
        None => build(network, &cuts, &depths),
    }
}

fn splits(cuts: &[BTreeSet<u64>], depths: &[u64]) -> Splits {
    let all = cuts.iter().zip(depths).enumerate();
    let all = all.filter(|(_, (cuts, sums))| !cuts.is_empty() || **sums > 1);
    Splits(
        all.map(|(layer, (cuts, sums))| (layer, Split { cuts: cuts.clone(), sums: *sums }))
            .collect(),
    )
}

fn no_room(node: &Node, need: &Need, pieces: u64, machine: &Machine) -> Box<Diagnostic> {
    let Need { output, inputs, weights, .. } = need;
    let (name, size, bytes) = (&node.layer.name, machine.buffer.size, need.bytes());
    let message = if need.is_mapped {
        format!(
            "layer {name} does not fit the buffer of a core, which has {}: it needs at least {bytes}, {output} for the result, \
             {inputs} for inputs and {weights} for weights",
            counted(size, "byte")
        )
    } else {
        format!("layer {name} has no mapping to a core: the smaller memories hold no tile of it")
    };
    let mut diagnostic = Diagnostic::error("schedule-no-room", message)
        .with_note(format!("on {}", counted(machine.mesh.cores(), "core")));
    if need.is_mapped && *output == machine.output_tile {
        let note = format!("a core keeps {output} bytes for a result, however small it is");
        diagnostic = diagnostic.with_note(note);
    }
    if pieces > 1 {
        let most = if pieces == MAX_PIECES { ", the most that are tried" } else { "" };
        diagnostic =
            diagnostic.with_note(format!("split into {pieces} pieces along channels{most}"));
    }
    Box::new(diagnostic)
}

/// The number of output channels of each layer that stay together.
fn grains(network: &Network) -> Vec<u64> {
    let mut grains: Vec<u64> = vec![];
    for node in network.nodes() {
        let channels = node.layer.output.channels;
        let together = match node.layer.op {
            Op::Conv { .. } => 1,
            Op::GroupedConv { groups, .. } => channels / groups,
            Op::Transpose { .. } => channels,
            Op::Pool(_) | Op::Eltwise { .. } | Op::Pointwise => {
                node.inputs.iter().map(|made| grains[*made]).fold(1, common_multiple)
            }
        };
        grains.push(if channels.is_multiple_of(together) { together } else { channels });
    }
    grains
}

fn common_multiple(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// Where a layer is split into so many nearly equal pieces.
fn boundaries(layer: &Layer, grain: u64, pieces: u64) -> BTreeSet<u64> {
    let units = layer.output.channels / grain;
    (1..pieces).map(|piece| units * piece / pieces * grain).collect()
}

/// The input channels that some output channels of a layer read; of element-wise layers, those of each operand.
pub fn input_channels(layer: &Layer, of: &Range<u64>) -> Range<u64> {
    match layer.op {
        Op::Conv { channels, .. } => 0..channels,
        Op::GroupedConv { channels, groups, .. } => {
            let (to, from) = (layer.output.channels / groups, channels / groups);
            of.start / to * from..of.end.div_ceil(to) * from
        }
        _ => of.clone(),
    }
}

/// Whether a piece of a layer reads only a part of its input's channels.
fn reads_part(layer: &Layer) -> bool {
    !matches!(layer.op, Op::Conv { .. } | Op::Transpose { .. })
}

/// Splits the layers that pieces read in part, from the last layer to the first.
///
/// # Errors
/// A layer that cannot be split where it would have to be.
fn spread(
    network: &Network,
    grains: &[u64],
    depths: &[u64],
    cuts: &mut [BTreeSet<u64>],
) -> std::result::Result<(), usize> {
    for layer in (0..network.nodes().len()).rev() {
        let node = &network.nodes()[layer];
        if cuts[layer].iter().any(|cut| !cut.is_multiple_of(grains[layer])) {
            return Err(layer);
        }
        for part in parts(node, depths[layer]) {
            cut_sources(network, &node.inputs, node.external, part.end, u64::MAX, cuts);
        }
        if !reads_part(&node.layer) || cuts[layer].is_empty() {
            continue;
        }
        for cut in cuts[layer].clone() {
            let at = input_channels(&node.layer, &(0..cut)).end;
            let operand = match node.layer.op {
                Op::Eltwise { .. } => node.layer.output.channels,
                _ => u64::MAX,
            };
            cut_sources(network, &node.inputs, node.external, at, operand, cuts);
            cut_sources(network, &node.weights, 0, cut, u64::MAX, cuts);
        }
    }
    Ok(())
}

/// Cuts the layer that has channel `at` of an operand inside.
fn cut_sources(
    network: &Network,
    layers: &[usize],
    external: u64,
    at: u64,
    operand: u64,
    cuts: &mut [BTreeSet<u64>],
) {
    let mut first = external % operand;
    for &layer in layers {
        let channels = network.nodes()[layer].layer.output.channels;
        if (first + 1..first + channels).contains(&at) {
            cuts[layer].insert(at - first);
        }
        first = (first + channels) % operand;
    }
}

/// The input channels of each partial sum of a convolution.
fn parts(node: &Node, depth: u64) -> Vec<Range<u64>> {
    match node.layer.op {
        Op::Conv { channels, .. } if depth > 1 => {
            (0..depth).map(|part| channels * part / depth..channels * (part + 1) / depth).collect()
        }
        _ => vec![],
    }
}

/// The network of the pieces.
fn build(
    network: &Network,
    cuts: &[BTreeSet<u64>],
    depths: &[u64],
) -> Result<(Network, Vec<Source>)> {
    let mut pieces = Network::new(network.name());
    let mut sources: Vec<Source> = vec![];
    // The pieces of each layer, with their channels.
    let mut of_layers: Vec<Vec<(usize, Range<u64>)>> = vec![];
    for (layer, node) in network.nodes().iter().enumerate() {
        let ends = cuts[layer].iter().copied().chain([node.layer.output.channels]);
        let mut own = vec![];
        let mut from = 0;
        for to in ends {
            let piece = piece(node, from..to, !cuts[layer].is_empty());
            let source = |share: Share| Source { layer, channels: from..to, share };
            let mut sums = vec![];
            for part in parts(node, depths[layer]) {
                let mut sum = piece.clone();
                sum.name = format!("{}+{}", sum.name, part.start);
                sum.op = with_channels(&sum.op, part.end - part.start);
                let inputs = within(network, &node.inputs, node.external, &part, &of_layers);
                let external = outside(node, overlap(&(0..node.external), &part));
                let reads = Reads { inputs: &inputs, external, weights: &[] };
                sums.push(pieces.add_reading(sum, reads)?);
                sources.push(source(Share::Partial(part)));
            }
            let added = match sums.is_empty() {
                true => {
                    let inputs =
                        reads(network, node, &node.inputs, node.external, &(from..to), &of_layers);
                    let weights = within(network, &node.weights, 0, &(from..to), &of_layers);
                    let external = external(node, &(from..to));
                    sources.push(source(Share::Whole));
                    let reads = Reads { inputs: &inputs, external, weights: &weights };
                    pieces.add_reading(piece, reads)?
                }
                false => {
                    let op = Op::Eltwise { operands: sums.len() as u64 };
                    sources.push(source(Share::Sum));
                    pieces.add(Layer { op, ..piece }, &sums)?
                }
            };
            own.push((added, from..to));
            from = to;
        }
        of_layers.push(own);
    }
    Ok((pieces, sources))
}

/// A convolution with other input channels.
fn with_channels(op: &Op, channels: u64) -> Op {
    match *op {
        Op::Conv { window, .. } => Op::Conv { channels, window },
        ref other => other.clone(),
    }
}

fn piece(node: &Node, channels: Range<u64>, is_split: bool) -> Layer {
    let mut layer = node.layer.clone();
    if !is_split {
        return layer;
    }
    layer.name = format!("{}.{}", layer.name, channels.start);
    if let Op::GroupedConv { channels: inputs, groups, .. } = &mut layer.op {
        let share = (channels.end - channels.start) * *groups / node.layer.output.channels;
        *inputs = *inputs / *groups * share;
        *groups = share;
    }
    layer.output.channels = channels.end - channels.start;
    layer
}

/// Input from outside that output channels read.
fn external(node: &Node, of: &Range<u64>) -> Option<Shape> {
    if node.external == 0 {
        return None;
    }
    let needed =
        if reads_part(&node.layer) { input_channels(&node.layer, of) } else { 0..u64::MAX };
    let mut channels = overlap(&(0..node.external), &needed);
    if let Op::Eltwise { .. } = node.layer.op {
        // Each operand that comes from outside.
        let each = node.layer.output.channels;
        channels =
            (node.external / each) * (of.end - of.start) + overlap(&(0..node.external % each), of);
    }
    outside(node, channels)
}

fn outside(node: &Node, channels: u64) -> Option<Shape> {
    let Shape { rows, columns, .. } = node.input;
    (channels > 0).then_some(Shape { channels, rows, columns })
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> u64 {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

/// The pieces of inputs that output channels read.
fn reads(
    network: &Network,
    node: &Node,
    layers: &[usize],
    external: u64,
    of: &Range<u64>,
    of_layers: &[Vec<(usize, Range<u64>)>],
) -> Vec<usize> {
    if !reads_part(&node.layer) {
        return layers.iter().flat_map(|layer| &of_layers[*layer]).map(|(at, _)| *at).collect();
    }
    let needed = input_channels(&node.layer, of);
    match node.layer.op {
        Op::Eltwise { .. } => {
            let each = node.layer.output.channels;
            let mut found = vec![];
            let mut first = external % each;
            for &layer in layers {
                let channels = network.nodes()[layer].layer.output.channels;
                found.extend(within(network, &[layer], first, &needed, of_layers));
                first = (first + channels) % each;
            }
            found
        }
        _ => within(network, layers, external, &needed, of_layers),
    }
}

/// The pieces, of layers that are concatenated from channel `first` on, in some channels.
fn within(
    network: &Network,
    layers: &[usize],
    first: u64,
    needed: &Range<u64>,
    of_layers: &[Vec<(usize, Range<u64>)>],
) -> Vec<usize> {
    let (mut first, mut found) = (first, vec![]);
    for &layer in layers {
        for (at, channels) in &of_layers[layer] {
            if overlap(&(first + channels.start..first + channels.end), needed) > 0 {
                found.push(*at);
            }
        }
        first += network.nodes()[layer].layer.output.channels;
    }
    found
}
