//! `irc simulate --outputs`: computes the outputs of a network.
use super::Assembled;
use crate::{console::Console, stop::Stop, values};
use irc_cli::Simulate;
use irc_npu_network::{Error, Layout, expect, fill, ports, run};
use irc_tensor::TensorType;
use std::path::Path;

/// Runs the program on tensors, and writes the outputs of the network.
pub fn compute(
    console: &Console,
    arguments: &Simulate,
    outputs: &Path,
    assembled: &Assembled,
) -> Result<(), Stop> {
    let layout = Layout::new(&assembled.schedule, assembled.frontend.as_ref()).map_err(problem)?;
    let ports = ports(&layout);
    let archives = [&arguments.inputs, &arguments.weights].into_iter().flatten();
    let mut given = values::Buffers::new();
    for archive in archives {
        let archive = values::Given::open(Some(archive))?;
        let fits = |name: &str, ty: &TensorType| expect(&layout, &ports, name, ty).map_err(problem);
        given.extend(archive.read(fits)?);
    }
    if let Some(seed) = arguments.seed {
        fill(&layout, &mut given, seed).map_err(problem)?;
    }
    let step = console.step("computing");
    let mut found = run(&assembled.program, &layout, &given).map_err(problem)?;
    drop(step);
    found.retain(|name, _| layout.is_output(name));
    values::write(outputs, &found)
}

fn problem(error: Error) -> Stop {
    let is_missing = matches!(error, Error::Missing(_));
    let problem = Stop::problem(error.to_string());
    match is_missing {
        true => problem.help("give them with --inputs and --weights, or draw them with --seed"),
        false => problem,
    }
}
