//! What values are for: weights, or activations and in which order of axes.

use super::window;
use irc_tl::{Graph, NodeKind, Op, ValueId};

/// What the readers of a value take it for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Whether some reader takes it for an activation.
    pub is_activation: bool,
    /// Whether channels are the last dimension rather than the second, if a reader determines it.
    pub channels_last: Option<bool>,
}

/// The roles of all values: found from the readers back, as graphs do not state which inputs are weights.
pub fn roles(graph: &Graph, shapes: &[Vec<u64>]) -> Vec<Role> {
    let mut roles = vec![Role::default(); graph.types.len()];
    for (_, value) in &graph.outputs {
        roles[value.0].is_activation = true;
    }
    let is_constant = constants(graph);
    for node in graph.nodes.iter().rev() {
        let Some(&result) = node.results.first() else { continue };
        match &node.kind {
            NodeKind::Op(Op::Conv(_)) => {
                read(&mut roles, node.operands[0], Some(false));
            }
            NodeKind::Op(Op::Matmul { transpose_rhs, .. }) => {
                let [left, right] = [node.operands[0], node.operands[1]];
                let is_left = !is_constant[left.0] || is_constant[right.0];
                read(&mut roles, if is_left { left } else { right }, is_left.then_some(true));
                // Given bytes are weights if they are one matrix in their order, and else serve as such like a result.
                let ty = graph.ty(right);
                let is_matrix = *transpose_rhs && ty.rank() == 2;
                if is_left && !is_constant[right.0] && ty.dtype.is_integer() && !is_matrix {
                    read(&mut roles, right, None);
                }
            }
            NodeKind::Op(op) => {
                let (role, count) = (roles[result.0], graph.ty(result).elements());
                let repeats = repeats(op, &node.operands, shapes);
                for &operand in &node.operands {
                    let ty = graph.ty(operand);
                    if !role.is_activation || repeats && ty.elements() != count {
                        continue;
                    }
                    let same = ty.dims == graph.ty(result).dims;
                    read(&mut roles, operand, role.channels_last.filter(|_| same));
                }
            }
            _ => node.operands.iter().for_each(|operand| read(&mut roles, *operand, None)),
        }
    }
    roles
}

/// Whether each value depends on no input.
fn constants(graph: &Graph) -> Vec<bool> {
    let mut is_constant = vec![false; graph.types.len()];
    for node in &graph.nodes {
        let is_own = node.operands.iter().all(|value| is_constant[value.0]);
        node.results.iter().for_each(|value| is_constant[value.0] = is_own);
    }
    is_constant
}

/// Whether an operand with fewer elements than the result is one that is repeated, like a bias.
fn repeats(op: &Op, operands: &[ValueId], shapes: &[Vec<u64>]) -> bool {
    match op {
        Op::Compute(compute) => {
            let shapes: Vec<_> = operands.iter().map(|operand| shapes[operand.0].clone()).collect();
            window::is_elementwise(compute, &shapes, &vec![false; operands.len()])
        }
        _ => op.is_elementwise(),
    }
}

fn read(roles: &mut [Role], value: ValueId, channels_last: Option<bool>) {
    let role = &mut roles[value.0];
    role.is_activation = true;
    role.channels_last = role.channels_last.or(channels_last);
}
