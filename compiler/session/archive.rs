//! Archives of the Model Library Format: a fused program as a graph, with the code of its operators.
use super::{
    CompileOptions, Session,
    constants::{self, Place},
    database::Input,
    error::{CompileError, QueryError},
    gpu, kernel, profile,
    queries::{self, Config, Fused, GlueKey, Objects},
    whole,
};
use crate::{
    archive::{
        ArchiveError, Operator, Planned, Step,
        operators::{self, Callees, Count, Entry},
        plan, plan_kernel, plan_open,
    },
    attributes::{GRAPH, KernelInfo, PROGRAM, ProgramInfo, launcher},
    codegen::{Backend, Output, Target, compile, join_objects, link_shared},
    import::Bounds,
    interface::{Interface, interface_of},
    lowering::{emit_entry::set_linkage, graph_to_tl::weights, plan_memory::program::Function},
    machine::{in_context, run_stages},
    pipeline::Reached,
};
use bytes::Bytes;
use irc_diag::Diagnostic;
use irc_mlf::{Contents, Model, Shared, Version};
use irc_mlir::ops::func;
use irc_mlir::{
    Block, BlockLike, CapturedDiagnostic, Context, Erase, Module, OpSpec, OperationLike, Value,
    ValueLike, attr, read,
};
use irc_runtime::GpuProgram;
use irc_tl::Constant;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Options of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveOptions {
    /// Version of the format.
    pub version: Version,
    /// Name of the model; some clients only support `default`.
    pub model: String,
    /// The creation time in the archive, in seconds since 1970.
    pub time: u64,
}

impl Default for ArchiveOptions {
    fn default() -> Self {
        ArchiveOptions { version: Version::V5, model: "default".to_owned(), time: 0 }
    }
}

/// A program that is converted to a graph.
struct Program {
    /// The functions that launch kernels, and the kernels.
    fused: Arc<Fused>,
    /// The constants that are arguments.
    weights: Vec<Constant>,
}

/// The symbol of the entry point of a step, and the text of its program.
type StepText = (String, Arc<str>);

/// The artefacts of a program.
struct ProgramArtefacts {
    planned: Planned,
    /// Workspace of each function in bytes.
    workspaces: BTreeMap<String, u64>,
    /// Code, by path.
    code: (String, Bytes),
    shared: Option<Shared>,
}

impl Session {
    /// The contents of an archive of an input, for [`irc_mlf::build`].
    pub(crate) fn archive(
        &self,
        input: Input,
        options: &CompileOptions,
        archive: &ArchiveOptions,
    ) -> Result<Contents, QueryError> {
        let db = &self.database;
        if let Some(Reached { stage, .. }) = queries::stage_of(db, input) {
            let message = format!("a module after stage '{stage}' has no graph for an archive");
            return Err(QueryError::at("mlf-program", message));
        }
        if options.target.backend.writes(Output::Ptx) {
            let config = Config::new(db, options.clone(), String::new());
            let ptx = queries::emit(db, input, config, Output::Ptx)?;
            let sources = self.sources(input, options)?;
            return archive_of_kernel(&gpu::program(&ptx)?, sources, archive);
        }
        let imported = queries::imported(db, input)?;
        let is_open = !imported.bounds.is_empty()
            && imported.graph.types.iter().any(|ty| ty.known().is_none());
        if is_open && !options.target.backend.writes(Output::Object) {
            let message = "an archive with open sizes has objects, not source";
            return Err(QueryError::at("mlf-program", message));
        }
        self.compile_kernels(input, options)?;
        let config = Config::new(db, options.clone(), String::new());
        let fused = queries::fused(db, input, config)?;
        let sources = self.sources(input, options)?;
        let artefacts = if is_open {
            let objects = queries::objects(db, input, config, constants::Place::Linked)?;
            open(&objects, &imported.bounds, &options.target, archive)?
        } else {
            let weights =
                weights(&queries::prepared(db, input, options.settings().byte_sums())?.graph);
            let mut program = Program { fused, weights };
            match options.target.backend.writes(Output::Object) {
                true => self.objects(&mut program, &options.target, archive)?,
                false => source(&mut program, &options.target, archive)?,
            }
        };
        Ok(contents(artefacts, sources, options, archive))
    }

