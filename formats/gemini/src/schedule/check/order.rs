//! Checks the order of DRAM accesses, in dialect A: each tensor that is loaded or stored has a place in
//! it, and places increase with the workloads at which accesses are issued.

use std::collections::{BTreeMap, HashMap};

use irc_diag::{Diagnostic, Sink};

use super::super::{Dialect, PlaceKind, Resident, ResidentKind, Wl0Source};
use super::facts::{Facts, Place};
use crate::record::Nullable;

/// Checks the order.
pub(super) fn check(facts: &Facts<'_>, sink: &mut Sink) {
    if facts.schedule.dialect != Dialect::A {
        return;
    }
    let accesses = accesses(facts, sink);
    let mut by_order: BTreeMap<i64, &Access> = BTreeMap::new();
    for access in accesses.iter().filter(|access| access.touches_dram) {
        if let Some(first) = by_order.insert(access.order, access) {
            let message = format!("two tensors have place {} in the order", access.order);
            let diagnostic = Diagnostic::error("gem-q2-order-repeated", message);
            sink.push(
                diagnostic.path(access.path.clone()).related(first.path.clone(), "the other"),
            );
        }
    }
    let count = by_order.len() as i64;
    if let Some((place, (_, access))) =
        (0..).zip(&by_order).find(|(place, (order, _))| place != *order)
    {
        let message = format!("no tensor has place {place} in the order of DRAM accesses");
        let diagnostic = Diagnostic::error("gem-q3-order-gap", message).path(access.path.clone());
        sink.push(diagnostic.help("places count from 0 without gaps"));
    }
    for access in accesses.iter().filter(|access| !access.touches_dram && access.order != count) {
        let message = format!(
            "expected place {count}, the number of accesses, of a tensor that stays on chip, found {}",
            access.order
        );
        sink.push(Diagnostic::error("gem-q3-order-gap", message).path(access.path.clone()));
    }
    unsent(&accesses, sink);
    issues(facts, by_order.into_values(), sink);
}

/// Every stored result is sent at some time.
fn unsent(accesses: &[Access], sink: &mut Sink) {
    for access in accesses.iter().filter(|access| access.issue.is_none()) {
        let message = "the result goes to DRAM, but no snapshot starts to send it";
        let diagnostic = Diagnostic::error("gem-q7-never-sent", message).path(access.path.clone());
        sink.push(diagnostic.help("set `start_send` in the snapshot with which the store begins"));
    }
}

/// A tensor with a place in the order.
struct Access {
    order: i64,
    touches_dram: bool,
    /// The workload at which the access is issued; `None` for a store that never starts.
    issue: Option<Place>,
    path: String,
}

/// Places never decrease on a core as workloads proceed.
fn issues<'a>(facts: &Facts<'_>, accesses: impl Iterator<Item = &'a Access>, sink: &mut Sink) {
    let mut last: HashMap<usize, &Access> = HashMap::new();
    for access in accesses {
        let Some(place) = access.issue else { continue };
        if let Some(before) = last.get(&place.0)
            && let Some(issued) = before.issue.filter(|issued| issued.1 > place.1)
        {
            let message = format!(
                "place {} is issued at {}, before place {} at {}",
                access.order,
                facts.name(place),
                before.order,
                facts.name(issued)
            );
            let diagnostic =
                Diagnostic::error("gem-q4-order-late", message).path(access.path.clone());
            sink.push(diagnostic.related(before.path.clone(), "the earlier place"));
        }
        last.insert(place.0, access);
    }
}

/// Every tensor, at its first appearance; a later change of its place is reported.
fn accesses(facts: &Facts<'_>, sink: &mut Sink) -> Vec<Access> {
    let mut all: Vec<Access> = vec![];
    // Tensors in L2 by id, weights in WL0 by transfer.
    let mut known: HashMap<(usize, bool, i64), usize> = HashMap::new();
    let mut add = |key: (usize, bool, i64), access: Access, sink: &mut Sink| {
        let index = *known.entry(key).or_insert(all.len());
        match all.get_mut(index) {
            None => all.push(access),
            Some(first) => {
                if first.order != access.order {
                    let message = format!("its place was {} before", first.order);
                    let diagnostic = Diagnostic::error("gem-q1-order-changed", message);
                    let diagnostic = diagnostic.path(access.path.clone());
                    sink.push(diagnostic.related(first.path.clone(), "before"));
                }
                first.issue = first.issue.or(access.issue);
            }
        }
    };
    for (core, index, workload) in facts.schedule.workloads() {
        let place = (core, index);
        for (at, resident) in workload.buffer.iter().enumerate() {
            let Some((id, order)) = resident.tensor_id.zip(resident.tensor_order) else { continue };
            let is_store = resident.kind == ResidentKind::Ofmap;
            let issued = !is_store || resident.start_send == Some(true);
            let access = Access {
                order,
                touches_dram: is_store || from_dram(resident),
                issue: issued.then_some(place),
                path: format!("{}.buffer[{at}].tensor_order", facts.path(place)),
            };
            add((core, false, id), access, sink);
        }
        for (at, row) in workload.wl0().iter().enumerate() {
            let path =
                || format!("{}.{}[{at}].tensor_order", facts.path(place), workload.wl0_key());
            let order = row.tensor_order.and_then(|Nullable(order)| order);
            if order.is_some() != (row.source == Wl0Source::Ddr) {
                let message = "a weight has a place in the order if and only if it comes from DRAM";
                sink.push(Diagnostic::error("gem-q5-row-order", message).path(path()));
            }
            let (Some(order), Some(id)) = (order, row.transfer_id.first()) else { continue };
            let access = Access { order, touches_dram: true, issue: Some(place), path: path() };
            add((core, true, id), access, sink);
        }
    }
    all
}

fn from_dram(resident: &Resident) -> bool {
    resident.sources().iter().any(|source| source.kind == PlaceKind::Dram)
}
