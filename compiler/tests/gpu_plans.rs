//! Plans as kernels of GPUs, in an emulator: what they compute, and what is said where one is stuck or fails.
use crate::{gpu::FORMS, support::files::root};
use irc::{
    ImportOptions, Session, Source, Target,
    codegen::{GpuForm, Output},
    gpu::{Emulated, EmulationError, Limits, Options, emulate},
    planner,
};
use irc_ark_format::{
    model::{self, Buffer, DataType, Model, Op, OpKind, Tensor as ArkTensor},
    plan::{
        self, Architecture, Config, ConfigValue, Plan, PlanOp, ProcessorGroup, Range,
        ResourceGroup, TaskGroup, TaskInfo,
    },
};
use irc_diag::{Diagnostic, Sink};
use irc_ptx::{Argument, Exploration, Launch, Memory, Module};
use irc_runtime::Contents;
use irc_tensor::{Tensor, Tolerance, compare, seed_for};
use std::{collections::BTreeMap, fs};

/// An ARK model of the examples.
fn example(name: &str) -> Model {
    let text = fs::read_to_string(root().join("examples").join(name)).expect("an example");
    let source = Source::new(name, text);
    model::parse(&source, &model::Options::default(), &mut Sink::new()).expect("a model").model
}

/// A plan of the feed-forward network of the examples, for four processors.
fn ffn() -> Plan {
    let target = planner::Target::new(Architecture::Cuda80, Some(4)).expect("four");
    let options = planner::Options::new(target);
    planner::plan(&example("ffn.model.json"), &options).expect("a plan").plan
}

pub(crate) fn ptx(plan: &Plan) -> String {
    ptx_as(plan, GpuForm::default())
}

fn ptx_as(plan: &Plan, form: GpuForm) -> String {
    let session = Session::new();
    let target = Target { form, ..Target::gpu(80) };
    let code = session.plan(Source::new("plan.json", plan::write(plan))).ptx(&target);
    String::from_utf8(code.expect("PTX")).expect("text")
}

/// Emulates a kernel with random inputs.
pub(crate) fn run(text: &str, options: &Options<'_>) -> Result<Emulated, Vec<Diagnostic>> {
    let source = Source::new("plan.ptx", text);
    let kernel = irc_runtime::GpuKernel::from_ptx(text).expect("a description");
    let mut inputs = BTreeMap::new();
    for port in &kernel.interface.inputs {
        let ty = port.tensor_type().expect("a type");
        let tensor = Tensor::random(ty, seed_for(1, &port.name)).expect("numbers");
        inputs.insert(port.name.clone(), tensor);
    }
    emulate(&source, &inputs, options).map_err(|error| match error {
        EmulationError::Diagnostics(found) => found,
        EmulationError::Message(message) => panic!("{message}"),
    })
}

/// A plan whose second barrier waits for a processor that does not exist.
fn stuck() -> String {
    let mut plan = ffn();
    plan.processor_groups[2].processor_range.end = 5;
    ptx(&plan)
}

#[test]
fn a_stuck_barrier_is_named() {
    let text = stuck();
    let found = run(&text, &Options::CHECKED).expect_err("stuck");
    let last = found.last().expect("an error");
    assert_eq!(last.code, "ptx-deadlock");
    let notes = last.notes.join("\n");
    let barrier = "at the barrier of processors 0 to 4 before processor group 2: processor 0, warp 0, and 31 other \
                   warps at this step";
    assert!(notes.contains(barrier), "{notes}");

    // With patience the kernel traps, as on a GPU.
    let found = run(&text, &Options { patience: 20_000_000, ..Options::default() });
    let found = found.expect_err("stuck");
    let last = found.last().expect("an error");
    assert_eq!(last.code, "ptx-trap");
    let notes = last.notes.join("\n");
    assert!(notes.contains(", warp 0 is at the barrier of processors 0 to 4"), "{notes}");
    assert!(notes.contains(" has waited too long at the barrier of processors 0 to 4"), "{notes}");
}

#[test]
fn a_fault_names_the_task() {
    let text = ptx(&ffn());
    let whole = "\"name\":\"buffer_22\",\"dtype\":\"f32\",\"shape\":[32768]";
    assert!(text.contains(whole));
    let small = text.replace(whole, "\"name\":\"buffer_22\",\"dtype\":\"f32\",\"shape\":[16]");
    let found = run(&small, &Options::default()).expect_err("too small");
    let last = found.last().expect("an error");
    assert_eq!(last.code, "ptx-bounds");
    let notes = last.notes.join("\n");
    assert!(notes.contains(" is at task "), "{notes}");
    assert!(notes.contains("of task info 0, 'reduce_mean"), "{notes}");
}

