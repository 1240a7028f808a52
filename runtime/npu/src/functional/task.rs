//! Decoded instructions, with all their registers.

use std::collections::BTreeMap;

use irc_npu::access::{Access, Space, accesses, dram_pixels};
use irc_npu::enums::{ActMode, DataFmt, DataSign};
use irc_npu::layout::{Pixels, WEIGHT_EXTRA, WL0_UNIT, weight_row, wl0_row};
use irc_npu::op::{LwMov, PeConv, VpCfgFm, VpCfgTp, VpPool, VpSelf};
use irc_npu::registers::{Region, Registers};
use irc_npu::{Core, Op, Program};

use super::Error;
use super::memory::{CoreMemory, MAX_WL0, dram_read, dram_write};
use super::tile::Tile;

type Dram = BTreeMap<u32, Vec<u8>>;

/// Activations between DRAM and L2.
#[derive(Clone, Copy, Debug)]
pub struct Movement {
    pub base: u32,
    pub address: i64,
    pub dram: Pixels,
    /// Bytes of a pixel in DRAM; in L2 pixels are padded.
    pub channel_bytes: usize,
    pub tile: Tile,
}

impl Movement {
    fn places(&self) -> impl Iterator<Item = i64> + use<> {
        let Self { address, dram, .. } = *self;
        let [n, h, w] = self.tile.shape.map(i64::from);
        (0..n).flat_map(move |n| {
            (0..h).flat_map(move |h| {
                (0..w).map(move |w| address + n * dram.image() + dram.offset(h, w))
            })
        })
    }

    /// Loads from DRAM.
    pub fn run(&self, core: &mut CoreMemory, dram: &mut Dram) -> Result<(), String> {
        let mut bytes = vec![0; self.tile.bytes()];
        let pixels = bytes.chunks_exact_mut(self.tile.channel_bytes.max(1));
        for (at, pixel) in self.places().zip(pixels) {
            let source = dram_read(dram, self.base, at, self.channel_bytes)?;
            pixel[..self.channel_bytes].copy_from_slice(source);
        }
        core.write_tile(&self.tile, &bytes)
    }
}

/// A store of activations to DRAM.
#[derive(Clone, Copy, Debug)]
pub struct Store(pub Movement);

impl Store {
    pub fn run(&self, core: &mut CoreMemory, dram: &mut Dram) -> Result<(), String> {
        let Self(movement) = self;
        let bytes = core.read_tile(&movement.tile)?;
        let pixels = bytes.chunks_exact(movement.tile.channel_bytes.max(1));
        for (at, pixel) in movement.places().zip(pixels) {
            dram_write(dram, movement.base, at, &pixel[..movement.channel_bytes])?;
        }
        Ok(())
    }
}

/// A copy that exchanges channels and rows.
#[derive(Clone, Copy, Debug)]
pub struct Transpose {
    pub from: Tile,
    pub to: Tile,
    /// Bytes of an element.
    pub element: usize,
}

impl Transpose {
    pub fn run(&self, core: &mut CoreMemory) -> Result<(), String> {
        let Self { from, to, element } = *self;
        let [_, rows, columns] = from.shape.map(|size| size as usize);
        let channels = to.shape[1] as usize;
        let bytes = core.read_tile(&from)?;
        let mut made = vec![0; to.bytes()];
        for (pixel, source) in bytes.chunks_exact(from.channel_bytes.max(1)).enumerate() {
            let (image, row, column) =
                (pixel / (rows * columns), pixel / columns % rows, pixel % columns);
            for (channel, value) in source.chunks_exact(element).take(channels).enumerate() {
                let target = (image * channels + channel) * columns + column;
                made[target * to.channel_bytes + row * element..][..element].copy_from_slice(value);
            }
        }
        core.write_tile(&to, &made)
    }
}

/// A transfer of weights.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// DRAM base, or the ring region of L2.
    pub source: Result<u32, Region>,
    pub address: i64,
    pub target: i64,
    pub region: Region,
    pub rows: usize,
    pub row: usize,
    pub wl0_row: usize,
}

impl Weights {
    fn read(&self, core: &CoreMemory, dram: &Dram) -> Result<Vec<u8>, String> {
        let len = self.rows * self.row;
        match self.source {
            Ok(base) => dram_read(dram, base, self.address, len).map(<[u8]>::to_vec),
            Err(region) => {
                let mut bytes = vec![0; len];
                core.read(region, self.address, &mut bytes)?;
                Ok(bytes)
            }
        }
    }

    pub fn to_l2(self, core: &mut CoreMemory, dram: &Dram) -> Result<(), String> {
        let bytes = self.read(core, dram)?;
        core.write(self.region, self.target, &bytes)
    }

