//! The plans of a world as one kernel for GPUs: its main function, which every thread runs.
//!
//! Each block is a processor; those of a rank follow each other. It goes through the entries of the plan's script
//! ([`irc_executor::script`]): at a barrier, the processors of its range wait for each other; at a task group, the warps of
//! each slot run their tasks, as ARK's generated code distributes them. Warps of other slots go on to the next entry.
mod communicate;
mod shared;

use crate::{
    codegen::GpuForm,
    lowering::{
        compute_to_loops::simt::{AT, SHARED, SHARED_BYTES, TEAM_TYPES, team_of},
        emit_gpu_entry::entry_of,
    },
};
use communicate::Links;
use irc_ark_format::plan::Plan;
use irc_executor::{
    code::{Kernel, Step, TaskCode},
    comm::{self, CommOps},
    layout::Layout,
    script::{Entry, Share, script},
};
use irc_runtime::{
    GpuKernel, Interface, Parameter, Port,
    gpu::record::{self, MAX_STEPS},
};
use shared::{Carve, carves, kernels_of};
pub use shared::{TeamCode, scratch_limit, slot_bytes};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    ops::Range,
};

/// The number of threads of a warp.
const WARP: i64 = 32;

/// The number of barriers of a block; the first is that of all its threads.
const BARRIERS: i64 = 16;

/// The most threads of a block.
const MAX_THREADS: i64 = 1024;

/// The name of the main function.
pub const MAIN: &str = "irc_main";

/// The most parameters of a kernel: pointers in 4096 bytes.
const MAX_PARAMETERS: usize = 512;

/// The number of barriers between processors, each over a range of its own (`device.mlir`).
const STATES: usize = 1024;

/// The barrier of the threads of one warp.
const WARP_BARRIER: i32 = 16;

/// A plan with the code of its tasks.
#[derive(Clone, Copy)]
pub struct RankCode<'p> {
    /// The plan.
    pub plan: &'p Plan,
    /// The code, by task info.
    pub tasks: &'p [TaskCode],
}

/// What the processors of all ranks know.
pub(super) struct World {
    layouts: Vec<Layout>,
    /// The communication ops of each rank.
    ops: Vec<CommOps>,
    pub(super) links: Vec<Links>,
    /// The number of the first buffer of each rank.
    first_buffers: Vec<usize>,
    /// Bytes of the scratch of all slots.
    scratch_bytes: u64,
}

