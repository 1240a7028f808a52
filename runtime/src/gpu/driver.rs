//! Runs kernels on an NVIDIA GPU, by the driver's own interface: `libcuda`, loaded when it is needed.
use super::{Contents, GpuKernel, record::Event};
use irc_tensor::Tensor;
use libloading::os::unix::{Library, Symbol};
use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    path::Path,
    ptr::null_mut,
};

/// The driver's library.
const LIBRARY: &str = "libcuda.so.1";

/// `CUdevice_attribute`.
const PROCESSORS: c_int = 16;
const COOPERATIVE: c_int = 95;
const SHARED_BYTES: c_int = 97;
const MAJOR: c_int = 75;
const MINOR: c_int = 76;

/// `CUfunction_attribute`: bytes of shared memory that a launch may ask for.
const MAX_DYNAMIC_SHARED: c_int = 8;

/// `CUfunction_attribute`: registers of a thread.
const REGISTERS: c_int = 4;

/// `CUjit_option`: a buffer for errors, and its size.
const ERROR_LOG: c_int = 5;
const ERROR_LOG_BYTES: c_int = 6;

/// `CU_MEMHOSTALLOC_DEVICEMAP`: the GPU has access to the memory.
const ON_DEVICE: c_uint = 2;

/// The nanoseconds after which a block that waits for others traps.
const PATIENCE: u64 = 10_000_000_000;

type Handle = *mut c_void;
type Address = u64;

/// The driver: its functions by name.
struct Driver {
    library: Library,
}

/// Memory of the GPU, freed in the end.
struct Memory<'d> {
    driver: &'d Driver,
    address: Address,
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        if let Ok(free) =
            self.driver.function::<unsafe extern "C" fn(Address) -> c_int>("cuMemFree_v2")
        {
            // Safety: the memory was allocated by the driver, and is freed once.
            unsafe { free(self.address) };
        }
    }
}

/// Zero memory of this machine that the GPU writes too, so that it is left after a fault.
struct Shared<'d> {
    driver: &'d Driver,
    host: *mut c_void,
    bytes: usize,
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        let free =
            self.driver.function::<unsafe extern "C" fn(*mut c_void) -> c_int>("cuMemFreeHost");
        if let Ok(free) = free {
            // Safety: the memory was allocated by the driver, and is freed once.
            unsafe { free(self.host) };
        }
    }
}

impl Shared<'_> {
    /// Its contents now.
    fn read(&self) -> Vec<u8> {
        let words = self.host.cast::<u64>();
        // Safety: the memory has as many words, which the GPU writes whole.
        let word = |at: usize| unsafe { words.add(at).read_volatile() };
        (0..self.bytes / 8).flat_map(|at| word(at).to_le_bytes()).collect()
    }
}

impl Driver {
    fn open() -> Result<Self, String> {
        // Safety: the driver's initialisers are the vendor's.
        let library = unsafe { Library::open(Some(Path::new(LIBRARY)), libc::RTLD_NOW) };
        let library = library.map_err(|_| {
            format!("there is no NVIDIA driver on this machine: {LIBRARY} cannot be loaded")
        })?;
        let driver = Self { library };
        let init: Symbol<unsafe extern "C" fn(c_uint) -> c_int> = driver.function("cuInit")?;
        // Safety: the function has this signature.
        driver.check("no GPU can be used", unsafe { init(0) })?;
        Ok(driver)
    }

    fn function<T>(&self, name: &str) -> Result<Symbol<T>, String> {
        // Safety: every caller gives the signature that the driver documents.
        let found = unsafe { self.library.get(name.as_bytes()) };
        found.map_err(|_| format!("the NVIDIA driver is too old: it has no function {name}"))
    }

