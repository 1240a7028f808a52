//! Parses a [`Schedule`] from text, with located diagnostics.

use std::collections::HashSet;

use irc_diag::{Diagnostic, Sink, Source};
use irc_json::{At, Json, Member, Node, Object, Reader, place_in};

use super::{Core, Dialect, DramGroup, Limits, Schedule, Workload, check};
use crate::read::{self, Options};
use crate::record::{Extra, Field};

/// Keys of the outermost object that are not a core.
const KEYS: [&str; 11] = [
    "-1",
    "DRAM",
    "buffersize",
    "metadata",
    "objective",
    "target",
    "top_batch_cut",
    "tree",
    "windows",
    "xlen",
    "ylen",
];

/// Whether a key of the outermost object indicates a schedule.
pub(crate) fn is_schedule_key(key: &str) -> bool {
    KEYS.contains(&key) || core_id(key).is_some()
}

/// Reads a schedule; every diagnostic goes to `sink`.
///
/// Returns `None` after an error.
pub fn parse(source: &Source, options: &Options, sink: &mut Sink) -> Option<Schedule> {
    let before = sink.error_count();
    let tree = irc_json::outline(source, &read::FORMAT, sink)?;
    let schedule = schedule(&mut Reader::new(sink, &read::FORMAT, options.strict), &tree)?;
    if options.validate {
        let mut found = check(&schedule, &Limits::of(&schedule));
        found.iter_mut().for_each(|diagnostic| place_in(&tree, diagnostic));
        sink.extend(found);
    }
    (sink.error_count() == before).then_some(schedule)
}

fn schedule(reader: &mut Reader<'_>, tree: &Node<'_>) -> Option<Schedule> {
    let object = reader.object(tree, &At::ROOT)?;
    let members = object.members;
    let dialect = dialect_of(tree, members);
    let (mut unknown, mut cores, mut core_count) = (vec![], vec![], 0);
    for member in members {
        let key: &str = &member.key;
        if let Some(id) = core_id(key) {
            core_count += 1;
            let workloads = Vec::<Workload>::read(reader, &member.value, &At::ROOT.key(key));
            let Some(mut workloads) = workloads else { continue };
            let mut known = HashSet::new();
            workloads.iter_mut().for_each(|workload| workload.buffer.share(&mut known));
            workloads.shrink_to_fit();
            cores.push(Core { id, workloads });
        } else if !keys_of(dialect).contains(&key) {
            read::unknown(reader, member, &At::ROOT, keys_of(dialect));
            unknown.push((key.into(), Json::of(&member.value)));
        }
    }
    let buffersize = match dialect {
        Dialect::A => required(reader, &object, "buffersize").map(Some),
        Dialect::B | Dialect::C => Some(None),
    };
    let dram = dram(reader, &object, dialect);
    let metadata_at = At::ROOT.key("metadata");
    let mesh = match dialect {
        Dialect::A | Dialect::B => Some(object),
        Dialect::C => {
            let metadata = reader.required(&object, "metadata");
            metadata.and_then(|node| reader.object(node, &metadata_at))
        }
    };
    let [xlen, ylen, top_batch_cut] = ["xlen", "ylen", "top_batch_cut"]
        .map(|key| mesh.and_then(|mesh| required(reader, &mesh, key)));
    let [target, tree, objective] = ["target", "tree", "objective"]
        .map(|key| mesh.and_then(|mesh| optional(reader, &mesh, key)));
    let windows = mesh.and_then(|mesh| optional(reader, &mesh, "windows"));
    let (ports, metadata_extra) = match (dialect, mesh) {
        (Dialect::C, Some(metadata)) => ports(reader, &metadata),
        _ => (None, Extra::default()),
    };
    let extra = Extra::new(members, unknown);
    // Keys are often in the order of text: "1", "10", "2".
    cores.sort_by_key(|core| core.id);
    Some(Schedule {
        dialect,
        xlen: xlen?,
        ylen: ylen?,
        top_batch_cut: top_batch_cut?,
        target: target?,
        tree: tree?,
        objective: objective?,
        windows: windows?,
        buffersize: buffersize?,
        dram: dram?,
        cores: Some(cores).filter(|cores| cores.len() == core_count)?,
        ports,
        metadata_extra,
        extra,
    })
}

