//! Checks that weights are in the WL0 buffer when they are used, without overlap.

use irc_diag::{Diagnostic, Sink, counted};

use super::super::{Dialect, Extent, Resident, ResidentKind, Weight, Wl0Row, Wl0Source, Workload};
use super::Limits;
use super::facts::{Facts, Place};
use super::published::Published;
use super::rings;
use super::sizes::up;

/// Bytes per unit of WL0.
const UNIT: i64 = 64;

/// Output channels that WL0 holds side by side.
const CHANNELS: i64 = 64;

/// Checks the weights of every workload.
pub(super) fn check(
    facts: &Facts<'_>,
    limits: &Limits,
    sink: &mut Sink,
    published: &mut Published,
) {
    for (core, index, workload) in facts.schedule.workloads() {
        let wl0 = Wl0 { facts, place: (core, index), workload };
        if facts.schedule.dialect != Dialect::A {
            wl0.weight_in_l2(sink, published);
            continue;
        }
        for (at, row) in workload.wl0().iter().enumerate() {
            wl0.row(at, row, sink);
            wl0.stays(at, row, sink);
        }
        wl0.apart(limits, sink);
        wl0.weight(sink);
    }
}

struct Wl0<'f> {
    facts: &'f Facts<'f>,
    place: Place,
    workload: &'f Workload,
}

