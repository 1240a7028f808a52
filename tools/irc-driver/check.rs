//! `irc check`: all diagnostics of all files.
use crate::{
    archive,
    console::Console,
    cost,
    error::Error,
    input::{self, Content, Input},
    models, npu, output,
    rank_sets::{self, Member},
};
use irc::{
    ImportOptions, Session,
    planner::cost::{estimate, table},
};
use irc_ark_format::{json as spans, model, plan};
use irc_diag::{Diagnostic, Sink, Source};
use irc_npu::Program;
use serde_json::{Value, json};
use std::ops::Range;

/// Checks all files, and those of one world together; later files are checked even after an error.
pub fn check(
    console: &Console,
    arguments: &irc_cli::Check,
    flags: &irc_cli::Flags,
) -> Result<(), Error> {
    let mut failed = false;
    let mut files: Vec<File> = Vec::new();
    let against = arguments.against.as_deref();
    let against = against.map(|name| npu::read_program(console, name)).transpose()?;
    // Errors of a file are reported in the order of the files.
    let mut turns: Vec<Result<Range<usize>, Error>> = Vec::new();
    for name in &arguments.files {
        turns.push(read_file(name, arguments, against.as_ref()).and_then(|mut read| {
            for file in &mut read {
                check_npu(console, file, name, arguments)?;
            }
            let first = files.len();
            files.extend(read);
            Ok(first..files.len())
        }));
    }
    let kinds: Vec<_> = files.iter().filter_map(|file| input::kind(file.content)).collect();
    flags.expect(&kinds, None).map_err(Error::Usage)?;
    let has_own_target = |kind: &irc_cli::InputKind| {
        matches!(kind, irc_cli::InputKind::Plan | irc_cli::InputKind::Schedule)
    };
    let has_models = !kinds.is_empty() && !kinds.iter().any(has_own_target);
    if arguments.cost && arguments.npu.target.is_none() && has_models {
        let message = "--cost of a model needs --target, as in --target npu:mesh=4x4";
        return Err(Error::Usage(message.into()));
    }
    if arguments.host_fallback && arguments.npu.target.is_none() {
        let message = "--host-fallback needs --target, as in --target npu:mesh=4x4";
        return Err(Error::Usage(message.into()));
    }
    let mut models: Vec<model::Model> = Vec::new();
    for name in &arguments.models {
        models.extend(report(console, read_model(name, arguments.strict), &mut failed)?);
    }
    check_worlds(&mut files);
    check_networks(&mut files);
    if !models.is_empty() {
        check_models(&mut files, &models);
    }
    let mut records: Vec<Value> = Vec::new();
    let mut costs: Vec<Value> = Vec::new();
    for turn in turns {
        let range = report(console, turn, &mut failed)?.unwrap_or_default();
        for file in &files[range] {
            failed |= file.diagnostics.iter().any(Diagnostic::is_error);
            if arguments.json {
                let found = irc_diag::to_json(&file.source, &file.diagnostics);
                records.extend(found.as_array().into_iter().flatten().cloned());
            } else {
                console.diagnostics(&file.source, &file.diagnostics);
            }
            if let Some(cost) = &file.npu {
                let text = cost["text"].as_str().unwrap_or_default();
                match arguments.json {
                    true => costs.push(cost.clone()),
                    false => output::print(&format!("{}\n{text}", file.source.name()))?,
                }
            }
            let Some(plan) = file.plan.as_ref().filter(|_| arguments.cost) else { continue };
            let (name, estimate) = (file.source.name(), estimate(plan));
            match arguments.json {
                true => costs.push(cost::record(name, &estimate)),
                false => output::print(&format!("{name}\n{}", table(&estimate)))?,
            }
        }
    }
    if arguments.json {
        let found = Value::Array(records);
        let written =
            if arguments.cost { json!({ "diagnostics": found, "costs": costs }) } else { found };
        output::print(&format!("{written:#}\n"))?;
    }
    if failed { Err(Error::Reported) } else { Ok(()) }
}

/// Reports the error of one file, so that the next can be checked.
fn report<T>(
    console: &Console,
    result: Result<T, Error>,
    failed: &mut bool,
) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => return Ok(Some(value)),
        Err(Error::Problem { message, help }) => console.error(&message, help.as_deref()),
        Err(Error::Diagnostics(source, diagnostics)) => console.diagnostics(&source, &diagnostics),
        Err(other) => return Err(other),
    }
    *failed = true;
    Ok(None)
}

