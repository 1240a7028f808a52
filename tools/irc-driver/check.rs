//! `irc check`: every finding of every file.
use crate::{
    console::Console,
    cost,
    input::{self, Content},
    output,
    stop::Stop,
};
use irc::planner::cost::{estimate, table};
use irc_ark_format::{json as spans, model, plan};
use irc_diag::{Diagnostic, Sink, Source};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Checks all files, and those of one world together; an error in one does not hide the next.
pub fn check(console: &Console, arguments: &irc_cli::Check) -> Result<(), Stop> {
    let mut failed = false;
    let mut files: Vec<File> = Vec::new();
    // What went wrong with a file is told in its turn.
    let mut turns: Vec<Result<usize, Stop>> = Vec::new();
    for name in &arguments.files {
        turns.push(read_file(name, arguments.strict).map(|file| {
            files.push(file);
            files.len() - 1
        }));
    }
    let mut models: Vec<model::Model> = Vec::new();
    for name in &arguments.models {
        models.extend(tell(console, read_model(name, arguments.strict), &mut failed)?);
    }
    check_worlds(&mut files);
    if !models.is_empty() {
        check_models(&mut files, &models);
    }
    let mut records: Vec<Value> = Vec::new();
    let mut costs: Vec<Value> = Vec::new();
    for turn in turns {
        let Some(file) = tell(console, turn, &mut failed)?.map(|index| &files[index]) else {
            continue;
        };
        failed |= file.findings.iter().any(Diagnostic::is_error);
        if arguments.json {
            let found = irc_diag::to_json(&file.source, &file.findings);
            records.extend(found.as_array().into_iter().flatten().cloned());
        } else {
            console.findings(&file.source, &file.findings);
        }
        let Some(plan) = file.plan.as_ref().filter(|_| arguments.cost) else { continue };
        let (name, estimate) = (file.source.name(), estimate(plan));
        match arguments.json {
            true => costs.push(cost::record(name, &estimate)),
            false => output::print(&format!("{name}\n{}", table(&estimate)))?,
        }
    }
    if arguments.json {
        let found = Value::Array(records);
        let written =
            if arguments.cost { json!({ "findings": found, "costs": costs }) } else { found };
        output::print(&format!("{written:#}\n"))?;
    }
    if failed { Err(Stop::Reported) } else { Ok(()) }
}

/// Tells of what went wrong with one file, so that the next is looked at.
fn tell<T>(
    console: &Console,
    result: Result<T, Stop>,
    failed: &mut bool,
) -> Result<Option<T>, Stop> {
    match result {
        Ok(value) => return Ok(Some(value)),
        Err(Stop::Problem { message, help }) => console.error(&message, help.as_deref()),
        Err(Stop::Findings(source, findings)) => console.findings(&source, &findings),
        Err(other) => return Err(other),
    }
    *failed = true;
    Ok(None)
}

/// A file and what was found in it.
struct File {
    source: Source,
    findings: Vec<Diagnostic>,
    /// The plan it holds, when that has no error.
    plan: Option<plan::Plan>,
    /// The model it holds, when that has no error.
    model: Option<model::Model>,
}

impl File {
    /// The rank and the size of the world of its plan or model.
    fn rank(&self) -> Option<(i64, i64)> {
        let plan = self.plan.as_ref().map(|plan| (plan.rank, plan.world_size));
        plan.or(self.model.as_ref().map(|model| (model.rank, model.world_size)))
    }

    /// Adds findings that have paths, and gives them their places.
    fn add(&mut self, mut findings: Vec<Diagnostic>) {
        spans::place(self.source.text(), &mut findings);
        self.findings.extend(findings);
    }
}

