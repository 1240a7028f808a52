//! Loops around an expression that only move elements: slices, concatenations, pads, permutations,
//! broadcasts and rows by index.

use crate::index::{Affine, Split, row_index};
use crate::memory::Memory;
use crate::moves;
use irc_ark_format::model::{OpKind, Tensor};
use irc_tl::{Binary, Scalar};

/// Maximum number of boxes into which a result is split.
const MAX_PIECES: usize = 4096;

/// Expresses loops without a reduction as moves of their operands, which have the ranks of the values
/// that they represent. The result has `shape`.
///
/// # Errors
/// If a part of the expression is not a move that ARK supports.
pub fn write(
    memory: &mut Memory,
    body: &Scalar,
    operands: &[Tensor],
    dtype: irc_ark_format::model::DataType,
    shape: &[i64],
) -> Result<Tensor, String> {
    if let Some((table, index)) = embedding(body, operands, shape.len()) {
        return moves::rows(memory, &operands[table], &operands[index], shape);
    }
    let whole = Region { first: vec![0; shape.len()], extents: shape.to_vec() };
    if let Scalar::Load(operand, at) = body {
        let view = load(memory, operands, *operand, at, &whole)?;
        if view.shape == shape {
            return Ok(view);
        }
        return Ok(memory.copy(&view, shape));
    }
    let target = memory.buffer(dtype, shape);
    let mut pieces = Pieces { memory, operands, target: &target, count: 0 };
    pieces.write(body, &whole)?;
    Ok(memory.view(&target, |_| {}))
}

/// A box of the result.
#[derive(Clone)]
struct Region {
    first: Vec<i64>,
    extents: Vec<i64>,
}

impl Region {
    /// The parts before and from an iteration of a loop; `None` for an empty one.
    fn split(&self, over: usize, at: i64) -> [Option<Self>; 2] {
        let (first, extent) = (self.first[over], self.extents[over]);
        let below = at.saturating_sub(first).clamp(0, extent);
        let part = |from: i64, count: i64| {
            let mut part = self.clone();
            (part.first[over], part.extents[over]) = (first + from, count);
            (count > 0).then_some(part)
        };
        [part(0, below), part(below, extent - below)]
    }
}

/// A result that is written box by box.
struct Pieces<'m, 'o> {
    memory: &'m mut Memory,
    operands: &'o [Tensor],
    target: &'o Tensor,
    count: usize,
}

impl Pieces<'_, '_> {
    fn write(&mut self, body: &Scalar, region: &Region) -> Result<(), String> {
        self.count += 1;
        if self.count > MAX_PIECES {
            return Err(format!("it falls into over {MAX_PIECES} boxes"));
        }
        match body {
            Scalar::Select(parts) => {
                let [condition, yes, no] = &**parts;
                self.select(condition, [yes, no], region)
            }
            Scalar::Float(bits, dtype) => {
                self.fill(dtype.round_float(f64::from_bits(*bits)), region)
            }
            Scalar::Int(value, _) => self.fill(*value as f64, region),
            Scalar::Load(operand, at) => {
                let view = load(self.memory, self.operands, *operand, at, region)?;
                let target = self.part(region);
                self.memory.write(OpKind::Copy, &[&view], target, &[]);
                Ok(())
            }
            _ => Err("ARK has no op for loops around such an expression".into()),
        }
    }

    /// The box of the result, with an id of its own.
    fn part(&mut self, region: &Region) -> Tensor {
        let part = self.memory.slice(self.target, &region.first, &region.extents);
        self.memory.view(&part, |_| {})
    }

    fn fill(&mut self, value: f64, region: &Region) -> Result<(), String> {
        let single = value as f32;
        if !single.is_finite() || f64::from(single) != value {
            return Err(format!("ARK files do not hold the number {value}"));
        }
        let target = self.part(region);
        self.memory.assign(single, target);
        Ok(())
    }

