//! The walk over the nodes of a graph.

use super::readers::Readers;
use super::roles::{Role, roles};
use super::source::{
    AXES, Draft, Kind, Order, Source, SourceId, View, exchanged, extent, joined, order, spread,
};
use super::view::{Atom, Dimension, Whole, dimension, merged, reshaped};
use super::{Layers, Operand, Origin, Parameters, window};
use irc_diag::Diagnostic;
use irc_npu_cost::{Axis, MAX_BATCH, Network, Op as LayerOp, Reads, Shape};
use irc_tl::{Compute, Graph, Node, NodeKind, Op, Type, ValueId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a value is.
#[derive(Clone, Debug)]
pub enum Value {
    /// It depends on no activation.
    Constant,
    /// It is a view of a source.
    View(View),
    /// It is a function of the elements of one source that is not part of a layer.
    Function(Function),
}

/// A function of the elements of a source.
#[derive(Clone, Debug)]
pub struct Function {
    /// The source; for a function of every element, with the dimensions of the value.
    pub view: View,
    /// The nodes that compute it, ascending.
    pub cone: Vec<usize>,
    /// Whether it depends on reductions over channels.
    pub reduces: bool,
    /// Whether it is the same for all channels.
    pub is_statistic: bool,
}

/// Why a node is no layer.
pub enum Failure {
    /// The NPU does not compute it.
    Operator(String),
    /// It needs another order of axes.
    Layout(String),
}

/// The result of a step.
pub type Step<T> = Result<T, Failure>;

/// A failure because of the operator.
pub fn operator<T>(message: impl Into<String>) -> Step<T> {
    Err(Failure::Operator(message.into()))
}

/// A failure because of the order of axes.
pub fn layout<T>(message: impl Into<String>) -> Step<T> {
    Err(Failure::Layout(message.into()))
}

/// Whether a node only changes dimensions.
pub fn is_view(kind: &NodeKind) -> bool {
    matches!(kind, NodeKind::Op(Op::Reshape { .. } | Op::Transpose { .. }))
}

/// The walk.
pub struct Build<'g> {
    pub graph: &'g Graph,
    pub roles: Vec<Role>,
    pub readers: Readers<'g>,
    /// Extents of the dimensions of every value.
    pub shapes: Vec<Vec<u64>>,
    /// Images of the batch.
    pub images: u64,
    pub values: Vec<Value>,
    pub sources: Vec<Source>,
    pub drafts: Vec<Draft>,
    exchanges: BTreeMap<(SourceId, [u8; 3]), SourceId>,
    parts: BTreeMap<(SourceId, u64, u64), SourceId>,
}

/// See [`super::layers`].
pub fn build(graph: &Graph) -> Result<Layers, Vec<Diagnostic>> {
    let shapes = shapes(graph)?;
    let roles = roles(graph, &shapes);
    let mut build = Build {
        graph,
        readers: Readers::new(graph),
        images: images(graph, &roles, &shapes),
        roles,
        shapes,
        values: vec![Value::Constant; graph.types.len()],
        sources: vec![],
        drafts: vec![],
        exchanges: BTreeMap::new(),
        parts: BTreeMap::new(),
    };
    for (_, value) in &graph.inputs {
        if build.roles[value.0].is_activation {
            build.give(*value);
        }
    }
    let mut found = vec![];
    let mut reported: BTreeSet<Option<Arc<str>>> = BTreeSet::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let Err(failure) = build.node(index, node) else { continue };
        // A node of the source may be several of the graph: report the first.
        if node.origin.is_none() || reported.insert(node.origin.clone()) {
            found.push(diagnostic(node, failure));
        }
        node.results.iter().for_each(|value| build.give(*value));
    }
    let mut outputs = vec![];
    for (name, value) in &graph.outputs {
        match build.whole(*value) {
            Ok(view) => outputs.push((name.clone(), view.source)),
            Err(Failure::Layout(message) | Failure::Operator(message)) => {
                found.push(Diagnostic::error(
                    "layer-operator",
                    format!("output '{name}': {message}"),
                ));
            }
        }
    }
    if !found.is_empty() {
        return Err(found);
    }
    build.finish(&outputs)
}

