//! Schedules of one core without tiles: from dialect A to dialect B, the inverse of [`super::tiled`].

use super::buffers::{self, LiveTensor};
use super::transfers::{AllTransfers, DRAM, Reader, Stored, range};
use super::workloads::{constant_weight, ids, source};
use irc_diag::Diagnostic;
use irc_gemini_format::schedule::{
    Buffer, Coords, Core, Dialect, Extent, Ids, Ifmap, LayerKind, OneOrMany, PlaceKind, Resident,
    ResidentKind, Schedule, Source, Transfers, Weight, Workload,
};
use std::collections::HashMap;

/// The number of the core in dialect B.
const CORE: i64 = 1;

/// A part of what is read, with the workloads that compute it.
type Part = (Source, Vec<i64>);

/// A schedule of dialect A that irc has written, as one of dialect B: equal to that from which it was made. `None` for
/// other schedules, which do not state the windows of their layers.
///
/// The schedule must pass its checks.
pub fn untiled(schedule: &Schedule) -> Option<Schedule> {
    let windows = schedule.windows.as_ref().filter(|_| schedule.dialect == Dialect::A)?;
    let [core] = &schedule.cores[..] else { return None };
    let mut reader = Untiling {
        workloads: &core.workloads,
        given: Transfers::new(schedule),
        windows: windows.iter().map(|window| (window.layer_name.as_str(), window.kernel)).collect(),
        numbers: HashMap::new(),
        transfers: AllTransfers::default(),
        held: vec![],
        held_weights: HashMap::new(),
    };
    let mut workloads: Vec<Workload> = vec![];
    for index in 0..core.workloads.len() {
        workloads.push(reader.workload(index)?);
    }
    for workload in &mut workloads {
        workload.ofmap = Some(reader.transfers.take_sent(workload.workload_id));
    }
    buffers::fill(CORE, &mut workloads, reader.held, schedule.buffersize? / 1024);
    Some(Schedule {
        dialect: Dialect::B,
        buffersize: None,
        dram: vec![reader.transfers.into_dram()],
        cores: vec![Core { id: CORE, workloads }],
        extra: Default::default(),
        ..schedule.clone()
    })
}

/// A diagnostic of such a schedule of dialect B, at its place in that of dialect A.
#[must_use]
pub fn in_tiled(found: Diagnostic) -> Diagnostic {
    let [from, to] = [CORE, super::tiled::CORE].map(|core| format!("$[\"{core}\"]"));
    let path = found.path.as_deref().and_then(|path| path.strip_prefix(&from));
    match path.map(|rest| format!("{to}{rest}")) {
        Some(path) => Diagnostic { path: Some(path), ..found },
        None => found,
    }
}

struct Untiling<'s> {
    workloads: &'s [Workload],
    given: Transfers<'s>,
    windows: HashMap<&'s str, [i64; 2]>,
    /// Layers by name, in the order of their first workloads.
    numbers: HashMap<&'s str, usize>,
    transfers: AllTransfers,
    held: Vec<LiveTensor>,
    /// The place of constant weights in it, by transfer.
    held_weights: HashMap<i64, usize>,
}