fn keys_of(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::A => &[
            "-1",
            "buffersize",
            "objective",
            "target",
            "top_batch_cut",
            "tree",
            "windows",
            "xlen",
            "ylen",
        ],
        Dialect::B => {
            &["-1", "objective", "target", "top_batch_cut", "tree", "windows", "xlen", "ylen"]
        }
        Dialect::C => &["DRAM", "metadata"],
    }
}

/// The dialect, detected from the content: C has DRAM in groups, A has a buffer size, or ring regions.
fn dialect_of(tree: &Node<'_>, members: &[Member<'_>]) -> Dialect {
    if tree.get("DRAM").is_some() || tree.get("metadata").is_some() {
        return Dialect::C;
    }
    let has_rings = |member: &Member<'_>| {
        let first = member.value.elements().and_then(|workloads| workloads.first());
        first.is_some_and(|first| first.with_parts(|first| first.get("ring_buffer_info").is_some()))
    };
    if tree.get("buffersize").is_some() || members.iter().any(has_rings) {
        return Dialect::A;
    }
    Dialect::B
}

/// The core of a key of the outermost object.
fn core_id(key: &str) -> Option<i64> {
    let id: i64 = key.parse::<u32>().ok()?.into();
    (id.to_string() == key).then_some(id)
}

fn required<T: Field>(
    reader: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    key: &'static str,
) -> Option<T> {
    let node = reader.required(object, key)?;
    T::read(reader, node, &object.at.key(key))
}

/// A value that may be absent; `None` after an error.
fn optional<T: Field>(
    reader: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    key: &'static str,
) -> Option<Option<T>> {
    match object.get(key) {
        Some(node) => T::read(reader, node, &object.at.key(key)).map(Some),
        None => Some(None),
    }
}

fn dram(
    reader: &mut Reader<'_>,
    tree: &Object<'_, '_, '_>,
    dialect: Dialect,
) -> Option<Vec<DramGroup>> {
    let key = match dialect {
        Dialect::A | Dialect::B => "-1",
        Dialect::C => "DRAM",
    };
    let node = reader.required(tree, key)?;
    let at = tree.at.key(key);
    if dialect != Dialect::C {
        return Some(vec![dram_group(reader, node, &at, 0)?]);
    }
    let members = reader.object(node, &at)?.members;
    let mut groups = vec![];
    for member in members {
        let Some(id) = core_id(&member.key) else {
            let diagnostic = Diagnostic::error(
                "gem-dram-group",
                "expected a number as the name of a DRAM group",
            );
            reader.report(diagnostic, member.key_span(), &at.key(&member.key), "not a number");
            continue;
        };
        groups.extend(dram_group(reader, &member.value, &at.key(&member.key), id));
    }
    (groups.len() == members.len()).then_some(groups)
}

fn dram_group(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>, id: i64) -> Option<DramGroup> {
    let object = reader.object(node, at)?;
    let mut unknown = vec![];
    for member in object.members.iter().filter(|member| !["in", "out"].contains(&&*member.key)) {
        read::unknown(reader, member, at, &["in", "out"]);
        unknown.push((member.key.as_ref().into(), Json::of(&member.value)));
    }
    let ins = required(reader, &object, "in");
    let outs = required(reader, &object, "out");
    Some(DramGroup { id, ins: ins?, outs: outs?, extra: Extra::new(object.members, unknown) })
}

/// Positions of the DRAM ports, and the other contents of `metadata`.
fn ports(reader: &mut Reader<'_>, metadata: &Object<'_, '_, '_>) -> (Option<Json>, Extra) {
    const KNOWN: [&str; 8] =
        ["DRAM", "objective", "target", "top_batch_cut", "tree", "windows", "xlen", "ylen"];
    let (members, mut unknown) = (metadata.members, vec![]);
    for member in members.iter().filter(|member| !KNOWN.contains(&&*member.key)) {
        read::unknown(reader, member, metadata.at, &KNOWN);
        unknown.push((member.key.as_ref().into(), Json::of(&member.value)));
    }
    (metadata.get("DRAM").map(Json::of), Extra::new(members, unknown))
}
