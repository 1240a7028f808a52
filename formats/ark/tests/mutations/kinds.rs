//! The kinds of mutation, as rows.

use serde_json::{Value, json};

use super::plans::Set;
use super::{Kind, Seeded};

type Done = Option<()>;

/// All kinds.
pub fn all() -> Vec<Kind> {
    let kind = |name, code, apply| Kind { name, code, apply };
    vec![
        // Syntax.
        kind("a key of the plan is missing", "ark-missing-key", missing_plan_key),
        kind("a key of a task is missing", "ark-missing-key", missing_task_key),
        kind("a key of a task group is missing", "ark-missing-key", missing_group_key),
        kind("a key of a tensor is missing", "ark-missing-key", missing_tensor_key),
        kind("a config key is missing", "plan-missing-config", missing_config_key),
        kind("a number is null", "ark-wrong-type", null_number),
        kind("a float is null", "ark-null-float", null_float),
        kind("the architecture is unknown", "plan-unknown-architecture", unknown_architecture),
        kind("the op is unknown", "ark-unknown-op", |s, r| in_op(s, r, "Type", json!("Conv"))),
        kind("the data type is unknown", "ark-unknown-dtype", unknown_dtype),
        kind("a task's id is not its index", "plan-task-id", wrong_id),
        kind("a task group names no task", "plan-task-id", wrong_task_id),
        kind("a range is turned round", "plan-range", |s, r| any_range(s, r, json!([5, 4]))),
        kind("a range begins below zero", "plan-range", |s, r| any_range(s, r, json!([-1, 4]))),
        kind("a range has a step", "plan-stepped-range", stepped),
        kind("a range has one number", "ark-wrong-type", |s, r| any_range(s, r, json!([4]))),
        kind("no granularity", "plan-number", |s, r| in_group(s, r, "Granularity", json!(0))),
        kind("no processors", "plan-number", |s, r| in_plan(s, r, "NumProcessors", json!(0))),
        kind("no warps", "plan-number", |s, r| in_plan(s, r, "NumWarpsPerProcessor", json!(0))),
        kind("the rank is not in the world", "ark-world-size", rank_outside),
        kind("a task has no ops", "plan-empty-task", empty_task),
        kind("an op is virtual", "plan-virtual-op", |s, r| in_op(s, r, "IsVirtual", json!(true))),
        kind("a tile is empty", "plan-config", |s, r| in_config(s, r, "Tile", json!([0, 64]))),
        kind("the implementation is unknown", "plan-config", |s, r| {
            in_config(s, r, "ImplType", json!("Magic"))
        }),
        kind("the channel is unknown", "plan-config", |s, r| {
            in_config(s, r, "ChannelType", json!("Pigeon"))
        }),
        // Each task runs once.
        kind("a task range is shifted", "plan-lost-tasks", |s, r| task_range(s, r, 1, 1)),
        kind("a task range is shrunk", "plan-lost-tasks", |s, r| task_range(s, r, 0, -1)),
        kind("a task range is cut in front", "plan-lost-tasks", |s, r| task_range(s, r, 1, 0)),
        kind("a task range is too long", "plan-task-range", |s, r| task_range(s, r, 0, 1)),
        kind("tasks run twice", "plan-repeated-tasks", repeated_tasks),
        kind("a processor group is dropped", "plan-lost-tasks", dropped_group),
        kind("a processor group is doubled", "plan-repeated-tasks", doubled_group),
        kind("a task group is dropped", "plan-lost-tasks", dropped_task_group),
        kind("the number of tasks is wrong", "plan-num-tasks", wrong_num_tasks),
        kind("tasks start in the middle of some processors", "plan-distribution", distribution),
        // Resources.
        kind("too few processors", "plan-processors", too_few_processors),
        kind("more processors than the device", "plan-processors", |s, r| {
            in_plan(s, r, "NumProcessors", json!(305))
        }),
        kind("a resource group leaves its processors", "plan-processors", outside_group),
        kind("too few warps for a task", "plan-warps", few_warps),
        kind("more warps than a processor has", "plan-warps", many_warps),
        kind("a processor has too few warps", "plan-warps", few_plan_warps),
        kind("a processor has too many warps", "plan-warps", |s, r| {
            in_plan(s, r, "NumWarpsPerProcessor", json!(33))
        }),
        kind("warps that are no power of two", "plan-warps", |s, r| in_task(s, r, "NumWarps", 3)),
        kind("a task has fewer warps than its op", "plan-warps", fewer_task_warps),
        kind("a task has more warps than its product", "plan-warps", more_task_warps),
        kind("a receive waits on several warps", "plan-warps", wide_receive),
        kind("a barrier lies inside another", "plan-barrier-state", nested_barriers),
        kind("too much on-chip memory", "plan-sram", too_much_sram),
        kind("too little on-chip memory", "plan-sram", too_little_sram),
        kind("a task has less memory than its op", "plan-sram", less_task_sram),
        kind("on-chip memory that cannot be aligned", "plan-sram", unaligned_sram),
        // Kernels.
        kind("the matrix kernel takes other memory", "plan-matmul-kernel", matmul_sram),
        kind("the matrix kernel takes other warps", "plan-matmul-kernel", matmul_warps),
        kind("no matrix kernel has the tile", "plan-matmul-kernel", |s, r| {
            matmul_tile(s, r, json!([64, 256, 128]))
        }),
        kind("a tile does not divide", "plan-matmul-tile", |s, r| {
            matmul_tile(s, r, json!([128, 128, 96]))
        }),
        kind("no such matrix kernel on the architecture", "plan-matmul-kernel", other_architecture),
        kind("a transposition moves nothing", "plan-transpose-identity", transpose_identity),
        kind("a warp reduces an axis that is not the last", "plan-reduce-impl", wrong_axis),
        kind("a reduction drops its dimension", "plan-reduce-keep-dim", dropped_dimension),
        kind("an op reaches another rank", "ark-foreign-buffer", foreign_buffer),
        kind("a buffer lies on no rank", "ark-remote-rank", no_such_rank),
        kind("a tag is of no rank", "plan-ranks", no_such_peer),
        kind("a proxy sends parts of rows", "plan-send-strided", strided_send),
        kind("what peers send has a rest", "plan-peer-tile", peer_rest),
        kind("what is received as packets has rows", "plan-packet-shape", packet_rows),
        kind("peers are in another order", "plan-peers", other_peer),
        // Tensors.
        kind("an operand has another type", "ark-dtype", operand_dtype),
        kind("an operand has another shape", "ark-tensor-redefined", operand_shape),
        kind("a box leaves its view", "ark-strides", |s, r| in_tensor(s, r, "Offsets", 1)),
        kind("a view is too small", "ark-strides", |s, r| in_tensor(s, r, "Strides", -1)),
        kind("a result lies elsewhere", "ark-result-region", result_elsewhere),
        kind("a buffer has two ranks", "ark-buffer-rank", two_ranks),
        // Order.
        kind("groups are swapped", "plan-use-before-result", swapped_groups),
        kind("a barrier is lost", "plan-race", lost_barrier),
        kind("groups are merged", "plan-group-race", merged_groups),
        kind("two writers share a buffer", "plan-race", shared_buffer),
        kind("fused ops have other tiles", "plan-fused-dependency", fused_tiles),
        kind("fused ops differ in tasks", "plan-fused-tasks", fused_tasks),
        kind("fused ops are swapped", "plan-use-before-result", fused_swapped),
        kind("what is sent is overwritten", "plan-race", no_send_done),
        // Ranks.
        kind("a tag is another", "plan-tag", other_tag),
        kind("two buffers share a tag", "ark-tag-collision", shared_tag),
        kind("a rank occurs twice", "plan-ranks", same_rank),
        kind("worlds differ in size", "plan-ranks", other_world),
        kind("a receive is dropped", "plan-signal", |s, r| without(s, r, "Recv", "Wait")),
        kind("a receive does not wait", "plan-race", no_wait),
        kind("a send does not signal", "plan-deadlock", no_signal),
        kind("a send is dropped", "plan-deadlock", |s, r| without(s, r, "Send", "Signal")),
        kind("all receive first", "plan-deadlock", receive_first),
        kind("the channels differ", "plan-channel", other_channel),
        kind("the packets differ", "plan-channel", other_packet),
        kind("the flags differ", "plan-channel", other_flag),
        kind("a sync is dropped", "plan-deadlock", one_sync),
        kind("all syncs are dropped", "plan-race", no_syncs),
        // Semantics.
        kind("an op is another", "plan-changed-op", changed_type),
        kind("an argument is another", "plan-changed-op", changed_factor),
        kind("operands are swapped", "plan-changed-op", swapped_operands),
        kind("an op is left out", "plan-missing-op", missing_op),
        kind("an output is renamed", "plan-visible-buffer", renamed_output),
        kind("an input is renamed", "plan-changed-op", renamed_input),
        kind("a buffer is reused too early", "plan-changed-op", reused_buffer),
        kind("an input is overwritten", "plan-visible-buffer", overwritten_input),
        kind("a reduction works in place", "ark-overlap", reduced_in_place),
    ]
}

