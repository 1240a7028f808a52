//! A core in the style of Eyeriss: rows of the window along one axis of the array, rows of the result
//! along the other.
//!
//! Unused rows hold further filters, channels and images. The published code does not multiply reads of
//! inputs from the global buffer by rows and columns; neither does this.

use super::{BestMapping, Conv, Mapping};
use crate::machine::{Eyeriss, Memory};
use crate::objective::Objective;

/// The loop counts of each axis: iterations over the array's contents, and layouts of it.
#[derive(Clone, Copy, Debug)]
struct Spread {
    channels: i64,
    filters: i64,
    images: i64,
    /// Copies of the array's contents with different filters.
    filter_copies: i64,
    /// Copies that have different images.
    image_copies: i64,
}

/// A convolution, and the capacities of an element for it.
struct Work<'a> {
    conv: &'a Conv,
    core: &'a Eyeriss,
    buffer: Memory,
    /// Number of columns of the array that are used.
    width: i64,
    /// Numbers of channels and filters that fit into an element.
    held: [i64; 2],
}

/// The best mapping; `None` if the window is larger than the array or an element's memory.
pub fn map(conv: &Conv, core: &Eyeriss, buffer: Memory, objective: Objective) -> Option<Mapping> {
    let [columns, rows] = core.array.map(|count| count as i64);
    let channels = core.inputs.size as i64 / conv.kernel[1];
    let filters = (core.weights.size as i64).checked_div(conv.kernel[1] * channels)?;
    if conv.kernel[0] > rows || filters == 0 {
        return None;
    }
    let folds = ceil(conv.rows, columns);
    let width = ceil(conv.rows, folds);
    let work = Work { conv, core, buffer, width, held: [channels, filters] };
    let mut best = BestMapping::new(objective);
    let beside = (columns / conv.rows).max(1).min(conv.filters);
    let spreads = work.spreads(rows / conv.kernel[0], folds * conv.images, beside);
    spreads.into_iter().for_each(|spread| best.offer(work.mapping(spread)));
    best.mapping.map(|mapping| mapping.repeated(conv.groups, conv.groups))
}

fn ceil(of: i64, by: i64) -> i64 {
    (of + by - 1) / by
}

impl Work<'_> {
    /// Ways to fill `rows` copies along an axis of the array, with `beside` copies of filters along
    /// the other.
    fn spreads(&self, rows: i64, images: i64, beside: i64) -> Vec<Spread> {
        let filters = ceil(self.conv.filters, beside);
        let most_filters = ceil(filters, self.held[1]).min(rows);
        let most_channels = ceil(self.conv.channels, self.held[0]).min(rows);
        let spread = |channel_copies, filter_copies, image_copies| Spread {
            channels: ceil(self.conv.channels, channel_copies),
            filters: ceil(filters, filter_copies),
            images: ceil(images, image_copies),
            filter_copies: beside * filter_copies,
            image_copies,
        };
        if most_channels * most_filters >= rows {
            return pairs(rows, most_filters, most_channels)
                .map(|(channels, filters)| spread(channels, filters, 1))
                .collect();
        }
        if most_channels * most_filters * images < rows {
            return vec![spread(most_channels, most_filters, images)];
        }
        let left = rows / most_filters;
        let by_channel = pairs(left, images.min(left), most_channels)
            .map(|(channels, images)| spread(channels, most_filters, images));
        let left = rows / most_channels;
        let by_filter = pairs(left, images.min(left), most_filters)
            .map(|(filters, images)| spread(most_channels, filters, images));
        by_channel.chain(by_filter).collect()
    }

    fn mapping(&self, spread: Spread) -> Mapping {
        let (conv, core, macs) = (self.conv, self.core, self.conv.macs());
        let rounds = |total: i64, held: i64| ceil(total, total.min(held));
        let channel_rounds = rounds(spread.channels, self.held[0]);
        let filter_rounds = rounds(spread.filters, self.held[1]);

        let sums = conv.results() * channel_rounds;
        let inputs_read = filter_rounds * conv.channels * conv.images;
        let sums_moved = sums + sums - conv.results();

        let local = [
            self.input_writes(spread, filter_rounds) as f64 * core.inputs.write,
            (conv.filter() * spread.image_copies * self.width) as f64 * core.weights.write,
            (macs - conv.results()) as f64 * core.sum,
            macs as f64 * core.inputs.read,
            macs as f64 * core.weights.read,
            (macs - conv.results()) as f64 * core.sum,
        ];
        let local = local.into_iter().fold(0.0, |sum, energy| sum + energy);
        let read = conv.filter() + inputs_read + sums;
        let global = sums as f64 * self.buffer.write + read as f64 * self.buffer.read;
        let buses = [inputs_read, conv.filter(), sums_moved];
        let bus = buses.iter().fold(0.0, |sum, bytes| sum + *bytes as f64 * core.hop);
        let compute = macs as f64 * core.mac;

        let computing =
            conv.columns * conv.kernel[1] * spread.filters * spread.channels * spread.images;
        let time =
            buses.iter().map(|bytes| ceil(*bytes, core.bus as i64)).fold(computing, i64::max);
        let energy = global + local + bus + compute;
        Mapping { energy, time: time as u64, global, local, bus, compute }
    }

    /// Writes of inputs to elements: each row of the window its own rows, for all filters in turn.
    fn input_writes(&self, spread: Spread, filter_rounds: i64) -> i64 {
        let conv = self.conv;
        let columns = (conv.columns - 1) * conv.stride[1] + conv.kernel[1];
        let mut copies = filter_rounds * spread.filter_copies;
        if spread.filters % spread.filters.min(self.held[1]) == 1 {
            copies -= spread.filter_copies - conv.filters % spread.filter_copies;
        }
        conv.kernel[0] * conv.channels * conv.rows * conv.images * columns * copies
    }
}

/// Pairs `(a, b)` that fill `total` copies: from the fewest of the first that leave space for `most` of
/// the second, to at least `last`.
fn pairs(total: i64, most: i64, last: i64) -> impl Iterator<Item = (i64, i64)> {
    let fill = move |first: i64| {
        let second = total / first;
        (total / second, second)
    };
    let first = total / most;
    let start = (first, total / first);
    std::iter::successors(Some(start), move |(first, _)| (*first < last).then(|| fill(first + 1)))
}