impl World {
    fn of(ranks: &[RankCode<'_>]) -> Result<Self, String> {
        let mut seen = BTreeSet::new();
        for (number, RankCode { plan, .. }) in ranks.iter().enumerate() {
            if !seen.insert(plan.rank) {
                return Err(format!("another plan is for rank {} too", plan.rank));
            }
            if plan.rank != number as i64 && ranks.len() > 1 {
                return Err(format!(
                    "expected the plans of ranks 0 to {}, found one of rank {}",
                    ranks.len() - 1,
                    plan.rank
                ));
            }
        }
        let layouts = ranks.iter().map(|rank| Layout::of(rank.plan)).collect::<Result<Vec<_>, _>>();
        let layouts = layouts.map_err(|error| error.to_string())?;
        let all: Vec<_> = ranks.iter().map(|rank| rank.plan).zip(&layouts).collect();
        let ops = comm::of_world(&all).map_err(|error| error.to_string())?;
        let mut first_buffers = vec![];
        let mut buffers = 0;
        for layout in &layouts {
            first_buffers.push(buffers);
            buffers += layout.buffers.len();
        }
        let links = Links::of(&ops);
        Ok(Self { layouts, ops, links, first_buffers, scratch_bytes: 0 })
    }

    /// The prefix of the names of the buffers of a rank.
    fn prefix(&self, rank: usize) -> String {
        if self.layouts.len() > 1 { format!("rank{rank}/") } else { String::new() }
    }

    /// The inputs and outputs of all ranks.
    fn interface(&self) -> Interface {
        let mut all = Interface { workspace_bytes: self.scratch_bytes, ..Interface::default() };
        for (rank, layout) in self.layouts.iter().enumerate() {
            let own = |port: &Port| Port {
                name: format!("{}{}", self.prefix(rank), port.name),
                ..port.clone()
            };
            all.inputs.extend(layout.interface.inputs.iter().map(own));
            all.outputs.extend(layout.interface.outputs.iter().map(own));
        }
        all
    }

    /// The parameters: the buffers of all ranks, the words of their links, the scratch and the record.
    fn parameters(&self, interface: &Interface) -> Vec<Parameter> {
        let at = |ports: &[Port], name: &str| ports.iter().position(|port| port.name == name);
        let is_several = self.layouts.len() > 1;
        let none =
            |rank: usize| Parameter { rank: is_several.then_some(rank), ..Parameter::default() };
        let mut all = vec![];
        for (rank, layout) in self.layouts.iter().enumerate() {
            for (slot, buffer) in layout.buffers.iter().enumerate() {
                let name = format!("{}{}", self.prefix(rank), layout.name(slot));
                let (input, output) = (at(&interface.inputs, &name), at(&interface.outputs, &name));
                let is_private = input.is_none() && output.is_none();
                let zeroed = is_private.then_some(buffer.bytes);
                all.push(Parameter { input, output, zeroed, ..none(rank) });
            }
        }
        for (rank, links) in self.links.iter().enumerate().filter(|(_, links)| links.bytes() > 0) {
            all.push(Parameter { zeroed: Some(links.bytes()), ..none(rank) });
        }
        all.extend([Parameter::default(), Parameter { record: true, ..Parameter::default() }]);
        all
    }

    /// The arguments of the main function.
    fn arguments(&self) -> String {
        let buffers = self.layouts.iter().flat_map(|layout| &layout.buffers).enumerate();
        let buffers =
            buffers.map(|(number, buffer)| format!("%buffer{number}: memref<{}xi8>", buffer.bytes));
        let links = self.links.iter().enumerate().filter(|(_, links)| links.bytes() > 0);
        let links =
            links.map(|(rank, links)| format!("%signals{rank}: memref<{}xi8>", links.bytes()));
        let others = [
            format!("%scratch: memref<{}xi8>", self.scratch_bytes),
            "%pool: memref<1xi8>".to_owned(),
        ];
        buffers.chain(links).chain(others).collect::<Vec<_>>().join(", ")
    }
}

/// The main function of the plans of ranks as text, or one for each launch, and what a launch needs to know; kernels are
/// given by the names of their functions.
///
/// # Errors
/// If a plan is not valid, or needs what a kernel cannot do.
pub fn main_text(
    ranks: &[RankCode<'_>],
    kernels: &BTreeMap<String, TeamCode>,
    form: GpuForm,
) -> Result<(String, GpuKernel), String> {
    let mut world = World::of(ranks)?;
    let in_memory = kernels.values().filter(|kernel| !kernel.is_shared);
    let scratch = in_memory.map(|kernel| kernel.scratch).max().unwrap_or(0).next_multiple_of(64);
    let (mut blocks, mut slots, mut threads) = (vec![], 0, 0);
    for RankCode { plan, .. } in ranks {
        let own = plan.num_warps_per_processor * WARP;
        if !(WARP..=MAX_THREADS).contains(&own) {
            let most = MAX_THREADS / WARP;
            return Err(format!(
                "a block has 1 to {most} warps: `NumWarpsPerProcessor` is {}",
                plan.num_warps_per_processor
            ));
        }
        threads = own.max(threads);
        slots += (plan.num_processors * plan.num_warps_per_processor).cast_unsigned();
        blocks.push(
            u32::try_from(plan.num_processors)
                .map_err(|_| format!("`NumProcessors` is {}", plan.num_processors))?,
        );
    }
    world.scratch_bytes = scratch * slots;
    let all = blocks.iter().try_fold(0u32, |sum, blocks| sum.checked_add(*blocks));
    let all = all.ok_or("the ranks have more than 2^32 processors")?;
    let scripts = ranks.iter().map(|rank| script(rank.plan)).collect::<Result<Vec<_>, _>>();
    let scripts = scripts.map_err(|error| error.to_string())?;
    let carved = ranks.iter().zip(&scripts).map(|(rank, entries)| carves(entries, rank, kernels));
    let carved: Vec<_> = carved.collect();
    let mut writer = Writer {
        text: String::new(),
        next: 0,
        rank: 0,
        first: 0,
        first_slot: 0,
        plan: ranks[0].plan,
        tasks: ranks[0].tasks,
        kernels,
        world: &world,
        scratch,
        carves: &carved[0],
        steps: vec![],
        events: form.timestamps.then_some(0),
        // The first state is that of the whole grid.
        ranges: vec![(0, all.into())],
    };
    let launches = match form.separate {
        true => launches(&scripts, &world.ops),
        false => vec![scripts.iter().map(|entries| 0..entries.len()).collect()],
    };
    // Of each launch.
    let mut bodies: Vec<String> = vec![];
    for launch in &launches {
        (writer.first, writer.first_slot) = (0, 0);
        for (number, RankCode { plan, tasks }) in ranks.iter().enumerate() {
            (writer.rank, writer.plan, writer.tasks) = (number as i64, plan, tasks);
            writer.carves = &carved[number];
            writer.rank_of(&scripts[number][launch[number].clone()], form, ranks.len())?;
            writer.first += plan.num_processors;
            writer.first_slot += plan.num_processors * plan.num_warps_per_processor;
        }
        bodies.push(std::mem::take(&mut writer.text));
    }
    let steps = std::mem::take(&mut writer.steps);
    if steps.len() > MAX_STEPS {
        return Err(format!("a kernel has at most {MAX_STEPS} steps, found {}", steps.len()));
    }
    let shared_bytes = carved.iter().flat_map(BTreeMap::values).map(Carve::bytes).max();
    let declared = |(symbol, kernel): (&String, &TeamCode)| {
        let own = kernel.parameters.iter().map(String::as_str).chain(TEAM_TYPES);
        format!("func.func private @{}({})", team_of(symbol), own.collect::<Vec<_>>().join(", "))
    };
    let teams: Vec<String> = kernels.iter().map(declared).collect();
    let interface = world.interface();
    let kernel = GpuKernel {
        entry: crate::lowering::emit_gpu_entry::ENTRY.to_owned(),
        parameters: world.parameters(&interface),
        interface,
        blocks: Some(all),
        ranks: if ranks.len() > 1 { blocks } else { vec![] },
        threads: threads as u32,
        shared_bytes: shared_bytes.unwrap_or(0),
        constant_bytes: 0,
        steps,
        launches: vec![],
    };
    let launches = if form.separate { bodies.len() } else { 0 };
    let launches = (0..launches).map(entry_of).collect();
    let kernel = kernel.formed(form.timestamps, launches);
    if kernel.parameters.len() > MAX_PARAMETERS {
        return Err(format!(
            "a kernel has at most {MAX_PARAMETERS} parameters, and the buffers of the plan's ranks need {}",
            kernel.parameters.len()
        ));
    }
    let metadata = escaped(&kernel.interface.to_json());
    let description = escaped(&kernel.to_line());
    let mut text = format!(
        "{}
         func.func private @irc_gpu_team() -> index
         func.func private @irc_gpu_first() -> index
         func.func private @irc_gpu_thread() -> index
         func.func private @irc_gpu_time() -> i64
         func.func private @irc_gpu_event(index, i64, index)
         func.func private @irc_gpu_shared() -> {SHARED}
         func.func private @irc_gpu_barrier(i32, index)
         func.func private @irc_gpu_processors_barrier(i32, i32)
         func.func private @irc_gpu_fence()
         func.func private @irc_gpu_signal(index)
         func.func private @irc_gpu_wait(index, i32)
         func.func private @irc_gpu_send_packet(index, i32, i32)
         func.func private @irc_gpu_receive_packet(index, i32) -> i32
         func.func private @{AT}(i64)\n",
        teams.join("\n"),
    );
    // Of several ranks, a launch may run those of one GPU only.
    let block = match ranks.len() {
        1 => "%processor = func.call @irc_gpu_team() : () -> index",
        _ => {
            "%team = func.call @irc_gpu_team() : () -> index
             %first_block = func.call @irc_gpu_first() : () -> index
             %block = arith.addi %team, %first_block : index"
        }
    };
    for (number, body) in bodies.iter().enumerate() {
        let name = if form.separate { format!("{MAIN}_{number}") } else { MAIN.to_owned() };
        let _ = writeln!(
            text,
            "func.func @{name}({})
             attributes {{tl.program = #tl.program<metadata = \"{metadata}\">, tl.description = \"{description}\"}} {{
             {block}
             %thread = func.call @irc_gpu_thread() : () -> index
             {body}
             return
             }}",
            world.arguments(),
        );
    }
    Ok((text, kernel))
}

/// The entries of each rank in each launch: a launch for each processor group, but one for all groups from the first to the
/// last of each rank that communicate, as these wait for each other.
fn launches(scripts: &[Vec<Entry>], ops: &[CommOps]) -> Vec<Vec<Range<usize>>> {
    let groups: Vec<Vec<Range<usize>>> = scripts.iter().map(|entries| groups_of(entries)).collect();
    let together = scripts.iter().zip(ops).zip(&groups).map(|((entries, ops), groups)| {
        let tasks: BTreeSet<usize> = ops.keys().map(|(task, _)| *task).collect();
        let communicates = |group: &Range<usize>| {
            let is_one =
                |entry: &Entry| matches!(entry, Entry::Tasks(share) if tasks.contains(&share.task));
            entries[group.clone()].iter().any(is_one)
        };
        let first = groups.iter().position(communicates).unwrap_or(groups.len());
        first..groups.iter().rposition(communicates).map_or(first, |last| last + 1)
    });
    let together: Vec<Range<usize>> = together.collect();
    let before = together.iter().map(|one| one.start).max().unwrap_or(0);
    let end = before + usize::from(together.iter().any(|one| !one.is_empty()));
    let after = groups.iter().zip(&together).map(|(groups, one)| groups.len() - one.end);
    let count = end + after.max().unwrap_or(0);
    let mut launches = vec![vec![0..0; scripts.len()]; count.max(1)];
    for (rank, (groups, one)) in groups.iter().zip(&together).enumerate() {
        let mut set = |launch: usize, group: &Range<usize>| launches[launch][rank] = group.clone();
        groups[..one.start].iter().enumerate().for_each(|(at, group)| set(at, group));
        if let [first, ..] = &groups[one.clone()] {
            set(before, &(first.start..groups[one.end - 1].end));
        }
        groups[one.end..].iter().enumerate().for_each(|(at, group)| set(end + at, group));
    }
    launches
}

/// The entries of each processor group that has tasks.
fn groups_of(entries: &[Entry]) -> Vec<Range<usize>> {
    let group = |entry: &Entry| match entry {
        Entry::Barrier { before, .. } => *before,
        Entry::Tasks(share) => share.group,
    };
    let mut end = 0;
    let groups = entries.chunk_by(|one, next| group(one) == group(next)).map(|own| {
        end += own.len();
        (own, end - own.len()..end)
    });
    let has_tasks = |own: &[Entry]| own.iter().any(|entry| matches!(entry, Entry::Tasks(_)));
    groups.filter(|(own, _)| has_tasks(own)).map(|(_, range)| range).collect()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

pub(super) struct Writer<'p> {
    text: String,
    next: usize,
    pub(super) rank: i64,
    /// The first processor of the rank, and its first slot, among those of all ranks.
    first: i64,
    first_slot: i64,
    plan: &'p Plan,
    tasks: &'p [TaskCode],
    kernels: &'p BTreeMap<String, TeamCode>,
    pub(super) world: &'p World,
    /// Bytes of scratch of a slot in global memory.
    scratch: u64,
    /// The shared memory of each processor group of the rank.
    carves: &'p BTreeMap<usize, Carve>,
    steps: Vec<record::Step>,
    /// The number of events so far, if their times are recorded.
    events: Option<u64>,
    /// The ranges of processors that wait for each other, each with a state of its own.
    ranges: Vec<(i64, i64)>,
}

impl Writer<'_> {
    /// Some entries of the script of a rank, of so many ranks.
    fn rank_of(&mut self, entries: &[Entry], form: GpuForm, ranks: usize) -> Result<(), String> {
        // What ran before a launch has ended.
        let is_barrier = |entry: &Entry| form.separate && matches!(entry, Entry::Barrier { .. });
        let first = entries.iter().position(|entry| !is_barrier(entry));
        let Some(first) = first else { return Ok(()) };
        if ranks > 1 {
            let end = self.first + self.plan.num_processors;
            let own = self.is_in("%block", (self.first, end));
            self.line(&format!("scf.if {own} {{"));
            let first = self.index(self.first);
            self.line(&format!("%processor = arith.subi %block, {first} : index"));
        }
        for entry in &entries[first..] {
            match entry {
                Entry::Barrier { range, before } => {
                    self.barrier((range.begin, range.end), *before)?;
                }
                Entry::Tasks(share) => self.share(share)?,
            }
        }
        if ranks > 1 {
            self.line("}");
        }
        Ok(())
    }

    /// A new name.
    pub(super) fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next - 1)
    }

    /// The name of a buffer of a rank, and its bytes.
    pub(super) fn buffer(&self, rank: i64, slot: usize) -> (String, u64) {
        let rank = rank as usize;
        let bytes = self.world.layouts[rank].buffers[slot].bytes;
        (format!("%buffer{}", self.world.first_buffers[rank] + slot), bytes)
    }

    /// A line that defines a value; returns its name.
    pub(super) fn value(&mut self, op: &str) -> String {
        let name = self.name();
        let _ = writeln!(self.text, "{name} = {op}");
        name
    }

    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    pub(super) fn index(&mut self, value: i64) -> String {
        self.value(&format!("arith.constant {value} : index"))
    }

    pub(super) fn binary(&mut self, op: &str, left: &str, right: &str) -> String {
        self.value(&format!("arith.{op} {left}, {right} : index"))
    }

    pub(super) fn by(&mut self, op: &str, left: &str, right: i64) -> String {
        let right = self.index(right);
        self.binary(op, left, &right)
    }

    pub(super) fn compare(&mut self, predicate: &str, left: &str, right: i64) -> String {
        let right = self.index(right);
        self.value(&format!("arith.cmpi {predicate}, {left}, {right} : index"))
    }

    /// Whether a value is in a range.
    fn is_in(&mut self, value: &str, (begin, end): (i64, i64)) -> String {
        let from = self.compare("uge", value, begin);
        let to = self.compare("ult", value, end);
        self.value(&format!("arith.andi {from}, {to} : i1"))
    }

    /// The processors of a range wait for each other.
    fn barrier(&mut self, range: (i64, i64), before: usize) -> Result<(), String> {
        let all = (self.first + range.0, self.first + range.1);
        let known = self.ranges.iter().position(|known| *known == all);
        let state = known.unwrap_or_else(|| {
            self.ranges.push(all);
            self.ranges.len() - 1
        });
        if state >= STATES {
            return Err(format!("more than {STATES} ranges of processors wait for each other"));
        }
        let takes_part = self.is_in("%processor", range);
        self.line(&format!("scf.if {takes_part} {{"));
        let first = self.step(record::Step {
            name: format!("before processor group {before}"),
            tasks: None,
            processors: Some([all.0.cast_unsigned(), all.1.cast_unsigned()]),
        });
        self.line(&format!("func.call @{AT}({first}) : (i64) -> ()"));
        let event = self.begin((range.1 - range.0).cast_unsigned());
        let state = self.value(&format!("arith.constant {state} : i32"));
        let blocks = self.value(&format!("arith.constant {} : i32", range.1 - range.0));
        self.line(&format!(
            "func.call @irc_gpu_processors_barrier({state}, {blocks}) : (i32, i32) -> ()"
        ));
        self.end(event, ("%processor", range.0), "%thread");
        self.line("}");
        Ok(())
    }

    /// A new step: the place of its first task.
    fn step(&mut self, step: record::Step) -> String {
        let place = record::place_of(self.steps.len());
        self.steps.push(step);
        self.value(&format!("arith.constant {place} : i64"))
    }

    /// The begin of some events of a step, if times are recorded: the number of the first, and the time.
    fn begin(&mut self, count: u64) -> Option<(u64, String)> {
        let first = self.events?;
        self.events = Some(first + count);
        Some((first, self.value("func.call @irc_gpu_time() : () -> i64")))
    }

    /// The end of an event: that of a task or processor of those from a first one on.
    fn end(&mut self, event: Option<(u64, String)>, (at, first): (&str, i64), thread: &str) {
        let Some((number, begin)) = event else { return };
        let number = self.by("addi", at, number.cast_signed() - first);
        self.line(&format!(
            "func.call @irc_gpu_event({number}, {begin}, {thread}) : (index, i64, index) -> ()"
        ));
    }

    /// The tasks of a task group.
    fn share(&mut self, share: &Share) -> Result<(), String> {
        let distribution = &share.distribution;
        let info = &self.plan.task_infos[share.task];
        let warps = info.num_warps;
        let first_warp = share.warps.begin;
        let active = distribution.active_slots;
        let (begin, end) = (distribution.processors.begin, distribution.processors.end);
        if active < 1 || begin == end || distribution.tasks.is_empty() {
            return Ok(());
        }
        let threads = warps * WARP;
        let takes_part = self.is_in("%processor", (begin, end));
        let first_thread = first_warp * WARP;
        let own = self.is_in("%thread", (first_thread, first_thread + active * threads));
        let takes_part = self.value(&format!("arith.andi {takes_part}, {own} : i1"));
        self.line(&format!("scf.if {takes_part} {{"));
        let place = self.by("subi", "%thread", first_thread);
        let slot = self.by("divui", &place, threads);
        let thread = self.by("remui", &place, threads);
        let count = self.index(threads);
        let barrier = self.barrier_of(&slot, first_warp, warps, active)?;
        // Scratch of the slot: slots of different resource groups have different warps.
        let all = self.by("muli", "%processor", self.plan.num_warps_per_processor);
        let first = self.by("divui", "%thread", WARP);
        let lead = self.by("remui", &place, threads);
        let lead = self.by("divui", &lead, WARP);
        let first = self.binary("subi", &first, &lead);
        let number = self.binary("addi", &all, &first);
        let number = self.by("addi", &number, self.first_slot);
        let scratch = self.by("muli", &number, self.scratch.cast_signed());
        let carve = self.carves.get(&share.group).copied().unwrap_or_default();
        let tiles = self.by("muli", &first, SHARED_BYTES);
        let shared = self.by("muli", &first, carve.scratch.cast_signed());
        let shared = self.by("addi", &shared, carve.tiles.cast_signed());
        let leader = thread.clone();
        let team = Team { thread, threads: count, barrier, scratch, tiles, shared };
        let mut own = kernels_of(&self.tasks[share.task], self.kernels);
        if warps > 1 && own.any(|kernel| kernel.has_tiles || kernel.scratch > 0) {
            // Other warps of the team may still run a task of another one, in memory that is now the team's.
            self.team_barrier(&team);
        }

        // p = (processor + grid - current) mod grid
        let moved = self.by("addi", "%processor", distribution.grid - distribution.current);
        let p = self.by("remui", &moved, distribution.grid);
        let g = distribution.granularity;
        let start = self.by("muli", &p, g);
        let start = self.by("addi", &start, distribution.tasks.begin);
        let slots = self.index(distribution.slots);
        let turn = self.name();
        let bound = self.turns(share);
        let bound = self.index(bound);
        self.line(&format!("scf.for {turn} = {slot} to {bound} step {slots} {{"));
        let within = self.by("remui", &turn, g);
        let granule = self.by("divui", &turn, g);
        let jump = self.by("muli", &granule, g * (end - begin));
        let task = self.binary("addi", &start, &within);
        let task = self.binary("addi", &task, &jump);
        let is_task = self.compare("ult", &task, distribution.tasks.end);
        self.line(&format!("scf.if {is_task} {{"));
        let names: Vec<&str> = info.ops.iter().map(|op| op.op.name.as_str()).collect();
        let tasks = [distribution.tasks.begin, distribution.tasks.end].map(i64::cast_unsigned);
        if tasks[1] > record::MAX_TASKS {
            let most = record::MAX_TASKS;
            return Err(format!(
                "task info {}: a kernel has at most {most} tasks of a kind",
                info.id
            ));
        }
        let first = self.step(record::Step {
            name: names.join(" + "),
            tasks: Some((share.task as u64, tasks)),
            processors: Some([begin, end].map(|at| (self.first + at).cast_unsigned())),
        });
        let number = self.value(&format!("arith.index_cast {task} : index to i64"));
        let place = self.value(&format!("arith.addi {first}, {number} : i64"));
        self.line(&format!("func.call @{AT}({place}) : (i64) -> ()"));
        let event = self.begin(tasks[1] - tasks[0].min(tasks[1]));
        for step in &self.tasks[share.task].steps {
            match step {
                Step::Kernel(kernel) => self.kernel(kernel, &task, &team)?,
                Step::Communicate(op) => {
                    let world = self.world;
                    let name = &info.ops[*op].op.name;
                    let found = world.ops[self.rank as usize].get(&(share.task, *op));
                    let ready = found.ok_or("is not known".to_owned());
                    ready.and_then(|ready| self.communicate(ready, &task, &team)).map_err(
                        |error| {
                            format!(
                                "rank {}, task info {}, op '{name}': {error}",
                                self.plan.rank, info.id
                            )
                        },
                    )?;
                }
            }
        }
        self.end(event, (&task, distribution.tasks.begin), &leader);
        self.line("}\n}\n}");
        Ok(())
    }

    /// An upper bound of the turns of a slot: the granules of one processor.
    fn turns(&self, share: &Share) -> i64 {
        let distribution = &share.distribution;
        let (tasks, g) = (distribution.tasks.len(), distribution.granularity);
        let granules = (tasks + g - 1) / g;
        let own = (granules + distribution.processors.len() - 1) / distribution.processors.len();
        own.saturating_mul(g)
    }

    /// The barrier of a slot: one for each place of warps in a block.
    fn barrier_of(
        &mut self,
        slot: &str,
        first_warp: i64,
        warps: i64,
        active: i64,
    ) -> Result<String, String> {
        if warps == 1 {
            // The threads of one warp.
            return Ok(self.value(&format!("arith.constant {WARP_BARRIER} : i32")));
        }
        let first = 1 + first_warp / warps;
        if first + active > BARRIERS {
            return Err(format!(
                "{active} tasks of {warps} warps from warp {first_warp} on need more than the {BARRIERS} barriers of a block"
            ));
        }
        let number = self.by("addi", slot, first);
        Ok(self.value(&format!("arith.index_cast {number} : index to i32")))
    }

    /// The digits of a task.
    pub(super) fn digits(&mut self, counts: [i64; 4], task: &str) -> Vec<String> {
        let mut digits = vec![];
        let mut rest = task.to_owned();
        for count in counts.into_iter().rev() {
            digits.push(match count {
                1 => self.index(0),
                _ => self.by("remui", &rest, count),
            });
            if count != 1 {
                rest = self.by("divui", &rest, count);
            }
        }
        digits.reverse();
        digits
    }

    /// The threads of a team wait for each other.
    pub(super) fn team_barrier(&mut self, team: &Team) {
        self.line(&format!(
            "func.call @irc_gpu_barrier({}, {}) : (i32, index) -> ()",
            team.barrier, team.threads
        ));
    }

    /// A kernel of a task: the variant for its digits.
    fn kernel(&mut self, kernel: &Kernel, task: &str, team: &Team) -> Result<(), String> {
        let digits = self.digits(kernel.counts, task);
        let mut places = vec![];
        for operand in &kernel.operands {
            let mut place = self.index(operand.offset.cast_signed());
            for (dim, digit) in digits.iter().enumerate() {
                if kernel.counts[dim] != 1 && operand.steps[dim] != 0 {
                    let moved = self.by("muli", digit, operand.steps[dim].cast_signed());
                    place = self.binary("addi", &place, &moved);
                }
            }
            places.push((operand.buffer, place));
        }
        let mut open = 0;
        for variant in &kernel.variants {
            let dims = (0..4).filter(|dim| variant.last[*dim] && kernel.counts[*dim] != 1);
            let dims: Vec<usize> = dims.collect();
            let is_always = dims.is_empty();
            if !is_always {
                let mut all: Option<String> = None;
                for dim in dims {
                    let last = self.compare("eq", &digits[dim], kernel.counts[dim] - 1);
                    all = Some(match all {
                        None => last,
                        Some(other) => self.value(&format!("arith.andi {other}, {last} : i1")),
                    });
                }
                self.line(&format!("scf.if {} {{", all.unwrap_or_default()));
                open += 1;
            }
            self.call(&variant.symbol, &places, team)?;
            if is_always {
                break;
            }
            self.line("} else {");
        }
        for _ in 0..open {
            self.line("}");
        }
        self.team_barrier(team);
        Ok(())
    }

    /// A call of the function of a team.
    fn call(&mut self, symbol: &str, places: &[(u64, String)], team: &Team) -> Result<(), String> {
        let kernel = self.kernels.get(symbol).ok_or_else(|| format!("'{symbol}' has no code"))?;
        let types = &kernel.parameters;
        let mut operands = vec![];
        let zero = self.index(0);
        let one = self.index(1);
        for ((buffer, place), ty) in places.iter().zip(types) {
            let slot = self.world.layouts[self.rank as usize].slot(*buffer);
            let slot = slot.ok_or_else(|| format!("there is no buffer {buffer}"))?;
            let (name, bytes) = self.buffer(self.rank, slot);
            operands.push(
                self.value(&format!("memref.view {name}[{place}][] : memref<{bytes}xi8> to {ty}")),
            );
        }
        let ty = types.last().cloned().unwrap_or_default();
        operands.push(if kernel.is_shared {
            let all = self.value(&format!("func.call @irc_gpu_shared() : () -> {SHARED}"));
            self.value(&format!("memref.view {all}[{}][] : {SHARED} to {ty}", team.shared))
        } else {
            let all = self.world.scratch_bytes;
            let place = &team.scratch;
            self.value(&format!("memref.view %scratch[{place}][] : memref<{all}xi8> to {ty}"))
        });
        operands.extend([
            zero,
            one,
            team.thread.clone(),
            team.threads.clone(),
            team.barrier.clone(),
            team.tiles.clone(),
        ]);
        let all: Vec<&str> = types.iter().map(String::as_str).chain(TEAM_TYPES).collect();
        self.line(&format!(
            "func.call @{}({}) : ({}) -> ()",
            team_of(symbol),
            operands.join(", "),
            all.join(", ")
        ));
        Ok(())
    }
}

/// What the functions of teams are passed after the memory of kernels.
pub(super) struct Team {
    pub(super) thread: String,
    pub(super) threads: String,
    barrier: String,
    /// The first byte of its scratch in global memory, and in shared memory that of its tiles and that of its scratch.
    scratch: String,
    tiles: String,
    shared: String,
}