// Locations.

fn pick<T>(mut places: Vec<T>, seeded: &mut Seeded) -> Option<T> {
    (!places.is_empty()).then(|| places.swap_remove(seeded.below(places.len())))
}

fn plan<'s>(set: &'s mut Set, seeded: &mut Seeded) -> &'s mut Value {
    let index = seeded.below(set.plans.len());
    &mut set.plans[index]
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn numbers(value: &Value) -> Vec<i64> {
    list(value).iter().filter_map(Value::as_i64).collect()
}

fn set_at(plan: &mut Value, path: &str, value: Value) -> Done {
    *plan.pointer_mut(path)? = value;
    Some(())
}

/// Pointers to the resource groups of a plan.
fn resources(plan: &Value) -> Vec<String> {
    let groups = list(&plan["ProcessorGroups"]).iter().enumerate();
    groups
        .flat_map(|(i, group)| {
            let count = list(&group["ResourceGroups"]).len();
            (0..count).map(move |j| format!("/ProcessorGroups/{i}/ResourceGroups/{j}"))
        })
        .collect()
}

/// Pointers to the task groups of a plan that have tasks.
fn task_groups(plan: &Value) -> Vec<String> {
    let of = |path: String| {
        let groups = list(&plan.pointer(&path).expect("a group")["TaskGroups"]).to_vec();
        let busy = groups.into_iter().enumerate().filter(|(_, group)| {
            let range = numbers(&group["TaskRange"]);
            range[1] > range[0]
        });
        busy.map(move |(i, _)| format!("{path}/TaskGroups/{i}")).collect::<Vec<_>>()
    };
    resources(plan).into_iter().flat_map(of).collect()
}

/// Pointers to the ops of a plan for which `wanted` holds.
fn ops(plan: &Value, wanted: impl Fn(&Value) -> bool) -> Vec<String> {
    let mut found = vec![];
    for (task, info) in list(&plan["TaskInfos"]).iter().enumerate() {
        for (index, op) in list(&info["Ops"]).iter().enumerate() {
            if wanted(op) {
                found.push(format!("/TaskInfos/{task}/Ops/{index}"));
            }
        }
    }
    found
}

fn is(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |op| op["Type"] == kind
}

/// The task in a pointer to an op.
fn task_of(path: &str) -> usize {
    path.split('/').nth(2).and_then(|index| index.parse().ok()).expect("a pointer to an op")
}

/// The task group that runs a task, as indices of its groups.
fn group_of(plan: &Value, task: usize) -> Option<String> {
    task_groups(plan).into_iter().find(|path| plan.pointer(path).expect("")["TaskId"] == task)
}

// Syntax.

fn drop_key(plan: &mut Value, path: &str, keys: &[&str], seeded: &mut Seeded) -> Done {
    let key = keys[seeded.below(keys.len())];
    plan.pointer_mut(path)?.as_object_mut()?.remove(key).map(drop)
}

fn missing_plan_key(set: &mut Set, seeded: &mut Seeded) -> Done {
    let keys = ["Rank", "WorldSize", "NumProcessors", "NumWarpsPerProcessor", "TaskInfos"];
    drop_key(plan(set, seeded), "", &keys, seeded)
}

fn missing_task_key(set: &mut Set, seeded: &mut Seeded) -> Done {
    drop_key(plan(set, seeded), "/TaskInfos/0", &["Id", "NumWarps", "SramBytes", "Ops"], seeded)
}

fn missing_group_key(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = pick(task_groups(plan), seeded)?;
    drop_key(plan, &path, &["TaskId", "TaskRange", "Granularity"], seeded)
}

fn missing_tensor_key(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = pick(ops(plan, |op| !list(&op["WriteTensors"]).is_empty()), seeded)?;
    let keys = ["Id", "DataType", "Shape", "Strides", "Offsets", "Buffer"];
    drop_key(plan, &format!("{path}/WriteTensors/0"), &keys, seeded)
}

fn missing_config_key(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = pick(ops(plan, |op| op["Type"] != "Noop"), seeded)?;
    drop_key(plan, &format!("{path}/Config"), &["NumWarps"], seeded)
}

fn null_number(set: &mut Set, seeded: &mut Seeded) -> Done {
    in_task_value(set, seeded, "NumWarps", Value::Null)
}

fn null_float(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = pick(ops(plan, |op| op["Args"]["Factor"].is_object()), seeded)?;
    set_at(plan, &format!("{path}/Args/Factor/FLOAT"), Value::Null)
}

fn in_plan(set: &mut Set, seeded: &mut Seeded, key: &str, value: Value) -> Done {
    plan(set, seeded)[key] = value;
    Some(())
}

fn unknown_architecture(set: &mut Set, seeded: &mut Seeded) -> Done {
    in_plan(set, seeded, "Architecture", json!("CUDA_86"))
}

fn rank_outside(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    plan["Rank"] = plan["WorldSize"].clone();
    Some(())
}

fn in_op(set: &mut Set, seeded: &mut Seeded, key: &str, value: Value) -> Done {
    let plan = plan(set, seeded);
    let path = pick(ops(plan, |_| true), seeded)?;
    set_at(plan, &format!("{path}/{key}"), value)
}

fn in_config(set: &mut Set, seeded: &mut Seeded, key: &str, value: Value) -> Done {
    let plan = plan(set, seeded);
    let path = pick(ops(plan, |op| !op["Config"][key].is_null()), seeded)?;
    set_at(plan, &format!("{path}/Config/{key}"), value)
}

fn unknown_dtype(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = pick(ops(plan, |op| !list(&op["ReadTensors"]).is_empty()), seeded)?;
    set_at(plan, &format!("{path}/ReadTensors/0/DataType"), json!("FP8"))
}

fn in_task_value(set: &mut Set, seeded: &mut Seeded, key: &str, value: Value) -> Done {
    let plan = plan(set, seeded);
    let task = seeded.below(list(&plan["TaskInfos"]).len());
    set_at(plan, &format!("/TaskInfos/{task}/{key}"), value)
}

fn in_task(set: &mut Set, seeded: &mut Seeded, key: &str, value: i64) -> Done {
    in_task_value(set, seeded, key, json!(value))
}

fn wrong_id(set: &mut Set, seeded: &mut Seeded) -> Done {
    in_task(set, seeded, "Id", 777)
}

fn empty_task(set: &mut Set, seeded: &mut Seeded) -> Done {
    in_task_value(set, seeded, "Ops", json!([]))
}

fn in_group(set: &mut Set, seeded: &mut Seeded, key: &str, value: Value) -> Done {
    let plan = plan(set, seeded);
    let path = pick(task_groups(plan), seeded)?;
    set_at(plan, &format!("{path}/{key}"), value)
}

