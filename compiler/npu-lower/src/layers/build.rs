//! The walk over the nodes of a graph.

use super::Rejected;
use super::bytes::{Encoding, is_byte, is_decoding};
use super::locate::{located, unique};
use super::readers::Readers;
use super::roles::{Role, roles};
use super::source::{Draft, Kind, Source, SourceId, View, extent};
use super::trace::Trace;
use super::view::{Atom, Dimension, Whole, dimension, indices, merged, reshaped};
use super::window;
use irc_diag::Diagnostic;
use irc_npu_cost::{Axis, MAX_BATCH, Op as LayerOp, Shape};
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
pub enum Error {
    /// The NPU does not compute it.
    Operator(String),
    /// It needs another order of axes.
    Layout(String),
    /// The same, because of a node before it.
    Exchange(usize, String),
}

/// The result of a step.
pub type Step<T> = Result<T, Error>;

/// A failure because of the operator.
pub fn operator<T>(message: impl Into<String>) -> Step<T> {
    Err(Error::Operator(message.into()))
}

/// A failure because of the order of axes.
pub fn layout<T>(message: impl Into<String>) -> Step<T> {
    Err(Error::Layout(message.into()))
}

/// The walk.
pub struct Build<'g> {
    pub graph: &'g Graph,
    pub trace: Trace<'g>,
    /// What the host computes of the inputs.
    pub encoding: Encoding,
    pub roles: Vec<Role>,
    pub readers: Readers<'g>,
    /// Extents of the dimensions of every value.
    pub shapes: Vec<Vec<u64>>,
    /// Images of the batch.
    pub images: u64,
    pub values: Vec<Value>,
    pub sources: Vec<Source>,
    pub drafts: Vec<Draft>,
    /// Layers that exchange axes, by source and order.
    pub exchanges: BTreeMap<(SourceId, [u8; 3]), SourceId>,
    /// Some channels of sources.
    pub parts: BTreeMap<(SourceId, u64, u64), SourceId>,
    /// Layers that rearrange channels, by source and channels.
    pub gathers: BTreeMap<(SourceId, Vec<u64>), SourceId>,
    /// Reshapes of given values, by value and extents.
    pub shaped: BTreeMap<(ValueId, Vec<u64>), ValueId>,
}

/// Outputs of the graph, and the sources that they are.
pub type Outputs = Vec<(String, SourceId)>;

/// The layers under construction, and the outputs.
///
/// # Errors
/// See [`super::layers`].
pub fn build(graph: &Graph) -> Result<(Build<'_>, Outputs), Rejected> {
    let shapes = shapes(graph).map_err(|found| Rejected { nodes: vec![], found })?;
    let roles = roles(graph, &shapes);
    let mut build = Build {
        graph,
        trace: Trace::new(graph),
        encoding: Encoding::of(graph, &roles),
        readers: Readers::new(graph),
        images: images(graph, &roles, &shapes),
        roles,
        shapes,
        values: vec![Value::Constant; graph.types.len()],
        sources: vec![],
        drafts: vec![],
        exchanges: BTreeMap::new(),
        parts: BTreeMap::new(),
        gathers: BTreeMap::new(),
        shaped: BTreeMap::new(),
    };
    for (_, value) in &graph.inputs {
        if build.roles[value.0].is_activation {
            build.give(*value);
        }
    }
    let mut rejected = Rejected::default();
    let mut reported: BTreeSet<Option<Arc<str>>> = BTreeSet::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        if build.encoding.is_host[index] {
            let results = node.results.iter();
            let quantised = results.filter(|value| build.encoding.names.contains_key(value));
            quantised.copied().collect::<Vec<_>>().into_iter().for_each(|value| build.give(value));
            continue;
        }
        let Err(failure) = build.node(index, node) else { continue };
        let given = &node.results;
        let (index, node) = match failure {
            Error::Exchange(before, _) => (before, &graph.nodes[before]),
            _ => (index, node),
        };
        rejected.nodes.push(index);
        // A node of the source may be several of the graph: report the first.
        if node.origin.is_none() || reported.insert(node.origin.clone()) {
            rejected.found.push(diagnostic(node, failure));
        }
        given.iter().for_each(|value| build.give(*value));
    }
    let mut outputs = vec![];
    for (name, value) in &graph.outputs {
        match build.whole(*value) {
            Ok(view) => outputs.push((name.clone(), view.source)),
            Err(
                Error::Layout(message) | Error::Exchange(_, message) | Error::Operator(message),
            ) => {
                let message = format!("output '{name}': {message}");
                rejected.found.push(Diagnostic::error("layer-operator", message));
                let mut nodes = graph.nodes.iter();
                rejected.nodes.extend(nodes.rposition(|node| node.results.contains(value)));
            }
        }
    }
    if rejected.found.is_empty() { Ok((build, outputs)) } else { Err(rejected) }
}

