//! Writes a schedule.

use irc_json::{Json, Layout};

use super::{Dialect, DramGroup, Schedule};
use crate::record::{Extra, Field};

type Members = Vec<(Box<str>, Json)>;

/// The text of a schedule, in the layout of the published files, with its keys in order.
pub fn write(schedule: &Schedule) -> String {
    to_json(schedule).print(Layout::Styled)
}

fn to_json(schedule: &Schedule) -> Json {
    let mut members: Members = vec![];
    for core in &schedule.cores {
        push(&mut members, &core.id.to_string(), &core.workloads);
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
