//! Convolutions of groups of channels: a loop over all filters is one over groups, and one over the filters of a group.
use super::form::plain;
use crate::lowering::compute_to_loops::{expression::RESULT, nest::Nest};
use irc_tl::{Binary, Compute, Scalar, Type};

/// A loop whose quotient by a number is the group of what it counts.
#[derive(Clone, Copy)]
struct Groups {
    loop_: usize,
    count: i64,
    /// The iterations of the loop for each group.
    each: i64,
}

/// The nest with the loop over filters divided, and types of its operands in which axes along it are divided as well.
/// Their memory is the same. `None` if there is no such loop, or if each group has a channel of its own: windows of it are
/// computed as they are.
pub(super) fn divided(nest: &Nest, types: &[&Type]) -> Option<(Nest, Vec<Type>)> {
    let compute = &nest.compute;
    let over = &compute.reduction.as_ref()?.dims;
    if over.first()?.is(1) {
        return None;
    }
    let body = plain(&compute.body, &compute.dims, over);
    let groups = Groups::of(compute, &body)?;
    let mut divided: Vec<_> = types.iter().map(|ty| Operand::new(ty)).collect();
    let mut is_divided = true;
    let mut divide = |scalar: &Scalar| {
        if let Scalar::Load(operand, at) = scalar
            && *operand != RESULT
        {
            is_divided &= divided[*operand].divide(groups, at).is_some();
        }
    };
    body.walk(&mut divide);
    nest.epilogue.iter().for_each(|epilogue| epilogue.walk(&mut divide));
    if !is_divided {
        return None;
    }
    let moved = |scalar: &Scalar| groups.moved(scalar, &divided);
    let mut dims = compute.dims.clone();
    dims.splice(groups.loop_..=groups.loop_, [groups.count.into(), groups.each.into()]);
    let reduction = compute.reduction.clone();
    let made = Nest {
        epilogue: nest.epilogue.as_ref().map(moved),
        ..Nest::of(Compute { dims, reduction, body: moved(&body) })
    };
    Some((made, divided.into_iter().map(|operand| operand.ty).collect()))
}

/// The number of a size.
fn number(scalar: &Scalar) -> Option<i64> {
    match scalar {
        Scalar::Int(value, _) => Some(*value),
        Scalar::Size(size) => size.known(),
        _ => None,
    }
}

impl Groups {
    /// The groups of the loop that a body divides, if it divides one.
    fn of(compute: &Compute, body: &Scalar) -> Option<Self> {
        let mut found: Vec<(usize, i64)> = vec![];
        body.walk(&mut |part| {
            if let Scalar::Binary(Binary::Div, x, each) = part
                && let (Scalar::Loop(loop_), Some(each)) = (&**x, number(each))
                && !found.contains(&(*loop_, each))
            {
                found.push((*loop_, each));
            }
        });
        let &[(loop_, each)] = &found[..] else { return None };
        let all = compute.dims.get(loop_)?.known()?;
        (each > 1 && all > each && all % each == 0).then(|| Self { loop_, count: all / each, each })
    }

    /// The group of the loop, as it was or in two.
    fn is_group(self, scalar: &Scalar) -> bool {
        matches!(scalar, Scalar::Binary(Binary::Div, x, each)
            if **x == Scalar::Loop(self.loop_) && number(each) == Some(self.each))
    }

    /// The offset in a group of an index `group * size + offset`, and the size.
    fn offset(self, index: &Scalar) -> Option<(&Scalar, i64)> {
        let Scalar::Binary(Binary::Add, start, offset) = index else { return None };
        let Scalar::Binary(Binary::Mul, group, size) = &**start else { return None };
        self.is_group(group).then_some((&**offset, number(size)?))
    }

    /// A scalar with the loop in two, of divided operands.
    fn moved(self, scalar: &Scalar, operands: &[Operand]) -> Scalar {
        let [group, own] = [self.loop_, self.loop_ + 1].map(Scalar::Loop);
        scalar.replace(&mut |part| match part {
            part if self.is_group(part) => Some(group.clone()),
            Scalar::Loop(loop_) if *loop_ == self.loop_ => {
                Some(group.clone() * Scalar::index(self.each) + own.clone())
            }
            Scalar::Loop(loop_) if *loop_ > self.loop_ => Some(Scalar::Loop(loop_ + 1)),
            Scalar::Load(operand, at) if *operand != RESULT => {
                let axis = operands[*operand].axis;
                let at = at.iter().enumerate().flat_map(|(number, index)| {
                    let is_divided = axis == Some(number);
                    match self.offset(index) {
                        _ if !is_divided => vec![self.moved(index, operands)],
                        Some((offset, _)) => vec![group.clone(), self.moved(offset, operands)],
                        None => vec![group.clone(), own.clone()],
                    }
                });
                Some(Scalar::Load(*operand, at.collect()))
            }
            _ => None,
        })
    }
}

/// An operand, and its axis along groups.
struct Operand {
    ty: Type,
    axis: Option<usize>,
    is_read: bool,
}

impl Operand {
    fn new(ty: &Type) -> Self {
        Self { ty: ty.clone(), axis: None, is_read: false }
    }

    /// Divides the axis along groups of which an element is read; `None` if elements are read along several ones.
    fn divide(&mut self, groups: Groups, at: &[Scalar]) -> Option<()> {
        let each = |index: &Scalar| match groups.offset(index) {
            Some((_, size)) => Some(size),
            None => (*index == Scalar::Loop(groups.loop_)).then_some(groups.each),
        };
        let found = at.iter().enumerate().find_map(|(axis, index)| Some((axis, each(index)?)));
        let axis = found.map(|(axis, _)| axis);
        if self.is_read {
            return (self.axis == axis).then_some(());
        }
        self.is_read = true;
        let Some((axis, each)) = found else { return Some(()) };
        let dims = &mut self.ty.dims;
        if !dims[axis].is(groups.count * each) {
            return None;
        }
        dims.splice(axis..=axis, [groups.count.into(), each.into()]);
        self.axis = Some(axis);
        Some(())
    }
}
