//! Ops that move elements: transpose, slice, reshape, update, gather, and rope's pairing.
use super::{
    Contents, Lowered,
    generic::{Access, Emitter, Loops},
    pointwise::map,
    squeezed, wide_dims,
};
use crate::attributes::PADS;
use crate::kernel::arithmetic::{narrow, widen};
use crate::kernel::{
    element::{Element, Kind},
    scope::Scope,
};
use irc_mlir::ops::{arith, tensor};
use irc_mlir::{OperationRef, Type, Value, attr, read, ty};

/// `tl.transpose`.
pub fn transpose<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    operand: &Lowered<'c, 'a>,
    shape: &[i64],
) -> Result<Contents<'c, 'a>, String> {
    let permutation = read::integers(&op, "permutation").ok_or("lacks its permutation")?;
    let loops = wide_dims(shape);
    let along = wide_dims(&operand.shape).into_iter().filter_map(|dim| {
        let result_dim = permutation.iter().position(|from| *from == dim as i64)?;
        loops.iter().position(|wide| *wide == result_dim)
    });
    let input = Access { tensor: emitter.materialise(operand), loops: along.collect() };
    let output = Access {
        tensor: emitter.empty(&squeezed(shape), operand.element),
        loops: (0..loops.len()).collect(),
    };
    let space = Loops::parallel(loops.len());
    Ok(Contents::Tensor(emitter.generic(&[input], output, &space, |_, x| irc_mlir::rebind(x[0]))))
}

/// `tl.slice`.
pub fn slice<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    operand: &Lowered<'c, 'a>,
    shape: &[i64],
) -> Result<Contents<'c, 'a>, String> {
    let offsets = read::integers(&op, "offsets").ok_or("lacks its offsets")?;
    Ok(cut(emitter, operand, &offsets, shape))
}

/// A box of elements of a value.
pub fn cut<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    operand: &Lowered<'c, 'a>,
    offsets: &[i64],
    shape: &[i64],
) -> Contents<'c, 'a> {
    let Contents::Tensor(tensor) = operand.contents else { return operand.contents.clone() };
    let wide = wide_dims(&operand.shape);
    let pick = |from: &[i64]| wide.iter().map(|dim| from[*dim]).collect::<Vec<_>>();
    let result = ty::tensor(&squeezed(shape), operand.element.storage);
    Contents::Tensor(
        emitter.value(
            emitter
                .spec(tensor::EXTRACT_SLICE)
                .operands(&[tensor])
                .results(&[result])
                .attr("static_offsets", attr::i64s(emitter.context, &pick(offsets)))
                .attr("static_sizes", attr::i64s(emitter.context, &pick(shape)))
                .attr("static_strides", attr::i64s(emitter.context, &vec![1; wide.len()]))
                .attr(
                    "operandSegmentSizes",
                    attr::parse(emitter.context, "array<i32: 1, 0, 0, 0>"),
                ),
        ),
    )
}

/// `tl.reshape`, through one flat dimension.
pub fn reshape<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    operand: &Lowered<'c, 'a>,
    shape: &[i64],
) -> Contents<'c, 'a> {
    let Contents::Tensor(mut tensor) = operand.contents else { return operand.contents.clone() };
    let (from, to) = (squeezed(&operand.shape), squeezed(shape));
    if from == to {
        return Contents::Tensor(tensor);
    }
    let all = |rank: usize| {
        let dims: Vec<String> = (0..rank).map(|dim| dim.to_string()).collect();
        attr::parse(emitter.context, &format!("[[{}]]", dims.join(", ")))
    };
    if from.len() > 1 {
        let flat = ty::tensor(&[from.iter().product()], operand.element.storage);
        let spec = emitter.spec(tensor::COLLAPSE_SHAPE).operands(&[tensor]).results(&[flat]);
        tensor = emitter.value(spec.attr("reassociation", all(from.len())));
    }
    if to.len() > 1 {
        let wide = ty::tensor(&to, operand.element.storage);
        let spec = emitter.spec(tensor::EXPAND_SHAPE).operands(&[tensor]).results(&[wide]);
        let spec = spec.attr("static_output_shape", attr::i64s(emitter.context, &to));
        tensor = emitter.value(spec.attr("reassociation", all(to.len())));
    }
    Contents::Tensor(tensor)
}

/// `tl.update`: elements inside the box come from the source, others from dest.
pub fn update<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    dest: &Lowered<'c, 'a>,
    source: &Lowered<'c, 'a>,
) -> Result<Contents<'c, 'a>, String> {
    let offsets = read::integers(&op, "offsets").ok_or("lacks its offsets")?;
    Ok(put(emitter, dest, source, &offsets))
}

/// `dest` with the box of `source`'s shape at `offsets` replaced.
pub fn put<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    dest: &Lowered<'c, 'a>,
    source: &Lowered<'c, 'a>,
    offsets: &[i64],
) -> Contents<'c, 'a> {
    let tensor = emitter.materialise(source);
    placed(emitter, dest, &source.shape, offsets, |scope, at| {
        extract(scope, tensor, at, dest.element)
    })
}