    /// The IR after each stage, as text by path, without the elements of large constants, which are parameters. Equal kernels are one from the stage on that makes kernels.
    fn sources(
        &self,
        input: Input,
        options: &CompileOptions,
    ) -> Result<BTreeMap<String, Bytes>, QueryError> {
        let db = &self.database;
        let text = |module: &Module<'_>| irc_mlir::to_brief_text(&module.as_operation());
        let stages = options.settings().pipeline.stages;
        let [import, tensor, later @ ..] = stages else { return Ok(BTreeMap::new()) };
        // The file in its own dialect is a separate module; the others are one module as it is lowered.
        let written =
            queries::lowered(db, input, options, import.name, "", |_, module| Some(text(module)))?;
        let lowered = queries::lowered(db, input, options, tensor.name, "", |context, module| {
            let (mut texts, mut last) = (vec![text(module)], tensor.name);
            for stage in later {
                run_stages(context, module, &options.settings(), last, stage.name)?;
                if stage.name == "kernels" {
                    queries::share_kernels(context, module);
                }
                texts.push(text(module));
                last = stage.name;
            }
            Some(texts)
        })?;
        let all = stages.iter().zip([written].into_iter().chain(lowered));
        let named = all
            .enumerate()
            .map(|(number, (stage, text))| (format!("{number}-{}.mlir", stage.name), text.into()));
        Ok(named.collect())
    }

    /// A program whose kernels are compiled separately and linked.
    fn objects(
        &self,
        program: &mut Program,
        target: &Target,
        archive: &ArchiveOptions,
    ) -> Result<ProgramArtefacts, QueryError> {
        let objects = queries::kernels(&self.database, &program.fused, target)?;
        let constants = std::mem::take(&mut program.weights);
        let (settled, constants) =
            constants::settle(&program.fused.program, constants, &objects, Place::Given)?;
        program.weights = constants;
        let text = kernel::with_declarations([&*settled], &objects);
        let kernels: BTreeMap<String, KernelInfo> =
            objects.iter().map(|(symbol, object)| (symbol.clone(), object.info.clone())).collect();
        let mut message = None;
        let planned = in_context(|context| {
            let planned = planned(context, &text, &program.weights, &kernels, archive);
            planned.map_err(|error| message = Some(error)).ok()
        });
        let (planned, texts) = planned.map_err(|captured| why(message, captured))?;
        let (mut entries, mut steps) = (vec![], BTreeMap::new());
        for (symbol, text) in texts {
            let key = GlueKey::new(&self.database, text, target.clone());
            let glue = queries::glue_object(&self.database, key)?;
            entries.push(Entry::new(symbol.clone(), &glue.interface));
            steps.insert(symbol, glue);
        }
        let callees = Callees { kernels: &kernels, steps: &entries, program: None };
        let text = operators::write(&planned.operators, callees, archive.count());
        let functions = functions(&text.map_err(archive_error)?, target)?;
        let first = [("operators".to_owned(), functions.as_slice())].into_iter();
        let steps = steps.iter().map(|(name, glue)| (name.clone(), glue.object.as_slice()));
        let code = objects.values();
        let code = code.map(|kernel| (kernel.symbol.clone(), kernel.object.as_slice()));
        let uses = profile::object(&program.fused.uses, "")?;
        let uses = [(profile::KERNELS.to_owned(), uses.as_slice())];
        let object = join_objects(first.chain(steps).chain(code).chain(uses))?;
        let workspaces = workspaces(&planned, callees);
        linked(planned, object, workspaces, target, archive)
    }
}

