//! Parses text into a [`Plan`], with a location for every diagnostic.

use irc_diag::{Diagnostic, Sink, Source, clip};
use irc_json::{At, Node, Object, Reader, Value, place_in};

use super::{
    Architecture, Config, ConfigValue, Plan, PlanOp, ProcessorGroup, Range, ResourceGroup,
    TaskGroup, TaskInfo, check, config_keys,
};
use crate::json::{self, FORMAT, OpPlace, check_keys, check_known, integers, report_object};
use crate::model::{OpKind, Options, read};

const PLAN_KEYS: [&str; 7] = [
    "Rank",
    "WorldSize",
    "Architecture",
    "NumProcessors",
    "NumWarpsPerProcessor",
    "TaskInfos",
    "ProcessorGroups",
];

/// Reads a plan file; every diagnostic goes to `sink`.
///
/// Returns `None` if there was an error.
pub fn parse(source: &Source, options: &Options, sink: &mut Sink) -> Option<Plan> {
    let before = sink.error_count();
    let tree = json::tree(source, sink)?;
    let plan = plan(&mut Reader::new(sink, &FORMAT, options.strict), &tree)?;
    if options.validate {
        let mut found = check(&plan);
        found.iter_mut().for_each(|diagnostic| place_in(&tree, diagnostic));
        sink.extend(found);
    }
    (sink.error_count() == before).then_some(plan)
}

fn plan(reader: &mut Reader<'_>, tree: &Node<'_>) -> Option<Plan> {
    let object = reader.object(tree, &At::ROOT)?;
    check_keys(reader, &object, &PLAN_KEYS);
    let rank = integer(reader, &object, "Rank");
    let world_size = integer(reader, &object, "WorldSize");
    let architecture = architecture(reader, &object);
    let num_processors = integer(reader, &object, "NumProcessors");
    let num_warps_per_processor = integer(reader, &object, "NumWarpsPerProcessor");
    let task_infos = list(reader, &object, "TaskInfos", task_info);
    let processor_groups = list(reader, &object, "ProcessorGroups", processor_group);
    Some(Plan {
        rank: rank?,
        world_size: world_size?,
        architecture: architecture?,
        num_processors: num_processors?,
        num_warps_per_processor: num_warps_per_processor?,
        task_infos: task_infos?,
        processor_groups: processor_groups?,
    })
}

/// Integers of a plan are limited to 32 bits, as in ARK, so that their sums cannot overflow.
fn integer(reader: &mut Reader<'_>, object: &Object<'_, '_, '_>, key: &'static str) -> Option<i64> {
    let value = reader.required(object, key)?;
    let number: i32 = reader.integer(value, &object.at.key(key), "a 32-bit integer")?;
    Some(number.into())
}

