//! Programs of quantised networks compute the bytes that their graphs have.

mod blocks;
mod division;
mod nets;

use irc_common_format::model::Module;
use irc_diag::Sink;
use irc_npu::verify;
use irc_npu_cost::{Machine, Mesh, Model, Objective, initial};
use irc_npu_lower::{
    Boundary, Given, LayerNumbers, Layers, Scheduled, known_layers, layers, numbers, schedule,
    stated_splits,
};
use irc_npu_network::{Layout, run};
use irc_npu_schedule::{Split, Splits};
use irc_tensor::{DType, Tensor, TensorType};
use std::collections::BTreeMap;

/// The scores of a model on a mesh, which are those of its graph.
fn agree(name: &str, module: &Module, images: i64, meshes: &[[u64; 2]]) {
    let (graph, given, expected) = evaluated(name, module, images);
    let network = Ready::new(name, &graph);
    for mesh in meshes {
        let outputs = network.run(images, *mesh, &given);
        assert_eq!(outputs["scores"], expected, "{name}, {images} images, {mesh:?}");
    }
}

/// The graph of a model, an image, and its scores.
fn evaluated(
    name: &str,
    module: &Module,
    images: i64,
) -> (irc_tl::Graph, BTreeMap<String, Tensor>, Tensor) {
    let graph = nets::graph(module);
    let ty = TensorType::new(DType::F32, [images, 3, 32, 32]);
    let image = Tensor::random(ty, 7).expect("an image");
    let given = BTreeMap::from([("image".to_owned(), image)]);
    let expected = graph.eval(&given).expect("scores").remove(0);
    let values = expected.to_f64();
    let distinct = values.iter().filter(|value| **value != values[0]).count();
    assert!(distinct * 2 > values.len(), "{name}: scores that say something: {values:?}");
    (graph, given, expected)
}

/// A network that is ready for schedules.
struct Ready<'n> {
    name: &'n str,
    found: Layers,
    numbers: Vec<LayerNumbers>,
    boundary: Boundary,
}

impl<'n> Ready<'n> {
    fn new(name: &'n str, graph: &irc_tl::Graph) -> Self {
        let found = layers(graph).unwrap_or_else(|found| panic!("{name}: {found:#?}"));
        let numbers = numbers(graph, &found).unwrap_or_else(|found| panic!("{name}: {found:#?}"));
        let boundary = Boundary::new(graph, &found, &numbers);
        Self { name, found, numbers, boundary }
    }

    /// The outputs of its program for a mesh.
    fn run(
        &self,
        images: i64,
        [width, height]: [u64; 2],
        given: &BTreeMap<String, Tensor>,
    ) -> BTreeMap<String, Tensor> {
        let Self { name, found, numbers, boundary } = self;
        let machine = Machine::polar(Mesh { width, height, stride: 1 });
        let mut model = Model::new(&found.network, &machine, OBJECTIVE).expect("a machine");
        let (tree, evaluation) =
            initial(&mut model, &found.network, images as u64).expect("a first tree");
        let of = Scheduled {
            target: None,
            network: &found.network,
            facts: &found.facts(),
            machine: &machine,
            tree: &tree,
            evaluation: &evaluation,
            objective: OBJECTIVE,
        };
        let place = format!("{name}, {images} images, {width} x {height}");
        computed(&of, (found, numbers, boundary), given, &place)
    }