/// A file and its diagnostics.
struct File {
    source: Source,
    content: Content,
    diagnostics: Vec<Diagnostic>,
    /// Its plan, if that has no errors.
    plan: Option<plan::Plan>,
    /// Its model, if that has no errors.
    model: Option<model::Model>,
    /// Its schedule or frontend file, if that has no errors.
    network: Option<npu::check::Network>,
    /// The cost of its schedule for an NPU, if that is wanted.
    npu: Option<Value>,
}

impl File {
    /// A file that is not compared with others.
    fn plain(source: Source, content: Content, diagnostics: Vec<Diagnostic>) -> Self {
        Self { source, content, diagnostics, plan: None, model: None, network: None, npu: None }
    }

    /// The rank and the world size of its plan or model.
    fn rank(&self) -> Option<(i64, i64)> {
        let plan = self.plan.as_ref().map(|plan| (plan.rank, plan.world_size));
        plan.or(self.model.as_ref().map(|model| (model.rank, model.world_size)))
    }

    /// Its declared rank and world, even if it has errors.
    fn member(&self) -> Option<Member> {
        let name = self.source.name();
        match self.rank() {
            Some((rank, world_size)) => Some(Member { name: name.to_owned(), rank, world_size }),
            None => Member::of_text(name, self.source.text()),
        }
    }

    /// Adds diagnostics with paths, and locates them.
    fn add(&mut self, mut diagnostics: Vec<Diagnostic>) {
        spans::place(self.source.text(), &mut diagnostics);
        self.diagnostics.extend(diagnostics);
    }
}

/// The contents of a file: one item, or an archive with those members that have diagnostics.
fn read_file(
    name: &str,
    arguments: &irc_cli::Check,
    against: Option<&Program>,
) -> Result<Vec<File>, Error> {
    let strict = arguments.strict;
    let input = Input::open(name, arguments.graphs.format.as_deref())?;
    let content = input.content;
    if matches!(content, Content::Graph | Content::Mlir) {
        let (source, diagnostics) = check_model(&input, arguments)?;
        return Ok(vec![File::plain(source, content, diagnostics)]);
    }
    let bytes = input.bytes;
    if content == Content::Archive {
        let file = |(source, diagnostics)| File::plain(source, content, diagnostics);
        return Ok(archive::check(name, &bytes).into_iter().map(file).collect());
    }
    if is_npu(content) {
        let (source, diagnostics, network) =
            npu::check::check(name, &bytes, content, strict, against)?;
        return Ok(vec![File { network, ..File::plain(source, content, diagnostics) }]);
    }
    let source = input::source(name, &bytes);
    if content == Content::Ptx {
        let diagnostics = irc::gpu::check(&source);
        return Ok(vec![File::plain(source, content, diagnostics)]);
    }
    let mut sink = Sink::new();
    let options = model::Options { strict, ..Default::default() };
    let (plan, model) = match content {
        Content::Plan => (plan::parse(&source, &options, &mut sink), None),
        Content::Model => (None, model::parse(&source, &options, &mut sink)),
        _ => return Err(input::not_for("check", name, content)),
    };
    let model = model.map(|document| document.model);
    let diagnostics = sink.into_diagnostics();
    Ok(vec![File { plan, model, ..File::plain(source, content, diagnostics) }])
}

/// All diagnostics of a model: of reading it, of unknown operators, and of nodes that cannot be compiled.
fn check_model(input: &Input, flags: &irc_cli::Check) -> Result<(Source, Vec<Diagnostic>), Error> {
    let options = match input.content {
        Content::Graph => {
            ImportOptions { strict: !flags.compat, ..models::options(&flags.graphs)? }
        }
        _ => ImportOptions::default(),
    };
    let session = Session::new();
    let model = session.parse(input.shown(), input.bytes.clone(), &options)?;
    let source = model.source();
    Ok((source, model.check()))
}

