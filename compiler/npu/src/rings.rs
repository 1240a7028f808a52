//! Ring regions of L2 as instructions of the control engine.

use irc_npu::Op;
use irc_npu::op::CtBc;

use crate::diagnostic::{Result, error, word};

/// Number of banks of a table, of four regions each.
const BANKS: usize = 4;

/// The instructions that write a ring table, all its banks.
pub fn table(regions: &[[i64; 2]], path: &str) -> Result<Vec<Op>> {
    if regions.len() > 4 * BANKS {
        let message =
            format!("expected at most {} ring regions, found {}", 4 * BANKS, regions.len());
        return Err(error("emit-rings", path, message));
    }
    let mut banks = [[0; 8]; BANKS];
    for (place, [start, end]) in regions.iter().enumerate() {
        if start % 1024 != 0 || end % 1024 != 0 || start >= end {
            let message = format!("the ring region {start} to {end} is not a whole number of KiB");
            return Err(error("emit-rings", path, message));
        }
        // A size of 0 represents a region that ends at the last KiB.
        let size = if regions.len() == 1 && *start == 0 { 0 } else { (end - start) / 1024 };
        let slot = &mut banks[place / 4][place % 4 * 2..][..2];
        slot.copy_from_slice(&[word(size, path)?, word(end / 1024 - 1, path)?]);
    }
    let bank = |(bcs, buf_cut)| CtBc { bcs: bcs as u32, buf_cut }.into();
    Ok(banks.into_iter().enumerate().map(bank).collect())
}
