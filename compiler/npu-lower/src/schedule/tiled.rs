//! Schedules of one core with tiles: from dialect B to dialect A.
//!
//! Tensors are there as in the buffer: a result is one tensor for all that read it, from when the first part of it is
//! computed to when it is read last, and a second one while it is stored. Operands that lie beside each other in channels
//! are one tensor if they have the same images, rows and columns, and otherwise several `ifmap`s. Results that serve as
//! weights are tensors of kind `ifmap` as well. Weights are in the buffer, and tile by tile in WL0.

mod tiles;

use super::allocate::{Room, allocate, no_address};
use irc_diag::Diagnostic;
use irc_gemini_format::Nullable;
use irc_gemini_format::schedule::{
    Buffer, Core, Dialect, DramGroup, DramIn, DramOut, Extent, Ids, Ifmap, LayerKind, LayerWindow,
    Ofmap, OneOrMany, PlaceKind, Resident, ResidentKind, Schedule, Source, Target, Tile, Transfers,
    Weight, Wl0Row, Wl0Source, Workload,
};
use irc_npu::enums::DataFmt;
use irc_npu::layout::{weight_row, wl0_units};
use std::collections::{BTreeMap, HashMap};

/// The id of the core.
pub const CORE: i64 = 0;
/// The id of DRAM.
const DRAM: i64 = -1;

/// Bits of an element, and the multiple of which channels are.
const BITS: i64 = 8;
const WORD: i64 = 8;

/// Output channels that WL0 holds side by side.
const ROWS: i64 = 64;

/// A schedule of dialect B for one core, with a buffer of so many bytes, as one of dialect A.
///
/// # Errors
/// `layer-one-core` for several cores; `layer-no-address` at the first workload whose tensors do not fit, or that of the
/// fullest buffer if no order of them fits; `layer-weights` for weights of which no tile fits in WL0.
pub fn tiled(schedule: &Schedule, capacity: i64) -> Result<Schedule, Box<Diagnostic>> {
    let ([core], 1, 1) = (&schedule.cores[..], schedule.xlen, schedule.ylen) else {
        let message = format!(
            "dialect A is for one core, the mesh has {} by {}",
            schedule.xlen, schedule.ylen
        );
        return Err(Box::new(Diagnostic::error("layer-one-core", message)));
    };
    let mut writer = Writer::new(schedule, &core.workloads);
    for index in 0..core.workloads.len() {
        writer.read(index);
    }
    writer.write_results();
    writer.finish(capacity)
}

/// Bytes of a tensor `[N, C, H, W]` in the buffer.
fn bytes(extent: &Extent) -> i64 {
    let axes = extent.lengths().enumerate();
    axes.map(|(axis, length)| if axis == 1 { padded(length) } else { length }).product()
}

fn padded(channels: i64) -> i64 {
    (channels + WORD - 1) / WORD * WORD
}

/// A box from 0.
fn from_zero(lengths: [i64; 4]) -> Extent {
    Extent::new([0; 4], lengths.map(|length| length - 1))
}

fn lengths(extent: &Extent) -> [i64; 4] {
    [0, 1, 2, 3].map(|axis| extent.axis(axis).1 - extent.axis(axis).0 + 1)
}

/// A tensor of the buffer.
struct BufferTensor {
    kind: ResidentKind,
    /// The layer that reads or computes it.
    layer: String,
    extent: Extent,
    sources: Vec<Source>,
    room: Room,
    /// Whether it may be loaded while the workload before the first that reads it runs.
    may_be_early: bool,
}

/// What a workload reads as one tensor.
struct Read {
    /// The index of the tensor.
    held: usize,
    /// The part that is read, in the tensor.
    part: Extent,
    /// The transfers that bring it.
    transfers: Vec<i64>,
    /// The part of the layer's input that it is.
    input: Extent,
}

/// A part of what a workload reads: all that is of one tensor.
struct Piece<'s> {
    /// The first channel among those that the layer reads.
    channel: i64,
    sources: Vec<&'s Source>,
    /// The box of its tensor, in that of what it is a part of.
    whole: Extent,
    /// The box that is read.
    part: Extent,
}

