//! Byte-addressed memories.

use std::collections::BTreeMap;

use irc_npu::registers::Region;

use super::tile::Tile;

/// The memories of a machine.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// DRAM after each base register; it grows when something is stored past its end.
    pub dram: BTreeMap<u32, Vec<u8>>,
    /// On-chip memories, by index of the core.
    pub cores: Vec<CoreMemory>,
}

impl Memory {
    /// Zeroed memories for `cores` cores with `l2_bytes` of L2 each; WL0 grows as it is written.
    pub fn new(cores: usize, l2_bytes: usize) -> Self {
        let core = || CoreMemory { l2: vec![0; l2_bytes], wl0: vec![] };
        Self { dram: BTreeMap::new(), cores: (0..cores).map(|_| core()).collect() }
    }

    /// The memories of a core, and DRAM.
    pub(super) fn of(&mut self, core: usize) -> (&mut CoreMemory, &mut BTreeMap<u32, Vec<u8>>) {
        while self.cores.len() <= core {
            let size = self.cores.first().map_or(8 << 20, |core| core.l2.len());
            self.cores.push(CoreMemory { l2: vec![0; size], wl0: vec![] });
        }
        (&mut self.cores[core], &mut self.dram)
    }
}

/// The on-chip memories of a core.
#[derive(Clone, Debug, Default)]
pub struct CoreMemory {
    /// The buffer.
    pub l2: Vec<u8>,
    /// The weight memory, in bytes.
    pub wl0: Vec<u8>,
}

/// Maximum size of WL0 that a program may use: no known WL0 is larger.
pub(super) const MAX_WL0: usize = 64 << 20;

/// Maximum number of bytes of DRAM after a base register that stores may reach.
pub const MAX_DRAM: usize = 1 << 32;

impl CoreMemory {
    /// Copies bytes out of a ring region.
    pub(super) fn read(&self, region: Region, at: i64, out: &mut [u8]) -> Result<(), String> {
        let [first, second] = pieces(region, at, out.len())?;
        let (head, tail) = out.split_at_mut(first.1 - first.0);
        head.copy_from_slice(self.l2.get(first.0..first.1).ok_or("an address is beyond L2")?);
        tail.copy_from_slice(self.l2.get(second.0..second.1).ok_or("an address is beyond L2")?);
        Ok(())
    }

    /// Copies bytes into a ring region.
    pub(super) fn write(&mut self, region: Region, at: i64, bytes: &[u8]) -> Result<(), String> {
        let [first, second] = pieces(region, at, bytes.len())?;
        let (head, tail) = bytes.split_at(first.1 - first.0);
        for ((from, to), part) in [(first, head), (second, tail)] {
            self.l2.get_mut(from..to).ok_or("an address is beyond L2")?.copy_from_slice(part);
        }
        Ok(())
    }

    /// The bytes of a tile: the pixels in order, without the bytes between them.
    pub(super) fn read_tile(&self, tile: &Tile) -> Result<Vec<u8>, String> {
        if tile.bytes() > self.l2.len() {
            return Err("a tensor is larger than L2".into());
        }
        let mut bytes = vec![0; tile.bytes()];
        let rows = bytes.chunks_exact_mut(tile.run().max(1));
        for (at, row) in tile.runs().zip(rows) {
            self.read(tile.region, at, row)?;
        }
        Ok(bytes)
    }

    /// Writes the bytes that [`CoreMemory::read_tile`] returns for a tile of the same size.
    pub(super) fn write_tile(&mut self, tile: &Tile, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() != tile.bytes() {
            return Err("what is moved has not the size of its destination".into());
        }
        for (at, row) in tile.runs().zip(bytes.chunks_exact(tile.run().max(1))) {
            self.write(tile.region, at, row)?;
        }
        Ok(())
    }

    /// A range of WL0, which is grown if necessary.
    pub(super) fn wl0_mut(&mut self, at: usize, len: usize) -> Result<&mut [u8], String> {
        let end =
            at.checked_add(len).filter(|end| *end <= MAX_WL0).ok_or("an address is beyond WL0")?;
        if self.wl0.len() < end {
            self.wl0.resize(end, 0);
        }
        Ok(&mut self.wl0[at..end])
    }
}

/// The two pieces of a range of a ring region: up to its end, and from its start.
fn pieces(region: Region, at: i64, len: usize) -> Result<[(usize, usize); 2], String> {
    let size = region.len();
    if region.is_empty() || len as i64 > size {
        return Err("a run of bytes is larger than its ring region".into());
    }
    let start = region.start + (at - region.start).rem_euclid(size);
    let first = (region.end - start).min(len as i64);
    let range = |from: i64, len: i64| (from as usize, (from + len) as usize);
    Ok([range(start, first), range(region.start, len as i64 - first)])
}

/// Bytes of DRAM; it is an error to read bytes that do not exist.
pub(super) fn dram_read(
    dram: &BTreeMap<u32, Vec<u8>>,
    base: u32,
    at: i64,
    len: usize,
) -> Result<&[u8], String> {
    let range = usize::try_from(at).ok().and_then(|at| Some(at..at.checked_add(len)?));
    let bytes = dram.get(&base).zip(range).and_then(|(bytes, range)| bytes.get(range));
    bytes.ok_or_else(|| format!("{len} bytes at {at} of DRAM base {base} are not there"))
}

/// Stores bytes to DRAM, which grows as needed.
pub(super) fn dram_write(
    dram: &mut BTreeMap<u32, Vec<u8>>,
    base: u32,
    at: i64,
    bytes: &[u8],
) -> Result<(), String> {
    let end = usize::try_from(at).ok().and_then(|at| at.checked_add(bytes.len()));
    let Some(end) = end.filter(|end| *end <= MAX_DRAM) else {
        return Err(format!("address {at} of DRAM base {base} is out of range"));
    };
    let memory = dram.entry(base).or_default();
    if memory.len() < end {
        memory.resize(end, 0);
    }
    memory[end - bytes.len()..end].copy_from_slice(bytes);
    Ok(())
}