/// Checks that the NPU of the flags can compute a model without errors.
fn check_npu(
    console: &Console,
    file: &mut File,
    name: &str,
    flags: &irc_cli::Check,
) -> Result<(), Error> {
    if let (Some(npu::check::Network::Schedule(schedule)), true) = (&file.network, flags.cost) {
        if !file.diagnostics.iter().any(Diagnostic::is_error) {
            match npu::price::schedule(name, schedule, &flags.npu)? {
                Ok(cost) => file.npu = Some(cost),
                Err(found) => {
                    let mut found = vec![found];
                    irc_gemini_format::place(&file.source, &mut found);
                    file.diagnostics.extend(found);
                }
            }
        }
        return Ok(());
    }
    let is_model = input::kind(file.content).is_some_and(|kind| irc_cli::MODELS.contains(&kind));
    if !is_model || file.diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(());
    }
    let Some(options) = npu::model::options(&flags.npu)? else { return Ok(()) };
    let input = Input::open(name, flags.graphs.format.as_deref())?;
    let import = npu::model::import(&flags.graphs, &input)?;
    let wanted = npu::model::CheckOptions {
        cost: flags.cost,
        explanation: flags.npu.explain_schedule,
        falls_back: flags.host_fallback,
    };
    match npu::model::check(console, &input, &import, &options, wanted) {
        Ok((found, notes)) => {
            file.npu = found;
            file.diagnostics.extend(notes);
        }
        Err(Error::Diagnostics(source, found)) if source.name() == file.source.name() => {
            file.diagnostics.extend(found);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

fn is_npu(content: Content) -> bool {
    use Content::{Binary, Frontend, Listing, Schedule};
    matches!(content, Schedule | Frontend | Listing | Binary)
}

/// Checks a schedule against a frontend file, if there is one of each.
fn check_networks(files: &mut [File]) {
    use npu::check::Network;
    let mut schedules = vec![];
    let mut layers = vec![];
    for (index, file) in files.iter().enumerate() {
        match &file.network {
            Some(Network::Schedule(schedule)) => schedules.push((index, schedule)),
            Some(Network::Frontend(frontend)) => layers.push((file.source.name(), frontend)),
            None => {}
        }
    }
    let ([(index, schedule)], [layers]) = (&schedules[..], &layers[..]) else { return };
    let (index, diagnostics) =
        (*index, npu::check::check_pair(&files[*index].source, schedule, *layers));
    files[index].diagnostics.extend(diagnostics);
}

fn read_model(name: &str, strict: bool) -> Result<model::Model, Error> {
    let bytes = input::read(name)?;
    input::expect_model(name, input::Content::of(&bytes))?;
    let source = input::source(name, &bytes);
    let mut sink = Sink::new();
    let options = model::Options { strict, ..Default::default() };
    let document = model::parse(&source, &options, &mut sink);
    document
        .map(|document| document.model)
        .ok_or_else(|| Error::Diagnostics(source, sink.into_diagnostics()))
}

/// Checks the plans of each world together, and the models of each, if they have no errors.
fn check_worlds(files: &mut [File]) {
    for content in [Content::Plan, Content::Model] {
        let alike = (0..files.len()).filter(|&index| files[index].content == content);
        let known: Vec<_> =
            alike.clone().filter_map(|index| Some((index, files[index].member()?))).collect();
        // The unknown file may be a rank that seems to be missing.
        let is_one_unknown = known.len() < alike.count();
        let members: Vec<_> = known.iter().map(|(_, member)| member.clone()).collect();
        for world in rank_sets::worlds(&members) {
            let all: Vec<usize> = world.iter().map(|&member| known[member].0).collect();
            check_world(files, &all, is_one_unknown);
        }
    }
}

/// Checks the ranks of one world together; a missing rank is not reported if some file has errors.
fn check_world(files: &mut [File], all: &[usize], is_one_unknown: bool) {
    let is_valid = |index: &usize| files[*index].rank().is_some();
    let valid: Vec<usize> = all.iter().copied().filter(is_valid).collect();
    let plans: Vec<_> = valid.iter().filter_map(|&index| files[index].plan.clone()).collect();
    let models: Vec<_> = valid.iter().filter_map(|&index| files[index].model.clone()).collect();
    let mut found = match plans.is_empty() {
        true => model::check_ranks(&models),
        false => plan::check_ranks(&plans),
    };
    if is_one_unknown || valid.len() < all.len() {
        found.retain(|(_, diagnostic)| diagnostic.is_error() || diagnostic.code != "plan-ranks");
    }
    for (member, diagnostic) in found {
        files[valid[member]].add(vec![diagnostic]);
    }
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
