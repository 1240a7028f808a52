//! Every error of a plan, starting from a valid one.

use std::collections::BTreeMap;

use irc_ark_format::model::{Arg, Buffer, DataType, Float, Op, OpKind, Options, Tensor};
use irc_ark_format::plan::{
    self, Architecture, Config, ConfigValue, Plan, PlanOp, ProcessorGroup, Range, ResourceGroup,
    TaskGroup, TaskInfo,
};
use irc_diag::{Diagnostic, Sink, Source};

/// A plan written by ARK's planner: softmax over the last axis, fused into one task for each row.
const FUSED_SOFTMAX: &str = include_str!("data/fused_softmax.plan.json");

fn tensor(id: u64, shape: &[i64], buffer: u64) -> Tensor {
    Tensor::dense(id, DataType::Fp16, shape, Buffer::local(buffer))
}

fn op(kind: OpKind, reads: Vec<Tensor>, write: Tensor, args: &[(&str, Arg)]) -> Op {
    let result = Tensor { id: write.id + 100, ..write.clone() };
    let args: BTreeMap<String, Arg> =
        args.iter().map(|(name, arg)| ((*name).to_owned(), arg.clone())).collect();
    let (name, writes, results) = (String::new(), vec![write], vec![result]);
    Op { kind, name, is_virtual: false, reads, writes, results, args }
}

fn task(id: i64, warps: i64, sram: i64, ops: Vec<(Op, Config)>) -> TaskInfo {
    let ops = ops.into_iter().map(|(op, config)| PlanOp { op, config }).collect();
    TaskInfo { id, num_warps: warps, sram_bytes: sram, ops }
}

fn tiles(tile: [i64; 2], tasks: i64) -> Config {
    Config::default()
        .with("NumWarps", ConfigValue::Int(1))
        .with("SramBytes", ConfigValue::Int(0))
        .with("Tile", ConfigValue::Ints(tile.to_vec()))
        .with("NumTasks", ConfigValue::Int(tasks))
}

fn group(task: i64, tasks: i64, processors: Range, warps: i64, sram: i64) -> ProcessorGroup {
    let task_range = Range::new(0, tasks);
    let task_groups = vec![TaskGroup { task_id: task, task_range, granularity: 1 }];
    let resource = ResourceGroup {
        processor_range: processors,
        warp_range: Range::new(0, warps),
        sram_range: Range::new(0, sram),
        task_groups,
    };
    ProcessorGroup { processor_range: processors, resource_groups: vec![resource] }
}

/// `relu(a x b) * 2`, with a task for each op.
fn sound() -> Plan {
    let (a, b, c) = (tensor(0, &[256, 64], 0), tensor(1, &[64, 256], 1), tensor(2, &[256, 256], 2));
    let (d, e) = (tensor(3, &[256, 256], 3), tensor(4, &[256, 256], 4));
    let no = Arg::Bool(false);
    let matmul = [("TransposeInput", no.clone()), ("TransposeOther", no)];
    let matmul = op(OpKind::Matmul, vec![a, b], c, &matmul);
    let config = Config::default()
        .with("NumWarps", ConfigValue::Int(8))
        .with("SramBytes", ConfigValue::Int(147_456))
        .with("TileShapeMNK", ConfigValue::Ints(vec![128, 256, 64]))
        .with("NumTasks", ConfigValue::Int(2));
    let relu = op(OpKind::Relu, matmul.results.clone(), d, &[]);
    let factor = [("Factor", Arg::Float(Float(2.0)))];
    let scale = op(OpKind::ScalarMul, relu.results.clone(), e, &factor);
    Plan {
        rank: 0,
        world_size: 1,
        architecture: Architecture::Cuda80,
        num_processors: 108,
        num_warps_per_processor: 8,
        task_infos: vec![
            task(0, 8, 147_456, vec![(matmul, config)]),
            task(1, 1, 0, vec![(relu, tiles([1, 64], 1024))]),
            task(2, 1, 0, vec![(scale, tiles([1, 64], 1024))]),
        ],
        processor_groups: vec![
            group(0, 2, Range::new(0, 2), 8, 147_456),
            group(1, 1024, Range::new(0, 108), 1, 0),
            group(2, 1024, Range::new(0, 108), 1, 0),
        ],
    }
}

