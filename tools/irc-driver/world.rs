//! The plans of the ranks of one world, checked, compiled and ready to run on the host.
use crate::{
    console::Console,
    input::Content,
    output, plan,
    run::expect_runnable,
    stop::Stop,
    values::{self, Buffers},
};
use irc::{Session, Target};
use irc_ark_format::{
    model,
    plan::{self as format, Plan},
};
use irc_diag::{Diagnostic, Severity, Sink, Source};
use irc_executor::{Kernels, Memory, Options, Rank};

/// Findings that only say what the named device lacks: the host runs the plan all the same.
const OF_THE_DEVICE: [&str; 7] = [
    "plan-matmul-kernel",
    "plan-matmul-tile",
    "plan-matmul-batch",
    "plan-reduce-impl",
    "plan-reduce-keep-dim",
    "plan-transpose-identity",
    "plan-sram",
];

/// Findings that a run which looks for races finds itself.
const OF_THE_RUN: [&str; 7] = [
    "plan-race",
    "plan-group-race",
    "plan-use-before-result",
    "plan-fused-dependency",
    "plan-lost-tasks",
    "plan-repeated-tasks",
    "plan-distribution",
];

/// How plans are prepared.
pub struct Preparation {
    /// The processor to generate code for.
    pub target: Target,
    /// Whether the run looks for races.
    pub race_check: bool,
    /// The only rank to run here; nothing for all of them.
    pub rank: Option<i64>,
}

/// The ranks of a world, in order.
pub struct World {
    /// The plans with their code.
    pub ranks: Vec<Rank>,
    /// Whether there are several, here or elsewhere.
    several: bool,
    /// Where the code lies; removed when the ranks are.
    _folder: tempfile::TempDir,
}

impl World {
    /// Reads, checks and compiles the plans of files, or the plans of the models that they hold.
    ///
    /// # Errors
    /// Findings in the files.
    pub fn open(
        console: &Console,
        files: &[(Source, Content)],
        preparation: &Preparation,
    ) -> Result<Self, Stop> {
        expect_runnable(&preparation.target)?;
        let mut plans = files
            .iter()
            .map(|(source, content)| match content {
                Content::Model => planned(console, source),
                _ => Ok(source.clone()),
            })
            .map(|source| checked(console, source?, preparation.race_check))
            .collect::<Result<Vec<_>, _>>()?;
        plans.sort_by_key(|(_, plan)| plan.rank);
        check_together(console, &plans)?;
        let several = plans.len() > 1;
        plans.retain(|(_, plan)| preparation.rank.is_none_or(|rank| rank == plan.rank));
        if let (Some(rank), true) = (preparation.rank, plans.is_empty()) {
            let problem = Stop::problem(format!("this process is rank {rank}, which has no plan"));
            return Err(problem.help("give every process the plans of all ranks"));
        }
        let _step = console.step("compiling");
        let folder = tempfile::tempdir().map_err(|error| {
            Stop::problem(format!("cannot create a temporary folder: {}", output::plain(&error)))
        })?;
        let ranks = plans.into_iter().enumerate().map(|(index, (source, plan))| {
            let path = folder.path().join(format!("plan_{index}.so"));
            compile(source, plan, &preparation.target, &path)
        });
        Ok(Self { ranks: ranks.collect::<Result<_, _>>()?, several, _folder: folder })
    }

    /// What precedes the names of a rank's buffers.
    fn prefix(&self, rank: &Rank) -> String {
        if self.several { prefix(rank.plan().rank) } else { String::new() }
    }