#[test]
fn times_of_tasks_are_recorded_in_order() {
    let plan = ffn();
    for separate in [false, true] {
        let text = ptx_as(&plan, GpuForm { timestamps: true, separate });
        let kernel = irc_runtime::GpuKernel::from_ptx(&text).expect("a description");
        assert_eq!(kernel.entries().len(), if separate { plan.processor_groups.len() } else { 1 });
        let ran = run(&text, &Options::CHECKED).expect("a run");
        // Each task once, and each wait of a processor unless launches follow each other.
        let tasks = plan.processor_groups.iter().flat_map(|group| &group.resource_groups);
        let tasks = tasks.flat_map(|resource| &resource.task_groups);
        let tasks: i64 = tasks.map(|tasks| tasks.task_range.len()).sum();
        let is_task = |step: usize| kernel.steps[step].tasks.is_some();
        let found = ran.events.iter().filter(|event| is_task(event.step)).count();
        assert_eq!(found as i64, tasks);
        assert_eq!(ran.events.len() > found, !separate);
        // A group begins after the one before has ended, as all its processors wait.
        let mut end = 0;
        for step in (0..kernel.steps.len()).filter(|step| is_task(*step)) {
            let own = || ran.events.iter().filter(|event| event.step == step);
            assert!(own().all(|event| event.begin >= end && event.begin < event.end));
            end = own().map(|event| event.end).max().expect("tasks");
        }
    }
}

#[test]
fn launches_of_groups_and_of_kernels_give_the_same_results() {
    let plan = ffn();
    let whole = run(&ptx(&plan), &Options::CHECKED).expect("a run").outputs;
    let form = GpuForm { separate: true, ..GpuForm::default() };
    assert_eq!(run(&ptx_as(&plan, form), &Options::CHECKED).expect("a run").outputs, whole);

    let text = fs::read(root().join("examples/ffn.model.json")).expect("an example");
    let session = Session::new();
    let options = ImportOptions::default();
    let model = session.import_bytes("ffn.model.json", text.into(), &options).expect("a model");
    let of_model = |form| {
        let target = Target { form, ..Target::gpu(80) };
        let code = model.emit(Output::Ptx, target).expect("PTX");
        let text = String::from_utf8(code).expect("text");
        let kernel = irc_runtime::GpuKernel::from_ptx(&text).expect("a description");
        let launches = if form.separate { kernel.steps.len() } else { 1 };
        assert_eq!(kernel.entries().len(), launches);
        run(&text, &Options::CHECKED).expect("a run").outputs
    };
    assert_eq!(of_model(form), of_model(GpuForm::default()));
}

#[test]
fn what_does_not_fit_a_gpu_is_rejected_with_the_numbers() {
    let kernel = irc_runtime::GpuKernel {
        blocks: Some(109),
        threads: 1024,
        shared_bytes: 100 << 10,
        ..irc_runtime::GpuKernel::default()
    };
    let expect = |target: &str, kernel: &irc_runtime::GpuKernel| {
        Limits::of(&format!(".version 8.0\n.target {target}\n")).expect(kernel)
    };
    let message = expect("sm_80", &kernel).expect_err("too many blocks");
    let expected = "the kernel needs 109 blocks that run at once, and sm_80 runs at most 108: 1 of 1024 threads and \
                    103424 bytes of shared memory on each of 108 processors";
    assert_eq!(message, expected);
    assert_eq!(expect("sm_90a", &kernel), Ok(()));
    let large = irc_runtime::GpuKernel { shared_bytes: 200 << 10, blocks: Some(1), ..kernel };
    let message = expect("sm_80", &large).expect_err("too much shared memory");
    assert!(
        message.contains("205824 bytes of shared memory, and a block of sm_80 has 166912"),
        "{message}"
    );
    assert_eq!(expect("sm_90a", &large), Ok(()));

    let mut plan = ffn();
    plan.num_processors = 300;
    let session = Session::new();
    let made = session.plan(Source::new("plan.json", plan::write(&plan))).ptx(&Target::gpu(80));
    let message = made.expect_err("too many processors").to_string();
    assert!(message.contains("the kernel needs 300 blocks that run at once"), "{message}");
}

