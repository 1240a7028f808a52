//! The networks of published experiments, imported from ONNX, are the published lists of layers.

use crate::support::example;
use irc_npu_cost::networks::ALL;
use irc_npu_lower::layers;

#[test]
fn networks_imported_from_onnx_have_the_published_layers() {
    let files = [
        ("bert", "bert"),
        ("darknet", "darknet19"),
        ("dense", "densenet"),
        ("goog", "googlenet"),
        ("gpt_decode", "gpt_decode"),
        ("gpt_prefill", "gpt_prefill"),
        ("ires", "inception_resnet"),
        ("resnet", "resnet50"),
        ("resnet101", "resnet101"),
        ("resnext50", "resnext50"),
        ("trans_cell", "transformer_cell"),
        ("vgg", "vgg19"),
        ("zfnet", "zfnet"),
    ];
    for ((name, build), (known, file)) in ALL.into_iter().zip(files) {
        assert_eq!(name, known);
        let published = build().expect("a network");
        let found = layers(&example(file)).unwrap_or_else(|found| panic!("{file}: {found:#?}"));
        let expected = published.nodes().iter().map(|node| format!("{node:?}"));
        let found: Vec<_> = found.network.nodes().iter().map(|node| format!("{node:?}")).collect();
        for (index, expected) in expected.enumerate() {
            assert_eq!(found.get(index), Some(&expected), "layer {index} of {file}");
        }
        assert_eq!(found.len(), published.nodes().len(), "{file}");
    }
}
