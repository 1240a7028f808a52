//! `irc run` on plans: those in the files, or those of the models in the files.
use crate::{
    console::Console,
    error::Error,
    input::Content,
    output, target as processor,
    transport::Transport,
    values::{Buffers, Given},
    world::{Preparation, World},
};
use irc_cli::{REFERENCE, Run};
use irc_diag::Source;
use irc_executor::Options;
use std::collections::BTreeSet;

/// Runs the ranks of a world that are in this process. Returns their outputs, and the names of all their
/// buffers.
pub fn run(
    transport: &Transport,
    console: &Console,
    arguments: &Run,
    files: &[(Source, Content)],
    given: Given,
) -> Result<(Buffers, BTreeSet<String>), Error> {
    if arguments.engine() == REFERENCE {
        return Err(Error::Usage("--backend reference evaluates models of one rank".into()));
    }
    let race_check = arguments.race_check;
    if race_check && arguments.threads > 1 {
        console.note("race detection uses one thread");
    }
    let target_cpu = arguments.compile.machine.target_cpu.as_deref();
    let preparation = Preparation {
        target: processor::with_backend(
            processor::named(target_cpu.unwrap_or("native"))?,
            processor::backend(arguments.engine()),
        )?,
        race_check,
        rank: transport.rank(),
    };
    let world = World::open(console, files, &preparation)?;
    let memories = world.memories(world.read(given)?, arguments.seed)?;
    let trace = arguments.trace.as_deref().map(|path| transport.own(path));
    let timeline = trace.as_deref().map(output::Stream::open).transpose()?;
    let trace = timeline.as_ref().map(output::Stream::writer).transpose()?;
    let step = console.step("running");
    let options = Options { threads: arguments.threads as usize, race_check, trace };
    let memories = transport.run(&world, memories, options);
    drop(step);
    // A stopped run has a timeline too, unless it stopped before the first event.
    let timeline = timeline.filter(|timeline| memories.is_ok() || timeline.is_begun());
    let written = timeline.map_or(Ok(()), output::Stream::finish);
    let memories = memories?;
    written?;
    world.expect_no_suspicion(console)?;
    Ok((world.outputs(memories), world.buffers()))
}
