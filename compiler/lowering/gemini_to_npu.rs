//! `gemini-to-npu`: lowers a schedule to the program of each core.
//!
//! Before: a module with one `gemini.schedule`, and for schedules of one core that irc has not written the
//! `gemini.frontend` that defines its layers. After: an `npu.program` in their place, whose instructions have the locations of
//! their workloads. A module with a program and without a schedule does not change.
//!
//! Errors of the checks of schedules, and workloads that cannot be lowered, are reported at their ops.
use irc_dialects::{
    gemini::{self, Workloads},
    npu,
};
use irc_gemini_format::{FileKind, Options, check_pair};
use irc_mlir::{
    BlockRef, Erase, Location, OperationLike, OperationRef, Pass, PassError, PassResult,
    RegionLike, context_of, read,
};
use irc_npu::Program;
use irc_npu_emit::FileDiagnostic;
use irc_npu_lower::stated_layers;
use std::collections::HashMap;

/// The pass `gemini-to-npu`.
pub struct GeminiToNpu;

impl Pass for GeminiToNpu {
    fn name(&self) -> &'static str {
        "gemini-to-npu"
    }

    fn description(&self) -> &'static str {
        "make the program of each core of a Gemini schedule"
    }

    fn dialects(&self) -> &'static [&'static str] {
        &["npu"]
    }

    fn run(&self, module: OperationRef<'_, '_>, _: &irc_mlir::Options) -> PassResult {
        if only(module, "gemini.schedule")?.is_none() && only(module, "npu.program")?.is_none() {
            let message = "expected a gemini.schedule or an npu.program, found none";
            return Err(PassError::at(&module, message));
        }
        lower(module)
    }
}

/// Replaces the schedule of a module by its program, also outside a pass pipeline. A module without a
/// schedule does not change.
///
/// # Errors
/// After a diagnostic at each affected op.
pub fn lower(module: OperationRef<'_, '_>) -> PassResult {
    let Some(root) = only(module, "gemini.schedule")? else { return Ok(()) };
    let layers = only(module, "gemini.frontend")?;
    let scheduled = gemini::schedule(root, &Options::default())?;
    let frontend = layers.map(|op| gemini::frontend(op, &Options::default())).transpose()?;
    if let Some(frontend) = &frontend {
        gemini::report(root, &check_pair(&scheduled.schedule, frontend))?;
    }
    let known = stated_layers(&scheduled.schedule);
    let program = irc_npu_lower::program(&scheduled.schedule, frontend.as_ref(), &known);
    let program = program.or_else(|diagnostics| {
        report(root, layers, &diagnostics)?;
        Err(PassError::at(&root, "the schedule has no program"))
    })?;
    let sources = Sources::new(&scheduled.schedule, &scheduled.workloads);
    let place = |core: usize, index: usize| sources.of(&program, core, index, root.location());
    let block = module.region(0).ok().and_then(|region| region.first_block());
    let block: BlockRef<'_, '_> = block.expect("a module has a block");
    npu::build(context_of(&module), block, &program, root.location(), &place);
    root.erase();
    layers.into_iter().for_each(Erase::erase);
    Ok(())
}

/// The op of that name in a module, if any.
///
/// # Errors
/// After a diagnostic at the second, if there is more than one.
pub fn only<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    name: &str,
) -> Result<Option<OperationRef<'c, 'a>>, PassError> {
    let mut found = read::body_ops(module).into_iter().filter(|op| read::op_name(op) == name);
    match (found.next(), found.next()) {
        (_, Some(second)) => Err(PassError::at(&second, format!("expected one {name}"))),
        (first, None) => Ok(first),
    }
}

/// Reports diagnostics at the ops of the files that they are about.
fn report(
    schedule: OperationRef<'_, '_>,
    frontend: Option<OperationRef<'_, '_>>,
    diagnostics: &[FileDiagnostic],
) -> PassResult {
    let mut failed = Ok(());
    for FileDiagnostic { file, diagnostic } in diagnostics {
        let op = match file {
            FileKind::Schedule => schedule,
            FileKind::Frontend => frontend.unwrap_or(schedule),
        };
        failed = failed.and(gemini::report(op, std::slice::from_ref(diagnostic)));
    }
    failed
}

/// The ops of workloads, by the index of the core and by the ids in instructions.
struct Sources<'s, 'c, 'a>(HashMap<(usize, i32), &'s OperationRef<'c, 'a>>);

impl<'s, 'c: 'a, 'a> Sources<'s, 'c, 'a> {
    fn new(
        schedule: &irc_gemini_format::schedule::Schedule,
        workloads: &'s Workloads<'c, 'a>,
    ) -> Self {
        let entry = |(core, index, workload): (usize, usize, &_)| {
            let workload: &irc_gemini_format::schedule::Workload = workload;
            let number = i32::try_from(workload.workload_id).ok()?;
            Some(((core, number), &workloads[core][index]))
        };
        Sources(schedule.workloads().filter_map(entry).collect())
    }

    /// The origin of an instruction: its workload, or the schedule.
    fn of(
        &self,
        program: &Program,
        core: usize,
        index: usize,
        schedule: Location<'c>,
    ) -> Location<'c> {
        let number = program.cores[core].code[index].origin.wkl;
        let found = self.0.get(&(core, number));
        found.map_or(schedule, |op| op.location())
    }
}