/// Elements of the array of a key, read by `read`; all are read before the first error is returned.
fn list<T>(
    reader: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    key: &'static str,
    read: impl Fn(&mut Reader<'_>, &Node<'_>, usize, &At<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let value = reader.required(object, key)?;
    let at = object.at.key(key);
    let elements = reader.array(value, &at)?;
    let read = |(index, value)| read(reader, value, index, &at.index(index));
    let all: Vec<Option<T>> = elements.iter().enumerate().map(read).collect();
    all.into_iter().collect()
}

fn architecture(reader: &mut Reader<'_>, object: &Object<'_, '_, '_>) -> Option<Architecture> {
    let Some(value) = object.get("Architecture") else {
        let message = "no `Architecture`: `ANY` is used";
        let diagnostic = Diagnostic::warning("ark-generation", message)
            .with_note("ARK rejects a plan without it since August 2024");
        report_object(reader, diagnostic, object);
        return Some(Architecture::Any);
    };
    let at = object.at.key("Architecture");
    let name = reader.string(value, &at)?;
    let architecture = Architecture::from_name(name);
    if architecture.is_none() {
        let names = Architecture::ALL.map(Architecture::name).join(", ");
        let message = format!("unknown architecture `{}`", clip(name));
        let diagnostic = Diagnostic::error("plan-unknown-architecture", message);
        let diagnostic = diagnostic.help(format!("the architectures are {names}"));
        reader.report(diagnostic, value.span(), &at, "");
    }
    architecture
}

fn task_info(
    reader: &mut Reader<'_>,
    value: &Node<'_>,
    index: usize,
    at: &At<'_>,
) -> Option<TaskInfo> {
    let object = reader.object(value, at)?;
    check_keys(reader, &object, &["Id", "NumWarps", "SramBytes", "Ops"]);
    let id = integer(reader, &object, "Id");
    let num_warps = integer(reader, &object, "NumWarps");
    let sram_bytes = integer(reader, &object, "SramBytes");
    let ops = list(reader, &object, "Ops", |reader, value, op, _| {
        plan_op(reader, value, &OpPlace::Task(index, op).at())
    });
    Some(TaskInfo { id: id?, num_warps: num_warps?, sram_bytes: sram_bytes?, ops: ops? })
}

fn plan_op(reader: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<PlanOp> {
    let op = read::op(reader, value, at, &["Config"]);
    // The op reader has reported a value that is not an object.
    let object = Object::of(value, at)?;
    let kind = op.as_ref().map(|op| op.kind);
    let config = reader
        .required(&object, "Config")
        .and_then(|value| config(reader, value, kind, &at.key("Config")));
    Some(PlanOp { op: op?, config: config? })
}

fn config(
    reader: &mut Reader<'_>,
    value: &Node<'_>,
    kind: Option<OpKind>,
    at: &At<'_>,
) -> Option<Config> {
    let object = reader.object(value, at)?;
    if let Some(kind) = kind {
        let known: Vec<&str> = config_keys(kind).iter().map(|key| key.name).collect();
        let message = |key: &str| format!("key `{key}` is ignored: `{kind}` does not read it");
        check_known(reader, &object, &known, "plan-unknown-config", message);
    }
    let mut config = Config::default();
    let mut complete = true;
    for (key, value) in object.entries() {
        let value = config_value(reader, value, &at.key(key));
        complete &= value.is_some();
        config.0.extend(value.map(|value| (key.to_owned(), value)));
    }
    complete.then_some(config)
}

fn config_value(reader: &mut Reader<'_>, value: &Node<'_>, at: &At<'_>) -> Option<ConfigValue> {
    let expected = "a 32-bit integer";
    Some(match &value.value {
        Value::Bool(value) => ConfigValue::Bool(*value),
        Value::String(text) => ConfigValue::Text(text.to_string()),
        Value::Number(_) => ConfigValue::Int(reader.integer::<i32>(value, at, expected)?.into()),
        Value::Array(_) => {
            let numbers: Vec<i32> = integers(reader, value, at, expected)?;
            ConfigValue::Ints(numbers.into_iter().map(i64::from).collect())
        }
        _ => {
            reader.wrong_type("a boolean, integer, string or array of integers", value, at);
            return None;
        }
    })
}

fn range(reader: &mut Reader<'_>, object: &Object<'_, '_, '_>, key: &'static str) -> Option<Range> {
    let value = reader.required(object, key)?;
    let at = object.at.key(key);
    let numbers: Vec<i32> = integers(reader, value, &at, "a 32-bit integer")?;
    match numbers[..] {
        [begin, end] => Some(Range::new(begin.into(), end.into())),
        [begin, end, step] => {
            let step = Some(step.into());
            Some(Range { begin: begin.into(), end: end.into(), step })
        }
        _ => {
            reader.wrong_type("a range [begin, end]", value, &at);
            None
        }
    }
}

fn processor_group(
    reader: &mut Reader<'_>,
    value: &Node<'_>,
    _: usize,
    at: &At<'_>,
) -> Option<ProcessorGroup> {
    let object = reader.object(value, at)?;
    check_keys(reader, &object, &["ProcessorRange", "ResourceGroups"]);
    let processor_range = range(reader, &object, "ProcessorRange");
    let resource_groups = list(reader, &object, "ResourceGroups", resource_group);
    Some(ProcessorGroup { processor_range: processor_range?, resource_groups: resource_groups? })
}

fn resource_group(
    reader: &mut Reader<'_>,
    value: &Node<'_>,
    _: usize,
    at: &At<'_>,
) -> Option<ResourceGroup> {
    let object = reader.object(value, at)?;
    check_keys(reader, &object, &["ProcessorRange", "WarpRange", "SramRange", "TaskGroups"]);
    let processor_range = range(reader, &object, "ProcessorRange");
    let warp_range = range(reader, &object, "WarpRange");
    let sram_range = range(reader, &object, "SramRange");
    let task_groups = list(reader, &object, "TaskGroups", task_group);
    Some(ResourceGroup {
        processor_range: processor_range?,
        warp_range: warp_range?,
        sram_range: sram_range?,
        task_groups: task_groups?,
    })
}

fn task_group(
    reader: &mut Reader<'_>,
    value: &Node<'_>,
    _: usize,
    at: &At<'_>,
) -> Option<TaskGroup> {
    let object = reader.object(value, at)?;
    check_keys(reader, &object, &["TaskId", "TaskRange", "Granularity"]);
    let task_id = integer(reader, &object, "TaskId");
    let task_range = range(reader, &object, "TaskRange");
    let granularity = integer(reader, &object, "Granularity");
    Some(TaskGroup { task_id: task_id?, task_range: task_range?, granularity: granularity? })
}
