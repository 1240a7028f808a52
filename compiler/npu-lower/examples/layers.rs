//! Prints the layers of ONNX models: `cargo run -p irc-npu-lower --example layers -- MODEL.onnx`

use irc_common_format::{Options, open};
use irc_diag::Sink;

fn main() {
    for path in std::env::args().skip(1) {
        println!("{path}");
        let mut sink = Sink::new();
        let Some(document) = open(path.as_ref(), &Options::default(), &mut sink) else {
            println!("  cannot be read");
            continue;
        };
        let imported =
            irc_onnx_ops::import(&document.module, &irc_onnx_ops::ImportOptions::default());
        let Ok(imported) = imported else {
            println!("  cannot be imported");
            continue;
        };
        match irc_npu_lower::layers(&imported.graph) {
            Ok(found) => {
                for (node, origin) in found.network.nodes().iter().zip(&found.origins) {
                    let layer = &node.layer;
                    println!(
                        "  {} {:?} {:?} {:?} {} nodes",
                        layer.name,
                        layer.op,
                        layer.output,
                        node.inputs,
                        origin.nodes.len()
                    );
                }
            }
            Err(found) => found
                .iter()
                .for_each(|one| println!("  {} {}: {:?}", one.code, one.message, one.path)),
        }
    }
}
