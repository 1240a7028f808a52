//! The registers that `cfg` instructions write.

use crate::op::{
    CtBc, DtCfg, LdaCfg, LdwCfg, LwCfg, Op, PeCfgDq, PeCfgFm, PeCfgPm, PeCfgTp, SiCfg, SoCfg,
    StaCfg, VpCfgFm, VpCfgGcs, VpCfgGms, VpCfgIq, VpCfgIq1, VpCfgQp, VpCfgSms, VpCfgTb, VpCfgTp,
};
use crate::{Engine, Instruction};

/// Number of register sets of the loading and storing engines.
pub const SETS: usize = 4;

/// Number of ring regions: four banks of four.
pub const REGIONS: usize = 16;

/// A part of L2 in which addresses wrap around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub start: i64,
    /// The exclusive end; equal to the start for an undefined region.
    pub end: i64,
}

impl Region {
    /// Number of bytes.
    pub fn len(&self) -> i64 {
        self.end - self.start
    }

    /// Whether the region is undefined.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

/// The registers of a core at a position of its program.
///
/// Each engine runs in order and owns its registers, so program order determines them.
#[derive(Clone, Debug, Default)]
pub struct Registers {
    /// Ring regions.
    pub regions: [Region; REGIONS],
    /// Activations loaded, by register set.
    pub lda: [Option<LdaCfg>; SETS],
    /// Weights loaded, by register set.
    pub ldw: [Option<LdwCfg>; SETS],
    /// Weights to WL0.
    pub lw: Option<LwCfg>,
    /// Formats and shapes of convolutions.
    pub pe_fm: Option<PeCfgFm>,
    /// Parameters of convolutions.
    pub pe_pm: Option<PeCfgPm>,
    /// Dequantisation of convolutions.
    pub pe_dq: Option<PeCfgDq>,
    /// Tile of convolutions.
    pub pe_tp: Option<PeCfgTp>,
    /// Comparison of vector operations.
    pub vp_gcs: Option<VpCfgGcs>,
    /// Products and sums of vector operations.
    pub vp_gms: Option<VpCfgGms>,
    /// Scalar product and sum of vector operations.
    pub vp_sms: Option<VpCfgSms>,
    /// Quantisation of vector operations.
    pub vp_qp: Option<VpCfgQp>,
    /// Dequantisation of first operands.
    pub vp_iq: Option<VpCfgIq>,
    /// Dequantisation of second operands.
    pub vp_iq1: Option<VpCfgIq1>,
    /// Formats and shapes of vector operations.
    pub vp_fm: Option<VpCfgFm>,
    /// Window and tile of vector operations.
    pub vp_tp: Option<VpCfgTp>,
    /// Table of vector operations.
    pub vp_tb: Option<VpCfgTb>,
    /// Copies.
    pub dt: Option<DtCfg>,
    /// Activations stored, by register set.
    pub sta: [Option<StaCfg>; SETS],
    /// Activations received.
    pub si: Option<SiCfg>,
    /// Activations sent.
    pub so: Option<SoCfg>,
    /// Image of the batch that the vector operation at this position is for.
    pub image: u32,
    /// The first of the consecutive equal vector operations, its workload and tile.
    vector: Option<(Op, i32, i32)>,
}

impl Registers {
    /// Applies the register writes of an instruction.
    ///
    /// # Errors
    /// If it names an invalid register set or bank, or its regions are not in L2.
    pub fn write(&mut self, instruction: &Instruction) -> Result<(), &'static str> {
        let op = &instruction.op;
        if op.engine() == Engine::Vp {
            self.count_images(instruction);
        }
        match op {
            Op::CtBc(op) => return self.write_regions(op),
            Op::LdaCfg(op) => *set(&mut self.lda, op.rs)? = Some(op.clone()),
            Op::LdwCfg(op) => *set(&mut self.ldw, op.rs)? = Some(op.clone()),
            Op::StaCfg(op) => *set(&mut self.sta, op.rs)? = Some(op.clone()),
            Op::LwCfg(op) => self.lw = Some(op.clone()),
            Op::PeCfgFm(op) => self.pe_fm = Some(op.clone()),
            Op::PeCfgPm(op) => self.pe_pm = Some(op.clone()),
            Op::PeCfgDq(op) => self.pe_dq = Some(op.clone()),
            Op::PeCfgTp(op) => self.pe_tp = Some(op.clone()),
            Op::VpCfgGcs(op) => self.vp_gcs = Some(op.clone()),
            Op::VpCfgGms(op) => self.vp_gms = Some(op.clone()),
            Op::VpCfgSms(op) => self.vp_sms = Some(op.clone()),
            Op::VpCfgQp(op) => self.vp_qp = Some(op.clone()),
            Op::VpCfgIq(op) => self.vp_iq = Some(op.clone()),
            Op::VpCfgIq1(op) => self.vp_iq1 = Some(op.clone()),
            Op::VpCfgFm(op) => self.vp_fm = Some(op.clone()),
            Op::VpCfgTp(op) => self.vp_tp = Some(op.clone()),
            Op::VpCfgTb(op) => self.vp_tb = Some(op.clone()),
            Op::DtCfg(op) => self.dt = Some(op.clone()),
            Op::SiCfg(op) => self.si = Some(op.clone()),
            Op::SoCfg(op) => self.so = Some(op.clone()),
            _ => {}
        }
        Ok(())
    }

