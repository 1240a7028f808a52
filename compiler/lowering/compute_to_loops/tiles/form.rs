//! The products, or elements, that a nest combines, if tiles compute them: with columns next to each other.
use super::{epilogue::Epilogue, panels::Panels, windows};
use crate::lowering::compute_to_loops::{
    expression::depends_on,
    nest::{Nest, adjacent::joined_pair},
};
use irc_tl::{Binary, Combine, Comparison, Compute, DType, Dim, Scalar, Type};
use windows::Windows;

/// The maximum step from one column to the next: places in a vector are 32-bit integers.
const MAX_STEP: i64 = 1 << 20;

/// How a nest is computed in tiles.
pub(super) struct Tiles {
    /// The factor that does not depend on the column; `None` for the elements of windows themselves, as pools combine them.
    pub(super) broadcast: Option<Load>,
    /// How products, or elements, are combined, and the type of the vector factor: `f32`, or bytes, whose products are added in `i32`.
    pub(super) combine: Combine,
    pub(super) dtype: DType,
    /// The factor of which one index moves along the columns.
    pub(super) vector: Load,
    /// What it is where the conditions do not hold, if it is an integer.
    pub(super) outside: i64,
    /// The step of its last index from one column to the next; those more than 2 apart are gathered. 0 if it is another index
    /// that advances by one, so that elements are gathered too.
    pub(super) step: i64,
    /// Conditions that do not depend on the column.
    pub(super) guards: Vec<Scalar>,
    /// The index of the vector factor must be in `0..bound`.
    pub(super) bound: Option<Scalar>,
    /// The loop over rows: only the broadcast factor depends on it.
    pub(super) row: Option<usize>,
}

/// An element of an operand.
#[derive(Clone)]
pub(super) struct Load {
    pub(super) operand: usize,
    pub(super) at: Vec<Scalar>,
}

impl Load {
    fn of(scalar: &Scalar) -> Option<Self> {
        let Scalar::Load(operand, at) = scalar else { return None };
        Some(Self { operand: *operand, at: at.clone() })
    }

    pub(super) fn depends_on(&self, loop_: usize) -> bool {
        self.at.iter().any(|index| depends_on(index, loop_))
    }
}

/// A factor of a product: an element of an operand.
struct Factor {
    load: Load,
    /// Whether it is a smaller integer that is extended to `i32`.
    is_cast: bool,
    /// The conditions that it is an element, and the integer that it is otherwise.
    conditions: Vec<Scalar>,
    outside: Option<i64>,
}

impl Factor {
    fn of(scalar: &Scalar) -> Option<Self> {
        let (conditions, scalar, outside) = match scalar {
            Scalar::Select(parts) => {
                let [condition, element, Scalar::Int(outside, DType::I32)] = &**parts else {
                    return None;
                };
                (conjuncts(condition), element, Some(*outside))
            }
            scalar => (vec![], scalar, None),
        };
        let (is_cast, element) = match scalar {
            Scalar::Cast(DType::I32, _, element) => (true, &**element),
            element => (false, element),
        };
        Some(Self { load: Load::of(element)?, is_cast, conditions, outside })
    }
}

impl Tiles {
    /// The nest with its last two loops as one, if both move along contiguous elements of one factor, as positions of an
    /// image do for a filter of one position.
    pub(super) fn joined(nest: &Nest, types: &[&Type]) -> Option<(Nest, Vec<Type>)> {
        let compute = &nest.compute;
        let above = compute.dims.len().checked_sub(2)?;
        let body = plain(&compute.body, &compute.dims, &compute.reduction.as_ref()?.dims);
        let plain = Nest {
            epilogue: nest.epilogue.clone(),
            ..Nest::of(Compute { body, ..compute.clone() })
        };
        let (joined, types) = joined_pair(&plain, types, above)?;
        let tiles = Self::of(&joined, &types.iter().collect::<Vec<_>>())?;
        (tiles.broadcast.is_some() && tiles.step == 1).then_some((joined, types))
    }

