//! Adds the entry point of a GPU to a module in the `llvm` dialect; functions of the device are in `nvvm` too.
//!
//! Before: `@irc_main` takes one pointer per buffer, one for the workspace, and one for threads; kernels are those of
//! `compute-to-simt`. After: also the kernel `irc_run`, whose parameters are a pointer for each input and result, one to all
//! constants if there are any, one to the workspace, in global memory and aligned to [`irc_tensor::ALIGNMENT`], and one to
//! the record of the launch (`irc_runtime::gpu::record`). Its launch must be cooperative: all blocks run at once.
//!
//! The functions of the device are defined (`device.mlir`), and everything but the entry point is internal.
mod forward;

use super::{
    compute_to_loops::simt::{BLOCK_THREADS, groups, is_team, team_of},
    emit_entry::{is_long, limit_effort},
    tabulate_steps::STEPS,
};
use crate::{
    attributes::{KERNEL, ProgramInfo},
    kernel::emit::first_result,
};
use irc_mlir::ops::llvm;
use irc_mlir::{
    BlockLike, BlockRef, Erase, OpSpec, OperationLike, OperationRef, OptionKind, Options, Pass,
    PassError, PassOption, PassResult, RegionLike, Value, ValueLike, attr, read, replace_all_uses,
    ty, walk_collect,
};
use irc_runtime::Interface;
use irc_tensor::DType;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

/// The pass `emit-gpu-entry`.
pub struct EmitGpuEntry;

/// The name of the shared memory of blocks, whose size is stated when the kernel is launched.
pub const SHARED: &str = "irc_gpu_shared_memory";

/// The name of the entry point.
pub const ENTRY: &str = "irc_run";

/// The option for recording when steps begin and end.
pub const TIMESTAMPS: PassOption = PassOption {
    name: "timestamps",
    help: "record when tasks and kernels begin and end",
    default: "false",
    kind: OptionKind::Boolean,
};

/// The names of the entry points of a program of several.
pub fn entry_of(number: usize) -> String {
    format!("{ENTRY}_{number}")
}

/// The number of threads of a block of a program that is not a plan, on a GPU of a compute capability.
pub fn block_threads(capability: u32) -> u32 {
    if capability == 90 { groups::THREADS as u32 } else { 256 }
}

/// The most copies of code that groups of warps run for it to be part of the entry point: calls of a function beyond the
/// first.
const MAX_COPIES: usize = 32;

/// Intrinsics that LLVM leaves to a library, which GPUs lack; those of scalars are expanded before.
const LIBRARY: [&str; 16] = [
    "exp", "exp2", "exp10", "log", "log2", "log10", "pow", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh",
];

/// The name of an intrinsic.
fn intrinsic(op: &OperationRef<'_, '_>) -> Option<String> {
    let name = read::op_name(op);
    Some(name.strip_prefix(llvm::PREFIX)?.strip_prefix("intr.")?.to_owned())
}

/// Functions of the device.
const DEVICE: &str = include_str!("device.mlir");

impl Pass for EmitGpuEntry {
    fn name(&self) -> &'static str {
        "emit-gpu-entry"
    }
    fn description(&self) -> &'static str {
        "add the entry point of a GPU, irc_run, and the functions of the device"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["llvm", "nvvm"]
    }
    fn options(&self) -> &'static [PassOption] {
        &[BLOCK_THREADS, TIMESTAMPS]
    }
    fn run(&self, module: OperationRef<'_, '_>, options: &Options) -> PassResult {
        let is_missing = |op: OperationRef<'_, '_>| {
            intrinsic(&op).is_some_and(|name| LIBRARY.contains(&name.as_str()))
        };
        if let Some(op) = walk_collect(module, is_missing).first() {
            let function = intrinsic(op).unwrap_or_default();
            let message = format!("needs '{function}' of a library, and GPUs have none");
            return Err(PassError::at(op, message));
        }
        let (threads, timestamps) =
            (options.integer(BLOCK_THREADS.name), options.boolean(TIMESTAMPS.name));
        define_device(module)?;
        let functions = walk_collect(module, |op| read::op_name(&op) == llvm::FUNC);
        let teams: BTreeSet<String> = functions
            .iter()
            .filter(|function| KERNEL.is_on(*function))
            .filter_map(|kernel| Some(team_of(&read::string(kernel, "sym_name")?)))
            .collect();
        for call in walk_collect(module, |op| read::op_name(&op) == llvm::CALL) {
            if read::symbol(&call, "callee").is_some_and(|callee| teams.contains(&callee)) {
                pass_global_memory(call);
            }
        }
        let inlined = inlined(&functions);
        let is_program =
            |function: &&OperationRef<'_, '_>| ProgramInfo::of(function).metadata.is_some();
        let is_alone = functions.iter().filter(is_program).count() == 1;
        let mut entries = 0;
        for function in functions {
            let Some(block) = function.region(0).ok().and_then(|region| region.first_block())
            else {
                continue;
            };
            let context = irc_mlir::context_of(&function);
            let name = read::string(&function, "sym_name").unwrap_or_default();
            let is_team = teams.contains(&name);
            if is_team {
                takes_global_memory(function, &block);
            }
            match (inlined.contains(&name), is_team) {
                (true, _) => {
                    irc_mlir::set_attribute(function, "always_inline", attr::unit(context));
                }
                (_, true) => irc_mlir::set_attribute(function, "no_inline", attr::unit(context)),
                // As long as there are kernels, not steps.
                _ if name == STEPS => {}
                _ => limit_effort(function),
            }
            let convergent = attr::parse(context, "[\"convergent\"]");
            irc_mlir::set_attribute(function, "passthrough", convergent);
            let internal = attr::parse(context, "#llvm.linkage<internal>");
            irc_mlir::set_attribute(function, "linkage", internal);
            let program = ProgramInfo::of(&function);
            if let Some(text) = &program.metadata {
                let entry = if is_alone { ENTRY.to_owned() } else { entry_of(entries) };
                entries += 1;
                emit_program(function, &program, text, (&entry, threads, timestamps))?;
            }
        }
        if !is_alone {
            forward::forward_calls(module)?;
        }
        Ok(())
    }
}

