//! The irc compiler as a library: compiles models to programs.
//!
//! A [`Session`] imports a [`Model`] (ARK, Common IR or ONNX, in any encoding) and compiles it to a
//! [`Program`] that runs in this process:
//!
//! ```
//! use irc::{Session, Target, Tensor};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/perceptron.onnx.pbtxt");
//! let x = Tensor::from_values([1, 4], &[0.5_f32, -1.0, 2.0, 0.0])?;
//! let outputs = Session::new().import(model)?.compile(Target::host())?.run([("x", x)])?;
//! # assert_eq!(outputs.len(), 1);
//! println!("{:?}", outputs["y"].to_f32());
//! # Ok(())
//! # }
//! ```
//!
//! # In a project of your own
//!
//! LLVM and MLIR 22 are found by settings of cargo, which a project outside this repository needs too: copy
//! `.cargo/config.toml` into the project (it sets the paths of Debian's packages, the C++ compiler, and the
//! library path for the loader), and depend on the crate by its path:
//!
//! ```toml
//! [dependencies]
//! irc = { path = "../irc/compiler" }
//! ```
//!
//! # Artefacts
//!
//! [`Model::compile`] compiles and loads a program, [`Model::library`] returns a shared library with the
//! constants in it, [`Model::archive`] the contents of a Model Library Format archive, [`Model::emit`] an
//! object, LLVM IR, assembly or C, [`Model::stage`] the IR after a stage of the [pipeline]. Each takes a
//! [`Target`], or [`CompileOptions`] for more. Artefacts are deterministic: the same model and options give
//! the same bytes.
//!
//! ```
//! use irc::{ArchiveOptions, ImportOptions, Session, Target};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/perceptron.onnx.pbtxt");
//! let session = Session::new();
//! // The graph of an archive has fixed sizes, and this model takes any batch.
//! let model = session.import_with(model, &ImportOptions::default().shape("x", [2, 4]))?;
//! let text = model.stage("fuse", Target::host())?;
//! assert!(text.contains("tl.group"));
//! let contents = model.archive(Target::host(), &ArchiveOptions::default())?;
//! assert_eq!(contents.models[0].name, "default");
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("model.tar");
//! let package = irc::mlf::build("model.tar", &contents).expect("what is compiled fits");
//! package.archive.write(contents.time, &mut std::fs::File::create(path)?)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Symbolic dimensions
//!
//! A program supports all values of the model's symbolic dimensions. [`ImportOptions`] can fix them, and
//! specify the values of inputs that determine the structure of a program.
//!
//! ```
//! use irc::{ImportOptions, Session, Target};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/perceptron.onnx.pbtxt");
//! let session = Session::new();
//! let wrong = ImportOptions::default().shape("data", [1, 4]);
//! let error = session.import_with(model, &wrong).err().expect("no such input");
//! assert_eq!(error.diagnostics()[0].code, "import-input");
//! # Ok(())
//! # }
//! ```
//!
//! # Without a file system
//!
//! A session reads files through [`Files`]: models, their external data and the libraries that they import.
//! [`FileSystem`] is the default, and [`MemoryFiles`] holds files in memory. Linking and loading use
//! temporary files.
//!
//! ```
//! use irc::{MemoryFiles, Session, Target};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let text = include_str!("../examples/perceptron.onnx.pbtxt");
//! let session = Session::with_files(MemoryFiles::new().with("model.pbtxt", text));
//! let program = session.import("model.pbtxt")?.compile(Target::host())?;
//! # assert_eq!(program.outputs().len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Errors
//!
//! [`Error`] holds diagnostics (code, message, location in the file, help) and the file; its `Display`
//! shows the lines that they refer to. The library prints nothing, and does not panic on invalid models.
//!
//! ```
//! use irc::{ImportOptions, Session};
//!
//! let text = r#"{"Rank": 0, "WorldSize": 1, "Nodes": [{"Id": 0}]}"#;
//! let session = Session::new();
//! let opened = session.import_bytes("bad.model.json", text.into(), &ImportOptions::default());
//! let error = opened.err().expect("a node has an op");
//! let first = &error.diagnostics()[0];
//! assert_eq!((first.code, first.path.as_deref()), ("ark-missing-key", Some("$.Nodes[0]")));
//! assert!(error.to_string().contains("bad.model.json:1:"));
//! ```
//!
//! # Editing
//!
//! A [`Session`] is an incremental database: after [`Session::edit`], only what depends on the edit is
//! recomputed ([`session`]). `examples/plan_and_run.rs` plans a model and runs the plan.

pub mod archive;
pub mod attributes;
pub mod codegen;
pub mod diagnostics;
pub mod eval;
pub mod fusion;
pub mod gpu;
pub mod import;
pub mod interface;
pub mod kernel;
pub mod lowering;
mod machine;
pub mod model;
pub mod passes;
pub mod pipeline;
pub mod session;
pub mod tasks;

pub use codegen::{Backend, GpuForm};
pub use import::{ImportOptions, Imported};
pub use irc_ark_frontend::Accumulate;
pub use irc_common_format::{FileSystem, Files, Format, MemoryFiles, library::Fetch};
pub use irc_diag::{Diagnostic, Severity, Source};
pub use irc_mlf as mlf;
pub use irc_npu_lower as npu;
pub use irc_npu_schedule as npu_schedule;
pub use irc_onnx_ops::Calls;
pub use irc_planner as planner;
pub use irc_quantise as quantise;
pub use irc_runtime::{Interface, Port, RunError, Runner};
pub use irc_tensor::{DType, Tensor, TensorType};
pub use irc_tl::Results;
pub use model::{Batch, Calibration, Entry, Model, ModelId, NpuDivision, NpuStep, Program};
pub use session::{
    ArchiveOptions, CancelToken, CompileOptions, Compiled, CompiledPlan, Error, KernelProgress,
    NpuModel, NpuOptions, NpuTree, NpuValues, Place, PlanFile, Session, Target,
};
