//! Every instruction with its fields.
//!
//! One table: name in listings, engine, fields with their keys. Reading, printing and encoding
//! follow from it. Addresses are in bytes; in WL0 in units of 64 bytes. Fields that the
//! published programs never vary are preserved.

use crate::bytes::{Bytes, Error};
use crate::dict::Dict;
use crate::enums::{
    Accd, ActMode, Cmpd, Cmps, DataFmt, DataSign, Float2Fixed, Mg0s, Qsmd, Sg0m, Sg1m, Summ, Swrs,
    Treed, XCutMode, YCutMode,
};
use crate::field::Field;
use crate::value::{BoxedDiagnostic, Spanned, Value};
use crate::{Engine, Number};

#[macro_use]
mod instructions;

impl Op {
    /// The instruction with a name and fields in any order.
    ///
    /// # Errors
    /// If no instruction has the name, or its fields differ.
    pub fn of_fields(name: &str, fields: Vec<(&str, Value<'_>)>) -> Result<Op, String> {
        let spanned = |(key, value)| (Spanned::nowhere(Value::Text(key)), Spanned::nowhere(value));
        let fields = Spanned::nowhere(Value::Dict(fields.into_iter().map(spanned).collect()));
        let read = || {
            let mut fields = Dict::new(&fields)?;
            let op = Op::read(name, &mut fields).transpose()?;
            fields.finish().map(|()| op)
        };
        let op = read().map_err(|diagnostic: BoxedDiagnostic| diagnostic.message)?;
        let op = op.ok_or_else(|| format!("unknown instruction '{name}'"))?;
        match op.empty_field() {
            Some(key) => Err(empty(key)),
            None => Ok(op),
        }
    }

    /// The key of a field with an extent of 0 that no instruction of its kind has: of a window, a stride, or a tile that is
    /// computed. Movements may have empty tiles.
    pub(crate) fn empty_field(&self) -> Option<&'static str> {
        let (stride, kernel, tile): (&[u32], &[u32], &[u32]) = match self {
            Op::PeCfgPm(op) => (&op.stride, &[], &[]),
            Op::PeCfgTp(op) => (&[], &op.kernel, &op.tile),
            Op::VpCfgTp(op) => (&op.stride, &op.kernel, &op.tile),
            _ => return None,
        };
        let all = [("STRIDE", stride), ("KERNEL", kernel), ("Tile", tile)];
        all.into_iter().find(|(_, extents)| extents.contains(&0)).map(|(key, _)| key)
    }
}

/// The message of [`Op::empty_field`].
pub(crate) fn empty(key: &str) -> String {
    format!("an extent of `{key}` is 0, expected at least 1")
}

