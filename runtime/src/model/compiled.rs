//! The context of a library written by `irc compile`.
use super::{
    ModelError,
    graph::{arena, within},
    options::ContextOptions,
};
use crate::{
    Host, Interface, Library, Port, RunError,
    arena::Arena,
    gpu::Execution,
    threads::{Threads, pointer, thread_bytes},
};
use irc_tensor::{Tensor, TensorType};
use std::{ffi::c_void, sync::Arc};

/// The context of a model with static sizes.
pub struct FixedContext {
    library: Arc<Library>,
    /// The addresses of inputs, then of outputs.
    pointers: Vec<*mut c_void>,
    own: Vec<*mut c_void>,
    workspace: *mut c_void,
    /// Sizes of the blocks of the arena.
    sizes: Vec<usize>,
    threads: Option<Box<Threads>>,
    /// The model on a GPU, if it is a kernel for one.
    execution: Option<Execution>,
    // Dropped last: `pointers` point into it.
    arena: Arena,
}

// Safety: all pointers are into the arena, or memory that the caller bound.
unsafe impl Send for FixedContext {}

impl FixedContext {
    /// Memory for a model.
    pub fn new(library: &Arc<Library>, options: &ContextOptions) -> Result<Self, ModelError> {
        let interface = library.interface();
        if interface.inputs.iter().any(|port| port.weight.is_some()) {
            return Err(RunError::MissingConstants.into());
        }
        let ports = interface.inputs.iter().chain(&interface.outputs);
        let sizes: Option<Vec<usize>> = ports.map(bytes).collect();
        let workspace = usize::try_from(library.workspace_bytes()).ok();
        let too_large = || ModelError::Memory {
            needed: u64::MAX,
            reason: "the size of a buffer overflows".into(),
        };
        let mut sizes = sizes.ok_or_else(too_large)?;
        sizes.push(workspace.ok_or_else(too_large)?);
        let arena = arena(&sizes, options).map_err(|error| described(error, interface))?;
        let last = sizes.len() - 1;
        let own: Vec<*mut c_void> = (0..last).map(|block| arena.block(block).cast()).collect();
        let workspace = arena.block(last).cast();
        let threads = threads(interface, &sizes, options)?;
        let execution = library.execution()?;
        let (library, pointers) = (library.clone(), own.clone());
        Ok(FixedContext { library, pointers, own, workspace, sizes, threads, execution, arena })
    }

    /// Runs later calls on the pool of the options.
    pub fn set_threads(&mut self, options: &ContextOptions) -> Result<(), ModelError> {
        self.threads = threads(self.library.interface(), &self.sizes, options)?;
        Ok(())
    }

    /// Binds an input or output to memory of the caller, or to the context's own memory again.
    pub fn bind(&mut self, port: usize, memory: Option<*mut u8>) {
        self.pointers[port] = memory.map_or(self.own[port], |memory| memory.cast());
    }

    /// The address of an input or output.
    pub fn pointer(&self, port: usize) -> *mut u8 {
        self.pointers[port].cast()
    }

    /// Runs the model.
    pub fn run(&mut self) -> Result<(), ModelError> {
        let (pointers, threads) = (self.pointers.as_mut_ptr(), pointer(self.threads.as_deref()));
        let (execution, workspace) = (self.execution.as_ref(), self.workspace);
        // Safety: every buffer has the size in the interface, and every thread its memory.
        Ok(unsafe { self.library.call_fixed(execution, pointers, workspace, threads) }?)
    }

    /// Number of bytes of the context's memory.
    pub fn bytes(&self) -> usize {
        self.arena.bytes() + self.threads.as_ref().map_or(0, |threads| threads.bytes())
    }
}

/// The threads of a context with blocks of these sizes, if the memory of both is within the limit.
fn threads(
    interface: &Interface,
    blocks: &[usize],
    options: &ContextOptions,
) -> Result<Option<Box<Threads>>, ModelError> {
    let bytes = thread_bytes(&options.pool, interface).unwrap_or(usize::MAX);
    let needed = within(&[blocks, &[bytes]], options)?;
    let threads = Threads::new(&options.pool, interface, options.guard);
    threads.map_err(|reason| ModelError::Memory { needed, reason })
}

/// Adds the largest part of a large workspace to an error.
fn described(error: ModelError, interface: &Interface) -> ModelError {
    match (error, &interface.workspace_message) {
        (ModelError::Memory { needed, reason }, Some(message)) => {
            ModelError::Memory { needed, reason: format!("{reason}; {message}") }
        }
        (error, _) => error,
    }
}

/// Number of bytes of an input or output; `None` if unknown.
pub fn bytes(port: &Port) -> Option<usize> {
    port.tensor_type()?.byte_size().ok()
}

/// The context of a model whose sizes depend on its inputs. It allocates memory during runs, and reuses it.
pub struct SizedContext {
    library: Arc<Library>,
    host: Box<Host>,
    threads: Option<Box<Threads>>,
    /// The extents of each input.
    shapes: Vec<Option<Vec<i64>>>,
    /// Memory of each input that is not bound by the caller.
    own: Vec<Option<Tensor>>,
    pointers: Vec<*mut c_void>,
    extents: Vec<i64>,
    outputs: Vec<Tensor>,
    /// For each output, the input that it may be in the memory of.
    updates: Vec<Option<usize>>,
    /// The outputs that the last run wrote to the memory of an input: the address and the bytes.
    placed: Vec<Option<(usize, usize)>>,
}

