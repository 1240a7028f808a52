//! `compute-to-simt`: kernels become loops that the threads of a GPU share.
//!
//! Before: as for [`super::ComputeToLoops`], for kernels of every kind, of known sizes. After: for each kernel a function
//! of its *team*, `@KERNEL_team`, with the parameters of the kernel on memory and those of the team (`team.rs`). Every
//! thread calls it. A step computes element after element, each by one thread, or each by a warp if it is a long
//! reduction; all threads wait for each other before a step that reads what an earlier one has written, or may overwrite
//! what an earlier one reads. The kernel itself runs its function for all threads of the grid, and waits for all of them
//! at the end.
//!
//! The functions of the device that the loops call are defined by `emit-gpu-entry`.

mod access;
mod inline;
mod product;
mod rows;
mod step;
mod team;

use super::{
    Infallible, KERNEL, Kernel, Origin, Pass, PassError, PassResult, Sizes, Work, algorithms,
    described, parameters, stored,
};
use crate::attributes::{self, ACCESSES, LINKAGE, STRIDES, WORKERS, dictionaries};
use crate::kernel::{
    declare::on_memory,
    emit::{Buffer, Emit, Lanes},
};
use irc_mlir::ops::{arith, func};
use irc_mlir::{
    BlockLike, BlockRef, Context, Erase, OpSpec, OperationLike, OperationRef, OptionKind, Options,
    PassOption, Region, RegionLike, Type, Value, ValueLike, attr, read, walk_collect,
};
use irc_tl::Dim;
use melior::ir::r#type::FunctionType;
use product::attention::{self, Attention};
use rows::Rows;
use std::collections::{BTreeMap, BTreeSet};
use team::Team;

/// The option for the number of threads of a block, or of a team of a plan.
pub const BLOCK_THREADS: PassOption = PassOption {
    name: "threads",
    help: "number of threads of a block",
    default: "256",
    kind: OptionKind::Integer,
};

/// The option for the compute capability of the GPU.
const CAPABILITY: PassOption = PassOption {
    name: "capability",
    help: "compute capability of the GPU: 80 or 90",
    default: "80",
    kind: OptionKind::Integer,
};

/// The option for scratch of tasks in shared memory.
const SCRATCH: PassOption = PassOption {
    name: "scratch",
    help: "most bytes of scratch of a task that are in shared memory",
    default: "0",
    kind: OptionKind::Integer,
};

/// The pass `compute-to-simt`.
pub struct ComputeToSimt;

/// The types of what the function of a team is passed after the memory of the kernel: the fields of `team.rs`.
pub const TEAM_TYPES: [&str; 6] = ["index", "index", "index", "index", "i32", "index"];

/// The device and the threads for which a kernel is scheduled.
#[derive(Clone, Copy, Debug)]
struct Device {
    /// The compute capability: 80, 90, ...
    capability: i64,
    /// The number of threads of a block, or of a team of a plan.
    threads: i64,
    /// Whether all threads of the grid are one team; otherwise some of a block are.
    is_grid: bool,
    /// The most bytes of scratch of a task that are in shared memory.
    scratch: i64,
}

impl Device {
    /// The number of processors that have blocks of their own.
    fn processors(&self) -> i64 {
        if self.capability >= 90 { 132 } else { 108 }
    }
}

/// Bytes of shared memory of a team of so many threads: all those of a block, or a team of a plan.
pub fn shared_bytes(threads: i64, is_block: bool) -> i64 {
    let fits = |workers: &i64| *workers == threads || is_block && *workers < threads;
    let workers = product::WORKERS.into_iter().find(fits);
    workers.map_or(1, |workers| workers / 32) * SHARED_BYTES
}

pub use product::{COPIES, SHARED_BYTES, groups};
pub use team::{SHARED, is_in_shared_memory};

/// The function that the threads of a team call to run a kernel together.
pub fn team_of(kernel: &str) -> String {
    format!("{kernel}{TEAM}")
}

/// Whether a function is one of a team.
pub fn is_team(function: &OperationRef<'_, '_>) -> bool {
    read::string(function, "sym_name").is_some_and(|name| name.ends_with(TEAM))
}

