//! The context of a graph: the arguments of all calls are laid out once, so that a run is a loop over calls.
use super::{
    GraphModel, ModelError,
    options::ContextOptions,
    packed::{self, Function, Value},
    plan::{Action, Plan, ValueMemory},
    slots::RuntimeServices,
    workspace::Workspace,
};
use crate::arena::{Arena, machine_bytes};
use std::{collections::BTreeMap, ffi::c_void, ptr::null_mut, sync::Arc};

/// A graph with its memory.
pub struct GraphContext {
    /// The current memory of each place.
    places: Vec<*mut u8>,
    /// Inputs, then outputs.
    ports: Vec<Port>,
    /// Indices of the tensors of each place.
    tensors_of: Vec<Vec<usize>>,
    tensors: Tensors,
    arguments: Vec<Value>,
    /// The type codes of the call with the most arguments.
    codes: Vec<i32>,
    steps: Vec<Step>,
    threads: Lanes,
    /// The functions of the archive that others can look up by name.
    by_name: Arc<BTreeMap<String, Function>>,
    /// Sizes of the blocks of tensors, and of the workspace of a thread.
    sizes: (Vec<usize>, usize),
    // Dropped last: all pointers refer to it.
    arena: Arena,
}

/// The runtime functions of a context, and the workspaces of its threads.
struct Lanes {
    services: Box<RuntimeServices>,
    arena: Arena,
}

// Safety: all pointers are into the arena, the model, memory that the caller bound, or the context itself.
unsafe impl Send for GraphContext {}

/// An input or output.
struct Port {
    place: usize,
    /// Whether the place can be moved to bound memory; otherwise the output is copied after a run.
    can_move: bool,
    /// The context's own memory.
    own: *mut u8,
    /// The caller's memory.
    bound: Option<*mut u8>,
    bytes: usize,
}

/// A node, ready to run.
enum Step {
    Call { function: Function, first: usize, count: i32 },
    Copy { from: usize, to: usize, bytes: usize },
}

/// Tensors that calls point to: they are not moved, and are modified only through pointers.
struct Tensors(*mut [packed::Tensor]);

impl Tensors {
    fn new(tensors: Vec<packed::Tensor>) -> Self {
        Tensors(Box::into_raw(tensors.into_boxed_slice()))
    }

    fn pointer(&self, index: usize) -> *mut packed::Tensor {
        assert!(index < self.0.len(), "plans number tensors");
        // Safety: the index is within the slice.
        unsafe { self.0.cast::<packed::Tensor>().add(index) }
    }
}

