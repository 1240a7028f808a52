//! The queries from a plan's file to the library of its tasks.
use super::{
    Session,
    database::Input,
    error::{CompileError, Error, QueryError, messages},
    kernel::{self, KernelObject, compile_nothing, compile_task},
    queries,
};
use crate::{
    codegen::{Output, Target, compile, link_library},
    gpu::Limits,
    lowering::compute_to_loops::simt::{has_tiles, is_in_shared_memory, team_of},
    machine::{in_context, run_stages},
    pipeline::Settings,
    tasks::{
        self, Segment, TaskStep,
        persistent::{RankCode, TeamCode, main_text, scratch_limit, slot_bytes},
    },
};
use irc_ark_format::{
    json,
    model::Options,
    plan::{self, Architecture, Plan, TaskInfo},
};
use irc_diag::{Diagnostic, Sink, Source};
use irc_executor::code::{Kernel, PlanCode, Step, TaskCode, Variant};
use irc_mlir::{Context, Module, read};
use std::{collections::BTreeMap, sync::Arc};

/// The compiled tasks of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledPlan {
    /// The shared library's bytes.
    pub library: Vec<u8>,
    /// The description of its code.
    pub code: PlanCode,
}

/// A task kernel's tensor-level text and its target, as a key: equal kernels compile once.
#[salsa::interned(debug)]
pub struct TaskKey<'db> {
    #[returns(ref)]
    pub text: Arc<str>,
    #[returns(ref)]
    pub target: Target,
}

/// A target as a key.
#[salsa::interned(debug)]
pub struct TargetKey<'db> {
    #[returns(ref)]
    pub target: Target,
}

/// The steps of a task, with the text of each variant of each kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextStep {
    /// A kernel without its symbols, and the text of each variant.
    Kernel(Kernel, Vec<Arc<str>>),
    /// The op at this index moves data between ranks.
    Communicate(usize),
}

/// The plan of a file. The diagnostics of [`plan::check`] are not computed: the caller decides which of
/// them matter.
#[salsa::tracked(returns(clone))]
fn plan_of(db: &dyn salsa::Database, input: Input) -> Result<Arc<Plan>, QueryError> {
    let mut sink = Sink::new();
    let options = Options { validate: false, ..Default::default() };
    match plan::parse(&queries::source(db, input), &options, &mut sink) {
        Some(plan) => Ok(Arc::new(plan)),
        None => Err(QueryError::found(sink.into_diagnostics())),
    }
}

/// The kernels of a plan as text, by task info.
#[salsa::tracked(returns(clone))]
pub fn task_texts(
    db: &dyn salsa::Database,
    input: Input,
) -> Result<Arc<Vec<Vec<TextStep>>>, QueryError> {
    let plan = plan_of(db, input)?;
    let texts = plan.task_infos.iter().enumerate().map(|(index, task)| {
        task_text(task).map_err(|(op, message)| {
            let tile = task.ops[op].config.ints("Tile").map_or("", |_| ".Tile");
            let path = format!("$.TaskInfos[{index}].Ops[{op}].Config{tile}");
            let mut diagnostics = vec![Diagnostic::error("plan-task", message).path(path)];
            json::place(queries::source(db, input).text(), &mut diagnostics);
            QueryError::found(diagnostics)
        })
    });
    Ok(Arc::new(texts.collect::<Result<_, _>>()?))
}

/// The steps of a task. Errors: the index of an op, and a message.
fn task_text(task: &TaskInfo) -> Result<Vec<TextStep>, OpError> {
    let step = |step| match step {
        TaskStep::Communicate(op) => Ok(TextStep::Communicate(op)),
        TaskStep::Kernel(segment) => {
            let (kernel, texts) = kernel_texts(task, &segment)?;
            Ok(TextStep::Kernel(kernel, texts))
        }
    };
    tasks::steps(task)?.into_iter().map(step).collect()
}

