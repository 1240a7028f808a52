//! Runs of kernels for GPUs without a GPU, and checks of PTX.
use irc_diag::{Diagnostic, Sink, Source};
use irc_ptx::{Argument, Checks, Explain, Launch, Memory, Module, Program, Statistics};
use irc_runtime::gpu::{record::Event, unallocated};
use irc_runtime::{Contents, GpuKernel, GpuProgram};
use irc_tensor::Tensor;
use std::{collections::BTreeMap, ops::Range, sync::Arc};

/// The number of blocks of an emulated launch that may have any number.
const BLOCKS: u32 = 2;

/// What a GPU of a compute capability has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    capability: u32,
    /// Processors of the largest device.
    processors: u64,
    /// Bytes of shared memory that a block may have, and that a processor has.
    block_shared: u64,
    processor_shared: u64,
    /// Threads that a processor runs at once, and blocks.
    processor_threads: u64,
    processor_blocks: u64,
}

/// Bytes of shared memory of a block that the driver needs for itself.
const RESERVED_SHARED: u64 = 1024;

/// Bytes of shared memory of a block before that which a launch provides: the places of the record, of the events and of
/// parameters, and alignment.
fn static_shared(kernel: &GpuKernel) -> u64 {
    const ALIGNMENT: u64 = 1024;
    (8 * (kernel.parameters.len() as u64 + 8)).next_multiple_of(ALIGNMENT)
}

/// By compute capability; each row also holds for later ones before the next.
const LIMITS: [Limits; 7] = [
    Limits::new(70, 80, [96, 96], [2048, 32]),
    Limits::new(75, 72, [64, 64], [1024, 16]),
    Limits::new(80, 108, [163, 164], [2048, 32]),
    Limits::new(86, 84, [99, 100], [1536, 16]),
    Limits::new(87, 16, [163, 164], [1536, 16]),
    Limits::new(89, 142, [99, 100], [1536, 24]),
    Limits::new(90, 132, [227, 228], [2048, 32]),
];

impl Limits {
    const fn new(
        capability: u32,
        processors: u64,
        [block, processor]: [u64; 2],
        [processor_threads, processor_blocks]: [u64; 2],
    ) -> Self {
        let (block_shared, processor_shared) = (block << 10, processor << 10);
        Self {
            capability,
            processors,
            block_shared,
            processor_shared,
            processor_threads,
            processor_blocks,
        }
    }

    /// Those of a compute capability; of the oldest one that is known if it is older.
    pub fn of_capability(capability: u32) -> Self {
        let found = LIMITS.into_iter().rfind(|limits| limits.capability <= capability);
        Self { capability, ..found.unwrap_or(LIMITS[0]) }
    }

    /// Those of the GPU that PTX is for; of the newest one if it is unknown.
    pub fn of(ptx: &str) -> Self {
        let target = ptx.lines().find_map(|line| line.strip_prefix(".target sm_"));
        let target = target.unwrap_or_default();
        let end = target.find(|it: char| !it.is_ascii_digit()).unwrap_or(target.len());
        let newest = LIMITS[LIMITS.len() - 1];
        target[..end].parse().map_or(newest, Self::of_capability)
    }

    /// The most bytes of shared memory of a block that a launch may provide, if all blocks of the kernel run at the same
    /// time.
    pub fn dynamic_shared(&self, kernel: &GpuKernel) -> u64 {
        let blocks = u64::from(kernel.ranks.iter().max().copied().or(kernel.blocks).unwrap_or(1));
        let each = blocks.div_ceil(self.processors).max(1);
        let most = (self.processor_shared / each).saturating_sub(RESERVED_SHARED);
        most.min(self.block_shared).saturating_sub(static_shared(kernel))
    }

    /// Checks that all blocks of a kernel run at the same time.
    ///
    /// # Errors
    /// What it needs, and what there is.
    pub fn expect(&self, kernel: &GpuKernel) -> Result<(), String> {
        self.expect_shared(&kernel.entry, kernel.shared_bytes + static_shared(kernel))?;
        self.expect_blocks(kernel)
    }

    /// Checks the shared memory of a block, static and dynamic.
    fn expect_shared(&self, name: &str, shared: u64) -> Result<(), String> {
        let Self { capability, block_shared, .. } = self;
        match shared > *block_shared {
            true => Err(format!(
                "the kernel '{name}' needs {shared} bytes of shared memory, and a block of sm_{capability} has \
                 {block_shared}"
            )),
            false => Ok(()),
        }
    }

    /// Checks the number of blocks, if the kernel has one; of several ranks, each may have a GPU of its own.
    fn expect_blocks(&self, kernel: &GpuKernel) -> Result<(), String> {
        let Self { capability, processors, .. } = *self;
        let (threads, shared) =
            (u64::from(kernel.threads), kernel.shared_bytes + static_shared(kernel));
        let each = (self.processor_threads / threads)
            .min(self.processor_blocks)
            .min(self.processor_shared / (shared + RESERVED_SHARED));
        match kernel.ranks.iter().max().copied().or(kernel.blocks) {
            Some(blocks) if u64::from(blocks) > processors * each => Err(format!(
                "the kernel needs {blocks} blocks that run at once, and sm_{capability} runs at most {}: {each} of \
                 {threads} threads and {shared} bytes of shared memory on each of {processors} processors",
                processors * each
            )),
            _ => Ok(()),
        }
    }
}

