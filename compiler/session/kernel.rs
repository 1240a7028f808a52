//! Compiles kernels, and the functions that launch them, from text to objects.
use super::error::CompileError;
use crate::{
    attributes::{KernelInfo, PROGRAM, ProgramInfo, launcher},
    codegen::{CodegenError, Output, Target, compile},
    interface::Interface,
    lowering::emit_entry::share,
    machine::{in_context, run_stages},
    pipeline::Settings,
};
use irc_mlir::{BlockLike, Context, Location, Module, OperationRef, attr, read};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The name of a kernel of tasks within its own module.
pub const NAME: &str = "irc_kernel";

/// A compiled kernel, of a program or of a plan's tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelObject {
    /// The symbol that it defines, from a hash of the text it was compiled from: the kernel itself, weak
    /// and hidden, so that libraries with the same kernel can be linked together; or, for tasks, its entry
    /// point, whose arguments are the kernel's operands.
    pub symbol: String,
    /// The properties that callers use.
    pub info: KernelInfo,
    /// The relocatable object.
    pub object: Vec<u8>,
}

/// The compiled glue code: `irc_run`, which calls the kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlueObject {
    /// The relocatable object.
    pub object: Vec<u8>,
    /// The model's inputs and outputs.
    pub interface: Interface,
}

/// Compiles one kernel.
pub fn compile_kernel(text: &str, target: &Target) -> Result<KernelObject, CompileError> {
    let (kernels, object) = compile_kernels(&[text], target)?;
    let kernel = kernels.into_iter().next();
    let none = || CompileError::Codegen(CodegenError::new("a kernel was lost"));
    Ok(KernelObject { object, ..kernel.ok_or_else(none)? })
}

/// Compiles kernels to one object. Returns the object, and each kernel's description without it.
pub fn compile_kernels(
    texts: &[&str],
    target: &Target,
) -> Result<(Vec<KernelObject>, Vec<u8>), CompileError> {
    let symbols: Vec<String> = texts.iter().map(|text| symbol_of(text, target)).collect();
    let named_texts = symbols.iter().map(String::as_str).zip(texts.iter().copied());
    let compiled = in_context(|context| {
        let mut module = module_of(context, named_texts)?;
        let kernels = schedule(context, &mut module, &symbols, target)?;
        lower(context, &mut module, target)?;
        let functions = functions(module.as_operation());
        for symbol in &symbols {
            share(*functions.get(symbol)?);
            functions.get(&launcher(symbol)).copied().map(share);
        }
        Some((kernels, compile(&module, target, Output::Object)))
    });
    let (kernels, object) = compiled.map_err(CompileError::Passes)?;
    Ok((kernels, object.map_err(CompileError::Codegen)?))
}

/// A module of kernels by symbol; each has a name in its own text.
pub fn module_of<'c, 't>(
    context: &'c Context,
    kernels: impl Iterator<Item = (&'t str, &'t str)>,
) -> Option<Module<'c>> {
    let module = Module::new(Location::unknown(context));
    for (symbol, text) in kernels {
        let one = irc_mlir::parse_module(context, text)?;
        let kernel = read::body_ops(one.as_operation()).into_iter().next()?;
        irc_mlir::set_attribute(kernel, "sym_name", attr::string(context, symbol));
        module.body().append_operation((*kernel).clone());
    }
    Some(module)
}

/// Lowers kernels from the tensor level to loops and vectors. Returns their descriptions without objects.
pub fn schedule(
    context: &Context,
    module: &mut Module<'_>,
    symbols: &[String],
    target: &Target,
) -> Option<Vec<KernelObject>> {
    schedule_with(context, module, symbols, &Settings::of(target))
}

/// As [`schedule`], with settings.
pub fn schedule_with(
    context: &Context,
    module: &mut Module<'_>,
    symbols: &[String],
    settings: &Settings,
) -> Option<Vec<KernelObject>> {
    run_stages(context, module, settings, "kernels", settings.pipeline.scheduled())?;
    let functions = functions(module.as_operation());
    let described = |symbol: &String| {
        let info = KernelInfo::read(functions.get(symbol)?)?;
        Some(KernelObject { symbol: symbol.clone(), info, object: vec![] })
    };
    symbols.iter().map(described).collect()
}

/// Plans the memory of a module's programs and completes their interfaces.
pub fn plan_memory(
    context: &Context,
    module: &mut Module<'_>,
    target: &Target,
) -> Option<Vec<Interface>> {
    let settings = Settings::of(target);
    run_stages(context, module, &settings, settings.pipeline.scheduled(), "memory")?;
    complete_interfaces(module, target)
}

/// Lowers a module, after memory planning, to the `llvm` dialect.
pub fn lower(context: &Context, module: &mut Module<'_>, target: &Target) -> Option<()> {
    run_stages(context, module, &Settings::of(target), "memory", "llvm")
}

/// The symbol of a kernel with this text: its name there, with a hash.
pub fn symbol_of(text: &str, target: &Target) -> String {
    let name = text.split_once('@').and_then(|(_, rest)| rest.split('(').next());
    symbol(name.unwrap_or(NAME), text, target)
}

