//! The bytes that an instruction reads and writes.

use crate::Op;
use crate::area::Area;
use crate::enums::DataFmt;
use crate::layout::{Pixels, WL0_UNIT, weight_row, window, wl0_row, wl0_units};
use crate::op::{LwMov, PeConv, VpCfgFm, VpPool, VpSelf};
use crate::registers::{Region, Registers};
use std::fmt;

/// A memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// The buffer of a core.
    L2,
    /// The weight memory of a core.
    Wl0,
    /// DRAM behind a base register, shared by all cores.
    Dram(u32),
    /// The ring regions of a core, one byte each.
    Regions,
}

/// An access of an instruction to bytes of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The memory.
    pub space: Space,
    /// Whether it writes.
    pub write: bool,
    /// The bytes.
    pub area: Area,
}

/// Reasons why the accesses of an instruction cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// A required `cfg` instruction of this name is missing.
    NoConfig(&'static str),
    /// The ring region is not defined.
    NoRegion(u32),
    /// A tensor is larger than its ring region.
    TooLarge {
        /// Region.
        region: u32,
        /// Its size in bytes.
        size: i64,
        /// Bytes from the first to the last accessed.
        need: i64,
    },
    /// An address is outside of its ring region by more than the region.
    Outside {
        /// Region.
        region: u32,
        /// First byte accessed.
        address: i64,
    },
    /// An invalid field.
    Field(&'static str),
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoConfig(name) => write!(f, "its registers require a preceding `{name}`"),
            Self::NoRegion(region) => write!(f, "ring region {region} is not defined"),
            Self::TooLarge { region, size, need } => {
                write!(f, "{need} bytes in ring region {region}, which has {size}")
            }
            Self::Outside { region, address } => {
                write!(f, "address {address} is not in ring region {region}")
            }
            Self::Field(what) => f.write_str(what),
        }
    }
}

type Result<T, E = AccessError> = std::result::Result<T, E>;

/// The accesses of an instruction, given the registers at its position in the program.
///
/// # Errors
/// If registers that it needs are not written, or its addresses leave their ring region.
pub fn accesses(registers: &Registers, op: &Op) -> Result<Vec<Access>> {
    if addresses(op).iter().any(|address| address.unsigned_abs() > MAX_ADDRESS) {
        return Err(AccessError::Field("an address exceeds 2^48"));
    }
    let mut to = Gather { registers, list: vec![] };
    match op {
        Op::CtBc(op) => to.push(Space::Regions, true, Area::range(i64::from(op.bcs) * 4, 4)),
        Op::LdaMov(op) => {
            let cfg = configured(set(&registers.lda, op.rs), "lda_cfg")?;
            fits(&cfg.s_tile, op.tile)?;
            let [n, c, h, w] = op.tile;
            let source = dram_pixels(cfg.sme, cfg.df, cfg.s_tile);
            let run = i64::from(c) * cfg.df.bytes() as i64;
            to.push(Space::Dram(cfg.bas), false, source.area(op.st_addr, run, [n, h, w]));
            to.tile(true, op.dbsg, op.dt_addr, cfg.df, cfg.d_tile, op.tile)?;
        }
        Op::StaMov(op) => {
            let cfg = configured(set(&registers.sta, op.rs), "sta_cfg")?;
            fits(&cfg.d_tile, op.tile)?;
            let [n, c, h, w] = op.tile;
            let target = dram_pixels(cfg.sme, cfg.df, cfg.d_tile);
            let run = i64::from(c) * cfg.df.bytes() as i64;
            to.tile(false, op.sbsg, op.st_addr, cfg.df, cfg.s_tile, op.tile)?;
            to.push(Space::Dram(cfg.bas), true, target.area(op.dt_addr, run, [n, h, w]));
        }
        Op::LdwMov(op) => {
            let cfg = configured(set(&registers.ldw, op.rs), "ldw_cfg")?;
            [&cfg.sw_size[..], &cfg.dw_size, &op.w_size].into_iter().try_for_each(bounded)?;
            let bytes = |size| i64::from(op.w_size[0]) * weight_row(cfg.df, size);
            to.push(Space::Dram(cfg.bas), false, Area::range(op.st_addr, bytes(cfg.sw_size)));
            to.l2(true, op.dbsg, Area::range(op.dt_addr, bytes(cfg.dw_size)))?;
        }
        Op::LwMov(op) => to.weights(op)?,
        Op::PeConv(op) => to.convolution(op)?,
        Op::VpSelf(op) => to.vector(op)?,
        Op::VpPool(op) => to.pooling(op)?,
        Op::DtCal(op) => {
            let cfg = configured(registers.dt.as_ref(), "dt_cfg")?;
            to.tile(false, op.sbsg, op.st_addr, cfg.df, cfg.s_tile, op.tile)?;
            let [n, c, h, w] = op.tile;
            let made = match op.order {
                0 => op.tile,
                1 => [n, h, c, w],
                _ => return Err(AccessError::Field("Order is neither 0 nor 1")),
            };
            to.tile(true, op.dbsg, op.dt_addr, cfg.df, cfg.d_tile, made)?;
        }
        Op::SoMov(op) if op.tile != [0; 4] => {
            let cfg = configured(registers.so.as_ref(), "so_cfg")?;
            to.tile(false, op.sbsg, op.st_addr, cfg.df, cfg.s_tile, op.tile)?;
        }
        Op::SiMov(op) if op.tile != [0; 4] => {
            let cfg = configured(registers.si.as_ref(), "si_cfg")?;
            to.tile(true, op.dbsg, op.dt_addr, cfg.df, cfg.d_tile, op.tile)?;
        }
        _ => {}
    }
    Ok(to.list)
}

