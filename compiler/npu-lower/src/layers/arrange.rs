//! Sources in the order of axes that a reader needs.

use super::Parameters;
use super::build::{Build, Step, layout};
use super::source::{AXES, Draft, Kind, Order, SourceId, View, exchanged, joined, order, spread};
use super::view::{Atom, Dimension, Whole, dimension};
use irc_npu_cost::{Axis, Op as LayerOp, Shape};

impl Build<'_> {
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
