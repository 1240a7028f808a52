//! Factors of products whose elements lie at regular distances in memory, so that threads can copy them without
//! computing each.
use super::{Product, extent};
use irc_tl::{Binary, Compute, Dim, Scalar, Type};

/// Where the elements of a factor are, in elements of its operand.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) operand: usize,
    /// The place of the first element.
    pub(super) start: i64,
    /// The distance of neighbouring lines: rows of the left factor, columns of the right one.
    pub(super) line: i64,
    /// The distance of neighbouring summands.
    pub(super) summand: i64,
    /// The distances in the loops that number products: a loop and a distance each.
    pub(super) outer: Vec<(usize, i64)>,
}

impl Window {
    /// The window of a factor: 0 is the left one, 1 the right one. `None` if distances are not regular, or if 16 bytes
    /// from an aligned place on are not neighbours of one line or summand.
    pub(super) fn of(
        product: &Product<'_>,
        side: usize,
        compute: &Compute,
        types: &[&Type],
    ) -> Option<Self> {
        Self::any(product, side, compute, types).filter(Self::is_regular)
    }

    /// As [`Window::of`], at any distances; those of no loops are 0.
    pub(super) fn any(
        product: &Product<'_>,
        side: usize,
        compute: &Compute,
        types: &[&Type],
    ) -> Option<Self> {
        let mut factor = product.factors[side];
        while let Scalar::Cast(_, _, inner) = factor {
            factor = inner;
        }
        let Scalar::Load(operand, at) = factor else { return None };
        let ty = types.get(*operand)?;
        let loops = compute.loops();
        let (mut start, mut distances) = (0, vec![0; loops]);
        for (index, dim) in at.iter().zip(&ty.dims) {
            let (constant, own) = affine(index, loops)?;
            let by = dim.known()?;
            start = start * by + constant;
            for (distance, own) in distances.iter_mut().zip(own) {
                *distance = *distance * by + own;
            }
        }
        let line = joined(
            product.groups[1 + side].iter().map(|it| (distances[*it], extent(&compute.dims[*it]))),
        )?;
        let reduced = compute.reduction.iter().flat_map(|it| &it.dims);
        let reduced: Vec<_> = reduced
            .zip(&distances[compute.dims.len()..])
            .map(|(dim, distance)| (*distance, extent(dim)))
            .collect();
        let summand = joined(reduced.into_iter())?;
        let outer = product.groups[0].iter().map(|it| (*it, distances[*it]));
        let outer: Vec<_> = outer.filter(|(_, distance)| *distance != 0).collect();
        Some(Self { operand: *operand, start, line, summand, outer })
    }

    /// Whether neighbouring summands are neighbours in memory; otherwise lines are.
    pub(super) fn is_along_summands(&self) -> bool {
        self.summand == 1
    }

    /// The distance of what are no neighbours in memory.
    pub(super) fn stride(&self) -> i64 {
        if self.is_along_summands() { self.line } else { self.summand }
    }

    fn is_regular(&self) -> bool {
        let is_aligned = |distance: i64| distance > 0 && distance % CHUNK == 0;
        (self.summand == 1 || self.line == 1)
            && is_aligned(self.stride())
            && self.start >= 0
            && self.start % CHUNK == 0
            && self.outer.iter().all(|(_, distance)| is_aligned(*distance))
    }
}

/// Halves in 16 bytes.
pub(super) const CHUNK: i64 = 8;

/// The distance in the innermost of loops that run over neighbouring elements together: distances and extents,
/// outermost first. `None` if they do not, and 0 if there are none.
fn joined(loops: impl DoubleEndedIterator<Item = (i64, i64)>) -> Option<i64> {
    let mut found: Option<(i64, i64)> = None;
    for (distance, extent) in loops.rev().filter(|(_, extent)| *extent != 1) {
        found = Some(match found {
            None => (distance, extent),
            Some((inner, all)) if distance == inner.checked_mul(all)? => (inner, all * extent),
            Some(_) => return None,
        });
    }
    Some(found.map_or(0, |(inner, _)| inner))
}

/// An index as a constant and a number of each loop; `None` if it is not a sum of these.
fn affine(scalar: &Scalar, loops: usize) -> Option<(i64, Vec<i64>)> {
    match scalar {
        Scalar::Int(value, _) => Some((*value, vec![0; loops])),
        Scalar::Size(dim) => Some((dim.known()?, vec![0; loops])),
        Scalar::Loop(index) => {
            let mut own = vec![0; loops];
            *own.get_mut(*index)? = 1;
            Some((0, own))
        }
        Scalar::Binary(function @ (Binary::Add | Binary::Sub), x, y) => {
            let sign = if *function == Binary::Add { 1 } else { -1 };
            let ((x, left), (y, right)) = (affine(x, loops)?, affine(y, loops)?);
            let sums = left.iter().zip(&right).map(|(left, right)| left + sign * right);
            Some((x + sign * y, sums.collect()))
        }
        Scalar::Binary(Binary::Mul, x, y) => {
            let (x, y) = (affine(x, loops)?, affine(y, loops)?);
            let is_constant = |side: &(i64, Vec<i64>)| side.1.iter().all(|own| *own == 0);
            let (by, (constant, own)) = match (is_constant(&x), is_constant(&y)) {
                (true, _) => (x.0, y),
                (_, true) => (y.0, x),
                _ => return None,
            };
            let own = own.into_iter().map(|own| own.checked_mul(by)).collect::<Option<_>>()?;
            Some((constant.checked_mul(by)?, own))
        }
        _ => None,
    }
}

/// The number of elements of dimensions.
pub(super) fn count<'d>(dims: impl IntoIterator<Item = &'d Dim>) -> i64 {
    dims.into_iter().map(extent).fold(1, i64::saturating_mul)
}