/// Maximum address, so that sums cannot overflow.
const MAX_ADDRESS: u64 = 1 << 48;

fn addresses(op: &Op) -> [i64; 3] {
    match op {
        Op::LdaMov(op) => [op.st_addr, op.dt_addr, 0],
        Op::LdwMov(op) => [op.st_addr, op.dt_addr, 0],
        Op::LwMov(op) => [op.st_addr, op.dt_addr, 0],
        Op::PeConv(op) => [op.st_addr, op.sw_addr, op.dt_addr],
        Op::VpSelf(op) => [op.st_addr, op.st_addr1, op.dt_addr],
        Op::VpPool(op) => [op.st_addr, op.dt_addr, 0],
        Op::DtCal(op) => [op.st_addr, op.dt_addr, 0],
        Op::StaMov(op) => [op.st_addr, op.dt_addr, 0],
        Op::SiMov(op) => [op.dt_addr, 0, 0],
        Op::SoMov(op) => [op.st_addr, 0, 0],
        _ => [0; 3],
    }
}

/// Rejects shapes of more than 2^40 elements, so that sizes cannot overflow.
fn bounded(shape: &[u32]) -> Result<()> {
    let volume = shape.iter().try_fold(1u64, |all, size| all.checked_mul((*size).max(1).into()));
    match volume {
        Some(volume) if volume <= 1 << 40 => Ok(()),
        _ => Err(AccessError::Field("a shape has more than 2^40 elements")),
    }
}

/// Rejects tiles `[N, C, H, W]` that are larger than their tensor `[C, H, W]`.
fn fits(tensor: &[u32; 3], tile: [u32; 4]) -> Result<()> {
    bounded(tensor)?;
    bounded(&tile)?;
    bounded(&[tile[0], tensor[0], tensor[1], tensor[2]])?;
    match tensor.iter().zip(&tile[1..]).all(|(size, part)| part <= size) {
        true => Ok(()),
        false => Err(AccessError::Field("a tile is larger than its tensor")),
    }
}

/// A register that must have been written.
fn configured<'r, T>(register: Option<&'r T>, name: &'static str) -> Result<&'r T> {
    register.ok_or(AccessError::NoConfig(name))
}

fn set<T>(sets: &[Option<T>], number: u32) -> Option<&T> {
    sets.get(number as usize)?.as_ref()
}

/// Pixels in DRAM: packed when `sme` is 1.
pub fn dram_pixels(sme: u32, format: DataFmt, tile: [u32; 3]) -> Pixels {
    match sme {
        1 => Pixels::dense(format, tile),
        _ => Pixels::padded(format, tile),
    }
}

struct Gather<'r> {
    registers: &'r Registers,
    list: Vec<Access>,
}

