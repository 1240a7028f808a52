//! The programs of schedules.

use irc_gemini_format::frontend::Frontend;
use irc_gemini_format::schedule::Schedule;
use irc_npu::Program;
use irc_npu_emit::{FileDiagnostic, KnownLayers};

use crate::schedule::{in_tiled, untiled};
use crate::target::Target;

/// Compiles the programs of all cores of a schedule, in an order that takes few cycles with the links and the DRAM of the
/// NPU that it states. One of dialect A that irc has written needs no frontend file: its program is that of the same
/// schedule in dialect B.
///
/// # Errors
/// Diagnostics, each with the file it is about.
pub fn program(
    schedule: &Schedule,
    frontend: Option<&Frontend>,
    known: &KnownLayers,
) -> Result<Program, Vec<FileDiagnostic>> {
    if let (Some(schedule), None) = (untiled(schedule), frontend) {
        return program(&schedule, None, known).map_err(|found| {
            let of_tiled = |one: FileDiagnostic| FileDiagnostic {
                diagnostic: in_tiled(one.diagnostic),
                ..one
            };
            found.into_iter().map(of_tiled).collect()
        });
    }
    let target: Option<Target> = schedule.target.as_deref().and_then(|target| target.parse().ok());
    let is_of =
        |target: &Target| target.mesh.map(i64::try_from) == [schedule.xlen, schedule.ylen].map(Ok);
    let machine = target.filter(is_of).and_then(|target| target.machine().ok());
    let shared = machine.and_then(|machine| {
        let rates = [machine.link_bandwidth, machine.dram_bandwidth].map(|rate| rate as f64);
        irc_npu_network::mesh(schedule, rates[0], rates[1])
    });
    irc_npu_emit::emit_on(schedule, frontend, known, shared.as_ref())
}