#[test]
fn plans_for_cuda_90_use_its_processors_and_agree_with_those_for_cuda_80() {
    let planned = |architecture| {
        let target = planner::Target::new(architecture, None).expect("all processors");
        let options = planner::Options::new(target);
        planner::plan(&example("ffn.model.json"), &options).expect("a plan").plan
    };
    let plans = [Architecture::Cuda80, Architecture::Cuda90].map(planned);
    let [old, new] = plans.each_ref().map(|plan| {
        let source = Source::new("plan.json", plan::write(plan));
        let errors = plan::check(plan).into_iter().filter(Diagnostic::is_error).count();
        assert_eq!(errors, 0);
        let capability = if plan.architecture == Architecture::Cuda90 { 90 } else { 80 };
        let session = Session::new();
        let code = session.plan(source).ptx(&Target::gpu(capability)).expect("PTX");
        run(&String::from_utf8(code).expect("text"), &Options::CHECKED).expect("a run").outputs
    });
    for (name, expected) in &old {
        let tolerance = Tolerance::of(expected.dtype());
        let same = compare(expected, &new[name], tolerance).expect("one type");
        assert!(same.is_match(), "{name}: {same}");
    }
}

/// An op of tasks of one warp.
fn op(kind: OpKind, from: &ArkTensor, to: &ArkTensor, config: &[(&str, ConfigValue)]) -> PlanOp {
    let op = Op {
        kind,
        name: format!("{}_{}", kind.name().to_lowercase(), from.buffer.id),
        is_virtual: false,
        reads: vec![from.clone()],
        writes: vec![to.clone()],
        results: vec![to.clone()],
        args: Default::default(),
    };
    let base = Config::default()
        .with("NumWarps", ConfigValue::Int(1))
        .with("SramBytes", ConfigValue::Int(0));
    let config = config.iter().fold(base, |config, (key, value)| config.with(key, value.clone()));
    PlanOp { op, config }
}

/// A plan of tasks of one element, which add, for processor groups on these ranges.
fn ranges(processors: i64, groups: &[[i64; 2]]) -> Plan {
    let tensor =
        |id: u64| ArkTensor::dense(id, DataType::Fp32, &[processors, 2], Buffer::local(id));
    let config =
        [("Tile", ConfigValue::Ints(vec![1, 1])), ("NumTasks", ConfigValue::Int(2 * processors))];
    let relu = |number: u64| op(OpKind::Relu, &tensor(number), &tensor(number + 1), &config);
    let groups = groups.iter().enumerate();
    let groups = groups.map(|(number, range)| (relu(number as u64), *range, 2 * processors));
    plan_of((0, 1), (processors, 2), groups.collect())
}

/// A plan of a rank of a world whose processor groups each have one op, on a range of processors, with a number of tasks.
fn plan_of(
    (rank, world_size): (i64, i64),
    (processors, warps): (i64, i64),
    groups: Vec<(PlanOp, [i64; 2], i64)>,
) -> Plan {
    let mut task_infos = vec![];
    let mut processor_groups = vec![];
    for (number, (op, [begin, end], tasks)) in groups.into_iter().enumerate() {
        let id = number as i64;
        task_infos.push(TaskInfo { id, num_warps: 1, sram_bytes: 0, ops: vec![op] });
        let processor_range = Range::new(begin, end);
        let tasks = TaskGroup { task_id: id, task_range: Range::new(0, tasks), granularity: 1 };
        let resource = ResourceGroup {
            processor_range,
            warp_range: Range::new(0, warps),
            sram_range: Range::new(0, 0),
            task_groups: vec![tasks],
        };
        processor_groups.push(ProcessorGroup { processor_range, resource_groups: vec![resource] });
    }
    Plan {
        rank,
        world_size,
        architecture: Architecture::Cuda80,
        num_processors: processors,
        num_warps_per_processor: warps,
        task_infos,
        processor_groups,
    }
}

/// The kernel of the plans of a world.
fn ptx_of(plans: &[Plan]) -> String {
    ptx_of_as(plans, GpuForm::default())
}

fn ptx_of_as(plans: &[Plan], form: GpuForm) -> String {
    let session = Session::new();
    let source = |plan: &Plan| session.plan(Source::new("plan.json", plan::write(plan)));
    let plans: Vec<_> = plans.iter().map(source).collect();
    let code = session.emit_ranks(&plans, &Target { form, ..Target::gpu(80) }, Output::Ptx);
    String::from_utf8(code.expect("PTX")).expect("text")
}

