//! The functions that run a kernel whose work is divided on several threads.
//!
//! The caller of a program provides threads as a struct, or null for the calling thread alone:
//!
//! ```c
//! struct irc_threads {
//!   int64_t count; /* the most parts that can run at once */
//!   /* calls body(data, part, parts, memory) for every part from 0 on, and returns when all calls have returned; the
//!      memory is that of the part alone, has `thread_bytes` of the interface and is aligned to 64 */
//!   void (*run)(const struct irc_threads *threads,
//!               void (*body)(void *data, int64_t part, int64_t parts, void *memory), void *data, int64_t parts);
//! };
//! ```
//!
//! Parts do not wait for each other: a `run` that calls them one after the other is correct, and so is one that divides
//! the work into another number of parts than requested.
use crate::attributes::{KERNEL, Phases, launcher, part_of};
use crate::lowering::linalg_to_vector::MIN_PART;
use irc_mlir::{
    BlockLike, Erase, Operation, OperationLike, OperationRef, RegionLike, ValueLike, read,
};
use std::{collections::BTreeSet, fmt::Write};

/// Defines the launchers of kernels in a module, in place of their declarations, and the functions that run one part for
/// them.
pub fn define<'c: 'a, 'a>(module: OperationRef<'_, '_>, kernels: &[OperationRef<'c, 'a>]) {
    let is_defined =
        |op: &OperationRef<'_, '_>| op.region(0).is_ok_and(|region| region.first_block().is_some());
    let defined = read::body_ops(module).into_iter().filter(is_defined);
    let defined: BTreeSet<String> =
        defined.filter_map(|op| read::string(&op, "sym_name")).collect();
    // Declarations of kernels have launchers in other modules. A kernel that runs in blocks has one already, which calls
    // that of its blocks.
    let divided = |kernel: &OperationRef<'c, 'a>| {
        let info = KERNEL.read(kernel)?;
        let body = kernel.region(0).ok().and_then(|region| region.first_block())?;
        let name = read::string(kernel, "sym_name")?;
        let is_missing = !defined.contains(&launcher(&name));
        is_missing.then_some((*kernel, name, info.phases?, info.symbols, body))
    };
    let divided: Vec<_> = kernels.iter().filter_map(divided).collect();
    let launchers: BTreeSet<String> = divided.iter().map(|(_, name, ..)| launcher(name)).collect();
    for op in read::body_ops(module) {
        if read::string(&op, "sym_name").is_some_and(|name| launchers.contains(&name)) {
            op.erase();
        }
    }
    for (kernel, name, phases, symbols, body) in divided {
        let Some(block) = kernel.block() else { continue };
        let arguments = (0..body.argument_count()).filter_map(|index| body.argument(index).ok());
        let types: Vec<String> = arguments.map(|argument| argument.r#type().to_string()).collect();
        let text = text(&name, &types, &phases, &symbols);
        let Some(parsed) = irc_mlir::parse_module(irc_mlir::context_of(&kernel), &text) else {
            continue;
        };
        let defined = [launcher(&name), body_of(&name)];
        for op in read::body_ops(parsed.as_operation()) {
            if read::string(&op, "sym_name").is_some_and(|found| defined.contains(&found)) {
                let copy: Operation = (*op).clone();
                block.insert_operation_after(kernel, copy);
            }
        }
    }
}

/// The function that runs one part, given the arguments of a launcher in memory.
fn body_of(kernel: &str) -> String {
    format!("{kernel}_body")
}