/// The extents of all values.
fn shapes(graph: &Graph) -> Result<Vec<Vec<u64>>, Vec<Diagnostic>> {
    let extents = |ty: &Type| {
        let extent = |dim: &irc_tl::Dim| dim.known().and_then(|size| u64::try_from(size).ok());
        ty.dims.iter().map(extent).collect::<Option<Vec<u64>>>()
    };
    let is_open = |value: ValueId| extents(graph.ty(value)).is_none();
    let open = graph.inputs.iter().filter(|(_, value)| is_open(*value));
    let mut found: Vec<Diagnostic> = open
        .map(|(name, value)| {
            let message = format!("input '{name}' has an open size: {}", graph.ty(*value));
            let help = format!("give its shape, as in --shape {name}=1x3x224x224");
            Diagnostic::error("layer-open-size", message).help(help)
        })
        .collect();
    let all: Option<Vec<_>> = graph.types.iter().map(extents).collect();
    if let (true, Some(all)) = (found.is_empty(), all) {
        return Ok(all);
    }
    if found.is_empty() {
        let results = |node: &&Node| node.results.iter().any(|value| is_open(*value));
        let origin = graph.nodes.iter().find(results).and_then(|node| node.origin.clone());
        let message = "the size of a result depends on values that are known only at run time";
        found.push(located(Diagnostic::error("layer-open-size", message), origin.as_deref()));
    }
    Err(found)
}

/// The images of the batch: the first dimension of all activations, if they have at least three.
fn images(graph: &Graph, roles: &[Role], shapes: &[Vec<u64>]) -> u64 {
    let inputs = graph.inputs.iter().filter(|(_, value)| roles[value.0].is_activation);
    let shapes: Vec<_> = inputs.map(|(_, value)| &shapes[value.0]).collect();
    let images = shapes.iter().find(|shape| shape.len() > 2).map_or(1, |shape| shape[0]);
    let all = shapes.iter().all(|shape| shape.first() == Some(&images));
    if all && images <= MAX_BATCH { images } else { 1 }
}

fn diagnostic(node: &Node, failure: Failure) -> Diagnostic {
    let (code, message) = match failure {
        Failure::Operator(message) => ("layer-operator", message),
        Failure::Layout(message) => ("layer-axes", message),
    };
    located(Diagnostic::error(code, message), node.origin.as_deref())
}

/// A diagnostic at the node of an origin, which is `path` or `path: node`.
pub fn located(diagnostic: Diagnostic, origin: Option<&str>) -> Diagnostic {
    match origin.map(|origin| origin.split_once(": ").unwrap_or((origin, ""))) {
        Some((path, "")) => diagnostic.path(path),
        Some((path, node)) => {
            let message = format!("{node}: {}", diagnostic.message);
            Diagnostic { message, ..diagnostic }.path(path)
        }
        None => diagnostic,
    }
}

