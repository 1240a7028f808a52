//! The queries, from an input to a library: `parsed → imported → prepared → fused → kernel_object, glue_object → library`.
use super::{
    Compiled,
    constants::{self, Place},
    database::{Contents, Input},
    diagnose,
    error::{CompileError, QueryError},
    kernel::{self, GlueObject, KernelObject, compile_glue, compile_kernel},
    profile::{self, KERNELS, KernelUse},
    tuning::{Tuned, Tuning},
    whole,
};
use crate::{
    attributes::{KERNEL, KernelInfo, ORIGIN, PROGRAM, ProgramInfo},
    codegen::{Cause, Output, Target, compile, join_objects},
    fusion::{FusionReport, Segment, SegmentFusion, explain, fuse_function_with, fuse_segment},
    import::{Imported, Parsed, Position, path_of, positions},
    lowering::{
        compute_to_loops::why_scalar,
        emit_entry::WEIGHTS,
        graph_to_tl::{give_values, graph_to_tl, graph_to_tl_at, weights},
        prepare_products::{ByteSums, prepare_products},
    },
    machine::{in_context, in_new_context, run_stages},
    pipeline::{NVPTX, Reached, Settings},
};
use irc_diag::{Diagnostic, Source};
use irc_dialects::tl;
use irc_mlir::{
    Context, Erase, Location, Module, OperationLike, OperationRef, ValueLike, attr, read,
};
use irc_tl::Graph;
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// Values of at least this many bytes are reported with their nodes if they cannot be allocated.
const LARGE_VALUE: usize = 1 << 24;

/// Options of compilation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// The processor and the code generator.
    pub target: Target,
    /// Measured choices of schedules.
    pub tuning: Arc<Tuning>,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Target::host().into()
    }
}

impl From<Target> for CompileOptions {
    fn from(target: Target) -> Self {
        CompileOptions { target, tuning: Arc::default() }
    }
}

impl From<&CompileOptions> for CompileOptions {
    fn from(options: &CompileOptions) -> Self {
        options.clone()
    }
}

impl CompileOptions {
    /// The settings of the pipeline's passes.
    pub fn settings(&self) -> Settings {
        Settings::of(&self.target)
    }
}

/// The options of one program, as a key.
#[salsa::interned(debug)]
pub struct Config<'db> {
    #[returns(ref)]
    pub options: CompileOptions,
    /// The suffix of its functions and entry point, if several programs share a library.
    #[returns(ref)]
    pub suffix: String,
}

/// A kernel's tensor-level text and its target, as a key: equal kernels compile once.
#[salsa::interned(debug)]
pub struct KernelKey<'db> {
    #[returns(ref)]
    pub text: Arc<str>,
    #[returns(ref)]
    pub target: Target,
}

/// The functions that launch kernels, with declarations of the kernels, as a key.
#[salsa::interned(debug)]
pub struct GlueKey<'db> {
    #[returns(ref)]
    pub text: Arc<str>,
    #[returns(ref)]
    pub target: Target,
}

/// A program after fusion, divided into kernels and the functions that launch them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fused {
    /// The functions that launch kernels, which refer to the kernels by symbol.
    pub program: String,
    /// The texts of its kernels, by symbol.
    pub kernels: BTreeMap<String, Arc<str>>,
    /// What the kernels are for, by symbol.
    pub uses: BTreeMap<String, KernelUse>,
    /// What the tuning in the options chooses of the kernels.
    pub tuned: Tuned,
}

/// Reads an input.
#[salsa::tracked(returns(clone))]
pub fn parsed(db: &dyn salsa::Database, input: Input) -> Parsed {
    match input.contents(db) {
        Contents::File(front_end, file) => front_end.read(file),
        Contents::Program(parsed) => parsed.clone(),
        Contents::Plan(source) => {
            Parsed { document: None, source: source.clone(), diagnostics: [].into() }
        }
    }
}