fn read_file(name: &str, strict: bool) -> Result<File, Stop> {
    let bytes = input::read(name)?;
    let content = input::content(&bytes);
    let source = input::source(name, &bytes);
    let mut sink = Sink::new();
    let options = model::Options { strict, ..Default::default() };
    let (plan, model) = match content {
        Content::Plan => (plan::parse(&source, &options, &mut sink), None),
        Content::Model => (None, model::parse(&source, &options, &mut sink)),
        Content::Library => return Err(unknown(name, "a compiled library")),
        Content::Archive => return Err(unknown(name, "a tar archive")),
    };
    let model = model.map(|document| document.model);
    Ok(File { source, findings: sink.into_diagnostics(), plan, model })
}

fn unknown(name: &str, found: &str) -> Stop {
    Stop::problem(format!("{name}: expected an ARK model or plan, found {found}"))
}

fn read_model(name: &str, strict: bool) -> Result<model::Model, Stop> {
    let bytes = input::read(name)?;
    input::expect_model(name, input::content(&bytes))?;
    let source = input::source(name, &bytes);
    let mut sink = Sink::new();
    let options = model::Options { strict, ..Default::default() };
    let document = model::parse(&source, &options, &mut sink);
    document
        .map(|document| document.model)
        .ok_or_else(|| Stop::Findings(source, sink.into_diagnostics()))
}

/// Checks the plans of each world together, and the models of each.
///
/// Files are of one world when they are called the same but for their rank, or when nothing in the
/// name tells them apart; and when their worlds are equally large.
fn check_worlds(files: &mut [File]) {
    let mut worlds: BTreeMap<(bool, i64, String), Vec<usize>> = BTreeMap::new();
    for (index, file) in files.iter().enumerate() {
        let Some((rank, world_size)) = file.rank().filter(|(_, world_size)| *world_size > 1) else {
            continue;
        };
        let key = (file.plan.is_some(), world_size, world_name(file.source.name(), rank));
        worlds.entry(key).or_default().push(index);
    }
    for members in worlds.values() {
        let plans: Vec<_> = members.iter().filter_map(|&index| files[index].plan.clone()).collect();
        let models: Vec<_> =
            members.iter().filter_map(|&index| files[index].model.clone()).collect();
        let found = match plans.is_empty() {
            true => model::check_ranks(&models),
            false => plan::check_ranks(&plans),
        };
        for (member, finding) in found {
            files[members[member]].add(vec![finding]);
        }
    }
}

/// A file's name without the number of its rank; nothing when there is none.
fn world_name(name: &str, rank: i64) -> String {
    let number = rank.to_string();
    let marked = ["rank", "gpu"].iter().find_map(|word| {
        let pattern = format!("{word}{number}");
        let ends = |at: usize| {
            let rest = &name[at + pattern.len()..];
            !rest.starts_with(|next: char| next.is_ascii_digit())
        };
        let at = name.rmatch_indices(&pattern).map(|(at, _)| at).find(|&at| ends(at))?;
        Some(format!("{}{word}*{}", &name[..at], &name[at + pattern.len()..]))
    });
    marked.unwrap_or_default()
}

/// Checks each plan against the model of its rank.
fn check_models(files: &mut [File], models: &[model::Model]) {
    for file in files {
        let Some(plan) = &file.plan else { continue };
        let found = match models.iter().find(|model| model.rank == plan.rank) {
            Some(model) => plan::check_model(plan, model),
            None => {
                let message = format!("no `--model` is of rank {}", plan.rank);
                vec![Diagnostic::error("plan-ranks", message).path("$.Rank")]
            }
        };
        file.add(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_of_one_world_differ_in_their_rank() {
        let first = world_name("a/ffn_rank0of4.plan.json", 0);
        assert_eq!(first, world_name("a/ffn_rank3of4.plan.json", 3));
        assert_ne!(first, world_name("a/moe_rank3of4.plan.json", 3));
        assert_eq!(world_name("plan_gpu1.json", 1), world_name("plan_gpu2.json", 2));
        assert_eq!(world_name("plan_rank1.json", 1), world_name("plan_rank12.json", 12));
        assert_eq!(world_name("left.json", 0), world_name("right.json", 1));
    }
}