/// The index of an op of a task, and an error message.
type OpError = (usize, String);

/// A kernel and the texts of its variants.
fn kernel_texts(task: &TaskInfo, segment: &Segment) -> Result<(Kernel, Vec<Arc<str>>), OpError> {
    let lasts = tasks::variants(segment);
    let mut failed = None;
    let texts = in_context(|context| {
        let texts = lasts.iter().map(|last| {
            tasks::kernel_text(context, kernel::NAME, task, segment, *last).map(Arc::from)
        });
        match texts.collect::<Result<Vec<Arc<str>>, _>>() {
            Ok(texts) => Some(texts),
            Err(error) => {
                failed = Some(error);
                None
            }
        }
    });
    let texts = texts
        .map_err(|captured| failed.unwrap_or_else(|| (segment.ops[0], messages(&captured))))?;
    let views = segment.loads.iter().chain(segment.stores.iter().map(|store| &store.view));
    let variant = |last| Variant { last, symbol: String::new(), keeps: None };
    let kernel = Kernel {
        ops: segment.ops.clone(),
        counts: segment.grids[0].counts,
        operands: views.map(tasks::operand).collect(),
        variants: lasts.into_iter().map(variant).collect(),
    };
    Ok((kernel, texts))
}

/// The object of one task kernel.
#[salsa::tracked(returns(clone))]
pub fn task_object<'db>(
    db: &'db dyn salsa::Database,
    key: TaskKey<'db>,
) -> Result<Arc<KernelObject>, CompileError> {
    compile_task(key.text(db), key.target(db)).map(Arc::new)
}

/// The linked library of a plan's tasks.
#[salsa::tracked(returns(clone))]
pub fn plan_library<'db>(
    db: &'db dyn salsa::Database,
    input: Input,
    target: TargetKey<'db>,
) -> Result<Arc<CompiledPlan>, QueryError> {
    let target = target.target(db);
    let mut objects: BTreeMap<String, Arc<KernelObject>> = BTreeMap::new();
    let mut code = PlanCode::default();
    code.tasks = tasks_of(&task_texts(db, input)?, |index, ops, text, variant| {
        let key = TaskKey::new(db, text.clone(), target.clone());
        let object = task_object(db, key)
            .map_err(|error| failure(&format!("ops {ops:?} of task {index}"), error))?;
        variant.symbol.clone_from(&object.symbol);
        variant.keeps = object.info.kept.clone().filter(|kept| kept.bytes > 0);
        code.scratch_bytes = code.scratch_bytes.max(object.info.scratch());
        objects.insert(object.symbol.clone(), object);
        Ok(())
    })?;
    let nothing = match objects.is_empty() {
        true => Some(compile_nothing(target).map_err(|error| failure("no task", error))?),
        false => None,
    };
    let parts = objects.values().map(|object| (object.symbol.clone(), object.object.as_slice()));
    let parts = parts.chain(nothing.as_deref().map(|object| ("nothing".to_owned(), object)));
    let library = link_library(parts)?;
    code.requires = library.features.among(target.required_features());
    Ok(Arc::new(CompiledPlan { library: library.bytes, code }))
}

/// The steps of each task. `complete` completes each variant of a kernel, given the number of the task, the ops of the
/// kernel, and the text of the variant.
fn tasks_of(
    texts: &[Vec<TextStep>],
    mut complete: impl FnMut(usize, &[usize], &Arc<str>, &mut Variant) -> Result<(), QueryError>,
) -> Result<Vec<TaskCode>, QueryError> {
    let mut step = |index, step: &TextStep| match step {
        TextStep::Communicate(op) => Ok(Step::Communicate(*op)),
        TextStep::Kernel(kernel, texts) => {
            let mut kernel = kernel.clone();
            for (variant, text) in kernel.variants.iter_mut().zip(texts) {
                complete(index, &kernel.ops, text, variant)?;
            }
            Ok(Step::Kernel(kernel))
        }
    };
    let task = |(index, steps): (usize, &Vec<TextStep>)| {
        let steps =
            steps.iter().map(|text| step(index, text)).collect::<Result<_, QueryError>>()?;
        Ok(TaskCode { steps })
    };
    texts.iter().enumerate().map(task).collect()
}

