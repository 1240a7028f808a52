//! A segment as one function of the tensor level, on tiles.
use super::{Segment, View, segment::Origin, variant::digits};
use crate::lowering::ark_to_tl::{Accumulate, Emitter, Val, computed, evaluate, ty};
use irc_ark_format::{
    model::{Op, OpKind, Tensor},
    plan::{TaskInfo, tiling::Grid},
};
use irc_mlir::{
    Attribute, Block, BlockLike, BlockRef, Context, Location, Module, OpSpec, OperationLike,
    RegionLike, Type, Value, attr, function,
};

/// The text of the function `name` that computes a segment for the tasks whose digits are the last
/// of their dimension where `last` says so.
///
/// Arguments are the loads, results the stores. An argument that is only broadcast or copied still
/// passes through an op, since a kernel is its ops.
///
/// # Errors
/// The index in the task of an op without meaning on tiles, and why.
pub fn kernel_text(
    context: &Context,
    name: &str,
    task: &TaskInfo,
    segment: &Segment,
    last: [bool; 4],
) -> Result<String, (usize, String)> {
    let location = Location::unknown(context);
    let digits = digits(segment, last);
    let module = Module::new(location);
    let types = |views: &mut dyn Iterator<Item = &View>| -> Vec<Type<'_>> {
        views.map(|view| ty(context, computed(view.dtype), &view.shape(digits))).collect()
    };
    let inputs = types(&mut segment.loads.iter());
    let outputs = types(&mut segment.stores.iter().map(|store| &store.view));
    let arguments: Vec<_> = inputs.iter().map(|ty| (*ty, location)).collect();
    let func = function(context, name, &inputs, &outputs, Block::new(&arguments), location)
        .attr("irc.kernel", attr::unit(context))
        .attr("irc.kind", attr::string(context, "task"))
        .attr("arg_attrs", layouts(context, digits, segment.loads.iter().map(|load| (load, false))))
        .attr(
            "res_attrs",
            layouts(
                context,
                digits,
                segment.stores.iter().map(|store| (&store.view, store.overwrites)),
            ),
        )
        .append(&module.body());
    if shares_weights(task, segment) {
        irc_mlir::set_attribute(func, "irc.keeps", attr::unit(context));
    }
    let block = func.region(0).ok().and_then(|region| region.first_block());
    let block = block.unwrap_or_else(|| unreachable!("the function was built with a block"));
    let values = body(context, block, task, segment, digits)?;
    let returned: Vec<Value<'_, '_>> =
        segment.stores.iter().map(|store| values[store.op].value).collect();
    OpSpec::new(context, "func.return", location).operands(&returned).append(&block);
    Ok(irc_mlir::to_text(&func, false))
}

/// Whether several tasks multiply by the same window: its packed form is worth keeping.
fn shares_weights(task: &TaskInfo, segment: &Segment) -> bool {
    let shared = |view: &View| {
        let (_, moves) = view.address();
        (0..4).any(|digit| moves[digit] == 0 && segment.grids[0].counts[digit] > 1)
    };
    segment.ops.iter().zip(&segment.reads).any(|(index, reads)| {
        let is_matmul = task.ops[*index].op.kind == OpKind::Matmul;
        matches!(reads.get(1), Some(Origin::Load(load)) if is_matmul && shared(&segment.loads[*load]))
    })
}

/// Appends the ops; their results, in order.
fn body<'c: 'a, 'a>(
    context: &'c Context,
    block: BlockRef<'c, 'a>,
    task: &TaskInfo,
    segment: &Segment,
    digits: [i64; 4],
) -> Result<Vec<Val<'c, 'a>>, (usize, String)> {
    let mut emitter = Emitter::new(context, block, Location::unknown(context), None);
    let mut values: Vec<Val<'c, 'a>> = vec![];
    for (position, index) in segment.ops.iter().enumerate() {
        let op = tile_op(&task.ops[*index].op, &segment.grids[position], digits)
            .ok_or_else(|| (*index, "its tiles are not known".to_owned()))?;
        let read = |(operand, origin): (usize, &Origin)| {
            let shape = &op.reads[operand].shape;
            match *origin {
                Origin::Load(load) => (argument(block, load, &segment.loads[load], digits), shape),
                Origin::Value(value) => (values[value].clone(), shape),
            }
        };
        let reads: Vec<_> = segment.reads[position].iter().enumerate().map(read).collect();
        let reads: Vec<_> =
            reads.into_iter().map(|(val, shape)| emitter.reshape(val, shape)).collect();
        let val = evaluate(&mut emitter, &op, &reads, &op.writes[0].shape, Accumulate::Wide)
            .map_err(|why| (*index, why))?;
        let moved = reads.iter().any(|read| read.value == val.value);
        values.push(if moved {
            emitter.op("broadcast", &[&val], &[], (val.dtype, &val.shape))
        } else {
            val
        });
    }
    Ok(values)
}

fn argument<'c: 'a, 'a>(
    block: BlockRef<'c, 'a>,
    index: usize,
    view: &View,
    digits: [i64; 4],
) -> Val<'c, 'a> {
    let value = block.argument(index);
    let value = value.unwrap_or_else(|_| unreachable!("one argument for each load")).into();
    Val { value, dtype: computed(view.dtype), shape: view.shape(digits) }
}

/// The op on the windows of one task alone.
fn tile_op(op: &Op, grid: &Grid, digits: [i64; 4]) -> Option<Op> {
    let mut tile = op.clone();
    for (index, tensor) in tile.reads.iter_mut().enumerate() {
        cut(tensor, &View::read(op, grid, index)?, digits);
    }
    let written = View::write(op, grid)?;
    tile.writes
        .iter_mut()
        .chain(&mut tile.results)
        .for_each(|tensor| cut(tensor, &written, digits));
    Some(tile)
}

fn cut(tensor: &mut Tensor, view: &View, digits: [i64; 4]) {
    tensor.shape = view.shape(digits);
    tensor.padded_shape.clone_from(&tensor.shape);
}

/// The attributes of arguments or results: their strides, and whether they overwrite.
fn layouts<'c, 'v>(
    context: &'c Context,
    digits: [i64; 4],
    views: impl Iterator<Item = (&'v View, bool)>,
) -> Attribute<'c> {
    let layout = |(view, overwrites): (&View, bool)| {
        let strides: Vec<_> =
            view.element_strides(digits).iter().map(|stride| stride.to_string()).collect();
        let overwrites = if overwrites { "irc.overwrites, " } else { "" };
        let text = format!("{{{overwrites}irc.strides = array<i64: {}>}}", strides.join(", "));
        attr::parse(context, &text)
    };
    attr::array(context, &views.map(layout).collect::<Vec<_>>())
}