/// The extents of all values.
///
/// # Errors
/// `layer-open-size` for those that are not known.
pub fn shapes(graph: &Graph) -> Result<Vec<Vec<u64>>, Vec<Diagnostic>> {
    let extents = |ty: &Type| {
        let extent = |dim: &irc_tl::Dim| dim.known().and_then(|size| u64::try_from(size).ok());
        ty.dims.iter().map(extent).collect::<Option<Vec<u64>>>()
    };
    let is_open = |value: ValueId| extents(graph.ty(value)).is_none();
    let open = graph.inputs.iter().filter(|(_, value)| is_open(*value));
    let mut found: Vec<Diagnostic> = open
        .map(|(name, value)| {
            let message = format!("input '{name}' has an open size: {}", graph.ty(*value));
            let sizes =
                graph.ty(*value).dims.iter().map(|dim| dim.known().unwrap_or(1).to_string());
            let shape = sizes.collect::<Vec<_>>().join("x");
            let help = format!(
                "give its shape, as in --shape {name}={shape}; bounds of a size are not enough"
            );
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

fn diagnostic(node: &Node, failure: Error) -> Diagnostic {
    let (code, message) = match failure {
        Error::Operator(message) => ("layer-operator", message),
        Error::Layout(message) | Error::Exchange(_, message) => ("layer-axes", message),
    };
    located(Diagnostic::error(code, message), node.origin.as_deref())
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
        self.sources.push(Source { kind, root, dims: vec![] });
        self.sources.len() - 1
    }

    /// Adds a layer, and the source that is its result.
    pub fn layer(&mut self, draft: Draft, root: ValueId) -> SourceId {
        self.drafts.push(draft);
        self.source(Kind::Layer(self.drafts.len() - 1), root)
    }

    /// Makes a value the view of a source.
    pub fn set(&mut self, value: ValueId, source: SourceId, dims: Vec<Dimension>) {
        if self.sources[source].root == value {
            self.sources[source].dims.clone_from(&dims);
        }
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
            Op::Reshape { .. } => self.reshape(index, result, operands[0]),
            Op::Transpose { permutation } => {
                self.transpose(index, result, operands[0], permutation)
            }
            Op::Conv(conv) => self.convolution(index, result, operands, conv),
            Op::Matmul { .. } if is_constant(&operands[0]) => operator(
                "the NPU has no transposed convolutions and other products whose left side is constant",
            ),
            Op::Matmul { transpose_lhs, transpose_rhs } => {
                self.product(index, result, operands, [*transpose_lhs, *transpose_rhs])
            }
            Op::Reduce { axes, .. } => self.reduce(index, result, operands[0], axes),
            Op::Slice { offsets, sizes } => {
                let is_unread = self.is_unread(operands[0]);
                let sliced = self.slice(index, result, operands[0], offsets, sizes);
                if sliced.is_err() && is_unread && self.give_part(index, result, operands[0]) {
                    return Ok(());
                }
                sliced
            }
            Op::Compute(compute) => self.compute(index, result, operands, compute),
            // Codes of a byte are the elements of the weights, transposed.
            Op::BlockScaledMatmul { bits: 8, .. }
                if self.graph.ty(operands[0]).dtype.is_float() && is_constant(&operands[1]) =>
            {
                self.product(index, result, &operands[..2], [false, true])
            }
            Op::BlockScaledMatmul { bits, .. } => operator(format!(
                "the NPU has no products of quantised rows or with weights of {bits} bits, scaled in blocks"
            )),
            Op::Update { .. } => operator("the NPU does not replace a part of a tensor"),
            _ => operator(format!("the NPU has no operation for {}", op.name().replace('_', " "))),
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
        if let Some((operand, before)) = window::padding(compute, &shapes) {
            return self.pad(index, result, operands[operand], &before);
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

    /// Whether a value is given, as it is, and no layer has read it.
    fn is_unread(&self, value: ValueId) -> bool {
        let Value::View(view) = &self.values[value.0] else { return false };
        let source = &self.sources[view.source];
        source.root == value && matches!(source.kind, Kind::Given(_, None))
    }

    /// Makes the result of a node that only arranges a given value a given value of its own, which the host computes.
    /// Returns whether it has the images of the batch.
    fn give_part(&mut self, index: usize, result: ValueId, operand: ValueId) -> bool {
        if self.images > 1 && self.shapes[result.0].first() != Some(&self.images) {
            return false;
        }
        let own = self.encoding.names.get(&operand).cloned();
        let own = own.unwrap_or_else(|| format!("value_{}", operand.0));
        let name = unique(&own, &mut self.encoding.used);
        self.encoding.is_host[index] = true;
        self.encoding.names.insert(result, name);
        self.give(result);
        true
    }

    fn reshape(&mut self, index: usize, result: ValueId, operand: ValueId) -> Step<()> {
        let shape = self.shapes[result.0].clone();
        let cut = || Error::Layout(format!("a reshape to {shape:?} cuts an axis of a tensor"));
        let value = match self.values[operand.0].clone() {
            Value::Constant => Value::Constant,
            Value::View(view) => {
                let dims = reshaped(&view.dims, &shape);
                // A dimension of a given value is one of a layer's axes as a whole.
                let own = &self.shapes[operand.0];
                let is_cut = |atom: &Atom| matches!(atom.of, Whole::Dimension(dim) if own[dim] != atom.extent);
                let is_cut = dims.as_ref().is_none_or(|dims| dims.iter().flatten().any(is_cut));
                // All reshapes to the same extents are one given value.
                let key = (operand, shape.clone());
                if let Some(same) = self.shaped.get(&key).filter(|_| is_cut) {
                    self.encoding.is_host[index] = true;
                    self.values[result.0] = self.values[same.0].clone();
                    return Ok(());
                }
                if is_cut && self.is_unread(operand) && self.give_part(index, result, operand) {
                    self.shaped.insert(key, result);
                    return Ok(());
                }
                Value::View(View { dims: dims.ok_or_else(cut)?, ..view })
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
            Value::Function(function) if function.is_statistic => self.statistic(value, &function),
            // Readers read the bytes.
            Value::Function(function) if self.is_decoded(&function) => {
                Ok(View { dims: self.resolved(&function.view), ..function.view })
            }
            Value::Function(Function { view, cone, .. }) => {
                let node = cone.last().copied().unwrap_or_default();
                let view = self.pointwise(node, value, view, cone);
                self.values[value.0] = Value::View(view.clone());
                Ok(view)
            }
        }
    }

    /// Whether a function only undoes the quantisation of bytes.
    pub fn is_decoded(&self, function: &Function) -> bool {
        is_byte(self.graph, self.sources[function.view.source].root)
            && !function.reduces
            && is_decoding(self.graph, &function.cone)
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
        self.sources[source].dims.clone_from(&dims);
        View { source, dims, moved: None }
    }

    /// The shape of a source; of one without axes, its elements as channels.
    pub fn shape(&self, source: SourceId) -> Shape {
        match &self.sources[source].kind {
            Kind::Given(_, Some((_, shape))) => *shape,
            Kind::Given(extents, None) => Shape::new(extents.iter().product(), 1, 1),
            Kind::Layer(draft) => self.drafts[*draft].output,
            Kind::Joined(parts) => {
                // Each once: parts may be joined of parts again.
                let shapes = parts.iter().map(|part| self.shape(*part));
                let joined = shapes
                    .reduce(|all, next| Shape { channels: all.channels + next.channels, ..all });
                joined.unwrap_or(Shape::new(0, 1, 1))
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

    fn slice(
        &mut self,
        index: usize,
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
                // Channels in another order.
                let others = dims.iter().enumerate().filter(|(other, _)| *other != dim);
                let is_channel = |atom: &Atom| atom.of == Whole::Axis(Axis::Channels);
                let is_alone = others.flat_map(|(_, atoms)| atoms).all(|atom| !is_channel(atom));
                let Some(channels) = indices(&dims[dim]).filter(|_| is_alone) else {
                    return layout("a slice cuts several axes");
                };
                let chosen = channels[offset as usize..(offset + size) as usize].to_vec();
                source = self.gather(index, source, chosen)?;
                dims[dim] = dimension(Whole::Axis(Axis::Channels), size);
                continue;
            };
            if atom.of != Whole::Axis(Axis::Channels) || atom.stride * atom.extent != channels {
                return layout("a slice is a range of channels only");
            }
            let (from, to) = (offset * atom.stride, (offset + size) * atom.stride);
            source = self.part(index, source, from, to)?;
            dims[dim] = if size == 1 { vec![] } else { vec![Atom { extent: size, ..atom }] };
        }
        self.values[result.0] = Value::View(View { source, dims, moved: view.moved });
        Ok(())
    }
}

/// The extent of an axis of a source.
pub fn along(shape: Shape, axis: Axis) -> u64 {
    extent(shape, axis)
}
