//! Checks that the tensors of a snapshot fit into the L2 buffer without overlap.

use irc_diag::{Diagnostic, Sink};

use super::super::{Dialect, Resident, Workload};
use super::Limits;
use super::facts::{Facts, Place};
use super::published::Published;
use super::rings::{self, Location};

/// Number of regions of the ring table: four banks of four.
const MAX_REGIONS: usize = 16;

/// Unit of the ring table: KiB.
const KIB: i64 = 1024;

/// Checks every snapshot.
pub(super) fn check(
    facts: &Facts<'_>,
    limits: &Limits,
    sink: &mut Sink,
    published: &mut Published,
) {
    let mut heights = vec![None; facts.schedule.cores.len()];
    for (core, index, workload) in facts.schedule.workloads() {
        let place = (core, index);
        let memory = Memory { facts, place, workload };
        if facts.schedule.dialect == Dialect::A {
            memory.regions(sink);
            memory.bytes(sink);
            continue;
        }
        memory.blocks(limits, sink, published);
        if let Some(height) = memory.allocated(sink) {
            let highest = &mut heights[core];
            if highest.is_none_or(|(most, _)| height > most) {
                *highest = Some((height, place));
            }
        }
    }
    for (height, place) in heights.into_iter().flatten() {
        if height > limits.l2_blocks {
            let message = format!(
                "the addresses of {} need {height} KiB, but the buffer has {}",
                facts.name(place),
                limits.l2_blocks
            );
            let diagnostic = Diagnostic::error("gem-b16-capacity", message);
            sink.push(diagnostic.path(format!("{}.buffer", facts.path(place))));
        }
    }
}

struct Memory<'f> {
    facts: &'f Facts<'f>,
    place: Place,
    workload: &'f Workload,
}

/// A tensor, for messages.
pub(super) fn tensor(resident: &Resident) -> String {
    let id = resident.tensor_id.map_or("tensor".into(), |id| format!("tensor {id}"));
    let transfers: Vec<i64> = resident.transfers().collect();
    let layer = resident.layer().map_or(String::new(), |layer| format!(" of `{layer}`"));
    let via =
        if transfers.is_empty() { String::new() } else { format!(", transfers {transfers:?}") };
    format!("{id} ({}{layer}{via})", resident.kind)
}