/// The functions that become part of the entry point: those that multiply by groups of warps, and what calls them. NVIDIA's
/// assembler waits for each of these instructions in other functions. None if that were much code.
fn inlined(functions: &[OperationRef<'_, '_>]) -> BTreeSet<String> {
    // By callee, the callers, once for each call.
    let mut callers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for function in functions {
        let name = read::string(function, "sym_name").unwrap_or_default();
        for call in walk_collect(*function, |op| read::op_name(&op) == llvm::CALL) {
            let callee = read::symbol(&call, "callee").unwrap_or_default();
            callers.entry(callee).or_default().push(name.clone());
        }
    }
    let (mut found, mut copies) = (BTreeSet::new(), 0);
    let of_groups = callers.keys().filter(|name| name.starts_with(groups::FUNCTION));
    let mut next: Vec<&String> = of_groups.flat_map(|name| &callers[name]).collect();
    while let Some(name) = next.pop() {
        if found.insert(name.clone()) {
            let own = callers.get(name).map_or(&[][..], Vec::as_slice);
            copies += own.len().saturating_sub(1);
            next.extend(own);
        }
    }
    let is_caller = |function: &&OperationRef<'_, '_>| {
        let name = read::string(*function, "sym_name");
        !is_team(function) && name.is_some_and(|name| name != STEPS && found.contains(&name))
    };
    let is_short = !functions.iter().filter(is_caller).any(|function| is_long(*function));
    if is_short && copies <= MAX_COPIES { found } else { BTreeSet::new() }
}

/// Defines the functions of the device, in place of their declarations.
fn define_device(module: OperationRef<'_, '_>) -> PassResult {
    let context = irc_mlir::context_of(&module);
    let body = module.region(0).ok().and_then(|region| region.first_block());
    let declared = body.iter().flat_map(|_| read::body_ops(module));
    let declared = declared.filter_map(|op| read::string(&op, "sym_name"));
    let of_groups: String = declared.filter_map(|name| groups::definition(&name)).collect();
    let parsed = irc_mlir::parse_module(context, &format!("{DEVICE}{of_groups}"));
    let (Some(body), Some(parsed)) = (body, parsed) else {
        return Err(PassError::at(&module, "cannot hold the functions of the device"));
    };
    let defined = read::body_ops(parsed.as_operation());
    let name = |op: &OperationRef<'_, '_>| read::string(op, "sym_name");
    let names: BTreeSet<String> = defined.iter().filter_map(name).collect();
    for op in read::body_ops(module) {
        if name(&op).is_some_and(|name| names.contains(&name)) {
            op.erase();
        }
    }
    for op in defined {
        body.append_operation((*op).clone());
    }
    Ok(())
}

/// Makes the pointers that a function takes ones to global memory, but for those to shared memory, so that accesses need not
/// find out where it is.
fn takes_global_memory<'c: 'a, 'a>(function: OperationRef<'c, 'a>, block: &BlockRef<'c, 'a>) {
    let context = irc_mlir::context_of(&function);
    let (generic, global) = (ty::parse(context, "!llvm.ptr"), ty::parse(context, "!llvm.ptr<1>"));
    let Some(first) = block.first_operation() else { return };
    for index in 0..block.argument_count() {
        let Ok(argument) = block.argument(index) else { continue };
        let argument: Value<'_, '_> = argument.into();
        if argument.r#type() != generic {
            continue;
        }
        // The uses of the argument are replaced before it has one in the cast.
        let none = OpSpec::new(context, llvm::MLIR_ZERO, first.location()).results(&[generic]);
        let none = block.insert_operation_before(first, none.build());
        replace_all_uses(argument, first_result(none));
        irc_mlir::set_type(argument, global);
        let cast = OpSpec::new(context, llvm::ADDRSPACECAST, first.location());
        let cast = cast.operands(&[argument]).results(&[generic]).build();
        let cast = block.insert_operation_before(first, cast);
        replace_all_uses(first_result(none), first_result(cast));
        none.erase();
    }
    let arguments = (0..block.argument_count()).filter_map(|index| block.argument(index).ok());
    let types: Vec<String> = arguments.map(|argument| argument.r#type().to_string()).collect();
    let signature = format!("!llvm.func<void ({})>", types.join(", "));
    irc_mlir::set_attribute(function, "function_type", attr::ty(ty::parse(context, &signature)));
}

