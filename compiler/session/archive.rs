//! Archives of the Model Library Format: a fused program as a graph, with the code of its operators.
use super::{
    CompileOptions, Failure, FileId, Session,
    constants::Place,
    graph::{Parts, caught, located, parts_of, renamed, with_declarations},
    kernel::{self, KernelObject},
    machine::{in_context, run},
    queries::{self, unlocated},
};
use crate::{
    archive::{
        Kernel, Operator, Planned, Refused, Step,
        operators::{self, Callees, Count, Entry},
        plan,
    },
    codegen::{Backend, CodegenError, Output, Target, compile, join_objects, link_shared},
    interface::{Interface, interface_of},
    lowering::{
        emit_entry::set_linkage,
        graph_to_tl::{graph_to_tl, weights},
        plan_memory::program::Function,
    },
    pipeline::HOST_CPU,
};
use bytes::Bytes;
use irc_diag::Diagnostic;
use irc_dialects::ark::{Origins, import};
use irc_mlf::{Contents, Model, Shared, Version};
use irc_mlir::{
    Block, BlockLike, CapturedDiagnostic, Context, Erase, Module, OpSpec, OperationLike, Value,
    ValueLike, attr, read,
};
use irc_tl::{Constant, Graph};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What an archive is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveOptions {
    /// Version of the format.
    pub version: Version,
    /// Name of the model; some clients know none but `default`.
    pub model: String,
    /// When the archive says it was made, in seconds since 1970.
    pub time: u64,
}

impl Default for ArchiveOptions {
    fn default() -> Self {
        ArchiveOptions { version: Version::V5, model: "default".to_owned(), time: 0 }
    }
}

/// A program that is to be a graph.
struct Program {
    /// The function that calls kernels, those inside it, and the kernels.
    parts: Parts,
    /// Constants that arguments stand for.
    weights: Vec<Constant>,
    /// The IR of each stage, by path.
    sources: BTreeMap<String, Bytes>,
}

/// The symbol of the entry point of a step's program, and the program.
type StepText = (String, Arc<str>);

impl Program {
    /// Packs the constants that kernels want packed.
    fn settle(&mut self, kernels: &BTreeMap<String, Arc<KernelObject>>) -> Result<(), Failure> {
        let constants = std::mem::take(&mut self.weights);
        self.weights = self.parts.settle(constants, kernels, Place::Given)?;
        Ok(())
    }
}

/// What is made of a program.
struct Made {
    planned: Planned,
    /// Bytes of workspace of each function.
    workspaces: BTreeMap<String, u64>,
    /// Code, by path.
    code: (String, Bytes),
    shared: Option<Shared>,
}

impl Session {
    /// What an archive of a file is made of; [`irc_mlf::build`] makes it.
    ///
    /// # Errors
    /// Diagnostics in the file, what code generation could not do, or that a graph cannot hold it.
    pub fn archive(
        &self,
        file: FileId,
        options: &CompileOptions,
        archive: &ArchiveOptions,
    ) -> Result<Contents, Failure> {
        let config = queries::Config::new(&self.database, options.clone());
        let program = self.program_of_file(file, options);
        let contents = program.and_then(|program| self.contents(program, options, archive));
        contents.map_err(|failure| queries::locate(&self.database, file.0, config, failure))
    }

    /// As [`Session::archive`], of a graph.
    ///
    /// # Errors
    /// As [`Session::archive`].
    pub fn archive_graph(
        &self,
        graph: &Graph,
        options: &CompileOptions,
        archive: &ArchiveOptions,
    ) -> Result<Contents, Failure> {
        let made = caught(|| {
            let program = self.program_of_graph(graph, options)?;
            self.contents(program, options, archive)
        });
        made.map_err(|failure| located(graph, options, failure))
    }

