//! Instructions that compute: convolutions, vector operations, one for each tile.

use irc_gemini_format::Nullable;
use irc_gemini_format::frontend::{Activation, FrontendLayer};
use irc_gemini_format::json;
use irc_gemini_format::schedule::{LayerKind, Tile, Wl0Source};
use irc_npu::enums::{
    Accd, ActMode, Cmpd, Cmps, DataSign, Float2Fixed, Mg0s, Qsmd, Sg0m, Sg1m, Summ, Swrs, Treed,
};
use irc_npu::layout::WL0_UNIT;
use irc_npu::op::{
    PeCfgDq, PeCfgFm, PeCfgPm, PeCfgTp, PeConv, VpCfgFm, VpCfgGcs, VpCfgGms, VpCfgIq, VpCfgIq1,
    VpCfgQp, VpCfgSms, VpCfgTp, VpPool, VpSelf,
};
use irc_npu::{Number, Op};

use crate::finding::{Found, fault, word};
use crate::movement::{cut_mode, place};
use crate::step::Step;
use crate::tensors::{Spot, View, corner, lengths};

/// The instructions of a workload's tiles, in the order of the file: that of their keys as
/// strings. Their place in it says in which half of WL0 their weights are.
pub fn tiles<'s>(view: &View<'s>, index: usize) -> Found<Vec<(&'s Tile, Step)>> {
    let workload = view.workload(index);
    let path = view.at(index);
    let Some(info) = &workload.tile_info else {
        return Err(fault("emit-tile", &path, "the workload has no tiles"));
    };
    let mut origins = [None; 2];
    for (_, tile) in &info.tiles {
        for (origin, lower) in origins.iter_mut().zip([Some(tile.ifmap_lower), tile.ifmap_lower2]) {
            let lower = lower.map(|lower| {
                let extent = irc_gemini_format::schedule::Extent { lower, upper: lower };
                corner(&extent)
            });
            *origin = least(*origin, lower);
        }
    }
    let work = Work {
        view,
        index,
        path,
        layer: view.layers.layer(&workload.layer_name, &view.at(index))?,
        inputs: inputs(view, index)?,
        origins,
        output: output(view, index)?,
    };
    let mut all = vec![];
    for (position, (number, tile)) in info.tiles.iter().enumerate() {
        let step = match workload.layer_type {
            Some(LayerKind::Pe) => work.convolution(tile, *number, position)?,
            Some(LayerKind::Vp) => work.vector(tile, *number)?,
            _ => return Err(fault("emit-kind", &work.path, "only pe and vp workloads are known")),
        };
        all.push((tile, step));
    }
    Ok(all)
}

fn least(a: Option<[i64; 4]>, b: Option<[i64; 4]>) -> Option<[i64; 4]> {
    match (a, b) {
        (Some(a), Some(b)) => Some([0, 1, 2, 3].map(|axis| a[axis].min(b[axis]))),
        (a, b) => a.or(b),
    }
}

fn inputs(view: &View<'_>, index: usize) -> Found<Vec<Spot>> {
    view.workload(index).ifmaps().iter().map(|ifmap| view.input(index, ifmap)).collect()
}

/// Where the first element of the whole result is written.
fn output(view: &View<'_>, index: usize) -> Found<Spot> {
    let missing = || fault("emit-output", &view.at(index), "the result has no place in the buffer");
    let part = view.workload(index).ofmaps().first().ok_or_else(missing)?;
    let mut spot = *view.outputs(index, part)?.first().ok_or_else(missing)?;
    let skipped = corner(&part.extent());
    spot.at.iter_mut().zip(skipped).for_each(|(at, skipped)| *at -= skipped);
    Ok(spot)
}

/// A workload with what its tiles share.
struct Work<'v, 's> {
    view: &'v View<'s>,
    index: usize,
    path: String,
    layer: &'s FrontendLayer,
    inputs: Vec<Spot>,
    /// First element of each operand over all tiles, absolute in the layer's operand.
    origins: [Option<[i64; 4]>; 2],
    output: Spot,
}

impl Work<'_, '_> {
    fn lacks(&self, what: &str) -> Box<irc_diag::Diagnostic> {
        let path = format!("$[\"{}\"]", self.layer.name);
        fault("emit-frontend", &path, format!("the layer has no {what}"))
    }

    fn input(&self, operand: usize) -> Found<&Spot> {
        self.inputs
            .get(operand)
            .ok_or_else(|| fault("emit-input", &self.path, "the workload lacks an operand"))
    }