/// All diagnostics of PTX: syntax, instructions that the emulator does not know, limits of the architecture, and if irc has
/// written it, its description and its constants.
pub fn check(source: &Source) -> Vec<Diagnostic> {
    let text = source.text();
    let mut sink = Sink::new();
    let module = Module::parse(source, &mut sink);
    let kernels: Vec<_> = module.iter().flat_map(Module::kernels).collect();
    let programs: Vec<_> = kernels
        .iter()
        .filter_map(|name| Some((*name, module.as_ref()?.compile(name, &mut sink)?)))
        .collect();
    let mut found = sink.into_diagnostics();
    let first = first_line(text);
    let limits = Limits::of(text);
    let (mut dynamic, mut blocks) = (0, None);
    if text.starts_with(GpuKernel::PREFIX) {
        let wrong = |message: String| wrong_description(text, message);
        match program_of(source) {
            Err(wrong) => found.push(wrong),
            Ok(GpuProgram { kernel, .. }) => {
                dynamic = kernel.shared_bytes;
                blocks = limits.expect_blocks(&kernel).err();
                let name = &kernel.entry;
                match programs.iter().find(|(entry, _)| *entry == name) {
                    Some((_, program)) => {
                        found.extend(expect_described(&kernel, name, program).err().map(wrong));
                    }
                    None if kernels.contains(&name.as_str()) => {}
                    None => found.push(wrong(format!("the PTX has no kernel '{name}'"))),
                }
            }
        }
    }
    let target = text.find("\n.target sm_").map(|at| at + 1);
    let place = target.map_or(first, |at| at..at + text[at..].lines().next().map_or(0, str::len));
    let shared = programs.iter().filter_map(|(name, program)| {
        limits.expect_shared(name, program.shared_bytes() + dynamic).err()
    });
    let errors = shared.chain(blocks);
    found.extend(errors.map(|error| Diagnostic::error("gpu-limit", error).at(place.clone(), "")));
    found
}

/// Checks that an entry point has the parameters and the threads of a description.
fn expect_described(kernel: &GpuKernel, name: &str, program: &Program) -> Result<(), String> {
    let (own, expected) = (program.parameters(), kernel.parameters.len());
    if own.len() != expected || own.iter().any(|own| own.size != 8) {
        return Err(format!(
            "the kernel '{name}' has {} parameters, and its description {expected} pointers",
            own.len()
        ));
    }
    let threads = u64::from(kernel.threads);
    match program.max_threads() {
        Some(own) if own != threads => Err(format!(
            "the kernel '{name}' is for {own} threads (.maxntid), and its description says {threads}"
        )),
        _ => Ok(()),
    }
}

/// The kernel of PTX that irc has written.
///
/// # Errors
/// At the first line, if it does not describe the kernel, or the file is incomplete.
pub fn program_of(source: &Source) -> Result<GpuProgram, Diagnostic> {
    let text = source.text();
    GpuProgram::from_ptx(text).map_err(|message| wrong_description(text, message))
}

fn wrong_description(text: &str, message: String) -> Diagnostic {
    Diagnostic::error("gpu-description", message).at(first_line(text), "")
}

fn first_line(text: &str) -> Range<usize> {
    0..text.lines().next().unwrap_or_default().len()
}

/// How a kernel is emulated.
#[derive(Clone, Copy, Default)]
pub struct Options<'o> {
    /// Whether accesses that nothing orders are errors.
    pub races: bool,
    /// The number of instructions after which a block that waits for others traps, as it does on a GPU after a time;
    /// 0 if only the emulator finds that nothing can run.
    pub patience: u64,
    /// The number of instructions of all threads together after which the kernel is stopped; `None` for that of
    /// [`Launch`].
    pub max_instructions: Option<u64>,
    /// Is called now and then with the number of instructions so far.
    pub observer: Option<&'o dyn Fn(u64)>,
}

impl Options<'_> {
    /// With every check.
    pub const CHECKED: Self =
        Self { races: true, patience: 0, max_instructions: None, observer: None };
}

/// What an emulated kernel has computed.
#[derive(Debug)]
pub struct Emulated {
    /// The outputs by name.
    pub outputs: BTreeMap<String, Tensor>,
    /// When tasks and kernels began and ended, counted in instructions of all threads, if the kernel records it.
    pub events: Vec<Event>,
    /// Warnings at instructions of the PTX.
    pub warnings: Vec<Diagnostic>,
    /// Numbers of instructions and accesses.
    pub statistics: Statistics,
}

