//! The interface between a program whose sizes depend on symbols and its host.
//!
//! A host is a struct that begins with five pointers to functions, in the order of the names here, and one to
//! [threads](super::launch), which may be null. Only programs whose convention is 2 call the last function.
//! The first argument of each is the host:
//!
//! ```c
//! void *allocate(void *host, int64_t bytes);      // null if out of memory; aligned to 64
//! void release(void *host, void *block);
//! void *output(void *host, int64_t number, const int64_t *extents);
//! void fail(void *host, int64_t check, int64_t left, int64_t right);
//! void *call(void *host, int64_t function, int64_t count, const void *first, const void *second,
//!            int64_t results, void *result);
//! ```
//!
//! `call` applies a function of the interface's `calls` to `count` elements of one or two operands, whose result
//! has `results` elements, and returns null on failure. `check` numbers the messages of the interface. Only the first failure counts.
use irc_mlir::ops::func;
use irc_mlir::{
    BlockLike, Erase, OpSpec, Operation, OperationLike, OperationRef, PassError, PassResult,
    Region, attr, read, ty,
};

/// Allocates memory.
pub const ALLOCATE: &str = "irc_host_allocate";
/// Releases memory.
pub const RELEASE: &str = "irc_host_release";
/// Requests the memory of a result.
pub const OUTPUT: &str = "irc_host_output";
/// Reports which check failed.
pub const FAIL: &str = "irc_host_fail";

/// Applies a function of the host.
pub const CALL: &str = "irc_host_call";

/// The threads of the host; no function of its own, but a pointer after those to functions.
pub const THREADS: &str = "irc_host_threads";

/// An allocation failed.
pub const OUT_OF_MEMORY: &str = "out of memory: expected room for a number of bytes";
/// A loop ended early.
pub const ITERATIONS: &str = "loop: expected as many iterations as its sequences are long";
/// The elements of a sequence differ.
pub const ELEMENTS: &str = "loop: expected elements of one shape in a sequence";

/// A function of the host, with its parameters in MLIR before and after memory is lowered.
struct HostFunction {
    name: &'static str,
    /// Parameters after the host.
    before: &'static [&'static str],
    after: &'static [&'static str],
    /// Whether it returns memory.
    gives: bool,
}

const FUNCTIONS: [HostFunction; 6] = [
    HostFunction { name: ALLOCATE, before: &["index"], after: &["i64"], gives: true },
    HostFunction { name: RELEASE, before: &["memref<1xi8>"], after: &["!llvm.ptr"], gives: false },
    HostFunction { name: OUTPUT, before: &["index", "index"], after: &["i64", "i64"], gives: true },
    HostFunction {
        name: FAIL,
        before: &["index", "index", "index"],
        after: &["i64", "i64", "i64"],
        gives: false,
    },
    HostFunction { name: CALL, before: &["index"; 6], after: &["i64"; 6], gives: true },
    HostFunction { name: THREADS, before: &[], after: &[], gives: true },
];

/// Declares the functions in the module of a function, once; [`CALL`] and [`THREADS`] only if they are called.
///
/// # Errors
/// If the function is not in a module.
pub fn declare(function: OperationRef<'_, '_>, has_calls: bool, has_threads: bool) -> PassResult {
    let context = irc_mlir::context_of(&function);
    let Some(module) = function.block() else {
        return Err(PassError::at(&function, "is not in a module"));
    };
    let (mut next, mut known) = (module.first_operation(), vec![]);
    while let Some(op) = next {
        known.extend(read::string(&op, "sym_name"));
        next = op.next_in_block();
    }
    for HostFunction { name, before, gives, .. } in FUNCTIONS {
        let is_unused = name == CALL && !has_calls || name == THREADS && !has_threads;
        if is_unused || known.iter().any(|known| known == name) {
            continue;
        }
        let result = if gives { "memref<1xi8>" } else { "()" };
        let parameters = [&["memref<1xi8>"], before].concat().join(", ");
        let signature = format!("({parameters}) -> {result}");
        OpSpec::new(context, func::FUNC, function.location())
            .attr("sym_name", attr::string(context, name))
            .attr("sym_visibility", attr::string(context, "private"))
            .attr("function_type", attr::ty(ty::parse(context, &signature)))
            .region(Region::new())
            .append(&module);
    }
    Ok(())
}

/// Adds a body to the declaration of a host function, which calls the host's own; ignores other functions.
pub fn define(declared: OperationRef<'_, '_>) {
    let name = read::string(&declared, "sym_name").unwrap_or_default();
    let known = FUNCTIONS.iter().position(|function| function.name == name);
    let (Some(number), Some(block)) = (known, declared.block()) else { return };
    let HostFunction { after: parameters, gives, .. } = FUNCTIONS[number];
    let list = |separator: &str, each: &dyn Fn((usize, &&str)) -> String| {
        parameters.iter().enumerate().map(each).collect::<Vec<_>>().join(separator)
    };
    let named = list(", ", &|(index, ty)| format!("%{index}: {ty}"));
    let passed = list(", ", &|(index, _)| format!("%{index}"));
    let types = parameters.join(", ");
    let (arrow, call, result, back) = if gives {
        (" -> !llvm.ptr", "%r = ", "!llvm.ptr", " %r : !llvm.ptr")
    } else {
        ("", "", "()", "")
    };
    let text = match name.as_str() {
        THREADS => format!(
            "llvm.func internal @{name}(%host: !llvm.ptr) -> !llvm.ptr {{
               %slot = llvm.getelementptr %host[{number}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
               %threads = llvm.load %slot : !llvm.ptr -> !llvm.ptr
               llvm.return %threads : !llvm.ptr
             }}"
        ),
        _ => format!(
            "llvm.func internal @{name}(%host: !llvm.ptr, {named}){arrow} {{
           %slot = llvm.getelementptr %host[{number}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
           %function = llvm.load %slot : !llvm.ptr -> !llvm.ptr
           {call}llvm.call %function(%host, {passed}) : !llvm.ptr, (!llvm.ptr, {types}) -> {result}
           llvm.return{back}
         }}"
        ),
    };
    let context = irc_mlir::context_of(&declared);
    let Some(module) = irc_mlir::parse_module(context, &text) else { return };
    for op in read::body_ops(module.as_operation()) {
        let copy: Operation = (*op).clone();
        block.insert_operation_before(declared, copy);
    }
    declared.erase();
}