/// The schedule under construction.
struct Writer<'s> {
    schedule: &'s Schedule,
    workloads: &'s [Workload],
    transfers: Transfers<'s>,
    windows: HashMap<&'s str, &'s LayerWindow>,
    held: Vec<BufferTensor>,
    /// Tensors that are read, by the transfers that bring them; an operand that is read twice has two.
    known: HashMap<(Vec<i64>, usize), usize>,
    /// What each workload reads as activations and as weights.
    reads: Vec<(Vec<Read>, Vec<Read>)>,
    /// Workloads that read each result, by the workload that computes it.
    readers: BTreeMap<usize, Vec<i64>>,
}

impl<'s> Writer<'s> {
    fn new(schedule: &'s Schedule, workloads: &'s [Workload]) -> Self {
        let windows = schedule.windows.iter().flatten();
        Self {
            schedule,
            workloads,
            transfers: Transfers::new(schedule),
            windows: windows.map(|window| (window.layer_name.as_str(), window)).collect(),
            held: vec![],
            known: HashMap::new(),
            reads: vec![],
            readers: BTreeMap::new(),
        }
    }

    /// The workload that computes what a source brings from the core.
    fn producer(&self, source: &Source) -> Option<usize> {
        let place = self.transfers.producer(source.transfer_id);
        place.filter(|_| source.kind == PlaceKind::Core).map(|(_, index)| index)
    }

    /// The transfer of the result of a workload: that by which it is stored, or else the first.
    fn result(&self, index: usize) -> i64 {
        let parts = self.workloads[index].ofmaps().iter().map(|part| part.transfer_id);
        let stored = parts.clone().find(|id| self.transfers.is_stored(*id));
        stored.or_else(|| parts.min()).unwrap_or(0)
    }

    /// The tensors that a workload reads.
    fn read(&mut self, index: usize) {
        let workload = &self.workloads[index];
        let own = |kind| {
            let mut own = workload.buffer.iter().filter(move |resident| {
                resident.kind == kind && resident.workload_id == Some(workload.workload_id)
            });
            own.next().map_or(&[][..], Resident::sources)
        };
        let folds = workload.layer_type == Some(LayerKind::ElementWise);
        let inputs = self.pieces(own(ResidentKind::Ifmap));
        let inputs = self.tensors(index, inputs, folds);
        let weights = match &workload.weight {
            Some(weight) if weight.from_ofmap == Some(true) => {
                let pieces = self.pieces(own(ResidentKind::Weight));
                self.tensors(index, pieces, false)
            }
            Some(weight) => {
                self.constant_weights(index, weight);
                vec![]
            }
            None => vec![],
        };
        self.reads.push((inputs, weights));
    }

    /// The pieces of what is read: consecutive sources of one tensor.
    fn pieces(&self, sources: &'s [Source]) -> Vec<Piece<'s>> {
        let mut pieces: Vec<Piece<'s>> = vec![];
        for source in sources {
            let Some(part) = source.extent() else { continue };
            let channel = source.channel.map_or(0, |[first, _]| first) - part.axis(1).0;
            let made = self.producer(source).map(|index| self.workloads[index].extent);
            let whole = made.unwrap_or(part);
            match pieces.last_mut() {
                Some(last)
                    if last.channel == channel
                        && last.sources[0].layer_name == source.layer_name
                        && last.sources[0].kind == source.kind =>
                {
                    last.sources.push(source);
                    last.whole = last.whole.joined(&whole);
                    last.part = last.part.joined(&part);
                }
                _ => pieces.push(Piece { channel, sources: vec![source], whole, part }),
            }
        }
        pieces
    }

    /// The tensors that hold pieces, with what the workload `index` reads of each: pieces that begin where the one before
    /// ends are in one tensor if they have the same images, rows and columns. In layers that fold, operands begin at
    /// channel 0.
    fn tensors(&mut self, index: usize, pieces: Vec<Piece<'s>>, folds: bool) -> Vec<Read> {
        let mut groups: Vec<Vec<Piece<'s>>> = vec![];
        for piece in pieces {
            let fits = |last: &Piece<'_>| {
                let same = |axis| {
                    last.whole.axis(axis) == piece.whole.axis(axis)
                        && last.part.axis(axis) == piece.part.axis(axis)
                };
                last.sources[0].kind == piece.sources[0].kind
                    && [0, 2, 3].into_iter().all(same)
                    && !(folds && piece.channel == 0)
            };
            match groups.last_mut() {
                Some(group) if group.last().is_some_and(fits) => group.push(piece),
                _ => groups.push(vec![piece]),
            }
        }
        let mut reads: Vec<Read> = vec![];
        for group in groups {
            let read = self.tensor(index, &group, &reads);
            reads.push(read);
        }
        reads
    }