/// Whether the function of a team uses its shared memory for tiles.
pub fn has_tiles(team: OperationRef<'_, '_>) -> bool {
    let is_use = |op: OperationRef<'_, '_>| {
        read::symbol(&op, "callee").is_some_and(|callee| callee == "irc_gpu_shared")
    };
    !walk_collect(team, is_use).is_empty()
}

/// The end of the names of functions of teams.
const TEAM: &str = "_team";

/// The parameters of a product on tensor cores: two factors, in words of two halves, and four sums.
const MMA: &[&str] = &["i32", "i32", "i32", "i32", "i32", "i32", "f32", "f32", "f32", "f32"];

/// The parameters of a tensor map: its addresses in shared and global memory, the address and type of the tensor, five
/// extents, four strides, and the rows of a tile.
const MAP: &[&str] = &[
    "index", "index", "index", "i32", "i32", "i32", "i32", "i32", "i32", "index", "index", "index",
    "index", "i32",
];

/// Those of a copy of a tile: the address in shared memory, the map, the barrier, and five coordinates.
const COPY_TILE: &[&str] = &["index", "index", "index", "i32", "i32", "i32", "i32", "i32"];

/// Whether a function of this name is one of the device.
pub fn is_of_device(name: &str) -> bool {
    DEVICE.iter().any(|(known, ..)| *known == name)
}

/// The function of the device that records where a warp is.
pub const AT: &str = "irc_gpu_at";

/// The function of the device in which all threads of the grid wait for each other.
pub const GRID_BARRIER: &str = "irc_gpu_grid_barrier";

/// The function of the device that ends the launch if a condition does not hold.
pub const CHECK: &str = "irc_gpu_check";

/// The functions of the device, with their parameters and results.
const DEVICE: [(&str, &[&str], &[&str]); 38] = [
    ("irc_gpu_team", &[], &["index"]),
    ("irc_gpu_teams", &[], &["index"]),
    ("irc_gpu_thread", &[], &["index"]),
    ("irc_gpu_again", &["index"], &["index"]),
    ("irc_gpu_zero", &[], &["index"]),
    ("irc_gpu_threads", &[], &["index"]),
    ("irc_gpu_barrier", &["i32", "index"], &[]),
    ("irc_gpu_shuffle", &["i32", "i32"], &["i32"]),
    ("irc_gpu_of_four", &["i32", "i32"], &["i32"]),
    ("irc_gpu_all", &["i1"], &["i1"]),
    ("irc_gpu_exp2", &["f32"], &["f32"]),
    ("irc_gpu_pair_f16", &["f32", "f32"], &["i32"]),
    ("irc_gpu_pair_bf16", &["f32", "f32"], &["i32"]),
    (GRID_BARRIER, &[], &[]),
    (AT, &["i64"], &[]),
    (CHECK, &["i1"], &[]),
    ("irc_gpu_time", &[], &["i64"]),
    ("irc_gpu_block_event", &["i64", "i64"], &[]),
    ("irc_gpu_block_barrier", &["i32", "index"], &[]),
    ("irc_gpu_shared", &[], &[team::SHARED]),
    ("irc_gpu_mma_f16", MMA, &["f32", "f32", "f32", "f32"]),
    ("irc_gpu_mma_bf16", MMA, &["f32", "f32", "f32", "f32"]),
    ("irc_gpu_copy", &["index", "index", "i32"], &[]),
    ("irc_gpu_copies_commit", &[], &[]),
    ("irc_gpu_copies_wait_0", &[], &[]),
    ("irc_gpu_copies_wait_1", &[], &[]),
    ("irc_gpu_copies_wait_2", &[], &[]),
    ("irc_gpu_matrices", &["index"], &["i32", "i32", "i32", "i32"]),
    ("irc_gpu_matrices_transposed", &["index"], &["i32", "i32", "i32", "i32"]),
    ("irc_gpu_phases_init", &["index", "i32"], &[]),
    ("irc_gpu_phases_ready", &[], &[]),
    ("irc_gpu_phases_end", &["index"], &[]),
    ("irc_gpu_phase_wait", &["index", "i32"], &[]),
    ("irc_gpu_phase_expect", &["index", "i32"], &[]),
    ("irc_gpu_phase_arrive", &["index"], &[]),
    ("irc_gpu_maps", &[], &["index"]),
    ("irc_gpu_map", MAP, &[]),
    ("irc_gpu_copy_tile", COPY_TILE, &[]),
];

