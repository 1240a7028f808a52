//! The plans of the ranks of one world: checks and compiles them, and runs them on the host.
use crate::{
    console::Console,
    error::Error,
    input::Content,
    output, plan,
    values::{self, Buffers, Given, Missing},
};
use irc::{Interface, Session, Target};
use irc_ark_format::{
    json as spans, model,
    plan::{self as format, Plan},
};
use irc_diag::{Diagnostic, Severity, Sink, Source};
use irc_executor::{Kernels, Memory, Options, Rank};
use std::collections::BTreeSet;

/// Diagnostics about limits of ARK's kernels for the named device, which are not those of the host and of irc's kernels.
/// `docs/running-plans.md` explains each.
const OF_THE_DEVICE: [&str; 14] = [
    "plan-matmul-kernel",
    "plan-matmul-tile",
    "plan-matmul-batch",
    "plan-reduce-impl",
    "plan-reduce-keep-dim",
    "plan-transpose-identity",
    "plan-tile-width",
    "plan-fill-overrun",
    "plan-sram",
    "plan-group-sram",
    "plan-group-warps",
    "plan-barrier-state",
    "plan-send-strided",
    "plan-packet-shape",
];

/// Diagnostics that a run with race checking verifies.
const OF_THE_RUN: [&str; 2] = ["plan-race", "plan-group-race"];

/// Options for preparing plans.
pub struct Preparation {
    /// The processor for which code is generated.
    pub target: Target,
    /// Whether the run checks for races.
    pub race_check: bool,
    /// The only rank to run in this process; `None` for all of them.
    pub rank: Option<i64>,
}

/// The plans of the ranks of a world, checked, in order.
pub struct Plans {
    opened: Vec<Opened>,
    /// Possible races that no run has confirmed yet.
    suspicions: Suspicions,
}

impl Plans {
    /// Reads and checks the plans in files, or the plans of the models in them.
    ///
    /// # Errors
    /// Diagnostics in the files.
    pub fn open(
        console: &Console,
        files: &[(Source, Content)],
        race_check: bool,
    ) -> Result<Self, Error> {
        let mut suspicions = vec![];
        let mut opened = files
            .iter()
            .map(|file| open(console, file, race_check, &mut suspicions))
            .collect::<Result<Vec<_>, _>>()?;
        opened.sort_by_key(|opened| opened.plan.rank);
        check_together(console, &opened, race_check, &mut suspicions)?;
        Ok(Self { opened, suspicions })
    }

    /// The text of each plan.
    pub fn sources(&self) -> Vec<Source> {
        self.opened.iter().map(|opened| opened.source.clone()).collect()
    }

    /// Fails after a run that confirmed none of the possible races.
    ///
    /// # Errors
    /// Those races, which are shown on the console.
    pub fn expect_no_suspicion(&self, console: &Console) -> Result<(), Error> {
        expect_none(console, &self.suspicions)
    }
}

/// Fails if there are possible races that a run has not confirmed.
fn expect_none(console: &Console, suspicions: &Suspicions) -> Result<(), Error> {
    for (source, races) in suspicions {
        let mut races = races.clone();
        races.iter_mut().for_each(|race| race.notes.push("the run did not confirm it".into()));
        console.diagnostics(source, &races);
    }
    if suspicions.is_empty() { Ok(()) } else { Err(Error::Reported) }
}

/// The ranks of a world, in order.
pub struct World {
    /// The plans with their code.
    pub ranks: Vec<Rank>,
    /// Whether the world has several ranks, in this process or others.
    several: bool,
    /// Possible races that no run has confirmed yet.
    suspicions: Suspicions,
    /// The folder of the code; removed when dropped.
    _folder: crate::temporary::Folder,
}