impl Memory<'_> {
    fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.facts.path(self.place))
    }

    /// Regions are in the buffer, in order, disjoint, and fit into the ring table.
    fn regions(&self, sink: &mut Sink) {
        let regions = self.workload.regions();
        let bytes = self.facts.schedule.buffersize.unwrap_or(i64::MAX);
        let mut before = 0;
        for (index, &[start, end]) in regions.iter().enumerate() {
            let path = || self.path(&format!("ring_buffer_info[{index}]"));
            if start < before || end <= start || end > bytes {
                let message =
                    format!("the region from {start} to {end} is not between {before} and {bytes}");
                sink.push(Diagnostic::error("gem-r1-region", message).path(path()));
            } else if start % KIB != 0 || end % KIB != 0 {
                let message =
                    format!("the region from {start} to {end} is not a whole number of KiB");
                sink.push(Diagnostic::error("gem-r2-ring-table", message).path(path()));
            }
            before = end.max(before);
        }
        if !(1..=MAX_REGIONS).contains(&regions.len()) {
            let message = format!(
                "expected 1 to {MAX_REGIONS} regions of the ring table, found {}",
                regions.len()
            );
            let diagnostic = Diagnostic::error("gem-r2-ring-table", message);
            sink.push(diagnostic.path(self.path("ring_buffer_info")));
        }
    }

    /// Dialect A: addresses and sizes in bytes.
    fn bytes(&self, sink: &mut Sink) {
        let regions = self.workload.regions();
        let (mut spans, mut sum) = (vec![], 0i64);
        for (index, resident) in self.workload.buffer.iter().enumerate() {
            let Some((address, size)) = resident.address.zip(resident.size) else { continue };
            sum = sum.saturating_add(size);
            let name = tensor(resident);
            let (code, message) = match rings::locate(regions, address, size) {
                Location::At(found) => {
                    spans.extend(found.into_iter().map(|span| (span, index)));
                    continue;
                }
                Location::Nowhere => {
                    ("gem-b3-address", format!("{name} starts at {address}, in no region"))
                }
                Location::TooLarge(bytes) => {
                    let message =
                        format!("{name} at {address} has {size} bytes, but its region has {bytes}");
                    ("gem-b4-region-size", message)
                }
            };
            let message = format!("{}: {message}", self.facts.name(self.place));
            let path = self.path(&format!("buffer[{index}].address"));
            sink.push(Diagnostic::error(code, message).path(path));
        }
        self.overlap(&spans, sink);
        let capacity = regions
            .iter()
            .fold(0i64, |sum, [start, end]| sum.saturating_add(end.saturating_sub(*start)));
        if sum > capacity {
            let message = format!(
                "{}: its tensors have {sum} bytes, but the regions have {capacity}",
                self.facts.name(self.place)
            );
            sink.push(Diagnostic::error("gem-b16-capacity", message).path(self.path("buffer")));
        }
    }

    fn overlap(&self, spans: &[(rings::Span, usize)], sink: &mut Sink) {
        let Some((address, a, b)) = rings::shared(spans) else { return };
        let (a, b) = (a.min(b), a.max(b));
        let [first, second] = [a, b].map(|index| tensor(&self.workload.buffer[index]));
        let message = format!(
            "{}: {first} and {second} are both at address {address}",
            self.facts.name(self.place)
        );
        let [a, b] = [a, b].map(|index| self.path(&format!("buffer[{index}].address")));
        let diagnostic = Diagnostic::error("gem-b15-overlap", message).path(b);
        sink.push(diagnostic.related(a, first));
    }

    /// Dialects B and C: the sum of the blocks, where there are no addresses.
    fn blocks(&self, limits: &Limits, sink: &mut Sink, published: &mut Published) {
        let all = self.facts.residents(self.place);
        if all.iter().any(|(_, resident)| resident.address.is_some()) {
            let lacking = all.iter().filter(|(_, resident)| resident.address.is_none());
            for (at, _) in lacking {
                let message = "missing key `address`, which other tensors of the snapshot have";
                let diagnostic = Diagnostic::error("gem-missing-key", message);
                sink.push(diagnostic.path(self.path(&format!("buffer[{at}]"))));
            }
            return;
        }
        let sum =
            all.iter().fold(0i64, |sum, (_, each)| sum.saturating_add(each.block.unwrap_or(0)));
        if sum > limits.l2_blocks {
            let why = "snapshots without addresses need not fit; the file does not state the \
                       size of the buffer";
            let path = || self.path("buffer");
            let message = || {
                format!(
                    "{}: its tensors take {sum} KiB, of {} KiB",
                    self.facts.name(self.place),
                    limits.l2_blocks
                )
            };
            published.note("gem-b16-unallocated", why, path, message);
        }
    }

    /// Dialect C: allocated blocks are disjoint, modulo a height that the file does not state. The minimum
    /// height that the snapshot allows.
    fn allocated(&self, sink: &mut Sink) -> Option<i64> {
        let all = self.facts.residents(self.place);
        let spans: Vec<(rings::Span, usize)> = all
            .iter()
            .filter_map(|(index, each)| Some((each.address.zip(each.block)?, *index)))
            .map(|((address, block), index)| ((address, address + block), index))
            .collect();
        self.overlap(&spans, sink);
        let first = spans.iter().map(|((start, _), _)| *start).min()?;
        let last = spans.iter().map(|((_, end), _)| *end).max()?;
        let highest = spans.iter().map(|((start, _), _)| start + 1).max()?;
        Some((last - first).max(highest))
    }
}
