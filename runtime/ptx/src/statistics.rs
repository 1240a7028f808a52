//! Numbers of instructions and accesses of a launch.

use crate::addresses::{Addresses, Layout};
use crate::code::{CLASSES, Class};
use crate::row::{Row, each_lane, lanes};

/// Numbers of instructions and accesses of a launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Instructions of each class, each counted once for every thread that ran it.
    classes: [u64; CLASSES.len()],
    /// Instructions, each counted once for every part of a warp that ran it together.
    pub warp_instructions: u64,
    /// Bytes that were read from global memory.
    pub global_read: u64,
    /// Bytes that were written to global memory.
    pub global_written: u64,
    /// Accesses of warps to global memory.
    pub global_accesses: u64,
    /// Sectors of 32 bytes that those accesses touched; 4 per access is the least for 4 bytes per thread.
    pub global_sectors: u64,
    /// Accesses of warps to shared memory.
    pub shared_accesses: u64,
    /// Cycles that these lost because threads accessed different words of the same bank.
    pub bank_conflicts: u64,
    /// Barriers of CTAs that completed.
    pub barriers: u64,
}

impl Statistics {
    #[inline(always)]
    pub(crate) fn count(&mut self, class: Class, threads: u32) {
        self.classes[class as usize] += u64::from(threads);
    }

    /// Adds those of another launch.
    pub fn add(&mut self, other: &Self) {
        for (all, count) in self.classes.iter_mut().zip(other.classes) {
            *all += count;
        }
        self.warp_instructions += other.warp_instructions;
        self.global_read += other.global_read;
        self.global_written += other.global_written;
        self.global_accesses += other.global_accesses;
        self.global_sectors += other.global_sectors;
        self.shared_accesses += other.shared_accesses;
        self.bank_conflicts += other.bank_conflicts;
        self.barriers += other.barriers;
    }

    /// The instructions of each class, counted once for every thread that ran it.
    pub fn classes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CLASSES.iter().map(|(class, name)| (*name, self.classes[*class as usize]))
    }

    /// Instructions, each counted once for every thread that ran it.
    pub fn thread_instructions(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// Sectors of 32 bytes per access to global memory.
    pub fn sectors_per_access(&self) -> f64 {
        self.global_sectors as f64 / self.global_accesses.max(1) as f64
    }

    /// Counts an access of a warp to global memory.
    #[inline(always)]
    pub(crate) fn global(&mut self, addresses: &Addresses<'_>, write: bool) {
        let bytes = addresses.size * u64::from(addresses.mask.count_ones());
        *(if write { &mut self.global_written } else { &mut self.global_read }) += bytes;
        self.global_accesses += 1;
        self.global_sectors += sectors(addresses);
    }

    /// Counts an access of a warp to shared memory.
    #[inline(always)]
    pub(crate) fn shared(&mut self, addresses: &Addresses<'_>) {
        self.shared_accesses += 1;
        if addresses.layout == Layout::Other || addresses.size > 16 {
            self.bank_conflicts += conflicts(addresses);
        }
    }
}

/// The sectors that the bytes of threads are in.
#[inline(always)]
fn sectors(addresses: &Addresses<'_>) -> u64 {
    let Addresses { of, mask, size, first, last, layout, aligned } = *addresses;
    let number = |address: u64| address / 32 - first / 32;
    let all = number(last.saturating_add(size - 1)) + 1;
    if layout != Layout::Other {
        return all;
    }
    if !aligned || size > 32 || all > 64 {
        return far_sectors(addresses, all);
    }
    let mut bits = 0_u64;
    each_lane(mask, |lane| bits |= 1 << number(of[lane]));
    u64::from(bits.count_ones())
}

/// As [`sectors`], of bytes that lie anywhere.
#[inline(never)]
fn far_sectors(addresses: &Addresses<'_>, all: u64) -> u64 {
    const BITS: u64 = 4096;
    let Addresses { of, mask, size, first, .. } = *addresses;
    let sectors = lanes(mask).flat_map(|lane| {
        let (from, to) = (of[lane] / 32, of[lane].saturating_add(size - 1) / 32);
        from - first / 32..=to - first / 32
    });
    if all > BITS {
        let mut sectors: Vec<u64> = sectors.collect();
        sectors.sort_unstable();
        sectors.dedup();
        return sectors.len() as u64;
    }
    let mut bits = [0_u64; BITS as usize / 64];
    sectors.for_each(|sector| bits[sector as usize / 64] |= 1 << (sector % 64));
    bits[..all.div_ceil(64) as usize].iter().map(|bits| u64::from(bits.count_ones())).sum()
}

/// Banks of shared memory, of which each gives a word of 4 bytes in a cycle.
const BANKS: usize = 32;

/// The cycles that are lost because threads access different words of the same bank.
fn conflicts(addresses: &Addresses<'_>) -> u64 {
    // Wide accesses are served in parts: half or a quarter of the warp at a time.
    let part = match addresses.size {
        16.. => 8,
        8 => 16,
        _ => 32,
    };
    let mut rest = addresses.mask;
    let mut lost = 0;
    while rest != 0 {
        let mut threads = 0;
        for _ in 0..part {
            threads |= rest & rest.wrapping_neg();
            rest &= rest.wrapping_sub(1);
        }
        lost += conflicts_of(addresses.of, threads, addresses.size);
    }
    lost
}

/// The cycles that threads lose that are served together.
fn conflicts_of(addresses: &Row, threads: u32, size: u64) -> u64 {
    let end = |address: u64| address.saturating_add(size - 1) / 4;
    let range = lanes(threads).fold((u64::MAX, 0), |(first, last): (u64, u64), lane| {
        (first.min(addresses[lane] / 4), last.max(end(addresses[lane])))
    });
    // As many words as banks, one after another, are in different banks.
    if range.1 - range.0 < BANKS as u64 {
        return 0;
    }
    // The words of each bank are a list: each has the number of the next, from 1 on.
    let mut words = [(0, 0); 64];
    let mut first = [0; BANKS];
    let mut counts = [0_u8; BANKS];
    let mut used = 0;
    for lane in lanes(threads) {
        for word in addresses[lane] / 4..=end(addresses[lane]) {
            let bank = (word % BANKS as u64) as usize;
            let mut at = first[bank];
            while at != 0 && words[at - 1].0 != word {
                at = words[at - 1].1;
            }
            if at == 0 && used < words.len() {
                words[used] = (word, first[bank]);
                used += 1;
                first[bank] = used;
                counts[bank] += 1;
            }
        }
    }
    u64::from(counts.into_iter().max().unwrap_or(0).saturating_sub(1))
}