// New instructions go to the end: the index in this table is the number in the binary encoding.
instructions! {
    /// Begin of the task.
    CtSt "ct_st" Ct run {}

    /// Ring regions of L2, one bank of four.
    CtBc "ct_bc" Ct run {
        /// Bank written: regions `4 bcs` to `4 bcs + 3`.
        bcs "BCS": u32,
        /// Four times size and last KiB; size 0 with a last KiB is a region up to that KiB.
        buf_cut "BufCut": [u32; 8],
    }

    /// End of the task.
    CtEd "ct_ed" Ct run {}

    /// Layout of activations loaded from DRAM.
    LdaCfg "lda_cfg" Ld config {
        /// 1: channels are dense in DRAM.
        sme "SME": u32,
        /// Register set written.
        rs "RS": u32,
        /// Base of DRAM: 0 activations, 1 weights.
        bas "BAS": u32,
        /// Element format.
        df "DF": DataFmt,
        /// Channels, height, width of the tensor in DRAM.
        s_tile "STile": [u32; 3],
        /// Channels, height, width of the tensor in L2.
        d_tile "DTile": [u32; 3],
    }

    /// Activations from DRAM to L2.
    LdaMov "lda_mov" Ld run {
        /// Register set used.
        rs "RS": u32,
        /// Ring region of the destination.
        dbsg "DBSG": u32,
        /// Address in DRAM, relative to its base.
        st_addr "STaddr": i64,
        /// Address in L2.
        dt_addr "DTaddr": i64,
        /// Batch, channels, height, width moved.
        tile "Tile": [u32; 4],
    }

    /// Layout of weights loaded from DRAM to L2.
    LdwCfg "ldw_cfg" Ld config {
        /// Register set written.
        rs "RS": u32,
        /// Base of DRAM.
        bas "BAS": u32,
        /// Element format.
        df "DF": DataFmt,
        /// Masked channels.
        mkc "MKC": u32,
        /// 1: channels are masked.
        mken "MKEN": u32,
        /// Input channels, kernel height, kernel width in DRAM.
        sw_size "SWsize": [u32; 3],
        /// The same in L2.
        dw_size "DWsize": [u32; 3],
    }

    /// Weights from DRAM to L2.
    LdwMov "ldw_mov" Ld run {
        /// Register set used.
        rs "RS": u32,
        /// Ring region of the destination.
        dbsg "DBSG": u32,
        /// Address in DRAM, relative to its base.
        st_addr "STaddr": i64,
        /// Address in L2.
        dt_addr "DTaddr": i64,
        /// Output channels, input channels, kernel height, kernel width.
        w_size "Wsize": [u32; 4],
    }

    /// Layout of weights loaded to WL0.
    LwCfg "lw_cfg" Lw config {
        /// Base of DRAM.
        bas "BAS": u32,
        /// Element format.
        df "DF": DataFmt,
        /// Masked channels.
        mkc "MKC": u32,
        /// 1: channels are masked.
        mken "MKEN": u32,
        /// Input channels, kernel height, kernel width at the source.
        sw_size "SWsize": [u32; 3],
        /// The same in WL0.
        dw_size "DWsize": [u32; 3],
    }

    /// Weights from DRAM or L2 to WL0.
    LwMov "lw_mov" Lw run {
        /// 1: from DRAM; 0: from L2.
        ss "SS": u32,
        /// How the array will divide the work.
        xy_mode "XYmode": (XCutMode, YCutMode),
        /// Ring region of the source.
        sbsg "SBSG": u32,
        /// Address in DRAM or L2, in bytes.
        st_addr "STaddr": i64,
        /// Address in WL0, in units of 64 bytes.
        dt_addr "DTaddr": i64,
        /// Output channels, input channels, kernel height, kernel width.
        w_size "Wsize": [u32; 4],
    }

    /// Formats and shapes of a convolution.
    PeCfgFm "pe_cfg_fm" Pe config {
        /// Sign of the input.
        i_f "IF": DataSign,
        /// Sign of the output.
        o_f "OF": DataSign,
        /// Format of the input.
        sf "SF": DataFmt,
        /// Format of the weights.
        wf "WF": DataFmt,
        /// Format of the output.
        df "DF": DataFmt,
        /// Value outside the input.
        padv "PADV": Number,
        /// Channels, height, width of the input in L2.
        s_tile "STile": [u32; 3],
        /// Channels, height, width of the output in L2.
        d_tile "DTile": [u32; 3],
    }

    /// Activation, quantisation, stride of a convolution.
    PeCfgPm "pe_cfg_pm" Pe config {
        /// Activation.
        act_md "ACTMD": ActMode,
        /// Parameter of the activation.
        act_pm "ACTPM": Number,
        /// Rounding of results.
        qc "QC": Float2Fixed,
        /// Zero point of the output.
        qb "QB": Number,
        /// One over the scale of the output.
        qk "QK": Number,
        /// 1: accumulates to the output.
        adden "ADDEN": u32,
        /// Strides along height and width.
        stride "STRIDE": [u32; 2],
        /// How the array divides the work.
        xy_mode "XYmode": (XCutMode, YCutMode),
    }

    /// Dequantisation of a convolution's sums.
    PeCfgDq "pe_cfg_dq" Pe config {
        /// Conversion.
        dqc "DQC": u32,
        /// Zero point.
        dqb "DQB": Number,
        /// Scale; 0: those stored with the weights.
        dqk "DQK": Number,
    }

    /// Tile of a convolution.
    PeCfgTp "pe_cfg_tp" Pe config {
        /// Height and width of the kernel.
        kernel "KERNEL": [u32; 2],
        /// Batch, output channels, input channels, output height, output width.
        tile "Tile": [u32; 5],
        /// Output channels of an inner tile.
        mtk0 "MTK0": u32,
        /// Input channels of an inner tile.
        mtc0 "MTC0": u32,
        /// Height and width of an inner tile.
        mti "MTI": [u32; 2],
    }

    /// Convolution.
    PeConv "pe_conv" Pe run {
        /// Phase of channels, to avoid bank conflicts.
        ps "PS": u32,
        /// First input row; negative in padding.
        sphi "SPHI": i32,
        /// First input column; negative in padding.
        spwi "SPWI": i32,
        /// Ring region of the input.
        sbsg "SBSG": u32,
        /// Ring region of the output.
        dbsg "DBSG": u32,
        /// Address in L2 of the pixel (SPHI, SPWI), which may be outside of the input.
        st_addr "STaddr": i64,
        /// Address of the weights in WL0, in units of 64 bytes.
        sw_addr "SWaddr": i64,
        /// Address of the output in L2.
        dt_addr "DTaddr": i64,
    }

    /// Comparison and sum group 0 of a vector operation.
    VpCfgGcs "vp_cfg_gcs" Vp config {
        /// The value that a comparison selects.
        cmps "CMPS": Cmps,
        /// Mode of sum group 0.
        sg0m "SG0M": Sg0m,
        /// Source of the comparison's scalar.
        cmpvs "CMPVS": u32,
        /// Source of the sum's scalar.
        sg0vs "SG0VS": u32,
        /// The sum's scalar.
        sg0v "SG0V": Number,
        /// The comparison's scalar.
        cmpv "CMPV": Number,
    }

    /// Product group 0 and sum group 1 of a vector operation.
    VpCfgGms "vp_cfg_gms" Vp config {
        /// As published.
        used "USED": bool,
        /// As published.
        sege "SEGE": u32,
        /// As published.
        segn "SEGN": u32,
        /// Mode of the product.
        mg0s "MG0S": Mg0s,
        /// Mode of the sum.
        sg1m "SG1M": Sg1m,
        /// Source of the product's scalar.
        mg0vs "MG0VS": u32,
        /// Source of the sum's scalar.
        sg1vs "SG1VS": u32,
        /// The sum's scalar.
        sg1v "SG1V": Number,
        /// The product's scalar; one over the window for an average.
        mg0v "MG0V": Number,
    }

    /// Scalar product and sum of a vector operation.
    VpCfgSms "vp_cfg_sms" Vp config {
        /// Mode of the sum.
        summ "SUMM": Summ,
        /// Source of the product's scalar.
        mulvs "MULVS": u32,
        /// Source of the sum's scalar.
        sumvs "SUMVS": u32,
        /// The sum's scalar.
        sumv "SUMV": Number,
        /// The product's scalar.
        mulv "MULV": Number,
    }

    /// Quantisation of a vector operation's result.
    VpCfgQp "vp_cfg_qp" Vp config {
        /// Rounding of results.
        qcs "QCS": Float2Fixed,
        /// Mode.
        qsmd "QSMD": Qsmd,
        /// Zero point.
        qb "QB": Number,
        /// One over the scale.
        qk "QK": Number,
    }

    /// Dequantisation `IQK0 x + IQB0`: of the only operand, or of that at `STaddr1`.
    VpCfgIq "vp_cfg_iq" Vp config {
        /// Conversion.
        iqcs "IQCS": u32,
        /// Summand.
        iqb0 "IQB0": Number,
        /// Factor.
        iqk0 "IQK0": Number,
    }

    /// Dequantisation of the operand at `STaddr` if there are two.
    VpCfgIq1 "vp_cfg_iq1" Vp config {
        /// Summand.
        iqb1 "IQB1": Number,
        /// Factor.
        iqk1 "IQK1": Number,
    }

    /// Formats and shapes of a vector operation.
    VpCfgFm "vp_cfg_fm" Vp config {
        /// Sign of the input.
        i_f "IF": DataSign,
        /// Sign of the output.
        o_f "OF": DataSign,
        /// Format of the input.
        idf "IDF": DataFmt,
        /// Format of the output.
        odf "ODF": DataFmt,
        /// 1: single precision internally.
        vf32 "VF32": u32,
        /// Channels, height, width of the input in L2.
        s_tile "STile": [u32; 3],
        /// Channels, height, width of the output in L2.
        d_tile "DTile": [u32; 3],
    }

    /// Window and tile of a vector operation.
    VpCfgTp "vp_cfg_tp" Vp config {
        /// Strides along height and width.
        stride "STRIDE": [u32; 2],
        /// Height and width of the window.
        kernel "KERNEL": [u32; 2],
        /// Channels, height, width of the output.
        tile "Tile": [u32; 3],
        /// Dimensions of the second operand: 7 all, 0 none, 1 channels (defined here).
        t1f "T1F": u32,
        /// Dimensions of the first operand.
        t0f "T0F": u32,
        /// Value outside the input; -32768 is ignored by a maximum.
        padv_area "PADV_AREA": i64,
    }

    /// Elementwise operation on one or two operands.
    VpSelf "vp_self" Vp run {
        /// 1: the input is dequantised.
        iqen "IQEN": u32,
        /// 3: the result is quantised.
        qen "QEN": u32,
        /// Shift.
        shmd "SHMD": u32,
        /// Path through the groups: 4 one operand, 5 two (defined here), 69 two with ReLU.
        gpmd "GPMD": u32,
        /// Dimensions of the comparison.
        cmpd "CMPD": Cmpd,
        /// Dimensions of the tree.
        treed "TREED": Treed,
        /// Dimensions of accumulation.
        accd "ACCD": Accd,
        /// As published.
        tm "TM": u32,
        /// Register for scalar results.
        swrs "SWRS": Swrs,
        /// Function: 16 the operand, 18 the sum of two; defined here: 19 the product of two, 20 the table of the operand.
        lut "LUT": u32,
        /// Ring region of the first operand.
        sbsg "SBSG": u32,
        /// Ring region of the second operand.
        sbsg1 "SBSG1": u32,
        /// Ring region of the result.
        dbsg "DBSG": u32,
        /// The only operand in L2; the second of the frontend's if there are two.
        st_addr "STaddr": i64,
        /// The first of two operands of the frontend in L2; otherwise equal to `STaddr`.
        st_addr1 "STaddr1": i64,
        /// Result in L2.
        dt_addr "DTaddr": i64,
    }

    /// Pooling.
    VpPool "vp_pool" Vp run {
        /// 1: the input is dequantised.
        iqen "IQEN": u32,
        /// 3: the result is quantised.
        qen "QEN": u32,
        /// Shift.
        shmd "SHMD": u32,
        /// Path through the groups.
        gpmd "GPMD": u32,
        /// Dimensions of the comparison.
        cmpd "CMPD": Cmpd,
        /// Dimensions of the tree.
        treed "TREED": Treed,
        /// Dimensions of accumulation.
        accd "ACCD": Accd,
        /// Register for scalar results.
        swrs "SWRS": Swrs,
        /// Function: 17 the maximum, 56 the average.
        lut "LUT": u32,
        /// First input row; negative in padding.
        iph "IPH": i32,
        /// First input column; negative in padding.
        ipw "IPW": i32,
        /// Ring region of the input.
        sbsg "SBSG": u32,
        /// Ring region of the result.
        dbsg "DBSG": u32,
        /// Address in L2 of the pixel (IPH, IPW), which may be outside of the input.
        st_addr "STaddr": i64,
        /// Result in L2.
        dt_addr "DTaddr": i64,
    }

    /// Layouts of a copy.
    DtCfg "dt_cfg" Dt config {
        /// Element format.
        df "DF": DataFmt,
        /// Channels, height, width of the source.
        s_tile "STile": [u32; 3],
        /// Channels, height, width of the destination.
        d_tile "DTile": [u32; 3],
    }

    /// Copy within L2.
    DtCal "dt_cal" Dt run {
        /// Order of dimensions: 0 unchanged; 1 exchanges channels and rows (defined here).
        order "Order": u32,
        /// Ring region of the source.
        sbsg "SBSG": u32,
        /// Ring region of the destination.
        dbsg "DBSG": u32,
        /// Source in L2.
        st_addr "STaddr": i64,
        /// Destination in L2.
        dt_addr "DTaddr": i64,
        /// Batch, channels, height, width moved, in the order of the source.
        tile "Tile": [u32; 4],
    }

    /// Layout of activations stored to DRAM.
    StaCfg "sta_cfg" St config {
        /// 1: channels are dense in DRAM.
        sme "SME": u32,
        /// Register set written.
        rs "RS": u32,
        /// Base of DRAM.
        bas "BAS": u32,
        /// Element format.
        df "DF": DataFmt,
        /// Channels, height, width of the tensor in L2.
        s_tile "STile": [u32; 3],
        /// Channels, height, width of the tensor in DRAM.
        d_tile "DTile": [u32; 3],
    }

    /// Activations from L2 to DRAM.
    StaMov "sta_mov" St run {
        /// Register set used.
        rs "RS": u32,
        /// Ring region of the source.
        sbsg "SBSG": u32,
        /// Address in L2.
        st_addr "STaddr": i64,
        /// Address in DRAM, relative to its base.
        dt_addr "DTaddr": i64,
        /// Batch, channels, height, width moved.
        tile "Tile": [u32; 4],
    }

    /// Layout of activations received; this project's definition.
    SiCfg "si_cfg" Si config {
        /// Element format.
        df "DF": DataFmt,
        /// Channels, height, width of the tensor in this core's L2.
        d_tile "DTile": [u32; 3],
    }

    /// Activations from another core; this project's definition.
    SiMov "si_mov" Si run {
        /// The core that sends.
        core "Core": u32,
        /// Transfer of the schedule.
        xfer "Xfer": u32,
        /// Ring region of the destination.
        dbsg "DBSG": u32,
        /// Address in this core's L2.
        dt_addr "DTaddr": i64,
        /// Batch, channels, height, width moved; all 0 only waits for the other core.
        tile "Tile": [u32; 4],
    }

    /// Layout of activations sent; this project's definition.
    SoCfg "so_cfg" So config {
        /// Element format.
        df "DF": DataFmt,
        /// Channels, height, width of the tensor in this core's L2.
        s_tile "STile": [u32; 3],
    }

    /// Activations to another core; this project's definition.
    SoMov "so_mov" So run {
        /// The core that receives.
        core "Core": u32,
        /// Transfer of the schedule.
        xfer "Xfer": u32,
        /// Ring region of the source.
        sbsg "SBSG": u32,
        /// Address in this core's L2.
        st_addr "STaddr": i64,
        /// Batch, channels, height, width moved; all 0 only waits for the other core.
        tile "Tile": [u32; 4],
    }

    /// Table of a function of bytes; this project's definition.
    VpCfgTb "vp_cfg_tb" Vp config {
        /// The byte of the result for each byte of the operand, 256 in all.
        table "TABLE": Vec<u32>,
    }
}
