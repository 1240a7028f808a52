//! The scratch of tasks of plans in the shared memory of blocks, as the SRAM of the plan says.
use crate::{
    gpu::assemble,
    gpu_plans::{ptx, run},
};
use irc::{Session, Source, Target, gpu::Options};
use irc_ark_format::{
    model::{Buffer, DataType, Op, OpKind, Tensor},
    plan::{
        self, Architecture, Config, ConfigValue, Plan, PlanOp, ProcessorGroup, Range,
        ResourceGroup, TaskGroup, TaskInfo,
    },
};

/// Rows of 64 floats that are rotated in place: each task needs scratch of its rows, 256 bytes each.
const COLUMNS: i64 = 64;
const ROW_BYTES: u64 = 256;

/// Tasks of so many warps that rotate rows of a buffer of their own.
#[derive(Clone, Copy)]
struct Tasks {
    warps: i64,
    rows: i64,
    count: i64,
}

/// Which task infos a resource group runs, one after the other, on how many warps from which on, and its SRAM.
struct Resources<'t> {
    warps: [i64; 2],
    sram: i64,
    tasks: &'t [i64],
}

/// A plan for one processor of so many warps, with a processor group of each list of resource groups.
fn plan_of(warps: i64, sram: i64, tasks: &[Tasks], groups: &[&[Resources<'_>]]) -> Plan {
    let info = |(id, tasks): (usize, &Tasks)| {
        let buffers = [2 * id as u64, 2 * id as u64 + 1];
        let shape = [tasks.rows * tasks.count, COLUMNS];
        let [x, by] =
            buffers.map(|id| Tensor::dense(id, DataType::Fp32, &shape, Buffer::local(id)));
        let op = Op {
            kind: OpKind::Rope,
            name: format!("rope_{id}"),
            is_virtual: false,
            reads: vec![x.clone(), by],
            writes: vec![x.clone()],
            results: vec![x],
            args: Default::default(),
        };
        let config = Config::default()
            .with("NumWarps", ConfigValue::Int(tasks.warps))
            .with("SramBytes", ConfigValue::Int(sram))
            .with("NumTasks", ConfigValue::Int(tasks.count))
            .with("Tile", ConfigValue::Ints(vec![tasks.rows, COLUMNS]));
        let ops = vec![PlanOp { op, config }];
        TaskInfo { id: id as i64, num_warps: tasks.warps, sram_bytes: sram, ops }
    };
    let resource = |resources: &Resources<'_>| {
        let group = |id: &i64| {
            let task_range = Range::new(0, tasks[*id as usize].count);
            TaskGroup { task_id: *id, task_range, granularity: 1 }
        };
        ResourceGroup {
            processor_range: Range::new(0, 1),
            warp_range: Range::new(resources.warps[0], resources.warps[1]),
            sram_range: Range::new(0, resources.sram),
            task_groups: resources.tasks.iter().map(group).collect(),
        }
    };
    let group = |resources: &&[Resources<'_>]| ProcessorGroup {
        processor_range: Range::new(0, 1),
        resource_groups: resources.iter().map(resource).collect(),
    };
    Plan {
        rank: 0,
        world_size: 1,
        architecture: Architecture::Cuda80,
        num_processors: 1,
        num_warps_per_processor: warps,
        task_infos: tasks.iter().enumerate().map(info).collect(),
        processor_groups: groups.iter().map(group).collect(),
    }
}

fn shared_bytes(text: &str) -> u64 {
    irc_runtime::GpuKernel::from_ptx(text).expect("a description").shared_bytes
}

/// Tasks of one warp and of four, of which the latter follow the former on the same warps.
fn mixed(sram: i64) -> Plan {
    let tasks = [Tasks { warps: 1, rows: 1, count: 8 }, Tasks { warps: 4, rows: 4, count: 3 }];
    let resources = Resources { warps: [0, 4], sram: 4 * sram, tasks: &[0, 1, 0] };
    plan_of(4, sram, &tasks, &[&[resources]])
}

#[test]
fn scratch_that_fits_the_sram_of_its_slot_is_in_shared_memory() {
    // A slot of one warp has a row, and that of four warps four.
    for (sram, expected) in [(0, 0), (16, 0), (256, 4 * ROW_BYTES), (4096, 4 * ROW_BYTES)] {
        let text = ptx(&mixed(sram));
        assert_eq!(shared_bytes(&text), expected, "{sram}");
        assert_eq!(text.contains("irc_gpu_shared_memory"), expected > 0, "{sram}");
        for access in ["ld.shared", "st.shared"] {
            let is_scratch = |line: &str| line.contains(access) && !line.contains("irc_gpu_");
            assert_eq!(text.lines().any(is_scratch), expected > 0, "{sram} {access}: {text}");
        }
        assemble(&format!("scratch {sram}"), &text, "sm_80");
    }
    // Only the tasks of one warp fit.
    let tasks = [Tasks { warps: 1, rows: 1, count: 8 }, Tasks { warps: 4, rows: 32, count: 3 }];
    let resources = Resources { warps: [0, 4], sram: 4 * 512, tasks: &[0, 1] };
    let text = ptx(&plan_of(4, 512, &tasks, &[&[resources]]));
    assert_eq!(shared_bytes(&text), 4 * ROW_BYTES);
    run(&text, &Options::CHECKED).expect("a run");
    let session = Session::new();
    let code = session.plan(Source::new("plan.json", plan::write(&mixed(4096))));
    let text = String::from_utf8(code.ptx(&Target::gpu(90)).expect("PTX")).expect("text");
    assemble("scratch", &text, "sm_90a");
}

#[test]
fn tasks_that_run_side_by_side_have_no_scratch_in_common() {
    // A warp whose tasks of one warp have ended waits for the others before they run a task together: also with scratch in
    // global memory.
    let outputs = [0, 4096].map(|sram| {
        let text = ptx(&mixed(sram));
        run(&text, &Options::CHECKED).expect("no race").outputs
    });
    assert_eq!(outputs[0], outputs[1]);
    // Resource groups on warps of their own, and on warps of others that run the next processor group.
    let tasks = [
        Tasks { warps: 1, rows: 2, count: 7 },
        Tasks { warps: 2, rows: 6, count: 5 },
        Tasks { warps: 8, rows: 16, count: 2 },
    ];
    let outputs = [0, 8192].map(|sram| {
        let first = [
            Resources { warps: [0, 4], sram: 4 * sram, tasks: &[0] },
            Resources { warps: [4, 8], sram: 2 * sram, tasks: &[1] },
        ];
        let second = [Resources { warps: [0, 8], sram, tasks: &[2] }];
        let text = ptx(&plan_of(8, sram, &tasks, &[&first, &second]));
        // Three rows for each warp in the first group, two in the second.
        assert_eq!(shared_bytes(&text), if sram == 0 { 0 } else { 8 * 3 * ROW_BYTES });
        run(&text, &Options::CHECKED).expect("no race").outputs
    });
    assert_eq!(outputs[0], outputs[1]);
}

#[test]
fn scratch_that_does_not_fit_the_device_is_in_global_memory() {
    // The plan gives each of four slots 64 KiB, more than the device has; tasks of half as many rows fit.
    let tasks = |rows: i64| [Tasks { warps: 1, rows, count: 5 }];
    let sram = 64 << 10;
    let of = |rows: i64| {
        let resources = Resources { warps: [0, 4], sram: 4 * sram, tasks: &[0] };
        ptx(&plan_of(4, sram, &tasks(rows), &[&[resources]]))
    };
    assert_eq!(shared_bytes(&of(256)), 0);
    assert_eq!(shared_bytes(&of(128)), 4 * 128 * ROW_BYTES);
    run(&of(256), &Options::default()).expect("a run");
    run(&of(128), &Options::default()).expect("a run");
}