/// The contents of an archive of one model; `sources` is the IR of each stage, by path.
fn contents(
    artefacts: ProgramArtefacts,
    sources: BTreeMap<String, Bytes>,
    options: &CompileOptions,
    archive: &ArchiveOptions,
) -> Contents {
    let model = Model {
        name: archive.model.clone(),
        target: target_text(&options.target),
        device: 1,
        workspaces: artefacts.workspaces,
        graph: artefacts.planned.graph,
        outputs: artefacts.planned.outputs,
        with_weights: !artefacts.planned.params.is_empty(),
        params: artefacts.planned.params,
        vectors: vec![],
    };
    Contents {
        version: archive.version,
        time: archive.time,
        models: vec![model],
        code: BTreeMap::from([artefacts.code]),
        shared: artefacts.shared,
        sources,
    }
}

/// The artefacts of a program whose code is one object, which is linked as a library too.
fn linked(
    planned: Planned,
    object: Vec<u8>,
    workspaces: BTreeMap<String, u64>,
    target: &Target,
    archive: &ArchiveOptions,
) -> Result<ProgramArtefacts, QueryError> {
    let shared = link_shared(&object)?;
    let requires = shared.features.among(target.required_features());
    let path = format!("lib/{}_lib0.o", archive.model);
    Ok(ProgramArtefacts {
        workspaces,
        planned,
        code: (path, object.into()),
        shared: Some(Shared { bytes: shared.bytes.into(), requires }),
    })
}

/// The contents of an archive with a kernel for a GPU, in its shared library; `sources` is the IR of each stage, by path.
///
/// # Errors
/// No linker; inputs and outputs that clients of archives do not have.
pub fn archive_of_kernel(
    program: &GpuProgram,
    mut sources: BTreeMap<String, Bytes>,
    archive: &ArchiveOptions,
) -> Result<Contents, QueryError> {
    let planned =
        plan_kernel(&program.kernel.interface, &archive.prefix()).map_err(archive_error)?;
    let kernels = BTreeMap::new();
    let callees = Callees { kernels: &kernels, steps: &[], program: None };
    let text = operators::write(&planned.operators, callees, archive.count());
    // Any processor of this architecture.
    let target = Target::from_name("x86-64");
    let functions = functions(&text.map_err(archive_error)?, &target)?;
    let data = gpu::objects(program)?;
    let data = data.iter().map(|(name, object)| (name.clone(), object.as_slice()));
    let first = [("operators".to_owned(), functions.as_slice())];
    let object = join_objects(first.into_iter().chain(data))?;
    let workspaces = workspaces(&planned, callees);
    let artefacts = linked(planned, object, workspaces, &target, archive)?;
    sources.insert("kernel.ptx".to_owned(), Bytes::from(program.text.clone()));
    Ok(contents(artefacts, sources, &target.into(), archive))
}

/// A program with open sizes, with its constants, as an object that is linked as a library too.
fn open(
    objects: &Objects,
    bounds: &Bounds,
    target: &Target,
    archive: &ArchiveOptions,
) -> Result<ProgramArtefacts, QueryError> {
    let interface = &objects.glue.interface;
    let planned = plan_open(interface, bounds, &archive.prefix()).map_err(archive_error)?;
    let kernels = BTreeMap::new();
    let callees = Callees { kernels: &kernels, steps: &[], program: Some(interface.thread_bytes) };
    let text = operators::write(&planned.operators, callees, archive.count());
    let functions = functions(&text.map_err(archive_error)?, target)?;
    let first = [("operators".to_owned(), functions.as_slice())];
    let object = join_objects(first.into_iter().chain(objects.all()))?;
    let workspaces = workspaces(&planned, callees);
    linked(planned, object, workspaces, target, archive)
}

impl ArchiveOptions {
    /// Prefix of the names of functions.
    fn prefix(&self) -> String {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        format!("irc_{}", self.model.chars().map(plain).collect::<String>())
    }

    const fn count(&self) -> Count {
        match self.version {
            Version::V5 => Count::Byte,
            Version::V7 => Count::Word,
        }
    }
}

