//! Import, export and verification of each dialect.

mod ark_round_trip;
mod common_ir_round_trip;
mod gemini_round_trip;
mod npu_round_trip;
mod plan_round_trip;
