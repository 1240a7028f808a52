//! What loops around an expression are: windows, concatenations, functions of each element.

use irc_tl::{Binary, Comparison, Compute, Scalar};
use std::collections::BTreeMap;

/// A sum of loops times integers, plus an integer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Affine {
    loops: BTreeMap<usize, i64>,
    constant: i64,
}

impl Affine {
    fn of(index: &Scalar) -> Option<Self> {
        Some(match index {
            Scalar::Loop(number) => Self { loops: BTreeMap::from([(*number, 1)]), constant: 0 },
            Scalar::Int(value, _) => Self { constant: *value, ..Self::default() },
            Scalar::Size(size) => Self { constant: size.known()?, ..Self::default() },
            Scalar::Binary(Binary::Add, left, right) => {
                Self::of(left)?.plus(&Self::of(right)?, 1)?
            }
            Scalar::Binary(Binary::Sub, left, right) => {
                Self::of(left)?.plus(&Self::of(right)?, -1)?
            }
            Scalar::Binary(Binary::Mul, left, right) => {
                let (left, right) = (Self::of(left)?, Self::of(right)?);
                match left.loops.is_empty() {
                    true => Self::default().plus(&right, left.constant)?,
                    false if right.loops.is_empty() => {
                        Self::default().plus(&left, right.constant)?
                    }
                    false => return None,
                }
            }
            _ => return None,
        })
    }

    fn plus(mut self, other: &Self, by: i64) -> Option<Self> {
        for (number, factor) in &other.loops {
            let sum = self.loops.entry(*number).or_default();
            *sum = sum.checked_add(factor.checked_mul(by)?)?;
        }
        self.loops.retain(|_, factor| *factor != 0);
        self.constant = self.constant.checked_add(other.constant.checked_mul(by)?)?;
        Some(self)
    }

    /// The loop, if this is one loop minus an integer, which is also returned.
    fn offset(&self) -> Option<(usize, i64)> {
        let [(number, 1)] = self.loops.iter().map(|(n, f)| (*n, *f)).collect::<Vec<_>>()[..] else {
            return None;
        };
        Some((number, -self.constant))
    }
}

/// A window along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Along {
    /// Elements of the window.
    pub kernel: u64,
    /// Distance of two windows.
    pub stride: u64,
    /// Elements before the operand in the first window.
    pub before: u64,
}

/// Whether an expression reads operands only at the position of the result, after broadcasting. `shapes` are
/// those of the operands; constants may be read anywhere.
pub fn is_elementwise(compute: &Compute, shapes: &[Vec<u64>], is_constant: &[bool]) -> bool {
    let rank = compute.dims.len();
    let mut all = compute.reduction.is_none();
    compute.body.walk(&mut |scalar| {
        let Scalar::Load(operand, at) = scalar else { return };
        if is_constant[*operand] || rank < at.len() {
            return all &= is_constant[*operand];
        }
        let new = rank - at.len();
        all &= at.iter().enumerate().all(|(axis, index)| {
            let own = *index == Scalar::Loop(new + axis);
            own || shapes[*operand][axis] == 1 && Affine::of(index) == Some(Affine::default())
        });
    });
    all
}

/// The axis along which operands are concatenated, each at the end of the one before; and their order.
pub fn concatenation(compute: &Compute, shapes: &[Vec<u64>]) -> Option<(usize, Vec<usize>)> {
    let Scalar::Select(parts) = &compute.body else { return None };
    let Scalar::Compare(Comparison::Lt, left, _) = &parts[0] else { return None };
    let (Scalar::Loop(axis), None) = (&**left, &compute.reduction) else { return None };
    let end = u64::try_from(compute.dims.get(*axis)?.known()?).ok()?;
    let mut found = Concatenation { compute, shapes, axis: *axis, order: vec![] };
    found.add(&compute.body, 0, end)?;
    Some((*axis, found.order))
}

/// A concatenation: a decision tree over the index along an axis, whose leaves are operands.
struct Concatenation<'c> {
    compute: &'c Compute,
    shapes: &'c [Vec<u64>],
    axis: usize,
    order: Vec<usize>,
}

impl Concatenation<'_> {
    /// Adds the operands for indices from `from` to `to`.
    fn add(&mut self, body: &Scalar, from: u64, to: u64) -> Option<()> {
        let (operand, at) = match body {
            Scalar::Select(parts) => {
                let Scalar::Compare(Comparison::Lt, left, right) = &parts[0] else { return None };
                let limit = Affine::of(right).filter(|limit| limit.loops.is_empty())?;
                let limit = u64::try_from(limit.constant).ok()?;
                if **left != Scalar::Loop(self.axis) || limit <= from || to <= limit {
                    return None;
                }
                self.add(&parts[1], from, limit)?;
                return self.add(&parts[2], limit, to);
            }
            Scalar::Load(operand, at) => (*operand, at),
            _ => return None,
        };
        let shift = i64::try_from(from).ok()?;
        for (dim, index) in at.iter().enumerate() {
            let first = if dim == self.axis { shift } else { 0 };
            let found = Affine::of(index)?;
            // The only index of a dimension may be written as 0.
            let is_single = self.shapes[operand].get(dim) == Some(&1);
            if found.offset() != Some((dim, first)) && !(is_single && found == Affine::default()) {
                return None;
            }
        }
        self.order.push(operand);
        let is_whole = self.shapes[operand].get(self.axis) == Some(&(to - from));
        (is_whole && at.len() == self.compute.dims.len()).then_some(())
    }
}

