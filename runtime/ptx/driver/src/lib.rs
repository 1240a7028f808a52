//! A driver of NVIDIA GPUs that emulates them: the functions of `libcuda` that `irc-runtime` calls, on the interpreter of
//! PTX. A program loads it in place of the driver if a folder of `LD_LIBRARY_PATH` has it as `libcuda.so.1`.
//!
//! It checks its arguments as strictly as it can, and what kernels do: accesses out of bounds, reads of memory that was
//! never written, barriers and races are errors of the launch, with diagnostics on standard error.
//!
//! | variable | what | default |
//! |---|---|---|
//! | `IRC_CUDA_DEVICES` | number of GPUs, which have access to each other's memory | 1 |
//! | `IRC_CUDA_PEERS` | 0 if they have none | 1 |
//! | `IRC_CUDA_CAPABILITY` | compute capability | 8.0 |
//! | `IRC_CUDA_VERSION` | version of the driver | 12.4 |
//! | `IRC_CUDA_PROCESSORS` | processors of the GPU | 2 |
//! | `IRC_CUDA_MEMORY` | bytes of its memory | 2^30 |
//! | `IRC_CUDA_LOG` | file to which calls are appended | none |
//!
//! Kernels on several GPUs run together when the end of one is waited for.
#![allow(non_snake_case)]

use irc_diag::{Sink, Source, render};
use irc_ptx::{Argument, Buffer, Launch, Memory, Module, Program};
use std::{
    cell::Cell,
    env,
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    io::Write,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

/// `CUresult`, with the driver's texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Status(c_int, &'static CStr);

const SUCCESS: Status = Status(0, c"no error");
const INVALID_VALUE: Status = Status(1, c"invalid argument");
const OUT_OF_MEMORY: Status = Status(2, c"out of memory");
const NOT_INITIALIZED: Status = Status(3, c"initialization error");
const NO_DEVICE: Status = Status(100, c"no CUDA-capable device is detected");
const INVALID_DEVICE: Status = Status(101, c"invalid device ordinal");
const INVALID_CONTEXT: Status = Status(201, c"invalid device context");
const NO_BINARY: Status = Status(209, c"no kernel image is available for execution on the device");
const INVALID_PTX: Status = Status(218, c"a PTX JIT compilation failed");
const UNSUPPORTED_PTX: Status =
    Status(222, c"the provided PTX was compiled with an unsupported toolchain.");
const INVALID_HANDLE: Status = Status(400, c"invalid resource handle");
const NOT_FOUND: Status = Status(500, c"named symbol not found");
const ILLEGAL_ADDRESS: Status = Status(700, c"an illegal memory access was encountered");
const TOO_LARGE: Status = Status(720, c"too many blocks in cooperative launch");

const PEER_ACCESS: Status = Status(704, c"peer access is already enabled");
const NO_PEER_ACCESS: Status =
    Status(217, c"peer access is not supported between these two devices");

const ALL: [Status; 16] = [
    SUCCESS,
    INVALID_VALUE,
    OUT_OF_MEMORY,
    NOT_INITIALIZED,
    NO_DEVICE,
    INVALID_DEVICE,
    INVALID_CONTEXT,
    NO_BINARY,
    INVALID_PTX,
    UNSUPPORTED_PTX,
    INVALID_HANDLE,
    NOT_FOUND,
    ILLEGAL_ADDRESS,
    TOO_LARGE,
    PEER_ACCESS,
    NO_PEER_ACCESS,
];

/// Bytes of dynamic shared memory of a block that a kernel may be allowed.
fn max_shared() -> u64 {
    if Device::get().capability >= 90 { 227 << 10 } else { 163 << 10 }
}

/// Bytes of dynamic shared memory of a block without that.
const SHARED: u64 = 48 << 10;

/// `CU_MEMHOSTALLOC_DEVICEMAP`.
const ON_DEVICE: c_uint = 2;

/// Threads that a processor runs.
const THREADS: u32 = 2048;

/// The device that is emulated.
struct Device {
    count: c_int,
    has_peers: bool,
    /// 80 for 8.0.
    capability: u32,
    /// 12040 for 12.4.
    version: c_int,
    processors: u32,
    bytes: usize,
}

fn variable(name: &str) -> Option<String> {
    env::var(format!("IRC_CUDA_{name}")).ok()
}

/// `12.4` as 124.
fn decimal(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once('.')?;
    Some(major.parse::<u32>().ok()? * 10 + minor.parse::<u32>().ok()?)
}

impl Device {
    fn get() -> &'static Self {
        static DEVICE: OnceLock<Device> = OnceLock::new();
        DEVICE.get_or_init(|| {
            let number = |name| variable(name).and_then(|text| text.parse::<u32>().ok());
            let version = variable("VERSION").and_then(|text| decimal(&text)).unwrap_or(124);
            Self {
                count: number("DEVICES").map_or(1, |count| count.min(16) as c_int),
                has_peers: number("PEERS") != Some(0),
                capability: variable("CAPABILITY").and_then(|text| decimal(&text)).unwrap_or(80),
                version: (version / 10 * 1000 + version % 10 * 10) as c_int,
                processors: number("PROCESSORS").unwrap_or(2),
                bytes: number("MEMORY").unwrap_or(1 << 30) as usize,
            }
        })
    }
}