    /// Scale and bias are moved to the end of the longer row.
    pub fn to_wl0(self, core: &mut CoreMemory, dram: &Dram) -> Result<(), String> {
        let bytes = self.read(core, dram)?;
        let extra = WEIGHT_EXTRA as usize;
        let at = usize::try_from(self.target * WL0_UNIT).map_err(|_| "an address is before WL0")?;
        let target = core.wl0_mut(at, self.rows * self.wl0_row)?;
        for (row, to) in bytes.chunks_exact(self.row).zip(target.chunks_exact_mut(self.wl0_row)) {
            let (weights, constants) = row.split_at(self.row - extra);
            let (head, tail) = to.split_at_mut(self.wl0_row - extra);
            head[..weights.len()].copy_from_slice(weights);
            head[weights.len()..].fill(0);
            tail.copy_from_slice(constants);
        }
        Ok(())
    }
}

/// A window over an input.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// First row and column, negative if in padding.
    pub first: [i64; 2],
    pub stride: [i64; 2],
    pub kernel: [i64; 2],
    /// Rows and columns of the input.
    pub size: [i64; 2],
}

/// A convolution.
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    pub region: Region,
    /// Address of the first pixel of the input.
    pub input: i64,
    pub input_pixels: Pixels,
    pub channels: usize,
    pub window: Window,
    /// The sign of the elements of the input.
    pub sign: DataSign,
    pub padding: i16,
    /// Byte of WL0.
    pub weights: usize,
    pub wl0_row: usize,
    pub k: usize,
    /// Scale and bias of all channels, instead of those stored with the weights.
    pub dequantise: Option<(f32, f32)>,
    pub relu: bool,
    pub output: Tile,
    pub format: DataFmt,
    pub output_sign: DataSign,
    /// `QK`, `QB`.
    pub quantise: (f32, f32),
}

/// The function of a vector operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The identity.
    Same,
    /// The sum of both operands.
    Sum,
    /// The sum of both operands, or zero if it is negative.
    SumRelu,
    /// The product of both operands.
    Product,
    /// The product of both operands, or zero if it is negative.
    ProductRelu,
    /// A byte for each byte.
    Table,
    /// The maximum of a window.
    Max,
    /// The sum of a window, with a factor for each element.
    Average,
}

/// A vector operation.
#[derive(Clone, Debug)]
pub struct Vector {
    pub function: Function,
    pub channels: usize,
    pub first: Tile,
    pub second: Option<Tile>,
    pub window: Window,
    pub input: DataFmt,
    /// The sign of the elements of operands.
    pub sign: DataSign,
    /// `IQK0`, `IQB0`.
    pub dequantise: (f32, f32),
    pub dequantise1: (f32, f32),
    /// Factor of an average.
    pub factor: f32,
    pub output: Tile,
    pub format: DataFmt,
    pub output_sign: DataSign,
    /// `QK`, `QB`.
    pub quantise: (f32, f32),
    /// The result of [`Function::Table`] for each byte.
    pub table: Vec<u8>,
}

/// The effect of an instruction on memories.
#[derive(Clone, Debug)]
pub enum Task {
    Load(Movement),
    Store(Store),
    LoadWeights(Weights),
    Weights(Weights),
    Copy { from: Tile, to: Tile },
    Transpose(Transpose),
    Convolve(Convolution),
    Vector(Vector),
    Send { to: u32, transfer: u32, tile: Tile },
    Receive { from: u32, transfer: u32, tile: Tile },
}

/// The tasks of a program, by index of the core and of the instruction.
pub fn tasks(program: &Program, l2_bytes: i64) -> Result<Vec<Vec<Option<Task>>>, Error> {
    program.cores.iter().map(|core| of_core(core, l2_bytes)).collect()
}

/// Checks that accesses are within the memories, which also limits allocations.
fn within(accesses: &[Access], l2_bytes: i64) -> Result<(), String> {
    for Access { space, area, .. } in accesses {
        let (name, end) = match space {
            Space::L2 => ("L2", l2_bytes),
            Space::Wl0 => ("WL0", MAX_WL0 as i64 / WL0_UNIT),
            Space::Dram(_) | Space::Regions => continue,
        };
        if area.start < 0 || area.end() > end {
            return Err(format!(
                "{} to {} of {name} is beyond its end, {end}",
                area.start,
                area.end()
            ));
        }
    }
    Ok(())
}

