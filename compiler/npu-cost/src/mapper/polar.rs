//! The authors' core: loops over a convolution, and the data that each loop order moves.
//!
//! A convolution is split over the grid of processing elements along two axes. Each element holds a
//! tile: `rows` by `columns` of results for `filters` lanes of output channels. The loops around
//! tiles go over filters, then images and rows, then columns. Two memories may be shared: elements with
//! the same weights, or the same inputs, can hold different parts and pass them around ("buffer
//! sharing").
//!
//! The counts are those of the published code where it differs from a real machine:
//!
//! * halos count rows and columns of results, so that a stride makes inputs smaller, not larger;
//! * loop orders with a second level of weights are considered though the core has none: such a level
//!   holds everything, costs nothing, and reads 256 bytes per cycle;
//! * for grouped layers whose groups are wider than a lane, the bandwidths of the global buffer and of
//!   the bus are ignored.

use super::{BestMapping, Conv, Mapping};
use crate::layer::{Layer, Op};
use crate::machine::{Memory, Polar};
use crate::objective::Objective;

/// Number of parts of each axis on the grid.
#[derive(Clone, Copy)]
struct Split {
    channels: i64,
    filters: i64,
    rows: i64,
    columns: i64,
    images: i64,
}

/// A convolution split over the grid.
struct Work<'a> {
    conv: &'a Conv,
    core: &'a Polar,
    buffer: Memory,
    split: Split,
    /// Groups side by side in the lanes; 0 if a group is wider than the lanes.
    abreast: i64,
    /// Turns for all groups.
    turns: i64,
    /// Tiles that cover an element's channels, of `vector`, and its filters, of `lanes`.
    channels: i64,
    filters: i64,
    rows: i64,
    columns: i64,
    images: i64,
}

/// A tile, and the number of tiles that cover the part of an element.
struct Tile {
    filters: i64,
    rows: i64,
    columns: i64,
    filter_tiles: i64,
    row_tiles: i64,
    column_tiles: i64,
}

/// Which memories are shared, and whether there is a second level of weights.
#[derive(Clone, Copy)]
struct Order {
    shares_weights: bool,
    shares_inputs: bool,
    second_level: bool,
}

/// Number of passes of a loop order over the tiles of an axis.
struct Rounds {
    filters: i64,
    columns: i64,
    /// Over rows and images.
    outer: i64,
}

/// Bytes read and written, per group.
struct Counts {
    inputs: [i64; 2],
    weights: [i64; 2],
    sums: [i64; 2],
    /// Inputs and weights read from the global buffer.
    global: i64,
    /// Weights read from the second level.
    second: i64,
    /// Weights and inputs passed around.
    passed: [i64; 2],
}

/// The best mapping; `None` if no tile fits.
pub fn map(conv: &Conv, core: &Polar, buffer: Memory, objective: Objective) -> Option<Mapping> {
    let mut best = BestMapping::new(objective);
    for split in splits(core) {
        let work = Work::new(conv, core, buffer, split);
        for tile in work.tiles() {
            let orders = work.orders(&tile);
            let mappings = orders.into_iter().filter_map(|order| work.mapping(&tile, order));
            mappings.for_each(|mapping| best.offer(mapping));
        }
    }
    best.mapping
}

/// Multiply-accumulates per image with channels and filters padded to vectors and lanes.
pub fn padded_macs(layer: &Layer, core: &Polar) -> f64 {
    let (channels, groups) = match layer.op {
        Op::Conv { channels, .. } => (channels, None),
        Op::GroupedConv { channels, groups, .. } => (channels / groups, Some(groups)),
        _ => return 0.0,
    };
    let filters = layer.output.channels / groups.unwrap_or(1);
    let [kernel_rows, kernel_columns] = layer.window().kernel;
    let places = kernel_rows * kernel_columns * layer.output.rows * layer.output.columns;
    let padded = channels.next_multiple_of(core.vector) * filters.next_multiple_of(core.lanes);
    let macs = (padded * places * groups.unwrap_or(1)) as f64;
    match groups.is_some() && channels < core.vector && filters < core.lanes {
        true => macs / (core.vector / channels).min(core.lanes / filters) as f64,
        false => macs,
    }
}