    /// A region, if it is defined.
    pub fn region(&self, number: u32) -> Option<Region> {
        self.regions.get(number as usize).copied().filter(|region| !region.is_empty())
    }

    /// Vector operations have no batch, and published programs repeat one with the same operands,
    /// tile by tile, for several images. A tile is interpreted as that of the image with its number, counted
    /// from the first repetition; numbers are in the order of strings: 0, 1, 10, 11, 2.
    fn count_images(&mut self, Instruction { op, origin, .. }: &Instruction) {
        if op.is_config() {
            self.vector = None;
            return;
        }
        let first = self.vector.as_ref().and_then(|(before, workload, first)| {
            (before == op && *workload == origin.wkl).then_some(*first)
        });
        let image = first.and_then(|first| origin.tile.checked_sub(first));
        self.image = image.and_then(|image| u32::try_from(image).ok()).unwrap_or(0);
        if first.is_none() {
            self.vector = Some((op.clone(), origin.wkl, origin.tile));
        }
    }

    fn write_regions(&mut self, op: &CtBc) -> Result<(), &'static str> {
        let first = op.bcs as usize * 4;
        let Some(bank) = self.regions.get_mut(first..first + 4) else {
            return Err("expected one of four banks of ring regions");
        };
        for (region, cut) in bank.iter_mut().zip(op.buf_cut.chunks_exact(2)) {
            *region = region_of(cut[0], cut[1])?;
        }
        Ok(())
    }
}

/// A region given by its size and last KiB, both in KiB; size 0 with a last KiB starts at 0.
fn region_of(size: u32, last: u32) -> Result<Region, &'static str> {
    if (size, last) == (0, 0) {
        return Ok(Region::default());
    }
    let end = i64::from(last) + 1;
    let size = if size == 0 { end } else { i64::from(size) };
    match size <= end {
        true => Ok(Region { start: (end - size) * 1024, end: end * 1024 }),
        false => Err("a ring region begins before L2"),
    }
}

fn set<T>(sets: &mut [T; SETS], number: u32) -> Result<&mut T, &'static str> {
    sets.get_mut(number as usize).ok_or("expected one of four register sets")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;

    /// Whether a tile follows another in the order of their numbers as strings.
    #[test]
    fn a_repeated_vector_operation_is_for_the_image_of_its_tile() {
        let listing = include_str!("../tests/data/small.txt");
        let source = irc_diag::Source::new("small.txt", listing);
        let limits = crate::listing::Limits::default();
        let read = crate::listing::parse(&source, limits, &mut irc_diag::Sink::new());
        let code = read.expect("a valid listing").program.cores.remove(0).code;
        let vector = code.into_iter().find(|instruction| instruction.op.name() == "vp_self");
        let mut vector = vector.expect("a vector operation");
        let mut registers = Registers::default();
        for (tile, image) in [(0, 0), (1, 1), (10, 10), (11, 11), (2, 2), (9, 9)] {
            vector.origin.tile = tile;
            assert_eq!(registers.write(&vector), Ok(()));
            assert_eq!(registers.image, image, "tile {tile}");
        }
        vector.origin.wkl += 1;
        assert_eq!((registers.write(&vector), registers.image), (Ok(()), 0));
    }

    #[test]
    fn regions_are_given_by_size_and_last_kib() {
        let mut registers = Registers::default();
        let cut = CtBc { bcs: 0, buf_cut: [5056, 5055, 3136, 8191, 0, 0, 0, 0] };
        let instruction = Instruction::new(cut, Origin::default());
        assert_eq!(registers.write(&instruction), Ok(()));
        let region = |number| registers.region(number).map(|region| (region.start, region.end));
        assert_eq!(region(0), Some((0, 5056 << 10)));
        assert_eq!(region(1), Some((5056 << 10, 8192 << 10)));
        assert_eq!(region(2), None);
        let whole = region_of(0, 8191).map(|region| region.len());
        assert_eq!(whole, Ok(8 << 20));
        assert!(region_of(3, 1).is_err());
    }
}
