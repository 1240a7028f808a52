//! Runs a model repeatedly, with constants bound once and memory reused.
use crate::{
    Guard, Host, Interface, Library, Pool, Port, RunError,
    constants::HostConstant,
    gpu::Execution,
    library::bind,
    threads::{Threads, pointer},
};
use bytes::Bytes;
use irc_tensor::{DType, Tensor};
use std::{collections::BTreeMap, ffi::c_void, sync::Arc};

/// A loaded model with its constants and its memory.
pub struct Runner {
    library: Arc<Library>,
    /// Indices in the interface of the inputs that are not constants.
    given: Vec<usize>,
    /// Pointers to buffers: inputs, then outputs; those of constants do not change.
    pointers: Vec<*mut c_void>,
    /// The extents of the inputs that are not constants.
    extents: Vec<i64>,
    workspace: Tensor,
    host: Box<Host>,
    threads: Option<Box<Threads>>,
    /// The model on a GPU, if it is a kernel for one.
    execution: Option<Execution>,
    /// The outputs in whose memory the inputs are that they update, each with the number among the given inputs.
    shared: Vec<(usize, usize)>,
    _weights: Vec<HostConstant>,
}

// Safety: the pointers refer to data that the runner owns, or are set by each run.
unsafe impl Send for Runner {}

/// The constant of an input; it must have the size of the input.
fn constant(port: &Port, bytes: &Bytes) -> Result<HostConstant, RunError> {
    let wrong =
        |reason: String| RunError::Allocate { name: format!("constant '{}'", port.name), reason };
    let ty = port.tensor_type();
    let ty = ty.ok_or_else(|| wrong("expected a constant of known type".to_owned()))?;
    let size = ty.byte_size().map_err(|error| wrong(error.to_string()))?;
    if size != bytes.len() {
        return Err(wrong(format!("expected {size} bytes, found {}", bytes.len())));
    }
    HostConstant::new(bytes).map_err(|error| wrong(error.to_string()))
}

impl Runner {
    /// A runner of a model, given its constants by number. They are used in place if they are aligned
    /// to 64 bytes, and are otherwise copied once.
    ///
    /// # Errors
    /// [`RunError::Allocate`] if a constant is missing or has the wrong size, or there is not enough memory;
    /// [`RunError::Device`] if there is no GPU for a kernel.
    pub fn new(library: Arc<Library>, constants: &[Bytes]) -> Result<Self, RunError> {
        let interface = library.interface();
        let (mut given, mut weights, mut extents) = (vec![], vec![], vec![]);
        let count = interface.inputs.len() + interface.outputs.len();
        let mut pointers = vec![std::ptr::null_mut(); count];
        for (index, port) in interface.inputs.iter().enumerate() {
            let Some(weight) = port.weight else {
                extents.extend(&port.shape);
                given.push(index);
                continue;
            };
            let bytes = usize::try_from(weight).ok().and_then(|weight| constants.get(weight));
            let bytes = bytes.ok_or_else(|| RunError::Allocate {
                name: format!("constant '{}'", port.name),
                reason: format!("expected a constant {weight}, found {}", constants.len()),
            })?;
            let constant = constant(port, bytes)?;
            pointers[index] = constant.pointer();
            weights.push(constant);
        }
        let (workspace, host) = (library.workspace()?, Host::new(interface));
        let execution = library.execution()?;
        Ok(Runner {
            library,
            given,
            pointers,
            extents,
            workspace,
            host,
            threads: None,
            execution,
            shared: vec![],
            _weights: weights,
        })
    }

    /// Sets the threads on which the model runs; the results do not depend on them. Initially it runs on the calling
    /// thread.
    ///
    /// # Errors
    /// [`RunError::Allocate`] if there is no memory for each of them.
    pub fn set_pool(&mut self, pool: &Arc<dyn Pool>) -> Result<(), RunError> {
        let threads = Threads::new(pool, self.library.interface(), Guard::None);
        let threads = threads.map_err(|reason| RunError::Allocate {
            name: format!("memory for {} threads", pool.threads()),
            reason,
        })?;
        self.host.set_threads(pointer(threads.as_deref()));
        self.threads = threads;
        Ok(())
    }

    /// Updates in place from now on: [`Runner::run_with`] takes each input that an output updates from the memory of that
    /// output, with the elements that the run before left there, if the output has been made and has the input's type.
    pub fn share(&mut self) {
        let updates = self.interface().updates().into_iter().enumerate();
        let number = |input| self.given.iter().position(|given| *given == input);
        self.shared =
            updates.filter_map(|(output, input)| Some((output, number(input?)?))).collect();
    }

    /// The model's inputs and outputs.
    pub fn interface(&self) -> &Interface {
        self.library.interface()
    }

    /// The seconds that a GPU took for the last run, without copies; `None` if the model runs on processors.
    pub fn device_seconds(&self) -> Option<f64> {
        self.execution.as_ref().map(Execution::seconds)
    }