impl Gather<'_> {
    fn push(&mut self, space: Space, write: bool, area: Area) {
        if !area.is_empty() {
            self.list.push(Access { space, write, area });
        }
    }

    /// Bytes of L2, wrapped into their region.
    fn l2(&mut self, write: bool, region: u32, area: Area) -> Result<()> {
        if area.is_empty() {
            return Ok(());
        }
        let bounds = self.registers.region(region).ok_or(AccessError::NoRegion(region))?;
        let area = area.shifted(into_region(&bounds, region, &area)?);
        let (inside, beyond) = area.split(bounds.end);
        inside.into_iter().for_each(|part| self.push(Space::L2, write, part));
        let beyond = beyond.into_iter().map(|part| part.shifted(-bounds.len()));
        beyond.for_each(|part| self.push(Space::L2, write, part));
        self.push(Space::Regions, false, Area::range(region.into(), 1));
        Ok(())
    }

    /// A tile `[N, C, H, W]` of a tensor `[C, H, W]` in L2.
    fn tile(
        &mut self,
        write: bool,
        region: u32,
        start: i64,
        format: DataFmt,
        tensor: [u32; 3],
        [n, c, h, w]: [u32; 4],
    ) -> Result<()> {
        fits(&tensor, [n, c, h, w])?;
        let pixels = Pixels::padded(format, tensor);
        self.l2(write, region, pixels.area(start, format.pixel(c) as i64, [n, h, w]))
    }

    fn weights(&mut self, op: &LwMov) -> Result<()> {
        let cfg = configured(self.registers.lw.as_ref(), "lw_cfg")?;
        [&cfg.sw_size[..], &cfg.dw_size, &op.w_size].into_iter().try_for_each(bounded)?;
        let k = i64::from(op.w_size[0]);
        let source = Area::range(op.st_addr, k * weight_row(cfg.df, cfg.sw_size));
        match op.ss {
            0 => self.l2(false, op.sbsg, source)?,
            1 => self.push(Space::Dram(cfg.bas), false, source),
            _ => return Err(AccessError::Field("SS is neither 0 nor 1")),
        }
        let units = wl0_units(cfg.df, op.w_size[0], cfg.dw_size);
        self.push(Space::Wl0, true, Area::range(op.dt_addr, units));
        Ok(())
    }

    fn convolution(&mut self, op: &PeConv) -> Result<()> {
        let fm = configured(self.registers.pe_fm.as_ref(), "pe_cfg_fm")?;
        let pm = configured(self.registers.pe_pm.as_ref(), "pe_cfg_pm")?;
        let tp = configured(self.registers.pe_tp.as_ref(), "pe_cfg_tp")?;
        configured(self.registers.pe_dq.as_ref(), "pe_cfg_dq")?;
        let [n, k, c, h, w] = tp.tile;
        bounded(&[k, c, tp.kernel[0], tp.kernel[1]])?;
        let place = (op.sphi, op.spwi);
        let windows = Windows { place, outputs: [h, w], stride: pm.stride, kernel: tp.kernel };
        let input = windows.area(op.st_addr, n, fm.sf, fm.s_tile, c)?;
        self.l2(false, op.sbsg, input)?;
        let size = [c, tp.kernel[0], tp.kernel[1]];
        let units = i64::from(k) * wl0_row(fm.wf, size) / WL0_UNIT;
        self.push(Space::Wl0, false, Area::range(op.sw_addr, units));
        if pm.adden != 0 {
            self.tile(false, op.dbsg, op.dt_addr, fm.df, fm.d_tile, [n, k, h, w])?;
        }
        self.tile(true, op.dbsg, op.dt_addr, fm.df, fm.d_tile, [n, k, h, w])
    }

    fn vector(&mut self, op: &VpSelf) -> Result<()> {
        let fm = configured(self.registers.vp_fm.as_ref(), "vp_cfg_fm")?;
        let tp = configured(self.registers.vp_tp.as_ref(), "vp_cfg_tp")?;
        configured(self.registers.vp_qp.as_ref(), "vp_cfg_qp")?;
        let [c, h, w] = tp.tile;
        let (from, to) = self.images(fm)?;
        self.tile(false, op.sbsg, op.st_addr + from, fm.idf, fm.s_tile, [1, c, h, w])?;
        if tp.t1f == 1 {
            let tensor = [fm.s_tile[0], 1, 1];
            self.tile(false, op.sbsg1, op.st_addr1, fm.idf, tensor, [1, c, 1, 1])?;
        } else if tp.t1f != 0 {
            self.tile(false, op.sbsg1, op.st_addr1 + from, fm.idf, fm.s_tile, [1, c, h, w])?;
        }
        self.tile(true, op.dbsg, op.dt_addr + to, fm.odf, fm.d_tile, [1, c, h, w])
    }

    fn pooling(&mut self, op: &VpPool) -> Result<()> {
        let fm = configured(self.registers.vp_fm.as_ref(), "vp_cfg_fm")?;
        let tp = configured(self.registers.vp_tp.as_ref(), "vp_cfg_tp")?;
        configured(self.registers.vp_qp.as_ref(), "vp_cfg_qp")?;
        let [c, h, w] = tp.tile;
        let place = (op.iph, op.ipw);
        let windows = Windows { place, outputs: [h, w], stride: tp.stride, kernel: tp.kernel };
        let (from, to) = self.images(fm)?;
        let input = windows.area(op.st_addr + from, 1, fm.idf, fm.s_tile, c)?;
        self.l2(false, op.sbsg, input)?;
        self.tile(true, op.dbsg, op.dt_addr + to, fm.odf, fm.d_tile, [1, c, h, w])
    }

    /// Byte offsets of the image that a vector operation is for: input, output.
    fn images(&self, fm: &VpCfgFm) -> Result<(i64, i64)> {
        let image = self.registers.image;
        for tile in [fm.s_tile, fm.d_tile] {
            bounded(&[image, tile[0], tile[1], tile[2]])?;
        }
        let bytes = |format, tile| i64::from(image) * Pixels::padded(format, tile).image();
        Ok((bytes(fm.idf, fm.s_tile), bytes(fm.odf, fm.d_tile)))
    }
}