    /// The error of a result of the driver.
    fn check(&self, what: &str, result: c_int) -> Result<(), String> {
        if result == 0 {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        let describe = self.function::<unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int>(
            "cuGetErrorString",
        );
        let known = match describe {
            // Safety: the text is written on success, and is the driver's own.
            Ok(describe) => (unsafe { describe(result, &raw mut text) } == 0) && !text.is_null(),
            Err(_) => false,
        };
        // Safety: the driver's texts end with a zero.
        let text = if known {
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        } else {
            String::new()
        };
        Err(format!("{what}: the NVIDIA driver reports error {result} ({text})"))
    }

    /// An attribute of the first GPU.
    fn attribute(&self, device: c_int, attribute: c_int) -> Result<i64, String> {
        let get = self.function::<unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int>(
            "cuDeviceGetAttribute",
        )?;
        let mut value = 0;
        // Safety: the value is a valid place.
        self.check("a property of the GPU", unsafe { get(&raw mut value, attribute, device) })?;
        Ok(value.into())
    }

    /// Memory of this machine with these contents, and its address on the GPU.
    fn share(&self, contents: &[u8]) -> Result<(Shared<'_>, Address), String> {
        type Allocate = unsafe extern "C" fn(*mut *mut c_void, usize, c_uint) -> c_int;
        type Find = unsafe extern "C" fn(*mut Address, *mut c_void, c_uint) -> c_int;
        let allocate = self.function::<Allocate>("cuMemHostAlloc")?;
        let find = self.function::<Find>("cuMemHostGetDevicePointer_v2")?;
        let (mut host, mut address) = (null_mut(), 0);
        let bytes = contents.len();
        // Safety: the place is valid.
        let result = unsafe { allocate(&raw mut host, bytes, ON_DEVICE) };
        self.check(&format!("{bytes} bytes of memory that the GPU can write"), result)?;
        let shared = Shared { driver: self, host, bytes };
        // Safety: the memory has as many bytes; the place of the address is valid.
        let result = unsafe {
            std::ptr::copy_nonoverlapping(contents.as_ptr(), host.cast(), bytes);
            find(&raw mut address, host, 0)
        };
        self.check("the address of memory that the GPU can write", result)?;
        Ok((shared, address))
    }

    /// Copies from memory of the GPU that has as many bytes.
    fn copy_back(&self, bytes: &mut [u8], place: &Memory<'_>) -> Result<(), String> {
        let copy = self.function::<unsafe extern "C" fn(*mut c_void, Address, usize) -> c_int>(
            "cuMemcpyDtoH_v2",
        )?;
        // Safety: both have as many bytes.
        let result = unsafe { copy(bytes.as_mut_ptr().cast(), place.address, bytes.len()) };
        self.check("copying from the GPU", result)
    }

    fn allocate(&self, bytes: usize) -> Result<Memory<'_>, String> {
        let allocate =
            self.function::<unsafe extern "C" fn(*mut Address, usize) -> c_int>("cuMemAlloc_v2")?;
        let mut address = 0;
        // Safety: the address is a valid place.
        let result = unsafe { allocate(&raw mut address, bytes.max(1)) };
        self.check(&format!("{bytes} bytes of memory of the GPU"), result)?;
        Ok(Memory { driver: self, address })
    }
}