    fn program_of_file(&self, file: FileId, options: &CompileOptions) -> Result<Program, Failure> {
        let config = queries::Config::new(&self.database, options.clone());
        let fused = queries::fused(&self.database, file.0, config)?;
        let (mut names, mut texts) = (BTreeMap::new(), BTreeMap::new());
        for (name, text) in &fused.kernels {
            let symbol = kernel::symbol_of(text, &options.target);
            names.insert(format!("@{name}("), format!("@{symbol}("));
            texts.insert(symbol, text.clone());
        }
        let parts = Parts { program: renamed(&fused.main, &names), kernels: texts };
        let parsed = queries::parsed(&self.database, file.0, false);
        let sources = in_context(|context| {
            let document = parsed.document.as_ref()?;
            let origins = Origins { file: None, nodes: &[] };
            let mut module = import(context, &document.model, origins);
            stages(context, &mut module, options)
        });
        let sources =
            sources.map_err(|captured| queries::placed(&self.database, file.0, &captured))?;
        Ok(Program { parts, weights: vec![], sources })
    }

    fn program_of_graph(
        &self,
        graph: &Graph,
        options: &CompileOptions,
    ) -> Result<Program, Failure> {
        let parts = parts_of(&self.database, graph, options, "main", "")?;
        let sources = in_context(|context| {
            let mut module = graph_to_tl(context, graph, "main").ok()?;
            stages(context, &mut module, options)
        });
        let sources = sources.map_err(said)?;
        Ok(Program { parts, weights: weights(graph), sources })
    }

    fn contents(
        &self,
        mut program: Program,
        options: &CompileOptions,
        archive: &ArchiveOptions,
    ) -> Result<Contents, Failure> {
        let made = match options.target.backend {
            Backend::C => source(&mut program, &options.target, archive)?,
            Backend::Llvm | Backend::Cranelift => {
                self.objects(&mut program, &options.target, archive)?
            }
        };
        let model = Model {
            name: archive.model.clone(),
            target: target_text(&options.target),
            device: 1,
            workspaces: made.workspaces,
            graph: made.planned.graph,
            outputs: made.planned.outputs,
            with_weights: !made.planned.params.is_empty(),
            params: made.planned.params,
            vectors: vec![],
        };
        Ok(Contents {
            version: archive.version,
            time: archive.time,
            models: vec![model],
            code: BTreeMap::from([made.code]),
            shared: made.shared,
            sources: program.sources,
        })
    }

    /// A program whose kernels are compiled each alone, and linked.
    fn objects(
        &self,
        program: &mut Program,
        target: &Target,
        archive: &ArchiveOptions,
    ) -> Result<Made, Failure> {
        let objects = self.kernels(&program.parts.kernels, target)?;
        program.settle(&objects)?;
        let text = with_declarations(&[&program.parts], |symbol| objects.get(symbol).cloned());
        let kernels: BTreeMap<String, Kernel> =
            objects.iter().map(|(symbol, object)| (symbol.clone(), kernel_of(object))).collect();
        let mut message = None;
        let planned = in_context(|context| {
            let planned = planned(context, &text, &program.weights, &kernels, archive);
            planned.map_err(|error| message = Some(error)).ok()
        });
        let (planned, texts) = planned.map_err(|captured| why(message, captured))?;
        let (mut entries, mut steps) = (vec![], BTreeMap::new());
        for (symbol, text) in texts {
            let key = queries::GlueKey::new(&self.database, text, target.clone());
            let glue = queries::glue_object(&self.database, key).map_err(unlocated)?;
            entries
                .push(Entry { symbol: symbol.clone(), workspace: glue.interface.workspace_bytes });
            steps.insert(symbol, glue);
        }
        let callees = Callees { kernels: &kernels, steps: &entries };
        let text = operators::write(&planned.operators, callees, archive.count());
        let functions = functions(&text.map_err(refused)?, target)?;
        let first = [("operators".to_owned(), functions.as_slice())].into_iter();
        let steps = steps.iter().map(|(name, glue)| (name.clone(), glue.object.as_slice()));
        let code = objects.values();
        let code = code.map(|kernel| (kernel.symbol.clone(), kernel.object.as_slice()));
        let internal = |error: CodegenError| Failure::internal(error.to_string());
        let object = join_objects(first.chain(steps).chain(code)).map_err(internal)?;
        let bytes = link_shared(&object).map_err(internal)?.into();
        let path = format!("lib/{}_lib0.o", archive.model);
        Ok(Made {
            workspaces: workspaces(&planned, callees),
            planned,
            code: (path, object.into()),
            shared: Some(Shared { bytes, requires: target.required_features() }),
        })
    }
}

