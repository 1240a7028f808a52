//! Plans as kernels of GPUs, in an emulator: what they compute, and what is said where one is stuck or fails.
use crate::support::files::root;
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

fn ptx(plan: &Plan) -> String {
    ptx_as(plan, GpuForm::default())
}

fn ptx_as(plan: &Plan, form: GpuForm) -> String {
    let session = Session::new();
    let target = Target { form, ..Target::gpu(80) };
    let code = session.plan(Source::new("plan.json", plan::write(plan))).ptx(&target);
    String::from_utf8(code.expect("PTX")).expect("text")
}

/// Emulates a kernel with random inputs.
fn run(text: &str, options: &Options<'_>) -> Result<Emulated, Vec<Diagnostic>> {
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

/// A plan of tasks of one element, which add, for processor groups on these ranges.
fn ranges(processors: i64, groups: &[[i64; 2]]) -> Plan {
    let tensor =
        |id: u64| ArkTensor::dense(id, DataType::Fp32, &[processors, 2], Buffer::local(id));
    let mut task_infos = vec![];
    let mut processor_groups = vec![];
    for (number, [begin, end]) in groups.iter().enumerate() {
        let (from, to) = (number as u64, number as u64 + 1);
        let op = Op {
            kind: OpKind::Relu,
            name: format!("relu_{number}"),
            is_virtual: false,
            reads: vec![tensor(from)],
            writes: vec![tensor(to)],
            results: vec![tensor(to)],
            args: Default::default(),
        };
        let config = Config::default()
            .with("NumWarps", ConfigValue::Int(1))
            .with("SramBytes", ConfigValue::Int(0))
            .with("Tile", ConfigValue::Ints(vec![1, 1]))
            .with("NumTasks", ConfigValue::Int(2 * processors));
        let id = number as i64;
        task_infos.push(TaskInfo {
            id,
            num_warps: 1,
            sram_bytes: 0,
            ops: vec![PlanOp { op, config }],
        });
        let processor_range = Range::new(*begin, *end);
        let tasks =
            TaskGroup { task_id: id, task_range: Range::new(0, 2 * processors), granularity: 1 };
        let resource = ResourceGroup {
            processor_range,
            warp_range: Range::new(0, 2),
            sram_range: Range::new(0, 0),
            task_groups: vec![tasks],
        };
        processor_groups.push(ProcessorGroup { processor_range, resource_groups: vec![resource] });
    }
    Plan {
        rank: 0,
        world_size: 1,
        architecture: Architecture::Cuda80,
        num_processors: processors,
        num_warps_per_processor: 2,
        task_infos,
        processor_groups,
    }
}

/// Runs a plan in every order of its warps.
fn explore(plan: &Plan) -> Exploration {
    let text = ptx(plan);
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
            Contents::Unwritten(size) => memory.add_unwritten(name, size),
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
        let found = explore(&plan);
        let messages: Vec<_> = found.diagnostics.iter().map(|found| &found.message).collect();
        assert!(found.completed && found.diagnostics.is_empty(), "{groups:?}: {messages:?}");
        assert_eq!(found.ends, 1, "{groups:?}");
        assert!(found.states > 100, "{groups:?}: {found:?}");
    }
    // The second group reads what the first writes, on other processors, without a barrier.
    let found = explore(&ranges(2, &[[0, 1], [1, 2]]));
    assert!(found.diagnostics.iter().any(|found| found.code == "ptx-race"));
    // A barrier waits for a processor that does not exist.
    let mut plan = ranges(2, &[[0, 2], [0, 2]]);
    plan.processor_groups[1].processor_range.end = 3;
    let found = explore(&plan);
    assert!(!found.completed);
    assert!(found.diagnostics.iter().any(|found| found.code == "ptx-deadlock"));
}