/// Why a kernel could not be emulated.
#[derive(Debug)]
pub enum EmulationError {
    /// Errors at instructions of the PTX.
    Diagnostics(Vec<Diagnostic>),
    /// An error without a place.
    Message(String),
}

/// Runs a kernel of PTX of [`Model::emit`](crate::Model::emit) or [`PlanFile::ptx`](crate::session::PlanFile::ptx) on an
/// emulated GPU. Inputs that are not given are zero; results do not depend on the number of blocks.
///
/// # Errors
/// PTX that irc has not written, inputs of other types, and what the emulator finds: faults, and races if requested.
pub fn emulate(
    source: &Source,
    given: &BTreeMap<String, Tensor>,
    options: &Options<'_>,
) -> Result<Emulated, EmulationError> {
    let program = program_of(source).map_err(|wrong| EmulationError::Diagnostics(vec![wrong]))?;
    emulate_program(&program, source, given, options)
}

/// As [`emulate`], of a kernel whose text is that of the source.
///
/// # Errors
/// As [`emulate`].
pub fn emulate_program(
    program: &GpuProgram,
    source: &Source,
    given: &BTreeMap<String, Tensor>,
    options: &Options<'_>,
) -> Result<Emulated, EmulationError> {
    let kernel = &program.kernel;
    let mut sink = Sink::new();
    let limits = Limits::of(source.text());
    limits.expect(kernel).map_err(EmulationError::Message)?;
    let codes: Option<Vec<Program>> = Module::parse(source, &mut sink).and_then(|module| {
        kernel.entries().iter().map(|entry| module.compile(entry, &mut sink)).collect()
    });
    let Some(codes) = codes else {
        return Err(EmulationError::Diagnostics(sink.into_diagnostics()));
    };
    for (entry, code) in kernel.entries().iter().zip(&codes) {
        expect_described(kernel, entry, code).map_err(|message| {
            EmulationError::Diagnostics(vec![wrong_description(source.text(), message)])
        })?;
    }
    let mut memory = Memory::new();
    let blocks = kernel.blocks.unwrap_or(BLOCKS);
    let mut buffers = vec![];
    let (mut record, mut trace) = (None, None);
    for parameter in &kernel.parameters {
        let contents = program.contents(*parameter, given, blocks, options.patience);
        let (name, contents) = contents.map_err(EmulationError::Message)?;
        let unwritten = |size: usize| EmulationError::Message(unallocated(&name, size));
        buffers.push(match contents {
            Contents::Bytes(bytes) => memory.add(name, bytes),
            Contents::Constants(bytes) => memory.add_constant(name, bytes),
            Contents::Unwritten(size) => {
                memory.add_unwritten(name.clone(), size).map_err(|_| unwritten(size))?
            }
            Contents::Record(bytes) => *record.insert(memory.add(name, bytes)),
            Contents::Trace(bytes) => *trace.insert(memory.add(name, bytes)),
        });
    }
    let explain = record.map(|record| {
        let kernel = Arc::new(kernel.clone());
        Explain(Arc::new(move |memory: &Memory, block, warp| {
            kernel.place(memory.bytes(record), block as usize, warp as usize)
        }))
    });
    let default = Launch::default();
    let most = options.max_instructions.unwrap_or(default.max_instructions);
    let mut launch = Launch {
        grid: [blocks, 1, 1],
        block: [kernel.threads, 1, 1],
        shared_bytes: kernel.shared_bytes,
        arguments: buffers.iter().map(|buffer| Argument::Buffer(*buffer)).collect(),
        checks: Checks { races: options.races, uninitialised: true },
        resident: Some(blocks as usize),
        explain,
        ..default
    };
    let mut warnings = vec![];
    let mut statistics = Statistics::default();
    for code in &codes {
        let before = statistics.thread_instructions();
        launch.max_instructions = most.saturating_sub(before);
        let observer =
            |count| options.observer.iter().for_each(|observer| observer(before + count));
        let mut report = launch.run_observed(code, &mut memory, &observer);
        launch.clock = report.clock;
        if !report.is_clean() {
            if let (false, Some(record), Some(last)) =
                (report.completed, record, report.diagnostics.last_mut())
            {
                last.notes.extend(kernel.places(memory.bytes(record)));
            }
            return Err(EmulationError::Diagnostics(report.diagnostics));
        }
        statistics.add(&report.statistics);
        warnings.extend(report.diagnostics);
    }
    let mut outputs = BTreeMap::new();
    for (parameter, buffer) in kernel.parameters.iter().zip(buffers) {
        let Some(output) = parameter.output else { continue };
        let port = &kernel.interface.outputs[output];
        let ty = GpuKernel::type_of(port).map_err(EmulationError::Message)?;
        let tensor = Tensor::from_bytes(ty, memory.bytes(buffer));
        let tensor = tensor.map_err(|error| EmulationError::Message(error.to_string()))?;
        outputs.insert(port.name.clone(), tensor);
    }
    let events = trace.map_or(vec![], |trace| kernel.events(memory.bytes(trace), blocks));
    Ok(Emulated { outputs, events, warnings, statistics })
}
