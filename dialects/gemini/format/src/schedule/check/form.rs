//! Values that have the right type but cannot be: missing for the dialect, upside down, negative.

use irc_diag::{Diagnostic, Sink};

use super::super::{
    Coords, Dialect, Extent, OneOrMany, Resident, ResidentKind, Schedule, Workload,
};
use super::facts;

/// Largest extent of a mesh.
const MAX_MESH: i64 = 4096;

/// Checks that what every other check computes with is sound.
pub(super) fn check(schedule: &Schedule, sink: &mut Sink) {
    let mut form = Form { sink };
    let mesh = if schedule.dialect == Dialect::C { "$.metadata" } else { "$" };
    let sizes = [("xlen", schedule.xlen), ("ylen", schedule.ylen)];
    for (key, value) in sizes {
        form.between(&|| format!("{mesh}.{key}"), value, 1, MAX_MESH);
    }
    form.between(&|| format!("{mesh}.top_batch_cut"), schedule.top_batch_cut, 1, i64::MAX);
    if let Some(bytes) = schedule.buffersize {
        form.between(&|| "$.buffersize".into(), bytes, 1, i64::MAX);
    }
    form.dram(schedule);
    for (core, index, workload) in schedule.workloads() {
        form.workload(schedule, workload, &|| facts::path(schedule, (core, index)));
    }
}

type Path<'p> = &'p dyn Fn() -> String;

struct Form<'s> {
    sink: &'s mut Sink,
}