fn wrong_task_id(set: &mut Set, seeded: &mut Seeded) -> Done {
    in_group(set, seeded, "TaskId", json!(777))
}

/// A range of the plan: of processors, warps, memory or tasks.
fn a_range(plan: &Value, seeded: &mut Seeded) -> Option<String> {
    let mut places: Vec<String> =
        task_groups(plan).iter().map(|path| format!("{path}/TaskRange")).collect();
    for path in resources(plan) {
        places.extend(["ProcessorRange", "WarpRange", "SramRange"].map(|k| format!("{path}/{k}")));
    }
    pick(places, seeded)
}

fn any_range(set: &mut Set, seeded: &mut Seeded, value: Value) -> Done {
    let plan = plan(set, seeded);
    let path = a_range(plan, seeded)?;
    set_at(plan, &path, value)
}

fn stepped(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = a_range(plan, seeded)?;
    plan.pointer_mut(&path)?.as_array_mut()?.push(json!(2));
    Some(())
}

// Tasks.

fn task_range(set: &mut Set, seeded: &mut Seeded, begin: i64, end: i64) -> Done {
    let plan = plan(set, seeded);
    let path = pick(task_groups(plan), seeded)?;
    let path = format!("{path}/TaskRange");
    let range = numbers(plan.pointer(&path)?);
    // A single task would leave an empty range.
    (range[1] - range[0] > 1).then_some(())?;
    set_at(plan, &path, json!([range[0] + begin, range[1] + end]))
}

fn repeated_tasks(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = pick(task_groups(plan), seeded)?;
    let (list, _) = path.rsplit_once('/')?;
    let again = plan.pointer(&path)?.clone();
    plan.pointer_mut(list)?.as_array_mut()?.push(again);
    Some(())
}

fn dropped_group(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let task_of = |path: &String| -> usize {
        plan.pointer(path).and_then(|group| group["TaskId"].as_u64()).expect("a task") as usize
    };
    // An op that writes nothing need not run.
    let works = |path: &String| {
        let ops = list(&plan["TaskInfos"][task_of(path)]["Ops"]);
        ops.iter().any(|op| {
            let kind = &op["Type"];
            kind != "DeviceSync" && !(kind == "Recv" && op["Config"]["Wait"] == false)
        })
    };
    let path = pick(task_groups(plan).into_iter().filter(works).collect(), seeded)?;
    let index = path.split('/').nth(2)?.parse().ok()?;
    plan["ProcessorGroups"].as_array_mut()?.remove(index);
    Some(())
}

fn doubled_group(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = pick(task_groups(plan), seeded)?;
    let index: usize = path.split('/').nth(2)?.parse().ok()?;
    let groups = plan["ProcessorGroups"].as_array_mut()?;
    groups.push(groups[index].clone());
    Some(())
}

fn dropped_task_group(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let wanted = |op: &Value| !matches!(op["Type"].as_str(), Some("Recv" | "DeviceSync" | "Noop"));
    let path = pick(ops(plan, wanted), seeded)?;
    let path = group_of(plan, task_of(&path))?;
    let (list, _) = path.rsplit_once('/')?;
    plan.pointer_mut(list)?.as_array_mut()?.clear();
    Some(())
}

fn wrong_num_tasks(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    // The number of tasks of an op between ranks cannot be derived.
    let wanted = |op: &Value| {
        let config = &op["Config"];
        config["ChannelType"].is_null()
            && config["PacketType"].is_null()
            && !matches!(op["Type"].as_str(), Some("RecvReduceSend"))
            && config["NumTasks"].is_number()
    };
    let path = pick(ops(plan, wanted), seeded)?;
    let path = format!("{path}/Config/NumTasks");
    let tasks = plan.pointer(&path)?.as_i64()?;
    set_at(plan, &path, json!(tasks + 1))
}

/// A second task group that starts in the middle of some of the processors.
fn distribution(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let total = plan["NumProcessors"].as_i64()?;
    let path = pick(task_groups(plan), seeded)?;
    let range = numbers(plan.pointer(&format!("{path}/TaskRange"))?);
    let (tasks, part) = (range[1], total / 2);
    (range[0] == 0 && part >= 4 && tasks > 3 * part).then_some(())?;
    let group = path.split("/ResourceGroups").next()?.to_owned();
    let (list, _) = path.rsplit_once('/')?;
    let (resource, _) = list.rsplit_once('/')?;
    set_at(plan, &format!("{group}/ProcessorRange"), json!([0, part]))?;
    set_at(plan, &format!("{resource}/ProcessorRange"), json!([0, part]))?;
    let mut second = plan.pointer(&path)?.clone();
    let cut = part / 2 + 1;
    second["TaskRange"] = json!([cut, tasks]);
    (second["Granularity"] == 1).then_some(())?;
    set_at(plan, &format!("{path}/TaskRange"), json!([0, cut]))?;
    plan.pointer_mut(list)?.as_array_mut()?.push(second);
    Some(())
}

// Resources.

fn too_few_processors(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let used = list(&plan["ProcessorGroups"]).iter().map(|g| numbers(&g["ProcessorRange"])[1]);
    let most = used.max().filter(|&most| most > 1)?;
    plan["NumProcessors"] = json!(most - 1);
    Some(())
}

fn outside_group(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = pick(resources(plan), seeded)?;
    let path = format!("{path}/ProcessorRange");
    let range = numbers(plan.pointer(&path)?);
    (range[1] > range[0]).then_some(())?;
    set_at(plan, &path, json!([range[0], range[1] + 1]))
}

/// A task group and its resource group, whose task needs more than `least` of `key`.
fn needing(plan: &Value, key: &str, least: i64, seeded: &mut Seeded) -> Option<(String, usize)> {
    let needs = |path: &String| -> Option<(String, usize)> {
        let task = plan.pointer(path)?["TaskId"].as_u64()? as usize;
        let enough = plan["TaskInfos"][task][key].as_i64()? > least;
        enough.then(|| (path.rsplitn(3, '/').nth(2).expect("a resource group").to_owned(), task))
    };
    pick(task_groups(plan).iter().filter_map(needs).collect(), seeded)
}

fn few_warps(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let (resource, task) = needing(plan, "NumWarps", 0, seeded)?;
    let warps = plan["TaskInfos"][task]["NumWarps"].as_i64()?;
    set_at(plan, &format!("{resource}/WarpRange"), json!([0, warps - 1]))
}

fn many_warps(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let (resource, _) = needing(plan, "NumWarps", 0, seeded)?;
    let warps = plan["NumWarpsPerProcessor"].as_i64()?;
    set_at(plan, &format!("{resource}/WarpRange"), json!([0, warps + 1]))
}

fn few_plan_warps(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let warps = plan["NumWarpsPerProcessor"].as_i64().filter(|&warps| warps > 1)?;
    let paths = resources(plan);
    let full =
        |path: &&String| numbers(&plan.pointer(path).expect("a group")["WarpRange"])[1] == warps;
    paths.iter().find(full)?;
    plan["NumWarpsPerProcessor"] = json!(warps - 1);
    Some(())
}

fn fewer_task_warps(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let (_, task) = needing(plan, "NumWarps", 1, seeded)?;
    let needs = |op: &Value| op["Config"]["NumWarps"].as_i64() > Some(1);
    list(&plan["TaskInfos"][task]["Ops"]).iter().find(|op| needs(op))?;
    set_at(plan, &format!("/TaskInfos/{task}/NumWarps"), json!(1))
}

/// Doubles the warps of a task, and the available warps.
fn widen(plan: &mut Value, task: usize) -> Done {
    let path = format!("/TaskInfos/{task}/NumWarps");
    let warps = 2 * plan.pointer(&path)?.as_i64()?;
    set_at(plan, &path, json!(warps))?;
    let most = plan["NumWarpsPerProcessor"].as_i64()?;
    plan["NumWarpsPerProcessor"] = json!(most.max(warps));
    for group in task_groups(plan) {
        if plan.pointer(&group)?["TaskId"] == task {
            let resource = group.rsplitn(3, '/').nth(2)?.to_owned();
            set_at(plan, &format!("{resource}/WarpRange"), json!([0, warps]))?;
        }
    }
    Some(())
}