fn symbol(prefix: &str, text: &str, target: &Target) -> String {
    let hash = blake3::hash(format!("{text}\n{target:?}").as_bytes()).to_hex();
    format!("{prefix}_{}", &hash[..16])
}

/// The symbol of a kernel of a plan's tasks.
pub fn task_symbol(text: &str, target: &Target) -> String {
    symbol("irc_task", text, target)
}

/// Compiles one kernel of a plan's tasks, with its entry point.
pub fn compile_task(text: &str, target: &Target) -> Result<KernelObject, CompileError> {
    let symbol = task_symbol(text, target);
    let compiled = in_context(|context| {
        let mut module = irc_mlir::parse_module(context, text)?;
        let settings = Settings::of(target);
        run_stages(context, &mut module, &settings, "kernels", settings.pipeline.scheduled())?;
        let kernel = named(module.as_operation(), NAME)?;
        let info = KernelInfo::read(&kernel)?;
        KernelInfo::update(kernel, |info| info.entry = Some(symbol.clone()));
        lower(context, &mut module, target)?;
        Some((info, compile(&module, target, Output::Object)))
    });
    let (info, object) = compiled.map_err(CompileError::Passes)?;
    Ok(KernelObject { symbol, info, object: object.map_err(CompileError::Codegen)? })
}

/// An object without symbols, for a library without code: linkers reject an empty list of objects.
pub fn compile_nothing(target: &Target) -> Result<Vec<u8>, CompileError> {
    let compiled = in_context(|context| {
        let module = irc_mlir::parse_module(context, "")?;
        Some(compile(&module, target, Output::Object))
    });
    compiled.map_err(CompileError::Passes)?.map_err(CompileError::Codegen)
}

/// Compiles the main function with declarations of its kernels.
pub fn compile_glue(text: &str, target: &Target) -> Result<GlueObject, CompileError> {
    let (interfaces, object) = compile_programs(text, target)?;
    let none = || CompileError::Codegen(CodegenError::new("the main function was lost"));
    let interface = interfaces.into_iter().next().ok_or_else(none)?;
    Ok(GlueObject { object, interface })
}

/// Compiles main functions with declarations of their kernels. Returns their interfaces in order.
pub fn compile_programs(
    text: &str,
    target: &Target,
) -> Result<(Vec<Interface>, Vec<u8>), CompileError> {
    let compiled = in_context(|context| {
        let mut module = irc_mlir::parse_module(context, text)?;
        let interfaces = plan_memory(context, &mut module, target)?;
        lower(context, &mut module, target)?;
        Some((interfaces, compile(&module, target, Output::Object)))
    });
    let (interfaces, object) = compiled.map_err(CompileError::Passes)?;
    Ok((interfaces, object.map_err(CompileError::Codegen)?))
}

/// The interfaces of the main functions of a module after memory planning, without constants that are
/// linked. They require the features of the target, which are restricted to the used ones after code
/// generation; the functions store them as attributes.
pub fn complete_interfaces(module: &Module<'_>, target: &Target) -> Option<Vec<Interface>> {
    let mut interfaces = vec![];
    for main in read::body_ops(module.as_operation()) {
        let program = ProgramInfo::of(&main);
        let Some(planned) = &program.metadata else { continue };
        let mut interface = Interface::from_json(planned).ok()?;
        interface.requires = target.required_features();
        if !program.weight_offsets.is_empty() {
            interface.inputs.retain(|port| port.weight.is_none());
        }
        PROGRAM.write(main, &ProgramInfo { metadata: Some(interface.to_json()), ..program });
        interfaces.push(interface);
    }
    Some(interfaces)
}

/// Programs with the declarations of their kernels, without duplicates.
pub fn with_declarations<'p>(
    programs: impl IntoIterator<Item = &'p str>,
    kernels: &BTreeMap<String, Arc<KernelObject>>,
) -> String {
    let mut text: String = programs.into_iter().collect();
    for (symbol, kernel) in kernels {
        text += &kernel.info.declaration(symbol);
    }
    text
}

/// Adds the symbols of a module that another module lacks.
pub fn add<'c>(module: &Module<'c>, more: &Module<'c>) {
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

/// The functions of a module by name; of those with the same name, the first.
pub fn functions<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
) -> BTreeMap<String, OperationRef<'c, 'a>> {
    let mut found = BTreeMap::new();
    for op in read::body_ops(module) {
        if let Some(name) = read::string(&op, "sym_name") {
            found.entry(name).or_insert(op);
        }
    }
    found
}

/// The function of a name. Takes time linear in the size of the module; see [`functions`].
pub fn named<'c: 'a, 'a>(module: OperationRef<'c, 'a>, name: &str) -> Option<OperationRef<'c, 'a>> {
    let is = |op: &OperationRef<'c, 'a>| read::string(op, "sym_name").as_deref() == Some(name);
    read::body_ops(module).into_iter().find(is)
}
