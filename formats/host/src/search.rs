//! Searches of automata in texts.
//!
//! A search moves a set of states along the text (Thompson, 1968), each with the first position from which it is
//! reached (as in Pike's machine): its time is the length of the text times the number of states at most.

use crate::automaton::{Automaton, State};
use std::ops::Range;

/// A search with an automaton, whose memory is used for one text after another.
#[derive(Debug)]
pub struct Search<'a> {
    states: &'a [State],
    now: Threads,
    next: Threads,
    found: Option<Range<usize>>,
}

/// States that go on with bytes, each once with its start, in ascending order of starts.
#[derive(Debug, Default)]
struct Threads {
    members: Vec<(usize, usize)>,
    /// For each state of the automaton, the last set to which it was added.
    added: Vec<usize>,
    set: usize,
    stack: Vec<usize>,
}

impl<'a> Search<'a> {
    /// A search with an automaton.
    pub fn new(automaton: &'a Automaton) -> Self {
        let states = automaton.states();
        let threads = || Threads { added: vec![0; states.len()], ..Threads::default() };
        let (now, next) = (threads(), threads());
        Self { states, now, next, found: None }
    }

    /// Whether the automaton accepts a whole text.
    pub fn accepts(&mut self, text: &[u8]) -> bool {
        self.longest(text, 0..1) == Some(0..text.len())
    }

    /// Of the matches that begin at `from` or later, the first, and of those the longest.
    pub fn find(&mut self, text: &[u8], from: usize) -> Option<Range<usize>> {
        self.longest(text, from..text.len().saturating_add(1))
    }

    /// The first longest match that begins at one of the positions.
    fn longest(&mut self, text: &[u8], starts: Range<usize>) -> Option<Range<usize>> {
        self.found = None;
        self.now.clear();
        let mut at = starts.start;
        while at <= text.len() {
            let may_start = self.found.is_none() && at < starts.end;
            if self.now.members.is_empty() && !may_start {
                break;
            }
            if may_start {
                self.now.add(self.states, &mut self.found, text, at, (0, at));
            }
            if let Some(byte) = text.get(at) {
                self.step(text, at, *byte);
            }
            at += 1;
        }
        self.found.take()
    }

    fn step(&mut self, text: &[u8], at: usize, byte: u8) {
        self.next.clear();
        for (state, start) in &self.now.members {
            if self.found.as_ref().is_some_and(|found| found.start < *start) {
                break;
            }
            if let Some(to) = self.states[*state].after(byte) {
                self.next.add(self.states, &mut self.found, text, at + 1, (to, *start));
            }
        }
        std::mem::swap(&mut self.now, &mut self.next);
    }
}

impl Threads {
    fn clear(&mut self) {
        self.members.clear();
        self.set += 1;
    }

    /// Adds what a state leads to without a byte, with its start; a state that accepts is a match.
    fn add(
        &mut self,
        states: &[State],
        found: &mut Option<Range<usize>>,
        text: &[u8],
        at: usize,
        (state, start): (usize, usize),
    ) {
        self.stack.push(state);
        while let Some(state) = self.stack.pop() {
            if std::mem::replace(&mut self.added[state], self.set) == self.set {
                continue;
            }
            match &states[state] {
                State::Bytes(_) => self.members.push((state, start)),
                State::Split(targets) => self.stack.extend(targets),
                State::Look(look, to) if look.holds(text, at) => self.stack.push(*to),
                State::Look(..) => {}
                State::Match if found.as_ref().is_none_or(|found| start <= found.start) => {
                    *found = Some(start..at);
                }
                State::Match => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(automaton: &str, text: &str, from: usize) -> Option<Range<usize>> {
        let automaton = Automaton::read(automaton).expect("an automaton");
        Search::new(&automaton).find(text.as_bytes(), from)
    }

    #[test]
    fn the_first_longest_match_is_found() {
        // `a|ab`
        let either = "|1|2 61-61>4 61-61>3 62-62>4 match";
        assert_eq!(find(either, "xabab", 0), Some(1..3));
        assert_eq!(find(either, "xabab", 2), Some(3..5));
        assert_eq!((find(either, "xabab", 4), find(either, "", 0)), (None, None));
        // `abcd|bc`: the match that begins first is found last.
        let nested = "|1|5 61-61>2 62-62>3 63-63>4 64-64>7 62-62>6 63-63>7 match";
        assert_eq!((find(nested, "abcd", 0), find(nested, "abce", 0)), (Some(0..4), Some(1..3)));
        // `a*`
        let many = "|1|2 61-61>0 match";
        assert_eq!((find(many, "baa", 0), find(many, "baa", 1)), (Some(0..0), Some(1..3)));
        assert_eq!((find(many, "baa", 3), find(many, "baa", 4)), (Some(3..3), None));
    }

    #[test]
    fn whole_texts_are_accepted() {
        let either = Automaton::read("|1|2 61-61>4 61-61>3 62-62>4 match").expect("an automaton");
        let mut search = Search::new(&either);
        let mut accepts = |text: &str| search.accepts(text.as_bytes());
        assert!(accepts("a") && accepts("ab") && !accepts("aba") && !accepts("ba") && !accepts(""));
    }

    #[test]
    fn a_text_of_repeated_starts_takes_linear_time() {
        // `a*b` begins at every position.
        let text = "a".repeat(1 << 20);
        assert_eq!(find("|1|2 61-61>0 62-62>3 match", &text, 0), None);
        assert_eq!(find("|0|1|0 |0|1", &text, 0), None);
    }
}