    fn select(
        &mut self,
        condition: &Scalar,
        sides: [&Scalar; 2],
        region: &Region,
    ) -> Result<(), String> {
        let [yes, no] = sides;
        match condition {
            Scalar::Binary(Binary::And, left, right) => {
                let inner = (**right).clone().select(yes.clone(), no.clone());
                self.select(left, [&inner, no], region)
            }
            Scalar::Binary(Binary::Or, left, right) => {
                let inner = (**right).clone().select(yes.clone(), no.clone());
                self.select(left, [yes, &inner], region)
            }
            Scalar::Compare(comparison, left, right) => {
                let split = Split::of(*comparison, left, right);
                let split = split.filter(|split| split.over < region.first.len());
                let split =
                    split.ok_or("ARK has no op that chooses elements by such a condition")?;
                let [lower, upper] = region.split(split.over, split.at);
                let (below, above) = if split.below { (yes, no) } else { (no, yes) };
                lower.map_or(Ok(()), |part| self.write(below, &part))?;
                upper.map_or(Ok(()), |part| self.write(above, &part))
            }
            _ => Err("ARK has no op that chooses elements by such a condition".into()),
        }
    }
}

/// The elements that the loops over a box of the result load, with the extents of the box, or 1 if they
/// are the same for all iterations.
fn load(
    memory: &mut Memory,
    operands: &[Tensor],
    operand: usize,
    at: &[Scalar],
    region: &Region,
) -> Result<Tensor, String> {
    let x = operands.get(operand).ok_or("it loads an operand that it does not have")?;
    let rank = region.first.len();
    if at.is_empty() {
        return Ok(memory.reshape(x, &vec![1; rank.max(1)]));
    }
    let unknown = || "ARK has no op that loads elements by such indices".to_owned();
    let (mut offsets, mut sizes, mut loops) = (vec![], vec![], vec![]);
    for (index, extent) in at.iter().zip(&x.shape) {
        let index = Affine::of(index).ok_or_else(unknown)?;
        let (offset, size) = match index.over {
            Some(over) if over < rank && !loops.contains(&over) => {
                loops.push(over);
                (index.offset + region.first[over], region.extents[over])
            }
            Some(_) => return Err(unknown()),
            None => (index.offset, 1),
        };
        if offset < 0 || offset + size > *extent {
            return Err(format!("it loads elements {offset} to {} of {extent}", offset + size));
        }
        offsets.push(offset);
        sizes.push(size);
    }
    let mut view = memory.slice(x, &offsets, &sizes);
    if loops.len() < at.len() {
        let kept: Vec<i64> = loops.iter().map(|over| region.extents[*over]).collect();
        view = memory.reshape(&view, if kept.is_empty() { &[1] } else { &kept });
    }
    if !loops.is_sorted() {
        let mut order: Vec<usize> = (0..loops.len()).collect();
        order.sort_by_key(|axis| loops[*axis]);
        view = moves::transpose(memory, &view, &order);
        loops.sort_unstable();
    }
    let mut shape = vec![1; rank];
    loops.iter().for_each(|over| shape[*over] = region.extents[*over]);
    Ok(spread(memory, &view, &shape, &loops))
}

/// A box with dimensions of extent 1 inserted: its own dimensions are those at `places`.
fn spread(memory: &mut Memory, x: &Tensor, shape: &[i64], places: &[usize]) -> Tensor {
    if x.shape == shape {
        return x.clone();
    }
    if places.len() != x.rank() {
        return memory.reshape(x, shape);
    }
    memory.view(x, |view| {
        (view.shape, view.padded_shape) = (shape.to_vec(), shape.to_vec());
        (view.strides, view.offsets) = (vec![1; shape.len()], vec![0; shape.len()]);
        for (place, axis) in places.iter().zip(0..) {
            (view.strides[*place], view.offsets[*place]) = (x.strides[axis], x.offsets[axis]);
        }
    })
}

/// The table and the indices of a load of rows: the first index is an element of another operand,
/// loaded by the first loops; the others are the remaining loops.
fn embedding(body: &Scalar, operands: &[Tensor], rank: usize) -> Option<(usize, usize)> {
    let Scalar::Load(table, at) = body else { return None };
    let (first, rest) = at.split_first()?;
    if matches!(first, Scalar::Loop(_)) {
        return None;
    }
    let (index, by) = row_index(first, *operands.get(*table)?.shape.first()?)?;
    let loops = |all: &[Scalar], from: usize| {
        all.iter().zip(from..).all(|(scalar, expected)| *scalar == Scalar::Loop(expected))
    };
    let is_rows = loops(by, 0) && loops(rest, by.len()) && by.len() + rest.len() == rank;
    (is_rows && index < operands.len() && index != *table).then_some((*table, index))
}