fn of_core(core: &Core, l2_bytes: i64) -> Result<Vec<Option<Task>>, Error> {
    let mut registers = Registers::default();
    let mut tasks = Vec::with_capacity(core.code.len());
    for (index, instruction) in core.code.iter().enumerate() {
        let fault = |message: String| Error::Instruction(core.id, index, message);
        registers.write(instruction).map_err(|message| fault(message.into()))?;
        // An instruction with accesses has all its registers.
        let accesses = accesses(&registers, &instruction.op);
        let accesses = accesses.map_err(|trouble| fault(format!("{trouble:?}")))?;
        within(&accesses, l2_bytes).map_err(fault)?;
        tasks.push(task(&registers, &instruction.op).map_err(fault)?);
    }
    Ok(tasks)
}

fn task(registers: &Registers, op: &Op) -> Result<Option<Task>, String> {
    let region = |number| registers.region(number).ok_or("the ring region is not there".to_owned());
    let tile = |number, start, format, tensor, shape| {
        region(number).map(|region| tile_of(region, start, format, tensor, shape))
    };
    let missing = || "its registers are not written".to_owned();
    Ok(Some(match op {
        Op::LdaMov(op) => {
            let cfg = registers.lda[op.rs as usize].as_ref().ok_or_else(missing)?;
            Task::Load(Movement {
                base: cfg.bas,
                address: op.st_addr,
                dram: dram_pixels(cfg.sme, cfg.df, cfg.s_tile),
                channel_bytes: op.tile[1] as usize * cfg.df.bytes() as usize,
                tile: tile(op.dbsg, op.dt_addr, cfg.df, cfg.d_tile, op.tile)?,
            })
        }
        Op::StaMov(op) => {
            let cfg = registers.sta[op.rs as usize].as_ref().ok_or_else(missing)?;
            Task::Store(Store(Movement {
                base: cfg.bas,
                address: op.dt_addr,
                dram: dram_pixels(cfg.sme, cfg.df, cfg.d_tile),
                channel_bytes: op.tile[1] as usize * cfg.df.bytes() as usize,
                tile: tile(op.sbsg, op.st_addr, cfg.df, cfg.s_tile, op.tile)?,
            }))
        }
        Op::LdwMov(op) => {
            let cfg = registers.ldw[op.rs as usize].as_ref().ok_or_else(missing)?;
            let row = weight_row(cfg.df, cfg.sw_size) as usize;
            if cfg.sw_size != cfg.dw_size || cfg.mken != 0 {
                return Err("weights that change their shape or are masked are not modelled".into());
            }
            Task::LoadWeights(Weights {
                source: Ok(cfg.bas),
                address: op.st_addr,
                target: op.dt_addr,
                region: region(op.dbsg)?,
                rows: op.w_size[0] as usize,
                row,
                wl0_row: row,
            })
        }
        Op::LwMov(op) => weights(registers, op)?,
        Op::PeConv(op) => convolution(registers, op)?,
        Op::VpSelf(op) => vector(registers, op)?,
        Op::VpPool(op) => pooling(registers, op)?,
        Op::DtCal(op) => {
            let cfg = registers.dt.as_ref().ok_or_else(missing)?;
            let from = tile(op.sbsg, op.st_addr, cfg.df, cfg.s_tile, op.tile)?;
            let [n, c, h, w] = op.tile;
            let made = if op.order == 0 { op.tile } else { [n, h, c, w] };
            let to = tile(op.dbsg, op.dt_addr, cfg.df, cfg.d_tile, made)?;
            match op.order {
                0 => Task::Copy { from, to },
                _ => Task::Transpose(Transpose { from, to, element: cfg.df.bytes() as usize }),
            }
        }
        Op::SoMov(op) if op.tile != [0; 4] => {
            let cfg = registers.so.as_ref().ok_or_else(missing)?;
            let tile = tile(op.sbsg, op.st_addr, cfg.df, cfg.s_tile, op.tile)?;
            Task::Send { to: op.core, transfer: op.xfer, tile }
        }
        Op::SiMov(op) if op.tile != [0; 4] => {
            let cfg = registers.si.as_ref().ok_or_else(missing)?;
            let tile = tile(op.dbsg, op.dt_addr, cfg.df, cfg.d_tile, op.tile)?;
            Task::Receive { from: op.core, transfer: op.xfer, tile }
        }
        _ => return Ok(None),
    }))
}

fn tile_of(
    region: Region,
    start: i64,
    format: DataFmt,
    tensor: [u32; 3],
    [n, c, h, w]: [u32; 4],
) -> Tile {
    let pixels = Pixels::padded(format, tensor);
    Tile { region, start, pixels, channel_bytes: format.pixel(c) as usize, shape: [n, h, w] }
}