    /// A tile's first element relative to that of the workload.
    fn within(&self, operand: usize, lower: [i64; 4]) -> [i64; 4] {
        let origin = self.origins[operand].unwrap_or(lower);
        [0, 1, 2, 3].map(|axis| lower[axis] - origin[axis])
    }

    fn convolution(&self, tile: &Tile, number: u32, position: usize) -> Found<Step> {
        let input = self.input(0)?;
        let [top, _, left, _] = tile.tile_padding_tblr;
        let [n, c, h, w] = self.within(0, corner(&tile.ifmap()));
        let made = tile.ofmap();
        let op = PeConv {
            ps: 0,
            sphi: signed(-top, &self.path)?,
            spwi: signed(-left, &self.path)?,
            sbsg: input.tensor.region,
            dbsg: self.output.tensor.region,
            st_addr: input.address([n, c, h - top, w - left]),
            sw_addr: self.weight_address(tile, position)?,
            dt_addr: self.output.address(self.made_at(tile)),
        };
        let [n, k, h, w] = self.words(lengths(&made))?;
        let [_, c, ..] = self.words(lengths(&tile.ifmap()))?;
        let [mtc0, mtk0] = tile.mtc0_mtk0.ok_or_else(|| self.no_tile("mini tile"))?;
        let [_, _, mini_h, mini_w] =
            tile.out_mini_tile.ok_or_else(|| self.no_tile("mini tile of the result"))?;
        let shape = PeCfgTp {
            kernel: self.pair(self.layer.kernel_size)?,
            tile: [n, k, c, h, w],
            mtk0: word(mtk0, &self.path)?,
            mtc0: word(mtc0, &self.path)?,
            // The registers hold the last index of the mini tile, not its length.
            mti: [word(mini_h - 1, &self.path)?, word(mini_w - 1, &self.path)?],
        };
        let scale = PeCfgDq { dqc: 0, dqb: Number::Int(0), dqk: Number::Int(0) };
        let configs =
            vec![self.formats()?.into(), self.parameters(tile)?.into(), scale.into(), shape.into()];
        self.step(configs, op.into(), number)
    }

    fn no_tile(&self, what: &str) -> Box<irc_diag::Diagnostic> {
        fault("emit-tile", &self.path, format!("a tile has no {what}"))
    }

    /// Where the weights of a tile are in WL0: whole, or in turn in either half.
    fn weight_address(&self, tile: &Tile, position: usize) -> Found<i64> {
        let row = self.view.wl0_row(self.index)?;
        if row.source == Wl0Source::Core {
            return Ok(half_of(row.address, row.size, position));
        }
        let weights = self.view.layers.weights(&self.layer.name, &self.path)?;
        let first = self.view.workload(self.index).weight.as_ref();
        let first = first.and_then(|weight| weight.channels()).map_or(0, |(low, _)| low);
        let units = irc_npu::layout::wl0_row(weights.format, weights.size);
        Ok(row.address + (tile.ofmap().axis(1).0 - first) * units / WL0_UNIT)
    }

    fn formats(&self) -> Found<PeCfgFm> {
        let (input, output) = (self.input(0)?.tensor, self.output.tensor);
        let weights = self.view.layers.weights(&self.layer.name, &self.path)?;
        let quantized = self.layer.quant_info.as_ref();
        let zero = quantized.and_then(|quantized| quantized.input_zero_point1.as_ref());
        Ok(PeCfgFm {
            i_f: DataSign::Signed,
            o_f: DataSign::Signed,
            sf: input.format,
            wf: weights.format,
            df: output.format,
            // Padding is the real 0, whose integer is minus the zero point.
            padv: zero.map_or(Number::Int(0), |zero| negated(number(zero))),
            s_tile: input.shape,
            d_tile: output.shape,
        })
    }

    fn parameters(&self, tile: &Tile) -> Found<PeCfgPm> {
        let quantized = self.layer.quant_info.as_ref();
        let zero = quantized.and_then(|quantized| quantized.output_zero_point.as_ref());
        let scale = quantized.and_then(|quantized| quantized.output_scale.as_ref());
        Ok(PeCfgPm {
            act_md: match self.layer.activation_type {
                Some(Nullable(Some(Activation::Relu))) => ActMode::Relu,
                _ => ActMode::Disable,
            },
            act_pm: Number::Float(0.0),
            qc: Float2Fixed::Round,
            qb: zero.map_or(Number::Int(0), number),
            qk: scale.map_or(Number::Int(0), number),
            adden: 0,
            stride: self.pair(self.layer.stride)?,
            xy_mode: cut_mode(Some(tile), &self.path)?,
        })
    }