impl GpuKernel {
    /// Runs the kernel on the first GPU. Inputs that are not given are zero. Returns the outputs, and the events if the
    /// kernel records them.
    ///
    /// # Errors
    /// No driver or GPU, one that cannot run the kernel (with the numbers), inputs of another type, or a fault.
    pub fn run(
        &self,
        ptx: &str,
        given: &BTreeMap<String, Tensor>,
    ) -> Result<(BTreeMap<String, Tensor>, Vec<Event>), String> {
        let driver = Driver::open()?;
        let device = driver.device()?;
        let module = driver.load(Self::code(ptx))?;
        let entries = self.entries().iter().map(|name| driver.entry(module, name));
        let functions: Vec<Handle> = entries.collect::<Result<_, _>>()?;
        // All launches have the same number of blocks.
        let counts = functions.iter().map(|function| self.blocks_on(&driver, device, *function));
        let blocks = counts.collect::<Result<Vec<u32>, _>>()?.into_iter().min().unwrap_or(1);
        let (record, address) = driver.share(&self.record(blocks, PATIENCE))?;
        let mut memory = vec![];
        let mut addresses = vec![];
        for parameter in &self.parameters {
            let (_, contents) = self.contents(*parameter, given, ptx)?;
            let bytes = match contents {
                Contents::Trace => vec![0; self.trace_bytes(blocks)],
                Contents::Bytes(bytes) | Contents::Constants(bytes) => bytes,
                Contents::Unwritten(size) => {
                    let place = driver.allocate(size)?;
                    addresses.push(place.address);
                    memory.push(Some(place));
                    continue;
                }
                Contents::Record => {
                    addresses.push(address);
                    memory.push(None);
                    continue;
                }
            };
            let place = driver.allocate(bytes.len())?;
            let copy = driver
                .function::<unsafe extern "C" fn(Address, *const c_void, usize) -> c_int>(
                    "cuMemcpyHtoD_v2",
                )?;
            // Safety: the memory has as many bytes.
            let result = unsafe { copy(place.address, bytes.as_ptr().cast(), bytes.len()) };
            driver.check("copying to the GPU", result)?;
            addresses.push(place.address);
            memory.push(Some(place));
        }
        for function in functions {
            self.launch(&driver, function, blocks, addresses.clone()).map_err(|error| {
                let places = self.places(&record.read());
                let places = places.into_iter().map(|place| format!("\n  {place}"));
                error + &places.collect::<String>()
            })?;
        }
        let mut events = vec![];
        let mut outputs = BTreeMap::new();
        for (parameter, place) in self.parameters.iter().zip(&memory) {
            let Some(place) = place else { continue };
            if parameter.trace {
                let mut trace = vec![0; self.trace_bytes(blocks)];
                driver.copy_back(&mut trace, place)?;
                events = self.events(&trace, blocks);
            }
            let Some(output) = parameter.output else { continue };
            let port = &self.interface.outputs[output];
            let ty = Self::type_of(port)?;
            let mut tensor = Tensor::zeros(ty).map_err(|error| error.to_string())?;
            driver.copy_back(tensor.bytes_mut(), place)?;
            outputs.insert(port.name.clone(), tensor);
        }
        Ok((outputs, events))
    }