/// A plan and the kernels of its tasks.
type PlanTexts = (Arc<Plan>, Arc<Vec<Vec<TextStep>>>);

/// A kernel of tasks for GPUs: its text, the warps of a task, and the bytes of SRAM of a slot.
struct TeamText {
    text: Arc<str>,
    warps: u64,
    sram: u64,
}

/// Kernels of tasks in one module, scheduled for their teams, with at most so many bytes of scratch of a warp in shared
/// memory.
fn team_codes<'c>(
    context: &'c Context,
    texts: &BTreeMap<String, TeamText>,
    scratch_of_warp: u64,
    target: &Target,
) -> Option<(Module<'c>, BTreeMap<String, TeamCode>)> {
    // Schedules depend on the number of threads of a task, and on where scratch is.
    let mut settings: BTreeMap<(u64, u64), BTreeMap<&str, &str>> = BTreeMap::new();
    for (symbol, TeamText { text, warps, sram }) in texts {
        let scratch = scratch_of_warp.saturating_mul(*warps).min(*sram);
        settings.entry((*warps, scratch)).or_default().insert(symbol, text);
    }
    let module = irc_mlir::parse_module(context, "")?;
    let mut codes = BTreeMap::new();
    for ((warps, shared_scratch), kernels) in settings {
        let mut own =
            kernel::module_of(context, kernels.iter().map(|(name, text)| (*name, *text)))?;
        let block_threads = u32::try_from(32 * warps).unwrap_or_default();
        let settings = Settings { block_threads, shared_scratch, ..Settings::of(target) };
        let symbols: Vec<String> = kernels.into_keys().map(str::to_owned).collect();
        let objects = kernel::schedule_with(context, &mut own, &symbols, &settings)?;
        let functions = kernel::functions(own.as_operation());
        for KernelObject { symbol, info, .. } in objects {
            let team = *functions.get(&team_of(&symbol))?;
            let (parameters, _) = read::signature(functions.get(&symbol)?)?;
            let code = TeamCode {
                scratch: info.scratch(),
                is_shared: parameters.last().is_some_and(|scratch| is_in_shared_memory(*scratch)),
                has_tiles: has_tiles(team),
                parameters: info.parameters,
            };
            codes.insert(symbol, code);
        }
        kernel::add(&module, &own);
    }
    Some((module, codes))
}

/// What is made of the kernel of a world's plans.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted<'w> {
    /// Code.
    Code(Output),
    /// The module after a stage, as text.
    Stage(&'w str),
}

