//! `irc run` of archives, and the runs for test vectors.
use super::link::{Linked, extract, link};
use crate::{
    console::Console,
    error::Error,
    models, output, threads,
    values::{self, Buffers, Given, Missing},
};
use bytes::Bytes;
use irc_cli::Run;
use irc_mlf::{DataType, Depth, Package, Type, params::Param};
use irc_runtime::{
    Context, ContextOptions, GpuProgram, Inline, Interface, Model, ModelError, OpenOptions, Pool,
    Port,
};
use irc_tensor::{Tensor, TensorType, seed_for};
use std::{path::Path, sync::Arc};

/// Checks an archive and runs it once.
pub fn run(
    console: &Console,
    arguments: &Run,
    bytes: &Bytes,
    given: Given,
) -> Result<Buffers, Error> {
    let loaded = Loaded::open(console, &open(console, &arguments.files[0], bytes)?)?;
    let loaded = loaded.on(threads::pool(arguments.threads)?);
    let missing = Missing::of(loaded.interface(), arguments.seed);
    let missing = missing.with_shapes(models::shapes(&arguments.graphs)?);
    let given = given.complete(console, loaded.interface(), &missing)?;
    let _step = console.step("running");
    loaded.run(&given).map_err(|error| error.in_file(Path::new(&arguments.files[0])))
}

/// The kernel for a GPU of an archive of irc, if it is one; its code is loaded.
pub fn kernel(
    console: &Console,
    name: &str,
    bytes: &Bytes,
) -> Result<Option<Arc<GpuProgram>>, Error> {
    let package = open(console, name, bytes)?;
    let ours = package.metadata.extension.as_ref();
    if ours.is_none_or(|ours| ours.library.is_none()) {
        return Ok(None);
    }
    Ok(Loaded::with_file(&package, None)?.model.kernel().cloned())
}

/// Runs an archive on its own test inputs, by a function if one is given, and compares with its expected outputs.
pub fn self_test(
    console: &Console,
    arguments: &Run,
    bytes: &Bytes,
    run: Option<&dyn Fn(Buffers) -> Result<Buffers, Error>>,
) -> Result<(), Error> {
    let name = &arguments.files[0];
    let package = open(console, name, bytes)?;
    let models = package.metadata.extension.iter().flat_map(|ours| ours.models.values());
    let vectors: Vec<_> = models.flat_map(|model| &model.vectors).collect();
    if vectors.is_empty() {
        let problem = Error::problem(format!("{name} contains no test vectors"));
        return Err(problem.help("irc compile --with-test-vectors puts them in"));
    }
    let loaded = Loaded::open(console, &package)?.on(threads::pool(arguments.threads)?);
    for vector in &vectors {
        let inputs = buffers(&package, &vector.inputs, str::to_owned)?;
        let found = match run {
            Some(run) => run(inputs)?,
            None => loaded.run(&inputs)?,
        };
        let outputs = &loaded.model.interface().outputs;
        let output_name = |number: &str| {
            let port = number.parse().ok().and_then(|number: usize| outputs.get(number));
            port.map_or_else(|| number.to_owned(), |port| port.name.clone())
        };
        let expected = buffers(&package, &vector.outputs, output_name)?;
        values::check_buffers(console, expected, &found, arguments.tolerance)?;
    }
    output::print(&format!("{} of {} test vectors agree\n", vectors.len(), vectors.len()))
}

/// The given inputs, random values for the others, and the archive's outputs for them.
pub fn test_vector(
    console: &Console,
    package: &Package,
    given: Given,
) -> Result<irc_mlf::TestVector, Error> {
    /// An arbitrary seed.
    const SEED: u64 = 1;
    let loaded = Loaded::open(console, package)?;
    let interface = loaded.model.interface();
    let mut inputs = given.read_for(interface)?;
    if interface.is_sized() {
        fill_largest(&mut inputs, package, SEED)?;
    }
    Missing::of(interface, Some(SEED)).fill(&mut inputs, &interface.inputs)?;
    let outputs = loaded.run(&inputs)?;
    let param = |name: String, tensor: &Tensor| {
        let dtype =
            DataType::of(tensor.dtype()).unwrap_or(DataType::scalar(irc_mlf::Code::Uint, 8));
        let ty = Type { dtype, shape: tensor.shape().to_vec() };
        Param { name, ty, data: Bytes::copy_from_slice(tensor.bytes()) }
    };
    let given = interface.inputs.iter().map(|port| (port.name.clone(), inputs.get(&port.name)));
    let given = given.filter_map(|(name, tensor)| Some(param(name, tensor?)));
    let results = interface.outputs.iter().enumerate();
    let results = results
        .filter_map(|(number, port)| Some(param(number.to_string(), outputs.get(&port.name)?)));
    Ok(irc_mlf::TestVector { inputs: given.collect(), outputs: results.collect() })
}

/// Adds random values for inputs with open sizes, at those of the graph.
fn fill_largest(inputs: &mut Buffers, package: &Package, seed: u64) -> Result<(), Error> {
    let graphs = package.parts.iter().filter_map(|part| part.graph.as_ref());
    for (name, entry) in graphs.flat_map(|graph| {
        graph.named_inputs().into_iter().map(|(name, entry)| (name, &graph.entries[entry].ty))
    }) {
        let Some(dtype) = entry.dtype.element().filter(|_| !inputs.contains_key(name)) else {
            continue;
        };
        let ty = TensorType::new(dtype, entry.shape.clone());
        let random = Tensor::random(ty, seed_for(seed, name));
        let random = random.map_err(|error| Error::problem(format!("input {name}: {error}")))?;
        inputs.insert(name.to_owned(), random);
    }
    Ok(())
}