impl Pass for ComputeToSimt {
    fn name(&self) -> &'static str {
        "compute-to-simt"
    }
    fn description(&self) -> &'static str {
        "write each kernel as loops that the threads of a GPU share"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["arith", "func", "math", "memref", "scf", "vector"]
    }
    fn options(&self) -> &'static [PassOption] {
        &[BLOCK_THREADS, CAPABILITY, SCRATCH]
    }
    fn run(&self, module: OperationRef<'_, '_>, options: &Options) -> PassResult {
        let device = Device {
            capability: options.integer(CAPABILITY.name),
            threads: options.integer(BLOCK_THREADS.name),
            is_grid: true,
            scratch: options.integer(SCRATCH.name),
        };
        let kernels = walk_collect(module, |op| KERNEL.is_on(&op));
        let kernels: Vec<_> = kernels.into_iter().filter(|kernel| is_tl(*kernel)).collect();
        if let Some(first) = kernels.first() {
            declare_device(*first)?;
        }
        kernels.into_iter().try_for_each(|kernel| lower_kernel(kernel, device))?;
        declare_groups(module);
        attributes::CAPABILITY.write(module, device.capability);
        Ok(())
    }
}

/// Whether a function has a body at the tensor level.
fn is_tl(kernel: OperationRef<'_, '_>) -> bool {
    let has_body = kernel.region(0).is_ok_and(|region| region.first_block().is_some());
    has_body && read::body_ops(kernel).iter().any(|op| read::op_name(op).starts_with("tl."))
}

/// Declares the functions of the device before a function, unless its module has them.
///
/// # Errors
/// If the function is not in a module.
pub fn declare_device(before: OperationRef<'_, '_>) -> PassResult {
    let context = irc_mlir::context_of(&before);
    let Some(module) = before.block() else {
        return Err(PassError::at(&before, "is not in a module"));
    };
    let module_op = module.parent_operation();
    let known: BTreeSet<String> = module_op
        .iter()
        .flat_map(|module| read::body_ops(*module))
        .filter_map(|op| read::string(&op, "sym_name"))
        .collect();
    for (name, parameters, results) in DEVICE {
        if known.contains(name) {
            continue;
        }
        let types = |names: &[&str]| -> Vec<Type<'_>> {
            names.iter().map(|name| irc_mlir::ty::parse(context, name)).collect()
        };
        let ty = FunctionType::new(context, &types(parameters), &types(results));
        OpSpec::new(context, func::FUNC, before.location())
            .attr("sym_name", attr::string(context, name))
            .attr("sym_visibility", attr::string(context, "private"))
            .attr("function_type", attr::ty(ty.into()))
            .region(Region::new())
            .before(&module, before);
    }
    Ok(())
}

/// Declares the functions that multiply by groups of warps, if a module calls them.
fn declare_groups(module: OperationRef<'_, '_>) {
    let context = irc_mlir::context_of(&module);
    let body = module.region(0).ok().and_then(|region| region.first_block());
    let Some((body, first)) = body.and_then(|body| Some((body, body.first_operation()?))) else {
        return;
    };
    let mut declared = BTreeSet::new();
    for call in walk_collect(module, |op| read::op_name(&op) == func::CALL) {
        let callee = read::symbol(&call, "callee").unwrap_or_default();
        if !callee.starts_with(groups::FUNCTION) || !declared.insert(callee.clone()) {
            continue;
        }
        let operands: Vec<Type<'_>> = call.operands().map(|operand| operand.r#type()).collect();
        let results: Vec<Type<'_>> = call.results().map(|result| result.r#type()).collect();
        let ty = FunctionType::new(context, &operands, &results);
        OpSpec::new(context, func::FUNC, first.location())
            .attr("sym_name", attr::string(context, &callee))
            .attr("sym_visibility", attr::string(context, "private"))
            .attr("function_type", attr::ty(ty.into()))
            .region(Region::new())
            .before(&body, first);
    }
}