/// `dest` with a box at `offsets` replaced by the elements that `inside` makes, given the place in the box.
fn placed<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    dest: &Lowered<'c, 'a>,
    shape: &[i64],
    offsets: &[i64],
    element_at: impl FnOnce(&Scope<'c, '_>, &[Value<'c, '_>]) -> Value<'c, 'a>,
) -> Contents<'c, 'a> {
    let wide = wide_dims(&dest.shape);
    let element = dest.element;
    map(emitter, std::slice::from_ref(dest), &dest.shape, element, |scope, x| {
        let flag = ty::parse(scope.context, "i1");
        let mut inside: Value =
            scope.with(arith::CONSTANT, &[], flag, &[("value", attr::bool(scope.context, true))]);
        let mut at = Vec::new();
        for (position, dim) in wide.iter().enumerate() {
            let (relative, within) = box_index(scope, position, offsets[*dim], shape[*dim]);
            inside = scope.op(arith::ANDI, &[inside, within], flag);
            if shape[*dim] != 1 {
                at.push(relative);
            }
        }
        let from_source = element_at(scope, &at);
        scope.op(arith::SELECT, &[inside, from_source, x[0]], element.storage)
    })
}

/// `dest`, a splat, with the box at `offsets` replaced by what `join` makes of an element of each source, which have one
/// shape.
pub fn pad_joined<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    dest: &Lowered<'c, 'a>,
    sources: &[Lowered<'c, 'a>],
    offsets: &[i64],
    join: impl FnOnce(&Scope<'c, '_>, &[Value<'c, '_>]) -> Value<'c, 'a>,
) -> Contents<'c, 'a> {
    let shape = &sources[0].shape;
    let tensors: Vec<Value> = sources.iter().map(|source| emitter.materialise(source)).collect();
    let padded = placed(emitter, dest, shape, offsets, |scope, at| {
        let elements: Vec<Value> = tensors
            .iter()
            .zip(sources)
            .map(|(tensor, source)| extract(scope, *tensor, at, source.element))
            .collect();
        join(scope, &elements)
    });
    mark_padding(&padded, shape, &dest.shape, offsets);
    padded
}

/// A source of these offsets in a shape whose other elements are `outside`.
pub fn pad<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    source: &Lowered<'c, 'a>,
    shape: &[i64],
    offsets: &[i64],
    outside: f64,
) -> Contents<'c, 'a> {
    let dest = Contents::Splat(outside);
    let dest = Lowered { shape: shape.to_vec(), element: source.element, contents: dest };
    let padded = put(emitter, &dest, source, offsets);
    mark_padding(&padded, &source.shape, shape, offsets);
    padded
}

/// Marks what places a source of some shape in a splat of another.
fn mark_padding(padded: &Contents<'_, '_>, source: &[i64], shape: &[i64], offsets: &[i64]) {
    if let Contents::Tensor(tensor) = padded
        && let Some(generic) = read::defining_op(*tensor)
        && wide_dims(source) == wide_dims(shape)
    {
        let offsets: Vec<i64> = wide_dims(shape).into_iter().map(|dim| offsets[dim]).collect();
        PADS.write(generic, &offsets);
    }
}

/// A loop's index relative to a box along one dimension, clamped to it, and whether it was inside.
fn box_index<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    dim: usize,
    offset: i64,
    size: i64,
) -> (Value<'c, 'b>, Value<'c, 'b>) {
    let index = Type::index(scope.context);
    let current: Value = scope.loop_index(dim);
    let relative: Value = scope.op(arith::SUBI, &[current, scope.index_constant(offset)], index);
    // Unsigned: an index before the box is huge.
    let unsigned_less = attr::i64(scope.context, 6);
    let within = scope.with(
        arith::CMPI,
        &[relative, scope.index_constant(size)],
        ty::parse(scope.context, "i1"),
        &[("predicate", unsigned_less)],
    );
    let clamped = clamp(scope, relative, size);
    (clamped, within)
}

/// An index clamped to `0..size`.
fn clamp<'c: 'b, 'b>(scope: &Scope<'c, '_>, value: Value<'c, '_>, size: i64) -> Value<'c, 'b> {
    let index = Type::index(scope.context);
    let low: Value = scope.op(arith::MAXSI, &[value, scope.index_constant(0)], index);
    scope.op(arith::MINSI, &[low, scope.index_constant(size - 1)], index)
}

pub fn extract<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    tensor: Value<'c, '_>,
    at: &[Value<'c, '_>],
    element: Element<'c>,
) -> Value<'c, 'b> {
    let mut operands = vec![tensor];
    operands.extend(at.iter().map(|index| irc_mlir::rebind(*index)));
    scope.op(tensor::EXTRACT, &operands, element.storage)
}