    /// Extents of a kernel or steps; 1 for layers that have none.
    fn pair(&self, values: Option<[i64; 2]>) -> Found<[u32; 2]> {
        let [h, w] = values.unwrap_or([1, 1]);
        Ok([word(h, &self.path)?, word(w, &self.path)?])
    }

    fn words(&self, values: [i64; 4]) -> Found<[u32; 4]> {
        let [a, b, c, d] = values.map(|value| word(value, &self.path));
        Ok([a?, b?, c?, d?])
    }

    /// Where a tile's result begins in that of the workload.
    fn made_at(&self, tile: &Tile) -> [i64; 4] {
        let whole = corner(&self.view.workload(self.index).extent);
        let part = corner(&tile.ofmap());
        [0, 1, 2, 3].map(|axis| part[axis] - whole[axis])
    }

    fn step(&self, configs: Vec<Op>, op: Op, number: u32) -> Found<Step> {
        let origin = place(self.view, self.index, signed(number.into(), &self.path)?)?;
        Ok(Step { configs, op, origin, workload: self.index })
    }

    /// One operation for each image. It has no batch, and its addresses are those of the first.
    fn vector(&self, tile: &Tile, number: u32) -> Found<Step> {
        let first = self.input(0)?;
        let is_pool = matches!(self.layer.operation.as_str(), "max_pool2d" | "avg_pool2d");
        let [top, _, left, _] = tile.tile_padding_tblr;
        let [_, c, h, w] = self.within(0, corner(&tile.ifmap()));
        let [_, k, y, x] = self.made_at(tile);
        let dt_addr = self.output.address([0, k, y, x]);
        let (sbsg, dbsg) = (first.tensor.region, self.output.tensor.region);
        let operation = self.operation()?;
        let op: Op = if is_pool {
            VpPool {
                iqen: 1,
                qen: 3,
                shmd: 0,
                gpmd: operation.path,
                cmpd: Cmpd::Default,
                treed: Treed::Default,
                accd: Accd::Default,
                swrs: Swrs::Default,
                lut: operation.function,
                iph: signed(-top, &self.path)?,
                ipw: signed(-left, &self.path)?,
                sbsg,
                dbsg,
                st_addr: first.address([0, c, h - top, w - left]),
                dt_addr,
            }
            .into()
        } else {
            let st_addr = first.address([0, c, h, w]);
            let (sbsg1, st_addr1) = match tile.ifmap2() {
                Some(other) => {
                    let [_, c, h, w] = self.within(1, corner(&other));
                    let second = self.input(1)?;
                    (second.tensor.region, second.address([0, c, h, w]))
                }
                None => (sbsg, st_addr),
            };
            VpSelf {
                iqen: u32::from(self.view.first_tools || !self.reads_as_is()),
                qen: 3,
                shmd: 0,
                gpmd: operation.path,
                cmpd: Cmpd::Default,
                treed: Treed::Default,
                accd: Accd::Default,
                tm: 0,
                swrs: Swrs::Default,
                lut: operation.function,
                sbsg,
                sbsg1,
                dbsg,
                st_addr,
                st_addr1,
                dt_addr,
            }
            .into()
        };
        self.step(self.vector_configs(tile, &operation)?, op, number)
    }

    fn operation(&self) -> Found<Operation> {
        match self.layer.operation.as_str() {
            "quantize" => Ok(Operation { path: 4, function: 16, cmps: Cmps::Default, outside: 0 }),
            "element_wise_add" => {
                Ok(Operation { path: 69, function: 18, cmps: Cmps::Default, outside: 0 })
            }
            // Padding must lose every comparison.
            "max_pool2d" => Ok(Operation {
                path: 4,
                function: 17,
                cmps: Cmps::Max,
                outside: i64::from(i16::MIN),
            }),
            "avg_pool2d" => {
                Ok(Operation { path: 4, function: 56, cmps: Cmps::Default, outside: 0 })
            }
            other => {
                let message = format!("the vector processor's code for `{other}` is not known");
                Err(fault("emit-operation", &self.path, message))
            }
        }
    }

    fn group(&self, name: &str) -> Option<&irc_gemini_format::frontend::Group> {
        self.layer.module_list.as_ref()?.group(name)
    }

