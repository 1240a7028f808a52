//! Tiles for which ARK has a matrix kernel.

use irc_diag::{Diagnostic, Sink};

use crate::json::At;
use crate::model::{DataType, Op, shape};
use crate::plan::{Architecture, PlanOp};

/// A matrix kernel: tile, warps and bytes of on-chip memory, all exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatmulKernel {
    /// Rows of the result in a tile.
    pub m: i64,
    /// Columns of the result in a tile.
    pub n: i64,
    /// Depth of a step.
    pub k: i64,
    /// Warps of a task.
    pub warps: i64,
    /// Bytes of on-chip memory of a task.
    pub sram: i64,
}

type Kernel = MatmulKernel;

const fn kernel(m: i64, n: i64, k: i64, warps: i64, sram: i64) -> Kernel {
    Kernel { m, n, k, warps, sram }
}

/// The matrix kernels of an architecture for a data type, those ARK tries first in front. Empty
/// when there are none, or none is known.
pub fn matmul_kernels(architecture: Architecture, dtype: DataType) -> Vec<MatmulKernel> {
    match (architecture, dtype) {
        (Architecture::Cuda80, DataType::Fp32) => SINGLE.to_vec(),
        (Architecture::Cuda80, DataType::Fp16) => [&HALF[..], &[FP16_ONLY]].concat(),
        (Architecture::Cuda80, DataType::Bf16) => HALF.to_vec(),
        // What ARK's planner chooses; the kernels come from a library that has others.
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
const HALF: [Kernel; 15] = [
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
const FP16_ONLY: Kernel = kernel(64, 64, 32, 4, 81_920);

/// Kernels of CUDA_80 for FP32.
const SINGLE: [Kernel; 3] = [
    kernel(128, 256, 32, 8, 147_456),
    kernel(128, 128, 32, 4, 98_304),
    kernel(64, 64, 32, 4, 49_152),
];

/// Checks the tile of a matrix product, and the strides of a batched one.
pub(super) fn check(plan_op: &PlanOp, architecture: Architecture, at: &At<'_>, sink: &mut Sink) {
    let Some(&[m, n, k]) = plan_op.config.ints("TileShapeMNK") else { return };
    let op = &plan_op.op;
    check_divides(op, [m, n, k], at, sink);
    check_batch(op, at, sink);
    let dtype = op.reads[0].dtype;
    let warps = plan_op.config.int("NumWarps").unwrap_or(0);
    let sram = plan_op.config.int("SramBytes").unwrap_or(0);
    let Some(exists) = has_kernel(architecture, dtype, &kernel(m, n, k, warps, sram)) else {
        return;
    };
    if !exists {
        let config = at.key("Config");
        let name = architecture.name();
        let message = format!(
            "{name} has no {dtype} kernel for the tile {m}x{n}x{k} with {warps} warps and {sram} \
             bytes"
        );
        let finding = Diagnostic::error("plan-matmul-kernel", message);
        sink.push(finding.path(config.key("TileShapeMNK").to_string()));
    }
}

/// Whether the kernel exists; nothing where the kernels are not known.
fn has_kernel(architecture: Architecture, dtype: DataType, wanted: &Kernel) -> Option<bool> {
    let fits = |kernel: &Kernel| {
        (kernel.m, kernel.n, kernel.k) == (wanted.m, wanted.n, wanted.k)
            && (kernel.warps, kernel.sram) == (wanted.warps, wanted.sram)
    };
    match (architecture, dtype) {
        (Architecture::Cuda80, DataType::Fp32) => Some(SINGLE.iter().any(fits)),
        (Architecture::Cuda80, DataType::Fp16) => Some(HALF.iter().chain([&FP16_ONLY]).any(fits)),
        (Architecture::Cuda80, _) => Some(HALF.iter().any(fits)),
        (Architecture::Cuda70, DataType::Fp16) => {
            Some((wanted.m, wanted.n, wanted.k) == (128, 256, 32))
        }
        (Architecture::Cuda70 | Architecture::Cuda90, _) => Some(false),
        _ => None,
    }
}

fn check_divides(op: &Op, tile: [i64; 3], at: &At<'_>, sink: &mut Sink) {
    let transpose = |name| op.bool_arg(name).unwrap_or(false);
    let extents = shape::mnk(
        &op.reads[0].padded_shape,
        &op.reads[1].padded_shape,
        transpose("TransposeInput"),
        transpose("TransposeOther"),
    );
    let config = at.key("Config");
    let dims = [("M", extents.m), ("N", extents.n), ("K", extents.k)];
    for (index, ((name, extent), tile)) in dims.into_iter().zip(tile).enumerate() {
        if extent % tile != 0 {
            let message = format!("{name} = {extent} (padded) is no multiple of the tile's {tile}");
            let finding = Diagnostic::error("plan-matmul-tile", message)
                .path(config.key("TileShapeMNK").index(index).to_string())
                .help("choose a tile that divides it, or pad the operands");
            sink.push(finding);
        }
    }
}

/// The kernel steps from one matrix of a batch to the next by the strides of the *result*; an
/// operand whose rows or columns are laid out otherwise would be read at wrong addresses.
fn check_batch(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let result = &op.writes[0];
    let rank = result.rank();
    let reads = at.key("ReadTensors");
    let sides = [("TransposeInput", rank - 2, "rows"), ("TransposeOther", rank - 1, "columns")];
    for (index, (transposed, result_dim, what)) in sides.into_iter().enumerate() {
        let operand = &op.reads[index];
        let batch: i64 = operand.shape.iter().rev().skip(2).product();
        if batch == 1 || operand.rank() < 2 {
            continue;
        }
        let transposed = op.bool_arg(transposed).unwrap_or(false);
        let dim = operand.rank() - 2 + (index ^ usize::from(transposed));
        let (found, expected) = (operand.strides[dim], result.strides[result_dim]);
        if found != expected {
            let message = format!("batches of {found} {what} are stepped as if of {expected}");
            let finding = Diagnostic::error("plan-matmul-batch", message)
                .path(reads.index(index).key("Strides").to_string())
                .with_note("ARK's kernel steps by the strides of the result");
            sink.push(finding);
        }
    }
}