impl World {
    /// Reads, checks and compiles the plans in files, or the plans of the models in them.
    ///
    /// # Errors
    /// Diagnostics in the files.
    pub fn open(
        console: &Console,
        files: &[(Source, Content)],
        preparation: &Preparation,
    ) -> Result<Self, Error> {
        preparation.target.expect_runnable().map_err(Error::problem)?;
        let Plans { opened: mut plans, suspicions } =
            Plans::open(console, files, preparation.race_check)?;
        let several = plans.len() > 1;
        plans.retain(|opened| preparation.rank.is_none_or(|rank| rank == opened.plan.rank));
        if let (Some(rank), true) = (preparation.rank, plans.is_empty()) {
            let what = if files[0].1 == Content::Model { "model" } else { "plan" };
            let problem = format!("this process is rank {rank}, which has no {what}");
            let help = format!("give every process the {what}s of all ranks");
            return Err(Error::problem(problem).help(help));
        }
        let _step = console.step("compiling");
        let folder = output::temporary_folder()?;
        // One session, so that kernels that ranks share are compiled once.
        let session = Session::new();
        let ranks = plans.into_iter().enumerate().map(|(index, Opened { source, plan, .. })| {
            let path = folder.path().join(format!("plan_{index}.so"));
            compile(&session, source, plan, &preparation.target, &path)
        });
        let ranks = ranks.collect::<Result<_, _>>()?;
        Ok(Self { ranks, several, suspicions, _folder: folder })
    }

    /// The prefix of the names of a rank's buffers.
    fn prefix(&self, rank: &Rank) -> String {
        if self.several { prefix(rank.plan().rank) } else { String::new() }
    }

    /// Reads the buffers of the ranks in this process.
    ///
    /// # Errors
    /// If a name does not belong to a rank, a buffer has another type, or data cannot be read.
    pub fn read(&self, mut given: Given) -> Result<Buffers, Error> {
        let interfaces = self.ranks.iter().map(|rank| (self.prefix(rank), rank.interface()));
        let interfaces: Vec<(String, &Interface)> = interfaces.collect();
        let names = self.buffers();
        let is_elsewhere = |name: &str| self.several && name.starts_with("rank");
        if self.ranks.len() <= 1 {
            given.retain(|name| names.contains(name) || !is_elsewhere(name));
        }
        given.read(|name, ty| {
            if !names.contains(name) && !self.several {
                let known = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                return Err(problem(irc_executor::Error::UnknownInput {
                    name: name.to_owned(),
                    known,
                }));
            }
            if !names.contains(name) {
                return Err(Error::problem(format!("no rank has an input '{name}'"))
                    .help("names are rank<r>/buffer_<Id> when there are several ranks"));
            }
            let port = interfaces.iter().find_map(|(prefix, interface)| {
                let own = name.strip_prefix(prefix.as_str())?;
                interface.inputs.iter().chain(&interface.outputs).find(|port| port.name == own)
            });
            match port.filter(|port| !values::is_stored_for(port, ty)) {
                None => Ok(()),
                Some(port) => {
                    let expected = port.type_text();
                    Err(Error::problem(format!("input '{name}': expected {expected}, found {ty}")))
                }
            }
        })
    }

    /// The memory of each rank, initialised with the given buffers, and with random values if there is a
    /// seed.
    ///
    /// # Errors
    /// If a buffer does not belong to a rank, or has another type.
    pub fn memories(&self, mut given: Buffers, seed: Option<u64>) -> Result<Vec<Memory>, Error> {
        let mut memories = vec![];
        for rank in &self.ranks {
            let prefix = self.prefix(rank);
            if let Some(seed) = seed {
                let mut interface = rank.interface().clone();
                interface.inputs.iter_mut().for_each(|port| port.name.insert_str(0, &prefix));
                Missing::random(seed).fill(&mut given, &interface.inputs)?;
            }
            let (own, others): (Buffers, Buffers) =
                given.into_iter().partition(|(name, _)| name.starts_with(&prefix));
            given = others;
            let own =
                own.into_iter().map(|(name, tensor)| (name[prefix.len()..].to_owned(), tensor));
            memories.push(rank.memory(own.collect()).map_err(problem)?);
        }
        let is_elsewhere = |name: &&String| self.several && name.starts_with("rank");
        let left = given.keys().find(|name| self.ranks.len() > 1 || !is_elsewhere(name));
        match left {
            None => Ok(memories),
            Some(name) => Err(Error::problem(format!("no rank has an input '{name}'"))
                .help("names are rank<r>/buffer_<Id> when there are several ranks")),
        }
    }

