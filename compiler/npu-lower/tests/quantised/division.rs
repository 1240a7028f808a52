//! Networks that the NPU computes in part.

use super::Ready;
use super::nets::{self, Map, Net};
use irc_common_format::model::{Attribute, AttributeValue, Module};
use irc_npu_lower::{Division, Place, divide, layers};
use irc_tensor::{DType, Tensor, TensorType};
use std::collections::BTreeMap;

/// A network of layers, functions of the host and sums of earlier results, and its number of functions of the host.
fn random_net(seed: u64) -> (Module, usize) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |count: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        (random >> 33) as usize % count
    };
    let (mut net, image) = Net::new(1, 32, seed % 2 == 1);
    let mut maps = vec![net.conv(&image, 8, [3, 4, 1], true)];
    let mut hosts = 0;
    for _ in 0..9 {
        let x = maps[maps.len() - 1 - below(maps.len().min(3))].clone();
        let y = maps[below(maps.len())].clone();
        maps.push(match below(4) {
            0 | 1 => net.conv(&x, 8, [3, 1, 1], below(2) == 0),
            2 => net.add(&x, &y, false),
            _ => {
                hosts += 1;
                net.softmax(&x)
            }
        });
    }
    (net.classify(&maps[maps.len() - 1], 10), hosts)
}

/// A network of layers, concatenations, slices, and perhaps functions of the host, whose result may contain the image.
fn joined_net(seed: u64) -> Module {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |count: i64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        (random >> 33) as i64 % count
    };
    let (mut net, image) = Net::new(1, 32, seed % 2 == 1);
    let first = net.conv(&image, 6, [1, 1, 1], below(2) == 0);
    let mut maps = vec![image.clone(), first.clone()];
    for _ in 0..5 {
        let [x, y] = [(); 2].map(|()| maps[below(maps.len() as i64) as usize].clone());
        maps.push(match below(6) {
            0 => net.conv(&x, 5, [3, 1, 1], true),
            1 if x.channels + y.channels < 30 => net.concat(&[x, y]),
            2 if x.channels + y.channels < 24 => net.concat(&[x.clone(), y, x]),
            3 if !seed.is_multiple_of(3) => net.softmax(&x),
            _ if x.channels > 2 => {
                let from = below(x.channels - 1);
                let to = from + 1 + below(x.channels - from);
                net.slice(&x, from, to)
            }
            _ => net.conv(&x, 4, [1, 1, 1], false),
        });
    }
    let last = maps[maps.len() - 1].clone();
    let x = match below(3) {
        0 => net.concat(&[last, image, first]),
        1 => net.concat(&[first, last]),
        _ => {
            let all = net.concat(&[first, last, image]);
            net.slice(&all, 4, all.channels - 1)
        }
    };
    net.values(&x)
}

fn image() -> BTreeMap<String, Tensor> {
    let ty = TensorType::new(DType::F32, [1, 3, 32, 32]);
    BTreeMap::from([("image".to_owned(), Tensor::random(ty, 7).expect("an image"))])
}

/// The scores of the steps of a network, those for the NPU by their programs.
fn scores(division: &Division, name: &str, given: BTreeMap<String, Tensor>) -> Tensor {
    let mut known = given;
    for (number, step) in division.steps.iter().enumerate() {
        let made: BTreeMap<String, Tensor> = match step.place {
            Place::Npu => {
                let name = format!("{name}, step {number}");
                let part = Ready::new(&name, &step.graph);
                let mesh = [1 + number as u64 % 2, 2];
                part.run(1, mesh, &known)
            }
            Place::Host => {
                let read = |name: &String| step.graph.inputs.iter().any(|(input, _)| input == name);
                let inputs = known.iter().filter(|(name, _)| read(name));
                let inputs = inputs.map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
                let names = step.graph.outputs.iter().map(|(name, _)| name.clone());
                names.zip(step.graph.eval(&inputs).expect("values")).collect()
            }
        };
        known.extend(made);
    }
    known.remove("scores").expect("scores")
}

#[test]
fn steps_of_random_networks_compute_the_scores_of_their_graphs() {
    let mut divided = 0;
    for seed in 0..16 {
        let (module, hosts) = random_net(seed);
        let graph = nets::graph(&module);
        let expected = graph.eval(&image()).expect("scores").remove(0);
        let division = divide(&graph).unwrap_or_else(|found| panic!("{seed}: {found:#?}"));
        let parts = division.steps.iter().filter(|step| step.place == Place::Npu).count();
        assert!(parts <= hosts + 1, "{seed}: {parts} parts, {hosts} functions of the host");
        if division.steps.is_empty() {
            continue;
        }
        divided += 1;
        assert_eq!(scores(&division, &seed.to_string(), image()), expected, "seed {seed}");
    }
    assert!(divided > 8, "only {divided} networks are divided");
}