fn more_task_warps(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = pick(ops(plan, is("Matmul")), seeded)?;
    widen(plan, task_of(&path))
}

fn wide_receive(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = pick(ops(plan, is("Recv")), seeded)?;
    let task = task_of(&path);
    widen(plan, task)?;
    let warps = plan["TaskInfos"][task]["NumWarps"].clone();
    set_at(plan, &format!("{path}/Config/NumWarps"), warps)
}

/// Groups without any effect except for their barriers.
fn nested_barriers(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let end = plan["NumProcessors"].as_i64().filter(|&end| end > 2)?;
    let groups = plan["ProcessorGroups"].as_array_mut()?;
    for range in [[0, end], [1, 2], [1, 2]] {
        groups.push(json!({"ProcessorRange": range, "ResourceGroups": []}));
    }
    Some(())
}

fn too_much_sram(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    (plan["Architecture"] == "CUDA_80").then_some(())?;
    let path = pick(resources(plan), seeded)?;
    set_at(plan, &format!("{path}/SramRange"), json!([0, 166_912]))
}

fn too_little_sram(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let (resource, task) = needing(plan, "SramBytes", 0, seeded)?;
    let bytes = plan["TaskInfos"][task]["SramBytes"].as_i64()?;
    set_at(plan, &format!("{resource}/SramRange"), json!([0, bytes - 1]))
}

fn less_task_sram(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = pick(ops(plan, |op| op["Config"]["SramBytes"].as_i64() > Some(0)), seeded)?;
    set_at(plan, &format!("/TaskInfos/{}/SramBytes", task_of(&path)), json!(0))
}

fn unaligned_sram(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let (resource, task) = needing(plan, "SramBytes", 0, seeded)?;
    let info = &plan["TaskInfos"][task];
    let (warps, bytes) = (info["NumWarps"].as_i64()?, info["SramBytes"].as_i64()?);
    (bytes < 10_000).then_some(())?;
    let most = plan["NumWarpsPerProcessor"].as_i64()?.max(2 * warps);
    plan["NumWarpsPerProcessor"] = json!(most);
    set_at(plan, &format!("{resource}/WarpRange"), json!([0, 2 * warps]))?;
    set_at(plan, &format!("{resource}/SramRange"), json!([0, 2 * bytes + 2]))
}

// Kernels.

/// A `Matmul` of a plan whose kernels are all known.
fn matmul(plan: &Value, seeded: &mut Seeded) -> Option<String> {
    (plan["Architecture"] == "CUDA_80").then_some(())?;
    pick(ops(plan, is("Matmul")), seeded)
}

fn matmul_sram(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = format!("{}/Config/SramBytes", matmul(plan, seeded)?);
    let bytes = plan.pointer(&path)?.as_i64()?;
    set_at(plan, &path, json!(bytes - 16))
}

fn matmul_warps(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = format!("{}/Config/NumWarps", matmul(plan, seeded)?);
    let warps = plan.pointer(&path)?.as_i64()?;
    set_at(plan, &path, json!(warps / 2))
}

fn matmul_tile(set: &mut Set, seeded: &mut Seeded, tile: Value) -> Done {
    let plan = plan(set, seeded);
    let path = matmul(plan, seeded)?;
    set_at(plan, &format!("{path}/Config/TileShapeMNK"), tile)
}

fn other_architecture(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = matmul(plan, seeded)?;
    // The only tile of that architecture.
    let tile = plan.pointer(&format!("{path}/Config/TileShapeMNK"))?;
    (*tile != json!([128, 256, 32])).then_some(())?;
    plan["Architecture"] = json!("CUDA_70");
    Some(())
}

fn transpose_identity(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    // Square, so that the shapes still match.
    let square = |op: &Value| {
        let shape = numbers(&op["ReadTensors"][0]["Shape"]);
        op["Type"] == "Transpose" && shape.windows(2).all(|pair| pair[0] == pair[1])
    };
    let path = pick(ops(plan, square), seeded)?;
    let path = format!("{path}/Args/Permutation/DIMS");
    let rank = list(plan.pointer(&path)?).len();
    set_at(plan, &path, json!((0..rank).collect::<Vec<_>>()))
}

fn wrong_axis(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let elementwise = |op: &Value| op["Config"]["ImplType"] == "ElementWise";
    if let Some(path) = pick(ops(plan, elementwise), seeded) {
        return set_at(plan, &format!("{path}/Config/ImplType"), json!("WarpWise"));
    }
    // Along the other axis of a square, a result of one column has another shape too.
    let path = pick(ops(plan, |op| op["Config"]["ImplType"] == "WarpWise"), seeded)?;
    let shape = numbers(&plan.pointer(&path)?["ReadTensors"][0]["Shape"]);
    (shape.len() == 2 && shape[0] == shape[1]).then_some(())?;
    set_at(plan, &format!("{path}/Args/Axis/INT"), json!(0))?;
    let turned = json!([1, shape[1]]);
    turn(plan, &path, &turned)
}

/// Changes the shape of what an op writes at every use.
fn turn(plan: &mut Value, path: &str, shape: &Value) -> Done {
    let op = plan.pointer(path)?.clone();
    let ids = [&op["WriteTensors"][0]["Id"], &op["ResultTensors"][0]["Id"]].map(Clone::clone);
    for info in plan["TaskInfos"].as_array_mut()? {
        for op in info["Ops"].as_array_mut()? {
            for key in ["ReadTensors", "WriteTensors", "ResultTensors"] {
                for tensor in op[key].as_array_mut()?.iter_mut().filter(|t| ids.contains(&t["Id"]))
                {
                    for key in ["Shape", "Strides", "PaddedShape"] {
                        tensor[key] = shape.clone();
                    }
                }
            }
        }
    }
    Some(())
}

fn dropped_dimension(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    // A vector retains its dimension.
    let wanted = |op: &Value| {
        let shape = numbers(&op["ReadTensors"][0]["Shape"]);
        op["Args"]["KeepDim"]["BOOL"] == true && shape.len() == 2
    };
    let path = pick(ops(plan, wanted), seeded)?;
    let shape = numbers(&plan.pointer(&path)?["WriteTensors"][0]["Shape"]);
    set_at(plan, &format!("{path}/Args/KeepDim/BOOL"), json!(false))?;
    // Only in the op itself; its consumers read another view of the buffer.
    for (key, id) in [("WriteTensors", 900_001), ("ResultTensors", 900_002)] {
        let tensor = plan.pointer_mut(&format!("{path}/{key}/0"))?;
        let axis = usize::from(shape[1] == 1);
        for key in ["Shape", "Strides", "PaddedShape", "Offsets"] {
            tensor[key].as_array_mut()?.remove(axis);
        }
        tensor["Id"] = json!(id);
    }
    Some(())
}

fn foreign_buffer(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let wanted =
        |op: &Value| op["Config"]["ChannelType"].is_null() && op["Config"]["PacketType"].is_null();
    let path = pick(ops(plan, wanted), seeded)?;
    let id = plan.pointer(&path)?.pointer("/ReadTensors/0/Buffer/Id")?.clone();
    let is_tagged = plan.pointer(&path)?.pointer("/ReadTensors/0/Buffer/SendTags")?;
    (list(is_tagged).is_empty() && plan.pointer(&path)?["Type"] != "RecvReduceSend")
        .then_some(())?;
    let other = (plan["Rank"].as_i64()? + 1) % plan["WorldSize"].as_i64()?;
    (plan["WorldSize"].as_i64()? > 1).then_some(())?;
    each_buffer(plan, &id, &move |buffer| buffer["Rank"] = json!(other))
}

