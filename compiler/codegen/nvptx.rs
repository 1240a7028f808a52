//! NVPTX: one kernel for NVIDIA GPUs as PTX text or LLVM IR, by LLVM.
use super::{CodegenError, Output, Row, Target, isolate::isolated, llvm};
use crate::{lowering::linalg_to_vector::Dots, pipeline::NVPTX};
use irc_mlir::Module;

/// NVPTX's row.
pub const ROW: Row = Row {
    name: "nvptx",
    outputs: &[Output::Ptx, Output::LlvmIr],
    pipeline: &NVPTX,
    vector_bytes: |_| 16,
    dots: |_| Dots::Plain,
    streams: |_| false,
    features: |_| vec![],
    expect: |_| Ok(()),
    compile,
};

/// The triple of NVIDIA GPUs.
pub const TRIPLE: &str = "nvptx64-nvidia-cuda";

fn compile(module: &Module<'_>, target: &Target, output: Output) -> Result<Vec<u8>, CodegenError> {
    let owned = llvm::translate(module)?;
    let target = target.clone();
    isolated(move || llvm::generate(owned, &target, output))
}
