//! How the summands of tiles are divided among processors, so that all are done at the same time.
//!
//! Tiles are computed whole, a tile to a processor, as long as there is one for each; at the end, so many are left that
//! some processors would wait. The steps of these, each of some summands of a tile, are put in a row, tile after tile, and
//! every worker gets an equal share of neighbouring ones ([Stream-K](https://arxiv.org/abs/2301.03598)): the end of a tile,
//! whole tiles, and the start of another. If there are few tiles, shares may also begin at tiles: a fraction of one each
//! (split-K). The sums of a share of a tile that is not all of it are written to the workspace, at a place of their own,
//! and once all are, threads add those of each tile, in the order of its summands.
use super::{MAX_PARTS, MIN_PART, ceil_div};

/// The division of the tiles of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Division {
    /// The number of workers, each of which is run by one processor.
    pub(super) workers: i64,
    /// The tiles that are computed whole, a multiple of the workers, and those after them that are shared.
    pub(super) whole: i64,
    pub(super) shared: i64,
    /// The steps of a tile, and the distance of the first steps of tiles in the row of all: not smaller.
    pub(super) steps: i64,
    pub(super) distance: i64,
    /// The steps of a share.
    pub(super) share: i64,
}

/// What a product takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) tiles: i64,
    /// Summands of a tile, and those of a step.
    pub(super) summands: i64,
    pub(super) depth: i64,
    /// In how many summands the sums of a tile are written, and read again.
    pub(super) exchange: i64,
}

impl Division {
    /// The division of tiles among processors with which all are estimated to be done first, with the summands that the
    /// last processor takes for it; `None` if all tiles are computed whole.
    pub(super) fn of(size: Size, processors: i64) -> (Option<Self>, i64) {
        let Size { tiles, summands, depth, exchange } = size;
        let steps = ceil_div(summands, depth);
        let undivided = (None, ceil_div(tiles, processors).saturating_mul(summands));
        // A fraction of a tile to a worker.
        let parts = (processors / tiles.max(1)).min(summands / MIN_PART).clamp(1, MAX_PARTS);
        let share = ceil_div(steps, parts);
        let parts = ceil_div(steps, share);
        let fractions = Self {
            workers: tiles * parts,
            whole: 0,
            shared: tiles,
            steps,
            distance: share * parts,
            share,
        };
        let fractions = (parts > 1).then(|| (Some(fractions), share * depth + exchange));
        // Shares of all tiles that do not fill the processors, and of those of the last round that does.
        let whole = (tiles / processors - 1).max(0) * processors;
        let shared = tiles - whole;
        let share = ceil_div(shared.saturating_mul(steps), processors).max(MIN_PART / depth);
        let workers = ceil_div(shared * steps, share);
        let own = if whole > 0 { processors } else { workers };
        let shares = Self { workers: own, whole, shared, steps, distance: steps, share };
        let takes = (whole / processors * steps + share) * depth + 2 * exchange;
        let is_shared = tiles % processors != 0 && workers > 1;
        let shares = is_shared.then_some((Some(shares), takes));
        let best = |best: (Option<Self>, i64), other: (Option<Self>, i64)| {
            if other.1 < best.1 { other } else { best }
        };
        let all = fractions.into_iter().chain(shares);
        all.fold(undivided, best)
    }

    /// Whether a worker may have all summands of a tile.
    pub(super) fn has_whole(&self) -> bool {
        self.whole > 0 || self.share >= self.steps
    }

    /// The most places that a worker writes sums to: for the end of a tile and for the start of one.
    pub(super) fn places(&self) -> i64 {
        if self.is_aligned() { 1 } else { 2 }
    }

    /// Whether every worker has one share of one tile.
    pub(super) fn has_one_share(&self) -> bool {
        let all = self.shared * self.distance;
        self.whole == 0 && self.is_aligned() && self.workers * self.share == all
    }

    /// Whether shares begin at tiles.
    fn is_aligned(&self) -> bool {
        self.distance % self.share == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shares of each tile: first and last step.
    fn shares(division: &Division) -> Vec<Vec<(i64, i64)>> {
        let mut found = vec![vec![]; division.shared as usize];
        for worker in 0..division.workers {
            let (first, end) = (worker * division.share, (worker + 1) * division.share);
            for tile in 0..division.shared {
                let start = tile * division.distance;
                let own = (first.max(start), end.min(start + division.steps));
                if own.0 < own.1 {
                    found[tile as usize].push((own.0 - start, own.1 - start));
                }
            }
        }
        found
    }

    /// The most shares of a tile.
    fn parts(division: &Division) -> i64 {
        (division.steps - 1) / division.share + division.places()
    }

    #[test]
    fn shares_are_equal_and_cover_every_tile_once() {
        for processors in [1, 2, 7, 108, 132] {
            for tiles in (1..300).step_by(7) {
                for summands in [16, 300, 1000, 4096, 5000] {
                    for (depth, exchange) in [(16, 64), (32, 512), (64, 512)] {
                        let size = Size { tiles, summands, depth, exchange };
                        let (division, takes) = Division::of(size, processors);
                        assert!(takes <= ceil_div(tiles, processors) * summands);
                        let Some(division) = division else { continue };
                        assert_eq!(division.whole + division.shared, tiles);
                        assert_eq!(division.whole % division.workers, 0);
                        assert!(division.workers <= processors.max(tiles * MAX_PARTS));
                        assert!(
                            division.share * depth >= MIN_PART.min(summands) || division.share == 1
                        );
                        for own in shares(&division) {
                            assert!(own.len() as i64 <= parts(&division), "{division:?}");
                            let mut next = 0;
                            for (first, end) in own {
                                assert_eq!(first, next, "{division:?}");
                                next = end;
                            }
                            assert_eq!(next, division.steps, "{division:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn tiles_that_fill_processors_are_whole() {
        let size = |tiles| Size { tiles, summands: 4096, depth: 64, exchange: 512 };
        assert_eq!(Division::of(size(264), 132).0, None);
        // 2048 tiles are 15 rounds and a half: 14 rounds whole, and the shares of 200 tiles.
        let (division, _) = Division::of(size(2048), 132);
        let division = division.expect("a division");
        assert_eq!((division.whole, division.shared), (14 * 132, 200));
        // Half as many tiles as processors: two parts of each.
        let (division, takes) = Division::of(size(66), 132);
        let division = division.expect("a division");
        assert_eq!((division.share, parts(&division), takes), (32, 2, 2048 + 512));
    }
}