    /// Runs all ranks once.
    ///
    /// # Errors
    /// If the run stops.
    pub fn run(&self, memories: &mut [Memory], options: Options) -> Result<(), Error> {
        let ranks: Vec<&Rank> = self.ranks.iter().collect();
        irc_executor::run(&ranks, memories, options).map(|_| ()).map_err(problem)
    }

    /// Fails after a run that confirmed none of the possible races.
    ///
    /// # Errors
    /// Those races, which are shown on the console.
    pub fn expect_no_suspicion(&self, console: &Console) -> Result<(), Error> {
        expect_none(console, &self.suspicions)
    }

    /// The names of all buffers of the ranks.
    pub fn buffers(&self) -> BTreeSet<String> {
        let of = |rank: &Rank| {
            let prefix = self.prefix(rank);
            rank.buffers().map(move |name| format!("{prefix}{name}")).collect::<Vec<_>>()
        };
        self.ranks.iter().flat_map(of).collect()
    }

    /// The outputs, by name.
    pub fn outputs(&self, memories: Vec<Memory>) -> Buffers {
        let each = self.ranks.iter().zip(memories).flat_map(|(rank, memory)| {
            let prefix = self.prefix(rank);
            let outputs = rank.outputs(memory).into_iter();
            outputs.map(move |(name, tensor)| (format!("{prefix}{name}"), tensor))
        });
        each.collect()
    }
}

/// The prefix of the names of the buffers of a rank in a world of several.
pub fn prefix(rank: i64) -> String {
    format!("rank{rank}/")
}

/// Whether the nodes of a model exchange data with other ranks, which only a plan can do.
pub fn communicates(source: &Source) -> bool {
    let document = model::parse(source, &model::Options::default(), &mut Sink::new());
    document.is_some_and(|document| {
        document.model.nodes.iter().any(|node| node.op.kind.is_communication())
    })
}

/// The plan of a model: for a generic device, otherwise for one with known kernels.
fn planned(console: &Console, source: &Source) -> Result<Source, Error> {
    let plan_for = |arch| {
        let planner = irc_cli::Planner::Irc;
        let flags = plan::Planning { arch, processors: None, planner, rules: None };
        plan::plan(console, source, &plan::options(console, &flags)?)
    };
    let text = plan_for("ANY").or_else(|_| plan_for("CUDA_80"))?;
    Ok(Source::new(format!("plan of {}", source.name()), text))
}

/// The plan of a file.
struct Opened {
    /// Its text, from the file or the planner.
    source: Source,
    plan: Plan,
    /// The model that it was planned from, if any.
    model: Option<Source>,
}

/// Possible races, which the run verifies, by file.
type Suspicions = Vec<(Source, Vec<Diagnostic>)>;

/// The plan of a file without relevant diagnostics; all diagnostics are shown on the console.
fn open(
    console: &Console,
    (file, content): &(Source, Content),
    race_check: bool,
    suspicions: &mut Suspicions,
) -> Result<Opened, Error> {
    let model = (*content == Content::Model).then(|| file.clone());
    let source = model.as_ref().map_or(Ok(file.clone()), |model| planned(console, model))?;
    let mut sink = Sink::new();
    let strict = format::parse(&source, &model::Options::default(), &mut sink);
    let diagnostics = report(console, &source, sink.into_diagnostics(), race_check, suspicions);
    diagnostics.map_err(|diagnostics| Error::Diagnostics(source.clone(), diagnostics))?;
    let lenient = || {
        let options = model::Options { validate: false, ..Default::default() };
        format::parse(&source, &options, &mut Sink::new())
    };
    match strict.or_else(lenient) {
        Some(plan) => Ok(Opened { source, plan, model }),
        None => Err(Error::Internal("a plan without errors was not read".into())),
    }
}

/// Shows irrelevant diagnostics on the console, and collects the races that the run verifies. Errors: the
/// diagnostics, if any is relevant.
fn report(
    console: &Console,
    source: &Source,
    mut diagnostics: Vec<Diagnostic>,
    race_check: bool,
    suspicions: &mut Suspicions,
) -> Result<(), Vec<Diagnostic>> {
    let of_the_device = |diagnostic: &Diagnostic| OF_THE_DEVICE.contains(&diagnostic.code);
    tolerate(&mut diagnostics, of_the_device, "irc can run the plan nevertheless");
    let is_race = |diagnostic: &Diagnostic| race_check && OF_THE_RUN.contains(&diagnostic.code);
    if diagnostics.iter().any(|diagnostic| diagnostic.is_error() && !is_race(diagnostic)) {
        return Err(diagnostics);
    }
    let races =
        diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).cloned().collect::<Vec<_>>();
    let why =
        "the plan runs nevertheless, to confirm the race; the run fails even if it does not occur";
    tolerate(&mut diagnostics, is_race, why);
    console.diagnostics(source, &diagnostics);
    if !races.is_empty() {
        suspicions.push((source.clone(), races));
    }
    Ok(())
}