fn diagnostics(change: impl FnOnce(&mut Plan)) -> Vec<(&'static str, String)> {
    let mut plan = sound();
    change(&mut plan);
    let found = plan::check(&plan).into_iter().filter(Diagnostic::is_error);
    found.map(|diagnostic| (diagnostic.code, diagnostic.path.unwrap_or_default())).collect()
}

#[track_caller]
fn expect(code: &'static str, path: &str, change: impl FnOnce(&mut Plan)) {
    assert_eq!(diagnostics(change), [(code, path.to_owned())]);
}

fn resource(plan: &mut Plan, group: usize) -> &mut ResourceGroup {
    &mut plan.processor_groups[group].resource_groups[0]
}

fn tasks(plan: &mut Plan, group: usize) -> &mut TaskGroup {
    &mut resource(plan, group).task_groups[0]
}

fn set(plan: &mut Plan, task: usize, key: &str, value: ConfigValue) {
    let config = &mut plan.task_infos[task].ops[0].config.0;
    config.iter_mut().filter(|(name, _)| name == key).for_each(|(_, old)| *old = value.clone());
}

const RG0: &str = "$.ProcessorGroups[0].ResourceGroups[0]";
const RG1: &str = "$.ProcessorGroups[1].ResourceGroups[0]";
const RG2: &str = "$.ProcessorGroups[2].ResourceGroups[0]";

#[test]
fn the_plan_is_sound() {
    assert_eq!(plan::check(&sound()), []);
}

#[test]
fn schema() {
    expect("plan-task-id", "$.TaskInfos[1].Id", |p| p.task_infos[1].id = 7);
    expect("plan-task-id", &format!("{RG2}.TaskGroups[0].TaskId"), |p| tasks(p, 2).task_id = 3);
    let path = format!("{RG1}.TaskGroups[0].Granularity");
    expect("plan-number", &path, |p| tasks(p, 1).granularity = 0);
    let path = format!("{RG1}.TaskGroups[0].TaskRange");
    expect("plan-stepped-range", &path, |p| tasks(p, 1).task_range.step = Some(2));
    expect("plan-range", &path, |p| tasks(p, 1).task_range = Range::new(5, 4));
    expect("plan-missing-config", "$.TaskInfos[1].Ops[0].Config", |p| {
        p.task_infos[1].ops[0].config = Config::default().with("NumWarps", ConfigValue::Int(1));
    });
    expect("plan-config", "$.TaskInfos[1].Ops[0].Config.Tile", |p| {
        set(p, 1, "Tile", ConfigValue::Ints(vec![0, 64]));
    });
    expect("plan-number", "$.NumProcessors", |p| p.num_processors = 0);
    expect("ark-world-size", "$.Rank", |p| p.rank = 1);
}

#[test]
fn every_task_runs_once() {
    let num_tasks = "$.TaskInfos[1].Ops[0].Config.NumTasks";
    assert_eq!(
        diagnostics(|p| set(p, 1, "NumTasks", ConfigValue::Int(1000)))[0],
        ("plan-num-tasks", num_tasks.into())
    );
    let path = format!("{RG1}.TaskGroups[0].TaskRange");
    expect("plan-lost-tasks", &path, |p| tasks(p, 1).task_range = Range::new(0, 1000));
    expect("plan-lost-tasks", &path, |p| tasks(p, 1).task_range = Range::new(1, 1024));
    expect("plan-task-range", &path, |p| tasks(p, 1).task_range = Range::new(0, 1025));
    expect("plan-repeated-tasks", &format!("{RG1}.TaskGroups[1].TaskRange"), |p| {
        let task_range = Range::new(1000, 1024);
        let again = TaskGroup { task_range, ..*tasks(p, 1) };
        resource(p, 1).task_groups.push(again);
    });
    expect("plan-distribution", &format!("{RG1}.TaskGroups[1]"), |p| {
        // Half the processors, and a second group that starts in the middle of them.
        p.processor_groups[1].processor_range = Range::new(0, 54);
        resource(p, 1).processor_range = Range::new(0, 54);
        let second = TaskGroup { task_range: Range::new(101, 1024), ..*tasks(p, 1) };
        tasks(p, 1).task_range = Range::new(0, 101);
        resource(p, 1).task_groups.push(second);
    });
}

