//! From Gemini schedules to programs of the NPU.
//!
//! A schedule says what each core runs, what lies in its buffers and in which order DRAM is used;
//! the frontend file says what each layer computes. [`emit`] makes of both the instructions of
//! every core, as the published assembler does.

mod arrange;
mod compute;
mod configure;
mod finding;
mod groups;
mod hazards;
mod layers;
mod limits;
mod mesh;
mod movement;
mod moves;
mod rings;
mod step;
mod tensors;
mod tokens;

use irc_diag::Diagnostic;
use irc_gemini_format::frontend::Frontend;
use irc_gemini_format::schedule::{Core, Dialect, Schedule};
use irc_npu::op::{CtEd, CtSt};
use irc_npu::{Core as CoreCode, Op, Origin, Program};

use finding::{Found, fault};
use layers::Layers;
use step::Step;
use tensors::View;

/// The programs of all cores of a schedule.
///
/// # Errors
/// Findings with paths in the schedule's file; in the frontend's where they begin with a layer.
pub fn emit(schedule: &Schedule, frontend: Option<&Frontend>) -> Result<Program, Vec<Diagnostic>> {
    let sound = limits::check(schedule, frontend);
    let made = sound.and_then(|()| match (schedule.dialect, frontend) {
        (Dialect::A, Some(frontend)) => emit_all(schedule, frontend),
        (Dialect::A, None) => Err(fault(
            "emit-no-frontend",
            "$",
            "the schedule needs the frontend file of its layers",
        )),
        (Dialect::B | Dialect::C, _) => mesh::emit(schedule),
    });
    made.map_err(|finding| vec![*finding])
}

fn emit_all(schedule: &Schedule, frontend: &Frontend) -> Found<Program> {
    let layers = Layers::new(frontend, schedule)?;
    let mut program = Program::default();
    for (place, core) in schedule.cores.iter().enumerate() {
        let view = View {
            schedule,
            core,
            path: schedule.core_path(place),
            layers: &layers,
            groups: groups::groups(schedule, core),
            first_tools: made_by_first_tools(core),
        };
        let id = finding::word(core.id, &view.path)?;
        let mut issued = configure::configure(steps(&view)?);
        let rules = if view.first_tools { tokens::Rules::First } else { tokens::Rules::Later };
        tokens::synchronize(&mut issued, rules, &view.path)?;
        let code = issued.into_iter().map(|(instruction, _)| instruction).collect();
        program.cores.push(CoreCode { id, code });
    }
    Ok(program)
}

/// The published files come from two states of the tools: the first names the list of weights in
/// WL0 differently, and its assembler differs in a few ways.
fn made_by_first_tools(core: &Core) -> bool {
    core.workloads.iter().any(|workload| workload.wl1_buffer.is_some())
}

/// The whole program of a core.
fn steps(view: &View<'_>) -> Found<Vec<Step>> {
    let last = view.core.workloads.len().checked_sub(1);
    let Some(last) = last else {
        return Err(fault("emit-empty", &view.path, "the core has no workload"));
    };
    let control = |op: Op, origin: &Origin, workload| Step {
        configs: vec![],
        op,
        origin: origin.clone(),
        workload,
    };
    let origin = movement::place(view, 0, -1)?;
    let mut all = vec![control(CtSt {}.into(), &origin, 0)];
    let regions = view.workload(0).regions();
    for op in rings::table(regions, &view.at(0))? {
        all.push(control(op, &origin, 0));
    }
    all.extend(arrange::arrange(view)?);
    all.push(control(CtEd {}.into(), &movement::place(view, last, -1)?, last));
    Ok(all)
}
