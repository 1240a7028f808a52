//! Recurrent networks: directions, lengths and layouts.

use crate::case::Case;

/// A network that adds its input to its state.
fn sum(direction: &str) -> Case {
    let count = if direction == "bidirectional" { 2 } else { 1 };
    let ones = vec![1.0f32; count];
    let case = Case::new("RNN", 14).input(&[3, 2, 1], &[1.0f32, 10.0, 2.0, 20.0, 3.0, 30.0]);
    let case = case.constant(&[count as i64, 1, 1], &ones).constant(&[count as i64, 1, 1], &ones);
    let names = vec!["Affine"; count];
    case.string("direction", direction).strings("activations", &names).int("hidden_size", 1)
}

fn both(case: Case) -> [Vec<f64>; 2] {
    let results = case.outputs(2).run().expect("a network");
    [results[0].to_f64(), results[1].to_f64()]
}

#[test]
fn states_go_forward_and_backward() {
    let [y, last] = both(sum("forward"));
    assert_eq!((y, last), (vec![1.0, 10.0, 3.0, 30.0, 6.0, 60.0], vec![6.0, 60.0]));
    let [y, last] = both(sum("reverse"));
    assert_eq!((y, last), (vec![6.0, 60.0, 5.0, 50.0, 3.0, 30.0], vec![6.0, 60.0]));
    let [y, last] = both(sum("bidirectional"));
    let expected = [1.0, 10.0, 6.0, 60.0, 3.0, 30.0, 5.0, 50.0, 6.0, 60.0, 3.0, 30.0];
    assert_eq!((&y[..], &last[..]), (&expected[..], &[6.0, 60.0, 6.0, 60.0][..]));
}

#[test]
fn sequences_end_where_they_say() {
    let of = |direction| sum(direction).nothing().input(&[2], &[2i32, 3]);
    let [y, last] = both(of("forward"));
    assert_eq!((y, last), (vec![1.0, 10.0, 3.0, 30.0, 0.0, 60.0], vec![3.0, 60.0]));
    let [y, last] = both(of("reverse"));
    assert_eq!((y, last), (vec![3.0, 60.0, 2.0, 50.0, 0.0, 30.0], vec![3.0, 60.0]));
}

#[test]
fn the_batch_may_come_first() {
    let case = Case::new("RNN", 14).input(&[2, 3, 1], &[1.0f32, 2.0, 3.0, 10.0, 20.0, 30.0]);
    let case = case.constant(&[1, 1, 1], &[1.0f32]).constant(&[1, 1, 1], &[1.0f32]);
    let case = case.nothing().nothing().input(&[2, 1, 1], &[100.0f32, 200.0]);
    let results = case.strings("activations", &["Affine"]).int("layout", 1).outputs(2).run();
    let results = results.expect("a network");
    assert_eq!(results[0].shape(), [2, 3, 1, 1]);
    assert_eq!(results[0].to_f64(), [101.0, 103.0, 106.0, 210.0, 230.0, 260.0]);
    assert_eq!((results[1].shape(), results[1].to_f64()), (&[2, 1, 1][..], vec![106.0, 260.0]));
}

#[test]
fn the_reset_gate_comes_before_or_after_the_product() {
    let of = |opset: i64, after: i64| {
        let case = Case::new("GRU", opset).input(&[1, 1, 1], &[0.0f32]);
        let case = case.constant(&[1, 3, 1], &[0.0f32; 3]).constant(&[1, 3, 1], &[0.0f32; 3]);
        // The bias of the candidate's state part is 8: the reset gate applies only after the product.
        let bias = [0.0f32, 0.0, 0.0, 0.0, 0.0, 8.0];
        let case = case.constant(&[1, 6], &bias).int("linear_before_reset", after);
        case.strings("activations", &["HardSigmoid", "Affine"]).values()
    };
    assert_eq!(of(7, 0), [4.0]);
    assert_eq!(of(7, 1), [2.0]);
    // The first version supports one order only.
    assert_eq!(of(1, 1), [4.0]);
}

#[test]
fn what_is_wrong_is_said() {
    assert_eq!(
        sum("sideways").error(),
        "expected `direction` forward, reverse or bidirectional, found sideways"
    );
    let names = |names: &[&str]| {
        let case = Case::new("RNN", 14).input(&[1, 1, 1], &[1.0f32]);
        let case = case.input(&[1, 1, 1], &[1.0f32]).input(&[1, 1, 1], &[1.0f32]);
        case.strings("activations", names).error()
    };
    assert_eq!(names(&["Cube"]), "expected an activation, found Cube");
    assert_eq!(names(&["Tanh", "Tanh"]), "expected 1 activations, found [\"Tanh\", \"Tanh\"]");
}