#[test]
fn resources_suffice() {
    expect("plan-processors", "$.NumProcessors", |p| p.num_processors = 109);
    expect("plan-processors", "$.NumProcessors", |p| p.num_processors = 2_000_000_000);
    let path = format!("{RG1}.ProcessorRange");
    expect("plan-processors", &path, |p| resource(p, 1).processor_range = Range::new(0, 109));
    let groups =
        [1, 2].map(|i| ("plan-processors", format!("$.ProcessorGroups[{i}].ProcessorRange")));
    assert_eq!(diagnostics(|p| p.num_processors = 107), groups);
    let lost = [format!("{RG0}.WarpRange"), format!("{RG0}.TaskGroups[0]")];
    let lost = lost.map(|path| ("plan-warps", path));
    assert_eq!(diagnostics(|p| p.num_warps_per_processor = 7), lost);
    expect("plan-warps", &format!("{RG0}.TaskGroups[0]"), |p| {
        resource(p, 0).warp_range = Range::new(0, 4);
    });
    expect("plan-sram", &format!("{RG0}.TaskGroups[0]"), |p| {
        resource(p, 0).sram_range = Range::new(0, 1024);
    });
    expect("plan-sram", &format!("{RG0}.SramRange"), |p| {
        resource(p, 0).sram_range = Range::new(0, 200_000);
    });
    expect("plan-warps", "$.NumWarpsPerProcessor", |p| p.num_warps_per_processor = 33);
    expect("plan-sram", "$.TaskInfos[0].Ops[0].Config.SramBytes", |p| {
        p.task_infos[0].sram_bytes = 1024;
        resource(p, 0).sram_range = Range::new(0, 1024);
    });
}

#[test]
fn kernels_exist() {
    let tile = "$.TaskInfos[0].Ops[0].Config.TileShapeMNK";
    expect("plan-matmul-kernel", tile, |p| p.architecture = Architecture::Cuda90);
    expect("plan-matmul-kernel", tile, |p| set(p, 0, "SramBytes", ConfigValue::Int(147_000)));
    let [tile_k, kernel] = &diagnostics(|p| {
        set(p, 0, "TileShapeMNK", ConfigValue::Ints(vec![128, 256, 48]));
    })[..] else {
        panic!("two diagnostics");
    };
    assert_eq!((tile_k.0, kernel.0), ("plan-matmul-tile", "plan-matmul-kernel"));
    let virtual_op = diagnostics(|p| p.task_infos[1].ops[0].op.is_virtual = true);
    assert_eq!(virtual_op[0].0, "plan-virtual-op");
}

#[test]
fn conflicts_are_ordered_by_barriers() {
    // Groups without common processors start at once.
    expect("plan-race", &format!("{RG2}.TaskGroups[0]"), |p| {
        p.processor_groups[1] = group(1, 1024, Range::new(0, 54), 1, 0);
        p.processor_groups[2] = group(2, 1024, Range::new(54, 108), 1, 0);
    });
    // A chain of barriers through processors shared with a group in between orders them.
    assert_eq!(
        diagnostics(|p| {
            p.processor_groups[1] = group(1, 1024, Range::new(0, 54), 1, 0);
            p.processor_groups[2] = group(2, 1024, Range::new(50, 108), 1, 0);
        }),
        []
    );
    // Task groups of one processor group have no barrier between them.
    expect("plan-group-race", &format!("{RG1}.TaskGroups[1]"), |p| {
        let moved = *tasks(p, 2);
        resource(p, 1).task_groups.push(moved);
        p.processor_groups.pop();
    });
}