    /// The number of blocks of the launch, all of which must run at once.
    fn blocks_on(&self, driver: &Driver, device: c_int, function: Handle) -> Result<u32, String> {
        let shared = i64::try_from(self.shared_bytes).unwrap_or(i64::MAX);
        let most = driver.attribute(device, SHARED_BYTES)?;
        if shared > most {
            return Err(format!(
                "the kernel needs {shared} bytes of shared memory, and a block of this GPU has {most}"
            ));
        }
        if driver.attribute(device, COOPERATIVE)? == 0 {
            return Err("this GPU has no cooperative launches".to_owned());
        }
        let allow = driver.function::<unsafe extern "C" fn(Handle, c_int, c_int) -> c_int>(
            "cuFuncSetAttribute",
        )?;
        // Safety: the function is one of the loaded module.
        let result = unsafe { allow(function, MAX_DYNAMIC_SHARED, shared as c_int) };
        driver.check("the shared memory of the kernel", result)?;
        let occupancy = driver
            .function::<unsafe extern "C" fn(*mut c_int, Handle, c_int, usize) -> c_int>(
                "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            )?;
        let mut each = 0;
        // Safety: as above.
        let result =
            unsafe { occupancy(&raw mut each, function, self.threads as c_int, shared as usize) };
        driver.check("the number of blocks that run at once", result)?;
        let all = driver.attribute(device, PROCESSORS)? * i64::from(each);
        match self.blocks {
            Some(blocks) if i64::from(blocks) > all => {
                let mut registers = 0;
                let get = driver
                    .function::<unsafe extern "C" fn(*mut c_int, c_int, Handle) -> c_int>(
                        "cuFuncGetAttribute",
                    )?;
                // Safety: the place is valid, and the function is one of the loaded module.
                let result = unsafe { get(&raw mut registers, REGISTERS, function) };
                driver.check("the registers of the kernel", result)?;
                let threads = self.threads;
                Err(format!(
                    "the kernel needs {blocks} blocks that run at once, and this GPU runs {all}: {each} of {threads} \
                     threads with {registers} registers each and {shared} bytes of shared memory on each processor"
                ))
            }
            Some(blocks) => Ok(blocks),
            None if all == 0 => Err("this GPU cannot run a block of the kernel".to_owned()),
            None => u32::try_from(all).map_err(|error| error.to_string()),
        }
    }

    fn launch(
        &self,
        driver: &Driver,
        function: Handle,
        blocks: u32,
        mut addresses: Vec<Address>,
    ) -> Result<(), String> {
        type Launch = unsafe extern "C" fn(
            Handle,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            Handle,
            *mut *mut c_void,
        ) -> c_int;
        let launch = driver.function::<Launch>("cuLaunchCooperativeKernel")?;
        let mut arguments: Vec<*mut c_void> =
            addresses.iter_mut().map(|address| std::ptr::from_mut(address).cast()).collect();
        // Safety: there is an address for each parameter of the kernel, and both lists outlive the call.
        let result = unsafe {
            launch(
                function,
                blocks,
                1,
                1,
                self.threads,
                1,
                1,
                self.shared_bytes as c_uint,
                null_mut(),
                arguments.as_mut_ptr(),
            )
        };
        driver.check("launching the kernel", result)?;
        let wait = driver.function::<unsafe extern "C" fn() -> c_int>("cuCtxSynchronize")?;
        // Safety: the function has no arguments.
        driver.check("running the kernel", unsafe { wait() })
    }
}

impl Driver {
    /// The first GPU, whose primary context becomes that of this thread.
    fn device(&self) -> Result<c_int, String> {
        let get =
            self.function::<unsafe extern "C" fn(*mut c_int, c_int) -> c_int>("cuDeviceGet")?;
        let retain = self.function::<unsafe extern "C" fn(*mut Handle, c_int) -> c_int>(
            "cuDevicePrimaryCtxRetain",
        )?;
        let current = self.function::<unsafe extern "C" fn(Handle) -> c_int>("cuCtxSetCurrent")?;
        let (mut device, mut context) = (0, null_mut());
        // Safety: both are valid places, and the context is the driver's.
        unsafe {
            self.check("no GPU was found", get(&raw mut device, 0))?;
            self.check("the context of the GPU", retain(&raw mut context, device))?;
            self.check("the context of the GPU", current(context))?;
        }
        Ok(device)
    }

    /// Compiles PTX for the GPU.
    fn load(&self, ptx: &str) -> Result<Handle, String> {
        type Load = unsafe extern "C" fn(
            *mut Handle,
            *const c_void,
            c_uint,
            *mut c_int,
            *mut *mut c_void,
        ) -> c_int;
        let load = self.function::<Load>("cuModuleLoadDataEx")?;
        let text = CString::new(ptx).map_err(|_| "the PTX contains a zero byte".to_owned())?;
        let mut log = vec![0u8; 1 << 14];
        let mut options = [ERROR_LOG, ERROR_LOG_BYTES];
        let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), log.len() as *mut c_void];
        let mut module = null_mut();
        // Safety: the text ends with a zero; the options are those of the driver's interface, and the log has its size.
        let result = unsafe {
            load(
                &raw mut module,
                text.as_ptr().cast(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
        let text = String::from_utf8_lossy(&log[..end]).trim().to_owned();
        self.check("compiling the PTX", result).map_err(|error| {
            let major = self.attribute(0, MAJOR).unwrap_or(0);
            let minor = self.attribute(0, MINOR).unwrap_or(0);
            format!("{error}; this GPU has compute capability {major}.{minor}: {text}")
        })?;
        Ok(module)
    }

    fn entry(&self, module: Handle, name: &str) -> Result<Handle, String> {
        let get = self
            .function::<unsafe extern "C" fn(*mut Handle, Handle, *const c_char) -> c_int>(
                "cuModuleGetFunction",
            )?;
        let name =
            CString::new(name).map_err(|_| "the entry point has no valid name".to_owned())?;
        let mut function = null_mut();
        // Safety: the module is loaded, and the name ends with a zero.
        let result = unsafe { get(&raw mut function, module, name.as_ptr()) };
        self.check("the entry point of the kernel", result)?;
        Ok(function)
    }
}
