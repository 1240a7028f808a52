//! Convolutions and matrix products.

use super::Parameters;
use super::arrange::EXCHANGED;
use super::build::{Build, Step, Value, operator};
use super::source::{Draft, SourceId, View, joined};
use super::view::{Atom, Whole, merged};
use irc_npu_cost::{Axis, Op as LayerOp, Shape, Window};
use irc_tl::{Conv, ValueId};

/// The dimensions of a matrix product, of one operand each.
struct Matrix {
    /// Dimensions that are products of their own, for each dimension of the result before the last two.
    batch: Vec<Option<usize>>,
    /// The dimension of the result.
    outer: usize,
    /// The dimension that is summed over.
    inner: usize,
}

impl Build<'_> {
    /// A convolution.
    pub fn convolution(
        &mut self,
        index: usize,
        result: ValueId,
        operands: &[ValueId],
        conv: &Conv,
    ) -> Step<()> {
        let &[x, w] = operands else { return operator("a convolution has two operands") };
        if !matches!(self.values[w.0], Value::Constant) {
            return operator("the weights of a convolution are computed");
        }
        let spatial = conv.strides.len();
        if !(1..=2).contains(&spatial) {
            return operator(format!(
                "a convolution over {spatial} dimensions; the NPU has 1 and 2"
            ));
        }
        if conv.dilations.iter().any(|dilation| *dilation != 1) {
            return operator("a dilated convolution");
        }
        if conv.pads.iter().flatten().any(|pad| *pad < 0) {
            return operator("a convolution that cuts its input");
        }
        // Of quantised elements, the number that stands for 0 need not be 0.
        if conv.outside != 0 && self.graph.ty(x).dtype.is_float() {
            return operator("a convolution that pads its input with other values than 0");
        }
        let view = self.whole(x)?;
        let columns: &[usize] = if spatial == 2 { &[3] } else { &[] };
        let groups: [&[usize]; 3] = [&[1], &[2], columns];
        let mut source = self.arrange(index, &view, groups)?;
        if conv.groups != 1 {
            source = self.in_order(index, source);
        }
        let (shape, filters) = (&self.shapes[result.0], &self.shapes[w.0]);
        let output = Shape::new(shape[1], shape[2], shape.get(3).copied().unwrap_or(1));
        let mut window = Window::POINT;
        let mut padding = [0, 0];
        for at in 0..spatial {
            window.kernel[at] = filters[2 + at];
            window.stride[at] = conv.strides[at].unsigned_abs();
            padding[at] = conv.pads[at][0].unsigned_abs();
        }
        let channels = self.shape(source).channels;
        let op = match conv.groups.unsigned_abs() {
            1 => LayerOp::Conv { channels, window },
            groups => LayerOp::GroupedConv { channels, window, groups },
        };
        let parameters = Some(Parameters::new(w, None, output.channels));
        let draft =
            Draft { input: vec![source], parameters, padding, ..self.draft(index, op, output) };
        let made = self.layer(draft, result);
        let dims = self.axes_of(result, output, groups);
        self.set(result, made, dims);
        Ok(())
    }

    /// A matrix product: of an activation and weights a convolution of one element, or over the whole input;
    /// of two activations a grouped convolution.
    pub fn product(
        &mut self,
        index: usize,
        result: ValueId,
        operands: &[ValueId],
        transposed: [bool; 2],
    ) -> Step<()> {
        let &[lhs, rhs] = operands else { return operator("a product has two operands") };
        let rank = self.shapes[result.0].len();
        let matrix = |value: ValueId, is_outer_last: bool| {
            let own = self.shapes[value.0].len();
            let (outer, inner) =
                if is_outer_last { (own - 1, own - 2) } else { (own - 2, own - 1) };
            let batch = (0..rank - 2).map(|dim| (dim + own).checked_sub(rank)).collect();
            Matrix { batch, outer, inner }
        };
        let left = matrix(lhs, transposed[0]);
        let right = matrix(rhs, !transposed[1]);
        let is_constant = |value: ValueId| matches!(self.values[value.0], Value::Constant);
        // Weights on the left: the product of the transposed operands is the transposed result.
        match (is_constant(lhs), is_constant(rhs)) {
            (true, _) => {
                self.product_of(index, result, (rhs, &right), (lhs, &left), [rank - 1, rank - 2])
            }
            (false, _) => {
                self.product_of(index, result, (lhs, &left), (rhs, &right), [rank - 2, rank - 1])
            }
        }
    }

    /// `places` are the dimensions of the result that are the outer ones of the operand and of the weights.
    fn product_of(
        &mut self,
        index: usize,
        result: ValueId,
        (x, of): (ValueId, &Matrix),
        (w, with): (ValueId, &Matrix),
        [outer, wide]: [usize; 2],
    ) -> Step<()> {
        let view = self.whole(x)?;
        let is_constant = matches!(self.values[w.0], Value::Constant);
        let size =
            |value: ValueId, dim: Option<usize>| dim.map_or(1, |dim| self.shapes[value.0][dim]);
        let products: Vec<usize> =
            (0..with.batch.len()).filter(|dim| size(w, with.batch[*dim]) > 1).collect();
        if is_constant && products.is_empty() {
            return self.dense(index, result, (&view, of), (w, with), [outer, wide]);
        }
        // Dimensions of the batch that are not images are groups, which both operands have.
        let is_images = |view: &View, dim: Option<usize>| {
            dim.is_some_and(|dim| view.dims[dim].iter().any(|atom| atom.of == Whole::Images))
        };
        let groups: Vec<usize> = (0..of.batch.len())
            .filter(|dim| size(x, of.batch[*dim]) > 1 && !is_images(&view, of.batch[*dim]))
            .collect();
        let own: Vec<usize> = groups.iter().filter_map(|dim| of.batch[*dim]).collect();
        if groups.iter().any(|dim| size(w, with.batch[*dim]) != size(x, of.batch[*dim])) {
            return operator("a product repeats an operand for several matrices");
        }
        let mut channels = own.clone();
        channels.push(of.inner);
        let source = self.arrange(index, &view, [&channels, &[of.outer], &[]])?;
        let (count, depth, width) = (
            own.iter().map(|dim| self.shapes[x.0][*dim]).product::<u64>(),
            self.shapes[x.0][of.inner],
            self.shapes[w.0][with.outer],
        );
        let mut weights = vec![];
        let mut parameters = None;
        if is_constant {
            let matrix = Some([with.outer, with.inner]);
            parameters = Some(Parameters::new(w, matrix, count * width));
        } else {
            let view = self.whole(w)?;
            let groups: Vec<usize> = groups.iter().filter_map(|dim| with.batch[*dim]).collect();
            weights = self.weights(index, &view, &groups, with, count * depth)?;
        }
        let output = Shape::new(count * width, self.shapes[x.0][of.outer], 1);
        let op =
            LayerOp::GroupedConv { channels: count * depth, window: Window::POINT, groups: count };
        let draft =
            Draft { input: vec![source], weights, parameters, ..self.draft(index, op, output) };
        let made = self.layer(draft, result);
        let mut channels = groups;
        channels.push(wide);
        let dims = self.axes_of(result, output, [&channels, &[outer], &[]]);
        self.set(result, made, dims);
        Ok(())
    }

    /// The product of an activation and one matrix of weights.
    fn dense(
        &mut self,
        index: usize,
        result: ValueId,
        (view, of): (&View, &Matrix),
        (w, with): (ValueId, &Matrix),
        [outer, wide]: [usize; 2],
    ) -> Step<()> {
        let width = self.shapes[w.0][with.outer];
        let matrix = Some([with.outer, with.inner]);
        let parameters = Some(Parameters::new(w, matrix, width));
        let dims = self.resolved(view);
        if let Some(window) = self.is_everything(view, &dims[of.inner]) {
            let channels = self.shape(view.source).channels;
            let output = Shape::new(width, 1, 1);
            let draft = Draft {
                input: vec![view.source],
                parameters,
                ..self.draft(index, LayerOp::Conv { channels, window }, output)
            };
            let made = self.layer(draft, result);
            let dims = self.axes_of(result, output, [&[wide], &[], &[]]);
            self.set(result, made, dims);
            return Ok(());
        }
        // All other dimensions are rows and columns.
        let mut rest: Vec<(usize, usize)> = vec![];
        for (dim, own) in of.batch.iter().enumerate().chain([(outer, &Some(of.outer))]) {
            let Some(own) = *own else { continue };
            if dims[own].iter().any(|atom| atom.of != Whole::Images) {
                rest.push((own, dim));
            }
        }
        let all: Vec<usize> = rest.iter().map(|(own, _)| *own).collect();
        let cut = match joined(&dims, &all).iter().filter(|atom| atom.of != Whole::Images).count() {
            0 | 1 => all.len(),
            // Rows first, then columns.
            _ => (1..all.len()).find(|cut| joined(&dims, &all[*cut..]).len() == 1).unwrap_or(1),
        };
        let source = self.arrange(index, view, [&[of.inner], &all[..cut], &all[cut..]])?;
        let shape = self.shape(source);
        let output = Shape { channels: width, ..shape };
        let op = LayerOp::Conv { channels: shape.channels, window: Window::POINT };
        let draft = Draft { input: vec![source], parameters, ..self.draft(index, op, output) };
        let made = self.layer(draft, result);
        let results: Vec<usize> = rest.iter().map(|(_, dim)| *dim).collect();
        let dims = self.axes_of(result, output, [&[wide], &results[..cut], &results[cut..]]);
        self.set(result, made, dims);
        Ok(())
    }

    /// The window over a whole source, if a dimension is all its elements in order.
    fn is_everything(&self, view: &View, atoms: &[Atom]) -> Option<Window> {
        let shape = self.shape(view.source);
        if shape.rows * shape.columns == 1 {
            return None;
        }
        let axes = [
            (Axis::Channels, shape.channels),
            (Axis::Rows, shape.rows),
            (Axis::Columns, shape.columns),
        ];
        let all = axes.iter().filter(|(_, extent)| *extent > 1);
        let all = merged(all.map(|(axis, extent)| Atom::whole(Whole::Axis(*axis), *extent)));
        (all == atoms).then_some(Window { kernel: [shape.rows, shape.columns], stride: [1, 1] })
    }

    /// The sources that are the weights of each group: their channels are output channels, their rows input
    /// channels.
    fn weights(
        &mut self,
        index: usize,
        view: &View,
        groups: &[usize],
        with: &Matrix,
        channels: u64,
    ) -> Step<Vec<SourceId>> {
        let mut outputs = groups.to_vec();
        outputs.push(with.outer);
        if groups.is_empty() {
            return Ok(vec![self.arrange(index, view, [&outputs, &[with.inner], &[]])?]);
        }
        if let Some(source) = self.arranged(view, [&outputs, &[with.inner], &[]]) {
            return Ok(vec![source]);
        }
        // Every group is some channels of a result, whose channels and rows are exchanged.
        let mut inputs = groups.to_vec();
        inputs.push(with.inner);
        let Some(source) = self.arranged(view, [&inputs, &[with.outer], &[]]) else {
            return Ok(vec![self.arrange(index, view, [&outputs, &[with.inner], &[]])?]);
        };
        let count: u64 =
            joined(&self.resolved(view), groups).iter().map(|atom| atom.extent).product();
        let depth = channels / count;
        let mut all = vec![];
        for group in 0..count {
            let part = self.part(index, source, group * depth, (group + 1) * depth)?;
            all.push(self.exchange(view.moved.unwrap_or(index), part, EXCHANGED));
        }
        Ok(all)
    }
}
