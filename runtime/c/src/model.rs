//! Models.
use crate::{
    edge::{caught, handle, null, path, put, text},
    error::irc_error,
};
use bytes::Bytes;
use irc_mlf::DataType;
use irc_runtime::{Model, OpenOptions, Port};
use std::{
    ffi::{CString, c_char, c_void},
    ptr::null_mut,
    sync::Arc,
};

/// A model: code and parameters. Any number of threads may use it at once.
pub struct irc_model {
    pub(crate) model: Arc<Model>,
    inputs: Vec<Names>,
    outputs: Vec<Names>,
}

/// The name and type of an input or output, as C strings.
struct Names {
    name: CString,
    dtype: CString,
}

/// How a model is opened.
#[repr(C)]
pub struct irc_open_options {
    /// Bytes of this struct: `sizeof(irc_open_options)`.
    pub size: usize,
    /// The model of an archive of several; null selects the only one.
    pub model: *const c_char,
    /// Path of the archive's code as a shared library, for archives without one; or null.
    pub library: *const c_char,
}

/// An input or output. Its pointers are valid as long as the model.
#[repr(C)]
pub struct irc_port {
    /// Its name; outputs that the archive does not name are named by their numbers.
    pub name: *const c_char,
    /// The element type: `f32`, `bf16`, `i64`, `u8`, `bool`, …
    pub dtype: *const c_char,
    /// DLPack's code of the element type: 0 signed, 1 unsigned, 2 float, 4 bfloat; 255 of types that it
    /// lacks.
    pub code: u8,
    /// Bits of an element, 1 of a boolean, which takes a byte; 0 of types that DLPack lacks.
    pub bits: u8,
    /// Lanes of an element: 1.
    pub lanes: u16,
    /// Number of dimensions.
    pub rank: u32,
    /// Extents, outermost first; -1 where they depend on the inputs. Null when there is no dimension.
    pub shape: *const i64,
    /// Bytes of the contents, dense and row-major; 0 if they depend on the inputs.
    pub bytes: u64,
}

impl irc_model {
    fn new(model: Model) -> Self {
        let names = |ports: &[Port]| ports.iter().map(Names::new).collect();
        let interface = model.interface();
        let (inputs, outputs) = (names(&interface.inputs), names(&interface.outputs));
        irc_model { inputs, outputs, model: Arc::new(model) }
    }
}

impl Names {
    fn new(port: &Port) -> Self {
        let text = |text: &str| CString::new(text.replace('\0', "")).unwrap_or_default();
        Names { name: text(&port.name), dtype: text(&port.dtype) }
    }

    fn port(&self, port: &Port) -> irc_port {
        let known = port.element_type();
        let dtype = match known {
            Some(element) => DataType::of(element),
            None => port.dtype.parse().ok(),
        };
        let bytes = port.tensor_type().and_then(|ty| ty.byte_size().ok());
        irc_port {
            name: self.name.as_ptr(),
            dtype: self.dtype.as_ptr(),
            code: dtype.map_or(255, |dtype| dtype.code as u8),
            bits: dtype.map_or(0, |dtype| dtype.bits),
            lanes: dtype.map_or(1, |dtype| dtype.lanes),
            rank: port.shape.len() as u32,
            shape: if port.shape.is_empty() { null_mut() } else { port.shape.as_ptr() },
            bytes: bytes.unwrap_or_default() as u64,
        }
    }
}

/// Reads options; those of an older header are shorter.
///
/// # Safety
/// Null, or options with strings that end in zeros.
unsafe fn options<'o>(options: *const irc_open_options) -> Result<OpenOptions<'o>, irc_error> {
    // Safety: as the caller promises.
    let Some(options) = (unsafe { options.as_ref() }) else { return Ok(OpenOptions::default()) };
    if options.size < size_of::<irc_open_options>() {
        return Err(irc_error::argument("size of the options is not that of the struct"));
    }
    // Safety: as the caller promises.
    unsafe { Ok(OpenOptions { model: text(options.model)?, library: path(options.library) }) }
}