/// The six ways to split two axes over the grid; the first of two equal ones is taken.
fn splits(core: &Polar) -> [Split; 6] {
    let [a, b] = core.grid.map(|count| count as i64);
    let whole = Split { channels: 1, filters: 1, rows: 1, columns: 1, images: 1 };
    [
        Split { channels: a, filters: b, ..whole },
        Split { channels: a, images: b, ..whole },
        Split { images: a, filters: b, ..whole },
        Split { channels: a, columns: b, ..whole },
        Split { rows: a, filters: b, ..whole },
        Split { rows: a, columns: b, ..whole },
    ]
}

fn ceil(of: i64, by: i64) -> i64 {
    (of + by - 1) / by
}

impl<'a> Work<'a> {
    fn new(conv: &'a Conv, core: &'a Polar, buffer: Memory, split: Split) -> Self {
        let (vector, lanes) = (core.vector as i64, core.lanes as i64);
        let (abreast, turns) = match conv.groups > 1 {
            false => (1, conv.groups),
            true => match (vector / conv.channels).min(lanes / conv.filters) {
                fit @ 0..=1 => (fit, conv.groups),
                fit => (fit.min(conv.groups), ceil(conv.groups, fit.min(conv.groups))),
            },
        };
        Self {
            conv,
            core,
            buffer,
            split,
            abreast,
            turns,
            channels: ceil(conv.channels, vector * split.channels),
            filters: ceil(conv.filters, lanes * split.filters),
            rows: ceil(conv.rows, split.rows),
            columns: ceil(conv.columns, split.columns),
            images: ceil(conv.images, split.images),
        }
    }

    fn window(&self) -> i64 {
        self.conv.kernel[0] * self.conv.kernel[1]
    }

    /// Elements with the same weights.
    fn weight_copies(&self) -> i64 {
        self.split.rows * self.split.columns * self.split.images
    }

    /// The largest tile of each width that fits, the widest first, one for each height.
    fn tiles(&self) -> Vec<Tile> {
        let inputs = (self.core.inputs.size / self.core.vector) as i64 / self.channels;
        let sums = (self.core.sums.size / self.core.lanes) as i64;
        let weights = (self.core.weights.size / self.core.vector) as i64;
        let filters = self.filters.min(weights / (self.window() * self.channels));
        let ([kernel_rows, kernel_columns], stride) = (self.conv.kernel, self.conv.stride);
        let widest = inputs / kernel_rows;
        if filters == 0 || sums == 0 || widest < kernel_columns {
            return vec![];
        }
        let widest = ((widest - kernel_columns) / stride[1] + 1).min(sums).min(self.columns);
        let mut tiles: Vec<Tile> = vec![];
        for columns in (1..=widest).rev() {
            let input_rows = inputs / ((columns - 1) * stride[1] + kernel_columns);
            let rows = ((input_rows - kernel_rows) / stride[0] + 1).min(sums / columns);
            let rows = rows.min(self.rows);
            if tiles.last().is_none_or(|last| last.rows != rows) {
                tiles.push(Tile {
                    filters,
                    rows,
                    columns,
                    filter_tiles: ceil(self.filters, filters),
                    row_tiles: ceil(self.rows, rows),
                    column_tiles: ceil(self.columns, columns),
                });
            }
        }
        tiles
    }

    /// Tiles of filters that are combined by sharing weights, and the rounds that remain.
    fn shared_filters(&self, tile: &Tile) -> (i64, i64) {
        let together = tile.filter_tiles.min(self.weight_copies());
        (together, ceil(tile.filter_tiles, together))
    }

    /// Tiles of columns that are combined by sharing inputs, and the rounds that remain.
    fn shared_columns(&self, tile: &Tile) -> (i64, i64) {
        let together = tile.column_tiles.min(self.split.filters);
        (together, ceil(tile.column_tiles, together))
    }

    /// The loop orders that may be optimal, the plain one first.
    fn orders(&self, tile: &Tile) -> Vec<Order> {
        let order = |shares_weights, shares_inputs, second_level| Order {
            shares_weights,
            shares_inputs,
            second_level,
        };
        let repeats = self.images > 1 || tile.row_tiles > 1;
        let (filters, filter_rounds) = self.shared_filters(tile);
        let (columns, column_rounds) = self.shared_columns(tile);
        let refetches_weights = columns > 1 && repeats && column_rounds > 1;
        let all = [
            (order(false, false, false), true),
            (order(true, false, false), repeats && tile.column_tiles > 1 && filters > 1),
            (order(true, true, false), columns > 1 && filters > 1 && filter_rounds > 1),
            (order(false, true, true), refetches_weights && tile.filter_tiles > 1),
            (order(true, true, true), refetches_weights && filters > 1 && filter_rounds > 1),
        ];
        all.into_iter().filter(|(_, helps)| *helps).map(|(order, _)| order).collect()
    }