/// The program of an input. Equal after an edit that only moves text.
#[salsa::tracked(returns(clone))]
pub fn imported(db: &dyn salsa::Database, input: Input) -> Result<Arc<Imported>, QueryError> {
    let parsed = parsed(db, input);
    let failed = parsed.diagnostics.iter().any(irc_diag::Diagnostic::is_error);
    let Some(document) = parsed.document.filter(|_| !failed) else {
        return Err(QueryError::found(parsed.diagnostics.to_vec()));
    };
    let bounded = document.import().and_then(|mut imported| {
        if let Contents::File(_, file) = input.contents(db) {
            if let Some(capacity) = &file.options.cache {
                imported.extend_caches(capacity)?;
            }
            imported.bound(&file.options.bounds, &file.options.shapes)?;
            if let Some(quantisation) = &file.options.quantisation {
                imported.quantise(quantisation)?;
            }
        }
        Ok(Arc::new(imported))
    });
    bounded.map_err(|mut found| {
        document.locate(&mut found);
        QueryError::found(found)
    })
}

/// The program as kernels compute it: products are [prepared](prepare_products).
#[salsa::tracked(returns(clone))]
pub fn prepared(
    db: &dyn salsa::Database,
    input: Input,
    sums: ByteSums,
) -> Result<Arc<Imported>, QueryError> {
    let imported = imported(db, input)?;
    match prepare_products(&imported.graph, sums) {
        Cow::Borrowed(_) => Ok(imported),
        Cow::Owned(graph) => Ok(Arc::new(imported.with(graph))),
    }
}

/// The diagnostics of bounds of dimensions that a model does not have.
pub fn wrong_bounds(db: &dyn salsa::Database, input: Input) -> Vec<Diagnostic> {
    let has_bounds = match input.contents(db) {
        Contents::File(_, file) => !file.options.bounds.is_empty(),
        Contents::Program(_) | Contents::Plan(_) => false,
    };
    let imported = has_bounds.then(|| imported(db, input));
    imported.and_then(Result::err).map(|error| error.diagnostics).unwrap_or_default()
}

/// The fused program, divided into kernels and the functions that launch them.
#[salsa::tracked(returns(clone))]
pub fn fused<'db>(
    db: &'db dyn salsa::Database,
    input: Input,
    config: Config<'db>,
) -> Result<Arc<Fused>, QueryError> {
    let program = prepared(db, input, config.options(db).settings().byte_sums())?;
    let (options, suffix) = (config.options(db), config.suffix(db));
    let name = format!("main{suffix}");
    let settings = Settings { kernel_prefix: suffix.clone(), ..options.settings() };
    let mut message = None;
    let fused = in_context(|context| {
        let written = graph_to_tl(context, &program.graph, &name);
        let mut module = written.map_err(|error| message = Some(error)).ok()?;
        run_stages(context, &mut module, &settings, "import", "tensor")?;
        for function in read::body_ops(module.as_operation()) {
            fuse_function(db, function)?;
        }
        run_stages(context, &mut module, &settings, "fuse", "kernels")?;
        let main = kernel::named(module.as_operation(), &name)?;
        if !suffix.is_empty() {
            let suffix = suffix.to_owned();
            PROGRAM.write(main, &ProgramInfo { suffix, ..ProgramInfo::of(&main) });
        }
        constants::mark(module.as_operation(), main, &weights(&program.graph));
        Some(take_apart(context, &module, options))
    });
    fused.map(Arc::new).map_err(|captured| unwritten(message, &captured, &parsed(db, input)))
}

/// Why a program has no module: errors of writing it, or diagnostics of a pass.
fn unwritten(
    message: Option<String>,
    captured: &[irc_mlir::CapturedDiagnostic],
    parsed: &Parsed,
) -> QueryError {
    match message {
        Some(message) => QueryError::at("lowering", message),
        None => diagnose::failure(captured, parsed.document.as_deref()),
    }
}

/// Fuses one function, with a cached query for every segment.
fn fuse_function(db: &dyn salsa::Database, function: OperationRef<'_, '_>) -> Option<()> {
    if let Err(message) = fuse_function_with(function, |segment| decided(db, segment)) {
        let _ = irc_mlir::PassError::at(&function, message);
        return None;
    }
    Some(())
}

/// The fusion of one segment, from the cache if possible.
fn decided(db: &dyn salsa::Database, segment: &Segment) -> SegmentFusion {
    segment_fusion(db, SegmentKey::new(db, segment.clone()))
}

/// A segment of the graph, as a key.
#[salsa::interned(debug)]
pub struct SegmentKey<'db> {
    #[returns(ref)]
    pub segment: Segment,
}

/// The fusion of one segment.
#[salsa::tracked(returns(clone))]
fn segment_fusion<'db>(db: &'db dyn salsa::Database, key: SegmentKey<'db>) -> SegmentFusion {
    fuse_segment(key.segment(db))
}

