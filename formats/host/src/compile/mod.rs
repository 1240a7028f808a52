//! Regular expressions as automata, with the syntax and the meaning of RE2.

mod syntax;

use crate::automaton::{Automaton, Look, MAX_STATES, State, Transition};
use regex_automata::nfa::thompson::{self, Compiler, NFA, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_syntax::ParserBuilder;
use std::collections::BTreeMap;

/// Maximum size in bytes of an expression.
const MAX_TEXT: usize = 1 << 16;

/// Maximum size in bytes of an automaton while it is built.
const MAX_BYTES: usize = 1 << 20;

/// The automaton of an expression.
///
/// # Errors
/// An expression that is invalid, not supported, or too large.
pub fn compile(text: &str) -> Result<Automaton, String> {
    let invalid = |error: String| format!("invalid regular expression: {error}");
    if text.len() > MAX_TEXT {
        return Err(invalid(format!("expected at most {MAX_TEXT} bytes, found {}", text.len())));
    }
    let text = syntax::translate(text).map_err(invalid)?;
    let hir = ParserBuilder::new().octal(true).build().parse(&text).map_err(|error| {
        invalid(match error {
            regex_syntax::Error::Parse(error) => error.kind().to_string(),
            regex_syntax::Error::Translate(error) => error.kind().to_string(),
            error => error.to_string(),
        })
    })?;
    let config =
        thompson::Config::new().which_captures(WhichCaptures::None).nfa_size_limit(Some(MAX_BYTES));
    let nfa = Compiler::new().configure(config).build_from_hir(&hir);
    reachable(&nfa.map_err(|error| invalid(error.to_string()))?).map_err(invalid)
}

/// The states that the start leads to, numbered in the order in which they are found.
fn reachable(nfa: &NFA) -> Result<Automaton, String> {
    let mut found = Found::default();
    found.number(nfa.start_anchored());
    let mut states = vec![];
    while let Some(id) = found.order.get(states.len()) {
        if states.len() == MAX_STATES {
            return Err(format!("expected at most {MAX_STATES} states"));
        }
        states.push(found.state(nfa.state(*id))?);
    }
    Automaton::new(states).ok_or_else(|| "the automaton is invalid".to_owned())
}

#[derive(Default)]
struct Found {
    order: Vec<StateID>,
    numbers: BTreeMap<StateID, usize>,
}

impl Found {
    fn number(&mut self, id: StateID) -> usize {
        *self.numbers.entry(id).or_insert_with(|| {
            self.order.push(id);
            self.order.len() - 1
        })
    }

    fn state(&mut self, state: &thompson::State) -> Result<State, String> {
        Ok(match state {
            thompson::State::ByteRange { trans } => State::Bytes(vec![self.transition(trans)]),
            thompson::State::Sparse(sparse) => {
                State::Bytes(sparse.transitions.iter().map(|one| self.transition(one)).collect())
            }
            thompson::State::Dense(dense) => {
                let to = |byte| Some((byte, dense.matches_byte(byte)?));
                let bytes = (0..=u8::MAX).filter_map(to);
                let one = |(byte, to)| Transition { first: byte, last: byte, to: self.number(to) };
                State::Bytes(bytes.map(one).collect())
            }
            thompson::State::Look { look, next } => {
                State::Look(assertion(*look)?, self.number(*next))
            }
            thompson::State::Union { alternates } => {
                State::Split(alternates.iter().map(|to| self.number(*to)).collect())
            }
            thompson::State::BinaryUnion { alt1, alt2 } => {
                State::Split(vec![self.number(*alt1), self.number(*alt2)])
            }
            thompson::State::Capture { next, .. } => State::Split(vec![self.number(*next)]),
            thompson::State::Fail => State::Bytes(vec![]),
            thompson::State::Match { .. } => State::Match,
        })
    }

    fn transition(&mut self, one: &thompson::Transition) -> Transition {
        Transition { first: one.start, last: one.end, to: self.number(one.next) }
    }
}

fn assertion(look: regex_automata::util::look::Look) -> Result<Look, String> {
    use regex_automata::util::look::Look as Other;
    Ok(match look {
        Other::Start => Look::Start,
        Other::End => Look::End,
        Other::StartLF => Look::StartLine,
        Other::EndLF => Look::EndLine,
        Other::WordAscii | Other::WordUnicode => Look::Boundary,
        Other::WordAsciiNegate | Other::WordUnicodeNegate => Look::NoBoundary,
        _ => return Err("an assertion that is not supported".to_owned()),
    })
}