/// The offset that moves the start of an area into its region.
///
/// A window that starts in padding has an address before the tensor, which may be at the start
/// of the region or, wrapped, past its end.
fn into_region(bounds: &Region, region: u32, area: &Area) -> Result<i64> {
    let need = area.end() - area.start;
    if need > bounds.len() {
        return Err(AccessError::TooLarge { region, size: bounds.len(), need });
    }
    match area.start - bounds.start {
        offset if offset < -bounds.len() || offset >= 2 * bounds.len() => {
            Err(AccessError::Outside { region, address: area.start })
        }
        offset => Ok(offset.rem_euclid(bounds.len()) - offset),
    }
}

/// Windows over the rows and columns of an input.
struct Windows {
    place: (i32, i32),
    outputs: [u32; 2],
    stride: [u32; 2],
    kernel: [u32; 2],
}

impl Windows {
    /// The part of a tensor `[C, H, W]` in L2 that they need, where `start` is the pixel at `place`.
    fn area(&self, start: i64, n: u32, format: DataFmt, tensor: [u32; 3], c: u32) -> Result<Area> {
        bounded(&tensor)?;
        for dim in 0..2 {
            bounded(&[self.outputs[dim], self.stride[dim]])?;
            bounded(&[self.kernel[dim]])?;
        }
        fits(&tensor, [n, c, tensor[1], tensor[2]])?;
        bounded(&[self.place.0.unsigned_abs(), tensor[2], tensor[0]])?;
        bounded(&[self.place.1.unsigned_abs(), tensor[0]])?;
        let pixels = Pixels::padded(format, tensor);
        let (first_h, first_w) = self.place;
        let [outputs_h, outputs_w] = self.outputs;
        let (top, bottom) = window(first_h, outputs_h, self.stride[0], self.kernel[0], tensor[1]);
        let (left, right) = window(first_w, outputs_w, self.stride[1], self.kernel[1], tensor[2]);
        let tensor_start = start - pixels.offset(first_h.into(), first_w.into());
        let first = tensor_start + pixels.offset(top.into(), left.into());
        Ok(pixels.area(first, format.pixel(c) as i64, [n, bottom - top, right - left]))
    }
}
