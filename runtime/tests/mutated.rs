//! Whatever a graph says, its memory is said, within a limit, or it is rejected: never a panic.

use crate::support::{contents, package};
use irc_diag::{Sink, Source};
use irc_mlf::{graph, metadata::Memory};
use irc_runtime::{ContextOptions, context_bytes};

const LIMIT: u64 = 1 << 30;

/// Numbers that are put in the place of each number of the graph.
const NUMBERS: [&str; 8] =
    ["0", "1", "7", "-1", "65536", "4294967296", "9223372036854775807", "99999999999999999999"];

#[test]
fn each_number_may_be_any_other() {
    let mut package = package(&contents());
    let Memory::Model(memory) = &mut package.metadata.modules[0].memory else { panic!("a model") };
    memory.storages = None;
    // Sizes of two devices are not checked: they are those of one graph.
    memory.main.push(memory.main[0].clone());
    let text = package.archive.members()["executor-config/graph/graph.json"].clone();
    let text = String::from_utf8(text.to_vec()).expect("text");
    let options = ContextOptions { memory_limit: Some(LIMIT), ..ContextOptions::default() };
    let (mut fits, mut too_large, mut rejected) = (0, 0, 0);
    for (begin, end) in numbers(&text) {
        for number in NUMBERS {
            let changed = format!("{}{number}{}", &text[..begin], &text[end..]);
            let read = graph::read(&Source::new("graph.json", changed), &mut Sink::new());
            let Some(graph) = read else {
                rejected += 1;
                continue;
            };
            package.parts[0].graph = Some(graph);
            match context_bytes(&package, None, &options) {
                Ok(bytes) => {
                    assert!(bytes <= LIMIT);
                    fits += 1;
                }
                Err(irc_runtime::ModelError::Memory { .. }) => too_large += 1,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    rejected += 1;
                }
            }
        }
    }
    assert!(fits > 50 && too_large > 5 && rejected > 200, "{fits}, {too_large}, {rejected}");
}

/// Where the numbers of a text are.
fn numbers(text: &str) -> Vec<(usize, usize)> {
    let is_digit = |at: usize| text.as_bytes()[at].is_ascii_digit();
    let begins = (1..text.len()).filter(|at| is_digit(*at) && !is_digit(at - 1));
    begins
        .map(|begin| {
            let rest = &text[begin..];
            let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            (begin, begin + length)
        })
        .collect()
}