impl<'s> Untiling<'s> {
    fn workload(&mut self, index: usize) -> Option<Workload> {
        let of = &self.workloads[index];
        let next = self.numbers.len();
        let number = *self.numbers.entry(&of.layer_name).or_insert(next);
        let reader = Reader {
            workload: of.workload_id,
            core: CORE,
            layer: (number, of.layer_name.as_str().into()),
        };
        let kind = self.kind(of);
        let (read, parts) = self.inputs(of, kind, &reader)?;
        let ifmap = Ifmap {
            align: None,
            bitwidth: None,
            lower: read.lower,
            max_workload_id: Some(last_producer(&parts)),
            size: None,
            transfer_id: Ids::List(ids(&parts)),
            upper: read.upper,
            extra: Default::default(),
        };
        self.held.push(LiveTensor::input(&of.layer_name, of.workload_id, index, read, parts));
        let weight = match &of.weight {
            None => None,
            Some(weight) if weight.from_ofmap == Some(true) => {
                Some(self.made_weights(index, weight, &reader)?)
            }
            Some(weight) => Some(self.constant_weights(index, weight, &reader)?),
        };
        let mut stored = of.ofmaps().iter().filter(|part| self.given.is_stored(part.transfer_id));
        if stored.next().is_some() {
            self.transfers.store(of.workload_id, CORE, &of.layer_name, of.extent);
        }
        Some(Workload {
            buffer: Buffer::default(),
            ifmap: Some(OneOrMany::One(ifmap)),
            layer_name: of.layer_name.clone(),
            layer_type: Some(kind),
            ofmap: None,
            ofmap_size: 8 * of.extent.volume(),
            ring_buffer_info: None,
            tile_info: None,
            tile_padding_tblr: None,
            time: of.time,
            weight,
            wl0_buffer: None,
            wl1_buffer: None,
            extent: of.extent,
            workload_id: of.workload_id,
            extra: Default::default(),
        })
    }

    fn kind(&self, of: &Workload) -> LayerKind {
        let channels = |extent: Extent| extent.axis(1).1 - extent.axis(1).0 + 1;
        let read: i64 = of.ifmaps().iter().map(|ifmap| channels(ifmap.extent())).sum();
        match of.layer_type {
            Some(LayerKind::Pe) => LayerKind::Conv2d,
            Some(LayerKind::Dt) => LayerKind::Dt,
            _ if self.windows.contains_key(of.layer_name.as_str()) => LayerKind::Pool,
            _ if read > channels(of.extent) => LayerKind::ElementWise,
            _ => LayerKind::PointToPoint,
        }
    }

    /// What a workload reads as activations, with its box among the channels that its layer reads.
    fn inputs(
        &mut self,
        of: &Workload,
        kind: LayerKind,
        reader: &Reader,
    ) -> Option<(Extent, Vec<Part>)> {
        let current = |held: &&Resident| held.cur_wl_ifmap == Some(true);
        let mut current: Vec<&Resident> = of.buffer.iter().filter(current).collect();
        let each = match kind {
            LayerKind::ElementWise => of.extent.axis(1).1 + 1,
            _ => i64::MAX,
        };
        let (mut parts, mut whole, mut channel) = (vec![], None::<Extent>, 0);
        for ifmap in of.ifmaps() {
            let has = |held: &&Resident| {
                ifmap.transfer_id.iter().all(|id| held.transfers().any(|own| own == id))
            };
            let held = current.remove(current.iter().position(has)?);
            let extent = ifmap.extent();
            let first = channel % each;
            for from in held.sources() {
                let place = from.extent()?;
                let Some(shared) = place.intersection(&extent) else { continue };
                let truth = self.truth(from)?;
                // From a place in the tensor to one in what it is a part of.
                let by = [0, 1, 2, 3].map(|axis| truth.axis(axis).0 - place.axis(axis).0);
                let own = (0..4).fold(shared, |own, axis| own.shifted(axis, by[axis]));
                let moved = shared.axis(1).0 - extent.axis(1).0 + first - own.axis(1).0;
                let read = own.shifted(1, moved);
                whole = Some(whole.map_or(read, |whole| whole.joined(&read)));
                parts.push(self.part(from, own, moved, reader)?);
            }
            channel += extent.axis(1).1 - extent.axis(1).0 + 1;
        }
        Some((whole?, parts))
    }

    /// The box of a source in the result or in the input that it is a part of.
    fn truth(&self, from: &Source) -> Option<Extent> {
        match from.kind {
            PlaceKind::Core => self.given.extent(from.transfer_id),
            PlaceKind::Dram => self.given.dram_out(from.transfer_id).map(|out| out.extent()),
        }
    }