// Safety: all pointers are into tensors of the context, or memory that the caller bound.
unsafe impl Send for SizedContext {}

impl SizedContext {
    /// A context without inputs yet.
    pub fn new(library: &Arc<Library>, options: &ContextOptions) -> Result<Self, ModelError> {
        let interface = library.interface();
        let count = interface.inputs.len();
        if interface.inputs.iter().any(|port| port.weight.is_some()) {
            return Err(RunError::MissingConstants.into());
        }
        let mut context = SizedContext {
            library: library.clone(),
            host: Host::new(interface),
            threads: None,
            shapes: vec![None; count],
            own: vec![],
            pointers: vec![std::ptr::null_mut(); count],
            extents: Vec::new(),
            outputs: vec![],
            updates: interface.updates(),
            placed: vec![None; interface.outputs.len()],
        };
        context.set_threads(options)?;
        context.own.resize_with(count, || None);
        for (input, port) in interface.inputs.iter().enumerate() {
            if port.tensor_type().is_some() {
                context.reserve(input, &port.shape)?;
            }
        }
        Ok(context)
    }

    /// Runs later calls on the pool of the options.
    pub fn set_threads(&mut self, options: &ContextOptions) -> Result<(), ModelError> {
        let threads = threads(self.interface(), &[], options)?;
        self.host.set_threads(pointer(threads.as_deref()));
        self.threads = threads;
        Ok(())
    }

    /// Number of bytes of the memory that exists between runs.
    pub fn bytes(&self) -> usize {
        self.threads.as_ref().map_or(0, |threads| threads.bytes())
    }

    fn interface(&self) -> &Interface {
        self.library.interface()
    }

    /// The context's own memory for an input with a shape; earlier contents may be lost.
    pub fn reserve(&mut self, input: usize, shape: &[i64]) -> Result<&mut [u8], ModelError> {
        let ty = self.check(input, shape)?;
        let own = self.own[input].take().filter(|own| *own.ty() == ty);
        let own = match own {
            Some(own) => own,
            None => Tensor::zeros(ty).map_err(|error| ModelError::Memory {
                needed: 0,
                reason: format!("input '{}': {error}", self.interface().inputs[input].name),
            })?,
        };
        self.shapes[input] = Some(shape.to_vec());
        let own = self.own[input].insert(own);
        self.pointers[input] = own.bytes_mut().as_mut_ptr().cast();
        Ok(own.bytes_mut())
    }

    /// Binds an input with a shape to memory of the caller.
    pub fn bind(&mut self, input: usize, shape: &[i64], memory: *mut u8) -> Result<(), ModelError> {
        self.check(input, shape)?;
        self.shapes[input] = Some(shape.to_vec());
        self.pointers[input] = memory.cast();
        Ok(())
    }

    /// The type of an input with a shape.
    pub fn check(&self, input: usize, shape: &[i64]) -> Result<TensorType, ModelError> {
        let port = &self.interface().inputs[input];
        let ty = port.element_type().map(|dtype| TensorType::new(dtype, shape));
        let fits = shape.iter().all(|extent| *extent >= 0);
        ty.filter(|ty| fits && port.takes(ty)).ok_or_else(|| ModelError::Buffer {
            port: format!("input '{}'", port.name),
            expected: port.type_text(),
            found: format!("{}{shape:?}", port.dtype),
        })
    }

    /// Runs the model.
    pub fn run(&mut self) -> Result<(), ModelError> {
        let interface = self.library.interface();
        self.extents.clear();
        for (port, shape) in interface.inputs.iter().zip(&self.shapes) {
            let shape = shape.as_ref().ok_or_else(|| ModelError::Buffer {
                port: format!("input '{}'", port.name),
                expected: port.type_text(),
                found: "nothing".into(),
            })?;
            self.extents.extend(shape);
        }
        self.host.begin(self.outputs.drain(..));
        self.host.place(&self.placed);
        let host: *mut Host = &mut *self.host;
        // Safety: every input has the extents that are passed with it, and the host is alive.
        let status = unsafe {
            self.library.call_sized(host, self.pointers.as_mut_ptr(), self.extents.as_ptr())
        };
        self.outputs = self.host.end(status, interface)?;
        Ok(())
    }

    /// Places an output in memory for the next run, its address and its bytes, or nowhere; returns the input whose memory
    /// that must be, `None` if there is none.
    pub fn place(&mut self, output: usize, memory: Option<(usize, usize)>) -> Option<usize> {
        let input = self.updates[output]?;
        self.placed[output] = memory;
        Some(input)
    }

    /// The shape and the bytes of an output of the last successful run.
    pub fn output(&self, output: usize) -> Option<(&[i64], &[u8])> {
        let tensor = self.outputs.get(output)?;
        let Some((start, bytes)) = self.placed[output] else {
            return Some((tensor.shape(), tensor.bytes()));
        };
        let shape = self.shapes[self.updates[output]?].as_deref()?;
        // Safety: the memory is that of a bound input, which has so many bytes.
        Some((shape, unsafe { std::slice::from_raw_parts(start as *const u8, bytes) }))
    }
}