impl ArchiveOptions {
    /// What the names of functions begin with.
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
) -> Result<Made, Failure> {
    let Program { parts, weights, .. } = program;
    let (symbols, texts): (Vec<String>, Vec<&Arc<str>>) =
        parts.kernels.iter().map(|(symbol, text)| (symbol.clone(), text)).unzip();
    let texts = symbols.iter().zip(texts).map(|(symbol, text)| (symbol.as_str(), &**text));
    let text = kernel::text_of(texts);
    let mut message = None;
    let made = in_context(|context| {
        let mut module = irc_mlir::parse_module(context, &text)?;
        let objects = kernel::schedule(context, &mut module, &symbols, target)?;
        let objects: BTreeMap<_, _> =
            objects.into_iter().map(|kernel| (kernel.symbol.clone(), Arc::new(kernel))).collect();
        let kernels: BTreeMap<String, Kernel> =
            objects.iter().map(|(symbol, object)| (symbol.clone(), kernel_of(object))).collect();
        let constants = std::mem::take(weights);
        *weights = parts.settle_in(context, constants, &objects, Place::Given)?;
        let whole = with_declarations(&[&*parts], |symbol| objects.get(symbol).cloned());
        let planned = planned(context, &whole, weights, &kernels, archive);
        let (planned, steps) = planned.map_err(|error| message = Some(error)).ok()?;
        let mut entries = vec![];
        for (symbol, text) in steps {
            let workspace = add_step(context, &module, &text, target)?;
            entries.push(Entry { symbol, workspace });
        }
        run(context, &mut module, &HOST_CPU.text_for(target, "llvm", "llvm").ok()?)?;
        for symbol in symbols.iter().chain(entries.iter().map(|entry| &entry.symbol)) {
            set_linkage(kernel::named(module.as_operation(), symbol)?, "internal");
        }
        let callees = Callees { kernels: &kernels, steps: &entries };
        let text = operators::write(&planned.operators, callees, archive.count());
        let text = text.map_err(|error| message = Some(error.into())).ok()?;
        add(&module, &irc_mlir::parse_module(context, &text)?);
        Some((compile(&module, target, Output::C), workspaces(&planned, callees), planned))
    });
    let (source, workspaces, planned) = made.map_err(|captured| why(message, captured))?;
    let source = source.map_err(|error| Failure::internal(error.to_string()))?;
    let code = (format!("src/{}_lib0.c", archive.model), Bytes::from(source));
    Ok(Made { planned, workspaces, code, shared: None })
}

/// Adds a step of a program, whose kernels are in the module, after its memory is planned; bytes of its
/// workspace.
fn add_step(context: &Context, module: &Module<'_>, text: &str, target: &Target) -> Option<u64> {
    let mut step = irc_mlir::parse_module(context, text)?;
    run(context, &mut step, &HOST_CPU.text_for(target, "memory", "memory").ok()?)?;
    let mains = read::body_ops(step.as_operation()).into_iter();
    let metadata = mains.filter_map(|main| read::string(&main, "irc.metadata")).next()?;
    let interface = Interface::from_json(&metadata).ok()?;
    add(module, &step);
    Some(interface.workspace_bytes)
}

/// Adds the symbols of a module that another one lacks.
fn add<'c>(module: &Module<'c>, more: &Module<'c>) {
    let known: BTreeSet<String> = read::body_ops(module.as_operation())
        .iter()
        .filter_map(|op| read::string(op, "sym_name"))
        .collect();
    for op in read::body_ops(more.as_operation()) {
        if read::string(&op, "sym_name").is_none_or(|name| !known.contains(&name)) {
            module.body().append_operation((*op).clone());
        }
    }
}

fn workspaces(planned: &Planned, callees: Callees<'_>) -> BTreeMap<String, u64> {
    let workspace = |operator: &Operator| (operator.name.clone(), callees.workspace(operator));
    planned.operators.iter().map(workspace).collect()
}

