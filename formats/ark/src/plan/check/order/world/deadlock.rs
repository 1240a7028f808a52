//! Finds cycles of waiting when nothing can continue.

use irc_diag::Diagnostic;

use super::run::{Event, State, World};

/// Why a segment does not continue.
enum Wait {
    /// It is in an op that waits for another op, if one could end the wait.
    Op(usize, String, Option<usize>),
    /// It is at a barrier that this segment has not reached.
    Barrier(usize),
}

/// A diagnostic if a segment is not done: the cycle of segments that wait for each other.
pub(super) fn check(world: &World<'_>, state: &State<'_, '_>) -> Vec<(usize, Diagnostic)> {
    let is_stuck = |segment: &usize| matches!(wait(world, state, *segment), Some(Wait::Op(..)));
    let Some(first) = (0..state.at.len()).find(is_stuck) else { return vec![] };
    let mut chain: Vec<(usize, usize, String)> = vec![];
    let mut segment = first;
    loop {
        match wait(world, state, segment) {
            Some(Wait::Barrier(other)) => segment = other,
            Some(Wait::Op(op, what, supplier)) => {
                if let Some(start) = chain.iter().position(|(seen, ..)| *seen == op) {
                    return vec![ring(world, &chain[start..])];
                }
                let Some(supplier) = supplier else {
                    return vec![forever(world, op, &what)];
                };
                chain.push((op, supplier, what));
                let Some(next) = segment_of(world, state, supplier) else {
                    return vec![forever(world, op, &chain[chain.len() - 1].2)];
                };
                segment = next;
            }
            None => return vec![ring(world, &chain)],
        }
    }
}

/// Why a segment does not continue; `None` if it is done.
fn wait(world: &World<'_>, state: &State<'_, '_>, segment: usize) -> Option<Wait> {
    let rows = &world.rows[world.rank_of(segment)];
    let (at, step) = state.at[segment];
    let row = rows.get(at)?;
    match &row.what {
        Event::Tasks { ops, .. } => {
            let op = *ops.get(step.checked_sub(1)?)?;
            let (what, supplier) = state.missing(op);
            Some(Wait::Op(op, what, supplier))
        }
        Event::Barrier => {
            let late = row.members.clone().find(|&member| state.at[member].0 < at)?;
            Some(Wait::Barrier(late))
        }
        Event::End { .. } => None,
    }
}

/// A segment that has not yet run its part of an op.
fn segment_of(world: &World<'_>, state: &State<'_, '_>, op: usize) -> Option<usize> {
    let rows = world.rows[world.ops[op].rank].iter().enumerate();
    rows.filter(|(_, row)| matches!(&row.what, Event::Tasks { ops, .. } if ops.contains(&op)))
        .find_map(|(index, row)| row.members.clone().find(|&member| state.at[member].0 <= index))
}

fn ring(world: &World<'_>, chain: &[(usize, usize, String)]) -> (usize, Diagnostic) {
    let mut message = "deadlock: ".to_owned();
    for (position, (op, supplier, _)) in chain.iter().enumerate() {
        let (op, supplier) = (&world.ops[*op], &world.ops[*supplier]);
        message += &match position {
            0 => format!("{op} waits for {supplier}"),
            _ => format!(", which comes after {op}, which waits for {supplier}"),
        };
    }
    let first = &world.ops[chain[0].0];
    message += &format!(", which comes after {first}");
    let diagnostic = Diagnostic::error("plan-deadlock", message)
        .path(first.at().to_string())
        .help("let one of the ranks send before it waits");
    (first.rank, diagnostic)
}

fn forever(world: &World<'_>, op: usize, what: &str) -> (usize, Diagnostic) {
    let op = &world.ops[op];
    let message = format!("deadlock: {op} waits for {what} that never arrives");
    let diagnostic = Diagnostic::error("plan-deadlock", message)
        .path(op.at().to_string())
        .help("add the op that sends it to the plan of that rank");
    (op.rank, diagnostic)
}
