//! Images with zeros, or a number, around them that are read where they are: what a vector reads outside of them is masked.
use super::{Emitter, MAX_EDGES, Tile};
use crate::kernel::emit::{Emit, Lanes, Prefetch};
use crate::lowering::linalg_to_vector::dots::{self, Dots};
use crate::lowering::linalg_to_vector::padding::{self, Images};
use irc_mlir::Value;
use irc_mlir::ops::arith;
use std::collections::BTreeMap;
use std::ops::Range;

/// Images of an argument, the strides of the outer loops in it, and the rows of tiles of an image.
pub(super) struct InPlace {
    pub images: Images,
    pub strides: Vec<i64>,
    pub tiles: RowsOfTiles,
    /// The lines of a window.
    pub lines: i64,
    /// The bytes of a line that are read at once, if products of bytes are added four at a time.
    pub loaded: Option<i64>,
}

/// Four neighbouring columns of a window, as many as there are.
struct Word {
    /// The line of the window, and the first of the columns by four.
    line: i64,
    group: i64,
    /// Where the filter has each of them.
    bytes: [Option<i64>; 4],
}

/// The tiles of an image along its rows, by the first row of each.
#[derive(Debug)]
pub(super) struct RowsOfTiles {
    /// Those that may read outside of the image, above and below the others: each has code of its own.
    pub edges: [Vec<i64>; 2],
    /// Those that read inside of it only, one after the other.
    pub inner: Range<i64>,
}

impl RowsOfTiles {
    /// The tiles of `count` rows of the result, of `each` rows; the last one moves up so that it is whole. The windows of
    /// neighbouring rows are `step` lines apart, and have `lines`. `None` if too many are at edges.
    pub fn of(images: &Images, (count, each): (i64, i64), [step, lines]: [i64; 2]) -> Option<Self> {
        let (height, top) = (images.size[0], images.offsets[0]);
        let up = |size: i64, unit: i64| (size + unit - 1) / unit;
        let (tiles, whole) = (up(count, each), count / each);
        // The first tile below the upper edge, and the one after the last above the lower edge.
        let from = up(top, each * step);
        let last = (height + top - lines).div_euclid(step) - (each - 1);
        let to = (last.div_euclid(each) + 1).min(whole);
        let (from, to) = if tiles <= MAX_EDGES || from >= to { (tiles, tiles) } else { (from, to) };
        if from + tiles - to > MAX_EDGES {
            return None;
        }
        let first = |tile: i64| (tile * each).min(count - each);
        let edges = [0..from, to..tiles].map(|tiles| tiles.map(first).collect());
        Some(Self { edges, inner: from * each..to * each })
    }
}

/// The lanes of a vector that are inside of an image.
#[derive(Clone, Copy)]
enum Inside<'c, 'a> {
    None,
    All,
    Some(Value<'c, 'a>),
}

/// Loads what a tile reads of an image.
pub(super) struct Lines<'p, 'c, 'a> {
    emitter: &'p Emitter<'p, 'c, 'a>,
    found: &'p InPlace,
    /// The elements that are loaded at once.
    lanes: Lanes,
    tile: Tile<'c, 'a>,
    /// The first element of the image, or of the lines and columns of the tile.
    source: Value<'c, 'a>,
    /// The lanes of vectors from a column on, and vectors that are loaded, by line and column.
    inside: BTreeMap<i64, Inside<'c, 'a>>,
    loaded: BTreeMap<[i64; 2], Option<Value<'c, 'a>>>,
}