/// One kernel that runs the plans of a world, in the order of their ranks.
fn persistent_kernel(
    ranks: &[PlanTexts],
    target: &Target,
    wanted: Wanted<'_>,
) -> Result<Vec<u8>, QueryError> {
    let mut kernels: BTreeMap<String, TeamText> = BTreeMap::new();
    let mut code_of = |(plan, texts): &PlanTexts| {
        let srams = slot_bytes(plan);
        tasks_of(texts, |index, _, text, variant| {
            let warps = plan.task_infos[index].num_warps;
            variant.symbol = format!("{}_{warps}", kernel::task_symbol(text, target));
            let new = || TeamText {
                text: text.clone(),
                warps: u64::try_from(warps).unwrap_or_default(),
                sram: srams[index],
            };
            let kernel = kernels.entry(variant.symbol.clone()).or_insert_with(new);
            kernel.sram = kernel.sram.min(srams[index]);
            Ok(())
        })
    };
    let code = ranks.iter().map(&mut code_of).collect::<Result<Vec<_>, _>>()?;
    let ranks = ranks.iter().zip(&code);
    let ranks: Vec<_> = ranks.map(|((plan, _), tasks)| RankCode { plan, tasks }).collect();
    let limits = Limits::of_capability(target.capability());
    let mut rejected = None;
    let made = in_context(|context| {
        let mut scratch_of_warp = u64::MAX;
        let (mut module, text, described) = loop {
            let (module, codes) = team_codes(context, &kernels, scratch_of_warp, target)?;
            let made = main_text(&ranks, &codes, target.form).and_then(|(text, described)| {
                let most = limits.dynamic_shared(&described);
                Ok((scratch_limit(&ranks, &codes, most)?, text, described))
            });
            match made {
                Ok((Some(less), ..)) if less < scratch_of_warp => scratch_of_warp = less,
                Ok((_, text, described)) => break (module, text, described),
                Err(message) => {
                    rejected = Some(message);
                    return None;
                }
            }
        };
        let as_text =
            |module: &Module<'_>| irc_mlir::to_text(&module.as_operation(), true).into_bytes();
        let settings = Settings { block_threads: described.threads, ..Settings::of(target) };
        if wanted == Wanted::Stage(settings.pipeline.scheduled()) {
            return Some(Ok(as_text(&module)));
        }
        let main = irc_mlir::parse_module(context, &text)?;
        kernel::add(&module, &main);
        match wanted {
            Wanted::Stage(stage) => {
                run_stages(context, &mut module, &settings, "memory", stage)?;
                Some(Ok(as_text(&module)))
            }
            Wanted::Code(output) => {
                run_stages(context, &mut module, &settings, "memory", "llvm")?;
                let code = compile(&module, target, output);
                rejected = limits.expect(&described).err();
                Some(code.map(|code| match output {
                    Output::Ptx => described.describe(&code, &[]),
                    _ => code,
                }))
            }
        }
    });
    match (made, rejected) {
        (_, Some(message)) => Err(QueryError::at("plan-gpu", &message)),
        (Ok(code), None) => Ok(code?),
        (Err(captured), None) => Err(QueryError::at("plan-gpu", messages(&captured))),
    }
}

/// The error of a kernel that does not compile.
fn failure(what: &str, error: CompileError) -> QueryError {
    let message = match error {
        CompileError::Codegen(error) => error.to_string(),
        CompileError::Passes(captured) => messages(&captured),
    };
    QueryError::internal(format!("{what}: {message}"))
}

/// An ARK plan in a session.
pub struct PlanFile<'s> {
    session: &'s Session,
    input: Input,
}

