//! An index of producers, carriers and users of transfers.

use std::collections::{HashMap, HashSet};

use super::super::{
    Core, Dialect, DramIn, DramOut, Extent, Ids, Resident, ResidentKind, Schedule, Target, Workload,
};

pub(super) use super::super::Place;

/// A schedule with indices for the checks.
pub(in super::super) struct Facts<'s> {
    /// The schedule.
    pub schedule: &'s Schedule,
    /// Whether it is a file of dialect B that counts cores from 0, as only hand-written files
    /// do.
    pub is_by_hand: bool,
    /// Names of layers.
    layers: HashSet<&'s str>,
    /// Residents of every snapshot with their indices, by core.
    snapshots: Vec<Vec<Snapshot<'s>>>,
    /// Workloads by id; in dialect A by core and id.
    workloads: HashMap<(i64, i64), Place>,
    /// Blocks loaded from DRAM: group, index there, and block; the first with an id.
    pub outs: HashMap<i64, (usize, usize, &'s DramOut)>,
    /// Blocks stored to DRAM, likewise.
    pub ins: HashMap<i64, (usize, usize, &'s DramIn)>,
    /// Ids of the groups that have a transfer.
    groups_of: HashMap<i64, Vec<i64>>,
    /// Results of workloads, in the order of the file.
    pub results: Vec<LayerResult<'s>>,
    /// The first result with each transfer.
    result_of: HashMap<i64, usize>,
    /// Workloads that use each transfer.
    users: Users,
}

/// Workloads that use each transfer, ascending. There are about as many transfers as users.
#[derive(Default)]
struct Users {
    /// Transfers in ascending order, each with the index of its first user.
    transfers: Vec<(i64, u32)>,
    /// Those of all transfers, one after the other.
    places: Vec<Place>,
}

impl Users {
    /// The users of pairs of a transfer and one of its users; those of one transfer in order.
    fn new(mut uses: Vec<(i64, Place)>) -> Self {
        uses.sort_by_key(|(transfer, _)| *transfer);
        let mut all = Self { transfers: vec![], places: Vec::with_capacity(uses.len()) };
        for (transfer, place) in uses {
            if all.transfers.last().is_none_or(|(last, _)| *last != transfer) {
                all.transfers.push((transfer, all.places.len() as u32));
            }
            all.places.push(place);
        }
        all.transfers.shrink_to_fit();
        all
    }

    fn of(&self, transfer: i64) -> &[Place] {
        let Ok(at) = self.transfers.binary_search_by_key(&transfer, |(transfer, _)| *transfer)
        else {
            return &[];
        };
        let end = self.transfers.get(at + 1).map_or(self.places.len(), |(_, end)| *end as usize);
        &self.places[self.transfers[at].1 as usize..end]
    }
}

/// The residents of a snapshot with their indices.
pub(super) type Snapshot<'s> = Vec<(usize, &'s Resident)>;

/// A part of a result, with its transfer.
pub(in super::super) struct LayerResult<'s> {
    /// Its transfer.
    pub transfer: i64,
    /// The producer.
    pub place: Place,
    /// Bytes or bits.
    pub size: i64,
    /// Its box in the layer's result, absolute.
    pub extent: Extent,
    /// The users.
    pub targets: &'s [Target],
    /// Where the workload states it.
    spot: ResultOrigin,
}

#[derive(Clone, Copy)]
enum ResultOrigin {
    /// Index in `ofmap`.
    Ofmap(usize),
    /// Index of a workload, in its `buffer` and in `destinations` there.
    Sent(usize, usize, usize),
}

impl LayerResult<'_> {
    /// Its JSON path.
    pub fn path(&self, schedule: &Schedule) -> String {
        match self.spot {
            ResultOrigin::Ofmap(index) => {
                format!("{}.ofmap[{index}]", schedule.workload_path(self.place))
            }
            ResultOrigin::Sent(holder, index, part) => {
                let holder = schedule.workload_path((self.place.0, holder));
                format!("{holder}.buffer[{index}].destinations[{part}]")
            }
        }
    }
}

/// A workload, for messages.
pub(super) fn name(schedule: &Schedule, (core, index): Place) -> String {
    let core = &schedule.cores[core];
    let workload = &core.workloads[index];
    format!("workload {} of core {} (`{}`)", workload.workload_id, core.id, workload.layer_name)
}

/// The JSON path of a block loaded from DRAM.
pub(super) fn out_path(schedule: &Schedule, (group, index): (usize, usize)) -> String {
    format!("{}.out[{index}]", group_path(schedule, group))
}