    /// The memory of each rank with the buffers given, and random values with a seed.
    ///
    /// # Errors
    /// A buffer that is no rank's, or of another type.
    pub fn memories(&self, mut given: Buffers, seed: Option<u64>) -> Result<Vec<Memory>, Stop> {
        let mut memories = vec![];
        for rank in &self.ranks {
            let prefix = self.prefix(rank);
            if let Some(seed) = seed {
                let mut interface = rank.interface().clone();
                interface.inputs.iter_mut().for_each(|port| port.name.insert_str(0, &prefix));
                values::fill(&mut given, &interface, seed)?;
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
            Some(name) => Err(Stop::problem(format!("input '{name}' is no rank's"))
                .help("names are rank<r>/buffer_<Id> when there are several ranks")),
        }
    }

    /// Runs all ranks once.
    ///
    /// # Errors
    /// What stopped the run.
    pub fn run(&self, memories: &mut [Memory], options: Options) -> Result<(), Stop> {
        let ranks: Vec<&Rank> = self.ranks.iter().collect();
        irc_executor::run(&ranks, memories, options).map(|_| ()).map_err(problem)
    }

    /// What came out, by name.
    pub fn outputs(&self, memories: Vec<Memory>) -> Buffers {
        let each = self.ranks.iter().zip(memories).flat_map(|(rank, memory)| {
            let prefix = self.prefix(rank);
            let outputs = rank.outputs(memory).into_iter();
            outputs.map(move |(name, tensor)| (format!("{prefix}{name}"), tensor))
        });
        each.collect()
    }
}

/// What precedes the names of the buffers of a rank that is one of several.
pub fn prefix(rank: i64) -> String {
    format!("rank{rank}/")
}

/// Whether the nodes of a model exchange data with other ranks, for which it must become a plan.
pub fn communicates(source: &Source) -> bool {
    let document = model::parse(source, &model::Options::default(), &mut Sink::new());
    document.is_some_and(|document| {
        document.model.nodes.iter().any(|node| node.op.kind.is_communication())
    })
}

/// The plan of a model: for no device in particular, or else for one whose kernels are known.
fn planned(console: &Console, source: &Source) -> Result<Source, Stop> {
    let plan_for = |arch| {
        let planner = irc_cli::Planner::Irc;
        let flags = plan::Planning { arch, processors: None, planner, rules: None };
        plan::plan(console, source, &plan::options(console, &flags)?)
    };
    let text = plan_for("ANY").or_else(|_| plan_for("CUDA_80"))?;
    Ok(Source::new(format!("plan of {}", source.name()), text))
}

/// A plan without findings that matter here; all are on the console.
fn checked(console: &Console, source: Source, race_check: bool) -> Result<(Source, Plan), Stop> {
    let mut sink = Sink::new();
    let strict = format::parse(&source, &model::Options::default(), &mut sink);
    let mut findings = sink.into_diagnostics();
    for finding in &mut findings {
        let tolerated = OF_THE_DEVICE.contains(&finding.code)
            || race_check && OF_THE_RUN.contains(&finding.code);
        if tolerated && finding.is_error() {
            finding.severity = Severity::Warning;
            finding.notes.push("the host runs the plan all the same".into());
        }
    }
    if findings.iter().any(Diagnostic::is_error) {
        return Err(Stop::Findings(source, findings));
    }
    console.findings(&source, &findings);
    let lenient = || {
        let options = model::Options { validate: false, ..Default::default() };
        format::parse(&source, &options, &mut Sink::new())
    };
    match strict.or_else(lenient) {
        Some(plan) => Ok((source, plan)),
        None => Err(Stop::Internal("a plan without errors was not read".into())),
    }
}

/// What the plans of all ranks together can show.
fn check_together(console: &Console, plans: &[(Source, Plan)]) -> Result<(), Stop> {
    let each: Vec<Plan> = plans.iter().map(|(_, plan)| plan.clone()).collect();
    let mut failed = false;
    for (index, finding) in format::check_ranks(&each) {
        failed |= finding.is_error();
        console.findings(&plans[index].0, &[finding]);
    }
    if failed { Err(Stop::Reported) } else { Ok(()) }
}

fn compile(
    source: Source,
    plan: Plan,
    target: &Target,
    path: &std::path::Path,
) -> Result<Rank, Stop> {
    let mut session = Session::new();
    let file = session.open_source(source.clone());
    let compiled = session
        .compile_plan(file, target)
        .map_err(|failure| Stop::failure(source.clone(), failure))?;
    output::write(path, &compiled.library, output::Content::Executable)?;
    let kernels = Kernels::load(path).map_err(problem)?;
    Rank::new(plan, &compiled.code, kernels).map_err(problem)
}

fn problem(error: irc_executor::Error) -> Stop {
    Stop::problem(error.to_string())
}
