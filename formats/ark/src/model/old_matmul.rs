//! Arguments of `Matmul` in the first generation: they repeat information of its tensors.

use irc_diag::Diagnostic;
use irc_json::{At, Node, Reader};

use super::shape::{Mnk, mnk};
use super::{Op, OpKind, Tensor};

/// Names of the arguments, all of which are ignored.
pub(super) const NAMES: [&str; 4] = ["InputDimNC", "OtherDimNC", "ShapeMNK", "StridesACDB"];

/// Warns about each argument that contradicts the tensors of the op, which take precedence.
pub(super) fn check(reader: &mut Reader<'_>, op: &Op, args: &Node<'_>, at: &At<'_>) {
    let ([input, other], [output], OpKind::Matmul) = (&op.reads[..], &op.writes[..], op.kind)
    else {
        return;
    };
    for member in args.members().unwrap_or_default() {
        let name: &str = &member.key;
        let Some(derived) = derive(op, name, [input, other, output]) else { continue };
        let Some(found) = member.value.get("DIMS").and_then(numbers) else { continue };
        if found != derived {
            let message = format!(
                "`{name}` is {found:?}, but {derived:?} by the tensors, which take precedence"
            );
            let diagnostic = Diagnostic::warning("ark-generation", message);
            reader.report(diagnostic, member.value.span(), &at.key(name), "another shape");
        }
    }
}

/// The value of an argument according to the tensors.
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

/// The two dimensions before the matrices, or ones if there are none.
fn batch(tensor: &Tensor) -> Vec<i64> {
    let shape = &tensor.shape;
    let from_end = |back| shape.len().checked_sub(back).map_or(1, |at| shape[at]);
    vec![from_end(4), from_end(3)]
}

fn numbers(value: &Node<'_>) -> Option<Vec<i64>> {
    let number = |value: &Node<'_>| value.number()?.parse().ok();
    value.elements()?.iter().map(number).collect()
}
