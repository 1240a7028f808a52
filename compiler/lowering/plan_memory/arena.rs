//! Packs values with live ranges into one workspace, best effort by size.

/// Every block starts at a multiple of this: a cache line, and the widest vector.
pub const ALIGNMENT: u64 = 64;

/// Something that lives in the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// Its size.
    pub bytes: u64,
    /// Positions of its first and of its last use, both inclusive.
    pub range: (usize, usize),
}

/// Offsets within the workspace.
pub struct Arena {
    /// The workspace's size.
    pub bytes: u64,
    /// Where each local starts.
    pub offsets: Vec<u64>,
}

impl Arena {
    /// Places the locals.
    pub fn plan(locals: &[Local]) -> Self {
        let offsets = place(locals);
        let ends = locals.iter().zip(&offsets).map(|(local, offset)| offset + aligned(local.bytes));
        Arena { bytes: ends.max().unwrap_or(0), offsets }
    }
}

fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT)
}

/// Largest first, each at the lowest offset free over its whole live range.
fn place(blocks: &[Local]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by_key(|index| (std::cmp::Reverse(blocks[*index].bytes), *index));
    let mut offsets = vec![0; blocks.len()];
    let mut placed: Vec<usize> = Vec::new();
    for index in order {
        let meets = |other: &&usize| overlap(blocks[index].range, blocks[**other].range);
        let mut taken: Vec<(u64, u64)> = placed
            .iter()
            .filter(meets)
            .map(|other| (offsets[*other], offsets[*other] + aligned(blocks[*other].bytes)))
            .collect();
        taken.sort_unstable();
        offsets[index] = first_gap(&taken, aligned(blocks[index].bytes));
        placed.push(index);
    }
    offsets
}

fn overlap(a: (usize, usize), b: (usize, usize)) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}

fn first_gap(taken: &[(u64, u64)], bytes: u64) -> u64 {
    let mut offset = 0;
    for (start, end) in taken {
        if offset + bytes <= *start {
            break;
        }
        offset = offset.max(*end);
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(bytes: u64, range: (usize, usize)) -> Local {
        Local { bytes, range }
    }

    #[test]
    fn values_alive_together_do_not_overlap() {
        let offsets = place(&[local(100, (0, 2)), local(64, (1, 3))]);
        assert_eq!(offsets, [0, 128]);
    }

    #[test]
    fn values_never_alive_together_share_memory() {
        assert_eq!(place(&[local(100, (0, 1)), local(64, (2, 3))]), [0, 0]);
    }

    #[test]
    fn a_gap_between_two_blocks_is_used() {
        let offsets =
            place(&[local(256, (0, 3)), local(192, (0, 0)), local(128, (1, 3)), local(64, (1, 1))]);
        assert_eq!(offsets[2], 256);
        assert_eq!(offsets[3], 384);
    }
}
