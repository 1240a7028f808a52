//! Compiles Gemini schedules to programs of the NPU.
//!
//! A schedule describes the workloads of each core, the contents of its buffers and the order of DRAM
//! accesses; the frontend file describes what each layer computes. [`emit`] compiles both to the
//! instructions of every core, as the published assembler does.

mod arrange;
mod compute;
mod configure;
mod diagnostic;
mod frame;
mod groups;
mod hazards;
mod instructions;
mod known;
mod layers;
mod limits;
mod mesh;
mod movement;
mod moves;
mod rings;
mod step;
mod tensors;
mod tokens;

use irc_gemini_format::frontend::Frontend;
use irc_gemini_format::schedule::{Core, Dialect, Schedule, Transfers};
use irc_npu::{Core as CoreCode, Program};
use irc_npu_sim::noc::Mesh;

pub use diagnostic::FileDiagnostic;
use diagnostic::{Result, error};
use frame::Frame;
pub use known::{Arithmetic, Function, KnownLayer, KnownLayers, Numbers};
use layers::Layers;
use tensors::View;

/// Compiles the programs of all cores of a schedule.
///
/// # Errors
/// Diagnostics, each with the file it is about.
pub fn emit(
    schedule: &Schedule,
    frontend: Option<&Frontend>,
) -> Result<Program, Vec<FileDiagnostic>> {
    emit_known(schedule, frontend, &KnownLayers::new())
}

/// As [`emit`], with properties of the layers of a schedule of several cores.
///
/// # Errors
/// As [`emit`].
pub fn emit_known(
    schedule: &Schedule,
    frontend: Option<&Frontend>,
    known: &KnownLayers,
) -> Result<Program, Vec<FileDiagnostic>> {
    emit_on(schedule, frontend, known, None)
}

/// As [`emit_known`], for cores that share links and DRAM: the order of loads and workloads is one of few cycles there.
///
/// # Errors
/// As [`emit`].
pub fn emit_on(
    schedule: &Schedule,
    frontend: Option<&Frontend>,
    known: &KnownLayers,
    shared: Option<&Mesh>,
) -> Result<Program, Vec<FileDiagnostic>> {
    let sound = limits::check(schedule, frontend);
    let made = sound.and_then(|()| match (schedule.dialect, frontend) {
        (Dialect::A, Some(frontend)) => emit_all(schedule, frontend),
        (Dialect::A, None) => Err(error(
            "emit-no-frontend",
            "$",
            "the schedule needs the frontend file of its layers",
        )),
        (Dialect::B | Dialect::C, _) => mesh::emit(schedule, known, shared),
    });
    made.map_err(|diagnostic| vec![*diagnostic])
}

fn emit_all(schedule: &Schedule, frontend: &Frontend) -> Result<Program> {
    let transfers = Transfers::new(schedule);
    let layers = Layers::new(frontend, schedule, &transfers)?;
    let mut program = Program::default();
    for (place, core) in schedule.cores.iter().enumerate() {
        let view = View {
            schedule,
            transfers: &transfers,
            core,
            place,
            path: schedule.core_path(place),
            layers: &layers,
            groups: groups::groups(schedule, &transfers, core),
            first_tools: made_by_first_tools(core),
        };
        program.cores.push(code_of(&view, core.id)?);
    }
    Ok(program)
}

/// The published files come from two states of the tools: the first names the list of weights in
/// WL0 differently, and its assembler differs in a few ways.
fn made_by_first_tools(core: &Core) -> bool {
    core.workloads.iter().any(|workload| workload.wl1_buffer.is_some())
}

/// The program of a core.
fn code_of(view: &View<'_>, id: i64) -> Result<CoreCode> {
    let Some(last) = view.core.workloads.len().checked_sub(1) else {
        return Err(error("emit-empty", &view.path, "the core has no workload"));
    };
    let frame = Frame {
        id: diagnostic::word(id, &view.path)?,
        path: &view.path,
        begin: (movement::place(view, 0, -1)?, 0),
        regions: view.workload(0).regions(),
        end: (movement::place(view, last, -1)?, last),
        rules: if view.first_tools { tokens::Rules::First } else { tokens::Rules::Later },
    };
    frame.wrap(arrange::arrange(view)?.into_iter().collect())
}
