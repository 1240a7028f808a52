//! Layers that fit no buffers: pieces of them, or a diagnostic with numbers.

use irc_npu_cost::{Array, Layer, Model, Network, Reads, Shape};
use irc_npu_schedule::{Options, Schedule, Share, schedule};

use crate::support::{chain, mesh, published};

fn found(network: &Network, width: u64, height: u64) -> Schedule {
    let options = Options { budget: 3000, ..Options::default() };
    schedule(network, &mesh(width, height), 1, &options).expect("a schedule")
}

/// Checks that the pieces of each layer are its channels, in order, and do its work.
fn check_pieces(network: &Network, found: &Schedule) {
    let mut ends = vec![0; network.nodes().len()];
    let mut work = vec![0; network.nodes().len()];
    for (piece, source) in found.network.nodes().iter().zip(&found.sources) {
        if source.share != Share::Sum {
            work[source.layer] += piece.layer.operations();
        }
        if !matches!(source.share, Share::Partial(_)) {
            assert_eq!(source.channels.start, ends[source.layer]);
            ends[source.layer] = source.channels.end;
        }
        assert_eq!(piece.layer.output.channels, source.channels.end - source.channels.start);
    }
    for ((node, end), work) in network.nodes().iter().zip(ends).zip(work) {
        assert_eq!((end, work), (node.layer.output.channels, node.layer.operations()));
    }
}

#[test]
fn networks_without_a_schedule_get_one_in_pieces() {
    let rows = [("bert", 2, 2), ("trans_cell", 2, 2), ("gpt_prefill", 2, 2), ("darknet", 2, 2)];
    let more = [("resnet", 1, 1), ("zfnet", 4, 4), ("bert", 1, 1)];
    for (name, width, height) in rows.into_iter().chain(more) {
        let network = published(name);
        let found = found(&network, width, height);
        assert!(found.network.nodes().len() > network.nodes().len(), "{name}");
        check_pieces(&network, &found);
        let machine = mesh(width, height);
        let mut model = Model::new(&found.network, &machine, found.mappings).expect("a machine");
        assert_eq!(model.evaluate(&found.tree).expect("a valid tree"), found.evaluation, "{name}");
    }
}

#[test]
fn a_network_whose_layers_fit_is_not_split() {
    let network = published("goog");
    let found = found(&network, 2, 2);
    assert_eq!(found.network.nodes().len(), network.nodes().len());
    check_pieces(&network, &found);
}

#[test]
fn a_layer_that_fits_in_no_pieces_is_named_with_numbers() {
    let mut machine = mesh(2, 2);
    machine.buffer.size = (10 << 10) + 64;
    let error = schedule(&chain(2, 64, 28), &machine, 1, &Options::default()).expect_err("no room");
    assert_eq!(error.code, "schedule-no-room");
    assert!(error.message.starts_with("layer conv"), "{}", error.message);
    assert!(error.message.contains("which has 10304 bytes: "), "{}", error.message);
    assert!(error.message.contains(", 10240 for the result, "), "{}", error.message);
    assert!(error.notes.iter().any(|note| note == "on 4 cores"), "{:?}", error.notes);
}

#[test]
fn a_layer_without_a_mapping_is_named() {
    let mut machine = mesh(2, 2);
    let Array::Polar(core) = &mut machine.array else { panic!("a polar core") };
    core.weights.size = 8;
    let error = schedule(&chain(1, 64, 14), &machine, 1, &Options::default());
    let error = error.expect_err("no mapping");
    assert_eq!(error.code, "schedule-no-room");
    assert!(error.message.starts_with("layer conv0 has no mapping"), "{}", error.message);
}

#[test]
fn partial_sums_are_added() {
    let found = found(&published("zfnet"), 4, 4);
    let layer = |name: &str| found.network.find(name).expect("a layer");
    // 36 elements of the window, and 512 channels: more than a core's memory has for 8 filters.
    let sums: Vec<usize> = found.network.nodes()[layer("fc1.0")].inputs.clone();
    let names = sums.iter().map(|sum| found.network.nodes()[*sum].layer.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["fc1.0+0", "fc1.0+256"]);
    assert_eq!(found.sources[sums[1]].share, Share::Partial(256..512));
    assert_eq!(found.sources[layer("fc1.0")].share, Share::Sum);
}

#[test]
fn invalid_inputs_are_diagnosed() {
    let network = chain(1, 8, 7);
    let code = |network: &Network, machine: &irc_npu_cost::Machine, batch: u64| {
        schedule(network, machine, batch, &Options::default()).expect_err("a diagnostic").code
    };
    assert_eq!(code(&network, &mesh(2, 2), 0), "schedule-batch");
    assert_eq!(code(&network, &mesh(2, 2), 1025), "schedule-batch");
    assert_eq!(code(&network, &mesh(0, 0), 1), "cost-machine");
    assert_eq!(code(&network, &mesh(1000, 1000), 1), "cost-machine");
    assert_eq!(code(&Network::new("none"), &mesh(2, 2), 1), "schedule-network");
}

#[test]
fn pieces_read_only_their_channels() {
    // The weights fill the buffers, so that the first layer is split; the pool then reads its pieces.
    let mut network = Network::new("two");
    let map = Shape::new(512, 7, 7);
    let reads = Reads { external: Some(map), ..Reads::default() };
    let wide = Layer::conv("wide", 512, Shape::new(1024, 7, 7), irc_npu_cost::Window::square(3, 1));
    let wide = network.add_reading(wide, reads).expect("a layer");
    let pool = irc_npu_cost::Op::Pool(irc_npu_cost::Window::square(7, 7));
    network.add(Layer::new("pool", pool, Shape::new(1024, 1, 1)), &[wide]).expect("a layer");
    let found = found(&network, 2, 2);
    let names: Vec<&str> =
        found.network.nodes().iter().map(|node| node.layer.name.as_str()).collect();
    assert_eq!(names, ["wide.0", "wide.512", "pool"]);
    assert_eq!(found.network.nodes()[2].inputs, [0, 1]);
}