#[test]
fn what_is_read_was_made_before() {
    let read = |task: usize| {
        let path = format!("$.TaskInfos[{task}].Ops[0].ReadTensors[0]");
        ("plan-use-before-result", path)
    };
    assert_eq!(diagnostics(|p| p.processor_groups.reverse()), [read(1), read(2)]);
    // A producer that never runs is an error too; a reader that never runs is not.
    let lost = |task: usize| ("plan-lost-tasks", format!("$.TaskInfos[{task}]"));
    assert_eq!(diagnostics(|p| drop(p.processor_groups.remove(0))), [lost(0), read(1)]);
    assert_eq!(diagnostics(|p| drop(p.processor_groups.remove(1))), [lost(1), read(2)]);
    assert_eq!(diagnostics(|p| drop(p.processor_groups.pop())), [lost(2)]);
    // Within a task, the order of its ops matters.
    let swapped = diagnostics(|p| {
        fuse(p);
        p.task_infos[1].ops.swap(0, 1);
    });
    assert_eq!(swapped, [read(1)]);
}

#[test]
fn a_use_before_its_result_names_both_ops() {
    let message = |change: fn(&mut Plan)| {
        let mut plan = sound();
        change(&mut plan);
        let mut found = plan::check(&plan).into_iter();
        let found = found.find(|diagnostic| diagnostic.code == "plan-use-before-result");
        found.map(|diagnostic| diagnostic.message).unwrap_or_default()
    };
    assert_eq!(
        message(|p| p.processor_groups.reverse()),
        "op 0 of task 1 reads tensor 102, which op 0 of task 0 makes only later"
    );
    assert_eq!(
        message(|p| drop(p.processor_groups.remove(0))),
        "op 0 of task 1 reads tensor 102, which op 0 of task 0 would make but never runs"
    );
}

#[test]
fn a_use_before_its_result_names_the_processor_groups() {
    let mut plan = sound();
    plan.processor_groups.swap(0, 1);
    let mut found = plan::check(&plan).into_iter();
    let found = found.find(|diagnostic| diagnostic.code == "plan-use-before-result");
    let related: Vec<_> = found
        .iter()
        .flat_map(|diagnostic| &diagnostic.related)
        .map(|place| place.path.as_str())
        .collect();
    let groups = ["$.ProcessorGroups[0]", "$.ProcessorGroups[1]"];
    assert_eq!(&related[1..], groups, "{found:?}");
}

/// The plan with the scaling fused into the task of the relu.
fn fuse(plan: &mut Plan) {
    let scale = plan.task_infos.pop().expect("three tasks");
    plan.task_infos[1].ops.extend(scale.ops);
    plan.processor_groups.pop();
}

#[test]
fn fused_ops_use_their_own_tile() {
    assert_eq!(diagnostics(fuse), []);
    expect("plan-fused-dependency", "$.TaskInfos[1].Ops[1].ReadTensors[0]", |p| {
        fuse(p);
        let config = &mut p.task_infos[1].ops[1].config;
        *config = tiles([64, 1], 1024);
    });
    expect("plan-fused-tasks", "$.TaskInfos[1].Ops[1].Config.NumTasks", |p| {
        fuse(p);
        p.task_infos[1].ops[1].config = tiles([1, 256], 256);
        let reads = &mut p.task_infos[1].ops[1].op.reads[0];
        // Another buffer, so that the two ops do not depend on each other.
        (reads.id, reads.buffer.id) = (50, 50);
    });
}

#[test]
fn a_real_fused_plan_needs_its_tiles() {
    let parse = |text: &str| {
        let mut sink = Sink::new();
        plan::parse(&Source::new("plan", text), &Options::default(), &mut sink);
        let found = sink.into_diagnostics();
        found.into_iter().filter(Diagnostic::is_error).map(|f| f.code).collect::<Vec<_>>()
    };
    assert_eq!(parse(FUSED_SOFTMAX), Vec::<&str>::new());
    // Half-row tiles: each task would use a maximum that another may not have computed yet.
    let halves = FUSED_SOFTMAX.replace("\"Tile\": [1,2048]", "\"Tile\": [2,1024]");
    assert!(parse(&halves).contains(&"plan-fused-dependency"));
}

#[test]
fn a_caret_points_into_the_file() {
    let text = plan::write(&sound()).replacen("\"TaskId\":2", "\"TaskId\":5", 1);
    let mut sink = Sink::new();
    assert_eq!(plan::parse(&Source::new("plan", &text), &Options::default(), &mut sink), None);
    let span = sink.diagnostics()[0].primary_span().expect("a place");
    assert_eq!(&text[span], "5");
}

