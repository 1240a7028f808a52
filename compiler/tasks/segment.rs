//! Divides the ops of a task into segments, each of which is one kernel.
use super::view::{View, region};
use irc_ark_format::{
    model::{Family, Lane, Op, Region},
    plan::{PlanOp, TaskInfo, tiling},
};

/// A step of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskStep {
    /// Ops that are one kernel.
    Kernel(Segment),
    /// The op at this index moves data between ranks.
    Communicate(usize),
}

/// Ops of a task that are one kernel, and their memory accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Indices of the ops in the task info.
    pub ops: Vec<usize>,
    /// The tiles of each op's result.
    pub grids: Vec<tiling::Grid>,
    /// Windows read from memory.
    pub loads: Vec<View>,
    /// The origin of each operand of each op.
    pub reads: Vec<Vec<Origin>>,
    /// Windows written to memory.
    pub stores: Vec<Store>,
    /// The bytes of `loads`.
    loaded: Vec<Region>,
    /// The bytes of `stores`.
    stored: Vec<Region>,
}

/// The origin of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The load at this index.
    Load(usize),
    /// The result of the op at this position of the segment.
    Value(usize),
}

/// A window written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Position in the segment of the op whose result it is.
    pub op: usize,
    /// The window.
    pub view: View,
    /// Whether the kernel may read other elements of this memory, all before it writes them.
    pub overwrites: bool,
}

/// The steps of a task.
///
/// # Errors
/// The index of an op that cannot be run, and the reason.
pub fn steps(task: &TaskInfo) -> Result<Vec<TaskStep>, (usize, String)> {
    let mut steps = vec![];
    for (index, plan_op) in task.ops.iter().enumerate() {
        match plan_op.op.kind.family() {
            Family::Idle => {}
            Family::Communication(_) => steps.push(TaskStep::Communicate(index)),
            _ => {
                let accesses = Accesses::of(plan_op).map_err(|why| (index, why))?;
                let joined = match steps.last_mut() {
                    Some(TaskStep::Kernel(segment)) => segment.join(task, index, &accesses),
                    _ => false,
                };
                if !joined {
                    let mut segment = Segment::empty();
                    segment.push(task, index, &accesses);
                    steps.push(TaskStep::Kernel(segment));
                }
            }
        }
    }
    Ok(steps)
}

/// The memory accesses of the tasks of one op.
struct Accesses {
    grid: tiling::Grid,
    reads: Vec<(View, Region)>,
    write: (View, Region),
}

impl Accesses {
    fn of(plan_op: &PlanOp) -> Result<Self, String> {
        let op = &plan_op.op;
        let unknown = || format!("how the tasks of {} tile its tensors is not known", op.kind);
        let grid = tiling::grid(plan_op).ok_or_else(unknown)?;
        let [written] = &op.writes[..] else {
            return Err(format!("{}: expected one tensor written", op.kind));
        };
        let (width, tile) = (tiling::extents(op, written)[3], grid.tile[3]);
        if op.kind.row().lane == Lane::CoupledPairs && tile % 2 != 0 && tile < width {
            return Err(format!(
                "{} takes pairs of adjacent elements: expected tiles of an even width, found {tile} \
                 of the row's {width} elements",
                op.kind
            ));
        }
        let read = |index: usize| {
            let view = View::read(op, &grid, index).ok_or_else(unknown)?;
            Ok((view, region(op, &op.reads[index])))
        };
        let reads = (0..op.reads.len()).map(read).collect::<Result<_, String>>()?;
        let view = View::write(op, &grid).ok_or_else(unknown)?;
        Ok(Self { grid, reads, write: (view, region(op, written)) })
    }
}

impl Segment {
    fn empty() -> Self {
        Self {
            ops: vec![],
            grids: vec![],
            loads: vec![],
            reads: vec![],
            stores: vec![],
            loaded: vec![],
            stored: vec![],
        }
    }

    /// Adds an op whose windows are each equal to, or disjoint from, those of the previous ops.
    fn join(&mut self, task: &TaskInfo, index: usize, accesses: &Accesses) -> bool {
        let fits = self.grids[0].counts == accesses.grid.counts
            && accesses.reads.iter().chain([&accesses.write]).all(|(view, bytes)| {
                let mut stores = self.stores.iter().zip(&self.stored);
                stores.all(|(store, stored)| store.view.is_same(view) || !stored.overlaps(bytes))
            });
        if fits {
            self.push(task, index, accesses);
        }
        fits
    }

    fn push(&mut self, task: &TaskInfo, index: usize, accesses: &Accesses) {
        let origins = accesses.reads.iter().map(|(view, bytes)| self.origin(view, bytes)).collect();
        let op = self.ops.len();
        self.ops.push(index);
        self.grids.push(accesses.grid);
        self.reads.push(origins);
        let (view, bytes) = &accesses.write;
        let overwrites = self.loads.iter().zip(&self.loaded).any(|(load, loaded)| {
            loaded.overlaps(bytes) && !(load.is_same(view) && self.is_pointwise(task))
        });
        let store = Store { op, view: view.clone(), overwrites };
        match self.stores.iter_mut().find(|earlier| earlier.view.is_same(view)) {
            Some(earlier) => *earlier = store,
            None => {
                self.stores.push(store);
                self.stored.push(bytes.clone());
            }
        }
    }

    fn origin(&mut self, view: &View, bytes: &Region) -> Origin {
        if let Some(store) = self.stores.iter().find(|store| store.view.is_same(view)) {
            return Origin::Value(store.op);
        }
        if let Some(known) = self.loads.iter().position(|load| load.is_same(view)) {
            return Origin::Load(known);
        }
        self.loads.push(view.clone());
        self.loaded.push(bytes.clone());
        Origin::Load(self.loads.len() - 1)
    }

    /// Whether all ops compute each element of a tile from the same element of their operands, so that they
    /// run as one loop that reads an element before it writes it.
    fn is_pointwise(&self, task: &TaskInfo) -> bool {
        let tile = self.grids[0].tile;
        let ops = self.ops.iter().map(|index| &task.ops[*index].op);
        ops.zip(&self.grids).all(|(op, grid)| grid.tile == tile && is_pointwise(op))
    }
}

fn is_pointwise(op: &Op) -> bool {
    let shape = |tensor: Option<&irc_ark_format::model::Tensor>| {
        tensor.map(|tensor| tiling::four(&tensor.shape))
    };
    let is_own = op.kind.is_elementwise() && op.kind.row().lane != Lane::CoupledPairs;
    is_own
        && match &op.reads[..] {
            [] => false,
            [input] => shape(Some(input)) == shape(op.writes.first()),
            _ => true,
        }
}