fn no_such_rank(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = pick(ops(plan, |op| !list(&op["WriteTensors"]).is_empty()), seeded)?;
    let id = plan.pointer(&path)?["WriteTensors"][0]["Buffer"]["Id"].clone();
    each_buffer(plan, &id, &|buffer| buffer["Rank"] = json!(77))
}

/// A tag of a rank that is not in the world.
fn no_such_peer(set: &mut Set, seeded: &mut Seeded) -> Done {
    is_world(set)?;
    let plan = plan(set, seeded);
    let id = pick(landings(plan), seeded)?;
    each_buffer(plan, &id, &|buffer| {
        buffer["RecvTags"].as_array_mut().expect("tags").push(json!([77, 0]));
    })
}

/// Makes a proxy send a part of each row.
fn strided_send(set: &mut Set, seeded: &mut Seeded) -> Done {
    is_world(set)?;
    let plan = plan(set, seeded);
    let path = pick(ops(plan, is("Send")), seeded)?;
    (plan.pointer(&path)?["Config"]["ChannelType"] == "Proxy").then_some(())?;
    let width = numbers(&plan.pointer(&path)?["ReadTensors"][0]["Shape"]);
    (width.len() == 1 && width[0] % 2 == 0).then_some(())?;
    // The same elements as rows of two, each followed by two that are not sent.
    for (key, id) in
        [("ReadTensors", 900_001), ("WriteTensors", 900_002), ("ResultTensors", 900_003)]
    {
        let tensor = plan.pointer_mut(&format!("{path}/{key}/0"))?;
        let rows = width[0] / 4;
        tensor["Id"] = json!(id);
        (tensor["Shape"], tensor["PaddedShape"]) = (json!([rows, 2]), json!([rows, 2]));
        (tensor["Strides"], tensor["Offsets"]) = (json!([rows, 4]), json!([0, 0]));
    }
    Some(())
}

/// Tiles of which the last is partial, for a kernel that does not check this.
fn peer_rest(set: &mut Set, seeded: &mut Seeded) -> Done {
    is_world(set)?;
    let plan = plan(set, seeded);
    let reduces = |op: &Value| op["Type"].as_str().is_some_and(|t| t.starts_with("RecvReduceSend"));
    let path = pick(ops(plan, reduces), seeded)?;
    let width = numbers(&plan.pointer(&path)?["WriteTensors"][0]["Shape"]);
    set_at(plan, &format!("{path}/Config/Tile"), json!([1, width.last()? - 8]))
}

/// The same elements as two rows, both of which would be made of the same packets.
fn packet_rows(set: &mut Set, seeded: &mut Seeded) -> Done {
    is_world(set)?;
    let plan = plan(set, seeded);
    let path = pick(ops(plan, is("RecvPacket")), seeded)?;
    let op = plan.pointer_mut(&path)?;
    let width = numbers(&op["WriteTensors"][0]["Shape"]);
    (width.len() == 1 && width[0] % 2 == 0).then_some(())?;
    for (key, id) in [("WriteTensors", 900_001), ("ResultTensors", 900_002)] {
        let tensor = &mut op[key][0];
        let (view, offset) = (numbers(&tensor["Strides"])[0], numbers(&tensor["Offsets"])[0]);
        let half = width[0] / 2;
        (view % half == 0 && offset % half == 0).then_some(())?;
        tensor["Id"] = json!(id);
        (tensor["Shape"], tensor["PaddedShape"]) = (json!([2, half]), json!([2, half]));
        (tensor["Strides"], tensor["Offsets"]) =
            (json!([view / half, half]), json!([offset / half, 0]));
    }
    Some(())
}

/// Changes the order in which a reducing op writes to its peers.
fn other_peer(set: &mut Set, seeded: &mut Seeded) -> Done {
    is_world(set)?;
    let plan = plan(set, seeded);
    let path = pick(ops(plan, |op| list(&op["WriteTensors"]).len() > 2), seeded)?;
    plan.pointer_mut(&format!("{path}/WriteTensors"))?.as_array_mut()?.swap(1, 2);
    Some(())
}

/// Changes every occurrence of a buffer.
fn each_buffer(plan: &mut Value, id: &Value, change: &dyn Fn(&mut Value)) -> Done {
    for info in plan["TaskInfos"].as_array_mut()? {
        for op in info["Ops"].as_array_mut()? {
            for key in ["ReadTensors", "WriteTensors", "ResultTensors"] {
                for tensor in op[key].as_array_mut()? {
                    if tensor["Buffer"]["Id"] == *id {
                        change(&mut tensor["Buffer"]);
                    }
                }
            }
        }
    }
    Some(())
}

// Tensors.

fn operand_dtype(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let wanted = |op: &Value| {
        matches!(
            op["Type"].as_str(),
            Some("Add" | "Sub" | "Mul" | "Div" | "Relu" | "Exp" | "Matmul")
        ) && op["ReadTensors"][0]["DataType"] == "FP16"
    };
    let path = pick(ops(plan, wanted), seeded)?;
    set_at(plan, &format!("{path}/ReadTensors/0/DataType"), json!("BF16"))
}

fn operand_shape(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let mut made = vec![];
    for op in list(&plan["TaskInfos"]).iter().flat_map(|info| list(&info["Ops"])) {
        made.extend(list(&op["ResultTensors"]).iter().map(|tensor| tensor["Id"].clone()));
    }
    let wanted = |op: &Value| {
        let tensor = &op["ReadTensors"][0];
        made.contains(&tensor["Id"]) && numbers(&tensor["Shape"]).last() > Some(&1)
    };
    let path = pick(ops(plan, wanted), seeded)?;
    let shape = plan.pointer_mut(&format!("{path}/ReadTensors/0/Shape"))?.as_array_mut()?;
    let last = shape.last_mut()?;
    *last = json!(last.as_i64()? - 1);
    Some(())
}

fn in_tensor(set: &mut Set, seeded: &mut Seeded, key: &str, change: i64) -> Done {
    let plan = plan(set, seeded);
    // A dense tensor, without gaps.
    let dense = |op: &Value| {
        let tensor = &op["ReadTensors"][0];
        tensor["Shape"].is_array()
            && tensor["Shape"] == tensor["Strides"]
            && numbers(&tensor["Strides"])[0] > 1
    };
    let path = pick(ops(plan, dense), seeded)?;
    let first = plan.pointer_mut(&format!("{path}/ReadTensors/0/{key}/0"))?;
    *first = json!(first.as_i64()? + change);
    Some(())
}

fn result_elsewhere(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = pick(ops(plan, |op| !list(&op["WriteTensors"]).is_empty()), seeded)?;
    set_at(plan, &format!("{path}/ResultTensors/0/Buffer/Id"), json!(888))
}

fn two_ranks(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let path = pick(ops(plan, |op| !list(&op["WriteTensors"]).is_empty()), seeded)?;
    let path = format!("{path}/ResultTensors/0/Buffer/Rank");
    let rank = plan.pointer(&path)?.as_i64()?;
    set_at(plan, &path, json!(rank + 1))
}

// Order.

/// Two consecutive groups of one task each, the second reading the result of the first.
fn neighbours(plan: &Value, seeded: &mut Seeded) -> Option<usize> {
    let made = |group: &Value, key: &str| -> Vec<Value> {
        let tasks = list(&group["ResourceGroups"]).iter().flat_map(|r| list(&r["TaskGroups"]));
        let infos = tasks.filter_map(|t| plan["TaskInfos"].get(t["TaskId"].as_u64()? as usize));
        let ops = infos.flat_map(|info| list(&info["Ops"]));
        // Ops that wait or flush move no data themselves.
        let ops = ops.filter(|op| op["Config"]["ChannelType"].is_null());
        ops.flat_map(|op| list(&op[key])).map(|tensor| tensor["Id"].clone()).collect()
    };
    let groups = list(&plan["ProcessorGroups"]);
    let linked = |index: &usize| {
        let (a, b) = (&groups[*index], &groups[index + 1]);
        let results = made(a, "ResultTensors");
        made(b, "ReadTensors").iter().any(|id| results.contains(id))
    };
    pick((0..groups.len().saturating_sub(1)).filter(linked).collect(), seeded)
}