/// A kernel that is launched: its program, threads and shared memory of a block, blocks, and arguments.
struct Launched {
    program: Arc<Program>,
    block: [u32; 3],
    shared_bytes: u64,
    blocks: u32,
    arguments: Vec<Argument>,
}

/// Memory that is allocated.
struct Live {
    start: u64,
    buffer: Buffer,
    bytes: usize,
    /// Its GPU; `None` for memory of the host.
    device: Option<c_int>,
}

/// A function of a loaded module.
struct Function {
    module: usize,
    program: Arc<Program>,
    shared_bytes: u64,
}

/// The state of the driver.
#[derive(Default)]
struct State {
    is_initialised: bool,
    /// How often the contexts are retained.
    retained: u32,
    memory: Memory,
    live: Vec<Live>,
    /// Pairs of GPUs of which the first has access to the memory of the second.
    connected: Vec<(c_int, c_int)>,
    /// Kernels that are launched and have not run, on several GPUs, and the events that follow them.
    launched: Vec<Launched>,
    marked: Vec<usize>,
    /// The texts of modules, which have no syntax errors.
    modules: Vec<Option<Source>>,
    functions: Vec<Function>,
    /// The value of the clocks after the last launch.
    clock: u64,
    /// Events, each with the value of the clocks when it was recorded last.
    events: Vec<Option<u64>>,
    /// The error of a launch, which later calls report.
    fault: Option<Status>,
}

