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
        "add: expected float or integer operands, found string[2] and string[2]"
    );
    assert!(of("MatMul").run().is_err());
}

#[test]
fn strings_are_padded_with_empty_ones() {
    let padded = Case::new("Pad", 21).texts(&[2], &["a", "b"]).constant(&[2], &[1i64, 0]);
    assert_eq!(padded.result_texts(), ["", "a", "b"]);
}

/// The results are those of ONNX Runtime, here and below.
#[test]
fn strings_are_joined_split_and_matched() {
    let joined = Case::new("StringConcat", 20).texts(&[2, 1], &["a", "b"]).texts(&[2], &["c", ""]);
    assert_eq!(joined.result_texts(), ["ac", "a", "bc", "b"]);
    let split = |texts: &[&str], delimiter: &str, most: Option<i64>| {
        let case = Case::new("StringSplit", 20).texts(&[texts.len() as i64], texts).outputs(2);
        let case = case.string("delimiter", delimiter);
        let case = if let Some(most) = most { case.int("maxsplit", most) } else { case };
        let results = case.run().expect("a valid node");
        let parts = results[0].to_strings().expect("strings");
        let parts = parts.iter().map(|part| String::from_utf8_lossy(part).into_owned());
        (results[0].shape().to_vec(), parts.collect::<Vec<_>>(), results[1].to_f64())
    };
    let (shape, parts, counts) = split(&["a,b", "", "d,e,f"], ",", None);
    assert_eq!((shape, counts), (vec![3, 3], vec![2.0, 0.0, 3.0]));
    assert_eq!(parts, ["a", "b", "", "", "", "", "d", "e", "f"]);
    assert_eq!(split(&["  a b  c "], "", Some(1)).1, ["a", "b  c"]);
    assert_eq!(split(&["", " "], "", None).0, [2, 0]);
    let matches = Case::new("RegexFullMatch", 20).texts(&[3], &["a1", "a", "xa1"]);
    assert_eq!(matches.string("pattern", "a\\d").values(), [1.0, 0.0, 0.0]);
    let invalid = Case::new("RegexFullMatch", 20).texts(&[1], &["a"]).string("pattern", "(a");
    assert!(invalid.error().starts_with("invalid regular expression"), "{}", invalid.error());
}

#[test]
fn strings_are_normalized() {
    let of = |shape: &[i64], words: &[&str], stop: &[&str], case: &str, sensitive: i64| {
        let node = Case::new("StringNormalizer", 10).texts(shape, words).strings("stopwords", stop);
        node.string("case_change_action", case).int("is_case_sensitive", sensitive)
    };
    let words = ["Monday", "tuesday"];
    assert_eq!(of(&[2], &words, &[], "UPPER", 1).result_texts(), ["MONDAY", "TUESDAY"]);
    assert_eq!(of(&[2], &words, &["monday"], "LOWER", 1).result_texts(), ["monday", "tuesday"]);
    assert_eq!(of(&[2], &words, &["MONDAY", "x"], "NONE", 0).result_texts(), ["tuesday"]);
    let none = of(&[1, 2], &words, &["Monday", "tuesday"], "UPPER", 1).run().expect("valid");
    assert_eq!((none[0].shape(), none[0].elements()), (&[1, 1][..], 1));
    assert_eq!(of(&[1], &["a"], &["a"], "NONE", 1).result_texts(), [""]);
    assert!(of(&[2, 1], &words, &[], "NONE", 1).error().starts_with("expected strings of shape"));
}

#[test]
fn numbers_and_strings_are_cast() {
    let texts = Case::new("Cast", 13).input(&[3], &[1.5f32, f32::NAN, 1e10]).int("to", 8);
    assert_eq!(texts.result_texts(), ["1.5", "NaN", "1e+10"]);
    let numbers = Case::new("Cast", 13).texts(&[3], &["1.5", " 7", "-INF"]).int("to", 1);
    assert_eq!(numbers.values(), [1.5, 7.0, f64::NEG_INFINITY]);
    let like = Case::new("CastLike", 15).texts(&[1], &["300"]).input(&[0], &[] as &[u8]);
    assert_eq!(like.values(), [44.0]);
    let wrong = Case::new("Cast", 13).texts(&[1], &["abc"]).int("to", 1);
    let message = wrong.run().expect_err("no number");
    assert!(message.ends_with("the string \"abc\" is not a number of type f32"), "{message}");
}

#[test]
fn n_grams_of_strings_are_counted() {
    let of = |columns: &[i64]| {
        let case = Case::new("TfIdfVectorizer", 9)
            .texts(&[2, 4], &["a", "b", "a", "c", "x", "a", "b", "b"]);
        case.strings("pool_strings", &["a", "b", "a", "b", "b", "b"])
            .ints("ngram_counts", &[0, 2])
            .ints("ngram_indexes", columns)
            .int("min_gram_length", 1)
            .int("max_gram_length", 2)
            .int("max_skip_count", 0)
            .string("mode", "TF")
    };
    assert_eq!(of(&[1, 0, 2, 3]).values(), [1.0, 2.0, 1.0, 0.0, 2.0, 1.0, 1.0, 1.0]);
    // Several n-grams of one column are counted together.
    assert_eq!(of(&[0, 0, 1, 1]).values(), [3.0, 1.0, 3.0, 2.0]);
    let wide = of(&[0, 1, 2, i64::MAX]).error();
    assert_eq!(wide, "expected columns from 0 to 16777216 (exclusive)");
}