fn swapped_groups(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let first = neighbours(plan, seeded)?;
    plan["ProcessorGroups"].as_array_mut()?.swap(first, first + 1);
    Some(())
}

/// Two dependent groups on halves of the processors, without a barrier between them.
fn lost_barrier(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let first = neighbours(plan, seeded)?;
    let total = plan["NumProcessors"].as_i64().filter(|&total| total >= 2)?;
    for (group, range) in [(first, [0, total / 2]), (first + 1, [total / 2, total])] {
        let path = format!("/ProcessorGroups/{group}");
        (list(&plan.pointer(&path)?["ResourceGroups"]).len() == 1).then_some(())?;
        set_at(plan, &format!("{path}/ProcessorRange"), json!(range))?;
        set_at(plan, &format!("{path}/ResourceGroups/0/ProcessorRange"), json!(range))?;
    }
    Some(())
}

fn merged_groups(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let first = neighbours(plan, seeded)?;
    let groups = plan["ProcessorGroups"].as_array_mut()?;
    let second = groups.remove(first + 1);
    let range = numbers(&second["ProcessorRange"]);
    let own = numbers(&groups[first]["ProcessorRange"]);
    groups[first]["ProcessorRange"] = json!([own[0].min(range[0]), own[1].max(range[1])]);
    let more = list(&second["ResourceGroups"]).to_vec();
    groups[first]["ResourceGroups"].as_array_mut()?.extend(more);
    Some(())
}

/// Groups on disjoint processors write one buffer.
fn shared_buffer(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let groups = list(&plan["ProcessorGroups"]);
    let apart = |index: &usize| {
        let range = |group: &Value| numbers(&group["ProcessorRange"]);
        let (a, b) = (range(&groups[*index]), range(&groups[index + 1]));
        a[0] < a[1] && b[0] < b[1] && (a[1] <= b[0] || b[1] <= a[0])
    };
    let first = pick((0..groups.len().saturating_sub(1)).filter(apart).collect(), seeded)?;
    let written = |index: usize| {
        let task = &groups[index]["ResourceGroups"][0]["TaskGroups"][0]["TaskId"];
        let op = &plan["TaskInfos"][task.as_u64()? as usize]["Ops"][0];
        Some(op["WriteTensors"][0]["Buffer"]["Id"].clone())
    };
    let (a, b) = (written(first)?, written(first + 1)?);
    each_buffer(plan, &b, &move |buffer| buffer["Id"] = a.clone())
}

/// A task of several ops.
fn fused(plan: &Value, seeded: &mut Seeded) -> Option<String> {
    let several = |task: &usize| list(&plan["TaskInfos"][*task]["Ops"]).len() > 1;
    let task = pick((0..list(&plan["TaskInfos"]).len()).filter(several).collect(), seeded)?;
    Some(format!("/TaskInfos/{task}/Ops"))
}

fn fused_tiles(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let ops = fused(plan, seeded)?;
    for op in plan.pointer_mut(&ops)?.as_array_mut()? {
        let tile = numbers(&op["Config"]["Tile"]);
        if let [height, width] = tile[..]
            && width % 2 == 0
        {
            op["Config"]["Tile"] = json!([height * 2, width / 2]);
            return Some(());
        }
    }
    None
}

fn fused_tasks(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let ops = fused(plan, seeded)?;
    let last = list(plan.pointer(&ops)?).len() - 1;
    let tasks = plan.pointer(&format!("{ops}/{last}/Config/NumTasks"))?.as_i64()?;
    set_at(plan, &format!("{ops}/{last}/Config/NumTasks"), json!(tasks / 2))
}

fn fused_swapped(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let ops = fused(plan, seeded)?;
    plan.pointer_mut(&ops)?.as_array_mut()?.swap(0, 1);
    Some(())
}

/// The ops after a send write where a proxy still reads, before the `SendDone`.
fn no_send_done(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    let sends = ops(plan, |op| op["Type"] == "Send" && op["Config"]["ChannelType"] == "Proxy");
    let send = pick(sends, seeded)?;
    let source = plan.pointer(&send)?["ReadTensors"][0].clone();
    let done = pick(ops(plan, is("SendDone")), seeded)?;
    let group = group_of(plan, task_of(&done))?;
    let group: usize = group.split('/').nth(2)?.parse().ok()?;
    // A copy of the source onto itself, as another tensor, instead of the `SendDone`.
    let mut write = source.clone();
    write["Id"] = json!(900_001);
    let mut result = source.clone();
    result["Id"] = json!(900_002);
    let width = numbers(&source["Shape"]);
    (width.len() == 1).then_some(())?;
    let task = list(&plan["TaskInfos"]).len();
    let op = json!({
        "Type": "ScalarAssign", "Name": "fill", "IsVirtual": false, "ReadTensors": [],
        "WriteTensors": [write], "ResultTensors": [result], "Args": {"Value": {"FLOAT": 0.0}},
        "Config": {"NumWarps": 1, "SramBytes": 0, "Tile": [1, width[0]], "NumTasks": 1},
    });
    let info = json!({"Id": task, "NumWarps": 1, "SramBytes": 0, "Ops": [op]});
    plan["TaskInfos"].as_array_mut()?.push(info);
    let groups = plan["ProcessorGroups"].as_array_mut()?;
    let mut fill = groups[group].clone();
    fill["ResourceGroups"][0]["TaskGroups"][0]["TaskId"] = json!(task);
    groups.insert(group, fill);
    Some(())
}

// Ranks.

fn is_world(set: &Set) -> Done {
    (set.plans.len() > 1).then_some(())
}

/// Buffers of a plan that receive under a tag, by id.
fn landings(plan: &Value) -> Vec<Value> {
    let mut found: Vec<Value> = vec![];
    for op in list(&plan["TaskInfos"]).iter().flat_map(|info| list(&info["Ops"])) {
        for key in ["ReadTensors", "WriteTensors", "ResultTensors"] {
            for buffer in list(&op[key]).iter().map(|tensor| &tensor["Buffer"]) {
                let tags = list(&buffer["RecvTags"]);
                let lands = tags.iter().any(|tag| tag[0].as_i64() >= Some(0));
                if lands && !found.contains(&buffer["Id"]) {
                    found.push(buffer["Id"].clone());
                }
            }
        }
    }
    found
}

fn other_tag(set: &mut Set, seeded: &mut Seeded) -> Done {
    is_world(set)?;
    let plan = plan(set, seeded);
    // A stand-in of a remote buffer, with the tag that both list.
    let sends = |op: &Value| {
        let tags = &op["WriteTensors"][0]["Buffer"]["RecvTags"];
        op["Type"] == "SendPacket" && !list(tags).is_empty()
    };
    if let Some(path) = pick(ops(plan, sends), seeded) {
        let id = plan.pointer(&path)?["WriteTensors"][0]["Buffer"]["Id"].clone();
        return each_buffer(plan, &id, &|buffer| buffer["RecvTags"] = json!([[-1, 4711]]));
    }
    let path = pick(ops(plan, is("Send")), seeded)?;
    let op = plan.pointer(&path)?.clone();
    let (near, far) = (&op["ReadTensors"][0]["Buffer"], &op["WriteTensors"][0]["Buffer"]);
    let peer = far["Rank"].clone();
    each_buffer(plan, &far["Id"], &|buffer| buffer["RecvTags"] = json!([[-1, 4711]]))?;
    each_buffer(plan, &near["Id"], &move |buffer| {
        let tags = buffer["SendTags"].as_array_mut().expect("tags");
        tags.push(json!([peer, 4711]));
    })
}

