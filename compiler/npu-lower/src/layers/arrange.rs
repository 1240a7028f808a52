//! Sources in the order of axes that a reader needs.

use super::Parameters;
use super::build::{Build, Error, Step, layout};
use super::bytes::is_byte;
use super::source::{
    AXES, Draft, Kind, Order, SourceId, View, exchanged, extent, joined, order, spread,
};
use super::view::{Atom, Dimension, Whole, dimension, indices};
use irc_npu_cost::{Axis, MAX_BATCH, Op as LayerOp, Shape, Window};

/// The exchange of axes that the NPU has.
pub const EXCHANGED: [Axis; 3] = [Axis::Rows, Axis::Channels, Axis::Columns];

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
                let batch = match dim {
                    0 => format!("a batch of at most {MAX_BATCH} images, "),
                    _ => String::new(),
                };
                return layout(format!(
                    "dimension {dim} of an operand is neither {batch}channels, rows nor columns"
                ));
            }
        }
        let atoms = groups.map(|group| joined(&dims, group));
        let shape = self.shape(view.source);
        match order(&atoms, shape) {
            Some(Order::Same) => Ok(view.source),
            Some(Order::Exchanged(order)) if order == EXCHANGED => {
                Ok(self.exchange(view.moved.unwrap_or(index), view.source, order))
            }
            Some(Order::Exchanged(order)) => {
                let [channels, rows, columns] =
                    order.map(|axis| ["channels", "rows", "columns"][axis as usize]);
                let message = format!(
                    "channels, rows and columns are read from {channels}, {rows} and {columns} of a layer's \
                     result; the NPU exchanges channels and rows only"
                );
                Err(Error::Exchange(view.moved.unwrap_or(index), message))
            }
            None => match gathered(&atoms, shape) {
                Some(channels) => self.gather(view.moved.unwrap_or(index), view.source, channels),
                None => layout(
                    "an operand's channels, rows or columns are not an axis of a layer's result",
                ),
            },
        }
    }

    /// A layer whose channels are these channels of a source: a convolution of one element with weights 0 and 1.
    pub fn gather(&mut self, node: usize, source: SourceId, channels: Vec<u64>) -> Step<SourceId> {
        let shape = self.shape(source);
        if shape.channels > MAX_GATHERED || channels.len() as u64 > MAX_GATHERED {
            return layout(format!(
                "{} channels are read in another order; the NPU rearranges at most {MAX_GATHERED}",
                shape.channels
            ));
        }
        let key = (source, channels);
        if let Some(known) = self.gathers.get(&key) {
            return Ok(*known);
        }
        let output = Shape { channels: key.1.len() as u64, ..shape };
        let draft = Draft {
            input: vec![source],
            parameters: Some(Parameters::single(key.1.clone())),
            ..self.draft(
                node,
                LayerOp::Conv { channels: shape.channels, window: Window::POINT },
                output,
            )
        };
        let made = self.layer(draft, self.sources[source].root);
        self.gathers.insert(key, made);
        Ok(made)
    }

    /// A source whose parts are in the order in which layers read them: inputs first, then layers in the order of their
    /// nodes. Parts that are too early are copied.
    pub fn in_order(&mut self, index: usize, source: SourceId) -> SourceId {
        let mut parts = vec![];
        self.flatten(source, &mut parts);
        let key = |build: &Self, part: SourceId| match build.sources[part].kind {
            Kind::Layer(draft) => (1, build.drafts[draft].node, draft),
            _ => (0, 0, 0),
        };
        let mut last = (0, 0, 0);
        let mut is_same = true;
        for at in 0..parts.len() {
            let own = key(self, parts[at]);
            let repeats = own.0 == 0 && parts[..at].contains(&parts[at]);
            if own < last || own == last && own.0 == 1 || repeats {
                parts[at] = self.copy(index, parts[at]);
                is_same = false;
            }
            last = key(self, parts[at]);
        }
        match is_same {
            true => source,
            false => self.source(Kind::Joined(parts), self.sources[source].root),
        }
    }

    /// The parts of a source, of parts as well.
    fn flatten(&self, source: SourceId, all: &mut Vec<SourceId>) {
        match &self.sources[source].kind {
            Kind::Joined(parts) => parts.iter().for_each(|part| self.flatten(*part, all)),
            _ => all.push(source),
        }
    }

    /// A layer that copies a source.
    pub fn copy(&mut self, index: usize, source: SourceId) -> SourceId {
        self.assign_default(source);
        let draft = Draft {
            input: vec![source],
            nodes: vec![],
            ..self.draft(index, LayerOp::Pointwise, self.shape(source))
        };
        self.layer(draft, self.sources[source].root)
    }

    /// A source that is one tensor: joined bytes are copied.
    pub fn single(&mut self, index: usize, source: SourceId) -> SourceId {
        match self.sources[source].kind {
            Kind::Joined(_) if is_byte(self.graph, self.sources[source].root) => {
                let source = self.in_order(index, source);
                self.copy(index, source)
            }
            _ => source,
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
        let found = match groups.map(of) {
            [Some(channels), Some(rows), Some(columns)] => Some([channels, rows, columns]),
            _ => None,
        };
        // All other dimensions are images, or of extent 1.
        let is_rest = |dim: usize| extents[dim] == 1 || dim == 0 && extents[dim] == self.images;
        let is_whole = |groups: &[Vec<usize>; 3]| {
            (0..extents.len()).all(|dim| groups.iter().any(|of| of.contains(&dim)) || is_rest(dim))
        };
        match found.filter(is_whole) {
            Some(groups) => self.assign(view.source, &groups),
            None => self.assign_default(view.source),
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
    pub fn part(&mut self, index: usize, source: SourceId, from: u64, to: u64) -> Step<SourceId> {
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
                        chosen.push(self.part(index, part, low - first, high - first)?);
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
                    let node = whole.node;
                    let made = self.gather(node, source, (from..to).collect())?;
                    self.parts.insert((source, from, to), made);
                    return Ok(made);
                };
                let first = parameters.channels.start;
                let parameters =
                    Parameters { channels: first + from..first + to, ..parameters.clone() };
                let output = Shape { channels: to - from, ..whole.output };
                let draft = Draft { output, parameters: Some(parameters), ..whole.clone() };
                self.layer(draft, self.sources[source].root)
            }
            Kind::Given(..) => self.gather(index, source, (from..to).collect())?,
        };
        self.parts.insert((source, from, to), made);
        Ok(made)
    }
}

/// The most channels of which a convolution rearranges some.
const MAX_GATHERED: u64 = 4096;

/// The channels of a source that a reader reads as its channels, if its rows and columns are those of the source.
fn gathered(atoms: &[Vec<Atom>; 3], shape: Shape) -> Option<Vec<u64>> {
    let [channels, rows, columns] = atoms;
    let is_axis = |atoms: &Vec<Atom>, axis: Axis| {
        let own = atoms.iter().filter(|atom| atom.of != Whole::Images).copied();
        own.collect::<Vec<_>>() == dimension(Whole::Axis(axis), extent(shape, axis))
    };
    if !is_axis(rows, Axis::Rows) || !is_axis(columns, Axis::Columns) {
        return None;
    }
    let own: Vec<Atom> = channels.iter().filter(|atom| atom.of != Whole::Images).copied().collect();
    indices(&own)
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
