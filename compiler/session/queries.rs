//! The queries, from a file to a library.
use super::{
    Compiled, Failure,
    database::{Database, SourceFile},
    diagnose,
    kernel::{self, Broken, GlueObject, KernelObject, compile_glue, compile_kernel},
    machine::{in_context, run},
};
use crate::{
    codegen::{Backend, CodegenError, Output, Target, compile, hide_inner, link_library},
    fusion::{FusionReport, Segment, SegmentFusion, fuse_function_with, fuse_segment},
    interface::{Interface, interface_of},
    pipeline::HOST_CPU,
};
use irc_ark_format::model::{self, Document};
use irc_diag::{Diagnostic, Sink};
use irc_dialects::ark::{Origins, import};
use irc_mlir::{CapturedDiagnostic, Context, Module, OperationRef, attr, read};
use irc_tensor::Tensor;
use std::{collections::BTreeMap, sync::Arc};

/// What to compile for, and what to keep.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// The processor.
    pub target: Target,
    /// Which buffers come back.
    pub results: Results,
    /// How sums and products accumulate.
    pub accumulate: Accumulate,
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions {
            target: Target::host(),
            results: Results::Outputs,
            accumulate: Accumulate::Wide,
        }
    }
}

impl From<Target> for CompileOptions {
    fn from(target: Target) -> Self {
        CompileOptions { target, ..CompileOptions::default() }
    }
}

impl From<&CompileOptions> for CompileOptions {
    fn from(options: &CompileOptions) -> Self {
        options.clone()
    }
}

/// Which written buffers are results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Results {
    /// Every written buffer, intermediates too.
    All,
    /// Only buffers whose last value nothing else reads.
    Outputs,
}

impl Results {
    /// The name that the pass `ark-to-tl` takes.
    pub fn name(self) -> &'static str {
        match self {
            Results::All => "all",
            Results::Outputs => "outputs",
        }
    }
}

pub use crate::lowering::ark_to_tl::Accumulate;

/// Options as a key.
#[salsa::interned(debug)]
pub struct Config<'db> {
    #[returns(ref)]
    pub options: CompileOptions,
}

/// A kernel's tensor-level text and its target, as a key: equal kernels compile once.
#[salsa::interned(debug)]
pub struct KernelKey<'db> {
    #[returns(ref)]
    pub text: Arc<str>,
    #[returns(ref)]
    pub target: Target,
}

/// The main function with its kernels' declarations, as a key.
#[salsa::interned(debug)]
pub struct GlueKey<'db> {
    #[returns(ref)]
    pub text: Arc<str>,
    #[returns(ref)]
    pub target: Target,
}

/// A parsed file and what was found in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// `None` when there was an error.
    pub document: Option<Arc<Document>>,
    /// All diagnostics.
    pub diagnostics: Arc<[Diagnostic]>,
}

/// A module after fusion, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fused {
    /// The main function, as text.
    pub main: Arc<str>,
    /// Name in main, and text, of every kernel.
    pub kernels: Vec<(String, Arc<str>)>,
}

/// Reads a file.
#[salsa::tracked(returns(clone))]
pub fn parsed(db: &dyn salsa::Database, file: SourceFile, strict: bool) -> Parsed {
    let mut sink = Sink::new();
    let options = model::Options { strict, ..Default::default() };
    let document = model::parse(file.source(db), &options, &mut sink).map(Arc::new);
    Parsed { document, diagnostics: sink.into_diagnostics().into() }
}

/// The model alone: equal after an edit that only moves text.
#[salsa::tracked(returns(clone))]
fn model_of(db: &dyn salsa::Database, file: SourceFile) -> Result<Arc<model::Model>, Failure> {
    let parsed = parsed(db, file, false);
    match &parsed.document {
        Some(document) => Ok(Arc::new(document.model.clone())),
        None => Err(Failure { diagnostics: parsed.diagnostics.to_vec(), internal: false }),
    }
}

/// The tensor-level module as bytecode, located by JSON path alone.
#[salsa::tracked(returns(clone))]
fn imported<'db>(
    db: &'db dyn salsa::Database,
    file: SourceFile,
    config: Config<'db>,
) -> Result<Arc<[u8]>, Failure> {
    let model = model_of(db, file)?;
    let passes =
        HOST_CPU.text_with(config.options(db), "tensor", "tensor").map_err(Failure::internal)?;
    let lowered = in_context(|context| {
        let mut module = import(context, &model, Origins { file: None, nodes: &[] });
        run(context, &mut module, &passes)?;
        Some(irc_mlir::to_bytecode(&module).into())
    });
    lowered.map_err(|captured| placed(db, file, &captured))
}

/// The fused module, taken apart into main and kernels.
#[salsa::tracked(returns(clone))]
pub fn fused<'db>(
    db: &'db dyn salsa::Database,
    file: SourceFile,
    config: Config<'db>,
) -> Result<Arc<Fused>, Failure> {
    let bytes = imported(db, file, config)?;
    let taken = in_context(|context| {
        let mut module = irc_mlir::parse_bytecode(context, &bytes)?;
        fuse(db, context, &mut module)?;
        Some(take_apart(context, &module))
    });
    taken.map(Arc::new).map_err(|captured| placed(db, file, &captured))
}

