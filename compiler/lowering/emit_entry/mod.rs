//! Adds the C entry points to a module in the `llvm` dialect.
//!
//! Before: `@irc_main` takes an array of a pointer for each buffer, one for the workspace, and one for threads, as
//! [`load_buffers`](super::load_buffers) leaves it. After: also
//! `int32_t irc_run(void **buffers, void *workspace)`, which has no threads,
//! `int32_t irc_run_parallel(void **buffers, void *workspace, const struct irc_threads *threads)`, and the string
//! `irc_metadata`: the interface as JSON. A kernel whose work is divided gets the functions of [`launch`].
//!
//! A kernel whose `#tl.kernel` names an `entry` gets an entry point of that name, without metadata, and is itself hidden.
//! If it takes a size instead of a pointer, the slot of `buffers` holds the size.
//!
//! If sizes depend on symbols, `@irc_main` takes the array of inputs, a pointer to the extents of all inputs
//! in a row, and the host. Its entry point is
//! `int32_t irc_run_sized(void *host, void **inputs, const int64_t *extents)`, which returns 0, or 1
//! after it has reported a failure to the host; [`host`] defines the host.
//!
//! The symbol `irc_weights` of the library's constants is defined here if the program has their bytes in `tl.constants`,
//! and otherwise by another object.
//!
//! A `shared` program is a part of others: it only has `irc_run_parallel`, which may be merged with another of the same
//! name and is hidden, and no metadata.
//!
//! A long function that is not a kernel is excluded from optimisation.
//!
//! The `suffix` is appended to the names of a main function's entry point and metadata.

pub mod host;
pub mod launch;

/// The symbol of a program's constants, which are linked with it.
pub const WEIGHTS: &str = "irc_weights";

use crate::attributes::{CONSTANTS, KERNEL, ProgramInfo, part_of};
use irc_mlir::ops::llvm;
use irc_mlir::{
    Block, BlockLike, OpSpec, OperationLike, OperationRef, Options, Pass, PassError, PassResult,
    Region, RegionLike, Value, ValueLike, attr, elements, read, region_of, ty, walk_collect,
};
use irc_runtime::Interface;
use irc_tensor::ALIGNMENT;
use std::collections::BTreeSet;

/// The pass `emit-entry`.
pub struct EmitEntry;

impl Pass for EmitEntry {
    fn name(&self) -> &'static str {
        "emit-entry"
    }
    fn description(&self) -> &'static str {
        "add the C entry point irc_run and the interface irc_metadata"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["llvm"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        let kernels =
            walk_collect(module, |op| read::op_name(&op) == llvm::FUNC && KERNEL.is_on(&op));
        let names = kernels.iter().filter_map(|kernel| read::string(kernel, "sym_name"));
        let parts: BTreeSet<String> = names.map(|name| part_of(&name)).collect();
        launch::define(module, &kernels);
        for function in walk_collect(module, |op| read::op_name(&op) == llvm::FUNC) {
            let is_part =
                || read::string(&function, "sym_name").is_some_and(|it| parts.contains(&it));
            if !KERNEL.is_on(&function) && !is_part() {
                limit_effort(function);
            }
            let program = ProgramInfo::of(&function);
            if let Some(text) = &program.metadata {
                emit_program(function, &program, text)?;
            } else if let Some(name) = KERNEL.read(&function).and_then(|info| info.entry) {
                emit(function, &name, Entry::Kernel)?;
                set_linkage(function, "internal");
            } else {
                host::define(function);
            }
        }
        Ok(())
    }
}

/// Maximum number of ops of a function that only calls kernels for LLVM to optimise it: register allocation and
/// scheduling take more than linear time, and calls gain nothing.
const MAX_OPTIMISED: usize = 1024;

/// Excludes a function that is too long from optimisation.
pub(super) fn limit_effort(function: OperationRef<'_, '_>) {
    if is_long(function) {
        let unit = attr::unit(irc_mlir::context_of(&function));
        irc_mlir::set_attribute(function, "no_inline", unit);
        irc_mlir::set_attribute(function, "optimize_none", unit);
    }
}

/// Whether a function is too long to be optimised.
pub(super) fn is_long(function: OperationRef<'_, '_>) -> bool {
    let ops: usize =
        read::blocks(function).into_iter().map(|block| read::block_ops(block).len()).sum();
    ops > MAX_OPTIMISED
}

