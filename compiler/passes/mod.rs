//! Every pass of irc, registered by name.
use crate::{
    fusion::{Fuse, SimplifyTl},
    lowering::{
        ark_to_plan::PlanArk, ark_to_tl::ArkToTl, bf16_as_bits::Bf16AsBits,
        checks_to_kernels::ChecksToKernels, common_ir_to_tl::CommonIrToTl,
        compute_to_loops::ComputeToLoops, compute_to_loops::simt::ComputeToSimt,
        cut_blocks::CutBlocks, emit_entry::EmitEntry, emit_gpu_entry::EmitGpuEntry,
        gemini_to_npu::GeminiToNpu, linalg_to_vector::LinalgToVector, load_buffers::LoadBuffers,
        math_to_functions::MathToFunctions, outline_kernels::OutlineKernels,
        plan_memory::PlanMemory, share_program::ShareProgram, split_blocks::SplitBlocks,
        split_program::SplitProgram, tabulate_steps::TabulateSteps, tl_to_linalg::TlToLinalg,
    },
};
use irc_common_format::FileSystem;
use irc_mlir::register_pass;

mod check_stage;
mod gemini_check;
mod npu_verify;

/// Registers all passes, once per process; later calls do nothing.
pub fn register_all() {
    register_pass(ArkToTl);
    register_pass(CommonIrToTl(FileSystem));
    register_pass(PlanArk);
    register_pass(gemini_check::GeminiCheck);
    register_pass(GeminiToNpu);
    register_pass(npu_verify::NpuVerify);
    register_pass(SimplifyTl);
    register_pass(Fuse);
    register_pass(OutlineKernels);
    register_pass(SplitBlocks);
    register_pass(TlToLinalg);
    register_pass(ComputeToLoops);
    register_pass(ComputeToSimt);
    register_pass(LinalgToVector);
    register_pass(ChecksToKernels);
    register_pass(PlanMemory);
    register_pass(ShareProgram);
    register_pass(SplitProgram);
    register_pass(MathToFunctions);
    register_pass(TabulateSteps);
    register_pass(CutBlocks);
    register_pass(LoadBuffers);
    register_pass(Bf16AsBits);
    register_pass(EmitEntry);
    register_pass(EmitGpuEntry);
    register_pass(check_stage::CheckStage);
}