/// The functions, and declarations of what they call.
///
/// A kernel that takes sizes runs in as many parts as its work at these sizes is worth.
fn text(name: &str, types: &[String], phases: &Phases, symbols: &[String]) -> String {
    let count = types.len();
    let each = |text: &dyn Fn(usize, &str) -> String| {
        let each = types.iter().enumerate().map(|(index, ty)| text(index, ty));
        each.collect::<Vec<_>>().join(", ")
    };
    let signature = types.join(", ");
    let (part, body, launcher) = (part_of(name), body_of(name), launcher(name));
    let passed = each(&|index, _| format!("%{index}"));
    let mut text = format!(
        "llvm.func @{name}({signature})
         llvm.func @{part}({signature}, !llvm.ptr, i64, i64, i64, i64)
         llvm.func internal @{body}(%frame: !llvm.ptr, %part: i64, %parts: i64, %memory: !llvm.ptr) {{\n"
    );
    let slot = |text: &mut String, name: &str, index: usize| {
        let _ = writeln!(
            text,
            "%{name} = llvm.getelementptr %frame[{index}] : (!llvm.ptr) -> !llvm.ptr, i64"
        );
    };
    for (index, ty) in types.iter().enumerate() {
        slot(&mut text, &format!("at{index}"), index);
        let _ = writeln!(text, "%{index} = llvm.load %at{index} : !llvm.ptr -> {ty}");
    }
    slot(&mut text, "phase_at", count);
    let _ = writeln!(
        text,
        "%phase = llvm.load %phase_at : !llvm.ptr -> i64
         %one = llvm.mlir.constant(1 : i64) : i64
         %next = llvm.add %phase, %one : i64
         llvm.call @{part}({passed}, %memory, %phase, %next, %part, %parts) :
           ({signature}, !llvm.ptr, i64, i64, i64, i64) -> ()
         llvm.return
         }}
         llvm.func @{launcher}({}, %threads: !llvm.ptr) {{
         %null = llvm.mlir.zero : !llvm.ptr
         %none = llvm.icmp \"eq\" %threads, %null : !llvm.ptr
         llvm.cond_br %none, ^alone, ^given
         ^given:
         %count = llvm.load %threads : !llvm.ptr -> i64
         %one = llvm.mlir.constant(1 : i64) : i64
         %few = llvm.icmp \"sle\" %count, %one : i64
         llvm.cond_br %few, ^alone, ^many
         ^alone:
         llvm.call @{name}({passed}) : ({signature}) -> ()
         llvm.return
         ^many:
         %slots = llvm.mlir.constant({} : i64) : i64
         %zero = llvm.mlir.constant(0 : i64) : i64
         %frame = llvm.alloca %slots x i64 : (i64) -> !llvm.ptr
         %body = llvm.mlir.addressof @{body} : !llvm.ptr
         %run_at = llvm.getelementptr %threads[1] : (!llvm.ptr) -> !llvm.ptr, i64
         %run = llvm.load %run_at : !llvm.ptr -> !llvm.ptr",
        each(&|index, ty| format!("%{index}: {ty}")),
        count + 1,
    );
    for (index, ty) in types.iter().enumerate() {
        slot(&mut text, &format!("at{index}"), index);
        let _ = writeln!(text, "llvm.store %{index}, %at{index} : {ty}, !llvm.ptr");
    }
    slot(&mut text, "phase_at", count);
    // Memory is a pointer.
    let sizes = types.iter().enumerate().filter(|(_, ty)| *ty == "i64").map(|(index, _)| index);
    let sizes: Vec<(&str, usize)> = symbols.iter().map(String::as_str).zip(sizes).collect();
    let _ = writeln!(text, "%least = llvm.mlir.constant({MIN_PART} : i64) : i64");
    for (phase, parts) in phases.parts.iter().enumerate() {
        let _ = writeln!(text, "%all{phase} = llvm.mlir.constant({parts} : i64) : i64");
        match phases.cycles.get(phase) {
            None => {
                let _ = writeln!(text, "%most{phase} = llvm.add %all{phase}, %zero : i64");
            }
            Some(cycles) => {
                let mut product = "%one".to_owned();
                for (number, factor) in cycles.split('*').enumerate() {
                    let known = sizes.iter().find(|(symbol, _)| *symbol == factor);
                    let factor = match known {
                        Some((_, index)) => format!("%{index}"),
                        None => {
                            let constant = format!("%cycles{phase}_{number}");
                            let _ = writeln!(
                                text,
                                "{constant} = llvm.mlir.constant({factor} : i64) : i64"
                            );
                            constant
                        }
                    };
                    let next = format!("%product{phase}_{number}");
                    let _ = writeln!(text, "{next} = llvm.mul {product}, {factor} : i64");
                    product = next;
                }
                let _ = writeln!(
                    text,
                    "%worth{phase} = llvm.udiv {product}, %least : i64
                     %some{phase} = llvm.intr.umax(%worth{phase}, %one) : (i64, i64) -> i64
                     %most{phase} = llvm.intr.umin(%some{phase}, %all{phase}) : (i64, i64) -> i64"
                );
            }
        }
        let _ = writeln!(
            text,
            "%phase{phase} = llvm.mlir.constant({phase} : i64) : i64
             llvm.store %phase{phase}, %phase_at : i64, !llvm.ptr
             %parts{phase} = llvm.intr.smin(%count, %most{phase}) : (i64, i64) -> i64
             llvm.call %run(%threads, %body, %frame, %parts{phase}) :
               !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()"
        );
    }
    text + "llvm.return\n}\n"
}