impl Session {
    /// Adds an ARK plan without checking it; see `irc_ark_format::plan::check`.
    pub fn plan(&self, source: Source) -> PlanFile<'_> {
        PlanFile { session: self, input: self.add_plan(source) }
    }

    /// Compiles the plans of all ranks of a world to one kernel for GPUs, as PTX or LLVM IR. With several plans, the names of
    /// buffers begin with `rank<r>/`.
    ///
    /// # Errors
    /// As [`PlanFile::ptx`], and ranks or tags that do not match.
    ///
    /// # Panics
    /// If there is no plan.
    pub fn emit_ranks(
        &self,
        plans: &[PlanFile<'_>],
        target: &Target,
        output: Output,
    ) -> Result<Vec<u8>, Error> {
        kernel_of_ranks(plans, target, Wanted::Code(output))
    }

    /// The IR of that kernel after a stage of the target's pipeline as text: `simt`, which has the kernels of tasks, or a later
    /// one.
    ///
    /// # Errors
    /// As [`Self::emit_ranks`], and another stage.
    ///
    /// # Panics
    /// If there is no plan.
    pub fn stage_of_ranks(
        &self,
        plans: &[PlanFile<'_>],
        target: &Target,
        stage: &str,
    ) -> Result<Vec<u8>, Error> {
        let pipeline = target.backend.pipeline;
        let first = pipeline.scheduled();
        let unknown = |message| plans[0].error(QueryError::at("unknown-stage", message));
        let position = |stage| pipeline.position(stage).map_err(unknown);
        if position(stage)? < position(first)? {
            return Err(unknown(format!("the first stage of the kernel of plans is '{first}'")));
        }
        kernel_of_ranks(plans, target, Wanted::Stage(stage))
    }
}

fn kernel_of_ranks(
    plans: &[PlanFile<'_>],
    target: &Target,
    wanted: Wanted<'_>,
) -> Result<Vec<u8>, Error> {
    let mut ranks = plans.iter().map(PlanFile::texts).collect::<Result<Vec<_>, _>>()?;
    ranks.sort_by_key(|(plan, _)| plan.rank);
    persistent_kernel(&ranks, target, wanted).map_err(|error| plans[0].error(error))
}

impl PlanFile<'_> {
    /// Compiles the plan's tasks to a shared library and its description.
    ///
    /// # Errors
    /// A file that is not a plan, an op without a kernel, or an error of code generation.
    pub fn compile(&self, target: &Target) -> Result<Arc<CompiledPlan>, Error> {
        self.compiled(target).map_err(|error| self.error(error))
    }

    fn compiled(&self, target: &Target) -> Result<Arc<CompiledPlan>, QueryError> {
        let database = &self.session.database;
        let texts = task_texts(database, self.input)?;
        let kernels = texts.iter().flatten().filter_map(|step| match step {
            TextStep::Kernel(_, texts) => Some(texts),
            TextStep::Communicate(_) => None,
        });
        let mut texts: Vec<Arc<str>> = kernels.flatten().cloned().collect();
        texts.sort();
        texts.dedup();
        self.session.share(texts, |database, text| {
            let key = TaskKey::new(database, text, target.clone());
            // An error is reported by the query that needs the object.
            let _ = task_object(database, key);
        })?;
        plan_library(database, self.input, TargetKey::new(database, target.clone()))
    }

    /// The device of the plan.
    ///
    /// # Errors
    /// A file that is not a plan.
    pub fn architecture(&self) -> Result<Architecture, Error> {
        let plan = plan_of(&self.session.database, self.input);
        plan.map(|plan| plan.architecture).map_err(|error| self.error(error))
    }

    /// Compiles the plan to one kernel for a GPU, as PTX.
    ///
    /// # Errors
    /// A file that is not a plan, a plan that a GPU cannot run, an op without a kernel, or an error of code generation.
    pub fn ptx(&self, target: &Target) -> Result<Vec<u8>, Error> {
        self.session.emit_ranks(std::slice::from_ref(self), target, Output::Ptx)
    }

    fn texts(&self) -> Result<PlanTexts, Error> {
        let database = &self.session.database;
        let texts = plan_of(database, self.input)
            .and_then(|plan| Ok((plan, task_texts(database, self.input)?)));
        texts.map_err(|error| self.error(error))
    }

    /// The kernels of the plan's tasks at the tensor level, as text: for each task info its steps, for each
    /// step its variants; a step that moves data between ranks has no variants.
    ///
    /// # Errors
    /// A file that is not a plan, or an op without a kernel.
    pub fn kernels(&self) -> Result<Vec<Vec<Vec<Arc<str>>>>, Error> {
        let texts = task_texts(&self.session.database, self.input);
        let texts = texts.map_err(|error| self.error(error))?;
        let variants = |step: &TextStep| match step {
            TextStep::Kernel(_, texts) => texts.clone(),
            TextStep::Communicate(_) => vec![],
        };
        Ok(texts.iter().map(|steps| steps.iter().map(variants).collect()).collect())
    }

    fn error(&self, error: QueryError) -> Error {
        Error::new(queries::source(&self.session.database, self.input), error)
    }
}