fn kernel_of(object: &Arc<KernelObject>) -> Kernel {
    Kernel {
        kind: object.kind.clone(),
        parameters: object.parameters.iter().map(|ty| ty == "index").collect(),
        symbols: object.symbols.clone(),
        scratch: object.scratch.cast_unsigned(),
    }
}

/// The graph of a program, and programs of the steps that are choices and loops, by the symbols of their
/// entry points.
fn planned(
    context: &Context,
    text: &str,
    weights: &[Constant],
    kernels: &BTreeMap<String, Kernel>,
    archive: &ArchiveOptions,
) -> Result<(Planned, Vec<StepText>), Refused> {
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

/// A program that does one step of another, and the symbol of its entry point.
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
    let made: Vec<Value> = copied.results().map(Into::into).collect();
    OpSpec::new(context, "func.return", op.location()).operands(&made).append(&body);
    // Its text has a name of its own, of which it gets one that says what it is.
    let spec = irc_mlir::function(context, "step", &inputs, &outputs, body, op.location())
        .attr("irc.graph", attr::unit(context))
        .attr("irc.shared", attr::unit(context));
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
    irc_mlir::set_attribute(written, "irc.suffix", attr::string(context, &suffix));
    let name = attr::string(context, &format!("step{suffix}"));
    irc_mlir::set_attribute(written, "sym_name", name);
    text += &irc_mlir::to_text(&written, false);
    written.erase();
    Some((format!("irc_run{suffix}"), text.into()))
}

/// The functions that a function calls, and those that they call.
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

/// The kernels that functions call.
fn launched<'c: 'a, 'a>(module: &'a Module<'c>, functions: &BTreeSet<String>) -> BTreeSet<String> {
    let bodies = functions.iter().filter_map(|name| kernel::named(module.as_operation(), name));
    let launches = bodies.flat_map(read::body_ops);
    launches.filter_map(|op| read::symbol(&op, "callee")).collect()
}

/// The object of the functions that clients call. The quick tier has no weak symbols.
fn functions(text: &str, target: &Target) -> Result<Vec<u8>, Failure> {
    let target = target.clone().with_backend(Backend::Llvm);
    let object = in_context(|context| {
        let module = irc_mlir::parse_module(context, text)?;
        Some(compile(&module, &target, Output::Object))
    });
    let internal = |error: CodegenError| Failure::internal(error.to_string());
    object.map_err(said)?.map_err(internal)
}

/// The IR after each stage, as text by path.
fn stages(
    context: &Context,
    module: &mut Module<'_>,
    options: &CompileOptions,
) -> Option<BTreeMap<String, Bytes>> {
    let mut texts = BTreeMap::new();
    for (number, stage) in HOST_CPU.stages.iter().enumerate() {
        run(context, module, &HOST_CPU.text_with(options, stage.name, stage.name).ok()?)?;
        let text = irc_mlir::to_text(&module.as_operation(), false);
        texts.insert(format!("{number}-{}.mlir", stage.name), text.into());
    }
    Some(texts)
}

/// How TVM describes a target.
fn target_text(target: &Target) -> String {
    let features = match target.features.as_str() {
        "" => String::new(),
        features => format!(" -mattr={features}"),
    };
    format!("llvm -keys=cpu -mcpu={}{features} -mtriple={}", target.cpu, target.triple)
}

/// Why an archive cannot hold a program.
fn refused(reason: impl Into<Refused>) -> Failure {
    let Refused { message, help } = reason.into();
    let found = Diagnostic::error("mlf-program", message);
    let found = Diagnostic { help: help.map(str::to_owned), ..found };
    Failure { diagnostics: vec![found], internal: false }
}

fn why(reason: Option<Refused>, captured: Vec<CapturedDiagnostic>) -> Failure {
    reason.map_or_else(|| said(captured), refused)
}

fn said(captured: Vec<CapturedDiagnostic>) -> Failure {
    unlocated(kernel::Broken::Passes(captured))
}
