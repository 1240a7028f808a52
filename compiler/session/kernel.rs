//! Kernels and the functions that launch them, from their text to objects.
use super::{
    error::CompileError,
    machine::{in_context, run},
};
use crate::{
    codegen::{CodegenError, Output, Target, compile},
    interface::Interface,
    lowering::{emit_entry::share, linalg_to_vector::Packing},
    pipeline::{HOST_CPU, Settings},
};
use irc_executor::code::Keeps;
use irc_mlir::{
    BlockLike, Context, Location, Module, OperationLike, OperationRef, attr, read, string_value,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The kernel's name within its own module.
pub const NAME: &str = "irc_kernel";

/// A compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelObject {
    /// The symbol it defines, from a hash of what it was compiled from; weak and hidden, so that
    /// libraries that hold the same kernel can be linked together.
    pub symbol: String,
    /// What kind of kernel it is: `matmul`, `loops`, …
    pub kind: String,
    /// Its parameter types, as MLIR text.
    pub parameters: Vec<String>,
    /// The sizes it takes, in the order of its parameters of type `index`.
    pub symbols: Vec<String>,
    /// Bytes of scratch it needs.
    pub scratch: i64,
    /// Arguments that it takes packed.
    pub packed: Vec<Packing>,
    /// The relocatable object.
    pub object: Vec<u8>,
}

/// A compiled kernel of a plan's tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskObject {
    /// Its entry point, named by a hash of what it was compiled from.
    pub symbol: String,
    /// Bytes of scratch it needs.
    pub scratch: u64,
    /// What it keeps; its arguments are the kernel's first operands.
    pub keeps: Option<Keeps>,
    /// The relocatable object.
    pub object: Vec<u8>,
}

/// The compiled glue: `irc_run`, which calls the kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlueObject {
    /// The relocatable object.
    pub object: Vec<u8>,
    /// What the model takes and gives.
    pub interface: Interface,
}

/// Compiles one kernel.
pub fn compile_kernel(text: &str, target: &Target) -> Result<KernelObject, CompileError> {
    let (kernels, object) = compile_kernels(&[text], target)?;
    let kernel = kernels.into_iter().next();
    let none = || CompileError::Codegen(CodegenError::new("a kernel was lost"));
    Ok(KernelObject { object, ..kernel.ok_or_else(none)? })
}

/// Compiles kernels to one object; each of them is described without it.
pub fn compile_kernels(
    texts: &[&str],
    target: &Target,
) -> Result<(Vec<KernelObject>, Vec<u8>), CompileError> {
    let symbols: Vec<String> = texts.iter().map(|text| symbol_of(text, target)).collect();
    let named_texts = symbols.iter().map(String::as_str).zip(texts.iter().copied());
    let compiled = in_context(|context| {
        let mut module = module_of(context, named_texts)?;
        let kernels = schedule(context, &mut module, &symbols, target)?;
        run(
            context,
            &mut module,
            &HOST_CPU.text(&Settings::of(target), Some("memory"), Some("llvm")).ok()?,
        )?;
        for symbol in &symbols {
            share(named(module.as_operation(), symbol)?);
        }
        Some((kernels, compile(&module, target, Output::Object)))
    });
    let (kernels, object) = compiled.map_err(CompileError::Passes)?;
    Ok((kernels, object.map_err(CompileError::Codegen)?))
}

/// A module of kernels by symbol; in their own texts all have the same name.
pub fn module_of<'c, 't>(
    context: &'c Context,
    kernels: impl Iterator<Item = (&'t str, &'t str)>,
) -> Option<Module<'c>> {
    let module = Module::new(Location::unknown(context));
    for (symbol, text) in kernels {
        let one = irc_mlir::parse_module(context, text)?;
        let kernel = named(one.as_operation(), NAME)?;
        irc_mlir::set_attribute(kernel, "sym_name", attr::string(context, symbol));
        module.body().append_operation((*kernel).clone());
    }
    Some(module)
}

/// Takes kernels from the tensor level to loops and vectors; what each is, without an object.
pub fn schedule(
    context: &Context,
    module: &mut Module<'_>,
    symbols: &[String],
    target: &Target,
) -> Option<Vec<KernelObject>> {
    let kind = |symbol: &String| {
        let kernel = named(module.as_operation(), symbol)?;
        Some(read::string(&kernel, "irc.kind").unwrap_or_default())
    };
    let kinds: Vec<String> = symbols.iter().map(kind).collect::<Option<_>>()?;
    run(
        context,
        module,
        &HOST_CPU.text(&Settings::of(target), Some("kernels"), Some("vector")).ok()?,
    )?;
    let described = |(symbol, kind): (&String, String)| {
        let kernel = named(module.as_operation(), symbol)?;
        let (parameters, _) = read::signature(&kernel)?;
        let sizes = read::elements(&kernel, "irc.symbols").unwrap_or_default();
        Some(KernelObject {
            symbol: symbol.clone(),
            kind,
            parameters: parameters.iter().map(ToString::to_string).collect(),
            symbols: sizes.into_iter().map(string_value).collect::<Option<_>>()?,
            scratch: read::integer(&kernel, "irc.workspace_bytes")?,
            packed: packed(&kernel)?,
            object: vec![],
        })
    };
    symbols.iter().zip(kinds).map(described).collect()
}

/// What a lowered kernel takes packed.
fn packed(kernel: &OperationRef<'_, '_>) -> Option<Vec<Packing>> {
    let list = read::elements(kernel, "irc.packed").unwrap_or_default();
    list.into_iter().map(|each| Packing::of(&read::array_integers(each)?)).collect()
}

