//! `irc bench --backend emulate`: what a kernel for a GPU does, in instructions instead of time.
use super::{given, missing};
use crate::{
    console::Console,
    error::Error,
    gpu::{self, Engine, Program},
    input::{Content, Input},
    models, output,
    world::Plans,
};
use irc::{
    CompileOptions, ImportOptions, Session,
    codegen::{GpuForm, Output},
};
use irc_cli::Bench;
use serde_json::{Map, Value, json};

/// The PTX of a file or of a plan.
pub fn ptx_of(console: &Console, arguments: &Bench, input: &Input) -> Result<Vec<u8>, Error> {
    match input.content {
        Content::Plan => {
            let plans = Plans::open(console, &[(input.source(), input.content)], false)?;
            gpu::ptx_of_plans(&plans, arguments.arch.as_deref(), GpuForm::default())
        }
        _ => Ok(input.bytes.to_vec()),
    }
}

/// The kernel of a file, or that a model is compiled to.
fn program(console: &Console, arguments: &Bench, input: &Input) -> Result<Program, Error> {
    if matches!(input.content, Content::Library | Content::Archive) {
        let none = || {
            Error::Usage(format!(
                "--backend {} has no effect on {}: it is already compiled, for processors",
                arguments.backend, arguments.file
            ))
        };
        return Program::of_compiled(console, input)?.ok_or_else(none);
    }
    if input.content == Content::Ptx {
        return Program::of_ptx(&input.source());
    }
    let ptx = match input.content {
        Content::Plan => ptx_of(console, arguments, input)?,
        _ => {
            let options = ImportOptions {
                accumulate: models::accumulate(arguments.machine.ark_accumulate),
                ..models::options(&arguments.graphs)?
            };
            let target = Engine::Emulator.target(arguments.arch.as_deref())?;
            let session = Session::new();
            let model = models::open(console, &session, input, &options)?;
            let _step = console.step("compiling");
            model.emit(Output::Ptx, CompileOptions::from(target))?
        }
    };
    Program::of_ptx(&irc_diag::Source::from_bytes("the kernel of the model", &ptx))
}

/// Emulates a kernel, and prints numbers of instructions and accesses.
pub fn emulate(console: &Console, arguments: &Bench, input: &Input) -> Result<(), Error> {
    if arguments.profile {
        return Err(Error::Usage(
            "--profile measures time, and an emulated kernel has none".into(),
        ));
    }
    let program = program(console, arguments, input)?;
    let interface = &program.kernel().interface;
    let missing = missing(arguments, interface)?;
    let inputs = given(arguments)?.complete(console, interface, &missing)?;
    let found = program.emulate(console, false, None, &inputs)?.statistics;
    let classes: Vec<_> = found.classes().filter(|(_, count)| *count > 0).collect();
    if arguments.json {
        let classes: Map<String, Value> =
            classes.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
        let record = json!({
            "thread_instructions": found.thread_instructions(),
            "warp_instructions": found.warp_instructions,
            "classes": classes,
            "global_bytes_read": found.global_read,
            "global_bytes_written": found.global_written,
            "sectors_per_access": found.sectors_per_access(),
            "shared_accesses": found.shared_accesses,
            "bank_conflict_cycles": found.bank_conflicts,
            "barriers": found.barriers,
        });
        return output::print(&format!("{record:#}\n"));
    }
    let mut text = format!(
        "{} instructions of threads, {} of warps, on an emulated GPU: their time is not known\n",
        found.thread_instructions(),
        found.warp_instructions
    );
    for (name, count) in classes {
        text += &format!("{count:>14}  {name}\n");
    }
    text += &format!(
        "global memory: {} bytes read, {} written, {:.2} sectors of 32 bytes an access\n",
        found.global_read,
        found.global_written,
        found.sectors_per_access()
    );
    text += &format!(
        "shared memory: {} accesses, {} cycles of bank conflicts; {} barriers of blocks\n",
        found.shared_accesses, found.bank_conflicts, found.barriers
    );
    output::print(&text)
}
