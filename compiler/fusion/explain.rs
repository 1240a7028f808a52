//! Builds the [`FusionReport`].
use super::{
    SegmentFusion,
    cost::{self, Cost, Priced, is_fused, kernel},
    form::Form,
    graph::{Function, NodeId},
    plan::{Kernel, with_edge},
    report::{FusionReport, GroupReport, OpName, Step, UnfusedEdge, WhyNot},
    rules::RULES,
    segment::{GraphSegment, Source},
};
use irc_mlir::{Frame, Location, OperationLike, OperationRef, frames, read};

/// Names an op of the function a graph was read from.
pub fn name_op(function: &Function<'_, '_>, node: NodeId) -> OpName {
    let node = &function.graph.nodes[node];
    let op = function.ops[node.origins[0]];
    let name =
        node.op.as_ref().map_or_else(|| read::op_name(&op), |op| format!("tl.{}", op.name()));
    OpName { name, location: location_text(&frames(op.location())) }
}

/// Names an op by itself.
pub fn located(op: OperationRef<'_, '_>) -> OpName {
    named(&read::op_name(&op), op.location())
}

/// An op of a name and a location.
pub fn named(name: &str, location: Location<'_>) -> OpName {
    OpName { name: name.to_owned(), location: location_text(&frames(location)) }
}

fn is_constant(function: &Function<'_, '_>, node: NodeId) -> bool {
    let origin = function.graph.nodes[node].origins[0];
    read::op_name(&function.ops[origin]) == "tl.constant"
}

/// `path at file:line:column`, of the innermost name and file.
fn location_text(frames: &[Frame]) -> String {
    let name = frames.iter().find_map(|frame| match frame {
        Frame::Name(name) => Some(name.clone()),
        Frame::File { .. } => None,
    });
    let file = frames.iter().find_map(|frame| match frame {
        Frame::File { name, line, column } => Some(format!("{name}:{line}:{column}")),
        Frame::Name(_) => None,
    });
    match (name, file) {
        (Some(name), Some(file)) => format!("{name} at {file}"),
        (one, other) => one.or(other).unwrap_or_default(),
    }
}

/// A remark about an op.
pub type Remark = (NodeId, String);

/// Adds a segment to a report. Returns the same information as remarks about ops.
pub fn explain_segment(
    report: &mut FusionReport,
    function: &Function<'_, '_>,
    placed: &GraphSegment,
    fusion: &SegmentFusion,
) -> Vec<Remark> {
    let explained = Explained { function, placed, fusion, alone: alone(placed) };
    let mut remarks = Vec::new();
    for kernel in &fusion.plan.kernels {
        let group = explained.group(kernel, &mut remarks);
        report.after += group.after;
        report.groups.push(group);
    }
    report.before += cost::unfused(&placed.segment, &explained.alone);
    explained.unfused(&mut report.unfused, &mut remarks);
    remarks
}

/// The form of every node as a kernel of its own.
fn alone(placed: &GraphSegment) -> Vec<Form> {
    let nodes = placed.segment.nodes.iter().enumerate();
    let form = |(index, node): (usize, &super::segment::SegmentNode)| {
        placed.segment.combine(index, &vec![None; node.operands.len()])
    };
    nodes.map(|node| form(node).expect("every op can be a kernel of its own")).collect()
}

struct Explained<'e, 'c, 'a> {
    function: &'e Function<'c, 'a>,
    placed: &'e GraphSegment,
    fusion: &'e SegmentFusion,
    alone: Vec<Form>,
}

