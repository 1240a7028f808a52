//! `irc simulate --outputs`: computes the outputs of a network.
use super::{Assembled, batches, values::Inputs};
use crate::{console::Console, error::Error, output::Stream, values};
use irc_cli::Simulate;
use irc_diag::counted;
use irc_npu_network::{Layout, expect, fill, ports, run};
use irc_tensor::TensorType;
use std::path::Path;

/// Runs the program on tensors, and stages the outputs of the network.
pub fn compute(
    console: &Console,
    arguments: &Simulate,
    outputs: &Path,
    assembled: &Assembled,
) -> Result<Stream, Error> {
    let layout = Layout::new(&assembled.schedule, assembled.frontend.as_ref()).map_err(problem)?;
    let archives = [&arguments.inputs, &arguments.weights].into_iter().flatten();
    if let Some(model) = &assembled.model {
        let inputs = Inputs { files: archives.collect(), seed: arguments.seed };
        let [own, all] = [model.layers.images, assembled.schedule.images() as u64];
        if !all.is_multiple_of(own) {
            return Err(Error::problem(format!(
                "the schedule computes {} at once, and the model has {own}",
                counted(all, "image")
            )));
        }
        let (count, shared) = ((all / own) as usize, super::values::shared([model]));
        let types = model.boundary.graph_inputs().collect();
        let types = batches::stacked_types(types, &shared, count)?;
        let given = super::values::given(&types, &inputs)?;
        let given = batches::divide(&given, &shared, count)?;
        let found = super::values::run(console, &assembled.program, layout, model, &given)?;
        let found = batches::stack(found)?;
        return values::stage(outputs, &found);
    }
    let ports = ports(&layout);
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
    values::stage(outputs, &found)
}

fn problem(error: irc_npu_network::Error) -> Error {
    let is_missing = matches!(error, irc_npu_network::Error::Missing(_));
    let problem = Error::problem(error.to_string());
    match is_missing {
        true => problem
            .help("specify them with --inputs and --weights, or generate random ones with --seed"),
        false => problem,
    }
}