#[test]
fn what_is_written_is_read_back() {
    let text = plan::write(&sound());
    let read = plan::parse(&Source::new("plan", &text), &Options::default(), &mut Sink::new());
    assert_eq!(read, Some(sound()));
}

#[test]
fn ranks_must_list_each_others_tags() {
    let mut sender = sound();
    sender.world_size = 2;
    let mut receiver = Plan { rank: 1, ..sender.clone() };
    assert_eq!(plan::check_ranks(&[sender.clone(), receiver.clone()]), []);
    let tagged = &mut receiver.task_infos[1].ops[0].op.writes[0].buffer;
    tagged.recv_tags.push([0, 5]);
    let found = plan::check_ranks(&[sender.clone(), receiver]);
    let path = "$.TaskInfos[1].Ops[0].WriteTensors[0].Buffer.RecvTags";
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].0, found[0].1.code), (1, "plan-tag"));
    assert_eq!(found[0].1.path.as_deref(), Some(path));
    let found = plan::check_ranks(&[sender.clone(), sender]);
    assert_eq!(found[0].1.code, "plan-ranks");
}

/// Rank 0 of two sends packets to rank 1, or receives them.
fn packets(sends: bool) -> Plan {
    let data = |id, buffer| Tensor::dense(id, DataType::Fp16, &[1024], Buffer::local(buffer));
    let mut far = Tensor::dense(1, DataType::Uint8, &[4096], Buffer::local(1));
    (far.buffer.rank, far.buffer.recv_tags) = (1, vec![[-1, 0]]);
    let mut scratch = Tensor::dense(2, DataType::Uint8, &[4096], Buffer::local(1));
    scratch.buffer.recv_tags = vec![[0, 0]];
    let mut near = data(3, 2);
    near.buffer.rank = 0;
    let flag = [("Flag", Arg::Uint32(1))];
    let packet_op = match sends {
        true => op(OpKind::SendPacket, vec![data(0, 0)], far, &flag),
        false => op(OpKind::RecvPacket, vec![near, scratch], data(0, 0), &flag),
    };
    let packet = ConfigValue::Text("mscclpp::LL16Packet".into());
    // Tiles of the packets' bytes, or of their payload.
    let tasks = if sends { 8 } else { 2 };
    let config = tiles([1, 512], tasks).with("PacketType", packet);
    Plan {
        rank: i64::from(!sends),
        world_size: 2,
        task_infos: vec![task(0, 1, 0, vec![(packet_op, config)])],
        processor_groups: vec![group(0, tasks, Range::new(0, 2), 1, 0)],
        ..sound()
    }
}

#[test]
fn both_ends_of_a_link_agree() {
    assert_eq!(plan::check(&packets(true)), []);
    assert_eq!(plan::check(&packets(false)), []);
    let found = |change: fn(&mut Plan)| {
        let mut receiver = packets(false);
        change(&mut receiver);
        let found = plan::check_ranks(&[packets(true), receiver]);
        found.into_iter().map(|(i, f)| (i, f.code, f.path.unwrap_or_default())).collect::<Vec<_>>()
    };
    assert_eq!(found(|_| {}), []);
    let op = "$.TaskInfos[0].Ops[0]";
    let flag = |p: &mut Plan| {
        p.task_infos[0].ops[0].op.args.insert("Flag".into(), Arg::Uint32(2));
    };
    assert_eq!(found(flag), [(1, "plan-channel", format!("{op}.Args.Flag"))]);
    let packet = |p: &mut Plan| {
        set(p, 0, "PacketType", ConfigValue::Text("mscclpp::LL8Packet".into()));
    };
    assert_eq!(found(packet), [(1, "plan-channel", format!("{op}.Config.PacketType"))]);
    let untagged = |p: &mut Plan| p.task_infos[0].ops[0].op.reads[1].buffer.recv_tags.clear();
    let expected = "$.TaskInfos[0].Ops[0].WriteTensors[0].Buffer.RecvTags";
    assert_eq!(found(untagged), [(0, "plan-tag", expected.to_owned())]);
}