impl Form<'_> {
    fn dram(&mut self, schedule: &Schedule) {
        for (group, blocks) in schedule.dram.iter().enumerate() {
            for (index, block) in blocks.ins.iter().enumerate() {
                let path = || facts::in_path(schedule, (group, index));
                if schedule.dialect != Dialect::B || block.lower.is_some() != block.upper.is_some()
                {
                    self.corners(&path, block.lower, block.upper, &[4]);
                } else if let Some(extent) = block.extent() {
                    self.extent(&path, &extent, &[4]);
                }
            }
            for (index, out) in blocks.outs.iter().enumerate() {
                let path = || facts::out_path(schedule, (group, index));
                let is_k = schedule.dialect != Dialect::A && out.is_weight();
                self.extent(&path, &out.extent(), if is_k { &[1] } else { &[4] });
                self.between(&|| format!("{}.size", path()), out.size, 1, i64::MAX);
                if !["weight", "fmap", "ifmap"].contains(&out.kind.as_str()) {
                    let message = format!("DRAM gives out `weight` or `fmap`, not `{}`", out.kind);
                    let finding = Diagnostic::error("gem-unknown-name", message);
                    self.sink.push(finding.path(format!("{}.type", path())));
                }
            }
        }
    }

    fn workload(&mut self, schedule: &Schedule, workload: &Workload, path: Path<'_>) {
        let dialect = schedule.dialect;
        self.extent(&|| format!("{}.workload", path()), &workload.extent, &[4]);
        self.between(&|| format!("{}.time", path()), workload.time, 0, i64::MAX);
        self.between(&|| format!("{}.ofmap_size", path()), workload.ofmap_size, 1, i64::MAX);
        let is_a = dialect == Dialect::A;
        self.needed(path, is_a && workload.layer_type.is_none(), "layer_type");
        self.needed(path, is_a && workload.ring_buffer_info.is_none(), "ring_buffer_info");
        self.needed(path, is_a && workload.tile_info.is_none(), "tile_info");
        self.needed(path, is_a && workload.tile_padding_tblr.is_none(), "tile_padding_tblr");
        self.needed(path, is_a && workload.ifmap.is_none(), "ifmap");
        self.needed(path, dialect != Dialect::C && workload.ofmap.is_none(), "ofmap");
        let has_wl0 = workload.wl0_buffer.is_some() || workload.wl1_buffer.is_some();
        self.needed(path, is_a && !has_wl0, "wl0_buffer");
        self.ifmaps(is_a, workload, path);
        if let Some(weight) = &workload.weight {
            let spot = || format!("{}.weight", path());
            let ranks: &[usize] = match (dialect, weight.from_ofmap) {
                (Dialect::A, _) => &[4],
                (_, Some(true)) => &[3, 4],
                _ => &[1],
            };
            self.extent(&spot, &weight.extent(), ranks);
            self.needed(&spot, is_a && weight.size.is_none(), "size");
            self.needed(&spot, is_a && weight.transfer_id.is_none(), "transfer_id");
        }
        for (index, ofmap) in workload.ofmaps().iter().enumerate() {
            let spot = || format!("{}.ofmap[{index}]", path());
            self.extent(&spot, &ofmap.extent(), &[4]);
            self.between(&|| format!("{}.size", spot()), ofmap.size, 1, i64::MAX);
        }
        for (index, resident) in workload.buffer.iter().enumerate() {
            self.resident(dialect, resident, &|| format!("{}.buffer[{index}]", path()));
        }
        self.tiles_and_rows(workload, path);
    }

    fn ifmaps(&mut self, is_a: bool, workload: &Workload, path: Path<'_>) {
        let is_one = matches!(workload.ifmap, Some(OneOrMany::One(_)));
        if workload.ifmap.is_some() && is_one == is_a {
            let expected = if is_a { "a list of tensors" } else { "one object" };
            let message = format!("`ifmap` must be {expected} in this dialect");
            let finding = Diagnostic::error("gem-wrong-type", message);
            self.sink.push(finding.path(format!("{}.ifmap", path())));
        }
        for (index, ifmap) in workload.ifmaps().iter().enumerate() {
            let spot = || match is_a {
                true => format!("{}.ifmap[{index}]", path()),
                false => format!("{}.ifmap", path()),
            };
            self.extent(&spot, &ifmap.extent(), &[4]);
            if is_a {
                self.elements(&spot, ifmap.align, ifmap.bitwidth, ifmap.size);
            }
        }
    }

    fn tiles_and_rows(&mut self, workload: &Workload, path: Path<'_>) {
        for (number, tile) in workload.tile_info.iter().flat_map(|info| &info.tiles) {
            let spot = || format!("{}.tile_info.tile_num_{number}", path());
            self.extent(&spot, &tile.ofmap(), &[4]);
            self.extent(&spot, &tile.ifmap(), &[4]);
            if tile.ifmap_lower2.is_some() || tile.ifmap_upper2.is_some() {
                self.corners(&spot, tile.ifmap_lower2, tile.ifmap_upper2, &[4]);
            }
        }
        for (index, row) in workload.wl0().iter().enumerate() {
            let spot = || format!("{}.{}[{index}]", path(), workload.wl0_key());
            self.between(&|| format!("{}.address", spot()), row.address, 0, i64::MAX);
            self.elements(&spot, Some(row.align), Some(row.bitwidth), Some(row.size));
            if row.lower.is_some() || row.upper.is_some() {
                self.corners(&spot, row.lower, row.upper, &[4]);
            }
        }
    }

    fn resident(&mut self, dialect: Dialect, resident: &Resident, path: Path<'_>) {
        let is_result = resident.kind == ResidentKind::Ofmap;
        if dialect == Dialect::A {
            self.corners(path, resident.lower, resident.upper, &[4]);
            self.elements(path, resident.align, resident.bitwidth, resident.size);
            self.needed(path, resident.address.is_none(), "address");
            self.needed(path, resident.tensor_id.is_none(), "tensor_id");
            self.needed(path, resident.tensor_order.is_none(), "tensor_order");
            self.needed(path, is_result && resident.start_send.is_none(), "start_send");
            self.needed(path, is_result && resident.layer_name.is_none(), "layer_name");
            self.needed(path, !is_result && resident.newly_added.is_none(), "newly_added");
            self.needed(path, !is_result && resident.source.is_none(), "source");
            self.needed(path, !is_result && resident.transfer_id.is_none(), "transfer_id");
        } else {
            self.needed(path, resident.block.is_none(), "block");
            self.needed(path, resident.layer.is_none(), "layer");
            if resident.lower.is_some() || resident.upper.is_some() {
                self.corners(path, resident.lower, resident.upper, &[1, 3, 4]);
            }
        }
        for value in [("address", resident.address), ("block", resident.block)] {
            if let (key, Some(number)) = value {
                self.between(&|| format!("{}.{key}", path()), number, 0, i64::MAX);
            }
        }
        for (index, source) in resident.sources().iter().enumerate() {
            let spot = || format!("{}.source[{index}]", path());
            self.between(&|| format!("{}.size", spot()), source.size, 1, i64::MAX);
            if dialect == Dialect::A || source.lower.is_some() || source.upper.is_some() {
                self.corners(&spot, source.lower, source.upper, &[1, 4]);
            }
            if let Some([first, last]) = source.channel
                && !(0 <= first && first <= last)
            {
                let message = format!("channels {first}..={last} are no range");
                let finding = Diagnostic::error("gem-extent", message);
                self.sink.push(finding.path(format!("{}.channel", spot())));
            }
        }
        for (index, sent) in resident.destinations.iter().flatten().enumerate() {
            let extent = Extent { lower: sent.lower, upper: sent.upper };
            self.extent(&|| format!("{}.destinations[{index}]", path()), &extent, &[4]);
        }
    }

    /// What says how elements of a tensor lie.
    fn elements(
        &mut self,
        path: Path<'_>,
        align: Option<i64>,
        bits: Option<i64>,
        size: Option<i64>,
    ) {
        let values = [("align", align, 64), ("bitwidth", bits, 64), ("size", size, i64::MAX)];
        for (key, value, most) in values {
            match value {
                Some(value) => self.between(&|| format!("{}.{key}", path()), value, 1, most),
                None => self.needed(path, true, key),
            }
        }
    }

    fn needed(&mut self, path: Path<'_>, is_missing: bool, key: &str) {
        if is_missing {
            let message = format!("missing key `{key}`, which this dialect needs");
            self.sink.push(Diagnostic::error("gem-missing-key", message).path(path()));
        }
    }

    fn between(&mut self, path: Path<'_>, value: i64, least: i64, most: i64) {
        if (least..=most).contains(&value) {
            return;
        }
        let expected = match most {
            i64::MAX => format!("at least {least}"),
            _ => format!("{least} to {most}"),
        };
        let message = format!("{value} is out of range, expected {expected}");
        self.sink.push(Diagnostic::error("gem-range", message).path(path()));
    }

    fn corners(
        &mut self,
        path: Path<'_>,
        lower: Option<Coords>,
        upper: Option<Coords>,
        ranks: &[usize],
    ) {
        self.needed(path, lower.is_none(), "lower");
        self.needed(path, upper.is_none(), "upper");
        if let (Some(lower), Some(upper)) = (lower, upper) {
            self.extent(path, &Extent { lower, upper }, ranks);
        }
    }

    fn extent(&mut self, path: Path<'_>, extent: &Extent, ranks: &[usize]) {
        let Extent { lower, upper } = extent;
        let rank = lower.values().len();
        let message = if !ranks.contains(&rank) {
            let ranks: Vec<String> = ranks.iter().map(usize::to_string).collect();
            format!("a corner of {} coordinates is expected, found {lower}", ranks.join(" or "))
        } else if upper.values().len() != rank {
            format!("the corners {lower} and {upper} differ in rank")
        } else if !extent.is_sound() {
            format!("`lower` {lower} is above `upper` {upper}")
        } else if lower.values().iter().any(|&value| value < 0) {
            format!("`lower` {lower} is negative")
        } else {
            return;
        };
        self.sink.push(Diagnostic::error("gem-extent", message).path(path()));
    }
}