/// `tl.gather`: rows of a table; negative indices wrap, out-of-range ones are clamped.
pub fn gather<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    index: &Lowered<'c, 'a>,
    table: &Lowered<'c, 'a>,
    shape: &[i64],
) -> Contents<'c, 'a> {
    let table_tensor = emitter.materialise(table);
    let (rows, columns) = (table.shape[0], table.shape[1]);
    // The index broadcasts along the last dimension of the result.
    let mut aligned = index.clone();
    aligned.shape.push(1);
    let last_loop = wide_dims(shape).len().saturating_sub(1);
    map(emitter, &[aligned], shape, table.element, |scope, x| {
        let index_type = Type::index(scope.context);
        let signed = index.element.kind == Kind::Signed;
        let cast = if signed { arith::INDEX_CAST } else { arith::INDEX_CASTUI };
        let raw: Value = scope.op(cast, &[x[0]], index_type);
        let less = attr::i64(scope.context, 2);
        let flag = ty::parse(scope.context, "i1");
        let negative: Value =
            scope.with(arith::CMPI, &[raw, scope.index_constant(0)], flag, &[("predicate", less)]);
        let wrapped: Value = scope.op(arith::ADDI, &[raw, scope.index_constant(rows)], index_type);
        let row: Value = scope.op(arith::SELECT, &[negative, wrapped, raw], index_type);
        let mut at: Vec<Value> = Vec::new();
        if rows != 1 {
            at.push(clamp(scope, row, rows));
        }
        if columns != 1 {
            at.push(scope.loop_index(last_loop));
        }
        extract(scope, table_tensor, &at, table.element)
    })
}

/// `tl.rope`: `x[i] * cos + sign * x[i ^ 1] * sin`, sign negative for even `i`.
pub fn rope<'c: 'a, 'a>(
    emitter: &Emitter<'c, 'a>,
    x: &Lowered<'c, 'a>,
    table: &Lowered<'c, 'a>,
    shape: &[i64],
) -> Result<Contents<'c, 'a>, String> {
    if shape.last().is_none_or(|width| width % 2 != 0) || x.shape.as_slice() != shape {
        return Err("expects an even last dimension and operands of the result's shape".to_owned());
    }
    let (x_tensor, table_tensor) = (emitter.materialise(x), emitter.materialise(table));
    let loops = wide_dims(shape);
    let last = loops.len() - 1;
    let shift = shape.len() - table.shape.len();
    let table_loops: Vec<usize> = wide_dims(&table.shape)
        .into_iter()
        .filter_map(|dim| loops.iter().position(|wide| *wide == dim + shift))
        .collect();
    let element = x.element;
    Ok(map(emitter, std::slice::from_ref(x), shape, element, |scope, given| {
        let index = Type::index(scope.context);
        let column: Value = scope.loop_index(last);
        let one: Value = scope.index_constant(1);
        let odd: Value = scope.op(arith::ORI, &[column, one], index);
        let even: Value = scope.op(arith::XORI, &[odd, one], index);
        let partner: Value = scope.op(arith::XORI, &[column, one], index);
        let at = |loops: &[usize], column: Value<'c, '_>| -> Vec<Value<'c, '_>> {
            let pick = |at: &usize| {
                if *at == last { irc_mlir::rebind(column) } else { scope.loop_index(*at) }
            };
            loops.iter().map(pick).collect()
        };
        let every: Vec<usize> = (0..loops.len()).collect();
        let read_wide = |tensor, at: &[Value<'c, '_>], element| -> Value<'c, '_> {
            let value: Value = extract(scope, tensor, at, element);
            widen(scope, value, element)
        };
        let cos = read_wide(table_tensor, &at(&table_loops, even), table.element);
        let sin = read_wide(table_tensor, &at(&table_loops, odd), table.element);
        let other = read_wide(x_tensor, &at(&every, partner), element);
        let own: Value = widen(scope, given[0], element);
        rotate(scope, [own, other, cos, sin], column, element)
    }))
}

fn rotate<'c: 'b, 'b>(
    scope: &Scope<'c, '_>,
    [own, other, cos, sin]: [Value<'c, '_>; 4],
    column: Value<'c, '_>,
    element: Element<'c>,
) -> Value<'c, 'b> {
    let wide = element.compute(scope.context).storage;
    let index = Type::index(scope.context);
    let straight: Value = scope.op(arith::MULF, &[own, cos], wide);
    let crossed: Value = scope.op(arith::MULF, &[other, sin], wide);
    let sum: Value = scope.op(arith::ADDF, &[straight, crossed], wide);
    let difference: Value = scope.op(arith::SUBF, &[straight, crossed], wide);
    let parity: Value = scope.op(arith::ANDI, &[column, scope.index_constant(1)], index);
    let equal = attr::i64(scope.context, 0);
    let is_even: Value = scope.with(
        arith::CMPI,
        &[parity, scope.index_constant(0)],
        ty::parse(scope.context, "i1"),
        &[("predicate", equal)],
    );
    let chosen: Value = scope.op(arith::SELECT, &[is_even, difference, sum], wide);
    narrow(scope, chosen, element)
}