fn shared_tag(set: &mut Set, seeded: &mut Seeded) -> Done {
    is_world(set)?;
    let plan = plan(set, seeded);
    let landing = pick(landings(plan), seeded)?;
    let tags = {
        let ops = list(&plan["TaskInfos"]).iter().flat_map(|info| list(&info["Ops"]));
        let tensors = ops.flat_map(|op| {
            ["ReadTensors", "WriteTensors"].into_iter().flat_map(|key| list(&op[key]))
        });
        let mut buffers = tensors.map(|tensor| &tensor["Buffer"]);
        buffers.find(|buffer| buffer["Id"] == landing)?["RecvTags"].clone()
    };
    // Another local buffer with the same tag.
    let other = ops(plan, |op| {
        let buffer = &op["ReadTensors"][0]["Buffer"];
        buffer["Rank"] == -1 && buffer["Id"] != landing && list(&buffer["RecvTags"]).is_empty()
    });
    let path = pick(other, seeded)?;
    let id = plan.pointer(&path)?["ReadTensors"][0]["Buffer"]["Id"].clone();
    each_buffer(plan, &id, &move |buffer| buffer["RecvTags"] = tags.clone())
}

fn same_rank(set: &mut Set, _: &mut Seeded) -> Done {
    is_world(set)?;
    set.plans[1] = set.plans[0].clone();
    Some(())
}

fn other_world(set: &mut Set, _: &mut Seeded) -> Done {
    is_world(set)?;
    // Ops that have the number of peers would cause further errors.
    ops(&set.plans[1], is("DeviceSync")).is_empty().then_some(())?;
    let world = set.plans[1]["WorldSize"].as_i64()?;
    set.plans[1]["WorldSize"] = json!(world + 1);
    Some(())
}

/// Removes an op that signals or waits from its plan, with its task and group.
fn without(set: &mut Set, seeded: &mut Seeded, kind: &'static str, flag: &str) -> Done {
    is_world(set)?;
    let rank = seeded.below(set.plans.len());
    let plan = &mut set.plans[rank];
    let path = pick(ops(plan, |op| op["Type"] == kind && op["Config"][flag] == true), seeded)?;
    let op = plan.pointer(&path)?.clone();
    // The peer lists the link as well; the tags remain on its buffers.
    if kind == "Send" {
        let done = ops(plan, is("SendDone"));
        for path in done.iter().rev() {
            if plan.pointer(path)?["ReadTensors"][0]["Id"] == op["ResultTensors"][0]["Id"] {
                remove_task(plan, task_of(path))?;
            }
        }
        let tag = op["WriteTensors"][0]["Buffer"]["RecvTags"][0][1].clone();
        let (from, to) = (plan["Rank"].clone(), op["WriteTensors"][0]["Buffer"]["Rank"].clone());
        let path = ops(plan, |other| *other == op).into_iter().next()?;
        remove_task(plan, task_of(&path))?;
        // Preserve the link: a copy of the tags on a remaining buffer.
        let stand_in = json!({"Id": 888, "Rank": to, "SendTags": [], "RecvTags": [[-1, tag]]});
        return keep_link(plan, &from, stand_in, &op);
    }
    remove_task(plan, task_of(&path))
}

/// Replaces a removed send by one without a signal.
fn keep_link(plan: &mut Value, _: &Value, stand_in: Value, op: &Value) -> Done {
    let mut op = op.clone();
    op["Config"]["Signal"] = json!(false);
    for key in ["WriteTensors", "ResultTensors"] {
        op[key][0]["Buffer"] = stand_in.clone();
    }
    op["WriteTensors"][0]["Id"] = json!(900_001);
    op["ResultTensors"][0]["Id"] = json!(900_002);
    let task = list(&plan["TaskInfos"]).len();
    let config = op["Config"].clone();
    let info = json!({
        "Id": task, "NumWarps": config["NumWarps"], "SramBytes": config["SramBytes"], "Ops": [op],
    });
    plan["TaskInfos"].as_array_mut()?.push(info);
    let group = json!({
        "ProcessorRange": [0, 1],
        "ResourceGroups": [{
            "ProcessorRange": [0, 1],
            "WarpRange": [0, config["NumWarps"]],
            "SramRange": [0, 0],
            "TaskGroups": [{
                "TaskId": task, "TaskRange": [0, config["NumTasks"]], "Granularity": 1,
            }],
        }],
    });
    plan["ProcessorGroups"].as_array_mut()?.push(group);
    Some(())
}

/// Removes a task, which has its own group, from a plan.
fn remove_task(plan: &mut Value, task: usize) -> Done {
    let group = group_of(plan, task)?;
    let group: usize = group.split('/').nth(2)?.parse().ok()?;
    plan["ProcessorGroups"].as_array_mut()?.remove(group);
    plan["TaskInfos"].as_array_mut()?.remove(task);
    for (index, info) in plan["TaskInfos"].as_array_mut()?.iter_mut().enumerate() {
        info["Id"] = json!(index);
    }
    for path in task_groups(plan) {
        let id = plan.pointer_mut(&format!("{path}/TaskId"))?;
        if id.as_u64()? as usize > task {
            *id = json!(id.as_u64()? - 1);
        }
    }
    Some(())
}

fn no_wait(set: &mut Set, seeded: &mut Seeded) -> Done {
    is_world(set)?;
    let plan = plan(set, seeded);
    let wanted = |op: &Value| op["Type"] == "Recv" && op["Config"]["Wait"] == true;
    let path = pick(ops(plan, wanted), seeded)?;
    // It matters only if something reads it.
    let result = plan.pointer(&path)?["ResultTensors"][0]["Id"].clone();
    let reads = |op: &Value| list(&op["ReadTensors"]).iter().any(|tensor| tensor["Id"] == result);
    ops(plan, reads).first()?;
    set_at(plan, &format!("{path}/Config/Wait"), json!(false))
}

fn no_signal(set: &mut Set, seeded: &mut Seeded) -> Done {
    is_world(set)?;
    let plan = plan(set, seeded);
    let wanted = |op: &Value| op["Type"] == "Send" && op["Config"]["Signal"] == true;
    let path = pick(ops(plan, wanted), seeded)?;
    set_at(plan, &format!("{path}/Config/Signal"), json!(false))
}

/// Every rank waits before it sends.
fn receive_first(set: &mut Set, _: &mut Seeded) -> Done {
    is_world(set)?;
    for plan in &mut set.plans {
        let waits = |op: &Value| op["Type"] == "Recv" && op["Config"]["Wait"] == true;
        let path = ops(plan, waits).into_iter().next()?;
        ops(plan, |op| op["Type"] == "Send" && op["Config"]["Signal"] == true).first()?;
        let group = group_of(plan, task_of(&path))?;
        let index: usize = group.split('/').nth(2)?.parse().ok()?;
        let groups = plan["ProcessorGroups"].as_array_mut()?;
        let first = groups.remove(index);
        groups.insert(0, first);
    }
    Some(())
}

fn other_channel(set: &mut Set, seeded: &mut Seeded) -> Done {
    is_world(set)?;
    let plan = plan(set, seeded);
    let path = pick(ops(plan, is("Recv")), seeded)?;
    let path = format!("{path}/Config/ChannelType");
    let other = if plan.pointer(&path)? == "Sm" { "Proxy" } else { "Sm" };
    // The destination of a `RecvReduceSend` has no channel to compare with.
    ops(plan, is("RecvReduceSend")).is_empty().then_some(())?;
    set_at(plan, &path, json!(other))
}

fn other_packet(set: &mut Set, seeded: &mut Seeded) -> Done {
    is_world(set)?;
    let plan = plan(set, seeded);
    let path = pick(ops(plan, is("RecvPacket")), seeded)?;
    let path = format!("{path}/Config/PacketType");
    let is_long = plan.pointer(&path)? == "mscclpp::LL16Packet";
    let other = if is_long { "mscclpp::LL8Packet" } else { "mscclpp::LL16Packet" };
    set_at(plan, &path, json!(other))
}

