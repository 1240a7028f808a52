//! Writes a schedule.

use std::collections::HashMap;
use std::io;

use irc_json::{Json, Layout};

use super::{Core, Dialect, DramGroup, Schedule};
use crate::record::{Extra, Field};

type Members = Vec<(Box<str>, Json)>;

/// The text of a schedule, in the layout of the published files, with its keys in order.
pub fn write(schedule: &Schedule) -> String {
    let mut text = vec![];
    write_to(schedule, &mut text).expect("writing to memory succeeds");
    String::from_utf8(text).expect("JSON is text")
}

/// As [`write()`], core by core: the values of all cores together take many times the memory of the schedule.
///
/// # Errors
/// Those of `out`.
pub fn write_to(schedule: &Schedule, out: &mut dyn io::Write) -> io::Result<()> {
    let cores: HashMap<String, &Core> =
        schedule.cores.iter().map(|core| (core.id.to_string(), core)).collect();
    let Json::Object(members) = outline(schedule) else { return Ok(()) };
    for (number, (key, value)) in members.into_iter().enumerate() {
        let value = match cores.get(&*key) {
            Some(core) => core.workloads.write().unwrap_or(Json::Null),
            None => value,
        };
        // An object of one member, without its brackets.
        let text = Json::Object(vec![(key, value)]).print(Layout::Styled);
        let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix("\n}\n"));
        out.write_all(if number == 0 { b"{" } else { b"," })?;
        out.write_all(inner.unwrap_or_default().as_bytes())?;
    }
    out.write_all(b"\n}\n")
}

/// The schedule without workloads.
fn outline(schedule: &Schedule) -> Json {
    let mut members: Members = vec![];
    for core in &schedule.cores {
        members.push((core.id.to_string().into(), Json::Null));
    }
    let mesh = mesh(schedule);
    if schedule.dialect == Dialect::C {
        let groups = schedule.dram.iter().map(|group| (group.id.to_string().into(), dram(group)));
        members.push(("DRAM".into(), Extra::default().object(groups.collect())));
        members.push(("metadata".into(), schedule.metadata_extra.object(mesh)));
    } else {
        members.extend(schedule.dram.iter().map(|group| ("-1".into(), dram(group))));
        push(&mut members, "buffersize", &schedule.buffersize);
        members.extend(mesh);
    }
    schedule.extra.object(members)
}

fn mesh(schedule: &Schedule) -> Members {
    let mut members = vec![];
    push(
        &mut members,
        "DRAM",
        &schedule.ports.as_ref().filter(|_| schedule.dialect == Dialect::C).cloned(),
    );
    push(&mut members, "objective", &schedule.objective);
    push(&mut members, "target", &schedule.target);
    push(&mut members, "top_batch_cut", &schedule.top_batch_cut);
    push(&mut members, "tree", &schedule.tree);
    push(&mut members, "windows", &schedule.windows);
    push(&mut members, "xlen", &schedule.xlen);
    push(&mut members, "ylen", &schedule.ylen);
    members
}

fn dram(group: &DramGroup) -> Json {
    let mut members = vec![];
    push(&mut members, "in", &group.ins);
    push(&mut members, "out", &group.outs);
    group.extra.object(members)
}

fn push(members: &mut Members, key: &str, value: &impl Field) {
    members.extend(value.write().map(|value| (key.into(), value)));
}
