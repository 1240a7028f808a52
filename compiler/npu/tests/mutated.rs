//! Any number of a schedule or frontend file may be wrong: a program or a finding, never a panic.

use irc_diag::{Sink, Source};
use irc_gemini_format::{Options, frontend, schedule};

macro_rules! data {
    ($name:literal) => {
        include_str!(concat!("../../../dialects/gemini/format/tests/data/", $name))
    };
}

/// Byte ranges of the numbers of a text.
fn numbers(text: &str) -> Vec<(usize, usize)> {
    let mut all = vec![];
    let mut start = None;
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        quoted ^= c == '"';
        let is_part = !quoted && (c.is_ascii_digit() || matches!(c, '-' | '.'));
        match (is_part, start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                all.push((from, at));
                start = None;
            }
            _ => {}
        }
    }
    all
}

/// How many texts with one number replaced were read, unchecked, and handed to `emit`.
fn replaced(text: &str, emit: impl Fn(&Source)) -> usize {
    let mut count = 0;
    for (from, to) in numbers(text) {
        for other in ["0", "-1", "3", "1000001", "281474976710656"] {
            let changed = format!("{}{other}{}", &text[..from], &text[to..]);
            emit(&Source::new("changed.json", changed));
            count += 1;
        }
    }
    count
}

#[test]
fn no_number_of_a_schedule_makes_it_panic() {
    let options = Options { validate: false, ..Options::default() };
    let source = Source::new("frontend.json", data!("frontend.json"));
    let layers = frontend::parse(&source, &options, &mut Sink::new()).expect("sound layers");
    for text in [data!("rings.json"), data!("two_cores.json"), data!("allocated.json")] {
        let count = replaced(text, |source| {
            if let Some(schedule) = schedule::parse(source, &options, &mut Sink::new()) {
                drop(irc_npu_emit::emit(&schedule, Some(&layers)));
            }
        });
        assert!(count > 500, "{count}");
    }
}

#[test]
fn no_number_of_a_frontend_file_makes_it_panic() {
    let options = Options { validate: false, ..Options::default() };
    let source = Source::new("rings.json", data!("rings.json"));
    let schedule = schedule::parse(&source, &options, &mut Sink::new()).expect("a schedule");
    let count = replaced(data!("frontend.json"), |source| {
        if let Some(layers) = frontend::parse(source, &options, &mut Sink::new()) {
            drop(irc_npu_emit::emit(&schedule, Some(&layers)));
        }
    });
    assert!(count > 100, "{count}");
}
