//! Instructions for one core and for several, each preceded by its register writes.

use irc_npu::enums::{
    Cmps, DataSign, Float2Fixed, Mg0s, Qsmd, Sg0m, Sg1m, Summ, XCutMode, YCutMode,
};
use irc_npu::op::{
    DtCal, DtCfg, LdaCfg, LdaMov, LdwCfg, LdwMov, LwCfg, LwMov, StaCfg, StaMov, VpCfgFm, VpCfgGcs,
    VpCfgGms, VpCfgIq, VpCfgIq1, VpCfgQp, VpCfgSms, VpCfgTb, VpCfgTp,
};
use irc_npu::{Number, Op};

use crate::layers::{DramTensor, Weights};
use crate::tensors::{Tensor, TensorOffset};

/// An instruction and its register writes.
pub type ConfiguredOp = (Vec<Op>, Op);

/// Base register of activations in DRAM.
pub const ACTIVATIONS: u32 = 0;

/// Base register of weights in DRAM.
pub const WEIGHTS: u32 = 1;

/// Register set of loads of activations, and of stores.
const ACTIVATION_SET: u32 = 0;

/// Register set of loads of weights.
const WEIGHT_SET: u32 = 1;

/// Loads a tile `[N, C, H, W]` from a byte of a dense tensor behind a base register.
pub fn load(
    bas: u32,
    from: &DramTensor,
    st_addr: i64,
    to: &TensorOffset,
    tile: [u32; 4],
) -> ConfiguredOp {
    let config = LdaCfg {
        sme: 1,
        rs: ACTIVATION_SET,
        bas,
        df: to.tensor.format,
        s_tile: from.shape,
        d_tile: to.tensor.shape,
    };
    let op = LdaMov {
        rs: ACTIVATION_SET,
        dbsg: to.tensor.region,
        st_addr,
        dt_addr: to.address([0; 4]),
        tile,
    };
    (vec![config.into()], op.into())
}

/// Stores a tile `[N, C, H, W]` to a byte of a dense tensor; `sme` is the field of that name.
pub fn store(
    from: &Tensor,
    sme: u32,
    to: &DramTensor,
    dt_addr: i64,
    tile: [u32; 4],
) -> ConfiguredOp {
    let config = StaCfg {
        sme,
        rs: ACTIVATION_SET,
        bas: ACTIVATIONS,
        df: from.format,
        s_tile: from.shape,
        d_tile: to.shape,
    };
    let op = StaMov { rs: ACTIVATION_SET, sbsg: from.region, st_addr: from.base, dt_addr, tile };
    (vec![config.into()], op.into())
}

/// Order of a copy that keeps the dimensions.
pub const AS_IT_IS: u32 = 0;

/// Order of a copy that exchanges channels and rows.
pub const TRANSPOSED: u32 = 1;

/// Copies a tile `[N, C, H, W]` of the source within L2.
pub fn copy(order: u32, from: &TensorOffset, to: &TensorOffset, tile: [u32; 4]) -> ConfiguredOp {
    let config =
        DtCfg { df: from.tensor.format, s_tile: from.tensor.shape, d_tile: to.tensor.shape };
    let op = DtCal {
        order,
        sbsg: from.tensor.region,
        dbsg: to.tensor.region,
        st_addr: from.address([0; 4]),
        dt_addr: to.address([0; 4]),
        tile,
    };
    (vec![config.into()], op.into())
}

/// Loads the weights of `count` output channels, starting at `first`, to a byte of L2.
pub fn load_weights(
    weights: &Weights,
    (first, count): (i64, u32),
    (dbsg, dt_addr): (u32, i64),
) -> ConfiguredOp {
    let config = LdwCfg {
        rs: WEIGHT_SET,
        bas: WEIGHTS,
        df: weights.format,
        mkc: 0,
        mken: 0,
        sw_size: weights.size,
        dw_size: weights.size,
    };
    let st_addr = weights.base + first * weights.row();
    let [c, r, s] = weights.size;
    let op = LdwMov { rs: WEIGHT_SET, dbsg, st_addr, dt_addr, w_size: [count, c, r, s] };
    (vec![config.into()], op.into())
}

