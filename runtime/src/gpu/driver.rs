//! The driver of NVIDIA GPUs, by its own interface: `libcuda`, loaded when it is needed.
use libloading::os::unix::Library;
use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    path::Path,
    ptr::{NonNull, null_mut},
};

/// The driver's library.
const LIBRARY: &str = "libcuda.so.1";

/// `CUdevice_attribute`.
const PROCESSORS: c_int = 16;
const MAJOR: c_int = 75;
const MINOR: c_int = 76;
const COOPERATIVE: c_int = 95;
const SHARED_BYTES: c_int = 97;

/// `CUfunction_attribute`: bytes of shared memory that a launch may request.
const MAX_DYNAMIC_SHARED: c_int = 8;

/// `CUfunction_attribute`: registers of a thread.
const REGISTERS: c_int = 4;

/// `CU_MEMHOSTALLOC_DEVICEMAP`: the GPU has access to the memory.
const ON_DEVICE: c_uint = 2;

/// `CUjit_option`: a buffer for errors, and its size.
const ERROR_LOG: c_int = 5;
const ERROR_LOG_BYTES: c_int = 6;

/// `CUresult`: there is no GPU.
const NO_DEVICE: c_int = 100;

/// `CUresult`: a context has access to the memory of another already.
const HAS_ACCESS: c_int = 704;

/// `CUdevice_P2PAttribute`: atomic operations on the memory of a peer.
const PEER_ATOMICS: c_int = 3;

/// `CUresult`: the driver does not know this version of PTX.
const UNSUPPORTED_PTX: c_int = 222;

/// What writes a tensor map, and the first version of the driver in which its strides have today's unit.
const TENSOR_MAPS: &str = "tensormap.replace";
const TENSOR_MAPS_SINCE: c_int = 12050;

type Handle = *mut c_void;
type Address = u64;
type Pointers = *mut *mut c_void;

/// The driver's functions that are used, loaded by name.
macro_rules! functions {
    ($($field:ident $name:literal ($($argument:ty),*);)*) => {
        #[repr(C)]
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            const NAMES: [&str; [$($name),*].len()] = [$($name),*];

            /// The functions, given their addresses in the order of their names.
            ///
            /// # Safety
            /// The functions must have these signatures.
            unsafe fn of(addresses: [NonNull<c_void>; Self::NAMES.len()]) -> Self {
                // Safety: a struct of pointers to functions has the layout of an array of pointers that are not null.
                unsafe { std::mem::transmute(addresses) }
            }
        }
    };
}

functions! {
    init "cuInit" (c_uint);
    version "cuDriverGetVersion" (*mut c_int);
    describe "cuGetErrorString" (c_int, *mut *const c_char);
    count "cuDeviceGetCount" (*mut c_int);
    device "cuDeviceGet" (*mut c_int, c_int);
    reaches "cuDeviceCanAccessPeer" (*mut c_int, c_int, c_int);
    between "cuDeviceGetP2PAttribute" (*mut c_int, c_int, c_int, c_int);
    connect "cuCtxEnablePeerAccess" (Handle, c_uint);
    attribute "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    retain "cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
    release "cuDevicePrimaryCtxRelease_v2" (c_int);
    make_current "cuCtxSetCurrent" (Handle);
    wait "cuCtxSynchronize" ();
    load "cuModuleLoadDataEx" (*mut Handle, *const c_void, c_uint, *mut c_int, Pointers);
    unload "cuModuleUnload" (Handle);
    entry "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    set_attribute "cuFuncSetAttribute" (Handle, c_int, c_int);
    get_attribute "cuFuncGetAttribute" (*mut c_int, c_int, Handle);
    occupancy "cuOccupancyMaxActiveBlocksPerMultiprocessor" (*mut c_int, Handle, c_int, usize);
    allocate "cuMemAlloc_v2" (*mut Address, usize);
    free "cuMemFree_v2" (Address);
    share "cuMemHostAlloc" (Pointers, usize, c_uint);
    shared "cuMemHostGetDevicePointer_v2" (*mut Address, *mut c_void, c_uint);
    unshare "cuMemFreeHost" (*mut c_void);
    clear "cuMemsetD8_v2" (Address, u8, usize);
    to_device "cuMemcpyHtoD_v2" (Address, *const c_void, usize);
    to_host "cuMemcpyDtoH_v2" (*mut c_void, Address, usize);
    event "cuEventCreate" (*mut Handle, c_uint);
    mark "cuEventRecord" (Handle, Handle);
    elapsed "cuEventElapsedTime" (*mut f32, Handle, Handle);
    forget "cuEventDestroy_v2" (Handle);
    launch "cuLaunchCooperativeKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, Pointers
    );
}

