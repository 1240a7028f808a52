//! Layers and multiply-accumulates of the networks.

use irc_npu_cost::networks::ALL;
use irc_npu_cost::{Network, Op};

/// Layers, layers with weights, multiply-accumulates of those, weights that are constants.
fn counts(network: &Network) -> (usize, usize, u64, u64) {
    let nodes = network.nodes().iter();
    let weighted: Vec<_> = nodes.filter(|node| node.layer.weights().is_some()).collect();
    let macs = weighted.iter().map(|node| node.layer.operations()).sum();
    let constants = weighted.iter().filter(|node| !node.has_made_weights());
    let weights = constants.filter_map(|node| node.layer.weights()).map(|shape| shape.volume());
    (network.nodes().len(), weighted.len(), macs, weights.sum())
}

#[test]
fn layers_and_operations_are_those_of_the_papers() {
    // ResNets have their strides in the first convolution of a block, as in the paper.
    let expected = [
        // Four matrices of 1024 by 1024, two of 1024 by 2048, and 1000 words, for 512 tokens; and for
        // 16 heads two products of 512 by 512 by 64.
        ("bert", 44, 24, 512 * 9_412_608 + 2 * 16 * 512 * 512 * 64, 9_412_608),
        ("darknet", 25, 19, 2_790_989_824, 20_826_976),
        ("dense", 126, 121, 2_834_161_664, 7_894_208),
        ("goog", 72, 58, 1_582_671_872, 6_990_272),
        ("gpt_decode", 65, 33, 20_035_200, 18_393_600),
        ("gpt_prefill", 62, 33, 10_256_384_000, 18_393_600),
        ("ires", 153, 129, 6_209_572_960, 25_920_352),
        ("resnet", 72, 54, 3_857_973_248, 25_502_912),
        ("resnet101", 140, 105, 7_570_194_432, 44_442_816),
        ("resnext50", 72, 54, 2_066_087_936, 14_539_328),
        // For 8 heads in three attentions, and two feed-forward parts.
        ("trans_cell", 81, 44, 512 * 7_852_032 + 3 * 2 * 8 * 512 * 512 * 64, 7_852_032),
        ("vgg", 21, 16, 19_508_428_800, 20_018_880),
        ("zfnet", 11, 8, 2_476_704_896, 107_616_032),
    ];
    for ((name, build), expected) in ALL.into_iter().zip(expected) {
        let (layers, weighted, macs, weights) = counts(&build().expect("a network"));
        assert_eq!((name, layers, weighted, macs, weights), expected);
    }
}

#[test]
fn every_head_has_its_own_keys() {
    let (_, build) = ALL.into_iter().find(|(name, _)| *name == "bert").expect("bert");
    let network = build().expect("a network");
    let score = network.find("block1_QK").expect("scores");
    let node = &network.nodes()[score];
    assert_eq!(node.weights.len(), 16);
    assert!(matches!(node.layer.op, Op::GroupedConv { groups: 16, .. }));
}
