//! The checks of shapes and data types in the rows of compute ops.

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use super::Elements;
use crate::model::{DataType, Op, Tensor, shape};

/// Checks that the op supports the elements of its first operand.
pub(super) fn check_elements(op: &Op, elements: Elements, at: &At<'_>, sink: &mut Sink) {
    let Some(dtype) = op.reads.first().map(|tensor| tensor.dtype) else { return };
    let expected = match elements {
        Elements::Floats if !dtype.is_float() => "FP32, FP16 or BF16",
        Elements::Numbers if dtype == DataType::Byte => "numbers",
        _ => return,
    };
    let message = format!("`{}` computes {expected}, found {dtype}", op.kind);
    let diagnostic = Diagnostic::error("ark-dtype", message);
    sink.push(diagnostic.path(path(at, "ReadTensors", 0, "DataType")).help("insert a `Cast`"));
}

/// Checks an elementwise op on two operands: the output has the shape that they broadcast to.
pub(super) fn binary(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let (input, other, output) = (&op.reads[0], &op.reads[1], &op.writes[0]);
    same_dtype(input, other, path(at, "ReadTensors", 1, "DataType"), at, sink);
    same_dtype(input, output, path(at, "WriteTensors", 0, "DataType"), at, sink);
    match shape::broadcast(&input.shape, &other.shape) {
        None => {
            let message =
                format!("shapes {:?} and {:?} do not broadcast", input.shape, other.shape);
            let diagnostic = Diagnostic::error("ark-broadcast", message)
                .path(path(at, "ReadTensors", 1, "Shape"))
                .related(path(at, "ReadTensors", 0, "Shape"), "the other shape is here")
                .with_note("aligned at the right, extents must be equal or 1");
            sink.push(diagnostic);
        }
        Some(expected) => expect_output(output, &expected, at, sink),
    }
}

/// Like [`binary`], on adjacent pairs.
pub(super) fn rope(op: &Op, at: &At<'_>, sink: &mut Sink) {
    binary(op, at, sink);
    if op.writes[0].shape.last().is_some_and(|width| width % 2 != 0) {
        let message = "`Rope` rotates adjacent pairs: the last dimension must be even";
        let diagnostic = Diagnostic::error("ark-rope-width", message);
        sink.push(diagnostic.path(path(at, "WriteTensors", 0, "Shape")));
    }
}

/// Checks an elementwise op on one operand, which may be broadcast to the output.
pub(super) fn unary(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let (input, output) = (&op.reads[0], &op.writes[0]);
    same_dtype(input, output, path(at, "WriteTensors", 0, "DataType"), at, sink);
    cast(op, at, sink);
}

/// Like [`unary`], from one data type to another.
pub(super) fn cast(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let (input, output) = (&op.reads[0], &op.writes[0]);
    let broadcast = shape::broadcast(&input.shape, &output.shape);
    if broadcast.as_ref() != Some(&output.shape) {
        let message = format!("shape {:?} does not broadcast to {:?}", input.shape, output.shape);
        let diagnostic = Diagnostic::error("ark-broadcast", message)
            .path(path(at, "WriteTensors", 0, "Shape"))
            .related(path(at, "ReadTensors", 0, "Shape"), "the operand's shape is here");
        sink.push(diagnostic);
    }
}

/// Checks that the output is the operand without an axis, or with extent 1 along it.
pub(super) fn reduction(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let (input, output) = (&op.reads[0], &op.writes[0]);
    same_dtype(input, output, path(at, "WriteTensors", 0, "DataType"), at, sink);
    if input.id == output.id {
        let diagnostic = Diagnostic::error("ark-reduce-in-place", "a reduction cannot be in place");
        sink.push(diagnostic.path(path(at, "WriteTensors", 0, "Id")));
    }
    let (axis, keep) = (op.int_arg("Axis").unwrap_or(0), op.bool_arg("KeepDim").unwrap_or(true));
    match usize::try_from(axis).ok().filter(|&axis| axis < input.rank()) {
        Some(axis) => expect_output(output, &shape::reduce(&input.shape, axis, keep), at, sink),
        None => {
            let message = format!("axis {axis} is not in [0, {})", input.rank());
            let diagnostic = Diagnostic::error("ark-axis", message)
                .path(at.key("Args").key("Axis").to_string())
                .related(path(at, "ReadTensors", 0, "Shape"), "the operand's shape is here");
            sink.push(diagnostic);
        }
    }
}

/// Checks a matrix product, in shapes and in padded shapes.
pub(super) fn matmul(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let (a, b, c) = (&op.reads[0], &op.reads[1], &op.writes[0]);
    same_dtype(a, b, path(at, "ReadTensors", 1, "DataType"), at, sink);
    same_dtype(a, c, path(at, "WriteTensors", 0, "DataType"), at, sink);
    let transpose = |name| op.bool_arg(name).unwrap_or(false);
    let (ta, tb) = (transpose("TransposeInput"), transpose("TransposeOther"));
    let pairs = [
        ("Shape", &a.shape, &b.shape, &c.shape),
        ("PaddedShape", &a.padded_shape, &b.padded_shape, &c.padded_shape),
    ];
    for (key, a, b, c) in pairs {
        let extents = shape::mnk(a, b, ta, tb);
        if extents.k != extents.other_k {
            let message =
                format!("inner extents differ in `{key}`: {} and {}", extents.k, extents.other_k);
            let diagnostic = Diagnostic::error("ark-matmul-k", message)
                .path(path(at, "ReadTensors", 1, key))
                .related(path(at, "ReadTensors", 0, key), format!("K is {} here", extents.k))
                .with_note(format!("TransposeInput is {ta}, TransposeOther is {tb}"));
            sink.push(diagnostic);
            // One diagnostic is enough: the padded shapes follow the shapes.
            return;
        }
        match shape::matmul(a, b, ta, tb) {
            Some(expected) => {
                let place = path(at, "WriteTensors", 0, key);
                expect_extents(key, c, &expected, place, sink);
            }
            None => {
                let message = format!("batch dimensions of {a:?} and {b:?} do not broadcast");
                let diagnostic = Diagnostic::error("ark-broadcast", message)
                    .path(path(at, "ReadTensors", 1, key))
                    .related(path(at, "ReadTensors", 0, key), "the other shape is here");
                sink.push(diagnostic);
            }
        }
    }
}