fn lower_kernel<'c: 'a, 'a>(func: OperationRef<'c, 'a>, device: Device) -> PassResult {
    let context = irc_mlir::context_of(&func);
    let (operands, results) = read::signature(&func).unwrap_or_default();
    if operands.iter().chain(&results).any(|ty| ty.to_string().contains('?')) {
        let message = "has sizes that are computed at run time: kernels for GPUs need known sizes; --shape gives those of inputs";
        return Err(PassError::at(&func, message));
    }
    let mut kernel = Kernel::read(func)?;
    if let Some(symbol) = kernel.symbols.first() {
        let message = format!(
            "has a size that depends on '{symbol}': kernels for GPUs need known sizes; --shape gives those of inputs"
        );
        return Err(PassError::at(&func, message));
    }
    inline::widen(&mut kernel);
    inline::inline(&mut kernel);
    let device = Device { is_grid: !is_task(&func), ..device };
    let strides = Strides::of(func, &kernel)?;
    let parts = plan(&kernel, &strides, &device);
    let sums = place(&mut kernel, &parts, &device);
    let parts: Vec<_> = parts.into_iter().zip(sums).collect();
    let mut types = parameters(context, &kernel);
    if !device.is_grid && (1..=device.scratch).contains(&kernel.workspace) {
        types.pop();
        types.push(team::shared_type(context, kernel.workspace, "i8"));
    }
    let parent = func.block().ok_or_else(|| PassError::at(&func, "is not in a module"))?;
    let name = read::string(&func, "sym_name").unwrap_or_default();

    let of_team = TEAM_TYPES.map(|name| irc_mlir::ty::parse(context, name));
    let all = [&types[..], &of_team].concat();
    let spec = on_memory(func, &all, |_| {});
    let team = spec.before(&parent, func);
    irc_mlir::set_attribute(team, "sym_name", attr::string(context, &team_of(&name)));
    irc_mlir::set_attribute(team, "sym_visibility", attr::string(context, "private"));
    irc_mlir::set_attribute(team, LINKAGE, attr::parse(context, "#llvm.linkage<internal>"));
    irc_mlir::remove_attribute(team, KERNEL.name());
    let outputs = kernel.inputs..kernel.inputs + kernel.results.len();
    // Tasks have windows of larger memory, and results may be in the memory of operands.
    let each = |index| match (is_task(&func), outputs.contains(&index)) {
        (false, true) => "{llvm.noalias, llvm.align = 64 : i64}",
        (false, false) if index < types.len() => "{llvm.align = 64 : i64}",
        _ => "{}",
    };
    let each: Vec<_> = (0..all.len()).map(each).collect();
    irc_mlir::set_attribute(
        team,
        "arg_attrs",
        attr::parse(context, &format!("[{}]", each.join(", "))),
    );
    let body = body_of(team)?;
    if let Err(error) = fill(context, func, body, &kernel, (&strides, &parts, &device)) {
        team.erase();
        return Err(error);
    }

    let whole =
        on_memory(func, &types, |info| *info = described(func, &kernel)).before(&parent, func);
    if device.is_grid {
        ACCESSES.write(whole, &accesses(&kernel));
        if let Some(workers) = workers(&kernel, &parts, &device) {
            WORKERS.write(whole, workers);
        }
    }
    run_on_grid(context, whole, &team_of(&name), types.len())?;
    func.erase();
    Ok(())
}

/// The number of operands that a kernel only reads, and the bytes of each operand.
fn accesses(kernel: &Kernel<'_>) -> Vec<i64> {
    let bytes = |value: usize| {
        let known = kernel.values[value].ty.known();
        let bytes = known.and_then(|known| known.byte_size().ok());
        bytes.and_then(|bytes| i64::try_from(bytes).ok()).unwrap_or(i64::MAX)
    };
    let values = (0..kernel.inputs).chain(kernel.results.iter().copied());
    let reads = [kernel.inputs as i64].into_iter();
    reads.chain(values.map(bytes)).chain([kernel.workspace]).collect()
}