/// The stage `fuse`, with every segment's decision remembered.
fn fuse(db: &dyn salsa::Database, context: &Context, module: &mut Module<'_>) -> Option<()> {
    let main = kernel::named(module.as_operation(), "main")?;
    fuse_one(db, main)?;
    run(context, module, &HOST_CPU.text(Some("fuse"), Some("kernels")).ok()?)
}

/// Fuses one function, with every segment's decision remembered.
pub(super) fn fuse_one(db: &dyn salsa::Database, function: OperationRef<'_, '_>) -> Option<()> {
    let decide = |segment: &Segment| segment_fusion(db, SegmentKey::new(db, segment.clone()));
    if let Err(message) = fuse_function_with(function, decide) {
        let _ = irc_mlir::PassError::at(&function, message);
        return None;
    }
    Some(())
}

/// A part of the graph that fuses on its own, as a key.
#[salsa::interned(debug)]
pub struct SegmentKey<'db> {
    #[returns(ref)]
    pub segment: Segment,
}

/// What was decided for one segment.
#[salsa::tracked(returns(clone))]
fn segment_fusion<'db>(db: &'db dyn salsa::Database, key: SegmentKey<'db>) -> SegmentFusion {
    fuse_segment(key.segment(db))
}

fn take_apart(context: &Context, module: &Module<'_>) -> Fused {
    let mut fused = Fused { main: "".into(), kernels: Vec::new() };
    for op in read::body_ops(module.as_operation()) {
        let name = read::string(&op, "sym_name").unwrap_or_default();
        if read::attribute(&op, "irc.kernel").is_some() {
            fused.kernels.push((name.clone(), kernel_text(context, op, &name)));
        } else {
            fused.main = irc_mlir::to_text(&op, false).into();
        }
    }
    fused
}

/// A kernel's text under the name that all kernels have, so that equal ones are equal. The module
/// must not hold that name twice, or MLIR prints all of it in its fallback form.
pub(super) fn kernel_text(context: &Context, op: OperationRef<'_, '_>, name: &str) -> Arc<str> {
    let rename = |name: &str| {
        irc_mlir::set_attribute(op, "sym_name", attr::string(context, name));
    };
    irc_mlir::set_attribute(op, "sym_visibility", attr::string(context, "public"));
    rename(kernel::NAME);
    let text = irc_mlir::to_text(&op, false).into();
    rename(name);
    text
}

/// One kernel's object.
#[salsa::tracked(returns(clone))]
pub fn kernel_object<'db>(
    db: &'db dyn salsa::Database,
    key: KernelKey<'db>,
) -> Result<Arc<KernelObject>, Broken> {
    compile_kernel(key.text(db), key.target(db)).map(Arc::new)
}

/// The glue's object.
#[salsa::tracked(returns(clone))]
pub fn glue_object<'db>(
    db: &'db dyn salsa::Database,
    key: GlueKey<'db>,
) -> Result<Arc<GlueObject>, Broken> {
    compile_glue(key.text(db), key.target(db)).map(Arc::new)
}

/// The linked library.
#[salsa::tracked(returns(clone))]
pub fn library<'db>(
    db: &'db dyn salsa::Database,
    file: SourceFile,
    config: Config<'db>,
) -> Result<Arc<Compiled>, Failure> {
    let fused = fused(db, file, config)?;
    let target = &config.options(db).target;
    let mut objects: BTreeMap<String, Arc<KernelObject>> = BTreeMap::new();
    let (mut aliases, mut text) = (Vec::new(), fused.main.to_string());
    for (name, kernel) in &fused.kernels {
        let key = KernelKey::new(db, kernel.clone(), target.clone());
        let object = kernel_object(db, key).map_err(unlocated)?;
        aliases.push((name.clone(), object.symbol.clone()));
        text += &declaration(name, &object);
        objects.insert(object.symbol.clone(), object);
    }
    let key = GlueKey::new(db, Arc::<str>::from(text), target.clone());
    let glue = glue_object(db, key).map_err(unlocated)?;
    let parts = [("irc_glue".to_owned(), glue.object.as_slice())];
    let kernels = objects.values().map(|kernel| (kernel.symbol.clone(), kernel.object.as_slice()));
    let library = link_library(parts.into_iter().chain(kernels), &aliases)
        .map_err(|error| Failure::internal(error.to_string()))?;
    Ok(Arc::new(Compiled { library, interface: glue.interface.clone() }))
}

pub(super) fn declaration(name: &str, kernel: &KernelObject) -> String {
    let sizes: Vec<String> = kernel.symbols.iter().map(|size| quoted(size)).collect();
    format!(
        "\nfunc.func private @{name}({}) attributes {{irc.kernel, irc.symbols = [{}], \
         irc.workspace_bytes = {} : i64}}\n",
        kernel.parameters.join(", "),
        sizes.join(", "),
        kernel.scratch
    )
}

