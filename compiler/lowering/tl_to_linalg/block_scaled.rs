//! `tl.block_scaled_matmul`: the operands as floats, and a product of them.
//!
//! The floats are marked with how they follow from integers (`tl.codes` of the right operand, `tl.quantised` of the left one):
//! a schedule that knows such products computes them in registers, where they are multiplied, or multiplies the integers.
use super::{Contents, Lowered, contraction, generic::Emitter, moves, pointwise::map, wide_dims};
use crate::attributes::{CODES, QUANTISED};
use crate::kernel::{
    arithmetic,
    element::{Element, Kind},
    scope::Scope,
};
use irc_mlir::ops::arith;
use irc_mlir::{OperationRef, Type, Value, read, ty};
use irc_tl::Rounding;

pub fn lower<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    operands: &[Lowered<'c, 'a>],
    shape: &[i64],
    element: Element<'c>,
) -> Result<Contents<'c, 'a>, String> {
    let parameter = |name| read::integer(&op, name).ok_or(format!("lacks '{name}'"));
    let [bits, block] = [parameter("bits")?, parameter("block")?];
    let [lhs, codes, scales, others @ ..] = operands else {
        return Err("expects a left operand, codes and scales".to_owned());
    };
    let floats;
    let (lhs, zeros) = match others.split_last() {
        Some((lhs_scales, zeros)) if lhs.element.kind != Kind::Float => {
            floats = of_quantised(emitter, [lhs, lhs_scales], block, element);
            (&floats, zeros)
        }
        _ => (lhs, others),
    };
    let (rank, depth) = (shape.len(), lhs.shape.last().copied().unwrap_or(1));
    let zeros = zeros.first();
    let rhs_shape = vec![codes.shape[0], depth];
    let tensors = [Some(codes), Some(scales), zeros].map(|x| x.map(|x| emitter.materialise(x)));
    let contents = map(emitter, &[], &rhs_shape, element, |scope, _| {
        let position = Position::of(scope, &rhs_shape);
        let at_block = |operand: &Lowered<'c, 'a>, tensor: Option<Value<'c, 'a>>| {
            let block = position.part(scope, block);
            let at = position.within(&operand.shape, block);
            tensor.map(|tensor| moves::extract(scope, tensor, &at, element))
        };
        let byte = position.part(scope, 8 / bits);
        let at = position.within(&codes.shape, byte);
        let byte = tensors[0].map(|tensor| moves::extract(scope, tensor, &at, codes.element));
        let code = byte.map(|byte| position.code(scope, byte, bits, element));
        let scale = at_block(scales, tensors[1]);
        let zero = match zeros {
            None => Some(scope.constant(element, (1_i64 << (bits - 1)) as f64)),
            Some(zeros) => at_block(zeros, tensors[2]),
        };
        let (Some(code), Some(zero), Some(scale)) = (code, zero, scale) else {
            unreachable!("the tensors are there")
        };
        let centred: Value = scope.op(arith::SUBF, &[code, zero], element.storage);
        scope.op(arith::MULF, &[centred, scale], element.storage)
    });
    if let Contents::Tensor(tensor) = contents
        && let Some(generic) = read::defining_op(tensor)
    {
        CODES.write(generic, &[bits, block]);
    }
    let rhs = Lowered { shape: rhs_shape, element, contents };
    let lhs_dims: Vec<usize> = (0..rank - 1).chain([rank]).collect();
    Ok(contraction::multiply(
        emitter,
        [(lhs, &lhs_dims), (&rhs, &[rank - 1, rank])],
        shape,
        element,
    ))
}

/// The floats that a quantised left operand stands for.
fn of_quantised<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    [lhs, scales]: [&Lowered<'c, 'a>; 2],
    block: i64,
    element: Element<'c>,
) -> Lowered<'c, 'a> {
    let shape = lhs.shape.clone();
    let tensor = emitter.materialise(scales);
    let given = [Lowered { contents: Contents::Tensor(emitter.materialise(lhs)), ..lhs.clone() }];
    let contents = map(emitter, &given, &shape, element, |scope, x| {
        let value: Value =
            arithmetic::cast(scope, x[0], lhs.element, element, Rounding::TowardZero);
        let last = shape.len() - 1;
        let loops = wide_dims(&shape);
        let index = |dim: usize| loops.iter().position(|wide| *wide == dim);
        let at = wide_dims(&scales.shape).into_iter().filter_map(|dim| {
            let own: Value = scope.loop_index(index(dim)?);
            let size = || -> Value { scope.index_constant(block) };
            Some(match dim == last {
                true => scope.op(arith::DIVUI, &[own, size()], Type::index(scope.context)),
                false => own,
            })
        });
        let scale = moves::extract(scope, tensor, &at.collect::<Vec<_>>(), element);
        scope.op(arith::MULF, &[value, scale], element.storage)
    });
    if let Contents::Tensor(tensor) = contents
        && let Some(generic) = read::defining_op(tensor)
    {
        QUANTISED.write(generic, block);
    }
    Lowered { shape, element, contents }
}

/// An element of the right operand: its column and its place along the depth, as indices.
struct Position<'c, 'b> {
    column: Value<'c, 'b>,
    place: Value<'c, 'b>,
}

impl<'c: 'b, 'b> Position<'c, 'b> {
    fn of(scope: &Scope<'c, '_>, shape: &[i64]) -> Self {
        let mut next = 0;
        let mut index = |size: i64| match size {
            1 => scope.index_constant(0),
            _ => {
                next += 1;
                scope.loop_index(next - 1)
            }
        };
        Self { column: index(shape[0]), place: index(shape[1]) }
    }

    /// Which of the groups of so many elements it is in.
    fn part(&self, scope: &Scope<'c, '_>, size: i64) -> Value<'c, 'b> {
        let size: Value = scope.index_constant(size);
        scope.op(arith::DIVUI, &[self.place, size], Type::index(scope.context))
    }

    /// The indices of a part of its column in a matrix without dimensions of extent 1.
    fn within(&self, shape: &[i64], part: Value<'c, 'b>) -> Vec<Value<'c, 'b>> {
        let indices = [self.column, part].into_iter().zip(shape);
        indices.filter(|(_, size)| **size != 1).map(|(index, _)| index).collect()
    }

    /// Its bits of a byte, as a float.
    fn code(
        &self,
        scope: &Scope<'c, '_>,
        byte: Value<'c, 'b>,
        bits: i64,
        element: Element<'c>,
    ) -> Value<'c, 'b> {
        let word = Element {
            storage: ty::parse(scope.context, "i32"),
            bits: 32,
            kind: Kind::Signed,
            small: None,
        };
        let index = Type::index(scope.context);
        let (codes, width): (Value, Value) =
            (scope.index_constant(8 / bits), scope.index_constant(bits));
        let inside: Value = scope.op(arith::REMUI, &[self.place, codes], index);
        let shift: Value = scope.op(arith::MULI, &[inside, width], index);
        let shift: Value = scope.op(arith::INDEX_CAST, &[shift], word.storage);
        let byte: Value = scope.op(arith::EXTUI, &[byte], word.storage);
        let moved: Value = scope.op(arith::SHRUI, &[byte, shift], word.storage);
        let mask: Value = scope.constant(word, ((1_i64 << bits) - 1) as f64);
        let code: Value = scope.op(arith::ANDI, &[moved, mask], word.storage);
        scope.op(arith::SITOFP, &[code], element.storage)
    }
}
