//! Memory planning: blocks of memory that are live for some steps of a program.
//!
//! Blocks whose live ranges overlap never share bytes. All strategies are greedy and deterministic; they
//! differ in the memory that they allocate from:
//!
//! | memory | order of blocks | placement of a block |
//! |---|---|---|
//! | [`arena`]: one buffer | largest first | at the lowest offset that is free: first fit |
//! | [`buffers`]: buffers as large as their first block | largest first | where it leaves the smallest gap: best fit |
//! | [`storages`]: whole buffers, which can grow | in order of first use | the smallest free buffer that fits, else the largest free one |
//!
//! Placing by size needs least memory (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural
//! Net Inference", 2020); whole buffers are for formats in which two tensors cannot share a buffer.
mod occupancy;

pub use occupancy::Runs;

use occupancy::Occupancy;
use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};

/// A block of memory and its live range, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its size in bytes.
    pub bytes: u64,
    /// The first step that uses it.
    pub first: usize,
    /// The last step that uses it.
    pub last: usize,
}

impl Block {
    /// Whether the live ranges of two blocks overlap.
    pub fn meets(&self, other: &Block) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Blocks in one buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arena {
    /// Size of the buffer in bytes: a multiple of the alignment.
    pub bytes: u64,
    /// Offset of each block: multiples of the alignment.
    pub offsets: Vec<u64>,
}

/// Places blocks in one buffer, largest first, each at the lowest offset that is free while it is live.
/// The size of a buffer of more than `u64::MAX` bytes is saturated.
pub fn arena(blocks: &[Block], alignment: u64) -> Arena {
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by_key(|block| (Reverse(blocks[*block].bytes), *block));
    let mut arena = Arena { bytes: 0, offsets: vec![0; blocks.len()] };
    let mut occupancy = Occupancy::new(blocks);
    // An empty block can have any offset.
    for index in order.into_iter().filter(|index| blocks[*index].bytes > 0) {
        let block = &blocks[index];
        // Ends are aligned, so every gap starts aligned.
        let bytes = block.bytes.next_multiple_of(alignment);
        let gap = occupancy.gaps(block).find(|(begin, end)| end - begin >= bytes);
        let begin = gap.map_or(u64::MAX, |(begin, _)| begin);
        let end = begin.saturating_add(bytes);
        occupancy.take(block, begin, end);
        arena.offsets[index] = begin;
        arena.bytes = arena.bytes.max(end);
    }
    arena
}

/// The place of a block among several buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of the buffer.
    pub buffer: usize,
    /// Offset in bytes from its start.
    pub offset: u64,
}

/// A block and the offsets that are allowed for it within a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Movable {
    /// The block.
    pub block: Block,
    /// Allowed offsets are the multiples of this; `None` for offset 0 alone.
    pub granule: Option<u64>,
}

/// Places blocks in buffers, largest first, each where it leaves the smallest gap; where it fits in none,
/// it gets a buffer of its size. Blocks that are not a multiple of `alignment` come last.
pub fn buffers(blocks: &[Movable], alignment: u64) -> Vec<Place> {
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by_key(|index| {
        let bytes = blocks[*index].block.bytes;
        (!bytes.is_multiple_of(alignment), Reverse(bytes), *index)
    });
    let steps: Vec<Block> = blocks.iter().map(|movable| movable.block).collect();
    let mut places = vec![Place { buffer: 0, offset: 0 }; blocks.len()];
    let mut buffers: Vec<(u64, Occupancy)> = vec![];
    for index in order {
        let Movable { block, granule } = blocks[index];
        let mut best: Option<(u64, Place)> = None;
        for (buffer, (bytes, occupancy)) in buffers.iter().enumerate() {
            for (gap, offset) in fits(occupancy, *bytes, &block, granule) {
                let found = (gap, Place { buffer, offset });
                best = Some(best.map_or(found, |best| best.min(found)));
            }
            if best.is_some_and(|(gap, _)| gap == 0) {
                break;
            }
        }
        let place = best.map_or(Place { buffer: buffers.len(), offset: 0 }, |(_, place)| place);
        if place.buffer == buffers.len() {
            buffers.push((block.bytes, Occupancy::new(&steps)));
        }
        let end = place.offset + block.bytes;
        buffers[place.buffer].1.take(&block, place.offset, end);
        places[index] = place;
    }
    places
}