    /// Elements of the input that so many tiles of rows and of columns in each part read together, for
    /// one image and channel. `None` if halos are negative, as with strides beyond the window.
    fn input_area(&self, row_tiles: i64, column_tiles: i64) -> Option<i64> {
        let along = |axis: usize, extent: i64, tiles: i64| {
            extent + (self.conv.kernel[axis] - self.conv.stride[axis]) * (tiles - 1)
        };
        let rows = along(0, self.conv.rows, row_tiles * self.split.rows);
        let columns = along(1, self.conv.columns, column_tiles * self.split.columns);
        (rows * columns == 0 || (rows > 0 && columns > 0)).then_some(rows * columns)
    }

    /// The data that a loop order reads and writes; `None` if strides exceed the window.
    fn counts(&self, tile: &Tile, order: Order) -> Option<Counts> {
        let conv = self.conv;
        let rounds = self.rounds(tile, order);
        let (inputs, inputs_read, inputs_passed) = self.count_inputs(tile, order, &rounds)?;
        let (weights, second, weights_passed) = self.count_weights(tile, order, &rounds);
        let weights_read = if order.second_level { conv.filter() } else { second };
        let sums = conv.macs() / conv.channels * self.channels * self.split.channels;
        let counts = Counts {
            inputs,
            weights,
            sums: [sums + self.split.channels * conv.results(), sums],
            global: inputs_read + weights_read,
            second,
            passed: [weights_passed, inputs_passed],
        };
        counts.is_valid().then_some(counts)
    }

    fn rounds(&self, tile: &Tile, order: Order) -> Rounds {
        let shared =
            |shares: bool, (_, rounds): (i64, i64), tiles| if shares { rounds } else { tiles };
        Rounds {
            filters: shared(order.shares_weights, self.shared_filters(tile), tile.filter_tiles),
            columns: shared(order.shares_inputs, self.shared_columns(tile), tile.column_tiles),
            outer: tile.row_tiles * self.images,
        }
    }

    /// Inputs read and written, read from the global buffer, and passed around.
    fn count_inputs(
        &self,
        tile: &Tile,
        order: Order,
        rounds: &Rounds,
    ) -> Option<([i64; 2], i64, i64)> {
        let (conv, copies) = (self.conv, self.split.filters);
        let images = conv.channels * conv.images;
        let row_tiles = |column_rounds| if column_rounds == 1 { 1 } else { tile.row_tiles };
        let column_tiles = if order.shares_inputs { rounds.columns } else { 1 };
        let by_tile = self.input_area(row_tiles(tile.column_tiles), column_tiles)?;
        let by_round = self.input_area(row_tiles(rounds.columns), 1)?;
        let once = order.shares_weights && order.shares_inputs && !order.second_level;
        let from_buffer = by_round * images * if once { 1 } else { rounds.filters };

        let read = conv.macs() / conv.filters * self.filters * copies;
        let written = by_tile * images * rounds.filters * copies;
        if !order.shares_inputs {
            return Some(([read, written], from_buffer, 0));
        }
        let (again, unread) = self.inputs_passed(tile, row_tiles(tile.column_tiles))?;
        let fetched = images * rounds.filters;
        let written = written + again * fetched * rounds.columns * (copies - 1);
        let passed = written - from_buffer;
        Some(([read + passed - unread * fetched, written], from_buffer, passed))
    }

    /// Inputs passed around, for one image and channel: the elements that each further round rewrites, and
    /// those that the last round, which is not full, need not read.
    fn inputs_passed(&self, tile: &Tile, row_tiles: i64) -> Option<(i64, i64)> {
        let (conv, copies) = (self.conv, self.split.filters);
        let halo = conv.kernel[0] - conv.stride[0];
        let rows = conv.rows + halo * (row_tiles * self.split.rows - 1);
        let overlap = conv.kernel[1] - conv.stride[1];
        let again = rows * overlap * self.split.columns;
        let full = tile.columns * (tile.column_tiles - tile.column_tiles % copies);
        let left = conv.columns - (full - overlap) * self.split.columns;
        let rest = ((copies - 1) * tile.column_tiles) % copies;
        let unread = (rows * left + again) * rest;
        (again >= 0 && (left >= 0 || rest == 0)).then_some((again, unread))
    }