/// Moves kernels out of a module; each gets a symbol derived from its text, and launches are updated.
fn take_apart(context: &Context, module: &Module<'_>, options: &CompileOptions) -> Fused {
    let (mut kernels, mut symbols) = (BTreeMap::new(), BTreeMap::new());
    let mut uses: BTreeMap<String, KernelUse> = BTreeMap::new();
    let mut tuned = Tuned::default();
    let (compiled, program): (Vec<_>, Vec<_>) =
        read::body_ops(module.as_operation()).into_iter().partition(|op| KERNEL.is_on(op));
    for op in compiled {
        let name = read::string(&op, "sym_name").unwrap_or_default();
        let mut text = kernel_text(context, op, &name);
        if let Some((key, schedule)) = options.tuning.of(&text, &options.target) {
            if schedule.algorithm.is_some() && !profile::is_convolution(op) {
                tuned.without_algorithm.insert(key.clone());
            }
            tuned.kernels.insert(key);
            KernelInfo::update(op, |info| info.schedule = schedule);
            text = kernel_text(context, op, &name);
        }
        let symbol = kernel::symbol_of(&text, &options.target);
        symbols.insert(name, symbol.clone());
        uses.entry(symbol.clone()).or_default().add_kernel(op);
        kernels.insert(symbol, text);
    }
    for launch in
        irc_mlir::walk_collect(module.as_operation(), |op| read::op_name(&op) == "tl.launch")
    {
        let symbol = read::symbol(&launch, "callee").and_then(|callee| symbols.get(&callee));
        if let Some(symbol) = symbol {
            irc_mlir::set_attribute(launch, "callee", attr::symbol(context, symbol));
            uses.entry(symbol.clone()).or_default().add_launch(launch);
        }
    }
    program.iter().for_each(|function| keep_origins(*function));
    let text = |op: &OperationRef<'_, '_>| irc_mlir::to_text_of_valid(op) + "\n";
    Fused { program: program.iter().map(text).collect(), kernels, uses, tuned }
}

/// Makes kernels of a module that differ in nothing but their names one.
pub fn share_kernels(context: &Context, module: &Module<'_>) {
    let (mut first, mut renamed) = (BTreeMap::new(), BTreeMap::new());
    let private = attr::string(context, "private");
    for op in read::body_ops(module.as_operation()).into_iter().filter(|op| KERNEL.is_on(op)) {
        let name = read::string(&op, "sym_name").unwrap_or_default();
        let text = kernel_text(context, op, &name);
        if let Some(known) = first.get(&text) {
            renamed.insert(name, String::clone(known));
            op.erase();
        } else {
            irc_mlir::set_attribute(op, "sym_visibility", private);
            first.insert(text, name);
        }
    }
    for launch in
        irc_mlir::walk_collect(module.as_operation(), |op| read::op_name(&op) == tl::LAUNCH)
    {
        let callee = read::symbol(&launch, "callee").and_then(|callee| renamed.get(&callee));
        if let Some(callee) = callee {
            irc_mlir::set_attribute(launch, "callee", attr::symbol(context, callee));
        }
    }
}

/// Keeps the origins of results that may not fit in memory or that the host may not compute, since the text of
/// a program has no locations.
fn keep_origins(function: OperationRef<'_, '_>) {
    for op in read::body_ops(function) {
        let is_large = |ty: irc_tl::Type| {
            let bytes = ty.known().and_then(|ty| ty.byte_size().ok());
            bytes.is_none_or(|bytes| bytes >= LARGE_VALUE)
        };
        let mut types = op.results().filter_map(|result| tl::type_of(result.r#type()).ok());
        let may_fail = match read::op_name(&op).as_str() {
            tl::LAUNCH => types.any(is_large),
            tl::CALL | tl::HOST | tl::IF | tl::LOOP => true,
            _ => false,
        };
        if may_fail && let Some(origin) = irc_mlir::origin(op.location()) {
            ORIGIN.write(op, &origin);
        }
    }
}

/// The text of a kernel under a name that follows from its ops, so that equal kernels have equal texts.
fn kernel_text(context: &Context, op: OperationRef<'_, '_>, name: &str) -> Arc<str> {
    let rename = |name: &str| {
        irc_mlir::set_attribute(op, "sym_name", attr::string(context, name));
    };
    irc_mlir::set_attribute(op, "sym_visibility", attr::string(context, "public"));
    rename(&profile::name_of(op));
    let text = irc_mlir::to_text_of_valid(&op).into();
    rename(name);
    text
}

/// The object of one kernel.
#[salsa::tracked(returns(clone))]
pub fn kernel_object<'db>(
    db: &'db dyn salsa::Database,
    key: KernelKey<'db>,
) -> Result<Arc<KernelObject>, CompileError> {
    compile_kernel(key.text(db), key.target(db)).map(Arc::new)
}

/// The object of the functions that launch kernels.
#[salsa::tracked(returns(clone))]
pub fn glue_object<'db>(
    db: &'db dyn salsa::Database,
    key: GlueKey<'db>,
) -> Result<Arc<GlueObject>, CompileError> {
    compile_glue(key.text(db), key.target(db)).map(Arc::new)
}