/// A GPU, in its primary context.
pub struct Gpu {
    functions: Functions,
    device: c_int,
    context: Handle,
    // Dropped last: it contains the functions.
    _library: Library,
}

/// A kernel on a GPU: functions that are launched one after the other.
pub struct Kernel {
    module: Handle,
    functions: Vec<Handle>,
    /// What marks the begin and the end of a run.
    events: Vec<Handle>,
}

/// Memory of a GPU, or of this machine if there is an address of it, which the GPU writes too, so that it is left after a
/// fault.
#[derive(Clone, Copy)]
pub struct Memory {
    address: Address,
    bytes: usize,
    host: *mut c_void,
}

/// Number and size of the blocks of a launch.
#[derive(Clone, Copy)]
pub struct Shape {
    /// The number of blocks; `None` for as many as run at once.
    pub blocks: Option<u32>,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: u64,
}

impl Functions {
    /// Loads all functions: a loop, as the library of the runtime must stay small.
    fn load(library: &Library) -> Result<Self, String> {
        let mut addresses = [NonNull::dangling(); Self::NAMES.len()];
        for (name, address) in Self::NAMES.iter().zip(&mut addresses) {
            // Safety: only the address is used.
            let found = unsafe { library.get::<*mut c_void>(*name) };
            let found = found.ok().and_then(|found| NonNull::new(*found));
            *address = found.ok_or_else(|| {
                format!("the NVIDIA driver is too old: it has no function {name}")
            })?;
        }
        // Safety: the signatures are those that the driver documents.
        Ok(unsafe { Self::of(addresses) })
    }
}

impl Gpu {
    /// Loads the driver, and takes the GPU of a number.
    ///
    /// # Errors
    /// No driver, one that is too old, or no GPU.
    pub fn open(number: u32) -> Result<Self, String> {
        // Safety: the driver's initialisers are the vendor's.
        let library = unsafe { Library::open(Some(Path::new(LIBRARY)), libc::RTLD_NOW) };
        let library = library.map_err(|_| {
            format!("there is no NVIDIA driver on this machine: {LIBRARY} cannot be loaded")
        })?;
        let functions = Functions::load(&library)?;
        let mut gpu = Self { functions, device: 0, context: null_mut(), _library: library };
        // Safety: the functions have these signatures, and the places are valid.
        unsafe {
            match (gpu.functions.init)(0) {
                NO_DEVICE => return Err("there is no NVIDIA GPU on this machine".to_owned()),
                result => gpu.check("the GPU cannot be used", result)?,
            }
            let mut device = 0;
            gpu.check(
                "no GPU was found",
                (gpu.functions.device)(&raw mut device, number as c_int),
            )?;
            let mut context = null_mut();
            let result = (gpu.functions.retain)(&raw mut context, device);
            gpu.check("the context of the GPU", result)?;
            (gpu.device, gpu.context) = (device, context);
        }
        gpu.enter()?;
        Ok(gpu)
    }

