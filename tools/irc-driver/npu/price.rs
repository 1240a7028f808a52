//! What a schedule in a file costs.
use super::{
    cost::{add_simulated, compared, compiled},
    model,
};
use crate::error::Error;
use irc::npu::{
    PricedSchedule, Target, known_layers, price, stated_goal, stated_layers, stated_target,
};
use irc_diag::{Diagnostic, counted};
use irc_gemini_format::schedule::Schedule;
use serde_json::Value;

/// The NPU of a flag, or else the one that the schedule states.
pub fn target(flag: Option<&str>, schedule: &Schedule) -> Result<Option<Target>, Error> {
    if let Some(text) = flag {
        return model::target(text).map(Some);
    }
    stated_target(schedule).map_err(|found| Error::problem(found.message))
}

/// The cost of a schedule, as a record.
pub fn schedule(
    name: &str,
    schedule: &Schedule,
    flags: &irc_cli::Npu,
) -> Result<Result<Value, Diagnostic>, Error> {
    let Some(target) = target(flags.target.as_deref(), schedule)? else {
        let message = "--cost of a schedule that does not state its NPU needs --target, as in --target npu:mesh=4x4";
        return Err(Error::Usage(message.into()));
    };
    let machine = target.machine().map_err(Error::Usage)?;
    let untiled = irc::npu::untiled(schedule);
    let schedule = untiled.as_ref().unwrap_or(schedule);
    let stated = stated_goal(schedule).map_err(|found| Error::problem(found.message))?;
    let goal = if flags.objective.is_some() { None } else { stated };
    let objective = goal.unwrap_or_else(|| model::goal(flags)).objective();
    let PricedSchedule { network, report: found, is_of_tree, others } =
        match price(schedule, &machine, objective) {
            Ok(priced) => priced,
            Err(found) if untiled.is_some() => return Ok(Err(irc::npu::in_tiled(*found))),
            Err(found) => return Ok(Err(*found)),
        };
    let mut known = stated_layers(schedule);
    if known.is_empty() {
        known = known_layers(&network, &[], &[]);
    }
    let estimate = found.cost.latency;
    let inferred = compiled(schedule, &stated_layers(schedule), &target);
    let simulated = inferred.or_else(|_| compiled(schedule, &known, &target));
    let mut record = model::report(&found, &[]);
    record["file"] = name.into();
    record["target"] = target.to_string().into();
    record["of_tree"] = is_of_tree.into();
    add_simulated(&mut record, estimate, &simulated);
    let mut lines = found.to_string();
    let source = match is_of_tree {
        true => "estimate of the tree that the schedule states\n",
        false => "estimate of workloads and transfers: the schedule states no tree\n",
    };
    let head = lines.match_indices('\n').nth(2).map_or(lines.len(), |(at, _)| at + 1);
    let mut more = format!("{}{source}", compared(estimate, &simulated));
    if let Some((layer, stated, found)) = others.first() {
        more += &format!(
            "{} with other cycles than the mapping: {layer} {stated}, its mapping {found}\n",
            counted(others.len(), "layer")
        );
    }
    lines.insert_str(head, &more);
    record["text"] = lines.into();
    Ok(Ok(record))
}
