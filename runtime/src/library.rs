//! A compiled model as a shared library.
//!
//! The library exports `irc_metadata` (a zero-terminated [`Interface`] as JSON) and
//! `int32_t irc_run(void **buffers, void *workspace)`; the buffers are the inputs, then the outputs. If it can use several
//! threads, it also exports
//! `int32_t irc_run_parallel(void **buffers, void *workspace, const struct irc_threads *threads)`. A model whose sizes depend on its inputs exports
//! `int32_t irc_run_sized(void *host, void **inputs, const int64_t *extents)` instead: see [`Host`].
//! A kernel for a GPU exports its PTX instead, `irc_kernel`, zero-terminated, and its constants, `irc_constants`: see
//! [`GpuProgram`].
//! Every pointer is aligned to 64 bytes. In a library with several models, these names have a suffix
//! for each model.
use crate::{
    GpuProgram, Host, Interface, Port, gpu::Execution, loader, missing_features, threads::Threads,
};
use bytes::Bytes;
use irc_tensor::{DType, Tensor, TensorType, check_text};
use libloading::os::unix;
use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char, c_void},
    path::{Path, PathBuf},
    sync::Arc,
};

type Alone = unsafe extern "C" fn(*mut *mut c_void, *mut c_void) -> i32;
type Parallel = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const Threads) -> i32;
type Sized = unsafe extern "C" fn(*mut Host, *mut *mut c_void, *const i64) -> i32;

/// The entry point of a model.
enum Entry {
    /// On the calling thread.
    Alone(Alone),
    Parallel(Parallel),
    Sized(Sized),
    /// On a GPU.
    Kernel(Arc<GpuProgram>),
}

/// The constants of a kernel in a library, which they keep loaded.
struct Constants {
    start: *const u8,
    bytes: usize,
    _code: Arc<unix::Library>,
}

// Safety: nothing writes to the constants.
unsafe impl Send for Constants {}

impl AsRef<[u8]> for Constants {
    fn as_ref(&self) -> &[u8] {
        // Safety: the library has so many bytes there, as its description states, and is loaded.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }
}

/// A loaded model. A [`Runner`](crate::Runner) runs it on tensors, a [`Context`](crate::Context) on memory.
pub struct Library {
    // Dropped last: it contains the code of the entry point.
    entry: Entry,
    interface: Interface,
    _code: Arc<unix::Library>,
}

/// Why a model could not be loaded or run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The file is not a shared library that this machine can load.
    #[error("cannot load {path}: {reason}")]
    Load {
        /// The file.
        path: PathBuf,
        /// The loader's message.
        reason: String,
    },
    /// The library has no metadata.
    #[error("{path} is not a compiled irc model: it has no irc_metadata")]
    NoMetadata {
        /// The file.
        path: PathBuf,
    },
    /// The library lacks an entry point or its metadata is invalid.
    #[error("{path} is not a compiled irc model: {reason}")]
    NotAModel {
        /// The file.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The code uses instructions that this processor lacks.
    #[error("{path} was compiled for another processor: this one lacks {missing}")]
    Processor {
        /// The file.
        path: PathBuf,
        /// The features.
        missing: String,
    },
    /// An input does not have the type of the model's input.
    #[error("input '{name}': expected {expected}, found {found}")]
    InputType {
        /// The input.
        name: String,
        /// The model's type.
        expected: TensorType,
        /// The caller's type.
        found: TensorType,
    },
    /// A name that is not an input of the model.
    #[error("no input is named '{name}'; the inputs are {known}")]
    UnknownInput {
        /// The caller's name.
        name: String,
        /// The model's names.
        known: String,
    },
    /// The constants of the model are separate, and a [`Context`](crate::Context) has none.
    #[error("the constants of the model are not in the library")]
    MissingConstants,
    /// A check of the model fails.
    #[error("{}", check_text(message, *left, *right))]
    Check {
        /// What is wrong.
        message: String,
        /// The first size.
        left: i64,
        /// The second.
        right: i64,
    },
    /// An input of unknown size is missing, or an input has the wrong type.
    #[error("input '{name}': expected {expected}, found {found}")]
    Input {
        /// The input.
        name: String,
        /// The model's type.
        expected: String,
        /// What the caller provided.
        found: String,
    },
    /// A function of the host has no result.
    #[error("{message}: {error}")]
    Function {
        /// The node, and the function.
        message: String,
        /// Why.
        error: irc_host::FunctionError,
    },
    /// A buffer could not be allocated.
    #[error("cannot allocate {name}: {reason}")]
    Allocate {
        /// Its use, such as `input 'x'`.
        name: String,
        /// Why.
        reason: String,
    },
    /// Memory for intermediate values could not be allocated.
    #[error("{message}: {} could not be allocated", allocation(*bytes, *total))]
    Memory {
        /// The node, and the value.
        message: String,
        /// The bytes of the value.
        bytes: i64,
        /// The bytes of all values that were to be allocated together.
        total: i64,
    },
    /// The model is a kernel for a GPU, and there is none that can run it, or no driver.
    #[error("{0}")]
    Device(String),
    /// The kernel failed on the GPU.
    #[error("{0}")]
    Kernel(String),
    /// The model returned an error code.
    #[error("the model failed with code {0}")]
    Failed(i32),
}

impl Library {
    /// Loads a model.
    ///
    /// # Errors
    /// [`RunError::Load`], [`RunError::NoMetadata`], [`RunError::NotAModel`], or [`RunError::Processor`].
    pub fn load(path: &Path) -> Result<Self, RunError> {
        let code = open(path)?;
        Self::entry(path, &code, "")
    }