    /// The outputs of its program for a mesh of cores with such buffers, and the number of layers in pieces.
    fn run_in_pieces(
        &self,
        graph: &irc_tl::Graph,
        images: i64,
        ([width, height], buffer): ([u64; 2], u64),
        given: &BTreeMap<String, Tensor>,
    ) -> (BTreeMap<String, Tensor>, usize) {
        let mut machine = Machine::polar(Mesh { width, height, stride: 1 });
        machine.buffer.size = buffer;
        let options =
            irc_npu_schedule::Options { objective: OBJECTIVE, budget: 200, ..Default::default() };
        let place = format!("{}, {images} images, {width} x {height}, {buffer}", self.name);
        let made =
            irc_npu_schedule::schedule(&self.found.network, &machine, images as u64, &options);
        let made = made.unwrap_or_else(|error| panic!("{place}: {error:#?}"));
        let pieces = self.found.pieces(&made.splits).expect("the pieces of the schedule");
        assert_eq!(pieces.sources, made.sources, "{place}");
        let numbers = pieces.numbers(graph, &self.found, &self.numbers);
        let numbers = numbers.unwrap_or_else(|found| panic!("{place}: {found:#?}"));
        let boundary = Boundary::new(graph, &pieces.layers, &numbers);
        let of = Scheduled {
            target: None,
            network: &pieces.layers.network,
            facts: &pieces.layers.facts(),
            machine: &machine,
            tree: &made.tree,
            evaluation: &made.evaluation,
            objective: made.mappings,
        };
        let found = computed(&of, (&*pieces.layers, &numbers, &boundary), given, &place);
        let written = schedule(&of).expect("a schedule");
        let names = written.workloads().map(|(_, _, workload)| workload.layer_name.as_str());
        assert_eq!(stated_splits(names, &self.found.network), made.splits, "{place}");
        (found, made.splits.0.len())
    }
}

const OBJECTIVE: Objective = Objective::EDP;

/// The outputs of the program of a schedule.
fn computed(
    of: &Scheduled<'_>,
    (layers, numbers, boundary): (&Layers, &[LayerNumbers], &Boundary),
    given: &BTreeMap<String, Tensor>,
    place: &str,
) -> BTreeMap<String, Tensor> {
    let nodes = layers.network.nodes();
    let arithmetic: Vec<_> = numbers.iter().map(|own| own.arithmetic).collect();
    let known = known_layers(&layers.network, of.facts, &arithmetic);
    let made = schedule(of).expect("a schedule");
    let program = irc_npu_emit::emit_known(&made, None, &known)
        .unwrap_or_else(|found| panic!("{place}: {found:#?}"));
    let mut sink = Sink::new();
    verify::verify(&program, None, &verify::Machine::default(), &mut sink);
    let mut errors = sink.into_diagnostics();
    errors.retain(irc_diag::Diagnostic::is_error);
    assert!(errors.is_empty(), "{place}: {:#?}", &errors[..errors.len().min(3)]);
    let mut shapes = BTreeMap::new();
    let mut tensors = BTreeMap::new();
    for (node, own) in nodes.iter().zip(numbers) {
        let Some(weights) = &own.weights else { continue };
        for (key, constant) in weights.tensors() {
            let Given::Known(tensor) = constant else { panic!("{place}: weights") };
            if key == "weight" {
                let shape = <[i64; 3]>::try_from(tensor.shape()).expect("three extents");
                shapes.insert(node.layer.name.clone(), (shape, node.layer.groups() as u32));
            }
            tensors.insert(format!("{}.{key}", node.layer.name), tensor.clone());
        }
    }
    let layout = Layout::new(&made, None).expect("a layout").with_types(boundary.types());
    let layout = layout.with_weights(&shapes).expect("a layout");
    let shape = |name: &str| layout.activation(name).map(irc_npu_network::Activations::shape);
    tensors.extend(boundary.pack(given, shape).expect("inputs"));
    let stored =
        run(&program, &layout, &tensors).unwrap_or_else(|error| panic!("{place}: {error}"));
    boundary.unpack(&stored, given).expect("outputs")
}

const MESHES: &[[u64; 2]] = &[[1, 1], [2, 2], [4, 4]];

