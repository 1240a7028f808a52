//! A kernel on a GPU with its memory.
use super::{
    GpuKernel, GpuProgram,
    driver::{Gpu, Kernel, Memory, Shape},
    record::Event,
};
use irc_tensor::Tensor;
use std::{cell::Cell, collections::BTreeMap, ffi::c_void, sync::Arc};

/// The nanoseconds after which a block that waits for others traps.
const PATIENCE: u64 = 10_000_000_000;

/// A kernel that is loaded on the first GPU, with memory for its parameters; the constants are already there.
pub struct Execution {
    gpu: Gpu,
    kernel: Option<Kernel>,
    program: Arc<GpuProgram>,
    blocks: u32,
    /// Memory of each parameter.
    memory: Vec<Memory>,
    /// The seconds of the last run, without copies.
    seconds: Cell<f64>,
}

// Safety: handles of the driver may be used by any thread, one at a time.
unsafe impl Send for Execution {}

impl Execution {
    /// Loads the driver and a kernel.
    ///
    /// # Errors
    /// No driver or GPU, or one that cannot run the kernel, in a sentence.
    pub fn new(program: &Arc<GpuProgram>) -> Result<Self, String> {
        let gpu = Gpu::open()?;
        let mut made = Self {
            gpu,
            kernel: None,
            program: program.clone(),
            blocks: 0,
            memory: vec![],
            seconds: Cell::new(0.0),
        };
        let kernel = made.gpu.load(&program.text, program.kernel.entries())?;
        let kernel = made.kernel.insert(kernel);
        made.blocks = made.gpu.blocks(kernel, shape_of(&program.kernel))?;
        for parameter in &program.kernel.parameters {
            let bytes = program.bytes_of(*parameter, made.blocks)?;
            made.memory.push(match parameter.record {
                true => made.gpu.share(bytes)?,
                false => made.gpu.allocate(bytes)?,
            });
        }
        for (parameter, memory) in program.kernel.parameters.iter().zip(&made.memory) {
            if parameter.constants {
                // Safety: `bytes_of` checks that there are as many.
                unsafe { made.gpu.write(*memory, program.constants.as_ptr().cast()) }?;
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
        let Some(kernel) = &self.kernel else { return Ok(()) };
        let own = &self.program.kernel;
        let GpuKernel { interface, parameters, blocks, .. } = own;
        let inputs = interface.inputs.len();
        self.gpu.enter()?;
        for (parameter, memory) in parameters.iter().zip(&self.memory) {
            if parameter.record {
                memory.set(&own.record(self.blocks, PATIENCE));
            } else if parameter.trace {
                self.gpu.clear(*memory)?;
            } else if let Some(input) = parameter.input {
                // Safety: guaranteed by the caller.
                unsafe { self.gpu.write(*memory, *buffers.add(input)) }?;
            } else if parameter.output.is_some() && blocks.is_some() {
                // Buffers of plans are zero at the start.
                self.gpu.clear(*memory)?;
            }
        }
        let ran = self.gpu.run(kernel, self.blocks, shape_of(own), &self.memory);
        self.seconds.set(ran.map_err(|error| error + &self.places())?);
        for (parameter, memory) in parameters.iter().zip(&self.memory) {
            if let Some(output) = parameter.output {
                // Safety: guaranteed by the caller.
                unsafe { self.gpu.read(*memory, *buffers.add(inputs + output)) }?;
            }
        }
        Ok(())
    }

    /// The seconds that the GPU took for the last run, without copies.
    pub fn seconds(&self) -> f64 {
        self.seconds.get()
    }

    /// Where warps are, by the record, in lines.
    fn places(&self) -> String {
        let kernel = &self.program.kernel;
        let all = kernel.parameters.iter().zip(&self.memory);
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
        let mut all = kernel.parameters.iter().zip(&self.memory);
        let Some((_, memory)) = all.find(|(parameter, _)| parameter.trace) else {
            return Ok(vec![]);
        };
        let mut trace = vec![0; kernel.trace_bytes(self.blocks)?];
        self.gpu.enter()?;
        // Safety: the memory has as many bytes.
        unsafe { self.gpu.read(*memory, trace.as_mut_ptr().cast()) }?;
        Ok(kernel.events(&trace, self.blocks))
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

impl Drop for Execution {
    fn drop(&mut self) {
        // Without its context, which another thread may have made current, nothing can be freed.
        if self.gpu.enter().is_err() {
            return;
        }
        for memory in self.memory.drain(..) {
            self.gpu.free(memory);
        }
        if let Some(kernel) = self.kernel.take() {
            self.gpu.unload(&kernel);
        }
    }
}
