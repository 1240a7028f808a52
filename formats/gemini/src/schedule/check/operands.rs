//! Checks operands: an operand of a workload is in its snapshot, is covered by its transfers, and agrees
//! with them.

use std::collections::BTreeSet;

use irc_diag::{Diagnostic, Sink, counted};

use super::super::{
    Dialect, Extent, Ifmap, LayerKind, Resident, ResidentKind, Source, Weight, Workload,
};
use super::boxes;
use super::facts::{Facts, Place};
use super::published::Published;

/// Checks every operand and every tensor in L2.
pub(super) fn check(facts: &Facts<'_>, sink: &mut Sink, published: &mut Published) {
    for (core, index, workload) in facts.schedule.workloads() {
        let mut operands = Operands { facts, place: (core, index), workload, sink, published };
        operands.ifmaps();
        if let Some(weight) = &workload.weight {
            operands.weight(weight);
        }
        for &(at, resident) in facts.residents((core, index)) {
            operands.composite(at, resident);
            if facts.schedule.dialect != Dialect::A && resident.kind == ResidentKind::Ifmap {
                operands.reader(at, resident);
            }
        }
    }
}

struct Operands<'f, 'a> {
    facts: &'f Facts<'f>,
    place: Place,
    workload: &'f Workload,
    sink: &'a mut Sink,
    published: &'a mut Published,
}

impl Operands<'_, '_> {
    fn error(&mut self, code: &'static str, key: &str, message: String) {
        let path = format!("{}.{key}", self.facts.path(self.place));
        self.sink.push(Diagnostic::error(code, message).path(path));
    }

    fn name(&self) -> String {
        self.facts.name(self.place)
    }

    /// Every input tensor is in the snapshot, once, and no other is marked as one.
    fn ifmaps(&mut self) {
        let workload = self.workload;
        let is_a = self.facts.schedule.dialect == Dialect::A;
        let all = self.facts.residents(self.place).iter().copied();
        let current: Vec<(usize, &Resident)> = all
            .filter(|(_, resident)| match is_a {
                true => resident.cur_wl_ifmap == Some(true),
                false => {
                    resident.kind == ResidentKind::Ifmap
                        && resident.workload_id == Some(workload.workload_id)
                }
            })
            .collect();
        if workload.ifmap.is_none() {
            return;
        }
        if current.len() != workload.ifmaps().len() {
            let message = format!(
                "{} reads {}, but its snapshot marks {}",
                self.name(),
                counted(workload.ifmaps().len(), "tensor"),
                current.len()
            );
            self.error("gem-b17-ifmap-resident", "buffer", message);
        }
        for (index, ifmap) in workload.ifmaps().iter().enumerate() {
            let key = if is_a { format!("ifmap[{index}]") } else { "ifmap".into() };
            let ids: BTreeSet<i64> = ifmap.transfer_id.iter().collect();
            let held = current.iter().find(|(_, resident)| {
                let there: BTreeSet<i64> = resident.transfers().collect();
                ids.is_subset(&there) && !ids.is_empty()
            });
            match held {
                Some((_, resident)) => self.ifmap(&key, ifmap, resident),
                None => {
                    let message =
                        format!("{} reads {ids:?}, which is not in its snapshot", self.name());
                    self.error("gem-b17-ifmap-resident", &key, message);
                }
            }
        }
    }

    /// An operand is covered by sources, and lists the ids of the sources that it overlaps.
    fn ifmap(&mut self, key: &str, ifmap: &Ifmap, resident: &Resident) {
        let extent = ifmap.extent();
        // In dialect A a tensor may contain more than one workload reads.
        let is_a = self.facts.schedule.dialect == Dialect::A;
        let fits = |whole: &Extent| if is_a { whole.contains(&extent) } else { *whole == extent };
        let Some(whole) = resident.extent().filter(fits) else {
            let word = if is_a { "within" } else { "the box of" };
            let message = format!("{extent} is not {word} the tensor in the snapshot");
            self.error("gem-f6-ifmap-extent", key, message);
            return;
        };
        let sources: Option<Vec<(i64, Extent)>> = resident
            .sources()
            .iter()
            .map(|source| Some((source.transfer_id, concatenated(source)?)))
            .collect();
        let Some(sources) = sources.filter(|sources| !sources.is_empty()) else { return };
        let part = |(id, source): &(i64, Extent)| Some((*id, source.intersection(&extent)?));
        let parts: Vec<(i64, Extent)> = sources.iter().filter_map(part).collect();
        let overlapped: BTreeSet<i64> = parts.iter().map(|(id, _)| *id).collect();
        let listed: BTreeSet<i64> = ifmap.transfer_id.iter().collect();
        if overlapped != listed {
            let message = format!("reads {listed:?}, but {extent} overlaps {overlapped:?}");
            self.error("gem-f8-source-ids", &format!("{key}.transfer_id"), message);
        }
        let parts: Vec<Extent> = parts.into_iter().map(|(_, part)| part).collect();
        self.cover(key, &parts, &extent, &whole);
    }