/// The kernels of a program, by symbol.
pub fn kernels(
    db: &dyn salsa::Database,
    fused: &Fused,
    target: &Target,
) -> Result<BTreeMap<String, Arc<KernelObject>>, QueryError> {
    let object = |(symbol, text): (&String, &Arc<str>)| {
        let key = KernelKey::new(db, text.clone(), target.clone());
        Ok((symbol.clone(), kernel_object(db, key)?))
    };
    fused.kernels.iter().map(object).collect()
}

/// A warning for each kernel that adds products in scalar loops, at the first node that it computes, in the order of nodes.
pub fn slow_kernels<'db>(
    db: &'db dyn salsa::Database,
    input: Input,
    config: Config<'db>,
) -> Result<Vec<Diagnostic>, QueryError> {
    let fused = fused(db, input, config)?;
    let kernels = kernels(db, &fused, &config.options(db).target)?;
    let order = order_of(&imported(db, input)?.graph);
    let slow = kernels.iter().filter_map(|(name, kernel)| {
        let node = fused.uses.get(name)?.nodes.first()?;
        Some((order.get(node.as_str()), node, kernel.info.scalar.as_ref()?))
    });
    let mut slow: Vec<_> = slow.collect();
    slow.sort();
    let warning = |(_, node, why): (_, &String, &String)| {
        let message = format!("{node}: {SCALAR}, several times more slowly than in vectors: {why}");
        Diagnostic::warning("kernel-scalar", message)
            .path(path_of(node))
            .help("known sizes have schedules in vectors, and loops have vectors of f32: --shape states sizes")
    };
    let mut found: Vec<Diagnostic> = slow.into_iter().map(warning).collect();
    if let Some(document) = parsed(db, input).document {
        document.locate(&mut found);
    }
    Ok(found)
}

/// What is slow in a kernel of the diagnostic `kernel-scalar`.
const SCALAR: &str = "its sum of products runs in scalar loops";

/// The position of each origin in a program, in the order of its nodes.
fn order_of(graph: &Graph) -> BTreeMap<Arc<str>, usize> {
    let mut order = BTreeMap::new();
    for origin in graph.ordered_origins() {
        let next = order.len();
        order.entry(origin).or_insert(next);
    }
    order
}

/// All objects of a program, named, and its interface.
pub struct Objects {
    /// The object of the functions that launch kernels.
    pub glue: Arc<GlueObject>,
    kernels: BTreeMap<String, Arc<KernelObject>>,
    /// The object of the constants, if they are linked.
    data: Option<Vec<u8>>,
    /// The object that describes the kernels.
    uses: Vec<u8>,
    /// The constants, in the order of the program's arguments.
    constants: Vec<irc_tl::Constant>,
}

impl Objects {
    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = (String, &[u8])> {
        let glue = [("irc_glue".to_owned(), self.glue.object.as_slice())];
        let data = self.data.iter().map(|object| (WEIGHTS.to_owned(), object.as_slice()));
        let uses = [(KERNELS.to_owned(), self.uses.as_slice())];
        let kernels = self.kernels.values();
        let kernels = kernels.map(|kernel| (kernel.symbol.clone(), kernel.object.as_slice()));
        glue.into_iter().chain(data).chain(uses).chain(kernels)
    }
}