/// The number of blocks that have a part of a kernel's work, if it is a product.
fn workers(kernel: &Kernel<'_>, parts: &[(Part, Option<i64>)], device: &Device) -> Option<i64> {
    let ([(Part::Step, _)], [step]) = (parts, &kernel.steps[..]) else { return None };
    let Work::Nest(nest) = &step.work else { return None };
    let types = step.operands.iter().map(|value| &kernel.values[*value].ty);
    product::workers(nest, &types.collect::<Vec<_>>(), device)
}

fn is_task(func: &OperationRef<'_, '_>) -> bool {
    KERNEL.read(func).is_some_and(|info| info.kind == crate::attributes::TASK)
}

fn body_of<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<BlockRef<'c, 'a>, PassError> {
    let block = func.region(0).ok().and_then(|region| region.first_block());
    block.ok_or_else(|| PassError::at(&func, "has no body"))
}

fn argument<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    block: BlockRef<'c, 'a>,
    index: usize,
) -> Result<Value<'c, 'a>, PassError> {
    let argument = block.argument(index);
    argument.map(Into::into).map_err(|error| PassError::at(&func, error.to_string()))
}

/// Writes the body of a kernel: all threads of the grid are one team.
fn run_on_grid<'c: 'a, 'a>(
    context: &'c Context,
    whole: OperationRef<'c, 'a>,
    team: &str,
    parameters: usize,
) -> PassResult {
    let block = body_of(whole)?;
    let e = Emit { context, block, location: whole.location() };
    let mut operands = vec![];
    for index in 0..parameters {
        operands.push(argument(whole, block, index)?);
    }
    let call = |name: &str, operands: &[Value<'c, 'a>], results: &[Type<'c>]| {
        let callee = attr::symbol(context, name);
        e.spec(func::CALL).attr("callee", callee).operands(operands).results(results).append(&block)
    };
    let index = Type::index(context);
    for name in ["irc_gpu_team", "irc_gpu_teams", "irc_gpu_thread", "irc_gpu_threads"] {
        operands.push(crate::kernel::emit::first_result(call(name, &[], &[index])));
    }
    operands.push(e.integer(-1, 32, Lanes::Scalar));
    operands.push(e.index(0));
    call(team, &operands, &[]);
    call(GRID_BARRIER, &[], &[]);
    e.spec(func::RETURN).append(&block);
    Ok(())
}

/// The strides of operands and results that are windows of larger tensors.
struct Strides {
    /// By value.
    values: Vec<Option<Vec<i64>>>,
}

impl Strides {
    fn of(func: OperationRef<'_, '_>, kernel: &Kernel<'_>) -> Result<Self, PassError> {
        let given = |name| -> Vec<Option<Vec<i64>>> {
            dictionaries(&func, name).into_iter().map(|each| STRIDES.of(each)).collect()
        };
        let (inputs, outputs) = (given("arg_attrs"), given("res_attrs"));
        let mut values = vec![];
        for value in &kernel.values {
            let (strides, base) = match value.origin {
                Origin::Input(index) => (inputs.get(index), &kernel.values[index].ty),
                Origin::Output(index) => {
                    (outputs.get(index), &kernel.values[kernel.results[index]].ty)
                }
                Origin::Scratch(_) => (None, &value.ty),
            };
            let strides =
                strides.and_then(Option::as_ref).filter(|strides| !is_dense(strides, &base.dims));
            let mapped = strides.map(|strides| mapped(strides, &base.dims, &value.ty.dims));
            values.push(match mapped {
                Some(None) => return Err(PassError::at(&func, "reshapes a window of a tensor")),
                Some(some) => some,
                None => None,
            });
        }
        Ok(Self { values })
    }
}

fn is_dense(strides: &[i64], dims: &[Dim]) -> bool {
    let mut inner = 1;
    dims.iter().zip(strides).rev().all(|(dim, stride)| {
        let fits = dim.is(1) || *stride == inner;
        inner *= dim.known().unwrap_or(1);
        fits
    })
}