    /// A box of a result or of an input whose channels begin at `first` of the reader's.
    fn part(&mut self, from: &Source, own: Extent, first: i64, reader: &Reader) -> Option<Part> {
        let name = from.layer_name.as_ref()?;
        let made = |(_, index): (usize, usize)| self.workloads[index].workload_id;
        if from.kind == PlaceKind::Core {
            let producer = made(self.given.producer(from.transfer_id)?);
            let transfer = self.transfers.send(producer, own, reader);
            let found = source(own, first, name, transfer, (CORE, PlaceKind::Core));
            return Some((found, vec![producer]));
        }
        let producers: Vec<i64> = self.given.storers(from.transfer_id).map(made).collect();
        let stored = producers.iter().filter_map(|producer| self.transfers.stored(*producer));
        let stored: Vec<i64> = stored.collect();
        let what = Stored::Tensor(name.to_string());
        let transfer = self.transfers.load(what, own, None, &stored, reader);
        Some((source(own, first, name, transfer, (DRAM, PlaceKind::Dram)), producers))
    }

    fn constant_weights(&mut self, index: usize, of: &Weight, reader: &Reader) -> Option<Weight> {
        let (from, to) = of.channels()?;
        let own = range(from as u64, to as u64 + 1);
        let bytes = of.extent().volume();
        let what = Stored::Weights(of.transfers().next()? as usize);
        let transfer = self.transfers.load(what, own, Some(bytes), &[], reader);
        match self.held_weights.get(&transfer) {
            Some(known) => self.held[*known].last = index,
            None => {
                self.held_weights.insert(transfer, self.held.len());
                let name = &reader.layer.1;
                let held = LiveTensor::weights(name, index, own, bytes as u64, transfer);
                self.held.push(held);
            }
        }
        Some(constant_weight(&own, transfer))
    }

    /// Results that serve as weights.
    fn made_weights(&mut self, index: usize, of: &Weight, reader: &Reader) -> Option<Weight> {
        let workload = &self.workloads[index];
        let image = workload.extent.axis(0).0;
        let ((k, last), (c, end)) = (of.extent().axis(1), of.extent().axis(2));
        let whole = Extent::new([image, k, c, 0], [image, last, end, 0]);
        let wanted: Vec<i64> = of.transfers().collect();
        let (mut parts, mut at, mut channel) = (vec![], 0, 0);
        while at < wanted.len() {
            let has = |held: &&Resident| {
                let own: Vec<i64> = held.transfers().collect();
                held.kind == ResidentKind::Ifmap && wanted[at..].starts_with(&own)
            };
            let held = workload.buffer.iter().find(has)?;
            for from in held.sources() {
                let (place, truth) = (from.extent()?, self.truth(from)?);
                let low = truth.axis(1).0;
                let read = Extent::new([image, low, c, 0], [image, truth.axis(1).1, end, 0]);
                let Some(own) = truth.intersection(&read) else { continue };
                parts.push(self.part(from, own, channel + place.axis(1).0 - low, reader)?);
            }
            at += held.sources().len().max(1);
            channel += held.extent()?.axis(1).1 + 1;
        }
        let corner = |of: Coords| Coords::list(&of.values()[..3]).unwrap_or(of);
        let weight = Weight {
            from_ofmap: Some(true),
            lower: corner(whole.lower),
            max_workload_id: Some(last_producer(&parts)),
            size: Some(8 * whole.volume()),
            transfer_id: Some(Ids::List(ids(&parts))),
            upper: corner(whole.upper),
            extra: Default::default(),
        };
        let name = &reader.layer.1;
        let held = LiveTensor::input(name, reader.workload, index, whole, parts);
        self.held.push(held.into_weights());
        Some(weight)
    }
}

/// The last workload that computes some of what is read; 0 if none does.
fn last_producer(parts: &[Part]) -> i64 {
    parts.iter().flat_map(|(_, producers)| producers).copied().max().unwrap_or(0)
}
