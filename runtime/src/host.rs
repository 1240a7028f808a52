//! The host of a model whose sizes depend on its inputs: it allocates memory for intermediate values
//! and outputs. The layout and the functions are those of the documentation page on entry points.
use crate::{Interface, Port, RunError, threads::Threads};
use irc_host::{Function, FunctionError, Functions};
use irc_tensor::{DType, Strings, Tensor, TensorError, TensorType};
use std::ffi::c_void;

/// Memory and outputs of one model, reused between runs.
#[repr(C)]
pub struct Host {
    allocate: unsafe extern "C" fn(*mut Host, i64) -> *mut c_void,
    release: unsafe extern "C" fn(*mut Host, *mut c_void),
    output: unsafe extern "C" fn(*mut Host, i64, *const i64) -> *mut c_void,
    fail: unsafe extern "C" fn(*mut Host, i64, i64, i64),
    call: unsafe extern "C" fn(
        *mut Host,
        i64,
        i64,
        *const c_void,
        *const c_void,
        i64,
        *mut c_void,
    ) -> *mut c_void,
    threads: *const Threads,
    state: State,
}

#[derive(Default)]
struct State {
    /// Blocks in use, in order of their addresses.
    used: Vec<(usize, Tensor)>,
    /// Free blocks, by size.
    free: Vec<(i64, Vec<Tensor>)>,
    /// Element type and rank of every output.
    ports: Vec<(DType, usize)>,
    outputs: Vec<Option<Tensor>>,
    /// The outputs that are in memory of the caller: the address and the bytes.
    placed: Vec<Option<(usize, usize)>>,
    failure: Option<HostError>,
    /// The functions that the model applies.
    known_functions: Vec<Function>,
    functions: Functions,
    /// The strings of the model, and during a run those of its inputs and new ones.
    strings: Strings,
    /// The number of strings of the model.
    known: usize,
}

/// The first error of a run.
enum HostError {
    /// A check of the model fails: its number and the two sizes.
    Check(i64, i64, i64),
    /// There is not enough memory for intermediate values of this many bytes.
    Memory(i64),
    /// As before: the number of the message, the bytes of a value, and those of all values.
    Value(i64, i64, i64),
    /// There cannot be a tensor with an output's extents.
    Output(usize, TensorError),
    /// A function has no result; the number of the message, once the model has reported it.
    Function(FunctionError, Option<i64>),
}

impl Host {
    /// A host for models with the given interface.
    pub fn new(interface: &Interface) -> Box<Self> {
        let port = |port: &Port| Some((port.element_type()?, port.shape.len()));
        let ports = interface.outputs.iter().filter_map(port).collect();
        // A loaded library has been checked; a model that is loaded otherwise has no strings.
        let strings = interface.string_table().unwrap_or_default();
        let known_functions = interface.functions().unwrap_or_default();
        let known = strings.texts().len();
        let state = State { ports, known_functions, strings, known, ..State::default() };
        Box::new(Host { allocate, release, output, fail, call, threads: std::ptr::null(), state })
    }

    /// Sets the threads of later runs, which they must outlive; null for the calling thread alone.
    pub(crate) fn set_threads(&mut self, threads: *const Threads) {
        self.threads = threads;
    }

    /// Begins a run: outputs of the previous run are reused if they have the right type.
    pub fn begin(&mut self, outputs: impl Iterator<Item = Tensor>) {
        self.state.outputs.clear();
        self.state.outputs.extend(outputs.map(Some));
        self.state.outputs.resize_with(self.state.ports.len(), || None);
        self.state.placed.clear();
        self.state.placed.resize(self.state.ports.len(), None);
        self.state.failure = None;
    }

    /// Places outputs of the run that begins in memory of the caller, each at an address with so many bytes.
    pub(crate) fn place(&mut self, outputs: &[Option<(usize, usize)>]) {
        self.state.placed.clear();
        self.state.placed.extend(outputs);
    }

    /// The strings of the model, and those that are interned for a run.
    pub fn strings(&mut self) -> &mut Strings {
        &mut self.state.strings
    }

    /// Forgets the strings of a run, and a file that was decoded in it.
    pub fn forget_strings(&mut self) {
        self.state.strings.truncate(self.state.known);
        self.state.functions = Functions::default();
    }

