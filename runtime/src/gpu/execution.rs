//! A kernel on a GPU with its memory.
use super::{
    GpuKernel, GpuProgram, Parameter,
    driver::{Gpu, Kernel, Memory, Shape},
    record::Event,
};
use irc_tensor::Tensor;
use std::{cell::Cell, collections::BTreeMap, ffi::c_void, sync::Arc};

/// The nanoseconds after which a block that waits for others traps.
const PATIENCE: u64 = 10_000_000_000;

/// The compute capability that kernels for the first GPU are compiled for: its own, 80, 90, ..., or with a driver that is too
/// old for tensor maps one that lacks them.
///
/// # Errors
/// No driver or GPU, in a sentence.
pub fn capability() -> Result<u32, String> {
    let gpu = Gpu::open(0)?;
    let capability = gpu.capability()?;
    Ok(if gpu.has_tensor_maps()? { capability } else { capability.min(89) })
}

/// A kernel that is loaded on GPUs, with memory for its parameters; the constants are already there.
///
/// Of several ranks, each has a GPU of its own if there are enough that have access to each other's memory; otherwise the
/// first GPU runs all of them.
pub struct Execution {
    program: Arc<GpuProgram>,
    parts: Vec<Part>,
    /// The seconds of the last run, without copies.
    seconds: Cell<f64>,
}

/// What one GPU runs.
struct Part {
    gpu: Gpu,
    kernel: Option<Kernel>,
    /// The first block of its launch, and their number.
    first: u64,
    blocks: u32,
    /// Memory of each parameter.
    memory: Vec<Memory>,
    /// Of which parameters the memory is that of this GPU.
    owns: Vec<bool>,
}

// Safety: handles of the driver may be used by any thread, one at a time.
unsafe impl Send for Execution {}

impl Execution {
    /// Loads the driver and a kernel.
    ///
    /// # Errors
    /// No driver or GPU, or one that cannot run the kernel, in a sentence.
    pub fn new(program: &Arc<GpuProgram>) -> Result<Self, String> {
        let kernel = &program.kernel;
        let (gpus, reason) = gpus(kernel.ranks.len())?;
        let is_shared = gpus.len() == 1;
        let mut made = Self { program: program.clone(), parts: vec![], seconds: Cell::new(0.0) };
        let mut first = 0;
        for (number, gpu) in gpus.into_iter().enumerate() {
            let rank = kernel.ranks.get(number).filter(|_| !is_shared);
            let blocks = rank.copied().or(kernel.blocks);
            let part = Part { gpu, kernel: None, first, blocks: 0, memory: vec![], owns: vec![] };
            made.parts.push(part);
            let Some(part) = made.parts.last_mut() else { continue };
            part.gpu.enter()?;
            let loaded = part.kernel.insert(part.gpu.load(&program.text, kernel.entries())?);
            let shape = Shape { blocks, ..shape_of(kernel) };
            part.blocks = part.gpu.blocks(loaded, shape).map_err(|error| match &reason {
                Some(reason) => format!("{error}; {reason}"),
                None => error,
            })?;
            first += u64::from(part.blocks);
        }
        for (at, parameter) in kernel.parameters.iter().enumerate() {
            let owner = parameter.rank.filter(|_| !is_shared);
            for number in 0..made.parts.len() {
                let part = &mut made.parts[number];
                let owns = owner.is_none_or(|owner| owner == number);
                part.owns.push(owns);
                if owns {
                    part.gpu.enter()?;
                    let bytes = program.bytes_of(*parameter, part.blocks)?;
                    part.memory.push(match parameter.record {
                        true => part.gpu.share(bytes)?,
                        false => part.gpu.allocate(bytes)?,
                    });
                } else {
                    // Replaced by that of the owner below.
                    part.memory.push(Memory::NONE);
                }
            }
            let Some(owner) = owner else { continue };
            let memory = made.parts[owner].memory[at];
            made.parts.iter_mut().for_each(|part| part.memory[at] = memory);
        }
        for part in &made.parts {
            for (parameter, memory) in kernel.parameters.iter().zip(&part.memory) {
                if parameter.constants {
                    part.gpu.enter()?;
                    // Safety: `bytes_of` checks that there are as many.
                    unsafe { part.gpu.write(*memory, program.constants.as_ptr().cast()) }?;
                }
            }
        }
        Ok(made)
    }

