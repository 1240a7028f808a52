//! What profiles say of kernels: names that describe them, the nodes they compute, and their work.

use super::{error::QueryError, kernel};
use crate::{
    attributes::SIZES,
    codegen::{SymbolScope, data_object},
    machine::in_context,
};
use irc_dialects::tl;
use irc_mlir::{OperationLike, OperationRef, ValueLike, read};
use irc_tl::{Dim, Family};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The symbol of the description of a library's kernels: JSON, zero-terminated.
pub const KERNELS: &str = "irc_kernels";

/// Maximum number of ops that a name lists.
const MAX_OPS: usize = 4;

/// Maximum number of nodes that a description lists.
const MAX_NODES: usize = 16;

/// What a kernel is for. Kernels of equal text are one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelUse {
    /// Number of launches in the functions of the program.
    pub launches: u64,
    /// The nodes that the kernel computes.
    pub nodes: Vec<String>,
    /// Number of floating-point operations of one launch, if its sizes are known.
    operations: Option<u64>,
    /// Size of its operands and results in bytes, if known.
    bytes: Option<u64>,
}

impl KernelUse {
    /// Adds the nodes of a kernel, whose ops have locations.
    pub fn add_kernel(&mut self, kernel: OperationRef<'_, '_>) {
        let ops = read::body_ops(kernel);
        let mut operations = Some(0_u64);
        for op in &ops {
            let own = operations_of(*op, &|_| None);
            operations = operations.zip(own).map(|(sum, own)| sum.saturating_add(own));
            let Some(node) = irc_mlir::origin(op.location()) else { continue };
            if self.nodes.len() < MAX_NODES && !self.nodes.contains(&node) {
                self.nodes.push(node);
            }
        }
        self.operations = operations;
    }

    /// Adds a launch.
    pub fn add_launch(&mut self, launch: OperationRef<'_, '_>) {
        self.launches += 1;
        self.bytes = bytes_of(launch, &|_| None);
    }
}

/// The value of a symbol, if it is known.
type Symbols<'s> = &'s dyn Fn(&str) -> Option<i64>;

/// Size of the operands and results of a launch in bytes, with these values of the symbols.
fn bytes_of(launch: OperationRef<'_, '_>, symbols: Symbols<'_>) -> Option<u64> {
    let operands = launch.operands().map(|value| value.r#type());
    let types = operands.chain(launch.results().map(|value| value.r#type()));
    let sizes = types.map(|ty| {
        let bytes = tl::type_of(ty).ok()?.eval(symbols)?.byte_size().ok()?;
        Some(bytes as u64)
    });
    sizes.sum()
}

/// Number of floating-point operations of an op, with these values of the symbols.
fn operations_of(op: OperationRef<'_, '_>, symbols: Symbols<'_>) -> Option<u64> {
    if !read::op_name(&op).starts_with("tl.") {
        return Some(0);
    }
    let types = tl::symbolic_operand_types(op).ok()?;
    tl::op_of(op).ok()?.flops_at(&types, symbols)
}

/// The work of a kernel in a run of its program: of all its launches; not known if some are in loops or branches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelWork {
    /// Number of floating-point operations, if known.
    pub operations: Option<u64>,
    /// Size of operands and results in bytes, if known.
    pub bytes: Option<u64>,
}

/// The work of the kernels of a program by symbol, with these values of the program's symbols.
pub(crate) fn work(
    program: &str,
    kernels: &BTreeMap<String, Arc<str>>,
    symbols: Symbols<'_>,
) -> BTreeMap<String, KernelWork> {
    let zero = KernelWork { operations: Some(0), bytes: Some(0) };
    let found = in_context(|context| {
        let text = kernels.iter().map(|(symbol, text)| (&**symbol, &**text));
        let module = kernel::module_of(context, text)?;
        let kernels = kernel::functions(module.as_operation());
        let program = irc_mlir::parse_module(context, program)?;
        let mut found: BTreeMap<String, KernelWork> = BTreeMap::new();
        for (launch, runs_once) in launches(&read::body_ops(program.as_operation())) {
            let Some(callee) = read::symbol(&launch, "callee") else { continue };
            let Some(kernel) = kernels.get(&callee) else { continue };
            let sizes: Vec<Option<i64>> = SIZES
                .read(&launch)
                .unwrap_or_default()
                .iter()
                .map(|size| size.parse::<Dim>().ok()?.eval(symbols))
                .collect();
            // The symbol `d<n>` of a kernel is the n-th size that it is passed.
            let own = |name: &str| *sizes.get(name.strip_prefix('d')?.parse::<usize>().ok()?)?;
            let ops = read::body_ops(*kernel).into_iter();
            let operations: Option<u64> = ops.map(|op| operations_of(op, &own)).sum();
            let operations = operations.filter(|_| runs_once);
            let work = found.entry(callee).or_insert(zero);
            work.operations = work.operations.zip(operations).map(|(sum, own)| sum + own);
            let bytes = bytes_of(launch, symbols).filter(|_| runs_once);
            work.bytes = work.bytes.zip(bytes).map(|(sum, own)| sum + own);
        }
        Some(found)
    });
    found.unwrap_or_default()
}

/// The launches of functions, and whether each runs once when the program does: those in loops and branches do not.
fn launches<'c: 'a, 'a>(functions: &[OperationRef<'c, 'a>]) -> Vec<(OperationRef<'c, 'a>, bool)> {
    let mut called: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut found, mut open) = (vec![], vec![]);
    for function in functions {
        let name = read::string(function, "sym_name").unwrap_or_default();
        for op in irc_mlir::walk_collect(*function, |_| true) {
            if read::op_name(&op) == tl::LAUNCH {
                found.push((name.clone(), op));
                continue;
            }
            open.extend(
                ["body", "then", "otherwise"].iter().filter_map(|it| read::symbol(&op, it)),
            );
            called.entry(name.clone()).or_default().extend(read::symbol(&op, "callee"));
        }
    }
    // Functions that are called from those of loops and branches are part of them.
    let mut inside = BTreeSet::new();
    while let Some(name) = open.pop() {
        if inside.insert(name.clone()) {
            open.extend(called.get(&name).into_iter().flatten().cloned());
        }
    }
    found.into_iter().map(|(name, launch)| (launch, !inside.contains(&name))).collect()
}