/// A batch of two by three products of `[128, 64]` and `[64, 256]`.
fn batched(change: impl FnOnce(&mut Op)) -> Vec<(&'static str, String)> {
    let dense = |id, shape: [i64; 4]| tensor(id, &shape, id);
    let no = Arg::Bool(false);
    let args = [("TransposeInput", no.clone()), ("TransposeOther", no)];
    let reads = vec![dense(0, [2, 3, 128, 64]), dense(1, [2, 3, 64, 256])];
    let mut matmul = op(OpKind::Matmul, reads, dense(2, [2, 3, 128, 256]), &args);
    change(&mut matmul);
    let (write, result) = (matmul.writes[0].clone(), &mut matmul.results[0]);
    *result = Tensor { id: result.id, ..write };
    let tasks = matmul.results[0].shape.iter().rev().skip(2).product();
    let config = Config::default()
        .with("NumWarps", ConfigValue::Int(8))
        .with("SramBytes", ConfigValue::Int(147_456))
        .with("TileShapeMNK", ConfigValue::Ints(vec![128, 256, 64]))
        .with("NumTasks", ConfigValue::Int(tasks));
    let plan = Plan {
        task_infos: vec![task(0, 8, 147_456, vec![(matmul, config)])],
        processor_groups: vec![group(0, tasks, Range::new(0, 2), 8, 147_456)],
        ..sound()
    };
    let found = plan::check(&plan).into_iter();
    found.map(|diagnostic| (diagnostic.code, diagnostic.path.unwrap_or_default())).collect()
}

#[test]
fn batches_are_stepped_as_the_result_is() {
    let at = |list: &str, index: usize| {
        let path = format!("$.TaskInfos[0].Ops[0].{list}[{index}].Strides");
        vec![("plan-matmul-batch", path)]
    };
    assert_eq!(batched(|_| {}), []);
    // Padding of the number of matrices is not computed on.
    let pad = |op: &mut Op| {
        for tensor in op.reads.iter_mut().chain(&mut op.writes) {
            (tensor.shape[0], tensor.shape[1]) = (1, 2);
            (tensor.strides[0], tensor.padded_shape[0]) = (1, 1);
        }
    };
    assert_eq!(batched(pad), []);
    assert_eq!(batched(|op| op.reads[0].strides[1] = 4), at("ReadTensors", 0));
    assert_eq!(batched(|op| op.reads[1].strides[1] = 4), at("ReadTensors", 1));
    assert_eq!(batched(|op| op.writes[0].strides[1] = 4), at("WriteTensors", 0));
    assert_eq!(batched(|op| op.reads[0].strides[2] = 136), at("ReadTensors", 0));
    assert_eq!(batched(|op| op.reads[1].strides[3] = 264), at("ReadTensors", 1));
    // An operand that is constant along an outer index is stepped as one matrix.
    let stretch = |view: i64| {
        batched(|op| {
            let a = &mut op.reads[0];
            (a.shape[1], a.padded_shape[1], a.strides[1]) = (1, 1, view);
        })
    };
    assert_eq!(stretch(1), []);
    assert_eq!(stretch(3), at("ReadTensors", 0));
}

/// Errors of an op that receives or sends packets.
fn packet_errors(sends: bool, change: impl FnOnce(&mut Op)) -> Vec<&'static str> {
    let mut plan = packets(sends);
    let op = &mut plan.task_infos[0].ops[0].op;
    change(op);
    op.results[0] = Tensor { id: 90, ..op.writes[0].clone() };
    let found = plan::check(&plan).into_iter().filter(Diagnostic::is_error);
    found.map(|diagnostic| diagnostic.code).collect()
}

/// The same elements with another shape.
fn reshape(tensor: &mut Tensor, shape: &[i64]) {
    *tensor = Tensor::dense(tensor.id, tensor.dtype, shape, tensor.buffer.clone());
}