impl<'p, 'c: 'a, 'a> Lines<'p, 'c, 'a> {
    pub fn of(
        emitter: &'p Emitter<'p, 'c, 'a>,
        found: &'p InPlace,
        tile: Tile<'c, 'a>,
        source: Value<'c, 'a>,
    ) -> Self {
        let lanes = found.loaded.map_or(emitter.lanes, Lanes::Vector);
        let (inside, loaded) = (BTreeMap::new(), BTreeMap::new());
        Self { emitter, found, lanes, tile, source, inside, loaded }
    }

    /// The elements of a vector of columns of the result from a place of the padded operand on, counted from the tile, with
    /// zeros for those outside of the image; `None` if all are.
    pub fn load(&mut self, e: Emit<'c, 'a>, place: i64) -> Option<Value<'c, 'a>> {
        let Images { offsets: [_, left], length, .. } = self.found.images;
        let (step, lanes) = (self.step(), self.lanes);
        let (line, column) = (self.line(place / length)?, place % length - left);
        if step == 1 {
            return self.vector(e, line, column);
        }
        // Even and odd elements are of the same two vectors.
        let odd = column.rem_euclid(2);
        let halves = [0, lanes.count()].map(|at| self.vector(e, line, column - odd + at));
        if halves == [None; 2] {
            return None;
        }
        let [low, high] = halves.map(|half| half.unwrap_or_else(|| e.zero(e.f32(), lanes)));
        let picks: Vec<i64> = (0..lanes.count()).map(|lane| 2 * lane + odd).collect();
        Some(e.shuffle(low, high, &picks))
    }

    /// The line of the image that is one of the padded operand, counted from the tile; `None` if there is none.
    fn line(&self, line: i64) -> Option<i64> {
        let Images { size: [height, _], offsets: [top, _], .. } = self.found.images;
        let first =
            self.tile.first.map_or(0, |row| row * self.emitter.line_step(&self.found.images));
        let line = first + line - top;
        (self.tile.first.is_none() || (0..height).contains(&line)).then_some(line)
    }

    /// For each column of the result, four bytes of a line of its window, the first of which has this number by four; `None` if all
    /// are zeros outside of the image.
    fn quads(&mut self, e: Emit<'c, 'a>, line: i64, group: i64) -> Option<Value<'c, 'a>> {
        let (columns, Images { outside, offsets: [_, left], .. }) =
            (self.emitter.lanes, self.found.images);
        let line = self.line(line);
        let bytes = match line.and_then(|line| self.vector(e, line, -left)) {
            Some(bytes) => bytes,
            None if outside == 0 => return None,
            None => e.integer(i64::from(outside as i8), 8, self.lanes),
        };
        let words = dots::cast(e, bytes, 32, self.lanes.count() / 4);
        Some(dots::neighbours(e, (words, self.lanes), (self.step(), group), columns))
    }

    /// A vector of neighbouring elements of a line.
    fn vector(&mut self, e: Emit<'c, 'a>, line: i64, column: i64) -> Option<Value<'c, 'a>> {
        if let Some(loaded) = self.loaded.get(&[line, column]) {
            return *loaded;
        }
        let inside = match self.inside.get(&column) {
            Some(inside) => *inside,
            None => self.inside(e, column),
        };
        self.inside.insert(column, inside);
        let lanes = self.lanes;
        let load = |mask: Option<Value<'c, 'a>>| {
            let at = e.offset(self.source, line * self.found.images.row + column);
            self.prefetch(e, at, [line, column]);
            let outside = self.found.images.outside;
            let value = match mask.filter(|_| outside != 0) {
                None => e.load_lanes(self.emitter.source, at, lanes, mask),
                Some(mask) => {
                    let outside = e.integer(i64::from(outside as i8), 8, lanes);
                    e.load_beside(self.emitter.source, at, (mask, outside))
                }
            };
            match self.emitter.conv.bytes {
                _ if self.found.loaded.is_some() => value,
                None => value,
                Some([is_unsigned, _]) => padding::float_of_byte(e, value, is_unsigned, lanes),
            }
        };
        let loaded = match inside {
            Inside::None => None,
            Inside::All => Some(load(None)),
            Inside::Some(mask) => Some(load(Some(mask))),
        };
        self.loaded.insert([line, column], loaded);
        loaded
    }

    /// Prefetches what the tile below, or the first one of the next channel, reads where this one reads, unless this one
    /// reads it too.
    fn prefetch(&self, e: Emit<'c, 'a>, at: Value<'c, 'a>, [line, column]: [i64; 2]) {
        let (step, top) =
            (self.emitter.line_step(&self.found.images), self.found.images.offsets[0]);
        let (first, below) = (self.tile.first.unwrap_or(0), self.tile.rows * step);
        let is_shared = line - first * step + top < self.found.lines - step;
        let is_next_to_another =
            column != 0 && !(self.step() == 2 && column == self.emitter.lanes.count());
        if !is_shared && !is_next_to_another {
            e.prefetch(
                self.emitter.source,
                e.offset(at, below * self.found.images.row),
                Prefetch::Read,
            );
        }
    }

    /// The lanes of a vector from a column of the image on, counted from the first that the tile reads.
    fn inside(&self, e: Emit<'c, 'a>, column: i64) -> Inside<'c, 'a> {
        let (lanes, width) = (self.lanes, self.found.images.size[1]);
        let not = |e: Emit<'c, 'a>, mask| e.binary(arith::XORI, mask, e.integer(1, 1, lanes));
        let both =
            |e: Emit<'c, 'a>, a: Option<Value<'c, 'a>>, b: Option<Value<'c, 'a>>| match (a, b) {
                (Some(a), Some(b)) => Some(e.binary(arith::ANDI, a, b)),
                (a, b) => a.or(b),
            };
        let columns = self.emitter.pass.sizes[0];
        let count = lanes.count();
        let of_result = self.emitter.lanes.count();
        let mask = if columns <= of_result {
            let (from, to) = ((-column).max(0), count.min(width - column));
            if from >= to {
                return Inside::None;
            }
            let first = if from > 0 {
                e.tail_mask(from, lanes).map(|outside| not(e, outside))
            } else {
                None
            };
            both(e, first, e.tail_mask(to, lanes))
        } else {
            let start = e.offset(e.scale(self.tile.column, self.step()), column);
            let lanes_before =
                |end: i64| e.first_lanes(e.binary(arith::SUBI, e.index(end), start), lanes);
            let first =
                if column < 0 { lanes_before(0).map(|outside| not(e, outside)) } else { None };
            // Of the last vector of columns.
            let end = (columns - of_result) * self.step() + column + count;
            both(e, first, if end > width { lanes_before(width) } else { None })
        };
        mask.map_or(Inside::All, Inside::Some)
    }

    /// The distance between the elements that neighbouring columns of the result read.
    fn step(&self) -> i64 {
        self.emitter.conv.source.access.coefs[self.emitter.stage.parallel - 1]
    }
}

