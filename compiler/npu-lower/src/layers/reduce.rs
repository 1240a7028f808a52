//! Reductions over axes.

use super::Parameters;
use super::build::{Build, Function, Step, Value, along, layout, operator};
use super::bytes::{is_byte, is_decoding};
use super::combine::groups;
use super::locate::{label, reduction};
use super::source::{AXES, Draft, Kind, View};
use super::view::{Atom, Dimension, Whole};
use irc_npu_cost::{Axis, Op as LayerOp, Shape, Window};
use irc_tl::{NodeKind, Op, Reduction, ValueId};

impl Build<'_> {
    /// A reduction: over channels a statistic, over rows and columns a pool.
    pub fn reduce(
        &mut self,
        index: usize,
        result: ValueId,
        operand: ValueId,
        axes: &[usize],
    ) -> Step<()> {
        let (view, cone) = match self.values[operand.0].clone() {
            Value::Constant => return Ok(()),
            Value::View(view) => (view, vec![]),
            Value::Function(function) => (function.view, function.cone),
        };
        self.assign_default(view.source);
        let dims = self.resolved(&view);
        let reduced = || axes.iter().flat_map(|axis| &dims[*axis]);
        let is_channels = |atom: &Atom| atom.of == Whole::Axis(Axis::Channels);
        if reduced().all(is_channels) && reduced().next().is_some() {
            let mut cone = cone;
            cone.push(index);
            let function = Function { view, cone, reduces: true, is_statistic: true };
            self.values[result.0] = Value::Function(function);
            return Ok(());
        }
        if reduced().any(|atom| atom.of == Whole::Images) {
            return operator("a reduction over images; the NPU reduces rows and columns");
        }
        if reduced().any(is_channels) {
            return operator(
                "a reduction over channels and others; the NPU reduces rows and columns",
            );
        }
        let view = self.reduction_layer(index, result, operand, axes)?;
        self.set(result, view.source, view.dims);
        Ok(())
    }

    /// Whether a node is a sum of integers.
    fn adds_integers(&self, index: usize) -> bool {
        let node = &self.graph.nodes[index];
        let is_integer = |value: &ValueId| self.graph.ty(*value).dtype.is_integer();
        matches!(node.kind, NodeKind::Op(Op::Reduce { kind: Reduction::Sum, .. }))
            && node.operands.iter().all(is_integer)
    }

    /// The layer of a reduction, up to `root`: a pool, or, of channels, a convolution whose weights are 1.
    fn reduction_layer(
        &mut self,
        index: usize,
        root: ValueId,
        operand: ValueId,
        axes: &[usize],
    ) -> Step<View> {
        let view = self.whole(operand)?;
        let dims = self.resolved(&view);
        let of = groups(&dims);
        let source = self.arrange(index, &view, [&of[0], &of[1], &of[2]])?;
        let dims = self.arranged_dims(operand, (view.source, dims), source, &of);
        let source = self.in_order(index, source);
        let shape = self.shape(source);
        let mut kernel = [1; 3];
        for (at, axis) in AXES.iter().enumerate() {
            let group = &of[at];
            if !group.iter().any(|dim| axes.contains(dim)) {
                continue;
            }
            let extents = group.iter().map(|dim| self.shapes[operand.0][*dim]);
            let is_whole = at > 0 || extents.product::<u64>() == shape.channels;
            if !is_whole || !group.iter().all(|dim| axes.contains(dim)) {
                return layout("a reduction over a part of an axis");
            }
            kernel[at] = along(shape, *axis);
        }
        let [_, rows, columns] = kernel;
        let window = Window { kernel: [rows, columns], stride: [rows, columns] };
        let (rows, columns) = (shape.rows / rows, shape.columns / columns);
        let is_sum = of[0].iter().any(|dim| axes.contains(dim));
        let draft = match is_sum {
            true => Draft {
                parameters: Some(Parameters::sum()),
                ..self.draft(
                    index,
                    LayerOp::Conv { channels: shape.channels, window },
                    Shape::new(1, rows, columns),
                )
            },
            false => self.draft(index, LayerOp::Pool(window), Shape { rows, columns, ..shape }),
        };
        let source = self.layer(Draft { input: vec![source], ..draft }, root);
        let keeps = self.shapes[root.0].len() == dims.len();
        let mut left: Vec<Dimension> = vec![];
        for (dim, atoms) in dims.into_iter().enumerate() {
            match axes.contains(&dim) {
                false => left.push(atoms),
                true if keeps => left.push(vec![]),
                true => {}
            }
        }
        self.sources[source].dims.clone_from(&left);
        Ok(View { source, dims: left, moved: None })
    }

    /// A statistic as a view: a sum of the bytes of channels that is quantised, and functions of those bytes.
    pub fn statistic(&mut self, value: ValueId, function: &Function) -> Step<View> {
        let graph = self.graph;
        let found = reduction(graph, &function.cone);
        let of = found.and_then(|node| label(node.origin.as_deref()));
        let of = of.map_or(String::new(), |of| format!(", {of},"));
        let last = function.cone.last().and_then(|last| graph.nodes[*last].origin.as_ref());
        let is_own = found.is_some_and(|node| node.origin.as_ref() == last);
        let wrong = || {
            operator(match is_own {
                true => "a part of it is a sum over channels, as of a convolution whose weights minus their zero points are not from -128 to 127; the NPU adds channels of bytes only".to_owned(),
                false => format!(
                    "the reduction before it{of} is over channels; the NPU does not compare them, and adds those of bytes only"
                ),
            })
        };
        let cone = &function.cone[..];
        let bytes = |node: &usize| is_byte(graph, graph.nodes[*node].results[0]);
        let is_sum = |node: &usize| self.adds_integers(*node);
        let Some(start) = cone.iter().position(is_sum) else { return wrong() };
        let Some(first) = cone[start..].iter().position(bytes) else { return wrong() };
        let (first, last) = (start + first, cone.iter().rposition(bytes).unwrap_or(start + first));
        let one = [&cone[..start], &cone[start + 1..]].map(|nodes| reduction(graph, nodes));
        let node = &graph.nodes[cone[start]];
        let roots = [first, last].map(|at| graph.nodes[cone[at]].results[0]);
        let is_moved = |of: &ValueId| self.shapes[of.0] != self.shapes[node.results[0].0];
        let NodeKind::Op(Op::Reduce { axes, .. }) = &node.kind else { return wrong() };
        if one.iter().any(Option::is_some)
            || !is_decoding(graph, &cone[last + 1..])
            || [roots[0], roots[1], value].iter().any(is_moved)
        {
            return wrong();
        }
        let mut view = match self.values[roots[0].0].clone() {
            Value::View(view) => view,
            _ => {
                let view = self.reduction_layer(cone[start], roots[0], node.operands[0], axes)?;
                if let Kind::Layer(draft) = self.sources[view.source].kind {
                    self.drafts[draft].nodes = cone[start..=first].to_vec();
                }
                self.values[roots[0].0] = Value::View(view.clone());
                view
            }
        };
        if last > first {
            view = match self.values[roots[1].0].clone() {
                Value::View(view) => view,
                _ => self.pointwise(cone[last], roots[1], view, cone[first + 1..=last].to_vec()),
            };
            self.values[roots[1].0] = Value::View(view.clone());
        }
        Ok(view)
    }
}