/// The gaps of a buffer that a block fits in: the bytes left over in each, and the offset there.
fn fits(
    occupancy: &Occupancy,
    bytes: u64,
    block: &Block,
    granule: Option<u64>,
) -> impl Iterator<Item = (u64, u64)> {
    let gaps = occupancy.gaps(block).take_while(move |(begin, _)| *begin < bytes);
    gaps.filter_map(move |(begin, end)| {
        let end = end.min(bytes);
        let offset = match granule {
            Some(granule) => begin.next_multiple_of(granule),
            None => (begin == 0).then_some(0)?,
        };
        (offset + block.bytes <= end).then(|| (end - begin - block.bytes, offset))
    })
}

/// The number of the buffer of each block; blocks are given in order of first use.
/// Buffers grow to the largest block that they hold. A block for which `is_alone` is true shares its
/// buffer with no other, before or after.
pub fn storages(blocks: &[Block], is_alone: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut sizes: Vec<u64> = vec![];
    // Free buffers, by size.
    let mut free: BTreeSet<(u64, usize)> = BTreeSet::new();
    // Used buffers, by the last step that uses them.
    let mut used: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
    let mut place = |(index, block): (usize, &Block)| {
        if is_alone(index) {
            sizes.push(block.bytes);
            return sizes.len() - 1;
        }
        while let Some(Reverse((last, storage))) = used.peek().copied()
            && last < block.first
        {
            used.pop();
            free.insert((sizes[storage], storage));
        }
        let fits = free.range((block.bytes, 0)..).next();
        // The first of the largest.
        let largest = || free.range((free.last()?.0, 0)..).next();
        let storage = match fits.or_else(largest).copied() {
            Some(found) => {
                free.remove(&found);
                found.1
            }
            None => {
                sizes.push(0);
                sizes.len() - 1
            }
        };
        sizes[storage] = sizes[storage].max(block.bytes);
        used.push(Reverse((block.last, storage)));
        storage
    };
    blocks.iter().enumerate().map(&mut place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(bytes: u64, first: usize, last: usize) -> Block {
        Block { bytes, first, last }
    }

    fn movable(bytes: u64, first: usize, last: usize) -> Movable {
        Movable { block: block(bytes, first, last), granule: Some(bytes) }
    }

    fn place(buffer: usize, offset: u64) -> Place {
        Place { buffer, offset }
    }

    #[test]
    fn blocks_alive_together_lie_apart_and_others_share() {
        assert_eq!(arena(&[block(100, 0, 2), block(64, 1, 3)], 64).offsets, [0, 128]);
        assert_eq!(arena(&[block(100, 0, 1), block(64, 2, 3)], 64).offsets, [0, 0]);
        let places = buffers(&[movable(64, 0, 1), movable(64, 2, 3), movable(64, 1, 2)], 16);
        assert_eq!(places, [place(0, 0), place(0, 0), place(1, 0)]);
    }

    #[test]
    fn more_than_can_be_counted_is_as_much_as_can_be() {
        let huge = block(1 << 63, 0, 1);
        assert_eq!(arena(&[huge, block(64, 2, 3)], 64).bytes, 1 << 63);
        assert_eq!(arena(&[huge, huge, block(64, 0, 1)], 64).bytes, u64::MAX);
    }

    #[test]
    fn a_gap_between_two_blocks_is_used() {
        let blocks = [block(256, 0, 3), block(192, 0, 0), block(128, 1, 3), block(64, 1, 1)];
        assert_eq!(arena(&blocks, 64).offsets, [0, 256, 256, 384]);
    }

    #[test]
    fn two_halves_lie_in_one_whole_where_they_can_be_moved() {
        let whole = movable(64, 0, 0);
        let mut halves = [whole, movable(32, 1, 1), movable(32, 1, 1)];
        assert_eq!(buffers(&halves, 16), [place(0, 0), place(0, 0), place(0, 32)]);
        halves[2].granule = None;
        assert_eq!(buffers(&halves, 16)[2], place(1, 0));
    }

    #[test]
    fn what_is_read_no_more_makes_room() {
        let chain = [block(8, 0, 1), block(16, 1, 2), block(4, 2, 3), block(4, 3, 3)];
        assert_eq!(storages(&chain, |_| false), [0, 1, 0, 1]);
    }

    #[test]
    fn the_smallest_that_fits_is_taken_and_else_the_largest_grows() {
        let after = |bytes| [block(100, 0, 1), block(10, 0, 1), block(bytes, 2, 2)];
        assert_eq!(storages(&after(8), |_| false), [0, 1, 1]);
        assert_eq!(storages(&after(200), |_| false), [0, 1, 0]);
    }

    #[test]
    fn a_block_alone_shares_with_none() {
        let blocks = [block(8, 0, 0), block(8, 1, 1), block(8, 2, 2)];
        assert_eq!(storages(&blocks, |index| index != 1), [0, 1, 2]);
    }

    /// Blocks in the order of their first use.
    fn blocks() -> impl Strategy<Value = Vec<Block>> {
        let drawn = (0u64..40, 0usize..30, 0usize..8);
        prop::collection::vec(drawn, 0..60).prop_map(|mut drawn| {
            drawn.sort_by_key(|(_, first, _)| *first);
            let block_of = |(bytes, first, length)| block(16 * bytes, first, first + length);
            drawn.into_iter().map(block_of).collect()
        })
    }

    /// Asserts that overlapping blocks share no bytes, and that the buffers are no larger than all blocks.
    fn check(blocks: &[Block], places: &[Place]) {
        for (index, (block, place)) in blocks.iter().zip(places).enumerate() {
            for (other, at) in blocks.iter().zip(places).take(index) {
                let apart = place.offset + block.bytes <= at.offset
                    || at.offset + other.bytes <= place.offset;
                assert!(!block.meets(other) || place.buffer != at.buffer || apart);
            }
        }
        let count = places.iter().map(|place| place.buffer + 1).max().unwrap_or(0);
        let mut sizes = vec![0; count];
        for (block, place) in blocks.iter().zip(places) {
            sizes[place.buffer] = sizes[place.buffer].max(place.offset + block.bytes);
        }
        assert!(sizes.iter().sum::<u64>() <= blocks.iter().map(|block| block.bytes).sum());
    }

    /// The lowest offset for each block, by exhaustive search.
    fn slow_arena(blocks: &[Block], alignment: u64) -> Vec<u64> {
        let mut order: Vec<usize> = (0..blocks.len()).collect();
        order.sort_by_key(|block| (Reverse(blocks[*block].bytes), *block));
        let mut offsets: Vec<Option<u64>> = vec![None; blocks.len()];
        let end = |at: u64, block: &Block| at + block.bytes.next_multiple_of(alignment);
        for index in order {
            let meets = |(other, at): (&Block, &Option<u64>)| {
                at.filter(|_| other.meets(&blocks[index])).map(|at| (at, end(at, other)))
            };
            let taken: Vec<_> = blocks.iter().zip(&offsets).filter_map(meets).collect();
            let is_free = |at: &u64| {
                taken.iter().all(|(begin, ends)| end(*at, &blocks[index]) <= *begin || ends <= at)
            };
            let starts = [0].into_iter().chain(taken.iter().map(|(_, end)| *end));
            offsets[index] = starts.filter(is_free).min();
        }
        offsets.into_iter().flatten().collect()
    }

    proptest! {
        #[test]
        fn an_arena_is_sound(blocks in blocks()) {
            let arena = arena(&blocks, 16);
            let places: Vec<_> = arena.offsets.iter().map(|offset| place(0, *offset)).collect();
            check(&blocks, &places);
            prop_assert!(blocks.iter().zip(&places).all(|(b, at)| at.offset + b.bytes <= arena.bytes));
        }

        #[test]
        fn an_arena_takes_the_lowest_offsets(blocks in blocks()) {
            prop_assert_eq!(arena(&blocks, 64).offsets, slow_arena(&blocks, 64));
        }

        #[test]
        fn buffers_are_sound(blocks in blocks(), granules in prop::collection::vec(0u64..4, 60)) {
            let granule = |granule: u64| (granule > 0).then_some(16 * granule);
            let movable = |(block, number): (&Block, &u64)| {
                Movable { block: *block, granule: granule(*number) }
            };
            let movables: Vec<_> = blocks.iter().zip(&granules).map(movable).collect();
            let places = buffers(&movables, 16);
            check(&blocks, &places);
            for (place, movable) in places.iter().zip(&movables) {
                prop_assert_eq!(movable.granule.map_or(place.offset, |by| place.offset % by), 0);
            }
        }

        #[test]
        fn storages_are_sound(blocks in blocks()) {
            let places = storages(&blocks, |_| false);
            check(&blocks, &places.iter().map(|buffer| place(*buffer, 0)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn many_blocks_are_placed_in_time() {
        // Half of them are live all the time, the others for one step each.
        let blocks: Vec<Block> = (0..20_000)
            .map(|step| block(64, step, if step % 2 == 0 { 20_000 } else { step }))
            .collect();
        assert_eq!(arena(&blocks, 64).bytes, 64 * 10_001);
        assert_eq!(storages(&blocks, |_| false).into_iter().max(), Some(10_000));
    }
}