/// A string as MLIR reads it.
fn quoted(text: &str) -> String {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    let escaped = text.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("\\{byte:02X}"),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// A failure of a module that carries no locations.
pub(super) fn unlocated(broken: Broken) -> Failure {
    match broken {
        Broken::Codegen(error) => Failure::internal(error.to_string()),
        Broken::Passes(captured) => {
            let messages: Vec<_> =
                captured.into_iter().map(|diagnostic| diagnostic.message).collect();
            Failure::internal(messages.join("; "))
        }
    }
}

/// Runs the whole pipeline again on the located module, to say where a kernel's failure lies.
pub fn locate<'db>(
    db: &'db dyn salsa::Database,
    file: SourceFile,
    config: Config<'db>,
    failure: Failure,
) -> Failure {
    if !failure.internal {
        return failure;
    }
    let options = config.options(db);
    let finish = |_: &Context, module: &Module<'_>| match options.target.backend {
        // What LLVM cannot compile it says nothing more about.
        Backend::Llvm => Some(()),
        Backend::Cranelift => generate(module, options, Output::Object).map(|_| ()),
        Backend::C => generate(module, options, Output::C).map(|_| ()),
    };
    match lowered(db, file, options, "llvm", finish) {
        Err(located) => located,
        Ok(()) => failure,
    }
}

/// Code of a module; `None` where a diagnostic at an op says why there is none.
fn generate(
    module: &Module<'_>,
    options: &CompileOptions,
    output: Output,
) -> Option<Result<Vec<u8>, CodegenError>> {
    match compile(module, &options.target, output) {
        Err(error) if error.diagnosed => None,
        result => Some(result),
    }
}

/// The located module after a stage, given to `finish`.
fn lowered<T>(
    db: &dyn salsa::Database,
    file: SourceFile,
    options: &CompileOptions,
    stage: &str,
    finish: impl FnOnce(&Context, &Module<'_>) -> Option<T>,
) -> Result<T, Failure> {
    let parsed = parsed(db, file, false);
    let Some(document) = &parsed.document else {
        return Err(Failure { diagnostics: parsed.diagnostics.to_vec(), internal: false });
    };
    let passes = HOST_CPU.text_with(options, "import", stage).map_err(|message| Failure {
        diagnostics: vec![Diagnostic::error("unknown-stage", message)],
        internal: false,
    })?;
    let name = file.source(db).name();
    let finished = in_context(|context| {
        let origins = Origins { file: Some(name), nodes: &document.origins };
        let mut module = import(context, &document.model, origins);
        run(context, &mut module, &passes)?;
        finish(context, &module)
    });
    finished.map_err(|captured| placed(db, file, &captured))
}

/// The IR after a stage, as text with locations.
pub fn stage_text(
    db: &Database,
    file: SourceFile,
    stage: &str,
    options: &CompileOptions,
) -> Result<String, Failure> {
    lowered(db, file, options, stage, |_, module| {
        Some(irc_mlir::to_text(&module.as_operation(), true))
    })
}

/// Code of the whole module: machine code, LLVM IR or C source.
pub fn emit(
    db: &Database,
    file: SourceFile,
    output: Output,
    options: &CompileOptions,
) -> Result<Vec<u8>, Failure> {
    let finish = |_: &Context, module: &Module<'_>| {
        if output == Output::C {
            hide_inner(module);
        }
        generate(module, options, output)
    };
    lowered(db, file, options, "llvm", finish)?
        .map_err(|error| Failure::internal(error.to_string()))
}

/// How the file's ops were fused.
pub fn explain(
    db: &Database,
    file: SourceFile,
    options: &CompileOptions,
) -> Result<FusionReport, Failure> {
    lowered(db, file, options, "tensor", |_, module| {
        let main = kernel::named(module.as_operation(), "main")?;
        crate::fusion::explain(main).ok()
    })
}

/// What the tensor level takes and gives.
pub fn interface(
    db: &Database,
    file: SourceFile,
    options: &CompileOptions,
) -> Result<Interface, Failure> {
    lowered(db, file, options, "tensor", |_, module| {
        let main = kernel::named(module.as_operation(), "main")?;
        Some(interface_of(&main))
    })?
    .map_err(Failure::internal)
}

/// Evaluates the tensor level.
pub fn run_reference(
    db: &Database,
    file: SourceFile,
    inputs: BTreeMap<String, Tensor>,
    options: &CompileOptions,
) -> Result<BTreeMap<String, Tensor>, Failure> {
    lowered(db, file, options, "tensor", |_, module| {
        let main = kernel::named(module.as_operation(), "main")?;
        Some(crate::eval::run_named(main, inputs))
    })?
    .map_err(|message| Failure {
        diagnostics: vec![Diagnostic::error("reference", message)],
        internal: false,
    })
}

pub(super) fn placed(
    db: &dyn salsa::Database,
    file: SourceFile,
    captured: &[CapturedDiagnostic],
) -> Failure {
    let parsed = parsed(db, file, false);
    diagnose::failure(captured, file.source(db), parsed.document.as_deref())
}
