//! Strings as elements.
use crate::case::{Case, microsoft};
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

/// The shape of tokens, and the tokens.
fn tokenized(
    shape: &[i64],
    texts: &[&str],
    [mark, least]: [i64; 2],
    case: impl Fn(Case) -> Case,
) -> (Vec<i64>, String) {
    let node = microsoft("Tokenizer").texts(shape, texts).string("pad_value", "#");
    let case = case(node.int("mark", mark).int("mincharnum", least));
    let shape = case.run().expect("a valid node")[0].shape().to_vec();
    (shape, case.result_texts().join("|"))
}

/// The results are those of ONNX Runtime, here and below.
#[test]
fn strings_are_split_into_characters() {
    let of = |shape: &[i64], texts: &[&str], mark: i64| {
        let separators =
            tokenized(shape, texts, [mark, 1], |case| case.strings("separators", &[""]));
        let token = tokenized(shape, texts, [mark, 1], |case| case.string("tokenexp", "."));
        assert_eq!(separators, token);
        token
    };
    let found = of(&[3], &["abc", "\u{e9}", ""], 0);
    assert_eq!(found, (vec![3, 3], "a|b|c|\u{e9}|#|#|#|#|#".to_owned()));
    let found = of(&[2, 2], &["abc", "\u{e9}", "", "x"], 1);
    let marked = "\x02|a|b|c|\x03|\x02|\u{e9}|\x03|#|#|\x02|\x03|#|#|#|\x02|x|\x03|#|#";
    assert_eq!(found, (vec![2, 2, 5], marked.to_owned()));
    assert_eq!(of(&[2], &["", ""], 1), (vec![2, 0], String::new()));
    assert_eq!(of(&[0], &[], 1), (vec![0, 0], String::new()));
}

#[test]
fn strings_are_split_at_separators() {
    let of = |least: i64| {
        let texts = ["a bb,ccc;dddd", "\u{e9} \u{e9}\u{e9}"];
        tokenized(&[2], &texts, [0, least], |case| case.strings("separators", &[" ", "[,;]"]))
    };
    assert_eq!(of(1), (vec![2, 4], "a|bb|ccc|dddd|\u{e9}|\u{e9}\u{e9}|#|#".to_owned()));
    assert_eq!(of(2), (vec![2, 3], "bb|ccc|dddd|\u{e9}\u{e9}|#|#".to_owned()));
    assert_eq!(of(3), (vec![2, 2], "ccc|dddd|#|#".to_owned()));
    let of = |shape: &[i64], texts: &[&str], separators: &[&str]| {
        tokenized(shape, texts, [1, 1], |case| case.strings("separators", separators))
    };
    assert_eq!(of(&[2], &["xx", " "], &["x", " "]), (vec![2, 0], String::new()));
    let found = of(&[3, 1], &["a,b", ",,", "c"], &[","]);
    assert_eq!(found, (vec![3, 1, 4], "\x02|a|b|\x03|\x02|\x03|#|#|\x02|c|\x03|#".to_owned()));
    let found = of(&[2], &["a b", "ab"], &["^a", "b$"]);
    assert_eq!(found, (vec![2, 3], "\x02| |\x03|\x02|\x03|#".to_owned()));
    assert_eq!(of(&[1], &["abc"], &["x*"]), (vec![1, 0], String::new()));
}

#[test]
fn strings_are_split_into_tokens() {
    let of = |texts: &[&str], least: i64, token: &str| {
        let shape = [texts.len() as i64];
        tokenized(&shape, texts, [0, least], |case| case.string("tokenexp", token))
    };
    // The longest alternative, not the first.
    assert_eq!(of(&["ab abc a", "b"], 1, "a|ab|abc"), (vec![2, 3], "ab|abc|a|#|#|#".to_owned()));
    let texts = ["a bb ccc dddd", "\u{e9}\u{e9}"];
    let found = of(&texts, 1, "\\w+|\u{e9}+");
    assert_eq!(found, (vec![2, 4], "a|bb|ccc|dddd|\u{e9}\u{e9}|#|#|#".to_owned()));
    let found = of(&texts, 2, "\\w+|\u{e9}+");
    assert_eq!(found, (vec![2, 3], "bb|ccc|dddd|\u{e9}\u{e9}|#|#".to_owned()));
    assert_eq!(of(&texts, 3, "\\w+|\u{e9}+"), (vec![2, 2], "ccc|dddd|#|#".to_owned()));
    assert_eq!(of(&["baac"], 1, "a*"), (vec![1, 1], "aa".to_owned()));
    assert_eq!(of(&["abab"], 3, "ab"), (vec![1, 0], String::new()));
    let found = of(&["a\u{c9} k"], 1, "(?i)[\u{e9}\\x{212a}]");
    assert_eq!(found, (vec![1, 2], "\u{c9}|k".to_owned()));
}

#[test]
fn tokenizers_are_checked() {
    let of = || microsoft("Tokenizer").texts(&[1], &["a"]).string("pad_value", "");
    assert_eq!(of().error(), "the attribute `mark` is missing");
    let of = || of().int("mark", 0);
    assert_eq!(of().error(), "the attribute `mincharnum` is missing");
    let none = of().int("mincharnum", 0).string("tokenexp", "a");
    assert_eq!(none.error(), "expected `mincharnum` of at least 1, found 0");
    let characters = of().int("mincharnum", 2).string("tokenexp", ".");
    assert_eq!(characters.error(), "expected `mincharnum` 1 for tokens of one character");
    let of = || of().int("mincharnum", 1);
    assert_eq!(of().error(), "expected `separators` or `tokenexp`");
    assert_eq!(of().strings("separators", &[]).error(), "expected at least one of `separators`");
    for pattern in ["(a", "a{1000}{1000}{1000}"] {
        let error = of().string("tokenexp", pattern).error();
        assert!(error.starts_with("invalid regular expression: "), "{error}");
        let error = of().strings("separators", &[",", pattern]).error();
        assert!(error.starts_with("invalid regular expression: "), "{error}");
    }
    let cube = microsoft("Tokenizer").texts(&[1, 1, 1], &["a"]).string("tokenexp", "a").error();
    assert_eq!(cube, "expected strings of shape [C] or [N,C], found string[1,1,1]");
}
