//! Processors and their clocks.
use super::{Bound, Machine, Work, work::OpWork};
use irc_ark_format::plan::{Barriers, Range};

/// Tasks given to some processors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share<'a> {
    /// What a task does.
    pub work: &'a Work,
    /// Number of tasks.
    pub tasks: i64,
    /// Consecutive tasks that go to one processor.
    pub granularity: i64,
    /// Tasks that a processor runs side by side.
    pub slots: i64,
    /// The processors.
    pub processors: Range,
    /// Index, within the range, of the processor with the first task.
    pub start: i64,
}

impl Share<'_> {
    /// Number of granules.
    pub fn granules(&self) -> i64 {
        (self.tasks + self.granularity - 1) / self.granularity
    }

    /// Number of tasks of the processor at an index of the range.
    fn tasks_at(&self, place: i64) -> i64 {
        let len = self.processors.len();
        let first = (place - self.start).rem_euclid(len);
        let granules = (self.granules() - first + len - 1).div_euclid(len).max(0);
        (granules * self.granularity).min(self.tasks)
    }
}

/// The cost of a processor group, by resource.
pub(crate) struct Parts {
    /// Nanoseconds.
    pub time: f64,
    /// Bytes read and written, each once.
    pub traffic: f64,
    /// Bytes of device memory.
    pub bytes: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// How often the busiest processor fills its slots.
    pub waves: i64,
    /// The resource that takes most of the time.
    pub bound: Bound,
}