impl Build<'_> {
    /// Makes a value a source of its own.
    pub fn give(&mut self, value: ValueId) {
        let extents = self.shapes[value.0].clone();
        let dims = extents.iter().enumerate().map(|(dim, extent)| match dim {
            0 if self.images > 1 && *extent == self.images => dimension(Whole::Images, *extent),
            _ => dimension(Whole::Dimension(dim), *extent),
        });
        let dims = dims.collect();
        let source = self.source(Kind::Given(extents, None), value);
        self.values[value.0] = Value::View(View { source, dims, moved: None });
    }

    /// Adds a source.
    pub fn source(&mut self, kind: Kind, root: ValueId) -> SourceId {
        self.sources.push(Source { kind, root });
        self.sources.len() - 1
    }

    /// Adds a layer, and the source that is its result.
    pub fn layer(&mut self, draft: Draft, root: ValueId) -> SourceId {
        self.drafts.push(draft);
        self.source(Kind::Layer(self.drafts.len() - 1), root)
    }

    /// Makes a value the view of a source.
    pub fn set(&mut self, value: ValueId, source: SourceId, dims: Vec<Dimension>) {
        self.values[value.0] = Value::View(View { source, dims, moved: None });
    }

    /// The atoms of the images.
    pub fn batch(&self) -> Dimension {
        dimension(Whole::Images, self.images)
    }

    fn node(&mut self, index: usize, node: &Node) -> Step<()> {
        let is_constant = |value: &ValueId| matches!(self.values[value.0], Value::Constant);
        if node.operands.iter().all(is_constant) {
            return Ok(());
        }
        let (NodeKind::Op(op), [result]) = (&node.kind, &node.results[..]) else {
            return operator("the NPU does not compute it");
        };
        let (result, operands) = (*result, &node.operands[..]);
        match op {
            Op::Unary(_)
            | Op::Binary(_)
            | Op::Compare(_)
            | Op::Select
            | Op::Cast { .. }
            | Op::Broadcast { .. } => self.elementwise(index, result, operands, false),
            Op::Rope => self.elementwise(index, result, operands, true),
            Op::Reshape { .. } => self.reshape(result, operands[0]),
            Op::Transpose { permutation } => {
                self.transpose(index, result, operands[0], permutation)
            }
            Op::Conv(conv) => self.convolution(index, result, operands, conv),
            Op::Matmul { transpose_lhs, transpose_rhs } => {
                self.product(index, result, operands, [*transpose_lhs, *transpose_rhs])
            }
            Op::Reduce { axes, .. } => self.reduce(index, result, operands[0], axes),
            Op::Slice { offsets, sizes } => self.slice(result, operands[0], offsets, sizes),
            Op::Compute(compute) => self.compute(index, result, operands, compute),
            _ => operator(format!("the NPU has no operation for {}", op.name())),
        }
    }

    fn compute(
        &mut self,
        index: usize,
        result: ValueId,
        operands: &[ValueId],
        compute: &Compute,
    ) -> Step<()> {
        let shapes: Vec<_> = operands.iter().map(|value| self.shapes[value.0].clone()).collect();
        if let Some((axis, order)) = window::concatenation(compute, &shapes) {
            let operands: Vec<_> = order.into_iter().map(|operand| operands[operand]).collect();
            return self.concatenate(index, result, &operands, axis);
        }
        if let Some((operand, along)) = window::windows(compute) {
            return self.pool(index, result, operands[operand], &along);
        }
        let constant: Vec<bool> =
            operands.iter().map(|value| matches!(self.values[value.0], Value::Constant)).collect();
        match window::is_elementwise(compute, &shapes, &constant) {
            true => self.elementwise(index, result, operands, false),
            false => operator(
                "the NPU computes functions of each element, windows and concatenations of channels only",
            ),
        }
    }

    fn reshape(&mut self, result: ValueId, operand: ValueId) -> Step<()> {
        let shape = self.shapes[result.0].clone();
        let cut = || Failure::Layout(format!("a reshape to {shape:?} cuts an axis of a tensor"));
        let value = match self.values[operand.0].clone() {
            Value::Constant => Value::Constant,
            Value::View(view) => {
                let dims = reshaped(&view.dims, &shape).ok_or_else(cut)?;
                Value::View(View { dims, ..view })
            }
            // A statistic has no dimensions of its own.
            Value::Function(function) if function.is_statistic => Value::Function(function),
            Value::Function(function) => {
                let dims = reshaped(&function.view.dims, &shape).ok_or_else(cut)?;
                let view = View { dims, ..function.view };
                Value::Function(Function { view, ..function })
            }
        };
        self.values[result.0] = value;
        Ok(())
    }

    fn transpose(
        &mut self,
        index: usize,
        result: ValueId,
        operand: ValueId,
        permutation: &[usize],
    ) -> Step<()> {
        let turned = |view: View| View {
            dims: permutation.iter().map(|dim| view.dims[*dim].clone()).collect(),
            moved: view.moved.or(Some(index)),
            ..view
        };
        self.values[result.0] = match self.values[operand.0].clone() {
            Value::Constant => Value::Constant,
            Value::View(view) => Value::View(turned(view)),
            Value::Function(function) if function.is_statistic => Value::Function(function),
            Value::Function(function) => {
                Value::Function(Function { view: turned(function.view.clone()), ..function })
            }
        };
        Ok(())
    }

    /// A value as a view, for readers that need it in memory.
    pub fn whole(&mut self, value: ValueId) -> Step<View> {
        match self.values[value.0].clone() {
            Value::Constant => operator("its operand is a constant"),
            Value::View(view) => Ok(View { dims: self.resolved(&view), ..view }),
            Value::Function(function) if function.is_statistic => operator(
                "a reduction over channels is read by something else than a function of each element",
            ),
            Value::Function(Function { view, cone, .. }) => {
                let node = cone.last().copied().unwrap_or_default();
                let view = self.pointwise(node, value, view, cone);
                self.values[value.0] = Value::View(view.clone());
                Ok(view)
            }
        }
    }

    /// A layer that is a function of each element of a view.
    pub fn pointwise(&mut self, node: usize, root: ValueId, view: View, nodes: Vec<usize>) -> View {
        self.assign_default(view.source);
        let dims = self.resolved(&view);
        let draft = Draft {
            node,
            op: LayerOp::Pointwise,
            output: self.shape(view.source),
            input: vec![view.source],
            weights: vec![],
            parameters: None,
            padding: [0, 0],
            nodes,
        };
        let source = self.layer(draft, root);
        View { source, dims, moved: None }
    }

    /// The shape of a source; of one without axes, its elements as channels.
    pub fn shape(&self, source: SourceId) -> Shape {
        match &self.sources[source].kind {
            Kind::Given(_, Some((_, shape))) => *shape,
            Kind::Given(extents, None) => Shape::new(extents.iter().product(), 1, 1),
            Kind::Layer(draft) => self.drafts[*draft].output,
            Kind::Joined(parts) => {
                let first = self.shape(parts[0]);
                let channels = parts.iter().map(|part| self.shape(*part).channels).sum();
                Shape { channels, ..first }
            }
        }
    }

    /// The dimensions of a view, in axes as far as they are known.
    pub fn resolved(&self, view: &View) -> Vec<Dimension> {
        let Kind::Given(_, Some((axes, _))) = &self.sources[view.source].kind else {
            return view.dims.clone();
        };
        let atom = |atom: &Atom| match atom.of {
            Whole::Dimension(dim) => {
                let of = &axes[dim];
                of.iter()
                    .map(|whole| Atom { stride: atom.stride * whole.stride, of: whole.of, ..*atom })
                    .collect()
            }
            _ => vec![*atom],
        };
        let dims = view.dims.iter();
        dims.map(|dim| merged(dim.iter().flat_map(atom).collect::<Vec<_>>())).collect()
    }

    /// Determines the axes of a given source from which of its dimensions are channels, rows and columns.
    fn assign(&mut self, source: SourceId, groups: &[Vec<usize>; 3]) {
        let images = self.images;
        let Kind::Given(extents, axes) = &mut self.sources[source].kind else { return };
        if axes.is_some() {
            return;
        }
        let mut all: Vec<Dimension> = vec![vec![]; extents.len()];
        let mut shape = [1; 3];
        for (axis, group) in groups.iter().enumerate() {
            let sizes: Vec<u64> = group.iter().map(|dim| extents[*dim]).collect();
            shape[axis] = sizes.iter().product();
            for (dim, atoms) in group.iter().zip(spread(AXES[axis], &sizes)) {
                all[*dim] = atoms;
            }
        }
        if images > 1
            && extents.first() == Some(&images)
            && !groups.iter().flatten().any(|dim| *dim == 0)
        {
            all[0] = dimension(Whole::Images, images);
        }
        *axes = Some((all, shape.into()));
    }

    /// Determines the axes of a given source whose order no reader determines.
    pub fn assign_default(&mut self, source: SourceId) {
        let parts = match &self.sources[source].kind {
            Kind::Joined(parts) => parts.clone(),
            Kind::Layer(_) => return,
            Kind::Given(extents, axes) => {
                if axes.is_none() {
                    let first = usize::from(
                        self.images > 1 || extents.first() == Some(&1) && extents.len() > 1,
                    );
                    let last = self.roles[self.sources[source].root.0].channels_last;
                    let groups = default_groups(extents.len(), first, last);
                    self.assign(source, &groups);
                }
                return;
            }
        };
        parts.into_iter().for_each(|part| self.assign_default(part));
    }

    /// The source whose channels, rows and columns are these dimensions of a view, all others being of extent
    /// 1 or images: that of the view, or a layer that exchanges its axes.
    pub fn arrange(&mut self, index: usize, view: &View, groups: [&[usize]; 3]) -> Step<SourceId> {
        self.assign_by(view, groups);
        let dims = self.resolved(view);
        for (dim, atoms) in dims.iter().enumerate() {
            let is_read = groups.iter().any(|group| group.contains(&dim));
            if !is_read && atoms.iter().any(|atom| atom.of != Whole::Images) {
                return layout(format!(
                    "dimension {dim} of an operand is neither channels, rows nor columns"
                ));
            }
        }
        let atoms = groups.map(|group| joined(&dims, group));
        let shape = self.shape(view.source);
        match order(&atoms, shape) {
            Some(Order::Same) => Ok(view.source),
            Some(Order::Exchanged(order)) => {
                Ok(self.exchange(view.moved.unwrap_or(index), view.source, order))
            }
            None => {
                layout("an operand's channels, rows or columns are not an axis of a layer's result")
            }
        }
    }

    /// As [`Build::arrange`], without a layer that exchanges axes.
    pub fn arranged(&mut self, view: &View, groups: [&[usize]; 3]) -> Option<SourceId> {
        self.assign_by(view, groups);
        let dims = self.resolved(view);
        let atoms = groups.map(|group| joined(&dims, group));
        (order(&atoms, self.shape(view.source))? == Order::Same).then_some(view.source)
    }

    /// Determines the axes of a given source from how a view of it is read, if it has whole dimensions.
    fn assign_by(&mut self, view: &View, groups: [&[usize]; 3]) {
        let Kind::Given(extents, None) = &self.sources[view.source].kind else { return };
        let of = |group: &[usize]| {
            let atoms = joined(&view.dims, group);
            let dim = |atom: &Atom| match atom.of {
                Whole::Dimension(dim) if atom.stride == 1 && atom.extent == extents[dim] => {
                    Some(dim)
                }
                _ => None,
            };
            atoms.iter().map(dim).collect::<Option<Vec<_>>>()
        };
        if let [Some(channels), Some(rows), Some(columns)] = groups.map(of) {
            self.assign(view.source, &[channels, rows, columns]);
        } else {
            self.assign_default(view.source);
        }
    }

    /// A layer that exchanges axes.
    pub fn exchange(&mut self, node: usize, source: SourceId, order: [Axis; 3]) -> SourceId {
        let key = (source, order.map(|axis| axis as u8));
        if let Some(known) = self.exchanges.get(&key) {
            return *known;
        }
        let root = self.sources[source].root;
        let draft = Draft {
            node,
            op: LayerOp::Transpose { order },
            output: exchanged(self.shape(source), order),
            input: vec![source],
            weights: vec![],
            parameters: None,
            padding: [0, 0],
            nodes: vec![node],
        };
        let made = self.layer(draft, root);
        self.exchanges.insert(key, made);
        made
    }

    /// Some channels of a source: those of parts, or of a convolution with constant weights.
    pub fn part(&mut self, source: SourceId, from: u64, to: u64) -> Step<SourceId> {
        if (from, to) == (0, self.shape(source).channels) {
            return Ok(source);
        }
        if let Some(known) = self.parts.get(&(source, from, to)) {
            return Ok(*known);
        }
        let made = match self.sources[source].kind.clone() {
            Kind::Joined(parts) => {
                let (mut first, mut chosen) = (0, vec![]);
                for part in parts {
                    let end = first + self.shape(part).channels;
                    let (low, high) = (from.max(first), to.min(end));
                    if low < high {
                        chosen.push(self.part(part, low - first, high - first)?);
                    }
                    first = end;
                }
                match chosen[..] {
                    [one] => one,
                    _ => self.source(Kind::Joined(chosen), self.sources[source].root),
                }
            }
            Kind::Layer(draft) => {
                let whole = &self.drafts[draft];
                let (LayerOp::Conv { .. }, Some(parameters)) = (&whole.op, &whole.parameters)
                else {
                    return layout(
                        "some channels of a result are read that is not computed from constant weights",
                    );
                };
                let first = parameters.channels.start;
                let parameters =
                    Parameters { channels: first + from..first + to, ..parameters.clone() };
                let output = Shape { channels: to - from, ..whole.output };
                let draft = Draft { output, parameters: Some(parameters), ..whole.clone() };
                self.layer(draft, self.sources[source].root)
            }
            Kind::Given(..) => return layout("only some channels of an input are read"),
        };
        self.parts.insert((source, from, to), made);
        Ok(made)
    }

    fn slice(
        &mut self,
        result: ValueId,
        operand: ValueId,
        offsets: &[i64],
        sizes: &[i64],
    ) -> Step<()> {
        let view = self.whole(operand)?;
        self.assign_default(view.source);
        let mut dims = self.resolved(&view);
        let mut source = view.source;
        for (dim, (offset, size)) in offsets.iter().zip(sizes).enumerate() {
            let (offset, size) = (offset.unsigned_abs(), size.unsigned_abs());
            if size == self.shapes[operand.0][dim] {
                continue;
            }
            let channels = self.shape(source).channels;
            let &[atom] = &dims[dim][..] else {
                return layout("a slice cuts several axes");
            };
            if atom.of != Whole::Axis(Axis::Channels) || atom.stride * atom.extent != channels {
                return layout("a slice is a range of channels only");
            }
            let (from, to) = (offset * atom.stride, (offset + size) * atom.stride);
            source = self.part(source, from, to)?;
            dims[dim] = if size == 1 { vec![] } else { vec![Atom { extent: size, ..atom }] };
        }
        self.values[result.0] = Value::View(View { source, dims, moved: view.moved });
        Ok(())
    }

    /// The network of all layers that outputs depend on.
    fn finish(self, outputs: &[(String, SourceId)]) -> Result<Layers, Vec<Diagnostic>> {
        let mut wanted = vec![false; self.drafts.len()];
        let mut pending: Vec<SourceId> = outputs.iter().map(|(_, source)| *source).collect();
        while let Some(source) = pending.pop() {
            match &self.sources[source].kind {
                Kind::Joined(parts) => pending.extend(parts),
                Kind::Layer(draft) if !wanted[*draft] => {
                    wanted[*draft] = true;
                    pending.extend(
                        self.drafts[*draft].input.iter().chain(&self.drafts[*draft].weights),
                    );
                }
                _ => {}
            }
        }
        let mut order: Vec<usize> = (0..self.drafts.len()).filter(|draft| wanted[*draft]).collect();
        order.sort_by_key(|draft| (self.drafts[*draft].node, *draft));
        let mut made = Finished {
            build: &self,
            network: Network::new("model"),
            origins: vec![],
            layers: vec![None; self.drafts.len()],
            names: self.graph.inputs.iter().map(|(name, _)| name.clone()).collect(),
            found: vec![],
        };
        order.into_iter().for_each(|draft| made.add(draft));
        let mut last = vec![];
        for (name, source) in outputs {
            let mut parts = vec![];
            made.parts(*source, &mut parts);
            for part in parts {
                if let Operand::Layer(layer) = part {
                    last.push((name.clone(), layer));
                }
            }
        }
        if made.found.is_empty() && made.origins.is_empty() {
            made.found.push(Diagnostic::error(
                "layer-operator",
                "the model has nothing that the NPU computes",
            ));
        }
        let Finished { network, origins, found, .. } = made;
        if !found.is_empty() {
            return Err(found);
        }
        Ok(Layers { network, origins, images: self.images, outputs: last })
    }
}