impl Drop for Tensors {
    fn drop(&mut self) {
        // Safety: the pointer was created from a box.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Bytes of workspace of each thread.
fn workspace(plan: &Plan, options: &ContextOptions) -> usize {
    plan.workspace.max(options.workspace_bytes)
}

/// Sizes of the workspaces of all threads.
fn workspaces(each: usize, options: &ContextOptions) -> Vec<usize> {
    vec![each; options.pool.threads().max(1)]
}

/// Number of bytes of a context.
pub fn bytes(plan: &Plan, options: &ContextOptions) -> Result<u64, ModelError> {
    let workspaces = workspaces(workspace(plan, options), options);
    within(&[&plan.blocks, &workspaces], options)
}

/// Number of bytes of arenas with these blocks, if it is within the limit.
pub fn within(arenas: &[&[usize]], options: &ContextOptions) -> Result<u64, ModelError> {
    let limit = options.memory_limit.unwrap_or_else(machine_bytes);
    let sizes = arenas.iter().map(|blocks| Arena::size(blocks, options.guard));
    let bytes = { sizes }.try_fold(0_u64, |sum, bytes| sum.checked_add(bytes? as u64));
    match bytes {
        Some(bytes) if bytes <= limit => Ok(bytes),
        _ => Err(ModelError::Memory {
            needed: bytes.unwrap_or(u64::MAX),
            reason: format!("{limit} bytes are allowed or there"),
        }),
    }
}

/// Memory for blocks, if it is within the limit.
pub fn arena(blocks: &[usize], options: &ContextOptions) -> Result<Arena, ModelError> {
    let needed = within(&[blocks], options)?;
    Arena::new(blocks, options.guard).map_err(|reason| ModelError::Memory { needed, reason })
}

impl Lanes {
    /// For the threads of the pool, if their memory and that of tensors are within the limit.
    fn new(
        by_name: &Arc<BTreeMap<String, Function>>,
        (tensors, each): &(Vec<usize>, usize),
        options: &ContextOptions,
    ) -> Result<Self, ModelError> {
        let sizes = workspaces(*each, options);
        within(&[tensors, &sizes], options)?;
        let arena = arena(&sizes, options)?;
        let workspace = |block| Workspace::new(arena.block(block), *each);
        let workspaces = (0..sizes.len()).map(workspace);
        let services = RuntimeServices::new(workspaces, options.pool.clone(), by_name.clone());
        Ok(Lanes { services: Box::new(services), arena })
    }
}

impl GraphContext {
    /// Memory for a model.
    pub fn new(model: &GraphModel, options: &ContextOptions) -> Result<Self, ModelError> {
        let plan = &model.plan;
        bytes(plan, options)?;
        let arena = arena(&plan.blocks, options)?;
        let places: Vec<*mut u8> = plan
            .places
            .iter()
            .map(|place| match place.home {
                ValueMemory::Block(block) => arena.block(block),
                // Every place of a parameter has a constant.
                ValueMemory::Param(param) => model.params[param]
                    .as_ref()
                    .map_or(null_mut(), crate::constants::HostConstant::pointer),
            })
            .collect();
        let by_name = model.by_name.clone();
        let sizes = (plan.blocks.clone(), workspace(plan, options));
        let threads = Lanes::new(&by_name, &sizes, options)?;
        let mut context = GraphContext {
            ports: ports(plan, &places),
            tensors_of: vec![vec![]; places.len()],
            tensors: tensors(plan),
            arguments: vec![],
            codes: vec![],
            steps: vec![],
            threads,
            by_name,
            sizes,
            arena,
            places,
        };
        for (index, tensor) in plan.tensors.iter().enumerate() {
            context.tensors_of[tensor.place].push(index);
        }
        (0..context.places.len()).for_each(|place| context.point(place, context.places[place]));
        context.prepare(model);
        Ok(context)
    }

    /// Lays out the arguments of every call.
    fn prepare(&mut self, model: &GraphModel) {
        for step in &model.plan.steps {
            self.steps.push(match &step.action {
                Action::Copy { from, to, bytes } => {
                    Step::Copy { from: *from, to: *to, bytes: *bytes }
                }
                Action::Call { function, tensors } => {
                    let first = self.arguments.len();
                    for tensor in tensors {
                        let pointer = self.tensors.pointer(*tensor).cast();
                        self.arguments.push(Value { pointer });
                    }
                    self.codes.resize(self.codes.len().max(tensors.len()), packed::TENSOR);
                    let function = model.functions[*function];
                    Step::Call { function, first, count: tensors.len() as i32 }
                }
            });
        }
    }

    /// Moves a place to another address.
    fn point(&mut self, place: usize, memory: *mut u8) {
        self.places[place] = memory;
        for tensor in &self.tensors_of[place] {
            // Safety: the tensor belongs to the context, and no call is running.
            unsafe { (*self.tensors.pointer(*tensor)).data = memory.cast() };
        }
    }

    /// Binds an input or output to memory of the caller, or to the context's own memory again.
    pub fn bind(&mut self, port: usize, memory: Option<*mut u8>) {
        let Port { place, can_move, own, .. } = self.ports[port];
        self.ports[port].bound = memory;
        if can_move {
            self.point(place, memory.unwrap_or(own));
        }
    }

    /// The address of an input or output.
    pub fn pointer(&self, port: usize) -> *mut u8 {
        let port = &self.ports[port];
        port.bound.unwrap_or(self.places[port.place])
    }

    /// Runs every node.
    ///
    /// # Errors
    /// The index of the first step that failed, and its message.
    pub fn run(&mut self) -> Result<(), (usize, String)> {
        let (steps, places, codes) = (&self.steps, &self.places, self.codes.as_mut_ptr());
        let arguments = self.arguments.as_mut_ptr();
        let run = || {
            for (number, step) in steps.iter().enumerate() {
                // Safety: the plan passes tensors of the types that the graph declares to each
                // function, and copies have the size of both places.
                let status = unsafe {
                    match *step {
                        Step::Call { function, first, count } => {
                            call(function, arguments.add(first), codes, count)
                        }
                        Step::Copy { from, to, bytes } => {
                            std::ptr::copy(places[from], places[to], bytes);
                            0
                        }
                    }
                };
                if status != 0 {
                    return Err((number, status));
                }
            }
            Ok(())
        };
        if let Err((number, status)) = self.threads.services.serve(run) {
            let message = self.threads.services.take_message();
            return Err((number, message.unwrap_or_else(|| format!("it returned {status}"))));
        }
        for port in self.ports.iter().filter(|port| !port.can_move) {
            if let Some(memory) = port.bound {
                // Safety: the caller's memory has the size of the output.
                unsafe { std::ptr::copy(self.places[port.place], memory, port.bytes) };
            }
        }
        Ok(())
    }

    /// Number of bytes of the context's memory.
    pub fn bytes(&self) -> usize {
        self.arena.bytes() + self.threads.arena.bytes()
    }

    /// Runs later calls on the pool of the options.
    pub fn set_threads(&mut self, options: &ContextOptions) -> Result<(), ModelError> {
        self.threads = Lanes::new(&self.by_name, &self.sizes, options)?;
        Ok(())
    }

    /// Maximum number of bytes of workspace that a thread used at once.
    pub fn workspace_peak(&mut self) -> usize {
        self.threads.services.peak()
    }
}

/// Calls a function and ignores its result.
///
/// # Safety
/// The arguments must be those that the function expects.
unsafe fn call(function: Function, arguments: *mut Value, codes: *mut i32, count: i32) -> i32 {
    let (mut result, mut result_code) = (Value { integer: 0 }, packed::NULL);
    // Safety: guaranteed by the caller.
    unsafe {
        function(arguments, codes, count, &mut result, &mut result_code, null_mut::<c_void>())
    }
}

fn ports(plan: &Plan, places: &[*mut u8]) -> Vec<Port> {
    let outputs = plan.outputs.iter().map(|output| (output.place, output.can_move));
    let port = |(place, can_move): (usize, bool)| {
        let bytes = plan.places[place].bytes;
        Port { place, can_move, own: places[place], bound: None, bytes }
    };
    plan.inputs.iter().map(|place| (*place, true)).chain(outputs).map(port).collect()
}

fn tensors(plan: &Plan) -> Tensors {
    let tensors = plan.tensors.iter();
    Tensors::new(tensors.map(|tensor| packed::Tensor::new(tensor.dtype, &tensor.shape)).collect())
}
