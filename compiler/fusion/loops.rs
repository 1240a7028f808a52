//! What the [`FusionReport`](super::FusionReport) says of kernels that are scalar loops: ops whose sizes are known at
//! run time, and algorithms.
use super::{
    explain::{located, named},
    form::Kind,
    graph::is_general,
    inline::{Inlined, key, why_apart},
    report::{LoopsReport, UnfusedEdge, WhyNot},
};
use irc_dialects::tl;
use irc_mlir::{BlockLike, OperationLike, OperationRef, RegionLike, Value, ValueLike, read};
use irc_tl::{Op, Type};

/// The kernels of a fused function that are loops, in order, with what was inlined into them, and why others were not.
pub fn explain_loops<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    inlined: &Inlined<'c>,
    why_slow: WhySlow<'_>,
) -> (Vec<LoopsReport>, Vec<UnfusedEdge>) {
    let (mut reports, mut edges) = (vec![], vec![]);
    for group in read::body_ops(func) {
        let Some(op) = loops_in(group) else { continue };
        let name = located(op);
        let parts = inlined.get(&key(op)).into_iter().flatten();
        let why = match tl::algorithm_of(op) {
            Ok(Some(_)) => "it is an algorithm".to_owned(),
            _ if has_known_sizes(op) => "no vector schedule covers it".to_owned(),
            _ => format!("its sizes are known at run time: {}", shape_of(op)),
        };
        let types = tl::symbolic_operand_types(op).unwrap_or_default();
        let slow = tl::op_of(op).ok().and_then(|op| why_slow(&op, &types));
        reports.push(LoopsReport {
            slow,
            inlined: parts.map(|(name, location)| named(name, *location)).collect(),
            op: name.clone(),
            why,
        });
        for (at, operand) in op.operands().enumerate() {
            // The operand of the group that an argument of its block stands for.
            let Some(outer) = outer_of(group, operand) else { continue };
            let Some(producer) = read::defining_op(outer).and_then(loops_in) else { continue };
            let why = WhyNot::Condition(why_apart(op, at, producer, outer).to_owned());
            let edge = UnfusedEdge { producer: located(producer), consumer: name.clone(), why };
            if edges.last() != Some(&edge) {
                edges.push(edge);
            }
        }
    }
    (reports, edges)
}

/// Why loops of an op with operands of these types are slow, if they are: the lowering knows.
pub type WhySlow<'w> = &'w dyn Fn(&Op, &[Type]) -> Option<String>;

/// The op of a group of loops.
fn loops_in<'c: 'a, 'a>(group: OperationRef<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    let is_loops = read::string(&group, "kind").as_deref() == Some(Kind::Loops.name());
    if read::op_name(&group) != tl::GROUP || !is_loops {
        return None;
    }
    let block = group.region(0).ok()?.first_block()?;
    block.first_operation().filter(|op| is_general(*op) || tl::op_of(*op).is_ok())
}

fn outer_of<'c: 'a, 'a>(
    group: OperationRef<'c, 'a>,
    operand: Value<'c, 'a>,
) -> Option<Value<'c, 'a>> {
    let block = group.region(0).ok()?.first_block()?;
    let mut arguments = 0..block.argument_count();
    let at =
        arguments.find(|at| block.argument(*at).is_ok_and(|one| Value::from(one) == operand))?;
    group.operand(at).ok()
}

/// Whether all sizes of an op are known when it is compiled.
fn has_known_sizes(op: OperationRef<'_, '_>) -> bool {
    let values = op.operands().chain(op.results().map(Value::from));
    let types: Vec<_> = values.map(|value| tl::type_of(value.r#type())).collect();
    types.iter().all(|ty| ty.as_ref().is_ok_and(|ty| ty.known().is_some()))
}

/// The shape of the first result, as text.
fn shape_of(op: OperationRef<'_, '_>) -> String {
    let result = op.result(0).ok().map(Value::from);
    let ty = result.and_then(|result| tl::type_of(result.r#type()).ok());
    ty.map_or_else(String::new, |ty| ty.to_string())
}