/// The objects of a program, with its constants in a place.
pub fn objects<'db>(
    db: &'db dyn salsa::Database,
    input: Input,
    config: Config<'db>,
    place: Place,
) -> Result<Objects, QueryError> {
    let fused = fused(db, input, config)?;
    let target = &config.options(db).target;
    let kernels = kernels(db, &fused, target)?;
    let graph = &prepared(db, input, config.options(db).settings().byte_sums())?.graph;
    let (program, constants) = constants::settle(&fused.program, weights(graph), &kernels, place)?;
    let data = match place {
        Place::Given => None,
        Place::Linked => constants::linked(&constants)?,
    };
    let text = kernel::with_declarations([&*program], &kernels);
    let uses = profile::object(&fused.uses, config.suffix(db))?;
    let glue = glue_object(db, GlueKey::new(db, Arc::<str>::from(text), target.clone()))?;
    Ok(Objects { glue, kernels, data, uses, constants })
}

/// The linked library.
#[salsa::tracked(returns(clone))]
pub fn library<'db>(
    db: &'db dyn salsa::Database,
    input: Input,
    config: Config<'db>,
    place: Place,
) -> Result<Arc<Compiled>, QueryError> {
    let target = &config.options(db).target;
    if let Some(stage) = stage_for(db, input, target)? {
        return whole::library(&parsed(db, input), stage, target).map(Arc::new);
    }
    let objects = objects(db, input, config, place)?;
    let compiled = Compiled::link(objects.all(), objects.glue.interface.clone())?;
    let constants = match place {
        Place::Given => objects.constants,
        Place::Linked => vec![],
    };
    Ok(Arc::new(Compiled { constants, ..compiled }))
}

/// The stage whose output an input's module is, if it no longer has a graph.
pub fn stage_of(db: &dyn salsa::Database, input: Input) -> Option<Reached> {
    parsed(db, input).document.and_then(|document| document.stage())
}

/// As [`stage_of`], from which the pipeline of a target must continue.
fn stage_for(
    db: &dyn salsa::Database,
    input: Input,
    target: &Target,
) -> Result<Option<&'static str>, QueryError> {
    let Some(reached) = stage_of(db, input) else { return Ok(None) };
    let failed = |message: String, help: String| {
        QueryError::found(vec![Diagnostic::error("mlir-stage", message).help(help)])
    };
    reached.expect(target.backend.pipeline).map_err(|message| {
        let help = match *reached.pipeline == NVPTX {
            true => "--backend cuda compiles it for a GPU",
            false => "kernels for GPUs are made of a module after stage 'kernels' or before",
        };
        failed(message, help.to_owned())
    })?;
    let own = target.capability();
    match reached.capability.filter(|capability| *capability != own) {
        Some(capability) => Err(failed(
            format!("the kernels of the module are written for sm_{capability}, not sm_{own}"),
            format!("--arch CUDA_{capability} compiles them for that GPU"),
        )),
        None => Ok(Some(reached.stage)),
    }
}

/// The whole program with its constants as an object, LLVM IR, assembly or C source.
pub fn emit<'db>(
    db: &'db dyn salsa::Database,
    input: Input,
    config: Config<'db>,
    output: Output,
) -> Result<Vec<u8>, QueryError> {
    let options = config.options(db);
    if let Some(stage) = stage_for(db, input, &options.target)? {
        return whole::emit_from(&parsed(db, input), stage, &options.target, output);
    }
    if output == Output::Object {
        return Ok(join_objects(objects(db, input, config, Place::Linked)?.all())?);
    }
    let fused = fused(db, input, config)?;
    let graph = &prepared(db, input, options.settings().byte_sums())?.graph;
    whole::emit(&fused.program, &fused.kernels, weights(graph), &options.target, output)
}

/// Locates the error of a module without locations at the node of the file that caused it, by running the
/// whole pipeline and code generation again on a module with locations.
pub fn locate(
    db: &dyn salsa::Database,
    input: Input,
    options: &CompileOptions,
    output: Option<Output>,
    failure: QueryError,
) -> QueryError {
    if !failure.internal {
        return failure;
    }
    let finish = |module: &Module<'_>| match output {
        Some(output) => diagnosed(module, &options.target, output),
        None => Some(()),
    };
    let again =
        super::error::catch(|| lowered(db, input, options, "llvm", "", |_, module| finish(module)));
    match again {
        Err(located) if located.diagnostics.iter().any(|found| found.path.is_some()) => located,
        _ => failure,
    }
}

/// Returns `None` if a diagnostic at an op explains the error.
fn diagnosed(module: &Module<'_>, target: &Target, output: Output) -> Option<()> {
    match compile(module, target, output) {
        Err(error) if error.cause == Cause::Op => None,
        _ => Some(()),
    }
}

