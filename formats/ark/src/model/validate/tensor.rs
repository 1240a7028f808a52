//! The requirements of ARK's tensor constructor.

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use super::MAX_BUFFER_BYTES;
use crate::model::Tensor;

/// Maximum number of dimensions of a tensor.
const MAX_DIMS: usize = 4;

/// Checks one tensor; returns whether its dimensions are valid.
pub(super) fn check(tensor: &Tensor, at: &At<'_>, sink: &mut Sink) -> bool {
    let before = sink.error_count();
    let dims = tensor.shape.len();
    if !(1..=MAX_DIMS).contains(&dims) {
        let message = format!("a tensor has 1 to {MAX_DIMS} dimensions, found {dims}");
        sink.push(Diagnostic::error("ark-rank", message).path(at.key("Shape").to_string()));
    }
    let lists = [
        ("Strides", &tensor.strides),
        ("Offsets", &tensor.offsets),
        ("PaddedShape", &tensor.padded_shape),
    ];
    for (key, list) in lists {
        if list.len() != dims {
            let found = list.len();
            let message = format!("`{key}` has {found} dimensions, `Shape` has {dims}");
            let diagnostic = Diagnostic::error("ark-rank-mismatch", message)
                .path(at.key(key).to_string())
                .related(at.key("Shape").to_string(), format!("{dims} dimensions here"));
            sink.push(diagnostic);
        }
    }
    if sink.error_count() == before {
        check_extents(tensor, at, sink);
    }
    sink.error_count() == before
}

fn check_extents(tensor: &Tensor, at: &At<'_>, sink: &mut Sink) {
    let before = sink.error_count();
    for (index, &extent) in tensor.shape.iter().enumerate() {
        if extent < 1 {
            let message = format!("dimension {index} is {extent}, every dimension is at least 1");
            let path = at.key("Shape").index(index).to_string();
            sink.push(Diagnostic::error("ark-shape", message).path(path));
        }
    }
    for (index, &offset) in tensor.offsets.iter().enumerate() {
        if offset < 0 {
            let message = format!("offset {offset} of dimension {index} is negative");
            let path = at.key("Offsets").index(index).to_string();
            sink.push(Diagnostic::error("ark-offsets", message).path(path));
        }
    }
    if sink.error_count() > before {
        return;
    }
    (0..tensor.shape.len()).for_each(|index| check_nesting(tensor, index, at, sink));
    if sink.error_count() == before {
        check_size(tensor, at, sink);
    }
}

/// Checks that the shape is within the padded shape, and that within the enclosing view.
fn check_nesting(tensor: &Tensor, index: usize, at: &At<'_>, sink: &mut Sink) {
    let (shape, padded) = (tensor.shape[index], tensor.padded_shape[index]);
    let (offset, stride) = (tensor.offsets[index], tensor.strides[index]);
    if shape > padded {
        let message = format!("padded extent {padded} of dimension {index} is under {shape}");
        let diagnostic = Diagnostic::error("ark-padded-shape", message)
            .path(at.key("PaddedShape").index(index).to_string())
            .related(at.key("Shape").index(index).to_string(), "the extent is here")
            .with_note("every `PaddedShape` is at least `Shape`");
        sink.push(diagnostic);
    } else if offset.checked_add(padded).is_none_or(|end| end > stride) {
        let message = format!(
            "offset {offset} + padded extent {padded} of dimension {index} exceed stride {stride}"
        );
        let diagnostic = Diagnostic::error("ark-strides", message)
            .path(at.key("Strides").index(index).to_string())
            .related(at.key("Offsets").index(index).to_string(), "the offset is here")
            .with_note("`Strides` is the shape of the enclosing view, not element strides");
        sink.push(diagnostic);
    }
}

fn check_size(tensor: &Tensor, at: &At<'_>, sink: &mut Sink) {
    let bytes = tensor.strides.iter().try_fold(u128::from(tensor.dtype.bytes()), |product, &n| {
        product.checked_mul(n as u128).filter(|&product| product <= MAX_BUFFER_BYTES)
    });
    if bytes.is_none() {
        let message = format!("the buffer would be larger than {MAX_BUFFER_BYTES} bytes");
        let diagnostic = Diagnostic::error("ark-buffer-bytes", message)
            .path(at.key("Strides").to_string())
            .with_note(format!("the product of `Strides` times {} bytes", tensor.dtype.bytes()));
        sink.push(diagnostic);
    }
}