    /// The tiles of a nest, if it adds products of single precision, or of bytes, with columns next to each other.
    pub(super) fn of(nest: &Nest, types: &[&Type]) -> Option<Self> {
        let compute = &nest.compute;
        let reduction = compute.reduction.as_ref()?;
        let column = compute.dims.len().checked_sub(1)?;
        let combine = reduction.combine;
        let body = plain(&compute.body, &compute.dims, &reduction.dims);
        let (mut conditions, combined, zero) = match &body {
            Scalar::Select(parts) => {
                let [condition, combined, outside] = &**parts;
                (conjuncts(condition), combined, Some(outside))
            }
            combined => (vec![], combined, None),
        };
        let mut outside = 0;
        let (broadcast, vector, are_bytes) = match (combined, combine) {
            (Scalar::Binary(Binary::Mul, a, b), Combine::Sum) => {
                let (a, b) = (Factor::of(a)?, Factor::of(b)?);
                let (a, b) = match (a.load.depends_on(column), b.load.depends_on(column)) {
                    (false, true) => (a, b),
                    (true, false) => (b, a),
                    _ => return None,
                };
                if a.outside.is_some() || a.is_cast != b.is_cast {
                    return None;
                }
                if let Some(number) = b.outside {
                    if !conditions.is_empty() {
                        return None;
                    }
                    (conditions, outside) = (b.conditions, number);
                }
                (Some(a.load), b.load, a.is_cast)
            }
            (Scalar::Cast(DType::F32, _, element), Combine::Sum) => {
                (None, Load::of(element)?, false)
            }
            (element, Combine::Sum | Combine::Max | Combine::Min) => {
                (None, Load::of(element)?, false)
            }
            _ => return None,
        };
        let (innermost, outer) = vector.at.split_last()?;
        let step = coefficient(innermost, column)?;
        let moves = outer.iter().filter(|index| depends_on(index, column)).count();
        let along = |index: &Scalar| coefficient(index, column) == Some(1);
        let is_known = match step {
            0 => moves == 1 && outer.iter().any(along),
            _ => moves == 0 && (1..=MAX_STEP).contains(&step),
        };
        let dtype = types[vector.operand].dtype;
        let is_narrow_pool = matches!(dtype, DType::U8 | DType::I8 | DType::F16)
            && matches!(combine, Combine::Max | Combine::Min)
            && broadcast.is_none()
            && nest.epilogue.is_none();
        let is_of = |load: &Load, dtype| types[load.operand].dtype == dtype;
        let is_computed = match (&broadcast, are_bytes) {
            (Some(filter), true) => is_of(&vector, DType::U8) && is_of(filter, DType::I8),
            _ => {
                let is_f32 = |load: &Load| is_of(load, DType::F32);
                broadcast.iter().chain([&vector]).all(is_f32) || is_narrow_pool
            }
        };
        let neutral = match are_bytes {
            true => Scalar::Int(0, DType::I32),
            false => combine.neutral(dtype).scalar(dtype),
        };
        if !is_computed || !is_known || zero.is_some_and(|zero| *zero != neutral) {
            return None;
        }
        let (moving, guards): (Vec<_>, Vec<_>) =
            conditions.into_iter().partition(|condition| depends_on(condition, column));
        let bound = bound(&moving, innermost)?;
        if step == 0 && bound.is_some() {
            return None;
        }
        let is_row = |loop_: &usize| {
            let fixed = !vector.depends_on(*loop_)
                && !guards.iter().chain(&moving).any(|guard| depends_on(guard, *loop_));
            fixed && broadcast.as_ref().is_some_and(|broadcast| broadcast.depends_on(*loop_))
        };
        let row = (0..column).rev().find(is_row);
        let epilogue = Epilogue::of(nest, types);
        let is_vector = epilogue.as_ref().is_none_or(|epilogue| epilogue.is_vector);
        // Sums of single precision may be in the memory of the result until they are complete.
        if !are_bytes && epilogue.as_ref().is_some_and(|epilogue| epilogue.dtype != DType::F32) {
            return None;
        }
        let of_epilogue = epilogue.map_or(0, |epilogue| epilogue.outer);
        if of_epilogue > row.map_or(column, |row| row + 1) {
            return None;
        }
        let tiles = Self { broadcast, combine, dtype, vector, outside, step, guards, bound, row };
        let has_windows = || Windows::of(&tiles, compute, of_epilogue).is_some();
        let is_computed = match &tiles.broadcast {
            None => has_windows(),
            Some(_) if are_bytes => {
                let panels = Panels::of(&tiles, compute, types, windows::MAX_FLOATS);
                is_vector && (has_windows() || panels.is_some_and(|panels| panels.has_quads()))
            }
            Some(_) => true,
        };
        is_computed.then_some(tiles)
    }