/// The strides of a view that adds or removes dimensions of one element.
fn mapped(strides: &[i64], from: &[Dim], to: &[Dim]) -> Option<Vec<i64>> {
    let mut long = from.iter().zip(strides).filter(|(dim, _)| !dim.is(1));
    let mut found = vec![];
    for dim in to {
        found.push(match dim.is(1) {
            true => 0,
            false => *long.next().filter(|(own, _)| *own == dim)?.1,
        });
    }
    long.next().is_none().then_some(found)
}

/// Steps of a kernel that are computed together.
enum Part {
    /// Rows that stay in registers.
    Rows(Rows),
    /// Two products, without the scores between them.
    Attention(Box<Attention>),
    /// One step.
    Step,
}

impl Part {
    /// The number of steps.
    fn count(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.count,
            Self::Attention(attention) => attention.count(),
            Self::Step => 1,
        }
    }

    /// Whether the result of one of the steps is in memory.
    fn stores(&self, step: usize) -> bool {
        match self {
            Self::Rows(rows) => rows.stored[step],
            Self::Attention(attention) => step + 1 == attention.count(),
            Self::Step => true,
        }
    }
}

/// Which steps of a kernel are computed together.
fn plan(kernel: &Kernel<'_>, strides: &Strides, device: &Device) -> Vec<Part> {
    let mut parts = vec![];
    let mut next = 0;
    while next < kernel.steps.len() {
        let attention = || Attention::find(kernel, next, strides, device);
        let rows = || Rows::find(kernel, next, strides, device.threads).map(Part::Rows);
        let attention = attention().map(|found| Part::Attention(Box::new(found)));
        let part = attention.or_else(rows).unwrap_or(Part::Step);
        next += part.count();
        parts.push(part);
    }
    parts
}

/// Gives the results of steps that are in memory places in the workspace, and parts memory for the sums of parts of
/// products; returns its offset for each part that needs some.
fn place(kernel: &mut Kernel<'_>, parts: &[Part], device: &Device) -> Vec<Option<i64>> {
    let (mut places, mut sums) = (BTreeMap::new(), vec![]);
    let (mut end, mut next) = (0, 0);
    let mut reserve = |bytes: i64| {
        let start = end;
        end += (bytes + 63) / 64 * 64;
        start
    };
    for part in parts {
        let steps = &kernel.steps[next..next + part.count()];
        next += steps.len();
        for (number, step) in steps.iter().enumerate() {
            for value in step.results.iter().map(|result| &kernel.values[*result]) {
                let Origin::Scratch(old) = value.origin else { continue };
                let bytes = value.ty.known().and_then(|known| known.byte_size().ok());
                let in_registers = -1 - places.len() as i64;
                places.entry(old).or_insert_with(|| match part.stores(number) {
                    true => reserve(bytes.map_or(0, |bytes| bytes as i64)),
                    false => in_registers,
                });
            }
        }
        let bytes = match (part, &steps[0].work) {
            (Part::Attention(attention), _) => attention.partial_bytes(),
            (Part::Step, Work::Nest(nest)) => {
                let types = steps[0].operands.iter().map(|value| &kernel.values[*value].ty);
                product::partial_bytes(nest, &types.collect::<Vec<_>>(), device)
            }
            _ => None,
        };
        sums.push(bytes.map(&mut reserve));
    }
    for value in &mut kernel.values {
        if let Origin::Scratch(old) = value.origin {
            value.origin = Origin::Scratch(places.get(&old).copied().unwrap_or(0));
        }
    }
    kernel.workspace = end;
    sums
}