/// Adds the entry point of a program, and its interface.
fn emit_program(
    function: OperationRef<'_, '_>,
    program: &ProgramInfo,
    interface: &str,
) -> PassResult {
    let sized = Interface::from_json(interface)
        .map_err(|error| PassError::at(&function, &error))?
        .is_sized();
    let kinds = match sized {
        true => &[Entry::Sized][..],
        false if program.shared => &[Entry::Parallel],
        false => &[Entry::Fixed, Entry::Parallel],
    };
    let mut entries = vec![];
    for kind in kinds {
        let name = format!("{}{}", kind.prefix(), program.suffix);
        let entry = emit(function, &name, *kind)?;
        limit_effort(entry);
        entries.push(entry);
    }
    if let Ok(constants) = function.attribute(CONSTANTS) {
        let symbols = function.parent_operation().map(read::body_ops).unwrap_or_default();
        let named = |op: &OperationRef<'_, '_>| read::string(op, "sym_name");
        let declared = symbols.into_iter().find(|op| named(op).as_deref() == Some(WEIGHTS));
        if let (Some(declared), Some(bytes)) = (declared, elements::bytes_of(constants)) {
            define_weights(declared, &bytes);
        }
        irc_mlir::remove_attribute(function, CONSTANTS);
    }
    if program.shared {
        set_linkage(function, "internal");
        entries.into_iter().for_each(share);
    } else if let Some(block) = function.block() {
        block.append_operation(metadata(&function, interface, &program.suffix).build());
    }
    Ok(())
}

/// `llvm::GlobalValue::HiddenVisibility`.
const HIDDEN: i64 = 1;

/// Sets a symbol's linkage, by LLVM's name for it.
pub(crate) fn set_linkage(symbol: OperationRef<'_, '_>, linkage: &str) {
    let context = irc_mlir::context_of(&symbol);
    let linkage = attr::parse(context, &format!("#llvm.linkage<{linkage}>"));
    irc_mlir::set_attribute(symbol, "linkage", linkage);
}

/// Allows a function to be merged with equal functions of the same symbol, and hides it.
pub(crate) fn share(function: OperationRef<'_, '_>) {
    let context = irc_mlir::context_of(&function);
    set_linkage(function, "weak_odr");
    irc_mlir::set_attribute(function, "visibility_", attr::i64(context, HIDDEN));
}

/// The entry points of functions: what they take after the buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// A kernel: the workspace.
    Kernel,
    /// The workspace; the program runs on the calling thread.
    Fixed,
    /// The workspace and threads.
    Parallel,
    /// The host, inputs and extents.
    Sized,
}

impl Entry {
    /// The name of a program's entry point, without its suffix.
    fn prefix(self) -> &'static str {
        match self {
            Self::Kernel | Self::Fixed => "irc_run",
            Self::Parallel => "irc_run_parallel",
            Self::Sized => "irc_run_sized",
        }
    }
}