    /// Weights read and written, read from the global buffer or a second level, and passed around.
    fn count_weights(&self, tile: &Tile, order: Order, rounds: &Rounds) -> ([i64; 2], i64, i64) {
        let (filter, copies) = (self.conv.filter(), self.weight_copies());
        let refetched = order.shares_inputs || order.second_level;
        let again = rounds.columns * rounds.outer;
        let second = filter * if refetched { again } else { 1 };
        let fetches = tile.column_tiles * rounds.outer;
        let read = filter * fetches * copies;
        if order.shares_weights {
            let passed = read - second;
            return ([read + passed - self.weights_unread(tile, fetches), read], second, passed);
        }
        let written = filter * copies * if order.second_level { again } else { 1 };
        ([read, written], second, 0)
    }

    /// Weights passed around: those that the last round, which is not full, need not read.
    fn weights_unread(&self, tile: &Tile, fetches: i64) -> i64 {
        let (conv, copies) = (self.conv, self.weight_copies());
        let lanes = self.core.lanes as i64 * self.split.filters;
        let full = tile.filters * lanes * (tile.filter_tiles - tile.filter_tiles % copies);
        let rest = ((copies - 1) * tile.filter_tiles) % copies;
        conv.filter() / conv.filters * (conv.filters - full) * fetches * rest
    }

    /// Energy and time of all groups; `None` if the bus is too slow for a loop order.
    fn mapping(&self, tile: &Tile, order: Order) -> Option<Mapping> {
        let counts = self.counts(tile, order)?;
        if !self.bus_keeps_up(tile, order) {
            return None;
        }
        let core = self.core;
        let (conv, results) = (self.conv, self.conv.results() as f64);
        let local = moved(core.inputs, counts.inputs)
            .chain(moved(core.weights, counts.weights))
            .chain(moved(core.sums, counts.sums))
            .chain([results * core.outputs.read, results * core.outputs.write])
            .fold(0.0, |sum, energy| sum + energy);
        let global = counts.global as f64 * self.buffer.read + results * self.buffer.write;
        let mut bus = 0.0;
        for (shared, passed) in
            [order.shares_weights, order.shares_inputs].into_iter().zip(counts.passed)
        {
            if shared {
                bus += passed as f64 * core.hop;
            }
        }
        let compute = conv.macs() as f64 * core.mac;
        let energy = global + local + bus + compute;
        let mapping =
            Mapping { energy, time: self.time(&counts, order), global, local, bus, compute };
        Some(mapping.repeated(conv.groups, self.turns))
    }

    /// Cycles of a turn.
    fn time(&self, counts: &Counts, order: Order) -> u64 {
        let tiles = self.channels * self.filters * self.rows * self.columns * self.images;
        let bandwidth = self.core.buffer_bandwidth as i64;
        let reading = |bytes: i64| ceil(bytes * self.abreast, bandwidth);
        let second = if order.second_level { reading(counts.second) } else { 0 };
        (tiles * self.window()).max(reading(counts.global)).max(second) as u64
    }

    /// Whether data passed around arrive while a tile is computed.
    fn bus_keeps_up(&self, tile: &Tile, order: Order) -> bool {
        let conv = self.conv;
        let [rows, columns] = [tile.rows, tile.columns];
        let time = self.window() * self.channels * tile.filters * rows * columns;
        let channels = ceil(conv.channels, self.split.channels);
        let filters = ceil(conv.filters, self.split.filters);
        let weights = self.window() * channels * filters.min(tile.filters * self.core.lanes as i64);
        let inputs = (rows + conv.kernel[0] - conv.stride[0]) * columns * channels;
        let together = if order.shares_weights { self.shared_filters(tile).0 } else { 1 };
        let carried = time * self.core.bus as i64;
        (!order.shares_weights || carried >= weights * self.abreast)
            && (!order.shares_inputs || (0..=together * carried).contains(&(inputs * self.abreast)))
    }
}

/// Energies to read and to write.
fn moved(memory: Memory, [read, written]: [i64; 2]) -> impl Iterator<Item = f64> {
    [read as f64 * memory.read, written as f64 * memory.write].into_iter()
}

impl Counts {
    fn is_valid(&self) -> bool {
        let pairs = [self.inputs, self.weights, self.sums, self.passed, [self.global, self.second]];
        pairs.as_flattened().iter().all(|count| *count >= 0)
    }
}