/// Channels, rows and columns of an input of `rank` dimensions whose order no layer determines; `first` is
/// the first dimension that is not the batch.
fn default_groups(rank: usize, first: usize, channels_last: Option<bool>) -> [Vec<usize>; 3] {
    let dims: Vec<usize> = (first..rank).collect();
    let is_last = channels_last.unwrap_or(dims.len() < 3);
    match (&dims[..], is_last) {
        ([], _) => [vec![], vec![], vec![]],
        ([channels], _) => [vec![*channels], vec![], vec![]],
        ([channels, rows], false) => [vec![*channels], vec![*rows], vec![]],
        ([rows, channels], true) => [vec![*channels], vec![*rows], vec![]],
        ([channels, rows, columns @ ..], false) => [vec![*channels], vec![*rows], columns.to_vec()],
        ([groups @ .., rows, channels], true) => {
            [groups.iter().copied().chain([*channels]).collect(), vec![*rows], vec![]]
        }
    }
}

/// The network under construction.
struct Finished<'b, 'g> {
    build: &'b Build<'g>,
    network: Network,
    origins: Vec<Origin>,
    /// The layer of each draft.
    layers: Vec<Option<usize>>,
    names: BTreeSet<String>,
    found: Vec<Diagnostic>,
}

impl Finished<'_, '_> {
    fn parts(&self, source: SourceId, parts: &mut Vec<Operand>) {
        match &self.build.sources[source].kind {
            Kind::Joined(all) => all.iter().for_each(|part| self.parts(*part, parts)),
            Kind::Layer(draft) => parts.extend(self.layers[*draft].map(Operand::Layer)),
            Kind::Given(..) => {
                let value = self.build.sources[source].root;
                let mut inputs = self.build.graph.inputs.iter();
                let name = inputs.find(|(_, input)| *input == value).map(|(name, _)| name.clone());
                let name = name.unwrap_or_else(|| format!("value_{}", value.0));
                let channels = self.build.shape(source).channels;
                parts.push(Operand::Value { value, name, channels });
            }
        }
    }