/// Adds the function `name`, which calls `main`.
fn emit<'c: 'a, 'a>(
    main: OperationRef<'c, 'a>,
    name: &str,
    kind: Entry,
) -> Result<OperationRef<'c, 'a>, PassError> {
    let callee = read::string(&main, "sym_name").unwrap_or_default();
    let context = irc_mlir::context_of(&main);
    let location = main.location();
    let body = main.region(0).ok().and_then(|region| region.first_block());
    let (Some(module), Some(body)) = (main.block(), body) else {
        return Err(PassError::at(&main, "has no body"));
    };
    let count = body.argument_count();
    let pointer = ty::parse(context, "!llvm.ptr");
    let i32_type = ty::parse(context, "i32");
    let sized = kind == Entry::Sized;
    let parameters = if matches!(kind, Entry::Parallel | Entry::Sized) { 3 } else { 2 };
    let block = Block::new(&vec![(pointer, location); parameters]);
    let one = |spec: OpSpec<'c>| -> Value<'c, '_> {
        match spec.append(&block).result(0) {
            Ok(result) => irc_mlir::rebind(result.into()),
            Err(_) => unreachable!("the op was built with one result"),
        }
    };
    let spec = |name: &str| OpSpec::new(context, name, location);
    let argument = |index: usize| -> Value<'c, '_> {
        match block.argument(index) {
            Ok(argument) => irc_mlir::rebind(argument.into()),
            Err(_) => unreachable!("the block was built with this argument"),
        }
    };
    // The last arguments of main are the workspace and threads, or the extents and the host.
    let (buffers, last) = match kind {
        Entry::Kernel => (argument(0), vec![argument(1)]),
        Entry::Fixed => {
            let none = one(spec(llvm::MLIR_ZERO).results(&[pointer]));
            (argument(0), vec![argument(1), none])
        }
        Entry::Parallel => (argument(0), vec![argument(1), argument(2)]),
        Entry::Sized => (argument(1), vec![argument(2), argument(0)]),
    };
    let slot = |index: usize| -> Value<'c, '_> {
        let taken = body.argument(index).map_or(pointer, |argument| argument.r#type());
        let slot = one(spec(llvm::GETELEMENTPTR)
            .operands(&[buffers])
            .results(&[pointer])
            .attr("rawConstantIndices", attr::parse(context, &format!("array<i32: {index}>")))
            .attr("elem_type", attr::ty(pointer)));
        one(spec(llvm::LOAD).operands(&[slot]).results(&[taken]))
    };
    let mut operands: Vec<Value> = match kind {
        Entry::Kernel => (0..count - last.len()).map(slot).collect(),
        Entry::Fixed | Entry::Parallel | Entry::Sized => vec![buffers],
    };
    operands.extend(last);
    let segments = attr::parse(context, &format!("array<i32: {count}, 0>"));
    let call = spec(llvm::CALL)
        .attr("callee", attr::symbol(context, &callee))
        .attr("operandSegmentSizes", segments)
        .attr("op_bundle_sizes", attr::parse(context, "array<i32>"))
        .operands(&operands);
    let status = if sized {
        one(call.results(&[i32_type]))
    } else {
        call.append(&block);
        let zero = spec(llvm::MLIR_CONSTANT).attr("value", attr::i32(context, 0));
        one(zero.results(&[i32_type]))
    };
    spec(llvm::RETURN).operands(&[status]).append(&block);

    let pointers = vec!["ptr"; parameters].join(", ");
    let signature = format!("!llvm.func<i32 ({pointers})>");
    let region = region_of(block);
    let entry = spec(llvm::FUNC)
        .attr("sym_name", attr::string(context, name))
        .attr("function_type", attr::ty(ty::parse(context, &signature)))
        .attr("linkage", attr::parse(context, "#llvm.linkage<external>"))
        .attr("CConv", attr::parse(context, "#llvm.cconv<ccc>"))
        .region(region);
    Ok(module.append_operation(entry.build()))
}

/// Gives the declared constants their bytes.
pub fn define_weights(declared: OperationRef<'_, '_>, bytes: &[u8]) {
    let context = irc_mlir::context_of(&declared);
    let ty = ty::parse(context, &format!("!llvm.array<{} x i8>", bytes.len()));
    irc_mlir::set_attribute(declared, "global_type", attr::ty(ty));
    irc_mlir::set_attribute(declared, "value", elements::text(context, bytes));
    irc_mlir::set_attribute(declared, "alignment", attr::i64(context, ALIGNMENT as i64));
    set_linkage(declared, "internal");
    irc_mlir::set_attribute(declared, "visibility_", attr::i64(context, 0));
}

fn metadata<'c: 'a, 'a>(main: &OperationRef<'c, 'a>, interface: &str, suffix: &str) -> OpSpec<'c> {
    let context = irc_mlir::context_of(main);
    let text = format!("{interface}\0");
    let array = ty::parse(context, &format!("!llvm.array<{} x i8>", text.len()));
    OpSpec::new(context, llvm::MLIR_GLOBAL, main.location())
        .attr("sym_name", attr::string(context, &format!("irc_metadata{suffix}")))
        .attr("global_type", attr::ty(array))
        .attr("constant", attr::unit(context))
        .attr("linkage", attr::parse(context, "#llvm.linkage<external>"))
        .attr("addr_space", attr::i32(context, 0))
        .attr("value", attr::string(context, &text))
        .region(Region::new())
}