impl Wl0<'_> {
    fn path(&self, at: usize) -> String {
        format!("{}.{}[{at}]", self.facts.path(self.place), self.workload.wl0_key())
    }

    /// A row is a weight loaded from DRAM, with its size.
    fn row(&self, at: usize, row: &Wl0Row, sink: &mut Sink) {
        let mut wrong = |code, key: &str, message: String| {
            let path = format!("{}{key}", self.path(at));
            sink.push(Diagnostic::error(code, message).path(path));
        };
        if row.source == Wl0Source::Core
            && let Some((extent, channels)) = self.made_weight(row)
        {
            let expected = 2 * row_units(&extent, channels);
            if row.size != expected {
                wrong("gem-z5-row-size", ".size", size_message(expected, row.size));
            }
            return;
        }
        let weight = row.transfer_id.first().and_then(|id| self.facts.outs.get(&id));
        let Some((_, _, out)) = weight.filter(|(_, _, out)| out.is_weight()) else {
            let message = format!("transfers {:?} are not a weight in DRAM", row.transfer_id);
            wrong("gem-z3-row", ".transfer_id", message);
            return;
        };
        let extent = out.extent();
        let corners = row.lower.zip(row.upper).map(|(lower, upper)| Extent { lower, upper });
        let expected = match row.source {
            Wl0Source::Ddr => {
                if corners != Some(extent) {
                    let message = format!("expected the weight {extent} as in DRAM");
                    wrong("gem-z3-row", "", message);
                }
                row_units(&extent, extent.lengths().nth(1).unwrap_or(0))
            }
            Wl0Source::Core => match self.tile_channels(out.transfer_id) {
                // Two tiles alternate.
                Some(channels) => 2 * row_units(&extent, channels),
                None => return,
            },
        };
        if row.size != expected {
            wrong("gem-z5-row-size", ".size", size_message(expected, row.size));
        }
    }

    /// A row that was present before has not moved.
    fn stays(&self, at: usize, row: &Wl0Row, sink: &mut Sink) {
        let (core, index) = self.place;
        let Some(before) = index.checked_sub(1).map(|index| self.facts.at((core, index))) else {
            return;
        };
        let is_it = |old: &&Wl0Row| old.transfer_id == row.transfer_id && old.source == row.source;
        if before.wl0().iter().find(is_it).is_some_and(|old| old.address != row.address) {
            let message = format!("the weight of `{}` moves to {}", row.layer_name, row.address);
            let path = format!("{}.address", self.path(at));
            sink.push(Diagnostic::error("gem-z6-moved", message).path(path));
        }
    }

    /// Output channels of the largest tile of the next workload that uses a weight.
    fn tile_channels(&self, transfer: i64) -> Option<i64> {
        let (core, index) = self.place;
        let users = self.facts.users(transfer);
        let user = users.iter().find(|user| user.0 == core && user.1 >= index)?;
        most_channels(self.facts.at(*user))
    }

    /// The box of results that are the weights of this workload and have this row, and the output channels of its largest
    /// tile.
    fn made_weight(&self, row: &Wl0Row) -> Option<(Extent, i64)> {
        let weight = self.workload.weight.as_ref().filter(|weight| is_made(weight))?;
        weight.transfers().eq(row.transfer_id.iter()).then_some(())?;
        Some((weight.extent(), most_channels(self.workload)?))
    }

    /// Rows are disjoint, within the buffer.
    fn apart(&self, limits: &Limits, sink: &mut Sink) {
        let rows = self.workload.wl0();
        let span =
            |(at, row): (usize, &Wl0Row)| ((row.address, row.address.saturating_add(row.size)), at);
        let spans: Vec<_> = rows.iter().enumerate().map(span).collect();
        let name = self.facts.name(self.place);
        let row_name = |at: usize| {
            let row = &rows[at];
            format!(
                "the weight of `{}`, transfer {:?}",
                row.layer_name,
                row.transfer_id.first().unwrap_or(-1)
            )
        };
        if let Some((address, a, b)) = rings::shared(&spans) {
            let [first, second] = [a, b].map(row_name);
            let message = format!("{name}: {first} and {second} are both at WL0 address {address}");
            let diagnostic = Diagnostic::error("gem-z1-wl0-overlap", message).path(self.path(b));
            sink.push(diagnostic.related(self.path(a), first));
        }
        for ((_, end), at) in spans {
            if end > limits.wl0_units {
                let message = format!(
                    "{name}: {} ends at unit {end} of WL0, which has {}",
                    row_name(at),
                    limits.wl0_units
                );
                sink.push(Diagnostic::error("gem-z2-wl0-capacity", message).path(self.path(at)));
            }
        }
    }

    /// The weight that a workload uses is in WL0, once: from L2 if and only if it is there.
    fn weight(&self, sink: &mut Sink) {
        let Some(weight) = &self.workload.weight else { return };
        let name = self.facts.name(self.place);
        for id in weight.transfers() {
            let rows = self.workload.wl0().iter().enumerate();
            let rows: Vec<_> =
                rows.filter(|(_, row)| row.transfer_id.iter().any(|other| other == id)).collect();
            let path = || format!("{}.weight", self.facts.path(self.place));
            let [(at, row)] = rows[..] else {
                let message = format!("{name}: its weight is {} times in WL0", rows.len());
                sink.push(Diagnostic::error("gem-b18-weight-resident", message).path(path()));
                continue;
            };
            // Results that serve as weights are tensors as any results.
            let kind = match is_made(weight) {
                true => ResidentKind::Ifmap,
                false => ResidentKind::Weight,
            };
            let in_l2 = self.workload.buffer.iter().any(|resident| {
                resident.kind == kind && resident.transfers().any(|other| other == id)
            });
            if in_l2 != (row.source == Wl0Source::Core) {
                let place = if in_l2 { "is in L2" } else { "is not in L2" };
                let message =
                    format!("{name}: its weight {place}, but WL0 takes it from {}", row.source);
                let diagnostic = Diagnostic::error("gem-b19-weight-source", message);
                sink.push(diagnostic.path(format!("{}.source", self.path(at))));
            }
        }
    }

    /// In dialects B and C weights are in L2.
    fn weight_in_l2(&self, sink: &mut Sink, published: &mut Published) {
        let Some(weight) = &self.workload.weight else { return };
        let all: Vec<i64> = weight.transfers().collect();
        let weights = || {
            let buffer = self.workload.buffer.iter();
            buffer.filter(|resident| resident.kind == ResidentKind::Weight)
        };
        let is_there =
            |id: &i64| weights().any(|resident| resident.transfers().any(|other| other == *id));
        if all.iter().all(is_there) {
            return;
        }
        let path = || format!("{}.weight", self.facts.path(self.place));
        let message = || format!("{}: its weight is not in L2", self.facts.name(self.place));
        let layer = |resident: &Resident| resident.layer() == Some(&self.workload.layer_name);
        if self.facts.schedule.dialect == Dialect::C && weights().any(layer) {
            let why = "SET's branches keep the weight of an earlier layer in the \
                       snapshot, and list no other";
            published.note("gem-b26-unlisted-weight", why, path, message);
        } else {
            sink.push(Diagnostic::error("gem-b18-weight-resident", message()).path(path()));
        }
    }
}

/// Whether a weight is results.
fn is_made(weight: &Weight) -> bool {
    weight.from_ofmap == Some(true)
}

/// Output channels of the largest tile of a workload.
fn most_channels(workload: &Workload) -> Option<i64> {
    workload.tiles().filter_map(|tile| tile.ofmap().lengths().nth(1)).max()
}

fn size_message(expected: i64, found: i64) -> String {
    format!("expected {} of 64 bytes for this row, found {found}", counted(expected, "unit"))
}

/// Units of WL0 that some output channels of a weight `[0, K, C, R*S]` take: channels come in groups of 64,
/// each a row of 32-byte units and a unit of parameters.
fn row_units(extent: &Extent, channels: i64) -> i64 {
    let lengths: Vec<i64> = extent.lengths().collect();
    let [_, _, c, window] = lengths[..] else { return 0 };
    let row = up(up(c, 8).saturating_mul(window), 32).saturating_add(32);
    up(channels, CHANNELS).saturating_mul(row) / UNIT
}