/// The name of a kernel: its ops, and the extents of its last result, as `irc_matmul_add_128x768`.
pub fn name_of(kernel: OperationRef<'_, '_>) -> String {
    let ops = read::body_ops(kernel);
    let names: Vec<String> = ops.iter().filter_map(|op| name_of_op(*op)).collect();
    let mut parts: Vec<&str> = vec!["irc"];
    let softmax = ["reduce_max", "sub", "exp", "reduce_sum", "div"];
    let mut at = 0;
    while at < names.len() && parts.len() <= MAX_OPS {
        let rest = &names[at..];
        let (part, count) = match rest.starts_with(&softmax.map(str::to_owned)) {
            true => ("softmax", softmax.len()),
            false => (names[at].as_str(), 1),
        };
        // Ops in a row of one name are listed once.
        if parts.last() != Some(&part) {
            parts.push(part);
        }
        at += count;
    }
    let last = ops.iter().rev().find(|op| read::op_name(*op).starts_with("tl."));
    let last = last.filter(|op| tl::op_of(**op).map_or(true, |op| op.family() != Family::Loops));
    let last = last.map(read::op_name);
    if parts.len() == 1 {
        parts.push(last.as_deref().map_or("move", |name| &name["tl.".len()..]));
    }
    let made = ops.iter().rev().flat_map(|op| op.results().next());
    let extents = made.take(1).filter_map(|value| tl::type_of(value.r#type()).ok()).next();
    let extents: Vec<String> = extents
        .iter()
        .flat_map(|ty| &ty.dims)
        .filter(|dim| !dim.is(1))
        .map(|dim| dim.known().map_or("n".to_owned(), |extent| extent.to_string()))
        .collect();
    let shape = extents.join("x");
    parts.extend((!shape.is_empty()).then_some(shape.as_str()));
    parts.join("_")
}

/// Whether a kernel computes a convolution, which has a choice of algorithms.
pub fn is_convolution(kernel: OperationRef<'_, '_>) -> bool {
    read::body_ops(kernel).into_iter().any(|op| name_of_op(op).as_deref() == Some(CONVOLUTION))
}

/// The name of an op that computes a convolution.
const CONVOLUTION: &str = "conv";

/// The name of an op that computes; `None` if it only moves or fills.
fn name_of_op(op: OperationRef<'_, '_>) -> Option<String> {
    let name = read::op_name(&op);
    let name = name.strip_prefix("tl.")?;
    let moves = ["fill", "reshape", "broadcast", "transpose", "cast", "bitcast", "constant"];
    let name = tl::op_of(op).map_or_else(|_| Some(name.to_owned()), |op| op.summary())?;
    (!moves.contains(&name.as_str())).then_some(name)
}

/// An object with the descriptions of the kernels of a program, under a symbol that is local, so that several
/// programs can be linked together.
pub fn object(uses: &BTreeMap<String, KernelUse>, suffix: &str) -> Result<Vec<u8>, QueryError> {
    let described = uses.iter().map(|(symbol, used)| {
        json!({
            "symbol": symbol,
            "launches": used.launches,
            "nodes": used.nodes,
            "operations": used.operations,
            "bytes": used.bytes,
        })
    });
    let text = serde_json::Value::Array(described.collect()).to_string() + "\0";
    Ok(data_object(&format!("{KERNELS}{suffix}"), text.as_bytes(), 1, SymbolScope::Compilation)?)
}