#[test]
fn resnets_compute_the_scores_of_their_graphs() {
    agree("resnet18", &nets::resnet(1, true, [2, 2, 2, 2], false), 1, MESHES);
    agree("resnet18", &nets::resnet(4, false, [2, 2, 2, 2], false), 4, MESHES);
    agree("resnet34", &nets::resnet(1, false, [3, 4, 6, 3], false), 1, &[[2, 2]]);
    agree("resnet50", &nets::resnet(1, true, [3, 4, 6, 3], true), 1, &[[4, 4]]);
    agree("resnet50", &nets::resnet(4, false, [3, 4, 6, 3], true), 4, &[[2, 2]]);
}

#[test]
fn vgg_and_googlenet_compute_the_scores_of_their_graphs() {
    agree("vgg16", &nets::vgg(1, false), 1, MESHES);
    agree("googlenet", &nets::googlenet(1, false), 1, MESHES);
    agree("googlenet", &nets::googlenet(4, true), 4, &[[2, 2]]);
}

#[test]
fn concatenations_and_padded_means_compute_the_scores_of_their_graphs() {
    agree("densenet", &blocks::densenet(1, false), 1, MESHES);
    agree("densenet", &blocks::densenet(2, true), 2, &[[2, 2]]);
    agree("inception", &blocks::inception(1, true), 1, MESHES);
    agree("inception", &blocks::inception(4, false), 4, &[[2, 2]]);
}

#[test]
fn channels_in_another_order_compute_the_scores_of_their_graphs() {
    agree("shufflenet", &blocks::shufflenet(1, false), 1, MESHES);
    agree("shufflenet", &blocks::shufflenet(4, true), 4, &[[2, 2]]);
}

#[test]
fn functions_and_factors_of_channels_compute_the_scores_of_their_graphs() {
    agree("efficientnet", &blocks::efficientnet(1, false), 1, MESHES);
    agree("efficientnet", &blocks::efficientnet(4, true), 4, &[[2, 2]]);
}

#[test]
fn reductions_compute_the_scores_of_their_graphs() {
    agree("reductions", &blocks::reductions(1, false), 1, MESHES);
    agree("reductions", &blocks::reductions(4, true), 4, &[[2, 2]]);
    agree("means of channels", &blocks::channel_means(1, true), 1, MESHES);
    agree("means of channels", &blocks::channel_means(4, false), 4, &[[2, 2]]);
}

#[test]
fn reductions_that_the_npu_does_not_have_are_named() {
    let check = |op: &str, axes: &[i64], expected: &str| {
        let graph = nets::graph(&blocks::reduced(op, axes));
        let found = layers(&graph).and_then(|found| numbers(&graph, &found));
        let found = found.expect_err("no numbers");
        let texts: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
        let is_named = |text: &&str| text.contains(&format!("{op} '")) && text.contains(expected);
        assert!(texts.iter().all(is_named) && texts.len() == 1, "{op} {axes:?}: {texts:#?}");
    };
    check("ReduceMax", &[1], "is over channels; the NPU does not compare them");
    check("ReduceMax", &[1, 2], "a reduction over channels and others");
    check("ReduceMean", &[1, 2], "a reduction over channels and others");
    check("ReduceMin", &[2, 3], "it is a reduce_min of f32");
}

/// Convolutions add channels of weights that do not fit in a byte.
#[test]
fn weights_that_are_no_signed_bytes_are_named() {
    let graph = nets::graph(&blocks::wide_weights());
    let found = layers(&graph).and_then(|found| numbers(&graph, &found)).expect_err("no numbers");
    let texts: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
    let [text] = texts[..] else { panic!("{texts:#?}") };
    let expected = "weights minus their zero points are not from -128 to 127";
    assert!(text.starts_with("QLinearConv '") && text.contains(expected), "{text}");
}