impl<'c: 'a, 'a> Emitter<'_, 'c, 'a> {
    /// The images whose products of bytes are added four at a time.
    pub(super) fn dots(&self) -> Option<&InPlace> {
        self.conv.in_place.as_ref().filter(|found| found.loaded.is_some())
    }

    /// The words of a window, line after line.
    fn words_of(&self, images: &Images) -> Vec<Word> {
        let mut words: Vec<Word> = vec![];
        for tap in &self.taps {
            let (line, column) = (tap.source / images.length, tap.source % images.length);
            let is_own = |word: &Word| (word.line, word.group) == (line, column / 4);
            let at = words.iter().position(is_own).unwrap_or_else(|| {
                words.push(Word { line, group: column / 4, bytes: [None; 4] });
                words.len() - 1
            });
            words[at].bytes[(column % 4) as usize] = Some(tap.filter);
        }
        words
    }

    /// The words of a filter, each in all lanes.
    pub(super) fn words(
        &self,
        e: Emit<'c, 'a>,
        images: &Images,
        filter: Value<'c, 'a>,
    ) -> Vec<Value<'c, 'a>> {
        let word = |word: Word| {
            let byte = |at: Option<i64>| match at {
                Some(at) => e.load(self.filter, e.offset(filter, at)),
                None => e.integer(0, 8, Lanes::Scalar),
            };
            e.splat(dots::joined(e, &word.bytes.map(byte), Lanes::Scalar), self.lanes)
        };
        self.words_of(images).into_iter().map(word).collect()
    }

    /// Adds the products of the bytes of all taps, four at a time.
    pub(super) fn sum_of_dots(
        &self,
        e: Emit<'c, 'a>,
        found: &InPlace,
        (tile, source): (Tile<'c, 'a>, Value<'c, 'a>),
        words: &[Value<'c, 'a>],
        mut sums: Vec<Value<'c, 'a>>,
    ) -> Vec<Value<'c, 'a>> {
        let step = self.line_step(&found.images);
        let mut lines = Lines::of(self, found, tile, source);
        let of_window = self.words_of(&found.images);
        let of_row = |row: i64| {
            let words = of_window.iter().zip(words);
            words.map(move |(at, word)| (row * step + at.line, at.group, row as usize, *word))
        };
        let mut products: Vec<_> = (0..tile.rows).flat_map(of_row).collect();
        products.sort_by_key(|(line, group, row, _)| (*line, *group, *row));
        for products in products.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (line, group, ..) = products[0];
            let Some(quads) = lines.quads(e, line, group) else { continue };
            for (_, _, row, word) in products {
                sums[*row] = Dots::Vnni.add(e, [quads, *word], sums[*row], self.lanes);
            }
        }
        sums
    }
}
