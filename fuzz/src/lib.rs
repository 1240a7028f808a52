//! Properties of every reader on any bytes: it does not panic or hang, rejected input has a diagnostic, and
//! accepted input is the same after it is written and read again.
//!
//! `./irc-dev fuzz` searches for bytes that violate them with libFuzzer, guided by coverage: the same
//! inputs each time. `./irc-dev fuzz ark_model 600` searches for ten minutes with one target, and continues
//! where the last such search ended. The tests of this crate try each target on its seeds and on seeds with a
//! few bytes changed.

pub mod ark_model;
pub mod ark_plan;
pub mod common_ir;
pub mod common_ir_rules;
pub mod common_ir_wire;
pub mod gemini;
pub mod mlf_graph;
pub mod mlf_params;
pub mod mlf_plan;
pub mod mlf_tar;
pub mod npu_binary;
pub mod npu_listing;
pub mod ptx;
pub mod ptx_description;

use irc_common_format::Encoding;

/// The function of a target: it panics if a property is violated.
pub type Check = fn(&[u8]);

/// The targets by name. The file `fuzz/targets` has a line for each: how many inputs are tried
/// when no time is given, and the folders of its seeds.
pub const TARGETS: [(&str, Check); 15] = [
    ("ark_model", ark_model::check),
    ("ark_plan", ark_plan::check),
    ("common_ir_json", |bytes| common_ir::check(bytes, Encoding::Json)),
    ("common_ir_rules", common_ir_rules::check),
    ("common_ir_text", |bytes| common_ir::check(bytes, Encoding::Text)),
    ("common_ir_wire", common_ir_wire::check),
    ("gemini", gemini::check),
    ("mlf_graph", mlf_graph::check),
    ("mlf_params", mlf_params::check),
    ("mlf_plan", mlf_plan::check),
    ("mlf_tar", mlf_tar::check),
    ("npu_binary", npu_binary::check),
    ("npu_listing", npu_listing::check),
    ("ptx", ptx::check),
    ("ptx_description", ptx_description::check),
];

/// The target of a name.
pub fn target(name: &str) -> Option<Check> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, check)| *check)
}