#[test]
fn packets_carry_one_row() {
    let shape = ["plan-packet-shape"];
    assert_eq!(packet_errors(true, |_| {}), [""; 0]);
    // Sent in order, independently of the rows.
    assert_eq!(packet_errors(true, |op| reshape(&mut op.reads[0], &[8, 128])), [""; 0]);
    assert_eq!(packet_errors(true, |op| op.reads[0].strides[0] = 1024 + 8), [""; 0]);
    // A row of a single packet is treated as broadcast.
    assert_eq!(packet_errors(true, |op| reshape(&mut op.reads[0], &[256, 4])), shape);
    let gaps = |op: &mut Op| {
        reshape(&mut op.reads[0], &[8, 128]);
        op.reads[0].strides[1] = 136;
    };
    assert_eq!(packet_errors(true, gaps), shape);
    // Two elements that do not fill a packet.
    assert_eq!(packet_errors(true, |op| reshape(&mut op.reads[0], &[1022])), shape);
    let receive = |data: &[i64], packets: &[i64]| {
        packet_errors(false, |op| {
            reshape(&mut op.reads[0], data);
            reshape(&mut op.reads[1], packets);
            reshape(&mut op.writes[0], data);
        })
    };
    assert_eq!(receive(&[1024], &[4096]), [""; 0]);
    assert_eq!(receive(&[2, 512], &[4096]), shape);
    assert_eq!(receive(&[2, 512], &[2, 2048]), [""; 0]);
    assert_eq!(receive(&[1022], &[4096]), shape);
}

#[test]
fn tasks_cover_the_packets() {
    let codes = |change: fn(&mut Plan)| {
        let mut plan = packets(false);
        change(&mut plan);
        let found = plan::check(&plan).into_iter().filter(Diagnostic::is_error);
        found.map(|diagnostic| diagnostic.code).collect::<Vec<_>>()
    };
    assert_eq!(codes(|_| {}), [""; 0]);
    assert_eq!(codes(|p| set(p, 0, "Tile", ConfigValue::Ints(vec![1, 128]))), ["plan-num-tasks"]);
    assert_eq!(codes(|p| set(p, 0, "Tile", ConfigValue::Ints(vec![1, 2]))), ["plan-peer-tile"]);
}

/// Two products of `[512, 64]` and `[64, 128]` in sequence on one processor, with these
/// bytes and tiles; each on four of eight warps.
fn products(kernels: [(i64, [i64; 3]); 2]) -> Vec<&'static str> {
    let product = |(index, (bytes, tile)): (u64, (i64, [i64; 3]))| {
        let id = 10 * index;
        let no = Arg::Bool(false);
        let args = [("TransposeInput", no.clone()), ("TransposeOther", no)];
        let reads = vec![tensor(id, &[512, 64], id), tensor(id + 1, &[64, 128], id + 1)];
        let tasks = 512 / tile[0] * (128 / tile[1]);
        let config = Config::default()
            .with("NumWarps", ConfigValue::Int(4))
            .with("SramBytes", ConfigValue::Int(bytes))
            .with("TileShapeMNK", ConfigValue::Ints(tile.to_vec()))
            .with("NumTasks", ConfigValue::Int(tasks));
        let op = op(OpKind::Matmul, reads, tensor(id + 2, &[512, 128], id + 2), &args);
        (task(index as i64, 4, bytes, vec![(op, config)]), tasks)
    };
    let made: Vec<_> = (0..).zip(kernels).map(product).collect();
    let mut both = group(0, made[0].1, Range::new(0, 1), 8, 163_840);
    let second = TaskGroup { task_id: 1, task_range: Range::new(0, made[1].1), granularity: 1 };
    both.resource_groups[0].task_groups.push(second);
    let task_infos = made.into_iter().map(|(info, _)| info).collect();
    let plan = Plan { task_infos, processor_groups: vec![both], ..sound() };
    let found = plan::check(&plan).into_iter().filter(Diagnostic::is_error);
    found.map(|diagnostic| diagnostic.code).collect()
}

#[test]
fn neighbours_share_no_memory() {
    let (one, two) = ((98_304, [128, 128, 64]), (81_920, [256, 64, 32]));
    assert_eq!(products([two, two]), [""; 0]);
    assert_eq!(products([one, one]), [""; 0]);
    // The second slot starts inside memory that the previous one still uses, and the reverse.
    assert_eq!(products([one, two]), ["plan-group-sram"]);
    assert_eq!(products([two, one]), ["plan-group-sram"]);
}