/// The time of shares that run on their own, without a barrier, in nanoseconds.
pub(crate) fn time(shares: &[Share<'_>], processors: i64, machine: Machine) -> f64 {
    Clock::new(processors, machine).run(Range::new(0, processors), shares).time
}

/// The time at which each processor becomes free, in nanoseconds.
pub(super) struct Clock {
    machine: Machine,
    free: Vec<f64>,
    waits: Barriers,
    barriers: i64,
}

impl Clock {
    pub fn new(processors: i64, machine: Machine) -> Self {
        let free = vec![0.0; usize::try_from(processors).unwrap_or(0)];
        Self { machine, free, waits: Barriers::default(), barriers: 0 }
    }

    /// Number of barriers so far.
    pub fn barriers(&self) -> i64 {
        self.barriers
    }

    /// The time at which the last processor becomes free.
    pub fn end(&self) -> f64 {
        self.free.iter().copied().fold(0.0, f64::max)
    }

    /// Runs the barriers before a group, then its shares.
    pub fn run(&mut self, range: Range, shares: &[Share<'_>]) -> Parts {
        for over in self.waits.before(range) {
            self.barrier(over);
        }
        let machine = self.machine;
        let places = self.places(range);
        let start = self.free[places.clone()].iter().copied().fold(0.0, f64::max);
        let mut spent = [0.0; 4];
        let (mut traffic, mut bytes, mut moved) = (0.0, 0.0, 0.0);
        let (mut flops, mut link) = (0.0, 0.0);
        let mut busy = vec![0.0; self.free.len()];
        let mut filled = vec![0; self.free.len()];
        for share in shares.iter().filter(|share| share.tasks > 0 && !share.processors.is_empty()) {
            let whole = share.tasks as f64 / share.work.tasks.max(1) as f64;
            let full = round(share, share.slots, &machine);
            let most = (0..share.processors.len()).map(|place| share.tasks_at(place)).max();
            let rounds = most.map_or(0, |most| (most + share.slots - 1) / share.slots);
            for (spent, part) in spent.iter_mut().zip(full.by_bound) {
                *spent += part * rounds as f64;
            }
            // Few distinct numbers of tasks occur; each is priced once.
            let mut known: Option<(i64, f64)> = None;
            for place in 0..share.processors.len() {
                let tasks = share.tasks_at(place);
                let time = match known.filter(|(old, _)| *old == tasks) {
                    Some((_, time)) => time,
                    None => {
                        let rest = round(share, tasks % share.slots, &machine).time;
                        (tasks / share.slots) as f64 * full.time + rest
                    }
                };
                known = Some((tasks, time));
                let at = (share.processors.begin + place) as usize;
                if let (Some(busy), Some(filled)) = (busy.get_mut(at), filled.get_mut(at)) {
                    *busy += time;
                    *filled += (tasks + share.slots - 1) / share.slots;
                }
            }
            for operand in &share.work.traffic {
                let fits = operand.unique <= machine.cache_size;
                let again = if fits { operand.unique } else { operand.unique * rounds as f64 };
                bytes += whole * again.min(operand.moved);
                traffic += whole * operand.unique;
                moved += whole * operand.moved;
            }
            let sent: f64 = share.work.ops.iter().map(|op| op.link).sum();
            link += sent * share.tasks as f64;
            flops += whole * share.work.flops();
        }
        let memory = bytes / machine.memory_bytes;
        let cache = moved / machine.cache_bytes;
        let link = link / machine.link_bytes;
        let floor = memory.max(cache).max(link);
        for place in places {
            self.free[place] = (self.free[place] + busy[place]).max(start + floor);
        }
        let waves = filled.into_iter().max().unwrap_or(0);
        let longest = busy.iter().copied().fold(0.0, f64::max);
        let time = longest.max(floor);
        let bound = match time {
            time if time == memory && memory > longest => Bound::Memory,
            time if time == cache && cache > longest => Bound::Cache,
            time if time == link && link > longest => Bound::Link,
            _ => {
                let all = [Bound::Latency, Bound::Matrix, Bound::Vector, Bound::Cache];
                let largest =
                    (0..4).rev().max_by(|a, b| spent[*a].total_cmp(&spent[*b])).unwrap_or(0);
                all[largest]
            }
        };
        Parts { time, traffic, bytes, flops, waves, bound }
    }

    fn places(&self, range: Range) -> std::ops::Range<usize> {
        let place = |at: i64| usize::try_from(at).unwrap_or(0).min(self.free.len());
        place(range.begin)..place(range.end).max(place(range.begin))
    }

    fn barrier(&mut self, range: Range) {
        self.barriers += 1;
        let places = self.places(range);
        let last = self.free[places.clone()].iter().copied().fold(0.0, f64::max);
        let cost = self.machine.barrier + self.machine.barrier_processor * range.len() as f64;
        places.for_each(|place| self.free[place] = last + cost);
    }
}

/// Tasks that run side by side, one in each slot.
struct Round {
    time: f64,
    /// The parts of it due to latency, matrix units, vector units and cache.
    by_bound: [f64; 4],
}

fn round(share: &Share<'_>, tasks: i64, machine: &Machine) -> Round {
    if tasks == 0 {
        return Round { time: 0.0, by_bound: [0.0; 4] };
    }
    let mut by_bound = [machine.task / machine.clock, 0.0, 0.0, 0.0];
    for op in &share.work.ops {
        let parts = parts(op, tasks, share.work.warps, machine);
        let largest = (0..4).rev().max_by(|a, b| parts[*a].total_cmp(&parts[*b])).unwrap_or(0);
        by_bound[largest] += parts[largest];
    }
    Round { time: by_bound.iter().sum(), by_bound }
}

/// The time, in nanoseconds, that an op of tasks side by side takes on each resource of a processor.
fn parts(op: &OpWork, tasks: i64, warps: i64, machine: &Machine) -> [f64; 4] {
    let side_by_side = tasks as f64;
    let cycles = 1.0 / machine.clock;
    let active = (tasks * warps) as f64;
    // A single warp leaves its matrix unit idle while it loads operands from on-chip memory: two
    // warps keep a unit busy, one keeps it busy two thirds of the time.
    let matrix = op.product_rate * ((active + 4.0) / 12.0).min(1.0);
    let vector = machine.vector.min(active * machine.lanes as f64);
    let latency = if op.is_cached { machine.cache_latency } else { machine.latency };
    let over = |amount: f64, rate: f64| if amount > 0.0 { amount / rate * cycles } else { 0.0 };
    [
        op.rounds * latency * cycles + op.messages * machine.link_latency,
        over(side_by_side * op.products, matrix),
        over(side_by_side * op.operations, vector),
        over(side_by_side * op.bytes, machine.processor_bytes),
    ]
}
