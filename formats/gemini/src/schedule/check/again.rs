//! Checks redundant data: names of layers beside ids, the last producer of an operand, the first reader of
//! a tensor.

use irc_diag::{Diagnostic, Sink};

use super::super::{
    Dialect, Ids, PlaceKind, Resident, ResidentKind, Source, Target, Wl0Row, Workload,
};
use super::facts::{Facts, Place};
use super::published::Published;

/// Checks every workload, and the readers that results list.
pub(super) fn check(facts: &Facts<'_>, sink: &mut Sink, published: &mut Published) {
    for (core, index, workload) in facts.schedule.workloads() {
        let mut again = RedundancyCheck { facts, place: (core, index), workload, sink, published };
        again.producers();
        again.tiles();
        for &(at, resident) in facts.residents((core, index)) {
            again.resident(at, resident);
        }
        for (at, row) in workload.wl0().iter().enumerate() {
            again.row(at, row);
        }
    }
    for made in &facts.results {
        for target in made.targets {
            stored_for(facts, made.transfer, target, || made.path(facts.schedule), sink);
        }
    }
}

/// A stored result names a layer that reads it, or any layer if it is a result of the network.
fn stored_for(
    facts: &Facts<'_>,
    transfer: i64,
    target: &Target,
    path: impl Fn() -> String,
    sink: &mut Sink,
) {
    let Some(layer) = target.layer_name.as_deref().filter(|_| target.kind == PlaceKind::Dram)
    else {
        return;
    };
    let is_read = facts
        .ins
        .get(&transfer)
        .is_some_and(|(_, _, block)| block.related_ofmap.iter().flatten().next().is_some());
    if is_read && !facts.has_layer(layer) {
        let message =
            format!("transfer {transfer} is stored for layer `{layer}`, which does not exist");
        sink.push(Diagnostic::error("gem-o4-destination", message).path(path()));
    }
}

struct RedundancyCheck<'f, 'a> {
    facts: &'f Facts<'f>,
    place: Place,
    workload: &'f Workload,
    sink: &'a mut Sink,
    published: &'a mut Published,
}

impl RedundancyCheck<'_, '_> {
    fn error(&mut self, code: &'static str, key: &str, message: String) {
        let path = format!("{}.{key}", self.facts.path(self.place));
        self.sink.push(Diagnostic::error(code, message).path(path));
    }

    /// In dialect B the last producer of an operand is the maximum id of the workloads that compute or store
    /// it; 0 if there are none. Dialect C counts others as well.
    fn producers(&mut self) {
        let ifmap = self.workload.ifmaps().first();
        let ifmap = ifmap.map(|map| ("ifmap", map.max_workload_id, Some(&map.transfer_id)));
        let weight = self.workload.weight.as_ref();
        let weight = weight.map(|all| ("weight", all.max_workload_id, all.transfer_id.as_ref()));
        for (key, stated, transfers) in ifmap.into_iter().chain(weight) {
            let Some(stated) = stated else { continue };
            let key = format!("{key}.max_workload_id");
            if !self.facts.has_workload(stated) {
                self.error("gem-f10-last-maker", &key, format!("there is no workload {stated}"));
                continue;
            }
            let last = self.last_producer(transfers);
            if self.facts.schedule.dialect == Dialect::B && stated != last {
                let message = format!("the last producer is workload {last}, not {stated}");
                self.error("gem-f10-last-maker", &key, message);
            }
        }
    }

    fn last_producer(&self, transfers: Option<&Ids>) -> i64 {
        let facts = self.facts;
        let producers = transfers.into_iter().flat_map(Ids::iter).flat_map(|transfer| {
            let stored = facts.outs.get(&transfer).map(|(_, _, out)| out.related_ifmap.iter());
            let stored = stored.into_iter().flatten().flatten().copied();
            stored.chain([transfer]).filter_map(|id| facts.result_of(id))
        });
        producers.map(|made| facts.at(made.place).workload_id).max().unwrap_or(0)
    }

    /// Tiles must belong to the workload's layer.
    fn tiles(&mut self) {
        let layer = &self.workload.layer_name;
        for (number, tile) in self.workload.tile_info.iter().flat_map(|info| &info.tiles) {
            if tile.layer_name.as_ref().is_some_and(|name| name != layer) {
                let key = format!("tile_info.tile_num_{number}.layer_name");
                self.error("gem-k6-tile-layer", &key, format!("the tile is of layer `{layer}`"));
            }
        }
    }

    fn resident(&mut self, at: usize, resident: &Resident) {
        self.reader(at, resident);
        if resident.priority.is_some_and(|id| !self.facts.has_workload(id)) {
            let key = format!("buffer[{at}].priority");
            self.error("gem-q6-priority", &key, "there is no such workload".into());
        }
        for (index, source) in resident.sources().iter().enumerate() {
            self.source(&format!("buffer[{at}].source[{index}].layer_name"), source);
        }
    }

    /// A tensor to be read names the layer that reads it.
    fn reader(&mut self, at: usize, resident: &Resident) {
        let (facts, core) = (self.facts, self.facts.core_id(self.place));
        let Some(layer) = resident.layer() else { return };
        if resident.kind == ResidentKind::Ofmap {
            return;
        }
        let named = resident.workload_id.and_then(|id| facts.workload(core, id));
        let users = resident.transfers().flat_map(|id| facts.users(id)).copied();
        let mut readers = named.into_iter().chain(users.filter(|_| named.is_none()));
        if readers.any(|reader| facts.at(reader).layer_name == layer) {
            return;
        }
        let key = format!(
            "buffer[{at}].{}",
            if resident.layer.is_some() { "layer" } else { "layer_name" }
        );
        let message = format!("no workload of layer `{layer}` reads this tensor");
        if facts.is_by_hand {
            let why = "a tensor in the buffer of a hand-written file names the layer it comes from";
            let path = || format!("{}.{key}", facts.path(self.place));
            self.published.note("gem-d2-source-layer", why, path, || message);
        } else {
            self.error("gem-b27-layer", &key, message);
        }
    }

    /// A source that is loaded from DRAM names a layer that stored some of it.
    fn source(&mut self, key: &str, source: &Source) {
        let facts = self.facts;
        let Some(layer) = source.layer_name.as_deref().filter(|_| source.kind == PlaceKind::Dram)
        else {
            return;
        };
        let out = facts.outs.get(&source.transfer_id);
        let stored = out.into_iter().flat_map(|(_, _, out)| out.related_ifmap.iter().flatten());
        let mut producers = stored.filter_map(|id| facts.result_of(*id)).peekable();
        let is_input = producers.peek().is_none();
        if !is_input && !producers.any(|made| facts.at(made.place).layer_name == layer) {
            let message = format!("transfer {} is not of layer `{layer}`", source.transfer_id);
            self.error("gem-f9-source", key, message);
        }
    }

    /// Weights in WL0 name the layer that reads them.
    fn row(&mut self, at: usize, row: &Wl0Row) {
        let facts = self.facts;
        let mut users = row.transfer_id.iter().flat_map(|id| facts.users(id));
        if !users.any(|user| facts.at(*user).layer_name == row.layer_name) {
            let key = format!("{}[{at}].layer_name", self.workload.wl0_key());
            let message = format!("layer `{}` does not read these weights", row.layer_name);
            self.error("gem-z3-row", &key, message);
        }
    }
}