/// The JSON path of a block stored to DRAM.
pub(super) fn in_path(schedule: &Schedule, (group, index): (usize, usize)) -> String {
    format!("{}.in[{index}]", group_path(schedule, group))
}

fn group_path(schedule: &Schedule, group: usize) -> String {
    match schedule.dialect {
        Dialect::A | Dialect::B => "$[\"-1\"]".into(),
        Dialect::C => format!("$.DRAM[\"{}\"]", schedule.dram[group].id),
    }
}

impl<'s> Facts<'s> {
    /// Indexes a schedule.
    pub fn new(schedule: &'s Schedule) -> Self {
        let mut facts = Facts {
            schedule,
            is_by_hand: is_by_hand(schedule),
            layers: HashSet::new(),
            snapshots: schedule.cores.iter().map(|core| snapshots(schedule, core)).collect(),
            workloads: HashMap::new(),
            outs: HashMap::new(),
            ins: HashMap::new(),
            groups_of: HashMap::new(),
            results: vec![],
            result_of: HashMap::new(),
            users: Users::default(),
        };
        let mut uses = vec![];
        for (core, index, workload) in schedule.workloads() {
            let key = facts.key(schedule.cores[core].id, workload.workload_id);
            facts.workloads.entry(key).or_insert((core, index));
            facts.layers.insert(&workload.layer_name);
            facts.add_results((core, index), workload);
            uses.extend(used(workload).into_iter().map(|transfer| (transfer, (core, index))));
        }
        facts.users = Users::new(uses);
        if schedule.dialect == Dialect::C {
            (0..schedule.cores.len()).for_each(|core| facts.add_sent(core));
        }
        for (group, blocks) in schedule.dram.iter().enumerate() {
            for (index, out) in blocks.outs.iter().enumerate() {
                facts.outs.entry(out.transfer_id).or_insert((group, index, out));
                facts.groups_of.entry(out.transfer_id).or_default().push(blocks.id);
            }
            for (index, block) in blocks.ins.iter().enumerate() {
                facts.ins.entry(block.transfer_id).or_insert((group, index, block));
                facts.groups_of.entry(block.transfer_id).or_default().push(blocks.id);
            }
        }
        facts
    }

    /// Ids of dialect A are unique per core, those of the others globally.
    fn key(&self, core: i64, id: i64) -> (i64, i64) {
        if self.schedule.dialect == Dialect::A { (core, id) } else { (0, id) }
    }

    fn add_results(&mut self, place: Place, workload: &'s Workload) {
        let origin = &workload.extent.lower;
        for (index, ofmap) in workload.ofmaps().iter().enumerate() {
            let extent = match self.schedule.dialect {
                Dialect::A => ofmap.extent().moved_by(origin),
                Dialect::B | Dialect::C => ofmap.extent(),
            };
            let targets = &ofmap.destination[..];
            let (transfer, size, spot) =
                (ofmap.transfer_id, ofmap.size, ResultOrigin::Ofmap(index));
            self.add(LayerResult { transfer, place, size, extent, targets, spot });
        }
    }

