//! Builds the [`FusionReport`].
use super::{
    SegmentFusion,
    cost::{self, Cost, Priced, is_fused, kernel},
    form::Form,
    graph::{Function, NodeId},
    inline::{described, name_in_report},
    plan::{Kernel, with_edge},
    report::{AttentionReport, FusionReport, GroupReport, OpName, Step, UnfusedEdge, WhyNot},
    rules::RULES,
    segment::{GraphSegment, Source, outside_as_view},
};
use irc_dialects::tl;
use irc_mlir::{Frame, Location, OperationLike, OperationRef, Value, ValueLike, frames, read};
use std::collections::{BTreeMap, BTreeSet};

/// Names an op of the function a graph was read from.
pub fn name_op(function: &Function<'_, '_>, node: NodeId) -> OpName {
    let node = &function.graph.nodes[node];
    let op = function.ops[node.origins[0]];
    let name = node.op.as_ref().map_or_else(|| read::op_name(&op), described);
    OpName { name, location: location_text(&frames(op.location())) }
}

/// Names an op by itself.
pub fn located(op: OperationRef<'_, '_>) -> OpName {
    named(&name_in_report(op), op.location())
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
            open: body.iter().any(|node| self.is_open(*node)),
            before,
            after,
        };
        let last = results.last().map_or(0, |result| self.placed.nodes[*result]);
        remarks.push((last, format!("group {}", group.headline())));
        remarks.extend(steps.into_iter().map(|(node, step)| (node, format!("fused by {step}"))));
        group
    }

    /// Whether the sizes of a node are open.
    fn is_open(&self, node: usize) -> bool {
        let node = &self.placed.segment.nodes[node];
        let operands = node.operands.iter().map(|edge| self.placed.segment.type_of(edge.source));
        let mut types = operands.chain([&node.ty]);
        types.any(|ty| self.function.extents.are_in(&ty.shape))
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
                    Some(_) if graph.nodes[producer].op.is_none() => {
                        WhyNot::Condition(self.why_outside(producer))
                    }
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

    /// Why an op that is no node of a segment is not in a kernel with its readers.
    fn why_outside(&self, producer: NodeId) -> String {
        let op = self.function.ops[self.function.graph.nodes[producer].origins[0]];
        let name = read::op_name(&op);
        let kind = read::string(&op, "kind").filter(|_| name == tl::GROUP);
        match kind {
            Some(kind) => format!("the producer is in a kernel of its own ({kind})"),
            None if tl::is_view(&op) => outside_as_view(name.trim_start_matches("tl.")),
            None => format!("{name} is not computed by a kernel"),
        }
    }

    fn why_not(&self, node: usize, operand: usize) -> WhyNot {
        let SegmentFusion { plan, variants, .. } = self.fusion;
        match with_edge(&self.placed.segment, variants, plan, node, operand) {
            Err(fact) => WhyNot::Condition(fact),
            Ok(fused) if fused.repeated_matmuls > plan.repeated_matmuls => WhyNot::RepeatsMatmul,
            Ok(_) if self.is_open(node) => {
                WhyNot::Condition("the estimated cost would be higher".to_owned())
            }
            Ok(fused) => WhyNot::Cost { now: plan.cost.total(), fused: fused.cost.total() },
        }
    }
}

/// Has a report describe the kernels of attention of a fused function in place of the groups that they join.
pub fn explain_attention(report: &mut FusionReport, func: OperationRef<'_, '_>) {
    let is_attention = |group: &OperationRef<'_, '_>| {
        read::string(group, "kind").as_deref() == Some(tl::ATTENTION)
    };
    let groups = read::body_ops(func).into_iter().filter(|op| read::op_name(op) == tl::GROUP);
    let (joined, others): (Vec<_>, Vec<_>) = groups.partition(is_attention);
    if joined.is_empty() {
        return;
    }
    let names = |group: &OperationRef<'_, '_>| {
        let mut ops = read::body_ops(*group);
        ops.pop();
        ops.into_iter().map(located).collect::<Vec<_>>()
    };
    let others: BTreeSet<OpName> = others.iter().flat_map(names).collect();
    let attention: Vec<Vec<OpName>> = joined.iter().map(names).collect();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, ops) in attention.iter().enumerate() {
        for op in ops {
            places.entry(&op.location).or_insert(number);
        }
    }
    // A group that is joined is not in the function any more, and computes nodes that the kernel of attention does.
    let kernel_of = |group: &GroupReport| {
        let last = group.ops.last().filter(|last| !others.contains(last))?;
        places.get(last.location.as_str()).copied()
    };
    let mut own: Vec<Vec<GroupReport>> = joined.iter().map(|_| vec![]).collect();
    let mut kernels: BTreeMap<OpName, usize> = BTreeMap::new();
    for group in std::mem::take(&mut report.groups) {
        match kernel_of(&group) {
            None => report.groups.push(group),
            Some(number) => {
                kernels.extend(group.ops.iter().map(|op| (op.clone(), number)));
                own[number].push(group);
            }
        }
    }
    report.unfused.retain(|edge| {
        let [from, to] = [&edge.producer, &edge.consumer].map(|end| kernels.get(end));
        from.is_none() || from != to
    });
    for ((group, ops), own) in joined.into_iter().zip(attention).zip(own) {
        let mut cost = Cost { kernels: 1, ..bytes_of(group) };
        match own.is_empty() {
            true => report.before.kernels += ops.len() as u64,
            false => cost.work = own.iter().map(|group| group.after.work).sum(),
        }
        for group in &own {
            report.after -= group.after;
        }
        report.after += cost;
        let steps = own.into_iter().flat_map(|group| group.steps).collect();
        report.attention.push(AttentionReport { ops, steps });
    }
}

/// The bytes of the operands and results of a group of known sizes.
fn bytes_of(group: OperationRef<'_, '_>) -> Cost {
    let values = group.operands().chain(group.results().map(Value::from));
    let bytes = values.filter_map(|value| {
        tl::type_of(value.r#type()).ok()?.known()?.byte_size().ok().map(|bytes| bytes as u64)
    });
    Cost { bytes: bytes.sum(), ..Cost::default() }
}
