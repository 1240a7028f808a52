//! Runs kernels for GPUs without one.
use irc_diag::{Diagnostic, Sink, Source};
use irc_ptx::{Argument, Checks, Explain, Launch, Memory, Module, Program};
use irc_runtime::{Contents, GpuKernel, gpu::record::Event};
use irc_tensor::Tensor;
use std::{collections::BTreeMap, sync::Arc};

/// The number of blocks of an emulated launch that may have any number.
const BLOCKS: u32 = 2;

/// How a kernel is emulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether accesses that nothing orders are errors.
    pub races: bool,
    /// The number of instructions after which a block that waits for others traps, as it does on a GPU after a time;
    /// 0 if only the emulator finds that nothing can run.
    pub patience: u64,
}

impl Options {
    /// With every check.
    pub const CHECKED: Self = Self { races: true, patience: 0 };
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
}

/// Why a kernel could not be emulated.
#[derive(Debug)]
pub enum EmulationError {
    /// Errors at instructions of the PTX.
    Diagnostics(Vec<Diagnostic>),
    /// An error without a place.
    Message(String),
}

/// What a GPU of a compute capability has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    capability: u32,
    /// Processors of the largest device.
    processors: u64,
    /// Bytes of shared memory that a block may have, and that a processor has.
    block_shared: u64,
    processor_shared: u64,
}

/// Bytes of shared memory of a block that the driver needs for itself.
const RESERVED_SHARED: u64 = 1024;

/// Bytes of shared memory of a block before that which a launch provides: the places of the record and of the events, and
/// alignment.
const STATIC_SHARED: u64 = 1024;

/// Threads that a processor runs at once, and blocks.
const PROCESSOR_THREADS: u64 = 2048;
const PROCESSOR_BLOCKS: u64 = 32;

/// By compute capability.
const LIMITS: [Limits; 2] = [
    Limits {
        capability: 80,
        processors: 108,
        block_shared: 163 << 10,
        processor_shared: 164 << 10,
    },
    Limits {
        capability: 90,
        processors: 132,
        block_shared: 227 << 10,
        processor_shared: 228 << 10,
    },
];

impl Limits {
    /// Those of the GPU that PTX is for; of the newest one if it is unknown.
    pub fn of(ptx: &str) -> Self {
        let target = ptx.lines().find_map(|line| line.strip_prefix(".target sm_"));
        let digits = target.unwrap_or_default().trim_end_matches(|it: char| !it.is_ascii_digit());
        let capability = digits.parse().unwrap_or(u32::MAX);
        let newest = LIMITS[LIMITS.len() - 1];
        LIMITS.into_iter().find(|limits| capability <= limits.capability).unwrap_or(newest)
    }

    /// Checks that all blocks of a kernel run at the same time.
    ///
    /// # Errors
    /// What it needs, and what there is.
    pub fn expect(&self, kernel: &GpuKernel) -> Result<(), String> {
        let Self { capability, processors, block_shared, processor_shared } = *self;
        let shared = kernel.shared_bytes + STATIC_SHARED;
        if shared > block_shared {
            return Err(format!(
                "the kernel needs {shared} bytes of shared memory, and a block of sm_{capability} has {block_shared}"
            ));
        }
        let threads = u64::from(kernel.threads);
        let each = (PROCESSOR_THREADS / threads)
            .min(PROCESSOR_BLOCKS)
            .min(processor_shared / (shared + RESERVED_SHARED));
        match kernel.blocks {
            Some(blocks) if u64::from(blocks) > processors * each => Err(format!(
                "the kernel needs {blocks} blocks that run at once, and sm_{capability} runs at most {}: {each} of \
                 {threads} threads and {shared} bytes of shared memory on each of {processors} processors",
                processors * each
            )),
            _ => Ok(()),
        }
    }
}

/// Runs a kernel of [`Model::emit`](crate::Model::emit) or [`PlanFile::ptx`](crate::session::PlanFile::ptx) on an
/// emulated GPU. Inputs that are not given are zero; results do not depend on the number of blocks.
///
/// # Errors
/// PTX that irc has not written, inputs of other types, and what the emulator finds: faults, and races if requested.
pub fn emulate(
    source: &Source,
    given: &BTreeMap<String, Tensor>,
    options: &Options,
) -> Result<Emulated, EmulationError> {
    let kernel = GpuKernel::from_ptx(source.text()).map_err(EmulationError::Message)?;
    let mut sink = Sink::new();
    let limits = Limits::of(source.text());
    limits.expect(&kernel).map_err(EmulationError::Message)?;
    let programs: Option<Vec<Program>> = Module::parse(source, &mut sink).and_then(|module| {
        kernel.entries().iter().map(|entry| module.compile(entry, &mut sink)).collect()
    });
    let Some(programs) = programs else {
        return Err(EmulationError::Diagnostics(sink.into_diagnostics()));
    };
    let mut memory = Memory::new();
    let blocks = kernel.blocks.unwrap_or(BLOCKS);
    let mut buffers = vec![];
    let (mut record, mut trace) = (None, None);
    for parameter in &kernel.parameters {
        let contents = kernel.contents(*parameter, given, source.text());
        let (name, contents) = contents.map_err(EmulationError::Message)?;
        buffers.push(match contents {
            Contents::Bytes(bytes) => memory.add(name, bytes),
            Contents::Constants(bytes) => memory.add_constant(name, bytes),
            Contents::Unwritten(size) => memory.add_unwritten(name, size),
            Contents::Record => {
                *record.insert(memory.add(name, kernel.record(blocks, options.patience)))
            }
            Contents::Trace => *trace.insert(memory.add(name, vec![0; kernel.trace_bytes(blocks)])),
        });
    }
    let kernel = Arc::new(kernel);
    let explain = record.map(|record| {
        let kernel = kernel.clone();
        Explain(Arc::new(move |memory: &Memory, block, warp| {
            kernel.place(memory.bytes(record), block as usize, warp as usize)
        }))
    });
    let mut launch = Launch {
        grid: [blocks, 1, 1],
        block: [kernel.threads, 1, 1],
        shared_bytes: kernel.shared_bytes,
        arguments: buffers.iter().map(|buffer| Argument::Buffer(*buffer)).collect(),
        checks: Checks { races: options.races, uninitialised: true },
        resident: Some(blocks as usize),
        explain,
        ..Launch::default()
    };
    let mut warnings = vec![];
    for program in &programs {
        let mut report = launch.run(program, &mut memory);
        launch.clock = report.clock;
        if !report.is_clean() {
            if let (false, Some(record), Some(last)) =
                (report.completed, record, report.diagnostics.last_mut())
            {
                last.notes.extend(kernel.places(memory.bytes(record)));
            }
            return Err(EmulationError::Diagnostics(report.diagnostics));
        }
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
    Ok(Emulated { outputs, events, warnings })
}
