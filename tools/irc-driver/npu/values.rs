//! Values of quantised models on the NPU.
use super::{
    batches,
    of_model::{self, Pair},
    read_programs,
};
use crate::{
    console::Console,
    error::Error,
    input::Input,
    models,
    values::{self, Buffers, Given},
};
use irc::{
    CompileOptions, Model, NpuDivision, NpuStep, NpuValues, Session,
    npu::{Given as Constant, LayerNumbers, Operand, Place},
    quantise::Scope,
};
use irc_cli::Run;
use irc_diag::counted;
use irc_npu::Program;
use irc_npu_network::{Layout, Role, Tensors};
use irc_tensor::{DType, Tensor, TensorError, TensorType, seed_for};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

/// The model of a schedule or a program, and where the values of its inputs are from.
pub struct Inputs<'a> {
    /// Files with inputs by the names of the model.
    pub files: Vec<&'a PathBuf>,
    /// The seed of missing ones.
    pub seed: Option<u64>,
}

/// The outputs of each batch of a quantised model whose program runs on the simulator, for the inputs given of each.
/// `layout` is that of the program.
pub fn run(
    console: &Console,
    program: &Program,
    layout: Layout,
    model: &NpuValues,
    given: &[Tensors],
) -> Result<Vec<Buffers>, Error> {
    let nodes = model.layers.network.nodes().iter().zip(model.numbers.iter());
    let numbers: BTreeMap<&str, &LayerNumbers> =
        nodes.map(|(node, numbers)| (node.layer.name.as_str(), numbers)).collect();
    let layout = layout.with_types(model.boundary.types());
    let layout = layout.with_weights(&weight_shapes(model)).map_err(problem)?;
    let mut packed: BTreeMap<String, Vec<Tensor>> = BTreeMap::new();
    let count = given.len();
    for given in given {
        values::note_nan(console, given);
        let shape = |name: &str| {
            let [images, channels, rows, columns] = layout.activation(name)?.shape();
            // Several batches are stacked.
            Some([images / count, channels, rows, columns])
        };
        for (name, tensor) in model.boundary.pack(given, shape).map_err(Error::problem)? {
            packed.entry(name).or_default().push(tensor);
        }
    }
    let joined = |(name, all): (String, Vec<Tensor>)| {
        let tensor = batches::joined(&name, &all.iter().collect::<Vec<_>>())?;
        Ok((name, tensor))
    };
    let mut tensors = packed.into_iter().map(joined).collect::<Result<Tensors, Error>>()?;
    let values = model.boundary.weights(&given[0]).map_err(Error::problem)?;
    if let Some(layer) = values.keys().next().filter(|_| count > 1) {
        return Err(Error::problem(format!(
            "the weights of {layer} are a value of each batch; a program without --batch runs one batch"
        )));
    }
    for weights in &layout.weights {
        let found = numbers.get(weights.layer.as_str());
        let constants = found.and_then(|numbers| numbers.weights.as_ref());
        let missing = || Error::problem(format!("the model has no weights of {}", weights.layer));
        for (key, constant) in constants.ok_or_else(missing)?.tensors() {
            let tensor = match constant {
                Constant::Known(tensor) => tensor.clone(),
                Constant::Input(name) => given_weights(&given[0], name, key, &weights.ty)?,
                Constant::Value(_) => values.get(&weights.layer).cloned().ok_or_else(missing)?,
            };
            tensors.insert(format!("{}.{key}", weights.layer), tensor);
        }
    }
    let step = console.step("computing");
    let found = irc_npu_network::run(program, &layout, &tensors).map_err(problem)?;
    drop(step);
    let found = batches::divide(&found, &BTreeSet::new(), count)?;
    let unpacked =
        found.iter().zip(given).map(|(found, given)| model.boundary.unpack(found, given));
    unpacked.collect::<Result<_, _>>().map_err(Error::problem)
}

/// An input of the graph as the weights or constants of a layer.
fn given_weights(
    given: &Tensors,
    name: &str,
    key: &str,
    weights: &TensorType,
) -> Result<Tensor, Error> {
    let tensor = given.get(name);
    let tensor = tensor.ok_or_else(|| Error::problem(format!("'{name}' has no value")))?;
    let shape = if key == "weight" { weights.shape.clone() } else { vec![weights.shape[0]] };
    let ty = TensorType::new(tensor.dtype(), shape);
    made(Tensor::from_bytes(ty, tensor.bytes()))
}