fn weights(registers: &Registers, op: &LwMov) -> Result<Task, String> {
    let cfg = registers.lw.as_ref().ok_or("`lw_cfg` does not precede")?;
    if cfg.sw_size != cfg.dw_size || cfg.mken != 0 {
        return Err("weights that change their shape or are masked are not modelled".into());
    }
    let region = registers.region(op.sbsg);
    let source = match op.ss {
        1 => Ok(cfg.bas),
        _ => Err(region.ok_or("the ring region is not there")?),
    };
    Ok(Task::Weights(Weights {
        source,
        address: op.st_addr,
        target: op.dt_addr,
        region: region.unwrap_or_default(),
        rows: op.w_size[0] as usize,
        row: weight_row(cfg.df, cfg.sw_size) as usize,
        wl0_row: wl0_row(cfg.df, cfg.dw_size) as usize,
    }))
}

fn convolution(registers: &Registers, op: &PeConv) -> Result<Task, String> {
    let (Some(fm), Some(pm), Some(tp), Some(dq)) =
        (&registers.pe_fm, &registers.pe_pm, &registers.pe_tp, &registers.pe_dq)
    else {
        return Err("its registers are not written".into());
    };
    if (fm.sf, fm.wf) != (DataFmt::Int8, DataFmt::Int8) || pm.adden != 0 {
        return Err("only convolutions of INT8, without ADDEN, are modelled".into());
    }
    let [n, k, c, h, w] = tp.tile;
    let pixels = Pixels::padded(fm.sf, fm.s_tile);
    let first = [i64::from(op.sphi), i64::from(op.spwi)];
    let region = |number| registers.region(number).ok_or("the ring region is not there");
    let scale = dq.dqk.value() as f32;
    Ok(Task::Convolve(Convolution {
        region: region(op.sbsg)?,
        input: op.st_addr - pixels.offset(first[0], first[1]),
        input_pixels: pixels,
        channels: fm.sf.pixel(c) as usize,
        window: Window {
            first,
            stride: pm.stride.map(i64::from),
            kernel: tp.kernel.map(i64::from),
            size: [i64::from(fm.s_tile[1]), i64::from(fm.s_tile[2])],
        },
        sign: fm.i_f,
        padding: super::sign::nearest(fm.padv.value() as f32, fm.i_f),
        weights: usize::try_from(op.sw_addr * WL0_UNIT).map_err(|_| "an address is before WL0")?,
        wl0_row: wl0_row(fm.wf, [c, tp.kernel[0], tp.kernel[1]]) as usize,
        k: k as usize,
        dequantise: (scale != 0.0).then_some((scale, dq.dqb.value() as f32)),
        relu: pm.act_md == ActMode::Relu,
        output: tile_of(region(op.dbsg)?, op.dt_addr, fm.df, fm.d_tile, [n, k, h, w]),
        format: fm.df,
        output_sign: fm.o_f,
        quantise: (pm.qk.value() as f32, pm.qb.value() as f32),
    }))
}

