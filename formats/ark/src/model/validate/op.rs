//! Checks an op against the signature of its kind.

use std::ops::RangeInclusive;

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use super::{overlap, tensor};
use crate::model::{Arg, Argument, Op, OpKind, Tensor};

/// Checks one op.
pub(super) fn check(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let before = sink.error_count();
    let row = op.kind.row();
    check_virtual(op, at, sink);
    check_list(op.kind, "ReadTensors", &op.reads, &row.reads, at, sink);
    check_list(op.kind, "WriteTensors", &op.writes, &row.writes, at, sink);
    check_list(op.kind, "ResultTensors", &op.results, &row.results, at, sink);
    check_args(op, at, sink);
    if sink.error_count() > before {
        return;
    }
    check_result(op, at, sink);
    row.check(op, at, sink);
    overlap::check(op, at, sink);
}

fn check_virtual(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let must_be_virtual = op.kind.is_virtual();
    if op.is_virtual != must_be_virtual {
        let message = format!("`IsVirtual` of `{}` must be {must_be_virtual}", op.kind);
        let diagnostic = Diagnostic::error("ark-virtual", message);
        sink.push(diagnostic.path(at.key("IsVirtual").to_string()));
    }
}

fn check_list(
    kind: OpKind,
    key: &'static str,
    tensors: &[Tensor],
    expected: &RangeInclusive<usize>,
    at: &At<'_>,
    sink: &mut Sink,
) {
    let at = at.key(key);
    if !expected.contains(&tensors.len()) {
        let count = match (*expected.start(), *expected.end()) {
            (low, high) if low == high => format!("{low}"),
            (low, _) => format!("at least {low}"),
        };
        let message = format!("`{kind}` takes {count} in `{key}`, found {}", tensors.len());
        sink.push(Diagnostic::error("ark-arity", message).path(at.to_string()));
    }
    for (index, tensor) in tensors.iter().enumerate() {
        tensor::check(tensor, &at.index(index), sink);
    }
}

fn check_args(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let at = at.key("Args");
    let expected = op.kind.row().args;
    for &Argument { name, kind, .. } in expected {
        match op.args.get(name) {
            None => {
                let message =
                    format!("`{}` needs the argument `{name}` of type {}", op.kind, kind.name());
                sink.push(Diagnostic::error("ark-missing-arg", message).path(at.to_string()));
            }
            Some(arg) if arg.kind() != kind => {
                let found = arg.kind().name();
                let message = format!("argument `{name}` must be {}, found {found}", kind.name());
                let diagnostic = Diagnostic::error("ark-arg-type", message);
                sink.push(diagnostic.path(at.key(name).to_string()));
            }
            Some(_) => {}
        }
    }
    for (name, arg) in &op.args {
        if !expected.iter().any(|known| known.name == name) {
            let message = format!("`{}` has no argument `{name}`; it is ignored", op.kind);
            let diagnostic = Diagnostic::warning("ark-unknown-arg", message);
            sink.push(diagnostic.path(at.key(name).to_string()));
        }
        check_arg(arg, &at.key(name), sink);
    }
}

fn check_arg(arg: &Arg, at: &At<'_>, sink: &mut Sink) {
    match arg {
        Arg::Dims(dims) if dims.len() > 4 => {
            let message = format!("DIMS holds at most 4 integers, found {}", dims.len());
            sink.push(Diagnostic::error("ark-arg-value", message).path(at.to_string()));
        }
        Arg::Float(value) if !value.0.is_finite() => {
            let message = format!("the float is {}, which the file format cannot hold", value.0);
            sink.push(Diagnostic::error("ark-null-float", message).path(at.to_string()));
        }
        Arg::Tensor(value) => drop(tensor::check(value, &at.key("TENSOR"), sink)),
        _ => {}
    }
}

/// Checks that the first result is a new name for the first tensor written.
fn check_result(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let (Some(result), Some(written)) = (op.results.first(), op.writes.first()) else { return };
    let differs = [
        ("Buffer", result.buffer.id != written.buffer.id),
        ("DataType", result.dtype != written.dtype),
        ("Shape", result.shape != written.shape),
        ("Strides", result.strides != written.strides),
        ("Offsets", result.offsets != written.offsets),
    ];
    let (result_list, write_list) = (at.key("ResultTensors"), at.key("WriteTensors"));
    for (key, _) in differs.into_iter().filter(|(_, differs)| *differs) {
        let message = format!("`{key}` of the result differs from the tensor written");
        let diagnostic = Diagnostic::error("ark-result-region", message)
            .path(result_list.index(0).key(key).to_string())
            .related(write_list.index(0).key(key).to_string(), "written here")
            .with_note("a result names the memory that was written");
        sink.push(diagnostic);
    }
}