/// Passes pointers to global memory to a function that takes such.
fn pass_global_memory<'c: 'a, 'a>(call: OperationRef<'c, 'a>) {
    let context = irc_mlir::context_of(&call);
    let (generic, global) = (ty::parse(context, "!llvm.ptr"), ty::parse(context, "!llvm.ptr<1>"));
    let Some(block) = call.block() else { return };
    let operands: Vec<Value<'_, '_>> = call.operands().collect();
    for (index, operand) in operands.into_iter().enumerate() {
        if operand.r#type() == generic {
            let cast = OpSpec::new(context, llvm::ADDRSPACECAST, call.location());
            let cast = cast.operands(&[operand]).results(&[global]).build();
            let cast = block.insert_operation_before(call, cast);
            irc_mlir::set_operand(call, index, first_result(cast));
        }
    }
}

/// Adds the entry point of a program.
fn emit_program(
    main: OperationRef<'_, '_>,
    program: &ProgramInfo,
    interface: &str,
    (entry, threads, timestamps): (&str, i64, bool),
) -> PassResult {
    let context = irc_mlir::context_of(&main);
    let interface =
        Interface::from_json(interface).map_err(|error| PassError::at(&main, &error))?;
    if interface.is_sized() {
        let message = "has sizes that are computed at run time: kernels for GPUs need known sizes; --shape gives those of inputs";
        return Err(PassError::at(&main, message));
    }
    let ports = || interface.inputs.iter().chain(&interface.outputs);
    if let Some(port) = ports().find(|port| port.element_type() == Some(DType::String)) {
        let message = format!("'{}' has strings, which GPUs do not have", port.name);
        return Err(PassError::at(&main, message));
    }
    let (Some(module), Some(name)) = (main.block(), read::string(&main, "sym_name")) else {
        return Err(PassError::at(&main, "is not in a module"));
    };
    let body = main.region(0).ok().and_then(|region| region.first_block());
    let arguments = body.map_or(0, |body| body.argument_count());
    // The last arguments of main are the workspace and a pool of threads. Constants become one parameter before them.
    let offset = |index: usize| program.weight_offsets.get(index).filter(|offset| **offset >= 0);
    let has_constants = (0..arguments).any(|index| offset(index).is_some());
    let buffers = (0..arguments - 2).filter(|index| offset(*index).is_none());
    let buffers = buffers.map(|index| format!("%{index}"));
    let constants = has_constants.then(|| "%constants".to_owned());
    let last = [format!("%{}", arguments - 2), "%record".to_owned()];
    let trace = timestamps.then(|| "%trace".to_owned());
    let names = buffers.chain(constants).chain(last).chain(trace);
    let parameters: Vec<String> =
        names.map(|name| format!("{name}: !llvm.ptr {{llvm.noundef}}")).collect();
    let types = vec!["!llvm.ptr"; arguments].join(", ");
    let mut text = format!(
        "llvm.func @{name}({types})
         llvm.func @irc_gpu_start(!llvm.ptr)
         llvm.func @irc_gpu_start_trace(!llvm.ptr)
         llvm.func @irc_gpu_at(i64)
         llvm.func ptx_kernelcc @{entry}({}) attributes {{passthrough = [\"convergent\", \
         [\"nvvm.maxntid\", \"{threads}\"], [\"nvvm.minctasm\", \"1\"]]}} {{
         %none = llvm.mlir.zero : !llvm.ptr
         %ended = llvm.mlir.constant(-1 : i64) : i64
         {}llvm.call @irc_gpu_start(%record) : (!llvm.ptr) -> ()\n",
        parameters.join(", "),
        if timestamps {
            "llvm.call @irc_gpu_start_trace(%trace) : (!llvm.ptr) -> ()\n"
        } else {
            ""
        },
    );
    let mut operands = vec![];
    for index in 0..arguments - 1 {
        operands.push(match offset(index) {
            None => format!("%{index}"),
            Some(offset) => {
                let _ = writeln!(
                    text,
                    "%w{index} = llvm.getelementptr %constants[{offset}] : (!llvm.ptr) -> !llvm.ptr, i8"
                );
                format!("%w{index}")
            }
        });
    }
    operands.push("%none".to_owned());
    let _ = writeln!(
        text,
        "llvm.call @{name}({}) : ({types}) -> ()
         llvm.call @irc_gpu_at(%ended) : (i64) -> ()
         llvm.return\n}}",
        operands.join(", ")
    );
    let parsed = irc_mlir::parse_module(context, &text);
    let parsed = parsed.ok_or_else(|| PassError::at(&main, "has no entry point"))?;
    for op in read::body_ops(parsed.as_operation()) {
        if read::string(&op, "sym_name").as_deref() == Some(entry) {
            module.append_operation((*op).clone());
        }
    }
    Ok(())
}