/// Runs the plans of a world in every order of their warps.
fn explore(plans: &[Plan]) -> Exploration {
    let text = ptx_of(plans);
    let described = irc_runtime::GpuProgram::from_ptx(&text).expect("a description");
    let kernel = &described.kernel;
    let source = Source::new("plan.ptx", text.as_str());
    let mut sink = Sink::new();
    let module = Module::parse(&source, &mut sink).expect("PTX");
    let program = module.compile(&kernel.entry, &mut sink).expect("a kernel");
    let blocks = kernel.blocks.expect("processors");
    let mut memory = Memory::new();
    let (mut arguments, mut own) = (vec![], None);
    for parameter in &kernel.parameters {
        let contents = described.contents(*parameter, &BTreeMap::new(), blocks, 0);
        let (name, contents) = contents.expect("known");
        arguments.push(Argument::Buffer(match contents {
            Contents::Bytes(bytes) => memory.add(name, bytes),
            Contents::Unwritten(size) => memory.add_unwritten(name, size).expect("memory"),
            Contents::Record(bytes) => *own.insert(memory.add(name, bytes)),
            other => panic!("{other:?}"),
        }));
    }
    let launch = Launch {
        grid: [blocks, 1, 1],
        block: [kernel.threads, 1, 1],
        shared_bytes: kernel.shared_bytes,
        arguments,
        ..Launch::default()
    };
    launch.explore(&program, &mut memory, own.as_slice(), 200_000)
}

#[test]
fn processors_wait_for_each_other_in_every_order() {
    for (processors, groups) in [
        (2, &[[0, 2], [0, 2], [0, 2]][..]),
        (2, &[[0, 1], [0, 2], [1, 2]][..]),
        (3, &[[0, 2], [0, 3]][..]),
    ] {
        let plan = ranges(processors, groups);
        let found = explore(&[plan]);
        let messages: Vec<_> = found.diagnostics.iter().map(|found| &found.message).collect();
        assert!(found.completed && found.diagnostics.is_empty(), "{groups:?}: {messages:?}");
        assert_eq!(found.ends, 1, "{groups:?}");
        assert!(found.states > 100, "{groups:?}: {found:?}");
    }
    // The second group reads what the first writes, on other processors, without a barrier.
    let found = explore(&[ranges(2, &[[0, 1], [1, 2]])]);
    assert!(found.diagnostics.iter().any(|found| found.code == "ptx-race"));
    // A barrier waits for a processor that does not exist.
    let mut plan = ranges(2, &[[0, 2], [0, 2]]);
    plan.processor_groups[1].processor_range.end = 3;
    let found = explore(&[plan]);
    assert!(!found.completed);
    assert!(found.diagnostics.iter().any(|found| found.code == "ptx-deadlock"));
}

/// A vector of two elements.
fn vector(id: u64) -> ArkTensor {
    ArkTensor::dense(id, DataType::Fp32, &[2], Buffer::local(id))
}

/// The buffers by which a rank receives from the other under tag 1, and by which it sends to it.
fn linked(tensor: &ArkTensor, other: i64) -> [ArkTensor; 2] {
    let (mut here, mut there) = (tensor.clone(), tensor.clone());
    here.buffer.recv_tags = vec![[other, 1]];
    there.buffer.id += 100;
    (there.buffer.rank, there.buffer.recv_tags) = (other, vec![[-1, 1]]);
    [here, there]
}

