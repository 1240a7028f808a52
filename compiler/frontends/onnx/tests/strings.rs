//! Strings as elements.
use crate::case::Case;
use irc_tl::DType;

const WORDS: [&str; 4] = ["a", "b\u{e9}", "", "a"];

#[test]
fn strings_move_as_numbers_do() {
    let words = || Case::new("Identity", 16).texts(&[2, 2], &WORDS);
    assert_eq!(words().result_texts(), WORDS);
    let of = |op: &str| Case::new(op, 13).texts(&[2, 2], &WORDS);
    assert_eq!(of("Transpose").result_texts(), ["a", "", "b\u{e9}", "a"]);
    assert_eq!(of("Reshape").constant(&[1], &[4i64]).result_texts(), WORDS);
    assert_eq!(of("Gather").input(&[1], &[1i64]).result_texts(), ["", "a"]);
    assert_eq!(of("Expand").constant(&[3], &[2i64, 2, 2]).result_texts().len(), 8);
    assert_eq!(of("Tile").constant(&[2], &[1i64, 2]).result_texts()[..3], ["a", "b\u{e9}", "a"]);
    let joined = of("Concat").constant_texts(&[1, 2], &["c", "a"]).int("axis", 0);
    assert_eq!(joined.result_texts(), ["a", "b\u{e9}", "", "a", "c", "a"]);
    let slice = of("Slice").constant(&[2], &[1i64, 0]).constant(&[2], &[2i64, 1]);
    assert_eq!(slice.result_texts(), [""]);
    let chosen = Case::new("Where", 16)
        .input_of(DType::Bool, &[2], &[1.0, 0.0])
        .texts(&[2, 2], &WORDS)
        .constant_texts(&[], &["z"]);
    assert_eq!(chosen.result_texts(), ["a", "z", "", "z"]);
}

#[test]
fn strings_are_compared_by_their_characters() {
    let equal = Case::new("Equal", 19).texts(&[2, 2], &WORDS).constant_texts(&[], &["a"]);
    assert_eq!(equal.values(), [1.0, 0.0, 0.0, 1.0]);
    let equal = Case::new("Equal", 19).texts(&[2], &["a", "b"]).texts(&[2], &["b", "b"]);
    assert_eq!(equal.values(), [0.0, 1.0]);
}

#[test]
fn constants_of_strings_are_listed_in_attributes() {
    let of = || Case::new("Constant", 13);
    assert_eq!(of().string("value_string", "a").result_texts(), ["a"]);
    assert_eq!(of().strings("value_strings", &["b", "a", "b"]).result_texts(), ["b", "a", "b"]);
}

#[test]
fn strings_have_no_order_and_no_sum() {
    let of = |op: &str| Case::new(op, 13).texts(&[2], &["a", "b"]).texts(&[2], &["b", "b"]);
    assert_eq!(of("Less").error(), "lt: expected numbers, found string");
    assert_eq!(
        of("Add").error(),
        "add: expected a float or integer, found string[2] and string[2]"
    );
    assert!(of("MatMul").run().is_err());
}