/// The shapes `[K, C, R S]` of weights and the numbers of their groups, by layer.
fn weight_shapes(model: &NpuValues) -> BTreeMap<String, ([i64; 3], u32)> {
    let types: BTreeMap<String, TensorType> = model.boundary.graph_inputs().collect();
    let mut all = BTreeMap::new();
    for (node, numbers) in model.layers.network.nodes().iter().zip(model.numbers.iter()) {
        let Some(weights) = &numbers.weights else { continue };
        let shape = match &weights.weight {
            Constant::Known(tensor) => tensor.shape().to_vec(),
            Constant::Input(name) => types.get(name).map_or(vec![], |ty| ty.shape.clone()),
            Constant::Value(shape) => shape.to_vec(),
        };
        let extent = |axis: usize| shape.get(axis).copied().unwrap_or(1);
        let area = shape.iter().skip(2).product();
        let shape = [extent(0), extent(1), area];
        all.insert(node.layer.name.clone(), (shape, node.layer.groups() as u32));
    }
    all
}

/// The values of the inputs of a model, of these types.
pub fn given(types: &BTreeMap<String, TensorType>, inputs: &Inputs<'_>) -> Result<Tensors, Error> {
    let mut given = Tensors::new();
    for file in &inputs.files {
        let archive = Given::open(Some(file))?;
        let names = || types.keys().cloned().collect::<Vec<_>>().join(", ");
        let fits = |name: &str, found: &TensorType| match types.get(name) {
            None => {
                let message = format!("the model has no input '{name}'; it has {}", names());
                Err(Error::problem(message))
            }
            Some(ty) if ty.shape == found.shape && values::is_stored_as(ty.dtype, found.dtype) => {
                Ok(())
            }
            Some(ty) => {
                Err(Error::problem(format!("input '{name}': expected {ty}, found {found}")))
            }
        };
        given.extend(archive.read(fits)?);
    }
    for (name, ty) in types {
        match (given.get_mut(name), inputs.seed) {
            (Some(tensor), _) if tensor.dtype() != ty.dtype => {
                *tensor = made(Tensor::from_bytes(ty.clone(), tensor.bytes()))?;
            }
            (None, Some(seed)) => {
                let random = Tensor::random(ty.clone(), seed_for(seed, name));
                given.insert(name.clone(), made(random)?);
            }
            _ => {}
        }
    }
    let missing = types.keys().filter(|name| !given.contains_key(*name));
    let missing: Vec<String> = missing.map(|name| format!("'{name}'")).collect();
    if missing.is_empty() {
        return Ok(given);
    }
    let missing = missing.join(", ");
    let files: Vec<String> = inputs.files.iter().map(|file| file.display().to_string()).collect();
    let message = match &files[..] {
        [] => format!("no values for {missing}"),
        files => format!("no values for {missing} in {}", files.join(", ")),
    };
    let help = "specify them with --inputs, or generate random ones with --seed";
    Err(Error::problem(message).help(help))
}