/// Opens an archive, or a library of `irc compile`, and stores in `model` the model, which `irc_model_free`
/// frees. `options` may be null. The file stays mapped and must not change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_model_open(
    path: *const c_char,
    options: *const irc_open_options,
    model: *mut *mut irc_model,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            put(model, null_mut(), "model")?;
            let path = self::path(path).ok_or_else(|| null("path"))?;
            let opened = irc_model::new(Model::open(path, self::options(options)?)?);
            put(model, Box::into_raw(Box::new(opened)), "model")
        }
    })
}

/// As `irc_model_open`, of an archive in memory, which stays there, unchanged, as long as the model and
/// its contexts. Parameters are used in place where the archive begins at a multiple of 64 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_model_open_memory(
    data: *const c_void,
    bytes: usize,
    options: *const irc_open_options,
    model: *mut *mut irc_model,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            put(model, null_mut(), "model")?;
            let data: &'static [u8] = crate::edge::list(data.cast(), bytes, "data")?;
            let options = self::options(options)?;
            let opened = Model::from_bytes("memory", &Bytes::from_static(data), options)?;
            put(model, Box::into_raw(Box::new(irc_model::new(opened))), "model")
        }
    })
}

/// Frees a model; null is ignored. Its contexts remain usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_model_free(model: *mut irc_model) {
    if !model.is_null() {
        // Safety: it was made above, and is freed once.
        drop(unsafe { Box::from_raw(model) });
    }
}

/// Number of inputs; 0 for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_model_input_count(model: *const irc_model) -> usize {
    // Safety: the header states what callers must ensure.
    unsafe { model.as_ref() }.map_or(0, |model| model.inputs.len())
}

/// Number of outputs; 0 for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_model_output_count(model: *const irc_model) -> usize {
    // Safety: the header states what callers must ensure.
    unsafe { model.as_ref() }.map_or(0, |model| model.outputs.len())
}

/// Describes an input.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_model_input(
    model: *const irc_model,
    index: usize,
    port: *mut irc_port,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            let model = handle(model, "model")?;
            let described =
                describe(&model.inputs, &model.model.interface().inputs, index, "input");
            put(port, described?, "port")
        }
    })
}

/// Describes an output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_model_output(
    model: *const irc_model,
    index: usize,
    port: *mut irc_port,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            let model = handle(model, "model")?;
            let described =
                describe(&model.outputs, &model.model.interface().outputs, index, "output");
            put(port, described?, "port")
        }
    })
}

/// The input in whose memory an output may be: the output has its elements, of which some are replaced. If both are bound
/// to the same memory, a run writes only these. `SIZE_MAX` if there is no such input, and for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_model_output_updates(model: *const irc_model, index: usize) -> usize {
    // Safety: the header states what callers must ensure.
    let model = unsafe { model.as_ref() };
    let updates = model.map(|model| model.model.interface().updates());
    updates.and_then(|updates| *updates.get(index)?).unwrap_or(usize::MAX)
}

fn describe(
    names: &[Names],
    ports: &[Port],
    index: usize,
    kind: &str,
) -> Result<irc_port, irc_error> {
    let found = names.get(index).zip(ports.get(index));
    let found = found.map(|(names, port)| names.port(port));
    found.ok_or_else(|| {
        irc_error::argument(&format!("there are {} {kind}s, and none {index}", ports.len()))
    })
}

/// Finds an input by name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_model_find_input(
    model: *const irc_model,
    name: *const c_char,
    index: *mut usize,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            let name = text(name)?.ok_or_else(|| null("name"))?;
            put(index, handle(model, "model")?.model.input(name)?, "index")
        }
    })
}

/// Finds an output by name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn irc_model_find_output(
    model: *const irc_model,
    name: *const c_char,
    index: *mut usize,
) -> *mut irc_error {
    caught(&|| {
        // Safety: the header states what callers must ensure.
        unsafe {
            let name = text(name)?.ok_or_else(|| null("name"))?;
            put(index, handle(model, "model")?.model.output(name)?, "index")
        }
    })
}