    /// The inputs that the caller provides to each run, in order: all except constants.
    pub fn inputs(&self) -> impl Iterator<Item = &Port> {
        self.given.iter().map(|index| &self.interface().inputs[*index])
    }

    /// Runs the model once. Missing inputs of known size are zero.
    ///
    /// # Errors
    /// If a name is unknown, a type is wrong, a check fails, or the model itself fails.
    pub fn run(
        &mut self,
        mut inputs: BTreeMap<String, Tensor>,
    ) -> Result<BTreeMap<String, Tensor>, RunError> {
        self.library.check_names(&inputs)?;
        let mut bound = vec![];
        for port in self.inputs() {
            bound.push(bind(port, inputs.remove(&port.name))?);
        }
        let outputs = if self.interface().is_sized() {
            vec![]
        } else {
            let ports = self.interface().outputs.iter();
            ports.map(|port| bind(port, None)).collect::<Result<_, _>>()?
        };
        let bound: Vec<&Tensor> = bound.iter().collect();
        let mut outputs = outputs;
        self.run_with(&bound, &mut outputs)?;
        let names = self.interface().outputs.iter().map(|port| port.name.clone());
        Ok(names.zip(outputs).collect())
    }

    /// Runs on inputs in the order of [`Runner::inputs`], into outputs in the interface's order. A
    /// model of static sizes without strings allocates nothing; others reuse outputs that have the right
    /// type, and allocate new ones otherwise.
    ///
    /// # Errors
    /// If a check fails, or the model itself fails.
    ///
    /// # Panics
    /// If the inputs, or the outputs of a model of static sizes, do not match the interface.
    pub fn run_with(
        &mut self,
        inputs: &[&Tensor],
        outputs: &mut Vec<Tensor>,
    ) -> Result<(), RunError> {
        let interned: Vec<Tensor> = inputs
            .iter()
            .filter(|tensor| tensor.dtype() == DType::String)
            .map(|tensor| (*tensor).clone().interned(self.host.strings()))
            .collect();
        if interned.is_empty() && !self.library.has_strings() {
            return self.run_on(inputs, outputs);
        }
        let mut next = interned.iter();
        let handles: Vec<&Tensor> = inputs
            .iter()
            .map(|tensor| match tensor.dtype() {
                DType::String => next.next().unwrap_or(tensor),
                _ => *tensor,
            })
            .collect();
        let result = self.run_on(&handles, outputs);
        let resolved = outputs.drain(..).map(|output| output.resolved(self.host.strings()));
        *outputs = resolved.collect();
        self.host.forget_strings();
        result
    }

    /// As [`Runner::run_with`], on handles of strings.
    fn run_on(&mut self, inputs: &[&Tensor], outputs: &mut Vec<Tensor>) -> Result<(), RunError> {
        let interface = self.library.interface();
        assert_eq!(inputs.len(), self.given.len(), "inputs must match the interface");
        for (index, tensor) in self.given.iter().zip(inputs) {
            assert!(interface.inputs[*index].takes(tensor.ty()), "inputs must match the interface");
            self.pointers[*index] = tensor.bytes().as_ptr().cast_mut().cast();
        }
        for (output, input) in &self.shared {
            let tensor = outputs.get_mut(*output).filter(|it| it.ty() == inputs[*input].ty());
            if let Some(tensor) = tensor {
                self.pointers[self.given[*input]] = tensor.bytes_mut().as_mut_ptr().cast();
            }
        }
        if !interface.is_sized() {
            return self.run_fixed(outputs);
        }
        let mut at = 0;
        for tensor in inputs {
            let rank = tensor.shape().len();
            self.extents[at..at + rank].copy_from_slice(tensor.shape());
            at += rank;
        }
        self.host.begin(outputs.drain(..));
        let host: *mut Host = &mut *self.host;
        // Safety: every input has the extents that are passed with it, the constants were checked, and
        // the host is alive.
        let status = unsafe {
            self.library.call_sized(host, self.pointers.as_mut_ptr(), self.extents.as_ptr())
        };
        *outputs = self.host.end(status, interface)?;
        Ok(())
    }

    fn run_fixed(&mut self, outputs: &mut [Tensor]) -> Result<(), RunError> {
        let interface = self.library.interface();
        let first = interface.inputs.len();
        let matching = |(port, tensor): (&Port, &Tensor)| port.takes(tensor.ty());
        let matches = interface.outputs.iter().zip(&*outputs).all(matching);
        assert!(
            matches && outputs.len() == interface.outputs.len(),
            "outputs must match the interface"
        );
        for (slot, tensor) in self.pointers[first..].iter_mut().zip(outputs) {
            *slot = tensor.bytes_mut().as_mut_ptr().cast();
        }
        let workspace = self.workspace.bytes_mut().as_mut_ptr().cast();
        let (execution, threads) = (self.execution.as_ref(), pointer(self.threads.as_deref()));
        let pointers = self.pointers.as_mut_ptr();
        // Safety: every buffer has the size in the interface, and every thread its memory.
        unsafe { self.library.call_fixed(execution, pointers, workspace, threads) }
    }
}