/// `irc run PROGRAM --model MODEL`.
pub fn run_program(console: &Console, arguments: &Run, input: &Input) -> Result<Buffers, Error> {
    let Some(name) = &arguments.model else {
        return Err(Error::Usage(
            "an NPU program has no weights: give its model with --model MODEL".into(),
        ));
    };
    let programs = read_programs(console, &input.name)?;
    let file = Input::open(name, arguments.graphs.format.as_deref())?;
    let import = super::model::import(&arguments.graphs, &file)?;
    let inputs = Given::open(arguments.inputs.as_deref())?;
    let import = models::with_given_shapes(&file, import, &inputs)?;
    let session = Session::new();
    let quantising = models::Quantising::of(&arguments.compile.quantise, Scope::Everywhere);
    let calibration = quantising.text()?;
    for fingerprint in programs.iter().filter_map(|program| program.model.as_ref()) {
        expect_calibrated(&input.name, fingerprint.calibration.as_deref(), calibration.as_deref())?;
    }
    let model = models::open_quantised(console, &session, &file, &import, &quantising)?;
    let is_divided = programs.iter().any(|program| program.part.is_some());
    let division = match is_divided {
        true => model.npu_division()?,
        false => {
            let whole = NpuStep { place: Place::Npu, model };
            NpuDivision { steps: vec![whole], reasons: vec![] }
        }
    };
    let parts = division.parts();
    if parts.len() != programs.len() {
        let (own, of_model) = (programs.len(), parts.len());
        let message = format!(
            "{} has programs of {}, and the NPU computes {name} in {of_model}",
            input.name,
            counted(own, "part")
        );
        return Err(Error::problem(message).help(of_model::WRITES));
    }
    let pair = Pair { file: &input.name, model: name };
    for (program, part) in programs.iter().zip(&parts) {
        of_model::expect_program(pair, program, part)?;
    }
    let values = programs.iter().zip(&parts);
    let values = values.map(|(program, part)| of_model::values_of_program(pair, program, part));
    let values = values.collect::<Result<Vec<_>, _>>()?;
    let stated = programs.iter().zip(&values).map(|(program, values)| batches_of(program, values));
    let stated: BTreeSet<usize> = stated.collect();
    let [count] = stated.iter().copied().collect::<Vec<_>>()[..] else {
        let message = format!(
            "the programs of the parts in {} compute different numbers of images",
            input.name
        );
        return Err(Error::problem(message).help(of_model::WRITES));
    };
    let shared = shared(&values);
    let types = batches::stacked_types(input_types(&division, &values)?, &shared, count)?;
    let inputs = Inputs { files: arguments.inputs.iter().collect(), seed: arguments.seed };
    let mut known = batches::divide(&given(&types, &inputs)?, &shared, count)?;
    let imported = model.imported()?;
    let outputs: BTreeSet<&str> =
        imported.graph.outputs.iter().map(|(name, _)| name.as_str()).collect();
    let mut found = vec![Buffers::new(); count];
    let mut parts = programs.iter().zip(&values);
    for step in &division.steps {
        let made = match (step.place, &mut parts) {
            (Place::Npu, parts) => {
                let Some((program, values)) = parts.next() else { continue };
                let layout = layout(values, count).map_err(problem)?;
                run(console, program, layout, values, &known)?
            }
            (Place::Host, _) => host(console, &step.model, &known)?,
        };
        for (batch, made) in made.into_iter().enumerate() {
            for (name, tensor) in made {
                let of_model = outputs.contains(name.as_str());
                let all = if of_model { &mut found[batch] } else { &mut known[batch] };
                all.insert(name, tensor);
            }
        }
    }
    batches::stack(found)
}

/// The number of batches of a model that its program computes at once.
fn batches_of(program: &Program, values: &NpuValues) -> usize {
    let images = program.model.as_ref().map_or(values.layers.images, |model| model.images);
    (images / values.layers.images) as usize
}

/// The inputs that are weights.
pub fn shared<'v>(values: impl IntoIterator<Item = &'v Arc<NpuValues>>) -> BTreeSet<String> {
    let names = values.into_iter().flat_map(|values| values.boundary.parameters());
    names.map(str::to_owned).collect()
}

/// The outputs of each batch of a part that the host computes.
fn host(console: &Console, part: &Model<'_>, known: &[Tensors]) -> Result<Vec<Buffers>, Error> {
    let step = console.step("compiling");
    let program = part.compile(CompileOptions::default())?;
    drop(step);
    let _step = console.step("running");
    let run = |known: &Tensors| {
        let given = program.inputs().filter_map(|port| known.get_key_value(&port.name));
        let given: Vec<_> = given.map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
        Ok(program.run(given)?)
    };
    known.iter().map(run).collect()
}

