//! The compiler as a whole: passes, code generation, plans, the session.
#![allow(clippy::unwrap_used)]

mod algebra_rules;
mod ark_ops;
mod ark_to_tl;
mod c_abi;
mod codegen_crash;
mod corpus;
mod direct_conv;
mod docs;
mod end_to_end;
mod fusion_laws;
mod fusion_models;
mod graphs;
mod graphs_ark;
mod graphs_dynamic;
mod graphs_gemini;
mod graphs_random;
mod graphs_read_back;
mod graphs_strings;
mod growth;
mod half_types;
mod incremental;
mod integers;
mod kernels;
mod memory_files;
mod op_homes;
mod packed_constants;
mod plan_ark;
mod plan_fused;
mod plan_run;
mod quick_tier;
mod small_types;
mod softmax;
mod support;
mod symbolic_kernels;
mod winograd;
