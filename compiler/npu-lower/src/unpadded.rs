//! Products without the zeros that kernels of processors need.
//!
//! A front end makes the depth of a product of bytes a multiple of 4, with zeros after the rows of one operand and after
//! the columns of its constant weights. The NPU multiplies any depth.

use irc_tl::{Constant, Graph, Node, NodeKind, Op, Tensor, TensorType, ValueId};
use std::borrow::Cow;

/// A graph whose products have the depth of what is multiplied.
pub fn unpadded(graph: &Graph) -> Cow<'_, Graph> {
    let mut makers: Vec<Option<usize>> = vec![None; graph.types.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        node.results.iter().for_each(|result| makers[result.0] = Some(index));
    }
    let maker = |value: ValueId| makers[value.0].map(|index| &graph.nodes[index]);
    let mut made: Option<Graph> = None;
    for (index, node) in graph.nodes.iter().enumerate() {
        let product = unpadded_product(graph, node, maker);
        let Some((x, weights)) = product else {
            if let Some(made) = &mut made {
                made.nodes.push(node.clone());
            }
            continue;
        };
        let made = made
            .get_or_insert_with(|| Graph { nodes: graph.nodes[..index].to_vec(), ..graph.clone() });
        let constant = Constant::of(&weights);
        let value = ValueId(made.types.len());
        made.types.push(constant.ty.clone().into());
        made.nodes.push(Node {
            kind: NodeKind::Constant(constant),
            operands: vec![],
            results: vec![value],
            origin: node.origin.clone(),
        });
        made.nodes.push(Node { operands: vec![x, value], ..node.clone() });
    }
    match made {
        Some(mut made) => {
            made.prune();
            Cow::Owned(made)
        }
        None => Cow::Borrowed(graph),
    }
}

/// The operand and the weights of a product, if they are padded with zeros.
fn unpadded_product<'g>(
    graph: &Graph,
    node: &Node,
    maker: impl Fn(ValueId) -> Option<&'g Node>,
) -> Option<(ValueId, Tensor)> {
    let NodeKind::Op(Op::Matmul { transpose_lhs: false, transpose_rhs: false }) = node.kind else {
        return None;
    };
    let &[left, right] = &node.operands[..] else { return None };
    let (padded, weights) = (maker(left)?, maker(right)?);
    let (NodeKind::Op(Op::Update { offsets }), NodeKind::Constant(weights)) =
        (&padded.kind, &weights.kind)
    else {
        return None;
    };
    let &[zeros, x] = &padded.operands[..] else { return None };
    let [all, own] = [zeros, x].map(|value| graph.ty(value).known());
    let (all, own) = (all?, own?);
    let depth = usize::try_from(*own.shape.last()?).ok()?;
    let is_after = offsets.iter().all(|offset| *offset == 0)
        && all.shape[..all.rank() - 1] == own.shape[..own.rank() - 1];
    let NodeKind::Op(zeros) = &maker(zeros)?.kind else { return None };
    let are_zeros = zeros.eval(&[]).ok()?.to_f64().iter().all(|element| *element == 0.0);
    let weights = weights.tensor().ok()?;
    let [rows, columns] = *weights.shape() else { return None };
    if !is_after || !are_zeros || all.shape.last() != Some(&rows) {
        return None;
    }
    let end = depth * usize::try_from(columns).ok()? * weights.dtype().size();
    let (kept, rest) = weights.bytes().split_at_checked(end)?;
    if rest.iter().any(|byte| *byte != 0) {
        return None;
    }
    let ty = TensorType::new(weights.dtype(), [depth as i64, columns]);
    Some((x, Tensor::from_bytes(ty, kept).ok()?))
}