    /// Whether products of bytes are added, in `i32`.
    pub(super) fn are_bytes(&self) -> bool {
        !self.dtype.is_float() && self.broadcast.is_some()
    }
}

/// The expression without loops of one iteration in `over`, quotients of a loop by its own extent, which are 0, and what changes
/// no index.
pub(super) fn plain(body: &Scalar, dims: &[Dim], over: &[Dim]) -> Scalar {
    let is_single = |loop_: usize| {
        let over = loop_.checked_sub(dims.len()).and_then(|number| over.get(number));
        over.is_some_and(|extent| extent.is(1))
    };
    let index = |scalar: &Scalar| match scalar {
        Scalar::Int(value, DType::I64) => Some(*value),
        _ => None,
    };
    body.replace(&mut |scalar| match scalar {
        Scalar::Loop(loop_) => is_single(*loop_).then(|| Scalar::index(0)),
        Scalar::Binary(function, x, y) => {
            let [x, y] = [x, y].map(|part| plain(part, dims, over));
            Some(match (function, index(&x), index(&y)) {
                (Binary::Add, Some(0), _) | (Binary::Mul, Some(1), _) => y,
                (Binary::Add | Binary::Sub, _, Some(0)) | (Binary::Mul, _, Some(1)) => x,
                (Binary::Mul, Some(0), _) | (Binary::Mul, _, Some(0)) => Scalar::index(0),
                (Binary::Div, ..) => match (&x, &y) {
                    (Scalar::Loop(loop_), Scalar::Size(extent))
                        if dims.get(*loop_) == Some(extent) =>
                    {
                        Scalar::index(0)
                    }
                    _ => x.binary(*function, y),
                },
                _ => x.binary(*function, y),
            })
        }
        _ => None,
    })
}

/// The conditions that a condition joins.
fn conjuncts(condition: &Scalar) -> Vec<Scalar> {
    match condition {
        Scalar::Binary(Binary::And, x, y) => [conjuncts(x), conjuncts(y)].concat(),
        other => vec![other.clone()],
    }
}

/// What an index gains when a loop advances by one; `None` if that varies.
pub(super) fn coefficient(index: &Scalar, loop_: usize) -> Option<i64> {
    let known = |scalar: &Scalar| match scalar {
        Scalar::Int(value, _) => Some(*value),
        _ => None,
    };
    match index {
        Scalar::Loop(found) => Some(i64::from(*found == loop_)),
        _ if !depends_on(index, loop_) => Some(0),
        Scalar::Binary(Binary::Add, x, y) => Some(coefficient(x, loop_)? + coefficient(y, loop_)?),
        Scalar::Binary(Binary::Sub, x, y) => Some(coefficient(x, loop_)? - coefficient(y, loop_)?),
        Scalar::Binary(Binary::Mul, x, y) => match (known(x), known(y)) {
            (Some(by), _) => Some(by * coefficient(y, loop_)?),
            (_, Some(by)) => Some(by * coefficient(x, loop_)?),
            _ => None,
        },
        _ => None,
    }
}

/// The size, which may be a number, below which conditions keep an index, which they also keep from being negative. The inner
/// value is `None` without conditions, the outer one if they state something else.
pub(super) fn bound(conditions: &[Scalar], index: &Scalar) -> Option<Option<Scalar>> {
    let (mut least, mut most) = (false, None);
    for condition in conditions {
        let Scalar::Compare(comparison, x, y) = condition else { return None };
        match (comparison, &**y) {
            (Comparison::Ge, Scalar::Int(0, _)) if **x == *index => least = true,
            (Comparison::Lt, size @ (Scalar::Size(_) | Scalar::Int(..))) if **x == *index => {
                most = Some(size.clone());
            }
            _ => return None,
        }
    }
    match (least, most) {
        (false, None) => Some(None),
        (true, Some(size)) => Some(Some(size)),
        _ => None,
    }
}