    fn add(&mut self, index: usize) {
        let draft = &self.build.drafts[index];
        let (mut operands, mut weights) = (vec![], vec![]);
        draft.input.iter().for_each(|source| self.parts(*source, &mut operands));
        draft.weights.iter().for_each(|source| self.parts(*source, &mut weights));
        operands.sort_by_key(|operand| match operand {
            Operand::Value { .. } => 0,
            Operand::Layer(layer) => layer + 1,
        });
        let layers = |operands: &[Operand]| -> Vec<usize> {
            let layer = |operand: &Operand| match operand {
                Operand::Layer(layer) => Some(*layer),
                Operand::Value { .. } => None,
            };
            operands.iter().filter_map(layer).collect()
        };
        let origin = self.build.graph.nodes[draft.node].origin.clone();
        let layer =
            irc_npu_cost::Layer::new(self.name(origin.as_deref()), draft.op.clone(), draft.output);
        let external = self.external(draft);
        let (inputs, weights) = (layers(&operands), layers(&weights));
        let reads = Reads { inputs: &inputs, external, weights: &weights };
        match self.network.add_reading(layer, reads) {
            Ok(layer) => {
                self.layers[index] = Some(layer);
                let mut nodes = draft.nodes.clone();
                nodes.sort_unstable();
                nodes.dedup();
                let last = nodes.last().copied().unwrap_or(draft.node);
                self.origins.push(Origin {
                    result: self.build.graph.nodes[last].results[0],
                    nodes,
                    operands,
                    parameters: draft.parameters.clone(),
                    padding: draft.padding,
                });
            }
            Err(diagnostic) => self.found.push(located(*diagnostic, origin.as_deref())),
        }
    }