/// The inputs of the model that its steps read. `values` are those of the parts on the NPU.
fn input_types(
    division: &NpuDivision<'_>,
    values: &[Arc<NpuValues>],
) -> Result<BTreeMap<String, TensorType>, Error> {
    let mut types: BTreeMap<String, TensorType> = BTreeMap::new();
    let mut made: BTreeSet<String> = BTreeSet::new();
    let mut values = values.iter();
    for step in &division.steps {
        let imported = step.model.imported()?;
        let graph = &imported.graph;
        let read: Vec<(String, TensorType)> = match step.place {
            Place::Npu => {
                values.next().into_iter().flat_map(|own| own.boundary.graph_inputs()).collect()
            }
            Place::Host => {
                let inputs = graph.inputs.iter();
                inputs
                    .filter_map(|(name, value)| Some((name.clone(), graph.ty(*value).known()?)))
                    .collect()
            }
        };
        types.extend(read.into_iter().filter(|(name, _)| !made.contains(name)));
        made.extend(graph.outputs.iter().map(|(name, _)| name.clone()));
    }
    Ok(types)
}

/// Rejects a program of a model that was quantised in another way, as both state it.
fn expect_calibrated(file: &str, found: Option<&str>, own: Option<&str>) -> Result<(), Error> {
    let words = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let stated = |text: &str| match &words(text)[..] {
        [method, scales, results, ..] => {
            format!("--calibrate-method {method} --quantize {scales} --quantize-results {results}")
        }
        _ => text.to_owned(),
    };
    let (found, own) = match (found, own) {
        (found, own) if found == own => return Ok(()),
        (Some(found), None) => {
            let message =
                format!("{file} is of a model quantised by samples, and --calibrate is missing");
            return Err(Error::problem(message).help(format!(
                "give the samples of irc compile: --calibrate X.npz {}",
                stated(found)
            )));
        }
        (None, Some(_)) => {
            let message = format!("{file} is of a model as it is, without --calibrate");
            return Err(Error::problem(message).help("leave out --calibrate"));
        }
        (Some(found), Some(own)) => (words(found), words(own)),
        (None, None) => return Ok(()),
    };
    let flags = ["--calibrate-method", "--quantize", "--quantize-results", "samples with the hash"];
    let pairs = flags.iter().zip(found.iter().zip(&own));
    let other: Vec<String> = pairs
        .filter(|(_, (found, own))| found != own)
        .map(|(flag, (found, own))| format!("{flag} {found}, not {own}"))
        .collect();
    let message = format!("{file} was compiled with {}", other.join("; "));
    Err(Error::problem(message).help("quantise the model as for irc compile"))
}

/// The layout of the programs of so many batches of a model.
fn layout(model: &NpuValues, batches: usize) -> Result<Layout, irc_npu_network::Error> {
    let images = model.layers.images as i64 * batches as i64;
    let mut activations: BTreeMap<String, (TensorType, Role)> = BTreeMap::new();
    let parts = model.layers.results.iter().flat_map(|stored| &stored.parts);
    let outputs: BTreeSet<usize> = parts.filter_map(Operand::layer).collect();
    let nodes = model.layers.network.nodes().iter().zip(&model.layers.origins);
    for (index, (node, origin)) in nodes.enumerate() {
        let shape = |channels: u64, rows: u64, columns: u64| {
            TensorType::new(DType::I8, [images, channels as i64, rows as i64, columns as i64])
        };
        let made = node.layer.output;
        let role = if outputs.contains(&index) { Role::Output } else { Role::Unused };
        let ty = shape(made.channels, made.rows, made.columns);
        activations.insert(node.layer.name.clone(), (ty, role));
        for operand in &origin.operands {
            let Operand::Value { name, channels, .. } = operand else { continue };
            // Readers may leave out different rows and columns at the end.
            let [rows, columns] = model.layers.rows_and_columns_read(index);
            let mut ty = shape(channels.end, rows, columns);
            if let Some((known, _)) = activations.get(name) {
                let pairs = ty.shape.iter_mut().zip(&known.shape);
                pairs.for_each(|(own, known)| *own = (*own).max(*known));
            }
            activations.insert(name.clone(), (ty, Role::Input));
        }
    }
    Layout::of_tensors(&activations, &weight_shapes(model))
}

fn made(tensor: Result<Tensor, TensorError>) -> Result<Tensor, Error> {
    tensor.map_err(|error| Error::problem(error.to_string()))
}

fn problem(error: irc_npu_network::Error) -> Error {
    Error::problem(error.to_string())
}