    /// Whether the first operand needs no dequantisation.
    fn reads_as_is(&self) -> bool {
        let Some(before) = self.group("pre_cal") else { return true };
        let is = |value: &Option<json::Number>, wanted: f64| {
            value.as_ref().is_none_or(|value| value.value() == wanted)
        };
        self.layer.operation == "quantize"
            && is(&before.requan_scale_a, 1.0)
            && is(&before.requan_zp_a, 0.0)
    }

    fn vector_configs(&self, tile: &Tile, operation: &Operation) -> Found<Vec<Op>> {
        let before = self.group("pre_cal").ok_or_else(|| self.lacks("module `pre_cal`"))?;
        let after = self.group("post_cal").ok_or_else(|| self.lacks("module `post_cal`"))?;
        let factor =
            self.group("fp32_mul_group").and_then(|group| group.mul_group_k_scalar.as_ref());
        let or = |value: &Option<json::Number>, other: Number| value.as_ref().map_or(other, number);
        let zero = || Number::Int(0);
        let (input, output) = (self.input(0)?.tensor, self.output.tensor);
        let [_, k, h, w] = self.words(lengths(&tile.ofmap()))?;
        let is_pool = self.layer.pool_size.is_some();
        let operands = self.inputs.len();
        Ok(vec![
            VpCfgGcs {
                cmps: operation.cmps,
                sg0m: Sg0m::Default,
                cmpvs: 0,
                sg0vs: 0,
                sg0v: zero(),
                cmpv: zero(),
            }
            .into(),
            VpCfgGms {
                used: false,
                sege: 0,
                segn: 0,
                mg0s: Mg0s::Default,
                sg1m: Sg1m::Default,
                mg0vs: 0,
                sg1vs: 0,
                sg1v: zero(),
                mg0v: factor.map_or(zero(), number),
            }
            .into(),
            VpCfgSms { summ: Summ::Default, mulvs: 0, sumvs: 0, sumv: zero(), mulv: zero() }.into(),
            VpCfgQp {
                qcs: match after.carry_sel.as_deref() {
                    Some("round") => Float2Fixed::Round,
                    _ => Float2Fixed::Ceil,
                },
                qsmd: Qsmd::Default,
                qb: or(&after.sum_b, zero()),
                qk: or(&after.mul_k, Number::Int(1)),
            }
            .into(),
            VpCfgIq {
                iqcs: 0,
                iqb0: or(&before.requan_zp_a, zero()),
                iqk0: or(&before.requan_scale_a, Number::Int(1)),
            }
            .into(),
            VpCfgIq1 {
                iqb1: or(&before.requan_zp_b, Number::Float(0.0)),
                iqk1: or(&before.requan_scale_b, Number::Float(0.0)),
            }
            .into(),
            VpCfgFm {
                i_f: DataSign::Signed,
                o_f: DataSign::Signed,
                idf: input.format,
                odf: output.format,
                vf32: 0,
                s_tile: input.shape,
                d_tile: output.shape,
            }
            .into(),
            VpCfgTp {
                stride: self.pair(self.layer.stride.filter(|_| is_pool))?,
                kernel: self.pair(self.layer.pool_size)?,
                tile: [k, h, w],
                t1f: if operands > 1 { axes(self.layer.tensor1_lut) } else { 0 },
                t0f: axes(self.layer.tensor0_lut),
                padv_area: operation.outside,
            }
            .into(),
        ])
    }
}

/// What the vector processor's fields are for an operation.
struct Operation {
    path: u32,
    function: u32,
    cmps: Cmps,
    outside: i64,
}

/// A bit for each axis of an operand that is in use.
fn axes(lut: Option<[i64; 3]>) -> u32 {
    lut.unwrap_or([1; 3]).iter().fold(0, |bits, used| bits << 1 | u32::from(*used != 0))
}

/// The address of the half of WL0 for the tile at a position.
pub fn half_of(address: i64, size: i64, position: usize) -> i64 {
    if position.is_multiple_of(2) { address } else { address + size / 2 }
}

fn signed(value: i64, path: &str) -> Found<i32> {
    i32::try_from(value)
        .map_err(|_| fault("emit-range", path, format!("{value} does not fit into an instruction")))
}

/// A constant, whole or not as it is written.
fn number(value: &json::Number) -> Number {
    match value.text().parse() {
        Ok(whole) => Number::Int(whole),
        Err(_) => Number::Float(value.value()),
    }
}

fn negated(value: Number) -> Number {
    match value {
        Number::Int(value) => Number::Int(-value),
        Number::Float(value) => Number::Float(-value),
    }
}