    /// Runs the kernel, given the addresses of inputs, then of outputs, in the memory of the host.
    ///
    /// # Safety
    /// Every buffer must have the size in the interface.
    ///
    /// # Errors
    /// A fault of the kernel.
    pub unsafe fn run(&self, buffers: *const *mut c_void) -> Result<(), String> {
        let own = &self.program.kernel;
        let GpuKernel { interface, blocks, .. } = own;
        let inputs = interface.inputs.len();
        for part in &self.parts {
            part.gpu.enter()?;
            for (parameter, memory) in part.parameters(own) {
                if parameter.record {
                    memory.set(&own.record(part.blocks, PATIENCE, part.first));
                } else if parameter.trace || parameter.zeroed.is_some() {
                    part.gpu.clear(*memory)?;
                } else if let Some(input) = parameter.input {
                    // Safety: guaranteed by the caller.
                    unsafe { part.gpu.write(*memory, *buffers.add(input)) }?;
                } else if parameter.output.is_some() && blocks.is_some() {
                    // Buffers of plans are zero at the start.
                    part.gpu.clear(*memory)?;
                }
            }
            if self.parts.len() > 1 {
                // Before the kernel of another GPU writes this memory.
                part.gpu.wait()?;
            }
        }
        let started: Result<(), String> =
            (0..own.entries().len()).try_for_each(|number| self.start(number));
        // Those that were started end, with a fault if they wait for one that was not.
        let finished = self.parts.iter().map(|part| {
            let Some(kernel) = &part.kernel else { return Ok(0.0) };
            part.gpu.enter()?;
            part.gpu.finish(kernel)
        });
        let finished: Vec<Result<f64, String>> = finished.collect();
        let finished = started.and_then(|()| {
            finished.into_iter().try_fold(0.0, |most: f64, seconds| Ok(most.max(seconds?)))
        });
        self.seconds.set(finished.map_err(|error: String| error + &self.places())?);
        for part in &self.parts {
            part.gpu.enter()?;
            for (parameter, memory) in part.parameters(own) {
                if let Some(output) = parameter.output {
                    // Safety: guaranteed by the caller.
                    unsafe { part.gpu.read(*memory, *buffers.add(inputs + output)) }?;
                }
            }
        }
        Ok(())
    }

    /// Starts a launch on all GPUs, once the one before has ended on all: they may wait for each other.
    fn start(&self, number: usize) -> Result<(), String> {
        for part in self.parts.iter().filter(|_| number > 0) {
            part.gpu.enter()?;
            part.gpu.wait()?;
        }
        for part in &self.parts {
            let Some(kernel) = &part.kernel else { continue };
            part.gpu.enter()?;
            let shape = shape_of(&self.program.kernel);
            part.gpu.start((kernel, number), part.blocks, shape, &part.memory)?;
        }
        Ok(())
    }

    /// The seconds that the GPU took for the last run, without copies.
    pub fn seconds(&self) -> f64 {
        self.seconds.get()
    }

    /// Where warps are, by the records, in lines.
    fn places(&self) -> String {
        let kernel = &self.program.kernel;
        let all = self.parts.iter().flat_map(|part| part.parameters(kernel));
        let records = all.filter(|(parameter, _)| parameter.record);
        let places = records.flat_map(|(_, memory)| kernel.places(&memory.get()));
        places.flat_map(|place| ["\n  ".to_owned(), place]).collect()
    }