/// Checks that the output is the operand with its dimensions in another order.
pub(super) fn transposition(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let (input, output) = (&op.reads[0], &op.writes[0]);
    same_dtype(input, output, path(at, "WriteTensors", 0, "DataType"), at, sink);
    let permutation = op.dims_arg("Permutation").unwrap_or_default();
    match shape::transpose(&input.shape, permutation) {
        Some(expected) => expect_output(output, &expected, at, sink),
        None => {
            let rank = input.rank();
            let message = format!("{permutation:?} is not a permutation of 0..{rank}");
            let diagnostic = Diagnostic::error("ark-permutation", message)
                .path(at.key("Args").key("Permutation").to_string())
                .related(path(at, "ReadTensors", 0, "Shape"), format!("{rank} dimensions here"));
            sink.push(diagnostic);
        }
    }
}

/// Checks indices, a table, and its rows.
pub(super) fn embedding(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let (indices, table, output) = (&op.reads[0], &op.reads[1], &op.writes[0]);
    same_dtype(table, output, path(at, "WriteTensors", 0, "DataType"), at, sink);
    if indices.dtype.is_float() || indices.dtype.bytes() != 4 {
        let message = format!("indices are read as INT32, found {}", indices.dtype);
        let diagnostic = Diagnostic::error("ark-dtype", message);
        sink.push(diagnostic.path(path(at, "ReadTensors", 0, "DataType")));
    }
    let ranks = [("indices", indices, 1..=3, 0), ("the table", table, 2..=2, 1)];
    for (what, tensor, allowed, index) in ranks {
        if !allowed.contains(&tensor.rank()) {
            let (low, high) = (allowed.start(), allowed.end());
            let message =
                format!("{what} must have {low} to {high} dimensions, found {}", tensor.rank());
            let diagnostic = Diagnostic::error("ark-embedding", message);
            sink.push(diagnostic.path(path(at, "ReadTensors", index, "Shape")));
            return;
        }
    }
    // The output may have any rank: ARK itself writes four dimensions for any indices.
    let expected: Vec<i64> =
        indices.shape.iter().chain(&table.shape[1..]).copied().filter(|&n| n != 1).collect();
    let found: Vec<i64> = output.shape.iter().copied().filter(|&n| n != 1).collect();
    if expected != found || output.shape.last() != table.shape.last() {
        let message = format!(
            "output must be the indices' shape {:?} followed by {}, found {:?}",
            indices.shape, table.shape[1], output.shape
        );
        let diagnostic = Diagnostic::error("ark-shape-mismatch", message);
        sink.push(diagnostic.path(path(at, "WriteTensors", 0, "Shape")));
    }
}

/// Checks that a view is on the buffer of its source.
pub(super) fn view(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let (Some(source), Some(view)) = (op.reads.first(), op.results.first()) else { return };
    if source.buffer.id != view.buffer.id {
        let message = format!(
            "the view is in buffer {}, its source in buffer {}",
            view.buffer.id, source.buffer.id
        );
        let diagnostic = Diagnostic::error("ark-view-buffer", message)
            .path(path(at, "ResultTensors", 0, "Buffer"))
            .related(path(at, "ReadTensors", 0, "Buffer"), "the source is here");
        sink.push(diagnostic);
    }
}

/// Path of a key of the tensor at `index` of a list of the op.
fn path(at: &At<'_>, list: &str, index: usize, key: &str) -> String {
    at.key(list).index(index).key(key).to_string()
}

fn same_dtype(first: &Tensor, tensor: &Tensor, place: String, at: &At<'_>, sink: &mut Sink) {
    if first.dtype != tensor.dtype {
        let message = format!("expected data type {}, found {}", first.dtype, tensor.dtype);
        let diagnostic = Diagnostic::error("ark-dtype", message)
            .path(place)
            .related(path(at, "ReadTensors", 0, "DataType"), "as the first operand");
        sink.push(diagnostic.help("insert a `Cast`"));
    }
}

fn expect_output(output: &Tensor, expected: &[i64], at: &At<'_>, sink: &mut Sink) {
    let place = path(at, "WriteTensors", 0, "Shape");
    expect_extents("Shape", &output.shape, expected, place, sink);
}

fn expect_extents(key: &str, found: &[i64], expected: &[i64], place: String, sink: &mut Sink) {
    if found != expected {
        let message = format!("`{key}` of the output must be {expected:?}, found {found:?}");
        sink.push(Diagnostic::error("ark-shape-mismatch", message).path(place));
    }
}
