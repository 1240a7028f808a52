//! A segment as one function of the tensor level, on tiles.
use super::{Segment, View, segment::Origin, variant::digits};
use crate::{
    attributes::{GRAPH, KERNEL, KernelInfo, OVERWRITES, STRIDES, TASK},
    lowering::graph_to_tl::graph_to_tl,
};
use irc_ark_format::{
    model::{Family, Op, Tensor},
    plan::{TaskInfo, tiling::Grid},
};
use irc_ark_frontend::{Accumulate, element_type, evaluate};
use irc_mlir::{Attribute, Context, attr, read};
use irc_tl::{Builder, Built, Dim, Graph, Op as Tl, TensorType, ValueId};

/// The text of the function `name` that computes a segment for the tasks whose digits are the last of their
/// dimension if set in `last`.
///
/// Arguments are the loads, results the stores. An argument that is only broadcast or copied still goes
/// through an op, since a kernel consists of ops.
///
/// # Errors
/// The index in the task of an op that is undefined on tiles, and the reason.
pub fn kernel_text(
    context: &Context,
    name: &str,
    task: &TaskInfo,
    segment: &Segment,
    last: [bool; 4],
) -> Result<String, (usize, String)> {
    let digits = digits(segment, last);
    let graph = graph(task, segment, digits)?;
    let module = graph_to_tl(context, &graph, name).map_err(|message| (segment.ops[0], message))?;
    let Some(func) = read::body_ops(module.as_operation()).into_iter().next() else {
        unreachable!("a graph is written as a function")
    };
    let loads = segment.loads.iter().map(|load| (load, false));
    let stores = segment.stores.iter().map(|store| (&store.view, store.overwrites));
    GRAPH.remove(func);
    irc_mlir::set_attribute(func, "arg_attrs", layouts(context, digits, loads));
    irc_mlir::set_attribute(func, "res_attrs", layouts(context, digits, stores));
    let (kind, keeps) = (TASK.to_owned(), shares_weights(task, segment));
    KERNEL.write(func, &KernelInfo { kind, keeps, ..KernelInfo::default() });
    Ok(irc_mlir::to_text(&func, false))
}

/// Whether several tasks multiply by the same window, so that caching its packed form pays.
fn shares_weights(task: &TaskInfo, segment: &Segment) -> bool {
    let shared = |view: &View| {
        let (_, moves) = view.address();
        (0..4).any(|digit| moves[digit] == 0 && segment.grids[0].counts[digit] > 1)
    };
    segment.ops.iter().zip(&segment.reads).any(|(index, reads)| {
        let is_matmul = task.ops[*index].op.kind.family() == Family::Product;
        matches!(reads.get(1), Some(Origin::Load(load)) if is_matmul && shared(&segment.loads[*load]))
    })
}

/// The segment on the windows of one task: from its loads to its stores.
fn graph(task: &TaskInfo, segment: &Segment, digits: [i64; 4]) -> Result<Graph, (usize, String)> {
    let mut builder = Builder::new();
    let mut loads = vec![];
    for (index, view) in segment.loads.iter().enumerate() {
        let ty = TensorType::new(element_type(view.dtype), view.shape(digits));
        loads.push(builder.input(format!("load_{index}"), ty.into()));
    }
    let mut values: Vec<ValueId> = vec![];
    for (position, index) in segment.ops.iter().enumerate() {
        let op = tile_op(&task.ops[*index].op, &segment.grids[position], digits)
            .ok_or_else(|| (*index, "its tiles are not known".to_owned()))?;
        let operands = segment.reads[position].iter().map(|origin| match *origin {
            Origin::Load(load) => loads[load],
            Origin::Value(value) => values[value],
        });
        let operands: Vec<ValueId> = operands.collect();
        let value = append(&mut builder, &op, &operands);
        values.push(value.map_err(|error| (*index, error.to_string()))?);
    }
    for (index, store) in segment.stores.iter().enumerate() {
        builder.output(format!("store_{index}"), values[store.op]);
    }
    Ok(builder.finish())
}

/// Appends an op on tiles.
fn append(builder: &mut Builder, op: &Op, operands: &[ValueId]) -> Built {
    let mut reads = vec![];
    for (operand, tensor) in operands.iter().zip(&op.reads) {
        let dims: Vec<Dim> = tensor.shape.iter().copied().map(Dim::Known).collect();
        reads.push(builder.reshape(*operand, &dims)?);
    }
    let shape = &op.writes[0].shape;
    let value = evaluate(builder, op, &reads, shape, Accumulate::Wide)?;
    match reads.contains(&value) {
        true => builder.op(Tl::Broadcast { shape: shape.clone() }, &[value]),
        false => Ok(value),
    }
}

/// The op restricted to the windows of one task.
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

/// The attributes of arguments or results: their strides, and whether results overwrite memory that is
/// read.
fn layouts<'c, 'v>(
    context: &'c Context,
    digits: [i64; 4],
    views: impl Iterator<Item = (&'v View, bool)>,
) -> Attribute<'c> {
    let layout = |(view, overwrites): (&View, bool)| {
        let mut entries = vec![STRIDES.entry(context, &view.element_strides(digits))];
        entries.extend(overwrites.then(|| OVERWRITES.entry(context, ())));
        attr::dictionary(context, &entries)
    };
    attr::array(context, &views.map(layout).collect::<Vec<_>>())
}