    /// Sources are disjoint and cover the operand; those of elementwise layers, whose operands share
    /// channels, cover it as often as there are operands.
    fn cover(&mut self, key: &str, parts: &[Extent], extent: &Extent, whole: &Extent) {
        let (covered, volume) = (boxes::volume(parts), extent.volume());
        let folds = self.workload.layer_type == Some(LayerKind::ElementWise);
        if folds && covered % volume == 0 && covered > volume {
            return;
        }
        if let Some((a, b)) = boxes::overlapping(parts) {
            let message = format!("its sources overlap: {} and {}", parts[a], parts[b]);
            self.error("gem-f7-source-cover", key, message);
            return;
        }
        let is_b = self.facts.schedule.dialect == Dialect::B;
        let lacks_operand = is_b && folds && covered == volume;
        if covered == volume && !lacks_operand {
            return;
        }
        let message = || match lacks_operand {
            true => "its sources cover only one operand of an elementwise layer".into(),
            false => format!("its sources cover {covered} of the {volume} elements of {extent}"),
        };
        let is_prefix = boxes::hull(parts).is_some_and(|hull| {
            let same = |axis| hull.axis(axis) == whole.axis(axis);
            hull.volume() == covered
                && [0, 2, 3].into_iter().all(same)
                && hull.axis(1).0 == whole.axis(1).0
        });
        if is_b && is_prefix {
            let why = "SET's main branch omits an input of the network when the layer also \
                       has a predecessor, as the states of LSTMs do";
            let path = || format!("{}.{key}", self.facts.path(self.place));
            self.published.note("gem-f7-external-input", why, path, message);
        } else {
            self.error("gem-f7-source-cover", key, message());
        }
    }

    /// A weight is loaded from DRAM as it is there; activations that serve as a weight may be computed here.
    fn weight(&mut self, weight: &Weight) {
        let Some(ids) = &weight.transfer_id else {
            let why = "SET's main branch omits the transfers of activations that serve as \
                       weights, other than those of the first workload";
            let (facts, place) = (self.facts, self.place);
            let path = || format!("{}.weight", facts.path(place));
            let message = || format!("the weight of {} has no transfer", facts.name(place));
            if weight.from_ofmap == Some(true) {
                self.published.note("gem-g5-weight-transfer", why, path, message);
            } else {
                self.error("gem-g3-weight-source", "weight", message());
            }
            return;
        };
        if weight.from_ofmap == Some(true) {
            return;
        }
        let count = ids.iter().count();
        if count != 1 {
            let message = format!("expected one transfer of a weight, found {count}");
            self.error("gem-g3-weight-source", "weight.transfer_id", message);
        }
        for id in ids.iter() {
            let Some((_, _, out)) = self.facts.outs.get(&id) else { continue };
            if !out.is_weight() {
                let message = format!("transfer {id} is not a weight");
                self.error("gem-g3-weight-source", "weight.transfer_id", message);
                continue;
            }
            let same_size = weight.size.is_none_or(|size| size == out.size);
            if out.extent() != weight.extent() || !same_size {
                let (found, there) = (weight.extent(), out.extent());
                let message =
                    format!("{found} is read, but transfer {id} is {there} of size {}", out.size);
                self.error("gem-g4-weight-extent", "weight", message);
            }
        }
    }

    /// A tensor is the disjoint union of its sources, and has their ids.
    fn composite(&mut self, at: usize, resident: &Resident) {
        if resident.kind == ResidentKind::Ofmap {
            return;
        }
        let key = format!("buffer[{at}]");
        if matches!(resident.source, Some(crate::record::Nullable(None))) {
            let why = "SET's main branch writes no sources for activations that serve as weights, \
                       other than those of the first workload";
            let (facts, place) = (self.facts, self.place);
            let path = || format!("{}.{key}.source", facts.path(place));
            let message =
                || format!("a tensor in the snapshot of {} has no sources", facts.name(place));
            self.published.note("gem-b9-null-source", why, path, message);
            return;
        }
        let dialect = self.facts.schedule.dialect;
        let sources = resident.sources();
        let listed: Vec<i64> = resident.transfers().collect();
        let there: Vec<i64> = sources.iter().map(|source| source.transfer_id).collect();
        if listed != there {
            let message = format!("the tensor lists {listed:?}, but its sources are {there:?}");
            self.error("gem-b10-composite", &format!("{key}.transfer_id"), message);
        }
        for (index, source) in sources.iter().enumerate() {
            self.source(&format!("{key}.source[{index}]"), source);
        }
        // Activations that serve as weights have boxes of other axes in dialect B.
        let is_plain = resident.lower.is_some_and(|lower| lower.is_plain());
        if resident.kind == ResidentKind::Weight && (dialect == Dialect::A || is_plain) {
            let from = sources.first().and_then(Source::extent);
            let same_size =
                resident.size.zip(sources.first()).is_none_or(|(size, source)| size == source.size);
            if from.is_some() && from != resident.extent() || !same_size {
                let message = "the weight differs from its source".into();
                self.error("gem-b10-composite", &key, message);
            }
        }
        if dialect != Dialect::A || resident.kind != ResidentKind::Ifmap {
            return;
        }
        let parts: Option<Vec<Extent>> = sources.iter().map(Source::extent).collect();
        let (Some(parts), Some(whole)) = (parts, resident.extent()) else { return };
        let is_union = boxes::overlapping(&parts).is_none()
            && parts.iter().all(|part| whole.contains(part))
            && boxes::volume(&parts) == whole.volume();
        if !is_union {
            let message = format!("{whole} is not the disjoint union of its sources");
            self.error("gem-b10-composite", &key, message);
        }
    }