    /// The events of the last run, if the kernel records them.
    ///
    /// # Errors
    /// The driver's.
    pub fn events(&self) -> Result<Vec<Event>, String> {
        let kernel = &self.program.kernel;
        let mut events = vec![];
        for part in &self.parts {
            let found = part.parameters(kernel).find(|(parameter, _)| parameter.trace);
            let Some((_, memory)) = found else { continue };
            let mut trace = vec![0; kernel.trace_bytes(part.blocks)?];
            part.gpu.enter()?;
            // Safety: the memory has as many bytes.
            unsafe { part.gpu.read(*memory, trace.as_mut_ptr().cast()) }?;
            let found = kernel.events(&trace, part.blocks).into_iter();
            events.extend(found.map(|event| Event { block: part.first + event.block, ..event }));
        }
        Ok(events)
    }

    /// Runs the kernel on tensors by name. Inputs that are not given are zero.
    ///
    /// # Errors
    /// Inputs of another type, or a fault.
    pub fn run_on(
        &self,
        given: &BTreeMap<String, Tensor>,
    ) -> Result<BTreeMap<String, Tensor>, String> {
        let interface = &self.program.kernel.interface;
        let mut pointers = vec![];
        let mut inputs = vec![];
        for port in &interface.inputs {
            let given = given.get(&port.name).cloned();
            inputs.push(crate::bind(port, given).map_err(|error| error.to_string())?);
        }
        let mut outputs = vec![];
        for port in &interface.outputs {
            outputs.push(crate::bind(port, None).map_err(|error| error.to_string())?);
        }
        pointers.extend(inputs.iter().map(|tensor| tensor.bytes().as_ptr().cast_mut().cast()));
        pointers.extend(outputs.iter_mut().map(|tensor| tensor.bytes_mut().as_mut_ptr().cast()));
        // Safety: the tensors have the types in the interface.
        unsafe { self.run(pointers.as_ptr()) }?;
        let names = interface.outputs.iter().map(|port| port.name.clone());
        Ok(names.zip(outputs).collect())
    }
}

/// What its launches have in common.
fn shape_of(kernel: &GpuKernel) -> Shape {
    let GpuKernel { blocks, threads, shared_bytes, .. } = *kernel;
    Shape { blocks, threads, shared_bytes }
}

/// The GPUs for a number of ranks, one for each; or one, and why there are no more.
fn gpus(ranks: usize) -> Result<(Vec<Gpu>, Option<String>), String> {
    let first = Gpu::open(0)?;
    if ranks < 2 {
        return Ok((vec![first], None));
    }
    let count = first.count()? as usize;
    if count < ranks {
        let reason = format!(
            "each of {ranks} ranks can have a GPU of its own, and this machine has {count}"
        );
        return Ok((vec![first], Some(reason)));
    }
    let mut gpus = vec![first];
    for number in 1..ranks {
        gpus.push(Gpu::open(number as u32)?);
    }
    for (here, gpu) in gpus.iter().enumerate() {
        for (there, peer) in gpus.iter().enumerate().filter(|(there, _)| *there != here) {
            if !gpu.reaches(peer)? {
                let reason = format!(
                    "each of {ranks} ranks can have a GPU of its own if they have access to each other's memory by atomic \
                     operations, and GPU {here} has none to that of GPU {there}"
                );
                gpus.truncate(1);
                return Ok((gpus, Some(reason)));
            }
        }
    }
    for (here, gpu) in gpus.iter().enumerate() {
        let others = gpus.iter().enumerate().filter(|(there, _)| *there != here);
        others.map(|(_, peer)| peer).try_for_each(|peer| gpu.connect(peer))?;
    }
    Ok((gpus, None))
}

impl Part {
    /// The parameters whose memory is that of this GPU.
    fn parameters<'p>(
        &'p self,
        kernel: &'p GpuKernel,
    ) -> impl Iterator<Item = (&'p Parameter, &'p Memory)> {
        let all = kernel.parameters.iter().zip(&self.memory).zip(&self.owns);
        all.filter(|(_, owns)| **owns).map(|(own, _)| own)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Without its context, which another thread may have made current, nothing can be freed.
        if self.gpu.enter().is_err() {
            return;
        }
        for (memory, owns) in self.memory.drain(..).zip(&self.owns) {
            if *owns {
                self.gpu.free(memory);
            }
        }
        if let Some(kernel) = self.kernel.take() {
            self.gpu.unload(&kernel);
        }
    }
}
