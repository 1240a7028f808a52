//! Numbers of instructions and accesses of a launch.

use crate::code::{CLASSES, Class};

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

    /// Counts an access to global memory at addresses that a warp accesses, of some bytes each.
    pub(crate) fn global(&mut self, addresses: impl Iterator<Item = u64>, size: u64, write: bool) {
        let mut sectors: Vec<u64> = Vec::new();
        let mut last = u64::MAX;
        let mut sorted = true;
        for address in addresses {
            *(if write { &mut self.global_written } else { &mut self.global_read }) += size;
            for sector in address / 32..=(address + size - 1) / 32 {
                if sector != last {
                    sorted &= last == u64::MAX || sector > last;
                    if sectors.is_empty() {
                        sectors.reserve(32);
                    }
                    sectors.push(sector);
                    last = sector;
                }
            }
        }
        if !sorted {
            sectors.sort_unstable();
            sectors.dedup();
        }
        self.global_accesses += 1;
        self.global_sectors += sectors.len() as u64;
    }

    /// Counts an access to shared memory at offsets that a warp accesses, of some bytes each.
    pub(crate) fn shared(&mut self, offsets: impl Iterator<Item = u64>, size: u64) {
        self.shared_accesses += 1;
        // Wide accesses are served in parts: half or a quarter of the warp at a time.
        let part = match size {
            16.. => 8,
            8 => 16,
            _ => 32,
        };
        let offsets: Vec<u64> = offsets.collect();
        for offsets in offsets.chunks(part) {
            let mut words: [u64; 128] = [u64::MAX; 128];
            let mut used = 0;
            let mut banks = [0_u8; 32];
            for offset in offsets {
                for word in offset / 4..=(offset + size - 1) / 4 {
                    // A run of the same or of ascending words needs no search.
                    let known =
                        used > 0 && word <= words[used - 1] && words[..used].contains(&word);
                    let known = known || (used > 0 && word == words[used - 1]);
                    if !known && used < words.len() {
                        let ascending = used == 0 || word > words[used - 1];
                        if ascending || !words[..used].contains(&word) {
                            words[used] = word;
                            used += 1;
                            banks[(word % 32) as usize] += 1;
                        }
                    }
                }
            }
            let most = banks.iter().copied().max().unwrap_or(0);
            self.bank_conflicts += u64::from(most.saturating_sub(1));
        }
    }
}
