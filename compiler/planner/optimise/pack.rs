//! Packs blocks that are used for some steps into as little memory as it can.
//!
//! The largest block first, each where it leaves the least unused (Pisarchyk and Lee, "Efficient
//! Memory Management for Deep Neural Net Inference", 2020), within pieces that are buffers of their
//! own.
use super::layout::ALIGNMENT;
use std::{cmp::Reverse, collections::BTreeMap};

/// A block of memory and the steps it is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Name of the block.
    pub id: u64,
    /// Its bytes.
    pub bytes: u64,
    /// First step it is used in.
    pub first: usize,
    /// Last step it is used in.
    pub last: usize,
    /// What offsets it can have: multiples of so many bytes; `None` when only none.
    pub granule: Option<u64>,
}

impl Block {
    fn meets(&self, other: &Block) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// A piece of memory and the blocks in it, with their offsets.
struct Piece {
    bytes: u64,
    blocks: Vec<(u64, Block)>,
}

/// By block, the piece it lies in and its offset there. Pieces whose bytes are no multiple of the
/// alignment come last.
pub fn pack(blocks: &[Block]) -> BTreeMap<u64, (usize, u64)> {
    let mut sorted = blocks.to_vec();
    sorted.sort_by_key(|block| (block.bytes % ALIGNMENT != 0, Reverse(block.bytes), block.id));
    let mut pieces: Vec<Piece> = vec![];
    let mut places = BTreeMap::new();
    for block in sorted {
        let fits = pieces.iter().enumerate().filter_map(|(index, piece)| {
            let (left, offset) = place(piece, &block)?;
            Some((left, index, offset))
        });
        let (index, offset) = match fits.min() {
            Some((_, index, offset)) => (index, offset),
            None => {
                pieces.push(Piece { bytes: block.bytes, blocks: vec![] });
                (pieces.len() - 1, 0)
            }
        };
        pieces[index].blocks.push((offset, block));
        places.insert(block.id, (index, offset));
    }
    places
}

/// The offset at which a block leaves the least of a gap, and what it leaves.
fn place(piece: &Piece, block: &Block) -> Option<(u64, u64)> {
    let mut taken: Vec<(u64, u64)> = piece
        .blocks
        .iter()
        .filter(|(_, other)| other.meets(block))
        .map(|(offset, other)| (*offset, offset + other.bytes))
        .collect();
    taken.push((piece.bytes, piece.bytes));
    taken.sort_unstable();
    let mut best = None;
    let mut free: u64 = 0;
    for (begin, end) in taken {
        let offset = match block.granule.filter(|granule| granule % ALIGNMENT == 0) {
            Some(granule) => free.next_multiple_of(granule),
            None if free == 0 => 0,
            None => break,
        };
        if offset + block.bytes <= begin {
            let left = begin - free - block.bytes;
            best = best.into_iter().chain([(left, offset)]).min();
        }
        free = free.max(end);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(id: u64, bytes: u64, first: usize, last: usize) -> Block {
        Block { id, bytes, first, last, granule: Some(bytes) }
    }

    #[test]
    fn blocks_of_other_steps_share_and_those_of_one_do_not() {
        let placed = pack(&[block(0, 64, 0, 1), block(1, 64, 2, 3), block(2, 64, 1, 2)]);
        assert_eq!(placed, BTreeMap::from([(0, (0, 0)), (1, (0, 0)), (2, (1, 0))]));
    }

    #[test]
    fn two_halves_lie_in_one_whole() {
        let placed = pack(&[block(0, 64, 0, 0), block(1, 32, 1, 1), block(2, 32, 1, 1)]);
        assert_eq!(placed, BTreeMap::from([(0, (0, 0)), (1, (0, 0)), (2, (0, 32))]));
        let fixed = Block { granule: None, ..block(2, 32, 1, 1) };
        let placed = pack(&[block(0, 64, 0, 0), block(1, 32, 1, 1), fixed]);
        assert_eq!(placed[&2], (1, 0));
    }
}