/// The window of each dimension, if this reduces the windows of one operand, which it also returns.
pub fn windows(compute: &Compute) -> Option<(usize, Vec<Along>)> {
    let over = &compute.reduction.as_ref()?.dims;
    let (operand, at) = load(&compute.body)?;
    let rank = compute.dims.len();
    if at.len() != rank {
        return None;
    }
    let mut seen = vec![false; over.len()];
    let mut all = vec![];
    for (dim, index) in at.iter().enumerate() {
        let index = Affine::of(index)?;
        let mut along =
            Along { kernel: 1, stride: 1, before: u64::try_from(-index.constant).ok()? };
        let is_single = compute.dims[dim].is(1);
        if !is_single {
            along.stride = u64::try_from(*index.loops.get(&dim)?).ok()?;
        }
        for (number, factor) in index.loops {
            match number.checked_sub(rank) {
                None if number == dim => {}
                Some(reduced) if factor == 1 && !seen[reduced] && along.kernel == 1 => {
                    seen[reduced] = true;
                    along.kernel = u64::try_from(over[reduced].known()?).ok()?;
                }
                _ => return None,
            }
        }
        if is_single {
            along.stride = along.kernel;
        }
        all.push(along);
    }
    let covered = seen.iter().zip(over).all(|(seen, extent)| *seen || extent.is(1));
    covered.then_some((operand, all))
}

/// The operand, and how many elements are before it along each dimension, if this is the operand with a constant around
/// it. Its elements may also be cut, with a negative number before it. `shapes` are those of the operands.
pub fn padding(compute: &Compute, shapes: &[Vec<u64>]) -> Option<(usize, Vec<i64>)> {
    outside(compute)?;
    let Scalar::Select(parts) = &compute.body else { return None };
    let (operand, at) = load(&compute.body)?;
    let shape = shapes.get(operand)?;
    let before = at.iter().enumerate().map(|(dim, index)| match Affine::of(index)?.offset() {
        Some((own, before)) if own == dim => Some(before),
        _ => None,
    });
    let before = before.collect::<Option<Vec<i64>>>()?;
    let whole = before.len() == compute.dims.len() && before.len() == shape.len();
    (whole && is_inside(&parts[0], &before, shape)).then_some((operand, before))
}

/// The constant around an operand.
pub fn outside(compute: &Compute) -> Option<f64> {
    let Scalar::Select(parts) = &compute.body else { return None };
    if compute.reduction.is_some() || !matches!(parts[1], Scalar::Load(..)) {
        return None;
    }
    match parts[2] {
        Scalar::Float(bits, _) => Some(f64::from_bits(bits)),
        Scalar::Int(value, _) => Some(value as f64),
        _ => None,
    }
}

/// Whether a condition is that indices are within an operand.
fn is_inside(condition: &Scalar, before: &[i64], shape: &[u64]) -> bool {
    match condition {
        Scalar::Binary(Binary::And, left, right) => {
            is_inside(left, before, shape) && is_inside(right, before, shape)
        }
        Scalar::Compare(comparison, index, limit) => {
            let (index, limit) = (Affine::of(index), Affine::of(limit));
            let (Some(index), Some(limit)) = (index.and_then(|own| own.offset()), limit) else {
                return false;
            };
            let (dim, own) = index;
            let end = match comparison {
                Comparison::Ge => 0,
                Comparison::Lt => shape.get(dim).map_or(0, |extent| *extent as i64),
                _ => return false,
            };
            limit.loops.is_empty() && before.get(dim) == Some(&own) && limit.constant == end
        }
        _ => false,
    }
}

/// The only element that an expression reads, guarded by conditions on loops.
fn load(body: &Scalar) -> Option<(usize, &[Scalar])> {
    match body {
        Scalar::Load(operand, at) => Some((*operand, at)),
        Scalar::Cast(_, _, inner) => load(inner),
        Scalar::Select(parts) if matches!(parts[2], Scalar::Float(..) | Scalar::Int(..)) => {
            let mut reads = false;
            parts[0].walk(&mut |scalar| reads |= matches!(scalar, Scalar::Load(..)));
            if reads { None } else { load(&parts[1]) }
        }
        _ => None,
    }
}
