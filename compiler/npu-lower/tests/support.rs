//! What tests share.

use irc_common_format::{Options, open};
use irc_diag::Sink;
use irc_tl::Graph;
use std::path::Path;

/// The graph of an ONNX model of `examples/npu`.
pub fn example(name: &str) -> Graph {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/npu");
    let mut sink = Sink::new();
    let document = open(&folder.join(format!("{name}.onnx")), &Options::default(), &mut sink);
    let document = document.unwrap_or_else(|| panic!("{name} cannot be read"));
    let imported = irc_onnx_ops::import(&document.module, &irc_onnx_ops::ImportOptions::default());
    imported.unwrap_or_else(|found| panic!("{name}: {found:#?}")).graph
}
