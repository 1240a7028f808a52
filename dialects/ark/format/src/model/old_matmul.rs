//! Arguments of `Matmul` in the first generation: they repeat what its tensors say.

use irc_diag::Diagnostic;
use jsonc_parser::ast::Value;

use super::shape::{Mnk, mnk};
use super::{Op, OpKind, Tensor};
use crate::json::{At, Reader};

/// Names of the arguments, none of which is read.
pub(super) const NAMES: [&str; 4] = ["InputDimNC", "OtherDimNC", "ShapeMNK", "StridesACDB"];

/// Warns of each argument that says another thing than the tensors of the op, which count.
pub(super) fn check<'t>(reader: &mut Reader<'_>, op: &Op, args: &'t Value<'t>, at: &At<'_>) {
    let ([input, other], [output], OpKind::Matmul) = (&op.reads[..], &op.writes[..], op.kind)
    else {
        return;
    };
    let Some(args) = args.as_object() else { return };
    for property in &args.properties {
        let name = property.name.as_str();
        let Some(derived) = derive(op, name, [input, other, output]) else { continue };
        let value = property.value.as_object().and_then(|arg| arg.get("DIMS"));
        let Some(found) = value.and_then(|value| numbers(&value.value)) else { continue };
        if found != derived {
            let message = format!("`{name}` is {found:?}, the tensors say {derived:?}: they count");
            let finding = Diagnostic::warning("ark-generation", message);
            reader.report(finding, &property.value, &at.key(name), "another shape");
        }
    }
}

/// What the tensors say.
fn derive(op: &Op, name: &str, [input, other, output]: [&Tensor; 3]) -> Option<Vec<i64>> {
    let last = |tensor: &Tensor| tensor.strides.last().copied();
    let flag = |name| op.bool_arg(name).unwrap_or_default();
    Some(match name {
        "InputDimNC" => batch(input),
        "OtherDimNC" => batch(other),
        "ShapeMNK" => {
            let (a, b) = (&input.padded_shape, &other.padded_shape);
            let whole = !a.is_empty() && !b.is_empty();
            let Mnk { m, n, k, .. } =
                whole.then(|| mnk(a, b, flag("TransposeInput"), flag("TransposeOther")))?;
            vec![m, n, k]
        }
        "StridesACDB" => vec![last(input)?, last(output)?, last(output)?, last(other)?],
        _ => return None,
    })
}

/// The two dimensions before the matrices, ones where there are none.
fn batch(tensor: &Tensor) -> Vec<i64> {
    let shape = &tensor.shape;
    let from_end = |back| shape.len().checked_sub(back).map_or(1, |at| shape[at]);
    vec![from_end(4), from_end(3)]
}

fn numbers(value: &Value<'_>) -> Option<Vec<i64>> {
    let number = |value: &Value<'_>| value.as_number_lit()?.value.parse().ok();
    value.as_array()?.elements.iter().map(number).collect()
}