    /// Loads models of one library by the suffixes of their names.
    ///
    /// # Errors
    /// As [`Library::load`], for the first model that cannot be loaded.
    pub fn load_entries(path: &Path, suffixes: &[String]) -> Result<Vec<Self>, RunError> {
        let code = open(path)?;
        suffixes.iter().map(|suffix| Self::entry(path, &code, suffix)).collect()
    }

    /// A model of loaded code, by the suffix of its names; `path` is its name in messages.
    ///
    /// # Errors
    /// As [`Library::load`].
    pub(crate) fn entry(
        path: &Path,
        code: &Arc<unix::Library>,
        suffix: &str,
    ) -> Result<Self, RunError> {
        let not_a_model = |reason: String| RunError::NotAModel { path: path.to_owned(), reason };
        let missing = |error| not_a_model(loader::message(error));
        // Safety: the type is the one that the compiler exports; the metadata is zero-terminated.
        let metadata = unsafe {
            let metadata = code.get::<*const c_char>(format!("irc_metadata{suffix}"));
            let unmarked = |_| RunError::NoMetadata { path: path.to_owned() };
            CStr::from_ptr(*metadata.map_err(unmarked)?).to_string_lossy().into_owned()
        };
        let interface = Interface::from_json(&metadata).map_err(not_a_model)?;
        let lacking = missing_features(&interface.requires);
        if !lacking.is_empty() {
            let missing = lacking.join(", ");
            return Err(RunError::Processor { path: path.to_owned(), missing });
        }
        if interface.convention > Interface::KERNEL {
            let found = interface.convention;
            return Err(not_a_model(format!(
                "expected a calling convention up to 3, found {found}"
            )));
        }
        if interface.convention == Interface::KERNEL {
            let program = kernel(code, suffix).map_err(not_a_model)?;
            // The description of the kernel has the same inputs and outputs.
            let interface =
                Interface { convention: Interface::KERNEL, ..program.kernel.interface.clone() };
            return Ok(Library {
                entry: Entry::Kernel(Arc::new(program)),
                interface,
                _code: code.clone(),
            });
        }
        // Safety: the types are those that the compiler exports, according to the interface.
        let entry = unsafe {
            match interface.is_sized() {
                true => {
                    code.get(format!("irc_run_sized{suffix}")).map(|entry| Entry::Sized(*entry))
                }
                false => code
                    .get(format!("irc_run_parallel{suffix}"))
                    .map(|entry| Entry::Parallel(*entry))
                    .or_else(|_| code.get(format!("irc_run{suffix}")).map(|it| Entry::Alone(*it))),
            }
        };
        let entry = entry.map_err(missing)?;
        interface.string_table().map_err(not_a_model)?;
        interface.functions().map_err(not_a_model)?;
        Ok(Library { entry, interface, _code: code.clone() })
    }

