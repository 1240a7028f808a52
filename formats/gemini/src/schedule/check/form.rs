//! Checks of single values: missing in the dialect, inverted ranges, negative.

use irc_diag::{Diagnostic, Sink};
use irc_json::Json;

use super::super::{
    Coords, Dialect, Extent, LayerKind, OneOrMany, Resident, ResidentKind, Schedule, Tile, Workload,
};
use super::facts;

/// Maximum extent of a mesh.
const MAX_MESH: i64 = 4096;

/// Maximum padding, and maximum extent of a tile in the PE array.
const MAX_TILE: i64 = 1 << 16;

/// Checks all values that other checks compute with.
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
    form.ports(schedule);
    form.dram(schedule);
    for (core, index, workload) in schedule.workloads() {
        form.workload(schedule, workload, &|| schedule.workload_path((core, index)));
    }
}

type Path<'p> = &'p dyn Fn() -> String;

/// Whether a text lists loops, each once.
fn is_loop_order(order: &str) -> bool {
    let is_once = |(at, name): (usize, char)| "KNHWC".contains(name) && !order[..at].contains(name);
    !order.is_empty() && order.char_indices().all(is_once)
}

struct Form<'s> {
    sink: &'s mut Sink,
}

impl Form<'_> {
    /// In dialect C every DRAM port is at a place of the mesh, or in a column at either side.
    fn ports(&mut self, schedule: &Schedule) {
        let Some(ports) = &schedule.ports else { return };
        let bounds = [("x", schedule.xlen + 1), ("y", schedule.ylen - 1)];
        let place = |port: &Json, key: &str| match port {
            Json::Object(members) => match members.iter().find(|(name, _)| &**name == key) {
                Some((_, Json::Int(value))) => Some(*value),
                _ => None,
            },
            _ => None,
        };
        let Json::Object(ports) = ports else {
            let message = "expected an object of DRAM ports";
            self.sink.push(Diagnostic::error("gem-wrong-type", message).path("$.metadata.DRAM"));
            return;
        };
        for (name, port) in ports {
            let path = || format!("$.metadata.DRAM[{name:?}]");
            for (key, most) in bounds {
                match place(port, key) {
                    Some(value) => self.between(&|| format!("{}.{key}", path()), value, 0, most),
                    None => {
                        let message = format!("a DRAM port needs an integer `{key}`");
                        self.sink.push(Diagnostic::error("gem-wrong-type", message).path(path()));
                    }
                }
            }
        }
    }

    fn dram(&mut self, schedule: &Schedule) {
        for (group, blocks) in schedule.dram.iter().enumerate() {
            for (index, block) in blocks.ins.iter().enumerate() {
                let path = || facts::in_path(schedule, (group, index));
                if schedule.dialect != Dialect::B || block.lower.is_some() != block.upper.is_some()
                {
                    self.corners(&path, block.lower, block.upper, &[4]);
                    let is_nameless = block.layer_name.is_none();
                    self.needed(&path, schedule.dialect == Dialect::A && is_nameless, "layer_name");
                } else if let Some(extent) = block.extent() {
                    self.extent(&path, &extent, &[4]);
                }
            }
            for (index, out) in blocks.outs.iter().enumerate() {
                let path = || facts::out_path(schedule, (group, index));
                let is_a = schedule.dialect == Dialect::A;
                for (at, target) in out.destination.iter().enumerate() {
                    let spot = || format!("{}.destination[{at}]", path());
                    self.needed(&spot, is_a && target.layer_name.is_none(), "layer_name");
                }
                let is_k = !is_a && out.is_weight();
                self.extent(&path, &out.extent(), if is_k { &[1] } else { &[4] });
                self.between(&|| format!("{}.size", path()), out.size, 1, i64::MAX);
                if !["weight", "fmap", "ifmap"].contains(&out.kind.as_str()) {
                    let message =
                        format!("expected a block of `weight` or `fmap`, found `{}`", out.kind);
                    let diagnostic = Diagnostic::error("gem-unknown-name", message);
                    self.sink.push(diagnostic.path(format!("{}.type", path())));
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
        if let Some(padding) = &workload.tile_padding_tblr {
            self.padding(&|| format!("{}.tile_padding_tblr", path()), padding);
        }
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
            let diagnostic = Diagnostic::error("gem-wrong-type", message);
            self.sink.push(diagnostic.path(format!("{}.ifmap", path())));
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
            self.tile(tile, workload.layer_type == Some(LayerKind::Pe), &spot);
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

    /// Checks the parameters of the PE array in tiles of convolutions.
    fn tile(&mut self, tile: &Tile, is_pe: bool, spot: Path<'_>) {
        self.needed(spot, is_pe && tile.cut_mode.is_none(), "cut_mode");
        self.needed(spot, is_pe && tile.loop_order.is_none(), "loop_order");
        self.needed(spot, is_pe && tile.ci_cut_num.is_none(), "ci_cut_num");
        self.needed(spot, is_pe && tile.act_mini_tile.is_none(), "act_mini_tile");
        self.needed(spot, is_pe && tile.mtc0_mtk0.is_none(), "mtc0_mtk0");
        self.needed(spot, is_pe && tile.out_mini_tile.is_none(), "out_mini_tile");
        let lists: [(&str, &[i64]); 4] = [
            ("ci_cut_num", tile.ci_cut_num.as_slice()),
            ("act_mini_tile", tile.act_mini_tile.as_ref().map_or(&[], |all| all)),
            ("mtc0_mtk0", tile.mtc0_mtk0.as_ref().map_or(&[], |all| all)),
            ("out_mini_tile", tile.out_mini_tile.as_ref().map_or(&[], |all| all)),
        ];
        for (key, values) in lists {
            let wrong = |value: &&i64| !(1..=MAX_TILE).contains(*value);
            if let Some(value) = values.iter().find(wrong) {
                self.between(&|| format!("{}.{key}", spot()), *value, 1, MAX_TILE);
            }
        }
        self.padding(&|| format!("{}.tile_padding_tblr", spot()), &tile.tile_padding_tblr);
        if tile.single_tile_time_pred.as_ref().is_some_and(|time| time.value() < 0.0) {
            let message = "a time must not be negative";
            let path = format!("{}.single_tile_time_pred", spot());
            self.sink.push(Diagnostic::error("gem-range", message).path(path));
        }
        if let Some(order) = tile.loop_order.as_ref().filter(|order| !is_loop_order(order)) {
            let message = format!("`{order}` is not a permutation of the loops K, N, H and W");
            let path = format!("{}.loop_order", spot());
            self.sink.push(Diagnostic::error("gem-unknown-name", message).path(path));
        }
    }

    fn padding(&mut self, path: Path<'_>, padding: &[i64; 4]) {
        if let Some(value) = padding.iter().find(|value| !(0..=MAX_TILE).contains(*value)) {
            self.between(path, *value, 0, MAX_TILE);
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
            let is_input = resident.kind == ResidentKind::Ifmap;
            self.needed(path, !is_input && resident.layer_name.is_none(), "layer_name");
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
        let ids = ("tensor_id", resident.tensor_id);
        for value in [("address", resident.address), ("block", resident.block), ids] {
            if let (key, Some(number)) = value {
                self.between(&|| format!("{}.{key}", path()), number, 0, i64::MAX);
            }
        }
        for (index, source) in resident.sources().iter().enumerate() {
            let spot = || format!("{}.source[{index}]", path());
            self.between(&|| format!("{}.size", spot()), source.size, 1, i64::MAX);
            self.needed(&spot, dialect == Dialect::A && source.core_id.is_none(), "core_id");
            self.needed(&spot, dialect != Dialect::A && source.id.is_none(), "id");
            if dialect == Dialect::A || source.lower.is_some() || source.upper.is_some() {
                self.corners(&spot, source.lower, source.upper, &[1, 4]);
            }
            if let Some([first, last]) = source.channel
                && !(0 <= first && first <= last)
            {
                let message = format!("channels {first}..={last} are not a range");
                let diagnostic = Diagnostic::error("gem-extent", message);
                self.sink.push(diagnostic.path(format!("{}.channel", spot())));
            }
        }
        for (index, sent) in resident.destinations.iter().flatten().enumerate() {
            let extent = Extent { lower: sent.lower, upper: sent.upper };
            self.extent(&|| format!("{}.destinations[{index}]", path()), &extent, &[4]);
        }
    }

    /// Checks the properties that determine the layout of elements.
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
            let message = format!("missing key `{key}`, which this dialect requires");
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
            format!("expected a corner of {} coordinates, found {lower}", ranks.join(" or "))
        } else if upper.values().len() != rank {
            format!("the corners {lower} and {upper} differ in rank")
        } else if !extent.is_valid() {
            format!("`lower` {lower} is above `upper` {upper}")
        } else if lower.values().iter().any(|&value| value < 0) {
            format!("`lower` {lower} is negative")
        } else {
            return;
        };
        self.sink.push(Diagnostic::error("gem-extent", message).path(path()));
    }
}