/// A program as one C source.
fn source(
    program: &mut Program,
    target: &Target,
    archive: &ArchiveOptions,
) -> Result<ProgramArtefacts, QueryError> {
    let Program { fused, weights, .. } = program;
    let mut message = None;
    let result = in_context(|context| {
        let (mut module, objects) = whole::scheduled(context, &fused.kernels, target)?;
        let kernels: BTreeMap<String, KernelInfo> =
            objects.iter().map(|(symbol, object)| (symbol.clone(), object.info.clone())).collect();
        let constants = std::mem::take(weights);
        let (settled, constants) =
            constants::settle_in(context, &fused.program, constants, &objects, Place::Given)?;
        *weights = constants;
        let whole = kernel::with_declarations([&*settled], &objects);
        let planned = planned(context, &whole, weights, &kernels, archive);
        let (planned, steps) = planned.map_err(|error| message = Some(error)).ok()?;
        let mut entries = vec![];
        for (symbol, text) in steps {
            let interface = add_step(context, &module, &text, target)?;
            entries.push(Entry::new(symbol, &interface));
        }
        kernel::lower(context, &mut module, target)?;
        let functions = kernel::functions(module.as_operation());
        for symbol in fused.kernels.keys().chain(entries.iter().map(|entry| &entry.symbol)) {
            set_linkage(*functions.get(symbol)?, "internal");
        }
        let callees = Callees { kernels: &kernels, steps: &entries, program: None };
        let text = operators::write(&planned.operators, callees, archive.count());
        let text = text.map_err(|error| message = Some(error.into())).ok()?;
        kernel::add(&module, &irc_mlir::parse_module(context, &text)?);
        Some((compile(&module, target, Output::C), workspaces(&planned, callees), planned))
    });
    let (source, workspaces, planned) = result.map_err(|captured| why(message, captured))?;
    let code = (format!("src/{}_lib0.c", archive.model), Bytes::from(source?));
    Ok(ProgramArtefacts { planned, workspaces, code, shared: None })
}

/// Adds a step of a program, whose kernels are in the module, after planning its memory. Returns its interface.
fn add_step(
    context: &Context,
    module: &Module<'_>,
    text: &str,
    target: &Target,
) -> Option<Interface> {
    let mut step = irc_mlir::parse_module(context, text)?;
    let interface = kernel::plan_memory(context, &mut step, target)?.into_iter().next()?;
    kernel::add(module, &step);
    Some(interface)
}

fn workspaces(planned: &Planned, callees: Callees<'_>) -> BTreeMap<String, u64> {
    let workspace = |operator: &Operator| (operator.name.clone(), callees.workspace(operator));
    planned.operators.iter().map(workspace).collect()
}

/// The graph of a program, and the programs of the branches and loops, by the symbols of their entry
/// points.
fn planned(
    context: &Context,
    text: &str,
    weights: &[Constant],
    kernels: &BTreeMap<String, KernelInfo>,
    archive: &ArchiveOptions,
) -> Result<(Planned, Vec<StepText>), ArchiveError> {
    let lost = || "the main function was lost".to_owned();
    let module = irc_mlir::parse_module(context, text).ok_or_else(lost)?;
    let main = kernel::named(module.as_operation(), "main").ok_or_else(lost)?;
    let interface = interface_of(&main)?;
    let function = Function::read(main).map_err(|(_, message)| message)?;
    let planned = plan(&function, &interface, weights, kernels, &archive.prefix())?;
    let steps = planned.steps.iter();
    let texts = steps.map(|step| step_text(context, &module, &function, *step));
    let texts = texts.collect::<Option<_>>().ok_or("a step of the program was lost")?;
    Ok((planned, texts))
}

