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
            Scalar::Binary(Binary::Add, left, right) => Self::of(left)?.plus(&Self::of(right)?, 1)?,
            Scalar::Binary(Binary::Sub, left, right) => Self::of(left)?.plus(&Self::of(right)?, -1)?,
            Scalar::Binary(Binary::Mul, left, right) => {
                let (left, right) = (Self::of(left)?, Self::of(right)?);
                match left.loops.is_empty() {
                    true => Self::default().plus(&right, left.constant)?,
                    false if right.loops.is_empty() => Self::default().plus(&left, right.constant)?,
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
    if compute.reduction.is_some() {
        return None;
    }
    let (mut body, mut axis, mut from) = (&compute.body, None, 0);
    let mut order = vec![];
    loop {
        let (here, rest, limit) = match body {
            Scalar::Select(parts) => {
                let Scalar::Compare(Comparison::Lt, left, right) = &parts[0] else { return None };
                let (Scalar::Loop(number), limit) = (&**left, Affine::of(right)?) else { return None };
                if *axis.get_or_insert(*number) != *number || !limit.loops.is_empty() {
                    return None;
                }
                (&parts[1], Some(&parts[2]), Some(u64::try_from(limit.constant).ok()?))
            }
            last => (last, None, None),
        };
        let Scalar::Load(operand, at) = here else { return None };
        let (axis, extent) = (axis?, *shapes[*operand].get(axis?)?);
        for (dim, index) in at.iter().enumerate() {
            let shift = if dim == axis { i64::try_from(from).ok()? } else { 0 };
            // A dimension of one element may be read at 0.
            let single = compute.dims[dim].is(1) || dim == axis && extent == 1 && shift == 0;
            let found = Affine::of(index)?;
            if found.offset() != Some((dim, shift)) && !(single && found == Affine::default()) {
                return None;
            }
        }
        from += extent;
        order.push(*operand);
        match (rest, limit) {
            (Some(rest), Some(limit)) if limit == from => body = rest,
            (None, None) if order.len() > 1 && compute.dims[axis].is(i64::try_from(from).ok()?) => {
                return Some((axis, order));
            }
            _ => return None,
        }
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
        let mut along = Along { kernel: 1, stride: 1, before: u64::try_from(-index.constant).ok()? };
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