    /// Ends a run and returns its outputs.
    ///
    /// # Errors
    /// If a check failed or memory could not be allocated, or if the model returned an error.
    pub fn end(&mut self, status: i32, interface: &Interface) -> Result<Vec<Tensor>, RunError> {
        for (_, block) in std::mem::take(&mut self.state.used) {
            self.state.put(block);
        }
        if status == 0 {
            let outputs = self.state.outputs.drain(..);
            return outputs.map(|output| output.ok_or(RunError::Failed(status))).collect();
        }
        Err(match self.state.failure.take() {
            None => RunError::Failed(status),
            Some(HostError::Check(check, left, right)) => {
                RunError::Check { message: message(interface, check), left, right }
            }
            Some(HostError::Value(check, bytes, total)) => {
                RunError::Memory { message: message(interface, check), bytes, total }
            }
            Some(HostError::Function(error, check)) => {
                RunError::Function { message: message(interface, check.unwrap_or(-1)), error }
            }
            Some(HostError::Memory(bytes)) => RunError::Allocate {
                name: "intermediate values".to_owned(),
                reason: format!("{bytes} bytes could not be allocated"),
            },
            Some(HostError::Output(number, error)) => RunError::Allocate {
                name: format!("output '{}'", interface.outputs[number].name),
                reason: error.to_string(),
            },
        })
    }
}

/// A message of the interface, by its number.
fn message(interface: &Interface, number: i64) -> String {
    let message = usize::try_from(number).ok().and_then(|it| interface.checks.get(it));
    message.cloned().unwrap_or_else(|| "a check failed".to_owned())
}

impl State {
    fn put(&mut self, block: Tensor) {
        let size = block.shape()[0];
        match self.free.iter_mut().find(|(of, _)| *of == size) {
            Some((_, free)) => free.push(block),
            None => self.free.push((size, vec![block])),
        }
    }

    /// A new block; free blocks are released if there is not enough memory otherwise.
    fn new_block(&mut self, size: i64) -> Option<Tensor> {
        let block = || Tensor::zeros(TensorType::new(DType::U8, [size])).ok();
        block().or_else(|| {
            self.free.clear();
            block()
        })
    }

    fn take(&mut self, bytes: i64) -> Option<*mut c_void> {
        let size = size_class(bytes)?;
        let free = self.free.iter_mut().find(|(of, _)| *of == size);
        let free = free.and_then(|(_, free)| free.pop());
        let block = match free {
            Some(block) => block,
            None => self.new_block(size)?,
        };
        let mut block = block;
        let address = block.bytes_mut().as_mut_ptr();
        let at = self.used.partition_point(|(other, _)| *other < address as usize);
        self.used.insert(at, (address as usize, block));
        Some(address.cast())
    }
}

/// Block sizes are a quarter of a power of two apart, so that blocks can be reused by other runs.
fn size_class(bytes: i64) -> Option<i64> {
    let bytes = u64::try_from(bytes).ok()?.max(64);
    let step = (bytes.next_power_of_two() / 8).max(64);
    i64::try_from(bytes.checked_next_multiple_of(step)?).ok()
}

unsafe extern "C" fn allocate(host: *mut Host, bytes: i64) -> *mut c_void {
    // Safety: the model passes on the host it was called with, which nothing else uses concurrently.
    let state = unsafe { &mut (*host).state };
    state.take(bytes).unwrap_or_else(|| {
        state.failure.get_or_insert(HostError::Memory(bytes));
        std::ptr::null_mut()
    })
}

unsafe extern "C" fn release(host: *mut Host, block: *mut c_void) {
    // Safety: as above.
    let state = unsafe { &mut (*host).state };
    if let Ok(at) = state.used.binary_search_by_key(&(block as usize), |(address, _)| *address) {
        let (_, block) = state.used.remove(at);
        state.put(block);
    }
}

unsafe extern "C" fn output(host: *mut Host, number: i64, extents: *const i64) -> *mut c_void {
    // Safety: as above; there are as many extents as the output has dimensions.
    let (state, number) = unsafe { (&mut (*host).state, number as usize) };
    let Some((dtype, rank)) = state.ports.get(number).copied() else {
        return std::ptr::null_mut();
    };
    let extents = unsafe { std::slice::from_raw_parts(extents, rank) };
    let ty = TensorType::new(dtype, extents);
    let slot = &mut state.outputs[number];
    if let Some((start, bytes)) = state.placed[number] {
        // The tensor stands for the memory of the caller.
        let empty = Tensor::zeros(TensorType::new(dtype, vec![0; rank]));
        if let (Ok(found), Ok(empty)) = (ty.byte_size(), empty)
            && found == bytes
        {
            *slot = Some(empty);
            return start as *mut c_void;
        }
        return std::ptr::null_mut();
    }
    let tensor = match slot.take().filter(|tensor| *tensor.ty() == ty) {
        Some(tensor) => tensor,
        None => match Tensor::zeros(ty) {
            Ok(tensor) => tensor,
            Err(error) => {
                state.failure.get_or_insert(HostError::Output(number, error));
                return std::ptr::null_mut();
            }
        },
    };
    slot.insert(tensor).bytes_mut().as_mut_ptr().cast()
}