    /// In dialect C results in snapshots list the users of each part. Their readers are not always their
    /// own, so the producer of a part is the workload of the layer and core whose result contains it.
    fn add_sent(&mut self, core: usize) {
        let schedule = self.schedule;
        let workloads = &schedule.cores[core].workloads;
        let mut layers: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, workload) in workloads.iter().enumerate() {
            layers.entry(&workload.layer_name).or_default().push(index);
        }
        for holder in 0..workloads.len() {
            for index in 0..self.snapshots[core][holder].len() {
                let (index, resident) = self.snapshots[core][holder][index];
                let producers = resident.layer().and_then(|layer| layers.get(layer));
                let producers = producers.map_or(&[][..], Vec::as_slice);
                for (part, sent) in resident.destinations.iter().flatten().enumerate() {
                    let extent = Extent { lower: sent.lower, upper: sent.upper };
                    let makes = |producer: &&usize| workloads[**producer].extent.contains(&extent);
                    let place = (core, producers.iter().find(makes).copied().unwrap_or(holder));
                    let (transfer, size) = (sent.transfer_id, sent.size);
                    let known = self.result_of(transfer);
                    if known.is_some_and(|made| made.place == place && made.extent == extent) {
                        continue;
                    }
                    let targets = &sent.destination[..];
                    let spot = ResultOrigin::Sent(holder, index, part);
                    self.add(LayerResult { transfer, place, size, extent, targets, spot });
                }
            }
        }
    }

    fn add(&mut self, made: LayerResult<'s>) {
        self.result_of.entry(made.transfer).or_insert(self.results.len());
        self.results.push(made);
    }

    /// The workload with an id on a core.
    pub fn workload(&self, core: i64, id: i64) -> Option<Place> {
        let place = self.workloads.get(&self.key(core, id)).copied()?;
        (self.schedule.cores[place.0].id == core).then_some(place)
    }

    /// Whether a workload has that id, in dialects B and C.
    pub fn has_workload(&self, id: i64) -> bool {
        self.workloads.contains_key(&(0, id))
    }

    /// Whether a workload belongs to that layer.
    pub fn has_layer(&self, name: &str) -> bool {
        self.layers.contains(name)
    }

    /// The workload at a place.
    pub fn at(&self, (core, index): Place) -> &'s Workload {
        &self.schedule.cores[core].workloads[index]
    }

    /// The result with a transfer; the first, if several have it.
    pub fn result_of(&self, transfer: i64) -> Option<&LayerResult<'s>> {
        self.result_of.get(&transfer).map(|&index| &self.results[index])
    }

    /// The residents of the snapshot at a place, with their indices; repeated ones count once.
    pub fn residents(&self, (core, index): Place) -> &[(usize, &'s Resident)] {
        &self.snapshots[core][index]
    }

    /// Whether a workload uses a transfer.
    pub fn is_user(&self, place: Place, transfer: i64) -> bool {
        self.users(transfer).binary_search(&place).is_ok()
    }

    /// Workloads that use a transfer, ascending.
    pub fn users(&self, transfer: i64) -> &[Place] {
        self.users.of(transfer)
    }

    /// The id of the core at a place.
    pub fn core_id(&self, place: Place) -> i64 {
        self.schedule.cores[place.0].id
    }

    /// Whether the ids of a place are those of DRAM: in dialect C, of the groups that have the
    /// transfer.
    pub fn is_dram(&self, transfer: i64, core_id: Option<i64>, id: Option<&Ids>) -> bool {
        let dram = self.schedule.dram_id();
        match (self.schedule.dialect, id) {
            (Dialect::A, _) => core_id == Some(dram),
            (Dialect::C, Some(Ids::List(ids))) => ids.iter().copied().eq(self.groups(transfer)),
            (_, id) => id.and_then(Ids::first) == Some(dram),
        }
    }

    /// Ids of the groups that store or load a transfer, in the order of the file.
    fn groups(&self, transfer: i64) -> impl Iterator<Item = i64> {
        self.groups_of.get(&transfer).into_iter().flatten().copied()
    }

    /// The path of a workload.
    pub fn path(&self, place: Place) -> String {
        self.schedule.workload_path(place)
    }

    /// A workload, for messages.
    pub fn name(&self, place: Place) -> String {
        name(self.schedule, place)
    }
}

fn is_by_hand(schedule: &Schedule) -> bool {
    let plain = 0..schedule.xlen.saturating_mul(schedule.ylen);
    schedule.dialect == Dialect::B
        && schedule.cores.iter().any(|core| core.id == 0)
        && schedule.cores.iter().all(|core| plain.contains(&core.id))
}

/// Transfers that a workload uses, each once. Some files of dialect B state its operands only in the
/// buffer.
pub(super) fn used(workload: &Workload) -> Vec<i64> {
    let mut all: Vec<i64> =
        workload.ifmaps().iter().flat_map(|ifmap| ifmap.transfer_id.iter()).collect();
    if workload.ifmap.is_none() {
        let own = workload.buffer.iter().filter(|resident| {
            resident.kind == ResidentKind::Ifmap
                && resident.workload_id == Some(workload.workload_id)
        });
        all.extend(own.flat_map(Resident::transfers));
    }
    let weight = workload.weight.iter().filter_map(|weight| weight.transfer_id.as_ref());
    all.extend(weight.flat_map(Ids::iter));
    let mut seen = HashSet::with_capacity(all.len());
    all.retain(|transfer| seen.insert(*transfer));
    all
}

/// The residents of every snapshot of a core. Files of dialect C repeat some, which then count once.
fn snapshots<'s>(schedule: &Schedule, core: &'s Core) -> Vec<Snapshot<'s>> {
    let residents = |workload: &'s Workload| {
        let mut seen = HashSet::new();
        let mut is_new = |each: &'s Resident| {
            let key = (each.kind, each.address, &each.transfer_id, each.extent(), each.workload_id);
            seen.insert((key, each.layer()))
        };
        let all = workload.buffer.iter().enumerate();
        all.filter(|(_, each)| schedule.dialect != Dialect::C || is_new(each)).collect()
    };
    core.workloads.iter().map(residents).collect()
}