/// The source of weights for WL0.
#[derive(Clone, Copy, Debug)]
pub enum WeightSource {
    /// A byte of L2, in a ring region.
    L2(u32, i64),
    /// A byte of DRAM.
    Dram(i64),
}

/// Loads the weights of `count` output channels to a unit of WL0.
pub fn to_wl0(
    weights: &Weights,
    count: u32,
    xy_mode: (XCutMode, YCutMode),
    from: WeightSource,
    dt_addr: i64,
) -> ConfiguredOp {
    let config = LwCfg {
        bas: WEIGHTS,
        df: weights.format,
        mkc: 0,
        mken: 0,
        sw_size: weights.size,
        dw_size: weights.size,
    };
    let (ss, sbsg, st_addr) = match from {
        WeightSource::L2(region, at) => (0, region, at),
        WeightSource::Dram(at) => (1, 0, at),
    };
    let [c, r, s] = weights.size;
    let op = LwMov { ss, xy_mode, sbsg, st_addr, dt_addr, w_size: [count, c, r, s] };
    (vec![config.into()], op.into())
}

/// Registers of a vector operation; those not given are neutral.
pub struct VectorSetup {
    /// Comparison.
    pub cmps: Cmps,
    /// Factor.
    pub factor: Number,
    /// Rounding of results.
    pub rounding: Float2Fixed,
    /// Factor and summand of the result.
    pub quantise: [Number; 2],
    /// Factor and summand of the operand at `STaddr1`.
    pub first: [Number; 2],
    /// Factor and summand of the operand at `STaddr`.
    pub second: [Number; 2],
    /// Signs of the bytes of operands, and of the result.
    pub signs: [DataSign; 2],
    /// Operands.
    pub input: Tensor,
    /// The result.
    pub output: Tensor,
    /// Strides of windows, in rows and columns.
    pub stride: [u32; 2],
    /// Extents of a window in rows and columns.
    pub kernel: [u32; 2],
    /// Channels, height and width of the result.
    pub tile: [u32; 3],
    /// Axes of the two operands that are used, one bit each.
    pub axes: [u32; 2],
    /// The value read outside the input.
    pub outside: i64,
    /// The result for each byte, of a function that has a table.
    pub table: Option<[u8; 256]>,
}

impl VectorSetup {
    /// The configuration, in the order of listings.
    pub fn configs(self) -> Vec<Op> {
        let zero = || Number::Int(0);
        let [qk, qb] = self.quantise;
        let [iqk0, iqb0] = self.first;
        let [iqk1, iqb1] = self.second;
        let gcs = VpCfgGcs {
            cmps: self.cmps,
            sg0m: Sg0m::Default,
            cmpvs: 0,
            sg0vs: 0,
            sg0v: zero(),
            cmpv: zero(),
        };
        let gms = VpCfgGms {
            used: false,
            sege: 0,
            segn: 0,
            mg0s: Mg0s::Default,
            sg1m: Sg1m::Default,
            mg0vs: 0,
            sg1vs: 0,
            sg1v: zero(),
            mg0v: self.factor,
        };
        let sms = VpCfgSms { summ: Summ::Default, mulvs: 0, sumvs: 0, sumv: zero(), mulv: zero() };
        let [i_f, o_f] = self.signs;
        let formats = VpCfgFm {
            i_f,
            o_f,
            idf: self.input.format,
            odf: self.output.format,
            vf32: 0,
            s_tile: self.input.shape,
            d_tile: self.output.shape,
        };
        let [t0f, t1f] = self.axes;
        let shape = VpCfgTp {
            stride: self.stride,
            kernel: self.kernel,
            tile: self.tile,
            t1f,
            t0f,
            padv_area: self.outside,
        };
        let mut all = vec![
            gcs.into(),
            gms.into(),
            sms.into(),
            VpCfgQp { qcs: self.rounding, qsmd: Qsmd::Default, qb, qk }.into(),
            VpCfgIq { iqcs: 0, iqb0, iqk0 }.into(),
            VpCfgIq1 { iqb1, iqk1 }.into(),
            formats.into(),
            shape.into(),
        ];
        all.extend(self.table.map(|table| VpCfgTb { table: table.map(u32::from).to_vec() }.into()));
        all
    }
}