    /// The shape of what a layer reads from outside.
    fn external(&self, draft: &Draft) -> Option<Shape> {
        let mut given = vec![];
        draft.input.iter().for_each(|source| self.given(*source, &mut given));
        let shapes = given.into_iter().map(|source| self.build.shape(source));
        shapes.reduce(|all, next| Shape { channels: all.channels + next.channels, ..all })
    }

    fn given(&self, source: SourceId, found: &mut Vec<SourceId>) {
        match &self.build.sources[source].kind {
            Kind::Joined(all) => all.iter().for_each(|part| self.given(*part, found)),
            Kind::Layer(_) => {}
            Kind::Given(..) => found.push(source),
        }
    }

    /// A name that is one word and unique: that of the node, or its path.
    fn name(&mut self, origin: Option<&str>) -> String {
        let (path, node) =
            origin.map_or(("layer", ""), |origin| origin.split_once(": ").unwrap_or((origin, "")));
        let own = node.split_once('\'').and_then(|(_, name)| name.strip_suffix('\''));
        let own = own.filter(|name| !name.is_empty()).unwrap_or(path);
        let name: String = own.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
        let mut unique = name.clone();
        let mut number = 2;
        while !self.names.insert(unique.clone()) {
            unique = format!("{name}_{number}");
            number += 1;
        }
        unique
    }
}

/// The extent of an axis of a source.
pub fn along(shape: Shape, axis: Axis) -> u64 {
    extent(shape, axis)
}