#[test]
fn results_that_contain_the_input_and_parts_of_results_are_those_of_their_graphs() {
    let mut whole = 0;
    for seed in 0..24 {
        let graph = nets::graph(&joined_net(seed));
        let expected = graph.eval(&image()).expect("scores").remove(0);
        let division = divide(&graph).unwrap_or_else(|found| panic!("{seed}: {found:#?}"));
        let name = format!("seed {seed}");
        let places = division.steps.iter().map(|step| step.place);
        assert!(places.clone().zip(places.skip(1)).all(|(one, next)| one != next), "{name}");
        let found = if division.steps.is_empty() {
            whole += 1;
            Ready::new(&name, &graph).run(1, [1, 1], &image()).remove("scores").expect("scores")
        } else {
            scores(&division, &name, image())
        };
        assert_eq!(found, expected, "{name}");
    }
    assert!(whole > 4, "only {whole} networks are the NPU's as a whole");
}

/// A result that is joined with a concatenation of it is a part twice, of other scales.
#[test]
fn a_result_is_joined_with_a_concatenation_of_it() {
    for signed in [false, true] {
        let (mut net, given) = Net::new(1, 32, signed);
        let first = net.conv(&given, 5, [3, 1, 1], true);
        let inner = net.concat(&[first.clone(), given]);
        let second = net.conv(&inner, 3, [3, 1, 1], true);
        let all = net.concat(&[second, inner, first]);
        let last = net.conv(&all, 4, [1, 1, 1], false);
        let graph = nets::graph(&net.values(&last));
        let expected = graph.eval(&image()).expect("scores").remove(0);
        let found = Ready::new("joined again", &graph).run(1, [2, 1], &image());
        assert_eq!(found["scores"], expected, "signed {signed}");
    }
}

/// A concatenation of a concatenation, and so on: the time must not double with each.
#[test]
fn concatenations_may_be_nested_deeply() {
    let (mut net, given) = Net::new(1, 32, false);
    let first = net.conv(&given, 2, [1, 1, 1], true);
    let (mut all, part) = (net.dequantise(&first), net.dequantise(&given));
    for _ in 0..100 {
        let axis = Attribute::new("axis", AttributeValue::Int(1));
        all = net.node("Concat", &[&all, &part], vec![axis]);
    }
    let map = Map { channels: 302, ..first };
    let name = net.quantise(&all, &map);
    let found = layers(&nets::graph(&net.values(&Map { name, ..map })));
    let found = found.unwrap_or_else(|found| panic!("{found:#?}"));
    assert_eq!(found.results.iter().map(|stored| stored.channels).max(), Some(302));
}

#[test]
fn a_chain_has_a_part_between_two_visits_of_the_host() {
    let (mut net, image) = Net::new(1, 32, false);
    let mut x = net.conv(&image, 8, [3, 8, 1], true);
    for _ in 0..30 {
        let y = net.softmax(&x);
        let y = net.conv(&y, 8, [3, 1, 1], false);
        x = net.add(&y, &x, false);
    }
    let graph = nets::graph(&net.classify(&x, 10));
    let division = divide(&graph).unwrap_or_else(|found| panic!("{found:#?}"));
    let places: Vec<Place> = division.steps.iter().map(|step| step.place).collect();
    let expected: Vec<Place> = [Place::Host, Place::Npu].into_iter().cycle().take(63).collect();
    assert_eq!(places, expected);
    // Bytes go from step to step, and everything is in one of them, with what undoes quantisations.
    let crossing = division.steps[..62]
        .iter()
        .flat_map(|step| step.graph.outputs.iter().map(|(_, value)| step.graph.ty(*value).dtype));
    assert!(crossing.into_iter().all(|dtype| dtype == DType::U8));
    let nodes: usize = division.steps.iter().map(|step| step.graph.nodes.len()).sum();
    assert!(nodes < 2 * graph.nodes.len(), "{nodes} nodes of {}", graph.nodes.len());
}

#[test]
fn networks_of_layers_alone_are_not_divided() {
    let graph = nets::graph(&nets::resnet(1, true, [2, 2, 2, 2], false));
    assert_eq!(divide(&graph), Ok(Division { steps: vec![], reasons: vec![] }));
}

#[test]
fn a_network_without_layers_is_an_error() {
    let (net, image): (Net, Map) = Net::new(1, 32, false);
    let graph = nets::graph(&net.host_alone(&image));
    let found = divide(&graph).expect_err("nothing for the NPU");
    let codes: Vec<&str> = found.iter().map(|one| one.code).collect();
    assert_eq!(codes, ["layer-operator"; 2], "{found:#?}");
    assert!(found[1].message.contains("nothing that the NPU computes"));
}
