//! Inputs of networks.

use crate::support::{Network, data};
use irc_npu_network::{Error, Layout, Role, Tensors, fill, ports, run};
use irc_tensor::{DType, Tensor, TensorType};

fn small() -> Network {
    Network::open(&data("small.schedule.json"), Some(&data("small.frontend.json")))
}

fn drawn(layout: &Layout, seed: u64) -> Tensors {
    let mut given = Tensors::new();
    fill(layout, &mut given, seed).expect("room");
    given
}

#[test]
fn keys_are_inputs_and_weights() {
    let ports = ports(&small().layout);
    let keys: Vec<String> = ports.iter().map(|port| format!("{} {}", port.name, port.ty)).collect();
    let expected = [
        "input1 f16[2,3,10,10]",
        "Conv_1.weight i8[16,3,3,3]",
        "Conv_1.scale f32[16]",
        "Conv_1.bias f32[16]",
        "Conv_1.offset i32[16]",
    ];
    assert_eq!(keys[..5], expected);
    assert_eq!(keys.len(), 1 + 4 * 4);
}

#[test]
fn results_are_distinguished_from_what_is_loaded_again() {
    let roles: Vec<_> =
        small().layout.activations.iter().map(|one| (one.name.clone(), one.role)).collect();
    let expected = [
        ("input1".to_owned(), Role::Input),
        ("Conv_1".to_owned(), Role::Stored),
        ("Add_5".to_owned(), Role::Output),
        ("Gemm_9".to_owned(), Role::Output),
    ];
    assert_eq!(roles, expected);
}

#[test]
fn drawn_values_depend_on_the_seed_and_fill_results() {
    let network = small();
    let results = |seed| {
        run(&network.program, &network.layout, &drawn(&network.layout, seed)).expect("a run")
    };
    assert_eq!(results(1), results(1));
    assert_ne!(results(1), results(2));
    let sums = results(1).remove("Add_5").expect("a result").to_f64();
    let at_ends = sums.iter().filter(|value| **value == -128.0 || **value == 127.0).count();
    assert!(at_ends < sums.len() * 3 / 4, "{at_ends} of {} are at either end", sums.len());
}

#[test]
fn what_is_given_stays() {
    let layout = small().layout;
    let zeros = Tensor::zeros(TensorType::new(DType::F32, [16])).expect("a tensor");
    let mut given = Tensors::from([("Conv_1.bias".to_owned(), zeros.clone())]);
    fill(&layout, &mut given, 3).expect("room");
    assert_eq!(given["Conv_1.bias"], zeros);
    assert_ne!(given["Conv_3.bias"], zeros);
}

#[test]
fn what_does_not_fit_is_rejected() {
    let network = small();
    let given = drawn(&network.layout, 1);
    let rejected = |given: &Tensors| {
        run(&network.program, &network.layout, given).expect_err("a fault").to_string()
    };
    let mut other = given.clone();
    other.insert("input".into(), given["input1"].clone());
    let expected = "the network has no `input`; it takes inputs `input1`; .weight, .scale, .bias \
        and .offset of `Conv_1`, `Conv_2`, `Conv_3`, `Gemm_9`";
    assert_eq!(rejected(&other), expected);
    let mut other = given.clone();
    other.insert("input1".into(), given["Conv_1.scale"].clone());
    assert_eq!(rejected(&other), "`input1`: expected f16[2,3,10,10], found f32[16]");
    let mut other = given.clone();
    other.retain(|name, _| !name.ends_with("bias"));
    let expected = "no values for `Conv_1.bias`, `Conv_2.bias`, `Conv_3.bias`, `Gemm_9.bias`";
    assert_eq!(rejected(&other), expected);
}

#[test]
fn a_program_of_another_network_is_rejected() {
    let network = small();
    let mut layout = network.layout.clone();
    layout.activations.remove(1);
    let fault = run(&network.program, &layout, &drawn(&layout, 1)).expect_err("a fault");
    let Error::Foreign { core: 0, what, .. } = fault else { panic!("{fault}") };
    assert_eq!(what, "a tensor [16, 5, 5] at 1200 of activations");
}