/// A maximum of channels is no function of each element, although it is the element if all have one value.
#[test]
fn functions_of_channels_have_no_numbers() {
    for (op, last) in [("ReduceMax", "Sub"), ("ReduceMean", "Sub"), ("ReduceMax", "Add")] {
        let graph = nets::graph(&blocks::over_channels(op, last));
        let found = layers(&graph).unwrap_or_else(|found| panic!("{op}: {found:#?}"));
        let found = numbers(&graph, &found).expect_err("no numbers");
        let texts: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
        let [text] = texts[..] else { panic!("{texts:#?}") };
        assert!(text.starts_with(op) && text.contains("do not add or compare channels"), "{text}");
    }
}

#[test]
fn products_of_two_results_compute_the_scores_of_their_graphs() {
    agree("attention", &blocks::attention(1, [1, 8, 16]), 1, MESHES);
    agree("attention", &blocks::attention(2, [1, 8, 16]), 2, &[[2, 2]]);
}

/// Heads whose channels or keys are not whole words do not begin with one.
#[test]
fn heads_that_begin_within_a_word_compute_the_scores_of_their_graphs() {
    for sizes in [[3, 8, 13], [4, 8, 5], [3, 5, 16], [2, 3, 7], [5, 12, 9], [2, 8, 1]] {
        let name = format!("heads, channels and keys {sizes:?}");
        agree(&name, &blocks::attention(1, sizes), 1, &[[1, 1], [2, 1], [2, 2], [4, 4]]);
    }
}

#[test]
fn groups_that_are_not_whole_words_compute_the_scores_of_their_graphs() {
    agree("mobilenetv2", &nets::mobilenet(1, false), 1, MESHES);
    agree("mobilenetv2", &nets::mobilenet(4, true), 4, &[[2, 2]]);
    agree("resnext", &nets::resnext(1, true), 1, MESHES);
}

/// Of layers that fit no buffers, the pieces compute the scores of the graph.
#[test]
fn layers_in_pieces_compute_the_scores_of_their_graphs() {
    let check = |name: &str, file: &Module, mesh: [u64; 2], kib: u64, least: usize| {
        let (graph, given, expected) = evaluated(name, file, 1);
        let ready = Ready::new(name, &graph);
        let (found, split) = ready.run_in_pieces(&graph, 1, (mesh, kib << 10), &given);
        assert_eq!(found["scores"], expected, "{name}, {mesh:?}");
        assert!(split >= least, "{name}, {mesh:?}: {split} layers in pieces");
    };
    check("resnet18", &nets::resnet(1, true, [2, 2, 2, 2], false), [1, 1], 14, 9);
    check("resnet18", &nets::resnet(1, true, [2, 2, 2, 2], false), [2, 2], 14, 4);
    check("resnet50", &nets::resnet(1, false, [1, 1, 1, 1], true), [2, 1], 12, 10);
    check("vgg16", &nets::vgg(1, false), [2, 1], 16, 8);
    check("googlenet", &nets::googlenet(1, false), [2, 1], 12, 5);
    check("inception", &blocks::inception(1, true), [2, 1], 13, 6);
    check("shufflenet", &blocks::shufflenet(1, false), [2, 1], 13, 4);
    check("attention", &blocks::attention(1, [2, 8, 16]), [2, 2], 11, 1);
    check("mobilenetv2", &nets::mobilenet(1, false), [2, 2], 11, 3);
    check("resnext", &nets::resnext(1, true), [2, 1], 13, 5);
}

/// Sums of parts of a sum of products are no bytes.
#[test]
fn partial_sums_have_no_numbers() {
    let (graph, ..) = evaluated("vgg16", &nets::vgg(1, false), 1);
    let ready = Ready::new("vgg16", &graph);
    let splits = Splits([(0, Split { sums: 2, ..Split::default() })].into());
    let pieces = ready.found.pieces(&splits).expect("a convolution in two parts");
    let found = pieces.numbers(&graph, &ready.found, &ready.numbers).expect_err("partial sums");
    assert_eq!(found.code, "layer-numbers");
    assert!(found.message.contains("parts of a sum"), "{}", found.message);
}