    /// A tensor to be read names the workload of the core that reads it, and is equal to that operand.
    fn reader(&mut self, at: usize, resident: &Resident) {
        let facts = self.facts;
        let core = facts.core_id(self.place);
        let reader = resident.workload_id.and_then(|id| facts.workload(core, id));
        let ifmap = reader.and_then(|place| facts.at(place).ifmaps().first());
        let is_read = match (reader, ifmap) {
            (None, _) => false,
            (Some(place), None) => facts.at(place).ifmap.is_none(),
            (Some(_), Some(ifmap)) => {
                let extent = resident.extent().is_none_or(|extent| extent == ifmap.extent());
                extent && ifmap.transfer_id.iter().eq(resident.transfers())
            }
        };
        if !is_read {
            let message = match resident.workload_id {
                Some(id) => format!("workload {id} of core {core} does not read this tensor"),
                None => "the tensor names no workload that reads it".into(),
            };
            self.error("gem-b11-reader", &format!("buffer[{at}]"), message);
        }
    }

    /// A source agrees with its transfer in DRAM or at the producer.
    fn source(&mut self, key: &str, source: &Source) {
        let facts = self.facts;
        let (id, dialect) = (source.transfer_id, facts.schedule.dialect);
        let from_dram = source.kind == super::super::PlaceKind::Dram;
        let truth = match from_dram {
            true => facts.outs.get(&id).map(|(_, _, out)| (out.extent(), out.size, None)),
            false => facts.result_of(id).map(|made| (made.extent, made.size, Some(made.place))),
        };
        let Some((extent, size, producer)) = truth else {
            let place = if from_dram { "DRAM does not list" } else { "no workload makes" };
            self.error("gem-f9-source", key, format!("{place} transfer {id}"));
            return;
        };
        if let Some(place) = producer {
            let layer = &facts.at(place).layer_name;
            let other_core = source.core().is_some_and(|core| core != facts.core_id(place));
            if other_core || source.layer_name.as_deref().is_some_and(|name| name != layer) {
                let message = format!("transfer {id} comes from {}", facts.name(place));
                self.error("gem-f9-source", key, message);
            }
        }
        if from_dram && !facts.is_dram(id, source.core_id, source.id.as_ref()) {
            self.error("gem-f9-source", key, "it comes from DRAM, but has no id of DRAM".into());
        }
        let channels = source.extent().map(|extent| extent.axis(1));
        if let (Some([first, last]), Some((lower, upper))) = (source.channel, channels)
            && last - first != upper - lower
        {
            let message = format!("channels {lower}..={upper} are placed at {first}..={last}");
            self.error("gem-f9-source", key, message);
        }
        // In dialect A a source is placed in the tensor; its lengths are those of the transfer.
        let Some(found) = source.extent() else { return };
        let same = match dialect {
            Dialect::A => found.lengths().eq(extent.lengths()),
            Dialect::B | Dialect::C => found == extent,
        };
        if !same || source.size != size {
            let message = format!(
                "transfer {id} is {extent} of size {size}, not {found} of size {}",
                source.size
            );
            self.error("gem-f9-source", key, message);
        }
    }
}

/// The box of a source in the space of concatenated channels.
fn concatenated(source: &Source) -> Option<Extent> {
    let extent = source.extent()?;
    let Some([first, last]) = source.channel else { return Some(extent) };
    let ([n, _, h, w], [to_n, _, to_h, to_w]) = (
        <[i64; 4]>::try_from(extent.lower.values()).ok()?,
        <[i64; 4]>::try_from(extent.upper.values()).ok()?,
    );
    Some(Extent::new([n, first, h, w], [to_n, last, to_h, to_w]))
}