impl Explained<'_, '_, '_> {
    fn name(&self, node: usize) -> OpName {
        name_op(self.function, self.placed.nodes[node])
    }

    fn group(&self, chosen: &Kernel, remarks: &mut Vec<Remark>) -> GroupReport {
        let Kernel { results, body, form } = chosen;
        let (segment, masks) = (&self.placed.segment, &self.fusion.plan.masks);
        let after = kernel(&Priced { segment, form, body, masks, results });
        let mut before = Cost::default();
        let apart = vec![0; segment.nodes.len()];
        for node in body {
            let (form, body) = (&self.alone[*node], [*node]);
            before += kernel(&Priced { segment, form, body: &body, masks: &apart, results: &body });
        }
        let steps: Vec<_> = body.iter().flat_map(|node| self.steps(*node)).collect();
        let group = GroupReport {
            kind: form.kind.name().to_owned(),
            ops: body.iter().map(|node| self.name(*node)).collect(),
            results: results.len(),
            steps: steps.iter().map(|(_, step)| step.clone()).collect(),
            slow: body.iter().find_map(|node| segment.why_slow(*node)),
            before,
            after,
        };
        let last = results.last().map_or(0, |result| self.placed.nodes[*result]);
        remarks.push((last, format!("group {}", group.headline())));
        remarks.extend(steps.into_iter().map(|(node, step)| (node, format!("fused by {step}"))));
        group
    }

    fn steps(&self, node: usize) -> Vec<(NodeId, Step)> {
        let (segment, plan) = (&self.placed.segment, &self.fusion.plan);
        let mut steps = Vec::new();
        for (operand, edge) in segment.nodes[node].operands.iter().enumerate() {
            let (Source::Node(from), true) = (edge.source, is_fused(plan.masks[node], operand))
            else {
                continue;
            };
            let (producer, together) = (&plan.forms[from], &plan.forms[node]);
            // The rule that was applied to a producer of the final form.
            let about = |rule: &str| {
                RULES.iter().any(|row| row.name == rule && row.producer == producer.kind)
            };
            let fired = self.fusion.firings.iter().find(|firing| {
                (firing.node, firing.operand) == (node, operand) && about(&firing.rule)
            });
            let rule = fired.map_or_else(String::new, |firing| firing.rule.clone());
            let facts = vec![format!("producer is {producer}"), format!("together {together}")];
            let (producer, consumer) = (self.name(from), self.name(node));
            steps.push((self.placed.nodes[node], Step { rule, producer, consumer, facts }));
        }
        steps
    }

    fn unfused(&self, found: &mut Vec<UnfusedEdge>, remarks: &mut Vec<Remark>) {
        let (segment, graph) = (&self.placed.segment, &self.function.graph);
        for (node, consumer) in segment.nodes.iter().enumerate() {
            for (operand, edge) in consumer.operands.iter().enumerate() {
                if is_fused(self.fusion.plan.masks[node], operand) {
                    continue;
                }
                let producer = match edge.source {
                    Source::Node(from) => Some(self.placed.nodes[from]),
                    Source::Input(input) => graph.makers[self.placed.inputs[input]],
                };
                let Some(producer) = producer else { continue };
                // A constant is in memory whatever is fused.
                if is_constant(self.function, producer) {
                    continue;
                }
                let why = match &edge.cut {
                    Some(fact) => WhyNot::Condition(fact.clone()),
                    None => self.why_not(node, operand),
                };
                let producer = name_op(self.function, producer);
                let edge = UnfusedEdge { producer, consumer: self.name(node), why };
                if found.last() == Some(&edge) {
                    continue;
                }
                remarks.push((self.placed.nodes[node], format!("kept in memory: {edge}")));
                found.push(edge);
            }
        }
    }

    fn why_not(&self, node: usize, operand: usize) -> WhyNot {
        let SegmentFusion { plan, variants, .. } = self.fusion;
        match with_edge(&self.placed.segment, variants, plan, node, operand) {
            Err(fact) => WhyNot::Condition(fact),
            Ok(fused) if fused.repeated_matmuls > plan.repeated_matmuls => WhyNot::RepeatsMatmul,
            Ok(fused) => WhyNot::Cost { now: plan.cost.total(), fused: fused.cost.total() },
        }
    }
}
