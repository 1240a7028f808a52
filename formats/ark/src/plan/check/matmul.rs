//! The tiles of ARK's matrix kernels, and of irc's own for CUDA_90, for which ARK has none.

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use crate::model::{DataType, Op, Tensor, shape};
use crate::plan::tiling::four;
use crate::plan::{Architecture, Plan, PlanOp};

/// A matrix kernel, with its exact tile, warps and bytes of on-chip memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatmulKernel {
    /// Rows of the result in a tile.
    pub m: i64,
    /// Columns of the result in a tile.
    pub n: i64,
    /// Extent of a tile along the inner dimension.
    pub k: i64,
    /// Number of warps of a task.
    pub warps: i64,
    /// Bytes of on-chip memory of a task.
    pub sram: i64,
}

const fn kernel(m: i64, n: i64, k: i64, warps: i64, sram: i64) -> MatmulKernel {
    MatmulKernel { m, n, k, warps, sram }
}

/// The matrix kernels of an architecture for a data type, in the order in which ARK tries them, which is that of size for
/// irc's own kernels of CUDA_90. Empty if there are none, or none are known.
pub fn matmul_kernels(architecture: Architecture, dtype: DataType) -> Vec<MatmulKernel> {
    match (architecture, dtype) {
        (Architecture::Cuda80, DataType::Fp32) => SINGLE.to_vec(),
        (Architecture::Cuda80, DataType::Fp16) => [&HALF[..], &[FP16_ONLY]].concat(),
        (Architecture::Cuda80, DataType::Bf16) => HALF.to_vec(),
        (Architecture::Cuda90, DataType::Fp32) => HOPPER_SINGLE.to_vec(),
        (Architecture::Cuda90, DataType::Fp16 | DataType::Bf16) => HOPPER_HALF.to_vec(),
        // The kernels that ARK's planner chooses; its kernel library has others.
        (Architecture::Rocm942, DataType::Fp32) => rocm(16, 24_672),
        (Architecture::Rocm942, DataType::Fp16) => rocm(32, 24_672),
        (Architecture::Rocm942, DataType::Bf16) => rocm(32, 24_624),
        _ => vec![],
    }
}

fn rocm(k: i64, sram: i64) -> Vec<MatmulKernel> {
    vec![kernel(128, 256, k, 4, sram), kernel(256, 128, k, 4, sram)]
}

/// Kernels of CUDA_80 for FP16 and BF16.
const HALF: [MatmulKernel; 15] = [
    kernel(128, 256, 64, 8, 147_456),
    kernel(256, 128, 64, 8, 147_456),
    kernel(128, 128, 64, 4, 98_304),
    kernel(256, 64, 64, 4, 122_880),
    kernel(64, 256, 64, 4, 122_880),
    kernel(128, 64, 64, 4, 98_304),
    kernel(64, 128, 64, 4, 98_304),
    kernel(64, 64, 64, 4, 98_304),
    kernel(128, 256, 32, 8, 73_728),
    kernel(256, 128, 32, 8, 73_728),
    kernel(128, 128, 32, 4, 65_536),
    kernel(256, 64, 32, 4, 81_920),
    kernel(64, 256, 32, 4, 81_920),
    kernel(128, 64, 32, 4, 73_728),
    kernel(64, 128, 32, 4, 73_728),
];

/// The kernel of CUDA_80 that exists for FP16 only.
const FP16_ONLY: MatmulKernel = kernel(64, 64, 32, 4, 81_920);

/// Kernels of CUDA_80 for FP32.
const SINGLE: [MatmulKernel; 3] = [
    kernel(128, 256, 32, 8, 147_456),
    kernel(128, 128, 32, 4, 98_304),
    kernel(64, 64, 32, 4, 49_152),
];

/// A kernel of CUDA_90: its bytes of on-chip memory are those of a number of stages, in each of which are tiles of both
/// operands. They are such that all of the 227 KB of a processor but a part of a stage is used: by one task, or by several.
const fn hopper(m: i64, n: i64, k: i64, warps: i64, stages: i64, bytes: i64) -> MatmulKernel {
    kernel(m, n, k, warps, stages * (m + n) * k * bytes)
}