/// Reads and checks an archive.
fn open(console: &Console, name: &str, bytes: &Bytes) -> Result<Package, Error> {
    let (package, report) = irc_mlf::read(name, bytes);
    let checked = package.as_ref().map(|package| irc_mlf::check(package, Depth::Content));
    let is_sound = checked.as_ref().is_some_and(|report| !report.has_errors());
    if let Some(package) = package.filter(|_| is_sound) {
        // Other diagnostics are left to irc check.
        return Ok(package);
    }
    for file in report.files().chain(checked.iter().flat_map(|report| report.files())) {
        console.diagnostics(&file.source, &file.found);
    }
    Err(Error::Reported)
}

/// An archive with its code loaded.
pub struct Loaded {
    model: Arc<Model>,
    /// The features of processors that its code requires.
    requires: Vec<String>,
    pool: Arc<dyn Pool>,
    // No other library may have its path while the model is loaded.
    _linked: Option<Linked>,
}

impl Loaded {
    fn open(console: &Console, package: &Package) -> Result<Self, Error> {
        let ours = package.metadata.extension.as_ref();
        let has_library = ours.is_some_and(|ours| ours.library.is_some());
        let linked = if has_library { None } else { Some(link(console, package)?) };
        Self::with_file(package, linked)
    }

    /// Loads the code of an archive from a file if there is one.
    fn with_file(package: &Package, linked: Option<Linked>) -> Result<Self, Error> {
        let library = linked.as_ref().map(Linked::path);
        let options = OpenOptions { library: library.as_deref(), ..OpenOptions::default() };
        let model = Arc::new(Model::from_package(package, options).map_err(model_error)?);
        let ours = package.metadata.extension.as_ref();
        let stated = ours.and_then(|ours| Some(ours.library.as_ref()?.requires.clone()));
        let requires = stated.unwrap_or_else(|| model.interface().requires.clone());
        Ok(Self { model, pool: Arc::new(Inline), requires, _linked: linked })
    }

    /// Reads and checks an archive, and loads its code, from a file that remains.
    pub fn open_checked(console: &Console, name: &str, bytes: &Bytes) -> Result<Self, Error> {
        let package = open(console, name, bytes)?;
        match extract(&package)? {
            Some(file) => Self::with_file(&package, Some(file)),
            None => Self::open(console, &package),
        }
    }

    /// The same, to run on the threads of a pool.
    pub fn on(self, pool: Arc<dyn Pool>) -> Self {
        Self { pool, ..self }
    }

    /// The model's inputs and outputs.
    pub fn interface(&self) -> &Interface {
        self.model.interface()
    }

    /// The features of processors that its code requires.
    pub fn requires(&self) -> &[String] {
        &self.requires
    }

    /// The model with its inputs, ready to run.
    pub fn context(&self, given: &Buffers) -> Result<Ready, Error> {
        let options = ContextOptions { pool: self.pool.clone(), ..ContextOptions::default() };
        let mut context = Context::new(&self.model, &options).map_err(model_error)?;
        for (name, tensor) in given {
            let input = self.model.input(name).map_err(model_error)?;
            let tensor = irc_runtime::bind(&self.interface().inputs[input], Some(tensor.clone()))?;
            context.set_input_shaped(input, tensor.shape(), tensor.bytes()).map_err(model_error)?;
        }
        Ok(Ready(context))
    }

    fn run(&self, given: &Buffers) -> Result<Buffers, Error> {
        let mut ready = self.context(given)?;
        ready.run()?;
        let output = |(number, port): (usize, &Port)| {
            let bytes = ready.0.output(number).map_err(model_error)?;
            let shape = ready.0.output_shape(number).map_err(model_error)?;
            let unknown =
                || Error::problem(format!("output '{}': {}", port.name, port.type_text()));
            let ty = TensorType::new(port.element_type().ok_or_else(unknown)?, shape);
            let tensor = Tensor::from_bytes(ty, bytes);
            let tensor =
                tensor.map_err(|error| Error::problem(format!("{}: {error}", port.name)))?;
            Ok((port.name.clone(), tensor))
        };
        self.interface().outputs.iter().enumerate().map(output).collect()
    }
}

/// A model with its inputs.
pub struct Ready(Context);

impl Ready {
    /// The number of bytes of an output of the last run.
    pub fn output_bytes(&self, output: usize) -> usize {
        self.0.output(output).map_or(0, <[u8]>::len)
    }

    /// Runs the model.
    pub fn run(&mut self) -> Result<(), Error> {
        self.0.run().map_err(model_error)
    }
}

/// Tensors of a member in the encoding of parameters.
fn buffers(
    package: &Package,
    member: &str,
    name: impl Fn(&str) -> String,
) -> Result<Buffers, Error> {
    let lost = || Error::problem(format!("{member}: changed after it was checked"));
    let bytes = package.archive.get(member).ok_or_else(lost)?;
    let params = irc_mlf::params::read(bytes, &mut irc_diag::Sink::new()).ok_or_else(lost)?;
    let tensor = |param: Param| {
        let dtype = param.ty.dtype.element().ok_or_else(lost)?;
        let tensor = Tensor::from_bytes(TensorType::new(dtype, param.ty.shape), &param.data);
        Ok((name(&param.name), tensor.map_err(|error| Error::problem(error.to_string()))?))
    };
    params.into_iter().map(tensor).collect()
}

fn model_error(error: ModelError) -> Error {
    match error {
        ModelError::Library(error) => error.into(),
        error => Error::problem(error.to_string()),
    }
}