/// Calls `finish` with the module after a stage. `name` is the name of the file in its locations.
pub fn lowered<T>(
    db: &dyn salsa::Database,
    input: Input,
    options: &CompileOptions,
    stage: &str,
    file: &str,
    finish: impl FnOnce(&Context, &mut Module<'_>) -> Option<T>,
) -> Result<T, QueryError> {
    let parsed = parsed(db, input);
    let settings = options.settings();
    let pipeline = settings.pipeline;
    let first = pipeline.stages[0].name;
    pipeline.position(stage).map_err(|message| QueryError::at("unknown-stage", message))?;
    let from = stage_for(db, input, &options.target)?;
    if let Some(document) = parsed.document.as_deref().filter(|_| stage == first || from.is_some())
    {
        let from = from.unwrap_or(first);
        if pipeline.position(from) > pipeline.position(stage) {
            let message = format!(
                "the module is after stage '{from}' already, and stage '{stage}' is before it"
            );
            let help = format!("irc compile --stage {from}, or a later stage, writes it as MLIR");
            return Err(QueryError::found(vec![
                Diagnostic::error("mlir-stage", message).help(help),
            ]));
        }
        let finished = in_new_context(|context| {
            let mut module = document.dialect(context)?;
            run_stages(context, &mut module, &settings, from, stage)?;
            finish(context, &mut module)
        });
        return finished.map_err(|captured| diagnose::failure(&captured, Some(document)));
    }
    let program = prepared(db, input, settings.byte_sums())?;
    let places = places(&parsed, &program);
    let mut message = None;
    let finished = in_context(|context| {
        let locate = |origin: &str| {
            let (line, column) = *places.get(origin)?;
            let place = Location::new(context, file, line, column);
            Some(Location::name(context, origin, place))
        };
        let written = graph_to_tl_at(context, &program.graph, "main", &locate);
        let mut module = written.map_err(|error| message = Some(error)).ok()?;
        give_values(context, module.as_operation(), &program.graph);
        run_stages(context, &mut module, &settings, first, stage)?;
        finish(context, &mut module)
    });
    finished.map_err(|captured| unwritten(message, &captured, &parsed))
}

/// The positions of a program's nodes in its file, by origin.
fn places(parsed: &Parsed, program: &Imported) -> BTreeMap<Arc<str>, Position> {
    let Some(document) = parsed.document.as_deref() else { return BTreeMap::new() };
    let origins: Vec<Arc<str>> = program.graph.origins().into_iter().collect();
    let plain: Vec<&str> = origins.iter().map(|origin| &**origin).collect();
    let found = positions(document, &parsed.source, &plain);
    origins.into_iter().zip(found).filter_map(|(origin, at)| Some((origin, at?))).collect()
}

/// The IR after a stage, as text with locations, which contain the file's name without its folder, so that
/// the text does not depend on it.
pub fn stage_text(
    db: &dyn salsa::Database,
    input: Input,
    options: &CompileOptions,
    stage: &str,
) -> Result<String, QueryError> {
    let source = source(db, input);
    lowered(db, input, options, stage, source.file_name(), |_, module| {
        Some(irc_mlir::to_text(&module.as_operation(), true))
    })
}

/// The report of how the ops of a program were fused.
pub fn explain_fusion(
    db: &dyn salsa::Database,
    input: Input,
    options: &CompileOptions,
) -> Result<FusionReport, QueryError> {
    let source = source(db, input);
    let decide = |segment: &Segment| decided(db, segment);
    let why_slow = |op: &irc_tl::Op, operands: &[irc_tl::Type]| {
        why_scalar(op, operands).map(|why| format!("{SCALAR}: {why}"))
    };
    lowered(db, input, options, "tensor", source.name(), |_, module| {
        let mut reports = vec![];
        for function in read::body_ops(module.as_operation()) {
            let report = explain(function, decide, &why_slow);
            reports.push(report.map_err(|error| irc_mlir::PassError::at(&function, error)).ok()?);
        }
        FusionReport::of_program(reports)
    })
}

/// The text of an input, for diagnostics.
pub fn source(db: &dyn salsa::Database, input: Input) -> Source {
    match input.contents(db) {
        Contents::Plan(source) => source.clone(),
        Contents::File(..) | Contents::Program(_) => parsed(db, input).source,
    }
}