    /// The tensor of some pieces, and what the workload `index` reads of it; `before` are its other operands so far.
    fn tensor(&mut self, index: usize, pieces: &[Piece<'s>], before: &[Read]) -> Read {
        let workload = &self.workloads[index];
        let begin = |axis: usize| pieces.iter().map(|piece| piece.whole.axis(axis).0).min();
        let [images, rows, columns] = [0, 2, 3].map(|axis| begin(axis).unwrap_or(0));
        let (mut sources, mut transfers) = (vec![], vec![]);
        let (mut first, mut stored, mut channels) = (index, 0, 0);
        let mut is_loaded = false;
        for piece in pieces {
            let (from, to) = piece.whole.axis(1);
            for source in &piece.sources {
                let producer = self.producer(source);
                let whole = match producer {
                    Some(producer) => self.workloads[producer].extent,
                    None => piece.whole,
                };
                let transfer_id = producer.map_or(source.transfer_id, |made| self.result(made));
                let place = [images, from - channels, rows, columns];
                let lower = [0, 1, 2, 3].map(|axis| whole.axis(axis).0 - place[axis]);
                let upper = [0, 1, 2, 3].map(|axis| whole.axis(axis).1 - place[axis]);
                match producer {
                    Some(producer) => {
                        first = first.min(producer);
                        self.readers.entry(producer).or_default().push(workload.workload_id);
                    }
                    None => {
                        is_loaded = true;
                        let storers = self.transfers.storers(source.transfer_id);
                        let last = storers.map(|(_, index)| index + 1).max().unwrap_or(0);
                        stored = stored.max(last);
                    }
                }
                sources.push(Source {
                    channel: None,
                    core_id: Some(if producer.is_some() { CORE } else { DRAM }),
                    id: None,
                    layer_name: source.layer_name.clone(),
                    lower: Some(lower.into()),
                    size: bytes(&whole),
                    transfer_id,
                    kind: source.kind,
                    upper: Some(upper.into()),
                    extra: Default::default(),
                });
                transfers.push(transfer_id);
            }
            channels += to - from + 1;
        }
        let [n, _, h, w] = lengths(&pieces[0].whole);
        let part = pieces[0].part;
        let (low, high) = (part.lower.values(), part.upper.values());
        let read = Extent::new(
            [low[0] - images, 0, low[2] - rows, low[3] - columns],
            [high[0] - images, channels - 1, high[2] - rows, high[3] - columns],
        );
        let channel = pieces[0].channel;
        let input = Extent::new(
            [low[0], channel, low[2], low[3]],
            [high[0], channel + channels - 1, high[2], high[3]],
        );
        let again = before.iter().filter(|read| read.transfers == transfers).count();
        let key = (transfers.clone(), again);
        let held = *self.known.entry(key).or_insert(self.held.len());
        if held == self.held.len() {
            self.held.push(BufferTensor {
                kind: ResidentKind::Ifmap,
                layer: workload.layer_name.clone(),
                extent: from_zero([n, channels, h, w]),
                sources,
                room: Room { first, last: index, size: n * padded(channels) * h * w, address: 0 },
                may_be_early: is_loaded && stored < index,
            });
        }
        self.held[held].room.last = index;
        Read { held, part: read, transfers, input }
    }

    /// The weights of a workload, which stay until their last use.
    fn constant_weights(&mut self, index: usize, weight: &Weight) {
        let Some(transfer) = weight.transfers().next() else { return };
        let held = *self.known.entry((vec![transfer], 0)).or_insert(self.held.len());
        if held == self.held.len() {
            let layer = self.workloads[index].layer_name.clone();
            let extent = self.weight_extent(&self.workloads[index]);
            let size = weight_bytes(&extent);
            let source = Source {
                channel: None,
                core_id: Some(DRAM),
                id: None,
                layer_name: None,
                lower: Some(extent.lower),
                size,
                transfer_id: transfer,
                kind: PlaceKind::Dram,
                upper: Some(extent.upper),
                extra: Default::default(),
            };
            self.held.push(BufferTensor {
                kind: ResidentKind::Weight,
                layer,
                extent,
                sources: vec![source],
                room: Room { first: index, last: index, size, address: 0 },
                may_be_early: index > 0,
            });
        }
        self.held[held].room.last = index;
    }

    /// Channels of a group, rows and columns of the weights of a workload.
    fn weight_size(&self, workload: &Workload) -> [i64; 3] {
        let window = self.windows.get(workload.layer_name.as_str());
        let [rows, columns] = window.map_or([1, 1], |window| window.kernel);
        let Some(weight) = &workload.weight else { return [1, rows, columns] };
        if weight.from_ofmap == Some(true) {
            let (from, to) = weight.extent().axis(2);
            return [to - from + 1, 1, 1];
        }
        let out = weight.transfers().next().and_then(|id| self.transfers.dram_out(id));
        let elements = out.map_or(1, |out| out.size / BITS);
        let (from, to) = weight.extent().axis(0);
        [elements / ((to - from + 1) * rows * columns).max(1), rows, columns]
    }

    /// The box `[0, K, C, R*S]` of the weights of a workload.
    fn weight_extent(&self, workload: &Workload) -> Extent {
        let [channels, rows, columns] = self.weight_size(workload);
        let (from, to) = workload.extent.axis(1);
        Extent::new([0, from, 0, 0], [0, to, channels - 1, rows * columns - 1])
    }

    /// Adds the tensors from which results are stored.
    fn write_results(&mut self) {
        for (index, workload) in self.workloads.iter().enumerate() {
            if !self.transfers.is_stored(self.result(index)) {
                continue;
            }
            let size = bytes(&workload.extent);
            self.held.push(BufferTensor {
                kind: ResidentKind::Ofmap,
                layer: workload.layer_name.clone(),
                extent: from_zero(lengths(&workload.extent)),
                sources: vec![],
                room: Room { first: index, last: index, size, address: 0 },
                may_be_early: false,
            });
        }
    }

    /// Loads what may be early while the workload before runs, if there is room.
    fn load_early(&mut self, capacity: i64) {
        let mut used = vec![0; self.workloads.len()];
        for BufferTensor { room, .. } in &self.held {
            used[room.first..=room.last].iter_mut().for_each(|used| *used += room.size);
        }
        for BufferTensor { room, .. } in self.held.iter_mut().filter(|held| held.may_be_early) {
            if room.first > 0 && used[room.first - 1] + room.size <= capacity {
                room.first -= 1;
                used[room.first] += room.size;
            }
        }
    }

    fn finish(mut self, capacity: i64) -> Result<Schedule, Box<Diagnostic>> {
        let count = self.workloads.len();
        let late: Vec<Room> = self.held.iter().map(|held| held.room).collect();
        self.load_early(capacity);
        let place = |held: &mut Vec<BufferTensor>| {
            let rooms = held.iter_mut().map(|held| &mut held.room).collect();
            allocate(rooms, count, capacity)
        };
        if place(&mut self.held).is_err() {
            self.held.iter_mut().zip(late).for_each(|(held, late)| held.room = late);
            let kib = |bytes: i64| (bytes + 1023) / 1024;
            place(&mut self.held).map_err(|(index, need)| {
                no_address(self.schedule, (0, index), kib(need), capacity / 1024)
            })?;
        }
        let orders = self.orders();
        let mut workloads: Vec<Workload> = vec![];
        for index in 0..count {
            workloads.push(self.workload(index)?);
        }
        let mut by_time: Vec<usize> = (0..self.held.len()).collect();
        by_time.sort_by_key(|at| self.held[*at].room.first);
        for (id, at) in by_time.into_iter().enumerate() {
            let room = self.held[at].room;
            let during = workloads.iter_mut().enumerate().take(room.last + 1).skip(room.first);
            for (index, workload) in during {
                let is_read = self.reads[index].0.iter().any(|read| read.held == at);
                let resident = self.resident(at, (id as i64, orders[at]), index, is_read);
                workload.buffer.push(resident);
            }
        }
        workloads
            .iter_mut()
            .for_each(|workload| workload.ring_buffer_info = Some(vec![[0, capacity]]));
        Ok(Schedule {
            dialect: Dialect::A,
            buffersize: Some(capacity),
            dram: vec![self.dram()],
            cores: vec![Core { id: CORE, workloads }],
            ..self.schedule.clone()
        })
    }

    /// The place of each tensor in the order of accesses to DRAM. With a workload, loads come before its store.
    fn orders(&self) -> Vec<i64> {
        let is_loaded =
            |held: &BufferTensor| held.sources.iter().any(|from| from.kind == PlaceKind::Dram);
        let is_store = |held: &BufferTensor| held.kind == ResidentKind::Ofmap;
        let all = 0..self.held.len();
        let touches = |at: &usize| is_loaded(&self.held[*at]) || is_store(&self.held[*at]);
        let mut accesses: Vec<usize> = all.filter(touches).collect();
        // Of loads, those that are needed first come first.
        accesses.sort_by_key(|at| {
            let held = &self.held[*at];
            (held.room.first, is_store(held), held.room.last)
        });
        let mut orders = vec![accesses.len() as i64; self.held.len()];
        accesses.into_iter().zip(0..).for_each(|(at, order)| orders[at] = order);
        orders
    }

    /// A tensor in the snapshot of a workload.
    fn resident(
        &self,
        at: usize,
        (id, order): (i64, i64),
        index: usize,
        is_read: bool,
    ) -> Resident {
        let held = &self.held[at];
        let is_result = held.kind == ResidentKind::Ofmap;
        let transfers = held.sources.iter().map(|source| source.transfer_id).collect();
        Resident {
            address: Some(held.room.address),
            align: Some(WORD),
            bitwidth: Some(BITS),
            block: None,
            cur_wl_ifmap: is_read.then_some(true),
            layer: None,
            layer_name: Some(held.layer.clone()),
            newly_added: (!is_result).then_some(index == held.room.first),
            size: Some(held.room.size),
            source: (!is_result).then(|| Nullable(Some(held.sources.clone()))),
            start_send: is_result.then_some(true),
            tensor_id: Some(id),
            tensor_order: Some(order),
            transfer_id: (!is_result).then_some(Ids::List(transfers)),
            ..super::buffers::resident(held.kind, &held.layer, &held.extent, 0)
        }
    }

    /// A workload, without its snapshot.
    fn workload(&self, index: usize) -> Result<Workload, Box<Diagnostic>> {
        let of = &self.workloads[index];
        let (inputs, weights) = &self.reads[index];
        let ifmap = |read: &Read| Ifmap {
            align: Some(WORD),
            bitwidth: Some(BITS),
            lower: read.part.lower,
            max_workload_id: None,
            size: Some(bytes(&read.part)),
            transfer_id: Ids::List(read.transfers.clone()),
            upper: read.part.upper,
            extra: Default::default(),
        };
        let made = weights.iter().flat_map(|read| read.transfers.iter().copied());
        let weight = of.weight.as_ref().map(|weight| {
            let is_made = weight.from_ofmap == Some(true);
            let (ids, extent) = match is_made {
                true => {
                    let ((k, last), (c, end)) = (weight.extent().axis(1), weight.extent().axis(2));
                    (made.collect(), Extent::new([0, k, c, 0], [0, last, end, 0]))
                }
                false => (weight.transfers().take(1).collect(), self.weight_extent(of)),
            };
            Weight {
                from_ofmap: is_made.then_some(true),
                lower: extent.lower,
                max_workload_id: None,
                size: Some(weight_bytes(&extent)),
                transfer_id: Some(Ids::List(ids)),
                upper: extent.upper,
                extra: Default::default(),
            }
        });
        let padding = self.padding(of, inputs);
        let tiles = self.tiles(index, padding)?;
        let channels = |tile: &(u32, Tile)| tile.1.ofmap().lengths().nth(1);
        let most = tiles.tiles.iter().filter_map(channels).max().unwrap_or(0);
        let row = weight.as_ref().map(|weight| Wl0Row {
            address: 0,
            align: WORD,
            bitwidth: BITS,
            layer_name: of.layer_name.clone(),
            lower: None,
            // Two tiles alternate.
            size: 2 * units(most, self.weight_size(of)),
            source: Wl0Source::Core,
            tensor_order: Some(Nullable(None)),
            transfer_id: weight.transfer_id.clone().unwrap_or(Ids::List(vec![])),
            upper: None,
            extra: Default::default(),
        });
        Ok(Workload {
            buffer: Buffer::default(),
            ifmap: Some(OneOrMany::Many(inputs.iter().map(ifmap).collect())),
            layer_type: Some(engine(of)),
            ofmap: Some(vec![self.ofmap(index)]),
            ofmap_size: bytes(&of.extent),
            tile_info: Some(tiles),
            tile_padding_tblr: Some(padding),
            weight,
            wl0_buffer: Some(Nullable(Some(row.into_iter().collect()))),
            ..of.clone()
        })
    }

    /// The result of a workload, with its readers.
    fn ofmap(&self, index: usize) -> Ofmap {
        let workload = &self.workloads[index];
        let target = |core, kind, workload_id| Target {
            core_id: Some(core),
            id: None,
            layer_name: None,
            kind,
            workload_id,
            extra: Default::default(),
        };
        let mut readers = self.readers.get(&index).cloned().unwrap_or_default();
        readers.sort_unstable();
        readers.dedup();
        let cores = readers.into_iter().map(|id| target(CORE, PlaceKind::Core, Some(id)));
        let transfer_id = self.result(index);
        let is_stored = self.transfers.is_stored(transfer_id);
        let dram = is_stored.then(|| target(DRAM, PlaceKind::Dram, None));
        let extent = from_zero(lengths(&workload.extent));
        Ofmap {
            destination: cores.chain(dram).collect(),
            lower: extent.lower,
            size: bytes(&extent),
            transfer_id,
            upper: extent.upper,
            extra: Default::default(),
        }
    }

    /// What is stored and loaded.
    fn dram(&self) -> DramGroup {
        let by_transfer: HashMap<i64, &Workload> =
            self.workloads.iter().map(|workload| (workload.workload_id, workload)).collect();
        let group = &self.schedule.dram[0];
        let ins = group.ins.iter().map(|block| DramIn {
            core_id: CORE,
            related_ofmap: block.related_ofmap.clone().filter(|related| !related.is_empty()),
            ..block.clone()
        });
        let outs = group.outs.iter().map(|out| {
            let target = |target: &Target| Target {
                core_id: Some(CORE),
                id: None,
                layer_name: out.layer_name.as_deref().map(Into::into),
                ..target.clone()
            };
            let user = out.destination.first().and_then(|to| to.workload_id);
            let user = user.and_then(|id| by_transfer.get(&id));
            let (extent, size) = match user.filter(|_| out.is_weight()) {
                Some(user) => {
                    let extent = self.weight_extent(user);
                    (extent, weight_bytes(&extent))
                }
                None => (out.extent(), bytes(&out.extent())),
            };
            DramOut {
                destination: out.destination.iter().map(target).collect(),
                layer_name: None,
                lower: extent.lower,
                size,
                upper: extent.upper,
                ..out.clone()
            }
        });
        DramGroup {
            id: group.id,
            ins: ins.collect(),
            outs: outs.collect(),
            extra: Default::default(),
        }
    }
}

/// Bytes of weights `[0, K, C, R*S]` with their constants.
fn weight_bytes(extent: &Extent) -> i64 {
    let [_, k, c, window] = lengths(extent);
    k * weight_row(DataFmt::Int8, [c as u32, window as u32, 1])
}

/// Units of WL0 that some output channels take, whose weights have these channels, rows and columns.
fn units(channels: i64, size: [i64; 3]) -> i64 {
    wl0_units(DataFmt::Int8, channels as u32, size.map(|length| length as u32))
}

/// The engine of a workload.
fn engine(workload: &Workload) -> LayerKind {
    match (workload.layer_type, &workload.weight) {
        (Some(LayerKind::Dt), _) => LayerKind::Dt,
        (_, Some(_)) => LayerKind::Pe,
        (_, None) => LayerKind::Vp,
    }
}