/// The common part of both kinds of vector operation.
fn vector_of(
    registers: &Registers,
    function: Function,
    [input, second, output]: [(u32, i64); 3],
    enabled: [u32; 2],
) -> Result<(Vector, &VpCfgFm, &VpCfgTp), String> {
    let (Some(fm), Some(tp), Some(qp)) = (&registers.vp_fm, &registers.vp_tp, &registers.vp_qp)
    else {
        return Err("its registers are not written".into());
    };
    let [c, h, w] = tp.tile;
    let image = i64::from(registers.image);
    let region = |number| registers.region(number).ok_or("the ring region is not there");
    let tile = |(number, start): (u32, i64), format, tensor, shape| {
        let start = start + image * Pixels::padded(format, tensor).image();
        region(number).map(|region| tile_of(region, start, format, tensor, shape))
    };
    let constants = |k: Option<irc_npu::Number>, b: Option<irc_npu::Number>| {
        let value = |number: Option<irc_npu::Number>, none| {
            number.map_or(none, |number| number.value() as f32)
        };
        (value(k, 1.0), value(b, 0.0))
    };
    let [iqen, qen] = enabled;
    let iq = registers.vp_iq.as_ref().filter(|_| iqen != 0);
    let iq1 = registers.vp_iq1.as_ref().filter(|_| iqen != 0);
    let qp = Some(qp).filter(|_| qen != 0);
    let all = [1, fm.s_tile[0], fm.s_tile[1], fm.s_tile[2]];
    let of_window = matches!(function, Function::Max | Function::Average);
    let shape = if of_window { all } else { [1, c, h, w] };
    let vector = Vector {
        function,
        channels: c as usize,
        first: match (function, tp.t1f) {
            // One number for each channel.
            (Function::Product | Function::ProductRelu, 1) => {
                tile(input, fm.idf, [fm.s_tile[0], 1, 1], [1, c, 1, 1])?
            }
            _ => tile(input, fm.idf, fm.s_tile, shape)?,
        },
        second: match function {
            Function::Same | Function::Table | Function::Max | Function::Average => None,
            _ => Some(tile(second, fm.idf, fm.s_tile, shape)?),
        },
        window: Window {
            first: [0, 0],
            stride: tp.stride.map(i64::from),
            kernel: tp.kernel.map(i64::from),
            size: [i64::from(fm.s_tile[1]), i64::from(fm.s_tile[2])],
        },
        input: fm.idf,
        sign: fm.i_f,
        dequantise: constants(iq.map(|iq| iq.iqk0), iq.map(|iq| iq.iqb0)),
        dequantise1: constants(iq1.map(|iq| iq.iqk1), iq1.map(|iq| iq.iqb1)),
        factor: registers.vp_gms.as_ref().map_or(0.0, |gms| gms.mg0v.value() as f32),
        output: tile(output, fm.odf, fm.d_tile, [1, c, h, w])?,
        format: fm.odf,
        output_sign: fm.o_f,
        quantise: constants(qp.map(|qp| qp.qk), qp.map(|qp| qp.qb)),
        table: match (function, &registers.vp_tb) {
            (Function::Table, Some(of)) => table(&of.table)?,
            (Function::Table, None) => return Err("`vp_cfg_tb` does not precede".into()),
            _ => vec![],
        },
    };
    Ok((vector, fm, tp))
}

/// A table of 256 bytes.
fn table(numbers: &[u32]) -> Result<Vec<u8>, String> {
    let bytes = numbers.iter().map(|number| u8::try_from(*number)).collect::<Result<Vec<_>, _>>();
    let bytes = bytes.map_err(|_| "a number of the table is no byte")?;
    match bytes.len() {
        256 => Ok(bytes),
        len => Err(format!("expected a table of 256 bytes, found {len}")),
    }
}

fn vector(registers: &Registers, op: &VpSelf) -> Result<Task, String> {
    let function = match (op.lut, op.gpmd) {
        (16, 4) => Function::Same,
        (18, 5) => Function::Sum,
        // The published sums are all followed by a ReLU, which bit 6 selects.
        (18, 69) => Function::SumRelu,
        (19, 5) => Function::Product,
        (19, 69) => Function::ProductRelu,
        (20, 4) => Function::Table,
        _ => return Err(format!("LUT {} with GPMD {} is not modelled", op.lut, op.gpmd)),
    };
    // IQK0 and IQB0 apply to the operand at STaddr1: only this reproduces the published sums. With
    // one operand both addresses are the same.
    let (first, second) = ((op.sbsg1, op.st_addr1), (op.sbsg, op.st_addr));
    let first = if tp_of(registers)?.t1f == 0 { second } else { first };
    let places = [first, second, (op.dbsg, op.dt_addr)];
    let (vector, _, tp) = vector_of(registers, function, places, [op.iqen, op.qen])?;
    let is_known = match function {
        Function::Same | Function::Table => tp.t1f == 0,
        Function::Sum | Function::SumRelu => tp.t1f == 7,
        _ => matches!(tp.t1f, 1 | 7),
    };
    match is_known {
        true => Ok(Task::Vector(vector)),
        false => Err(format!("T1F {} with LUT {} is not modelled", tp.t1f, op.lut)),
    }
}

fn tp_of(registers: &Registers) -> Result<&VpCfgTp, String> {
    registers.vp_tp.as_ref().ok_or("`vp_cfg_tp` does not precede".into())
}

fn pooling(registers: &Registers, op: &VpPool) -> Result<Task, String> {
    let function = match op.lut {
        17 => Function::Max,
        56 => Function::Average,
        lut => return Err(format!("LUT {lut} of a pooling is not modelled")),
    };
    let places = [(op.sbsg, op.st_addr), (op.sbsg, 0), (op.dbsg, op.dt_addr)];
    let (mut vector, fm, _) = vector_of(registers, function, places, [op.iqen, op.qen])?;
    let first = [i64::from(op.iph), i64::from(op.ipw)];
    vector.window.first = first;
    // The address is the one of pixel (IPH, IPW).
    vector.first.start -= Pixels::padded(fm.idf, fm.s_tile).offset(first[0], first[1]);
    Ok(Task::Vector(vector))
}