    /// The kernel for a GPU, if the model is one.
    pub fn kernel(&self) -> Option<&Arc<GpuProgram>> {
        match &self.entry {
            Entry::Kernel(program) => Some(program),
            Entry::Alone(_) | Entry::Parallel(_) | Entry::Sized(_) => None,
        }
    }

    /// The kernel on the first GPU, if the model is one.
    ///
    /// # Errors
    /// [`RunError::Device`].
    pub(crate) fn execution(&self) -> Result<Option<Execution>, RunError> {
        self.kernel().map(Execution::new).transpose().map_err(RunError::Device)
    }

    /// Runs a model with static sizes, on its GPU if it is a kernel for one.
    ///
    /// # Safety
    /// The buffers and the workspace must have the sizes of the interface, and the threads, if there are any, the memory
    /// that it asks for. The execution must be that of the model.
    pub(crate) unsafe fn call_fixed(
        &self,
        execution: Option<&Execution>,
        buffers: *mut *mut c_void,
        workspace: *mut c_void,
        threads: *const Threads,
    ) -> Result<(), RunError> {
        let status = match (&self.entry, execution) {
            // Safety: guaranteed by the caller.
            (Entry::Parallel(entry), _) => unsafe { entry(buffers, workspace, threads) },
            // Safety: as above.
            (Entry::Alone(entry), _) => unsafe { entry(buffers, workspace) },
            (Entry::Kernel(_), Some(execution)) => {
                // Safety: as above.
                return unsafe { execution.run(buffers) }.map_err(RunError::Kernel);
            }
            _ => unreachable!("the interface says which entry there is"),
        };
        if status == 0 { Ok(()) } else { Err(RunError::Failed(status)) }
    }

    /// Runs a model whose sizes depend on its inputs.
    ///
    /// # Safety
    /// The inputs must have the extents, and the host must be alive.
    pub(crate) unsafe fn call_sized(
        &self,
        host: *mut Host,
        inputs: *mut *mut c_void,
        extents: *const i64,
    ) -> i32 {
        match &self.entry {
            // Safety: guaranteed by the caller.
            Entry::Sized(entry) => unsafe { entry(host, inputs, extents) },
            Entry::Alone(_) | Entry::Parallel(_) | Entry::Kernel(_) => {
                unreachable!("the interface says which entry there is")
            }
        }
    }

    /// Bytes of scratch memory of the host for a run; that of a kernel is on its GPU.
    pub(crate) fn workspace_bytes(&self) -> u64 {
        if self.kernel().is_some() { 0 } else { self.interface.workspace_bytes }
    }

    /// The model's inputs and outputs.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Whether an input or output consists of strings.
    pub(crate) fn has_strings(&self) -> bool {
        let mut ports = self.interface.inputs.iter().chain(&self.interface.outputs);
        ports.any(|port| port.element_type() == Some(DType::String))
    }

    /// Scratch memory for a run.
    ///
    /// # Errors
    /// [`RunError::Allocate`], or [`RunError::Memory`] if the interface describes the workspace.
    pub(crate) fn workspace(&self) -> Result<Tensor, RunError> {
        let bytes = i64::try_from(self.workspace_bytes()).unwrap_or(i64::MAX);
        let workspace = zeros("the workspace", TensorType::new(irc_tensor::DType::U8, [bytes]));
        workspace.map_err(|error| match &self.interface.workspace_message {
            Some(message) => RunError::Memory { message: message.clone(), bytes, total: bytes },
            None => error,
        })
    }

