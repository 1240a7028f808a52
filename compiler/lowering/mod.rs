//! Lowerings between levels, one folder or file each, named by both ends.

pub mod ark_to_plan;
pub mod ark_to_tl;
pub mod bf16_as_bits;
pub mod checks_to_kernels;
pub mod common_ir_to_tl;
pub mod compute_to_loops;
pub mod cut_blocks;
pub mod emit_entry;
pub mod emit_gpu_entry;
pub mod gemini_to_npu;
pub mod graph_to_tl;
pub mod linalg_to_vector;
pub mod load_buffers;
pub mod math_to_functions;
pub mod outline_kernels;
pub mod plan_memory;
pub mod prepare_products;
pub mod share_program;
pub mod split_blocks;
pub mod split_program;
pub mod tabulate_steps;
pub mod tl_to_graph;
pub mod tl_to_linalg;