    /// The number of GPUs.
    ///
    /// # Errors
    /// The driver's.
    pub fn count(&self) -> Result<u32, String> {
        let mut count = 0;
        // Safety: the count is a valid place.
        let result = unsafe { (self.functions.count)(&raw mut count) };
        self.check("the number of GPUs", result)?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// Whether kernels of this GPU can use the memory of another, by atomic operations too.
    ///
    /// # Errors
    /// The driver's.
    pub fn reaches(&self, peer: &Gpu) -> Result<bool, String> {
        let (mut reaches, mut atomics) = (0, 0);
        // Safety: the places are valid.
        unsafe {
            let result = (self.functions.reaches)(&raw mut reaches, self.device, peer.device);
            self.check("access to the memory of another GPU", result)?;
            if reaches != 0 {
                let between = self.functions.between;
                let result = between(&raw mut atomics, PEER_ATOMICS, self.device, peer.device);
                self.check("access to the memory of another GPU", result)?;
            }
        }
        Ok(reaches != 0 && atomics != 0)
    }

    /// Lets kernels of this GPU use the memory of another.
    ///
    /// # Errors
    /// The driver's.
    pub fn connect(&self, peer: &Gpu) -> Result<(), String> {
        self.enter()?;
        // Safety: the contexts are retained.
        match unsafe { (self.functions.connect)(peer.context, 0) } {
            HAS_ACCESS => Ok(()),
            result => self.check("access to the memory of another GPU", result),
        }
    }

    /// Makes the GPU that of this thread.
    ///
    /// # Errors
    /// The driver's.
    pub fn enter(&self) -> Result<(), String> {
        // Safety: the context is retained.
        let result = unsafe { (self.functions.make_current)(self.context) };
        self.check("the context of the GPU", result)
    }

    /// The error of a result of the driver.
    fn check(&self, what: &str, result: c_int) -> Result<(), String> {
        if result == 0 {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        // Safety: the text is written on success; it is the driver's own, and ends with a zero.
        let text = unsafe {
            match (self.functions.describe)(result, &raw mut text) {
                0 if !text.is_null() => CStr::from_ptr(text).to_string_lossy().into_owned(),
                _ => "unknown".to_owned(),
            }
        };
        Err(format!("{what}: the NVIDIA driver reports error {result} ({text})"))
    }

    fn attribute(&self, attribute: c_int) -> Result<u32, String> {
        let mut value = 0;
        // Safety: the value is a valid place.
        let result = unsafe { (self.functions.attribute)(&raw mut value, attribute, self.device) };
        self.check("a property of the GPU", result)?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// The compute capability: 80, 90, ...
    ///
    /// # Errors
    /// The driver's.
    pub fn capability(&self) -> Result<u32, String> {
        Ok(self.attribute(MAJOR)? * 10 + self.attribute(MINOR)?)
    }

    /// Whether the driver knows how kernels write tensor maps.
    ///
    /// # Errors
    /// The driver's.
    pub fn has_tensor_maps(&self) -> Result<bool, String> {
        Ok(self.version()? >= TENSOR_MAPS_SINCE)
    }

    /// The version of the driver: 12050 for that of CUDA 12.5.
    fn version(&self) -> Result<c_int, String> {
        let mut version = 0;
        // Safety: the version is a valid place.
        let known = unsafe { (self.functions.version)(&raw mut version) };
        self.check("the version of the driver", known)?;
        Ok(version)
    }

    /// Compiles PTX for the GPU, and finds its entry points.
    ///
    /// # Errors
    /// PTX for another architecture, or that the driver does not compile.
    pub fn load(&self, ptx: &str, entries: &[String]) -> Result<Kernel, String> {
        let capability = self.capability()?;
        let own =
            format!("this GPU has compute capability {}.{}", capability / 10, capability % 10);
        if let Some(target) = target(ptx).filter(|target| !target.runs_on(capability)) {
            let suffix = if target.is_exact { "a" } else { "" };
            return Err(format!("the kernel is for sm_{}{suffix}, and {own}", target.capability));
        }
        if ptx.contains(TENSOR_MAPS) && !self.has_tensor_maps()? {
            return Err(format!(
                "the NVIDIA driver is too old for the tensor maps of the kernel: it is that of CUDA {}, and that of \
                 CUDA {} is needed",
                decimal(self.version()?),
                decimal(TENSOR_MAPS_SINCE)
            ));
        }
        let text = CString::new(ptx).map_err(|_| "the PTX contains a zero byte".to_owned())?;
        let mut log = vec![0u8; 1 << 14];
        let mut options = [ERROR_LOG, ERROR_LOG_BYTES];
        let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), log.len() as *mut c_void];
        let mut module = null_mut();
        // Safety: the text ends with a zero; the options are those of the driver's interface, and the log has its size.
        let result = unsafe {
            (self.functions.load)(
                &raw mut module,
                text.as_ptr().cast(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if result == UNSUPPORTED_PTX {
            let version = decimal(self.version()?);
            return Err(format!(
                "the NVIDIA driver is too old for the PTX: it is that of CUDA {version}"
            ));
        }
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
        let log = String::from_utf8_lossy(&log[..end]);
        self.check("compiling the PTX", result)
            .map_err(|error| format!("{error}; {own}; {}", log.trim()))?;
        let mut kernel = Kernel { module, functions: vec![], events: vec![] };
        match self.complete(&mut kernel, entries) {
            Ok(()) => Ok(kernel),
            Err(error) => {
                self.unload(&kernel);
                Err(error)
            }
        }
    }

    /// Finds the entry points of a kernel, and creates its events.
    fn complete(&self, kernel: &mut Kernel, entries: &[String]) -> Result<(), String> {
        for entry in entries {
            kernel.functions.push(self.entry(kernel.module, entry)?);
        }
        for _ in 0..2 {
            let mut event = null_mut();
            // Safety: the event is a valid place.
            let result = unsafe { (self.functions.event)(&raw mut event, 0) };
            self.check("an event of the GPU", result)?;
            kernel.events.push(event);
        }
        Ok(())
    }

    fn entry(&self, module: Handle, name: &str) -> Result<Handle, String> {
        let name = CString::new(name).map_err(|_| "the entry point has no valid name")?;
        let mut function = null_mut();
        // Safety: the module is loaded, and the name ends with a zero.
        let result = unsafe { (self.functions.entry)(&raw mut function, module, name.as_ptr()) };
        self.check("the entry point of the kernel", result)?;
        Ok(function)
    }

    /// The number of blocks of every cooperative launch of a kernel, all of which run at once.
    ///
    /// # Errors
    /// A kernel that does not fit the GPU, with the numbers.
    pub fn blocks(&self, kernel: &Kernel, shape: Shape) -> Result<u32, String> {
        let (shared, most) = (shape.shared_bytes, self.attribute(SHARED_BYTES)?);
        if shared > u64::from(most) {
            return Err(format!(
                "the kernel needs {shared} bytes of shared memory, and a block of this GPU has {most}"
            ));
        }
        if self.attribute(COOPERATIVE)? == 0 {
            return Err("this GPU has no cooperative launches".to_owned());
        }
        let processors = self.attribute(PROCESSORS)?;
        let mut least = u32::MAX;
        for function in &kernel.functions {
            least = least.min(self.blocks_of(*function, shape, processors)?);
        }
        Ok(least)
    }

    /// As [`Gpu::blocks`], of one function.
    fn blocks_of(&self, function: Handle, shape: Shape, processors: u32) -> Result<u32, String> {
        let (threads, shared) = (shape.threads, shape.shared_bytes);
        let (mut each, mut registers) = (0, 0);
        // Safety: the function is one of a loaded module, and the places are valid.
        unsafe {
            let allowed =
                (self.functions.set_attribute)(function, MAX_DYNAMIC_SHARED, shared as c_int);
            self.check("the shared memory of the kernel", allowed)?;
            let found = (self.functions.occupancy)(
                &raw mut each,
                function,
                threads as c_int,
                shared as usize,
            );
            self.check("the number of blocks that run at once", found)?;
            let known = (self.functions.get_attribute)(&raw mut registers, REGISTERS, function);
            self.check("the registers of the kernel", known)?;
        }
        let all = processors * u32::try_from(each).unwrap_or(0);
        match shape.blocks.unwrap_or(all) {
            0 => Err("this GPU cannot run a block of the kernel".to_owned()),
            blocks if blocks > all => Err(format!(
                "the kernel needs {blocks} blocks that run at once, and this GPU runs {all}: {each} of {threads} threads \
                 with {registers} registers each and {shared} bytes of shared memory on each processor"
            )),
            blocks => Ok(blocks),
        }
    }

    /// Launches one of the functions of a kernel cooperatively, on memory for each of its parameters.
    ///
    /// # Errors
    /// A function that cannot be launched.
    pub fn start(
        &self,
        (kernel, number): (&Kernel, usize),
        blocks: u32,
        shape: Shape,
        memory: &[Memory],
    ) -> Result<(), String> {
        let Some(function) = kernel.functions.get(number) else { return Ok(()) };
        let mut addresses: Vec<Address> = memory.iter().map(|memory| memory.address).collect();
        let mut arguments: Vec<*mut c_void> =
            addresses.iter_mut().map(|address| std::ptr::from_mut(address).cast()).collect();
        if number == 0 {
            self.mark(kernel.events[0])?;
        }
        // Safety: there is an address for each parameter of the kernel, and both lists outlive the call.
        let launched = unsafe {
            (self.functions.launch)(
                *function,
                blocks,
                1,
                1,
                shape.threads,
                1,
                1,
                shape.shared_bytes as c_uint,
                null_mut(),
                arguments.as_mut_ptr(),
            )
        };
        self.check("launching the kernel", launched)
    }

    /// Waits for the end of a kernel that was launched. Returns the seconds that the GPU took.
    ///
    /// # Errors
    /// A fault of the kernel.
    pub fn finish(&self, kernel: &Kernel) -> Result<f64, String> {
        let (begin, end) = (kernel.events[0], kernel.events[1]);
        // A fault is that of the kernel.
        let marked = self.mark(end);
        self.wait()?;
        marked?;
        let mut milliseconds = 0.0;
        // Safety: the events are the kernel's, and the time is a valid place.
        let known = unsafe { (self.functions.elapsed)(&raw mut milliseconds, begin, end) };
        self.check("the time of the kernel", known)?;
        Ok(f64::from(milliseconds) / 1e3)
    }

    /// Waits until the GPU has done all its work.
    ///
    /// # Errors
    /// A fault of a kernel.
    pub fn wait(&self) -> Result<(), String> {
        // Safety: the context is that of this thread.
        let result = unsafe { (self.functions.wait)() };
        self.check("running the kernel", result)
    }

    /// Marks a point in the work of the GPU.
    fn mark(&self, event: Handle) -> Result<(), String> {
        // Safety: the event is one of a loaded kernel.
        let result = unsafe { (self.functions.mark)(event, null_mut()) };
        self.check("an event of the GPU", result)
    }

    /// Allocates memory, aligned to 256 bytes.
    ///
    /// # Errors
    /// If the GPU has too little.
    pub fn allocate(&self, bytes: usize) -> Result<Memory, String> {
        let mut address = 0;
        // Safety: the address is a valid place.
        let result = unsafe { (self.functions.allocate)(&raw mut address, bytes.max(1)) };
        self.check(&format!("{bytes} bytes of memory of the GPU"), result)?;
        Ok(Memory { address, bytes, host: null_mut() })
    }

    /// Allocates memory of this machine that the GPU writes too.
    ///
    /// # Errors
    /// The driver's.
    pub fn share(&self, bytes: usize) -> Result<Memory, String> {
        let (mut host, mut address) = (null_mut(), 0);
        // Safety: the places are valid, and the memory is given back if it has no address on the GPU.
        unsafe {
            let result = (self.functions.share)(&raw mut host, bytes, ON_DEVICE);
            self.check(&format!("{bytes} bytes of memory that the GPU can write"), result)?;
            let memory = Memory { address, bytes, host };
            let result = (self.functions.shared)(&raw mut address, host, 0);
            self.check("the address of memory that the GPU can write", result)
                .inspect_err(|_| self.free(memory))?;
            Ok(Memory { address, ..memory })
        }
    }

    /// Writes zeros to memory.
    ///
    /// # Errors
    /// The driver's.
    pub fn clear(&self, memory: Memory) -> Result<(), String> {
        // Safety: the memory has as many bytes.
        let result = unsafe { (self.functions.clear)(memory.address, 0, memory.bytes) };
        self.check("clearing memory of the GPU", result)
    }

    /// Copies as many bytes as the memory has to the GPU.
    ///
    /// # Safety
    /// So many bytes must be readable.
    ///
    /// # Errors
    /// The driver's.
    pub unsafe fn write(&self, memory: Memory, bytes: *const c_void) -> Result<(), String> {
        // Safety: guaranteed by the caller.
        let result = unsafe { (self.functions.to_device)(memory.address, bytes, memory.bytes) };
        self.check("copying to the GPU", result)
    }

    /// Copies as many bytes as the memory has from the GPU.
    ///
    /// # Safety
    /// So many bytes must be writable.
    ///
    /// # Errors
    /// The driver's.
    pub unsafe fn read(&self, memory: Memory, bytes: *mut c_void) -> Result<(), String> {
        // Safety: guaranteed by the caller.
        let result = unsafe { (self.functions.to_host)(bytes, memory.address, memory.bytes) };
        self.check("copying from the GPU", result)
    }

    /// Frees memory.
    pub fn free(&self, memory: Memory) {
        // Safety: the memory was allocated, and nothing uses it later.
        unsafe {
            match memory.host.is_null() {
                true => (self.functions.free)(memory.address),
                false => (self.functions.unshare)(memory.host),
            }
        };
    }

    /// Unloads a kernel.
    pub fn unload(&self, kernel: &Kernel) {
        // Safety: the events were created and the module was loaded, and nothing uses them later.
        unsafe {
            for event in &kernel.events {
                (self.functions.forget)(*event);
            }
            (self.functions.unload)(kernel.module);
        }
    }
}

impl Memory {
    /// No memory.
    pub const NONE: Self = Self { address: 0, bytes: 0, host: null_mut() };

    /// Writes memory of this machine, while no kernel runs.
    pub fn set(&self, bytes: &[u8]) {
        let words = self.host.cast::<u64>();
        for (at, word) in bytes.chunks_exact(8).take(self.bytes / 8).enumerate() {
            let word = word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
            // Safety: the memory has as many words.
            unsafe { words.add(at).write_volatile(word) };
        }
    }

    /// The contents of memory of this machine now.
    pub fn get(&self) -> Vec<u8> {
        let words = self.host.cast::<u64>();
        // Safety: the memory has as many words, which the GPU writes whole.
        let word = |at: usize| unsafe { words.add(at).read_volatile() };
        (0..self.bytes / 8).flat_map(|at| word(at).to_le_bytes()).collect()
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if !self.context.is_null() {
            // Safety: the context was retained once.
            unsafe { (self.functions.release)(self.device) };
        }
    }
}

/// 12050 as `12.5`.
fn decimal(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The architecture that PTX is for.
struct Target {
    /// 80 for `sm_80`.
    capability: u32,
    /// Whether it runs on no later one: `sm_90a`.
    is_exact: bool,
}

impl Target {
    fn runs_on(&self, capability: u32) -> bool {
        match self.is_exact {
            true => self.capability == capability,
            false => self.capability <= capability,
        }
    }
}

/// The architecture in the directive `.target` of PTX.
fn target(ptx: &str) -> Option<Target> {
    let line = ptx.lines().find_map(|line| line.trim_start().strip_prefix(".target"))?;
    let name = line.trim().split(',').next()?.trim().strip_prefix("sm_")?;
    let digits = name.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    Some(Target { capability: digits.parse().ok()?, is_exact: digits.len() < name.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_runs_on_its_architecture_and_mostly_on_later_ones() {
        let runs = |ptx: &str, capability| target(ptx).expect("a target").runs_on(capability);
        assert!(runs("// x\n.version 8.0\n.target sm_80\n", 80));
        assert!(runs(".target sm_80, debug\n", 90));
        assert!(!runs(".target sm_80\n", 75));
        assert!(runs(".target sm_90a\n", 90));
        assert!(!runs(".target sm_90a\n", 100));
        assert!(target(".version 8.0\n").is_none());
    }
}