/// Kernels of CUDA_90 for FP16 and BF16: sums of warp groups of four warps are 64 rows high.
const HOPPER_HALF: [MatmulKernel; 11] = [
    hopper(128, 256, 64, 8, 4, 2),
    hopper(256, 128, 64, 8, 4, 2),
    hopper(128, 128, 64, 4, 3, 2),
    hopper(64, 256, 64, 4, 2, 2),
    hopper(256, 64, 64, 4, 2, 2),
    hopper(128, 64, 64, 4, 3, 2),
    hopper(64, 128, 64, 4, 3, 2),
    hopper(64, 64, 64, 4, 3, 2),
    hopper(128, 256, 32, 8, 4, 2),
    hopper(128, 128, 32, 4, 3, 2),
    hopper(64, 64, 32, 4, 3, 2),
];

/// Kernels of CUDA_90 for FP32.
const HOPPER_SINGLE: [MatmulKernel; 4] = [
    hopper(128, 256, 32, 8, 4, 4),
    hopper(256, 128, 32, 8, 4, 4),
    hopper(128, 128, 32, 4, 3, 4),
    hopper(64, 64, 32, 4, 3, 4),
];

/// Number of registers of a processor, and the maximum of a thread.
const REGISTERS: i64 = 65_536;
const MAX_REGISTERS: i64 = 254;

/// Checks the tile of a matrix product, and the strides of a batched one.
pub(super) fn check(plan: &Plan, plan_op: &PlanOp, at: &At<'_>, sink: &mut Sink) {
    let Some((m, n, k)) = tile(plan_op) else { return };
    let architecture = plan.architecture;
    let config = at.key("Config");
    let is_whole = plan_op.config.ints("TileShapeMNK").is_some();
    let tile_at = config.key(if is_whole { "TileShapeMNK" } else { "Tile" });
    let op = &plan_op.op;
    check_divides(op, (m, n, k), &tile_at, sink);
    check_batch(op, at, sink);
    let dtype = op.reads[0].dtype;
    let warps = plan_op.config.int("NumWarps").unwrap_or(0);
    let sram = plan_op.config.int("SramBytes").unwrap_or(0);
    let fits = |kernel: &MatmulKernel| {
        (kernel.m, kernel.n, kernel.warps, kernel.sram) == (m, n, warps, sram)
            && k.is_none_or(|k| k == kernel.k)
    };
    if has_kernel(architecture, dtype, fits, (m, n, k)) == Some(false) {
        let name = architecture.name();
        let depth = k.map(|k| format!("x{k}")).unwrap_or_default();
        let message = format!(
            "{name} has no {dtype} kernel for the tile {m}x{n}{depth} with {warps} warps and \
             {sram} bytes"
        );
        sink.push(Diagnostic::error("plan-matmul-kernel", message).path(tile_at.to_string()));
    } else if matches!(architecture, Architecture::Cuda80 | Architecture::Cuda90) {
        check_registers(plan, plan_op, m * n, &tile_at, sink);
    }
}

/// The tile `M`, `N` and `K`; in the newest generation of the format, ARK chooses `K`.
fn tile(plan_op: &PlanOp) -> Option<(i64, i64, Option<i64>)> {
    match plan_op.config.ints("TileShapeMNK") {
        Some(&[m, n, k]) => Some((m, n, Some(k))),
        _ => match plan_op.config.ints("Tile") {
            Some(&[m, n]) => Some((m, n, None)),
            _ => None,
        },
    }
}

/// The sums of a tile are stored in registers, which the threads of a processor share.
fn check_registers(plan: &Plan, plan_op: &PlanOp, sums: i64, at: &At<'_>, sink: &mut Sink) {
    let warp = plan.architecture.warp_threads();
    let threads = warp * plan_op.config.int("NumWarps").unwrap_or(1).max(1);
    // ARK's sums of 16-bit floats have 16 bits; others have 32.
    let is_short = plan_op.op.reads[0].dtype == DataType::Fp16;
    let bytes = if is_short && plan.architecture == Architecture::Cuda80 { 2 } else { 4 };
    let needed = sums * bytes / 4 / threads;
    let all = warp * plan.num_warps_per_processor.max(1);
    let has = (REGISTERS / all).min(MAX_REGISTERS);
    if needed >= has {
        let message = format!(
            "the sums of a tile alone take {needed} registers of a thread; with {} warps on a \
             processor it has {has}",
            plan.num_warps_per_processor
        );
        let diagnostic = Diagnostic::warning("plan-registers", message)
            .path(at.to_string())
            .with_note("values that do not fit are spilled to memory, which is slow");
        sink.push(diagnostic.help("use a smaller tile or fewer warps on a processor"));
    }
}

