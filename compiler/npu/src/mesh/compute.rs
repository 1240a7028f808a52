//! Tiles of workloads whose schedule has none.
//!
//! Weights go from L2 to two halves of WL0 in turn, as many output channels at once as fit.
//! What the schedule does not know is neutral: no activation, constants of quantisation that change
//! nothing, the smallest inner tiles.

use irc_gemini_format::schedule::LayerKind;
use irc_npu::enums::{
    Accd, ActMode, Cmpd, Cmps, DataSign, Float2Fixed, Mg0s, Qsmd, Sg0m, Sg1m, Summ, Swrs, Treed,
    XCutMode, YCutMode,
};
use irc_npu::layout::wl0_units;
use irc_npu::op::{
    LwCfg, LwMov, PeCfgDq, PeCfgFm, PeCfgPm, PeCfgTp, PeConv, VpCfgFm, VpCfgGcs, VpCfgGms, VpCfgIq,
    VpCfgIq1, VpCfgQp, VpCfgSms, VpCfgTp, VpPool, VpSelf,
};
use irc_npu::{Number, Op};

use super::Mesh;
use super::geometry::{Windows, made};
use super::parts::Place;
use crate::finding::{Found, fault, word};
use crate::step::Step;
use crate::tensors::{Tensor, corner};

/// Units of WL0: the most that published programs use.
const WL0: i64 = 18816;

/// Output channels that WL0 holds together.
const ROWS: i64 = 64;

/// How the array shares the work of a tile: along output channels and rows, which any layer has.
const CUT: (XCutMode, YCutMode) = (XCutMode::CutK, YCutMode::CutH);

