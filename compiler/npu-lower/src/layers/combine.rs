//! Functions of each element, reductions, windows and concatenations.

use super::Parameters;
use super::build::{Build, Function, Step, Value, along, layout, operator};
use super::bytes::{is_byte, is_clamp, is_shift};
use super::source::{AXES, Draft, Kind, Source, SourceId, View, spread};
use super::view::{Dimension, Whole, dimension, reshaped};
use super::window::Along;
use irc_npu_cost::{Axis, Op as LayerOp, Shape, Window};
use irc_tl::{Binary, NodeKind, Op, ValueId};
use std::collections::BTreeSet;

impl Build<'_> {
    /// A function of each element of its operands.
    pub fn elementwise(
        &mut self,
        index: usize,
        result: ValueId,
        operands: &[ValueId],
        mixes_channels: bool,
    ) -> Step<()> {
        let mut read: Vec<(ValueId, Function)> = vec![];
        for &operand in operands {
            if read.iter().any(|(known, _)| *known == operand) {
                continue;
            }
            match self.values[operand.0].clone() {
                Value::Constant => {}
                Value::View(view) => {
                    let function = Function {
                        view,
                        cone: vec![],
                        reduces: mixes_channels,
                        is_statistic: false,
                    };
                    read.push((operand, function));
                }
                Value::Function(function) => {
                    let reduces = function.reduces || mixes_channels;
                    read.push((operand, Function { reduces, ..function }));
                }
            }
        }
        self.join_statistics(&mut read);
        self.join_functions(&mut read);
        let source = read[0].1.view.source;
        if read.iter().any(|(_, function)| function.view.source != source) {
            return self.several(index, result, &read);
        }
        let whole = read.iter().filter(|(_, function)| !function.is_statistic);
        let mut views = whole.map(|(_, function)| &function.view);
        let Some(view) = views.next().cloned() else {
            let mut function = merge(&read, index, read[0].1.view.clone());
            function.is_statistic = true;
            self.values[result.0] = Value::Function(function);
            return Ok(());
        };
        let dims = self.resolved(&view);
        if views.any(|other| self.resolved(other) != dims) {
            return layout("a tensor and another order of its own elements are combined");
        }
        if read.iter().any(|(operand, function)| {
            !function.is_statistic
                && self.shapes[operand.0].iter().product::<u64>() != self.volume(result)
        }) {
            return operator("an operand is repeated along an axis");
        }
        let function = merge(&read, index, view);
        self.place(index, result, function);
        Ok(())
    }

    fn volume(&self, value: ValueId) -> u64 {
        self.shapes[value.0].iter().product()
    }

    /// A statistic of what another operand is a function of counts as one of that operand.
    fn join_statistics(&self, read: &mut [(ValueId, Function)]) {
        let whole = read.iter().find(|(_, function)| !function.is_statistic);
        let Some(source) = whole.map(|(_, function)| function.view.source) else { return };
        let Kind::Layer(draft) = self.sources[source].kind else { return };
        let draft = &self.drafts[draft];
        if !matches!(draft.op, LayerOp::Pointwise) {
            return;
        }
        for (_, function) in read {
            if function.is_statistic && draft.input[..] == [function.view.source] {
                function.view.source = source;
                function.cone.clear();
            }
        }
    }

    /// Functions of layers that are functions of the same bytes count as functions of those bytes.
    fn join_functions(&self, read: &mut [(ValueId, Function)]) {
        if read.iter().any(|(_, function)| function.reduces || function.is_statistic) {
            return;
        }
        // The sources that a function is of, from the last one on, with the nodes up to it.
        let sources = |function: &Function| {
            let mut all = vec![(function.view.source, vec![])];
            while let Some((source, nodes)) = all.last().cloned() {
                let Kind::Layer(draft) = self.sources[source].kind else { break };
                let draft = &self.drafts[draft];
                let (LayerOp::Pointwise, &[before]) = (&draft.op, &draft.input[..]) else { break };
                let is_single = !matches!(self.sources[before].kind, Kind::Joined(_));
                if !is_single || draft.nodes.is_empty() || !self.holds_bytes(before) {
                    break;
                }
                all.push((before, nodes.iter().chain(&draft.nodes).copied().collect()));
            }
            all
        };
        let found: Vec<Vec<(SourceId, Vec<usize>)>> =
            read.iter().map(|(_, function)| sources(function)).collect();
        let has = |all: &[(SourceId, Vec<usize>)], source: SourceId| {
            all.iter().position(|(own, _)| *own == source)
        };
        let Some((shared, _)) =
            found[0].iter().find(|(source, _)| found.iter().all(|all| has(all, *source).is_some()))
        else {
            return;
        };
        for ((_, function), all) in read.iter_mut().zip(&found) {
            let Some(place) = has(all, *shared) else { continue };
            function.view.source = *shared;
            function.cone.extend(&all[place].1);
            function.cone.sort_unstable();
            function.cone.dedup();
        }
    }

    /// Makes a function part of the layer that it is a function of, or a layer, or leaves it for later.
    fn place(&mut self, index: usize, result: ValueId, function: Function) {
        let source = function.view.source;
        if is_byte(self.graph, result) && !function.reduces {
            return self.place_bytes(index, result, function);
        }
        // It may be a part of a function whose results are bytes again.
        if self.holds_bytes(source) && !function.reduces {
            self.values[result.0] = Value::Function(function);
            return;
        }
        if !self.readers.are_covered(self.sources[source].root, &function.cone) {
            self.values[result.0] = Value::Function(function);
            return;
        }
        if let Kind::Layer(draft) = self.sources[source].kind {
            let draft = &mut self.drafts[draft];
            if !function.reduces || matches!(draft.op, LayerOp::Pointwise) {
                draft.nodes.extend(function.cone);
                self.sources[source].root = result;
                self.sources[source].dims = self.resolved(&function.view);
                self.values[result.0] = Value::View(View { moved: None, ..function.view });
                return;
            }
        }
        let view = self.pointwise(index, result, function.view, function.cone);
        self.values[result.0] = Value::View(view);
    }

    /// Places a function of each element whose results are bytes.
    fn place_bytes(&mut self, index: usize, result: ValueId, function: Function) {
        let source = function.view.source;
        let root = self.sources[source].root;
        let is_of_bytes = is_byte(self.graph, root);
        if is_of_bytes && is_shift(self.graph, &function.cone) {
            self.values[result.0] = Value::Function(function);
            return;
        }
        let is_covered = self.readers.are_covered(root, &function.cone);
        match self.sources[source].kind.clone() {
            // The end of the layer before.
            Kind::Layer(draft)
                if is_covered && (!is_of_bytes || is_clamp(self.graph, &function.cone)) =>
            {
                self.drafts[draft].nodes.extend(function.cone);
                self.sources[source].root = result;
                self.sources[source].dims = self.resolved(&function.view);
                self.values[result.0] = Value::View(View { moved: None, ..function.view });
            }
            _ if self.is_of_channels(&function) => {
                let view = self.each_channel(index, result, function);
                self.values[result.0] = Value::View(view);
            }
            // Every part is quantised as the whole is.
            Kind::Joined(parts) => {
                let parts = parts.into_iter();
                let parts: Vec<SourceId> = parts
                    .map(|part| self.quantised_part(index, result, part, &function.cone))
                    .collect();
                let source = self.source(Kind::Joined(parts), result);
                let dims = self.resolved(&function.view);
                self.set(result, source, dims);
            }
            _ => {
                let view = self.pointwise(index, result, function.view, function.cone);
                self.values[result.0] = Value::View(view);
            }
        }
    }

    /// Whether a function has constants that differ from channel to channel.
    fn is_of_channels(&self, function: &Function) -> bool {
        let dims = self.resolved(&function.view);
        let is_channel = |at: usize| {
            dims[at].iter().all(|atom| {
                matches!(atom.of, Whole::Axis(Axis::Channels) | Whole::Dimension(_) | Whole::Images)
            })
        };
        let mut found = false;
        let nodes = function.cone.iter().map(|node| &self.graph.nodes[*node]);
        for operand in nodes.flat_map(|node| &node.operands) {
            let shape = &self.shapes[operand.0];
            if !matches!(self.values[operand.0], Value::Constant)
                || shape.iter().product::<u64>() == 1
            {
                continue;
            }
            let new = dims.len().saturating_sub(shape.len());
            let mut wide = shape.iter().enumerate().filter(|(_, extent)| **extent != 1);
            found = true;
            if shape.len() > dims.len() || wide.any(|(at, _)| !is_channel(at + new)) {
                return false;
            }
        }
        found
    }

    /// A function that differs from channel to channel: a convolution of one element of each channel.
    fn each_channel(&mut self, index: usize, result: ValueId, function: Function) -> View {
        let Function { view, cone, .. } = function;
        self.assign_default(view.source);
        let dims = self.resolved(&view);
        let source = self.in_order(index, view.source);
        let output = self.shape(source);
        let made = self.depthwise(index, result, source, (Window::POINT, output), cone);
        self.sources[made].dims.clone_from(&dims);
        View { source: made, dims, moved: None }
    }

    /// A convolution of the first element of windows of each channel.
    fn depthwise(
        &mut self,
        index: usize,
        root: ValueId,
        source: SourceId,
        (window, output): (Window, Shape),
        nodes: Vec<usize>,
    ) -> SourceId {
        let channels = output.channels;
        let op = LayerOp::GroupedConv { channels, window, groups: channels };
        let draft = Draft {
            input: vec![source],
            parameters: Some(Parameters::single(vec![0; channels as usize])),
            nodes,
            ..self.draft(index, op, output)
        };
        self.layer(draft, root)
    }

    /// An operand with a constant around its rows and columns.
    pub fn pad(
        &mut self,
        index: usize,
        result: ValueId,
        operand: ValueId,
        before: &[i64],
    ) -> Step<()> {
        let view = self.whole(operand)?;
        self.assign_default(view.source);
        let dims = self.resolved(&view);
        let of = groups(&dims);
        let source = self.arrange(index, &view, [&of[0], &of[1], &of[2]])?;
        let source = self.in_order(index, source);
        let (own, made) = (&self.shapes[operand.0], &self.shapes[result.0]);
        let mut output = self.shape(source);
        // Windows are as long as all that is outside, as they may not begin farther from the operand.
        let (mut padding, mut window) = ([0, 0], Window::POINT);
        for dim in 0..before.len() {
            if (before[dim], own[dim]) == (0, made[dim]) {
                continue;
            }
            let axis = (1..3).find(|axis| of[*axis][..] == [dim]);
            let (Some(axis), Ok(first)) = (axis, u64::try_from(before[dim])) else {
                return operator("padding of other dimensions than rows and columns, or that cuts");
            };
            if made[dim] < own[dim] + first {
                return operator("padding that cuts its operand");
            }
            padding[axis - 1] = first;
            window.kernel[axis - 1] = 1 + made[dim] - own[dim];
            match axis {
                1 => output.rows = made[dim],
                _ => output.columns = made[dim],
            }
        }
        let made = self.depthwise(index, result, source, (window, output), vec![index]);
        if let Kind::Layer(draft) = self.sources[made].kind {
            self.drafts[draft].padding = padding;
        }
        let dims = self.axes_of(result, output, [&of[0], &of[1], &of[2]]);
        self.set(result, made, dims);
        Ok(())
    }

    /// Whether what the NPU stores of a source is bytes.
    fn holds_bytes(&self, source: SourceId) -> bool {
        let Source { kind, root, .. } = &self.sources[source];
        match kind {
            Kind::Joined(parts) => parts.iter().all(|part| self.holds_bytes(*part)),
            _ => is_byte(self.graph, *root),
        }
    }

    /// A part of a concatenation as it is in the quantised whole: the part, if its bytes are the same.
    fn quantised_part(
        &mut self,
        index: usize,
        result: ValueId,
        part: SourceId,
        cone: &[usize],
    ) -> SourceId {
        if let Kind::Joined(parts) = self.sources[part].kind.clone() {
            let parts = parts.into_iter();
            let parts = parts.map(|part| self.quantised_part(index, result, part, cone)).collect();
            return self.source(Kind::Joined(parts), result);
        }
        if self.trace.is_same(self.sources[part].root, result) {
            return part;
        }
        self.assign_default(part);
        // Layers that read several have them in the order of their nodes: that of the parts.
        let node = match self.sources[part].kind {
            Kind::Layer(draft) => self.drafts[draft].node,
            _ => index,
        };
        let draft = Draft {
            input: vec![part],
            nodes: cone.to_vec(),
            ..self.draft(node, LayerOp::Pointwise, self.shape(part))
        };
        self.layer(draft, result)
    }

    /// A function of the results of several layers.
    fn several(&mut self, index: usize, result: ValueId, read: &[(ValueId, Function)]) -> Step<()> {
        let volume = self.volume(result);
        let is_repeated = |(operand, _): &&(ValueId, Function)| self.volume(*operand) != volume;
        if let Some((small, _)) = read.iter().find(is_repeated) {
            let large = read.iter().find(|read| !is_repeated(read)).map(|(large, _)| *large);
            let is_product =
                matches!(self.graph.nodes[index].kind, NodeKind::Op(Op::Binary(Binary::Mul)));
            return match large.filter(|_| is_product && read.len() == 2) {
                Some(large) => self.scale(index, result, large, *small),
                None => operator("an operand is repeated along an axis"),
            };
        }
        let mut sources: Vec<SourceId> = vec![];
        let mut dims: Option<Vec<Dimension>> = None;
        for (operand, _) in read {
            let mut view = self.whole(*operand)?;
            // The model has place for one operand from outside.
            let is_given =
                |source: &SourceId| matches!(self.sources[*source].kind, Kind::Given(..));
            if is_given(&view.source) && sources.iter().any(is_given) {
                view = self.pointwise(index, *operand, view, vec![]);
            }
            let groups = match &dims {
                Some(dims) => groups(dims),
                None => {
                    self.assign_default(view.source);
                    groups(&self.resolved(&view))
                }
            };
            let [channels, rows, columns] = &groups;
            let source = self.arrange(index, &view, [channels, rows, columns])?;
            let source = self.single(index, source);
            if dims.is_none() {
                let own = self.resolved(&view);
                dims = Some(self.arranged_dims(*operand, (view.source, own), source, &groups));
            }
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        let output = self.shape(sources[0]);
        let operands = sources.len() as u64;
        let op = if operands == 1 { LayerOp::Pointwise } else { LayerOp::Eltwise { operands } };
        let draft = Draft { input: sources, nodes: vec![index], ..self.draft(index, op, output) };
        let source = self.layer(draft, result);
        self.set(result, source, dims.unwrap_or_default());
        Ok(())
    }

    /// The dimensions of a value whose view has been arranged as a source: those of the view, or the axes of a layer that
    /// rearranges it.
    pub fn arranged_dims(
        &self,
        value: ValueId,
        (before, dims): (SourceId, Vec<Dimension>),
        source: SourceId,
        groups: &[Vec<usize>; 3],
    ) -> Vec<Dimension> {
        if source == before {
            return dims;
        }
        self.axes_of(value, self.shape(source), [&groups[0], &groups[1], &groups[2]])
    }

    /// The product of a tensor and a factor of each channel: a convolution of each channel whose weights are
    /// a result.
    fn scale(&mut self, index: usize, result: ValueId, large: ValueId, small: ValueId) -> Step<()> {
        let (view, factors) = (self.whole(large)?, self.whole(small)?);
        self.assign_default(view.source);
        let dims = self.resolved(&view);
        let of = groups(&dims);
        let source = self.arrange(index, &view, [&of[0], &of[1], &of[2]])?;
        let dims = self.arranged_dims(large, (view.source, dims), source, &of);
        let source = self.in_order(index, source);
        let output = self.shape(source);
        let all: Vec<usize> = (0..self.shapes[small.0].len()).collect();
        let weights = self.arrange(index, &factors, [&all, &[], &[]])?;
        let shape = self.shape(weights);
        if (shape.channels, shape.rows, shape.columns) != (output.channels, 1, 1) {
            return operator("an operand is repeated along an axis");
        }
        let channels = output.channels;
        let op = LayerOp::GroupedConv { channels, window: Window::POINT, groups: channels };
        let draft = Draft {
            input: vec![source],
            weights: vec![weights],
            nodes: vec![index],
            ..self.draft(index, op, output)
        };
        let source = self.layer(draft, result);
        self.set(result, source, dims);
        Ok(())
    }

    /// A draft without operands.
    pub fn draft(&self, node: usize, op: LayerOp, output: Shape) -> Draft {
        Draft {
            node,
            op,
            output,
            input: vec![],
            weights: vec![],
            parameters: None,
            padding: [0, 0],
            nodes: vec![node],
        }
    }

    /// Whether the last dimension of a view, rather than the second, is the channels of its source.
    fn is_channels_last(&mut self, view: &View) -> bool {
        self.assign_default(view.source);
        let dims = self.resolved(view);
        let is_channels = |dim: &Dimension| match &dim[..] {
            [atom] => atom.of == Whole::Axis(Axis::Channels),
            _ => false,
        };
        dims.last().is_some_and(is_channels) && !dims.get(1).is_some_and(is_channels)
    }

    /// A pool.
    pub fn pool(
        &mut self,
        index: usize,
        result: ValueId,
        operand: ValueId,
        along: &[Along],
    ) -> Step<()> {
        let view = self.whole(operand)?;
        let is_moving =
            |dim: &usize| (along[*dim].kernel, along[*dim].stride, along[*dim].before) != (1, 1, 0);
        let rank = along.len();
        let may_be_last = (1..rank.saturating_sub(1)).any(|dim| is_moving(&dim))
            && rank > 3
            && !is_moving(&(rank - 1));
        let is_last = may_be_last && (is_moving(&1) || self.is_channels_last(&view));
        let spatial: Vec<usize> =
            if is_last { (1..rank - 1).collect() } else { (2..rank).collect() };
        if spatial.len() > 2 || (0..rank).any(|dim| is_moving(&dim) && !spatial.contains(&dim)) {
            return operator("a window over other dimensions than rows and columns");
        }
        let channels = if is_last { rank - 1 } else { 1 };
        let groups: [&[usize]; 3] =
            [&[channels], &spatial[..1.min(spatial.len())], &spatial[1.min(spatial.len())..]];
        let source = self.arrange(index, &view, groups)?;
        let source = self.in_order(index, source);
        let shape = self.shape(source);
        let mut window = Window::POINT;
        let mut output = [shape.rows, shape.columns];
        let mut padding = [0, 0];
        for (at, dim) in spatial.iter().enumerate() {
            (window.kernel[at], window.stride[at]) = (along[*dim].kernel, along[*dim].stride);
            output[at] = self.shapes[result.0][*dim];
            padding[at] = along[*dim].before;
        }
        let output = Shape { rows: output[0], columns: output[1], ..shape };
        let draft = Draft {
            input: vec![source],
            padding,
            ..self.draft(index, LayerOp::Pool(window), output)
        };
        let made = self.layer(draft, result);
        let dims = self.axes_of(result, output, groups);
        self.set(result, made, dims);
        Ok(())
    }

    /// The dimensions of a result whose channels, rows and columns are these, the outermost of them perhaps
    /// together with images; others are images.
    pub fn axes_of(&self, result: ValueId, shape: Shape, groups: [&[usize]; 3]) -> Vec<Dimension> {
        let extents = &self.shapes[result.0];
        let mut dims: Vec<Dimension> = extents
            .iter()
            .map(|extent| if *extent == self.images { self.batch() } else { vec![] })
            .collect();
        for (axis, group) in groups.into_iter().enumerate() {
            let sizes: Vec<u64> = group.iter().map(|dim| extents[*dim]).collect();
            let own = dimension(Whole::Axis(AXES[axis]), along(shape, AXES[axis]));
            let all = match sizes.iter().product::<u64>() == along(shape, AXES[axis]) {
                true => vec![own],
                false => vec![self.batch(), own],
            };
            let parts = reshaped(&all, &sizes).unwrap_or_else(|| spread(AXES[axis], &sizes));
            group.iter().zip(parts).for_each(|(dim, atoms)| dims[*dim] = atoms);
        }
        dims
    }

    /// A concatenation of channels.
    pub fn concatenate(
        &mut self,
        index: usize,
        result: ValueId,
        operands: &[ValueId],
        axis: usize,
    ) -> Step<()> {
        let mut views = vec![];
        for operand in operands {
            // Weights that are joined with a result are read like an input.
            if matches!(self.values[operand.0], Value::Constant) {
                self.give(*operand);
            }
            views.push(self.whole(*operand)?);
        }
        let of = self.groups_of_concatenation(result, operands, &views, axis);
        let (mut sources, mut known) = (vec![], BTreeSet::new());
        for view in &views {
            let source = self.arrange(index, view, [&of[0], &of[1], &of[2]])?;
            sources.push(self.once(index, source, &mut known));
        }
        let source = self.source(Kind::Joined(sources), result);
        let shape = self.shape(source);
        let dims = self.axes_of(result, shape, [&of[0], &of[1], &of[2]]);
        if of[0].first() == Some(&axis) {
            self.set(result, source, dims);
            return Ok(());
        }
        // The parts alternate in the channels of the result: a copy puts them in order.
        let source = self.in_order(index, source);
        let view = View { source, dims, moved: None };
        let view = self.pointwise(index, result, view, vec![index]);
        self.values[result.0] = Value::View(view);
        Ok(())
    }

    /// A source whose parts, of parts as well, are none of those that are known: those that are joined again are copied.
    fn once(&mut self, index: usize, source: SourceId, known: &mut BTreeSet<SourceId>) -> SourceId {
        let Kind::Joined(parts) = self.sources[source].kind.clone() else {
            return if known.insert(source) { source } else { self.copy(index, source) };
        };
        let own: Vec<SourceId> = parts.iter().map(|part| self.once(index, *part, known)).collect();
        if own == parts {
            return source;
        }
        self.source(Kind::Joined(own), self.sources[source].root)
    }

    /// Which dimensions of a concatenation along `axis` are channels, rows and columns. The axis is one of
    /// those that are channels.
    fn groups_of_concatenation(
        &mut self,
        result: ValueId,
        operands: &[ValueId],
        views: &[View],
        axis: usize,
    ) -> [Vec<usize>; 3] {
        let rank = self.shapes[result.0].len();
        let is_stack = operands.iter().all(|operand| self.shapes[operand.0][axis] == 1);
        if is_stack && axis + 2 < rank {
            // Matrices one after the other: their columns are channels, their rows rows.
            return [vec![axis, rank - 1], (axis + 1..rank - 1).collect(), vec![]];
        }
        let is_computed =
            |view: &&View| !matches!(self.sources[view.source].kind, Kind::Given(_, None));
        let reads_axis = |view: &&View| !view.dims[axis].is_empty();
        let known = || views.iter().filter(is_computed);
        let model =
            known().find(reads_axis).or_else(|| known().next()).unwrap_or(&views[0]).clone();
        self.assign_default(model.source);
        let dims = self.resolved(&model);
        let mut of = groups(&dims);
        if of[0] == [axis] {
            return of;
        }
        if dims[axis].is_empty() && of[1..].iter().any(|group| !group.is_empty()) {
            of[0].push(axis);
            of[0].sort_unstable();
            return of;
        }
        let is_other =
            |dim: &usize| *dim != axis && dims[*dim].iter().any(|atom| atom.of != Whole::Images);
        [vec![axis], (0..rank).filter(is_other).collect(), vec![]]
    }
}

/// The function of all that is read, computed by one more node.
fn merge(read: &[(ValueId, Function)], index: usize, view: View) -> Function {
    let mut cone: Vec<usize> =
        read.iter().flat_map(|(_, function)| function.cone.iter().copied()).collect();
    cone.push(index);
    cone.sort_unstable();
    cone.dedup();
    // A function of so many nodes becomes a layer of its own: only their last one matters then.
    if cone.len() > 2 * super::readers::MAX_NODES {
        cone.drain(..cone.len() - super::readers::MAX_NODES - 1);
    }
    let reduces = read.iter().any(|(_, function)| function.reduces);
    Function { view, cone, reduces, is_statistic: false }
}

/// Which dimensions are channels, rows and columns.
pub fn groups(dims: &[Dimension]) -> [Vec<usize>; 3] {
    AXES.map(|axis| {
        let is_of =
            |dim: &usize| dims[*dim].first().is_some_and(|atom| atom.of == Whole::Axis(axis));
        (0..dims.len()).filter(is_of).collect()
    })
}