fn other_flag(set: &mut Set, seeded: &mut Seeded) -> Done {
    is_world(set)?;
    let plan = plan(set, seeded);
    let path = pick(ops(plan, is("RecvPacket")), seeded)?;
    set_at(plan, &format!("{path}/Args/Flag/UINT32"), json!(7))
}

/// One rank waits for another that never arrives.
fn one_sync(set: &mut Set, seeded: &mut Seeded) -> Done {
    is_world(set)?;
    let plan = plan(set, seeded);
    let path = pick(ops(plan, is("DeviceSync")), seeded)?;
    remove_task(plan, task_of(&path))
}

fn no_syncs(set: &mut Set, _: &mut Seeded) -> Done {
    is_world(set)?;
    for plan in &mut set.plans {
        // The last one only synchronises the ranks at the end.
        let path = ops(plan, is("DeviceSync")).into_iter().next()?;
        ops(plan, is("RecvReduceSend")).first()?;
        remove_task(plan, task_of(&path))?;
    }
    Some(())
}

// Semantics.

/// The first plan of a set with a model.
fn modelled(set: &mut Set) -> Option<&mut Value> {
    set.model.as_ref()?;
    set.plans.first_mut()
}

fn changed_type(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = modelled(set)?;
    let path = pick(ops(plan, is("Relu")), seeded)?;
    set_at(plan, &format!("{path}/Type"), json!("Gelu"))
}

fn changed_factor(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = modelled(set)?;
    let path = pick(ops(plan, |op| op["Args"]["Factor"].is_object()), seeded)?;
    set_at(plan, &format!("{path}/Args/Factor/FLOAT"), json!(123.25))
}

fn swapped_operands(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = modelled(set)?;
    let wanted = |op: &Value| {
        let reads = list(&op["ReadTensors"]);
        op["Type"] == "Sub"
            && numbers(&reads[0]["Shape"]).len() == numbers(&reads[1]["Shape"]).len()
            && reads[0]["Id"] != reads[1]["Id"]
    };
    let path = pick(ops(plan, wanted), seeded)?;
    plan.pointer_mut(&format!("{path}/ReadTensors"))?.as_array_mut()?.swap(0, 1);
    Some(())
}

/// Removes the op of an output, with its task and its group.
fn missing_op(set: &mut Set, _: &mut Seeded) -> Done {
    let plan = modelled(set)?;
    let last = list(&plan["TaskInfos"]).len().checked_sub(1)?;
    let info = &plan["TaskInfos"][last];
    (last > 0 && list(&info["Ops"]).len() == 1 && info["Ops"][0]["Type"] != "Noop").then_some(())?;
    remove_task(plan, last)
}

/// Buffers that some op writes and no op reads.
fn outputs(plan: &Value) -> Vec<Value> {
    let infos = list(&plan["TaskInfos"]);
    let ops: Vec<&Value> = infos.iter().flat_map(|info| list(&info["Ops"])).collect();
    let of = |key: &str| -> Vec<&Value> {
        let tensors = ops.iter().flat_map(|op| list(&op[key]));
        let local = tensors.filter(|tensor| tensor["Buffer"]["Rank"] == -1);
        local.map(|tensor| &tensor["Buffer"]["Id"]).collect()
    };
    let read = of("ReadTensors");
    of("WriteTensors").into_iter().filter(|id| !read.contains(id)).cloned().collect()
}

fn renamed_output(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = modelled(set)?;
    let id = pick(outputs(plan), seeded)?;
    each_buffer(plan, &id, &|buffer| buffer["Id"] = json!(100_000))
}

fn renamed_input(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = modelled(set)?;
    let wanted = |op: &Value| {
        let buffer = &op["ReadTensors"][0]["Buffer"];
        buffer["Id"] == 0 && list(&buffer["RecvTags"]).is_empty()
    };
    pick(ops(plan, wanted), seeded)?;
    let writes = |op: &Value| op["WriteTensors"][0]["Buffer"]["Id"] == 0;
    ops(plan, writes).is_empty().then_some(())?;
    each_buffer(plan, &json!(0), &|buffer| buffer["Id"] = json!(100_000))
}

/// An op works in place on data that a later one still reads.
fn reused_buffer(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = modelled(set)?;
    let buffer = |op: &Value, key: &str| op[key][0]["Buffer"]["Id"].clone();
    let relus = ops(plan, is("Relu"));
    let read_again = |path: &String| {
        let from = buffer(plan.pointer(path).expect("an op"), "ReadTensors");
        let reads = |op: &Value| {
            list(&op["ReadTensors"]).iter().any(|tensor| tensor["Buffer"]["Id"] == from)
        };
        ops(plan, reads).iter().any(|other| task_of(other) > task_of(path))
    };
    let path = pick(relus.into_iter().filter(read_again).collect(), seeded)?;
    let op = plan.pointer(&path)?.clone();
    let (from, to) = (buffer(&op, "WriteTensors"), buffer(&op, "ReadTensors"));
    let (dense, whole) = (&op["WriteTensors"][0], &op["ReadTensors"][0]);
    (dense["Strides"] == whole["Strides"] && dense["Shape"] == whole["Shape"]).then_some(())?;
    (dense["DataType"] == whole["DataType"] && from != to).then_some(())?;
    each_buffer(plan, &from, &move |buffer| buffer["Id"] = to.clone())
}

/// An op overwrites an input of the user.
fn overwritten_input(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = modelled(set)?;
    let first = list(&plan["TaskInfos"]).first()?["Ops"][0].clone();
    let input = first["ReadTensors"][0]["Buffer"]["Id"].clone();
    let written = |op: &Value| op["WriteTensors"][0]["Buffer"]["Id"] == input;
    ops(plan, written).is_empty().then_some(())?;
    let reads =
        |op: &Value| list(&op["ReadTensors"]).iter().any(|tensor| tensor["Buffer"]["Id"] == input);
    let last = ops(plan, reads).iter().map(|path| task_of(path)).max()?;
    // The result of a later op, which no other op uses, so that only the user reads it.
    let shape = &first["ReadTensors"][0]["Shape"];
    let later = ops(plan, |op| {
        numbers(&op["WriteTensors"][0]["Shape"]).iter().product::<i64>()
            < numbers(shape).iter().product::<i64>()
    });
    let path = pick(later.into_iter().filter(|path| task_of(path) > last).collect(), seeded)?;
    let op = plan.pointer(&path)?.clone();
    let from = op["WriteTensors"][0]["Buffer"]["Id"].clone();
    let early =
        |op: &Value| list(&op["ReadTensors"]).iter().any(|tensor| tensor["Buffer"]["Id"] == from);
    let is_first = ops(plan, early).iter().all(|other| task_of(other) > task_of(&path));
    let is_inner = is_first && !outputs(plan).contains(&from);
    (is_inner && ops(plan, is("Noop")).is_empty()).then_some(())?;
    each_buffer(plan, &from, &move |buffer| buffer["Id"] = input.clone())
}

/// A reduction writes where it reads.
fn reduced_in_place(set: &mut Set, seeded: &mut Seeded) -> Done {
    let plan = plan(set, seeded);
    // A read in ARK's own model would identify the buffer; here the tensor has another id.
    let wanted = |op: &Value| {
        op["Config"]["ImplType"] == "WarpWise" && op["Config"]["NumTasks"].as_i64() > Some(1)
    };
    let path = pick(ops(plan, wanted), seeded)?;
    let op = plan.pointer(&path)?.clone();
    let (from, to) =
        (&op["WriteTensors"][0]["Buffer"]["Id"], &op["ReadTensors"][0]["Buffer"]["Id"]);
    let to = to.clone();
    each_buffer(plan, from, &move |buffer| buffer["Id"] = to.clone())
}