impl Mesh<'_> {
    /// Issues the tiles of a workload.
    pub(super) fn compute(
        &mut self,
        place: Place,
        inputs: &[Tensor],
        output: &Tensor,
        weights: Option<(i64, i64)>,
    ) -> Found<()> {
        let path = self.path(place);
        let workload = self.workload(place);
        match (workload.layer_type, weights) {
            (Some(LayerKind::Conv2d | LayerKind::Fc), Some((address, first))) => {
                self.convolve(place, inputs, output, (address, first))
            }
            (Some(LayerKind::Pool | LayerKind::ElementWise | LayerKind::PointToPoint), None) => {
                self.vectors(place, inputs, output)
            }
            (None, _) => {
                Err(fault("emit-kind", &path, "the workload does not say what it computes"))
            }
            (Some(kind), _) => {
                let message = format!("a workload of {kind} with these weights is not known");
                Err(fault("emit-kind", &path, message))
            }
        }
    }

    fn windows(&self, place: Place) -> Found<[Windows; 2]> {
        let found = self.windows.get(self.workload(place).layer_name.as_str());
        found.copied().ok_or_else(|| fault("emit-windows", &self.path(place), "no windows"))
    }

    /// First row and column that a workload's windows read, negative in padding.
    fn first_window(&self, place: Place) -> Found<[i64; 2]> {
        let windows = self.windows(place)?;
        let (_, first) = made(self.workload(place));
        Ok([0, 1].map(|axis| first[axis + 2] * windows[axis].stride - windows[axis].pad))
    }

    /// The same relative to the operand's tensor.
    fn offset(&self, place: Place) -> Found<[i64; 2]> {
        let first = self.first_window(place)?;
        let at = self.workload(place).ifmaps().first().map_or([0; 4], |map| corner(&map.extent()));
        Ok([first[0] - at[2], first[1] - at[3]])
    }

    fn convolve(
        &mut self,
        place: Place,
        inputs: &[Tensor],
        output: &Tensor,
        (address, first): (i64, i64),
    ) -> Found<()> {
        let path = self.path(place);
        let workload = self.workload(place);
        let weights = self.dram.weights(&workload.layer_name, &path)?;
        let [c, r, s] = weights.size;
        let ([n, k, h, w], [_, k0, ..]) = made(workload);
        let per_block = wl0_units(weights.format, ROWS as u32, weights.size);
        let blocks = (WL0 / 2 / per_block).max(1);
        let halves = if WL0 / 2 >= per_block { 2 } else { 1 };
        if per_block > WL0 {
            let message = format!("{ROWS} output channels need {per_block} units of WL0's {WL0}");
            return Err(fault("emit-wl0", &path, message));
        }
        let Some(input) = inputs.first().filter(|input| input.shape[0] >= c) else {
            return Err(fault("emit-input", &path, "weights and operand differ in channels"));
        };
        let [top, left] = self.offset(place)?;
        let windows = self.windows(place)?;
        let starts = (0..k).step_by((blocks * ROWS) as usize);
        for (tile, start) in starts.enumerate() {
            let count = word((k - start).min(blocks * ROWS), &path)?;
            let half = if tile % halves == 0 { 0 } else { WL0 / 2 };
            let config = LwCfg {
                bas: 1,
                df: weights.format,
                mkc: 0,
                mken: 0,
                sw_size: weights.size,
                dw_size: weights.size,
            };
            let load = LwMov {
                ss: 0,
                xy_mode: CUT,
                sbsg: 0,
                st_addr: address + (k0 + start - first) * weights.row(),
                dt_addr: half,
                w_size: [count, c, r, s],
            };
            self.step(place, vec![config.into()], load)?;
            let formats = PeCfgFm {
                i_f: DataSign::Signed,
                o_f: DataSign::Signed,
                sf: input.format,
                wf: weights.format,
                df: output.format,
                padv: Number::Int(0),
                s_tile: input.shape,
                d_tile: output.shape,
            };
            let parameters = PeCfgPm {
                act_md: ActMode::Disable,
                act_pm: Number::Float(0.0),
                qc: Float2Fixed::Round,
                qb: Number::Int(0),
                qk: Number::Int(1),
                adden: 0,
                stride: pair(windows.map(|windows| windows.stride), &path)?,
                xy_mode: CUT,
            };
            let scale = PeCfgDq { dqc: 0, dqb: Number::Int(0), dqk: Number::Int(0) };
            let shape = PeCfgTp {
                kernel: [r, s],
                tile: [word(n, &path)?, count, c, word(h, &path)?, word(w, &path)?],
                mtk0: 1,
                mtc0: 1,
                mti: [0, 0],
            };
            let op = PeConv {
                ps: 0,
                sphi: signed(top, &path)?,
                spwi: signed(left, &path)?,
                sbsg: 0,
                dbsg: 0,
                st_addr: input.address([0, 0, top, left]),
                sw_addr: half,
                dt_addr: output.address([0, start, 0, 0]),
            };
            let configs = vec![formats.into(), parameters.into(), scale.into(), shape.into()];
            self.tile(place, configs, op.into(), tile as i64)?;
        }
        Ok(())
    }

    fn vectors(&mut self, place: Place, inputs: &[Tensor], output: &Tensor) -> Found<()> {
        let path = self.path(place);
        let workload = self.workload(place);
        let is_pool = workload.layer_type == Some(LayerKind::Pool);
        let Some(input) = inputs.first() else {
            return Err(fault("emit-input", &path, "the workload reads nothing"));
        };
        if inputs.len() > 2 {
            let message = format!("{} operands, where a vector operation has two", inputs.len());
            return Err(fault("emit-operands", &path, message));
        }
        let ([n, ..], _) = made(workload);
        let [top, left] = self.offset(place)?;
        let configs = self.vector_configs(place, inputs, output)?;
        for image in 0..n {
            let op: Op = if is_pool {
                VpPool {
                    iqen: 0,
                    qen: 0,
                    shmd: 0,
                    gpmd: 4,
                    cmpd: Cmpd::Default,
                    treed: Treed::Default,
                    accd: Accd::Default,
                    swrs: Swrs::Default,
                    lut: 17,
                    iph: signed(top, &path)?,
                    ipw: signed(left, &path)?,
                    sbsg: 0,
                    dbsg: 0,
                    st_addr: input.address([0, 0, top, left]),
                    dt_addr: output.base,
                }
                .into()
            } else {
                let second = inputs.get(1);
                VpSelf {
                    iqen: 0,
                    qen: 0,
                    shmd: 0,
                    gpmd: if second.is_some() { 69 } else { 4 },
                    cmpd: Cmpd::Default,
                    treed: Treed::Default,
                    accd: Accd::Default,
                    tm: 0,
                    swrs: Swrs::Default,
                    lut: if second.is_some() { 18 } else { 16 },
                    sbsg: 0,
                    sbsg1: 0,
                    dbsg: 0,
                    st_addr: input.base,
                    st_addr1: second.unwrap_or(input).base,
                    dt_addr: output.base,
                }
                .into()
            };
            self.tile(place, configs.clone(), op, image)?;
        }
        Ok(())
    }

    fn vector_configs(&self, place: Place, inputs: &[Tensor], output: &Tensor) -> Found<Vec<Op>> {
        let path = self.path(place);
        let is_pool = self.workload(place).layer_type == Some(LayerKind::Pool);
        let windows = match is_pool {
            true => self.windows(place)?,
            false => [Windows { kernel: 1, stride: 1, pad: 0 }; 2],
        };
        let zero = || Number::Int(0);
        let cmps = if is_pool { Cmps::Max } else { Cmps::Default };
        Ok(vec![
            VpCfgGcs { cmps, sg0m: Sg0m::Default, cmpvs: 0, sg0vs: 0, sg0v: zero(), cmpv: zero() }
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
                mg0v: zero(),
            }
            .into(),
            VpCfgSms { summ: Summ::Default, mulvs: 0, sumvs: 0, sumv: zero(), mulv: zero() }.into(),
            VpCfgQp { qcs: Float2Fixed::Ceil, qsmd: Qsmd::Default, qb: zero(), qk: Number::Int(1) }
                .into(),
            VpCfgIq { iqcs: 0, iqb0: zero(), iqk0: Number::Int(1) }.into(),
            VpCfgIq1 { iqb1: zero(), iqk1: Number::Int(1) }.into(),
            VpCfgFm {
                i_f: DataSign::Signed,
                o_f: DataSign::Signed,
                idf: inputs[0].format,
                odf: output.format,
                vf32: 0,
                s_tile: inputs[0].shape,
                d_tile: output.shape,
            }
            .into(),
            VpCfgTp {
                stride: pair(windows.map(|windows| windows.stride), &path)?,
                kernel: pair(windows.map(|windows| windows.kernel), &path)?,
                tile: output.shape,
                t1f: if inputs.len() > 1 { 7 } else { 0 },
                t0f: 7,
                padv_area: if is_pool { i64::from(i16::MIN) } else { 0 },
            }
            .into(),
        ])
    }

    fn tile(&mut self, place: Place, configs: Vec<Op>, op: Op, tile: i64) -> Found<()> {
        let origin = self.origin(place, signed(tile, &self.path(place))?)?;
        self.push(place.0, Step { configs, op, origin, workload: place.1 });
        Ok(())
    }
}

fn pair([h, w]: [i64; 2], path: &str) -> Found<[u32; 2]> {
    Ok([word(h, path)?, word(w, path)?])
}

fn signed(value: i64, path: &str) -> Found<i32> {
    i32::try_from(value)
        .map_err(|_| fault("emit-range", path, format!("{value} does not fit into an instruction")))
}