/// Whether a kernel exists; `None` if the kernels are unknown.
fn has_kernel(
    architecture: Architecture,
    dtype: DataType,
    fits: impl Fn(&MatmulKernel) -> bool,
    tile: (i64, i64, Option<i64>),
) -> Option<bool> {
    if !dtype.is_float() {
        return Some(false);
    }
    match (architecture, dtype) {
        (Architecture::Cuda80 | Architecture::Cuda90, _) => {
            Some(matmul_kernels(architecture, dtype).iter().any(fits))
        }
        (Architecture::Cuda70, DataType::Fp16) => {
            Some((tile.0, tile.1, tile.2.unwrap_or(32)) == (128, 256, 32))
        }
        (Architecture::Cuda70, _) => Some(false),
        _ => None,
    }
}

fn check_divides(op: &Op, (m, n, k): (i64, i64, Option<i64>), at: &At<'_>, sink: &mut Sink) {
    let transpose = |name| op.bool_arg(name).unwrap_or(false);
    let extents = shape::mnk(
        &op.reads[0].padded_shape,
        &op.reads[1].padded_shape,
        transpose("TransposeInput"),
        transpose("TransposeOther"),
    );
    let dims = [("M", extents.m), ("N", extents.n), ("K", extents.k)];
    let tile = [Some(m), Some(n), k].into_iter().flatten();
    for (index, ((name, extent), tile)) in dims.into_iter().zip(tile).enumerate() {
        if extent % tile != 0 {
            let message =
                format!("{name} = {extent} (padded) is not a multiple of the tile's {tile}");
            let diagnostic = Diagnostic::error("plan-matmul-tile", message)
                .path(at.index(index).to_string())
                .help("choose a tile that divides it, or pad the operands");
            sink.push(diagnostic);
        }
    }
}

/// The kernel steps from one matrix of a batch to the next by the rows and columns of the view of the
/// *result*, and by the number of its matrices, never by the strides of an operand; an operand
/// with another layout would be read at wrong addresses.
fn check_batch(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let (result, reads, writes) = (&op.writes[0], at.key("ReadTensors"), at.key("WriteTensors"));
    let matrices = four(&result.shape)[1];
    check_step(result, matrices, "matrices", 1, &writes.index(0), sink);
    let sides = [("TransposeInput", 2, "rows"), ("TransposeOther", 3, "columns")];
    for (index, (transposed, result_dim, what)) in sides.into_iter().enumerate() {
        let operand = &op.reads[index];
        let [outer, inner, ..] = four(&operand.shape);
        if outer * inner == 1 || operand.rank() < 2 {
            continue;
        }
        let transposed = op.bool_arg(transposed).unwrap_or(false);
        let dim = 2 + (index ^ usize::from(transposed));
        let expected = four(&result.strides)[result_dim];
        check_step(operand, expected, what, dim, &reads.index(index), sink);
        // An operand that is constant along an outer index is stepped as one matrix.
        let expected = if inner == 1 { 1 } else { matrices };
        check_step(operand, expected, "matrices", 1, &reads.index(index), sink);
    }
}

/// Checks that the view of a batch has the extent of a dimension by which the kernel steps.
fn check_step(
    tensor: &Tensor,
    expected: i64,
    what: &str,
    dim: usize,
    at: &At<'_>,
    sink: &mut Sink,
) {
    let found = four(&tensor.strides)[dim];
    let is_stepped = four(&tensor.shape)[..dim.min(2)].iter().any(|&extent| extent > 1);
    if is_stepped && found != expected {
        let message = format!("batches of {found} {what} are stepped as if of {expected}");
        let diagnostic = Diagnostic::error("plan-matmul-batch", message)
            .path(at.key("Strides").to_string())
            .with_note("ARK's kernel steps by the shape and strides of the result")
            .help("copy it to a separate view");
        sink.push(diagnostic);
    }
}