/// Writes the function of a team. Parts have the offset of memory for sums of parts of products, if they need some.
fn fill<'c: 'a, 'a>(
    context: &'c Context,
    func: OperationRef<'c, 'a>,
    block: BlockRef<'c, 'a>,
    kernel: &Kernel<'c>,
    (strides, parts, device): (&Strides, &[(Part, Option<i64>)], &Device),
) -> PassResult {
    let e = Emit { context, block, location: func.location() };
    let workspace = kernel.inputs + kernel.results.len();
    let mut buffers = vec![];
    for value in &kernel.values {
        let element = stored(context, value.ty.dtype);
        buffers.push(match value.origin {
            Origin::Input(index) => Buffer { memref: argument(func, block, index)?, element },
            Origin::Output(index) => {
                Buffer { memref: argument(func, block, kernel.inputs + index)?, element }
            }
            // What stays in registers is not accessed in memory.
            Origin::Scratch(offset) => {
                let offset = offset.max(0);
                let elements = value.ty.known().map_or(0, |known| known.shape.iter().product());
                e.workspace_view(argument(func, block, workspace)?, offset, elements, element)
            }
        });
    }
    let after = |index| argument(func, block, workspace + 1 + index);
    let team = Team {
        team: after(0)?,
        teams: after(1)?,
        thread: after(2)?,
        threads: e.index(device.threads),
        barrier: if device.is_grid { e.integer(-1, 32, Lanes::Scalar) } else { after(4)? },
        shared: if device.is_grid { e.index(0) } else { after(5)? },
    };
    let sizes = Sizes::default();
    // What has been written, and whether inputs have been read, since threads last waited for each other.
    let (mut written, mut has_read): (Vec<Origin>, bool) = (vec![], false);
    let mut next = 0;
    for (part, partial) in parts {
        let steps = &kernel.steps[next..next + part.count()];
        next += steps.len();
        let [step, ..] = steps else { continue };
        let e = e.at(step.location);
        let partial = partial.map(|offset| {
            let memref = argument(func, block, workspace)?;
            let bytes = kernel.workspace - offset;
            Ok(e.workspace_view(memref, offset, bytes / 4, e.f32()))
        });
        let partial = partial.transpose()?;
        let origin = |value: &usize| kernel.values[*value].origin;
        let operands_of = || steps.iter().flat_map(|step| &step.operands);
        let results = || steps.iter().flat_map(|step| &step.results);
        let reads = operands_of().any(|value| written.contains(&origin(value)));
        let is_output = |value: &usize| matches!(origin(value), Origin::Output(_));
        let overwrites = kernel.is_in_place && has_read && results().any(is_output);
        if reads || overwrites {
            team.wait(e);
            (written, has_read) = (vec![], false);
        }
        has_read |= operands_of().any(|value| matches!(origin(value), Origin::Input(_)));
        written.extend(results().map(|value| kernel.values[*value].origin));
        let (all, group) = (&buffers[..], &team);
        match part {
            Part::Rows(rows) => {
                let (buffers, team) = (all, group);
                rows::Emission { rows, kernel, steps, buffers, strides, team }.emit(e, &sizes);
                continue;
            }
            Part::Attention(attention) => {
                let kernel = attention::Place { kernel, steps, buffers: all, strides, partial };
                attention.emit(e, &kernel, (group, device), &sizes);
                continue;
            }
            Part::Step => {}
        }
        let operands: Vec<_> = step
            .operands
            .iter()
            .map(|value| (&kernel.values[*value].ty, buffers[*value]))
            .collect();
        match &step.work {
            Work::Nest(nest) => {
                let own: Vec<_> =
                    step.operands.iter().map(|value| strides.values[*value].as_deref()).collect();
                let result = (buffers[step.results[0]], strides.values[step.results[0]].as_deref());
                let partial = partial.map(|partial| partial.memref);
                let with = (&team, device, partial);
                step::emit(e, nest, (&operands, &own), result, &sizes, with);
            }
            Work::Rows(_) => unreachable!("sizes are known, so values between steps have memory"),
            Work::Algorithm(algorithm) => {
                let results: Vec<_> = step.results.iter().map(|value| buffers[*value]).collect();
                let emit = |e, part| {
                    algorithms::emit(e, algorithm, &operands, &results, &sizes, part);
                };
                let types: Vec<_> = operands.iter().map(|(ty, _)| *ty).collect();
                match algorithms::cycles(algorithm, &types) {
                    Some(_) => emit(e, Some([team.first(e), team.all(e)])),
                    None => team.alone(e, |e| emit(e, None)),
                }
            }
        }
    }
    e.spec(func::RETURN).append(&block);
    Ok(())
}