/// The symbol that a kernel of this text defines.
pub fn symbol_of(text: &str, target: &Target) -> String {
    let hash = blake3::hash(format!("{text}\n{target:?}").as_bytes()).to_hex();
    format!("{NAME}_{}", &hash[..16])
}

/// Compiles one kernel of a plan's tasks, with its entry point.
pub fn compile_task(text: &str, target: &Target) -> Result<TaskObject, CompileError> {
    let hash = blake3::hash(format!("{text}\n{target:?}").as_bytes()).to_hex();
    let symbol = format!("irc_task_{}", &hash[..16]);
    let compiled = in_context(|context| {
        let mut module = irc_mlir::parse_module(context, text)?;
        run(
            context,
            &mut module,
            &HOST_CPU.text(&Settings::of(target), Some("kernels"), Some("vector")).ok()?,
        )?;
        let kernel = named(module.as_operation(), NAME)?;
        let scratch = read::integer(&kernel, "irc.workspace_bytes")?.cast_unsigned();
        let keeps = keeps(&kernel);
        irc_mlir::set_attribute(kernel, "irc.entry", attr::string(context, &symbol));
        run(
            context,
            &mut module,
            &HOST_CPU.text(&Settings::of(target), Some("memory"), Some("llvm")).ok()?,
        )?;
        Some((scratch, keeps, compile(&module, target, Output::Object)))
    });
    let (scratch, keeps, object) = compiled.map_err(CompileError::Passes)?;
    Ok(TaskObject { symbol, scratch, keeps, object: object.map_err(CompileError::Codegen)? })
}

/// What a lowered kernel keeps, if anything.
fn keeps(kernel: &OperationRef<'_, '_>) -> Option<Keeps> {
    let bytes = read::integer(kernel, "irc.kept_bytes")?.cast_unsigned();
    let arguments = read::integers(kernel, "irc.kept_arguments")?;
    let operands = arguments.into_iter().map(|index| index.cast_unsigned() as usize).collect();
    (bytes > 0).then_some(Keeps { bytes, operands })
}

/// An object without symbols, for a library that needs no code: linkers refuse to link nothing.
pub fn compile_nothing(target: &Target) -> Result<Vec<u8>, CompileError> {
    let compiled = in_context(|context| {
        let module = irc_mlir::parse_module(context, "")?;
        Some(compile(&module, target, Output::Object))
    });
    compiled.map_err(CompileError::Passes)?.map_err(CompileError::Codegen)
}

/// Compiles the main function against declarations of its kernels.
pub fn compile_glue(text: &str, target: &Target) -> Result<GlueObject, CompileError> {
    let (interfaces, object) = compile_programs(text, target)?;
    let none = || CompileError::Codegen(CodegenError::new("the main function was lost"));
    let interface = interfaces.into_iter().next().ok_or_else(none)?;
    Ok(GlueObject { object, interface })
}

/// Compiles main functions against declarations of their kernels; their interfaces in order.
pub fn compile_programs(
    text: &str,
    target: &Target,
) -> Result<(Vec<Interface>, Vec<u8>), CompileError> {
    let compiled = in_context(|context| {
        let mut module = irc_mlir::parse_module(context, text)?;
        run(
            context,
            &mut module,
            &HOST_CPU.text(&Settings::of(target), Some("vector"), Some("memory")).ok()?,
        )?;
        let interfaces = complete_interfaces(context, &module, target)?;
        run(
            context,
            &mut module,
            &HOST_CPU.text(&Settings::of(target), Some("memory"), Some("llvm")).ok()?,
        )?;
        Some((interfaces, compile(&module, target, Output::Object)))
    });
    let (interfaces, object) = compiled.map_err(CompileError::Passes)?;
    Ok((interfaces, object.map_err(CompileError::Codegen)?))
}

/// The interfaces of the main functions of a module whose memory is planned, with the features that the
/// target's code requires and without constants that are linked; the functions hold them from now on.
pub fn complete_interfaces(
    context: &Context,
    module: &Module<'_>,
    target: &Target,
) -> Option<Vec<Interface>> {
    let mut interfaces = vec![];
    for main in read::body_ops(module.as_operation()) {
        if !main.has_attribute("irc.metadata") {
            continue;
        }
        let planned = read::string(&main, "irc.metadata")?;
        let mut interface = Interface::from_json(&planned).ok()?;
        interface.requires = target.required_features();
        if main.has_attribute("irc.weight_offsets") {
            interface.inputs.retain(|port| port.weight.is_none());
        }
        let metadata = attr::string(context, &interface.to_json());
        irc_mlir::set_attribute(main, "irc.metadata", metadata);
        interfaces.push(interface);
    }
    Some(interfaces)
}

/// Programs with the declarations of their kernels, each once.
pub fn with_declarations<'p>(
    programs: impl IntoIterator<Item = &'p str>,
    kernels: &BTreeMap<String, Arc<KernelObject>>,
) -> String {
    let mut text: String = programs.into_iter().collect();
    for (symbol, kernel) in kernels {
        text += &declaration(symbol, kernel);
    }
    text
}

fn declaration(symbol: &str, kernel: &KernelObject) -> String {
    let sizes: Vec<String> = kernel.symbols.iter().map(|size| quoted(size)).collect();
    format!(
        "\nfunc.func private @{symbol}({}) attributes {{irc.kernel, irc.symbols = [{}], \
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

/// Adds the symbols of a module that another one lacks.
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

/// The function of a name.
pub fn named<'c: 'a, 'a>(module: OperationRef<'c, 'a>, name: &str) -> Option<OperationRef<'c, 'a>> {
    let is = |op: &OperationRef<'c, 'a>| read::string(op, "sym_name").as_deref() == Some(name);
    read::body_ops(module).into_iter().find(is)
}