/// A program of one step of another program, and the symbol of its entry point.
fn step_text<'c: 'a, 'a>(
    context: &'c Context,
    module: &'a Module<'c>,
    function: &Function<'c, 'a>,
    step: Step,
) -> Option<StepText> {
    let op = function.steps[step.position].1;
    let operands: Vec<Value> = op.operands().collect();
    let inputs: Vec<_> = operands.iter().map(|value| value.r#type()).collect();
    let outputs: Vec<_> = op.results().map(|value| value.r#type()).collect();
    let arguments: Vec<_> = inputs.iter().map(|ty| (*ty, op.location())).collect();
    let body = Block::new(&arguments);
    let copied = body.append_operation((*op).clone());
    let given = (0..inputs.len()).map(|index| body.argument(index).ok().map(Into::into));
    let given: Vec<Value> = given.collect::<Option<_>>()?;
    irc_mlir::set_operands(copied, &given);
    let results: Vec<Value> = copied.results().map(Into::into).collect();
    OpSpec::new(context, func::RETURN, op.location()).operands(&results).append(&body);
    // The text is written under a fixed name first, as the final name contains its hash.
    let spec = irc_mlir::function(context, "step", &inputs, &outputs, body, op.location())
        .with(GRAPH, ())
        .with(PROGRAM, &ProgramInfo { shared: true, ..ProgramInfo::default() });
    let written = module.body().append_operation(spec.build());
    let mut text = String::new();
    let mut needed = callees(&Function::read(written).ok()?, module);
    needed.extend(launched(module, &needed));
    for op in read::body_ops(module.as_operation()) {
        if read::string(&op, "sym_name").is_some_and(|name| needed.contains(&name)) {
            text += &irc_mlir::to_text(&op, false);
            text.push('\n');
        }
    }
    let hash = blake3::hash((irc_mlir::to_text(&written, false) + &text).as_bytes()).to_hex();
    let suffix = format!("_{}", &hash[..16]);
    let info = ProgramInfo { suffix: suffix.clone(), shared: true, ..ProgramInfo::default() };
    PROGRAM.write(written, &info);
    let name = attr::string(context, &format!("step{suffix}"));
    irc_mlir::set_attribute(written, "sym_name", name);
    text += &irc_mlir::to_text(&written, false);
    written.erase();
    Some((format!("irc_run_parallel{suffix}"), text.into()))
}

/// The functions that a function calls, directly and indirectly.
fn callees<'c: 'a, 'a>(function: &Function<'c, 'a>, module: &'a Module<'c>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = function.callees().into_iter().collect();
    while let Some(name) = open.pop() {
        let inner = kernel::named(module.as_operation(), &name);
        let inner = inner.and_then(|op| Function::read(op).ok());
        if found.insert(name) {
            open.extend(inner.iter().flat_map(Function::callees));
        }
    }
    found
}

/// The kernels that functions launch, and their launchers.
fn launched<'c: 'a, 'a>(module: &'a Module<'c>, functions: &BTreeSet<String>) -> BTreeSet<String> {
    let bodies = functions.iter().filter_map(|name| kernel::named(module.as_operation(), name));
    let launches = bodies.flat_map(read::body_ops);
    let kernels = launches.filter_map(|op| read::symbol(&op, "callee"));
    kernels.flat_map(|kernel| [launcher(&kernel), kernel]).collect()
}

/// The object of the functions that clients call. LLVM is used, as the quick tier has no weak symbols.
fn functions(text: &str, target: &Target) -> Result<Vec<u8>, QueryError> {
    let target = target.clone().with_backend(Backend::LLVM);
    let object = in_context(|context| {
        let module = irc_mlir::parse_module(context, text)?;
        Some(compile(&module, &target, Output::Object))
    });
    Ok(object.map_err(CompileError::Passes)??)
}

/// TVM's description of a target.
fn target_text(target: &Target) -> String {
    let features = match target.features.as_str() {
        "" => String::new(),
        features => format!(" -mattr={features}"),
    };
    format!("llvm -keys=cpu -mcpu={}{features} -mtriple={}", target.cpu, target.triple)
}

/// The error of a program that an archive cannot represent.
fn archive_error(reason: impl Into<ArchiveError>) -> QueryError {
    let ArchiveError { message, help } = reason.into();
    let found = Diagnostic::error("mlf-program", message);
    QueryError::found(vec![Diagnostic { help, ..found }])
}

fn why(reason: Option<ArchiveError>, captured: Vec<CapturedDiagnostic>) -> QueryError {
    reason.map_or_else(|| CompileError::Passes(captured).into(), archive_error)
}