/// Turns some errors into warnings.
fn tolerate(diagnostics: &mut [Diagnostic], which: impl Fn(&Diagnostic) -> bool, why: &str) {
    for diagnostic in
        diagnostics.iter_mut().filter(|diagnostic| diagnostic.is_error() && which(diagnostic))
    {
        diagnostic.severity = Severity::Warning;
        diagnostic.notes.push(why.into());
    }
}

/// Checks the plans of all ranks together.
fn check_together(
    console: &Console,
    opened: &[Opened],
    race_check: bool,
    suspicions: &mut Suspicions,
) -> Result<(), Error> {
    let plans: Vec<Plan> = opened.iter().map(|opened| opened.plan.clone()).collect();
    let mut failed = false;
    for (index, mut diagnostic) in format::check_ranks(&plans) {
        let source = place(&opened[index], &mut diagnostic);
        if let Err(diagnostics) = report(console, source, vec![diagnostic], race_check, suspicions)
        {
            failed = true;
            console.diagnostics(source, &diagnostics);
        }
    }
    if failed { Err(Error::Reported) } else { Ok(()) }
}

/// The file of a diagnostic: an error in the set of ranks may already be located in a model.
fn place<'a>(opened: &'a Opened, diagnostic: &mut Diagnostic) -> &'a Source {
    let source = match &opened.model {
        Some(model) if diagnostic.code == "plan-ranks" => {
            diagnostic.message = diagnostic.message.replace("plan", "model");
            diagnostic.help = diagnostic.help.take().map(|help| help.replace("plan", "model"));
            model
        }
        _ => &opened.source,
    };
    spans::place(source.text(), std::slice::from_mut(diagnostic));
    source
}

fn compile(
    session: &Session,
    source: Source,
    plan: Plan,
    target: &Target,
    path: &std::path::Path,
) -> Result<Rank, Error> {
    let compiled = session.plan(source).compile(target)?;
    output::write(path, &compiled.library, output::Content::Executable)?;
    let kernels = Kernels::load(path).map_err(problem)?;
    Rank::new(plan, &compiled.code, kernels).map_err(problem)
}

fn problem(error: irc_executor::Error) -> Error {
    Error::problem(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Console {
        let flags = irc_cli::Console {
            diagnostics: Default::default(),
            color: Default::default(),
            progress: Default::default(),
        };
        Console::new("irc", &flags)
    }

    #[test]
    fn a_race_that_no_run_shows_is_an_error_still() {
        let source = Source::new("plan.json", "{}");
        let race = || vec![Diagnostic::error("plan-race", "a race")];
        let mut suspicions = vec![];
        assert!(report(&quiet(), &source, race(), false, &mut suspicions).is_err());
        assert!(report(&quiet(), &source, race(), true, &mut suspicions).is_ok());
        assert_eq!(suspicions.len(), 1);
        let world = World {
            ranks: vec![],
            several: false,
            suspicions,
            _folder: crate::temporary::Folder::new().expect("a folder"),
        };
        let error = world.expect_no_suspicion(&quiet()).expect_err("a race");
        assert_eq!(error.code(), 1);
    }

    #[test]
    fn a_run_for_races_is_rejected_for_other_errors() {
        let source = Source::new("plan.json", "{}");
        let race = Diagnostic::error("plan-race", "a race");
        let late = Diagnostic::error("plan-use-before-result", "too late");
        let mut suspicions = vec![];
        let diagnostics = report(&quiet(), &source, vec![race, late], true, &mut suspicions);
        assert!(diagnostics.expect_err("an error").iter().all(Diagnostic::is_error));
        assert!(suspicions.is_empty());
    }
}