/// Two ranks that each send what a task has computed to the other, and compute with what they receive; by signals, or by
/// packets.
fn exchange(waits: bool, packets: bool) -> [Plan; 2] {
    [0, 1].map(|rank| {
        let other = 1 - rank;
        let relu = |from: &ArkTensor, to: &ArkTensor| {
            let config = [("Tile", ConfigValue::Ints(vec![1, 2]))];
            op(OpKind::Relu, from, to, &config)
        };
        let mut source = vector(101);
        (source.buffer.rank, source.buffer.send_tags) = (other, vec![[-1, 1]]);
        let one = ConfigValue::Int(1);
        let mut ops = vec![relu(&vector(0), &vector(1))];
        let result = match packets {
            false => {
                let [here, there] = linked(&vector(2), other);
                let proxy = ("ChannelType", ConfigValue::Text("Proxy".into()));
                let is_waiting = ("Wait", ConfigValue::Bool(waits));
                let count = ("NumTasks", one);
                ops.push(op(OpKind::Send, &vector(1), &there, &[proxy.clone(), count.clone()]));
                ops.push(op(OpKind::Recv, &source, &here, &[proxy, is_waiting, count]));
                here
            }
            true => {
                let bytes = ArkTensor::dense(2, DataType::Uint8, &[16], Buffer::local(2));
                let [here, there] = linked(&bytes, other);
                let tile = |count| [("Tile", ConfigValue::Ints(vec![1, count]))];
                ops.push(op(OpKind::SendPacket, &vector(1), &there, &tile(16)));
                let mut receive = op(OpKind::RecvPacket, &source, &vector(3), &tile(2));
                receive.op.reads.push(here);
                ops.push(receive);
                for op in &mut ops[1..] {
                    op.op.args.insert("Flag".to_owned(), model::Arg::Uint32(7));
                }
                vector(3)
            }
        };
        ops.push(relu(&result, &vector(4)));
        plan_of((rank, 2), (1, 1), ops.into_iter().map(|op| (op, [0, 1], 1)).collect())
    })
}

#[test]
fn ranks_wait_for_each_other_in_every_order() {
    for packets in [false, true] {
        let plans = exchange(true, packets);
        let found = explore(&plans);
        let messages: Vec<_> = found.diagnostics.iter().map(|found| &found.message).collect();
        assert!(found.completed && found.diagnostics.is_empty(), "{packets}: {messages:?}");
        assert_eq!(found.ends, 1, "{packets}");
        assert!(found.states > 20, "{packets}: {found:?}");
        let [outputs, launches] = FORMS
            .map(|form| run(&ptx_of_as(&plans, form), &Options::CHECKED).expect("a run").outputs);
        assert_eq!(outputs, launches);
        assert_eq!(outputs["rank0/buffer_4"].bytes(), outputs["rank1/buffer_1"].bytes());
        assert_eq!(outputs["rank1/buffer_4"].bytes(), outputs["rank0/buffer_1"].bytes());
        assert!(outputs["rank0/buffer_1"].bytes() != outputs["rank1/buffer_1"].bytes());
    }
    let found = explore(&exchange(false, false));
    assert!(found.diagnostics.iter().any(|found| found.code == "ptx-race"));
}

#[test]
fn a_rank_that_waits_for_ever_is_named() {
    // Rank 0 ends without sending.
    let mut plans = exchange(true, false);
    plans[0].task_infos[1].ops[0].config =
        plans[0].task_infos[1].ops[0].config.clone().with("Signal", ConfigValue::Bool(false));
    let text = ptx_of(&plans);
    let place = "processor 0 of rank 1, warp 0";
    let found = run(&text, &Options::CHECKED).expect_err("stuck");
    let last = found.last().expect("an error");
    assert_eq!(last.code, "ptx-deadlock");
    let notes = last.notes.join("\n");
    assert!(notes.contains(&format!("at task 0 of task info 2, 'recv_101': {place}")), "{notes}");
    let found = run(&text, &Options { patience: 20_000_000, ..Options::default() });
    let found = found.expect_err("stuck");
    let last = found.last().expect("an error");
    assert_eq!(last.code, "ptx-trap");
    let notes = last.notes.join("\n");
    let stuck = "processor 0 of rank 1 has waited too long at task 0 of task info 2, 'recv_101'";
    assert!(notes.contains(stuck), "{notes}");
}

#[test]
fn what_ranks_cannot_do_together_is_rejected() {
    let session = Session::new();
    let compiled = |plans: &[&Plan], form| {
        let source = |plan: &&Plan| session.plan(Source::new("plan.json", plan::write(plan)));
        let plans: Vec<_> = plans.iter().map(source).collect();
        session
            .emit_ranks(&plans, &Target { form, ..Target::gpu(80) }, Output::Ptx)
            .expect_err("an error")
    };
    let [first, second] = exchange(true, false);
    let message = compiled(&[&first], GpuForm::default()).to_string();
    assert!(message.contains("rank 1 is not there"), "{message}");
    let message = compiled(&[&first, &first], GpuForm::default()).to_string();
    assert!(message.contains("another plan is for rank 0 too"), "{message}");
    let mut late = second;
    late.task_infos[2].ops[0].op.reads[0].buffer.send_tags = vec![[-1, 9]];
    let message = compiled(&[&first, &late], GpuForm::default()).to_string();
    assert!(message.contains("no tag connects"), "{message}");
}