unsafe extern "C" fn fail(host: *mut Host, check: i64, left: i64, right: i64) {
    // Safety: as above.
    let state = unsafe { &mut (*host).state };
    // A model reports which value could not be allocated right after the allocation.
    match &mut state.failure {
        Some(HostError::Memory(_)) => state.failure = Some(HostError::Value(check, left, right)),
        // It reports in the same way which call has no result.
        Some(HostError::Function(_, reported)) => *reported = reported.or(Some(check)),
        Some(_) => {}
        None => state.failure = Some(HostError::Check(check, left, right)),
    }
}

unsafe extern "C" fn call(
    host: *mut Host,
    function: i64,
    count: i64,
    first: *const c_void,
    second: *const c_void,
    results: i64,
    result: *mut c_void,
) -> *mut c_void {
    // Safety: as above.
    let state = unsafe { &mut (*host).state };
    let number = usize::try_from(function).ok();
    let Some(function) = number.and_then(|number| state.known_functions.get(number)) else {
        return std::ptr::null_mut();
    };
    let operand = |(dtype, memory): (DType, *const c_void)| {
        let ty = TensorType::new(dtype, [count]);
        let bytes = ty.byte_size()?;
        // Safety: the model passes operands with as many elements as it says.
        let bytes = match bytes {
            0 => &[],
            _ => unsafe { std::slice::from_raw_parts(memory.cast(), bytes) },
        };
        Tensor::from_bytes(ty, bytes)
    };
    let operands = function.operands().into_iter().zip([first, second]).map(operand);
    let operands: Result<Vec<Tensor>, TensorError> = operands.collect();
    let found = operands.map_err(FunctionError::from).and_then(|operands| {
        let operands: Vec<&Tensor> = operands.iter().collect();
        state.functions.apply(function, &mut state.strings, &operands, &[results])
    });
    match found {
        Ok(found) => {
            let bytes = found.bytes();
            // Safety: the model passes memory for as many results as it says.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), result.cast(), bytes.len()) };
            host.cast()
        }
        Err(error) => {
            state.failure.get_or_insert(HostError::Function(error, None));
            std::ptr::null_mut()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_used_again() {
        let mut host = Host::new(&Interface::default());
        host.begin([].into_iter());
        let pointer: *mut Host = &mut *host;
        // Safety: the host is alive, and nothing else uses it.
        unsafe {
            let first = allocate(pointer, 1000);
            assert_eq!(first as usize % 64, 0);
            assert_ne!(allocate(pointer, 1000), first);
            release(pointer, first);
            assert_eq!(allocate(pointer, 990), first);
            assert!(allocate(pointer, -1).is_null());
        }
        assert!(host.end(0, &Interface::default()).is_ok());
    }

    #[test]
    fn outputs_that_cannot_be_are_named_with_their_type() {
        let port =
            Port { name: "y".into(), dtype: "f32".into(), shape: vec![-1], ..Port::default() };
        let checks = vec!["$.Nodes[0]: expected memory for the bytes of f32[N]".to_owned()];
        let interface = Interface { outputs: vec![port], checks, ..Interface::default() };
        let mut host = Host::new(&interface);
        let mut message = |run: &dyn Fn(*mut Host)| {
            host.begin([].into_iter());
            run(&mut *host);
            host.end(1, &interface).expect_err("no memory").to_string()
        };
        // Safety: the host is alive, nothing else uses it, and the output has one dimension.
        let found = message(&|host| unsafe {
            assert!(output(host, 0, [-3].as_ptr()).is_null());
            fail(host, 0, 0, 0);
        });
        assert_eq!(found, "cannot allocate output 'y': dimension 0 of f32[-3] is negative");
        // Safety: as above.
        let found = message(&|host| unsafe { assert!(allocate(host, i64::MAX).is_null()) });
        let bytes = i64::MAX;
        assert_eq!(
            found,
            format!("cannot allocate intermediate values: {bytes} bytes could not be allocated")
        );
        // Safety: as above.
        let found = message(&|host| unsafe {
            assert!(allocate(host, bytes).is_null());
            fail(host, 0, 5, bytes);
            fail(host, 1, 0, 0);
        });
        let expected = "$.Nodes[0]: expected memory for the bytes of f32[N]: 5 bytes, \
                        9223372036854775807 with other values, could not be allocated";
        assert_eq!(found, expected);
    }
}