thread_local! {
    /// The context of this thread: one more than the number of the GPU, or 0.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

fn state() -> MutexGuard<'static, State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    STATE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Appends a call to the log.
fn log(call: &str) {
    let Some(path) = variable("LOG") else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    // Without a log, a test that reads it fails.
    let _ = file.and_then(|mut file| writeln!(file, "{call}"));
}

/// The result of a call that needs the context.
fn within(call: impl FnOnce(&mut State) -> Result<(), Status>) -> c_int {
    let mut state = state();
    let status = match (state.is_initialised, state.fault) {
        (false, _) => NOT_INITIALIZED,
        (true, Some(fault)) => fault,
        (true, None) if CURRENT.get() == 0 || state.retained == 0 => INVALID_CONTEXT,
        (true, None) => call(&mut state).err().unwrap_or(SUCCESS),
    };
    status.0
}

/// The GPU of this thread.
fn current() -> c_int {
    CURRENT.get() as c_int - 1
}

/// Whether there is a GPU of a number.
fn is_device(device: c_int) -> bool {
    (0..Device::get().count).contains(&device)
}

/// Writes a result.
///
/// # Safety
/// The place is null or valid.
unsafe fn put<T>(place: *mut T, value: T) -> Result<(), Status> {
    if place.is_null() {
        return Err(INVALID_VALUE);
    }
    // Safety: the place is valid.
    unsafe { place.write(value) };
    Ok(())
}

impl State {
    /// Memory by its address.
    fn live(&self, address: u64) -> Result<(Buffer, usize), Status> {
        let found = self.live.iter().find(|live| live.start == address);
        found.map(|live| (live.buffer, live.bytes)).ok_or(INVALID_VALUE)
    }

    /// The address of memory that is also the host's.
    fn shared(&self, host: *mut c_void) -> Option<u64> {
        let is_there =
            |buffer: Buffer| self.memory.bytes(buffer).as_ptr() == host.cast_const().cast();
        self.live.iter().find(|live| is_there(live.buffer)).map(|live| live.start)
    }

    fn function(&mut self, handle: *mut c_void) -> Result<&mut Function, Status> {
        let found = (handle as usize).checked_sub(1).and_then(|at| self.functions.get_mut(at));
        let found =
            found.filter(|found| self.modules.get(found.module).is_some_and(Option::is_some));
        found.ok_or(INVALID_HANDLE)
    }

    /// An event that is not destroyed.
    fn event(&mut self, handle: *mut c_void) -> Result<&mut Option<u64>, Status> {
        let found = (handle as usize).checked_sub(1).and_then(|at| self.events.get_mut(at));
        found.filter(|event| event.is_some()).ok_or(INVALID_HANDLE)
    }

    fn load(&mut self, text: &str) -> Result<usize, (Status, String)> {
        let directive = |name: &str| {
            let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
            Some(line.trim().to_owned())
        };
        let device = Device::get();
        let version = directive(".version").and_then(|version| decimal(&version)).unwrap_or(0);
        // Version n.m of PTX is that of CUDA n+4.m.
        if (version + 40) / 10 * 1000 + version % 10 * 10 > device.version as u32 {
            return Err((UNSUPPORTED_PTX, String::new()));
        }
        let target = directive(".target").unwrap_or_default();
        let target = target.trim_start_matches("sm_").trim_end_matches('a');
        if target.parse::<u32>().map_or(true, |target| target > device.capability) {
            return Err((NO_BINARY, String::new()));
        }
        let source = Source::new("module.ptx", text);
        let mut sink = Sink::new();
        if Module::parse(&source, &mut sink).is_none() {
            let message = render(&source, &sink.into_diagnostics(), false, 100);
            return Err((INVALID_PTX, message));
        }
        self.modules.push(Some(source));
        Ok(self.modules.len())
    }

    /// Runs the kernels that are launched, all together.
    fn run(&mut self) {
        let mut launched = std::mem::take(&mut self.launched).into_iter();
        let Some(first) = launched.next() else { return };
        let beside: Vec<_> = launched.map(|other| (other.blocks, other.arguments)).collect();
        let blocks = beside.iter().map(|(blocks, _)| *blocks).sum::<u32>() + first.blocks;
        let launch = Launch {
            grid: [first.blocks, 1, 1],
            block: first.block,
            shared_bytes: first.shared_bytes,
            arguments: first.arguments,
            beside,
            resident: usize::try_from(blocks).ok(),
            clock: self.clock,
            ..Launch::default()
        };
        let report = launch.run(&first.program, &mut self.memory);
        self.clock = report.clock;
        for event in std::mem::take(&mut self.marked) {
            self.events[event] = self.events[event].map(|_| report.clock);
        }
        if !report.is_clean() {
            eprint!("{}", render(first.program.source(), &report.diagnostics, false, 100));
            self.fault = Some(ILLEGAL_ADDRESS);
        }
    }

    /// Blocks that a processor runs.
    fn blocks(&self, threads: u32, shared_bytes: u64) -> u32 {
        let by_shared = max_shared() / shared_bytes.max(1);
        (THREADS / threads.max(1)).min(u32::try_from(by_shared).unwrap_or(u32::MAX)).min(32)
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: c_uint) -> c_int {
    log("cuInit");
    if flags != 0 {
        return INVALID_VALUE.0;
    }
    if Device::get().count == 0 {
        return NO_DEVICE.0;
    }
    state().is_initialised = true;
    SUCCESS.0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    // Safety: as the driver's interface states.
    unsafe { put(version, Device::get().version) }.err().unwrap_or(SUCCESS).0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(status: c_int, text: *mut *const c_char) -> c_int {
    let Some(known) = ALL.iter().find(|known| known.0 == status) else { return INVALID_VALUE.0 };
    // Safety: as the driver's interface states.
    unsafe { put(text, known.1.as_ptr()) }.err().unwrap_or(SUCCESS).0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    if !state().is_initialised {
        return NOT_INITIALIZED.0;
    }
    if !is_device(ordinal) {
        return INVALID_DEVICE.0;
    }
    // Safety: as the driver's interface states.
    unsafe { put(device, ordinal) }.err().unwrap_or(SUCCESS).0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    device: c_int,
) -> c_int {
    if !is_device(device) {
        return INVALID_DEVICE.0;
    }
    let found = Device::get();
    let known = match attribute {
        16 => found.processors,
        75 => found.capability / 10,
        76 => found.capability % 10,
        95 => 1,
        97 => max_shared() as u32,
        _ => return INVALID_VALUE.0,
    };
    // Safety: as the driver's interface states.
    unsafe { put(value, known as c_int) }.err().unwrap_or(SUCCESS).0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> c_int {
    if !is_device(device) {
        return INVALID_DEVICE.0;
    }
    let mut state = state();
    if !state.is_initialised {
        return NOT_INITIALIZED.0;
    }
    state.retained += 1;
    // Safety: as the driver's interface states.
    unsafe { put(context, (device + 1) as usize as *mut c_void) }.err().unwrap_or(SUCCESS).0
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int {
    let mut state = state();
    if !is_device(device) || state.retained == 0 {
        return INVALID_CONTEXT.0;
    }
    state.retained -= 1;
    let modules = state.modules.iter().flatten().count();
    log(&format!("cuDevicePrimaryCtxRelease live={} modules={modules}", state.live.len()));
    SUCCESS.0
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> c_int {
    if !is_device(context as usize as c_int - 1) {
        return INVALID_CONTEXT.0;
    }
    CURRENT.set(context as usize);
    SUCCESS.0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    // Safety: as the driver's interface states.
    unsafe { put(count, Device::get().count) }.err().unwrap_or(SUCCESS).0
}

/// Whether two GPUs, which are not the same, have access to each other's memory.
fn has_access(device: c_int, peer: c_int) -> Result<c_int, Status> {
    match is_device(device) && is_device(peer) {
        true => Ok(c_int::from(device != peer && Device::get().has_peers)),
        false => Err(INVALID_DEVICE),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> c_int {
    // Safety: as the driver's interface states.
    has_access(device, peer).and_then(|found| unsafe { put(can, found) }).err().unwrap_or(SUCCESS).0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetP2PAttribute(
    value: *mut c_int,
    attribute: c_int,
    device: c_int,
    peer: c_int,
) -> c_int {
    if attribute != 3 {
        return INVALID_VALUE.0;
    }
    // Safety: as the driver's interface states.
    unsafe { cuDeviceCanAccessPeer(value, device, peer) }
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxEnablePeerAccess(peer: *mut c_void, flags: c_uint) -> c_int {
    within(|state| {
        let link = (current(), peer as usize as c_int - 1);
        if flags != 0 || has_access(link.0, link.1)? == 0 {
            return Err(NO_PEER_ACCESS);
        }
        if state.connected.contains(&link) {
            return Err(PEER_ACCESS);
        }
        log(&format!("cuCtxEnablePeerAccess {} {}", link.0, link.1));
        state.connected.push(link);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> c_int {
    within(|state| {
        state.run();
        state.fault.map_or(Ok(()), Err)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut *mut c_void,
    image: *const c_void,
    count: c_uint,
    options: *mut c_int,
    values: *mut *mut c_void,
) -> c_int {
    log("cuModuleLoadDataEx");
    within(|state| {
        if image.is_null() {
            return Err(INVALID_VALUE);
        }
        // Safety: PTX ends with a zero.
        let text = unsafe { CStr::from_ptr(image.cast()) }.to_str().map_err(|_| INVALID_PTX)?;
        let (status, message) = match state.load(text) {
            // Safety: as the driver's interface states.
            Ok(handle) => return unsafe { put(module, handle as *mut c_void) },
            Err(error) => error,
        };
        // Safety: there are so many options, and a buffer for errors has the size that another states.
        unsafe {
            let given = |option: c_int| {
                let mut all = (0..count as usize).filter(|at| *options.add(*at) == option);
                all.next().map(|at| *values.add(at))
            };
            if let (Some(buffer), Some(bytes)) = (given(5), given(6)) {
                let length = message.len().min((bytes as usize).saturating_sub(1));
                std::ptr::copy_nonoverlapping(message.as_ptr(), buffer.cast(), length);
                buffer.cast::<u8>().add(length).write(0);
            }
        }
        Err(status)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(module: *mut c_void) -> c_int {
    within(|state| {
        let at = (module as usize).checked_sub(1).ok_or(INVALID_HANDLE)?;
        let found = state.modules.get_mut(at).and_then(Option::take);
        found.map(drop).ok_or(INVALID_HANDLE)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(
    function: *mut *mut c_void,
    module: *mut c_void,
    name: *const c_char,
) -> c_int {
    within(|state| {
        let at = (module as usize).checked_sub(1).ok_or(INVALID_HANDLE)?;
        let loaded = state.modules.get(at).and_then(Option::as_ref).ok_or(INVALID_HANDLE)?;
        // Safety: names end with a zero.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| NOT_FOUND)?;
        let mut sink = Sink::new();
        let program = Module::parse(loaded, &mut sink)
            .and_then(|module| module.compile(name, &mut sink))
            .map(Arc::new)
            .ok_or(NOT_FOUND)?;
        state.functions.push(Function { module: at, program, shared_bytes: SHARED });
        // Safety: as the driver's interface states.
        unsafe { put(function, state.functions.len() as *mut c_void) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetAttribute(function: *mut c_void, attribute: c_int, value: c_int) -> c_int {
    within(|state| {
        let value = u64::try_from(value).ok().filter(|value| *value <= max_shared());
        match value.filter(|_| attribute == 8) {
            Some(bytes) => {
                state.function(function)?.shared_bytes = bytes.max(SHARED);
                Ok(())
            }
            None => Err(INVALID_VALUE),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    function: *mut c_void,
) -> c_int {
    within(|state| {
        let program = &state.function(function)?.program;
        let known = match attribute {
            1 => program.shared_bytes() as c_int,
            // A thread of the emulator has those of the text.
            4 => program.registers() as c_int,
            _ => return Err(INVALID_VALUE),
        };
        // Safety: as the driver's interface states.
        unsafe { put(value, known) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    function: *mut c_void,
    threads: c_int,
    shared_bytes: usize,
) -> c_int {
    within(|state| {
        let own = state.function(function)?.program.shared_bytes();
        let threads = u32::try_from(threads).map_err(|_| INVALID_VALUE)?;
        let count = state.blocks(threads, own + shared_bytes as u64);
        // Safety: as the driver's interface states.
        unsafe { put(blocks, count as c_int) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int {
    within(|state| {
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        let own = state.live.iter().filter(|live| live.device == Some(current()));
        let used: usize = own.map(|live| live.bytes).sum();
        if used.saturating_add(bytes) > Device::get().bytes {
            return Err(OUT_OF_MEMORY);
        }
        let name = format!("memory {}", state.live.len());
        let buffer = state.memory.add_unwritten(name, bytes).map_err(|_| OUT_OF_MEMORY)?;
        let start = state.memory.address(buffer);
        state.live.push(Live { start, buffer, bytes, device: Some(current()) });
        log(&format!("cuMemAlloc {bytes}"));
        // Safety: as the driver's interface states.
        unsafe { put(address, start) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: u64) -> c_int {
    within(|state| {
        state.live(address)?;
        state.live.retain(|live| live.start != address);
        Ok(())
    })
}

/// Memory of the emulated GPU is memory of this machine too.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostAlloc(place: *mut *mut c_void, bytes: usize, flags: c_uint) -> c_int {
    within(|state| {
        if bytes == 0 || flags != ON_DEVICE {
            return Err(INVALID_VALUE);
        }
        // The contents are arbitrary.
        let buffer = state.memory.add("memory of the host", vec![0xcd; bytes]);
        let start = state.memory.address(buffer);
        state.live.push(Live { start, buffer, bytes, device: None });
        log(&format!("cuMemHostAlloc {bytes}"));
        let host = state.memory.bytes_mut(buffer).as_mut_ptr();
        // Safety: as the driver's interface states.
        unsafe { put(place, host.cast()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostGetDevicePointer_v2(
    address: *mut u64,
    host: *mut c_void,
    flags: c_uint,
) -> c_int {
    within(|state| {
        let start = state.shared(host).filter(|_| flags == 0).ok_or(INVALID_VALUE)?;
        // Safety: as the driver's interface states.
        unsafe { put(address, start) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeHost(host: *mut c_void) -> c_int {
    within(|state| {
        let address = state.shared(host).ok_or(INVALID_VALUE)?;
        state.live.retain(|live| live.start != address);
        Ok(())
    })
}

/// Writes to memory that is allocated.
fn write(address: u64, bytes: &[u8]) -> c_int {
    within(|state| {
        let (buffer, size) = state.live(address)?;
        if bytes.len() > size {
            return Err(INVALID_VALUE);
        }
        state.memory.write(buffer, 0, bytes);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8_v2(address: u64, value: u8, bytes: usize) -> c_int {
    log(&format!("cuMemsetD8 {bytes}"));
    write(address, &vec![value; bytes])
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoD_v2(address: u64, from: *const c_void, bytes: usize) -> c_int {
    log(&format!("cuMemcpyHtoD {bytes}"));
    if from.is_null() {
        return INVALID_VALUE.0;
    }
    // Safety: so many bytes can be read.
    write(address, unsafe { std::slice::from_raw_parts(from.cast(), bytes) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, address: u64, bytes: usize) -> c_int {
    log(&format!("cuMemcpyDtoH {bytes}"));
    within(|state| {
        let (buffer, size) = state.live(address)?;
        if to.is_null() || bytes > size {
            return Err(INVALID_VALUE);
        }
        let from = state.memory.bytes(buffer).as_ptr();
        // Safety: so many bytes can be written.
        unsafe { std::ptr::copy_nonoverlapping(from, to.cast(), bytes) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(event: *mut *mut c_void, flags: c_uint) -> c_int {
    within(|state| {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        state.events.push(Some(0));
        // Safety: as the driver's interface states.
        unsafe { put(event, state.events.len() as *mut c_void) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: *mut c_void, stream: *mut c_void) -> c_int {
    within(|state| {
        let now = state.clock;
        *state.event(event)? = Some(now);
        if !state.launched.is_empty() {
            state.marked.push(event as usize - 1);
        }
        stream.is_null().then_some(()).ok_or(INVALID_VALUE)
    })
}

/// An instruction takes a nanosecond.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime(
    milliseconds: *mut f32,
    begin: *mut c_void,
    end: *mut c_void,
) -> c_int {
    within(|state| {
        let [begin, end] = [*state.event(begin)?, *state.event(end)?];
        let passed = end.zip(begin).map_or(0, |(end, begin)| end.saturating_sub(begin));
        // Safety: as the driver's interface states.
        unsafe { put(milliseconds, passed as f32 / 1e6) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: *mut c_void) -> c_int {
    within(|state| {
        *state.event(event)? = None;
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchCooperativeKernel(
    function: *mut c_void,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    stream: *mut c_void,
    parameters: *mut *mut c_void,
) -> c_int {
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    log(&format!("cuLaunchCooperativeKernel grid={grid:?} block={block:?} shared={shared_bytes}"));
    within(|state| {
        if !stream.is_null() || parameters.is_null() {
            return Err(INVALID_VALUE);
        }
        let found = state.function(function)?;
        let (program, allowed) = (found.program.clone(), found.shared_bytes);
        if u64::from(shared_bytes) > allowed {
            return Err(INVALID_VALUE);
        }
        let size = |of: [u32; 3]| of.iter().map(|extent| u64::from(*extent)).product::<u64>();
        let threads =
            u32::try_from(size(block)).ok().filter(|threads| (1..=1024).contains(threads));
        let threads = threads.ok_or(INVALID_VALUE)?;
        let each = state.blocks(threads, program.shared_bytes() + u64::from(shared_bytes));
        if size(grid) == 0 || size(grid) != u64::from(grid[0]) {
            return Err(INVALID_VALUE);
        }
        if size(grid) > u64::from(each * Device::get().processors) {
            return Err(TOO_LARGE);
        }
        let mut arguments = vec![];
        for (at, parameter) in program.parameters().iter().enumerate() {
            // Safety: there is an argument for each parameter.
            let argument = unsafe { *parameters.add(at) };
            if parameter.size != 8 || argument.is_null() {
                return Err(INVALID_VALUE);
            }
            // Safety: the argument has the size of the parameter.
            let address = unsafe { argument.cast::<u64>().read() };
            let live = state.live.iter().find(|live| live.start == address);
            let owner = live.ok_or(INVALID_VALUE)?.device.unwrap_or(current());
            if owner != current() && !state.connected.contains(&(current(), owner)) {
                return Err(ILLEGAL_ADDRESS);
            }
            arguments.push(Argument::U64(address));
        }
        let shared_bytes = shared_bytes.into();
        let blocks = grid[0];
        state.launched.push(Launched { program, block, shared_bytes, blocks, arguments });
        if Device::get().count == 1 {
            state.run();
        }
        Ok(())
    })
}