    pub(crate) fn check_names(&self, inputs: &BTreeMap<String, Tensor>) -> Result<(), RunError> {
        // A buffer that the model only writes may be given nonetheless.
        let ports = || self.interface.inputs.iter().chain(&self.interface.outputs);
        let unknown = inputs.keys().find(|name| ports().all(|port| port.name != **name));
        let known = || {
            let given = self.interface.inputs.iter().filter(|port| port.weight.is_none());
            given.map(|port| port.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        match unknown {
            None => Ok(()),
            Some(name) => Err(RunError::UnknownInput { name: name.clone(), known: known() }),
        }
    }
}

/// The kernel in a library.
fn kernel(code: &Arc<unix::Library>, suffix: &str) -> Result<GpuProgram, String> {
    let text = format!("irc_kernel{suffix}");
    // Safety: the type is the one that the compiler exports; the text is zero-terminated.
    let text = unsafe {
        let text = code.get::<*const c_char>(text).map_err(loader::message)?;
        CStr::from_ptr(*text).to_string_lossy().into_owned()
    };
    let bytes = crate::GpuKernel::from_ptx(&text)?.constant_bytes;
    let mut constants = Bytes::new();
    if bytes > 0 {
        let bytes = usize::try_from(bytes).map_err(|error| error.to_string())?;
        // Safety: as above; there are as many bytes as the description states.
        let start = unsafe { code.get::<*const u8>(format!("irc_constants{suffix}")) };
        let start = *start.map_err(loader::message)?;
        constants = Bytes::from_owner(Constants { start, bytes, _code: code.clone() });
    }
    GpuProgram::new(text, constants)
}

/// The size of a value among others, in words.
fn allocation(bytes: i64, total: i64) -> String {
    match bytes < total {
        true => format!("{bytes} bytes, {total} with other values,"),
        false => format!("{bytes} bytes"),
    }
}

/// Loads the code of a library.
fn open(path: &Path) -> Result<Arc<unix::Library>, RunError> {
    let unreadable = |reason: String| RunError::Load { path: path.to_owned(), reason };
    let checked = crate::image::check_file(path).map_err(|error| unreadable(error.to_string()))?;
    checked.map_err(unreadable)?;
    // Safety: loading runs the library's initialisers; compiled models have none.
    unsafe { loader::open(path, libc::RTLD_LAZY | libc::RTLD_LOCAL) }
        .map(Arc::new)
        .map_err(unreadable)
}

/// The tensor for an input: the given one, or zeros. Bits of `bf16` may be given as `uint16`.
///
/// # Errors
/// If the tensor has the wrong type, or is missing and the size is unknown.
pub fn bind(port: &Port, given: Option<Tensor>) -> Result<Tensor, RunError> {
    let Some(expected) = port.tensor_type() else { return bind_sized(port, given) };
    let Some(given) = given else { return zeros(&format!("'{}'", port.name), expected) };
    let found = given.ty().clone();
    let mismatch = || RunError::InputType {
        name: port.name.clone(),
        expected: expected.clone(),
        found: found.clone(),
    };
    // `.npz` files store bfloat16 as the bits of uint16.
    let same_size = found.dtype.size() == expected.dtype.size();
    let given = if found.dtype != expected.dtype && same_size && is_bits(found.dtype) {
        given.reinterpret(expected.dtype).map_err(|_| mismatch())?
    } else {
        given
    };
    if *given.ty() == expected { Ok(given) } else { Err(mismatch()) }
}

/// Like [`bind`], if an extent is unknown.
fn bind_sized(port: &Port, given: Option<Tensor>) -> Result<Tensor, RunError> {
    let wrong = |found: String| RunError::Input {
        name: port.name.clone(),
        expected: port.type_text(),
        found,
    };
    let (Some(dtype), Some(given)) = (port.element_type(), given) else {
        return Err(wrong("nothing".to_owned()));
    };
    let found = given.ty().to_string();
    let bits = is_bits(given.dtype()) && given.dtype().size() == dtype.size();
    let given =
        if bits { given.reinterpret(dtype).map_err(|_| wrong(found.clone()))? } else { given };
    if port.takes(given.ty()) { Ok(given) } else { Err(wrong(found)) }
}

fn is_bits(dtype: irc_tensor::DType) -> bool {
    dtype == irc_tensor::DType::U16
}

fn zeros(name: &str, ty: TensorType) -> Result<Tensor, RunError> {
    Tensor::zeros(ty)
        .map_err(|error| RunError::Allocate { name: name.to_owned(), reason: error.to_string() })
}
